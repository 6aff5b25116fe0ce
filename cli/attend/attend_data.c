/* From files to tokens and queries: which columns, which sequence, every number looked at once. */
#include "attend/attend.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void attend_note(attend_data *data, const char *format, ...)
{
    va_list list;
    if (data->notes == ATTEND_NOTES)
        return;
    va_start(list, format);
    vsnprintf(data->note[data->notes++], sizeof data->note[0], format, list);
    va_end(list);
}

const char *attend_key_name(const attend_data *data, int64_t j)
{
    return data->context.column[data->key.at[j]].name;
}

const char *attend_value_name(const attend_data *data, int64_t j)
{
    return data->context.column[data->value.at[j]].name;
}

static fin_status need(const void *block, double bytes, const char *what, fin_error *err)
{
    return block ? FIN_OK : cli_status_memory(err, bytes, what);
}

/* ---- cells ---------------------------------------------------------------------------------- */

fin_status attend_bad_cell(const attend_source *source, int column, int64_t row, fin_error *err)
{
    char line[48] = "";
    const attend_column *c = &source->column[column];
    if (source->table && source->label[0] != '-')
        snprintf(line, sizeof line, " (line %lld)", (long long)row + 2);
    return cli_status(err, FIN_ERR_FORMAT,
                      "%.150s, row %lld%s, column %.60s: %g; finite numbers are needed: leave the "
                      "row out or fill it in",
                      source->label, (long long)row + 1, line, c->name, attend_cell(c, row));
}

/* out: (rows->count, list->count). missing: numbers that are not finite become NaN and are fine. */
static fin_status gather(const attend_source *source, const attend_list *list,
                         const attend_rows *rows, bool missing, double **out, fin_error *err)
{
    double bytes = 8.0 * (double)rows->count * list->count;
    *out = bytes < 1e18 ? malloc((size_t)bytes + 8) : NULL;
    CLI_TRY(need(*out, bytes, "the numbers of the table", err));
    for (int j = 0; j < list->count; j++) {
        const attend_column *column = &source->column[list->at[j]];
        if (column->words)
            return cli_status(err, FIN_ERR_FORMAT,
                              "%.150s: column %.60s has text, such as '%.40s'; keys and values are "
                              "numbers: recode it",
                              source->label, column->name, attend_word(column, 0));
        for (int64_t i = 0; i < rows->count; i++) {
            double x = attend_cell(column, rows->row[i]);
            if (!isfinite(x) && !missing)
                return attend_bad_cell(source, list->at[j], rows->row[i], err);
            (*out)[i * list->count + j] = isfinite(x) ? x : NAN;
        }
    }
    return FIN_OK;
}

/* How many rows the columns of these lists have: all as many. */
static fin_status count_rows(const attend_source *source, const attend_list *const *lists,
                             int64_t *rows, fin_error *err)
{
    const attend_column *first = NULL;
    for (; *lists; lists++)
        for (int j = 0; j < (*lists)->count; j++) {
            const attend_column *column = &source->column[(*lists)->at[j]];
            if (first && column->rows != first->rows)
                return cli_status(err, FIN_ERR_FORMAT,
                                  "%.150s: %.60s has %lld rows and %.60s has %lld", source->label,
                                  first->name, (long long)first->rows, column->name,
                                  (long long)column->rows);
            first = first ? first : column;
        }
    *rows = first ? first->rows : 0;
    return FIN_OK;
}

/* ---- tokens --------------------------------------------------------------------------------- */

static fin_status read_lists(attend_data *data, const cli_args *args, fin_error *err)
{
    const char *key = cli_get(args, "key"), *value = cli_get(args, "value"),
               *sequence = cli_get(args, "sequence");
    const attend_list *const others[] = {&data->value, &data->sequence, NULL};
    const attend_source *context = &data->context;
    CLI_TRY(attend_list_read(context, "--value", value, NULL, &data->value, err));
    if (sequence) {
        CLI_TRY(attend_list_read(context, "--sequence", sequence, others, &data->sequence, err));
        if (data->sequence.count != 1)
            return cli_status(err, FIN_ERR_ARGUMENT, "--sequence '%.60s': one column is needed",
                              sequence);
    }
    CLI_TRY(attend_list_read(context, "--key", key, others, &data->key, err));
    data->dk = data->key.count;
    data->dv = data->value.count;
    return FIN_OK;
}

