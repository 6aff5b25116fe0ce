/* finetti simulate: samples of a task in a file, NPZ or CSV. */
#include "simulate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static int run(cli_args *args);

static const cli_word words[] = {
    {"out", "FILE",
     "required: FILE.npz has arrays tokens (all tokens x d), offsets (n+1), y (n), location (n x "
     "m, places in a sample counted from 0), k_star, v_star, the task and its settings. FILE.csv "
     "has one line per token, sample,token,relevant,y,x1..xd, counted from 0. - writes CSV to "
     "standard output"},
    {"sign", NULL, "y is 1 where it is positive, else 0: two classes, for finetti fit"},
    {"json", NULL, "print a summary as JSON"},
    {NULL, NULL, NULL},
};

#define FIN_TABLE_STRUCT simulate_settings
FIN_TABLE(static, draw_table, "simulate", SIMULATE_FIELDS);

static const fin_word setting_words[] = {
    FIN_WORD("task", simulate_asked, task, "slr", "generative model"),
    FIN_WORD("lengths", simulate_asked, lengths, "",
             "law of the sequence length, such as 5:0.2,10:0.8, instead of L"),
    FIN_WORDS_END,
};

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    simulate_asked *s = values;
    list[(*count)++] = (fin_group){&draw_table, &s->draw};
    return fin_word_group("task", s->task, &s->task_settings, list, count, err);
}

static const fin_command options = {
    .name = "simulate",
    .size = sizeof(simulate_asked),
    .words = setting_words,
    .instead = (const fin_instead[]){{.name = "lengths", .of = "L L_min"}, {.name = NULL}},
    .groups = groups,
};

const cli_command cli_simulate = {
    .name = "simulate",
    .summary = "draw samples of a task into an NPZ or CSV file",
    .about =
        "Draws sequences of tokens with their outputs. The tokens of sample i are rows\n"
        "offsets[i] .. offsets[i+1]-1 of one array. Sample i depends on the seed and i alone,\n"
        "whatever n, the number of threads or the processor.",
    .examples =
        "  finetti simulate --n 10000 --d 400 --L 10 --out bags.npz\n"
        "  finetti simulate --n 200 --skip 10000 --d 400 --L 10 --out test.npz\n"
        "  finetti simulate --task max --snr inf --n 100 --d 5 --out - | head\n"
        "  finetti simulate --L 30 --L_min 5 --m 2 --dtype double --seed 7 --out bags.npz\n",
    .settings = &options,
    .computes = true,
    .words = words,
    .run = run,
};

/* ---- NPZ ------------------------------------------------------------------------------------ */

/* The next bytes of the tokens, drawing more whenever a piece has been handed out. */
static fin_status fill_tokens(void *user, void *buffer, size_t bytes, fin_error *err)
{
    draws *s = user;
    unsigned char *out = buffer;
    while (bytes > 0) {
        size_t held =
            (size_t)(s->offsets[s->next] - s->offsets[s->first]) * (size_t)s->d * s->element;
        if (s->taken == held) {
            CLI_TRY(draws_next(s, err));
            continue;
        }
        size_t part = held - s->taken < bytes ? held - s->taken : bytes;
        memcpy(out, (unsigned char *)s->tokens + s->taken, part);
        s->taken += part;
        out += part;
        bytes -= part;
    }
    return FIN_OK;
}

/* y and location are known once the tokens, which stand before them, have been drawn: they are
 * streams because only a stream is certain to be read that late. */
typedef struct copy {
    const void *data;
    size_t used;
} copy;

static fin_status fill_copy(void *user, void *buffer, size_t bytes, fin_error *err)
{
    copy *c = user;
    (void)err;
    memcpy(buffer, (const unsigned char *)c->data + c->used, bytes);
    c->used += bytes;
    return FIN_OK;
}

static fin_status write_npz(draws *s, const char *path, fin_error *err)
{
    const fin_task_kind *kind = fin_task_get_kind(s->task);
    cli_npz z;
    if (cli_npz_open(&z, path, err))
        return err->status;
    const int64_t tokens[] = {s->offsets[s->n], s->d}, offsets[] = {s->n + 1}, n[] = {s->n},
                  location[] = {s->n, s->m}, d[] = {s->d};
    copy y = {s->y, 0}, places = {s->location, 0};
    z.status = fin_npz_add_stream(z.npz, "tokens", s->single ? FIN_F32 : FIN_F64, 2, tokens,
                                  fill_tokens, s, err);
    cli_npz_add(&z, "offsets", FIN_I64, 1, offsets, s->offsets);
    if (!z.status)
        z.status = fin_npz_add_stream(z.npz, "y", FIN_F64, 1, n, fill_copy, &y, err);
    if (!z.status)
        z.status =
            fin_npz_add_stream(z.npz, "location", FIN_I64, 2, location, fill_copy, &places, err);
    cli_npz_add(&z, "k_star", FIN_F64, 1, d, fin_task_k_star(s->task));
    cli_npz_add(&z, "v_star", FIN_F64, 1, d, fin_task_v_star(s->task));
    cli_npz_settings(&z, "task", fin_task_kind_name(kind), "", fin_task_kind_table(kind),
                     fin_task_get_settings(s->task));
    return cli_npz_close(&z);
}

/* ---- CSV ------------------------------------------------------------------------------------ */

enum { LEADING = 4, NAME_SIZE = 24 };

