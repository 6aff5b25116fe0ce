/* Gradient flow of the exact risk: what descent does when its steps are short.
 *
 *     dk/ds = -alpha(s) (I - k k^T) grad_k,   dv/ds = -alpha(s) (I - v v^T) grad_v
 *     dlam/ds = -alpha_lam dR/dlam            (if lam is trained, and not below 0)
 *
 * Time s is counted in steps of descent. k and v stay in the span of where they start, k* and v*,
 * so they are four coordinates each: unlike the overlaps, these still tell how far k is from k* when
 * 1 - kappa is below the last digit.
 *
 * The curvature is mu^2 across M and of order one along it (424 and 0.01 in the paper's setting),
 * so the equations are stiff, and an explicit method would crawl: `math/ode.h` solves them. Logged
 * states and the times of events are found on the polynomial of a step: they do not change the steps
 * taken. A run is always solved from its beginning, so it has the same bytes wherever it was
 * stopped. */
#include "math/ode.h"
#include "math/small.h"
#include "train/train.h"

#include <math.h>
#include <string.h>

enum { FRAME = 4, STATE = 6 };
/* Roots: times when these pass through zero, in the direction that is told. */
enum { CONVERGED, LEFT, GRADIENT, REST, FLOOR, ROOTS };
static const int direction[ROOTS] = {1, 1, -1, -1, -1};

static const double relative = 3e-9, absolute = 3e-11;
static const long most_steps = 1000000; /* between two logged ones; a few hundred are usual */

typedef struct flow {
    fin_train *t;
    int64_t run;
    int n; /* coordinates of k and of v */
    bool trained;
    bool constant_lam;    /* from this segment on */
    double alpha, lam;    /* of this segment, without decay */
    double events[ROOTS]; /* when first seen; NaN: not yet */
    bool ended;           /* at rest: nothing will move any more */
    bool not_finite;      /* the last derivative */
    fin_status status;    /* of the last risk, with its message */
    fin_error error;

    fini_ode ode;            /* may be ahead of where the run is */
    double y[FINI_ODE_MOST]; /* where the run is */
    double end;              /* of this segment */
    double margin[ROOTS];    /* where the step began */
    double root[ROOTS];      /* within the step, still to come; INFINITY: none */
} flow;

/* ---- the equations ---------------------------------------------------------------------------- */

/* One point: unit vectors, overlaps, minus the derivatives over alpha, and norms. */
typedef struct place {
    double k[FRAME], v[FRAME], gk[FRAME], gv[FRAME];
    fin_overlaps o;
    double lam, d_lam; /* d_lam: 0 where lam is held at 0 */
    double gradient;   /* norm of (gk, gv) */
} place;

static double lam_at(const flow *f, double s)
{
    return f->lam / (1 + f->t->settings.decay * s);
}

static double normalise(int n, const double *from, double *to)
{
    double length = sqrt(fini_dot(n, from, from));
    for (int i = 0; i < n; i++)
        to[i] = from[i] / length;
    return length;
}

/* What g has orthogonal to the unit vector x. */
static void project(int n, const double *x, double *g)
{
    double along = fini_dot(n, x, g);
    for (int i = 0; i < n; i++)
        g[i] -= along * x[i];
}

