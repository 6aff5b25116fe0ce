/* A training as an object: files and arrays from which it goes on to the same bytes, and what it refuses. */
#include "test_data.h"

#include "test_command.h"

#include "command/training.h"
#include "train/train.h"

enum { WORDS = 2048 };

/* Pairs from "name=value name=value" in `copy`. */
static int pairs_of(const char *text, char copy[WORDS], fin_pair pairs[32])
{
    int count = 0;
    snprintf(copy, WORDS, "%s", text);
    char *rest, *word = strtok_r(copy, " ", &rest);
    for (; word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        assert_non_null(equals);
        *equals = '\0';
        pairs[count++] = (fin_pair){word, equals + 1, NULL};
    }
    return count;
}

static fin_status make(fin_training **out, const char *text, const fin_training_start *start,
                       fin_error *error)
{
    char copy[WORDS];
    fin_pair pairs[32];
    return fin_training_create(out, pairs, pairs_of(text, copy, pairs), start, error);
}

static fin_training *made(const char *text, const fin_training_start *start)
{
    fin_training *t;
    if (make(&t, text, start, &err))
        fail_msg("%s: %s", text, err.message);
    return t;
}

static void advance(fin_training *t, int64_t until)
{
    assert_int_equal(fin_train_run(fin_training_runs(t), until, NULL, &err), FIN_OK);
}

/* Its arrays, in memory of their own. */
enum { ARRAYS = 32 };
typedef struct kept {
    fin_train_array arrays[ARRAYS];
    int count;
} kept;

static size_t bytes_of(const fin_train_array *a)
{
    return (size_t)a->shape[0] * (size_t)(a->ndim == 2 ? a->shape[1] : 1) *
           fin_dtype_size(a->dtype);
}

static kept keep(const fin_training *t)
{
    kept k = {.count = fin_training_array_count(t)};
    assert_true(k.count <= ARRAYS);
    for (int i = 0; i < k.count; i++) {
        assert_int_equal(fin_training_get_array(t, i, &k.arrays[i], &err), FIN_OK);
        void *copy = malloc(bytes_of(&k.arrays[i]) + 1);
        memcpy(copy, k.arrays[i].data, bytes_of(&k.arrays[i]));
        k.arrays[i].data = copy;
    }
    return k;
}

static void drop(kept *k)
{
    for (int i = 0; i < k->count; i++)
        free((void *)(uintptr_t)k->arrays[i].data);
}

static void expect_same(const kept *a, const kept *b)
{
    assert_int_equal(a->count, b->count);
    for (int i = 0; i < a->count; i++) {
        assert_string_equal(a->arrays[i].name, b->arrays[i].name);
        assert_int_equal(bytes_of(&a->arrays[i]), bytes_of(&b->arrays[i]));
        assert_memory_equal(a->arrays[i].data, b->arrays[i].data, bytes_of(&a->arrays[i]));
    }
}

static fin_training *resumed(const fin_training_source *source, int64_t steps)
{
    fin_training *t;
    if (fin_training_resume(&t, source, steps, &err))
        fail_msg("%s", err.message);
    return t;
}

/* ---- the same bytes --------------------------------------------------------------------------- */

static const char *const cases[] = {
    "runs=3 steps=40 log_every=10",
    "engine=reduced runs=3 steps=40 d=20 L=3 momentum=0.5 alpha_lam=1e-3 seed=7 log_decade=4",
    "engine=ambient runs=2 steps=20 d=8 lengths=2:0.5,4:0.5",
    "init=overlaps kappa=0.3 nu=-0.2 runs=2 steps=20 rule=armijo",
    "lam_schedule=0:1,10:5e-1 alpha_schedule=0:1e-3,5:2e-3 runs=2 steps=20",
    "form=bayes task=max engine=reduced runs=2 steps=5 d=9 L=3 risk_samples=20",
};
enum { CASES = sizeof cases / sizeof *cases };

