/* Small statistics against known answers.
 *
 * Those of shares and of Kolmogorov's law were made with mpmath at 40 digits:
 *
 *     z = sqrt(2) * erfinv(0.95)
 *     wilson(k, n): p = k/n; (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)
 *     K(x) = 2 sum_{j>=1} (-1)^(j-1) exp(-2 j^2 x^2)            (scipy.stats.kstwobign.sf)
 *     ks(D, n, m) = K(r D), r = sqrt(n m / (n + m)), for n != m
 *
 * and those of samples of one size with fractions of whole numbers:
 *
 *     ks(c/n, n, n) = 2 sum_{j>=1} (-1)^(j-1) C(2n, n - j c) / C(2n, n)
 *
 *     mixtures: halving of F(x) - q with mpmath.erfc
 *
 * The straight line is Norris of the NIST Statistical Reference Datasets, with certified values. */
#include "finetti/math.h"
#include "math/stats.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (int64_t)(sizeof(array) / sizeof *(array))

static void close_to(double value, double known, double relative)
{
    if (!(fabs(value - known) <= relative * fabs(known)))
        fail_msg("%.17g is not %.17g", value, known);
}

/* ---- shares ---------------------------------------------------------------------------------- */

static void wilson__known_answers(void **state)
{
    (void)state;
    static const struct {
        double count;
        int64_t n;
        double low, high;
    } rows[] = {
        {0, 30, 0, 0.11351339317396877},
        {30, 30, 0.88648660682603123, 1},
        {15, 30, 0.33154125640533765, 0.66845874359466235},
        {1, 10, 0.017876213095072904, 0.4041500267952385},
        {1999, 2000, 0.99717313749673379, 0.99991173226929453},
        {1, 1, 0.20654931437723739, 1},
    };
    for (int64_t i = 0; i < COUNT(rows); i++) {
        fini_interval w = fini_wilson(rows[i].count, rows[i].n);
        close_to(w.low, rows[i].low, 1e-14);
        close_to(w.high, rows[i].high, 1e-14);
        double low, high;
        fin_wilson(rows[i].count, rows[i].n, &low, &high);
        assert_true(low == w.low && high == w.high);
    }
}

static void wilson__edges(void **state)
{
    (void)state;
    fini_interval w = fini_wilson(0, 0);
    assert_true(w.low == 0 && w.high == 1);
    w = fini_wilson(31, 30);
    assert_true(isnan(w.low) && isnan(w.high));
    w = fini_wilson(-1, 30);
    assert_true(isnan(w.low) && isnan(w.high));
    w = fini_wilson(NAN, 30);
    assert_true(isnan(w.low) && isnan(w.high));
    w = fini_wilson(0.5, 1); /* half a run, as a mean of shares may be */
    assert_true(w.low > 0 && w.high < 1 && fabs(w.low + w.high - 1) < 1e-15);
}

/* ---- order ----------------------------------------------------------------------------------- */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort__as_qsort(void **state)
{
    (void)state;
    double mine[300], theirs[300];
    uint64_t x = 88172645463325252u;
    for (int64_t n = 0; n <= 300; n += n < 20 ? 1 : 31) {
        for (int64_t i = 0; i < n; i++) {
            x ^= x << 13, x ^= x >> 7, x ^= x << 17;
            mine[i] = theirs[i] = (double)(x % 97) - 48; /* ties */
        }
        double median = fini_median(mine, n);
        qsort(theirs, (size_t)n, sizeof *theirs, ascending);
        assert_true(n ? median == fini_quantile(theirs, n, 0.5) : isnan(median));
        fini_sort(mine, n);
        assert_memory_equal(mine, theirs, (size_t)n * sizeof *mine);
    }
}

