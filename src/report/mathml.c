/* Formulas: a small part of TeX becomes MathML, which browsers typeset. Every element is written here, and all text
 * passes fini_page_xml: a formula from a study file cannot bring markup of its own. */
#include "report/mathml.h"

#include <ctype.h>
#include <string.h>

enum { DEPTH_MOST = 24 };

/* Names after a backslash: letters, operators, functions written upright. */
static const struct symbol {
    const char *name, *text;
    char kind; /* i: identifier, o: operator, f: function, s: a star, which is high already */
} symbols[] = {
    {"alpha", "α", 'i'},   {"beta", "β", 'i'},
    {"gamma", "γ", 'i'},   {"delta", "δ", 'i'},
    {"epsilon", "ε", 'i'}, {"eta", "η", 'i'},
    {"theta", "θ", 'i'},   {"kappa", "κ", 'i'},
    {"lambda", "λ", 'i'},  {"mu", "μ", 'i'},
    {"nu", "ν", 'i'},      {"rho", "ρ", 'i'},
    {"pi", "π", 'i'},      {"sigma", "σ", 'i'},
    {"tau", "τ", 'i'},     {"phi", "φ", 'i'},
    {"ell", "ℓ", 'i'},     {"infty", "∞", 'i'},
    {"R", "ℝ", 'i'},       {"E", "𝔼", 'i'},
    {"Gamma", "Γ", 'i'},   {"Sigma", "Σ", 'i'},
    {"Delta", "Δ", 'i'},   {"sum", "∑", 'o'},
    {"prod", "∏", 'o'},    {"int", "∫", 'o'},
    {"to", "→", 'o'},      {"cdot", "·", 'o'},
    {"star", "*", 's'},    {"le", "≤", 'o'},
    {"ge", "≥", 'o'},      {"ne", "≠", 'o'},
    {"approx", "≈", 'o'},  {"propto", "∝", 'o'},
    {"sim", "∼", 'o'},     {"in", "∈", 'o'},
    {"mid", "∣", 'o'},     {"langle", "⟨", 'o'},
    {"rangle", "⟩", 'o'},  {"top", "⊤", 'o'},
    {"dots", "…", 'o'},    {"times", "×", 'o'},
    {"pm", "±", 'o'},      {"exp", "exp", 'f'},
    {"log", "log", 'f'},   {"erf", "erf", 'f'},
    {"min", "min", 'f'},   {"max", "max", 'f'},
    {"tr", "tr", 'f'},     {"softmax", "softmax", 'f'},
    {"Var", "Var", 'f'},   {"KL", "KL", 'f'},
};

typedef struct reader {
    const char *at;
    int depth;
    bool bad;
} reader;

static void read_row(reader *r, fini_page *page, char end);

static void element(fini_page *page, const char *name, const char *text)
{
    fini_page_form(page, "<%-s>%s</%-s>", name, text, name);
}

/* {...}, or one sign. */
static void read_group(reader *r, fini_page *page);

/* \name{a}{b} with `count` groups. */
static void read_parts(reader *r, fini_page *page, const char *name, int count)
{
    fini_page_form(page, "<%-s>", name);
    for (int i = 0; i < count; i++)
        read_group(r, page);
    fini_page_form(page, "</%-s>", name);
}

static void read_text(reader *r, fini_page *page)
{
    const char *end = *r->at == '{' ? strchr(r->at, '}') : NULL;
    char text[200];
    size_t length = end ? (size_t)(end - r->at - 1) : sizeof text;
    if (length >= sizeof text) {
        r->bad = true;
        return;
    }
    memcpy(text, r->at + 1, length);
    text[length] = '\0';
    element(page, "mtext", text);
    r->at = end + 1;
}

static void read_command(reader *r, fini_page *page, bool *large)
{
    size_t length = 0;
    while (isalpha((unsigned char)r->at[length]))
        length++;
    const char *name = r->at;
    r->at += length;
    if (length == 4 && memcmp(name, "frac", 4) == 0)
        return read_parts(r, page, "mfrac", 2);
    if (length == 4 && memcmp(name, "sqrt", 4) == 0)
        return read_parts(r, page, "msqrt", 1);
    if (length == 4 && memcmp(name, "text", 4) == 0)
        return read_text(r, page);
    if (length == 3 && memcmp(name, "hat", 3) == 0) {
        fini_page_add(page, "<mover>");
        read_group(r, page);
        fini_page_add(page, "<mo>^</mo></mover>");
        return;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        const struct symbol *s = &symbols[i];
        if (strlen(s->name) != length || memcmp(s->name, name, length) != 0)
            continue;
        *large = strcmp(s->name, "sum") == 0 || strcmp(s->name, "prod") == 0;
        element(page, s->kind == 'o' ? "mo" : s->kind == 's' ? "mtext" : "mi", s->text);
        return;
    }
    r->bad = true;
}

