/* log p(V | keys) of the dual method, and its gradient.
 *
 *     log p = -1/2 sum w^2 - dv (sum log C_ll + L/2 log 2 pi)
 *     d log p / d t = sum_ij G_ij dA_ij/dt,  G = (alpha alpha' - dv A^-1) / 2   (R & W, 5.9)
 *
 * G and the covariances are made tile by tile from the lower triangle of A^-1; every row of tiles
 * keeps its own sums, added up in order at the end. */
#include "context/cross.h"

#include <cblas.h>
#include <math.h>
#include <omp.h>
#include <string.h>

fin_status fini_dual_evidence(const fin_cross *o, double *evidence, double *gradient,
                              double *by_column, const fin_progress *progress, fin_error *err);

enum { TILE = FINI_CROSS_TILE };

/* G of a tile, off-diagonal pairs counted twice; what is above the diagonal is 0. */
static void weights_of(const fin_cross *o, const double *inverse, int64_t i, int64_t rows,
                       int64_t j, int64_t columns, double *G)
{
    int64_t dv = o->dv;
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)columns, (int)dv, 1,
                o->alpha + i * dv, (int)dv, o->alpha + j * dv, (int)dv, 0, G, TILE);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t c = 0; c < columns; c++) {
            int64_t a = i + r, b = j + c;
            double g = G[r * TILE + c];
            G[r * TILE + c] =
                b > a ? 0 : (b < a ? 1 : 0.5) * (g - (double)dv * inverse[a * o->tokens + b]);
        }
}

/* sums: prior, noise, columns (dk). */
static void tile_row(const fin_cross *o, const double *inverse, int64_t i, double *tiles,
                     double *sums)
{
    double *K = tiles, *G = tiles + TILE * TILE;
    int64_t n = o->tokens, rows = n - i < TILE ? n - i : TILE;
    for (int64_t j = 0; j <= i; j += TILE) {
        int64_t columns = n - j < TILE ? n - j : TILE;
        fini_covariance_tile(&o->kernel, o->dk, rows, fini_cross_key(o, i), columns,
                             fini_cross_key(o, j), K, TILE);
        weights_of(o, inverse, i, rows, j, columns, G);
        for (int64_t r = 0; r < rows && i == j; r++)
            sums[1] += o->settings.noise * G[r * TILE + r];
        for (int64_t r = 0; r < rows; r++)
            for (int64_t c = 0; c < columns; c++) {
                G[r * TILE + c] *= o->settings.prior;
                sums[0] += G[r * TILE + c] * K[r * TILE + c];
            }
        const fini_covariance_pairs pairs = {
            &o->kernel,           o->dk, rows, columns, fini_cross_key(o, i),
            fini_cross_key(o, j), K,     G,    TILE};
        fini_covariance_scales(&pairs, sums + 2);
    }
}

static fin_status differentiate(const fin_cross *o, double *gradient, double *by_column,
                                const fin_progress *progress, fin_error *err)
{
    int64_t n = o->tokens, strips = (n + TILE - 1) / TILE, width = o->dk + 2;
    int threads = fin_threads_get();
    if (strips < threads)
        threads = (int)strips;
    int64_t numbers = n * n + strips * width + threads * 2 * TILE * TILE;
    double *inverse = fini_alloc_array(numbers, sizeof *inverse);
    if (!inverse)
        return fini_fail_memory(err, (size_t)numbers * sizeof *inverse, "a gradient");
    double *sums = inverse + n * n, *tiles = sums + strips * width;
    for (int64_t i = 0; i < n; i++)
        memcpy(inverse + i * n, o->C + i * o->capacity, (size_t)(i + 1) * sizeof *inverse);
    memset(sums, 0, (size_t)(strips * width) * sizeof *sums);
    fin_status status = fini_spd_inverse(fini_spd_of(n, inverse, n), err);
    if (!status && fini_report(progress, "gradient", 1, 2))
        status = fini_cross_cancelled(err);
    fini_blas_enter();
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t t = strips - 1; t >= 0; t--)
        if (!status)
            tile_row(o, inverse, t * TILE, tiles + omp_get_thread_num() * 2 * TILE * TILE,
                     sums + t * width);
    fini_blas_leave();
    for (int64_t t = 0; t < strips && !status; t++) {
        for (int64_t c = 0; c < o->dk; c++) {
            gradient[0] += sums[t * width + 2 + c];
            by_column[c] += sums[t * width + 2 + c];
        }
        gradient[1] += sums[t * width];
        gradient[2] += sums[t * width + 1];
    }
    fini_free(inverse);
    return status;
}

fin_status fini_dual_evidence(const fin_cross *o, double *evidence, double *gradient,
                              double *by_column, const fin_progress *progress, fin_error *err)
{
    double sum = 0;
    for (int64_t i = 0; i < o->tokens * o->dv; i++)
        sum += o->w[i] * o->w[i];
    *evidence = -0.5 * sum - 0.5 * (double)o->dv *
                                 (fini_spd_logdet(fini_spd_of(o->tokens, o->C, o->capacity)) +
                                  (double)o->tokens * log(FINI_TWO_PI));
    return gradient ? differentiate(o, gradient, by_column, progress, err) : FIN_OK;
}
