/* What the files of commands share: the type of a command is public, in finetti/command.h. */
#ifndef FINI_COMMAND_H
#define FINI_COMMAND_H

#include "base/base.h"
#include "finetti/attention.h"
#include "finetti/command.h"
#include "finetti/family.h"
#include "finetti/task.h"
#include "finetti/theory.h"
#include "math/stats.h"

/* ---- settings (settings.c) --------------------------------------------------------------------- */

/* The same without check(): for settings that are to be written, not run. */
fin_status fini_command_fill(const fin_command *command, void *values, const fin_pair *pairs,
                             int count, fin_error *err);
/* Is a setting given that another one makes void? */
fin_status fini_command_void(const fin_command *command, const fin_pair *pairs, int count,
                             fin_error *err);
/* As JSON, the settings in which values are not like base, "{}" if there are none: what, put over the
 * text of base, gives that of values. false: it cannot be said like this. */
bool fini_command_difference(const fin_command *command, const void *base, const void *values,
                             char *buffer, size_t size);
void fini_hash(const char *text, char hash[FIN_HASH_TEXT]); /* XXH3, 128 bits, hexadecimal */

/* Words that are lists, beside FIN_WORD. */
#define FINI_LIST(name, type, member, fallback, meaning, kind_)                                    \
    {                                                                                              \
        FIN_WORD_OF(name, type, member, fallback, meaning), .kind = (kind_)                        \
    }
#define FINI_NAMES(name, type, member, fallback, meaning, names_)                                  \
    {                                                                                              \
        FIN_WORD_OF(name, type, member, fallback, meaning), .kind = FIN_WORD_NAMES,                \
                                                            .names = (names_)                      \
    }
/* A word that is one of some names. */
#define FINI_ONE_OF(name, type, member, fallback, meaning, names_)                                 \
    {                                                                                              \
        FIN_WORD_OF(name, type, member, fallback, meaning), .names = (names_)                      \
    }
extern const fin_word fini_no_words[]; /* of a command that has none */
/* Tables of a command whose words choose none. */
#define FINI_TABLES(...)                                                                           \
    (const fin_table_at[])                                                                         \
    {                                                                                              \
        __VA_ARGS__,                                                                               \
        {                                                                                          \
            NULL, 0                                                                                \
        }                                                                                          \
    }
#define FINI_TABLE_ONLY(table) FINI_TABLES({&table, 0})

enum { FINI_PAIRS_TEXT = 4096, FINI_PIECES = FINI_PAIRS_TEXT / 4 + 1 }; /* a law of lengths */

/* Shared by commands that have a task and a form. Words: FINI_MODEL_WORDS(struct, member). */
typedef struct fini_model {
    char task[32], form[32], lengths[FINI_PAIRS_TEXT];
    fin_task_settings task_settings;
    fin_form_settings form_settings;
} fini_model;
#define FINI_MODEL_WORDS(type, member)                                                             \
    FIN_WORD("task", type, member.task, "slr", "generative model"),                                \
        FIN_WORD("form", type, member.form, "erf", "attention form"),                              \
        FINI_LIST("lengths", type, member.lengths, "",                                             \
                  "law of the sequence length, such as 5:0.2,10:0.8, instead of L",                \
                  FIN_WORD_PAIRS)
/* And what they make void: L beside lengths would be ignored, and two runs with different L would be the same one. */
#define FINI_MODEL_INSTEAD                                                                         \
    {                                                                                              \
        .name = "lengths", .of = "L L_min"                                                         \
    }
extern const fin_instead fini_model_instead[];
/* Appends the tables of the task and of the form. */
fin_status fini_model_groups(fini_model *model, fin_group groups[FIN_GROUPS], int *count,
                             fin_error *err);
/* The law of L in `lengths`, NULL if there is none; the arrays are in `room`. */
typedef struct fini_lengths {
    fin_lengths lengths;
    int64_t L[FINI_PIECES];
    double p[FINI_PIECES];
} fini_lengths;
fin_status fini_model_lengths(const fini_model *model, fini_lengths *room,
                              const fin_lengths **lengths, fin_error *err);
fin_status fini_model_task(const fini_model *model, int64_t seed, int flags, fin_task **task,
                           fin_error *err);
const fin_form *fini_model_form(const fini_model *model);

/* ---- what a run leaves (result.c) ----------------------------------------------------------- */

/* Names are copied, data too. A failure (memory, a bad number of dimensions, the same name twice) is
 * remembered and told by fini_result_status. */
fin_result *fin_result_create(void); /* NULL: no memory */
void fini_result_clear(fin_result *result);
void fini_result_scalar(fin_result *result, const char *name, double value, double error,
                        fin_how how, int64_t samples);
/* count / of with its standard error; with a stem also `<stem>_low` and `<stem>_high`, Wilson's interval. */
void fini_result_share(fin_result *result, const char *name, const char *stem, int64_t count,
                       int64_t of);
void fini_result_series(fin_result *result, const char *name, fin_dtype dtype, int ndim,
                        const int64_t *shape, const void *data);
fin_status fini_result_status(const fin_result *result, fin_error *err);
/* In a sweep: the point before this one, what it left and with which settings, so that what does not change
 * need not be computed again. NULL if there is none. */
