/* Runs of a study: the settings of a command, canonical JSON, hashes, the values of axes. */
#include "test_json.h"

#include "fault.h"
#include "study/read.h"

#include <math.h>
#include <pthread.h>

static fin_error err;

/* ---- a command of our own ----------------------------------------------------------------------- */

#define TOY_FIELDS(F, C)                                                                           \
    F(int64_t, n, 3, 1, INT64_C(1) << 62, "a whole number")                                        \
    F(int64_t, n_auto, FIN_AUTO_INT, 1, 10, "a whole number or auto")                              \
    F(double, x, 0.1, -1e300, 1e300, "a number")                                                   \
    F(double, y, FIN_AUTO, 0, INFINITY, "a number or auto")                                        \
    C(pick, 1, "red|green", "a choice")
typedef struct toy_settings {
    TOY_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} toy_settings;
#define FIN_TABLE_STRUCT toy_settings
FIN_TABLE(static, toy_table, "toy", TOY_FIELDS);
#undef FIN_TABLE_STRUCT

#define EXTRA_FIELDS(F, C)                                                                         \
    F(double, deep_water, 2, 0, 10, "only with mood = wet")                                        \
    F(int64_t, n, 3, 1, 100, "known to both tables")
typedef struct extra_settings {
    EXTRA_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} extra_settings;
#define FIN_TABLE_STRUCT extra_settings
FIN_TABLE(static, extra_table, "extra", EXTRA_FIELDS);
#undef FIN_TABLE_STRUCT

typedef struct toy {
    char mood[8], other[16];
    toy_settings toy;
    extra_settings extra;
} toy;

static fin_status toy_groups(void *values, fin_group groups[FIN_GROUPS], int *count, fin_error *e)
{
    toy *t = values;
    groups[(*count)++] = (fin_group){&toy_table, &t->toy};
    if (strcmp(t->mood, "wet") == 0)
        groups[(*count)++] = (fin_group){&extra_table, &t->extra};
    else if (strcmp(t->mood, "dry") != 0)
        return fini_fail(e, FIN_ERR_ARGUMENT, "mood '%s' must be dry or wet", t->mood);
    return FIN_OK;
}

static fin_status toy_check(const void *values, fin_error *e)
{
    const toy *t = values;
    return t->toy.n == 13 ? fini_fail(e, FIN_ERR_ARGUMENT, "n = 13 brings bad luck") : FIN_OK;
}

static const fin_word toy_words[] = {FIN_WORD("mood", toy, mood, "dry", "dry or wet"),
                                     FIN_WORD("other", toy, other, "", "anything"), FIN_WORDS_END};
static const fin_command toy_job = {.name = "toy",
                                    .revision = 4,
                                    .size = sizeof(toy),
                                    .words = toy_words,
                                    .groups = toy_groups,
                                    .check = toy_check};

static toy values;

static const char *text_of(const fin_pair *pairs, int count)
{
    static char text[1024];
    int bad = -2;
    assert_ok(fin_command_apply(&toy_job, &values, pairs, count, &bad, &err));
    assert_int_equal(bad, -1);
    assert_ok(fin_command_text(&toy_job, &values, text, sizeof text, &err));
    return text;
}

static void job__text_is_canonical(void **state)
{
    (void)state;
    assert_string_equal(
        text_of(NULL, 0),
        "{\"command\":\"toy\",\"revision\":4,\"settings\":{\"mood\":\"dry\",\"n\":3,"
        "\"n_auto\":\"auto\",\"other\":\"\",\"pick\":\"green\",\"x\":0.1,"
        "\"y\":\"auto\"}}");
    const fin_pair pairs[] = {{"x", "1e5", NULL},           {"deep-water", "0.30", NULL},
                              {"mood", "wet", NULL},        {"n-auto", "7", NULL},
                              {"y", "inf", NULL},           {"pick", "RED", NULL},
                              {"other", "a\"b\\c\t", NULL}, {"n", "9", NULL}};
    const char *expected = "{\"command\":\"toy\",\"revision\":4,\"settings\":{\"deep_water\":0.3,"
                           "\"mood\":\"wet\",\"n\":9,\"n_auto\":7,\"other\":\"a\\\"b\\\\c\\u0009\","
                           "\"pick\":\"red\",\"x\":100000,\"y\":\"inf\"}}";
    assert_string_equal(text_of(pairs, 8), expected);
    assert_int_equal(values.extra.n, 9); /* both tables */
    assert_int_equal(values.toy.n, 9);
    /* The order of pairs does not matter, and the last of two wins. */
    fin_pair turned[9] = {{"n", "2", NULL}};
    for (int i = 0; i < 8; i++)
        turned[i + 1] = pairs[7 - i];
    assert_string_equal(text_of(turned, 9), expected);
}

