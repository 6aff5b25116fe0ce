/* Attention to many contexts, forward: against the formulas in long double, whatever the split of
 * batch and threads, and at the edges. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_context_batch_help.h"

enum { N = 9, QUERIES = 7 * 8 + 70 };
static const int64_t lengths[N] = {1, 2, 8, 13, 40, 127, 128, 129, 5};
static const int64_t asked[N] = {8, 8, 8, 8, 8, 70, 8, 8, 0};

static const char *const kernels[KERNELS] = {"linear", "polynomial", "exponential",
                                             "rbf",    "matern32",   "matern52"};
static const char *const forms[] = {"cme", "softmax", "nw"};

static double worst_of(int64_t n, const double *got, const double *want)
{
    double worst = 0, size = 0;
    for (int64_t i = 0; i < n; i++) {
        worst = fmax(worst, got[i] == want[i] ? 0 : fabs(got[i] - want[i]));
        size = fmax(size, fabs(want[i]));
        if (isnan(got[i]))
            return NAN;
    }
    return worst / size;
}

/* Relative to the largest answer: double loses what the condition of A takes (prior k L / noise is
 * up to 1e6 with the polynomial kernel), float a few units of its last place. */
static void forward__matches_formulas(void **state)
{
    (void)state;
    static double want[QUERIES * 3], want_variance[QUERIES], got[QUERIES * 3], variance[QUERIES];
    for (int dtype = FIN_F32; dtype <= FIN_F64; dtype++) {
        contexts c = contexts_make(N, lengths, asked, 5, 3, (fin_dtype)dtype, 1);
        for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form++)
            for (int kernel = 0; kernel < KERNELS; kernel++) {
                if (form == FIN_CROSS_SOFTMAX && kernel > 0)
                    continue;
                fin_cross_settings s = cross_settings(form, kernel);
                bool has_variance = form == FIN_CROSS_CME;
                if (form == FIN_CROSS_NW && kernel < FIN_KERNEL_EXPONENTIAL)
                    continue; /* refused */
                plain_forward(&s, &c, want, want_variance);
                forward_double(&s, &c.batch, got, has_variance ? variance : NULL);
                double mean = worst_of(QUERIES * 3, got, want);
                double spread = has_variance ? worst_of(QUERIES, variance, want_variance) : 0;
                print_message("%s %s %s: %.2g, variance %.2g\n",
                              dtype == FIN_F32 ? "float" : "double", forms[form], kernels[kernel],
                              mean, spread);
                assert_true(mean < (dtype == FIN_F32 ? 2e-6 : 1e-11));
                assert_true(spread < (dtype == FIN_F32 ? 2e-6 : 1e-11));
                for (int i = 0; has_variance && i < QUERIES; i++)
                    assert_true(variance[i] >= 0);
            }
        contexts_free(&c);
    }
}

/* More tokens than a core's cache holds the matrix of, more queries than a block. */
static void forward__of_long_contexts_matches_formulas(void **state)
{
    (void)state;
    const int64_t L[2] = {300, 3}, m[2] = {2, 400};
    static double want[402], want_variance[402], got[402], variance[402];
    for (int dtype = FIN_F32; dtype <= FIN_F64; dtype++) {
        contexts c = contexts_make(2, L, m, 6, 1, (fin_dtype)dtype, 2);
        for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form++) {
            fin_cross_settings s = cross_settings(form, FIN_KERNEL_RBF);
            bool cme = form == FIN_CROSS_CME;
            plain_forward(&s, &c, want, want_variance);
            forward_double(&s, &c.batch, got, cme ? variance : NULL);
            double tolerance = dtype == FIN_F32 ? 2e-6 : 1e-11;
            assert_true(worst_of(402, got, want) < tolerance);
            assert_true(!cme || worst_of(402, variance, want_variance) < tolerance);
        }
        contexts_free(&c);
    }
}

