/* --out: answers, leave-one-out predictions or the learning curve as CSV; all there is as NPZ. */
#include "attend/attend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a table as CSV ------------------------------------------------------------------------- */

/* Names and numbers of one row, filled in the same order: the first pass collects names. */
typedef struct sheet {
    char (*name)[96];
    double *cell;
    int count, room;
} sheet;

static void put(sheet *s, double number, const char *format, const char *name)
{
    if (s->count < s->room) {
        snprintf(s->name[s->count], sizeof s->name[0], format, name);
        s->cell[s->count] = number;
    }
    s->count++;
}

static void put_key(sheet *s, const attend_fit *fit, const attend_source *source,
                    const attend_list *sequence, const attend_list *key, int64_t row)
{
    const attend_data *data = fit->data;
    put(s, (double)row + 1, "%s", "row");
    if (data->sequence.count)
        put(s, attend_label(data, source, sequence, row), "%s",
            data->context.column[data->sequence.at[0]].name);
    for (int64_t j = 0; j < data->dk; j++)
        put(s, attend_cell(&source->column[key->at[j]], row), "%s", attend_key_name(data, j));
}

static void put_answer(sheet *s, const attend_fit *fit, int64_t q)
{
    const attend_data *data = fit->data;
    bool cme = fit->settings.form == FIN_CROSS_CME;
    put_key(s, fit, data->asked, &data->asked_sequence, &data->asked_key, data->queries.row[q]);
    for (int64_t j = 0; j < data->dv; j++) {
        const char *name = attend_value_name(data, j);
        double variance = fit->variance[q * data->dv + j];
        put(s, fit->mean[q * data->dv + j], "%.80s_mean", name);
        put(s, sqrt(variance), cme ? "%.80s_sd" : "%.80s_spread", name);
        if (cme)
            put(s, sqrt(variance + fit->settings.noise), "%.80s_sd_new", name);
    }
    for (int k = 0; k < fit->top; k++) {
        char number[16];
        int64_t token = fit->top_token[q * fit->top + k];
        snprintf(number, sizeof number, "%d", k + 1);
        put(s, token >= 0 ? (double)token + 1 : NAN, "top%s", number);
        put(s, fit->top_weight[q * fit->top + k], "weight%s", number);
    }
}

static void put_left_out(sheet *s, const attend_fit *fit, int64_t i)
{
    const attend_data *data = fit->data;
    bool cme = fit->settings.form == FIN_CROSS_CME;
    put_key(s, fit, &data->context, &data->sequence, &data->key, data->tokens.row[i]);
    for (int64_t j = 0; j < data->dv; j++) {
        const char *name = attend_value_name(data, j);
        int64_t at = i * data->dv + j;
        put(s, data->values[at], "%.80s", name);
        put(s, fit->loo_mean[at], "%.80s_mean", name);
        put(s, sqrt(fit->loo_variance[at]), cme ? "%.80s_sd_new" : "%.80s_spread", name);
        put(s, fin_cross_pit(data->values[at], fit->loo_mean[at], fit->loo_variance[at]),
            "%.80s_pit", name);
    }
}

static void put_length(sheet *s, const attend_fit *fit, int64_t l)
{
    put(s, (double)l, "%s", "tokens");
    put(s, (double)fit->curve_count[l], "%s", "count");
    put(s, fit->curve_error[l], "%s", "squared_error");
    if (fit->settings.form == FIN_CROSS_CME)
        put(s, fit->curve_score[l], "%s", "minus_log_score");
}

typedef void (*put_row)(sheet *s, const attend_fit *fit, int64_t i);

/* Rows are written in the order of the file they come from. */
static int64_t *order_of(const attend_rows *rows, int64_t count)
{
    int64_t *order = malloc((size_t)(count + 1) * sizeof *order);
    for (int64_t i = 0; order && i < count; i++)
        order[rows ? rows->row[i] : i] = i;
    return order;
}

static fin_status write_rows(const char *path, const attend_fit *fit, put_row row,
                             const attend_rows *rows, int64_t count, sheet *s, fin_error *err)
{
    fin_csv *csv;
    int64_t *order = order_of(rows, count);
    const char **names = malloc((size_t)(s->room + 1) * sizeof *names);
    fin_status status = order && names
                            ? FIN_OK
                            : cli_status_memory(err, 8.0 * (double)count, "the order of the rows");
    if (!status) {
        s->count = 0;
        row(s, fit, 0);
        for (int j = 0; j < s->count; j++)
            names[j] = s->name[j];
        status = fin_csv_open(path, names, s->count, &csv, err);
    }
    for (int64_t i = 0; i < count && !status; i++) {
        s->count = 0;
        row(s, fit, order[i]);
        status = fin_csv_row(csv, s->cell, err);
        if (!status && i % 4096 == 0 && cli_cancelled())
            status = cli_status(err, FIN_ERR_CANCELLED, "cancelled");
        if (status)
            fin_csv_abort(csv);
    }
    if (!status)
        status = fin_csv_commit(csv, err);
    free(order);
    free(names);
    return status;
}

