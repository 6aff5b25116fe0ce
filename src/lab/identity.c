/* identity: the same numbers by several routes, for random models.
 *
 * What the mathematics says is equal, is computed in ways that share as little as possible; the
 * largest difference of all models is the result. One row of a table for each identity. */
#include "lab/identity.h"

#include <math.h>
#include <string.h>

#define KIND_LIST(K) /* name, points, routes */                                                    \
    K(bma, 1, 3)                                                                                   \
    K(permutation, 1, 2)                                                                           \
    K(mixing, 1, 2)                                                                                \
    K(compression, 1, 2)                                                                           \
    K(merge, 1, 2)                                                                                 \
    K(perturbation, 1, 2)                                                                          \
    K(memory, 1, 3)                                                                                \
    K(density, FINI_DENSITY_POINTS, 2)                                                             \
    K(nw, 1, 2)                                                                                    \
    K(heads, 1, 2)
#define KIND_ROW(name, points, routes) {#name, points, routes, fini_identity_##name},
static const fini_identity_kind kinds[] = {KIND_LIST(KIND_ROW)};
enum { KINDS = sizeof kinds / sizeof *kinds, SERIES = 6 };
#define KIND_NAME(name, points, routes) #name,
static const char *const which_names[] = {KIND_LIST(KIND_NAME) NULL};

static const fin_word words[] = {
    FINI_ONE_OF("which", fini_identity_values, which, "bma", "the identity", which_names),
    FIN_WORDS_END,
};

static const fin_output outputs[] = {
    {"worst", "largest absolute difference between routes, of all models", NULL},
    {"worst_variance", "the same of predictive variances", NULL},
    {"least", "the smallest of the models' largest differences (for the control, perturbation)",
     NULL},
    {"moved", "how far tokens moved, the most of all models", NULL},
    {"statistic", "smallest over models of the largest change of the statistic (perturbation)",
     NULL},
    {"tokens", "most tokens that were left (compression)", "tokens"},
    {"condition", "largest bound of the condition number of G prior + noise (bma)", NULL},
    {"risk_one", "mean risk of one head with the joint kernel (heads)", NULL},
    {"risk_heads", "mean risk of one head for each block (heads)", NULL},
    {"ratio", "the former over the latter", NULL},
    {"x", "(models * points) angle of the query (density)", "radians"},
    {"one", "(models * points) the first number of an answer by the first route", NULL},
    {"other", "(models * points) by the second", NULL},
    {"third", "(models * points) by the third (bma, memory)", NULL},
    {"residual", "(models * points) one - other", NULL},
    {"residual_third", "(models * points) one - third (bma, memory)", NULL},
    {NULL, NULL, NULL},
};

#define FIN_TABLE_STRUCT fini_identity_own
FIN_TABLE(static, identity_table, "identity", FINI_IDENTITY_FIELDS);
#undef FIN_TABLE_STRUCT
#define FIN_TABLE_STRUCT fini_identity_control
FIN_TABLE(static, control_table, "perturbation", FINI_IDENTITY_CONTROL_FIELDS);
#undef FIN_TABLE_STRUCT
#define FIN_TABLE_STRUCT fini_identity_blocks
FIN_TABLE(static, blocks_table, "heads", FINI_IDENTITY_BLOCKS_FIELDS);
#undef FIN_TABLE_STRUCT

static const fini_identity_kind *find(const char *name)
{
    for (int i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].name, name) == 0)
            return &kinds[i];
    return NULL;
}

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    fini_identity_values *v = values;
    (void)err;
    list[(*count)++] = (fin_group){&identity_table, &v->own};
    if (strcmp(v->which, "perturbation") == 0)
        list[(*count)++] = (fin_group){&control_table, &v->control};
    if (strcmp(v->which, "heads") == 0)
        list[(*count)++] = (fin_group){&blocks_table, &v->blocks};
    return FIN_OK;
}

/* The joint Gaussian of heads has (H L)^2 covariances, and no step in between to stop at. */
static fin_status check(const void *values, fin_error *err)
{
    enum { MOST = 4096 };
    const fini_identity_values *v = values;
    if (strcmp(v->which, "heads") == 0 && v->blocks.H * v->own.L > MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "H = %lld heads of L = %lld tokens are more than %d numbers to condition "
                         "on; L = 60 is usual",
                         (long long)v->blocks.H, (long long)v->own.L, MOST);
    return FIN_OK;
}

/* ---- collecting ------------------------------------------------------------------------------ */

typedef struct collection {
    fini_trial most;           /* the largest of every number, NaN if there is none */
    double least, statistic;   /* the smallest */
    double sum[2], squares[3]; /* of both risks; of both, and of their product */
    double *series;            /* (6, models * points): in the order of the outputs */
    int64_t size;
} collection;

/* fmax would forget a NaN, and with it a model that went wrong; `kept` says that there was one
 * before. */
static double larger(double a, double b, bool kept)
{
    return !kept ? b : isnan(a) || a >= b ? a : b;
}

