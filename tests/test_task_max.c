/* The task max: relevance is drawn by softmax(snr X.k*), without replacement when m > 1, by the
 * argmax at snr = inf. Drawn tokens and drawn projections both. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_random_stats.h"
#include "test_task_help.h"

#include <stdio.h>

enum { N = 60000 };

/* Samples of scores X.k*, values X.v*, outputs and locations, from fin_task_draw or _project. */
typedef struct scored {
    int64_t *offsets, *location;
    double *chi, *z, *y;
} scored;

static scored draw_scored(const fin_task *task, int64_t n, int how)
{
    int64_t m = fin_task_get_settings(task)->m;
    scored s;
    if (how < 2) {
        help_batch b = help_draw(task, 0, n, how ? FIN_F64 : FIN_F32);
        s = (scored){b.offsets, b.location, NULL, NULL, b.y};
        s.chi = malloc((size_t)b.offsets[n] * sizeof *s.chi);
        s.z = malloc((size_t)b.offsets[n] * sizeof *s.z);
        for (int64_t row = 0; row < b.offsets[n]; row++) {
            s.chi[row] = help_dot(&b, row, fin_task_k_star(task));
            s.z[row] = help_dot(&b, row, fin_task_v_star(task));
        }
        free(b.tokens);
        return s;
    }
    s.offsets = malloc((size_t)(n + 1) * sizeof *s.offsets);
    fin_task_offsets(task, 0, n, s.offsets, NULL);
    s.location = malloc((size_t)(n * m) * sizeof *s.location);
    s.chi = malloc((size_t)s.offsets[n] * sizeof *s.chi);
    s.z = malloc((size_t)s.offsets[n] * sizeof *s.z);
    s.y = malloc((size_t)n * sizeof *s.y);
    const fin_overlaps same = {1, 1, 0, 0, 0};
    fin_projections out = {.chi_star = s.chi, .z_star = s.z};
    assert_int_equal(fin_task_project(task, &same, 0, n, s.offsets, &out, s.y, s.location, NULL),
                     FIN_OK);
    return s;
}

static void free_scored(scored *s)
{
    free(s->offsets);
    free(s->location);
    free(s->chi);
    free(s->z);
    free(s->y);
}

static const char *const how_name[] = {"draw float", "draw double", "project"};

static void probabilities(int64_t L, const double *chi, double snr, double *p)
{
    double top = -INFINITY, total = 0;
    for (int64_t l = 0; l < L; l++)
        top = fmax(top, chi[l]);
    for (int64_t l = 0; l < L; l++)
        total += p[l] = exp(snr * (chi[l] - top));
    for (int64_t l = 0; l < L; l++)
        p[l] /= total;
}

/* Events with known probabilities, binned by the probability: hits - expected over its spread. */
enum { BINS = 20 };
typedef struct calibration {
    double hits[BINS], expected[BINS], variance[BINS];
} calibration;

static void calibrate(calibration *c, double p, int hit)
{
    int bin = (int)(p * BINS);
    bin = bin < BINS ? bin : BINS - 1;
    c->hits[bin] += hit;
    c->expected[bin] += p;
    c->variance[bin] += p * (1 - p);
}

static void judge_calibration(const calibration *c)
{
    int used = 0;
    for (int b = 0; b < BINS; b++)
        if (c->variance[b] > 20) {
            stats_z("bin", (c->hits[b] - c->expected[b]) / sqrt(c->variance[b]));
            used++;
        }
    assert_true(used >= 10);
}

static void max__location_has_softmax_frequencies(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        fin_task_settings s = help_settings("max", 3, 5);
        s.L_min = 2;
        s.snr = 1.7;
        s.eps = 0.25;
        fin_task *task = help_task("max", &s, 41);
        scored q = draw_scored(task, N, how);
        calibration c = {0};
        stats_mean noise = {0}, noise2 = {0}, chi = {0}, chi2 = {0}, z2 = {0};
        for (int64_t i = 0; i < N; i++) {
            double p[8];
            int64_t at = q.offsets[i], L = q.offsets[i + 1] - at;
            probabilities(L, q.chi + at, s.snr, p);
            for (int64_t l = 0; l < L; l++) {
                calibrate(&c, p[l], q.location[i] == l);
                stats_add(&chi, q.chi[at + l]);
                stats_add(&chi2, q.chi[at + l] * q.chi[at + l]);
                stats_add(&z2, q.z[at + l] * q.z[at + l]);
            }
            double rest = q.y[i] - q.z[at + q.location[i]];
            stats_add(&noise, rest);
            stats_add(&noise2, rest * rest);
        }
        stats_begin();
        judge_calibration(&c);
        stats_z("noise", stats_mean_z(&noise, 0));
        stats_z("noise variance", stats_mean_z(&noise2, s.eps * s.eps));
        stats_z("scores", stats_mean_z(&chi, 0)); /* all tokens together are N(0, I) */
        stats_z("scores' variance", stats_mean_z(&chi2, 1));
        stats_z("values' variance", stats_mean_z(&z2, 1));
        stats_end(how_name[how]);
        free_scored(&q);
        fin_task_destroy(task);
    }
}

