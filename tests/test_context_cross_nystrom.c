/* Landmarks: exact where all tokens are landmarks, never too sure of itself where they are not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_context_cross_help.h"

static fin_cross_settings landmarks(int kernel, int64_t count, double noise)
{
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, kernel);
    s.method = FIN_CROSS_NYSTROM;
    s.landmarks = count;
    s.noise = noise;
    return s;
}

/* Values of a smooth function with noise. */
static sample smooth(int64_t n, int64_t m, uint64_t seed)
{
    sample x = sample_make(n, m, 2, 1, seed);
    for (int64_t i = 0; i < n; i++)
        x.values[i] = sin(2 * x.keys[2 * i]) + cos(x.keys[2 * i + 1]) + 0.1 * x.values[i];
    return x;
}

/* With as many landmarks as tokens nothing is left out: all answers are the dual ones. */
static void all_landmarks__are_exact(void **state)
{
    (void)state;
    const int kernels[] = {FIN_KERNEL_RBF, FIN_KERNEL_MATERN32, FIN_KERNEL_LINEAR};
    for (int k = 0; k < 3; k++) {
        enum { N = 150, M = 9 };
        sample x = smooth(N, M, 30);
        double got[2][6][N + 1], gradient[3];
        memset(got, 0, sizeof got);
        for (int way = 0; way < 2; way++) {
            fin_cross_settings s = landmarks(kernels[k], N, 0.05);
            s.level = 0.3;
            s.method = way ? FIN_CROSS_NYSTROM : FIN_CROSS_DUAL;
            fin_cross *cross = cross_make(&s, &x, N, N);
            double(*g)[N + 1] = got[way], error[N + 1];
            assert_int_equal(fin_cross_predict(cross, M, x.queries, g[0], g[1], NULL, NULL, NULL),
                             FIN_OK);
            assert_int_equal(fin_cross_loo(cross, g[2], g[3], NULL, NULL), FIN_OK);
            assert_int_equal(
                fin_cross_prefix(cross, M, x.queries, x.answers, error, g[4], NULL, NULL), FIN_OK);
            assert_int_equal(fin_cross_evidence(cross, g[5], NULL, NULL, NULL, NULL), FIN_OK);
            fin_cross_info info;
            fin_cross_get_info(cross, &info);
            if (way) {
                assert_true(info.residual < 1e-8 && info.features <= N && info.features > 0);
                assert_int_equal(fin_cross_evidence(cross, g[5], gradient, NULL, NULL, NULL),
                                 FIN_ERR_UNSUPPORTED);
            }
            fin_cross_destroy(cross);
        }
        /* a landmark is left out if 1e-10 of its prior variance is all it adds */
        for (int i = 0; i < 6; i++)
            assert_close(N + 1, got[0][i], got[1][i], i == 5 ? 1e-5 : 1e-6);
        sample_free(&x);
    }
}

/* Fewer landmarks: the variance covers the error, the error falls, and `moved` says so. */
static void fewer_landmarks__are_judged(void **state)
{
    (void)state;
    enum { N = 1500, M = 400 };
    sample x = smooth(N, M, 31);
    double *mean = numbers(M), *variance = numbers(M), *exact = numbers(M), *rest = numbers(M);
    fin_cross_settings s = landmarks(FIN_KERNEL_MATERN32, 0, 0.01);
    s.method = FIN_CROSS_DUAL;
    s.landmarks = 1;
    fin_cross *cross = cross_make(&s, &x, N, N);
    assert_int_equal(fin_cross_predict(cross, M, x.queries, exact, rest, NULL, NULL, NULL), FIN_OK);
    fin_cross_destroy(cross);
    double before = INFINITY, unseen = INFINITY;
    for (int64_t count = 50; count <= 800; count *= 4) {
        s = landmarks(FIN_KERNEL_MATERN32, count, 0.01);
        cross = cross_make(&s, &x, N, N);
        assert_int_equal(fin_cross_predict(cross, M, x.queries, mean, variance, NULL, NULL, NULL),
                         FIN_OK);
        fin_cross_info info;
        fin_cross_get_info(cross, &info);
        double off = 0, spread = 0, z = 0, ratio = 0, least = INFINITY;
        for (int i = 0; i < M; i++) {
            off += pow(mean[i] - exact[i], 2) / M;
            spread += pow(exact[i], 2) / M;
            z += (pow(mean[i] - exact[i], 2) + rest[i]) / variance[i] / M;
            ratio += variance[i] / rest[i] / M;
            least = fmin(least, variance[i] / rest[i]);
        }
        off = sqrt(off / spread);
        printf("variance over the exact one: %.3g on average, at least %.3g; z^2 %.3g\n", ratio,
               least, z);
        /* The truth is off by (mean - exact)^2 + rest in expectation: covered on average here,
         * though at a single query the variance may be a few times too small. */
        assert_true(ratio > 1 && z < 1.5 && least > 0.1);
        printf("%d landmarks: residual %.3g, moved %.3g, error %.3g\n", (int)count, info.residual,
               info.moved, off);
        assert_true(off < before && info.residual < unseen && info.residual > 0);
        assert_true(off < 3 * info.moved && info.moved < 30 * off);
        before = off;
        unseen = info.residual;
        fin_cross_destroy(cross);
    }
    free(mean), free(variance), free(exact), free(rest);
    sample_free(&x);
}

