/* finetti info MODEL: what a model file is, for whoever finds it in a year. */
#include "bags/fit.h"

#include <stdio.h>

enum { LABEL = 12, WIDTH = 100, SHOWN = 30 };

/* Names in lines of at most WIDTH characters; a model may have thousands. */
static void print_names(const char *label, int64_t count, const char *const *names)
{
    char name[80];
    int column = printf("%-*s", LABEL, label);
    for (int64_t j = 0; j < count; j++) {
        fit_clean(j < SHOWN ? names[j] : "...", name, sizeof name);
        int length = snprintf(NULL, 0, "%s%s", name, j + 1 < count && j < SHOWN ? ", " : "");
        if (column + length > WIDTH && column > LABEL)
            column = printf("\n%*s", LABEL, "") - 1;
        column += printf("%s%s", name, j + 1 < count && j < SHOWN ? ", " : "");
        if (j == SHOWN)
            break;
    }
    printf("\n");
}

static int print_text(const fin_model *model, const char *path)
{
    const fin_fit *fit = fin_model_fit(model);
    const fin_entry *notes;
    char text[256], name[64], who[160];
    fin_fit_info info;
    fin_fit_get_info(fit, &info);
    printf("%-*s%s: %s, %lld fit%s\n", LABEL, "model", fit_clean(path, text, sizeof text),
           fit_title(fin_fit_get_settings(fit), info.classes, name, sizeof name),
           (long long)info.members, info.members == 1 ? "" : "s");
    fit_print_parts(fit, LABEL, fit_class_name, fin_model_class_names(model));
    printf("%-*s%lld bags, %lld tokens\n", LABEL, "fitted to", (long long)info.bags,
           (long long)info.tokens);
    if (fin_model_bag(model))
        printf("%-*s%s\n", LABEL, "bags", fit_clean(fin_model_bag(model), text, sizeof text));
    if (fin_model_group(model))
        printf("%-*s%s\n", LABEL, "groups", fit_clean(fin_model_group(model), text, sizeof text));
    printf("%-*s%s: %s\n", LABEL, "label", fit_clean(fin_model_label(model), text, sizeof text),
           info.classes ? "a class" : "a number");
    if (info.classes)
        print_names("classes", info.classes, fin_model_class_names(model));
    print_names("features", info.d, fin_model_feature_names(model));
    if (info.columns < info.d)
        printf("%*s(%lld of them were constant and are not used)\n", LABEL, "",
               (long long)(info.d - info.columns));
    if (info.classes == 2 && info.positive >= 0)
        printf("%-*s%s\n", LABEL, "positive",
               fit_clean(fin_model_class_names(model)[info.positive], text, sizeof text));
    fit_locator(fit, who, sizeof who);
    printf("%-*s%s%s\n", LABEL, "locates",
           !fin_fit_locates(fit) ? "no"
           : *who                ? "by "
                                 : "yes",
           who);
    for (int64_t i = 0, count = fin_model_notes(model, &notes); i < count; i++) {
        char value[256];
        printf("%-*s%s: %s\n", LABEL, i ? "" : "notes", fit_clean(notes[i].key, text, sizeof text),
               fit_clean(notes[i].value, value, sizeof value));
    }
    return cli_flush();
}

static json_t *json_names(int64_t count, const char *const *names)
{
    json_t *array = json_array();
    for (int64_t i = 0; i < count; i++)
        json_array_append_new(array, json_string(names[i]));
    return array;
}

static int print_json(const fin_model *model)
{
    const fin_fit *fit = fin_model_fit(model);
    const fin_entry *notes;
    char name[64];
    fin_fit_info info;
    fin_fit_get_info(fit, &info);
    json_t *said = json_object();
    for (int64_t i = 0, count = fin_model_notes(model, &notes); i < count; i++)
        json_object_set_new(said, notes[i].key, json_string(notes[i].value));
    json_t *root = json_pack(
        "{s:s, s:o, s:o, s:I, s:I, s:I, s:b, s:o}", "model",
        fit_name(fin_fit_get_settings(fit), info.classes, name, sizeof name), "parts",
        fit_json_parts(fit), "features", json_names(info.d, fin_model_feature_names(model)), "bags",
        (json_int_t)info.bags, "tokens", (json_int_t)info.tokens, "members",
        (json_int_t)info.members, "locates", fin_fit_locates(fit), "notes", said);
    const char *label = fin_model_label(model), *bag = fin_model_bag(model),
               *group = fin_model_group(model);
    json_object_set_new(root, "label", label ? json_string(label) : json_null());
    json_object_set_new(root, "bag", bag ? json_string(bag) : json_null());
    json_object_set_new(root, "group", group ? json_string(group) : json_null());
    json_object_set_new(root, "locator", fit_json_locator(fit));
    if (info.classes == 2 && info.positive >= 0)
        json_object_set_new(root, "positive",
                            json_string(fin_model_class_names(model)[info.positive]));
    if (info.classes)
        json_object_set_new(root, "classes",
                            json_names(info.classes, fin_model_class_names(model)));
    return cli_print_json(root);
}

int fit_info(const cli_args *args)
{
    fin_error err = {FIN_OK, ""};
    fin_model *model = NULL;
    if (fin_model_read(args->operand[0], &model, &err))
        return cli_error(&err);
    int code = cli_get(args, "json") ? print_json(model) : print_text(model, args->operand[0]);
    fin_model_destroy(model);
    return code;
}
