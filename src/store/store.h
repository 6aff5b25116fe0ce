/* Private face of the store: what its files share.
 *
 *     store.c      open, close, check; the tables, and those of older stores
 *     lock.c       one pass of a study at a time
 *     sql.c        statements, transactions, texts and numbers of a row, SQLite's failures in our
 *                  words
 *     blob.c       a series as bytes and back;  done.c: a finished run as bytes
 *     write.c      planned and finished runs;  notes.c: sessions and claims
 *     where.c      conditions on settings and scalars, as SQL
 *     cursor.c     the runs that a query selects, one after the other
 *     query.c      fin_store_runs, _scalars, _series;  sheet.c: a run's scalars by name;
 *                  values.c: its settings by name
 *     list.c       studies, sessions, claims
 *     frame.c      runs as columns
 *     merge.c, diff.c, gc.c, export.c, export_npz.c
 *
 * SQL is text of ours alone: whatever comes from outside is bound to a parameter. What comes out
 * of the file is looked at before it is used, for the file may have been made by anybody. */
#ifndef FINI_STORE_H
#define FINI_STORE_H

#include "store/done.h"

#include <sqlite3.h>
#include <zlib.h>

enum {
    FINI_STORE_SCHEMA = 3,
    FINI_STORE_APPLICATION = 0x46494e45, /* "FINE" */
    FINI_STORE_WAIT = 10000,             /* milliseconds for another writer to end */
    FINI_STORE_TEXT = 1 << 20,           /* bytes of any text in the file */
    FINI_STORE_NAMES = 256               /* remembered with their numbers */
};

/* All settings of a run: settings AS s JOIN common AS c. */
#define FINI_SQL_SETTINGS "iif(s.own = '{}', c.text, json_patch(c.text, s.own))"

/* Statements of the writing side, prepared once. */
#define FINI_SQL_LIST(S)                                                                           \
    S(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    S(COMMIT, "COMMIT")                                                                            \
    S(ROLLBACK, "ROLLBACK")                                                                        \
    S(NAME_FIND, "SELECT id FROM names WHERE name = ?1")                                           \
    S(NAME_ADD, "INSERT INTO names(name) VALUES(?1)")                                              \
    S(COMMON_FIND, "SELECT id FROM common WHERE text = ?1")                                        \
    S(COMMON_ADD, "INSERT INTO common(command, text) VALUES(?1, ?2)")                              \
    S(SETTINGS_FIND,                                                                               \
      "SELECT s.id, ifnull(r.state, 0), (s.common_id = ?2 AND s.own = ?3) OR (?2 = 0 AND "         \
      "r.id IS NULL AND c.text <> '{}') OR " FINI_SQL_SETTINGS " = ?4 FROM settings AS s "         \
      "JOIN common AS c ON c.id = s.common_id LEFT JOIN runs AS r ON r.id = s.id "                 \
      "WHERE s.hash = ?1")                                                                         \
    S(KNOWN_FIND, "SELECT s.hash, ifnull(r.state, 0) FROM settings AS s LEFT JOIN runs AS r "      \
                  "ON r.id = s.id WHERE s.id = ?1")                                                \
    S(SETTINGS_ADD, "INSERT INTO settings(hash, common_id, own) VALUES(?1, ?2, ?3)")               \
    S(SETTINGS_CHANGE, "UPDATE settings SET common_id = ?2, own = ?3 WHERE id = ?1")               \
    S(RUN_PUT, "INSERT OR REPLACE INTO runs VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                   \
    S(SCALAR_ADD, "INSERT INTO scalars(name_id, run_id, value, error, how, samples) "              \
                  "VALUES(?1, ?2, ?3, ?4, ?5, ?6)")                                                \
    S(SERIES_ADD,                                                                                  \
      "INSERT INTO series(run_id, name_id, dtype, shape, data) VALUES(?1, ?2, ?3, ?4, ?5)")        \
    S(PLAN_ADD, "INSERT INTO plan(study_id, position, block, run_id) VALUES(?1, ?2, ?3, ?4)")      \
    S(PLAN_CUT, "DELETE FROM plan WHERE study_id = ?1 AND position >= ?2")                         \
    S(CLAIM_ADD,                                                                                   \
      "INSERT INTO claims VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, "         \
      "?14, ?15, ?16, ?17)")                                                                       \
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
    char *uri;                                /* what SQLite opened; fini_alloc */
    struct {
        char *name; /* fini_alloc */
        int64_t id;
    } names[FINI_STORE_NAMES];
    int name_count, name_next; /* next: where the next question is likely to find its answer */
    z_stream deflate;
    bool deflates; /* the stream is there */
    /* lock.c */
    fin_store *next;       /* of all that this process has open */
    uint64_t device, file; /* which file it is */
    int lock;              /* descriptor of the file that holds our locks, or -1 */
    bool locked;           /* a study's, by this store itself */
};

