/* finetti locate: which token of a bag decided, with probabilities. */
#include "bags/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int run(cli_args *args);

static const cli_word words[] = {
    {"bag", "COLUMN", "the column that names the bag; default: as in the model"},
    {"label", "COLUMN", "the column with labels, if there are any; default: as in the model"},
    {"blind", NULL, "do not use the labels, even if the data have them"},
    {"out", "FILE", "FILE.csv or FILE.npz; - is CSV on standard output, a terminal gets a table"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

#define LOCATE_FIELDS(F, C)                                                                        \
    F(int64_t, top, FIN_AUTO_INT, 1, INT64_C(1) << 40,                                             \
      "tokens listed of a bag; auto = all, 3 on a terminal")
#define FIN_TABLE_STRUCT locate_settings
FIN_TABLE_OF_ITS_OWN(locate_table, "locate", LOCATE_FIELDS);

CLI_SETTINGS(options, "locate", locate_settings, cli_no_words, {&locate_table, 0});

const cli_command cli_locate = {
    .name = "locate",
    .summary = "which token of a bag decided, with probabilities",
    .about =
        "For every token of every bag, the probability that it decided the label, and if the data\n"
        "have labels the probability given the label too. The tokens of a bag are listed from the\n"
        "most probable on: given the label where it is known, unless --blind. `row` counts the\n"
        "file's rows from 1, `token` those of the bag from 0. Where the model is any or mixture\n"
        "with two classes, `own` is the probability that the token by itself is positive, and\n"
        "`none` that no token of the bag is. The models of a bag as a whole (embedding, mean, "
        "max,\n"
        "base) have no location, unless fit has kept one that has beside them.",
    .examples = "  finetti locate model.fin bags.csv\n"
                "  finetti locate model.fin bags.csv --top 1 --out deciders.csv\n"
                "  finetti locate model.fin bags.npz --blind --json\n",
    .settings = &options,
    .computes = true,
    .operands = {.name = "MODEL DATA",
                 .meaning = "a model file, and bags as 'finetti fit' reads them (labels may be "
                            "missing)",
                 .least = 2,
                 .most = 2},
    .words = words,
    .run = run,
};

typedef struct located {
    fit_answer from;
    double *prior, *given; /* (tokens); given: NULL without labels */
    double *own, *none;    /* (tokens), (bags); NULL: the model has none */
    int64_t *order;        /* (tokens) tokens, bag by bag, the most probable first */
    int64_t top;           /* of a bag; at most */
} located;

/* ---- locating and ranking ------------------------------------------------------------------- */

typedef struct ranked {
    double probability;
    int64_t token;
} ranked;

static int before(const void *a, const void *b)
{
    const ranked *p = a, *q = b;
    if (p->probability != q->probability)
        return p->probability > q->probability ? -1 : 1;
    return p->token < q->token ? -1 : 1;
}

static int64_t bag_start(const located *l, int64_t i)
{
    return l->from.bags->offsets[i] - l->from.bags->offsets[0];
}

static int64_t bag_size(const located *l, int64_t i)
{
    return bag_start(l, i + 1) - bag_start(l, i);
}

static int64_t shown(const located *l, int64_t i)
{
    return bag_size(l, i) < l->top ? bag_size(l, i) : l->top;
}

static fin_status rank_tokens(located *l, fin_error *err)
{
    int64_t longest = 0;
    for (int64_t i = 0; i < l->from.bags->n; i++)
        longest = bag_size(l, i) > longest ? bag_size(l, i) : longest;
    ranked *rows = malloc((size_t)longest * sizeof *rows);
    if (!rows)
        return cli_status_memory(err, 16.0 * (double)longest, "the ranks");
    for (int64_t i = 0; i < l->from.bags->n; i++) {
        int64_t first = bag_start(l, i), size = bag_size(l, i);
        bool known = l->given && !isnan(l->given[first]);
        for (int64_t t = 0; t < size; t++)
            rows[t] = (ranked){known ? l->given[first + t] : l->prior[first + t], first + t};
        qsort(rows, (size_t)size, sizeof *rows, before);
        for (int64_t t = 0; t < size; t++)
            l->order[first + t] = rows[t].token;
    }
    free(rows);
    return FIN_OK;
}

static bool any_number(const double *x, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (!isnan(x[i]))
            return true;
    return false;
}

static fin_status locate(located *l, bool blind, fin_error *err)
{
    size_t count = (size_t)l->from.tokens;
    if (!fin_fit_locates(l->from.fit)) {
        char name[64];
        return cli_status(
            err, FIN_ERR_UNSUPPORTED,
            "this model (%s) looks at a bag as a whole and has no location; fit one "
            "with --model softmax or mixture",
            fit_name(fin_fit_get_settings(l->from.fit), l->from.classes, name, sizeof name));
    }
    size_t n = (size_t)l->from.bags->n, room = 4 * count + n;
    l->prior = malloc(room * sizeof *l->prior);
    if (!l->prior)
        return cli_status_memory(err, 8.0 * (double)room, "the probabilities");
    for (size_t i = 0; i < room; i++)
        l->prior[i] = NAN;
    l->order = (int64_t *)(l->prior + 2 * count);
    l->given = l->from.labels && !blind ? l->prior + count : NULL;
    l->own = l->prior + 3 * count;
    l->none = l->own + count;
    const fin_locations to = {.prior = l->prior, .given = l->given, .own = l->own, .none = l->none};
    fin_status status = fin_fit_locate(l->from.fit, l->from.bags, &to, err);
    l->own = any_number(l->own, count) ? l->own : NULL;
    l->none = any_number(l->none, n) ? l->none : NULL;
    return status ? status : rank_tokens(l, err);
}

/* ---- CSV and the table ---------------------------------------------------------------------- */

static fin_status write_csv(const located *l, const char *path, fin_error *err)
{
    const char *names[8] = {"bag", "rank", "row", "token", "probability"}, *texts[8] = {NULL};
    int columns = 5;
    if (l->given)
        names[columns++] = "given_label";
    if (l->own)
        names[columns++] = "own";
    if (l->none)
        names[columns++] = "none";
    fin_csv *csv;
    fin_status status = fin_csv_open(path, names, columns, &csv, err);
    if (status)
        return status;
    for (int64_t i = 0; i < l->from.bags->n && !status; i++) {
        texts[0] = fin_bag_set_name(l->from.set, i);
        for (int64_t r = 0; r < shown(l, i) && !status; r++) {
            int64_t t = l->order[bag_start(l, i) + r];
            double values[8] = {0, (double)r + 1, (double)fin_bag_set_row(l->from.set, t),
                                (double)(t - bag_start(l, i)), l->prior[t]};
            int k = 5;
            if (l->given)
                values[k++] = l->given[t];
            if (l->own)
                values[k++] = l->own[t];
            if (l->none)
                values[k++] = l->none[i];
            status = fin_csv_cells(csv, texts, values, err);
        }
        if (!status && cli_cancelled())
            status = cli_status(err, FIN_ERR_CANCELLED, "cancelled");
    }
    if (!status)
        return fin_csv_commit(csv, err);
    fin_csv_abort(csv);
    return status;
}

static void print_table(const located *l)
{
    enum { BAGS = 40 };
    int64_t n = l->from.bags->n;
    char name[256], label[64];
    printf("%-20s %6s%s  row (token): probability that it decided%s%s\n", "bag", "tokens",
           l->none ? "  none" : "", l->given ? " (given the label)" : "",
           l->own ? " [that it is positive]" : "");
    for (int64_t i = 0; i < n && i < BAGS; i++) {
        printf("%s %6lld ", fit_cell(fin_bag_set_name(l->from.set, i), 20, name, sizeof name),
               (long long)bag_size(l, i));
        if (l->none)
            printf("%5.3f ", l->none[i]);
        for (int64_t r = 0; r < shown(l, i); r++) {
            int64_t t = l->order[bag_start(l, i) + r];
            printf("%s%lld (%lld): %.3f", r ? ", " : " ",
                   (long long)fin_bag_set_row(l->from.set, t), (long long)(t - bag_start(l, i)),
                   l->prior[t]);
            if (l->given && !isnan(l->given[t]))
                printf(" (%.3f)", l->given[t]);
            if (l->own && !isnan(l->own[t]))
                printf(" [%.3f]", l->own[t]);
        }
        const char *text = fit_label_text(&l->from, i, label, sizeof label);
        if (l->given && *text)
            printf("  label %s", fit_clean(text, name, sizeof name));
        printf("\n");
    }
    if (n > BAGS)
        printf("... %lld more bags; --out FILE has all\n", (long long)(n - BAGS));
}

/* ---- NPZ and JSON --------------------------------------------------------------------------- */

static fin_status fill_arrays(const located *l, int64_t *whole, double *real, int64_t count)
{
    int64_t k = 0;
    for (int64_t i = 0; i < l->from.bags->n; i++)
        for (int64_t r = 0; r < shown(l, i); r++, k++) {
            int64_t t = l->order[bag_start(l, i) + r];
            whole[k] = i;
            whole[count + k] = r + 1;
            whole[2 * count + k] = fin_bag_set_row(l->from.set, t);
            whole[3 * count + k] = t - bag_start(l, i);
            real[k] = l->prior[t];
            real[count + k] = l->given ? l->given[t] : NAN;
            real[2 * count + k] = l->own ? l->own[t] : NAN;
        }
    return FIN_OK;
}

static fin_status write_npz(const located *l, const char *path, fin_error *err)
{
    int64_t count = 0;
    for (int64_t i = 0; i < l->from.bags->n; i++)
        count += shown(l, i);
    int64_t *whole = malloc((size_t)count * 4 * sizeof *whole);
    double *real = malloc((size_t)count * 3 * sizeof *real);
    char *bags = NULL;
    fin_npz_writer *npz = NULL;
    fin_status status = FIN_OK;
    if (!whole || !real)
        status = cli_status_memory(err, 56.0 * (double)count, "the arrays");
    if (!status && !(status = fin_npz_create(path, &npz, err)))
        status = fill_arrays(l, whole, real, count);
    static const char *const names[] = {"bag", "rank", "row", "token"};
    for (int j = 0; j < 4 && !status; j++)
        status = fin_npz_add(npz, names[j], FIN_I64, 1, &count, whole + j * count, err);
    if (!status)
        status = fin_npz_add(npz, "probability", FIN_F64, 1, &count, real, err);
    if (!status && l->given)
        status = fin_npz_add(npz, "given_label", FIN_F64, 1, &count, real + count, err);
    if (!status && l->own)
        status = fin_npz_add(npz, "own", FIN_F64, 1, &count, real + 2 * count, err);
    if (!status && l->none)
        status = fin_npz_add(npz, "none", FIN_F64, 1, &l->from.bags->n, l->none, err);
    if (!status)
        status =
            fit_add_names(npz, "bag_names", l->from.bags->n, fit_bag_name, l->from.set, &bags, err);
    if (!status)
        status = fin_npz_commit(npz, cli_progress(), err);
    else
        fin_npz_abort(npz);
    free(whole);
    free(real);
    free(bags);
    return status;
}

static int print_json(const located *l)
{
    json_t *bags = json_array();
    for (int64_t i = 0; i < l->from.bags->n; i++) {
        json_t *tokens = json_array();
        char label[64];
        for (int64_t r = 0; r < shown(l, i); r++) {
            int64_t t = l->order[bag_start(l, i) + r];
            json_t *token = json_pack(
                "{s:I, s:I, s:o}", "row", (json_int_t)fin_bag_set_row(l->from.set, t), "token",
                (json_int_t)(t - bag_start(l, i)), "probability", cli_json_number(l->prior[t]));
            if (l->given && !isnan(l->given[t]))
                json_object_set_new(token, "given_label", cli_json_number(l->given[t]));
            if (l->own && !isnan(l->own[t]))
                json_object_set_new(token, "own", cli_json_number(l->own[t]));
            json_array_append_new(tokens, token);
        }
        json_t *bag =
            json_pack("{s:s, s:o}", "bag", fin_bag_set_name(l->from.set, i), "tokens", tokens);
        const char *text = fit_label_text(&l->from, i, label, sizeof label);
        if (l->given && *text)
            json_object_set_new(bag, "label", json_string(text));
        if (l->none && !isnan(l->none[i]))
            json_object_set_new(bag, "none", cli_json_number(l->none[i]));
        json_array_append_new(bags, bag);
    }
    return cli_print_json(json_pack("{s:o, s:o, s:o}", "bags", bags, "locator",
                                    fit_json_locator(l->from.fit), "notes",
                                    fit_answer_json(&l->from)));
}

/* ---- running -------------------------------------------------------------------------------- */

static int finish(const cli_args *args, const located *l, bool table)
{
    const char *out = cli_get(args, "out");
    bool json = cli_get(args, "json");
    char who[160];
    fin_error err = {FIN_OK, ""};
    fin_status status = FIN_OK;
    cli_progress_end();
    if (out && cli_ends_with(out, ".npz"))
        status = write_npz(l, out, &err);
    else if (out || (!json && !table))
        status = write_csv(l, out ? out : "-", &err);
    if (status)
        return cli_error(&err);
    fit_answer_say(&l->from);
    if (*fit_locator(l->from.fit, who, sizeof who))
        cli_note("located by %s", who);
    if (table)
        print_table(l);
    return json ? print_json(l) : cli_flush();
}

static int run(cli_args *args)
{
    int code = fit_answer_check(args);
    if (code)
        return code;
    located l = {.prior = NULL};
    fin_error err = {FIN_OK, ""};
    const char *out = cli_get(args, "out");
    bool table = !out && !cli_get(args, "json") && isatty(STDOUT_FILENO);
    int64_t top = ((const locate_settings *)(const void *)args->values)->top;
    l.top = !fin_is_auto((double)top) ? top : table ? 3 : INT64_MAX;
    fin_status status = out && strcmp(out, "-") != 0 ? cli_try_output(out, &err) : FIN_OK;
    if (!status)
        status = fit_answer_open(&l.from, args, &err);
    if (!status)
        status = locate(&l, cli_get(args, "blind") != NULL, &err);
    code = status == FIN_ERR_CANCELLED ? cli_stopped("cancelled")
           : status                    ? cli_error(&err)
                                       : finish(args, &l, table);
    free(l.prior);
    fit_answer_close(&l.from);
    return code;
}
