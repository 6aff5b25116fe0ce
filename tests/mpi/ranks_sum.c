/* Sums over ranks: every rank prints what it got, bit by bit. The lines must not depend on how many
 * ranks there are; tests/all/study_mpi.sh compares them. */
#include "join.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A sum that comes out differently in almost any other order. */
static double part(int64_t block, int64_t i)
{
    double x = (double)(block * 1000 + i);
    return sin(1.7 * x) * exp(20 * cos(0.3 * x));
}

static int sum(int64_t blocks, int64_t n)
{
    int64_t first, count;
    fin_error err;
    fin_ranks_share(blocks, &first, &count);
    double *parts = malloc((size_t)(count * n + 1) * sizeof *parts);
    double *total = malloc((size_t)(n + 1) * sizeof *total);
    if (!parts || !total)
        return 1;
    for (int64_t b = 0; b < count; b++)
        for (int64_t i = 0; i < n; i++)
            parts[b * n + i] = part(first + b, i);
    if (fin_ranks_sum(blocks, n, parts, total, &err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    printf("%lld blocks:", (long long)blocks);
    for (int64_t i = 0; i < n; i += 1 + n / 3)
        printf(" %a", total[i]);
    printf("\n");
    free(parts);
    free(total);
    return 0;
}

int main(void)
{
    fin_error err;
    int failed = 0;
    if (join_ranks(&err)) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    for (int64_t blocks = 0; blocks <= 40 && !failed; blocks++)
        failed = sum(blocks, 5);
    failed = failed || sum(1000, 1) || sum(64, 0) || sum(3, 100000);
    fin_ranks_end();
    return failed;
}
