/* Small things that many files would write again. Sums go from the first to the last. */
#ifndef FINI_SMALL_H
#define FINI_SMALL_H

#include <stdint.h>

static inline int64_t fini_least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline double fini_dot_in_order(int64_t n, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

#endif
