/* prior: what it costs to have learnt a prior from n sequences of L tokens, one of them masked.
 *
 * Tokens are categories with probabilities theta ~ Dirichlet(a). The model knows that, but not a,
 * and predicts the masked token from the counts c of the L others, (c_j + a_j) / (L + a_0); a is
 * chosen to minimise the mean cross-entropy of n sequences. By Wilks' theorem
 *
 *     n E KL(Bayes prediction || learnt prediction) -> D / 2
 *
 * for D categories, whatever L is: the price of learning does not grow with the length, although
 * what is learnt, the Bayes prediction, is better the longer the sequence.
 *
 * A sequence enters its loss by the masked category j and the count c_j alone. Both have a law that
 * can be written down (beta-binomial times prediction), so that a training set is a table of D
 * (L+1) numbers of occurrences, drawn cell by cell, and the Kullback-Leibler divergence is an exact
 * sum. */
#include "lab/mixed.h"

#include "random/streams.h"
#include "lab/rate.h"

#include <math.h>
#include <string.h>

#define PRIOR_FIELDS(F, C)                                                                         \
    F(int64_t, outcomes, 4, 2, 64, "categories of a token, D")                                     \
    F(double, alpha, 0.5, 1e-3, 1e3, "a_j = alpha (1 + j)^skew is the prior that is to be learnt") \
    F(double, skew, 1, -4, 4, "see alpha")                                                         \
    F(int64_t, L, 4, 1, 4096, "tokens beside the masked one")                                      \
    F(int64_t, n, 8000, 2, 10000000, "sequences that the prior is learnt from")                    \
    F(int64_t, repetitions, 300, 2, 1000000, "training sets")                                      \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of the training sets")

#define FIN_TABLE_STRUCT prior_values
FIN_TABLE_OF_ITS_OWN(prior_table, "prior", PRIOR_FIELDS);

static const fin_output outputs[] = {
    {"divergence", "mean KL(Bayes prediction || learnt prediction), each of them exact", "nats"},
    {"scaled", "n times the divergence of the learnt prediction from Bayes", "nats"},
    {"limit", "what the last tends to: D / 2 (Wilks)", "nats"},
    {"bayes", "cross-entropy of the Bayes prediction, exact", "nats"},
    {"lost", "share of training sets whose best prior is at infinity or zero", NULL},
    {NULL, NULL, NULL},
};

enum { STEPS = 200 };
/* A prior exp(FAR) times too large or too small is on its way to infinity or zero; LOST, too, but
 * there the loss may have become flat enough for the search to end. */
#define FAR 25.0
#define LOST 12.0

typedef struct work {
    const prior_values *v;
    int64_t D, cells; /* cells: D (L + 1), [j][c] */
    fini_arena arena;
    double *a;                   /* (D) the prior */
    double *law;                 /* (cells) P(masked token is j, c others are) */
    double *share;               /* (cells) alias method: keep the cell with this probability, */
    int64_t *other, *stack;      /* (cells) else take this one */
    double *table;               /* (cells) occurrences in a training set */
    double *u, *step, *g, *H;    /* (D), (D), (D), (D, D): log a, Newton's step, derivatives */
    double *trial, *trial_g, *C; /* the same at another u; factor */
} work;

static void lay_out(void *user)
{
    work *w = user;
    fini_arena *arena = &w->arena;
    double **const vectors[] = {&w->a, &w->u, &w->step, &w->g, &w->trial, &w->trial_g};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = fini_take(arena, w->D, sizeof(double));
    w->H = fini_take(arena, w->D * w->D, sizeof(double));
    w->C = fini_take(arena, w->D * w->D, sizeof(double));
    w->law = fini_take(arena, w->cells, sizeof(double));
    w->share = fini_take(arena, w->cells, sizeof(double));
    w->table = fini_take(arena, w->cells, sizeof(double));
    w->other = fini_take(arena, w->cells, sizeof(int64_t));
    w->stack = fini_take(arena, w->cells, sizeof(int64_t));
}

/* ---- the law of what a sequence says --------------------------------------------------------- */

static double total(const work *w, const double *a)
{
    double sum = 0;
    for (int64_t j = 0; j < w->D; j++)
        sum += a[j];
    return sum;
}