/* Different texts of one number are one run. */
static void job__text_of_numbers(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"1e9", "1000000000"},
                                           {".5", "0.5"},
                                           {"5.00", "5"},
                                           {"-0", "0"},
                                           {"1e-7", "1e-07"},
                                           {"0.1000000000000000055", "0.1"},
                                           {"0.30000000000000004", "0.30000000000000004"},
                                           {"1e22", "1e+22"},
                                           {"123456789012345678", "1.2345678901234568e+17"},
                                           {"0.70710678118654757", "0.7071067811865476"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *json = text_of(&(fin_pair){"x", cases[i][0], NULL}, 1);
        assert_string_equal(json_setting(json, "x"), cases[i][1]);
    }
    const char *json = text_of(&(fin_pair){"n", "4611686018427387904", NULL}, 1);
    assert_string_equal(json_setting(json, "n"), "4611686018427387904");
}

static void shortest__reads_back(void **state)
{
    (void)state;
    uint64_t seed = 99;
    for (int i = 0; i < 200000; i++) {
        char text[FINI_SHORTEST];
        double x, back;
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        if (i % 2)
            x = (double)(seed >> 40) / 1000; /* short decimals */
        else
            memcpy(&x, &seed, sizeof x);
        if (!isfinite(x))
            continue;
        size_t length = fini_shortest(x, text);
        if (length != strlen(text) || !fini_read_number(text, &back) || back != x ||
            (i % 2 && length > 10))
            fail_msg("%.17g became %s", x, text);
    }
}

