/* Attention as forms: softmax, erf and linear weights, H heads.
 *
 *     f_o = sum_h sum_l w_hl z_hlo + b_o,   u_hl = k_h.phi_l,   z_hlo = v_ho.phi_l
 *
 *     softmax  w_hl = exp(u_hl) / sum_m exp(u_hm)
 *     erf      w_hl = erf(u_hl + c_h)       c_h: one more number each, because centring the columns
 *                                           moves the scores of the paper's erf(k.x)
 *     linear   w_hl = (1 + u_hl) / L
 *
 * Scores of a token in U: u_1 .. u_H, then z_1 .. (head by head, output by output). With g_o =
 * dloss/df_o:  dz_hlo = g_o w_hl;  and with s_hl = sum_o g_o z_hlo,
 *
 *     softmax  du_hl = w_hl (s_hl - sum_m w_hm s_hm)
 *     erf      du_hl = s_hl 2/sqrt(pi) exp(-(u_hl + c_h)^2),   dc_h = sum_l du_hl
 *     linear   du_hl = s_hl / L
 *
 * Location: |w_hl| normalised over the bag, averaged over heads. Given the label, with the label's
 * emission at the token (the other heads as they are), P(h, l | y) is in proportion to
 *
 *     |w_hl| p(y | f - f_h + z_hl),   f_h = sum_l w_hl z_hl. */
#include "bags/descend.h"

#include "kernel/kernel.h"
#include "base/constants.h"
#include "math/small.h"

static int64_t keys(const fini_bag_shape *shape)
{
    return shape->heads;
}

static int64_t values(const fini_bag_shape *shape)
{
    return shape->heads * shape->outputs;
}

static int64_t biases_and_shifts(const fini_bag_shape *shape)
{
    return shape->outputs + shape->heads;
}

/* Weights (H, L), another (L), outputs of heads (H, O), their sum (O), its derivative (O). */
static int64_t scratch(const fini_bag_shape *shape)
{
    return shape->longest * (shape->heads + 1) + (shape->heads + 2) * shape->outputs;
}

typedef struct pieces {
    double *w, *more, *head, *f, *df;
} pieces;

static pieces cut(const fini_bag *bag)
{
    const fini_bag_shape *shape = bag->shape;
    pieces p = {.w = bag->scratch, .more = bag->scratch + shape->heads * bag->L};
    p.head = p.more + bag->L;
    p.f = p.head + shape->heads * shape->outputs;
    p.df = p.f + shape->outputs;
    return p;
}

/* ---- one head ---------------------------------------------------------------------------------- */

typedef struct head {
    int64_t L, q;    /* tokens; from the score of a token to that of the next */
    const double *u; /* scores */
    double shift;
    double *w;       /* (L) weights */
    const double *s; /* (L), and its mean sum_l w_l s_l, as above: for derivatives */
    double mean;
    double *du;
} head;

/* How scores become weights; and du of a head, whose sum is returned where there is a shift. */
struct fini_weighting {
    void (*weights)(const head *h);
    double (*back)(const head *h);
    /* The same before they are divided, and by what: their sum, the number of tokens, nothing. */
    void (*raw)(const head *h);
    enum { OVER_NOTHING, OVER_COUNT, OVER_SUM } over;
    bool shifts;
};

static void softmax_weights(const head *h)
{
    for (int64_t l = 0; l < h->L; l++)
        h->w[l] = h->u[l * h->q];
    fini_softmax(h->L, h->w, false);
}

static void softmax_raw(const head *h)
{
    for (int64_t l = 0; l < h->L; l++)
        h->w[l] = h->u[l * h->q];
    fini_softmax_shift(h->L, h->w);
    fini_kernel_get()->exp(h->L, h->w, h->w);
}

static double softmax_back(const head *h)
{
    double mean = h->mean;
    for (int64_t l = 0; l < h->L; l++)
        h->du[l * h->q] = h->w[l] * (h->s[l] - mean);
    return 0;
}

static void shift_scores(const head *h)
{
    double shift = h->shift;
    for (int64_t l = 0; l < h->L; l++)
        h->w[l] = h->u[l * h->q] + shift;
}