static fin_status read_context(attend_data *data, const cli_args *args, int64_t *rows,
                               fin_error *err)
{
    CLI_TRY(attend_source_open(&data->context, args->operand[0], err));
    CLI_TRY(read_lists(data, args, err));
    const attend_list *const all[] = {&data->key, &data->value, &data->sequence, NULL};
    CLI_TRY(count_rows(&data->context, all, rows, err));
    if (*rows == 0)
        return cli_status(err, FIN_ERR_FORMAT, "%.200s has no rows; at least one token is needed",
                          data->context.label);
    data->sequences = data->sequence.count ? 0 : 1;
    if (data->sequence.count)
        CLI_TRY(attend_add_labels(data, &data->context, &data->sequence, *rows, err));
    return FIN_OK;
}

/* ---- queries -------------------------------------------------------------------------------- */

static fin_status ask_columns(attend_data *data, const char *text, fin_error *err)
{
    fin_error cause = {FIN_OK, ""};
    data->asked = &data->context;
    if (attend_list_read(&data->context, "--query", text, NULL, &data->asked_key, &cause))
        return cli_status(
            err, FIN_ERR_ARGUMENT,
            "--query '%.60s' is neither a file nor points such as %.40s=1 nor columns "
            "of %.120s; give one of them",
            text, attend_key_name(data, 0), data->context.label);
    if (data->asked_key.count != data->dk)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--query '%.60s' has %d columns and --key has %lld; as many are needed",
                          text, data->asked_key.count, (long long)data->dk);
    return FIN_OK;
}

static bool is_file(const char *text)
{
    return strcmp(text, "-") == 0 || access(text, F_OK) == 0 || cli_ends_with(text, ".csv") ||
           cli_ends_with(text, ".npz") || (strchr(text, '/') && !strchr(text, '='));
}

/* Points that do not say whose they are: an example does, with the first sequence there is. */
static fin_status check_points(const attend_data *data, const char *text, fin_error *err)
{
    if (!data->sequence.count)
        return FIN_OK;
    const attend_column *sequence = &data->context.column[data->sequence.at[0]];
    char word[64];
    int length = (int)fmin((double)strcspn(text, ";"), 60);
    if (attend_find(&data->other, sequence->name) >= 0)
        return FIN_OK;
    return cli_status(err, FIN_ERR_ARGUMENT,
                      "--query '%.60s' does not name the sequence column %.60s; every point says "
                      "which sequence it asks, such as '%.60s=%.40s,%.*s'",
                      text, sequence->name, sequence->name,
                      attend_cell_text(sequence, 0, word, sizeof word), length, text);
}

/* A word is fine as the sequence and nowhere else. */
static fin_status check_numbers(const attend_source *points, const attend_list *list,
                                fin_error *err)
{
    for (int j = 0; j < list->count; j++) {
        const attend_column *column = &points->column[list->at[j]];
        for (int64_t i = 0; i < column->words; i++) {
            const char *word = attend_word(column, i);
            char *end;
            strtod(word, &end);
            if (*end || end == word)
                return cli_status(err, FIN_ERR_ARGUMENT,
                                  "--query: %.60s=%.60s is not a number; keys and values are "
                                  "numbers, only a sequence may be a word",
                                  column->name, word);
        }
    }
    return FIN_OK;
}

/* The columns of the queries' own table. */
static fin_status ask_table(attend_data *data, fin_error *err)
{
    data->asked = &data->other;
    CLI_TRY(attend_list_match(&data->context, &data->key, &data->other,
                              "queries need the key columns", &data->asked_key, err));
    if (data->sequence.count)
        CLI_TRY(attend_list_match(&data->context, &data->sequence, &data->other,
                                  "queries need the sequence column", &data->asked_sequence, err));
    if (data->sequence.count)
        CLI_TRY(attend_translate(data, err));
    fin_error none;
    if (attend_list_match(&data->context, &data->value, &data->other, "", &data->asked_value,
                          &none))
        data->asked_value.count = 0;
    return FIN_OK;
}

static fin_status read_queries(attend_data *data, const char *text, int64_t *rows, fin_error *err)
{
    fin_status status;
    bool file = is_file(text), points = !file && strchr(text, '=');
    if (file)
        status = attend_source_open(&data->other, text, err);
    else if (points)
        status = attend_source_points(&data->other, text, err);
    else
        status = ask_columns(data, text, err);
    if (!status && points)
        status = check_points(data, text, err);
    if (!status && (file || points))
        status = ask_table(data, err);
    if (!status && points)
        status = check_numbers(&data->other, &data->asked_key, err);
    if (!status && points)
        status = check_numbers(&data->other, &data->asked_value, err);
    if (!status && data->asked == &data->context && data->sequence.count)
        status = attend_list_match(&data->context, &data->sequence, &data->context, "",
                                   &data->asked_sequence, err);
    if (status)
        return status;
    const attend_list *const all[] = {&data->asked_key, &data->asked_sequence, &data->asked_value,
                                      NULL};
    CLI_TRY(count_rows(data->asked, all, rows, err));
    if (*rows == 0)
        return cli_status(err, FIN_ERR_FORMAT, "%.200s has no rows; at least one query is needed",
                          data->asked->label);
    if (data->asked_sequence.count)
        CLI_TRY(attend_add_labels(data, data->asked, &data->asked_sequence, *rows, err));
    return FIN_OK;
}

