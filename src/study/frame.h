/* The insides of a frame, which two files share: frame.c has its rows, frame_column.c its columns. */
#ifndef FINI_STUDY_FRAME_H
#define FINI_STUDY_FRAME_H

#include "store/store.h"
#include "study/study.h"

/* Memory for the texts of a column. */
typedef struct fini_chunk {
    struct fini_chunk *next;
    size_t used, size;
    char bytes[];
} fini_chunk;

/* A terminated copy; NULL: no memory. */
const char *fini_chunk_keep(fini_chunk **chunks, const char *text, size_t length);
void fini_chunk_free(fini_chunk *chunks);

typedef struct fini_place {
    int64_t id, row;
} fini_place;

struct fini_frame {
    fin_store *store;
    int64_t rows, missing, failed;
    fini_arena arena;
    int64_t *id;                 /* [rows] */
    char (*hash)[FIN_HASH_TEXT]; /* [rows] */
    const char **block;          /* [rows] */
    fini_place *order;           /* [rows] by id; NULL until needed */
    fini_chunk *blocks;
    struct fini_frame_column *columns;
    fini_name_list names;
    bool named;
    fin_error failure;
};

void fini_frame_free_columns(fini_frame *frame);

#endif
