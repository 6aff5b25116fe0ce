/* data, second part: bags of tokens from files, folds, and models in files. */
#ifndef FINETTI_DATA_BAGS_H
#define FINETTI_DATA_BAGS_H

#include "finetti/data.h"
#include "finetti/bags.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- bags from files ------------------------------------------------------------------------- */

/* Where the bags are and which columns count.
 *
 *   x.csv    long: one row per token, with a column that names the bag, one with the bag's label
 *            (the same in all rows of a bag; may be missing for prediction) and the features. Rows
 *            of a bag need not be neighbours. The bag and the label may be text. "-": standard input.
 *            Also gzipped (.csv.gz), with tabs or semicolons (.tsv) and decimal commas
 *   x.npz    arrays tokens (N, d), offsets (n + 1) and y (n); or tokens (N, d), bag (N) and y (N) or
 *            (n); features are then called 0, 1, ... unless there is an array "features" of bytes, a
 *            row for each name: np.array(names, 'S').view('u1').reshape(len(names), -1)
 *   a folder with tokens.npy, offsets.npy (or bag.npy) and y.npy; or a file x.tokens.npy or
 *            x_tokens.npy with its siblings: mapped into memory, not read and not copied, of which a
 *            process touches its own share only
 *
 *   HDF5     (where the library is, fin_hdf5_version) a folder with a file for each bag, x.h5, its tokens
 *            "features" (or "tokens"), (tokens, d) or (1, tokens, d), with a table of bags; or one such
 *            file; or a file with tokens, offsets and y as in x.npz. Data sets with a row for each token
 *            are extras (coords). Read in blocks; what does not fit into half of the memory is kept in
 *            a temporary file (TMPDIR)
 *
 * Tokens of more than two axes are rows of one (images). Integers become float: bytes float32,
 * others float64. At most 2^20 columns and 1000 classes. NULL: bag "bag" or "bag_id" or the first
 * column, label "label" or "y"; features: all others that are numbers. A column of text (its first
 * rows have text and no number) is left out with a note; one that is asked for is refused. */
typedef struct fin_bags_source {
    const char *path;
    const char *bag, *label;
    const char *group; /* column (array) that says which bags belong together, such as the patient:
                           * the same in all rows of a bag, text or number; NULL: none */
    const char *features; /* "f1:f166", "x*,z", "1:3", as finetti attend writes lists */
    const char *kind; /* "auto", "regression", "classes": what a label is. auto: text, two different
                           * numbers, or at most 20 different whole numbers and fewer than a third
                           * of the bags, is a class */
    int rank, ranks;  /* read the share of this process only (0, 1: everything) */
    /* For prediction, what the model wants: its features by name (in this order) and its classes.
     * NULL: found from the file. */
    const char *const *feature_names;
    int64_t feature_count;
    const char *const *class_names;
    int64_t class_count; /* -1: not given; 0: numbers */
    int each;       /* 1: every row is a bag of its own, without a column that names it; its array
                     * is `images`, `x`, `pixels` or `tokens` */
    int unlabelled; /* 1: bags may lack a label (it is NaN), or all of them, also for training */
    /* For prediction, where `bag` is NULL: the column that named the bags of the model. A CSV file must
     * have it; arrays need it only where there are no offsets. NULL: found as without a model. */
    const char *model_bag;
    /* What the file says of tokens beside their features, and is kept: columns of a CSV file, arrays
     * with a row for each token (numbers or texts; those of several columns are called a.0, a.1, ...).
     * A list as in `features`; "*": all that are no feature, bag or label; NULL: nothing. Behind
     * a ';' names of columns that come along if they are there, or "*". */
    const char *extras;
    /* HDF5: a table with a row for each bag: its name, label and group; and a folder with a second file
     * for each bag, of the same name, whose data sets are extras. NULL: none. */
    const char *table, *beside;
    char sep, decimal; /* of a table: ',' ';' '\t' '|', and '.' ','; 0: found out, with a note */
} fin_bags_source;

/* Version of the HDF5 library that is used; NULL: there is none, or finetti was built without. */
FIN_API const char *fin_hdf5_version(void);

