/* Bags for the tests of maps, and processes that are threads. Include after cmocka.h. */
#ifndef TEST_TRAIN_MAP_HELP_H
#define TEST_TRAIN_MAP_HELP_H

#include "bags/bags.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HELP_N = 90, HELP_D = 5, HELP_LONGEST = 4 };

/* Whole numbers by arithmetic alone, so that tests/data/bags_map.py makes the same bags: bag i has
 * 1 + i % 4 tokens; column 3 is constant, column 4 has a heavy tail. */
typedef struct help_bags {
    int64_t offsets[HELP_N + 1];
    double tokens[HELP_N * HELP_LONGEST * HELP_D];
    float floats[HELP_N * HELP_LONGEST * HELP_D];
    double labels[HELP_N];
    fin_bags bags;
} help_bags;

static inline double help_number(int64_t t, int64_t j)
{
    int64_t u = (t * 7919 + j * 104729 + t * t * 31 + (t + 3) * (j + 1) * 271) % 1009;
    return j == 3 ? 0.1 : j == 4 ? (double)(u * u % 1009 < 40 ? u * 50 : u % 7) : (double)u / 64;
}

static inline void help_open(help_bags *h)
{
    h->offsets[0] = 0;
    for (int64_t i = 0; i < HELP_N; i++) {
        h->offsets[i + 1] = h->offsets[i] + 1 + i % HELP_LONGEST;
        h->labels[i] = (double)(i % 2);
    }
    for (int64_t t = 0; t < h->offsets[HELP_N]; t++)
        for (int64_t j = 0; j < HELP_D; j++) {
            h->tokens[t * HELP_D + j] = help_number(t, j);
            h->floats[t * HELP_D + j] = (float)h->tokens[t * HELP_D + j];
        }
    h->bags =
        (fin_bags){HELP_N, HELP_D, 0, HELP_N, h->offsets, FIN_F64, h->tokens, h->labels, NULL};
}

static inline fin_fit_settings help_settings(int model, int features, int map, int64_t landmarks)
{
    fin_fit_settings s;
    memset(&s, 0, sizeof s);
    s.model = model;
    s.basis = FIN_BASIS_LINEAR + features;
    s.map = map;
    s.landmarks = landmarks;
    s.bandwidth = FIN_AUTO;
    s.seed = 1;
    return s;
}

/* All rows of a view as doubles (rows, p); freed by the caller. */
static inline double *help_rows(const fini_phi *phi, int64_t p)
{
    const fin_bags *b = &phi->bags;
    int64_t rows = b->offsets[b->n] - b->offsets[0];
    double *out = malloc((size_t)(rows * p + 1) * sizeof *out);
    for (int64_t t = 0; t < rows * p; t++) {
        double x = b->dtype == FIN_F32 ? (double)((const float *)b->tokens)[t]
                                       : ((const double *)b->tokens)[t];
        if (phi->center)
            x = phi->scale[t % p] *
                fmax(-phi->bound[t % p], fmin(phi->bound[t % p], x - phi->center[t % p]));
        out[t] = x;
    }
    return out;
}

/* ---- processes ------------------------------------------------------------------------------- */

enum { HELP_RANKS = 4 };
static _Thread_local int64_t help_first; /* first block of this process */
static _Thread_local int64_t help_own;   /* its blocks */
static pthread_barrier_t help_barrier;
static double *help_board; /* (blocks, n) */
static int64_t help_n;

/* As fin_ranks_sum: everybody writes its blocks, everybody adds all of them up. */
static inline fin_status help_sum(int64_t blocks, int64_t n, double *parts, double *sum,
                                  fin_error *err)
{
    int lead = pthread_barrier_wait(&help_barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
    if (lead) {
        help_board = malloc((size_t)(blocks * n) * sizeof *help_board);
        help_n = n;
    }
    pthread_barrier_wait(&help_barrier);
    if (n != help_n) { /* over MPI that is a crash, or waiting for ever */
        fprintf(stderr, "processes sum %lld and %lld numbers\n", (long long)n, (long long)help_n);
        abort();
    }
    memcpy(help_board + help_first * n, parts, (size_t)(help_own * n) * sizeof *parts);
    pthread_barrier_wait(&help_barrier);
    double *copy = malloc((size_t)(blocks * n) * sizeof *copy);
    memcpy(copy, help_board, (size_t)(blocks * n) * sizeof *copy);
    fin_status status = fini_sum_alone(blocks, n, copy, sum, err);
    free(copy);
    pthread_barrier_wait(&help_barrier);
    if (lead)
        free(help_board);
    return status;
}

/* The share of a process; its tokens start with its own first one. */
static inline fin_bags help_share(const fin_bags *all, int rank, int ranks)
{
    fin_bags own = *all;
    fin_bags_share(all->total, rank, ranks, &own.first, &own.n);
    own.offsets = all->offsets + own.first;
    size_t size = all->dtype == FIN_F32 ? sizeof(float) : sizeof(double);
    own.tokens = (const char *)all->tokens +
                 (size_t)((all->offsets[own.first] - all->offsets[0]) * all->d) * size;
    own.labels = all->labels + own.first;
    int64_t blocks = fin_bags_blocks(all->total);
    help_first = help_own = 0;
    for (int64_t b = 0; b < blocks; b++) {
        int64_t begin = b * all->total / blocks;
        help_first += begin < own.first;
        help_own += begin >= own.first && begin < own.first + own.n;
    }
    return own;
}

#endif