/* ---- lock.c ---------------------------------------------------------------------------------- */

/* A pass of this study, for as long as it takes; FIN_ERR_IO if there is one already. Where the
 * system or the file system has no such locks, nothing is locked. */
fin_status fini_store_lock(fin_store *store, const char *study, fin_error *err);
/* Against passes of all studies. */
fin_status fini_store_lock_all(fin_store *store, fin_error *err);
void fini_store_unlock(fin_store *store); /* all of them */
/* Does anybody, this store or another process, hold the study's lock? -1: nobody can tell. */
int fini_store_is_locked(fin_store *store, const char *study);
/* The list of open stores: between lock and unlock a file may be looked at that is not in it. */
void fini_stores_lock(void);
void fini_stores_unlock(void);
bool fini_stores_have(uint64_t device, uint64_t file);
void fini_stores_add(fin_store *store);    /* with the list locked */
void fini_stores_remove(fin_store *store); /* after SQLite has closed it */

/* ---- sql.c ----------------------------------------------------------------------------------- */

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
void fini_sql_number_of(sqlite3_context *context, int count, sqlite3_value **values);

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

/* ---- write.c, notes.c ------------------------------------------------------------------------ */

/* Settings that runs have in common: canonical JSON of one of them. */
fin_status fini_store_common(fin_store *store, const char *command, const char *text, int64_t *id,
                             fin_error *err);
/* The run of these settings, put there if need be: common and, as JSON, those that are its own. With
 * its hash but other settings: damaged, unless it is only planned. */
fin_status fini_store_settings(fin_store *store, const fin_plan *plan, int64_t common,
                               const char *own, int64_t *id, int64_t *state, fin_error *err);
fin_status fini_store_add_scalar(fin_store *store, int64_t run, const fin_scalar *scalar,
                                 fin_error *err);
fin_status fini_store_add_series(fin_store *store, int64_t run, const fin_series *series,
                                 fin_error *err);
/* Which run stands at this position of a study. */
typedef fin_status fini_plan_of(const void *study, int64_t position, fin_plan *out, fin_error *err);
uint64_t fini_hash_head(const char *hash); /* its first digits */
/* Keeps finished runs, in one transaction. Those that are known need not be planned again. */
fin_status fini_store_keep(fin_store *store, fini_plan_of *plan_of, const void *study,
                           const fini_done *done, int count, fin_error *err);
/* The hash of a plan, run by run: starts with zeros, and every run changes it. */
void fini_plan_hash(char hash[FIN_HASH_TEXT], const char *block, const char *run);
/* A line for `status`: begin gives the session its id; said again now and then; NaN left is fine. */
fin_status fini_store_session(fin_store *store, int64_t *id, const fin_session_row *row,
                              fin_error *err);
/* Its number (id may be NULL); FIN_ERR_IO if somebody has removed it in the meantime. */
fin_status fini_store_still_has(fin_store *store, const char *study, int64_t *id, fin_error *err);
fin_status fini_store_delete_claims(fin_store *store, int64_t study, fin_error *err);
/* Replaces the claims of a study. */
fin_status fini_store_keep_claims(fin_store *store, const char *study, const fin_claim *claims,
                                  int count, fin_error *err);

/* ---- blob.c ---------------------------------------------------------------------------------- */

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

/* ---- where.c --------------------------------------------------------------------------------- */

/* A number that is the whole of a text: decimal, inf, -inf, nan. */
bool fini_text_number(const char *text, int length, double *number);

/* "L>=10", "form=softmax", "L=2,10,100". */
typedef struct fini_condition {
    char *name; /* fini_alloc memory that holds the rest too; with _ for - */
    char *path; /* of the setting in canonical JSON */
    int op;     /* index into the list of operators */
    int count;  /* values; more than one only with = and != */
    const char **texts;
    int *lengths;
    double *numbers; /* NaN: not a number */
    bool words;      /* some value is not a number */
    bool setting;    /* some run has a setting of this name */
    int64_t name_id; /* of the scalar of this name; 0: none */
    int first;       /* its first parameter in SQL: path, name_id, values */
} fini_condition;
fin_status fini_condition_parse(const char *text, fini_condition *out, fin_error *err);
void fini_condition_free(fini_condition *where);
/* What it can be about in this store. */
fin_status fini_condition_look_up(fin_store *store, fini_condition *where, fin_error *err);
/* As SQL on settings AS s, common AS c and runs AS r. Its value: a number or text, NULL if a run has
 * none; a number alone: NULL if it is none. */
