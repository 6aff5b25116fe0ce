/* The law of drawn tokens and outputs, task by task, in float and in double. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_random_stats.h"
#include "test_task_help.h"

#include <stdio.h>

enum { PIECE = 20000 };

/* Moments of a token in three orthonormal directions: k*, v* and one more. */
typedef struct token_law {
    stats_mean first[3], second[3][3], fourth[3];
} token_law;

static void add_token(token_law *t, const double c[3], const double mean[3])
{
    for (int i = 0; i < 3; i++) {
        double a = c[i] - mean[i];
        stats_add(&t->first[i], c[i]);
        for (int j = 0; j <= i; j++)
            stats_add(&t->second[i][j], a * (c[j] - mean[j]));
        stats_add(&t->fourth[i], a * a * a * a);
    }
}

static void judge_token(const char *what, const token_law *t, const double mean[3], double variance)
{
    for (int i = 0; i < 3; i++) {
        stats_z(what, stats_mean_z(&t->first[i], mean[i]));
        for (int j = 0; j <= i; j++)
            stats_z(what, stats_mean_z(&t->second[i][j], i == j ? variance : 0));
        stats_z(what, stats_mean_z(&t->fourth[i], 3 * variance * variance));
    }
}

/* slr and spiked: relevant tokens N(mu k*, gamma^2 I), others N(0, I), places uniform. */
static void check_moved(const char *kind, const fin_task_settings *s, fin_dtype dtype, int pieces)
{
    fin_task *task = help_task(kind, s, 31);
    const fin_task_settings *r = fin_task_get_settings(task);
    double *frame = malloc((size_t)(3 * s->d) * sizeof *frame);
    help_frame(task, 3, frame);
    token_law relevant = {0}, other = {0};
    stats_mean noise = {0}, noise2 = {0}, neighbours = {0}, noise_z = {0}, output2 = {0};
    int64_t m = s->m, sets = m == 1 ? s->L : s->L * (s->L - 1) / 2;
    double *count = calloc((size_t)sets, sizeof *count);
    const double at_mu[3] = {r->mu, 0, 0}, at_0[3] = {0, 0, 0};
    for (int piece = 0; piece < pieces; piece++) {
        help_batch b = help_draw(task, (uint64_t)piece * PIECE, PIECE, dtype);
        for (int64_t i = 0; i < b.n; i++) {
            const int64_t *J = b.location + i * m;
            double rest = b.y[i], before = 0;
            for (int64_t l = 0, next = 0; l < s->L; l++) {
                double c[3];
                for (int j = 0; j < 3; j++)
                    c[j] = help_dot(&b, b.offsets[i] + l, frame + j * s->d);
                int is = next < m && J[next] == l;
                next += is;
                add_token(is ? &relevant : &other, c, is ? at_mu : at_0);
                rest -= is ? c[1] : 0;
                if (l > 0)
                    stats_add(&neighbours, before * (c[2]));
                before = c[2];
            }
            stats_add(&noise, rest);
            stats_add(&noise2, rest * rest);
            stats_add(&noise_z, rest * before);
            stats_add(&output2, b.y[i] * b.y[i]);
            assert_true(J[0] >= 0 && J[m - 1] < s->L && (m == 1 || J[0] < J[1]));
            int64_t set = m == 1 ? J[0] : J[0] * (2 * s->L - J[0] - 1) / 2 + J[1] - J[0] - 1;
            count[set]++;
        }
        help_free(&b);
    }
    char name[128];
    snprintf(name, sizeof name, "%s d=%d L=%d m=%d %s", kind, (int)s->d, (int)s->L, (int)m,
             dtype == FIN_F32 ? "float" : "double");
    double n = (double)pieces * PIECE;
    stats_begin();
    judge_token("relevant token", &relevant, at_mu, r->gamma * r->gamma);
    judge_token("other token", &other, at_0, 1);
    stats_z("two tokens", stats_mean_z(&neighbours, 0));
    if (s->eps > 0) {
        stats_z("noise", stats_mean_z(&noise, 0));
        stats_z("noise variance", stats_mean_z(&noise2, s->eps * s->eps));
        stats_z("noise and tokens", stats_mean_z(&noise_z, 0));
    } else { /* y is the sum of the tokens as they are stored, in double */
        assert_true(sqrt(noise2.squares / n) < 1e-25);
    }
    stats_z("Var Y", stats_mean_z(&output2, (double)m * r->gamma * r->gamma + s->eps * s->eps));
    stats_z("location", stats_chi_square_z(sets, count, NULL, n));
    stats_end(name);
    free(count);
    free(frame);
    fin_task_destroy(task);
}

