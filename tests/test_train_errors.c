/* What the train module refuses and how it says so; arrays of all kinds to go on from; runs that
 * diverge; memory that runs out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_train_help.h"
#include "test_state.h"
#include "train/train.h"

/* ---- what does not go together --------------------------------------------------------------------- */

typedef struct request {
    const fin_task *task;
    const char *form;
    fin_form_settings fs;
    fin_train_settings s;
    fin_train_start start;
} request;

static void refused(const request *r, fin_status want, const char *word)
{
    fin_train *t = (fin_train *)1;
    fin_error e = {FIN_OK, ""};
    fin_status status =
        fin_train_create(&t, r->task, fin_form_find(r->form), &r->fs, &r->s, &r->start, &e);
    if (status != want || e.status != want || !strstr(e.message, word))
        fail_msg("wanted '%s' with '%s', got '%s': %s", fin_status_name(want), word,
                 fin_status_name(status), e.message);
    assert_null(t);
    assert_int_equal(
        fin_train_create(&t, r->task, fin_form_find(r->form), &r->fs, &r->s, &r->start, NULL),
        want);
}

static void accepted(const request *r)
{
    fin_train *t = NULL;
    OK(fin_train_create(&t, r->task, fin_form_find(r->form), &r->fs, &r->s, &r->start, &err));
    OK(fin_train_run(t, r->s.steps < 3 ? r->s.steps : 3, NULL, &err));
    fin_train_destroy(t);
}

static request good(const fin_task *task, const char *form, int engine)
{
    request r = {task, form, form_settings(form, 0.5), train_settings(engine, 3, 10), {.count = 0}};
    return r;
}

static fin_task *task_of(const char *kind, int64_t d, int64_t L, int flags)
{
    fin_task_settings ts = task_settings(kind, d, L);
    return task_make(kind, &ts, 2, flags);
}

static void create__refuses_what_does_not_go_together(void **state)
{
    (void)state;
    fin_task *slr = task_of("slr", 20, 5, FIN_TASK_AMBIENT), *plain = task_of("slr", 20, 5, 0);
    fin_task *max = task_of("max", 20, 5, FIN_TASK_AMBIENT);
    request r;

    /* a gradient of the exact risk */
    const char *const without[] = {"softmax", "softplus", "hardmax", "bayes"};
    for (int i = 0; i < 4; i++) {
        r = good(slr, without[i], FIN_ENGINE_POPULATION);
        refused(&r, FIN_ERR_UNSUPPORTED, "depends on all tokens");
        r.s.engine = FIN_ENGINE_REDUCED;
        accepted(&r);
    }
    r = good(max, "erf", FIN_ENGINE_POPULATION);
    refused(&r, FIN_ERR_UNSUPPORTED, "relevance depends");
    r.s.engine = FIN_ENGINE_REDUCED;
    accepted(&r);
    const char *const with[] = {"erf", "linear", "shifted"};
    for (int i = 0; i < 3; i++) {
        r = good(slr, with[i], FIN_ENGINE_POPULATION);
        accepted(&r);
    }

    /* rules and engines */
    for (int engine = FIN_ENGINE_REDUCED; engine <= FIN_ENGINE_AMBIENT; engine++) {
        r = good(slr, "erf", engine);
        accepted(&r);
        r.s.rule = FIN_RULE_FLOW;
        refused(&r, FIN_ERR_UNSUPPORTED, "flow needs an exact risk");
        r.s.rule = FIN_RULE_ARMIJO;
        refused(&r, FIN_ERR_UNSUPPORTED, "armijo needs an exact risk");
    }
    r = good(slr, "erf", FIN_ENGINE_POPULATION);
    r.s.rule = FIN_RULE_ARMIJO;
    accepted(&r);
    r.s.momentum = 0.5;
    refused(&r, FIN_ERR_UNSUPPORTED, "momentum");
    r.s.momentum = 0;
    r.s.alpha_lam = 0.1;
    refused(&r, FIN_ERR_UNSUPPORTED, "line search");
    r = good(slr, "erf", FIN_ENGINE_POPULATION);
    r.s.rule = FIN_RULE_FLOW;
    r.s.momentum = 0.5;
    refused(&r, FIN_ERR_UNSUPPORTED, "momentum");

    /* lam */
    const int64_t from[2] = {0, 5};
    const double values[2] = {0.5, 0.1};
    r = good(slr, "erf", FIN_ENGINE_REDUCED);
    r.s.alpha_lam = 0.1;
    accepted(&r);
    r.s.decay = 0.1;
    refused(&r, FIN_ERR_ARGUMENT, "choose one");
    r.s.decay = 0;
    r.start.lam = (fin_schedule){2, from, values};
    refused(&r, FIN_ERR_ARGUMENT, "choose one");
    r.s.alpha_lam = 0;
    accepted(&r);
    r = good(slr, "hardmax", FIN_ENGINE_REDUCED);
    accepted(&r);
    r.s.decay = 0.1;
    refused(&r, FIN_ERR_UNSUPPORTED, "hardmax has no lam");
    r.s.decay = 0;
    r.s.alpha_lam = 0.1;
    refused(&r, FIN_ERR_UNSUPPORTED, "hardmax has no lam");
    r.s.alpha_lam = 0;
    r.start.lam = (fin_schedule){2, from, values};
    refused(&r, FIN_ERR_UNSUPPORTED, "hardmax has no lam");
    r = good(slr, "linear", FIN_ENGINE_POPULATION);
    r.s.alpha_lam = 0.1;
    refused(&r, FIN_ERR_UNSUPPORTED, "no derivative in lam");
    r.s.engine = FIN_ENGINE_REDUCED;
    accepted(&r);

    /* vectors */
    r = good(plain, "erf", FIN_ENGINE_REDUCED);
    accepted(&r);
    r.s.engine = FIN_ENGINE_AMBIENT;
    refused(&r, FIN_ERR_ARGUMENT, "FIN_TASK_AMBIENT");
    r = good(plain, "erf", FIN_ENGINE_POPULATION);
    double k[20] = {1}, v[20] = {0, 1};
    r.s.init = FIN_INIT_VECTORS;
    r.start = (fin_train_start){.count = 1, .k = k, .v = v};
    refused(&r, FIN_ERR_ARGUMENT, "FIN_TASK_AMBIENT");
    r.task = slr;
    accepted(&r);

    /* nothing at all */
    fin_train *t = (fin_train *)1;
    assert_int_equal(fin_train_create(&t, NULL, fin_form_find("erf"), NULL, NULL, NULL, &err),
                     FIN_ERR_ARGUMENT);
    assert_null(t);
    assert_int_equal(fin_train_create(&t, slr, fin_form_find("erv"), NULL, NULL, NULL, &err),
                     FIN_ERR_ARGUMENT);
    assert_null(t);
    fin_train_destroy(NULL);
    fin_task_destroy(slr);
    fin_task_destroy(plain);
    fin_task_destroy(max);
}

