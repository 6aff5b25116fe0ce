/* Candidates, and a decision from out-of-fold predictions: which of them, or what average of them.
 *
 *     stack   weights on the simplex with the least out-of-fold loss (weights.c), of the best
 *             candidate and of the strong kinds that are not clearly worse (by more than two standard
 *             errors of the paired difference)
 *     auto    the first candidate, in order of preference, whose mean loss is within one standard error
 *             (of the best one's loss) of the least. The stack is a candidate too, and the first; its
 *             loss in a fold is that of weights found without this fold.
 *     any     the side, if it is not given: the one with the smaller loss
 *     numbers the model with its own penalties, with each of some stronger ones, and the mean of the
 *             labels, averaged as a stack is; choose.c has it be the mean alone unless that is clearly worse
 *
 * The loss is the log loss, or squared error: accuracies of a few hundred bags tell good models from each
 * other no better than coins. Standard errors are over groups of bags, where there are groups. */
#include "bags/judge.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* ---- candidates: of `auto`, of a stack, and the single models behind any model asked for ---------- */

int fini_chooses(const fin_fit_settings *s)
{
    return fini_bag_model_of(s->model)->is.chooses;
}

/* Statistics are seen in the space of a kernel always. */
bool fini_has_features(const fin_fit_settings *s)
{
    return fini_bag_model_of(s->model)->statistics == FINI_STATISTICS ||
           s->basis > FIN_BASIS_LINEAR;
}

/* Who assumes that models are monotone speaks of a positive class: it is 1 unless he says otherwise. */
fin_fit_settings fini_asked(const fin_fit_settings *settings, bool swapped)
{
    fin_fit_settings asked = *settings;
    if (asked.assume == 1 && fin_is_auto((double)asked.positive))
        asked.positive = 1;
    if (swapped && !fin_is_auto((double)asked.positive))
        asked.positive = 1 - asked.positive;
    return asked;
}

/* side may be NULL. */
int fini_sides(const fin_fit_settings *s, int64_t classes, fin_fit_settings *side)
{
    bool both =
        fini_bag_model_of(s->model)->is.sides && classes == 2 && fin_is_auto((double)s->positive);
    for (int k = 0; k <= both && side; k++) {
        side[k] = *s;
        if (both)
            side[k].positive = 1 - k;
        fini_single(&side[k], classes);
    }
    return 1 + both;
}

/* The model in this place of the order of preference, and its basis. Every model that a report compares
 * by itself can be chosen. */
static const fini_bag_model *preferred(int place, fin_fit_settings *s)
{
    const fini_bag_model *model;
    for (s->model = 0; (model = fini_bag_model_of(s->model)); s->model++)
        if (model->preferred == place || model->preferred_both == place) {
            s->basis = model->preferred == place ? FIN_BASIS_LINEAR : FIN_BASIS_BOTH;
            break;
        }
    return model;
}

/* Models that see tokens through another basis than the caller's are left out, if he has one. */
int fin_fit_candidates(const fin_fit_settings *base, int64_t classes, fin_fit_settings *models,
                       int room)
{
    base = fini_or_defaults(&fin_fit_table, base, &(fin_fit_settings){0});
    int count = 0;
    const fini_bag_model *model;
    fin_fit_settings s = fini_asked(base, false), side[2];
    for (int place = 1; (model = preferred(place, &s)); place++) {
        if ((model->is.sides && classes != 2) || (base->assume == 1 && !model->monotone) ||
            (!model->is.whole && base->basis != FIN_BASIS_AUTO && base->basis != s.basis))
            continue;
        for (int i = 0, both = fini_sides(&s, classes, side); i < both; i++, count++)
            if (models && count < room)
                models[count] = side[i];
    }
    return count;
}

int fin_fit_baselines(const fin_fit_settings *base, fin_fit_settings *models, int room)
{
    base = fini_or_defaults(&fin_fit_table, base, &(fin_fit_settings){0});
    int count = 0;
    const fini_bag_model *model;
    for (int place = 1, m; place == count + 1; place++)
        for (m = 0; (model = fini_bag_model_of(m)); m++)
            if (model->compared == place && count++ < room && models) {
                models[place - 1] = *base;
                models[place - 1].model = m;
            }
    return count;
}

void fini_single(fin_fit_settings *s, int64_t classes)
{
    const fin_fit_model *model = fin_fit_model_get(s);
    s->basis = model->constant ? FIN_BASIS_LINEAR : fin_fit_basis(s, classes);
    s->calibrate = s->assume = s->locator = 0;
    s->heads = model->heads ? s->heads : 1;
    if (!model->sides)
        s->positive = FIN_AUTO_INT;
}

