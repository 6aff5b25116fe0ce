/* What the tests of the train module share: short ways to make tasks and runs. Include after
 * cmocka.h. */
#ifndef TEST_TRAIN_HELP_H
#define TEST_TRAIN_HELP_H

#include "finetti.h"
#include "finetti/train.h"
#include "train/train.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static fin_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call)                                                                                  \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)

static inline fin_task_settings task_settings(const char *kind, int64_t d, int64_t L)
{
    fin_task_settings s;
    memset(&s, 0, sizeof s);
    fin_settings_defaults(fin_task_kind_table(fin_task_find(kind)), &s, sizeof s);
    s.d = d;
    s.L = L;
    return s;
}

static inline fin_task *task_make(const char *kind, const fin_task_settings *s, uint64_t seed,
                                  int flags)
{
    fin_task *task = NULL;
    OK(fin_task_create(&task, fin_task_find(kind), s, NULL, seed, flags, &err));
    return task;
}

static inline fin_form_settings form_settings(const char *form, double lam)
{
    fin_form_settings s;
    memset(&s, 0, sizeof s);
    fin_settings_defaults(fin_form_table(fin_form_find(form)), &s, sizeof s);
    if (lam >= 0)
        s.lam = lam;
    return s;
}

static inline fin_train_settings train_settings(int engine, int64_t runs, int64_t steps)
{
    fin_train_settings s;
    memset(&s, 0, sizeof s);
    fin_settings_defaults(&fin_train_table, &s, sizeof s);
    s.engine = engine;
    s.runs = runs;
    s.steps = steps;
    s.risk_samples = 2;
    return s;
}

static inline fin_train *train_make(const fin_task *task, const char *form,
                                    const fin_form_settings *fs, const fin_train_settings *s,
                                    const fin_train_start *start)
{
    fin_train *train = NULL;
    OK(fin_train_create(&train, task, fin_form_find(form), fs, s, start, &err));
    return train;
}

static inline fin_train_array train_array(const fin_train *t, const char *name)
{
    fin_train_array a = {0};
    for (int i = 0; i < fini_train_array_count(t); i++) {
        OK(fini_train_get_array(t, i, &a, &err));
        if (strcmp(a.name, name) == 0)
            return a;
    }
    fail_msg("no array '%s'", name);
    return a;
}

/* Value `log` of run `run` in an array of logs. */
static inline double train_log(const fin_train *t, const char *name, int64_t run, int64_t log)
{
    fin_train_array a = train_array(t, name);
    assert_true(run < a.shape[0] && log < a.shape[1]);
    return ((const double *)a.data)[run * a.shape[1] + log];
}

/* Bytes of an array. */
static inline size_t train_bytes(const fin_train_array *a)
{
    return (size_t)a->shape[0] * (size_t)(a->ndim > 1 ? a->shape[1] : 1) * 8;
}

static inline double dot(int64_t n, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Overlaps of vectors whose first coordinates are those along k*, v*. */
static inline fin_overlaps overlaps_of(int64_t n, const double *k, const double *v)
{
    double kk = sqrt(dot(n, k, k)), vv = sqrt(dot(n, v, v));
    return (fin_overlaps){k[0] / kk, v[1] / vv, v[0] / vv, k[1] / kk, dot(n, k, v) / (kk * vv)};
}

/* Two-sample Kolmogorov-Smirnov: the probability of so large a distance (sorts both; small where
 * the laws differ). Smirnov's limit with Stephens' correction; ties make it cautious. */
static inline int ks_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static inline double ks_probability(int64_t n, double *a, int64_t m, double *b)
{
    double worst = 0;
    qsort(a, (size_t)n, sizeof *a, ks_order);
    qsort(b, (size_t)m, sizeof *b, ks_order);
    for (int64_t i = 0, j = 0; i < n && j < m;) {
        double x = a[i] < b[j] ? a[i] : b[j];
        while (i < n && a[i] <= x)
            i++;
        while (j < m && b[j] <= x)
            j++;
        worst = fmax(worst, fabs((double)i / (double)n - (double)j / (double)m));
    }
    double root = sqrt((double)n * (double)m / (double)(n + m));
    double x = (root + 0.12 + 0.11 / root) * worst, sum = 0;
    if (x < 0.3)
        return 1;
    for (int j = 1; j < 20; j++)
        sum += (j % 2 ? 2 : -2) * exp(-2 * j * j * x * x);
    return sum < 0 ? 0 : sum > 1 ? 1 : sum;
}

#endif
