/* Several heads: independent blocks of the latent, one head by hand, gradients by differences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_context_batch_help.h"

enum { H = 3, D = 4, DK = 2, DV = 2, OUT = 5, N = 3, TOKENS = 14, QUERIES = 5 };
static const int64_t offsets[N + 1] = {0, 5, 6, TOKENS}, query_offsets[N + 1] = {0, 2, 3, QUERIES};

typedef struct model {
    fin_cross_settings settings[H];
    double *Q, *K, *V, *W, *tokens, *queries, *dout;
    fin_heads heads;
    fin_heads_batch batch;
} model;

static model model_make(bool with_W)
{
    model m = {.Q = draw_numbers(H * DK * D, 0.5, 7, 0),
               .K = draw_numbers(H * DK * D, 0.5, 7, 1),
               .V = draw_numbers(H * DV * D, 0.5, 7, 2),
               .W = draw_numbers(OUT * H * DV, 0.5, 7, 3),
               .tokens = draw_numbers(TOKENS * D, 1, 7, 4),
               .queries = draw_numbers(QUERIES * D, 1, 7, 5),
               .dout = draw_numbers(QUERIES * H * DV, 1, 7, 6)};
    m.settings[0] = cross_settings(FIN_CROSS_CME, FIN_KERNEL_RBF);
    m.settings[1] = cross_settings(FIN_CROSS_SOFTMAX, FIN_KERNEL_RBF);
    m.settings[2] = cross_settings(FIN_CROSS_NW, FIN_KERNEL_MATERN52);
    m.heads =
        (fin_heads){H, D, DK, DV, with_W ? OUT : H * DV, NULL, m.Q, m.K, m.V, with_W ? m.W : NULL};
    m.batch = (fin_heads_batch){N, offsets, query_offsets, m.tokens, m.queries};
    return m;
}

static void model_free(model *m)
{
    double *all[] = {m->Q, m->K, m->V, m->W, m->tokens, m->queries, m->dout};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void must(fin_status status, const fin_error *err)
{
    if (status)
        fail_msg("%s", err->message);
}

static double loss(model *m)
{
    double out[QUERIES * H * DV], sum = 0;
    fin_error err = {FIN_OK, ""};
    m->heads.settings = m->settings;
    must(fin_heads_forward(&m->heads, &m->batch, out, &err), &err);
    for (int64_t i = 0; i < QUERIES * m->heads.out; i++)
        sum += out[i] * m->dout[i];
    return sum;
}

static double difference(model *m, double *x, bool logarithm)
{
    const double h = 2e-4, was = *x;
    double f[4];
    for (int i = 0; i < 4; i++) {
        double step = h * (i < 2 ? i - 2 : i - 1);
        *x = logarithm ? was * exp(step) : was + step;
        f[i] = loss(m);
    }
    *x = was;
    return (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h);
}

static void check_array(model *m, const char *what, int64_t n, double *x, const double *got)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, fabs(got[i] - 1 - difference(m, x + i, false)));
    print_message("%s: %.1e\n", what, worst);
    assert_true(worst < 1e-9);
}

static void backward__matches_differences(void **state)
{
    (void)state;
    for (int with_W = 0; with_W < 2; with_W++) {
        model m = model_make(with_W);
        double Q[H * DK * D], K[H * DK * D], V[H * DV * D], W[OUT * H * DV], tokens[TOKENS * D],
            queries[QUERIES * D], hyper[H * 4];
        double *all[] = {Q, K, V, W, tokens, queries, hyper};
        const int64_t sizes[] = {H * DK * D, H * DK * D,  H * DV * D, OUT * H * DV,
                                 TOKENS * D, QUERIES * D, H * 4};
        for (int a = 0; a < 7; a++) /* gradients are added to what is there */
            for (int64_t i = 0; i < sizes[a]; i++)
                all[a][i] = 1;
        fin_heads_gradient g = {Q, K, V, W, tokens, queries, hyper};
        fin_error err = {FIN_OK, ""};
        m.heads.settings = m.settings;
        must(fin_heads_backward(&m.heads, &m.batch, m.dout, &g, &err), &err);
        check_array(&m, "Q", sizes[0], m.Q, Q);
        check_array(&m, "K", sizes[1], m.K, K);
        check_array(&m, "V", sizes[2], m.V, V);
        check_array(&m, "tokens", sizes[4], m.tokens, tokens);
        check_array(&m, "queries", sizes[5], m.queries, queries);
        if (with_W)
            check_array(&m, "W", sizes[3], m.W, W);
        for (int h = 0; h < H; h++) {
            fin_cross_settings *s = m.settings + h;
            double *fields[4] = {&s->scale, &s->noise, &s->prior, &s->temperature};
            for (int i = 0; i < 4; i++)
                assert_true(fabs(hyper[h * 4 + i] - 1 - difference(&m, fields[i], true)) < 1e-9);
        }
        model_free(&m);
    }
}

