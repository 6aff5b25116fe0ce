/* The two attention layers of mixed.h: values and exact derivatives. */
#include "lab/mixed.h"

#include "kernel/kernel.h"
#include "math/small.h"
#include "math/spd.h"

#include <math.h>
#include <string.h>

enum { K = FINI_MIXED_KEYS, P = FINI_MIXED_TOKEN };

fini_mixed_model fini_mixed_model_make(int form, int64_t heads, const fini_mixed_task *t)
{
    fini_mixed_model m = {.form = form, .d = t->d, .dv = t->dv, .p = t->d + t->dv, .L = t->L};
    m.M = t->masked;
    m.heads = form == FINI_MIXED_SOFTMAX ? heads : 1;
    m.rows = form == FINI_MIXED_LABEL ? 1 : m.M * m.dv;
    m.parameters = form == FINI_MIXED_CME     ? m.p * m.p + m.d * m.d + 1
                   : form == FINI_MIXED_LABEL ? m.p * m.p + 1 + m.dv * m.d
                                              : m.heads * (m.p * m.d + m.dv * m.p);
    return m;
}

/* cme: Wk (d, p), Wv (dv, p), Wq (d, d), log lam; label: Wk, Wv, log lam, head (dv, d); softmax, each
 * head: Wqk (p, d), Wv (dv, p). */
void fini_mixed_truth(const fini_mixed_model *m, const fini_mixed_world *world, double kappa,
                      double gain, double *theta)
{
    const double *inverse = world->inverse; /* x -> (k, v) */
    int64_t d = m->d, dv = m->dv, p = m->p;
    if (m->form == FINI_MIXED_LABEL) {
        memcpy(theta, inverse, (size_t)(p * p) * sizeof *theta);
        theta[p * p] = log(world->task.noise / world->task.prior);
        memset(theta + p * p + 1, 0, (size_t)(dv * d) * sizeof *theta);
        return;
    }
    if (m->form == FINI_MIXED_CME) {
        double *Wq = theta + p * p;
        memcpy(theta, inverse, (size_t)(p * p) * sizeof *theta);
        for (int64_t i = 0; i < d * d; i++)
            Wq[i] = i % (d + 1) == 0;
        Wq[d * d] = log(world->task.noise / world->task.prior);
        return;
    }
    for (int64_t h = 0; h < m->heads; h++, theta += p * d + dv * p) {
        for (int64_t c = 0; c < p; c++)
            for (int64_t b = 0; b < d; b++)
                theta[c * d + b] = kappa * inverse[b * p + c];
        for (int64_t i = 0; i < dv * p; i++)
            theta[p * d + i] = gain / (double)m->heads * inverse[d * p + i];
    }
}

/* ---- cme ------------------------------------------------------------------------------------- */

/* With the moments X'X: N = X'X Wk' (p, d), A = (Wk N + lam)^-1, E = Wv N A (dv, d), and
 * R = (Wv - E Wk) X'X (dv, p). */
typedef struct parts {
    double lam, A[K * K], N[P * K], E[K * K], R[K * P];
} parts;

/* A becomes its inverse (Gauss and Jordan); false if it is not positive definite. It is a few numbers
 * wide, and there are millions of them. */
static inline __attribute__((always_inline)) bool invert(int64_t d, double *A)
{
    double whole[K] = {0};
#pragma GCC unroll 8
    for (int64_t k = 0; k < d; k++)
        whole[k] = A[k * d + k];
#pragma GCC unroll 8
    for (int64_t k = 0; k < d; k++) {
        double left = A[k * d + k];
        if (!fini_pivot_holds(left, whole[k]))
            return false;
        A[k * d + k] = 1;
#pragma GCC unroll 8
        for (int64_t j = 0; j < d; j++)
            A[k * d + j] /= left;
#pragma GCC unroll 8
        for (int64_t i = 0; i < d; i++) {
            double factor = A[i * d + k];
#pragma GCC unroll 8
            for (int64_t j = 0; j < d && i != k; j++)
                A[i * d + j] = (j == k ? 0 : A[i * d + j]) - factor * A[k * d + j];
        }
    }
    return true;
}

/* y = A x, A (rows, columns); y is not x. */
static inline void times(int64_t rows, int64_t columns, const double *A, const double *x, double *y)
{
#pragma GCC unroll 8
    for (int64_t a = 0; a < rows; a++) {
        y[a] = 0;
#pragma GCC unroll 8
        for (int64_t b = 0; b < columns; b++)
            y[a] += A[a * columns + b] * x[b];
    }
}

