/* latent: what no predictor can beat after L exchangeable tokens, what the posterior's prediction
 * does reach on drawn sequences, and what attention does in its place.
 *
 *     risk        simulation: draw z, tokens and queries, predict, square the error
 *     bayes       theory: closed form, or the posterior variance averaged over keys
 *     attention   the risk of attention with settings of one's own
 *     cme, softmax, nw   the same with settings that suit the family (latent_forms.c)
 *     posterior   how sure the posterior is of the true z, where z is one of finitely many
 *
 * The first two are about the same number and share no draws. */
#include "command/latent.h"

#include "family/family.h"

#include <math.h>
#include <string.h>

#define CROSS_FIELDS(F, C)                                                                         \
    C(form, 0, "cme|softmax|nw", "attention form")                                                 \
    FIN_COVARIANCE_FIELDS(F, C)                                                                    \
    F(double, temperature, 1, 1e-100, 1e100, "softmax: scores are q.k / temperature")

#define FIN_TABLE_STRUCT fini_latent_own
FIN_TABLE(static, latent_table, "latent", FINI_LATENT_FIELDS);
#undef FIN_TABLE_STRUCT
#define FIN_TABLE_STRUCT fini_latent_best
FIN_TABLE(static, best_table, "attention", FINI_LATENT_BEST_FIELDS);
#undef FIN_TABLE_STRUCT
#define FIN_TABLE_STRUCT fin_cross_settings
FIN_TABLE(static, cross_table, "attention", CROSS_FIELDS);
#undef FIN_TABLE_STRUCT

enum { SHOW_RISK = 1, SHOW_BAYES = 2, SHOW_ATTENTION = 4, SHOW_POSTERIOR = 8, SHOW_CME = 16 };
enum {
    SHOW_SOFTMAX = 2 * SHOW_CME,
    SHOW_FORMS = 7 * SHOW_CME
}; /* in the order of FIN_CROSS_CME ... */
static const char *const show_names[] = {"risk", "bayes",   "attention", "posterior",
                                         "cme",  "softmax", "nw",        NULL};

static const fin_word words[] = {
    FIN_WORD("family", fini_latent_values, family, "concept", "family of exchangeable tokens"),
    FINI_NAMES("show", fini_latent_values, show, "risk,bayes",
               "which numbers: a list of risk, bayes, attention, posterior, cme, softmax, nw",
               show_names),
    FIN_WORDS_END,
};

static const fin_output outputs[] = {
    {"risk", "E |truth - posterior mean|^2 on drawn sequences", NULL},
    {"bayes", "the same number from theory: closed form, or averaged over keys alone", NULL},
    {"ratio", "risk / bayes", NULL},
    {"attention",
     "the risk with attention in place of the posterior; prior and noise are the "
     "family's, keys are features where there are any",
     NULL},
    {"gap", "attention - bayes", NULL},
    {"posterior", "mean posterior probability of the true z", NULL},
    {"cme", "the risk of cme attention with the family's own prior and noise", NULL},
    {"softmax", "the risk of softmax attention at `temperature`", NULL},
    {"nw", "the risk of Nadaraya-Watson attention", NULL},
    {"temperature", "of softmax: as given, or the best for this L (L > 1)", NULL},
#define RARE "1 if one sample makes up a tenth of it, so that it and its error are too small"
    {"bayes_rare", RARE, NULL},
    {"attention_rare", RARE, NULL},
    {"cme_rare", RARE, NULL},
    {"softmax_rare", RARE, NULL},
    {"nw_rare", RARE, NULL},
#undef RARE
    {NULL, NULL, NULL},
};

/* ---- settings -------------------------------------------------------------------------------- */

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    fini_latent_values *v = values;
    unsigned show;
    FINI_TRY(fin_word_group("family", v->family, &v->latent, list, count, err));
    FINI_TRY(fini_parse_names(v->show, "show", show_names, &show, err));
    list[(*count)++] = (fin_group){&latent_table, &v->own};
    list[(*count)++] = (fin_group){&fin_risk_table, &v->risk};
    if (show & SHOW_ATTENTION)
        list[(*count)++] = (fin_group){&cross_table, &v->cross};
    if (show & SHOW_SOFTMAX)
        list[(*count)++] = (fin_group){&best_table, &v->best};
    return FIN_OK;
}

static bool is_finite(const fin_family *family)
{
    return family->finite;
}

/* Making the family tells what does not fit together. It is cheap but for large tables, which a run
 * has to make anyway. */