static void sort__nan_last(void **state)
{
    (void)state;
    double v[] = {NAN, 3, -INFINITY, NAN, 1, INFINITY, -2, NAN};
    assert_true(isinf(fini_median(v, COUNT(v)))); /* of 3 and infinity */
    fini_sort(v, COUNT(v));
    const double known[] = {-INFINITY, -2, 1, 3, INFINITY};
    assert_memory_equal(v, known, sizeof known);
    assert_true(isnan(v[5]) && isnan(v[6]) && isnan(v[7]));
}

/* numpy.quantile([1, 2, 4, 8, 16], q) */
static void quantile__known_answers(void **state)
{
    (void)state;
    const double v[] = {1, 2, 4, 8, 16};
    assert_true(fini_quantile(v, 5, 0) == 1);
    assert_true(fini_quantile(v, 5, 0.25) == 2);
    assert_true(fini_quantile(v, 5, 0.5) == 4);
    assert_true(fini_quantile(v, 5, 1) == 16);
    close_to(fini_quantile(v, 5, 0.1), 1.4, 1e-15);
    close_to(fini_quantile(v, 5, 0.95), 14.4, 1e-15);
    assert_true(fini_quantile(v, 4, 0.5) == 3);
    assert_true(fini_quantile(v, 1, 0.3) == 1);
}

static void quantile__edges(void **state)
{
    (void)state;
    const double v[] = {-INFINITY, -INFINITY, 0, INFINITY, INFINITY}, huge[] = {-1.7e308, 1.7e308};
    assert_true(isnan(fini_quantile(v, 0, 0.5)));
    assert_true(isnan(fini_quantile(v, 5, -0.1)));
    assert_true(isnan(fini_quantile(v, 5, 1.1)));
    assert_true(isnan(fini_quantile(v, 5, NAN)));
    assert_true(fini_quantile(v, 5, 0.1) == -INFINITY); /* not inf - inf */
    assert_true(fini_quantile(v, 5, 0.9) == INFINITY);
    assert_true(fini_quantile(huge, 2, 0.5) == 0); /* their difference overflows */
}

/* ---- lines ----------------------------------------------------------------------------------- */

static const double norris_x[] = {0.2,   337.4, 118.2, 884.6, 10.1,  226.5, 666.3, 996.3, 448.6,
                                  777.0, 558.2, 0.4,   0.6,   775.5, 666.9, 338.0, 447.5, 11.6,
                                  556.0, 228.1, 995.8, 887.6, 120.2, 0.3,   0.3,   556.8, 339.1,
                                  887.2, 999.0, 779.0, 11.1,  118.3, 229.2, 669.1, 448.9, 0.5};
static const double norris_y[] = {0.1,   338.8, 118.1, 888.0, 9.2,   228.1, 668.5, 998.5, 449.1,
                                  778.9, 559.2, 0.3,   0.1,   778.1, 668.8, 339.3, 448.9, 10.8,
                                  557.7, 228.3, 998.0, 888.8, 119.6, 0.3,   0.6,   557.6, 339.3,
                                  888.0, 998.5, 778.9, 10.2,  117.6, 228.9, 668.4, 449.2, 0.2};

/* ---- mixtures of normals --------------------------------------------------------------------- */

static void normals_quantile__known_answers(void **state)
{
    (void)state;
    const double one = 1, none = 0, w[] = {0.25, 0.75}, m[] = {-3, 2}, s[] = {0.5, 0.125};
    const double w3[] = {0.5, 0.25, 0.25}, m3[] = {1, 1, 100}, s3[] = {1, 0.001, 10};
    close_to(fini_normals_quantile(1, &one, &none, &one, 0.05), -1.6448536269514727, 1e-13);
    close_to(fini_normals_quantile(1, &one, &none, &one, 0.95), 1.6448536269514727, 1e-13);
    close_to(fini_normals_quantile(1, &one, &none, &one, 1e-10), -6.3613409024040562, 1e-12);
    close_to(fini_normals_quantile(2, w, m, s, 0.05), -3.4208106167864571, 1e-12);
    close_to(fini_normals_quantile(2, w, m, s, 0.5), 1.9461590875880678, 1e-12);
    close_to(fini_normals_quantile(2, w, m, s, 0.95), 2.1876357432555031, 1e-12);
    close_to(fini_normals_quantile(2, w, m, s, 1e-10), -6.0724637963198095, 1e-12);
    close_to(fini_normals_quantile(3, w3, m3, s3, 0.9), 102.53347103135800, 1e-12);
}