static inline __attribute__((always_inline)) void
parts_of(int64_t d, int64_t dv, double lam, const double *theta, const double *moments, parts *o)
{
    int64_t p = d + dv;
    const double *Wk = theta, *Wv = Wk + d * p;
    double rest[P], T[K];
    o->lam = lam;
#pragma GCC unroll 8
    for (int64_t c = 0; c < p; c++)
        times(d, p, Wk, moments + c * p, o->N + c * d);
    memset(o->A, 0, sizeof o->A);
#pragma GCC unroll 8
    for (int64_t b = 0; b < d; b++)
#pragma GCC unroll 8
        for (int64_t c = 0; c < p; c++)
#pragma GCC unroll 8
            for (int64_t a = 0; a < d; a++)
                o->A[b * d + a] += Wk[b * p + c] * o->N[c * d + a];
#pragma GCC unroll 8
    for (int64_t a = 0; a < d; a++)
        o->A[a * d + a] += lam;
    if (!invert(d, o->A)) { /* lam too small for these digits: no number */
        memset(o->A, 0, sizeof o->A);
        o->lam = NAN;
    }
#pragma GCC unroll 8
    for (int64_t i = 0; i < dv; i++) {
        memset(T, 0, sizeof T);
#pragma GCC unroll 8
        for (int64_t c = 0; c < p; c++)
#pragma GCC unroll 8
            for (int64_t a = 0; a < d; a++)
                T[a] += Wv[i * p + c] * o->N[c * d + a];
        times(d, d, o->A, T, o->E + i * d);
#pragma GCC unroll 8
        for (int64_t c = 0; c < p; c++) {
            rest[c] = Wv[i * p + c];
#pragma GCC unroll 8
            for (int64_t a = 0; a < d; a++)
                rest[c] -= o->E[i * d + a] * Wk[a * p + c];
        }
        times(p, p, moments, rest, o->R + i * p); /* moments are symmetric */
    }
}

/* The sizes of the studies are known to the compiler. */
static void make_parts(const fini_mixed_model *m, const double *theta, const double *moments,
                       parts *o)
{
    double lam = exp(theta[m->p * m->p + (m->form == FINI_MIXED_CME ? m->d * m->d : 0)]);
    if (m->d == 3 && m->dv == 2)
        parts_of(3, 2, lam, theta, moments, o);
    else if (m->d == 2 && m->dv == 1)
        parts_of(2, 1, lam, theta, moments, o);
    else
        parts_of(m->d, m->dv, lam, theta, moments, o);
}

void fini_mixed_matrix(const fini_mixed_model *m, const double *theta, const double *moments,
                       double *F)
{
    const double *Wq = theta + m->p * m->p;
    int64_t d = m->d;
    parts o;
    make_parts(m, theta, moments, &o);
    for (int64_t i = 0; i < m->dv; i++)
        for (int64_t b = 0; b < d; b++) {
            F[i * d + b] = isnan(o.lam) ? NAN : 0;
            for (int64_t a = 0; a < d; a++)
                F[i * d + b] += o.E[i * d + a] * Wq[a * d + b];
        }
}

/* f = E Wq q. With u = A Wq q and g = N u:
 *     d f_i = sum (R_ic u_a - E_ia g_c) dWk_ac + g_c dWv_ic + E_ia q_b dWq_ab
 *             - lam E_i.u d(log lam)
 * is added to row. */
static void cme_row(const fini_mixed_model *m, const parts *o, int64_t i, const double *q,
                    const double *u, const double *g, double *row)
{
    int64_t d = m->d, p = m->p;
    const double *E = o->E + i * d, *R = o->R + i * p;
    double *to_v = row + d * p, *to_q = row + p * p, along = 0;
    bool with_q = m->form == FINI_MIXED_CME;
    for (int64_t a = 0; a < d; a++) {
        for (int64_t c = 0; c < p; c++)
            row[a * p + c] += R[c] * u[a] - E[a] * g[c];
        for (int64_t b = 0; b < d && with_q; b++)
            to_q[a * d + b] += E[a] * q[b];
        along += E[a] * u[a];
    }
    for (int64_t c = 0; c < p; c++)
        to_v[i * p + c] += g[c];
    to_q[with_q ? d * d : 0] -= o->lam * along;
}

