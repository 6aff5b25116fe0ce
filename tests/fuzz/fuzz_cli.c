/* What the command line tool reads itself: its options, tables with text, points and lists of
 * columns. The first byte says which. Nothing is run. */
#include "fuzz.h"

#include "attend/attend.h"
#include "../../cli/encoder/encoder.h" /* src has one of this name */
#include "bags/fit.h"

/* The table of commands, and the ranges of --sweep, which nobody else sees. */
#undef main
#define main finetti_main
int finetti_main(int argc, char **argv);
#include "../../cli/main.c"
#undef main
#include "../../cli/sweep.c"

/* A file of --points for risk. */
static void fuzz_table_of_points(const char *text, size_t size)
{
    static cli_args args;
    static plan p;
    bool help = false;
    fin_error err = {FIN_OK, ""};
    memset(&p, 0, sizeof p);
    p.path = "t.csv";
    FUZZ_CHECK(cli_parse(&args, &cli_risk, 0, NULL, false, &help) == CLI_OK);
    fin_status status = fin_table_parse_texts(text, size, p.path, &p.table, &err);
    FUZZ_CHECK(status ? err.message[0] : p.table != NULL);
    if (!status && plan_columns(&p, &args) == CLI_OK)
        FUZZ_CHECK(p.count > 0 && p.n == fin_table_rows(p.table));
    release(&p);
}

/* Points, and behind a line break a list of their columns. */
static void fuzz_points(char *text)
{
    attend_source source;
    attend_list list = {NULL, 0};
    fin_error err = {FIN_OK, ""};
    char *rest = strchr(text, '\n');
    if (rest)
        *rest++ = '\0';
    fin_status status = attend_source_points(&source, text, &err);
    FUZZ_CHECK(!status || err.message[0]);
    if (!status && rest) {
        const attend_list *const others[] = {NULL};
        status = attend_list_read(&source, "--key", rest, others, &list, &err);
        FUZZ_CHECK(!status || err.message[0]);
        for (int i = 0; !status && i < list.count; i++)
            FUZZ_CHECK(list.at[i] >= 0 && list.at[i] < source.columns);
        free(list.at);
    }
    attend_source_close(&source);
}

/* A command, by the first letter, and a word of the command line on each line. */
static void fuzz_options(char *text)
{
    enum { WORDS = 32 };
    static cli_args args;
    char *words[WORDS + 1];
    int count = 0, commands_count = 0;
    bool help = false;
    collect();
    while (commands[commands_count])
        commands_count++;
    if (!text[0])
        return;
    const cli_command *command = commands[(unsigned char)text[0] % commands_count];
    for (char *word = text + 1, *next; word && count < WORDS; word = next) {
        if ((next = strchr(word, '\n')))
            *next++ = '\0';
        words[count++] = word;
    }
    words[count] = NULL;
    int code = cli_parse(&args, command, count, words, false, &help);
    FUZZ_CHECK(code == CLI_OK || code == CLI_USAGE || code == CLI_FAILED);
    if (code || help)
        return;
    if (command->row && !cli_get(&args, "points")) {
        static plan p;
        memset(&p, 0, sizeof p);
        (void)plan_sweep(&p, &args);
        release(&p);
    }
    fin_task *task = NULL;
    fin_error err = {FIN_OK, ""};
    if ((command == &cli_risk || command == &cli_train) && !cli_is_many(&args)) {
        fin_status status = cli_task_create(&args, 1, 0, &task, &err);
        FUZZ_CHECK(status ? err.message[0] != '\0' : task != NULL);
        fin_task_destroy(task);
    }
}

static void fuzz_small_words(const char *text)
{
    fin_fit_settings fit;
    fin_error err = {FIN_OK, ""};
    int64_t lengths[ENCODER_LENGTHS];
    int count, folds, repeats;
    fin_settings_defaults(&fin_fit_table, &fit, sizeof fit);
    fin_status status = fit_name_read(text, &fit, &err);
    FUZZ_CHECK(status ? err.message[0] : !fin_settings_validate(&fin_fit_table, &fit, &err));
    status = fit_cv_read(text, &folds, &repeats, &err);
    FUZZ_CHECK(status ? err.message[0] : folds >= 2 && repeats >= 1);
    status = encoder_lengths_read(text, lengths, &count, &err);
    FUZZ_CHECK(status ? err.message[0] : count >= 1 && count <= ENCODER_LENGTHS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    fuzz_path("x"); /* one thread */
    cli_message_silence();
    char *text = malloc(size);
    FUZZ_CHECK(text);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 4) {
    case 0:
        fuzz_table_of_points((const char *)data + 1, size - 1); /* of the exact size */
        break;
    case 1:
        fuzz_points(text);
        break;
    case 2:
        fuzz_options(text);
        break;
    default:
        fuzz_small_words(text);
    }
    free(text);
    return 0;
}
