/* The kernels in AVX-512. */
#include "kernel/coefficients.h"
#include "kernel/kernel.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/simd_avx512.h"

#include "kernel/simd_body.h"