static void create__refuses_bad_numbers(void **state)
{
    (void)state;
    fin_task *slr = task_of("slr", 20, 5, FIN_TASK_AMBIENT);
    for (int i = 0; i < fin_train_table.count; i++) { /* at, past and NaN of every limit */
        const fin_field *f = &fin_train_table.fields[i];
        for (int high = 0; high < 2; high++) {
            request r = good(slr, "erf", FIN_ENGINE_REDUCED);
            char *at = (char *)&r.s + f->offset;
            double limit = high ? f->highest : f->lowest;
            if (f->type == FIN_TYPE_double) {
                double past = nextafter(limit, high ? INFINITY : -INFINITY), nan = NAN;
                memcpy(at, &past, sizeof past);
                refused(&r, FIN_ERR_ARGUMENT, f->name);
                memcpy(at, &nan, sizeof nan);
                refused(&r, FIN_ERR_ARGUMENT, f->name);
            } else if (f->type == FIN_TYPE_int64_t) {
                int64_t past = (int64_t)limit + (high ? 1 : -1);
                memcpy(at, &past, sizeof past);
                refused(&r, FIN_ERR_ARGUMENT, f->name);
            } else {
                int past = high ? 7 : -1;
                memcpy(at, &past, sizeof past);
                refused(&r, FIN_ERR_ARGUMENT, f->name);
            }
        }
    }
    request r = good(slr, "erf", FIN_ENGINE_REDUCED);
    r.fs.lam = NAN;
    refused(&r, FIN_ERR_ARGUMENT, "lam");
    r.fs.lam = -1;
    refused(&r, FIN_ERR_ARGUMENT, "lam");
    fin_task_destroy(slr);
}

