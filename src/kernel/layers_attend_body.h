/* Softmax attention of a head with vectors, once for every register width. Included after
 * layers_math.h; fold_most, the largest lane of a register, is given.
 *
 * Heads are narrow (16 numbers, say) and sequences short, so that a library's product would spend
 * its time on packing. Here a few queries meet the keys, which stand transposed and scaled (lanes =
 * keys), and everything that belongs to them is done while it is in the first cache: scores,
 * exponentials, values; on the way back the same again, and all four products. No array of weights
 * is ever whole, so that memory grows with L alone. */

/* Rows of a tile: with two registers of columns, as many sums as there is room for. */
enum { TILE = WF == 16 ? 12 : 6 };

/* One tile: c (R, columns) = or += sum_k a(r, k) b(k, columns), the sum scaled by scale[2 r] (may
 * be NULL). Columns: C registers, or the first `some` lanes of one. a(r, k) is a[r lda + k], or,
 * turned, a[k lda + r]. Every number is one sum in the order of k, wherever it stands in a tile. */
INLINE void tile(int R, int C, int64_t some, bool turned, int64_t K, const float *a, int64_t lda,
                 const float *b, int64_t ldb, const float *scale, bool add, float *c, int64_t ldc)
{
    vf sum[TILE][2];
    UNROLL
    for (int r = 0; r < R; r++)
        sum[r][0] = sum[r][1] = SET_F(0.0f);
    for (int64_t k = 0; k < K; k++) {
        vf first = some ? load_some_f(b + k * ldb, (int)some) : LOAD_F(b + k * ldb);
        vf second = C == 2 ? LOAD_F(b + k * ldb + WF) : first;
        UNROLL
        for (int r = 0; r < R; r++) {
            vf x = SET_F(turned ? a[k * lda + r] : a[r * lda + k]);
            sum[r][0] = FMA_F(x, first, sum[r][0]);
            if (C == 2)
                sum[r][1] = FMA_F(x, second, sum[r][1]);
        }
    }
    UNROLL
    for (int r = 0; r < R; r++)
        for (int h = 0; h < C; h++) {
            float *to = c + r * ldc + h * WF;
            vf x = scale ? sum[r][h] * scale[2 * r] : sum[r][h];
            if (some)
                store_some_f(to, add ? load_some_f(to, (int)some) + x : x, some);
            else
                STORE_F(to, add ? LOAD_F(to) + x : x);
        }
}

/* All rows of C registers of columns. */
INLINE void strip(int C, int64_t some, bool turned, int64_t rows, int64_t K, const float *a,
                  int64_t lda, const float *b, int64_t ldb, const float *scale, bool add, float *c,
                  int64_t ldc)
{
    const int64_t next = turned ? 1 : lda; /* row of a */
    int64_t r = 0;
#define ROWS(R)                                                                                    \
    for (; r + (R) <= rows; r += (R))                                                              \
    tile(R, C, some, turned, K, a + r * next, lda, b, ldb, scale ? scale + 2 * r : NULL, add,      \
         c + r * ldc, ldc)
    ROWS(TILE);
    ROWS(4);
    ROWS(2);
    ROWS(1);
#undef ROWS
}

/* c (rows, columns) = or += a b. */
INLINE void product(bool turned, int64_t rows, int64_t columns, int64_t K, const float *a,
                    int64_t lda, const float *b, int64_t ldb, const float *scale, bool add,
                    float *c, int64_t ldc)
{
    int64_t j = 0;
    for (; j + 2 * WF <= columns; j += 2 * WF)
        strip(2, 0, turned, rows, K, a, lda, b + j, ldb, scale, add, c + j, ldc);
    for (; j + WF <= columns; j += WF)
        strip(1, 0, turned, rows, K, a, lda, b + j, ldb, scale, add, c + j, ldc);
    if (j < columns)
        strip(1, columns - j, turned, rows, K, a, lda, b + j, ldb, scale, add, c + j, ldc);
}

/* Some queries and all keys: in whole registers, and rows of them never a large power of two apart,
 * where caches have few places. */
typedef struct block {
    int64_t rows, L, d, wide, stride;
} block;

INLINE block block_of(const fini_head_f32 *h)
{
    int64_t wide = (h->L + WF - 1) / WF * WF;
    return (block){0, h->L, h->d, wide, wide + WF};
}

/* Once each, and not wherever they are called. */
static __attribute__((noinline)) void scores(block b, const float *a, int64_t lda,
                                             const float *packed, float *c)
{
    product(false, b.rows, b.wide, b.d, a, lda, packed, b.stride, NULL, false, c, b.stride);
}

static __attribute__((noinline)) void mix(block b, const float *p, const float *v, int64_t ld,
                                          const float *scale, float *c, int64_t ldc)
{
    product(false, b.rows, b.d, b.L, p, b.stride, v, ld, scale, false, c, ldc);
}

static __attribute__((noinline)) void spread(block b, const float *p, const float *x, int64_t ldx,
                                             bool add, float *c, int64_t ldc)
{
    if (add)
        product(true, b.L, b.d, b.rows, p, b.stride, x, ldx, NULL, true, c, ldc);
    else
        product(true, b.L, b.d, b.rows, p, b.stride, x, ldx, NULL, false, c, ldc);
}

