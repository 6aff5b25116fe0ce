/* Nested cross-validation of several models: what a user would have got from each training set.
 *
 * A model is a choice among single ones, and calibrated: for every outer fold both are made inside the
 * training set, from inner folds, as fin_fit_create does. Models share single ones, and these share their
 * fits (cross.c): a table of ten models costs as much as `auto`, which looks at all of them. Models
 * with other inner folds (inner, seed, class_weights) than the first are done after those. */
#include "bags/judge.h"

#include <math.h>
#include <string.h>

/* Models with the same inner folds. */
typedef struct family {
    const fini_nested *v;
    int64_t n, width, outers;
    int models; /* single ones */
    fin_fit_settings model[2 * FINI_CANDIDATES];
    unsigned char nested[2 * FINI_CANDIDATES];
    unsigned char only[2 * FINI_CANDIDATES]; /* fitted where a model that shrinks is not settled */
    unsigned char *todo, *done;              /* (models, outers) */
    bool *member;                            /* (count): of the models asked for */
    bool
        swapped; /* two classes, and the first bag has class 1: it is 0 inside, for all training sets */
    fin_fit *fit; /* (outers): how labels are seen inside */
    unsigned char *test;
    int64_t *size; /* (outers) */
    int *inner;
    int32_t *fold;   /* (outers, n) */
    double *labels;  /* (outers, n) */
    double *weights; /* (n) */
    int64_t *group;  /* (outers, n) */
    double *omega;   /* (outers, n) */
    double *order;   /* (n) */
    int64_t *groups; /* (outers) */
    double *mean, *spread, *within, *ends, *noise, *outlook;
    double *P;       /* (models, n) */
    double *seconds; /* (models) */
    double *row[6];  /* (n, width) scratch */
    double *own;     /* (n, 4) the same: intervals */
    fini_decision decision;
} family;

static void layout(fini_arena *a, family *g, int64_t inner)
{
    int64_t cells = g->outers * g->n, models = g->models;
    bool numbers = g->v->classes == 0;
    g->fit = fini_take(a, g->outers, sizeof *g->fit);
    g->test = fini_take(a, cells, 1);
    g->size = fini_take(a, g->outers, sizeof *g->size);
    g->inner = fini_take(a, g->outers, sizeof *g->inner);
    g->fold = fini_take(a, cells, sizeof *g->fold);
    g->labels = fini_take(a, cells, sizeof(double));
    g->weights = fini_take(a, g->n, sizeof(double));
    g->group = fini_take(a, cells, sizeof *g->group);
    g->groups = fini_take(a, g->outers, sizeof *g->groups);
    g->omega = fini_take(a, cells, sizeof(double));
    g->order = fini_take(a, g->n, sizeof(double));
    g->mean = fini_take(a, cells * models, (size_t)g->width * sizeof(double));
    g->spread = numbers ? fini_take(a, cells * models, sizeof(double)) : NULL;
    g->within = numbers ? fini_take(a, cells * models, sizeof(double)) : NULL;
    g->ends = numbers ? fini_take(a, cells * models, 2 * sizeof(double)) : NULL;
    g->own = numbers ? fini_take(a, g->n, 4 * sizeof(double)) : NULL;
    g->noise = fini_take(a, g->outers * models, sizeof(double));
    g->outlook = fini_take(a, g->outers * models, sizeof(double));
    g->todo = fini_take(a, g->outers * models, 1);
    g->done = fini_take(a, g->outers * models, 1);
    g->P = fini_take(a, g->n * models, sizeof(double));
    g->seconds = fini_take(a, models, sizeof(double));
    for (int k = 0; k < 6; k++)
        g->row[k] = fini_take(a, g->n, (size_t)g->width * sizeof(double));
    g->decision.weight = fini_take(a, models, sizeof(double));
    g->decision.w = fini_take(a, models * inner, sizeof(double));
}

/* ---- single models -------------------------------------------------------------------------------- */

static bool same_folds(const fin_fit_settings *a, const fin_fit_settings *b)
{
    return a->inner == b->inner && a->seed == b->seed && a->class_weights == b->class_weights;
}

/* With classes as they are inside. */
static fin_fit_settings asked_for(const family *g, int m)
{
    return fini_asked(&g->v->asked[m], g->swapped);
}

/* The candidates of a model, as places in g->model: count of them. */
static int places(family *g, int m, int *of)
{
    fin_fit_settings list[FINI_CANDIDATES], asked = asked_for(g, m);
    int count = fini_candidates(&asked, g->v->classes, list, FINI_CANDIDATES);
    for (int k = 0; k < count; k++)
        of[k] = fini_place(g->model, &g->models, &list[k]);
    return count;
}

