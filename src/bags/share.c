/* Blocks of bags: how a sum over bags is cut, so that its bits depend on the number of bags alone.
 *
 * All bags of all processes are cut into at most FIN_BAGS_BLOCKS blocks. A block is summed bag by
 * bag by one thread; blocks are added as a binary tree over their numbers, the tree of
 * fin_ranks_sum, whoever owns them. A process has whole blocks. fin_sum is all that processes can
 * do together: whatever else has to be known everywhere is summed with zeros from those who do not
 * have it. */
#include "bags/map.h"

#include "math/small.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int64_t fin_bags_blocks(int64_t total)
{
    return total < 0 ? 0 : total < FIN_BAGS_BLOCKS ? total : FIN_BAGS_BLOCKS;
}

void fin_bags_share(int64_t total, int rank, int ranks, int64_t *first, int64_t *count)
{
    if (!first || !count)
        return;
    int64_t blocks = fin_bags_blocks(total), a, b;
    fini_block_share(blocks, rank, ranks, &a, &b);
    *first = fini_block_start(total, blocks, a);
    *count = fini_block_start(total, blocks, b) - *first;
}

void fini_bags_own(const fin_bags *bags, int64_t *first, int64_t *count)
{
    int64_t blocks = fin_bags_blocks(bags->total), b = 0;
    while (b < blocks && fini_block_start(bags->total, blocks, b) < bags->first)
        b++;
    *first = b;
    while (b < blocks && fini_block_start(bags->total, blocks, b) < bags->first + bags->n)
        b++;
    *count = b - *first;
}

void fini_bags_block(const fin_bags *bags, int64_t i, int64_t *from, int64_t *to)
{
    int64_t first, count, blocks = fin_bags_blocks(bags->total);
    fini_bags_own(bags, &first, &count);
    *from = fini_block_start(bags->total, blocks, first + i) - bags->first;
    *to = fini_block_start(bags->total, blocks, first + i + 1) - bags->first;
}

fin_status fini_sum_alone(int64_t blocks, int64_t n, double *parts, double *sum, fin_error *err)
{
    (void)err;
    fini_add_tree(blocks, n, parts, 0, n);
    if (n > 0 && blocks > 0)
        memcpy(sum, parts, (size_t)n * sizeof *sum);
    else if (n > 0)
        memset(sum, 0, (size_t)n * sizeof *sum);
    return FIN_OK;
}

fin_status fini_blocks_open(fini_blocks *blocks, const fin_bags *bags, fin_error *err)
{
    int64_t all = fin_bags_blocks(bags->total), first, count;
    fini_bags_own(bags, &first, &count);
    if (bags->n > 0 && (fini_block_start(bags->total, all, first) != bags->first ||
                        fini_block_start(bags->total, all, first + count) != bags->first + bags->n))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "bags %lld to %lld of %lld are not whole blocks; fin_bags_share says "
                         "which bags a process has",
                         (long long)bags->first, (long long)(bags->first + bags->n - 1),
                         (long long)bags->total);
    *blocks = (fini_blocks){all, first, bags->n > 0 ? count : 0};
    return FIN_OK;
}

fin_status fini_blocks_sum(const fini_blocks *blocks, fin_sum sum, int64_t n, double *parts,
                           double *out, fin_error *err)
{
    if ((!sum || sum == fini_sum_alone) && blocks->count != blocks->all)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "%lld of %lld blocks of bags are here, and no sum that adds those of other "
            "processes; fin_ranks_sum is one",
            (long long)blocks->count, (long long)blocks->all);
    return (sum ? sum : fini_sum_alone)(blocks->all, n, parts, out, err);
}

fin_status fini_blocks_gather(const fini_blocks *blocks, fin_sum sum, const double *own,
                              double *all, fin_error *err)
{
    int64_t n = blocks->all, numbers = blocks->count * n;
    FINI_OWN(err, "sums over blocks", double, parts, numbers ? numbers : 1, 1);
    memset(parts, 0, (size_t)numbers * sizeof *parts);
    for (int64_t b = 0; b < blocks->count; b++)
        parts[b * n + blocks->first + b] = own[b];
    return fini_blocks_sum(blocks, sum, n, parts, all, err);
}

