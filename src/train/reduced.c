/* Online SGD at a cost that does not depend on d: any form, any task, momentum.
 *
 * k, v (and their velocities) are coordinates in an orthonormal frame that begins with k*, v* and
 * has one more vector for each of them. A token enters through its coordinates there: drawn. Every
 * predictor sees the token through X.k and X.v only (and relevance, for `max`, through X.k*), so
 * the gradients' coordinates beyond the frame are sums of independent normals with weights p, q that
 * are known: their Gram matrix is Wishart_2(d - n, M), M = sum s^2 (p^2, pq; pq, q^2), s = gamma for
 * relevant tokens of slr. Two more coordinates hold it; then a rotation beyond k*, v* brings all
 * vectors back into the frame. Exact in law, momentum included.
 *
 * `bayes` sees |X|^2 too, and given their lengths the rests of the tokens are not normal. There the
 * rests are drawn in a frame of their own: token i has normal coordinates along the rests of tokens
 * 0 .. i-1 and a chi with d - n - i degrees beyond them, so a step with T tokens costs T^2 and still
 * nothing that depends on d.
 *
 * Tokens of a sample come in any order here, the relevant ones of slr and spiked first: forms do not
 * see the order. */
#include "train/train.h"

#include <math.h>
#include <string.h>

enum { MOST_FRAME = 6, MOST_VECTORS = 4 };

static int64_t tokens_of(const fin_train *t)
{
    return t->settings.batch * t->task->longest;
}

static bool has_norms(const fin_train *t)
{
    return t->form->needs_norm2 && t->form_settings.c != 0;
}

/* Dimensions that the tokens' rests can span. */
static int64_t stairs_of(const fin_train *t)
{
    int64_t rest = t->task->settings.d - t->frame, tokens = tokens_of(t);
    return !has_norms(t) ? 0 : rest < tokens ? rest : tokens;
}

/* Work memory of one thread, cut from the scratch. */
typedef struct desk {
    double *x;                           /* (frame, tokens): coordinates */
    double *normals;                     /* (frame, longest): those of one sample, as drawn */
    double *chi, *z, *w, *p, *q, *norm2; /* (tokens) */
    double *scale;                       /* (tokens): standard deviation */
    double *stairs;                      /* (tokens, stairs), then (2, stairs): the gradients' */
    double *y, *f, *df, *dlam, *dc;      /* (batch) */
    fini_relevant *kept;                 /* (m) */
    int64_t *offsets;                    /* (batch + 1) */
} desk;

static int64_t cut(const fin_train *t, double *base, desk *o)
{
    int64_t T = tokens_of(t), b = t->settings.batch;
    fini_arena arena = {.base = (unsigned char *)base};
    struct {
        double **piece;
        int64_t count;
    } pieces[] = {{&o->x, t->frame * T},
                  {&o->normals, t->frame * t->task->longest},
                  {&o->chi, T},
                  {&o->z, T},
                  {&o->w, T},
                  {&o->p, T},
                  {&o->q, T},
                  {&o->norm2, T},
                  {&o->scale, T},
                  {&o->stairs, (T + 2) * stairs_of(t)},
                  {&o->y, b},
                  {&o->f, b},
                  {&o->df, b},
                  {&o->dlam, b},
                  {&o->dc, b}};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++)
        *pieces[i].piece = fini_take(&arena, pieces[i].count, sizeof(double));
    o->kept = fini_take(&arena, t->task->settings.m, sizeof *o->kept);
    o->offsets = fini_take(&arena, b + 1, sizeof *o->offsets);
    return (int64_t)(arena.used / sizeof(double));
}

/* T <= 2^50 and the frame is small, but the stairs may be T^2: checked in fini_reduced_check. */
static int64_t scratch_size(const fin_train *t)
{
    desk o;
    return cut(t, NULL, &o);
}

fin_status fini_reduced_check(const fin_train *t, fin_error *err)
{
    double tokens = (double)t->settings.batch * (double)t->task->longest;
    if (tokens * ((double)stairs_of(t) + 20) > 0x1p40)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a step with %g tokens (batch * L) does not fit in memory; take a smaller "
                         "batch",
                         tokens);
    return FIN_OK;
}

static int64_t width(const fin_train *t)
{
    return t->vectors * t->frame + 1;
}

/* ---- drawing ---------------------------------------------------------------------------------- */

