/* Learning curves: against the reference, against the fields of a bag drawn as they are defined, and in the limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti.h"
#include "theory/learning.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static fin_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call)                                                                                  \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)

static fini_learning curve(double snr, int64_t L, double eps, double alpha)
{
    fini_learning found;
    OK(fini_learning_curve(&(fini_learning_task){.snr = snr, .eps = eps, .alpha = alpha, .L = L},
                           NULL, &found, &err));
    return found;
}

/* learning_curve_bayes.csv: the fixed point by simulation in NumPy, with the standard error of the risk. */
static void learning__matches_reference(void **state)
{
    (void)state;
    fin_table *table;
    const double *column[8];
    const char *const names[8] = {"snr", "L", "eps", "alpha", "q_k", "q_v", "risk", "risk_se"};
    double worst = 0;
    OK(fin_table_read(FIN_TEST_DATA "/learning_curve_bayes.csv", &table, &err));
    for (int j = 0; j < 8; j++) {
        assert_string_equal(fin_table_name(table, j), names[j]);
        column[j] = fin_table_values(table, j);
    }
    int64_t rows = fin_table_rows(table);
    assert_int_equal(rows, 17);
    for (int64_t i = 0; i < rows; i++) {
        fini_learning got = curve(column[0][i], (int64_t)column[1][i], column[2][i], column[3][i]);
        double z = (got.optimal.risk.value - column[6][i]) / column[7][i];
        worst = fmax(worst, fabs(z));
        assert_true(fabs(z) < 3);
        assert_true(got.optimal.risk.error < 1e-6 && !got.differ);
    }
    printf("reference: largest |z| %.2f of %lld\n", worst, (long long)rows);
    fin_table_destroy(table);
}

/* The fields of a bag, drawn as they are defined: p_J, sum p^2 (y - b)^2 / V^2, and log of the normaliser. */
typedef struct draws {
    double mean[3], error[3];
} draws;

static draws draw(const fini_learning_task *s, double q_k, double q_v, int64_t samples)
{
    enum { L_MOST = 32 };
    double c = s->snr * q_k, V = 1 - q_v + s->eps * s->eps, sum[3] = {0}, squares[3] = {0};
    for (int64_t i = 0; i < samples; i++) {
        double g[2 * L_MOST + 1], p[L_MOST], b[L_MOST], top = -INFINITY, total = 0, second = 0;
        fin_random_normals_f64(7, 1, (uint64_t)i, 0, 2 * s->L + 1, g);
        double y = sqrt(q_v) * g[1] + sqrt(V) * g[2 * s->L];
        for (int64_t l = 0; l < s->L; l++) {
            b[l] = sqrt(q_v) * g[2 * l + 1];
            p[l] = (l == 0 ? c : 0) + sqrt(c) * g[2 * l] - (y - b[l]) * (y - b[l]) / (2 * V);
            top = fmax(top, p[l]);
        }
        for (int64_t l = 0; l < s->L; l++)
            total += p[l] = exp(p[l] - top);
        for (int64_t l = 0; l < s->L; l++)
            second += p[l] * p[l] * (y - b[l]) * (y - b[l]) / (total * total * V * V);
        const double got[3] = {p[0] / total, second, top + log(total) - c / 2 - log(V) / 2};
        for (int k = 0; k < 3; k++) {
            sum[k] += got[k];
            squares[k] += got[k] * got[k];
        }
    }
    draws out;
    for (int k = 0; k < 3; k++) {
        out.mean[k] = sum[k] / (double)samples;
        out.error[k] =
            sqrt((squares[k] / (double)samples - out.mean[k] * out.mean[k]) / (double)samples);
    }
    return out;
}

static void learning__is_a_fixed_point_of_drawn_fields(void **state)
{
    (void)state;
    const fini_learning_task cases[] = {{.snr = 5, .eps = 0.5, .alpha = 2, .L = 3},
                                        {.snr = 12, .eps = 1, .alpha = 0.3, .L = 20},
                                        {.snr = 1, .eps = 0.3, .alpha = 30, .L = 2},
                                        {.snr = 0.3, .eps = 0.01, .alpha = 1.5, .L = 5},
                                        {.snr = 4, .eps = 0, .alpha = 0.8, .L = 8},
                                        {.snr = 25, .eps = 0.2, .alpha = 4, .L = 20}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const fini_learning_task *s = &cases[i];
        fini_learnt got = curve(s->snr, s->L, s->eps, s->alpha).optimal;
        draws d = draw(s, got.q_k.value, got.q_v.value, 100000);
        double r_k = got.q_k.value / (1 - got.q_k.value), r_v = got.q_v.value / (1 - got.q_v.value);
        double z_k = (r_k / (s->alpha * s->snr) - d.mean[0]) / d.error[0],
               z_v = (r_v / s->alpha - d.mean[1]) / d.error[1];
        fin_estimate B;
        OK(fin_spiked_bayes(s->snr * got.q_k.value, s->L, &B, &err));
        printf("snr %g L %d eps %g alpha %g: z %.2f, %.2f\n", s->snr, (int)s->L, s->eps, s->alpha,
               z_k, z_v);
        assert_true(fabs(z_k) < 5 && fabs(z_v) < 5);
        assert_true(fabs(got.risk.value - (s->eps * s->eps + 1 - got.q_v.value * (1 - B.value))) <
                    1e-12);
    }
}