/* ---- sums over bags ----------------------------------------------------------------------------- */

fin_status fini_bags_sum(const fin_bags *bags, fin_sum sum, int threads, int64_t width,
                         fini_bag_numbers numbers, const void *user, double *out, fin_error *err)
{
    fini_blocks blocks;
    fin_status status = fini_blocks_open(&blocks, bags, err);
    if (status)
        return status;
    double *parts = fini_alloc_array(blocks.count * width, sizeof *parts);
    if (!parts)
        return fini_fail_memory(err, (size_t)(blocks.count * width) * sizeof *parts,
                                "sums over bags");
    memset(parts, 0, (size_t)(blocks.count * width) * sizeof *parts);
#pragma omp parallel for num_threads(threads)
    for (int64_t b = 0; b < blocks.count; b++) {
        int64_t from, to;
        fini_bags_block(bags, b, &from, &to);
        for (int64_t i = from; i < to; i++)
            numbers(user, i, parts + b * width);
    }
    status = fini_blocks_sum(&blocks, sum, width, parts, out, err);
    fini_free(parts);
    return status;
}

/* One block at a time is summed, in which only its owner has something to add: exact, whatever the number
 * of processes. */
fin_status fini_bags_gather(const fin_bags *bags, fin_sum sum, const double *own, double *all,
                            fin_error *err)
{
    int64_t blocks = fin_bags_blocks(bags->total), first, count, most = 0;
    if (!sum || sum == fini_sum_alone) {
        memcpy(all, own, (size_t)bags->total * sizeof *all);
        return FIN_OK;
    }
    fini_bags_own(bags, &first, &count);
    for (int64_t b = 0; b < blocks; b++) {
        int64_t size =
            fini_block_start(bags->total, blocks, b + 1) - fini_block_start(bags->total, blocks, b);
        most = size > most ? size : most;
    }
    FINI_OWN(err, "numbers of all bags", double, parts, most, count ? count : 1);
    for (int64_t b = 0; b < blocks; b++) {
        int64_t from = fini_block_start(bags->total, blocks, b);
        int64_t size = fini_block_start(bags->total, blocks, b + 1) - from;
        memset(parts, 0, (size_t)(size * count) * sizeof *parts);
        if (b >= first && b < first + count)
            memcpy(parts + (b - first) * size, own + (from - bags->first),
                   (size_t)size * sizeof *parts);
        FINI_TRY(sum(blocks, size, parts, all + from, err));
    }
    return FIN_OK;
}

fin_status fini_bags_check(const fin_bags *bags, fin_error *err)
{
    const int64_t most = INT64_C(1) << 48;
    if (bags->n < 0 || bags->n > most || bags->d < 1 || bags->d > most)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld bags of tokens with %lld columns; a token has at least one column",
                         (long long)bags->n, (long long)bags->d);
    if (bags->first < 0 || bags->total > most || bags->first > bags->total - bags->n)
        return fini_fail(
            err, FIN_ERR_ARGUMENT, "bags %lld to %lld of %lld: alone, first is 0 and total is n",
            (long long)bags->first, (long long)(bags->first + bags->n - 1), (long long)bags->total);
    if (bags->dtype != FIN_F32 && bags->dtype != FIN_F64)
        return fini_fail(err, FIN_ERR_ARGUMENT, "tokens must be FIN_F32 or FIN_F64, not type %d",
                         (int)bags->dtype);
    if (bags->n && (!bags->offsets || !bags->tokens))
        return fini_fail(err, FIN_ERR_ARGUMENT, "bags without tokens or without offsets");
    for (int64_t i = 0; i < bags->n; i++)
        if (bags->offsets[i + 1] <= bags->offsets[i] ||
            bags->offsets[i + 1] - bags->offsets[0] > most / bags->d)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "bag %lld has the tokens from %lld to %lld; a bag has at least one "
                             "token, and offsets ascend",
                             (long long)(bags->first + i), (long long)bags->offsets[i],
                             (long long)bags->offsets[i + 1] - 1);
    return FIN_OK;
}

/* ---- rows and memory ---------------------------------------------------------------------------- */

