/* Predictions and locations of a part: the average over its members.
 *
 * A bag is projected on the vectors of all members at once, so that its tokens are read once; the
 * members then answer one by one. Threads share bags, and nothing of a bag depends on the others.
 * Where the map makes something new of the tokens, it does so for a limited number at a time. */
#include "bags/descend.h"

#include "math/small.h"
#include "math/stats.h"

#include <omp.h>
#include <string.h>

/* One thread's room. */
typedef struct desk {
    double *project; /* fini_project's */
    double *all;     /* (L, members q) */
    double *U;       /* (L, q) of one member */
    double *work;    /* the form's */
    double *out;     /* (members, width) */
    double *over;    /* (members) what each is divided by in an average */
    double *weight;  /* (L) */
    double *sum[2];  /* (L) locations: without and with the label */
    double *law[3];  /* (members, L) normals: weights, means, deviations; or NULL */
    double *subsets; /* of evidence.c, or NULL */
} desk;

typedef struct office {
    const fini_part *part;
    const fini_phi *phi;
    fini_cancel *cancel;
    fini_bag_shape shape;
    int64_t q, p, width; /* width: numbers of a prediction */
    int threads;
    bool evidence, ends;
    double *W; /* (members q, p) */
    desk *desk;
    fini_arena arena;
} office;

static void layout(office *o)
{
    fini_arena *a = &o->arena;
    int64_t L = o->shape.longest, members = o->part->members, q = o->q * members;
    o->W = fini_take(a, q, (size_t)o->p * sizeof(double));
    o->desk = fini_take(a, o->threads, sizeof *o->desk);
    for (int i = 0; i < o->threads; i++) {
        desk one = {.project = fini_take(a, fini_project_scratch(o->phi, q), sizeof(double))};
        one.all = fini_take(a, L, (size_t)q * sizeof(double));
        one.U = fini_take(a, L, (size_t)o->q * sizeof(double));
        one.work = fini_take(a, o->part->form->scratch(&o->shape), sizeof(double));
        one.out = fini_take(a, members, (size_t)o->width * sizeof(double));
        one.over = fini_take(a, members, sizeof(double));
        one.weight = fini_take(a, L, sizeof(double));
        one.sum[0] = fini_take(a, L, sizeof(double));
        one.sum[1] = fini_take(a, L, sizeof(double));
        for (int k = 0; k < 3; k++)
            one.law[k] = fini_take(a, o->ends ? members : 0, (size_t)L * sizeof(double));
        one.subsets =
            fini_take(a, o->evidence ? fini_evidence_scratch(&o->shape) : 0, sizeof(double));
        if (a->base)
            o->desk[i] = one;
    }
}

static fin_status open_office(office *o, fin_error *err)
{
    const fini_part *part = o->part;
    const fin_bags *bags = &o->phi->bags;
    int64_t rows = bags->n ? bags->offsets[bags->n] - bags->offsets[0] : 0;
    o->shape = part->shape;
    o->shape.longest = fini_bags_longest(bags);
    o->p = bags->d;
    o->q = part->form->keys(&o->shape) + part->form->values(&o->shape);
    o->width = part->shape.classes ? part->shape.classes : 1;
    o->threads = rows * o->p < 2000000 ? 1 : fin_threads_get();
    FINI_LAY_OUT(err, &o->arena, "predictions", layout(o));
    for (int64_t m = 0; m < part->members; m++)
        memcpy(o->W + m * o->q * o->p, part->member + m * part->parameters,
               (size_t)(o->q * o->p) * sizeof(double));
    return FIN_OK;
}

/* ---- one bag ---------------------------------------------------------------------------------------- */

/* The bag as member m sees it. */
static fini_bag pick(const office *o, const desk *t, int64_t m, int64_t L)
{
    const fini_part *part = o->part;
    int64_t all = o->q * part->members;
    for (int64_t l = 0; l < L && !fini_row_cancelled(o->cancel, l, L, all); l++)
        memcpy(t->U + l * o->q, t->all + l * all + m * o->q, (size_t)o->q * sizeof(double));
    const double *extra = part->member + m * part->parameters + o->q * o->p;
    return (fini_bag){&o->shape, extra, L, t->U, t->work, o->cancel};
}

/* Members count alike, but draws from a posterior do not where a bag is new: it tells of them, too. y: its
 * label, or NULL. */
