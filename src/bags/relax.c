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
#include "bags/relax.h"

#include "bags/descend.h"

#include <math.h>
#include <string.h>

enum { STEPS = 40 };
static const double most = 2.772588722239781, flat = 1e-7, small = 1e-4;

typedef struct relax {
    fini_arena arena;
    fini_lbfgs search;
    fini_risk *risk;
    int64_t n, keys, values, extras; /* parameters, in this order */
    double *from, *x, *slope;        /* (n) */
    double *t;                       /* (2 + extras) t_k, t_v, extras */
} relax;

static void layout(relax *o)
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
    fin_status status = fini_risk_value(o->risk, o->x, value, o->slope, err);
    if (status)
        return status;
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

static fin_status run(relax *o, double *parameters, double *loss, fin_error *err)
{
    memcpy(o->from, parameters, (size_t)o->n * sizeof(double));
    memcpy(o->t + 2, parameters + o->keys + o->values, (size_t)o->extras * sizeof(double));
    fin_status status = fini_lbfgs_run(&o->search, o->t, err);
    if (status)
        return status;
    stretch(o, o->t);
    memcpy(parameters, o->x, (size_t)o->n * sizeof(double));
    *loss = o->search.value;
    return FIN_OK;
}

static fin_status open_relax(relax *o, fin_error *err)
{
    layout(o);
    fin_status status = fini_arena_open(&o->arena, "gains", err);
    if (status)
        return status;
    layout(o);
    status = fini_lbfgs_create(&o->search, 2 + o->extras, err);
    o->search.iterations = STEPS;
    o->search.gradient = small;
    o->search.decrease = flat;
    o->search.function = risk_at;
    o->search.user = o;
    return status;
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
        status = run(&o, parameters, loss, err);
    fini_lbfgs_close(&o.search);
    fini_arena_close(&o.arena);
    return status;
}
