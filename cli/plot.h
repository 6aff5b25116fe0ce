/* plot: from a figure to a file in the format that its name asks for. */
#ifndef CLI_PLOT_H
#define CLI_PLOT_H

#include "study/study.h"

/* Whether the name says a format that can be written. Returns an exit code, after the message. */
int plot_check(const char *path);
/* Writes the file, completely or not at all. Returns an exit code, after the message. */
int plot_write(fin_store *store, const fin_figure *figure, const char *path);

#endif
