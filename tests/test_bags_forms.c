/* Forms and the engine: derivatives by differences, scores of any size, views against copies. */
#include "kernel/kernel.h"
#include "bags/bags.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FORMS = 6, LONGEST = 5, ROOM = 512 };
static const fini_bag_form *forms[FORMS];

static int list_forms(void **state)
{
    const int models[FORMS] = {FIN_MODEL_SOFTMAX, FIN_MODEL_ERF, FIN_MODEL_LINEAR,
                               FIN_MODEL_MEAN,    FIN_MODEL_ANY, FIN_MODEL_MIXTURE};
    (void)state;
    for (int f = 0; f < FORMS; f++)
        forms[f] = fini_bag_model_of(models[f])->form;
    return 0;
}

static bool only_two_classes(const fini_bag_form *form)
{
    return form == fini_bag_model_of(FIN_MODEL_ANY)->form;
}

/* Numbers between -1 and 1 that look random and are the same everywhere. */
static double number(int64_t i)
{
    uint64_t x = (uint64_t)i * 6364136223846793005u + 1442695040888963407u;
    x ^= x >> 29;
    x *= 0x9e3779b97f4a7c15u;
    x ^= x >> 32;
    return (double)(x >> 11) * 0x1p-52 - 1;
}

static fini_bag_shape shape_of(const fini_bag_form *form, int64_t classes, int64_t heads)
{
    return (fini_bag_shape){.form = form,
                            .heads = form->weighting ? heads : 1,
                            .classes = classes,
                            .outputs = classes > 2 ? classes : 1,
                            .longest = LONGEST};
}

/* Central differences of step h = 1e-5: error about h^2 + 1e-16 / h = 1e-10, times a few. */
static void check_form(const fini_bag_form *form, int64_t classes, int64_t heads)
{
    fini_bag_shape s = shape_of(form, classes, heads);
    int64_t q = form->keys(&s) + form->values(&s), extras = form->extras(&s), L = LONGEST;
    double U[ROOM], dU[ROOM], other[ROOM], extra[ROOM], dextra[ROOM] = {0}, rest[ROOM], work[ROOM];
    const double h = 1e-5, allowed = 1e-8;
    assert_true(L * q <= ROOM && form->scratch(&s) <= ROOM);
    for (int64_t i = 0; i < L * q; i++)
        U[i] = 2 * number(i + 7);
    for (int64_t i = 0; i < extras; i++)
        extra[i] = number(i + 1000);
    double y = classes ? (double)(classes - 1) : 0.7;
    form->loss(&(fini_bag){&s, extra, L, U, work, NULL}, y, dU, dextra);
    for (int64_t i = 0; i < L * q + extras; i++) {
        double *x = i < L * q ? &U[i] : &extra[i - L * q], old = *x;
        *x = old + h;
        double above = form->loss(&(fini_bag){&s, extra, L, U, work, NULL}, y, other, rest);
        *x = old - h;
        double below = form->loss(&(fini_bag){&s, extra, L, U, work, NULL}, y, other, rest);
        *x = old;
        double slope = (above - below) / (2 * h), given = i < L * q ? dU[i] : dextra[i - L * q];
        if (!(fabs(slope - given) < allowed * (1 + fabs(slope))))
            fail_msg(
                "%s, %lld classes, %lld heads: derivative %lld is %.12g, differences say %.12g",
                form->name, (long long)classes, (long long)heads, (long long)i, given, slope);
    }
}

static void form__derivatives_are_those_of_the_loss(void **state)
{
    (void)state;
    for (int f = 0; f < FORMS; f++)
        for (int64_t classes = 0; classes <= 4; classes++)
            for (int64_t heads = 1; heads <= 3; heads++)
                if (classes != 1 && (!only_two_classes(forms[f]) || classes == 2))
                    check_form(forms[f], classes, heads);
}

