/* What the files of the commands of learning would otherwise all have: see small.h. */
#include "lab/small.h"

fin_status fini_small_frame_run(const fini_small_frame *frame, void *work, fin_result *result,
                                const fin_progress *progress, fin_error *err)
{
    frame->lay_out(work);
    fin_status status = fini_arena_open(frame->arena, frame->what, err);
    if (status)
        return status;
    frame->lay_out(work);
    status = frame->measure(work, result, progress, err);
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

fin_status fini_small_check_tokens(int64_t n, const fini_small_task *task, fin_error *err)
{
    double numbers = (double)n * (double)task->L * (double)(task->d + task->dv);
    if (numbers <= 2e8)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "%lld sequences of L = %lld tokens are %g numbers, more than 2e8; a smaller "
                     "L does",
                     (long long)n, (long long)task->L, numbers);
}
