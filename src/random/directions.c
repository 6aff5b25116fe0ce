/* Random directions, rotations and probability vectors.
 *
 * A direction near an axis is drawn around the first coordinate axis and carried over by the
 * orthogonal, symmetric map Q with Q e_1 = a, which costs O(d) and no memory:
 *
 *     Q = -s (I - 2 v v'/v'v),   v = e_1 + s a,   s = sign(a_1),
 *
 * with the sign that keeps v'v = 2 (1 + |a_1|) away from zero. Everywhere the *distance* from the
 * axis, t = 1 - cos, is what is computed, so that laws of any concentration keep their digits. */
#include "finetti/random.h"

#include <math.h>
#include <stdbool.h>

/* Cosine law of von Mises-Fisher, t = 1 - w.
 *
 * d = 3: w has a density proportional to e^{kappa w}, and its distribution function is inverted:
 *     t = -log(1 - u (1 - e^{-2 kappa})) / kappa.
 *
 * Any d (Ulrich 1984, corrected by Wood 1994): the envelope (1 - x0 w)^{-(d-1)} (1-w^2)^{(d-3)/2}
 * is a Moebius image of a beta law. With z = g1/(g1+g2) ~ Beta(m, m), g1 and g2 two gamma variables
 * of shape m = (d-1)/2, and b = (1-x0)/(1+x0):
 *     w = (1 - (1+b) z) / (1 - (1-b) z)      so      t = 2 b g1 / (g2 + b g1),
 * accepted if kappa (w - x0) + (d-1) log((1 - x0 w) / (1 - x0^2)) >= log u. Here s = 1 - x0. The
 * share of accepted draws is above 0.6 for every d and kappa. */
static double vmf_distance(fin_random *r, int64_t d, double kappa)
{
    if (d == 3)
        return fmin(2, -log1p(fin_random_uniform(r) * expm1(-2 * kappa)) / kappa);
    double m = (double)(d - 1), b = m / (2 * kappa + hypot(2 * kappa, m)), s = 2 * b / (1 + b);
    for (;;) {
        double g1 = fin_random_gamma(r, m / 2), g2 = fin_random_gamma(r, m / 2);
        double t = 2 * b * g1 / (g2 + b * g1);
        double score = kappa * (s - t) + m * log((t + s - t * s) / (s * (2 - s)));
        if (score >= log(fin_random_uniform(r)))
            return t < 2 ? t : 2;
    }
}

static void fill(int64_t n, double value, double *x)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = value;
}

/* x = Q y for the axis a: x_1 = a.y, and x_i = -s y_i + (a_i/(1+|a_1|)) (y_1 + s a.y) for i > 1,
 * where a has to be divided by its length. */
static void carry(int64_t d, const double *axis, double length, double *x)
{
    double a1 = axis[0] / length, s = a1 > 0 ? 1 : -1, along = 0;
    for (int64_t i = 0; i < d; i++)
        along += axis[i] / length * x[i];
    double factor = (x[0] + s * along) / (1 + fabs(a1));
    x[0] = along;
    for (int64_t i = 1; i < d; i++)
        x[i] = factor * (axis[i] / length) - s * x[i];
}

/* |x|, without overflow or underflow; NaN if a coordinate is NaN or infinite. */
static double length_of(int64_t d, const double *x)
{
    double largest = 0, norm2 = 0;
    for (int64_t i = 0; i < d; i++) {
        if (!isfinite(x[i]))
            return NAN;
        largest = fmax(largest, fabs(x[i]));
    }
    for (int64_t i = 0; i < d && largest > 0; i++)
        norm2 += x[i] / largest * (x[i] / largest);
    return largest * sqrt(norm2);
}

