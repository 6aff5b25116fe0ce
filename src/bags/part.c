/* One part: a model fitted, from bags to members and what they say about the training bags. */
#include "bags/descend.h"

#include "random/streams.h"

#include <string.h>

void fini_part_close(fini_part *part)
{
    if (!part)
        return;
    fini_map_close(&part->map);
    fini_free_all(part->member, part->draw, part->penalty, part->text);
    part->member = part->penalty = NULL;
    part->draw = NULL;
    part->text = NULL;
}

/* ---- weights ---------------------------------------------------------------------------------------- */

typedef struct balance {
    const double *labels, *weights;
    int64_t classes;
} balance;

static void class_weight(const void *user, int64_t i, double *sums)
{
    const balance *b = user;
    if (b->weights[i] > 0)
        sums[(int64_t)b->labels[i]] += b->weights[i];
}

/* Every class that occurs gets the same sum, and all together what they had. */
static fin_status balance_classes(const fini_problem *o, double *weights, fin_error *err)
{
    int64_t classes = o->part->shape.classes, present = 0;
    balance b = {o->labels, weights, classes};
    FINI_OWN(err, "weights of classes", double, sum, classes, 1);
    double all = 0;
    FINI_TRY(fini_bags_sum(&o->phi->bags, o->sum, 1, classes, class_weight, &b, sum, err));
    for (int64_t c = 0; c < classes; c++) {
        all += sum[c];
        present += sum[c] > 0;
    }
    for (int64_t i = 0; i < o->phi->bags.n; i++)
        if (weights[i] > 0)
            weights[i] *= all / (double)present / sum[(int64_t)o->labels[i]];
    return FIN_OK;
}

void fini_hold_out(const fini_problem *o, double share, double *weights, double *held)
{
    const fin_fit_settings *s = &o->part->settings;
    for (int64_t i = 0; i < o->phi->bags.n; i++) {
        fin_random r;
        const int64_t *groups = o->phi->bags.groups;
        int64_t number = groups ? groups[i] : o->phi->bags.first + i;
        fin_random_open(&r, (uint64_t)s->seed, FINI_STREAM_BAGS_HELD, (uint64_t)number);
        bool out = fin_random_uniform(&r) < share;
        held[i] = out ? weights[i] : 0;
        weights[i] = out ? 0 : weights[i];
    }
}

static fin_status weigh(fini_problem *o, const double *given, double *weights, double *held,
                        fin_error *err)
{
    for (int64_t i = 0; i < o->phi->bags.n; i++)
        weights[i] = given ? given[i] : 1;
    o->weights = weights;
    if (o->part->settings.class_weights && o->part->shape.classes)
        FINI_TRY(balance_classes(o, weights, err));
    if (o->part->settings.early > 0) {
        fini_problem other = *o;
        fini_hold_out(o, o->part->settings.early, weights, held);
        other.weights = held;
        FINI_TRY(fini_problem_count(&other, err));
        if (other.bags > 0)
            o->held = held;
    }
    FINI_TRY(fini_problem_count(o, err));
    if (!(o->weight > 0))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "no bag is left to learn from; weights are positive, and `early` holds "
                         "out a share of the bags");
    return FIN_OK;
}

/* ---- what came out ---------------------------------------------------------------------------------- */

typedef struct review {
    const double *labels, *weights, *mean;
    int64_t classes;
} review;

static void bag_loss(const void *user, int64_t i, double *sums)
{
    const review *r = user;
    if (!(r->weights[i] > 0))
        return;
    double y = r->labels[i], loss;
    if (r->classes) {
        double p = r->mean[i * r->classes + (int64_t)y];
        loss = -log(p > 1e-300 ? p : 1e-300);
    } else {
        loss = (r->mean[i] - y) * (r->mean[i] - y);
    }
    sums[0] += r->weights[i] * loss;
    sums[1] += r->weights[i];
}

/* Variance of new labels around the prediction, over that of the labels that it was fitted to: with
 * c numbers fitted by least squares (n + c) / (n - c), where tokens are random. Keys of softmax and
 * mixture do not count: they bend the prediction little once they find the token. More numbers than
 * half of the bags count as half: a penalty holds them back, and this does not know how far. */
static double optimism(const fini_problem *o)
{
    const fini_part *part = o->part;
    const fini_bag_form *form = part->form;
    int64_t q = form->values(&part->shape) + (form->finds ? 0 : form->keys(&part->shape));
    double p = (double)(o->phi->bags.d - o->phi->left_out), n = o->bags;
    p = part->model->is.constant ? 0 : p; /* a mean, and nothing else */
    double c = fmin(p * (double)q + 1, 0.5 * n);
    return (n + c) / (n - c);
}

/* Loss of the average over members on the training bags, and the noise. */
static fin_status look_back(fini_problem *o, fin_error *err)
{
    fini_part *part = o->part;
    int64_t width = part->shape.classes ? part->shape.classes : 1;
    FINI_OWN(err, "predictions", double, mean, o->phi->bags.n, width);
    double sum[2];
    review r = {o->labels, o->weights, mean, part->shape.classes};
    FINI_TRY(fini_part_answer(part, o->phi, &(fini_answer){.mean = mean, .trained = true},
                              o->cancel, err));
    FINI_TRY(fini_bags_sum(&o->phi->bags, o->sum, 1, 2, bag_loss, &r, sum, err));
    part->loss = sum[0] / sum[1];
    part->noise = part->shape.classes ? part->noise : sqrt(part->loss * optimism(o));
    return FIN_OK;
}

