/* What the commands on bags share: fit, predict and locate. */
#ifndef CLI_FIT_H
#define CLI_FIT_H

#include "cli.h"

/* The settings of fit. */
typedef struct fit_asked {
    char model[64];
    fin_fit_settings fit;
} fit_asked;

/* ---- settings and names (fit_settings.c) ---------------------------------------------------- */

/* The name of a model as people write it: "softmax", "softmax+rbf" (columns and RBF features),
 * "softmax:rbf" (RBF features alone), "softmax:linear" (columns alone, where both are usual), "softmax
 * x4" (heads). Returns buffer. */
char *fit_name(const fin_fit_settings *settings, int64_t classes, char *buffer, size_t size);
/* The same for a table: base is the "base rate". */
char *fit_title(const fin_fit_settings *settings, int64_t classes, char *buffer, size_t size);
const char *fit_basis_name(const fin_fit_settings *settings, int64_t classes);
/* The other way, a name of --compare: sets model, basis and heads. */
fin_status fit_name_read(const char *name, fin_fit_settings *settings, fin_error *err);
/* --model takes the same names: its model at once, basis and heads of the name when all options are
 * known, as they must not contradict --basis and --heads. */
fin_status fit_model_settle(cli_args *args, fin_error *err);
/* Do both mean the same fit? */
bool fit_same(const fin_fit_settings *a, const fin_fit_settings *b, int64_t classes);
/* The number of the class that --positive names. */
fin_status fit_positive_read(const char *name, const fin_bag_set *set, int64_t *positive,
                             fin_error *err);
/* The same for --assume monotone without --positive: only if the names of the classes tell. */
fin_status fit_positive_guess(const fin_bag_set *set, int64_t *positive, fin_error *err);
/* How files are written, for all that read bags. */
/* clang-format off */
#define FIT_FILE_WORDS                                                                             \
    {"labels", "FILE.csv",                                                                         \
     "HDF5 with a file for each bag: the table of their names, labels and groups"},                \
    {"sep", "SIGN",                                                                                \
     "what separates cells of a table: comma, semicolon, tab or bar; default: detected"},         \
    {"decimal", "SIGN", "how a table writes decimals: point or comma; default: detected"}
/* Of commands that take a model and bags (fit_answer_open), and what these are. */
#define FIT_ANSWER_WORDS                                                                           \
    {"bag", "COLUMN", "the column that names the bag; default: as in the model"},                  \
    {"label", "COLUMN", "the column with labels, if there are any; default: as in the model"},     \
        FIT_FILE_WORDS
#define FIT_ANSWER_OPERANDS                                                                        \
    {.name = "MODEL DATA",                                                                         \
     .meaning = "a model file, and bags as 'finetti fit' reads them (labels may be missing)",      \
     .least = 2,                                                                                   \
     .most = 2}
/* clang-format on */
fin_status fit_file_read(const cli_args *args, fin_bags_source *source, fin_error *err);
/* "auto", "regression" or "classes". */
fin_status fit_kind_check(const char *kind, fin_error *err);

/* ---- processes (fit_ranks.c) ----------------------------------------------------------------- */

/* Collective: if one process failed, all do, with its message. Without it those that did not fail
 * would wait for it forever. */
fin_status fit_agree(fin_status status, fin_error *err);
/* Collective: adds numbers over the processes, in place. */
fin_status fit_add(double *numbers, int64_t n, fin_error *err);

/* ---- what fit finds out ------------------------------------------------------------------------ */

enum { FIT_MODELS = 32, FIT_BINS = 10, FIT_TOP = 10 };

typedef struct fit_run {
    cli_args *args;
    const char *path;
    fin_bag_set *set;
    const fin_bags *bags;
    int64_t classes;
    fin_fit_settings settings; /* as asked for */
    fin_fit *fit;
    fin_fit_info info;
    double *class_count;           /* (classes), over all processes */
    double *key, *value;           /* (d) how much columns matter; NULL: the model cannot tell */
    double *key_sign, *value_sign; /* which way: 1, -1, or 0: that differs */
    char unimportant[512];         /* why not */
    bool locates;
    /* Columns that are constant within every bag: left out, or kept because they were named. */
    int64_t levels;
    char *level_names; /* each with a NUL behind it */
    bool level_kept;
    int64_t ids,
        first_id; /* features that look like the number of a row: how many, and the first */
    int64_t marks, first_mark; /* those that mark one token of every bag */
    int64_t groups;            /* how many; 0: there are none */

    /* cross-validation; repeats 0: none */
    int folds, repeats;
    int32_t *fold;  /* (repeats, bags) */
    bool fold_read; /* from a file */
    int models;
    fin_fit_settings model[FIT_MODELS];
    fin_validation *validation;
    int64_t bin_count[FIT_BINS];
    double bin_predicted[FIT_BINS], bin_observed[FIT_BINS];
    char no_validation[160]; /* why there is none, "" if it was not wanted */

    /* does one token decide? Losses of the mixture and of mean pooling, on bags left out */
    fin_validation_location location;

    int sizes; /* of the learning curve; 0: there is none */
    fin_curve_size size[FIN_CURVE_SIZES];
    char no_curve[160];

    double seconds_read, seconds_fit, seconds_validate, seconds_curve; /* of the processor */
} fit_run;

double fit_clock(void); /* processor seconds of this process, all threads */

/* ---- columns that are no features (fit_columns.c) --------------------------------------------- */

