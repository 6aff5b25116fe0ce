/* What the linear families v = Z phi(k) + noise share: the statistic and, for a Gaussian Z, the
 * posterior in the space of features. With S = Phi'Phi, T = V'Phi, lam = noise / prior:
 *
 *     posterior of a row of Z    N( T (S + lam I)^-1,  noise (S + lam I)^-1 )
 *     mean at q                  T (S + lam I)^-1 phi(q)
 *     its variance               prior lam phi(q)'(S + lam I)^-1 phi(q)
 *
 * in every one of the dv numbers. Written with prior lam instead of noise, so that lam may be
 * replaced: where rounding leaves no positive definite matrix (noise 0 and fewer tokens than
 * features, most often), 1e-8 of the mean diagonal of S is added to lam and counts as noise. Then
 * the mean tends to that of the pseudo-inverse and the variance to prior times the projection on
 * what no token has shown, which are the limits of noise -> 0. */
#include "family/family.h"

#include "math/gram.h"
#include "math/small.h"
#include "math/spd.h"

#include <cblas.h>
#include <math.h>

enum { BLOCK = 64 }; /* tokens or queries at once */

fini_moments_at fini_gauss_parts(const fin_latent *latent)
{
    int64_t D = latent->shape.features, dv = latent->shape.dv;
    return (fini_moments_at){
        .S = 0, .T = D * D, .VV = D * D + dv * D, .L = D * D + dv * D + dv * dv};
}

void fini_gauss_shape(fin_latent *latent)
{
    latent->shape.dv = latent->settings.dv;
    latent->shape.statistic = fini_gauss_parts(latent).L + 1;
}

int64_t fini_gauss_room(const fin_latent *latent, int64_t L, int64_t m)
{
    int64_t D = latent->shape.features, dv = latent->shape.dv, W = D + dv;
    int64_t accumulate = fini_least(L, BLOCK) * W + W * W;
    int64_t predict = D * D + D * dv + D * fini_least(m, BLOCK) + fini_least(m, BLOCK) * D;
    return accumulate > predict ? accumulate : predict;
}

/* One product of the rows [phi, v] with themselves has all three matrices. */
void fini_gauss_accumulate(const fin_latent *latent, int64_t L, const double *keys,
                           const double *values, double *statistic, double *work)
{
    int64_t D = latent->shape.features, dv = latent->shape.dv, dk = latent->shape.dk, W = D + dv;
    fini_moments_at at = fini_gauss_parts(latent);
    double *sum = work, *rows = work + W * W;
    for (int64_t i = 0; i < W * W; i++)
        sum[i] = 0;
    fini_blas_enter();
    for (int64_t from = 0; from < L; from += BLOCK) {
        int64_t n = fini_least(L - from, BLOCK);
        fini_features(latent, n, keys ? keys + from * dk : NULL, rows, W);
        for (int64_t l = 0; l < n; l++)
            for (int64_t c = 0; c < dv; c++)
                rows[l * W + D + c] = values[(from + l) * dv + c];
        cblas_dsyrk(CblasRowMajor, CblasLower, CblasTrans, (int)W, (int)n, 1, rows, (int)W, 1, sum,
                    (int)W);
    }
    fini_blas_leave();
    for (int64_t i = 0; i < W; i++)
        for (int64_t j = 0; j <= i; j++) {
            double x = sum[i * W + j];
            if (i < D) {
                statistic[at.S + i * D + j] += x;
                if (i != j)
                    statistic[at.S + j * D + i] += x;
            } else if (j < D) {
                statistic[at.T + (i - D) * D + j] += x;
            } else {
                statistic[at.VV + (i - D) * dv + j - D] += x;
                if (i != j)
                    statistic[at.VV + (j - D) * dv + i - D] += x;
            }
        }
    statistic[at.L] += (double)L;
}

/* ---- the factor ------------------------------------------------------------------------------ */

typedef struct ridged {
    int64_t n;
    const double *S;
    double lam, *C;
} ridged;

static void fill(void *user, double jitter)
{
    const ridged *o = user;
    for (int64_t i = 0; i < o->n; i++) {
        for (int64_t j = 0; j <= i; j++) /* short rows, of which simulations have thousands */
            o->C[i * o->n + j] = o->S[i * o->n + j];
        o->C[i * o->n + i] += o->lam + jitter;
    }
}

/* Nothing between no jitter and the largest: rounding of S and T costs eps / jitter, jitter itself as
 * much as it is. */
fin_status fini_gauss_factor(const fin_latent *latent, const double *S, double *C, double *ridge,
                             fin_error *err)
{
    int64_t D = latent->shape.features;
    ridged o = {D, S, latent->settings.noise / latent->settings.prior, C};
    fini_spd A = {.n = D, .ld = D, .C = C, .route = FINI_SPD_SMALL};
    fini_spd_steps steps = {fill, &o, .last = FINI_SPD_STEPS - 1, .leap = true};
    double seen = 0;
    for (int64_t i = 0; i < D; i++)
        seen += S[i * D + i];
    if (o.lam == 0 && seen == 0)
        o.lam = 1; /* no token yet: any ridge gives the prior back */
    FINI_TRY(fini_spd_ladder(&A, &steps, NULL, err));
    *ridge = o.lam + A.jitter;
    if (A.pivot < 0)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "%s: the statistic plus a ridge of %g is not positive definite; is it one of "
                     "tokens? A larger noise helps, if its numbers are large",
                     latent->family->name, *ridge);
}

/* ---- posterior and prediction ---------------------------------------------------------------- */

