/* Commands: outputs as their tables say, the same bytes for any number of threads and in any company,
 * cancelling, faults; and the numbers of `risk` and `landscape`. */
#include "test_size.h"
#include "test_command.h"

#include <pthread.h>

/* ---- the table ------------------------------------------------------------------------------- */

static void table__names_and_outputs(void **state)
{
    (void)state;
    for (int i = 0; i < fin_command_count(); i++) {
        const fin_command *command = fin_command_at(i);
        assert_true(command->name[0] && command->summary[0] && command->outputs->name);
        for (const fin_output *o = command->outputs; o->name; o++)
            assert_true(o->name[0] && o->meaning[0]);
        assert_ptr_equal(fin_command_find(command->name), command);
    }
    assert_ptr_equal(fin_command_at(0), fin_command_find("risk"));
    assert_null(fin_command_at(fin_command_count()));
    assert_null(fin_command_at(-1));
    assert_null(fin_command_find("simulate"));
    assert_null(fin_command_find(NULL));
}

static void run__from_texts(void **state)
{
    (void)state;
    fin_result *result = NULL;
    const fin_command *risk = fin_command_find("risk");
    const fin_pair pairs[] = {{.name = "task", .text = "spiked"},
                              {.name = "show", .text = "linear"}};
    assert_int_equal(fin_command_run(risk, pairs, 2, NULL, &result, &err), FIN_OK);
    assert_int_equal(fin_result_scalar_count(result), 2);
    assert_string_equal(fin_result_get_scalar(result, 1).name, "linear");
    fin_result_destroy(result);
    const fin_pair wrong = {.name = "lamb", .text = "1"};
    assert_int_equal(fin_command_run(risk, &wrong, 1, NULL, &result, &err), FIN_ERR_ARGUMENT);
    assert_null(result);
    assert_non_null(strstr(err.message, "did you mean 'lam'?"));
    assert_int_equal(fin_command_run(NULL, NULL, 0, NULL, &result, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_command_run(risk, NULL, 1, NULL, &result, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_command_run(risk, NULL, 0, NULL, NULL, &err), FIN_ERR_ARGUMENT);
}

static void table__outputs_are_what_comes(void **state)
{
    (void)state;
    static const char *const runs[] = {
        "risk show=risk,oracle,star,best,linear,bayes,check samples=500",
        "risk task=spiked form=linear L=5 show=linear",
        "risk kappa=1 eta=1",
        "risk form=softmax lam=0.1 method=simulation show=risk,oracle,bayes,check samples=8",
        "risk task=spiked form=softmax snr=64 method=simulation show=star,bayes samples=500",
        "train engine=reduced runs=8 d=50 steps=1 alpha=1.2e154 seed=2", /* some diverge */
        "landscape grid=3 starts=4",
        "law runs=2 steps=2 d=5 L=3",
    };
    expect_outputs("risk", runs, 5);
    expect_outputs("train", runs + 5, 1);
    expect_outputs("landscape", runs + 6, 1);
    expect_outputs("law", runs + 7, 1);
}

/* ---- models ---------------------------------------------------------------------------------- */

static void run__a_pair_is_whole(void **state)
{
    (void)state;
    const fin_pair pairs[][2] = {{{"task", "slr", NULL}, {"L", NULL, NULL}},
                                 {{"task", "slr", NULL}, {NULL, "4", NULL}},
                                 {{"task", NULL, NULL}, {"L", "4", NULL}}};
    const char *said[] = {"setting 2, L, has no value", "setting 2, unnamed, has no name",
                          "setting 1, task, has no value"};
    for (int i = 0; i < 3; i++) {
        fin_result *result = NULL;
        assert_int_equal(
            fin_command_run(fin_command_find("risk"), pairs[i], 2, NULL, &result, &err),
            FIN_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, said[i]));
        assert_null(result);
    }
}

static void model__words_are_checked(void **state)
{
    (void)state;
    expect_refused("risk task=slrr", "did you mean slr?");
    expect_refused("risk form=sofmax", "did you mean softmax?");
    expect_refused("risk lengths=5", "LENGTH:WEIGHT");
    expect_refused("risk lengths=5:0.2,", "LENGTH:WEIGHT");
    expect_refused("risk lengths=5:0.2,x:1", "LENGTH:WEIGHT");
    expect_refused("risk lengths=5:0.2;7:1", "LENGTH:WEIGHT");
    expect_refused("risk lengths=5:-1", "");
    expect_refused("risk lengths=99999999999999999999:1", "LENGTH:WEIGHT");
    expect_refused("risk lengths=5:1 L=7", "give one or the other");
    expect_refused("risk lengths=5:1 L_min=2", "give one or the other");
    expect_refused("risk m=11", "");
    expect_refused("risk show=risk,orcle", "did you mean oracle?");
    expect_refused("risk show=", "is not one of");
    expect_refused("risk show=risk,", "is not one of");
    expect_refused("train lam_schedule=1:1", "begin with 0");
    expect_refused("train lam_schedule=0:1,5:2,5:3", "ascend");
    expect_refused("train lam_schedule=0:-1", "from 0 to");
    expect_refused("train lam_schedule=0:nan", "from 0 to");
    expect_refused("train alpha_schedule=0=1", "STEP:VALUE");
    expect_refused("train alpha_schedule=0:1e301", "from 0 to");
    expect_refused("train form=hardmax lam_schedule=0:1", "has no lam");
    expect_refused("train init=vectors", "vectors");
    expect_refused("train engine=reduced rule=flow", "population");
    expect_refused("train form=softmax", "");
    expect_refused("train init=overlaps kappa=1 eta=1", "");
    expect_refused("law init=overlaps kappa=1 eta=1", "");
    expect_refused("law init=vectors", "vectors");
    expect_refused("law engine=ambient", "leave engine out");
    expect_refused("law rule=flow", "descent");
    expect_refused("risk L=10 lengths=5:0.2,10:0.8", "lengths takes the place of L and L_min");
    expect_refused("risk L_min=auto lengths=5:0.2,10:0.8", "lengths takes the place of L");
    expect_refused("law nu=1", "nu is where runs start");
    expect_refused("train kappa=0.3", "kappa is where runs start with init = overlaps");
    expect_refused("train init=sphere rho=0.3", "rho is where runs start");
    expect_refused("law theta=0.1", "theta is where runs start");
    expect_refused("train lam=0.5 lam_schedule=0:1", "lam_schedule takes the place of lam");
    expect_refused("train alpha=0.5 alpha_schedule=0:1", "alpha_schedule takes the place of alpha");
    expect_refused("risk snr=3", "slr has no setting snr; it belongs to spiked, max");
    expect_refused("risk form=hardmax lam=3", "hardmax has no setting lam; it belongs to ");
    expect_refused("landscape form=softmax", "exact risk");
    expect_refused("landscape task=max snr=2", "exact risk");
    expect_refused("landscape grid=1", "grid");
    expect_refused("landscape grid=2050", "grid");
}

static const char *text_of(const char *verb, const char *name, const char *text)
{
    static char texts[2][FIN_SETTINGS_TEXT];
    static int next;
    const fin_command *command = fin_command_find(verb);
    void *values = malloc(command->size);
    fin_pair pair = {name, text, NULL};
    next = !next;
    assert_int_equal(fin_command_apply(command, values, &pair, 1, NULL, &err), FIN_OK);
    assert_int_equal(fin_command_text(command, values, texts[next], sizeof texts[0], &err), FIN_OK);
    free(values);
    return texts[next];
}

/* Two ways to write a list are one run. */
static void model__lists_have_one_form(void **state)
{
    (void)state;
    static const struct {
        const char *command, *name, *given, *kept;
    } rows[] = {
        {"risk", "show", "check , risk,risk, oracle", "\"show\":\"risk,oracle,check\""},
        {"risk", "show", "bayes,linear,star,oracle,check,risk",
         "\"show\":\"risk,oracle,star,linear,bayes,check\""},
        {"risk", "lengths", "5:.20,010:8e-1", "\"lengths\":\"5:0.2,10:0.8\""},
        {"landscape", "lengths", "5:1.0", "\"lengths\":\"5:1\""},
        {"law", "lengths", "+5:1.0", "\"lengths\":\"5:1\""},
        {"train", "lam_schedule", "0:1.00,1000:5e-1", "\"lam_schedule\":\"0:1,1000:0.5\""},
        {"train", "alpha_schedule", "0: 0.1", "\"alpha_schedule\":\"0:0.1\""},
        {"train", "alpha_schedule", "", "\"alpha_schedule\":\"\""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *text = text_of(rows[i].command, rows[i].name, rows[i].given);
        if (!strstr(text, rows[i].kept))
            fail_msg("%s of %s: no %s in %s", rows[i].name, rows[i].given, rows[i].kept, text);
    }
    assert_string_equal(text_of("risk", "show", "check,risk"),
                        text_of("risk", "show", "risk,check"));
    /* One that would be too long in that form stays as it is. */
    char most[512] = "0:1e15", kept[600];
    for (int i = 1; strlen(most) < 500; i++)
        snprintf(most + strlen(most), sizeof most - strlen(most), ",%d:1e15", i);
    char text[] = "0:1e15,1:1e15", narrow[16] = "0:1e15,1:2";
    fini_word_tidy(&(fin_word){.size = sizeof narrow, .kind = FIN_WORD_PAIRS}, narrow);
    assert_string_equal(narrow, "0:1e15,1:2");
    fini_word_tidy(&(fin_word){.size = sizeof text, .kind = FIN_WORD_PAIRS}, text);
    assert_string_equal(text, "0:1e15,1:1e15");
    snprintf(kept, sizeof kept, "%s", most);
    fini_word_tidy(&(fin_word){.size = sizeof most, .kind = FIN_WORD_PAIRS}, most);
    assert_string_equal(most, kept);
}

/* A part of the plane; the whole of it is not in the text, so that runs of before it could be said keep theirs. */
static void landscape__part_of_the_plane(void **state)
{
    (void)state;
    assert_null(strstr(text_of("landscape", "kappa_range", "-1:1"), "kappa_range"));
    assert_non_null(
        strstr(text_of("landscape", "kappa-range", "0.250:1e0"), "\"kappa_range\":\"0.25:1\""));
    expect_refused("landscape kappa_range=1", "is not FROM:TO");
    expect_refused("landscape nu_range=0:1:2", "is not FROM:TO");
    expect_refused("landscape nu_range=0:1.5", "from -1 to 1");
    expect_refused("landscape nu_range=1:0", "FROM below TO");
    fin_result *r = run("landscape grid=3 kappa_range=0:1 nu_range=0.5:1 theta=0.6 rho=0.1");
    const double *kappa = numbers(r, "kappa", 3, 0), *nu = numbers(r, "nu", 3, 0);
    assert_true(kappa[0] == 0 && kappa[1] == 0.5 && kappa[2] == 1);
    assert_true(nu[0] == 0.5 && nu[1] == 0.75 && nu[2] == 1);
    const double *risk = numbers(r, "risk", 3, 3), *flow = numbers(r, "flow_kappa", 3, 3);
    const double *gradient = numbers(r, "gradient", 3, 3);
    double out = 0, least = INFINITY;
    for (int i = 0; i < 9; i++) {
        out += isnan(risk[i]);
        least = fmin(least, risk[i]);
        assert_true(isnan(risk[i]) || fabs(flow[i]) <= gradient[i] * (1 + 1e-12));
    }
    assert_true(scalar(r, "left_out").value == out && out > 0 && out < 9);
    assert_true(scalar(r, "least_risk").value == least);
    double at_kappa = scalar(r, "least_kappa").value, at_nu = scalar(r, "least_nu").value;
    assert_true(risk[(int)(2 * at_kappa) * 3 + (int)(4 * at_nu - 2)] == least);
    fin_result_destroy(r);
}

/* law runs two engines, so there is none to be told. */
static void law__has_no_engine(void **state)
{
    (void)state;
    assert_null(strstr(text_of("law", "runs", "5"), "engine"));
    assert_non_null(strstr(text_of("train", "runs", "5"), "\"engine\":\"population\""));
}

static void model__lengths_are_used(void **state)
{
    (void)state;
    fin_result *fixed = run("risk L=7"), *same = run("risk lengths=7:3");
    fin_result *mixed = run("risk lengths=5:1,9:1 kappa=0.5 nu=0.5 rho=0.3"),
               *uniform = run("risk L_min=5 L=9 kappa=0.5 nu=0.5 rho=0.3");
    assert_true(scalar(fixed, "risk").value == scalar(same, "risk").value);
    /* Irrelevant tokens have a mean here, so the risk grows with the variance of L: 4 against 2. */
    assert_true(scalar(mixed, "risk").value > scalar(uniform, "risk").value);
    fin_result_destroy(fixed);
    fin_result_destroy(same);
    fin_result_destroy(mixed);
    fin_result_destroy(uniform);
}

static void seed__apart(void **state)
{
    (void)state;
    int64_t last = -1;
    for (int64_t seed = 0; seed < 1000; seed++) {
        int64_t other = fini_seed_apart(seed);
        assert_true(other >= 0 && other < INT64_C(1) << 53 && other != seed && other != last);
        last = other;
    }
    assert_int_equal(fini_seed_apart(0), INT64_C(0xe220a8397b1dcdaf) >> 11 & 0x1fffffffffffff);
}

/* ---- risk ------------------------------------------------------------------------------------ */

static void risk__as_the_library_says(void **state)
{
    (void)state;
    fin_result *r = run("risk kappa=0.5 nu=0.8 theta=0.1 eta=-0.2 rho=0.1 lam=0.3 eps=0.2 d=100 "
                        "show=risk,oracle,linear");
    fin_risk_point at = {.kappa = 0.5,
                         .nu = 0.8,
                         .theta = 0.1,
                         .eta = -0.2,
                         .rho = 0.1,
                         .lam = 0.3,
                         .gamma = 0.70710678118654757,
                         .mu = sqrt(50),
                         .eps = 0.2,
                         .m = 1,
                         .L_mean = 10};
    fin_risk_value value;
    assert_int_equal(fin_risk_erf(1, &at, &value, &err), FIN_OK);
    static const char *const names[] = {"signal", "noise",   "bias",  "d_kappa",
                                        "d_nu",   "d_theta", "d_eta", "d_rho"};
    const double known[] = {value.signal,      value.noise,       value.bias,
                            value.gradient[0], value.gradient[1], value.gradient[2],
                            value.gradient[3], value.gradient[4]};
    fin_scalar risk = scalar(r, "risk");
    assert_true(risk.value == value.risk && risk.how == FIN_HOW_CLOSED && risk.error == 0);
    for (int i = 0; i < 8; i++)
        assert_true(scalar(r, names[i]).value == known[i]);
    at = (fin_risk_point){1, 1, 0, 0, 0, 0.3, at.gamma, at.mu, 0.2, 1, 10, 0};
    assert_int_equal(fin_risk_erf(1, &at, &value, &err), FIN_OK);
    assert_true(scalar(r, "oracle").value == value.risk);
    fin_scalar linear = scalar(r, "linear");
    assert_true(linear.value > 0.04 && linear.value < 0.54 && linear.how == FIN_HOW_CLOSED);
    assert_true(missing(r, "star") && missing(r, "check") && missing(r, "over_bayes"));
    fin_result_destroy(r);
}

/* Is there a remark that says this? */
static bool noted(const fin_result *r, const char *part)
{
    const char *note;
    for (int i = 0; (note = fin_result_note(r, i)); i++)
        if (strstr(note, part))
            return true;
    return false;
}

static void risk__what_there_is_not_is_left_out(void **state)
{
    (void)state;
    fin_result *r = run("risk form=hardmax m=2 kappa=0.1 show=risk,star,bayes,linear samples=200");
    assert_true(missing(r, "lam_star") && missing(r, "star") && missing(r, "bayes"));
    assert_true(missing(r, "signal") && missing(r, "d_kappa") && missing(r, "over_bayes"));
    assert_true(scalar(r, "attention").value < scalar(r, "linear").value);
    fin_scalar risk = scalar(r, "risk");
    assert_true(risk.how == FIN_HOW_SIMULATION && risk.samples == 200 && risk.error > 0);
    fin_result_destroy(r);
    r = run("risk task=spiked form=linear snr=3 L=4 eps=0.5 show=linear,bayes");
    assert_true(fabs(scalar(r, "attention").value - 0.25 - 1 / (4.0 / 3 + 3.0 / 4)) < 1e-15);
    assert_true(scalar(r, "bayes").how == FIN_HOW_QUADRATURE);
    assert_true(scalar(r, "bayes").value < scalar(r, "attention").value);
    assert_true(missing(r, "risk"));
    fin_result_destroy(r);
    r = run(
        "risk task=spiked form=linear lengths=4:1,5:1 snr=3 show=linear"); /* as of their mean */
    assert_true(fabs(scalar(r, "attention").value - 1 / (4.5 / 3.5 + 3 / 4.5)) < 1e-15);
    fin_result_destroy(r);
    r = run("risk task=max m=2 show=linear"); /* not there, and a note says why */
    assert_true(missing(r, "attention") && noted(r, "attention: "));
    fin_result_destroy(r);
    fin_result *none = fin_result_create();
    assert_int_equal(run_into("risk form=hardmax show=star", none, NULL, &err),
                     FIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "star"));
    assert_int_equal(run_into("risk form=softmax method=closed", none, NULL, &err),
                     FIN_ERR_UNSUPPORTED); /* no risk: the run has failed */
    fin_result_destroy(none);
}

static void risk__star_is_the_best_oracle(void **state)
{
    (void)state;
    fin_result *r = run("risk show=star d=100");
    double lam = scalar(r, "lam_star").value, best = scalar(r, "star").value;
    assert_true(scalar(r, "lam_star").error < 1e-8 * lam);
    fin_result_destroy(r);
    for (int i = -1; i <= 1; i++) {
        char text[128];
        snprintf(text, sizeof text, "risk show=oracle d=100 lam=%.17g", lam * (1 + 0.01 * i));
        r = run(text);
        double oracle = scalar(r, "oracle").value;
        assert_true(i ? oracle > best : oracle == best);
        fin_result_destroy(r);
    }
}

/* The error of a searched minimum is what other seeds make of it. */
static void risk__star_of_a_simulation(void **state)
{
    (void)state;
    enum { N = 40 };
    const int count = (int)sized(500, 2000, 2000);
    double mean = 0, square = 0, errors = 0, lam[N];
    for (int i = 0; i < N; i++) {
        char text[128];
        snprintf(text, sizeof text,
                 "risk task=spiked form=softmax snr=4 L=6 method=simulation show=star samples=%d "
                 "seed=%d",
                 count, i + 1);
        fin_result *r = run(text);
        fin_scalar star = scalar(r, "lam_star");
        assert_true(star.how == FIN_HOW_SIMULATION && star.samples == count);
        lam[i] = star.value;
        mean += star.value / N;
        errors += star.error * star.error / N;
        fin_result_destroy(r);
    }
    for (int i = 0; i < N; i++)
        square += (lam[i] - mean) * (lam[i] - mean) / (N - 1);
    print_message("lam_star %.3f: spread %.4f, error %.4f\n", mean, sqrt(square), sqrt(errors));
    assert_true(errors > square / 3 && errors < square * 3);
    assert_true(fabs(mean - 2) < 5 * sqrt(square / N)); /* the posterior's: sqrt(snr) */
    fin_result *r = run("risk form=softmax L=3 method=simulation show=star samples=30");
    assert_true(isnan(scalar(r, "lam_star").error)); /* four parts of seven samples say nothing */
    fin_result_destroy(r);
    r = fin_result_create();
    assert_int_equal(
        run_into("risk form=softmax L=3 method=simulation show=star samples=7", r, NULL, &err),
        FIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "rare samples"));
    fin_result_destroy(r);
}

