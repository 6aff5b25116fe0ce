/* Settings: given, taken from the size of the data, or tuned. What is given stays as it is. */
#include "attend.h"

#include <math.h>
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

/* ---- a part of the tokens ------------------------------------------------------------------- */

typedef struct portion {
    int64_t *offsets; /* (sequences + 1) */
    double *keys, *values;
} portion;

static void free_portion(portion *p)
{
    free(p->offsets);
    free(p->keys);
    free(p->values);
}

/* `count` of n places, each set as likely, ascending (Knuth's algorithm S). */
static bool is_picked(fin_random *random, int64_t n, int64_t count, int64_t at, int64_t taken)
{
    return fin_random_below(random, n - at) < count - taken;
}

/* At most `most` tokens of every sequence, at random. */
static fin_status take_portion(const attend_data *data, int64_t most, int64_t seed, portion *p,
                               fin_error *err)
{
    int64_t total = 0;
    size_t tokens = (size_t)data->tokens.count;
    p->offsets = calloc((size_t)data->sequences + 1, sizeof *p->offsets);
    p->keys = malloc((tokens * (size_t)data->dk + 1) * sizeof *p->keys);
    p->values = malloc((tokens * (size_t)data->dv + 1) * sizeof *p->values);
    if (!p->offsets || !p->keys || !p->values)
        return cli_status_memory(err, 8.0 * (double)tokens * (double)(data->dk + data->dv),
                                 "a part of the tokens");
    for (int64_t s = 0; s < data->sequences; s++) {
        int64_t first = data->tokens.offsets[s], n = data->tokens.offsets[s + 1] - first;
        int64_t count = n < most ? n : most, taken = 0;
        fin_random random;
        fin_random_open(&random, (uint64_t)seed, FIN_STREAM_USER, (uint64_t)s);
        for (int64_t i = 0; i < n; i++) {
            if (!is_picked(&random, n, count, i, taken))
                continue;
            memcpy(p->keys + total * data->dk, data->keys + (first + i) * data->dk,
                   (size_t)data->dk * sizeof(double));
            memcpy(p->values + total * data->dv, data->values + (first + i) * data->dv,
                   (size_t)data->dv * sizeof(double));
            taken++;
            total++;
        }
        p->offsets[s + 1] = total;
    }
    return FIN_OK;
}

/* ---- tuning --------------------------------------------------------------------------------- */

static fin_tune_data tune_data(const attend_data *data)
{
    return (fin_tune_data){data->sequences,      data->dk,   data->dv,
                           data->tokens.offsets, data->keys, data->values};
}

/* The landmarks' method has no gradient: as many tokens as landmarks are tuned on exactly. */
static fin_status search(attend_fit *fit, const cli_args *args, fin_error *err)
{
    fin_tune_data data = tune_data(fit->data);
    fin_cross_settings settings = fit->settings;
    portion part = {NULL, NULL, NULL};
    fin_status status = FIN_OK;
    if (settings.form == FIN_CROSS_CME && settings.method == FIN_CROSS_NYSTROM) {
        status = take_portion(fit->data, settings.landmarks, settings.seed, &part, err);
        settings.method = FIN_CROSS_AUTO;
        data.offsets = part.offsets;
        data.keys = part.keys;
        data.values = part.values;
        fit->tune_tokens = status ? 0 : part.offsets[data.n];
    }
    if (!status)
        status = fin_tune(&settings, fit->scales, fit->which, &data, &args->tune, cli_progress(),
                          &fit->tune, err);
    settings.method = fit->settings.method;
    fit->settings = settings;
    free_portion(&part);
    return status;
}

/* ---- the ends of the ranges ----------------------------------------------------------------- */

/* Ranges reach far to both sides of the guess, which is where the search began: a value at an end is
 * at the lower one if it is below the guess. */