/* False if the point is not finite or the risk is refused (f->status). */
static bool evaluate(flow *f, double s, const double *y, place *p)
{
    int n = f->n;
    fin_risk_value value;
    *p = (place){.lam = f->trained ? fmax(y[2 * n], 0) : lam_at(f, s)};
    normalise(n, y, p->k);
    normalise(n, y + n, p->v);
    fini_overlaps_of(n, p->k, p->v, &p->o);
    f->not_finite = !isfinite(p->o.rho) || !(p->lam <= FINI_LAM_MOST);
    if (f->not_finite)
        return false;
    f->status = fini_exact_risk(f->t, &p->o, p->lam, &value, &f->error);
    if (f->status)
        return false;
    const double *R = value.gradient;
    double R_rho = R[4] + 2 * f->t->settings.penalty * p->o.rho;
    double along_k[2] = {R[0], R[3]}, along_v[2] = {R[2], R[1]};
    for (int i = 0; i < n; i++) {
        p->gk[i] = R_rho * p->v[i] + (i < 2 ? along_k[i] : 0);
        p->gv[i] = R_rho * p->k[i] + (i < 2 ? along_v[i] : 0);
    }
    project(n, p->k, p->gk);
    project(n, p->v, p->gv);
    p->gradient = sqrt(fini_dot(n, p->gk, p->gk) + fini_dot(n, p->gv, p->gv));
    if (f->trained)
        p->d_lam = y[2 * n] <= 0 && value.d_lam > 0 ? 0 : value.d_lam;
    f->not_finite = !isfinite(p->gradient) || !isfinite(p->d_lam);
    return !f->not_finite;
}

static int derivative(double s, const double *y, double *dy, void *user)
{
    flow *f = user;
    place p;
    if (!evaluate(f, s, y, &p))
        return f->status ? -1 : 1; /* 1: perhaps a shorter step does better */
    for (int i = 0; i < f->n; i++) {
        dy[i] = -f->alpha * p.gk[i];
        dy[f->n + i] = -f->alpha * p.gv[i];
    }
    if (f->trained)
        dy[2 * f->n] = -f->t->settings.alpha_lam * p.d_lam;
    return 0;
}

/* ---- events ----------------------------------------------------------------------------------- */

static void margins(const flow *f, const place *p, const double *y, double g[ROOTS])
{
    const fin_train_settings *s = &f->t->settings;
    g[CONVERGED] = fmin(fabs(p->o.kappa), fabs(p->o.nu)) - s->converged;
    g[LEFT] = sqrt(p->o.theta * p->o.theta + p->o.eta * p->o.eta + p->o.rho * p->o.rho) - s->left;
    g[GRADIENT] = p->gradient - s->stuck;
    g[REST] = hypot(p->gradient, p->d_lam) - s->stuck;
    g[FLOOR] = f->trained ? y[2 * f->n] : 1;
}

/* The margins at time s of the last step. */
static bool margins_at(flow *f, double s, double g[ROOTS])
{
    place p;
    double y[FINI_ODE_MOST];
    fini_ode_at(&f->ode, s, y);
    if (!evaluate(f, s, y, &p))
        return false;
    margins(f, &p, y, g);
    return true;
}

/* Where in the last step the margins pass through zero, from what they were at its beginning on. */
static bool find_roots(flow *f)
{
    double end[ROOTS], g[ROOTS];
    if (!margins_at(f, f->ode.s, end))
        return false;
    for (int i = 0; i < ROOTS; i++) {
        f->root[i] = INFINITY;
        if (f->margin[i] * direction[i] < 0 && end[i] * direction[i] >= 0) {
            double low = f->ode.before, high = f->ode.s, middle;
            while ((middle = low + (high - low) / 2) > low && middle < high) {
                if (!margins_at(f, middle, g))
                    return false;
                *(g[i] * direction[i] < 0 ? &low : &high) = middle;
            }
            f->root[i] = high;
        }
    }
    memcpy(f->margin, end, sizeof end);
    return true;
}

static void see(flow *f, int event, double s)
{
    if (isnan(f->events[event]))
        f->events[event] = s;
}

/* What holds at this moment, and was not seen before. `hit`: roots that have just been found, which
 * rounding may leave on either side; g: the margins. */
static bool look(flow *f, double s, const bool hit[ROOTS], double g[ROOTS])
{
    place p;
    if (!evaluate(f, s, f->y, &p))
        return false;
    margins(f, &p, f->y, g);
    bool converged = g[CONVERGED] > 0 || hit[CONVERGED];
    bool low = g[GRADIENT] < 0 || hit[GRADIENT];
    bool rest = g[REST] < 0 || hit[REST];
    if (converged)
        see(f, CONVERGED, s);
    if (g[LEFT] > 0 || hit[LEFT])
        see(f, LEFT, s);
    if (low && !converged)
        see(f, GRADIENT, s);
    f->ended = (rest && f->constant_lam) || (p.gradient == 0 && p.d_lam == 0 && f->constant_lam);
    return true;
}

