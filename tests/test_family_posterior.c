/* Posteriors and predictions of the Gaussian families, by all ways and by conditioning in long
 * double; the statistic of every family. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_family_help.h"

/* ---- joint Gaussian conditioning, in long double --------------------------------------------- */

enum { MOST = 48 };

/* x <- A^-1 x for positive definite A, n <= MOST; several right sides. */
static void solve(int64_t n, long double A[MOST][MOST], int64_t m, long double x[MOST][MOST])
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t r = i + 1; r < n; r++) {
            long double f = A[r][i] / A[i][i];
            for (int64_t c = i; c < n; c++)
                A[r][c] -= f * A[i][c];
            for (int64_t c = 0; c < m; c++)
                x[r][c] -= f * x[i][c];
        }
    for (int64_t i = n - 1; i >= 0; i--)
        for (int64_t c = 0; c < m; c++) {
            for (int64_t j = i + 1; j < n; j++)
                x[i][c] -= A[i][j] * x[j][c];
            x[i][c] /= A[i][i];
        }
}

static long double dot(int64_t n, const double *a, const double *b)
{
    long double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (long double)a[i] * b[i];
    return sum;
}

typedef long double covariance(int64_t width, const double *a, const double *b);

/* Mean (dv) and variance at one query, of values with covariance prior k + noise. */
static void condition(covariance *k, double prior, double noise, int64_t width, int64_t L,
                      const double *rows, int64_t dv, const double *values, const double *query,
                      double *mean, double *variance)
{
    static long double A[MOST][MOST], x[MOST][MOST];
    assert_true(L <= MOST);
    for (int64_t i = 0; i < L; i++) {
        for (int64_t j = 0; j < L; j++)
            A[i][j] = prior * k(width, rows + i * width, rows + j * width) + (i == j ? noise : 0);
        x[i][0] = prior * k(width, rows + i * width, query);
    }
    solve(L, A, 1, x);
    long double left = prior * k(width, query, query);
    for (int64_t i = 0; i < L; i++)
        left -= x[i][0] * prior * k(width, rows + i * width, query);
    for (int64_t c = 0; c < dv; c++) {
        long double sum = 0;
        for (int64_t i = 0; i < L; i++)
            sum += x[i][0] * values[i * dv + c];
        mean[c] = (double)sum;
    }
    *variance = (double)left;
}

/* ---- the Gaussian families ------------------------------------------------------------------- */

/* Mean and variance at a query from the numbers of a posterior. */
static void from_posterior(int64_t D, int64_t dv, const double *posterior, const double *phi,
                           double *mean, double *variance)
{
    const double *C = posterior + dv * D;
    for (int64_t c = 0; c < dv; c++)
        mean[c] = (double)dot(D, posterior + c * D, phi);
    *variance = 0;
    for (int64_t i = 0; i < D; i++)
        *variance += phi[i] * (double)dot(D, C + i * D, phi);
}

static fin_latent_settings random_model(fin_random *r, int64_t *L)
{
    fin_latent_settings s = help_defaults("concept");
    s.d = 1 + fin_random_below(r, 5);
    s.dv = 1 + fin_random_below(r, 4);
    s.features = (int)fin_random_below(r, 4);
    s.D = 1 + fin_random_below(r, 30);
    s.keys = (int)fin_random_below(r, 3);
    s.prior = exp(2 * fin_random_normal(r));
    s.noise = s.prior * exp(-6 * fin_random_uniform(r));
    *L = fin_random_below(r, 45);
    return s;
}

