/* The growing text and its escapes. Everything a user can name (studies, settings, labels, reasons
 * of failures) passes through one of the escapes here, and nowhere else. */
#include "report/page.h"

#include "command/command.h"
#include "data/data.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void fini_page_close(fini_page *page)
{
    fini_free(page->text);
    *page = (fini_page){NULL, 0, 0, false};
}

fin_status fini_page_status(const fini_page *page, fin_error *err)
{
    return page->failed ? fini_fail_memory(err, page->size, "the text of a report") : FIN_OK;
}

fin_status fini_page_write(const fini_page *page, const char *path, fin_error *err)
{
    fini_output *output = NULL;
    FINI_TRY(fini_page_status(page, err));
    FINI_TRY(fini_output_open(path, false, &output, err));
    fin_status status = fini_output_write(output, page->text, page->size, err);
    if (!status)
        return fini_output_commit(output, err);
    fini_output_abort(output);
    return status;
}

static bool reserve(fini_page *page, size_t more)
{
    if (page->failed || page->room - page->size >= more)
        return !page->failed;
    size_t room = page->room ? page->room : 4096;
    while (room - page->size < more && room <= SIZE_MAX / 2)
        room *= 2;
    char *text = room - page->size < more ? NULL : fini_alloc(room);
    if (!text) {
        page->failed = true;
        return false;
    }
    if (page->size)
        memcpy(text, page->text, page->size);
    fini_free(page->text);
    page->text = text;
    page->room = room;
    return true;
}

void fini_page_bytes(fini_page *page, const char *bytes, size_t size)
{
    if (size == 0 || !reserve(page, size))
        return;
    memcpy(page->text + page->size, bytes, size);
    page->size += size;
}

void fini_page_add(fini_page *page, const char *text)
{
    fini_page_bytes(page, text, strlen(text));
}

void fini_page_print(fini_page *page, const char *format, ...)
{
    char piece[512];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(piece, sizeof piece, format, list);
    va_end(list);
    if (length > 0)
        fini_page_bytes(page, piece,
                        (size_t)length < sizeof piece ? (size_t)length : sizeof piece - 1);
}

/* ---- text from outside ---------------------------------------------------------------------- */

#define REPLACEMENT "\xef\xbf\xbd"

/* The character at *text, moved past: its bytes, and their number in *length. */
static const char *next_character(const char **text, int *length)
{
    const char *at = *text, *end = at;
    while (*end && end - at < 4)
        end++;
    unsigned char c = (unsigned char)*at;
    *length = c < 0x80 ? 1 : fini_utf8_length(at, end);
    /* U+FFFE and U+FFFF are valid UTF-8, but not allowed in XML. */
    bool no_character =
        *length == 3 && c == 0xef && (unsigned char)at[1] == 0xbf && (unsigned char)at[2] >= 0xbe;
    if (*length == 0 || (c < 0x20 && c != '\n' && c != '\t') || c == 0x7f || no_character) {
        *text += no_character ? 3 : 1;
        *length = 3;
        return REPLACEMENT;
    }
    *text += *length;
    return at;
}

void fini_page_xml(fini_page *page, const char *text)
{
    while (*text) {
        int length;
        const char *c = next_character(&text, &length);
        switch (*c) {
        case '<':
            fini_page_add(page, "&lt;");
            break;
        case '>':
            fini_page_add(page, "&gt;");
            break;
        case '&':
            fini_page_add(page, "&amp;");
            break;
        case '"':
            fini_page_add(page, "&quot;");
            break;
        case '\'':
            fini_page_add(page, "&#39;");
            break;
        default:
            fini_page_bytes(page, c, (size_t)length);
        }
    }
}

void fini_page_json(fini_page *page, const char *text)
{
    fini_page_add(page, "\"");
    while (*text) {
        int length;
        const char *c = next_character(&text, &length);
        bool line = length == 3 && (!memcmp(c, "\xe2\x80\xa8", 3) || !memcmp(c, "\xe2\x80\xa9", 3));
        if (line)
            fini_page_add(page, (unsigned char)c[2] == 0xa8 ? "\\u2028" : "\\u2029");
        else if (strchr("<>&'\"\\\n\t", *c))
            fini_page_print(page, "\\u%04x", (unsigned)*c);
        else
            fini_page_bytes(page, c, (size_t)length);
    }
    fini_page_add(page, "\"");
}

void fini_page_csv(fini_page *page, const char *text)
{
    bool quotes = !*text || strpbrk(text, ",\"\n\r") || *text == ' ' || *text == '\t';
    if (quotes)
        fini_page_add(page, "\"");
    while (*text) {
        int length;
        const char *c = next_character(&text, &length);
        if (*c == '"')
            fini_page_add(page, "\"");
        fini_page_bytes(page, c, (size_t)length);
    }
    if (quotes)
        fini_page_add(page, "\"");
}

void fini_page_id(fini_page *page, const char *text)
{
    for (; *text; text++) {
        char c = *text;
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_';
        fini_page_bytes(page, plain ? text : "_", 1);
    }
}

void fini_page_script(fini_page *page, const char *bytes, size_t size)
{
    size_t from = 0;
    if (size == 0) /* bytes may be NULL */
        return;
    for (size_t i = 0; i < size; i++)
        if (bytes[i] == '<' || bytes[i] == '\\') {
            fini_page_bytes(page, bytes + from, i - from);
            fini_page_add(page, bytes[i] == '<' ? "\\x3c" : "\\\\");
            from = i + 1;
        }
    fini_page_bytes(page, bytes + from, size - from);
}

void fini_page_form(fini_page *page, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    for (const char *mark; (mark = strchr(format, '%')); format = mark + 1) {
        fini_page_bytes(page, format, (size_t)(mark - format));
        char how = *++mark;
        if (how == '-' || how == '1' || how == '2')
            mark++; /* the s */
        if (how == 's')
            fini_page_xml(page, va_arg(list, const char *));
        else if (how == '1')
            fini_page_id(page, va_arg(list, const char *));
        else if (how == '2')
            fini_page_json(page, va_arg(list, const char *));
        else if (how == '-')
            fini_page_add(page, va_arg(list, const char *));
        else if (how == 'f')
            fini_page_point(page, va_arg(list, double));
        else if (how == 'g')
            fini_page_json_number(page, va_arg(list, double));
        else
            fini_page_bytes(page, mark, 1);
    }
    va_end(list);
    fini_page_add(page, format);
}

/* ---- numbers -------------------------------------------------------------------------------- */

void fini_page_point(fini_page *page, double number)
{
    if (!(fabs(number) < 1e6)) /* NaN too; a writer never needs more */
        number = number > 0 ? 1e6 : number < 0 ? -1e6 : 0;
    long long tenths = llround(number * 10);
    unsigned long long size = (unsigned long long)(tenths < 0 ? -tenths : tenths);
    fini_page_print(page, size % 10 ? "%s%llu.%llu" : "%s%llu", tenths < 0 ? "-" : "", size / 10,
                    size % 10);
}

void fini_page_number(fini_page *page, double number)
{
    char text[(int)FINI_NUMBER > (int)FINI_SHORTEST ? (int)FINI_NUMBER : (int)FINI_SHORTEST];
    fini_page_bytes(page, text,
                    isfinite(number) ? fini_shortest(number, text) : fini_format(number, text));
}

void fini_page_short(fini_page *page, double number, int digits)
{
    char text[64];
    fini_print_double(number, digits, text, sizeof text);
    fini_page_add(page, text);
}

void fini_page_json_number(fini_page *page, double number)
{
    if (isfinite(number))
        fini_page_number(page, number);
    else
        fini_page_add(page, "null");
}
