/* RBF features, fitted: landmarks, bandwidths, the inverse of the landmarks' factor, centres
 * (features.c says what they are). Every process does the same work on the same landmarks. */
#include "random/streams.h"
#include "kernel/kernel.h"
#include "kernel/pairs.h"
#include "math/gram.h"
#include "math/spd.h"
#include "math/stats.h"
#include "bags/map.h"

#include <math.h>
#include <omp.h>
#include <string.h>

/* BAGS_MOST: landmarks where rows are bags, if settings ask for fewer: their kernel is cheap, and
 * all bags were better than some. MEDIAN_ROWS: those whose distances are looked at. */
enum { TILE = FINI_MAP_TILE, BAGS_MOST = 1000, MEDIAN_ROWS = 256 };
/* Bandwidth in median distances: its square is 0.3 times the median square, which was better than 1
 * on every set of bags tried. */
#define BANDWIDTH 0.5477225575051661
/* A landmark whose kernel is known from those before it to this share adds rounding only. */
#define KNOWN 1e-8

/* Median distance of at most MEDIAN_ROWS rows a (n, width), evenly spread; 1 if they are all equal,
 * the mean of what is not 0 if most are. */
static fin_status median_distance(int64_t n, int64_t width, const double *a, double *median,
                                  fin_error *err)
{
    int64_t rows = n < MEDIAN_ROWS ? n : MEDIAN_ROWS, count = 0, positive = 0;
    FINI_OWN(err, "distances of landmarks", double, few, rows, width + rows);
    double *squares = few + rows * width;
    for (int64_t i = 0; i < rows; i++)
        memcpy(few + i * width, a + i * n / rows * width, (size_t)width * sizeof *few);
    fini_pairs_get()->squares(width, rows, few, rows, few, 1, squares, rows);
    double sum = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < i; j++) {
            double square = squares[i * rows + j];
            squares[count++] = square; /* never before what is still to be read */
            sum += sqrt(square);
            positive += square > 0;
        }
    *median = count ? sqrt(fini_median(squares, count)) : 0;
    if (!(*median > 0))
        *median = positive ? sum / (double)positive : 1;
    return FIN_OK;
}

/* C with C C' = K for landmarks that add something, which are moved to the front; returns how many
 * there are. row: room for n + 1 numbers. */
static int64_t factor_some(int64_t n, int64_t width, double bandwidth, double *landmarks, double *C,
                           double *row, fini_cancel *cancel)
{
    int64_t m = 0;
    for (int64_t i = 0; i < n && !fini_cancelled(cancel, (double)(m * (m + width))); i++) {
        double *at = landmarks + m * width;
        memmove(at, landmarks + i * width, (size_t)width * sizeof *at);
        fini_pairs_get()->squares(width, 1, at, m, landmarks, -0.5 / bandwidth / bandwidth, row, n);
        fini_kernel_get()->exp(m, row, row);
        row[m] = 1;
        fini_spd known = fini_spd_of(m, C, n);
        known.share = KNOWN;
        m += fini_spd_append(known, row);
    }
    return m;
}

/* All of them at once; false if some are not needed. */
static bool factor_all(int64_t n, int64_t width, double bandwidth, const double *landmarks,
                       double *C, fini_cancel *cancel, fin_status *status, fin_error *err)
{
    const fin_progress progress = {fini_cancel_hook, cancel};
    fini_spd known = fini_spd_of(n, C, n);
    known.share = KNOWN;
    const fini_pairs *pairs = fini_pairs_get();
    int threads = fini_map_threads((double)n * (double)n * (double)width);
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t i = 0; i < n; i += TILE) {
        int64_t rows = n - i < TILE ? n - i : TILE;
        if (fini_cancelled(cancel, (double)(rows * n * width)))
            continue;
        pairs->squares(width, rows, landmarks + i * width, n, landmarks,
                       -0.5 / bandwidth / bandwidth, C + i * n, n);
        fini_kernel_get()->exp(rows * n, C + i * n, C + i * n);
    }
    *status = fini_cancel_end(cancel, err);
    if (!*status)
        *status = fini_spd_factor(&known, &progress, err);
    return known.pivot < 0;
}

/* whiten (m, m) = C^-1 from C with rows of n. Some columns at a time, to look up between them: a
 * multiple of those that a solver takes together, and never a few, so that no bit changes. */