/* Without W the heads' answers stand side by side, each what the head alone says. */
static void forward__is_every_head_beside_the_others(void **state)
{
    (void)state;
    model m = model_make(false);
    double out[QUERIES * H * DV], alone[QUERIES * DV], keys[TOKENS * DK], values[TOKENS * DV],
        queries[QUERIES * DK];
    fin_error err = {FIN_OK, ""};
    m.heads.settings = m.settings;
    must(fin_heads_forward(&m.heads, &m.batch, out, &err), &err);
    for (int h = 0; h < H; h++) {
        for (int i = 0; i < TOKENS; i++)
            for (int k = 0; k < DK; k++) {
                keys[i * DK + k] = values[i * DV + k] = 0;
                for (int d = 0; d < D; d++) {
                    keys[i * DK + k] += m.K[(h * DK + k) * D + d] * m.tokens[i * D + d];
                    values[i * DV + k] += m.V[(h * DV + k) * D + d] * m.tokens[i * D + d];
                }
            }
        for (int i = 0; i < QUERIES; i++)
            for (int k = 0; k < DK; k++) {
                queries[i * DK + k] = 0;
                for (int d = 0; d < D; d++)
                    queries[i * DK + k] += m.Q[(h * DK + k) * D + d] * m.queries[i * D + d];
            }
        fin_cross_batch b = {N, DK, DV, FIN_F64, offsets, query_offsets, keys, values, queries};
        must(fin_cross_forward(m.settings + h, &b, alone, NULL, &err), &err);
        for (int i = 0; i < QUERIES; i++)
            for (int j = 0; j < DV; j++)
                assert_true(fabs(alone[i * DV + j] - out[(i * H + h) * DV + j]) < 1e-13);
    }
    model_free(&m);
}

/* Section 2.1 of the theory: tokens x = (k_1, v_1, k_2, v_2, k_3, v_3), v_h = Z_h k_h + noise_h
 * with independent Z_h and noise_h, each with a variance of its own. The joint posterior mean of
 * all Z k_q is that of the heads, each looking at its own block; one head with the joint kernel
 * sum k_h.k_h' is not. */
static void forward__of_independent_blocks_is_the_joint_posterior(void **state)
{
    (void)state;
    enum { BK = 3, BV = 2, WIDTH = H * (BK + BV), L = 20, M = 4, JOINT = L * H * BV };
    const double noise[H] = {0.1, 0.5, 0.02}, prior[H] = {1, 0.3, 2};
    double Q[H * BK * WIDTH] = {0}, K[H * BK * WIDTH] = {0}, V[H * BV * WIDTH] = {0};
    fin_cross_settings s[H];
    for (int h = 0; h < H; h++) {
        for (int k = 0; k < BK; k++)
            Q[(h * BK + k) * WIDTH + h * (BK + BV) + k] =
                K[(h * BK + k) * WIDTH + h * (BK + BV) + k] = 1;
        for (int k = 0; k < BV; k++)
            V[(h * BV + k) * WIDTH + h * (BK + BV) + BK + k] = 1;
        fin_settings_defaults(&fin_cross_table, s + h, sizeof *s);
        s[h].kernel = FIN_KERNEL_LINEAR;
        s[h].noise = noise[h];
        s[h].prior = prior[h];
    }
    double *x = draw_numbers(L * WIDTH, 1, 8, 0), *q = draw_numbers(M * WIDTH, 1, 8, 1);
    const int64_t tokens[2] = {0, L}, asked[2] = {0, M};
    fin_heads heads = {H, WIDTH, BK, BV, H * BV, s, Q, K, V, NULL};
    fin_heads_batch batch = {1, tokens, asked, x, q};
    double out[M * H * BV], worst = 0;
    fin_error err = {FIN_OK, ""};
    must(fin_heads_forward(&heads, &batch, out, &err), &err);

    /* All L H BV values as one Gaussian vector, entry (l, h, c), and condition on it. */
    long double *A = calloc((size_t)JOINT * JOINT, sizeof *A), *v = malloc(JOINT * sizeof *v);
    for (int a = 0; a < JOINT; a++) {
        int l = a / (H * BV), h = a / BV % H, c = a % BV;
        v[a] = x[l * WIDTH + h * (BK + BV) + BK + c];
        for (int b = 0; b < JOINT; b++)
            if (b % (H * BV) == a % (H * BV)) { /* same head and column: the same row of Z */
                for (int k = 0; k < BK; k++)
                    A[a * JOINT + b] += (long double)prior[h] * x[l * WIDTH + h * (BK + BV) + k] *
                                        x[b / (H * BV) * WIDTH + h * (BK + BV) + k];
                A[a * JOINT + b] += a == b ? noise[h] : 0;
            }
    }
    plain_solve(JOINT, A, 1, v);
    for (int i = 0; i < M; i++)
        for (int j = 0; j < H * BV; j++) {
            long double mean = 0;
            for (int l = 0; l < L; l++)
                for (int k = 0; k < BK; k++)
                    mean += prior[j / BV] * (long double)q[i * WIDTH + j / BV * (BK + BV) + k] *
                            x[l * WIDTH + j / BV * (BK + BV) + k] * v[l * H * BV + j];
            worst = fmax(worst, fabs(out[i * H * BV + j] - (double)mean));
        }
    print_message("joint posterior: %.2g\n", worst);
    assert_true(worst < 1e-12);
    free(A);
    free(v);
    free(x);
    free(q);
}

