/* Where the sequences of an encoder come from: from the command line, into a file and out of it.
 *
 * An encoder's file says what it was trained on, so that learning can go on, and a probe can look at
 * the same family or the same fold, without anybody repeating the options. */
#include "encoder/encoder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *encoder_plan_name(const encoder_plan *plan)
{
    return plan->from == ENCODER_FAMILY ? fin_family_name(plan->family)
           : plan->from == ENCODER_TASK ? fin_task_kind_name(plan->kind)
                                        : plan->path;
}

/* ---- from options --------------------------------------------------------------------------- */

static fin_status copy_word(const cli_args *args, const char *name, char to[ENCODER_TEXT],
                            fin_error *err)
{
    const char *text = cli_get(args, name);
    if (!text)
        return FIN_OK;
    if (strlen(text) >= ENCODER_TEXT)
        return cli_status(err, FIN_ERR_ARGUMENT, "--%s has more than %d characters", name,
                          ENCODER_TEXT - 1);
    strcpy(to, text);
    return FIN_OK;
}

fin_status encoder_plan_data(encoder_plan *plan, cli_args *args, fin_error *err)
{
    static const char *const names[] = {"data", "bag", "label", "kind", "columns", "key_columns"};
    char *const to[] = {plan->path,       plan->bag,     plan->label,
                        plan->label_kind, plan->columns, plan->keys};
    if (cli_get(args, "data"))
        plan->from = ENCODER_DATA;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        CLI_TRY(copy_word(args, names[i], to[i], err));
    for (int i = 0; i < encoder_data_table.count; i++) {
        const fin_field *field = &encoder_data_table.fields[i];
        if (cli_given(args, field->name))
            CLI_TRY(fin_settings_set(&encoder_data_table, &plan->data, field,
                                     fin_settings_get(field, &encoder_get(args)->data), err));
    }
    return encoder_check_data(plan, args, err);
}

fin_status encoder_plan_args(encoder_plan *plan, cli_args *args, fin_error *err)
{
    const encoder_asked *asked = encoder_get(args);
    memset(plan, 0, sizeof *plan);
    plan->kind = cli_task_kind(args);
    plan->from = plan->kind ? ENCODER_TASK : ENCODER_FAMILY;
    plan->family = cli_settings_family(args);
    plan->latent = asked->latent;
    plan->task = asked->task_settings;
    plan->corpus = asked->corpus;
    plan->data = asked->data;
    plan->seed = asked->learn.seed;
    return encoder_plan_data(plan, args, err);
}

/* ---- into a file ---------------------------------------------------------------------------- */

void encoder_entry(encoder_entries *list, const char *key, const char *value)
{
    if (list->count == ENCODER_ENTRIES || list->failed) {
        list->failed = true;
        return;
    }
    fin_entry *entry = &list->entry[list->count];
    char *copy[2] = {strdup(key), strdup(value)};
    if (!copy[0] || !copy[1]) {
        free(copy[0]);
        free(copy[1]);
        list->failed = true;
        return;
    }
    *entry = (fin_entry){copy[0], copy[1]};
    list->count++;
}

void encoder_entries_close(encoder_entries *list)
{
    for (int i = 0; i < list->count; i++) {
        free((void *)list->entry[i].key);
        free((void *)list->entry[i].value);
    }
    list->count = 0;
}

static void put_table(encoder_entries *list, const char *before, const fin_settings *table,
                      const void *values)
{
    for (int i = 0; i < table->count; i++) {
        char key[128], text[64];
        snprintf(key, sizeof key, "%s.%s", before, table->fields[i].name);
        encoder_entry(list, key, fin_settings_text(&table->fields[i], values, text, sizeof text));
    }
}

/* Names of the texts of data in a file, in the order of text_of. */
enum { TEXTS = 6 };
static const char *const text_names[TEXTS] = {"data.path", "data.bag",     "data.label",
                                              "data.kind", "data.columns", "data.keys"};

static char *text_of(encoder_plan *plan, int i)
{
    char *const texts[TEXTS] = {plan->path,       plan->bag,     plan->label,
                                plan->label_kind, plan->columns, plan->keys};
    return texts[i];
}

