/* Labels of sequences of a family, and what the posterior says of them. With z's posterior mean m and
 * covariance C,
 *
 *     label <A, z> + noise     prediction <A, m>, variance A'C A + label_noise
 *         concept, mean        C: that of a row of Z for each of its dv rows, which are independent
 *         counts               a Dirichlet: m = a / a0, C = (diag(m) - m m') / (a0 + 1)
 *     label z, a class         prediction: the posterior probabilities     (concepts, finite) */
#include "encoder/corpus.h"

#include "family/family.h"
#include "math/small.h"

#include <math.h>

bool fini_corpus_by_class(const fin_latent *latent)
{
    return latent->family == &fini_family_concepts || latent->family == &fini_family_finite;
}

fin_status fini_corpus_direction(fin_corpus *c, fin_error *err)
{
    int64_t size = c->latent->shape.latent;
    if (!(c->direction = fini_alloc_array(size, sizeof *c->direction)))
        return fini_fail_memory(err, (size_t)size * sizeof *c->direction, "the label's direction");
    fin_random r;
    fin_random_open(&r, c->seed, FINI_STREAM_CORPUS_DIRECTION, 0);
    fin_random_sphere(&r, size, c->direction);
    return FIN_OK;
}

void fini_corpus_label(const fin_corpus *c, const fini_example *e, const double *z)
{
    if (!c->direction) {
        e->targets[0] = z[0];
        return;
    }
    fin_random r;
    fin_random_open(&r, c->seed, FINI_STREAM_CORPUS_LABEL, e->number);
    e->targets[0] = fini_dot_in_order(c->latent->shape.latent, c->direction, z) +
                    sqrt(c->settings.label_noise) * fin_random_normal(&r);
}

/* <A, a / a0> and its variance, for a Dirichlet law with parameters a. */
static void read_counts(const fin_corpus *c, const double *a, double *mean, double *variance)
{
    double total = 0, first = 0, second = 0;
    for (int64_t j = 0; j < c->latent->shape.outcomes; j++) {
        total += a[j];
        first += c->direction[j] * a[j];
        second += c->direction[j] * c->direction[j] * a[j];
    }
    *mean = first / total;
    *variance = fmax(second / total - *mean * *mean, 0) / (total + 1);
}

/* <A, mean>, and the sum of A_c'C A_c over the dv rows of A. */
static void read_gauss(const fin_corpus *c, const double *posterior, double *mean, double *variance)
{
    int64_t D = c->latent->shape.features, dv = c->latent->shape.dv;
    const double *C = posterior + dv * D;
    *mean = fini_dot_in_order(dv * D, c->direction, posterior);
    *variance = 0;
    for (int64_t row = 0; row < dv; row++) {
        const double *a = c->direction + row * D;
        for (int64_t i = 0; i < D; i++)
            *variance += a[i] * fini_dot_in_order(D, C + i * D, a);
    }
    *variance = fmax(*variance, 0);
}

void fini_corpus_label_bayes(const fin_corpus *c, const fini_example *e, const double *posterior)
{
    double mean, variance;
    if (!c->direction) {
        fini_corpus_answer_classes(c->latent->settings.concepts, posterior, e->bayes);
        return;
    }
    if (c->latent->family == &fini_family_counts)
        read_counts(c, posterior, &mean, &variance);
    else
        read_gauss(c, posterior, &mean, &variance);
    *e->variance = variance + c->settings.label_noise;
    fini_corpus_answer(c, &mean, *e->variance, e->bayes);
}

/* ---- the posterior's mean -------------------------------------------------------------------- */

int64_t fini_corpus_posterior_mean(const fin_corpus *c, const double *posterior, double *mean)
{
    if (!c->latent || c->posterior == 0)
        return 0;
    const fin_latent_shape *shape = &c->latent->shape;
    const fin_family *family = c->latent->family;
    int64_t from = 0, size = c->posterior; /* probabilities of z are its mean, one-hot */
    double scale = 1;
    if (c->latent->family->latent_gaussian)
        size = shape->dv * shape->features;
    if (family == &fini_family_sphere) {
        from = shape->dk * shape->dk;
        size = c->posterior - from; /* 0: there is no mean of rotations of more than 3 dimensions */
    }
    if (mean && (family == &fini_family_counts || family == &fini_family_urn)) {
        double total = 0;
        for (int64_t j = 0; j < size; j++)
            total += posterior[j];
        scale = total > 0 ? 1 / total : 0;
    }
    for (int64_t j = 0; mean && j < size; j++)
        mean[j] = scale * posterior[from + j];
    return size;
}
