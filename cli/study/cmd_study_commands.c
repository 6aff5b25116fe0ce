/* finetti study commands: what a study can run, and what a run leaves. */
#include "study/study.h"

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

static json_t *json_command(const fin_command *command)
{
    json_t *outputs = json_object();
    for (const fin_output *o = command->outputs; o->name; o++)
        json_object_set_new(outputs, o->name, json_string(o->meaning));
    return json_pack("{s:s, s:o}", "summary", command->summary, "outputs", outputs);
}

static int run(cli_args *args)
{
    json_t *root = json_object();
    for (int i = 0; i < fin_command_count(); i++)
        json_object_set_new(root, fin_command_at(i)->name, json_command(fin_command_at(i)));
    return cli_show(args, root, "{*.|[{!first}\n]{@}: {summary}\n{*outputs|{%0,20,76||{@}|{.}}}}");
}
