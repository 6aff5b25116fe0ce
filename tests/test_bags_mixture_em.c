/* EM for the mixture and gains: the risk never grows, EM ends where no gradient is left, and where
 * the closed forms say; gains are a minimum; threads, faults. Bags are simulated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "fault.h"
#include "kernel/kernel.h"
#include "bags/descend.h"

#include <math.h>
#include <string.h>

enum { BAGS = 90, P = 4, MOST = 5, TOKENS = BAGS * MOST, ROOM = (1 + MOST) * P + MOST + 1 };

static void near(double got, double wanted, double tolerance)
{
    if (!(fabs(got - wanted) <= tolerance))
        fail_msg("%.17g, not %.17g", got, wanted);
}

static void ok(fin_status status, const fin_error *err)
{
    if (status)
        fail_msg("%s", err->message);
}

/* Bags of 1 to 5 tokens; token J is shifted by 2 along column 0 and decides by column 1. */
typedef struct sample {
    fini_bag_shape shape;
    fini_phi phi;
    int64_t offsets[BAGS + 1];
    double tokens[TOKENS * P], labels[BAGS], weights[BAGS], penalty[2], start[ROOM];
    fini_risk *risk;
    int64_t n;
} sample;

static void draw(sample *s, int64_t classes)
{
    double normals[TOKENS * P + BAGS + 64];
    fini_kernel_ref.normals_f64((fini_key){7, (uint64_t)classes, 901}, 0,
                                (TOKENS * P + BAGS) / FINI_NORMALS_F64 + 1, normals);
    memcpy(s->tokens, normals, sizeof s->tokens);
    s->shape = (fini_bag_shape){1, classes, classes > 2 ? classes : 1, MOST, 1, &fini_bag_mixture};
    s->offsets[0] = 0;
    for (int64_t i = 0; i < BAGS; i++) {
        s->offsets[i + 1] = s->offsets[i] + 1 + i % MOST;
        double *token = s->tokens + (s->offsets[i] + i % (1 + i % MOST)) * P;
        token[0] += 2;
        double f = token[1] + 0.2 * normals[TOKENS * P + i];
        s->labels[i] = classes == 0   ? f
                       : classes == 2 ? (double)(f > 0)
                                      : (double)((f > -0.4) + (f > 0.4));
        s->weights[i] = i % 7 == 3 ? 0 : 1 + 0.5 * (double)(i % 3);
    }
    s->phi =
        (fini_phi){.bags = {BAGS, P, 0, BAGS, s->offsets, FIN_F64, s->tokens, s->labels, NULL}};
}

static void set_up(sample *s, int64_t classes)
{
    fin_error err = {FIN_OK, ""};
    memset(s, 0, sizeof *s);
    draw(s, classes);
    ok(fini_risk_create(
           &s->risk, &fini_bag_mixture,
           &(fini_problem){
               .shape = &s->shape, .phi = &s->phi, .labels = s->labels, .weights = s->weights},
           &err),
       &err);
    s->n = fini_risk_parameters(s->risk);
    int64_t extras = fini_bag_mixture.extras(&s->shape);
    assert_int_equal(s->n, (1 + s->shape.outputs) * P + extras);
    s->penalty[0] = 0.02;
    s->penalty[1] = 0.01;
    for (int64_t j = 0; j < s->n - extras; j++)
        s->start[j] = 0.1 * sin((double)(3 * j + 1));
}

static double objective(sample *s, const double *x, double *slope)
{
    fin_error err = {FIN_OK, ""};
    double value;
    ok(fini_risk_value(s->risk, x, &value, slope, &err), &err);
    for (int64_t j = 0; j < (1 + s->shape.outputs) * P; j++) {
        value += 0.5 * s->penalty[j >= P] * x[j] * x[j];
        slope[j] += s->penalty[j >= P] * x[j];
    }
    return value;
}