static void predict__three_routes_agree(void **state)
{
    (void)state;
    enum { MODELS = 50, Q = 5 };
    double worst[4] = {0}, worst_variance[4] = {0};
    fin_random random;
    fin_random_open(&random, 31, FIN_STREAM_USER, 0);
    for (int model = 0; model < MODELS; model++) {
        int64_t L;
        fin_latent_settings s = random_model(&random, &L);
        fin_latent *latent = help_latent("concept", &s, (uint64_t)model);
        help_sequences b = help_draw(latent, 0, 1, L, Q);
        int64_t D = b.shape.features, dv = b.shape.dv;
        double *statistic = help_array(b.shape.statistic), *phi = help_array((L + Q) * D);
        double *posterior[2] = {help_array(b.shape.posterior), help_array(b.shape.posterior)};
        double mean[2][Q * 4], variance[2][Q];
        fin_latent_features(latent, L, b.keys, phi, NULL);
        fin_latent_features(latent, Q, b.queries, phi + L * D, NULL);
        assert_int_equal(fin_latent_accumulate(latent, L, b.keys, b.values, statistic, NULL), 0);
        assert_int_equal(fin_latent_posterior(latent, statistic, posterior[0], NULL), FIN_OK);
        assert_int_equal(fin_latent_filter(latent, L, b.keys, b.values, posterior[1], NULL), 0);
        assert_int_equal(
            fin_latent_predict(latent, statistic, Q, b.queries, mean[0], variance[0], NULL), 0);
        assert_int_equal(fin_latent_predict_tokens(latent, L, b.keys, b.values, Q, b.queries,
                                                   mean[1], variance[1], NULL),
                         FIN_OK);
        for (int64_t q = 0; q < Q; q++) {
            double want[4], left, got[4], spread;
            condition(dot, s.prior, s.noise, D, L, phi, dv, b.values, phi + (L + q) * D, want,
                      &left);
            for (int route = 0; route < 4; route++) {
                if (route < 2) {
                    memcpy(got, mean[route] + q * dv, (size_t)dv * sizeof *got);
                    spread = variance[route][q];
                } else {
                    from_posterior(D, dv, posterior[route - 2], phi + (L + q) * D, got, &spread);
                }
                worst[route] = fmax(worst[route], help_gap(dv, got, want));
                worst_variance[route] = fmax(worst_variance[route], help_gap(1, &spread, &left));
            }
        }
        free(statistic);
        free(phi);
        free(posterior[0]);
        free(posterior[1]);
        help_free(&b);
        fin_latent_destroy(latent);
    }
    static const char *const names[4] = {"statistic", "tokens", "posterior", "Kalman"};
    for (int route = 0; route < 4; route++) {
        print_message("%s against conditioning: mean %.1e, variance %.1e\n", names[route],
                      worst[route], worst_variance[route]);
        assert_true(worst[route] < 1e-10 && worst_variance[route] < 1e-10);
    }
}

static long double matern52(int64_t width, const double *a, const double *b)
{
    long double r2 = 0;
    for (int64_t i = 0; i < width; i++)
        r2 += ((long double)a[i] - b[i]) * ((long double)a[i] - b[i]) / 0.64L; /* scale 0.8 */
    long double r = sqrtl(5 * r2);
    return (1 + r + r * r / 3) * expl(-r);
}

static void predict__process_equals_conditioning(void **state)
{
    (void)state;
    enum { L = 40, Q = 3 };
    fin_latent_settings s = help_defaults("process");
    s.d = 2;
    s.dv = 2;
    s.kernel = FIN_KERNEL_MATERN52;
    s.scale = 0.8;
    s.prior = 1.7;
    s.noise = 0.05;
    fin_latent *latent = help_latent("process", &s, 32);
    help_sequences b = help_draw(latent, 0, 1, L, Q);
    double mean[2 * Q], variance[Q], want[2], left;
    assert_int_equal(
        fin_latent_predict_tokens(latent, L, b.keys, b.values, Q, b.queries, mean, variance, NULL),
        FIN_OK);
    for (int q = 0; q < Q; q++) {
        condition(matern52, s.prior, s.noise, 2, L, b.keys, 2, b.values, b.queries + 2 * q, want,
                  &left);
        assert_true(help_gap(2, mean + 2 * q, want) < 1e-12);
        assert_true(help_gap(1, variance + q, &left) < 1e-12);
    }
    help_free(&b);
    fin_latent_destroy(latent);
}