/* m = 2 of L = 3: P{i, j} = p_i p_j / (1 - p_i) + p_j p_i / (1 - p_j) (Plackett and Luce). */
static void max__two_of_three_without_replacement(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        fin_task_settings s = help_settings("max", 2, 3);
        s.snr = 1.2;
        s.m = 2;
        fin_task *task = help_task("max", &s, 42);
        scored q = draw_scored(task, N, how);
        calibration c = {0};
        for (int64_t i = 0; i < N; i++) {
            double p[3];
            probabilities(3, q.chi + 3 * i, s.snr, p);
            const int64_t *J = q.location + 2 * i;
            assert_true(0 <= J[0] && J[0] < J[1] && J[1] < 3);
            for (int a = 0; a < 3; a++)
                for (int b = a + 1; b < 3; b++)
                    calibrate(&c, p[a] * p[b] / (1 - p[a]) + p[a] * p[b] / (1 - p[b]),
                              J[0] == a && J[1] == b);
            assert_true(fabs(q.y[i] - q.z[3 * i + J[0]] - q.z[3 * i + J[1]]) < 1e-14);
        }
        stats_begin();
        judge_calibration(&c);
        stats_end(how_name[how]);
        free_scored(&q);
        fin_task_destroy(task);
    }
}

static void max__infinite_snr_takes_the_largest(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++)
        for (int64_t m = 1; m <= 5; m += 2) {
            enum { FEW = 3000, L = 9 };
            fin_task_settings s = help_settings("max", 4, L);
            s.snr = INFINITY;
            s.m = m;
            fin_task *task = help_task("max", &s, 43);
            scored q = draw_scored(task, FEW, how);
            for (int64_t i = 0; i < FEW; i++) {
                const double *chi = q.chi + L * i;
                const int64_t *J = q.location + m * i;
                double lowest = INFINITY, y = 0;
                for (int64_t j = 0; j < m; j++) {
                    assert_true(J[j] >= 0 && J[j] < L && (j == 0 || J[j - 1] < J[j]));
                    lowest = fmin(lowest, chi[J[j]]);
                    y += q.z[L * i + J[j]];
                }
                int64_t above = 0;
                for (int64_t l = 0; l < L; l++)
                    above += chi[l] > lowest;
                assert_int_equal(above, m - 1); /* J are the m largest */
                assert_true(fabs(q.y[i] - y) < 1e-13);
            }
            free_scored(&q);
            fin_task_destroy(task);
        }
}

/* snr = 0 is a uniform choice, independent of the tokens; m = L takes all. */
static void max__limits_of_snr_and_m(void **state)
{
    (void)state;
    fin_task_settings s = help_settings("max", 2, 6);
    s.snr = 0;
    fin_task *task = help_task("max", &s, 44);
    scored q = draw_scored(task, N, 2);
    double count[6] = {0};
    stats_mean chi = {0};
    for (int64_t i = 0; i < N; i++) {
        count[q.location[i]]++;
        stats_add(&chi, q.chi[6 * i + q.location[i]]);
    }
    stats_begin();
    stats_z("location", stats_chi_square_z(6, count, NULL, N));
    stats_z("its score", stats_mean_z(&chi, 0));
    stats_end("snr = 0");
    free_scored(&q);
    fin_task_destroy(task);
    for (int kind = 0; kind < fin_task_count(); kind++) {
        s = help_settings(fin_task_kind_name(fin_task_at(kind)), 2, 6);
        s.m = 6;
        task = help_task(fin_task_kind_name(fin_task_at(kind)), &s, 45);
        q = draw_scored(task, 100, kind % 3);
        for (int64_t i = 0; i < 100; i++)
            for (int64_t j = 0; j < 6; j++)
                assert_int_equal(q.location[6 * i + j], j);
        free_scored(&q);
        fin_task_destroy(task);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max__location_has_softmax_frequencies),
        cmocka_unit_test(max__two_of_three_without_replacement),
        cmocka_unit_test(max__infinite_snr_takes_the_largest),
        cmocka_unit_test(max__limits_of_snr_and_m),
    };
    return cmocka_run_group_tests_name("task_max", tests, NULL, NULL);
}
