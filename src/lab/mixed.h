/* What the commands of learning share (erm, stationary, shift, head; some of it all of them).
 *
 * A sequence of the linear concept, mixed: Z has dv x d numbers N(0, prior), keys k are uniform on
 * the sphere, values v = Z k + N(0, noise), and a token is x = B (k, v) with a matrix B, p = d +
 * dv, that a model has to undo. Masked tokens show their key q = root k and hide their value. Three
 * models of one attention layer each:
 *
 *     cme      f(q) = V'K (K'K + lam)^-1 Wq q,  K = X Wk', V = X Wv'; the Bayes prediction if
 *              Wk B = (1, 0), Wv B = (0, 1), Wq = 1 and lam = noise / prior
 *     softmax  f(q) = sum over heads of V' softmax(X Wqk q), V = X Wv'; never the Bayes prediction
 *     label    <head, V'K (K'K + lam)^-1>, one number a sequence: the label <A, Z> is learnt from
 *              labels alone, no token is masked; the Bayes prediction if cme is and head = A
 *
 * Training is nonlinear least squares, by Levenberg's and Marquardt's method with exact derivatives
 * (mixed_fit.c). cme sees a sequence through X'X alone, so that its cost does not depend on L. */
#ifndef FINI_LAB_MIXED_H
#define FINI_LAB_MIXED_H

#include "command/command.h"
#include "random/streams.h"
#include "lab/rate.h"
#include "math/spd.h"

/* ---- small systems, solved many thousand times on the spot (mixed.c) ------------------------- */

/* A (n, n) or its factor, by hand. */
static inline fini_spd fini_hand(int64_t n, double *C)
{
    return (fini_spd){.n = n, .ld = n, .C = C, .route = FINI_SPD_HAND};
}
/* A = C C' in place of the lower triangle of A. False if A is not positive definite, or not finite. */
static inline bool fini_hand_cholesky(int64_t n, double *A)
{
    fini_spd o = fini_hand(n, A);
    return !fini_spd_factor(&o, NULL, NULL) && o.pivot < 0;
}
/* x <- (C C')^-1 x. */
static inline void fini_hand_solve(int64_t n, double *C, double *x)
{
    fini_spd_solve(fini_hand(n, C), 1, x, 1);
}
/* A <- eigenvectors in its rows, w <- eigenvalues, ascending. work: fini_hand_eigen_work(n). */
fin_status fini_hand_eigen(int64_t n, double *A, double *w, double *work, fin_error *err);
int64_t fini_hand_eigen_work(int64_t n);
double fini_hand_dot(int64_t n, const double *a, const double *b);
/* The upper triangle of A (n, n) from its lower one. */
void fini_hand_mirror(int64_t n, double *A);
/* Least squares y ~ x (n, width) by normal equations. room: (width, width). False if x does not
 * determine the answer. */
bool fini_hand_regress(int64_t n, int64_t width, const double *x, const double *y, double *room,
                       double *answer);
/* A seed for this L and n, so that runs which differ in them share no draws. */
uint64_t fini_lab_seed(int64_t seed, int64_t L, int64_t n);

/* ---- the frame of a command (mixed.c) -------------------------------------------------------- */

/* Takes the memory of a command with `lay_out`, once to count and once to have it, and does its work. */
typedef struct fini_lab_frame {
    fini_arena *arena;
    const char *what; /* in a message about memory */
    void (*lay_out)(void *work);
    fin_status (*measure)(void *work, fin_result *result, const fin_progress *progress,
                          fin_error *err);
} fini_lab_frame;
fin_status fini_lab_frame_run(const fini_lab_frame *frame, void *work, fin_result *result,
                              const fin_progress *progress, fin_error *err);
/* factor * mean, with its standard error. */
void fini_result_average(fin_result *result, const char *name, const fini_average *average,
                         double factor);
/* A number that is what it is: no error, no samples. */
void fini_result_exact(fin_result *result, const char *name, double value);

/* ---- sequences (mixed_draw.c) ---------------------------------------------------------------- */

#define FINI_MIXED_FIELDS(F, C)                                                                    \
    F(int64_t, d, 3, 1, 8, "numbers in a key")                                                     \
    F(int64_t, dv, 2, 1, 8, "numbers in a value")                                                  \
    F(double, prior, 1, 1e-3, 1e3, "prior variance of the concept's numbers")                      \
    F(double, noise, 0.1, 1e-6, 1e3, "variance of a value around its mean")                        \
    F(int64_t, L, 64, 1, 65536, "tokens in a context")                                             \
    F(int64_t, masked, 2, 1, 64, "masked tokens of a sequence, M")

