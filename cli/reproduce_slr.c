/* finetti reproduce slr: the paper's training experiments, as data.
 *
 * An experiment is a row: a name, its settings in the words of `finetti train`, what theory says in
 * a sentence, and the same as intervals in which numbers must lie. */
#include "reproduce.h"
#include "train.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (int)(sizeof(array) / sizeof *(array))

/* ---- the experiments ------------------------------------------------------------------------ */

/*   name    title in JSON     value of a train_summary s */
#define MEASURE_LIST(M)                                                                            \
    M(SHARE, "share", (double)s->count[FIN_RUN_CONVERGED] / (double)s->runs)                       \
    M(KAPPA, "median_abs_kappa", s->quantile[TRAIN_abs_kappa][TRAIN_QUANTILES / 2])                \
    M(NU, "median_abs_nu", s->quantile[TRAIN_abs_nu][TRAIN_QUANTILES / 2])                         \
    M(EXCESS, "median_excess", s->quantile[TRAIN_excess][TRAIN_QUANTILES / 2])                     \
    M(FARTHEST, "largest_distance", s->farthest)
typedef enum measure {
#define PLACE(name, title, value) name,
    MEASURE_LIST(PLACE)
#undef PLACE
        MEASURES
} measure;

typedef struct expectation {
    measure what;
    double low, high;
} expectation;

typedef struct experiment {
    const char *name, *settings, *theory;
    int expected_count;
    expectation expected[3];
} experiment;

/* Marion, Berthier, Biau, Boyer (2025), figures 3 to 6: d = 400, L = 10, 30 runs each. */
static const experiment experiments[] = {
    {"manifold",
     "init=manifold lam=0.1 alpha=4e-3 steps=20000 log_every=200",
     "every run converges and stays on M",
     2,
     {{SHARE, 1, 1}, {FARTHEST, 0, 1e-9}}},
    {"sphere_large_lambda",
     "init=sphere lam=0.9 alpha=1e-3 steps=120000 log_every=300",
     "no run converges",
     1,
     {{SHARE, 0, 0}}},
    {"sphere_small_lambda",
     "init=sphere lam=0.1 alpha=4e-3 steps=20000 log_every=200",
     "about half of them converge",
     1,
     {{SHARE, 0.35, 0.65}}},
    {"sphere_schedule",
     "init=sphere lam=1 decay=1e-4 alpha=4e-3 steps=120000 log_every=300",
     "nearly every run converges",
     1,
     {{SHARE, 0.9, 1}}},
    {"sgd_schedule",
     "engine=reduced d=80 eps=0.1 batch=5 init=sphere lam=2 decay=1e-4 alpha=1e-3 steps=200000 "
     "log_every=500",
     "(almost) every run converges, to about 0.998", /* 1999 of 2000 */
     3,
     {{SHARE, 0.999, 1}, {KAPPA, 0.99, 1}, {NU, 0.99, 1}}},
};

/* A step of SGD takes so many times as long as one of the exact descent; for the time left. */
static const double SGD_COST = 6;

/* ---- one experiment ------------------------------------------------------------------------- */

typedef struct outcome {
    const experiment *experiment;
    train_summary summary;
    double seconds;
    bool holds[3];
} outcome;

static double measured(const train_summary *s, measure what)
{
#define VALUE(name, title, value) value,
    const double values[] = {MEASURE_LIST(VALUE)};
#undef VALUE
    return values[what];
}

static const char *measure_title(measure what)
{
#define TITLE(name, title, value) title,
    static const char *const titles[] = {MEASURE_LIST(TITLE)};
#undef TITLE
    return titles[what];
}

/* A share is known up to its 95 % interval: that must meet the expected one. With low = high = 1
 * it does if every run converged, with 0 if none did. */
static bool is_as_expected(const train_summary *s, const expectation *e)
{
    if (e->what == SHARE)
        return s->converged.high >= e->low && s->converged.low <= e->high;
    double value = measured(s, e->what);
    return value >= e->low && value <= e->high;
}

