/* One run, named by the beginning of its hash: part of finetti study show. */
#include "study/study.h"

#include <stdio.h>
#include <string.h>

typedef struct found {
    int64_t count;
    json_t *run, *settings, *scalars, *series;
} found;

static fin_status find_run(void *user, const fin_run_row *row, fin_error *err)
{
    found *f = user;
    (void)err;
    if (f->count++ > 0)
        return FIN_OK;
    f->settings = study_settings(row->settings);
    f->run = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:f}", "hash", row->hash, "command",
                       row->command, "state", fin_state_name(row->state), "reason",
                       row->reason ? row->reason : "", "version", row->version ? row->version : "",
                       "kernel", row->kernel ? row->kernel : "", "seconds", row->seconds);
    return FIN_OK;
}

static fin_status add_scalar(void *user, const fin_run_row *row, const fin_scalar *scalar,
                             fin_error *err)
{
    found *f = user;
    (void)row, (void)err;
    json_array_append_new(f->scalars, json_pack("{s:s, s:o, s:o, s:s, s:I}", "name", scalar->name,
                                                "value", cli_json_number(scalar->value), "error",
                                                cli_json_number(scalar->error), "how",
                                                fin_how_name(scalar->how), "samples",
                                                (json_int_t)scalar->samples));
    return FIN_OK;
}

static fin_status add_series(void *user, const fin_run_row *row, const fin_series *series,
                             fin_error *err)
{
    static const char *const names[] = {
#define DTYPE_NAME(name, descr, size) [FIN_##name] = descr,
        FIN_DTYPE_LIST(DTYPE_NAME)
#undef DTYPE_NAME
    };
    found *f = user;
    json_t *shape = json_array();
    (void)row, (void)err;
    for (int i = 0; i < series->ndim && i < 4; i++)
        json_array_append_new(shape, json_integer((json_int_t)series->shape[i]));
    json_array_append_new(f->series, json_pack("{s:s, s:s, s:o, s:I}", "name", series->name,
                                               "dtype", names[series->dtype], "shape", shape,
                                               "bytes", (json_int_t)series->stored));
    return FIN_OK;
}

static void print_settings(const json_t *settings)
{
    char line[8192] = "", value[256];
    const char *name;
    json_t *item;
    json_object_foreach((json_t *)settings, name, item)
    {
        size_t used = strlen(line);
        snprintf(line + used, sizeof line - used, "%s%.60s=%s", used ? " " : "", name,
                 study_value(item, value, sizeof value));
    }
    for (char *rest = line; *rest;) { /* cells hold less than this */
        size_t bytes = strlen(rest) > 1000 ? 1000 : strlen(rest);
        while (rest[bytes] && bytes > 1 && rest[bytes] != ' ')
            bytes--;
        char piece[1024];
        snprintf(piece, sizeof piece, "%.*s", (int)bytes, rest);
        const char *cells[] = {rest == line ? "settings" : "", piece};
        study_print_cells(cells, (const int[]){9, 88}, 2);
        rest += bytes;
        rest += strspn(rest, " ");
    }
}

static void print_scalars(const json_t *scalars)
{
    static const int widths[] = {20, 22, 12, 14, 0};
    size_t i;
    const json_t *row;
    const char *header[] = {"scalar", "value", "error", "how", "samples"};
    if (json_array_size(scalars)) {
        putchar('\n');
        study_print_cells(header, widths, 5);
    }
    json_array_foreach(scalars, i, row)
    {
        char value[64], error[64], samples[32] = "";
        json_int_t count = json_integer_value(json_object_get(row, "samples"));
        study_value(json_object_get(row, "value"), value, sizeof value);
        study_value(json_object_get(row, "error"), error, sizeof error);
        if (json_is_real(json_object_get(row, "error")))
            snprintf(error, sizeof error, "%.3g", json_real_value(json_object_get(row, "error")));
        if (count)
            snprintf(samples, sizeof samples, "%lld", (long long)count);
        const char *cells[] = {study_json_text(row, "name"), value, error,
                               study_json_text(row, "how"), samples};
        study_print_cells(cells, widths, 5);
    }
}

static void print_series(const json_t *series)
{
    static const int widths[] = {20, 22, 12, 0};
    size_t i, k;
    const json_t *row, *size;
    const char *header[] = {"series", "shape", "type", "bytes in the store"};
    if (json_array_size(series)) {
        putchar('\n');
        study_print_cells(header, widths, 4);
    }
    json_array_foreach(series, i, row)
    {
        char shape[128] = "", bytes[32];
        json_array_foreach(json_object_get(row, "shape"), k, size)
        {
            size_t used = strlen(shape);
            snprintf(shape + used, sizeof shape - used, "%s%lld", k ? " x " : "",
                     (long long)json_integer_value(size));
        }
        snprintf(bytes, sizeof bytes, "%lld",
                 (long long)json_integer_value(json_object_get(row, "bytes")));
        const char *cells[] = {study_json_text(row, "name"), shape, study_json_text(row, "dtype"),
                               bytes};
        study_print_cells(cells, widths, 4);
    }
}

static int print_run(const found *f)
{
    char text[512];
    printf("run        %s\n", study_json_text(f->run, "hash"));
    printf("command    %s\n", study_clean(study_json_text(f->run, "command"), text, sizeof text));
    printf("state      %s\n", study_json_text(f->run, "state"));
    if (*study_json_text(f->run, "reason"))
        printf("reason     %s\n",
               study_clean(study_json_text(f->run, "reason"), text, sizeof text));
    printf("by         finetti %s",
           study_clean(study_json_text(f->run, "version"), text, sizeof text));
    printf(", kernels %s, ", study_clean(study_json_text(f->run, "kernel"), text, sizeof text));
    printf("%.3g s\n", json_number_value(json_object_get(f->run, "seconds")));
    print_settings(f->settings);
    print_scalars(f->scalars);
    print_series(f->series);
    return cli_flush();
}

static int show(cli_args *args, fin_store *store, const char *hash, found *f)
{
    fin_query query = {.hash = hash};
    fin_error err = {FIN_OK, ""};
    f->scalars = json_array();
    f->series = json_array();
    if (fin_store_runs(store, &query, find_run, f, &err))
        return cli_error(&err);
    if (f->count == 0)
        return cli_usage("the store has neither a study nor a run '%.60s'; 'finetti study ls' "
                         "lists them",
                         hash);
    if (f->count > 1)
        return cli_usage("%lld runs begin with '%.40s'; give more digits", (long long)f->count,
                         hash);
    if (fin_store_scalars(store, &query, add_scalar, f, &err) ||
        fin_store_series(store, &query, 0, add_series, f, &err))
        return cli_error(&err);
    if (!cli_get(args, "json"))
        return print_run(f);
    json_object_set(f->run, "settings", f->settings);
    json_object_set(f->run, "scalars", f->scalars);
    json_object_set(f->run, "series", f->series);
    return cli_print_json(json_incref(f->run));
}

int study_show_run(cli_args *args, fin_store *store, const char *hash)
{
    found f = {.count = 0};
    int code = show(args, store, hash, &f);
    json_decref(f.run);
    json_decref(f.settings);
    json_decref(f.scalars);
    json_decref(f.series);
    return code;
}
