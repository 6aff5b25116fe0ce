/* One bag of a ridge-penalised fit, in the fields that the others leave it.
 *
 *     F(h) = sum_l (h_kl - w_kl)^2 / 2 V_k + (h_vl - w_vl)^2 / 2 V_v + (y - f(h))^2 / 2,
 *     f = sum_l a_l h_vl,       a = softmax(h_k), or a_l = (1 + h_kl) / L.
 *
 * f is linear in h_v. So the best h_v of any h_k is known,
 *
 *     rest = y - f = (y - a.w_v) / (1 + V_v |a|^2),     h_v = w_v + V_v rest a,     F = |h_k - w_k|^2 / 2 V_k + (y - a.w_v) rest / 2,
 *
 * and Newton's method is for h_k, with the Schur complement of all second derivatives,
 *
 *     H = diag(1/V) + grad f grad f^T - rest f''
 *       = D + B C B^T,     D: a 2 x 2 block for each token,     B = [(a, 0), (f_k, 0), (0, a)],     C = (0 r r; r 1 1; r 1 1), r = rest
 *
 * (for linear weights the first column is 0), which costs O(L). A step that does not go down is replaced by one along
 * the gradient. Linear weights have one minimum: at each of them |rest| < L / sqrt(V_k V_v), as no two blocks can have a
 * negative eigenvalue, and there the dual function of rest is concave. Softmax may have several: for every token that could
 * carry the bag at a lower cost than the minimum that was found, the descent starts once more with the weight there. */
#include "theory/cavity.h"

#include <math.h>
#include <string.h>

enum { STEPS = 100, HALVES = 30, COLUMNS = 3, K = FINI_CAVITY_K, V = FINI_CAVITY_V };
static const double tiny = 1e-8, longest = 4;

bool fini_eliminate(int n, int more, double *A)
{
    int width = n + more;
    for (int i = 0; i < n; i++) {
        int best = i;
        for (int r = i + 1; r < n; r++)
            if (fabs(A[r * width + i]) > fabs(A[best * width + i]))
                best = r;
        if (!(fabs(A[best * width + i]) > 1e-13))
            return false;
        for (int j = 0; j < width; j++) {
            double swap = A[i * width + j];
            A[i * width + j] = A[best * width + j];
            A[best * width + j] = swap;
        }
        for (int r = 0; r < n; r++) {
            double times = A[r * width + i] / A[i * width + i];
            for (int j = i; j < width && r != i; j++)
                A[r * width + j] -= times * A[i * width + j];
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = n; j < width; j++)
            A[i * width + j] /= A[i * width + i];
    return true;
}

/* ---- memory -------------------------------------------------------------------------------------- */

int64_t fini_cavity_scratch(int64_t L)
{
    return (13 + 2 * COLUMNS) * L;
}

void fini_cavity_cut(fini_cavity *c, double *scratch)
{
    double **const rows[] = {&c->w[K],     &c->w[V],     &c->h[K],     &c->h[V],     &c->slope[K],
                             &c->slope[V], &c->block[0], &c->block[1], &c->block[2], &c->trial,
                             &c->step,     &c->down,     &c->best};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++, scratch += c->L)
        *rows[i] = scratch;
    c->columns[K] = scratch;
    c->columns[V] = scratch + COLUMNS * c->L;
}

/* ---- the function and its derivatives -------------------------------------------------------------- */

static void weights(const fini_cavity *c, const double *h_k, double *a)
{
    double top = -INFINITY, sum = 0;
    for (int64_t l = 0; l < c->L; l++) {
        a[l] = (1 + h_k[l]) / (double)c->L;
        top = fmax(top, h_k[l]);
    }
    if (c->linear)
        return;
    for (int64_t l = 0; l < c->L; l++)
        sum += a[l] = exp(h_k[l] - top);
    for (int64_t l = 0; l < c->L; l++)
        a[l] /= sum;
}

/* rest, h_v, the slopes and the cost at h_k. */
static double look(fini_cavity *c, const double *h_k)
{
    double *a = c->slope[V], of_w = 0, square = 0;
    weights(c, h_k, a);
    for (int64_t l = 0; l < c->L; l++) {
        of_w += a[l] * c->w[V][l];
        square += a[l] * a[l];
    }
    c->rest = (c->y - of_w) / (1 + c->V[V] * square);
    c->cost = (c->y - of_w) * c->rest / 2;
    for (int64_t l = 0; l < c->L; l++) {
        double far = h_k[l] - c->w[K][l];
        c->h[V][l] = c->w[V][l] + c->V[V] * c->rest * a[l];
        c->slope[K][l] =
            c->linear ? c->h[V][l] / (double)c->L : a[l] * (c->h[V][l] - (c->y - c->rest));
        c->cost += far * far / (2 * c->V[K]);
    }
    return c->cost;
}

