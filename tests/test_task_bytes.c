/* A sample is a function of (seed, number): the same bytes for any cut, any threads, any asking. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/kernel.h"
#include "kernel/kernel.h"
#include "test_task_help.h"

#include <stdio.h>

/* Large enough that threads are really used: 50000 normals, four a token when projecting. */
enum { N = 1500, D = 9, MOST_TOKENS = 70000, ENOUGH = 50000 };

typedef struct everything {
    int64_t offsets[N + 1];
    float f32[MOST_TOKENS * D];
    double f64[MOST_TOKENS * D];
    double y[3][N]; /* of draw f32, draw f64, project */
    int64_t location[3][N * 4];
    double projected[5][MOST_TOKENS];
    double posterior[MOST_TOKENS], prediction[N]; /* if m = 1 */
} everything;

static everything want, got;
static const uint64_t beginning = (UINT64_C(1) << 32) - 20; /* the number crosses 2^32 */

static const fin_overlaps overlaps = {0.6, 0.5, 0.1, -0.3, 0.2};

/* Samples from .. to-1, written where they belong in `e`. */
static void draw_piece(const fin_task *task, int64_t from, int64_t to, everything *e)
{
    int64_t m = fin_task_get_settings(task)->m, n = to - from, at = e->offsets[from];
    uint64_t first = beginning + (uint64_t)from;
    const int64_t *offsets = e->offsets + from;
    assert_int_equal(fin_task_draw(task, first, n, FIN_F32, offsets, e->f32 + at * D,
                                   e->y[0] + from, e->location[0] + from * m, NULL),
                     FIN_OK);
    assert_int_equal(fin_task_draw(task, first, n, FIN_F64, offsets, e->f64 + at * D,
                                   e->y[1] + from, e->location[1] + from * m, NULL),
                     FIN_OK);
    fin_projections out = {e->projected[0] + at, e->projected[1] + at, e->projected[2] + at,
                           e->projected[3] + at, e->projected[4] + at};
    assert_int_equal(fin_task_project(task, &overlaps, first, n, offsets, &out, e->y[2] + from,
                                      e->location[2] + from * m, NULL),
                     FIN_OK);
    if (m == 1) {
        fin_batch batch = {n, D, FIN_F64, e->f64 + at * D, offsets};
        assert_int_equal(fin_task_posterior(task, &batch, e->posterior + at, NULL), FIN_OK);
        assert_int_equal(fin_task_predict(task, &batch, e->prediction + from, NULL), FIN_OK);
    }
}

static void compare(const char *what)
{
    if (memcmp(&want, &got, sizeof want) != 0)
        fail_msg("%s: other bytes", what);
}

static void check_task(const fin_task *task)
{
    static const int threads[] = {2, 3, 8};
    memset(&want, 0, sizeof want);
    fin_threads_set(1);
    assert_int_equal(fin_task_offsets(task, beginning, N, want.offsets, NULL), FIN_OK);
    assert_true(want.offsets[N] <= MOST_TOKENS && 4 * want.offsets[N] >= ENOUGH);
    draw_piece(task, 0, N, &want);
    for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        fin_threads_set(threads[t]);
        memset(&got, 0, sizeof got);
        fin_task_offsets(task, beginning, N, got.offsets, NULL);
        draw_piece(task, 0, N, &got);
        compare("threads");
    }
    const int64_t steps[] = {1, 7, 640};
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        memset(&got, 0, sizeof got);
        for (int64_t from = 0; from < N; from += steps[s]) {
            static int64_t piece[N + 1];
            int64_t to = from + steps[s] < N ? from + steps[s] : N;
            assert_int_equal(
                fin_task_offsets(task, beginning + (uint64_t)from, to - from, piece, NULL), FIN_OK);
            for (int64_t i = 0; i <= to - from; i++)
                got.offsets[from + i] = got.offsets[from] + piece[i];
            draw_piece(task, from, to, &got);
        }
        compare("pieces");
    }
    fin_threads_set(0);
}

static void draw__same_bytes_for_any_split_and_threads(void **state)
{
    (void)state;
    const int64_t given[] = {3, 150, 64, 65};
    const double weight[] = {5, 1, 2, 0.5};
    const fin_lengths lengths = {4, given, weight};
    int cases = 0;
    for (int kind = 0; kind < fin_task_count() + 1; kind++)
        for (int law = 0; law < 3; law++, cases++) {
            /* the last kind is max at snr = inf */
            const fin_task_kind *k =
                fin_task_at(kind < fin_task_count() ? kind : fin_task_count() - 1);
            fin_task_settings s = help_settings(fin_task_kind_name(k), D, law ? 17 : 12);
            s.m = law == 0 ? 1 : law == 1 ? 2 : 3;
            s.eps = 0.3;
            if (law == 1)
                s.L_min = 2;
            if (kind == fin_task_count())
                s.snr = INFINITY;
            fin_task *task;
            assert_int_equal(fin_task_create(&task, k, &s, law == 2 ? &lengths : NULL, 5,
                                             FIN_TASK_AMBIENT, NULL),
                             FIN_OK);
            check_task(task);
            fin_task_destroy(task);
        }
    print_message("%d tasks, threads 1, 2, 3, 8, pieces of 1, 7, 640\n", cases);
}