/* to (d, stride): transposed x (L, d) times `times`; columns L .. wide - 1 are 0. */
static void pack(block b, int64_t ld, const float *x, float times, float *to)
{
    const int64_t L = b.L, d = b.d, stride = b.stride;
    int64_t l = 0;
    for (; l + 8 <= L; l += 8) {
        int64_t j = 0;
        for (; j + 8 <= d; j += 8)
            transpose_8(x + l * ld + j, ld, times, to + j * stride + l, stride);
        for (; j < d; j++)
            for (int64_t i = l; i < l + 8; i++)
                to[j * stride + i] = x[i * ld + j] * times;
    }
    for (int64_t j = 0; j < d; j++)
        for (int64_t i = l; i < b.wide; i++)
            to[j * stride + i] = i < L ? x[i * ld + j] * times : 0;
}

/* s <- exp(s - most), with kept = most, 1 / sum. */
INLINE void soften(int64_t L, float *s, float *kept)
{
    const int64_t full = L / WF * WF;
    const vi mask = first_lanes(L - full);
    vf most = SET_F(-INFINITY), sum = SET_F(0.0f);
    for (int64_t l = 0; l < full; l += WF)
        most = MAX_F(most, LOAD_F(s + l));
    if (full < L)
        most = MAX_F(most, BLEND_F(SET_F(-INFINITY), LOAD_F(s + full), mask));
    kept[0] = fold_most(most);
    most = SET_F(kept[0]);
    for (int64_t l = 0; l < full; l += WF) {
        vf p = exp_f(LOAD_F(s + l) - most);
        sum += p;
        STORE_F(s + l, p);
    }
    if (full < L) {
        vf p = (vf)((vi)exp_f(LOAD_F(s + full) - most) & mask);
        sum += p;
        STORE_F(s + full, p);
    }
    kept[1] = 1.0f / fold_f(sum, SET_F(0.0f));
}

static void attend(const fini_head_f32 *h)
{
    const int64_t m = h->m, ld = h->ld, ldo = h->ldo;
    block b = block_of(h);
    float *keys = h->scratch, *p = keys + b.d * b.stride;
    pack(b, ld, h->k, h->times, keys);
    for (int64_t i = 0; i < m; i += FINI_ATTEND_ROWS) {
        float *kept = h->kept + 2 * i;
        b.rows = m - i < FINI_ATTEND_ROWS ? m - i : FINI_ATTEND_ROWS;
        scores(b, h->q + i * ld, ld, keys, p);
        for (int64_t r = 0; r < b.rows; r++)
            if (b.L)
                soften(b.L, p + r * b.stride, kept + 2 * r);
            else
                kept[2 * r] = kept[2 * r + 1] = 0;
        mix(b, p, h->v, ld, kept + 1, h->out + i * ldo, ldo);
    }
}

/* A row of scores and of dp becomes weights and ds. */
INLINE void harden(int64_t L, const float *kept, float mean, float times, float *s, float *dp)
{
    const vf most = SET_F(kept[0]), share = SET_F(kept[1]), middle = SET_F(mean);
    for (int64_t l = 0; l < L; l += WF) {
        vf p = exp_f(LOAD_F(s + l) - most) * share;
        STORE_F(s + l, p);
        STORE_F(dp + l, p * times * (LOAD_F(dp + l) - middle));
    }
}

INLINE float dot(int64_t d, const float *a, const float *b)
{
    vf sum = SET_F(0.0f);
    int64_t j = 0;
    for (; j + WF <= d; j += WF)
        sum = FMA_F(LOAD_F(a + j), LOAD_F(b + j), sum);
    if (j < d)
        sum = FMA_F(load_some_f(a + j, (int)(d - j)), load_some_f(b + j, (int)(d - j)), sum);
    return fold_f(sum, SET_F(0.0f));
}

static void attend_back(const fini_head_f32 *h, const float *dout, float *dq, float *dk, float *dv)
{
    const int64_t m = h->m, ld = h->ld, ldo = h->ldo;
    block b = block_of(h);
    float *keys = h->scratch, *values = keys + b.d * b.stride, *p = values + b.d * b.stride;
    float *ds = p + FINI_ATTEND_ROWS * b.stride;
    pack(b, ld, h->k, h->times, keys);
    pack(b, ld, h->v, 1.0f, values);
    for (int64_t i = 0; i == 0 || i < m; i += FINI_ATTEND_ROWS) { /* without queries: zeros */
        const float *q = h->q + i * ld, *out = h->out + i * ldo, *dy = dout + i * ldo;
        b.rows = m - i < FINI_ATTEND_ROWS ? m - i : FINI_ATTEND_ROWS;
        scores(b, q, ld, keys, p);
        scores(b, dy, ldo, values, ds);
        for (int64_t r = 0; r < b.rows; r++)
            harden(b.L, h->kept + 2 * (i + r), dot(b.d, dy + r * ldo, out + r * ldo), h->times,
                   p + r * b.stride, ds + r * b.stride);
        mix(b, ds, h->k, ld, NULL, dq + i * ld, ld);
        spread(b, p, dy, ldo, i > 0, dv, ld);
        spread(b, ds, q, ld, i > 0, dk, ld);
    }
}

/* Not in a hurry, but with the very scores of attend: one sum in the order of the columns. */
static void weights(const fini_head_f32 *h, float *p)
{
    const float *q = h->q, *kept = h->kept;
    for (int64_t i = 0; i < h->m; i++, q += h->ld, kept += 2, p += h->L)
        for (int64_t l = 0; l < h->L; l++) {
            float s = 0;
            for (int64_t j = 0; j < h->d; j++)
                s = fmaf(q[j], h->k[l * h->ld + j] * h->times, s);
            vf w = exp_f(SET_F(s - kept[0])) * SET_F(kept[1]);
            p[l] = w[0];
        }
}
