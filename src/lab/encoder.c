/* encoder: a transformer encoder that learns from sequences of a family or task, beside Bayes.
 *
 * It is judged on sequences that neither training nor its evaluations on the way have seen, at the
 * length it was trained for and at others. What counts is risk / bayes on the same targets: the
 * Bayes prediction knows the family, the encoder has seen sequences only. */
#include "encoder/probe.h"
#include "lab/learner.h"

#include <math.h>
#include <string.h>

#define ENCODER_FIELDS(F, C)                                                                       \
    F(int64_t, test, 4000, 2, 100000000, "sequences that the end is judged on, at every length")   \
    F(int64_t, locate, 0, 0, 1000000,                                                              \
      "tasks: sequences that probes for the location are fitted to, and as many to judge them; "   \
      "0: no probes")

#define FIN_TABLE_STRUCT encoder_own
FIN_TABLE_OF_ITS_OWN(own_table, "encoder", ENCODER_FIELDS);

typedef struct encoder_values {
    fini_learner_values learner;
    char lengths[256];
    encoder_own own;
} encoder_values;

static const fin_word words[] = {
    FINI_LEARNER_WORD(encoder_values, learner,
                      "family of exchangeable tokens, or a task of single-location regression",
                      .also = "task"),
    FINI_LIST("lengths", encoder_values, lengths, "",
              "families: other lengths to be judged at, such as 4,8,16", FIN_WORD_WHOLES),
    FIN_WORDS_END,
};

static const fin_output outputs[] = {
    {"risk", "squared error of hidden values or labels, or cross-entropy of classes", NULL},
    {"bayes", "that of the Bayes prediction for the same targets", NULL},
    {"excess", "risk - bayes, from the same targets", NULL},
    {"quotient", "risk / bayes", NULL},
    {"correlation", "of predictions and Bayes predictions (classes: of probabilities)", NULL},
    {"distance", "mean squared distance of predictions and Bayes predictions", NULL},
    {"accuracy", "classes: share of targets whose class has the largest probability", NULL},
    {"attended", "(locate) share of sequences whose relevant token has the largest weight", NULL},
    {"place", "(locate) accuracy of a linear probe for the location from attention weights", NULL},
    {"fixed", "(locate) accuracy of a linear probe for the sign of y from one fixed token", NULL},
    {"cos_key", "(locate) |cos| of k* and the direction of tokens that weights follow", NULL},
    {"cos_value", "(locate) |cos| of v* and the direction that is read of attended tokens", NULL},
    {"attended_first", "(locate) attended, with first weights", NULL},
    {"place_first", "(locate) place, with first weights", NULL},
    {"fixed_first", "(locate) fixed, with first weights", NULL},
    {"cos_key_first", "(locate) cos_key, with first weights", NULL},
    {"cos_value_first", "(locate) cos_value, with first weights", NULL},
    {"fixed_token", "(locate) the probe of fixed, from the token as it comes", NULL},
    {"attended_bayes", "(locate) attended, for the posterior of the location", NULL},
    {"parameters", "numbers that were learnt", "numbers"},
    {"steps_taken", "fewer than steps if it stopped early", "steps"},
    {"greatest_quotient", "the largest risk / bayes of all lengths", NULL},
    {"shortest_quotient", "risk / bayes at the first of the lengths", NULL},
    {"longest_quotient", "risk / bayes at the last of the lengths", NULL},
    {"falling", "share of neighbouring lengths with a smaller risk at the longer one", NULL},
    {"bayes_falling", "the same for the Bayes risk", NULL},
    {"length", "(lengths) tokens in sight", "tokens"},
    {"length_risk", "(lengths) risk", NULL},
    {"length_bayes", "(lengths) Bayes risk", NULL},
    {"length_quotient", "(lengths) risk / bayes", NULL},
    {"length_risk_error", "(lengths) standard error of the risk", NULL},
    {"length_quotient_error", "(lengths) that of risk / bayes", NULL},
    {"step", "(T) steps at which it was evaluated on the way", "steps"},
    {"step_excess", "(T) risk / bayes - 1 then; NaN without a Bayes prediction", NULL},
    {"step_excess_error", "(T) its standard error", NULL},
    {"step_loss", "(T) mean training loss since the step before; NaN at first", NULL},
    {NULL, NULL, NULL},
};

#define END_FIRST (FIN_TEST_FIRST + (UINT64_C(1) << 43)) /* evaluations on the way begin before */

/* ---- settings -------------------------------------------------------------------------------- */

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    encoder_values *v = values;
    list[(*count)++] = (fin_group){&own_table, &v->own};
    return fini_learner_groups(&v->learner, list, count, err);
}

