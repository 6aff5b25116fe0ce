/* Around a search: the part of the tokens that it looks at, what it says about its end, and the
 * guess that it starts from. */
#include "context/tune.h"

#include "random/streams.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- a part of the tokens ------------------------------------------------------------------- */

static void layout(fini_arena *a, fin_tune_data *part, int64_t **offsets, double **keys,
                   double **values, int64_t tokens)
{
    part->offsets = *offsets = fini_take(a, part->n + 1, sizeof **offsets);
    part->keys = *keys = fini_take(a, tokens, (size_t)part->dk * sizeof **keys);
    part->values = *values = fini_take(a, tokens, (size_t)part->dv * sizeof **values);
}

fin_status fini_tune_portion(const fin_tune_data *data, int64_t most, int64_t seed,
                             fini_arena *arena, fin_tune_data *part, fin_error *err)
{
    int64_t *offsets, tokens = 0;
    double *keys, *values;
    *part = *data;
    for (int64_t s = 0; s < data->n; s++) {
        int64_t n = data->offsets[s + 1] - data->offsets[s];
        tokens += n < most ? n : most;
    }
    FINI_LAY_OUT(err, arena, "a part of the tokens",
                 layout(arena, part, &offsets, &keys, &values, tokens));
    for (int64_t s = 0, to = 0; s < data->n; s++) {
        int64_t first = data->offsets[s], n = data->offsets[s + 1] - first;
        int64_t left = n < most ? n : most;
        fin_random random;
        fin_random_open(&random, (uint64_t)seed, FINI_STREAM_TUNE_TOKENS, (uint64_t)s);
        for (int64_t i = 0; i < n; i++) { /* each set as likely, ascending: Knuth's algorithm S */
            if (fin_random_below(&random, n - i) >= left)
                continue;
            memcpy(keys + to * data->dk, data->keys + (first + i) * data->dk,
                   (size_t)data->dk * sizeof *keys);
            memcpy(values + to * data->dv, data->values + (first + i) * data->dv,
                   (size_t)data->dv * sizeof *values);
            left--;
            to++;
        }
        offsets[s + 1] = to;
    }
    return FIN_OK;
}

/* ---- what is said --------------------------------------------------------------------------- */

int fini_tune_end(const fini_tune *t, int64_t i)
{
    const fini_tune_part *p = &t->part[i];
    double near = 1e-3 * (p->high - p->low);
    return t->best[i] < p->low + near ? -1 : t->best[i] > p->high - near;
}

static void note_end(const fini_tune *t, int64_t i, double value, fin_tune_report *report)
{
    const fini_tune_part *p = &t->part[i];
    bool lower = fini_tune_end(t, i) < 0;
    const char *const *names = t->data->names;
    char name[80] = "scale", *note = report->note[report->notes++];
    if (p->column >= 0 && names)
        snprintf(name, sizeof name, "scale of %.60s", names[p->column]);
    else if (p->column >= 0)
        snprintf(name, sizeof name, "scale of column %lld", (long long)p->column);
    else if (p->what != FIN_TUNE_SCALE)
        snprintf(name, sizeof name, "%s",
                 p->what == FIN_TUNE_PRIOR   ? "prior"
                 : p->what == FIN_TUNE_NOISE ? "noise"
                                             : "temperature");
    snprintf(note, sizeof *report->note,
             "%s ended at the %s end of the range that was searched, %.3g%s", name,
             lower ? "lower" : "upper", value,
             p->column >= 0 && !lower ? ": the column does not matter"
             : p->what == FIN_TUNE_NOISE && lower
                 ? ": the values look free of noise or the kernel is "
                   "too rough; look at leave-one-out (loo), or give noise"
                 : "");
}

/* Of the scales of columns at an end, only the one that went furthest is named. */
void fini_tune_notes(const fini_tune *t, const fin_cross_settings *cross, const double *scales,
                     fin_tune_report *report)
{
    int64_t worst = -1;
    for (int64_t i = 0; scales && i < t->parts; i++)
        if (t->part[i].column >= 0 && fini_tune_end(t, i) &&
            (worst < 0 ||
             fabs(t->best[i] - t->part[i].first) > fabs(t->best[worst] - t->part[worst].first)))
            worst = i;
    if (worst >= 0)
        note_end(t, worst, cross->scale * scales[t->part[worst].column], report);
    for (int64_t i = 0; i < t->parts; i++)
        if (t->part[i].column < 0 && fini_tune_end(t, i))
            note_end(t, i, exp(t->best[i]), report);
    if (!report->converged)
        snprintf(report->note[report->notes++], sizeof *report->note,
                 "the search ran out of iterations; more iterations may do better");
}

/* ---- all of it ------------------------------------------------------------------------------ */

fin_status fin_tune_choose(fin_cross_settings *cross, double *scales, unsigned open,
                           const fin_tune_data *data, const fin_tune_settings *settings,
                           const fin_progress *progress, fin_tune_report *report, fin_error *err)
{
    FINI_NEED(err, cross, data);
    fin_cross_settings chosen = *cross;
    if (report)
        *report = (fin_tune_report){.which = 0};
    fin_status status = fini_tune_guess(&chosen, scales, open, data, err);
    unsigned which = settings && !status ? fin_tune_which(&chosen, scales != NULL) & open : 0;
    if (which)
        status = fin_tune(&chosen, scales, which, data, settings, progress, report, err);
    if (!status)
        *cross = chosen;
    return status;
}
