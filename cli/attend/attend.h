/* What the files of `finetti attend` share: columns of a table, tokens and queries, the fit. */
#ifndef CLI_ATTEND_H
#define CLI_ATTEND_H

#include "cli.h"

#define ATTEND_FIELDS(F, C)                                                                        \
    F(int64_t, top, 3, 0, 1000, "most attended rows that are listed for a query")
typedef struct attend_list_settings {
    ATTEND_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} attend_list_settings;
typedef struct attend_settings {
    fin_cross_settings cross; /* scale, prior, noise, level and temperature may be auto */
    fin_tune_settings tune;
    attend_list_settings list;
} attend_settings;

static inline const attend_settings *attend_asked(const cli_args *args)
{
    return (const void *)args->values;
}

/* ---- named columns, from CSV or NPZ (attend_source.c) --------------------------------------- */

typedef struct attend_column {
    const char *name; /* owned by the source, as all of it */
    fin_dtype dtype;
    const void *data;
    int64_t rows, stride;
    const fin_table *table; /* where its texts are, of column `number` */
    int number;
    int64_t words; /* different texts, whose cells are numbers from 1; 0: a column of numbers */
} attend_column;

typedef struct attend_source {
    const char *label; /* for messages */
    fin_table *table;
    fin_npz *npz;
    attend_column *column; /* (columns) */
    int columns;
    char *letters;
} attend_source;

/* A file; or points such as "x=1,y=2;x=3,y=4". Borrow their text. */
fin_status attend_source_open(attend_source *source, const char *path, fin_error *err);
fin_status attend_source_points(attend_source *source, const char *text, fin_error *err);
void attend_source_close(attend_source *source);
double attend_cell(const attend_column *column, int64_t row);
int attend_find(const attend_source *source, const char *name);  /* or -1 */
const char *attend_word(const attend_column *column, int64_t i); /* text i, from 0 */
/* A cell as text: its word, or its number. Returns buffer. */
char *attend_cell_text(const attend_column *column, int64_t row, char *buffer, size_t size);

/* ---- lists of columns (attend_columns.c) ---------------------------------------------------- */

typedef struct attend_list {
    int *at; /* (count) columns of a source */
    int count;
} attend_list;

/* "x,y", "a:c", "x*", "1:3", an NPZ array of several columns. Ranges and patterns leave out the
 * columns of `others` (NULL-terminated); a name that is also there is refused. */
fin_status attend_list_read(const attend_source *source, const char *option, const char *text,
                            const attend_list *const *others, attend_list *list, fin_error *err);
/* The same names in another source, or what is missing there. */
fin_status attend_list_match(const attend_source *source, const attend_list *wanted,
                             const attend_source *in, const char *why, attend_list *list,
                             fin_error *err);

/* ---- tokens and queries (attend_data.c) ----------------------------------------------------- */

/* Rows, put in the order of their sequences. */
typedef struct attend_rows {
    int64_t count;
    int64_t *row;     /* (count) where it stands in its source */
    int64_t *offsets; /* (sequences + 1) */
} attend_rows;

enum { ATTEND_NOTES = 12 };

typedef struct attend_data {
    attend_source context, other; /* other: the queries' own file */
    const attend_source *asked;   /* where queries stand: &other, &context or NULL */
    attend_list key, value, sequence;
    attend_list asked_key, asked_value, asked_sequence;
    int64_t dk, dv;
    int64_t sequences; /* those of the context, then those that only queries have */
    int64_t known;     /* those of the context */
    double *label;     /* (sequences) */
    double *translate; /* what the numbers of the queries' words are in the context, or NULL */
    int64_t longest;   /* tokens of the longest one */
    attend_rows tokens, queries;
    double *keys, *values; /* (tokens, dk), (tokens, dv) */
    double *query;         /* (queries, dk) */
    double *answers;       /* (queries, dv), NaN where there is none; NULL: nowhere */
    double *scales;        /* (dk) --scales, or NULL */
    bool standardized;
    char note[ATTEND_NOTES][240]; /* what is odd about the data */
    int notes;
} attend_data;

fin_status attend_data_open(attend_data *data, const cli_args *args, fin_error *err);
void attend_data_close(attend_data *data);
/* A number that is not finite, with its place. */
fin_status attend_bad_cell(const attend_source *source, int column, int64_t row, fin_error *err);

/* ---- sequences (attend_sequence.c) ---------------------------------------------------------- */

/* Finds the words of the queries' sequence column in the context's. */
fin_status attend_translate(attend_data *data, fin_error *err);
/* Adds the labels of a column that are new. */
fin_status attend_add_labels(attend_data *data, const attend_source *source,
                             const attend_list *list, int64_t rows, fin_error *err);
/* Rows in the order of their sequences, otherwise as they stand in the file. known: sequences of
 * the context. */
fin_status attend_arrange(const attend_data *data, int64_t known, const attend_source *source,
                          const attend_list *list, int64_t count, attend_rows *rows,
                          fin_error *err);
/* The label of a row: its number, or that of its word in the context. */
double attend_label(const attend_data *data, const attend_source *source, const attend_list *list,
                    int64_t row);
/* What sequence s is called. Returns buffer. */
char *attend_sequence_name(const attend_data *data, int64_t s, char *buffer, size_t size);
/* Something to say, once the results are there. */
void attend_note(attend_data *data, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Standardises the keys and leaves out the constant ones, or says that some are, or that their
 * spreads differ (attend_standardize.c). */
fin_status attend_standardize(attend_data *data, const cli_args *args, fin_error *err);

/* ---- the fit and what comes of it (attend_tune.c, attend_fit.c) ----------------------------- */

typedef struct attend_fit {
    attend_data *data;
    fin_cross_settings settings;
    double *scales;       /* (dk), to be multiplied by settings.scale, or NULL */
    fin_tune_report tune; /* which = 0: nothing was tuned */
    fin_cross_info info;  /* of the longest sequence */
    double jitter;        /* the largest */
    int64_t jittered;     /* sequences that needed it */
    bool has_evidence;
    double evidence;

    bool predicts, leaves_out, grows; /* what was asked for */
    int top;
    double *mean, *variance; /* (queries, dv) */
    int64_t *top_token;      /* (queries, top): the context's row, or -1 */
    double *top_weight;
    double *loo_mean, *loo_variance; /* (tokens, dv): of a value, for cme; NaN: a token alone */
    int64_t lengths;                 /* of the learning curve */
    int64_t *curve_count;            /* (lengths): sequences, and queries, in the mean */
    double *curve_error, *curve_score;
    bool curve_of_queries;
} attend_fit;

/* Settings, chosen or given (attend_tune.c). */
fin_status attend_choose(attend_fit *fit, cli_args *args, fin_error *err);
fin_status attend_fit_run(attend_fit *fit, cli_args *args, attend_data *data, fin_error *err);
void attend_fit_close(attend_fit *fit);

/* ---- printing and writing ------------------------------------------------------------------- */

int attend_report(const cli_args *args, const attend_fit *fit);
fin_status attend_write(const char *path, const attend_fit *fit, fin_error *err);
/* Name of key or value column j, as in the file. */
const char *attend_key_name(const attend_data *data, int64_t j);
const char *attend_value_name(const attend_data *data, int64_t j);
/* "scale", "prior" ... of FIN_TUNE_... bits, with commas. Returns buffer. */
char *attend_tuned_names(unsigned which, char *buffer, size_t size);

#endif
