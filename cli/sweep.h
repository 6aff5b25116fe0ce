/* sweep: the points of a sweep or a file, between planning (sweep.c) and showing (sweep_show.c). */
#ifndef CLI_SWEEP_H
#define CLI_SWEEP_H

#include "cli.h"

enum { MOST_SETTINGS = 64 };

/* Settings that differ from point to point: axes of a grid, or columns of a file. */
typedef struct plan {
    int64_t n;
    fin_column columns[MOST_SETTINGS];
    char names[MOST_SETTINGS][CLI_NAME];
    const char *titles[MOST_SETTINGS]; /* as the file has them: lambda for lam */
    int count;
    const char *path;           /* of --points; NULL: a sweep */
    fin_table *table;           /* its file */
    void *owned[MOST_SETTINGS]; /* to be freed */
    int owned_count;
} plan;

/* The numbers of all points: as a table below head() (may be NULL) if the command likes that, else into --out, as JSON
 * or as CSV to standard output. An exit code, after the message. */
int cli_sweep_show(const plan *p, const cli_args *args, const fin_sweep *sweep,
                   int (*head)(const cli_args *args));

#endif
