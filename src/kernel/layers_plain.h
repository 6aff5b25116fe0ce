/* The parts of a layer in plain C, once for float and once for double: REAL, NAME and the functions
 * of libm are given, and undefined at the end. Sums of a row are taken in double. */

/* Layer norm (Ba, Kiros and Hinton 2016), with the biased variance, as everybody takes it. */
static void NAME(norm)(const NAME(fini_norm) * n, const REAL *bias, REAL *y)
{
    const int64_t w = n->w;
    const REAL *x = n->x, *gain = n->gain;
    REAL *mean = n->mean, *inverse = n->inverse;
    for (int64_t r = 0; r < n->rows; r++, x += w, y += w) {
        double sum = 0, square = 0;
        for (int64_t j = 0; j < w; j++)
            sum += (double)x[j];
        double middle = sum / (double)w;
        for (int64_t j = 0; j < w; j++)
            square += ((double)x[j] - middle) * ((double)x[j] - middle);
        mean[r] = (REAL)middle;
        inverse[r] = (REAL)(1 / sqrt(square / (double)w + (double)n->eps));
        for (int64_t j = 0; j < w; j++)
            y[j] = (x[j] - mean[r]) * inverse[r] * gain[j] + bias[j];
    }
}

/* With h = (x - mean) inverse and g = gain dy:
 *
 *     dx += inverse (g - mean(g) - h mean(g h))        dgain += h dy        dbias += dy */
static void NAME(norm_back)(const NAME(fini_norm) * n, const REAL *dy, REAL *dx, REAL *dgain,
                            REAL *dbias)
{
    const int64_t w = n->w;
    const REAL *x = n->x, *gain = n->gain, *mean = n->mean, *inverse = n->inverse;
    for (int64_t r = 0; r < n->rows; r++, x += w, dy += w, dx += w) {
        double plain = 0, along = 0;
        for (int64_t j = 0; j < w; j++) {
            REAL h = (x[j] - mean[r]) * inverse[r], g = gain[j] * dy[j];
            plain += (double)g;
            along += (double)g * (double)h;
            dgain[j] += h * dy[j];
            dbias[j] += dy[j];
        }
        REAL a = (REAL)(plain / (double)w), b = (REAL)(along / (double)w);
        for (int64_t j = 0; j < w; j++) {
            REAL h = (x[j] - mean[r]) * inverse[r];
            dx[j] += inverse[r] * (gain[j] * dy[j] - a - h * b);
        }
    }
}

/* t Phi(t) and its derivative Phi(t) + t phi(t) (Hendrycks and Gimpel 2016, the exact form). Phi by
 * erfc, so that it is exact where it is small. At infinity t phi(t) would not be a number. */
static void NAME(gelu)(int64_t rows, int64_t w, const REAL *bias, REAL *x, REAL *y)
{
    for (int64_t r = 0; r < rows; r++, x += w, y += w)
        for (int64_t j = 0; j < w; j++) {
            REAL t = x[j] + bias[j];
            REAL cut = t < -40 ? -40 : t > 40 ? 40 : t; /* NaN stays */
            REAL Phi = ERFC(-t * (REAL)0.70710678118654752440) / 2;
            REAL phi = EXP(-cut * cut / 2) * (REAL)0.39894228040143267794;
            y[j] = Phi == 0 ? 0 : t * Phi;
            x[j] = Phi + cut * phi;
        }
}

static void NAME(relu)(int64_t rows, int64_t w, const REAL *bias, REAL *x, REAL *y)
{
    for (int64_t r = 0; r < rows; r++, x += w, y += w)
        for (int64_t j = 0; j < w; j++) {
            REAL t = x[j] + bias[j];
            y[j] = t <= 0 ? 0 : t; /* NaN stays */
            x[j] = t <= 0 ? 0 : t > 0 ? 1 : t;
        }
}

static void NAME(act_back)(int64_t rows, int64_t w, const REAL *x, REAL *dy, REAL *dbias)
{
    for (int64_t r = 0; r < rows; r++, x += w, dy += w)
        for (int64_t j = 0; j < w; j++) {
            dy[j] *= x[j];
            dbias[j] += dy[j];
        }
}

