/* finetti study run: does what is missing of a study and judges its claims. */
#include "study/study.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int run(cli_args *args);

static const cli_word words[] = {
    STUDY_WORD_STORE,
    {"full", NULL, "the sizes under `full:` in the file instead of the quick ones"},
    {"dry_run", NULL, "list the runs and which of them the store has, and run nothing"},
    {"shard", "I/N",
     "only part I of N, counted from 1: for job arrays, each with a --store of its own; 'finetti "
     "study merge' joins them"},
    {"retry_failed", NULL, "run again what failed before"},
    {"json", NULL, "print JSON: counts and claims, or the runs of a --dry-run"},
    {NULL, NULL, NULL},
};

static const cli_word lists[] = {
    {"set", "PATH=VALUE",
     "changes the file: BLOCK.SETTING=VALUE, such as --set grid.lam=0.2, runs.BLOCK.axes.SETTING="
     "[VALUES] or title=TEXT; as often as needed"},
    {NULL, NULL, NULL},
};

const cli_command cli_study_run = {
    .name = "study run",
    .summary = "run what is missing of a study, judge its claims",
    .about =
        "Runs every combination of settings that the file asks for and the store does not have,\n"
        "over threads or, under mpirun or srun, over ranks (of one thread each, unless --threads\n"
        "says more). Stopped at any moment, by whatever means, the same command goes on. The exit\n"
        "code is 1 if runs failed or a claim does not hold. Times go to terminals and into\n"
        "--json only, so that outputs can be compared.",
    .examples = "  finetti study run lengths.yaml --dry-run\n"
                "  finetti study run lengths.yaml --store lengths.db\n"
                "  finetti study run slr_training --full --set manifold.runs=1000\n"
                "  mpirun -n 64 finetti study run lengths.yaml\n"
                "  finetti study run lengths.yaml --shard 3/10 --store part3.db\n",
    .computes = true,
    .operands = {"FILE", "a study file (YAML), or the name of a study that comes with finetti", 1,
                 1, true},
    .words = words,
    .lists = lists,
    .ranks = true,
    .run = run,
};

/* ---- options -------------------------------------------------------------------------------- */

/* "3/10": part 3 of 10. */
static int read_shard(const char *text, fin_study_settings *settings)
{
    static const long long MOST = 1 << 30;
    char *end = NULL, *last = NULL;
    long long i = strtoll(text, &end, 10), n = 0;
    bool digits = text[0] >= '0' && text[0] <= '9';
    if (*end == '/' && end[1] >= '0' && end[1] <= '9')
        n = strtoll(end + 1, &last, 10);
    if (!digits || !last || *last || n < 1 || n > MOST || i < 1 || i > n)
        return cli_usage("--shard '%.40s' is not I/N, part I of N with 1 <= I <= N <= 2^30, such "
                         "as 1/10",
                         text);
    settings->shard = i - 1;
    settings->shards = n;
    return CLI_OK;
}

static int read_settings(cli_args *args, fin_study_settings *settings)
{
    const char *shard = cli_get(args, "shard"), *usual = getenv("FINETTI_STORE");
    fin_settings_defaults(&fin_study_table, settings, sizeof *settings);
    settings->threads = args->threads;
    settings->retry_failed = cli_get(args, "retry_failed") != NULL;
    if (!shard)
        return CLI_OK;
    if (cli_get(args, "dry_run"))
        return cli_usage("--dry-run lists all runs; --shard does not go with it");
    if (!cli_get(args, "store") && !(usual && *usual))
        return cli_usage("--shard needs a store of its own, such as --store part1.db; 'finetti "
                         "study merge' joins them");
    return read_shard(shard, settings);
}

/* ---- --dry-run ------------------------------------------------------------------------------ */

typedef struct listing {
    const fin_study *study;
    fin_store *store; /* NULL: there is none yet */
    study_varying varying;
    json_t *list;
    bool json;
    int64_t count[3]; /* by state */
} listing;

static fin_status note_state(void *user, const fin_run_row *row, fin_error *err)
{
    (void)err;
    *(fin_state *)user = row->state;
    return FIN_OK;
}

static void list_run(listing *l, int64_t i, const fin_plan *plan, fin_state state)
{
    const fin_run_row row = {.position = i,
                             .block = plan->block,
                             .command = plan->command,
                             .hash = plan->hash,
                             .state = state,
                             .settings = plan->settings};
    l->count[state]++;
    json_array_append_new(l->list, study_run_row(&row, &l->varying, l->json));
}

