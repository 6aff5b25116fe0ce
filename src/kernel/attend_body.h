/* Queries and keys, once for float and once for double; part of simd_body.h.
 *
 * ROWS queries meet one panel of keys at a time: ROWS * PANEL sums stay in registers over all
 * coordinates, one load of the panel serving all queries. The scores of ROWS queries with a whole
 * tile fit the first-level cache; there they become weights, and then out += weights * values in
 * the same shape, ROWS queries by PANEL columns. So a matrix of weights never exists.
 *
 * Undefines what it was given at the end. */

#define REGISTERS (PANEL / WIDTH) /* that hold a panel's row: two, or one where they are wide */
#define ROWS (WIDTH == PANEL ? 12 : 6) /* 12 registers of sums, either way */
#define SMALL (sizeof(REAL) == sizeof(float))

/* exp(x), x <= 0, within two units in the last place; 0 where that is below the normal numbers.
 * Not a number stays one. */
static inline VEC NAME(exp_weight)(VEC x)
{
    const REAL least = SMALL ? (REAL)-87 : (REAL)-708;
    const REAL magic = SMALL ? (REAL)0x1.8p23 : (REAL)0x1.8p52; /* see descent_body.h */
    VEC a = MAX_R(SET_R(least), x);
    VEC near = FMA_R(a, SET_R((REAL)0x1.71547652b82fep0), SET_R(magic)), n = near - magic, r, p;
    if (SMALL) {
        r = FMA_R(n, SET_R((REAL)-0x1.62e400p-1), a);
        r = FMA_R(n, SET_R((REAL)-0x1.7f7d1cp-20), r);
        p = SET_R((REAL)fini_exp_f32[4]);
        for (int i = 3; i >= 0; i--)
            p = FMA_R(p, r, SET_R((REAL)fini_exp_f32[i]));
    } else {
        r = FMA_R(n, SET_R((REAL)-0x1.62e42fefa39efp-1), a);
        r = FMA_R(n, SET_R((REAL)-0x1.abc9e3b39803fp-56), r);
        VEC rr = r * r, odd = SET_R((REAL)fini_exp_f64[9]), even = SET_R((REAL)fini_exp_f64[8]);
        for (int i = 6; i >= 0; i -= 2) { /* two short chains */
            odd = FMA_R(odd, rr, SET_R((REAL)fini_exp_f64[i + 1]));
            even = FMA_R(even, rr, SET_R((REAL)fini_exp_f64[i]));
        }
        p = FMA_R(odd, r, even);
    }
    VEC y = FMA_R(r * r, p, r) + (REAL)1;
    y = (VEC)((WORDS)y + ((WORDS)near << (SMALL ? 23 : 52)));
    return (VEC)((MASK)y & ~(x < least));
}

/* The exponent of the exponential scores, u of the others, from q.k or |q - k|^2. Not a number
 * stays one. */
static inline VEC NAME(exponent)(int kind, VEC sum)
{
    if (kind >= FINI_SCORE_RBF)
        sum = MIN_R(SET_R(SMALL ? (REAL)FINI_FARTHEST_F32 : (REAL)FINI_FARTHEST_F64), sum);
    return kind == FINI_SCORE_RBF        ? sum * (REAL)-0.5
           : kind == FINI_SCORE_MATERN32 ? -SQRT_R(sum * (REAL)3)
           : kind == FINI_SCORE_MATERN52 ? -SQRT_R(sum * (REAL)5)
                                         : sum;
}

static inline VEC NAME(power)(VEC x, int64_t n)
{
    VEC result = SET_R((REAL)1);
    for (; n > 0; n--)
        result *= x;
    return result;
}

/* k exp(-top), and its derivative in u; as weight_of and slope_of in attend_ref.h. */
static inline VEC NAME(weight)(const fini_score *score, int kind, VEC s, VEC top)
{
    switch (kind) {
    case FINI_SCORE_LINEAR:
        return s;
    case FINI_SCORE_POLYNOMIAL:
        return NAME(power)(s + (REAL)score->offset, score->degree);
    case FINI_SCORE_MATERN32:
        return ((REAL)1 - s) * NAME(exp_weight)(s - top);
    case FINI_SCORE_MATERN52:
        return ((REAL)1 - s + s * s * (REAL)(1.0 / 3)) * NAME(exp_weight)(s - top);
    default:
        return NAME(exp_weight)(s - top);
    }
}

#define INLINE static inline __attribute__((always_inline))
#define APART static __attribute__((noinline)) /* long loops, many callers: once is enough */

