/* <math.h> of the page's second module, with fused multiply-adds by an instruction of "relaxed" SIMD. It may round once or
 * twice, as the processor likes: the page takes this module only where it finds that it rounds once (web/module.js). Then
 * all bits are those of the other module. clang 14 does not know the instruction yet, hence its bytes. */
#ifndef FINETTI_WEB_SIMD_MATH_H
#define FINETTI_WEB_SIMD_MATH_H

#include_next <math.h>

typedef float vf __attribute__((vector_size(16)));
typedef double vd __attribute__((vector_size(16)));

#define WEB_FUSED(type, name, byte)                                                                \
    static inline type name(type a, type b, type c)                                                \
    {                                                                                              \
        type y;                                                                                    \
        __asm__("local.get %1\n\tlocal.get %2\n\tlocal.get %3\n\t.byte 0xfd, " byte                \
                ", 0x02\n\tlocal.set %0"                                                           \
                : "=r"(y)                                                                          \
                : "r"(a), "r"(b), "r"(c));                                                         \
        return y;                                                                                  \
    }
WEB_FUSED(vf, web_fused_f, "0x85") /* f32x4.relaxed_madd */
WEB_FUSED(vd, web_fused_d, "0x87") /* f64x2.relaxed_madd */

#define fma(a, b, c) (web_fused_d((vd){(a)}, (vd){(b)}, (vd){(c)})[0])
#define fmaf(a, b, c) (web_fused_f((vf){(a)}, (vf){(b)}, (vf){(c)})[0])

#endif
