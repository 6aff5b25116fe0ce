/* Sequences of varying length, overlaps that can and cannot be, and any dimension. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_random_stats.h"
#include "test_task_help.h"
#include "task/task.h"

#include <stdio.h>

static fin_task *create(const char *kind, const fin_task_settings *s, const fin_lengths *lengths)
{
    fin_task *task;
    fin_error err = {FIN_OK, ""};
    if (fin_task_create(&task, fin_task_find(kind), s, lengths, 71, 0, &err))
        fail_msg("%s", err.message);
    return task;
}

/* Frequencies of the lengths of n samples, cells by value; mean and variance of the getters. */
static void check_lengths(const fin_task *task, int64_t n, int64_t cells, const int64_t *L,
                          const double *p)
{
    int64_t *offsets = malloc((size_t)(n + 1) * sizeof *offsets);
    double *count = calloc((size_t)cells, sizeof *count), mean = 0, variance = 0;
    assert_int_equal(fin_task_offsets(task, 0, n, offsets, NULL), FIN_OK);
    assert_int_equal(offsets[0], 0);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0, length = offsets[i + 1] - offsets[i];
        while (at < cells && L[at] != length)
            at++;
        assert_true(at < cells);
        count[at]++;
    }
    for (int64_t i = 0; i < cells; i++)
        mean += p[i] * (double)L[i];
    for (int64_t i = 0; i < cells; i++)
        variance += p[i] * ((double)L[i] - mean) * ((double)L[i] - mean);
    stats_z("lengths", stats_chi_square_z(cells, count, p, (double)n));
    assert_true(fabs(fin_task_length_mean(task) - mean) < 1e-12 * mean);
    assert_true(fabs(fin_task_length_variance(task) - variance) < 1e-12 * variance);
    free(offsets);
    free(count);
}

static void lengths__follow_their_law(void **state)
{
    (void)state;
    int64_t L[30];
    double p[30];
    stats_begin();
    fin_task_settings s = help_settings("slr", 5, 33);
    s.L_min = 4;
    for (int i = 0; i < 30; i++) {
        L[i] = 4 + i;
        p[i] = 1.0 / 30;
    }
    fin_task *task = create("slr", &s, NULL);
    check_lengths(task, 100000, 30, L, p);
    assert_int_equal(fin_task_longest(task), 33);
    fin_task_destroy(task);

    const int64_t given[] = {7, 2, 1000, 3, 64};
    const double weight[] = {1e-3, 4e-3, 2e-3, 5e-4, 2.5e-3}, share[] = {0.1, 0.4, 0.2, 0.05, 0.25};
    const fin_lengths lengths = {5, given, weight};
    task = create("max", NULL, &lengths);
    check_lengths(task, 400000, 5, given, share);
    assert_int_equal(fin_task_longest(task), 1000);
    fin_task_destroy(task);
    stats_end("lengths");
}

static void lengths__fixed_or_alone_never_vary(void **state)
{
    (void)state;
    const int64_t one = 12, twice[] = {5, 5};
    const double weight[] = {3, 4};
    const fin_lengths laws[] = {{1, &one, weight}, {2, twice, weight}};
    for (int i = 0; i < 3; i++) {
        fin_task *task = create("slr", NULL, i < 2 ? &laws[i] : NULL);
        int64_t offsets[101], L = i == 0 ? 12 : i == 1 ? 5 : 10;
        fin_task_offsets(task, UINT64_MAX - 50, 100, offsets, NULL);
        for (int j = 0; j <= 100; j++)
            assert_int_equal(offsets[j], j * L);
        assert_true(fin_task_length_mean(task) == (double)L && fin_task_length_variance(task) == 0);
        fin_task_destroy(task);
    }
    /* the longest and the widest uniform law there is */
    fin_task_settings s = help_settings("slr", 5, FIN_L_MAX);
    s.L_min = 1;
    fin_task *task = create("slr", &s, NULL);
    int64_t offsets[1001];
    stats_mean mean = {0};
    fin_task_offsets(task, 0, 1000, offsets, NULL);
    for (int j = 0; j < 1000; j++)
        stats_add(&mean, (double)(offsets[j + 1] - offsets[j]));
    stats_begin();
    stats_z("mean length", stats_mean_z(&mean, fin_task_length_mean(task)));
    stats_end("up to 2^31 tokens");
    fin_task_destroy(task);
}