static fin_status list_models(family *g, fin_error *err)
{
    const fini_nested *v = g->v;
    bool automatic = false;
    for (int m = 0; m < v->count; m++) {
        int of[FINI_CANDIDATES];
        if (!g->member[m])
            continue;
        int before = g->models, count = places(g, m, of);
        if (g->models > FINI_CANDIDATES)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "cross-validation of %d models: they are made of more than %d "
                             "different ones; compare fewer at a time",
                             v->count, FINI_CANDIDATES);
        bool nested = fini_is_nested(&v->asked[m], v->classes, v->bags->n, v->bags->d);
        bool shrinks = fini_shrinks(&v->asked[m], v->classes);
        for (int k = 0; k < count; k++) {
            bool version = shrinks && k > 0;
            g->nested[of[k]] |= nested && !version;
            g->only[of[k]] = version && (before <= of[k] || g->only[of[k]]);
        }
        automatic |= fini_chooses(&v->asked[m]) == FIN_CHOOSES_BEST && v->asked[m].assume == 0;
    }
    for (int k = 0; k < g->models && automatic; k++)
        g->nested[k] = !g->only[k];
    return FIN_OK;
}

/* ---- training sets ---------------------------------------------------------------------------------- */

static fini_inner inner_of(const family *g, int64_t o)
{
    int64_t at = o * g->n;
    return (fini_inner){.total = g->n,
                        .classes = g->v->classes,
                        .models = g->models,
                        .folds = g->inner[o],
                        .model = g->model,
                        .y = g->labels + at,
                        .learn = g->weights,
                        .omega = g->omega + at,
                        .order = g->order,
                        .fold = g->fold + at,
                        .group = g->v->bags->groups ? g->group + at : NULL,
                        .groups = g->groups[o],
                        .P = g->P};
}

static void learn_from(family *g, int64_t o)
{
    for (int64_t i = 0; i < g->n; i++)
        g->weights[i] = !g->test[o * g->n + i];
}

static fin_status open_outer(family *g, int64_t o, const fin_fit_settings *settings, bool nested,
                             fin_error *err)
{
    const fini_nested *v = g->v;
    const int32_t *fold = v->fold + o / v->folds * g->n;
    fin_error why = {FIN_OK, ""};
    for (int64_t i = 0; i < g->n; i++) {
        g->test[o * g->n + i] = fold[i] == o % v->folds;
        g->fold[o * g->n + i] = -1;
    }
    learn_from(g, o);
    g->fit[o] = (fin_fit){.classes = v->classes, .d = v->bags->d, .sharpness = 1};
    for (int64_t i = 0; i < g->n; i++)
        g->fit[o].bags += g->weights[i] > 0;
    g->size[o] = g->fit[o].bags;
    fin_status status = fini_fit_labels(&g->fit[o], v->bags, g->weights, fini_sum_alone,
                                        g->labels + o * g->n, &why);
    for (int64_t i = 0; i < g->n && g->fit[o].swapped != g->swapped; i++)
        g->labels[o * g->n + i] = 1 - g->labels[o * g->n + i];
    g->fit[o].swapped = g->swapped;
    if (!status && nested) {
        fini_inner in = inner_of(g, o);
        in.folds = 0;
        status = fini_inner_deal(&in, v->bags->groups, settings, &why);
        g->inner[o] = in.folds;
        g->groups[o] = in.groups;
    }
    if (status)
        return fini_fail(err, status, "with fold %d of repeat %d (from 0) left out: %.430s",
                         (int)(o % v->folds), (int)(o / v->folds), why.message);
    return FIN_OK;
}

/* ---- one model, one training set --------------------------------------------------------------------- */

/* Predictions for the test bags by what was decided. */
static void predict(family *g, const fini_choice *c, const fin_fit *fit, int64_t o, int asked)
{
    const fini_nested *v = g->v;
    int64_t n = g->n, w = g->width, k = 0;
    int parts = 0;
    double *mean = g->row[0], *variance = g->row[1], *sd = g->row[5], before = 0;
    fini_said said = {.mean = g->row[2], .spread = g->row[3], .within = g->row[4]};
    const unsigned char *test = g->test + o * n;
    memset(mean, 0, (size_t)(n * w) * sizeof *mean);
    memset(variance, 0, (size_t)(n * w) * sizeof *variance);
    memset(said.spread, 0, (size_t)(n * w) * sizeof *said.spread);
    for (int u = 0; u < g->models; u++) {
        int64_t at = (u * g->outers + o) * n;
        said.weight = c->decision.weight[u];
        if (!(said.weight > 0))
            continue;
        k = 0;
        parts++;
        for (int64_t i = 0; i < n; i++) {
            if (!test[i])
                continue;
            memcpy(said.mean + k * w, g->mean + (at + i) * w, (size_t)w * sizeof *mean);
            if (g->spread) {
                said.spread[k] = g->spread[at + i];
                said.within[k] = g->within[at + i];
                memcpy(g->own + 2 * k, g->ends + 2 * (at + i), 2 * sizeof *g->own);
            }
            k++;
        }
        said.noise = v->classes ? 0 : fini_choice_noise(c, u, g->noise[u * g->outers + o]);
        fini_add_part(fit, &said, before, k, mean, variance);
        before += said.weight;
    }
    double *ends = g->own ? g->own + 2 * n : NULL;
    fini_fit_outside_units(fit, k, mean, variance, sd);
    if (v->ends)
        fini_fit_ends(fit, k, 0.9, parts == 1 ? g->own : NULL, mean, sd, ends);
    int64_t to = ((int64_t)asked * v->repeats + o / v->folds) * n;
    k = 0;
    for (int64_t i = 0; i < n; i++) {
        if (!test[i])
            continue;
        memcpy(v->mean + (to + i) * w, mean + k * w, (size_t)w * sizeof *mean);
        if (v->sd)
            v->sd[to + i] = sd[k];
        if (v->ends)
            memcpy(v->ends + 2 * (to + i), ends + 2 * k, 2 * sizeof *ends);
        k++;
    }
}

