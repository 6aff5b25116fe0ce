/* Is it the same kind of data? Columns that belong to bags, ranges of columns, bags seen before.
 *
 * A fit keeps the range of every column over its training tokens, and a hash of every training bag: 52
 * bits, the sum over tokens of a hash of the token's numbers, so that the order of tokens does not matter.
 * Both are found block by block, so that any number of processes has the same bits. */
#include "bags/map.h"

#include <math.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

enum { SOME = 128, FEW = 50 };            /* columns whose ranges are brought together at a time */
static const int64_t most_bags = 1000000; /* of which hashes are kept */

/* ---- columns of bags ----------------------------------------------------------------------------- */

typedef struct levels {
    const fin_bags *bags;
    double *first; /* (d) of the very first token; then how many bags have several */
} levels;

static void first_token(const void *user, int64_t i, double *sums)
{
    const fin_bags *bags = ((const levels *)user)->bags;
    for (int64_t j = 0; j < bags->d && bags->first + i == 0; j++)
        sums[j] = fin_dtype_get(bags->dtype, bags->tokens, j);
    sums[bags->d] += bags->offsets[i + 1] - bags->offsets[i] > 1;
}

/* Bags in which a column is not constant, and bags that differ from the first token. */
static void count_unlike(const void *user, int64_t i, double *sums)
{
    const levels *o = user;
    int64_t d = o->bags->d, from, to;
    double room[SOME], own[SOME];
    bool unlike[SOME];
    int64_t known = 0;
    while (known < 2 * d && sums[known] > 0)
        known++;
    if (known == 2 * d) /* of its block; how many does not matter */
        return;
    fini_bag_rows(o->bags, i, &from, &to);
    for (int64_t a = 0; a < d; a += SOME) {
        int64_t n = d - a < SOME ? d - a : SOME;
        memcpy(own, fini_row(o->bags, from, a, a + n, room), (size_t)n * sizeof *own);
        memset(unlike, 0, sizeof unlike);
        for (int64_t r = from + 1; r < to; r++) {
            const double *x = fini_row(o->bags, r, a, a + n, room);
            for (int64_t j = 0; j < n; j++)
                unlike[j] |= x[j] != own[j];
        }
        for (int64_t j = 0; j < n; j++) {
            sums[a + j] += unlike[j];
            sums[d + a + j] += own[j] != o->first[a + j];
        }
    }
}

fin_status fin_bags_level(const fin_bags *bags, fin_sum sum, unsigned char *level, fin_error *err)
{
    FINI_NEED(err, bags, level);
    FINI_TRY(fini_bags_check(bags, err));
    int64_t d = bags->d;
    FINI_OWN(err, "columns", double, first, 3 * d + 1, 1);
    double *found = first + d + 1;
    const levels o = {bags, first};
    FINI_TRY(fini_bags_sum(bags, sum, 1, d + 1, first_token, &o, first, err));
    FINI_TRY(fini_bags_sum(bags, sum, 1, 2 * d, count_unlike, &o, found, err));
    for (int64_t j = 0; j < d; j++)
        level[j] = first[d] > 0 && found[j] == 0 && found[d + j] > 0;
    return FIN_OK;
}

/* ---- ranges ---------------------------------------------------------------------------------------- */

/* Columns whose ranges are looked for in the bags with a weight. */
typedef struct wanted {
    const fin_bags *bags;
    const double *weights;
    fini_blocks blocks;
    fin_sum sum;
    int64_t column, n;   /* the first, how many */
    double *parts, *all; /* room of the blocks of this process (count, all, 3 SOME), of their sum */
} wanted;

/* low, high: (n) over the training tokens of one block; infinite if there are none. */
static void range_of_block(const wanted *w, int64_t block, double *low, double *high)
{
    const fin_bags *bags = w->bags;
    const fini_rows_sums of = {.kind = FINI_ENDS, .n = w->n, .d = bags->d};
    int64_t n = w->n, begin, end;
    fini_bags_block(bags, block, &begin, &end);
    for (int64_t j = 0; j < n; j++)
        low[j] = INFINITY, high[j] = -INFINITY;
    for (int64_t i = begin; i < end; i++) {
        int64_t from, to;
        if (!fini_bag_counts(w->weights, i))
            continue;
        fini_bag_rows(bags, i, &from, &to);
        fini_rows_sum(bags, from, to, w->column, &of, low, high);
    }
}

/* Both ends of some columns, of all processes: own blocks have their numbers in places of their own, so
 * that a sum brings them together. Infinity stands for "none" and cannot be summed: 1 says it is there. */
