/* Minimum of a function of one variable.
 *
 * R. P. Brent, "Algorithms for Minimization without Derivatives" (Prentice-Hall 1973), chapter 5,
 * procedure localmin: a parabola through the three best points, unless its step is outside the
 * bracket or not below half the step before last; then a golden section of the larger side.
 *
 * Added to it: the ends of the interval are tried too, NaN is +infinity, and where the function is
 * infinite, and so gives no direction, the search goes towards the better end. */
#include "base/base.h"
#include "finetti/math.h"
#include "math/small.h"

#include <float.h>
#include <math.h>

typedef struct point {
    double x, f;
} point;

typedef struct problem {
    double (*f)(double x, void *user);
    void *user;
    double tol, tiny;
    point left, right; /* the ends that were given */
} problem;

static point evaluate(const problem *p, double x)
{
    double f = p->f(x, p->user);
    return (point){x, isnan(f) ? INFINITY : f};
}

/* Whether u takes the place of x as the best so far. */
static bool better(const problem *p, point u, point x)
{
    if (u.f == INFINITY && x.f == INFINITY)
        return p->left.f < p->right.f ? u.x < x.x : u.x > x.x;
    return u.f <= x.f;
}

/* The step from x to the lowest point of the parabola through x, w, v; false if there is none that
 * stays inside (a, b) and is shorter than half of `before`. */
static bool parabola(point x, point w, point v, double a, double b, double before, double *step)
{
    double r = (x.x - w.x) * (x.f - v.f), q = (x.x - v.x) * (x.f - w.f);
    double p = (x.x - v.x) * q - (x.x - w.x) * r;
    q = 2 * (r - q);
    *step = p / q;
    /* Infinite and equal values make the step NaN or infinite, and every comparison false. */
    return fabs(*step) < 0.5 * fabs(before) && x.x + *step > a && x.x + *step < b;
}

static point search(const problem *p)
{
    const double golden = 0.38196601125010515; /* (3 - sqrt 5) / 2 */
    double a = p->left.x, b = p->right.x;
    point x = evaluate(p, a + golden * (b - a)), w = x, v = x; /* best, second, the w before */
    double step = 0, before = 0;                               /* the last one, the one before it */
    for (;;) {
        double middle = a + 0.5 * (b - a);
        double near = p->tol * fabs(x.x) + p->tiny;
        if (fabs(x.x - middle) <= 2 * near - 0.5 * (b - a))
            return x;

        double next;
        if (fabs(before) > near && parabola(x, w, v, a, b, before, &next)) {
            before = step;
            double u = x.x + next;
            if (u - a < 2 * near || b - u < 2 * near) /* not too close to the ends */
                next = x.x < middle ? near : -near;
        } else {
            before = x.x < middle ? b - x.x : a - x.x;
            next = golden * before;
        }
        step = next;

        /* A point nearer to x would differ from it by rounding only. */
        point u = evaluate(p, x.x + (fabs(step) >= near ? step : step > 0 ? near : -near));
        if (better(p, u, x)) {
            *(u.x < x.x ? &b : &a) = x.x;
            v = w;
            w = x;
            x = u;
        } else {
            *(u.x < x.x ? &a : &b) = u.x;
            if (u.f <= w.f || w.x == x.x) {
                v = w;
                w = u;
            } else if (u.f <= v.f || v.x == x.x || v.x == w.x) {
                v = u;
            }
        }
    }
}

fin_status fini_brent(double (*f)(double x, void *user), void *user, double a, double b, double tol,
                      double *x, double *fx, fin_error *err)
{
    FINI_NEED(err, f, x, fx);
    if (!(a < b) || !isfinite(b - a))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "brent: interval [%g, %g]; need a < b, both finite, and b - a finite", a,
                         b);
    if (!(tol >= 0 && tol < 1))
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "brent: tolerance %g; 0 to 1 are possible, 0 gives the best there is (1.5e-8)", tol);

    /* The absolute part of the tolerance lets a minimum at zero end: some 110 golden sections. */
    tol = fmax(tol, sqrt(DBL_EPSILON));
    problem p = {f, user, tol, DBL_MIN + tol * DBL_EPSILON * (b - a), {a, 0}, {b, 0}};
    p.left = evaluate(&p, a);
    p.right = evaluate(&p, b);
    point best = search(&p);
    /* A function that is flat near an end to rounding ties with it: the end is the answer then. */
    point end = p.right.f < p.left.f ? p.right : p.left;
    if (end.f <= best.f)
        best = end;
    if (best.f == INFINITY)
        return fini_fail(
            err, FIN_ERR_NUMERIC,
            "brent: the function is NaN or infinite wherever it was tried in [%g, %g]; "
            "narrow the interval to where it is defined",
            a, b);
    *x = best.x;
    *fx = best.f;
    return FIN_OK;
}
