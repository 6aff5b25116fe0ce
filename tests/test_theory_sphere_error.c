/* The errors of attention on the sphere: limits, identities, and simulated attention.
 *
 * The formulas are of first order in 1/L, so simulations are held to |z| < 5 on top of a
 * share of the formula, given with each case and no larger than rho/L for softmax, Gamma^2/L^2
 * for cme: the sizes of what they leave out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/math.h"
#include "finetti/random.h"
#include "finetti/theory_latent.h"
#include "test_random_stats.h"
#include "theory/sphere.h"

#include <stdio.h>
#include <string.h>

enum { LMAX = 512, DMAX = 4, QUERIES = 8 };

static const double noise = 0.09;

/* Degrees 1 and 2, one number: m(k) = k_1 + (k_2^2 - 1/d). */
static double truth(int d, const double *k)
{
    return k[0] + k[1] * k[1] - 1.0 / d;
}

static void powers(int d, double power[3])
{
    power[0] = 0;
    power[1] = 1.0 / d;
    power[2] = 3.0 / (d * (d + 2)) - 1.0 / (d * d);
}

static double product(int d, const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < d; i++)
        sum += a[i] * b[i];
    return sum;
}

typedef struct context {
    int d, L;
    double kappa, lam; /* lam < 0: softmax */
    double k[LMAX][DMAX], v[LMAX], C[LMAX][LMAX], x[LMAX];
} context;

static double score(const context *c, const double *a, const double *b)
{
    return exp(c->kappa * (product(c->d, a, b) - 1));
}

/* x = (G + lam)^-1 v by Cholesky, row by row: slow and plain. */
static void solve(context *c)
{
    for (int i = 0; i < c->L; i++) {
        for (int j = 0; j <= i; j++) {
            double sum = score(c, c->k[i], c->k[j]) + (i == j ? c->lam : 0);
            for (int m = 0; m < j; m++)
                sum -= c->C[i][m] * c->C[j][m];
            c->C[i][j] = i == j ? sqrt(sum) : sum / c->C[j][j];
        }
        c->x[i] = c->v[i];
        for (int m = 0; m < i; m++)
            c->x[i] -= c->C[i][m] * c->x[m];
        c->x[i] /= c->C[i][i];
    }
    for (int i = c->L - 1; i >= 0; i--) {
        c->x[i] /= c->C[i][i];
        for (int m = 0; m < i; m++)
            c->x[m] -= c->C[i][m] * c->x[i];
    }
}

static double attend(const context *c, const double *q)
{
    double sum = 0, total = 0;
    for (int i = 0; i < c->L; i++) {
        double w = score(c, q, c->k[i]);
        sum += w * (c->lam < 0 ? c->v[i] : c->x[i]);
        total += w;
    }
    return c->lam < 0 ? sum / total : sum;
}

static void check(int d, double kappa, double lam, int L, int contexts, double share)
{
    static context c;
    double power[3], q[DMAX];
    stats_mean mean = {0};
    char what[96];
    fin_random r;
    c.d = d;
    c.L = L;
    c.kappa = kappa;
    c.lam = lam;
    powers(d, power);
    for (int n = 0; n < contexts; n++) {
        double error = 0;
        fin_random_open(&r, 31, 2000, (uint64_t)n);
        for (int i = 0; i < L; i++) {
            fin_random_sphere(&r, d, c.k[i]);
            c.v[i] = truth(d, c.k[i]) + sqrt(noise) * fin_random_normal(&r);
        }
        if (lam >= 0)
            solve(&c);
        for (int i = 0; i < QUERIES; i++) {
            fin_random_sphere(&r, d, q);
            error += pow(attend(&c, q) - truth(d, q), 2);
        }
        stats_add(&mean, error / QUERIES);
    }
    fini_sphere_error e = lam < 0 ? fini_sphere_error_softmax(d, kappa, L, power, 2, 1, noise)
                                  : fini_sphere_error_cme(d, kappa, lam, L, power, 2, 1, noise);
    double want = e.bias + e.variance, got = mean.sum / mean.n;
    double spread = sqrt((mean.squares / mean.n - got * got) / mean.n);
    double excess = fmax(0, fabs(got - want) - share * want);
    snprintf(what, sizeof what, "d = %d, kappa = %g, lam = %g, L = %d: %.5f (%.5f)", d, kappa, lam,
             L, got, want);
    print_message("%s +- %.5f\n", what, spread);
    stats_z(what, excess / spread);
}

