/* Gradient flow against another solver, in the overlaps, and against what a flow must do. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fault.h"
#include "test_size.h"
#include "test_theory_help.h"
#include "train/train.h"

enum { KAPPA, NU, THETA, ETA, RHO, LAM, STATE, RISK = 6 };

/* log[j] of a run at logged step i, in the order of FIN_LOG_LIST. */
static double logged(const fin_train *t, int j, int64_t run, int64_t i)
{
    return t->log[j][run * t->logs + i];
}

static fin_task *paper(int64_t d)
{
    fin_task *task;
    fin_task_settings s;
    fin_settings_defaults(fin_task_kind_table(fin_task_find("slr")), &s, sizeof s);
    s.d = d;
    OK(fin_task_create(&task, fin_task_find("slr"), &s, NULL, 1, 0, &err));
    return task;
}

static fin_train_settings flow_settings(void)
{
    fin_train_settings s;
    fin_settings_defaults(&fin_train_table, &s, sizeof s);
    s.rule = FIN_RULE_FLOW;
    s.runs = 1;
    return s;
}

/* ---- another way: explicit rules in the overlaps ------------------------------------------------- */

/* The flow written for the five overlaps and lam, per step; at a real-valued step. */
static void slope(const fin_train *t, double s, const double x[STATE], double dx[STATE])
{
    double c[STATE];
    for (int i = 0; i < 5; i++)
        c[i] = fmax(-1, fmin(1, x[i]));
    bool trained = t->settings.alpha_lam > 0;
    int64_t whole = (int64_t)floor(s);
    double lam = fini_lam_at(t, whole) * (1 + t->settings.decay * (double)whole) /
                 (1 + t->settings.decay * s);
    double alpha = fini_alpha_at(t, whole);
    fin_overlaps o = {c[0], c[1], c[2], c[3], c[4]};
    fin_risk_value value;
    OK(fini_exact_risk(t, &o, trained ? fmax(x[LAM], 0) : lam, &value, &err));
    const double *R = value.gradient;
    double Rr = R[4] + 2 * t->settings.penalty * x[RHO];
    double kg = R[0] * x[KAPPA] + R[3] * x[ETA] + Rr * x[RHO];
    double vg = R[2] * x[THETA] + R[1] * x[NU] + Rr * x[RHO];
    dx[KAPPA] = -alpha * (R[0] + Rr * x[THETA] - kg * x[KAPPA]);
    dx[ETA] = -alpha * (R[3] + Rr * x[NU] - kg * x[ETA]);
    dx[NU] = -alpha * (R[1] + Rr * x[ETA] - vg * x[NU]);
    dx[THETA] = -alpha * (R[2] + Rr * x[KAPPA] - vg * x[THETA]);
    dx[RHO] = -alpha * (R[0] * x[THETA] + R[3] * x[NU] + Rr - kg * x[RHO] + R[2] * x[KAPPA] +
                        R[1] * x[ETA] + Rr - vg * x[RHO]);
    dx[LAM] = trained ? -t->settings.alpha_lam * value.d_lam : 0;
}

/* From step s to s + h, by the midpoint rule with n = 2, 4, 6 and 8 pieces. Their errors are series
 * in 1 / n^2, and are taken away as by Neville (Gragg 1965; Bulirsch and Stoer 1966): order 8. In two
 * halves where the last two orders still differ. Schedules change between steps: no slope is taken
 * at the end of one, and h is one or one of its halves. */
