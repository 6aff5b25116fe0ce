/* The table of models, and what all forms share: from outputs to losses and probabilities.
 *
 *     numbers       loss = (f - y)^2 / 2,  y standardised
 *     two classes   loss = log(1 + exp(-s f)),  s = 2 y - 1
 *     more          loss = log sum_c exp(f_c) - f_y
 *
 * Everything is written for outputs of any size: an exponential never sees a positive number. */
#include "bags/bags.h"

#include "kernel/kernel.h"

#define FIN_TABLE_STRUCT fin_fit_settings
FIN_TABLE(, fin_fit_table, "fit", FIN_FIT_FIELDS);
#undef FIN_TABLE_STRUCT

/* ---- models ------------------------------------------------------------------------------------ */

/* Those that choose among the others (choose.c). */
#define DECLARE(NAME, name) extern const fini_bag_model fini_bag_model_##name;
#define ROW(NAME, name) &fini_bag_model_##name,
FIN_MODELS(DECLARE)
static const fini_bag_model fini_bag_model_auto = {
    .is = {"auto", .chooses = FIN_CHOOSES_BEST, .heads = 1}};
const fini_bag_model fini_bag_model_stack = {
    .is = {"stack", .chooses = FIN_CHOOSES_AVERAGE, .heads = 1}};
static const fini_bag_model *const models[] = {&fini_bag_model_auto, FIN_MODELS(ROW)};

const fini_bag_model *fini_bag_model_of(int model)
{
    return model >= 0 && model < (int)(sizeof models / sizeof *models) ? models[model] : NULL;
}

const fin_fit_model *fin_fit_model_get(const fin_fit_settings *settings)
{
    const fini_bag_model *model = settings ? fini_bag_model_of(settings->model) : NULL;
    return model ? &model->is : NULL;
}

int fin_fit_basis(const fin_fit_settings *s, int64_t classes)
{
    s = fini_or_defaults(&fin_fit_table, s, &(fin_fit_settings){0});
    const fini_bag_model *model = fini_bag_model_of(s->model);
    return s->basis != FIN_BASIS_AUTO         ? s->basis
           : model && classes && model->basis ? model->basis
                                              : FIN_BASIS_LINEAR;
}

/* ---- sizes ------------------------------------------------------------------------------------- */

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

/* ---- emissions --------------------------------------------------------------------------------- */

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

void fini_two_classes(int64_t count, const double *f, const double *y, double *value, double *df)
{
    const fini_kernel *kernel = fini_kernel_get();
    for (int64_t i = 0; i < count; i++)
        value[i] = -fabs(f[i]);
    kernel->exp(count, value, value);
    for (int64_t i = 0; i < count; i++) {
        double s = y[i] > 0.5 ? 1 : -1, e = value[i];
        df[i] = -s * (s * f[i] > 0 ? e : 1) / (1 + e);
    }
    kernel->log1p(count, value, value);
    for (int64_t i = 0; i < count; i++) {
        double t = y[i] > 0.5 ? f[i] : -f[i];
        value[i] += t > 0 ? 0 : -t;
    }
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

double *fini_emissions_room(const fini_bag_shape *shape, int64_t count, double *out)
{
    return shape->classes == 2 ? out + count : out;
}

void fini_emissions_predict(const fini_bag_shape *shape, int64_t count, double *out)
{
    double *f = fini_emissions_room(shape, count, out);
    if (shape->classes != 2) {
        for (int64_t i = 0; i < count && shape->classes; i++)
            fini_emission_predict(shape, f + i * shape->classes, out + i * shape->classes);
        return;
    }
    for (int64_t i = 0; i < count; i++) { /* the sign is kept in that of the exponential */
        out[i] = f[i] > 0 ? 1 : 0;
        f[i] = -fabs(f[i]);
    }
    fini_kernel_get()->exp(count, f, f);
    for (int64_t i = 0; i < count; i++)
        f[i] = out[i] > 0 ? f[i] : -f[i];
    for (int64_t i = 0; i < count; i++) { /* what is written over has been read */
        double e = fabs(f[i]), large = 1 / (1 + e), small = e / (1 + e);
        bool up = !signbit(f[i]);
        out[2 * i] = up ? small : large;
        out[2 * i + 1] = up ? large : small;
    }
}