static fin_status invert(int64_t m, double *C, int64_t n, double *whiten, fini_cancel *cancel,
                         fin_error *err)
{
    int64_t some = 128 * (int64_t)fin_threads_get();
    memset(whiten, 0, (size_t)(m * m) * sizeof *whiten);
    for (int64_t i = 0; i < m; i++)
        whiten[i * m + i] = 1;
    for (int64_t from = 0, to; from < m && !fini_cancel_now(cancel); from = to) {
        to = m - from < 2 * some ? m : from + some;
        fini_spd_lower(fini_spd_of(m, C, n), to - from, whiten + from, m);
    }
    return fini_cancel_end(cancel, err);
}

/* Group g from `n` landmarks a (n, width), of which m stay: appended to landmarks and whiten. */
static fin_status fit_nystrom(fini_map *map, int g, int64_t n, double *a, double *landmarks,
                              double *whiten, fini_cancel *cancel, fin_error *err)
{
    int64_t width = fini_map_width(map, g), m = n;
    double *C;
    fin_status status = fini_numbers(&C, n + 1, n, "the kernel of landmarks", err);
    if (status)
        return status;
    if (!factor_all(n, width, map->bandwidth[g], a, C, cancel, &status, err) && !status)
        m = factor_some(n, width, map->bandwidth[g], a, C, C + n * n, cancel);
    if (!status)
        status = invert(m, C, n, whiten, cancel, err);
    if (!status) {
        memcpy(landmarks, a, (size_t)(m * width) * sizeof *a);
        map->group_m[g] = m;
    }
    fini_free(C);
    return status;
}

static void fit_fourier(fini_map *map, int g, int64_t seed, int64_t m, double *frequencies)
{
    int64_t count = m / 2 * fini_map_width(map, g);
    fin_random_normals_f64((uint64_t)seed, FINI_STREAM_BAGS_FREQUENCIES, (uint64_t)g, 0, count,
                           frequencies);
    for (int64_t t = 0; t < count; t++)
        frequencies[t] /= map->bandwidth[g];
    map->group_m[g] = m;
}

/* What groups are fitted to, and where the numbers of the next one go. */
typedef struct drawn {
    int64_t wanted, n; /* features, rows */
    double *rows;      /* (n, columns of the map) */
    double *landmarks, *whiten;
} drawn;

/* One group: its columns of the landmarks, its bandwidth, its features. */
static fin_status fit_group(fini_map *map, const fin_fit_settings *settings, int g, drawn *from,
                            fini_cancel *cancel, fin_error *err)
{
    int64_t width = fini_map_width(map, g), n = from->n, m;
    double *a, median = 1;
    map->group_m[g] = 0;
    map->bandwidth[g] = 1;
    if (width == 0)
        return FIN_OK;
    FINI_TRY(fini_numbers(&a, n, width, "landmarks", err));
    for (int64_t i = 0; i < n; i++)
        fini_map_pick(map, g, from->rows + i * map->s, a + i * width);
    fin_status status = median_distance(n, width, a, &median, err);
    map->bandwidth[g] = fin_is_auto(settings->bandwidth) ? BANDWIDTH * median : settings->bandwidth;
    if (!status && map->kind == 0)
        status = fit_nystrom(map, g, n, a, from->landmarks, from->whiten, cancel, err);
    else if (!status)
        fit_fourier(map, g, settings->seed, from->wanted, from->landmarks);
    m = map->group_m[g];
    map->m += m;
    from->landmarks += (map->kind == 0 ? m : m / 2) * width;
    from->whiten = from->whiten ? from->whiten + m * m : NULL;
    fini_free(a);
    return status;
}

/* ---- centre and scale of features ------------------------------------------------------------ */

/* Rows waiting for their features to be added up: sums of f_j, of f_j^2, and their number. */
typedef struct tally {
    const fini_map *map;
    fini_cancel *cancel;
    int64_t held;
    double *z, *f, *room, *out;
} tally;

static void add_up(tally *t)
{
    int64_t m = t->map->m;
    if (fini_cancelled(t->cancel, fini_features_cost(t->map, t->held))) {
        t->held = 0;
        return;
    }
    fini_features_raw(t->map, t->held, t->z, t->f, t->room);
    for (int64_t r = 0; r < t->held; r++)
        for (int64_t j = 0; j < m; j++) {
            double f = t->f[r * m + j];
            t->out[j] += f;
            t->out[m + j] += f * f;
        }
    t->out[2 * m] += (double)t->held;
    t->held = 0;
}