typedef struct fin_bag_set fin_bag_set; /* bags in memory, or mapped, and what they are called */

/* Labels are NaN where a file has none (empty cell or nan) or one that is no class of the model: for
 * prediction only, for training (class_count -1) every bag needs one. Bags keep the order of their
 * first row. A token that is not finite, a label that differs within a bag, a bag without
 * rows, a text in a column of numbers: refused, with file, line, column and bag. */
FIN_API fin_status fin_bag_set_read(fin_bag_set **set, const fin_bags_source *source,
                                    const fin_progress *progress, fin_error *err);
FIN_API void fin_bag_set_destroy(fin_bag_set *set);               /* NULL is fine */
FIN_API const fin_bags *fin_bag_set_bags(const fin_bag_set *set); /* labels NULL: it has none */
FIN_API int64_t fin_bag_set_classes(const fin_bag_set *set);      /* 0: numbers */
/* Name of a class, of column j, of bag i (a number is written as it stands); label column's name.
 * Owned by the set; NULL if there is none. */
FIN_API const char *fin_bag_set_class(const fin_bag_set *set, int64_t c);
FIN_API const char *fin_bag_set_feature(const fin_bag_set *set, int64_t j);
FIN_API const char *fin_bag_set_name(const fin_bag_set *set, int64_t i);
FIN_API const char *fin_bag_set_label(const fin_bag_set *set);
FIN_API const char *fin_bag_set_bag(const fin_bag_set *set);   /* column that names the bags */
FIN_API const char *fin_bag_set_group(const fin_bag_set *set); /* column of the groups */
/* Leaves out the columns with drop[j] != 0, with their names; at least one must stay. Tokens that are
 * mapped or borrowed are copied. */
FIN_API fin_status fin_bag_set_drop(fin_bag_set *set, const unsigned char *drop, fin_error *err);
/* Row of the file that token t is, from 1: of a CSV file without its header, so that it is mostly
 * line - 1; 0-based row of the array + 1. 0: there is no token t. */
FIN_API int64_t fin_bag_set_row(const fin_bag_set *set, int64_t t);
/* Extra columns: how many, name of column k, its numbers (tokens), or NULL if it is text (nan: a cell
 * is empty), and what the file has for token t, or NULL if that is a number of an array. */
FIN_API int64_t fin_bag_set_extras(const fin_bag_set *set);
FIN_API const char *fin_bag_set_extra(const fin_bag_set *set, int64_t k);
FIN_API const double *fin_bag_set_extra_numbers(const fin_bag_set *set, int64_t k);
FIN_API const char *fin_bag_set_extra_text(const fin_bag_set *set, int64_t k, int64_t t);
/* Things to tell a person: count, and text of note i. */
FIN_API int fin_bag_set_notes(const fin_bag_set *set);
FIN_API const char *fin_bag_set_note(const fin_bag_set *set, int i);

/* What bags in memory are called. Texts are UTF-8, not empty, without control characters (but tabs and
 * line ends), and differ within their list; they are copied. */
typedef struct fin_bags_names {
    const char *const *features; /* (d); NULL: 0, 1, ... as those of arrays in files */
    const char *const *classes;  /* (class_count); NULL: 0, 1, ... */
    int64_t class_count;         /* 0: labels are numbers; at most 1000 */
    const char *const *bags;     /* (n), need not differ; NULL: numbers from bags->first on */
    const char *label;           /* name of the label's column; NULL: none */
    const char *bag, *group;     /* names of the columns of bags and groups; NULL: none */
} fin_bags_names;

/* A set of bags that are in memory already. The arrays of `bags` are borrowed and must live as long
 * as the set; their offsets are checked, not tokens and labels (fits do that). names: NULL is as
 * all of it zero. Bags with n = 0, of which only d counts, make a set of names alone, which is all
 * that fin_model_write looks at. So a fit made from arrays, in whatever language, gets into a file:
 *
 *     fin_bags none = {.d = d};
 *     fin_bags_names names = {.features = columns, .classes = classes, .class_count = 2};
 *     fin_bag_set_make(&set, &none, &names, &err);
 *     fin_model_write("model.fin", fit, set, NULL, 0, &err);
 *     fin_bag_set_destroy(set); */
