/* Rows of tokens with vectors, once for float and once for double tokens and for every register
 * width: REAL, NAME, FETCH and FETCH_SOME (doubles from tokens) are given, and undefined at
 * the end.
 *
 * Eight numbers of a row are one step: two registers, or one where they are wide. A step of a few
 * rows is seen (centred, cut off) once and meets a few directions, whose sums stay in registers. */

/* Rows times directions of a block: 8 registers of sums in AVX2. */
INLINE void NAME(meet)(int R, int C, bool raw, int64_t d, const REAL *X, const double *center,
                       const double *bound, const double *W, const rest *end, double *U, int64_t q)
{
    vd sum[4][4][2];
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++)
            sum[r][c][0] = sum[r][c][1] = SET_D(0.0);
    int64_t j = 0;
    for (; j + STEP <= d; j += STEP)
        for (int h = 0; h < REGISTERS; h++) {
            int64_t at = j + h * WD;
            sight s = sight_at(raw, center + at, bound + at);
            vd w[4];
            for (int c = 0; c < C; c++)
                w[c] = LOAD_D(W + c * d + at);
            for (int r = 0; r < R; r++) {
                vd t = see(s, FETCH(X + r * d + at));
                if (h == 0)
                    __builtin_prefetch((const char *)(X + r * d + at) + AHEAD);
                for (int c = 0; c < C; c++)
                    sum[r][c][h] = FMA_D(w[c], t, sum[r][c][h]);
            }
        }
    for (int h = 0; h < REGISTERS && h * WD < end->n; h++) {
        int n = least(end->n - h * WD);
        sight s = sight_at(raw, end->center + h * WD, end->bound + h * WD);
        for (int r = 0; r < R; r++) {
            vd x = see(s, FETCH_SOME(X + r * d + j + h * WD, n));
            for (int c = 0; c < C; c++)
                sum[r][c][h] = FMA_D(load_some_d(W + c * d + j + h * WD, n), x, sum[r][c][h]);
        }
    }
    for (int r = 0; r < R; r++)
        for (int c = 0; c < C; c++)
            U[r * q + c] = fold_d(sum[r][c][0], sum[r][c][1]);
}

INLINE void NAME(project_any)(bool raw, int64_t rows, int64_t d, const REAL *X,
                              const double *center, const double *bound, int64_t q, const double *W,
                              double *U)
{
    rest end = rest_of(d, raw ? NULL : center, bound);
    int64_t r = 0;
    for (; r + 2 <= rows; r += 2) {
        int64_t c = 0;
        for (; c + 2 <= q; c += 2)
            NAME(meet)(2, 2, raw, d, X + r * d, center, bound, W + c * d, &end, U + r * q + c, q);
        if (c < q)
            NAME(meet)(2, 1, raw, d, X + r * d, center, bound, W + c * d, &end, U + r * q + c, q);
    }
    for (int64_t c = 0; c < q && r < rows; c++)
        NAME(meet)(1, 1, raw, d, X + r * d, center, bound, W + c * d, &end, U + r * q + c, q);
}

static void NAME(project)(int64_t rows, int64_t d, const REAL *X, const double *center,
                          const double *bound, int64_t q, const double *W, double *U)
{
    if (center)
        NAME(project_any)(false, rows, d, X, center, bound, q, W, U);
    else
        NAME(project_any)(true, rows, d, X, W, W, q, W, U);
}

/* `wide` registers of columns of C directions. */
INLINE void NAME(collect)(int wide, int C, bool raw, int64_t rows, int64_t d, const REAL *X,
                          const double *center, const double *bound, int64_t q, const double *D,
                          double *G)
{
    vd sum[4][4];
    sight s[4];
    for (int w = 0; w < wide; w++) {
        s[w] = sight_at(raw, center + w * WD, bound + w * WD);
        for (int c = 0; c < C; c++)
            sum[w][c] = LOAD_D(G + c * d + w * WD);
    }
    for (int64_t r = 0; r < rows; r++)
        for (int w = 0; w < wide; w++) {
            vd t = see(s[w], FETCH(X + r * d + w * WD));
            for (int c = 0; c < C; c++)
                sum[w][c] = FMA_D(SET_D(D[r * q + c]), t, sum[w][c]);
        }
    for (int w = 0; w < wide; w++)
        for (int c = 0; c < C; c++)
            STORE_D(G + c * d + w * WD, sum[w][c]);
}

/* The last columns. */
INLINE void NAME(collect_rest)(bool raw, int64_t rows, int64_t d, const REAL *X, const rest *end,
                               int64_t q, const double *D, double *G)
{
    for (int h = 0; h < REGISTERS && h * WD < end->n; h++)
        for (int64_t c = 0; c < q; c++) {
            int n = least(end->n - h * WD);
            sight s = sight_at(raw, end->center + h * WD, end->bound + h * WD);
            double *to = G + c * d + h * WD, some[WD];
            vd sum = load_some_d(to, n);
            for (int64_t r = 0; r < rows; r++)
                sum = FMA_D(SET_D(D[r * q + c]), see(s, FETCH_SOME(X + r * d + h * WD, n)), sum);
            STORE_D(some, sum);
            memcpy(to, some, (size_t)n * sizeof *to);
        }
}