static fin_status check(const void *values, fin_error *err)
{
    const fini_latent_values *v = values;
    fin_latent *latent = NULL;
    fin_latent_shape shape;
    unsigned show;
    FINI_TRY(fini_parse_names(v->show, "show", show_names, &show, err));
    FINI_TRY(fin_latent_create(&latent, fin_family_find(v->family), &v->latent,
                               (uint64_t)v->risk.seed, err));
    fin_latent_get_shape(latent, &shape);
    fin_latent_destroy(latent);
    if (v->own.L > shape.longest)
        return fini_fail(err, FIN_ERR_ARGUMENT, "L = %lld is more than the %lld tokens there are",
                         (long long)v->own.L, (long long)shape.longest);
    if ((show & SHOW_POSTERIOR) && !fin_family_find(v->family)->finite) {
        char names[256];
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "show: posterior is for families with finitely many z, %s, not for %s",
                         fini_families_that(is_finite, names, sizeof names), v->family);
    }
    if ((show & (SHOW_ATTENTION | SHOW_FORMS)) && (shape.dk == 0 || shape.outcomes > 0))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "show: attention needs keys and values that are numbers, which %s has not",
                         v->family);
    if ((show & SHOW_ATTENTION) && (show & SHOW_SOFTMAX))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "show: attention and softmax each have a temperature; give one of them");
    return FIN_OK;
}

/* ---- drawn sequences ------------------------------------------------------------------------- */

/* Several queries a context cost little and make its error a better estimate; the spread between
 * contexts is what the standard error comes from. */
enum { QUERIES = 8, NUMBERS_AT_ONCE = 1 << 18 };

typedef struct sample {
    const fin_latent *latent;
    fin_latent_shape shape;
    int64_t L, n, width; /* n sequences at once; width of a prediction */
    double *keys, *values, *queries, *truth, *z;
    double *guess, *statistic, *posterior;
    fini_arena arena;
} sample;

static void lay_out(sample *s)
{
    fini_arena *arena = &s->arena;
    const fin_latent_shape *shape = &s->shape;
    s->keys = fini_take(arena, s->n * s->L * shape->dk, sizeof(double));
    s->values = fini_take(arena, s->n * s->L * shape->dv, sizeof(double));
    s->queries = fini_take(arena, s->n * QUERIES * shape->dk, sizeof(double));
    s->truth = fini_take(arena, s->n * QUERIES * s->width, sizeof(double));
    s->z = fini_take(arena, s->n * shape->latent, sizeof(double));
    s->guess = fini_take(arena, QUERIES * s->width, sizeof(double));
    s->statistic = fini_take(arena, shape->statistic, sizeof(double));
    s->posterior = fini_take(arena, shape->posterior, sizeof(double));
}

static fin_status open_sample(sample *s, const fin_latent *latent, int64_t L, int64_t samples,
                              fin_error *err)
{
    *s = (sample){.latent = latent, .L = L};
    fin_latent_get_shape(latent, &s->shape);
    int64_t numbers = (L + QUERIES) * (s->shape.dk + s->shape.dv + s->shape.outcomes) + 1;
    s->n = NUMBERS_AT_ONCE / numbers + 1;
    s->n = s->n < samples ? s->n : samples;
    s->width = s->shape.outcomes ? s->shape.outcomes : s->shape.dv;
    FINI_LAY_OUT(err, &s->arena, "sequences", lay_out(s));
    return FIN_OK;
}

/* Mean over queries of the squared error of sequence i. */
static fin_status error_of(sample *s, int64_t i, double *error, fin_error *err)
{
    const fin_latent_shape *shape = &s->shape;
    const double *truth = s->truth + i * QUERIES * s->width;
    FINI_TRY(fin_latent_predict_tokens(s->latent, s->L, s->keys + i * s->L * shape->dk,
                                       s->values + i * s->L * shape->dv, QUERIES,
                                       s->queries + i * QUERIES * shape->dk, s->guess, NULL, err));
    *error = 0;
    for (int64_t k = 0; k < QUERIES * s->width; k++)
        *error += (truth[k] - s->guess[k]) * (truth[k] - s->guess[k]) / QUERIES;
    return FIN_OK;
}

/* Posterior probability of the z that sequence i was drawn with. */
static fin_status sureness_of(sample *s, int64_t i, double *sure, fin_error *err)
{
    const fin_latent_shape *shape = &s->shape;
    memset(s->statistic, 0, (size_t)shape->statistic * sizeof(double));
    fin_status status = fin_latent_accumulate(s->latent, s->L, s->keys + i * s->L * shape->dk,
                                              s->values + i * s->L * shape->dv, s->statistic, err);
    if (!status)
        status = fin_latent_posterior(s->latent, s->statistic, s->posterior, err);
    *sure = status ? NAN : s->posterior[(int64_t)s->z[i * shape->latent]];
    return status;
}

typedef fin_status (*measure)(sample *s, int64_t i, double *number, fin_error *err);