void fini_mixed_cme(const fini_mixed_model *m, const double *theta, const double *moments,
                    int64_t queries, const double *q, double *f, double *J)
{
    const double *Wq = theta + m->p * m->p;
    int64_t d = m->d;
    double u[K], w[K], g[P];
    parts o;
    make_parts(m, theta, moments, &o);
    if (J)
        memset(J, 0, (size_t)(queries * m->dv * m->parameters) * sizeof *J);
    for (int64_t k = 0; k < queries; k++, q += d, f += m->dv) {
        times(d, d, Wq, q, u);
        times(m->dv, d, o.E, u, f);
        for (int64_t i = 0; i < m->dv && isnan(o.lam); i++)
            f[i] = NAN;
        if (!J || isnan(o.lam))
            continue;
        times(d, d, o.A, u, w);
        times(m->p, d, o.N, w, g);
        for (int64_t i = 0; i < m->dv; i++, J += m->parameters)
            cme_row(m, &o, i, q, w, g, J);
    }
}

void fini_mixed_label(const fini_mixed_model *m, const double *theta, const double *moments,
                      double *label, double *J)
{
    int64_t d = m->d, own = m->p * m->p + 1;
    const double *head = theta + own;
    double u[K], g[P];
    parts o;
    make_parts(m, theta, moments, &o);
    *label = isnan(o.lam) ? NAN : 0;
    if (J)
        memset(J, 0, (size_t)own * sizeof *J);
    for (int64_t i = 0; i < m->dv && !isnan(o.lam); i++) {
        *label += fini_dot_in_order(d, o.E + i * d, head + i * d);
        if (!J)
            continue;
        times(d, d, o.A, head + i * d, u);
        times(m->p, d, o.N, u, g);
        cme_row(m, &o, i, NULL, u, g, J);
    }
    if (J) /* in the head: F, which is E */
        memcpy(J + own, o.E, (size_t)(m->dv * d) * sizeof *J);
}

/* Rows of J are linear in their queries: residuals times queries are added up first, and what is left
 * is one row for each number of a value, however many queries there are. */
double fini_mixed_cme_slope(const fini_mixed_model *m, const double *theta,
                            const fini_mixed_set *set, int64_t sequence, double *gradient)
{
    const double *Wq = theta + m->p * m->p;
    int64_t d = m->d, dv = m->dv;
    const double *q = set->q + sequence * m->M * d, *y = set->y + sequence * m->M * dv;
    double u[K], w[K], g[P], F[K * K], along[K * K] = {0}, sum = 0;
    parts o;
    make_parts(m, theta, set->moments + sequence * m->p * m->p, &o);
    if (isnan(o.lam))
        return NAN;
    for (int64_t i = 0; i < dv; i++)
        for (int64_t b = 0; b < d; b++) {
            F[i * d + b] = 0;
            for (int64_t a = 0; a < d; a++)
                F[i * d + b] += o.E[i * d + a] * Wq[a * d + b];
        }
    for (int64_t k = 0; k < m->M; k++, q += d, y += dv)
        for (int64_t i = 0; i < dv; i++) {
            double residual = fini_dot_in_order(d, F + i * d, q) - y[i];
            sum += residual * residual;
            for (int64_t b = 0; b < d; b++)
                along[i * d + b] += residual * q[b];
        }
    for (int64_t i = 0; i < dv; i++) {
        times(d, d, Wq, along + i * d, u);
        times(d, d, o.A, u, w);
        times(m->p, d, o.N, w, g);
        cme_row(m, &o, i, along + i * d, w, g, gradient);
    }
    return sum;
}

/* ---- softmax --------------------------------------------------------------------------------- */

enum { TOKENS = 256 }; /* at once */

/* Scores x.s of `count` tokens from number `first` on; the largest of them and `top`. */
static double scores(int64_t L, int64_t p, const double *tokens, const double *s, int64_t first,
                     int64_t count, double top, double *w)
{
    memset(w, 0, (size_t)count * sizeof *w);
    for (int64_t c = 0; c < p; c++) {
        const double *x = tokens + c * L + first;
#pragma omp simd
        for (int64_t l = 0; l < count; l++)
            w[l] += x[l] * s[c];
    }
    double most[8];
    int64_t l = 0;
    for (int j = 0; j < 8; j++)
        most[j] = top;
    for (; l + 8 <= count; l += 8)
        for (int j = 0; j < 8; j++)
            most[j] = w[l + j] > most[j] ? w[l + j] : most[j];
    for (; l < count; l++)
        most[0] = w[l] > most[0] ? w[l] : most[0];
    for (int j = 0; j < 8; j++)
        top = most[j] > top ? most[j] : top;
    return top;
}

