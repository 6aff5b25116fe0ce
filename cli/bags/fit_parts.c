/* The models in a fit: which predict, and which one says where the responsible token is. */
#include "bags/fit.h"

const char *fit_loss_name(int64_t classes)
{
    return classes ? "log loss" : "squared error / variance";
}

int64_t fit_parts(const fin_fit *fit, const fin_fit_settings **only)
{
    fin_fit_info info;
    int64_t count = 0;
    double weight;
    fin_fit_get_info(fit, &info);
    for (int64_t i = 0; i < info.parts; i++) {
        const fin_fit_settings *part = fin_fit_part(fit, i, &weight);
        if (weight > 0 && count++ == 0 && only)
            *only = part;
    }
    return count;
}

json_t *fit_parts_of(const fin_fit *fit, const char *(*class_name)(const void *user, int64_t c),
                     const void *user)
{
    fin_fit_info info;
    char name[64], title[64];
    json_t *parts = json_array();
    fin_fit_get_info(fit, &info);
    for (int64_t i = 0; i < info.parts; i++) {
        double weight;
        const fin_fit_settings *part = fin_fit_part(fit, i, &weight);
        bool any = fin_fit_model_get(part)->sides && !fin_is_auto((double)part->positive);
        json_array_append_new(
            parts,
            json_pack("{s:s, s:s, s:s, s:f, s:o, s:o*, s:o*}", "model",
                      fit_name(part, info.classes, name, sizeof name), "title",
                      fit_title(part, info.classes, title, sizeof title), "basis",
                      fit_basis_name(part, info.classes), "weight", weight, "settings",
                      cli_json_settings(&fin_fit_table, part), "penalty",
                      fin_is_auto(part->penalty) ? NULL : json_real(part->penalty), "positive",
                      cli_json_text(any ? class_name(user, part->positive) : NULL)));
    }
    return parts;
}

json_t *fit_locator(const fin_fit *fit)
{
    fin_fit_info info;
    char name[64];
    double weight;
    fin_fit_get_info(fit, &info);
    if (!fin_fit_locates(fit) || info.locator < 0)
        return NULL;
    const fin_fit_settings *part = fin_fit_part(fit, info.locator, &weight);
    json_t *object =
        json_pack("{s:s, s:I, s:s}", "model", fit_name(part, info.classes, name, sizeof name),
                  "part", cli_int(info.locator), "loss_name", fit_loss_name(info.classes));
    cli_put(object, "loss", info.locator_loss, "base_loss", info.base_loss, NULL);
    return object;
}
