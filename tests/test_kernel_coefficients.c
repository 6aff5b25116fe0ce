/* The tables of coefficients.h against the functions they stand for, in long double: every
 * polynomial keeps the error that is written above it, every rule integrates what it should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "kernel/coefficients.h"

#include <math.h>
#include <stdio.h>

enum { POINTS = 1000 };

typedef struct table {
    const char *name;
    int n;
    const float *f32; /* one of the two */
    const double *f64;
    long double low, high; /* of the argument u */
    /* (value, argument of the polynomial, what it is multiplied by, what is added) of u */
    void (*at)(long double u, long double *want, long double *x, long double *times,
               long double *plus);
    double error; /* relative, as it stands in coefficients.h */
} table;

/* -2 log(1-f) = 2f + f^2 + f^3 P(f) */
static void log_32(long double f, long double *want, long double *x, long double *times,
                   long double *plus)
{
    *want = -2 * log1pl(-f);
    *x = f;
    *times = f * f * f;
    *plus = 2 * f + f * f;
}

/* log(1+f) = 2s + s z Q(z), s = f/(2+f), z = s^2 */
static void log_64(long double f, long double *want, long double *x, long double *times,
                   long double *plus)
{
    long double s = f / (2 + f);
    *want = log1pl(f);
    *x = s * s;
    *times = s * *x;
    *plus = 2 * s;
}

static void sine(long double u, long double *want, long double *x, long double *times,
                 long double *plus)
{
    *want = sinl(u);
    *x = u * u;
    *times = u * *x;
    *plus = u;
}

static void cosine(long double u, long double *want, long double *x, long double *times,
                   long double *plus)
{
    *want = cosl(u);
    *x = *times = u * u;
    *plus = 1;
}

static void exponential(long double u, long double *want, long double *x, long double *times,
                        long double *plus)
{
    *want = expl(u);
    *x = u;
    *times = u * u;
    *plus = 1 + u;
}

/* (1 + 2x) exp(x^2) erfc(x) = P(t), t = (x - 3.75)/(x + 3.75) */
static void erfcx(long double u, long double *want, long double *x, long double *times,
                  long double *plus)
{
    *want = (1 + 2 * u) * expl(u * u) * erfcl(u);
    *x = (u - 3.75L) / (u + 3.75L);
    *times = 1;
    *plus = 0;
}

static void erf_near(long double u, long double *want, long double *x, long double *times,
                     long double *plus)
{
    *want = erfl(u);
    *x = u * u;
    *times = u;
    *plus = 0;
}

static void erfc_far(long double u, long double *want, long double *x, long double *times,
                     long double *plus)
{
    *want = erfcl(u);
    *x = u - 2.5L;
    *times = expl(-u * u);
    *plus = 0;
}

#define QUARTER 0.785398163397448309616L  /* pi/4 */
#define HALF_LOG 0.346573590279972654709L /* log(2)/2 */
static const table tables[] = {
    {"log_f32", 7, fini_log_f32, NULL, -0.41421356L, 0.29289321L, log_32, 1.2e-7},
    {"log_f64", 7, NULL, fini_log_f64, -0.29289321L, 0.41421356L, log_64, 4.3e-18},
    {"sin_f32", 3, fini_sin_f32, NULL, -QUARTER, QUARTER, sine, 1.3e-8},
    {"cos_f32", 4, fini_cos_f32, NULL, -QUARTER, QUARTER, cosine, 2.5e-10},
    {"sin_f64", 6, NULL, fini_sin_f64, -QUARTER, QUARTER, sine, 1.3e-17},
    {"cos_f64", 7, NULL, fini_cos_f64, -QUARTER, QUARTER, cosine, 1.6e-19},
    {"exp_f32", 5, fini_exp_f32, NULL, -HALF_LOG, HALF_LOG, exponential, 9.7e-9},
    {"exp_f64", 10, NULL, fini_exp_f64, -HALF_LOG, HALF_LOG, exponential, 1.5e-17},
    {"erfcx_f64", 24, NULL, fini_erfcx_f64, 0, 25, erfcx, 4.8e-17},
    {"erf_f32", 7, fini_erf_f32, NULL, -1, 1, erf_near, 1.3e-9},
    {"erfc_f32", 11, fini_erfc_f32, NULL, 1, 4, erfc_far, 1.8e-7},
};

/* What is promised, and half a unit in the last place of every coefficient. The reference has an
 * error, too: exp(x^2) that of x^2, some 1e-16 where a long double is no longer than a double. */
static void polynomials__keep_their_error_in_long_double(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof tables / sizeof *tables; k++) {
        const table *t = &tables[k];
        long double worst = 0;
        for (int i = 0; i <= POINTS; i++) {
            long double u = t->low + (t->high - t->low) * i / POINTS, want, x, times, plus;
            long double value = 0, size = 0, slack = sizeof(long double) > 8 ? 1e-16L : 1e-12L;
            t->at(u, &want, &x, &times, &plus);
            for (int j = t->n - 1; j >= 0; j--) {
                long double c = t->f32 ? t->f32[j] : t->f64[j];
                value = value * x + c;
                size = size * fabsl(x) + fabsl(c);
            }
            long double rounding = (t->f32 ? 0x1p-24L : 0x1p-53L) * size * fabsl(times);
            long double bound = (1.1L * (long double)t->error + slack) * fabsl(want) + rounding;
            long double off = fabsl(plus + times * value - want);
            if (!(off <= bound))
                fail_msg("%s at %.6Lg: off by %.3Lg of %.6Lg, at most %.3Lg", t->name, u, off, want,
                         bound);
            worst = bound > 0 ? fmaxl(worst, off / bound) : worst;
        }
        printf("%s: %.2Lf of the error that is allowed\n", t->name, worst);
    }
}

/* n nodes are exact up to degree 2n - 1: sum w x^k = 1 / (k + 1) on [0, 1]. */
static void check_rule(int n, const double *node, const double *weight)
{
    for (int k = 0; k < 2 * n; k++) {
        long double sum = 0;
        for (int i = 0; i < n; i++)
            sum += weight[i] * powl(node[i], k);
        if (!(fabsl(sum - 1 / (long double)(k + 1)) < 4e-16L))
            fail_msg("%d nodes, degree %d: off by %.3Lg", n, k, sum - 1 / (long double)(k + 1));
    }
    for (int i = 0; i < n; i++) {
        assert_true(i == 0 || node[i] > node[i - 1]);
        assert_true(fabs(node[i] + node[n - 1 - i] - 1) < 2e-16);
        assert_true(fabs(weight[i] - weight[n - 1 - i]) < 2e-17);
    }
}

static void legendre__is_exact_in_long_double(void **state)
{
    (void)state;
    check_rule(FINI_LEGENDRE, fini_legendre_node, fini_legendre_weight);
    check_rule(4, fini_legendre_node_4, fini_legendre_weight_4);
    check_rule(8, fini_legendre_node_8, fini_legendre_weight_8);
    check_rule(14, fini_legendre_node_14, fini_legendre_weight_14);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(polynomials__keep_their_error_in_long_double),
        cmocka_unit_test(legendre__is_exact_in_long_double),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
