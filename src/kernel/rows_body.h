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

#undef REAL
#undef NAME
#undef FETCH
#undef FETCH_SOME