const double *fini_row(const fin_bags *bags, int64_t row, int64_t from, int64_t to, double *room)
{
    int64_t at = row * bags->d + from;
    if (bags->dtype == FIN_F64)
        return (const double *)bags->tokens + at;
    const float *x = (const float *)bags->tokens + at;
    for (int64_t j = 0; j < to - from; j++)
        room[j] = (double)x[j];
    return room;
}

void fini_rows_sum(const fin_bags *bags, int64_t from, int64_t to, int64_t column,
                   const fini_rows_sums *of, double *first, double *second)
{
    const fini_rows *kernel = fini_rows_get();
    int64_t at = from * bags->d + column;
    if (bags->dtype == FIN_F32)
        kernel->sums_f32(to - from, of, (const float *)bags->tokens + at, first, second);
    else
        kernel->sums_f64(to - from, of, (const double *)bags->tokens + at, first, second);
}

int fini_map_threads(double products)
{
    const double few = 1 << 16;
    return products < few ? 1 : fin_threads_get();
}

/* The number after `name` in a file of the kernel's; NaN: there is none. */
static double number_in(const char *path, const char *name)
{
    char line[256];
    double value = NAN;
    FILE *file = fopen(path, "r");
    while (file && isnan(value) && fgets(line, sizeof line, file))
        if (strncmp(line, name, strlen(name)) == 0 &&
            sscanf(line + strlen(name), "%lf", &value) != 1)
            value = NAN;
    if (file)
        fclose(file);
    return value;
}

/* Of a control group and those it is in, as far as they are seen from here: limit less what is taken. */
static double left_in_group(const char *root, const char *limit, const char *taken, char *group)
{
    double left = NAN;
    for (char *end = group + strlen(group); end; end = strrchr(group, '/')) {
        char path[2][512];
        *end = 0;
        snprintf(path[0], sizeof path[0], "%s%s/%s", root, group, limit);
        snprintf(path[1], sizeof path[1], "%s%s/memory.stat", root, group);
        left = fmin(left, number_in(path[0], "") - number_in(path[1], taken));
    }
    return left;
}

/* Of the second kind (one tree) and the first (a tree for memory). */
static double left_in_groups(void)
{
    char line[400], *at;
    double left = NAN;
    FILE *file = fopen("/proc/self/cgroup", "r");
    while (file && fgets(line, sizeof line, file)) {
        line[strcspn(line, "\n")] = 0;
        if (strncmp(line, "0::", 3) == 0)
            left = fmin(left, left_in_group("/sys/fs/cgroup", "memory.max", "anon ", line + 3));
        else if ((at = strstr(line, ":memory:")))
            left = fmin(left, left_in_group("/sys/fs/cgroup/memory", "memory.limit_in_bytes",
                                            "total_rss ", at + 8));
    }
    if (file)
        fclose(file);
    return left;
}

double fini_memory_left(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    double left = pages > 0 && page > 0 ? (double)pages * (double)page : 0x1p62;
    double free = 1024 * number_in("/proc/meminfo", "MemAvailable:");
    return fmax(0, fmin(left, fmin(free, left_in_groups()))); /* NaN is passed over */
}

/* An allocation that is larger than the memory succeeds on many systems, and the process is ended
 * later without a word: so it is refused here. */
fin_status fini_numbers(double **numbers, int64_t count, int64_t width, const char *what,
                        fin_error *err)
{
    const double much = 64e6; /* less than this is not asked about */
    double bytes = (double)count * (double)width * sizeof(double);
    double left = bytes > much ? fini_memory_left() : INFINITY;
    *numbers = NULL;
    if (bytes > left)
        return fini_fail(err, FIN_ERR_MEMORY,
                         "%s: %lld rows of %lld numbers take %.3g GB, and %.3g GB of memory are "
                         "left; fewer landmarks, basis = linear or more processes usually help",
                         what, (long long)count, (long long)width, bytes / 1e9, left / 1e9);
    int64_t size = count * width;
    *numbers = fini_alloc_array(size ? size : 1, sizeof **numbers);
    return *numbers ? FIN_OK : fini_fail_memory(err, (size_t)bytes, what);
}