/* c_j is beta-binomial with parameters a = a_j and b = a_0 - a_j:
 *     P(0) = prod_i (b + i) / (a_0 + i)
 *     P(c + 1) / P(c) = (L - c) (a + c) / ((c + 1) (b + L - c - 1))
 * and the masked token is j with probability (c_j + a_j) / (L + a_0). */
static void fill_law(work *w)
{
    int64_t L = w->v->L;
    for (int64_t j = 0; j < w->D; j++)
        w->a[j] = w->v->alpha * pow((double)(1 + j), w->v->skew);
    double all = total(w, w->a);
    for (int64_t j = 0; j < w->D; j++) {
        double a = w->a[j], b = all - a, log_p = 0, *law = w->law + j * (L + 1);
        for (int64_t i = 0; i < L; i++)
            log_p += log((b + (double)i) / (all + (double)i));
        for (int64_t c = 0; c <= L; c++) {
            double x = (double)c, rest = (double)(L - c);
            law[c] = exp(log_p) * (x + a) / ((double)L + all);
            if (c < L)
                log_p += log(rest * (a + x) / ((x + 1) * (b + rest - 1)));
        }
    }
}

/* Walker's alias method (Vose 1991): what a cell has too little is filled up by one that has more.
 * Shares are kept times 2^32, because one random word chooses the cell and decides in it. */
static void fill_alias(work *w)
{
    int64_t n = w->cells, small = 0, large = n;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += w->law[i];
    for (int64_t i = 0; i < n; i++) {
        w->share[i] = w->law[i] / sum * (double)n;
        w->other[i] = i;
        if (w->share[i] < 1)
            w->stack[small++] = i;
        else
            w->stack[--large] = i;
    }
    while (small > 0 && large < n) {
        int64_t less = w->stack[--small], more = w->stack[large];
        w->other[less] = more;
        w->share[more] -= 1 - w->share[less];
        if (w->share[more] < 1) {
            large++;
            w->stack[small++] = more;
        }
    }
    /* What rounding leaves over is full. */
    while (small > 0)
        w->share[w->stack[--small]] = 1;
    while (large < n)
        w->share[w->stack[large++]] = 1;
    for (int64_t i = 0; i < n; i++)
        w->share[i] *= 4294967296.0;
}

static void draw(work *w, int64_t repetition)
{
    const prior_values *v = w->v;
    fin_random r;
    fin_random_open(&r, (uint64_t)v->seed, FINI_STREAM_PRIOR,
                    (uint64_t)v->n << 36 | (uint64_t)v->L << 20 | (uint64_t)repetition);
    memset(w->table, 0, (size_t)w->cells * sizeof *w->table);
    for (int64_t i = 0; i < v->n; i++) {
        uint64_t x = (uint64_t)fin_random_word(&r) * (uint64_t)w->cells;
        int64_t cell = (int64_t)(x >> 32);
        w->table[(double)(x & UINT32_MAX) < w->share[cell] ? cell : w->other[cell]]++;
    }
}

/* Exact, over contexts and masked tokens. */
static double cross_entropy(const work *w, const double *a)
{
    double all = (double)w->v->L + total(w, a), sum = 0;
    for (int64_t j = 0; j < w->D; j++)
        for (int64_t c = 0; c <= w->v->L; c++)
            sum -= w->law[j * (w->v->L + 1) + c] * log(((double)c + a[j]) / all);
    return sum;
}

/* ---- learning -------------------------------------------------------------------------------- */

/* The loss at a = exp(u), times n: n log(L + a_0) - sum_jc N_jc log(c + a_j); its gradient in u,
 * and its second derivatives if H is not NULL. */
static double loss(const work *w, const double *u, double *g, double *H)
{
    int64_t D = w->D, L = w->v->L;
    double n = (double)w->v->n, all = (double)L, sum = 0;
    for (int64_t j = 0; j < D; j++)
        all += exp(u[j]);
    for (int64_t j = 0; j < D; j++) {
        double a = exp(u[j]), one = 0, two = 0;
        for (int64_t c = 0; c <= L; c++) {
            double N = w->table[j * (L + 1) + c];
            if (N == 0)
                continue;
            sum -= N * log((double)c + a);
            one += N / ((double)c + a);
            two += N / (((double)c + a) * ((double)c + a));
        }
        g[j] = a * (n / all - one);
        for (int64_t k = 0; k < D && H; k++)
            H[j * D + k] = -n * (a / all) * (exp(u[k]) / all);
        if (H)
            H[j * D + j] += g[j] + a * a * two;
    }
    return sum + n * log(all);
}

