/* Radau IIA with three stages: order 5, and what decays at once decays in a step of any length (Hairer and Wanner,
 * Solving Ordinary Differential Equations II, section IV.8).
 *
 *     z_i = h sum_j a_ij f(s + c_j h, y + z_j),   i = 1, 2, 3,   c_3 = 1,   y(s + h) = y + z_3
 *
 * Newton's iteration with one Jacobian for the three stages solves for z. The error of a step is that of an embedded
 * formula of order 3, smoothed by (g/h - J)^-1 with g the real eigenvalue of A^-1, so that stiff parts do not count.
 * Within a step y is the polynomial through the stages. */
#include "math/ode.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST = FINI_ODE_MOST, STAGES = FINI_ODE_STAGES, SYSTEM = MOST * STAGES, ITERATIONS = 7 };

#define S6 2.449489742783178
static const double node[STAGES] = {(4 - S6) / 10, (4 + S6) / 10, 1};
static const double A[STAGES][STAGES] = {
    {(88 - 7 * S6) / 360, (296 - 169 * S6) / 1800, (-2 + 3 * S6) / 225},
    {(296 + 169 * S6) / 1800, (88 + 7 * S6) / 360, (-2 - 3 * S6) / 225},
    {(16 - S6) / 36, (16 + S6) / 36, 1.0 / 9}};
static const double embedded[STAGES] = {(-13 - 7 * S6) / 3, (-13 + 7 * S6) / 3, -1.0 / 3};
static const double real_eigenvalue = 3.637834252744496; /* 3 + 3^(2/3) - 3^(1/3) */

/* ---- small systems ----------------------------------------------------------------------------- */

/* M[n][n] = L U with rows exchanged; false if a pivot is 0. */
static bool factor(int n, double *M, int *row)
{
    for (int k = 0; k < n; k++) {
        int best = k;
        for (int i = k + 1; i < n; i++)
            if (fabs(M[i * n + k]) > fabs(M[best * n + k]))
                best = i;
        row[k] = best;
        if (!(fabs(M[best * n + k]) > 0))
            return false;
        if (best != k)
            for (int j = 0; j < n; j++) {
                double t = M[k * n + j];
                M[k * n + j] = M[best * n + j];
                M[best * n + j] = t;
            }
        for (int i = k + 1; i < n; i++) {
            double by = M[i * n + k] /= M[k * n + k];
            if (by != 0)
                for (int j = k + 1; j < n; j++)
                    M[i * n + j] -= by * M[k * n + j];
        }
    }
    return true;
}

static void solve(int n, const double *M, const int *row, double *x)
{
    for (int k = 0; k < n; k++) {
        double t = x[row[k]];
        x[row[k]] = x[k];
        x[k] = t;
    }
    for (int i = 1; i < n; i++)
        for (int j = 0; j < i; j++)
            x[i] -= M[i * n + j] * x[j];
    for (int i = n; i-- > 0;) {
        for (int j = i + 1; j < n; j++)
            x[i] -= M[i * n + j] * x[j];
        x[i] /= M[i * n + i];
    }
}

/* ---- a step ------------------------------------------------------------------------------------ */

static int slope_at(fini_ode *o, double s, const double *y, double *to)
{
    o->calls++;
    return o->slope(s, y, to, o->user);
}

/* Root of the mean square of x in units of what is tolerated. */
static double size_of(const fini_ode *o, const double *x)
{
    double sum = 0;
    for (int i = 0; i < o->n; i++) {
        double unit = o->absolute + o->relative * fabs(o->y[i]);
        sum += x[i] / unit * (x[i] / unit);
    }
    return sqrt(sum / o->n);
}

/* By differences: one column at a time. */
static int find_J(fini_ode *o)
{
    double y[MOST], moved[MOST];
    memcpy(y, o->y, sizeof y);
    for (int j = 0; j < o->n; j++) {
        double by = sqrt(DBL_EPSILON * fmax(1e-5, fabs(o->y[j])));
        y[j] = o->y[j] + by;
        by = y[j] - o->y[j];
        int no = slope_at(o, o->s, y, moved);
        if (no)
            return no;
        for (int i = 0; i < o->n; i++)
            o->J[i][j] = (moved[i] - o->at[i]) / by;
        y[j] = o->y[j];
    }
    o->has_J = true;
    return 0;
}

