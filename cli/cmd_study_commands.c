/* finetti study commands: what a study can run, and what a run leaves. */
#include "study.h"

#include <stdio.h>

static int run(cli_args *args);

static const cli_word words[] = {
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

const cli_command cli_study_commands = {
    .name = "study commands",
    .summary = "the commands that a study can run, and their outputs",
    .about =
        "Lists the commands that stand behind `command:` in a study file, with the names of the\n"
        "numbers and series that a run leaves, for claims and figures.",
    .examples = "  finetti study commands\n"
                "  finetti study commands --json\n",
    .words = words,
    .run = run,
};

static void print_output(void *user, const char *name, const char *meaning)
{
    static const int widths[] = {0, 20, 76};
    (void)user;
    const char *cells[] = {"", name, meaning};
    study_print_cells(cells, widths, 3);
}

static void add_output(void *user, const char *name, const char *meaning)
{
    json_object_set_new(user, name, json_string(meaning));
}

static int run(cli_args *args)
{
    json_t *root = json_object();
    for (int i = 0; i < fin_job_count(); i++) {
        if (cli_get(args, "json")) {
            json_t *outputs = json_object();
            fin_job_outputs(i, add_output, outputs);
            json_object_set_new(
                root, fin_job_name(i),
                json_pack("{s:s, s:o}", "summary", fin_job_summary(i), "outputs", outputs));
            continue;
        }
        printf("%s%s: %s\n", i ? "\n" : "", fin_job_name(i), fin_job_summary(i));
        fin_job_outputs(i, print_output, NULL);
    }
    if (cli_get(args, "json"))
        return cli_print_json(root);
    json_decref(root);
    return cli_flush();
}
