/* Reference kernels of queries and keys, and of small positive definite matrices; part of
 * kernel_ref.c. Written from the formulas in kernel.h, one number at a time, with libm's
 * exponential: the vector kernels have their own. */

#define PACK(name, real, panel)                                                                    \
    static void name(int64_t dk, int64_t keys, const real *k, const real *origin, double times,    \
                     real *panels)                                                                 \
    {                                                                                              \
        for (int64_t first = 0; first < keys; first += panel)                                      \
            for (int64_t c = 0; c < dk; c++)                                                       \
                for (int64_t j = first; j < first + panel; j++) {                                  \
                    double x = (double)k[(j < keys ? j : 0) * dk + c];                             \
                    *panels++ = (real)((x - (origin ? (double)origin[c] : 0)) * times);            \
                }                                                                                  \
    }
PACK(pack_f32, float, FINI_PANEL_F32)
PACK(pack_f64, double, FINI_PANEL_F64)

static bool is_distance(int kind)
{
    return kind >= FINI_SCORE_RBF;
}

/* The exponent of the exponential ones, u of the others. A sum that is not a number stays one. */
static double exponent_of(int kind, double u)
{
    return kind == FINI_SCORE_MATERN32   ? -sqrt(-6 * u)
           : kind == FINI_SCORE_MATERN52 ? -sqrt(-10 * u)
                                         : u;
}

static double power_of(double x, int64_t n)
{
    double result = 1;
    for (; n > 0; n--)
        result *= x;
    return result;
}

/* k exp(-top) from the exponent s. */
static double weight_of(const fini_score *score, double s, double top)
{
    switch (score->kind) {
    case FINI_SCORE_LINEAR:
        return s;
    case FINI_SCORE_POLYNOMIAL:
        return power_of(score->offset + s, score->degree);
    case FINI_SCORE_MATERN32:
        return (1 - s) * exp(s - top);
    case FINI_SCORE_MATERN52:
        return (1 - s + s * s / 3) * exp(s - top);
    default:
        return exp(s - top);
    }
}

/* Its derivative in u. t' = -3/t and -5/t: matern's (1 + t) exp(-t) has -t exp(-t) t' = 3
 * exp(-t), the other one -(t + t^2)/3 exp(-t) t' = 5/3 (1 + t) exp(-t). */
static double slope_of(const fini_score *score, double s, double top)
{
    switch (score->kind) {
    case FINI_SCORE_LINEAR:
        return 1;
    case FINI_SCORE_POLYNOMIAL:
        return (double)score->degree * power_of(score->offset + s, score->degree - 1);
    case FINI_SCORE_MATERN32:
        return 3 * exp(s - top);
    case FINI_SCORE_MATERN52:
        return 5.0 / 3 * (1 - s) * exp(s - top);
    default:
        return exp(s - top);
    }
}

#define ATTEND(name, real, panel, FMA_ONE, farthest)                                               \
    static void name(const fini_attend_tile *a)                                                    \
    {                                                                                              \
        real s[FINI_TILE], w[FINI_TILE];                                                           \
        for (int64_t i = 0; i < a->queries; i++) {                                                 \
            const real *q = (const real *)a->q + i * a->dk, *v = a->v;                             \
            real *out = (real *)a->out + i * a->dv;                                                \
            double top = a->top[i];                                                                \
            for (int64_t j = 0; j < a->keys; j++) {                                                \
                const real *k = (const real *)a->panels + j / panel * panel * a->dk + j % panel;   \
                real u = 0;                                                                        \
                for (int64_t c = 0; c < a->dk; c++) {                                              \
                    real x = k[c * panel], gap = q[c] - x;                                         \
                    u = is_distance(a->score.kind) ? FMA_ONE(gap, gap, u) : FMA_ONE(q[c], x, u);   \
                }                                                                                  \
                if (is_distance(a->score.kind))                                                    \
                    u = -(u > farthest ? farthest : u) / 2;                                        \
                s[j] = (real)exponent_of(a->score.kind, (double)u);                                \
                top = (double)s[j] > top ? (double)s[j] : top;                                     \
            }                                                                                      \
            double shrink = a->top[i] != top ? exp(a->top[i] - top) : 1, sum = 0;                  \
            for (int64_t j = 0; j < a->keys; j++)                                                  \
                sum += (double)(w[j] = (real)weight_of(&a->score, (double)s[j], top));             \
            for (int64_t c = 0; c < a->dv; c++) {                                                  \
                real more = 0;                                                                     \
                for (int64_t j = 0; j < a->keys; j++)                                              \
                    more = FMA_ONE(w[j], v[j * a->dv + c], more);                                  \
                out[c] = FMA_ONE(out[c], (real)shrink, more);                                      \
            }                                                                                      \
            a->sum[i] = a->sum[i] * shrink + sum;                                                  \
            a->top[i] = top;                                                                       \
        }                                                                                          \
    }
