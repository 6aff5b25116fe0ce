/* The frame of a page that needs nothing else: its head says by hash which style and which script may run, and everything from
 * outside is escaped on the way in (page.c). */
#include "report/html.h"

#include "base/embedded.h"

#include <string.h>

void fini_html_asset(fini_page *page, const char *name)
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

fin_status fini_html_open(fini_html_frame *frame, const char *title, fini_page *page,
                          fin_error *err)
{
    *frame = (fini_html_frame){{NULL, 0, 0, false}, {NULL, 0, 0, false}};
    fini_html_asset(&frame->style, "report.css");
    fini_html_asset(&frame->script, "report.js");
    FINI_TRY(fini_page_status(&frame->style, err));
    FINI_TRY(fini_page_status(&frame->script, err));
    fini_page_add(page, "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none';"
                        " img-src data:; base-uri 'none'; form-action 'none'; style-src ");
    add_hash(page, &frame->style);
    fini_page_add(page, "; script-src ");
    add_hash(page, &frame->script);
    fini_page_form(page,
                   "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                   "<meta name=\"color-scheme\" content=\"light dark\">\n"
                   "<link rel=\"icon\" href=\"data:,\">\n<title>%s</title>\n<style>",
                   title);
    fini_page_bytes(page, frame->style.text, frame->style.size);
    fini_page_form(page, "</style>\n</head>\n<body>\n<header>\n<div><h1>%s</h1>\n", title);
    return FIN_OK;
}

void fini_html_main(fini_page *page)
{
    fini_page_add(page,
                  "</div>\n<button type=\"button\" id=\"theme\" class=\"needs-script\" "
                  "aria-label=\"Switch between light and dark\">"
                  "<span aria-hidden=\"true\">\xe2\x97\x90</span></button>\n</header>\n<main>\n");
}

void fini_html_close(fini_html_frame *frame, const char *made_of, fini_page *page)
{
    fini_page_form(page,
                   "</main>\n<footer><p>Written by finetti %s from %s. The numbers behind each "
                   "figure are in this "
                   "file.</p></footer>\n<script>",
                   fin_version(), made_of);
    fini_page_bytes(page, frame->script.text, frame->script.size);
    fini_page_add(page, "</script>\n</body>\n</html>\n");
    fini_page_close(&frame->style);
    fini_page_close(&frame->script);
}
