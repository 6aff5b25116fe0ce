/* The kernel of the page's second module: descents in registers of two doubles and of four floats, everything else as
 * the reference has it. */
#include "kernel/coefficients.h"
#include "kernel/kernel.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>
#include <wasm_simd128.h>

#define WF 4
#define WD 2

/* vf and vd, four floats and two doubles: math.h */
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vu __attribute__((vector_size(16)));
typedef int64_t vl __attribute__((vector_size(16)));
typedef uint64_t vq __attribute__((vector_size(16)));

#define FMA_F(a, b, c) web_fused_f(a, b, c)
#define FMA_D(a, b, c) web_fused_d(a, b, c)
#define SQRT_F(a) ((vf)wasm_f32x4_sqrt((v128_t)(a)))
#define SQRT_D(a) ((vd)wasm_f64x2_sqrt((v128_t)(a)))
#define MIN_D(a, b) ((vd)wasm_f64x2_pmin((v128_t)(b), (v128_t)(a))) /* b if one is not a number */
#define MAX_D(a, b) ((vd)wasm_f64x2_pmax((v128_t)(b), (v128_t)(a)))
#define MIN_F(a, b) ((vf)wasm_f32x4_pmin((v128_t)(b), (v128_t)(a)))
#define MAX_F(a, b) ((vf)wasm_f32x4_pmax((v128_t)(b), (v128_t)(a)))
#define SET_F(a) ((vf)wasm_f32x4_splat(a))
#define SET_D(a) ((vd)wasm_f64x2_splat(a))
#define SET_Q(a) ((vq)wasm_i64x2_splat((int64_t)(a)))
#define LOAD_F(p) ((vf)wasm_v128_load(p))
#define LOAD_D(p) ((vd)wasm_v128_load(p))
#define STORE_F(p, a) wasm_v128_store(p, (v128_t)(a))
#define STORE_D(p, a) wasm_v128_store(p, (v128_t)(a))
/* The top bit of each lane of `mask` chooses b, else a. */
#define BLEND_F(a, b, mask)                                                                        \
    ((vf)wasm_v128_bitselect((v128_t)(b), (v128_t)(a), (v128_t)((vi)(mask) >> 31)))
#define BLEND_D(a, b, mask)                                                                        \
    ((vd)wasm_v128_bitselect((v128_t)(b), (v128_t)(a), (v128_t)((vl)(mask) >> 63)))
/* Even 32-bit lanes from a, odd ones from b. */
#define EVEN_ODD(a, b) ((vu)wasm_i32x4_shuffle((v128_t)(a), (v128_t)(b), 0, 5, 2, 7))
#define COUNT_UP_Q ((vq){0, 1})
#define WIDE(x, half)                                                                              \
    ((vd)wasm_f64x2_promote_low_f32x4((half) ? wasm_i64x2_shuffle((v128_t)(x), (v128_t)(x), 1, 1)  \
                                             : (v128_t)(x)))

/* Product of the low 32 bits of each 64-bit lane. */
static inline vq MUL_32(vq a, vq b)
{
    v128_t low_a = wasm_i32x4_shuffle((v128_t)a, (v128_t)a, 0, 2, 0, 2);
    v128_t low_b = wasm_i32x4_shuffle((v128_t)b, (v128_t)b, 0, 2, 0, 2);
    return (vq)wasm_u64x2_extmul_low_u32x4(low_a, low_b);
}

static inline vf narrow(vd low, vd high)
{
    v128_t a = wasm_f32x4_demote_f64x2_zero((v128_t)low);
    v128_t b = wasm_f32x4_demote_f64x2_zero((v128_t)high);
    return (vf)wasm_i64x2_shuffle(a, b, 0, 2);
}

#define V vd
#define FMA(a, b, c) FMA_D(a, b, c)
#define EACH(f, x) ((vd){f((x)[0]), f((x)[1])})
#define EXP(x) EACH(exp, x)
#define ERF(x) EACH(erf, x)
#define ERFC(x) EACH(erfc, x)
#define ATAN(x) EACH(atan, x)
#define SQRT(x) SQRT_D(x)
#define MIN(a, b) MIN_D(a, b)
#define MAX(a, b) MAX_D(a, b)
#define SIGN_OF(x) ((vd)(((vq)(x)&0x8000000000000000u) | 0x3ff0000000000000u))
#define ERF_RISK erf_risk_points
#define ERF_GRADIENT erf_gradient
#include "kernel/simd_normals_body.h"
#include "kernel/erf_risk_body.h"
#include "kernel/simd_descent_body.h"

const fini_kernel *fini_kernel_get(void)
{
    static fini_kernel kernel;
    if (!kernel.name) {
        kernel = fini_kernel_ref;
        kernel.name = "simd";
        kernel.normals_f32 = normals_f32;
        kernel.population = population;
        kernel.reduced = reduced;
    }
    return &kernel;
}