static void create__refuses_bad_starts(void **state)
{
    (void)state;
    fin_task *slr = task_of("slr", 4, 5, FIN_TASK_AMBIENT), *flat = task_of("slr", 2, 5, 0);
    const fin_overlaps fine[3] = {{0.1, 0.2, 0, 0, 0}, {0, 0, 0, 0, 0}, {1, 1, 0, 0, 0}};
    const fin_overlaps bad[] = {{1, 1, 0.5, 0, 0},  {0.9, 0, 0, 0.9, 0}, {NAN, 0, 0, 0, 0},
                                {0, 0, 0, 0, 1.01}, {1, 0, 0, 0, 1},     {0.8, 0.8, 0, 0, 0.9}};
    for (int engine = 0; engine < 3; engine++) {
        request r = good(slr, "erf", engine);
        r.s.init = FIN_INIT_OVERLAPS;
        refused(&r, FIN_ERR_ARGUMENT, "needs the overlaps");
        r.start.overlaps = fine;
        refused(&r, FIN_ERR_ARGUMENT, "0 starting points for 3 runs");
        r.start.count = 2;
        refused(&r, FIN_ERR_ARGUMENT, "2 starting points for 3 runs");
        r.start.count = -1;
        refused(&r, FIN_ERR_ARGUMENT, "starting points");
        r.start.count = 1;
        accepted(&r);
        r.start.count = 3;
        accepted(&r);
        for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
            fin_overlaps three[3] = {fine[0], fine[1], bad[i]};
            r.start.overlaps = three;
            refused(&r, FIN_ERR_ARGUMENT, "");
        }
        r = good(slr, "erf", engine);
        double k[12], v[12];
        for (int i = 0; i < 12; i++) {
            k[i] = 1 + i;
            v[i] = i % 5 - 2.5;
        }
        r.s.init = FIN_INIT_VECTORS;
        refused(&r, FIN_ERR_ARGUMENT, "needs the vectors");
        r.start = (fin_train_start){.count = 3, .k = k};
        refused(&r, FIN_ERR_ARGUMENT, "needs the vectors");
        r.start.v = v;
        accepted(&r);
        r.start.count = 2;
        refused(&r, FIN_ERR_ARGUMENT, "2 starting points");
        r.start.count = 3;
        v[5] = NAN;
        refused(&r, FIN_ERR_ARGUMENT, "vector v number 1");
        v[5] = INFINITY;
        refused(&r, FIN_ERR_ARGUMENT, "vector v number 1");
        v[5] = 1;
        k[8] = k[9] = k[10] = k[11] = 0;
        refused(&r, FIN_ERR_ARGUMENT, "vector k number 2");
        k[8] = 1e-320; /* a vector all the same */
        accepted(&r);
        k[8] = 1.7e308;
        k[9] = -1.7e308;
        accepted(&r);
    }
    request r = good(flat, "erf", FIN_ENGINE_REDUCED); /* there is no third direction in R^2 */
    r.s.init = FIN_INIT_OVERLAPS;
    r.start = (fin_train_start){.count = 1, .overlaps = fine};
    refused(&r, FIN_ERR_ARGUMENT, "");

    r = good(slr, "erf", FIN_ENGINE_REDUCED);
    const int64_t late[2] = {1, 5}, twice[2] = {0, 0}, right[2] = {0, 5};
    const double values[2] = {0.5, 0.1}, negative[2] = {0.5, -0.1}, large[2] = {0.5, 1e301},
                 nan[2] = {NAN, 0.1};
    for (int which = 0; which < 2; which++) {
        fin_schedule *s = which ? &r.start.alpha : &r.start.lam;
        *s = (fin_schedule){2, late, values};
        refused(&r, FIN_ERR_ARGUMENT, "begin with 0 and ascend");
        *s = (fin_schedule){2, twice, values};
        refused(&r, FIN_ERR_ARGUMENT, "begin with 0 and ascend");
        *s = (fin_schedule){2, right, negative};
        refused(&r, FIN_ERR_ARGUMENT, "value -0.1");
        *s = (fin_schedule){2, right, large};
        refused(&r, FIN_ERR_ARGUMENT, "value 1e+301");
        *s = (fin_schedule){2, right, nan};
        refused(&r, FIN_ERR_ARGUMENT, which ? "schedule of alpha" : "schedule of lam");
        *s = (fin_schedule){-1, right, values};
        refused(&r, FIN_ERR_ARGUMENT, "-1 pieces");
        *s = (fin_schedule){(1 << 20) + 1, right, values};
        refused(&r, FIN_ERR_ARGUMENT, "pieces");
        *s = (fin_schedule){2, right, values};
        accepted(&r);
        *s = (fin_schedule){0, NULL, NULL};
    }
    fin_task_destroy(slr);
    fin_task_destroy(flat);
}

