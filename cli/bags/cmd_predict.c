/* finetti predict: labels of bags, with their uncertainty, from a model that fit has written. */
#include "bags/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run(cli_args *args);

static const cli_word words[] = {
    FIT_ANSWER_WORDS,
    {"out", "FILE", "FILE.csv or FILE.npz instead of CSV on standard output"},
    {"json", NULL, "print JSON"},
    {NULL, NULL, NULL},
};

const cli_command cli_predict = {
    .name = "predict",
    .summary = "labels of new bags with their uncertainty, from a fitted model",
    .about =
        "Reads a model that 'finetti fit --out' has written, and bags with the same features.\n"
        "Prints a row per bag: the class with the probabilities of all classes and their standard\n"
        "deviation over the ensemble, or a number with its standard deviation and 90 % interval.\n"
        "If the data have labels too, the predictions are judged: a line on standard error.",
    .examples = "  finetti predict model.fin new.csv\n"
                "  finetti predict model.fin new.csv --out answers.csv\n"
                "  finetti predict model.fin new.npz --json\n",
    .computes = true,
    .operands = FIT_ANSWER_OPERANDS,
    .words = words,
    .run = run,
};

typedef struct predictions {
    fit_answer from;
    int64_t n, width;         /* width: classes, or 1 */
    double *mean, *sd, *ends; /* ends: (n, 2), numbers */
    fin_fit_score score;
    bool judged;
} predictions;

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
    CLI_TRY(fin_fit_judge(p->n, a->classes, a->labels, p->mean, p->sd, p->ends, &p->score, err));
    return fit_answer_known(&p->from, err);
}

static fin_status predict(predictions *p, fin_error *err)
{
    p->n = p->from.bags->n;
    p->width = p->from.classes ? p->from.classes : 1;
    size_t count = (size_t)p->n * (size_t)p->width;
    size_t columns = p->from.classes ? 2 : 4;
    p->mean = malloc(columns * count * sizeof *p->mean);
    if (!p->mean)
        return cli_status_memory(err, 8.0 * (double)(columns * count), "the predictions");
    p->sd = p->mean + count;
    p->ends = p->from.classes ? NULL : p->sd + count;
    CLI_TRY(p->from.classes
                ? fin_fit_predict(p->from.fit, p->from.bags, p->mean, p->sd, cli_progress(), err)
                : fin_fit_interval(p->from.fit, p->from.bags, 0.9, p->mean, p->sd, p->ends,
                                   cli_progress(), err));
    return judge(p, err);
}

static int64_t best_class(const predictions *p, int64_t i)
{
    int64_t best = 0;
    for (int64_t c = 1; c < p->width; c++)
        if (p->mean[i * p->width + c] > p->mean[i * p->width + best])
            best = c;
    return best;
}

/* ---- a bag's row, arrays, the score --------------------------------------------------------- */

/* classes: bag, [true_label,] predicted, p_A, p_B, ..., sd_A, sd_B, ...
 * numbers: bag, [true_label,] mean, sd, low90, high90 */
static void tell_bag(cli_row *row, const void *user, int64_t i)
{
    const predictions *p = user;
    const fit_answer *a = &p->from;
    const double *mean = p->mean + i * p->width, *sd = p->sd + i * p->width;
    cli_cell_text(row, "bag", fin_bag_set_name(a->set, i));
    if (a->labels && !a->classes)
        cli_cell_label(row, "true_label", a->labels[i]);
    else if (a->labels)
        cli_cell_text(row, "true_label", fit_class_text(a, i));
    if (a->classes)
        cli_cell_text(row, "predicted", a->class_names[best_class(p, i)]);
    for (int64_t c = 0; c < a->classes; c++)
        cli_cell_of(row, "probability", "p", a->class_names[c], "", mean[c]);
    for (int64_t c = 0; c < a->classes; c++)
        cli_cell_of(row, "sd", "sd", a->class_names[c], "", sd[c]);
    if (a->classes)
        return;
    cli_cell(row, "mean", *mean);
    cli_cell(row, "sd", *sd);
    cli_cell(row, "low90", p->ends[2 * i]);
    cli_cell(row, "high90", p->ends[2 * i + 1]);
}

static fin_status write_npz(const predictions *p, const char *path, fin_error *err)
{
    cli_npz z;
    const fit_answer *a = &p->from;
    const int64_t *n = &p->n, both[] = {p->n, p->width};
    CLI_FREED int64_t *class = malloc((size_t)p->n * sizeof *class);
    CLI_FREED double *ends = malloc(2 * (size_t)p->n * sizeof *ends);
    if (!class || !ends)
        return cli_status_memory(err, 24.0 * (double)p->n, "the arrays");
    for (int64_t i = 0; i < p->n; i++) {
        class[i] = best_class(p, i);
        for (int k = 0; k < 2 && p->ends; k++)
            ends[k * p->n + i] = p->ends[2 * i + k];
    }
    CLI_TRY(cli_npz_open(&z, path, err));
    if (a->classes)
        cli_npz_add(&z, "class", FIN_I64, 1, n, class);
    cli_npz_add(&z, a->classes ? "probability" : "mean", FIN_F64, a->classes ? 2 : 1, both,
                p->mean);
    cli_npz_add(&z, "sd", FIN_F64, a->classes ? 2 : 1, both, p->sd);
    if (!a->classes) {
        cli_npz_add(&z, "low90", FIN_F64, 1, n, ends);
        cli_npz_add(&z, "high90", FIN_F64, 1, n, ends + p->n);
    }
    if (a->labels)
        cli_npz_add(&z, "y", FIN_F64, 1, n, a->labels);
    cli_npz_names(&z, "bag", p->n, fit_bag_name, a->set);
    if (a->classes)
        cli_npz_names(&z, "classes", p->width, fit_class_name, a->class_names);
    CLI_TRY(cli_npz_close(&z));
    return FIN_OK;
}

static const char score_form[] =
    "[{?score}{score.count} of {count} bags have labels: [accuracy {score.accuracy:.4g}"
    "[, AUC {score.auc:.4g}][, log loss {score.log_loss:.4g}][, Brier {score.brier:.4g}]"
    "[, ECE {score.ece:.4g}]|[R2 {score.r2:.4g}, ]rmse {score.rmse:.4g}[, mae {score.mae:.4g}]"
    "[, log score {score.log_score:.4g}][, in 90 % intervals {score.coverage_90:.4g}]]]";

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
        status = cli_write_rows(out ? out : "-", tell_bag, p, p->n, &err);
    if (status)
        return cli_error(&err);
    fit_answer_say(&p->from);
    json_t *score = p->judged ? fit_score_of(&p->score, p->from.classes) : NULL;
    if (score)
        json_object_set_new(score, "count", json_integer(cli_int(p->score.count)));
    json_t *record =
        json_pack("{s:o*, s:o, s:o*, s:I}", "bags", json ? cli_json_rows(tell_bag, p, p->n) : NULL,
                  "notes", fit_answer_json(&p->from), "score", score, "count", cli_int(p->n));
    if (!json)
        cli_note_of(record, score_form);
    return cli_show(args, record, "");
}

static int run(cli_args *args)
{
    predictions p = {.judged = false};
    fin_error err = {FIN_OK, ""};
    int code = fit_answer_open(&p.from, args, NULL);
    if (!code)
        code = predict(&p, &err) ? cli_error(&err) : finish(args, &p);
    free(p.mean);
    fit_answer_close(&p.from);
    return code;
}
