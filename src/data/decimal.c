/* Decimal text to the nearest double, fast.
 *
 * A decimal is m * 10^e with a whole m. Three ways, tried in this order, all correctly rounded:
 *   m <= 2^53, |e| <= 22   both are exact doubles, so one multiplication or division rounds once
 *                          (Clinger 1990); nearly all numbers written by hand or with 15 digits;
 *   m < 2^64,  |e| <= 27   5^27 < 2^64, so product or quotient with 5^|e| is known to the last bit
 *                          in 128-bit integers; most numbers written with 17 digits;
 *   the rest               strtod, on a copy, because the text has no terminator of its own.
 * Hexadecimal numbers and nan(...), which strtod would take, are not decimals and are refused. */
#include "data/data.h"

#include <math.h>
#include <string.h>
#include <strings.h>

__extension__ typedef unsigned __int128 u128;

enum {
    EXACT_TEN = 22,     /* 10^22 is the last power of ten that is a double */
    EXACT_FIVE = 27,    /* 5^27 is the last power of five below 2^64 */
    DIGITS_MOST = 19,   /* 10^19 - 1 < 2^64 */
    LENGTH_MOST = 1023, /* of a number given to strtod */
    EXPONENT_MOST = 99999
};

static const double ten[EXACT_TEN + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                          1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

#define FIVE_13 UINT64_C(1220703125)
static const uint64_t five[EXACT_FIVE + 1] = {1,
                                              5,
                                              25,
                                              125,
                                              625,
                                              3125,
                                              15625,
                                              78125,
                                              390625,
                                              1953125,
                                              9765625,
                                              48828125,
                                              244140625,
                                              FIVE_13,
                                              FIVE_13 * 5,
                                              FIVE_13 * 25,
                                              FIVE_13 * 125,
                                              FIVE_13 * 625,
                                              FIVE_13 * 3125,
                                              FIVE_13 * 15625,
                                              FIVE_13 * 78125,
                                              FIVE_13 * 390625,
                                              FIVE_13 * 1953125,
                                              FIVE_13 * 9765625,
                                              FIVE_13 * 48828125,
                                              FIVE_13 * 244140625,
                                              FIVE_13 *FIVE_13,
                                              FIVE_13 *FIVE_13 * 5};

/* 2^e for a normal result. */
static double power_of_two(int e)
{
    uint64_t bits = (uint64_t)(e + 1023) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* m * 10^e = m * 5^e * 2^e for m > 0. The factor of 5 leaves q with at least 62 bits, whose lowest
 * is set if anything nonzero lies below; then the one rounding, to 53 bits, is that of (double)q.
 */
static double scale(uint64_t m, int e)
{
    int shift = __builtin_clzll(m), two;
    uint64_t a = m << shift, q;
    if (e < 0) {
        int shift_five = __builtin_clzll(five[-e]);
        uint64_t b = five[-e] << shift_five; /* a / b lies in (1/2, 2) */
        u128 n = (u128)a << 63;
        q = (uint64_t)(n / b);
        two = e - shift + shift_five - 63;
        q |= n != (u128)q * b;
    } else {
        u128 n = (u128)a * five[e];
        int high = n >> 64 ? 64 - __builtin_clzll((uint64_t)(n >> 64)) : 0;
        q = (uint64_t)(n >> high);
        two = e - shift + high;
        q |= (u128)q << high != n;
    }
    return (double)q * power_of_two(two);
}

static const char *read_word(const char *p, const char *end, bool negative, double *value)
{
    static const struct {
        const char *word;
        double value;
    } words[] = {{"infinity", INFINITY}, {"inf", INFINITY}, {"nan", NAN}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].word);
        if ((size_t)(end - p) >= length && strncasecmp(p, words[i].word, length) == 0) {
            *value = negative ? -words[i].value : words[i].value;
            return p + length;
        }
    }
    *value = NAN;
    return NULL;
}

static const char *read_slowly(const char *start, const char *end, double *value)
{
    char copy[LENGTH_MOST + 1];
    size_t length = (size_t)(end - start);
    *value = NAN;
    if (length > LENGTH_MOST)
        return NULL;
    memcpy(copy, start, length);
    copy[length] = '\0';
    *value = fini_strtod(copy, NULL);
    return isinf(*value) ? NULL : end;
}

static inline bool is_digit(char c)
{
    return (unsigned char)(c - '0') < 10;
}

/* Digits are added modulo 2^64; the caller knows from their number whether they fitted. */
static inline const char *read_digits(const char *p, const char *end, uint64_t *m)
{
    uint64_t sum = *m;
    for (; p < end && is_digit(*p); p++)
        sum = sum * 10 + (uint64_t)(*p - '0');
    *m = sum;
    return p;
}

/* "e-12" at p; without digits it is left alone, as by strtod. */
static const char *read_exponent(const char *p, const char *end, int *exponent)
{
    const char *q = p + 1;
    bool negative = false;
    if (q < end && (*q == '-' || *q == '+'))
        negative = *q++ == '-';
    if (q == end || !is_digit(*q))
        return p;
    int sum = 0;
    for (; q < end && is_digit(*q); q++)
        sum = sum < EXPONENT_MOST ? sum * 10 + (*q - '0') : sum;
    *exponent = negative ? -sum : sum;
    return q;
}

const char *fini_decimal(const char *p, const char *end, double *value)
{
    const char *start = p;
    bool negative = false;
    if (p < end && (*p == '-' || *p == '+'))
        negative = *p++ == '-';
    const char *first = p;
    uint64_t m = 0;
    p = read_digits(p, end, &m);
    ptrdiff_t digits = p - first, fraction = 0;
    if (p < end && *p == '.') {
        const char *point = ++p;
        p = read_digits(p, end, &m);
        fraction = p - point;
        digits += fraction;
    }
    if (digits == 0)
        return read_word(first, end, negative, value);
    int exponent = 0;
    if (p < end && (*p == 'e' || *p == 'E'))
        p = read_exponent(p, end, &exponent);
    if (digits > DIGITS_MOST) /* zeros in front do not count */
        for (const char *q = first; digits > 0 && (*q == '0' || *q == '.'); q++)
            digits -= *q == '0';
    if (digits > DIGITS_MOST)
        return read_slowly(start, p, value);
    double size;
    ptrdiff_t e = exponent - fraction;
    if (m == 0)
        size = 0;
    else if (m <= UINT64_C(1) << 53 && e >= -EXACT_TEN && e <= EXACT_TEN)
        size = e < 0 ? (double)m / ten[-e] : (double)m * ten[e];
    else if (e >= -EXACT_FIVE && e <= EXACT_FIVE)
        size = scale(m, (int)e);
    else
        return read_slowly(start, p, value);
    *value = negative ? -size : size;
    return p;
}
