/* Pairs of rows with vectors, once for every register width; included like simd_body.h.
 *
 * Rows of b are taken in panels of two registers, turned so that a register holds one column of
 * them. Four rows of a and a panel make eight registers of sums, enough of them to hide the latency
 * of a fused addition. Every sum runs over the columns in their order. */

enum { PANEL = 2 * WD, ROWS = 4, DEPTH = 256 };

/* panel[k][j] = b[j][k]; the columns past `width` are zero. */
static void turn(int64_t d, int64_t depth, int64_t width, const double *b, double *panel)
{
    if (width < PANEL)
        memset(panel, 0, (size_t)(depth * PANEL) * sizeof *panel);
    for (int64_t j = 0; j < width; j++)
        for (int64_t k = 0; k < depth; k++)
            panel[k * PANEL + j] = b[j * d + k];
}

/* A stretch of columns: rows of a are d apart, of which `depth` meet the panel's. The sums go on
 * from what is in out unless this is the first one, and are multiplied by the factor after the last
 * one. */
typedef struct columns {
    int64_t d, depth;
    const double *panel;
    double factor;
} columns;

/* `rows` rows of a with one panel. */
static inline __attribute__((always_inline)) void
stretch(bool squares, int rows, bool first, columns c, const double *a, double *out, int64_t ld)
{
    vd factor = SET_D(c.factor);
    vd sum[ROWS][2];
    for (int r = 0; r < rows; r++)
        for (int h = 0; h < 2; h++)
            sum[r][h] = first ? SET_D(0) : LOAD_D(out + r * ld + h * WD);
    for (int64_t k = 0; k < c.depth; k++) {
        vd b0 = LOAD_D(c.panel + k * PANEL), b1 = LOAD_D(c.panel + k * PANEL + WD);
        for (int r = 0; r < rows; r++) {
            vd x = SET_D(a[r * c.d + k]);
            vd x0 = squares ? x - b0 : x, x1 = squares ? x - b1 : x;
            sum[r][0] = FMA_D(x0, squares ? x0 : b0, sum[r][0]);
            sum[r][1] = FMA_D(x1, squares ? x1 : b1, sum[r][1]);
        }
    }
    for (int r = 0; r < rows; r++)
        for (int h = 0; h < 2; h++)
            STORE_D(out + r * ld + h * WD, factor * sum[r][h]);
}

/* A panel that is not full, or few rows: through a block of its own. */
static inline __attribute__((always_inline)) void rows_of(bool squares, bool first, columns c,
                                                          int64_t n, const double *a, int64_t width,
                                                          double *out, int64_t ld)
{
    int64_t i = 0;
    if (width == PANEL) {
        for (; i + ROWS <= n; i += ROWS)
            stretch(squares, ROWS, first, c, a + i * c.d, out + i * ld, ld);
        for (; i < n; i++)
            stretch(squares, 1, first, c, a + i * c.d, out + i * ld, ld);
    }
    for (; i < n; i++) {
        double block[PANEL] = {0};
        if (!first)
            memcpy(block, out + i * ld, (size_t)width * sizeof *block);
        stretch(squares, 1, first, c, a + i * c.d, block, PANEL);
        memcpy(out + i * ld, block, (size_t)width * sizeof *block);
    }
}

#define PAIRS(name, is_squares)                                                                    \
    static void name(int64_t d, int64_t n, const double *a, int64_t m, const double *b,            \
                     double factor, double *out, int64_t ld)                                       \
    {                                                                                              \
        double panel[DEPTH * PANEL];                                                               \
        for (int64_t j = 0; j < m; j += PANEL) {                                                   \
            int64_t width = m - j < PANEL ? m - j : PANEL, k = 0;                                  \
            do {                                                                                   \
                int64_t depth = d - k < DEPTH ? d - k : DEPTH;                                     \
                columns c = {d, depth, panel, k + depth < d ? 1 : factor};                         \
                turn(d, depth, width, b + j * d + k, panel);                                       \
                if (k == 0)                                                                        \
                    rows_of(is_squares, true, c, n, a, width, out + j, ld);                        \
                else                                                                               \
                    rows_of(is_squares, false, c, n, a + k, width, out + j, ld);                   \
                k += depth;                                                                        \
            } while (k < d);                                                                       \
        }                                                                                          \
    }
PAIRS(dots, false)
PAIRS(squares, true)

/* e^-s is 0 from 746 on; the end of s keeps infinity times 0 away. A NaN stays one. */
#define ROOT(x) MIN_D(SET_D(1000), SQRT_D(x))

#define ARRAY(name, expression)                                                                    \
    static void name(int64_t n, const double *x, double *y)                                        \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + WD <= n; i += WD) {                                                             \
            vd s = ROOT(LOAD_D(x + i));                                                            \
            STORE_D(y + i, expression);                                                            \
        }                                                                                          \
        if (i < n) {                                                                               \
            double rest[WD];                                                                       \
            vd s = ROOT(load_some_d(x + i, (int)(n - i)));                                         \
            STORE_D(rest, expression);                                                             \
            memcpy(y + i, rest, (size_t)(n - i) * sizeof *y);                                      \
        }                                                                                          \
    }
ARRAY(matern32, (1 + s) * VEXP(-s))
ARRAY(matern52, FMA_D(s *s, SET_D(1. / 3), 1 + s) * VEXP(-s))
ARRAY(decay, VEXP(-s))

const fini_pairs TABLE_OF(pairs) = {dots, squares, matern32, matern52, decay};
