/* curve: what can be learnt of the task spiked from n = alpha d bags (theory/learning.c, docs/learning.md). */
#include "command/command.h"

#include "theory/learning.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define CURVE_FIELDS(F, C)                                                                         \
    F(int64_t, L, 3, 1, 1000000, "tokens in a bag")                                                \
    F(double, snr, 5, 0, 10000, "squared length of the shift sqrt(snr) k* of the relevant token")  \
    F(double, eps, 0.5, 0, 10, "standard deviation of the output noise")                           \
    F(double, alpha, 2, 0.001, 1000000, "n/d: bags divided by columns")                            \
    C(form, 0, "none|softmax|linear", "attention fitted to the bags with a ridge penalty: erm")    \
    F(int64_t, samples, 100000, 1000, 100000000, "with form: bags drawn for the means")            \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "with form: seed of these bags")

#define FIN_TABLE_STRUCT curve_values
FIN_TABLE_OF_ITS_OWN(curve_table, "curve", CURVE_FIELDS);

typedef struct curve_command {
    curve_values own;
    char ridge[64];
} curve_command;

static const fin_word words[] = {
    FIN_WORD(
        "ridge", curve_command, ridge, "best",
        "with form: penalties R_K,R_V, d/2 (R_K |k|^2 + R_V |v|^2); best = those of lowest risk"),
    FIN_WORDS_END,
};

static const fin_output outputs[] = {
    {"q_k", "squared cosine of the posterior mean of k with k*", NULL},
    {"q_v", "the same of v with v*", NULL},
    {"optimal", "risk of the Bayes-optimal learner: nobody does better", NULL},
    {"known", "Bayes risk with k* and v* known, what optimal tends to", NULL},
    {"linear",
     "risk of ridge regression on the sum of the tokens at its best penalty (a constant: 1 + "
     "eps^2)",
     NULL},
    {"stuck",
     "risk where iterating from knowing nothing stops, as algorithms do, if that is above optimal",
     NULL},
    {"beside",
     "risk at the fixed point from knowing all locations, if the posterior is at the other one",
     NULL},
    {"erm", "with form: risk of attention fitted with a ridge penalty; NaN: it did not settle",
     NULL},
    {"settled", "with form: 1, or 0 where there is no erm, as fits have several minima", NULL},
    {"cosine_k", "with form: cosine of its key and k*", NULL},
    {"cosine_v", "with form: cosine of its value and v*", NULL},
    {"length_k", "with form: length of its key", NULL},
    {"length_v", "with form: length of its value", NULL},
    {"ridge_k", "with form: the penalty of the key", NULL},
    {"ridge_v", "with form: the penalty of the value", NULL},
    {"erm_other", "with form: risk at the fixed point from the other end, where there are two",
     NULL},
    {NULL, NULL, NULL},
};

enum { TOKENS_MOST = 1000 };
static const double weakest = 1e-6, strongest = 1e6;

/* "best", or two penalties. */
static fin_status read_ridge(const char *text, bool *best, double penalty[2], fin_error *err)
{
    *best = strcmp(text, "best") == 0;
    if (*best)
        return FIN_OK;
    char *end;
    penalty[0] = fini_strtod(text, &end);
    bool good = end != text && *end == ',';
    const char *second = end + 1;
    penalty[1] = good ? fini_strtod(second, &end) : 0;
    if (!good || end == second || *end)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "ridge = '%.60s' is neither best nor two penalties, such as 1,1", text);
    for (int i = 0; i < 2; i++)
        if (!(penalty[i] >= weakest && penalty[i] <= strongest))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "ridge = '%.60s': a penalty is from %g to %g; 1,1 usually works", text,
                             weakest, strongest);
    return FIN_OK;
}

static fin_status check(const void *values, fin_error *err)
{
    const curve_command *v = values;
    double penalty[2];
    bool best;
    if (v->own.form && v->own.L > TOKENS_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT, "L = %lld: with a form it is at most %d",
                         (long long)v->own.L, (int)TOKENS_MOST);
    if (!v->own.form && strcmp(v->ridge, "best") != 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "ridge = '%.60s' is the penalty of a form; give form = softmax or linear",
                         v->ridge);
    return read_ridge(v->ridge, &best, penalty, err);
}

