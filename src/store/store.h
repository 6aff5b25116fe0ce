/* Private face of the store: what its files share.
 *
 *     store.c         open, close, check; the tables
 *     store_lock.c    one pass of a study at a time
 *     store_sql.c     statements, transactions, texts and numbers of a row, SQLite's failures in
 *                     our words
 *     store_blob.c    a series as bytes and back
 *     store_write.c   finished runs;  store_plan.c: plans, sessions, claims
 *     store_where.c   conditions on settings and scalars
 *     store_cursor.c  the runs that a query selects, one after the other;  store_select.c: which
 *                     they are;  store_fit.c: does a run fit?  store_scan.c: all runs by hash
 *     store_query.c   fin_store_runs, _scalars, _series;  store_sheet.c: a run's scalars by name
 *     store_list.c    studies, sessions, claims
 *     store_compare.c are two runs the same?  store_merge.c, store_diff.c, store_gc.c
 *     export.c, export_npz.c
 *
 * SQL is text of ours alone: whatever comes from outside is bound to a parameter. What comes out
 * of the file is looked at before it is used, for the file may have been made by anybody. */
#ifndef FINI_STORE_H
#define FINI_STORE_H

#include "store/done.h"

#include <sqlite3.h>
#include <zlib.h>

enum {
    FINI_STORE_SCHEMA = 1,
    FINI_STORE_APPLICATION = 0x46494e45, /* "FINE" */
    FINI_STORE_WAIT = 10000,             /* milliseconds for another writer to end */
    FINI_STORE_TEXT = 1 << 20,           /* bytes of any text in the file */
    FINI_STORE_NAMES = 256               /* remembered with their numbers */
};