/* Collective: finds the columns that are constant within every bag, and leaves them out. */
fin_status fit_level(fit_run *run, fin_error *err);
/* "grade, event, ...": returns buffer. */
char *fit_level_names(const fit_run *run, char *buffer, size_t size);
/* Of columns that were kept: "columns 'a', ... are constant". Returns buffer. */
char *fit_level_note(const fit_run *run, char *buffer, size_t size);
/* What a person should know of the data beside the notes of their reader: buffer, or NULL: no reason for this one. */
enum { FIT_NOTE_LEVEL, FIT_NOTE_IDS, FIT_NOTE_MARK, FIT_NOTE_FEW, FIT_OWN_NOTES };
const char *fit_note(const fit_run *run, int kind, char *buffer, size_t size);
fin_status fit_count_groups(fit_run *run, fin_error *err); /* collective */
/* Groups that have a bag of class c; its bags where there are no groups. */
int64_t fit_class_groups(const fit_run *run, int64_t c);

/* ---- cross-validation (fit_validate.c, fit_curve.c) ----------------------------- */

/* "10x5": ten folds, five repeats. */
fin_status fit_cv_read(const char *text, int *folds, int *repeats, fin_error *err);
/* Folds and models from the options: fills folds, repeats, fold, models, model. */
fin_status fit_validate_prepare(fit_run *run, fin_error *err);
fin_status fit_validate(fit_run *run, fin_error *err);
/* --cv-out: a row for each model and bag, predictions averaged over repeats. */
fin_status fit_write_left_out(const fit_run *run, const char *path, fin_error *err);
/* Mixture against mean pooling, from the predictions for bags left out, if both are there. */
fin_status fit_curve(fit_run *run, fin_error *err);
/* Work of fitting this model once, in units of a single model: for the time that is left. */
double fit_work(const fin_fit_settings *settings, int64_t classes);

/* ---- the report (fit_report.c) --------------------------------------------------------------- */

int fit_report(const fit_run *run);
const char *fit_verdict(const fit_run *run); /* does one token decide? NULL: not known */
json_t *fit_score_of(const fin_fit_score *score, int64_t classes);

/* ---- the page (fit_page.c) ---------------------------------------------------------------------- */

/* --report of fit, and of explain. */
fin_status fit_page(const fit_run *run, const char *path, const char *verdict, fin_error *err);
int fit_page_check(
    const cli_args *args); /* --report and --coords; an exit code, after the message */
/* "x,y" of --coords: two names, in room; NULL where it is not given. */
enum { FIT_COORDS = 256 };
typedef struct fit_coords {
    char text[FIT_COORDS];
    const char *name[2]; /* NULL: not given */
} fit_coords;
void fit_coords_read(fit_coords *coords, const cli_args *args);
/* The extra columns of a page: --coords, and what tokens are of a text. Returns text. */
enum { FIT_EXTRAS = FIT_COORDS + 32 };
const char *fit_page_extras(const cli_args *args, char text[FIT_EXTRAS]);
/* Are they columns of numbers of the set? */
fin_status fit_coords_find(const fit_coords *coords, const fin_bag_set *set, const double *place[2],
                           fin_error *err);

/* ---- the models in a fit (fit_parts.c) ---------------------------------------------------------- */

/* "log loss", or the squared error over the variance of the labels. */
const char *fit_loss_name(int64_t classes);
/* Parts that predict; those kept for locations alone do not count. *only: the one, if there is one. */
int64_t fit_parts(const fin_fit *fit, const fin_fit_settings **only);
/* A record for each; of `any` the positive class too. Its line in a list: */
json_t *fit_parts_of(const fin_fit *fit, const char *(*class_name)(const void *user, int64_t c),
                     const void *user);
#define FIT_PART_FORM                                                                              \
    "<-12:[{?first}parts]>{title:-16s} [{?weight>0}weight {weight:.3f}|for locations]"             \
    "[, penalty {penalty:g}][, positive {positive}]\n"
/* Who locates, and how good it is on bags left out; NULL: nobody. As "mixture+rbf: log loss 0.31 on
 * bags left out (base rate 0.69)": */
json_t *fit_locator(const fin_fit *fit);
#define FIT_LOCATOR_FORM(at)                                                                       \
    "{" at "model}[: {" at "loss_name} {" at "loss:.4f} on bags left out[ (base rate {" at         \
    "base_loss:.4f})]]"

/* The score that a comparison is made by: accuracy, or R2. */
const char *fit_main_name(int64_t classes);

/* finetti info MODEL (fit_info.c). */
int fit_info(const cli_args *args);

/* ---- a model and bags for it (fit_answer.c) ------------------------------------------------------- */

enum { FIT_NOTES = 16 };

typedef struct fit_answer {
    fin_model *model;
    const fin_fit *fit;
    fin_bag_set *set;
    const fin_bags *bags;
    int64_t classes, tokens;
    const char *const *class_names;
    const double *labels; /* NULL: the file has none */
    char note[FIT_NOTES][256];
    int notes;
} fit_answer;

/* Opens the model of operand 0 and the data of operand 1, which must suit it, and tries --out. An exit
 * code, after the message; fit_answer_close in any case. extras: as in fin_bags_source. */
int fit_answer_open(fit_answer *answer, const cli_args *args, const char *extras);
void fit_answer_close(fit_answer *answer);
/* Notes (fit_notes.c): those of the file, and columns far outside of what the model was fitted to. */
fin_status fit_answer_look(fit_answer *answer, fin_error *err);
/* The same of bags that the model was fitted to, which a score is not about. */
fin_status fit_answer_known(fit_answer *answer, fin_error *err);
void fit_answer_say(const fit_answer *answer); /* on standard error */
json_t *fit_answer_json(const fit_answer *answer);
const char *fit_bag_name(const void *set, int64_t i);
const char *fit_class_name(const void *names, int64_t c);
/* The class of bag i; "" if it is not known, or a number. */
const char *fit_class_text(const fit_answer *answer, int64_t i);

#endif
