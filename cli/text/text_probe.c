/* finetti probe of a folder: how well a linear map reads a label from the representation of one piece
 * of a text, layer by layer. */
#include "encoder/encoder.h"
#include "text/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLASSES_MOST = 1000, NUMBERS_MOST = 20, LAYERS = 257 };

/* Texts with labels and, layer by layer, one row for each. */
typedef struct part {
    text_file file;
    double *y;
    float *states[LAYERS];
    int64_t n;
} part;

typedef struct probing {
    cli_args *args;
    const char *path, *test_path, *label;
    fin_text_encoder *encoder;
    fin_text_pass pass;
    char token[32];
    int64_t layers, layer; /* layer -1: all of them */
    int64_t folds, fold;
    part data, other; /* other: of --test-data */
    int64_t classes;  /* 0: numbers */
    char *classes_of[CLASSES_MOST];
    int count;
    int64_t at[LAYERS];
    fin_probe_score score[LAYERS];
} probing;

/* ---- options -------------------------------------------------------------------------------- */

static bool read_number(const char *text, int64_t most, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    *value = number;
    return end != text && !*end && !errno && number >= 0 && number <= most;
}

static int read_token(probing *p)
{
    static const struct {
        const char *name;
        int pick;
    } names[] = {{"first", FIN_TEXT_FIRST}, {"last", FIN_TEXT_LAST}, {"mean", FIN_TEXT_MEAN}};
    const char *text = cli_get(p->args, "token") ? cli_get(p->args, "token") : "first";
    snprintf(p->token, sizeof p->token, "%s", text);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(text, names[i].name) == 0) {
            p->pass.pick = names[i].pick;
            return CLI_OK;
        }
    p->pass.pick = FIN_TEXT_AT;
    return read_number(text, INT64_C(1) << 20, &p->pass.at)
               ? CLI_OK
               : cli_usage("--token '%.40s' is none of first, last, mean, and no number from 0 on",
                           text);
}

static int check_options(probing *p)
{
    static const char *const fitting[] = {"data",       "text",      "label",   "kind",
                                          "layer",      "token",     "json",    "test_data",
                                          "test_folds", "test_fold", "penalty", NULL};
    const char *odd = cli_odd_option(p->args, fitting), *layer = cli_get(p->args, "layer");
    const cli_data_settings *data = &encoder_get(p->args)->data;
    if (odd)
        return cli_usage("--%s is for encoders of finetti pretrain, not for %.200s", odd,
                         p->args->operand[0]);
    p->path = cli_get(p->args, "data");
    p->test_path = cli_get(p->args, "test_data");
    if (!p->path || !cli_get(p->args, "text"))
        return cli_usage("an encoder of text needs --data FILE.csv and --text COLUMN (and --label "
                         "COLUMN)");
    p->label = cli_get(p->args, "label") ? cli_get(p->args, "label") : "label";
    p->folds = data->test_folds;
    p->fold = data->test_fold;
    if (!p->test_path && (p->folds < 2 || p->fold >= p->folds))
        return cli_usage("--test-folds must be at least 2, and --test-fold below it, unless there "
                         "is --test-data FILE");
    p->layer = p->layers;
    if (layer && strcmp(layer, "all") == 0)
        p->layer = -1;
    else if (layer && !read_number(layer, p->layers, &p->layer))
        return cli_usage("--layer '%.40s' is neither all nor a number from 0 to %lld", layer,
                         (long long)p->layers);
    return read_token(p);
}

/* ---- labels --------------------------------------------------------------------------------- */

static int64_t class_of(probing *p, const char *name, bool add)
{
    for (int64_t c = 0; c < p->classes; c++)
        if (strcmp(p->classes_of[c], name) == 0)
            return c;
    if (!add || p->classes == CLASSES_MOST || !(p->classes_of[p->classes] = strdup(name)))
        return -1;
    return p->classes++;
}

/* Text, or a few different whole numbers. */
static bool are_classes(const probing *p, const fin_table *table, int column)
{
    const char *kind = cli_get(p->args, "kind");
    const double *values = fin_table_values(table, column);
    double seen[NUMBERS_MOST];
    int count = 0;
    if (fin_table_texts(table, column) > 0 || (kind && strcmp(kind, "classes") == 0))
        return true;
    if (kind && strcmp(kind, "regression") == 0)
        return false;
    for (int64_t i = 0; i < fin_table_rows(table); i++) {
        int k = 0;
        while (k < count && seen[k] != values[i])
            k++;
        if (k == count && (count == NUMBERS_MOST || values[i] != floor(values[i])))
            return false;
        if (k == count)
            seen[count++] = values[i];
    }
    return true;
}

