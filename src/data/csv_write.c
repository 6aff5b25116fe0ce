/* A table to CSV text, row by row, on top of the all-or-nothing file. */
#include "data/data.h"

#include <locale.h>
#include <string.h>

struct fin_csv {
    fini_output *output;
    locale_t locale; /* "C": the host program's may write a decimal comma; 0 if there is none */
    int count;
};

static fin_status write_name(fini_output *output, const char *name, fin_error *err)
{
    size_t length = strlen(name);
    bool blank = length == 0 || name[0] == ' ' || name[0] == '\t' || name[length - 1] == ' ' ||
                 name[length - 1] == '\t';
    if (!blank && !strpbrk(name, ",\"\r\n"))
        return fini_output_write(output, name, length, err);
    fini_output_write(output, "\"", 1, NULL); /* a failure is remembered by the output */
    for (const char *c = name; *c; c++)
        fini_output_write(output, *c == '"' ? "\"\"" : c, *c == '"' ? 2 : 1, NULL);
    return fini_output_write(output, "\"", 1, err);
}

static fin_status write_header(fini_output *output, const char *const *names, int count,
                               fin_error *err)
{
    for (int j = 0; j < count; j++) {
        FINI_TRY(write_name(output, names[j], err));
        FINI_TRY(fini_output_write(output, j + 1 < count ? "," : "\n", 1, err));
    }
    return FIN_OK;
}

fin_status fin_csv_open(const char *path, const char *const *names, int count, fin_csv **out,
                        fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, path, names);
    if (count < 1 || count > FIN_TABLE_COLUMNS_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT, "a CSV file with %d columns; it must have 1 to %d",
                         count, FIN_TABLE_COLUMNS_MAX);
    for (int j = 0; j < count; j++)
        if (!names[j] || !names[j][0])
            return fini_fail(err, FIN_ERR_ARGUMENT, "column %d of a CSV file has no name", j + 1);
    FINI_MAKE(err, "a CSV file", fin_csv, csv);
    *csv = (fin_csv){.count = count, .locale = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0)};
    fin_status status = fini_output_open(path, false, &csv->output, err);
    if (!status)
        status = write_header(csv->output, names, count, err);
    FINI_HAND_OVER(out, csv, status, fin_csv_abort);
}

static fin_status write_number(fini_output *output, double number, fin_error *err)
{
    char text[FINI_NUMBER];
    return fini_output_write(output, text, fini_format(number, text), err);
}

fin_status fin_csv_cells(fin_csv *csv, const char *const *texts, const double *values,
                         fin_error *err)
{
    FINI_NEED(err, csv);
    fin_status status = FIN_OK;
    locale_t before = csv->locale ? uselocale(csv->locale) : (locale_t)0;
    for (int j = 0; j < csv->count && !status; j++) {
        status = texts && texts[j] ? write_name(csv->output, texts[j], err)
                                   : write_number(csv->output, values[j], err);
        if (!status)
            status = fini_output_write(csv->output, j + 1 < csv->count ? "," : "\n", 1, err);
    }
    if (csv->locale)
        uselocale(before);
    return status;
}

fin_status fin_csv_row(fin_csv *csv, const double *values, fin_error *err)
{
    FINI_NEED(err, csv, values);
    return fin_csv_cells(csv, NULL, values, err);
}

static void end(fin_csv *csv)
{
    if (csv->locale)
        freelocale(csv->locale);
    fini_free(csv);
}

fin_status fin_csv_commit(fin_csv *csv, fin_error *err)
{
    FINI_NEED(err, csv);
    fin_status status = fini_output_commit(csv->output, err);
    end(csv);
    return status;
}

void fin_csv_abort(fin_csv *csv)
{
    if (!csv)
        return;
    fini_output_abort(csv->output);
    end(csv);
}
