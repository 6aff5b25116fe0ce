/* What attention is to learn in the command `rate`, and what is known about how it goes.
 *
 * Values are v = m(k) + noise with m(k) = E[v | k] of degree 1 and 2. Attention is linear in the
 * values, so that whatever the rest of m is, the error at a query is that of the harmonics
 *
 *     psi(k) = ( sqrt(linear) k,  sqrt(quadratic d/(d-1)) (k k' - I/d) ),
 *
 * and |sum_l w_l psi(k_l) - psi(q)|^2 is the mean of the squared error over all rotations of one m,
 * which has mean squares `linear` and `quadratic` on the sphere. No m has to be drawn. Of the
 * symmetric matrix one triangle is kept, with what is off the diagonal times sqrt 2. */
#include "lab/rate.h"

#include "finetti/random.h"
#include "theory/sphere.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { NO, YES };

int64_t fini_rate_contexts(const fini_rate *rate)
{
    int64_t wanted = (rate->tokens + rate->L - 1) / rate->L;
    return wanted > rate->contexts ? wanted : rate->contexts;
}

double fini_rate_kappa(const fini_rate *rate)
{
    double L = (double)rate->L;
    return rate->kappa * pow(L, rate->kappa_power) * (rate->kappa_log == YES ? log(L) : 1);
}

double fini_rate_lam(const fini_rate *rate)
{
    return rate->lam * pow((double)rate->L, rate->lam_power);
}

double fini_rate_quadratic(const fini_rate *rate)
{
    if (!fin_is_auto(rate->quadratic))
        return rate->quadratic;
    return rate->keys == FINI_RATE_GAUSSIAN ? 0 : rate->linear;
}

int64_t fini_rate_width(const fini_rate *rate)
{
    return rate->d + (fini_rate_quadratic(rate) > 0 ? rate->d * (rate->d + 1) / 2 : 0);
}

void fini_rate_harmonics(const fini_rate *rate, int64_t n, const double *keys, double *psi)
{
    int64_t d = rate->d;
    double quadratic = fini_rate_quadratic(rate), one = sqrt(rate->linear);
    double two = sqrt(quadratic * (double)d / (double)(d - 1)), both = two * sqrt(2.0);
    for (int64_t i = 0; i < n; i++) {
        const double *k = keys + i * d;
        for (int64_t a = 0; a < d; a++)
            *psi++ = one * k[a];
        for (int64_t a = 0; a < d && quadratic > 0; a++) {
            *psi++ = two * (k[a] * k[a] - 1 / (double)d);
            for (int64_t b = a + 1; b < d; b++)
                *psi++ = both * k[a] * k[b];
        }
    }
}

/* ---- limits ------------------------------------------------------------------------------------ */

/* Eigenvalues of cme's kernel under uniform keys. (1 + t)^2 = (1 + 1/d) + 2t + (t^2 - 1/d), and a
 * zonal polynomial of degree l that is c at t = 1 has eigenvalue c / N_l. */
static double eigenvalue(const fini_rate *rate, int64_t l)
{
    double d = (double)rate->d;
    if (rate->kernel == FINI_RATE_RBF)
        return fini_sphere_eigenvalue(rate->d, fini_rate_kappa(rate), l);
    if (rate->kernel == FINI_RATE_LINEAR)
        return l == 1 ? 1 / d : 0;
    return l == 0 ? 1 + 1 / d : l == 1 ? 2 / d : l == 2 ? 2 / (d * (d + 2)) : 0;
}

static void multiply(const fini_rate *rate, double one, double two, double *psi)
{
    for (int64_t i = 0; i < fini_rate_width(rate); i++)
        psi[i] *= i < rate->d ? one : two;
}

/* Softmax weighs a key by exp(kappa q.k). Times the density of uniform or von Mises-Fisher keys this
 * is von Mises-Fisher again, with parameter kappa q + c = b u, and its mean of a harmonic of degree l
 * is that harmonic at u times I_{d/2-1+l}(b) / I_{d/2-1}(b). */
