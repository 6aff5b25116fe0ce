/* Probabilities made sharper or softer: one number for a whole fit.
 *
 * An average over members of an ensemble is less sure than each of them, and a model that was
 * fitted too closely is too sure. Both are mended by one power t (one over the temperature of Guo
 * et al., ICML 2017), which keeps the order of the classes:
 *
 *     p'_c = p_c^t / sum_k p_k^t
 *
 * t makes the log loss of out-of-fold predictions smallest, with a prior that it is 1; below 1 it goes
 * only if the predictions say so clearly. Sums
 * over bags go by blocks, so that t is the same for any number of threads and of processes. */
#include "bags/judge.h"

#include <float.h>
#include <string.h>

enum { POINTS = 17, ROUNDS = 7 };

/* log t is normal with mean 0 and this precision. A bag says about log t at most 0.44 (the variance
 * of the log odds of two classes, p (1 - p) log^2(p / (1 - p))), often half of it: twenty bags. */
static const double prior = 4;
/* Log likelihood that softer probabilities (t < 1) must gain, which is more than chance gives to one
 * parameter. Fits to four fifths of the bags are a little worse than those to all, and look too sure. */
static const double least_gain = 2;

/* ---- finding it ------------------------------------------------------------------------------ */

/* Logarithms, less the largest one. What is impossible has the probability that log losses have. */
static void take_logarithms(int64_t n, int64_t classes, const double *omega, double *p)
{
    for (int64_t i = 0; i < n; i++) {
        double *l = p + i * classes, most = -INFINITY;
        if (!(omega[i] > 0))
            continue;
        for (int64_t c = 0; c < classes; c++) {
            l[c] = log(l[c] < DBL_EPSILON ? DBL_EPSILON : l[c]); /* NaN stays */
            most = l[c] > most ? l[c] : most;
        }
        for (int64_t c = 0; c < classes; c++)
            l[c] -= most;
    }
}

typedef struct search {
    const fin_bags *bags;
    int64_t classes;
    const double *labels, *omega, *l; /* own bags */
    fin_sum sum;
    const double *t;       /* (POINTS) */
    double total, squares; /* of omega over all bags */
} search;

/*     loss_i(t) = -t l_y + log sum_c exp(t l_c), for all t at once; then omega and its square */
static void add_bag(const void *user, int64_t i, double *sums)
{
    const search *s = user;
    const double *t = s->t, *l = s->l + i * s->classes, omega = s->omega[i];
    if (!(omega > 0))
        return;
    for (int k = 0; k < POINTS; k++) {
        double z = 0;
        for (int64_t c = 0; c < s->classes; c++)
            z += exp(t[k] * l[c]);
        sums[k] += omega * (log(z) - t[k] * l[(int64_t)s->labels[i]]);
    }
    sums[POINTS] += omega;
    sums[POINTS + 1] += omega * omega;
}

static fin_status losses(search *s, const double *t, double *loss, fin_error *err)
{
    double sums[POINTS + 2];
    s->t = t;
    fin_status status =
        fini_bags_sum(s->bags, s->sum, fin_threads_get(), POINTS + 2, add_bag, s, sums, err);
    s->total = sums[POINTS];
    s->squares = sums[POINTS + 1];
    memcpy(loss, sums, POINTS * sizeof *loss);
    return status;
}

/* The best of a grid of log t, and then of finer ones between its neighbours: the loss is convex in
 * t, but need not be so in log t. The middle is kept where nothing is better. */
fin_status fini_sharpness(const fin_bags *bags, int64_t classes, const double *labels,
                          const double *omega, double *probability, fin_sum sum, double *sharpness,
                          fin_error *err)
{
    search s = {bags, classes, labels, omega, probability, sum, NULL, 0, 0};
    const double widest = log(FINI_SHARPEST);
    double center = 0, step = 2 * widest / (POINTS - 1), plain = 0, least = 0;
    take_logarithms(bags->n, classes, omega, probability);
    for (int round = 0; round < ROUNDS; round++, step /= POINTS / 2) {
        double u[POINTS], t[POINTS], loss[POINTS];
        int best = POINTS / 2;
        for (int k = 0; k < POINTS; k++) {
            u[k] = fmax(-widest, fmin(widest, center + (k - POINTS / 2) * step));
            t[k] = exp(u[k]);
        }
        FINI_TRY(losses(&s, t, loss, err));
        double pull = prior * s.squares / s.total;
        for (int k = 0; k < POINTS; k++)
            loss[k] += pull * u[k] * u[k] / 2;
        if (!isfinite(loss[best]))
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "there are no finite predictions to calibrate probabilities by; "
                             "calibrate=no leaves them as they are");
        for (int k = 0; k < POINTS; k++)
            best = loss[k] < loss[best] ? k : best;
        center = u[best];
        plain = round ? plain : loss[POINTS / 2];
        least = loss[best];
    }
    bool clear = plain - least > least_gain * s.squares / s.total;
    *sharpness = center > 0 || clear ? exp(center) : 1;
    return FIN_OK;
}

/* ---- applying it ----------------------------------------------------------------------------- */

/* Powers of p_c / max p. What is less than the largest stays less, however close it is.
 *
 * The deviation is carried over by the derivative of a class against the rest in fixed proportions,
 *     dp' / dp = t p' (1 - p') / (p (1 - p)),
 * and is not more than that of a number in [0, 1] with this mean can be. */
static void sharpen_bag(double t, int64_t classes, double *p, double *sd)
{
    const double below_one = 1 - DBL_EPSILON / 2;
    double most = 0, sum = 0;
    for (int64_t c = 0; c < classes; c++) {
        most = p[c] > most ? p[c] : most;
        double rest = p[c] * (1 - p[c]);
        if (sd)
            sd[c] = rest > 0 ? sd[c] * t / rest : 0;
    }
    if (!(most > 0))
        return; /* not a distribution: there is nothing to sharpen */
    for (int64_t c = 0; c < classes; c++) {
        p[c] = p[c] < most ? fmin(pow(fmax(p[c], 0) / most, t), below_one) : 1;
        sum += p[c];
    }
    for (int64_t c = 0; c < classes; c++) {
        p[c] /= sum;
        double rest = p[c] * (1 - p[c]);
        if (sd)
            sd[c] = fmin(sd[c] * rest, sqrt(rest));
    }
}

void fini_sharpen(double sharpness, int64_t n, int64_t classes, double *mean, double *sd)
{
    for (int64_t i = 0; i < n && sharpness != 1; i++)
        sharpen_bag(sharpness, classes, mean + i * classes, sd ? sd + i * classes : NULL);
}