/* A formula has a number there, and says that it is none; a simulation has not. */
static void risk__overlaps_no_vectors_have(void **state)
{
    (void)state;
    fin_result *r = run("risk kappa=1 eta=1");
    assert_true(scalar(r, "unreal").value == 1 && isfinite(scalar(r, "risk").value));
    assert_true(noted(r, "no unit vectors") && noted(r, "what the formula gives"));
    fini_result_clear(r);
    assert_int_equal(run_into("risk kappa=1 eta=1 form=softmax", r, NULL, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "no unit vectors"));
    fini_result_clear(r);
    assert_int_equal(run_into("risk kappa=1 eta=1 show=check", r, NULL, &err), FIN_ERR_ARGUMENT);
    fin_result_destroy(r);
    r = run("risk kappa=1 eta=1 show=oracle"); /* they are not used */
    assert_true(missing(r, "unreal") && !fin_result_note(r, 0));
    fin_result_destroy(r);
}

/* Why a number is not there, or is not to be trusted. */
static void risk__notes(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"risk form=hardmax kappa=0.1 show=risk,star samples=2000", "star: hardmax has no lam"},
        {"risk m=2 show=risk,bayes",
         "bayes: the Bayes risk is computed for m = 1 only, here m = 2"},
        {"risk form=softmax lam=0.1 L=3 method=simulation samples=5",
         "risk: one sample makes up a tenth"},
        {"risk task=spiked snr=0 show=star", "star: at the end of the search"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        fin_result *r;
        const fin_command *command;
        void *values;
        assert_int_equal(apply(cases[i][0], &command, &values, &err), FIN_OK);
        r = fin_result_create();
        assert_int_equal(fini_command_perform(command, values, r, NULL, NULL), FIN_OK);
        if (!noted(r, cases[i][1]) || fin_result_note(r, 1))
            fail_msg("%s: '%s'", cases[i][0], fin_result_note(r, 0));
        fin_result_destroy(r);
        free(values);
    }
}

