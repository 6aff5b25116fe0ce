/* The page to play with (web/), where it was built: it travels inside the library and is written as it is, but for a
 * link to the report beside it. */
#include "base/embedded.h"
#include "finetti/report.h"
#include "report/page.h"

#include <string.h>

/* What the page has where the link goes. */
static const char place[] = "<!--report-->";

int fin_explore_there(void)
{
    return fini_explore[0].name != NULL;
}

fin_status fin_explore_write(const char *report, const char *path, fin_error *err)
{
    FINI_NEED(err, path);
    const fini_file *file = &fini_explore[0];
    if (!file->name)
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the page was left out when this finetti was built; 'make web' in the "
                         "source tree builds it, with clang and wasi-libc");
    FINI_AT_END(fini_page_close) fini_page page = {NULL, 0, 0, false};
    const char *at = strstr(file->text, place);
    size_t before = at ? (size_t)(at - file->text) : file->size;
    fini_page_bytes(&page, file->text, before);
    if (at && report) {
        fini_page_add(&page, "<p><a href=\"");
        fini_page_xml(&page, report);
        fini_page_add(&page, "\">The report: every claim of the papers, tested</a></p>");
    }
    if (at)
        fini_page_bytes(&page, at + strlen(place), file->size - before - strlen(place));
    return fini_page_write(&page, path, err);
}
