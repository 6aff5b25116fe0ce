/* The learning curve from the rows of C^-1 K_q: error and score after every token.
 *
 * The factor of the first l tokens is the corner of the factor of all, so that one factor has every
 * prefix in it. Threads share the queries, whose sums run over the tokens, and then the entries of
 * the curve, whose sums run over the queries: every sum has one order. */
#include "context/cross.h"

#include <math.h>

/* Squared error and minus log density of one query's answer, summed over its columns. */
static void term(const fini_prefix *p, int64_t q, double *error, double *score)
{
    double sum = 0, variance = fmax(p->variance[q], 0) + p->noise;
    for (int64_t c = 0; c < p->dv; c++) {
        double miss = p->mean[q * p->dv + c] - p->answers[q * p->dv + c];
        sum += miss * miss;
    }
    *error = sum;
    if (p->score)
        *score = 0.5 * ((double)p->dv * log(FINI_TWO_PI * variance) + sum / variance);
}

static void collect(const fini_prefix *p, int64_t entry, const double *errors, const double *scores)
{
    double error = 0, score = 0;
    for (int64_t q = 0; q < p->m; q++)
        error += errors[q];
    p->error[entry] += error;
    for (int64_t q = 0; q < p->m && p->score; q++)
        score += scores[q];
    if (p->score)
        p->score[entry] += score;
}

void fini_prefix_now(const fini_prefix *p, int64_t l)
{
    double *errors = p->terms, *scores = p->terms + p->m;
    for (int64_t q = 0; q < p->m; q++)
        term(p, q, errors + q, scores + q);
    collect(p, l, errors, scores);
}

/* Queries from .. to - 1: X_iq becomes the error after token i. */
static void walk(const fini_prefix *p, int64_t rows, double *X, const double *w, int64_t from,
                 int64_t to)
{
    for (int64_t i = 0; i < rows; i++)
        for (int64_t q = from; q < to; q++) {
            double x = X[i * p->m + q];
            p->variance[q] -= x * x;
            for (int64_t c = 0; c < p->dv; c++)
                p->mean[q * p->dv + c] += x * w[i * p->dv + c];
            term(p, q, X + i * p->m + q, p->terms + i * p->m + q);
        }
}

void fini_prefix_rows(const fini_prefix *p, int64_t l, int64_t rows, double *X, const double *w)
{
    enum { WIDTH = 32 };
    int threads = rows * p->m < 4 * FINI_CROSS_FEW ? 1 : fin_threads_get();
#pragma omp parallel num_threads(threads)
    {
#pragma omp for schedule(dynamic)
        for (int64_t q = 0; q < p->m; q += WIDTH)
            walk(p, rows, X, w, q, p->m - q < WIDTH ? p->m : q + WIDTH);
#pragma omp for schedule(static)
        for (int64_t i = 0; i < rows; i++)
            collect(p, l + i + 1, X + i * p->m, p->terms + i * p->m);
    }
}