static void extrapolate(const fin_train *t, double s, double h, double x[STATE])
{
    enum { RULES = 4 };
    double T[RULES][STATE], y[3][STATE], dx[STATE], differ = 0;
    for (int j = 0; j < RULES; j++) {
        const int n = 2 * (j + 1);
        memcpy(y[0], x, sizeof y[0]);
        for (int m = 0; m < n;
             m++) { /* y_(m + 1) = y_(m - 1) + 2 h / n f(y_m), the first by Euler */
            slope(t, s + h * m / n, y[m % 3], dx);
            for (int i = 0; i < STATE; i++)
                y[(m + 1) % 3][i] = (m ? y[(m + 2) % 3][i] : x[i]) + (m ? 2 : 1) * h / n * dx[i];
        }
        memcpy(T[j], y[n % 3], sizeof T[j]);
    }
    for (int k = 1; k < RULES; k++)
        for (int j = RULES - 1; j >= k; j--) {
            const double ratio = (double)(j + 1) / (j + 1 - k);
            for (int i = 0; i < STATE; i++)
                T[j][i] += (T[j][i] - T[j - 1][i]) / (ratio * ratio - 1);
        }
    for (int i = 0; i < STATE; i++)
        differ = fmax(differ, fabs(T[RULES - 1][i] - T[RULES - 2][i]));
    if (!(differ < 1e-10)) {
        assert_true(h > 1e-3);
        extrapolate(t, s, h / 2, x);
        extrapolate(t, s + h / 2, h / 2, x);
    } else
        memcpy(x, T[RULES - 1], sizeof T[0]);
}

/* From step s to s + h; schedules change between steps, so h divides one. */
static void runge_kutta(const fin_train *t, double s, double h, double x[STATE])
{
    double k[4][STATE], y[STATE];
    static const double at[] = {0, 0.5, 0.5, 1};
    const double inside = 1 - 1e-9; /* the end of a step still has the lam and alpha of that step */
    for (int j = 0; j < 4; j++) {
        for (int i = 0; i < STATE; i++)
            y[i] = x[i] + (j ? at[j] * h * k[j - 1][i] : 0);
        slope(t, s + at[j] * h * (j == 3 ? inside : 1), y, k[j]);
    }
    for (int i = 0; i < STATE; i++)
        x[i] += h / 6 * (k[0][i] + 2 * k[1][i] + 2 * k[2][i] + k[3][i]);
}

static void start_of(const fin_train *t, int64_t run, double x[STATE])
{
    fin_overlaps o;
    OK(fini_start_overlaps(t, run, &o, &err));
    memcpy(x, (double[]){o.kappa, o.nu, o.theta, o.eta, o.rho, fini_lam_at(t, 0)},
           STATE * sizeof *x);
}

/* Largest difference of the overlaps (and lam, if trained) over all logs and runs. */
static double compare(const fin_train *t)
{
    double worst = 0;
    for (int64_t run = 0; run < t->settings.runs; run++) {
        double x[STATE];
        start_of(t, run, x);
        for (int64_t i = 0, step = 0; i < t->logs; i++) {
            for (; step < t->step[i]; step++)
                extrapolate(t, (double)step, 1, x);
            for (int j = 0; j < 5 + (t->settings.alpha_lam > 0); j++)
                worst = fmax(worst, fabs(x[j] - logged(t, j, run, i)));
        }
    }
    return worst;
}

static double solve_and_compare(const char *what, const fin_task *task, const char *form,
                                fin_form_settings fs, const fin_train_settings *s,
                                const fin_train_start *start)
{
    fin_train *t;
    OK(fin_train_create(&t, task, fin_form_find(form), &fs, s, start, &err));
    OK(fin_train_run(t, s->steps, NULL, &err));
    double worst = compare(t);
    print_message("%-32s %.1e\n", what, worst);
    fin_train_destroy(t);
    return worst;
}

