/* zeta, its derivatives and the variance against 50-digit values (tools/make_math_tables.py).
 *
 * Errors are measured against the sum of the magnitudes of the terms that a formula adds: that is
 * the value itself for zeta, zeta' and W, all of one sign; zeta'' and zeta''' change sign, and near
 * a sign change no relative accuracy can be asked for. Measured: at most 1e-15 for all of them, at
 * every x up to where exp(-x^2) underflows. (With exponents in one double it would be 2x^2 eps,
 * 2e-13 at x = 26.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/math.h"
#include "math/owen.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double bound = 5e-15;

/* The sums of magnitudes for zeta'' and zeta'''. Roughly is enough. */
static void magnitudes(double t, double g, double *second, double *third)
{
    double s = sqrt(1 + 4 * g * g), B = sqrt(1 + 2 * g * g), A = s * B, x = t / B, y = t / A;
    double Ex = 1.1283791670955126 * exp(-x * x), Ey = 1.1283791670955126 * exp(-y * y);
    *second = 2 / B * (Ex * Ey / A + 2 * x * erf(y) * Ex / B);
    *third = 2 / B *
             (2 * y * Ex * Ey / (A * A) + 4 * x * Ex * Ey / (A * B) +
              (4 * x * x + 2) * erf(y) * Ex / (B * B));
}

static void zeta__matches_reference(void **state)
{
    (void)state;
    FILE *file = fopen(FIN_TEST_DATA "/zeta.csv", "r");
    assert_non_null(file);
    char line[512];
    assert_non_null(fgets(line, sizeof line, file)); /* t,g,zeta,zeta1,zeta2,zeta3,variance */
    static const char *const name[5] = {"zeta", "zeta'", "zeta''", "zeta'''", "W"};
    double worst[5] = {0};
    int rows = 0;
    for (; fgets(line, sizeof line, file); rows++) {
        double in[7], got[5];
        char *at = line;
        for (int i = 0; i < 7; i++, at++) {
            char *end;
            in[i] = strtod(at, &end);
            assert_int_equal(*end, i < 6 ? ',' : '\n');
            at = end;
        }
        const double *want = in + 2;
        fini_zeta(in[0], in[1], got);
        got[4] = fini_zeta_variance(in[0], in[1]);
        double scale[5] = {want[0], want[1], 0, 0, want[4]};
        magnitudes(in[0], in[1], &scale[2], &scale[3]);
        for (int i = 0; i < 5; i++) {
            double error = fabs(got[i] - want[i]);
            if (!(error <= bound * scale[i] + 8 * DBL_TRUE_MIN))
                fail_msg("%s(%.17g, %.17g) = %.17g, should be %.17g: error %.2g", name[i], in[0],
                         in[1], got[i], want[i], error / scale[i]);
            if (scale[i] > DBL_MIN)
                worst[i] = fmax(worst[i], error / scale[i]);
        }
    }
    fclose(file);
    print_message("%d rows, worst relative errors:", rows);
    for (int i = 0; i < 5; i++)
        print_message(" %s %.2g%s", name[i], worst[i], i < 4 ? "," : "\n");
    assert_true(rows > 300);
}

static void zeta__is_even_in_t(void **state)
{
    (void)state;
    for (double t = 1e-3; t < 100; t *= 3)
        for (double g = 1e-3; g < 1e4; g *= 10) {
            double left[4], right[4];
            fini_zeta(-t, g, left);
            fini_zeta(t, g, right);
            assert_true(left[0] == right[0] && left[1] == -right[1]);
            assert_true(left[2] == right[2] && left[3] == -right[3]);
            assert_true(fini_zeta_variance(-t, g) == fini_zeta_variance(t, g));
        }
}

/* g = 0: erf(t)^2. t = 0: 1 - (4/pi) atan(1/sqrt(1 + 4g^2)). zeta = 1 - 8 T. zeta = W + E[erf]^2.
 */
static void zeta__satisfies_identities(void **state)
{
    (void)state;
    double out[4];
    for (double t = 0; t < 6; t += 0.1) {
        fini_zeta(t, 0, out);
        assert_true(out[0] == erf(t) * erf(t));
        assert_true(fini_zeta_variance(t, 0) == 0);
    }
    for (double g = 0; g < 10; g += 0.1) {
        fini_zeta(0, g, out);
        double want = 1 - 4 / acos(-1.0) * atan(1 / sqrt(1 + 4 * g * g));
        assert_true(fabs(out[0] - want) < 1e-15);
        assert_true(out[1] == 0 && out[2] > 0 && out[3] == 0);
    }
    for (double t = 0; t < 6; t += 0.3)
        for (double g = 0; g < 10; g += 0.3) {
            double B = sqrt(1 + 2 * g * g), h = sqrt(2) * t / B;
            double mean = erf(t / B), variance = fini_zeta_variance(t, g);
            fini_zeta(t, g, out);
            assert_true(fabs(out[0] - (1 - 8 * fini_owens_t(h, 1 / sqrt(1 + 4 * g * g)))) < 2e-15);
            assert_true(fabs(out[0] - mean * mean - variance) < 1e-15);
        }
}