/* q = r/(1 + r), r = alpha / (noise + 1 - q), from above. */
static double regression(double noise, double alpha)
{
    double q = 1;
    for (int i = 0; i < 100000; i++)
        q = alpha / (noise + 1 - q + alpha);
    return q;
}

static void learning__has_its_limits(void **state)
{
    (void)state;
    fini_learning many = curve(5, 3, 0.5, 1e6), few = curve(5, 3, 0.5, 1e-3),
                  one = curve(5, 1, 0.5, 2), clear = curve(1e4, 3, 0.5, 2),
                  blind = curve(0, 3, 0.5, 1e6);
    assert_true(fabs(many.optimal.risk.value - many.known.value) < 3e-6);
    assert_true(fabs(many.linear.value - (0.25 + 1 - 1 / 3.0)) < 1e-5);
    assert_true(fabs(few.optimal.risk.value - 1.25) < 1e-3 && few.optimal.risk.value < 1.25);
    assert_true(fabs(few.linear.value - 1.25) < 1e-3 && few.linear.value < 1.25);
    /* One token, or one that is plainly marked: regression on it. */
    double want = 1.25 - regression(0.25, 2);
    assert_true(fabs(one.optimal.risk.value - want) < 1e-9 &&
                fabs(one.linear.value - want) < 1e-12);
    assert_true(fabs(clear.optimal.risk.value - want) < 1e-9);
    /* k* hidden for good: the mean of the tokens is all there is, once v* is known. */
    assert_true(blind.optimal.q_k.value == 0);
    assert_true(fabs(blind.optimal.risk.value - blind.linear.value) < 1e-5);
    /* The sum of the tokens knows less than the tokens. */
    for (double alpha = 0.1; alpha < 100; alpha *= 5) {
        fini_learning at = curve(3, 4, 0.3, alpha);
        assert_true(at.known.value < at.optimal.risk.value &&
                    at.optimal.risk.value < at.linear.value);
    }
}

/* Without noise v* is known exactly from one bag a column on: whoever knew all locations had as many equations. */
static void learning__is_exact_without_noise(void **state)
{
    (void)state;
    fini_learning below = curve(5, 3, 0, 0.99), above = curve(5, 3, 0, 1.01),
                  far = curve(5, 3, 0, 4);
    fin_estimate B;
    assert_true(below.optimal.q_v.value < 0.9);
    assert_true(1 - above.optimal.q_v.value < 1e-12 && above.differ && !above.low_wins);
    assert_true(above.other.q_v.value < 0.9 &&
                above.other.risk.value > above.optimal.risk.value + 0.05);
    /* then y shows the location, and k is learnt as if it were known */
    OK(fin_spiked_bayes(5 * 20 / 21.0, 3, &B, &err));
    assert_true(!far.differ && fabs(far.optimal.risk.value - B.value) < 1e-7);
}

/* phi = alpha E log(sum_l exp(a_l - c/2) N(y; b_l, V)) + sum over q of (q + log(1 - q))/2, on common draws. */
static double entropy(const fini_learning_task *s, const fini_learnt *at, double *error)
{
    double q_k = at->q_k.value, q_v = at->q_v.value;
    draws d = draw(s, q_k, q_v, 50000);
    *error = s->alpha * d.error[2];
    return s->alpha * d.mean[2] + (q_k + log1p(-q_k) + q_v + log1p(-q_v)) / 2;
}

static void learning__chooses_by_free_entropy(void **state)
{
    (void)state;
    double alphas[] = {1.7, 4};
    for (int i = 0; i < 2; i++) {
        fini_learning_task s = {.snr = 1, .eps = 0.01, .alpha = alphas[i], .L = 20};
        fini_learning at = curve(s.snr, s.L, s.eps, s.alpha);
        double first, second,
            gap = entropy(&s, &at.optimal, &first) - entropy(&s, &at.other, &second);
        printf("alpha %g: %s wins by %.3f +- %.3f\n", s.alpha, at.low_wins ? "low" : "high", gap,
               hypot(first, second));
        assert_true(at.differ && at.low_wins == (i == 0));
        assert_true(gap > 5 * hypot(first, second));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learning__matches_reference),
        cmocka_unit_test(learning__is_a_fixed_point_of_drawn_fields),
        cmocka_unit_test(learning__has_its_limits),
        cmocka_unit_test(learning__is_exact_without_noise),
        cmocka_unit_test(learning__chooses_by_free_entropy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
