/* After the penalised minimum: keys from the posterior location, and gains.
 *
 * Labels say little about a key once it finds the token most of the time: where softmax is
 * saturated its slope is 0. The tokens say more. Given the label, r_l = P(J = l | X, y) is nearly
 * known, and the key that tells such tokens from others is Fisher's discriminant, S^-1 (m_1 - m_0),
 * with m_1 and m_0 the means of tokens weighted by r and by 1 - r, and S the covariance within. It
 * is exact if both are Gaussian with one covariance, as in single-location regression. The same
 * direction comes from least squares,
 *
 *     minimise  sum_i sum_l (k.phi_il + c - r_il)^2 / 2 + |k|^2 / 2
 *
 * (Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, exercise 4.2), which
 * needs no p x p matrix, only passes over the tokens: a form with one more score than the model's
 * own, as in em.c. Then values are fitted again with keys held, and gains. Twice.
 *
 * Where tokens are not like that the key is worse than the one that was fitted. So both are
 * compared by Akaike's criterion, corrected for few bags (Hurvich and Tsai 1989): the fitted key
 * has used p degrees of freedom more. The likelihood is the mixture's, for attention too, with the
 * same key and value: squared errors of attention are large for the few bags whose location was
 * missed, and a key that was fitted to these says nothing about others. The setting `gate` can
 * decide instead: never a new key, or always one, then for classes and few bags too, where gains
 * are left as they are. */
#include "bags/descend.h"

#include <math.h>
#include <string.h>

static const double flat = 1e-7; /* relative decrease at which a search ends */

/* ---- gains ---------------------------------------------------------------------------------- */

/* Gains: after a penalised fit, how far to go along the directions that it found.
 *
 * A penalty that is strong enough to find the direction of a key shrinks its length far below what
 * the data ask for, and the location is then too unsure of itself (an expected calibration error of
 * 0.1 and more, and twice the risk, on simulated data). A weaker penalty has the length right and
 * the direction wrong. So directions are kept and lengths are fitted again, without penalty:
 *
 *     minimise the mean loss over  c_k, c_v, extras    at    (c_k keys, c_v values, extras)
 *
 * (the relaxed lasso's idea, Meinshausen 2007, for a ridge). With two gains and few extras that
 * cannot overfit by itself, but the directions have seen the labels too: not for bags that are few
 * beside the columns. Gains are
 *
 *     c = exp(M tanh(t / M)),    M = log 16:
 *
 * where a key separates the training bags there is no best gain, only an infinite one. */

enum { GAIN_STEPS = 40 };
static const double most = 2.772588722239781, small = 1e-4;

typedef struct relax {
    fini_arena arena;
    fini_lbfgs search;
    fini_risk *risk;
    int64_t n, keys, values, extras; /* parameters, in this order */
    double *from, *x, *slope;        /* (n) */
    double *t;                       /* (2 + extras) t_k, t_v, extras */
} relax;

static void layout_relax(relax *o)
{
    o->t = fini_take(&o->arena, 2 + o->extras, sizeof(double));
    o->from = fini_take(&o->arena, o->n, sizeof(double));
    o->x = fini_take(&o->arena, o->n, sizeof(double));
    o->slope = fini_take(&o->arena, o->n, sizeof(double));
}

/* o->x = the parameters that t and extras stand for. */
static void stretch(relax *o, const double *t)
{
    double key = exp(most * tanh(t[0] / most)), value = exp(most * tanh(t[1] / most));
    for (int64_t j = 0; j < o->keys + o->values; j++)
        o->x[j] = (j < o->keys ? key : value) * o->from[j];
    memcpy(o->x + o->keys + o->values, t + 2, (size_t)o->extras * sizeof(double));
}

/* dloss/dt = (slope . x) dlog c / dt,   dlog c / dt = 1 - tanh(t / M)^2. */
static fin_status risk_at(void *user, const double *t, double *value, double *slope, fin_error *err)
{
    relax *o = user;
    stretch(o, t);
    FINI_TRY(fini_risk_value(o->risk, o->x, value, o->slope, err));
    double along[2] = {0, 0};
    for (int64_t j = 0; j < o->keys + o->values; j++)
        along[j >= o->keys] += o->slope[j] * o->x[j];
    for (int i = 0; i < 2; i++) {
        double bent = tanh(t[i] / most);
        slope[i] = along[i] * (1 - bent * bent);
    }
    memcpy(slope + 2, o->slope + o->keys + o->values, (size_t)o->extras * sizeof(double));
    return FIN_OK;
}

