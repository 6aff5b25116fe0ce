/* Formulas on a page: a small part of TeX as MathML. */
#ifndef FINI_MATHML_H
#define FINI_MATHML_H

#include "report/page.h"

/* Letters, numbers, signs, _ and ^ with {groups}, \frac{}{}, \sqrt{}, \hat{}, \text{}, and names such as \lambda, \sum, \erf
 * (mathml.c lists them). false: it is something else, and nothing is written. */
bool fini_mathml(fini_page *page, const char *tex, bool block);
/* Text, escaped, with signs for what is plain text in studies and stores: `code`, lam, +- and x^2; and inside of <text>. */
void fini_words(fini_page *page, const char *text);
void fini_words_svg(fini_page *page, const char *text);
/* The same with formulas between dollars. false: a formula is none, or has no end; what came before it is written. */
bool fini_prose(fini_page *page, const char *text);

#endif
