/* Bags whose label is decided by one token, for the tests of validating and choosing. */
#ifndef TEST_TRAIN_VALIDATE_HELP_H
#define TEST_TRAIN_VALIDATE_HELP_H

#include "finetti/random.h"
#include "bags/judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static fin_error err;

#define OK(call)                                                                                   \
    do {                                                                                           \
        err = (fin_error){FIN_OK, ""};                                                             \
        if (call)                                                                                  \
            fail_msg("%s", err.message);                                                           \
    } while (0)

enum { BAGS_MOST = 200, DIM = 3, LONGEST = 4 };

typedef struct toy {
    int64_t offsets[BAGS_MOST + 1];
    double tokens[BAGS_MOST * LONGEST * DIM], labels[BAGS_MOST];
    fin_bags bags;
} toy;

/* One token of a bag stands out in column 0; the label is that token's column 1 (its sign, if
 * there are two classes; -1, 0, 1 cut at +-0.4 for three), with noise. */
static inline void toy_draw(toy *t, int64_t n, int64_t classes, double noise, uint64_t seed)
{
    fin_random r;
    fin_random_open(&r, seed, FIN_STREAM_USER, 0);
    t->offsets[0] = 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t L = 2 + fin_random_below(&r, LONGEST - 1), at = fin_random_below(&r, L);
        double *x = t->tokens + t->offsets[i] * DIM;
        for (int64_t k = 0; k < L * DIM; k++)
            x[k] = fin_random_normal(&r);
        x[at * DIM] += 3;
        double y = 2 * x[at * DIM + 1] + noise * fin_random_normal(&r);
        t->labels[i] = classes == 2 ? y > 0 : classes == 3 ? (y > -0.8) + (y > 0.8) : y;
        t->offsets[i + 1] = t->offsets[i] + L;
    }
    t->bags = (fin_bags){.n = n,
                         .d = DIM,
                         .total = n,
                         .offsets = t->offsets,
                         .dtype = FIN_F64,
                         .tokens = t->tokens,
                         .labels = t->labels};
}

/* Mean over bags in use of what m loses more than `best` (-1: of its loss), and its standard error. */
static inline double toy_worse(int n, const unsigned char *use, const double *P, int m, int best,
                               double *se)
{
    double sum = 0, squares = 0, count = 0;
    for (int i = 0; i < n; i++)
        if (use[i]) {
            double gap = -log(P[m * n + i]) + (best < 0 ? 0 : log(P[best * n + i]));
            sum += gap;
            squares += gap * gap;
            count++;
        }
    *se = sqrt((squares - sum * sum / count) / (count - 1) / count);
    return sum / count;
}

/* What a stack is made of: the best candidate by P (models, n), and the strong kinds that are not worse
 * by more than two standard errors. in: their numbers; returns how many there are. */
static inline int toy_stack(int n, const unsigned char *use, int models,
                            const fin_fit_settings *list, const double *P, int *in)
{
    int best = 0, kept = 0;
    double se;
    for (int m = 1; m < models; m++)
        if (toy_worse(n, use, P, m, -1, &se) < toy_worse(n, use, P, best, -1, &se))
            best = m;
    for (int m = 0; m < models; m++) {
        bool strong = list[m].model == FIN_MODEL_SOFTMAX || list[m].model == FIN_MODEL_MIXTURE ||
                      list[m].model == FIN_MODEL_EMBEDDING ||
                      (list[m].model == FIN_MODEL_ANY && list[m].basis == FIN_BASIS_BOTH);
        double gap = toy_worse(n, use, P, m, best, &se);
        if (m == best || (strong && gap <= 2 * se))
            in[kept++] = m;
    }
    return kept;
}

/* Small and fast. */
static inline fin_fit_settings toy_settings(int model)
{
    fin_fit_settings s;
    fin_settings_defaults(&fin_fit_table, &s, sizeof s);
    s.model = model;
    s.iterations = 8;
    s.em_steps = 1;
    s.landmarks = 4;
    s.inner = 3;
    s.penalty = 0.1; /* one member */
    return s;
}

#endif
