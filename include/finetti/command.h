/* command: the verbs. Settings in, a result out.
 *
 * Every computation that needs no file of the user's is a row of one table: the tool runs it (finetti risk,
 * finetti lab rate), a study runs it (command: rate), Python runs it (finetti.run("rate")) and so does this header,
 * and all of them get the same numbers to the last bit. Settings are names and texts, as on the command line:
 *
 *     const fin_pair pairs[] = {{.name = "lam", .text = "0.1"}, {.name = "L", .text = "20"}};
 *     fin_result *result;
 *     fin_status status = fin_command_run(fin_command_find("risk"), pairs, 2, NULL, &result, &err);
 *
 * A new command is one file, src/command/<name>.c or src/lab/<name>.c, and one row in src/command/command.c. */
#ifndef FINETTI_COMMAND_H
#define FINETTI_COMMAND_H

#include "finetti/base.h"
#include "finetti/task.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- results -------------------------------------------------------------------------------- */

/* How a number came about. */
#define FIN_HOW_LIST(H)                                                                            \
    H(CLOSED, "closed form")                                                                       \
    H(QUADRATURE, "quadrature") /* error: of the quadrature */                                     \
    H(SIMULATION, "simulation") /* error: the standard error */                                    \
    H(SHARE, "share of runs")   /* of `samples` runs */                                            \
    H(RUNS, "over runs")        /* a statistic of `samples` runs */                                \
    H(CLOCK, "clock")           /* a time: differs from machine to machine */                      \
    H(DERIVED, "derived")       /* from numbers of more than one kind */
typedef enum fin_how {
#define FIN_HOW_ENUM(name, text) FIN_HOW_##name,
    FIN_HOW_LIST(FIN_HOW_ENUM)
#undef FIN_HOW_ENUM
        FIN_HOW_COUNT
} fin_how;
FIN_API const char *fin_how_name(fin_how how);

typedef struct fin_scalar {
    const char *name;
    double value, error; /* error: 0 if it is exact */
    fin_how how;
    int64_t samples; /* 0 where it does not apply */
} fin_scalar;

typedef struct fin_series {
    const char *name;
    fin_dtype dtype;
    int ndim;
    int64_t shape[4];
    const void *data; /* NULL from fin_store_series with data = 0 */
    int64_t stored;   /* bytes in the file */
} fin_series;

/* What a run leaves: scalars, series and notes. Whatever is read from it is borrowed until it is destroyed. */
typedef struct fin_result fin_result;
FIN_API void fin_result_destroy(fin_result *result); /* NULL is fine */
FIN_API int fin_result_scalar_count(const fin_result *result);
FIN_API int fin_result_series_count(const fin_result *result);
FIN_API fin_scalar fin_result_get_scalar(const fin_result *result, int i); /* sorted by name */
FIN_API fin_series fin_result_get_series(const fin_result *result, int i); /* sorted by name */
/* Remarks in words, such as why a number is not there. NULL past the end. */
FIN_API const char *fin_result_note(const fin_result *result, int i);

/* ---- the table ------------------------------------------------------------------------------ */

/* What a word holds: a plain word; names out of a list, "risk,bayes"; pairs, "5:0.2,10:0.8"; ascending whole
 * numbers, "4,8,16". Lists are brought into one form when they are applied, so that the same list is the same run. */
typedef enum fin_word_kind {
    FIN_WORD_PLAIN,
    FIN_WORD_NAMES,
    FIN_WORD_PAIRS,
    FIN_WORD_WHOLES
} fin_word_kind;

/* A setting that is text and no row of a settings table: task, form, lengths, show, ... */
typedef struct fin_word {
    const char *name;
    size_t offset, size; /* of a char array in the command's settings */
    const char *fallback, *meaning;
    fin_word_kind kind;
    const char *const *
        names; /* FIN_WORD_NAMES: those there are; a plain word: it is one of them; ends with NULL */
    int (*suits)(
        const char *row); /* of task, form, family: the rows that this command takes. NULL: all */
    const char *also;     /* "task": rows of that table too */
    int quiet; /* 1: not in canonical JSON where it is the default, so that older runs keep their names */
} fin_word;
/* Rows of a command's words: member is a char array of the settings struct `type`. */
#define FIN_WORD_OF(name_, type, member, fallback_, meaning_)                                      \
    .name = (name_), .offset = offsetof(type, member), .size = sizeof(((type *)NULL)->member),     \
    .fallback = (fallback_), .meaning = (meaning_)
