/* Two searches for the largest value of what is tuned.
 *
 * Climb: L-BFGS on logarithms. It knows no ends, so a parameter in [low, high] is
 *
 *     at = middle + half sin(x / half),   half = (high - low) / 2,
 *
 * which has slope 1 in the middle and turns an optimum at an end into one of x with a gradient of
 * zero. A step may end where the value is -infinity: it was too long. What is returned is the best
 * point that was ever evaluated, so that a line search that ends in rounding costs nothing.
 *
 * Scan: one parameter whose leave-one-out error may have several valleys: a grid over the whole
 * range, then Brent's method between the neighbours of its best point. */
#include "finetti/math.h"
#include "context/tune.h"
#include "math/lbfgs.h"
#include "math/small.h"

#include <math.h>

/* ---- climb ---------------------------------------------------------------------------------- */

typedef struct climb {
    fini_tune *t;
    double
        size; /* the value is divided by it, so that it is of the order of 1; 0: by the first one */
} climb;

static double middle(const fini_tune_part *p)
{
    return 0.5 * (p->low + p->high);
}

static double half(const fini_tune_part *p)
{
    return 0.5 * (p->high - p->low);
}

/* Not at an end itself, where the slope would be zero whichever way is up. */
static double unbounded(const fini_tune_part *p, double at)
{
    const double inside = 0.98;
    double share = (at - middle(p)) / half(p);
    return half(p) * asin(fmin(fmax(share, -inside), inside));
}

static fin_status evaluate(void *user, const double *x, double *value, double *g, fin_error *err)
{
    (void)err; /* where to write to is known to t */
    climb *c = user;
    fini_tune *t = c->t;
    for (int64_t i = 0; i < t->parts; i++)
        t->at[i] = middle(&t->part[i]) + half(&t->part[i]) * sin(x[i] / half(&t->part[i]));
    *value = -fini_tune_value(t, t->slope);
    if (c->size == 0)
        c->size = *value != 0 && isfinite(*value) ? fabs(*value) : 1;
    *value /= c->size;
    for (int64_t i = 0; i < t->parts; i++)
        g[i] = isfinite(*value) ? -t->slope[i] * cos(x[i] / half(&t->part[i])) / c->size : 0;
    return t->status;
}

void fini_tune_climb(fini_tune *t, bool *converged)
{
    climb c = {.t = t};
    if (!t->loo)
        c.size = (double)(t->data->offsets[t->data->n] * t->data->dv);
    fini_lbfgs search;
    fin_status status = fini_lbfgs_create(&search, t->parts, t->err);
    search.iterations = t->how.iterations;
    search.gradient = 1e-8;
    search.decrease = 1e-12;
    search.noise = 1e-10; /* of a factorised matrix */
    search.function = evaluate;
    search.user = &c;
    for (int64_t i = 0; i < t->parts; i++)
        t->x[i] = unbounded(&t->part[i], t->at[i]);
    if (!status)
        status = fini_lbfgs_run(&search, t->x, t->err);
    fini_lbfgs_close(&search);
    t->status = status;
    *converged = search.finished;
}

/* ---- scan ----------------------------------------------------------------------------------- */

static double error_at(double x, void *user)
{
    fini_tune *t = user;
    t->at[0] = x;
    return -fini_tune_value(t, NULL);
}

void fini_tune_scan(fini_tune *t, bool *converged)
{
    enum { POINTS = 49 };
    const fini_tune_part *p = &t->part[0];
    double step = (p->high - p->low) / (POINTS - 1), x, fx;
    *converged = true;
    for (int i = 0; i < POINTS; i++)
        error_at(p->low + i * step, t);
    if (t->status || t->best_value == -INFINITY)
        return;
    double a = fmax(p->low, t->best[0] - step), b = fmin(p->high, t->best[0] + step);
    fin_error none;
    if (b > a)
        fini_brent(error_at, t, a, b, 1e-7, &x, &fx, &none);
}
