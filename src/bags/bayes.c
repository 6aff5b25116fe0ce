/* bayes: the posterior of the mixture (mixture.c), in place of its maximum.
 *
 *     P(J = l | X) = softmax_l(k.phi_l),  p(y | X) = sum_l P(J = l | X) p(y | v.phi_l + b),
 *     k ~ N(0, tau_k I),  v ~ N(0, tau_v I)
 *
 * Scales tau and the noise are unknown too. Members are draws of all of them, by Hamiltonian Monte Carlo
 * (math/hamilton.c) on the energy, in which locations are summed over:
 *
 *     E = - sum_i w_i log sum_l exp(a_il - A_i) p(y_i | m_il)^beta + |k|^2 / 2 tau_k + |v|^2 / 2 tau_v + ...
 *
 * What A is decides who speaks of the key:
 *
 *     free        A_i = log sum_l exp(a_il): labels alone; tokens are given
 *     gaussian    tokens too: those that do not decide are N(mu, S), and the one that does has their law
 *                 tilted by exp(k.phi), which is N(mu + S k, S). For few bags that is most of what is known.
 *
 * Numbers are tried both ways on four fifths of the bags, and the gaussian goes on with all
 * unless the free one predicts the labels of the others clearly better. Classes have the free one.
 *
 * **Start.** Chains begin in pairs of opposite keys, with so much noise that labels hardly count; it is
 * lowered by and by, as long as the labels want less of it (for classes the power beta of their likelihood
 * rises to 1). A chain that ends in a place with far less mass than the best one's goes on from there.
 *
 * **Classes** are as sharp as they should have been for each training bag without its label: draws then count
 * in proportion to 1 / p(y_i | draw) (Gelfand, Dey and Chang 1992), and no fold is fitted.
 *
 * **New bags.** With a law of tokens a bag says something of key and value even without its label: draws
 * count in proportion to its probability (`vouch`). */
#include "bags/descend.h"
#include "bags/map.h"

#include "math/gram.h"
#include "math/hamilton.h"
#include "math/small.h"
#include "random/streams.h"

#include <cblas.h>
#include <omp.h>
#include <string.h>

enum { CHAINS = 4, DRAWS = 24, THIN = 4, LEAPS = 6 };    /* of one gate */
enum { SWEEPS = 8, LEVELS = 26, WARM = 25, AGAIN = 10 }; /* sweeps of a level; levels at most */
enum { TRIES = 12, LEAST = 20 }; /* draws of a chain that a gate is judged by; bags that it takes */
enum {
    MOST = 1024
}; /* columns up to which all second moments of tokens are known, not each by itself */
/* Of noise, and of beta, from a level to the next. */
static const double cooler = 0.7, colder = 1.3, first_beta = 0.1;
/* Share of bags that gates are judged by. */
static const double left_out = 0.2;

/* ---- the law of tokens --------------------------------------------------------------------------- */

/* Mean and second moments of all tokens. Of the latter, shrunk towards a ball, the chains take away what
 * responsible tokens add, share (1 - share) S k k' S (`shift`). The mean of those that do not decide is
 * N(0, t) in the columns' own units, t unknown: data that are centred by nature tell more than others. */
typedef struct law {
    int64_t p;
    bool full;         /* S is (p, p), its lower triangle; else (p), its diagonal */
    bool placed;       /* tokens have a place of their own: `raw` is known */
    double share;      /* of tokens that decide */
    double kept, ball; /* S = kept times what was found + ball I */
    double least;      /* variance of a mean of all tokens, in one column */
    double *mean, *S, *raw;
} law;

/* out = S x. */
static void times(const law *o, const double *x, double *out)
{
    int64_t p = o->p;
    for (int64_t j = 0; j < p && !o->full; j++)
        out[j] = o->S[j] * x[j];
    if (!o->full)
        return;
    fini_blas_enter();
    cblas_dsymv(CblasRowMajor, CblasLower, (int)p, 1, o->S, (int)p, x, 1, 0, out, 1);
    fini_blas_leave();
}

typedef struct token_sums {
    const fini_problem *problem;
    double *row;
    const double *mean; /* NULL: sums of tokens; else of squares about it */
} token_sums;

static void add_tokens(const void *user, int64_t i, double *sums)
{
    const token_sums *o = user;
    const int64_t *offsets = o->problem->phi->bags.offsets;
    int64_t p = o->problem->phi->bags.d;
    double w = o->problem->weights[i];
    for (int64_t r = offsets[i] - offsets[0]; w > 0 && r < offsets[i + 1] - offsets[0]; r++) {
        const double *x = fini_phi_row(o->problem->phi, r, o->row);
        if (fini_cancelled(o->problem->cancel, (double)p))
            return;
        for (int64_t j = 0; j < p; j++) {
            double z = o->mean ? x[j] - o->mean[j] : x[j];
            sums[j] += w * (o->mean ? z * z : z);
        }
        sums[p] += w;
    }
}