/* Scores of 1e6 and 1e300: losses are finite or huge, never not a number; probabilities are. */
static void form__takes_scores_of_any_size(void **state)
{
    (void)state;
    const double sizes[] = {1e3, 1e6, 1e100};
    for (int f = 0; f < FORMS; f++)
        for (int64_t classes = 2; classes <= 3; classes++)
            for (int k = 0; k < 3; k++) {
                fini_bag_shape s = shape_of(forms[f], classes, 2);
                int64_t q = forms[f]->keys(&s) + forms[f]->values(&s), L = LONGEST;
                double U[ROOM], dU[ROOM], extra[ROOM] = {0}, dextra[ROOM] = {0}, work[ROOM], P[4],
                                          sum = 0;
                if (only_two_classes(forms[f]) && classes != 2)
                    continue;
                for (int64_t i = 0; i < L * q; i++)
                    U[i] = sizes[k] * number(i);
                for (int64_t y = 0; y < classes; y++) {
                    assert_false(isnan(forms[f]->loss(&(fini_bag){&s, extra, L, U, work, NULL},
                                                      (double)y, dU, dextra)));
                    for (int64_t i = 0; i < L * q; i++)
                        assert_false(isnan(dU[i]));
                }
                forms[f]->predict(&(fini_bag){&s, extra, L, U, work, NULL}, P, NULL);
                for (int64_t c = 0; c < classes; c++) {
                    assert_true(P[c] >= 0 && P[c] <= 1);
                    sum += P[c];
                }
                assert_true(fabs(sum - 1) < 1e-12);
            }
}

static void locate__sums_to_one_and_follows_the_label(void **state)
{
    (void)state;
    for (int f = 0; f < FORMS; f++) {
        if (!forms[f]->locate)
            continue;
        for (int k = 0; k < 3; k++) {
            fini_bag_shape s = shape_of(forms[f], 2, 2);
            int64_t q = forms[f]->keys(&s) + forms[f]->values(&s), L = LONGEST;
            double U[ROOM], extra[ROOM] = {0}, work[ROOM], w[LONGEST], y = 1, sum = 0;
            for (int64_t i = 0; i < L * q; i++)
                U[i] = (k == 2 ? 1e6 : 1) * number(i + 3);
            forms[f]->locate(&(fini_bag){&s, extra, L, U, work, NULL}, k ? &y : NULL, 0.1, w);
            for (int64_t l = 0; l < L; l++) {
                assert_true(w[l] >= 0 && w[l] <= 1);
                sum += w[l];
            }
            assert_true(fabs(sum - 1) < 1e-12);
        }
    }
    /* Equal weights, two tokens whose values are 3 and -3: posterior s(3) and s(-3), class 1. */
    fini_bag_shape s = shape_of(&fini_bag_softmax, 2, 1);
    double U[] = {0, 3, 0, -3}, extra[] = {0}, work[ROOM], w[2], y = 1;
    fini_bag_softmax.locate(&(fini_bag){&s, extra, 2, U, work, NULL}, &y, 1, w);
    assert_true(fabs(w[0] - 1 / (1 + exp(-3.0))) < 1e-14);
    y = 0;
    fini_bag_softmax.locate(&(fini_bag){&s, extra, 2, U, work, NULL}, &y, 1, w);
    assert_true(fabs(w[1] - 1 / (1 + exp(-3.0))) < 1e-14);
    /* Numbers: in proportion to exp(-(y - z)^2 / (2 sigma2)). */
    s = shape_of(&fini_bag_softmax, 0, 1);
    y = 2;
    fini_bag_softmax.locate(&(fini_bag){&s, extra, 2, U, work, NULL}, &y, 4, w);
    assert_true(fabs(w[0] - 1 / (1 + exp(-(25.0 - 1) / 8))) < 1e-14);
}

/* ---- the engine ---------------------------------------------------------------------------------- */

enum { BAGS = 70, D = 11 };

typedef struct sample {
    int64_t offsets[BAGS + 1];
    double labels[BAGS], weights[BAGS], center[D], scale[D], bound[D];
    double *x, *z;
    float *xf;
} sample;

