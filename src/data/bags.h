/* Private face of bags in files: what the readers (bags_csv.c, bags_arrays.c) and the rest share.
 *
 * A reader finds the bags and the labels of the whole file first, then the tokens of the own share:
 * the number of bags decides where the share begins, and the classes are those of all labels. */
#ifndef FINI_DATA_BAGS_H
#define FINI_DATA_BAGS_H

#include "data/columns.h"
#include "data/csv.h"
#include "finetti/data_bags.h"

enum {
    FINI_BAGS_COLUMNS_MAX = 1 << 20, /* wider tables are a mistake, or need other methods */
    FINI_BAGS_CLASSES_MAX = 1000,
    FINI_BAGS_AUTO_CLASSES = 20, /* whole numbers: more of them are numbers, not classes */
    FINI_BAGS_NOTES = 8
};

/* ---- an array in a file, mapped (npy.c) ------------------------------------------------------ */

typedef struct fini_npy {
    void *base; /* of the mapping, page-aligned; NULL: converted */
    size_t size;
    fin_array array; /* data lie in the mapping, or in `owned` */
    fini_npy_form form;
    void *owned;
    bool ours; /* a temporary file, which may be written to */
} fini_npy;

/* Texts too: form says so. */
fin_status fini_npy_map(const char *path, fini_npy *map, fin_error *err);
void fini_npy_unmap(fini_npy *map);

/* ---- the set (bags.c) -------------------------------------------------------------------------- */

typedef struct fini_notes {
    int count;
    char text[FINI_BAGS_NOTES][256];
} fini_notes;

/* A column that is no feature. */
typedef struct fini_extra {
    fini_names texts; /* (tokens) as in the file; empty: numbers of an array */
    double *numbers;  /* (tokens) NULL: text */
} fini_extra;

struct fin_bag_set {
    fin_bags bags;
    int64_t classes;
    fini_names class_names, features, names; /* names: of the bags of the share */
    char *label, *bag, *group;               /* names of these columns, or NULL */
    int64_t *rows; /* (tokens) rows of the file from 1, or NULL: first_row, first_row + 1, ... */
    int64_t first_row;
    fini_notes *notes; /* apart, so that reading folds can add to those of a set that is const */
    double *labels;    /* owned; bags.labels points here */
    int64_t *offsets;  /* owned */
    int64_t *groups;   /* owned, or NULL; bags.groups points here */
    void *tokens;      /* owned, or NULL: those of npz or map */
    int axes;          /* of the array of tokens; 0: no array */
    int64_t height;    /* of an array with three axes: the second of them */
    fin_npz *npz;
    fini_npy map;
    int64_t extra_count;
    fini_extra *extra; /* (extra_count) */
    fini_names extra_names;
};