typedef struct stages {
    double z[STAGES][MOST];
    double M[SYSTEM * SYSTEM], real[MOST * MOST];
    int row[SYSTEM], real_row[MOST];
    int iterations;
    double rate;
} stages;

static bool factors(const fini_ode *o, double h, stages *w)
{
    int n = o->n, size = STAGES * n;
    for (int a = 0; a < STAGES; a++)
        for (int i = 0; i < n; i++)
            for (int b = 0; b < STAGES; b++)
                for (int j = 0; j < n; j++)
                    w->M[(a * n + i) * size + b * n + j] =
                        (a == b && i == j) - h * A[a][b] * o->J[i][j];
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++)
            w->real[i * n + j] = (i == j ? real_eigenvalue / h : 0) - o->J[i][j];
    return factor(size, w->M, w->row) && factor(n, w->real, w->real_row);
}

/* The stages of a step of length h by Newton's iteration: 0 found, 1 not, -1 give up. */
static int find_stages(fini_ode *o, double h, stages *w)
{
    int n = o->n;
    double last = 0, enough = fmax(10 * DBL_EPSILON / o->relative, fmin(0.03, sqrt(o->relative)));
    if (o->has_bend) { /* the last polynomial goes on */
        for (int a = 0; a < STAGES; a++) {
            fini_ode_at(o, o->s + node[a] * h, w->z[a]);
            for (int i = 0; i < n; i++)
                w->z[a][i] -= o->y[i];
        }
    } else
        memset(w->z, 0, sizeof w->z);
    w->rate = 0;
    for (w->iterations = 1; w->iterations <= ITERATIONS; w->iterations++) {
        double slope[STAGES][MOST], y[MOST], move[SYSTEM], size = 0;
        for (int a = 0; a < STAGES; a++) {
            for (int i = 0; i < n; i++)
                y[i] = o->y[i] + w->z[a][i];
            int no = slope_at(o, o->s + node[a] * h, y, slope[a]);
            if (no)
                return no;
        }
        for (int a = 0; a < STAGES; a++)
            for (int i = 0; i < n; i++)
                move[a * n + i] =
                    h * (A[a][0] * slope[0][i] + A[a][1] * slope[1][i] + A[a][2] * slope[2][i]) -
                    w->z[a][i];
        solve(STAGES * n, w->M, w->row, move);
        for (int a = 0; a < STAGES; a++) {
            size = fmax(size, size_of(o, move + (long)a * n));
            for (int i = 0; i < n; i++)
                w->z[a][i] += move[a * n + i];
        }
        if (!isfinite(size))
            return 1;
        if (w->iterations > 1) {
            w->rate = size / last;
            if (w->rate >= 1 ||
                pow(w->rate, ITERATIONS - w->iterations) / (1 - w->rate) * size > enough)
                return size == 0 ? 0 : 1;
        }
        if (size == 0 || (w->iterations > 1 && w->rate / (1 - w->rate) * size < enough))
            return 0;
        last = size;
    }
    return 1;
}

/* Size of the step's error; NaN where f cannot say. */
static double error_of(fini_ode *o, double h, const stages *w, bool again)
{
    int n = o->n;
    double ends[MOST], error[MOST], y[MOST];
    for (int i = 0; i < n; i++) {
        ends[i] =
            (embedded[0] * w->z[0][i] + embedded[1] * w->z[1][i] + embedded[2] * w->z[2][i]) / h;
        error[i] = o->at[i] + ends[i];
    }
    solve(n, w->real, w->real_row, error);
    double size = size_of(o, error);
    if (again && size > 1) { /* where the first guess is far too large: once more from there */
        for (int i = 0; i < n; i++)
            y[i] = o->y[i] + error[i];
        if (slope_at(o, o->s, y, error))
            return NAN;
        for (int i = 0; i < n; i++)
            error[i] += ends[i];
        solve(n, w->real, w->real_row, error);
        size = size_of(o, error);
    }
    return size;
}