static void risk__settled(void **state)
{
    (void)state;
    const fin_command *command;
    void *values;
    char text[FIN_SETTINGS_TEXT];
    assert_int_equal(apply("risk form=bayes d=50 L=7", &command, &values, &err), FIN_OK);
    assert_int_equal(fin_command_text(command, values, text, sizeof text, &err), FIN_OK);
    assert_non_null(strstr(text, "\"mu\":\"auto\""));
    assert_int_equal(fin_command_settle(command, values, &err), FIN_OK);
    assert_int_equal(fin_command_text(command, values, text, sizeof text, &err), FIN_OK);
    assert_non_null(strstr(text, "\"L_min\":7"));
    assert_non_null(strstr(text, "\"mu\":5,"));
    assert_null(strstr(strstr(text, "\"mu\""), "auto")); /* `method` comes before it */
    free(values);
}

/* z of many exact risks against simulations is a standard normal number: mean and spread. */
static void risk__check_is_independent(void **state)
{
    (void)state;
    double sum = 0, square = 0;
    enum { N = 60 };
    for (int seed = 1; seed <= N; seed++) {
        char text[128];
        snprintf(text, sizeof text, "risk show=check samples=2000 kappa=0.6 nu=0.7 seed=%d", seed);
        fin_result *r = run(text);
        fin_scalar z = scalar(r, "z"), check = scalar(r, "check");
        assert_true(check.how == FIN_HOW_SIMULATION && check.samples == 2000);
        assert_true(scalar(r, "risk").how == FIN_HOW_CLOSED);
        double again = (scalar(r, "risk").value - check.value) / check.error;
        assert_true(fabs(z.value - again) < 1e-12 * fabs(again));
        assert_int_equal(z.how, FIN_HOW_DERIVED);
        sum += z.value;
        square += z.value * z.value;
        fin_result_destroy(r);
    }
    print_message("mean of z: %.2f standard errors; spread %.2f\n", sum / sqrt(N),
                  sqrt(square / N));
    assert_true(fabs(sum) / sqrt(N) < 5);
    assert_true(square / N > 0.5 && square / N < 2);
    /* A simulated risk and its check do not use the same draws. */
    fin_result *r = run("risk show=check method=simulation samples=2000 kappa=0.6 nu=0.7");
    assert_true(scalar(r, "risk").value != scalar(r, "check").value);
    assert_true(fabs(scalar(r, "z").value) < 5);
    fin_result_destroy(r);
}

