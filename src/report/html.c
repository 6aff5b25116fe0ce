/* The report: one HTML file that needs nothing else. First what it says in three sentences, then chapter by chapter (chapter.h), then
 * how verdicts are made, then all claims. No time stands in it: the same store gives the same bytes. */
#include "finetti/report.h"
#include "report/html.h"

#include "data/data.h"

#include <stdio.h>
#include <string.h>

#define TITLE "Attention as estimation: what papers claim and what was found"

/* ---- the parts of the page ------------------------------------------------------------------ */

/* "claims of papers: 20 of 22 hold, 1 fails, 1 is undecided" */
static void add_count(fini_page *page, const char *title, const int64_t *verdicts,
                      const fini_page *first)
{
    static const struct {
        fin_verdict verdict;
        const char *one, *many;
    } rest[] = {{FIN_VERDICT_FAILS, "fails", "fail"},
                {FIN_VERDICT_UNDECIDED, "is undecided", "are undecided"},
                {FIN_VERDICT_UNTESTED, "is untested", "are untested"}};
    int64_t total = 0, holds = verdicts[FIN_VERDICT_HOLDS];
    for (int v = 0; v < FIN_VERDICTS; v++)
        total += verdicts[v];
    if (total == 0)
        return;
    fini_page_print(page, "<strong>%s: %lld of %lld hold%s</strong>", title, (long long)holds,
                    (long long)total, holds == 1 ? "s" : "");
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        long long count = verdicts[rest[i].verdict];
        if (count == 0)
            continue;
        fini_page_add(page, ", <a href=\"#");
        fini_page_bytes(page, first[rest[i].verdict].text, first[rest[i].verdict].size);
        fini_page_print(page, "\">%lld %s</a>", count, count == 1 ? rest[i].one : rest[i].many);
    }
    fini_page_add(page, " \xc2\xb7 ");
}

static void add_summary(fini_page *page, const fini_html *html)
{
    fini_page_add(page, "<p class=\"summary\">");
    static const char *const titles[FIN_KINDS] = {[FIN_KIND_PAPER] = "claims of papers",
                                                  [FIN_KIND_DERIVED] = "derived here",
                                                  [FIN_KIND_CHECK] = "checks of the code"};
    for (int k = 0; k < FIN_KINDS; k++)
        add_count(page, titles[k], html->verdicts[k], html->first[k]);
    fini_page_print(page, "%lld stud%s \xc2\xb7 %lld of %lld run%s done",
                    (long long)html->study_count, html->study_count == 1 ? "y" : "ies",
                    (long long)html->done, (long long)html->planned, html->planned == 1 ? "" : "s");
    if (html->failed > 0)
        fini_page_print(page, ", %lld failed", (long long)html->failed);
    fini_page_add(page, "</p>\n");
}

/* A text of a page that was made of others; "" if there is none. */
static void add_title(fini_page *page, const fini_chapter *chapter)
{
    if (chapter->title.size > 0) {
        char title[300];
        snprintf(title, sizeof title, "%.*s",
                 (int)(chapter->title.size < 299 ? chapter->title.size : 299), chapter->title.text);
        fini_page_xml(page, title);
    } else {
        fini_page_xml(page, chapter->id[0] ? chapter->id : "Other studies");
    }
}

/* A sentence or two for every chapter, below a link to it. */
static void add_lead(fini_page *page, const fini_html *html)
{
    if (!html->chapters.first || !html->chapters.first->id[0])
        return;
    fini_page_add(page,
                  "<p class=\"source\">finetti is software that treats an attention layer as a "
                  "statistical estimator; it computed and wrote this page "
                  "(<code>finetti reproduce</code>). Every claim is a sentence, a number that was "
                  "computed, and what was expected of it. Some are of papers; some were derived "
                  "here, where papers say nothing; checks can fail only by a fault of the "
                  "code.</p>\n<ol class=\"lead\">\n");
    for (const fini_chapter *c = html->chapters.first; c; c = c->next) {
        fini_page_form(page, "<li><a href=\"#paper-%1s\">", c->id);
        add_title(page, c);
        fini_page_add(page, "</a>");
        if (c->by.size > 0) {
            fini_page_add(page, " <small>");
            fini_page_bytes(page, c->by.text, c->by.size);
            fini_page_add(page, "</small>");
        }
        if (c->lead.size > 0)
            fini_page_add(page, "<br>");
        fini_page_bytes(page, c->lead.text, c->lead.size);
        fini_page_add(page, "</li>\n");
    }
    fini_page_add(page, "</ol>\n");
}

static void add_links(fini_page *page, const fini_html *html, bool explore)
{
    if (!html->chapters.first || !html->chapters.first->id[0])
        return;
    fini_page_add(page, "<nav aria-label=\"Contents\"><ul>\n");
    if (explore)
        fini_page_add(page, "<li><a href=\"explore.html\">Try it: panels to play with</a></li>\n");
    fini_page_add(page, "<li><a href=\"#methods\">How verdicts are made</a></li>\n"
                        "<li><a href=\"#claims\">All claims</a></li>\n</ul></nav>\n");
}