static void weigh_members(const office *o, const desk *t, int64_t i, int64_t L, const double *y,
                          const fini_answer *to)
{
    const fini_part *part = o->part;
    int64_t members = part->members;
    bool alike = !part->form->vouch || to->trained || (to->known && to->known[i]);
    for (int64_t m = 0; m < members && !fini_cancelled(o->cancel, 0); m++) {
        t->over[m] = (double)members;
        if (alike)
            continue;
        fini_bag bag = pick(o, t, m, L);
        t->over[m] = part->form->vouch(&bag, y);
    }
    if (alike)
        return;
    fini_softmax(members, t->over, false);
    for (int64_t m = 0; m < members; m++)
        t->over[m] = 1 / t->over[m];
}

/* ends: between quantiles of the law of all members, each a mixture over tokens. */
static void bound_bag(const office *o, const desk *t, int64_t i, int64_t L, const fini_answer *to)
{
    const fini_part *part = o->part;
    int64_t members = part->members;
    for (int64_t m = 0; m < members && o->ends && !fini_cancelled(o->cancel, 64 * (double)L); m++) {
        fini_bag bag = pick(o, t, m, L);
        double *weight = t->law[0] + m * L;
        double deviation = part->form->law(&bag, weight, t->law[1] + m * L);
        for (int64_t l = 0; l < L; l++) {
            weight[l] /= t->over[m];
            t->law[2][m * L + l] = deviation;
        }
    }
    for (int k = 0; k < 2; k++)
        to->ends[2 * i + k] = o->ends
                                  ? fini_normals_quantile(members * L, t->law[0], t->law[1],
                                                          t->law[2], 0.5 + (k - 0.5) * to->coverage)
                                  : NAN;
}

static void predict_bag(const office *o, const desk *t, int64_t i, int64_t L, const fini_answer *to)
{
    const fini_part *part = o->part;
    int64_t members = part->members, width = o->width;
    double within = 0;
    weigh_members(o, t, i, L, NULL, to);
    for (int64_t m = 0; m < members && !fini_cancelled(o->cancel, 0); m++) {
        double variance = 0;
        fini_bag bag = pick(o, t, m, L);
        part->form->predict(&bag, t->out + m * width, &variance);
        within += variance / t->over[m];
    }
    for (int64_t c = 0; c < width; c++) {
        double mean = 0, square = 0;
        for (int64_t m = 0; m < members; m++)
            mean += t->out[m * width + c] / t->over[m];
        for (int64_t m = 0; m < members; m++) {
            double rest = t->out[m * width + c] - mean;
            square += rest * rest / t->over[m];
        }
        to->mean[i * width + c] = mean;
        if (to->spread)
            to->spread[i * width + c] = sqrt(square);
    }
    if (to->within)
        to->within[i] = part->shape.classes ? 0 : within;
    if (to->ends)
        bound_bag(o, t, i, L, to);
}

static void locate_bag(const office *o, const desk *t, int64_t i, int64_t at, int64_t L, double y,
                       const fini_answer *to)
{
    const fini_part *part = o->part;
    double sigma2 = part->noise * part->noise;
    bool known = to->to.given && !isnan(y);
    memset(t->sum[0], 0, (size_t)L * sizeof(double));
    memset(t->sum[1], 0, (size_t)L * sizeof(double));
    for (int k = 0; k < 1 + known; k++) {
        weigh_members(o, t, i, L, k ? &y : NULL, to);
        for (int64_t m = 0; m < part->members; m++) {
            fini_bag bag = pick(o, t, m, L);
            part->form->locate(&bag, k ? &y : NULL, sigma2, t->weight);
            for (int64_t l = 0; l < L; l++)
                t->sum[k][l] += t->weight[l] / t->over[m];
        }
    }
    for (int64_t l = 0; l < L; l++) {
        if (to->to.prior)
            to->to.prior[at + l] = t->sum[0][l];
        if (to->to.given)
            to->to.given[at + l] = known ? t->sum[1][l] : NAN;
    }
}

/* What every token is by itself, and whether none is. */
static void own_bag(const office *o, const desk *t, int64_t i, int64_t at, int64_t L,
                    const fini_answer *to)
{
    const fini_part *part = o->part;
    bool says = part->form->own && part->shape.classes == 2;
    double none = says ? 0 : NAN;
    for (int64_t l = 0; l < L; l++)
        t->sum[0][l] = none;
    if (says)
        weigh_members(o, t, i, L, NULL, to);
    for (int64_t m = 0; m < part->members && says; m++) {
        fini_bag bag = pick(o, t, m, L);
        none += part->form->own(&bag, t->weight) / t->over[m];
        for (int64_t l = 0; l < L; l++)
            t->sum[0][l] += t->weight[l] / t->over[m];
    }
    for (int64_t l = 0; l < L && to->to.own; l++)
        to->to.own[at + l] = t->sum[0][l];
    if (to->to.none)
        to->to.none[i] = none;
}

