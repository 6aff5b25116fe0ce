/* Linear probes: answers of scikit-learn, choices of the penalty, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "finetti/encoder_probe.h"
#include "finetti/random.h"
#include "encoder/probe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- scikit-learn (tests/data/probe_sklearn.py) ------------------------------------------------ */

static void features(int n, int p, double *x)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < p; j++)
            x[i * p + j] = sin(1.3 * i * (1 + 0.37 * j) + 0.7 * j * j) * (1 + j) + 3 * j;
}

static double noise(int i, int k)
{
    return cos(2.7 * i * (k + 1) + k);
}

static fin_probe *fit(int64_t n, int64_t p, const double *x, int64_t classes, int64_t m,
                      const double *y, double penalty)
{
    fin_probe *probe;
    fin_error err = {FIN_OK, ""};
    if (fin_probe_fit(&probe, n, p, x, classes, m, y, penalty, &err))
        fail_msg("%s", err.message);
    return probe;
}

static void expect(const double *got, const double *want, int count, double tolerance)
{
    for (int i = 0; i < count; i++)
        if (!(fabs(got[i] - want[i]) <= tolerance * fmax(1, fabs(want[i]))))
            fail_msg("number %d is %.12g, expected %.12g", i, got[i], want[i]);
}

static void check_ridge(int n, int p, double much, const double want[4], double chosen)
{
    double x[30 * 20], y[30 * 2], out[30 * 2];
    features(n, p, x);
    for (int i = 0; i < n; i++) {
        y[i * 2] = x[i * p] - 0.5 * x[i * p + 1] + much * noise(i, 1);
        y[i * 2 + 1] = 100 + 20 * x[i * p + 1] + 60 * much * noise(i, 2);
    }
    fin_probe *probe = fit(n, p, x, 0, 2, y, 0.1);
    assert_int_equal(fini_probe_predict(probe, n, x, out, NULL), FIN_OK);
    expect(out, want, 2, 1e-9);
    expect(out + 7 * 2, want + 2, 2, 1e-9);
    assert_true(fini_probe_penalty(probe) == 0.1);
    fin_probe_destroy(probe);
    probe = fit(n, p, x, 0, 2, y, FIN_AUTO);
    assert_true(fabs(fini_probe_penalty(probe) / chosen - 1) < 1e-9);
    fin_probe_destroy(probe);
}

static void ridge__is_scikit_learn_s(void **state)
{
    (void)state;
    check_ridge(30, 4, 0.5,
                (double[]){-2.06052312885, 166.893661387, -1.70163011047, 166.870792153},
                0.0316227766017);
    check_ridge(18, 20, 0.5,
                (double[]){-1.88986019944, 171.320212357, -1.51264121054, 164.555714246},
                3.16227766017);
}

static void logistic__is_scikit_learn_s(void **state)
{
    (void)state;
    enum { N = 90, P = 4 };
    static const double want[] = {0.219632253422, 0.623185295318, 0.15718245126,
                                  0.177949954035, 0.60206348172,  0.219986564245};
    double x[N * P], y[N], out[N * 3];
    int counts[3] = {0};
    features(N, P, x);
    for (int i = 0; i < N; i++) {
        double s = x[i * P] + noise(i, 1) * 1.5;
        y[i] = s < -0.7 ? 0 : s + noise(i, 3) > 0.8 ? 2 : 1;
        counts[(int)y[i]]++;
    }
    assert_true(counts[0] == 27 && counts[1] == 38 && counts[2] == 25);
    fin_probe *probe = fit(N, P, x, 3, 0, y, 0.01);
    assert_int_equal(fini_probe_predict(probe, N, x, out, NULL), FIN_OK);
    expect(out, want, 3, 1e-6);
    expect(out + 7 * 3, want + 3, 3, 1e-6);
    fin_probe_destroy(probe);
    probe = fit(N, P, x, 3, 0, y, FIN_AUTO);
    assert_true(fabs(fini_probe_penalty(probe) / 0.1 - 1) < 1e-9);
    fin_probe_destroy(probe);
}

/* ---- properties -------------------------------------------------------------------------------- */

