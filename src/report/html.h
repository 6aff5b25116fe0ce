/* The HTML report in parts: html.c the page, html_claims.c its table of claims, html_study.c a
 * section per study, sha256.c what its content security policy needs. */
#ifndef FINI_HTML_H
#define FINI_HTML_H

#include "report/figure.h"

enum { FINI_SHA256_TEXT = 45 };

typedef struct fini_html {
    fin_store *store;
    fini_page claims, checks; /* rows of the table; of the one that is folded away */
    fini_page studies, links; /* sections; links to them */
    fini_page title;          /* of the first study */
    int64_t verdicts[FIN_KINDS][FIN_VERDICTS], claim_count, study_count;
    int64_t planned, done, failed;
} fini_html;

/* The rows of one study's claims. study NULL: it cannot be read back. */
fin_status fini_html_claims(fini_html *html, const char *name, const fin_study *study,
                            fin_error *err);
/* The section of one study, and the link to it; `why` is shown where there is no study. */
fin_status fini_html_study(fini_html *html, const char *name, const fin_study *study,
                           const fin_error *why, fin_error *err);

void fini_sha256(const char *text, size_t size, char out[FINI_SHA256_TEXT]);

#endif