static void make(sample *s)
{
    s->offsets[0] = 5; /* offsets need not begin at 0 */
    for (int i = 0; i < BAGS; i++) {
        s->offsets[i + 1] = s->offsets[i] + 1 + i % 7;
        s->labels[i] = i % 2;
        s->weights[i] = i % 5 == 3 ? 0 : 0.5 + i % 3;
    }
    int64_t rows = s->offsets[BAGS] - s->offsets[0];
    s->x = malloc((size_t)(rows * D) * sizeof *s->x);
    s->z = malloc((size_t)(rows * D) * sizeof *s->z);
    s->xf = malloc((size_t)(rows * D) * sizeof *s->xf);
    for (int j = 0; j < D; j++) {
        s->center[j] = 10 * number(j);
        s->scale[j] = j == 4 ? 0 : 0.3 + 0.2 * fabs(number(j + 50));
        s->bound[j] = j == 4 ? 0 : j == 5 ? INFINITY : 0.8;
    }
    for (int64_t i = 0; i < rows * D; i++) {
        int64_t j = i % D;
        s->xf[i] = (float)(s->center[j] + 1.3 * number(i + 99));
        s->x[i] = (double)s->xf[i];
        double t = s->x[i] - s->center[j];
        t = t > s->bound[j] ? s->bound[j] : t < -s->bound[j] ? -s->bound[j] : t;
        s->z[i] = s->scale[j] * t;
    }
}

static void unmake(sample *s)
{
    free(s->x);
    free(s->z);
    free(s->xf);
}

static fini_phi view(const sample *s, fin_dtype dtype, bool standardised)
{
    fini_phi phi = {.bags = {.n = BAGS,
                             .d = D,
                             .total = BAGS,
                             .offsets = s->offsets,
                             .dtype = dtype,
                             .tokens = standardised       ? (const void *)s->z
                                       : dtype == FIN_F32 ? (const void *)s->xf
                                                          : (const void *)s->x}};
    if (!standardised) {
        phi.center = s->center;
        phi.scale = s->scale;
        phi.bound = s->bound;
    }
    return phi;
}

static double value_of(const fini_phi *phi, const sample *s, const double *x, double *gradient)
{
    fini_bag_shape shape = shape_of(&fini_bag_softmax, 2, 2);
    fini_risk *risk;
    fin_error err;
    double loss;
    assert_int_equal(fini_risk_create(&risk, &fini_bag_softmax,
                                      &(fini_problem){.shape = &shape,
                                                      .phi = phi,
                                                      .labels = s->labels,
                                                      .weights = s->weights},
                                      &err),
                     FIN_OK);
    assert_int_equal(fini_risk_parameters(risk), 4 * D + 1);
    assert_int_equal(fini_risk_value(risk, x, &loss, gradient, &err), FIN_OK);
    fini_risk_destroy(risk);
    return loss;
}

/* The mean of the losses of a form asked bag by bag, with plain loops. */
static double plain_value(const sample *s, const double *x)
{
    fini_bag_shape shape = shape_of(&fini_bag_softmax, 2, 2);
    double sum = 0, weight = 0, U[ROOM], dU[ROOM], dextra[2], work[ROOM];
    shape.longest = 7;
    for (int i = 0; i < BAGS; i++) {
        int64_t L = s->offsets[i + 1] - s->offsets[i];
        for (int64_t l = 0; l < L; l++)
            for (int c = 0; c < 4; c++) {
                const double *z = s->z + (s->offsets[i] - s->offsets[0] + l) * D;
                U[l * 4 + c] = 0;
                for (int j = 0; j < D; j++)
                    U[l * 4 + c] += x[c * D + j] * z[j];
            }
        sum +=
            s->weights[i] * fini_bag_softmax.loss(&(fini_bag){&shape, x + 4 * D, L, U, work, NULL},
                                                  s->labels[i], dU, dextra);
        weight += s->weights[i];
    }
    return sum / weight;
}

static void risk__is_the_weighted_mean_of_losses(void **state)
{
    (void)state;
    sample s;
    double x[4 * D + 1], g[4 * D + 1], other[4 * D + 1];
    make(&s);
    for (int i = 0; i < 4 * D + 1; i++)
        x[i] = 2 * number(i + 400);
    fini_phi copy = view(&s, FIN_F64, true), raw = view(&s, FIN_F64, false),
             single = view(&s, FIN_F32, false);
    double plain = plain_value(&s, x);
    assert_true(fabs(value_of(&copy, &s, x, g) - plain) < 1e-14);
    /* Views of raw columns, in both types, are the same to rounding. */
    assert_true(fabs(value_of(&raw, &s, x, other) - plain) < 1e-13);
    for (int i = 0; i < 4 * D + 1; i++)
        assert_true(fabs(other[i] - g[i]) < 1e-13);
    assert_true(fabs(value_of(&single, &s, x, other) - plain) < 1e-13);
    for (int i = 0; i < 4 * D + 1; i++)
        assert_true(fabs(other[i] - g[i]) < 1e-13);
    for (int i = 0; i < 4 * D + 1; i++) {
        const double h = 1e-5;
        double old = x[i];
        x[i] = old + h;
        double above = value_of(&copy, &s, x, NULL);
        x[i] = old - h;
        double slope = (above - value_of(&copy, &s, x, NULL)) / (2 * h);
        x[i] = old;
        assert_true(fabs(slope - g[i]) < 1e-8);
    }
    unmake(&s);
}

