/* A state that is saved and read again goes on to the same bytes, at any step; so does learning
 * that was cancelled. States that are not right are refused and change nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_encoder_learn_help.h"
#include "test_state.h"
#include "encoder/learn.h"

/* Runs to the end in one go, and with a new object made from a saved state at each step. */
static int64_t compare_all(help_case *c, int64_t each)
{
    help_open(c);
    help_run(c, -1);
    assert_true(fin_learn_done(c->learn));
    help_bytes whole = help_all(c);
    int64_t steps = fin_learn_step(c->learn);
    help_close(c);
    for (int64_t at = 0; at <= steps; at += each) {
        help_open(c);
        help_run(c, at);
        help_state saved = help_save(c);
        help_close(c);
        help_open(c);
        help_load(c, &saved);
        help_drop(&saved);
        assert_int_equal(fin_learn_step(c->learn), at);
        help_run(c, -1);
        help_bytes resumed = help_all(c);
        if (!help_same(&whole, &resumed))
            fail_msg("resumed at step %lld: other bytes", (long long)at);
        free(resumed.data);
        help_close(c);
    }
    free(whole.data);
    return steps;
}

static void resume__same_bytes_online(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    c.corpus_set.L_least = 2;
    compare_all(&c, 1);
}

static void resume__same_bytes_fixed_sample(void **state)
{
    (void)state;
    help_case c = help_defaults("counts");
    c.corpus_set.samples = 20;
    c.learn_set.accumulate = 2;
    c.learn_set.patience = 2;
    c.learn_set.rate = 0.3; /* so that it gets worse */
    compare_all(&c, 1);
}

static void resume__same_bytes_lbfgs(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    c.encoder_set.width = 4;
    c.corpus_set.samples = 24;
    c.learn_set.optimizer = FIN_OPTIMIZER_LBFGS;
    c.learn_set.steps = 15;
    c.learn_set.patience = 100;
    assert_int_equal(compare_all(&c, 1), 15);
}

/* ---- cancelling ------------------------------------------------------------------------------ */

typedef struct watcher {
    int64_t calls, last, evaluated;
    double tokens;
    bool stops;
} watcher;

static int watch(void *user, const fin_learn_report *report)
{
    watcher *w = user;
    w->calls++;
    assert_int_equal(report->step, w->last + 1);
    assert_true(isfinite(report->loss) && report->rate > 0);
    assert_true(report->tokens > w->tokens);
    assert_true(report->row != NULL);
    if (report->evaluated)
        assert_int_equal(report->row->step, report->step);
    w->evaluated += report->evaluated;
    w->tokens = report->tokens;
    w->last = report->step;
    return w->stops;
}

static void cancel__goes_on(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    help_open(&c);
    help_run(&c, -1);
    help_bytes whole = help_all(&c);
    help_close(&c);
    help_open(&c);
    watcher w = {.stops = true};
    fin_error err = {FIN_OK, ""};
    for (int64_t s = 1; s <= 12; s++) {
        assert_int_equal(fin_learn_run(c.learn, -1, watch, &w, &err), FIN_ERR_CANCELLED);
        assert_int_equal(fin_learn_step(c.learn), s);
    }
    assert_int_equal(fin_learn_run(c.learn, -1, watch, &w, &err), FIN_OK);
    assert_int_equal(w.calls, 12);
    assert_int_equal(w.evaluated, 3);
    assert_true(w.tokens == 12.0 * 16 * (6 + 3));
    assert_true(fin_learn_done(c.learn));
    help_bytes pieces = help_all(&c);
    assert_true(help_same(&whole, &pieces));
    free(whole.data);
    free(pieces.data);
    help_close(&c);
}

static void run__until(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    help_open(&c);
    watcher w = {.stops = false};
    fin_error err = {FIN_OK, ""};
    assert_false(fin_learn_run(c.learn, 5, watch, &w, &err));
    assert_int_equal(fin_learn_step(c.learn), 5);
    assert_false(fin_learn_done(c.learn));
    assert_false(fin_learn_run(c.learn, 3, watch, &w, &err)); /* it is there already */
    assert_int_equal(fin_learn_step(c.learn), 5);
    assert_false(fin_learn_run(c.learn, 1000, watch, &w, &err));
    assert_int_equal(fin_learn_step(c.learn), 12);
    assert_int_equal(w.calls, 12);
    help_close(&c);
    c.learn_set.steps = 10; /* evaluations at 0, 4, 8 and at the end */
    help_open(&c);
    help_run(&c, -1);
    const fin_learn_row *rows;
    assert_int_equal(fin_learn_log(c.learn, &rows), 4);
    assert_int_equal(rows[3].step, 10);
    help_close(&c);
    c.learn_set.steps = 0; /* an evaluation, nothing else */
    help_open(&c);
    help_run(&c, -1);
    assert_int_equal(fin_learn_log(c.learn, NULL), 1);
    assert_true(fin_learn_done(c.learn));
    help_close(&c);
}

/* ---- states that are wrong ------------------------------------------------------------------- */

static void expect_refused(help_case *c, const help_state *s, int64_t count, const char *word)
{
    help_bytes before = help_all(c);
    fin_error err = {FIN_OK, ""};
    fin_status status = fini_learn_restore(c->learn, s->tensors, count, &err);
    if (status != FIN_ERR_FORMAT || !strstr(err.message, word))
        fail_msg("status '%s', message '%s', expected '%s'", fin_status_name(status), err.message,
                 word);
    help_bytes after = help_all(c);
    assert_true(help_same(&before, &after));
    free(before.data);
    free(after.data);
}

