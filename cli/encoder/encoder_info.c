/* finetti info FILE of an encoder: what it is and what it was trained on. */
#include "encoder/encoder.h"

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

static const char form[] =
    "file        {file}: an encoder[{?can_go_on} that can go on learning]\n" ENCODER_FORM(
        "encoder") "tokens      {encoder.inputs} columns, {encoder.values} of them the value's\n"
                   "[trained on  {trained_on}, {corpus.objective}\n"
                   "[{?patch}            patches of {patch} x {patch}\n]]"
                   "[pretrained  {pretrained}\n][train       {train}\n]"
                   "[{*classes|<-12:[{?first}classes]>{.}\n}]";

static int report(const cli_args *args, const fin_checkpoint *file, const encoder_plan *plan,
                  const fin_encoder *encoder)
{
    const fin_learn_settings *learn = fin_checkpoint_learn(file);
    json_t *classes = json_array();
    for (int c = 0; c < 256; c++) {
        char key[32];
        snprintf(key, sizeof key, "class.%d", c);
        if (!fin_checkpoint_entry(file, key))
            break;
        json_array_append_new(classes, cli_json_text(fin_checkpoint_entry(file, key)));
    }
    json_t *record =
        json_pack("{s:o, s:o, s:b, s:o*, s:o*, s:I, s:o*, s:o*, s:o*, s:o}", "file",
                  cli_json_text(args->operand[0]), "encoder", encoder_of(encoder), "can_go_on",
                  learn != NULL, "trained_on", cli_json_text(plan ? encoder_plan_name(plan) : NULL),
                  "corpus", plan ? cli_json_settings(&fin_corpus_table, &plan->corpus) : NULL,
                  "patch", cli_int(plan && plan->from == ENCODER_DATA ? plan->data.patch : 0),
                  "learn", learn ? cli_json_settings(&fin_learn_table, learn) : NULL, "pretrained",
                  cli_json_text(fin_checkpoint_entry(file, "pretrained")), "train",
                  cli_json_text(fin_checkpoint_entry(file, "train")), "classes", classes);
    return cli_show(args, record, form);
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
        *code = report(args, file, known, encoder);
    }
    fin_encoder_destroy(encoder);
    fin_checkpoint_close(file);
    return true;
}
