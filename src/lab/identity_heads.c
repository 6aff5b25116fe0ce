/* heads: a latent of H independent blocks is a case for H heads.
 *
 *     v_h = Z_h' x_h + noise,  x = (x_1 .. x_H),  Z_h ~ N(0, I),  h = 1 .. H
 *
 * Head h with its own map reads x_h and v_h; its cme attention is the posterior mean of its block,
 * and because blocks and noises are independent, all heads together are the posterior mean of all
 * (`one`). The other route conditions the joint Gaussian of all H L numbers.
 *
 * One head that compares whole tokens sees the features of all blocks where those of one count.
 * Given the keys both risks are known (A = (X'X + lam I)^-1, all features; queries N(0, I)):
 *     one head with the joint kernel, block h:  s^2 (tr A - lam tr A^2 + lam tr (A^2)_hh)
 *     head h:                                   s^2 tr (X_h'X_h + lam I)^-1  */
#include "lab/identity.h"

#include <math.h>
#include <string.h>

/* X <- X^-1 (n, n) positive definite, by Gauss and Jordan. */
static void invert(int64_t n, double *X)
{
    for (int64_t c = 0; c < n; c++) {
        double pivot = X[c * n + c];
        X[c * n + c] = 1;
        for (int64_t j = 0; j < n; j++)
            X[c * n + j] /= pivot;
        for (int64_t i = 0; i < n; i++) {
            double factor = X[i * n + c];
            if (i == c)
                continue;
            X[i * n + c] = 0;
            for (int64_t j = 0; j < n; j++)
                X[i * n + j] -= factor * X[c * n + j];
        }
    }
}

typedef struct blocks {
    int64_t H, D, d, L; /* d = H D + H numbers in a token: keys of all blocks, values of all */
    double noise;
    double *tokens;      /* (L + 1, d), the query last */
    double *Q, *K, *V;   /* maps of the heads: (H, D, d), (H, D, d), (H, 1, d) */
    double *cov, *cross; /* (H L, H L), (H L, H) */
    double *own, *v;     /* (H), (H L) */
    double *A;           /* (H D, H D) */
    double *heads, *joint;
    fin_cross_settings *settings; /* (H) */
    fini_arena arena;
} blocks;

static void lay_out(blocks *b)
{
    fini_arena *arena = &b->arena;
    int64_t H = b->H, n = H * b->L;
    b->tokens = fini_take(arena, (b->L + 1) * b->d, sizeof(double));
    b->Q = fini_take(arena, H * b->D * b->d, sizeof(double));
    b->K = fini_take(arena, H * b->D * b->d, sizeof(double));
    b->V = fini_take(arena, H * b->d, sizeof(double));
    b->cov = fini_take(arena, n * n, sizeof(double));
    b->cross = fini_take(arena, n * H, sizeof(double));
    b->own = fini_take(arena, H, sizeof(double));
    b->v = fini_take(arena, n, sizeof(double));
    b->A = fini_take(arena, H * b->D * H * b->D, sizeof(double));
    b->heads = fini_take(arena, H, sizeof(double));
    b->joint = fini_take(arena, H, sizeof(double));
    b->settings = fini_take(arena, H, sizeof *b->settings);
}

static fin_status open_blocks(blocks *b, const fini_identity_values *values, fin_error *err)
{
    int64_t H = values->blocks.H, D = values->blocks.D;
    *b =
        (blocks){.H = H, .D = D, .d = H * D + H, .L = values->own.L, .noise = values->blocks.noise};
    FINI_LAY_OUT(err, &b->arena, "blocks of a latent", lay_out(b));
    for (int64_t h = 0; h < H; h++) { /* maps that pick numbers of a token */
        for (int64_t i = 0; i < D; i++)
            b->K[(h * D + i) * b->d + h * D + i] = b->Q[(h * D + i) * b->d + h * D + i] = 1;
        b->V[h * b->d + H * D + h] = 1;
        fin_settings_defaults(&fin_cross_table, &b->settings[h], sizeof b->settings[h]);
        b->settings[h].kernel = FIN_KERNEL_LINEAR;
        b->settings[h].noise = b->noise;
    }
    return FIN_OK;
}

