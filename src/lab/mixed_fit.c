/* Nonlinear least squares by Levenberg's and Marquardt's method, with exact derivatives.
 *
 *     (J'J + mu) step = -J'r,  mu by the rule of Nielsen (1999)
 *
 * The models have directions in which nothing changes (K and Wq turned together); mu takes care of
 * them. What the method leaves out of the second derivatives is r times those of the model, so that
 * it ends fast where residuals are small or like noise. */
#include "lab/mixed.h"

#include "math/gram.h"
#include "math/lbfgs.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum { ROWS_AT_ONCE = 256 };

void fini_mixed_fit_take(fini_mixed_fit *fit, fini_arena *arena, int64_t parameters, int64_t rows)
{
    double **const vectors[] = {&fit->g, &fit->step, &fit->trial, &fit->from, &fit->trial_g};
    fit->parameters = parameters;
    fit->block = rows < ROWS_AT_ONCE ? ROWS_AT_ONCE / rows : 1;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = fini_take(arena, parameters, sizeof(double));
    fit->H = fini_take(arena, parameters * parameters, sizeof(double));
    fit->C = fini_take(arena, parameters * parameters, sizeof(double));
    fit->trial_H = fini_take(arena, parameters * parameters, sizeof(double));
    fit->J = fini_take(arena, fit->block * rows * parameters, sizeof(double));
    fit->r = fini_take(arena, fit->block * rows, sizeof(double));
}

double fini_mixed_sums(fini_mixed_fit *fit, const fini_mixed_rows *o, const double *theta,
                       double *g, double *H)
{
    int P = (int)o->parameters;
    double sum = 0, scale = 1 / ((double)o->n * o->share);
    if (g)
        memset(g, 0, (size_t)P * sizeof *g);
    if (g && !H && o->slope) {
        for (int64_t i = 0; i < o->n; i++)
            sum += o->slope(o->user, theta, i, g);
        for (int i = 0; i < P; i++)
            g[i] *= scale;
        return sum * scale;
    }
    if (H)
        memset(H, 0, (size_t)P * (size_t)P * sizeof *H);
    fini_blas_enter();
    for (int64_t first = 0; first < o->n; first += fit->block) {
        int64_t count = o->n - first < fit->block ? o->n - first : fit->block;
        int rows = (int)(count * o->rows);
        for (int64_t i = 0; i < count; i++)
            o->one(o->user, theta, first + i, fit->r + i * o->rows,
                   g || H ? fit->J + i * o->rows * P : NULL);
        for (int i = 0; i < rows; i++)
            sum += fit->r[i] * fit->r[i];
        if (g)
            cblas_dgemv(CblasRowMajor, CblasTrans, rows, P, scale, fit->J, P, fit->r, 1, 1, g, 1);
        if (H)
            cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, P, rows, scale, fit->J, P, 1, H, P);
    }
    fini_blas_leave();
    return sum * scale;
}

/* The step from theta to trial; false if the matrix is not positive definite. */
static bool try_step(fini_mixed_fit *fit, const double *theta, double mu)
{
    int64_t P = fit->parameters;
    memcpy(fit->C, fit->H, (size_t)(P * P) * sizeof *fit->C);
    for (int64_t i = 0; i < P; i++) {
        fit->C[i * P + i] += mu;
        fit->step[i] = -fit->g[i];
    }
    if (!fini_hand_cholesky(P, fit->C))
        return false;
    fini_hand_solve(P, fit->C, fit->step);
    for (int64_t i = 0; i < P; i++)
        fit->trial[i] = theta[i] + fit->step[i];
    return true;
}

/* theta <- trial, with its derivatives. */
static void take_trial(fini_mixed_fit *fit, double *theta, double value)
{
    double *g = fit->g, *H = fit->H;
    memcpy(theta, fit->trial, (size_t)fit->parameters * sizeof *theta);
    fit->value = value;
    fit->g = fit->trial_g;
    fit->H = fit->trial_H;
    fit->trial_g = g;
    fit->trial_H = H;
}

static double first_mu(const fini_mixed_fit *fit)
{
    double most = 0;
    for (int64_t i = 0; i < fit->parameters; i++)
        most = fmax(most, fit->H[i * fit->parameters + i]);
    return 1e-4 * most;
}

void fini_mixed_fit_run(fini_mixed_fit *fit, const fini_mixed_rows *rows, double *theta)
{
    int64_t P = fit->parameters;
    double mu, more = 2;
    fit->value = fini_mixed_sums(fit, rows, theta, fit->g, fit->H);
    mu = first_mu(fit);
    double most = 1e12 * mu;
    for (fit->steps = 0; fit->steps < fit->most; fit->steps++) {
        fit->gradient = 2 * sqrt(fini_hand_dot(P, fit->g, fit->g));
        if (!(fit->gradient > fit->enough) || !isfinite(fit->value) || mu > most)
            return;
        double value = NAN, expected = 0;
        if (try_step(fit, theta, mu)) {
            value = fini_mixed_sums(fit, rows, fit->trial, fit->trial_g, fit->trial_H);
            expected =
                mu * fini_hand_dot(P, fit->step, fit->step) - fini_hand_dot(P, fit->g, fit->step);
        }
        /* Near the end the last digits of the value are noise. */
        if (!(value <= fit->value * (1 + 1e-14))) {
            mu *= more;
            more *= 2;
            continue;
        }
        double gain = expected > 0 ? (fit->value - value) / expected : 1;
        mu *= fmax(1.0 / 3, 1 - pow(2 * gain - 1, 3));
        mu = fmax(mu, 1e-24 * most);
        more = 2;
        take_trial(fit, theta, value);
    }
    fit->gradient = 2 * sqrt(fini_hand_dot(P, fit->g, fit->g));
}

