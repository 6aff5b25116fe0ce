/* cli: what the commands share. The tool parses, calls the library and prints; numbers come from
 * the library alone.
 *
 * An option is either a setting, which goes as name and text to the library (fin_command_apply), so
 * that a new setting there is a new option here with no further line and every message is the
 * library's, or a "word" that belongs to the tool (--json, --out FILE). Results go to
 * standard output only when there is nothing left that can fail; an error is one line on standard
 * error. */
#ifndef CLI_H
#define CLI_H

#include "finetti.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* A program that a signal stopped ends with 128 + its number, as shells count: 130 for Ctrl-C. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_SIGNAL = 128 };

/* Hands on what failed: an exit code, or a fin_status. Only where nothing is to be given back. */
#define CLI_TRY(call)                                                                              \
    do {                                                                                           \
        const int cli_tried = (int)(call);                                                         \
        if (cli_tried)                                                                             \
            return cli_tried;                                                                      \
    } while (0)

/* Before the declaration of a local: what is called with its address where its block ends; free() of it. */
#define CLI_AT_END(close) __attribute__((cleanup(close)))
#define CLI_FREED CLI_AT_END(cli_free_at)
void cli_free_at(void *place);

/* ---- commands and options ------------------------------------------------------------------- */

/* An option that is not a row of a settings table. */
typedef struct cli_word {
    const char *name;
    const char *value; /* what the help calls its value; NULL: a flag */
    const char *meaning;
} cli_word;

/* Settings of commands that read or write files of the user's. */
#define CLI_PAUSE_FIELDS(F, C)                                                                     \
    F(int64_t, stop_at, FIN_AUTO_INT, 0, FIN_STEPS_MAX,                                            \
      "stop at this step and write --checkpoint and --out there; auto = steps")                    \
    F(double, checkpoint_every, 60, 0, 1e9, "seconds between two checkpoints")
typedef struct cli_pause_settings {
    CLI_PAUSE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} cli_pause_settings;
extern const fin_settings cli_pause_table, cli_threads_table;

typedef struct cli_args cli_args;

/* `symbol`: the settings of a command that are the rows of tables at places of a struct. */
extern const fin_word cli_no_words[];
#define CLI_SETTINGS(symbol, label, type, words_, ...)                                             \
    static const fin_table_at symbol##_tables[] = {__VA_ARGS__, {NULL, 0}};                        \
    static const fin_command symbol = {                                                            \
        .name = (label), .size = sizeof(type), .words = (words_), .tables = symbol##_tables}

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
    /* Its settings: a row of the library's table, by name, or words and tables of its own, which has
     * no run; neither: it has none. */
    const char *row;
    const fin_command *settings;
    cli_operands operands;
    const cli_word *words; /* of one given twice the last counts; ends with a NULL name; a setting
                            * with the name of a word is no option */
    const cli_word *lists; /* of these every one counts; ends likewise; NULL: none */
    /* Adds settings that follow from words of the tool, before names are looked at. May be NULL. */
    void (*prepare)(cli_args *args);
    bool computes; /* takes --threads */
    bool tabular; /* many points are printed as a table, and not as CSV, if nothing else is asked */
    /* Outputs that the table leaves to --json and files: beginnings of names, or ends with a '_'. */
    const char *const *folded;
    bool unlisted; /* help and completion do not list it */
    bool ranks;    /* runs under mpirun: all ranks come, rank 0 does the talking */
    int (*run)(cli_args *args);
} cli_command;

/* The first word of commands that have two. */
typedef struct cli_family {
    const char *name, *summary, *about;
} cli_family;

enum {
    CLI_WORDS = 24,
    CLI_LISTS = 2,
    CLI_LIST_MOST = 64,
    CLI_PAIRS = 512,
    CLI_NAME = 64,
    CLI_VALUES = 1 << 16,
    CLI_PATH = 1024 /* a word of the settings that has so much room is the name of a file */
};

