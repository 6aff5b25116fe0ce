/* Lists of columns as people write them: "f1:f166", "x*,z", "1:3". */
#include "data/columns.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const fini_columns *columns;
    int64_t *list, count;
    char *there; /* (columns) those in the list */
} reader;

static const char *what(const reader *r)
{
    return r->columns->what ? r->columns->what : "features";
}

fin_status fini_no_column(const fini_columns *columns, const char *word, fin_error *err)
{
    const fini_names *names = columns->names;
    const char *shown = FINI_SHOW(word);
    const char *option = columns->what ? columns->what : "", *colon = columns->what ? ": " : "";
    char all[FINI_LISTED];
    /* One letter is near to every other. */
    const char *near = word[0] && word[1] ? fini_names_near(names, word) : NULL;
    if (near)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s%s%.150s has no column '%s'; did you mean %.60s?", option, colon,
                         columns->file, shown, FINI_SHOW(near));
    return fini_fail(err, FIN_ERR_ARGUMENT, "%s%s%.150s has no column '%s'; there are %lld: %s",
                     option, colon, columns->file, shown, (long long)names->count,
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

static int skip_of(const reader *r, int64_t j)
{
    return r->columns->skip ? r->columns->skip[j] : FIN_COLUMN_FREE;
}

static void add(reader *r, int64_t column)
{
    if (!r->there[column])
        r->list[r->count++] = column;
    r->there[column] = 1;
}

static fin_status add_named(reader *r, int64_t column, fin_error *err)
{
    const char *name = FINI_SHOW(fini_names_get(r->columns->names, column));
    int skip = skip_of(r, column);
    if (r->there[column])
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s: column '%s' is there twice", what(r), name);
    if (skip >= FIN_COLUMN_TAKEN)
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "%s: column '%s' %s and cannot be in %s too; a column has one part to play", what(r),
            name, r->columns->taken[skip - FIN_COLUMN_TAKEN], what(r));
    add(r, column);
    return FIN_OK;
}

/* M of a matrix: M.0, M.1, ... */
static fin_status add_matrix(reader *r, const char *word, bool *found, fin_error *err)
{
    size_t size = strlen(word);
    *found = false;
    for (int64_t j = 0; j < r->columns->names->count; j++) {
        const char *name = fini_names_get(r->columns->names, j);
        if (strncmp(name, word, size) != 0 || name[size] != '.' || !name[size + 1] ||
            name[size + 1 + strspn(name + size + 1, "0123456789")])
            continue;
        *found = true;
        FINI_TRY(add_named(r, j, err));
    }
    return FIN_OK;
}

static fin_status add_pattern(reader *r, const char *word, fin_error *err)
{
    bool found = false;
    for (int64_t j = 0; j < r->columns->names->count; j++)
        if (fnmatch(word, fini_names_get(r->columns->names, j), 0) == 0) {
            found |= skip_of(r, j) != FIN_COLUMN_UNASKED;
            if (skip_of(r, j) == FIN_COLUMN_FREE)
                add(r, j);
        }
    return found ? FIN_OK : fini_no_column(r->columns, word, err);
}

static fin_status add_range(reader *r, char *word, char *colon, fin_error *err)
{
    *colon = '\0';
    const char *last = colon + 1;
    int64_t from = *word ? column_of(r, word, strlen(word)) : 0;
    int64_t to = *last ? column_of(r, last, strlen(last)) : r->columns->names->count - 1;
    if (from < 0 || to < 0)
        return fini_no_column(r->columns, from < 0 ? word : last, err);
    if (from > to)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s: '%.60s' stands behind '%.60s'; a range goes from left to right",
                         what(r), word, last);
    for (int64_t j = from; j <= to; j++)
        if (skip_of(r, j) == FIN_COLUMN_FREE)
            add(r, j);
    return FIN_OK;
}

static fin_status add_word(reader *r, char *word, fin_error *err)
{
    char *colon = strchr(word, ':');
    int64_t column = column_of(r, word, strlen(word));
    bool found;
    if (column >= 0)
        return add_named(r, column, err);
    FINI_TRY(add_matrix(r, word, &found, err));
    if (found)
        return FIN_OK;
    if (strpbrk(word, "*?["))
        return add_pattern(r, word, err);
    return colon ? add_range(r, word, colon, err) : fini_no_column(r->columns, word, err);
}

static fin_status read_list(reader *r, const char *text, char *copy, fin_error *err)
{
    for (char *word = copy; word;) {
        char *end = word + strcspn(word, ","), *next = *end ? end + 1 : NULL;
        *end = '\0';
        word += strspn(word, " ");
        for (; end > word && end[-1] == ' '; end--)
            end[-1] = '\0';
        FINI_TRY(*word ? add_word(r, word, err)
                       : fini_fail(err, FIN_ERR_ARGUMENT,
                                   "%s '%.60s': a name is missing; columns are written a,b or a:c "
                                   "or x* or 1:3",
                                   what(r), text));
        word = next;
    }
    if (r->count == 0)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s '%.60s': no column is left", what(r), text);
    return FIN_OK;
}

fin_status fini_columns_read(const fini_columns *columns, const char *text, int64_t *list,
                             int64_t *count, fin_error *err)
{
    size_t all = (size_t)columns->names->count, size = strlen(text) + 1;
    FINI_FREED char *copy = fini_alloc(size + all);
    if (!copy)
        return fini_fail_memory(err, size + all, "a list of columns");
    reader r = {columns, list, 0, copy + size};
    memcpy(copy, text, size);
    memset(r.there, 0, all);
    FINI_TRY(read_list(&r, text, copy, err));
    *count = r.count;
    return FIN_OK;
}

fin_status fin_columns_read(const fin_columns *columns, const char *text, int64_t *list,
                            int64_t *count, fin_error *err)
{
    FINI_NEED(err, columns, text, list, count);
    FINI_AT_END(fini_names_close) fini_names names = {.count = 0};
    *count = 0;
    for (int64_t j = 0; j < columns->count; j++)
        FINI_TRY(fini_names_add(&names, columns->names[j], strlen(columns->names[j]), err));
    FINI_TRY(fini_names_index(&names, err));
    const fini_columns all = {.file = columns->file,
                              .names = &names,
                              .skip = columns->skip,
                              .what = columns->what,
                              .taken = columns->taken};
    return fini_columns_read(&all, text, list, count, err);
}
