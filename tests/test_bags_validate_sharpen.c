/* The power that calibrates probabilities: it is found, it is the best one, and it keeps the
 * order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_bags_validate_help.h"

#include <stdlib.h>

/* ---- finding it ------------------------------------------------------------------------------ */

/* Labels drawn with logits z; probabilities are given as if logits were z / factor. */
typedef struct sample {
    int64_t n, classes;
    double *p, *labels, *omega;
    double information; /* about log t, at t = factor: sum of variances of z under p(z) */
} sample;

static double softmax(int64_t classes, const double *z, double scale, double *p)
{
    double sum = 0, mean = 0, square = 0;
    for (int64_t c = 0; c < classes; c++)
        sum += p[c] = exp(z[c] * scale);
    for (int64_t c = 0; c < classes; c++) {
        p[c] /= sum;
        mean += p[c] * z[c];
        square += p[c] * z[c] * z[c];
    }
    return square - mean * mean;
}

static sample drawn(int64_t n, int64_t classes, double factor, uint64_t seed)
{
    sample s = {
        n, classes, calloc((size_t)(n * classes), 8), calloc((size_t)n, 8), calloc((size_t)n, 8),
        0};
    fin_random r;
    fin_random_open(&r, seed, FIN_STREAM_USER, 0);
    for (int64_t i = 0; i < n; i++) {
        double z[4], *p = s.p + i * classes, u = fin_random_uniform(&r);
        for (int64_t c = 0; c < classes; c++)
            z[c] = 1.5 * fin_random_normal(&r);
        s.omega[i] = 1;
        s.information += softmax(classes, z, 1, p);
        for (int64_t c = 0; c + 1 < classes && (u -= p[c]) > 0; c++)
            s.labels[i] = (double)c + 1;
        softmax(classes, z, 1 / factor, p);
    }
    return s;
}

static void drop(sample *s)
{
    free(s->p);
    free(s->labels);
    free(s->omega);
}

static double found(const sample *s)
{
    double t = NAN, *p = malloc((size_t)(s->n * s->classes) * sizeof *p);
    memcpy(p, s->p, (size_t)(s->n * s->classes) * sizeof *p);
    const fin_bags bags = {.n = s->n, .total = s->n};
    OK(fini_sharpness(&bags, s->classes, s->labels, s->omega, p, fini_sum_alone, &t, &err));
    free(p);
    return t;
}

static void sharpness__is_found(void **state)
{
    (void)state;
    for (int k = 0; k < 6; k++) {
        const double factors[] = {1, 3, 0.4};
        double factor = factors[k / 2];
        sample s = drawn(2000, 2 + k % 2 * 2, factor, 11 + (uint64_t)k);
        double t = found(&s), se = 1 / sqrt(s.information);
        double z = (log(t) - log(factor) * (1 - 4 * se * se)) / se; /* the prior's share: 4 se^2 */
        print_message("%d classes, factor %.1f: %.4f, z = %.2f\n", (int)s.classes, factor, t, z);
        assert_true(fabs(z) < 5);
        drop(&s);
    }
}

/* The penalised loss, written down again; bag: what one bag with the mean weight counts for in it. */
static double objective(const sample *s, double t, double *bag)
{
    double sum = 0, total = 0, squares = 0;
    for (int64_t i = 0; i < s->n; i++) {
        double z = 0, *p = s->p + i * s->classes;
        if (!(s->omega[i] > 0))
            continue;
        for (int64_t c = 0; c < s->classes; c++)
            z += pow(p[c], t);
        sum += s->omega[i] * (log(z) - t * log(p[(int)s->labels[i]]));
        total += s->omega[i];
        squares += s->omega[i] * s->omega[i];
    }
    *bag = squares / (total * total);
    return sum / total + 4 * *bag * log(t) * log(t) / 2;
}

/* Below 1 it goes only for a gain of two units of log likelihood; else it is 1 exactly. */
static void sharpness__is_the_best(void **state)
{
    (void)state;
    int softer = 0, sharper = 0, kept = 0;
    for (int k = 0; k < 24; k++) {
        sample s = drawn(k % 8 < 4 ? 30 : 3, 2 + k % 3, k % 2 ? 5 : 0.3, 50 + (uint64_t)k);
        for (int64_t i = 0; i < s.n; i++)
            s.omega[i] = 1 + (double)(i % 3);
        s.omega[0] = 0;
        s.p[0] = s.labels[0] = NAN; /* does not count */
        double bag, t = found(&s), value = objective(&s, t, &bag), slack = t == 1 ? 2 * bag : 0;
        assert_true(t >= 1.0 / 16 - 1e-12 && t <= 16 + 1e-12);
        for (double u = -2.77; u <= 2.77; u += 0.005)
            assert_true(value <= objective(&s, exp(u), &bag) + (u < 0 ? slack : 0) + 1e-10);
        assert_true(t >= 1 || value < objective(&s, 1, &bag) - 2 * bag);
        softer += t < 1;
        sharper += t > 1;
        kept += t == 1;
        for (int64_t i = 0; i < s.n; i++) /* units of weights do not matter */
            s.omega[i] *= 1024;
        assert_true(fabs(found(&s) - t) < 1e-9 * t);
        drop(&s);
    }
    assert_true(softer > 0 && sharper > 0 && kept > 0); /* or the test says nothing */
}

