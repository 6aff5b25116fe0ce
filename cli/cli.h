/* cli: what the commands share. The tool parses, calls the library and prints; numbers come from
 * the library alone.
 *
 * An option is either a row of a settings table, so that a new row there is a new option here with
 * no further line, or a "word" that belongs to one command (--json, --out FILE). Results go to
 * standard output only when there is nothing left that can fail; an error is one line on standard
 * error. */
#ifndef CLI_H
#define CLI_H

#include "finetti.h"

#include <jansson.h>
#include <stdbool.h>

/* A program that a signal stopped ends with 128 + its number, as shells count: 130 for Ctrl-C. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_SIGNAL = 128 };

/* ---- commands and options ------------------------------------------------------------------- */

/* An option that is not a row of a settings table. */
typedef struct cli_word {
    const char *name;
    const char *value; /* what the help calls its value; NULL: a flag */
    const char *meaning;
} cli_word;

/* The settings tables whose rows are options of a command. */
enum {
    CLI_USES_TASK = 1,
    CLI_USES_FORM = 2,
    CLI_USES_OVERLAPS = 4,
    CLI_USES_RISK = 8,
    CLI_USES_DRAW = 16,
    CLI_USES_RUN = 32,
    CLI_USES_TRAIN = 64,
    CLI_USES_PAUSE = 128,
    CLI_USES_PLANE = 256,
    CLI_USES_COMPARE = 512,
    CLI_USES_PAPER = 1024,
    CLI_USES_CROSS = 2048,
    CLI_USES_TUNE = 4096,
    CLI_USES_ATTEND = 8192,
    CLI_USES_FAMILY = 16384,
    CLI_USES_SEQUENCE = 32768,
    CLI_USES_SAMPLES = 65536,
    CLI_USES_FIT = 131072,
    CLI_USES_LOCATE = 262144,
    CLI_USES_ENCODER = 1 << 19,
    CLI_USES_CORPUS = 1 << 20,
    CLI_USES_LEARN = 1 << 21,
    CLI_USES_PROBE = 1 << 22,
    CLI_USES_DATA = 1 << 23
};

/*   type     field    default        lowest  highest         meaning */
#define CLI_DRAW_FIELDS(F, C)                                                                      \
    F(int64_t, n, 1000, 1, INT64_C(1) << 40, "samples (sequences) to draw")                        \
    F(int64_t, skip, 0, 0, INT64_C(1) << 53,                                                       \
      "number of the first one: new samples with the same k* and v*, such as for testing")         \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed; sample i is a function of the seed and i")     \
    C(dtype, 0, "float|double", "precision of the tokens")
#define CLI_RUN_FIELDS(F, C)                                                                       \
    F(int64_t, threads, FIN_AUTO_INT, 1, 4096,                                                     \
      "threads; auto = FINETTI_THREADS, OMP_NUM_THREADS or all processors; no result depends on "  \
      "it")
#define CLI_PAUSE_FIELDS(F, C)                                                                     \
    F(int64_t, stop_at, FIN_AUTO_INT, 0, FIN_STEPS_MAX,                                            \
      "stop at this step and write --checkpoint and --out there; auto = steps")                    \
    F(double, checkpoint_every, 60, 0, 1e9, "seconds between two checkpoints")
#define CLI_PLANE_FIELDS(F, C)                                                                     \
    F(int64_t, grid, 41, 2, 2049, "points of the grid along kappa, and along nu")                  \
    F(double, theta, 0, -1, 1, "v.k* at every point of the grid")                                  \
    F(double, eta, 0, -1, 1, "k.v* at every point of the grid")                                    \
    F(double, rho, 0, -1, 1, "k.v at every point of the grid")
#define CLI_COMPARE_FIELDS(F, C)                                                                   \
    F(double, tolerance, 0, 0, 1e300, "numbers that differ by no more are equal")
#define CLI_PAPER_FIELDS(F, C)                                                                     \
    F(double, width, FIN_AUTO, 72, 7200, "width in points (1/72 inch); auto = 432 a panel")        \
    F(double, height, FIN_AUTO, 72, 7200, "height in points; auto = 288 a panel")

