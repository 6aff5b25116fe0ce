/* Reduced and ambient SGD are the same in law: Kolmogorov-Smirnov on the five overlaps, their
 * products and lam, after 1, a few and all steps; and the same test tells wrong laws apart.
 *
 * FINETTI_TEST_SIZE=full tries all rows, usual those marked lean. small takes a 16th of the runs
 * of those, and one of the wrong laws, at its size: fewer runs would not tell it apart. The
 * probability of Kolmogorov and Smirnov is that of the number of runs, so its bound stays. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_size.h"
#include "test_train_help.h"

enum { RUNS = 1500, MOST = 30000, TIMES = 3, NUMBERS = 11 };

typedef struct law {
    int lean;
    const char *task, *form;
    int64_t d, L, batch;
    double lam, alpha;
    struct {
        int64_t L_min, m;
        double snr, gamma, mu, eps, c; /* 0: the default */
        double momentum, alpha_lam, penalty, decay;
        int64_t steps, runs;
        int sphere, oracle; /* where it starts, if not at the usual point */
        const char *engine;
    } more;
} law;

static const law laws[] = {
    /* lanes */
    {1, "slr", "erf", 80, 10, 5, 0.6, 0.004, {.eps = 0.1, .engine = "lanes"}},
    {1, "slr", "erf", 12, 10, 5, 0.5, 0.04, {.eps = 0.3, .engine = "lanes"}},
    {0, "slr", "erf", 8, 2, 1, 1.5, 0.1, {.eps = 0.3, .engine = "lanes"}},
    {0, "slr", "erf", 9, 1, 3, 1.0, 0.2, {.gamma = 0.3, .engine = "lanes"}},
    {0, "slr", "erf", 20, 41, 2, 0.3, 0.01, {.sphere = 1, .engine = "lanes"}},
    {0, "slr", "erf", 10, 5, 3, 20, 0.05, {.mu = 3, .gamma = 2, .engine = "lanes"}},
    {0, "slr", "erf", 16, 6, 4, 0.5, 0.03, {.penalty = 3, .engine = "lanes"}},
    {0, "slr", "erf", 16, 6, 4, 0.8, 0.03, {.decay = 0.1, .engine = "lanes"}},
    {1, "slr", "erf", 12, 6, 4, 0.5, 0.03, {.alpha_lam = 0.02, .engine = "lanes"}},
    {0, "spiked", "erf", 12, 6, 2, 0.5, 0.03, {.snr = 6, .engine = "lanes"}},
    /* from the oracle, 1 - nu is the length of a gradient, and with many samples hardly random */
    {1,
     "slr",
     "erf",
     40,
     6,
     48,
     0.7,
     0.01,
     {.steps = 1, .oracle = 1, .runs = 5000, .mu = 0.5, .engine = "lanes"}},
    {1,
     "slr",
     "erf",
     40,
     6,
     48,
     0.7,
     0.01,
     {.steps = 2, .oracle = 1, .runs = 5000, .mu = 0.5, .momentum = 0.9}},
    {0, "slr", "bayes", 40, 3, 12, -1, 0.1, {.steps = 1, .oracle = 1, .mu = 1}},
    /* one long step of many runs: nearly all of it is what the gradients have beyond the frame */
    {1, "slr", "erf", 8, 6, 2, 0.7, 1, {.steps = 1, .runs = MOST, .engine = "lanes"}},
    {1, "slr", "erf", 8, 6, 2, 0.7, 1, {.steps = 1, .runs = MOST, .m = 2}},
    {0, "slr", "erf", 5, 6, 2, 0.7, 1, {.steps = 1, .runs = MOST}},
    {0, "slr", "erf", 9, 6, 2, 0.7, 1, {.steps = 2, .runs = MOST, .momentum = 0.9}},
    {0, "slr", "bayes", 8, 3, 2, -1, 3, {.steps = 1, .runs = MOST, .mu = 1}},
    /* the same, generic */
    {0, "slr", "erf", 12, 10, 5, 0.5, 0.04, {.eps = 0.3, .momentum = 1e-300}},
    {1, "slr", "erf", 12, 6, 3, 0.5, 0.02, {.momentum = 0.7}},
    {0, "slr", "erf", 12, 6, 3, 0.5, 0.03, {.momentum = 0.7, .alpha_lam = 0.02}},
    {0, "slr", "erf", 12, 6, 3, 0.5, 0.02, {.momentum = 0.7, .penalty = 3}},
    {0, "slr", "erf", 6, 6, 3, 0.5, 0.03, {.momentum = 0.7}},
    {0, "slr", "erf", 7, 6, 3, 0.5, 0.03, {.momentum = 0.7}},
    {0, "slr", "erf", 8, 6, 3, 0.5, 0.03, {.momentum = 0.7}},
    {0, "slr", "erf", 2, 5, 3, 0.7, 0.05, {.eps = 0.3}},
    {0, "slr", "erf", 3, 5, 3, 0.7, 0.05, {.eps = 0.3}},
    {0, "slr", "erf", 4, 5, 3, 0.7, 0.05, {.eps = 0.3}},
    {0, "slr", "erf", 5, 5, 3, 0.7, 0.05, {.eps = 0.3}},
    {0, "slr", "erf", 7, 5, 3, 0.7, 0.05, {.eps = 0.3}},
    {0, "slr", "erf", 3, 5, 3, 0.7, 0.05, {.momentum = 0.5}},
    {0, "slr", "erf", 12, 8, 3, 0.5, 0.02, {.L_min = 3, .m = 2, .eps = 0.3}},
    {0, "slr", "erf", 12, 6, 3, 0.5, 0.03, {.m = 3, .alpha_lam = 0.02, .penalty = 1}},
    {0, "max", "erf", 12, 6, 3, 0.7, 0.1, {.snr = 2}},
    /* other forms */
    {1, "spiked", "softmax", 12, 6, 3, 1.5, 0.2, {.snr = 9}},
    {0, "spiked", "softmax", 5, 6, 3, 1.5, 0.2, {.snr = 9, .alpha_lam = 0.3}},
    {0, "slr", "softmax", 12, 8, 3, 1.5, 0.2, {.L_min = 3, .m = 2, .eps = 0.3}},
    {0, "max", "softmax", 12, 6, 3, 2, 0.3, {.snr = 4}},
    {0, "max", "softmax", 12, 6, 3, 2, 0.3, {.snr = INFINITY}},
    {0, "max", "softmax", 3, 6, 3, 2, 0.3, {.snr = 4}},
    {0, "max", "softmax", 12, 7, 3, 2, 0.2, {.snr = 4, .L_min = 3, .m = 2, .momentum = 0.6}},
    {0, "slr", "shifted", 12, 6, 3, 0.5, 0.02, {.c = -0.5}},
    {0, "slr", "linear", 12, 6, 3, 0.3, 0.005, {.eps = 0.2}},
    {0, "slr", "softplus", 12, 6, 3, 2, 0.2, {.eps = 0.2}},
    {0, "max", "hardmax", 12, 6, 3, 0, 0.3, {.snr = 4}},
    {0, "spiked", "bayes", 12, 6, 3, -1, 0.3, {.snr = 4}},
    /* norms seen: the staircase */
    {1, "slr", "bayes", 12, 4, 3, -1, 0.2, {.mu = 1}},
    {0, "slr", "bayes", 40, 4, 3, -1, 0.2, {.mu = 1, .gamma = 0.9}},
    {0, "slr", "bayes", 12, 7, 2, -1, 0.2, {.L_min = 2, .mu = 1, .momentum = 0.6, .m = 2}},
    {0, "slr", "bayes", 4, 4, 3, -1, 0.2, {.mu = 1}},
    {0, "slr", "bayes", 5, 4, 3, -1, 0.2, {.mu = 1}},
    {0, "slr", "bayes", 2, 4, 3, -1, 0.2, {.mu = 1}},
};
enum { LAWS = sizeof laws / sizeof *laws };