/* Stopped and resumed, from arrays and from a file, is the same as not stopped. */
static void resume__same_bytes(void **state)
{
    (void)state;
    for (int i = 0; i < CASES; i++) {
        fin_training *whole = made(cases[i], NULL), *part = made(cases[i], NULL);
        int64_t steps = fin_training_get(whole).settings->steps;
        advance(whole, steps);
        advance(part, steps / 3);
        assert_int_equal(fin_training_write(part, in_folder("part.npz"), &err), FIN_OK);
        kept parts = keep(part), all = keep(whole);
        const char *path = in_folder("part.npz");
        const fin_training_source sources[] = {{.path = path},
                                               {.arrays = parts.arrays, .count = parts.count}};
        for (int s = 0; s < 2; s++) {
            fin_training *again = resumed(&sources[s], -1);
            kept before = keep(again);
            expect_same(&before, &parts); /* nothing has happened yet */
            drop(&before);
            advance(again, steps);
            kept after = keep(again);
            expect_same(&after, &all);
            drop(&after);
            assert_string_equal(fin_training_get(again).version, fin_version());
            fin_training_destroy(again);
        }
        drop(&parts);
        drop(&all);
        fin_training_destroy(whole);
        fin_training_destroy(part);
    }
}

static void resume__more_steps(void **state)
{
    (void)state;
    fin_training *half = made("runs=2 steps=20 log_every=5", NULL);
    fin_training *whole = made("runs=2 steps=40 log_every=5", NULL), *t;
    advance(half, 20);
    advance(whole, 40);
    kept halves = keep(half), all = keep(whole);
    const fin_training_source source = {.arrays = halves.arrays, .count = halves.count};
    t = resumed(&source, 40);
    advance(t, 40);
    kept after = keep(t);
    expect_same(&after, &all);
    fin_training_destroy(t);
    assert_int_equal(fin_training_resume(&t, &source, 19, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "less than the 20 steps"));
    assert_null(t);
    assert_int_equal(fin_training_resume(&t, &source, INT64_MAX, &err), FIN_ERR_ARGUMENT);
    drop(&after);
    drop(&halves);
    drop(&all);
    fin_training_destroy(half);
    fin_training_destroy(whole);
}

