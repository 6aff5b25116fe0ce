/* Least squares with many features: what L-BFGS starts its steps from.
 *
 * Numbers on features of a kernel are a badly conditioned problem: thousands of iterations, where
 * the noise is small. It is quadratic but for the noise s^2, and its second derivatives are
 *
 *     (A + mu I) / s^2,    A = sum_i w_i phi_i phi_i' / n,    mu = penalty s^2 / n,
 *
 * so one Cholesky factor makes a Newton step of a step (and only that: the minimum is found by the
 * same rules as without). A is summed over blocks of bags, a panel of columns at a time: parts of
 * all blocks take little memory, and no bit depends on threads or processes. */
#include "bags/descend.h"

#include "math/gram.h"
#include "math/spd.h"

#include <cblas.h>
#include <omp.h>
#include <string.h>

/* Numbers of a panel's parts of all blocks, about; rows that are added together. */
enum { PARTS = 1 << 22, ROWS = 256 };

struct fini_ridge {
    int64_t p;
    double *A, *C; /* (p, p) lower triangles; of A + mu I */
    double scale, trace;
    bool ready;
};

bool fini_ridge_helps(const fini_phi *phi, double bags)
{
    enum { LEAST = 128, MOST = 5000 }; /* columns: less is quick anyway, more is too much memory */
    int64_t p = phi->bags.d;
    if (phi->center || phi->bags.dtype != FIN_F64)
        return false; /* a view of what is elsewhere */
    return p >= LEAST && p <= MOST && bags >= (double)p / 4;
}

typedef struct panel {
    const fini_phi *phi;
    const double *weights, *center;
    double n;            /* sum of weights */
    int64_t p, from, to; /* columns */
    int64_t own;         /* blocks of this process */
    double *parts;       /* (own + 1, p, to - from at most) */
    double *rows;        /* (threads, ROWS + 1, p) */
    int threads;
} panel;

static void add_rows(const panel *a, int64_t count, const double *rows, double *part)
{
    int height = (int)(a->p - a->from), width = (int)(a->to - a->from);
    cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, height, width, (int)count, 1, rows, height,
                rows, height, 1, part, width);
}

/* Rows from .. of A, columns of the panel, of one block: part (p - from, to - from). rows: room. */
static void add_block(const panel *a, int64_t block, double *part, double *rows,
                      fini_cancel *cancel)
{
    int64_t begin, end, count = 0, height = a->p - a->from, size = height * (a->to - a->from);
    const int64_t *offsets = a->phi->bags.offsets;
    double *buffer = rows + ROWS * a->p;
    fini_bags_block(&a->phi->bags, block, &begin, &end);
    memset(part, 0, (size_t)size * sizeof *part);
    for (int64_t i = begin; i < end; i++) {
        if (!(a->weights[i] > 0))
            continue;
        double root = sqrt(a->weights[i]);
        for (int64_t r = offsets[i] - offsets[0]; r < offsets[i + 1] - offsets[0]; r++) {
            const double *x = fini_phi_row(a->phi, r, buffer);
            double *to = rows + count++ * height;
            for (int64_t j = 0; j < height; j++)
                to[j] = root * (x[a->from + j] - (a->center ? a->center[a->from + j] : 0));
            if (count < ROWS)
                continue;
            if (fini_cancelled(cancel, (double)(size * count)))
                return;
            add_rows(a, count, rows, part);
            count = 0;
        }
    }
    if (count && !fini_cancelled(cancel, (double)(size * count)))
        add_rows(a, count, rows, part);
}

/* A panel of everybody, to A. */
static fin_status add_panel(double *A, const panel *a, fin_sum sum, fini_cancel *cancel,
                            fin_error *err)
{
    int64_t height = a->p - a->from, width = a->to - a->from, size = height * width;
    double *out = a->parts + a->own * size;
    fini_blas_enter();
#pragma omp parallel for schedule(dynamic) num_threads(a->threads)
    for (int64_t b = 0; b < a->own; b++)
        add_block(a, b, a->parts + b * size, a->rows + omp_get_thread_num() * (ROWS + 1) * a->p,
                  cancel);
    fini_blas_leave();
    fin_status status = fini_cancel_end(cancel, err);
    if (!status)
        status = sum(fin_bags_blocks(a->phi->bags.total), size, a->parts, out, err);
    for (int64_t i = 0; i < height && !status; i++)
        for (int64_t j = 0; j < width; j++)
            A[(a->from + i) * a->p + a->from + j] = out[i * width + j] / a->n;
    return status;
}