/* Coordinates of the tokens of sample i of the batch, and its output. */
static void draw_sample(const fin_train *t, uint64_t sample, int64_t i, desk *o)
{
    const fin_task *task = t->task;
    const fin_task_settings *s = &task->settings;
    uint64_t seed = (uint64_t)t->settings.seed;
    int64_t from = o->offsets[i], L = o->offsets[i + 1] - from, T = tokens_of(t);
    fin_random_normals_f64(seed, FINI_STREAM_TRAIN_TOKENS, sample, 0, t->frame * L, o->normals);
    for (int64_t j = 0; j < t->frame; j++)
        memcpy(o->x + j * T + from, o->normals + j * L, (size_t)L * sizeof(double));
    for (int64_t l = from; l < from + L; l++)
        o->scale[l] = 1;
    fini_selector selector = {.kept = o->kept};
    if (task->kind->odds) {
        fini_selector_begin(&selector, task, seed, FINI_STREAM_TRAIN_LATENT, sample, L);
        for (int64_t l = 0; l < L; l++)
            fini_selector_offer(&selector, l, o->x[from + l], o->x[T + from + l]);
        o->y[i] = fini_selector_end(&selector);
        return;
    }
    o->y[i] = 0;
    for (int64_t l = from; l < from + s->m; l++) {
        for (int64_t j = 0; j < t->frame; j++)
            o->x[j * T + l] *= s->gamma;
        o->x[l] += s->mu;
        o->scale[l] = s->gamma;
        o->y[i] += o->x[T + l];
    }
    if (s->eps > 0) {
        fin_random noise;
        fin_random_open(&noise, seed, FINI_STREAM_TRAIN_LATENT, sample);
        o->y[i] += s->eps * fin_random_normal(&noise);
    }
}

/* The rests of the tokens of sample i, a row of the staircase each; adds their |.|^2. */
static void draw_stairs(const fin_train *t, uint64_t sample, int64_t i, desk *o)
{
    int64_t E = stairs_of(t), rest = t->task->settings.d - t->frame, drawn = 0;
    fin_random chi;
    fin_random_open(&chi, (uint64_t)t->settings.seed, FINI_STREAM_TRAIN_REST, sample);
    for (int64_t l = o->offsets[i]; l < o->offsets[i + 1]; l++) {
        double *row = o->stairs + l * E;
        int64_t n = l < E ? l : E;
        fin_random_normals_f64((uint64_t)t->settings.seed, FINI_STREAM_TRAIN_STAIRS, sample, drawn,
                               n, row);
        drawn += n;
        for (int64_t j = n; j < E; j++)
            row[j] = 0;
        if (l < E)
            row[l] = sqrt(fin_random_chi_square(&chi, (double)(rest - l)));
        for (int64_t j = 0; j < E; j++) {
            row[j] *= o->scale[l];
            o->norm2[l] += row[j] * row[j];
        }
    }
}

/* ---- the gradients ------------------------------------------------------------------------------ */

/* What the two gradients have beyond the frame: lower factor of their Gram matrix. */
static void beyond(const fin_train *t, uint64_t sample, const desk *o, int64_t tokens, double C[3])
{
    double W[3] = {0, 0, 0}, M[3] = {0, 0, 0};
    int64_t rest = t->task->settings.d - t->frame, E = stairs_of(t);
    if (E > 0) {
        double *k = o->stairs + tokens_of(t) * E, *v = k + E;
        memset(k, 0, (size_t)(2 * E) * sizeof *k);
        for (int64_t l = 0; l < tokens; l++)
            for (int64_t j = 0; j < E; j++) {
                k[j] += o->p[l] * o->stairs[l * E + j];
                v[j] += o->q[l] * o->stairs[l * E + j];
            }
        W[0] = fini_dot(E, k, k);
        W[1] = fini_dot(E, k, v);
        W[2] = fini_dot(E, v, v);
    } else if (rest > 0) {
        fin_random r;
        for (int64_t l = 0; l < tokens; l++) {
            double p = o->scale[l] * o->p[l], q = o->scale[l] * o->q[l];
            M[0] += p * p;
            M[1] += p * q;
            M[2] += q * q;
        }
        fin_random_open(&r, (uint64_t)t->settings.seed, FINI_STREAM_TRAIN_REST, sample);
        fin_random_wishart2(&r, (double)rest, M, W);
    }
    C[0] = sqrt(W[0]);
    C[1] = C[0] > 0 ? W[1] / C[0] : 0;
    C[2] = W[2] - C[1] * C[1];
    C[2] = C[2] < 0 ? 0 : sqrt(C[2]);
}

/* Rotates the coordinates from the third on so that vector i needs only the first i + 1 of them:
 * Householder reflections, which keep every product to rounding. */
static void into_frame(int64_t vectors, double x[][MOST_FRAME + 2], int64_t n)
{
    for (int64_t i = 0; i < vectors; i++) {
        double u[MOST_FRAME + 2] = {0}, *row = x[i];
        int64_t from = 2 + i;
        double norm2 = 0;
        for (int64_t j = from; j < n; j++) {
            u[j] = row[j];
            norm2 += u[j] * u[j];
        }
        double beyond2 = norm2 - u[from] * u[from];
        if (!(beyond2 > 0))
            continue;
        double length = sqrt(norm2);
        u[from] += u[from] < 0 ? -length : length;
        double uu = beyond2 + u[from] * u[from];
        for (int64_t r = i; r < vectors; r++) {
            double along = 0;
            for (int64_t j = from; j < n; j++)
                along += u[j] * x[r][j];
            along *= 2 / uu;
            for (int64_t j = from; j < n; j++)
                x[r][j] -= along * u[j];
        }
        for (int64_t j = from + 1; j < n; j++)
            row[j] = 0;
    }
}

