/* Descent on the exact risk: the reference trajectories, the same descent with vectors in R^d
 * written out here, what it keeps (M, a falling objective), and what is logged when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#include "test_train_help.h"

static const char *const overlap_names[5] = {"kappa", "nu", "theta", "eta", "rho"};

static double last_log(const fin_train *t, const char *name, int64_t run)
{
    return train_log(t, name, run, train_array(t, "step").shape[0] - 1);
}

/* ---- reference trajectories ------------------------------------------------------------------- */

static void check_reference(const char *kernel, double momentum)
{
    static const char *const columns[18] = {"kappa0", "nu0",   "theta0", "eta0", "rho0", "lambda0",
                                            "decay",  "alpha", "gamma",  "mu",   "L",    "steps",
                                            "kappa",  "nu",    "theta",  "eta",  "rho",  "risk"};
    fin_table *table;
    const double *c[18];
    OK(fin_table_read(FIN_TEST_DATA "/slr_pgd_trajectories.csv", &table, &err));
    for (int j = 0; j < 18; j++) {
        assert_true(fin_table_column(table, columns[j]) >= 0);
        c[j] = fin_table_values(table, fin_table_column(table, columns[j]));
    }
    assert_int_equal(fin_table_rows(table), 20);
    double worst = 0;
    for (int64_t i = 0; i < 20; i++) {
        fin_task_settings ts = task_settings("slr", 400, (int64_t)c[10][i]);
        ts.gamma = c[8][i];
        ts.mu = c[9][i];
        fin_form_settings fs = form_settings("erf", c[5][i]);
        fin_train_settings s = train_settings(FIN_ENGINE_POPULATION, 1, (int64_t)c[11][i]);
        s.init = FIN_INIT_OVERLAPS;
        s.decay = c[6][i];
        s.alpha = c[7][i];
        s.momentum = momentum;
        fin_overlaps o = {c[0][i], c[1][i], c[2][i], c[3][i], c[4][i]};
        fin_train_start start = {.count = 1, .overlaps = &o};
        fin_task *task = task_make("slr", &ts, 1, 0);
        fin_train *t = train_make(task, "erf", &fs, &s, &start);
        assert_ptr_equal(t->engine, momentum > 0 ? &fini_population : &fini_population_lanes);
        OK(fin_train_run(t, s.steps, NULL, &err));
        for (int j = 0; j < 5; j++) {
            double off = fabs(last_log(t, overlap_names[j], 0) - c[12 + j][i]);
            if (!(off < 1e-8))
                fail_msg("row %d: %s is off by %g", (int)i, overlap_names[j], off);
            worst = fmax(worst, off);
        }
        worst = fmax(worst, fabs(last_log(t, "risk", 0) / c[17][i] - 1));
        assert_true(worst < 1e-8);
        assert_true(last_log(t, "lam", 0) ==
                    c[5][i] / (1 + c[6][i] * (double)(s.steps - 1))); /* the last one used */
        fin_train_destroy(t);
        fin_task_destroy(task);
    }
    fin_table_destroy(table);
    print_message("%s, %s: worst difference %.2g\n", kernel, momentum > 0 ? "vectors" : "lanes",
                  worst);
}

static void population__matches_reference_trajectories(void **state)
{
    (void)state;
    const char *const kernels[] = {"ref", "avx2", "avx512"};
    for (int k = 0; k < 3; k++)
        if (fini_kernel_force(kernels[k])) {
            check_reference(kernels[k], 0);
            check_reference(kernels[k], 1e-300);
        }
    fini_kernel_force(NULL);
}

/* ---- the same in R^d --------------------------------------------------------------------------- */

typedef struct problem {
    const char *task, *form;
    int64_t d, L_min, L, m;
    double lam, c, alpha;
    double decay, momentum, penalty, alpha_lam;
    int scheduled;
} problem;

static const int64_t schedule_steps[3] = {0, 40, 41};
static const double lam_values[3] = {0.3, 0.6, 0.5}, alpha_values[3] = {0.01, 0.03, 0.02};

static fin_task *problem_task(const problem *p)
{
    fin_task_settings ts = task_settings(p->task, p->d, p->L);
    ts.L_min = p->L_min;
    ts.m = p->m;
    ts.mu = 2.3;
    ts.snr = 5;
    ts.eps = 0.2;
    return task_make(p->task, &ts, 5, FIN_TASK_AMBIENT);
}