static double em(sample *s, int64_t steps, double *x)
{
    fin_error err = {FIN_OK, ""};
    double value;
    ok(fini_em(s->risk,
               &(fini_problem){
                   .shape = &s->shape, .phi = &s->phi, .labels = s->labels, .weights = s->weights},
               s->penalty, steps, x, &value, &err),
       &err);
    return value;
}

static const int64_t kinds[] = {0, 2, 3};
#define EACH_KIND                                                                                  \
    for (int kind = 0; kind < 3; kind++) {                                                         \
        sample s;                                                                                  \
        set_up(&s, kinds[kind]);
#define END                                                                                        \
    fini_risk_destroy(s.risk);                                                                     \
    }

/* One step at a time; the value is the penalised risk where it stands. */
static void em__never_grows(void **state)
{
    (void)state;
    EACH_KIND
    double x[ROOM], slope[ROOM], before = objective(&s, s.start, slope), first = before;
    memcpy(x, s.start, sizeof x);
    for (int k = 0; k < 40; k++) {
        double value = em(&s, 1, x);
        assert_true(value <= before);
        assert_true(value == objective(&s, x, slope));
        if (k == 0)
            assert_true(value < before - 0.01);
        before = value;
    }
    print_message("%d classes: %.4f -> %.4f\n", (int)kinds[kind], first, before);
    END
}

/* No steps: nothing changes, the value is that of the start. */
static void em__no_steps(void **state)
{
    (void)state;
    EACH_KIND
    double x[ROOM], slope[ROOM];
    memcpy(x, s.start, sizeof x);
    double value = em(&s, 0, x);
    assert_true(value == objective(&s, s.start, slope));
    assert_memory_equal(x, s.start, sizeof x);
    END
}

/* A fixed point of EM is a stationary point of the risk: steps end when they gain 1e-12 of it, and
 * then the gradient is of the order of its root, 1e-6, times the largest curvature. */
static void em__ends_where_the_gradient_vanishes(void **state)
{
    (void)state;
    EACH_KIND
    double x[ROOM], slope[ROOM], largest = 0;
    memcpy(x, s.start, sizeof x);
    em(&s, 5000, x);
    objective(&s, x, slope);
    for (int64_t j = 0; j < s.n; j++)
        largest = fmax(largest, fabs(slope[j]));
    print_message("%d classes: largest slope %.2g\n", (int)kinds[kind], largest);
    assert_true(largest < 1e-5);
    END
}

/* Newton's method on differences of gradients, from where EM is after 60 steps: the same optimum
 * by another way. */
static void newton(sample *s, double *x)
{
    double H[ROOM][ROOM], slope[ROOM], up[ROOM], down[ROOM];
    const double h = 1e-5;
    for (int k = 0; k < 8; k++) {
        objective(s, x, slope);
        for (int64_t j = 0; j < s->n; j++) {
            double keep = x[j];
            x[j] = keep + h;
            objective(s, x, up);
            x[j] = keep - h;
            objective(s, x, down);
            x[j] = keep;
            for (int64_t i = 0; i < s->n; i++)
                H[i][j] = (up[i] - down[i]) / (2 * h);
        }
        for (int64_t c = 0; c < s->n; c++) { /* elimination; the optimum is a proper one */
            assert_true(H[c][c] > 0);
            for (int64_t r = c + 1; r < s->n; r++) {
                double times = H[r][c] / H[c][c];
                for (int64_t j = c; j < s->n; j++)
                    H[r][j] -= times * H[c][j];
                slope[r] -= times * slope[c];
            }
        }
        for (int64_t c = s->n - 1; c >= 0; c--) {
            for (int64_t j = c + 1; j < s->n; j++)
                slope[c] -= H[c][j] * slope[j];
            slope[c] /= H[c][c];
            x[c] -= slope[c];
        }
    }
}