static void add_list(fini_page *page, const char *open, const fini_page *items, const char *close)
{
    if (items->size == 0)
        return;
    fini_page_add(page, open);
    fini_page_bytes(page, items->text, items->size);
    fini_page_add(page, close);
}

static void add_chapter(fini_page *page, const fini_chapter *c, bool alone)
{
    if (alone && !c->id[0]) { /* a report of studies that belong to no chapter */
        fini_page_bytes(page, c->studies.text, c->studies.size);
        return;
    }
    fini_page_form(page, "<section class=\"chapter\" id=\"paper-%1s\">\n<h2>", c->id);
    add_title(page, c);
    fini_page_add(page, "</h2>\n");
    fini_page_bytes(page, c->intro.text, c->intro.size);
    fini_page_bytes(page, c->figures.text, c->figures.size);
    fini_page_bytes(page, c->found.text, c->found.size);
    add_list(page, "<ul class=\"key\">\n", &c->claims, "</ul>\n");
    if (c->claims.size > 0 && c->failed.size == 0)
        fini_page_add(page, "<p class=\"source\">Of what was tried of this nothing failed.</p>\n");
    add_list(page, "<h3>What failed or is open</h3>\n<ul class=\"key\">\n", &c->failed, "</ul>\n");
    add_list(page, "<h3>To be known beside it</h3>\n<ul>\n", &c->corrected, "</ul>\n");
    add_list(page, "<h3>Try it</h3>\n<ul>\n", &c->tries, "</ul>\n");
    add_list(
        page,
        "<details class=\"more\"><summary>All that was run: studies, figures, settings</summary>\n",
        &c->studies, "</details>\n");
    fini_page_add(page, "</section>\n");
}

static void add_methods(fini_page *page, const fini_html *html)
{
    fini_page_add(
        page,
        "<section id=\"methods\">\n<h2>How verdicts are made</h2>\n"
        "<p>A claim holds if its 95 % interval lies inside what is expected, fails if it lies "
        "outside, "
        "is undecided if it lies on a bound or is not known, and untested if numbers are missing. "
        "A number is a closed form, a quadrature with its error, or a mean of draws with its "
        "standard error; "
        "the table says which. The same seed gives the same numbers on any machine with any number "
        "of "
        "threads.</p>\n<p>What a paper says, what was derived here and what checks the code are "
        "counted apart, because a check cannot fail but by a fault. A claim that is known not to "
        "hold says why, and "
        "counts as failing all the same.</p>\n");
    add_summary(page, html);
    fini_page_add(page, "</section>\n");
}

/* ---- claims --------------------------------------------------------------------------------- */

static void add_filters(fini_page *page, const fini_html *html)
{
    fini_page_print(page,
                    "<div class=\"filters needs-script\" role=\"group\" "
                    "aria-label=\"Filter the claims\">\n<button type=\"button\" data-verdict=\"\" "
                    "aria-pressed=\"true\">all <b>%lld</b></button>\n",
                    (long long)html->claim_count);
    for (int v = 0; v < FIN_VERDICTS; v++) {
        int64_t count = 0;
        for (int k = 0; k < FIN_KINDS; k++)
            count += html->verdicts[k][v];
        if (count > 0)
            fini_page_print(page,
                            "<button type=\"button\" data-verdict=\"%s\" aria-pressed=\"false\">"
                            "%s <b>%lld</b></button>\n",
                            fin_verdict_name((fin_verdict)v), fin_verdict_name((fin_verdict)v),
                            (long long)count);
    }
    fini_page_add(
        page, "<label>study <select><option value=\"\">all</option></select></label>\n</div>\n");
}

/* Those of one kind, folded; what does not hold comes first. */
static void add_table(fini_page *page, const fini_html *html, fin_kind kind, const char *title)
{
    static const fin_verdict order[] = {FIN_VERDICT_UNDECIDED, FIN_VERDICT_FAILS,
                                        FIN_VERDICT_UNTESTED, FIN_VERDICT_HOLDS};
    const int64_t *verdicts = html->verdicts[kind];
    int64_t total = 0, holds = verdicts[FIN_VERDICT_HOLDS];
    for (int v = 0; v < FIN_VERDICTS; v++)
        total += verdicts[v];
    if (total == 0)
        return;
    bool open = kind == FIN_KIND_CHECK && holds < total;
    fini_page_form(page, "<details class=\"kind %-s\"%-s><summary>%s: ", fin_kind_name(kind),
                   open ? " open" : "", title);
    fini_page_print(page, "%lld of %lld hold%s</summary>\n", (long long)holds, (long long)total,
                    holds == 1 ? "s" : "");
    fini_page_add(page, "<div class=\"scroll\"><table class=\"claims\"><thead><tr>"
                        "<th scope=\"col\">Verdict</th><th scope=\"col\">Claim</th>"
                        "<th scope=\"col\">Measured, 95 % interval</th>"
                        "<th scope=\"col\">Expected</th><th scope=\"col\">Obtained by</th>"
                        "<th scope=\"col\">Figure</th></tr></thead>\n<tbody>\n");
    for (size_t i = 0; i < sizeof order / sizeof *order; i++)
        fini_page_bytes(page, html->rows[kind][order[i]].text, html->rows[kind][order[i]].size);
    fini_page_add(page, "</tbody></table></div>\n</details>\n");
}

