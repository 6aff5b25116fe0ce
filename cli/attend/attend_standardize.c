/* Key columns that say nothing, and keys in units of their own spread. */
#include "attend/attend.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void drop_column(attend_list *list, int64_t j)
{
    memmove(list->at + j, list->at + j + 1, (size_t)(list->count - 1 - j) * sizeof *list->at);
    list->count--;
}

/* Leaves out the columns that are not kept; rows become narrower in place. */
static void squeeze(double *rows, int64_t n, int64_t width, const bool *kept)
{
    double *to = rows;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < width; j++)
            if (kept[j])
                *to++ = rows[i * width + j];
}

static void scale_column(double *rows, int64_t n, int64_t width, int64_t j, fin_cross_column m)
{
    for (int64_t i = 0; i < n; i++)
        rows[i * width + j] = (ldexp(rows[i * width + j], -m.power) - m.mean) / m.deviation;
}

fin_status attend_standardize(attend_data *data, const cli_args *args, fin_error *err)
{
    bool wanted = cli_get(args, "standardize"), scaled = data->scales || cli_get(args, "ard");
    bool kept[FIN_TABLE_COLUMNS_MAX];
    char names[160] = "";
    int64_t constant = 0, width = data->dk;
    double narrowest = INFINITY, widest = -INFINITY; /* log2 of deviations */
    for (int64_t j = 0; j < width; j++) {
        fin_cross_column m;
        if (fin_cross_measure(data->tokens.count, width, data->keys + j, &m, err))
            return err->status;
        kept[j] = m.deviation > 0 || !wanted;
        if (m.deviation > 0) {
            narrowest = fmin(narrowest, log2(m.deviation) + m.power);
            widest = fmax(widest, log2(m.deviation) + m.power);
        }
        if (m.deviation == 0) {
            size_t used = strlen(names);
            if (used < 100)
                snprintf(names + used, sizeof names - used, "%s%.40s", constant ? ", " : "",
                         attend_key_name(data, j));
            constant++;
        } else if (wanted) {
            scale_column(data->keys, data->tokens.count, width, j, m);
            scale_column(data->query, data->queries.count, width, j, m);
        }
    }
    data->standardized = wanted;
    if (constant && data->tokens.count > 1)
        attend_note(data, "constant key column%s %s%s: %s", constant > 1 ? "s" : "", names,
                    strlen(names) >= 100 ? ", ..." : "",
                    wanted         ? "left out"
                    : constant > 1 ? "tokens do not differ there; --standardize leaves them out"
                                   : "tokens do not differ there; --standardize leaves it out");
    if (!wanted && !scaled && widest - narrowest > log2(10))
        attend_note(data,
                    "the widest key column has %.1e times the standard deviation of the narrowest; "
                    "--standardize, --scales or --ard make units not matter",
                    exp2(fmin(widest - narrowest, 1000)));
    if (!wanted || constant == 0)
        return FIN_OK;
    if (constant == width)
        return cli_status(err, FIN_ERR_FORMAT,
                          "%.200s: every key column is constant; --standardize leaves nothing",
                          data->context.label);
    squeeze(data->keys, data->tokens.count, width, kept);
    squeeze(data->query, data->queries.count, width, kept);
    if (data->scales)
        squeeze(data->scales, 1, width, kept);
    for (int64_t j = width; j-- > 0;)
        if (!kept[j]) {
            drop_column(&data->key, j);
            if (data->asked)
                drop_column(&data->asked_key, j);
        }
    data->dk = data->key.count;
    return FIN_OK;
}
