/* stats: what a table of runs is summed up with. */
#ifndef CLI_STATS_H
#define CLI_STATS_H

#include <stdint.h>

typedef struct stats_interval {
    double low, high;
} stats_interval;

/* Wilson's 95 % interval for a share of which `count` of `n` were seen: [0, ...] if none was, and
 * [..., 1] if all were. */
stats_interval stats_wilson(int64_t count, int64_t n);

void stats_sort(double *values, int64_t n);
/* Of sorted values, between neighbours on a straight line (numpy's default). NaN if n = 0. */
double stats_quantile(const double *sorted, int64_t n, double q);

#endif
