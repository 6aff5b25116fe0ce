/* Runs as columns. */
#ifndef FINI_STORE_FRAME_H
#define FINI_STORE_FRAME_H

#include "finetti/store.h"

#include <stdbool.h>

/* The runs of one block (NULL: all) of a study that match `where`, in order. Planned and failed
 * ones are counted but have no row. A clause of `where` is as in fin_query ("L>=10"); alternatives
 * are separated by a bar: "L=2|10". */
typedef struct fini_frame fini_frame;

typedef struct fini_column {
    const char *name;
    const double *value, *error; /* [rows]; NaN: not there or no number; error NULL: all 0 */
    const fin_how *how;          /* [rows], NULL for a setting */
    const int64_t *samples;      /* [rows], NULL for a setting */
    const bool *has;             /* [rows]: the run has it */
    const char *const *text;     /* [rows], settings only, as in the canonical JSON */
} fini_column;

/* With `all`, those that are not done have rows too. */
fin_status fini_frame_open(fin_store *store, const fin_query *query, bool all, fini_frame **out,
                           fin_error *err);
fin_status fini_frame_read(fin_store *store, const char *study, const char *block,
                           const char *const *where, int where_count, fini_frame **out,
                           fin_error *err);
void fini_frame_destroy(fini_frame *frame);
int64_t fini_frame_rows(const fini_frame *frame);
int64_t fini_frame_missing(const fini_frame *frame); /* planned, not done */
int64_t fini_frame_failed(const fini_frame *frame);
const char *fini_frame_hash(const fini_frame *frame, int64_t row);
const char *fini_frame_block(const fini_frame *frame, int64_t row);
int64_t fini_frame_position(const fini_frame *frame, int64_t row);
fin_state fini_frame_state(const fini_frame *frame, int64_t row);
int64_t fini_frame_id(const fini_frame *frame, int64_t row); /* of the run in the store */
/* A setting, a scalar, or "seconds" (how = CLOCK), in this order. NULL if no row has it. */
const fini_column *fini_frame_column(const fini_frame *frame, const char *name);
const fini_column *fini_frame_setting(const fini_frame *frame, const char *name);
const fini_column *fini_frame_scalar(const fini_frame *frame, const char *name);
const fini_column *fini_frame_seconds(const fini_frame *frame);
const fini_column *fini_frame_command(const fini_frame *frame); /* text */
/* Names of all columns, for messages. */
const char *const *fini_frame_names(const fini_frame *frame, int *count);
/* What went wrong in fini_frame_column or fini_frame_names, which answer NULL or nothing then. */
fin_status fini_frame_status(const fini_frame *frame, fin_error *err);
/* A series of one row. Data in fini_alloc memory, for the caller to fini_free (out->data). */
fin_status fini_frame_series(const fini_frame *frame, int64_t row, const char *name,
                             fin_series *out, fin_error *err);

#endif
