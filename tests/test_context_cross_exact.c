/* cme attention is the posterior: against conditioning of the joint Gaussian, against the Kalman
 * recursion, primal against dual; softmax and nw against their formulas and each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_context_cross_help.h"

enum { KERNELS = 6 };

/* A model at random: any kernel, sizes, hyperparameters. */
static fin_cross_settings random_model(fin_random *r, int kernel)
{
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, kernel);
    s.scale = kernel == FIN_KERNEL_EXPONENTIAL ? 2 + fin_random_uniform(r)
                                               : 0.5 + 1.5 * fin_random_uniform(r);
    s.prior = 0.3 + 2 * fin_random_uniform(r);
    s.noise = 0.02 + fin_random_uniform(r);
    s.level = fin_random_below(r, 2) ? fin_random_uniform(r) : 0;
    s.degree = 1 + fin_random_below(r, 3);
    s.offset = fin_random_below(r, 4) ? fin_random_uniform(r) : 0;
    s.method = fin_random_below(r, 2) ? FIN_CROSS_AUTO : FIN_CROSS_DUAL;
    return s;
}

/* Tolerances are relative to the prior variance of the query and the size of the values. */
static double size_of(const fin_cross_settings *s, const sample *x)
{
    double size = 1;
    for (int64_t q = 0; q < x->m; q++) {
        const double *query = x->queries + q * x->dk;
        size = fmax(size, (double)(s->prior * naive_kernel(s, x->dk, query, query) + s->level));
    }
    return size;
}

static void predict__is_joint_conditioning(void **state)
{
    (void)state;
    fin_random r;
    fin_random_open(&r, 11, FIN_STREAM_USER, 0);
    for (int model = 0; model < 60; model++) {
        fin_cross_settings s = random_model(&r, model % KERNELS);
        sample x = sample_make(1 + fin_random_below(&r, 40), 7, 1 + fin_random_below(&r, 4),
                               1 + fin_random_below(&r, 3), 100 + (uint64_t)model);
        int64_t mv = x.m * x.dv;
        double *mean = numbers(mv), *variance = numbers(mv), *weights = numbers(x.m * x.n);
        double *want = numbers(mv), *rest = numbers(x.m), *sum = numbers(mv),
               size = size_of(&s, &x);
        fin_cross *cross = cross_make(&s, &x, x.n, x.n);
        assert_int_equal(
            fin_cross_predict(cross, x.m, x.queries, mean, variance, weights, NULL, NULL), FIN_OK);
        naive_cme(&s, &x, x.n, want, rest);
        assert_close(mv, mean, want, 1e-10 * size);
        for (int64_t i = 0; i < mv; i++) {
            assert_true(fabs(variance[i] - rest[i / x.dv]) <= 1e-10 * size);
            assert_true(variance[i] >= 0);
            for (int64_t l = 0; l < x.n; l++)
                sum[i] += weights[i / x.dv * x.n + l] * x.values[l * x.dv + i % x.dv];
        }
        assert_close(mv, sum, mean, 1e-10 * size);
        fin_cross_destroy(cross);
        free(mean), free(variance), free(weights), free(want), free(rest), free(sum);
        sample_free(&x);
    }
}

/* z ~ N(0, prior I), v_l = z.k_l + noise: one token at a time,
 *     s = k'Pk + noise, g = Pk / s, z += g (v - z.k), P -= g (Pk)'. */
static void kalman(const fin_cross_settings *s, const sample *x, double *mean, double *variance)
{
    enum { MOST = 4 };
    int64_t d = x->dk;
    long double P[MOST][MOST] = {{0}}, z[MOST][MOST] = {{0}};
    for (int64_t c = 0; c < d; c++)
        P[c][c] = (long double)s->prior / s->scale / s->scale;
    for (int64_t l = 0; l < x->n; l++) {
        const double *k = x->keys + l * d;
        long double Pk[MOST] = {0}, total = s->noise;
        for (int64_t a = 0; a < d; a++)
            for (int64_t b = 0; b < d; b++)
                Pk[a] += P[a][b] * k[b];
        for (int64_t a = 0; a < d; a++)
            total += k[a] * Pk[a];
        for (int64_t c = 0; c < x->dv; c++) {
            long double miss = x->values[l * x->dv + c];
            for (int64_t a = 0; a < d; a++)
                miss -= z[c][a] * k[a];
            for (int64_t a = 0; a < d; a++)
                z[c][a] += Pk[a] / total * miss;
        }
        for (int64_t a = 0; a < d; a++)
            for (int64_t b = 0; b < d; b++)
                P[a][b] -= Pk[a] * Pk[b] / total;
    }
    for (int64_t q = 0; q < x->m; q++) {
        const double *k = x->queries + q * d;
        long double rest = 0;
        for (int64_t a = 0; a < d; a++)
            for (int64_t b = 0; b < d; b++)
                rest += k[a] * P[a][b] * k[b];
        for (int64_t c = 0; c < x->dv; c++) {
            long double sum = 0;
            for (int64_t a = 0; a < d; a++)
                sum += z[c][a] * k[a];
            mean[q * x->dv + c] = (double)sum;
            variance[q * x->dv + c] = (double)rest;
        }
    }
}

