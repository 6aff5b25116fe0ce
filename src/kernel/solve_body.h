/* Small positive definite matrices: A = U'U, and solving with U; part of simd_body.h.
 *
 * The upper triangle, by rows, has everything where a register wants it: row j of U is
 *
 *     U[j][i] = (A[j][i] - sum_{k<j} U[k][j] U[k][i]) / U[j][j],
 *
 * scalars times pieces of rows. WD rows are made at a time, in tiles of WIDE_TILE registers,
 * each of which stays in registers from the first k to the division. U'^-1 X is the same with X
 * in place of the right factor, so that both share the tile. Nothing is copied or packed. Meant
 * for sizes that fit the second-level cache; a leading dimension that is an odd number of cache
 * lines keeps columns from falling into the same few lines of the first one. */

enum { WIDE_TILE = 3 };

/* Rows j .. j+rows-1 and `wide` registers of columns, at X: X_r <- (X_r - sum_k U[k][j+r] X_k
 * - sum_{s<r} U[j+s][j+r] X_{j+s}) * inverse_r. Without inverse: the first sum only. */
static inline __attribute__((always_inline)) void solve_tile(int rows, int wide, int64_t j,
                                                             const double *U, int64_t ld, double *X,
                                                             int64_t ldx, const double *inverse)
{
    vd sum[WD][WIDE_TILE];
    for (int r = 0; r < rows; r++)
        for (int w = 0; w < wide; w++)
            sum[r][w] = SET_D(0.0);
    const double *u = U + j, *x = X;
    for (int64_t k = 0; k < j; k++, u += ld, x += ldx) {
        vd b[WIDE_TILE];
        for (int w = 0; w < wide; w++)
            b[w] = LOAD_D(x + w * WD);
        for (int r = 0; r < rows; r++) {
            vd a = SET_D(u[r]);
            for (int w = 0; w < wide; w++)
                sum[r][w] = FMA_D(a, b[w], sum[r][w]);
        }
    }
    double *to = X + j * ldx; /* u: row j of U, from its diagonal on */
    for (int r = 0; r < rows; r++)
        for (int w = 0; w < wide; w++) {
            vd left = LOAD_D(to + r * ldx + w * WD) - sum[r][w];
            if (inverse) {
                for (int s = 0; s < r; s++)
                    left = FMA_D(-SET_D(u[s * ld + r]), sum[s][w], left);
                left *= inverse[r];
            }
            STORE_D(to + r * ldx + w * WD, left);
            sum[r][w] = left; /* the solution's row, for the next ones */
        }
}

/* All columns of X in tiles, for `rows` rows from row j on. */
static inline __attribute__((always_inline)) void solve_rows(int rows, int64_t j, const double *U,
                                                             int64_t ld, int64_t columns, double *X,
                                                             int64_t ldx, const double *inverse)
{
    int64_t c = 0;
    for (; c + (WIDE_TILE - 1) * WD < columns; c += WIDE_TILE * WD)
        solve_tile(rows, WIDE_TILE, j, U, ld, X + c, ldx, inverse);
    for (; c < columns; c += WD)
        solve_tile(rows, 1, j, U, ld, X + c, ldx, inverse);
}

/* The block of `rows` rows on the diagonal, from which earlier rows are taken off already.
 * Returns a row of it that is not positive, or -1. */
static int64_t factor_corner(int rows, double *D, int64_t ld, double *inverse)
{
    for (int r = 0; r < rows; r++) {
        double *row = D + r * ld;
        for (int s = 0; s < r; s++)
            for (int c = r; c < rows; c++)
                row[c] -= D[s * ld + r] * D[s * ld + c];
        if (!(row[r] > 0 && row[r] <= DBL_MAX))
            return r;
        inverse[r] = 1 / (row[r] = sqrt(row[r]));
        for (int c = r + 1; c < rows; c++)
            row[c] *= inverse[r];
    }
    return -1;
}

static int64_t factor(int64_t n, double *A, int64_t ld)
{
    double inverse[WD];
    int64_t j = 0;
    for (; j + WD <= n; j += WD) {
        solve_tile(WD, 1, j, A, ld, A + j, ld, NULL);
        int64_t bad = factor_corner(WD, A + j * ld + j, ld, inverse);
        if (bad >= 0)
            return j + bad;
        solve_rows(WD, j, A, ld, n - j - WD, A + j + WD, ld, inverse);
    }
    for (; j < n; j++) { /* the last few rows, one at a time */
        double *row = A + j * ld;
        solve_rows(1, j, A, ld, n - j, A + j, ld, NULL);
        if (factor_corner(1, row + j, ld, inverse) >= 0)
            return j;
        for (int64_t i = j + 1; i < n; i++)
            row[i] *= inverse[0];
    }
    return -1;
}

static void forward(int64_t n, const double *U, int64_t ld, int64_t columns, double *X, int64_t ldx)
{
    for (int64_t j = 0; j < n;) {
        double inverse[WD];
        int rows = n - j < WD ? 1 : WD;
        for (int r = 0; r < rows; r++)
            inverse[r] = 1 / U[(j + r) * ld + j + r];
        if (rows == WD)
            solve_rows(WD, j, U, ld, columns, X, ldx, inverse);
        else
            solve_rows(1, j, U, ld, columns, X, ldx, inverse);
        j += rows;
    }
}

/* Rows j .. j+rows-1 of U^-1 X, those below being done: X_j = (X_j - sum_{k>j} U[j][k] X_k) /
 * U[j][j]. / */
static inline __attribute__((always_inline)) void back_rows(int rows, int wide, int64_t n,
                                                            int64_t j, const double *U, int64_t ld,
                                                            double *X, int64_t ldx)
{
    vd sum[WD][2];
    for (int r = 0; r < rows; r++)
        for (int w = 0; w < wide; w++)
            sum[r][w] = SET_D(0.0);
    const double *u = U + j * ld;
    for (int64_t k = j + rows; k < n; k++) {
        vd b[2];
        for (int w = 0; w < wide; w++)
            b[w] = LOAD_D(X + k * ldx + w * WD);
        for (int r = 0; r < rows; r++) {
            vd a = SET_D(u[r * ld + k]);
            for (int w = 0; w < wide; w++)
                sum[r][w] = FMA_D(a, b[w], sum[r][w]);
        }
    }
    for (int r = rows - 1; r >= 0; r--)
        for (int w = 0; w < wide; w++) {
            double *to = X + (j + r) * ldx + w * WD;
            vd left = LOAD_D(to) - sum[r][w];
            for (int s = r + 1; s < rows; s++)
                left = FMA_D(-SET_D(u[r * ld + j + s]), sum[s][w], left);
            left *= 1 / u[r * ld + j + r];
            STORE_D(to, left);
            sum[r][w] = left;
        }
}

static void back(int64_t n, const double *U, int64_t ld, int64_t columns, double *X, int64_t ldx)
{
    for (int64_t j = n; j > 0;) {
        int rows = j % WD ? 1 : WD;
        j -= rows;
        int64_t c = 0;
        for (; rows == WD && c + WD < columns; c += 2 * WD)
            back_rows(WD, 2, n, j, U, ld, X + c, ldx);
        for (; c < columns; c += WD)
            if (rows == WD)
                back_rows(WD, 1, n, j, U, ld, X + c, ldx);
            else
                back_rows(1, 1, n, j, U, ld, X + c, ldx);
    }
}
