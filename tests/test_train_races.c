/* Several threads of the caller at once: the same bytes as one after the other, and no race that
 * ThreadSanitizer sees. The library's own threads (attention, training, fits of bags) are told to
 * stop from outside, and their number changes under them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "races.h"

#include "base/base.h"
#include "bags_sample.h"
#include "finetti/kernel.h"
#include "finetti/math.h"
#include "test_attention_help.h"
#include "test_train_help.h"
#include "math/bessel.h"
#include "train/train.h"

enum { CALLERS = 4 };

/* ---- what is made once ------------------------------------------------------------------------ */

typedef struct first_use {
    const char *kernel[CALLERS], *available[CALLERS];
    double number[CALLERS], bessel[CALLERS];
    char text[CALLERS][32];
} first_use;

static void use_first(void *user, int me)
{
    first_use *u = user;
    u->kernel[me] = fin_kernel_name();
    u->available[me] = fin_kernel_available();
    u->number[me] = fini_strtod("0.1", NULL);
    fini_print_double(0.5, 3, u->text[me], sizeof u->text[me]);
    u->bessel[me] = fini_bessel_log(1.5, 2);
}

/* The first test: nothing has been used yet. */
static void first__use_by_several_threads(void **state)
{
    (void)state;
    first_use u;
    /* I_{3/2}(x) = sqrt(2 / (pi x)) (cosh x - sinh x / x), less e^x */
    double bessel = log((cosh(2) - sinh(2) / 2) / sqrt(acos(-1))) - 2;
    races_run(CALLERS, use_first, &u);
    for (int i = 0; i < CALLERS; i++) {
        assert_non_null(strstr(u.available[i], u.kernel[i]));
        assert_ptr_equal(u.kernel[i], u.kernel[0]);
        assert_true(u.number[i] == 0.1);
        assert_string_equal(u.text[i], "0.5");
        assert_true(fabs(u.bessel[i] - bessel) < 1e-14);
    }
}

/* ---- attention -------------------------------------------------------------------------------- */

enum { SAMPLES = 500, LENGTH = 8, WIDTH = 40 };

typedef struct answers {
    double f[SAMPLES], loss, k[WIDTH], v[WIDTH], lam;
} answers;

typedef struct attending {
    const ragged *batch;
    answers answer[CALLERS];
    fin_status status[CALLERS];
} attending;

static fin_status attend(const ragged *b, answers *a)
{
    const help_form form = {"softmax", 1.3, 0};
    fin_attention *attention = NULL;
    fin_form_settings s = {form.lam, form.c};
    fin_gradient gradient = {.k = a->k, .v = a->v};
    fin_batch batch = ragged_view(b, 0, b->n);
    memset(a, 0, sizeof *a);
    fin_status status = fin_attention_create(&attention, fin_form_find(form.name), &s, b->d,
                                             b->dtype, b->longest, NULL);
    if (!status)
        status = fin_attention_set(attention, NULL, b->k, b->v, NULL);
    if (!status)
        status = fin_attention_loss(attention, &batch, b->y, a->f, &a->loss, &gradient, NULL);
    a->lam = gradient.lam;
    fin_attention_destroy(attention);
    return status;
}

static void attend_too(void *user, int me)
{
    attending *a = user;
    a->status[me] = attend(a->batch, &a->answer[me]);
}

/* One batch, which needs several meetings of the threads. */
static void attention__same_bytes_beside_others(void **state)
{
    (void)state;
    static attending all;
    static answers alone;
    int64_t lengths[SAMPLES];
    for (int i = 0; i < SAMPLES; i++)
        lengths[i] = LENGTH;
    ragged b = ragged_make(SAMPLES, WIDTH, lengths, FIN_F64, 7);
    all.batch = &b;
    fin_threads_set(1);
    assert_int_equal(attend(&b, &alone), FIN_OK);
    assert_true(alone.loss > 0);
    fin_threads_set(3);
    races_run(2, attend_too, &all);
    fin_threads_set(0);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(all.status[i], FIN_OK);
        assert_memory_equal(&all.answer[i], &alone, sizeof alone);
    }
    ragged_free(&b);
}

/* ---- training --------------------------------------------------------------------------------- */

static fin_train *make_train(const fin_task *task, int engine)
{
    fin_form_settings fs = form_settings("erf", 0.5);
    fin_train_settings s = train_settings(engine, 12, 60);
    s.alpha = 0.02;
    s.log_every = 15;
    s.batch = 3;
    return train_make(task, "erf", &fs, &s, NULL);
}

static fin_task *make_task(void)
{
    fin_task_settings ts = task_settings("slr", 20, 6);
    ts.L_min = 3;
    return task_make("slr", &ts, 5, FIN_TASK_AMBIENT);
}