/* ---- landscape ------------------------------------------------------------------------------- */

static void landscape__grid_and_points(void **state)
{
    (void)state;
    fin_result *r = run("landscape grid=5 lam=0.1 d=400");
    const double *kappa = numbers(r, "kappa", 5, 0), *nu = numbers(r, "nu", 5, 0);
    const double *risk = numbers(r, "risk", 5, 5), *d_kappa = numbers(r, "d_kappa", 5, 5);
    const double *d_nu = numbers(r, "d_nu", 5, 5);
    assert_true(kappa[0] == -1 && kappa[2] == 0 && kappa[4] == 1 && nu[1] == -0.5 && nu[3] == 0.5);
    double least = INFINITY, greatest = 0;
    for (int i = 0; i < 5; i++)
        for (int j = 0; j < 5; j++) {
            fin_risk_point at = {.kappa = kappa[i],
                                 .nu = nu[j],
                                 .lam = 0.1,
                                 .gamma = 0.70710678118654757,
                                 .mu = sqrt(200),
                                 .m = 1,
                                 .L_mean = 10};
            fin_risk_value value;
            assert_int_equal(fin_risk_erf(1, &at, &value, &err), FIN_OK);
            assert_true(risk[i * 5 + j] == value.risk);
            assert_true(d_kappa[i * 5 + j] == value.gradient[0]);
            assert_true(d_nu[i * 5 + j] == value.gradient[1]);
            least = fmin(least, value.risk);
            greatest = fmax(greatest, value.risk);
        }
    assert_true(scalar(r, "least_risk").value == least);
    assert_true(scalar(r, "greatest_risk").value == greatest);
    int n = (int)scalar(r, "stationary").value, minima = 0;
    assert_true(n > 2);
    const double *point_risk = numbers(r, "point_risk", n, 0);
    const double *negative = numbers(r, "point_negative", n, 0);
    numbers(r, "point_kappa", n, 0);
    numbers(r, "point_nu", n, 0);
    for (int i = 0; i < n; i++) {
        minima += negative[i] == 0;
        assert_true(i == 0 || point_risk[i] >= point_risk[i - 1]);
    }
    assert_true(scalar(r, "minima").value == minima && minima == 2);
    assert_true(scalar(r, "saddles").value >= 1);
    fin_result_destroy(r);
}