static void predict__is_kalman_recursion(void **state)
{
    (void)state;
    fin_random r;
    fin_random_open(&r, 12, FIN_STREAM_USER, 0);
    for (int model = 0; model < 50; model++) {
        fin_cross_settings s = random_model(&r, FIN_KERNEL_LINEAR);
        s.level = 0;
        s.method = model % 2 ? FIN_CROSS_PRIMAL : FIN_CROSS_DUAL;
        sample x = sample_make(1 + fin_random_below(&r, 60), 5, 1 + fin_random_below(&r, 4),
                               1 + fin_random_below(&r, 4), 200 + (uint64_t)model);
        double mean[20], variance[20], want[20], rest[20];
        fin_cross *cross = cross_make(&s, &x, x.n, x.n);
        assert_int_equal(fin_cross_predict(cross, x.m, x.queries, mean, variance, NULL, NULL, NULL),
                         FIN_OK);
        kalman(&s, &x, want, rest);
        assert_close(x.m * x.dv, mean, want, 1e-10 * size_of(&s, &x));
        assert_close(x.m * x.dv, variance, rest, 1e-10 * size_of(&s, &x));
        fin_cross_destroy(cross);
        sample_free(&x);
    }
}

/* Means, variances, weights, leave-one-out, curve, evidence and its gradient: both ways. */
static void primal__is_dual(void **state)
{
    (void)state;
    for (int model = 0; model < 8; model++) {
        fin_cross_settings s =
            cross_settings(FIN_CROSS_CME, model % 2 ? FIN_KERNEL_POLYNOMIAL : FIN_KERNEL_LINEAR);
        s.noise = 0.3;
        s.prior = 1.7;
        s.scale = 1.4;
        s.degree = 1 + model / 2;
        s.offset = model == 3 ? 0 : 0.6;
        s.level = model % 4 < 2 ? 0 : 0.8;
        sample x = sample_make(300, 9, 3, 2, 300 + (uint64_t)model);
        double *got[2][9];
        int64_t L = x.n, sizes[9] = {18, 18, 9 * L, 2 * L, 2 * L, L + 1, L + 1, L, 8};
        for (int way = 0; way < 2; way++) {
            for (int i = 0; i < 9; i++)
                got[way][i] = numbers(sizes[i]);
            s.method = way ? FIN_CROSS_PRIMAL : FIN_CROSS_DUAL;
            fin_cross *cross = cross_make(&s, &x, L, L);
            fin_cross_info info;
            fin_cross_get_info(cross, &info);
            assert_int_equal(info.method, s.method);
            double **o = got[way];
            assert_int_equal(fin_cross_predict(cross, 9, x.queries, o[0], o[1], o[2], NULL, NULL),
                             FIN_OK);
            assert_int_equal(fin_cross_loo(cross, o[3], o[4], NULL, NULL), FIN_OK);
            assert_int_equal(
                fin_cross_prefix(cross, 9, x.queries, x.answers, o[5], o[6], NULL, NULL), FIN_OK);
            double *error = numbers(L);
            assert_int_equal(fin_cross_prefix(cross, 0, NULL, NULL, error, o[7], NULL, NULL),
                             FIN_OK);
            free(error);
            assert_int_equal(fin_cross_evidence(cross, &o[8][0], &o[8][1], &o[8][4], NULL, NULL),
                             FIN_OK);
            fin_cross_destroy(cross);
        }
        for (int i = 0; i < 9; i++) {
            double size = i < 8 ? 10 : 1000;
            assert_close(sizes[i], got[0][i], got[1][i], 1e-10 * size);
            free(got[0][i]);
            free(got[1][i]);
        }
        sample_free(&x);
    }
}

/* ---- softmax and nw -------------------------------------------------------------------------- */

