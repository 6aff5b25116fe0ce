/* Which sequence a row belongs to, by a column of numbers or of words, and rows in the order of
 * their sequences: those of the context first, ascending, then those that only queries have. */
#include "attend/attend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int64_t find_label(const double *label, int64_t n, double wanted)
{
    const double *found = bsearch(&wanted, label, (size_t)n, sizeof *label, ascending);
    return found ? found - label : -1;
}

double attend_label(const attend_data *data, const attend_source *source, const attend_list *list,
                    int64_t row)
{
    double x = attend_cell(&source->column[list->at[0]], row);
    return source == &data->other && data->translate && x >= 1 ? data->translate[(int64_t)x - 1]
                                                               : x;
}

/* Words of the queries that the context does not have come behind those that it has. */
fin_status attend_translate(attend_data *data, fin_error *err)
{
    const attend_column *ours = &data->context.column[data->sequence.at[0]],
                        *theirs = &data->other.column[data->asked_sequence.at[0]];
    if (!ours->words != !theirs->words)
        return cli_status(err, FIN_ERR_FORMAT,
                          "the sequence column %.60s has text in %.120s and numbers in %.120s",
                          ours->name, ours->words ? data->context.label : data->other.label,
                          ours->words ? data->other.label : data->context.label);
    if (!ours->words)
        return FIN_OK;
    data->translate = calloc((size_t)theirs->words, sizeof *data->translate);
    if (!data->translate)
        return cli_status_memory(err, 8.0 * (double)theirs->words, "the sequences");
    int64_t more = ours->words;
    for (int64_t i = 0; i < theirs->words; i++) {
        int64_t found = fin_table_find_text(ours->table, ours->number, attend_word(theirs, i));
        data->translate[i] = (double)(found >= 0 ? found + 1 : ++more);
    }
    return FIN_OK;
}

char *attend_sequence_name(const attend_data *data, int64_t s, char *buffer, size_t size)
{
    const attend_column *ours = &data->context.column[data->sequence.at[0]];
    const attend_column *theirs =
        data->translate ? &data->other.column[data->asked_sequence.at[0]] : NULL;
    double label = data->label[s];
    snprintf(buffer, size, "%g", label);
    if (label >= 1 && label <= (double)ours->words)
        snprintf(buffer, size, "%s", attend_word(ours, (int64_t)label - 1));
    for (int64_t i = 0; theirs && i < theirs->words; i++)
        if (data->translate[i] == label)
            snprintf(buffer, size, "%s", attend_word(theirs, i));
    return buffer;
}

/* Words are printed as JSON, which is UTF-8: the same is asked of them as of the columns' names. */
static fin_status check_words(const attend_source *source, const attend_column *column,
                              fin_error *err)
{
    for (int64_t i = 0; i < column->words; i++) {
        json_t *text = json_string(attend_word(column, i));
        if (!text)
            return cli_status(err, FIN_ERR_FORMAT,
                              "%.150s, column %.60s: '%.40s' is not UTF-8; save the file as UTF-8 "
                              "text",
                              source->label, column->name, attend_word(column, i));
        json_decref(text);
    }
    return FIN_OK;
}

/* Adds the labels of a column that are not among the first `known` ones, ascending. */
fin_status attend_add_labels(attend_data *data, const attend_source *source,
                             const attend_list *list, int64_t rows, fin_error *err)
{
    int64_t known = data->sequences, total = known;
    double *label = realloc(data->label, (size_t)(known + rows + 1) * sizeof *label);
    CLI_TRY(label ? FIN_OK : cli_status_memory(err, 8.0 * (double)(known + rows), "the sequences"));
    data->label = label ? label : data->label;
    CLI_TRY(check_words(source, &source->column[list->at[0]], err));
    for (int64_t i = 0; i < rows; i++) {
        double x = attend_label(data, source, list, i);
        if (!isfinite(x))
            return attend_bad_cell(source, list->at[0], i, err);
        if (find_label(label, known, x) < 0)
            label[total++] = x;
    }
    qsort(label + known, (size_t)(total - known), sizeof *label, ascending);
    for (int64_t i = known; i < total; i++)
        if (i == known || label[i] != label[i - 1])
            label[data->sequences++] = label[i];
    return FIN_OK;
}

/* Sequence of a row; context labels and those that only queries have are sorted apart. */
static int64_t sequence_of(const attend_data *data, int64_t known, const attend_source *source,
                           const attend_list *list, int64_t row)
{
    if (list->count == 0)
        return 0;
    double x = attend_label(data, source, list, row);
    int64_t i = find_label(data->label, known, x);
    return i >= 0 ? i : known + find_label(data->label + known, data->sequences - known, x);
}

/* Rows in the order of their sequences, otherwise as they stand in the file. */
fin_status attend_arrange(const attend_data *data, int64_t known, const attend_source *source,
                          const attend_list *list, int64_t count, attend_rows *rows, fin_error *err)
{
    int64_t n = data->sequences;
    rows->count = count;
    rows->row = calloc((size_t)count + 1, sizeof *rows->row);
    rows->offsets = calloc((size_t)n + 2, sizeof *rows->offsets);
    if (!rows->row || !rows->offsets)
        return cli_status_memory(err, 8.0 * (double)(count + n), "the order of the rows");
    int64_t *next = rows->offsets + 1; /* ends up as offsets */
    for (int64_t i = 0; i < count; i++)
        next[sequence_of(data, known, source, list, i) + 1]++;
    for (int64_t s = 1; s <= n; s++)
        next[s] += next[s - 1];
    for (int64_t i = 0; i < count; i++)
        rows->row[next[sequence_of(data, known, source, list, i)]++] = i;
    return FIN_OK;
}