static void landscape__what_no_vectors_have(void **state)
{
    (void)state;
    fin_result *r = run("landscape grid=3 theta=0.5");
    const double *risk = numbers(r, "risk", 3, 3);
    assert_true(isnan(risk[3]) && isnan(risk[5]) && !isnan(risk[4])); /* |nu| = 1, theta = 0.5 */
    assert_true(isnan(risk[7])); /* k = k*, so rho would be theta */
    assert_false(isnan(scalar(r, "greatest_risk").value));
    fini_result_clear(r);
    err = (fin_error){FIN_OK, ""};
    assert_int_equal(run_into("landscape grid=2 theta=0.5", r, NULL, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "theta"));
    fini_result_clear(r);
    assert_int_equal(run_into("landscape form=softmax", r, NULL, &err), FIN_ERR_UNSUPPORTED);
    fin_result_destroy(r);
}

/* ---- threads, cancelling, memory ------------------------------------------------------------- */

static const char *const samples[] = {
    "risk show=risk,oracle,star,linear,bayes,check kappa=0.4 samples=3000",
    "risk form=softmax task=max show=risk,bayes,check samples=3000 lengths=3:1,8:2",
    "train engine=reduced d=50 L=5 runs=9 steps=40 log_every=10",
    "train engine=ambient d=10 L=3 runs=5 steps=20 form=softmax lam=0.1 risk_samples=200",
    "train runs=20 steps=200 init=sphere",
    "landscape grid=7",
    "law d=6 L=3 runs=12 steps=15",
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static void pack(const char *text, unsigned char **bytes, size_t *size)
{
    fini_done done = {.state = FIN_STATE_DONE, .result = run(text)};
    assert_int_equal(fini_done_pack(&done, bytes, size, &err), FIN_OK);
    fin_result_destroy(done.result);
}

static void job__same_bytes_for_any_threads(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        unsigned char *one, *two;
        size_t one_size, two_size;
        fin_threads_set(1);
        pack(samples[i], &one, &one_size);
        fin_threads_set(2);
        pack(samples[i], &two, &two_size);
        fin_threads_set(0);
        assert_int_equal(one_size, two_size);
        assert_memory_equal(one, two, one_size);
        fini_free(one);
        fini_free(two);
    }
}

