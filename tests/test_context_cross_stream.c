/* Growing, shrinking, leaving out: every short way against making the context anew. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_context_cross_help.h"

typedef struct kind {
    int form, kernel, method;
    double noise, level;
    int64_t degree;
} kind;

static const kind kinds[] = {
    {FIN_CROSS_CME, FIN_KERNEL_RBF, FIN_CROSS_DUAL, 0.1, 0, 0},
    {FIN_CROSS_CME, FIN_KERNEL_MATERN32, FIN_CROSS_AUTO, 0.02, 0.5, 0},
    {FIN_CROSS_CME, FIN_KERNEL_MATERN52, FIN_CROSS_DUAL, 0.3, 0, 0},
    {FIN_CROSS_CME, FIN_KERNEL_EXPONENTIAL, FIN_CROSS_DUAL, 0.3, 0.2, 0},
    {FIN_CROSS_CME, FIN_KERNEL_LINEAR, FIN_CROSS_PRIMAL, 0.1, 0.4, 0},
    {FIN_CROSS_CME, FIN_KERNEL_POLYNOMIAL, FIN_CROSS_PRIMAL, 0.1, 0, 0},
    {FIN_CROSS_CME, FIN_KERNEL_POLYNOMIAL, FIN_CROSS_PRIMAL, 0.5, 0.3, 4},
    {FIN_CROSS_CME, FIN_KERNEL_POLYNOMIAL, FIN_CROSS_DUAL, 0.2, 0, 0},
    {FIN_CROSS_SOFTMAX, 0, 0, 0, 0, 0},
    {FIN_CROSS_NW, FIN_KERNEL_MATERN32, 0, 0, 0, 0},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static fin_cross_settings settings_of(const kind *k)
{
    fin_cross_settings s = cross_settings(k->form, k->kernel);
    s.method = k->method;
    s.noise = k->noise;
    s.level = k->level;
    s.scale = 1.3;
    s.temperature = 0.6;
    s.prior = 1.2;
    s.degree = k->degree ? k->degree : 2;
    return s;
}

static void predict(const fin_cross *cross, const sample *x, double *mean, double *variance)
{
    fin_error err;
    if (fin_cross_predict(cross, x->m, x->queries, mean, variance, NULL, NULL, &err))
        fail_msg("%s", err.message);
}

/* The tokens from .. from+n-1 of x, borrowed. */
static sample part(const sample *x, int64_t from, int64_t n)
{
    sample p = *x;
    p.n = n;
    p.keys += from * x->dk;
    p.values += from * x->dv;
    return p;
}

static void order__does_not_matter(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        fin_cross_settings s = settings_of(&kinds[k]);
        sample x = sample_make(90, 6, 3, 2, 60), y = sample_make(90, 6, 3, 2, 60);
        for (int64_t i = 0; i < 90; i++) {
            int64_t j = 37 * i % 90;
            memcpy(y.keys + 3 * i, x.keys + 3 * j, 3 * sizeof(double));
            memcpy(y.values + 2 * i, x.values + 2 * j, 2 * sizeof(double));
        }
        double mean[2][12], variance[2][12];
        for (int way = 0; way < 2; way++) {
            fin_cross *cross = cross_make(&s, way ? &y : &x, 90, 90);
            predict(cross, &x, mean[way], variance[way]);
            fin_cross_destroy(cross);
        }
        assert_close(12, mean[0], mean[1], 1e-11);
        assert_close(12, variance[0], variance[1], 1e-11);
        sample_free(&x);
        sample_free(&y);
    }
}

