/* Columns of tokens, centred, scaled and cut off.
 *
 *     z_j = scale_j clamp(x_j - center_j, -bound_j, bound_j)
 *
 * scale_j = 1 / (c deviation_j). Without a bound a column that is nearly constant, or has a heavy tail,
 * decides about bags where nothing of the kind was in the training set; on the molecule and image sets
 * it was worth more than any other choice (tiger: accuracy 0.83 to 0.87). But in a bag of a thousand
 * tokens three deviations are nothing special, and what is cut off there may be the token that is looked
 * for. So the bound lies beyond what an ordinary bag reaches:
 *
 *     bound_j = max(LIMIT deviation_j, REACH mean over bags of max_l |x_lj - center_j|)
 *
 * c makes the mean of |z|^2 over training rows 1.
 *
 * Four passes over the tokens, each a sum over blocks: sums and sums of absolute values; then of
 * x - mean and its square, in units of a power of two near the mean absolute value, so that neither
 * overflows (the corrected two-pass algorithm; Chan, Golub and LeVeque 1983); then of the largest
 * deviation in each bag; then of z_j^2.
 * Columns are taken a few thousand at a time: memory does not grow with their number. */
#include "bags/map.h"

#include "math/small.h"

#include <float.h>
#include <math.h>
#include <omp.h>
#include <string.h>

enum { COLUMNS = 4096, STEP = 128 }; /* columns of a pass; rows summed before they are added up */
#define LIMIT 3.0                    /* deviations */
#define REACH 1.5                    /* times what an ordinary bag reaches */
#define FARTHEST 100.0               /* deviations that a bag counts for at most */
#define SIZE_PART 0.3                /* weight of the log of the size beside blocks of statistics */

int fini_map_groups(const fini_map *map)
{
    return map->statistics == FINI_STATISTICS ? 2 : 1;
}

void fini_map_group(const fini_map *map, int g, int64_t *from, int64_t *to)
{
    bool all = map->statistics != FINI_STATISTICS;
    *from = all || g == 0 ? 0 : map->d;
    *to = all ? map->s : g == 0 ? map->d : 3 * map->d;
}

int64_t fini_map_width(const fini_map *map, int g)
{
    int64_t from, to, width = 0;
    fini_map_group(map, g, &from, &to);
    for (int64_t j = from; j < to; j++)
        width += map->scale[j] > 0;
    return width;
}

void fini_map_pick(const fini_map *map, int g, const double *z, double *out)
{
    int64_t from, to;
    fini_map_group(map, g, &from, &to);
    for (int64_t j = from; j < to; j++)
        if (map->scale[j] > 0)
            *out++ = z[j];
}

static double cut(double t, double bound)
{
    return t > bound ? bound : t < -bound ? -bound : t; /* NaN stays */
}

void fini_columns_apply(const fini_map *map, const fin_bags *bags, int64_t row, double *z)
{
    const double *x = fini_row(bags, row, 0, map->s, z);
    for (int64_t j = 0; j < map->s; j++) /* far enough to be nothing, near enough to be squared */
        z[j] = cut(map->scale[j] * cut(x[j] - map->center[j], map->bound[j]), 1e150);
}

/* ---- one pass -------------------------------------------------------------------------------- */

typedef struct pass {
    int number; /* a kind of fini_rows_sums; of FINI_FARTHEST the second sum counts bags */
    const fin_bags *bags;
    const double *weights;
    int64_t from, to; /* columns */
    const double *a, *b, *bound;
    fini_cancel *cancel;
    int threads; /* that there is room for; another thread may set another number meanwhile */
} pass;

/* Sums of rows from .. to - 1 are added to first and second (to - from each). */
static void add_rows(const pass *p, int64_t from, int64_t to, double *first, double *second)
{
    const fin_bags *bags = p->bags;
    const fini_rows_sums of = {p->number,      p->to - p->from, bags->d,
                               p->a + p->from, p->b + p->from,  p->bound + p->from};
    fini_rows_sum(bags, from, to, p->from, &of, first, second);
    for (int64_t j = 0; j < of.n && p->number == FINI_FARTHEST; j++)
        second[j] = 1;
}

static void empty(int64_t n, double *first, double *second, double *out)
{
    for (int64_t j = 0; j < n; j++) {
        out[j] += first[j];
        out[n + j] += second[j];
        first[j] = second[j] = 0;
    }
}

