/* Small statistics: shares, quantiles, straight lines, Kolmogorov-Smirnov. */
#include "math/stats.h"
#include "base/constants.h"
#include "finetti/math.h"

#include <math.h>
#include <string.h>

/* (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)      Wilson, JASA 22 (1927) */
fini_interval fini_wilson(double count, int64_t n)
{
    const double z = 1.959963984540054;
    if (n <= 0)
        return (fini_interval){0, 1};
    if (!(count >= 0 && count <= (double)n))
        return (fini_interval){NAN, NAN};
    double p = count / (double)n, z2n = z * z / (double)n;
    double middle = p + z2n / 2;
    double half = z * sqrt((p * (1 - p) + z2n / 4) / (double)n);
    /* At the ends exactly, where rounding would leave 1e-17. */
    return (fini_interval){count == 0 ? 0 : (middle - half) / (1 + z2n),
                           count == (double)n ? 1 : (middle + half) / (1 + z2n)};
}

void fin_wilson(double count, int64_t n, double *low, double *high)
{
    fini_interval ends = fini_wilson(count, n);
    if (low)
        *low = ends.low;
    if (high)
        *high = ends.high;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int before(double a, double b)
{
    return a < b || (isnan(b) && !isnan(a));
}

/* Lets values[i] sink to its place in the heap of n. */
static void sink(double *values, int64_t i, int64_t n)
{
    double moving = values[i];
    for (int64_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && before(values[child], values[child + 1]);
        if (!before(moving, values[child]))
            break;
        values[i] = values[child];
    }
    values[i] = moving;
}

/* Heap sort: qsort may allocate behind our back. */
void fini_sort(double *values, int64_t n)
{
    for (int64_t i = n / 2; i-- > 0;)
        sink(values, i, n);
    for (int64_t end = n - 1; end > 0; end--) {
        double largest = values[0];
        values[0] = values[end];
        values[end] = largest;
        sink(values, 0, end);
    }
}

/* Merge sort: no input is slow. */
void fini_sort_places(const double *key, int64_t n, int64_t *order, int64_t *spare)
{
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t from = 0; from < n; from += 2 * width) {
            int64_t middle = from + width < n ? from + width : n;
            int64_t end = from + 2 * width < n ? from + 2 * width : n;
            int64_t a = from, b = middle;
            for (int64_t k = from; k < end; k++)
                spare[k] = b < end && (a == middle || before(key[order[b]], key[order[a]]))
                               ? order[b++]
                               : order[a++];
        }
        memcpy(order, spare, (size_t)n * sizeof *order);
    }
}

/* Hoare's selection: what stands at k when all are sorted is put there, what is not larger before it. */
static void find(double *values, int64_t n, int64_t k)
{
    for (int64_t from = 0, to = n - 1; from < to;) {
        double a = values[from], b = values[from + (to - from) / 2], c = values[to];
        double low = before(a, b) ? a : b, high = before(a, b) ? b : a;
        double middle = before(c, low) ? low : before(c, high) ? c : high;
        int64_t i = from, j = to;
        while (i <= j) {
            while (before(values[i], middle))
                i++;
            while (before(middle, values[j]))
                j--;
            if (i <= j) {
                double kept = values[i];
                values[i++] = values[j];
                values[j--] = kept;
            }
        }
        if (k <= j)
            to = j;
        else if (k >= i)
            from = i;
        else
            return;
    }
}

double fini_median(double *values, int64_t n)
{
    int64_t below = (n - 1) / 2;
    if (n <= 0)
        return NAN;
    find(values, n, below);
    double pair[2] = {values[below], values[n - 1]};
    for (int64_t i = below + 1; i < n; i++)
        pair[1] = before(values[i], pair[1]) ? values[i] : pair[1];
    return n % 2 ? pair[0] : fini_quantile(pair, 2, 0.5);
}

/* Neighbours that are equal, infinite ones too, need no line between them. */
double fini_quantile(const double *sorted, int64_t n, double q)
{
    if (n <= 0 || !(q >= 0 && q <= 1))
        return NAN;
    double place = q * (double)(n - 1);
    int64_t below = (int64_t)floor(place);
    double part = place - (double)below;
    if (below >= n - 1 || part == 0 || sorted[below] == sorted[below + 1])
        return sorted[below < n - 1 ? below : n - 1];
    return (1 - part) * sorted[below] + part * sorted[below + 1];
}

/* ---- mixtures ---------------------------------------------------------------------------------- */

/* Newton's method on F(x) = q, and halving where it leaves what is known. */
double fini_normals_quantile(int64_t n, const double *weight, const double *mean, const double *sd,
                             double q)
{
    const double far = 40, root2 = 1.4142135623730951, density = 0.3989422804014327;
    double low = INFINITY, high = -INFINITY, x = 0;
    for (int64_t i = 0; i < n; i++) {
        low = fmin(low, mean[i] - far * sd[i]);
        high = fmax(high, mean[i] + far * sd[i]);
        x += weight[i] * mean[i];
    }
    if (!(low < high) || !(q > 0 && q < 1))
        return NAN;
    const double tiny = 1e-15 * (high - low);
    for (int k = 0; k < 200; k++) {
        double below = -q, slope = 0;
        for (int64_t i = 0; i < n; i++) {
            double z = (x - mean[i]) / sd[i];
            below += 0.5 * weight[i] * erfc(-z / root2);
            slope += weight[i] / sd[i] * density * exp(-0.5 * z * z);
        }
        low = below < 0 ? x : low;
        high = below < 0 ? high : x;
        double next = x - below / slope, step = fabs(next - x);
        if (below == 0 || step <= tiny)
            return x;
        x = next > low && next < high ? next : 0.5 * (low + high);
    }
    return x;
}

