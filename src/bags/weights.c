/* Weights of a stack: a convex problem on the simplex, solved to the last digits.
 *
 * Newton's method with the simplex kept: at w the loss is replaced by its quadratic, which is made
 * smallest over the simplex by moving weight between two models at a time (the pair that gains
 * most, as in Platt's sequential minimal optimisation), and the step is shortened until the loss
 * falls enough. There are few models, so the cost is that of the sums over bags, and ten of those
 * are enough where exponentiated gradients take thousands. The loss of numbers is quadratic: one
 * step. It ends when the gap
 *
 *     gap = g.w - min_m g_m >= loss(w) - least loss        (convexity; Frank and Wolfe 1956)
 *
 * is below 1e-12. Models that are copies of each other keep equal weights.
 *
 * With a few hundred bags the loss hardly tells good models from each other, and equal weights
 * predict better than the best ones: hence the prior. */
#include "bags/judge.h"
#include "math/small.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { STEPS = 100, PAIRS = 100000 };
static const double enough = 1e-12;

typedef struct stack {
    int models;
    int64_t n;
    const double *P, *y, *omega;
    double total;                  /* sum of omega */
    double precision;              /* 1 / sigma^2; 1 for classes */
    double pull;                   /* prior / bags / models */
    double *w, *u, *g, *q, *trial; /* (models) */
    double *H;                     /* (models, models) */
    double *row;                   /* (models) */
} stack;

static double weight_of(const stack *s, int64_t i)
{
    return s->omega ? s->omega[i] : 1;
}

/* What the models say about bag i: probabilities, or residuals (weights sum to 1, so that the
 * residual of the mean is the mean of residuals). */
static void read_row(const stack *s, int64_t i)
{
    for (int m = 0; m < s->models; m++) {
        double p = s->P[m * s->n + i];
        s->row[m] = s->y ? p - s->y[i] : p < DBL_EPSILON ? DBL_EPSILON : p; /* NaN stays */
    }
}

static double loss_at(const stack *s, const double *w)
{
    double loss = 0;
    for (int64_t i = 0; i < s->n; i++) {
        double omega = weight_of(s, i);
        if (!(omega > 0))
            continue;
        read_row(s, i);
        double mean = fini_dot_in_order(s->models, w, s->row);
        loss += omega * (s->y ? s->precision * mean * mean / 2 : -log(mean));
    }
    loss /= s->total;
    for (int m = 0; m < s->models && s->pull > 0; m++)
        loss -= s->pull * log(w[m]);
    return loss;
}

/*     classes   g_m = - sum_i omega_i P_im / s_i               H_mk = sum_i omega_i P_im P_ik / s_i^2
 *     numbers   g_m = sum_i omega_i r_im s_i / sigma^2         H_mk = sum_i omega_i r_im r_ik / sigma^2
 *     prior     g_m = - pull / w_m                             H_mm = pull / w_m^2              */
static void differentiate(const stack *s)
{
    int M = s->models;
    memset(s->g, 0, (size_t)M * sizeof *s->g);
    memset(s->H, 0, (size_t)M * (size_t)M * sizeof *s->H);
    for (int64_t i = 0; i < s->n; i++) {
        double omega = weight_of(s, i) / s->total;
        if (!(omega > 0))
            continue;
        read_row(s, i);
        double mean = fini_dot_in_order(M, s->w, s->row),
               slope = s->y ? s->precision * mean : -1 / mean;
        double bend = s->y ? s->precision : slope * slope;
        for (int m = 0; m < M; m++) {
            s->g[m] += omega * slope * s->row[m];
            for (int k = 0; k <= m; k++)
                s->H[m * M + k] += omega * bend * s->row[m] * s->row[k];
        }
    }
    for (int m = 0; m < M; m++) {
        for (int k = m + 1; k < M; k++)
            s->H[m * M + k] = s->H[k * M + m];
        if (s->pull > 0) {
            s->g[m] -= s->pull / s->w[m];
            s->H[m * M + m] += s->pull / (s->w[m] * s->w[m]);
        }
    }
}

static double gap(const stack *s)
{
    double least = s->g[0];
    for (int m = 1; m < s->models; m++)
        least = fmin(least, s->g[m]);
    return fini_dot_in_order(s->models, s->g, s->w) - least;
}

