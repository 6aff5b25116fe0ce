/* Characters of Unicode, as tokenizers ask for them. Tables are of ranges, runs and spans, found
 * by bisection; ASCII is answered before. */
#include "text/text.h"

typedef struct fini_range {
    fini_char first, last;
} fini_range;
typedef struct fini_run {
    fini_char first, last, step;
    int32_t move;
} fini_run;
typedef struct fini_span {
    fini_char first, last, at;
} fini_span;
typedef struct fini_several {
    fini_char from, to[3];
} fini_several;

#include "text/unicode_tables.h"

#define COUNT(table) (sizeof(table) / sizeof *(table))

fini_char fini_char_next(const char **p, const char *end)
{
    const unsigned char *u = (const unsigned char *)*p;
    int length = fini_utf8_length(*p, end);
    *p += length ? length : 1;
    switch (length) {
    case 1:
        return u[0];
    case 2:
        return (fini_char)(u[0] & 0x1f) << 6 | (u[1] & 0x3f);
    case 3:
        return (fini_char)(u[0] & 0x0f) << 12 | (fini_char)(u[1] & 0x3f) << 6 | (u[2] & 0x3f);
    case 4:
        return (fini_char)(u[0] & 0x07) << 18 | (fini_char)(u[1] & 0x3f) << 12 |
               (fini_char)(u[2] & 0x3f) << 6 | (u[3] & 0x3f);
    default:
        return FINI_NO_CHAR;
    }
}

/* The first item of a table that does not end before c; items begin with first and last. */
static size_t search(const void *table, size_t size, size_t count, fini_char c)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        const fini_char *item = (const void *)((const char *)table + middle * size);
        if (item[1] < c)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool inside(const fini_range *table, size_t count, fini_char c)
{
    size_t at = search(table, sizeof *table, count, c);
    return at < count && table[at].first <= c;
}

static fini_char moved(const fini_run *table, size_t count, fini_char c)
{
    /* Runs of every second character lie in each other. */
    for (size_t at = search(table, sizeof *table, count, c); at < count && table[at].first <= c;
         at++)
        if ((c - table[at].first) % table[at].step == 0)
            return (fini_char)((int64_t)c + table[at].move);
    return c;
}

bool fini_char_space(fini_char c)
{
    if (c < 0x80)
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
    return inside(spaces, COUNT(spaces), c);
}

bool fini_char_control(fini_char c)
{
    if (c < 0x80)
        return (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || c == 0x7f;
    return inside(controls, COUNT(controls), c);
}

/* All of ASCII that is no letter, digit or space counts ("$" and "`" are no P* for Unicode). */
bool fini_char_punctuation(fini_char c)
{
    if (c < 0x80)
        return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) ||
               (c >= 123 && c <= 126);
    return inside(punctuation, COUNT(punctuation), c);
}

bool fini_char_cjk(fini_char c)
{
    static const fini_range blocks[] = {{0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xf900, 0xfaff},
                                        {0x20000, 0x2a6df}, {0x2a700, 0x2b73f}, {0x2b740, 0x2b81f},
                                        {0x2b820, 0x2ceaf}, {0x2f800, 0x2fa1f}};
    return c >= 0x3400 && inside(blocks, COUNT(blocks), c);
}

fini_char fini_char_lower(fini_char c)
{
    if (c < 0x80)
        return c >= 'A' && c <= 'Z' ? c + 32 : c;
    return c == 0x130 ? 'i' : moved(lower, COUNT(lower), c);
}

fini_char fini_char_width(fini_char c)
{
    return c < 0x80 ? c : moved(width, COUNT(width), c);
}

/* A syllable of Hangul is two or three letters, by arithmetic (Unicode, 3.12). */
static int hangul(fini_char c, fini_char to[3])
{
    fini_char s = c - 0xac00, last = s % 28;
    to[0] = 0x1100 + s / 588;
    to[1] = 0x1161 + s % 588 / 28;
    to[2] = 0x11a7 + last;
    return last ? 3 : 2;
}

int fini_char_plain(fini_char c, fini_char to[3])
{
    to[0] = c;
    if (c < 0xc0)
        return 1;
    if (c >= 0xac00 && c <= 0xd7a3)
        return hangul(c, to);
    if (inside(marks, COUNT(marks), c))
        return 0;
    for (size_t i = 0; i < COUNT(plain_more); i++)
        if (plain_more[i].from == c) {
            int count = 0;
            for (; count < 3 && plain_more[i].to[count]; count++)
                to[count] = plain_more[i].to[count];
            return count;
        }
    size_t at = search(plain, sizeof *plain, COUNT(plain), c);
    if (at < COUNT(plain) && plain[at].first <= c)
        to[0] = plain_to[plain[at].at + c - plain[at].first];
    return 1;
}
