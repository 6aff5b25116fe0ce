/* What this machine can do at best: the yardsticks the benchmark measures with. */
#include <stdint.h>

#if defined(__AVX2__)
typedef float eight __attribute__((vector_size(32)));
#else
typedef float eight __attribute__((vector_size(16)));
#endif

/* The sum of n floats: one load and one addition for each register of them, nothing else, so that
 * over an array much larger than the caches it takes as long as reading memory does. */
float machine_read(const float *x, int64_t n)
{
    enum { WIDTH = sizeof(eight) / sizeof(float), REGS = 8, STEP = WIDTH * REGS };
    eight sums[REGS] = {{0}};
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP)
        for (int r = 0; r < REGS; r++) {
            eight part;
            __builtin_memcpy(&part, x + i + r * WIDTH, sizeof part);
            sums[r] += part;
        }
    float total = 0;
    for (int r = 0; r < REGS; r++)
        for (int j = 0; j < WIDTH; j++)
            total += sums[r][j];
    for (; i < n; i++)
        total += x[i];
    return total;
}

/* 64 n additions, each of which waits for the one before: 64 n cycles on any processor of today. */
uint64_t machine_cycles(uint64_t n, uint64_t by)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < n; i++)
#pragma GCC unroll 64
        for (int j = 0; j < 64; j++) {
            sum += by;
            __asm__ volatile("" : "+r"(sum));
        }
    return sum;
}