/* out: (2, width) sums of one block; room: (2, COLUMNS). */
static void add_block(const pass *p, int64_t block, double *out, double *room)
{
    int64_t n = p->to - p->from, begin, end, held = 0;
    double *first = room, *second = first + COLUMNS;
    memset(out, 0, 2 * (size_t)n * sizeof *out);
    memset(first, 0, 2 * COLUMNS * sizeof *first);
    fini_bags_block(p->bags, block, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t from, to;
        if (!fini_bag_counts(p->weights, i))
            continue;
        fini_bag_rows(p->bags, i, &from, &to);
        for (int64_t r = from, rows; r < to; r += rows) {
            rows = fini_least(to - r, STEP - held % STEP);
            add_rows(p, r, r + rows, first, second);
            held += rows;
            if (held % STEP || p->number == FINI_FARTHEST)
                continue;
            empty(n, first, second, out);
            if (fini_cancelled(p->cancel, 2 * STEP * (double)n))
                return;
        }
        if (p->number != FINI_FARTHEST)
            continue;
        empty(n, first, second, out);
        if (fini_cancelled(p->cancel, 2 * (double)(to - from) * (double)n))
            return;
    }
    empty(n, first, second, out);
}

/* Sums (2, columns of the pass) over everybody. parts: (own blocks, 2, COLUMNS). */
static fin_status take_pass(const pass *p, const fini_blocks *blocks, fin_sum sum, double *parts,
                            double *room, double *out, fin_error *err)
{
    int64_t n = p->to - p->from;
    int threads = fini_map_threads((double)fini_bags_tokens(p->bags) * (double)n);
    threads = threads < p->threads ? threads : p->threads;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t b = 0; b < blocks->count; b++)
        add_block(p, b, parts + b * 2 * n, room + omp_get_thread_num() * 2 * COLUMNS);
    fin_status status = fini_cancel_end(p->cancel, err);
    return status ? status : fini_blocks_sum(blocks, sum, 2 * n, parts, out, err);
}

/* ---- centres and deviations ------------------------------------------------------------------ */

/* Deviations that are rounding only: of the numbers' own precision, not of their sums. */
static bool is_constant(const fin_bags *bags, double mean, double deviation)
{
    double unit = bags->dtype == FIN_F32 ? 2 * (double)FLT_EPSILON : 64 * DBL_EPSILON;
    return !(deviation > unit * fabs(mean)) || deviation < 1e-290;
}

/* spread: on return the deviation, 0 for columns that are constant. */
static fin_status moments(fini_map *map, pass p, const fini_blocks *blocks, fin_sum sum, double N,
                          double *parts, double *room, double *out, fin_error *err)
{
    int64_t n = p.to - p.from;
    double *center = map->center + p.from, *unit = map->scale + p.from;
    double *deviation = map->spread + p.from;
    FINI_TRY(take_pass(&p, blocks, sum, parts, room, out, err));
    for (int64_t j = 0; j < n; j++) {
        int exponent = 0;
        if (!isfinite(out[n + j]))
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "column %lld of the tokens has a number that is not finite, or "
                             "numbers so large that their sum is none; dividing it by 1e10 or "
                             "taking logarithms usually helps",
                             (long long)((p.from + j) % map->d));
        center[j] = out[j] / N;
        frexp(out[n + j] / N, &exponent);
        unit[j] = ldexp(1, exponent < -1000 ? 1000 : -exponent);
    }
    p.number = FINI_SQUARES;
    FINI_TRY(take_pass(&p, blocks, sum, parts, room, out, err));
    for (int64_t j = 0; j < n; j++) {
        double off = out[j] / N, variance = out[n + j] / N - off * off;
        center[j] += off / unit[j];
        deviation[j] = variance > 0 ? sqrt(variance) / unit[j] : 0;
        if (is_constant(p.bags, center[j], deviation[j]))
            deviation[j] = 0;
    }
    return FIN_OK;
}

/* Root mean square of the deviations of columns that are not constant, of those that are not the
 * log of the size. */
static double pooled(const fini_map *map)
{
    int64_t from, to, count = 0;
    double largest = 0, sum = 0;
    fini_map_group(map, fini_map_groups(map) - 1, &from, &to);
    for (int64_t j = 0; j < to; j++)
        largest = fmax(largest, map->spread[j]);
    for (int64_t j = 0; j < to; j++) {
        double part = largest > 0 ? map->spread[j] / largest : 0;
        sum += part * part;
        count += part > 0;
    }
    return count ? largest * sqrt(sum / (double)count) : 1;
}

/* From deviations in spread, and what bags reach in bound, to scale and bound, the former without c. Where columns are divided by
 * nothing, what matters is c alone, and a power of two near the deviations keeps squares finite. */