static void NAME(add_bias)(int64_t rows, int64_t w, const REAL *bias, const REAL *x, REAL *y)
{
    for (int64_t r = 0; r < rows; r++, x += w, y += w)
        for (int64_t j = 0; j < w; j++)
            y[j] = x[j] + bias[j];
}

static void NAME(sum_rows)(int64_t rows, int64_t w, const REAL *x, REAL *sum)
{
    for (int64_t r = 0; r < rows; r++, x += w)
        for (int64_t j = 0; j < w; j++)
            sum[j] += x[j];
}

static REAL NAME(dot)(int64_t d, const REAL *a, const REAL *b)
{
    double sum = 0;
    for (int64_t j = 0; j < d; j++)
        sum += (double)a[j] * (double)b[j];
    return (REAL)sum;
}

/* The scores of query i. */
static void NAME(scores)(const NAME(fini_head) * h, int64_t i, REAL *s)
{
    for (int64_t l = 0; l < h->L; l++)
        s[l] = NAME(dot)(h->d, h->q + i * h->ld, h->k + l * h->ld) * h->times;
}

static void NAME(attend)(const NAME(fini_head) * h)
{
    const int64_t L = h->L;
    REAL *out = h->out, *kept = h->kept, *scratch = h->scratch;
    for (int64_t i = 0; i < h->m; i++, out += h->ldo, kept += 2) {
        REAL most = (REAL)-INFINITY;
        double sum = 0;
        NAME(scores)(h, i, scratch);
        for (int64_t l = 0; l < L; l++)
            most = scratch[l] > most ? scratch[l] : most;
        for (int64_t l = 0; l < L; l++)
            sum += (double)(scratch[l] = EXP(scratch[l] - most));
        kept[0] = L ? most : 0;
        kept[1] = L ? (REAL)(1 / sum) : 0;
        for (int64_t j = 0; j < h->d; j++) {
            double o = 0;
            for (int64_t l = 0; l < L; l++)
                o += (double)scratch[l] * (double)h->v[l * h->ld + j];
            out[j] = (REAL)(o * (double)kept[1]);
        }
    }
}

/* With p the weights and dp = dout v':
 *
 *     ds = times p (dp - sum_l p dp) = times p (dp - dout . out)
 *     dv = p' dout        dq = ds k        dk = ds' q */
static void NAME(attend_back)(const NAME(fini_head) * h, const REAL *dout, REAL *dq, REAL *dk,
                              REAL *dv)
{
    const int64_t L = h->L, d = h->d, ld = h->ld;
    const REAL *q = h->q, *k = h->k, *out = h->out, *kept = h->kept;
    for (int64_t l = 0; l < L; l++)
        for (int64_t j = 0; j < d; j++)
            dk[l * ld + j] = dv[l * ld + j] = 0;
    for (int64_t i = 0; i < h->m;
         i++, q += ld, dq += ld, out += h->ldo, dout += h->ldo, kept += 2) {
        REAL mean = NAME(dot)(d, dout, out);
        NAME(scores)(h, i, h->scratch);
        for (int64_t j = 0; j < d; j++)
            dq[j] = 0;
        for (int64_t l = 0; l < L; l++) {
            REAL p = EXP(h->scratch[l] - kept[0]) * kept[1];
            REAL ds = h->times * p * (NAME(dot)(d, dout, h->v + l * ld) - mean);
            for (int64_t j = 0; j < d; j++) {
                dq[j] += ds * k[l * ld + j];
                dk[l * ld + j] += ds * q[j];
                dv[l * ld + j] += p * dout[j];
            }
        }
    }
}

static void NAME(weights)(const NAME(fini_head) * h, REAL *p)
{
    for (int64_t i = 0; i < h->m; i++, p += h->L) {
        NAME(scores)(h, i, p);
        for (int64_t l = 0; l < h->L; l++)
            p[l] = EXP(p[l] - h->kept[2 * i]) * h->kept[2 * i + 1];
    }
}

#undef REAL
#undef NAME
#undef EXP
#undef ERFC
