/* Running studies, alone or as one of many ranks.
 *
 * Rank 0 reads files, opens the store and prints; the others only compute. They learn what to do
 * from fin_study_share, so a rank 0 that gives up must still call study_release: a rank that waits
 * for a study never ends. */
#include "study/study.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void study_release(void)
{
    fin_study *none = NULL;
    fin_error err;
    if (fin_ranks() > 1)
        fin_study_share(&none, &err);
}

int study_follow(const fin_study_settings *settings)
{
    for (;;) {
        fin_study *study = NULL;
        fin_study_count count;
        fin_error err = {FIN_OK, ""};
        if (fin_study_share(&study, &err))
            continue; /* it failed on every rank; rank 0 tells, and says what comes next */
        if (!study)
            return CLI_OK;
        /* What goes wrong here is rank 0's to tell; there may be another study. */
        fin_study_run(study, NULL, settings, NULL, NULL, &count, &err);
        fin_study_destroy(study);
    }
}

/* ---- rank 0 --------------------------------------------------------------------------------- */

/* A log gets its last line; on a terminal the line that was drawn goes. */
static void last_line(const char *study, const fin_study_count *count)
{
    cli_progress_end();
    if (!isatty(STDERR_FILENO))
        fprintf(stderr, "%.60s: %lld of %lld runs, %lld failed, %.1f s\n", study,
                (long long)(count->present + count->done), (long long)count->planned,
                (long long)count->failed, count->seconds);
}

fin_status study_conduct(fin_study *study, fin_store *store, const fin_study_settings *settings,
                         study_outcome *outcome, fin_error *err)
{
    memset(outcome, 0, sizeof *outcome);
    outcome->claims.list = json_array();
    fin_study_calls calls = {cli_progress_study, study_claims_add, &outcome->claims};
    CLI_TRY(fin_ranks() > 1 ? fin_study_share(&study, err) : FIN_OK);
    CLI_TRY(fin_study_conduct(study, store, settings, &calls, &outcome->count, err));
    last_line(fin_study_name(study), &outcome->count);
    outcome->failed = outcome->count.failed_in_store;
    return FIN_OK;
}

void study_outcome_clear(study_outcome *outcome)
{
    json_decref(outcome->claims.list);
    outcome->claims.list = NULL;
}

static fin_status add_failure(void *user, const fin_run_row *run, fin_error *err)
{
    enum { SHOWN = 5 };
    json_t *record = user, *list = json_object_get(record, "failures");
    json_int_t more = json_integer_value(json_object_get(record, "more_failures"));
    (void)err;
    if (json_array_size(list) < SHOWN)
        json_array_append_new(list, json_pack("{s:s, s:o, s:o}", "hash", run->hash, "block",
                                              cli_json_text(run->block ? run->block : ""), "reason",
                                              cli_json_text(run->reason ? run->reason : "")));
    else
        json_object_set_new(record, "more_failures", json_integer(more + 1));
    return FIN_OK;
}

json_t *study_outcome_of(const fin_study *study, fin_store *store, const study_outcome *outcome,
                         fin_error *err)
{
    const fin_study_count *count = &outcome->count;
    fin_query query = {.study = fin_study_name(study), .state = FIN_STATE_FAILED};
    json_t *record = json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:O, s:o, s:[]}", "study", fin_study_name(study),
        "title", fin_study_title(study), "runs", cli_int(count->planned), "present",
        cli_int(count->present), "done", cli_int(count->done), "failed", cli_int(outcome->failed),
        "claims_at_full_size", cli_int(count->claims_left_out), "claims", outcome->claims.list,
        "sum", study_claims_sum(&outcome->claims), "failures");
    if (isatty(STDOUT_FILENO))
        cli_put(record, "seconds", count->seconds, NULL);
    if (record && outcome->failed && fin_store_runs(store, &query, add_failure, record, err)) {
        json_decref(record);
        return NULL;
    }
    if (!record)
        cli_status_memory(err, 1e5, "the claims");
    return record;
}
