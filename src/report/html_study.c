/* The section of a study: what it is about, its figures with the data behind them, its settings,
 * where its numbers come from, and which runs failed.
 *
 * One figure that cannot be drawn leaves a note, not an error. */
#include "report/html.h"
#include "report/mathml.h"

#include <stdio.h>
#include <string.h>

enum { VALUES_SHOWN = 12, FAILURES_SHOWN = 50, NAMES_SHOWN = 8 };

static void element(fini_page *page, const char *open, const char *text, const char *close)
{
    fini_page_add(page, open);
    fini_page_xml(page, text);
    fini_page_add(page, close);
}

/* ---- figures -------------------------------------------------------------------------------- */

static bool is_shipped(const char *name)
{
    for (int i = 0; i < fin_shipped_count(); i++)
        if (strcmp(fin_shipped_name(i), name) == 0)
            return true;
    return false;
}

/* What makes the figure anew, from nothing if the study comes with finetti. */
static void say_command(const fin_study *study, const char *id, char *text, size_t size)
{
    const char *full = study->full ? " --full" : "";
    if (is_shipped(study->name))
        snprintf(text, size,
                 "finetti reproduce %.64s%s && finetti plot --store report/finetti.db --study "
                 "%.64s --figure %.64s "
                 "--out %.64s.svg",
                 study->name, full, study->name, id, id);
    else
        snprintf(text, size, "finetti plot --study %.64s --figure %.64s --out %.64s.svg",
                 study->name, id, id);
}

/* Where a figure stands: in a chapter's story, or below its study. */
static fini_page *place_of(fini_html *html, const fin_study *study, const fini_node *node,
                           const fini_figure *figure, fini_page *own)
{
    const fini_node *key = fini_node_get(node, "key");
    fini_chapter *chapter = fini_chapter_key(&html->chapters, study, "figures", figure->id,
                                             key && key->kind == FINI_TEXT ? key->text : "");
    if (!chapter || !chapter->id[0])
        return own;
    fini_page_form(
        own, "<p class=\"source\">Figure <a href=\"#figure-%1s.%1s\">%s</a> stands above.</p>\n",
        study->name, figure->id, figure->title[0] ? figure->title : figure->id);
    return &chapter->figures;
}

static fin_status add_figures(fini_html *html, const fin_study *study, fini_page *own,
                              fin_error *err)
{
    fin_status status = FIN_OK;
    for (int i = 0; study->figures && i < study->figures->count && !status; i++) {
        fini_figure figure;
        char command[600];
        fin_error why = {FIN_OK, ""};
        fini_spec spec = {
            study, html->store, &study->figures->child[i], {study->tree, &why, FIN_OK}};
        fini_figure_open(&figure);
        status = fini_figure_build(&spec, &figure);
        bool fatal = status == FIN_ERR_MEMORY || status == FIN_ERR_CANCELLED;
        if (fatal)
            fini_fail(err, status, "%s", why.message);
        say_command(study, figure.id, command, sizeof command);
        if (!fatal)
            fini_html_figure(&figure, status ? why.message : NULL, command,
                             place_of(html, study, spec.node, &figure, own));
        status = fatal ? status : FIN_OK;
        fini_figure_close(&figure);
    }
    return status ? status : fini_page_status(own, err);
}

/* ---- settings ------------------------------------------------------------------------------- */

static void add_axis(fini_page *page, const fini_axis *axis)
{
    element(page, "<tr><th scope=\"row\">", axis->name, "</th><td>");
    int64_t shown = axis->count <= VALUES_SHOWN ? axis->count : VALUES_SHOWN / 2;
    for (int64_t i = 0; i < shown; i++)
        element(page, i ? ", <code>" : "<code>", axis->texts[i], "</code>");
    if (shown < axis->count)
        element(page, ", \xe2\x80\xa6, <code>", axis->texts[axis->count - 1], "</code>");
    if (axis->count > 1)
        fini_page_print(page, " <small>%lld %s</small>", (long long)axis->count,
                        axis->random ? "draws" : "values");
    fini_page_add(page, "</td></tr>\n");
}

static void add_block(fini_page *page, const fini_block *block)
{
    fini_page_form(page,
                   "<div class=\"block\"><table><caption><strong>%s</strong> \xc2\xb7 "
                   "<code>%s</code>",
                   block->id, block->command->name);
    fini_page_print(page, " \xc2\xb7 %lld run%s</caption>\n<tbody>\n", (long long)block->count,
                    block->count == 1 ? "" : "s");
    for (int i = 0; i < block->fixed_count; i++) {
        fini_page_form(page, "<tr><th scope=\"row\">%s</th><td><code>%s</code></td></tr>\n",
                       block->fixed[i].name, block->fixed[i].text);
    }
    for (int i = 0; i < block->axis_count; i++)
        add_axis(page, &block->axes[i]);
    fini_page_add(page, "</tbody></table></div>\n");
}

static void add_settings(fini_page *page, const fin_study *study)
{
    fini_page_add(page, "<details><summary>Settings</summary>\n<div class=\"blocks\">\n");
    for (int i = 0; i < study->block_count; i++)
        add_block(page, &study->blocks[i]);
    fini_page_add(page, "</div>\n");
    if (study->changes && study->changes[0])
        element(page, "<p>Changed by <code>--set</code>:</p><pre>", study->changes, "</pre>\n");
    fini_page_add(page, "</details>\n");
}

/* ---- provenance ----------------------------------------------------------------------------- */

/* The few different texts of a column. */
typedef struct texts {
    char text[NAMES_SHOWN][64];
    int count;
} texts;

