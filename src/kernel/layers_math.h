/* Exponential and normal distribution of a register of floats, inside the loops that need them: a
 * call of a library would put every register into memory. Used by layers_body.h and
 * layers_attend_body.h.
 *
 * Polynomials: minimax in relative error, by the Remez exchange in 40 digits, then rounded. */

#define INLINE static inline __attribute__((always_inline))
/* A short loop over registers, written out. */
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 12")
#endif

/* The first n lanes all ones, the others zero. */
INLINE vi first_lanes(int64_t n)
{
    static const float number[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return (vi)(LOAD_F(number) < SET_F((float)n));
}

INLINE void store_some_f(float *to, vf x, int64_t n)
{
    float some[WF];
    STORE_F(some, x);
    memcpy(to, some, (size_t)n * sizeof *to);
}

/* exp(x) for x <= 88, e^-87 below -87: x = n log 2 + f, |f| <= log(2)/2, and 2^n sum_i c_i f^i,
 * whose error is 2e-9 before rounding. Adding 1.5 2^23 rounds to an integer, which then stands in
 * the low bits. */
INLINE vf exp_f(vf x)
{
    const vf shift = SET_F(0x1.8p23f);
    x = MAX_F(SET_F(-87.0f), x); /* NaN is the second one */
    vf turned = FMA_F(x, SET_F(1.44269504088896f), shift), n = turned - shift;
    vf f = FMA_F(n, SET_F(-0.693359375f), x);
    f = FMA_F(n, SET_F(2.12194440054691e-4f), f);
    vf p = FMA_F(SET_F(0.00138367412615f), f, SET_F(0.00837489835007f));
    p = FMA_F(p, f, SET_F(0.0416682318129f));
    p = FMA_F(p, f, SET_F(0.166664191906f));
    p = FMA_F(p, f, SET_F(0.499999920323f));
    p = FMA_F(p, f, SET_F(1.00000003654f));
    p = FMA_F(p, f, SET_F(1.0f));
    return p * (vf)(((vu)turned << 23) + 0x3f800000u);
}

/* y = t Phi(t) and its slope Phi(t) + t phi(t), by the smaller tail, a = |t|:
 *
 *     Phi(-a) = exp(-a^2/2) sum_i c_i u^i, u = 1 / (1 + 0.35 a)      relative error 3e-8 up to 14
 *     y = max(t, 0) - a Phi(-a)
 *     slope = Phi(-a) - a phi(a) for t < 0, else 1 minus that
 *
 * Past 12.5 nothing is left of the tail, and infinity would not be a number. */
INLINE void gelu_f(vf t, vf *y, vf *slope)
{
    vf a = MIN_F(SET_F(12.5f), (vf)((vu)t & 0x7fffffffu));
    vf u = 1.0f / FMA_F(SET_F(0.35f), a, SET_F(1.0f));
    vf e = exp_f(a * a * -0.5f);
    vf p = FMA_F(SET_F(-0.0291578737738f), u, SET_F(0.144030861466f));
    p = FMA_F(p, u, SET_F(-0.255838884687f));
    p = FMA_F(p, u, SET_F(0.159319560565f));
    p = FMA_F(p, u, SET_F(-0.0232122619796f));
    p = FMA_F(p, u, SET_F(0.105552464269f));
    p = FMA_F(p, u, SET_F(0.119821297048f));
    p = FMA_F(p, u, SET_F(0.139863514198f));
    p = FMA_F(p, u, SET_F(0.139621306909f));
    vf tail = e * (p * u);
    vf low = FMA_F(a * -0.398942280401433f, e, tail);
    *y = MAX_F(SET_F(0.0f), t) - a * tail;
    *slope = BLEND_F(1.0f - low, low, t);
}
