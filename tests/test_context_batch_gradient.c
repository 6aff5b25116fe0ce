/* Attention to many contexts, backward: against differences of the forward pass, in double for
 * every form and kernel; float against double. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_context_batch_help.h"

enum { N = 5, DK = 3, DV = 2 };
static const int64_t lengths[N] = {1, 7, 0, 12, 5};
static const int64_t asked[N] = {2, 3, 0, 5, 0};
static const char *const kernels[KERNELS] = {"linear", "polynomial", "exponential",
                                             "rbf",    "matern32",   "matern52"};
static const char *const forms[] = {"cme", "softmax", "nw"};

typedef struct problem {
    contexts c;
    int64_t tokens, queries;
    double *dout; /* the loss is dout.out */
} problem;

static problem problem_make(fin_dtype dtype, uint64_t seed)
{
    problem p = {.c = contexts_make(N, lengths, asked, DK, DV, dtype, seed)};
    p.tokens = p.c.offsets[N];
    p.queries = p.c.query_offsets[N];
    p.dout = draw_numbers(p.queries * DV, 1, seed, 3);
    return p;
}

static void problem_free(problem *p)
{
    contexts_free(&p->c);
    free(p->dout);
}

static double loss(const fin_cross_settings *s, const problem *p)
{
    double out[64], sum = 0;
    forward_double(s, &p->c.batch, out, NULL);
    for (int64_t i = 0; i < p->queries * DV; i++)
        sum += out[i] * p->dout[i];
    return sum;
}

/* d loss / dx by differences of fourth order: error about (eps / h + h^4) of the loss's size. */
static double difference(const fin_cross_settings *s, const problem *p, double *x)
{
    const double h = 1e-3, was = *x;
    double f[4];
    for (int i = 0; i < 4; i++) {
        *x = was + h * (i < 2 ? i - 2 : i - 1);
        f[i] = loss(s, p);
    }
    *x = was;
    return (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h);
}

static double by_logarithm(const fin_cross_settings *s, const problem *p, size_t field)
{
    const double h = 1e-3;
    double f[4];
    for (int i = 0; i < 4; i++) {
        fin_cross_settings other = *s;
        double *x = (double *)(void *)((char *)&other + field);
        *x *= exp(h * (i < 2 ? i - 2 : i - 1));
        f[i] = loss(&other, p);
    }
    return (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h);
}

static double check_array(const fin_cross_settings *s, const problem *p, int64_t n, double *x,
                          const double *got)
{
    double worst = 0;
    for (int64_t i = 0; i < n; i++)
        worst = fmax(worst, fabs(got[i] - 1 - difference(s, p, x + i)));
    return worst;
}

/* Gradients are added to what is there: 1. */
static void fill(double *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = 1;
}

static bool is_tried(int form, int kernel)
{
    return form == FIN_CROSS_CME || kernel == FIN_KERNEL_RBF || /* softmax has no kernel */
           (form == FIN_CROSS_NW && kernel >= FIN_KERNEL_EXPONENTIAL);
}

static void check_gradient(const fin_cross_settings *s, problem *p)
{
    static double keys[64 * DK], values[64 * DV], queries[64 * DK];
    fin_cross_gradient g = {keys, values, queries, 1, 1, 1, 1};
    fin_error err = {FIN_OK, ""};
    fill(keys, p->tokens * DK);
    fill(values, p->tokens * DV);
    fill(queries, p->queries * DK);
    if (fin_cross_backward(s, &p->c.batch, p->dout, &g, &err))
        fail_msg("%s", err.message);
    double error[7] = {
        check_array(s, p, p->tokens * DK, p->c.keys, keys),
        check_array(s, p, p->tokens * DV, p->c.values, values),
        check_array(s, p, p->queries * DK, p->c.queries, queries),
        fabs(g.log_scale - 1 - by_logarithm(s, p, offsetof(fin_cross_settings, scale))),
        fabs(g.log_noise - 1 - by_logarithm(s, p, offsetof(fin_cross_settings, noise))),
        fabs(g.log_prior - 1 - by_logarithm(s, p, offsetof(fin_cross_settings, prior))),
        fabs(g.log_temperature - 1 - by_logarithm(s, p, offsetof(fin_cross_settings, temperature))),
    };
    print_message("%s %s:", forms[s->form], kernels[s->kernel]);
    for (int i = 0; i < 7; i++)
        print_message(" %.1e", error[i]);
    print_message("\n");
    for (int i = 0; i < 7; i++)
        assert_true(error[i] < 1e-8);
}

