/* Private face of the task module: the row of the table of tasks, and the object. */
#ifndef FINI_TASK_H
#define FINI_TASK_H

#include "base/base.h"
#include "finetti/task.h"
#include "random/streams.h"

/* A task is: how a relevant token differs from the others, and how relevance is decided. */
struct fin_task_kind {
    const char *name, *summary;
    const fin_settings *settings;
    /* Works out "auto" and fills mu and gamma of the model. */
    fin_status (*resolve)(fin_task_settings *settings, fin_error *err);
    /* How relevance is decided. NULL: m places, uniformly, and their tokens are then made different:
     * N(mu k*, gamma^2 I). Else all tokens are N(0, I) (resolve sets mu = 0, gamma = 1), and the m largest of
     * odds(X.k*) + Gumbel noise are relevant: softmax sampling without replacement. */
    double (*odds)(const fin_task_settings *s, double chi_star);
    /* Where odds are lam X.k*: this lam. inf: no noise, the largest X.k* are relevant. NULL: they are not. */
    double (*lam)(const fin_task_settings *s);
};

struct fin_task {
    const fin_task_kind *kind;
    fin_task_settings settings; /* resolved */
    uint64_t seed;
    int64_t longest, shortest, lengths;
    double length_mean, length_variance;
    int64_t *length;          /* (lengths): its values, ascending not required */
    double *length_cumulated; /* (lengths): P(L among the first i+1 values); last is 1 */
    double *k_star, *v_star;  /* (d, padded to a multiple of 8 by zeros), or NULL */
    fini_arena arena;
};

/* Do the largest odds decide, without noise? */
static inline bool fini_task_certain(const fin_task *task)
{
    return task->kind->lam && isinf(task->kind->lam(&task->settings));
}

/* What follows from the settings of a task, without making it: s gets its "auto" worked out and the ends
 * of the law of L, *law the law's moments. */
typedef struct fini_length_law {
    int64_t shortest, longest;
    double mean, variance;
} fini_length_law;
fin_status fini_task_settle(const fin_task_kind *kind, fin_task_settings *s,
                            const fin_lengths *lengths, fini_length_law *law, fin_error *err);

/* Threads for work on this many numbers: one, if waking others would cost more than it gains. */
int fini_threads_for(double numbers);

/* The length of a sample, from a stream of that seed. */
int64_t fini_length(const fin_task *task, uint64_t seed, uint32_t stream, uint64_t sample);

/* Chooses the relevant tokens of one sample. For a uniform task begin() has the answer; for one with
 * odds, every token is offered in order with its X.k* and X.v*. */
typedef struct fini_relevant {
    double score, z; /* z: X.v* */
    int64_t location;
} fini_relevant;

typedef struct fini_selector {
    const fin_task *task;
    fin_random random;
    bool certain;        /* the largest odds are relevant, without noise */
    int64_t count;       /* kept so far, at most m */
    fini_relevant *kept; /* (m) */
} fini_selector;

void fini_selector_begin(fini_selector *s, const fin_task *task, uint64_t seed, uint32_t stream,
                         uint64_t sample, int64_t L);
void fini_selector_offer(fini_selector *s, int64_t place, double chi_star, double z_star);
/* Sorts the locations; returns sum of z plus noise. */
double fini_selector_end(fini_selector *s);

/* Draws samples first .. first + n - 1, threads sharing them: `draw` makes one, whose tokens begin at
 * row `start`, and returns its output. `numbers`: about how many normals a token costs. */
typedef double fini_draw_sample(const void *context, uint64_t sample, int64_t start, int64_t L,
                                fini_selector *selector);
typedef struct fini_samples {
    uint64_t first;
    int64_t n;
    const int64_t *offsets; /* (n + 1), of the tokens */
    double *y;              /* (n) their outputs, or NULL */
    int64_t *location;      /* (n, m) their relevant places, or NULL */
} fini_samples;
fin_status fini_each_sample(const fin_task *task, const fini_samples *samples, double numbers,
                            fini_draw_sample *draw, const void *context, fin_error *err);

/* k = kappa e1 + eta e2 + a3 e3, v = theta e1 + nu e2 + b3 e3 + b4 e4 with e1 = k*, e2 = v*. */
typedef struct fini_basis {
    double a3, b3, b4;
} fini_basis;
fin_status fini_basis_of(const fin_overlaps *overlaps, int64_t d, fini_basis *frame,
                         fin_error *err);

/* |X|^2 from four coordinates (scale: of the rest) and a chi-square. */
double fini_norm2(int64_t d, const double e[4], double scale, fin_random *norms);

/* FIN_ERR_ARGUMENT if no unit vectors of R^d have these overlaps: their Gram matrix is not
 * positive, or it needs more dimensions. */
fin_status fini_overlaps_realisable(const fin_overlaps *overlaps, int64_t d, fin_error *err);

#endif