/* The text of the settings: the order and the spelling that files have always had. */
static void settings__as_text(void **state)
{
    (void)state;
    fin_training *t = made("lam_schedule=0:1.0,10:5e-1 runs=2 steps=20 d=20 init=overlaps kappa=.5 "
                           "nu=0 lengths=3:1,05:2",
                           NULL);
    fin_train_array a;
    char head[128];
    assert_int_equal(fin_training_get_array(t, 0, &a, &err), FIN_OK);
    assert_string_equal(a.name, "settings");
    const char *text = a.data;
    snprintf(head, sizeof head, "finetti %s\ntask slr\nform erf\nlam ", fin_version());
    assert_memory_equal(text, head, strlen(head));
    assert_non_null(strstr(text, "\nd 20\n"));
    assert_non_null(strstr(text, "\nkappa 0.5\nnu 0\ntheta 0\n"));
    assert_non_null(strstr(text, "\nlog_every 1\n")); /* worked out */
    assert_non_null(strstr(text, "\nlengths 3:1,5:2\nlam_schedule 0:1,10:0.5\n"));
    assert_int_equal(strlen(text), a.shape[0]);
    fin_training_parts parts = fin_training_get(t);
    assert_string_equal(parts.lam_schedule, "0:1,10:0.5");
    assert_string_equal(parts.alpha_schedule, "");
    assert_int_equal(parts.lam.count, 2);
    assert_true(parts.lam.step[1] == 10 && parts.lam.value[1] == 0.5);
    assert_true(parts.overlaps && parts.overlaps->kappa == 0.5);
    assert_int_equal(fin_training_get_array(t, -1, &a, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_training_get_array(t, fin_training_array_count(t), &a, &err),
                     FIN_ERR_ARGUMENT);
    fin_training_destroy(t);
}

/* A list may be longer than a word of a command. */
static void lists__of_any_length(void **state)
{
    (void)state;
    enum { PIECES = 1000 };
    static char text[PIECES * 16];
    size_t used = 0;
    for (int i = 0; i < PIECES; i++)
        used += (size_t)sprintf(text + used, "%s%d:%g", i ? "," : "", i, 1.0 / (1 + i));
    const fin_pair pairs[] = {{"lam-schedule", text, NULL},
                              {"steps", "999", NULL},
                              {"runs", "1", NULL},
                              {"log_every", "333", NULL}};
    fin_training *t;
    assert_int_equal(fin_training_create(&t, pairs, 4, NULL, &err), FIN_OK);
    advance(t, 999);
    const double *lam = fin_train_named(fin_training_runs(t), "lam").data;
    assert_true(lam[1] == strtod("0.003003", NULL)); /* 1/333 as %g has it: of the last step made */
    kept all = keep(t);
    fin_training *again =
        resumed(&(fin_training_source){.arrays = all.arrays, .count = all.count}, -1);
    assert_int_equal(fin_training_get(again).lam.count, PIECES);
    drop(&all);
    fin_training_destroy(again);
    fin_training_destroy(t);
}

/* ---- starts ----------------------------------------------------------------------------------- */

static void start__vectors_and_directions(void **state)
{
    (void)state;
    static const double k[] = {3, 4, 0}, v[] = {0, 0, 2}, k_star[] = {1, 0, 0},
                        v_star[] = {0, 1, 0};
    static const char text[] = "init=vectors d=3 L=3 runs=2 steps=5";
    const int64_t shape[] = {3};
    fin_npz_writer *npz;
    fin_training_start start = {.count = 1, .k = k, .v = v, .k_star = k_star, .v_star = v_star};
    fin_training *t = made(text, &start), *same;
    advance(t, 0);
    const double *kappa = fin_train_named(fin_training_runs(t), "kappa").data;
    assert_true(fabs(kappa[0] - 0.6) < 1e-15);
    assert_int_equal(fin_npz_create(in_folder("start.npz"), &npz, &err), FIN_OK);
    fin_npz_add(npz, "k", FIN_F64, 1, shape, k, NULL);
    fin_npz_add(npz, "v", FIN_F64, 1, shape, v, NULL);
    fin_npz_add(npz, "k_star", FIN_F64, 1, shape, k_star, NULL);
    fin_npz_add(npz, "v_star", FIN_F64, 1, shape, v_star, NULL);
    assert_int_equal(fin_npz_commit(npz, NULL, &err), FIN_OK);
    same = made(text, &(fin_training_start){.path = in_folder("start.npz")});
    advance(same, 0);
    kept a = keep(t), b = keep(same);
    expect_same(&a, &b);
    drop(&a);
    drop(&b);
    fin_training_destroy(t);
    fin_training_destroy(same);
    start.v_star = NULL;
    assert_int_equal(make(&t, text, &start, &err), FIN_ERR_ARGUMENT);
    assert_null(t);
    assert_int_equal(make(&t, text, NULL, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "needs the vectors k and v"));
    start.v_star = v_star;
    assert_int_equal(make(&t, "d=3 L=3 runs=2 steps=5", &start, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "init = vectors"));
    assert_int_equal(make(&t, text, &(fin_training_start){.path = in_folder("none.npz")}, &err),
                     FIN_ERR_IO);
}

static void start__overlaps_of_every_run(void **state)
{
    (void)state;
    const fin_overlaps points[2] = {{.kappa = 0.1, .nu = 0.2}, {.kappa = -0.3, .nu = 0.4}};
    const fin_training_start start = {.count = 2, .overlaps = points};
    fin_training *t = made("init=overlaps runs=2 steps=5 log_every=5", &start);
    advance(t, 0);
    const double *kappa = fin_train_named(fin_training_runs(t), "kappa").data;
    assert_true(kappa[0] == 0.1 && kappa[2] == -0.3);
    assert_true(fin_training_get(t).overlaps->nu == 0.2);
    fin_training_destroy(t);
    assert_int_equal(make(&t, "runs=2 steps=5", &start, &err), FIN_ERR_ARGUMENT);
}

/* A task with a seed of its own: other samples, and no file, which has one seed. */
static void start__seed_of_the_task(void **state)
{
    (void)state;
    static const char text[] = "engine=ambient d=8 L=3 runs=2 steps=10 log_every=5";
    uint64_t seed = 77;
    fin_training *own = made(text, &(fin_training_start){.seed = &seed}), *plain = made(text, NULL);
    advance(own, 10);
    advance(plain, 10);
    kept a = keep(own), b = keep(plain);
    assert_memory_not_equal(a.arrays[2].data, b.arrays[2].data, bytes_of(&a.arrays[2]));
    fin_training *again =
        resumed(&(fin_training_source){.arrays = a.arrays, .count = a.count, .seed = &seed}, -1);
    kept c = keep(again);
    expect_same(&a, &c);
    assert_int_equal(fin_training_write(own, in_folder("own.npz"), &err), FIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "one seed"));
    assert_int_equal(fin_training_write(plain, in_folder("own.npz"), &err), FIN_OK);
    drop(&a);
    drop(&b);
    drop(&c);
    fin_training_destroy(own);
    fin_training_destroy(plain);
    fin_training_destroy(again);
}

