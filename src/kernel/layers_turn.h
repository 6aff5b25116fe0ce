/* Eight rows of eight floats, transposed and scaled, with 8-float registers (which AVX-512 has
 * too). */
static inline void transpose_8(const float *x, int64_t ld, float times, float *to, int64_t stride)
{
    __m256 a[8], b[8], scale = _mm256_set1_ps(times);
    for (int i = 0; i < 8; i++)
        a[i] = _mm256_mul_ps(_mm256_loadu_ps(x + i * ld), scale);
    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
        b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
        a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
        a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
        a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * stride, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * stride, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}