/* Gradient of the exact risk, from the theory module's public face. */
static void exact_gradient(const fin_task *task, const problem *p, const fin_overlaps *o,
                           double lam, double R[5], double *d_lam)
{
    const fin_task_settings *s = fin_task_get_settings(task);
    if (strcmp(p->form, "erf") == 0) {
        fin_risk_point at = {o->kappa,
                             o->nu,
                             o->theta,
                             o->eta,
                             o->rho,
                             lam,
                             s->gamma,
                             s->mu,
                             s->eps,
                             (double)s->m,
                             fin_task_length_mean(task),
                             fin_task_length_variance(task)};
        fin_risk_value value;
        OK(fin_risk_erf(1, &at, &value, &err));
        memcpy(R, value.gradient, sizeof value.gradient);
        *d_lam = value.d_lam;
        return;
    }
    fin_form_settings fs = form_settings(p->form, lam);
    fs.c = p->c;
    fin_risk_report report;
    OK(fin_risk(task, fin_form_find(p->form), &fs, o, NULL, NULL, &report, &err));
    assert_true(report.has_gradient);
    memcpy(R, report.gradient, sizeof report.gradient);
    *d_lam = NAN;
}

static void move(int64_t d, double *x, double *velocity, const double *g, double alpha, double beta)
{
    double gx = dot(d, g, x), mx = dot(d, velocity, x), norm2 = 0;
    for (int64_t i = 0; i < d; i++)
        velocity[i] = beta * (velocity[i] - mx * x[i]) + (g[i] - gx * x[i]);
    for (int64_t i = 0; i < d; i++) {
        x[i] -= alpha * velocity[i];
        norm2 += x[i] * x[i];
    }
    for (int64_t i = 0; i < d; i++)
        x[i] /= sqrt(norm2);
}

static double piece(const double *values, int64_t step)
{
    return values[step >= 41 ? 2 : step >= 40 ? 1 : 0];
}

static fin_overlaps in_space(int64_t d, const double *ks, const double *vs, const double *k,
                             const double *v)
{
    fin_overlaps o = {dot(d, k, ks), dot(d, v, vs), dot(d, v, ks), dot(d, k, vs), dot(d, k, v)};
    return o;
}

/* `steps` steps with vectors; returns where they end and lam. */
static fin_overlaps descend(const fin_task *task, const problem *p, int64_t steps, double *k,
                            double *v, double *lam_out)
{
    int64_t d = p->d;
    const double *ks = fin_task_k_star(task), *vs = fin_task_v_star(task);
    double *gk = calloc((size_t)(4 * d), sizeof *gk), *gv = gk + d, *mk = gv + d, *mv = mk + d;
    double trained = p->lam;
    for (int64_t step = 0; step < steps; step++) {
        fin_overlaps o = in_space(d, ks, vs, k, v);
        double R[5], d_lam, alpha = p->scheduled ? piece(alpha_values, step) : p->alpha;
        double lam = p->alpha_lam > 0 ? trained
                                      : (p->scheduled ? piece(lam_values, step) : p->lam) /
                                            (1 + p->decay * (double)step);
        exact_gradient(task, p, &o, lam, R, &d_lam);
        R[4] += 2 * p->penalty * o.rho;
        for (int64_t i = 0; i < d; i++) {
            gk[i] = R[0] * ks[i] + R[3] * vs[i] + R[4] * v[i];
            gv[i] = R[2] * ks[i] + R[1] * vs[i] + R[4] * k[i];
        }
        move(d, k, mk, gk, alpha, p->momentum);
        move(d, v, mv, gv, alpha, p->momentum);
        if (p->alpha_lam > 0)
            trained = fmax(0, trained - p->alpha_lam * d_lam);
        *lam_out = p->alpha_lam > 0 ? trained : lam;
    }
    free(gk);
    return in_space(d, ks, vs, k, v);
}

/* Twelve dimensions, six tokens, one of them relevant. */
#define SMALL .d = 12, .L_min = 6, .L = 6, .m = 1