struct cli_args {
    const cli_command *command;
    const fin_command *settings; /* NULL: it has none */
    /* What the options say about settings, in their order, and the tables that this chooses. */
    fin_pair pairs[CLI_PAIRS];
    char names[CLI_PAIRS][CLI_NAME];
    int pair_count;
    fin_group groups[FIN_GROUPS];
    int group_count;
    _Alignas(max_align_t) unsigned char values[CLI_VALUES]; /* of settings->size bytes */
    int64_t threads;                                        /* FIN_AUTO_INT: not given */
    const char *word[CLI_WORDS]; /* by place in command->words; "" for a flag; NULL: not given */
    const char *list[CLI_LISTS][CLI_LIST_MOST]; /* by place in command->lists */
    int list_count[CLI_LISTS];
    char **operand; /* [operand_count], borrowed from the command line */
    int operand_count;
};

extern const cli_command cli_latent_risk, cli_latent_draw, cli_risk, cli_simulate, cli_train,
    cli_landscape, cli_curve, cli_info, cli_study_run, cli_study_ls, cli_study_show,
    cli_study_status, cli_study_export, cli_study_diff, cli_study_merge, cli_study_gc,
    cli_study_check, cli_study_commands, cli_report, cli_explore, cli_plot, cli_reproduce,
    cli_attend, cli_fit, cli_predict, cli_locate, cli_explain, cli_pretrain, cli_finetune,
    cli_probe, cli_embed;

/* Fills args from argv[0..argc-1], the words behind the command. bare: operands may be missing and
 * settings need not fit together, as help and completion need it. *help: the user asks for help.
 * Returns an exit code, after the message. Settings are in `values`, unless they are swept. */
int cli_parse(cli_args *args, const cli_command *command, int argc, char **argv, bool bare,
              bool *help);
/* Fills `values` from the pairs. Returns an exit code, after the message. */
int cli_apply(cli_args *args);
/* A setting that was not on the command line; the text is borrowed. */
void cli_add(cli_args *args, const char *name, const char *text);
/* Is there a word with this name, so that a row of a table that is called the same is no option? */
bool cli_hidden(const cli_command *command, const char *name);
/* The value of a word of this command, "" for a flag, NULL if it was not given; or the text that a
 * setting was given. '-' and '_' are the same in a name, here and below. */
const char *cli_get(const cli_args *args, const char *name);
/* Every value that a list of this command was given, in order. Borrowed. */
const char *const *cli_list(const cli_args *args, const char *name, int *count);
bool cli_given(const cli_args *args, const char *name); /* a setting */
/* An option that was given and is none of `fitting`, which ends with NULL; or NULL. */
const char *cli_odd_option(const cli_args *args, const char *const *fitting);
/* "test_folds" as it is typed: "--test-folds". Returns buffer. */
char *cli_dashed(const char *name, char buffer[CLI_NAME + 2]);
/* The row of this name in the tables that the options have chosen, and its values; or NULL. */
const fin_field *cli_field(const cli_args *args, const char *name, const fin_group **group);
bool cli_is_word(const cli_args *args, const char *name); /* a setting that is text */
/* The text of a word of the settings, such as task; "" if there is none. */
const char *cli_word_text(const cli_args *args, const char *name);
const fin_task_kind *cli_task_kind(const cli_args *args);
const fin_form *cli_form(const cli_args *args);
const fin_family *cli_settings_family(const cli_args *args);
/* The values of a table, of those that the options have chosen; NULL if it is not one of them. */
const void *cli_values(const cli_args *args, const fin_settings *table);

/* "lab NAME" for every row of the library's table; those that `commands` have already are not listed.
 * Returns how many. */
int cli_lab(const cli_command *const *commands, const cli_command **list, int room);

/* Whether a command is of this family: behind its name, or NULL. */
const char *cli_family_member(const cli_family *family, const cli_command *command);

void cli_help_overview(void);
void cli_help_tasks(void); /* tasks, forms and families */
void cli_help_family(const cli_family *family, const cli_command *const *commands);
void cli_help_command(const cli_args *args);
/* One line per option: name, type, default, lowest, highest, choices, separated by tabs. */
void cli_complete(const cli_args *args);

/* ---- running a row of the library's table (result.c, sweep.c) ---------------------------------- */

/* Words of a command that runs one. */
#define CLI_ROW_WORDS                                                                              \
    {"points", "FILE",                                                                             \
     "a table: the numbers for each row of a CSV file whose columns are settings (missing ones "   \
     "have the option's value); - is standard input"},                                             \
        {"out", "FILE",                                                                            \
         "FILE.csv gets the numbers, FILE.npz series too; - is CSV on standard output"},           \
    {                                                                                              \
        "json", NULL, "print JSON"                                                                 \
    }
