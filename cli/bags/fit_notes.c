/* What a person should know of bags that a model answers for: units that changed, bags it has seen. */
#include "bags/fit.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

__attribute__((format(printf, 2, 3))) static void add(fit_answer *answer, const char *format, ...)
{
    va_list list;
    if (answer->notes == FIT_NOTES)
        return;
    va_start(list, format);
    vsnprintf(answer->note[answer->notes++], sizeof answer->note[0], format, list);
    va_end(list);
}

/* The columns with most tokens outside, three at most, and how many others there are. */
static void note_columns(fit_answer *answer, int64_t *outside, const double *low,
                         const double *high)
{
    enum { SHOWN = 3 };
    int64_t d = answer->bags->d, others = 0;
    char name[80];
    for (int k = 0; k < SHOWN; k++) {
        int64_t most = 0;
        for (int64_t j = 1; j < d; j++)
            most = outside[j] > outside[most] ? j : most;
        if (outside[most] == 0)
            return;
        add(answer,
            "column '%s': %lld of %lld tokens are far outside of what the model was fitted to "
            "(%.4g "
            "to %.4g); are the units the same?",
            cli_clean(fin_bag_set_feature(answer->set, most), name, sizeof name),
            (long long)outside[most], (long long)answer->tokens, low[most], high[most]);
        outside[most] = 0;
    }
    for (int64_t j = 0; j < d; j++)
        others += outside[j] > 0;
    if (others)
        add(answer, "%lld more column%s tokens that are far outside", (long long)others,
            others == 1 ? " has" : "s have");
}

static fin_status look_outside(fit_answer *answer, fin_error *err)
{
    size_t d = (size_t)answer->bags->d;
    CLI_FREED int64_t *outside = calloc(d, sizeof *outside);
    CLI_FREED double *low = calloc(2 * d, sizeof *low);
    if (!outside || !low)
        return cli_status_memory(err, 24.0 * (double)d, "the columns");
    CLI_TRY(fin_fit_outside(answer->fit, answer->bags, outside, low, low + d, err));
    note_columns(answer, outside, low, low + d);
    return FIN_OK;
}

fin_status fit_answer_look(fit_answer *answer, fin_error *err)
{
    for (int i = 0; i < fin_bag_set_notes(answer->set); i++)
        add(answer, "%s", fin_bag_set_note(answer->set, i));
    return look_outside(answer, err);
}

fin_status fit_answer_known(fit_answer *answer, fin_error *err)
{
    int64_t n = answer->bags->n, count = 0;
    unsigned char *known = calloc((size_t)n, 1);
    if (!known)
        return cli_status_memory(err, (double)n, "the bags");
    fin_status status = fin_fit_known(answer->fit, answer->bags, known, err);
    for (int64_t i = 0; i < n && !status; i++)
        count += known[i];
    if (count)
        add(answer,
            "%lld of %lld bags are those that the model was fitted to: the score says nothing "
            "about "
            "new bags",
            (long long)count, (long long)n);
    free(known);
    return status;
}

void fit_answer_say(const fit_answer *answer)
{
    for (int i = 0; i < answer->notes; i++)
        cli_note("note: %s", answer->note[i]);
}

json_t *fit_answer_json(const fit_answer *answer)
{
    json_t *list = json_array();
    for (int i = 0; i < answer->notes; i++)
        json_array_append_new(list, json_string(answer->note[i]));
    return list;
}
