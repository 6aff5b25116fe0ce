/* finetti reproduce: every claim of the papers, from runs to verdicts and a report.
 *
 * There is nothing here that knows a paper: the claims are those of the studies that come with the
 * library. Studies of one paper share the beginning of their names, up to a _, and that beginning
 * stands for all of them: slr is slr_risk, slr_sgd and slr_training. */
#include "study/study.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int run(cli_args *args);

static const cli_word words[] = {
    {"out", "DIR",
     "folder (made if missing) that gets the store finetti.db, the report index.html and, where it "
     "was built, the page explore.html; default report"},
    {"full", NULL, "the papers' sizes, with thousands of runs: hours, not seconds"},
    {"fresh", NULL, "put a new store in place of the old one and run everything anew"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

const cli_command cli_reproduce = {
    .name = "reproduce",
    .summary = "run the papers' studies, test every claim, write the report",
    .about =
        "Runs the studies that come with finetti, prints what the papers claim beside what was\n"
        "measured, and writes a report with figures. Run again it does only what is missing. A "
        "claim\n"
        "holds if its 95 % interval lies inside what is expected, fails if outside, else it is\n"
        "undecided. What the papers say, what was derived here and checks of the code are counted\n"
        "apart. The exit code is 1 if a claim does not hold, unless the study says that this is\n"
        "known, and why; or if it holds although it is known not to. Times go to terminals and\n"
        "into --json only, so that outputs can be compared.",
    .examples = "  finetti reproduce\n"
                "  finetti reproduce slr_training --out slr\n"
                "  finetti reproduce exchangeability\n"
                "  finetti reproduce --full --out full\n"
                "  mpirun -n 64 finetti reproduce --full --out full\n"
                "  make reproduce ARGS=--fresh\n",
    .computes = true,
    .operands = {"STUDY",
                 "only these studies of those that come with finetti. The beginning of names "
                 "up to a _ stands for all that have it (slr: slr_risk, slr_sgd, ...). These are",
                 0, -1, true},
    .words = words,
    .ranks = true,
    .run = run,
};

/* What is made, of which studies. */
typedef struct reproduction {
    cli_args *args;
    fin_study **studies;
    study_outcome *outcomes; /* [count] */
    int count;
    char store_path[PATH_MAX], report_path[PATH_MAX], explore_path[PATH_MAX];
    fin_store *store;
} reproduction;

/* ---- before anything runs ------------------------------------------------------------------- */

/* Is the study the one that `name` names, or one of its group? */
static bool belongs(const char *study, const char *name)
{
    size_t length = strlen(name);
    return strncmp(study, name, length) == 0 && (study[length] == '\0' || study[length] == '_');
}

/* The nearest name of a study or of a group, which is written into `group`. */
static const char *nearest(const char *word, char *group, size_t size)
{
    const char *names[256];
    int count = 0;
    for (; count < fin_shipped_count() && count < 256; count++)
        names[count] = fin_shipped_name(count);
    const char *near = fin_nearest_name(word, names, count);
    for (int i = 0; i < count && !near; i++) {
        snprintf(group, size, "%.*s", (int)strcspn(names[i], "_"), names[i]);
        const char *one = group;
        near = fin_nearest_name(word, &one, 1);
    }
    return near;
}

static int twice(const char *study, const char *one, const char *other)
{
    if (strcmp(one, other) == 0)
        return cli_usage("the study %.60s is named twice", study);
    return cli_usage("the study %.60s is named twice, by %.60s and by %.60s", study, one, other);
}

static int check_names(const cli_args *args)
{
    for (int i = 0; i < args->operand_count; i++) {
        const char *name = args->operand[i];
        bool found = false;
        for (int s = 0; s < fin_shipped_count(); s++) {
            const char *study = fin_shipped_name(s);
            if (!belongs(study, name))
                continue;
            found = true;
            for (int k = 0; k < i; k++)
                if (belongs(study, args->operand[k]))
                    return twice(study, args->operand[k], name);
        }
        char group[80];
        const char *near = found ? NULL : nearest(name, group, sizeof group);
        if (!found)
            return cli_usage("there is no study '%.60s'%s", name,
                             cli_hint(near, "; 'finetti help reproduce' lists them"));
    }
    return CLI_OK;
}

static fin_status read_one(reproduction *r, int shipped, fin_error *err)
{
    fin_study_changes changes = {.full = cli_get(r->args, "full") != NULL};
    const char *text = fin_shipped_text(shipped);
    fin_study *study = NULL;
    CLI_TRY(fin_study_parse(text, strlen(text), fin_shipped_name(shipped), &changes, &study, err));
    r->studies[r->count++] = study;
    return fin_report_check(study, err);
}

/* All of them, so that nothing is run if one is wrong; no study is wanted twice (check_names). */
static fin_status read_studies(reproduction *r, fin_error *err)
{
    const cli_args *args = r->args;
    int named = args->operand_count ? args->operand_count : 1, shipped = fin_shipped_count();
    fin_status status = FIN_OK;
    r->studies = calloc((size_t)shipped + 1, sizeof(fin_study *));
    r->outcomes = calloc((size_t)shipped + 1, sizeof *r->outcomes);
    if (!r->studies || !r->outcomes)
        return cli_status_memory(err, 0, "the studies");
    for (int i = 0; i < named; i++)
        for (int s = 0; s < shipped && !status; s++)
            if (!args->operand_count || belongs(fin_shipped_name(s), args->operand[i]))
                status = read_one(r, s, err);
    return status;
}

static int find_paths(reproduction *r)
{
    const char *folder = cli_get(r->args, "out") ? cli_get(r->args, "out") : "report";
    fin_error err;
    if (strlen(folder) + 32 >= PATH_MAX)
        return cli_failed("cannot make the folder '%.200s': %s", folder, strerror(ENAMETOOLONG));
    if (mkdir(folder, 0777) != 0 && errno != EEXIST)
        return cli_failed("cannot make the folder '%.200s': %s", folder, strerror(errno));
    snprintf(r->store_path, sizeof r->store_path, "%s/finetti.db", folder);
    snprintf(r->report_path, sizeof r->report_path, "%s/index.html", folder);
    snprintf(r->explore_path, sizeof r->explore_path, "%s/explore.html", folder);
    return cli_try_output(r->report_path, &err) ? cli_error(&err) : CLI_OK;
}

/* SQLite keeps a journal beside the file; one that is left over must not meet another store. */
static int remove_with(const char *path, const char *end)
{
    char name[PATH_MAX + 16];
    snprintf(name, sizeof name, "%s%s", path, end);
    if (unlink(name) != 0 && errno != ENOENT)
        return cli_failed("cannot remove '%.200s': %s", name, strerror(errno));
    return CLI_OK;
}

static int remove_store(const char *path)
{
    CLI_TRY(remove_with(path, ""));
    CLI_TRY(remove_with(path, "-wal"));
    return remove_with(path, "-shm");
}

static int prepare(reproduction *r)
{
    fin_error err = {FIN_OK, ""};
    if (read_studies(r, &err))
        return cli_error(&err);
    CLI_TRY(find_paths(r));
    if (cli_get(r->args, "fresh"))
        CLI_TRY(remove_store(r->store_path));
    if (fin_store_open(r->store_path, FIN_STORE_CREATE, &r->store, &err))
        return cli_error(&err);
    return CLI_OK;
}

/* ---- afterwards ----------------------------------------------------------------------------- */

static void add_up(const reproduction *r, study_claims *sum, int64_t *failed)
{
    *failed = 0;
    for (int i = 0; i < r->count; i++) {
        study_claims_join(sum, &r->outcomes[i].claims);
        *failed += r->outcomes[i].failed;
    }
}

static int report(const reproduction *r, const study_claims *sum, bool fine)
{
    fin_error err = {FIN_OK, ""};
    json_t *list = json_array();
    for (int i = 0; i < r->count; i++) {
        json_t *one = study_outcome_of(r->studies[i], r->store, &r->outcomes[i], &err);
        if (!one) {
            json_decref(list);
            return cli_error(&err);
        }
        json_array_append_new(list, one);
    }
    return cli_show(r->args,
                    json_pack("{s:o, s:o, s:b, s:o, s:o}", "store", cli_json_text(r->store_path),
                              "report", cli_json_text(r->report_path), "holds", fine, "studies",
                              list, "sum", study_claims_sum(sum)),
                    "{*studies|" STUDY_OUTCOME_FORM STUDY_CLAIMS_FORM "\n}" STUDY_SUM_FORM
                    "report: {report}\n");
}

static int conduct(reproduction *r, const fin_study_settings *settings)
{
    fin_error err = {FIN_OK, ""};
    fin_status status = FIN_OK;
    for (int i = 0; i < r->count && !status; i++)
        status = study_conduct(r->studies[i], r->store, settings, &r->outcomes[i], &err);
    if (!status && fin_explore_there()) /* before the report, which links to it where it is */
        status = fin_explore_write("index.html", r->explore_path, &err);
    if (!status)
        status = fin_report_all(r->store, (const fin_study *const *)r->studies, r->count, NULL,
                                r->report_path, &err);
    if (status == FIN_ERR_CANCELLED)
        return cli_stopped("cancelled; what is finished is in %.300s, the same command%s goes on",
                           r->store_path, cli_get(r->args, "fresh") ? " without --fresh" : "");
    if (status)
        return cli_error(&err);
    study_claims sum = {.total = 0};
    int64_t failed;
    add_up(r, &sum, &failed);
    bool fine = study_claims_hold(&sum, false) && !failed;
    int code = report(r, &sum, fine);
    return code || fine ? code : CLI_FAILED;
}

static int lead(cli_args *args, const fin_study_settings *settings)
{
    static reproduction r; /* paths are long */
    r.args = args;
    int code = prepare(&r);
    if (!code)
        code = conduct(&r, settings);
    for (int i = 0; i < r.count; i++) {
        study_outcome_clear(&r.outcomes[i]);
        fin_study_destroy(r.studies[i]);
    }
    free(r.studies);
    free(r.outcomes);
    fin_store_close(r.store);
    return code;
}

static int run(cli_args *args)
{
    fin_study_settings settings;
    CLI_TRY(check_names(args)); /* on every rank */
    fin_settings_defaults(&fin_study_table, &settings, sizeof settings);
    settings.threads = args->threads;
    settings.retry_failed = 1; /* the studies are ours: what failed is worth another try */
    if (fin_rank() != 0)
        return study_follow(&settings);
    int code = lead(args, &settings);
    study_release();
    return code;
}