static bool all_hold(const outcome *o)
{
    for (int i = 0; i < o->experiment->expected_count; i++)
        if (!o->holds[i])
            return false;
    return true;
}

/* "name=value name=value ..." into the settings of a training. */
static fin_status apply(cli_args *args, const char *settings, fin_error *err)
{
    while (*settings) {
        char name[64], value[64];
        int used = 0;
        if (sscanf(settings, " %63[^= ]=%63[^ ]%n", name, value, &used) != 2)
            return cli_status(err, FIN_ERR_FORMAT, "'%.60s' is not name=value", settings);
        fin_status status = cli_set(args, name, value, err);
        if (status)
            return status;
        settings += used;
        settings += strspn(settings, " ");
    }
    return FIN_OK;
}

static fin_status prepare(const experiment *e, const cli_study_settings *study, cli_args *args,
                          fin_error *err)
{
    cli_defaults(args, &cli_train, fin_task_find("slr"), fin_form_find("erf"));
    args->train.runs = study->runs;
    args->train.seed = study->seed;
    return apply(args, e->settings, err);
}

static double cost(const experiment *e, const cli_study_settings *study)
{
    static cli_args args;
    if (prepare(e, study, &args, NULL))
        return 0;
    return (double)args.train.steps * (args.train.engine == FIN_ENGINE_REDUCED ? SGD_COST : 1);
}

static fin_status save(const training *t, const char *folder, const char *name, fin_error *err)
{
    char path[4096];
    int length = snprintf(path, sizeof path, "%s/%s.npz", folder, name);
    if (length >= (int)sizeof path)
        return cli_status(err, FIN_ERR_ARGUMENT, "--out: the name is too long");
    return training_write(t, path, err);
}

static fin_status conduct(const experiment *e, cli_args *asked, outcome *o, fin_error *err)
{
    static cli_args args;
    training t;
    *o = (outcome){.experiment = e};
    fin_status status = prepare(e, &asked->study, &args, err);
    if (status)
        return status;
    double start = cli_clock();
    status = training_open(&t, &args, err);
    if (!status)
        status = fin_train_run(t.train, args.train.steps, cli_progress(), err);
    o->seconds = cli_clock() - start;
    if (!status && cli_get(asked, "out"))
        status = save(&t, cli_get(asked, "out"), e->name, err);
    if (!status)
        status = train_summarise(&t, &o->summary, err);
    for (int i = 0; i < e->expected_count; i++)
        o->holds[i] = !status && is_as_expected(&o->summary, &e->expected[i]);
    training_close(&t);
    return status;
}

/* ---- printing ------------------------------------------------------------------------------- */

static void print_header(int64_t runs, bool times)
{
    printf("Training in single-location regression: the paper's experiments, %lld runs each\n\n"
           "%-20s %-9s %-14s %-9s %-9s %-11s %-11s %s%-6s %s\n",
           (long long)runs, "experiment", "converged", "95 % interval", "|kappa|", "|nu|",
           "excess risk", "from M", times ? "seconds  " : "", "holds", "theory");
}

static void print_row(const outcome *o, bool times)
{
    const train_summary *s = &o->summary;
    char count[48], interval[48], seconds[32] = "";
    snprintf(count, sizeof count, "%lld/%lld", (long long)s->count[FIN_RUN_CONVERGED],
             (long long)s->runs);
    snprintf(interval, sizeof interval, "%.3f to %.3f", s->converged.low, s->converged.high);
    if (times)
        snprintf(seconds, sizeof seconds, "%-9.3g", o->seconds);
    printf("%-20s %-9s %-14s %-9.4f %-9.4f %-11.4g %-11.2g %s%-6s %s\n", o->experiment->name, count,
           interval, measured(s, KAPPA), measured(s, NU), measured(s, EXCESS),
           measured(s, FARTHEST), seconds, all_hold(o) ? "yes" : "NO", o->experiment->theory);
}