static fin_status some_ranges(const wanted *w, double *low, double *high, fin_error *err)
{
    const fini_blocks *blocks = &w->blocks;
    int64_t n = w->n, width = blocks->all * 3 * n;
    int threads = fini_map_threads((double)fini_bags_tokens(w->bags) * (double)n);
    memset(w->parts, 0, (size_t)(blocks->count * width) * sizeof *w->parts);
#pragma omp parallel for num_threads(threads)
    for (int64_t b = 0; b < blocks->count; b++) {
        double *to = w->parts + b * width + (blocks->first + b) * 3 * n;
        range_of_block(w, b, to, to + n);
        for (int64_t j = 0; j < n; j++) {
            to[2 * n + j] = to[j] <= to[n + j];
            if (!(to[j] <= to[n + j]))
                to[j] = to[n + j] = 0;
        }
    }
    fin_status status = fini_blocks_sum(blocks, w->sum, width, w->parts, w->all, err);
    for (int64_t j = 0; j < n && !status; j++) {
        low[j] = INFINITY;
        high[j] = -INFINITY;
        for (int64_t b = 0; b < blocks->all; b++) {
            const double *from = w->all + b * 3 * n + j;
            low[j] = from[2 * n] > 0 ? fmin(low[j], from[0]) : low[j];
            high[j] = from[2 * n] > 0 ? fmax(high[j], from[n]) : high[j];
        }
        low[j] = low[j] <= high[j] ? low[j] : 0;
        high[j] = low[j] <= high[j] ? high[j] : 0;
    }
    return status;
}

static fin_status find_ranges(fin_fit *fit, const fin_bags *bags, const double *weights,
                              fin_sum sum, fin_error *err)
{
    wanted w = {.bags = bags, .weights = weights, .sum = sum};
    int64_t d = bags->d, size;
    fin_status status = fini_blocks_open(&w.blocks, bags, err);
    size = w.blocks.all * 3 * SOME;
    if (!status)
        status = fini_numbers(&fit->range, 2, d, "ranges of columns", err);
    if (!status)
        status = fini_numbers(&w.parts, w.blocks.count + 1, size, "ranges", err);
    w.all = w.parts ? w.parts + w.blocks.count * size : NULL;
    for (; w.column < d && !status; w.column += SOME) {
        w.n = d - w.column < SOME ? d - w.column : SOME;
        status = some_ranges(&w, fit->range + w.column, fit->range + d + w.column, err);
    }
    fini_free(w.parts);
    return status;
}

fin_status fin_fit_outside(const fin_fit *fit, const fin_bags *bags, int64_t *outside, double *low,
                           double *high, fin_error *err)
{
    FINI_NEED(err, fit, bags, outside);
    fin_status status = fini_bags_check(bags, err);
    int64_t d = fit->d, rows = status ? 0 : fini_bags_tokens(bags);
    if (!status && bags->d != d)
        status = fini_fail(err, FIN_ERR_ARGUMENT,
                           "tokens have %lld columns; the model was fitted to %lld",
                           (long long)bags->d, (long long)d);
    if (status)
        return status;
    memset(outside, 0, (size_t)d * sizeof *outside);
    for (int64_t j = 0; j < d; j++) {
        if (low)
            low[j] = fit->range ? fit->range[j] : NAN;
        if (high)
            high[j] = fit->range ? fit->range[d + j] : NAN;
    }
    int threads = fini_map_threads((double)rows * (double)d / 16);
#pragma omp parallel for num_threads(threads)
    for (int64_t from = 0; from < (fit->range ? d : 0); from += SOME) {
        double room[SOME];
        int64_t n = d - from < SOME ? d - from : SOME;
        const double *a = fit->range + from, *b = a + d;
        for (int64_t r = 0; r < rows; r++) {
            const double *x = fini_row(bags, r, from, from + n, room);
            for (int64_t j = 0; j < n; j++)
                outside[from + j] += (x[j] - b[j] > b[j] - a[j]) | (a[j] - x[j] > b[j] - a[j]);
        }
    }
    /* Constant in training: it is not used. A few: that is usual where columns have long tails. */
    for (int64_t j = 0; j < d && fit->range; j++)
        outside[j] = fit->range[j] < fit->range[d + j] && outside[j] * FEW > rows ? outside[j] : 0;
    return FIN_OK;
}

/* ---- hashes ------------------------------------------------------------------------------------------ */