/* One by one, then in lumps, against all at once; then a window that slides over twice its size. */
static void append_drop__is_load(void **state)
{
    (void)state;
    enum { N = 260, WINDOW = 60 };
    for (int k = 0; k < KINDS; k++) {
        fin_cross_settings s = settings_of(&kinds[k]);
        sample x = sample_make(N, 6, 3, 2, 70);
        double mean[2][12], variance[2][12];
        fin_cross *one = cross_make(&s, &x, WINDOW, 0);
        for (int64_t at = 0, held = 0, step = 1; at < N; at += step) {
            step = at < 100 ? 1 : at % 3 == 0 ? 13 : 7;
            step = step < N - at ? step : N - at;
            int64_t extra = held + step - WINDOW;
            if (extra > 0) {
                assert_int_equal(fin_cross_drop(one, extra, NULL), FIN_OK);
                held -= extra;
            }
            assert_int_equal(fin_cross_append(one, step, x.keys + at * 3, x.values + at * 2, NULL),
                             FIN_OK);
            held += step;
            if (at % 5)
                continue;
            sample p = part(&x, at + step - held, held);
            fin_cross *all = cross_make(&s, &p, WINDOW, held);
            predict(one, &x, mean[0], variance[0]);
            predict(all, &x, mean[1], variance[1]);
            fin_cross_destroy(all);
            assert_close(12, mean[0], mean[1], 1e-10);
            assert_close(12, variance[0], variance[1], 1e-10);
        }
        fin_cross_destroy(one);
        sample_free(&x);
    }
}

/* A token a million times the others', in and out again, leaves no trace. */
static void drop__forgets_outliers(void **state)
{
    (void)state;
    for (int k = 0; k < KINDS; k++) {
        fin_cross_settings s = settings_of(&kinds[k]);
        if (s.form != FIN_CROSS_CME || s.kernel == FIN_KERNEL_EXPONENTIAL)
            continue;
        sample x = sample_make(81, 6, 3, 2, 71);
        for (int c = 0; c < 3; c++)
            x.keys[c] *= s.method == FIN_CROSS_PRIMAL ? 1e6 : 30;
        double mean[2][12], variance[2][12];
        fin_cross *one = cross_make(&s, &x, 100, 1);
        assert_int_equal(fin_cross_append(one, 80, x.keys + 3, x.values + 2, NULL), FIN_OK);
        assert_int_equal(fin_cross_drop(one, 1, NULL), FIN_OK);
        sample p = part(&x, 1, 80);
        fin_cross *all = cross_make(&s, &p, 100, 80);
        predict(one, &x, mean[0], variance[0]);
        predict(all, &x, mean[1], variance[1]);
        assert_close(12, mean[0], mean[1], 1e-9);
        assert_close(12, variance[0], variance[1], 1e-9);
        fin_cross_destroy(one);
        fin_cross_destroy(all);
        sample_free(&x);
    }
}

/* One token alone knows a direction, and that direction is no feature's own: it leaves. */
static void drop__forgets_directions(void **state)
{
    (void)state;
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_LINEAR);
    s.method = FIN_CROSS_PRIMAL;
    enum { D = 7 };
    sample x = sample_make(40, 6, D, 2, 72);
    for (int64_t i = 0; i < 40; i++)
        for (int c = 0; c < D; c++) {
            double side = c % 2 ? -1 : 1;
            x.keys[D * i + c] = i == 0 ? 1e4 * side : 1e4 + 0.1 * x.keys[D * i + c];
        }
    double mean[2][12], variance[2][12];
    fin_cross *one = cross_make(&s, &x, 100, 40);
    assert_int_equal(fin_cross_drop(one, 1, NULL), FIN_OK);
    sample p = part(&x, 1, 39);
    fin_cross *all = cross_make(&s, &p, 100, 39);
    predict(one, &x, mean[0], variance[0]);
    predict(all, &x, mean[1], variance[1]);
    assert_close(12, mean[0], mean[1], 1e-10);
    assert_close(12, variance[0], variance[1], 1e-10);
    fin_cross_destroy(one);
    fin_cross_destroy(all);
    sample_free(&x);
}

