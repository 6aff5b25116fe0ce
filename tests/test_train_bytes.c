/* Run r is a function of the settings, the seed and r: the same bytes for any number of threads,
 * any slices, any other runs beside it, stopped, cancelled and resumed or not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <pthread.h>
#include <cmocka.h>

#include "test_train_help.h"
#include "train/train.h"

typedef struct setting {
    const char *task, *form;
    int engine, rule;
    int64_t d, runs, steps, every;
    double alpha, momentum, alpha_lam, decay;
    int64_t m, L_min;
    int dtype;
} setting;

/* Every engine, each of its ways to take a step. */
static const setting settings[] = {
    {"slr", "erf", FIN_ENGINE_POPULATION, FIN_RULE_DESCENT, 50, 37, 700, 60, 0.02, 0, 0, 1e-3, 1, 6,
     0},
    {"slr", "erf", FIN_ENGINE_POPULATION, FIN_RULE_DESCENT, 50, 9, 150, 40, 0.02, 0.8, 0, 0, 1, 6,
     0},
    {"slr", "erf", FIN_ENGINE_POPULATION, FIN_RULE_DESCENT, 50, 9, 150, 40, 0.02, 0, 0.01, 0, 1, 6,
     0},
    {"slr", "erf", FIN_ENGINE_POPULATION, FIN_RULE_ARMIJO, 50, 9, 150, 40, 0.02, 0, 0, 0, 1, 6, 0},
    {"slr", "linear", FIN_ENGINE_POPULATION, FIN_RULE_DESCENT, 3, 9, 150, 40, 0.002, 0, 0, 0, 2, 3,
     0},
    {"slr", "erf", FIN_ENGINE_REDUCED, FIN_RULE_DESCENT, 50, 37, 600, 70, 0.01, 0, 0, 1e-3, 1, 6,
     0},
    {"slr", "erf", FIN_ENGINE_REDUCED, FIN_RULE_DESCENT, 9, 21, 300, 70, 0.03, 0, 0.01, 0, 1, 6, 0},
    {"slr", "erf", FIN_ENGINE_REDUCED, FIN_RULE_DESCENT, 50, 9, 150, 40, 0.01, 0.7, 0.01, 0, 1, 6,
     0},
    {"max", "softmax", FIN_ENGINE_REDUCED, FIN_RULE_DESCENT, 30, 9, 150, 40, 0.1, 0, 0, 0.01, 2, 3,
     0},
    {"slr", "bayes", FIN_ENGINE_REDUCED, FIN_RULE_DESCENT, 30, 9, 100, 40, 0.1, 0.5, 0, 0, 1, 3, 0},
    {"slr", "hardmax", FIN_ENGINE_REDUCED, FIN_RULE_DESCENT, 2, 5, 100, 40, 0.1, 0, 0, 0, 1, 6, 0},
    {"slr", "erf", FIN_ENGINE_AMBIENT, FIN_RULE_DESCENT, 33, 9, 60, 17, 0.02, 0, 0, 1e-3, 1, 6, 0},
    {"slr", "erf", FIN_ENGINE_AMBIENT, FIN_RULE_DESCENT, 33, 5, 60, 17, 0.02, 0.7, 0.01, 0, 2, 3,
     1},
    {"max", "softmax", FIN_ENGINE_AMBIENT, FIN_RULE_DESCENT, 33, 5, 60, 17, 0.1, 0, 0.01, 0, 1, 6,
     0},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static fin_task *make_task(const setting *x)
{
    fin_task_settings ts = task_settings(x->task, x->d, 6);
    ts.m = x->m;
    ts.L_min = x->L_min;
    ts.eps = 0.1;
    ts.mu = 2;
    return task_make(x->task, &ts, 5, FIN_TASK_AMBIENT);
}

static fin_train *make(const setting *x, const fin_task *task, int64_t runs, int64_t steps)
{
    fin_form_settings fs = form_settings(x->form, strcmp(x->form, "bayes") == 0 ? -1 : 0.5);
    fin_train_settings s = train_settings(x->engine, runs, steps);
    s.rule = x->rule;
    s.alpha = x->alpha;
    s.momentum = x->momentum;
    s.alpha_lam = x->alpha_lam;
    s.decay = x->decay;
    s.log_every = x->every;
    s.batch = 3;
    s.penalty = 0.5;
    s.dtype = x->dtype;
    s.converged = 0.2;
    s.left = 0.8;
    s.stuck = 0.3;
    s.risk_samples = 20;
    return train_make(task, x->form, &fs, &s, NULL);
}

/* All arrays have the same bytes; b may have more runs. NaNs are one: none of them is written in
 * two ways. */
static void same(const char *what, int which, const fin_train *a, const fin_train *b)
{
    for (int i = 0; i < fini_train_array_count(a); i++) {
        fin_train_array x, y;
        OK(fini_train_get_array(a, i, &x, &err));
        OK(fini_train_get_array(b, i, &y, &err));
        assert_string_equal(x.name, y.name);
        assert_true(x.ndim == y.ndim && x.shape[0] <= y.shape[0]);
        assert_true(x.ndim == 1 || x.shape[1] == y.shape[1]);
        if (memcmp(x.data, y.data, train_bytes(&x)) != 0)
            fail_msg("%s, setting %d: '%s' differs", what, which, x.name);
    }
}

static void run__same_bytes_for_any_threads(void **state)
{
    (void)state;
    const int threads[] = {2, 3, 8};
    for (int i = 0; i < SETTINGS; i++) {
        const setting *x = &settings[i];
        fin_task *task = make_task(x);
        fin_threads_set(1);
        fin_train *one = make(x, task, x->runs, x->steps);
        OK(fin_train_run(one, x->steps, NULL, &err));
        int64_t moved = 0;
        for (int64_t run = 0; run < x->runs; run++)
            moved += fabs(train_log(one, "nu", run, 1) - train_log(one, "nu", run, 0)) > 1e-3;
        assert_true(moved > x->runs / 2);
        for (int j = 0; j < 3; j++) {
            fin_threads_set(threads[j]);
            fin_train *many = make(x, task, x->runs, x->steps);
            OK(fin_train_run(many, x->steps, NULL, &err));
            same("threads", i, one, many);
            fin_train_destroy(many);
        }
        fin_train_destroy(one);
        fin_task_destroy(task);
    }
    fin_threads_set(0);
}

static void run__same_bytes_for_any_slices(void **state)
{
    (void)state;
    for (int i = 0; i < SETTINGS; i++) {
        const setting *x = &settings[i];
        fin_task *task = make_task(x);
        fin_train *whole = make(x, task, x->runs, x->steps),
                  *slices = make(x, task, x->runs, x->steps);
        OK(fin_train_run(whole, x->steps, NULL, &err));
        OK(fin_train_run(slices, 0, NULL, &err));
        for (int64_t until = 1, cut = 1; until < x->steps; until += cut = 1 + cut * 7 % 89)
            OK(fin_train_run(slices, until, NULL, &err));
        OK(fin_train_run(slices, x->steps, NULL, &err));
        OK(fin_train_run(slices, x->steps, NULL, &err)); /* nothing left to do */
        OK(fin_train_run(slices, 1, NULL, &err));
        same("slices", i, whole, slices);
        fin_train_destroy(whole);
        fin_train_destroy(slices);
        fin_task_destroy(task);
    }
}

static void run__does_not_depend_on_other_runs(void **state)
{
    (void)state;
    const int64_t counts[] = {1, 3, 5, 16, 17, 33};
    for (int i = 0; i < SETTINGS; i++) {
        const setting *x = &settings[i];
        fin_task *task = make_task(x);
        int64_t most = x->engine == FIN_ENGINE_AMBIENT ? 6 : 40;
        fin_train *many = make(x, task, most, x->every + 5);
        OK(fin_train_run(many, x->every + 5, NULL, &err));
        for (size_t j = 0; j < sizeof counts / sizeof *counts && counts[j] <= most; j++) {
            fin_train *few = make(x, task, counts[j], x->every + 5);
            OK(fin_train_run(few, x->every + 5, NULL, &err));
            same("runs", i, few, many);
            fin_train_destroy(few);
        }
        fin_train_destroy(many);
        fin_task_destroy(task);
    }
}

/* ---- stopping and going on ----------------------------------------------------------------------- */

static void copy_into(const fin_train *from, fin_train *to)
{
    fin_train_array arrays[64];
    int count = fini_train_array_count(from);
    assert_in_range(count, 1, 64);
    for (int i = 0; i < count; i++) { /* in another order, and not where they were */
        fin_train_array *a = &arrays[count - 1 - i];
        OK(fini_train_get_array(from, i, a, &err));
        void *copy = malloc(train_bytes(a));
        a->data = memcpy(copy, a->data, train_bytes(a));
    }
    OK(fini_train_resume(to, arrays, count, &err));
    for (int i = 0; i < count; i++) {
        memset((void *)(uintptr_t)arrays[i].data, 0xff, train_bytes(&arrays[i]));
        free((void *)(uintptr_t)arrays[i].data);
    }
}

static void resume__goes_on_as_if_never_stopped(void **state)
{
    (void)state;
    for (int i = 0; i < SETTINGS; i++) {
        const setting *x = &settings[i];
        fin_task *task = make_task(x);
        fin_train *whole = make(x, task, x->runs, x->steps);
        OK(fin_train_run(whole, x->steps, NULL, &err));
        const int64_t stops[] = {0, x->every, x->every + 3, x->steps - 1};
        for (int j = 0; j < 4; j++) {
            fin_train *first = make(x, task, x->runs, x->steps),
                      *second = make(x, task, x->runs, x->steps);
            OK(fin_train_run(first, stops[j], NULL, &err));
            copy_into(first, second);
            same("just resumed", i, first, second);
            fin_train_destroy(first);
            OK(fin_train_run(second, x->steps, NULL, &err));
            same("resumed", i, whole, second);
            fin_train_destroy(second);
        }
        fin_train_destroy(whole);
        fin_task_destroy(task);
    }
}

/* A run with fewer steps, finished, goes on in one with more: its last step was logged, and maybe
 * an event seen there, but is not logged in the longer one. */
static void resume__goes_on_to_more_steps(void **state)
{
    (void)state;
    for (int i = 0; i < SETTINGS; i++) {
        const setting *x = &settings[i];
        fin_task *task = make_task(x);
        fin_train *whole = make(x, task, x->runs, x->steps);
        OK(fin_train_run(whole, x->steps, NULL, &err));
        const int64_t short_steps[] = {2, x->every, x->every + 7};
        for (int j = 0; j < 3; j++) {
            fin_train *first = make(x, task, x->runs, short_steps[j]),
                      *second = make(x, task, x->runs, x->steps);
            OK(fin_train_run(first, short_steps[j], NULL, &err));
            copy_into(first, second);
            OK(fin_train_run(second, x->steps, NULL, &err));
            same("more steps", i, whole, second);
            fin_train_destroy(first);
            fin_train_destroy(second);
        }
        fin_train_destroy(whole);
        fin_task_destroy(task);
    }
}

/* Rounding leaves overlaps where k is nearly +-v* a little beside those of any vectors. */
static void resume__takes_every_state_a_descent_comes_to(void **state)
{
    (void)state;
    enum { RUNS = 40, STEPS = 12000 };
    fin_task *task = task_make("slr", NULL, 1, 0);
    fin_form_settings fs = form_settings("erf", 0.1);
    fin_train_settings s = train_settings(FIN_ENGINE_POPULATION, RUNS, STEPS);
    fin_train *t = train_make(task, "erf", &fs, &s, NULL);
    int64_t near = 0;
    for (int64_t until = 1000; until <= STEPS; until += 1000) {
        OK(fin_train_run(t, until, NULL, &err));
        fin_train *other = train_make(task, "erf", &fs, &s, NULL);
        copy_into(t, other);
        fin_train_destroy(t);
        t = other;
        for (int64_t run = 0; run < RUNS; run++)
            near += fabs(fabs(t->state[run * t->width + 3]) - 1) < 1e-9;
    }
    assert_true(near > 0);
    fin_train_destroy(t);
    fin_task_destroy(task);
}

/* ---- progress and cancelling ---------------------------------------------------------------------- */

typedef struct watch {
    pthread_t caller;
    int calls, stop_after, busy, wrong;
    double done, total;
} watch;

static int on_report(void *user, const char *what, double done, double total)
{
    watch *w = user;
    w->wrong += w->busy++ != 0 || !pthread_equal(pthread_self(), w->caller) || !what || !*what;
    w->wrong += w->calls > 0 && (done < w->done || total != w->total);
    w->wrong += !(done >= 0 && done <= total);
    w->done = done;
    w->total = total;
    w->busy--;
    return ++w->calls == w->stop_after;
}

static void progress__is_monotone_and_complete(void **state)
{
    (void)state;
    for (int i = 0; i < SETTINGS; i++)
        for (int threads = 1; threads <= 3; threads++) {
            const setting *x = &settings[i];
            fin_task *task = make_task(x);
            fin_train *t = make(x, task, x->runs, x->steps);
            watch w = {.caller = pthread_self(), .stop_after = -1};
            fin_progress progress = {on_report, &w};
            fin_threads_set(threads);
            OK(fin_train_run(t, x->steps, &progress, &err));
            assert_int_equal(w.wrong, 0);
            assert_true(w.calls >= 1);
            assert_true(w.total == (double)(x->runs * x->steps));
            if (w.done != w.total)
                fail_msg("setting %d, %d threads: ended at %g of %g", i, threads, w.done, w.total);
            fin_train_destroy(t);
            fin_task_destroy(task);
        }
    fin_threads_set(0);
}

static void cancel__leaves_what_can_be_run_on(void **state)
{
    (void)state;
    int cancelled = 0;
    for (int i = 0; i < SETTINGS; i++) {
        const setting *x = &settings[i];
        fin_task *task = make_task(x);
        fin_train *whole = make(x, task, x->runs, x->steps);
        OK(fin_train_run(whole, x->steps, NULL, &err));
        for (int threads = 1; threads <= 3; threads++) {
            fin_train *t = make(x, task, x->runs, x->steps);
            fin_status status = FIN_ERR_CANCELLED;
            fin_threads_set(threads);
            for (int calls = 1; status == FIN_ERR_CANCELLED; calls += 1 + calls / 3) {
                watch w = {.caller = pthread_self(), .stop_after = calls};
                fin_progress progress = {on_report, &w};
                status = fin_train_run(t, x->steps, &progress, &err);
                assert_int_equal(w.wrong, 0);
                if (status == FIN_ERR_CANCELLED) {
                    assert_true(strstr(err.message, "cancelled") != NULL);
                    cancelled++;
                    if (calls > 4) { /* through another object now and then */
                        fin_train *other = make(x, task, x->runs, x->steps);
                        copy_into(t, other);
                        fin_train_destroy(t);
                        t = other;
                    }
                    for (int64_t run = 0; run < x->runs; run++) {
                        fin_run now;
                        OK(fin_train_get_run(t, run, &now, &err));
                        assert_true(now.step >= 0 && now.step <= x->steps);
                        assert_true(isfinite(now.now.risk));
                    }
                }
            }
            OK(status);
            same("cancelled", i, whole, t);
            fin_train_destroy(t);
        }
        fin_train_destroy(whole);
        fin_task_destroy(task);
    }
    print_message("cancelled %d times\n", cancelled);
    assert_true(cancelled > 3 * SETTINGS);
    fin_threads_set(0);
}

/* Kernels draw and descend with the same bits, so that a file goes on on another machine. */
static void run__same_bytes_in_every_kernel(void **state)
{
    (void)state;
    const char *const kernels[] = {"avx2", "avx512"};
    for (int i = 0; i < SETTINGS; i++) {
        const setting *x = &settings[i];
        if (x->d < 8 || strcmp(x->form, "erf") != 0 || x->momentum > 0 ||
            x->engine == FIN_ENGINE_AMBIENT || x->rule != FIN_RULE_DESCENT ||
            (x->engine == FIN_ENGINE_POPULATION && x->alpha_lam > 0))
            continue; /* lanes only: the others use libm or SLEEF */
        fin_task *task = make_task(x);
        assert_true(fini_kernel_force("ref"));
        fin_train *ref = make(x, task, x->runs, x->steps);
        OK(fin_train_run(ref, x->steps, NULL, &err));
        for (int k = 0; k < 2; k++) {
            if (!fini_kernel_force(kernels[k]))
                continue;
            fin_train *t = make(x, task, x->runs, x->steps);
            OK(fin_train_run(t, x->steps, NULL, &err));
            fin_train_array a = train_array(ref, "state"), b = train_array(t, "state");
            assert_memory_equal(a.data, b.data, train_bytes(&a));
            fin_train_destroy(t);
        }
        fini_kernel_force(NULL);
        fin_train_destroy(ref);
        fin_task_destroy(task);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(run__same_bytes_for_any_threads),
        cmocka_unit_test(run__same_bytes_for_any_slices),
        cmocka_unit_test(run__does_not_depend_on_other_runs),
        cmocka_unit_test(resume__goes_on_as_if_never_stopped),
        cmocka_unit_test(resume__goes_on_to_more_steps),
        cmocka_unit_test(resume__takes_every_state_a_descent_comes_to),
        cmocka_unit_test(progress__is_monotone_and_complete),
        cmocka_unit_test(cancel__leaves_what_can_be_run_on),
        cmocka_unit_test(run__same_bytes_in_every_kernel),
    };
    return cmocka_run_group_tests_name("train_bytes", tests, NULL, NULL);
}