bool fini_shrinks(const fin_fit_settings *s, int64_t classes)
{
    const fini_bag_model *model = fini_bag_model_of(s->model);
    return classes == 0 && model->form && !model->is.constant && !model->calibrated &&
           s->calibrate != 1 && fin_is_auto(s->penalty);
}

/* With one or two bags a parameter the best penalty is far above those of the usual grid, where every member
 * goes through the labels. Models with strong penalties of their own need no others. */
static const double stronger[] = {1, 3, 10};

/* The model, with stronger penalties, and the mean: count of them. */
static int versions_of(const fin_fit_settings *s, fin_fit_settings *version)
{
    int count = 1;
    version[0] = *s;
    for (size_t k = 0; k < sizeof stronger / sizeof *stronger; k++)
        if (!fini_bag_model_of(s->model)->penalties) {
            version[count] = *s;
            version[count++].penalty = stronger[k];
        }
    version[count] = *s;
    version[count++].model = FIN_MODEL_BASE;
    for (int k = 0; k < count; k++)
        fini_single(&version[k], 0);
    return count;
}

double fini_outlook(const fini_part *part, double bags)
{
    const fini_bag_form *form = part->form;
    const fini_map *map = &part->map;
    int64_t q = form->keys(&part->shape) + form->values(&part->shape);
    int64_t left_out = map->linear == map->s ? map->s - map->used : 0;
    double cost = 2 * (double)(part->parameters - q * left_out);
    return cost < bags ? part->loss * (bags + cost) / (bags - cost) : INFINITY;
}

int fini_candidates(const fin_fit_settings *asked, int64_t classes, fin_fit_settings *model,
                    int room)
{
    fin_fit_settings own[2 + sizeof stronger / sizeof *stronger];
    if (fini_chooses(asked))
        return fin_fit_candidates(asked, classes, model, room);
    int count =
        fini_shrinks(asked, classes) ? versions_of(asked, own) : fini_sides(asked, classes, own);
    for (int k = 0; k < count && k < room; k++)
        model[k] = own[k];
    return count;
}

bool fini_same(const fin_fit_settings *a, const fin_fit_settings *b)
{
    for (int i = 0; i < fin_fit_table.count; i++) {
        const fin_field *field = &fin_fit_table.fields[i];
        if (fin_settings_get(field, a) != fin_settings_get(field, b))
            return false;
    }
    return true;
}

int fini_place(fin_fit_settings *list, int *count, const fin_fit_settings *model)
{
    for (int k = 0; k < *count; k++)
        if (fini_same(&list[k], model))
            return k;
    list[*count] = *model;
    return (*count)++;
}

/* ---- the desk on which it is decided --------------------------------------------------------------- */

/* A part with less weight than this is not worth its time. */
static const double least_weight = 0.01;
/* Bags' worth of belief that all candidates are equally good. */
static const double prior = 10;
static const double prior_shrinks = 2; /* one and the same model: less is to be known */

typedef struct desk {
    const fini_inner *in;
    int count;
    const int *of; /* (count) candidates, in order of preference */
    bool monotone;
    bool shrinks;
    bool *in_stack;     /* (count) */
    double *P;          /* (count + 1, total): of the candidates; then the stack's */
    double *weight, *w; /* (count), (folds, count): of those in the stack */
    double *left;       /* (total): omega without a fold */
    double *some;       /* (count) */
    double *sum;        /* (groups) */
} desk;

static void layout(fini_arena *a, desk *d)
{
    d->in_stack = fini_take(a, d->count, sizeof *d->in_stack);
    d->P = fini_take(a, d->in->total, (size_t)(d->count + 1) * sizeof *d->P);
    d->weight = fini_take(a, d->count, sizeof *d->weight);
    d->w = fini_take(a, (int64_t)d->count * d->in->folds, sizeof *d->w);
    d->left = fini_take(a, d->in->total, sizeof *d->left);
    d->some = fini_take(a, d->count, sizeof *d->some);
    d->sum = fini_take(a, d->in->groups + 1, sizeof *d->sum);
}

/* ---- losses ------------------------------------------------------------------------------------- */

static double loss_of(const fini_inner *in, const double *P, int64_t i)
{
    double gap = P[i] - in->y[i];
    return in->classes ? -log(P[i] < DBL_EPSILON ? DBL_EPSILON : P[i]) : gap * gap;
}

/* Weighted mean over bags of each[i], or of the loss of P, less that of Q if it is not NULL; and its
 * standard error. sum: (groups). */
