/* The posterior of a Gaussian process in the space of tokens: with G = prior k(a_i, a_j) + noise I,
 * g = prior k(a_i, q),
 *
 *     mean = V'G^-1 g,   variance = prior k(q, q) - g'G^-1 g
 *
 * For a linear concept the rows a are features and k is their product. */
#include "family/family.h"

#include "math/gram.h"
#include "math/small.h"

#include <string.h>

enum { BLOCK = 64 }; /* queries at once */

int64_t fini_process_room(int64_t L, int64_t dv, int64_t m)
{
    int64_t block = fini_least(m, BLOCK);
    return L * L + 2 * L * dv + L * block + block;
}

typedef struct gram {
    const fini_process *p;
    double *C;
} gram;

static void fill(void *user, double jitter)
{
    const fini_process *p = ((gram *)user)->p;
    double *C = ((gram *)user)->C;
    int64_t L = p->tokens.n;
    fini_covariance_lower(&p->covariance, p->tokens.dk, L, p->tokens.keys, C, L);
    for (int64_t i = 0; i < L; i++) {
        for (int64_t j = 0; j <= i && p->prior != 1; j++)
            C[i * L + j] *= p->prior;
        C[i * L + i] += p->noise;
        C[i * L + i] += jitter;
    }
}

fin_status fini_process_factor(const fini_process *p, double *C, double *jitter, fin_error *err)
{
    int64_t L = p->tokens.n;
    fini_spd A = {.n = L, .ld = L, .C = C, .route = FINI_SPD_SMALL};
    fini_spd_steps steps = {fill, &(gram){p, C}, .last = FINI_SPD_STEPS - 1};
    FINI_TRY(fini_spd_ladder(&A, &steps, NULL, err));
    *jitter = A.jitter;
    if (A.pivot < 0)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "the covariance of %lld points is not positive definite, not even with %g "
                     "added to its diagonal; are the keys so large that it overflows? Otherwise "
                     "give a positive noise",
                     (long long)L, *jitter);
}

/* Jitter repairs rounding, but two values at one key without noise are a contradiction. */
static fin_status check_twins(const fini_process *p, double *room, fin_error *err)
{
    int64_t a = 0, b = p->noise == 0 ? fini_spd_contradiction(&p->tokens, 0, room, &a) : -1;
    return b < 0 ? FIN_OK
                 : fini_fail(err, FIN_ERR_NUMERIC,
                             "tokens %lld and %lld have the same key and different values, "
                             "which cannot be without noise; give a positive noise",
                             (long long)a, (long long)b);
}

/* Values that the mean would miss by more than noise of the jitter's variance: the tokens contradict
 * each other in a less plain way, and rounding divided by the jitter is all over the answer. X: C^-1 V,
 * of which alpha is made. */
static fin_status check_jitter(const fini_process *p, fini_spd C, double jitter, const double *X,
                               double *alpha, fin_error *err)
{
    const fini_tokens *t = &p->tokens;
    if (!(jitter > p->noise))
        return FIN_OK;
    memcpy(alpha, X, (size_t)(t->n * t->dv) * sizeof *alpha);
    fini_spd_upper(C, t->dv, alpha, t->dv);
    for (int64_t c = 0; c < t->dv; c++)
        if (!fini_spd_harmless(jitter, p->noise, t->n, alpha + c, t->dv, t->values + c, t->ldv))
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "the values of %lld tokens contradict each other: with noise = %g no "
                             "function fits number %lld of them all; give a larger noise",
                             (long long)t->n, p->noise, (long long)c);
    return FIN_OK;
}

fin_status fini_process_predict(const fini_process *p, const fini_query *q, double *work,
                                fin_error *err)
{
    int64_t L = p->tokens.n, dv = p->tokens.dv, width = p->tokens.dk;
    double *X = work + L * L, *alpha = X + L * dv, *P = alpha + L * dv, jitter = 0;
    fini_spd C = fini_spd_of(L, work, L);
    FINI_TRY(check_twins(p, alpha, err));
    FINI_TRY(fini_process_factor(p, C.C, &jitter, err));
    memcpy(X, p->tokens.values, (size_t)(L * dv) * sizeof *X);
    fini_spd_lower(C, dv, X, dv);
    FINI_TRY(check_jitter(p, C, jitter, X, alpha, err));
    for (int64_t from = 0; from < q->m; from += BLOCK) {
        int64_t n = fini_least(q->m - from, BLOCK);
        const double *b = q->keys + from * width;
        double *itself = P + L * n, norm2[BLOCK];
        fini_covariance_tile(&p->covariance, width, L, p->tokens.keys, n, b, P, n);
        fini_covariance_diagonal(&p->covariance, width, n, b, itself);
        for (int64_t i = 0; i < L * n; i++)
            P[i] *= p->prior;
        fini_spd_lower(C, n, P, n);
        fini_gauss_means(L, dv, X, n, P, q->mean + from * dv, norm2);
        for (int64_t j = 0; j < n && q->variance; j++) {
            double left = p->prior * itself[j] - norm2[j];
            q->variance[from + j] = left > 0 ? left : 0; /* below only by rounding */
        }
    }
    return FIN_OK;
}