/* Many queries go in pieces, and their numbers do not depend on it. */
static void predict__many_queries_as_few(void **state)
{
    (void)state;
    enum { L = 10, Q = 3, MANY = 5000 };
    for (int f = 0; f < 2; f++) {
        const char *name = f ? "process" : "concept";
        fin_latent_settings s = help_defaults(name);
        s.dv = 2;
        s.features = FIN_FEATURES_FOURIER;
        fin_latent *latent = help_latent(name, &s, 32);
        help_sequences b = help_draw(latent, 0, 1, L, Q);
        int64_t dk = b.shape.dk;
        double *queries = help_array(MANY * dk), *all = help_array(2 * MANY);
        double *spread = help_array(MANY), mean[2 * Q], variance[Q];
        for (int64_t i = 0; i < MANY * dk; i++)
            queries[i] = b.queries[i % (Q * dk)];
        assert_int_equal(fin_latent_predict_tokens(latent, L, b.keys, b.values, Q, queries, mean,
                                                   variance, NULL),
                         FIN_OK);
        assert_int_equal(fin_latent_predict_tokens(latent, L, b.keys, b.values, MANY, queries, all,
                                                   spread, NULL),
                         FIN_OK);
        for (int64_t i = 0; i < MANY; i++)
            assert_true(help_gap(2, all + 2 * i, mean + 2 * (i % Q)) < 1e-13 &&
                        help_gap(1, spread + i, variance + i % Q) < 1e-13);
        free(queries);
        free(all);
        free(spread);
        help_free(&b);
        fin_latent_destroy(latent);
    }
}

/* Posterior N(xbar L/s^2 / P, 1/P), P = L/s^2 + 1/tau^2. */
static void posterior__mean_is_shrunk(void **state)
{
    (void)state;
    fin_latent_settings s = help_defaults("mean");
    s.prior = 2;
    s.noise = 0.5;
    s.dv = 2;
    fin_latent *latent = help_latent("mean", &s, 33);
    const double values[6] = {1, 4, 2, 5, 6, 0};
    double statistic[8] = {0}, posterior[3], P = 3 / 0.5 + 1 / 2.0;
    assert_int_equal(fin_latent_accumulate(latent, 3, NULL, values, statistic, NULL), FIN_OK);
    assert_int_equal(fin_latent_posterior(latent, statistic, posterior, NULL), FIN_OK);
    double want[3] = {3 * 3 / 0.5 / P, 3 * 3 / 0.5 / P, 1 / P};
    assert_true(help_gap(3, posterior, want) < 1e-15);
    assert_true(statistic[0] == 3 && statistic[1] == 9 && statistic[2] == 9 && statistic[3] == 41 &&
                statistic[4] == 14 && statistic[6] == 41 && statistic[7] == 3);
    fin_latent_destroy(latent);
}

/* No tokens: the prior. No noise: what a token has shown is known, the rest is as before. */
static void posterior__at_its_edges(void **state)
{
    (void)state;
    fin_latent_settings s = help_defaults("concept");
    s.d = 3;
    s.prior = 2;
    for (int step = 0; step < 2; step++) {
        s.noise = step ? 0 : 0.1;
        fin_latent *latent = help_latent("concept", &s, 34);
        const double k[6] = {1, 2, 2, 2, 4, 4}, v[2] = {9, 18}, q[9] = {1, 2, 2, 2, -1, 0, 1, 0, 0};
        double statistic[14] = {0}, mean[3], variance[3];
        assert_int_equal(fin_latent_predict(latent, statistic, 3, q, mean, variance, NULL), FIN_OK);
        const double prior[3] = {18, 10, 2}, zero[3] = {0};
        assert_true(help_gap(3, variance, prior) < 1e-15 && help_gap(3, mean, zero) == 0);
        if (s.noise == 0)
            for (int way = 0; way < 2; way++) {
                /* twice the same direction: a matrix of rank one */
                const double want[3] = {9, 0, 1}, left[3] = {0, 10, 2 * (1 - 1.0 / 9)};
                assert_int_equal(fin_latent_accumulate(latent, 2, k, v, statistic, NULL), FIN_OK);
                assert_int_equal(
                    way ? fin_latent_predict(latent, statistic, 3, q, mean, variance, NULL)
                        : fin_latent_predict_tokens(latent, 2, k, v, 3, q, mean, variance, NULL),
                    FIN_OK);
                assert_true(help_gap(3, mean, want) < 1e-7 && help_gap(3, variance, left) < 1e-7);
            }
        double posterior[12];
        assert_int_equal(fin_latent_filter(latent, s.noise == 0 ? 2 : 0, k, v, posterior, NULL), 0);
        assert_true(fabs(posterior[0] - (s.noise == 0)) < 1e-12);
        fin_latent_destroy(latent);
    }
}

