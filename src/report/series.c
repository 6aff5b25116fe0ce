/* What the kinds share that draw the series of single runs: training, portrait, quantiles. */
#include "report/figure.h"

#include "finetti/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

fini_matrix fini_spec_series(const fini_frame *frame, int64_t row, const char *name, int ndim,
                             fini_figure *figure)
{
    fini_matrix matrix = {NULL, 0, 0};
    fin_series series = {0};
    fin_error why = {FIN_OK, ""};
    fin_status status = fini_frame_series(frame, row, name, &series, &why);
    if (status == FIN_ERR_ARGUMENT)
        return matrix; /* it has none */
    if (status)
        fini_figure_fail(figure, status, "%s", why.message);
    else if (ndim ? series.ndim != ndim : series.ndim < 1 || series.ndim > 2)
        fini_figure_fail(figure, FIN_ERR_FORMAT, "the series '%.64s' has %d dimensions, not %s",
                         name, series.ndim,
                         ndim == 1 ? "1"
                         : ndim    ? "2"
                                   : "1 or 2");
    if (!figure->failed) {
        matrix.rows = series.ndim == 2 ? series.shape[0] : 1;
        matrix.columns = series.shape[series.ndim - 1];
        int64_t count = matrix.rows * matrix.columns;
        matrix.values = fini_figure_take(figure, count, sizeof(double));
        for (int64_t i = 0; i < count && matrix.values; i++)
            matrix.values[i] = fin_dtype_get(series.dtype, series.data, i);
    }
    fini_free((void *)series.data);
    return matrix;
}

static double rounded(double number)
{
    char text[40];
    if (number == 0 || !isfinite(number))
        return number;
    fini_print_double(number, 6, text, sizeof text);
    return fini_strtod(text, NULL);
}

void fini_matrix_thin(fini_matrix *m, int64_t most)
{
    int64_t stride = (m->columns + most - 1) / most, old = m->columns;
    if (!m->values || old == 0)
        return;
    int64_t kept = stride > 1 && old > 1 ? (old - 2) / stride + 2 : old;
    for (int64_t r = 0; r < m->rows; r++)
        for (int64_t i = 0; i < kept; i++)
            m->values[r * kept + i] =
                rounded(m->values[r * old + (i + 1 < kept ? i * stride : old - 1)]);
    m->columns = kept;
}

const char *fini_spec_row(const fini_frame *frame, const fini_block *block, int64_t row,
                          fini_figure *figure)
{
    char label[256] = "";
    size_t used = 0;
    for (int a = 0; a < block->axis_count; a++) {
        const fini_column *column = fini_frame_column(frame, block->axes[a].name);
        bool varies = false;
        for (int64_t i = 1; column && column->text && i < fini_frame_rows(frame) && !varies; i++)
            varies = strcmp(column->text[i], column->text[0]) != 0;
        if (!varies)
            continue;
        int more = snprintf(label + used, sizeof label - used, "%s%.40s = %.60s", used ? ", " : "",
                            fini_symbol(block->axes[a].name), column->text[row]);
        used += more > 0 ? (size_t)more : 0;
        if (used >= sizeof label - 1)
            break;
    }
    return fini_figure_copy(figure, label);
}

int64_t fini_spec_lines(fini_figure *figure, const fini_matrix *matrix)
{
    enum { LINES_MOST = 1000 };
    if (matrix->columns == 0)
        return 0;
    if (matrix->rows <= LINES_MOST)
        return matrix->rows;
    fini_figure_note(figure, "The first %d of %lld lines are shown.", (int)LINES_MOST,
                     (long long)matrix->rows);
    return LINES_MOST;
}

fini_curve *fini_spec_curve(fini_figure *figure, fini_panel *panel, const char *label,
                            fini_mark mark, const fini_matrix *x, const fini_matrix *y, int64_t row)
{
    int64_t count = x->columns < y->columns ? x->columns : y->columns;
    fini_curve *curve = fini_figure_curve(figure, panel, label, mark, count);
    if (!curve)
        return NULL;
    const double *from = x->values + (x->rows > row ? row * x->columns : 0);
    if (count > 0) {
        memcpy(curve->x, from, (size_t)count * sizeof(double));
        memcpy(curve->y, y->values + row * y->columns, (size_t)count * sizeof(double));
    }
    return curve;
}