static void note_end(attend_data *data, const char *name, double value, double guess,
                     const char *advice)
{
    attend_note(data, "%s ended at the %s end of the range that was searched, %.3g%s", name,
                value < guess ? "lower" : "upper", value, advice);
}

/* Of the scales of columns those furthest from their guess are named. */
static void note_scales(const attend_fit *fit, const double *guess)
{
    int64_t worst = 0;
    char name[96];
    for (int64_t j = 1; j < fit->data->dk; j++)
        if (fabs(log(fit->scales[j] / guess[j])) > fabs(log(fit->scales[worst] / guess[worst])))
            worst = j;
    snprintf(name, sizeof name, "scale of %.60s", attend_key_name(fit->data, worst));
    note_end(fit->data, name, fit->settings.scale * fit->scales[worst],
             fit->settings.scale * guess[worst],
             fit->scales[worst] > guess[worst] ? ": the column does not matter" : "");
}

static void note_ends(const attend_fit *fit, const fin_cross_settings *guess, const double *scales)
{
    const fin_cross_settings *s = &fit->settings;
    unsigned ends = fit->tune.at_limit;
    if (ends & FIN_TUNE_SCALE && scales)
        note_scales(fit, scales);
    else if (ends & FIN_TUNE_SCALE)
        note_end(fit->data, "scale", s->scale, guess->scale, "");
    if (ends & FIN_TUNE_PRIOR)
        note_end(fit->data, "prior", s->prior, guess->prior, "");
    if (ends & FIN_TUNE_NOISE)
        note_end(fit->data, "noise", s->noise, guess->noise,
                 s->noise < guess->noise ? ": the values look free of noise or the kernel is too "
                                           "rough; look at --loo, or give --noise"
                                         : "");
    if (ends & FIN_TUNE_TEMPERATURE)
        note_end(fit->data, "temperature", s->temperature, guess->temperature, "");
}

static fin_status tune(attend_fit *fit, const cli_args *args, unsigned open, fin_error *err)
{
    const fin_cross_settings guess = fit->settings;
    double *scales = NULL;
    fit->which = fin_tune_which(&fit->settings, fit->scales != NULL) & open;
    if (!fit->which)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--tune has nothing to choose: settings that are given stay as they are");
    if (fit->scales && !(scales = malloc((size_t)fit->data->dk * sizeof *scales)))
        return cli_status_memory(err, 8.0 * (double)fit->data->dk, "the scales");
    if (scales)
        memcpy(scales, fit->scales, (size_t)fit->data->dk * sizeof *scales);
    fin_status status = search(fit, args, err);
    fit->tuned = true;
    fit->by = args->tune.by != FIN_TUNE_BY_AUTO     ? args->tune.by
              : fit->settings.form == FIN_CROSS_CME ? FIN_TUNE_BY_EVIDENCE
                                                    : FIN_TUNE_BY_LOO;
    if (!status)
        note_ends(fit, &guess, scales);
    free(scales);
    if (!status && !fit->tune.converged)
        attend_note(fit->data, "the search ran out of iterations; more --iterations may do better");
    return status;
}

fin_status attend_choose(attend_fit *fit, cli_args *args, fin_error *err)
{
    fin_tune_data data = tune_data(fit->data);
    fit->settings = args->cross;
    unsigned open = auto_settings(&fit->settings);
    if (fit->data->scales) { /* the keys are divided by them already */
        open &= ~(unsigned)FIN_TUNE_SCALE;
        fit->settings.scale = fin_is_auto(fit->settings.scale) ? 1 : fit->settings.scale;
    }
    if (cli_get(args, "ard")) {
        fit->scales = calloc((size_t)fit->data->dk, sizeof *fit->scales);
        if (!fit->scales)
            return cli_status_memory(err, 8.0 * (double)fit->data->dk, "the scales");
    }
    fin_status status = fin_tune_guess(&fit->settings, fit->scales, open, &data, err);
    if (!status && cli_get(args, "tune"))
        status = tune(fit, args, open, err);
    return status;
}