/* ---- the solver -------------------------------------------------------------------------------- */

/* Why there is no next step. A state that is not finite is an answer (diverged), not a failure. */
static fin_status failed(flow *f, double s, fin_error *err)
{
    if (f->status)
        return fini_fail(err, f->status, "run %lld: %s", (long long)f->run, f->error.message);
    if (f->not_finite) {
        for (int i = 0; i < FINI_ODE_MOST; i++)
            f->y[i] = NAN;
        f->ended = true;
        return FIN_OK;
    }
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "run %lld: the flow was not solved beyond step %g: the risk is steeper than "
                     "doubles resolve; take a smaller lam, or rule = descent",
                     (long long)f->run, s);
}

/* From *s on with what there is, as at the beginning of a segment. */
static bool begin(flow *f, double s)
{
    fini_ode_begin(&f->ode, s, f->y);
    for (int i = 0; i < ROOTS; i++)
        f->root[i] = INFINITY;
    return look(f, s, (bool[ROOTS]){false}, f->margin);
}

/* Solves up to time `until`, or to where the run ends. *s: where it is. */
static fin_status solve(flow *f, double *s, double until, fin_error *err)
{
    long steps = f->ode.steps;
    while (*s < until && !f->ended) {
        if (*s >= f->ode.s &&
            (f->ode.steps - steps > most_steps || fini_ode_step(&f->ode, f->end) || !find_roots(f)))
            return failed(f, *s, err);
        bool hit[ROOTS];
        double g[ROOTS], to = fmin(until, f->ode.s);
        for (int i = 0; i < ROOTS; i++)
            to = fmin(to, f->root[i]);
        for (int i = 0; i < ROOTS; i++)
            if ((hit[i] = f->root[i] <= to))
                f->root[i] = INFINITY;
        fini_ode_at(&f->ode, *s = to, f->y);
        if (to == f->ode.s)
            memcpy(f->y, f->ode.y, sizeof f->y);
        if (hit[FLOOR]) /* lam has come down to 0 and is held there */
            f->y[2 * f->n] = 0;
        if (!look(f, to, hit, g) || (hit[FLOOR] && !begin(f, to)))
            return failed(f, *s, err);
    }
    return FIN_OK;
}

/* ---- a run ------------------------------------------------------------------------------------ */

/* The first step after `step` at which lam or alpha changes; INT64_MAX: none. */
static int64_t next_change(int64_t count, const int64_t *steps, int64_t step)
{
    int64_t low = fini_first_from_i64(count, steps, step + 1);
    return low < count ? steps[low] : INT64_MAX;
}

/* Sets what holds from this step on; *end: the step at which it changes. */
static fin_status begin_segment(flow *f, int64_t step, int64_t *end, fin_error *err)
{
    const fin_train *t = f->t;
    int64_t lam_end = next_change(t->lam_count, t->lam_step, step);
    int64_t alpha_end = next_change(t->alpha_count, t->alpha_step, step);
    f->alpha = fini_alpha_at(t, step);
    f->lam = fini_lam_at(t, step) * (1 + t->settings.decay * (double)step);
    f->constant_lam = f->trained || (t->settings.decay == 0 && lam_end == INT64_MAX);
    *end = lam_end < alpha_end ? lam_end : alpha_end;
    f->end = (double)*end;
    return begin(f, (double)step) ? FIN_OK : failed(f, (double)step, err);
}

static void keep(flow *f, double s)
{
    double *x = f->t->state + f->run * f->t->width, k[FRAME], v[FRAME];
    const double *y = f->y;
    fin_overlaps o;
    normalise(f->n, y, k);
    normalise(f->n, y + f->n, v);
    fini_overlaps_of(f->n, k, v, &o);
    double lam = f->trained ? (y[2 * f->n] < 0 ? 0 : y[2 * f->n]) : lam_at(f, s);
    memcpy(x, (double[STATE]){o.kappa, o.nu, o.theta, o.eta, o.rho, lam}, STATE * sizeof *x);
}