/* 10^12 and 2^50 dimensions cost what 10 do, and have the right law. */
static void project__works_in_any_dimension(void **state)
{
    (void)state;
    enum { N = 5000, L = 4 };
    static double chi[N * L], norm2[N * L], y[N];
    static int64_t offsets[N + 1], location[N];
    const int64_t dims[] = {1000000000000, FIN_D_MAX};
    const fin_overlaps o = {0.5, 0.4, 0.1, 0.2, -0.3};
    for (int i = 0; i < 2; i++) {
        fin_task_settings s = help_settings("slr", dims[i], L);
        fin_task *task = create("slr", &s, NULL);
        double d = (double)dims[i], mu = sqrt(d / 2), g2 = 0.5;
        assert_true(fabs(fin_task_get_settings(task)->mu / mu - 1) < 1e-15);
        assert_null(fin_task_k_star(task));
        fin_task_offsets(task, 0, N, offsets, NULL);
        fin_projections out = {.chi = chi, .norm2 = norm2};
        assert_int_equal(fin_task_project(task, &o, 0, N, offsets, &out, y, location, NULL),
                         FIN_OK);
        stats_mean relevant[4] = {{0}}, other[4] = {{0}};
        for (int64_t t = 0; t < N * L; t++) {
            int is = location[t / L] == t % L;
            stats_mean *to = is ? relevant : other;
            double a = chi[t] - (is ? mu * o.kappa : 0), n = (norm2[t] - d) / sqrt(d);
            stats_add(&to[0], a);
            stats_add(&to[1], a * a);
            stats_add(&to[2], n);
            stats_add(&to[3], n * n);
        }
        stats_begin();
        stats_z("chi", stats_mean_z(&relevant[0], 0));
        stats_z("chi^2", stats_mean_z(&relevant[1], g2));
        stats_z("|X|^2", stats_mean_z(&relevant[2], 0));
        stats_z("Var |X|^2", stats_mean_z(&relevant[3], 2 * g2 * g2 + 4 * g2 / 2));
        stats_z("chi of others", stats_mean_z(&other[0], 0));
        stats_z("chi^2 of others", stats_mean_z(&other[1], 1));
        stats_z("|X|^2 of others", stats_mean_z(&other[2], 0));
        stats_z("Var |X|^2 of others", stats_mean_z(&other[3], 2));
        char name[64];
        snprintf(name, sizeof name, "d = %g", d);
        stats_end(name);
        fin_task_destroy(task);
    }
}

/* Overlaps of real unit vectors are accepted, also on the edge of what is possible. */
static void overlaps__of_vectors_are_realisable(void **state)
{
    (void)state;
    fin_random r;
    fin_random_open(&r, 72, 3000, 0);
    for (int i = 0; i < 20000; i++) {
        int room = 2 + i % 3; /* in the plane, in three dimensions, in four */
        double k[4] = {0}, v[4] = {0}, nk = 0, nv = 0, rho = 0;
        fin_random_sphere(&r, room, k);
        fin_random_sphere(&r, room, v);
        if (i % 5 == 0) /* close to k*, v*: where training ends */
            for (int j = 0; j < room; j++) {
                k[j] = (j == 0) + k[j] * pow(10, -(double)(i % 11));
                v[j] = (j == 1) + v[j] * pow(10, -(double)(i % 7));
                nk += k[j] * k[j];
                nv += v[j] * v[j];
            }
        else
            nk = nv = 1;
        for (int j = 0; j < room; j++)
            rho += (k[j] /= sqrt(nk)) * (v[j] /= sqrt(nv));
        fin_overlaps o = {fmin(fmax(k[0], -1), 1), fmin(fmax(v[1], -1), 1), v[0], k[1],
                          fmin(fmax(rho, -1), 1)};
        fin_error err = {FIN_OK, ""};
        if (fini_overlaps_realisable(&o, FIN_D_MAX, &err))
            fail_msg("case %d: %s", i, err.message);
        fin_task_settings s = help_settings("slr", room, 2);
        if (i < 3000) {
            fin_task *task = create("slr", &s, NULL);
            int64_t offsets[2] = {0, 2};
            double chi[2];
            if (fin_task_project(task, &o, 0, 1, offsets, &(fin_projections){.chi = chi}, NULL,
                                 NULL, &err))
                fail_msg("d = %d: %s", room, err.message);
            fin_task_destroy(task);
        }
    }
}