static void calls__refuse(void **state)
{
    (void)state;
    model m = model_make(true);
    double out[QUERIES * H * DV];
    fin_error err = {FIN_OK, ""};
    m.heads.settings = m.settings;
    fin_heads bad = m.heads;
    bad.H = 0;
    assert_int_equal(fin_heads_forward(&bad, &m.batch, out, &err), FIN_ERR_ARGUMENT);
    bad = m.heads;
    bad.dv = INT64_C(1) << 40;
    assert_int_equal(fin_heads_forward(&bad, &m.batch, out, &err), FIN_ERR_ARGUMENT);
    const int64_t far[2] = {0, INT64_C(1) << 35};
    fin_heads_batch many = {1, far, far, m.tokens, m.queries};
    bad = m.heads; /* more numbers than can be counted */
    bad.H = 1 << 12, bad.dv = 1 << 18;
    assert_int_equal(fin_heads_forward(&bad, &many, out, &err), FIN_ERR_ARGUMENT);
    /* 2^56 numbers in all answers are the most: only the tokens are missing then. */
    for (int past = 0; past < 2; past++) {
        const int64_t edge[2] = {0, (INT64_C(1) << 26) + past};
        many = (fin_heads_batch){1, edge, edge, NULL, NULL};
        assert_int_equal(fin_heads_forward(&bad, &many, out, &err), FIN_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, past ? "2^56 numbers" : "missing"));
    }
    bad.H = bad.dv = 1 << 20;
    assert_int_equal(fin_heads_forward(&bad, &m.batch, out, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_heads_forward(&m.heads, &m.batch, NULL, &err), FIN_ERR_ARGUMENT);
    bad = m.heads;
    bad.W = NULL; /* then out must be H dv */
    assert_int_equal(fin_heads_forward(&bad, &m.batch, out, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "H dv"));
    bad = m.heads;
    bad.K = NULL;
    assert_int_equal(fin_heads_forward(&bad, &m.batch, out, &err), FIN_ERR_ARGUMENT);
    fin_heads_batch none = m.batch;
    none.tokens = NULL;
    assert_int_equal(fin_heads_forward(&m.heads, &none, out, &err), FIN_ERR_ARGUMENT);
    none = m.batch;
    none.n = -1;
    assert_int_equal(fin_heads_forward(&m.heads, &none, out, &err), FIN_ERR_ARGUMENT);
    fin_heads_gradient g = {0};
    assert_int_equal(fin_heads_backward(&m.heads, &m.batch, NULL, &g, &err), FIN_ERR_ARGUMENT);
    m.settings[1].temperature = NAN;
    assert_int_equal(fin_heads_forward(&m.heads, &m.batch, out, &err), FIN_ERR_ARGUMENT);
    m.settings[1].temperature = 1;
    m.tokens[3] = NAN;
    assert_int_equal(fin_heads_forward(&m.heads, &m.batch, out, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_heads_backward(&m.heads, &m.batch, m.dout, &g, NULL), FIN_ERR_ARGUMENT);
    model_free(&m);
}

/* No contexts, no queries, any gradient left out. */
static void calls__take_nothing(void **state)
{
    (void)state;
    model m = model_make(true);
    const int64_t zero[N + 1] = {0};
    double out[1];
    fin_error err = {FIN_OK, ""};
    m.heads.settings = m.settings;
    fin_heads_gradient g = {0};
    fin_heads_batch none = {0, zero, zero, NULL, NULL}, unasked = m.batch;
    must(fin_heads_forward(&m.heads, &none, out, &err), &err);
    must(fin_heads_backward(&m.heads, &none, out, &g, &err), &err);
    unasked.query_offsets = zero;
    must(fin_heads_forward(&m.heads, &unasked, out, &err), &err);
    must(fin_heads_backward(&m.heads, &unasked, NULL, &g, &err), &err);
    must(fin_heads_backward(&m.heads, &m.batch, m.dout, &g, &err), &err);
    model_free(&m);
}

static fin_status run(void *user, fin_error *err)
{
    model *m = user;
    double out[QUERIES * H * DV], Q[H * DK * D] = {0};
    fin_heads_gradient g = {.Q = Q};
    fin_status status = fin_heads_forward(&m->heads, &m->batch, out, err);
    return status ? status : fin_heads_backward(&m->heads, &m->batch, m->dout, &g, err);
}

static void calls__survive_failing_allocations(void **state)
{
    (void)state;
    model m = model_make(true);
    m.heads.settings = m.settings;
    fin_threads_set(1);
    assert_true(fault_every(run, &m) > 2);
    fin_threads_set(0);
    model_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backward__matches_differences),
        cmocka_unit_test(forward__is_every_head_beside_the_others),
        cmocka_unit_test(forward__of_independent_blocks_is_the_joint_posterior),
        cmocka_unit_test(calls__refuse),
        cmocka_unit_test(calls__take_nothing),
        cmocka_unit_test(calls__survive_failing_allocations),
    };
    return cmocka_run_group_tests_name("attention_heads", tests, NULL, NULL);
}
