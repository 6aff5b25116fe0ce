/* Rows of tokens in AVX-512. */
#include "kernel/rows.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/simd_avx512.h"

#include "kernel/rows_see.h"