#define FIN_WORD(name, type, member, fallback, meaning)                                            \
    {                                                                                              \
        FIN_WORD_OF(name, type, member, fallback, meaning)                                         \
    }
#define FIN_WORDS_END                                                                              \
    {                                                                                              \
        .name = NULL                                                                               \
    }

typedef struct fin_group {
    const fin_settings *table;
    void *values;
} fin_group;
enum { FIN_GROUPS = 12 };
typedef struct fin_table_at {
    const fin_settings *table;
    size_t offset; /* of its values in the command's settings */
} fin_table_at;

/* A setting that makes others void: whoever gives both is told so. Rows end with a NULL name. */
typedef struct fin_instead {
    const char *name; /* where it is given, and neither "" nor 0, it takes the place of */
    const char *of;   /* these: names with blanks between them */
    const char *only; /* not NULL: of all values of `name`, this one alone needs them, */
    const char *why;  /* each of which ... ("is where runs start") */
} fin_instead;

typedef struct fin_output {
    const char *name, *meaning;
    const char *unit; /* NULL: a plain number */
} fin_output;

enum { FIN_HASH_TEXT = 33, FIN_SETTINGS_TEXT = 8192 };

typedef struct fin_points fin_points; /* of a sweep, for many() */
typedef struct fin_sweep fin_sweep;

typedef struct fin_command {
    const char *name, *summary;
    int revision;          /* counted up when the same settings give other numbers */
    size_t size;           /* of its settings struct */
    const fin_word *words; /* ends with a NULL name */
    const fin_output
        *outputs; /* scalars, then series (their meaning begins with the shape); ends with
                                * a NULL name */
    const fin_table_at
        *tables; /* the settings tables; ends with a NULL table; where groups is NULL */
    /* The settings tables where they depend on the words (task, form). A bad word: a message.
     * fin_command_groups() asks for either. */
    fin_status (*groups)(void *values, fin_group groups[FIN_GROUPS], int *count, fin_error *err);
    /* Do the settings fit together? May be NULL. */
    fin_status (*check)(const void *values, fin_error *err);
    /* Brings words that no kind describes into one form. What is none of theirs, because check() has not been
     * asked, it leaves alone. May be NULL. */
    void (*tidy)(void *values);
    const fin_instead *instead; /* which settings make others void; may be NULL */
    const char *hidden; /* a row of the tables that says nothing about a run, or NULL: not in its
                         * canonical JSON */
    fin_status (*run)(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err);
    /* Works out what is "auto", for whoever shows the settings. May be NULL. */
    fin_status (*settle)(void *values, fin_error *err);
    /* The scalars of many points at once, to the bit those of run(). FIN_ERR_UNSUPPORTED: not these
     * points, so they are run one by one. May be NULL. */
    fin_status (*many)(fin_points *points, fin_sweep *sweep, const fin_progress *progress,
                       fin_error *err);
} fin_command;

FIN_API int fin_command_count(void);
FIN_API const fin_command *fin_command_at(int i);              /* NULL past the end */
FIN_API const fin_command *fin_command_find(const char *name); /* NULL if there is none */

/* The tables that these words choose, and where their values are; count begins at 0. */
FIN_API fin_status fin_command_groups(const fin_command *command, void *values,
                                      fin_group groups[FIN_GROUPS], int *count, fin_error *err);

/* ---- settings ------------------------------------------------------------------------------- */

/* A setting as text. '-' and '_' are the same in names. */
typedef struct fin_pair {
    const char *name, *text;
    const void *mark; /* for whoever makes the pairs; not looked at */
} fin_pair;

/* Fills `values` (command->size bytes, aligned for anything): defaults, then words, then rows; later
 * pairs win. The text of a number may be a formula of other settings, "sqrt(snr)": its value is what is kept, and a
 * pair named let.x is no setting but a number x for formulas. Validates tables and check(). On failure *bad (may be
 * NULL) is the number of the pair to
 * blame, or -1. An unknown name is answered with the nearest one. */
FIN_API fin_status fin_command_apply(const fin_command *command, void *values,
                                     const fin_pair *pairs, int count, FIN_OR_NULL int *bad,
                                     fin_error *err);