/* Where one concept has all the weight the variance is zero, and rounding must not take it below. */
static void predict__variance_is_never_negative(void **state)
{
    (void)state;
    fin_latent_settings settings = help_defaults("finite");
    fin_error err = {FIN_OK, ""};
    double mean, variance;
    fin_latent *latent = help_latent("finite", &settings, 2);
    for (int64_t L = 0; L <= 8; L++) {
        help_sequences s = help_draw(latent, 0, 400, L, 1);
        for (int64_t i = 0; i < s.n; i++) {
            if (fin_latent_predict_tokens(latent, L, s.keys + i * L * s.shape.dk, s.values + i * L,
                                          1, s.queries + i * s.shape.dk, &mean, &variance, &err))
                fail_msg("%s", err.message);
            assert_true(variance >= 0);
        }
        help_free(&s);
    }
    fin_latent_destroy(latent);
}

/* Without noise D tokens tell all: later ones, right or wrong, change nothing, and rounding is not
 * taken for something new. */
static void filter__knows_when_it_knows(void **state)
{
    (void)state;
    enum { D = 5, L = 2000 };
    fin_latent_settings s = help_defaults("concept");
    for (int wrong = 0; wrong < 2; wrong++) {
        s.noise = wrong ? 0.01 : 0;
        fin_latent *noisy = help_latent("concept", &s, 34);
        help_sequences b = help_draw(noisy, 0, 1, L, 0);
        s.noise = 0;
        fin_latent *latent = help_latent("concept", &s, 34);
        double few[D + D * D], all[D + D * D];
        assert_int_equal(fin_latent_filter(latent, D, b.keys, b.values, few, NULL), FIN_OK);
        assert_int_equal(fin_latent_filter(latent, L, b.keys, b.values, all, NULL), FIN_OK);
        assert_true(help_gap(D + D * D, all, few) < 1e-12);
        assert_true(wrong || help_gap(D, all, b.z) < 1e-12);
        help_free(&b);
        fin_latent_destroy(noisy);
        fin_latent_destroy(latent);
    }
}

/* ---- the statistic --------------------------------------------------------------------------- */

static const char *const with_statistic[] = {"concept", "mean",   "counts", "concepts",
                                             "sphere",  "finite", "urn"};

/* In pieces, in another order, merged: the same up to rounding; predictions from it are those from
 * the tokens. */