/* to[r * ld + j] = q_r.k_j or |q_r - k_j|^2 for the keys of one panel. */
INLINE void NAME(meet_inline)(int distance, int64_t dk, const REAL *const q[ROWS],
                              const REAL *panel, REAL *to, int64_t ld)
{
    VEC sum[ROWS][REGISTERS];
    for (int r = 0; r < ROWS; r++)
        for (int w = 0; w < REGISTERS; w++)
            sum[r][w] = SET_R((REAL)0);
    for (int64_t c = 0; c < dk; c++, panel += PANEL) {
        VEC k[REGISTERS];
        for (int w = 0; w < REGISTERS; w++)
            k[w] = LOAD_R(panel + w * WIDTH);
        for (int r = 0; r < ROWS; r++) {
            VEC a = SET_R(q[r][c]);
            for (int w = 0; w < REGISTERS; w++) {
                VEC gap = a - k[w];
                sum[r][w] = distance ? FMA_R(gap, gap, sum[r][w]) : FMA_R(a, k[w], sum[r][w]);
            }
        }
    }
    for (int r = 0; r < ROWS; r++)
        for (int w = 0; w < REGISTERS; w++)
            STORE_R(to + r * ld + w * WIDTH, sum[r][w]);
}

APART void NAME(meet_dot)(int64_t dk, const REAL *const q[ROWS], const REAL *panel, REAL *to,
                          int64_t ld)
{
    NAME(meet_inline)(0, dk, q, panel, to, ld);
}

APART void NAME(meet_distance)(int64_t dk, const REAL *const q[ROWS], const REAL *panel, REAL *to,
                               int64_t ld)
{
    NAME(meet_inline)(1, dk, q, panel, to, ld);
}

static void NAME(meet)(int kind, int64_t dk, const REAL *const q[ROWS], const REAL *panel, REAL *to,
                       int64_t ld)
{
    if (kind >= FINI_SCORE_RBF)
        NAME(meet_distance)(dk, q, panel, to, ld);
    else
        NAME(meet_dot)(dk, q, panel, to, ld);
}

/* Pointers to ROWS rows of a block of `left`; where there are fewer, the last one again. */
static inline void NAME(row_pointers)(const REAL *rows, int64_t stride, int64_t left,
                                      const REAL *to[ROWS])
{
    for (int r = 0; r < ROWS; r++)
        to[r] = rows + (r < left ? r : left - 1) * stride;
}

static inline MASK NAME(lanes_below)(int n)
{
    MASK lane;
    for (int i = 0; i < WIDTH; i++)
        lane[i] = i;
    return lane < ((MASK){0} + n);
}

/* Sums of one query become exponents, in place. Returns the largest; the padding repeats a key and
 * changes nothing. */
static REAL NAME(exponents)(int kind, int64_t padded, REAL *s)
{
    VEC top = SET_R((REAL)-INFINITY);
    if (kind >= FINI_SCORE_RBF)
        for (int64_t j = 0; j < padded; j += WIDTH)
            STORE_R(s + j, NAME(exponent)(kind, LOAD_R(s + j)));
    for (int64_t j = 0; j < padded; j += WIDTH)
        top = MAX_R(top, LOAD_R(s + j)); /* not a number, if the second one is */
    REAL result = top[0];
    for (int i = 1; i < WIDTH; i++)
        result = top[i] > result ? top[i] : result;
    return result;
}

/* Exponents of one query become weights, in place; those of the padding become 0. Returns their
 * sum. */
INLINE double NAME(weigh_kind)(const fini_score *score, int kind, int64_t keys, REAL *s, REAL top)
{
    VEC sum[REGISTERS];
    for (int w = 0; w < REGISTERS; w++)
        sum[w] = SET_R((REAL)0);
    for (int64_t j = 0; j < keys; j += PANEL)
        for (int w = 0; w < REGISTERS; w++) {
            VEC y = NAME(weight)(score, kind, LOAD_R(s + j + w * WIDTH), SET_R(top));
            if (j + PANEL > keys)
                y = (VEC)((MASK)y & NAME(lanes_below)((int)(keys - j) - w * WIDTH));
            STORE_R(s + j + w * WIDTH, y);
            sum[w] += y;
        }
    return (double)FOLD_R(sum);
}

