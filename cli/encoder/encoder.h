/* What the commands on encoders share: pretrain, finetune and probe. */
#ifndef CLI_ENCODER_H
#define CLI_ENCODER_H

#include "cli.h"

/* ---- settings (encoder_settings.c) ------------------------------------------------------------ */

/* The library's tables without what is an option of another kind here: `train` of learning, `layer`
 * of probes. */
const fin_settings *encoder_learn_table(void);
const fin_settings *encoder_probe_table(void);
/* Sequences of tokens from files. */
#define ENCODER_DATA_FIELDS(F, C)                                                                  \
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
    ENCODER_DATA_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} cli_data_settings;
extern const fin_settings encoder_data_table;

/* What pretrain, finetune and probe are asked for; each has the tables that it needs. */
typedef struct encoder_asked {
    char family[32], task[32], data_path[CLI_PATH], resume[CLI_PATH];
    fin_latent_settings latent;
    fin_task_settings task_settings;
    fin_corpus_settings corpus;
    cli_data_settings data;
    fin_encoder_settings encoder;
    fin_learn_settings learn;
    fin_probe_settings probe;
    cli_pause_settings pause;
} encoder_asked;
static inline const encoder_asked *encoder_get(const cli_args *args)
{
    return (const void *)args->values;
}

/* "4,8,16": *count numbers from 0 to 2^20. */
enum { ENCODER_LENGTHS = 64 };
fin_status encoder_lengths_read(const char *text, int64_t lengths[ENCODER_LENGTHS], int *count,
                                fin_error *err);

/* ---- where sequences come from (encoder_plan.c) ------------------------------------------------ */

enum { ENCODER_FAMILY, ENCODER_TASK, ENCODER_DATA };
enum { ENCODER_TEXT = 1024 };

/* Everything that a file needs to say so that another command finds the same sequences. */
typedef struct encoder_plan {
    int from;
    const fin_family *family;
    const fin_task_kind *kind;
    fin_latent_settings latent;
    fin_task_settings task;
    fin_corpus_settings corpus;
    cli_data_settings data;
    char path[ENCODER_TEXT]; /* of the data; "" is what was not given, as in the next ones */
    char bag[ENCODER_TEXT], label[ENCODER_TEXT], label_kind[ENCODER_TEXT];
    char columns[ENCODER_TEXT], keys[ENCODER_TEXT];
    int64_t seed;
} encoder_plan;

/* The words of a command that say where data are, for its list of words. */
#define ENCODER_DATA_WORDS                                                                         \
    {"bag", "COLUMN", "bags: the column that names the bag; default: bag, bag_id or the first"},   \
        {"label", "COLUMN", "the column with the label; default: label or y"},                     \
        {"kind", "KIND", "what labels are: auto, regression (numbers) or classes"},                \
        {"columns", "COLUMNS",                                                                     \
         "columns of a token, or pixels of an image: names, x*, a:c or numbers from 1, with "      \
         "commas; default: all other columns that are numbers"},                                   \
    {                                                                                              \
        "key_columns", "COLUMNS", "bags: those of them that a hidden token still shows"            \
    }

fin_status encoder_plan_args(encoder_plan *plan, cli_args *args, fin_error *err);
fin_status encoder_plan_read(encoder_plan *plan, const fin_checkpoint *file, const char *path,
                             fin_error *err);
/* A data file on the command line takes the place of what the encoder's file says. */
fin_status encoder_plan_data(encoder_plan *plan, cli_args *args, fin_error *err);
/* "concept", "slr", "digits.csv". */
const char *encoder_plan_name(const encoder_plan *plan);

/* Keys and values for a file. Zero-initialise. */
enum { ENCODER_ENTRIES = 512 };
typedef struct encoder_entries {
    fin_entry entry[ENCODER_ENTRIES];
    int count;
    bool failed; /* there was no memory */
} encoder_entries;
void encoder_entry(encoder_entries *list, const char *key, const char *value);
void encoder_plan_entries(encoder_entries *list, const encoder_plan *plan);
void encoder_entries_close(encoder_entries *list);

/* ---- do options fit together (encoder_check.c) ------------------------------------------------- */

enum { ENCODER_OPTION = CLI_NAME + 2 };
/* Outputs are files, each its own, and neither the data nor the encoder that is read. An exit code,
 * after the message, as the next two. */
int encoder_check_files(const cli_args *args, const char *const outputs[]); /* up to a NULL */
/* Options that would change nothing. */
int encoder_check_pretrain(cli_args *args);
int encoder_check_learn(cli_args *args);
fin_status encoder_check_data(const encoder_plan *plan, cli_args *args, fin_error *err);

/* ---- the sequences (encoder_data.c) ------------------------------------------------------------- */

