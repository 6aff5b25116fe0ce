/* The mean of a rotation O with density exp(tr(F'O)) on SO(d), d = 2 or 3.
 *
 * d = 2: tr(F'O) = a cos t + b sin t, a = F00 + F11, b = F10 - F01, for the angle t, so that the
 * law of t is von Mises around atan2(b, a) with concentration r = |(a, b)|, and E[cos], E[sin] are
 * (a, b)/r I_1(r)/I_0(r).
 *
 * d = 3: F = U diag(s) W' with U, W rotations, s1 >= s2 >= |s3|. The mean is U diag(e) W' with
 * e_k = d log c / d s_k, where for {i, j, k} = {1, 2, 3} (Lee, IEEE TAC 63, 2018)
 *
 *     c(s) = 1/2 int_{-1}^{1} I_0((s_i - s_j)(1-u)/2) I_0((s_i + s_j)(1+u)/2) e^{s_k u} du.
 *
 * s_k is only in the exponential, so that e_k is the mean of u under that integrand, which is
 * largest at u = 1. With t = 1 - u, B(x) = e^-x I_0(x), and i < j:
 *
 *     1 - e_k = int_0^2 t w(t) dt / int_0^2 w(t) dt,
 *     w(t) = B((s_i - s_j) t/2) B((s_i + s_j)(1 - t/2)) e^{-(s_j + s_k) t},  s_j + s_k >= 0
 *
 * Its scales are 1/s and may be anything from 1e-10 to 2, so that the sum is over equal steps of x
 * in t = 2 / (1 + exp(-pi sinh x)) (Takahasi and Mori 1974), where all scales look alike. */
#include "family/family.h"

#include "math/gram.h"
#include "base/constants.h"
#include "math/bessel.h"

#include <lapacke.h>
#include <math.h>

static void circle(const double *F, double *mean)
{
    double a = F[0] + F[3], b = F[2] - F[1], r = hypot(a, b);
    double gain = r > 0 ? fini_bessel_ratio(0, r) / r : 0;
    mean[0] = mean[3] = gain * a;
    mean[2] = gain * b;
    mean[1] = -gain * b;
}

/* ---- three dimensions ------------------------------------------------------------------------ */

static double determinant(const double *M)
{
    return M[0] * (M[4] * M[8] - M[5] * M[7]) - M[1] * (M[3] * M[8] - M[5] * M[6]) +
           M[2] * (M[3] * M[7] - M[4] * M[6]);
}

/* e^-x I_0(x), x >= 0, to a few units in the last place: the power series, whose terms are all
 * positive, or Hankel's expansion, whose terms fall to 1e-17 from x = 20 on. fini_bessel_log would
 * do, but this is called a thousand times for one mean. */
static double scaled_bessel(double x)
{
    double sum = 1, term = 1;
    if (x < 20) {
        for (int k = 1; term > 1e-17 * sum; k++)
            sum += term *= x * x / 4 / ((double)k * k);
        return exp(-x) * sum;
    }
    for (int k = 1; term > 1e-17; k++)
        sum += term *= (2 * k - 1) * (2 * k - 1) / (8 * x * k);
    return sum / sqrt(FINI_TWO_PI * x);
}

/* e[k] for all three; s1 >= s2 >= |s3|. */
static void means(const double s[3], double e[3])
{
    static const int others[3][2] = {{1, 2}, {0, 2}, {0, 1}}; /* i, j of each k */
    int fine = s[0] < 200 ? 16 : 32; /* steps in a unit of x, which goes from -4 to 4 */
    double sum[3] = {0}, moment[3] = {0};
    for (int n = -4 * fine; n <= 4 * fine; n++) {
        double x = (double)n / fine, small = exp(-FINI_PI * sinh(fabs(x)));
        double large = 2 / (1 + small), rest = large * small; /* t and 2 - t keep their digits */
        double t = x < 0 ? rest : large, other = x < 0 ? large : rest;
        double speed = t * other * cosh(x);
        for (int k = 0; k < 3; k++) {
            double si = s[others[k][0]], sj = s[others[k][1]], decay = (sj + s[k]) * t;
            if (decay > 800)
                continue;
            double w = speed * exp(-decay) * scaled_bessel((si - sj) * t / 2) *
                       scaled_bessel((si + sj) * other / 2);
            sum[k] += w;
            moment[k] += w * t;
        }
    }
    for (int k = 0; k < 3; k++)
        e[k] = sum[k] > 0 ? 1 - moment[k] / sum[k] : 1; /* all mass nearer to 1 than any node */
}

static fin_status space(const double *F, double *mean, fin_error *err)
{
    enum { D = 3, WORK = 64 };
    double A[D * D], U[D * D], W[D * D], s[D], work[WORK], e[D];
    for (int i = 0; i < D * D; i++)
        A[i] = F[i];
    /* LAPACK counts by columns and so sees F' = W diag(s) U'. */
    fini_blas_enter();
    lapack_int info =
        LAPACKE_dgesvd_work(LAPACK_COL_MAJOR, 'A', 'A', D, D, A, D, s, W, D, U, D, work, WORK);
    fini_blas_leave();
    if (info != 0)
        return fini_fail(err, FIN_ERR_NUMERIC,
                         "sphere: the singular values of the statistic could not be found; are its "
                         "numbers very large?");
    /* Now W[c * D + i] is entry i of column c of W, and U[i * D + c] that of U. */
    if (determinant(W) < 0) {
        for (int i = 0; i < D; i++)
            W[2 * D + i] = -W[2 * D + i];
        s[2] = -s[2];
    }
    if (determinant(U) < 0) {
        for (int i = 0; i < D; i++)
            U[i * D + 2] = -U[i * D + 2];
        s[2] = -s[2];
    }
    means(s, e);
    for (int i = 0; i < D; i++)
        for (int j = 0; j < D; j++) {
            mean[i * D + j] = 0;
            for (int c = 0; c < D; c++)
                mean[i * D + j] += U[i * D + c] * e[c] * W[c * D + j];
        }
    return FIN_OK;
}

fin_status fini_rotation_mean(int64_t d, const double *F, double *mean, fin_error *err)
{
    for (int64_t i = 0; i < d * d; i++)
        if (!(fabs(F[i]) < 1e150))
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "sphere: rho times the statistic is %g; it must be below 1e150", F[i]);
    if (d == 3)
        return space(F, mean, err);
    circle(F, mean);
    return FIN_OK;
}
