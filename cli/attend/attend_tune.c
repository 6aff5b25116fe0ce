/* Settings: given, taken from the size of the data, or tuned. What is given stays as it is. */
#include "attend/attend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* FIN_TUNE_... of the settings that are auto. */
static unsigned auto_settings(const fin_cross_settings *s)
{
    return (fin_is_auto(s->scale) ? FIN_TUNE_SCALE : 0u) |
           (fin_is_auto(s->prior) ? FIN_TUNE_PRIOR : 0u) |
           (fin_is_auto(s->noise) ? FIN_TUNE_NOISE : 0u) |
           (fin_is_auto(s->temperature) ? FIN_TUNE_TEMPERATURE : 0u) |
           (fin_is_auto(s->level) ? FIN_TUNE_LEVEL : 0u);
}

char *attend_tuned_names(unsigned which, char *buffer, size_t size)
{
    static const char *const names[] = {"scale", "prior", "noise", "temperature"};
    buffer[0] = '\0';
    for (int i = 0; i < 4; i++) {
        size_t used = strlen(buffer);
        if (which >> i & 1)
            snprintf(buffer + used, size - used, "%s%s", used ? ", " : "", names[i]);
    }
    return buffer;
}

static fin_status choose(attend_fit *fit, const cli_args *args, const char **names, fin_error *err)
{
    attend_data *data = fit->data;
    for (int64_t j = 0; j < data->dk; j++)
        names[j] = attend_key_name(data, j);
    const fin_tune_data tokens = {data->sequences, data->dk,     data->dv, data->tokens.offsets,
                                  data->keys,      data->values, names};
    bool tune = cli_get(args, "tune");
    unsigned open = auto_settings(&fit->settings);
    if (data->scales) { /* the keys are divided by them already */
        open &= ~(unsigned)FIN_TUNE_SCALE;
        fit->settings.scale = fin_is_auto(fit->settings.scale) ? 1 : fit->settings.scale;
    }
    if (tune && !(fin_tune_which(&fit->settings, fit->scales != NULL) & open))
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--tune has nothing to choose: settings that are given stay as they are");
    CLI_TRY(fin_tune_choose(&fit->settings, fit->scales, open, &tokens,
                            tune ? &attend_asked(args)->tune : NULL, cli_progress(), &fit->tune,
                            err));
    for (int i = 0; i < fit->tune.notes; i++)
        attend_note(data, "%s", fit->tune.note[i]);
    return FIN_OK;
}

fin_status attend_choose(attend_fit *fit, cli_args *args, fin_error *err)
{
    size_t dk = (size_t)fit->data->dk;
    const char **names = calloc(dk, sizeof *names);
    bool ard = cli_get(args, "ard");
    fit->settings = attend_asked(args)->cross;
    fit->scales = ard ? calloc(dk, sizeof *fit->scales) : NULL;
    fin_status status = names && (fit->scales || !ard)
                            ? choose(fit, args, names, err)
                            : cli_status_memory(err, 16.0 * (double)dk, "the scales");
    free(names);
    return status;
}