const fin_result *fini_result_before(const fin_result *result, const void **values);
void fini_result_follow(fin_result *result, const fin_result *before, const void *values);
/* A remark in words. */
void fini_result_note(fin_result *result, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* ---- settings.c ----------------------------------------------------------------------------- */

/* Is this setting a whole number in the tables that these pairs choose? values: scratch. */
bool fini_command_is_whole(const fin_command *command, void *values, const fin_pair *pairs,
                           int count, const char *name);
/* The row of this name, '-' and '_' being the same; NULL if there is none. */
const fin_field *fini_field_find(const fin_settings *table, const char *name);
/* Does the table's row take this text? FIN_OK too if there is no such row. values must have been
 * filled by fin_command_apply and are changed. */
fin_status fini_command_try(const fin_command *command, void *values, const char *name,
                            const char *text, fin_error *err);

/* ---- settings that are formulas of others (formula_settings.c) ---------------------------------- */

typedef struct fini_filling {
    const fin_command *command;
    const fin_group *groups; /* with defaults and all that is given as it is */
    int group_count;
    const fin_pair *pairs;
    int count;
} fini_filling;
/* let.NAME: no setting, but a number that formulas may use. */
bool fini_is_let(const char *name);
/* Is the text of this pair a formula, for a setting that is a number? */
bool fini_is_formula(const fini_filling *with, const fin_pair *pair);
bool fini_has_formulas(const fini_filling *with);
/* Works out the pairs that are formulas, each after those that it needs. *bad: the pair to blame. */
fin_status fini_formulas_apply(const fini_filling *with, int *bad, fin_error *err);

/* ---- names and numbers as text ------------------------------------------------------------------ */

/* '-' and '_' are the same. */
bool fini_same_name(const char *a, const char *b);
enum { FINI_SHOWN = 64 }; /* room for a text from outside in a message */
/* `word` as it may stand in a message; buffer has FINI_SHOWN bytes. */
const char *fini_shown(const char *word, char *buffer);
/* A plain number ("1e9", "inf", "-3"), whole text. */
bool fini_read_number(const char *text, double *number);
/* Shortest text that reads back as this number: whole numbers without an exponent up to 2^53. */
enum { FINI_SHORTEST = 32 };
size_t fini_shortest(double number, char buffer[FINI_SHORTEST]);

/* ---- running (command.c) -------------------------------------------------------------------------- */

/* Runs with applied settings; what went wrong with the result is told here. err is clean after success. */
fin_status fini_command_perform(const fin_command *command, const void *values, fin_result *result,
                                const fin_progress *progress, fin_error *err);

/* ---- many points (sweep.c) ------------------------------------------------------------------------ */

struct fin_points {
    void *values; /* the settings of the command, at the point gone to last */
    int64_t n, at;
    struct fini_target *targets;
    int target_count;
};
/* Puts the columns of a point into the values. False: a number is out of its range. */
bool fini_points_go(fin_points *points, int64_t point);
/* The place of an output, with room for a number at every point; -1: no memory. */
int fini_sweep_place(fin_sweep *sweep, const char *name);
void fini_sweep_put(fin_sweep *sweep, int place, int64_t point, const fin_scalar *scalar);
/* `count` numbers in closed form, from point `from` on, of an output that every point gets in this way. False: no
 * memory. */
bool fini_sweep_put_exact(fin_sweep *sweep, int place, int64_t from, int64_t count,
                          const double *values);

/* ---- ranges (sweep.c) ---------------------------------------------------------------------------- */

/* Rounded to 12 digits, inside [low, high]: so that the last bits of this machine's libm do not make a different run. */
double fini_range_tidy(double x, double low, double high);
/* Value i of n between two ends, which are exact. */
double fini_range_value(double from, double to, bool logarithmic, int64_t i, int64_t n);

/* ---- what commands share ------------------------------------------------------------------------ */

/* A seed whose draws have nothing to do with those of `seed`: a hash of it, in 53 bits. */
int64_t fini_seed_apart(int64_t seed);

/* Works out the task's "auto", and that of the form's lam and c. */
fin_status fini_model_settle(fini_model *model, fin_error *err);

/* Do task, form and lengths fit together? Makes the task, which is cheap without vectors. */
fin_status fini_model_check(const fini_model *model, fin_error *err);

/* A number of the theory room, with how it came about. */
fin_how fini_how_of(fin_method method);
void fini_result_estimate(fin_result *result, const char *name, const fin_estimate *estimate);
/* The same and, if rare samples make it up, `<name>_rare` = 1 and a note. */
void fini_result_flagged(fin_result *result, const char *name, const fin_estimate *estimate);

/* ---- families of exchangeable tokens (concepts.c) --------------------------------------- */

/* The tables P_z(r | c) of the family `concepts`, (concepts, covariates, outcomes), in fini_alloc
 * memory. */
fin_status fini_concept_tables(const fin_latent *latent, double **tables, fin_error *err);

/* ---- lists in one word (words.c) ------------------------------------------------------------------ */

/* "risk,bayes": bit i for names[i], which end with NULL. `what` names the setting in messages. */
fin_status fini_parse_names(const char *text, const char *what, const char *const *names,
                            unsigned *found, fin_error *err);
/* "4,8,16": whole numbers from least to most, ascending, at most FINI_WHOLES of them. "" has none. */
enum { FINI_WHOLES = 64 };
fin_status fini_parse_wholes(const char *text, const char *what, int64_t least, int64_t most,
                             int64_t *whole, int *count, fin_error *err);
/* "5:0.2,10:0.8": whole number and number, at most `most` of them. `example` shows one in messages. "" has none. */
fin_status fini_parse_pieces(const char *text, const char *what, const char *example, int most,
                             int64_t *whole, double *number, int *count, fin_error *err);
/* And back, as short as reads back exactly. Returns the length; as many as `size` or more: it did not fit. */
size_t fini_print_pieces(const int64_t *whole, const double *number, int count, char *buffer,
                         size_t size);
/* Is a word of names a list of its names? Others are for check(). */
fin_status fini_word_check(const fin_word *word, const char *text, fin_error *err);
/* A list in one form: names in their order and once, shortest numbers, no blanks. It stays as it is if it cannot be
 * read or would not fit. */
void fini_word_tidy(const fin_word *word, char *text);

#endif