static double *normals(uint64_t seed, int64_t n)
{
    double *x = calloc((size_t)n, sizeof *x);
    assert_non_null(x);
    fin_random_normals_f64(seed, FIN_STREAM_USER, 0, 0, n, x);
    return x;
}

/* Moving and scaling features changes nothing; a constant column is of no use and does no harm. */
static void fits__do_not_depend_on_units(void **state)
{
    (void)state;
    enum { N = 200, P = 3 };
    double *x = normals(1, N * P), *e = normals(2, N), other[N * (P + 1)], y[N], a[3 * N], b[3 * N];
    for (int classes = 0; classes <= 3; classes += 3) {
        for (int i = 0; i < N; i++) {
            double s = x[i * P] - x[i * P + 2] + 0.5 * e[i];
            y[i] = classes ? (s > -0.5) + (s > 0.7) : s;
            for (int j = 0; j < P; j++)
                other[i * (P + 1) + j] = x[i * P + j] * pow(1000, j - 1) + 50 * j;
            other[i * (P + 1) + P] = 7.3;
        }
        fin_probe *one = fit(N, P, x, classes, 1, y, FIN_AUTO);
        fin_probe *two = fit(N, P + 1, other, classes, 1, y, FIN_AUTO);
        assert_true(fini_probe_penalty(one) == fini_probe_penalty(two));
        assert_int_equal(fini_probe_predict(one, N, x, a, NULL), FIN_OK);
        assert_int_equal(fini_probe_predict(two, N, other, b, NULL), FIN_OK);
        expect(b, a, classes ? classes * N : N, classes ? 1e-5 : 1e-8);
        for (int i = 0; classes && i < N; i++)
            assert_true(fabs(a[i * 3] + a[i * 3 + 1] + a[i * 3 + 2] - 1) < 1e-12);
        fin_probe_destroy(one);
        fin_probe_destroy(two);
    }
    free(x);
    free(e);
}

/* Threads share blocks of rows: no bit depends on how many there are. */
static void logistic__same_bits_for_any_threads(void **state)
{
    (void)state;
    enum { N = 700, P = 6 };
    double *x = normals(3, N * P), y[N], a[N * 2], b[N * 2];
    for (int i = 0; i < N; i++)
        y[i] = x[i * P] + x[i * P + 1] * x[i * P + 2] > 0;
    for (int threads = 1; threads <= 3; threads += 2) {
        fin_threads_set(threads);
        fin_probe *probe = fit(N, P, x, 2, 0, y, FIN_AUTO);
        assert_int_equal(fini_probe_predict(probe, N, x, threads == 1 ? a : b, NULL), FIN_OK);
        fin_probe_destroy(probe);
    }
    fin_threads_set(0);
    assert_memory_equal(a, b, sizeof a);
    free(x);
}

/* Without a penalty the ridge interpolates what is linear, with more features than rows too. */
static void ridge__without_penalty(void **state)
{
    (void)state;
    for (int p = 3; p <= 40; p += 37) {
        enum { N = 20 };
        double *x = normals(5, N * p), y[N], out[N];
        for (int i = 0; i < N; i++)
            y[i] = 3 + 2 * x[i * p] - x[i * p + 1];
        fin_probe *probe = fit(N, p, x, 0, 1, y, 0);
        assert_int_equal(fini_probe_predict(probe, N, x, out, NULL), FIN_OK);
        expect(out, y, N, 1e-9);
        fin_probe_destroy(probe);
        free(x);
    }
}

/* A target of pure noise gets the mean; a class that never occurs a probability of nothing; targets
 * that do not vary are no failure. */
