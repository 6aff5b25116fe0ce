/* Drawing with and without replacement, and ridge regression with many features. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/theory_latent.h"
#include "theory/sphere.h"

#include <math.h>
#include <stdio.h>

static double relative(double got, double want)
{
    return got == want ? 0 : fabs(got - want) / fabs(want);
}

/* Exact fractions in Python: sum over k of max(0, h - b), with
 *     h = Fraction(comb(R, k) * comb(N-R, L-k), comb(N, L)),
 *     b = comb(L, k) * Fraction(R, N)**k * Fraction(N-R, N)**(L-k). */
static void urn__matches_exact_fractions(void **state)
{
    (void)state;
    const struct {
        int64_t N, R, L;
        double want;
    } cases[] = {
        {2, 1, 2, 0.5},
        {20, 7, 5, 0.061402255869453044376},
        {50, 25, 50, 0.88772482734078295152},
        {100, 1, 30, 0.075848371700521084021},
        {1000, 999, 300, 0.077565455808979139692},
        {1000, 400, 137, 0.035666853623666541126},
        {5000, 1250, 2000, 0.12292241072489323635},
    };
    double worst = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double got = fini_urn_distance(cases[i].N, cases[i].R, cases[i].L);
        worst = fmax(worst, relative(got, cases[i].want));
        /* colours can be swapped */
        double other = fini_urn_distance(cases[i].N, cases[i].N - cases[i].R, cases[i].L);
        worst = fmax(worst, relative(other, cases[i].want));
    }
    print_message("worst relative error %.1e\n", worst);
    assert_true(worst < 1e-13);
}

/* Two draws: 2 p (1-p) / (N-1). All of them: 1 - b(R). Both for urns past any table. */
static void urn__is_exact_for_large_urns(void **state)
{
    (void)state;
    const double N = 0x1p31;
    assert_true(relative(fini_urn_distance(INT64_C(1) << 31, 1 << 30, 2), 0.5 / (N - 1)) < 1e-13);
    assert_true(relative(fini_urn_distance(INT64_C(1) << 31, 1 << 29, 2), 0.375 / (N - 1)) < 1e-13);
    assert_true(relative(fini_urn_distance(INT64_C(1) << 53, 3, 2),
                         2 * 3 / 0x1p53 * (1 - 3 / 0x1p53) / 0x1p53) < 1e-13);
    /* binomial(R; N, 1/2) = sqrt(2/(pi N)) (1 - 1/(4N) + ...) at N = 2 R */
    double top = sqrt(2 / (3.14159265358979323846 * N)) * (1 - 0.25 / N);
    assert_true(fabs(fini_urn_distance(INT64_C(1) << 31, 1 << 30, INT64_C(1) << 31) - (1 - top)) <
                1e-11);
    /* one ball of the other colour, all drawn: 1 - (1 - 1/N)^(N-1), which is 1 - 1/e here */
    assert_true(relative(fini_urn_distance(INT64_C(1) << 53, 1, INT64_C(1) << 53),
                         0.63212055882855767840) < 1e-13);
    assert_true(
        relative(fini_urn_distance(INT64_C(1) << 53, (INT64_C(1) << 53) - 1, INT64_C(1) << 53),
                 0.63212055882855767840) < 1e-13);
    assert_true(fini_urn_distance(10, 0, 5) == 0 && fini_urn_distance(10, 10, 5) == 0);
    assert_true(fini_urn_distance(10, 5, 1) == 0 && fini_urn_distance(10, 5, 0) == 0);
    assert_true(fini_urn_distance(0, 0, 0) == 0);
}

/* Diaconis and Freedman: at most 2 L / N; slope -1 in N, +1 in L where 1 << L << N. */
static void urn__has_its_rates(void **state)
{
    (void)state;
    for (int64_t N = 2; N < 3000; N = N * 2 + 1)
        for (int64_t R = 0; R <= N; R += 1 + N / 9)
            for (int64_t L = 0; L <= N; L += 1 + N / 11) {
                double distance = fini_urn_distance(N, R, L);
                assert_true(distance >= 0 && distance <= 1);
                assert_true(distance <= 2 * (double)L / (double)N);
            }
    const int64_t many = INT64_C(1) << 31;
    double in_N =
        log2(fini_urn_distance(many, many / 4, 1000) / fini_urn_distance(many / 2, many / 8, 1000));
    double in_L =
        log2(fini_urn_distance(many, many / 2, 20000) / fini_urn_distance(many, many / 2, 10000));
    print_message("slopes %.5f in N, %.5f in L\n", in_N, in_L);
    assert_true(fabs(in_N + 1) < 1e-3 && fabs(in_L - 1) < 1e-3);
}

static void urn__refuses_bad_arguments(void **state)
{
    (void)state;
    assert_true(isnan(fini_urn_distance(10, 11, 5)) && isnan(fini_urn_distance(10, 5, 11)));
    assert_true(isnan(fini_urn_distance(10, -1, 5)) && isnan(fini_urn_distance(10, 5, -1)));
    assert_true(isnan(fini_urn_distance(-1, -1, -1)));
    assert_true(isnan(fini_urn_distance((INT64_C(1) << 53) + 1, 5, 5)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(urn__matches_exact_fractions),
        cmocka_unit_test(urn__is_exact_for_large_urns),
        cmocka_unit_test(urn__has_its_rates),
        cmocka_unit_test(urn__refuses_bad_arguments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
