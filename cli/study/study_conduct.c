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
    fin_status status = fin_ranks() > 1 ? fin_study_share(&study, err) : FIN_OK;
    if (!status)
        status = fin_study_conduct(study, store, settings, &calls, &outcome->count, err);
    if (!status)
        last_line(fin_study_name(study), &outcome->count);
    outcome->failed = outcome->count.failed_in_store;
    return status;
}

void study_outcome_clear(study_outcome *outcome)
{
    json_decref(outcome->claims.list);
    outcome->claims.list = NULL;
}

json_t *study_outcome_json(const fin_study *study, const study_outcome *outcome)
{
    const fin_study_count *count = &outcome->count;
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:O}", "study", fin_study_name(study), "title",
                     fin_study_title(study), "runs", (json_int_t)count->planned, "present",
                     (json_int_t)count->present, "done", (json_int_t)count->done, "failed",
                     (json_int_t)outcome->failed, "claims", outcome->claims.list);
}

void study_outcome_print(const study_outcome *outcome)
{
    const fin_study_count *count = &outcome->count;
    char text[64];
    printf("%s: %lld there before, %lld done now",
           study_plural(count->planned, "run", text, sizeof text), (long long)count->present,
           (long long)count->done);
    if (outcome->failed)
        printf(", %lld failed", (long long)outcome->failed);
    if (isatty(STDOUT_FILENO))
        printf(", %.3g s", count->seconds);
    putchar('\n');
}

/* ---- what failed ---------------------------------------------------------------------------- */

enum { SHOWN = 5 };

static fin_status print_failure(void *user, const fin_run_row *run, fin_error *err)
{
    static const int widths[] = {8, 12, 16, 0};
    int *count = user;
    char hash[13];
    (void)err;
    snprintf(hash, sizeof hash, "%.12s", run->hash);
    const char *cells[] = {"failed", hash, run->block ? run->block : "",
                           run->reason ? run->reason : ""};
    if ((*count)++ < SHOWN)
        study_print_cells(cells, widths, 4);
    return FIN_OK;
}

fin_status study_print_failures(fin_store *store, const char *study, fin_error *err)
{
    fin_query query = {.study = study, .state = FIN_STATE_FAILED};
    int count = 0;
    fin_status status = fin_store_runs(store, &query, print_failure, &count, err);
    if (count > SHOWN)
        printf("and %d more: finetti study ls %s --state failed\n", count - SHOWN, study);
    return status;
}
