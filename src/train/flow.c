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
 * so the equations are stiff, and an explicit method would crawl. CVODE solves them with backward
 * differences and a dense Newton iteration (Hindmarsh et al., ACM TOMS 31, 2005), and its root
 * finding gives the times of events. Logged states are interpolated: they do not change the steps
 * taken. A run is always solved from its beginning, so it has the same bytes wherever it was
 * stopped; its objects are made anew, so nothing is left of another run. */
#include "train/train.h"
#include "math/small.h"

#include <cvode/cvode.h>
#include <nvector/nvector_serial.h>
#include <sundials/sundials_config.h>
#include <sunlinsol/sunlinsol_dense.h>
#include <sunmatrix/sunmatrix_dense.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { FRAME = 4, STATE = 6 };
/* Roots: times when these pass through zero, the first two upwards, the others downwards. */
enum { CONVERGED, LEFT, GRADIENT, REST, FLOOR, ROOTS };

static const double relative = 1e-10, absolute = 1e-12;
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
    char message[192]; /* the solver's */

    SUNContext context;
    N_Vector y;
    SUNMatrix matrix;
    SUNLinearSolver solver;
    void *cvode;
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

static int derivative(sunrealtype s, N_Vector at, N_Vector out, void *user)
{
    flow *f = user;
    place p;
    double *dy = N_VGetArrayPointer_Serial(out);
    if (!evaluate(f, s, N_VGetArrayPointer_Serial(at), &p))
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

static int roots(sunrealtype s, N_Vector at, sunrealtype *g, void *user)
{
    flow *f = user;
    place p;
    const double *y = N_VGetArrayPointer_Serial(at);
    if (!evaluate(f, s, y, &p))
        return -1;
    margins(f, &p, y, g);
    return 0;
}

static void see(flow *f, int event, double s)
{
    if (isnan(f->events[event]))
        f->events[event] = s;
}

/* What holds at this moment, and was not seen before. `hit`: roots the solver has just found, which
 * rounding may leave on either side; NULL: none. */
static bool look(flow *f, double s, const int *hit)
{
    place p;
    double g[ROOTS], *y = N_VGetArrayPointer_Serial(f->y);
    if (!evaluate(f, s, y, &p))
        return false;
    margins(f, &p, y, g);
    bool converged = g[CONVERGED] > 0 || (hit && hit[CONVERGED]);
    bool low = g[GRADIENT] < 0 || (hit && hit[GRADIENT]);
    bool rest = g[REST] < 0 || (hit && hit[REST]);
    if (converged)
        see(f, CONVERGED, s);
    if (g[LEFT] > 0 || (hit && hit[LEFT]))
        see(f, LEFT, s);
    if (low && !converged)
        see(f, GRADIENT, s);
    f->ended = (rest && f->constant_lam) || (p.gradient == 0 && p.d_lam == 0 && f->constant_lam);
    return true;
}

/* ---- the solver -------------------------------------------------------------------------------- */

#if SUNDIALS_VERSION_MAJOR < 7
static void keep_message(int code, const char *module, const char *function, char *text, void *user)
{
    flow *f = user;
    (void)code, (void)module;
    snprintf(f->message, sizeof f->message, "%s: %s", function, text);
}
#else
static void keep_message(int line, const char *function, const char *file, const char *text,
                         SUNErrCode code, void *user, SUNContext context)
{
    flow *f = user;
    (void)line, (void)file, (void)code, (void)context;
    snprintf(f->message, sizeof f->message, "%s: %s", function, text);
}
#endif

static void close_solver(flow *f)
{
    CVodeFree(&f->cvode);
    if (f->solver)
        SUNLinSolFree(f->solver);
    if (f->matrix)
        SUNMatDestroy(f->matrix);
    if (f->y)
        N_VDestroy(f->y);
    if (f->context)
        SUNContext_Free(&f->context);
}

static fin_status open_solver(flow *f, fin_error *err)
{
    int size = 2 * f->n + f->trained, directions[ROOTS] = {1, 1, -1, -1, -1};
#if SUNDIALS_VERSION_MAJOR < 7
    bool made = SUNContext_Create(NULL, &f->context) == 0;
#else
    bool made = SUNContext_Create(SUN_COMM_NULL, &f->context) == 0 &&
                SUNContext_PushErrHandler(f->context, keep_message, f) == 0;
#endif
    if (made) {
        f->y = N_VNew_Serial(size, f->context);
        f->matrix = SUNDenseMatrix(size, size, f->context);
        f->solver = f->y && f->matrix ? SUNLinSol_Dense(f->y, f->matrix, f->context) : NULL;
        f->cvode = f->solver ? CVodeCreate(CV_BDF, f->context) : NULL;
    }
    if (!f->cvode)
        return fini_fail(err, FIN_ERR_MEMORY, "out of memory: the solver of a flow");
#if SUNDIALS_VERSION_MAJOR < 7
    CVodeSetErrHandlerFn(f->cvode, keep_message, f);
#endif
    N_VConst(0, f->y); /* the start is set when the first segment begins */
    if (CVodeSetUserData(f->cvode, f) || CVodeInit(f->cvode, derivative, 0, f->y) ||
        CVodeSStolerances(f->cvode, relative, absolute) ||
        CVodeSetLinearSolver(f->cvode, f->solver, f->matrix) ||
        CVodeSetMaxNumSteps(f->cvode, most_steps) || CVodeSetMaxHnilWarns(f->cvode, -1) ||
        CVodeRootInit(f->cvode, ROOTS, roots) || CVodeSetRootDirection(f->cvode, directions) ||
        CVodeSetNoInactiveRootWarn(f->cvode))
        return fini_fail(err, FIN_ERR_MEMORY, "out of memory: the solver of a flow (%s)",
                         f->message);
    return FIN_OK;
}

/* Why the solver stopped. A state that is not finite is an answer (diverged), not a failure. */
static fin_status failed(flow *f, double s, fin_error *err)
{
    if (f->status)
        return fini_fail(err, f->status, "run %lld: %s", (long long)f->run, f->error.message);
    if (f->not_finite) {
        N_VConst(NAN, f->y);
        f->ended = true;
        return FIN_OK;
    }
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "run %lld: the flow was not solved beyond step %g (%s): the risk is steeper "
                     "than doubles resolve; take a smaller lam, or rule = descent",
                     (long long)f->run, s, f->message);
}