/* By tokens and by features: fewer than tokens, more, and more than a small matrix has rows. */
static void forward__primal_is_dual(void **state)
{
    (void)state;
    enum { M = 3 };
    const int64_t L[3] = {4, 40, 300}, m[3] = {M, M, M};
    const struct {
        int kernel;
        int64_t dk, degree;
        double offset, level;
    } cases[] = {{FIN_KERNEL_LINEAR, 5, 1, 0, 0.3},
                 {FIN_KERNEL_LINEAR, 5, 1, 0, 0},
                 {FIN_KERNEL_POLYNOMIAL, 5, 2, 1, 0},
                 {FIN_KERNEL_POLYNOMIAL, 5, 3, 0, 0.2},
                 {FIN_KERNEL_POLYNOMIAL, 11, 3, 2, 0.1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        contexts c = contexts_make(3, L, m, cases[i].dk, 2, FIN_F64, 3);
        fin_cross_settings s = cross_settings(FIN_CROSS_CME, cases[i].kernel);
        double out[3][3 * M * 2], variance[3][3 * M];
        s.degree = cases[i].degree;
        s.offset = cases[i].offset;
        s.level = cases[i].level;
        for (int method = FIN_CROSS_AUTO; method <= FIN_CROSS_PRIMAL; method++) {
            s.method = method;
            forward_double(&s, &c.batch, out[method], variance[method]);
        }
        for (int method = FIN_CROSS_AUTO; method <= FIN_CROSS_PRIMAL; method += 2) {
            double mean = worst_of(3 * M * 2, out[method], out[FIN_CROSS_DUAL]);
            double spread = worst_of(3 * M, variance[method], variance[FIN_CROSS_DUAL]);
            print_message("case %d, method %d: %.2g, variance %.2g\n", (int)i, method, mean,
                          spread);
            assert_true(mean < 1e-10 && spread < 1e-10);
        }
        contexts_free(&c);
    }
}

/* Every context alone, and all together by several threads. */
static void forward__same_bytes_for_any_split(void **state)
{
    (void)state;
    static unsigned char all[QUERIES * 3 * 8], other[QUERIES * 3 * 8];
    for (int dtype = FIN_F32; dtype <= FIN_F64; dtype++) {
        contexts c = contexts_make(N, lengths, asked, 5, 3, (fin_dtype)dtype, 4);
        size_t size = dtype == FIN_F32 ? 4 : 8, row = 3 * size;
        for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form++) {
            fin_cross_settings s = cross_settings(form, FIN_KERNEL_MATERN32);
            fin_threads_set(1);
            assert_int_equal(fin_cross_forward(&s, &c.batch, all, NULL, NULL), FIN_OK);
            for (int threads = 2; threads <= 5; threads++) {
                memset(other, 0, sizeof other);
                fin_threads_set(threads);
                assert_int_equal(fin_cross_forward(&s, &c.batch, other, NULL, NULL), FIN_OK);
                assert_memory_equal(all, other, QUERIES * row);
            }
            for (int i = 0; i < N; i++) {
                const int64_t L[2] = {0, lengths[i]}, m[2] = {0, asked[i]};
                fin_cross_batch one = c.batch;
                size_t token = (size_t)c.offsets[i], query = (size_t)c.query_offsets[i];
                one.n = 1;
                one.offsets = L;
                one.query_offsets = m;
                one.keys = (const char *)one.keys + token * 5 * size;
                one.values = (const char *)one.values + token * row;
                one.queries = (const char *)one.queries + query * 5 * size;
                assert_int_equal(fin_cross_forward(&s, &one, other, NULL, NULL), FIN_OK);
                assert_memory_equal(all + query * row, other, (size_t)asked[i] * row);
            }
        }
        contexts_free(&c);
    }
    fin_threads_set(0);
}

/* A common offset of keys and queries does not matter, even one that is large beside the scale. */
static void forward__loses_nothing_far_from_the_origin(void **state)
{
    (void)state;
    const double shift = 0x1p20, grain = 0x1p-12; /* sums are exact in double */
    static double near_out[QUERIES * 3], far_out[QUERIES * 3];
    contexts c = contexts_make(N, lengths, asked, 5, 3, FIN_F64, 6);
    contexts far = contexts_make(N, lengths, asked, 5, 3, FIN_F64, 6);
    for (int64_t i = 0; i < c.offsets[N] * 5; i++)
        far.keys[i] = (c.keys[i] = grain * round(c.keys[i] / grain)) + shift;
    for (int64_t i = 0; i < QUERIES * 5; i++)
        far.queries[i] = (c.queries[i] = grain * round(c.queries[i] / grain)) + shift;
    for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form += 2)
        for (int kernel = FIN_KERNEL_RBF; kernel < KERNELS; kernel++) {
            fin_cross_settings s = cross_settings(form, kernel);
            s.scale = 0.3;
            forward_double(&s, &c.batch, near_out, NULL);
            forward_double(&s, &far.batch, far_out, NULL);
            assert_true(worst_of(QUERIES * 3, far_out, near_out) < 1e-12);
        }
    contexts_free(&c);
    contexts_free(&far);
}