/* Penalties as shortest texts, so that 1,1 and 1.0,1 are one run. */
static void tidy(void *values)
{
    curve_command *v = values;
    double penalty[2];
    bool best;
    if (read_ridge(v->ridge, &best, penalty, NULL) || best)
        return;
    char text[2][FINI_SHORTEST];
    for (int i = 0; i < 2; i++)
        fini_shortest(penalty[i], text[i]);
    memset(v->ridge, 0, sizeof v->ridge);
    snprintf(v->ridge, sizeof v->ridge, "%.30s,%.30s", text[0], text[1]);
}

static void add_other(const fini_learning *found, fin_result *result)
{
    fini_result_estimate(result, found->low_wins ? "beside" : "stuck", &found->other.risk);
    fini_result_note(
        result,
        "there are two fixed points, q_v = %.4g and %.4g: learning is a phase "
        "transition here; the first is the posterior's, the other that from the %s end",
        found->optimal.q_v.value, found->other.q_v.value, found->low_wins ? "high" : "low");
}

static fin_status add_erm(const curve_command *v, const fini_learning_task *task,
                          fin_result *result, const fin_progress *progress, fin_error *err)
{
    fini_erm_task fit = {
        .bags = *task, .linear = v->own.form == 2, .samples = v->own.samples, .seed = v->own.seed};
    fini_erm found;
    FINI_TRY(read_ridge(v->ridge, &fit.best, fit.penalty, err));
    FINI_TRY(fini_learning_erm(&fit, progress, &found, err));
    fini_result_scalar(result, "ridge_k", found.penalty[0], 0, FIN_HOW_CLOSED, 0);
    fini_result_scalar(result, "ridge_v", found.penalty[1], 0, FIN_HOW_CLOSED, 0);
    fini_result_scalar(result, "settled", found.settled, 0, FIN_HOW_SIMULATION, v->own.samples);
    if (!found.settled) {
        fini_result_scalar(result, "erm", NAN, NAN, FIN_HOW_SIMULATION, v->own.samples);
        fini_result_note(result,
                         "erm did not settle at alpha = %g, ridge = %.4g,%.4g: fits have several "
                         "minima there",
                         task->alpha, found.penalty[0], found.penalty[1]);
        return FIN_OK;
    }
    fini_result_estimate(result, "erm", &found.risk);
    fini_result_estimate(result, "cosine_k", &found.cosine[0]);
    fini_result_estimate(result, "cosine_v", &found.cosine[1]);
    fini_result_estimate(result, "length_k", &found.length[0]);
    fini_result_estimate(result, "length_v", &found.length[1]);
    if (!found.differ)
        return FIN_OK;
    fini_result_scalar(result, "erm_other", found.other, NAN, FIN_HOW_SIMULATION, v->own.samples);
    fini_result_note(result,
                     "erm has two fixed points, with risks %.4g and %.4g: the first has the lower "
                     "minimum",
                     found.risk.value, found.other);
    return FIN_OK;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const curve_command *command = values;
    const curve_values *v = &command->own;
    const fini_learning_task task = {.snr = v->snr, .eps = v->eps, .alpha = v->alpha, .L = v->L};
    fini_learning found;
    FINI_TRY(fini_learning_curve(&task, progress, &found, err));
    fini_result_estimate(result, "q_k", &found.optimal.q_k);
    fini_result_estimate(result, "q_v", &found.optimal.q_v);
    fini_result_estimate(result, "optimal", &found.optimal.risk);
    fini_result_estimate(result, "known", &found.known);
    fini_result_estimate(result, "linear", &found.linear);
    if (found.differ)
        add_other(&found, result);
    return v->form ? add_erm(command, &task, result, progress, err) : FIN_OK;
}
const fin_command fini_command_curve = {
    .name = "curve",
    .summary = "what can be learnt of the task spiked from n bags, against n/d",
    .revision = 1,
    .size = sizeof(curve_command),
    .words = words,
    .outputs = outputs,
    .tables = FINI_TABLE_ONLY(curve_table),
    .check = check,
    .tidy = tidy,
    .run = run,
};
