/* Pairs of rows in AVX2 and FMA. */
#include "kernel/pairs.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/simd_avx2.h"

#include "kernel/pairs_body.h"