/* An empty set, for fin_bag_set_destroy. */
fin_status fini_bag_set_create(fin_bag_set **set, fin_error *err);
/* Adds a note; more than there is room for are dropped. */
void fini_bags_note(const fin_bag_set *set, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Is the set for training (classes not given), so that every bag needs a label? */
static inline bool fini_bags_training(const fin_bags_source *source)
{
    return source->class_count < 0;
}

/* As fin_bag_set_read, a CSV file from memory. */
fin_status fini_bag_set_parse(fin_bag_set **set, const fin_bags_source *source, const char *text,
                              size_t size, const fin_progress *progress, fin_error *err);

/* Readers. `set` has its notes; what they leave half-done is destroyed by the caller. */
fin_status fini_bags_csv(fin_bag_set *set, const fin_bags_source *source,
                         const fin_progress *progress, fin_error *err);
fin_status fini_bags_parse(fin_bag_set *set, const fin_bags_source *source, const char *text,
                           size_t size, const fin_progress *progress, fin_error *err);
fin_status fini_bags_files(fin_bag_set *set, const fin_bags_source *source, bool archive,
                           const fin_progress *progress, fin_error *err);
fin_status fini_bags_hdf5(fin_bag_set *set, const fin_bags_source *source,
                          const fin_progress *progress, fin_error *err);
/* Is it an HDF5 file by its name, or a folder that holds some, or has a table of them? */
bool fini_bags_is_hdf5(const fin_bags_source *source);

/* Cuts the own share: sets offsets, n, first and total. `offsets` (total + 1) begin with 0 and are
 * taken, also on failure. *skipped: rows of the bags before the share. */
fin_status fini_bags_cut(fin_bag_set *set, const fin_bags_source *source, int64_t total,
                         int64_t *offsets, int64_t *skipped, fin_error *err);
/* Takes the names of the share's bags out of all; `all` is empty or spent afterwards. */
fin_status fini_bags_names(fin_bag_set *set, fini_names *all, fin_error *err);
/* Keeps the name of a column: a copy in *to. text: NULL is none. */
fin_status fini_bags_keep(char **to, const char *text, fin_error *err);
/* The groups of the share: `all` (total) are those of the whole file. */
fin_status fini_bags_groups(fin_bag_set *set, const int64_t *all, fin_error *err);
/* Looks for a number that is not finite: *row and *column of the first one; *row is -1 if there is
 * none. It reads all tokens, which may take minutes where they are mapped. */
fin_status fini_bags_infinite(const fin_bags *bags, const fin_progress *progress, int64_t *row,
                              int64_t *column, fin_error *err);
/* "x.npz, bag 'b7', row 12, column 'f1': nan is not finite ..." for a token of the set. */
fin_status fini_bags_fail_token(const fin_bag_set *set, const char *label, int64_t t, int64_t j,
                                fin_error *err);

/* ---- columns (bags_columns.c) -------------------------------------------------------------------- */

/* A column of text (FIN_COLUMN_UNASKED) is a feature only if it is asked for by itself, which then
 * fails with its line; the bag's, the label's and the group's (FIN_COLUMN_TAKEN, + 1, + 2) never are. */
extern const char *const fini_bags_taken[];

/* The columns that are features, in their order: *list (*count), for fini_free. The set gets their
 * names. Order of preference: source->feature_names, source->features, all that are not skipped. */
fin_status fini_bags_columns(fin_bag_set *set, const fin_bags_source *source,
                             const fini_columns *columns, int64_t **list, int64_t *count,
                             fin_error *err);

/* ---- labels (bags_labels.c) ---------------------------------------------------------------------- */

/* The labels of all bags, before it is known what they are. */
typedef struct fini_labels {
    int64_t n;
    double *value;          /* (n) NaN: none, or a text */
    int32_t *text;          /* (n) number in texts or -1; NULL: no texts at all */
    fini_names texts;       /* different ones */
    const fini_names *bags; /* names of all bags, for messages; NULL: numbers from 0 */
    const char *file;
} fini_labels;

/* Decides between numbers and classes, and fills the set's labels for its share, which has been
 * cut already. labels: NULL if there are none. Spellings may be added to labels->texts. */
fin_status fini_bags_labels(fin_bag_set *set, const fin_bags_source *source, fini_labels *labels,
                            fin_error *err);

/* ---- folds (bags_folds.c) ------------------------------------------------------------------------ */

fin_status fini_folds_parse(const char *text, size_t size, const char *label,
                            const fin_bag_set *set, int *repeats, int *count, int32_t **fold,
                            fin_error *err);

/* Every group is in one fold of each repeat? fold: (repeats, n). (bags_groups.c) */
fin_status fini_folds_groups(const fin_bag_set *set, const char *file, int64_t repeats,
                             const int32_t *fold, fin_error *err);

/* ---- bags from arrays (bags_open.c finds them, bags_arrays.c uses them) --------------------------- */

typedef struct fini_arrays {
    const char *file;                  /* for messages */
    fin_array tokens, offsets, bag, y; /* data NULL: not there */
    fin_array group;
    fini_npy_form y_form;                           /* labels may be texts */
    const char *bag_name, *label_name, *group_name; /* of the arrays that were found */
    fini_names columns; /* names of the features; empty: numbers from 0 */
    bool nameless;
    int64_t rows, width, total;   /* tokens, their columns, bags */
    int64_t *bag_of;              /* (rows) or NULL: by offsets */
    bool gather;                  /* the rows of some bag are not neighbours */
    int64_t skipped;              /* rows before the share, in the order of bags */
    fini_names names;             /* of the bags, if they are not by offsets */
    int64_t *group_of;            /* (total) or NULL: there are none */
    const fin_progress *progress; /* may be NULL */
    fin_npz *npz;                 /* where other arrays are: NULL: */
    const char *before;           /* in files called before + name + ".npy" */
} fini_arrays;

/* Element i; false: it is no whole number. */
bool fini_element_whole(const fin_array *array, int64_t i, int64_t *number);
/* Numbers of the groups into a->group_of; offsets: of all bags (bags_groups.c). */
fin_status fini_arrays_groups(fini_arrays *arrays, const int64_t *offsets, fin_error *err);
/* Fills the set. The arrays' data must live as long as the set (set->npz, set->map). */
fin_status fini_bags_arrays(fini_arrays *arrays, fin_bag_set *set, const fin_bags_source *source,
                            fin_error *err);

/* ---- HDF5 files (hdf5.c), and bags in them (bags_hdf5.c) ------------------------------------------ */

/* Data sets of numbers, whose first axis, if it is 1 and there are two more, is left out: (1, tokens, d)
 * is (tokens, d). Whatever their type is, they are read as `dtype`. */
typedef struct fini_h5_set {
    int64_t id;        /* for fini_h5_shut */
    int64_t rows;      /* of the first axis */
    int64_t width;     /* numbers in a row */
    int ndim;          /* axes */
    fin_dtype dtype;   /* FIN_F32 (float16 too), FIN_F64, or FIN_I64 */
    bool half, single; /* single: there was an axis of one before */
    int64_t chunk;     /* rows that lie together; 1: no chunks */
} fini_h5_set;

/* Loads the library, silences it, and keeps other threads out until fini_h5_leave: it is not made for
 * several at once. FIN_ERR_UNSUPPORTED: it is not here; `path` is for the message. */
fin_status fini_h5_enter(const char *path, fin_error *err);
void fini_h5_leave(void);

fin_status fini_h5_open(const char *path, int64_t *file, fin_error *err);
void fini_h5_close(int64_t file);
/* Name of member i of the file's root in the order of names; false: there is none. */
bool fini_h5_name(int64_t file, int64_t i, char *name, size_t size);
/* The data set of this name. *found false: there is none; one that holds no numbers is an error. */
fin_status fini_h5_find(int64_t file, const char *path, const char *name, fini_h5_set *set,
                        bool *found, fin_error *err);
void fini_h5_shut(fini_h5_set *set); /* and one of zeros */
/* Rows from .. from + count - 1 to `to`, (count, width) of set->dtype. */
fin_status fini_h5_read(const fini_h5_set *set, const char *path, const char *name, int64_t from,
                        int64_t count, void *to, fin_error *err);

/* For tests (bags_hdf5.c): bytes read at once, and bytes of tokens that may be in memory (0: half). */
extern int64_t fini_h5_block, fini_h5_memory;

/* ---- extra columns (bags_extras.c) ---------------------------------------------------------------- */

/* The columns that source->extras asks for: *list (*count), for fini_free. The set gets room for
 * them, and their names. */
fin_status fini_extras_choose(fin_bag_set *set, const fin_bags_source *source,
                              const fini_columns *columns, int64_t **list, int64_t *count,
                              fin_error *err);
/* From arrays with a row for each token; after everything else is in the set. */
fin_status fini_arrays_extras(const fini_arrays *arrays, fin_bag_set *set,
                              const fin_bags_source *source, fin_error *err);
/* Appends a text to column k: what is not UTF-8 or a control character becomes '?'. `room` keeps
 * memory between calls, for fini_free; all zeros at first. */
typedef struct fini_room {
    char *text;
    size_t size;
} fini_room;
/* Element `at` of an array of texts, as UTF-8 that may be in `wide`: kept between calls for one array. */
fin_status fini_element_text(const fin_array *array, const fini_npy_form *form, int64_t at,
                             fini_room *wide, const char **text, size_t *length, fin_error *err);
fin_status fini_extra_add(fin_bag_set *set, int64_t k, const char *text, size_t size,
                          fini_room *room, fin_error *err);
void fini_extras_close(fin_bag_set *set);

/* ---- bags from a long CSV file (bags_csv*.c) ------------------------------------------------------ */

typedef struct fini_long {
    fini_csv csv;
    bool quotes;          /* there is a quote in the body */
    fini_names names;     /* of the columns */
    int64_t bag, label;   /* columns; -1: there is none */
    int64_t group;        /* likewise */
    bool each;            /* every row is a bag of its own */
    bool bags_only;       /* no column is a feature */
    char *kind;           /* (columns) FIN_COLUMN_... */
    int32_t *to;          /* (columns) place of a column among the features, or -1 */
    int32_t *extra;       /* (columns) likewise among the extra columns; NULL: there are none */
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

/* A table of bags without tokens, a row (or several) for each: names, labels and groups. *text keeps
 * what it is made of, for fini_free. */
fin_status fini_long_read(fini_long *table, char **text, fin_bag_set *set,
                          const fin_bags_source *source, fin_error *err);
void fini_long_close(fini_long *table);
/* Reads the names of the columns and gives each its part. */
fin_status fini_long_columns(fini_long *table, fin_bag_set *set, const fin_bags_source *source,
                             fin_error *err);
/* Parses the features of the own rows into set->tokens. */
fin_status fini_long_rows(fini_long *table, fin_bag_set *set, const fin_progress *progress,
                          fin_error *err);
/* The cells of extra columns, after the features. */
fin_status fini_long_extras(const fini_long *table, fin_bag_set *set, const fin_progress *progress,
                            fin_error *err);

#endif
