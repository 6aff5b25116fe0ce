/* Blocks, arenas and hooks; status names, messages, threads, version. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "fault.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int aligned(const void *p)
{
    return (uintptr_t)p % 64 == 0;
}

static void alloc__is_aligned_and_whole(void **state)
{
    (void)state;
    for (size_t size = 0; size < 3000; size += 37) {
        unsigned char *block = fini_alloc(size);
        assert_true(block && aligned(block));
        memset(block, 0xa5, size); /* the sanitizer watches the ends */
        fini_free(block);
    }
    fini_free(NULL);
}

static void alloc__refuses_impossible_sizes(void **state)
{
    (void)state;
    assert_null(fini_alloc(SIZE_MAX));
    assert_null(fini_alloc(SIZE_MAX - 64));
    assert_null(fini_alloc_array(-1, 8));
    assert_null(fini_alloc_array(INT64_MIN, 1));
    assert_null(fini_alloc_array(INT64_MAX, 8));
    assert_null(fini_alloc_array(INT64_C(1) << 61, 8));       /* 2^64: wraps to 0 */
    assert_null(fini_alloc_array((INT64_C(1) << 61) + 1, 8)); /* wraps to 8 */
    void *empty = fini_alloc_array(0, 8);
    assert_true(empty && aligned(empty));
    fini_free(empty);
}

typedef struct pieces {
    unsigned char *a, *c;
    double *b;
    int64_t *none;
} pieces;

static void layout(fini_arena *arena, pieces *p)
{
    p->a = fini_take(arena, 3, 1);
    p->b = fini_take(arena, 9, sizeof *p->b);
    p->none = fini_take(arena, 0, sizeof *p->none);
    p->c = fini_take(arena, 64, 1);
}

static void arena__pieces_are_apart_aligned_and_zero(void **state)
{
    (void)state;
    fini_arena arena = {0};
    pieces p;
    layout(&arena, &p);
    assert_true(!p.a && !p.b && !p.c); /* measuring gives no pointers */
    size_t measured = arena.used;
    assert_int_equal(measured, 64 + 128 + 64);
    assert_int_equal(fini_arena_open(&arena, "pieces", NULL), FIN_OK);
    layout(&arena, &p);
    assert_int_equal(arena.used, measured);
    assert_true(aligned(p.a) && aligned(p.b) && aligned(p.c));
    assert_true((unsigned char *)p.b >= p.a + 3 && p.c >= (unsigned char *)(p.b + 9));
    for (size_t i = 0; i < measured; i++)
        assert_int_equal(arena.base[i], 0);
    memset(p.a, 1, 3);
    memset(p.b, 2, 72);
    memset(p.c, 3, 64); /* the last byte of the block */
    assert_true(p.a[2] == 1 && p.c[0] == 3);
    fini_arena_close(&arena);
    assert_true(arena.base == NULL && arena.used == 0);
    fini_arena_close(&arena); /* twice is fine */

    fini_arena empty = {0};
    assert_int_equal(fini_arena_open(&empty, "nothing", NULL), FIN_OK);
    fini_arena_close(&empty);
}

