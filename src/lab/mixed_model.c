/* The two attention layers of mixed.h: values and exact derivatives. */
#include "lab/mixed.h"

#include "kernel/kernel.h"

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

/* With the moments X'X: N = X'X Wk' (p, d), A = Wk N + lam, E = Wv N A^-1 (dv, d), and
 * R = (Wv - E Wk) X'X (dv, p). */
typedef struct parts {
    double lam, A[K * K], N[P * K], E[K * K], R[K * P];
} parts;

static void make_parts(const fini_mixed_model *m, const double *theta, const double *moments,
                       parts *o)
{
    int64_t d = m->d, dv = m->dv, p = m->p;
    const double *Wk = theta, *Wv = Wk + d * p;
    double rest[P];
    o->lam = exp(theta[p * p + (m->form == FINI_MIXED_CME ? d * d : 0)]);
    for (int64_t c = 0; c < p; c++)
        for (int64_t a = 0; a < d; a++) {
            double sum = 0;
            for (int64_t b = 0; b < p; b++)
                sum += moments[c * p + b] * Wk[a * p + b];
            o->N[c * d + a] = sum;
        }
    memset(o->A, 0, sizeof o->A);
    memset(o->E, 0, sizeof o->E);
    for (int64_t c = 0; c < p; c++)
        for (int64_t a = 0; a < d; a++) {
            for (int64_t b = 0; b < d; b++)
                o->A[b * d + a] += Wk[b * p + c] * o->N[c * d + a];
            for (int64_t i = 0; i < dv; i++)
                o->E[i * d + a] += Wv[i * p + c] * o->N[c * d + a];
        }
    for (int64_t a = 0; a < d; a++)
        o->A[a * d + a] += o->lam;
    if (!fini_hand_cholesky(d, o->A)) { /* lam too small for these digits: no number */
        memset(o->E, 0, sizeof o->E);
        o->lam = NAN;
    }
    for (int64_t i = 0; i < dv; i++) {
        if (!isnan(o->lam))
            fini_hand_solve(d, o->A, o->E + i * d);
        for (int64_t c = 0; c < p; c++) {
            rest[c] = Wv[i * p + c];
            for (int64_t a = 0; a < d; a++)
                rest[c] -= o->E[i * d + a] * Wk[a * p + c];
        }
        for (int64_t c = 0; c < p; c++) {
            double sum = 0;
            for (int64_t b = 0; b < p; b++)
                sum += rest[b] * moments[b * p + c];
            o->R[i * p + c] = sum;
        }
    }
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

/* g = N u. */
static void along_tokens(const fini_mixed_model *m, const parts *o, const double *u, double *g)
{
    for (int64_t c = 0; c < m->p; c++)
        g[c] = fini_hand_dot(m->d, o->N + c * m->d, u);
}

/* f = E Wq q. With u = A^-1 Wq q and g = N u:
 *     d f_i = sum (R_ic u_a - E_ia g_c) dWk_ac + g_c dWv_ic + E_ia q_b dWq_ab
 *             - lam E_i.u d(log lam) */
static void cme_row(const fini_mixed_model *m, const parts *o, int64_t i, const double *q,
                    const double *u, const double *g, double *row)
{
    int64_t d = m->d, p = m->p;
    const double *E = o->E + i * d, *R = o->R + i * p;
    double *to_v = row + d * p, *to_q = row + p * p, along = 0;
    bool with_q = m->form == FINI_MIXED_CME;
    memset(to_v, 0, (size_t)(m->dv * p) * sizeof *row);
    for (int64_t a = 0; a < d; a++) {
        for (int64_t c = 0; c < p; c++)
            row[a * p + c] = R[c] * u[a] - E[a] * g[c];
        for (int64_t b = 0; b < d && with_q; b++)
            to_q[a * d + b] = E[a] * q[b];
        along += E[a] * u[a];
    }
    memcpy(to_v + i * p, g, (size_t)p * sizeof *row);
    to_q[with_q ? d * d : 0] = -o->lam * along;
}

void fini_mixed_cme(const fini_mixed_model *m, const double *theta, const double *moments,
                    int64_t queries, const double *q, double *f, double *J)
{
    const double *Wq = theta + m->p * m->p;
    int64_t d = m->d;
    double u[K], g[P];
    parts o;
    make_parts(m, theta, moments, &o);
    for (int64_t k = 0; k < queries; k++, q += d, f += m->dv) {
        for (int64_t a = 0; a < d; a++) {
            u[a] = isnan(o.lam) ? NAN : 0;
            for (int64_t b = 0; b < d; b++)
                u[a] += Wq[a * d + b] * q[b];
        }
        for (int64_t i = 0; i < m->dv; i++) {
            f[i] = 0;
            for (int64_t a = 0; a < d; a++)
                f[i] += o.E[i * d + a] * u[a];
        }
        if (!J || isnan(o.lam))
            continue;
        fini_hand_solve(d, o.A, u);
        along_tokens(m, &o, u, g);
        for (int64_t i = 0; i < m->dv; i++, J += m->parameters)
            cme_row(m, &o, i, q, u, g, J);
    }
}

void fini_mixed_label(const fini_mixed_model *m, const double *theta, const double *moments,
                      double *label, double *J)
{
    int64_t d = m->d, own = m->p * m->p + 1;
    const double *head = theta + own;
    double u[K], g[P], row[P * P + 1];
    parts o;
    make_parts(m, theta, moments, &o);
    *label = isnan(o.lam) ? NAN : 0;
    if (J)
        memset(J, 0, (size_t)own * sizeof *J);
    for (int64_t i = 0; i < m->dv && !isnan(o.lam); i++) {
        for (int64_t a = 0; a < d; a++)
            *label += o.E[i * d + a] * (u[a] = head[i * d + a]);
        if (!J)
            continue;
        fini_hand_solve(d, o.A, u);
        along_tokens(m, &o, u, g);
        cme_row(m, &o, i, NULL, u, g, row);
        for (int64_t a = 0; a < own; a++)
            J[a] += row[a];
    }
    if (J) /* in the head: F, which is E */
        memcpy(J + own, o.E, (size_t)(m->dv * d) * sizeof *J);
}

/* ---- softmax --------------------------------------------------------------------------------- */

enum { TOKENS = 256 }; /* at once */

/* Largest score x.s. */
static double top_score(int64_t L, int64_t p, const double *tokens, const double *s)
{
    double top = -INFINITY;
    for (int64_t l = 0; l < L; l++) {
        double score = 0;
        for (int64_t c = 0; c < p; c++)
            score += tokens[c * L + l] * s[c];
        top = score > top ? score : top;
    }
    return top;
}

/* w = exp(x.s - top) of `count` tokens from number `first` on; their sum. */
static double weights(int64_t L, int64_t p, const double *tokens, const double *s, double top,
                      int64_t first, int64_t count, double *w)
{
    double sum = 0;
    for (int64_t l = 0; l < count; l++)
        w[l] = -top;
    for (int64_t c = 0; c < p; c++)
        for (int64_t l = 0; l < count; l++)
            w[l] += tokens[c * L + first + l] * s[c];
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
    double w[TOKENS], wx[TOKENS], total = 0, top = top_score(L, p, tokens, s);
    memset(mean, 0, (size_t)p * sizeof *mean);
    if (covariance)
        memset(covariance, 0, (size_t)(p * p) * sizeof *covariance);
    for (int64_t first = 0; first < L; first += TOKENS) {
        int64_t count = L - first < TOKENS ? L - first : TOKENS;
        total += weights(L, p, tokens, s, top, first, count, w);
        for (int64_t c = 0; c < p; c++) {
            const double *x = tokens + c * L + first;
            mean[c] += product(count, w, x);
            for (int64_t l = 0; l < count && covariance; l++)
                wx[l] = w[l] * x[l];
            for (int64_t b = 0; b <= c && covariance; b++)
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