static void loo__is_leaving_out(void **state)
{
    (void)state;
    enum { N = 45 };
    for (int k = 0; k < KINDS; k++) {
        fin_cross_settings s = settings_of(&kinds[k]);
        sample x = sample_make(N, 0, 3, 2, 80);
        double mean[2 * N], variance[2 * N], want[2 * N], rest[2 * N];
        fin_cross *all = cross_make(&s, &x, N, N);
        assert_int_equal(fin_cross_loo(all, mean, variance, NULL, NULL), FIN_OK);
        fin_cross_destroy(all);
        for (int64_t l = 0; l < N; l++) {
            sample p = part(&x, 0, l);
            fin_cross *rest_of = cross_make(&s, &p, N, l);
            assert_int_equal(fin_cross_append(rest_of, N - 1 - l, x.keys + 3 * (l + 1),
                                              x.values + 2 * (l + 1), NULL),
                             FIN_OK);
            assert_int_equal(fin_cross_predict(rest_of, 1, x.keys + 3 * l, want + 2 * l,
                                               rest + 2 * l, NULL, NULL, NULL),
                             FIN_OK);
            for (int c = 0; c < 2 && s.form == FIN_CROSS_CME; c++)
                rest[2 * l + c] += s.noise;
            fin_cross_destroy(rest_of);
        }
        double size = 1; /* a polynomial of degree 4 is far from known where it is left out */
        for (int i = 0; i < 2 * N; i++)
            size = fmax(size, rest[i]);
        assert_close(2 * N, mean, want, 1e-10 * size);
        assert_close(2 * N, variance, rest, 1e-10 * size);
        sample_free(&x);
    }
}

static void prefix__is_load_of_the_first(void **state)
{
    (void)state;
    enum { N = 300, M = 7 };
    static const int64_t lengths[] = {0, 1, 2, 17, 127, 128, 129, 256, 299, 300};
    for (int k = 0; k < KINDS; k++) {
        fin_cross_settings s = settings_of(&kinds[k]);
        sample x = sample_make(N, M, 3, 2, 90);
        double error[N + 1], score[N + 1], self[N], own[N];
        fin_cross *all = cross_make(&s, &x, N, N);
        assert_int_equal(fin_cross_prefix(all, M, x.queries, x.answers, error, score, NULL, NULL),
                         FIN_OK);
        assert_int_equal(fin_cross_prefix(all, 0, NULL, NULL, self, own, NULL, NULL), FIN_OK);
        fin_cross_destroy(all);
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            int64_t l = lengths[i];
            double mean[2 * M], variance[2 * M], e = 0, sc = 0;
            if (l == 0 && s.form != FIN_CROSS_CME) {
                assert_true(isnan(error[0]) && isnan(self[0]));
                continue;
            }
            fin_cross *first = cross_make(&s, &x, N, l);
            predict(first, &x, mean, variance);
            for (int j = 0; j < 2 * M; j++) {
                double miss = mean[j] - x.answers[j], v = variance[j] + s.noise;
                e += miss * miss / M;
                sc += 0.5 * (log(6.283185307179586 * v) + miss * miss / v) / M;
            }
            /* relative: a polynomial of degree 4 misses by hundreds where it is asked beyond the tokens */
            assert_close(1, &error[l], &e, 5e-12 * fmax(1, e));
            if (s.form == FIN_CROSS_CME)
                assert_close(1, &score[l], &sc, 1e-9);
            else
                assert_true(isnan(score[l]));
            if (l < N) {
                assert_int_equal(
                    fin_cross_predict(first, 1, x.keys + 3 * l, mean, variance, NULL, NULL, NULL),
                    FIN_OK);
                e = pow(mean[0] - x.values[2 * l], 2) + pow(mean[1] - x.values[2 * l + 1], 2);
                assert_close(1, &self[l], &e, 5e-12 * fmax(1, e));
            }
            fin_cross_destroy(first);
        }
        sample_free(&x);
    }
}

