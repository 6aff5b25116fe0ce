/* <math.h>, with fused multiply-adds of its own: WebAssembly has no instruction for one rounding, and musl takes its
 * numbers apart bit by bit. These use additions and multiplications, and have the same bits.
 *
 * A sum is split into what is rounded and what is left (Knuth's two-sum), a product likewise (Dekker's, with Veltkamp's
 * halves). What is left of both is added "to odd": an inexact sum that is even moves one bit towards what was lost, so
 * that the last rounding sees it (Boldo and Melquiond 2008, Emulation of FMA and correctly rounded sums). */
#ifndef FINETTI_WEB_SCALAR_MATH_H
#define FINETTI_WEB_SCALAR_MATH_H

#include_next <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline double web_odd_sum(double a, double b)
{
    double s = a + b, t = s - a, rest = (a - (s - t)) + (b - t);
    uint64_t bits, lost;
    memcpy(&bits, &s, sizeof bits);
    memcpy(&lost, &rest, sizeof lost);
    uint64_t move = (uint64_t)((rest > 0) | (rest < 0)) & ~bits & 1;
    bits += (bits ^ lost) >> 63 ? -move : move; /* towards zero, or away */
    memcpy(&s, &bits, sizeof s);
    return s;
}

static inline double web_fma(double a, double b, double c)
{
    const double most = 0x1p900, least = 0x1p-900, split = 0x1p27 + 1;
    double p = a * b;
    if (!(fabs(p) <= most && fabs(p) >= least && fabs(a) <= most && fabs(b) <= most &&
          fabs(c) <= most))
        return (fma)(a, b,
                     c); /* what is left of a product could be too small, or a half too large */
    double a1 = split * a, ah = a1 - (a1 - a), al = a - ah;
    double b1 = split * b, bh = b1 - (b1 - b), bl = b - bh;
    double e = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
    double low = c + e, t = low - c, low_rest = (c - (low - t)) + (e - t);
    double high = p + low, u = high - p, high_rest = (p - (high - u)) + (low - u);
    return high + web_odd_sum(low_rest, high_rest);
}

/* The product of two floats is exact in double. Rounding the sum twice, to double and to float, is wrong only where the
 * double lies halfway between two floats, or the float is subnormal. */
static inline float web_fmaf(float a, float b, float c)
{
    double p = (double)a * (double)b, s = p + (double)c;
    uint64_t bits;
    memcpy(&bits, &s, sizeof bits);
    bool halfway = (bits & 0x1fffffff) == 0x10000000;
    return (float)(halfway || fabs(s) < 0x1p-120 ? web_odd_sum(p, (double)c) : s);
}

#define fma(a, b, c) web_fma(a, b, c)
#define fmaf(a, b, c) web_fmaf(a, b, c)

#endif
