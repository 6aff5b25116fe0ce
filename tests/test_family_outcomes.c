/* Posteriors of the families with finitely many latents or outcomes: brute force in long double,
 * and known answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_family_help.h"

static long double dot(int64_t n, const double *a, const double *b)
{
    long double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (long double)a[i] * b[i];
    return sum;
}

/* ---- finitely many latents ------------------------------------------------------------------- */

/* Products of probabilities over all tokens, in long double, are the posterior and the prediction.
 * */
static void concepts__equal_brute_force(void **state)
{
    (void)state;
    enum { Z = 6, C = 3, R = 4, L = 40, Q = 3, N = 200 };
    fin_latent_settings s = help_defaults("concepts");
    s.concepts = Z;
    s.covariates = C;
    s.outcomes = R;
    fin_latent *latent = help_latent("concepts", &s, 37);
    /* Tables are what truth shows for each z and c. */
    double P[Z][C][R] = {{{0}}};
    help_sequences b = help_draw(latent, 0, N, L, Q);
    for (int i = 0; i < N * Q; i++)
        memcpy(P[(int)b.z[i / Q]][(int)b.queries[i]], b.truth + i * R, sizeof P[0][0]);
    double worst = 0;
    for (int i = 0; i < 50; i++) {
        const double *c = b.keys + i * L, *r = b.values + i * L;
        int64_t length = i % L; /* short ones too, where several z are left */
        long double w[Z], total = 0;
        for (int z = 0; z < Z; z++) {
            w[z] = 1;
            for (int64_t l = 0; l < length; l++)
                w[z] *= P[z][(int)c[l]][(int)r[l]];
            total += w[z];
        }
        double statistic[C * R] = {0}, posterior[Z], want[Z], mean[Q * R], expected[Q * R];
        assert_int_equal(fin_latent_accumulate(latent, length, c, r, statistic, NULL), FIN_OK);
        assert_int_equal(fin_latent_posterior(latent, statistic, posterior, NULL), FIN_OK);
        assert_int_equal(
            fin_latent_predict(latent, statistic, Q, b.queries + i * Q, mean, NULL, NULL), FIN_OK);
        for (int z = 0; z < Z; z++)
            want[z] = (double)(w[z] / total);
        for (int q = 0; q < Q; q++)
            for (int o = 0; o < R; o++) {
                long double sum = 0;
                for (int z = 0; z < Z; z++)
                    sum += w[z] / total * P[z][(int)b.queries[i * Q + q]][o];
                expected[q * R + o] = (double)sum;
            }
        worst = fmax(worst, help_gap(Z, posterior, want));
        worst = fmax(worst, help_gap(Q * R, mean, expected));
    }
    print_message("concept memory against brute force: %.1e\n", worst);
    assert_true(worst < 1e-14);
    help_free(&b);
    fin_latent_destroy(latent);
}

/* With tiny alpha, tables have zeros: a concept can be ruled out, and all of them at once. */
static void concepts__know_zero_probabilities(void **state)
{
    (void)state;
    fin_latent_settings s = help_defaults("concepts");
    s.concepts = 3;
    s.covariates = 1;
    s.outcomes = 40;
    s.alpha = 1e-5;
    fin_latent *latent = help_latent("concepts", &s, 38);
    help_sequences b = help_draw(latent, 0, 1, 5, 1);
    double statistic[40] = {0}, posterior[3], other[40];
    fin_error err;
    assert_int_equal(fin_latent_accumulate(latent, 5, b.keys, b.values, statistic, NULL), FIN_OK);
    assert_int_equal(fin_latent_posterior(latent, statistic, posterior, NULL), FIN_OK);
    assert_true(posterior[(int)b.z[0]] == 1);
    for (int r = 0; r < 40; r++)
        other[r] = 1;
    assert_int_equal(fin_latent_posterior(latent, other, posterior, &err), FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "alpha"));
    help_free(&b);
    fin_latent_destroy(latent);
}