static void flow__equals_another_solver(void **state)
{
    (void)state;
    fin_task *task = paper(400), *spiked = make("spiked", 30, 2, 9, 2, 3, 0);
    fin_train_settings plain = flow_settings(), s;
    plain.runs = sized(1, 3, 3);
    plain.steps = 1000;
    plain.stuck = 0;
    s = plain;
    assert_true(solve_and_compare("sphere, lam 0.1", task, "erf", (fin_form_settings){0.1, 0}, &s,
                                  NULL) < 1e-8);
    assert_true(solve_and_compare("sphere, lam 0.9", task, "erf", (fin_form_settings){0.9, 0}, &s,
                                  NULL) < 1e-8);
    s.init = FIN_INIT_MANIFOLD;
    assert_true(solve_and_compare("manifold", task, "erf", (fin_form_settings){0.1, 0}, &s, NULL) <
                1e-8);
    s = plain;
    s.penalty = 3;
    assert_true(solve_and_compare("penalty", task, "erf", (fin_form_settings){0.1, 0}, &s, NULL) <
                1e-8);
    s = plain;
    s.decay = 1e-2;
    assert_true(solve_and_compare("decay", task, "erf", (fin_form_settings){0.9, 0}, &s, NULL) <
                1e-8);
    /* lam and alpha change, now and then at logged steps, once together */
    fin_train_start start = {.lam = {3, (int64_t[]){0, 100, 437}, (double[]){0.5, 0.1, 0.3}},
                             .alpha = {3, (int64_t[]){0, 55, 437}, (double[]){4e-3, 1e-3, 6e-3}}};
    assert_true(solve_and_compare("schedules and decay", task, "erf", (fin_form_settings){1, 0}, &s,
                                  &start) < 1e-8);
    s = plain;
    s.alpha_lam = 1e-4;
    assert_true(solve_and_compare("lam trained", task, "erf", (fin_form_settings){0.1, 0}, &s,
                                  NULL) < 1e-8);
    s = plain;
    s.steps = 300;
    s.alpha = 1e-2;
    assert_true(solve_and_compare("linear on spiked", spiked, "linear", (fin_form_settings){0.5, 0},
                                  &s, NULL) < 1e-8);
    assert_true(solve_and_compare("shifted on spiked", spiked, "shifted",
                                  (fin_form_settings){0.5, -0.4}, &s, NULL) < 1e-8);
    fin_task_destroy(task);
    fin_task_destroy(spiked);
}

/* In two and three dimensions the frame is smaller. */
static void flow__in_few_dimensions(void **state)
{
    (void)state;
    for (int64_t d = 2; d <= 5; d++) {
        fin_task *task = paper(d);
        fin_train_settings s = flow_settings();
        s.runs = sized(1, 4, 4);
        s.steps = 1000;
        s.stuck = 0;
        assert_true(solve_and_compare("few dimensions", task, "erf", (fin_form_settings){0.6, 0},
                                      &s, NULL) < 1e-8);
        fin_task_destroy(task);
    }
}

/* Descent with shorter and shorter steps comes nearer, in proportion. */
static void flow__is_the_limit_of_descent(void **state)
{
    (void)state;
    fin_task *task = paper(400);
    fin_train *flow, *descent;
    fin_train_settings s = flow_settings();
    s.runs = 2;
    s.steps = 400;
    s.alpha = 4e-3;
    OK(fin_train_create(&flow, task, fin_form_find("erf"), NULL, &s, NULL, &err));
    OK(fin_train_run(flow, s.steps, NULL, &err));
    double last = 0;
    for (int finer = 4; finer <= 64; finer *= 4) {
        double off = 0;
        s.rule = FIN_RULE_DESCENT;
        s.steps = 400 * finer;
        s.alpha = 4e-3 / finer;
        OK(fin_train_create(&descent, task, fin_form_find("erf"), NULL, &s, NULL, &err));
        OK(fin_train_run(descent, s.steps, NULL, &err));
        for (int64_t run = 0; run < 2; run++)
            for (int j = 0; j < 5; j++)
                off = fmax(off, fabs(logged(flow, j, run, flow->logs - 1) -
                                     logged(descent, j, run, descent->logs - 1)));
        print_message("steps %d times as short: off by %.2e\n", finer, off);
        assert_true(off < 0.01 && (finer == 4 || (off > 0.2 * last && off < 0.3 * last)));
        last = off;
        fin_train_destroy(descent);
    }
    fin_train_destroy(flow);
    fin_task_destroy(task);
}

/* ---- what a flow must do --------------------------------------------------------------------------- */