/* Is model m an average in training set o? */
static bool is_shrunk(family *g, int m, int64_t o)
{
    int of[FINI_CANDIDATES];
    fin_fit_settings asked = asked_for(g, m);
    if (!g->member[m] || !fini_shrinks(&asked, g->v->classes))
        return false;
    places(g, m, of);
    return !(g->outlook[of[0] * g->outers + o] < FINI_SETTLED);
}

static fin_status one_model(family *g, fini_choice *c, int64_t o, int asked, fin_error *err)
{
    const fini_nested *v = g->v;
    fin_fit fit = g->fit[o];
    fin_error why = {FIN_OK, ""};
    c->asked = asked_for(g, asked);
    c->count = places(g, asked, c->of);
    c->shrinks = is_shrunk(g, asked, o);
    c->count = fini_shrinks(&c->asked, v->classes) && !c->shrinks ? 1 : c->count;
    if (fini_chooses(&c->asked) == FIN_CHOOSES_BEST && c->asked.assume == 0)
        for (int u = 0; u < g->models; u++) {
            bool there = g->only[u];
            for (int k = 0; k < c->count; k++)
                there |= c->of[k] == u;
            if (!there && c->count < FINI_CANDIDATES)
                c->of[c->count++] = u;
        }
    c->in = inner_of(g, o);
    bool nested = c->shrinks || fini_is_nested(&c->asked, v->classes, fit.bags, v->bags->d);
    fin_status status =
        c->in.folds && nested ? fini_choice_decide(c, &fit, &why) : fini_choice_skip(c, &fit, &why);
    if (status)
        return fini_fail(err, status, "with fold %d of repeat %d (from 0) left out: %.430s",
                         (int)(o % v->folds), (int)(o / v->folds), why.message);
    if (!(c->in.folds && nested))
        fit.sharpness = fini_choice_sharpness(c, g->noise[c->of[0] * g->outers + o]);
    predict(g, c, &fit, o, asked);
    return FIN_OK;
}

/* Out-of-fold predictions of all single models inside training set o: g->P. */
static void gather_inner(family *g, int64_t o)
{
    for (int u = 0; u < g->models; u++)
        for (int64_t i = 0; i < g->n; i++) {
            const double *p = g->mean + ((u * g->outers + o) * g->n + i) * g->width;
            int64_t at = o * g->n + i;
            bool left = g->fold[at] >= 0 && !g->test[at];
            g->P[u * g->n + i] = !left ? 0 : g->v->classes ? p[(int64_t)g->labels[at]] : p[0];
        }
}

static fin_status decide_all(family *g, fin_error *err)
{
    const fini_nested *v = g->v;
    FINI_OWN(err, "choosing a model", fini_choice, c, 1, 1);
    for (int64_t o = 0; o < g->outers; o++) {
        *c = (fini_choice){.bags = v->bags,
                           .labels = g->labels + o * g->n,
                           .width = g->width,
                           .decision = g->decision,
                           .out = g->mean + o * g->n * g->width,
                           .stride = g->outers * g->n * g->width,
                           .mix = g->row[0],
                           .own = g->row[1],
                           .loss = g->row[2],
                           .locator = -1};
        memcpy(c->model, g->model, (size_t)g->models * sizeof *c->model);
        learn_from(g, o);
        gather_inner(g, o);
        for (int m = 0; m < v->count; m++)
            if (g->member[m])
                FINI_TRY(one_model(g, c, o, m, err));
    }
    return FIN_OK;
}