FIN_API fin_status fin_bag_set_make(fin_bag_set **set, const fin_bags *bags,
                                    FIN_OR_NULL const fin_bags_names *names, fin_error *err);

/* Folds from a CSV file: the bag's name, then a column per repeat with the number of its fold.
 * Every bag of the set must be there once; others are ignored with a note, which the set gets. *fold:
 * (repeats, n), for fin_folds_free; folds are renumbered from 0, and no repeat may lack one. */
FIN_API fin_status fin_folds_read(const char *path, const fin_bag_set *set, int *repeats,
                                  int *folds, int32_t **fold, fin_error *err);
FIN_API void fin_folds_free(int32_t *fold);

/* ---- tensors in files (safetensors) ----------------------------------------------------------- */

/* The layout of safetensors: 8 bytes length, a JSON header, raw tensors without holes. The metadata
 * of ours have "finetti" (what it is), "version", "written_by" and "checksum" (xxh3 of everything,
 * with the checksum's digits as zeros); the data begin at a multiple of 64 bytes, larger elements
 * first. */
typedef struct fin_tensor_file fin_tensor_file;

typedef struct fin_entry {
    const char *key, *value; /* UTF-8 */
} fin_entry;

/* Whole or absent; "-" is standard output. The same tensors and metadata give the same bytes. Keys and
 * names of tensors differ from each other; "checksum" and, if the caller has none, "finetti" =
 * "tensors" are added. */
FIN_API fin_status fin_tensors_write(const char *path, const fin_entry *metadata, int64_t entries,
                                     const fin_tensor *tensors, int64_t count, fin_error *err);
/* Verifies the checksum if there is one. F32, F64, I32, I64 and U8 of up to four axes. */
FIN_API fin_status fin_tensors_open(const char *path, fin_tensor_file **file, fin_error *err);
FIN_API void fin_tensors_close(fin_tensor_file *file); /* NULL is fine */
FIN_API int64_t fin_tensors_count(const fin_tensor_file *file);
FIN_API const fin_tensor *fin_tensors_at(const fin_tensor_file *file, int64_t i);
FIN_API const fin_tensor *fin_tensors_find(const fin_tensor_file *file, const char *name);
FIN_API const char *fin_tensors_entry(const fin_tensor_file *file, const char *key); /* or NULL */

/* ---- models in files ---------------------------------------------------------------------------- */

/* Version of the model file: a reader takes its own and all earlier ones, and says which version of
 * finetti wrote a later one. */
enum { FIN_MODEL_VERSION = 2 };

typedef struct fin_model fin_model; /* a fit with the names of its columns and classes */

/* The names are copied from the set. notes: (count) lines that a person may want to read again
 * ("accuracy"/"0.86 +- 0.01"), kept in the file. */
FIN_API fin_status fin_model_write(const char *path, const fin_fit *fit, const fin_bag_set *set,
                                   const fin_entry *notes, int64_t count, fin_error *err);
FIN_API fin_status fin_model_read(const char *path, fin_model **model, fin_error *err);
FIN_API void fin_model_destroy(fin_model *model); /* NULL is fine */
FIN_API const fin_fit *fin_model_fit(const fin_model *model);
FIN_API int64_t fin_model_features(const fin_model *model);
FIN_API int64_t fin_model_classes(const fin_model *model);
FIN_API const char *const *fin_model_feature_names(const fin_model *model);
FIN_API const char *const *fin_model_class_names(const fin_model *model); /* NULL for numbers */
FIN_API const char *fin_model_label(const fin_model *model);
FIN_API const char *fin_model_bag(const fin_model *model); /* column that named the bags, or NULL */
FIN_API const char *fin_model_group(const fin_model *model); /* column of the groups, or NULL */
FIN_API int64_t fin_model_notes(const fin_model *model, FIN_OR_NULL const fin_entry **notes);

#ifdef __cplusplus
}
#endif
#endif