static void read_sign(reader *r, fini_page *page, bool *large)
{
    char text[8] = {0};
    unsigned char c = (unsigned char)*r->at;
    if (c == '{') {
        r->at++;
        read_row(r, page, '}');
    } else if (c == '\\') {
        r->at++;
        read_command(r, page, large);
    } else if (isdigit(c)) {
        char number[40];
        size_t length = strspn(r->at, "0123456789.");
        length = length < sizeof number ? length : sizeof number - 1;
        memcpy(number, r->at, length);
        number[length] = '\0';
        r->at += length;
        element(page, "mn", number);
    } else if (c == '\0' || c == '}' || c == '_' || c == '^') {
        r->bad = true;
    } else {
        size_t length = 1;
        while (length < 4 && ((unsigned char)r->at[length] & 0xc0) == 0x80)
            length++;
        memcpy(text, r->at, length);
        r->at += length;
        if (strchr("()[]|", text[0])) /* else as tall as the tallest sum of the row */
            fini_page_form(page, "<mo stretchy=\"false\">%s</mo>", text);
        else
            element(page, isalpha(c) || c >= 0x80 ? "mi" : "mo",
                    text[0] == '-' ? "\xe2\x88\x92" : text);
    }
}

static void read_group(reader *r, fini_page *page)
{
    bool large;
    if (++r->depth > DEPTH_MOST)
        r->bad = true;
    while (*r->at == ' ')
        r->at++;
    if (!r->bad)
        read_sign(r, page, &large);
    r->depth--;
}

/* A sign with what stands below and above it. */
static void read_item(reader *r, fini_page *page)
{
    fini_page base = {NULL, 0, 0, false}, below = base, above = base;
    bool large = false;
    read_sign(r, &base, &large);
    for (int i = 0; i < 2 && !r->bad; i++) {
        if (*r->at == '_' && !below.size) {
            r->at++;
            read_group(r, &below);
        } else if (*r->at == '^' && !above.size) {
            r->at++;
            read_group(r, &above);
        }
    }
    static const char star[] = "<mtext>*</mtext>"; /* raised again it would push lines apart */
    bool flat = !below.size && above.size == sizeof star - 1 &&
                memcmp(above.text, star, sizeof star - 1) == 0;
    const char *tag = flat                       ? "mrow"
                      : below.size && above.size ? large ? "munderover" : "msubsup"
                      : below.size               ? large ? "munder" : "msub"
                      : above.size               ? large ? "mover" : "msup"
                                                 : NULL;
    if (tag)
        fini_page_form(page, "<%-s>", tag);
    fini_page_bytes(page, base.text, base.size);
    fini_page_bytes(page, below.text, below.size);
    fini_page_bytes(page, above.text, above.size);
    if (tag)
        fini_page_form(page, "</%-s>", tag);
    page->failed = page->failed || base.failed || below.failed || above.failed;
    fini_page_close(&base);
    fini_page_close(&below);
    fini_page_close(&above);
}

static void read_row(reader *r, fini_page *page, char end)
{
    if (++r->depth > DEPTH_MOST)
        r->bad = true;
    fini_page_add(page, "<mrow>");
    while (!r->bad && *r->at && *r->at != end) {
        if (*r->at == ' ')
            r->at++;
        else
            read_item(r, page);
    }
    if (!r->bad && *r->at != end)
        r->bad = true;
    if (!r->bad && end)
        r->at++;
    fini_page_add(page, "</mrow>");
    r->depth--;
}

bool fini_mathml(fini_page *page, const char *tex, bool block)
{
    fini_page row = {NULL, 0, 0, false};
    reader r = {tex, 0, false};
    read_row(&r, &row, '\0');
    if (!r.bad) {
        fini_page_add(page, block ? "<math display=\"block\">" : "<math>");
        fini_page_bytes(page, row.text, row.size);
        fini_page_add(page, "</math>");
    }
    page->failed = page->failed || row.failed;
    fini_page_close(&row);
    return !r.bad;
}