/* Every kind has a loop of its own. */
static double NAME(weigh)(const fini_score *score, int64_t keys, REAL *s, REAL top)
{
    switch (score->kind) {
    case FINI_SCORE_MATERN32:
        return NAME(weigh_kind)(score, FINI_SCORE_MATERN32, keys, s, top);
    case FINI_SCORE_MATERN52:
        return NAME(weigh_kind)(score, FINI_SCORE_MATERN52, keys, s, top);
    default:
        return NAME(weigh_kind)(score, FINI_SCORE_EXPONENTIAL, keys, s, top);
    }
}

/* out_r[c] += sum_j w_r[j] v[j][c] for PANEL columns, or the last few, of `rows` queries. */
INLINE void NAME(gather_inline)(int full, int64_t columns, int64_t keys, const REAL *w,
                                const REAL *v, int64_t rows, REAL *out, int64_t dv)
{
    VEC sum[ROWS][REGISTERS];
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < REGISTERS; i++)
            sum[r][i] = SET_R((REAL)0);
    for (int64_t j = 0; j < keys; j++, v += dv) {
        VEC x[REGISTERS];
        for (int i = 0; i < REGISTERS; i++) {
            int64_t left = columns - i * WIDTH;
            int lanes = left <= 0 ? 0 : left < WIDTH ? (int)left : WIDTH;
            x[i] = full ? LOAD_R(v + i * WIDTH) : LOAD_SOME_R(v + (lanes ? i * WIDTH : 0), lanes);
        }
        for (int r = 0; r < ROWS; r++) {
            VEC a = SET_R(w[r * FINI_TILE + j]);
            for (int i = 0; i < REGISTERS; i++)
                sum[r][i] = FMA_R(a, x[i], sum[r][i]);
        }
    }
    for (int r = 0; r < ROWS && r < rows; r++) {
        REAL more[PANEL], *to = out + r * dv;
        for (int i = 0; i < REGISTERS; i++)
            if (full)
                STORE_R(to + i * WIDTH, LOAD_R(to + i * WIDTH) + sum[r][i]);
            else
                STORE_R(more + i * WIDTH, sum[r][i]);
        for (int64_t c = 0; !full && c < columns; c++)
            to[c] += more[c];
    }
}

APART void NAME(gather_full)(int64_t keys, const REAL *w, const REAL *v, int64_t rows, REAL *out,
                             int64_t dv)
{
    NAME(gather_inline)(1, PANEL, keys, w, v, rows, out, dv);
}

APART void NAME(gather_part)(int64_t columns, int64_t keys, const REAL *w, const REAL *v,
                             int64_t rows, REAL *out, int64_t dv)
{
    NAME(gather_inline)(0, columns, keys, w, v, rows, out, dv);
}

static void NAME(attend)(const fini_attend_tile *a)
{
    _Alignas(64) REAL s[ROWS * FINI_TILE];
    int kind = a->score.kind;
    int64_t padded = (a->keys + PANEL - 1) / PANEL * PANEL, dv = a->dv;
    for (int64_t i = 0; i < a->queries; i += ROWS) {
        int64_t left = a->queries - i;
        const REAL *q[ROWS], *v = a->v;
        NAME(row_pointers)((const REAL *)a->q + i * a->dk, a->dk, left, q);
        for (int64_t j = 0; j < padded; j += PANEL)
            NAME(meet)(kind, a->dk, q, (const REAL *)a->panels + j * a->dk, s + j, FINI_TILE);
        REAL *out = (REAL *)a->out + i * dv;
        for (int r = 0; r < ROWS && r < left; r++) {
            REAL top = (REAL)a->top[i + r], here = NAME(exponents)(kind, padded, s + r * FINI_TILE);
            double shrink = 1;
            if (!(here <= top)) {
                shrink = (double)NAME(exp_weight)(SET_R(top - here))[0];
                a->top[i + r] = (double)(top = here);
                for (int64_t c = 0; c < dv; c++)
                    out[r * dv + c] *= (REAL)shrink;
            }
            double sum = NAME(weigh)(&a->score, a->keys, s + r * FINI_TILE, top);
            a->sum[i + r] = a->sum[i + r] * shrink + sum;
        }
        int64_t c = 0;
        for (; c + PANEL <= dv; c += PANEL)
            NAME(gather_full)(a->keys, s, v + c, left, out + c, dv);
        if (c < dv)
            NAME(gather_part)(dv - c, a->keys, s, v + c, left, out + c, dv);
    }
}