/* ---- quasi-Newton ---------------------------------------------------------------------------- */

/* theta = from + C'^-1 x, so that the gradient in x is C^-1 times that in theta. */
static fin_status whitened(void *user, const double *x, double *value, double *gradient,
                           fin_error *err)
{
    fini_mixed_fit *fit = user;
    int64_t P = fit->parameters;
    (void)err;
    memcpy(fit->trial, x, (size_t)P * sizeof *x);
    fini_spd_upper(fini_hand(P, fit->C), 1, fit->trial, 1);
    for (int64_t i = 0; i < P; i++)
        fit->trial[i] += fit->from[i];
    *value = fini_mixed_sums(fit, fit->now, fit->trial, gradient, NULL);
    for (int64_t i = 0; i < P; i++)
        gradient[i] *= 2;
    fini_spd_lower(fini_hand(P, fit->C), 1, gradient, 1);
    return FIN_OK;
}

fin_status fini_mixed_fit_descend(fini_mixed_fit *fit, const fini_mixed_rows *rows, double *theta,
                                  fin_error *err)
{
    int64_t P = fit->parameters;
    fini_lbfgs search;
    fit->now = rows;
    fit->value = fini_mixed_sums(fit, rows, theta, fit->g, fit->H);
    double mu = first_mu(fit);
    memcpy(fit->from, theta, (size_t)P * sizeof *theta);
    if (!try_step(fit, theta, mu))
        return fini_fail(err, FIN_ERR_NUMERIC, "the derivatives at the start are no numbers");
    FINI_TRY(fini_lbfgs_create(&search, P, err));
    search.iterations = fit->most;
    search.gradient = fit->enough;
    search.decrease = fit->decrease;
    search.function = whitened;
    search.user = fit;
    memset(fit->step, 0, (size_t)P * sizeof *fit->step);
    fin_status status = fini_lbfgs_run(&search, fit->step, err);
    fit->steps = search.done;
    fini_lbfgs_close(&search);
    fini_spd_upper(fini_hand(P, fit->C), 1, fit->step, 1);
    for (int64_t i = 0; i < P; i++)
        theta[i] = fit->from[i] + fit->step[i];
    fit->value = fini_mixed_sums(fit, rows, theta, fit->g, NULL);
    fit->gradient = 2 * sqrt(fini_hand_dot(P, fit->g, fit->g));
    return status;
}

/* ---- a model on a set ------------------------------------------------------------------------ */

static void one(const void *user, const double *theta, int64_t i, double *residual, double *J)
{
    const fini_mixed_loss *o = user;
    const fini_mixed_model *m = o->model;
    const double *all = m->form == FINI_MIXED_LABEL ? o->set->label : o->set->y;
    const double *y = all + i * m->rows;
    fini_mixed_answers(m, theta, o->set, i, residual, J);
    for (int64_t k = 0; k < m->rows; k++)
        residual[k] -= y[k];
}

static double slope(const void *user, const double *theta, int64_t i, double *g)
{
    const fini_mixed_loss *o = user;
    return fini_mixed_cme_slope(o->model, theta, o->set, i, g);
}

fini_mixed_rows fini_mixed_rows_of(const fini_mixed_loss *loss)
{
    const fini_mixed_model *m = loss->model;
    return (fini_mixed_rows){.n = loss->set->n,
                             .rows = m->rows,
                             .parameters = m->parameters,
                             .share = m->form == FINI_MIXED_LABEL ? 1 : (double)m->M,
                             .user = loss,
                             .one = one,
                             .slope = m->form == FINI_MIXED_CME ? slope : NULL};
}

fin_status fini_mixed_learn(fini_mixed_fit *fit, const fini_mixed_loss *loss, const double *from,
                            double *theta, fin_error *err)
{
    fini_mixed_rows rows = fini_mixed_rows_of(loss);
    memcpy(theta, from, (size_t)rows.parameters * sizeof *theta);
    fit->most = 300;
    fit->decrease = 1e-6;
    if (loss->model->form != FINI_MIXED_SOFTMAX)
        return fini_mixed_fit_descend(fit, &rows, theta, err);
    fini_mixed_fit_run(fit, &rows, theta);
    return FIN_OK;
}

enum { LM_STEPS = 60 };

fin_status fini_mixed_search(fini_mixed_fit *fit, const fini_mixed_rows *rows, double *theta,
                             int64_t steps, int64_t *taken, const fin_progress *progress,
                             fin_error *err)
{
    fin_status status = FIN_OK;
    double before = INFINITY;
    for (*taken = 0; *taken < steps && !status;) {
        int64_t left = steps - *taken;
        FINI_TRY(fini_go_on(progress, "descending", (double)*taken, (double)steps, err));
        fit->most = left < LM_STEPS ? left : LM_STEPS;
        fini_mixed_fit_run(fit, rows, theta);
        *taken += fit->steps + 1;
        if (!(fit->gradient > fit->enough) || *taken >= steps)
            break;
        left = steps - *taken;
        fit->most = left < 4 * LM_STEPS ? left : 4 * LM_STEPS;
        status = fini_mixed_fit_descend(fit, rows, theta, err);
        *taken += fit->steps + 1;
        if (!(fit->gradient > fit->enough) || !(before - fit->value > fit->decrease * fit->value))
            break;
        before = fit->decrease > 0 ? fit->value : INFINITY;
    }
    return status;
}