/* The mean of a number over `samples` sequences and its standard error. */
static fin_status average(const fin_latent *latent, const fini_latent_values *v, measure of,
                          const char *name, fin_result *result, const fin_progress *progress,
                          fin_error *err)
{
    sample s;
    double sum = 0, squares = 0;
    int64_t done = 0, samples = v->risk.samples;
    fin_status status = open_sample(&s, latent, v->own.L, samples, err);
    for (; done < samples && !status; done += s.n) {
        int64_t n = samples - done < s.n ? samples - done : s.n;
        if (fini_report(progress, "sequences", (double)done, (double)samples)) {
            status = fini_fail(err, FIN_ERR_CANCELLED, "cancelled after %lld of %lld sequences",
                               (long long)done, (long long)samples);
            break;
        }
        const fin_latent_sample into = {n,      v->own.L, QUERIES,
                                        s.keys, s.values, s.queries,
                                        NULL,   s.truth,  s.shape.latent ? s.z : NULL};
        status = fin_latent_draw(latent, (uint64_t)done, &into, err);
        for (int64_t i = 0; i < n && !status; i++) {
            double number;
            status = of(&s, i, &number, err);
            sum += status ? 0 : number;
            squares += status ? 0 : number * number;
        }
    }
    fini_arena_close(&s.arena);
    if (status)
        return status;
    double mean = sum / (double)samples;
    double variance = fmax(0, squares - mean * sum) / (double)(samples - 1);
    fini_result_scalar(result, name, mean, sqrt(variance / (double)samples), FIN_HOW_SIMULATION,
                       samples);
    return FIN_OK;
}

/* ---- numbers --------------------------------------------------------------------------------- */

static double named(const fin_result *result, const char *name, double *error)
{
    for (int i = 0; i < fin_result_scalar_count(result); i++) {
        fin_scalar scalar = fin_result_get_scalar(result, i);
        if (strcmp(scalar.name, name) == 0) {
            *error = scalar.error;
            return scalar.value;
        }
    }
    return *error = NAN;
}

static void add_derived(const fini_latent_values *v, unsigned show, fin_result *result)
{
    double a, b, c, value_a = named(result, "risk", &a), value_b = named(result, "bayes", &b);
    double value_c = named(result, "attention", &c);
    int64_t n = v->risk.samples;
    if ((show & SHOW_RISK) && (show & SHOW_BAYES) && value_b > 0)
        fini_result_scalar(result, "ratio", value_a / value_b,
                           value_a / value_b * hypot(a / value_a, b / value_b), FIN_HOW_SIMULATION,
                           n);
    if ((show & SHOW_ATTENTION) && (show & SHOW_BAYES))
        fini_result_scalar(result, "gap", value_c - value_b, hypot(b, c), FIN_HOW_SIMULATION, n);
}

static fin_status add_bayes(const fini_latent_values *v, const fin_latent *latent,
                            fin_result *result, const fin_progress *progress, fin_error *err)
{
    fin_estimate bayes;
    FINI_TRY(fin_latent_risk(latent, v->own.L, &v->risk, progress, &bayes, err));
    fini_result_flagged(result, "bayes", &bayes);
    return FIN_OK;
}

static fin_status add_attention(const fini_latent_values *v, const fin_latent *latent,
                                fin_result *result, const fin_progress *progress, fin_error *err)
{
    fin_cross_settings cross;
    fin_estimate risk;
    fin_settings_defaults(&fin_cross_table, &cross, sizeof cross);
    cross.form = v->cross.form;
    cross.kernel = v->cross.kernel;
    cross.scale = v->cross.scale;
    cross.degree = v->cross.degree;
    cross.offset = v->cross.offset;
    cross.temperature = v->cross.temperature;
    cross.prior = v->latent.prior;
    cross.noise = v->latent.noise;
    FINI_TRY(fin_latent_risk_cross(latent, &cross, v->own.L, &v->risk, progress, &risk, err));
    fini_result_flagged(result, "attention", &risk);
    return FIN_OK;
}

/* Theory draws from streams of its own: `risk` and `bayes` share the family (its frequencies, its
 * tables) and nothing else. */
static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const fini_latent_values *v = values;
    unsigned show;
    fin_latent *latent = NULL;
    fin_status status = fini_parse_names(v->show, "show", show_names, &show, err);
    if (!status)
        status = fin_latent_create(&latent, fin_family_find(v->family), &v->latent,
                                   (uint64_t)v->risk.seed, err);
    if (!status && (show & SHOW_RISK))
        status = average(latent, v, error_of, "risk", result, progress, err);
    if (!status && (show & SHOW_POSTERIOR))
        status = average(latent, v, sureness_of, "posterior", result, progress, err);
    if (!status && (show & SHOW_BAYES))
        status = add_bayes(v, latent, result, progress, err);
    if (!status && (show & SHOW_ATTENTION))
        status = add_attention(v, latent, result, progress, err);
    for (int form = 0; form < 3 && !status; form++)
        if (show & (unsigned)SHOW_CME << form)
            status = fini_latent_form(v, latent, form, result, progress, err);
    fin_latent_destroy(latent);
    if (status)
        return status;
    add_derived(v, show, result);
    return FIN_OK;
}

const fin_command fini_command_latent = {
    .name = "latent",
    .summary = "risks after L exchangeable tokens: posterior, theory, attention",
    .revision = 1,
    .size = sizeof(fini_latent_values),
    .words = words,
    .outputs = outputs,
    .groups = groups,
    .check = check,
    .run = run,
};
