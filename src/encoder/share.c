/* Blocks of sequences: how a sum over sequences is cut, so that its bits depend on the number of
 * sequences and of blocks alone. A block is summed by one thread; blocks are added as a binary tree
 * over their numbers (fin_sum), whoever has them. A process has whole blocks. */
#include "encoder/encoder.h"

int64_t fini_encoder_blocks(int64_t total, int64_t blocks)
{
    int64_t most = blocks < 1 ? FINI_BLOCKS : blocks > FINI_BLOCKS_MOST ? FINI_BLOCKS_MOST : blocks;
    return total < 0 ? 0 : total < most ? total : most;
}

/* b total / blocks, without a product that could overflow. */
int64_t fini_encoder_block_start(int64_t total, int64_t blocks, int64_t b)
{
    return blocks ? total / blocks * b + total % blocks * b / blocks : 0;
}

/* The first blocks % ranks processes have one block more than the others, as in fin_ranks_share. */
void fin_encoder_share(int64_t total, int64_t blocks, int rank, int ranks, int64_t *first,
                       int64_t *count)
{
    int64_t used = fini_encoder_blocks(total, blocks), least = used / ranks, more = used % ranks;
    int64_t a = rank * least + (rank < more ? rank : more), b = a + least + (rank < more);
    *first = fini_encoder_block_start(total, used, a);
    *count = fini_encoder_block_start(total, used, b) - *first;
}