static void backward__matches_differences(void **state)
{
    (void)state;
    fin_threads_set(1); /* many tiny calls */
    problem p = problem_make(FIN_F64, 2);
    for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form++)
        for (int kernel = 0; kernel < KERNELS; kernel++)
            if (is_tried(form, kernel)) {
                fin_cross_settings s = cross_settings(form, kernel);
                check_gradient(&s, &p);
            }
    problem_free(&p);
    fin_threads_set(0);
}

/* A context longer than a tile and one longer than a small matrix, with more queries than a
 * chunk: along a direction, since differences number by number would take long. */
typedef struct along {
    contexts c;
    int64_t sizes[3];
    double *x[3], *start[3], *direction[3], *gradient[3], *dout, *out;
} along;

static along along_make(int64_t dk, int64_t dv)
{
    const int64_t L[2] = {140, 270}, m[2] = {70, 5};
    along a = {.c = contexts_make(2, L, m, dk, dv, FIN_F64, 3)};
    int64_t sizes[3] = {410 * dk, 410 * dv, 75 * dk};
    double *x[3] = {a.c.keys, a.c.values, a.c.queries};
    for (int i = 0; i < 3; i++) {
        size_t bytes = (size_t)sizes[i] * sizeof(double);
        a.sizes[i] = sizes[i];
        a.x[i] = x[i];
        a.start[i] = memcpy(malloc(bytes), x[i], bytes);
        a.direction[i] = draw_numbers(sizes[i], 0.1, 3, 10 + (uint64_t)i);
        a.gradient[i] = calloc((size_t)sizes[i], sizeof(double));
    }
    a.dout = draw_numbers(75 * dv, 1, 3, 20);
    a.out = malloc((size_t)(75 * dv) * sizeof(double));
    return a;
}

static void along_free(along *a)
{
    for (int i = 0; i < 3; i++) {
        free(a->start[i]);
        free(a->direction[i]);
        free(a->gradient[i]);
    }
    free(a->dout);
    free(a->out);
    contexts_free(&a->c);
}

static double loss_at(const fin_cross_settings *s, along *a, int which, double step)
{
    double sum = 0;
    for (int64_t i = 0; i < a->sizes[which]; i++)
        a->x[which][i] = a->start[which][i] + step * a->direction[which][i];
    forward_double(s, &a->c.batch, a->out, NULL);
    for (int64_t i = 0; i < 75 * a->c.batch.dv; i++)
        sum += a->out[i] * a->dout[i];
    memcpy(a->x[which], a->start[which], (size_t)a->sizes[which] * sizeof(double));
    return sum;
}

static void backward__of_long_contexts_matches_differences(void **state)
{
    (void)state;
    const struct {
        int form, kernel;
    } cases[] = {{FIN_CROSS_CME, FIN_KERNEL_RBF},
                 {FIN_CROSS_CME, FIN_KERNEL_LINEAR},
                 {FIN_CROSS_CME, FIN_KERNEL_POLYNOMIAL},
                 {FIN_CROSS_SOFTMAX, FIN_KERNEL_RBF},
                 {FIN_CROSS_NW, FIN_KERNEL_MATERN52}};
    along a = along_make(3, 9);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fin_cross_settings s = cross_settings(cases[k].form, cases[k].kernel);
        fin_cross_gradient g = {a.gradient[0], a.gradient[1], a.gradient[2], 0, 0, 0, 0};
        fin_error err = {FIN_OK, ""};
        s.degree = 2;
        for (int i = 0; i < 3; i++)
            memset(a.gradient[i], 0, (size_t)a.sizes[i] * sizeof(double));
        if (fin_cross_backward(&s, &a.c.batch, a.dout, &g, &err))
            fail_msg("%s", err.message);
        for (int i = 0; i < 3; i++) {
            const double h = 1e-3;
            double want = (loss_at(&s, &a, i, -2 * h) - 8 * loss_at(&s, &a, i, -h) +
                           8 * loss_at(&s, &a, i, h) - loss_at(&s, &a, i, 2 * h)) /
                          (12 * h),
                   got = 0;
            for (int64_t j = 0; j < a.sizes[i]; j++)
                got += a.gradient[i][j] * a.direction[i][j];
            print_message("%s %s, %d: %.9g, differences %.9g\n", forms[s.form], kernels[s.kernel],
                          i, got, want);
            assert_true(fabs(got - want) < 1e-7 * (1 + fabs(want)));
        }
    }
    along_free(&a);
}

