/* store: results in one SQLite file.
 *
 * What runs leave, the plans of studies, their claims. A run is in the file whole or not at all, whenever the
 * program is killed. docs/studies.md has the tables. */
#ifndef FINETTI_STORE_H
#define FINETTI_STORE_H

#include "finetti/command.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A run before it is run. Settings that do not fit together are a run too, one that will fail. */
typedef struct fin_plan {
    const char *block, *command;
    char hash[FIN_HASH_TEXT];         /* of the settings; hexadecimal */
    char settings[FIN_SETTINGS_TEXT]; /* canonical JSON: all settings, sorted, shortest numbers */
} fin_plan;

/* ---- stores --------------------------------------------------------------------------------- */

typedef struct fin_store fin_store;
enum { FIN_STORE_READ, FIN_STORE_WRITE, FIN_STORE_CREATE }; /* WRITE: must exist */

/* Refuses what is not a store of this schema, or of an older one that it can bring up to date,
 * with a message; it never changes a file that it refuses. */
FIN_API fin_status fin_store_open(const char *path, int how, fin_store **out, fin_error *err);
FIN_API void fin_store_close(fin_store *store); /* NULL is fine */
/* SQLite's integrity check and the foreign keys. FIN_ERR_FORMAT if something is wrong. */
FIN_API fin_status fin_store_check(fin_store *store, fin_error *err);

/* "planned" is what a store knows of a run that is not there yet. */
#define FIN_STATE_LIST(S)                                                                          \
    S(PLANNED, "planned")                                                                          \
    S(DONE, "done")                                                                                \
    S(FAILED, "failed")
typedef enum fin_state {
#define FIN_STATE_ENUM(name, text) FIN_STATE_##name,
    FIN_STATE_LIST(FIN_STATE_ENUM)
#undef FIN_STATE_ENUM
} fin_state;
FIN_API const char *fin_state_name(fin_state state);

/* ---- looking into a store ------------------------------------------------------------------- */

/* In all calls below, `row` is called for each answer in a fixed order; what it is given is
 * borrowed during the call; a status other than FIN_OK ends the loop and is returned. */

typedef struct fin_study_row {
    const char *name, *title, *source;
    int64_t planned, done, failed;
    int claims, held; /* judged claims that hold */
    double seconds;   /* of its runs, summed */
    int full;
} fin_study_row;
FIN_API fin_status fin_store_studies(fin_store *store,
                                     fin_status (*row)(void *user, const fin_study_row *study,
                                                       fin_error *err),
                                     void *user, fin_error *err);

/* Which runs: all fields may be NULL or 0. Runs come in the order of the study; without a study,
 * every run of the store, by hash. */
typedef struct fin_query {
    const char *study, *block, *command, *hash; /* hash: a prefix */
    const char *const *where;                   /* "lam=0.1", "L>=10", "form=softmax" */
    int where_count;
    int state;       /* 0: any; FIN_STATE_DONE, FIN_STATE_FAILED; -1: planned only */
    const char *has; /* the name of a scalar it must have */
} fin_query;

typedef struct fin_run_row {
    int64_t position; /* in the study; -1 without one */
    const char *block, *command, *hash, *settings;
    fin_state state;
    const char *reason; /* of a failure */
    const char *version, *kernel;
    double seconds;
} fin_run_row;
FIN_API fin_status fin_store_runs(fin_store *store, FIN_OR_NULL const fin_query *query,
                                  fin_status (*row)(void *user, const fin_run_row *run,
                                                    fin_error *err),
                                  void *user, fin_error *err);

/* All scalars of the runs that query selects, run by run (`run` as above), name by name. */
FIN_API fin_status fin_store_scalars(fin_store *store, FIN_OR_NULL const fin_query *query,
                                     fin_status (*row)(void *user, const fin_run_row *run,
                                                       const fin_scalar *scalar, fin_error *err),
                                     void *user, fin_error *err);

FIN_API fin_status fin_store_series(fin_store *store, FIN_OR_NULL const fin_query *query, int data,
                                    fin_status (*row)(void *user, const fin_run_row *run,
                                                      const fin_series *series, fin_error *err),
                                    void *user, fin_error *err);

/* Runs as a file: FILE.csv has a row per run (block, hash, settings, scalars and their errors),
 * FILE.npz also the series. Deterministic: no times in it, unless `times`. */
FIN_API fin_status fin_store_export(fin_store *store, FIN_OR_NULL const fin_query *query,
                                    const char *path, int times, fin_error *err);

typedef struct fin_merge_count {
    int64_t added, same, replaced; /* replaced: failed here, done there */
    int64_t studies;
} fin_merge_count;
/* Takes over the studies and runs of another store. A run that both have must be equal (the newer
 * version wins a difference only with `force`), else FIN_ERR_FORMAT and nothing is changed. */
