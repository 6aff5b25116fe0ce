/* Which columns are features: a list as people write it (columns.c), the names that a model wants, or
 * all that are left. */
#include "data/bags.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

typedef struct reader {
    const fini_columns *columns;
    int64_t *list;
    int64_t count;
    char *taken; /* (columns) those in the list */
} reader;

const char *const fini_bags_taken[] = {"names the bags", "is the label", "names the groups"};

static void add(reader *r, int64_t column)
{
    if (!r->taken[column])
        r->list[r->count++] = column;
    r->taken[column] = 1;
}

/* A column of the file that may be what the model calls `word`; NULL: none is like it. */
static const char *other_spelling(const fini_names *names, const fin_bags_source *source,
                                  const char *word)
{
    for (int64_t j = 0; word[0] && j < names->count && j < FINI_NEAR_MOST; j++)
        if (strcasecmp(fini_names_get(names, j), word) == 0)
            return fini_names_get(names, j);
    const char *near = fini_names_near(names, word);
    for (int64_t j = 0; j < source->feature_count && near; j++)
        near = strcmp(near, source->feature_names[j]) == 0 ? NULL : near; /* it is wanted itself */
    return near;
}

/* Columns that a model wants are not there: as many as fit, and what one of them may be called. */
static fin_status missing_names(const reader *r, const fin_bags_source *source, fin_error *err)
{
    enum { ROOM = 160, TRIED = 20 };
    const fini_names *names = r->columns->names;
    char list[ROOM + 64] = "", hint[128] = "";
    int64_t missing = 0, told = 0;
    size_t used = 0;
    for (int64_t j = 0; j < source->feature_count; j++) {
        const char *one = source->feature_names[j], *near = NULL;
        if (fini_names_find(names, one, strlen(one)) >= 0)
            continue;
        if (missing++ < TRIED && !hint[0])
            near = other_spelling(names, source, one);
        if (near)
            snprintf(hint, sizeof hint, "; is its '%s' the model's '%s'?", FINI_SHOW(near),
                     FINI_SHOW(one));
        if (used < ROOM) {
            used += (size_t)snprintf(list + used, sizeof list - used, "%s'%s'", told ? ", " : "",
                                     FINI_SHOW(one));
            told++;
        }
    }
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "%.100s has no column%s %s%s, which the model was fitted to (%lld of its %lld "
                     "are missing)%s",
                     r->columns->file, missing == 1 ? "" : "s", list, told < missing ? ", ..." : "",
                     (long long)missing, (long long)source->feature_count, hint);
}

/* The columns that a model wants, by name; by place where the file has no names. */
static fin_status match_names(reader *r, const fin_bag_set *set, const fin_bags_source *source,
                              fin_error *err)
{
    const fini_names *names = r->columns->names;
    bool by_place = false;
    for (int64_t j = 0; j < source->feature_count; j++) {
        const char *name = source->feature_names[j];
        int64_t column = fini_names_find(names, name, strlen(name));
        by_place = column < 0 && r->columns->nameless && names->count == source->feature_count;
        if (by_place)
            break;
        if (column < 0 && r->columns->nameless)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "%.150s has %lld columns without names; the model was fitted to %lld, "
                             "and one that is called '%.60s'",
                             r->columns->file, (long long)names->count,
                             (long long)source->feature_count, name);
        if (column < 0)
            return missing_names(r, source, err);
        if (r->taken[column])
            return fini_fail(err, FIN_ERR_ARGUMENT, "the model wants column '%.60s' twice", name);
        add(r, column);
    }
    if (by_place) {
        fini_bags_note(set,
                       "the columns have no names: the model's %lld features are taken by place",
                       (long long)source->feature_count);
        for (r->count = 0; r->count < source->feature_count; r->count++)
            r->list[r->count] = r->count;
    }
    return FIN_OK;
}

/* A table of `finetti simulate` has the number of the token, and whether it decided: who does not
 * ask for these two does not want to learn from the answer. */
static bool gives_away(const reader *r, int64_t j)
{
    const fini_names *names = r->columns->names;
    const char *name = fini_names_get(names, j);
    return (strcmp(name, "token") == 0 || strcmp(name, "relevant") == 0) &&
           fini_names_find(names, "sample", 6) >= 0 && fini_names_find(names, "token", 5) >= 0 &&
           fini_names_find(names, "relevant", 8) >= 0;
}

static fin_status choose(reader *r, const fin_bag_set *set, const fin_bags_source *source,
                         fin_error *err)
{
    if (source->feature_names)
        return match_names(r, set, source, err);
    if (source->features) {
        FINI_TRY(fini_columns_read(r->columns, source->features, r->list, &r->count, err));
    } else {
        for (int64_t j = 0; j < r->columns->names->count; j++)
            if (gives_away(r, j))
                fini_bags_note(set,
                               "column '%s' is left out: in a table of finetti simulate it tells "
                               "which token this is; name it in the features to have it",
                               fini_names_get(r->columns->names, j));
            else if (!r->columns->skip || !r->columns->skip[j])
                add(r, j);
    }
    if (r->count == 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%.200s: no column is left to be a feature",
                         r->columns->file);
    return FIN_OK;
}

fin_status fini_bags_columns(fin_bag_set *set, const fin_bags_source *source,
                             const fini_columns *columns, int64_t **list, int64_t *count,
                             fin_error *err)
{
    int64_t all = columns->names->count, room = all;
    if (source->feature_names && source->feature_count > room)
        room = source->feature_count;
    reader r = {columns, fini_alloc_array(room, sizeof *r.list), 0, fini_alloc_array(all, 1)};
    fin_status status = FIN_OK;
    if (!r.list || !r.taken)
        status = fini_fail_memory(err, (size_t)room * sizeof *r.list, "a list of columns");
    if (r.taken)
        memset(r.taken, 0, (size_t)all);
    if (!status)
        status = choose(&r, set, source, err);
    for (int64_t j = 0; j < r.count && !status; j++) {
        const char *name = source->feature_names ? source->feature_names[j]
                                                 : fini_names_get(columns->names, r.list[j]);
        status = fini_names_add(&set->features, name, strlen(name), err);
    }
    fini_free(r.taken);
    if (status) {
        fini_free(r.list);
        r.list = NULL;
    }
    *list = r.list;
    *count = r.count;
    set->bags.d = r.count;
    return status;
}