static void add_claims(fini_page *page, const fini_html *html)
{
    static const char *const titles[FIN_KINDS] = {
        [FIN_KIND_PAPER] = "What the papers say",
        [FIN_KIND_DERIVED] = "What was derived here",
        [FIN_KIND_CHECK] = "Checks of the code against itself and against theorems"};
    if (html->claim_count == 0)
        return;
    fini_page_add(page, "<section id=\"claims\">\n<h2>All claims</h2>\n");
    add_filters(page, html);
    for (int k = 0; k < FIN_KINDS; k++)
        add_table(page, html, (fin_kind)k, titles[k]);
    fini_page_add(page, "<p class=\"none\" hidden>No claim fits this filter.</p>\n</section>\n");
}

static fin_status compose(fini_page *page, fini_html *html, const char *title, bool explore,
                          fin_error *err)
{
    fini_html_frame frame;
    fini_chapters_sort(&html->chapters);
    fin_status status = fini_html_open(&frame, title, page, err);
    bool told = html->chapters.first && html->chapters.first->id[0];
    if (!status) {
        add_lead(page, html);
        add_summary(page, html);
        fini_html_main(page);
        add_links(page, html, explore);
        for (const fini_chapter *c = html->chapters.first; c; c = c->next)
            add_chapter(page, c, !told);
        add_methods(page, html);
        add_claims(page, html);
    }
    fini_html_close(&frame, "a store of runs alone", page);
    page->failed = page->failed || fini_chapters_failed(&html->chapters);
    for (int k = 0; k < FIN_KINDS; k++)
        for (int v = 0; v < FIN_VERDICTS; v++)
            page->failed = page->failed || html->rows[k][v].failed || html->first[k][v].failed;
    return status ? status : fini_page_status(page, err);
}

/* ---- which studies -------------------------------------------------------------------------- */

static fin_status add_study(void *user, const char *name, const fin_study *study,
                            const fin_error *why, fin_error *err)
{
    FINI_TRY(fini_html_claims(user, name, study, err));
    return fini_html_study(user, name, study, why, err);
}

/* The page to play with, if it is beside the report, else NULL; for fini_free. */
static fin_status read_explore(const char *path, char **text, fin_error *err)
{
    const char *slash = strrchr(path, '/');
    char name[4096];
    size_t size;
    *text = NULL;
    int length =
        snprintf(name, sizeof name, "%.*sexplore.html", slash ? (int)(slash - path + 1) : 0, path);
    if (length < 0 || (size_t)length >= sizeof name)
        return FIN_OK;
    fin_status status = fini_read_text(name, text, &size, NULL);
    if (status)
        *text = NULL;
    /* without it the report has no links */
    return status == FIN_ERR_MEMORY ? fini_fail(err, FIN_ERR_MEMORY, "out of memory: %s", name)
                                    : FIN_OK;
}

static fin_status write_report(fin_store *store, const fini_studies *which, const char *title,
                               const char *path, fin_error *err)
{
    if (!store || !path)
        return fini_fail(err, FIN_ERR_ARGUMENT, "a report needs a store and the path of a file");
    fini_html html;
    memset(&html, 0, sizeof html);
    html.store = store;
    char *explore;
    fini_page page = {NULL, 0, 0, false};
    fin_status status = read_explore(path, &explore, err);
    html.chapters.explore = explore;
    if (!status)
        status = fini_studies_visit(store, which, add_study, &html, err);
    if (!status)
        status = compose(&page, &html,
                         title                   ? title
                         : html.study_count == 1 ? html.title.text
                                                 : TITLE,
                         explore != NULL, err);
    if (!status)
        status = fini_page_write(&page, path, err);
    fini_page_close(&page);
    for (int k = 0; k < FIN_KINDS; k++)
        for (int v = 0; v < FIN_VERDICTS; v++) {
            fini_page_close(&html.rows[k][v]);
            fini_page_close(&html.first[k][v]);
        }
    fini_page_close(&html.title);
    fini_chapters_close(&html.chapters);
    fini_free(explore);
    return status;
}

fin_status fin_report_write(fin_store *store, const char *const *studies, int count,
                            const char *title, const char *path, fin_error *err)
{
    FINI_NEED(err, store, path);
    fini_studies which = {.names = studies, .count = count};
    return write_report(store, &which, title, path, err);
}

fin_status fin_report_all(fin_store *store, const fin_study *const *hand, int count,
                          const char *title, const char *path, fin_error *err)
{
    FINI_NEED(err, store, path);
    fini_studies which = {.hand = hand, .hand_count = hand ? count : 0};
    return write_report(store, &which, title, path, err);
}