static void erf_weights(const head *h)
{
    shift_scores(h);
    fini_kernel_get()->erf(h->L, h->w, h->w);
}

static double erf_back(const head *h)
{
    double sum = 0, *slope = h->w; /* the weights are not needed any more */
    shift_scores(h);
    fini_kernel_get()->gauss(h->L, slope, slope);
    for (int64_t l = 0; l < h->L; l++)
        sum += h->du[l * h->q] = FINI_TWO_OVER_ROOT_PI * slope[l] * h->s[l];
    return sum;
}

static void linear_weights(const head *h)
{
    for (int64_t l = 0; l < h->L; l++)
        h->w[l] = (1 + h->u[l * h->q]) / (double)h->L;
}

static void linear_raw(const head *h)
{
    for (int64_t l = 0; l < h->L; l++)
        h->w[l] = 1 + h->u[l * h->q];
}

static double linear_back(const head *h)
{
    for (int64_t l = 0; l < h->L; l++)
        h->du[l * h->q] = h->s[l] / (double)h->L;
    return 0;
}

static head head_of(const fini_bag *bag, const pieces *p, int64_t h)
{
    int64_t H = bag->shape->heads, O = bag->shape->outputs;
    bool shifts = bag->shape->form->weighting->shifts;
    return (head){.L = bag->L,
                  .q = H + H * O,
                  .u = bag->U + h,
                  .shift = shifts ? bag->extra[O + h] : 0,
                  .w = p->w + h * bag->L,
                  .s = p->more};
}

static void forward(const fini_bag *bag, const pieces *p)
{
    int64_t H = bag->shape->heads, O = bag->shape->outputs;
    for (int64_t o = 0; o < O; o++)
        p->f[o] = bag->extra[o];
    for (int64_t h = 0; h < H && !fini_cancelled(bag->cancel, (double)(bag->L * (O + 4))); h++) {
        head one = head_of(bag, p, h);
        bag->shape->form->weighting->weights(&one);
        for (int64_t o = 0; o < O; o++) {
            const double *z = bag->U + H + h * O + o, *w = one.w;
            double sum = 0;
            for (int64_t l = 0; l < one.L; l++)
                sum += w[l] * z[l * one.q];
            p->head[h * O + o] = sum;
            p->f[o] += sum;
        }
    }
}

/* ---- loss -------------------------------------------------------------------------------------- */

/* dz of one head; s_hl into p.more. */
static void values_back(const fini_bag *bag, int64_t h, const pieces *p, double *dU)
{
    int64_t H = bag->shape->heads, O = bag->shape->outputs, q = H + H * O;
    const double *w = p->w + h * bag->L, *df = p->df;
    for (int64_t l = 0; l < bag->L; l++) {
        const double *z = bag->U + l * q + H + h * O;
        double *dz = dU + l * q + H + h * O, s = 0;
        for (int64_t o = 0; o < O; o++) {
            s += df[o] * z[o];
            dz[o] = df[o] * w[l];
        }
        p->more[l] = s;
    }
}

static double loss(const fini_bag *bag, double y, double *dU, double *dextra)
{
    const struct fini_weighting *how = bag->shape->form->weighting;
    int64_t H = bag->shape->heads, O = bag->shape->outputs;
    pieces p = cut(bag);
    forward(bag, &p);
    double value = fini_emission_loss(bag->shape, p.f, y, p.df);
    for (int64_t o = 0; o < O; o++)
        dextra[o] += p.df[o];
    for (int64_t h = 0; h < H && !fini_cancelled(bag->cancel, (double)(bag->L * (O + 4))); h++) {
        head one = head_of(bag, &p, h);
        values_back(bag, h, &p, dU);
        for (int64_t o = 0; o < O; o++)
            one.mean += p.df[o] * p.head[h * O + o];
        one.du = dU + h;
        double sum = how->back(&one);
        if (how->shifts)
            dextra[O + h] += sum;
    }
    return value;
}

