/* Texts from a CSV file. */
#include "text/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

bool text_is_folder(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

fin_status text_file_column(const text_file *file, const char *path, const char *name, int *column,
                            fin_error *err)
{
    enum { NAMES = 256 };
    const char *names[NAMES];
    int count = fin_table_columns(file->table);
    *column = fin_table_column(file->table, name);
    if (*column >= 0)
        return FIN_OK;
    for (int j = 0; j < count && j < NAMES; j++)
        names[j] = fin_table_name(file->table, j);
    const char *near = fin_nearest_name(name, names, count < NAMES ? count : NAMES);
    return cli_status(err, FIN_ERR_ARGUMENT, "%.200s has no column '%.60s'%s", path, name,
                      cli_hint(near, ""));
}

fin_status text_file_open(text_file *file, const char *path, const char *column, fin_error *err)
{
    *file = (text_file){0};
    fin_status status = fin_table_read_texts(path, &file->table, err);
    if (!status)
        status = text_file_column(file, path, column, &file->column, err);
    if (!status && fin_table_texts(file->table, file->column) == 0)
        status = cli_status(err, FIN_ERR_ARGUMENT,
                            "%.200s: column '%.60s' has numbers; --text is a column of texts", path,
                            column);
    if (!status) {
        const double *values = fin_table_values(file->table, file->column);
        file->n = fin_table_rows(file->table);
        file->texts = malloc((size_t)file->n * sizeof *file->texts);
        if (!file->texts)
            status = cli_status_memory(err, 8.0 * (double)file->n, "the texts");
        for (int64_t i = 0; i < file->n && file->texts; i++)
            file->texts[i] = isnan(values[i]) ? ""
                                              : fin_table_text(file->table, file->column,
                                                               (int64_t)values[i] - 1);
    }
    if (status)
        text_file_close(file);
    return status;
}

void text_file_close(text_file *file)
{
    fin_table_destroy(file->table);
    free(file->texts);
    *file = (text_file){0};
}

fin_status text_file_cut(const text_file *file, const fin_text_encoder *encoder, int64_t longest,
                         fin_text_pieces **pieces, fin_error *err)
{
    CLI_TRY(fin_text_pieces_cut(pieces, encoder, file->n, file->texts, NULL, longest, err));
    const int64_t *left_out = fin_text_pieces_left_out(*pieces);
    int64_t cut = 0, gone = 0;
    for (int64_t i = 0; i < file->n; i++) {
        cut += left_out[i] > 0;
        gone += left_out[i];
    }
    if (cut)
        cli_note("%lld of %lld texts were cut to %lld pieces; %lld pieces are left out",
                 (long long)cut, (long long)file->n,
                 (long long)(longest ? longest : fin_text_encoder_shape(encoder)->longest),
                 (long long)gone);
    return FIN_OK;
}

json_t *text_shape(const fin_text_encoder *encoder)
{
    const fin_text_shape *s = fin_text_encoder_shape(encoder);
    return json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "kind", s->kind, "layers",
                     cli_int(s->layers), "heads", cli_int(s->heads), "width", cli_int(s->width),
                     "hidden", cli_int(s->hidden), "longest", cli_int(s->longest), "vocabulary",
                     cli_int(s->vocabulary));
}
