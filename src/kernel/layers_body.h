/* Norms, activations and sums of rows with vectors, once for every register width; see layers.h for
 * what they do and layers_plain.h for the formulas. Included after layers_math.h.
 *
 * A row is walked in registers, the last one with as many lanes as are left. Sums over rows take
 * four rows at a time, so that what they are added to is read and written once in four rows. */

/* A register of a row: whole, or its first n lanes and zeros. */
INLINE vf take(const float *x, int64_t n)
{
    return n >= WF ? LOAD_F(x) : load_some_f(x, (int)n);
}

INLINE void give(float *to, vf x, int64_t n)
{
    if (n >= WF)
        STORE_F(to, x);
    else
        store_some_f(to, x, n);
}

INLINE float sum_f(vf x)
{
    return fold_f(x, SET_F(0.0f));
}

/* Two sweeps, so that nothing cancels where the mean is large. */
static void norm(const fini_norm_f32 *n, const float *bias, float *y)
{
    const int64_t rows = n->rows, w = n->w;
    const float share = 1.0f / (float)w, *x = n->x, *gain = n->gain;
    float *mean = n->mean, *inverse = n->inverse;
    for (int64_t r = 0; r < rows; r++, x += w, y += w) {
        vf sum = SET_F(0.0f), square = sum;
        for (int64_t j = 0; j < w; j += WF)
            sum += take(x + j, w - j);
        mean[r] = sum_f(sum) * share;
        vf middle = SET_F(mean[r]);
        int64_t j = 0;
        for (; j + WF <= w; j += WF) {
            vf t = LOAD_F(x + j) - middle;
            square = FMA_F(t, t, square);
        }
        if (j < w) {
            vf t = (vf)((vi)(take(x + j, w - j) - middle) & first_lanes(w - j));
            square = FMA_F(t, t, square);
        }
        inverse[r] = 1.0f / sqrtf(sum_f(square) * share + n->eps);
        vf times = SET_F(inverse[r]);
        for (j = 0; j < w; j += WF) {
            vf h = (take(x + j, w - j) - middle) * times;
            give(y + j, FMA_F(h, take(gain + j, w - j), take(bias + j, w - j)), w - j);
        }
    }
}

/* R rows at a time, from row `from` on. */
INLINE void norm_back_rows(int R, int64_t from, const fini_norm_f32 *n, const float *dy, float *dx,
                           float *dgain, float *dbias)
{
    const int64_t w = n->w;
    const float share = 1.0f / (float)w, *x = n->x + from * w, *gain = n->gain;
    const float *mean = n->mean + from, *inverse = n->inverse + from;
    dy += from * w;
    dx += from * w;
    vf plain[4], along[4];
    for (int r = 0; r < R; r++)
        plain[r] = along[r] = SET_F(0.0f);
    for (int64_t j = 0; j < w; j += WF) {
        vf to_gain = take(dgain + j, w - j), to_bias = take(dbias + j, w - j);
        vf g = take(gain + j, w - j);
        for (int r = 0; r < R; r++) {
            vf h = (take(x + r * w + j, w - j) - SET_F(mean[r])) * SET_F(inverse[r]);
            vf d = take(dy + r * w + j, w - j), gd = g * d;
            plain[r] += gd;
            along[r] = FMA_F(gd, h, along[r]);
            to_gain = FMA_F(h, d, to_gain);
            to_bias += d;
        }
        give(dgain + j, to_gain, w - j);
        give(dbias + j, to_bias, w - j);
    }
    for (int r = 0; r < R; r++) {
        vf a = SET_F(sum_f(plain[r]) * share), b = SET_F(sum_f(along[r]) * share);
        vf middle = SET_F(mean[r]), times = SET_F(inverse[r]);
        for (int64_t j = 0; j < w; j += WF) {
            int64_t at = r * w + j;
            vf h = (take(x + at, w - j) - middle) * times;
            vf g = FMA_F(take(gain + j, w - j), take(dy + at, w - j), -a);
            give(dx + at, FMA_F(times, FMA_F(-h, b, g), take(dx + at, w - j)), w - j);
        }
    }
}

static void norm_back(const fini_norm_f32 *n, const float *dy, float *dx, float *dgain,
                      float *dbias)
{
    int64_t r = 0;
    for (; r + 4 <= n->rows; r += 4)
        norm_back_rows(4, r, n, dy, dx, dgain, dbias);
    for (; r < n->rows; r++)
        norm_back_rows(1, r, n, dy, dx, dgain, dbias);
}

static void gelu(int64_t rows, int64_t w, const float *bias, float *x, float *y)
{
    for (int64_t r = 0; r < rows; r++, x += w, y += w)
        for (int64_t j = 0; j < w; j += WF) {
            vf value, slope;
            gelu_f(take(x + j, w - j) + take(bias + j, w - j), &value, &slope);
            give(y + j, value, w - j);
            give(x + j, slope, w - j);
        }
}

static void relu(int64_t rows, int64_t w, const float *bias, float *x, float *y)
{
    const vf zero = SET_F(0.0f);
    for (int64_t r = 0; r < rows; r++, x += w, y += w)
        for (int64_t j = 0; j < w; j += WF) {
            vf t = take(x + j, w - j) + take(bias + j, w - j);
            vf slope = (vf)((vi)SET_F(1.0f) & (vi)(t > zero));
            give(y + j, MAX_F(zero, t), w - j); /* NaN is the second one */
            give(x + j, (vf)((vi)slope | ((vi)t & (vi)(t != t))), w - j);
        }
}

/* R rows of act_back (x given) or of sum_rows. */
INLINE void add_rows(int R, int64_t w, const float *x, float *dy, const float *rows, float *sum)
{
    for (int64_t j = 0; j < w; j += WF) {
        vf to = take(sum + j, w - j);
        for (int r = 0; r < R; r++) {
            vf d = take(rows + r * w + j, w - j);
            if (x) {
                d *= take(x + r * w + j, w - j);
                give(dy + r * w + j, d, w - j);
            }
            to += d;
        }
        give(sum + j, to, w - j);
    }
}

static void act_back(int64_t rows, int64_t w, const float *x, float *dy, float *dbias)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4)
        add_rows(4, w, x + r * w, dy + r * w, dy + r * w, dbias);
    for (; r < rows; r++)
        add_rows(1, w, x + r * w, dy + r * w, dy + r * w, dbias);
}

static void sum_rows(int64_t rows, int64_t w, const float *x, float *sum)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4)
        add_rows(4, w, NULL, NULL, x + r * w, sum);
    for (; r < rows; r++)
        add_rows(1, w, NULL, NULL, x + r * w, sum);
}

static void add_bias(int64_t rows, int64_t w, const float *bias, const float *x, float *y)
{
    for (int64_t r = 0; r < rows; r++, x += w, y += w)
        for (int64_t j = 0; j < w; j += WF)
            give(y + j, take(x + j, w - j) + take(bias + j, w - j), w - j);
}