typedef struct encoder_data {
    fin_latent *latent;
    fin_task *task;
    fin_token_set *all, *train, *test; /* test: the fold that is held out, or NULL */
    fin_corpus *corpus, *judge;        /* judge: what evaluations use; NULL: corpus */
} encoder_data;

/* scale: of the encoder that the data are for, or NULL. classes: the labels must be there. */
fin_status encoder_data_open(encoder_data *data, const encoder_plan *plan,
                             const fin_token_scale *scale, fin_error *err);
/* A number that tells other sequences apart, as text; "" for families and tasks. */
const char *encoder_data_mark(const encoder_data *data, char buffer[ENCODER_OPTION]);
void encoder_data_close(encoder_data *data);
/* Prints what the notes of the data say. */
void encoder_data_notes(const encoder_data *data);
/* An evaluation: on all that is held out, or on `fresh` sequences of a family. L -1: as it was
 * learnt. */
fin_status encoder_judge(const fin_encoder *encoder, const encoder_data *data, int64_t fresh,
                         int64_t L, fin_evaluation *evaluation, fin_error *err);

/* ---- records (encoder_report.c), and how people read them ---------------------------------------- */

json_t *encoder_of(const fin_encoder *encoder);
#define ENCODER_FORM(at)                                                                           \
    "encoder     {" at ".settings.layers#layer} of {" at                                           \
    ".settings.attention} attention, width {" at ".settings.width}, {" at                          \
    ".settings.heads#head}[{?" at ".hidden}, {" at ".hidden} {" at                                 \
    ".settings.activation} units]\n            [{?" at ".settings.positions=none}no|{" at          \
    ".settings.positions}] positions, [{?" at ".settings.norm=none}no|layer] norm, {" at           \
    ".parameters} parameters\n{*" at ".heads|<-12:[{?first}answers]>{name}: {size} {kind} of a "   \
    "{of}\n}"
json_t *encoder_plan_of(const encoder_plan *plan, const encoder_data *data);
#define ENCODER_PLAN_FORM                                                                          \
    "[family      {data.family:-4s}  {data.family_settings=}\n"                                    \
    "|task        {data.task:-4s}  {data.task_settings=}\n"                                        \
    "|data        {data.data}: {data.sequences} "                                                  \
    "[{?data.patch}images as {data.patches#patch/patches} of {data.patch} x {data.patch}"          \
    "|bags, {data.columns#column} of a token]\n"                                                   \
    "            {data.train} to learn from, {data.test} held out\n]"                              \
    "objective   {data.corpus.objective}"                                                          \
    "[{?data.family}: [{data.shortest} to {data.corpus.L} tokens|{data.corpus.L#token}] in sight"  \
    "[{?data.corpus.objective=masked}, {data.corpus.M} hidden]"                                    \
    "|{?data.data}{?data.corpus.objective=masked}: {data.corpus.share:g} of the tokens are "       \
    "hidden]\n"
/* test_on says which sequences: "fresh sequences". */
json_t *encoder_test(const fin_evaluation *test);
#define ENCODER_TEST_FORM                                                                          \
    "test        {test.sequences} {test_on}, {test.targets} targets\n"                             \
    "[            accuracy {test.accuracy:.4f} +- {test.accuracy_se:.4f}\n]"                       \
    "            risk {~test.risk:.5g}[ +- {test.risk_se:.2g}]"                                    \
    "[, Bayes {test.bayes:.5g}, excess {~test.excess:.4g} +- {~test.excess_se:.2g}]"               \
    "[ ({test.of_bayes:.1p} % of Bayes)]\n"                                                        \
    "[            correlation with the Bayes prediction {test.correlation:.5f}\n]"                 \
    "[written to  {out}\n]"
json_t *encoder_log(const fin_learn *learn);
/* The log of learning as CSV. */
fin_status encoder_write_log(const char *path, const fin_learn *learn, fin_error *err);
/* finetti info FILE of an encoder (encoder_info.c); *code is the exit code. False: it is none. */
bool encoder_info(const cli_args *args, int *code);

/* ---- pictures and files of probes (encoder_images.c, encoder_export.c) ---------------------------- */

/* Images of the test fold with hidden patches beside what the encoder makes of them. */
fin_status encoder_reconstruct(const char *path, const fin_encoder *encoder,
                               const encoder_plan *plan, const encoder_data *data, fin_error *err);
fin_status encoder_write_maps(const char *path, const fin_encoder *encoder,
                              const encoder_data *data, int64_t layer, int64_t head,
                              int64_t sequence, fin_error *err);
fin_status encoder_write_states(const char *path, const fin_encoder *encoder,
                                const encoder_data *data, int64_t layer, int64_t sequences,
                                fin_error *err);

#endif