/* Predictions of subsets: averages over members. */
/* Draws from a posterior count differently for every subset of a bag: what the tokens order[0] .. (NULL:
 * the first) but `not` are predicted, added to `to`. */
static void predict_some(const office *o, const desk *t, int64_t i, int64_t L, const int64_t *order,
                         int64_t count, int64_t not, const fini_answer *answer, double *to)
{
    const fini_part *part = o->part;
    int64_t all = o->q * part->members;
    bool alike = count == L && not < 0 && answer->known && answer->known[i];
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t m = 0; m < part->members && !fini_cancelled(o->cancel, 0); m++) {
            const double *extra = part->member + m * part->parameters + o->q * o->p;
            fini_bag bag = {&o->shape, extra, 0, t->U, t->work, o->cancel};
            for (int64_t r = 0; r < count; r++) {
                int64_t l = order ? order[r] : r;
                if (l != not )
                    memcpy(t->U + bag.L++ * o->q, t->all + l * all + m * o->q,
                           (size_t)o->q * sizeof(double));
            }
            if (pass == 0)
                t->over[m] = alike ? 0 : part->form->vouch(&bag, NULL);
            if (pass == 0)
                continue;
            part->form->predict(&bag, t->out, NULL);
            for (int64_t c = 0; c < o->width; c++)
                to[c] += answer->share * t->over[m] * t->out[c];
        }
        if (pass == 0)
            fini_softmax(part->members, t->over, false);
    }
}

static void evidence_of_draws(const office *o, const desk *t, int64_t i, int64_t at, int64_t L,
                              const fini_answer *answer)
{
    const fini_evidence *to = &answer->evidence;
    if (to->whole)
        predict_some(o, t, i, L, NULL, L, -1, answer, to->whole + i * o->width);
    for (int64_t l = 0; l < L && !fini_cancelled(o->cancel, 0); l++) {
        int64_t place = (at + l) * o->width;
        for (int64_t c = 0; c < o->width && to->without && L == 1; c++)
            to->without[place + c] = NAN; /* nothing is left */
        if (to->without && L > 1)
            predict_some(o, t, i, L, NULL, L, l, answer, to->without + place);
        if (to->alone)
            predict_some(o, t, i, L, &l, 1, -1, answer, to->alone + place);
        if (to->after)
            predict_some(o, t, i, L, to->order + at + l, L - l, -1, answer, to->after + place);
    }
}

static void evidence_bag(const office *o, const desk *t, int64_t i, int64_t at, int64_t L,
                         const fini_answer *answer)
{
    const fini_evidence *to = &answer->evidence;
    double share = answer->share / (double)o->part->members;
    for (int64_t m = 0; m < o->part->members && !fini_cancelled(o->cancel, 0); m++) {
        fini_bag bag = pick(o, t, m, L);
        if (to->whole)
            fini_evidence_whole(&bag, share, t->subsets, to->whole + i * o->width);
        if (to->without)
            fini_evidence_without(&bag, share, t->subsets, to->without + at * o->width);
        if (to->alone)
            fini_evidence_alone(&bag, share, t->subsets, to->alone + at * o->width);
        if (to->after)
            fini_evidence_after(&bag, to->order + at, share, t->subsets, to->after + at * o->width);
    }
}

static void answer_bag(const office *o, const desk *t, int64_t i, const fini_answer *answer)
{
    const int64_t *offsets = o->phi->bags.offsets;
    int64_t at = offsets[i] - offsets[0], L = offsets[i + 1] - offsets[i];
    if (!fini_cancelled(o->cancel, 0))
        fini_project(o->phi, at, L, o->q * o->part->members, o->W, t->all, t->project, o->cancel);
    if (fini_cancelled(o->cancel, 0))
        return;
    if (answer->mean)
        predict_bag(o, t, i, L, answer);
    if (answer->to.own || answer->to.none)
        own_bag(o, t, i, at, L, answer);
    if (answer->to.prior || answer->to.given)
        locate_bag(o, t, i, at, L, answer->labels ? answer->labels[i] : NAN, answer);
    if (o->evidence && o->part->form->vouch)
        evidence_of_draws(o, t, i, at, L, answer);
    else if (o->evidence)
        evidence_bag(o, t, i, at, L, answer);
}

