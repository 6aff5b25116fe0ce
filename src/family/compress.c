/* Two other ways through the tokens of a linear family: compressed to a few pseudo-tokens with the
 * same statistic, and one at a time by Kalman's recursion. */
#include "family/family.h"

#include "math/gram.h"
#include "math/spd.h"

#include <lapacke.h>

static fin_status check(const fin_latent *latent, bool able, const char *what, int64_t L,
                        const double *keys, const double *values, fin_error *err)
{
    if (!able)
        return fini_fail(err, FIN_ERR_UNSUPPORTED, "%s: %s", latent->family->name, what);
    return fini_latent_check_tokens(latent, L, keys, values, err);
}

/* ---- pseudo-tokens --------------------------------------------------------------------------- */

/* Rows [phi, v] of n tokens below the first `above` rows of A (by columns, `rows` of them). */
static void put_rows(const fin_latent *latent, int64_t n, const double *keys, const double *values,
                     int64_t above, int64_t rows, double *A, double *phi)
{
    int64_t D = latent->shape.features, dv = latent->shape.dv, dk = latent->shape.dk;
    for (int64_t l = 0; l < n; l++) {
        fini_features(latent, 1, keys ? keys + l * dk : NULL, phi, D);
        for (int64_t i = 0; i < D; i++)
            A[i * rows + above + l] = phi[i];
        for (int64_t c = 0; c < dv; c++)
            A[(D + c) * rows + above + l] = values[l * dv + c];
    }
}

/* R of [Phi, V] = Q R has the same products R'R, and at most D + dv rows. Tokens come in blocks: R
 * so far on top, a block below, one QR of both; so memory does not grow with L. */
static fin_status reduce(const fin_latent *latent, int64_t L, const double *keys,
                         const double *values, int64_t block, double *A, double *work,
                         fin_error *err)
{
    int64_t W = latent->shape.features + latent->shape.dv, dk = latent->shape.dk, rows = W + block;
    double *tau = work, *phi = tau + W, *room = phi + W;
    for (int64_t i = 0; i < W * rows; i++)
        A[i] = 0;
    for (int64_t from = 0; from < L; from += block) {
        int64_t n = L - from < block ? L - from : block;
        put_rows(latent, n, keys ? keys + from * dk : NULL, values + from * latent->shape.dv, W,
                 rows, A, phi);
        fini_blas_enter();
        lapack_int info = LAPACKE_dgeqrf_work(LAPACK_COL_MAJOR, (lapack_int)(W + n), (lapack_int)W,
                                              A, (lapack_int)rows, tau, room, (lapack_int)(32 * W));
        fini_blas_leave();
        if (info != 0)
            return fini_fail(err, FIN_ERR_NUMERIC, "%s: the QR factors of %lld tokens failed",
                             latent->family->name, (long long)L);
    }
    return FIN_OK;
}

fin_status fin_latent_compress(const fin_latent *latent, int64_t L, const double *keys,
                               const double *values, int64_t *count, double *phi, double *pseudo,
                               fin_error *err)
{
    FINI_NEED(err, latent, !L || values, count, phi, pseudo);
    int64_t D = latent->shape.features, dv = latent->shape.dv, W = D + dv;
    FINI_TRY(check(latent, latent->family->linear,
                   "there are no pseudo-tokens, as the statistic is itself the short "
                   "form (a process has none); concept, mean and finite have",
                   L, keys, values, err));
    if (L <= W) { /* nothing to gain */
        *count = L;
        fini_features(latent, L, keys, phi, D);
        for (int64_t i = 0; i < L * dv; i++)
            pseudo[i] = values[i];
        return FIN_OK;
    }
    int64_t block = W < 32 ? 32 : W, rows = W + block, numbers = W * rows + 34 * W;
    FINI_OWN(err, "the QR factors of tokens", double, A, numbers, 1);
    FINI_TRY(reduce(latent, L, keys, values, block, A, A + W * rows, err));
    *count = W;
    for (int64_t r = 0; r < W; r++) {
        for (int64_t i = 0; i < D; i++)
            phi[r * D + i] = A[i * rows + r];
        for (int64_t c = 0; c < dv; c++)
            pseudo[r * dv + c] = A[(D + c) * rows + r];
    }
    return FIN_OK;
}

/* ---- Kalman ---------------------------------------------------------------------------------- */

/* p = phi(k):  g = C p / (p'C p + noise),  Z += (v - Z p) g',  C -= g (C p)'. C is a difference
 * from the prior, right to eps times that, so that p'C p + noise below it is rounding: without
 * noise, what the token tells is known already. */
static void filter_token(int64_t D, int64_t dv, double prior, double noise, const double *p,
                         const double *v, double *Z, double *C, double *Cp)
{
    double spread = noise, whole = noise;
    for (int64_t i = 0; i < D; i++) {
        Cp[i] = 0;
        for (int64_t j = 0; j < D; j++)
            Cp[i] += C[i * D + j] * p[j];
        spread += p[i] * Cp[i];
        whole += prior * p[i] * p[i];
    }
    if (!fini_pivot_holds(spread, whole))
        return;
    for (int64_t c = 0; c < dv; c++) {
        double surprise = v[c];
        for (int64_t i = 0; i < D; i++)
            surprise -= Z[c * D + i] * p[i];
        for (int64_t i = 0; i < D; i++)
            Z[c * D + i] += surprise * (Cp[i] / spread);
    }
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j <= i; j++) /* symmetric to the last bit */
            C[j * D + i] = C[i * D + j] -= Cp[i] * (Cp[j] / spread);
}

fin_status fin_latent_filter(const fin_latent *latent, int64_t L, const double *keys,
                             const double *values, double *posterior, fin_error *err)
{
    FINI_NEED(err, latent, !L || values, posterior);
    int64_t D = latent->shape.features, dv = latent->shape.dv, dk = latent->shape.dk;
    FINI_TRY(check(latent, latent->family->latent_gaussian,
                   "the recursion is for a Gaussian matrix Z: concept and mean", L, keys, values,
                   err));
    FINI_OWN(err, "a filter", double, work, 2 * D, 1);
    double *Z = posterior, *C = posterior + dv * D;
    for (int64_t i = 0; i < dv * D; i++)
        Z[i] = 0;
    for (int64_t i = 0; i < D * D; i++)
        C[i] = i % (D + 1) == 0 ? latent->settings.prior : 0;
    for (int64_t l = 0; l < L; l++) {
        fini_features(latent, 1, keys ? keys + l * dk : NULL, work, D);
        filter_token(D, dv, latent->settings.prior, latent->settings.noise, work, values + l * dv,
                     Z, C, work + D);
    }
    return FIN_OK;
}