/* ---- what is refused -------------------------------------------------------------------------- */

static void create__refuses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *part;
    } wrong[] = {
        {"momentun=0.5", "did you mean"},
        {"task=slt", "there is no task"},
        {"kappa=0.5", "init = overlaps"},
        {"lam=0.3 lam_schedule=0:1", "takes the place of lam"},
        {"alpha=0.3 alpha_schedule=0:1", "takes the place of alpha"},
        {"L=5 lengths=5:1", "takes the place of L"},
        {"L=10 lengths=5:1", "takes the place of L"}, /* the default, but given */
        {"lam=0.1 lam_schedule=0:1", "takes the place of lam"},
        {"log_every=auto log_decade=5", "log_decade takes the place of log_every"},
        {"kappa=1", "kappa is where runs start with init = overlaps"},
        {"lam_schedule=5:1", "begin with 0"},
        {"lam_schedule=0:x", "0:1,1000:0.5"},
        {"lengths=5", "LENGTH:WEIGHT"},
        {"init=overlaps kappa=0.9 eta=0.9", "no unit vectors"},
        {"runs=0", "runs = 0"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fin_training *t;
        err = (fin_error){FIN_OK, ""};
        assert_int_equal(make(&t, wrong[i].text, NULL, &err), FIN_ERR_ARGUMENT);
        assert_null(t);
        if (!strstr(err.message, wrong[i].part))
            fail_msg("'%s' does not say '%s'", err.message, wrong[i].part);
    }
    fin_training_destroy(NULL);
}

