/* Text that grows: what SVG, CSV and HTML are written into before a file is touched. Running out of
 * memory is remembered, so that writers need to look once, at the end. */
#ifndef FINI_PAGE_H
#define FINI_PAGE_H

#include "base/base.h"

typedef struct fini_page {
    char *text; /* fini_alloc memory; NULL while empty */
    size_t size, room;
    bool failed;
} fini_page;

void fini_page_close(fini_page *page);
fin_status fini_page_status(const fini_page *page, fin_error *err);
/* The whole of it to a file, which is whole or absent. */
fin_status fini_page_write(const fini_page *page, const char *path, fin_error *err);

/* As they are. */
void fini_page_bytes(fini_page *page, const char *bytes, size_t size);
void fini_page_add(fini_page *page, const char *text);
/* Text with arguments: %s escaped for XML, %1s as part of an id, %2s as a JSON text, %-s as it is; numbers
 * %f with one digit, %g in JSON; %% a %. Whatever comes from outside is %s, %1s or %2s. They look as
 * printf's do, so that the compiler compares them with the arguments. */
void fini_page_form(fini_page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* For pieces below 500 bytes, and never for strings that come from outside. */
void fini_page_print(fini_page *page, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Text from outside. In all four, what is no UTF-8 and what is a control character (other than
 * newline and tab) becomes U+FFFD, so that the result is text whatever came in. */
void fini_page_xml(fini_page *page, const char *text);  /* in elements and quoted attributes */
void fini_page_json(fini_page *page, const char *text); /* with its quotes; safe in <script> */
void fini_page_csv(fini_page *page, const char *text);  /* a field, quoted where it must be */
/* A name as part of an id: letters, digits, - and _; anything else becomes _. */
void fini_page_id(fini_page *page, const char *text);
/* Lines for a <script> that is data: "<" becomes "\x3c" and "\" becomes "\\". */
void fini_page_script(fini_page *page, const char *bytes, size_t size);

/* Numbers. A coordinate has one decimal; a JSON number is null if it is not finite. */
void fini_page_point(fini_page *page, double number);
void fini_page_number(fini_page *page, double number); /* as short as it reads back */
void fini_page_short(fini_page *page, double number, int digits);
void fini_page_json_number(fini_page *page, double number);

#endif