static void flow__goes_down_and_stays_on_M(void **state)
{
    (void)state;
    fin_task *task = paper(400);
    fin_train *t;
    fin_train_settings s = flow_settings();
    s.init = FIN_INIT_MANIFOLD;
    s.runs = 30;
    for (int sphere = 0; sphere < 2; sphere++) {
        if (sphere)
            s.init = FIN_INIT_SPHERE;
        OK(fin_train_create(&t, task, fin_form_find("erf"), NULL, &s, NULL, &err));
        OK(fin_train_run(t, s.steps, NULL, &err));
        int converged = 0;
        for (int64_t run = 0; run < s.runs; run++) {
            for (int64_t i = 0; i < t->logs; i++) {
                if (!sphere)
                    assert_true(logged(t, THETA, run, i) == 0 && logged(t, ETA, run, i) == 0 &&
                                logged(t, RHO, run, i) == 0);
                /* 1e-9 of an interpolated overlap */
                assert_true(i == 0 ||
                            logged(t, RISK, run, i) <= logged(t, RISK, run, i - 1) * (1 + 1e-9));
            }
            fin_run r;
            OK(fin_train_get_run(t, run, &r, &err));
            assert_int_equal(r.step, s.steps);
            converged += r.status == FIN_RUN_CONVERGED;
            assert_true(isnan(r.converged_at) == (r.status != FIN_RUN_CONVERGED));
            assert_true(isnan(r.left_at) == !sphere);
        }
        print_message("%s: %d of %d converge\n", sphere ? "sphere" : "manifold", converged,
                      (int)s.runs);
        if (!sphere)
            assert_int_equal(converged, s.runs);
        fin_train_destroy(t);
    }
    fin_task_destroy(task);
}

/* ---- events ------------------------------------------------------------------------------------- */

typedef double margin(const fin_train *t, const double x[STATE]);

static double until_converged(const fin_train *t, const double x[STATE])
{
    return fmin(fabs(x[KAPPA]), fabs(x[NU])) - t->settings.converged;
}

static double until_left(const fin_train *t, const double x[STATE])
{
    return sqrt(x[THETA] * x[THETA] + x[ETA] * x[ETA] + x[RHO] * x[RHO]) - t->settings.left;
}

static double until_stuck(const fin_train *t, const double x[STATE])
{
    fin_overlaps o = {x[0], x[1], x[2], x[3], x[4]};
    fin_risk_value value;
    OK(fini_exact_risk(t, &o, x[LAM], &value, &err));
    return t->settings.stuck - fini_gradient_of(&o, value.gradient).norm;
}

/* When the margin passes through zero: Runge-Kutta step by step, the last one cut in two again and
 * again. */
static double time_of(const fin_train *t, margin *f, double h)
{
    double x[STATE], before[STATE], s = 0;
    start_of(t, 0, x);
    while (f(t, x) <= 0 && s < (double)t->settings.steps) {
        memcpy(before, x, sizeof x);
        runge_kutta(t, s, h, x);
        s += h;
    }
    double low = 0, high = h;
    s -= h;
    for (int i = 0; i < 60; i++) {
        double middle = (low + high) / 2;
        memcpy(x, before, sizeof x);
        runge_kutta(t, s, middle, x);
        if (f(t, x) > 0)
            high = middle;
        else
            low = middle;
    }
    return s + low;
}

static fin_train *run_from(const fin_task *task, const char *form, double lam, fin_overlaps o,
                           fin_train_settings s)
{
    fin_train *t;
    fin_form_settings fs = {lam, 0};
    fin_train_start start = {.count = 1, .overlaps = &o};
    s.init = FIN_INIT_OVERLAPS;
    OK(fin_train_create(&t, task, fin_form_find(form), &fs, &s, &start, &err));
    OK(fin_train_run(t, s.steps, NULL, &err));
    return t;
}

static void flow__events_are_located(void **state)
{
    (void)state;
    fin_task *task = paper(400), *small = paper(12);
    fin_train_settings s = flow_settings();
    s.steps = 20000;
    fin_train *t = run_from(task, "erf", 0.1, (fin_overlaps){0.05, 0.02, 0.001, 0.002, 0.0015}, s);
    double expected = time_of(t, until_converged, 0.125);
    print_message("converged at %.9f, expected %.9f\n", t->converged_at[0], expected);
    assert_true(fabs(t->converged_at[0] - expected) < 1e-6 * expected);
    assert_true(isnan(t->stuck_at[0]));
    fin_train_destroy(t);

    s.left = 0.004;
    s.steps = 2000;
    t = run_from(task, "erf", 0.9, (fin_overlaps){0.05, 0.02, 0.001, 0.002, 0.0015}, s);
    expected = time_of(t, until_left, 0.0625);
    print_message("left M at    %.9f, expected %.9f\n", t->left_at[0], expected);
    assert_true(fabs(t->left_at[0] - expected) < 1e-6 * expected);
    fin_train_destroy(t);

    /* linear attention ends at kappa = 0, which is not convergence */
    s = flow_settings();
    s.steps = 20000;
    s.alpha = 1e-2;
    t = run_from(small, "linear", 0.3, (fin_overlaps){0.5, 0.6, 0.1, -0.1, 0.05}, s);
    expected = time_of(t, until_stuck, 0.125);
    print_message("stuck at     %.9f, expected %.9f\n", t->stuck_at[0], expected);
    assert_true(fabs(t->stuck_at[0] - expected) < 1e-4 * expected);
    assert_true(isnan(t->converged_at[0]));
    fin_run r;
    OK(fin_train_get_run(t, 0, &r, &err));
    assert_true(r.step == s.steps && r.now.gradient < 1.01e-6);
    /* the flow has ended there: the later logs are one state */
    for (int64_t i = 0; i < t->logs; i++)
        for (int j = 0; j < FIN_LOG_COUNT; j++)
            if ((double)t->step[i] > t->stuck_at[0])
                assert_true(logged(t, j, 0, i) == logged(t, j, 0, t->logs - 1));
    fin_train_destroy(t);
    fin_task_destroy(task);
    fin_task_destroy(small);
}

