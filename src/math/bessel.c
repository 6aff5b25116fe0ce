/* Modified Bessel functions of the first kind, I_nu(x): the logarithm and the ratio of neighbours.
 *
 * Debye's expansion in 1/nu is uniform in x (DLMF 10.41.3, with p = nu/h, h = sqrt(nu^2 + x^2)):
 *
 *     log(I_nu(x) e^-x) = nu^2/(h+x) - nu asinh(nu/x) - log(2 pi h)/2 + sum_k D_k(p) / nu^k,
 *
 * where sum_k D_k / nu^k is the logarithm of the series printed there. Its derivative in x, less
 * nu/x, is the ratio, and (h - nu)/x = x/(h + nu) makes it free of cancellation:
 *
 *     I_{nu+1}/I_nu = x [ 1/(h+nu) - 1/(2 h^2) - p^3/nu^2 sum_k D_k'(p) / nu^k ].
 *
 * From nu = 32 on twelve terms are full double precision: the thirteenth is below 1e-17 for every
 * p. Smaller orders come down from there by r_{nu-1} = x / (2 nu + x r_nu), the step of the
 * continued fraction, which never amplifies a relative error. So the cost is at most 32 divisions
 * for any nu and x, where the continued fraction alone needs 6 sqrt(x) steps. The logarithm at
 * small nu and x is the power series, whose terms are positive. */
#define _DEFAULT_SOURCE /* lgamma_r */
#include "math/bessel.h"
#include "finetti/math.h"
#include "base/constants.h"

#include <math.h>

enum { TERMS = 12, ORDER = 32 };

/* D_k(p) = p^k (c_0 + c_1 p^2 + ... + c_k p^(2k)), row k-1: c_0 .. c_k. Printed by
 * tests/data/bessel_debye.py. */
static const double debye[TERMS][TERMS + 1] = {
    {0.125, -0.20833333333333334},
    {0.0625, -0.375, 0.3125},
    {0.06510416666666667, -0.8296875, 1.7265625, -0.9592013888888888},
    {0.1015625, -2.21875, 8.296875, -10.59375, 4.4140625},
    {0.2095703125, -6.982282366071429, 40.542751736111114, -87.693359375, 80.8837890625,
     -26.961263020833332},
    {0.5364583333333334, -25.3125, 209.625, -673.625, 1021.640625, -737.8125, 204.94791666666666},
    {1.6380658830915178, -103.97592163085938, 1160.8294372558594, -5140.211273193359,
     11304.659503173829, -13184.767364501953, 7824.899444580078, -1863.07129632859},
    {5.809814453125, -477.615234375, 6904.2763671875, -40090.447265625, 119071.95263671875,
     -198321.806640625, 187801.9013671875, -94603.037109375, 19708.966064453125},
    {23.475127749972874, -2427.2885336442428, 44069.78581237793, -323875.5657704671,
     1240124.8821487427, -2752869.211418152, 3683609.1391855874, -2935198.3014678955,
     1284393.7849998474, -237850.70092589766},
    {106.467822265625, -13526.99560546875, 301187.0236816406, -2727462.591796875,
     13026405.797363281, -36852414.786914065, 65112147.795410156, -72748886.00585938,
     50027742.52075195, -19350359.06982422, 3225059.844970703},
    {535.640519510616, -82046.56579866775, 2197624.750671816, -24011994.284158945,
     139535179.1724906, -487422412.2709402, 1088470361.2907014, -1594676024.676859,
     1528592829.647338, -924445055.3424871, 320384038.82623315, -48543036.1857929},
    {2960.739786783854, -538164.052734375, 17067704.537109375, -221216118.06429037,
     1533944655.227417, -6461280179.630859, 17683879971.17871, -32540336002.749023,
     40681628863.23303, -34134822577.796875, 18421426618.901367, -5782944462.414551,
     803186730.8909098},
};

typedef struct debye_sum {
    double value; /* sum_k D_k(p) / nu^k */
    double slope; /* sum_k D_k'(p) / nu^k */
} debye_sum;

static debye_sum debye_evaluate(double nu, double p)
{
    debye_sum sum = {0, 0};
    for (int k = TERMS; k >= 1; k--) { /* Horner in p/nu: D_k / nu^k = (p/nu)^k polynomial */
        const double *c = debye[k - 1];
        double polynomial = 0, weighted = 0;
        for (int j = k; j >= 0; j--) {
            polynomial = polynomial * p * p + c[j];
            weighted = weighted * p * p + (k + 2 * j) * c[j];
        }
        sum.value = (sum.value + polynomial) * (p / nu);
        sum.slope = (k > 1 ? p / nu : 1 / nu) * (sum.slope + weighted);
    }
    return sum;
}

/* asinh(nu/x), also where the quotient is too large for a number. */
static double asinh_quotient(double nu, double x)
{
    const double log_two = 0.69314718055994530942;
    return nu / x < 1e300 ? asinh(nu / x) : log(nu) - log(x) + log_two;
}