#define CLI_ATTEND_FIELDS(F, C)                                                                    \
    F(int64_t, top, 3, 0, 1000, "most attended rows that are listed for a query")

#define CLI_LOCATE_FIELDS(F, C)                                                                    \
    F(int64_t, top, FIN_AUTO_INT, 1, INT64_C(1) << 40,                                             \
      "tokens listed of a bag; auto = all, 3 on a terminal")

#define CLI_SEQUENCE_FIELDS(F, C)                                                                  \
    F(int64_t, n, 100, 1, INT64_C(1) << 40, "sequences to draw")                                   \
    F(int64_t, L, 32, 0, FIN_L_MAX, "tokens in a sequence")                                        \
    F(int64_t, Q, 8, 0, FIN_L_MAX, "queries behind a sequence")                                    \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed; sequence i is a function of the seed and i")

#define CLI_SAMPLES_FIELDS(F, C)                                                                   \
    F(int64_t, samples, 10000, 2, INT64_C(1) << 40, "sequences in a simulation")                   \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of the simulation")

/* Sequences of tokens from files. */
#define CLI_DATA_FIELDS(F, C)                                                                      \
    F(int64_t, patch, 0, 0, 4096,                                                                  \
      "images: side of the square patches that they are cut into, such as 4 for 28 x 28; 0 = the " \
      "data are bags, a row for each token")                                                       \
    F(int64_t, rows, 0, 0, 65536, "images: pixels from top to bottom; 0 = they are square")        \
    F(int64_t, test_folds, 5, 0, INT64_C(1) << 30,                                                 \
      "one of so many folds is held out to judge on; 0 = none")                                    \
    F(int64_t, test_fold, 0, 0, INT64_C(1) << 30,                                                  \
      "which one: sequences whose number (from 0) is this modulo test-folds")                      \
    F(int64_t, per_class, 0, 0, INT64_C(1) << 30,                                                  \
      "learn from so many of each class only, drawn by the seed; 0 = all")

typedef struct cli_data_settings {
    CLI_DATA_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} cli_data_settings;
typedef struct cli_samples_settings {
    CLI_SAMPLES_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} cli_samples_settings;
typedef struct cli_sequence_settings {
    CLI_SEQUENCE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} cli_sequence_settings;
typedef struct cli_draw_settings {
    CLI_DRAW_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} cli_draw_settings;
typedef struct cli_run_settings {
    CLI_RUN_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} cli_run_settings;
typedef struct cli_pause_settings {
    CLI_PAUSE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} cli_pause_settings;
typedef struct cli_plane_settings {
    CLI_PLANE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} cli_plane_settings;
typedef struct cli_compare_settings {
    CLI_COMPARE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} cli_compare_settings;
typedef struct cli_paper_settings {
    CLI_PAPER_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} cli_paper_settings;
typedef struct cli_attend_settings {
    CLI_ATTEND_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} cli_attend_settings;

typedef struct cli_locate_settings {
    CLI_LOCATE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} cli_locate_settings;

/* One settings table, its values, and which of its rows were on the command line. */
typedef struct cli_group {
    unsigned use; /* CLI_USES_... */
    const char *title;
    const fin_settings *table;
    void *values;
    uint64_t given; /* bit i: row i */
} cli_group;

typedef struct cli_args cli_args;

/* Words without dashes behind the command, such as names of files. */
typedef struct cli_operands {
    const char *name;    /* what the help calls one of them; NULL: there are none */
    const char *meaning; /* for the help */
    int least, most;     /* most -1: any number */
    bool shipped;        /* names of the studies that come with the library are possible */
} cli_operands;

