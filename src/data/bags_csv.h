/* A long CSV file being read: what its readers share (bags_csv*.c). */
#ifndef FINI_BAGS_CSV_H
#define FINI_BAGS_CSV_H

#include "data/bags.h"
#include "data/csv.h"

typedef struct fini_long {
    fini_csv csv;
    bool quotes;          /* there is a quote in the body */
    fini_names names;     /* of the columns */
    int64_t bag, label;   /* columns; -1: there is none */
    int64_t group;        /* likewise */
    bool each;            /* every row is a bag of its own */
    char *kind;           /* (columns) FINI_COLUMN_... */
    int32_t *to;          /* (columns) place of a column among the features, or -1 */
    int64_t rows;         /* of the file */
    const char **line;    /* (rows + 1) where row i begins; the last: the end of the text */
    int64_t *bag_of;      /* (rows) number of its bag, in the order of first rows */
    fini_names bags;      /* of all bags */
    int64_t *first_row;   /* (bags, of room rows) */
    fini_labels labels;   /* of all bags */
    fini_names groups;    /* names of the groups */
    int64_t *group_of;    /* (bags, of room rows) numbers in `groups`, or NULL */
    int64_t *place;       /* (rows) row of the token among those of the share, -1: not ours;
                                 * NULL: the rows of the file lie in the order of bags */
    int64_t skipped, own; /* rows before the share in the order of bags, rows of the share */
} fini_long;

/* Reads the names of the columns and gives each its part. */
fin_status fini_long_columns(fini_long *table, fin_bag_set *set, const fin_bags_source *source,
                             fin_error *err);
/* Parses the features of the own rows into set->tokens. */
fin_status fini_long_rows(fini_long *table, fin_bag_set *set, const fin_progress *progress,
                          fin_error *err);

#endif
