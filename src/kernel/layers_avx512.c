/* The parts of a layer in AVX-512. */
#include "kernel/layers.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/simd_avx512.h"

#include "kernel/layers_math.h"
#include "kernel/layers_turn.h"

INLINE float fold_most(vf x)
{
    return _mm512_reduce_max_ps((__m512)x);
}

#include "kernel/layers_body.h"

#include "kernel/layers_attend_body.h"

#include "kernel/layers_map_body.h"