static fin_status gather_queries(attend_data *data, fin_error *err)
{
    fin_status status =
        gather(data->asked, &data->asked_key, &data->queries, false, &data->query, err);
    if (!status && data->asked_value.count)
        status = gather(data->asked, &data->asked_value, &data->queries, true, &data->answers, err);
    int64_t missing = 0;
    for (int64_t i = 0; data->answers && !status && i < data->queries.count * data->dv; i++)
        missing += isnan(data->answers[i]);
    if (missing)
        attend_note(data, "%lld answers of the queries are missing and are not judged",
                    (long long)missing);
    return status;
}

/* ---- --scales ------------------------------------------------------------------------------- */

/* One number for every key column, which is divided by it later. */
static fin_status read_scales(attend_data *data, const char *text, fin_error *err)
{
    data->scales = calloc((size_t)data->dk + 1, sizeof *data->scales);
    if (!data->scales)
        return cli_status_memory(err, 8.0 * (double)data->dk, "the scales");
    int64_t count = 0;
    for (const char *p = text;; p++) {
        char *end;
        double x = strtod(p, &end);
        if (end == p || !(x > 0 && x <= 1e100) || (*end && *end != ','))
            return cli_status(err, FIN_ERR_ARGUMENT,
                              "--scales '%.60s': numbers above 0 are needed, such as 0.5,2", text);
        if (count < data->dk)
            data->scales[count] = x;
        count++;
        if (!*(p = end))
            break;
    }
    if (count != data->dk)
        return cli_status(err, FIN_ERR_ARGUMENT,
                          "--scales has %lld numbers and --key has %lld columns; one for each is "
                          "needed",
                          (long long)count, (long long)data->dk);
    return FIN_OK;
}

static void divide(attend_data *data)
{
    for (int64_t j = 0; j < data->dk; j++) {
        for (int64_t i = 0; i < data->tokens.count; i++)
            data->keys[i * data->dk + j] /= data->scales[j];
        for (int64_t i = 0; i < data->queries.count; i++)
            data->query[i * data->dk + j] /= data->scales[j];
    }
}

/* ---- all of it ------------------------------------------------------------------------------ */

static void find_longest(attend_data *data)
{
    for (int64_t s = 0; s < data->sequences; s++) {
        int64_t length = data->tokens.offsets[s + 1] - data->tokens.offsets[s];
        data->longest = length > data->longest ? length : data->longest;
    }
}

fin_status attend_data_open(attend_data *data, const cli_args *args, fin_error *err)
{
    int64_t rows = 0, asked = 0;
    const char *query = cli_get(args, "query"), *scales = cli_get(args, "scales");
    *data = (attend_data){.dk = 0};
    CLI_TRY(read_context(data, args, &rows, err));
    int64_t known = data->known = data->sequences;
    if (query)
        CLI_TRY(read_queries(data, query, &asked, err));
    CLI_TRY(attend_arrange(data, known, &data->context, &data->sequence, rows, &data->tokens, err));
    CLI_TRY(gather(&data->context, &data->key, &data->tokens, false, &data->keys, err));
    CLI_TRY(gather(&data->context, &data->value, &data->tokens, false, &data->values, err));
    if (query)
        CLI_TRY(attend_arrange(data, known, data->asked, &data->asked_sequence, asked,
                               &data->queries, err));
    if (query)
        CLI_TRY(gather_queries(data, err));
    if (scales)
        CLI_TRY(read_scales(data, scales, err));
    find_longest(data);
    if (data->sequences > known)
        attend_note(data,
                    "%lld sequence%s of the queries %s no tokens: the answer there is the prior's",
                    (long long)(data->sequences - known), data->sequences - known == 1 ? "" : "s",
                    data->sequences - known == 1 ? "has" : "have");
    CLI_TRY(attend_standardize(data, args, err));
    if (scales)
        divide(data);
    return FIN_OK;
}

void attend_data_close(attend_data *data)
{
    attend_list *const lists[] = {&data->key,       &data->value,       &data->sequence,
                                  &data->asked_key, &data->asked_value, &data->asked_sequence};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        free(lists[i]->at);
    void *const blocks[] = {data->label,           data->tokens.row, data->tokens.offsets,
                            data->queries.row,     data->keys,       data->values,
                            data->queries.offsets, data->query,      data->answers,
                            data->scales,          data->translate};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        free(blocks[i]);
    attend_source_close(&data->context);
    attend_source_close(&data->other);
}
