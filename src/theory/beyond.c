/* Beyond the oracle: the best k, v and lam there are, and stationary points anywhere on the two spheres.
 *
 * The risk sees k and v through the five overlaps, and whatever overlaps unit vectors of R^d have, unit vectors in a frame
 * of k*, v* and two directions more have too (fewer below d = 4). So k and v live on two spheres of R^4, where every
 * point is feasible, and risk, gradient and Hessian are exact there (curvature.c). Newton steps in the eigenvectors of the Hessian,
 *
 *     down:        xi_i = -g_i / |l_i|, halved until the risk falls (a saddle is left, not found)
 *     stationary:  xi_i = -g_i / l_i,   halved until the gradient's norm falls (any kind of point is found)
 *
 * do not mind that curvatures differ by a factor of d. The oracle is not the best at finite d: swapped, k = +-v* and
 * v = +-k*, erf reads the value and the size mu of X_J.k* the location (docs/training.md). */
#include "theory/theory.h"

#include "finetti/math.h"
#include "finetti/random.h"
#include "math/small.h"
#include "random/streams.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 300, HALVINGS = 40 };

typedef struct model {
    const fin_task *task;
    const fin_form *form;
    fin_form_settings settings;
} model;

/* Where it is, and the Hessian's eigenvalues and the gradient along its eigenvectors. */
typedef struct spot {
    fini_spheres s;
    double value[FINI_TANGENT], vector[FINI_TANGENT * FINI_TANGENT], along[FINI_TANGENT];
    double norm, largest; /* of the gradient; |eigenvalue| */
} spot;

static fin_status look(const model *q, spot *p, fin_error *err)
{
    FINI_TRY(fini_spheres_look(q->task, q->form, &q->settings, &p->s, err));
    int size = p->s.size;
    double matrix[FINI_TANGENT * FINI_TANGENT];
    memcpy(matrix, p->s.hessian, sizeof matrix);
    fini_eigen(size, matrix, p->value, p->vector);
    for (int i = 0; i < size; i++)
        p->along[i] = fini_dot_in_order(size, p->vector + i * size, p->s.gradient);
    p->norm = sqrt(fini_dot_in_order(size, p->s.gradient, p->s.gradient));
    p->largest = fmax(fabs(p->value[0]), fabs(p->value[size - 1]));
    return FIN_OK;
}

static void normalise(int n, double *x)
{
    double length = sqrt(fini_dot_in_order(n, x, x));
    for (int i = 0; i < n; i++)
        x[i] /= length;
}

/* From p along `share` of xi, given in the eigenvectors. */
static void move(const spot *p, const double *xi, double share, fini_spheres *to)
{
    int n = p->s.n, size = p->s.size;
    *to = (fini_spheres){.n = n};
    memcpy(to->k, p->s.k, sizeof to->k);
    memcpy(to->v, p->s.v, sizeof to->v);
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            double by = share * xi[i] * p->vector[i * size + j];
            const double *tangent = p->s.basis[j >= n - 1][j % (n - 1)];
            double *x = j >= n - 1 ? to->v : to->k;
            for (int c = 0; c < n; c++)
                x[c] += by * tangent[c];
        }
    normalise(n, to->k);
    normalise(n, to->v);
}

/* Newton steps as above from p on; true in *more as long as one was made. */
static fin_status step(const model *q, bool down, spot *p, bool *more, fin_error *err)
{
    double xi[FINI_TANGENT], length = 0, gain = 0;
    const double flat = 0x1p-44 * p->largest, longest = 0.5;
    *more = false;
    if (!(p->norm > 0x1p-46 * p->largest))
        return FIN_OK;
    for (int i = 0; i < p->s.size; i++) {
        double curvature = down ? fmax(fabs(p->value[i]), flat) : p->value[i];
        xi[i] = fabs(curvature) >= flat && curvature != 0 ? -p->along[i] / curvature : 0;
        length += xi[i] * xi[i];
    }
    length = sqrt(length);
    for (int i = 0; i < p->s.size; i++) {
        xi[i] *= length > longest ? longest / length : 1;
        gain -= 1e-4 * xi[i] * p->along[i];
    }
    double share = 1;
    for (int i = 0; i < HALVINGS; i++, share /= 2) {
        spot next;
        move(p, xi, share, &next.s);
        FINI_TRY(look(q, &next, err));
        bool better = down ? next.s.risk < p->s.risk - share * gain
                           : next.norm < (1 - 1e-4 * share) * p->norm;
        if (better) {
            *p = next;
            *more = true;
            return FIN_OK;
        }
    }
    return FIN_OK;
}