/* Bags of 3, 4, 5 tokens in float, the last of 70 and of 5000; means up to three deviations from 0, some columns cut off,
 * some constant. */
enum { WIDTH = 67, MANY = 4000 };

static double rough_value(bool rough, const fini_bag_form *form, int64_t heads, int64_t classes,
                          double *gradient, int64_t *parameters)
{
    int64_t *offsets = malloc((MANY + 1) * sizeof *offsets), rows;
    double *labels = malloc(MANY * sizeof *labels), *weights = malloc(MANY * sizeof *weights);
    double center[WIDTH], scale[WIDTH], bound[WIDTH], x[ROOM], loss;
    offsets[0] = 7; /* where they begin does not matter */
    for (int i = 0; i < MANY; i++) {
        offsets[i + 1] = offsets[i] + (i == MANY - 2 ? 70 : i == MANY - 1 ? 5000 : 3 + i % 3);
        labels[i] = (double)((i / 2) % classes);
        weights[i] = i % 11 == 3 ? 0 : 1 + 0.5 * number(i);
    }
    rows = offsets[MANY] - offsets[0];
    float *tokens = malloc((size_t)(rows * WIDTH) * sizeof *tokens);
    for (int j = 0; j < WIDTH; j++) {
        center[j] = j % 9 == 4 ? 5 : number(j);
        scale[j] = j % 9 == 4 ? 0 : 0.2;
        bound[j] = j % 9 == 4 ? 0 : j % 5 == 1 ? INFINITY : j % 5 == 2 ? 0.3 : 3;
    }
    for (int64_t i = 0; i < rows * WIDTH; i++)
        tokens[i] = (float)(center[i % WIDTH] + number(i + 12345));
    fini_bag_shape shape = shape_of(form, classes, heads);
    const fini_phi phi = {.bags = {.n = MANY,
                                   .d = WIDTH,
                                   .total = MANY,
                                   .offsets = offsets,
                                   .dtype = FIN_F32,
                                   .tokens = tokens},
                          .center = center,
                          .scale = scale,
                          .bound = bound};
    fini_risk *risk;
    fin_error err;
    assert_int_equal(
        fini_risk_create(
            &risk, form,
            &(fini_problem){
                .shape = &shape, .phi = &phi, .labels = labels, .weights = weights, .rough = rough},
            &err),
        FIN_OK);
    *parameters = fini_risk_parameters(risk);
    assert_true(*parameters <= ROOM && (fini_risk_noise(risk) > 0) == rough);
    for (int64_t i = 0; i < *parameters; i++)
        x[i] = 2 * number(i + 77);
    assert_int_equal(fini_risk_value(risk, x, &loss, gradient, &err), FIN_OK);
    double alone;
    assert_int_equal(fini_risk_value(risk, x, &alone, NULL, &err), FIN_OK);
    assert_true(alone == loss);
    fini_risk_destroy(risk);
    free(offsets);
    free(labels);
    free(weights);
    free(tokens);
    return loss;
}