static fin_status lengths_of(const encoder_values *v, int64_t *length, int *count, fin_error *err)
{
    int64_t least = v->learner.corpus.objective == FIN_OBJECTIVE_SUPERVISED;
    return fini_parse_wholes(v->lengths, "lengths", least, 1048576, length, count, err);
}

static fin_status check(const void *values, fin_error *err)
{
    const encoder_values *v = values;
    int64_t length[FINI_WHOLES];
    int count;
    if (v->lengths[0] && fin_task_find(v->learner.family))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "lengths: sequences of %s have the lengths of the task; leave it out",
                         v->learner.family);
    fin_status status = lengths_of(v, length, &count, err);
    if (!status && count > 0 && v->learner.encoder.positions == FIN_POSITIONS_LEARNED)
        status = fini_fail(err, FIN_ERR_ARGUMENT,
                           "lengths: learned positions belong to the length of training; take "
                           "positions = none or sinusoidal");
    if (!status && v->own.locate == 1)
        status = fini_fail(err, FIN_ERR_ARGUMENT,
                           "locate = 1: a probe needs at least 2 sequences; 2000 is usual");
    fini_learner o = {NULL, NULL, NULL, NULL, NULL};
    if (!status)
        status = fini_learner_open(&o, &v->learner, err);
    if (!status && v->own.locate > 0)
        status = o.task ? fini_location_check(o.encoder, o.task, err)
                        : fini_fail(err, FIN_ERR_ARGUMENT,
                                    "locate: %s has no location; take a task, such as family = slr",
                                    v->learner.family);
    fini_learner_close(&o);
    return status;
}

/* ---- what came out --------------------------------------------------------------------------- */

/* d(risk / bayes) = (d excess - (quotient - 1) d bayes) / bayes, both parts at their worst. */
static double quotient_error(const fin_evaluation *e)
{
    return (e->excess_se + fabs(e->quotient - 1) * e->bayes_se) / fabs(e->bayes);
}

static void add_number(fin_result *result, const char *name, double value, double error, int64_t n)
{
    if (!isnan(value))
        fini_result_scalar(result, name, value, error, FIN_HOW_SIMULATION, n);
}

static void add_end(fin_result *result, const fin_evaluation *e)
{
    int64_t n = e->sequences;
    add_number(result, "risk", e->risk, e->risk_se, n);
    add_number(result, "bayes", e->bayes, e->bayes_se, n);
    add_number(result, "excess", e->excess, e->excess_se, n);
    add_number(result, "quotient", e->quotient, quotient_error(e), n);
    /* Fisher: the error of a correlation r of n pairs is about (1 - r^2) / sqrt(n); targets of one
     * sequence are not independent, so that n counts sequences. */
    add_number(result, "correlation", e->correlation,
               (1 - e->correlation * e->correlation) / sqrt((double)n), n);
    add_number(result, "distance", e->distance, NAN, n);
    add_number(result, "accuracy", e->accuracy, sqrt(e->accuracy * (1 - e->accuracy) / (double)n),
               n);
}

