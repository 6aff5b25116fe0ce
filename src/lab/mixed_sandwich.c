/* What n times the excess risk of least squares tends to: tr(H^-1 S) at the best parameters, with
 *
 *     H = E J'J / M, half the second derivatives of the risk, and S = Cov(J'r / M)
 *
 * for the residuals r and derivatives J at the M masked tokens of a sequence. cme can be the Bayes
 * prediction, so that r has mean 0 given all else and H has no more terms. softmax cannot, and the
 * terms r times second derivatives of f come from differences of gradients.
 *
 * Sequences are drawn, so the trace has an error. It is that of the jackknife: ten groups, and the
 * trace without each of them, which moves with H as well as with S. */
#include "lab/mixed.h"

#include <string.h>

/* Directions in which nothing changes (K and Wq turned together) are no parameters. */
#define COUNTS 1e-11

void fini_mixed_sandwich_take(fini_mixed_sandwich *s, fini_arena *arena,
                              const fini_mixed_model *model)
{
    int64_t P = model->parameters, rows = model->rows;
    double **const vectors[] = {&s->g, &s->theta, &s->w};
    s->model = model;
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = fini_take(arena, P, sizeof(double));
    s->H = fini_take(arena, (FINI_MIXED_GROUPS + 1) * P * P, sizeof(double));
    s->S = fini_take(arena, (FINI_MIXED_GROUPS + 1) * P * P, sizeof(double));
    s->f = fini_take(arena, rows, sizeof(double));
    s->J = fini_take(arena, rows * P, sizeof(double));
    s->room = fini_take(arena, fini_hand_eigen_work(P), sizeof(double));
}

/* (J'r / M)(J'r / M)' to S and, for cme, J'J / M to H; lower triangles. */
static void add_sequence(fini_mixed_sandwich *s, const fini_mixed_rows *o, const double *best,
                         int64_t i, double *H, double *S)
{
    int64_t P = o->parameters;
    o->one(o->user, best, i, s->f, s->J);
    for (int64_t a = 0; a < P; a++) {
        s->g[a] = 0;
        for (int64_t k = 0; k < o->rows; k++)
            s->g[a] += s->J[k * P + a] * s->f[k] / o->share;
    }
    for (int64_t a = 0; a < P; a++)
        for (int64_t b = 0; b <= a; b++) {
            S[a * P + b] += s->g[a] * s->g[b];
            for (int64_t k = 0; k < o->rows && s->model->form != FINI_MIXED_SOFTMAX; k++)
                H[a * P + b] += s->J[k * P + a] * s->J[k * P + b] / o->share;
        }
}

/* Differences of the gradient of all sequences at once; both triangles are halves of one sum. */
static void add_curvature(fini_mixed_sandwich *s, fini_mixed_fit *fit, const fini_mixed_rows *o,
                          const double *best, double *H)
{
    int64_t P = o->parameters;
    const double step = 1e-4;
    memcpy(s->theta, best, (size_t)P * sizeof *best);
    for (int64_t a = 0; a < P; a++)
        for (int side = -1; side <= 1; side += 2) {
            s->theta[a] = best[a] + side * step;
            fini_mixed_sums(fit, o, s->theta, s->g, NULL);
            s->theta[a] = best[a];
            for (int64_t b = 0; b < P; b++)
                H[a >= b ? a * P + b : b * P + a] +=
                    side * s->g[b] * (double)o->n / (2 * step) / (a == b ? 1 : 2);
        }
}

void fini_mixed_sandwich_add(fini_mixed_sandwich *s, fini_mixed_fit *fit, const fini_mixed_set *set,
                             const double *best)
{
    int64_t P = s->model->parameters, first = 0;
    for (int64_t group = 0; group < FINI_MIXED_GROUPS; group++) {
        int64_t end = set->n * (group + 1) / FINI_MIXED_GROUPS;
        fini_mixed_set part = fini_mixed_part(set, first, end - first);
        fini_mixed_loss loss = {s->model, &part};
        fini_mixed_rows rows = fini_mixed_rows_of(&loss);
        double *H = s->H + group * P * P, *S = s->S + group * P * P;
        for (int64_t i = 0; i < part.n; i++)
            add_sequence(s, &rows, best, i, H, S);
        if (s->model->form == FINI_MIXED_SOFTMAX)
            add_curvature(s, fit, &rows, best, H);
        first = end;
    }
}

/* Sums of all groups but one; of all if it is none of them. */
static void add_up(int64_t P, int64_t without, double *A)
{
    double *sum = A + FINI_MIXED_GROUPS * P * P;
    memset(sum, 0, (size_t)(P * P) * sizeof *sum);
    for (int64_t group = 0; group < FINI_MIXED_GROUPS; group++)
        for (int64_t i = 0; i < P * P && group != without; i++)
            sum[i] += A[group * P * P + i];
    fini_hand_mirror(P, sum);
}

static fin_status trace_without(fini_mixed_sandwich *s, int64_t without, double *trace, int *rank,
                                fin_error *err)
{
    int64_t P = s->model->parameters;
    double *H = s->H + FINI_MIXED_GROUPS * P * P, *S = s->S + FINI_MIXED_GROUPS * P * P;
    add_up(P, without, s->H);
    add_up(P, without, s->S);
    *trace = *rank = 0;
    FINI_TRY(fini_hand_eigen(P, H, s->w, s->room, err));
    for (int64_t k = 0; k < P; k++) {
        const double *e = H + k * P;
        if (!(s->w[k] > COUNTS * s->w[P - 1]))
            continue;
        ++*rank;
        for (int64_t a = 0; a < P; a++)
            *trace += e[a] * fini_hand_dot(P, S + a * P, e) / s->w[k];
    }
    return FIN_OK;
}

fin_status fini_mixed_sandwich_trace(fini_mixed_sandwich *s, double *trace, double *error,
                                     int *rank, fin_error *err)
{
    fini_average average = {0};
    fin_status status = FIN_OK;
    int other;
    for (int64_t group = 0; group < FINI_MIXED_GROUPS && !status; group++) {
        double value;
        status = trace_without(s, group, &value, &other, err);
        fini_average_add(&average, value);
    }
    *error = (FINI_MIXED_GROUPS - 1) * fini_average_error(&average);
    return status ? status : trace_without(s, -1, trace, rank, err);
}
