/* The insides of a cursor, which three files share: store_cursor.c opens it and goes from run to
 * run, store_select.c makes the list of them, store_fit.c decides whether a run is wanted. */
#ifndef FINI_STUDY_STORE_CURSOR_H
#define FINI_STUDY_STORE_CURSOR_H

#include "store/store.h"
#include "study/study.h"

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

/* A run that the query selects. */
typedef struct fini_pick {
    int64_t position, id; /* id 0: planned */
    uint64_t key[2];      /* its hash */
    const char *block;    /* one of the cursor's names */
    fin_state state;
} fini_pick;

struct fini_cursor {
    fin_store *store;
    const fin_query *query;
    int64_t study_id; /* 0: all runs of the store */
    sqlite3_stmt *one, *scalar;
    sqlite3_stmt *at; /* the statement whose row is the run at hand; NULL: not read yet */
    fini_condition *where;
    int where_count;
    uint32_t seen, words; /* bit i: some run has what condition i asks about; and as a word */
    int64_t has;          /* number of the scalar it must have; 0: any run will do */
    bool mine;            /* the look at the store */
    bool walks;
    fini_scan scan;
    fini_walk walk[FINI_WHERE_MOST + 1]; /* of the conditions, and of `has` */
    fini_pick *picks;                    /* [count] in order */
    int64_t count, room, next;
    fini_name_list blocks; /* the names of blocks, each once */
    fin_study *study;      /* NULL until a planned run needs it, or if it cannot be read */
    bool study_tried;
    int64_t id, position, examined;
    fin_state state;
    const char *hash, *block, *command, *settings;
    uint64_t key[2];          /* the hash */
    char text[FIN_HASH_TEXT]; /* the same as text */
    fin_plan plan;            /* of a planned run */
};

/* The hash in a row, as text and as a key. */
fin_status fini_cursor_read_hash(fini_cursor *cursor, sqlite3_stmt *row, fin_error *err);
/* State, settings and command of a run that is there. */
fin_status fini_cursor_read_run(fini_cursor *cursor, sqlite3_stmt *row, fin_error *err);
/* Settings and command of a planned run, from the study, if it still has it. */
fin_status fini_cursor_read_planned(fini_cursor *cursor, fin_error *err);
/* Makes the list of the runs that the query selects. */
fin_status fini_cursor_select(fini_cursor *cursor, fin_error *err);
/* What the query says to the run that was read. */
fin_status fini_cursor_fits(fini_cursor *cursor, fini_scan_run *run, fin_error *err);
/* Says it to all runs of the store. */
fin_status fini_cursor_scan(fini_cursor *cursor, fin_error *err);

#endif
