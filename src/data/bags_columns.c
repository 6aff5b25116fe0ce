/* Which columns are features: a list as people write it ("f1:f166", "x*,z", "1:3"), the names that a
 * model wants, or all that are left. */
#include "data/bags.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

typedef struct reader {
    const fini_columns *columns;
    const char *all; /* the whole list, for messages */
    int64_t *list;
    int64_t count;
    char *taken; /* (columns) those in the list */
} reader;

fin_status fini_no_column(const fini_columns *columns, const char *what, const char *word,
                          fin_error *err)
{
    enum { NEAR_MOST = 1000 }; /* the edit distance to every one of a million names is no help */
    const fini_names *names = columns->names;
    const char *near = NULL, *some[NEAR_MOST], *shown = FINI_SHOW(word);
    char all[FINI_LISTED];
    int64_t count = names->count < NEAR_MOST ? names->count : NEAR_MOST;
    for (int64_t j = 0; j < count; j++)
        some[j] = fini_names_get(names, j);
    if (word[0] && word[1] && strlen(word) < 64) /* one letter is near to every other */
        near = fin_nearest_name(word, some, (int)count);
    if (near)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%.150s has no %s '%s'%s", columns->file, what,
                         shown, fini_did_you_mean(FINI_SHOW(near), ""));
    return fini_fail(err, FIN_ERR_ARGUMENT, "%.150s has no %s '%s'; there are %lld: %s",
                     columns->file, what, shown, (long long)names->count,
                     fini_names_list(names, all));
}

/* A column by name, or by its number from 1; -1: none. */
static int64_t column_of(const reader *r, const char *word, size_t size)
{
    int64_t j = fini_names_find(r->columns->names, word, size);
    if (j >= 0 || size == 0 || size > 8 || strspn(word, "0123456789") < size)
        return j;
    long n = strtol(word, NULL, 10);
    return n <= r->columns->names->count ? n - 1 : -1;
}

static void add(reader *r, int64_t column)
{
    if (!r->taken[column])
        r->list[r->count++] = column;
    r->taken[column] = 1;
}

static int skipped(const fini_columns *columns, int64_t j)
{
    return columns->skip ? columns->skip[j] : FINI_COLUMN_NUMBER;
}

static fin_status add_pattern(reader *r, const char *word, fin_error *err)
{
    bool found = false;
    for (int64_t j = 0; j < r->columns->names->count; j++)
        if (!skipped(r->columns, j) &&
            fnmatch(word, fini_names_get(r->columns->names, j), 0) == 0) {
            found = true;
            add(r, j);
        }
    return found ? FIN_OK : fini_no_column(r->columns, "column", word, err);
}

static fin_status add_range(reader *r, char *word, char *colon, fin_error *err)
{
    *colon = '\0';
    const char *last = colon + 1;
    int64_t from = *word ? column_of(r, word, strlen(word)) : 0;
    int64_t to = *last ? column_of(r, last, strlen(last)) : r->columns->names->count - 1;
    if (from < 0 || to < 0)
        return fini_no_column(r->columns, "column", from < 0 ? word : last, err);
    if (from > to)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "features: '%.60s' stands behind '%.60s'; a range goes from left to right",
                         word, last);
    for (int64_t j = from; j <= to; j++)
        if (!skipped(r->columns, j))
            add(r, j);
    return FIN_OK;
}

static fin_status add_word(reader *r, char *word, fin_error *err)
{
    char *colon = strchr(word, ':');
    int64_t column = column_of(r, word, strlen(word));
    if (column >= 0) {
        if (r->taken[column])
            return fini_fail(err, FIN_ERR_ARGUMENT, "features: column '%.60s' is there twice",
                             word);
        if (skipped(r->columns, column) == FINI_COLUMN_OTHER)
            return fini_fail(
                err, FIN_ERR_ARGUMENT,
                "features: column '%.60s' names the bag or its group or is the label; a "
                "column has one part to play",
                word);
        add(r, column);
        return FIN_OK;
    }
    if (strpbrk(word, "*?["))
        return add_pattern(r, word, err);
    return colon ? add_range(r, word, colon, err) : fini_no_column(r->columns, "column", word, err);
}

static fin_status read_list(reader *r, char *copy, fin_error *err)
{
    fin_status status = FIN_OK;
    for (char *word = copy; word && !status;) {
        char *end = word + strcspn(word, ","), *next = *end ? end + 1 : NULL;
        *end = '\0';
        word += strspn(word, " ");
        for (; end > word && end[-1] == ' '; end--)
            end[-1] = '\0';
        status = *word
                     ? add_word(r, word, err)
                     : fini_fail(err, FIN_ERR_ARGUMENT,
                                 "features '%.60s': a name is missing; columns are written a,b or "
                                 "a:c or x* or 1:3",
                                 r->all);
        word = next;
    }
    return status;
}

/* A column of the file that may be what the model calls `word`; NULL: none is like it. */
static const char *other_spelling(const fini_names *names, const fin_bags_source *source,
                                  const char *word)
{
    enum { NEAR_MOST = 1000 };
    const char *some[NEAR_MOST];
    int64_t count = names->count < NEAR_MOST ? names->count : NEAR_MOST;
    if (!word[0] || strlen(word) >= 64)
        return NULL;
    for (int64_t j = 0; j < count; j++) {
        some[j] = fini_names_get(names, j);
        if (strcasecmp(some[j], word) == 0)
            return some[j];
    }
    const char *near = fin_nearest_name(word, some, (int)count);
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
    fin_status status = FIN_OK;
    if (source->feature_names)
        return match_names(r, set, source, err);
    if (source->features) {
        size_t size = strlen(source->features) + 1;
        char *copy = fini_alloc(size);
        if (!copy)
            return fini_fail_memory(err, size, "a list of columns");
        memcpy(copy, source->features, size);
        status = read_list(r, copy, err);
        fini_free(copy);
    } else {
        for (int64_t j = 0; j < r->columns->names->count; j++)
            if (gives_away(r, j))
                fini_bags_note(set,
                               "column '%s' is left out: in a table of finetti simulate it tells "
                               "which token this is; name it in the features to have it",
                               fini_names_get(r->columns->names, j));
            else if (!skipped(r->columns, j))
                add(r, j);
    }
    if (!status && r->count == 0)
        status = fini_fail(err, FIN_ERR_ARGUMENT, "%.200s: no column is left to be a feature",
                           r->columns->file);
    return status;
}

fin_status fini_bags_columns(fin_bag_set *set, const fin_bags_source *source,
                             const fini_columns *columns, int64_t **list, int64_t *count,
                             fin_error *err)
{
    int64_t all = columns->names->count, room = all;
    if (source->feature_names && source->feature_count > room)
        room = source->feature_count;
    reader r = {columns, source->features, fini_alloc_array(room, sizeof *r.list), 0,
                fini_alloc_array(all, 1)};
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