static void em__same_optimum_as_newton(void **state)
{
    (void)state;
    EACH_KIND
    if (s.shape.classes == 3) { /* a bias for all classes changes nothing: H is singular */
        fini_risk_destroy(s.risk);
        continue;
    }
    double x[ROOM], y[ROOM], slope[ROOM];
    memcpy(x, s.start, sizeof x);
    double value = em(&s, 60, x);
    memcpy(y, x, sizeof y);
    newton(&s, y);
    double best = objective(&s, y, slope);
    assert_true(best <= value + 1e-12 && value - best < 1e-2);
    value = em(&s, 5000, x);
    near(value, best, 1e-9);
    for (int64_t j = 0; j < s.n; j++)
        near(x[j], y[j], 1e-3 * (1 + fabs(y[j])));
    END
}

/* sigma^2 + floor is the mean, by posterior, of squared residuals at the optimum. */
static void em__sigma_is_the_mean_residual(void **state)
{
    (void)state;
    sample s;
    set_up(&s, 0);
    double x[ROOM], total = 0, square = 0;
    memcpy(x, s.start, sizeof x);
    em(&s, 5000, x);
    for (int64_t i = 0; i < BAGS; i++) {
        int64_t L = s.offsets[i + 1] - s.offsets[i];
        double U[2 * MOST], scratch[4 * MOST], post[MOST];
        for (int64_t l = 0; l < L; l++)
            for (int a = 0; a < 2; a++) {
                U[2 * l + a] = 0;
                for (int64_t j = 0; j < P; j++)
                    U[2 * l + a] += s.tokens[(s.offsets[i] + l) * P + j] * x[a * P + j];
            }
        fini_bag_mixture.locate(&(fini_bag){&s.shape, x + 2 * P, L, U, scratch, NULL}, &s.labels[i],
                                1, post);
        for (int64_t l = 0; l < L; l++) {
            double rest = s.labels[i] - U[2 * l + 1] - x[2 * P];
            square += s.weights[i] * post[l] * rest * rest;
        }
        total += s.weights[i];
    }
    near(fini_mixture_variance(x[2 * P + 1]), square / total, 1e-5 * square / total);
    fini_risk_destroy(s.risk);
}

/* The fit interpolates: 2 bags and 4 columns without penalty. sigma stays above its floor. */
static void em__sigma_stays_above_its_floor(void **state)
{
    (void)state;
    sample s;
    set_up(&s, 0);
    fini_risk_destroy(s.risk);
    fin_error err = {FIN_OK, ""};
    memset(s.penalty, 0, sizeof s.penalty);
    for (int i = 0; i < BAGS; i++)
        s.weights[i] = i >= 2 && i < 4;
    ok(fini_risk_create(
           &s.risk, &fini_bag_mixture,
           &(fini_problem){
               .shape = &s.shape, .phi = &s.phi, .labels = s.labels, .weights = s.weights},
           &err),
       &err);
    double x[ROOM];
    memcpy(x, s.start, sizeof x);
    double value = em(&s, 2000, x), least = 0.5 * log(2 * 3.14159265358979323846 * 1e-4);
    assert_true(isfinite(value) && value >= least);
    near(value, least, 0.1);
    for (int64_t j = 0; j < s.n; j++)
        assert_true(isfinite(x[j]));
    fini_risk_destroy(s.risk);
}

static void em__same_bytes_for_any_threads(void **state)
{
    (void)state;
    EACH_KIND
    double one[ROOM], many[ROOM];
    memcpy(one, s.start, sizeof one);
    memcpy(many, s.start, sizeof many);
    fin_threads_set(1);
    double a = em(&s, 20, one);
    fin_threads_set(8);
    double b = em(&s, 20, many);
    fin_threads_set(0);
    assert_true(a == b);
    assert_memory_equal(one, many, (size_t)s.n * sizeof(double));
    END
}

