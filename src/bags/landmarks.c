/* Landmarks: rows of the training set, drawn without replacement, the same in every process.
 *
 * Every training row has a number, and a number a hash: a permutation of 64-bit numbers that the
 * seed chooses, so hashes differ. The `count` rows with the smallest hashes are taken. Where the
 * count-th smallest lies is found by counting how many hashes begin with which 12 bits, then which
 * next 12 bits, ...: sums only, so processes that know nothing of each other's rows agree. */
#include "bags/map.h"

#include <string.h>

enum { BITS = 12, BUCKETS = 1 << BITS };

/* Finaliser of splitmix64 (Steele, Lea and Flood 2014), a bijection. */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

typedef struct search {
    const fin_bags *bags;
    const double *weights;
    fin_sum sum;
    fini_blocks blocks;
    uint64_t key;                       /* of the seed */
    double before[FIN_BAGS_BLOCKS + 1]; /* training rows before each block of everybody */
    uint64_t last;                      /* hashes up to this one are taken */
    fini_cancel *cancel;
} search;

static bool taken(const search *s, int64_t number)
{
    return mix((uint64_t)number ^ s->key) <= s->last;
}

/* How many rows each block of everybody has: all of them, or those taken. */
static fin_status count_blocks(search *s, bool all, double *before, fin_error *err)
{
    double own[FIN_BAGS_BLOCKS], every[FIN_BAGS_BLOCKS];
    for (int64_t b = 0; b < s->blocks.count; b++) {
        int64_t begin, end, number = all ? 0 : (int64_t)s->before[s->blocks.first + b], count = 0;
        fini_bags_block(s->bags, b, &begin, &end);
        for (int64_t i = begin; i < end; i++) {
            int64_t from, to;
            fini_bag_rows(s->bags, i, &from, &to);
            if (!fini_bag_counts(s->weights, i))
                continue;
            if (all)
                count += to - from;
            else
                for (int64_t r = from; r < to; r++)
                    count += taken(s, number++);
        }
        own[b] = (double)count;
        if (fini_cancelled(s->cancel, (double)count))
            break;
    }
    FINI_TRY(fini_cancel_end(s->cancel, err));
    FINI_TRY(fini_blocks_gather(&s->blocks, s->sum, own, every, err));
    before[0] = 0;
    for (int64_t b = 0; b < s->blocks.all; b++)
        before[b + 1] = before[b] + every[b];
    return FIN_OK;
}

/* Training rows whose hash begins with the `known` bits of prefix, by their next bits. */
static void count_hashes(const search *s, int64_t block, uint64_t prefix, int known, int bits,
                         double *count)
{
    int64_t from = (int64_t)s->before[s->blocks.first + block];
    int64_t to = (int64_t)s->before[s->blocks.first + block + 1];
    memset(count, 0, BUCKETS * sizeof *count);
    if (fini_cancelled(s->cancel, (double)(to - from)))
        return;
    for (int64_t number = from; number < to; number++) {
        uint64_t hash = mix((uint64_t)number ^ s->key);
        if (known == 0 || hash >> (64 - known) == prefix)
            count[hash >> (64 - known - bits) & ((UINT64_C(1) << bits) - 1)]++;
    }
}

/* Sets s->last to the need-th smallest hash, or to what takes as many. */
static fin_status find_last(search *s, double need, fin_error *err)
{
    int64_t size = (s->blocks.count + 1) * BUCKETS;
    double *total = fini_alloc_array(size, sizeof *total);
    fin_status status = FIN_OK;
    uint64_t prefix = 0;
    if (!total)
        return fini_fail_memory(err, (size_t)size * sizeof *total, "a choice of landmarks");
    double *parts = total + BUCKETS;
    for (int known = 0; known < 64;) {
        int bits = 64 - known < BITS ? 64 - known : BITS;
        int threads = fini_map_threads(4 * (double)fini_bags_tokens(s->bags));
#pragma omp parallel for schedule(dynamic) num_threads(threads)
        for (int64_t b = 0; b < s->blocks.count; b++)
            count_hashes(s, b, prefix, known, bits, parts + b * BUCKETS);
        status = fini_cancel_end(s->cancel, err);
        if (!status)
            status = fini_blocks_sum(&s->blocks, s->sum, BUCKETS, parts, total, err);
        if (status)
            break;
        uint64_t bucket = 0, most = (UINT64_C(1) << bits) - 1;
        while (bucket < most && total[bucket] < need)
            need -= total[bucket++];
        prefix = prefix << bits | bucket;
        known += bits;
        s->last = known < 64 ? ((prefix + 1) << (64 - known)) - 1 : prefix;
        if (total[bucket] == need)
            break;
    }
    fini_free(total);
    return status;
}