#define CLI_ROW_LISTS                                                                              \
    {                                                                                              \
        "sweep", "NAME=RANGE",                                                                     \
            "a curve as CSV: lam=0.01:3:100log, L=2:50:10lin (lin is the default), "               \
            "lam=0.1,0.2,0.5 or form=erf,softmax; several make a grid"                             \
    }

/* --sweep or --points is there. */
bool cli_is_many(const cli_args *args);
/* Do --sweep, --points, --out and --json go together? An exit code, after the message. */
int cli_check_row(const cli_args *args);
/* Runs the command's row and leaves its result for fin_result_destroy. An exit code. */
int cli_run_row(cli_args *args, fin_result **result);
/* Runs many points and writes them. */
int cli_sweep(cli_args *args, int (*head)(const cli_args *args));
bool cli_find_scalar(const fin_result *result, const char *name, fin_scalar *scalar);
/* The table of numbers; the outputs that notes give a reason for are there with a dash. */
void cli_print_result(const cli_args *args, const fin_result *result);
int cli_print_result_json(const cli_args *args, const fin_result *result);
fin_status cli_write_result(const char *path, const fin_result *result, fin_error *err);
/* Columns of numbers, or of texts, up to one without a name, into FILE.csv or FILE.npz. */
enum { CLI_COLUMNS = 640 };
typedef struct cli_column {
    char name[80];
    const double *values;
    const char *const *texts; /* NULL: numbers */
} cli_column;
void cli_add_column(cli_column *columns, int *count, const char *name, const char *ending,
                    const double *values);
fin_status cli_write_columns(const char *path, const cli_column *columns, int64_t rows,
                             fin_error *err);
/* "simulation, 1000 samples, s.e. 0.1". Returns buffer. */
char *cli_scalar_how(const fin_scalar *scalar, char *buffer, size_t size);
/* All of it: runs one point or many, and prints or writes what the words ask for. head() prints what
 * stands above the table and returns an exit code; may be NULL. */
int cli_run(cli_args *args, int (*head)(const cli_args *args));
fin_status cli_task_create(const cli_args *args, int64_t seed, int flags, fin_task **task,
                           fin_error *err);

/* ---- ranks (ranks.c) ------------------------------------------------------------------------ */

/* Joins the other processes of mpirun or srun; fails where there are some that cannot be reached. */
fin_status cli_ranks_start(fin_error *err);
bool cli_ranks_can(void); /* is the module for MPI there? */

/* ---- messages, output, progress ------------------------------------------------------------- */

/* "; did you mean NEAR?" or, if near is NULL, `otherwise`, in memory of the block. */
#define cli_hint(near, otherwise) fin_hint(near, otherwise, (char[FIN_HINT]){""})
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

/* Flushes standard output: a full disk is an error. If its reader has gone, as head does, nothing is
 * said and the exit code is that of SIGPIPE. */
int cli_flush(void);
bool cli_output_closed(void);
/* Before the first JSON value is made. */
void cli_json_begin(void);
/* Prints and releases root. */
int cli_print_json(json_t *root);
/* Was there no memory for this record, or for a part of it? */
bool cli_json_starved(const json_t *record);
json_t *cli_json_number(double number);  /* not finite: the text "nan", "inf" or "-inf" */
json_t *cli_json_text(const char *text); /* as it is, UTF-8 or not; NULL of NULL */
json_t *cli_json_texts(const char *const *texts, int64_t count);
/* Names and numbers up to a NULL; numbers that are not finite are left out. */
void cli_put(json_t *object, ...) __attribute__((sentinel));
static inline json_int_t cli_int(int64_t number) /* for json_pack, whose I takes no int64_t */
{
    return (json_int_t)number;
}
/* Prints a record by a form (show.c says what that is). An exit code. */
int cli_print(const json_t *record, const char *form);
void cli_note_of(const json_t *record, const char *form); /* as cli_note; nothing if it is empty */
/* A record as JSON, if --json asks for it, or by forms, one behind the other. Releases it. An exit
 * code. */
