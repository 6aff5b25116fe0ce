/* A pass in float. */
#include "kernel/layers.h"

#define REAL float
#define HEAD fini_head_f32
#define NORM fini_norm_f32
#define GEMM cblas_sgemm
#define LAYERS (fini_layers_get())
#include "encoder/pass_body.h"

const fini_passer fini_passer_f32 = {sizeof(REAL), sizeof(scratch), layout, run, convert, sines};