static fin_status read_labels(probing *p, part *d, const char *path, bool first, fin_error *err)
{
    int column;
    CLI_TRY(text_file_column(&d->file, path, p->label, &column, err));
    const fin_table *table = d->file.table;
    const double *values = fin_table_values(table, column);
    bool texts = fin_table_texts(table, column) > 0;
    bool classes = first ? are_classes(p, table, column) : p->classes > 0;
    for (int64_t i = 0; i < d->n; i++) {
        char number[32];
        if (!isfinite(values[i]) || (texts && !classes))
            return cli_status(err, FIN_ERR_ARGUMENT,
                              "%.200s, row %lld: the label is missing, or no %s", path,
                              (long long)i + 1, classes ? "class" : "number");
        const char *name = texts ? fin_table_text(table, column, (int64_t)values[i] - 1)
                                 : cli_number(values[i], number, sizeof number);
        int64_t c = classes ? class_of(p, name, first) : 0;
        if (c < 0)
            return cli_status(err, FIN_ERR_ARGUMENT, "%.200s, row %lld: class '%.60s' is %s", path,
                              (long long)i + 1, name,
                              first ? "one of more than 1000" : "not in the data to learn from");
        d->y[i] = classes ? (double)c : values[i];
    }
    return FIN_OK;
}

/* ---- representations -------------------------------------------------------------------------- */

static fin_status represent(probing *p, part *d, fin_error *err)
{
    fin_text_pieces *pieces;
    fin_status status = text_file_cut(&d->file, p->encoder, 0, &pieces, err);
    for (int64_t l = 0; l <= p->layers && !status; l++) {
        double bytes = 4.0 * (double)d->n * (double)fin_text_encoder_width(p->encoder, l);
        if ((p->layer == -1 || p->layer == l) && !(d->states[l] = malloc((size_t)bytes)))
            status = cli_status_memory(err, bytes, "representations");
    }
    p->pass.states = d->states;
    if (!status)
        status = fin_text_encoder_run(p->encoder, pieces, &p->pass, cli_progress(), err);
    fin_text_pieces_destroy(pieces);
    return status;
}

static fin_status open_part(probing *p, part *d, const char *path, bool first, fin_error *err)
{
    CLI_TRY(text_file_open(&d->file, path, cli_get(p->args, "text"), err));
    d->n = d->file.n;
    d->y = malloc((size_t)d->n * sizeof *d->y);
    if (!d->y)
        return cli_status_memory(err, 8.0 * (double)d->n, "labels");
    CLI_TRY(read_labels(p, d, path, first, err));
    return represent(p, d, err);
}

/* ---- probes ----------------------------------------------------------------------------------- */

/* Row i of a part is one to be judged by. */
static bool is_test(const probing *p, const part *d, int64_t i)
{
    return p->test_path ? d == &p->other : i % p->folds == p->fold;
}

static int64_t gather(const probing *p, const part *d, int64_t layer, bool test, double *x,
                      double *y)
{
    int64_t n = 0, w = fin_text_encoder_width(p->encoder, layer);
    for (int64_t i = 0; i < d->n; i++) {
        if (is_test(p, d, i) != test)
            continue;
        for (int64_t k = 0; k < w; k++)
            x[n * w + k] = (double)d->states[layer][i * w + k];
        y[n++] = d->y[i];
    }
    return n;
}