static fin_status walk(const model *q, bool down, spot *p, fin_error *err)
{
    bool more = true;
    FINI_TRY(look(q, p, err));
    for (int i = 0; i < STEPS && more; i++)
        FINI_TRY(step(q, down, p, &more, err));
    return FIN_OK;
}

static void put(spot *p, int64_t d, const double k[FINI_FRAME], const double v[FINI_FRAME])
{
    p->s = (fini_spheres){.n = (int)fini_least(d, FINI_FRAME)};
    memcpy(p->s.k, k, sizeof p->s.k);
    memcpy(p->s.v, v, sizeof p->s.v);
    normalise(p->s.n, p->s.k);
    normalise(p->s.n, p->s.v);
}

static void put_random(spot *p, int64_t d, int64_t seed, int64_t i)
{
    fin_random r;
    double x[2][FINI_FRAME];
    fin_random_open(&r, (uint64_t)seed, FINI_STREAM_SPHERES, (uint64_t)i);
    for (int j = 0; j < 2 * FINI_FRAME; j++)
        x[j / FINI_FRAME][j % FINI_FRAME] = fin_random_normal(&r);
    put(p, d, x[0], x[1]);
}

static fin_status make_model(const fin_task *task, const fin_form *form,
                             const fin_form_settings *settings, model *q, fin_error *err)
{
    fin_form_settings room = {0};
    fin_curvature curvature;
    *q = (model){task, form,
                 *(const fin_form_settings *)fini_or_defaults(form->settings, settings, &room)};
    /* What is refused at the oracle is refused everywhere. */
    return fin_risk_curvature(task, form, &q->settings, NULL, &curvature, err);
}

fin_status fini_valley(const fin_task *task, const fin_form *form,
                       const fin_form_settings *settings, fin_overlaps *at, double *risk,
                       fin_error *err)
{
    model q = {task, form, *settings};
    fini_basis f;
    spot p;
    FINI_TRY(fini_basis_of(at, task->settings.d, &f, err));
    put(&p, task->settings.d, (double[]){at->kappa, at->eta, f.a3, 0},
        (double[]){at->theta, at->nu, f.b3, f.b4});
    FINI_TRY(walk(&q, true, &p, err));
    *at = p.s.at;
    *risk = p.s.risk;
    return FIN_OK;
}

/* ---- the best there is -------------------------------------------------------------------------- */

/* The local minimum below p at this lam; what goes wrong is kept. */
typedef struct search {
    model q;
    spot p;
    fin_status status;
    fin_error error;
} search;

static double least_at(double log_lam, void *user)
{
    search *s = user;
    s->q.settings.lam = exp(log_lam);
    if (!s->status)
        s->status = walk(&s->q, true, &s->p, &s->error);
    return s->status ? INFINITY : s->p.s.risk;
}

/* By turns: k and v at this lam, lam at these k and v. */
static fin_status by_turns(search *s, fin_error *err)
{
    enum { TURNS = 8 };
    fin_status status = FIN_OK;
    double lam = s->q.settings.lam, before = 0;
    for (int i = 0; i < TURNS && !status && fabs(log(lam / before)) > 1e-4; i++) {
        fin_estimate risk;
        s->q.settings.lam = before = lam;
        status = walk(&s->q, true, &s->p, err);
        if (!status)
            status = fini_lam_best(s->q.task, s->q.form, &s->q.settings, &s->p.s.at, NULL, NULL,
                                   &lam, &risk, err);
    }
    s->q.settings.lam = lam;
    return status ? status : walk(&s->q, true, &s->p, err);
}

/* Both at once: a minimum over lam of minima over k and v. */
static fin_status polish(search *s, fin_error *err)
{
    double middle = log(s->q.settings.lam), at, value;
    double low = fmax(middle - 0.5, log(FIN_LAM_LEAST)),
           high = fmin(middle + 0.5, log(FIN_LAM_MOST));
    fin_status status = fini_brent(least_at, s, low, high, 1e-9, &at, &value, err);
    if (!status && !s->status)
        least_at(at, s);
    return s->status ? fini_fail(err, s->status, "%s", s->error.message) : status;
}