static uint64_t sum_of(const fin_bags *bags, int64_t i, bool mantissas, double *row)
{
    uint64_t sum = 0;
    int64_t from, to;
    int exponent;
    fini_bag_rows(bags, i, &from, &to);
    for (int64_t r = from; r < to; r++) {
        const double *x = fini_row(bags, r, 0, bags->d, row);
        for (int64_t j = 0; j < bags->d; j++)
            row[j] = mantissas ? frexp(x[j] + 0.0, &exponent) : x[j] + 0.0; /* no -0 */
        sum += XXH3_64bits(row, (size_t)bags->d * sizeof *row);
    }
    return XXH3_64bits(&sum, sizeof sum);
}

/* order: units that are powers of two do not matter, as they do not matter to fits, but among bags that
 * differ by nothing else: 26 bits of mantissas, then 26 of the numbers. */
static int64_t hash_of(const fin_bags *bags, int64_t i, bool order, double *row)
{
    uint64_t all = sum_of(bags, i, false, row);
    if (!order)
        return (int64_t)(all >> 12);
    return (int64_t)(sum_of(bags, i, true, row) >> 38 << 26 | all >> 38);
}

/* hash: (n). */
static fin_status hash_all(const fin_bags *bags, const double *weights, bool order, double *hash,
                           fin_error *err)
{
    int threads = fini_map_threads((double)fini_bags_tokens(bags) * (double)bags->d);
    double *room;
    fin_status status = fini_numbers(&room, threads, bags->d, "hashes of bags", err);
    if (status)
        return status;
#pragma omp parallel for schedule(dynamic, 8) num_threads(threads)
    for (int64_t i = 0; i < bags->n; i++)
        hash[i] = fini_bag_counts(weights, i)
                      ? (double)hash_of(bags, i, order, room + omp_get_thread_num() * bags->d)
                      : -1;
    fini_free(room);
    return FIN_OK;
}

static int ascending(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

fin_status fini_bags_hash(const fin_bags *bags, const double *weights, bool order, fin_sum sum,
                          double *all, fin_error *err)
{
    double *own;
    fin_status status = fini_numbers(&own, bags->n, 1, "hashes of bags", err);
    if (!status)
        status = hash_all(bags, weights, order, own, err);
    if (!status)
        status = fini_bags_gather(bags, sum, own, all, err);
    fini_free(own);
    return status;
}

static fin_status find_hashes(fin_fit *fit, const fin_bags *bags, const double *weights,
                              fin_sum sum, fin_error *err)
{
    double *all = NULL;
    if (bags->total > most_bags)
        return FIN_OK;
    fin_status status = fini_numbers(&all, bags->total, 1, "hashes of bags", err);
    if (!status)
        status = fini_bags_hash(bags, weights, false, sum, all, err);
    fit->hash = status ? NULL : fini_alloc_array(bags->total, sizeof *fit->hash);
    if (!status && !fit->hash)
        status = fini_fail_memory(err, (size_t)bags->total * sizeof *fit->hash, "hashes of bags");
    for (int64_t i = 0; i < bags->total && !status; i++)
        if (all[i] >= 0)
            fit->hash[fit->hashes++] = (int64_t)all[i];
    if (!status)
        qsort(fit->hash, (size_t)fit->hashes, sizeof *fit->hash, ascending);
    fini_free(all);
    return status;
}

fin_status fin_fit_known(const fin_fit *fit, const fin_bags *bags, unsigned char *known,
                         fin_error *err)
{
    FINI_NEED(err, fit, bags, known);
    double *hash;
    fin_status status = fini_bags_check(bags, err);
    if (!status)
        status = fini_numbers(&hash, bags->n, 1, "hashes of bags", err);
    if (status)
        return status;
    memset(known, 0, (size_t)bags->n);
    if (bags->d == fit->d && fit->hashes)
        status = hash_all(bags, NULL, false, hash, err);
    for (int64_t i = 0; i < bags->n && !status && bags->d == fit->d && fit->hashes; i++) {
        int64_t key = (int64_t)hash[i];
        known[i] = bsearch(&key, fit->hash, (size_t)fit->hashes, sizeof key, ascending) != NULL;
    }
    fini_free(hash);
    return status;
}

fin_status fini_fit_remember(fin_fit *fit, const fin_bags *bags, const double *weights, fin_sum sum,
                             fin_error *err)
{
    FINI_TRY(find_ranges(fit, bags, weights, sum, err));
    return find_hashes(fit, bags, weights, sum, err);
}
