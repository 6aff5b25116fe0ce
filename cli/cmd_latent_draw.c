/* finetti latent draw: sequences of exchangeable tokens in a file, with queries and the truth. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run(cli_args *args);

static const cli_word words[] = {
    {"out", "FILE",
     "required: FILE.npz has arrays keys (n x L x dk), values (n x L x dv), queries, answers, "
     "truth (what an answer is on average, given the latent), z (the latent), the family and its "
     "settings; FILE.csv has one line per token, sequence,k1..,v1.., as 'finetti attend' reads it; "
     "- writes CSV to standard output"},
    {"queries", "FILE",
     "CSV file for queries with answers v1.. and truth1.., beside --out FILE.csv"},
    {"json", NULL, "print a summary as JSON"},
    {NULL, NULL, NULL},
};

#define DRAW_FIELDS(F, C)                                                                          \
    F(int64_t, n, 100, 1, INT64_C(1) << 40, "sequences to draw")                                   \
    F(int64_t, L, 32, 0, FIN_L_MAX, "tokens in a sequence")                                        \
    F(int64_t, Q, 8, 0, FIN_L_MAX, "queries behind a sequence")                                    \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed; sequence i is a function of the seed and i")
#define FIN_TABLE_STRUCT draw_settings
FIN_TABLE_OF_ITS_OWN(draw_table, "latent draw", DRAW_FIELDS);

typedef struct draw_asked {
    char family[32];
    fin_latent_settings latent;
    draw_settings own;
} draw_asked;

static const fin_word setting_words[] = {
    FIN_WORD("family", draw_asked, family, "concept", "family of exchangeable tokens"),
    FIN_WORDS_END,
};

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    draw_asked *s = values;
    fin_status status = fin_word_group("family", s->family, &s->latent, list, count, err);
    list[(*count)++] = (fin_group){&draw_table, &s->own};
    return status;
}

static const fin_command options = {
    .name = "latent draw",
    .size = sizeof(draw_asked),
    .words = setting_words,
    .groups = groups,
};

const cli_command cli_latent_draw = {
    .name = "latent draw",
    .summary = "draw exchangeable tokens of a family into an NPZ or CSV file",
    .about =
        "Draws sequences: a latent z for each, L tokens (key, value) given z, and Q queries with\n"
        "their answers. Sequence i depends on the seed and i alone.",
    .examples =
        "  finetti latent draw --family concept --n 1000 --L 32 --out concept.npz\n"
        "  finetti latent draw --family process --d 1 --n 3 --L 50 --Q 200 --out tokens.csv "
        "--queries queries.csv\n"
        "  finetti attend tokens.csv --key k1 --value v1 --sequence sequence --query "
        "queries.csv --tune\n",
    .settings = &options,
    .computes = true,
    .words = words,
    .run = run,
};

/* Everything at once: files larger than memory are not what this is for. */
typedef struct drawn {
    fin_latent_shape shape;
    int64_t n, L, Q, width; /* width: numbers of a truth */
    double *block, *keys, *values, *queries, *answers, *truth, *z;
} drawn;

static fin_status take(drawn *s, fin_error *err)
{
    const double per = (double)s->L * (double)(s->shape.dk + s->shape.dv) +
                       (double)s->Q * (double)(s->shape.dk + s->shape.dv + s->width) +
                       (double)s->shape.latent;
    const double bytes = 8 * (double)s->n * per;
    if (bytes > 64e9)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "%lld sequences of this family need %.3g GB of memory; draw fewer at a "
                          "time (at most 64 GB)",
                          (long long)s->n, bytes / 1e9);
    s->block = malloc((size_t)bytes + 8);
    if (!s->block)
        return cli_status_memory(err, bytes, "the sequences");
    double *next = s->block;
    s->keys = next, next += s->n * s->L * s->shape.dk;
    s->values = next, next += s->n * s->L * s->shape.dv;
    s->queries = next, next += s->n * s->Q * s->shape.dk;
    s->answers = next, next += s->n * s->Q * s->shape.dv;
    s->truth = next, next += s->n * s->Q * s->width;
    s->z = next;
    return FIN_OK;
}

/* ---- NPZ ------------------------------------------------------------------------------------ */

static fin_status write_npz(const drawn *s, const fin_latent *latent, const char *path,
                            fin_error *err)
{
    const struct {
        const char *name;
        int64_t shape[3];
        int ndim;
        const double *data;
    } arrays[] = {
        {"keys", {s->n, s->L, s->shape.dk}, 3, s->keys},
        {"values", {s->n, s->L, s->shape.dv}, 3, s->values},
        {"queries", {s->n, s->Q, s->shape.dk}, 3, s->queries},
        {"answers", {s->n, s->Q, s->shape.dv}, 3, s->answers},
        {"truth", {s->n, s->Q, s->width}, 3, s->truth},
        {"z", {s->n, s->shape.latent, 0}, 2, s->z},
    };
    const fin_family *family = fin_latent_get_family(latent);
    cli_npz z;
    if (cli_npz_open(&z, path, err))
        return err->status;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        cli_npz_add(&z, arrays[i].name, FIN_F64, arrays[i].ndim, arrays[i].shape, arrays[i].data);
    cli_npz_settings(&z, "family", fin_family_name(family), "setting_", fin_family_table(family),
                     fin_latent_get_settings(latent));
    return cli_npz_close(&z);
}

