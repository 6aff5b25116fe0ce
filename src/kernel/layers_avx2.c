/* The parts of a layer in AVX2 and FMA. */
#include "kernel/layers.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "kernel/simd_avx2.h"

#include "kernel/layers_math.h"
#include "kernel/layers_turn.h"

INLINE float fold_most(vf x)
{
    __m256 eight = (__m256)x;
    __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
}

#include "kernel/layers_body.h"

#include "kernel/layers_attend_body.h"

#include "kernel/layers_map_body.h"