/* Towards a ball: the oracle approximating shrinkage of Chen, Wiesel, Eldar and Hero (2010). */
static void shrink(law *o, double tokens)
{
    int64_t p = o->p;
    double trace = 0, square = 0, P = (double)p;
    for (int64_t i = 0; i < p; i++) {
        trace += o->S[i * p + i];
        for (int64_t j = 0; j <= i; j++)
            square += (i == j ? 1 : 2) * o->S[i * p + j] * o->S[i * p + j];
    }
    double rest = (tokens + 1 - 2 / P) * (square - trace * trace / P);
    double rho = rest > 0 ? fmin(1, ((1 - 2 / P) * square + trace * trace) / rest) : 1;
    o->kept = 1 - rho;
    o->ball = rho * trace / P;
    for (int64_t i = 0; i < p; i++) {
        for (int64_t j = 0; j <= i; j++)
            o->S[i * p + j] *= o->kept;
        o->S[i * p + i] += o->ball;
    }
}

/* Where tokens are in the columns' own units, which a map to features forgets. */
static void place(law *o, const fini_problem *problem)
{
    const fini_map *map = &problem->part->map;
    o->placed = map->m == 0 && map->statistics == FINI_TOKENS;
    for (int64_t j = 0, at = 0; j < map->s && o->placed; j++)
        if (map->scale[j] != 0 || o->p == map->s) {
            o->raw[at] = o->mean[at] + map->center[j] * map->scale[j];
            o->placed = fabs(o->raw[at]) < 1e100;
            at++;
        }
}

static fin_status open_law(law *o, const fini_problem *problem, fin_error *err)
{
    int64_t p = problem->phi->bags.d;
    *o = (law){.p = p, .full = p <= MOST, .kept = 1};
    fin_status status = fini_numbers(&o->mean, (o->full ? p : 1) + 5, p + 1, "tokens", err);
    if (status)
        return status;
    o->raw = o->mean + p + 1;
    double *sums = o->raw + p + 1, *row = sums + p + 1;
    o->S = row + p + 1;
    token_sums user = {problem, row, NULL};
    const fin_bags *bags = &problem->phi->bags;
    status = fini_bags_sum(bags, problem->sum, 1, p + 1, add_tokens, &user, sums, err);
    double n = sums[p];
    for (int64_t j = 0; j < p && !status; j++)
        o->mean[j] = sums[j] / n;
    o->share = problem->bags / problem->tokens;
    user.mean = o->mean;
    if (!status && o->full) {
        status = fini_blas_ready(err);
        if (!status)
            status = fini_second_moments(problem, n, o->mean, o->S, err);
        shrink(o, problem->tokens);
    } else if (!status) {
        status = fini_bags_sum(bags, problem->sum, 1, p + 1, add_tokens, &user, sums, err);
        for (int64_t j = 0; j < p; j++)
            o->S[j] = sums[j] / n;
    }
    place(o, problem);
    for (int64_t j = 0; j < p; j++)
        o->least += o->S[o->full ? j * p + j : j] / (double)p / problem->tokens;
    return status ? status : fini_cancel_end(problem->cancel, err);
}

/* ---- a chain ------------------------------------------------------------------------------------- */

typedef struct chain {
    const fini_problem *problem;
    const law *law;
    bool gaussian, numbers;
    bool held;   /* noise and scales are given */
    bool widens; /* where E was looked at last, more noise would lower it */
    int cool;    /* levels in a row at which labels wanted more noise; CALM: it is free */
    int64_t keys, values, outputs;
    fini_hamilton walk;
    fini_risk *risk;
    double precision[2]; /* 1 / tau_k, 1 / tau_v */
    double about; /* variance of the tokens' mean about that of the ordinary ones, in a column */
    double free_energy;         /* mean over the second half of the last sweeps */
    double *key, *shift, *room; /* (keys): mean of these sweeps; see law; scratch, twice */
    int64_t evaluations, steps;
    fin_status status;
    fin_error error;
} chain;
enum { CALM = 2 };

/* Priors say little. tau_k, tau_v: inverse gamma laws of nu degrees of freedom about a typical value, where
 * tokens have |phi|^2 = 1 and labels variance 1; a token that decides about a class mostly leaves no doubt.
 * The noise's deviation: a half Cauchy law of scale 1 (Gelman 2006). A bias: normal. */
static const double nu[2] = {4, 10}, typical[2][2] = {{2, 1}, {3, 100}}, bias = 100;

/* The mixture's loss for a chain: with beta, the power of labels, as one extra more, which stays. */
static int64_t chain_extras(const fini_bag_shape *shape)
{
    return fini_bag_mixture.extras(shape) + 1;
}

static double either(const fini_bag *bag, double y, bool given, double *dU, double *dextra)
{
    int64_t outs = bag->shape->outputs, q = 1 + outs, L = bag->L;
    double beta = bag->extra[fini_bag_mixture.extras(bag->shape)], square = 0;
    fini_mixture at;
    fini_mixture_label(bag, q, y, &at);
    if (beta != 1) {
        for (int64_t l = 0; l < L; l++)
            at.post[l] = bag->U[l * q] + beta * at.logp[l];
        at.log_joint = fini_softmax(L, at.post, true);
    }
    for (int64_t l = 0; l < L; l++) {
        dU[l * q] = (given ? at.gate[l] : 0) - at.post[l];
        for (int64_t o = 0; o < outs; o++) {
            double slope = -beta * at.post[l] * at.slope[l * outs + o];
            dU[l * q + 1 + o] = slope;
            dextra[o] += slope;
        }
        square -= at.post[l] > 0 ? 2 * at.post[l] * at.logp[l] : 0; /* not 0 times infinity */
    }
    double value = (given ? at.log_gate : 0) - at.log_joint;
    return bag->shape->classes ? value
                               : value + fini_mixture_sigma(bag->extra[1], square, &dextra[1]);
}