static fin_status run_relax(relax *o, double *parameters, double *loss, fin_error *err)
{
    memcpy(o->from, parameters, (size_t)o->n * sizeof(double));
    memcpy(o->t + 2, parameters + o->keys + o->values, (size_t)o->extras * sizeof(double));
    FINI_TRY(fini_lbfgs_run(&o->search, o->t, err));
    stretch(o, o->t);
    memcpy(parameters, o->x, (size_t)o->n * sizeof(double));
    *loss = o->search.value;
    return FIN_OK;
}

static fin_status open_relax(relax *o, fin_error *err)
{
    FINI_LAY_OUT(err, &o->arena, "gains", layout_relax(o));
    FINI_TRY(fini_lbfgs_create(&o->search, 2 + o->extras, err));
    o->search.iterations = GAIN_STEPS;
    o->search.gradient = small;
    o->search.decrease = flat;
    o->search.function = risk_at;
    o->search.user = o;
    return FIN_OK;
}

fin_status fini_relax(fini_risk *risk, const fini_bag_form *form, const fini_bag_shape *shape,
                      double *parameters, double *loss, fin_error *err)
{
    relax o = {.risk = risk, .n = fini_risk_parameters(risk), .extras = form->extras(shape)};
    int64_t scores = form->keys(shape) + form->values(shape), p = (o.n - o.extras) / scores;
    o.keys = form->keys(shape) * p;
    o.values = form->values(shape) * p;
    fin_status status = open_relax(&o, err);
    if (!status)
        status = run_relax(&o, parameters, loss, err);
    fini_lbfgs_close(&o.search);
    fini_arena_close(&o.arena);
    return status;
}

/* ---- least squares as a form ---------------------------------------------------------------- */

/* The regression's form: one score more than the model's, which are values here. A row of U: the new
 * score, then the model's. Extras: c, the model's, sigma^2. */
static int64_t all_scores(const fini_bag_shape *shape)
{
    const fini_bag_form *model = shape->form->of;
    return model->keys(shape) + model->values(shape);
}

static int64_t more_extras(const fini_bag_shape *shape)
{
    return 2 + shape->form->of->extras(shape);
}

static int64_t more_scratch(const fini_bag_shape *shape)
{
    return shape->longest * (1 + all_scores(shape)) + shape->form->of->scratch(shape);
}

static double regress(const fini_bag *bag, double y, double *dU, double *dextra)
{
    const fini_bag_form *model = bag->shape->form->of;
    int64_t q = all_scores(bag->shape), stride = 1 + q, L = bag->L;
    double *own = bag->scratch, *r = own + L * q, *room = r + L, value = 0, c = bag->extra[0];
    fini_bag_shape shape = *bag->shape;
    shape.form = model;
    for (int64_t l = 0; l < L; l++)
        memcpy(own + l * q, bag->U + l * stride + 1, (size_t)q * sizeof *own);
    const fini_bag seen = {&shape, bag->extra + 1, L, own, room, bag->cancel};
    model->locate(&seen, &y, bag->extra[1 + model->extras(&shape)], r);
    memset(dU, 0, (size_t)(L * stride) * sizeof *dU);
    for (int64_t l = 0; l < L; l++) {
        double rest = bag->U[l * stride] + c - r[l];
        value += 0.5 * rest * rest;
        dU[l * stride] = rest;
        dextra[0] += rest;
    }
    return value;
}

/* ---- two searches --------------------------------------------------------------------------- */

enum { ROUNDS = 2, STEPS = 30 };
static const double steep = 1e-3;

typedef struct polish {
    fini_arena arena;
    fini_risk *risk, *regression, *judge;
    const fini_bag_form *form;
    fini_bag_form helper; /* of the regression */
    const fini_bag_shape *shape;
    bool gains;                 /* numbers, and enough bags for gains to be fitted again */
    bool squares;               /* the loss is a squared error, not a log likelihood */
    double penalty, noise;      /* of values, against a log likelihood; what makes the loss one */
    int64_t n, p, used, extras; /* parameters; columns; those not left out; extras of the model */
    double bags;                /* with weight */
    fini_lbfgs key_search, value_search;
    double *key;               /* (p + 1) the new key, c */
    double *x;                 /* (n) the model's parameters with it */
    double *wide, *wide_slope; /* (n + p + 2) parameters of the regression */
    double *trial;             /* (n + 1) of the mixture */
} polish;

