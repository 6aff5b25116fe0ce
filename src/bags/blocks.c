/* Blocks of bags, rows of tokens: what every sum of the map stands on.
 *
 * A sum over bags is taken block by block, each by one thread and in the order of the bags, and the
 * blocks are added in a tree that depends on their number alone (fin_sum). So no bit of it depends
 * on threads or processes. fin_sum is all that processes can do together: whatever else has to be
 * known everywhere is summed with zeros from those who do not have it. */
#include "bags/map.h"

#include <string.h>
#include <unistd.h>

fin_status fini_blocks_open(fini_blocks *blocks, const fin_bags *bags, fin_error *err)
{
    int64_t all = fin_bags_blocks(bags->total), first = -1, count = 0;
    for (int64_t b = 0; b < all; b++) {
        int64_t begin = b * bags->total / all;
        if (begin == bags->first && first < 0)
            first = b;
        count += begin >= bags->first && begin < bags->first + bags->n;
    }
    int64_t end = first < 0 ? 0 : (first + count) * bags->total / (all ? all : 1);
    if (bags->n > 0 && (first < 0 || end != bags->first + bags->n))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "bags %lld to %lld of %lld are not whole blocks; fin_bags_share says "
                         "which bags a process has",
                         (long long)bags->first, (long long)(bags->first + bags->n - 1),
                         (long long)bags->total);
    *blocks = (fini_blocks){all, first < 0 ? 0 : first, bags->n > 0 ? count : 0};
    return FIN_OK;
}

void fini_block_bags(const fini_blocks *blocks, const fin_bags *bags, int64_t b, int64_t *from,
                     int64_t *to)
{
    *from = (blocks->first + b) * bags->total / blocks->all - bags->first;
    *to = (blocks->first + b + 1) * bags->total / blocks->all - bags->first;
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
    double *parts = fini_alloc_array(numbers ? numbers : 1, sizeof *parts);
    if (!parts)
        return fini_fail_memory(err, (size_t)numbers * sizeof *parts, "sums over blocks");
    memset(parts, 0, (size_t)numbers * sizeof *parts);
    for (int64_t b = 0; b < blocks->count; b++)
        parts[b * n + blocks->first + b] = own[b];
    fin_status status = fini_blocks_sum(blocks, sum, n, parts, all, err);
    fini_free(parts);
    return status;
}

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

int fini_map_threads(double products)
{
    const double few = 1 << 16;
    return products < few ? 1 : fin_threads_get();
}

/* An allocation that is larger than the machine succeeds on many systems, and the process is ended
 * later without a word: so it is refused here. */
fin_status fini_numbers(double **numbers, int64_t count, int64_t width, const char *what,
                        fin_error *err)
{
    double bytes = (double)count * (double)width * sizeof(double);
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    double most = pages > 0 && page > 0 ? (double)pages * (double)page : 0x1p62;
    *numbers = NULL;
    if (bytes > most)
        return fini_fail(err, FIN_ERR_MEMORY,
                         "%s: %lld rows of %lld numbers take %.3g GB, and this machine has %.3g; "
                         "fewer landmarks, basis = linear or more processes usually help",
                         what, (long long)count, (long long)width, bytes / 1e9, most / 1e9);
    int64_t size = count * width;
    *numbers = fini_alloc_array(size ? size : 1, sizeof **numbers);
    return *numbers ? FIN_OK : fini_fail_memory(err, (size_t)bytes, what);
}