static double loss_free(const fini_bag *bag, double y, double *dU, double *dextra)
{
    return either(bag, y, true, dU, dextra);
}

static double loss_gaussian(const fini_bag *bag, double y, double *dU, double *dextra)
{
    return either(bag, y, false, dU, dextra);
}

#define CHAIN_FORM(loss_)                                                                          \
    {                                                                                              \
        .name = "a chain", .keys = fini_size_one, .values = fini_size_outputs,                     \
        .extras = chain_extras, .scratch = fini_mixture_scratch, .loss = loss_                     \
    }
static const fini_bag_form chain_form[2] = {CHAIN_FORM(loss_free), CHAIN_FORM(loss_gaussian)};

/* ---- what tokens say of a key ---------------------------------------------------------------------- */

/* room = S k less what responsible tokens add to S; returns k'S k. */
static double spread_of(const chain *o, const double *k)
{
    int64_t p = o->keys;
    times(o->law, k, o->room);
    double along = fini_dot_in_order(p, k, o->shift);
    for (int64_t j = 0; j < p; j++)
        o->room[j] -= along * o->shift[j];
    return fini_dot_in_order(p, k, o->room);
}

/* -log p(tokens | k) beside the sums over bags, for W bags. With mu integrated out over all of space
 *
 *     W (k.mean + (1 - share) k'S k / 2),
 *
 * and if mu is N(0, t I) in the tokens' own place, |raw - share S k|^2 / 2 about more. */
static double tilt(const chain *o, double W, const double *k, double *slope)
{
    const law *t = o->law;
    int64_t p = o->keys;
    double square = spread_of(o, k), *Sk = o->room, *Sr = o->room + p, rest = 0, along = 0;
    double value = W * (fini_dot_in_order(p, k, t->mean) + 0.5 * (1 - t->share) * square);
    for (int64_t j = 0; j < p; j++)
        slope[j] += W * (t->mean[j] + (1 - t->share) * Sk[j]);
    if (!t->placed || !(o->about > 0))
        return value;
    for (int64_t j = 0; j < p; j++) {
        Sk[j] = t->raw[j] - t->share * Sk[j];
        rest += Sk[j] * Sk[j];
        along += Sk[j] * o->shift[j];
    }
    times(t, Sk, Sr);
    for (int64_t j = 0; j < p; j++)
        slope[j] -= t->share / o->about * (Sr[j] - along * o->shift[j]);
    return value + 0.5 * rest / o->about;
}

/* t, given k: inverse gamma, not below what a mean of so many tokens has by itself. */
static void draw_about(chain *o)
{
    const law *t = o->law;
    double rest = 0;
    spread_of(o, o->walk.x);
    for (int64_t j = 0; j < o->keys; j++) {
        double r = t->raw[j] - t->share * o->room[j];
        rest += r * r;
    }
    double draw = rest / (2 * fin_random_gamma(&o->walk.random, 0.5 * (double)o->keys));
    o->about = fmax(t->least, draw);
}

/* From the mean key: the shift S k of responsible tokens, which solves  found k = S k (1 + c k'S k),
 * c = share (1 - share), times the root of what of it is in S. */
static void find_shift(chain *o)
{
    const law *t = o->law;
    int64_t p = o->keys;
    double c = t->share * (1 - t->share);
    times(t, o->key, o->shift);
    for (int64_t j = 0; j < p; j++)
        o->shift[j] = t->kept > 0 ? (o->shift[j] - t->ball * o->key[j]) / t->kept : 0;
    double square = fini_dot_in_order(p, o->key, o->shift);
    double by = 2 / (1 + sqrt(1 + 4 * c * square)) * sqrt(t->kept * c);
    for (int64_t j = 0; j < p; j++)
        o->shift[j] *= by;
}

/* What a draw says of a new bag's tokens, with c = weight share, mu = r - c S k:
 *
 *     log p(X) = log sum_l exp(k.phi_l) - SUM sum_l k.phi_l - ONE - EACH L. */
enum { SPEAKS, SUM, ONE, EACH, TOLD };

static void tell(const chain *o, double *to)
{
    const law *t = o->law;
    const double *k = o->walk.x;
    memset(to, 0, TOLD * sizeof *to);
    if (!o->gaussian)
        return;
    double weight = t->placed ? 1 - t->least / o->about : 1, c = weight * t->share, kr = 0;
    double square = spread_of(o, k);
    for (int64_t j = 0; j < t->p; j++)
        kr += k[j] * (t->placed ? t->mean[j] - (1 - weight) * t->raw[j] : t->mean[j]);
    to[SPEAKS] = 1;
    to[SUM] = c;
    to[ONE] = kr + (0.5 - c) * square;
    to[EACH] = c * (0.5 * c * square - kr);
}

/* ---- energy ---------------------------------------------------------------------------------------- */

static double pull(int64_t n, double precision, const double *x, double *slope)
{
    for (int64_t i = 0; i < n; i++)
        slope[i] += precision * x[i];
    return 0.5 * precision * fini_dot_in_order(n, x, x);
}