/* A token that is left out is known no better than when it is there; its value has noise on top. */
static void loo__is_not_too_sure(void **state)
{
    (void)state;
    enum { N = 300 };
    sample x = smooth(N, 0, 35);
    double mean[N], variance[N], known[N];
    fin_cross_settings s = landmarks(FIN_KERNEL_MATERN32, 10, 0.01);
    fin_cross *cross = cross_make(&s, &x, N, N);
    assert_int_equal(fin_cross_loo(cross, mean, variance, NULL, NULL), FIN_OK);
    assert_int_equal(fin_cross_predict(cross, N, x.keys, mean, known, NULL, NULL, NULL), FIN_OK);
    for (int i = 0; i < N; i++)
        assert_true(variance[i] >= (known[i] + s.noise) * (1 - 1e-12));
    fin_cross_destroy(cross);
    sample_free(&x);
}

/* Appending keeps up: as if loaded with landmarks of its own. A window slides. */
static void append_drop__stay_close(void **state)
{
    (void)state;
    enum { N = 700, M = 50 };
    sample x = smooth(N, M, 32);
    double mean[M], want[M], variance[M];
    fin_cross_settings s = landmarks(FIN_KERNEL_RBF, 60, 0.01);
    fin_cross *one = cross_make(&s, &x, N, 0), *all = cross_make(&s, &x, N, N);
    for (int64_t i = 0; i < N; i++)
        assert_int_equal(fin_cross_append(one, 1, x.keys + 2 * i, x.values + i, NULL), FIN_OK);
    assert_int_equal(fin_cross_predict(one, M, x.queries, mean, variance, NULL, NULL, NULL),
                     FIN_OK);
    assert_int_equal(fin_cross_predict(all, M, x.queries, want, NULL, NULL, NULL, NULL), FIN_OK);
    double off = 0;
    for (int i = 0; i < M; i++)
        off += pow(mean[i] - want[i], 2) / M;
    printf("appended and loaded differ by %.3g\n", sqrt(off));
    assert_true(sqrt(off) < 0.15); /* the noise is 0.1, the values' spread about 1 */
    for (int i = 0; i < 500; i++)
        assert_int_equal(fin_cross_drop(one, 1, NULL), FIN_OK);
    fin_cross_info info;
    fin_cross_get_info(one, &info);
    assert_true(info.tokens == 200 && info.features > 0);
    fin_cross_destroy(all);
    fin_cross_settings dual = s;
    dual.method = FIN_CROSS_DUAL;
    sample last = x;
    last.keys += 2 * 500;
    last.values += 500;
    all = cross_make(&dual, &last, 200, 200);
    assert_int_equal(fin_cross_predict(one, M, x.queries, mean, variance, NULL, NULL, NULL),
                     FIN_OK);
    assert_int_equal(fin_cross_predict(all, M, x.queries, want, NULL, NULL, NULL, NULL), FIN_OK);
    for (int i = 0; i < M; i++)
        assert_true(fabs(mean[i] - want[i]) < 0.1 + 4 * sqrt(variance[i]));
    fin_cross_destroy(one);
    fin_cross_destroy(all);
    sample_free(&x);
}

/* A window that moves away from where its landmarks were chosen: they follow, and as far as they
 * have not the residual says so. */