/* Float gradients are those of double at the same numbers, rounded: what is added to is exact. */
static void backward__of_floats_is_that_of_doubles(void **state)
{
    (void)state;
    problem f = problem_make(FIN_F32, 4), d = problem_make(FIN_F32, 4);
    d.c.batch.dtype = FIN_F64; /* the very same numbers */
    d.c.batch.keys = d.c.keys;
    d.c.batch.values = d.c.values;
    d.c.batch.queries = d.c.queries;
    float dout[64];
    for (int64_t i = 0; i < f.queries * DV; i++)
        d.dout[i] = (double)(dout[i] = (float)f.dout[i]);
    for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form++) {
        fin_cross_settings s = cross_settings(form, FIN_KERNEL_RBF);
        float kf[64 * DK] = {0}, vf[64 * DV] = {0}, qf[64 * DK] = {0};
        double kd[64 * DK] = {0}, vd[64 * DV] = {0}, qd[64 * DK] = {0};
        fin_cross_gradient gf = {kf, vf, qf, 0, 0, 0, 0}, gd = {kd, vd, qd, 0, 0, 0, 0};
        assert_int_equal(fin_cross_backward(&s, &f.c.batch, dout, &gf, NULL), FIN_OK);
        assert_int_equal(fin_cross_backward(&s, &d.c.batch, d.dout, &gd, NULL), FIN_OK);
        for (int64_t i = 0; i < f.tokens * DK; i++)
            assert_true(kf[i] == (float)kd[i]);
        for (int64_t i = 0; i < f.tokens * DV; i++)
            assert_true(vf[i] == (float)vd[i]);
        for (int64_t i = 0; i < f.queries * DK; i++)
            assert_true(qf[i] == (float)qd[i]);
        assert_true(gf.log_scale == gd.log_scale && gf.log_noise == gd.log_noise &&
                    gf.log_prior == gd.log_prior && gf.log_temperature == gd.log_temperature);
    }
    problem_free(&f);
    problem_free(&d);
}

/* Any may be left out, and nothing else changes; threads do not matter. */
static void backward__same_bytes_for_any_threads_and_wishes(void **state)
{
    (void)state;
    problem p = problem_make(FIN_F64, 5);
    for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form++)
        for (int kernel = FIN_KERNEL_LINEAR; kernel <= FIN_KERNEL_RBF; kernel += 3) {
            fin_cross_settings s = cross_settings(form, kernel);
            if (form != FIN_CROSS_CME && kernel == FIN_KERNEL_LINEAR)
                continue;
            double all[3][64 * DK] = {{0}};
            fin_cross_gradient g = {all[0], all[1], all[2], 0, 0, 0, 0};
            fin_threads_set(1);
            assert_int_equal(fin_cross_backward(&s, &p.c.batch, p.dout, &g, NULL), FIN_OK);
            for (int wish = 0; wish < 8; wish++) {
                double some[3][64 * DK] = {{0}};
                fin_cross_gradient h = {wish & 1 ? some[0] : NULL,
                                        wish & 2 ? some[1] : NULL,
                                        wish & 4 ? some[2] : NULL,
                                        0,
                                        0,
                                        0,
                                        0};
                fin_threads_set(1 + wish % 4);
                assert_int_equal(fin_cross_backward(&s, &p.c.batch, p.dout, &h, NULL), FIN_OK);
                for (int i = 0; i < 3; i++)
                    if (wish >> i & 1)
                        assert_memory_equal(all[i], some[i], sizeof some[i]);
                assert_memory_equal(&g.log_scale, &h.log_scale, 4 * sizeof(double));
            }
        }
    fin_threads_set(0);
    problem_free(&p);
}