/* out: (2 m + 1) of one block. */
static void sum_block(const fini_map *map, const fin_bags *bags, const double *weights,
                      int64_t block, double *out, double *scratch, fini_cancel *cancel)
{
    tally t = {map, cancel, 0, scratch, .out = out};
    int64_t begin, end, from, to;
    t.room = t.z + TILE * map->s;
    t.f = t.room + TILE * (map->s + 3 * map->m);
    memset(out, 0, (size_t)(2 * map->m + 1) * sizeof *out);
    fini_bags_block(bags, block, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        if (!fini_bag_counts(weights, i))
            continue;
        fini_bag_rows(bags, i, &from, &to);
        for (int64_t r = from; r < to; r++) {
            fini_columns_apply(map, bags, r, t.z + t.held * map->s);
            if (++t.held == TILE)
                add_up(&t);
        }
    }
    add_up(&t);
}

/* From the sums: shift, and one stretch for each group. */
static fin_status set_stretch(fini_map *map, const double *total, fin_error *err)
{
    int64_t m = map->m, j = 0;
    double N = total[2 * m];
    for (int g = 0; g < fini_map_groups(map); g++) {
        int64_t from = j, to = j + map->group_m[g];
        double power = 0;
        for (; j < to; j++) {
            map->shift[j] = total[j] / N;
            power += total[m + j] / N - map->shift[j] * map->shift[j];
        }
        if (from < to && !(power > 1e-10))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "with bandwidth %g the RBF features are the same for all tokens; "
                             "tokens are about 1.4 apart, and bandwidth = auto usually works",
                             map->bandwidth[g]);
        for (j = from; j < to; j++)
            map->stretch[j] = 1 / sqrt(power);
    }
    return FIN_OK;
}

static fin_status centre(fini_map *map, const fin_bags *bags, const double *weights, fin_sum sum,
                         fini_cancel *cancel, fin_error *err)
{
    fini_blocks blocks;
    int64_t n = 2 * map->m + 1, room = fini_features_scratch(map);
    double each = (double)map->m * (double)(map->s + map->m);
    int threads = fini_map_threads((double)fini_bags_tokens(bags) * each);
    double *parts = NULL, *scratch = NULL;
    fin_status status = fini_blocks_open(&blocks, bags, err);
    if (!status)
        status = fini_numbers(&parts, blocks.count + 1, n, "sums of features", err);
    if (!status)
        status = fini_numbers(&scratch, threads, room, "sums of features", err);
    if (!status) {
        double *total = parts + blocks.count * n;
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (int64_t b = 0; b < blocks.count; b++)
            sum_block(map, bags, weights, b, parts + b * n, scratch + omp_get_thread_num() * room,
                      cancel);
        status = fini_cancel_end(cancel, err);
        if (!status)
            status = fini_blocks_sum(&blocks, sum, n, parts, total, err);
        if (!status)
            status = set_stretch(map, total, err);
    }
    fini_free_all(scratch, parts);
    return status;
}

/* ---- all of it ------------------------------------------------------------------------------- */

/* Room for up to n landmarks, or m frequencies and phases, in every group. */
static fin_status reserve(fini_map *map, int64_t n, int64_t m, fin_error *err)
{
    int groups = fini_map_groups(map);
    int64_t most = map->kind == 0 ? n : m;
    FINI_TRY(fini_numbers(&map->landmarks, map->kind == 0 ? n : m / 2, map->s, "landmarks", err));
    if (map->kind == 0)
        FINI_TRY(fini_numbers(&map->whiten, groups * n, n, "the kernel of landmarks", err));
    FINI_TRY(fini_numbers(&map->shift, groups, most, "centres of features", err));
    return fini_numbers(&map->stretch, groups, most, "scales of features", err);
}

fin_status fini_features_fit(fini_map *map, const fin_fit_settings *settings, const fin_bags *bags,
                             const double *weights, fin_sum sum, fini_cancel *cancel,
                             fin_error *err)
{
    bool bag_each = map->statistics == FINI_MAX || map->statistics == FINI_STATISTICS;
    int64_t wanted = settings->landmarks;
    if (bag_each && map->kind == 0 && wanted < BAGS_MOST)
        wanted = BAGS_MOST;
    wanted += map->kind == 1 && wanted % 2;
    drawn from = {.wanted = wanted,
                  .n = map->kind == 0 || wanted < MEDIAN_ROWS ? wanted : MEDIAN_ROWS};
    fin_status status = fini_blas_ready(err);
    if (!status)
        status = fini_landmarks(map, settings->seed, bags, weights, sum, &from.n, &from.rows,
                                cancel, err);
    if (!status)
        status = reserve(map, from.n, wanted, err);
    from.landmarks = map->landmarks;
    from.whiten = map->whiten;
    map->m = 0;
    for (int g = 0; g < fini_map_groups(map) && !status; g++)
        status = fit_group(map, settings, g, &from, cancel, err);
    fini_free(from.rows);
    return status || map->m == 0 ? status : centre(map, bags, weights, sum, cancel, err);
}
