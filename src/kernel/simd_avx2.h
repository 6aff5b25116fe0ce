/* Names of the AVX2 instructions that simd_body.h is written in: 8 floats, 4 doubles. */
#include <immintrin.h>
#include <sleef.h>

#define KERNEL_NAME "avx2"
#define TABLE_OF(what) fini_##what##_avx2
#define WF 8
#define WD 4

typedef float vf __attribute__((vector_size(32)));
typedef int32_t vi __attribute__((vector_size(32)));
typedef uint32_t vu __attribute__((vector_size(32)));
typedef double vd __attribute__((vector_size(32)));
typedef int64_t vl __attribute__((vector_size(32)));
typedef uint64_t vq __attribute__((vector_size(32)));

#define FMA_F(a, b, c) ((vf)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define FMA_D(a, b, c) ((vd)_mm256_fmadd_pd((__m256d)(a), (__m256d)(b), (__m256d)(c)))
#define SQRT_F(a) ((vf)_mm256_sqrt_ps((__m256)(a)))
#define SQRT_D(a) ((vd)_mm256_sqrt_pd((__m256d)(a)))
#define MIN_D(a, b) ((vd)_mm256_min_pd((__m256d)(a), (__m256d)(b)))
#define MAX_D(a, b) ((vd)_mm256_max_pd((__m256d)(a), (__m256d)(b)))
#define MIN_F(a, b) ((vf)_mm256_min_ps((__m256)(a), (__m256)(b)))
#define MAX_F(a, b) ((vf)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define SET_F(a) ((vf)_mm256_set1_ps(a))
#define SET_D(a) ((vd)_mm256_set1_pd(a))
#define SET_U(a) ((vu)_mm256_set1_epi32((int)(a)))
#define SET_Q(a) ((vq)_mm256_set1_epi64x((long long)(a)))
#define LOAD_F(p) ((vf)_mm256_loadu_ps(p))
#define LOAD_D(p) ((vd)_mm256_loadu_pd(p))
#define STORE_F(p, a) _mm256_storeu_ps(p, (__m256)(a))
#define STORE_D(p, a) _mm256_storeu_pd(p, (__m256d)(a))
#define WIDEN(p) ((vd)_mm256_cvtps_pd(_mm_loadu_ps(p))) /* WD floats to doubles */
/* The top bit of each lane of `mask` chooses b, else a. */
#define BLEND_F(a, b, mask) ((vf)_mm256_blendv_ps((__m256)(a), (__m256)(b), (__m256)(mask)))
#define BLEND_D(a, b, mask) ((vd)_mm256_blendv_pd((__m256d)(a), (__m256d)(b), (__m256d)(mask)))
/* Product of the low 32 bits of each 64-bit lane. */
#define MUL_32(a, b) ((vq)_mm256_mul_epu32((__m256i)(a), (__m256i)(b)))
/* Even 32-bit lanes from a, odd ones from b. */
#define EVEN_ODD(a, b) ((vu)_mm256_blend_epi32((__m256i)(a), (__m256i)(b), 0xaa))
#define COUNT_UP_Q ((vq){0, 1, 2, 3})

#define VEXP(x) ((vd)Sleef_finz_expd4_u10avx2((__m256d)(x)))
#define VLOG1P(x) ((vd)Sleef_finz_log1pd4_u10avx2((__m256d)(x)))
#define VERF(x) ((vd)Sleef_finz_erfd4_u10avx2((__m256d)(x)))
#define VERFC(x) ((vd)Sleef_finz_erfcd4_u15avx2((__m256d)(x)))
#define VATAN(x) ((vd)Sleef_finz_atand4_u10avx2((__m256d)(x)))

/* Half of a register as doubles; two registers of doubles as one of floats. */
#define WIDE(x, half)                                                                              \
    ((vd)_mm256_cvtps_pd((half) ? _mm256_extractf128_ps((__m256)(x), 1)                            \
                                : _mm256_castps256_ps128((__m256)(x))))
static inline vf narrow(vd low, vd high)
{
    return (vf)_mm256_set_m128(_mm256_cvtpd_ps((__m256d)high), _mm256_cvtpd_ps((__m256d)low));
}

/* The first n lanes of p, zero in the others. */
static inline vf load_some_f(const float *p, int n)
{
    vi mask = (vi){0, 1, 2, 3, 4, 5, 6, 7} < ((vi){0} + n);
    return (vf)_mm256_maskload_ps(p, (__m256i)mask);
}

static inline vd load_some_d(const double *p, int n)
{
    vl mask = (vl){0, 1, 2, 3} < ((vl){0} + (int64_t)n);
    return (vd)_mm256_maskload_pd(p, (__m256i)mask);
}

/* Folds 2 * WF partial sums in halves: 16 -> 8 -> 4 -> 2 -> 1, low half plus high half. */
static inline float fold_f(vf low, vf high)
{
    __m256 eight = (__m256)(low + high);
    __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
}

static inline double fold_d(vd low, vd high)
{
    __m256d four = (__m256d)(low + high);
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}