/* Processor time of a model: that of the single ones it looks at. */
static void add_seconds(family *g)
{
    for (int m = 0; m < g->v->count; m++) {
        int of[FINI_CANDIDATES], count = g->member[m] ? places(g, m, of) : 0;
        for (int k = 0; k < count; k++)
            g->v->seconds[m] += g->seconds[of[k]];
    }
}

static void open_slots(family *g)
{
    int64_t slots = (int64_t)g->models * g->outers * g->n;
    for (int64_t i = 0; i < slots * g->width; i++)
        g->mean[i] = NAN;
    for (int64_t i = 0; i < slots && g->spread; i++)
        g->spread[i] = g->within[i] = g->ends[2 * i] = g->ends[2 * i + 1] = NAN;
    for (int u = 0; u < g->models; u++)
        g->seconds[u] = 0;
}

/* What is wanted of all models; and then, where some shrink that are not settled, what these want. */
static void list_all(family *g)
{
    for (int u = 0; u < g->models; u++)
        for (int64_t o = 0; o < g->outers; o++)
            g->done[u * g->outers + o] = g->todo[u * g->outers + o] = g->only[u] ? 0
                                                                      : g->nested[u]
                                                                          ? FINI_WHOLE | FINI_INNER
                                                                          : FINI_WHOLE;
}

static bool list_shrunk(family *g)
{
    bool some = false;
    memset(g->todo, 0, (size_t)(g->models * g->outers));
    for (int m = 0; m < g->v->count; m++)
        for (int64_t o = 0; o < g->outers; o++) {
            int of[FINI_CANDIDATES], count = is_shrunk(g, m, o) ? places(g, m, of) : 0;
            for (int k = 0; k < count; k++) {
                int64_t at = of[k] * g->outers + o;
                g->todo[at] = (FINI_WHOLE | FINI_INNER) & ~g->done[at];
                some |= g->todo[at];
            }
        }
    return some;
}

static fin_status run_family(family *g, const fin_fit_settings *settings,
                             const fin_progress *progress, fin_error *err)
{
    const fini_nested *v = g->v;
    fini_arena arena = {0};
    bool nested = false;
    fin_status status = list_models(g, err);
    if (status)
        return status;
    FINI_LAY_OUT(err, &arena, "cross-validation", layout(&arena, g, settings->inner));
    for (int u = 0; u < g->models; u++)
        nested |= g->nested[u];
    for (int m = 0; m < v->count; m++)
        nested |= g->member[m] && fini_shrinks(&v->asked[m], v->classes);
    if (nested)
        status = fini_bags_hash(v->bags, NULL, true, NULL, g->order, err);
    for (int64_t o = 0; o < g->outers && !status; o++)
        status = open_outer(g, o, settings, nested, err);
    fini_crossing crossing = {.bags = v->bags,
                              .classes = v->classes,
                              .models = g->models,
                              .outers = (int)g->outers,
                              .model = g->model,
                              .todo = g->todo,
                              .test = g->test,
                              .size = g->size,
                              .inner = g->inner,
                              .fold = g->fold,
                              .labels = g->labels,
                              .folds = v->folds,
                              .what = "cross-validation",
                              .mean = g->mean,
                              .spread = g->spread,
                              .within = g->within,
                              .ends = g->ends,
                              .noise = g->noise,
                              .outlook = g->outlook,
                              .seconds = g->seconds};
    open_slots(g);
    list_all(g);
    if (!status)
        status = fini_cross(&crossing, progress, err);
    if (!status && list_shrunk(g))
        status = fini_cross(&crossing, progress, err);
    if (!status)
        status = decide_all(g, err);
    if (!status)
        add_seconds(g);
    fini_arena_close(&arena);
    return status;
}

fin_status fini_nested_run(const fini_nested *v, const fin_progress *progress, fin_error *err)
{
    FINI_FREED family *g = fini_alloc(sizeof *g);
    FINI_FREED bool *member = fini_alloc_array(v->count, 2 * sizeof *member);
    bool *done = member + v->count;
    if (!g || !member)
        return fini_fail_memory(err, sizeof *g, "cross-validation");
    for (int m = 0; m < v->count; m++) {
        done[m] = false;
        v->seconds[m] = 0;
    }
    for (int first = 0; first < v->count; first++) {
        if (done[first])
            continue;
        *g = (family){.v = v,
                      .n = v->bags->n,
                      .width = v->classes ? v->classes : 1,
                      .outers = (int64_t)v->repeats * v->folds,
                      .member = member,
                      .swapped = v->classes == 2 && v->bags->labels[0] == 1};
        for (int m = 0; m < v->count; m++) {
            member[m] = !done[m] && same_folds(&v->asked[m], &v->asked[first]);
            done[m] |= member[m];
        }
        FINI_TRY(run_family(g, &v->asked[first], progress, err));
    }
    return FIN_OK;
}