static void normals_quantile__edges(void **state)
{
    (void)state;
    const double one = 1, w[] = {0.5, 0.5}, m[] = {-1e150, 1e150}, s[] = {1e-150, 1e-150};
    assert_true(isnan(fini_normals_quantile(0, NULL, NULL, NULL, 0.5)));
    for (int k = 0; k < 3; k++)
        assert_true(isnan(fini_normals_quantile(1, &one, &one, &one, (double[]){0, 1, NAN}[k])));
    close_to(fini_normals_quantile(2, w, m, s, 0.25), -1e150, 1e-12);
    close_to(fini_normals_quantile(2, w, m, s, 0.75), 1e150, 1e-12);
}

static void line__norris(void **state)
{
    (void)state;
    fini_line line = fini_fit_line(norris_x, norris_y, COUNT(norris_x));
    close_to(line.slope, 1.00211681802045, 1e-14);
    close_to(line.intercept, -0.262323073774029, 1e-12);
    close_to(line.slope_error, 0.429796848199937e-03, 1e-13);
    close_to(line.residual, 0.884796396144373, 1e-13);
}

/* A line far from the origin: uncentred sums would lose all digits. */
static void line__far_from_origin(void **state)
{
    (void)state;
    double x[5], y[5];
    for (int i = 0; i < 5; i++) {
        x[i] = 1e9 + i;
        y[i] = 1e6 + 0.5 * i + (i % 2 ? 0.125 : 0);
    }
    fini_line line = fini_fit_line(x, y, 5);
    close_to(line.slope, 0.5, 1e-12);
    for (int i = 0; i < 5; i++) {
        x[i] = 1e250 * i;
        y[i] = 3e280 * i;
    }
    line = fini_fit_line(x, y, 5);
    close_to(line.slope, 3e30, 1e-14);
    close_to(line.slope + line.slope_error, line.slope, 1e-14);
}

static void line__edges(void **state)
{
    (void)state;
    const double x[] = {1, 3, 5}, y[] = {2, 8, 14}, same[] = {4, 4, 4}, gap[] = {1, NAN, 2};
    fini_line line = fini_fit_line(x, y, 1);
    assert_true(isnan(line.slope) && isnan(line.intercept));
    line = fini_fit_line(x, y, 2);
    assert_true(line.slope == 3 && line.intercept == -1 && isnan(line.slope_error));
    line = fini_fit_line(x, y, 3);
    assert_true(line.slope == 3 && line.intercept == -1 && line.slope_error == 0);
    line = fini_fit_line(x, same, 3);
    assert_true(line.slope == 0 && line.intercept == 4 && line.residual == 0);
    line = fini_fit_line(same, y, 3);
    assert_true(isnan(line.slope) && isnan(line.slope_error));
    line = fini_fit_line(x, gap, 3);
    assert_true(isnan(line.slope) && isnan(line.intercept));
    line = fini_fit_line(gap, x, 3);
    assert_true(isnan(line.slope) && isnan(line.intercept));
}

/* ---- Kolmogorov and Smirnov ------------------------------------------------------------------ */

static void ks_distance__known_answers(void **state)
{
    (void)state;
    const double a[] = {1, 2, 3, 4}, b[] = {3, 4, 5, 6}, c[] = {1, 1, 2, 2}, d[] = {1, 2, 2, 2, 9};
    assert_true(fini_ks_distance(a, 4, b, 4) == 0.5);
    assert_true(fini_ks_distance(b, 4, a, 4) == 0.5);
    assert_true(fini_ks_distance(a, 4, a, 4) == 0);
    close_to(fini_ks_distance(c, 4, d, 5), 0.3, 1e-15); /* at 1: 2/4 and 1/5 */
    assert_true(fini_ks_distance(a, 2, b, 4) == 1);
    assert_true(isnan(fini_ks_distance(a, 0, b, 4)));
    const double unknown[] = {1, NAN};
    assert_true(isnan(fini_ks_distance(unknown, 2, b, 4)));
}

