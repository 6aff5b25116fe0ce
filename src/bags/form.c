/* The table of forms, and what all of them share: from outputs to losses and probabilities.
 *
 *     numbers       loss = (f - y)^2 / 2,  y standardised
 *     two classes   loss = log(1 + exp(-s f)),  s = 2 y - 1
 *     more          loss = log sum_c exp(f_c) - f_y
 *
 * Everything is written for outputs of any size: an exponential never sees a positive number. */
#include "bags/bags.h"

#define FIN_TABLE_STRUCT fin_fit_settings
FIN_TABLE(, fin_fit_table, "fit", FIN_FIT_FIELDS);
#undef FIN_TABLE_STRUCT

int fin_fit_has_heads(const fin_fit_settings *s)
{
    return s->model == FIN_MODEL_SOFTMAX || s->model == FIN_MODEL_ERF ||
           s->model == FIN_MODEL_LINEAR || s->model == FIN_MODEL_AUTO ||
           s->model == FIN_MODEL_STACK;
}

int fin_fit_basis(const fin_fit_settings *s, int64_t classes)
{
    bool both = s->model == FIN_MODEL_SOFTMAX || s->model == FIN_MODEL_MIXTURE;
    return s->basis != FIN_BASIS_AUTO ? s->basis
           : classes && both          ? FIN_BASIS_BOTH
                                      : FIN_BASIS_LINEAR;
}

int64_t fini_size_none(const fini_bag_shape *shape)
{
    (void)shape;
    return 0;
}

int64_t fini_size_one(const fini_bag_shape *shape)
{
    (void)shape;
    return 1;
}

int64_t fini_size_outputs(const fini_bag_shape *shape)
{
    return shape->outputs;
}

/* Indexed by FIN_MODEL_...; mean, max and embedding differ by their maps. */
static const fini_bag_form *const forms[] = {
    [FIN_MODEL_SOFTMAX] = &fini_bag_softmax, [FIN_MODEL_ERF] = &fini_bag_erf,
    [FIN_MODEL_LINEAR] = &fini_bag_linear,   [FIN_MODEL_MIXTURE] = &fini_bag_mixture,
    [FIN_MODEL_EMBEDDING] = &fini_bag_mean,  [FIN_MODEL_MEAN] = &fini_bag_mean,
    [FIN_MODEL_MAX] = &fini_bag_mean,        [FIN_MODEL_ANY] = &fini_bag_any,
    [FIN_MODEL_BASE] = &fini_bag_mean,
};

const fini_bag_form *fini_bag_form_of(int model)
{
    int count = (int)(sizeof forms / sizeof *forms);
    return model >= 0 && model < count ? forms[model] : NULL;
}

static double squared(double f, double y, double *df)
{
    if (df)
        df[0] = f - y;
    return 0.5 * (f - y) * (f - y);
}

static double two_classes(double f, double y, double *df)
{
    double s = y > 0.5 ? 1 : -1, e = exp(-fabs(f)), t = s * f;
    if (df) /* -s / (1 + exp(s f)) */
        df[0] = -s * (t > 0 ? e / (1 + e) : 1 / (1 + e));
    return log1p(e) + (t > 0 ? 0 : -t);
}

static double more_classes(int64_t classes, const double *f, double y, double *df)
{
    int64_t c = (int64_t)y;
    double top = f[0], sum = 0;
    for (int64_t o = 1; o < classes; o++)
        top = f[o] > top ? f[o] : top;
    for (int64_t o = 0; o < classes; o++)
        sum += exp(f[o] - top);
    for (int64_t o = 0; df && o < classes; o++)
        df[o] = exp(f[o] - top) / sum - (o == c);
    return log(sum) + (top - f[c]);
}

double fini_emission_loss(const fini_bag_shape *shape, const double *f, double y, double *df)
{
    if (shape->classes == 0)
        return squared(f[0], y, df);
    if (shape->classes == 2)
        return two_classes(f[0], y, df);
    return more_classes(shape->classes, f, y, df);
}

void fini_emission_predict(const fini_bag_shape *shape, const double *f, double *out)
{
    if (shape->classes == 0) {
        out[0] = f[0];
    } else if (shape->classes == 2) {
        double e = exp(-fabs(f[0])), large = 1 / (1 + e), small = e / (1 + e);
        out[0] = f[0] > 0 ? small : large;
        out[1] = f[0] > 0 ? large : small;
    } else {
        double top = f[0], sum = 0;
        for (int64_t o = 1; o < shape->classes; o++)
            top = f[o] > top ? f[o] : top;
        for (int64_t o = 0; o < shape->classes; o++)
            sum += out[o] = exp(f[o] - top);
        for (int64_t o = 0; o < shape->classes; o++)
            out[o] /= sum;
    }
}