static void draw(blocks *b, fin_random *r)
{
    int64_t H = b->H, D = b->D;
    for (int64_t l = 0; l <= b->L; l++)
        for (int64_t i = 0; i < H * D; i++)
            b->tokens[l * b->d + i] = fin_random_normal(r);
    for (int64_t h = 0; h < H; h++)
        for (int64_t i = 0; i < D; i++) {
            double Z = fin_random_normal(r);
            for (int64_t l = 0; l < b->L; l++)
                b->tokens[l * b->d + H * D + h] += Z * b->tokens[l * b->d + h * D + i];
        }
    for (int64_t l = 0; l < b->L; l++)
        for (int64_t h = 0; h < H; h++)
            b->tokens[l * b->d + H * D + h] += sqrt(b->noise) * fin_random_normal(r);
}

/* Number h L + l is value h of token l. */
static fin_status condition(blocks *b, fin_error *err)
{
    int64_t H = b->H, D = b->D, L = b->L, n = H * L;
    memset(b->cov, 0, (size_t)(n * n) * sizeof(double));
    memset(b->cross, 0, (size_t)(n * H) * sizeof(double));
    for (int64_t h = 0; h < H; h++)
        for (int64_t l = 0; l < L; l++) {
            const double *x = b->tokens + l * b->d + h * D;
            int64_t row = h * L + l;
            b->v[row] = b->tokens[l * b->d + H * D + h];
            for (int64_t k = 0; k <= L; k++) {
                const double *y = b->tokens + k * b->d + h * D;
                double product = 0;
                for (int64_t i = 0; i < D; i++)
                    product += x[i] * y[i];
                *(k < L ? &b->cov[row * n + h * L + k] : &b->cross[row * H + h]) = product;
            }
            b->cov[row * n + row] += b->noise;
        }
    return fini_condition(&(fini_joint){n, H, b->cov, b->cross, b->own}, 1, b->v, b->joint, NULL,
                          err);
}

/* X'X + lam I of `width` features from `first` on, inverted, in b->A. */
static void ridge(blocks *b, int64_t first, int64_t width)
{
    memset(b->A, 0, (size_t)(width * width) * sizeof(double));
    for (int64_t l = 0; l < b->L; l++) {
        const double *x = b->tokens + l * b->d + first;
        for (int64_t i = 0; i < width; i++)
            for (int64_t j = 0; j < width; j++)
                b->A[i * width + j] += x[i] * x[j];
    }
    for (int64_t i = 0; i < width; i++)
        b->A[i * width + i] += b->noise;
    invert(width, b->A);
}

/* Mean over blocks: sum_h tr (A^2)_hh = tr A^2. */
static void risks(blocks *b, fini_trial *t)
{
    int64_t H = b->H, D = b->D, width = H * D;
    double trace = 0, square = 0;
    ridge(b, 0, width);
    for (int64_t i = 0; i < width; i++) {
        trace += b->A[i * width + i];
        for (int64_t j = 0; j < width; j++)
            square += b->A[i * width + j] * b->A[i * width + j];
    }
    t->risk_one = b->noise * (trace - b->noise * square * (1 - 1 / (double)H));
    t->risk_heads = 0;
    for (int64_t h = 0; h < H; h++) {
        ridge(b, h * D, D);
        for (int64_t i = 0; i < D; i++)
            t->risk_heads += b->noise * b->A[i * D + i] / (double)H;
    }
}

FINI_IDENTITY_RUN(heads)
{
    fin_random r;
    blocks b;
    fini_identity_random(values, model, &r);
    fin_status status = open_blocks(&b, values, err);
    if (!status) {
        const int64_t offsets[2] = {0, b.L}, query_offsets[2] = {0, 1};
        const fin_heads heads = {b.H, b.d, b.D, 1, b.H, b.settings, b.Q, b.K, b.V, NULL};
        draw(&b, &r);
        const fin_heads_batch batch = {1, offsets, query_offsets, b.tokens, b.tokens + b.L * b.d};
        status = fin_heads_forward(&heads, &batch, b.heads, err);
    }
    if (!status)
        status = condition(&b, err);
    if (!status) {
        trial->worst = 0;
        fini_widen(b.heads, b.joint, b.H, &trial->worst);
        trial->one[0] = b.heads[0];
        trial->other[0] = b.joint[0];
        risks(&b, trial);
    }
    fini_arena_close(&b.arena);
    return status;
}