typedef struct cli_command {
    const char *name; /* "risk", or "study run": a family and a command of it */
    const char *summary, *about, *examples;
    unsigned uses;
    cli_operands operands;
    const cli_word *words; /* of one given twice the last counts; ends with a NULL name; a row of a
                            * table with the name of a word is no option */
    const cli_word *lists; /* of these every one counts; ends likewise; NULL: none */
    bool ranks;            /* runs under mpirun: all ranks come, rank 0 does the talking */
    int (*run)(cli_args *args);
} cli_command;

/* The first word of commands that have two. */
typedef struct cli_family {
    const char *name, *summary, *about;
} cli_family;

enum { CLI_GROUPS = 24, CLI_WORDS = 24, CLI_LISTS = 2, CLI_LIST_MOST = 64 };

struct cli_args {
    const cli_command *command;
    const fin_task_kind *kind; /* a command that can use a task or a family has one of them, or */
    const fin_form *form;      /* neither, with --data or --resume */
    const fin_family *family;
    fin_task_settings task;
    fin_latent_settings latent;
    cli_sequence_settings sequence;
    cli_samples_settings samples;
    fin_form_settings form_settings;
    fin_overlaps overlaps;
    fin_risk_settings risk;
    cli_draw_settings draw;
    cli_run_settings run;
    fin_train_settings train;
    cli_pause_settings pause;
    cli_plane_settings plane;
    cli_compare_settings compare;
    cli_paper_settings paper;
    fin_cross_settings cross; /* scale, prior, noise, level and temperature may be auto */
    fin_tune_settings tune;
    cli_attend_settings attend;
    fin_fit_settings fit;
    const char *fit_model; /* --model of fit as it was written: softmax+rbf; NULL: not given */
    cli_locate_settings locate;
    fin_encoder_settings encoder;
    fin_corpus_settings corpus;
    fin_learn_settings learn;
    fin_probe_settings probe;
    cli_data_settings data;
    cli_group groups[CLI_GROUPS];
    int group_count;
    const char *word[CLI_WORDS]; /* by place in command->words; "" for a flag; NULL: not given */
    const char *list[CLI_LISTS][CLI_LIST_MOST]; /* by place in command->lists */
    int list_count[CLI_LISTS];
    char **operand; /* [operand_count], borrowed from the command line */
    int operand_count;
};

extern const cli_command cli_latent_risk, cli_latent_draw, cli_risk, cli_simulate, cli_train,
    cli_landscape, cli_info, cli_study_run, cli_study_ls, cli_study_show, cli_study_status,
    cli_study_export, cli_study_diff, cli_study_merge, cli_study_gc, cli_study_check,
    cli_study_commands, cli_report, cli_plot, cli_reproduce, cli_attend, cli_fit, cli_predict,
    cli_locate, cli_pretrain, cli_finetune, cli_probe;

/* Fills args from argv[0..argc-1], the words behind the command. bare: operands may be missing, as
 * help and completion need it. *help: the user asks for help. Returns an exit code, after the
 * message. */
int cli_parse(cli_args *args, const cli_command *command, int argc, char **argv, bool bare,
              bool *help);
/* The same without a command line: this command with everything at its default. The task and the
 * form may be NULL (or are ignored) where the command has none. */
void cli_defaults(cli_args *args, const cli_command *command, const fin_task_kind *kind,
                  const fin_form *form);
/* Gives a setting or a word a value, as on the command line; the text of a word is borrowed. */
fin_status cli_set(cli_args *args, const char *name, const char *text, fin_error *err);
/* Is there a word with this name, so that a row of a table that is called the same is no option? */
bool cli_hidden(const cli_command *command, const char *name);
/* The value of a word of this command, "" for a flag, NULL if it was not given. */
const char *cli_get(const cli_args *args, const char *name);
/* Every value that a list of this command was given, in order. Borrowed. */
const char *const *cli_list(const cli_args *args, const char *name, int *count);
/* The group that has this setting and its row, or NULL. '-' and '_' are the same in a name. */
cli_group *cli_find(cli_args *args, const char *name, const fin_field **field);
bool cli_given(cli_args *args, const char *name);
/* 2, after the message, if --lengths stands beside --L or --L_min. */
int cli_check_lengths(cli_args *args);
/* Writes ", did you mean X?" (or nothing) for a word that should have been a setting in `uses`. */
void cli_suggest(cli_args *args, unsigned uses, const char *word, char *buffer, size_t size);

