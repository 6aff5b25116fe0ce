/* The exact posterior of the location given the tokens, and the Bayes prediction.
 *
 * Log-odds of token l, up to a constant, by Bayes' rule from the densities of both kinds of token:
 *     -|X_l - mu k*|^2 / (2 gamma^2) + |X_l|^2 / 2 = lam X_l.k* + c |X_l|^2 + const
 *     lam = mu / gamma^2,  c = (1 - 1/gamma^2) / 2
 * Tasks that decide relevance by odds have those instead (max: lam = snr, c = 0).
 */
#include "task/task.h"

#include "kernel/kernel.h"
#include "math/small.h"

#include <math.h>

void fin_task_bayes_parameters(const fin_task *task, double *lam, double *c)
{
    if (!task || !lam || !c)
        return;
    const fin_task_settings *s = &task->settings;
    *lam = !task->kind->odds ? s->mu / (s->gamma * s->gamma)
           : task->kind->lam ? task->kind->lam(s)
                             : NAN;
    *c = task->kind->odds || s->gamma == 1 ? 0 : (1 - 1 / (s->gamma * s->gamma)) / 2;
}

enum { BLOCK = 64 };

static void project_rows(const fin_task *task, const fin_batch *batch, int64_t row, int64_t rows,
                         double *chi, double *z, double *norm2)
{
    const fini_kernel *kernel = fini_kernel_get();
    int64_t d = batch->d;
    if (batch->dtype == FIN_F32)
        kernel->project_norm_f32(rows, d, (const float *)batch->tokens + row * d, task->k_star,
                                 task->v_star, chi, z, norm2);
    else
        kernel->project_norm_f64(rows, d, (const double *)batch->tokens + row * d, task->k_star,
                                 task->v_star, chi, z, norm2);
}

/* One pass over the tokens of a sample with a running softmax: w (log-odds, may be NULL) and the
 * weighted sum of z. */
static double scan(const fin_task *task, const fin_batch *batch, int64_t row, int64_t L, double *w)
{
    double (*odds_of)(const fin_task_settings *s, double chi_star) = task->kind->odds;
    double lam, c, top = -INFINITY, total = 0, sum = 0;
    fin_task_bayes_parameters(task, &lam, &c);
    int hard = isinf(lam);
    for (int64_t from = 0; from < L; from += BLOCK) {
        double chi[BLOCK], z[BLOCK], norm2[BLOCK];
        int64_t rows = L - from < BLOCK ? L - from : BLOCK;
        project_rows(task, batch, row + from, rows, chi, z, norm2);
        for (int64_t t = 0; t < rows; t++) {
            double odds = odds_of ? odds_of(&task->settings, chi[t]) : lam * chi[t] + c * norm2[t];
            if (w)
                w[from + t] = odds;
            if (odds > top) {
                double shrink = hard ? 0 : exp(top - odds);
                total *= shrink;
                sum *= shrink;
                top = odds;
            }
            double weight = hard ? odds == top : exp(odds - top);
            total += weight;
            sum += weight * z[t];
        }
    }
    if (w && hard)
        for (int64_t l = 0; l < L; l++)
            w[l] = w[l] == top ? INFINITY : -INFINITY;
    return sum / total;
}

static fin_status check(const fin_task *task, const fin_batch *batch, fin_error *err)
{
    const fin_task_settings *s = &task->settings;
    if (!task->k_star)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "the task has no vectors to compare tokens with; make it with FIN_TASK_AMBIENT");
    if (batch->d != s->d)
        return fini_fail(err, FIN_ERR_ARGUMENT, "the batch has d = %lld, the task d = %lld",
                         (long long)batch->d, (long long)s->d);
    if (batch->dtype != FIN_F32 && batch->dtype != FIN_F64)
        return fini_fail(err, FIN_ERR_ARGUMENT, "tokens must be FIN_F32 or FIN_F64, not type %d",
                         (int)batch->dtype);
    if (batch->n < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "the batch has n = %lld samples",
                         (long long)batch->n);
    for (int64_t i = 0; i < batch->n; i++)
        if (batch->offsets[i + 1] <= batch->offsets[i])
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "sample %lld has %lld tokens; a location needs at least one",
                             (long long)i, (long long)(batch->offsets[i + 1] - batch->offsets[i]));
    if (s->m != 1)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the location posterior is computed for m = 1 only, here m = %lld",
                         (long long)s->m);
    if (s->gamma == 0)
        return fini_fail(
            err, FIN_ERR_UNSUPPORTED,
            "with gamma = 0 the relevant token is the constant mu k*: it has no density and "
            "no posterior; take gamma > 0");
    return FIN_OK;
}

static int threads_for(const fin_batch *batch)
{
    return fini_threads_for((double)(batch->offsets[batch->n] - batch->offsets[0]) *
                            (double)batch->d);
}

fin_status fin_task_posterior(const fin_task *task, const fin_batch *batch, double *w,
                              fin_error *err)
{
    FINI_NEED(err, task, batch, w);
    fin_status status = check(task, batch, err);
    if (status)
        return status;
    int threads = threads_for(batch);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads)
    for (int64_t i = 0; i < batch->n; i++) {
        int64_t row = batch->offsets[i] - batch->offsets[0];
        int64_t L = batch->offsets[i + 1] - batch->offsets[i];
        scan(task, batch, row, L, w + row);
        fini_softmax(L, w + row, false);
    }
    return FIN_OK;
}

fin_status fin_task_predict(const fin_task *task, const fin_batch *batch, double *y, fin_error *err)
{
    FINI_NEED(err, task, batch, y);
    fin_status status = check(task, batch, err);
    if (status)
        return status;
    int threads = threads_for(batch);
#pragma omp parallel for schedule(dynamic, 16) num_threads(threads)
    for (int64_t i = 0; i < batch->n; i++)
        y[i] = scan(task, batch, batch->offsets[i] - batch->offsets[0],
                    batch->offsets[i + 1] - batch->offsets[i], NULL);
    return FIN_OK;
}
