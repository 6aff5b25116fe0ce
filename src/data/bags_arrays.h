/* Arrays being made into bags: what bags_npz.c and bags_npy.c find, and bags_arrays.c uses. */
#ifndef FINI_BAGS_ARRAYS_H
#define FINI_BAGS_ARRAYS_H

#include "data/bags.h"

typedef struct fini_arrays {
    const char *file;                  /* for messages */
    fin_array tokens, offsets, bag, y; /* data NULL: not there */
    fin_array group;
    const char *bag_name, *label_name, *group_name; /* of the arrays that were found */
    fini_names columns; /* names of the features; empty: numbers from 0 */
    bool nameless;
    int64_t rows, width, total; /* tokens, their columns, bags */
    int64_t *bag_of;            /* (rows) or NULL: by offsets */
    bool gather;                /* the rows of some bag are not neighbours */
    int64_t skipped;            /* rows before the share, in the order of bags */
    fini_names names;           /* of the bags, if they are not by offsets */
    int64_t *group_of;          /* (total) or NULL: there are none */
} fini_arrays;

double fini_element(const fin_array *array, int64_t i);
/* false: it is no whole number. */
bool fini_element_whole(const fin_array *array, int64_t i, int64_t *number);
/* Numbers of the groups into a->group_of; offsets: of all bags (bags_groups.c). */
fin_status fini_arrays_groups(fini_arrays *arrays, const int64_t *offsets, fin_error *err);
/* Fills the set. The arrays' data must live as long as the set (set->npz, set->map). */
fin_status fini_bags_arrays(fini_arrays *arrays, fin_bag_set *set, const fin_bags_source *source,
                            fin_error *err);

#endif
