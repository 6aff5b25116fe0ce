/* mil: does a model of bags respect what multiple-instance learning assumes?
 *
 * A trial fits a model (fin_fit_create) to bags of one of the three laws of mil_draw.c, in which
 * something wrong is easy to learn, and judges it twice: on fresh bags of that law, and on the same
 * bags flipped, where the wrong thing points the other way. A model passes if it ranks both better than
 * by chance (Raff and Holt, NeurIPS 2023): AUC > 0.5, and the first alone proves nothing.
 *
 * Of the four laws whose responsible tokens are known, what is judged is who finds them on fresh bags: the
 * weights of the model, its probabilities given the label, the evidence of the tokens, and, beside
 * them, the probabilities of who knows the law. */
#include "lab/mil.h"

#include <math.h>

#define FIN_TABLE_STRUCT fini_mil_law
FIN_TABLE(static, law_table, "mil", FINI_MIL_FIELDS);

typedef struct mil_values {
    fini_mil_law law;
    fin_fit_settings fit;
} mil_values;

enum { FIRST, AUC, ECE, FOUND }; /* what is said of a score of tokens */
enum { CHANGE, ONLY, WEIGHT, PROBABILITY, BEST_WEIGHT, BEST_PROBABILITY, SCORES };
enum { AUC_TRAIN, ACCURACY_TRAIN, AUC_TEST, ACCURACY_TEST, GAIN, TOKENS };
enum { ROWS = TOKENS + FOUND * SCORES };
#define SCORE(name, meaning)                                                                       \
    {name "_first", "share of bags in which the token of largest " meaning " decides", NULL},      \
        {name "_auc", "AUC of responsible tokens of a bag against its others by " meaning, NULL},  \
    {                                                                                              \
        name "_ece", "calibration error of shares of " meaning ", if one token decides", NULL      \
    }
static const fin_output outputs[] = {
    {"auc_train", "mean AUC on fresh bags that are drawn as the training bags are", NULL},
    {"accuracy_train", "share of fresh bags whose class is right", NULL},
    {"auc_test", "mean AUC on the same bags flipped: what was easy to learn is wrong there", NULL},
    {"accuracy_test", "share of flipped bags whose class is right", NULL},
    {"gain", "auc_test - auc_train, from the same trials", NULL},
    SCORE("evidence", "what the prediction loses without it"),
    SCORE("alone", "prediction for the token alone"),
    SCORE("weight", "weight or probability that the model gives it without the label"),
    SCORE("probability", "probability given the label"),
    SCORE("best_weight", "true probability without the label"),
    SCORE("best_probability", "true probability given the label"),
    {"least_gain", "the smallest gain of all trials", NULL},
    {"largest_gain", "the largest", NULL},
    {"passed", "share of trials in which both AUC are above 0.5", NULL},
    {NULL, NULL, NULL},
};

/* ---- settings -------------------------------------------------------------------------------- */

static fin_status check(const void *values, fin_error *err)
{
    const mil_values *v = values;
    const fini_mil_law *law = &v->law;
    int64_t n = law->bags > law->judged ? law->bags : law->judged;
    double numbers = (double)n * (double)fini_mil_longest(law) * (double)law->d;
    if (law->least > law->most)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "least = %lld, most = %lld background tokens; the first is at most the "
                         "second",
                         (long long)law->least, (long long)law->most);
    if (law->least_repeats > law->most_repeats)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "least_repeats = %lld, most_repeats = %lld; the first is at most the "
                         "second",
                         (long long)law->least_repeats, (long long)law->most_repeats);
    if (fini_mil_deciding(law) && law->d < 4)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "d = %lld; the tests whose responsible tokens are known take at least 4 "
                         "columns",
                         (long long)law->d);
    if (!(numbers <= 5e8))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "bags of tokens of d numbers are up to %g numbers, more than 5e8; fewer "
                         "bags or a smaller d do",
                         numbers);
    return FIN_OK;
}

/* ---- one trial ------------------------------------------------------------------------------- */

typedef struct trial {
    double row[ROWS];
} trial;

/* mean: room for (judged, 2) probabilities. */
static fin_status judge(const fin_fit *fit, const fini_mil_bags *room, double *mean, double *auc,
                        double *accuracy, fin_error *err)
{
    fin_fit_score score;
    FINI_TRY(fin_fit_predict(fit, &room->bags, mean, NULL, NULL, err));
    FINI_TRY(fin_fit_judge(room->bags.n, 2, room->labels, mean, NULL, NULL, &score, err));
    *auc = score.auc;
    *accuracy = score.accuracy;
    return FIN_OK;
}

/* score: room for (SCORES + 1, tokens). What the fit cannot say is NaN. */
static fin_status judge_tokens(const fin_fit *fit, const fini_mil_law *law, fini_mil_bags *room,
                               double *score, trial *t, fin_error *err)
{
    int64_t N = room->offsets[room->bags.n];
    bool locates = fin_fit_locates(fit);
    const fin_evidence evidence = {.change = score + CHANGE * N, .only = score + ONLY * N};
    const fin_locations to = {.prior = score + WEIGHT * N, .given = score + PROBABILITY * N};
    fin_status status = fin_fit_evidence(fit, &room->bags, &evidence, NULL, err);
    if (!status && locates)
        status = fin_fit_locate(fit, &room->bags, &to, NULL, err);
    fini_mil_best(law, room, score + SCORES * N, score + BEST_WEIGHT * N,
                  score + BEST_PROBABILITY * N);
    for (int64_t l = 0; l < N; l++)
        room->what[l] &= FINI_MIL_DECIDES;
    for (int s = 0; s < SCORES && !status; s++) {
        fin_found found = {0, NAN, NAN, NAN, NAN, NAN, NAN};
        if (locates || (s != WEIGHT && s != PROBABILITY))
            status = fin_tokens_judge(&room->bags, room->what, score + s * N, &found, err);
        double *row = t->row + TOKENS + FOUND * s;
        row[FIRST] = found.first;
        row[AUC] = found.auc;
        row[ECE] = fini_mil_deciding(law) == 1 ? found.share_ece : NAN;
    }
    return status;
}