static void limit_softmax(const fini_rate *rate, const double *q, double *limit)
{
    double u[16] = {0}, b2 = 0, kappa = fini_rate_kappa(rate);
    for (int64_t i = 0; i < rate->d; i++) {
        u[i] = kappa * q[i];
        if (i == 0 && rate->keys == FINI_RATE_VMF)
            u[i] += rate->concentration;
        b2 += u[i] * u[i];
    }
    double b = sqrt(b2);
    for (int64_t i = 0; i < rate->d; i++)
        u[i] = b > 0 ? u[i] / b : q[i];
    fini_rate_harmonics(rate, 1, u, limit);
    multiply(rate, b > 0 ? fini_sphere_filter_softmax(rate->d, b, 1) : 0,
             b > 0 ? fini_sphere_filter_softmax(rate->d, b, 2) : 0, limit);
}

bool fini_rate_limit(const fini_rate *rate, const double *q, double *limit)
{
    double one = 1, two = 1, alpha = fini_rate_lam(rate) / (double)rate->L;
    if (rate->form == FIN_CROSS_CME && rate->keys != FINI_RATE_SPHERE)
        return false;
    if (rate->form == FIN_CROSS_NW && rate->keys == FINI_RATE_GAUSSIAN)
        return false;
    if (rate->form != FIN_CROSS_CME && rate->keys != FINI_RATE_GAUSSIAN) {
        limit_softmax(rate, q, limit);
    } else {
        fini_rate_harmonics(rate, 1, q, limit);
        if (rate->form == FIN_CROSS_CME) {
            one = eigenvalue(rate, 1) / (eigenvalue(rate, 1) + alpha);
            two = eigenvalue(rate, 2) / (eigenvalue(rate, 2) + alpha);
        } else {
            one = rate->g * fini_rate_kappa(rate);
        }
        multiply(rate, one, two, limit);
    }
    if (rate->rescale == YES) {
        double A = fini_sphere_mean(rate->d, fini_rate_kappa(rate));
        multiply(rate, 1 / A, 1 / A, limit);
    }
    return true;
}

/* ---- predictions -------------------------------------------------------------------------------- */

/* As fini_sphere_error_cme, for a kernel of degrees 0 to 2: at finite L the ridge acts like
 *
 *     a = alpha + a Gamma(a) / L,   Gamma(a) = sum_l N_l f_l,   f_l = mu_l / (mu_l + a),
 *
 * which fixed-point steps from above find (they go down, a Gamma(a) being concave), and with
 * gamma = sum_l N_l f_l^2 / L, which is below 1,
 *
 *     squared bias = sum_l power_l (1 - f_l)^2
 *     variance = (dv noise + squared bias) gamma / (1 - gamma) - sum_l power_l f_l^2 (1 - f_l)^2 / L. */
static fini_sphere_error predict_finite(const fini_rate *rate, const double power[3])
{
    double L = (double)rate->L, alpha = fini_rate_lam(rate) / L, a = alpha + 4 / L;
    double gamma = 0, influence = 0;
    fini_sphere_error e = {0, 0};
    for (int round = 0; round < 10000; round++) {
        double dimension = 0, before = a;
        for (int l = 0; l < 3; l++)
            dimension += fini_sphere_multiplicity(rate->d, l) * eigenvalue(rate, l) /
                         (eigenvalue(rate, l) + a);
        a = alpha + a * dimension / L;
        if (!(before - a > 1e-15 * a))
            break;
    }
    for (int l = 0; l < 3; l++) {
        double mu = eigenvalue(rate, l), f = mu / (mu + a), g = a / (mu + a);
        gamma += fini_sphere_multiplicity(rate->d, l) * f * f / L;
        e.bias += power[l] * g * g;
        influence += power[l] * f * f * g * g / L;
    }
    e.variance = ((double)rate->dv * rate->noise + e.bias) * gamma / (1 - gamma) - influence;
    return e;
}

static fini_sphere_error predict_gaussian(const fini_rate *rate)
{
    double q2 = rate->radius * rate->radius * rate->g, d = (double)rate->d;
    double L_variance = fini_gaussian_softmax_variance(rate->g, q2, (double)rate->dv, rate->noise,
                                                       rate->linear * d, rate->linear * q2);
    return (fini_sphere_error){0, L_variance / (double)rate->L};
}

/* With one rotation Z of the linear part for every context: prior = linear / dv. */
static fini_sphere_error predict_rescaled(const fini_rate *rate)
{
    double dv = (double)rate->dv;
    double L_error =
        fini_temperature_error(rate->d, fini_rate_kappa(rate), dv, rate->noise, rate->linear / dv);
    return (fini_sphere_error){0, L_error / (double)rate->L};
}