static void print_footer(void)
{
    printf(
        "\nconverged: |kappa| and |nu| above 0.9 at the end; medians of |kappa|, |nu| and of the\n"
        "excess risk; from M: largest distance of any run at any logged step; theory holds if\n"
        "the 95 %% interval allows it\n");
}

static json_t *json_outcome(const outcome *o)
{
    json_t *list = json_array();
    for (int i = 0; i < o->experiment->expected_count; i++) {
        const expectation *e = &o->experiment->expected[i];
        json_array_append_new(list, json_pack("{s:s, s:o, s:o, s:o, s:b}", "quantity",
                                              measure_title(e->what), "value",
                                              cli_json_number(measured(&o->summary, e->what)),
                                              "low", cli_json_number(e->low), "high",
                                              cli_json_number(e->high), "holds", o->holds[i]));
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:b, s:o}", "name", o->experiment->name, "settings",
                     o->experiment->settings, "theory", o->experiment->theory, "expected", list,
                     "holds", all_hold(o), "summary", train_json_summary(&o->summary));
}

/* ---- running -------------------------------------------------------------------------------- */

static bool is_wanted(const cli_args *args, const experiment *e)
{
    const char *only = cli_get(args, "only");
    return !only || strcmp(only, e->name) == 0;
}

static int check_only(const char *only)
{
    const char *names[COUNT(experiments)];
    for (int i = 0; i < COUNT(experiments); i++) {
        names[i] = experiments[i].name;
        if (!only || strcmp(only, names[i]) == 0)
            return CLI_OK;
    }
    const char *near = fin_nearest_name(only, names, COUNT(experiments));
    return cli_usage("--only: there is no experiment '%.40s'%s%s%s", only,
                     near ? "; did you mean " : "; 'finetti help reproduce' names them",
                     near ? near : "", near ? "?" : "");
}

int reproduce_slr_check(cli_args *args)
{
    const char *folder = cli_get(args, "out");
    int code = check_only(cli_get(args, "only"));
    if (code || !folder)
        return code;
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return cli_failed("cannot make the folder '%.200s': %s", folder, strerror(errno));
    char path[4096];
    fin_error err;
    snprintf(path, sizeof path, "%s/trial.npz", folder);
    return training_try(path, &err) ? cli_error(&err) : CLI_OK;
}

int reproduce_slr(cli_args *args, json_t **json, bool *holds)
{
    bool text = !cli_get(args, "json"), times = isatty(STDOUT_FILENO);
    json_t *list = json_array();
    double total = 0, done = 0;
    for (int i = 0; i < COUNT(experiments); i++)
        total += is_wanted(args, &experiments[i]) ? cost(&experiments[i], &args->study) : 0;
    *holds = true;
    for (int i = 0; i < COUNT(experiments); i++) {
        outcome o;
        fin_error err = {FIN_OK, ""};
        if (!is_wanted(args, &experiments[i]))
            continue;
        double part = cost(&experiments[i], &args->study) / total;
        cli_progress_part(done, part);
        done += part;
        if (conduct(&experiments[i], args, &o, &err)) {
            json_decref(list);
            return cli_error(&err);
        }
        cli_progress_end();
        *holds = *holds && all_hold(&o);
        if (text && part == done)
            print_header(args->study.runs, times);
        if (text)
            print_row(&o, times);
        else
            json_array_append_new(list, json_outcome(&o));
        fflush(stdout); /* a row is worth seeing while the next one is computed */
    }
    if (text)
        print_footer();
    *json = text ? NULL
                 : json_pack("{s:I, s:b, s:O}", "runs", (json_int_t)args->study.runs, "holds",
                             *holds, "experiments", list);
    json_decref(list);
    return text ? cli_flush() : CLI_OK;
}