/* ---- the fit ------------------------------------------------------------------------------------------ */

void fini_part_shape(fini_part *part, int64_t classes)
{
    part->model = fini_bag_model_of(part->settings.model);
    part->form = part->model->form;
    part->shape = (fini_bag_shape){.form = part->form,
                                   .heads = part->model->is.heads ? part->settings.heads : 1,
                                   .classes = classes,
                                   .outputs = classes > 2 ? classes : 1,
                                   .longest = 1,
                                   .positive = part->settings.positive != 0};
}

static fin_status open_part(fini_part *part, const fin_fit_settings *settings, int64_t classes,
                            fin_error *err)
{
    *part = (fini_part){.settings = *settings, .weight = 1, .stands_for = part->stands_for};
    part->settings.basis = fin_fit_basis(settings, classes);
    fini_part_shape(part, classes);
    if (!part->form)
        return fini_fail(err, FIN_ERR_ARGUMENT, "a part is one model, neither auto nor stack");
    if (part->model->is.sides && classes != 2)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the model %s says yes or no and needs labels of two classes; these %s. "
                         "softmax and mixture take all labels",
                         part->model->is.name, classes ? "have more" : "are numbers");
    return FIN_OK;
}

static fin_status open_members(const fini_problem *problem, fin_error *err)
{
    fini_part *part = problem->part;
    const fini_bag_form *form = part->form;
    int64_t q = form->keys(&part->shape) + form->values(&part->shape);
    part->members = fini_penalties(problem, NULL);
    if (__builtin_mul_overflow(q, problem->phi->bags.d, &part->parameters))
        return fini_fail_memory(err, SIZE_MAX, "parameters");
    part->parameters += form->extras(&part->shape);
    part->penalty = fini_alloc_array(part->members, sizeof(double));
    part->member = fini_alloc_array(part->members, (size_t)part->parameters * sizeof(double));
    if (!part->penalty || !part->member)
        return fini_fail_memory(err, (size_t)part->parameters * sizeof(double), "parameters");
    fini_penalties(problem, part->penalty);
    return FIN_OK;
}

/* Members of a fit without the columns that are left out, to those of all columns. */
static fin_status fill_members(fini_part *part, int64_t used, fin_error *err)
{
    const fini_bag_form *form = part->form;
    int64_t q = form->keys(&part->shape) + form->values(&part->shape), p = part->map.p;
    int64_t extras = form->extras(&part->shape), parameters = q * p + extras;
    if (used == p)
        return FIN_OK;
    FINI_NEW(err, "parameters", double, all, part->members, parameters);
    double *to = all;
    const double *from = part->member;
    for (int64_t m = 0; m < part->members; m++) {
        for (int64_t j = 0; j < q * p; j++)
            *to++ = part->map.scale[j % p] != 0 ? *from++ : 0;
        for (int64_t e = 0; e < extras; e++)
            *to++ = *from++;
    }
    fini_free(part->member);
    part->member = all;
    part->parameters = parameters;
    return FIN_OK;
}

fin_status fini_part_fit(fini_part *part, const fin_fit_settings *settings, int64_t classes,
                         const fin_bags *bags, const double *labels, const double *weights,
                         fin_sum sum, const fin_progress *progress, fin_error *err)
{
    fini_phi phi = {0};
    fini_cancel cancel;
    fini_problem o = {.part = part,
                      .shape = &part->shape,
                      .phi = &phi,
                      .labels = labels,
                      .sum = sum ? sum : fini_sum_alone,
                      .cancel = &cancel};
    double *learn = NULL, *held = NULL;
    fin_status status = open_part(part, settings, classes, err);
    fini_cancel_open(&cancel, progress, FINI_FEATURES);
    if (!status)
        status = fini_cancel_stage(&cancel, FINI_FEATURES, 0, 3, err);
    if (!status)
        status =
            fini_map_fit(&part->map, &part->settings, classes, bags, weights, sum, &cancel, err);
    if (!status)
        status = fini_map_apply(&part->map, bags, &phi, &cancel, err);
    if (!status)
        status = fini_phi_settle(&phi, o.sum, err);
    if (!status) {
        learn = fini_alloc_array(bags->n, sizeof *learn);
        held = fini_alloc_array(bags->n, sizeof *held);
        status = learn && held ? FIN_OK
                               : fini_fail_memory(err, (size_t)bags->n * sizeof *learn, "weights");
    }
    if (!status)
        status = weigh(&o, weights, learn, held, err);
    if (!status)
        status = open_members(&o, err);
    if (!status)
        status = part->model->fit ? part->model->fit(&o, err) : fini_part_descend(&o, err);
    if (!status)
        status = look_back(&o, err);
    if (!status)
        status = fill_members(part, phi.bags.d, err);
    fini_free_all(learn, held);
    fini_phi_close(&phi);
    if (status)
        fini_part_close(part);
    return status;
}