/* Gains: the slope along keys, values and extras vanishes, the loss is lower, directions stay. */
static void relax__is_a_minimum_of_gains(void **state)
{
    (void)state;
    EACH_KIND
    fin_error err = {FIN_OK, ""};
    double x[ROOM], from[ROOM], slope[ROOM], before, loss;
    s.penalty[0] = 0.4;
    s.penalty[1] = 0.2;
    memcpy(x, s.start, sizeof x);
    em(&s, 500, x);
    memcpy(from, x, sizeof from);
    ok(fini_risk_value(s.risk, x, &before, slope, &err), &err);
    ok(fini_relax(s.risk, &fini_bag_mixture, &s.shape, x, &loss, &err), &err);
    print_message("%d classes: %.4f -> %.4f, gains %.3g %.3g\n", (int)kinds[kind], before, loss,
                  x[0] / from[0], x[P] / from[P]);
    assert_true(loss < before - 0.01);
    double again, along[2] = {0, 0};
    ok(fini_risk_value(s.risk, x, &again, slope, &err), &err);
    near(again, loss, 1e-14);
    int64_t weights = (1 + s.shape.outputs) * P;
    for (int64_t j = 0; j < weights; j++) {
        along[j >= P] += slope[j] * x[j];
        int64_t other = j < P ? 0 : P;
        near(x[j] * from[other], x[other] * from[j], 1e-12); /* the same direction */
    }
    /* Steps end when they gain 1e-8: slopes of 1e-4 times the root of curvatures of about 1. */
    for (int i = 0; i < 2; i++) {
        double bent = log(x[i * P] / from[i * P]) / log(16); /* 1: at the end of what is allowed */
        near(along[i] * (1 - bent * bent), 0, 1e-3);
    }
    for (int64_t j = weights; j < s.n; j++)
        near(slope[j], 0, 1e-3);
    END
}

/* Keys that separate: the gain ends at 16. */
static void relax__gains_are_bounded(void **state)
{
    (void)state;
    sample s;
    set_up(&s, 0);
    fin_error err = {FIN_OK, ""};
    for (int64_t i = 0; i < BAGS; i++) /* the largest of column 0 is exactly the label */
        for (int64_t l = s.offsets[i]; l < s.offsets[i + 1]; l++) {
            int is = l - s.offsets[i] == i % (1 + i % MOST);
            s.tokens[l * P] = is ? 3 : 0;
            s.tokens[l * P + 1] = is ? s.labels[i] : 5;
        }
    double x[ROOM] = {0.01, 0, 0, 0, 0, 1, 0, 0, 0, -1}, loss;
    ok(fini_relax(s.risk, &fini_bag_mixture, &s.shape, x, &loss, &err), &err);
    assert_true(x[0] > 0.1 && x[0] <= 0.16 && isfinite(loss));
    fini_risk_destroy(s.risk);
}

static fin_status both(void *user, fin_error *err)
{
    sample *s = user;
    double x[ROOM], value;
    fini_risk *risk = NULL;
    memcpy(x, s->start, sizeof x);
    fin_status status = fini_risk_create(
        &risk, &fini_bag_mixture,
        &(fini_problem){
            .shape = &s->shape, .phi = &s->phi, .labels = s->labels, .weights = s->weights},
        err);
    if (!status)
        status = fini_em(
            risk,
            &(fini_problem){
                .shape = &s->shape, .phi = &s->phi, .labels = s->labels, .weights = s->weights},
            s->penalty, 2, x, &value, err);
    if (!status)
        status = fini_relax(risk, &fini_bag_mixture, &s->shape, x, &value, err);
    fini_risk_destroy(risk);
    return status;
}

static void em__faults(void **state)
{
    (void)state;
    sample s;
    set_up(&s, 2);
    fini_risk_destroy(s.risk);
    assert_true(fault_every(both, &s) >= 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(em__never_grows),
        cmocka_unit_test(em__no_steps),
        cmocka_unit_test(em__ends_where_the_gradient_vanishes),
        cmocka_unit_test(em__same_optimum_as_newton),
        cmocka_unit_test(em__sigma_is_the_mean_residual),
        cmocka_unit_test(em__sigma_stays_above_its_floor),
        cmocka_unit_test(em__same_bytes_for_any_threads),
        cmocka_unit_test(relax__is_a_minimum_of_gains),
        cmocka_unit_test(relax__gains_are_bounded),
        cmocka_unit_test(em__faults),
    };
    return cmocka_run_group_tests_name("train_mixture_em", tests, NULL, NULL);
}