static void NAME(pack)(int64_t dk, int64_t keys, const REAL *k, const REAL *origin, double times,
                       REAL *panels)
{
    for (int64_t first = 0; first < keys; first += PANEL, panels += PANEL * dk)
        for (int64_t j = 0; j < PANEL; j++) {
            const REAL *row = k + (first + j < keys ? first + j : 0) * dk;
            for (int64_t c = 0; c < dk; c++)
                panels[c * PANEL + j] =
                    (REAL)(((double)row[c] - (origin ? (double)origin[c] : 0)) * times);
        }
}

#ifdef COVARIANCES
/* ---- covariances, in double only ------------------------------------------------------------ */

static inline vd slope_d(const fini_score *score, int kind, vd s, vd value, vd top)
{
    switch (kind) {
    case FINI_SCORE_LINEAR:
        return SET_D(1.0);
    case FINI_SCORE_POLYNOMIAL:
        return (double)score->degree * power_f64(s + score->offset, score->degree - 1);
    case FINI_SCORE_MATERN32:
        return 3.0 * exp_weight_f64(s - top);
    case FINI_SCORE_MATERN52:
        return (5.0 / 3) * (1.0 - s) * exp_weight_f64(s - top);
    default:
        return value;
    }
}

/* The first `count` of them. */
static inline void store_some_d(double *to, vd x, int64_t count)
{
    if (count >= WD)
        STORE_D(to, x);
    else
        for (int64_t i = 0; i < count; i++)
            to[i] = x[i];
}

/* Sums of one query with a panel become covariances. */
INLINE void covariances_row(const fini_covariances *a, int kind, int64_t row, int64_t j,
                            const double *sum)
{
    vd top = SET_D(a->top ? a->top[row] : 0.0);
    double times = a->sum ? a->times / a->sum[row] : a->times;
    for (int w = 0; w < REGISTERS; w++) {
        int64_t to = row * a->ld + j + w * WD, count = a->keys - j - w * WD;
        vd s = exponent_f64(kind, LOAD_D(sum + w * WD));
        /* Alone, an exponential may be as large as a double can be. */
        vd value = kind == FINI_SCORE_EXPONENTIAL && !a->top ? VEXP(s)
                                                             : weight_f64(&a->score, kind, s, top);
        store_some_d(a->value + to, value * times + a->plus, count);
        if (a->slope)
            store_some_d(a->slope + to, slope_d(&a->score, kind, s, value, top) * times, count);
    }
}

INLINE void covariances_panel(const fini_covariances *a, int kind, int64_t i, int64_t j,
                              const double *sum)
{
    for (int r = 0; r < ROWS && i + r < a->queries; r++)
        covariances_row(a, kind, i + r, j, sum + r * PANEL);
}

static void covariances(const fini_covariances *a)
{
    _Alignas(64) double sum[ROWS * PANEL];
    for (int64_t i = 0; i < a->queries; i += ROWS) {
        const double *q[ROWS];
        row_pointers_f64(a->q + i * a->dk, a->dk, a->queries - i, q);
        for (int64_t j = 0; j < a->keys; j += PANEL) {
            meet_f64(a->score.kind, a->dk, q, a->panels + j * a->dk, sum, PANEL);
            switch (a->score.kind) {
            case FINI_SCORE_LINEAR:
                covariances_panel(a, FINI_SCORE_LINEAR, i, j, sum);
                break;
            case FINI_SCORE_POLYNOMIAL:
                covariances_panel(a, FINI_SCORE_POLYNOMIAL, i, j, sum);
                break;
            case FINI_SCORE_EXPONENTIAL:
                covariances_panel(a, FINI_SCORE_EXPONENTIAL, i, j, sum);
                break;
            case FINI_SCORE_RBF:
                covariances_panel(a, FINI_SCORE_RBF, i, j, sum);
                break;
            case FINI_SCORE_MATERN32:
                covariances_panel(a, FINI_SCORE_MATERN32, i, j, sum);
                break;
            default:
                covariances_panel(a, FINI_SCORE_MATERN52, i, j, sum);
            }
        }
    }
}
#undef COVARIANCES
#endif

#undef INLINE
#undef APART
#undef REGISTERS
#undef ROWS
#undef SMALL
#undef REAL
#undef VEC
#undef MASK
#undef WORDS
#undef WIDTH
#undef PANEL
#undef NAME
#undef FMA_R
#undef SET_R
#undef MAX_R
#undef MIN_R
#undef SQRT_R
#undef LOAD_R
#undef STORE_R
#undef LOAD_SOME_R
#undef FOLD_R
