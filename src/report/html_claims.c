/* The tables of claims: verdict, statement and source, what was measured, what was expected; and the claims of a chapter's story. */
#include "report/html.h"

#include "study/claim.h"

#include <math.h>
#include <string.h>

static void add_number(fini_page *page, double number, int digits)
{
    if (isnan(number))
        fini_page_add(page, "\xe2\x80\x93"); /* a dash */
    else
        fini_page_short(page, number, digits);
}

static void add_verdict(fini_page *page, fin_verdict verdict)
{
    static const char *const signs[FIN_VERDICTS] = {"\xe2\x97\x8b", "\xe2\x9c\x93", "\xe2\x9c\x97",
                                                    "?"};
    const char *name = fin_verdict_name(verdict);
    fini_page_form(page,
                   "<span class=\"verdict %-s\"><span aria-hidden=\"true\">%-s</span> %-s</span>",
                   name, signs[verdict], name);
}

static void add_measured(fini_page *page, const fin_claim *claim)
{
    fini_page_add(page, "<span class=\"number\">");
    add_number(page, claim->value, 4);
    fini_page_add(page, "</span>");
    char low[64], high[64]; /* an interval that shows only rounding is none */
    fini_print_double(claim->low, 4, low, sizeof low);
    fini_print_double(claim->high, 4, high, sizeof high);
    if (claim->low < claim->high && strcmp(low, high) != 0) {
        fini_page_add(page, " <span class=\"interval\" title=\"95 % interval\">[");
        add_number(page, claim->low, 4);
        fini_page_add(page, ", ");
        add_number(page, claim->high, 4);
        fini_page_add(page, "]</span>");
    }
    if (claim->quantity[0])
        fini_page_form(page, "<br><code>%s</code>", claim->quantity);
}

/* A store has plain text: "+-" becomes a sign here. */
static void add_expected(fini_page *page, const char *expected)
{
    fini_page escaped = {NULL, 0, 0, false};
    size_t from = 0;
    fini_page_xml(&escaped, expected);
    for (size_t i = 0; i + 1 < escaped.size; i++)
        if (memcmp(escaped.text + i, "+-", 2) == 0) {
            fini_page_bytes(page, escaped.text + from, i - from);
            fini_page_add(page, "\xc2\xb1");
            from = i + 2;
            i++;
        }
    if (from < escaped.size)
        fini_page_bytes(page, escaped.text + from, escaped.size - from);
    page->failed = page->failed || escaped.failed;
    fini_page_close(&escaped);
}

static const fini_claim_plan *plan_of(const fin_study *study, const char *id)
{
    for (int i = 0; study && i < study->claim_count; i++)
        if (strcmp(study->claims[i].id, id) == 0)
            return &study->claims[i];
    return NULL;
}

typedef struct adder {
    fini_html *html;
    const fin_study *study; /* NULL: it cannot be read back */
} adder;

/* An item in the story of a chapter, with a link to its row. */
static void add_item(fini_page *page, const fin_claim *claim)
{
    fini_page_add(page, "<li>");
    add_verdict(page, claim->verdict);
    fini_page_form(page, " %s", claim->statement);
    if (claim->known[0] && claim->verdict != FIN_VERDICT_HOLDS)
        fini_page_form(page, " <span class=\"known\">%s.</span>", claim->known);
    fini_page_add(page, " <small>measured ");
    add_number(page, claim->value, 4);
    fini_page_add(page, ", expected ");
    add_expected(page, claim->expected);
    fini_page_form(page, " \xc2\xb7 <a href=\"#claim-%1s.%1s\">all of it</a></small></li>\n",
                   claim->study, claim->id);
}

/* Key claims stand in the story of their chapter, and what does not hold stands in that of its study. */
static void add_to_story(const adder *a, const fin_claim *claim)
{
    const fini_claim_plan *plan = plan_of(a->study, claim->id);
    fini_chapter *chapter =
        fini_chapter_key(&a->html->chapters, a->study, "claims", claim->id, plan ? plan->key : "");
    bool holds = claim->verdict == FIN_VERDICT_HOLDS;
    if (!holds && !chapter && claim->kind != FIN_KIND_CHECK)
        chapter = fini_chapter_of(&a->html->chapters, a->study);
    if (chapter)
        add_item(holds ? &chapter->claims : &chapter->failed, claim);
}

static fin_status add_claim(void *user, const fin_claim *claim, fin_error *err)
{
    const adder *a = user;
    fini_html *html = a->html;
    fini_page *page = &html->rows[claim->kind][claim->verdict];
    html->claim_count++;
    html->verdicts[claim->kind][claim->verdict]++;
    add_to_story(a, claim);
    fini_page_form(page, "<tr data-verdict=\"%-s\" data-study=\"%s\" id=\"claim-%1s.%1s\"><td>",
                   fin_verdict_name(claim->verdict), claim->study, claim->study, claim->id);
    add_verdict(page, claim->verdict);
    fini_page_form(
        page,
        "</td><th scope=\"row\">%s<small>%s%-s<a href=\"#study-%1s\">%s</a> \xc2\xb7 %s</small>",
        claim->statement, claim->source, claim->source[0] ? " \xc2\xb7 " : "", claim->study,
        claim->study, claim->id);
    if (claim->fails_if[0])
        fini_page_form(page, "<small>fails if %s</small>", claim->fails_if);
    if (claim->known[0])
        fini_page_form(page, "<small class=\"known\">%-s: %s</small>",
                       claim->verdict == FIN_VERDICT_HOLDS ? "holds, though it is known not to"
                                                           : "known",
                       claim->known);
    fini_page_add(page, "</th><td data-label=\"measured\">");
    add_measured(page, claim);
    fini_page_add(page, "</td><td data-label=\"expected\">");
    add_expected(page, claim->expected);
    fini_page_form(page, "</td><td data-label=\"obtained by\">%s", claim->how);
    if (claim->needed[0])
        fini_page_form(page, "<small>%s</small>", claim->needed);
    fini_page_add(page, "</td><td data-label=\"figure\">");
    if (claim->figure[0])
        fini_page_form(page, "<a class=\"to-figure\" href=\"#figure-%1s.%1s\">%s</a>", claim->study,
                       claim->figure, claim->figure);
    fini_page_add(page, "</td></tr>\n");
    return fini_page_status(page, err);
}

fin_status fini_html_claims(fini_html *html, const char *name, const fin_study *study,
                            fin_error *err)
{
    adder a = {html, study};
    return fini_claims_list(html->store, name, study, add_claim, &a, err);
}
