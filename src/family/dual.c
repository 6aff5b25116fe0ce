/* The posterior of a Gaussian process in the space of tokens: with G = prior k(a_i, a_j) + noise I,
 * g = prior k(a_i, q),
 *
 *     mean = V'G^-1 g,   variance = prior k(q, q) - g'G^-1 g
 *
 * For a linear concept the rows a are features and k is their product. */
#include "family/family.h"

#include "math/gram.h"

#include <math.h>

enum { BLOCK = 64 }; /* queries at once */

int64_t fini_dual_room(int64_t L, int64_t dv, int64_t m)
{
    int64_t block = m < BLOCK ? m : BLOCK;
    return L * L + L + 2 * L * dv + L * block + block;
}

/* Jitter repairs rounding, but two values at one key without noise are a contradiction. */
static fin_status check_twins(int64_t width, int64_t L, const double *a, int64_t dv,
                              const double *values, fin_error *err)
{
    for (int64_t i = 1; i < L; i++)
        for (int64_t j = 0; j < i; j++) {
            bool same = true, agree = true;
            for (int64_t c = 0; c < width && same; c++)
                same = a[i * width + c] == a[j * width + c];
            for (int64_t c = 0; c < dv && same && agree; c++)
                agree = values[i * dv + c] == values[j * dv + c];
            if (same && !agree)
                return fini_fail(err, FIN_ERR_NUMERIC,
                                 "tokens %lld and %lld have the same key and different values, "
                                 "which cannot be without noise; give a positive noise",
                                 (long long)j, (long long)i);
        }
    return FIN_OK;
}

/* (G + jitter I) alpha = V, so that jitter alpha is how far off the values the mean passes: no
 * farther than noise of that variance would have them, or the tokens contradict each other in a
 * less plain way, and rounding divided by the jitter is all over the answer. X: C^-1 V. */
static fin_status check_jitter(int64_t L, const double *C, int64_t dv, const double *values,
                               const double *X, double noise, double jitter, double *alpha,
                               fin_error *err)
{
    double off = 0, largest = 0;
    for (int64_t i = 0; i < L * dv; i++)
        alpha[i] = X[i];
    fini_solve_upper(L, C, L, dv, alpha, dv);
    for (int64_t i = 0; i < L * dv; i++) {
        off = fmax(off, jitter * fabs(alpha[i]));
        largest = fmax(largest, fabs(values[i]));
    }
    if (off <= 1e-6 * largest + 8 * sqrt(jitter))
        return FIN_OK;
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "the values of %lld tokens contradict each other: with noise = %g one of "
                     "them is %.2g off every function that fits the others; give a larger noise",
                     (long long)L, noise, off);
}

static void predict_block(int64_t L, int64_t dv, const double *X, int64_t n, const double *P,
                          const double *itself, double prior, double *mean, double *variance)
{
    for (int64_t j = 0; j < n; j++) {
        double *out = mean + j * dv, norm2 = 0;
        for (int64_t c = 0; c < dv; c++)
            out[c] = 0;
        for (int64_t l = 0; l < L; l++) {
            double p = P[l * n + j];
            norm2 += p * p;
            for (int64_t c = 0; c < dv; c++)
                out[c] += p * X[l * dv + c];
        }
        if (variance) {
            double left = prior * itself[j] - norm2;
            variance[j] = left > 0 ? left : 0; /* below only by rounding */
        }
    }
}

fin_status fini_dual_predict(const fin_covariance *covariance, double prior, double noise,
                             int64_t width, int64_t L, const double *a, int64_t dv,
                             const double *values, int64_t m, const double *b, double *mean,
                             double *variance, double *work, fin_error *err)
{
    double *C = work, *diagonal = C + L * L, *X = diagonal + L, *alpha = X + L * dv;
    double *P = alpha + L * dv, jitter;
    fini_covariance_lower(covariance, width, L, a, C, L);
    for (int64_t i = 0; i < L; i++) {
        for (int64_t j = 0; j <= i; j++)
            C[i * L + j] *= prior;
        C[i * L + i] += noise;
    }
    fin_status status = fini_factor_jittered(L, C, diagonal, &jitter, err);
    if (!status && noise == 0 && jitter > 0)
        status = check_twins(width, L, a, dv, values, err);
    if (status)
        return status;
    for (int64_t i = 0; i < L * dv; i++)
        X[i] = values[i];
    fini_solve_lower(L, C, L, dv, X, dv);
    if (jitter > noise && (status = check_jitter(L, C, dv, values, X, noise, jitter, alpha, err)))
        return status;
    for (int64_t from = 0; from < m; from += BLOCK) {
        int64_t n = m - from < BLOCK ? m - from : BLOCK;
        const double *q = b + from * width;
        double *itself = P + L * n;
        fini_covariance_tile(covariance, width, L, a, n, q, P, n);
        fini_covariance_diagonal(covariance, width, n, q, itself);
        for (int64_t i = 0; i < L * n; i++)
            P[i] *= prior;
        fini_solve_lower(L, C, L, n, P, n);
        predict_block(L, dv, X, n, P, itself, prior, mean + from * dv,
                      variance ? variance + from : NULL);
    }
    return FIN_OK;
}