static void ks_probability__known_answers(void **state)
{
    (void)state;
    static const struct {
        double distance;
        int64_t n, m;
        double p;
    } rows[] = {
        {0.5, 10, 10, 0.16782134274394336},
        {0.3, 30, 30, 0.13500350250095436},
        {0.1, 30, 30, 0.9988393756362763},
        {0.05, 2000, 2000, 0.013464654930116568},
        {0.03, 2000, 2000, 0.3291680717599362},
        {0.01, 2000, 2000, 0.999965667437142},
        {1, 100, 100, 2.2087606931995028e-59},
        {0.25, 8, 8, 0.9801087801087801},
        {1.0 / 7, 7, 7, 1},
        {1, 1, 1, 1},
        {1, 2, 2, 1.0 / 3},
        {40 / 300.0, 300, 300, 0.009588954912812935},
        {0.015, 100000, 100000, 3.381322133733602e-10},
        {0.02, 2000, 1500, 0.8828305418950845},
        {0.07, 2000, 1500, 0.0004497346483525819},
        {0.2, 4, 1000, 0.9972721613220297},
    };
    for (int64_t i = 0; i < COUNT(rows); i++)
        close_to(fini_ks_probability(rows[i].distance, rows[i].n, rows[i].m), rows[i].p, 1e-12);
    /* Whatever the rounding of i/n - j/n. */
    double exact = fini_ks_probability(17.0 / 49, 49, 49);
    assert_true(fini_ks_probability(nextafter(17.0 / 49, 1), 49, 49) == exact);
    assert_true(fini_ks_probability(nextafter(17.0 / 49, 0), 49, 49) == exact);
    assert_true(fini_ks_probability(0, 30, 30) == 1);
    assert_true(isnan(fini_ks_probability(NAN, 30, 30)));
    assert_true(isnan(fini_ks_probability(1.5, 30, 30)));
    assert_true(isnan(fini_ks_probability(0.5, 0, 30)));
    assert_true(fini_ks_probability(0.5, INT64_MAX, INT64_MAX) == 0);
}

/* It falls with the distance, also where one series takes over from the other. */
static void ks_probability__falls(void **state)
{
    (void)state;
    double last = 1;
    for (int i = 0; i <= 20000; i++) {
        double p = fini_ks_probability(i / 20000.0, 30, 30);
        assert_true(p >= 0 && p <= last + 1e-15);
        last = p;
    }
    last = 1;
    for (int i = 0; i <= 20000; i++) { /* both series of Kolmogorov's law */
        double p = fini_ks_probability(i / 20000.0, 30, 40);
        assert_true(p >= 0 && p <= last + 1e-15);
        last = p;
    }
    last = 1;
    for (int c = 0; c <= 2000; c++) { /* alternating terms, many of them */
        double p = fini_ks_probability(c / 100000.0, 100000, 100000);
        assert_true(p >= 0 && p <= last + 1e-12);
        last = p;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wilson__known_answers),
        cmocka_unit_test(wilson__edges),
        cmocka_unit_test(sort__as_qsort),
        cmocka_unit_test(sort__nan_last),
        cmocka_unit_test(quantile__known_answers),
        cmocka_unit_test(quantile__edges),
        cmocka_unit_test(normals_quantile__known_answers),
        cmocka_unit_test(normals_quantile__edges),
        cmocka_unit_test(line__norris),
        cmocka_unit_test(line__far_from_origin),
        cmocka_unit_test(line__edges),
        cmocka_unit_test(ks_distance__known_answers),
        cmocka_unit_test(ks_probability__known_answers),
        cmocka_unit_test(ks_probability__falls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
