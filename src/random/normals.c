/* Arrays of normals: whole groups straight into the output, the two ends through a buffer. */
#include "finetti/random.h"

#include "kernel/kernel.h"

#include <string.h>

#define NORMALS(name, type, GROUP, draw)                                                           \
    void name(uint64_t seed, uint32_t stream, uint64_t sample, int64_t first, int64_t n,           \
              type *out)                                                                           \
    {                                                                                              \
        const fini_kernel *kernel = fini_kernel_get();                                             \
        fini_key key = {seed, sample, stream};                                                     \
        type group[GROUP];                                                                         \
        while (out && n > 0) {                                                                     \
            int64_t skip = first % GROUP, take = n;                                                \
            if (skip == 0 && n >= GROUP) {                                                         \
                take = n - n % GROUP;                                                              \
                kernel->draw(key, (uint32_t)(first / GROUP), take / GROUP, out);                   \
            } else {                                                                               \
                take = n < GROUP - skip ? n : GROUP - skip;                                        \
                kernel->draw(key, (uint32_t)(first / GROUP), 1, group);                            \
                memcpy(out, group + skip, (size_t)take * sizeof *out);                             \
            }                                                                                      \
            first += take;                                                                         \
            out += take;                                                                           \
            n -= take;                                                                             \
        }                                                                                          \
    }
NORMALS(fin_random_normals_f32, float, FINI_NORMALS_F32, normals_f32)
NORMALS(fin_random_normals_f64, double, FINI_NORMALS_F64, normals_f64)