/* Settings with a line in the place of another, behind all of them, or none of them. */
static void resume__hostile_settings(void **state)
{
    (void)state;
    static const struct {
        const char *old, *new, *part;
    } wrong[] = {
        {"", "", "line 1"},
        {"finetti ", "task ", "twice"},
        {"task slr\n", "", "line 2"},
        {"task slr", "task nonsense", "no task"},
        {"form erf", "form nonsense", "no form"},
        {"alpha 0.004\n", "", "no alpha"},
        {"alpha 0.004", "alpha nan", "alpha"},
        {"alpha 0.004", "alpha", "without a value"},
        {"alpha 0.004", "alpha 0.004\nalpha 0.1", "twice"},
        {"log_every", "log-every", "no log_every"},
        {"alpha 0.004", "alpha 0.004\ncolour red", "colour"},
        {"alpha 0.004", "alpha 0.004\nlam_schedule 3:1", "begin with 0"},
        {"runs 3", "runs 16777216", "array at has 3 numbers"},
        {"runs 3", "runs 2", "array at has 3 numbers"},
        {"init sphere", "init vectors", "k_star"},
        {"init sphere", "init overlaps", "no kappa"},
        {"population", "ambient", "k_star"},
        {"momentum 0", "momentum 0.5", "state"},
    };
    fin_training *t = made("runs=3 steps=20 log_every=10", NULL), *none;
    advance(t, 20);
    kept k = keep(t);
    fin_training_source source = {.arrays = k.arrays, .count = k.count};
    const char *text = k.arrays[0].data;
    size_t size = (size_t)k.arrays[0].shape[0];
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char other[4096], whole[4096];
        snprintf(whole, sizeof whole, "%.*s", (int)size, text);
        const char *at = strstr(whole, wrong[i].old);
        assert_non_null(at);
        snprintf(other, sizeof other, "%.*s%s%s", (int)(at - whole), whole, wrong[i].new,
                 *wrong[i].old ? at + strlen(wrong[i].old) : "");
        k.arrays[0].data = other;
        k.arrays[0].shape[0] = (int64_t)strlen(other);
        err = (fin_error){FIN_OK, ""};
        assert_int_equal(fin_training_resume(&none, &source, -1, &err), FIN_ERR_FORMAT);
        assert_null(none);
        if (!strstr(err.message, wrong[i].part))
            fail_msg("'%s' does not say '%s'", err.message, wrong[i].part);
    }
    char lines[1024];
    memset(lines, '\n', sizeof lines);
    k.arrays[0].data = lines;
    k.arrays[0].shape[0] = sizeof lines;
    assert_int_equal(fin_training_resume(&none, &source, -1, &err), FIN_ERR_FORMAT);
    for (size_t i = 0; i < sizeof lines / 2; i++)
        memcpy(lines + 2 * i, (char[]){(char)('a' + i % 26), '\n'}, 2);
    assert_int_equal(fin_training_resume(&none, &source, -1, &err), FIN_ERR_FORMAT);
    lines[17] = '\0';
    assert_int_equal(fin_training_resume(&none, &source, -1, &err), FIN_ERR_FORMAT);
    assert_non_null(strstr(err.message, "not text"));
    assert_int_equal(fin_training_resume(&none, &(fin_training_source){.count = 0}, -1, &err),
                     FIN_ERR_FORMAT);
    assert_non_null(strstr(err.message, "no array settings"));
    assert_int_equal(fin_training_resume(&none, &(fin_training_source){.count = 0}, -1, NULL),
                     FIN_ERR_FORMAT);
    k.arrays[0].data = text;
    drop(&k);
    fin_training_destroy(t);
}

/* A file of another version is read, and says so. */
static void resume__other_version(void **state)
{
    (void)state;
    fin_training *t = made("runs=1 steps=2", NULL);
    kept k = keep(t);
    char other[4096];
    const char *rest = memchr(k.arrays[0].data, '\n', (size_t)k.arrays[0].shape[0]);
    assert_non_null(rest);
    size_t left = (size_t)k.arrays[0].shape[0] - (size_t)(rest - (const char *)k.arrays[0].data);
    snprintf(other, sizeof other, "finetti 99.0%.*s", (int)left, rest);
    const void *own = k.arrays[0].data;
    k.arrays[0].data = other;
    k.arrays[0].shape[0] = (int64_t)strlen(other);
    fin_training *again = resumed(&(fin_training_source){.arrays = k.arrays, .count = k.count}, -1);
    assert_string_equal(fin_training_get(again).version, "99.0");
    k.arrays[0].data = own;
    drop(&k);
    fin_training_destroy(again);
    fin_training_destroy(t);
}

/* ---- what came out ---------------------------------------------------------------------------- */

