/* The models in a fit: which predict, and which one says where the deciding token is. */
#include "bags/fit.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char *fit_loss_name(int64_t classes)
{
    return classes ? "log loss" : "squared error / variance";
}

double fit_round(double number)
{
    return fabs(number) < 0.5e-4 ? 0 : number;
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

void fit_print_parts(const fin_fit *fit, int margin,
                     const char *(*class_name)(const void *user, int64_t c), const void *user)
{
    fin_fit_info info;
    char name[64];
    fin_fit_get_info(fit, &info);
    for (int64_t i = 0; i < info.parts; i++) {
        double weight;
        const fin_fit_settings *part = fin_fit_part(fit, i, &weight);
        printf("%-*s%-16s ", margin, i ? "" : "parts",
               fit_title(part, info.classes, name, sizeof name));
        if (weight > 0)
            printf("weight %.3f", weight);
        else
            printf("for locations");
        if (part->model == FIN_MODEL_ANY && !fin_is_auto((double)part->positive))
            printf(", positive %s", fit_clean(class_name(user, part->positive), name, sizeof name));
        printf("\n");
    }
}

json_t *fit_json_parts(const fin_fit *fit)
{
    fin_fit_info info;
    char name[64];
    json_t *parts = json_array();
    fin_fit_get_info(fit, &info);
    for (int64_t i = 0; i < info.parts; i++) {
        double weight;
        const fin_fit_settings *part = fin_fit_part(fit, i, &weight);
        json_array_append_new(parts,
                              json_pack("{s:s, s:s, s:f, s:o}", "model",
                                        fit_name(part, info.classes, name, sizeof name), "basis",
                                        fit_basis_name(part, info.classes), "weight", weight,
                                        "settings", cli_json_settings(&fin_fit_table, part)));
    }
    return parts;
}

/* ---- who locates ------------------------------------------------------------------------------ */

/* Settings of the part that locates; NULL: none does. */
static const fin_fit_settings *locator_of(const fin_fit *fit, fin_fit_info *info)
{
    double weight;
    fin_fit_get_info(fit, info);
    return fin_fit_locates(fit) && info->locator >= 0 ? fin_fit_part(fit, info->locator, &weight)
                                                      : NULL;
}

char *fit_locator(const fin_fit *fit, char *buffer, size_t size)
{
    fin_fit_info info;
    const fin_fit_settings *part = locator_of(fit, &info);
    buffer[0] = '\0';
    if (!part)
        return buffer;
    fit_name(part, info.classes, buffer, size);
    size_t used = strlen(buffer);
    if (isfinite(info.locator_loss))
        snprintf(buffer + used, size - used, ": %s %.4f on bags left out",
                 fit_loss_name(info.classes), info.locator_loss);
    used = strlen(buffer);
    if (isfinite(info.locator_loss) && isfinite(info.base_loss))
        snprintf(buffer + used, size - used, " (base rate %.4f)", info.base_loss);
    return buffer;
}

json_t *fit_json_locator(const fin_fit *fit)
{
    fin_fit_info info;
    char name[64];
    const fin_fit_settings *part = locator_of(fit, &info);
    if (!part)
        return json_null();
    json_t *object =
        json_pack("{s:s, s:I}", "model", fit_name(part, info.classes, name, sizeof name), "part",
                  (json_int_t)info.locator);
    if (isfinite(info.locator_loss))
        json_object_set_new(object, "loss", json_real(info.locator_loss));
    if (isfinite(info.base_loss))
        json_object_set_new(object, "base_loss", json_real(info.base_loss));
    return object;
}
