/* The one printer of what a command has found out: a record (JSON) is built once, and --json prints it
 * as it is, while people read a text that a form makes of it. In a form
 *
 *     {path}           the value there, such as data.bags or models.0.name; inside of a list paths begin
 *                      at its element, /path at the record, ^path one list further out; "." is the
 *                      element, "@" its key or number, also as a name in a path
 *     {path:8.4f}      as printf has it; p is a share in per cent; a text is cut and filled up (-16.16s)
 *     {path#bag}       "1 bag", "2 bags"; {path#class/classes}
 *     {path,9|FORM}    the first 9 elements with commas, in lines of at most 100 characters
 *     {path=}          the members of an object as "d=400 L=10", in such lines
 *     {*path|FORM}     FORM for every element
 *     {?path}          prints nothing and asks for something that is there, neither false nor 0;
 *                      {!path} for the opposite, {?path=text}, {?path>1}; {?tty}: this is a terminal,
 *                      {?first}: the first element
 *     {%9,0|A|B}       cells of these widths (0: any), broken at spaces
 *     [A|B]            A if all it needs is there, else B, else nothing
 *     <9:FORM>         FORM to the right in 9 characters; <-9:FORM> to the left
 *
 * and a backslash takes the meaning of the next character away. What is not there is a dash; {~path}
 * says that this is all right, also between [ and ]. */
#include "cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WIDTH = 100 };

static bool inside(char c) /* of a character of several bytes, not its first one */
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

char *cli_clean(const char *text, char *buffer, size_t size)
{
    text = text ? text : "";
    size_t end = strlen(text);
    if (end >= size)
        for (end = size - 1; end > 0 && inside(text[end]);)
            end--;
    snprintf(buffer, size, "%.*s", (int)end, text);
    for (char *c = buffer; *c; c++) {
        bool space = *c == '\n' || *c == '\t' || *c == '\r';
        bool high = (unsigned char)c[0] == 0xC2 && (unsigned char)c[1] < 0xA0; /* U+0080..9F */
        if ((unsigned char)*c < ' ' || *c == 127 || high)
            *c = space ? ' ' : '?';
        if (high)
            *++c = '?';
    }
    return buffer;
}

/* ---- the text that grows ---------------------------------------------------------------------- */

typedef struct page {
    char *text;
    size_t used, room;
    bool failed; /* there was no memory */
} page;

static void add(page *p, const char *text, size_t bytes)
{
    if (p->used + bytes + 1 > p->room) {
        size_t room = 2 * (p->used + bytes) + 1024;
        char *more = realloc(p->text, room);
        p->failed = p->failed || !more;
        if (!more)
            return;
        p->text = more;
        p->room = room;
    }
    memcpy(p->text + p->used, text, bytes);
    p->used += bytes;
    p->text[p->used] = '\0';
}

static void pad(page *p, int count)
{
    for (int i = 0; i < count; i++)
        add(p, " ", 1);
}

/* Characters of UTF-8, as far as each takes a column. */
static int characters(const char *text, size_t bytes)
{
    int count = 0;
    for (size_t i = 0; i < bytes; i++)
        count += !inside(text[i]);
    return count;
}

/* Characters since the last line break. */
static int column_of(const page *p)
{
    size_t start = p->used;
    while (start > 0 && p->text[start - 1] != '\n')
        start--;
    return p->text ? characters(p->text + start, p->used - start) : 0;
}

/* What stands from `from` on, to the right in `width` characters, or to the left if it is negative. */
static void fill_up(page *p, size_t from, int width)
{
    int missing = abs(width) - (p->text ? characters(p->text + from, p->used - from) : 0);
    size_t bytes = p->used - from;
    if (missing <= 0)
        return;
    pad(p, missing);
    if (width > 0 && !p->failed) {
        memmove(p->text + from + missing, p->text + from, bytes);
        memset(p->text + from, ' ', (size_t)missing);
    }
}

/* ---- values ------------------------------------------------------------------------------------ */

typedef struct scope {
    const json_t *value;
    const char *key; /* of the element, which is */
    int64_t index;   /* this one of those in its list */
    const struct scope *outer;
} scope;