/* log(1 + s^2) - log s, with log s what is walked on. */
static double noise_prior(double s, double *slope)
{
    double variance = fini_mixture_variance(s);
    double c = 2 * (1 - FINI_SIGMA_LEAST * FINI_SIGMA_LEAST / variance); /* dlog variance / ds */
    *slope += c * (variance / (1 + variance) - 0.5);
    return log(1 + variance) - 0.5 * log(variance);
}

static fin_status energy(void *user, const double *x, double *value, double *slope, fin_error *err)
{
    chain *o = user;
    int64_t weights = o->keys + o->values;
    double loss, W = o->problem->weight, *extra = slope + weights;
    fin_status status = fini_risk_value(o->risk, x, &loss, slope, err);
    if (status)
        return status;
    for (int64_t i = 0; i < o->walk.n; i++)
        slope[i] *= W;
    *value = W * loss;
    if (o->gaussian)
        *value += tilt(o, W, x, slope);
    *value += pull(o->keys, o->precision[0], x, slope);
    *value += pull(o->values, o->precision[1], x + o->keys, slope + o->keys);
    *value += pull(o->outputs, 1 / bias, x + weights, extra);
    if (o->numbers) {
        *value += noise_prior(x[weights + o->outputs], &extra[o->outputs]);
        o->widens = extra[o->outputs] < 0;
    }
    o->evaluations++;
    return FIN_OK;
}

/* Second derivatives of a score and of a value, per bag, about. */
static fin_status weigh(chain *o, fin_error *err)
{
    const double *extra = o->walk.x + o->keys + o->values;
    double W = o->problem->weight, classes = (double)o->problem->shape->classes;
    double beta = extra[o->walk.n - 1 - o->keys - o->values];
    double score = o->gaussian ? 1 : 0.2;
    double value = o->numbers ? 1 / fini_mixture_variance(extra[o->outputs])
                              : beta / (classes > 2 ? classes : 4);
    fin_status status = fini_hamilton_weigh(&o->walk, 0, W * score, o->precision[0], err);
    if (!status)
        status = fini_hamilton_weigh(&o->walk, 1, W * value, o->precision[1], err);
    for (int64_t i = 0; i < o->outputs; i++)
        o->walk.single[i] = sqrt(W * value + 1 / bias);
    if (o->numbers)
        o->walk.single[o->outputs] = sqrt(2 * W);
    o->walk.singles = o->outputs + (o->numbers && !o->held);
    return status;
}

/* Scales given key and value. */
static void draw_scales(chain *o)
{
    const int64_t size[2] = {o->keys, o->values};
    const double *x = o->walk.x, freedom = nu[!o->numbers];
    for (int b = 0; b < 2; b++, x += o->keys) {
        double gamma = fin_random_gamma(&o->walk.random, 0.5 * (freedom + (double)size[b]));
        o->precision[b] =
            gamma / (0.5 * (freedom * typical[!o->numbers][b] + fini_dot_in_order(size[b], x, x)));
    }
}

/* -log of the mass about where the chain is: energy and, for the volume, second derivatives. */
static double mass_of(const chain *o)
{
    const double rows[2] = {1, (double)o->outputs};
    double value = o->walk.value;
    for (int b = 0; b < 2; b++)
        value += rows[b] *
                 (fini_hamilton_logdet(&o->walk, b) - 0.5 * (double)o->keys * log(o->precision[b]));
    return value;
}

/* ---- ways of a chain ------------------------------------------------------------------------------- */

/* *widened: share of the second half in which labels wanted more noise. */
static fin_status sweep(chain *o, int count, bool learn, double *widened, fin_error *err)
{
    int last = count - count / 2;
    fin_status status = FIN_OK;
    double accept;
    *widened = o->free_energy = 0;
    memset(o->key, 0, (size_t)o->keys * sizeof *o->key);
    for (int t = 0; t < count && !status; t++) {
        if (learn) /* else masses stay: they must not depend on where the chain is */
            status = weigh(o, err);
        if (!status)
            status = fini_hamilton_step(&o->walk, LEAPS, learn, &accept, err);
        if (status)
            return status;
        o->steps++;
        if (!o->held)
            draw_scales(o);
        if (o->gaussian && o->law->placed)
            draw_about(o);
        if (t < count / 2)
            continue;
        *widened += (double)o->widens / last;
        o->free_energy += mass_of(o) / last;
        for (int64_t j = 0; j < o->keys; j++)
            o->key[j] += o->walk.x[j] / last;
    }
    return status;
}

/* Level number `level`: less noise than before, or more of what labels say. */
static fin_status cool(chain *o, int level, fin_error *err)
{
    double *extra = o->walk.x + o->keys + o->values, widened;
    double beta = o->numbers ? 1 : first_beta * pow(colder, level);
    if (o->cool >= CALM)
        return FIN_OK;
    extra[o->walk.n - 1 - o->keys - o->values] = fmin(1, beta);
    o->held = o->numbers;
    if (o->numbers)
        extra[o->outputs] = fini_mixture_log_sigma(pow(cooler, level));
    fin_status status = sweep(o, SWEEPS, true, &widened, err);
    o->cool = o->numbers ? (widened > 0.5 ? o->cool + 1 : 0) : beta >= 1 ? CALM : 0;
    if (o->gaussian)
        find_shift(o);
    o->held = false;
    return status;
}

