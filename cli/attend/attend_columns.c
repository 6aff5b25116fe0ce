/* Lists of columns, as people write them: names, numbers from 1, ranges, patterns. */
#include "attend/attend.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const attend_source *source;
    const char *option;
    const attend_list *const *others;
    attend_list *list;
    char *taken; /* (columns) those in the list */
    fin_error *err;
} reader;

static bool has(const attend_list *list, int column)
{
    for (int i = 0; i < list->count; i++)
        if (list->at[i] == column)
            return true;
    return false;
}

static const char *elsewhere(const reader *r, int column)
{
    static const char *const names[] = {"--value", "--sequence"};
    for (int i = 0; r->others && r->others[i]; i++)
        if (has(r->others[i], column))
            return names[i < 2 ? i : 1];
    return NULL;
}

/* ---- one word ------------------------------------------------------------------------------- */

static fin_status unknown(const reader *r, const char *word)
{
    const attend_source *s = r->source;
    fin_array array;
    fin_error cause = {FIN_OK, ""};
    for (int64_t i = 0; s->npz && i < fin_npz_count(s->npz); i++)
        if (strcmp(fin_npz_name(s->npz, i), word) == 0) /* there, but no columns: say why */
            return fin_npz_array(s->npz, word, &array, &cause)
                       ? cli_status(r->err, FIN_ERR_FORMAT, "%s", cause.message)
                       : cli_status(r->err, FIN_ERR_FORMAT,
                                    "%s: array '%.60s' of %.120s has %d axes; one or two are "
                                    "needed, and at least one column",
                                    r->option, word, s->label, array.ndim);
    if (s->table && s->columns == 1 && strpbrk(s->column[0].name, ";\t"))
        return cli_status(r->err, FIN_ERR_FORMAT,
                          "%.150s has one column, '%.60s'; columns are separated by commas: "
                          "save the file as CSV with commas",
                          s->label, s->column[0].name);
    const char **names = malloc((size_t)s->columns * sizeof *names);
    if (!names)
        return cli_status_memory(r->err, (double)s->columns * sizeof *names, "the columns' names");
    for (int j = 0; j < s->columns; j++)
        names[j] = s->column[j].name;
    /* one letter is near to every other */
    const char *near = word[0] && word[1] ? fin_nearest_name(word, names, s->columns) : NULL;
    char all[256] = "";
    for (int j = 0; j < s->columns && strlen(all) < 160; j++) {
        size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%.40s", j ? ", " : "", names[j]);
    }
    fin_status status =
        near ? cli_status(r->err, FIN_ERR_ARGUMENT,
                          "%s: %.120s has no column '%.60s'; did you mean %.60s?", r->option,
                          s->label, word, near)
             : cli_status(r->err, FIN_ERR_ARGUMENT,
                          "%s: %.120s has no column '%.60s'; there are %d: %s%s", r->option,
                          s->label, word, s->columns, all, strlen(all) >= 160 ? ", ..." : "");
    free(names);
    return status;
}

/* A number from 1 to the number of columns; 0 if the word is none. */
static int number(const reader *r, const char *word)
{
    if (strspn(word, "0123456789") != strlen(word) || strlen(word) > 7)
        return 0;
    int n = atoi(word);
    return n <= r->source->columns ? n : 0;
}

static int column_of(const reader *r, const char *word)
{
    int j = attend_find(r->source, word);
    return j >= 0 ? j : number(r, word) - 1;
}

static fin_status add(reader *r, int column, bool named)
{
    const char *there = elsewhere(r, column), *name = r->source->column[column].name;
    if (there && !named)
        return FIN_OK;
    if (there)
        return cli_status(r->err, FIN_ERR_ARGUMENT,
                          "%s: column '%.60s' is in %s already; a column has one part to play",
                          r->option, name, there);
    if (r->taken[column] && named)
        return cli_status(r->err, FIN_ERR_ARGUMENT, "%s: column '%.60s' is there twice", r->option,
                          name);
    if (!r->taken[column])
        r->list->at[r->list->count++] = column;
    r->taken[column] = 1;
    return FIN_OK;
}