static void refused(const fin_cross_settings *s, const fin_cross_batch *b, void *variance,
                    fin_status want, const char *words)
{
    static double out[QUERIES * 3];
    fin_error err = {FIN_OK, ""};
    fin_status status = fin_cross_forward(s, b, out, variance, &err);
    if (status != want || !strstr(err.message, words))
        fail_msg("'%s' instead of '%s'; message '%s', wanted '%s'", fin_status_name(status),
                 fin_status_name(want), err.message, words);
    assert_int_equal(fin_cross_forward(s, b, out, variance, NULL), want);
}

static void forward__refuses_bad_arguments(void **state)
{
    (void)state;
    contexts c = contexts_make(N, lengths, asked, 5, 3, FIN_F64, 7);
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_RBF), t = s;
    fin_cross_batch b = c.batch;
    static double variance[QUERIES];
    t.scale = NAN;
    refused(&t, &b, NULL, FIN_ERR_ARGUMENT, "scale");
    t = s, t.method = FIN_CROSS_NYSTROM;
    refused(&t, &b, NULL, FIN_ERR_UNSUPPORTED, "nystrom");
    t = s, t.method = FIN_CROSS_PRIMAL;
    refused(&t, &b, NULL, FIN_ERR_UNSUPPORTED, "linear or polynomial");
    t.kernel = FIN_KERNEL_POLYNOMIAL, t.degree = 30;
    refused(&t, &b, NULL, FIN_ERR_UNSUPPORTED, "features");
    assert_int_equal(fin_cross_forward(&s, &b, NULL, NULL, NULL), FIN_ERR_ARGUMENT);
    t = s, t.form = FIN_CROSS_SOFTMAX;
    refused(&t, &b, variance, FIN_ERR_UNSUPPORTED, "variance");
    b.n = -1;
    refused(&s, &b, NULL, FIN_ERR_ARGUMENT, "n = -1");
    b = c.batch, b.dk = 0;
    refused(&s, &b, NULL, FIN_ERR_ARGUMENT, "dk = 0");
    b = c.batch, b.dv = INT64_MAX;
    refused(&s, &b, NULL, FIN_ERR_ARGUMENT, "dv");
    b = c.batch, b.dtype = FIN_I32;
    refused(&s, &b, NULL, FIN_ERR_ARGUMENT, "FIN_F64");
    b = c.batch, b.keys = NULL;
    refused(&s, &b, NULL, FIN_ERR_ARGUMENT, "missing");
    b = c.batch, b.offsets = NULL;
    refused(&s, &b, NULL, FIN_ERR_ARGUMENT, "offsets of tokens");
    int64_t falling[N + 1], high[N + 1];
    memcpy(falling, c.offsets, sizeof falling);
    falling[3] = 0;
    b = c.batch, b.offsets = falling;
    refused(&s, &b, NULL, FIN_ERR_ARGUMENT, "context 2");
    memcpy(high, c.query_offsets, sizeof high);
    high[N] = INT64_MAX;
    b = c.batch, b.query_offsets = high;
    refused(&s, &b, NULL, FIN_ERR_ARGUMENT, "queries");
    high[N] = INT64_C(1) << 55;
    refused(&s, &b, NULL, FIN_ERR_ARGUMENT, "2^56");
    /* A million tokens by tokens: the numbers, and what to do instead. */
    int64_t million[2] = {0, 1000000}, one[2] = {0, 1};
    b = (fin_cross_batch){1, 5, 3, FIN_F64, million, one, c.keys, c.values, c.queries};
    refused(&s, &b, NULL, FIN_ERR_UNSUPPORTED, "1000000 tokens");
    contexts_free(&c);
}