static void create__refuses_sizes_that_do_not_fit(void **state)
{
    (void)state;
    fin_task *slr = task_of("slr", 20, 5, 0), *wide = task_of("slr", 1 << 24, 5, FIN_TASK_AMBIENT);
    fin_task *longest = task_of("slr", 20, FIN_L_MAX, 0);
    request r = good(slr, "erf", FIN_ENGINE_POPULATION);
    r.s.runs = FIN_RUNS_MAX;
    r.s.steps = FIN_STEPS_MAX;
    r.s.log_every = 1;
    refused(&r, FIN_ERR_ARGUMENT, "log less often");
    r = good(slr, "erf", FIN_ENGINE_REDUCED);
    r.s.steps = FIN_STEPS_MAX / 4 + 1;
    r.s.batch = 4;
    r.s.log_decade = 1;
    refused(&r, FIN_ERR_ARGUMENT, "a run has less than 2^40");
    r.s.steps--;
    accepted(&r);
    r = good(slr, "softmax", FIN_ENGINE_REDUCED);
    r.s.steps = FIN_STEPS_MAX;
    r.s.batch = 1;
    r.s.log_decade = 1;
    accepted(&r);
    r = good(wide, "erf", FIN_ENGINE_AMBIENT);
    r.s.runs = FIN_RUNS_MAX;
    refused(&r, FIN_ERR_ARGUMENT, "reduced engine");
    r = good(longest, "softmax", FIN_ENGINE_REDUCED);
    r.s.batch = 1 << 20;
    refused(&r, FIN_ERR_ARGUMENT, "smaller batch");
    r = good(longest, "erf", FIN_ENGINE_REDUCED);
    r.s.batch = 1 << 20;
    refused(&r, FIN_ERR_ARGUMENT, "smaller batch");
    fin_task_destroy(slr);
    fin_task_destroy(wide);
    fin_task_destroy(longest);
}

