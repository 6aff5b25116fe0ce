/* Reading numbers the same way whatever locale the host program has chosen. */
#define _GNU_SOURCE /* strtod_l */
#include "base/base.h"

#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static locale_t c_locale;

static void open_locale(void)
{
    c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

double fini_strtod(const char *text, char **end)
{
    pthread_once(&once, open_locale);
    return c_locale ? strtod_l(text, end, c_locale) : strtod(text, end);
}

void fini_print_double(double number, int digits, char *buffer, size_t size)
{
    pthread_once(&once, open_locale);
    locale_t before = c_locale ? uselocale(c_locale) : (locale_t)0;
    snprintf(buffer, size, "%.*g", digits, number);
    if (c_locale)
        uselocale(before);
}