static fin_status write_csv(const char *path, const attend_fit *fit, fin_error *err)
{
    const attend_data *data = fit->data;
    bool curve = fit->grows, answers = !curve && fit->predicts;
    put_row row = curve ? put_length : answers ? put_answer : put_left_out;
    const attend_rows *rows = curve ? NULL : answers ? &data->queries : &data->tokens;
    int64_t count = curve ? fit->lengths : rows->count;
    sheet s = {NULL, NULL, 0, 0};
    if (count > 0)
        row(&s, fit, 0); /* how many columns */
    s.room = s.count;
    s.name = calloc((size_t)s.room + 1, sizeof *s.name);
    s.cell = calloc((size_t)s.room + 1, sizeof *s.cell);
    fin_status status = s.name && s.cell ? write_rows(path, fit, row, rows, count, &s, err)
                                         : cli_status_memory(err, 100.0 * s.room, "a row");
    free(s.name);
    free(s.cell);
    return status;
}

/* ---- arrays as NPZ -------------------------------------------------------------------------- */

typedef struct archive {
    fin_npz_writer *npz;
    fin_status status;
    fin_error *err;
} archive;

static void add(archive *a, const char *name, fin_dtype dtype, int64_t rows, int64_t columns,
                const void *block)
{
    int64_t shape[2] = {rows, columns};
    if (!a->status)
        a->status = fin_npz_add(a->npz, name, dtype, columns < 0 ? 1 : 2, shape, block, a->err);
}

static void add_settings(archive *a, const attend_fit *fit, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < fin_cross_table.count; i++) {
        char number[64];
        const fin_field *field = &fin_cross_table.fields[i];
        used += (size_t)snprintf(text + used, size - used, "%s %s\n", field->name,
                                 fin_settings_text(field, &fit->settings, number, sizeof number));
    }
    add(a, "settings", FIN_U8, (int64_t)used, -1, text);
}

/* Rows as they stand in `rows`: names of the file's rows come along as an array. */
static void add_all(archive *a, const attend_fit *fit)
{
    const attend_data *data = fit->data;
    int64_t n = data->tokens.count, m = data->queries.count;
    if (fit->scales)
        add(a, "scales", FIN_F64, data->dk, -1, fit->scales);
    if (fit->predicts) {
        add(a, "row", FIN_I64, m, -1, data->queries.row);
        add(a, "query", FIN_F64, m, data->dk, data->query);
        add(a, "mean", FIN_F64, m, data->dv, fit->mean);
        add(a, "variance", FIN_F64, m, data->dv, fit->variance);
    }
    if (fit->predicts && fit->top) {
        add(a, "top", FIN_I64, m, fit->top, fit->top_token);
        add(a, "weight", FIN_F64, m, fit->top, fit->top_weight);
    }
    if (fit->leaves_out) {
        add(a, "loo_row", FIN_I64, n, -1, data->tokens.row);
        add(a, "loo_value", FIN_F64, n, data->dv, data->values);
        add(a, "loo_mean", FIN_F64, n, data->dv, fit->loo_mean);
        add(a, "loo_variance", FIN_F64, n, data->dv, fit->loo_variance);
    }
    if (fit->grows) {
        add(a, "prefix_count", FIN_I64, fit->lengths, -1, fit->curve_count);
        add(a, "prefix_error", FIN_F64, fit->lengths, -1, fit->curve_error);
        add(a, "prefix_score", FIN_F64, fit->lengths, -1, fit->curve_score);
    }
}

static fin_status write_npz(const char *path, const attend_fit *fit, fin_error *err)
{
    archive a = {NULL, FIN_OK, err};
    char settings[2048];
    a.status = fin_npz_create(path, &a.npz, err);
    if (a.status)
        return a.status;
    add_settings(&a, fit, settings, sizeof settings);
    add_all(&a, fit);
    if (!a.status)
        return fin_npz_commit(a.npz, cli_progress(), err);
    fin_npz_abort(a.npz);
    return a.status;
}

fin_status attend_write(const char *path, const attend_fit *fit, fin_error *err)
{
    return cli_ends_with(path, ".npz") ? write_npz(path, fit, err) : write_csv(path, fit, err);
}
