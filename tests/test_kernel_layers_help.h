/* What the tests of the parts of a layer share: tables, and arrays of normals at fences. Include
 * after cmocka.h. */
#ifndef TEST_KERNEL_LAYERS_HELP_H
#define TEST_KERNEL_LAYERS_HELP_H

#include "finetti/random.h"
#include "kernel/layers.h"
#include "test_kernel_fence.h"

enum { ARRAYS = 9, MOST = 1 << 16 };
static fence fences[ARRAYS];

static inline int setup(void **state)
{
    (void)state;
    for (int i = 0; i < ARRAYS; i++)
        fences[i] = fence_open();
    return 0;
}

static inline int teardown(void **state)
{
    (void)state;
    for (int i = 0; i < ARRAYS; i++)
        fence_close(&fences[i]);
    return 0;
}

static inline int tables(const fini_layers_f32 *table[5])
{
    const fini_kernel *kernel[4];
    int count = kernels_other(kernel);
    table[0] = &fini_layers_ref;
    for (int i = 0; i < count; i++) {
        fini_kernel_force(kernel[i]->name);
        table[i + 1] = fini_layers_get();
        assert_true(table[i + 1] != &fini_layers_ref);
    }
    fini_kernel_force("ref");
    assert_true(fini_layers_get() == &fini_layers_ref);
    fini_kernel_force(NULL);
    return count + 1;
}

/* n normals as double, and the floats nearest to them in array i, at its fence; the doubles are
 * made those floats. */
static double store[ARRAYS][MOST];
static inline float *fill(int i, int64_t n)
{
    assert_true(n <= MOST);
    float *x = fence_array(&fences[i], n, sizeof *x);
    fin_random_normals_f64(7, 2100, (uint64_t)i, 0, n, store[i]);
    for (int64_t j = 0; j < n; j++)
        store[i][j] = (double)(x[j] = (float)store[i][j]);
    return x;
}

/* |got - want| <= bound (1 + |want|). */
static inline void near(int64_t n, const float *got, const double *want, double bound)
{
    for (int64_t j = 0; j < n; j++)
        if (!(fabs((double)got[j] - want[j]) <= bound * (1 + fabs(want[j]))))
            fail_msg("number %d: %.9g instead of %.9g", (int)j, (double)got[j], want[j]);
}

#endif