void encoder_plan_entries(encoder_entries *list, const encoder_plan *plan)
{
    static const char *const names[] = {"family", "task", "data"};
    char seed[32];
    encoder_entry(list, "from", names[plan->from]);
    snprintf(seed, sizeof seed, "%lld", (long long)plan->seed);
    encoder_entry(list, "seed", seed);
    put_table(list, "corpus", &fin_corpus_table, &plan->corpus);
    if (plan->from == ENCODER_FAMILY) {
        encoder_entry(list, "family", fin_family_name(plan->family));
        put_table(list, "family", fin_family_table(plan->family), &plan->latent);
    } else if (plan->from == ENCODER_TASK) {
        encoder_entry(list, "task", fin_task_kind_name(plan->kind));
        put_table(list, "task", fin_task_kind_table(plan->kind), &plan->task);
    } else {
        for (int i = 0; i < TEXTS; i++)
            if (*text_of((encoder_plan *)plan, i))
                encoder_entry(list, text_names[i], text_of((encoder_plan *)plan, i));
        put_table(list, "data", &encoder_data_table, &plan->data);
    }
}

/* ---- out of a file -------------------------------------------------------------------------- */

static fin_status get_table(const fin_checkpoint *file, const char *before,
                            const fin_settings *table, void *values, fin_error *err)
{
    fin_settings_defaults(table, values, table->size);
    for (int i = 0; i < table->count; i++) {
        char key[128];
        snprintf(key, sizeof key, "%s.%s", before, table->fields[i].name);
        const char *text = fin_checkpoint_entry(file, key);
        if (text)
            CLI_TRY(fin_settings_parse(table, values, table->fields[i].name, text, err));
    }
    return fin_settings_validate(table, values, err);
}

static fin_status read_names(encoder_plan *plan, const fin_checkpoint *file, fin_error *err)
{
    const char *from = fin_checkpoint_entry(file, "from"),
               *name = from ? fin_checkpoint_entry(file, from) : NULL;
    if (!from)
        return cli_status(err, FIN_ERR_FORMAT, "it does not say what it was trained on");
    if (strcmp(from, "data") == 0) {
        plan->from = ENCODER_DATA;
        return FIN_OK;
    }
    plan->from = strcmp(from, "task") == 0 ? ENCODER_TASK : ENCODER_FAMILY;
    plan->kind = plan->from == ENCODER_TASK && name ? fin_task_find(name) : NULL;
    plan->family = plan->from == ENCODER_FAMILY && name ? fin_family_find(name) : NULL;
    if (!plan->kind && !plan->family)
        return cli_status(err, FIN_ERR_FORMAT,
                          "it was trained on the %.20s '%.40s', which this finetti does not have",
                          from, name ? name : "");
    return FIN_OK;
}

static fin_status read_data(encoder_plan *plan, const fin_checkpoint *file, fin_error *err)
{
    for (int i = 0; i < TEXTS; i++) {
        const char *text = fin_checkpoint_entry(file, text_names[i]);
        if (text && strlen(text) >= ENCODER_TEXT)
            return cli_status(err, FIN_ERR_FORMAT, "its entry %s is too long", text_names[i]);
        strcpy(text_of(plan, i), text ? text : "");
    }
    return get_table(file, "data", &encoder_data_table, &plan->data, err);
}

fin_status encoder_plan_read(encoder_plan *plan, const fin_checkpoint *file, const char *path,
                             fin_error *err)
{
    fin_error why = {FIN_OK, ""};
    const char *seed = fin_checkpoint_entry(file, "seed");
    memset(plan, 0, sizeof *plan);
    plan->seed = seed ? strtoll(seed, NULL, 10) : 1;
    fin_status status = read_names(plan, file, &why);
    if (!status)
        status = get_table(file, "corpus", &fin_corpus_table, &plan->corpus, &why);
    if (!status && plan->from == ENCODER_FAMILY)
        status = get_table(file, "family", fin_family_table(plan->family), &plan->latent, &why);
    if (!status && plan->from == ENCODER_TASK)
        status = get_table(file, "task", fin_task_kind_table(plan->kind), &plan->task, &why);
    if (!status) /* also where there are none: their defaults */
        status = read_data(plan, file, &why);
    return status ? cli_status(err, FIN_ERR_FORMAT, "the encoder '%.200s' cannot be used: %.260s",
                               path, why.message)
                  : FIN_OK;
}