/* ---- straight lines -------------------------------------------------------------------------- */

/* The mean without overflow, and once more about itself, which takes the rounding out. */
static double mean_of(const double *x, int64_t n)
{
    double mean = 0, rest = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        rest += (x[i] - mean) / (double)n;
    return mean + rest;
}

static double spread_of(const double *x, int64_t n, double mean)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i] - mean));
    return most;
}

/* With u = (x - mean x) / sx and w = (y - mean y) / sy, which are at most 1:
 *
 *     slope = (sum u w / sum u^2) sy / sx        residual^2 = sy^2 sum (w - b u)^2 / (n - 2)
 *     slope_error^2 = residual^2 / (sx^2 sum u^2)                                              */
fini_line fini_fit_line(const double *x, const double *y, int64_t n)
{
    fini_line line = {NAN, NAN, NAN, NAN};
    if (n < 2)
        return line;
    double x0 = mean_of(x, n), y0 = mean_of(y, n);
    double sx = spread_of(x, n, x0), sy = spread_of(y, n, y0);
    if (!isfinite(x0) || !isfinite(y0) || !(sx > 0))
        return line;
    double scale = sy > 0 ? sy : 1, uu = 0, uw = 0, square = 0;
    for (int64_t i = 0; i < n; i++) {
        double u = (x[i] - x0) / sx, w = (y[i] - y0) / scale;
        uu += u * u;
        uw += u * w;
    }
    double b = uw / uu;
    for (int64_t i = 0; i < n; i++) {
        double rest = (y[i] - y0) / scale - b * ((x[i] - x0) / sx);
        square += rest * rest;
    }
    line.slope = b * (scale / sx);
    line.intercept = y0 - line.slope * x0;
    if (n > 2) {
        line.residual = scale * sqrt(square / (double)(n - 2));
        line.slope_error = line.residual / (sx * sqrt(uu));
    }
    return line;
}

/* ---- Kolmogorov and Smirnov ------------------------------------------------------------------ */

/* Both walk past a tie together, because the distribution functions jump there at the same time. */
double fini_ks_distance(const double *a, int64_t n, const double *b, int64_t m)
{
    double largest = 0;
    if (n <= 0 || m <= 0)
        return NAN;
    for (int64_t i = 0, j = 0; i < n && j < m;) {
        double x = a[i] < b[j] ? a[i] : b[j];
        if (isnan(a[i]) || isnan(b[j]))
            return NAN;
        while (i < n && a[i] == x)
            i++;
        while (j < m && b[j] == x)
            j++;
        largest = fmax(largest, fabs((double)i / (double)n - (double)j / (double)m));
    }
    return largest;
}

/* P(K > x) = 2 sum_{j >= 1} (-1)^{j-1} exp(-2 j^2 x^2)                      for large x,
 *          = 1 - sqrt(2 pi)/x sum_{j >= 1} exp(-(2j-1)^2 pi^2 / (8 x^2))    for small x,
 * four terms of either are enough where it is used (Kolmogorov 1933). */
static double kolmogorov(double x)
{
    double sum = 0;
    if (x < 0.04) /* exp(-770) */
        return 1;
    if (x < 1) {
        for (int j = 1; j <= 7; j += 2)
            sum += exp(-(double)(j * j) * FINI_PI * FINI_PI / (8 * x * x));
        return 1 - sqrt(2 * FINI_PI) / x * sum;
    }
    for (int j = 1; j <= 4; j++)
        sum += (j % 2 ? 2 : -2) * exp(-2 * (double)(j * j) * x * x);
    return sum;
}

/* Two samples of n, without ties (Gnedenko and Korolyuk, Doklady 80 (1951)):
 *
 *     P(D >= c / n) = 2 sum_{j >= 1} (-1)^{j-1} C(2n, n - j c) / C(2n, n)
 *
 * The ratios are running products of (n - k + 1) / (n + k): they fall like exp(-k^2 / n), so that a
 * few times sqrt(n) factors are enough, and none of them overflows. */
static double equal_sizes(double distance, int64_t n)
{
    int64_t c = (int64_t)ceil(distance * (double)n - 1e-6); /* i/n - j/n is c/n but for rounding */
    double ratio = 1, sum = 0, sign = 1;
    if (c < 1)
        return 1;
    for (int64_t k = 1, next = c; k <= n && ratio > 1e-18 * sum; k++) {
        ratio *= (double)(n - k + 1) / (double)(n + k);
        if (k != next)
            continue;
        sum += sign * ratio;
        sign = -sign;
        next += c;
    }
    return fmin(1, fmax(0, 2 * sum));
}

/* With N = n m / (n + m), sqrt(N) D tends to Kolmogorov's law. Corrections such as Stephens' are
 * made for one sample against a law; for two they overshoot. */
double fini_ks_probability(double distance, int64_t n, int64_t m)
{
    const int64_t exact_most = 10000000;
    if (n <= 0 || m <= 0 || !(distance >= 0 && distance <= 1))
        return NAN;
    if (n == m && n <= exact_most)
        return equal_sizes(distance, n);
    double root = sqrt((double)n / ((double)n + (double)m) * (double)m);
    return fmin(1, kolmogorov(root * distance));
}