static void run__refuses_steps_there_are_not(void **state)
{
    (void)state;
    fin_task *slr = task_of("slr", 20, 5, 0);
    request r = good(slr, "erf", FIN_ENGINE_REDUCED);
    fin_train *t = train_make(slr, "erf", &r.fs, &r.s, NULL);
    assert_int_equal(fin_train_run(t, 11, NULL, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "until = 11"));
    assert_int_equal(fin_train_run(t, -1, NULL, NULL), FIN_ERR_ARGUMENT);
    fin_train_array a;
    assert_int_equal(fini_train_get_array(t, -1, &a, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fini_train_get_array(t, fini_train_array_count(t), &a, &err),
                     FIN_ERR_ARGUMENT);
    assert_string_equal(fin_run_status_name(FIN_RUN_DIVERGED), "diverged");
    assert_string_equal(fin_run_status_name((fin_run_status)17), "unknown");
    fin_train_destroy(t);
    fin_task_destroy(slr);
}

/* ---- hostile arrays ----------------------------------------------------------------------------------- */

enum { MOST_ARRAYS = 64 };
typedef struct arrays {
    int count;
    fin_train_array a[MOST_ARRAYS];
} arrays;

static arrays copy_arrays(const fin_train *t)
{
    arrays x = {.count = fini_train_array_count(t)};
    for (int i = 0; i < x.count; i++) {
        OK(fini_train_get_array(t, i, &x.a[i], &err));
        x.a[i].data = memcpy(malloc(train_bytes(&x.a[i])), x.a[i].data, train_bytes(&x.a[i]));
    }
    return x;
}

static void free_arrays(arrays *x)
{
    for (int i = 0; i < x->count; i++)
        free((void *)(uintptr_t)x->a[i].data);
}

static int index_of(const arrays *x, const char *name)
{
    for (int i = 0; i < x->count; i++)
        if (strcmp(x->a[i].name, name) == 0)
            return i;
    fail_msg("no '%s'", name);
    return -1;
}

static void resume_refused(fin_train *t, const fin_train *fresh, const arrays *x, const char *word)
{
    fin_error e = {FIN_OK, ""};
    fin_status status = fini_train_resume(t, x->a, x->count, &e);
    if (status != FIN_ERR_FORMAT || !strstr(e.message, word))
        fail_msg("wanted a message with '%s', got '%s': %s", word, fin_status_name(status),
                 e.message);
    for (int i = 0; i < x->count; i++) { /* as good as new */
        fin_train_array a, b;
        OK(fini_train_get_array(t, i, &a, &err));
        OK(fini_train_get_array(fresh, i, &b, &err));
        if (memcmp(a.data, b.data, train_bytes(&a)) != 0)
            fail_msg("'%s' was left changed after '%s'", a.name, e.message);
    }
}

static fin_status resume_tensors(void *user, const fin_tensor *tensors, int64_t count,
                                 fin_error *why)
{
    fin_train_array a[MOST_ARRAYS];
    for (int64_t i = 0; i < count; i++)
        a[i] = (fin_train_array){tensors[i].name,
                                 "",
                                 tensors[i].dtype,
                                 tensors[i].ndim,
                                 {tensors[i].shape[0], tensors[i].shape[1]},
                                 tensors[i].data};
    return fini_train_resume(user, a, (int)count, why);
}

/* Every array, harmed in every way. */
static void harm_every(const arrays *x, fin_train *t)
{
    fin_tensor tensors[MOST_ARRAYS];
    fini_tensor_list l = {tensors, 0, MOST_ARRAYS};
    for (int i = 0; i < x->count; i++)
        fini_tensor_put(&l, "", x->a[i].name, x->a[i].dtype, x->a[i].shape[0],
                        x->a[i].ndim == 2 ? x->a[i].shape[1] : 0, x->a[i].data);
    assert_true(state_harm_every(&fini_train_state, "", tensors, l.count, resume_tensors, t) > 500);
}

static void resume__answers_hostile_arrays(void **state)
{
    (void)state;
    const struct {
        const char *form;
        int engine, rule;
        double momentum;
    } kinds[] = {{"erf", FIN_ENGINE_POPULATION, FIN_RULE_DESCENT, 0},
                 {"erf", FIN_ENGINE_POPULATION, FIN_RULE_DESCENT, 0.5},
                 {"erf", FIN_ENGINE_POPULATION, FIN_RULE_ARMIJO, 0},
                 {"erf", FIN_ENGINE_REDUCED, FIN_RULE_DESCENT, 0},
                 {"softmax", FIN_ENGINE_REDUCED, FIN_RULE_DESCENT, 0.5},
                 {"erf", FIN_ENGINE_AMBIENT, FIN_RULE_DESCENT, 0}};
    fin_task *slr = task_of("slr", 20, 5, FIN_TASK_AMBIENT);
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        request r = good(slr, kinds[kind].form, kinds[kind].engine);
        r.s.rule = kinds[kind].rule;
        r.s.momentum = kinds[kind].momentum;
        fin_train *done = train_make(slr, r.form, &r.fs, &r.s, NULL);
        fin_train *t = train_make(slr, r.form, &r.fs, &r.s, NULL);
        fin_train *fresh = train_make(slr, r.form, &r.fs, &r.s, NULL);
        OK(fin_train_run(done, 6, NULL, &err));
        arrays right = copy_arrays(done);
        harm_every(&right, t);
        assert_int_equal(fini_train_resume(t, right.a, 0, &err), FIN_ERR_FORMAT);

        int64_t *at = (int64_t *)(uintptr_t)right.a[index_of(&right, "at")].data;
        const int64_t bad_at[] = {-1, 11, INT64_MAX, INT64_MIN};
        for (int i = 0; i < 4; i++) {
            at[2] = bad_at[i];
            resume_refused(t, fresh, &right, "run 2 has made");
        }
        at[2] = 6;
        int64_t *status = (int64_t *)(uintptr_t)right.a[index_of(&right, "status")].data;
        const int64_t bad_status[] = {-1, 4, INT64_MAX};
        for (int i = 0; i < 3; i++) {
            status[1] = bad_status[i];
            resume_refused(t, fresh, &right, "run 1 has the status");
        }
        status[1] = 0;
        int where = index_of(&right, "state");
        double *x = (double *)(uintptr_t)right.a[where].data;
        const double bad[] = {NAN, INFINITY, -INFINITY, 1.5, -1e300, 1e300};
        int64_t width = right.a[where].shape[1];
        int64_t unit = r.s.momentum > 0 ? 2 * t->frame : width; /* velocities: anything finite */
        for (int64_t j = 0; j < width; j++)
            for (int i = 0; i < 6; i++) {
                double keep = x[width + j];
                int free_number = j >= width - 2; /* lam, the last step of a line search */
                if ((j >= unit && i > 2) || (free_number && i != 0 && i != 2))
                    continue;
                x[width + j] = bad[i];
                resume_refused(t, fresh, &right, "state of run 1");
                x[width + j] = keep;
            }
        OK(fini_train_resume(t, right.a, right.count, &err));
        OK(fin_train_run(t, 10, NULL, &err));
        OK(fin_train_run(done, 10, NULL, &err));
        for (int i = 0; i < right.count; i++) {
            fin_train_array a, b;
            OK(fini_train_get_array(t, i, &a, &err));
            OK(fini_train_get_array(done, i, &b, &err));
            assert_memory_equal(a.data, b.data, train_bytes(&a));
        }
        /* Events that cannot be are not believed. */
        double *event = (double *)(uintptr_t)right.a[index_of(&right, "left_at")].data;
        event[0] = -3;
        event[1] = 1e300;
        event[2] = 2.5e9;
        OK(fini_train_resume(t, right.a, right.count, &err));
        for (int run = 0; run < 3; run++)
            assert_true(isnan(t->left_at[run]));
        OK(fin_train_run(t, 10, NULL, &err));
        /* Nor steps that do not ascend, or are not those logged here. */
        int64_t *step = (int64_t *)(uintptr_t)right.a[index_of(&right, "step")].data;
        step[1] = INT64_MIN;
        step[2] = INT64_MAX;
        resume_refused(t, fresh, &right, "step");
        free_arrays(&right);
        fin_train_destroy(done);
        fin_train_destroy(t);
        fin_train_destroy(fresh);
    }
    fin_task_destroy(slr);
}