static void slr__tokens_and_output_have_their_law(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        fin_task_settings s = help_settings("slr", 5, 7);
        s.eps = 0.3;
        s.gamma = 0.6;
        s.mu = 1.5;
        check_moved("slr", &s, wide ? FIN_F64 : FIN_F32, 4);
        s = help_settings("slr", 40, 3); /* mu = auto, gamma = sqrt(1/2), eps = 0 */
        check_moved("slr", &s, wide ? FIN_F64 : FIN_F32, 1);
        s = help_settings("slr", 3, 5);
        s.m = 2;
        s.gamma = 2;
        s.eps = 1;
        check_moved("slr", &s, wide ? FIN_F64 : FIN_F32, 4);
    }
}

static void spiked__tokens_and_output_have_their_law(void **state)
{
    (void)state;
    for (int wide = 0; wide < 2; wide++) {
        fin_task_settings s = help_settings("spiked", 4, 6);
        s.snr = 2.25;
        s.eps = 0.5;
        s.m = 1 + wide;
        check_moved("spiked", &s, wide ? FIN_F64 : FIN_F32, 4);
        fin_task *task = help_task("spiked", &s, 1);
        assert_true(fin_task_get_settings(task)->mu == 1.5 &&
                    fin_task_get_settings(task)->gamma == 1);
        fin_task_destroy(task);
    }
}

/* With these settings every token has mean squared norm d, so length tells nothing. */
static void slr__paper_settings_hide_the_length(void **state)
{
    (void)state;
    fin_task_settings s = help_settings("slr", 50, 2);
    fin_task *task = help_task("slr", &s, 3);
    assert_true(fin_task_get_settings(task)->mu == 5 && fin_task_get_settings(task)->L_min == 2);
    stats_mean norm[2] = {{0}};
    help_batch b = help_draw(task, 0, 20000, FIN_F32);
    for (int64_t i = 0; i < b.n; i++)
        for (int64_t l = 0; l < 2; l++)
            stats_add(&norm[b.location[i] == l], help_norm2(&b, b.offsets[i] + l));
    stats_begin();
    stats_z("relevant", stats_mean_z(&norm[1], 50));
    stats_z("other", stats_mean_z(&norm[0], 50));
    stats_end("squared norm");
    help_free(&b);
    fin_task_destroy(task);
}

/* Directions: orthonormal to rounding, uniform on the sphere over seeds, replaceable. */
static void directions__are_orthonormal_and_uniform(void **state)
{
    (void)state;
    double worst = 0;
    stats_mean k[2] = {{0}}, kk[2] = {{0}}, v[2] = {{0}}, vv[2] = {{0}};
    for (uint64_t seed = 0; seed < 5000; seed++) {
        fin_task_settings s = help_settings("slr", seed % 2 ? 2 : 3, 2);
        fin_task *task = help_task("slr", &s, seed);
        const double *a = fin_task_k_star(task), *b = fin_task_v_star(task);
        double aa = 0, bb = 0, ab = 0;
        for (int64_t c = 0; c < s.d; c++) {
            aa += a[c] * a[c];
            bb += b[c] * b[c];
            ab += a[c] * b[c];
        }
        worst = fmax(worst, fmax(fabs(aa - 1), fmax(fabs(bb - 1), fabs(ab))));
        stats_add(&k[seed % 2], a[0]);
        stats_add(&kk[seed % 2], a[0] * a[0]);
        stats_add(&v[seed % 2], b[0]);
        stats_add(&vv[seed % 2], b[0] * b[0]);
        fin_task_destroy(task);
    }
    stats_begin();
    for (int i = 0; i < 2; i++) {
        stats_z("k*", stats_mean_z(&k[i], 0));
        stats_z("k* square", stats_mean_z(&kk[i], i ? 0.5 : 1.0 / 3));
        stats_z("v*", stats_mean_z(&v[i], 0));
        stats_z("v* square", stats_mean_z(&vv[i], i ? 0.5 : 1.0 / 3));
    }
    stats_end("directions");
    print_message("worst deviation from orthonormal %.2g\n", worst);
    assert_true(worst < 2e-15);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slr__tokens_and_output_have_their_law),
        cmocka_unit_test(spiked__tokens_and_output_have_their_law),
        cmocka_unit_test(slr__paper_settings_hide_the_length),
        cmocka_unit_test(directions__are_orthonormal_and_uniform),
    };
    return cmocka_run_group_tests_name("task_law", tests, NULL, NULL);
}
