/* study: an experiment as data.
 *
 * A study file (YAML) says which commands to run with which settings and what theory claims about
 * the outcome. Its runs go over threads, or over the ranks of an MPI job, into a store: one SQLite
 * file. A run is known by the hash of its settings, so running a study again does what is missing,
 * and a store that was left by a kill -9 is as good as any other. Numbers, claims and figures are
 * read from the store alone. docs/studies.md describes the file and the tables. */
#ifndef FINETTI_STUDY_H
#define FINETTI_STUDY_H

#include "finetti/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- commands that a study can run ---------------------------------------------------------- */

/* "risk", "train", ...: the table of commands. A name is NULL past the end. */
FIN_API int fin_job_count(void);
FIN_API const char *fin_job_name(int i);
FIN_API const char *fin_job_summary(int i);
/* What a run of this command leaves: calls `row` with the name and meaning of every scalar and
 * series. */
FIN_API void fin_job_outputs(int i, void (*row)(void *user, const char *name, const char *meaning),
                             void *user);

/* ---- study files ---------------------------------------------------------------------------- */

typedef struct fin_study fin_study;

/* What the file alone does not say. Borrowed during the call, kept as a copy. */
typedef struct fin_study_changes {
    const char *const *set; /* "title=...", "runs.manifold.set.lam=0.2": path=value */
    int count;
    int full; /* the sizes under `full:` instead of the quick ones */
} fin_study_changes;

/* Reads and checks a study; messages say file, line and column and the nearest valid name. changes
 * may be NULL. On failure *out is NULL. */
FIN_API fin_status fin_study_read(const char *path, const fin_study_changes *changes,
                                  fin_study **out, fin_error *err);
/* The same from memory; messages call it `label`. */
FIN_API fin_status fin_study_parse(const char *text, size_t size, const char *label,
                                   const fin_study_changes *changes, fin_study **out,
                                   fin_error *err);
FIN_API void fin_study_destroy(fin_study *study); /* NULL is fine */

FIN_API const char *fin_study_name(const fin_study *study);
FIN_API const char *fin_study_title(const fin_study *study); /* "" if it has none */
FIN_API int64_t fin_study_run_count(const fin_study *study);
FIN_API int fin_study_claim_count(const fin_study *study);

enum { FIN_HASH_TEXT = 33, FIN_SETTINGS_TEXT = 8192 };

/* A run before it is run. Settings that do not fit together are a run too, one that will fail. */
typedef struct fin_plan {
    const char *block, *command;
    char hash[FIN_HASH_TEXT];         /* of the settings; hexadecimal */
    char settings[FIN_SETTINGS_TEXT]; /* canonical JSON: all settings, sorted, shortest numbers */
} fin_plan;
FIN_API fin_status fin_study_get_run(const fin_study *study, int64_t i, fin_plan *out,
                                     fin_error *err);

/* The studies that come with the library: the papers. A name is NULL past the end. */
FIN_API int fin_shipped_count(void);
FIN_API const char *fin_shipped_name(int i);
FIN_API const char *fin_shipped_text(int i);

/* ---- ranks: many processes, on one machine or on many --------------------------------------- */

/* Joins the MPI job this process was started in (mpirun, srun). Alone, or built without MPI, it
 * does nothing: one rank, number 0. Call it first thing; _end last. */
FIN_API fin_status fin_ranks_start(fin_error *err);
FIN_API void fin_ranks_end(void);
FIN_API int fin_rank(void);
FIN_API int fin_ranks(void);
FIN_API int fin_ranks_built(void); /* 1 if this library was built with MPI */

/* Every rank gets rank 0's study. Rank 0 gives its own, or NULL if it has none: then the others
 * get NULL too, and nobody waits. */
FIN_API fin_status fin_study_share(fin_study **study, fin_error *err);

/* Sums over all ranks in an order that depends on `blocks` alone, so that the sum has the same bits
 * for any number of ranks: a binary tree over the block numbers. A rank has the blocks that
 * fin_ranks_share gives it, in parts: (count, n), which is used as scratch. sum: (n), on every
 * rank. Fails if another rank has called fin_ranks_end instead, which gave up: after that, the own
 * fin_ranks_end ends the whole job (MPI_Abort), because somebody may wait for ever. */
FIN_API void fin_ranks_share(int64_t blocks, int64_t *first, int64_t *count);
FIN_API fin_status fin_ranks_sum(int64_t blocks, int64_t n, double *parts, double *sum,
                                 fin_error *err);

