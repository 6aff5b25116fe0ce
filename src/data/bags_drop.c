/* Columns that leave a set of bags again. */
#include "data/bags.h"

#include <string.h>

/* Rows of d cells become rows of those that stay; `to` may be `from`, as no cell moves to the right. */
static void copy_rows(const char *from, char *to, int64_t rows, int64_t d, size_t size,
                      const unsigned char *drop)
{
    for (int64_t t = 0; t < rows; t++)
        for (int64_t j = 0; j < d; j++, from += size)
            if (!drop[j]) {
                memmove(to, from, size);
                to += size;
            }
}

fin_status fin_bag_set_drop(fin_bag_set *set, const unsigned char *drop, fin_error *err)
{
    fin_bags *bags = &set->bags;
    fini_names names = {0};
    int64_t d = bags->d, left = 0, rows = bags->offsets[bags->n] - bags->offsets[0], cells;
    size_t size = fin_dtype_size(bags->dtype);
    fin_status status = FIN_OK;
    for (int64_t j = 0; j < d; j++)
        left += !drop[j];
    if (left == 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "all %lld columns are to be left out; at least one must stay",
                         (long long)d);
    if (left == d)
        return FIN_OK;
    for (int64_t j = 0; j < d && !status; j++) {
        const char *name = fini_names_get(&set->features, j);
        if (!drop[j])
            status = fini_names_add(&names, name, strlen(name), err);
    }
    char *tokens = set->tokens;
    if (!status && !tokens && rows > 0) {
        bool overflow = __builtin_mul_overflow(rows, left, &cells);
        tokens = overflow ? NULL : fini_alloc_array(cells, size);
        if (!tokens)
            status = fini_fail_memory(err, overflow ? SIZE_MAX : (size_t)cells * size, "tokens");
    }
    if (status) {
        fini_names_close(&names);
        return status;
    }
    if (rows > 0)
        copy_rows(bags->tokens, tokens, rows, d, size, drop);
    if (!set->tokens) { /* what they were copied from is no longer needed */
        fin_npz_close(set->npz);
        set->npz = NULL;
        if (set->map)
            fini_npy_unmap(set->map);
    }
    set->tokens = tokens;
    bags->tokens = tokens;
    bags->d = left;
    set->axes = 0; /* rows are no longer those of the array */
    set->height = 0;
    fini_names_close(&set->features);
    set->features = names;
    return FIN_OK;
}