static double mean_of(const fini_inner *in, const double *each, const double *P, const double *Q,
                      double *sum, double *se)
{
    double mean = 0, total = 0, squares = 0, of_weights = 0;
    for (int pass = 0; pass < 1 + (se != NULL); pass++) {
        for (int64_t g = 0; g < in->groups && pass; g++)
            sum[g] = 0;
        for (int64_t i = 0; i < in->total; i++) {
            if (!(in->omega[i] > 0))
                continue;
            double value = each ? each[i] : loss_of(in, P, i) - (Q ? loss_of(in, Q, i) : 0);
            double gap = in->omega[i] * (value - mean);
            if (pass == 0) {
                mean += in->omega[i] / (total += in->omega[i]) * (value - mean);
            } else {
                if (in->group)
                    sum[in->group[i]] += gap;
                else
                    squares += gap * gap;
                of_weights += in->omega[i] * in->omega[i];
            }
        }
    }
    if (!se)
        return mean;
    for (int64_t g = 0; g < in->groups; g++)
        squares += sum[g] * sum[g];
    double effective = in->groups ? (double)in->groups : total * total / of_weights;
    *se = effective > 1 ? sqrt(squares / (total * total) * effective / (effective - 1)) : 0;
    return mean;
}

static double mean_loss(const fini_inner *in, const double *P, const double *Q, double *sum,
                        double *se)
{
    return mean_of(in, NULL, P, Q, sum, se);
}

double fini_inner_loss(const fini_inner *in, int m)
{
    return mean_loss(in, in->P + m * in->total, NULL, NULL, NULL);
}

/* What a guess by the shares of the classes, or the mean, of the bags outside of the fold would lose. */
static void guess(const fini_inner *in, double *share, double *each)
{
    for (int f = 0; f < in->folds; f++) {
        double weight = 0, mean = 0;
        memset(share, 0, (size_t)(in->classes + 1) * sizeof *share);
        for (int64_t i = 0; i < in->total; i++)
            if (in->learn[i] > 0 && in->fold[i] != f) {
                weight += in->learn[i];
                mean += in->learn[i] * in->y[i];
                share[in->classes ? (int64_t)in->y[i] : 0] += in->learn[i];
            }
        for (int64_t i = 0; i < in->total; i++) {
            if (!(in->omega[i] > 0) || in->fold[i] != f)
                continue;
            double p = in->classes ? share[(int64_t)in->y[i]] / weight : 1;
            double gap = in->y[i] - mean / weight;
            each[i] = in->classes ? -log(p < DBL_EPSILON ? DBL_EPSILON : p) : gap * gap;
        }
    }
}

fin_status fini_inner_base(const fini_inner *in, const double *loss, double *base, double *gain,
                           double *se, fin_error *err)
{
    FINI_OWN(err, "the base rate", double, share, in->classes + 1, 1);
    FINI_OWN(err, "the base rate", double, each, in->total, 1);
    FINI_OWN(err, "the base rate", double, sum, in->groups + 1, 1);
    guess(in, share, each);
    *base = mean_of(in, each, NULL, NULL, NULL, NULL);
    for (int64_t i = 0; i < in->total; i++)
        each[i] = in->omega[i] > 0 ? each[i] - loss[i] : 0;
    *gain = mean_of(in, each, NULL, NULL, sum, se);
    return FIN_OK;
}

/* ---- the stack ------------------------------------------------------------------------------------ */

static int best_of(const desk *d)
{
    int best = 0;
    double least = INFINITY;
    for (int k = 0; k < d->count; k++) {
        double loss = mean_loss(d->in, d->P + k * d->in->total, NULL, NULL, NULL);
        if (loss < least) {
            least = loss;
            best = k;
        }
    }
    return best;
}

/* Simple kinds seldom add to an average of the others, and with few bags their weights are noise. */
static bool is_strong(const fin_fit_settings *s, bool monotone)
{
    const fini_bag_model *model = fini_bag_model_of(s->model);
    return model->strong || (model->strong_both && (monotone || s->basis > FIN_BASIS_LINEAR));
}

static void leave_worse_out(desk *d)
{
    int first = best_of(d);
    const double *best = d->P + first * d->in->total;
    for (int k = 0; k < d->count; k++) {
        double se, worse = mean_loss(d->in, d->P + k * d->in->total, best, d->sum, &se);
        d->in_stack[k] =
            k == first ||
            ((d->shrinks || is_strong(&d->in->model[d->of[k]], d->monotone)) && !(worse > 2 * se));
    }
}