typedef struct worker {
    const char *text;
    unsigned char *bytes;
    size_t size;
    fin_status status;
} worker;

/* No assertions here: cmocka has one thread. */
static void *work(void *user)
{
    worker *w = user;
    fini_threads_limit(1);
    for (int round = 0; round < 5; round++) {
        fini_done done = {.state = FIN_STATE_DONE, .result = fin_result_create()};
        fini_free(w->bytes);
        w->bytes = NULL;
        fin_error error = {FIN_OK, ""};
        w->status = run_into(w->text, done.result, NULL, &error);
        if (!w->status)
            w->status = fini_done_pack(&done, &w->bytes, &w->size, &error);
        fin_result_destroy(done.result);
        if (w->status)
            break;
    }
    return NULL;
}

static void job__same_bytes_side_by_side(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        unsigned char *alone;
        size_t size;
        worker workers[2] = {{.text = samples[i]}, {.text = samples[i]}};
        pthread_t threads[2];
        pack(samples[i], &alone, &size);
        for (int t = 0; t < 2; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, work, &workers[t]), 0);
        for (int t = 0; t < 2; t++)
            pthread_join(threads[t], NULL);
        for (int t = 0; t < 2; t++) {
            assert_int_equal(workers[t].status, FIN_OK);
            assert_int_equal(workers[t].size, size);
            assert_memory_equal(workers[t].bytes, alone, size);
            fini_free(workers[t].bytes);
        }
        fini_free(alone);
    }
}

