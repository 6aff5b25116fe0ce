/* Rows of tokens in AVX2 and FMA. */
#include "kernel/rows.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/simd_avx2.h"

#include "kernel/rows_see.h"