static void overlaps__that_cannot_be_are_refused(void **state)
{
    (void)state;
    const fin_overlaps bad[] = {
        {1.1, 0, 0, 0, 0},   {0, -1.1, 0, 0, 0},    {0, 0, NAN, 0, 0},   {0, 0, 0, INFINITY, 0},
        {1, 0, 0, 0.1, 0},   {0.8, 0, 0, 0.7, 0},   {0, 0.9, 0.9, 0, 0}, {1, 0, 0, 0, 0.5},
        {1, 0, 0.5, 0, 0.4}, {0.9, 0.9, 0, 0, 0.9}, {0, 0, 0, 0, 1.01},  {0.6, 0.6, 0.1, 0.1, 1},
        {1, 1, 0, 0, 0.01},  {0, 1, 0, 1, 0.9},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fin_error err = {FIN_OK, ""};
        if (fini_overlaps_realisable(&bad[i], FIN_D_MAX, &err) != FIN_ERR_ARGUMENT ||
            !err.message[0])
            fail_msg("case %d was accepted", (int)i);
        assert_int_equal(fini_overlaps_realisable(&bad[i], FIN_D_MAX, NULL), FIN_ERR_ARGUMENT);
    }
    /* realisable, but not in so few dimensions */
    const struct {
        fin_overlaps o;
        int64_t needs;
    } tight[] = {{{1, 1, 0, 0, 0}, 2},   {{0.6, 0, 0, 0.5, 0}, 4},       {{1, 0.5, 0, 0, 0}, 3},
                 {{0.5, 1, 0, 0, 0}, 3}, {{0, 0, 0, 0, 1}, 3},           {{0, 0, 0, 0, 0}, 4},
                 {{-1, -1, 0, 0, 0}, 2}, {{0.6, 0.6, 0.8, 0.8, 0.96}, 2}};
    for (size_t i = 0; i < sizeof tight / sizeof *tight; i++)
        for (int64_t d = 2; d <= 5; d++) {
            fin_task_settings s = help_settings("slr", d, 2);
            fin_task *task = create("slr", &s, NULL);
            int64_t offsets[2] = {0, 2};
            fin_error err = {FIN_OK, ""};
            fin_status status = fin_task_project(task, &tight[i].o, 0, 1, offsets,
                                                 &(fin_projections){0}, NULL, NULL, &err);
            if (status != (d < tight[i].needs ? FIN_ERR_ARGUMENT : FIN_OK))
                fail_msg("case %d at d = %d: %s", (int)i, (int)d, err.message);
            fin_task_destroy(task);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths__follow_their_law),
        cmocka_unit_test(lengths__fixed_or_alone_never_vary),
        cmocka_unit_test(project__works_in_any_dimension),
        cmocka_unit_test(overlaps__of_vectors_are_realisable),
        cmocka_unit_test(overlaps__that_cannot_be_are_refused),
    };
    return cmocka_run_group_tests_name("task_lengths", tests, NULL, NULL);
}