/* The result is that of the command, number by number. */
static void result__is_that_of_the_command(void **state)
{
    (void)state;
    fin_training *t = made("engine=reduced d=30 L=4 runs=7 steps=50 log_every=10 seed=3", NULL);
    advance(t, 50);
    fin_result *a, *b = run("train engine=reduced d=30 L=4 runs=7 steps=50 log_every=10 seed=3");
    assert_int_equal(fin_training_result(t, NULL, &a, &err), FIN_OK);
    unsigned char *bytes[2];
    size_t size[2];
    fin_result *both[2] = {a, b};
    for (int i = 0; i < 2; i++) {
        fini_done done = {.state = FIN_STATE_DONE, .result = both[i]};
        assert_int_equal(fini_done_pack(&done, &bytes[i], &size[i], &err), FIN_OK);
        fin_result_destroy(both[i]);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    fini_free(bytes[0]);
    fini_free(bytes[1]);
    fin_training_destroy(t);
}

/* The new numbers, by hand from where the runs are. */
static void result__ends_and_intervals(void **state)
{
    (void)state;
    fin_training *t = made("engine=reduced runs=8 d=50 steps=1 alpha=1.2e154 seed=2", NULL);
    advance(t, 1);
    fin_result *r;
    assert_int_equal(fin_training_result(t, NULL, &r, &err), FIN_OK);
    const int64_t *status = series(r, "end_status").data, *step = series(r, "end_step").data;
    const double *risk = numbers(r, "end_risk", 8, 0), *quantiles = numbers(r, "quantiles", 6, 5);
    const double *distance = fin_train_named(fin_training_runs(t), "distance").data;
    int converged = 0, first = -1;
    double farthest = 0;
    for (int i = 0; i < 8; i++) {
        fin_run one;
        assert_int_equal(fin_train_get_run(fin_training_runs(t), i, &one, &err), FIN_OK);
        bool diverged = one.status == FIN_RUN_DIVERGED;
        assert_true(status[i] == (int64_t)one.status && step[i] == one.step);
        assert_true(diverged ? isnan(risk[i]) : risk[i] == one.now.risk);
        converged += one.status == FIN_RUN_CONVERGED;
        first = first < 0 && diverged ? i : first; /* all of them after 0 steps */
        for (int j = 0; j < 2 && !diverged; j++)
            farthest = fmax(farthest, distance[2 * i + j]);
    }
    assert_true(scalar(r, "farthest").value == farthest);
    assert_true(first >= 0 && scalar(r, "first_diverged").value == first);
    assert_true(scalar(r, "first_diverged_step").value == 0);
    assert_true(scalar(r, "least_steps").value == 1 && scalar(r, "most_steps").value == 1);
    fini_interval wilson = fini_wilson(converged, 8);
    assert_true(scalar(r, "share_low").value == wilson.low);
    assert_true(scalar(r, "share_high").value == wilson.high);
    assert_true(scalar(r, "median_abs_kappa").value == quantiles[2]);
    assert_true(scalar(r, "high_excess").value == quantiles[3 * 5 + 4]);
    assert_int_equal(scalar(r, "risk_error").how, FIN_HOW_CLOSED);
    assert_int_equal(fin_training_check(t, &err), FIN_OK);
    fin_curvature c;
    assert_int_equal(fin_training_curvature(t, first, &c, &err), FIN_OK);
    assert_int_equal(c.span_count, 0);
    assert_int_equal(fin_training_curvature(t, 8, &c, &err), FIN_ERR_ARGUMENT);
    fin_result_destroy(r);
    fin_training_destroy(t);
}

/* All of them: still a summary, and a sentence. */
static void result__all_diverged(void **state)
{
    (void)state;
    fin_training *t = made("runs=4 steps=50 alpha=1e300 d=50", NULL);
    advance(t, 50);
    fin_result *r;
    assert_int_equal(fin_training_result(t, NULL, &r, &err), FIN_OK);
    assert_true(scalar(r, "diverged").value == 1 && isnan(scalar(r, "median_risk").value));
    assert_true(isnan(scalar(r, "least_steps").value) && isnan(scalar(r, "farthest").value));
    assert_int_equal(fin_training_check(t, &err), FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "all 4 runs diverged"));
    fin_result_destroy(r);
    fin_training_destroy(t);
}