static const problem problems[] = {
    {.task = "slr", .form = "erf", SMALL, .lam = 0.5, .alpha = 0.02},
    {.task = "slr", .form = "erf", .d = 400, .L_min = 6, .L = 6, .m = 1, .lam = 0.5, .alpha = 0.02},
    {.task = "slr", .form = "erf", .d = 4, .L_min = 6, .L = 6, .m = 1, .lam = 2, .alpha = 0.02},
    {.task = "slr", .form = "erf", .d = 3, .L_min = 6, .L = 6, .m = 1, .lam = 2, .alpha = 0.02},
    {.task = "slr", .form = "erf", .d = 2, .L_min = 6, .L = 6, .m = 1, .lam = 2, .alpha = 0.02},
    {.task = "slr", .form = "erf", .d = 12, .L_min = 3, .L = 9, .m = 2, .lam = 0.5, .alpha = 0.01},
    {.task = "slr", .form = "erf", SMALL, .lam = 0.5, .alpha = 0.02, .penalty = 3, .decay = 0.01},
    {.task = "slr", .form = "erf", SMALL, .lam = 0.5, .alpha = 0.01, .momentum = 0.8, .penalty = 2},
    {.task = "slr",
     .form = "erf",
     .d = 400,
     .L_min = 2,
     .L = 6,
     .m = 1,
     .lam = 0.5,
     .alpha = 0.01,
     .momentum = 0.8,
     .alpha_lam = 0.01},
    {.task = "slr", .form = "erf", SMALL, .lam = 0.5, .alpha = 0.02, .alpha_lam = 0.02},
    {.task = "slr", .form = "erf", SMALL, .alpha = 1, .lam = 9, .scheduled = 1, .decay = 0.002},
    {.task = "spiked", .form = "erf", SMALL, .lam = 0.5, .alpha = 0.02},
    {.task = "slr",
     .form = "linear",
     SMALL,
     .lam = 0.2,
     .alpha = 0.002,
     .momentum = 0.5,
     .penalty = 1},
    {.task = "slr",
     .form = "linear",
     SMALL,
     .lam = 9,
     .alpha = 0.002,
     .decay = 0.001,
     .scheduled = 1},
    {.task = "spiked",
     .form = "shifted",
     .d = 12,
     .L_min = 2,
     .L = 6,
     .m = 2,
     .lam = 0.5,
     .c = -0.4,
     .alpha = 0.01,
     .decay = 0.01},
};

static void population__is_the_descent_in_space(void **state)
{
    (void)state;
    enum { STEPS = 120 };
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        const problem *p = &problems[i];
        fin_task *task = problem_task(p);
        double *k = calloc((size_t)(2 * p->d), sizeof *k), *v = k + p->d, lam = 0;
        fin_random r;
        fin_random_open(&r, 9, FIN_STREAM_USER, i);
        fin_random_sphere(&r, p->d, k);
        fin_random_sphere(&r, p->d, v);
        fin_form_settings fs = form_settings(p->form, p->lam);
        fs.c = p->c;
        fin_train_settings s = train_settings(FIN_ENGINE_POPULATION, 1, STEPS);
        s.init = FIN_INIT_VECTORS;
        s.alpha = p->alpha;
        s.decay = p->decay;
        s.momentum = p->momentum;
        s.penalty = p->penalty;
        s.alpha_lam = p->alpha_lam;
        fin_train_start start = {.count = 1, .k = k, .v = v};
        if (p->scheduled) {
            start.lam = (fin_schedule){3, schedule_steps, lam_values};
            start.alpha = (fin_schedule){3, schedule_steps, alpha_values};
        }
        fin_train *t = train_make(task, p->form, &fs, &s, &start);
        OK(fin_train_run(t, STEPS, NULL, &err));
        fin_overlaps o = descend(task, p, STEPS, k, v, &lam);
        double want[5] = {o.kappa, o.nu, o.theta, o.eta, o.rho}, worst = 0, way = 0;
        for (int j = 0; j < 5; j++) {
            worst = fmax(worst, fabs(want[j] - last_log(t, overlap_names[j], 0)));
            way = fmax(way, fabs(want[j] - train_log(t, overlap_names[j], 0, 0)));
        }
        print_message("%s/%s d=%d: went %.2g, off by %.2g\n", p->task, p->form, (int)p->d, way,
                      worst);
        assert_true(worst < 1e-11);
        assert_true(way > 0.05);
        if (p->alpha_lam > 0)
            assert_true(fabs(lam - p->lam) > 0.05);
        assert_true(fabs(lam - last_log(t, "lam", 0)) <= 1e-12 * lam);
        fin_train_destroy(t);
        fin_task_destroy(task);
        free(k);
    }
}

/* ---- what it keeps ----------------------------------------------------------------------------- */