/* u: the minimum of the quadratic on the simplex; q: its gradient there. */
static void solve_quadratic(const stack *s)
{
    int M = s->models;
    memcpy(s->u, s->w, (size_t)M * sizeof *s->u);
    memcpy(s->q, s->g, (size_t)M * sizeof *s->q);
    for (int step = 0; step < PAIRS; step++) {
        int to = 0, from = -1;
        for (int m = 0; m < M; m++) {
            to = s->q[m] < s->q[to] ? m : to;
            if (s->u[m] > 0 && (from < 0 || s->q[m] > s->q[from]))
                from = m;
        }
        double push = s->q[from] - s->q[to];
        if (!(push > enough / 100))
            return;
        double bend = s->H[to * M + to] + s->H[from * M + from] - 2 * s->H[to * M + from];
        double move = bend > 0 ? fmin(push / bend, s->u[from]) : s->u[from];
        s->u[to] += move;
        s->u[from] = move == s->u[from] ? 0 : s->u[from] - move;
        for (int m = 0; m < M; m++)
            s->q[m] += move * (s->H[m * M + to] - s->H[m * M + from]);
    }
}

/* From w towards u, as far as the loss falls by a part of what the slope promises. At the end it
 * promises less than the loss is rounded by, and Newton's step is right all the same. */
static bool advance(const stack *s, double *loss)
{
    int M = s->models;
    double slope = 0, level = fini_dot_in_order(M, s->g, s->w),
           rounding = 1e-14 * (1 + fabs(*loss));
    for (int m = 0; m < M; m++) /* the level adds nothing, for u - w has sum 0, but its rounding */
        slope += (s->g[m] - level) * (s->u[m] - s->w[m]);
    if (!(slope < 0))
        return false;
    for (double t = 1; t > 1e-10; t /= 2) {
        for (int m = 0; m < M; m++)
            s->trial[m] = t == 1 ? s->u[m] : s->w[m] + t * (s->u[m] - s->w[m]);
        double value = loss_at(s, s->trial);
        if (value <= *loss + 1e-4 * t * slope + rounding) {
            memcpy(s->w, s->trial, (size_t)M * sizeof *s->w);
            *loss = value;
            return true;
        }
    }
    return false;
}

static void layout(fini_arena *a, stack *s)
{
    double **part[] = {&s->u, &s->g, &s->q, &s->trial, &s->row};
    for (size_t k = 0; k < sizeof part / sizeof *part; k++)
        *part[k] = fini_take(a, s->models, sizeof(double));
    s->H = fini_take(a, (int64_t)s->models * s->models, sizeof(double));
}

/* Sum of weights, the prior's share of it, and the scale of squared errors. */
static void measure(stack *s, double prior)
{
    double squares = 0, least = INFINITY;
    for (int64_t i = 0; i < s->n; i++) {
        double omega = weight_of(s, i) > 0 ? weight_of(s, i) : 0;
        s->total += omega;
        squares += omega * omega;
    }
    s->precision = 1;
    for (int m = 0; s->y && m < s->models; m++) {
        memset(s->trial, 0, (size_t)s->models * sizeof *s->trial);
        s->trial[m] = 1;
        least = fmin(least, 2 * loss_at(s, s->trial));
    }
    if (s->y && least > 0)
        s->precision = 1 / least;
    s->pull = prior * squares / (s->total * s->total) / s->models; /* none, until here */
}

fin_status fini_weights(int models, int64_t n, const double *P, const double *y,
                        const double *omega, double prior, double *w, fin_error *err)
{
    stack s = {.models = models, .n = n, .P = P, .y = y, .omega = omega, .w = w};
    fini_arena arena = {0};
    layout(&arena, &s);
    fin_status status = fini_arena_open(&arena, "the weights of a stack", err);
    if (status)
        return status;
    layout(&arena, &s);
    for (int m = 0; m < models; m++)
        w[m] = 1.0 / models;
    measure(&s, prior);
    double loss = s.total > 0 ? loss_at(&s, w) : NAN;
    if (!isfinite(loss))
        status = fini_fail(err, FIN_ERR_NUMERIC,
                           "the models of a stack have no finite predictions to weigh them by");
    for (int step = 0; !status && step < STEPS; step++) {
        differentiate(&s);
        if (gap(&s) <= enough * (1 + fabs(loss)))
            break;
        solve_quadratic(&s);
        if (!advance(&s, &loss))
            break;
    }
    double sum = 0;
    for (int m = 0; m < models; m++)
        sum += w[m];
    for (int m = 0; m < models; m++)
        w[m] /= sum;
    fini_arena_close(&arena);
    return status;
}