#define cli_show(args, record, ...)                                                                \
    cli_show_forms(args, record, (const char *const[]){__VA_ARGS__, NULL})
int cli_show_forms(const cli_args *args, json_t *record, const char *const *forms);
/* A value as text: "400", "0.1", "softmax". Returns buffer. */
char *cli_value(const json_t *value, char *buffer, size_t size);
/* Text from a file without codes that a terminal would obey. Returns buffer. */
char *cli_clean(const char *text, char *buffer, size_t size);
json_t *cli_json_settings(const fin_settings *table, const void *values);
/* "d=400 L=10 ...", in lines of at most 100 characters that begin behind the margin. */
void cli_print_settings(const fin_settings *table, const void *values);
/* The same for a row of the library's table that has a task and a form. Returns an exit code. */
int cli_print_asked_model(const cli_args *args);
/* "task  slr        d=400 ..." and "form  erf        lam=0.1" */
void cli_print_model(const fin_task *task, const char *lengths, const fin_form *form,
                     const fin_form_settings *settings);
json_t *cli_json_all_settings(const cli_args *args);
/* The shortest text that reads back as this number. Returns buffer. */
char *cli_number(double number, char *buffer, size_t size);
bool cli_ends_with(const char *path, const char *end); /* in any case */
/* Whether a file can be written, found out before an hour is spent. */
fin_status cli_try_output(const char *path, fin_error *err);
/* The same for the files that these options, up to a NULL, name; on rank 0. */
fin_status cli_try_outputs(const cli_args *args, const char *const *names, fin_error *err);
double cli_clock(void); /* seconds */

/* ---- tables and arrays (rows.c) --------------------------------------------------------------- */

/* Tells row i, cell by cell, always the same ones: for CSV, and for JSON. Texts stay the caller's, and
 * must live until the row has been written. */
typedef struct cli_row cli_row;
typedef void cli_teller(cli_row *row, const void *user, int64_t i);
void cli_cell(cli_row *row, const char *name, double number);
void cli_cell_at(cli_row *row, const char *name, int64_t place, double number); /* "k", 1: k1 */
void cli_cell_int(cli_row *row, const char *name, int64_t number);
void cli_cell_known(cli_row *row, const char *name, double number);   /* JSON leaves NaN out */
void cli_cell_text(cli_row *row, const char *name, const char *text); /* and "" */
void cli_cell_label(cli_row *row, const char *name,
                    double number); /* as short as it can be; NaN: "" */
/* One of several: prefix_name_suffix in CSV, with what is not ""; in JSON `name` of an object `group`. */
void cli_cell_of(cli_row *row, const char *group, const char *prefix, const char *name,
                 const char *suffix, double number);
json_t *cli_row_object(cli_row *row); /* of JSON; NULL: it is CSV */
json_t *cli_json_row(cli_teller *tell, const void *user, int64_t i);
json_t *cli_json_rows(cli_teller *tell, const void *user, int64_t count);
/* CSV. Row 0 is told, for the names of the columns, even if count is 0. */
fin_status cli_write_rows(const char *path, cli_teller *tell, const void *user, int64_t count,
                          fin_error *err);

/* An NPZ file that remembers what went wrong: after cli_npz_open anything can be added, and close
 * writes it, or tells. Arrays are the caller's until then. */
enum { CLI_NPZ_OWNED = 4 };
typedef struct cli_npz {
    fin_npz_writer *npz;
    fin_status status;
    fin_error *err;
    void *owned[CLI_NPZ_OWNED];
    int owned_count;
} cli_npz;
fin_status cli_npz_open(cli_npz *z, const char *path, fin_error *err);
void cli_npz_add(cli_npz *z, const char *name, fin_dtype dtype, int ndim, const int64_t *shape,
                 const void *data);
/* Names, one per line, as an array of bytes. */
void cli_npz_names(cli_npz *z, const char *array, int64_t count,
                   const char *(*name)(const void *user, int64_t i), const void *user);
/* So that the file says what it is: a name as bytes called `what`, settings as numbers. */
void cli_npz_settings(cli_npz *z, const char *what, const char *name, const char *prefix,
                      const fin_settings *table, const void *values);
fin_status cli_npz_close(cli_npz *z);

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