/* Softmax, one head, two classes. */
static double softmax_losses(const fini_bag_run *run, double *dU, double *dextra)
{
    const int64_t *at = run->offsets, n = run->bags, first = at[0], tokens = at[n] - first;
    double *w = run->scratch, *f = w + tokens, *df = f + n, *value = df + n, *over = value + n;
    double loss = 0, bias = run->extra[0], top = run->U[0], least = top;
    for (int64_t l = 0; l < tokens; l++) {
        w[l] = run->U[2 * l];
        top = w[l] > top ? w[l] : top;
        least = w[l] < least ? w[l] : least;
    }
    if (top - least < 600) /* no exponential vanishes: one shift will do */
        for (int64_t l = 0; l < tokens; l++)
            w[l] -= top;
    else
        for (int64_t i = 0; i < n; i++)
            fini_softmax_shift(at[i + 1] - at[i], w + at[i] - first);
    fini_kernel_get()->exp(tokens, w, w);
    for (int64_t i = 0; i < n; i++) {
        double total = 0, sum = 0;
        for (int64_t l = at[i] - first; l < at[i + 1] - first; l++) {
            total += w[l];
            sum += w[l] * run->U[2 * l + 1];
        }
        over[i] = 1 / total;
        f[i] = sum * over[i] + bias;
    }
    fini_two_classes(n, f, run->labels, value, df);
    for (int64_t i = 0; i < n; i++) {
        double weight = run->weights ? run->weights[i] : 1;
        double slope = weight * df[i], share = slope * over[i], mean = f[i] - bias;
        loss += weight * value[i];
        dextra[0] += slope;
        for (int64_t l = at[i] - first; l < at[i + 1] - first; l++) {
            double dz = share * w[l];
            dU[2 * l] = dz * (run->U[2 * l + 1] - mean);
            dU[2 * l + 1] = dz;
        }
    }
    return loss;
}

/* ---- prediction and location ------------------------------------------------------------------- */

static void predict(const fini_bag *bag, double *out, double *variance)
{
    pieces p = cut(bag);
    forward(bag, &p);
    fini_emission_predict(bag->shape, p.f, out);
    if (variance)
        variance[0] = 0;
}

/* |w| of one head, sum 1. */
static void normalise(int64_t L, double *w)
{
    double sum = 0;
    for (int64_t l = 0; l < L; l++)
        sum += w[l] = fabs(w[l]);
    for (int64_t l = 0; l < L; l++)
        w[l] = sum > 0 && isfinite(sum) ? w[l] / sum : 1 / (double)L;
}

/* more[l] = log p(y | f - f_h + z_hl), but for a constant. */
static void log_emissions(const fini_bag *bag, int64_t h, double y, double sigma2, const pieces *p)
{
    const fini_bag_shape *shape = bag->shape;
    int64_t H = shape->heads, O = shape->outputs, q = H + H * O;
    for (int64_t l = 0; l < bag->L; l++) {
        for (int64_t o = 0; o < O; o++)
            p->df[o] = p->f[o] - p->head[h * O + o] + bag->U[l * q + H + h * O + o];
        double value = fini_emission_loss(shape, p->df, y, NULL);
        p->more[l] = shape->classes ? -value : -value / sigma2;
    }
}

static void locate(const fini_bag *bag, const double *y, double sigma2, double *weight)
{
    int64_t H = bag->shape->heads, L = bag->L;
    pieces p = cut(bag);
    forward(bag, &p);
    double top = -INFINITY, sum = 0;
    for (int64_t h = 0; h < H && !fini_cancelled(bag->cancel, (double)(L * 8)); h++) {
        double *w = p.w + h * L;
        normalise(L, w);
        if (y)
            log_emissions(bag, h, *y, sigma2 > 0 ? sigma2 : 1e-300, &p);
        for (int64_t l = 0; l < L; l++) { /* to logarithms */
            w[l] = log(w[l]) + (y ? p.more[l] : 0);
            top = w[l] > top ? w[l] : top;
        }
    }
    for (int64_t l = 0; l < L; l++) {
        weight[l] = 0;
        for (int64_t h = 0; h < H; h++)
            weight[l] += isfinite(top) ? exp(p.w[h * L + l] - top) : 1;
        sum += weight[l];
    }
    for (int64_t l = 0; l < L; l++)
        weight[l] /= sum;
}