/* In pieces, because an escape takes a whole text. */
static void add_part(fini_page *page, const char *text, size_t length)
{
    while (length > 0) {
        char piece[400];
        size_t size = length < sizeof piece ? length : sizeof piece - 1;
        while (size > 1 && size < length && ((unsigned char)text[size] & 0xc0) == 0x80)
            size--;
        memcpy(piece, text, size);
        piece[size] = '\0';
        fini_page_xml(page, piece);
        text += size;
        length -= size;
    }
}

static bool in_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* How much of what follows a ^ is an exponent: 2, -1/2, 0.75, a, -b, (d-1). */
static size_t exponent_size(const char *text, size_t n)
{
    size_t size = n > 0 && text[0] == '-';
    const char *close = n > 1 && text[0] == '(' ? memchr(text, ')', n) : NULL;
    if (close)
        return (size_t)(close - text) + 1;
    if (size < n && isalpha((unsigned char)text[size]))
        return n - size > 1 && in_word(text[size + 1]) ? 0 : size + 1;
    size_t digits = size;
    while (digits < n && (isdigit((unsigned char)text[digits]) ||
                          (digits > size && digits + 1 < n && strchr("./", text[digits]) &&
                           isdigit((unsigned char)text[digits + 1]))))
        digits++;
    return digits > size ? digits : 0;
}

static void add_exponent(fini_page *page, const char *text, size_t size, bool svg)
{
    bool brackets = text[0] == '(';
    fini_page_add(page, svg ? "<tspan dy=\"-4\" font-size=\"8\">" : "<sup>");
    if (text[0] == '-') {
        fini_page_add(page, "\xe2\x88\x92");
        text++;
        size--;
    }
    add_part(page, text + brackets, size - 2 * (size_t)brackets);
    fini_page_add(page, svg ? "</tspan>" : "</sup>");
}

/* What stands at text[i] for something else: its size, or 0. */
static size_t special(const char *text, size_t n, size_t i)
{
    const char *at = text + i, *close;
    size_t left = n - i, size;
    if (*at == 'l' && left >= 3 && memcmp(at, "lam", 3) == 0)
        return (i > 0 && in_word(at[-1])) || (left > 3 && in_word(at[3])) ? 0 : 3;
    if (*at == '+')
        return left >= 2 && at[1] == '-' ? 2 : 0;
    if (*at == '`')
        return (close = memchr(at + 1, '`', left - 1)) ? (size_t)(close - at) + 1 : 0;
    if (*at == '^' && i > 0)
        return (size = exponent_size(at + 1, left - 1)) ? size + 1 : 0;
    return 0;
}

static void add_words(fini_page *page, const char *text, size_t n, bool svg)
{
    size_t from = 0;
    bool raised = false; /* an SVG goes on where the last letter stood */
    for (size_t i = 0; i <= n; i++) {
        size_t size = i < n ? special(text, n, i) : 0;
        if (size == 0 && i < n)
            continue;
        if (raised && i > from)
            fini_page_add(page, "<tspan dy=\"4\">");
        add_part(page, text + from, i - from);
        if (raised && i > from) {
            fini_page_add(page, "</tspan>");
            raised = false;
        }
        if (size == 0)
            break;
        if (text[i] == 'l' || text[i] == '+')
            fini_page_add(page, text[i] == 'l' ? "\xce\xbb" : "\xc2\xb1");
        if (text[i] == '^') {
            add_exponent(page, text + i + 1, size - 1, svg);
            raised = svg;
        }
        if (text[i] == '`') {
            fini_page_add(page, svg ? "" : "<code>");
            add_part(page, text + i + 1, size - 2);
            fini_page_add(page, svg ? "" : "</code>");
        }
        from = i + size;
        i = from - 1;
    }
}

void fini_words(fini_page *page, const char *text)
{
    add_words(page, text, strlen(text), false);
}

void fini_words_svg(fini_page *page, const char *text)
{
    add_words(page, text, strlen(text), true);
}

bool fini_prose(fini_page *page, const char *text)
{
    char tex[400];
    for (const char *from; (from = strchr(text, '$'));) {
        const char *to = strchr(from + 1, '$');
        size_t length = to ? (size_t)(to - from - 1) : sizeof tex;
        if (length >= sizeof tex)
            return false;
        add_words(page, text, (size_t)(from - text), false);
        memcpy(tex, from + 1, length);
        tex[length] = '\0';
        if (!fini_mathml(page, tex, false))
            return false;
        text = to + 1;
    }
    fini_words(page, text);
    return true;
}
