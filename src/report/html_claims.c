/* The tables of claims: verdict, statement and source, what was measured, what was expected; and the claims of a chapter's story. */
#include "report/html.h"

#include "report/mathml.h"
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

/* "0.42", and "[0.40, 0.44]" after it: true. An interval that shows only rounding is none. */
static bool add_value(fini_page *page, const fin_claim *claim)
{
    fini_page_add(page, "<span class=\"number\">");
    add_number(page, claim->value, 4);
    fini_page_add(page, "</span>");
    char low[64], high[64];
    fini_print_double(claim->low, 4, low, sizeof low);
    fini_print_double(claim->high, 4, high, sizeof high);
    bool known = claim->low < claim->high && strcmp(low, high) != 0;
    if (known) {
        fini_page_add(page, " <span class=\"interval\" title=\"95 % interval\">[");
        add_number(page, claim->low, 4);
        fini_page_add(page, ", ");
        add_number(page, claim->high, 4);
        fini_page_add(page, "]</span>");
    }
    return known;
}

static const char *meaning_of(const fin_command *command, const char *name)
{
    for (const fin_output *o = command->outputs; o->name; o++)
        if (strcmp(o->name, name) == 0)
            return o->meaning;
    return NULL;
}

enum { MEANINGS = 4 };
typedef struct meanings {
    const char *said[MEANINGS];
    int count;
} meanings;

/* Without the variant that an output is of: "ratio: C(q)" is C(q), and "with form: risk of attention" a risk. */
static const char *plain(const char *text)
{
    const char *rest = strncmp(text, "with ", 5) == 0 ? text + 5 : text;
    size_t word = strspn(rest, "abcdefghijklmnopqrstuvwxyz");
    return word > 0 && strncmp(rest + word, ": ", 2) == 0 ? rest + word + 2 : text;
}

/* The outputs that a formula names, each once, in the words of the command. */
static void add_meanings(fini_page *page, const fini_measure *m, const fini_formula *formula,
                         meanings *known)
{
    for (int i = 0; formula && i < fini_formula_name_count(formula); i++) {
        const char *name = fini_formula_name(formula, i),
                   *text = meaning_of(m->block->command, name);
        bool told = !text || text[0] == '(' || known->count == MEANINGS;
        for (int k = 0; k < known->count && !told; k++)
            told = known->said[k] == text;
        if (told)
            continue;
        fini_page_form(page, "%-s<code>%s</code> is ", known->count ? "; " : " Here ", name);
        fini_words(page, plain(text));
        known->said[known->count++] = text;
    }
}

static void add_meanings_of(fini_page *page, const fini_claim_plan *plan)
{
    meanings known = {{NULL}, 0};
    for (int i = 0; plan && i < plan->count; i++) {
        const fini_measure *m = &plan->measures[i];
        add_meanings(page, m, m->take, &known);
        add_meanings(page, m, m->against, &known);
    }
    fini_page_add(page, known.count ? "." : "");
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
static void add_item(fini_page *page, const fin_claim *claim, const fini_claim_plan *plan)
{
    fini_page_add(page, "<li>");
    add_verdict(page, claim->verdict);
    fini_page_add(page, " ");
    fini_words(page, claim->statement);
    if (claim->known[0] && claim->verdict != FIN_VERDICT_HOLDS) {
        fini_page_add(page, " <span class=\"known\">Why: ");
        fini_words(page, claim->known);
        fini_page_add(page, ".</span>");
    }
    fini_page_add(page, " <small>Measured: ");
    fini_words(page, claim->quantity);
    fini_page_add(page, " = ");
    bool interval = add_value(page, claim);
    fini_page_add(page, interval ? " (95 % interval). Expected: " : ". Expected: ");
    fini_words(page, claim->expected);
    fini_page_add(page, ".");
    add_meanings_of(page, plan);
    fini_page_form(page, " <a href=\"#claim-%1s.%1s\">All of it</a></small></li>\n", claim->study,
                   claim->id);
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
        add_item(holds ? &chapter->claims : &chapter->failed, claim, plan);
    fini_page *first = &a->html->first[claim->kind][claim->verdict];
    if (!holds && first->size == 0)
        fini_page_form(first, "claim-%1s.%1s", claim->study, claim->id);
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
    fini_page_add(page, "</td><th scope=\"row\">");
    fini_words(page, claim->statement);
    fini_page_form(page, "<small>%s%-s<a href=\"#study-%1s\">%s</a> \xc2\xb7 %s</small>",
                   claim->source, claim->source[0] ? " \xc2\xb7 " : "", claim->study, claim->study,
                   claim->id);
    if (claim->fails_if[0]) {
        fini_page_add(page, "<small>fails if ");
        fini_words(page, claim->fails_if);
        fini_page_add(page, "</small>");
    }
    if (claim->known[0]) {
        fini_page_form(page, "<small class=\"known\">%-s: ",
                       claim->verdict == FIN_VERDICT_HOLDS ? "holds, though it is known not to"
                                                           : "known");
        fini_words(page, claim->known);
        fini_page_add(page, "</small>");
    }
    fini_page_add(page, "</th><td data-label=\"measured\">");
    add_value(page, claim);
    if (claim->quantity[0]) {
        fini_page_add(page, "<br><code>");
        fini_words(page, claim->quantity);
        fini_page_add(page, "</code>");
    }
    fini_page_add(page, "</td><td data-label=\"expected\">");
    fini_words(page, claim->expected);
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
