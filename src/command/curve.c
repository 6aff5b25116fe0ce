/* curve: what can be learnt of the task spiked from n = alpha d bags (theory/learning.c, docs/learning.md). */
#include "command/command.h"

#include "theory/learning.h"

#define CURVE_FIELDS(F, C)                                                                         \
    F(int64_t, L, 3, 1, 1000000, "tokens in a bag")                                                \
    F(double, snr, 5, 0, 10000, "squared length of the shift sqrt(snr) k* of the relevant token")  \
    F(double, eps, 0.5, 0, 10, "standard deviation of the output noise")                           \
    F(double, alpha, 2, 0.001, 1000000, "bags a column, n/d")

#define FIN_TABLE_STRUCT curve_values
FIN_TABLE_OF_ITS_OWN(curve_table, "curve", CURVE_FIELDS);

static const fin_output outputs[] = {
    {"q_k", "squared cosine of the posterior mean of k with k*", NULL},
    {"q_v", "the same of v with v*", NULL},
    {"optimal", "risk of the Bayes-optimal learner: nobody does better", NULL},
    {"known", "Bayes risk with k* and v* known, what optimal tends to", NULL},
    {"linear", "risk of ridge regression on the sum of the tokens at its best penalty", NULL},
    {"stuck",
     "risk where iterating from knowing nothing stops, as algorithms do, if that is above optimal",
     NULL},
    {"beside",
     "risk at the fixed point from knowing all locations, if the posterior is at the other one",
     NULL},
    {NULL, NULL, NULL},
};

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const curve_values *v = values;
    const fini_learning_task task = {.snr = v->snr, .eps = v->eps, .alpha = v->alpha, .L = v->L};
    fini_learning found;
    fin_status status = fini_learning_curve(&task, progress, &found, err);
    if (status)
        return status;
    fini_result_estimate(result, "q_k", &found.optimal.q_k);
    fini_result_estimate(result, "q_v", &found.optimal.q_v);
    fini_result_estimate(result, "optimal", &found.optimal.risk);
    fini_result_estimate(result, "known", &found.known);
    fini_result_estimate(result, "linear", &found.linear);
    if (!found.differ)
        return FIN_OK;
    fini_result_estimate(result, found.low_wins ? "beside" : "stuck", &found.other.risk);
    fini_result_note(
        result,
        "there are two fixed points, q_v = %.4g and %.4g: learning is a phase "
        "transition here; the first is the posterior's, the other that from the %s end",
        found.optimal.q_v.value, found.other.q_v.value, found.low_wins ? "high" : "low");
    return FIN_OK;
}

const fin_command fini_command_curve = {
    .name = "curve",
    .summary = "what can be learnt of the task spiked from n bags, against n/d",
    .revision = 1,
    .size = sizeof(curve_values),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_TABLE_ONLY(curve_table),
    .run = run,
};