static void finite__equals_brute_force(void **state)
{
    (void)state;
    enum { Z = 5, L = 6, Q = 2, N = 100 };
    fin_latent_settings s = help_defaults("finite");
    s.concepts = Z;
    s.d = 2;
    s.dv = 2;
    s.noise = 2;
    fin_latent *latent = help_latent("finite", &s, 39);
    help_sequences b = help_draw(latent, 0, N, L, Q);
    double M[Z][4], worst = 0;
    for (int i = 0; i < N; i++) { /* truth of two queries gives the matrix */
        const double *q = b.queries + 4 * i, *t = b.truth + 4 * i;
        double det = q[0] * q[3] - q[1] * q[2], *m = M[(int)b.z[i]];
        for (int r = 0; r < 2 && fabs(det) > 0.3; r++) {
            m[2 * r] = (t[r] * q[3] - t[2 + r] * q[1]) / det;
            m[2 * r + 1] = (t[2 + r] * q[0] - t[r] * q[2]) / det;
        }
    }
    for (int i = 0; i < 20; i++) {
        const double *k = b.keys + i * L * 2, *v = b.values + i * L * 2, *q = b.queries + i * Q * 2;
        long double w[Z], total = 0;
        for (int z = 0; z < Z; z++) {
            long double square = 0;
            for (int l = 0; l < L; l++)
                for (int r = 0; r < 2; r++) {
                    long double gap = v[2 * l + r] - dot(2, M[z] + 2 * r, k + 2 * l);
                    square += gap * gap;
                }
            total += w[z] = expl(-square / (2 * s.noise));
        }
        double mean[4], variance[2], want[4] = {0}, left = 0;
        assert_int_equal(fin_latent_predict_tokens(latent, L, k, v, Q, q, mean, variance, NULL), 0);
        for (int j = 0; j < 4; j++)
            for (int z = 0; z < Z; z++)
                want[j] += (double)(w[z] / total * dot(2, M[z] + 2 * (j % 2), q + 2 * (j / 2)));
        for (int z = 0; z < Z; z++)
            for (int r = 0; r < 2; r++) {
                double gap = (double)dot(2, M[z] + 2 * r, q) - want[r];
                left += (double)(w[z] / total) * gap * gap / 2;
            }
        worst = fmax(worst, fmax(help_gap(4, mean, want), help_gap(1, variance, &left)));
    }
    print_message("finite set against brute force: %.1e\n", worst);
    assert_true(worst < 1e-12);
    help_free(&b);
    fin_latent_destroy(latent);
}

/* ---- counts and urn -------------------------------------------------------------------------- */

static void counts__posterior_is_dirichlet(void **state)
{
    (void)state;
    fin_latent_settings s = help_defaults("counts");
    s.outcomes = 3;
    s.alpha = 0.5;
    s.skew = 1;
    fin_latent *latent = help_latent("counts", &s, 40);
    const double values[5] = {2, 0, 2, 2, 1}, want[3] = {1.5, 2, 4.5};
    double statistic[3] = {0}, posterior[3], p[6];
    assert_int_equal(fin_latent_accumulate(latent, 5, NULL, values, statistic, NULL), FIN_OK);
    assert_int_equal(fin_latent_posterior(latent, statistic, posterior, NULL), FIN_OK);
    assert_true(help_gap(3, posterior, want) < 1e-15);
    assert_int_equal(fin_latent_predict(latent, statistic, 2, NULL, p, NULL, NULL), FIN_OK);
    for (int i = 0; i < 6; i++)
        assert_true(fabs(p[i] - want[i % 3] / 8) < 1e-15);
    fin_latent_destroy(latent);
}

static void urn__posterior_is_what_is_left(void **state)
{
    (void)state;
    fin_latent_settings s = help_defaults("urn");
    s.balls = 7;
    s.outcomes = 3; /* 2, 3, 2 balls */
    fin_latent *latent = help_latent("urn", &s, 41);
    const double values[3] = {1, 0, 1}, want[3] = {1, 1, 2};
    double statistic[3] = {0}, left[3], p[3];
    assert_int_equal(fin_latent_accumulate(latent, 3, NULL, values, statistic, NULL), FIN_OK);
    assert_int_equal(fin_latent_posterior(latent, statistic, left, NULL), FIN_OK);
    assert_true(help_gap(3, left, want) == 0);
    assert_int_equal(fin_latent_predict(latent, statistic, 1, NULL, p, NULL, NULL), FIN_OK);
    assert_true(p[0] == 0.25 && p[1] == 0.25 && p[2] == 0.5);
    fin_latent_destroy(latent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(concepts__equal_brute_force),
        cmocka_unit_test(concepts__know_zero_probabilities),
        cmocka_unit_test(finite__equals_brute_force),
        cmocka_unit_test(counts__posterior_is_dirichlet),
        cmocka_unit_test(urn__posterior_is_what_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