typedef struct fini_mixed_task {
    FINI_MIXED_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fini_mixed_task;
extern const fin_settings fini_mixed_table;
/* For commands with settings of their own and those of the task: both tables. */
#define FINI_MIXED_TABLES(type, own_table)                                                         \
    FINI_TABLES({&own_table, offsetof(type, own)}, {&fini_mixed_table, offsetof(type, task)})
/* Softmax attention keeps all tokens of n sequences: a message if they are too many. */
fin_status fini_mixed_check_tokens(int64_t n, const fini_mixed_task *task, fin_error *err);

/* Most numbers in a key or value; in a token. */
enum { FINI_MIXED_KEYS = 8, FINI_MIXED_TOKEN = 16 };

typedef struct fini_mixed_world {
    fini_mixed_task task;
    int64_t p;
    uint64_t seed;
    double B[FINI_MIXED_TOKEN * FINI_MIXED_TOKEN], inverse[FINI_MIXED_TOKEN * FINI_MIXED_TOKEN];
    double root[FINI_MIXED_KEYS * FINI_MIXED_KEYS]; /* (d, d): q = root k */
} fini_mixed_world;

/* B = rotation * diag(1/2 .. 2) * rotation, from the seed; root = 1. */
void fini_mixed_world_make(fini_mixed_world *world, const fini_mixed_task *task, uint64_t seed);
/* root root' = d * covariance, (d, d). */
bool fini_mixed_world_queries(fini_mixed_world *world, const double *covariance);

typedef struct fini_mixed_set {
    int64_t n;
    const fini_mixed_world *world;
    double *tokens;   /* (n, p, L), NULL if not wanted */
    double *moments;  /* (n, p, p): X'X */
    double *q, *y;    /* (n, M, d), (n, M, dv): masked keys and values */
    double *z, *mean; /* (n, dv, d): the concept, and its posterior mean */
    double *label;    /* (n): <A, z> + noise, once fini_mixed_label_draw made them */
    double *room;     /* one sequence as it is drawn */
} fini_mixed_set;

void fini_mixed_set_take(fini_mixed_set *set, fini_arena *arena, bool tokens);
/* Sequences first .. first + n - 1 of this stream. */
void fini_mixed_draw(fini_mixed_set *set, uint32_t stream, uint64_t first);
/* Their labels <A, z> + N(0, noise), |A| = 1; A (dv, d) is the world's, or another's. */
void fini_mixed_label_draw(fini_mixed_set *set, const double *A, double noise, fin_random *r);
/* n of these sequences, in the same memory. */
fini_mixed_set fini_mixed_part(const fini_mixed_set *set, int64_t first, int64_t n);
/* The Bayes prediction of hidden number k = (masked token, number) of sequence i: mean q. */
double fini_mixed_bayes(const fini_mixed_set *set, int64_t i, int64_t k);

/* ---- models (mixed_model.c) ------------------------------------------------------------------ */

enum { FINI_MIXED_CME, FINI_MIXED_SOFTMAX, FINI_MIXED_LABEL };

typedef struct fini_mixed_model {
    int form;
    int64_t d, dv, p, L, M, heads;
    int64_t rows; /* numbers to answer of a sequence: M dv, or one label */
    int64_t parameters;
} fini_mixed_model;

fini_mixed_model fini_mixed_model_make(int form, int64_t heads, const fini_mixed_task *task);
/* cme and label: what makes them the Bayes prediction (of label: but for its head, 0 here); softmax:
 * scores kappa q.k, values gain * v, shared out evenly among heads. */
void fini_mixed_truth(const fini_mixed_model *model, const fini_mixed_world *world, double kappa,
                      double gain, double *theta);
/* F (dv, d) of cme, f(q) = F q. moments: (p, p). */
void fini_mixed_matrix(const fini_mixed_model *model, const double *theta, const double *moments,
                       double *F);
/* The d f_i / d theta at q for cme, given sequence: J (dv, parameters) and f (dv). */
void fini_mixed_cme(const fini_mixed_model *model, const double *theta, const double *moments,
                    int64_t queries, const double *q, double *f, double *J);
/* Sum of squared residuals of a sequence for cme, and half its gradient added to g. */
double fini_mixed_cme_slope(const fini_mixed_model *model, const double *theta,
                            const fini_mixed_set *set, int64_t i, double *g);
/* The label <head, F> of a sequence, theta = (Wk, Wv, log lam, head): cme without Wq, which a head
 * makes superfluous. J (parameters) may be NULL. */
void fini_mixed_label(const fini_mixed_model *model, const double *theta, const double *moments,
                      double *label, double *J);
/* f and J for softmax. J may be NULL in both. */
void fini_mixed_softmax(const fini_mixed_model *model, const double *theta, const double *tokens,
                        int64_t queries, const double *q, double *f, double *J);
/* f (rows) and J (rows, parameters) of sequence i, for any form: at its masked tokens, or its label. */
void fini_mixed_answers(const fini_mixed_model *model, const double *theta,
                        const fini_mixed_set *set, int64_t i, double *f, double *J);

/* ---- least squares (mixed_fit.c) ------------------------------------------------------------- */

/* sum over n sequences of sum over `rows` of residual^2, divided by n and `share`. */
typedef struct fini_mixed_rows {
    int64_t n, rows, parameters;
    double share;
    const void *user;
    /* residual: (rows); J: (rows, parameters), may be NULL. */
    void (*one)(const void *user, const double *theta, int64_t i, double *residual, double *J);
    /* The sum of residual^2, with J'residual added to g; NULL: from J. */
    double (*slope)(const void *user, const double *theta, int64_t i, double *g);
} fini_mixed_rows;

typedef struct fini_mixed_fit {
    int64_t parameters, block; /* block: sequences at once */
    int64_t most;              /* steps */
    double enough;             /* length of the gradient to stop at */
    double decrease;           /* descend: or when ten steps gained less than that, relatively */
    double *H, *C, *g, *step, *J, *r;
    double *trial, *trial_g,
        *trial_H;               /* a step's end, with its derivatives: most steps are taken */
    double *from;               /* descend: where it started */
    const fini_mixed_rows *now; /* and on what */
    /* what came out */
    double value, gradient;
    int64_t steps;
} fini_mixed_fit;

void fini_mixed_fit_take(fini_mixed_fit *fit, fini_arena *arena, int64_t parameters, int64_t rows);
/* From theta to a stationary point, theta. */
void fini_mixed_fit_run(fini_mixed_fit *fit, const fini_mixed_rows *rows, double *theta);
/* The same by quasi-Newton steps (L-BFGS) in coordinates in which J'J is about 1: for models with
 * directions that the data hardly know, where what Levenberg and Marquardt leave out of the second
 * derivatives is all there is. */
fin_status fini_mixed_fit_descend(fini_mixed_fit *fit, const fini_mixed_rows *rows, double *theta,
                                  fin_error *err);
/* The value; with g (parameters) half its gradient and with H (parameters, parameters) the lower
 * triangle of J'J, both divided as the value is. They may be NULL. */
double fini_mixed_sums(fini_mixed_fit *fit, const fini_mixed_rows *rows, const double *theta,
                       double *g, double *H);

/* The rows of a model on a set: f - y. */
typedef struct fini_mixed_loss {
    const fini_mixed_model *model;
    const fini_mixed_set *set;
} fini_mixed_loss;
fini_mixed_rows fini_mixed_rows_of(const fini_mixed_loss *loss);
/* theta <- the minimum that belongs to `from`, on this set: cme and label by quasi-Newton steps,
 * softmax by those of Levenberg and Marquardt, 300 at most. */
fin_status fini_mixed_learn(fini_mixed_fit *fit, const fini_mixed_loss *loss, const double *from,
                            double *theta, fin_error *err);
/* From theta, which may be anywhere, to a stationary point: steps of Levenberg and Marquardt, which
 * are safe far away, then quasi-Newton ones, and more of both until the gradient is at most
 * fit->enough or `steps` are taken; how many were. fit->decrease stops it earlier. */
fin_status fini_mixed_search(fini_mixed_fit *fit, const fini_mixed_rows *rows, double *theta,
                             int64_t steps, int64_t *taken, const fin_progress *progress,
                             fin_error *err);

/* ---- what n excess tends to (mixed_sandwich.c) ----------------------------------------------- */

enum { FINI_MIXED_GROUPS = 10 };
typedef struct fini_mixed_sandwich {
    const fini_mixed_model *model;
    double *H, *S; /* (groups + 1, parameters, parameters): lower triangles; the last is room */
    double *f, *J, *g, *theta, *w, *room;
} fini_mixed_sandwich;

void fini_mixed_sandwich_take(fini_mixed_sandwich *sandwich, fini_arena *arena,
                              const fini_mixed_model *model);
/* Adds the sequences of a set (10 at least) at the best parameters. */
void fini_mixed_sandwich_add(fini_mixed_sandwich *sandwich, fini_mixed_fit *fit,
                             const fini_mixed_set *set, const double *best);
/* tr(H^-1 S) of all that was added, its standard error, and how many eigenvalues of H count. */
fin_status fini_mixed_sandwich_trace(fini_mixed_sandwich *sandwich, double *trace, double *error,
                                     int *rank, fin_error *err);

#endif
