/* Lists of columns: those that an option names, and the same ones in another file. */
#include "attend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Is one of the words in the list? */
static bool names_it(const char *list, const char *word)
{
    size_t size = strlen(word);
    for (const char *p = list; *p; p += *p == ',') {
        p += strspn(p, " ");
        size_t length = strcspn(p, ",");
        if (strncmp(p, word, size) == 0 && length - size == strspn(p + size, " "))
            return true;
        p += length;
    }
    return false;
}

/* A column that is not there: why it may not be, where the file says more than its columns. */
static fin_status explain(const attend_source *s, const char *option, const char *text,
                          fin_error *err)
{
    fin_error cause = {FIN_OK, ""};
    fin_array array;
    for (int64_t i = 0; s->npz && i < fin_npz_count(s->npz); i++) {
        const char *name = fin_npz_name(s->npz, i);
        if (!names_it(text, name))
            continue;
        if (fin_npz_array(s->npz, name, &array, &cause))
            return cli_status(err, FIN_ERR_FORMAT, "%s", cause.message);
        if (array.ndim < 1 || array.ndim > 2)
            return cli_status(err, FIN_ERR_FORMAT,
                              "%s: array '%.60s' of %.120s has %d axes; one or two are needed, and "
                              "at least one column",
                              option, name, s->label, array.ndim);
    }
    if (s->table && s->columns == 1 && strpbrk(s->column[0].name, ";\t"))
        return cli_status(err, FIN_ERR_FORMAT,
                          "%.150s has one column, '%.60s'; columns are separated by commas: "
                          "save the file as CSV with commas",
                          s->label, s->column[0].name);
    return err->status;
}

/* skip: (columns) those that the other options have. */
static void mark(const attend_list *const *others, char *skip)
{
    for (int k = 0; others && others[k]; k++)
        for (int i = 0; i < others[k]->count; i++)
            skip[others[k]->at[i]] = (char)(FIN_COLUMN_TAKEN + k);
}

fin_status attend_list_read(const attend_source *source, const char *option, const char *text,
                            const attend_list *const *others, attend_list *list, fin_error *err)
{
    static const char *const taken[] = {"is in --value already", "is in --sequence already"};
    size_t count = (size_t)source->columns + 1;
    const char **names = calloc(count, sizeof *names);
    char *skip = calloc(count, 1);
    int64_t *found = calloc(count, sizeof *found), n = 0;
    list->count = 0;
    list->at = calloc(count, sizeof *list->at);
    fin_status status = names && skip && found && list->at
                            ? FIN_OK
                            : cli_status_memory(err, 0, "a list of columns");
    if (!status) {
        for (int j = 0; j < source->columns; j++)
            names[j] = source->column[j].name;
        mark(others, skip);
        const fin_columns columns = {option, source->label, source->columns, names, skip, taken};
        status = fin_columns_read(&columns, text, found, &n, err);
    }
    for (int64_t i = 0; i < n && !status; i++)
        list->at[list->count++] = (int)found[i];
    free(names);
    free(skip);
    free(found);
    return status == FIN_ERR_ARGUMENT ? explain(source, option, text, err) : status;
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