static void population__stays_on_the_manifold(void **state)
{
    (void)state;
    fin_task_settings ts = task_settings("slr", 400, 10);
    fin_task *task = task_make("slr", &ts, 1, 0);
    for (int generic = 0; generic < 2; generic++) {
        fin_form_settings fs = form_settings("erf", 0.1);
        fin_train_settings s = train_settings(FIN_ENGINE_POPULATION, 18, generic ? 800 : 6000);
        s.init = FIN_INIT_MANIFOLD;
        s.momentum = generic ? 0.9 : 0;
        s.penalty = 0.1;
        fin_train *t = train_make(task, "erf", &fs, &s, NULL);
        OK(fin_train_run(t, s.steps, NULL, &err));
        int64_t logs = train_array(t, "step").shape[0], moved = 0;
        for (int64_t run = 0; run < 18; run++) {
            for (int64_t i = 0; i < logs; i++)
                assert_true(train_log(t, "distance", run, i) < 1e-12);
            assert_true(isnan(((const double *)train_array(t, "left_at").data)[run]));
            moved += fabs(last_log(t, "kappa", run) - train_log(t, "kappa", run, 0)) > 0.3;
        }
        assert_true(moved > 9);
        fin_train_destroy(t);
    }
    fin_task_destroy(task);
}

/* Every step of the line search lowers risk + penalty (k.v)^2 by what Armijo asks (1e-4 of what the
 * slope promises cannot be seen from outside: here, not at all up), down to the minimum. */
static void armijo__falls_to_the_minimum(void **state)
{
    (void)state;
    fin_task_settings ts = task_settings("slr", 60, 8);
    ts.eps = 0.3;
    fin_task *task = task_make("slr", &ts, 1, 0);
    for (int with = 0; with < 2; with++) {
        fin_form_settings fs = form_settings("erf", 0.3);
        fin_train_settings s = train_settings(FIN_ENGINE_POPULATION, 12, 400);
        s.rule = FIN_RULE_ARMIJO;
        s.log_every = 1;
        s.penalty = with ? 2 : 0;
        s.init = with ? FIN_INIT_SPHERE : FIN_INIT_MANIFOLD;
        s.alpha = with ? 1e3 : 1e-6; /* both are only where the search begins */
        fin_train *t = train_make(task, "erf", &fs, &s, NULL);
        OK(fin_train_run(t, s.steps, NULL, &err));
        fin_risk_report best;
        OK(fin_risk(task, fin_form_find("erf"), &fs, NULL, NULL, NULL, &best, &err));
        int least = 0;
        for (int64_t run = 0; run < 12; run++) {
            double last = INFINITY;
            for (int64_t i = 0; i <= 400; i++) {
                double rho = train_log(t, "rho", run, i);
                double value = train_log(t, "risk", run, i) + s.penalty * rho * rho;
                assert_true(value <= last);
                last = value;
            }
            assert_true(last < 0.9 * train_log(t, "risk", run, 0));
            assert_true(with || last_log(t, "gradient", run) < 1e-4);
            if (fabs(last_log(t, "kappa", run)) > 0.99 && fabs(last_log(t, "nu", run)) > 0.99) {
                assert_true(fabs(last / best.risk.value - 1) < 1e-8);
                assert_int_equal(((const int64_t *)train_array(t, "status").data)[run],
                                 FIN_RUN_CONVERGED);
                least++;
            }
        }
        print_message("%d of 12 at the oracle\n", least);
        assert_true(with || least >= 6);
        fin_train_destroy(t);
    }
    fin_task_destroy(task);
}

/* At a stationary point there is nothing to fall to: it stays, and comes back from there. */
static void armijo__stays_where_the_gradient_is_zero(void **state)
{
    (void)state;
    fin_task_settings ts = task_settings("slr", 60, 8);
    fin_task *task = task_make("slr", &ts, 1, 0);
    fin_form_settings fs = form_settings("erf", 0.3);
    fin_train_settings s = train_settings(FIN_ENGINE_POPULATION, 1, 3000);
    s.rule = FIN_RULE_ARMIJO;
    s.init = FIN_INIT_OVERLAPS;
    fin_overlaps o = {1, 1, 0, 0, 0};
    fin_train_start start = {.count = 1, .overlaps = &o};
    fin_train *t = train_make(task, "erf", &fs, &s, &start);
    alarm(10);
    OK(fin_train_run(t, s.steps, NULL, &err));
    alarm(0);
    assert_true(last_log(t, "kappa", 0) == 1 && last_log(t, "nu", 0) == 1);
    fin_train_destroy(t);
    fin_task_destroy(task);
}