/* w = exp(w - top); their sum. */
static double weights(double top, int64_t count, double *w)
{
    double sum = 0;
#pragma omp simd
    for (int64_t l = 0; l < count; l++)
        w[l] -= top;
    fini_kernel_get()->exp(count, w, w);
#pragma omp simd reduction(+ : sum)
    for (int64_t l = 0; l < count; l++)
        sum += w[l];
    return sum;
}

static double product(int64_t n, const double *a, const double *b)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t l = 0; l < n; l++)
        sum += a[l] * b[l];
    return sum;
}

/* Mean and, if it is not NULL, covariance of tokens (p, L) with weights softmax(x.s). */
static void weigh(int64_t L, int64_t p, const double *tokens, const double *s, double *mean,
                  double *covariance)
{
    double w[TOKENS], wx[TOKENS], total = 0, top = -INFINITY;
    for (int64_t first = 0; first < L; first += TOKENS)
        top = scores(L, p, tokens, s, first, fini_least(L - first, TOKENS), top, w);
    memset(mean, 0, (size_t)p * sizeof *mean);
    if (covariance)
        memset(covariance, 0, (size_t)(p * p) * sizeof *covariance);
    for (int64_t first = 0; first < L; first += TOKENS) {
        int64_t count = fini_least(L - first, TOKENS);
        if (L > TOKENS) /* else they are there */
            scores(L, p, tokens, s, first, count, top, w);
        total += weights(top, count, w);
        for (int64_t c = 0; c < p; c++) {
            const double *x = tokens + c * L + first;
            mean[c] += product(count, w, x);
            if (!covariance)
                continue;
#pragma omp simd
            for (int64_t l = 0; l < count; l++)
                wx[l] = w[l] * x[l];
            for (int64_t b = 0; b <= c; b++)
                covariance[c * p + b] += product(count, wx, tokens + b * L + first);
        }
    }
    for (int64_t c = 0; c < p; c++)
        mean[c] /= total;
    for (int64_t c = 0; c < p && covariance; c++)
        for (int64_t b = 0; b <= c; b++)
            covariance[b * p + c] = covariance[c * p + b] =
                covariance[c * p + b] / total - mean[c] * mean[b];
}

/* f_i = Wv_i.mean, d f_i = mean_c dWv_ic + (Wv covariance)_ic q_b dWqk_cb. */
void fini_mixed_softmax(const fini_mixed_model *m, const double *theta, const double *tokens,
                        int64_t queries, const double *q, double *f, double *J)
{
    int64_t d = m->d, dv = m->dv, p = m->p, head = p * d + dv * p;
    double s[P], mean[P], covariance[P * P];
    memset(f, 0, (size_t)(queries * dv) * sizeof *f);
    if (J)
        memset(J, 0, (size_t)(queries * dv * m->parameters) * sizeof *J);
    for (int64_t k = 0; k < queries; k++, q += d, f += dv)
        for (int64_t h = 0; h < m->heads; h++) {
            const double *Wqk = theta + h * head, *Wv = Wqk + p * d;
            for (int64_t c = 0; c < p; c++) {
                s[c] = 0;
                for (int64_t b = 0; b < d; b++)
                    s[c] += Wqk[c * d + b] * q[b];
            }
            weigh(m->L, p, tokens, s, mean, J ? covariance : NULL);
            for (int64_t i = 0; i < dv; i++) {
                double *row = J ? J + (k * dv + i) * m->parameters + h * head : NULL;
                for (int64_t c = 0; c < p; c++)
                    f[i] += Wv[i * p + c] * mean[c];
                for (int64_t c = 0; c < p && J; c++) {
                    double along = 0;
                    for (int64_t b = 0; b < p; b++)
                        along += Wv[i * p + b] * covariance[b * p + c];
                    for (int64_t b = 0; b < d; b++)
                        row[c * d + b] = along * q[b];
                    row[p * d + i * p + c] = mean[c];
                }
            }
        }
}

void fini_mixed_answers(const fini_mixed_model *m, const double *theta, const fini_mixed_set *set,
                        int64_t i, double *f, double *J)
{
    const double *q = set->q + i * m->M * m->d;
    const double *moments = set->moments + i * m->p * m->p;
    if (m->form == FINI_MIXED_LABEL)
        fini_mixed_label(m, theta, moments, f, J);
    else if (m->form == FINI_MIXED_CME)
        fini_mixed_cme(m, theta, moments, m->M, q, f, J);
    else
        fini_mixed_softmax(m, theta, set->tokens + i * m->L * m->p, m->M, q, f, J);
}