/* The chain rule: what the tokens cost one after the other is what they cost together. */
static void prefix__sums_to_evidence(void **state)
{
    (void)state;
    enum { N = 200 };
    for (int k = 0; k < KINDS; k++) {
        fin_cross_settings s = settings_of(&kinds[k]);
        if (s.form != FIN_CROSS_CME)
            continue;
        sample x = sample_make(N, 0, 3, 2, 91);
        double error[N], score[N], sum = 0, evidence;
        fin_cross *cross = cross_make(&s, &x, N, N);
        assert_int_equal(fin_cross_prefix(cross, 0, NULL, NULL, error, score, NULL, NULL), FIN_OK);
        assert_int_equal(fin_cross_evidence(cross, &evidence, NULL, NULL, NULL, NULL), FIN_OK);
        for (int l = 0; l < N; l++)
            sum -= score[l];
        assert_close(1, &sum, &evidence, 1e-9 * fabs(evidence));
        fin_cross_destroy(cross);
        sample_free(&x);
    }
}

/* ---- evidence -------------------------------------------------------------------------------- */

static double evidence_of(const fin_cross_settings *s, const double *scales, const sample *x)
{
    fin_cross *cross;
    double evidence;
    assert_int_equal(fin_cross_create(&cross, s, scales, x->dk, x->dv, x->n, NULL), FIN_OK);
    assert_int_equal(fin_cross_load(cross, x->n, x->keys, x->values, NULL, NULL), FIN_OK);
    assert_int_equal(fin_cross_evidence(cross, &evidence, NULL, NULL, NULL, NULL), FIN_OK);
    fin_cross_destroy(cross);
    return evidence;
}

/* Central differences with h = 1e-5: their error is about 1e-10 of the third derivative plus
 * 1e-16 |evidence| / h. */
static void evidence__has_its_gradient(void **state)
{
    (void)state;
    enum { N = 150, DK = 3 };
    const double h = 1e-5;
    for (int k = 0; k < KINDS; k++) {
        fin_cross_settings s = settings_of(&kinds[k]);
        if (s.form != FIN_CROSS_CME)
            continue;
        sample x = sample_make(N, 0, DK, 2, 95);
        double scales[DK] = {1.5, 0.8, 2}, gradient[3], by_column[DK], want[3], evidence;
        fin_cross *cross;
        assert_int_equal(fin_cross_create(&cross, &s, scales, DK, 2, N, NULL), FIN_OK);
        assert_int_equal(fin_cross_load(cross, N, x.keys, x.values, NULL, NULL), FIN_OK);
        assert_int_equal(fin_cross_evidence(cross, &evidence, gradient, by_column, NULL, NULL),
                         FIN_OK);
        fin_cross_destroy(cross);
        double again = evidence_of(&s, scales, &x);
        assert_true(again == evidence);
        for (int i = 0; i < 3; i++) {
            fin_cross_settings up = s, down = s;
            double *const at[2][3] = {{&up.scale, &up.prior, &up.noise},
                                      {&down.scale, &down.prior, &down.noise}};
            *at[0][i] *= exp(h);
            *at[1][i] *= exp(-h);
            want[i] = (evidence_of(&up, scales, &x) - evidence_of(&down, scales, &x)) / (2 * h);
        }
        assert_close(3, gradient, want, 1e-5);
        for (int c = 0; c < DK; c++) {
            double up[DK], down[DK];
            memcpy(up, scales, sizeof up);
            memcpy(down, scales, sizeof down);
            up[c] *= exp(h);
            down[c] *= exp(-h);
            want[c] = (evidence_of(&s, up, &x) - evidence_of(&s, down, &x)) / (2 * h);
        }
        assert_close(DK, by_column, want, 1e-5);
        sample_free(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order__does_not_matter),   cmocka_unit_test(append_drop__is_load),
        cmocka_unit_test(drop__forgets_outliers),   cmocka_unit_test(drop__forgets_directions),
        cmocka_unit_test(loo__is_leaving_out),      cmocka_unit_test(prefix__is_load_of_the_first),
        cmocka_unit_test(prefix__sums_to_evidence), cmocka_unit_test(evidence__has_its_gradient),
    };
    return cmocka_run_group_tests_name("attention_cross_stream", tests, NULL, NULL);
}
