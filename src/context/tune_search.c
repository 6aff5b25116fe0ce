/* Two searches for the largest value of what is tuned.
 *
 * Climb: L-BFGS (liblbfgs) on logarithms. It knows no ends, so a parameter in [low, high] is
 *
 *     at = middle + half sin(x / half),   half = (high - low) / 2,
 *
 * which has slope 1 in the middle and turns an optimum at an end into one of x with a gradient of
 * zero. Backtracking steps, because a step may end where the value is -infinity. What is returned
 * is the best point that was ever evaluated, so that a line search that ends in rounding costs
 * nothing.
 *
 * Scan: one parameter whose leave-one-out error may have several valleys: a grid over the whole
 * range, then Brent's method between the neighbours of its best point. */
#include "finetti/math.h"
#include "context/tune.h"

#include <lbfgs.h>
#include <math.h>
#include <string.h>

/* ---- climb ---------------------------------------------------------------------------------- */

enum { PAST = 5 }; /* iterations over which progress is judged */

typedef struct climb {
    fini_tune *t;
    double size; /* the value is divided by it, so that it is of the order of 1 */
    double past[PAST];
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

static double evaluate(void *user, const double *x, double *g, const int n, const double step)
{
    (void)step;
    climb *c = user;
    fini_tune *t = c->t;
    for (int64_t i = 0; i < t->parts; i++)
        t->at[i] = middle(&t->part[i]) + half(&t->part[i]) * sin(x[i] / half(&t->part[i]));
    double value = fini_tune_value(t, t->slope);
    memset(g, 0, (size_t)n * sizeof *g);
    for (int64_t i = 0; i < t->parts && isfinite(value); i++)
        g[i] = -t->slope[i] * cos(x[i] / half(&t->part[i])) / c->size;
    return isfinite(value) ? -value / c->size : INFINITY;
}

enum { STALLED = 1, STOPPED = 2 };

static int progress(void *user, const double *x, const double *g, const double fx,
                    const double xnorm, const double gnorm, const double step, int n, int k, int ls)
{
    (void)x, (void)g, (void)xnorm, (void)gnorm, (void)step, (void)n, (void)ls;
    climb *c = user;
    const double enough = 1e-12;
    double before = c->past[k % PAST];
    c->past[k % PAST] = fx;
    if (c->t->status)
        return STOPPED;
    return k > PAST && before - fx < enough * fmax(1, fabs(fx)) ? STALLED : 0;
}

void fini_tune_climb(fini_tune *t, bool *converged)
{
    climb c = {.t = t, .size = 1};
    if (!t->loo)
        c.size = (double)(t->data->offsets[t->data->n] * t->data->dv);
    lbfgs_parameter_t how;
    lbfgs_parameter_init(&how);
    how.m = 8;
    how.epsilon = 1e-8;
    how.max_iterations = (int)t->how.iterations;
    how.linesearch = LBFGS_LINESEARCH_BACKTRACKING_STRONG_WOLFE;
    for (int64_t i = 0; i < t->parts; i++)
        t->x[i] = unbounded(&t->part[i], t->at[i]);
    int result = lbfgs((int)t->padded, t->x, NULL, evaluate, progress, &c, &how);
    if (result == LBFGSERR_OUTOFMEMORY && !t->status)
        t->status = fini_fail(t->err, FIN_ERR_MEMORY, "out of memory in the search of tune");
    *converged = result != LBFGSERR_MAXIMUMITERATION;
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
        fin_brent(error_at, t, a, b, 1e-7, &x, &fx, &none);
}