void fin_random_vmf(fin_random *r, int64_t d, const double *axis, double kappa, double *x)
{
    if (!r || !axis || !x)
        return;
    double length = length_of(d, axis), t = 0;
    if (!(kappa >= 0) || !(length >= 1e-290 || (length == 0 && kappa == 0)) || isinf(length)) {
        fill(d, NAN, x);
        return;
    }
    if (kappa < 1e-100) { /* no draw tells this from the uniform law */
        fin_random_sphere(r, d, x);
        return;
    }
    if (d == 1)
        t = fin_random_uniform(r) * (1 + exp(-2 * kappa)) < 1 ? 0 : 2;
    else if (kappa < 1e300)
        t = vmf_distance(r, d, kappa);
    double radius = sqrt(t * (2 - t));
    if (d > 1)
        fin_random_sphere(r, d - 1, x + 1);
    for (int64_t i = 1; i < d; i++)
        x[i] *= radius;
    x[0] = 1 - t;
    carry(d, axis, length, x);
}

/* Gamma variables divided by their sum, in logarithms: at small alpha a gamma variable is
 * Gamma(alpha + 1) u^{1/alpha}, mostly below the smallest double. As alpha falls the law tends to
 * one at a single place, place i with probability alpha_i / sum; nothing changes there if all alpha
 * are multiplied by a common factor. */
void fin_random_dirichlet(fin_random *r, int64_t n, const double *alpha, double *out)
{
    if (!r || !alpha || !out)
        return;
    double largest = 0, total = 0;
    bool valid = true;
    for (int64_t i = 0; i < n; i++) {
        valid = valid && alpha[i] >= 0 && isfinite(alpha[i]);
        largest = alpha[i] > largest ? alpha[i] : largest;
    }
    if (!valid || !(largest > 0)) {
        fill(n, NAN, out);
        return;
    }
    double factor = largest < 1e-200 ? 1e100 : 1, highest = -INFINITY;
    for (int64_t i = 0; i < n; i++) {
        double a = alpha[i] * factor;
        if (a < 1)
            out[i] = a > 0 ? log(fin_random_gamma(r, a + 1)) + log(fin_random_uniform(r)) / a
                           : -INFINITY;
        else
            out[i] = log(fin_random_gamma(r, a));
        highest = out[i] > highest ? out[i] : highest;
    }
    for (int64_t i = 0; i < n; i++) {
        out[i] = exp(out[i] - highest);
        total += out[i];
    }
    for (int64_t i = 0; i < n; i++)
        out[i] /= total;
}

/* Stewart 1980: if M is uniform on the rotations of R^{k-1} and x uniform on the sphere of R^k,
 * then Q(x) diag(1, M) is uniform on R^k's orthogonal maps. Built from the lower right corner up;
 * the first row of the grown block, zero before, holds x'M while the rest is updated:
 *     row 1: y = x'M,   row i: -s M_i + s x_i y / (1 + |x_1|).
 * det Q = -(-s)^k; at the end the sign of the last column makes the determinant one. */
void fin_random_rotation(fin_random *r, int64_t d, double *O)
{
    if (!r || !O)
        return;
    bool negative = false;
    fill(d * d, 0, O);
    if (d >= 1)
        O[d * d - 1] = 1;
    for (int64_t k = 2; k <= d; k++) {
        double *block = O + (d - k) * (d + 1); /* its upper left corner; rows are d apart */
        fin_random_sphere(r, k, block);        /* into the first row, then the first column */
        for (int64_t i = 1; i < k; i++) {
            block[i * d] = block[i];
            block[i] = 0;
        }
        for (int64_t i = 1; i < k; i++)
            for (int64_t j = 1; j < k; j++)
                block[j] += block[i * d] * block[i * d + j];
        double s = block[0] > 0 ? 1 : -1, scale = s / (1 + fabs(block[0]));
        for (int64_t i = 1; i < k; i++)
            for (int64_t j = 1; j < k; j++)
                block[i * d + j] = scale * block[i * d] * block[j] - s * block[i * d + j];
        if (s < 0 || k % 2 == 0)
            negative = !negative;
    }
    for (int64_t i = 0; i < d && negative; i++)
        O[i * d + d - 1] = -O[i * d + d - 1];
}