bool fini_rate_predicted(const fini_rate *rate, fini_sphere_error *predicted)
{
    const double power[3] = {0, rate->linear, fini_rate_quadratic(rate)};
    double kappa = fini_rate_kappa(rate), dv = (double)rate->dv;
    bool cme = rate->form == FIN_CROSS_CME;
    if (rate->keys == FINI_RATE_GAUSSIAN) {
        *predicted = predict_gaussian(rate);
        return rate->form == FIN_CROSS_SOFTMAX && fabs(kappa * rate->g - 1) < 1e-12;
    }
    if (rate->keys != FINI_RATE_SPHERE || (rate->rescale == YES && power[2] > 0))
        return false;
    if (rate->rescale == YES)
        *predicted = predict_rescaled(rate);
    else if (cme && rate->kernel == FINI_RATE_RBF)
        *predicted = fini_sphere_error_cme(rate->d, kappa, fini_rate_lam(rate), rate->L, power, 2,
                                           dv, rate->noise);
    else if (cme)
        *predicted = predict_finite(rate, power);
    else
        *predicted = fini_sphere_error_softmax(rate->d, kappa, rate->L, power, 2, dv, rate->noise);
    return true;
}

/* ---- keys of `rate` and `limit`, and means over contexts --------------------------------------- */

/* A zero vector has probability zero; it is left alone. */
static void normalise(int64_t n, int64_t d, double *rows)
{
    for (int64_t i = 0; i < n; i++) {
        double *x = rows + i * d, norm2 = 0;
        for (int64_t j = 0; j < d; j++)
            norm2 += x[j] * x[j];
        double scale = norm2 > 0 ? 1 / sqrt(norm2) : 0;
        for (int64_t j = 0; j < d; j++)
            x[j] *= scale;
    }
}

static void draw_vmf(const fini_rate_law *keys, int64_t seed, uint32_t stream, uint64_t sample,
                     int64_t n, double *out)
{
    double axis[64] = {1};
    fin_random r;
    fin_random_open(&r, (uint64_t)seed, stream, sample);
    for (int64_t i = 0; i < n; i++)
        fin_random_vmf(&r, keys->d, axis, keys->concentration, out + i * keys->d);
}

void fini_rate_draw(const fini_rate_law *keys, int64_t seed, uint32_t stream, uint64_t sample,
                    int64_t n, double *out)
{
    int64_t count = n * keys->d;
    if (keys->law == FINI_RATE_VMF) {
        draw_vmf(keys, seed, stream, sample, n, out);
        return;
    }
    fin_random_normals_f64((uint64_t)seed, stream, sample, 0, count, out);
    if (keys->law == FINI_RATE_SPHERE)
        normalise(n, keys->d, out);
    double scale = keys->law == FINI_RATE_GAUSSIAN ? sqrt(keys->g) : 1;
    for (int64_t i = 0; i < count && scale != 1; i++)
        out[i] *= scale;
}

static int along_axis(const void *left, const void *right)
{
    const double *a = left, *b = right;
    int first = (a[0] > b[0]) - (a[0] < b[0]);
    return first ? first : (a[1] > b[1]) - (a[1] < b[1]);
}

/* With a skewed law it is chance how many queries fall where keys are rare, and errors there are the
 * largest. So several times as many are drawn and sorted along the axis, and of every few neighbours
 * one is taken: each is as likely to be taken as any other, so that a mean over queries has the
 * expectation that it had, and a smaller spread. */
void fini_rate_draw_spread(const fini_rate_law *keys, int64_t seed, uint64_t sample, int64_t n,
                           double *room, double *out)
{
    int64_t d = keys->d, few = FINI_RATE_CANDIDATES;
    size_t row = (size_t)d * sizeof(double);
    fin_random r;
    fini_rate_draw(keys, seed, FINI_STREAM_RATE_QUERIES, sample, few * n, room);
    qsort(room, (size_t)(few * n), row, along_axis);
    fin_random_open(&r, (uint64_t)seed, FINI_STREAM_RATE_PICKS, sample);
    for (int64_t i = 0; i < n; i++)
        memcpy(out + i * d, room + (few * i + fin_random_below(&r, few)) * d, row);
}

void fini_average_add(fini_average *average, double x)
{
    double step = x - average->mean;
    average->mean += step / (double)++average->count;
    average->squares += step * (x - average->mean);
}

double fini_average_error(const fini_average *average)
{
    double n = (double)average->count;
    return average->count < 2 ? NAN : sqrt(average->squares / (n - 1) / n);
}