/* Everything together is wrongly refused once in 1e4. */
static const double floor_of_p = 1e-4 / (LAWS * TIMES * NUMBERS);

typedef struct sample {
    int64_t runs;
    int times;
    double x[TIMES][NUMBERS][MOST];
} sample;

/* The numbers compared: overlaps, products that tell signs and dependence, lam. */
static void look(const fin_train *t, int time, sample *out)
{
    for (int64_t run = 0; run < out->runs; run++) {
        fin_overlaps o;
        double lam;
        t->engine->read(t, run, &o, &lam);
        const double x[NUMBERS] = {o.kappa,
                                   o.nu,
                                   o.theta,
                                   o.eta,
                                   o.rho,
                                   o.kappa * o.nu,
                                   o.theta * o.eta,
                                   o.kappa * o.eta,
                                   o.kappa * o.theta * o.rho,
                                   o.nu * o.eta * o.rho,
                                   lam};
        for (int j = 0; j < NUMBERS; j++)
            out->x[time][j][run] = round(x[j] * 1e9); /* what does not move is a tie */
    }
}

static void simulate(const law *l, int engine, int64_t fewer, sample *out)
{
    fin_task_settings ts = task_settings(l->task, l->d, l->L);
    if (l->more.L_min)
        ts.L_min = l->more.L_min;
    if (l->more.m)
        ts.m = l->more.m;
    if (l->more.snr > 0)
        ts.snr = l->more.snr;
    if (l->more.gamma > 0)
        ts.gamma = l->more.gamma;
    if (l->more.mu > 0)
        ts.mu = l->more.mu;
    ts.eps = l->more.eps;
    fin_form_settings fs = form_settings(l->form, l->lam);
    if (l->more.c != 0)
        fs.c = l->more.c;
    out->runs = (l->more.runs ? l->more.runs : RUNS) / fewer;
    fin_train_settings s = train_settings(engine, out->runs, l->more.steps ? l->more.steps : 30);
    s.init = l->more.sphere ? FIN_INIT_SPHERE : FIN_INIT_OVERLAPS;
    s.alpha = l->alpha;
    s.batch = l->batch;
    s.momentum = l->more.momentum;
    s.alpha_lam = l->more.alpha_lam;
    s.penalty = l->more.penalty;
    s.decay = l->more.decay;
    s.log_every = s.steps;
    s.seed = 7;
    const double k[4] = {0.5, 0.3, 0.6, 0}, v[4] = {-0.3, 0.4, 0.3, 0.7};
    fin_overlaps o = overlaps_of(l->d < 4 ? l->d : 4, k, v);
    if (l->more.oracle)
        o = (fin_overlaps){1, 1, 0, 0, 0};
    fin_train_start start = {.count = 1, .overlaps = &o};
    fin_task *task = task_make(l->task, &ts, 3, FIN_TASK_AMBIENT);
    fin_train *t = train_make(task, l->form, &fs, &s, &start);
    if (engine == FIN_ENGINE_REDUCED)
        assert_ptr_equal(t->engine, l->more.engine ? &fini_reduced_lanes : &fini_reduced);
    const int64_t until[TIMES] = {1, s.steps < 7 ? s.steps : 7, s.steps};
    out->times = 0;
    for (int i = 0; i < TIMES; i++)
        if (i == 0 || until[i] > until[i - 1]) {
            OK(fin_train_run(t, until[i], NULL, &err));
            look(t, out->times++, out);
        }
    fin_train_destroy(t);
    fin_task_destroy(task);
}