static void statistic__is_additive(void **state)
{
    (void)state;
    enum { L = 60, Q = 3, CUT = 23 };
    for (int f = 0; f < 7; f++) {
        fin_latent *latent = help_latent(with_statistic[f], NULL, 35);
        help_sequences b = help_draw(latent, 0, 1, L, Q);
        int64_t n = b.shape.statistic, dk = b.shape.dk, dv = b.shape.dv;
        double *all = help_array(n), *one = help_array(n), *two = help_array(n);
        double *mean = help_array(2 * Q * b.width);
        fin_latent_accumulate(latent, L, b.keys, b.values, all, NULL);
        for (int64_t l = L - 1; l >= CUT; l--)
            fin_latent_accumulate(latent, 1, b.keys + l * dk, b.values + l * dv, one, NULL);
        fin_latent_accumulate(latent, CUT, b.keys, b.values, two, NULL);
        assert_int_equal(fin_latent_merge(latent, one, two, NULL), FIN_OK);
        assert_true(help_gap(n, two, all) < 1e-14);
        assert_int_equal(fin_latent_predict(latent, two, Q, b.queries, mean, NULL, NULL), FIN_OK);
        assert_int_equal(fin_latent_predict_tokens(latent, L, b.keys, b.values, Q, b.queries,
                                                   mean + Q * b.width, NULL, NULL),
                         FIN_OK);
        assert_true(help_gap(Q * b.width, mean, mean + Q * b.width) < 1e-12);
        free(all);
        free(one);
        free(two);
        free(mean);
        help_free(&b);
        fin_latent_destroy(latent);
    }
}

/* Phi'Phi, V'Phi and V'V of `count` rows, laid out as the statistic is. */
static void products(int64_t D, int64_t dv, int64_t count, const double *phi, const double *v,
                     double *out)
{
    for (int64_t l = 0; l < count; l++) {
        const double *p = phi + l * D, *w = v + l * dv;
        for (int64_t i = 0; i < D; i++)
            for (int64_t j = 0; j < D; j++)
                out[i * D + j] += p[i] * p[j];
        for (int64_t c = 0; c < dv; c++)
            for (int64_t j = 0; j < D; j++)
                out[D * D + c * D + j] += w[c] * p[j];
        for (int64_t c = 0; c < dv; c++)
            for (int64_t e = 0; e < dv; e++)
                out[D * D + dv * D + c * dv + e] += w[c] * w[e];
    }
}

static void compress__keeps_the_statistic(void **state)
{
    (void)state;
    static const int64_t lengths[] = {0, 1, 9, 10, 40, 45, 1000};
    double worst = 0;
    for (int i = 0; i < 7; i++)
        for (int f = 0; f < 3; f++) {
            const char *name = f == 0 ? "concept" : f == 1 ? "mean" : "finite";
            fin_latent_settings s = help_defaults(name);
            s.d = 3;
            s.dv = 3;
            s.features = FIN_FEATURES_QUADRATIC; /* D = 10 */
            fin_latent *latent = help_latent(name, &s, 36);
            int64_t L = lengths[i], count;
            help_sequences b = help_draw(latent, 0, 1, L, 0);
            int64_t D = b.shape.features, dv = 3, n = b.shape.statistic;
            double *all = help_array(n), *few = help_array(n), *phi = help_array((D + dv) * D),
                   *pseudo = help_array((D + dv) * dv);
            fin_latent_accumulate(latent, L, b.keys, b.values, all, NULL);
            assert_int_equal(
                fin_latent_compress(latent, L, b.keys, b.values, &count, phi, pseudo, NULL),
                FIN_OK);
            assert_true(count <= D + dv && count <= L);
            products(D, dv, count, phi, pseudo, few);
            worst = fmax(worst, help_gap(n - 1, few, all));
            assert_true(all[n - 1] == (double)L);
            free(all);
            free(few);
            free(phi);
            free(pseudo);
            help_free(&b);
            fin_latent_destroy(latent);
        }
    print_message("compressed statistic: %.1e\n", worst);
    assert_true(worst < 1e-12);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predict__three_routes_agree),
        cmocka_unit_test(predict__process_equals_conditioning),
        cmocka_unit_test(predict__many_queries_as_few),
        cmocka_unit_test(posterior__mean_is_shrunk),
        cmocka_unit_test(posterior__at_its_edges),
        cmocka_unit_test(predict__variance_is_never_negative),
        cmocka_unit_test(filter__knows_when_it_knows),
        cmocka_unit_test(statistic__is_additive),
        cmocka_unit_test(compress__keeps_the_statistic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