static const json_t *find(const scope *s, const char *path)
{
    const char *key = s->key;
    for (; *path == '^' && s->outer; path++)
        s = s->outer;
    while (*path == '/' && s->outer)
        s = s->outer;
    path += *path == '/';
    const json_t *value = s->value;
    for (path += *path == '.'; *path && value; path += *path == '.') {
        char name[128];
        size_t length = strcspn(path, ".");
        snprintf(name, sizeof name, "%.*s", (int)length, path);
        path += length;
        value = json_is_array(value) ? json_array_get(value, (size_t)atoi(name))
                                     : json_object_get(value, strcmp(name, "@") == 0 ? key : name);
    }
    return json_is_null(value) ? NULL : value;
}

/* A number, or how many elements there are; NaN: neither. */
static double number_of(const json_t *value)
{
    const char *text = json_string_value(value);
    if (json_is_array(value) || json_is_object(value))
        return (double)(json_array_size(value) + json_object_size(value));
    if (!text)
        return json_is_number(value) ? json_number_value(value) : json_is_true(value) ? 1 : NAN;
    return strcmp(text, "inf") == 0 ? INFINITY : strcmp(text, "-inf") == 0 ? -INFINITY : NAN;
}

char *cli_value(const json_t *value, char *buffer, size_t size)
{
    if (json_is_string(value))
        cli_clean(json_string_value(value), buffer, size);
    else if (json_is_integer(value))
        snprintf(buffer, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        cli_number(json_real_value(value), buffer, size);
    else
        snprintf(buffer, size, "%s", json_is_true(value) ? "yes" : "no");
    return buffer;
}

/* "%8.4f"; a number that is printed as 0 has no sign. */
static void format_number(page *p, const char *format, double number)
{
    char spec[32], text[400];
    char kind = format[strlen(format) - 1];
    number *= kind == 'p' ? 100 : 1;
    snprintf(spec, sizeof spec, "%%%.*s%s", (int)strlen(format) - 1, format,
             kind == 'd'   ? "lld"
             : kind == 'p' ? "f"
             : kind == 'e' ? "e"
             : kind == 'f' ? "f"
                           : "g");
    for (int again = 0; again < 2; again++) {
        if (kind == 'd')
            snprintf(text, sizeof text, spec, (long long)number);
        else
            snprintf(text, sizeof text, spec, number);
        if (again || strcspn(text, "123456789in") != strlen(text))
            break;
        number = 0;
        char *plus = strchr(spec, '+');
        if (plus)
            memmove(plus, plus + 1, strlen(plus));
    }
    add(p, text, strlen(text));
}

static void format_text(page *p, const char *format, const char *text)
{
    const char *dot = strchr(format, '.');
    int most = dot ? atoi(dot + 1) : 1 << 30;
    size_t bytes = 0, from = p->used;
    while (text[bytes] && (characters(text, bytes + 1) <= most))
        bytes++;
    add(p, text, bytes);
    fill_up(p, from, atoi(format));
}

/* ---- forms ------------------------------------------------------------------------------------- */

static bool render(page *p, const scope *s, const char *form, const char *end);

/* The place of the first of `stops` that is in no bracket of its own; end if there is none. */
static const char *seek(const char *form, const char *end, const char *stops)
{
    int depth = 0;
    for (; form < end; form++) {
        if (*form == '\\') {
            form++;
            continue;
        }
        if (depth == 0 && strchr(stops, *form))
            return form;
        depth += (strchr("{[", *form) != NULL) - (strchr("}]", *form) != NULL);
    }
    return end;
}

/* {?path}, {?path=text}, {?path>1}; test: what stands behind the question mark. */
static bool holds(const scope *s, const char *test)
{
    char path[128], text[256];
    size_t length = strcspn(test, "=<>");
    snprintf(path, sizeof path, "%.*s", (int)length, test);
    if (strcmp(test, "tty") == 0)
        return isatty(STDOUT_FILENO);
    if (strcmp(test, "first") == 0)
        return s->index == 0;
    const json_t *value = find(s, path);
    if (test[length] == '=' && strcmp(path, "@") == 0)
        return strcmp(s->key, test + length + 1) == 0;
    if (test[length] == '=')
        return value && strcmp(cli_value(value, text, sizeof text), test + length + 1) == 0;
    double number = strcmp(path, "@") == 0 ? (double)s->index : number_of(value);
    if (test[length])
        return test[length] == '>' ? number > atof(test + length + 1)
                                   : number < atof(test + length + 1);
    return json_is_string(value) ? *json_string_value(value) != '\0'
                                 : number != 0 && !isnan(number);
}

typedef void each(page *p, const scope *s, const char *form, const char *end);

/* Calls `call` for the elements of an array or an object. Returns how many there are. */
static int64_t for_all(page *p, const scope *s, const json_t *list, each *call, const char *form,
                       const char *end)
{
    int64_t count = 0;
    size_t i;
    const char *key;
    json_t *value;
    char number[32];
    json_array_foreach(list, i, value)
    {
        snprintf(number, sizeof number, "%zu", i);
        call(p, &(scope){value, number, count, s}, form, end);
        count++;
    }
    json_object_foreach((json_t *)list, key, value)
    {
        call(p, &(scope){value, key, count, s}, form, end);
        count++;
    }
    return count;
}

static void print_element(page *p, const scope *s, const char *form, const char *end)
{
    render(p, s, form, end);
}

/* Elements side by side, in lines that begin where the first one does. */
typedef struct items {
    const char *between;
    int margin;
    int64_t most;
} items;
static items under_way;

static void print_item(page *p, const scope *s, const char *form, const char *end)
{
    const items *list = &under_way;
    int64_t i = s->index;
    if (i > list->most)
        return;
    size_t from = p->used, between = strlen(list->between);
    int column = column_of(p);
    if (i)
        add(p, list->between, between);
    if (i == list->most)
        add(p, "...", 3);
    else
        render(p, s, form, end);
    int length = p->text ? characters(p->text + from, p->used - from) : 0;
    if (!i || column + length <= WIDTH || p->failed)
        return;
    char *item = strdup(p->text + from + between); /* it belongs into the next line */
    size_t comma = between > 1;
    p->used = from + comma;
    add(p, "\n", 1);
    pad(p, list->margin);
    add(p, item ? item : "", item ? strlen(item) : 0);
    p->failed = p->failed || !item;
    free(item);
}

static bool print_items(page *p, const scope *s, const json_t *list, const items *how,
                        const char *form)
{
    const items outer = under_way;
    under_way = *how;
    under_way.margin = column_of(p);
    bool some = for_all(p, s, list, print_item, form, form + strlen(form)) > 0;
    under_way = outer;
    return some;
}

/* Bytes of text that go on one line of a cell: whole words, or as much of one as fits. */
static size_t cut(const char *text, int width)
{
    size_t length = strlen(text), fits = 0;
    if (width == 0 || characters(text, length) <= width)
        return length;
    for (size_t i = 0; i < length && characters(text, i + 1) <= width + 1; i++)
        if (text[i] == ' ')
            fits = i;
    for (size_t i = 0; fits == 0 && i < length; i++)
        if (characters(text, i + 1) > width)
            fits = i;
    return fits;
}

/* {%9,0|A|B}: form begins with the widths. */
static void print_cells(page *p, const scope *s, const char *form, const char *end)
{
    enum { CELLS = 8 };
    char *text[CELLS] = {NULL}, *rest[CELLS];
    int width[CELLS], count = 0;
    for (const char *cell = seek(form, end, "|"); cell < end && count < CELLS; count++) {
        const char *next = seek(cell + 1, end, "|");
        page one = {NULL, 0, 0, false};
        width[count] = atoi(form);
        form += strcspn(form, ",|");
        form += *form == ',';
        add(&one, "", 0);
        render(&one, s, cell + 1, next);
        text[count] = rest[count] = one.text;
        p->failed = p->failed || one.failed;
        cell = next;
    }
    for (bool more = !p->failed; more;) {
        int owed = 0; /* spaces, printed only if something comes behind them */
        more = false;
        for (int i = 0; i < count; i++) {
            size_t bytes = cut(rest[i], width[i]);
            if (bytes > 0) {
                pad(p, owed);
                add(p, rest[i], bytes);
                owed = 0;
            }
            owed += width[i] - characters(rest[i], bytes) + 2;
            rest[i] += bytes;
            rest[i] += strspn(rest[i], " ");
            more = more || *rest[i];
        }
        add(p, "\n", 1);
    }
    for (int i = 0; i < count; i++)
        free(text[i]);
}

static void print_noun(page *p, double count, const char *noun)
{
    char text[160];
    const char *plural = strchr(noun, '/');
    int length = plural ? (int)(plural - noun) : (int)strlen(noun);
    if (count == 1)
        snprintf(text, sizeof text, "%.0f %.*s", count, length, noun);
    else
        snprintf(text, sizeof text, "%.0f %s%s", count, plural ? plural + 1 : noun,
                 plural ? "" : "s");
    add(p, text, strlen(text));
}

/* A value and, behind its path, how it is printed. False: it is not there. */
static bool print_value(page *p, const scope *s, const char *form)
{
    size_t length = strcspn(form, ":#,=");
    char path[128], text[4096];
    const char *how = form + length + 1;
    char kind = form[length], last = form[strlen(form) - 1];
    snprintf(path, sizeof path, "%.*s", (int)length, form);
    bool fine = *path == '~';
    const json_t *value = find(s, path + fine);
    double number = number_of(value);
    if (strcmp(path, "@") == 0) {
        format_text(p, kind ? how : "", s->key ? s->key : "");
    } else if (kind == ',' && value) {
        const char *bar = strchr(how, '|');
        return print_items(p, s, value, &(items){", ", 0, atoll(how)}, bar ? bar + 1 : "{.}");
    } else if (kind == '=' && value) {
        return print_items(p, s, value, &(items){" ", 0, INT64_MAX}, "{@}={.}");
    } else if (kind == '#' && value) {
        print_noun(p, number, how);
    } else if (kind == ':' && last != 's' && !isnan(number)) {
        format_number(p, how, number);
    } else if (value && (!kind || last == 's')) {
        format_text(p, kind ? how : "", cli_value(value, text, sizeof text));
    } else {
        format_text(p, kind == ':' ? how : "", "-");
        return fine;
    }
    return true;
}

/* What stands between { and }. False: it is not there. */
static bool print_place(page *p, const scope *s, const char *form, const char *end)
{
    char text[512];
    if (*form == '%') {
        print_cells(p, s, form + 1, end);
        return true;
    }
    if (*form == '*') {
        const char *bar = seek(form, end, "|");
        snprintf(text, sizeof text, "%.*s", (int)(bar - form - 1), form + 1);
        return for_all(p, s, find(s, text), print_element, bar + 1, end) > 0;
    }
    snprintf(text, sizeof text, "%.*s", (int)(end - form), form);
    if (*text == '?' || *text == '!')
        return holds(s, text + 1) == (*text == '?');
    return print_value(p, s, text);
}

/* A if all it needs is there, else B. */
static void print_first(page *p, const scope *s, const char *form, const char *end)
{
    size_t used = p->used;
    for (const char *bar = form; bar < end; form = bar + 1) {
        bar = seek(form, end, "|");
        if (render(p, s, form, bar))
            return;
        p->used = used;
        add(p, "", 0);
    }
}

/* False: something that it needs is not there. */
static bool render(page *p, const scope *s, const char *form, const char *end)
{
    bool whole = true;
    while (form < end) {
        size_t plain = strcspn(form, "\\{[<"), left = (size_t)(end - form);
        add(p, form, plain < left ? plain : left);
        form += plain;
        if (form >= end)
            break;
        const char *close = seek(form + 1, end, *form == '{' ? "}" : *form == '[' ? "]" : ">");
        if (*form == '\\') {
            add(p, form + 1, 1);
            close = form + 1;
        } else if (*form == '{') {
            whole = print_place(p, s, form + 1, close) && whole;
        } else if (*form == '[') {
            print_first(p, s, form + 1, close);
        } else {
            size_t from = p->used;
            whole = render(p, s, strchr(form, ':') + 1, close) && whole;
            fill_up(p, from, atoi(form + 1));
        }
        form = close + 1;
    }
    return whole;
}

static page page_of(const json_t *record, const char *form)
{
    page p = {NULL, 0, 0, false};
    add(&p, "", 0);
    render(&p, &(scope){record, "", 0, NULL}, form, form + strlen(form));
    if (p.failed)
        cli_failed("not enough memory for the text");
    return p;
}

int cli_print(const json_t *record, const char *form)
{
    page p = page_of(record, form);
    if (!p.failed)
        fwrite(p.text, 1, p.used, stdout);
    free(p.text);
    return p.failed ? CLI_FAILED : CLI_OK;
}

void cli_note_of(const json_t *record, const char *form)
{
    page p = page_of(record, form);
    if (!p.failed && p.used)
        cli_note("%s", p.text);
    free(p.text);
}

int cli_show_forms(const cli_args *args, json_t *record, const char *const *forms)
{
    if (cli_get(args, "json") || cli_json_starved(record))
        return cli_print_json(record);
    int code = CLI_OK;
    for (; *forms && !code; forms++)
        code = cli_print(record, *forms);
    json_decref(record);
    return code ? code : cli_flush();
}
