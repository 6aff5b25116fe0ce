/* A figure on a page: one SVG a panel, so that narrow windows stack them, its data, and words. The data stands on the page once, as the
 * CSV text that is also handed out; the script reads from there what it says of a point. */
#include "report/html.h"
#include "report/mathml.h"

static void add_data(fini_page *page, const fini_figure *figure)
{
    fini_page csv = {NULL, 0, 0, false};
    fini_figure_csv(figure, &csv);
    page->failed = page->failed || csv.failed;
    fini_page_add(page, "<script type=\"text/csv\">");
    fini_page_script(page, csv.text, csv.size);
    fini_page_add(page, "</script>\n<script type=\"application/json\">");
    fini_figure_json(figure, page);
    fini_page_add(page, "</script>\n");
    fini_page_close(&csv);
}

/* More than two columns are too narrow to be read side by side: each becomes a row, by itself where the window is narrow. */
static void add_panels(fini_page *page, const fini_figure *figure)
{
    int columns = fini_figure_columns(figure);
    bool turned = columns > 2;
    fini_page_print(page, "<div class=\"panels columns-%d%s\">\n",
                    turned ? (figure->panel_count + columns - 1) / columns : columns,
                    turned ? " turned" : "");
    for (int c = 0; c < (turned ? columns : 1); c++) {
        int k = 0;
        for (const fini_panel *p = figure->panels; p; p = p->next, k++)
            if (!turned || k % columns == c)
                fini_panel_svg(figure, p, turned ? 264 : 432, turned ? 200 : 288, page);
    }
    fini_page_add(page, "</div>\n");
}

static void add_paragraph(fini_page *page, const char *open, const char *text)
{
    fini_page_add(page, open);
    fini_words(page, text);
    fini_page_add(page, "</p>");
}

void fini_html_figure(const fini_figure *figure, const char *failure, const char *command,
                      fini_page *page)
{
    fini_page_form(page,
                   "<figure id=\"figure-%1s.%1s\" data-name=\"%1s-%1s\" tabindex=\"-1\">\n<p "
                   "class=\"title\">",
                   figure->study, figure->id, figure->study, figure->id);
    fini_words(page, figure->title[0] ? figure->title : figure->id);
    fini_page_add(page, "</p>\n");
    if (failure) {
        fini_page_form(page, "<p class=\"note\">This figure could not be drawn: %s</p>\n", failure);
    } else {
        add_panels(page, figure);
        add_data(page, figure);
    }
    fini_page_add(page, "<figcaption>");
    if (figure->caption[0])
        add_paragraph(page, "<p>", figure->caption);
    for (const fini_note *note = figure->notes; note; note = note->next)
        add_paragraph(page, "<p class=\"note\">", note->text);
    if (command[0])
        fini_page_form(page, "<p class=\"command\"><code>%s</code></p>", command);
    fini_page_add(page, "</figcaption>\n</figure>\n");
}
