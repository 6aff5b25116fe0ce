/* finetti predict: labels of bags, with their uncertainty, from a model that fit has written. */
#include "bags/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run(cli_args *args);

static const cli_word words[] = {
    {"bag", "COLUMN", "the column that names the bag; default: as in the model"},
    {"label", "COLUMN", "the column with labels, if there are any; default: as in the model"},
    {"out", "FILE", "FILE.csv or FILE.npz instead of CSV on standard output"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

const cli_command cli_predict = {
    .name = "predict",
    .summary = "labels of new bags with their uncertainty, from a fitted model",
    .about =
        "Reads a model that 'finetti fit --out' has written, and bags with the same features, and\n"
        "prints a row per bag: the class with the probabilities of all classes and their standard\n"
        "deviation over the ensemble, or a number with its standard deviation and 90 % interval.\n"
        "If the data have labels too, the predictions are judged: a line on standard error.",
    .examples = "  finetti predict model.fin new.csv\n"
                "  finetti predict model.fin new.csv --out answers.csv\n"
                "  finetti predict model.fin new.npz --json\n",
    .computes = true,
    .operands = {.name = "MODEL DATA",
                 .meaning = "a model file, and bags as 'finetti fit' reads them (labels may be "
                            "missing)",
                 .least = 2,
                 .most = 2},
    .words = words,
    .run = run,
};

typedef struct predictions {
    fit_answer from;
    int64_t n, width; /* width: classes, or 1 */
    double *mean, *sd;
    fin_fit_score score;
    bool judged;
} predictions;

static const double NINETY = 1.6448536269514722; /* normal quantile of 0.95 */

/* ---- predicting and judging ----------------------------------------------------------------- */

static fin_status judge(predictions *p, fin_error *err)
{
    const fit_answer *a = &p->from;
    if (!a->labels)
        return FIN_OK;
    int64_t known = 0;
    for (int64_t i = 0; i < p->n; i++)
        known += !isnan(a->labels[i]);
    if (known == 0)
        return FIN_OK;
    p->judged = true;
    fin_status status = fin_fit_judge(p->n, a->classes, a->labels, p->mean, p->sd, &p->score, err);
    return status ? status : fit_answer_known(&p->from, err);
}

static fin_status predict(predictions *p, fin_error *err)
{
    p->n = p->from.bags->n;
    p->width = p->from.classes ? p->from.classes : 1;
    size_t count = (size_t)p->n * (size_t)p->width;
    p->mean = malloc(2 * count * sizeof *p->mean);
    if (!p->mean)
        return cli_status_memory(err, 16.0 * (double)count, "the predictions");
    p->sd = p->mean + count;
    fin_status status = fin_fit_predict(p->from.fit, p->from.bags, p->mean, p->sd, err);
    return status ? status : judge(p, err);
}

static int64_t best_class(const predictions *p, int64_t i)
{
    int64_t best = 0;
    for (int64_t c = 1; c < p->width; c++)
        if (p->mean[i * p->width + c] > p->mean[i * p->width + best])
            best = c;
    return best;
}

/* ---- CSV ------------------------------------------------------------------------------------ */

/* classes: bag, [true_label,] predicted, p_A, p_B, ..., sd_A, sd_B, ...
 * numbers: bag, [true_label,] mean, sd, low90, high90 */
static fin_status write_rows(const predictions *p, fin_csv *csv, int lead, const char **texts,
                             double *values, fin_error *err)
{
    const fit_answer *a = &p->from;
    int64_t w = p->width;
    char label[64];
    for (int64_t i = 0; i < p->n; i++) {
        texts[0] = fin_bag_set_name(a->set, i);
        if (a->labels)
            texts[1] = fit_label_text(a, i, label, sizeof label);
        if (a->classes) {
            texts[lead] = a->class_names[best_class(p, i)];
            memcpy(values + lead + 1, p->mean + i * w, (size_t)w * sizeof *values);
            memcpy(values + lead + 1 + w, p->sd + i * w, (size_t)w * sizeof *values);
        } else {
            values[lead] = p->mean[i];
            values[lead + 1] = p->sd[i];
            values[lead + 2] = p->mean[i] - NINETY * p->sd[i];
            values[lead + 3] = p->mean[i] + NINETY * p->sd[i];
        }
        fin_status status = fin_csv_cells(csv, texts, values, err);
        if (status)
            return status;
        if (cli_cancelled())
            return cli_status(err, FIN_ERR_CANCELLED, "cancelled");
    }
    return FIN_OK;
}

static fin_status write_csv(const predictions *p, const char *path, fin_error *err)
{
    static const char *const numbers[] = {"mean", "sd", "low90", "high90"};
    int lead = p->from.labels ? 2 : 1;
    int64_t w = p->width, columns = p->from.classes ? lead + 1 + 2 * w : lead + 4;
    if (columns > FIN_TABLE_COLUMNS_MAX)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "%lld columns are too many for CSV (at most %d); write FILE.npz",
                          (long long)columns, FIN_TABLE_COLUMNS_MAX);
    size_t count = (size_t)columns;
    size_t room = 0, used = 0; /* of the names p_A, sd_A */
    for (int64_t c = 0; c < w && p->from.classes; c++)
        room += 2 * (strlen(p->from.class_names[c]) + sizeof "sd_");
    char *names = malloc(room + 1);
    const char **texts = calloc(2 * count, sizeof *texts), **heads = texts ? texts + count : NULL;
    double *values = calloc(count, sizeof *values);
    fin_csv *csv = NULL;
    fin_status status = FIN_OK;
    if (!names || !texts || !values)
        status = cli_status_memory(err, (double)(count * 24 + room), "a line");
    if (!status) {
        heads[0] = "bag";
        heads[1] = "true_label";
        if (p->from.classes)
            heads[lead] = "predicted";
        for (int64_t c = 0; c < 2 * w && p->from.classes; c++) {
            heads[lead + 1 + c] = names + used;
            used += (size_t)snprintf(names + used, room - used, "%s_%s", c < w ? "p" : "sd",
                                     p->from.class_names[c % w]) +
                    1;
        }
        for (int j = 0; j < 4 && !p->from.classes; j++)
            heads[lead + j] = numbers[j];
        status = fin_csv_open(path, heads, (int)columns, &csv, err);
    }
    if (!status)
        status = write_rows(p, csv, lead, texts, values, err);
    if (!status)
        status = fin_csv_commit(csv, err);
    else
        fin_csv_abort(csv);
    free(names);
    free(texts);
    free(values);
    return status;
}

/* ---- NPZ ------------------------------------------------------------------------------------ */

static fin_status add_arrays(const predictions *p, fin_npz_writer *npz, int64_t *class,
                             double *ends, fin_error *err)
{
    const int64_t n[] = {p->n}, both[] = {p->n, p->width};
    const fit_answer *a = &p->from;
    fin_status status = FIN_OK;
    for (int64_t i = 0; i < p->n; i++) {
        class[i] = best_class(p, i);
        ends[i] = p->mean[i] - NINETY * p->sd[i];
        ends[p->n + i] = p->mean[i] + NINETY * p->sd[i];
    }
    if (a->classes) {
        status = fin_npz_add(npz, "class", FIN_I64, 1, n, class, err);
        if (!status)
            status = fin_npz_add(npz, "probability", FIN_F64, 2, both, p->mean, err);
        if (!status)
            status = fin_npz_add(npz, "sd", FIN_F64, 2, both, p->sd, err);
    } else {
        const double *const arrays[] = {p->mean, p->sd, ends, ends + p->n};
        static const char *const names[] = {"mean", "sd", "low90", "high90"};
        for (int j = 0; j < 4 && !status; j++)
            status = fin_npz_add(npz, names[j], FIN_F64, 1, n, arrays[j], err);
    }
    if (!status && a->labels)
        status = fin_npz_add(npz, "y", FIN_F64, 1, n, a->labels, err);
    return status;
}

static fin_status write_npz(const predictions *p, const char *path, fin_error *err)
{
    fin_npz_writer *npz;
    char *bags = NULL, *classes = NULL;
    size_t n = (size_t)p->n;
    fin_status status = fin_npz_create(path, &npz, err);
    if (status)
        return status;
    int64_t *class = malloc(n * sizeof *class);
    double *ends = malloc(2 * n * sizeof *ends);
    if (!class || !ends)
        status = cli_status_memory(err, 24.0 * (double)n, "the arrays");
    if (!status)
        status = add_arrays(p, npz, class, ends, err);
    if (!status)
        status = fit_add_names(npz, "bag", p->n, fit_bag_name, p->from.set, &bags, err);
    if (!status && p->from.classes)
        status = fit_add_names(npz, "classes", p->width, fit_class_name, p->from.class_names,
                               &classes, err);
    if (!status)
        status = fin_npz_commit(npz, cli_progress(), err);
    else
        fin_npz_abort(npz);
    free(class);
    free(ends);
    free(bags);
    free(classes);
    return status;
}

/* ---- JSON and the score --------------------------------------------------------------------- */

static json_t *json_bag(const predictions *p, int64_t i)
{
    const fit_answer *a = &p->from;
    char label[64];
    json_t *bag = json_pack("{s:s}", "bag", fin_bag_set_name(a->set, i));
    if (a->labels && !isnan(a->labels[i]))
        json_object_set_new(bag, "true_label",
                            a->classes ? json_string(fit_label_text(a, i, label, sizeof label))
                                       : json_real(a->labels[i]));
    if (!a->classes) {
        json_object_set_new(bag, "mean", cli_json_number(p->mean[i]));
        json_object_set_new(bag, "sd", cli_json_number(p->sd[i]));
        json_object_set_new(bag, "low90", cli_json_number(p->mean[i] - NINETY * p->sd[i]));
        json_object_set_new(bag, "high90", cli_json_number(p->mean[i] + NINETY * p->sd[i]));
        return bag;
    }
    json_t *probability = json_object(), *sd = json_object();
    for (int64_t c = 0; c < p->width; c++) {
        json_object_set_new(probability, a->class_names[c],
                            cli_json_number(p->mean[i * p->width + c]));
        json_object_set_new(sd, a->class_names[c], cli_json_number(p->sd[i * p->width + c]));
    }
    json_object_set_new(bag, "predicted", json_string(a->class_names[best_class(p, i)]));
    json_object_set_new(bag, "probability", probability);
    json_object_set_new(bag, "sd", sd);
    return bag;
}

static int print_json(const predictions *p)
{
    json_t *bags = json_array(), *root;
    for (int64_t i = 0; i < p->n; i++)
        json_array_append_new(bags, json_bag(p, i));
    root = json_pack("{s:o, s:o}", "bags", bags, "notes", fit_answer_json(&p->from));
    if (p->judged) {
        json_t *score = fit_json_score(&p->score, p->from.classes);
        json_object_set_new(score, "count", json_integer((json_int_t)p->score.count));
        json_object_set_new(root, "score", score);
    }
    return cli_print_json(root);
}

/* "accuracy 0.9, AUC 0.95, ...": what does not exist is left out. */
static void print_score(const predictions *p)
{
    const fin_fit_score *s = &p->score;
    const struct {
        const char *name;
        double value;
    } scores[] = {
        {"accuracy", s->accuracy},
        {"AUC", s->auc},
        {"log loss", s->log_loss},
        {"Brier", s->brier},
        {"ECE", s->ece},
        {"R2", s->r2},
        {"rmse", s->rmse},
        {"mae", s->mae},
        {"log score", s->log_score},
        {"in 90 % intervals", s->coverage},
    };
    char text[512] = "";
    for (size_t i = 0; i < sizeof scores / sizeof *scores && p->judged; i++) {
        size_t used = strlen(text);
        if (isfinite(scores[i].value))
            snprintf(text + used, sizeof text - used, "%s%s %.4g", used ? ", " : "", scores[i].name,
                     scores[i].value);
    }
    if (p->judged)
        cli_note("%lld of %lld bags have labels: %s", (long long)s->count, (long long)p->n, text);
}

static int finish(const cli_args *args, const predictions *p)
{
    const char *out = cli_get(args, "out");
    bool json = cli_get(args, "json");
    fin_error err = {FIN_OK, ""};
    fin_status status = FIN_OK;
    cli_progress_end();
    if (out && cli_ends_with(out, ".npz"))
        status = write_npz(p, out, &err);
    else if (out || !json)
        status = write_csv(p, out ? out : "-", &err);
    if (status)
        return cli_error(&err);
    fit_answer_say(&p->from);
    if (!json)
        print_score(p);
    return json ? print_json(p) : cli_flush();
}

static int run(cli_args *args)
{
    int code = fit_answer_check(args);
    if (code)
        return code;
    predictions p = {.judged = false};
    fin_error err = {FIN_OK, ""};
    const char *out = cli_get(args, "out");
    fin_status status = out && strcmp(out, "-") != 0 ? cli_try_output(out, &err) : FIN_OK;
    if (!status)
        status = fit_answer_open(&p.from, args, &err);
    if (!status)
        status = predict(&p, &err);
    code = status == FIN_ERR_CANCELLED ? cli_stopped("cancelled")
           : status                    ? cli_error(&err)
                                       : finish(args, &p);
    free(p.mean);
    fit_answer_close(&p.from);
    return code;
}
