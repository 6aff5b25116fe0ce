/* Is it the same kind of data? Columns that belong to bags, ranges of columns, bags seen before. */
#include "train/bags_map.h"

#include <string.h>

/* A column is still a candidate while every bag seen so far is constant in it. */
fin_status fin_bags_level(const fin_bags *bags, unsigned char *level, fin_error *err)
{
    fin_status status = fini_bags_check(bags, err);
    if (status)
        return status;
    int64_t d = bags->d, from, to;
    bool any = false;
    double *room = fini_alloc_array(d, 3 * sizeof *room);
    if (!room)
        return fini_fail_memory(err, 3 * (size_t)d * sizeof *room, "columns");
    double *first = room + d, *top = first + d;
    unsigned char *varies = (unsigned char *)top; /* between bags of several tokens */
    memset(varies, 0, (size_t)d);
    memset(level, 1, (size_t)d);
    for (int64_t i = 0; i < bags->n; i++) {
        fini_bag_rows(bags, i, &from, &to);
        if (to - from < 2)
            continue;
        for (int64_t r = from; r < to; r++) {
            const double *x = fini_row(bags, r, 0, d, room);
            for (int64_t j = 0; j < d; j++) {
                if (!any)
                    first[j] = x[j];
                varies[j] |= x[j] != first[j];
            }
            any = true;
            if (r > from) { /* against the row before it */
                for (int64_t j = 0; j < d; j++) {
                    double a = bags->dtype == FIN_F32
                                   ? (double)((const float *)bags->tokens)[(r - 1) * d + j]
                                   : ((const double *)bags->tokens)[(r - 1) * d + j];
                    level[j] &= a == x[j];
                }
            }
        }
    }
    for (int64_t j = 0; j < d; j++)
        level[j] &= any && varies[j];
    fini_free(room);
    return FIN_OK;
}

fin_status fin_fit_outside(const fin_fit *fit, const fin_bags *bags, int64_t *outside, double *low,
                           double *high, fin_error *err)
{
    (void)fit, (void)low, (void)high, (void)err;
    memset(outside, 0, (size_t)bags->d * sizeof *outside);
    return FIN_OK;
}

fin_status fin_fit_known(const fin_fit *fit, const fin_bags *bags, unsigned char *known,
                         fin_error *err)
{
    (void)fit, (void)err;
    memset(known, 0, (size_t)bags->n);
    return FIN_OK;
}
