/* finetti info FILE of an encoder: what it is and what it was trained on. */
#include "encoder/encoder.h"
#include "bags/fit.h"

#include <stdio.h>
#include <string.h>

/* Whether the file is an encoder's; a file that cannot be read is left to whoever asks next. */
static bool is_encoder(const char *path)
{
    fin_tensor_file *file = NULL;
    if (fin_tensors_open(path, &file, NULL))
        return false;
    const char *kind = fin_tensors_entry(file, "finetti");
    bool is = kind && strcmp(kind, "encoder") == 0;
    fin_tensors_close(file);
    return is;
}

static void print_notes(const fin_checkpoint *file)
{
    static const char *const keys[] = {"pretrained", "train"};
    char text[256];
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (fin_checkpoint_entry(file, keys[i]))
            printf("%-*s%s\n", ENCODER_MARGIN, keys[i],
                   cli_clean(fin_checkpoint_entry(file, keys[i]), text, sizeof text));
    for (int c = 0; c < 30; c++) {
        char key[32];
        snprintf(key, sizeof key, "class.%d", c);
        const char *name = fin_checkpoint_entry(file, key);
        if (!name)
            break;
        printf("%-*s%s\n", ENCODER_MARGIN, c ? "" : "classes", cli_clean(name, text, sizeof text));
    }
}

static int print_text(const fin_checkpoint *file, const encoder_plan *plan,
                      const fin_encoder *encoder, const char *path)
{
    char text[256], name[256], objective[32];
    const fin_learn_settings *learn = fin_checkpoint_learn(file);
    printf("%-*s%s: an encoder%s\n", ENCODER_MARGIN, "file", cli_clean(path, text, sizeof text),
           learn ? " that can go on learning" : "");
    encoder_print_encoder("encoder", fin_encoder_get_settings(encoder),
                          fin_encoder_get_shape(encoder), (double)fin_encoder_parameters(encoder));
    printf("%-*s%lld columns, %lld of them the value's\n", ENCODER_MARGIN, "tokens",
           (long long)fin_encoder_get_shape(encoder)->inputs,
           (long long)fin_encoder_get_shape(encoder)->values);
    if (plan) {
        printf("%-*s%s, %s\n", ENCODER_MARGIN, "trained on",
               cli_clean(encoder_plan_name(plan), name, sizeof name),
               fin_settings_text(fin_settings_find(&fin_corpus_table, "objective"), &plan->corpus,
                                 objective, sizeof objective));
        if (plan->from == ENCODER_DATA && plan->data.patch)
            printf("%*spatches of %lld x %lld\n", ENCODER_MARGIN, "", (long long)plan->data.patch,
                   (long long)plan->data.patch);
    }
    print_notes(file);
    return cli_flush();
}

static int print_json(const fin_checkpoint *file, const encoder_plan *plan,
                      const fin_encoder *encoder)
{
    json_t *root = json_pack("{s:o, s:b}", "encoder",
                             encoder_json_encoder(fin_encoder_get_settings(encoder),
                                                  fin_encoder_get_shape(encoder),
                                                  (double)fin_encoder_parameters(encoder)),
                             "can_go_on", fin_checkpoint_learn(file) != NULL);
    if (plan) {
        json_object_set_new(root, "trained_on", json_string(encoder_plan_name(plan)));
        json_object_set_new(root, "corpus", cli_json_settings(&fin_corpus_table, &plan->corpus));
    }
    if (fin_checkpoint_learn(file))
        json_object_set_new(root, "learn",
                            cli_json_settings(&fin_learn_table, fin_checkpoint_learn(file)));
    return cli_print_json(root);
}

bool encoder_info(const cli_args *args, int *code)
{
    static encoder_plan plan;
    const char *path = args->operand[0];
    fin_error err = {FIN_OK, ""};
    fin_checkpoint *file = NULL;
    fin_encoder *encoder = NULL;
    if (!is_encoder(path))
        return false;
    fin_status status = fin_checkpoint_read(path, &file, &err);
    if (!status)
        status = fin_checkpoint_encoder(file, &encoder, &err);
    if (status) {
        *code = cli_error(&err);
    } else {
        /* One that was not written by pretrain does not say what it was trained on. */
        const encoder_plan *known =
            encoder_plan_read(&plan, file, path, &err) == FIN_OK ? &plan : NULL;
        *code = cli_get(args, "json") ? print_json(file, known, encoder)
                                      : print_text(file, known, encoder, path);
    }
    fin_encoder_destroy(encoder);
    fin_checkpoint_close(file);
    return true;
}