static fin_status run_trial(const mil_values *v, int64_t number, fini_mil_bags *room, double *mean,
                            double *score, trial *t, const fin_progress *whole, fin_error *err)
{
    const fini_mil_law *law = &v->law;
    uint64_t seed = (uint64_t)fini_seed_apart(v->fit.seed) + (uint64_t)number;
    fin_fit *fit = NULL;
    fin_fit_settings settings = v->fit;
    fini_share part = {whole, number, law->trials};
    const fin_progress progress = {fini_share_report, &part};
    bool known = fini_mil_deciding(law) > 0;
    if (!known)
        settings.locator = 1; /* no: nobody asks for locations */
    fini_mil_draw(room, law, seed, 0, law->bags, false);
    fin_status status = fin_fit_create(&fit, &settings, 2, &room->bags, NULL, NULL, &progress, err);
    for (int row = 0; row < ROWS; row++)
        t->row[row] = NAN;
    for (int flipped = 0; flipped < (known ? 1 : 2) && !status; flipped++) {
        double *row = t->row + (flipped ? AUC_TEST : AUC_TRAIN);
        fini_mil_draw(room, law, seed, (uint64_t)law->bags, law->judged, flipped);
        status = judge(fit, room, mean, &row[0], &row[1], err);
    }
    t->row[GAIN] = t->row[AUC_TEST] - t->row[AUC_TRAIN];
    if (!status && known)
        status = judge_tokens(fit, law, room, score, t, err);
    fin_fit_destroy(fit);
    return status;
}

/* ---- all trials ------------------------------------------------------------------------------ */

static void add_means(fin_result *result, const trial *t, int64_t n)
{
    for (int row = 0; row < ROWS; row++) {
        double mean = 0, squares = 0;
        for (int64_t i = 0; i < n; i++)
            mean += t[i].row[row] / (double)n;
        for (int64_t i = 0; i < n; i++)
            squares += (t[i].row[row] - mean) * (t[i].row[row] - mean);
        if (!isnan(mean)) /* asked for, and there */
            fini_result_scalar(result, outputs[row].name, mean,
                               sqrt(squares / (double)(n - 1) / (double)n), FIN_HOW_SIMULATION, n);
    }
}

/* The extremes are of these trials: exact. */
static void add_extremes(fin_result *result, const trial *t, int64_t n)
{
    double least = INFINITY, largest = -INFINITY;
    int64_t passed = 0;
    for (int64_t i = 0; i < n; i++) {
        least = fmin(least, t[i].row[GAIN]);
        largest = fmax(largest, t[i].row[GAIN]);
        passed += t[i].row[AUC_TRAIN] > 0.5 && t[i].row[AUC_TEST] > 0.5;
    }
    fini_result_scalar(result, "least_gain", least, 0, FIN_HOW_SIMULATION, n);
    fini_result_scalar(result, "largest_gain", largest, 0, FIN_HOW_SIMULATION, n);
    fini_result_share(result, "passed", NULL, passed, n);
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const mil_values *v = values;
    const fini_mil_law *law = &v->law;
    int64_t n = law->trials, most = law->bags > law->judged ? law->bags : law->judged;
    FINI_AT_END(fini_mil_close) fini_mil_bags room = {.offsets = NULL};
    FINI_FREED trial *t = fini_alloc_array(n, sizeof *t);
    FINI_FREED double *mean = fini_alloc_array(law->judged, 2 * sizeof *mean);
    bool known = fini_mil_deciding(law) > 0;
    int64_t tokens = known ? law->judged * fini_mil_longest(law) : 0;
    FINI_FREED double *score = fini_alloc_array(tokens, (SCORES + 1) * sizeof *score);
    if (!t || !mean || !score)
        return fini_fail_memory(err, (size_t)n * sizeof *t, "the trials");
    FINI_TRY(fini_mil_open(&room, law, most, err));
    for (int64_t i = 0; i < n; i++) {
        FINI_TRY(fini_go_on(progress, "fitting", (double)i, (double)n, err));
        FINI_TRY(run_trial(v, i, &room, mean, score, &t[i], progress, err));
    }
    add_means(result, t, n);
    if (!known)
        add_extremes(result, t, n);
    return FIN_OK;
}

const fin_command fini_command_mil = {
    .name = "mil",
    .summary = "a model of bags: does it keep to what multiple-instance learning assumes, does it "
               "find the responsible token",
    .revision = 1,
    .size = sizeof(mil_values),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_TABLES({&law_table, offsetof(mil_values, law)},
                          {&fin_fit_table, offsetof(mil_values, fit)}),
    .check = check,
    .run = run,
};
