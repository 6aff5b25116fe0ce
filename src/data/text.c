/* Text of unknown origin: is it UTF-8, and how is it shown in a message. */
#define _POSIX_C_SOURCE 200809L
#include "data/data.h"

#include <string.h>

int fini_utf8_length(const char *p, const char *end)
{
    const unsigned char *u = (const unsigned char *)p;
    ptrdiff_t left = end - p;
    if (left < 1)
        return 0;
    if (u[0] < 0x80)
        return 1;
    int length = u[0] >= 0xc2 && u[0] <= 0xdf   ? 2
                 : u[0] >= 0xe0 && u[0] <= 0xef ? 3
                 : u[0] >= 0xf0 && u[0] <= 0xf4 ? 4
                                                : 0;
    if (length == 0 || left < length)
        return 0;
    for (int i = 1; i < length; i++)
        if ((u[i] & 0xc0) != 0x80)
            return 0;
    /* Overlong forms, surrogates and numbers past U+10FFFF differ in the second byte only. */
    if ((u[0] == 0xe0 && u[1] < 0xa0) || (u[0] == 0xed && u[1] > 0x9f) ||
        (u[0] == 0xf0 && u[1] < 0x90) || (u[0] == 0xf4 && u[1] > 0x8f))
        return 0;
    return length;
}

uint32_t fini_utf8_next(const char **p)
{
    const unsigned char *u = (const unsigned char *)*p;
    if (!u[0])
        return 0;
    int length = fini_utf8_length(*p, *p + strnlen(*p, 4));
    *p += length ? length : 1;
    if (length < 2)
        return length ? u[0] : '?';
    uint32_t character = u[0] & (0x7fu >> length);
    for (int i = 1; i < length; i++)
        character = character << 6 | (u[i] & 0x3f);
    return character;
}

int fini_utf8_put(uint32_t c, char to[4])
{
    int length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) { /* no character */
        to[0] = '?';
        return 1;
    }
    for (int i = length - 1; i > 0; i--, c >>= 6)
        to[i] = (char)(0x80 | (c & 0x3f));
    to[0] = (char)(length == 1 ? c : c | (0xf00u >> length & 0xff));
    return length;
}

fini_fault fini_text_fault(const char *text, size_t size, bool lines)
{
    for (const char *p = text, *end = text + size; p < end;) {
        int length = fini_utf8_length(p, end);
        if (length == 0)
            return FINI_FAULT_UTF8;
        bool line = *p == '\t' || *p == '\n' || *p == '\r';
        if (((unsigned char)*p < ' ' && !(lines && line)) || (*p == 0x7f && !lines))
            return FINI_FAULT_CONTROL;
        p += length;
    }
    return FINI_FAULT_NONE;
}

/* Control characters can rewrite a terminal; those of C1 (U+0080 to U+009F) as well. */
static bool is_control(const char *p, int length)
{
    unsigned char a = (unsigned char)p[0], b = length > 1 ? (unsigned char)p[1] : 0;
    return length == 1 ? a < 0x20 || a == 0x7f : length == 2 && a == 0xc2 && b < 0xa0;
}

char *fini_printable(const char *text, size_t size, char *buffer, size_t room)
{
    const char *p = text, *end = text + size;
    size_t used = 0;
    while (p < end) {
        int length = fini_utf8_length(p, end), keep = length > 0 && !is_control(p, length);
        size_t next = keep ? (size_t)length : 1;
        if (used + next + 4 > room) { /* "..." and the NUL must fit after it */
            memcpy(buffer + used, "...", 3);
            used += 3;
            break;
        }
        if (keep)
            memcpy(buffer + used, p, next);
        else
            buffer[used] = '?';
        used += next;
        p += length > 0 ? length : 1;
    }
    buffer[used] = '\0';
    return buffer;
}