/* Central differences with one Richardson step: error about h^4 f^(5)/30 plus 1e-16/h. */
static void zeta__derivatives_match_differences(void **state)
{
    (void)state;
    const double gs[] = {0, 0.1, 0.7, 2, 20};
    double worst = 0;
    for (size_t i = 0; i < sizeof gs / sizeof *gs; i++)
        for (double t = -4; t <= 4; t += 0.17) {
            double g = gs[i], h = 1e-3, near[2][4], far[2][4], here[4];
            fini_zeta(t, g, here);
            fini_zeta(t - h, g, near[0]);
            fini_zeta(t + h, g, near[1]);
            fini_zeta(t - 2 * h, g, far[0]);
            fini_zeta(t + 2 * h, g, far[1]);
            for (int k = 0; k < 3; k++) {
                double slope = (8 * (near[1][k] - near[0][k]) - (far[1][k] - far[0][k])) / (12 * h);
                worst = fmax(worst, fabs(slope - here[k + 1]));
            }
        }
    print_message("worst difference %.2g\n", worst);
    assert_true(worst < 1e-9);
}

static void zeta__has_its_limits(void **state)
{
    (void)state;
    double out[4];
    const double far[][2] = {{INFINITY, 0.5}, {-INFINITY, 0}, {1e300, 2},          {2, INFINITY},
                             {100, 0},        {-1e200, 1e3},  {INFINITY, INFINITY}};
    for (size_t i = 0; i < sizeof far / sizeof *far; i++) {
        fini_zeta(far[i][0], far[i][1], out);
        assert_true(out[0] == 1 && out[1] == 0 && out[2] == 0 && out[3] == 0);
    }
    assert_true(fini_zeta_variance(INFINITY, 3) == 0);
    assert_true(fini_zeta_variance(3, INFINITY) == 1);
    assert_true(isnan(fini_zeta_variance(INFINITY, INFINITY)));
    const double unknown[][2] = {{NAN, 1}, {1, NAN}, {NAN, INFINITY}, {INFINITY, NAN}};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        fini_zeta(unknown[i][0], unknown[i][1], out);
        assert_true(isnan(out[0]) && isnan(out[1]) && isnan(out[2]) && isnan(out[3]));
        assert_true(isnan(fini_zeta_variance(unknown[i][0], unknown[i][1])));
    }
}

/* For large g only t/g counts, W and zeta of (2^k t, 2^k g) are the same, to the largest doubles.
 */
static void zeta__scales_for_large_g(void **state)
{
    (void)state;
    for (double t = 0; t < 20; t += 0.7) {
        double want[4], got[4], w = fini_zeta_variance(t * 0x1p40, 0x1p40);
        fini_zeta(t * 0x1p40, 0x1p40, want);
        for (int k = 80; k <= 1015; k += 55) {
            double tk = scalbn(t, k), gk = scalbn(1, k);
            fini_zeta(tk, gk, got);
            assert_true(fabs(got[0] - want[0]) < 1e-11 * want[0]); /* 1/s still counts at 2^40 */
            assert_true(fabs(fini_zeta_variance(tk, gk) - w) <= 1e-11 * w + DBL_MIN);
            for (int j = 1; j < 4; j++)
                assert_true(isfinite(got[j]));
        }
    }
    double last = fini_zeta_variance(DBL_MAX, DBL_MAX), w = fini_zeta_variance(0x1p60, 0x1p60),
           out[4];
    assert_true(fabs(last - w) < 1e-14 * w);
    fini_zeta(DBL_MAX / 3, DBL_MAX, out);
    assert_true(fabs(out[0] - 1) < 1e-15 && out[1] == 0 && out[2] == 0 && out[3] == 0);
}

/* Small values keep their digits: zeta(0, g) -> (4/pi) g^2, W(t, g) -> g^2 E(t)^2. */
static void zeta__is_accurate_when_small(void **state)
{
    (void)state;
    const double c0 = 1.1283791670955126;
    for (double g = 1e-150; g < 1e-8; g *= 1e7) {
        double out[4];
        fini_zeta(0, g, out);
        assert_true(fabs(out[0] / (g * g * c0 * c0) - 1) < 1e-14);
        for (double t = 0; t < 4; t += 0.5) {
            double E = c0 * exp(-t * t);
            assert_true(fabs(fini_zeta_variance(t, g) / (g * g * E * E) - 1) < 1e-13);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(zeta__matches_reference),
        cmocka_unit_test(zeta__is_even_in_t),
        cmocka_unit_test(zeta__satisfies_identities),
        cmocka_unit_test(zeta__derivatives_match_differences),
        cmocka_unit_test(zeta__has_its_limits),
        cmocka_unit_test(zeta__scales_for_large_g),
        cmocka_unit_test(zeta__is_accurate_when_small),
    };
    return cmocka_run_group_tests_name("math_zeta", tests, NULL, NULL);
}
