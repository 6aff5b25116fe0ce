/* study: an experiment as data.
 *
 * A study file (YAML) says which commands to run with which settings and what theory claims about
 * the outcome. Its runs go over threads, or over the ranks of an MPI job, into a store: one SQLite
 * file. A run is known by the hash of its settings, so running a study again does what is missing,
 * and a store that was left by a kill -9 is as good as any other. Numbers, claims and figures are
 * read from the store alone. docs/studies.md describes the file and the tables. */
#ifndef FINETTI_STUDY_H
#define FINETTI_STUDY_H

#include "finetti/store.h"

#ifdef __cplusplus
extern "C" {
#endif

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
FIN_API fin_status fin_study_read(const char *path, FIN_OR_NULL const fin_study_changes *changes,
                                  fin_study **out, fin_error *err);
/* The same from memory; messages call it `label`. */
FIN_API fin_status fin_study_parse(const char *text, size_t size, const char *label,
                                   FIN_OR_NULL const fin_study_changes *changes, fin_study **out,
                                   fin_error *err);
FIN_API void fin_study_destroy(fin_study *study); /* NULL is fine */

FIN_API const char *fin_study_name(const fin_study *study);
FIN_API const char *fin_study_title(const fin_study *study); /* "" if it has none */
FIN_API int64_t fin_study_run_count(const fin_study *study);
FIN_API int fin_study_claim_count(const fin_study *study);

FIN_API fin_status fin_study_get_run(const fin_study *study, int64_t i, fin_plan *out,
                                     fin_error *err);

/* The studies that come with the library: the papers. A name is NULL past the end. */
FIN_API int fin_shipped_count(void);
FIN_API const char *fin_shipped_name(int i);
FIN_API const char *fin_shipped_text(int i);

/* ---- ranks: many processes, on one machine or on many --------------------------------------- */

/* How ranks talk. The library knows no MPI: whoever starts processes that work together hands it
 * this table, and is handed it back in nothing but its calls, made by the thread of fin_ranks_start.
 * The module finetti_mpi.so, which the tool loads under mpirun or srun, is one, made by MPI.
 *
 * Calls that return a request begin something and come back at once; the bytes stay where they are
 * until test says that it is over. Messages of a tag (0 to 9) between two ranks keep their order. */
#define FIN_RANKS_VERSION 1
typedef struct fin_ranks_calls {
    int version;     /* FIN_RANKS_VERSION */
    int rank, ranks; /* the own number, from 0, and how many there are */
    uint64_t (*send)(int to, int tag, const void *bytes, int size);
    uint64_t (*receive)(int from, int tag, void *bytes, int size);
    uint64_t (*broadcast)(int from, void *bytes, int size); /* every rank calls it */
    uint64_t (*least)(const int *mine, int *least);         /* the same; the least of all ranks */
    int (*test)(uint64_t *request);                         /* 1: it is over */
    int (*probe)(int tag, int *from, int *size); /* 1: such a message waits to be received */
    void (*abort)(int code);                     /* ends all ranks; does not return */
    void (*end)(void);                           /* after this no other call is made */
} fin_ranks_calls;

/* What a module defines, under the name FIN_RANKS_JOIN: joins the others and fills in the table, whose
 * version the caller has set. A call of a program that was started alone makes it one rank. */
#define FIN_RANKS_JOIN "finetti_ranks_join"
typedef fin_status (*fin_ranks_join)(fin_ranks_calls *calls, fin_error *err);

/* From here on this process is a rank. calls (copied) NULL, or no call at all: one rank, number 0. Call
 * it first thing, on all ranks; _end last. */
FIN_API fin_status fin_ranks_start(FIN_OR_NULL const fin_ranks_calls *calls, fin_error *err);
FIN_API void fin_ranks_end(void);
FIN_API int fin_rank(void);
FIN_API int fin_ranks(void);

/* Every rank gets rank 0's study. Rank 0 gives its own, or NULL if it has none: then the others
 * get NULL too, and nobody waits. */
FIN_API fin_status fin_study_share(fin_study **study, fin_error *err);

/* Sums over all ranks in an order that depends on `blocks` alone, so that the sum has the same bits
 * for any number of ranks: a binary tree over the block numbers. A rank has the blocks that
 * fin_ranks_share gives it, in parts: (count, n), which is used as scratch. sum: (n), on every
 * rank. Fails if another rank has called fin_ranks_end instead, which gave up: after that, the own
 * fin_ranks_end ends all ranks (abort), because somebody may wait for ever. */
FIN_API void fin_ranks_share(int64_t blocks, int64_t *first, int64_t *count);
FIN_API fin_status fin_ranks_sum(int64_t blocks, int64_t n, double *parts, double *sum,
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
    int64_t failed_in_store; /* now or before; set by fin_study_conduct */
    int64_t claims_left_out; /* claims (families of them) that are asked at full size alone */
} fin_study_count;

/* Does what is missing of the study. Collective: every rank calls it, rank 0 with the store, the
 * others with NULL. A run that fails is recorded and no error of this call. settings NULL: the
 * defaults. */
FIN_API fin_status fin_study_run(const fin_study *study, fin_store *store,
                                 const fin_study_settings *settings,
                                 FIN_OR_NULL fin_study_report report, void *user,
                                 FIN_OR_NULL fin_study_count *count, fin_error *err);

/* What fin_study_conduct calls with `user`; each may be NULL. */
typedef struct fin_study_calls {
    fin_study_report news;
    fin_status (*claim)(void *user, const fin_claim *claim, fin_error *err);
    void *user;
} fin_study_calls;

/* From end to end: does what is missing, judges every claim, keeps the verdicts, and hands each claim
 * on. Of runs that were cut short, what is finished is judged all the same, and the status is that of
 * the runs. calls may be NULL; count may not. */
FIN_API fin_status fin_study_conduct(const fin_study *study, fin_store *store,
                                     const fin_study_settings *settings,
                                     FIN_OR_NULL const fin_study_calls *calls,
                                     fin_study_count *count, fin_error *err);

/* ---- claims --------------------------------------------------------------------------------- */

/* Judges every claim of a study in the store by what the store holds, and keeps the verdicts. study
 * NULL: of all studies. */
FIN_API fin_status fin_store_judge(fin_store *store, FIN_OR_NULL const char *study, fin_error *err);
/* All claims of a study: as last judged, and those that nobody has judged yet, because runs were cut
 * short, as untested. */
FIN_API fin_status fin_store_verdicts(fin_store *store, FIN_OR_NULL const char *study,
                                      fin_status (*row)(void *user, const fin_claim *claim,
                                                        fin_error *err),
                                      void *user, fin_error *err);
#ifdef __cplusplus
}
#endif
#endif