static void assert_same_train(const fin_train *a, const fin_train *b)
{
    for (int i = 0; i < fini_train_array_count(a); i++) {
        fin_train_array x, y;
        OK(fini_train_get_array(a, i, &x, &err));
        OK(fini_train_get_array(b, i, &y, &err));
        if (memcmp(x.data, y.data, train_bytes(&x)) != 0)
            fail_msg("'%s' differs", x.name);
    }
}

typedef struct training {
    fin_train *train[CALLERS];
    fin_status status[CALLERS];
} training;

static void train_too(void *user, int me)
{
    training *t = user;
    t->status[me] = fin_train_run(t->train[me], 60, NULL, NULL);
}

/* Two engines, each twice, on one task. */
static void train__same_bytes_beside_others(void **state)
{
    (void)state;
    const int engines[] = {FIN_ENGINE_AMBIENT, FIN_ENGINE_POPULATION};
    fin_task *task = make_task();
    fin_train *alone[2];
    training t;
    fin_threads_set(1);
    for (int i = 0; i < 2; i++) {
        alone[i] = make_train(task, engines[i]);
        OK(fin_train_run(alone[i], 60, NULL, &err));
    }
    fin_threads_set(2);
    for (int i = 0; i < CALLERS; i++)
        t.train[i] = make_train(task, engines[i % 2]);
    races_run(CALLERS, train_too, &t);
    fin_threads_set(0);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(t.status[i], FIN_OK);
        assert_same_train(t.train[i], alone[i % 2]);
        fin_train_destroy(t.train[i]);
    }
    for (int i = 0; i < 2; i++)
        fin_train_destroy(alone[i]);
    fin_task_destroy(task);
}

static void train__goes_on_after_another_thread_cancels(void **state)
{
    (void)state;
    fin_task *task = make_task();
    fin_train *whole = make_train(task, FIN_ENGINE_AMBIENT),
              *pieces = make_train(task, FIN_ENGINE_AMBIENT);
    fin_threads_set(1);
    OK(fin_train_run(whole, 60, NULL, &err));
    fin_threads_set(3);
    for (int at = 1; at < 4; at++) {
        races_cancel c = {.at = at};
        const fin_progress progress = {races_hear, &c};
        races_cancel_begin(&c);
        fin_status status = fin_train_run(pieces, 60, &progress, &err);
        bool told = races_cancel_end(&c);
        /* The first report comes before the first step; later all runs may have come to their end. */
        assert_true(status == FIN_ERR_CANCELLED || (at > 1 && status == FIN_OK));
        assert_true(told || status == FIN_OK);
    }
    OK(fin_train_run(pieces, 60, NULL, &err));
    fin_threads_set(0);
    assert_same_train(whole, pieces);
    fin_train_destroy(whole);
    fin_train_destroy(pieces);
    fin_task_destroy(task);
}

/* ---- bags ------------------------------------------------------------------------------------- */

enum { BAGS = 40 };

typedef struct fitting {
    const fin_bags *bags;
    fin_fit_settings settings[CALLERS];
    const fin_fit *fit; /* NULL: everybody makes one */
    double mean[CALLERS][BAGS], sd[CALLERS][BAGS];
    fin_status status[CALLERS];
} fitting;

static fin_fit_settings fit_settings(int model)
{
    fin_fit_settings s;
    fin_settings_defaults(&fin_fit_table, &s, sizeof s);
    s.model = model;
    s.iterations = 5;
    s.inner = 2;
    s.landmarks = 10;
    return s;
}

static void fit_too(void *user, int me)
{
    fitting *f = user;
    fin_fit *own = NULL;
    f->status[me] = FIN_OK;
    if (!f->fit)
        f->status[me] = fin_fit_create(&own, &f->settings[me], 0, f->bags, NULL, NULL, NULL, NULL);
    if (!f->status[me])
        f->status[me] =
            fin_fit_predict(f->fit ? f->fit : own, f->bags, f->mean[me], f->sd[me], NULL, NULL);
    fin_fit_destroy(own);
}

/* `auto` fits its candidates side by side. */
static void fit__same_bytes_beside_others(void **state)
{
    (void)state;
    const int models[] = {FIN_MODEL_AUTO, FIN_MODEL_SOFTMAX, FIN_MODEL_MEAN};
    bags_sample s = bags_make(BAGS, 3, 0, 3, 0.3, 21);
    static fitting alone, beside;
    alone.bags = beside.bags = &s.bags;
    for (int i = 0; i < 3; i++)
        alone.settings[i] = beside.settings[i] = fit_settings(models[i]);
    fin_threads_set(1);
    for (int i = 0; i < 3; i++)
        fit_too(&alone, i);
    fin_threads_set(3);
    races_run(3, fit_too, &beside);
    fin_threads_set(0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(alone.status[i], FIN_OK);
        assert_int_equal(beside.status[i], FIN_OK);
        assert_memory_equal(alone.mean[i], beside.mean[i], sizeof alone.mean[i]);
        assert_memory_equal(alone.sd[i], beside.sd[i], sizeof alone.sd[i]);
    }
    bags_free(&s);
}

