/* Bags that are in memory already, under names: what a fit made from arrays needs to become a file.
 *
 * Names meet the rules that readers of files have, so that a model written here can be used with
 * files: UTF-8, no control characters but those that a quoted cell may have, no two columns or
 * classes alike. */
#include "data/bags.h"
#include "bags/bags.h"

#include <string.h>

/* What is wrong with a text that is to be a name, or NULL. */
static const char *fault_of(const char *text)
{
    if (!text)
        return "is missing";
    if (!*text)
        return "is empty";
    fini_fault fault = fini_text_fault(text, strlen(text), true);
    return fault == FINI_FAULT_UTF8      ? "is not UTF-8"
           : fault == FINI_FAULT_CONTROL ? "has a control character"
                                         : NULL;
}

static fin_status fail_name(const char *what, int64_t i, const char *text, const char *fault,
                            fin_error *err)
{
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "the name of %s %lld (from 0), '%s', %s; names are UTF-8, for example 'f%lld'",
                     what, (long long)i, text ? FINI_SHOW(text) : "", fault, (long long)i);
}

/* texts (count), or the numbers from `first` on. differ: two that are alike are refused. */
static fin_status copy_names(fini_names *names, const char *what, const char *const *texts,
                             int64_t first, int64_t count, bool differ, fin_error *err)
{
    if (!texts)
        return fini_names_numbers(names, first, count, err);
    for (int64_t i = 0; i < count; i++) {
        const char *fault = fault_of(texts[i]);
        int64_t number = i;
        if (fault)
            return fail_name(what, i, texts[i], fault, err);
        FINI_TRY(differ ? fini_names_put(names, texts[i], strlen(texts[i]), &number, err)
                        : fini_names_add(names, texts[i], strlen(texts[i]), err));
        if (number < i)
            return fail_name(what, i, texts[i], "is there twice", err);
    }
    return FIN_OK;
}

static fin_status check_sizes(const fin_bags *bags, const fin_bags_names *names, fin_error *err)
{
    if (bags->d < 1 || bags->d > FINI_BAGS_COLUMNS_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT, "tokens have %lld columns; they can have 1 to %d",
                         (long long)bags->d, FINI_BAGS_COLUMNS_MAX);
    if (names->class_count < 0 || names->class_count > FINI_BAGS_CLASSES_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "there are %lld classes; 0 (labels are numbers) to %d are possible",
                         (long long)names->class_count, FINI_BAGS_CLASSES_MAX);
    return fini_bags_check(bags, err);
}

static fin_status fill(fin_bag_set *set, const fin_bags *bags, const fin_bags_names *names,
                       fin_error *err)
{
    static const int64_t nothing[1] = {0};
    const struct {
        const char *what, *common, *text;
        char **to;
    } columns[] = {{"label", "y", names->label, &set->label},
                   {"bags", "bag", names->bag, &set->bag},
                   {"groups", "group", names->group, &set->group}};
    set->bags = *bags;
    set->classes = names->class_count;
    if (bags->n == 0)
        set->bags.offsets = nothing;
    set->first_row = 1;
    for (int i = 0; i < 3; i++) {
        const char *fault = columns[i].text ? fault_of(columns[i].text) : NULL;
        if (fault)
            return fini_fail(err, FIN_ERR_ARGUMENT, "the name of the %s %s; '%s' is common",
                             columns[i].what, fault, columns[i].common);
        FINI_TRY(fini_bags_keep(columns[i].to, columns[i].text, err));
    }
    FINI_TRY(copy_names(&set->features, "column", names->features, 0, bags->d, true, err));
    FINI_TRY(
        copy_names(&set->class_names, "class", names->classes, 0, names->class_count, true, err));
    return copy_names(&set->names, "bag", names->bags, bags->first, bags->n, false, err);
}

fin_status fin_bag_set_make(fin_bag_set **out, const fin_bags *bags, const fin_bags_names *names,
                            fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, bags);
    static const fin_bags_names nameless;
    names = names ? names : &nameless;
    fin_status status = check_sizes(bags, names, err);
    if (!status)
        status = fini_bag_set_create(out, err);
    if (!status)
        status = fill(*out, bags, names, err);
    if (status) {
        fin_bag_set_destroy(*out);
        *out = NULL;
    }
    return status;
}

/* ---- columns that leave a set again ------------------------------------------------------------ */

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
    FINI_NEED(err, set, drop);
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
    char *tokens = set->map.ours ? set->map.base : set->tokens;
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
    if (!set->tokens && !set->map.ours) { /* what they were copied from is no longer needed */
        fin_npz_close(set->npz);
        set->npz = NULL;
        fini_npy_unmap(&set->map);
    }
    set->tokens = set->map.ours ? NULL : tokens;
    bags->tokens = tokens;
    bags->d = left;
    set->axes = 0; /* rows are no longer those of the array */
    set->height = 0;
    fini_names_close(&set->features);
    set->features = names;
    return FIN_OK;
}