static double large_log(double nu, double x)
{
    double h = hypot(nu, x), p = nu / h;
    return nu * (nu / 2 / (h / 2 + x / 2)) - nu * asinh_quotient(nu, x) - FINI_LOG_TWO_PI / 2 -
           log(h) / 2 + debye_evaluate(nu, p).value;
}

static double large_ratio(double nu, double x)
{
    double h = hypot(nu, x), p = nu / h;
    return x / (h + nu) - x / h / h / 2 - p * (p / nu) * (p / nu) * x * debye_evaluate(nu, p).slope;
}

/* r of order nu, and the product of the ratios passed on the way: I_{nu+steps} / I_nu. */
static double descend(double nu, int steps, double x, double *product)
{
    double r = large_ratio(nu + steps, x);
    *product = 1;
    for (int i = steps; i >= 1; i--) {
        r = x / (2 * (nu + i) + x * r);
        *product *= r;
    }
    return r;
}

static int steps_to_large(double nu)
{
    return nu < ORDER ? (int)ceil(ORDER - nu) : 0;
}

double fini_bessel_ratio(double nu, double x)
{
    if (!(nu >= 0 && x >= 0) || (isinf(nu) && isinf(x)))
        return NAN;
    if (x == 0 || isinf(nu))
        return 0;
    if (isinf(x))
        return 1;
    if (nu > 1e300 || x > 1e300) { /* only their quotient matters, and sums may not overflow */
        nu /= 16;
        x /= 16;
    }
    double product;
    return descend(nu, steps_to_large(nu), x, &product);
}

/* 1 - r, where r is near one: 1 - x/(h+nu) = (nu + nu^2/(h+x)) / (h+nu), and then downwards
 *     1 - r_{nu-1} = (2 nu - x (1 - r_nu)) / (2 nu + x r_nu),
 * which loses a factor of 65 at most, since x (1 - r_nu) is about nu + 1/2. */
double fini_bessel_gap(double nu, double x)
{
    int steps = steps_to_large(nu);
    double order = nu + steps;
    if (!(nu >= 0 && x > order && x < 1e300))
        return 1 - fini_bessel_ratio(nu, x);
    double h = hypot(order, x), p = order / h, slope = debye_evaluate(order, p).slope;
    double gap = (order + order * (order / (h + x))) / (h + order) + x / h / h / 2 +
                 p * (p / order) * (p / order) * x * slope;
    for (int i = steps; i >= 1; i--) {
        double twice = 2 * (nu + i);
        gap = (twice - x * gap) / (twice + x * (1 - gap));
    }
    return gap;
}

/* I_nu(x) = (x/2)^nu / Gamma(nu+1) (1 + sum_k (x^2/4)^k / (k! (nu+1)...(nu+k))): the logarithm of
 * the bracket. */
static double small_series(double nu, double x)
{
    double term = 1, sum = 0, y = x * x / 4;
    for (int k = 1; term > sum * 1e-18; k++) {
        term *= y / (k * (nu + k));
        sum += term;
        if (term == 0)
            break;
    }
    return log1p(sum);
}

/* lgamma may write to signgam, which all threads share. */
static double log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

double fini_bessel_log(double nu, double x)
{
    if (!(nu >= 0 && x >= 0) || (isinf(nu) && isinf(x)))
        return NAN;
    if (x == 0 && nu == 0)
        return 0;
    if (x == 0 || isinf(x) || isinf(nu))
        return -INFINITY;
    if (nu < ORDER && x < ORDER) {
        double half = x < 1e-300 ? log(x) - log(2) : log(x / 2); /* x/2 may be 0 */
        return (nu > 0 ? nu * half - log_gamma(nu + 1) : 0) + small_series(nu, x) - x;
    }
    double product;
    int steps = steps_to_large(nu);
    descend(nu, steps, x, &product);
    return large_log(nu + steps, x) - log(product);
}

/* For nu >= 32, with e = (h - nu)/(2 nu) = x^2 / (2 nu (h + nu)) and Stirling's series for Gamma,
 * which is -sum_k D_k(1) / nu^k, every large term cancels by algebra and what remains has one sign:
 *     (h - nu - x) - nu log(1 + e) - log(1 + 2 e)/2 + sum_k (D_k(p) - D_k(1)) / nu^k. */
double fini_bessel_reduced(double nu, double x)
{
    if (!(nu >= 0 && x >= 0) || isinf(nu) || isinf(x))
        return isinf(x) && x > 0 && nu >= 0 && !isinf(nu) ? -INFINITY : NAN;
    if (x == 0)
        return 0;
    if (x < ORDER)
        return small_series(nu, x) - x;
    if (nu < ORDER)
        return fini_bessel_log(nu, x) - nu * log(x / 2) + log_gamma(nu + 1);
    double h = hypot(nu, x), e = x / nu * (x / (h + nu)) / 2;
    double shift = -nu * ((x / (h + nu) + 1) * (x / (h + x)));
    return shift - nu * log1p(e) - log1p(2 * e) / 2 + debye_evaluate(nu, nu / h).value -
           debye_evaluate(nu, 1).value;
}
