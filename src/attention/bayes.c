/* bayes: w = softmax(lam chi + c |X|^2).
 *
 * With k = k* and (lam, c) of the task this is the posterior of the location, P(J = l | X). With
 * c = 0 it is softmax attention: on tasks whose relevant token differs only in its mean the two are
 * the same thing. lam = inf is the argmax. */
#include "attention/form.h"

#include <math.h>

#define FIELDS(F, C)                                                                               \
    F(double, lam, FIN_AUTO, 0, INFINITY, "scale of the scores; auto = the task's posterior")      \
    F(double, c, FIN_AUTO, -1e200, 1e200, "weight of |X|^2; auto = the task's posterior")
#define FIN_TABLE_STRUCT fin_form_settings
FIN_TABLE(static, bayes_settings, "bayes", FIELDS);

static void weights(const fin_form_settings *s, int64_t n, const int64_t *offsets,
                    const double *chi, const double *norm2, double *w)
{
    if (isinf(s->lam))
        fini_hardmax_weights(n, offsets, chi, w);
    else
        fini_softmax_weights(s->lam, s->c, n, offsets, chi, norm2, w);
}

static void backward(const fin_form_settings *s, const fini_pass *t)
{
    if (isinf(s->lam))
        fini_form_hardmax.backward(s, t);
    else
        fini_softmax_backward(s, t);
}

static void scores(const fin_form_settings *s, double *lam, double *c)
{
    *lam = s->lam;
    *c = isinf(s->lam) ? 0 : s->c;
}

const fin_form fini_form_bayes = {
    .name = "bayes",
    .summary = "w = softmax(lam chi + c |X|^2): the location's posterior for the task's lam and c",
    .settings = &bayes_settings,
    .needs_norm2 = 1,
    .weights = weights,
    .backward = backward,
    .scores = scores,
};