/* Statements of the writing side, prepared once. */
#define FINI_SQL_LIST(S)                                                                           \
    S(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    S(COMMIT, "COMMIT")                                                                            \
    S(ROLLBACK, "ROLLBACK")                                                                        \
    S(NAME_FIND, "SELECT id FROM names WHERE name = ?1")                                           \
    S(NAME_ADD, "INSERT INTO names(name) VALUES(?1)")                                              \
    S(RUN_ADD,                                                                                     \
      "INSERT INTO runs(hash, command, settings, seed, state, reason, version, kernel, seconds, "  \
      "finished) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)")                                 \
    S(RUN_CHANGE,                                                                                  \
      "UPDATE runs SET state = ?2, reason = ?3, version = ?4, kernel = ?5, seconds = ?6, "         \
      "finished = ?7 WHERE id = ?1")                                                               \
    S(RUN_FIND, "SELECT id, state, settings FROM runs WHERE hash = ?1")                            \
    S(RUN_DELETE, "DELETE FROM runs WHERE id = ?1")                                                \
    S(SCALARS_DELETE, "DELETE FROM scalars WHERE run_id = ?1")                                     \
    S(SERIES_DELETE, "DELETE FROM series WHERE run_id = ?1")                                       \
    S(SCALAR_ADD, "INSERT INTO scalars(name_id, run_id, value, error, how, samples) "              \
                  "VALUES(?1, ?2, ?3, ?4, ?5, ?6)")                                                \
    S(SERIES_ADD,                                                                                  \
      "INSERT INTO series(run_id, name_id, dtype, shape, data) VALUES(?1, ?2, ?3, ?4, ?5)")        \
    S(PLAN_ADD, "INSERT INTO plan(study_id, position, block, hash) VALUES(?1, ?2, ?3, ?4)")        \
    S(PLAN_CUT, "DELETE FROM plan WHERE study_id = ?1 AND position >= ?2")                         \
    S(CLAIM_ADD,                                                                                   \
      "INSERT INTO claims VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)")         \
    S(SESSION_SAY,                                                                                 \
      "UPDATE sessions SET spoke = ?2, ended = ?3, total = ?4, done = ?5, failed = ?6, "           \
      "ranks = ?7, threads = ?8, seconds = ?9, left = ?10, study = ?11 WHERE id = ?1")

typedef enum fini_sql {
#define FINI_SQL_ENUM(name, text) FINI_SQL_##name,
    FINI_SQL_LIST(FINI_SQL_ENUM)
#undef FINI_SQL_ENUM
        FINI_SQL_COUNT
} fini_sql;

struct fin_store {
    sqlite3 *db;
    sqlite3_stmt *statements[FINI_SQL_COUNT]; /* NULL until they are needed */
    bool writes;                              /* it may be written to */
    char shown[200];                          /* the path, for messages */
    struct {
        char *name; /* fini_alloc */
        int64_t id;
    } names[FINI_STORE_NAMES];
    int name_count, name_next; /* next: where the next question is likely to find its answer */
    z_stream deflate;
    bool deflates; /* the stream is there */
    /* store_lock.c */
    fin_store *next;       /* of all that this process has open */
    uint64_t device, file; /* which file it is */
    int lock;              /* descriptor of the file that holds our locks, or -1 */
};

/* ---- store_lock.c ---------------------------------------------------------------------------- */

/* A pass of this study, for as long as it takes; FIN_ERR_IO if there is one already. Where the
 * system or the file system has no such locks, nothing is locked. */
fin_status fini_store_lock(fin_store *store, const char *study, fin_error *err);
/* Against passes of all studies. */
fin_status fini_store_lock_all(fin_store *store, fin_error *err);
void fini_store_unlock(fin_store *store); /* all of them */
/* The list of open stores: between lock and unlock a file may be looked at that is not in it. */
void fini_stores_lock(void);
void fini_stores_unlock(void);
bool fini_stores_have(uint64_t device, uint64_t file);
void fini_stores_add(fin_store *store);    /* with the list locked */
void fini_stores_remove(fin_store *store); /* after SQLite has closed it */

/* ---- store_sql.c ----------------------------------------------------------------------------- */

/* "cannot <action> the store 'x': ..." from what SQLite answered. */
fin_status fini_store_fail(fin_store *store, int code, const char *action, fin_error *err);
/* "the store 'x' is damaged: ..." */
fin_status fini_store_damaged(const fin_store *store, fin_error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* An unknown name: FIN_ERR_ARGUMENT with the nearest of the names in the first column of sql. */
fin_status fini_store_unknown(fin_store *store, const char *kind, const char *name, const char *sql,
                              int64_t parameter, fin_error *err);

fin_status fini_sql_prepare(fin_store *store, const char *sql, sqlite3_stmt **out, fin_error *err);
/* A statement of the list, ready for its parameters. */
fin_status fini_sql_get(fin_store *store, fini_sql which, sqlite3_stmt **out, fin_error *err);
/* *row: there is one. A statement that has ended is reset. */
fin_status fini_sql_step(fin_store *store, sqlite3_stmt *statement, bool *row, fin_error *err);
/* A statement of the list that has no rows. */
fin_status fini_sql_run(fin_store *store, fini_sql which, fin_error *err);
/* The only number that sql (with its parameter ?1) answers. */
fin_status fini_sql_number(fin_store *store, const char *sql, int64_t parameter, int64_t *number,
                           fin_error *err);

/* NaN is NULL in the file. */
void fini_sql_bind_number(sqlite3_stmt *statement, int parameter, double number);
void fini_sql_bind_text(sqlite3_stmt *statement, int parameter, const char *text);
double fini_sql_double(sqlite3_stmt *statement, int column);
/* Text that is there, is UTF-8, without a NUL inside, and at most `most` bytes. */
fin_status fini_sql_text(const fin_store *store, sqlite3_stmt *statement, int column, int most,
                         const char *what, const char **text, fin_error *err);
/* A whole number between two others. */
fin_status fini_sql_integer(const fin_store *store, sqlite3_stmt *statement, int column,
                            int64_t least, int64_t most, const char *what, int64_t *number,
                            fin_error *err);
bool fini_is_utf8(const char *text, size_t size);
bool fini_is_hash(const char *text);
/* A hash (32 characters, at least) as two numbers; false if it is none. */
bool fini_hash_key(const char *text, uint64_t key[2]);

/* Between begin and end all or nothing is done. A store that was opened to read refuses begin. end
 * rolls back if status says so, and returns the status of the whole. */
fin_status fini_store_begin(fin_store *store, fin_error *err);
fin_status fini_store_end(fin_store *store, fin_status status, fin_error *err);
/* One state of the store for several questions. *mine: to be given to _unlook. */
fin_status fini_store_look(fin_store *store, bool *mine, fin_error *err);
void fini_store_unlook(fin_store *store, bool mine);

/* The number of a name. If it is not there: 0, or a new one. */
fin_status fini_store_name(fin_store *store, const char *name, bool add, int64_t *id,
                           fin_error *err);
void fini_store_forget_names(fin_store *store);
/* The number of a study; FIN_ERR_ARGUMENT if there is none of this name. */
fin_status fini_store_find_study(fin_store *store, const char *name, int64_t *id, fin_error *err);
double fini_now(void); /* unix time */

/* ---- store_write.c, store_plan.c ------------------------------------------------------------- */

/* *id = 0 and state PLANNED if it is not there. With our hash but other settings: damaged. */
fin_status fini_store_find_run(fin_store *store, const fin_plan *plan, int64_t *id, int64_t *state,
                               fin_error *err);
fin_status fini_store_add_scalar(fin_store *store, int64_t run, const fin_scalar *scalar,
                                 fin_error *err);
fin_status fini_store_add_series(fin_store *store, int64_t run, const fin_series *series,
                                 fin_error *err);
fin_status fini_store_add_claim(fin_store *store, int64_t study, int position,
                                const fin_claim *claim, fin_error *err);
/* Which run stands at this position of a study. */
typedef fin_status fini_plan_of(const void *study, int64_t position, fin_plan *out, fin_error *err);
/* Keeps finished runs, in one transaction. */
fin_status fini_store_keep(fin_store *store, fini_plan_of *plan_of, const void *study,
                           const fini_done *done, int count, fin_error *err);
/* The hash of a plan, run by run: starts with zeros, and every run changes it. */
void fini_plan_hash(char hash[FIN_HASH_TEXT], const char *block, const char *run);

/* ---- store_blob.c ---------------------------------------------------------------------------- */

enum { FINI_SHAPE_TEXT = 96 };
void fini_shape_text(const fin_series *series, char text[FINI_SHAPE_TEXT]);
/* Bytes in fini_alloc memory. */
fin_status fini_blob_pack(fin_store *store, const fin_series *series, void **bytes, size_t *size,
                          fin_error *err);
/* dtype, shape and data from three columns, beginning with `column`. With data = false,
 * out->data is NULL; else it is fini_alloc memory, for the caller to free. out->name is not
 * touched, and is used in messages. */
fin_status fini_blob_read(const fin_store *store, sqlite3_stmt *statement, int column, bool data,
                          fin_series *out, fin_error *err);
size_t fini_series_bytes(const fin_series *series); /* once its shape is known to be good */

/* ---- store_where.c --------------------------------------------------------------------------- */

/* One setting after the other in canonical JSON, whatever the text is. */
typedef struct fini_setting {
    const char *name, *text; /* not terminated; text without its quotes */
    int name_length, length;
} fini_setting;
const char *fini_setting_first(const char *json); /* NULL: none */
const char *fini_setting_next(const char *at,
                              fini_setting *out); /* NULL: no more, out is not set */

/* A number that is the whole of a text: decimal, inf, -inf, nan. */
bool fini_text_number(const char *text, int length, double *number);

/* "L>=10", "form=softmax", "L=2,10,100". */
typedef struct fini_condition {
    char *name;   /* fini_alloc memory that holds the rest too; with _ for - */
    char *needle; /* see fini_setting_seek */
    int op;       /* index into the list of operators */
    int count;    /* values; more than one only with = and != */
    const char **texts;
    int *lengths;
    double *numbers; /* NaN: not a number */
    bool words;      /* some value is not a number */
    int64_t name_id; /* of the scalar of this name; 0: none */
} fini_condition;
fin_status fini_condition_parse(const char *text, fini_condition *out, fin_error *err);
void fini_condition_free(fini_condition *where);
/* Does the value (as text and, unless NaN, as number) meet it? */
bool fini_condition_holds(const fini_condition *where, const char *text, int length, double number);

/* fini_setting_find, several times as fast. The needle is the name, with _ for -, in quotes, and a
 * colon: strlen(name) + 4 bytes. */
void fini_setting_needle(const char *name, char *needle);
bool fini_setting_seek(const char *json, const char *needle, const char **text, int *length);

/* Names in order, each once. */
typedef struct fini_name_list {
    char **name; /* [count], each in fini_alloc memory */
    int count, room;
} fini_name_list;
fin_status fini_name_list_add(fini_name_list *names, const char *name, int length, fin_error *err);
int fini_name_list_find(const fini_name_list *names, const char *name, int length); /* -1: none */
void fini_name_list_free(fini_name_list *names);
/* All settings of a run. */
fin_status fini_name_list_settings(fini_name_list *names, const char *json, fin_error *err);

/* ---- store_scan.c ---------------------------------------------------------------------------- */

enum { FINI_SCAN_MOST = 4000000 }; /* runs */

typedef struct fini_scan_run {
    uint64_t key[2]; /* its hash */
    int64_t id;
    uint32_t seen;  /* bit i: it has what condition i asks about */
    uint32_t words; /* bit i: and that is not a number */
    uint8_t state;
    bool examined; /* the conditions were looked at */
    bool fit;      /* and are met */
} fini_scan_run;

typedef struct fini_scan {
    fini_scan_run *runs;
    int64_t count, room, fit; /* fit: so many do */
    int64_t next;             /* after the one that was found last */
    int32_t *slots;           /* [mask + 1] numbers of runs, -1: empty; NULL until needed */
    uint64_t mask;
} fini_scan;
fin_status fini_scan_add(fini_scan *scan, const fini_scan_run *run, fin_error *err);
void fini_scan_sort(fini_scan *scan); /* by hash */
/* *run = NULL: there is none. None must be added or sorted after this. */
fin_status fini_scan_find(fini_scan *scan, const uint64_t key[2], fini_scan_run **run,
                          fin_error *err);
void fini_key_text(const uint64_t key[2], char hash[FIN_HASH_TEXT]);
void fini_scan_free(fini_scan *scan);

/* ---- store_cursor.c -------------------------------------------------------------------------- */

typedef struct fini_cursor fini_cursor;
fin_status fini_cursor_open(fin_store *store, const fin_query *query, fini_cursor **out,
                            fin_error *err);
/* How many runs the query selects. */
int64_t fini_cursor_count(const fini_cursor *cursor);
/* The next of them; false after the last. */
bool fini_cursor_next(fini_cursor *cursor);
void fini_cursor_rewind(fini_cursor *cursor); /* back to before the first */
void fini_cursor_close(fini_cursor *cursor);
/* Of the run at hand. id is 0 for a planned one. */
int64_t fini_cursor_id(const fini_cursor *cursor);
int64_t fini_cursor_position(const fini_cursor *cursor);
fin_state fini_cursor_state(const fini_cursor *cursor);
const char *fini_cursor_hash(const fini_cursor *cursor);
const char *fini_cursor_block(const fini_cursor *cursor);
/* All of it; valid until the next call. */
fin_status fini_cursor_row(fini_cursor *cursor, fin_run_row *row, fin_error *err);

/* ---- store_query.c --------------------------------------------------------------------------- */

/* Scalars (or series) of one run by name; statement by fini_sql_prepare of the text below. */
extern const char fini_sql_scalars[], fini_sql_series[];
fin_status fini_read_scalar(const fin_store *store, sqlite3_stmt *statement, fin_scalar *out,
                            fin_error *err);
/* columns: name, dtype, shape, data */
fin_status fini_read_series(const fin_store *store, sqlite3_stmt *statement, bool data,
                            fin_series *out, fin_error *err);

/* ---- store_sheet.c --------------------------------------------------------------------------- */

typedef struct fini_sheet_name {
    int64_t id, rank; /* rank: its place by name */
    char *name;
} fini_sheet_name;
typedef struct fini_sheet_row {
    int64_t rank;
    fin_scalar scalar;
} fini_sheet_row;
typedef struct fini_sheet {
    fin_store *store;
    sqlite3_stmt *statement;
    fini_sheet_name *names; /* [name_count] by number */
    int64_t name_count;
    fini_sheet_row *rows; /* [count] of the run at hand, by name */
    int64_t count;
} fini_sheet;
/* To be closed even if opening failed. */
fin_status fini_sheet_open(fin_store *store, fini_sheet *sheet, fin_error *err);
void fini_sheet_close(fini_sheet *sheet);
fin_status fini_sheet_read(fini_sheet *sheet, int64_t run, fin_error *err);

/* ---- store_compare.c ------------------------------------------------------------------------- */

typedef struct fini_compare {
    fin_store *store[2];
    sqlite3_stmt *scalars[2], *series[2];
    double tolerance;
} fini_compare;
/* A scalar or series that is not the same in both; NaN where a side has no such scalar. */
typedef fin_status (*fini_compare_row)(void *user, const char *what, double left, double right,
                                       bool in_left, bool in_right, fin_error *err);
/* To be closed even if opening failed. */
fin_status fini_compare_open(fin_store *left, fin_store *right, double tolerance, fini_compare *out,
                             fin_error *err);
void fini_compare_close(fini_compare *compare);
fin_status fini_compare_runs(const fini_compare *compare, int64_t left, int64_t right,
                             fini_compare_row row, void *user, fin_error *err);

/* ---- export_npz.c ---------------------------------------------------------------------------- */

fin_status fini_export_npz(fin_store *store, const fin_query *query, const char *path, bool times,
                           fin_error *err);

#endif