void fini_condition_value(const fini_condition *where, bool number, sqlite3_str *sql);
void fini_condition_sql(const fini_condition *where, sqlite3_str *sql);
int fini_condition_parameters(const fini_condition *where);
void fini_condition_bind(const fini_condition *where, sqlite3_stmt *statement);
/* "$.settings.name", with _ for -; "$.*" if no setting can have this name. strlen(name) + 16 bytes. */
void fini_setting_path(const char *name, char *path);

/* Names in order, each once. */
typedef struct fini_name_list {
    char **name; /* [count], each in fini_alloc memory */
    int count, room;
} fini_name_list;
fin_status fini_name_list_add(fini_name_list *names, const char *name, int length, fin_error *err);
int fini_name_list_find(const fini_name_list *names, const char *name, int length); /* -1: none */
void fini_name_list_free(fini_name_list *names);

/* ---- cursor.c -------------------------------------------------------------------------------- */

typedef struct fini_cursor fini_cursor;
struct fini_cursor {
    fin_store *store;
    sqlite3_stmt *statement;
    fini_condition *where;
    const fin_query *query;
    int64_t study;
    int where_count, what;
    bool mine, any; /* any: there was one */
    /* What the conditions let through, so that a second pass need not ask again: places in the plan,
     * or ids if there is no study. known: the first pass came to its end. */
    int64_t *keys, key_count, key_room, key_next;
    bool known, by_key;
    /* of this run */
    int64_t id; /* of its settings; and of its results, if it has some */
    fin_run_row run;
    int64_t common_id;
    const char *own;
};
/* PLACES: position, block, hash and state of a run; ROWS: all of it; VALUES: all of it, with the
 * settings as they are in the file, in common and own. query NULL: all. */
enum { FINI_CURSOR_PLACES, FINI_CURSOR_ROWS, FINI_CURSOR_VALUES };
fin_status fini_cursor_open(fin_store *store, const fin_query *query, int what, fini_cursor *out,
                            fin_error *err);
/* *more = false after the last. What is given is good until the next call. */
fin_status fini_cursor_next(fini_cursor *cursor, bool *more, fin_error *err);
fin_status fini_cursor_rewind(fini_cursor *cursor, fin_error *err); /* back to before the first */
void fini_cursor_close(fini_cursor *cursor);                        /* even if opening failed */

/* ---- values.c -------------------------------------------------------------------------------- */

/* The settings of one run after the other, by name, as texts: numbers as in JSON, words without
 * quotes. */
typedef struct fini_value {
    char *name, *common, *own; /* fini_alloc; own NULL: as common */
    const char *text;          /* NULL: this run has no such setting */
} fini_value;
typedef struct fini_values {
    fin_store *store;
    sqlite3_stmt *statement;
    int64_t common_id;
    fini_value *value; /* [count] by name; those of other runs before stay */
    int count, room;
} fini_values;
/* To be closed even if opening failed. */
fin_status fini_values_open(fin_store *store, fini_values *values, fin_error *err);
void fini_values_close(fini_values *values);
fin_status fini_values_read(fini_values *values, const fini_cursor *cursor, fin_error *err);

/* ---- query.c --------------------------------------------------------------------------------- */

/* Series of one run by name; statement by fini_sql_prepare of the text below, whose columns are name,
 * dtype, shape, data. */
extern const char fini_sql_series[];
fin_status fini_read_series(const fin_store *store, sqlite3_stmt *statement, bool data,
                            fin_series *out, fin_error *err);

/* ---- sheet.c --------------------------------------------------------------------------------- */

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
    fini_sheet_row *rows; /* [count] of this run, by name */
    int64_t count;
} fini_sheet;
/* To be closed even if opening failed. */
fin_status fini_sheet_open(fin_store *store, fini_sheet *sheet, fin_error *err);
void fini_sheet_close(fini_sheet *sheet);
fin_status fini_sheet_read(fini_sheet *sheet, int64_t run, fin_error *err);

/* ---- export_npz.c ---------------------------------------------------------------------------- */

fin_status fini_export_npz(fin_store *store, const fin_query *query, const char *path, bool times,
                           fin_error *err);

#endif