static fin_status probe_layer(probing *p, int64_t layer, fin_error *err)
{
    const part *judged = p->test_path ? &p->other : &p->data;
    int64_t w = fin_text_encoder_width(p->encoder, layer);
    double penalty = encoder_get(p->args)->probe.penalty;
    double size = (double)(p->data.n + judged->n) * (double)(w + 1);
    double *x[2] = {malloc((size_t)(p->data.n * (w + 1)) * sizeof **x),
                    malloc((size_t)(judged->n * (w + 1)) * sizeof **x)};
    fin_probe *probe = NULL;
    fin_probe_score *score = &p->score[p->count];
    fin_status status = x[0] && x[1] ? FIN_OK : cli_status_memory(err, 8 * size, "a probe's rows");
    if (!status) {
        double *y[2] = {x[0] + p->data.n * w, x[1] + judged->n * w};
        int64_t n = gather(p, &p->data, layer, false, x[0], y[0]),
                m = gather(p, judged, layer, true, x[1], y[1]);
        score->train = n;
        if (n < 2 || m < 2)
            status = cli_status(err, FIN_ERR_ARGUMENT,
                                "%lld texts to learn from and %lld to judge by: 2 are the least",
                                (long long)n, (long long)m);
        if (!status)
            status = fin_probe_fit(&probe, n, w, x[0], p->classes, 1, y[0], penalty, err);
        if (!status)
            status = fin_probe_judge(probe, m, x[1], y[1], score, NULL, 0, err);
    }
    p->at[p->count++] = layer;
    fin_probe_destroy(probe);
    free(x[0]);
    free(x[1]);
    return status;
}

/* ---- printing ------------------------------------------------------------------------------- */

static const char form[] = TEXT_FORM(
    "shape") "data        {data}: {train#text} to learn from, {test} to judge by[ ({test_data})]\n"
             "target      {label}, [{?classes}{classes} classes|a number], from the "
             "[{?token=mean}mean of the pieces|{token} piece]\n\n"
             "[{?classes} layer   accuracy         +-   log loss    penalty\n"
             "| layer         R2       rmse    penalty\n]"
             "{*layers|{name:6s} [{accuracy:10.4f} {~accuracy_se:10.4f} {~log_loss:10.4f}"
             "|{~r2:10.4f} {~rmse:10.4g}] {~penalty:10.2g}\n}";

static int report(const probing *p)
{
    json_t *rows = json_array();
    for (int i = 0; i < p->count; i++) {
        const fin_probe_score *s = &p->score[i];
        char name[32];
        snprintf(name, sizeof name, "%lld", (long long)p->at[i]);
        json_t *one = json_pack("{s:I, s:s, s:I, s:I}", "layer", cli_int(p->at[i]), "name", name,
                                "train", cli_int(s->train), "test", cli_int(s->test));
        cli_put(one, "r2", s->r2, "rmse", s->rmse, "accuracy", s->accuracy, "accuracy_se",
                s->accuracy_se, "log_loss", s->log_loss, "penalty", s->penalty, NULL);
        json_array_append_new(rows, one);
    }
    json_t *record = json_pack("{s:o, s:o, s:o, s:I, s:I, s:o, s:s, s:o}", "encoder",
                               cli_json_text(p->args->operand[0]), "shape", text_shape(p->encoder),
                               "data", cli_json_text(p->path), "train", cli_int(p->score[0].train),
                               "test", cli_int(p->score[0].test), "label", cli_json_text(p->label),
                               "token", p->token, "layers", rows);
    if (p->test_path && record)
        json_object_set_new(record, "test_data", cli_json_text(p->test_path));
    if (p->classes && record)
        json_object_set_new(record, "classes", json_integer(p->classes));
    return cli_show(p->args, record, form);
}

static void close_part(part *d)
{
    text_file_close(&d->file);
    free(d->y);
    for (int l = 0; l < LAYERS; l++)
        free(d->states[l]);
}

int text_probe(cli_args *args)
{
    static probing p;
    fin_error err = {FIN_OK, ""};
    memset(&p, 0, sizeof p);
    p.args = args;
    int code = CLI_OK;
    fin_status status = fin_text_encoder_open(&p.encoder, args->operand[0], &err);
    if (!status) {
        p.layers = fin_text_encoder_shape(p.encoder)->layers;
        code = check_options(&p);
    }
    if (!status && !code)
        status = open_part(&p, &p.data, p.path, true, &err);
    if (!status && !code && p.test_path)
        status = open_part(&p, &p.other, p.test_path, false, &err);
    for (int64_t l = 0; l <= p.layers && !status && !code; l++)
        if (p.layer == -1 || p.layer == l)
            status = probe_layer(&p, l, &err);
    cli_progress_end();
    if (status)
        code = cli_error(&err);
    if (!code)
        code = report(&p);
    for (int64_t c = 0; c < p.classes; c++)
        free(p.classes_of[c]);
    close_part(&p.data);
    close_part(&p.other);
    fin_text_encoder_destroy(p.encoder);
    return code;
}