static void add_location(fin_result *result, const fini_location *first, const fini_location *end,
                         int64_t n)
{
    const struct {
        const char *name;
        fini_located share;
    } row[] = {
        {"attended", end->attended},
        {"place", end->place},
        {"fixed", end->after},
        {"cos_key", end->cos_key},
        {"cos_value", end->cos_value},
        {"attended_first", first->attended},
        {"place_first", first->place},
        {"fixed_first", first->after},
        {"cos_key_first", first->cos_key},
        {"cos_value_first", first->cos_value},
        {"fixed_token", end->before},
        {"attended_bayes", end->bayes},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        add_number(result, row[i].name, row[i].share.value, row[i].share.error, n);
}

static void add_way(fin_result *result, const fin_learn *learn, double *room)
{
    const fin_learn_row *row;
    int64_t rows = fin_learn_log(learn, &row);
    double *step = room, *excess = step + rows, *loss = excess + rows, *error = loss + rows;
    for (int64_t i = 0; i < rows; i++) {
        step[i] = (double)row[i].step;
        excess[i] = row[i].test.quotient - 1;
        error[i] = quotient_error(&row[i].test);
        loss[i] = row[i].loss;
    }
    fini_result_series(result, "step", FIN_F64, 1, &rows, step);
    fini_result_series(result, "step_excess", FIN_F64, 1, &rows, excess);
    fini_result_series(result, "step_excess_error", FIN_F64, 1, &rows, error);
    fini_result_series(result, "step_loss", FIN_F64, 1, &rows, loss);
}

static void add_lengths(fin_result *result, const int64_t *length, const fin_evaluation *e,
                        int count)
{
    double L[FINI_WHOLES], risk[FINI_WHOLES], bayes[FINI_WHOLES], quotient[FINI_WHOLES];
    double risk_error[FINI_WHOLES], error[FINI_WHOLES];
    int64_t n = count, worst = 0, falls = 0, bayes_falls = 0;
    for (int i = 0; i < count; i++) {
        L[i] = (double)length[i];
        risk[i] = e[i].risk;
        bayes[i] = e[i].bayes;
        quotient[i] = e[i].quotient;
        risk_error[i] = e[i].risk_se;
        error[i] = quotient_error(&e[i]);
        worst = quotient[i] > quotient[worst] ? i : worst;
        falls += i > 0 && risk[i] < risk[i - 1];
        bayes_falls += i > 0 && bayes[i] < bayes[i - 1];
    }
    fini_result_series(result, "length", FIN_F64, 1, &n, L);
    fini_result_series(result, "length_risk", FIN_F64, 1, &n, risk);
    fini_result_series(result, "length_bayes", FIN_F64, 1, &n, bayes);
    fini_result_series(result, "length_quotient", FIN_F64, 1, &n, quotient);
    fini_result_series(result, "length_risk_error", FIN_F64, 1, &n, risk_error);
    fini_result_series(result, "length_quotient_error", FIN_F64, 1, &n, error);
    n = e[0].sequences;
    add_number(result, "greatest_quotient", quotient[worst], quotient_error(&e[worst]), n);
    add_number(result, "shortest_quotient", quotient[0], quotient_error(&e[0]), n);
    add_number(result, "longest_quotient", quotient[count - 1], quotient_error(&e[count - 1]), n);
    if (count < 2)
        return;
    add_number(result, "falling", (double)falls / (count - 1), 0, n);
    if (!isnan(bayes[0]))
        add_number(result, "bayes_falling", (double)bayes_falls / (count - 1), 0, n);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static fin_status judge(const encoder_values *v, const fini_learner *o, fin_result *result,
                        const fin_progress *progress, fin_error *err)
{
    fin_evaluation end, at[FINI_WHOLES];
    int64_t length[FINI_WHOLES];
    int count;
    FINI_TRY(lengths_of(v, length, &count, err));
    FINI_TRY(fin_encoder_evaluate(o->encoder, o->corpus, END_FIRST, v->own.test, -1, &end, progress,
                                  err));
    for (int i = 0; i < count; i++)
        FINI_TRY(fin_encoder_evaluate(o->encoder, o->corpus, END_FIRST, v->own.test, length[i],
                                      &at[i], progress, err));
    add_end(result, &end);
    if (count > 0)
        add_lengths(result, length, at, count);
    return FIN_OK;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const encoder_values *v = values;
    fini_learner o;
    fini_location first, end;
    double *room = NULL;
    int64_t locate = v->own.locate;
    fin_status status = fini_learner_open(&o, &v->learner, err);
    if (!status && locate > 0)
        status = fini_location_read(o.encoder, o.task, locate, &first, err);
    if (!status)
        status = fini_learner_run(o.learn, "learning", progress, err);
    if (!status)
        status = judge(v, &o, result, progress, err);
    if (!status && locate > 0 &&
        !(status = fini_location_read(o.encoder, o.task, locate, &end, err)))
        add_location(result, &first, &end, locate);
    if (!status) {
        int64_t rows = fin_learn_log(o.learn, NULL);
        room = fini_alloc_array(rows, 4 * sizeof *room);
        if (!room)
            status = fini_fail_memory(err, (size_t)rows * 4 * sizeof *room, "the way");
    }
    if (!status) {
        add_way(result, o.learn, room);
        fini_result_scalar(result, "parameters", (double)fin_encoder_parameters(o.encoder), 0,
                           FIN_HOW_CLOSED, 0);
        fini_result_scalar(result, "steps_taken", (double)fin_learn_step(o.learn), 0,
                           FIN_HOW_CLOSED, 0);
    }
    fini_free(room);
    fini_learner_close(&o);
    return status;
}

const fin_command fini_command_encoder = {
    .name = "encoder",
    .summary = "a transformer encoder learns from sequences: risk beside Bayes, at any length",
    .revision = 2,
    .size = sizeof(encoder_values),
    .words = words,
    .outputs = outputs,
    .groups = groups,
    .check = check,
    .run = run,
};