/* Weights of those in the stack, by bags with weights omega; 0 for the others. */
static fin_status weigh(desk *d, const double *omega, double *w, fin_error *err)
{
    const fini_inner *in = d->in;
    int count = 0;
    FINI_OWN(err, "a stack", double, P, (int64_t)d->count * in->total, 1);
    for (int k = 0; k < d->count; k++)
        if (d->in_stack[k])
            memcpy(P + count++ * in->total, d->P + k * in->total, (size_t)in->total * sizeof *P);
    FINI_TRY(fini_weights(count, in->total, P, in->classes ? NULL : in->y, omega,
                          d->shrinks ? prior_shrinks : prior, d->some, err));
    for (int k = 0, at = 0; k < d->count; k++)
        w[k] = d->in_stack[k] ? d->some[at++] : 0;
    return FIN_OK;
}

/* The stack's predictions, with weights found without the fold of the bag. */
static fin_status predict_stack(desk *d, fin_error *err)
{
    const fini_inner *in = d->in;
    double *stack = d->P + d->count * in->total;
    leave_worse_out(d);
    for (int f = 0; f < in->folds; f++) {
        double *w = d->w + (int64_t)f * d->count;
        for (int64_t i = 0; i < in->total; i++)
            d->left[i] = in->fold[i] == f ? 0 : in->omega[i];
        FINI_TRY(weigh(d, d->left, w, err));
        for (int64_t i = 0; i < in->total; i++) {
            if (in->fold[i] != f)
                continue;
            stack[i] = 0;
            for (int k = 0; k < d->count; k++)
                stack[i] += w[k] > 0 ? w[k] * d->P[k * in->total + i] : 0;
        }
    }
    return weigh(d, in->omega, d->weight, err);
}

/* ---- the decision --------------------------------------------------------------------------------- */

/* Number `count` is the stack, and comes first in the order of preference. */
static int prefer(const desk *d)
{
    const int64_t total = d->in->total;
    double least = INFINITY, se = 0, own;
    for (int k = 0; k <= d->count; k++) {
        double loss = mean_loss(d->in, d->P + k * total, NULL, d->sum, &own);
        se = loss < least ? own : se;
        least = fmin(loss, least);
    }
    int k = 0;
    if (mean_loss(d->in, d->P + d->count * total, NULL, NULL, NULL) <= least + se)
        return d->count;
    while (k < d->count - 1 &&
           !(mean_loss(d->in, d->P + k * total, NULL, NULL, NULL) <= least + se))
        k++;
    return k;
}

/* What was chosen, as weights of all models, with and without each fold; the least ones are dropped. */
static void write_down(const desk *d, int chosen, fini_decision *out)
{
    const fini_inner *in = d->in;
    double sum = 0;
    for (int m = 0; m < in->models; m++)
        out->weight[m] = 0;
    for (int64_t k = 0; k < (int64_t)in->folds * in->models; k++)
        out->w[k] = 0;
    for (int k = 0; k < d->count; k++) {
        double w = chosen < d->count ? k == chosen : d->weight[k];
        w = chosen == d->count && w < fmin(least_weight, 0.5 / d->count) ? 0 : w;
        out->weight[d->of[k]] = w;
        sum += w;
        for (int f = 0; f < in->folds; f++)
            out->w[(int64_t)f * in->models + d->of[k]] =
                chosen < d->count ? k == chosen : d->w[(int64_t)f * d->count + k];
    }
    for (int m = 0; m < in->models; m++)
        out->weight[m] /= sum;
}

static fin_status decide(desk *d, int chooses, fini_decision *out, fin_error *err)
{
    int64_t total = d->in->total;
    for (int k = 0; k < d->count; k++)
        memcpy(d->P + k * total, d->in->P + d->of[k] * total, (size_t)total * sizeof *d->P);
    bool average = chooses || d->shrinks;
    FINI_TRY(average ? predict_stack(d, err) : FIN_OK);
    write_down(d, chooses == FIN_CHOOSES_BEST ? prefer(d) : average ? d->count : best_of(d), out);
    return FIN_OK;
}

fin_status fini_decide(const fini_inner *in, const fin_fit_settings *asked, int count,
                       const int *of, fini_decision *out, fin_error *err)
{
    FINI_AT_END(fini_arena_close) fini_arena arena = {0};
    desk d = {.in = in,
              .count = count,
              .of = of,
              .monotone = asked->assume == 1,
              .shrinks = count > 1 && fini_shrinks(asked, in->classes)};
    FINI_LAY_OUT(err, &arena, "choosing a model", layout(&arena, &d));
    return decide(&d, fini_chooses(asked), out, err);
}