static void job__blames_the_pair(void **state)
{
    (void)state;
    static const struct {
        fin_pair pairs[3];
        int count, bad;
        const char *part;
    } cases[] = {
        {{{"n", "2", NULL}, {"xx", "1", NULL}}, 2, 1, "toy has no setting 'xx'; did you mean 'x'?"},
        {{{"qqqqqq", "1", NULL}}, 1, 0, "finetti help toy"},
        {{{"n", "two", NULL}, {"x", "1", NULL}}, 2, 0, "n = 'two'"},
        {{{"n", "0", NULL}}, 1, 0, "n = 0"},
        {{{"n", "13", NULL}}, 1, -1, "bad luck"},
        {{{"other", "x", NULL}, {"mood", "damp", NULL}}, 2, 1, "must be dry or wet"},
        {{{"mood", "wettest!", NULL}}, 1, 0, "mood has 8 letters; it may have at most 7"},
        {{{"deep_water", "1", NULL}}, 1, 0, "has no setting 'deep_water'"},
        {{{"mood", "wet", NULL}, {"deepwater", "1", NULL}}, 2, 1, "did you mean 'deep_water'?"},
        {{{"mood", "wet", NULL}, {"n", "101", NULL}}, 2, 1, "extra: n = 101"},
        {{{"x", "nan", NULL}}, 1, 0, "x = nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int bad = -2;
        fin_status status =
            fin_command_apply(&toy_job, &values, cases[i].pairs, cases[i].count, &bad, &err);
        if (status != FIN_ERR_ARGUMENT || bad != cases[i].bad ||
            !strstr(err.message, cases[i].part))
            fail_msg("case %zu: status %d, pair %d, %s", i, status, bad, err.message);
        assert_int_equal(
            fin_command_apply(&toy_job, &values, cases[i].pairs, cases[i].count, NULL, NULL),
            status);
    }
}

static void job__text_must_fit(void **state)
{
    (void)state;
    char text[1024];
    size_t size = strlen(text_of(NULL, 0));
    assert_int_equal(fin_command_text(&toy_job, &values, text, size, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_command_text(&toy_job, &values, text, 3, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_command_text(&toy_job, &values, text, 0, &err), FIN_ERR_ARGUMENT);
    assert_ok(fin_command_text(&toy_job, &values, text, size + 1, &err));
}

static void hash__known_answers(void **state)
{
    (void)state;
    /* As the project xxHash publishes them. */
    static const char *const cases[][2] = {
        {"", "99aa06d3014798d86001c324468d497f"},
        {"a", "a96faf705af16834e6c632b61e964e1f"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char hash[FIN_HASH_TEXT];
        fini_hash(cases[i][0], hash);
        assert_string_equal(hash, cases[i][1]);
    }
}

/* What is its own, put over the settings of another run, gives all settings of a run. */
static void difference__over_the_base_is_the_whole(void **state)
{
    (void)state;
    static const fin_pair cases[][2] = {
        {{"x", "0.1", NULL}, {"n", "3", NULL}},
        {{"x", "1e-7", NULL}, {"pick", "red", NULL}},
        {{"y", "inf", NULL}, {"n_auto", "7", NULL}},
        {{"y", "auto", NULL}, {"x", "-0", NULL}},
        {{"n", "4611686018427387904", NULL}, {"x", "0.30000000000000004", NULL}},
        {{"n", "9007199254740992", NULL}, {"x", "0.3", NULL}},
        {{"mood", "wet", NULL}, {"other", "a\"b\\c\t", NULL}},
        {{"mood", "wet", NULL}, {"deep-water", "0.5", NULL}}};
    enum { CASES = sizeof cases / sizeof *cases, WET = CASES - 2 };
    toy given[CASES];
    char texts[CASES][1024], own[1024];
    sqlite3 *db;
    sqlite3_stmt *patch;
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, "SELECT json_patch(?1, ?2)", -1, &patch, NULL),
                     SQLITE_OK);
    for (int i = 0; i < CASES; i++) {
        assert_ok(fin_command_apply(&toy_job, &given[i], cases[i], 2, NULL, &err));
        assert_ok(fin_command_text(&toy_job, &given[i], texts[i], sizeof texts[i], &err));
    }
    for (int i = 0; i < CASES; i++)
        for (int k = 0; k < CASES; k++) {
            bool said = fini_command_difference(&toy_job, &given[i], &given[k], own, sizeof own);
            assert_int_equal(said, (i < WET) == (k < WET)); /* the others have a setting more */
            if (!said)
                continue;
            assert_true((strcmp(own, "{}") == 0) == (strcmp(texts[i], texts[k]) == 0));
            sqlite3_bind_text(patch, 1, texts[i], -1, SQLITE_STATIC);
            sqlite3_bind_text(patch, 2, own, -1, SQLITE_STATIC);
            assert_int_equal(sqlite3_step(patch), SQLITE_ROW);
            assert_string_equal((const char *)sqlite3_column_text(patch, 0), texts[k]);
            sqlite3_reset(patch);
        }
    assert_false(fini_command_difference(&toy_job, &given[0], &given[4], own, 20));
    sqlite3_finalize(patch);
    sqlite3_close(db);
}

/* ---- axes ----------------------------------------------------------------------------------- */

static fin_study *study_of(const char *block)
{
    char text[1000];
    fin_study *study = NULL;
    snprintf(text, sizeof text, "study: s\nruns:\n  - {command: risk, %s}\n", block);
    if (fin_study_parse(text, strlen(text), "f", NULL, &study, &err))
        fail_msg("%s: %s", block, err.message);
    return study;
}

/* "1 2 3": the values of the first axis. */
static const char *axis_of(const char *block)
{
    static char text[4000];
    fin_study *study = study_of(block);
    const fini_axis *axis = &study->blocks[0].axes[0];
    size_t used = 0;
    text[0] = '\0';
    for (int64_t i = 0; i < axis->count && used < sizeof text - 40; i++)
        used +=
            (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? " " : "", axis->texts[i]);
    fin_study_destroy(study);
    return text;
}

static void axes__values(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"axes: {lam: [1, 0.50, 2e0]}", "1 0.50 2e0"},
        {"axes: {lam: {from: 0.1, to: 0.9, count: 9}}", "0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9"},
        {"axes: {kappa: {from: -0.3, to: 0.6, count: 10}}",
         "-0.3 -0.2 -0.1 0 0.1 0.2 0.3 0.4 0.5 0.6"},
        {"axes: {lam: {from: 3, to: 1, count: 3, spacing: linear}}", "3 2 1"},
        {"axes: {lam: {from: 0.01, to: 100, count: 5, spacing: log}}", "0.01 0.1 1 10 100"},
        {"axes: {lam: {from: 0.1234567890123456, to: 2, count: 2}}", "0.1234567890123456 2"},
        {"axes: {lam: {from: 0, to: 1, count: 4}}", "0 0.333333333333 0.666666666667 1"},
        {"axes: {L: {from: 1, to: 10, count: 4}}", "1 4 7 10"},
        {"axes: {L: {from: 1, to: 4, count: 7}}", "1 2 3 4"},
        {"axes: {L: {from: 2, to: 1000, count: 4, spacing: log}}", "2 16 126 1000"},
        {"axes: {d: {from: 1e15, to: 2, count: 2}}", "1000000000000000 2"},
        {"seeds: 4", "1 2 3 4"},
        {"seeds: [7, 9]", "7 9"},
        {"axes: {form: [erf, softmax]}", "erf softmax"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(axis_of(cases[i][0]), cases[i][1]);
}

/* Numbers that must not change: runs in old stores are known by them. */
static void draws__known_answers(void **state)
{
    (void)state;
    assert_string_equal(axis_of("draws: 3, axes: {kappa: {uniform: [0, 1]}}"),
                        "0.968090441693 0.565073013824 0.814517458363");
    assert_string_equal(axis_of("draws: 3, seed: 7, axes: {kappa: {uniform: [0, 1]}}"),
                        "0.678085540049 0.580029730851 0.746074828043");
    assert_string_equal(axis_of("draws: 3, axes: {lam: {loguniform: [0.01, 3]}}"),
                        "0.017814963759 0.0128978277848 0.271010576029");
    assert_string_equal(axis_of("draws: 3, axes: {lam: {normal: [5, 0.5]}}"),
                        "5.59645791065 5.44234645495 4.16135502587");
    assert_string_equal(axis_of("draws: 6, axes: {L: {integers: [2, 5]}}"), "3 2 5 3 3 3");
    assert_string_equal(axis_of("draws: 4, axes: {form: {choice: [erf, softmax, linear]}}"),
                        "linear softmax erf erf");
    assert_string_equal(axis_of("draws: 3, axes: {L: {uniform: [2, 90]}}"), "37 75 39");
}

/* Rounding to 12 digits does not leave the interval. */
static void draws__stay_inside(void **state)
{
    (void)state;
    assert_string_equal(
        axis_of("draws: 2, axes: {lam: {uniform: [0.1234567890123456, 0.1234567890123459]}}"),
        "0.1234567890123456 0.1234567890123456");
}

/* Draw i depends on seed, name and i alone. */
static void draws__do_not_depend_on_others(void **state)
{
    (void)state;
    char few[200], alone[4000];
    snprintf(few, sizeof few, "%s", axis_of("draws: 5, axes: {lam: {uniform: [0, 1]}}"));
    snprintf(alone, sizeof alone, "%s", axis_of("draws: 50, axes: {lam: {uniform: [0, 1]}}"));
    assert_memory_equal(few, alone, strlen(few));
    assert_string_equal(axis_of("draws: 50, axes: {lam: {uniform: [0, 1]}, L: [2, 3], kappa: "
                                "{uniform: [0, 1]}}, seeds: 3"),
                        alone);
    assert_string_not_equal(axis_of("draws: 50, axes: {kappa: {uniform: [0, 1]}}"), alone);
    assert_string_not_equal(axis_of("draws: 50, seed: 2, axes: {lam: {uniform: [0, 1]}}"), alone);
    char dash[4000];
    snprintf(dash, sizeof dash, "%s", axis_of("draws: 9, axes: {L-min: {integers: [1, 10]}}"));
    assert_string_equal(axis_of("draws: 9, axes: {L_min: {integers: [1, 10]}}"), dash);
}

/* Means of 20000 draws against their laws, at five standard errors. */
static void draws__follow_their_laws(void **state)
{
    (void)state;
    enum { N = 20000 };
    static const struct {
        const char *axis;
        double mean, sd, low, high;
    } laws[] = {
        {"lam: {uniform: [2, 4]}", 3, 0.57735026919, 2, 4},
        {"lam: {loguniform: [1, 7.38905609893065]}", 3.1945280494653, 1.7698, 1, 7.389056098931},
        {"lam: {normal: [9, 1]}", 9, 1, 0, 20},
        {"L: {integers: [1, 9]}", 5, 2.58198889747, 1, 9},
        {"L: {choice: [1, 3]}", 2, 1, 1, 3},
    };
    for (size_t k = 0; k < sizeof laws / sizeof *laws; k++) {
        char block[200];
        double sum = 0;
        snprintf(block, sizeof block, "draws: %d, axes: {%s}", (int)N, laws[k].axis);
        fin_study *study = study_of(block);
        const fini_axis *axis = &study->blocks[0].axes[0];
        assert_int_equal(fin_study_run_count(study), N);
        for (int i = 0; i < N; i++) {
            double x = NAN;
            assert_true(fini_read_number(axis->texts[i], &x));
            if (!(x >= laws[k].low && x <= laws[k].high))
                fail_msg("%s: %s", laws[k].axis, axis->texts[i]);
            sum += x;
        }
        double z = (sum / N - laws[k].mean) / (laws[k].sd / sqrt(N));
        printf("%s: z = %.2f\n", laws[k].axis, z);
        assert_true(fabs(z) < 5);
        fin_study_destroy(study);
    }
}

/* ---- positions ------------------------------------------------------------------------------ */

static void assert_settings(const fin_study *study, int64_t i, const char *expected)
{
    static fin_plan plan;
    char text[200] = "", copy[200], *name;
    assert_ok(fin_study_get_run(study, i, &plan, &err));
    snprintf(copy, sizeof copy, "%s", expected);
    for (char *p = copy; (name = strtok(p, " ")); p = NULL) {
        char *equal = strchr(name, '=');
        *equal = '\0';
        const char *found = json_setting(plan.settings, name);
        assert_non_null(found);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s=%s", p ? "" : " ", name,
                 found);
    }
    assert_string_equal(text, expected);
}

static void plan__last_axis_moves_fastest(void **state)
{
    (void)state;
    fin_study *study = study_of("draws: 2, axes: {L: [2, 3], kappa: {uniform: [0, 1]}, d: [10, 11, "
                                "12]}, seeds: 2");
    assert_int_equal(fin_study_run_count(study), 24);
    assert_settings(study, 0, "L=2 d=10 seed=1 kappa=0.968090441693");
    assert_settings(study, 1, "L=2 d=10 seed=2");
    assert_settings(study, 2, "L=2 d=11 seed=1");
    assert_settings(study, 6, "L=3 d=10 seed=1");
    assert_settings(study, 11, "L=3 d=12 seed=2 kappa=0.968090441693");
    assert_settings(study, 12, "L=2 d=10 seed=1 kappa=0.565073013824"); /* the second draw */
    assert_settings(study, 23, "L=3 d=12 seed=2 kappa=0.565073013824");
    fin_plan plan;
    assert_int_equal(fin_study_get_run(study, 24, &plan, &err), FIN_ERR_ARGUMENT);
    assert_message(&err, "has no run 24; it has runs 0 to 23");
    assert_int_equal(fin_study_get_run(study, -1, &plan, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_study_get_run(study, -1, &plan, NULL), FIN_ERR_ARGUMENT);
    fin_study_destroy(study);
}

static void plan__block_of_a_run(void **state)
{
    (void)state;
    static const char text[] = "study: s\n"
                               "runs:\n"
                               "  - {id: a, command: risk}\n"
                               "  - {id: b, command: risk, axes: {L: [2, 3, 4]}}\n"
                               "  - {id: c, command: risk, seeds: 2}\n";
    fin_study *study;
    assert_ok(fin_study_parse(text, strlen(text), "f", NULL, &study, &err));
    for (int64_t i = 0; i < 6; i++) {
        char id[2] = {"abbbcc"[i], '\0'};
        assert_string_equal(fini_study_block_at(study, i)->id, id);
    }
    fin_study_destroy(study);
}

/* What does not fit together is blamed on --set, else on the last one without which it would. */
static void job__blames_what_does_not_fit(void **state)
{
    (void)state;
    const fini_node file = {.line = 3}, change = {.line = -1};
    const fin_command *risk = fin_command_find("risk");
    void *scratch = malloc(risk->size);
    fin_pair pairs[] = {{"lam", "0.2", &file}, {"L", "4", &file}, {"L_min", "5", &file}};
    assert_int_equal(fini_command_blame(risk, scratch, pairs, 3), 2);
    pairs[1].mark = &change;
    assert_int_equal(fini_command_blame(risk, scratch, pairs, 3), 1);
    pairs[0] = (fin_pair){"show", "nothing", &file}; /* two mistakes: neither alone */
    assert_int_equal(fini_command_blame(risk, scratch, pairs, 3), -1);
    free(scratch);
}

static void plan__describes_the_run(void **state)
{
    (void)state;
    fin_study *study = study_of("id: b, axes: {L: [2, 3]}");
    fin_plan plan;
    char hash[FIN_HASH_TEXT];
    assert_ok(fin_study_get_run(study, 1, &plan, &err));
    assert_string_equal(plan.block, "b");
    assert_string_equal(plan.command, "risk");
    fini_hash(plan.settings, hash);
    assert_string_equal(plan.hash, hash);
    assert_ok(fin_study_get_run(study, 0, &plan, &err));
    assert_string_not_equal(plan.hash, hash);
    const fin_command *command = study->blocks[0].command;
    void *run = malloc(command->size);
    char text[FIN_SETTINGS_TEXT];
    assert_ok(fini_study_settings(study, 0, run, &err));
    assert_ok(fin_command_text(command, run, text, sizeof text, &err));
    assert_string_equal(text, plan.settings);
    free(run);
    fin_study_destroy(study);
}

/* What fails only together is no mistake of the file, but told for that run. */
static void plan__combinations_fail_alone(void **state)
{
    (void)state;
    fin_study *study = study_of("id: b, axes: {L_min: [1, 20], L: [10, 30]}");
    static fin_plan plan;
    assert_ok(fin_study_get_run(study, 1, &plan, &err));
    assert_ok(fin_study_get_run(study, 3, &plan, &err));
    assert_ok(
        fin_study_get_run(study, 2, &plan, &err)); /* it will fail, and be known by its hash */
    void *run = malloc(study->blocks[0].command->size);
    assert_non_null(run);
    assert_int_equal(fini_study_settings(study, 2, run, &err), FIN_ERR_ARGUMENT);
    free(run);
    assert_message(&err, "f: run 3 of block 'b': ");
    assert_message(&err, "L_min = 20 is above L = 10");
    fin_study_destroy(study);
}

enum { THREADS = 4, RUNS = 3000 };
static const fin_study *shared;
static char hashes[THREADS][RUNS][FIN_HASH_TEXT];

static void *plan_all(void *user)
{
    char(*out)[FIN_HASH_TEXT] = user;
    fin_plan plan;
    for (int64_t i = 0; i < RUNS; i++) {
        if (fin_study_get_run(shared, i, &plan, NULL))
            return "failed";
        memcpy(out[i], plan.hash, FIN_HASH_TEXT);
    }
    return NULL;
}

static void plan__threads_share_a_study(void **state)
{
    (void)state;
    fin_study *study = study_of("draws: 1000, axes: {lam: {uniform: [0, 1]}, L: [2, 3, 4]}");
    pthread_t threads[THREADS];
    shared = study;
    for (int t = 0; t < THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, plan_all, hashes[t]), 0);
    for (int t = 0; t < THREADS; t++) {
        void *failed;
        assert_int_equal(pthread_join(threads[t], &failed), 0);
        assert_null(failed);
        assert_memory_equal(hashes[t], hashes[0], sizeof hashes[0]);
    }
    fin_study_destroy(study);
}

static fin_status plan_once(void *user, fin_error *e)
{
    fin_study *study;
    fin_status status = fin_study_parse(user, strlen(user), "f", NULL, &study, e);
    if (status)
        return status;
    fin_plan plan;
    for (int64_t i = 0; i < fin_study_run_count(study) && !status; i++)
        status = fin_study_get_run(study, i, &plan, e);
    fin_study_destroy(study);
    return status;
}

static void plan__survives_allocation_faults(void **state)
{
    (void)state;
    char text[] =
        "study: s\nruns:\n  - {command: risk, axes: {L: [2, 3], lam: {from: 1, to: 2, "
        "count: 2}, kappa: {uniform: [0, 1]}, d: {choice: [5, 6]}}, draws: 2, seeds: 2}\n";
    assert_true(fault_every(plan_once, text) >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(job__text_is_canonical),
        cmocka_unit_test(job__text_of_numbers),
        cmocka_unit_test(shortest__reads_back),
        cmocka_unit_test(job__blames_the_pair),
        cmocka_unit_test(job__text_must_fit),
        cmocka_unit_test(hash__known_answers),
        cmocka_unit_test(difference__over_the_base_is_the_whole),
        cmocka_unit_test(axes__values),
        cmocka_unit_test(draws__known_answers),
        cmocka_unit_test(draws__stay_inside),
        cmocka_unit_test(draws__do_not_depend_on_others),
        cmocka_unit_test(draws__follow_their_laws),
        cmocka_unit_test(plan__last_axis_moves_fastest),
        cmocka_unit_test(plan__block_of_a_run),
        cmocka_unit_test(job__blames_what_does_not_fit),
        cmocka_unit_test(plan__describes_the_run),
        cmocka_unit_test(plan__combinations_fail_alone),
        cmocka_unit_test(plan__threads_share_a_study),
        cmocka_unit_test(plan__survives_allocation_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
