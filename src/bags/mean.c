/* The form `mean`: f_o = (1/L) sum_l v_o.phi_l + b_o.
 *
 * With tokens it is mean pooling, where all attention starts; behind a map that makes one token of
 * a bag it is linear or logistic regression on that token. It has no location. The models of a bag as
 * a whole: its mean, its largest values, its statistics in the space of a kernel; and the base rate,
 * which looks at nothing. */
#include "bags/bags.h"

static int64_t scratch(const fini_bag_shape *shape)
{
    return 2 * shape->outputs;
}

static void forward(const fini_bag *bag, double *f)
{
    int64_t O = bag->shape->outputs;
    for (int64_t o = 0; o < O; o++) {
        double sum = 0;
        for (int64_t l = 0; l < bag->L; l++)
            sum += bag->U[l * O + o];
        f[o] = sum / (double)bag->L + bag->extra[o];
    }
}

static double loss(const fini_bag *bag, double y, double *dU, double *dextra)
{
    int64_t O = bag->shape->outputs;
    double *f = bag->scratch, *df = f + O;
    forward(bag, f);
    double value = fini_emission_loss(bag->shape, f, y, df);
    for (int64_t o = 0; o < O; o++) {
        dextra[o] += df[o];
        for (int64_t l = 0; l < bag->L; l++)
            dU[l * O + o] = df[o] / (double)bag->L;
    }
    return value;
}

/* Two classes. */
static double losses(const fini_bag_run *run, double *dU, double *dextra)
{
    const int64_t *at = run->offsets, n = run->bags;
    double *f = run->scratch, *df = f + n, *value = df + n, loss = 0;
    for (int64_t i = 0; i < n; i++) {
        double sum = 0;
        for (int64_t l = at[i] - at[0]; l < at[i + 1] - at[0]; l++)
            sum += run->U[l];
        f[i] = sum / (double)(at[i + 1] - at[i]) + run->extra[0];
    }
    fini_two_classes(n, f, run->labels, value, df);
    for (int64_t i = 0; i < n; i++) {
        double weight = run->weights ? run->weights[i] : 1, slope = weight * df[i];
        loss += weight * value[i];
        dextra[0] += slope;
        for (int64_t l = at[i] - at[0]; l < at[i + 1] - at[0]; l++)
            dU[l] = slope / (double)(at[i + 1] - at[i]);
    }
    return loss;
}

static void predict(const fini_bag *bag, double *out, double *variance)
{
    forward(bag, bag->scratch);
    fini_emission_predict(bag->shape, bag->scratch, out);
    if (variance)
        variance[0] = 0;
}

/* A token's term: 1, and its values. */
static int64_t term(const fini_bag_shape *shape)
{
    return 1 + shape->outputs;
}

static void terms(const fini_bag *bag, bool apart, double *to)
{
    int64_t O = bag->shape->outputs;
    (void)apart;
    for (int64_t l = 0; l < bag->L; l++) {
        *to++ = 1;
        for (int64_t o = 0; o < O; o++)
            *to++ = bag->U[l * O + o];
    }
}

static void settle(const fini_bag *bag, int64_t count, const double *sums, double *out)
{
    int64_t O = bag->shape->outputs;
    double *f = fini_emissions_room(bag->shape, count, out);
    for (int64_t i = 0; i < count; i++, sums += 1 + O)
        for (int64_t o = 0; o < O; o++)
            f[i * O + o] = sums[1 + o] / sums[0] + bag->extra[o];
    fini_emissions_predict(bag->shape, count, out);
}

const fini_bag_form fini_bag_mean = {.name = "mean",
                                     .keys = fini_size_none,
                                     .values = fini_size_outputs,
                                     .extras = fini_size_outputs,
                                     .scratch = scratch,
                                     .loss = loss,
                                     .losses = losses,
                                     .predict = predict,
                                     .term = term,
                                     .terms = terms,
                                     .settle = settle,
                                     .pools = true};

/* An embedding has more features than bags and can fit any numbers, noise included. With these it
 * cannot, unless there is little noise: a penalty is relative to the noise that is found. */
static const double strong_penalties[] = {20, 15, 10, 0};

const fini_bag_model fini_bag_model_embedding = {.is = {"embedding", .whole = 1},
                                                 .form = &fini_bag_mean,
                                                 .statistics = FINI_STATISTICS,
                                                 .penalties = strong_penalties,
                                                 .preferred = 3,
                                                 .strong = true};
const fini_bag_model fini_bag_model_max = {.is = {"max", .whole = 1},
                                           .form = &fini_bag_mean,
                                           .statistics = FINI_MAX,
                                           .preferred = 8,
                                           .compared = 3};
const fini_bag_model fini_bag_model_mean = {.is = {"mean", .whole = 1},
                                            .form = &fini_bag_mean,
                                            .statistics = FINI_MEAN,
                                            .preferred = 9,
                                            .compared = 2,
                                            .decides = FINI_DECIDES_ALL};
const fini_bag_model fini_bag_model_base = {.is = {"base", "base rate", .constant = 1, .whole = 1},
                                            .form = &fini_bag_mean,
                                            .statistics = FINI_MEAN,
                                            .preferred = 10,
                                            .compared = 1,
                                            .monotone = true};