static void landmarks__follow_a_window(void **state)
{
    (void)state;
    enum { WINDOW = 100, N = 400 };
    fin_cross_settings s = landmarks(FIN_KERNEL_RBF, 60, 0.01);
    double keys[N], values[N], mean, variance, least = INFINITY, most = 0;
    for (int i = 0; i < N; i++) {
        keys[i] = 0.2 * i;
        values[i] = sin(keys[i]);
    }
    sample x = {N, 1, 1, 1, keys, values, NULL, NULL};
    fin_cross *cross = cross_make(&s, &x, WINDOW, WINDOW);
    for (int i = WINDOW; i < N; i++) {
        fin_cross_info info;
        assert_int_equal(fin_cross_drop(cross, 1, NULL), FIN_OK);
        assert_int_equal(fin_cross_append(cross, 1, keys + i, values + i, NULL), FIN_OK);
        const double *old = keys + i - WINDOW / 2;
        assert_int_equal(fin_cross_predict(cross, 1, old, &mean, &variance, NULL, NULL, NULL),
                         FIN_OK);
        assert_true(fabs(mean - sin(*old)) < 0.05 && variance < 0.05);
        fin_cross_get_info(cross, &info);
        least = fmin(least, info.residual);
        most = fmax(most, info.residual);
    }
    printf("residual from %.3g to %.3g\n", least, most);
    /* up to 25 of 125 tokens lie beyond the landmarks, all but the nearest unseen */
    assert_true(least < 1e-6 && most > 0.1 && most < 0.2);
    fin_cross_destroy(cross);
}

/* The seed chooses the landmarks, and nothing else does. Equal tokens are one landmark. */
static void seed__chooses(void **state)
{
    (void)state;
    enum { N = 500, M = 5 };
    sample x = smooth(N, M, 33);
    double mean[3][M];
    for (int i = 0; i < 3; i++) {
        fin_cross_settings s = landmarks(FIN_KERNEL_RBF, 20, 0.01);
        s.seed = i == 2 ? 7 : 3;
        fin_cross *cross = cross_make(&s, &x, N, N);
        assert_int_equal(fin_cross_predict(cross, M, x.queries, mean[i], NULL, NULL, NULL, NULL),
                         FIN_OK);
        fin_cross_destroy(cross);
    }
    assert_memory_equal(mean[0], mean[1], sizeof mean[0]);
    assert_true(worst(M, mean[0], mean[2]) > 0);
    for (int64_t i = 0; i < 2 * N; i++)
        x.keys[i] = (double)(i % 2 ? i / 2 % 5 : 0);
    fin_cross_settings s = landmarks(FIN_KERNEL_MATERN32, 100, 0.01);
    fin_cross *cross = cross_make(&s, &x, N, N);
    fin_cross_info info;
    fin_cross_get_info(cross, &info);
    assert_int_equal(info.features, 5);
    assert_true(info.residual < 1e-12);
    fin_cross_destroy(cross);
    sample_free(&x);
}

/* Many tokens in bounded memory: the tokens themselves and a few matrices of landmarks. */
static void many_tokens__fit(void **state)
{
    (void)state;
    enum { N = 200000, M = 20 };
    sample x = smooth(N, M, 34);
    fin_cross_settings s = landmarks(FIN_KERNEL_RBF, 40, 0.01);
    fin_cross *cross = cross_make(&s, &x, N, N);
    fin_cross_info info;
    fin_cross_get_info(cross, &info);
    assert_true(info.bytes < 8.0 * 3 * N * 1.3 + 1e6);
    double mean[M], variance[M];
    assert_int_equal(fin_cross_predict(cross, M, x.queries, mean, variance, NULL, NULL, NULL),
                     FIN_OK);
    for (int i = 0; i < M; i++) {
        double truth = sin(2 * x.queries[2 * i]) + cos(x.queries[2 * i + 1]);
        assert_true(fabs(mean[i] - truth) < 0.1 + 5 * sqrt(variance[i]));
    }
    fin_cross_destroy(cross);
    sample_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_landmarks__are_exact),   cmocka_unit_test(fewer_landmarks__are_judged),
        cmocka_unit_test(loo__is_not_too_sure),       cmocka_unit_test(append_drop__stay_close),
        cmocka_unit_test(landmarks__follow_a_window), cmocka_unit_test(seed__chooses),
        cmocka_unit_test(many_tokens__fit),
    };
    return cmocka_run_group_tests_name("attention_cross_nystrom", tests, NULL, NULL);
}