static void layout(polish *o)
{
    o->key = fini_take(&o->arena, o->p + 1, sizeof(double));
    o->x = fini_take(&o->arena, o->n, sizeof(double));
    o->wide = fini_take(&o->arena, o->n + o->p + 2, sizeof(double));
    o->wide_slope = fini_take(&o->arena, o->n + o->p + 2, sizeof(double));
    o->trial = fini_take(&o->arena, o->n + 1, sizeof(double));
}

/* The regression's parameters are key, W, c, extras, sigma^2; all but key and c are in place. A
 * penalty of 1 on the sum is 1 / bags on the mean. */
static fin_status key_at(void *user, const double *x, double *value, double *slope, fin_error *err)
{
    polish *o = user;
    int64_t at = o->p + o->n - o->extras;
    memcpy(o->wide, x, (size_t)o->p * sizeof *x);
    o->wide[at] = x[o->p];
    FINI_TRY(fini_risk_value(o->regression, o->wide, value, o->wide_slope, err));
    for (int64_t j = 0; j < o->p; j++) {
        *value += 0.5 * x[j] * x[j] / o->bags;
        slope[j] = o->wide_slope[j] + x[j] / o->bags;
    }
    slope[o->p] = o->wide_slope[at];
    return FIN_OK;
}

static fin_status value_at(void *user, const double *x, double *value, double *slope,
                           fin_error *err)
{
    polish *o = user;
    FINI_TRY(fini_risk_value(o->risk, x, value, slope, err));
    memset(slope, 0, (size_t)o->p * sizeof *slope);
    for (int64_t j = o->p; j < o->n - o->extras; j++) {
        *value += 0.5 * o->penalty * o->noise * x[j] * x[j];
        slope[j] += o->penalty * o->noise * x[j];
    }
    return FIN_OK;
}

/* ---- one round ------------------------------------------------------------------------------ */

static double length(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += x[j] * x[j];
    return sqrt(sum);
}

/* Gains where they are fitted again, and the loss. */
static fin_status gain(polish *o, double *x, double *loss, fin_error *err)
{
    if (o->gains)
        return fini_relax(o->risk, o->form, o->shape, x, loss, err);
    return fini_risk_value(o->risk, x, loss, NULL, err);
}

/* A new key from where o->x is, as long as the old one; then values, then gains. */
static fin_status round_of(polish *o, double *loss, fin_error *err)
{
    int64_t weights = o->n - o->extras;
    double *x = o->x;
    memcpy(o->wide + o->p, x, (size_t)weights * sizeof *x);
    memcpy(o->wide + o->p + weights + 1, x + weights, (size_t)o->extras * sizeof *x);
    double variance = fmax(2 * *loss, FINI_SIGMA_LEAST * FINI_SIGMA_LEAST);
    o->wide[o->n + o->p + 1] = variance;
    o->noise = o->squares ? variance : 1;
    memset(o->key, 0, (size_t)(o->p + 1) * sizeof *x);
    fin_status status = fini_lbfgs_run(&o->key_search, o->key, err);
    double size = length(o->p, x), found = length(o->p, o->key);
    if (status || !(found > 0) || !(size > 0))
        return status;
    for (int64_t j = 0; j < o->p; j++)
        x[j] = o->key[j] * (size / found);
    FINI_TRY(fini_lbfgs_run(&o->value_search, x, err));
    return gain(o, x, loss, err);
}

/* ---- which key ------------------------------------------------------------------------------- */

/* Akaike's criterion of parameters whose loss is `loss`: twice the mixture's, and the charge. The
 * gains of attention become those that the mixture prefers: the location is then calibrated, and
 * the prediction with it, where squared errors would have it too sure of itself. */
static fin_status criterion(polish *o, double *x, double loss, double degrees, double *value,
                            fin_error *err)
{
    fin_status status = FIN_OK;
    if (o->judge) { /* attention: key, value, bias; log sigma comes last */
        memcpy(o->trial, x, (size_t)o->n * sizeof *x);
        o->trial[o->n] = fini_mixture_log_sigma(2 * loss);
        status = fini_relax(o->judge, &fini_bag_mixture, o->shape, o->trial, &loss, err);
        memcpy(x, o->trial, (size_t)o->n * sizeof *x);
    }
    *value = 2 * o->bags * loss + 2 * degrees * o->bags / (o->bags - degrees - 1);
    return status;
}