static void arena__overflow_is_out_of_memory(void **state)
{
    (void)state;
    const struct {
        int64_t count;
        size_t size;
    } bad[] = {{-1, 1},        {INT64_MAX, 8}, {INT64_C(1) << 61, 8},
               {INT64_MAX, 1}, {1, SIZE_MAX},  {INT64_C(1) << 62, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fini_arena arena = {0};
        fin_error err = {FIN_OK, ""};
        fini_take(&arena, 10, 8);
        fini_take(&arena, bad[i].count, bad[i].size);
        fini_take(&arena, 10, 8); /* a later small piece does not hide it */
        assert_int_equal(fini_arena_open(&arena, "the moon", &err), FIN_ERR_MEMORY);
        assert_non_null(strstr(err.message, "the moon"));
        fini_arena_close(&arena);
    }
    fini_arena many = {0}; /* pieces that fit one by one and overflow together */
    for (int i = 0; i < 5; i++)
        fini_take(&many, INT64_C(1) << 60, 1);
    assert_int_equal(fini_arena_open(&many, "many", NULL), FIN_ERR_MEMORY);
    fini_arena large = {0}; /* no overflow, but more than there is */
    fin_error err = {FIN_OK, ""};
    fini_take(&large, INT64_C(1) << 61, 1);
    assert_int_equal(fini_arena_open(&large, "a lake", &err), FIN_ERR_MEMORY);
    assert_non_null(strstr(err.message, "a lake"));
}

static fin_status use_arena(void *user, fin_error *err)
{
    (void)user;
    fini_arena arena = {0};
    fini_take(&arena, 100, 8);
    fin_status status = fini_arena_open(&arena, "a test", err);
    fini_arena_close(&arena);
    return status;
}

static void hooks__see_every_block(void **state)
{
    (void)state;
    assert_int_equal(fault_every(use_arena, NULL), 1);
    fault_begin(-1, 0);
    void *a = fini_alloc(100), *b = fini_alloc_array(10, 10);
    assert_int_equal(atomic_load(&fault_live), 2);
    fini_free(a);
    fini_free(b);
    assert_int_equal(atomic_load(&fault_live), 0);
    assert_int_equal(atomic_load(&fault_count), 2);
    fault_end();
    fini_free(fini_alloc(8)); /* malloc again: the counters stand still */
    assert_int_equal(atomic_load(&fault_count), 2);
}

/* An allocator that only promises 16 bytes of alignment, as malloc does. */
static unsigned char pool[4096];
static size_t pool_shift;
static void *odd_allocate(size_t size)
{
    assert_true(pool_shift + size < sizeof pool);
    return (unsigned char *)(((uintptr_t)pool + 15) & ~(uintptr_t)15) + pool_shift;
}
static void odd_release(void *block)
{
    (void)block;
}

static void hooks__any_alignment_will_do(void **state)
{
    (void)state;
    fin_memory_hooks(odd_allocate, odd_release);
    for (pool_shift = 0; pool_shift < 128; pool_shift += 16) {
        unsigned char *block = fini_alloc(200);
        unsigned char *raw =
            (unsigned char *)(((uintptr_t)pool + 15) & ~(uintptr_t)15) + pool_shift;
        assert_true(aligned(block) && block >= raw + sizeof(void *) &&
                    block + 200 <= raw + 200 + 64 + sizeof(void *));
        fini_free(block);
    }
    fin_memory_hooks(NULL, NULL);
}

static void status__has_names(void **state)
{
    (void)state;
#define CHECK_NAME(name, text) assert_string_equal(fin_status_name(name), text);
    FIN_STATUS_LIST(CHECK_NAME)
    assert_int_equal(FIN_OK, 0);
    assert_string_equal(fin_status_name((fin_status)99), "unknown status");
    assert_string_equal(fin_status_name((fin_status)-1), "unknown status");
}

static void fail__cuts_long_messages(void **state)
{
    (void)state;
    char text[2000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    fin_error err;
    assert_int_equal(fini_fail(&err, FIN_ERR_IO, "%s", text), FIN_ERR_IO);
    assert_int_equal(err.status, FIN_ERR_IO);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_int_equal(fini_fail(NULL, FIN_ERR_FORMAT, "%s", text), FIN_ERR_FORMAT);
    assert_int_equal(fini_fail_memory(NULL, 1, "x"), FIN_ERR_MEMORY);
}

static int stop_at_half(void *user, const char *what, double done, double total)
{
    assert_string_equal(what, "work");
    ++*(int *)user;
    return done > total / 2;
}

static void report__can_cancel_and_can_be_left_out(void **state)
{
    (void)state;
    int calls = 0;
    fin_progress progress = {stop_at_half, &calls};
    assert_false(fini_report(NULL, "work", 1, 1));
    assert_false(fini_report(&(fin_progress){0}, "work", 1, 1));
    assert_false(fini_report(&progress, "work", 1, 4));
    assert_true(fini_report(&progress, "work", 3, 4));
    assert_int_equal(calls, 2);
}

static void threads__come_from_call_then_environment(void **state)
{
    (void)state;
    fin_threads_set(0);
    unsetenv("FINETTI_THREADS");
    unsetenv("OMP_NUM_THREADS");
    int processors = fin_threads_get();
    assert_true(processors >= 1);
    const char *const good[] = {"1", "3", "64", "4096", "007"};
    const int value[] = {1, 3, 64, 4096, 7};
    for (int i = 0; i < 5; i++) {
        setenv("FINETTI_THREADS", good[i], 1);
        assert_int_equal(fin_threads_get(), value[i]);
    }
    const char *const bad[] = {
        "", "0", "-3", "4097", "abc", "3x", "2.5", "1e2", "99999999999999999999", "0x4"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        setenv("FINETTI_THREADS", bad[i], 1);
        assert_int_equal(fin_threads_get(), processors);
    }
    setenv("FINETTI_THREADS", "5", 1);
    fin_threads_set(3); /* the call wins */
    assert_int_equal(fin_threads_get(), 3);
    fin_threads_set(1000000);
    assert_int_equal(fin_threads_get(), 4096);
    fin_threads_set(-1);
    assert_int_equal(fin_threads_get(), 5);
    fin_threads_set(2);
    fin_threads_set(0);
    assert_int_equal(fin_threads_get(), 5);
    unsetenv("FINETTI_THREADS");
    assert_int_equal(fin_threads_get(), processors);
}

static void threads__come_from_openmp_after_that(void **state)
{
    (void)state;
    unsetenv("FINETTI_THREADS");
    unsetenv("OMP_NUM_THREADS");
    int processors = fin_threads_get();
    assert_int_equal(fini_threads_told(), 0);
    const char *const texts[] = {"6",    "4,2", "4096", "",    "0",  "-1",
                                 "4097", "x",   ",3",   "5;2", "2.5"};
    const int values[] = {6, 4, 4096, 0, 0, 0, 0, 0, 0, 0, 0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        setenv("OMP_NUM_THREADS", texts[i], 1);
        assert_int_equal(fini_threads_told(), values[i]);
        assert_int_equal(fin_threads_get(), values[i] ? values[i] : processors);
    }
    setenv("OMP_NUM_THREADS", "6", 1);
    setenv("FINETTI_THREADS", "5", 1);
    assert_int_equal(fin_threads_get(), 5);
    setenv("FINETTI_THREADS", "4,2", 1); /* no list */
    assert_int_equal(fin_threads_get(), 6);
    fin_threads_set(3);
    assert_int_equal(fin_threads_get(), 3);
    fin_threads_set(0);
    unsetenv("FINETTI_THREADS");
    unsetenv("OMP_NUM_THREADS");
}

static void version__is_that_of_the_header(void **state)
{
    (void)state;
    char want[32];
    snprintf(want, sizeof want, "%d.%d.%d", FIN_VERSION_MAJOR, FIN_VERSION_MINOR,
             FIN_VERSION_PATCH);
    assert_string_equal(fin_version(), want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alloc__is_aligned_and_whole),
        cmocka_unit_test(alloc__refuses_impossible_sizes),
        cmocka_unit_test(arena__pieces_are_apart_aligned_and_zero),
        cmocka_unit_test(arena__overflow_is_out_of_memory),
        cmocka_unit_test(hooks__see_every_block),
        cmocka_unit_test(hooks__any_alignment_will_do),
        cmocka_unit_test(status__has_names),
        cmocka_unit_test(fail__cuts_long_messages),
        cmocka_unit_test(report__can_cancel_and_can_be_left_out),
        cmocka_unit_test(threads__come_from_call_then_environment),
        cmocka_unit_test(threads__come_from_openmp_after_that),
        cmocka_unit_test(version__is_that_of_the_header),
    };
    return cmocka_run_group_tests_name("base_memory", tests, NULL, NULL);
}
