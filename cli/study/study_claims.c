/* Claims and their verdicts, as a table that fits into 120 columns and as JSON. */
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MARGIN = 0, VERDICT = 8, STATEMENT = 52, MEASURED = 28, EXPECTED = 24 };

fin_status study_claims_add(void *user, const fin_claim *claim, fin_error *err)
{
    study_claims *claims = user;
    int verdict = (int)claim->verdict;
    bool known = verdict >= 0 && verdict < STUDY_VERDICTS;
    json_t *row = json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:s}", "id", claim->id, "statement",
        claim->statement, "source", claim->source, "quantity", claim->quantity, "expected",
        claim->expected, "figure", claim->figure, "how", claim->how, "value",
        cli_json_number(claim->value), "low", cli_json_number(claim->low), "high",
        cli_json_number(claim->high), "verdict", fin_verdict_name(claim->verdict));
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

/* ---- text ----------------------------------------------------------------------------------- */

static double number_of(const json_t *claim, const char *name)
{
    const json_t *value = json_object_get(claim, name);
    const char *text = json_string_value(value);
    if (!text)
        return json_number_value(value);
    return strcmp(text, "inf") == 0 ? INFINITY : strcmp(text, "-inf") == 0 ? -INFINITY : NAN;
}

/* A time differs from run to run. */
static bool is_time(const json_t *claim)
{
    return strstr(study_json_text(claim, "how"), fin_how_name(FIN_HOW_CLOCK)) != NULL;
}

/* "0.967 [0.833, 0.994]"; a number that is exact, or as good as that, stands alone. Times go to
 * terminals only, so that outputs can be compared; --json has them. */
static void measured(const json_t *claim, char *buffer, size_t size)
{
    double value = number_of(claim, "value");
    char low[32], high[32];
    snprintf(low, sizeof low, "%.4g", number_of(claim, "low"));
    snprintf(high, sizeof high, "%.4g", number_of(claim, "high"));
    if (isnan(value))
        snprintf(buffer, size, "%s", study_json_text(claim, "how"));
    else if (is_time(claim) && !isatty(STDOUT_FILENO))
        snprintf(buffer, size, "(a time)");
    else if (strcmp(low, high) == 0)
        snprintf(buffer, size, "%.6g", value);
    else
        snprintf(buffer, size, "%.4g [%s, %s]", value, low, high);
}

static void print_row(const char *verdict, const char *statement, const char *value,
                      const char *expected)
{
    static const int widths[] = {MARGIN, VERDICT, STATEMENT, MEASURED, EXPECTED};
    const char *cells[] = {"", verdict, statement, value, expected};
    study_print_cells(cells, widths, 5);
}

void study_claims_print(const study_claims *claims, bool header)
{
    size_t i;
    const json_t *claim;
    if (header && claims->total > 0)
        print_row("verdict", "claim", "measured [95 % interval]", "expected");
    json_array_foreach(claims->list, i, claim)
    {
        char value[512];
        const char *verdict = study_json_text(claim, "verdict");
        bool fails = strcmp(verdict, fin_verdict_name(FIN_VERDICT_FAILS)) == 0;
        measured(claim, value, sizeof value);
        print_row(fails ? "FAILS" : verdict, study_json_text(claim, "statement"), value,
                  study_json_text(claim, "expected"));
    }
}

void study_claims_sum(const study_claims *claims)
{
    char text[64];
    printf("%s: ", study_plural(claims->total, "claim", text, sizeof text));
    int holds = claims->count[FIN_VERDICT_HOLDS], fails = claims->count[FIN_VERDICT_FAILS];
    printf("%d %s", holds, holds == 1 ? "holds" : "hold");
    if (fails)
        printf(", %d %s", fails, fails == 1 ? "FAILS" : "FAIL");
    if (claims->count[FIN_VERDICT_VAGUE])
        printf(", %d vague", claims->count[FIN_VERDICT_VAGUE]);
    if (claims->count[FIN_VERDICT_UNTESTED])
        printf(", %d untested", claims->count[FIN_VERDICT_UNTESTED]);
    putchar('\n');
}

bool study_claims_hold(const study_claims *claims, bool untested_is_fine)
{
    int fine = claims->count[FIN_VERDICT_HOLDS];
    if (untested_is_fine)
        fine += claims->count[FIN_VERDICT_UNTESTED];
    return fine == claims->total;
}
