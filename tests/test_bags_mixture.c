/* The mixture as a form: scores of one bag in, loss, derivatives, prediction and location out. All
 * of it is compared with sums written down naively, derivatives with differences. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "bags/descend.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST = 9, OUTPUTS = 5, ROOM = LONGEST * (1 + OUTPUTS) };

static const fini_bag_form *form = &fini_bag_mixture;

static void near(double got, double wanted, double tolerance)
{
    if (!(fabs(got - wanted) <= tolerance))
        fail_msg("%.17g, not %.17g", got, wanted);
}

static fini_bag_shape shape_of(int64_t classes)
{
    return (fini_bag_shape){1, classes, classes > 2 ? classes : 1, LONGEST, 1, &fini_bag_mixture};
}

/* Normal scores times `size`, extras and a label. */
typedef struct bag {
    int64_t L, q;
    double U[ROOM], extra[OUTPUTS + 1], y, scratch[LONGEST * (3 + OUTPUTS)];
} bag;

static bag bag_of(const fini_bag_shape *shape, int64_t L, double size, uint64_t seed)
{
    bag b = {.L = L, .q = 1 + shape->outputs};
    fini_key key = {seed, 0, 900};
    double normals[FINI_NORMALS_F64 * 8];
    fini_kernel_ref.normals_f64(key, 0, 8, normals);
    for (int64_t i = 0; i < L * b.q; i++)
        b.U[i] = size * normals[i];
    for (int i = 0; i <= OUTPUTS; i++)
        b.extra[i] = normals[ROOM + i];
    b.y = shape->classes ? (double)(seed % (uint64_t)shape->classes) : normals[ROOM + 8];
    return b;
}

/* p(y | J = l). */
static double emission(const fini_bag_shape *shape, const bag *b, int64_t l, double y)
{
    const double *u = b->U + l * b->q + 1, pi = 3.14159265358979323846;
    if (shape->classes == 0) {
        double variance = 1e-4 + exp(2 * b->extra[1]), rest = y - u[0] - b->extra[0];
        return exp(-rest * rest / (2 * variance)) / sqrt(2 * pi * variance);
    }
    if (shape->classes == 2)
        return 1 / (1 + exp(y == 1 ? -u[0] - b->extra[0] : u[0] + b->extra[0]));
    double total = 0;
    for (int64_t c = 0; c < shape->classes; c++)
        total += exp(u[c] + b->extra[c]);
    return exp(u[(int64_t)y] + b->extra[(int64_t)y]) / total;
}

static double likelihood(const fini_bag_shape *shape, const bag *b, double y)
{
    double sum = 0, total = 0;
    for (int64_t l = 0; l < b->L; l++) {
        total += exp(b->U[l * b->q]);
        sum += exp(b->U[l * b->q]) * emission(shape, b, l, y);
    }
    return sum / total;
}

static double loss_of(const fini_bag_shape *shape, bag *b, double *dU, double *dextra)
{
    double room[ROOM], more[OUTPUTS + 1] = {0};
    return form->loss(&(fini_bag){shape, b->extra, b->L, b->U, b->scratch, NULL}, b->y,
                      dU ? dU : room, dextra ? dextra : more);
}

