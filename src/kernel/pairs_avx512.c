/* Pairs of rows in AVX-512. */
#include "kernel/pairs.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/simd_avx512.h"

#include "kernel/pairs_body.h"