static void read(const fin_train *t, int64_t run, fin_overlaps *o, double *lam)
{
    const double *x = t->state + run * t->width;
    *o = (fin_overlaps){x[0], x[1], x[2], x[3], x[4]};
    *lam = x[5];
}

static fin_status start(fin_train *t, int64_t run, fin_error *err)
{
    fin_overlaps o;
    double *x = t->state + run * t->width;
    FINI_TRY(fini_start_overlaps(t, run, &o, err));
    memcpy(x, (double[STATE]){o.kappa, o.nu, o.theta, o.eta, o.rho, fini_lam_at(t, 0)},
           STATE * sizeof *x);
    return FIN_OK;
}

/* Segment after segment, and within it from one logged step to the next. A state logged where lam
 * changes has the lam it was reached with. */
static fin_status solve_run(flow *f, int64_t to, fin_error *err)
{
    fin_train *t = f->t;
    fin_status status = FIN_OK;
    double s = 0;
    int64_t i = 0, end = 0;
    while (!status && (i == 0 || s < (double)to)) {
        if (!f->ended && (status = begin_segment(f, (int64_t)s, &end, err)))
            break;
        int64_t last = end < to && !f->ended ? end : to;
        while (!status && s <= (double)last) {
            bool logged = i < t->logs && t->step[i] <= last;
            double next = (double)(logged ? t->step[i] : last);
            if ((status = solve(f, &s, next, err)))
                break;
            s = next; /* also if the run has ended before */
            if (s > 0 || f->ended)
                keep(f, s);
            fin_overlaps o;
            double lam;
            read(t, f->run, &o, &lam);
            if (!isfinite(o.rho))
                return FIN_OK;
            if (!logged)
                break;
            status = fini_log_point(t, f->run, i++, &o, lam, err);
        }
    }
    return status;
}

static fin_status flow_run(fin_train *t, int64_t run, int64_t to, fin_error *err)
{
    int64_t d = t->task->settings.d;
    fin_overlaps o;
    flow f = {
        .t = t, .run = run, .n = d < FRAME ? (int)d : FRAME, .trained = t->settings.alpha_lam > 0};
    f.ode = (fini_ode){.n = 2 * f.n + f.trained,
                       .relative = relative,
                       .absolute = absolute,
                       .slope = derivative,
                       .user = &f};
    for (int i = 0; i < ROOTS; i++)
        f.events[i] = NAN;
    fin_status status = start(t, run, err);
    if (!status) {
        double lam;
        read(t, run, &o, &lam);
        status = fini_basis_vectors(&o, d, f.n, f.y, f.y + f.n, err);
        if (f.trained)
            f.y[2 * f.n] = lam;
        if (!status)
            status = solve_run(&f, to, err);
    }
    /* Located in time, and not where they were first logged. */
    t->converged_at[run] = f.events[CONVERGED];
    t->left_at[run] = f.events[LEFT];
    t->stuck_at[run] = f.events[GRADIENT];
    return status;
}

static fin_status advance(fin_train *t, void *worker, double *scratch, int64_t first, int count,
                          int64_t from, int64_t to, fin_error *err)
{
    fin_status status = FIN_OK;
    (void)worker, (void)scratch, (void)from;
    for (int64_t run = first; run < first + count && !status; run++) {
        status = flow_run(t, run, to, err);
        if (status == FIN_ERR_NUMERIC) { /* this run ends, the others go on */
            t->state[run * STATE] = NAN;
            status = FIN_OK;
        }
    }
    return status;
}

static int64_t width(const fin_train *t)
{
    (void)t;
    return STATE;
}

static int64_t scratch_size(const fin_train *t)
{
    (void)t;
    return 0;
}

const fini_engine fini_flow = {
    .block = 1,
    .at_once = 0,
    .width = width,
    .scratch = scratch_size,
    .start = start,
    .advance = advance,
    .read = read,
};