/* ---- stores --------------------------------------------------------------------------------- */

typedef struct fin_store fin_store;
enum { FIN_STORE_READ, FIN_STORE_WRITE, FIN_STORE_CREATE }; /* WRITE: must exist */

/* Refuses what is not a store of this schema, or of an older one that it can bring up to date,
 * with a message; it never changes a file that it refuses. */
FIN_API fin_status fin_store_open(const char *path, int how, fin_store **out, fin_error *err);
FIN_API void fin_store_close(fin_store *store); /* NULL is fine */
/* SQLite's integrity check and the foreign keys. FIN_ERR_FORMAT if something is wrong. */
FIN_API fin_status fin_store_check(fin_store *store, fin_error *err);

/* How a number came about. */
#define FIN_HOW_LIST(H)                                                                            \
    H(CLOSED, "closed form")                                                                       \
    H(QUADRATURE, "quadrature") /* error: of the quadrature */                                     \
    H(SIMULATION, "simulation") /* error: the standard error */                                    \
    H(SHARE, "share of runs")   /* of `samples` runs */                                            \
    H(RUNS, "over runs")        /* a statistic of `samples` runs */                                \
    H(CLOCK, "clock")           /* a time: differs from machine to machine */                      \
    H(DERIVED, "derived")       /* from numbers of more than one kind */
typedef enum fin_how {
#define FIN_HOW_ENUM(name, text) FIN_HOW_##name,
    FIN_HOW_LIST(FIN_HOW_ENUM)
#undef FIN_HOW_ENUM
        FIN_HOW_COUNT
} fin_how;
FIN_API const char *fin_how_name(fin_how how);

typedef struct fin_scalar {
    const char *name;
    double value, error; /* error: 0 if it is exact */
    fin_how how;
    int64_t samples; /* 0 where it does not apply */
} fin_scalar;

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
FIN_API fin_status fin_store_runs(fin_store *store, const fin_query *query,
                                  fin_status (*row)(void *user, const fin_run_row *run,
                                                    fin_error *err),
                                  void *user, fin_error *err);

/* All scalars of the runs that query selects, run by run (`run` as above), name by name. */
FIN_API fin_status fin_store_scalars(fin_store *store, const fin_query *query,
                                     fin_status (*row)(void *user, const fin_run_row *run,
                                                       const fin_scalar *scalar, fin_error *err),
                                     void *user, fin_error *err);

typedef struct fin_series {
    const char *name;
    fin_dtype dtype;
    int ndim;
    int64_t shape[4];
    const void *data; /* NULL from fin_store_series with data = 0 */
    int64_t stored;   /* bytes in the file */
} fin_series;
FIN_API fin_status fin_store_series(fin_store *store, const fin_query *query, int data,
                                    fin_status (*row)(void *user, const fin_run_row *run,
                                                      const fin_series *series, fin_error *err),
                                    void *user, fin_error *err);

/* Runs as a file: FILE.csv has a row per run (block, hash, settings, scalars and their errors),
 * FILE.npz also the series. Deterministic: no times in it, unless `times`. */
FIN_API fin_status fin_store_export(fin_store *store, const fin_query *query, const char *path,
                                    int times, fin_error *err);

typedef struct fin_merge_count {
    int64_t added, same, replaced; /* replaced: failed here, done there */
    int64_t studies;
} fin_merge_count;
/* Takes over the studies and runs of another store. A run that both have must be equal (the newer
 * version wins a difference only with `force`), else FIN_ERR_FORMAT and nothing is changed. */
FIN_API fin_status fin_store_merge(fin_store *store, const char *other, int force,
                                   fin_merge_count *count, fin_error *err);

/* What differs between two stores: runs in one only, scalars that are not equal. `other` NULL: no
 * such run there. */
typedef struct fin_difference {
    const char *study, *hash, *settings;
    const char *what;   /* "missing", "state", or the name of a scalar or series */
    double left, right; /* scalars; NaN: not there */
    int in_left, in_right;
} fin_difference;
FIN_API fin_status fin_store_diff(fin_store *left, fin_store *right, double tolerance,
                                  fin_status (*row)(void *user, const fin_difference *difference,
                                                    fin_error *err),
                                  void *user, int64_t *count, fin_error *err);

typedef struct fin_gc_count {
    int64_t runs, studies, bytes;
} fin_gc_count;
/* Removes runs that no study plans, and the study `drop` (may be NULL), and returns the space. dry:
 * only counts. */
