/* data, third part: sequences of tokens for an encoder, from files, and encoders in files. */
#ifndef FINETTI_DATA_ENCODER_H
#define FINETTI_DATA_ENCODER_H

#include "finetti/data_bags.h"
#include "finetti/encoder_learn.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- tokens ------------------------------------------------------------------------------------ */

/* How the columns of tokens were scaled: (raw - center) * scale, by column (keys first, then values),
 * found from the sequences read first and used for all later ones. One center and one scale for all
 * pixels of patches (so that brightness is kept), sqrt(pixels / 2) for their places; one for each
 * column of bags. */
typedef struct fin_token_scale {
    int64_t columns;
    double *center, *scale; /* (columns) */
} fin_token_scale;

/* Mean of each column, and 1 over its deviation (1 of a constant one), in the memory that `scale` brings, as many as the bags
 * have columns. FIN_ERR_NUMERIC if a deviation cannot be computed. */
FIN_API fin_status fin_token_scale_find(const fin_bags *bags, fin_token_scale *scale,
                                        fin_error *err);

typedef struct fin_token_source {
    fin_bags_source bags; /* path, bag, label, features: a file of bags (data_bags.h): a token is a
                           * row; or, with patch > 0, of images: a row of a CSV file, or an entry of
                           * the array `images` (or `x`, or `pixels`; (n, h, w) or (n, h w)) of an NPZ
                           * file with `y` or `labels`, is one */
    int64_t patch;        /* side of the square patches that an image is cut into; 0: bags */
    int64_t rows;         /* pixels of an image from top to bottom; 0: it is square */
    const char *keys;     /* bags: columns that a hidden token still shows; NULL: none. The key of a
                           * patch is its place: its row of patches and its place in it, one-hot */
    const fin_token_scale *scale; /* NULL: found from this file */
} fin_token_source;

typedef struct fin_token_set fin_token_set;

/* Refused with file, line and column where there is one: a patch that does not divide the image, rows
 * of different length, numbers that are not finite. Labels may be missing, unless bags.label names
 * a column that there is not. Every process reads all sequences (bags.rank is not looked at). */
FIN_API fin_status fin_token_set_read(fin_token_set **set, const fin_token_source *source,
                                      const fin_progress *progress, fin_error *err);
FIN_API void fin_token_set_destroy(fin_token_set *set); /* NULL is fine */
FIN_API const fin_memory *fin_token_set_memory(const fin_token_set *set);
FIN_API const fin_token_scale *fin_token_set_scale(const fin_token_set *set);
FIN_API const char *fin_token_set_class(const fin_token_set *set, int64_t c); /* NULL: numbers */
FIN_API int64_t fin_token_set_across(const fin_token_set *set); /* images: patches from left to
                                                                 * right; 0: bags */
/* Things to tell a person: count, and text of note i. */
FIN_API int fin_token_set_notes(const fin_token_set *set);
FIN_API const char *fin_token_set_note(const fin_token_set *set, int i);
/* A view of some of the sequences: those whose number i has i % folds != fold (train), or == fold
 * (test), and of these, with per_class > 0, the first so many of each class in an order drawn from
 * the seed (the others are left out). A new set, which copies. */
typedef struct fin_token_part {
    int64_t folds, fold;
    int test;
    int64_t per_class; /* 0: all */
    uint64_t seed;
} fin_token_part;
FIN_API fin_status fin_token_set_part(fin_token_set **part, const fin_token_set *set,
                                      const fin_token_part *which, fin_error *err);

/* Grey images: `rows` rows of `count` images each, pixels (rows, count, height, width), black for low
 * and white for high; NaN: hidden, which is blue. */
typedef struct fin_images {
    int64_t rows, count, height, width;
    const double *pixels;
    double low, high;
} fin_images;
/* As an SVG file, whole or absent ("-": standard output). */
FIN_API fin_status fin_images_write(const char *path, const char *title, const fin_images *images,
                                    fin_error *err);

/* ---- checkpoints ------------------------------------------------------------------------------- */

/* An encoder in a file of tensors (safetensors), with what is needed to go on learning, or without.
 * Metadata: "finetti" = "encoder", its settings and shape, and the caller's entries (what it was
 * trained on). Written whole to a temporary name and renamed: a full disk leaves the old file. */
enum { FIN_CHECKPOINT_VERSION = 1 };
FIN_API fin_status fin_checkpoint_write(const char *path, const fin_encoder *encoder,
                                        FIN_OR_NULL const fin_learn *learn,
                                        FIN_OR_NULL const fin_token_scale *scale,
                                        const fin_entry *entries, int64_t count, fin_error *err);

typedef struct fin_checkpoint fin_checkpoint;
FIN_API fin_status fin_checkpoint_read(const char *path, fin_checkpoint **checkpoint,
                                       fin_error *err);
FIN_API void fin_checkpoint_close(fin_checkpoint *checkpoint); /* NULL is fine */
/* A new encoder with its weights. */
FIN_API fin_status fin_checkpoint_encoder(const fin_checkpoint *checkpoint, fin_encoder **encoder,
                                          fin_error *err);
FIN_API const fin_encoder_settings *fin_checkpoint_settings(const fin_checkpoint *checkpoint);
FIN_API const fin_encoder_shape *fin_checkpoint_shape(const fin_checkpoint *checkpoint);
FIN_API const fin_token_scale *fin_checkpoint_scale(const fin_checkpoint *checkpoint); /* or NULL */
/* Settings of the learning that wrote it; NULL: it was not kept. */
FIN_API const fin_learn_settings *fin_checkpoint_learn(const fin_checkpoint *checkpoint);
FIN_API fin_status fin_checkpoint_restore(const fin_checkpoint *checkpoint, fin_learn *learn,
                                          fin_error *err);
FIN_API const char *fin_checkpoint_entry(const fin_checkpoint *checkpoint, const char *key);

#ifdef __cplusplus
}
#endif
#endif