FIN_API fin_status fin_store_merge(fin_store *store, const char *other, int force,
                                   FIN_OR_NULL fin_merge_count *count, fin_error *err);

/* What differs between two stores: runs in one only, scalars that are not equal. `other` NULL: no
 * such run there. */
typedef struct fin_difference {
    const char *study, *hash, *settings;
    const char *what;   /* "missing", "state", or the name of a scalar or series */
    double left, right; /* scalars; NaN: not there */
    int in_left, in_right;
} fin_difference;
FIN_API fin_status fin_store_diff(fin_store *left, fin_store *right, double tolerance,
                                  FIN_OR_NULL fin_status (*row)(void *user,
                                                                const fin_difference *difference,
                                                                fin_error *err),
                                  void *user, FIN_OR_NULL int64_t *count, fin_error *err);

typedef struct fin_gc_count {
    int64_t runs, studies, bytes;
} fin_gc_count;
/* Removes runs that no study plans, and the study `drop` (may be NULL), and returns the space. dry:
 * only counts. */
FIN_API fin_status fin_store_gc(fin_store *store, FIN_OR_NULL const char *drop, int dry,
                                FIN_OR_NULL fin_gc_count *count, fin_error *err);

/* What is going on, or was last, for someone who looks from outside. */
typedef struct fin_session_row {
    const char *study;
    int64_t total, done, failed;
    int ranks, threads;
    double seconds, left; /* of the session when it last spoke; left NaN: not known */
    double silent;        /* seconds since it spoke */
    int ended;            /* 1: it said that it was finished or cancelled */
    int alive;            /* 1: a process is at it; 0: none is; -1: this file system cannot tell */
} fin_session_row;
FIN_API fin_status fin_store_sessions(fin_store *store,
                                      fin_status (*row)(void *user, const fin_session_row *session,
                                                        fin_error *err),
                                      void *user, fin_error *err);

/* ---- claims ---------------------------------------------------------------------------------- */

#define FIN_VERDICT_LIST(V)                                                                        \
    V(UNTESTED, "untested")   /* runs are missing */                                               \
    V(HOLDS, "holds")         /* the 95 % interval lies inside what is expected */                 \
    V(FAILS, "fails")         /* outside */                                                        \
    V(UNDECIDED, "undecided") /* it lies on a bound, or nobody knows it; `needed` says more */
typedef enum fin_verdict {
#define FIN_VERDICT_ENUM(name, text) FIN_VERDICT_##name,
    FIN_VERDICT_LIST(FIN_VERDICT_ENUM)
#undef FIN_VERDICT_ENUM
        FIN_VERDICTS
} fin_verdict;
FIN_API const char *fin_verdict_name(fin_verdict verdict);

/* Whose claim it is: what a paper says, what was derived here, or what cannot fail but by a fault of
 * the code (its test against itself, or a theorem). Each is counted apart. */
#define FIN_KIND_LIST(K)                                                                           \
    K(PAPER, "paper", "papers")                                                                    \
    K(DERIVED, "derived", "derived")                                                               \
    K(CHECK, "check", "checks")
typedef enum fin_kind {
#define FIN_KIND_ENUM(name, text, title) FIN_KIND_##name,
    FIN_KIND_LIST(FIN_KIND_ENUM)
#undef FIN_KIND_ENUM
        FIN_KINDS
} fin_kind;
FIN_API const char *fin_kind_name(fin_kind kind);

typedef struct fin_claim {
    const char *study, *id, *statement, *source;
    const char *quantity;    /* what is measured, in words or as a formula */
    const char *expected;    /* "at most 5", "0.5 +- 0.001" */
    const char *figure;      /* "" if it has none */
    const char *how;         /* "share of 30 runs", "closed form", why it is untested */
    double value, low, high; /* low, high: 95 % interval; NaN if untested */
    fin_verdict verdict;
    fin_kind kind;
    const char *fails_if; /* what would make it fail; "" if the file does not say it */
    const char *known;    /* why it is known not to hold; "" if nothing is known */
    const char *needed;   /* if undecided: "about 4 times as many runs would decide it"; else "" */
} fin_claim;

/* Whether a verdict is as it should be: holds; or does not, and that is known. What is known not to
 * hold and does is not as it should be: the file is to be put right. */
FIN_API int fin_claim_fine(const fin_claim *claim);

/* The claims as last judged. */
FIN_API fin_status fin_store_claims(fin_store *store, FIN_OR_NULL const char *study,
                                    fin_status (*row)(void *user, const fin_claim *claim,
                                                      fin_error *err),
                                    void *user, fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