/* Replaces "auto" in applied settings by what it stands for, where the command knows it beforehand. */
FIN_API fin_status fin_command_settle(const fin_command *command, void *values, fin_error *err);
/* The first half of it: words from the pairs, all else at its default, and the tables that the words
 * choose, as help and tables of points need them. Rows are not looked at. */
FIN_API fin_status fin_command_tables(const fin_command *command, void *values,
                                      const fin_pair *pairs, int count,
                                      fin_group groups[FIN_GROUPS], int *group_count,
                                      FIN_OR_NULL int *bad, fin_error *err);
/* Choice i of a word that is one of some names, or chooses a row: task, form, family. NULL past the end, and for
 * other words. */
FIN_API const char *fin_word_choice(const fin_word *word, int i);
/* For groups(): appends the table that such a choice stands for; a message with the choices there are
 * if it is none. */
FIN_API fin_status fin_word_group(const char *word, const char *choice, void *values,
                                  fin_group groups[FIN_GROUPS], int *count, fin_error *err);
/* Canonical JSON: {"command":"train","revision":1,"settings":{"L":10,...}}, names sorted, numbers
 * as short as reads back exactly, choices and words as strings, "auto" where it is. */
FIN_API fin_status fin_command_text(const fin_command *command, const void *values, char *buffer,
                                    size_t size, fin_error *err);

/* The task that settings with a word `task` (and `lengths`) speak of; what is auto in them is worked out in its own
 * settings. */
FIN_API fin_status fin_command_task(const fin_command *command, const void *values, int64_t seed,
                                    int flags, fin_task **task, fin_error *err);

/* ---- running -------------------------------------------------------------------------------- */

/* Applies the pairs, runs, and leaves a result for the caller to destroy; on failure *out is NULL. */
FIN_API fin_status fin_command_run(const fin_command *command, const fin_pair *pairs, int count,
                                   const fin_progress *progress, fin_result **out, fin_error *err);

/* ---- many points ---------------------------------------------------------------------------- */

/* A setting that differs from point to point: numbers or texts, one for each of n points. */
typedef struct fin_column {
    const char *name;
    const double *numbers;    /* [n], or NULL */
    const char *const *texts; /* [n], where numbers is NULL */
} fin_column;
typedef struct fin_sweep_points {
    int64_t n;
    const fin_column *columns;
    int count; /* of columns */
} fin_sweep_points;

/* The scalars of all points: a column each, in the order of the command's outputs. */
typedef struct fin_sweep_column {
    const char *name;
    const double *value, *error; /* [n]; NaN where a point does not have it */
    fin_how how;                 /* DERIVED where points differ, which `hows` tells apart */
    const unsigned char *hows;   /* [n] fin_how, or NULL: all are alike */
    const int64_t *samples;      /* [n], or NULL: all are 0 */
} fin_sweep_column;

/* The command at all points: `pairs` for all of them and a value of every column for each. The numbers are those of
 * fin_command_run at each point, to the last bit; where a command has a way to do many points at once, it is taken. On
 * failure *bad (may be NULL) is the point that failed, or -1, and nothing is left. Caller: fin_sweep_destroy. */
FIN_API fin_status fin_command_sweep(const fin_command *command, const fin_pair *pairs, int count,
                                     const fin_sweep_points *points, const fin_progress *progress,
                                     fin_sweep **out, FIN_OR_NULL int64_t *bad, fin_error *err);
FIN_API void fin_sweep_destroy(fin_sweep *sweep); /* NULL is fine */
FIN_API int fin_sweep_count(const fin_sweep *sweep);
FIN_API fin_sweep_column fin_sweep_get(const fin_sweep *sweep, int i);

/* "0.01:3:100log", "2:50:10lin" (lin is the default), "0.1,0.2,0.5": the values of a range. whole: they are rounded to
 * whole numbers, each once. Ends are exact, what lies between is rounded to 12 digits, so that 0.3 is 0.3 here, in
 * studies and in Python. values (room for `most`) may be NULL: only counts. */
FIN_API fin_status fin_range_read(const char *text, int whole, int64_t most,
                                  FIN_OR_NULL double *values, int64_t *count, fin_error *err);

#ifdef __cplusplus
}
#endif
#endif