static void flow__events_at_the_start(void **state)
{
    (void)state;
    fin_task *task = paper(400);
    fin_train_settings s = flow_settings();
    s.steps = 500;
    fin_train *t = run_from(task, "erf", 0.1, (fin_overlaps){0.95, 0.95, 0, 0, 0.05}, s);
    assert_true(t->converged_at[0] == 0 && t->left_at[0] == 0 && isnan(t->stuck_at[0]));
    fin_train_destroy(t);
    /* the saddle in the middle: stuck at once, and the logs are there */
    t = run_from(task, "erf", 0.1, (fin_overlaps){0, 0, 0, 0, 0}, s);
    assert_true(t->stuck_at[0] == 0 && isnan(t->converged_at[0]) && isnan(t->left_at[0]));
    assert_int_equal(t->status[0], FIN_RUN_STUCK);
    for (int64_t i = 0; i < t->logs; i++)
        assert_true(logged(t, KAPPA, 0, i) == 0 && logged(t, RISK, 0, i) > 0);
    fin_train_destroy(t);
    /* a flow that rests until lam changes goes on then: at lam = 0 nothing moves */
    fin_train_start start = {.count = 1,
                             .overlaps = &(fin_overlaps){0.3, 0.2, 0, 0, 0},
                             .lam = {2, (int64_t[]){0, 100}, (double[]){0, 0.1}}};
    s.init = FIN_INIT_OVERLAPS;
    OK(fin_train_create(&t, task, fin_form_find("erf"), NULL, &s, &start, &err));
    OK(fin_train_run(t, s.steps, NULL, &err));
    assert_true(t->stuck_at[0] == 0);
    for (int64_t i = 0; i < t->logs; i++) {
        assert_true((logged(t, KAPPA, 0, i) == 0.3) == (t->step[i] <= 100));
        assert_true(logged(t, LAM, 0, i) == (t->step[i] <= 100 ? 0 : 0.1));
    }
    fin_train_destroy(t);
    fin_task_destroy(task);
}

/* With kappa nu < 0 the best lam near 0 is 0: it comes down, and is held there. */
static void flow__lam_is_not_negative(void **state)
{
    (void)state;
    fin_task *task = paper(400);
    for (int penalty = 0; penalty < 2; penalty++) {
        fin_train_settings s = flow_settings();
        s.alpha_lam = 1e-2;
        s.steps = 1000;
        s.log_every = 5;
        s.penalty = penalty;
        fin_train *t = run_from(task, "erf", 0.02, (fin_overlaps){0.5, -0.5, 0, 0, 0.2}, s);
        bool zero = false;
        for (int64_t i = 0; i < t->logs; i++) {
            double lam = logged(t, LAM, 0, i);
            assert_true(lam >= 0);
            zero = zero || lam == 0;
        }
        assert_true(zero);
        double rho = logged(t, RHO, 0, t->logs - 1);
        if (penalty) /* which still moves k and v */
            assert_true(fabs(rho) < 1e-3);
        fin_train_destroy(t);
    }
    fin_task_destroy(task);
}

/* ---- promises ------------------------------------------------------------------------------------- */