static fin_status set_scales(fini_map *map, int scaling, fin_error *err)
{
    enum { STANDARD, POOLED, NONE };
    double one = pooled(map);
    int exponent = 0;
    frexp(one, &exponent);
    one = scaling == NONE ? ldexp(0.5, exponent) : one;
    map->used = 0;
    for (int64_t j = 0; j < map->s; j++) {
        double deviation = map->spread[j], by = scaling == STANDARD ? deviation : one;
        if (map->statistics == FINI_STATISTICS && j == map->s - 1)
            by = deviation;
        map->used += deviation > 0;
        map->scale[j] = deviation > 0 ? 1 / by : 0;
        map->bound[j] = !(deviation > 0)  ? 0
                        : scaling == NONE ? INFINITY
                                          : fmax(LIMIT * by, REACH * map->bound[j]);
    }
    if (map->used)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "%s%lld column%s constant over the training bags: there is nothing to learn "
                     "from; look at the features chosen, and at the bags' weights",
                     map->d > 1 ? "all " : "the ", (long long)map->d, map->d > 1 ? "s are" : " is");
}

/* Divides scales of columns from .. to - 1 by c; spread is the mean of z_j^2 before. */
static void normalise(fini_map *map, int64_t from, int64_t to, double weight)
{
    double sum = 0;
    for (int64_t j = from; j < to; j++)
        sum += map->spread[j];
    double c = sum > 0 ? weight / sqrt(sum) : 0;
    for (int64_t j = from; j < to; j++) {
        map->scale[j] *= c;
        map->spread[j] = c * sqrt(map->spread[j]);
    }
}

/* Some column still has a scale: three passes have seen the same numbers, unless somebody changes
 * them meanwhile. */
static fin_status normalise_all(fini_map *map, fin_error *err)
{
    for (int g = 0; g < fini_map_groups(map); g++) {
        int64_t from, to;
        fini_map_group(map, g, &from, &to);
        normalise(map, from, to, 1);
    }
    if (map->statistics == FINI_STATISTICS)
        normalise(map, map->s - 1, map->s, SIZE_PART);
    for (int64_t j = 0; j < map->s; j++)
        if (map->scale[j] > 0)
            return FIN_OK;
    return fini_fail(err, FIN_ERR_NUMERIC,
                     "no column of the tokens keeps its deviation from one pass to the next; does "
                     "another thread write to them?");
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void count_rows(const void *user, int64_t i, double *sums)
{
    const pass *p = user;
    if (fini_bag_counts(p->weights, i))
        sums[0] += (double)(p->bags->offsets[i + 1] - p->bags->offsets[i]);
}

fin_status fini_columns_fit(fini_map *map, int scaling, const fin_bags *bags, const double *weights,
                            fin_sum sum, fini_cancel *cancel, fin_error *err)
{
    fini_blocks blocks;
    double N = 0;
    FINI_TRY(fini_blocks_open(&blocks, bags, err));
    int threads = fin_threads_get();
    int64_t size = (2 * blocks.count + 2 + 2 * (int64_t)threads) * COLUMNS;
    FINI_OWN(err, "means of columns", double, out, size, 1);
    double *room = out + 2 * COLUMNS, *parts = room + 2 * (int64_t)threads * COLUMNS;
    pass p = {FINI_SIZES,  bags,       weights,    0,      0,
              map->center, map->scale, map->bound, cancel, threads};
    FINI_TRY(fini_bags_sum(bags, sum, 1, 1, count_rows, &p, &N, err));
    if (!(N > 0))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "no bag has a positive weight: there is nothing to fit to");
    for (p.from = 0; p.from < map->s; p.from = p.to) {
        p.to = map->s - p.from < COLUMNS ? map->s : p.from + COLUMNS;
        FINI_TRY(moments(map, p, &blocks, sum, N, parts, room, out, err));
    }
    for (int64_t j = 0; j < map->s; j++)
        map->bound[j] = fmin(FARTHEST * map->spread[j], DBL_MAX);
    p.number = FINI_FARTHEST;
    for (p.from = 0; p.from < map->s; p.from = p.to) {
        p.to = map->s - p.from < COLUMNS ? map->s : p.from + COLUMNS;
        FINI_TRY(take_pass(&p, &blocks, sum, parts, room, out, err));
        for (int64_t j = p.from; j < p.to; j++)
            map->bound[j] = out[j - p.from] / out[p.to - p.from + j - p.from];
    }
    FINI_TRY(set_scales(map, scaling, err));
    p.number = FINI_CUT_SQUARES;
    for (p.from = 0; p.from < map->s; p.from = p.to) {
        p.to = map->s - p.from < COLUMNS ? map->s : p.from + COLUMNS;
        FINI_TRY(take_pass(&p, &blocks, sum, parts, room, out, err));
        for (int64_t j = p.from; j < p.to; j++)
            map->spread[j] = out[j - p.from] / N;
    }
    return normalise_all(map, err);
}
