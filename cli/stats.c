/* Quantiles and shares. */
#include "stats.h"

#include <math.h>
#include <stdlib.h>

/* (p + z^2/2n +- z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n)      Wilson, JASA 22 (1927) */
stats_interval stats_wilson(int64_t count, int64_t n)
{
    const double z = 1.959963984540054;
    double p = (double)count / (double)n, z2n = z * z / (double)n;
    double middle = p + z2n / 2;
    double half = z * sqrt((p * (1 - p) + z2n / 4) / (double)n);
    /* At the ends exactly, where rounding would leave 1e-17. */
    return (stats_interval){count == 0 ? 0 : (middle - half) / (1 + z2n),
                            count == n ? 1 : (middle + half) / (1 + z2n)};
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void stats_sort(double *values, int64_t n)
{
    qsort(values, (size_t)n, sizeof *values, ascending);
}

double stats_quantile(const double *sorted, int64_t n, double q)
{
    if (n == 0)
        return NAN;
    double place = q * (double)(n - 1);
    int64_t below = (int64_t)floor(place);
    double part = place - (double)below;
    return part > 0 ? sorted[below] + part * (sorted[below + 1] - sorted[below]) : sorted[below];
}
