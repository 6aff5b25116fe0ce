/* What the commands of learning share: small positive definite systems, and their frame. See mixed.h. */
#include "lab/mixed.h"

#include "math/gram.h"

#include <lapacke.h>
#include <string.h>

int64_t fini_hand_eigen_work(int64_t n)
{
    return 64 * n;
}

/* LAPACK counts by columns: what it leaves in columns are our rows. */
fin_status fini_hand_eigen(int64_t n, double *A, double *w, double *work, fin_error *err)
{
    fini_blas_enter();
    lapack_int info =
        LAPACKE_dsyev_work(LAPACK_COL_MAJOR, 'V', 'U', (lapack_int)n, A, (lapack_int)n, w, work,
                           (lapack_int)fini_hand_eigen_work(n));
    fini_blas_leave();
    if (info != 0)
        return fini_fail(err, FIN_ERR_NUMERIC, "LAPACK dsyev gave up on %lld rows (info %d)",
                         (long long)n, (int)info);
    return FIN_OK;
}

double fini_hand_dot(int64_t n, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

void fini_hand_mirror(int64_t n, double *A)
{
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = i + 1; j < n; j++)
            A[i * n + j] = A[j * n + i];
}

bool fini_hand_regress(int64_t n, int64_t width, const double *x, const double *y, double *room,
                       double *answer)
{
    memset(room, 0, (size_t)(width * width) * sizeof *room);
    memset(answer, 0, (size_t)width * sizeof *answer);
    for (int64_t i = 0; i < n; i++, x += width)
        for (int64_t a = 0; a < width; a++) {
            answer[a] += x[a] * y[i];
            for (int64_t b = 0; b <= a; b++)
                room[a * width + b] += x[a] * x[b];
        }
    if (!fini_hand_cholesky(width, room))
        return false;
    fini_hand_solve(width, room, answer);
    return true;
}

uint64_t fini_lab_seed(int64_t seed, int64_t L, int64_t n)
{
    return (uint64_t)fini_seed_apart(fini_seed_apart(fini_seed_apart(seed) ^ L) ^ n);
}

/* ---- the frame of a command ------------------------------------------------------------------- */

fin_status fini_lab_frame_run(const fini_lab_frame *frame, void *work, fin_result *result,
                              const fin_progress *progress, fin_error *err)
{
    frame->lay_out(work);
    FINI_TRY(fini_blas_ready(err));
    FINI_TRY(fini_arena_open(frame->arena, frame->what, err));
    frame->lay_out(work);
    fin_status status = frame->measure(work, result, progress, err);
    fini_arena_close(frame->arena);
    return status;
}

void fini_result_average(fin_result *result, const char *name, const fini_average *average,
                         double factor)
{
    fini_result_scalar(result, name, factor * average->mean, factor * fini_average_error(average),
                       FIN_HOW_SIMULATION, average->count);
}

void fini_result_exact(fin_result *result, const char *name, double value)
{
    fini_result_scalar(result, name, value, 0, FIN_HOW_CLOSED, 0);
}

fin_status fini_mixed_check_tokens(int64_t n, const fini_mixed_task *task, fin_error *err)
{
    double numbers = (double)n * (double)task->L * (double)(task->d + task->dv);
    if (numbers <= 2e8)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "%lld sequences of L = %lld tokens are %g numbers, more than 2e8; a smaller "
                     "L does",
                     (long long)n, (long long)task->L, numbers);
}