/* ---- subsets: of each head a token's term is what is divided by, and weight times values -------------- */

static int64_t term(const fini_bag_shape *shape)
{
    return shape->heads * (1 + shape->outputs);
}

static void terms(const fini_bag *bag, bool apart, double *to)
{
    const struct fini_weighting *how = bag->shape->form->weighting;
    int64_t H = bag->shape->heads, O = bag->shape->outputs, n = term(bag->shape);
    pieces p = cut(bag);
    for (int64_t h = 0; h < H && !fini_cancelled(bag->cancel, (double)(bag->L * (O + 4))); h++) {
        head one = head_of(bag, &p, h);
        bool same = apart && how->over == OVER_SUM; /* alone, a token has all the weight */
        if (!same)
            how->raw(&one);
        for (int64_t l = 0; l < one.L; l++) {
            const double *z = bag->U + l * one.q + H + h * O;
            double w = same ? 1 : one.w[l], *at = to + l * n + h * (1 + O);
            at[0] = how->over == OVER_SUM ? w : 1;
            for (int64_t o = 0; o < O; o++)
                at[1 + o] = w * z[o];
        }
    }
}

static void settle(const fini_bag *bag, int64_t count, const double *sums, double *out)
{
    const struct fini_weighting *how = bag->shape->form->weighting;
    int64_t H = bag->shape->heads, O = bag->shape->outputs;
    double *f = fini_emissions_room(bag->shape, count, out);
    for (int64_t i = 0; i < count; i++, f += O) {
        for (int64_t o = 0; o < O; o++)
            f[o] = bag->extra[o];
        for (int64_t h = 0; h < H; h++, sums += 1 + O) {
            double over = how->over == OVER_NOTHING ? 1 : sums[0] > FINI_FAINT_SUM ? sums[0] : NAN;
            for (int64_t o = 0; o < O; o++)
                f[o] += sums[1 + o] / over;
        }
    }
    fini_emissions_predict(bag->shape, count, out);
}

/* ---- models ------------------------------------------------------------------------------------ */

/* erf(c) everywhere is a sum, not a mean. */
static double begin_shifts(const fini_problem *problem, double variance, double *extra)
{
    const double shift = 0.5, weight = 0.5204998778130465; /* its erf */
    const fini_bag_shape *shape = problem->shape;
    (void)variance;
    for (int64_t e = shape->outputs; e < shape->outputs + shape->heads; e++)
        extra[e] = shift;
    return problem->bags / problem->tokens / weight;
}

static const struct fini_weighting by_softmax = {softmax_weights, softmax_back, softmax_raw,
                                                 OVER_SUM, false},
                                   by_erf = {erf_weights, erf_back, erf_weights, OVER_NOTHING,
                                             true},
                                   linearly = {linear_weights, linear_back, linear_raw, OVER_COUNT,
                                               false};

#define ATTENTION(form, extras_of, how)                                                            \
    .name = #form, .keys = keys, .values = values, .extras = extras_of, .scratch = scratch,        \
    .loss = loss, .predict = predict, .locate = locate, .term = term, .terms = terms,              \
    .settle = settle, .weighting = &(how)

const fini_bag_form fini_bag_softmax = {ATTENTION(softmax, fini_size_outputs, by_softmax),
                                        .losses = softmax_losses, .reach = fini_reach_keys,
                                        .finds = true};
static const fini_bag_form erf_form = {ATTENTION(erf, biases_and_shifts, by_erf),
                                       .begin_extras = begin_shifts};
static const fini_bag_form linear_form = {ATTENTION(linear, fini_size_outputs, linearly)};

const fini_bag_model fini_bag_model_softmax = {.is = {"softmax", .heads = 1},
                                               .form = &fini_bag_softmax,
                                               .basis = FIN_BASIS_BOTH,
                                               .preferred = 4,
                                               .preferred_both = 1,
                                               .strong = true};
const fini_bag_model fini_bag_model_erf = {
    .is = {"erf", .heads = 1}, .form = &erf_form, .starts = 4};
const fini_bag_model fini_bag_model_linear = {.is = {"linear", .heads = 1}, .form = &linear_form};