ATTEND(attend_f32, float, FINI_PANEL_F32, fmaf, FINI_FARTHEST_F32)
ATTEND(attend_f64, double, FINI_PANEL_F64, fma, FINI_FARTHEST_F64)

static void covariances(const fini_covariances *a)
{
    for (int64_t i = 0; i < a->queries; i++)
        for (int64_t j = 0; j < a->keys; j++) {
            const double *q = a->q + i * a->dk;
            const double *k = a->panels + j / FINI_PANEL_F64 * FINI_PANEL_F64 * a->dk;
            double u = 0;
            for (int64_t c = 0; c < a->dk; c++) {
                double x = k[c * FINI_PANEL_F64 + j % FINI_PANEL_F64], gap = q[c] - x;
                u = is_distance(a->score.kind) ? fma(gap, gap, u) : fma(q[c], x, u);
            }
            if (is_distance(a->score.kind))
                u = -(u > FINI_FARTHEST_F64 ? FINI_FARTHEST_F64 : u) / 2;
            double s = exponent_of(a->score.kind, u), top = a->top ? a->top[i] : 0,
                   times = a->sum ? a->times / a->sum[i] : a->times;
            a->value[i * a->ld + j] = times * weight_of(&a->score, s, top) + a->plus;
            if (a->slope)
                a->slope[i * a->ld + j] = times * slope_of(&a->score, s, top);
        }
}

/* ---- small positive definite matrices ------------------------------------------------------- */

static int64_t factor(int64_t n, double *A, int64_t ld)
{
    for (int64_t j = 0; j < n; j++) {
        for (int64_t i = j; i < n; i++)
            for (int64_t k = 0; k < j; k++)
                A[j * ld + i] -= A[k * ld + j] * A[k * ld + i];
        if (!(A[j * ld + j] > 0 && A[j * ld + j] <= DBL_MAX))
            return j;
        double inverse = 1 / (A[j * ld + j] = sqrt(A[j * ld + j]));
        for (int64_t i = j + 1; i < n; i++)
            A[j * ld + i] *= inverse;
    }
    return -1;
}

static void forward(int64_t n, const double *U, int64_t ld, int64_t columns, double *X, int64_t ldx)
{
    for (int64_t j = 0; j < n; j++)
        for (int64_t c = 0; c < columns; c++) {
            for (int64_t k = 0; k < j; k++)
                X[j * ldx + c] -= U[k * ld + j] * X[k * ldx + c];
            X[j * ldx + c] /= U[j * ld + j];
        }
}

static void back(int64_t n, const double *U, int64_t ld, int64_t columns, double *X, int64_t ldx)
{
    for (int64_t j = n - 1; j >= 0; j--)
        for (int64_t c = 0; c < columns; c++) {
            for (int64_t k = j + 1; k < n; k++)
                X[j * ldx + c] -= U[j * ld + k] * X[k * ldx + c];
            X[j * ldx + c] /= U[j * ld + j];
        }
}
