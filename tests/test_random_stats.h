/* What the statistical tests share: z-scores that are printed and must stay below 5, a chi-square
 * test and the Kolmogorov-Smirnov distance. Seeds are fixed, so a test that passes once passes
 * always; |z| < 5 is what an honest generator exceeds once in 1.7 million. Include after cmocka.h.
 */
#ifndef TEST_RANDOM_STATS_H
#define TEST_RANDOM_STATS_H

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static double stats_worst; /* largest |z| since stats_begin */
static int stats_count;

static inline void stats_begin(void)
{
    stats_worst = 0;
    stats_count = 0;
}

static inline void stats_z(const char *what, double z)
{
    if (!(fabs(z) < 5))
        fail_msg("%s: z = %.2f", what, z);
    stats_worst = fabs(z) > stats_worst ? fabs(z) : stats_worst;
    stats_count++;
}

static inline void stats_end(const char *what)
{
    print_message("%s: %d z-scores, worst %.2f\n", what, stats_count, stats_worst);
    assert_true(stats_count > 0);
}

/* Sum, sum of squares: the mean against a known one, with the measured standard error. */
typedef struct stats_mean {
    double n, sum, squares;
} stats_mean;

static inline void stats_add(stats_mean *m, double x)
{
    m->n += 1;
    m->sum += x;
    m->squares += x * x;
}

static inline double stats_mean_z(const stats_mean *m, double want)
{
    double mean = m->sum / m->n, variance = m->squares / m->n - mean * mean;
    double floor = 1e-13 * (fabs(want) + fabs(mean)); /* a constant has no spread, only rounding */
    return (mean - want) / (sqrt((variance > 0 ? variance : 0) / m->n) + floor + 1e-300);
}

/* Pearson's statistic of `cells` counts with these probabilities as a z-score (Wilson-Hilferty). */
static inline double stats_chi_square_z(int64_t cells, const double *count,
                                        const double *probability, double n)
{
    double sum = 0, k = (double)(cells - 1);
    for (int64_t i = 0; i < cells; i++) {
        double want = n * (probability ? probability[i] : 1.0 / (double)cells);
        sum += (count[i] - want) * (count[i] - want) / want;
    }
    return (cbrt(sum / k) - (1 - 2 / (9 * k))) / sqrt(2 / (9 * k));
}

static inline int stats_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* sqrt(n) times the largest distance of the empirical law from `cdf`; sorts x. P(> 2.7) = 9e-7. */
static inline double stats_ks(int64_t n, double *x, double (*cdf)(double x, double parameter),
                              double parameter)
{
    double worst = 0;
    qsort(x, (size_t)n, sizeof *x, stats_order);
    for (int64_t i = 0; i < n; i++) {
        double F = cdf(x[i], parameter);
        worst = fmax(worst, fmax(F - (double)i / (double)n, (double)(i + 1) / (double)n - F));
    }
    return sqrt((double)n) * worst;
}

#endif