/* H^-1 as blocks - columns core columns^T, where look() was last. */
static bool invert(fini_cavity *c)
{
    double G[COLUMNS][COLUMNS] = {{0}}, A[COLUMNS][2 * COLUMNS], r = c->rest;
    const double C[COLUMNS][COLUMNS] = {{0, r, r}, {r, 1, 1}, {r, 1, 1}};
    for (int64_t l = 0; l < c->L; l++) {
        double a = c->slope[V][l], f_k = c->slope[K][l], kk = 1 / c->V[K], vv = 1 / c->V[V],
               kv = c->linear ? -r / (double)c->L : -r * a;
        kk -= c->linear ? 0 : r * f_k;
        double det = kk * vv - kv * kv;
        if (!(fabs(det) > 1e-12 * fabs(kk * vv)))
            return false;
        const double D[3] = {vv / det, -kv / det, kk / det},
                     B[2][COLUMNS] = {{c->linear ? 0 : a, f_k, 0}, {0, 0, a}};
        for (int i = 0; i < 3; i++)
            c->block[i][l] = D[i];
        for (int q = 0; q < 2; q++)
            for (int j = 0; j < COLUMNS; j++)
                c->columns[q][l * COLUMNS + j] = D[q] * B[0][j] + D[q + 1] * B[1][j];
        for (int i = 0; i < COLUMNS; i++)
            for (int j = 0; j < COLUMNS; j++)
                G[i][j] += B[0][i] * c->columns[K][l * COLUMNS + j] +
                           B[1][i] * c->columns[V][l * COLUMNS + j];
    }
    for (int i = 0; i < COLUMNS; i++)
        for (int j = 0; j < COLUMNS; j++) {
            A[i][j] = i == j;
            A[i][COLUMNS + j] = C[i][j];
            for (int k = 0; k < COLUMNS; k++)
                A[i][j] += C[i][k] * G[k][j];
        }
    if (!fini_eliminate(COLUMNS, COLUMNS, &A[0][0]))
        return false;
    for (int i = 0; i < COLUMNS; i++)
        for (int j = 0; j < COLUMNS; j++)
            c->core[i][j] = A[i][COLUMNS + j];
    return true;
}

static double product(const fini_cavity *c, const double *a, const double *b)
{
    double sum = 0;
    for (int i = 0; i < COLUMNS; i++)
        for (int j = 0; j < COLUMNS; j++)
            sum += a[i] * c->core[i][j] * b[j];
    return sum;
}

/* ---- the minimum ----------------------------------------------------------------------------------- */

/* A direction that goes down; how fast. */
static double direct(fini_cavity *c)
{
    double t[COLUMNS] = {0}, slope = 0;
    bool newton = invert(c);
    for (int64_t l = 0; l < c->L && newton; l++)
        for (int j = 0; j < COLUMNS; j++)
            t[j] += c->columns[K][l * COLUMNS + j] * c->down[l];
    for (int64_t l = 0; l < c->L && newton; l++) {
        c->step[l] = c->block[0][l] * c->down[l] - product(c, c->columns[K] + l * COLUMNS, t);
        slope += c->step[l] * c->down[l];
    }
    if (newton && slope > 0)
        return slope;
    slope = 0;
    for (int64_t l = 0; l < c->L; l++) {
        c->step[l] = c->V[K] * c->down[l];
        slope += c->step[l] * c->down[l];
    }
    return slope;
}

/* Along the step, halved until the cost falls; false if it does not: rounding is all that is left. */
static bool advance(fini_cavity *c, double slope)
{
    double before = c->cost, most = 0;
    for (int64_t l = 0; l < c->L; l++)
        most = fmax(most, fabs(c->step[l]));
    double t = most > longest ? longest / most : 1;
    for (int half = 0; half < HALVES; half++, t /= 2) {
        for (int64_t l = 0; l < c->L; l++)
            c->trial[l] = c->h[K][l] + t * c->step[l];
        if (look(c, c->trial) <= before - 1e-4 * t * slope) {
            memcpy(c->h[K], c->trial, (size_t)c->L * sizeof *c->trial);
            return true;
        }
    }
    look(c, c->h[K]);
    return false;
}

static void descend(fini_cavity *c)
{
    look(c, c->h[K]);
    for (int step = 0; step < STEPS; step++) {
        double most = 0;
        for (int64_t l = 0; l < c->L; l++) {
            c->down[l] = c->rest * c->slope[K][l] - (c->h[K][l] - c->w[K][l]) / c->V[K];
            most = fmax(most, fabs(c->down[l]) * c->V[K]);
        }
        if (most < tiny || !advance(c, direct(c)))
            return;
    }
}

void fini_cavity_minimise(fini_cavity *c)
{
    const double ahead = 2; /* of the others, where the descent starts once more */
    const double *w = c->w[K];
    size_t bytes = (size_t)c->L * sizeof *w;
    double top[2] = {-INFINITY, -INFINITY}; /* the two largest */
    memcpy(c->h[K], w, bytes);
    descend(c);
    double least = c->cost;
    memcpy(c->best, c->h[K], bytes);
    for (int64_t l = 0; l < c->L; l++) {
        top[1] = fmax(top[1], fmin(w[l], top[0]));
        top[0] = fmax(top[0], w[l]);
    }
    for (int64_t l = 0; l < c->L && !c->linear && c->L > 1; l++) {
        double others = top[w[l] == top[0]], gap = others - w[l];
        if (gap > 0 && gap * gap > 4 * c->V[K] * least) /* what it costs that weights draw level */
            continue;
        memcpy(c->h[K], w, bytes);
        c->h[K][l] = fmax(w[l], others + ahead);
        descend(c);
        if (c->cost < least * (1 - tiny)) {
            least = c->cost;
            memcpy(c->best, c->h[K], bytes);
        }
    }
    memcpy(c->h[K], c->best, bytes);
    look(c, c->best);
}