/* Equal keys make the distance 0, where matern's root has no derivative but the kernel has: 0. */
static void backward__at_distance_zero(void **state)
{
    (void)state;
    const int64_t L[2] = {0, 2}, m[2] = {0, 1};
    const double keys[2] = {1, 1}, values[2] = {3, 3}, query = 1, dout = 1;
    for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form += 2)
        for (int kernel = FIN_KERNEL_RBF; kernel < KERNELS; kernel++) {
            fin_cross_settings s = cross_settings(form, kernel);
            fin_cross_batch b = {1, 1, 1, FIN_F64, L, m, keys, values, &query};
            double dk[2] = {0}, dq = 0;
            fin_cross_gradient g = {.keys = dk, .queries = &dq};
            assert_int_equal(fin_cross_backward(&s, &b, &dout, &g, NULL), FIN_OK);
            assert_true(dk[0] == 0 && dk[1] == 0 && dq == 0 && g.log_scale == 0);
        }
}

static void backward__refuses(void **state)
{
    (void)state;
    problem p = problem_make(FIN_F64, 6);
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_RBF);
    fin_cross_gradient g = {0};
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_cross_backward(&s, &p.c.batch, NULL, &g, &err), FIN_ERR_ARGUMENT);
    fin_cross_batch hostile = p.c.batch;
    hostile.n = -1;
    assert_int_equal(fin_cross_backward(&s, &hostile, NULL, &g, &err), FIN_ERR_ARGUMENT);
    s.form = FIN_CROSS_NW, s.kernel = FIN_KERNEL_LINEAR;
    assert_int_equal(fin_cross_backward(&s, &p.c.batch, p.dout, &g, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "linear"));
    s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_RBF);
    p.dout[DV * 3 + 1] = NAN; /* query 1 of context 1 */
    assert_int_equal(fin_cross_backward(&s, &p.c.batch, p.dout, &g, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "query 1 of context 1"));
    p.dout[DV * 3 + 1] = 0;
    s.method = FIN_CROSS_NYSTROM;
    assert_int_equal(fin_cross_backward(&s, &p.c.batch, p.dout, &g, &err), FIN_ERR_UNSUPPORTED);
    s.method = FIN_CROSS_AUTO;
    s.prior = -1;
    assert_int_equal(fin_cross_backward(&s, &p.c.batch, p.dout, &g, &err), FIN_ERR_ARGUMENT);
    s = cross_settings(FIN_CROSS_SOFTMAX, FIN_KERNEL_RBF);
    s.temperature = 1e-100;
    for (int64_t i = 0; i < p.tokens * DK; i++)
        p.c.keys[i] *= 1e300;
    assert_int_equal(fin_cross_backward(&s, &p.c.batch, p.dout, &g, &err), FIN_ERR_NUMERIC);
    assert_true(g.log_temperature == 0);
    problem_free(&p);
}

static fin_status run(void *user, fin_error *err)
{
    problem *p = user;
    fin_cross_gradient g = {0};
    for (int form = FIN_CROSS_CME; form <= FIN_CROSS_NW; form++)
        for (int kernel = FIN_KERNEL_RBF; kernel >= FIN_KERNEL_LINEAR; kernel -= 3) {
            fin_cross_settings s = cross_settings(form, form == FIN_CROSS_CME ? kernel : 3);
            fin_status status = fin_cross_backward(&s, &p->c.batch, p->dout, &g, err);
            if (status)
                return status;
        }
    return FIN_OK;
}

static void backward__survives_failing_allocations(void **state)
{
    (void)state;
    problem p = problem_make(FIN_F64, 7);
    fin_threads_set(1);
    assert_true(fault_every(run, &p) >= 9);
    fin_threads_set(0);
    problem_free(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(backward__matches_differences),
        cmocka_unit_test(backward__of_long_contexts_matches_differences),
        cmocka_unit_test(backward__of_floats_is_that_of_doubles),
        cmocka_unit_test(backward__same_bytes_for_any_threads_and_wishes),
        cmocka_unit_test(backward__at_distance_zero),
        cmocka_unit_test(backward__refuses),
        cmocka_unit_test(backward__survives_failing_allocations),
    };
    return cmocka_run_group_tests_name("attention_batch_gradient", tests, NULL, NULL);
}