static void softmax__errs_as_predicted(void **state)
{
    (void)state;
    stats_begin();
    check(2, 2, -1, 64, 16000, 0.01); /* its bias of order 1/L is 3 % here */
    check(3, 2, -1, 64, 3000, 0.03);
    check(3, 4, -1, 256, 1500, 0.015);
    check(4, 3, -1, 256, 1500, 0.011);
    stats_end("softmax");
}

static void cme__errs_as_predicted(void **state)
{
    (void)state;
    stats_begin();
    check(2, 3, 0.1, 64, 5000, 0.02); /* dv noise/L sum N f^2 alone is 13 % less */
    check(2, 3, 6.4, 64, 1200, 0.004);
    check(3, 3, 6.4, 64, 1200, 0.008);
    check(3, 3, 0.1, 256, 60, 0.02);
    check(4, 1, 2, 64, 1200, 0.016);
    stats_end("cme");
}

/* Rescaled softmax for a linear concept is what temperature.c writes out. */
static void softmax__contains_the_temperature_curve(void **state)
{
    (void)state;
    for (int64_t d = 2; d < 12; d += 3)
        for (double kappa = 0.01; kappa < 1e7; kappa *= 9) {
            const double power[2] = {0, 3 * 0.7};
            double A = fini_sphere_mean(d, kappa);
            fini_sphere_error e = fini_sphere_error_softmax(d, kappa, 1000, power, 1, 3, 0.2);
            double want = fini_temperature_error(d, kappa, 3, 0.2, 0.7);
            assert_true(fabs(1000 * e.variance / A / A / want - 1) < 1e-12);
        }
}

/* L large: squared bias sum_l power_l (1 - f_l)^2; L variance by the delta method. */
static void errors__have_their_limits(void **state)
{
    (void)state;
    const double power[4] = {0.5, 1, 0.3, 0.2}, kappa = 3, alpha = 0.05, L = 1e10;
    fini_sphere_error s = fini_sphere_error_softmax(3, kappa, (int64_t)L, power, 3, 2, noise);
    fini_sphere_error c =
        fini_sphere_error_cme(3, kappa, alpha * L, (int64_t)L, power, 3, 2, noise);
    double soft = 0, bias = 0, second = 0, influence = 0;
    for (int l = 0; l < 4; l++) {
        double a = fini_sphere_filter_softmax(3, kappa, l),
               f = fini_sphere_filter_cme(3, kappa, alpha, l);
        soft += power[l] * (1 - a) * (1 - a);
        bias += power[l] * (1 - f) * (1 - f);
        influence += power[l] * f * f * (1 - f) * (1 - f);
    }
    for (int l = 0; l < 60; l++)
        second +=
            fini_sphere_multiplicity(3, l) * pow(fini_sphere_filter_cme(3, kappa, alpha, l), 2);
    assert_true(fabs(s.bias / soft - 1) < 1e-8 && fabs(c.bias / bias - 1) < 1e-8);
    assert_true(fabs(c.variance * L / ((2 * noise + bias) * second - influence) - 1) < 1e-7);
    /* 1/L of the way to the limit: f (1-f) Gamma (the delta method: Gamma - f) */
    double L1 = 1e5, f = fini_sphere_filter_cme(3, kappa, alpha, 1);
    const double one[2] = {0, 1};
    c = fini_sphere_error_cme(3, kappa, alpha * L1, (int64_t)L1, one, 1, 2, noise);
    double slope = (sqrt(c.bias) - (1 - f)) * L1;
    double gamma = fini_sphere_dimension(3, kappa, alpha);
    assert_true(fabs(slope / (f * (1 - f) * gamma) - 1) < 1e-2);
    /* no signal asked for, no power given */
    c = fini_sphere_error_cme(3, kappa, 1, 100, NULL, -1, 2, noise);
    assert_true(c.bias == 0 && c.variance > 0);
    /* no ridge at all: the effective one is where Gamma(a) = L, and the error stays finite */
    c = fini_sphere_error_cme(3, kappa, 0, 20, power, 3, 2, noise);
    assert_true(isfinite(c.bias) && c.variance > 0 && isfinite(c.variance));
    /* a sharp kernel on many tokens keeps its digits: rho/L ((d-1)/(2 kappa) + noise), d = 2 */
    s = fini_sphere_error_softmax(2, 1e9, INT64_C(1) << 60, one, 1, 1, 0);
    double rho = sqrt(3.14159265358979323846 * 1e9), want = rho / 0x1p60 / 2e9;
    assert_true(fabs(s.variance / want - 1) < 1e-8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(softmax__errs_as_predicted),
        cmocka_unit_test(cme__errs_as_predicted),
        cmocka_unit_test(softmax__contains_the_temperature_curve),
        cmocka_unit_test(errors__have_their_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