static fin_status warm(chain *o, int count, fin_error *err)
{
    double widened;
    fin_status status = sweep(o, count, true, &widened, err);
    if (o->gaussian)
        find_shift(o);
    return status;
}

static fin_status draw(chain *o, double *to, fin_error *err)
{
    double widened;
    fin_status status = sweep(o, THIN, false, &widened, err);
    int64_t n = o->walk.n - 1;
    memcpy(to, o->walk.x, (size_t)n * sizeof *to);
    tell(o, to + n);
    for (int64_t i = 0; i < n + TOLD; i++)
        to[i] = (double)(float)to[i]; /* as in files */
    return status;
}

static void close_chain(chain *o)
{
    fini_risk_destroy(o->risk);
    fini_hamilton_close(&o->walk);
    fini_free(o->key);
}

static fin_status open_chain(chain *o, const fini_problem *problem, const law *tokens,
                             bool gaussian, int number, fin_error *err)
{
    const fini_bag_shape *shape = problem->shape;
    int64_t p = problem->phi->bags.d, outputs = shape->outputs;
    uint64_t seed = (uint64_t)problem->part->settings.seed;
    *o = (chain){.problem = problem, .law = tokens, .gaussian = gaussian, .keys = p};
    o->outputs = outputs;
    o->values = outputs * p;
    o->numbers = shape->classes == 0;
    o->walk.n = (1 + outputs) * p + chain_extras(shape);
    o->walk.energy = energy;
    o->walk.user = o;
    for (int b = 0; b < 2; b++) {
        o->walk.rows[b] = b ? outputs : 1;
        o->walk.mass[b] = (fini_mass){.p = p, .full = tokens->full, .S = tokens->S};
        o->precision[b] = 1 / typical[!o->numbers][b];
    }
    fin_status status = fini_hamilton_open(&o->walk, err);
    if (!status)
        status = fini_numbers(&o->key, 4, p, "a chain", err);
    if (!status)
        status = fini_risk_create(&o->risk, &chain_form[gaussian], problem, err);
    if (status)
        return status;
    o->shift = o->key + p;
    o->room = o->shift + p;
    memset(o->key, 0, 4 * (size_t)p * sizeof *o->key);
    fin_random_normals_f64(seed, FINI_STREAM_BAYES_START, (uint64_t)number / 2, 0, p, o->walk.x);
    for (int64_t j = 0; j < p; j++)
        o->walk.x[j] *= number % 2 ? -0.3 : 0.3;
    fin_random_open(&o->walk.random, seed, FINI_STREAM_BAYES_CHAIN, (uint64_t)number);
    return FIN_OK;
}

/* ---- all chains ------------------------------------------------------------------------------------ */

enum { COOL, SETTLE, FOLLOW, DRAW };

typedef struct crew {
    fini_problem *problem;
    fini_problem most, rest; /* without the bags that gates are judged by; these alone */
    law law;
    int gates, count, each; /* each: draws of a chain, now */
    chain chain[2 * CHAINS];
    double *drawn; /* (chains, each, parameters) */
    double *learn; /* (2, n) weights of `most` and `rest` */
} crew;

static void work(crew *o, int c, int what, int round)
{
    chain *one = &o->chain[c];
    int64_t at = (int64_t)c * o->each + round;
    if (one->status)
        return;
    one->status = what == COOL ? cool(one, round, &one->error)
                  : what == DRAW
                      ? draw(one, o->drawn + at * o->problem->part->parameters, &one->error)
                      : warm(one, what == SETTLE ? WARM : AGAIN, &one->error);
}

/* Chains are independent, so threads share them; processes, which share bags, take one after the other. */
static fin_status everybody(crew *o, int what, int round, fin_error *err)
{
    bool alone = o->problem->sum == fini_sum_alone;
    int threads = alone ? fin_threads_get() : 1;
    atomic_llong left = o->count;
    fini_cancel *cancel = o->problem->cancel;
#pragma omp parallel num_threads(threads < o->count ? threads : o->count) if (threads > 1)
    {
#pragma omp for schedule(dynamic) nowait
        for (int c = 0; c < o->count; c++) {
            work(o, c, what, round);
            atomic_fetch_sub(&left, 1);
        }
        fini_cancel_wait(cancel, &left);
    }
    for (int c = 0; c < o->count; c++)
        if (o->chain[c].status)
            return fini_fail(err, o->chain[c].status, "%s", o->chain[c].error.message);
    return fini_cancel_end(cancel, err);
}

static bool all_calm(const crew *o)
{
    bool all = true;
    for (int c = 0; c < o->count; c++)
        all = all && o->chain[c].cool >= CALM;
    return all;
}

