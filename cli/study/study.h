/* study: what the commands around studies, stores and reports share. */
#ifndef CLI_STUDY_H
#define CLI_STUDY_H

#include "cli.h"

/* ---- stores and studies (study_store.c) ----------------------------------------------------- */

/* The row of a table of words that every such command has. */
#define STUDY_WORD_STORE                                                                           \
    {                                                                                              \
        "store", "FILE", "the store; default FINETTI_STORE, or finetti.db in this folder"          \
    }

extern const cli_word study_where[]; /* the list --where */

/* --store, or FINETTI_STORE, or finetti.db. */
const char *study_store(const cli_args *args);
/* Opens it: FIN_STORE_READ, _WRITE or _CREATE. */
fin_status study_open(const cli_args *args, int how, fin_store **store, fin_error *err);
/* A study file or, where there is no such file, a study that comes with the library. */
fin_status study_read(const char *name, const fin_study_changes *changes, fin_study **study,
                      fin_error *err);
/* FIN_ERR_ARGUMENT, with the nearest name, if the store has no such study. */
fin_status study_need(fin_store *store, const char *name, fin_error *err);
/* The runs that the study (NULL: every run), --block, --where and --state ask for. Returns an exit
 * code, after the message. Borrows from args. */
int study_query(const cli_args *args, const char *study, fin_query *query);

/* ---- runs (study_text.c) -------------------------------------------------------------------- */

/* Which settings differ between the runs of a block: these tell runs apart. Two passes: all runs
 * are added, then described. */
typedef struct study_varying {
    json_t *blocks; /* of each: its first settings, and the names that vary */
} study_varying;
bool study_varying_create(study_varying *v);
void study_varying_destroy(study_varying *v);
/* settings: canonical JSON. */
fin_status study_varying_add(study_varying *v, const char *block, const char *settings,
                             fin_error *err);
/* "L=10 lam=0.1". Returns buffer. */
char *study_varying_text(const study_varying *v, const char *block, const char *settings,
                         char *buffer, size_t size);
/* "L, lam": the names alone. Returns buffer. */
char *study_varying_names(const study_varying *v, const char *block, char *buffer, size_t size);
/* The settings in canonical JSON, or NULL. New reference. */
json_t *study_settings(const char *settings);
/* A run for a list: with its settings for JSON, else with those that vary. And the list: */
json_t *study_run_row(const fin_run_row *row, const study_varying *v, bool json);
#define STUDY_RUNS_FORM                                                                            \
    "[{*.|{%7,16,12,8,0|{position:7d}|{block}|{hash:.12s}|{state}|{varying}"                       \
    "[{?state=failed}{?reason}[{?varying}  ]({reason})]}}]"

/* Prints the run whose hash begins so. Returns an exit code (study_show_run.c). */
int study_show_run(cli_args *args, fin_store *store, const char *hash);

/* ---- claims (study_claims.c) ---------------------------------------------------------------- */

typedef struct study_claims {
    json_t *list; /* an object a claim */
    int total, count[FIN_KINDS][FIN_VERDICTS];
    int known, fine; /* known not to hold; as they should be (fin_claim_fine) */
} study_claims;
/* One more; user is the study_claims, whose list is an array. */
fin_status study_claims_add(void *user, const fin_claim *claim, fin_error *err);
/* All claims of a study as last judged; untested where nobody has. *claims must be zero; json_decref(list) in any case. */
fin_status study_claims_read(fin_store *store, const char *study, study_claims *claims,
                             fin_error *err);
/* How many there are: of each kind, by verdict. */
json_t *study_claims_sum(const study_claims *claims);
int study_claims_count(const study_claims *claims, fin_verdict verdict);
void study_claims_join(study_claims *sum, const study_claims *more);
/* The members claims and sum of a record. Checks that hold are counted, and not listed. */
#define STUDY_CLAIMS_FORM                                                                          \
    "[{?claims}{%0,9,8,52,28,24||verdict|kind|claim|measured \\[95 % interval\\]|expected}"        \
    "{*claims|[{?kind=check}{?verdict=holds}{!known}|{%0,9,8,52,28,24||"                           \
    "[{?verdict=fails}FAILS|{verdict}]|{kind}|{statement}|[{?is_time}{!tty}(a time)|{measured}]|"  \
    "{expected}}[{?needed}{%20,0||{needed}}][{?known}{%20,0||"                                     \
    "[{?verdict=holds}HOLDS, though it is known not to: {known}|known: {known}]}]]}]"
#define STUDY_SUM_FORM                                                                             \
    "{*sum.kinds|{kind}: {holds} of {total} [{?holds=1}holds|hold][{?fails}, {fails} "             \
    "[{?fails=1}FAILS|FAIL]][{?undecided}, {undecided} undecided]"                                 \
    "[{?untested}, {untested} untested]\n}[{?sum.known}{sum.known} known not to hold\n]"
/* Whether all is well: every claim holds, or is known not to. Untested ones count as bad unless they are
 * to be expected. */
bool study_claims_hold(const study_claims *claims, bool untested_is_fine);

/* ---- running (study_conduct.c) -------------------------------------------------------------- */

/* Under mpirun all ranks come here. Rank 0 conducts one study after the other and then releases the
 * others, also when nothing came of it; the others follow. */
typedef struct study_outcome {
    fin_study_count count;
    int64_t failed; /* runs of the study that have failed, now or before */
    study_claims claims;
} study_outcome;
/* Runs what is missing, judges the claims. *outcome need not be initialised; study_outcome_clear
 * in any case. */
fin_status study_conduct(fin_study *study, fin_store *store, const fin_study_settings *settings,
                         study_outcome *outcome, fin_error *err);
void study_outcome_clear(study_outcome *outcome);
void study_release(void);
int study_follow(const fin_study_settings *settings);
/* {"study": ..., "title": ..., "runs": ..., "claims": [...]}, with a few of the failed runs and their
 * reasons; NULL: see err. "40 runs: 28 cached, 12 computed, 1 failed" and, to a terminal, the
 * time: */
json_t *study_outcome_of(const fin_study *study, fin_store *store, const study_outcome *outcome,
                         fin_error *err);
#define STUDY_OUTCOME_FORM                                                                         \
    "{study}  {title}\n{runs#run}: {present} cached, {done} computed"                              \
    "[{?failed}, {failed} failed][{?tty}, {seconds:.3g} s]\n"                                      \
    "[{*failures|{%8,12,16,0|failed|{hash:.12s}|{block}|{reason}}}]"                               \
    "[{?more_failures}and {more_failures} more: finetti study ls {study} --state failed\n]"        \
    "[{?claims_at_full_size}{claims_at_full_size} more "                                           \
    "[{?claims_at_full_size=1}claim is|claims are] asked with --full alone\n]"

#endif
