/* The form `mean`: f_o = (1/L) sum_l v_o.phi_l + b_o.
 *
 * With tokens it is mean pooling, where all attention starts; behind a map that makes one token of
 * a bag it is linear or logistic regression on that token. It has no location. */
#include "bags/bags.h"

static int64_t scratch(const fini_bag_shape *shape)
{
    return 2 * shape->outputs;
}

static void forward(const fini_bag_shape *shape, const double *extra, int64_t L, const double *U,
                    double *f)
{
    int64_t O = shape->outputs;
    for (int64_t o = 0; o < O; o++) {
        double sum = 0;
        for (int64_t l = 0; l < L; l++)
            sum += U[l * O + o];
        f[o] = sum / (double)L + extra[o];
    }
}

static double loss(const fini_bag_shape *shape, const double *extra, int64_t L, const double *U,
                   double y, double *dU, double *dextra, double *work)
{
    int64_t O = shape->outputs;
    double *f = work, *df = work + O;
    forward(shape, extra, L, U, f);
    double value = fini_emission_loss(shape, f, y, df);
    for (int64_t o = 0; o < O; o++) {
        dextra[o] += df[o];
        for (int64_t l = 0; l < L; l++)
            dU[l * O + o] = df[o] / (double)L;
    }
    return value;
}

static void predict(const fini_bag_shape *shape, const double *extra, int64_t L, const double *U,
                    double *out, double *variance, double *work)
{
    forward(shape, extra, L, U, work);
    fini_emission_predict(shape, work, out);
    if (variance)
        variance[0] = 0;
}

const fini_bag_form fini_bag_mean = {.name = "mean",
                                     .keys = fini_size_none,
                                     .values = fini_size_outputs,
                                     .extras = fini_size_outputs,
                                     .scratch = scratch,
                                     .loss = loss,
                                     .predict = predict};