static fin_status open_csv(const draws *s, const char *path, fin_csv **csv, fin_error *err)
{
    static const char *const leading[LEADING] = {"sample", "token", "relevant", "y"};
    if (s->d > FIN_TABLE_COLUMNS_MAX - LEADING)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "d = %lld is too large for CSV (at most %d); write FILE.npz",
                          (long long)s->d, FIN_TABLE_COLUMNS_MAX - LEADING);
    size_t count = LEADING + (size_t)s->d;
    const char **names = malloc(count * sizeof *names);
    char *text = malloc((size_t)s->d * NAME_SIZE);
    fin_status status = FIN_OK;
    if (!names || !text) {
        status = cli_status_memory(err, (double)count * 32, "the names of the columns");
    } else {
        memcpy(names, leading, sizeof leading);
        for (int64_t j = 0; j < s->d; j++) {
            names[LEADING + j] = text + j * NAME_SIZE;
            snprintf(text + j * NAME_SIZE, NAME_SIZE, "x%lld", (long long)j + 1);
        }
        status = fin_csv_open(path, names, (int)count, csv, err);
    }
    free(names);
    free(text);
    return status;
}

static bool is_relevant(const draws *s, int64_t sample, int64_t token)
{
    for (int64_t j = 0; j < s->m; j++)
        if (s->location[sample * s->m + j] == token)
            return true;
    return false;
}

static fin_status write_sample(const draws *s, int64_t i, fin_csv *csv, double *row, fin_error *err)
{
    for (int64_t l = 0; l < s->offsets[i + 1] - s->offsets[i]; l++) {
        size_t start = (size_t)(s->offsets[i] - s->offsets[s->first] + l) * (size_t)s->d;
        row[0] = (double)s->skip + (double)i;
        row[1] = (double)l;
        row[2] = is_relevant(s, i, l);
        row[3] = s->y[i];
        for (int64_t j = 0; j < s->d; j++)
            row[LEADING + j] = s->single ? (double)((const float *)s->tokens)[start + (size_t)j]
                                         : ((const double *)s->tokens)[start + (size_t)j];
        CLI_TRY(fin_csv_row(csv, row, err));
    }
    return FIN_OK;
}

static fin_status write_rows(draws *s, fin_csv *csv, double *row, fin_error *err)
{
    const fin_progress *progress = cli_progress();
    while (s->next < s->n) {
        CLI_TRY(draws_next(s, err));
        for (int64_t i = s->first; i < s->next; i++) {
            CLI_TRY(write_sample(s, i, csv, row, err));
            if (progress->report(progress->user, "simulate", (double)i, (double)s->n))
                return cli_status(err, FIN_ERR_CANCELLED, "cancelled");
        }
    }
    return FIN_OK;
}

static fin_status write_csv(draws *s, const char *path, fin_error *err)
{
    fin_csv *csv;
    CLI_TRY(open_csv(s, path, &csv, err));
    double *row = malloc((LEADING + (size_t)s->d) * sizeof *row);
    fin_status status =
        row ? write_rows(s, csv, row, err) : cli_status_memory(err, 8.0 * (double)s->d, "a row");
    free(row);
    if (status) {
        fin_csv_abort(csv);
        return status;
    }
    return fin_csv_commit(csv, err);
}

/* ---- running -------------------------------------------------------------------------------- */

static int summary(const cli_args *args, const draws *s, const char *path, double seconds)
{
    struct stat info;
    double bytes = stat(path, &info) == 0 ? (double)info.st_size : 0;
    json_t *record = json_pack(
        "{s:s, s:o, s:I, s:I, s:s, s:I, s:o, s:I}", "task", cli_word_text(args, "task"),
        "task_settings",
        cli_json_settings(fin_task_kind_table(cli_task_kind(args)), fin_task_get_settings(s->task)),
        "n", cli_int(s->n), "seed", cli_int(simulate_get(args)->seed), "dtype",
        s->single ? "float" : "double", "tokens", cli_int(s->offsets[s->n]), "out",
        cli_json_text(path), "bytes", cli_int((int64_t)bytes));
    if (cli_get(args, "json"))
        return cli_print_json(record);
    cli_put(record, "megabytes", bytes / 1e6, "seconds", seconds, "d", (double)s->d, NULL);
    cli_note_of(record, "{n} samples, {tokens} tokens of dimension {d} to "
                        "[{?out=-}standard output|{out}] ({megabytes:.4g} MB, {seconds:.2g} s)");
    json_decref(record);
    return cli_flush(); /* the file is there, whatever became of the note */
}

static int run(cli_args *args)
{
    const char *path = cli_get(args, "out");
    if (!path)
        return cli_usage("--out is missing: --out FILE.npz, --out FILE.csv, or --out - for CSV on "
                         "standard output");
    bool standard = strcmp(path, "-") == 0, npz = cli_ends_with(path, ".npz");
    if (!standard && !npz && !cli_ends_with(path, ".csv"))
        return cli_usage("--out '%.200s' tells no format; end it in .npz or .csv", path);
    if (standard && cli_get(args, "json"))
        return cli_usage("--json and the samples cannot both go to standard output");
    draws s;
    fin_error err = {FIN_OK, ""};
    double start = cli_clock();
    /* A number has 4 or 8 bytes in NPZ and, mostly, at least ten characters in CSV. */
    double width = standard ? 0 : !npz ? 10 : simulate_get(args)->dtype == 0 ? 4 : 8;
    fin_status status = draws_open(&s, args, width, path, &err);
    if (!status)
        status = npz ? write_npz(&s, path, &err) : write_csv(&s, path, &err);
    cli_progress_end();
    int code = status ? cli_error(&err) : summary(args, &s, path, cli_clock() - start);
    draws_close(&s);
    return code;
}