static void fits__of_nothing(void **state)
{
    (void)state;
    enum { N = 100, P = 30 };
    double *x = normals(7, N * P), *y = normals(8, N), out[N * 3], c[N];
    fin_probe *probe = fit(N, P, x, 0, 1, y, FIN_AUTO);
    assert_true(fini_probe_penalty(probe) >= 1);
    fin_probe_destroy(probe);
    for (int i = 0; i < N; i++) {
        c[i] = y[i] > 0 ? 2 : 0;
        y[i] = 4;
    }
    probe = fit(N, P, x, 0, 1, y, FIN_AUTO);
    assert_int_equal(fini_probe_predict(probe, N, x, out, NULL), FIN_OK);
    expect(out, y, N, 1e-12);
    fin_probe_destroy(probe);
    probe = fit(N, P, x, 3, 1, c, FIN_AUTO);
    assert_int_equal(fini_probe_predict(probe, N, x, out, NULL), FIN_OK);
    for (int i = 0; i < N; i++)
        assert_true(out[i * 3 + 1] < 1e-10);
    assert_int_equal(fini_probe_predict(probe, 0, NULL, NULL, NULL), FIN_OK);
    fin_probe_destroy(probe);
    fin_probe_destroy(NULL);
    free(x);
    free(y);
}

/* ---- refusals and memory ----------------------------------------------------------------------- */

static void refuse(int64_t n, int64_t p, const double *x, int64_t classes, int64_t m,
                   const double *y, double penalty, const char *word)
{
    fin_probe *probe = (fin_probe *)&n;
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_probe_fit(&probe, n, p, x, classes, m, y, penalty, &err),
                     FIN_ERR_ARGUMENT);
    assert_null(probe);
    if (!strstr(err.message, word))
        fail_msg("'%s' is not in: %s", word, err.message);
}

static void fit__refuses_what_makes_no_sense(void **state)
{
    (void)state;
    double x[] = {1, 2, 3, 4, 5, 6}, y[] = {0, 1, 0};
    refuse(1, 2, x, 0, 1, y, 1, "1 rows");
    refuse(-1, 2, x, 0, 1, y, 1, "-1 rows");
    refuse(3, 0, x, 0, 1, y, 1, "0 features");
    refuse(INT64_MAX, INT64_MAX, x, 0, 1, y, 1, "features");
    refuse(INT32_MAX, INT32_MAX, x, 0, 1, y, 1, "too many");
    refuse(3, 2, x, 1, 1, y, 1, "1 classes");
    refuse(3, 2, x, -1, 1, y, 1, "-1 classes");
    refuse(3, 2, x, 0, 0, y, 1, "0 numbers");
    refuse(3, 2, x, 0, 1, y, -1, "penalty = -1");
    refuse(3, 2, x, 0, 1, y, NAN, "penalty");
    refuse(3, 2, NULL, 0, 1, y, 1, "NULL");
    y[2] = 2;
    refuse(3, 2, x, 2, 1, y, 1, "row 2 has class 2");
    y[1] = 0.5;
    refuse(3, 2, x, 2, 1, y, 1, "row 1 has class 0.5");
    y[1] = y[2] = 0;
    refuse(3, 2, x, 2, 1, y, 1, "all 3 rows");
    y[1] = INFINITY;
    refuse(3, 2, x, 0, 1, y, 1, "target 0 of row 1");
    x[3] = NAN;
    refuse(3, 2, x, 0, 1, y, 1, "feature 1 of row 1");
}

static fin_status run(void *user, fin_error *err)
{
    enum { N = 12, P = 2 };
    const double *x = user;
    double y[N];
    fin_probe *probe = NULL;
    for (int i = 0; i < N; i++)
        y[i] = i % 2;
    fin_status status = fin_probe_fit(&probe, N, P, x, 0, 1, y, FIN_AUTO, err);
    fin_probe_destroy(probe);
    if (!status && !(status = fin_probe_fit(&probe, N, P, x, 2, 1, y, FIN_AUTO, err)))
        fin_probe_destroy(probe);
    return status;
}

static void fit__survives_failing_allocations(void **state)
{
    (void)state;
    double *x = normals(9, 24);
    assert_true(fault_every(run, x) >= 8);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ridge__is_scikit_learn_s),
        cmocka_unit_test(logistic__is_scikit_learn_s),
        cmocka_unit_test(fits__do_not_depend_on_units),
        cmocka_unit_test(logistic__same_bits_for_any_threads),
        cmocka_unit_test(ridge__without_penalty),
        cmocka_unit_test(fits__of_nothing),
        cmocka_unit_test(fit__refuses_what_makes_no_sense),
        cmocka_unit_test(fit__survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