static void forward__refuses_bad_numbers(void **state)
{
    (void)state;
    for (int dtype = FIN_F32; dtype <= FIN_F64; dtype++) {
        contexts c = contexts_make(N, lengths, asked, 5, 3, (fin_dtype)dtype, 8);
        fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_RBF);
        const double bad[] = {NAN, INFINITY, -INFINITY};
        for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form++)
            for (int i = 0; i < 3; i++) {
                int64_t at = (c.offsets[3] + 7) * 5 + 4; /* token 7 of context 3 */
                s.form = form;
                double was = c.keys[at];
                c.keys[at] = bad[i], c.keys_f[at] = (float)bad[i];
                refused(&s, &c.batch, NULL, FIN_ERR_ARGUMENT, "the key of token 7 of context 3");
                c.keys[at] = was, c.keys_f[at] = (float)was;
                at = c.offsets[4] * 3, was = c.values[at];
                c.values[at] = bad[i], c.values_f[at] = (float)bad[i];
                refused(&s, &c.batch, NULL, FIN_ERR_ARGUMENT, "the value of token 0 of context 4");
                c.values[at] = was, c.values_f[at] = (float)was;
                at = (c.query_offsets[N] - 1) * 5, was = c.queries[at];
                c.queries[at] = bad[i], c.queries_f[at] = (float)bad[i];
                refused(&s, &c.batch, NULL, FIN_ERR_ARGUMENT, "query 7 of context 7");
                c.queries[at] = was, c.queries_f[at] = (float)was;
            }
        contexts_free(&c);
    }
}

/* If several contexts fail, the first is named, whatever the threads do. */
static void forward__names_the_first_context_that_fails(void **state)
{
    (void)state;
    enum { MANY = 40 };
    int64_t L[MANY], m[MANY];
    for (int i = 0; i < MANY; i++) {
        L[i] = i == 7 ? 60 : 2; /* the first to fail is the last to be done */
        m[i] = 1;
    }
    contexts c = contexts_make(MANY, L, m, 1, 1, FIN_F64, 9);
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_RBF);
    s.noise = 0;
    for (int i = 7; i < MANY; i++)
        c.keys[c.offsets[i + 1] - 1] = c.keys[c.offsets[i + 1] - 2];
    for (int threads = 1; threads <= 4; threads++) {
        double out[MANY];
        fin_error err = {FIN_OK, ""};
        fin_threads_set(threads);
        assert_int_equal(fin_cross_forward(&s, &c.batch, out, NULL, &err), FIN_ERR_NUMERIC);
        assert_non_null(strstr(err.message, "context 7:"));
    }
    contexts_free(&c);
    /* And the first query of it: two blocks of one context fail. */
    const int64_t L1 = 1, m1 = 2000;
    c = contexts_make(1, &L1, &m1, 1, 1, FIN_F64, 9);
    s = cross_settings(FIN_CROSS_SOFTMAX, FIN_KERNEL_RBF);
    c.keys[0] = c.queries[300] = c.queries[500] = c.queries[1999] = 1e200;
    for (int threads = 1; threads <= 4; threads++)
        for (int again = 0; again < 20; again++) {
            static double out[2000];
            fin_error err = {FIN_OK, ""};
            fin_threads_set(threads);
            assert_int_equal(fin_cross_forward(&s, &c.batch, out, NULL, &err), FIN_ERR_NUMERIC);
            assert_non_null(strstr(err.message, "query 300:"));
        }
    fin_threads_set(0);
    contexts_free(&c);
}

static fin_status run(void *user, fin_error *err)
{
    static double out[QUERIES * 3];
    contexts *c = user;
    for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form++) {
        int kernel = form == FIN_CROSS_CME ? FIN_KERNEL_POLYNOMIAL : FIN_KERNEL_RBF;
        fin_cross_settings s = cross_settings(form, kernel);
        fin_status status = fin_cross_forward(&s, &c->batch, out, NULL, err);
        if (status)
            return status;
    }
    return FIN_OK;
}

static void forward__survives_failing_allocations(void **state)
{
    (void)state;
    contexts c = contexts_make(N, lengths, asked, 5, 3, FIN_F64, 10);
    for (int threads = 1; threads <= 2; threads++) {
        fin_threads_set(threads);
        assert_true(fault_every(run, &c) >= 6);
    }
    fin_threads_set(0);
    contexts_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward__matches_formulas),
        cmocka_unit_test(forward__of_long_contexts_matches_formulas),
        cmocka_unit_test(forward__primal_is_dual),
        cmocka_unit_test(forward__same_bytes_for_any_split),
        cmocka_unit_test(forward__loses_nothing_far_from_the_origin),
        cmocka_unit_test(forward__refuses_bad_arguments),
        cmocka_unit_test(forward__refuses_bad_numbers),
        cmocka_unit_test(forward__names_the_first_context_that_fails),
        cmocka_unit_test(forward__survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("attention_batch", tests, NULL, NULL);
}
