/* Small statistics: shares, quantiles, straight lines, Kolmogorov-Smirnov. */
#ifndef FINI_STATS_H
#define FINI_STATS_H

#include <stdint.h>

typedef struct fini_interval {
    double low, high;
} fini_interval;

/* Wilson's 95 % interval of a share: count of n. */
fini_interval fini_wilson(double count, int64_t n);
void fini_sort(double *values, int64_t n); /* ascending; NaN last */
/* Numbers `order` of keys, so that the keys ascend, NaN last; of equal ones as they came. spare: (n). */
void fini_sort_places(const double *key, int64_t n, int64_t *order, int64_t *spare);
/* fini_quantile(sorted, n, 0.5) of what is not sorted; their order is lost. NaN counts as largest. */
double fini_median(double *values, int64_t n);
/* Between order statistics, linearly; q in [0, 1]. NaN if n = 0. */
double fini_quantile(const double *sorted, int64_t n, double q);
/* Of a mixture of n normals with these weights, whose sum is 1, means and positive deviations; q in (0, 1). */
double fini_normals_quantile(int64_t n, const double *weight, const double *mean, const double *sd,
                             double q);

/* Least squares y = intercept + slope x. slope_error: its standard error from the residuals, NaN if
 * n < 3. */
typedef struct fini_line {
    double slope, intercept, slope_error, residual; /* residual: standard deviation */
} fini_line;
fini_line fini_fit_line(const double *x, const double *y, int64_t n);

/* Two-sample Kolmogorov-Smirnov statistic of sorted samples, and the probability of one that is not
 * smaller if both have the same continuous law: exact for n = m up to 10^7, else asymptotic. */
double fini_ks_distance(const double *a, int64_t n, const double *b, int64_t m);
double fini_ks_probability(double distance, int64_t n, int64_t m);

#endif
