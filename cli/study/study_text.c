/* Runs and tables as text. A store may come from anyone, so nothing of it goes to a terminal as it
 * is. */
#include "study/study.h"

#include <stdio.h>
#include <string.h>

/* ---- cells ---------------------------------------------------------------------------------- */

char *study_clean(const char *text, char *buffer, size_t size)
{
    snprintf(buffer, size, "%s", text ? text : "");
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

/* Columns that UTF-8 text takes, as far as it is one to a character. */
static int columns(const char *text, int bytes)
{
    int count = 0;
    for (int i = 0; i < bytes; i++)
        count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

/* Bytes of text that go on one line: whole words, or as much of one as fits. */
static int cut(const char *text, int width)
{
    int length = (int)strlen(text), fits = 0;
    if (width == 0 || columns(text, length) <= width)
        return length;
    for (int i = 0, used = 0; i < length && used <= width; i++) {
        used += ((unsigned char)text[i] & 0xC0) != 0x80;
        if (text[i] == ' ' && used <= width + 1)
            fits = i;
    }
    for (int i = 0, used = 0; fits == 0 && i < length; i++) {
        used += ((unsigned char)text[i] & 0xC0) != 0x80;
        if (used > width)
            fits = i;
    }
    return fits;
}

void study_print_cells(const char *const *cells, const int *widths, int count)
{
    char text[STUDY_CELLS][2048];
    const char *rest[STUDY_CELLS];
    bool more = true;
    for (int i = 0; i < count; i++)
        rest[i] = study_clean(cells[i], text[i], sizeof text[i]);
    while (more) {
        int owed = 0; /* spaces, printed only if something comes behind them */
        more = false;
        for (int i = 0; i < count; i++) {
            int bytes = cut(rest[i], widths[i]);
            if (bytes > 0) {
                printf("%*s%.*s", owed, "", bytes, rest[i]);
                owed = 0;
            }
            owed += widths[i] - columns(rest[i], bytes) + 2;
            rest[i] += bytes;
            rest[i] += strspn(rest[i], " ");
            more = more || *rest[i];
        }
        putchar('\n');
    }
}

char *study_plural(int64_t count, const char *what, char *buffer, size_t size)
{
    snprintf(buffer, size, "%lld %s%s", (long long)count, what, count == 1 ? "" : "s");
    return buffer;
}

/* ---- settings that vary --------------------------------------------------------------------- */

json_t *study_settings(const char *settings)
{
    json_t *root = json_loads(settings, JSON_DECODE_ANY, NULL);
    json_t *inner = json_object_get(root, "settings"); /* beside command and revision */
    if (!inner)
        return root;
    json_incref(inner);
    json_decref(root);
    return inner;
}

const char *study_json_text(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

char *study_value(const json_t *value, char *buffer, size_t size)
{
    if (json_is_string(value))
        return study_clean(json_string_value(value), buffer, size);
    if (json_is_integer(value))
        snprintf(buffer, size, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        cli_number(json_real_value(value), buffer, size);
    else
        snprintf(buffer, size, "?");
    return buffer;
}

bool study_varying_create(study_varying *v)
{
    v->blocks = json_object();
    return v->blocks != NULL;
}

void study_varying_destroy(study_varying *v)
{
    json_decref(v->blocks);
    v->blocks = NULL;
}

fin_status study_varying_add(study_varying *v, const char *block, const char *settings,
                             fin_error *err)
{
    json_t *now = study_settings(settings), *known = json_object_get(v->blocks, block), *value;
    const char *name;
    if (!json_is_object(now)) {
        json_decref(now);
        return cli_status(err, FIN_ERR_FORMAT, "the settings of a run cannot be read: %.100s",
                          settings);
    }
    if (!known) {
        json_object_set_new(v->blocks, block, json_pack("{s:o, s:{}}", "first", now, "names"));
        return FIN_OK;
    }
    json_t *first = json_object_get(known, "first"), *names = json_object_get(known, "names");
    json_object_foreach(now, name, value)
    {
        if (!json_equal(value, json_object_get(first, name)))
            json_object_set_new(names, name, json_true());
    }
    json_object_foreach(first, name, value)
    {
        if (!json_object_get(now, name)) /* another form has other settings */
            json_object_set_new(names, name, json_true());
    }
    json_decref(now);
    return FIN_OK;
}

char *study_varying_text(const study_varying *v, const char *block, const char *settings,
                         char *buffer, size_t size)
{
    json_t *now = study_settings(settings), *value;
    json_t *names = json_object_get(json_object_get(v->blocks, block), "names");
    const char *name;
    char text[256], part[320];
    size_t used = 0;
    buffer[0] = '\0';
    json_object_foreach(now, name, value)
    {
        if (!json_object_get(names, name))
            continue;
        snprintf(part, sizeof part, "%s%.40s=%s", used ? " " : "", name,
                 study_value(value, text, sizeof text));
        snprintf(buffer + used, size - used, "%s", part);
        used = strlen(buffer);
    }
    json_decref(now);
    return buffer;
}

char *study_varying_names(const study_varying *v, const char *block, char *buffer, size_t size)
{
    const json_t *known = json_object_get(v->blocks, block);
    json_t *names = json_object_get(known, "names"), *value;
    const char *name;
    size_t used = 0;
    buffer[0] = '\0';
    json_object_foreach(json_object_get(known, "first"), name, value)
    {
        if (!json_object_get(names, name))
            continue;
        snprintf(buffer + used, size - used, "%s%.40s", used ? ", " : "", name);
        used = strlen(buffer);
    }
    return buffer;
}