/* The least probability over times and the first `numbers`; the samples are sorted. */
static double compare(sample *a, sample *b, int numbers, int *time, int *number)
{
    double least = 2;
    assert_true(a->times == b->times);
    for (int i = 0; i < a->times; i++)
        for (int j = 0; j < numbers; j++) {
            double p = ks_probability(a->runs, a->x[i][j], b->runs, b->x[i][j]);
            if (p < least) {
                least = p;
                *time = i;
                *number = j;
            }
        }
    return least;
}

static double spread(const sample *s, int number)
{
    const double *sorted = s->x[s->times - 1][number];
    return (sorted[s->runs * 9 / 10] - sorted[s->runs / 10]) / 1e9;
}

static void print(const char *what, const law *l, const sample *x, double p, int time, int number)
{
    print_message("%s %s/%s d=%d L=%d b=%d: least p = %.2g (time %d, number %d); spread of "
                  "overlaps",
                  what, l->task, l->form, (int)l->d, (int)l->L, (int)l->batch, p, time, number);
    for (int j = 0; j < 5; j++)
        print_message(" %.2f", spread(x, j));
    print_message("\n");
}

static void reduced__has_the_law_of_ambient(void **state)
{
    (void)state;
    static sample a, b;
    int time = 0, number = 0, bad = 0;
    for (int i = 0; i < LAWS; i++) {
        if (!laws[i].lean && !sized(0, 0, 1))
            continue;
        simulate(&laws[i], FIN_ENGINE_REDUCED, sized(16, 1, 1), &a);
        simulate(&laws[i], FIN_ENGINE_AMBIENT, sized(16, 1, 1), &b);
        double p = compare(&a, &b, NUMBERS, &time, &number);
        print(p < floor_of_p ? "DIFFERENT" : "same law", &laws[i], &b, p, time, number);
        bad += p < floor_of_p;
        int moved = 0; /* runs that stand still would prove nothing; hardmax moves v only */
        for (int j = 0; j < 5; j++)
            moved += spread(&b, j) > (laws[i].more.oracle ? 1e-5 : 0.1);
        assert_true(moved >= (laws[i].d < 4 || strcmp(laws[i].form, "hardmax") == 0 ? 3 : 5));
    }
    assert_int_equal(bad, 0);
}

