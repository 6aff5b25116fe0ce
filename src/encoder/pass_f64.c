/* A pass in double, for checking: the same text, on the plain kernels. */
#include "kernel/layers.h"

#define REAL double
#define HEAD fini_head_f64
#define NORM fini_norm_f64
#define GEMM cblas_dgemm
#define LAYERS (&fini_layers_ref_f64)
#include "encoder/pass_body.h"

const fini_passer fini_passer_f64 = {sizeof(REAL), sizeof(scratch), layout, run, convert, sines};
