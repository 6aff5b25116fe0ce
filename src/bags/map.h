/* What the files of the map share: blocks of bags, rows of tokens, groups of columns. */
#ifndef FINI_BAGS_MAP_H
#define FINI_BAGS_MAP_H

#include "bags/bags.h"
#include "kernel/rows.h"

/* ---- blocks and rows (share.c) ------------------------------------------------------------ */

/* The blocks of bags that are here: numbers first .. first + count - 1 of `all`. */
typedef struct fini_blocks {
    int64_t all, first, count;
} fini_blocks;

/* Fails if the bags here are not whole blocks. */
fin_status fini_blocks_open(fini_blocks *blocks, const fin_bags *bags, fin_error *err);
/* fin_sum over the blocks; sum == NULL: alone. */
fin_status fini_blocks_sum(const fini_blocks *blocks, fin_sum sum, int64_t n, double *parts,
                           double *out, fin_error *err);
/* Numbers of every block: own (count) -> all (blocks->all), in place of a gathering call. */
fin_status fini_blocks_gather(const fini_blocks *blocks, fin_sum sum, const double *own,
                              double *all, fin_error *err);

static inline int fini_bag_counts(const double *weights, int64_t i)
{
    return !weights || weights[i] > 0;
}

/* Rows of bag i: from .. to - 1 of bags->tokens. */
static inline void fini_bag_rows(const fin_bags *bags, int64_t i, int64_t *from, int64_t *to)
{
    *from = bags->offsets[i] - bags->offsets[0];
    *to = bags->offsets[i + 1] - bags->offsets[0];
}

/* Columns from .. to - 1 of a row as doubles: in place, or copied to room (to - from). */
const double *fini_row(const fin_bags *bags, int64_t row, int64_t from, int64_t to, double *room);

/* Sums, column by column from `column` on, over rows from .. to - 1 (kernel/rows.h). */
void fini_rows_sum(const fin_bags *bags, int64_t from, int64_t to, int64_t column,
                   const fini_rows_sums *of, double *first, double *second);

/* Tokens that are here. */
static inline int64_t fini_bags_tokens(const fin_bags *bags)
{
    return bags->n ? bags->offsets[bags->n] - bags->offsets[0] : 0;
}

/* Threads for so many products: waking a second one costs more than a few are worth, and much more
 * on a busy machine. */
int fini_map_threads(double products);

/* Bytes that this process may still take: what the machine has available, or its control group. */
double fini_memory_left(void);
/* Memory for count * width doubles, refused with advice where the machine does not have it. */
fin_status fini_numbers(double **numbers, int64_t count, int64_t width, const char *what,
                        fin_error *err);

/* ---- columns (columns.c) ---------------------------------------------------------------- */

/* Centre, scale, bound and spread of the columns of `bags` (after the statistics). */
fin_status fini_columns_fit(fini_map *map, int scaling, const fin_bags *bags, const double *weights,
                            fin_sum sum, fini_cancel *cancel, fin_error *err);
/* z (s) of a row. */
void fini_columns_apply(const fini_map *map, const fin_bags *bags, int64_t row, double *z);

/* Groups of columns that are scaled, and have RBF features, together: one for tokens and for
 * largest values; means, and smallest with largest values, for statistics. */
int fini_map_groups(const fini_map *map);
void fini_map_group(const fini_map *map, int g, int64_t *from, int64_t *to);
/* Columns of a group that are not left out; and these columns of z (s), to out. */
int64_t fini_map_width(const fini_map *map, int g);
void fini_map_pick(const fini_map *map, int g, const double *z, double *out);

/* Sets everything that settings say about tokens of d columns. */
fin_status fini_map_open(fini_map *map, const fin_fit_settings *settings, int64_t d,
                         fin_error *err);
void fini_map_cut(fini_map *map); /* center (4, s) into scale, bound and spread */

/* ---- statistics (map.c) ---------------------------------------------------------- */

/* Bags of one row each, in memory of its own (fini_phi_close). */
fin_status fini_statistics(const fini_map *map, const fin_bags *bags, fini_phi *phi,
                           fini_cancel *cancel, fin_error *err);
/* One row of p numbers for each bag, or for each token, to be filled in. */
fin_status fini_phi_open(fini_phi *phi, const fin_bags *bags, int64_t p, bool bag_each,
                         fin_error *err);

/* ---- landmarks and features (landmarks.c, features.c) ------------------------------ */

/* min(*count, training rows) different rows z (*count, s), the same for any number of processes;
 * freed by the caller. */
fin_status fini_landmarks(const fini_map *map, int64_t seed, const fin_bags *bags,
                          const double *weights, fin_sum sum, int64_t *count, double **rows,
                          fini_cancel *cancel, fin_error *err);
fin_status fini_features_fit(fini_map *map, const fin_fit_settings *settings, const fin_bags *bags,
                             const double *weights, fin_sum sum, fini_cancel *cancel,
                             fin_error *err);

enum { FINI_MAP_TILE = 64 }; /* rows whose features are made together */
/* z (rows, s) to features f (rows, m) as they come, group after group; room: (TILE, s + 3 m). */
void fini_features_raw(const fini_map *map, int64_t rows, const double *z, double *f, double *room);
/* What W (q, p) makes of features, without making them: V (q, m of a group), group after group, and what
 * is added to constant (q). Then, from z (rows, s), at most TILE: U (rows, q) of one group; room as above. */
void fini_features_readouts(const fini_map *map, int64_t q, const double *W, double *V,
                            double *constant);
void fini_features_read(const fini_map *map, int group, int64_t rows, const double *z, int64_t q,
                        const double *V, double *U, double *room);
/* Doubles of scratch of a call of fini_features_apply. */
int64_t fini_features_scratch(const fini_map *map);
/* Products that `rows` rows take. */
double fini_features_cost(const fini_map *map, int64_t rows);
/* What the form sees of rows first .. first + rows - 1 (at most FINI_MAP_TILE): out (rows, p). */
void fini_features_apply(const fini_map *map, const fin_bags *bags, int64_t first, int64_t rows,
                         double *out, double *scratch);

#endif
