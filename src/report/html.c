/* One HTML file that needs nothing else. It says in its head, by hash, which script and style may
 * run; everything from outside is escaped on the way in (page.c). No time stands in it: the same
 * store gives the same bytes. */
#include "finetti/report.h"
#include "report/html.h"

#include "base/embedded.h"
#include <string.h>

#define TITLE "Attention as estimation: claims and figures"

/* ---- assets --------------------------------------------------------------------------------- */

static void add_asset(fini_page *page, const char *name)
{
    for (const fini_file *file = fini_assets; file->name; file++)
        if (strcmp(file->name, name) == 0)
            fini_page_bytes(page, file->text, file->size);
    fini_page_add(page, "\n");
}

static void add_hash(fini_page *page, const fini_page *content)
{
    char hash[FINI_SHA256_TEXT];
    fini_sha256(content->text, content->size, hash);
    fini_page_print(page, "'sha256-%s'", hash);
}

static void add_head(fini_page *page, const char *title, const fini_page *style,
                     const fini_page *script)
{
    fini_page_add(page, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"
                        " img-src data:; base-uri 'none'; form-action 'none'; style-src ");
    add_hash(page, style);
    fini_page_add(page, "; script-src ");
    add_hash(page, script);
    fini_page_form(page,
                   "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<meta name=\"color-scheme\" content=\"light dark\">\n"
                   "<link rel=\"icon\" href=\"data:,\">\n<title>%s</title>\n<style>",
                   title);
    fini_page_bytes(page, style->text, style->size);
    fini_page_add(page, "</style>\n</head>\n<body>\n");
}

/* ---- the parts of the page ------------------------------------------------------------------ */

/* "papers: 20 of 22 hold, 1 fails, 1 is undecided" */
static void add_count(fini_page *page, const char *title, const int64_t *verdicts)
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
        if (count > 0)
            fini_page_print(page, ", %lld %s", count, count == 1 ? rest[i].one : rest[i].many);
    }
    fini_page_add(page, " \xc2\xb7 ");
}

static void add_summary(fini_page *page, const fini_html *html)
{
    fini_page_add(page, "<p class=\"summary\">");
#define COUNT(name, text, title) add_count(page, title, html->verdicts[FIN_KIND_##name]);
    FIN_KIND_LIST(COUNT)
#undef COUNT
    fini_page_print(page, "%lld stud%s \xc2\xb7 %lld of %lld run%s done",
                    (long long)html->study_count, html->study_count == 1 ? "y" : "ies",
                    (long long)html->done, (long long)html->planned, html->planned == 1 ? "" : "s");
    if (html->failed > 0)
        fini_page_print(page, ", %lld failed", (long long)html->failed);
    fini_page_add(page, "</p>\n");
}

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
    fini_page_add(page, "<label>study <select></select></label>\n</div>\n");
}

static void add_table(fini_page *page, const fini_page *rows)
{
    fini_page_add(page, "<div class=\"scroll\"><table class=\"claims\"><thead><tr>"
                        "<th scope=\"col\">Verdict</th><th scope=\"col\">Claim</th>"
                        "<th scope=\"col\">Measured, 95 % interval</th>"
                        "<th scope=\"col\">Expected</th><th scope=\"col\">Obtained by</th>"
                        "<th scope=\"col\">Figure</th></tr></thead>\n<tbody>\n");
    fini_page_bytes(page, rows->text, rows->size);
    fini_page_add(page, "</tbody></table></div>\n");
}

