/* Linear maps with vectors, once for every register width: products of a few hundred rows with
 * small matrices, which stand in panels of PANEL columns that are read from beginning to end. A
 * library's product packs both factors at every call, which for rows of 64 numbers takes a quarter
 * of its time; here weights are packed once for a whole pass and rows are used as they are.
 *
 * Every number is one sum in the order of its terms, wherever its row stands. */

enum { PANEL = FINI_PANEL, PARTS = PANEL / WF, MAP_ROWS = WF == 16 ? 12 : 6, MAP_BLOCK = 64 };

/* c (R, PANEL) = sum_k a(r, k) b(k, PANEL) + bias + from, where these are not NULL. a(r, k) is
 * a[r lda + k], or, turned, a[k lda + r]; rows of b are PANEL apart. */
INLINE void map_tile(int R, bool turned, int64_t K, const float *a, int64_t lda, const float *b,
                     const float *bias, const float *from, float *c, int64_t ldc)
{
    vf sum[MAP_ROWS][PARTS];
    UNROLL
    for (int r = 0; r < R; r++)
        for (int h = 0; h < PARTS; h++)
            sum[r][h] = bias ? LOAD_F(bias + h * WF) : SET_F(0.0f);
    for (int64_t k = 0; k < K; k++) {
        vf line[PARTS];
        for (int h = 0; h < PARTS; h++)
            line[h] = LOAD_F(b + k * PANEL + h * WF);
        UNROLL
        for (int r = 0; r < R; r++) {
            vf x = SET_F(turned ? a[k * lda + r] : a[r * lda + k]);
            for (int h = 0; h < PARTS; h++)
                sum[r][h] = FMA_F(x, line[h], sum[r][h]);
        }
    }
    UNROLL
    for (int r = 0; r < R; r++)
        for (int h = 0; h < PARTS; h++) {
            int64_t at = r * ldc + h * WF;
            STORE_F(c + at, from ? sum[r][h] + LOAD_F(from + at) : sum[r][h]);
        }
}

INLINE void map_strip(bool turned, int64_t rows, int64_t K, const float *a, int64_t lda,
                      const float *b, const float *bias, const float *from, float *c, int64_t ldc)
{
    const int64_t next = turned ? 1 : lda; /* row of a */
    int64_t r = 0;
#define ROWS(R)                                                                                    \
    for (; r + (R) <= rows; r += (R))                                                              \
    map_tile(R, turned, K, a + r * next, lda, b, bias, from ? from + r * ldc : NULL, c + r * ldc,  \
             ldc)
    ROWS(MAP_ROWS);
    ROWS(4);
    ROWS(2);
    ROWS(1);
#undef ROWS
}

/* So many rows at a time stay in the first cache, beside a panel. */
static void map(int64_t rows, int64_t in, int64_t out, const float *x, const float *panels,
                const float *bias, const float *from, float *y)
{
    int64_t some = 24576 / (4 * in) / MAP_ROWS * MAP_ROWS;
    some = some < 2 * MAP_ROWS ? 2 * MAP_ROWS : some;
    for (int64_t i = 0; i < rows; i += some) {
        int64_t n = rows - i < some ? rows - i : some;
        for (int64_t j = 0; j < out; j += PANEL) {
            const float *b = panels + j * in, *plus = from ? from + i * out + j : NULL;
            float *c = y + i * out + j;
            if (bias && plus)
                map_strip(false, n, in, x + i * in, in, b, bias + j, plus, c, out);
            else if (bias)
                map_strip(false, n, in, x + i * in, in, b, bias + j, NULL, c, out);
            else
                map_strip(false, n, in, x + i * in, in, b, NULL, NULL, c, out);
        }
    }
}

/* A few rows at a time, whose x is put into a panel on the way. */
static void map_weight(int64_t rows, int64_t in, int64_t out, const float *x, const float *dy,
                       float *dW)
{
    float panel[MAP_BLOCK * PANEL];
    for (int64_t i = 0; i < rows; i += MAP_BLOCK) {
        int64_t n = rows - i < MAP_BLOCK ? rows - i : MAP_BLOCK;
        for (int64_t j = 0; j < in; j += PANEL) {
            for (int64_t k = 0; k < n; k++)
                for (int h = 0; h < PANEL; h += WF)
                    STORE_F(panel + k * PANEL + h, LOAD_F(x + (i + k) * in + j + h));
            map_strip(true, out, n, dy + i * out, out, panel, NULL, dW + j, dW + j, in);
        }
    }
}

const fini_layers_f32 TABLE_OF(layers) = {norm,        norm_back, gelu,     relu,
                                          act_back,    add_bias,  sum_rows, attend,
                                          attend_back, weights,   map,      map_weight};
