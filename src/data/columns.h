/* Lists of columns, for whatever has named columns (columns.c). */
#ifndef FINI_COLUMNS_H
#define FINI_COLUMNS_H

#include "data/data.h"

/* As fin_columns, with names that are findable already. */
typedef struct fini_columns {
    const char *file;        /* for messages */
    const fini_names *names; /* indexed */
    bool nameless;           /* names are only numbers that we gave */
    const char *skip;        /* (names) FIN_COLUMN_..., or NULL: all are free */
    const char *what;        /* NULL: features */
    const char *const *taken;
} fini_columns;

/* list: (names) */
fin_status fini_columns_read(const fini_columns *columns, const char *text, int64_t *list,
                             int64_t *count, fin_error *err);
/* "x.csv has no column 'y'; did you mean ...". */
fin_status fini_no_column(const fini_columns *columns, const char *word, fin_error *err);

#endif