/* ---- CSV ------------------------------------------------------------------------------------ */

/* A line for every token, or query, of every sequence: arrays side by side. */
typedef struct table {
    int64_t per; /* lines of a sequence */
    struct {
        const char *name;
        int64_t width;
        const double *data;
    } part[4]; /* ends with a NULL name */
} table;

static void tell_line(cli_row *row, const void *user, int64_t i)
{
    const table *t = user;
    cli_cell_int(row, "sequence", t->per ? i / t->per : 0);
    for (int p = 0; t->part[p].name; p++)
        for (int64_t j = 0; j < t->part[p].width; j++)
            cli_cell_at(row, t->part[p].name, j + 1,
                        t->per ? t->part[p].data[i * t->part[p].width + j] : NAN);
}

static fin_status write_tables(const drawn *s, const char *path, const char *queries,
                               fin_error *err)
{
    const table tokens = {s->L, {{"k", s->shape.dk, s->keys}, {"v", s->shape.dv, s->values}}};
    const table asked = {s->Q,
                         {{"k", s->shape.dk, s->queries},
                          {"v", s->shape.dv, s->answers},
                          {"truth", s->width, s->truth}}};
    CLI_TRY(cli_write_rows(path, tell_line, &tokens, s->n * s->L, err));
    if (queries)
        CLI_TRY(cli_write_rows(queries, tell_line, &asked, s->n * s->Q, err));
    return FIN_OK;
}

/* ---- running -------------------------------------------------------------------------------- */

static int check_words(const cli_args *args)
{
    const char *path = cli_get(args, "out"), *queries = cli_get(args, "queries");
    if (!path)
        return cli_usage("--out is missing: --out FILE.npz, --out FILE.csv, or --out - for CSV on "
                         "standard output");
    bool standard = strcmp(path, "-") == 0;
    if (!standard && !cli_ends_with(path, ".npz") && !cli_ends_with(path, ".csv"))
        return cli_usage("--out '%.200s' tells no format; end it in .npz or .csv", path);
    if (standard && cli_get(args, "json"))
        return cli_usage("--json and the tokens cannot both go to standard output");
    if (queries && cli_ends_with(path, ".npz"))
        return cli_usage("--queries is for CSV; FILE.npz has the queries in it");
    if (queries && strcmp(queries, path) == 0)
        return cli_usage("--queries and --out name the same file");
    return CLI_OK;
}

static int summary(const cli_args *args, const drawn *s)
{
    const draw_asked *asked = (const void *)args->values;
    const char *path = cli_get(args, "out");
    json_t *record =
        json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:o}", "family", asked->family, "family_settings",
                  cli_json_settings(fin_family_table(cli_settings_family(args)), &asked->latent),
                  "n", cli_int(s->n), "L", cli_int(s->L), "Q", cli_int(s->Q), "seed",
                  cli_int(asked->own.seed), "out", cli_json_text(path));
    if (cli_get(args, "json"))
        return cli_print_json(record);
    cli_note_of(record, "{n} sequences of {L} tokens and {Q} queries to "
                        "[{?out=-}standard output|{out}]");
    json_decref(record);
    return cli_flush(); /* the file is there, whatever became of the note */
}

static int run(cli_args *args)
{
    fin_error err = {FIN_OK, ""};
    fin_latent *latent = NULL;
    const draw_asked *asked = (const void *)args->values;
    drawn s = {.n = asked->own.n, .L = asked->own.L, .Q = asked->own.Q};
    const char *path = cli_get(args, "out");
    uint64_t seed = (uint64_t)asked->own.seed;
    CLI_TRY(check_words(args));
    fin_status status =
        fin_latent_create(&latent, cli_settings_family(args), &asked->latent, seed, &err);
    if (!status) {
        fin_latent_get_shape(latent, &s.shape);
        s.width = s.shape.outcomes > 0 ? s.shape.outcomes : s.shape.dv;
        status = take(&s, &err);
    }
    if (!status)
        status = fin_latent_draw(latent, 0,
                                 &(fin_latent_sample){s.n, s.L, s.Q, s.keys, s.values, s.queries,
                                                      s.answers, s.truth, s.z},
                                 &err);
    if (!status)
        status = cli_ends_with(path, ".npz")
                     ? write_npz(&s, latent, path, &err)
                     : write_tables(&s, path, cli_get(args, "queries"), &err);
    cli_progress_end();
    int code = status ? cli_error(&err) : summary(args, &s);
    free(s.block);
    fin_latent_destroy(latent);
    return code;
}