/* M of an NPZ file: M.0, M.1, ... */
static fin_status add_matrix(reader *r, const char *word, bool *found)
{
    size_t length = strlen(word);
    fin_status status = FIN_OK;
    *found = false;
    for (int j = 0; j < r->source->columns && !status; j++) {
        const char *name = r->source->column[j].name;
        if (!r->source->npz || strncmp(name, word, length) != 0 || name[length] != '.' ||
            strspn(name + length + 1, "0123456789") != strlen(name + length + 1))
            continue;
        *found = true;
        status = add(r, j, true);
    }
    return status;
}

static fin_status add_pattern(reader *r, const char *word)
{
    bool found = false;
    fin_status status = FIN_OK;
    for (int j = 0; j < r->source->columns && !status; j++)
        if (fnmatch(word, r->source->column[j].name, 0) == 0) {
            found = true;
            status = add(r, j, false);
        }
    return status || found ? status : unknown(r, word);
}

static fin_status add_range(reader *r, char *word, char *colon)
{
    *colon = '\0';
    int from = *word ? column_of(r, word) : 0,
        to = colon[1] ? column_of(r, colon + 1) : r->source->columns - 1;
    if (from < 0 || to < 0)
        return unknown(r, from < 0 ? word : colon + 1);
    if (from > to)
        return cli_status(r->err, FIN_ERR_ARGUMENT,
                          "%s: '%.60s' stands behind '%.60s'; a range goes from left to right",
                          r->option, word, colon + 1);
    fin_status status = FIN_OK;
    for (int j = from; j <= to && !status; j++)
        status = add(r, j, false);
    return status;
}

static fin_status add_word(reader *r, char *word)
{
    bool found;
    char *colon = strchr(word, ':');
    int column = column_of(r, word);
    if (column >= 0)
        return add(r, column, true);
    fin_status status = add_matrix(r, word, &found);
    if (status || found)
        return status;
    if (strpbrk(word, "*?["))
        return add_pattern(r, word);
    return colon ? add_range(r, word, colon) : unknown(r, word);
}

/* ---- lists ---------------------------------------------------------------------------------- */

fin_status attend_list_read(const attend_source *source, const char *option, const char *text,
                            const attend_list *const *others, attend_list *list, fin_error *err)
{
    reader r = {source, option, others, list, calloc((size_t)source->columns + 1, 1), err};
    char *copy = malloc(strlen(text) + 1);
    list->count = 0;
    list->at = calloc((size_t)source->columns + 1, sizeof *list->at);
    fin_status status =
        copy && list->at && r.taken ? FIN_OK : cli_status_memory(err, 0, "a list of columns");
    if (copy)
        memcpy(copy, text, strlen(text) + 1);
    for (char *word = copy; word && !status;) {
        char *end = word + strcspn(word, ","), *next = *end ? end + 1 : NULL;
        *end = '\0';
        word += strspn(word, " ");
        for (char *c = end; c > word && (c[-1] == ' '); c--)
            c[-1] = '\0';
        status = *word ? add_word(&r, word)
                       : cli_status(err, FIN_ERR_ARGUMENT,
                                    "%s '%.60s': a name is missing; columns are written a,b or a:c "
                                    "or x* or 1:3",
                                    option, text);
        word = next;
    }
    if (!status && list->count == 0)
        status = cli_status(err, FIN_ERR_ARGUMENT, "%s '%.60s': no column is left", option, text);
    free(copy);
    free(r.taken);
    return status;
}

fin_status attend_list_match(const attend_source *source, const attend_list *wanted,
                             const attend_source *in, const char *why, attend_list *list,
                             fin_error *err)
{
    list->count = 0;
    list->at = calloc((size_t)wanted->count + 1, sizeof *list->at);
    if (!list->at)
        return cli_status_memory(err, 0, "a list of columns");
    for (int i = 0; i < wanted->count; i++) {
        const char *name = source->column[wanted->at[i]].name;
        int j = attend_find(in, name);
        if (j < 0)
            return cli_status(err, FIN_ERR_ARGUMENT,
                              "%.150s has no column '%.60s'; %s, by the same names as in %.150s",
                              in->label, name, why, source->label);
        if (source->npz && in->npz && in->column[j].stride != source->column[wanted->at[i]].stride)
            return cli_status(err, FIN_ERR_FORMAT,
                              "the array of column '%.60s' has %lld columns in %.120s and %lld in "
                              "%.120s; as many are needed",
                              name, (long long)source->column[wanted->at[i]].stride, source->label,
                              (long long)in->column[j].stride, in->label);
        list->at[list->count++] = j;
    }
    return FIN_OK;
}