static void risk__is_nearly_the_same_in_float(void **state)
{
    (void)state;
    const struct {
        const fini_bag_form *form;
        int64_t heads, classes;
    } with[] = {{&fini_bag_softmax, 1, 2},
                {&fini_bag_softmax, 2, 2},
                {&fini_bag_softmax, 1, 3},
                {&fini_bag_mixture, 1, 2},
                {&fini_bag_mean, 1, 2}};
    for (size_t i = 0; i < sizeof with / sizeof *with; i++) {
        double g[ROOM], rough[ROOM], two[ROOM], gap = 0, size = 0;
        int64_t n;
        double loss = rough_value(false, with[i].form, with[i].heads, with[i].classes, g, &n);
        fin_threads_set(1);
        double near = rough_value(true, with[i].form, with[i].heads, with[i].classes, rough, &n);
        fin_threads_set(2);
        assert_true(near ==
                    rough_value(true, with[i].form, with[i].heads, with[i].classes, two, &n));
        assert_memory_equal(rough, two, (size_t)n * sizeof *two);
        for (int64_t j = 0; j < n; j++) {
            gap += (g[j] - rough[j]) * (g[j] - rough[j]);
            size += g[j] * g[j];
        }
        print_message("loss %.15g, off by %.1e; slopes by %.1e of their length\n", loss,
                      fabs(near - loss), sqrt(gap / size));
        assert_true(fabs(near - loss) < 1e-7 * loss && gap < 1e-12 * size);
    }
}

static void project__is_the_same_in_views_and_copies(void **state)
{
    (void)state;
    sample s;
    double W[3 * D], a[30], b[30], scratch[3 * D], row[D];
    make(&s);
    for (int i = 0; i < 3 * D; i++)
        W[i] = number(i);
    fini_phi copy = view(&s, FIN_F64, true), raw = view(&s, FIN_F32, false);
    assert_int_equal(fini_project_scratch(&copy, 3), 0);
    assert_int_equal(fini_project_scratch(&raw, 3), 3 * D);
    fini_project(&copy, 4, 10, 3, W, a, NULL, NULL);
    fini_project(&raw, 4, 10, 3, W, b, scratch, NULL);
    for (int i = 0; i < 30; i++)
        assert_true(fabs(a[i] - b[i]) < 1e-13);
    const double *seen = fini_phi_row(&raw, 4, row);
    for (int j = 0; j < D; j++)
        assert_true(fabs(seen[j] - s.z[4 * D + j]) < 1e-15);
    assert_int_equal(fini_phi_settle(&raw, fini_sum_alone, NULL), FIN_OK);
    assert_ptr_equal(raw.center, NULL);
    int used = 0; /* columns of scale 0 are gone, the others are the same bits */
    seen = fini_phi_row(&raw, 4, row);
    for (int j = 0; j < D; j++)
        if (s.scale[j] != 0)
            assert_true(seen[used++] == s.z[4 * D + j]);
    assert_int_equal(raw.bags.d, used);
    assert_in_range(used, 1, D - 1);
    fini_phi_close(&raw);
    unmake(&s);
}

static void share__is_whole_blocks_and_everything_once(void **state)
{
    (void)state;
    const int64_t totals[] = {0, 1, 5, 63, 64, 65, 1000, INT64_C(1) << 45};
    for (size_t t = 0; t < sizeof totals / sizeof *totals; t++)
        for (int ranks = 1; ranks <= 70; ranks += 3) {
            int64_t at = 0, blocks = 0;
            for (int rank = 0; rank < ranks; rank++) {
                int64_t first, count, block, own;
                fin_bags_share(totals[t], rank, ranks, &first, &count);
                assert_int_equal(first, at);
                at += count;
                fin_bags bags = {.n = count, .d = 1, .first = first, .total = totals[t]};
                fini_bags_own(&bags, &block, &own);
                assert_true(own == 0 || block == blocks);
                blocks += own;
                for (int64_t b = 0; b < own; b++) {
                    int64_t from, to;
                    fini_bags_block(&bags, b, &from, &to);
                    assert_true(from >= 0 && from < to && to <= count);
                    assert_true(b > 0 || from == 0);
                    assert_true(b < own - 1 || to == count);
                }
            }
            assert_int_equal(at, totals[t]);
            assert_int_equal(blocks, fin_bags_blocks(totals[t]));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(form__derivatives_are_those_of_the_loss),
        cmocka_unit_test(form__takes_scores_of_any_size),
        cmocka_unit_test(locate__sums_to_one_and_follows_the_label),
        cmocka_unit_test(risk__is_the_weighted_mean_of_losses),
        cmocka_unit_test(risk__is_nearly_the_same_in_float),
        cmocka_unit_test(project__is_the_same_in_views_and_copies),
        cmocka_unit_test(share__is_whole_blocks_and_everything_once),
    };
    return cmocka_run_group_tests(tests, list_forms, NULL);
}