static const int64_t kinds[] = {0, 2, 3, 5};
#define EACH_BAG(size)                                                                             \
    for (int kind = 0; kind < 4; kind++)                                                           \
        for (int64_t L = 1; L <= LONGEST; L++)                                                     \
            for (uint64_t seed = 0; seed < 6; seed++) {                                            \
                fini_bag_shape shape = shape_of(kinds[kind]);                                      \
                bag b = bag_of(&shape, L, size, 10 * seed + (uint64_t)L);
#define END }

static void loss__is_minus_log_likelihood(void **state)
{
    (void)state;
    EACH_BAG(1.5)
    double value = loss_of(&shape, &b, NULL, NULL);
    near(value, -log(likelihood(&shape, &b, b.y)), 1e-12 * (1 + fabs(value)));
    END
}

/* Central differences, h = 1e-5: error h^2 f''' / 6 + 1e-16 |f| / h, below 1e-8 for scores of the
 * order of 1 and likelihoods that are not far away. dextra is added to. */
static void loss__gradient_by_differences(void **state)
{
    (void)state;
    const double h = 1e-5;
    double worst = 0;
    EACH_BAG(1)
    double dU[ROOM], dextra[OUTPUTS + 1];
    for (int i = 0; i <= OUTPUTS; i++)
        dextra[i] = 7;
    b.extra[1] = shape.classes ? b.extra[1] : 0.3 * b.extra[1];
    loss_of(&shape, &b, dU, dextra);
    int64_t extras = form->extras(&shape);
    for (int64_t i = 0; i < b.L * b.q + extras; i++) {
        double *x = i < b.L * b.q ? &b.U[i] : &b.extra[i - b.L * b.q], keep = *x;
        double slope = i < b.L * b.q ? dU[i] : dextra[i - b.L * b.q] - 7;
        *x = keep + h;
        double up = loss_of(&shape, &b, NULL, NULL);
        *x = keep - h;
        double down = loss_of(&shape, &b, NULL, NULL);
        *x = keep;
        near(slope, (up - down) / (2 * h), 1e-7 * (1 + fabs(slope)));
        worst = fmax(worst, fabs(slope - (up - down) / (2 * h)) / (1 + fabs(slope)));
    }
    for (int64_t i = extras; i <= OUTPUTS; i++)
        assert_true(dextra[i] == 7);
    END print_message("largest difference %.2g\n", worst);
}

/* Probabilities sum to 1; the mean and the variance of a number are integrals of its density. */
static void predict__agrees_with_the_likelihood(void **state)
{
    (void)state;
    EACH_BAG(1.5)
    double out[OUTPUTS], variance = 0, total = 0;
    if (shape.classes) {
        form->predict(&(fini_bag){&shape, b.extra, b.L, b.U, b.scratch, NULL}, out, NULL);
        for (int64_t c = 0; c < shape.classes; c++) {
            near(out[c], likelihood(&shape, &b, (double)c), 1e-13);
            total += out[c];
        }
        near(total, 1, 1e-13);
        continue;
    }
    b.extra[1] *= 0.3;
    form->predict(&(fini_bag){&shape, b.extra, b.L, b.U, b.scratch, NULL}, out, &variance);
    double first = 0, second = 0,
           step = 0.02; /* the trapezoidal rule is exact for such densities */
    for (double y = -40; y < 40; y += step) {
        double p = step * likelihood(&shape, &b, y);
        total += p;
        first += p * y;
        second += p * y * y;
    }
    near(total, 1, 1e-10);
    near(out[0], first, 1e-9);
    near(variance, second - first * first, 1e-8);
    END
}

/* Bayes' rule, term by term; sigma2 of the caller does not enter. */
static void locate__is_the_exact_posterior(void **state)
{
    (void)state;
    EACH_BAG(1.5)
    double prior[LONGEST], given[LONGEST], total = 0;
    form->locate(&(fini_bag){&shape, b.extra, b.L, b.U, b.scratch, NULL}, NULL, NAN, prior);
    form->locate(&(fini_bag){&shape, b.extra, b.L, b.U, b.scratch, NULL}, &b.y, NAN, given);
    for (int64_t l = 0; l < b.L; l++)
        total += exp(b.U[l * b.q]);
    for (int64_t l = 0; l < b.L; l++) {
        double w = exp(b.U[l * b.q]) / total;
        near(prior[l], w, 1e-13);
        near(given[l], w * emission(&shape, &b, l, b.y) / likelihood(&shape, &b, b.y), 1e-11);
    }
    END
}

/* Summed over labels, posteriors times likelihoods give the prior back. */
static void locate__averages_to_the_prior(void **state)
{
    (void)state;
    EACH_BAG(2)
    if (shape.classes == 0)
        continue;
    double prior[LONGEST], given[LONGEST], mixed[LONGEST] = {0}, out[OUTPUTS];
    form->locate(&(fini_bag){&shape, b.extra, b.L, b.U, b.scratch, NULL}, NULL, 1, prior);
    form->predict(&(fini_bag){&shape, b.extra, b.L, b.U, b.scratch, NULL}, out, NULL);
    for (int64_t c = 0; c < shape.classes; c++) {
        double y = (double)c;
        form->locate(&(fini_bag){&shape, b.extra, b.L, b.U, b.scratch, NULL}, &y, 1, given);
        for (int64_t l = 0; l < b.L; l++)
            mixed[l] += out[c] * given[l];
    }
    for (int64_t l = 0; l < b.L; l++)
        near(mixed[l], prior[l], 1e-13);
    END
}

/* Scores of hundreds, where exp is 0 or infinite: the loss is of the order of the scores, the
 * derivatives are those of a bag whose largest terms win. */
static void loss__survives_large_scores(void **state)
{
    (void)state;
    EACH_BAG(3000)
    double dU[ROOM], dextra[OUTPUTS + 1] = {0}, sum = 0;
    b.extra[1] = shape.classes ? b.extra[1] : -30; /* sigma at its floor */
    double value = loss_of(&shape, &b, dU, dextra);
    assert_true(isfinite(value) && value > -4);
    for (int64_t i = 0; i < b.L * b.q; i++)
        assert_true(isfinite(dU[i]));
    for (int64_t l = 0; l < b.L; l++)
        sum += dU[l * b.q];
    near(sum, 0, 1e-12); /* gate and posterior both sum to 1 */
    double weight[LONGEST];
    form->locate(&(fini_bag){&shape, b.extra, b.L, b.U, b.scratch, NULL}, &b.y, 1, weight);
    sum = 0;
    for (int64_t l = 0; l < b.L; l++)
        sum += weight[l];
    near(sum, 1, 1e-12);
    END
}

/* A loss that is not finite says so and does not crash: the search steps back from it. */
static void loss__not_finite_for_infinite_scores(void **state)
{
    (void)state;
    EACH_BAG(1)
    b.U[0] = INFINITY;
    assert_false(isfinite(loss_of(&shape, &b, NULL, NULL)));
    b.U[0] = NAN;
    assert_false(isfinite(loss_of(&shape, &b, NULL, NULL)));
    END
}

/* Tokens may come in any order: an exchangeable model. */
static void loss__does_not_depend_on_order(void **state)
{
    (void)state;
    EACH_BAG(2)
    bag other = b;
    for (int64_t l = 0; l < L; l++)
        memcpy(other.U + l * b.q, b.U + (L - 1 - l) * b.q, (size_t)b.q * sizeof(double));
    double value = loss_of(&shape, &b, NULL, NULL);
    near(loss_of(&shape, &other, NULL, NULL), value, 1e-13 * (1 + fabs(value)));
    END
}

/* One class score that is the same for all is no score at all; two classes through the softmax of
 * several are the logistic law with their difference. */
static void several__contains_logistic(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        fini_bag_shape three = shape_of(3), two = shape_of(2);
        bag b = bag_of(&three, 6, 2, 20 * seed), c = bag_of(&two, 6, 2, 20 * seed);
        b.y = c.y = (double)(seed % 2);
        b.extra[2] = -900; /* the third class never happens */
        c.extra[0] = b.extra[1] - b.extra[0];
        for (int l = 0; l < 6; l++) {
            c.U[2 * l] = b.U[4 * l];
            c.U[2 * l + 1] = b.U[4 * l + 2] - b.U[4 * l + 1];
        }
        near(loss_of(&three, &b, NULL, NULL), loss_of(&two, &c, NULL, NULL), 1e-13);
    }
}