/* Chains that were left behind, by more than free energies vary, go on where the best of their gate is. */
static void follow(crew *o, int gate)
{
    chain *all = o->chain + gate * CHAINS, *best = all;
    double margin = 2 * sqrt((double)(all->keys + all->values));
    for (int c = 0; c < CHAINS; c++)
        if (all[c].free_energy < best->free_energy)
            best = &all[c];
    for (int c = 0; c < CHAINS; c++) {
        chain *o2 = &all[c];
        if (!(o2->free_energy > best->free_energy + margin))
            continue;
        memcpy(o2->walk.x, best->walk.x, (size_t)best->walk.n * sizeof(double));
        memcpy(o2->shift, best->shift, (size_t)best->keys * sizeof(double));
        memcpy(o2->precision, best->precision, sizeof best->precision);
        o2->walk.length = best->walk.length;
        o2->about = best->about;
    }
}

/* ---- the form: a draw is a mixture, and what it says of tokens ----------------------------------------- */

static int64_t extras(const fini_bag_shape *shape)
{
    return fini_bag_mixture.extras(shape) + TOLD;
}

static double vouch(const fini_bag *bag, const double *y)
{
    const fini_bag_shape *shape = bag->shape;
    const double *told = bag->extra + fini_bag_mixture.extras(shape);
    int64_t q = 1 + shape->outputs;
    bool speaks = told[SPEAKS] != 0;
    double sum = 0;
    fini_mixture at;
    if (!speaks && !y)
        return 0;
    fini_mixture_label(bag, q, y ? *y : 0, &at);
    double value = (y ? at.log_joint : at.log_gate) - (speaks ? 0 : at.log_gate);
    if (y && shape->classes == 0)
        value -= 0.5 * log(fini_mixture_variance(bag->extra[1]));
    for (int64_t l = 0; l < bag->L; l++)
        sum += bag->U[l * q];
    return speaks ? value - told[SUM] * sum - told[ONE] - told[EACH] * (double)bag->L : value;
}

static double loss(const fini_bag *bag, double y, double *dU, double *dextra)
{
    return fini_bag_mixture.loss(bag, y, dU, dextra);
}

static void predict(const fini_bag *bag, double *out, double *variance)
{
    fini_bag_mixture.predict(bag, out, variance);
}

static double normals(const fini_bag *bag, double *weight, double *mean)
{
    for (int64_t l = 0; l < bag->L; l++) {
        weight[l] = bag->U[2 * l];
        mean[l] = bag->U[2 * l + 1] + bag->extra[0];
    }
    fini_softmax(bag->L, weight, false);
    return sqrt(fini_mixture_variance(bag->extra[1]));
}

static void locate(const fini_bag *bag, const double *y, double sigma2, double *weight)
{
    fini_bag_mixture.locate(bag, y, sigma2, weight);
}

static double own(const fini_bag *bag, double *on)
{
    return fini_bag_mixture.own(bag, on);
}

static void own_after(int64_t L, double none, const double *after, double *on)
{
    fini_bag_mixture.own_after(L, none, after, on);
}

/* ---- what draws are worth -------------------------------------------------------------------------- */

/* Draws of one gate, CHAINS times `each`, on the bags of a problem. */
typedef struct judge {
    const fini_problem *problem;
    const double *member;
    int each;
    double *W, *U, *one, *work, *out, *project; /* out: a prediction */
    double *alone, *with;   /* (draws) evidence of a bag's tokens; and of its label */
    double *first, *second; /* (CHAINS) means of predictions, and of their squares */
    double *said, *without; /* (draws, classes) predictions; (draws) weights without the label; */
    double *left;           /* (n, classes) what is predicted then, or NULL */
} judge;
enum { LOG_LOSS, WITHIN, BETWEEN, JUDGED };

/* What draws would say of bag i if they had not seen its label. */
static void leave_out(const judge *o, int64_t i, int64_t draws)
{
    int64_t classes = o->problem->shape->classes;
    double *to = o->left + i * classes;
    for (int64_t m = 0; m < draws; m++)
        o->without[m] = -o->problem->weights[i] * o->with[m];
    fini_softmax(draws, o->without, false);
    memset(to, 0, (size_t)classes * sizeof *to);
    for (int64_t m = 0; m < draws; m++)
        for (int64_t c = 0; c < classes; c++)
            to[c] += o->without[m] * o->said[m * classes + c];
}

static void judge_bag(const void *user, int64_t i, double *sums)
{
    const judge *o = user;
    const fini_problem *problem = o->problem;
    const fini_bag_shape *shape = problem->shape;
    const int64_t *offsets = problem->phi->bags.offsets;
    int64_t at = offsets[i] - offsets[0], L = offsets[i + 1] - offsets[i], q = 1 + shape->outputs;
    int64_t p = problem->phi->bags.d, draws = (int64_t)CHAINS * o->each, all = q * draws;
    double w = problem->weights[i], y = problem->labels[i], each = o->each, mean = 0;
    if (!(w > 0) || fini_cancelled(problem->cancel, 0))
        return;
    fini_project(problem->phi, at, L, all, o->W, o->U, o->project, problem->cancel);
    memset(o->first, 0, 2 * CHAINS * sizeof *o->first);
    for (int64_t m = 0; m < draws; m++) {
        for (int64_t l = 0; l < L; l++)
            memcpy(o->one + l * q, o->U + l * all + m * q, (size_t)q * sizeof *o->one);
        const fini_bag bag = {.shape = shape,
                              .extra = o->member + m * problem->part->parameters + q * p,
                              .L = L,
                              .U = o->one,
                              .scratch = o->work};
        o->alone[m] = vouch(&bag, NULL);
        o->with[m] = vouch(&bag, &y);
        fini_bag_mixture.predict(&bag, o->out, NULL);
        double f = o->out[shape->classes ? (int64_t)y : 0];
        if (o->left)
            memcpy(o->said + m * shape->classes, o->out, (size_t)shape->classes * sizeof *o->out);
        o->first[m / o->each] += f / each;
        o->second[m / o->each] += f * f / each;
    }
    if (o->left)
        leave_out(o, i, draws);
    for (int c = 0; c < CHAINS; c++)
        mean += o->first[c] / CHAINS;
    for (int c = 0; c < CHAINS; c++) {
        sums[WITHIN] += w * (o->second[c] - o->first[c] * o->first[c]) / CHAINS;
        sums[BETWEEN] += w * (o->first[c] - mean) * (o->first[c] - mean) / (CHAINS - 1);
    }
    sums[LOG_LOSS] +=
        w * (fini_softmax(draws, o->alone, true) - fini_softmax(draws, o->with, true));
}