static void result__risks_that_are_simulated(void **state)
{
    (void)state;
    fin_result *r =
        run("train form=softmax lam=0.1 engine=reduced d=9 L=3 runs=3 steps=4 risk_samples=20");
    fin_scalar error = scalar(r, "risk_error");
    const double *each = numbers(r, "end_risk_error", 3, 0);
    assert_true(error.how == FIN_HOW_SIMULATION && error.samples == 20);
    assert_true(error.value == fmax(each[0], fmax(each[1], each[2])) && error.value > 0);
    fin_result_destroy(r);
}

/* Overlaps that no vectors have, as a log that somebody has harmed may say, are told of; that there is no exact risk to judge
 * steps by is not. */
static void steps__that_cannot_be_judged(void **state)
{
    (void)state;
    fin_training *t = made("engine=reduced runs=2 steps=2 d=5 L=3", NULL);
    advance(t, 2);
    assert_int_equal(fin_training_check_step(t, &err), FIN_OK);
    const size_t harmed[] = {offsetof(fin_train_point, kappa), offsetof(fin_train_point, eta)};
    for (int j = 0; j < 2; j++)
        t->train->log[harmed[j] / sizeof(double)][2 * t->train->logs - 1] = 0.9;
    assert_int_equal(fin_training_check_step(t, &err), FIN_ERR_ARGUMENT);
    assert_true(strstr(err.message, "steps are too long where run 1 is: no unit vectors") != NULL);
    fin_training_destroy(t);
    t = made("engine=ambient runs=2 steps=2 d=5 L=3 form=softplus", NULL);
    advance(t, 2);
    assert_int_equal(fin_training_check_step(t, &err), FIN_OK);
    fin_training_destroy(t);
}

/* ---- faults ----------------------------------------------------------------------------------- */

static fin_status once(void *user, fin_error *error)
{
    const char *path = user;
    fin_training *t, *again = NULL;
    fin_result *r = NULL;
    fin_status status =
        make(&t, "engine=ambient runs=2 steps=2 d=5 L=3 lam_schedule=0:1,1:2", NULL, error);
    if (!status)
        status = fin_train_run(fin_training_runs(t), 1, NULL, error);
    if (!status)
        status = fin_training_write(t, path, error);
    if (!status)
        status = fin_training_resume(&again, &(fin_training_source){.path = path}, -1, error);
    if (!status)
        status = fin_train_run(fin_training_runs(again), 2, NULL, error);
    if (!status)
        status = fin_training_result(again, NULL, &r, error);
    fin_result_destroy(r);
    fin_training_destroy(again);
    fin_training_destroy(t);
    return status;
}

static void all__every_allocation_may_fail(void **state)
{
    (void)state;
    char path[600];
    snprintf(path, sizeof path, "%s", in_folder("fault.npz"));
    fin_threads_set(1);
    assert_true(fault_every(once, path) > 20);
    fin_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resume__same_bytes),
        cmocka_unit_test(resume__more_steps),
        cmocka_unit_test(settings__as_text),
        cmocka_unit_test(lists__of_any_length),
        cmocka_unit_test(start__vectors_and_directions),
        cmocka_unit_test(start__overlaps_of_every_run),
        cmocka_unit_test(start__seed_of_the_task),
        cmocka_unit_test(create__refuses),
        cmocka_unit_test(resume__hostile_settings),
        cmocka_unit_test(resume__other_version),
        cmocka_unit_test(result__is_that_of_the_command),
        cmocka_unit_test(result__ends_and_intervals),
        cmocka_unit_test(result__all_diverged),
        cmocka_unit_test(result__risks_that_are_simulated),
        cmocka_unit_test(steps__that_cannot_be_judged),
        cmocka_unit_test(all__every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