/* Five numbers within [-1, 1] need not be overlaps of unit vectors. */
static void resume__refuses_overlaps_of_no_vectors(void **state)
{
    (void)state;
    fin_task *slr = task_of("slr", 20, 5, FIN_TASK_AMBIENT);
    for (int engine = FIN_ENGINE_POPULATION; engine <= FIN_ENGINE_REDUCED; engine++) {
        request r = good(slr, "erf", engine);
        fin_train *t = train_make(slr, "erf", &r.fs, &r.s, NULL);
        fin_train *fresh = train_make(slr, "erf", &r.fs, &r.s, NULL);
        arrays x = copy_arrays(t);
        double *s = (double *)(uintptr_t)x.a[index_of(&x, "state")].data;
        const double never[5] = {0.9, 0.9, 0.9, 0.9, -0.9};
        memcpy(s, never, sizeof never);
        resume_refused(t, fresh, &x, "run 0");
        free_arrays(&x);
        fin_train_destroy(t);
        fin_train_destroy(fresh);
    }
    fin_task_destroy(slr);
}

/* ---- runs that diverge ------------------------------------------------------------------------------- */

typedef struct blow {
    const char *form;
    int engine;
    double momentum, alpha, alpha_lam, mu;
} blow;

/* alpha is fine up to step 25, then no longer: every run ends there, with what was logged before. */
static void run__stops_before_it_diverges(void **state)
{
    (void)state;
    const blow blows[] = {{"erf", FIN_ENGINE_POPULATION, 0, 1e200, 0, 3},
                          {"erf", FIN_ENGINE_POPULATION, 0, 1e152, 0, 1e4},
                          {"erf", FIN_ENGINE_REDUCED, 0, 1e152, 0, 1e4},
                          {"erf", FIN_ENGINE_POPULATION, 0.5, 1e200, 0, 3},
                          {"linear", FIN_ENGINE_POPULATION, 0, 1e200, 0, 3},
                          {"erf", FIN_ENGINE_REDUCED, 0, 1e200, 0, 3},
                          {"erf", FIN_ENGINE_REDUCED, 0.5, 1e200, 0, 3},
                          {"softmax", FIN_ENGINE_REDUCED, 0, 1e200, 0, 3},
                          {"erf", FIN_ENGINE_AMBIENT, 0, 1e200, 0, 3},
                          {"softmax", FIN_ENGINE_AMBIENT, 0.5, 1e200, 0, 3},
                          {"erf", FIN_ENGINE_POPULATION, 0, 1e300, 0, 1e9},
                          {"erf", FIN_ENGINE_POPULATION, 0.5, 1e300, 0, 1e9},
                          {"erf", FIN_ENGINE_REDUCED, 0, 1e300, 0, 1e9},
                          {"erf", FIN_ENGINE_REDUCED, 0.5, 1e300, 0, 1e9},
                          {"erf", FIN_ENGINE_AMBIENT, 0, 1e300, 0, 1e9}};
    enum { RUNS = 5, AT = 25 };
    int wrong = 0;
    for (size_t i = 0; i < sizeof blows / sizeof *blows; i++) {
        const blow *b = &blows[i];
        fin_task_settings ts = task_settings("slr", 20, 5);
        ts.mu = b->mu;
        fin_task *task = task_make("slr", &ts, 2, FIN_TASK_AMBIENT);
        request r = good(task, b->form, b->engine);
        const int64_t from[2] = {0, AT};
        const double alphas[2] = {b->mu > 100 ? 1e-20 : 0.01, b->alpha};
        r.s.runs = RUNS;
        r.s.steps = 60;
        r.s.log_every = 4;
        r.s.momentum = b->momentum;
        r.start.alpha = (fin_schedule){2, from, alphas};
        fin_train *t = train_make(task, b->form, &r.fs, &r.s, &r.start);
        fin_status status = fin_train_run(t, 60, NULL, &err);
        if (status) {
            print_message("case %d: %s\n", (int)i, err.message);
            wrong++;
        }
        for (int64_t run = 0; !status && run < RUNS; run++) {
            fin_run now;
            OK(fin_train_get_run(t, run, &now, &err));
            if (now.status != FIN_RUN_DIVERGED || now.step != AT) {
                print_message("case %d, run %d: '%s' at step %d, kappa %g nu %g\n", (int)i,
                              (int)run, fin_run_status_name(now.status), (int)now.step,
                              now.now.kappa, now.now.nu);
                wrong++;
                break;
            }
            assert_true(isfinite(now.now.kappa) && isfinite(now.now.risk));
            for (int64_t log = 0; log < t->logs; log++)
                assert_true(!isnan(train_log(t, "kappa", run, log)) == (t->step[log] <= AT));
        }
        fin_train_destroy(t);
        fin_task_destroy(task);
    }
    assert_int_equal(wrong, 0);
}

