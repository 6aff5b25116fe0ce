/* The kernels in AVX2 and FMA. */
#include "kernel/coefficients.h"
#include "kernel/kernel.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/simd_avx2.h"

#include "kernel/simd_body.h"