/* The same comparison (without lam, which tells too much) with something wrong on one side: lanes,
 * then the generic engine. */
static const law right[2] = {
    {1, "slr", "erf", 24, 10, 5, 0.6, 0.015, {.eps = 0.5, .mu = 4, .engine = "lanes"}},
    {1, "slr", "erf", 12, 6, 3, 0.5, 0.015, {.eps = 0.5, .mu = 2.5, .momentum = 0.7}}};

static const char *const mistakes[] = {
    "d a third too large", "d = 8: hardly a Wishart", "gamma 30 % off",
    "mu 30 % off",         "eps too large",           "lam 20 % off",
    "alpha 25 % off",      "a batch one too small",   "penalty",
    "lam trained",         "momentum, or alpha",      "decay"};
enum { MISTAKES = sizeof mistakes / sizeof *mistakes };

static law with_mistake(const law *good, int i)
{
    law l = *good;
    switch (i) {
    case 0:
        l.d += l.d / 3;
        break;
    case 1:
        l.d = 8;
        break;
    case 2:
        l.more.gamma = 0.92;
        break;
    case 3:
        l.more.mu *= 1.3;
        break;
    case 4:
        l.more.eps *= 3;
        break;
    case 5:
        l.lam *= 1.2;
        break;
    case 6:
        l.alpha *= 1.25;
        break;
    case 7:
        l.batch--;
        break;
    case 8:
        l.more.penalty = 10;
        break;
    case 9:
        l.more.alpha_lam = 0.01;
        break;
    case 10:
        l.more.momentum = good->more.momentum > 0 ? 0.85 : 0;
        l.alpha *= good->more.momentum > 0 ? 1 : 0.75;
        break;
    default:
        l.more.decay = 0.05;
    }
    return l;
}

static void compare__rejects_wrong_laws(void **state)
{
    (void)state;
    static sample a, b;
    int time = 0, number = 0;
    for (int engine = 0; engine < 2; engine++) {
        simulate(&right[engine], FIN_ENGINE_AMBIENT, 1, &b);
        for (int i = 0; i < MISTAKES; i += (int)sized(MISTAKES, 1, 1)) {
            law bad = with_mistake(&right[engine], i);
            simulate(&bad, FIN_ENGINE_REDUCED, 1, &a);
            double p = compare(&a, &b, NUMBERS - 1, &time, &number);
            print(mistakes[i], &bad, &b, p, time, number);
            if (!(p < floor_of_p))
                fail_msg("%s was not seen: p = %g", mistakes[i], p);
        }
        simulate(&right[engine], FIN_ENGINE_REDUCED, 1, &a);
        assert_true(compare(&a, &b, NUMBERS - 1, &time, &number) > floor_of_p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduced__has_the_law_of_ambient),
        cmocka_unit_test(compare__rejects_wrong_laws),
    };
    return cmocka_run_group_tests_name("train_law", tests, NULL, NULL);
}
