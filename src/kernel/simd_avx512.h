/* Names of the AVX-512 (F, DQ) instructions that simd_body.h is written in: 16 floats, 8 doubles.
 */
#include <immintrin.h>
#include <sleef.h>

#define KERNEL_NAME "avx512"
#define TABLE_OF(what) fini_##what##_avx512
#define WF 16
#define WD 8

typedef float vf __attribute__((vector_size(64)));
typedef int32_t vi __attribute__((vector_size(64)));
typedef uint32_t vu __attribute__((vector_size(64)));
typedef double vd __attribute__((vector_size(64)));
typedef int64_t vl __attribute__((vector_size(64)));
typedef uint64_t vq __attribute__((vector_size(64)));

#define FMA_F(a, b, c) ((vf)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define FMA_D(a, b, c) ((vd)_mm512_fmadd_pd((__m512d)(a), (__m512d)(b), (__m512d)(c)))
#define SQRT_F(a) ((vf)_mm512_sqrt_ps((__m512)(a)))
#define SQRT_D(a) ((vd)_mm512_sqrt_pd((__m512d)(a)))
#define MIN_D(a, b) ((vd)_mm512_min_pd((__m512d)(a), (__m512d)(b)))
#define MAX_D(a, b) ((vd)_mm512_max_pd((__m512d)(a), (__m512d)(b)))
#define MIN_F(a, b) ((vf)_mm512_min_ps((__m512)(a), (__m512)(b)))
#define MAX_F(a, b) ((vf)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define SET_F(a) ((vf)_mm512_set1_ps(a))
#define SET_D(a) ((vd)_mm512_set1_pd(a))
#define SET_U(a) ((vu)_mm512_set1_epi32((int)(a)))
#define SET_Q(a) ((vq)_mm512_set1_epi64((long long)(a)))
#define LOAD_F(p) ((vf)_mm512_loadu_ps(p))
#define LOAD_D(p) ((vd)_mm512_loadu_pd(p))
#define STORE_F(p, a) _mm512_storeu_ps(p, (__m512)(a))
#define STORE_D(p, a) _mm512_storeu_pd(p, (__m512d)(a))
#define WIDEN(p) ((vd)_mm512_cvtps_pd(_mm256_loadu_ps(p))) /* WD floats to doubles */
/* The top bit of each lane of `mask` chooses b, else a. */
#define BLEND_F(a, b, mask)                                                                        \
    ((vf)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)(mask)), (__m512)(a), (__m512)(b)))
#define BLEND_D(a, b, mask)                                                                        \
    ((vd)_mm512_mask_blend_pd(_mm512_movepi64_mask((__m512i)(mask)), (__m512d)(a), (__m512d)(b)))
/* Product of the low 32 bits of each 64-bit lane. */
#define MUL_32(a, b) ((vq)_mm512_mul_epu32((__m512i)(a), (__m512i)(b)))
/* Even 32-bit lanes from a, odd ones from b. */
#define EVEN_ODD(a, b) ((vu)_mm512_mask_blend_epi32(0xaaaa, (__m512i)(a), (__m512i)(b)))
#define COUNT_UP_Q ((vq){0, 1, 2, 3, 4, 5, 6, 7})

#define VEXP(x) ((vd)Sleef_finz_expd8_u10avx512f((__m512d)(x)))
#define VLOG1P(x) ((vd)Sleef_finz_log1pd8_u10avx512f((__m512d)(x)))
#define VERF(x) ((vd)Sleef_finz_erfd8_u10avx512f((__m512d)(x)))
#define VERFC(x) ((vd)Sleef_finz_erfcd8_u15avx512f((__m512d)(x)))
#define VATAN(x) ((vd)Sleef_finz_atand8_u10avx512f((__m512d)(x)))

/* Half of a register as doubles; two registers of doubles as one of floats. */
#define WIDE(x, half)                                                                              \
    ((vd)_mm512_cvtps_pd((half) ? _mm512_extractf32x8_ps((__m512)(x), 1)                           \
                                : _mm512_castps512_ps256((__m512)(x))))
static inline vf narrow(vd low, vd high)
{
    return (vf)_mm512_insertf32x8(_mm512_castps256_ps512(_mm512_cvtpd_ps((__m512d)low)),
                                  _mm512_cvtpd_ps((__m512d)high), 1);
}

/* The first n lanes of p, zero in the others. */
static inline vf load_some_f(const float *p, int n)
{
    return (vf)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}

static inline vd load_some_d(const double *p, int n)
{
    return (vd)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p);
}

/* Folds WF partial sums in halves: 16 -> 8 -> 4 -> 2 -> 1, low half plus high half. The lanes of
 * the reference fit one register, so the second one is always zero and is not looked at. */
static inline float fold_f(vf all, vf unused)
{
    (void)unused;
    __m256 eight =
        _mm256_add_ps(_mm512_castps512_ps256((__m512)all), _mm512_extractf32x8_ps((__m512)all, 1));
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

/* The same for several registers at once: halves of two, then quarters of four, side by side. */
#define PAIR_HALVES(a, b)                                                                          \
    ((vf)_mm512_add_ps(_mm512_shuffle_f32x4((__m512)(a), (__m512)(b), 0x44),                       \
                       _mm512_shuffle_f32x4((__m512)(a), (__m512)(b), 0xee)))
#define PAIR_QUARTERS(a, b)                                                                        \
    ((vf)_mm512_add_ps(_mm512_shuffle_f32x4((__m512)(a), (__m512)(b), 0x88),                       \
                       _mm512_shuffle_f32x4((__m512)(a), (__m512)(b), 0xdd)))
/* Of two registers with a quarter for each of four sums: the eight sums, as doubles. */
static inline vd last_folds(vf a, vf b)
{
    __m512 two = _mm512_add_ps(_mm512_shuffle_ps((__m512)a, (__m512)b, 0x44),
                               _mm512_shuffle_ps((__m512)a, (__m512)b, 0xee));
    __m512 one =
        _mm512_add_ps(_mm512_shuffle_ps(two, two, 0x88), _mm512_shuffle_ps(two, two, 0xdd));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0);
    return (vd)_mm512_cvtps_pd(_mm512_castps512_ps256(_mm512_permutexvar_ps(order, one)));
}

static inline double fold_d(vd all, vd unused)
{
    (void)unused;
    __m256d four = _mm256_add_pd(_mm512_castpd512_pd256((__m512d)all),
                                 _mm512_extractf64x4_pd((__m512d)all, 1));
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}