/* The polynomial through 0 and the stages at x = node: divided differences of z / x, in powers of x. */
static void keep_bend(fini_ode *o, const stages *w)
{
    for (int i = 0; i < o->n; i++) {
        double q0 = w->z[0][i] / node[0], q1 = w->z[1][i] / node[1], q2 = w->z[2][i];
        double d01 = (q1 - q0) / (node[1] - node[0]), d12 = (q2 - q1) / (node[2] - node[1]);
        double d012 = (d12 - d01) / (node[2] - node[0]);
        o->bend[0][i] = q0 - node[0] * d01 + node[0] * node[1] * d012;
        o->bend[1][i] = d01 - (node[0] + node[1]) * d012;
        o->bend[2][i] = d012;
    }
    o->has_bend = true;
}

void fini_ode_at(const fini_ode *o, double s, double *y)
{
    double x = (s - o->before) / o->last_h;
    for (int i = 0; i < o->n; i++)
        y[i] = o->start[i] + x * (o->bend[0][i] + x * (o->bend[1][i] + x * o->bend[2][i]));
}

void fini_ode_begin(fini_ode *o, double s, const double *y)
{
    o->s = o->before = s;
    memcpy(o->y, y, (size_t)o->n * sizeof *y);
    o->has_slope = o->has_J = o->has_bend = false;
    o->h = 0;
}

/* A first step in which y moves by a hundredth of what would be its own size, as slopes go. */
static double first_step(const fini_ode *o)
{
    double size = size_of(o, o->at), length = size_of(o, o->y);
    return size > 0 ? 0.01 * fmax(length, 1) / size : INFINITY;
}

fini_ode_end fini_ode_step(fini_ode *o, double limit)
{
    stages w;
    bool rejected = false, fresh = false;
    int no;
    if (!o->has_slope) {
        if (slope_at(o, o->s, o->y, o->at))
            return FINI_ODE_STOPPED;
        o->has_slope = true;
    }
    if (o->h == 0)
        o->h = first_step(o);
    for (;;) {
        double room = limit - o->s, h = o->h < room ? o->h : room;
        if (!(h > 4 * DBL_EPSILON * fabs(o->s)) || !(h > 0))
            return FINI_ODE_STUCK;
        if (!o->has_J) {
            if ((no = find_J(o)))
                return no < 0 ? FINI_ODE_STOPPED : FINI_ODE_STUCK;
            fresh = true;
        }
        no = factors(o, h, &w) ? find_stages(o, h, &w) : 1;
        if (no < 0)
            return FINI_ODE_STOPPED;
        if (no) { /* with a new Jacobian, then with half the step */
            if (fresh)
                o->h = h / 2;
            o->has_J = fresh;
            rejected = true;
            continue;
        }
        double size = error_of(o, h, &w, rejected || !o->has_bend);
        double safe = 0.9 * (2 * ITERATIONS + 1) / (2 * ITERATIONS + w.iterations);
        double by = isnan(size) ? 0.5 : safe * pow(fmax(size, 1e-10), -0.25);
        if (!(size <= 1)) {
            o->h = h * fmax(0.2, fmin(by, 0.9));
            rejected = true;
            continue;
        }
        if (o->has_bend && !rejected) /* what two steps say of the next (Gustafsson) */
            by = fmin(by, by * h / o->last_h *
                              pow(fmax(o->last_error, 1e-10) / fmax(size, 1e-10), 0.25));
        if (rejected)
            by = fmin(by, 1);
        memcpy(o->start, o->y, sizeof o->start);
        o->before = o->s;
        o->last_h = h;
        o->last_error = size;
        keep_bend(o, &w);
        for (int i = 0; i < o->n; i++)
            o->y[i] += w.z[STAGES - 1][i];
        o->s = h < room ? o->s + h : limit;
        /* A step that was cut short says nothing against a longer one. */
        o->h = fmax(h * fmax(0.2, fmin(by, 10)), h < o->h && !rejected ? o->h : 0);
        o->has_slope = false;
        o->has_J = w.rate < 1e-3;
        o->steps++;
        if (slope_at(o, o->s, o->y, o->at))
            return FINI_ODE_STOPPED;
        o->has_slope = true;
        return FINI_ODE_DONE;
    }
}
