/* Attention as it suits a family of exchangeable tokens: cme with the family's own prior and noise, with which it is
 * the posterior mean wherever that is linear in the values; softmax at the temperature that is best for this length,
 * unless one is given. */
#include "command/latent.h"

#include "finetti/math.h"
#include "math/small.h"

#include <math.h>
#include <string.h>

enum { SEARCH = 2000 }; /* samples of the search */

typedef struct search {
    const fin_latent *latent;
    fin_cross_settings *cross;
    fin_risk_settings few;
    int64_t L;
    fin_status status;
    fin_error err;
} search;

static double risk_at(double log_temperature, void *user)
{
    search *s = user;
    fin_estimate risk;
    s->cross->temperature = exp(log_temperature);
    if (!s->status)
        s->status = fin_latent_risk_cross(s->latent, s->cross, s->L, &s->few, NULL, &risk, &s->err);
    return s->status ? INFINITY : risk.value;
}

/* All temperatures see the same draws. */
static fin_status search_temperature(const fin_latent *latent, int64_t L,
                                     const fin_risk_settings *how, fin_cross_settings *cross,
                                     fin_error *err)
{
    double where, least;
    search s = {.latent = latent, .cross = cross, .few = *how, .L = L};
    s.few.samples = how->samples < SEARCH ? how->samples : SEARCH;
    fin_status status = fini_brent(risk_at, &s, -7, 9, 1e-3, &where, &least, err);
    if (s.status) /* the reason, not what the search made of it */
        return fini_fail(err, s.status, "%s", s.err.message);
    cross->temperature = exp(where);
    return status;
}

fin_status fini_latent_form(const fini_latent_values *v, const fin_latent *latent, int form,
                            fin_result *result, const fin_progress *progress, fin_error *err)
{
    static const char *const names[] = {"cme", "softmax", "nw"};
    bool softmax = form == FIN_CROSS_SOFTMAX, given = !fin_is_auto(v->best.temperature);
    bool searched = softmax && !given && v->own.L > 1; /* one token has all the weight at any */
    fin_cross_settings cross;
    fin_estimate risk;
    if (v->own.L == 0 && form != FIN_CROSS_CME) {
        fini_result_note(result, "%s: it needs a token", names[form]);
        return FIN_OK;
    }
    fin_latent_cross(latent, form, &cross);
    if (softmax && given)
        cross.temperature = v->best.temperature;
    if (searched)
        FINI_TRY(search_temperature(latent, v->own.L, &v->risk, &cross, err));
    FINI_TRY(fin_latent_risk_cross(latent, &cross, v->own.L, &v->risk, progress, &risk, err));
    fini_result_flagged(result, names[form], &risk);
    if (searched || (softmax && given))
        fini_result_scalar(result, "temperature", cross.temperature, 0, FIN_HOW_DERIVED, 0);
    return FIN_OK;
}