static void collect(collection *c, const fini_trial *t, int64_t model)
{
    bool kept = model > 0;
    c->most.worst = larger(c->most.worst, t->worst, kept);
    c->most.worst_variance = larger(c->most.worst_variance, t->worst_variance, kept);
    c->most.moved = larger(c->most.moved, t->moved, kept);
    c->most.tokens = larger(c->most.tokens, t->tokens, kept);
    c->most.condition = larger(c->most.condition, t->condition, kept);
    c->least = -larger(-c->least, -t->worst, kept);
    c->statistic = -larger(-c->statistic, -t->statistic, kept);
    c->sum[0] += t->risk_one;
    c->sum[1] += t->risk_heads;
    c->squares[0] += t->risk_one * t->risk_one;
    c->squares[1] += t->risk_heads * t->risk_heads;
    c->squares[2] += t->risk_one * t->risk_heads;
}

static fin_status run_models(const fini_identity_values *v, const fini_identity_kind *kind,
                             collection *c, const fin_progress *progress, fin_error *err)
{
    fin_status status = FIN_OK;
    for (int64_t m = 0; m < v->own.models && !status; m++) {
        double *at = c->series + m * kind->points;
        fini_trial t = {
            at,  at + c->size, at + 2 * c->size, at + 3 * c->size, NAN, NAN, NAN, NAN, NAN, NAN,
            NAN, NAN};
        if (fini_report(progress, "random models", (double)m, (double)v->own.models))
            return fini_fail(err, FIN_ERR_CANCELLED, "cancelled at model %lld of %lld",
                             (long long)m, (long long)v->own.models);
        status = kind->run(v, m, &t, err);
        if (!status)
            collect(c, &t, m);
        for (int i = 0; i < kind->points; i++) {
            at[4 * c->size + i] = t.one[i] - t.other[i];
            at[5 * c->size + i] = t.one[i] - t.third[i];
        }
    }
    return status;
}

/* ---- results --------------------------------------------------------------------------------- */

/* Models are drawn, but what is equal is so for each of them: such numbers have no error. */
static void add(fin_result *result, const char *name, double number, int64_t models)
{
    if (!isnan(number))
        fini_result_scalar(result, name, number, 0, FIN_HOW_RUNS, models);
}

/* Of a ratio of means, to first order: the spread of a - ratio b over models. */
static void add_risks(fin_result *result, const collection *c, int64_t n)
{
    double mean[2], error[2], scale = n > 1 ? 1 / ((double)n * (double)(n - 1)) : NAN;
    if (isnan(c->sum[0]))
        return;
    for (int i = 0; i < 2; i++) {
        mean[i] = c->sum[i] / (double)n;
        error[i] = sqrt(fmax(0, c->squares[i] - mean[i] * c->sum[i]) * scale);
    }
    double ratio = mean[0] / mean[1];
    double spread = c->squares[0] - 2 * ratio * c->squares[2] + ratio * ratio * c->squares[1];
    fini_result_scalar(result, "risk_one", mean[0], error[0], FIN_HOW_SIMULATION, n);
    fini_result_scalar(result, "risk_heads", mean[1], error[1], FIN_HOW_SIMULATION, n);
    fini_result_scalar(result, "ratio", ratio, sqrt(fmax(0, spread) * scale) / mean[1],
                       FIN_HOW_SIMULATION, n);
}

static void add_all(const fini_identity_kind *kind, const collection *c, int64_t models,
                    fin_result *result)
{
    static const char *const names[SERIES] = {"x",     "one",      "other",
                                              "third", "residual", "residual_third"};
    /* Also if a route gave no number: that is the finding. */
    fini_result_scalar(result, "worst", c->most.worst, 0, FIN_HOW_RUNS, models);
    add(result, "worst_variance", c->most.worst_variance, models);
    add(result, "least", c->least, models);
    add(result, "moved", c->most.moved, models);
    add(result, "statistic", c->statistic, models);
    add(result, "tokens", c->most.tokens, models);
    add(result, "condition", c->most.condition, models);
    add_risks(result, c, models);
    for (int i = 0; i < SERIES; i++)
        if ((i != 0 || kind->points > 1) && ((i != 3 && i != 5) || kind->routes == 3))
            fini_result_series(result, names[i], FIN_F64, 1, &c->size, c->series + i * c->size);
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const fini_identity_values *v = values;
    const fini_identity_kind *kind = find(v->which);
    collection c = {.size = v->own.models * kind->points};
    c.series = fini_alloc_array(SERIES * c.size, sizeof(double));
    if (!c.series)
        return fini_fail_memory(err, (size_t)c.size * SERIES * sizeof(double), "the numbers");
    memset(c.series, 0, (size_t)c.size * SERIES * sizeof(double));
    fin_status status = run_models(v, kind, &c, progress, err);
    if (!status)
        add_all(kind, &c, v->own.models, result);
    fini_free(c.series);
    return status;
}

const fin_command fini_command_identity = {
    .name = "identity",
    .summary = "what must be equal for exchangeable tokens, by several routes, for random models",
    .revision = 1,
    .size = sizeof(fini_identity_values),
    .words = words,
    .outputs = outputs,
    .groups = groups,
    .check = check,
    .run = run,
};