static void flow__has_the_same_bytes(void **state)
{
    (void)state;
    fin_task *task = paper(400);
    fin_train *t[4];
    fin_train_settings s = flow_settings();
    s.runs = 9;
    s.steps = 3000;
    for (int i = 0; i < 4; i++) {
        /* 1, 2 and 3 threads; and fewer runs, of which each is what it was */
        s.runs = i < 3 ? 9 : 4;
        OK(fin_train_create(&t[i], task, fin_form_find("erf"), NULL, &s, NULL, &err));
        fin_threads_set(i < 3 ? i + 1 : 2);
        OK(fin_train_run(t[i], s.steps, NULL, &err));
    }
    fin_threads_set(0);
    for (int i = 1; i < 4; i++) {
        size_t runs = (size_t)t[i]->settings.runs, size = runs * sizeof(double);
        for (int j = 0; j < FIN_LOG_COUNT; j++)
            assert_memory_equal(t[i]->log[j], t[0]->log[j], size * (size_t)t[0]->logs);
        assert_memory_equal(t[i]->state, t[0]->state, size * (size_t)t[0]->width);
        assert_memory_equal(t[i]->converged_at, t[0]->converged_at, size);
        assert_memory_equal(t[i]->stuck_at, t[0]->stuck_at, size);
        assert_memory_equal(t[i]->left_at, t[0]->left_at, size);
    }
    for (int i = 0; i < 4; i++)
        fin_train_destroy(t[i]);
    fin_task_destroy(task);
}

static void flow__refusals(void **state)
{
    (void)state;
    fin_task *task = paper(400), *max = make("max", 9, 6, 6, 1, 2, 0);
    fin_train *t;
    fin_train_settings s = flow_settings();
    assert_int_equal(fin_train_create(&t, task, fin_form_find("softmax"), NULL, &s, NULL, &err),
                     FIN_ERR_UNSUPPORTED);
    assert_int_equal(fin_train_create(&t, max, fin_form_find("erf"), NULL, &s, NULL, &err),
                     FIN_ERR_UNSUPPORTED);
    s.momentum = 0.5;
    assert_int_equal(fin_train_create(&t, task, fin_form_find("erf"), NULL, &s, NULL, &err),
                     FIN_ERR_UNSUPPORTED);
    s.momentum = 0;
    s.alpha_lam = 1e-3;
    assert_int_equal(fin_train_create(&t, task, fin_form_find("linear"), NULL, &s, NULL, &err),
                     FIN_ERR_UNSUPPORTED);
    assert_null(t);
    /* lam that runs away: the run has diverged, and nothing has failed */
    s = flow_settings();
    s.alpha_lam = 1e300;
    s.steps = 10;
    t = run_from(task, "erf", 0.1, (fin_overlaps){0.5, 0.5, 0, 0, 0}, s);
    assert_int_equal(t->status[0], FIN_RUN_DIVERGED);
    fin_train_destroy(t);
    fin_task_destroy(task);
    fin_task_destroy(max);
}

static fin_status train(void *user, fin_error *e)
{
    (void)user;
    fin_task *task;
    fin_train *t = NULL;
    fin_train_settings s = flow_settings();
    s.steps = 100;
    fin_status status = fin_task_create(&task, fin_task_find("slr"), NULL, NULL, 1, 0, e);
    if (status)
        return status;
    status = fin_train_create(&t, task, fin_form_find("erf"), NULL, &s, NULL, e);
    if (!status)
        status = fin_train_run(t, 100, NULL, e);
    fin_train_destroy(t);
    fin_task_destroy(task);
    return status;
}

static void flow__allocations_may_fail(void **state)
{
    (void)state;
    fault_every(train, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flow__equals_another_solver),
        cmocka_unit_test(flow__in_few_dimensions),
        cmocka_unit_test(flow__is_the_limit_of_descent),
        cmocka_unit_test(flow__goes_down_and_stays_on_M),
        cmocka_unit_test(flow__events_are_located),
        cmocka_unit_test(flow__events_at_the_start),
        cmocka_unit_test(flow__lam_is_not_negative),
        cmocka_unit_test(flow__has_the_same_bytes),
        cmocka_unit_test(flow__refusals),
        cmocka_unit_test(flow__allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
