/* The HTML report in parts: html_page.c the frame of a page, html.c what stands where, chapter.c the story of a paper,
 * html_claims.c the table of claims, html_figure.c a figure, html_study.c a section per study, sha256.c what the content security
 * policy needs. */
#ifndef FINI_HTML_H
#define FINI_HTML_H

#include "report/chapter.h"
#include "report/figure.h"

enum { FINI_SHA256_TEXT = 45 };

/* ---- a page of any content (html_page.c, html_figure.c) --------------------------------------- */

/* Style and script, which the head names by hash. */
typedef struct fini_html_frame {
    fini_page style, script;
} fini_html_frame;
/* The head, and <header> up to the title; then what is to stand below the title, fini_html_main, what is to stand in <main>,
 * fini_html_close, which also frees the frame. made_of: "a store of runs alone". */
fin_status fini_html_open(fini_html_frame *frame, const char *title, fini_page *page,
                          fin_error *err);
void fini_html_main(fini_page *page);
void fini_html_close(fini_html_frame *frame, const char *made_of, fini_page *page);
/* One of src/report/assets. */
void fini_html_asset(fini_page *page, const char *name);
/* <figure> with a panel beside the other, the data for the script, and caption, notes and command in words. failure: why it
 * could not be drawn, or NULL; command: what draws it again, or "". */
void fini_html_figure(const fini_figure *figure, const char *failure, const char *command,
                      fini_page *page);

/* ---- the report ------------------------------------------------------------------------------ */

typedef struct fini_html {
    fin_store *store;
    fini_chapters chapters;
    fini_page rows[FIN_KINDS][FIN_VERDICTS];  /* of the tables of claims */
    fini_page first[FIN_KINDS][FIN_VERDICTS]; /* anchors of the first ones that do not hold */
    fini_page title;                          /* of the first study */
    int64_t verdicts[FIN_KINDS][FIN_VERDICTS], claim_count, study_count;
    int64_t planned, done, failed;
} fini_html;

/* The rows of one study's claims, and the key ones into their chapters. study NULL: it cannot be read back. */
fin_status fini_html_claims(fini_html *html, const char *name, const fin_study *study,
                            fin_error *err);
/* The section of one study in its chapter; `why` is shown where there is no study. */
fin_status fini_html_study(fini_html *html, const char *name, const fin_study *study,
                           const fin_error *why, fin_error *err);

void fini_sha256(const char *text, size_t size, char out[FINI_SHA256_TEXT]);

#endif