/* pass 0 finds out what varies, pass 1 prints. */
static fin_status list_runs(listing *l, int pass, fin_error *err)
{
    fin_plan plan;
    int64_t count = fin_study_run_count(l->study);
    for (int64_t i = 0; i < count; i++) {
        fin_state state = FIN_STATE_PLANNED;
        CLI_TRY(fin_study_get_run(l->study, i, &plan, err));
        if (pass == 0)
            CLI_TRY(study_varying_add(&l->varying, plan.block, plan.settings, err));
        if (pass == 1 && l->store) {
            fin_query query = {.hash = plan.hash};
            CLI_TRY(fin_store_runs(l->store, &query, note_state, &state, err));
        }
        if (pass == 1)
            list_run(l, i, &plan, state);
        if (cli_cancelled())
            return cli_status(err, FIN_ERR_CANCELLED, "cancelled");
    }
    return FIN_OK;
}

static int dry_run(cli_args *args, const fin_study *study)
{
    listing l = {.study = study, .list = json_array(), .json = cli_get(args, "json")};
    fin_error err = {FIN_OK, ""};
    fin_status status = FIN_OK;
    if (access(study_store(args), F_OK) == 0)
        status = study_open(args, FIN_STORE_READ, &l.store, &err);
    if (!status && !study_varying_create(&l.varying))
        status = cli_status_memory(&err, 0, "the list of runs");
    for (int pass = 0; pass < 2 && !status; pass++)
        status = list_runs(&l, pass, &err);
    int code = status ? cli_error(&err) : cli_show(args, json_incref(l.list), STUDY_RUNS_FORM);
    if (!code && !l.json) {
        printf("%lld run%s: %lld done, %lld failed, %lld to do\n",
               (long long)fin_study_run_count(study), fin_study_run_count(study) == 1 ? "" : "s",
               (long long)l.count[FIN_STATE_DONE], (long long)l.count[FIN_STATE_FAILED],
               (long long)l.count[FIN_STATE_PLANNED]);
        code = cli_flush();
    }
    study_varying_destroy(&l.varying);
    json_decref(l.list);
    fin_store_close(l.store);
    return code;
}

/* ---- running -------------------------------------------------------------------------------- */

static int print(cli_args *args, const fin_study *study, fin_store *store,
                 const study_outcome *outcome)
{
    bool fine = study_claims_hold(&outcome->claims, cli_get(args, "shard")) && !outcome->failed;
    fin_error err = {FIN_OK, ""};
    json_t *record = study_outcome_of(study, store, outcome, &err);
    if (!record)
        return cli_error(&err);
    json_object_set_new(record, "store", cli_json_text(study_store(args)));
    json_object_set_new(record, "holds", json_boolean(fine));
    int code = cli_show(args, record,
                        STUDY_OUTCOME_FORM "[{?claims}\n" STUDY_CLAIMS_FORM STUDY_SUM_FORM "]");
    return code || fine ? code : CLI_FAILED;
}

static int conduct(cli_args *args, fin_study *study, const fin_study_settings *settings)
{
    fin_store *store;
    study_outcome outcome = {.failed = 0};
    fin_error err = {FIN_OK, ""};
    fin_status status = study_open(args, FIN_STORE_CREATE, &store, &err);
    if (!status)
        status = study_conduct(study, store, settings, &outcome, &err);
    int code =
        status == FIN_ERR_CANCELLED
            ? cli_stopped("cancelled; what is finished is in %.300s, the same command goes on",
                          study_store(args))
        : status ? cli_error(&err)
                 : print(args, study, store, &outcome);
    study_outcome_clear(&outcome);
    fin_store_close(store);
    return code;
}

static int lead(cli_args *args, const fin_study_settings *settings)
{
    fin_study_changes changes = {.full = cli_get(args, "full") != NULL};
    fin_study *study = NULL;
    fin_error err = {FIN_OK, ""};
    changes.set = cli_list(args, "set", &changes.count);
    fin_status status = study_read(args->operand[0], &changes, &study, &err);
    if (!status)
        status = fin_report_check(study, &err);
    int code = status                     ? cli_error(&err)
               : cli_get(args, "dry_run") ? dry_run(args, study)
                                          : conduct(args, study, settings);
    fin_study_destroy(study);
    return code;
}

static int run(cli_args *args)
{
    fin_study_settings settings;
    CLI_TRY(read_settings(args, &settings)); /* on every rank */
    if (fin_rank() != 0)
        return study_follow(&settings);
    int code = lead(args, &settings);
    study_release();
    return code;
}
