/* Normals: every kernel gives the bits of the reference, and writes nothing beside them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_kernel_fence.h"

#include <stdlib.h>

enum { MOST_GROUPS = 40 };

static const fini_key keys[] = {
    {0, 0, 0},
    {1, 2, 3},
    {UINT64_MAX, UINT64_MAX, UINT32_MAX},
    {0x0123456789abcdef, (UINT64_C(1) << 32) + 5, 1024},
    {UINT64_C(1) << 32, UINT64_C(0xffffffff), 0x80000003u},
    {UINT64_C(1) << 63, (UINT64_C(1) << 63) + (UINT64_C(1) << 31), 0x7fffffffu},
};
enum { KEYS = sizeof keys / sizeof *keys };

static void compare_f32(const fini_kernel *kernel, const fence *f, fini_key key, uint32_t first,
                        int64_t groups)
{
    static float want[MOST_GROUPS * FINI_NORMALS_F32];
    float *got = fence_array(f, groups * FINI_NORMALS_F32 + 1, sizeof *got);
    got[0] = 12345;
    fini_kernel_ref.normals_f32(key, first, groups, want);
    kernel->normals_f32(key, first, groups, got + 1);
    assert_memory_equal(want, got + 1, (size_t)groups * FINI_NORMALS_F32 * sizeof *got);
    assert_true(got[0] == 12345);
}

static void compare_f64(const fini_kernel *kernel, const fence *f, fini_key key, uint32_t first,
                        int64_t groups)
{
    static double want[MOST_GROUPS * FINI_NORMALS_F64];
    double *got = fence_array(f, groups * FINI_NORMALS_F64 + 1, sizeof *got);
    got[0] = 12345;
    fini_kernel_ref.normals_f64(key, first, groups, want);
    kernel->normals_f64(key, first, groups, got + 1);
    assert_memory_equal(want, got + 1, (size_t)groups * FINI_NORMALS_F64 * sizeof *got);
    assert_true(got[0] == 12345);
}

static void normals__same_bits_as_reference(void **state)
{
    (void)state;
    const fini_kernel *kernel[4];
    int count = kernels_other(kernel);
    fence f = fence_open();
    for (int k = 0; k < count; k++)
        for (int i = 0; i < KEYS; i++)
            for (int64_t groups = 0; groups <= MOST_GROUPS; groups++) {
                /* 2^28 float groups and 2^29 double groups use up the 2^32 blocks of a key. */
                const uint32_t first_f32[] = {0, 1, 12345, (1u << 28) - (uint32_t)groups,
                                              (1u << 28) - 1};
                const uint32_t first_f64[] = {0, 1, 98765, (1u << 29) - (uint32_t)groups,
                                              (1u << 29) - 1};
                for (int j = 0; j < 5; j++) {
                    compare_f32(kernel[k], &f, keys[i], first_f32[j], groups);
                    compare_f64(kernel[k], &f, keys[i], first_f64[j], groups);
                }
            }
    fence_close(&f);
    print_message("%d kernels against ref (%s)\n", count, fin_kernel_available());
}

/* Many keys, so that rare branches (tiny u, u near 1, quadrant edges) are met: 2^21 normals each.
 */
static void normals__same_bits_on_many_keys(void **state)
{
    (void)state;
    const fini_kernel *kernel[4];
    int count = kernels_other(kernel);
    static float wantf[16 * FINI_NORMALS_F32], gotf[16 * FINI_NORMALS_F32];
    static double wantd[64 * FINI_NORMALS_F64], gotd[64 * FINI_NORMALS_F64];
    for (int i = 0; i < 512; i++) {
        fini_key key = {0x9e3779b97f4a7c15u * (uint64_t)(i + 1), 0xd1b54a32d192ed03u * (uint64_t)i,
                        (uint32_t)i * 0x85ebca6bu};
        uint32_t first = (uint32_t)i * 524287u % (1u << 28);
        fini_kernel_ref.normals_f32(key, first, 16, wantf);
        fini_kernel_ref.normals_f64(key, first, 64, wantd);
        for (int k = 0; k < count; k++) {
            kernel[k]->normals_f32(key, first, 16, gotf);
            kernel[k]->normals_f64(key, first, 64, gotd);
            assert_memory_equal(wantf, gotf, sizeof wantf);
            assert_memory_equal(wantd, gotd, sizeof wantd);
        }
    }
}

/* A group depends on its number only, not on the call that it is part of. */
static void normals__group_is_a_function_of_its_number(void **state)
{
    (void)state;
    const fini_kernel *kernel[5] = {&fini_kernel_ref};
    int count = 1 + kernels_other(kernel + 1);
    static float all[MOST_GROUPS * FINI_NORMALS_F32], one[FINI_NORMALS_F32];
    static double alld[MOST_GROUPS * FINI_NORMALS_F64], oned[FINI_NORMALS_F64];
    for (int k = 0; k < count; k++) {
        kernel[k]->normals_f32(keys[3], 7, MOST_GROUPS, all);
        kernel[k]->normals_f64(keys[3], 7, MOST_GROUPS, alld);
        for (uint32_t g = 0; g < MOST_GROUPS; g++) {
            kernel[k]->normals_f32(keys[3], 7 + g, 1, one);
            kernel[k]->normals_f64(keys[3], 7 + g, 1, oned);
            assert_memory_equal(one, all + g * FINI_NORMALS_F32, sizeof one);
            assert_memory_equal(oned, alld + g * FINI_NORMALS_F64, sizeof oned);
        }
    }
}

static void force__takes_known_names_only(void **state)
{
    (void)state;
    const char *automatic = fin_kernel_name();
    const char *const unknown[] = {"", "AVX2", "avx", "avx2 ", "sse", "ref avx2", "reference"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_true(fini_kernel_force("ref"));
        assert_string_equal(fin_kernel_name(), "ref");
        assert_false(fini_kernel_force(unknown[i]));
        assert_string_equal(fin_kernel_name(), automatic); /* back to the automatic choice */
    }
    assert_true(fini_kernel_force(NULL));
    assert_string_equal(fin_kernel_name(), automatic);
    assert_non_null(strstr(fin_kernel_available(), "ref"));
    assert_non_null(strstr(fin_kernel_available(), automatic));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normals__same_bits_as_reference),
        cmocka_unit_test(normals__same_bits_on_many_keys),
        cmocka_unit_test(normals__group_is_a_function_of_its_number),
        cmocka_unit_test(force__takes_known_names_only),
    };
    return cmocka_run_group_tests_name("kernel_normals", tests, NULL, NULL);
}