fin_status fin_risk_best(const fin_task *task, const fin_form *form,
                         const fin_form_settings *form_settings, const fin_progress *progress,
                         fin_best *best, fin_error *err)
{
    FINI_NEED(err, task, form, best);
    /* k and v: the oracle, swapped; then random ones, with lam around the oracle's */
    static const double known[4][2][FINI_FRAME] = {
        {{1}, {0, 1}}, {{1}, {0, -1}}, {{0, 1}, {1}}, {{0, 1}, {-1}}};
    static const double scale[3] = {1, 0.25, 4};
    enum { KNOWN = 4, STARTS = 28 };
    search first = {.status = FIN_OK}, least = first;
    double lam;
    fin_estimate star;
    FINI_TRY(make_model(task, form, form_settings, &first.q, err));
    FINI_TRY(fin_lam_star(task, form, &first.q.settings, NULL, NULL, &lam, &star, err));
    for (int i = 0; i < STARTS; i++) {
        search s = first;
        s.q.settings.lam = fmin(fmax(lam * scale[i % 3], FIN_LAM_LEAST), FIN_LAM_MOST);
        if (i < KNOWN)
            put(&s.p, task->settings.d, known[i][0], known[i][1]);
        else
            put_random(&s.p, task->settings.d, 1, i);
        FINI_TRY(by_turns(&s, err));
        if (i == 0 || s.p.s.risk < (1 - 1e-9) * least.p.s.risk) /* of equals the first */
            least = s;
        FINI_TRY(fini_go_on(progress, "best", i, STARTS, err));
    }
    FINI_TRY(polish(&least, err));
    *best = (fin_best){.at = least.p.s.at,
                       .lam = least.q.settings.lam,
                       .risk = {.value = least.p.s.risk, .method = FIN_METHOD_CLOSED}};
    return FIN_OK;
}

/* ---- stationary points anywhere ----------------------------------------------------------------- */

static int by_risk(const void *a, const void *b)
{
    const fin_stationary *p = a, *q = b;
    const double x[6] = {p->risk, -p->at.kappa, -p->at.nu, -p->at.theta, -p->at.eta, -p->at.rho};
    const double y[6] = {q->risk, -q->at.kappa, -q->at.nu, -q->at.theta, -q->at.eta, -q->at.rho};
    for (int i = 0; i < 6; i++) { /* copies have the same risk, to rounding */
        double gap = round(1e7 * x[i]) - round(1e7 * y[i]);
        if (gap != 0)
            return gap < 0 ? -1 : 1;
    }
    return 0;
}

bool fini_same_place(const fin_overlaps *a, const fin_overlaps *b, double tolerance)
{
    return fabs(a->kappa - b->kappa) <= tolerance && fabs(a->nu - b->nu) <= tolerance &&
           fabs(a->theta - b->theta) <= tolerance && fabs(a->eta - b->eta) <= tolerance &&
           fabs(a->rho - b->rho) <= tolerance;
}

/* Adds where p is, unless it is there. */
static fin_status add(const model *q, const spot *p, int64_t most, fin_stationary *points,
                      int64_t *count, fin_error *err)
{
    for (int64_t i = 0; i < *count && i < most; i++)
        if (fini_same_place(&points[i].at, &p->s.at, 1e-6))
            return FIN_OK;
    fin_stationary found = {.at = p->s.at, .risk = p->s.risk};
    fin_status status =
        fin_risk_curvature(q->task, q->form, &q->settings, &found.at, &found.curvature, err);
    if (!status && *count < most)
        points[*count] = found;
    *count += !status;
    return status;
}

/* What leaves the risk of an odd weight as it is: k and v of other sign; the reflection of v*, with v of other sign. From
 * such starts come such points, so that all copies are found if one is. */
static void turn(fini_spheres *s, bool sign, bool reflection)
{
    for (int i = 0; i < s->n; i++) {
        s->k[i] *= (sign ? -1 : 1) * (reflection && i == 1 ? -1 : 1);
        s->v[i] *= (sign ? -1 : 1) * (reflection && i != 1 ? -1 : 1);
    }
}

fin_status fin_stationary_search(const fin_task *task, const fin_form *form,
                                 const fin_form_settings *form_settings,
                                 const fin_stationary_tries *tries, int64_t most,
                                 fin_stationary *points, int64_t *count,
                                 const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, task, form, tries, !most || points, count);
    model q;
    if (most < 0 || tries->count < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld tries, room for %lld points; neither can be negative",
                         (long long)tries->count, (long long)most);
    FINI_TRY(make_model(task, form, form_settings, &q, err));
    FINI_TRY(fin_stationary_points(task, form, &q.settings, most, points, count, err));
    for (int64_t i = 0; i < 8 * tries->count; i++) {
        spot p;
        put_random(&p, task->settings.d, tries->seed, i / 8);
        turn(&p.s, i & 2, i & 4);
        FINI_TRY(walk(&q, i & 1, &p, err)); /* both ways: minima are found more surely */
        if (p.norm <= 1e-9 * p.largest)
            FINI_TRY(add(&q, &p, most, points, count, err));
        FINI_TRY(
            fini_go_on(progress, "stationary points", (double)i, 8.0 * (double)tries->count, err));
    }
    qsort(points, (size_t)fini_least(*count, most), sizeof *points, by_risk);
    return FIN_OK;
}