/* Whether a command is of this family: behind its name, or NULL. */
const char *cli_family_member(const cli_family *family, const cli_command *command);

void cli_help_overview(const cli_command *const *commands, const cli_family *families);
void cli_help_family(const cli_family *family, const cli_command *const *commands);
void cli_help_command(cli_args *args);
/* One line per option: name, type, default, lowest, highest, choices, separated by tabs. */
void cli_complete(cli_args *args);

/* The task as asked for, --lengths included. */
fin_status cli_task_create(const cli_args *args, const fin_task_settings *settings, int64_t seed,
                           int flags, fin_task **task, fin_error *err);

/* ---- messages, output, progress ------------------------------------------------------------- */

/* "finetti COMMAND: ..." on one line of standard error. These return the exit code. */
void cli_message_prefix(const char *command);
void cli_message_silence(void); /* nothing more is said: for ranks other than 0 */
int cli_usage(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_failed(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* As cli_failed, after a signal: its exit code. */
int cli_stopped(const char *format, ...) __attribute__((format(printf, 1, 2)));
int cli_error(const fin_error *err); /* invalid arguments: usage, cancelled: stopped, else failed */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes the library's kind of error. Returns status. */
fin_status cli_status(fin_error *err, fin_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
fin_status cli_status_memory(fin_error *err, double bytes, const char *what);

/* Flushes standard output: a full disk or a closed pipe is an error. */
int cli_flush(void);
/* Before the first JSON value is made. */
void cli_json_begin(void);
/* Prints and releases root. */
int cli_print_json(json_t *root);
json_t *cli_json_number(double number); /* not finite: the text "nan", "inf" or "-inf" */
json_t *cli_json_estimate(const fin_estimate *estimate);
json_t *cli_json_settings(const fin_settings *table, const void *values);
/* "quadrature, error 1e-12" and the like. Returns buffer. */
char *cli_how(const fin_estimate *estimate, char *buffer, size_t size);
/* "d=400 L=10 ...", in lines of at most 100 characters that begin behind the margin. */
void cli_print_settings(const fin_settings *table, const void *values);
/* "task  slr        d=400 ..." and "form  erf        lam=0.1" */
void cli_print_model(const cli_args *args, const fin_task *task);
json_t *cli_json_model(const cli_args *args, const fin_task *task);
/* The shortest text that reads back as this number. Returns buffer. */
char *cli_number(double number, char *buffer, size_t size);
bool cli_ends_with(const char *path, const char *end); /* in any case */
/* Whether a file can be written, found out before an hour is spent. */
fin_status cli_try_output(const char *path, fin_error *err);
double cli_clock(void); /* seconds */

/* Ctrl-C and friends set a flag; the second one ends the program at once. */
void cli_catch_signals(void);
/* While waiting for input nothing is half-done: a signal may simply end the program. */
void cli_release_signals(void);
bool cli_cancelled(void);
int cli_signal(void); /* the number of the signal; 0: there was none */
/* For the library's long calls: draws a line on standard error if that is a terminal. */
const fin_progress *cli_progress(void);
/* The next calls are the part [first, first + share) of the whole, 0 <= first < 1. */
void cli_progress_part(double first, double share);
void cli_progress_end(void);
/* The same for the runs of a study: a line that is drawn again and again on a terminal; elsewhere a
 * plain line now and then. A fin_study_report; user is not used. */
int cli_progress_study(void *user, const fin_study_news *news);
/* The same for an encoder that learns: loss, excess over Bayes, tokens a second, time left, on a
 * terminal only. A fin_learn_hook; user is not used. */
int cli_progress_learn(void *user, const fin_learn_report *report);
/* "9 s left", "3 min left", "" if it is not known. Returns buffer. */
char *cli_time_left(double seconds, char *buffer, size_t size);

#endif