/* Solves up to time `until`, or to where the run ends. *s: where it is. */
static fin_status solve(flow *f, double *s, double until, fin_error *err)
{
    while (*s < until && !f->ended) {
        int hit[ROOTS], code = CVode(f->cvode, until, f->y, s, CV_NORMAL);
        if (code < 0)
            return failed(f, *s, err);
        if (code == CV_ROOT_RETURN) {
            if (CVodeGetRootInfo(f->cvode, hit))
                return failed(f, *s, err);
            if (hit[FLOOR]) { /* lam has come down to 0 and is held there */
                N_VGetArrayPointer_Serial(f->y)[2 * f->n] = 0;
                if (CVodeReInit(f->cvode, *s, f->y))
                    return failed(f, *s, err);
            }
        }
        if (!look(f, *s, code == CV_ROOT_RETURN ? hit : NULL))
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
    /* Set in the last segment too: the solver may have kept the one before. */
    if (CVodeReInit(f->cvode, (double)step, f->y) || CVodeSetStopTime(f->cvode, (double)*end) ||
        !look(f, (double)step, NULL))
        return failed(f, (double)step, err);
    return FIN_OK;
}

static void keep(flow *f, double s)
{
    double *x = f->t->state + f->run * f->t->width, k[FRAME], v[FRAME];
    const double *y = N_VGetArrayPointer_Serial(f->y);
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
    fin_status status = fini_start_overlaps(t, run, &o, err);
    if (!status)
        memcpy(x, (double[STATE]){o.kappa, o.nu, o.theta, o.eta, o.rho, fini_lam_at(t, 0)},
               STATE * sizeof *x);
    return status;
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
    for (int i = 0; i < ROOTS; i++)
        f.events[i] = NAN;
    fin_status status = start(t, run, err);
    if (!status && !(status = open_solver(&f, err))) {
        double *y = N_VGetArrayPointer_Serial(f.y), lam;
        read(t, run, &o, &lam);
        status = fini_basis_vectors(&o, d, f.n, y, y + f.n, err);
        if (f.trained)
            y[2 * f.n] = lam;
        if (!status)
            status = solve_run(&f, to, err);
    }
    close_solver(&f);
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