static void step(const fin_train *t, int64_t run, int64_t at, desk *o)
{
    int64_t n = t->frame, b = t->settings.batch, T = tokens_of(t);
    double *state = t->state + run * t->width, *lam = state + t->vectors * n;
    const double *k = state, *v = state + n;
    uint64_t first = ((uint64_t)run << 40) + (uint64_t)(at * b);
    bool trained = t->settings.alpha_lam > 0, norms = has_norms(t);
    if (!trained)
        *lam = fini_lam_at(t, at);
    fin_form_settings fs = t->form_settings;
    fs.lam = *lam;

    o->offsets[0] = 0;
    for (int64_t i = 0; i < b; i++) {
        o->offsets[i + 1] =
            o->offsets[i] + fini_length(t->task, (uint64_t)t->settings.seed,
                                        FINI_STREAM_TRAIN_LENGTH, first + (uint64_t)i);
        draw_sample(t, first + (uint64_t)i, i, o);
    }
    int64_t tokens = o->offsets[b];
    for (int64_t l = 0; l < tokens; l++) {
        o->chi[l] = o->z[l] = o->norm2[l] = 0;
        for (int64_t j = 0; j < n; j++) {
            double x = o->x[j * T + l];
            o->chi[l] += k[j] * x;
            o->z[l] += v[j] * x;
            o->norm2[l] += x * x;
        }
    }
    for (int64_t i = 0; norms && i < b; i++)
        draw_stairs(t, first + (uint64_t)i, i, o);

    t->form->weights(&fs, b, o->offsets, o->chi, norms ? o->norm2 : NULL, o->w);
    for (int64_t i = 0; i < b; i++) {
        o->f[i] = 0;
        for (int64_t l = o->offsets[i]; l < o->offsets[i + 1]; l++)
            o->f[i] += o->w[l] * o->z[l];
        o->df[i] = 2 * (o->f[i] - o->y[i]) / (double)b;
        o->dlam[i] = o->dc[i] = 0;
        for (int64_t l = o->offsets[i]; l < o->offsets[i + 1]; l++)
            o->q[l] = o->df[i] * o->w[l];
    }
    fini_pass pass = {.n = b,
                      .offsets = o->offsets,
                      .chi = o->chi,
                      .norm2 = norms ? o->norm2 : NULL,
                      .z = o->z,
                      .w = o->w,
                      .f = o->f,
                      .df = o->df,
                      .p = o->p,
                      .dlam = o->dlam,
                      .dc = o->dc};
    t->form->backward(&fs, &pass);

    double x[MOST_VECTORS][MOST_FRAME + 2] = {{0}}, gk[MOST_FRAME + 2] = {0},
                                        gv[MOST_FRAME + 2] = {0}, C[3];
    for (int64_t i = 0; i < t->vectors; i++)
        memcpy(x[i], state + i * n, (size_t)n * sizeof(double));
    for (int64_t j = 0; j < n; j++)
        for (int64_t l = 0; l < tokens; l++) {
            gk[j] += o->p[l] * o->x[j * T + l];
            gv[j] += o->q[l] * o->x[j * T + l];
        }
    beyond(t, first, o, tokens, C);
    gk[n] = C[0];
    gv[n] = C[1];
    gv[n + 1] = C[2];
    fini_rates rates = {fini_alpha_at(t, at), t->settings.momentum, t->settings.penalty};
    bool heavy = t->vectors == 4;
    fini_descend(n + 2, x[0], x[1], heavy ? x[2] : NULL, heavy ? x[3] : NULL, gk, gv, &rates);
    if (n < t->task->settings.d)
        into_frame(t->vectors, x, n + 2);
    for (int64_t i = 0; i < t->vectors; i++)
        memcpy(state + i * n, x[i], (size_t)n * sizeof(double));
    if (trained) {
        double slope = 0;
        for (int64_t i = 0; i < b; i++)
            slope += o->dlam[i];
        *lam = fini_next_lam(t, *lam, slope);
    }
}

static fin_status advance(fin_train *t, void *worker, double *scratch, int64_t first, int count,
                          int64_t from, int64_t to, fin_error *err)
{
    (void)worker;
    desk o;
    cut(t, scratch, &o);
    for (int64_t run = first; run < first + count; run++)
        for (int64_t at = from; at < to; at++) {
            if (t->cost > 1e6 && fini_stopped(t))
                return fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
            step(t, run, at, &o);
        }
    return FIN_OK;
}

const fini_engine fini_reduced = {
    .block = 4,
    .at_once = 64,
    .width = width,
    .scratch = scratch_size,
    .start = fini_basis_start,
    .advance = advance,
    .read = fini_basis_read,
};