static void forms__match_formula(void **state)
{
    (void)state;
    for (int kernel = FIN_KERNEL_LINEAR; kernel < KERNELS; kernel++)
        for (int64_t n = 1; n < 1000; n = 3 * n + 1) {
            bool softmax = kernel == FIN_KERNEL_LINEAR;
            fin_cross_settings s =
                cross_settings(softmax ? FIN_CROSS_SOFTMAX : FIN_CROSS_NW, kernel);
            s.scale = softmax ? 1 : 0.7;
            s.temperature = 0.4;
            if (kernel == FIN_KERNEL_POLYNOMIAL)
                continue;
            sample x = sample_make(n, 70, 3, 2, 400 + (uint64_t)n);
            double *mean = numbers(140), *variance = numbers(140), *weights = numbers(70 * n);
            double *want = numbers(140), *rest = numbers(140), *shares = numbers(70 * n);
            fin_cross *cross = cross_make(&s, &x, n, n);
            assert_int_equal(
                fin_cross_predict(cross, 70, x.queries, mean, variance, weights, NULL, NULL),
                FIN_OK);
            for (int64_t q = 0; q < 70; q++) {
                long double total = 0, k[1000];
                for (int64_t l = 0; l < n; l++) {
                    k[l] = naive_kernel(&s, 3, x.queries + 3 * q, x.keys + 3 * l);
                    total += k[l] = softmax ? expl(k[l] / s.temperature) : k[l];
                }
                for (int64_t c = 0; c < 2; c++) {
                    long double sum = 0, square = 0;
                    for (int64_t l = 0; l < n; l++)
                        sum += k[l] / total * x.values[2 * l + c];
                    for (int64_t l = 0; l < n; l++)
                        square += k[l] / total * powl(x.values[2 * l + c] - sum, 2);
                    want[2 * q + c] = (double)sum;
                    rest[2 * q + c] = (double)square;
                }
                for (int64_t l = 0; l < n; l++)
                    shares[q * n + l] = (double)(k[l] / total);
            }
            assert_close(140, mean, want, 2e-14);
            assert_close(140, variance, rest, 2e-14);
            assert_close(70 * n, weights, shares, 2e-14);
            fin_cross_destroy(cross);
            free(mean), free(variance), free(weights), free(want), free(rest), free(shares);
            sample_free(&x);
        }
}

/* nw with the exponential kernel is softmax; on the unit sphere, so is nw with rbf. */
static void nw__is_softmax(void **state)
{
    (void)state;
    sample x = sample_make(500, 40, 3, 2, 51);
    for (int64_t i = 0; i < 540; i++) {
        double *a = i < 500 ? x.keys + 3 * i : x.queries + 3 * (i - 500);
        double norm = sqrt(a[0] * a[0] + a[1] * a[1] + a[2] * a[2]);
        for (int c = 0; c < 3; c++)
            a[c] /= norm;
    }
    double mean[3][80];
    for (int way = 0; way < 3; way++) {
        fin_cross_settings s = cross_settings(way ? FIN_CROSS_NW : FIN_CROSS_SOFTMAX,
                                              way == 1 ? FIN_KERNEL_EXPONENTIAL : FIN_KERNEL_RBF);
        s.temperature = 0.2;
        s.scale = sqrt(0.2);
        fin_cross *cross = cross_make(&s, &x, 500, 500);
        assert_int_equal(fin_cross_predict(cross, 40, x.queries, mean[way], NULL, NULL, NULL, NULL),
                         FIN_OK);
        fin_cross_destroy(cross);
    }
    assert_close(80, mean[0], mean[1], 1e-14);
    assert_close(80, mean[0], mean[2], 1e-14);
    sample_free(&x);
}

/* Scores of +-1e5: no exponential overflows, the nearest token wins. */
static void softmax__takes_any_score(void **state)
{
    (void)state;
    sample x = sample_make(700, 3, 2, 1, 52);
    fin_cross_settings s = cross_settings(FIN_CROSS_SOFTMAX, 0);
    s.temperature = 1e-5;
    fin_cross *cross = cross_make(&s, &x, 700, 700);
    double mean[3], variance[3];
    assert_int_equal(fin_cross_predict(cross, 3, x.queries, mean, variance, NULL, NULL, NULL),
                     FIN_OK);
    for (int q = 0; q < 3; q++) {
        int64_t best = 0;
        double top = -INFINITY;
        for (int64_t l = 0; l < 700; l++) {
            double score =
                x.queries[2 * q] * x.keys[2 * l] + x.queries[2 * q + 1] * x.keys[2 * l + 1];
            if (score > top) {
                top = score;
                best = l;
            }
        }
        assert_true(fabs(mean[q] - x.values[best]) < 1e-10 && variance[q] >= 0);
    }
    fin_cross_destroy(cross);
    sample_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(predict__is_joint_conditioning),
        cmocka_unit_test(predict__is_kalman_recursion),
        cmocka_unit_test(primal__is_dual),
        cmocka_unit_test(forms__match_formula),
        cmocka_unit_test(nw__is_softmax),
        cmocka_unit_test(softmax__takes_any_score),
    };
    return cmocka_run_group_tests_name("attention_cross_exact", tests, NULL, NULL);
}