static void add_claims(fini_page *page, const fini_html *html)
{
    if (html->claim_count == 0)
        return;
    fini_page_add(page, "<section id=\"claims\">\n<h2>Claims</h2>\n");
    add_filters(page, html);
    if (html->claims.size > 0)
        add_table(page, &html->claims);
    fini_page_add(page, "<p class=\"none\" hidden>No claim fits this filter.</p>\n");
    if (html->checks.size > 0) {
        const int64_t *checks = html->verdicts[FIN_KIND_CHECK];
        bool fine = true;
        for (int v = 0; v < FIN_VERDICTS; v++)
            fine = fine && (v == FIN_VERDICT_HOLDS || checks[v] == 0);
        fini_page_print(page, "<details class=\"checks\"%s><summary>", fine ? "" : " open");
        fini_page_add(page, "Checks of the code against itself and against theorems</summary>\n");
        add_table(page, &html->checks);
        fini_page_add(page, "</details>\n");
    }
    fini_page_add(page,
                  "<p class=\"source\">A claim holds if its 95 % interval lies inside what is "
                  "expected, fails if it lies outside, is undecided if it lies on a bound or is "
                  "not known, and untested if numbers are missing. What a paper says, what was "
                  "derived here and what checks the code are counted apart.</p>\n"
                  "</section>\n");
}

static fin_status compose(fini_page *page, const fini_html *html, const char *title, fin_error *err)
{
    fini_page style = {NULL, 0, 0, false}, script = {NULL, 0, 0, false};
    add_asset(&style, "uPlot.min.css");
    add_asset(&style, "report.css");
    add_asset(&script, "uPlot.iife.min.js");
    add_asset(&script, "report_draw.js");
    add_asset(&script, "report.js");
    fin_status status = fini_page_status(&style, err);
    if (!status)
        status = fini_page_status(&script, err);
    if (!status) {
        add_head(page, title, &style, &script);
        fini_page_form(page, "<header>\n<div><h1>%s</h1>\n", title);
        add_summary(page, html);
        fini_page_add(page, "</div>\n<button type=\"button\" id=\"theme\" class=\"needs-script\" "
                            "aria-label=\"Switch between light and dark\">"
                            "<span aria-hidden=\"true\">\xe2\x97\x90</span></button>\n</header>\n");
        if (html->study_count > 1) {
            fini_page_add(page, "<nav aria-label=\"Studies\"><ul>\n");
            fini_page_bytes(page, html->links.text, html->links.size);
            fini_page_add(page, "</ul></nav>\n");
        }
        fini_page_add(page, "<main>\n");
        add_claims(page, html);
        fini_page_bytes(page, html->studies.text, html->studies.size);
        fini_page_print(page,
                        "</main>\n<footer><p>Written by finetti %s from a store of runs alone."
                        " The numbers behind each figure are in this file.</p></footer>\n"
                        "<script>",
                        fin_version());
        fini_page_bytes(page, script.text, script.size);
        fini_page_add(page, "</script>\n</body>\n</html>\n");
        status = fini_page_status(page, err);
    }
    fini_page_close(&style);
    fini_page_close(&script);
    return status;
}

/* ---- which studies -------------------------------------------------------------------------- */

static fin_status add_study(void *user, const char *name, const fin_study *study,
                            const fin_error *why, fin_error *err)
{
    fin_status status = fini_html_claims(user, name, study, err);
    return status ? status : fini_html_study(user, name, study, why, err);
}

static fin_status write_report(fin_store *store, const fini_studies *which, const char *title,
                               const char *path, fin_error *err)
{
    if (!store || !path)
        return fini_fail(err, FIN_ERR_ARGUMENT, "a report needs a store and the path of a file");
    fini_html html;
    memset(&html, 0, sizeof html);
    html.store = store;
    fini_page page = {NULL, 0, 0, false};
    fin_status status = fini_studies_visit(store, which, add_study, &html, err);
    if (!status)
        status = compose(&page, &html,
                         title                   ? title
                         : html.study_count == 1 ? html.title.text
                                                 : TITLE,
                         err);
    if (!status)
        status = fini_page_write(&page, path, err);
    fini_page_close(&page);
    fini_page_close(&html.claims);
    fini_page_close(&html.checks);
    fini_page_close(&html.studies);
    fini_page_close(&html.links);
    fini_page_close(&html.title);
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
