/* Sums over ranks in a fixed order: a binary tree over the numbers of blocks, whoever has them, so that
 * the sum has the same bits for any number of ranks. What is sent is sent by ranks.c. */
#include "study/run.h"

#include "math/small.h"

#include <string.h>

void fin_ranks_share(int64_t blocks, int64_t *first, int64_t *count)
{
    if (!first || !count)
        return;
    int64_t end;
    fini_block_share(blocks, fin_rank(), fin_ranks(), first, &end);
    *count = end - *first;
}

static int owner(int64_t blocks, int64_t block)
{
    int rank_count = fin_ranks();
    int64_t least = blocks / rank_count, more = blocks % rank_count;
    if (block < more * (least + 1))
        return (int)(block / (least + 1));
    return (int)(more + (block - more * (least + 1)) / least);
}

static void add(int64_t n, double *to, const double *from)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += from[i];
}

/* A node of the tree is known by its leftmost leaf, whose owner has its sum, in that leaf's place:
 *
 *     level h = 1, 2, 4, ...:   node(a) <- node(a) + node(a + h)    for a = 0, 2h, 4h, ... if a + h
 *                                                                   is a block
 *
 * A rank sends to ranks before it and receives from ranks after it, level by level: nobody waits in
 * a circle. What comes in goes through `sum`, so that nothing is allocated. */
fin_status fin_ranks_sum(int64_t blocks, int64_t n, double *parts, double *sum, fin_error *err)
{
    FINI_NEED(err, !n || parts, !n || sum);
    int64_t first, count;
    int own_rank = fin_rank();
    if (blocks < 0 || n < 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a sum of %lld blocks of %lld numbers; neither can be negative",
                         (long long)blocks, (long long)n);
    FINI_TRY(fini_ranks_begin_sum(err));
    fin_ranks_share(blocks, &first, &count);
    for (int64_t h = 1; h < blocks; h *= 2) {
        int64_t a = first < h ? 0 : (first - h + 2 * h - 1) / (2 * h) * (2 * h);
        for (; count && a < first + count && a + h < blocks; a += 2 * h) {
            int left = owner(blocks, a), right = owner(blocks, a + h);
            if (left != own_rank && right != own_rank) {
                continue; /* it reaches over all of this rank's blocks */
            } else if (left != own_rank) {
                if (!fini_ranks_numbers(FINI_SEND, left, parts + (a + h - first) * n, n))
                    return fini_ranks_fail_sum(err);
            } else if (right != own_rank) {
                if (!fini_ranks_numbers(FINI_RECEIVE, right, sum, n))
                    return fini_ranks_fail_sum(err);
                add(n, parts + (a - first) * n, sum);
            } else {
                add(n, parts + (a - first) * n, parts + (a + h - first) * n);
            }
        }
    }
    if (own_rank == 0 && n)
        blocks ? memcpy(sum, parts, (size_t)n * sizeof *sum)
               : memset(sum, 0, (size_t)n * sizeof *sum);
    return fini_ranks_numbers(FINI_SPREAD, 0, sum, n) ? FIN_OK : fini_ranks_fail_sum(err);
}