/* ---- logs --------------------------------------------------------------------------------------- */

static void check_grid(int64_t steps, int64_t every, int64_t decade, int64_t count,
                       const int64_t *want)
{
    fin_task *task = task_make("slr", NULL, 1, 0);
    fin_train_settings s = train_settings(FIN_ENGINE_POPULATION, 2, steps);
    s.log_every = every;
    s.log_decade = decade;
    s.decay = 0.5;
    fin_form_settings fs = form_settings("erf", 2);
    fin_train *t = train_make(task, "erf", &fs, &s, NULL);
    fin_train_array step = train_array(t, "step");
    assert_int_equal(step.shape[0], count);
    for (int64_t i = 0; want && i < count; i++)
        assert_int_equal(((const int64_t *)step.data)[i], want[i]);
    OK(fin_train_run(t, steps, NULL, &err));
    for (int64_t i = 0; i < count; i++) {
        int64_t at = ((const int64_t *)step.data)[i];
        assert_true(i == 0 ? at == 0 : at > ((const int64_t *)step.data)[i - 1]);
        for (int64_t run = 0; run < 2; run++)
            assert_true(train_log(t, "lam", run, i) ==
                        2 / (1 + 0.5 * (double)(at > 0 ? at - 1 : 0)));
    }
    assert_int_equal(((const int64_t *)step.data)[count - 1], steps);
    fin_train_destroy(t);
    fin_task_destroy(task);
}

static void logs__stand_at_the_steps_asked_for(void **state)
{
    (void)state;
    check_grid(10, 4, 0, 4, (const int64_t[]){0, 4, 8, 10});
    check_grid(8, 4, 0, 3, (const int64_t[]){0, 4, 8});
    check_grid(3, 4, 0, 2, (const int64_t[]){0, 3});
    check_grid(0, 4, 0, 1, (const int64_t[]){0});
    check_grid(0, FIN_AUTO_INT, 3, 1, (const int64_t[]){0});
    check_grid(1, FIN_AUTO_INT, 0, 2, (const int64_t[]){0, 1});
    check_grid(99, FIN_AUTO_INT, 0, 100, NULL);
    check_grid(250, FIN_AUTO_INT, 0, 126, NULL);
    check_grid(1000, 77, 1, 5, (const int64_t[]){0, 1, 10, 100, 1000});
    check_grid(700, FIN_AUTO_INT, 2, 8, (const int64_t[]){0, 1, 3, 10, 32, 100, 316, 700});
    check_grid(12, 1, 5, 8, (const int64_t[]){0, 1, 2, 3, 4, 6, 10, 12});
}

