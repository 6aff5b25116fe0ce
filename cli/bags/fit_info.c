/* finetti info MODEL: what a model file is, for whoever finds it in a year. */
#include "bags/fit.h"

static const char form[] =
    "model       {file}: {title}, [{?draws}{members#draw}|{members#fit}]\n{*parts|" FIT_PART_FORM
    "}"
    "fitted to   {bags} bags, {tokens} tokens\n[bags        {bag}\n][groups      {group}\n]"
    "label       {label}: [{?classes}a class\nclasses     {classes,30}|a number]\n"
    "features    {features,30}\n"
    "[{?constant}            ({constant} of them were constant and are not used)\n]"
    "[positive    {positive}\n]"
    "locates     [by " FIT_LOCATOR_FORM("locator.") "|{?locates}yes|no]\n"
                                                    "[{*notes|<-12:[{?first}notes]>{@}: {.}\n}]";

int fit_info(const cli_args *args)
{
    fin_error err = {FIN_OK, ""};
    fin_model *model = NULL;
    if (fin_model_read(args->operand[0], &model, &err))
        return cli_error(&err);
    const fin_fit *fit = fin_model_fit(model);
    const char *const *classes = fin_model_class_names(model);
    const fin_entry *notes;
    char name[64], title[64];
    fin_fit_info info;
    fin_fit_get_info(fit, &info);
    bool positive = info.classes == 2 && info.positive >= 0;
    json_t *said = json_object();
    for (int64_t i = 0, count = fin_model_notes(model, &notes); i < count; i++)
        json_object_set_new_nocheck(said, notes[i].key, cli_json_text(notes[i].value));
    json_t *record =
        json_pack("{s:o, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:b, s:o, s:o?, s:o?, s:o?, "
                  "s:o?, s:o*, "
                  "s:o*}",
                  "file", cli_json_text(args->operand[0]), "model",
                  fit_name(fin_fit_get_settings(fit), info.classes, name, sizeof name), "title",
                  fit_title(fin_fit_get_settings(fit), info.classes, title, sizeof title), "parts",
                  fit_parts_of(fit, fit_class_name, classes), "features",
                  cli_json_texts(fin_model_feature_names(model), info.d), "constant",
                  cli_int(info.d - info.columns), "bags", cli_int(info.bags), "tokens",
                  cli_int(info.tokens), "members", cli_int(info.members), "draws",
                  cli_int(fin_fit_model_get(fin_fit_get_settings(fit))->draws), "locates",
                  fin_fit_locates(fit), "notes", said, "label",
                  cli_json_text(fin_model_label(model)), "bag", cli_json_text(fin_model_bag(model)),
                  "group", cli_json_text(fin_model_group(model)), "locator", fit_locator(fit),
                  "positive", cli_json_text(positive ? classes[info.positive] : NULL), "classes",
                  info.classes ? cli_json_texts(classes, info.classes) : NULL);
    int code = cli_show(args, record, form);
    fin_model_destroy(model);
    return code;
}