INLINE void NAME(gather_any)(bool raw, int64_t rows, int64_t d, const REAL *X, const double *center,
                             const double *bound, int64_t q, const double *D, double *G)
{
    rest end = rest_of(d, raw ? NULL : center, bound);
    const int wide = raw ? 4 : 2; /* as many as there are registers for */
    int64_t j = 0;
    for (; j + wide * WD <= d; j += wide * WD) {
        int64_t c = 0;
        for (; c + 2 <= q; c += 2)
            NAME(collect)
        (wide, 2, raw, rows, d, X + j, center + j, bound + j, q, D + c, G + c * d + j);
        if (c < q)
            NAME(collect)
        (wide, 1, raw, rows, d, X + j, center + j, bound + j, q, D + c, G + c * d + j);
    }
    for (; j + STEP <= d; j += STEP)
        for (int64_t c = 0; c < q; c++)
            NAME(collect)
    (REGISTERS, 1, raw, rows, d, X + j, center + j, bound + j, q, D + c, G + c * d + j);
    if (end.n)
        NAME(collect_rest)(raw, rows, d, X + j, &end, q, D, G + j);
}

static void NAME(gather)(int64_t rows, int64_t d, const REAL *X, const double *center,
                         const double *bound, int64_t q, const double *D, double *G)
{
    if (center)
        NAME(gather_any)(false, rows, d, X, center, bound, q, D, G);
    else
        NAME(gather_any)(true, rows, d, X, G, G, q, D, G);
}

/* R rows, WD columns or fewer. */
INLINE void NAME(sum_up)(int kind, int R, int n, const fini_rows_sums *of, int64_t j, const REAL *X,
                         double *first, double *second)
{
    bool whole = n == WD, cut = kind == FINI_CUT_SQUARES || kind == FINI_FARTHEST;
    vd a = SET_D(0.0), b = a, bound = a, one, two = a;
    if (kind != FINI_SIZES && kind != FINI_ENDS)
        a = whole ? LOAD_D(of->a + j) : load_some_d(of->a + j, n);
    if (kind == FINI_SQUARES || kind == FINI_CUT_SQUARES)
        b = whole ? LOAD_D(of->b + j) : load_some_d(of->b + j, n);
    if (cut)
        bound = whole ? LOAD_D(of->bound + j) : load_some_d(of->bound + j, n);
    one = whole ? LOAD_D(first + j) : load_some_d(first + j, n);
    if (kind < FINI_CUT_SQUARES)
        two = whole ? LOAD_D(second + j) : load_some_d(second + j, n);
    for (int r = 0; r < R; r++) {
        const REAL *x = X + r * of->d + j;
        vd t = whole ? FETCH(x) : FETCH_SOME(x, n);
        if (kind == FINI_SIZES) {
            one += t;
            two += MAX_D(t, -t);
            continue;
        }
        if (kind == FINI_ENDS) {
            one = MIN_D(t, one);
            two = MAX_D(t, two);
            continue;
        }
        t -= a;
        if (cut)
            t = MAX_D(-bound, MIN_D(bound, t)); /* NaN is the second one */
        if (kind == FINI_FARTHEST) {
            one = MAX_D(MAX_D(t, -t), one);
            continue;
        }
        t *= b;
        one += kind == FINI_SQUARES ? t : t * t;
        two += kind == FINI_SQUARES ? t * t : SET_D(0.0);
    }
    double some[2][WD];
    STORE_D(whole ? first + j : some[0], one);
    if (!whole)
        memcpy(first + j, some[0], (size_t)n * sizeof *first);
    if (kind >= FINI_CUT_SQUARES)
        return;
    STORE_D(whole ? second + j : some[1], two);
    if (!whole)
        memcpy(second + j, some[1], (size_t)n * sizeof *second);
}

INLINE void NAME(sums_of)(int kind, int R, const fini_rows_sums *of, const REAL *X, double *first,
                          double *second)
{
    int64_t j = 0;
    for (; j + WD <= of->n; j += WD) {
        for (int r = 0; r < R; r++)
            __builtin_prefetch((const char *)(X + r * of->d + j) + FAR);
        NAME(sum_up)(kind, R, WD, of, j, X, first, second);
    }
    if (j < of->n)
        NAME(sum_up)(kind, R, (int)(of->n - j), of, j, X, first, second);
}

INLINE void NAME(sums_kind)(int kind, int64_t rows, const fini_rows_sums *of, const REAL *X,
                            double *first, double *second)
{
    for (; rows >= 4; rows -= 4, X += 4 * of->d)
        NAME(sums_of)(kind, 4, of, X, first, second);
    for (; rows > 0; rows--, X += of->d)
        NAME(sums_of)(kind, 1, of, X, first, second);
}

static void NAME(sums)(int64_t rows, const fini_rows_sums *of, const REAL *X, double *first,
                       double *second)
{
    if (of->kind == FINI_SIZES)
        NAME(sums_kind)(FINI_SIZES, rows, of, X, first, second);
    else if (of->kind == FINI_ENDS)
        NAME(sums_kind)(FINI_ENDS, rows, of, X, first, second);
    else if (of->kind == FINI_SQUARES)
        NAME(sums_kind)(FINI_SQUARES, rows, of, X, first, second);
    else if (of->kind == FINI_CUT_SQUARES)
        NAME(sums_kind)(FINI_CUT_SQUARES, rows, of, X, first, second);
    else
        NAME(sums_kind)(FINI_FARTHEST, rows, of, X, first, second);
}

#undef REAL
#undef NAME
#undef FETCH
#undef FETCH_SOME