/* Status, events and derived columns follow from the logged overlaps. */
static void logs__tell_of_the_overlaps_beside_them(void **state)
{
    (void)state;
    enum { RUNS = 24 };
    fin_task_settings ts = task_settings("slr", 100, 6);
    ts.eps = 0.2;
    fin_task *task = task_make("slr", &ts, 1, 0);
    fin_form_settings fs = form_settings("erf", 0.4);
    fin_train_settings s = train_settings(FIN_ENGINE_POPULATION, RUNS, 4000);
    s.log_every = 37;
    s.alpha = 3e-3;
    s.stuck = 1e-3;
    s.left = 0.1;
    s.converged = 0.7;
    s.penalty = 0.3;
    s.init = FIN_INIT_OVERLAPS;
    fin_overlaps from[RUNS];
    for (int i = 0; i < RUNS; i++) { /* from near the oracle to far from it, most on M */
        double side = i % 4 == 0 ? 0.05 * i : 0, a = 1.2 * i / RUNS;
        from[i] = overlaps_of(4, (const double[]){cos(a), side, sin(a), 0},
                              (const double[]){side, cos(a), 0, sin(a)});
    }
    from[5] = (fin_overlaps){0, 0, 0, 0, 0}; /* stationary */
    fin_train_start start = {.count = RUNS, .overlaps = from};
    fin_train *t = train_make(task, "erf", &fs, &s, &start);
    OK(fin_train_run(t, 3000, NULL, &err)); /* not a logged step */
    fin_train_array step = train_array(t, "step");
    int seen[3] = {0, 0, 0};
    for (int64_t run = 0; run < RUNS; run++) {
        double first[3] = {NAN, NAN, NAN};
        fin_run now;
        for (int64_t i = 0; i < step.shape[0]; i++) {
            double at = (double)((const int64_t *)step.data)[i], x[FIN_LOG_COUNT];
            fin_train_point p;
            for (int j = 0; j < FIN_LOG_COUNT; j++)
                x[j] = t->log[j][run * t->logs + i];
            memcpy(&p, x, sizeof p);
            if (at > 3000) {
                for (int j = 0; j < FIN_LOG_COUNT; j++)
                    assert_true(isnan(x[j]));
                continue;
            }
            fin_overlaps o = {p.kappa, p.nu, p.theta, p.eta, p.rho};
            fin_risk_report report;
            OK(fin_risk(task, fin_form_find("erf"), &fs, &o, NULL, NULL, &report, &err));
            assert_true(fabs(p.risk - report.risk.value) <= 1e-14 * p.risk);
            assert_true(p.risk_error == 0 && p.lam == 0.4);
            assert_true(fabs(p.excess - (p.risk - 0.04)) < 1e-14 * p.risk);
            assert_true(fabs(p.distance - hypot(hypot(o.theta, o.eta), o.rho)) < 1e-15);
            double *R = report.gradient, k2, v2, rho2 = R[4] + 2 * s.penalty * o.rho;
            /* |P grad_k|^2 = |grad_k|^2 - (grad_k.k)^2 */
            k2 = R[0] * R[0] + R[3] * R[3] + rho2 * rho2 +
                 2 * (R[0] * rho2 * o.theta + R[3] * rho2 * o.nu) -
                 pow(R[0] * o.kappa + R[3] * o.eta + rho2 * o.rho, 2);
            v2 = R[2] * R[2] + R[1] * R[1] + rho2 * rho2 +
                 2 * (R[2] * rho2 * o.kappa + R[1] * rho2 * o.eta) -
                 pow(R[2] * o.theta + R[1] * o.nu + rho2 * o.rho, 2);
            double size = fabs(R[0]) + fabs(R[1]) + fabs(R[2]) + fabs(R[3]) + fabs(rho2);
            assert_true(fabs(p.gradient * p.gradient - (k2 + v2)) <= 1e-13 * size * size);
            int converged = fabs(o.kappa) > 0.7 && fabs(o.nu) > 0.7;
            if (converged && isnan(first[0]))
                first[0] = at;
            if (!converged && p.gradient < s.stuck && isnan(first[1]))
                first[1] = at;
            if (p.distance > s.left && isnan(first[2]))
                first[2] = at;
        }
        OK(fin_train_get_run(t, run, &now, &err));
        const double got[3] = {now.converged_at, now.stuck_at, now.left_at};
        for (int e = 0; e < 3; e++) {
            assert_true(isnan(first[e]) ? isnan(got[e]) : got[e] == first[e]);
            seen[e] += !isnan(first[e]);
        }
        int converged = fabs(now.now.kappa) > 0.7 && fabs(now.now.nu) > 0.7;
        assert_int_equal(now.status, converged                    ? FIN_RUN_CONVERGED
                                     : now.now.gradient < s.stuck ? FIN_RUN_STUCK
                                                                  : FIN_RUN_UNCONVERGED);
        assert_int_equal(((const int64_t *)train_array(t, "status").data)[run], now.status);
        assert_int_equal(now.step, 3000);
        assert_int_equal(((const int64_t *)train_array(t, "at").data)[run], 3000);
    }
    print_message("converged %d, stuck %d, left %d of %d\n", seen[0], seen[1], seen[2], RUNS);
    assert_true(seen[0] > 0 && seen[2] > 0 && seen[0] < RUNS && seen[1] > 0);
    assert_int_equal(fin_train_get_run(t, RUNS, &(fin_run){0}, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_train_get_run(t, -1, &(fin_run){0}, &err), FIN_ERR_ARGUMENT);
    fin_train_destroy(t);
    fin_task_destroy(task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(population__matches_reference_trajectories),
        cmocka_unit_test(population__is_the_descent_in_space),
        cmocka_unit_test(population__stays_on_the_manifold),
        cmocka_unit_test(armijo__falls_to_the_minimum),
        cmocka_unit_test(armijo__stays_where_the_gradient_is_zero),
        cmocka_unit_test(logs__stand_at_the_steps_asked_for),
        cmocka_unit_test(logs__tell_of_the_overlaps_beside_them),
    };
    return cmocka_run_group_tests_name("train_population", tests, NULL, NULL);
}