static void variance__has_a_floor(void **state)
{
    (void)state;
    near(fini_mixture_variance(-INFINITY), 1e-4, 1e-18);
    near(fini_mixture_variance(0), 1.0001, 1e-15);
    assert_true(isfinite(fini_mixture_variance(INFINITY)));
    for (double v = 1.1e-4; v < 1e6; v *= 1.7)
        near(fini_mixture_variance(fini_mixture_log_sigma(v)) / v, 1, 1e-12);
    assert_true(isfinite(fini_mixture_log_sigma(0)) && isfinite(fini_mixture_log_sigma(1e-4)));
    near(fini_mixture_variance(fini_mixture_log_sigma(0)), 1e-4, 1e-9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss__is_minus_log_likelihood),
        cmocka_unit_test(loss__gradient_by_differences),
        cmocka_unit_test(predict__agrees_with_the_likelihood),
        cmocka_unit_test(locate__is_the_exact_posterior),
        cmocka_unit_test(locate__averages_to_the_prior),
        cmocka_unit_test(loss__survives_large_scores),
        cmocka_unit_test(loss__not_finite_for_infinite_scores),
        cmocka_unit_test(loss__does_not_depend_on_order),
        cmocka_unit_test(several__contains_logistic),
        cmocka_unit_test(variance__has_a_floor),
    };
    return cmocka_run_group_tests_name("train_mixture", tests, NULL, NULL);
}
