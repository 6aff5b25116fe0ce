/* Private face of sequences of tokens from files: token_set*.c and images.c. */
#ifndef FINI_TOKEN_SET_H
#define FINI_TOKEN_SET_H

#include "data/bags.h"
#include "finetti/data_encoder.h"

struct fin_token_set {
    fini_arena arena; /* holds this struct too */
    fin_memory memory;
    fin_token_scale scale;
    const char **class_names; /* (memory.classes) */
    fini_notes notes;
    int64_t across; /* images: patches from left to right; 0: bags */
    /* the same arrays as in memory, to be filled */
    int64_t *offsets;
    float *tokens;
    double *labels; /* NULL: there are none */
    char *letters;  /* of the names */
};

/* How large a set is; everything that decides its memory. */
typedef struct fini_token_sizes {
    int64_t n, tokens, inputs, values, classes;
    int64_t letters; /* bytes of the names of classes, with their NULs */
    bool labels;
} fini_token_sizes;

/* A set whose arrays are zeros. */
fin_status fini_token_set_create(fin_token_set **set, const fini_token_sizes *sizes,
                                 fin_error *err);

/* How a row of a file becomes tokens: token t of row i has its column j from column
 * at[t * inputs + j] of the row, or has the number 0 or 1. Bags: a token, its columns in the order
 * of keys and values. Images: a token for each patch. */
enum { FINI_TOKEN_ZERO = -1, FINI_TOKEN_ONE = -2 };
typedef struct fini_token_map {
    int64_t tokens, inputs, values; /* of a row */
    int64_t across;                 /* patches from left to right; 0: bags */
    int64_t *at;                    /* (tokens, inputs), for fini_free */
} fini_token_map;

/* The patches of an image: the place as key, pixels of a patch row by row, patches from left to right
 * and from top to bottom. (images.c) */
fin_status fini_images_map(const fin_bag_set *bags, const fin_token_source *source,
                           fini_token_map *map, fin_error *err);

#endif
