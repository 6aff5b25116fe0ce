/* Labels of sequences of a family, and what the posterior says of them. With z's posterior mean m and
 * covariance C,
 *
 *     label <A, z> + noise     prediction <A, m>, variance A'C A + label_noise     (families that can project)
 *     label z, a class         prediction: the posterior probabilities             (families with finitely many z) */
#include "encoder/corpus.h"

#include "family/family.h"
#include "math/small.h"

#include <math.h>

fin_status fini_corpus_direction(fin_corpus *c, fin_error *err)
{
    int64_t size = c->latent->shape.latent;
    FINI_ROOM(err, "the label's direction", c->direction, size, 1);
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

void fini_corpus_label_bayes(const fin_corpus *c, const fini_example *e, const double *posterior)
{
    double mean, variance;
    if (!c->direction) {
        fini_corpus_answer_classes(c->latent->settings.concepts, posterior, e->bayes);
        return;
    }
    c->latent->family->project(c->latent, c->direction, posterior, &mean, &variance);
    *e->variance = variance + c->settings.label_noise;
    fini_corpus_answer(c, &mean, *e->variance, e->bayes);
}

/* ---- the posterior's mean -------------------------------------------------------------------- */

int64_t fini_corpus_posterior_mean(const fin_corpus *c, const double *posterior, double *mean)
{
    if (!c->latent || c->posterior == 0)
        return 0;
    if (c->latent->family->posterior_mean)
        return c->latent->family->posterior_mean(c->latent, posterior, mean);
    for (int64_t j = 0; mean && j < c->posterior; j++)
        mean[j] = posterior[j]; /* probabilities of z are its mean, one-hot */
    return c->posterior;
}
