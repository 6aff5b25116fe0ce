/* Claims and their verdicts, as records. */
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* "0.967 [0.833, 0.994]"; a number that is exact, or as good as that, stands alone. */
static void measured(const fin_claim *claim, char *buffer, size_t size)
{
    char low[32], high[32];
    snprintf(low, sizeof low, "%.4g", claim->low);
    snprintf(high, sizeof high, "%.4g", claim->high);
    if (isnan(claim->value))
        snprintf(buffer, size, "%s", claim->how);
    else if (strcmp(low, high) == 0)
        snprintf(buffer, size, "%.6g", claim->value);
    else
        snprintf(buffer, size, "%.4g [%s, %s]", claim->value, low, high);
}

fin_status study_claims_add(void *user, const fin_claim *claim, fin_error *err)
{
    study_claims *claims = user;
    int verdict = (int)claim->verdict;
    bool known = verdict >= 0 && verdict < STUDY_VERDICTS;
    /* A time differs from run to run. */
    bool time = !isnan(claim->value) && strstr(claim->how, fin_how_name(FIN_HOW_CLOCK)) != NULL;
    char text[512];
    measured(claim, text, sizeof text);
    json_t *row =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:s, s:s, s:b}", "id",
                  claim->id, "statement", claim->statement, "source", claim->source, "quantity",
                  claim->quantity, "expected", claim->expected, "figure", claim->figure, "how",
                  claim->how, "value", cli_json_number(claim->value), "low",
                  cli_json_number(claim->low), "high", cli_json_number(claim->high), "verdict",
                  fin_verdict_name(claim->verdict), "measured", text, "is_time", time);
    if (!row || json_array_append_new(claims->list, row))
        return cli_status(err, FIN_ERR_FORMAT,
                          "the claims cannot be kept: not enough memory, or text that is no UTF-8");
    claims->total++;
    claims->count[known ? verdict : FIN_VERDICT_UNTESTED]++;
    return FIN_OK;
}

fin_status study_claims_read(fin_store *store, const char *study, study_claims *claims,
                             fin_error *err)
{
    claims->list = json_array();
    if (!claims->list)
        return cli_status(err, FIN_ERR_MEMORY, "not enough memory for the claims");
    return fin_store_verdicts(store, study, study_claims_add, claims, err);
}

json_t *study_claims_sum(const study_claims *claims)
{
    return json_pack("{s:i, s:i, s:i, s:i, s:i}", "total", claims->total, "holds",
                     claims->count[FIN_VERDICT_HOLDS], "fails", claims->count[FIN_VERDICT_FAILS],
                     "vague", claims->count[FIN_VERDICT_VAGUE], "untested",
                     claims->count[FIN_VERDICT_UNTESTED]);
}

bool study_claims_hold(const study_claims *claims, bool untested_is_fine)
{
    int fine = claims->count[FIN_VERDICT_HOLDS];
    if (untested_is_fine)
        fine += claims->count[FIN_VERDICT_UNTESTED];
    return fine == claims->total;
}