FIN_API fin_status fin_store_gc(fin_store *store, const char *drop, int dry, fin_gc_count *count,
                                fin_error *err);

/* ---- running -------------------------------------------------------------------------------- */

#define FIN_STUDY_FIELDS(F, C)                                                                     \
    F(int64_t, threads, FIN_AUTO_INT, 1, 4096,                                                     \
      "threads of a process; auto = FINETTI_THREADS or all processors, under MPI 1 a rank; no "    \
      "result depends on it")                                                                      \
    F(int64_t, shard, 0, 0, INT64_C(1) << 30, "this part of the runs, counted from 0")             \
    F(int64_t, shards, 1, 1, INT64_C(1) << 30, "parts that the runs are cut into")                 \
    F(int64_t, retry_failed, 0, 0, 1, "1: runs that failed are run again")

typedef struct fin_study_settings {
    FIN_STUDY_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fin_study_settings;
FIN_API extern const fin_settings fin_study_table;

/* Called on rank 0, from the thread that made the call, several times a second. Non-zero cancels:
 * runs in flight are dropped, all others are in the store. */
typedef struct fin_study_news {
    const char *study;
    int64_t total;        /* runs to do now, those that were there already not counted */
    int64_t done, failed; /* of them; failed ones are done too */
    int64_t running;
    double seconds; /* since the start */
    double left;    /* expected; NaN: not known yet */
} fin_study_news;
typedef int (*fin_study_report)(void *user, const fin_study_news *news);

typedef struct fin_study_count {
    int64_t planned, present, done, failed; /* present: before; done: now, failed included */
    double seconds;
} fin_study_count;

/* Does what is missing of the study. Collective: every rank calls it, rank 0 with the store, the
 * others with NULL. A run that fails is recorded and no error of this call. settings NULL: the
 * defaults. */
FIN_API fin_status fin_study_run(const fin_study *study, fin_store *store,
                                 const fin_study_settings *settings, fin_study_report report,
                                 void *user, fin_study_count *count, fin_error *err);

/* What is going on, or was last, for someone who looks from outside. */
typedef struct fin_session_row {
    const char *study;
    int64_t total, done, failed;
    int ranks, threads;
    double seconds, left; /* of the session when it last spoke; left NaN: not known */
    double silent;        /* seconds since it spoke */
    int ended;            /* 1: it said that it was finished or cancelled */
} fin_session_row;
FIN_API fin_status fin_store_sessions(fin_store *store,
                                      fin_status (*row)(void *user, const fin_session_row *session,
                                                        fin_error *err),
                                      void *user, fin_error *err);

/* ---- claims --------------------------------------------------------------------------------- */

#define FIN_VERDICT_LIST(V)                                                                        \
    V(UNTESTED, "untested") /* runs are missing */                                                 \
    V(HOLDS, "holds")                                                                              \
    V(FAILS, "fails")                                                                              \
    V(VAGUE, "vague") /* the interval is wider than the claim's `precision` */
typedef enum fin_verdict {
#define FIN_VERDICT_ENUM(name, text) FIN_VERDICT_##name,
    FIN_VERDICT_LIST(FIN_VERDICT_ENUM)
#undef FIN_VERDICT_ENUM
} fin_verdict;
FIN_API const char *fin_verdict_name(fin_verdict verdict);

typedef struct fin_claim {
    const char *study, *id, *statement, *source;
    const char *quantity;    /* what is measured, in words or as a formula */
    const char *expected;    /* "at most 5", "0.5 +- 0.001" */
    const char *figure;      /* "" if it has none */
    const char *how;         /* "share of 30 runs", "closed form", why it is untested */
    double value, low, high; /* low, high: 95 % interval; NaN if untested */
    fin_verdict verdict;
} fin_claim;

/* Judges every claim of a study in the store by what the store holds, and keeps the verdicts. study
 * NULL: of all studies. */
FIN_API fin_status fin_store_judge(fin_store *store, const char *study, fin_error *err);
/* All claims of a study: as last judged, and those that nobody has judged yet, because runs were cut
 * short, as untested. */
FIN_API fin_status fin_store_verdicts(fin_store *store, const char *study,
                                      fin_status (*row)(void *user, const fin_claim *claim,
                                                        fin_error *err),
                                      void *user, fin_error *err);
/* The claims as last judged. */
FIN_API fin_status fin_store_claims(fin_store *store, const char *study,
                                    fin_status (*row)(void *user, const fin_claim *claim,
                                                      fin_error *err),
                                    void *user, fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