/* Some runs diverge (lam grows without bound), and it makes no difference to the others, nor to
 * anything whether the run is cut into pieces or resumed. */
static void run__diverges_alone(void **state)
{
    (void)state;
    enum { RUNS = 21, STEPS = 200 };
    for (int which = 0; which < 3; which++) {
        fin_task_settings ts = task_settings("slr", 20, 5);
        fin_task *task = task_make("slr", &ts, 2, FIN_TASK_AMBIENT);
        request r = good(task, which < 2 ? "erf" : "softmax", FIN_ENGINE_REDUCED);
        r.s.runs = RUNS;
        r.s.steps = STEPS;
        r.s.log_every = 7;
        r.s.alpha = 0.02;
        r.s.alpha_lam = which < 2 ? 3e6 : 4e6;
        r.s.momentum = which == 1 ? 0.3 : 0;
        fin_train *t = train_make(task, r.form, &r.fs, &r.s, NULL);
        OK(fin_train_run(t, STEPS, NULL, &err));
        int64_t diverged = 0, late = 0;
        for (int64_t run = 0; run < RUNS; run++) {
            fin_run now;
            OK(fin_train_get_run(t, run, &now, &err));
            bool gone = now.status == FIN_RUN_DIVERGED;
            diverged += gone;
            late += gone && now.step > 0;
            assert_true(gone ? now.step < STEPS : now.step == STEPS);
            assert_true(now.now.lam >= 0 && now.now.lam <= FINI_LAM_MOST);
            for (int64_t log = 0; log < t->logs; log++)
                assert_true(!isnan(train_log(t, "kappa", run, log)) == (t->step[log] <= now.step));
            /* this run alone: the runs before it must be there, so take fewer of them */
            r.s.runs = run + 1;
            fin_train *few = train_make(task, r.form, &r.fs, &r.s, NULL);
            r.s.runs = RUNS;
            for (int64_t until = 11; until < STEPS; until += 37)
                OK(fin_train_run(few, until, NULL, &err));
            OK(fin_train_run(few, STEPS, NULL, &err));
            for (int i = 0; i < fini_train_array_count(t); i++) {
                fin_train_array a, b;
                OK(fini_train_get_array(few, i, &a, &err));
                OK(fini_train_get_array(t, i, &b, &err));
                assert_memory_equal(a.data, b.data, train_bytes(&a));
            }
            fin_train_destroy(few);
        }
        print_message("%d of %d diverged, %d of them later than at once\n", (int)diverged, RUNS,
                      (int)late);
        assert_true(diverged > 0 && late > 0 && diverged < RUNS);
        arrays x = copy_arrays(t);
        fin_train *again = train_make(task, r.form, &r.fs, &r.s, NULL);
        OK(fini_train_resume(again, x.a, x.count, &err));
        OK(fin_train_run(again, STEPS, NULL, &err));
        arrays y = copy_arrays(again);
        for (int i = 0; i < x.count; i++)
            assert_memory_equal(x.a[i].data, y.a[i].data, train_bytes(&x.a[i]));
        free_arrays(&x);
        free_arrays(&y);
        fin_train_destroy(again);
        fin_train_destroy(t);
        fin_task_destroy(task);
    }
}

/* ---- memory -------------------------------------------------------------------------------------------- */

typedef struct needs {
    const char *task, *form;
    int engine, init;
    int64_t until;
} needs;