static void remember(texts *t, const char *text)
{
    size_t length = strlen(text) < 63 ? strlen(text) : 63;
    for (int i = 0; i < t->count; i++)
        if (strlen(t->text[i]) == length && memcmp(t->text[i], text, length) == 0)
            return;
    if (length == 0 || t->count == NAMES_SHOWN)
        return;
    memcpy(t->text[t->count], text, length);
    t->text[t->count++][length] = '\0';
}

typedef struct provenance {
    fini_html *html;
    fini_page failures;
    texts versions, kernels;
    int64_t planned, done, failed;
} provenance;

static fin_status add_run(void *user, const fin_run_row *run, fin_error *err)
{
    provenance *p = user;
    fini_page *page = &p->failures;
    p->planned++;
    p->done += run->state == FIN_STATE_DONE;
    p->failed += run->state == FIN_STATE_FAILED;
    if (run->state == FIN_STATE_PLANNED)
        return FIN_OK;
    remember(&p->versions, run->version ? run->version : "");
    remember(&p->kernels, run->kernel ? run->kernel : "");
    if (run->state != FIN_STATE_FAILED || p->failed > FAILURES_SHOWN)
        return FIN_OK;
    fini_page_form(page, "<tr><td>%s</td><td><code>%s</code></td><td>%s</td></tr>\n",
                   run->block ? run->block : "", run->hash ? run->hash : "",
                   run->reason ? run->reason : "");
    return fini_page_status(page, err);
}

static void add_texts(fini_page *page, const char *name, const texts *t)
{
    fini_page_add(page, name);
    for (int i = 0; i < t->count; i++)
        element(page, i ? ", " : " ", t->text[i], "");
}

static void add_provenance(fini_page *page, const provenance *p, const fin_study *study)
{
    fini_page_print(page, "<p class=\"provenance\">%lld of %lld run%s done", (long long)p->done,
                    (long long)p->planned, p->planned == 1 ? "" : "s");
    if (p->failed > 0)
        fini_page_print(page, ", %lld failed", (long long)p->failed);
    fini_page_add(page, study && study->full ? " \xc2\xb7 full sizes" : " \xc2\xb7 quick sizes");
    if (p->versions.count)
        add_texts(page, " \xc2\xb7 finetti", &p->versions);
    if (p->kernels.count)
        add_texts(page, p->kernels.count > 1 ? " \xc2\xb7 kernels" : " \xc2\xb7 kernel",
                  &p->kernels);
    fini_page_add(page, "</p>\n");
    if (p->failed == 0)
        return;
    fini_page_print(page,
                    "<details open><summary>Failed runs (%lld)</summary>\n"
                    "<div class=\"scroll\"><table class=\"failures\"><thead><tr>"
                    "<th scope=\"col\">Block</th><th scope=\"col\">Run</th>"
                    "<th scope=\"col\">Reason</th></tr></thead><tbody>\n",
                    (long long)p->failed);
    fini_page_bytes(page, p->failures.text, p->failures.size);
    fini_page_add(page, "</tbody></table></div>\n");
    if (p->failed > FAILURES_SHOWN)
        fini_page_print(page, "<p class=\"note\">The first %d are shown.</p>\n",
                        (int)FAILURES_SHOWN);
    fini_page_add(page, "</details>\n");
}

/* ---- the section ---------------------------------------------------------------------------- */

static void add_head(fini_html *html, const char *name, const fin_study *study, fini_page *page,
                     bool below)
{
    const char *title = study && study->title && study->title[0] ? study->title : name;
    const char *heading = below ? "h3" : "h2";
    fini_page_form(page,
                   "<section class=\"study\" id=\"study-%1s\">\n<%-s>%s</%-s>\n"
                   "<p class=\"source\"><code>%s</code>",
                   name, heading, title, heading, name);
    if (study && study->source && study->source[0])
        fini_page_form(page, " \xc2\xb7 %s", study->source);
    fini_page_add(page, "</p>\n");
    if (study && study->about && study->about[0]) {
        fini_page_add(page, "<p class=\"about\">");
        fini_words(page, study->about);
        fini_page_add(page, "</p>\n");
    }
    if (html->study_count == 0)
        fini_page_bytes(&html->title, title, strlen(title) + 1);
}

fin_status fini_html_study(fini_html *html, const char *name, const fin_study *study,
                           const fin_error *why, fin_error *err)
{
    provenance p;
    memset(&p, 0, sizeof p);
    p.html = html;
    fin_query query;
    memset(&query, 0, sizeof query);
    query.study = name;
    fini_chapter *chapter = fini_chapter_of(&html->chapters, study);
    if (!chapter)
        return fini_fail_memory(err, sizeof *chapter, "a chapter of a report");
    fini_page *page = &chapter->studies;
    add_head(html, name, study, page, chapter->id[0] != '\0');
    if (!study) /* written by another version, perhaps: its runs and claims are there */
        element(page, "<p class=\"note\">The study cannot be read: ", why->message, "</p>\n");
    fin_status status = fin_store_runs(html->store, &query, add_run, &p, err);
    if (!status) {
        add_provenance(page, &p, study);
        html->study_count++;
        html->planned += p.planned;
        html->done += p.done;
        html->failed += p.failed;
    }
    if (!status && study)
        status = add_figures(html, study, page, err);
    if (!status && study)
        add_settings(page, study);
    fini_page_add(page, "</section>\n");
    fini_page_close(&p.failures);
    if (!status)
        status = fini_page_status(&html->title, err);
    return status ? status : fini_page_status(page, err);
}
