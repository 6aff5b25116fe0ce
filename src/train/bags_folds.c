/* Folds for cross-validation: stratified, repeated, a pure function of the seed.
 *
 * Bags are put in a line in which like labels are neighbours, in random order among equals, and the
 * folds are dealt along the line:
 *
 *     classes   class after class, fold = place mod folds: within every class and over all, sizes
 *               differ by one at most. Which fold is dealt first is random, so that fold 0 is not the
 *               largest in all repeats.
 *     numbers   by size of the label; each run of `folds` neighbours gets all folds in random
 *               order: every fold has its share of every quantile.
 *
 * Every repeat is a stream sample of its own: repeat 3 of 5 is repeat 3 of 100. */
#include "train/bags_judge.h"

#include "finetti/random.h"

#include <math.h>
#include <string.h>

enum { STREAM = 301 };

static void shuffle(fin_random *random, int64_t n, int64_t *items)
{
    for (int64_t i = n - 1; i > 0; i--) {
        int64_t j = fin_random_below(random, i + 1), kept = items[i];
        items[i] = items[j];
        items[j] = kept;
    }
}

/* Stable merge sort of bag numbers by label: equals keep their random order. */
static void sort_by_label(const double *labels, int64_t n, int64_t *line, int64_t *buffer)
{
    for (int64_t width = 1; width < n; width *= 2) {
        for (int64_t from = 0; from < n; from += 2 * width) {
            int64_t middle = from + width < n ? from + width : n;
            int64_t end = from + 2 * width < n ? from + 2 * width : n;
            int64_t a = from, b = middle;
            for (int64_t k = from; k < end; k++)
                buffer[k] = a < middle && (b == end || labels[line[a]] <= labels[line[b]])
                                ? line[a++]
                                : line[b++];
        }
        memcpy(line, buffer, (size_t)n * sizeof *line);
    }
}

/* order: (folds) numbers of folds, in the order of dealing. */
static void deal(fin_random *random, int64_t classes, int64_t n, const int64_t *line, int folds,
                 int64_t *order, int32_t *fold)
{
    for (int f = 0; f < folds; f++)
        order[f] = f;
    for (int64_t k = 0; k < n; k++) {
        if (k == 0 || (!classes && k % folds == 0))
            shuffle(random, folds, order);
        fold[line[k]] = (int32_t)order[k % folds];
    }
}

/* ---- what can be dealt -------------------------------------------------------------------------- */

static fin_status check_label(int64_t i, int64_t classes, double y, fin_error *err)
{
    if (classes ? y >= 0 && y < (double)classes && y == floor(y) : (bool)isfinite(y))
        return FIN_OK;
    if (!classes)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the label of bag %lld is not a finite number; folds need all labels",
                         (long long)i);
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "bag %lld has the label %g; with %lld classes it is one of 0 .. %lld",
                     (long long)i, y, (long long)classes, (long long)classes - 1);
}

/* In a line sorted by class: takes out the bags that are the only one of their class. When such a bag
 * is left out, there is nothing to learn about its class from. */
static fin_status drop_lone(const double *labels, bool lone, int64_t *n, int64_t *line,
                            fin_error *err)
{
    int64_t kept = 0;
    for (int64_t k = 0, end; k < *n; k = end) {
        double y = labels[line[k]];
        for (end = k + 1; end < *n && labels[line[end]] == y;)
            end++;
        if (end == k + 1 && !lone)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "class %g has a single bag (bag %lld): when it is left out, nothing "
                             "is known of its class; every class needs two bags at least",
                             y, (long long)line[k]);
        for (int64_t j = k; j < end && end > k + 1; j++)
            line[kept++] = line[j];
    }
    *n = kept;
    return FIN_OK;
}

static fin_status check_sizes(int64_t n, int64_t classes, int repeats, int folds, fin_error *err)
{
    if (n < 1 || classes < 0 || classes == 1)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "folds of %lld bags with %lld classes; give at least one bag, and 0 "
                         "classes (numbers) or at least 2",
                         (long long)n, (long long)classes);
    if (repeats < 1 || folds < 2)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%d folds, %d times; give at least 2 folds, once; usual are 10 folds, 5 "
                         "times",
                         folds, repeats);
    return FIN_OK;
}

/* Fills `line` with the bags that are dealt. */
static fin_status line_up(int64_t n, int64_t classes, const double *labels,
                          const unsigned char *use, int64_t *count, int64_t *line, fin_error *err)
{
    *count = 0;
    for (int64_t i = 0; i < n; i++) {
        fin_status status = FIN_OK;
        if (use && !use[i])
            continue;
        if ((status = check_label(i, classes, labels[i], err)))
            return status;
        line[(*count)++] = i;
    }
    return FIN_OK;
}

fin_status fini_folds_make(int64_t n, int64_t classes, const double *labels,
                           const unsigned char *use, bool lone, int repeats, int folds,
                           int64_t seed, int32_t *fold, fin_error *err)
{
    fin_status status = check_sizes(n, classes, repeats, folds, err);
    int64_t count = 0, *line = NULL, *buffer = NULL, *order = NULL;
    if (status)
        return status;
    line = fini_alloc_array(n, sizeof *line);
    buffer = fini_alloc_array(n, sizeof *buffer);
    order = fini_alloc_array(folds, sizeof *order);
    if (!line || !buffer || !order)
        status = fini_fail_memory(err, (size_t)n * 2 * sizeof *line, "folds");
    for (int r = 0; !status && r < repeats; r++) {
        fin_random random;
        fin_random_open(&random, (uint64_t)seed, STREAM, (uint64_t)r);
        if ((status = line_up(n, classes, labels, use, &count, line, err)))
            break;
        shuffle(&random, count, line);
        sort_by_label(labels, count, line, buffer);
        if (classes && (status = drop_lone(labels, lone, &count, line, err)))
            break;
        if (count < folds) {
            status =
                fini_fail(err, FIN_ERR_ARGUMENT,
                          "%d folds of %lld bags: some would be empty; give at most %lld folds",
                          folds, (long long)count, (long long)count);
            break;
        }
        memset(fold + r * n, 0xff, (size_t)n * sizeof *fold); /* -1 */
        deal(&random, classes, count, line, folds, order, fold + r * n);
    }
    fini_free(line);
    fini_free(buffer);
    fini_free(order);
    return status;
}

fin_status fin_folds_make(int64_t n, int64_t classes, const double *labels, const int64_t *groups,
                          int repeats, int folds, int64_t seed, int32_t *fold, fin_error *err)
{
    (void)groups;
    return fini_folds_make(n, classes, labels, NULL, false, repeats, folds, seed, fold, err);
}
