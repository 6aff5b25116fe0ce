/* Monte Carlo means that are the same for any number of threads. */
#include "theory/theory.h"

#include <math.h>
#include <omp.h>

enum { WAVE = 64 };                 /* most chunks between two reports of progress */
static const double pause = 0x1p22; /* tokens between two reports, if a chunk has not more */

/* Count, mean and sum of squared deviations of some samples, and the largest of them. */
typedef struct summary {
    double n, mean, M2, largest;
} summary;

static summary merge(summary a, summary b)
{
    double n = a.n + b.n, gap = b.mean - a.mean;
    if (n == 0)
        return a;
    summary both = {n, a.mean + gap * (b.n / n), a.M2 + b.M2 + gap * gap * (a.n * b.n / n),
                    fmax(a.largest, b.largest)};
    return both;
}

static summary run_chunk(const fini_simulation *s, int64_t from, int64_t to, double *scratch)
{
    summary chunk = {0, 0, 0, 0};
    for (int64_t i = from; i < to; i++) {
        double value = s->draw(s->model, (uint64_t)i, scratch), gap = value - chunk.mean;
        chunk.n++;
        chunk.mean += gap / chunk.n;
        chunk.M2 += gap * (value - chunk.mean);
        chunk.largest = fmax(chunk.largest, fabs(value));
    }
    return chunk;
}

fin_status fini_simulate(const fini_simulation *s, const fin_progress *progress,
                         fin_estimate *estimate, fin_error *err)
{
    int threads = fini_threads_for((double)s->samples * s->weight);
    int64_t chunk = (int64_t)(65536 / (s->weight > 1 ? s->weight : 1));
    chunk = chunk < 1 ? 1 : chunk > 256 ? 256 : chunk;
    int64_t chunks = (s->samples + chunk - 1) / chunk;
    int64_t room = (s->scratch + 7) / 8 * 8, numbers;
    double *scratch = __builtin_mul_overflow(room, (int64_t)threads, &numbers)
                          ? NULL
                          : fini_alloc_array(numbers, sizeof *scratch);
    if (!scratch)
        return fini_fail(err, FIN_ERR_MEMORY,
                         "out of memory: a simulation with %lld numbers a thread", (long long)room);
    summary total = {0, 0, 0, 0};
    bool stop = fini_report(progress, s->what, 0, (double)s->samples);
    int64_t most = (int64_t)(pause / ((double)chunk * (s->weight > 1 ? s->weight : 1)));
    most = most < threads ? threads : most;
    most = most > WAVE ? WAVE : most;
    for (int64_t wave = 0; wave < chunks && !stop; wave += most) {
        summary parts[WAVE];
        int64_t count = chunks - wave < most ? chunks - wave : most;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (int64_t c = 0; c < count; c++) {
            int64_t from = (wave + c) * chunk, to = from + chunk;
            parts[c] = run_chunk(s, from, to < s->samples ? to : s->samples,
                                 scratch + omp_get_thread_num() * room);
        }
        for (int64_t c = 0; c < count; c++)
            total = merge(total, parts[c]);
        stop = fini_report(progress, s->what, total.n, (double)s->samples);
    }
    fini_free(scratch);
    if (stop && total.n < (double)s->samples)
        return fini_fail(err, FIN_ERR_CANCELLED, "cancelled after %.0f of %lld samples", total.n,
                         (long long)s->samples);
    if (!isfinite(total.mean))
        return fini_fail(err, FIN_ERR_NUMERIC, "the simulation overflows at these settings");
    *estimate = (fin_estimate){.value = total.mean,
                               .error = sqrt(total.M2 / (total.n - 1) / total.n),
                               .method = FIN_METHOD_SIMULATION,
                               .samples = s->samples,
                               .rare = total.largest >= 0.1 * total.n * fabs(total.mean)};
    return FIN_OK;
}