static void sharpness__at_the_edges(void **state)
{
    (void)state;
    sample s = drawn(400, 2, 1, 1);
    for (int64_t i = 0; i < s.n; i++) /* always right, hardly sure: as sharp as allowed */
        s.p[2 * i] = 1 - (s.p[2 * i + 1] = s.labels[i] > 0 ? 0.51 : 0.49);
    double t = found(&s);
    assert_true(t > 15.99 && t <= 16 * (1 + 1e-12));
    for (int64_t i = 0; i < s.n; i++) /* always sure, always wrong: as soft */
        s.p[2 * i] = 1 - (s.p[2 * i + 1] = s.labels[i] > 0 ? 0 : 1);
    t = found(&s);
    assert_true(t < 1 / 15.99 && t >= 1 / (16 * (1 + 1e-12)));
    for (int64_t i = 0; i < 2 * s.n; i++) /* nothing is said: nothing is changed */
        s.p[i] = 0.5;
    assert_true(found(&s) == 1);
    const fin_bags bags = {.n = s.n, .total = s.n};
    s.p[6] = NAN;
    assert_int_equal(fini_sharpness(&bags, 2, s.labels, s.omega, s.p, fini_sum_alone, &t, &err),
                     FIN_ERR_NUMERIC);
    drop(&s);
}

/* ---- applying it ----------------------------------------------------------------------------- */

static void sharpen__is_a_power(void **state)
{
    (void)state;
    double p[] = {0.1, 0.3, 0.6, 0, 1, 0, 0.25, 0.25, 0.5}, q[9];
    memcpy(q, p, sizeof p);
    fini_sharpen(1, 3, 3, q, NULL);
    assert_memory_equal(p, q, sizeof p); /* to the bit */
    fini_sharpen(2, 3, 3, q, NULL);
    for (int i = 0; i < 9; i++) {
        const double *row = p + i / 3 * 3;
        double sum = row[0] * row[0] + row[1] * row[1] + row[2] * row[2];
        assert_true(fabs(q[i] - p[i] * p[i] / sum) < 1e-15);
    }
}

/* The larger one of two stays the larger one, also if it is by one bit; equals stay equal. */
static void sharpen__keeps_the_order(void **state)
{
    (void)state;
    fin_random r;
    fin_random_open(&r, 3, FIN_STREAM_USER, 0);
    for (int k = 0; k < 20000; k++) {
        double t = exp(2.7 * (2 * fin_random_uniform(&r) - 1)), p[2], q[2];
        p[0] = k % 2 ? fin_random_uniform(&r) : 0.5 + (k % 64 - 32) * 0x1p-54;
        p[1] = 1 - p[0];
        memcpy(q, p, sizeof p);
        fini_sharpen(t, 1, 2, q, NULL);
        assert_true((p[0] > p[1]) == (q[0] > q[1]) && (p[0] < p[1]) == (q[0] < q[1]));
        assert_true(fabs(q[0] + q[1] - 1) < 1e-15 && q[0] >= 0 && q[1] >= 0);
    }
}

static void sharpen__carries_deviations(void **state)
{
    (void)state;
    for (double t = 0.3; t < 4; t *= 1.7)
        for (double p = 0.02; p < 1; p += 0.049) {
            const double h = 1e-5;
            double low[] = {p - h, 1 - p + h}, high[] = {p + h, 1 - p - h};
            double mean[] = {p, 1 - p}, sd[] = {h, h};
            fini_sharpen(t, 1, 2, low, NULL);
            fini_sharpen(t, 1, 2, high, NULL);
            fini_sharpen(t, 1, 2, mean, sd);
            assert_true(fabs(sd[0] - (high[0] - low[0]) / 2) < 1e-5 * h);
            assert_true(fabs(sd[1] - sd[0]) < 1e-9 * h);
            sd[0] = sd[1] = 0.5; /* never more than is possible */
            fini_sharpen(t, 1, 2, mean, sd);
            assert_true(sd[0] <= sqrt(mean[0] * (1 - mean[0])));
        }
    double sure[] = {1, 0}, none[] = {0, 0};
    fini_sharpen(0.5, 1, 2, sure, none);
    assert_true(sure[0] == 1 && none[0] == 0 && none[1] == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sharpness__is_found),      cmocka_unit_test(sharpness__is_the_best),
        cmocka_unit_test(sharpness__at_the_edges),  cmocka_unit_test(sharpen__is_a_power),
        cmocka_unit_test(sharpen__keeps_the_order), cmocka_unit_test(sharpen__carries_deviations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