static void fit__answers_several_threads(void **state)
{
    (void)state;
    bags_sample s = bags_make(BAGS, 3, 0, 3, 0.3, 21);
    static fitting f;
    fin_fit *fit = NULL;
    fin_fit_settings settings = fit_settings(FIN_MODEL_MIXTURE);
    OK(fin_fit_create(&fit, &settings, 0, &s.bags, NULL, NULL, NULL, &err));
    f.bags = &s.bags;
    f.fit = fit;
    fit_too(&f, 0);
    races_run(CALLERS - 1, fit_too, &f);
    static double mean[BAGS];
    OK(fin_fit_predict(fit, &s.bags, mean, f.sd[CALLERS - 1], NULL, &err));
    for (int i = 0; i < CALLERS - 1; i++) {
        assert_int_equal(f.status[i], FIN_OK);
        assert_memory_equal(f.mean[i], mean, sizeof mean);
        assert_memory_equal(f.sd[i], f.sd[CALLERS - 1], sizeof mean);
    }
    fin_fit_destroy(fit);
    bags_free(&s);
}

static void fit__cancelled_by_another_thread(void **state)
{
    (void)state;
    bags_sample s = bags_make(BAGS, 3, 0, 3, 0.3, 21);
    fin_threads_set(3);
    for (int at = 1; at < 40; at += 6) {
        fin_fit_settings settings = fit_settings(at % 4 == 1 ? FIN_MODEL_AUTO : FIN_MODEL_STACK);
        fin_fit *fit = NULL;
        races_cancel c = {.at = at};
        const fin_progress progress = {races_hear, &c};
        races_cancel_begin(&c);
        fin_status status =
            fin_fit_create(&fit, &settings, 0, &s.bags, NULL, NULL, &progress, &err);
        bool told = races_cancel_end(&c);
        assert_true(told || at > 1);
        assert_int_equal(status, told ? FIN_ERR_CANCELLED : FIN_OK);
        assert_int_equal(fit == NULL, told);
        assert_int_equal(c.after, 0);
        fin_fit_destroy(fit);
    }
    fin_threads_set(0);
    bags_free(&s);
}

/* ---- the number of threads ---------------------------------------------------------------------- */

enum { WIDE = 48, WIDE_BAGS = 400 };

static void *change_threads(void *user)
{
    for (int i = 0; !atomic_load((atomic_int *)user); i++)
        fin_threads_set(1 + i * 5 % 7);
    return NULL;
}

static void fit_wide(const bags_sample *s, int model, double *mean)
{
    fin_fit *fit = NULL;
    fin_fit_settings settings = fit_settings(model);
    settings.basis = FIN_BASIS_LINEAR;
    settings.penalty = 1;
    OK(fin_fit_create(&fit, &settings, 0, &s->bags, NULL, NULL, NULL, &err));
    OK(fin_fit_predict(fit, &s->bags, mean, NULL, NULL, &err));
    fin_fit_destroy(fit);
}

/* Work memory is for as many threads as there are then. */
static void threads__set_beside_a_call(void **state)
{
    (void)state;
    const int models[] = {FIN_MODEL_MEAN, FIN_MODEL_SOFTMAX};
    bags_sample s = bags_make(WIDE_BAGS, WIDE, 0, 3, 0.3, 27);
    static double alone[2][WIDE_BAGS], beside[WIDE_BAGS];
    fin_threads_set(1);
    for (int i = 0; i < 2; i++)
        fit_wide(&s, models[i], alone[i]);
    atomic_int done = 0;
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, change_threads, &done), 0);
    bool same = true;
    for (int i = 0; i < 4; i++) {
        fit_wide(&s, models[i % 2], beside);
        same = same && memcmp(beside, alone[i % 2], sizeof beside) == 0;
    }
    atomic_store(&done, 1);
    pthread_join(other, NULL);
    fin_threads_set(0);
    assert_true(same);
    bags_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first__use_by_several_threads),
        cmocka_unit_test(attention__same_bytes_beside_others),
        cmocka_unit_test(train__same_bytes_beside_others),
        cmocka_unit_test(train__goes_on_after_another_thread_cancels),
        cmocka_unit_test(fit__same_bytes_beside_others),
        cmocka_unit_test(fit__answers_several_threads),
        cmocka_unit_test(fit__cancelled_by_another_thread),
        cmocka_unit_test(threads__set_beside_a_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