/* left: as in a judge. */
static fin_status judge_draws(const fini_problem *problem, const double *member, int each,
                              double sums[JUDGED], double *left, fin_error *err)
{
    fini_bag_shape shape = *problem->shape;
    int64_t p = problem->phi->bags.d, q = 1 + shape.outputs, draws = (int64_t)CHAINS * each;
    int64_t longest = shape.longest = fini_bags_longest(&problem->phi->bags);
    fini_problem inside = *problem;
    inside.shape = &shape;
    judge o = {.problem = &inside, .member = member, .each = each, .left = left};
    fini_arena a = {0};
    for (int twice = 0; twice < 2; twice++) {
        o.W = fini_take(&a, q * draws, (size_t)p * sizeof(double));
        o.U = fini_take(&a, q * draws, (size_t)longest * sizeof(double));
        o.one = fini_take(&a, q, (size_t)longest * sizeof(double));
        o.work = fini_take(&a, fini_mixture_scratch(&shape), sizeof(double));
        o.project = fini_take(&a, fini_project_scratch(problem->phi, q * draws), sizeof(double));
        o.out = fini_take(&a, shape.classes + 1, sizeof(double));
        o.alone = fini_take(&a, draws, sizeof(double));
        o.with = fini_take(&a, draws, sizeof(double));
        o.said = fini_take(&a, left ? draws : 0, (size_t)shape.classes * sizeof(double));
        o.without = fini_take(&a, left ? draws : 0, sizeof(double));
        o.first = fini_take(&a, 2 * CHAINS, sizeof(double));
        fin_status status = twice ? FIN_OK : fini_arena_open(&a, "judging draws", err);
        if (status)
            return status;
    }
    o.second = o.first + CHAINS;
    for (int64_t m = 0; m < draws; m++)
        memcpy(o.W + m * q * p, member + m * problem->part->parameters,
               (size_t)(q * p) * sizeof(double));
    fin_status status =
        fini_bags_sum(&problem->phi->bags, problem->sum, 1, JUDGED, judge_bag, &o, sums, err);
    fini_arena_close(&a);
    return status ? status : fini_cancel_end(problem->cancel, err);
}

/* ---- the fit --------------------------------------------------------------------------------------- */

static fin_status see(chain *o, const fini_problem *problem, fin_error *err)
{
    fini_risk_destroy(o->risk);
    o->problem = problem;
    return fini_risk_create(&o->risk, &chain_form[o->gaussian], problem, err);
}

static fin_status open_crew(crew *o, fin_error *err)
{
    fini_problem *problem = o->problem;
    int gate = problem->part->settings.gate;
    bool numbers = problem->shape->classes == 0, several = problem->tokens > problem->bags;
    bool both = gate == FINI_GATE_AUTO && numbers && several && problem->bags >= LEAST;
    bool gaussian = gate == FINI_GATE_GAUSSIAN || (gate == FINI_GATE_AUTO && numbers && several);
    o->gates = 1 + both;
    o->count = o->gates * CHAINS;
    fin_status status = open_law(&o->law, problem, err);
    if (!status)
        status = fini_numbers(&o->drawn, (int64_t)o->count * DRAWS, problem->part->parameters,
                              "draws", err);
    if (!status && both)
        status = fini_numbers(&o->learn, problem->phi->bags.n, 2, "bags left out", err);
    o->most = o->rest = *problem;
    if (!status && both) {
        o->most.weights = o->learn;
        o->rest.weights = o->learn + problem->phi->bags.n;
        memcpy(o->learn, problem->weights, (size_t)problem->phi->bags.n * sizeof *o->learn);
        fini_hold_out(problem, left_out, o->learn, o->learn + problem->phi->bags.n);
        status = fini_problem_count(&o->most, err);
    }
    if (!status && both)
        status = fini_problem_count(&o->rest, err);
    if (!status && both && !(o->most.weight > 0 && o->rest.weight > 0)) { /* groups are large */
        o->gates = 1;
        o->count = CHAINS;
        o->most = *problem;
    }
    for (int c = 0; c < o->count && !status; c++)
        status = open_chain(&o->chain[c], &o->most, &o->law, c < CHAINS ? gaussian : false, c, err);
    return status;
}

