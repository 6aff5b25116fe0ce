/* Key columns that say nothing, and keys in units of their own spread. */
#include "attend/attend.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* A column in units of 2^power, in which nothing overflows or vanishes when it is squared and
 * nothing is rounded. */
typedef struct moments {
    int power;
    double mean, spread; /* spread 0: constant, rounding included */
} moments;

static moments measure(const attend_data *data, int64_t j)
{
    int64_t n = data->tokens.count;
    double square = 0, size = 0;
    moments m = {0, 0, 0};
    for (int64_t i = 0; i < n; i++)
        size = fmax(size, fabs(data->keys[i * data->dk + j]));
    size = frexp(size, &m.power);
    for (int64_t i = 0; i < n; i++)
        m.mean += ldexp(data->keys[i * data->dk + j], -m.power) / (double)n;
    for (int64_t i = 0; i < n; i++) {
        double x = ldexp(data->keys[i * data->dk + j], -m.power) - m.mean;
        square += x * x / (double)n;
    }
    m.spread = sqrt(square) > 1e-14 * size ? sqrt(square) : 0;
    return m;
}

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

static void scale_column(double *rows, int64_t n, int64_t width, int64_t j, moments m)
{
    for (int64_t i = 0; i < n; i++)
        rows[i * width + j] = (ldexp(rows[i * width + j], -m.power) - m.mean) / m.spread;
}

fin_status attend_standardize(attend_data *data, bool wanted, fin_error *err)
{
    bool kept[FIN_TABLE_COLUMNS_MAX];
    char names[160] = "";
    int64_t constant = 0, width = data->dk;
    for (int64_t j = 0; j < width; j++) {
        moments m = measure(data, j);
        kept[j] = m.spread > 0 || !wanted;
        if (m.spread == 0) {
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