/* C^-1 T' into X (D, dv). */
static void solve_cross(const fin_latent *latent, const double *statistic, double *C, double *X)
{
    int64_t D = latent->shape.features, dv = latent->shape.dv;
    const double *T = statistic + fini_gauss_parts(latent).T;
    for (int64_t i = 0; i < D; i++)
        for (int64_t c = 0; c < dv; c++)
            X[i * dv + c] = T[c * D + i];
    fini_spd_lower(fini_spd_of(D, C, D), dv, X, dv);
}

/* <A, mean>, and the sum of A_c'C A_c over the dv rows of A: those of Z are independent. */
void fini_gauss_project(const fin_latent *latent, const double *A, const double *posterior,
                        double *mean, double *variance)
{
    int64_t D = latent->shape.features, dv = latent->shape.dv;
    const double *C = posterior + dv * D;
    *mean = fini_dot_in_order(dv * D, A, posterior);
    *variance = 0;
    for (int64_t row = 0; row < dv; row++)
        for (int64_t i = 0; i < D; i++)
            *variance += A[row * D + i] * fini_dot_in_order(D, C + i * D, A + row * D);
    *variance = fmax(*variance, 0);
}

int64_t fini_gauss_mean(const fin_latent *latent, const double *posterior, double *mean)
{
    int64_t size = latent->shape.dv * latent->shape.features;
    for (int64_t i = 0; mean && i < size; i++)
        mean[i] = posterior[i];
    return size;
}

fin_status fini_gauss_posterior(const fin_latent *latent, const double *statistic,
                                double *posterior, double *work, fin_error *err)
{
    int64_t D = latent->shape.features, dv = latent->shape.dv;
    double *C = posterior + dv * D, *X = work, ridge;
    FINI_TRY(fini_gauss_factor(latent, statistic, C, &ridge, err));
    solve_cross(latent, statistic, C, X);
    fini_spd_upper(fini_spd_of(D, C, D), dv, X, dv);
    for (int64_t c = 0; c < dv; c++)
        for (int64_t i = 0; i < D; i++)
            posterior[c * D + i] = X[i * dv + c];
    FINI_TRY(fini_spd_inverse(fini_spd_of(D, C, D), err));
    double scale = latent->settings.prior * ridge;
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j <= i; j++)
            C[i * D + j] = C[j * D + i] = scale * C[i * D + j];
    return FIN_OK;
}

void fini_gauss_means(int64_t rows, int64_t dv, const double *X, int64_t n, const double *P,
                      double *mean, double *norm2)
{
    for (int64_t j = 0; j < n; j++) {
        double *out = mean + j * dv, sum = 0;
        for (int64_t c = 0; c < dv; c++)
            out[c] = 0;
        for (int64_t i = 0; i < rows; i++) {
            double p = P[i * n + j];
            sum += p * p;
            for (int64_t c = 0; c < dv; c++)
                out[c] += p * X[i * dv + c];
        }
        norm2[j] = sum;
    }
}

/* mean = (C^-1 phi)'(C^-1 T'), variance = prior lam |C^-1 phi|^2. */
fin_status fini_gauss_predict(const fin_latent *latent, const double *statistic,
                              const fini_query *q, double *work, fin_error *err)
{
    int64_t D = latent->shape.features, dv = latent->shape.dv, dk = latent->shape.dk;
    double *C = work, *X = C + D * D, *P = X + D * dv, *phi = P + D * fini_least(q->m, BLOCK),
           ridge;
    FINI_TRY(fini_gauss_factor(latent, statistic, C, &ridge, err));
    solve_cross(latent, statistic, C, X);
    for (int64_t from = 0; from < q->m; from += BLOCK) {
        int64_t n = fini_least(q->m - from, BLOCK);
        double norm2[BLOCK];
        fini_features(latent, n, q->keys ? q->keys + from * dk : NULL, phi, D);
        for (int64_t i = 0; i < D; i++)
            for (int64_t j = 0; j < n; j++)
                P[i * n + j] = phi[j * D + i];
        fini_spd_lower(fini_spd_of(D, C, D), n, P, n);
        fini_gauss_means(D, dv, X, n, P, q->mean + from * dv, norm2);
        for (int64_t j = 0; j < n && q->variance; j++)
            q->variance[from + j] = latent->settings.prior * ridge * norm2[j];
    }
    return FIN_OK;
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* out = Z phi(k) for n keys; add: plus s times the standard normals that are in out. phi: (D). */
static void images(const fin_latent *latent, int64_t n, const double *keys, const double *Z,
                   double *out, bool add, double *phi)
{
    int64_t D = latent->shape.features, dv = latent->shape.dv, dk = latent->shape.dk;
    double s = sqrt(latent->settings.noise);
    for (int64_t l = 0; l < n; l++) {
        fini_features(latent, 1, keys ? keys + l * dk : NULL, phi, D);
        for (int64_t c = 0; c < dv; c++) {
            double x = 0;
            for (int64_t i = 0; i < D; i++)
                x += Z[c * D + i] * phi[i];
            out[l * dv + c] = x + (add ? s * out[l * dv + c] : 0);
        }
    }
}

void fini_gauss_values(const fin_latent *latent, const fini_sequence *s, const double *Z,
                       double *work)
{
    int64_t dv = latent->shape.dv;
    if (s->values) {
        fin_random_normals_f64(s->seed, FINI_STREAM_FAMILY_VALUES + s->up, s->sample, 0, s->L * dv,
                               s->values);
        images(latent, s->L, s->keys, Z, s->values, true, work);
    }
    if (s->answers) {
        fin_random_normals_f64(s->seed, FINI_STREAM_FAMILY_ANSWERS + s->up, s->sample, 0, s->Q * dv,
                               s->answers);
        images(latent, s->Q, s->queries, Z, s->answers, true, work);
    }
    if (s->truth)
        images(latent, s->Q, s->queries, Z, s->truth, false, work);
}
