/* The insides of a cursor, which two files share: store_cursor.c goes from run to run, store_fit.c
 * decides which of them a query wants. */
#ifndef FINI_STUDY_STORE_CURSOR_H
#define FINI_STUDY_STORE_CURSOR_H

#include "study/store.h"

enum { FINI_WHERE_MOST = 32 };

/* All statements about runs begin with the same columns. */
enum { POSITION, BLOCK, HASH, ID, STATE, SETTINGS, SECONDS, COMMAND, REASON, VERSION, KERNEL };

/* A scalar of one run after the other, by number. */
typedef struct fini_walk {
    sqlite3_stmt *statement; /* NULL until it is needed */
    bool there;              /* false: no more */
    int64_t id;
    double value;
} fini_walk;

struct fini_cursor {
    fin_store *store;
    const fin_query *query;
    sqlite3_stmt *runs, *one, *scalar;
    sqlite3_stmt *at; /* the statement whose row is the run at hand; NULL: not read yet */
    fini_condition *where;
    int where_count;
    uint32_t seen; /* bit i: some run has what condition i asks about */
    int64_t has;   /* number of the scalar it must have; 0: any run will do */
    bool mine;     /* the look at the store */
    bool scans, walks;
    fini_scan scan;
    int64_t next;                        /* without a study: the next of the scan */
    fini_walk walk[FINI_WHERE_MOST + 1]; /* of the conditions, and of `has` */
    fin_study *study; /* NULL until a planned run needs it, or if it cannot be read */
    bool study_tried;
    int64_t id, position, examined;
    fin_state state;
    const char *hash, *block, *command, *settings;
    uint64_t key[2];          /* the hash */
    char text[FIN_HASH_TEXT]; /* the hash, without a study */
    fin_plan plan;            /* of a planned run */
};

/* The hash in a row, as text and as a key. */
fin_status fini_cursor_read_hash(fini_cursor *cursor, sqlite3_stmt *row, fin_error *err);
/* State, settings and command of a run that is there. */
fin_status fini_cursor_read_run(fini_cursor *cursor, sqlite3_stmt *row, fin_error *err);
/* What the query says to the run that was read. */
fin_status fini_cursor_fits(fini_cursor *cursor, fini_scan_run *run, fin_error *err);
/* Says it to all runs of the store. */
fin_status fini_cursor_scan(fini_cursor *cursor, fin_error *err);

#endif