static void job__cancelled(void **state)
{
    (void)state;
    static const char *const longer[] = {
        "risk form=softmax lam=0.1 method=simulation samples=1000000",
        "risk show=check samples=1000000",
        "risk show=bayes samples=1000000",
        "train engine=reduced steps=1000000",
        "landscape grid=2049",
        "law steps=1000000",
    };
    expect_cancelled(longer, 6);
}

static void job__every_allocation_fails(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "risk show=risk,oracle,linear,bayes,check samples=100 L=3",
        "risk show=star form=softmax method=simulation samples=64 L=3",
        "train engine=reduced d=9 L=3 runs=3 steps=4",
        "train runs=3 steps=4 lengths=2:1,3:1 lam_schedule=0:1",
        "landscape grid=3",
        "law d=5 L=3 runs=3 steps=2",
    };
    expect_every_allocation_may_fail(texts, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table__names_and_outputs),
        cmocka_unit_test(run__from_texts),
        cmocka_unit_test(run__a_pair_is_whole),
        cmocka_unit_test(table__outputs_are_what_comes),
        cmocka_unit_test(model__words_are_checked),
        cmocka_unit_test(model__lists_have_one_form),
        cmocka_unit_test(landscape__part_of_the_plane),
        cmocka_unit_test(law__has_no_engine),
        cmocka_unit_test(model__lengths_are_used),
        cmocka_unit_test(seed__apart),
        cmocka_unit_test(risk__as_the_library_says),
        cmocka_unit_test(risk__what_there_is_not_is_left_out),
        cmocka_unit_test(risk__star_is_the_best_oracle),
        cmocka_unit_test(risk__star_of_a_simulation),
        cmocka_unit_test(risk__overlaps_no_vectors_have),
        cmocka_unit_test(risk__notes),
        cmocka_unit_test(risk__settled),
        cmocka_unit_test(risk__check_is_independent),
        cmocka_unit_test(landscape__grid_and_points),
        cmocka_unit_test(landscape__what_no_vectors_have),
        cmocka_unit_test(job__same_bytes_for_any_threads),
        cmocka_unit_test(job__same_bytes_side_by_side),
        cmocka_unit_test(job__cancelled),
        cmocka_unit_test(job__every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