fin_status fini_part_answer(const fini_part *part, const fini_phi *phi, const fini_answer *answer,
                            fini_cancel *cancel, fin_error *err)
{
    const fini_evidence *to = &answer->evidence;
    office o = {.part = part,
                .phi = phi,
                .cancel = cancel,
                .evidence = to->whole || to->without || to->alone || to->after,
                .ends = answer->ends && part->form->law};
    const fin_bags *bags = &phi->bags;
    fin_status status = open_office(&o, err);
    if (status)
        return status;
    atomic_llong left = bags->n;
#pragma omp parallel num_threads(o.threads)
    {
#pragma omp for schedule(dynamic, 16) nowait
        for (int64_t i = 0; i < bags->n; i++) {
            answer_bag(&o, &o.desk[omp_get_thread_num()], i, answer);
            atomic_fetch_sub(&left, 1);
        }
        fini_cancel_wait(cancel, &left);
    }
    fini_arena_close(&o.arena);
    return fini_cancel_end(cancel, err);
}

/* ---- bags through the map -------------------------------------------------------------------------- */

/* Bags from .. as many as make a limited number of features. */
static int64_t some_bags(const fini_part *part, const fin_bags *bags, int64_t from)
{
    const int64_t numbers = 4 * 1024 * 1024;
    int64_t to = from + 1;
    if (part->map.statistics == FINI_TOKENS && part->map.features == 0)
        return bags->n; /* a view */
    while (to < bags->n &&
           bags->offsets[to + 1] - bags->offsets[from] <= numbers / (part->map.p + part->map.s))
        to++;
    return to;
}

static fin_bags cut_bags(const fin_bags *bags, int64_t from, int64_t to)
{
    fin_bags some = *bags;
    int64_t skip = (bags->offsets[from] - bags->offsets[0]) * bags->d;
    some.n = to - from;
    some.first = bags->first + from;
    some.offsets = bags->offsets + from;
    some.tokens = (const char *)bags->tokens + skip * (bags->dtype == FIN_F32 ? 4 : 8);
    some.labels = bags->labels ? bags->labels + from : NULL;
    return some;
}

static double *moved(double *array, int64_t by)
{
    return array ? array + by : NULL;
}

fin_status fini_part_answer_all(const fini_part *part, const fin_bags *bags, const fini_answer *to,
                                fini_cancel *cancel, fin_error *err)
{
    int64_t width = part->shape.classes ? part->shape.classes : 1;
    fin_status status = FIN_OK;
    for (int64_t from = 0, end; from < bags->n && !status; from = end) {
        end = some_bags(part, bags, from);
        fin_bags some = cut_bags(bags, from, end);
        status = fini_cancel_stage(cancel, "answers", (double)from, (double)bags->n, err);
        if (status)
            break;
        int64_t token = bags->offsets[from] - bags->offsets[0];
        fini_answer piece = {.mean = moved(to->mean, from * width),
                             .spread = moved(to->spread, from * width),
                             .within = moved(to->within, from),
                             .labels = to->labels ? to->labels + from : NULL,
                             .coverage = to->coverage,
                             .ends = moved(to->ends, 2 * from),
                             .known = to->known ? to->known + from : NULL,
                             .to = {moved(to->to.prior, token), moved(to->to.given, token),
                                    moved(to->to.own, token), moved(to->to.none, from)},
                             .share = to->share};
        piece.evidence.whole = moved(to->evidence.whole, from * width);
        piece.evidence.without = moved(to->evidence.without, token * width);
        piece.evidence.alone = moved(to->evidence.alone, token * width);
        piece.evidence.after = moved(to->evidence.after, token * width);
        piece.evidence.order = to->evidence.order ? to->evidence.order + token : NULL;
        fini_phi phi;
        status = fini_map_apply(&part->map, &some, &phi, cancel, err);
        if (!status) {
            status = fini_part_answer(part, &phi, &piece, cancel, err);
            fini_phi_close(&phi);
        }
    }
    return status;
}

fin_status fini_part_predict(const fini_part *part, const fin_bags *bags,
                             const unsigned char *known, const fini_said *to, fini_cancel *cancel,
                             fin_error *err)
{
    const fini_answer answer = {.mean = to->mean,
                                .spread = to->spread,
                                .within = to->within,
                                .coverage = to->coverage,
                                .ends = to->ends,
                                .known = known};
    return fini_part_answer_all(part, bags, &answer, cancel, err);
}

fin_status fini_part_locate(const fini_part *part, const fin_bags *bags, const unsigned char *known,
                            const double *labels, const fin_locations *to, fini_cancel *cancel,
                            fin_error *err)
{
    if (!part->form->locate)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "this model looks at a bag as a whole and has no location; softmax and "
                         "mixture have one");
    return fini_part_answer_all(
        part, bags, &(fini_answer){.labels = labels, .known = known, .to = *to}, cancel, err);
}