/* Leaving out an output changes no other. */
static void draw__outputs_do_not_depend_on_what_is_asked(void **state)
{
    (void)state;
    for (int kind = 0; kind < fin_task_count(); kind++) {
        fin_task_settings s = help_settings(fin_task_kind_name(fin_task_at(kind)), D, 20);
        fin_task *task = help_task(fin_task_kind_name(fin_task_at(kind)), &s, 6);
        memset(&want, 0, sizeof want);
        fin_task_offsets(task, beginning, N, want.offsets, NULL);
        draw_piece(task, 0, N, &want);
        memcpy(&got, &want, sizeof want);
        memset(got.f32, 0, sizeof got.f32);
        assert_int_equal(
            fin_task_draw(task, beginning, N, FIN_F32, want.offsets, got.f32, NULL, NULL, NULL),
            FIN_OK);
        compare("draw without y and location");
        for (int skip = 0; skip < 6; skip++) {
            memset(got.projected, 0, sizeof got.projected);
            double *p[5];
            for (int j = 0; j < 5; j++)
                p[j] = skip == 5 || skip == j ? NULL : got.projected[j];
            fin_projections out = {p[0], p[1], p[2], p[3], p[4]};
            assert_int_equal(fin_task_project(task, &overlaps, beginning, N, want.offsets, &out,
                                              skip % 2 ? got.y[2] : NULL,
                                              skip == 3 ? got.location[2] : NULL, NULL),
                             FIN_OK);
            for (int j = 0; j < 5; j++)
                if (!p[j])
                    memcpy(got.projected[j], want.projected[j], sizeof got.projected[j]);
            compare("project with something left out");
        }
        fin_task_destroy(task);
    }
}

/* Draws (not only normals) are the same bytes in every kernel: rotation to k* and projection too.
 */
static void draw__same_bytes_in_every_kernel(void **state)
{
    (void)state;
    for (int kind = 0; kind < fin_task_count(); kind++) {
        fin_task_settings s = help_settings(fin_task_kind_name(fin_task_at(kind)), D, 20);
        fin_task *task = help_task(fin_task_kind_name(fin_task_at(kind)), &s, 6);
        char names[64], *rest = names;
        snprintf(names, sizeof names, "%s", fin_kernel_available());
        for (char *name, *other = NULL; (name = strtok_r(rest, " ", &rest)); other = name) {
            assert_true(fini_kernel_force(name));
            memset(other ? &got : &want, 0, sizeof want);
            fin_task_offsets(task, beginning, N, (other ? &got : &want)->offsets, NULL);
            draw_piece(task, 0, N, other ? &got : &want);
            memset((other ? &got : &want)->posterior, 0, sizeof want.posterior); /* uses exp */
            if (other)
                compare(name);
        }
        fini_kernel_force(NULL);
        fin_task_destroy(task);
    }
}

static void draw__seed_and_number_matter(void **state)
{
    (void)state;
    fin_task_settings s = help_settings("slr", 8, 4);
    fin_task *a = help_task("slr", &s, 1), *b = help_task("slr", &s, 2),
             *again = help_task("slr", &s, 1);
    help_batch x = help_draw(a, 0, 5, FIN_F64), y = help_draw(b, 0, 5, FIN_F64),
               z = help_draw(a, 1, 4, FIN_F64), w = help_draw(again, 0, 5, FIN_F64),
               last = help_draw(a, UINT64_MAX - 1, 2, FIN_F64);
    assert_memory_not_equal(x.tokens, y.tokens, 5 * 4 * 8 * 8);
    assert_memory_equal((double *)x.tokens + 32, z.tokens, 4 * 4 * 8 * 8);
    assert_memory_not_equal(x.tokens, z.tokens, 4 * 8 * 8);
    assert_memory_equal(x.tokens, w.tokens, 5 * 4 * 8 * 8);
    assert_true(isfinite(last.y[0]) && isfinite(last.y[1]) && last.y[0] != last.y[1]);
    assert_memory_not_equal(fin_task_k_star(a), fin_task_k_star(b), 8 * 8);
    help_batch none = help_draw(a, 0, 0, FIN_F32); /* nothing is fine too */
    help_batch *all[] = {&x, &y, &z, &w, &last, &none};
    for (int i = 0; i < 6; i++)
        help_free(all[i]);
    fin_task_destroy(a);
    fin_task_destroy(b);
    fin_task_destroy(again);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draw__same_bytes_for_any_split_and_threads),
        cmocka_unit_test(draw__outputs_do_not_depend_on_what_is_asked),
        cmocka_unit_test(draw__same_bytes_in_every_kernel),
        cmocka_unit_test(draw__seed_and_number_matter),
    };
    return cmocka_run_group_tests_name("task_bytes", tests, NULL, NULL);
}
