/* Groups of bags: which of them belong together, such as the slides of one patient.
 *
 * They are numbered from 0 in the order of their first appearance in the whole file, so that the
 * shares of several processes agree. */
#include "data/bags.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

fin_status fini_bags_groups(fin_bag_set *set, const int64_t *all, fin_error *err)
{
    fin_bags *bags = &set->bags;
    FINI_ROOM(err, "groups", set->groups, bags->n + 1, 1);
    memcpy(set->groups, all + bags->first, (size_t)bags->n * sizeof *set->groups);
    bags->groups = set->groups;
    return FIN_OK;
}

/* ---- arrays ----------------------------------------------------------------------------------- */

/* Number of the group of element i of the array, in the order of first appearance. */
static fin_status number_group(fini_arrays *a, fini_names *names, int64_t i, int64_t *number,
                               fin_error *err)
{
    char text[FINI_NUMBER];
    int64_t whole;
    double value = fin_dtype_get(a->group.dtype, a->group.data, i);
    if (fini_element_whole(&a->group, i, &whole))
        snprintf(text, sizeof text, "%lld", (long long)whole);
    else if (isfinite(value))
        fini_print_double(value, 17, text, sizeof text);
    else
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: '%.60s' is %s in place %lld (from 0); every bag needs its group",
                         a->file, a->group_name, isnan(value) ? "nan" : "infinite", (long long)i);
    return fini_names_put(names, text, strlen(text), number, err);
}

/* One for each bag, or one for each row of tokens. */
static fin_status fill_groups(fini_arrays *a, const int64_t *offsets, fini_names *names,
                              int64_t *group, fin_error *err)
{
    bool by_bag = a->group.count == a->total;
    int64_t count = by_bag ? a->total : a->rows, bag = 0, seen = 0, number;
    if (!by_bag && a->group.count != a->rows)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.200s: '%.60s' has %lld groups for %lld bags of %lld rows; one for each "
                         "bag or each row is needed",
                         a->file, a->group_name, (long long)a->group.count, (long long)a->total,
                         (long long)a->rows);
    for (int64_t i = 0; i < count; i++) {
        while (!by_bag && !a->bag_of && i >= offsets[bag + 1])
            bag++;
        int64_t at = by_bag ? i : a->bag_of ? a->bag_of[i] : bag;
        FINI_TRY(number_group(a, names, i, &number, err));
        if (at == seen) {
            group[seen++] = number;
        } else if (group[at] != number) {
            char bag_number[FINI_NUMBER];
            snprintf(bag_number, sizeof bag_number, "%lld", (long long)at);
            return fini_fail(err, FIN_ERR_FORMAT,
                             "%.200s: row %lld (from 0) of '%.60s' has the group %.17g, but bag "
                             "'%s', to which it "
                             "belongs, has %.60s",
                             a->file, (long long)i, a->group_name,
                             fin_dtype_get(a->group.dtype, a->group.data, i),
                             a->bag_of ? fini_names_get(&a->names, at) : bag_number,
                             fini_names_get(names, group[at]));
        }
    }
    return FIN_OK;
}

fin_status fini_arrays_groups(fini_arrays *a, const int64_t *offsets, fin_error *err)
{
    fini_names names = {0};
    if (!a->group.data)
        return FIN_OK;
    FINI_ROOM(err, "groups", a->group_of, a->total + 1, 1);
    fin_status status = fill_groups(a, offsets, &names, a->group_of, err);
    fini_names_close(&names);
    return status;
}

/* ---- folds ------------------------------------------------------------------------------------ */

/* Names of the first bags of group g. */
static const char *bags_of(const fin_bag_set *set, int64_t g, char all[160])
{
    enum { SHOWN = 4 };
    size_t used = 0;
    int count = 0;
    for (int64_t i = 0; i < set->bags.n && count <= SHOWN; i++) {
        if (set->bags.groups[i] != g)
            continue;
        const char *one = fini_names_get(&set->names, i);
        used += (size_t)snprintf(all + used, 160 - used, "%s%.31s", count ? ", " : "",
                                 count < SHOWN ? FINI_SHOW(one) : "...");
        count++;
    }
    return all;
}

fin_status fini_folds_groups(const fin_bag_set *set, const char *file, int64_t repeats,
                             const int32_t *fold, fin_error *err)
{
    const fin_bags *bags = &set->bags;
    int64_t top = -1, n = bags->n;
    char all[160];
    for (int64_t i = 0; i < n && bags->groups; i++)
        top = bags->groups[i] > top ? bags->groups[i] : top;
    if (top < 0)
        return FIN_OK;
    FINI_OWN(err, "groups", int64_t, first, top + 1, 1); /* bag of each group, or -1 */
    memset(first, -1, (size_t)(top + 1) * sizeof *first);
    fin_status status = FIN_OK;
    for (int64_t i = 0; i < n; i++) {
        int64_t *known = &first[bags->groups[i]];
        *known = *known < 0 ? i : *known;
        for (int64_t r = 0; r < repeats && !status; r++)
            if (fold[r * n + i] != fold[r * n + *known])
                status = fini_fail(
                    err, FIN_ERR_FORMAT,
                    "%.150s: repeat %lld (column %lld) has bags of one group (%s) in several "
                    "folds: "
                    "%s; a group belongs into one fold",
                    file, (long long)r + 1, (long long)r + 2,
                    set->group ? FINI_SHOW(set->group) : "groups",
                    bags_of(set, bags->groups[i], all));
    }
    return status;
}