/* Chains of the gaussian gate go on with all bags, unless the free one predicts bags left out clearly better. */
static fin_status choose(crew *o, fin_error *err)
{
    double loss[2];
    int64_t size = (int64_t)CHAINS * TRIES * o->problem->part->parameters;
    fin_status status = FIN_OK;
    o->each = TRIES;
    for (int m = 0; m < TRIES && !status; m++)
        status = everybody(o, DRAW, m, err);
    for (int g = 0; g < 2 && !status; g++) {
        double sums[JUDGED];
        status = judge_draws(&o->rest, o->drawn + g * size, TRIES, sums, NULL, err);
        loss[g] = sums[LOG_LOSS];
    }
    if (status)
        return status;
    if (loss[1] < loss[0] - sqrt(o->rest.bags)) /* more than chance, about */
        for (int c = 0; c < CHAINS; c++) {
            chain spent = o->chain[c];
            o->chain[c] = o->chain[CHAINS + c];
            o->chain[CHAINS + c] = spent;
        }
    o->count = CHAINS;
    for (int c = 0; c < 2 * CHAINS; c++)
        o->chain[c].walk.user = &o->chain[c];
    for (int c = 0; c < CHAINS && !status; c++)
        status = see(&o->chain[c], o->problem, err);
    return status ? status : everybody(o, SETTLE, 0, err);
}

/* Chains disagree where their mean predictions vary by more than those within a chain say they should
 * (Gelman and Rubin 1992). */
static fin_status finish(crew *o, fin_error *err)
{
    const double agree = 1.2;
    fini_part *part = o->problem->part;
    double sums[JUDGED];
    memcpy(part->member, o->drawn,
           (size_t)part->members * (size_t)part->parameters * sizeof *o->drawn);
    int64_t classes = part->shape.classes, n = o->problem->phi->bags.n;
    bool sharpens = classes && !o->problem->phi->bags.groups && o->problem->bags >= LEAST;
    double *left = NULL;
    fin_status status =
        sharpens ? fini_numbers(&left, n, classes, "bags without their labels", err) : FIN_OK;
    if (!status)
        status = judge_draws(o->problem, part->member, DRAWS, sums, left, err);
    if (!status && sharpens)
        status = fini_sharpness(&o->problem->phi->bags, classes, o->problem->labels,
                                o->problem->weights, left, o->problem->sum, &part->noise, err);
    fini_free(left);
    double ratio = status ? 0 : (DRAWS - 1.0) / DRAWS + sums[BETWEEN] / sums[WITHIN];
    part->unfinished = sqrt(ratio) > agree ? part->members : 0;
    for (int c = 0; c < 2 * CHAINS; c++) {
        part->iterations += o->chain[c].steps;
        part->evaluations += o->chain[c].evaluations;
    }
    return status;
}

static fin_status go(crew *o, fin_error *err)
{
    const double total = LEVELS + 4 + DRAWS;
    fini_cancel *cancel = o->problem->cancel;
    fin_status status = open_crew(o, err);
    for (int level = 0; level < LEVELS && !status && !all_calm(o); level++) {
        status = fini_cancel_stage(cancel, "fit", level, total, err);
        if (!status)
            status = everybody(o, COOL, level, err);
    }
    for (int turn = 0; turn < 3 && !status; turn++) {
        status = fini_cancel_stage(cancel, "fit", LEVELS + turn, total, err);
        if (!status)
            status = everybody(o, turn < 2 ? SETTLE : FOLLOW, 0, err);
        for (int g = 0; g < o->gates && !status && turn == 1; g++)
            follow(o, g);
    }
    if (!status && o->gates > 1)
        status = choose(o, err);
    o->each = DRAWS;
    for (int m = 0; m < DRAWS && !status; m++) {
        status = fini_cancel_stage(cancel, "fit", LEVELS + 4 + m, total, err);
        if (!status)
            status = everybody(o, DRAW, m, err);
    }
    if (!status)
        status = finish(o, err);
    return status ? status : fini_cancel_stage(cancel, "fit", total, total, err);
}

static fin_status sample(fini_problem *problem, fin_error *err)
{
    crew *o = fini_alloc(sizeof *o);
    if (!o)
        return fini_fail_memory(err, sizeof *o, "chains");
    memset(o, 0, sizeof *o);
    o->problem = problem;
    fin_status status = go(o, err);
    for (int c = 0; c < 2 * CHAINS; c++)
        close_chain(&o->chain[c]);
    fini_free(o->law.mean);
    fini_free(o->drawn);
    fini_free(o->learn);
    fini_free(o);
    return status;
}

static const fini_bag_form form = {.name = "bayes",
                                   .keys = fini_size_one,
                                   .values = fini_size_outputs,
                                   .extras = extras,
                                   .scratch = fini_mixture_scratch,
                                   .loss = loss,
                                   .predict = predict,
                                   .law = normals,
                                   .locate = locate,
                                   .vouch = vouch,
                                   .own = own,
                                   .own_after = own_after,
                                   .likelihood = true};

const fini_bag_model fini_bag_model_bayes = {.is = {.name = "bayes", .draws = CHAINS * DRAWS},
                                             .form = &form,
                                             .basis = FIN_BASIS_BOTH,
                                             .fit = sample,
                                             .calibrated = true,
                                             .decides = FINI_DECIDES_ONE};