static fin_status load_state(void *user, const fin_tensor *tensors, int64_t count, fin_error *why)
{
    help_case *c = user;
    help_bytes before = help_all(c);
    fin_status status = fini_learn_restore(c->learn, tensors, count, why);
    help_bytes after = help_all(c);
    if (status)
        assert_true(help_same(&before, &after));
    free(before.data);
    free(after.data);
    return status;
}

/* Every field of both optimizers, harmed in every way: refused, and nothing is changed. */
static void restore__refuses_missing_and_misshapen(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        help_case c = help_defaults("concept");
        c.learn_set.patience = 5;
        if (i) {
            c.corpus_set.samples = 20;
            c.learn_set.optimizer = FIN_OPTIMIZER_LBFGS;
        }
        help_open(&c);
        help_run(&c, 8);
        help_state s = help_save(&c);
        assert_true(state_harm_every(&fini_learn_state, "", s.tensors, s.count, load_state, &c) >
                    200);
        expect_refused(&c, &s, 0, "learn.counts");
        help_load(&c, &s);
        help_drop(&s);
        help_close(&c);
    }
}

static void put_number(help_case *c, help_state *s, const char *name, int64_t i, double value,
                       const char *word)
{
    unsigned char *data, keep[8];
    fin_tensor *t = help_tensor(s, name, &data);
    float f = (float)value;
    int64_t whole = (int64_t)value;
    size_t size = t->dtype == FIN_F32 ? sizeof f : sizeof value;
    data += (size_t)i * size;
    memcpy(keep, data, size);
    if (t->dtype == FIN_F32)
        memcpy(data, &f, size);
    else if (t->dtype == FIN_I64)
        memcpy(data, &whole, size);
    else
        memcpy(data, &value, size);
    expect_refused(c, s, s->count, word);
    memcpy(data, keep, size);
}

static void restore__refuses_bad_numbers(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    c.learn_set.patience = 5;
    help_open(&c);
    help_run(&c, 8);
    help_state s = help_save(&c);
    for (int i = 0; i < FINI_COUNTS; i++) {
        put_number(&c, &s, "learn.counts", i, -1, "counts");
        put_number(&c, &s, "learn.counts", i, 0x1p51, "counts");
    }
    put_number(&c, &s, "learn.counts", FINI_STOPPED, 2, "counts");
    put_number(&c, &s, "learn.counts", FINI_SINCE, 9, "counts");
    put_number(&c, &s, "learn.counts", FINI_KEPT, FINI_LBFGS_MEMORY + 1, "counts");
    put_number(&c, &s, "learn.counts", FINI_NEWEST, FINI_LBFGS_MEMORY, "counts");
    for (int i = 0; i < FINI_NUMBERS; i++)
        put_number(&c, &s, "learn.numbers", i, NAN, "numbers");
    put_number(&c, &s, "learn.first", 3, INFINITY, "learn.first");
    put_number(&c, &s, "learn.second", 3, NAN, "learn.second");
    put_number(&c, &s, "learn.second", 3, -1, "learn.second");
    put_number(&c, &s, "learn.best", 3, NAN, "learn.best");
    put_number(&c, &s, "learn.log", 0, -2, "log");
    put_number(&c, &s, "learn.log", FINI_ROW, 0, "log");
    put_number(&c, &s, "learn.log", FINI_ROW, 4.5, "log");
    put_number(&c, &s, "learn.log", 2 * FINI_ROW, 9, "log");
    put_number(&c, &s, "learn.log", 4, 1e300, "log");
    put_number(&c, &s, "learn.log", 5, NAN, "log");
    help_load(&c, &s);
    help_drop(&s);
    help_close(&c);
}

/* Saved by the other optimiser, or of another encoder. */
static void restore__refuses_strangers(void **state)
{
    (void)state;
    help_case c = help_defaults("concept"), other = c;
    c.corpus_set.samples = other.corpus_set.samples = 20;
    other.learn_set.optimizer = FIN_OPTIMIZER_LBFGS;
    help_open(&c);
    help_open(&other);
    help_run(&c, 4);
    help_run(&other, 4);
    help_state a = help_save(&c), b = help_save(&other);
    expect_refused(&c, &b, b.count, "another optimizer");
    expect_refused(&other, &a, a.count, "another optimizer");
    help_close(&other);
    other.learn_set.optimizer = FIN_OPTIMIZER_ADAMW;
    other.encoder_set.width = 16;
    help_open(&other);
    expect_refused(&other, &a, a.count, "learn.first");
    help_drop(&a);
    help_drop(&b);
    help_close(&other);
    help_close(&c);
}

/* More steps than were planned, and patience where there was none. */
static void restore__other_settings(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    help_open(&c);
    help_run(&c, -1);
    help_state s = help_save(&c);
    help_close(&c);
    c.learn_set.steps = 20;
    c.learn_set.patience = 3;
    help_open(&c);
    help_load(&c, &s);
    help_run(&c, -1);
    assert_true(fin_learn_step(c.learn) > 12);
    help_drop(&s);
    help_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resume__same_bytes_online),
        cmocka_unit_test(resume__same_bytes_fixed_sample),
        cmocka_unit_test(resume__same_bytes_lbfgs),
        cmocka_unit_test(cancel__goes_on),
        cmocka_unit_test(run__until),
        cmocka_unit_test(restore__refuses_missing_and_misshapen),
        cmocka_unit_test(restore__refuses_bad_numbers),
        cmocka_unit_test(restore__refuses_strangers),
        cmocka_unit_test(restore__other_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