/* Rows first .. first + many - 1 of those taken that are in this block, to their places in z. */
static void copy_rows(const search *s, const fini_map *map, int64_t block, const double *places,
                      int64_t first, int64_t many, double *z)
{
    int64_t begin, end, number = (int64_t)s->before[s->blocks.first + block];
    int64_t place = (int64_t)places[s->blocks.first + block];
    fini_bags_block(s->bags, block, &begin, &end);
    for (int64_t i = begin; i < end; i++) {
        int64_t from, to;
        fini_bag_rows(s->bags, i, &from, &to);
        if (!fini_bag_counts(s->weights, i))
            continue;
        if (fini_cancelled(s->cancel, (double)(to - from)))
            return;
        for (int64_t r = from; r < to; r++)
            if (taken(s, number++)) {
                if (place >= first && place < first + many)
                    fini_columns_apply(map, s->bags, r, z + (place - first) * map->s);
                place++;
            }
    }
}

/* Rows to everybody, some at a time; alone, at once. How many at a time is the same for everybody,
 * whatever blocks it has: all take part in the same sums. */
static fin_status share_rows(const search *s, const fini_map *map, const double *places,
                             int64_t count, double *rows, fin_error *err)
{
    enum { ROOM = 1 << 20 };
    int64_t own = s->blocks.count, each = ROOM / ((s->blocks.all + 1) * map->s);
    each = each < 1 ? 1 : each > count ? count : each;
    double *parts;
    if (!s->sum || s->sum == fini_sum_alone) {
        for (int64_t b = 0; b < own; b++)
            copy_rows(s, map, b, places, 0, count, rows);
        for (int64_t t = 0; t < count * map->s; t++)
            rows[t] += 0.0; /* as a sum with zeros does: no -0 */
        return fini_cancel_end(s->cancel, err);
    }
    fin_status status = fini_numbers(&parts, own * each, map->s, "landmarks", err);
    for (int64_t first = 0; first < count && !status; first += each) {
        int64_t many = count - first < each ? count - first : each, width = many * map->s;
        memset(parts, 0, (size_t)(own * width) * sizeof *parts);
        for (int64_t b = 0; b < own; b++)
            copy_rows(s, map, b, places, first, many, parts + b * width);
        status = fini_cancel_end(s->cancel, err);
        if (!status)
            status = fini_blocks_sum(&s->blocks, s->sum, width, parts, rows + first * map->s, err);
    }
    fini_free(parts);
    return status;
}

fin_status fini_landmarks(const fini_map *map, int64_t seed, const fin_bags *bags,
                          const double *weights, fin_sum sum, int64_t *count, double **rows,
                          fini_cancel *cancel, fin_error *err)
{
    search s = {
        bags, weights, sum, .key = mix((uint64_t)seed), .last = UINT64_MAX, .cancel = cancel};
    double places[FIN_BAGS_BLOCKS + 1];
    *rows = NULL;
    fin_status status = fini_blocks_open(&s.blocks, bags, err);
    if (!status)
        status = count_blocks(&s, true, s.before, err);
    if (status)
        return status;
    if ((double)*count < s.before[s.blocks.all])
        status = find_last(&s, (double)*count, err);
    else
        *count = (int64_t)s.before[s.blocks.all];
    if (!status)
        status = count_blocks(&s, false, places, err);
    if (!status)
        status = fini_numbers(rows, *count, map->s, "landmarks", err);
    if (!status)
        status = share_rows(&s, map, places, *count, *rows, err);
    if (status) {
        fini_free(*rows);
        *rows = NULL;
    }
    return status;
}