/* parameters: with the fitted key, o->x: with the new one; *loss and `other` are theirs. */
static fin_status choose(polish *o, int gate, double *parameters, double *loss, double other,
                         fin_error *err)
{
    double with = 0, without = 0, p = (double)o->used;
    if (o->gains && gate != FINI_GATE_GAUSSIAN)
        FINI_TRY(criterion(o, parameters, *loss, 2 * p, &without, err));
    if (o->gains && gate != FINI_GATE_FREE)
        FINI_TRY(criterion(o, o->x, other, p, &with, err));
    if (gate == FINI_GATE_GAUSSIAN || (gate == FINI_GATE_AUTO && with < without))
        memcpy(parameters, o->x, (size_t)o->n * sizeof *parameters);
    return fini_risk_value(o->risk, parameters, loss, NULL, err);
}

static fin_status run(polish *o, int gate, double *parameters, double *loss, fin_error *err)
{
    fin_status status = gain(o, parameters, loss, err);
    if (status || !o->regression)
        return status;
    double other = *loss;
    memcpy(o->x, parameters, (size_t)o->n * sizeof *parameters);
    for (int k = 0; k < ROUNDS && !status && gate != FINI_GATE_FREE; k++)
        status = round_of(o, &other, err);
    return status ? status : choose(o, gate, parameters, loss, other, err);
}

/* ---- when ----------------------------------------------------------------------------------- */

/* Bags with weight. */
static void count_bag(const void *user, int64_t i, double *sums)
{
    const double *weights = user;
    sums[0] += !weights || weights[i] > 0;
}

static void ask(polish *o, fini_lbfgs *search, fini_function function)
{
    search->iterations = STEPS;
    search->relative = steep;
    search->decrease = flat;
    search->function = function;
    search->user = o;
}

static fin_status open_polish(polish *o, const fini_problem *problem, fin_error *err)
{
    FINI_LAY_OUT(err, &o->arena, "keys from locations", layout(o));
    if (o->shape->heads > 1)
        return FIN_OK; /* which head's token decided is not known */
    FINI_TRY(fini_lbfgs_create(&o->key_search, o->p + 1, err));
    FINI_TRY(fini_lbfgs_create(&o->value_search, o->n, err));
    ask(o, &o->key_search, key_at);
    ask(o, &o->value_search, value_at);
    o->helper = (fini_bag_form){.name = "keys from locations",
                                .keys = fini_size_one,
                                .values = all_scores,
                                .extras = more_extras,
                                .scratch = more_scratch,
                                .loss = regress,
                                .of = o->form};
    if (o->squares)
        FINI_TRY(fini_risk_create(&o->judge, &fini_bag_mixture, problem, err));
    return fini_risk_create(&o->regression, &o->helper, problem, err);
}

fin_status fini_polish(fini_risk *risk, const fini_problem *problem, double penalty, int gate,
                       double *parameters, double *loss, fin_error *err)
{
    const fini_bag_shape *shape = problem->shape;
    const fini_phi *phi = problem->phi;
    polish o = {.risk = risk, .form = shape->form, .shape = shape, .penalty = penalty};
    bool numbers = shape->classes == 0;
    o.n = fini_risk_parameters(risk);
    o.p = phi->bags.d;
    o.used = phi->bags.d - phi->left_out;
    o.extras = o.form->extras(shape);
    o.squares = numbers && !o.form->likelihood;
    FINI_TRY(
        fini_bags_sum(&phi->bags, problem->sum, 1, 1, count_bag, problem->weights, &o.bags, err));
    o.gains = numbers && o.bags >= FINI_RELAX_BAGS * (double)o.used;
    if (!o.form->finds || (!o.gains && gate != FINI_GATE_GAUSSIAN))
        return fini_risk_value(risk, parameters, loss, NULL, err);
    fin_status status = open_polish(&o, problem, err);
    if (!status)
        status = run(&o, gate, parameters, loss, err);
    fini_risk_destroy(o.regression);
    fini_risk_destroy(o.judge);
    fini_lbfgs_close(&o.key_search);
    fini_lbfgs_close(&o.value_search);
    fini_arena_close(&o.arena);
    return status;
}
