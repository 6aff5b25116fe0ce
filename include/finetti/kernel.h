/* kernel: which set of hot loops is in use. The loops themselves are private. */
#ifndef FINETTI_KERNEL_H
#define FINETTI_KERNEL_H

#include "finetti/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* "ref", "avx2" or "avx512". FINETTI_KERNEL=ref|avx2|avx512 forces one that this CPU can run; a
 * name that it cannot run, or that does not exist, falls back to the best one. */
FIN_API const char *fin_kernel_name(void);
/* "ref avx2 ...": those compiled in that this CPU can run. */
FIN_API const char *fin_kernel_available(void);
/* What the environment variable OPENBLAS_CORETYPE should be where OpenBLAS is older than this CPU, takes it
 * for one without AVX2 or AVX-512 and is two or more times slower than it could be; NULL: there is nothing
 * to mend. OpenBLAS reads the variable when it is loaded, so that only a new process profits. */
FIN_API const char *fin_kernel_blas_core(void);

#ifdef __cplusplus
}
#endif
#endif