static double largest(int64_t n, const double *x)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(x[i]));
    return most;
}

/* The step -(H + damping)^-1 g from u to trial; false if the matrix is not positive definite. */
static bool newton(work *w, double damping)
{
    int64_t D = w->D;
    memcpy(w->C, w->H, (size_t)(D * D) * sizeof *w->C);
    for (int64_t j = 0; j < D; j++) {
        w->C[j * D + j] += damping;
        w->step[j] = -w->g[j];
    }
    if (!fini_hand_cholesky(D, w->C))
        return false;
    fini_hand_solve(D, w->C, w->step);
    double size = largest(D, w->step);
    for (int64_t j = 0; j < D; j++) {
        double to = w->u[j] + w->step[j] * (size > 2 ? 2 / size : 1), truth = log(w->a[j]);
        w->trial[j] = fmin(truth + FAR, fmax(truth - FAR, to));
    }
    return true;
}

/* Newton's method in log a from the true prior, damped where the loss is not convex or does not
 * fall. True if it came to rest at a prior that is neither zero nor infinite. */
static bool learn(work *w)
{
    int64_t D = w->D;
    double n = (double)w->v->n, damping = 0, now;
    for (int64_t j = 0; j < D; j++)
        w->u[j] = log(w->a[j]);
    now = loss(w, w->u, w->g, w->H);
    for (int i = 0; i < STEPS && largest(D, w->g) > 1e-10 * n; i++) {
        bool lower = newton(w, damping);
        double next = lower ? loss(w, w->trial, w->trial_g, NULL) : INFINITY;
        /* At the minimum the last digits of the loss are noise, and the gradient decides. */
        lower = lower && (next < now || (next <= now + 1e-13 * fabs(now) &&
                                         largest(D, w->trial_g) < largest(D, w->g)));
        if (!lower && damping > 1e3 * n)
            break;
        damping = lower ? (damping > 1e-9 * n ? damping / 10 : 0) : fmax(1e-6 * n, damping * 10);
        if (lower) {
            memcpy(w->u, w->trial, (size_t)D * sizeof *w->u);
            now = loss(w, w->u, w->g, w->H);
        }
    }
    for (int64_t j = 0; j < D; j++)
        w->step[j] = w->u[j] - log(w->a[j]);
    return largest(D, w->g) <= 1e-6 * n && largest(D, w->step) < LOST;
}

/* ---- all training sets ----------------------------------------------------------------------- */

static fin_status measure(void *user, fin_result *result, const fin_progress *progress,
                          fin_error *err)
{
    work *w = user;
    const prior_values *v = w->v;
    fini_average divergence = {0};
    int64_t lost = 0;
    fill_law(w);
    fill_alias(w);
    double n = (double)v->n, bayes = cross_entropy(w, w->a);
    for (int64_t i = 0; i < v->repetitions; i++) {
        FINI_TRY(fini_go_on(progress, "learning priors", (double)i, (double)v->repetitions, err));
        draw(w, i);
        lost += !learn(w);
        for (int64_t j = 0; j < w->D; j++)
            w->trial[j] = exp(w->u[j]);
        fini_average_add(&divergence, cross_entropy(w, w->trial) - bayes);
    }
    fini_result_average(result, "divergence", &divergence, 1);
    fini_result_average(result, "scaled", &divergence, n);
    fini_result_exact(result, "limit", (double)w->D / 2);
    fini_result_exact(result, "bayes", bayes);
    fini_result_share(result, "lost", NULL, lost, v->repetitions);
    return FIN_OK;
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const prior_values *v = values;
    work w = {.v = v, .D = v->outcomes, .cells = v->outcomes * (v->L + 1)};
    const fini_lab_frame frame = {&w.arena, "the tables of a prior", lay_out, measure};
    return fini_lab_frame_run(&frame, &w, result, progress, err);
}

const fin_command fini_command_prior = {
    .name = "prior",
    .summary = "price of a prior that was learnt from n sequences with a masked token",
    .revision = 1,
    .size = sizeof(prior_values),
    .words = fini_no_words,
    .outputs = outputs,
    .tables = FINI_TABLE_ONLY(prior_table),
    .run = run,
};
