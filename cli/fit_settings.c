/* Settings of a fit as options, and names of models as people write them. */
#include "fit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---------------------------------------------------------------------------------- */

char *fit_name(const fin_fit_settings *settings, char *buffer, size_t size)
{
    static const char *const ends[] = {"", "", ":rbf", "+rbf"};
    char model[32], heads[24] = "";
    const fin_field *field = fin_settings_find(&fin_fit_table, "model");
    fin_settings_text(field, settings, model, sizeof model);
    if (settings->heads > 1)
        snprintf(heads, sizeof heads, " x%lld", (long long)settings->heads);
    bool plain = settings->model == FIN_MODEL_AUTO || settings->model == FIN_MODEL_STACK;
    snprintf(buffer, size, "%s%s%s", model, plain ? "" : ends[settings->basis % 4], heads);
    return buffer;
}

/* The models there are: "auto", "softmax", ... Returns how many. */
static int model_names(char *text, size_t size, const char **names, int room)
{
    int count = 0;
    snprintf(text, size, "%s", fin_settings_find(&fin_fit_table, "model")->names);
    for (char *word = text; word && count < room; count++) {
        char *bar = strchr(word, '|');
        if (bar)
            *bar++ = '\0';
        names[count] = word;
        word = bar;
    }
    return count;
}

fin_status fit_name_read(const char *name, fin_fit_settings *settings, fin_error *err)
{
    char word[64], text[256];
    const char *names[32];
    int count = model_names(text, sizeof text, names, 32), model = -1;
    size_t length = strcspn(name, "+: ");
    const char *end = name + length;
    snprintf(word, sizeof word, "%.*s", length < sizeof word ? (int)length : 63, name);
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], word) == 0)
            model = i;
    const char *near = model < 0 ? fin_nearest_name(word, names, count) : NULL;
    if (model < 0)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--compare: there is no model '%.40s'%s%s; models "
                          "are %s, with +rbf for RBF features beside the columns or :rbf for RBF "
                          "features alone",
                          word, near ? "; did you mean " : "", near ? near : "",
                          fin_settings_find(&fin_fit_table, "model")->names);
    settings->model = model;
    if (strncmp(end, "+rbf", 4) == 0 || strncmp(end, ":rbf", 4) == 0) {
        settings->basis = *end == '+' ? FIN_BASIS_BOTH : FIN_BASIS_RBF;
        end += 4;
    } else {
        settings->basis = FIN_BASIS_LINEAR;
    }
    settings->heads = 1;
    if (end[0] == ' ' && end[1] == 'x' && end[2] >= '1' && end[2] <= '9') {
        char *rest;
        settings->heads = strtoll(end + 2, &rest, 10);
        end = rest;
    }
    if (*end)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--compare: '%.60s' is no model; write %s, %s+rbf or %s:rbf", name, word,
                          word, word);
    return fin_settings_validate(&fin_fit_table, settings, err);
}

bool fit_same(const fin_fit_settings *a, const fin_fit_settings *b)
{
    for (int i = 0; i < fin_fit_table.count; i++) {
        const fin_field *field = &fin_fit_table.fields[i];
        if (fin_settings_get(field, a) != fin_settings_get(field, b))
            return false;
    }
    return true;
}

fin_status fit_kind_check(const char *kind, fin_error *err)
{
    static const char *const kinds[] = {"auto", "regression", "classes"};
    for (int i = 0; i < 3; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return FIN_OK;
    const char *near = fin_nearest_name(kind, kinds, 3);
    return cli_status(err, FIN_ERR_ARGUMENT,
                      "--kind '%.40s'%s%s%s: allowed are auto, regression (labels are numbers) and "
                      "classes",
                      kind, near ? ", did you mean " : "", near ? near : "", near ? "?" : "");
}
