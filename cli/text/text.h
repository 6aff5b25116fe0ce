/* What the commands on encoders of text share: embed, and probe of a folder. */
#ifndef CLI_TEXT_H
#define CLI_TEXT_H

#include "cli.h"

/* Texts from a CSV file, a row each. */
typedef struct text_file {
    fin_table *table;
    int column; /* of the texts */
    int64_t n;
    const char **texts; /* (n) "" where the cell is empty */
} text_file;
fin_status text_file_open(text_file *file, const char *path, const char *column, fin_error *err);
void text_file_close(text_file *file);
/* Pieces of all texts, and a note on those that were cut. */
fin_status text_file_cut(const text_file *file, const fin_text_encoder *encoder, int64_t longest,
                         fin_text_pieces **pieces, fin_error *err);
/* The number of a column that must be there. */
fin_status text_file_column(const text_file *file, const char *path, const char *name, int *column,
                            fin_error *err);

/* For records: {kind, layers, heads, width, hidden, longest, vocabulary}. */
json_t *text_shape(const fin_text_encoder *encoder);
#define TEXT_FORM(at)                                                                              \
    "encoder     {" at ".kind}, {" at ".layers#layer} of width {" at ".width}, {" at               \
    ".heads#head}, {" at ".hidden} units; {" at ".vocabulary} pieces\n"

/* finetti probe of a folder (text_probe.c). An exit code. */
bool text_is_folder(const char *path);
int text_probe(cli_args *args);

#endif
