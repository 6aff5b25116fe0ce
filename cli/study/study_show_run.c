/* One run, named by the beginning of its hash: part of finetti study show. */
#include "study/study.h"

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

static const char form[] =
    "run        {hash}\ncommand    {command}\nstate      {state}\n"
    "[{?reason}reason     {reason}\n]"
    "by         finetti {version}, kernels {kernel}, {seconds:.3g} s\n"
    "[settings   {settings=}\n]"
    "[{?scalars}\n{%20,22,12,14,0|scalar|value|error|how|samples}"
    "{*scalars|{%20,22,12,14,0|{name}|{value}|[{error:.3g}|{error}]|{how}|[{?samples}{samples}]}}]"
    "[{?series}\n{%20,22,12,0|series|shape|type|bytes in the store}"
    "{*series|{%20,22,12,0|{name}|{*shape|[{?first}| x ]{.}}|{dtype}|{bytes}}}]";

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
    json_object_set(f->run, "settings", f->settings);
    json_object_set(f->run, "scalars", f->scalars);
    json_object_set(f->run, "series", f->series);
    return cli_show(args, json_incref(f->run), form);
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