fin_status fini_second_moments(const fini_problem *problem, double n, const double *center,
                               double *A, fin_error *err)
{
    const fin_bags *bags = &problem->phi->bags;
    int64_t p = bags->d, first, room = (ROWS + 1) * p, blocks = fin_bags_blocks(bags->total);
    int64_t wide = PARTS / ((blocks + 1) * p);
    panel a = {.phi = problem->phi, .weights = problem->weights, .center = center, .n = n, .p = p};
    fini_bags_own(bags, &first, &a.own);
    wide = wide < 8 ? 8 : wide;
    a.threads = fin_threads_get(); /* once: another thread may set another number meanwhile */
    a.parts = fini_alloc_array((a.own + 1) * p, (size_t)wide * sizeof *a.parts);
    a.rows = fini_alloc_array(a.threads, (size_t)room * sizeof *a.rows);
    fin_status status = a.parts && a.rows ? FIN_OK
                                          : fini_fail_memory(err, (size_t)room * sizeof *a.rows,
                                                             "second moments of features");
    for (; a.from < p && !status; a.from = a.to) {
        a.to = p - a.from < wide ? p : a.from + wide;
        status = add_panel(A, &a, problem->sum, problem->cancel, err);
    }
    fini_free_all(a.parts, a.rows);
    return status;
}

fin_status fini_ridge_create(fini_ridge **ridge, const fini_problem *problem, fin_error *err)
{
    *ridge = NULL;
    int64_t p = problem->phi->bags.d;
    FINI_TRY(fini_blas_ready(err));
    FINI_MAKE(err, "second moments of features", fini_ridge, o);
    *o = (fini_ridge){.p = p, .A = fini_alloc_array(2 * p, (size_t)p * sizeof *o->A)};
    fin_status status = o->A ? FIN_OK
                             : fini_fail_memory(err, 2 * (size_t)(p * p) * sizeof *o->A,
                                                "second moments of features");
    o->C = o->A ? o->A + p * p : NULL;
    if (!status)
        status = fini_second_moments(problem, problem->weight, NULL, o->A, err);
    for (int64_t j = 0; j < p && !status; j++)
        o->trace += o->A[j * p + j];
    FINI_HAND_OVER(ridge, o, status, fini_ridge_destroy);
}

void fini_ridge_destroy(fini_ridge *ridge)
{
    if (!ridge)
        return;
    fini_free_all(ridge->A, ridge);
}

/* A factor that cannot be had is not needed: steps then start from the gradient. */
fin_status fini_ridge_factor(fini_ridge *o, double penalty, double variance, fini_cancel *cancel,
                             fin_error *err)
{
    const double least = 1e-10;
    const fin_progress progress = {fini_cancel_hook, cancel};
    double mu = fmax(penalty * variance, least * o->trace / (double)o->p);
    int64_t p = o->p;
    for (int64_t i = 0; i < p; i++) {
        memcpy(o->C + i * p, o->A + i * p, (size_t)(i + 1) * sizeof *o->C);
        o->C[i * p + i] += mu;
    }
    fini_spd C = fini_spd_of(p, o->C, p);
    fin_status status = fini_spd_factor(&C, &progress, err);
    o->ready = !status && C.pivot < 0;
    o->scale = variance;
    return status;
}

bool fini_ridge_solve(const fini_ridge *o, int64_t n, double *d)
{
    if (!o->ready)
        return false;
    fini_spd_solve(fini_spd_of(o->p, o->C, o->p), 1, d, 1);
    for (int64_t i = 0; i < n; i++)
        d[i] *= o->scale;
    return true;
}
