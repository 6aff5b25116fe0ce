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
    /* A time differs from run to run. */
    bool time = !isnan(claim->value) && strstr(claim->how, fin_how_name(FIN_HOW_CLOCK)) != NULL;
    char text[512];
    measured(claim, text, sizeof text);
    json_t *row = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:s, s:s, s:b, s:s, s:s, s:s}",
        "id", claim->id, "kind", fin_kind_name(claim->kind), "statement", claim->statement,
        "source", claim->source, "quantity", claim->quantity, "expected", claim->expected, "figure",
        claim->figure, "how", claim->how, "value", cli_json_number(claim->value), "low",
        cli_json_number(claim->low), "high", cli_json_number(claim->high), "verdict",
        fin_verdict_name(claim->verdict), "measured", text, "is_time", time, "fails_if",
        claim->fails_if, "known", claim->known, "needed", claim->needed);
    if (!row || json_array_append_new(claims->list, row))
        return cli_status(err, FIN_ERR_FORMAT,
                          "the claims cannot be kept: not enough memory, or text that is no UTF-8");
    claims->total++;
    claims->count[claim->kind][claim->verdict]++;
    claims->fine += fin_claim_fine(claim);
    claims->known += claim->known[0] != '\0';
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

void study_claims_join(study_claims *sum, const study_claims *more)
{
    sum->total += more->total;
    sum->known += more->known;
    sum->fine += more->fine;
    for (int k = 0; k < FIN_KINDS; k++)
        for (int v = 0; v < FIN_VERDICTS; v++)
            sum->count[k][v] += more->count[k][v];
}

int study_claims_count(const study_claims *claims, fin_verdict verdict)
{
    int count = 0;
    for (int k = 0; k < FIN_KINDS; k++)
        count += claims->count[k][verdict];
    return count;
}

static json_t *sum_of(const char *kind, const int *count)
{
    json_t *sum = json_pack("{s:s}", "kind", kind);
    int total = 0;
    for (int v = 0; v < FIN_VERDICTS; v++) {
        json_object_set_new(sum, fin_verdict_name((fin_verdict)v), json_integer(count[v]));
        total += count[v];
    }
    json_object_set_new(sum, "total", json_integer(total));
    return sum;
}

json_t *study_claims_sum(const study_claims *claims)
{
    static const char *const titles[] = {
#define TITLE(name, word, title) title,
        FIN_KIND_LIST(TITLE)
#undef TITLE
    };
    json_t *kinds = json_array();
    int all[FIN_VERDICTS] = {0};
    for (int k = 0; k < FIN_KINDS; k++) {
        int some = 0;
        for (int v = 0; v < FIN_VERDICTS; v++) {
            all[v] += claims->count[k][v];
            some += claims->count[k][v];
        }
        if (some)
            json_array_append_new(kinds, sum_of(titles[k], claims->count[k]));
    }
    json_t *sum = sum_of("all", all);
    json_object_del(sum, "kind");
    json_object_set_new(sum, "known", json_integer(claims->known));
    json_object_set_new(sum, "kinds", kinds);
    return sum;
}

bool study_claims_hold(const study_claims *claims, bool untested_is_fine)
{
    int fine = claims->fine;
    if (untested_is_fine)
        fine += study_claims_count(claims, FIN_VERDICT_UNTESTED);
    return fine == claims->total;
}