static fin_status all_of_it(void *user, fin_error *e)
{
    const needs *n = user;
    fin_task *task = NULL;
    fin_train *t = NULL, *again = NULL;
    fin_task_settings ts = task_settings(n->task, 20, 5);
    fin_status status =
        fin_task_create(&task, fin_task_find(n->task), &ts, NULL, 2, FIN_TASK_AMBIENT, e);
    if (status)
        return status;
    request r = good(task, n->form, n->engine);
    fin_overlaps o = {0.1, 0.2, 0.3, 0.1, 0.2};
    r.s.init = n->init;
    r.s.momentum = n->engine == FIN_ENGINE_AMBIENT ? 0.5 : 0;
    r.start = (fin_train_start){.count = 1, .overlaps = &o};
    status = fin_train_create(&t, task, fin_form_find(n->form), &r.fs, &r.s, &r.start, e);
    assert_true(status ? t == NULL : t != NULL);
    if (!status) {
        status = fin_train_run(t, n->until, NULL, e);
        if (status) { /* what failed for want of memory can be done when there is some */
            long at = fault_at;
            fault_at = -1;
            OK(fin_train_run(t, n->until, NULL, &err));
            fault_at = at;
        }
    }
    if (!status)
        status = fin_train_create(&again, task, fin_form_find(n->form), &r.fs, &r.s, &r.start, e);
    if (!status) {
        arrays x = copy_arrays(t);
        status = fini_train_resume(again, x.a, x.count, e);
        free_arrays(&x);
    }
    fin_run now;
    if (!status)
        status = fin_train_get_run(again, 1, &now, e);
    if (!status)
        status = fin_train_run(again, 10, NULL, e);
    fin_train_destroy(t);
    fin_train_destroy(again);
    fin_task_destroy(task);
    return status;
}

static void memory__every_allocation_may_fail(void **state)
{
    (void)state;
    needs all[] = {{"slr", "erf", FIN_ENGINE_POPULATION, FIN_INIT_SPHERE, 4},
                   {"slr", "shifted", FIN_ENGINE_POPULATION, FIN_INIT_OVERLAPS, 4},
                   {"slr", "erf", FIN_ENGINE_REDUCED, FIN_INIT_SPHERE, 4},
                   {"slr", "bayes", FIN_ENGINE_REDUCED, FIN_INIT_OVERLAPS, 10},
                   {"max", "softmax", FIN_ENGINE_REDUCED, FIN_INIT_OVERLAPS, 4},
                   {"slr", "erf", FIN_ENGINE_AMBIENT, FIN_INIT_OVERLAPS, 4},
                   {"slr", "erf", FIN_ENGINE_AMBIENT, FIN_INIT_MANIFOLD, 4},
                   {"max", "softmax", FIN_ENGINE_AMBIENT, FIN_INIT_SPHERE, 4}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        fin_threads_set(i % 4 == 0 ? 2 : 1);
        print_message("%s/%s: %ld allocations\n", all[i].task, all[i].form,
                      fault_every(all_of_it, &all[i]));
    }
    fin_threads_set(0);
}

/* Logged more often than every step, softmax's risk is simulated at the end of a run that stops
 * between two logs; that allocation counts too. */
static fin_status between_logs(void *user, fin_error *e)
{
    (void)user;
    fin_task *task = NULL;
    fin_train *t = NULL;
    fin_task_settings ts = task_settings("slr", 20, 5);
    fin_status status = fin_task_create(&task, fin_task_find("slr"), &ts, NULL, 2, 0, e);
    if (status)
        return status;
    request r = good(task, "softmax", FIN_ENGINE_REDUCED);
    r.s.log_every = 7;
    status = fin_train_create(&t, task, fin_form_find("softmax"), &r.fs, &r.s, NULL, e);
    if (!status)
        status = fin_train_run(t, 4, NULL, e);
    fin_train_destroy(t);
    fin_task_destroy(task);
    return status;
}

static void memory__may_fail_between_logs(void **state)
{
    (void)state;
    fault_every(between_logs, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create__refuses_what_does_not_go_together),
        cmocka_unit_test(create__refuses_bad_numbers),
        cmocka_unit_test(create__refuses_bad_starts),
        cmocka_unit_test(create__refuses_sizes_that_do_not_fit),
        cmocka_unit_test(run__refuses_steps_there_are_not),
        cmocka_unit_test(resume__answers_hostile_arrays),
        cmocka_unit_test(resume__refuses_overlaps_of_no_vectors),
        cmocka_unit_test(run__stops_before_it_diverges),
        cmocka_unit_test(run__diverges_alone),
        cmocka_unit_test(memory__every_allocation_may_fail),
        cmocka_unit_test(memory__may_fail_between_logs),
    };
    return cmocka_run_group_tests_name("train_errors", tests, NULL, NULL);
}
