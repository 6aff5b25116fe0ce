/* Conditions on runs: "lam=0.1", "L>=10", "form=softmax,linear", "risk<1".
 *
 * They are looked at here and not by SQLite, so that no text from outside comes near SQL. Two
 * numbers are compared as numbers (0.1 is 1e-1), everything else as text; a number and a word are
 * different and neither is the greater. */
#include "store/store.h"

#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WHERE_MOST = 65536 };

/* The longer ones first: ">=" begins with ">". */
static const char *const operators[] = {"!=", "<=", ">=", "=", "<", ">"};
enum { OP_NOT, OP_AT_MOST, OP_AT_LEAST, OP_EQUAL, OP_LESS, OP_MORE, OPS };

/* ---- settings in canonical JSON -------------------------------------------------------------- */

/* Past the closing quote of the string that begins at p; NULL if there is none. */
static const char *string_end(const char *p)
{
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && !*++p)
            return NULL;
    return *p ? p + 1 : NULL;
}

const char *fini_setting_first(const char *json)
{
    static const char start[] = "\"settings\":{";
    const char *p = strstr(json, start);
    return p ? p + sizeof start - 1 : NULL;
}

const char *fini_setting_next(const char *at, fini_setting *out)
{
    if (!at || *at != '"')
        return NULL;
    const char *end = string_end(at);
    if (!end || *end != ':')
        return NULL;
    out->name = at + 1;
    out->name_length = (int)(end - at - 2);
    const char *value = end + 1;
    bool quoted = *value == '"';
    end = quoted ? string_end(value) : value + strcspn(value, ",}");
    if (!end || (*end != ',' && *end != '}'))
        return NULL;
    out->text = value + quoted;
    out->length = (int)(end - value) - 2 * quoted;
    return *end == ',' ? end + 1 : end;
}

void fini_setting_needle(const char *name, char *needle)
{
    sprintf(needle, "\"%s\":", name);
    for (char *p = needle; *p; p++)
        if (*p == '-')
            *p = '_';
}

/* A quote inside a string is escaped, so that ,"name": and {"name": are nowhere but at a
 * setting. */
bool fini_setting_seek(const char *json, const char *needle, const char **text, int *length)
{
    fini_setting setting;
    const char *p = fini_setting_first(json);
    while (p && (p = strstr(p, needle)) && p[-1] != ',' && p[-1] != '{')
        p++;
    if (!p || !fini_setting_next(p, &setting))
        return false;
    *text = setting.text;
    *length = setting.length;
    return true;
}

bool fini_text_number(const char *text, int length, double *number)
{
    const char *end = text + length;
    bool minus = length > 0 && *text == '-';
    int rest = length - minus;
    *number = NAN;
    if (rest == 3 && memcmp(text + minus, "inf", 3) == 0) {
        *number = minus ? -INFINITY : INFINITY;
        return true;
    }
    if (length == 0 || (text[minus] != '.' && (text[minus] < '0' || text[minus] > '9')))
        return rest == 3 && memcmp(text + minus, "nan", 3) == 0;
    if (fini_decimal(text, end, number) == end)
        return true;
    *number = NAN;
    return false;
}

/* ---- conditions ------------------------------------------------------------------------------ */

static fin_status bad_where(const char *text, fin_error *err)
{
    char shown[FINI_SHOWN];
    fini_printable(text, strlen(text), shown, sizeof shown);
    return fini_fail(err, FIN_ERR_ARGUMENT,
                     "'%s' is no condition on runs; it is NAME OPERATOR VALUE with one of "
                     "= != < <= > >=, such as lam=0.1, L>=10 or form=erf,softmax",
                     shown);
}

static const char *find_operator(const char *text, int *op)
{
    const char *p = text + strcspn(text, "!<>=");
    for (*op = 0; *op < OPS; ++*op)
        if (strncmp(p, operators[*op], strlen(operators[*op])) == 0)
            return p;
    return NULL;
}

static void trim(const char **text, size_t *length)
{
    while (*length > 0 && (**text == ' ' || **text == '\t')) {
        ++*text;
        --*length;
    }
    while (*length > 0 && ((*text)[*length - 1] == ' ' || (*text)[*length - 1] == '\t'))
        --*length;
}

static void layout(fini_arena *arena, fini_condition *out, size_t size, int count)
{
    out->name = fini_take(arena, (int64_t)size + 1, 1);
    out->needle = fini_take(arena, (int64_t)size + 4, 1);
    out->texts = fini_take(arena, count, sizeof *out->texts);
    out->lengths = fini_take(arena, count, sizeof *out->lengths);
    out->numbers = fini_take(arena, count, sizeof *out->numbers);
    out->count = count;
}

/* Several values, for = and !=, stand between bars, or between commas if there is no bar. A word
 * may have commas in it (5:0.2,10:0.8), so that the whole text counts as a value too. */
static char separator(const char *text)
{
    return strchr(text, '|') ? '|' : ',';
}

static void cut_values(fini_condition *out, const char *value, size_t length)
{
    const char *end = value + length, mark = separator(value);
    for (int i = 0; i < out->count; i++) {
        const char *next = i == 0 ? NULL : memchr(value, mark, (size_t)(end - value));
        const char *stop = next ? next : end;
        const char *text = value;
        size_t size = (size_t)(stop - value);
        trim(&text, &size);
        out->texts[i] = text;
        out->lengths[i] = (int)size;
        if (!fini_text_number(text, (int)size, &out->numbers[i]) && (i > 0 || out->count == 1))
            out->words = true;
        if (i > 0)
            value = stop < end ? stop + 1 : end;
    }
}

fin_status fini_condition_parse(const char *text, fini_condition *out, fin_error *err)
{
    fini_arena arena = {0};
    int op, count = 1;
    memset(out, 0, sizeof *out);
    size_t size = strlen(text);
    const char *at = find_operator(text, &op), *name = text;
    size_t name_length = at ? (size_t)(at - text) : 0;
    trim(&name, &name_length);
    if (!at || name_length == 0 || size > WHERE_MOST)
        return bad_where(text, err);
    if (op == OP_EQUAL || op == OP_NOT) {
        for (const char *p = at; *p; p++)
            count += *p == separator(at);
        count += count > 1;
    }
    layout(&arena, out, size, count);
    fin_status status = fini_arena_open(&arena, "a condition on runs", err);
    if (status) {
        memset(out, 0, sizeof *out);
        return status;
    }
    layout(&arena, out, size, count);
    memcpy(out->name, text, size + 1);
    size_t value = (size_t)(at - text) + strlen(operators[op]);
    cut_values(out, out->name + value, size - value);
    /* The name last: its terminator stands where the operator was. */
    memmove(out->name, out->name + (name - text), name_length);
    out->name[name_length] = '\0';
    fini_setting_needle(out->name, out->needle);
    memcpy(out->name, out->needle + 1, name_length); /* with _ for - */
    out->op = op;
    return FIN_OK;
}

void fini_condition_free(fini_condition *where)
{
    fini_free(where->name); /* the first piece of its arena */
    where->name = NULL;
}

static bool equal(const fini_condition *where, int i, const char *text, int length, double number)
{
    if (!isnan(where->numbers[i]) && !isnan(number))
        return where->numbers[i] == number;
    return where->lengths[i] == length && memcmp(where->texts[i], text, (size_t)length) == 0;
}

/* -1, 0, 1; 2 where there is no order. */
static int order(const fini_condition *where, const char *text, int length, double number)
{
    double other = where->numbers[0];
    if (!isnan(number) && !isnan(other))
        return (number > other) - (number < other);
    if (!isnan(number) || !isnan(other))
        return 2;
    int least = length < where->lengths[0] ? length : where->lengths[0];
    int difference = memcmp(text, where->texts[0], (size_t)least);
    if (difference == 0)
        difference = length - where->lengths[0];
    return (difference > 0) - (difference < 0);
}

bool fini_condition_holds(const fini_condition *where, const char *text, int length, double number)
{
    bool found = false;
    if (where->op == OP_EQUAL || where->op == OP_NOT) {
        for (int i = 0; i < where->count && !found; i++)
            found = equal(where, i, text, length, number);
        return found == (where->op == OP_EQUAL);
    }
    int sign = order(where, text, length, number);
    switch (where->op) {
    case OP_LESS:
        return sign == -1;
    case OP_AT_MOST:
        return sign == -1 || sign == 0;
    case OP_MORE:
        return sign == 1;
    default:
        return sign == 0 || sign == 1;
    }
}

/* ---- sets of names --------------------------------------------------------------------------- */

static int compare(const char *a, const char *b, int length)
{
    int difference = strncmp(a, b, (size_t)length);
    return difference ? difference : a[length] != '\0';
}

/* The place of the first name that is not before this one. */
static int place(const fini_name_list *names, const char *name, int length)
{
    int low = 0, high = names->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (compare(names->name[middle], name, length) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int fini_name_list_find(const fini_name_list *names, const char *name, int length)
{
    int i = place(names, name, length);
    return i < names->count && compare(names->name[i], name, length) == 0 ? i : -1;
}

static fin_status make_room(fini_name_list *names, fin_error *err)
{
    if (names->count < names->room)
        return FIN_OK;
    int room = names->room ? names->room * 2 : 64;
    char **larger = fini_alloc_array(room, sizeof *larger);
    if (!larger)
        return fini_fail_memory(err, (size_t)room * sizeof *larger, "a list of names");
    if (names->count)
        memcpy(larger, names->name, (size_t)names->count * sizeof *larger);
    fini_free(names->name);
    names->name = larger;
    names->room = room;
    return FIN_OK;
}

fin_status fini_name_list_add(fini_name_list *names, const char *name, int length, fin_error *err)
{
    int i = place(names, name, length);
    if (i < names->count && compare(names->name[i], name, length) == 0)
        return FIN_OK;
    fin_status status = make_room(names, err);
    if (status)
        return status;
    char *copy = fini_alloc((size_t)length + 1);
    if (!copy)
        return fini_fail_memory(err, (size_t)length + 1, "a name");
    memcpy(copy, name, (size_t)length);
    copy[length] = '\0';
    memmove(names->name + i + 1, names->name + i, (size_t)(names->count - i) * sizeof *names->name);
    names->name[i] = copy;
    names->count++;
    return FIN_OK;
}

void fini_name_list_free(fini_name_list *names)
{
    for (int i = 0; i < names->count; i++)
        fini_free(names->name[i]);
    fini_free(names->name);
    *names = (fini_name_list){0};
}

fin_status fini_name_list_settings(fini_name_list *names, const char *json, fin_error *err)
{
    fini_setting setting;
    fin_status status = FIN_OK;
    for (const char *at = fini_setting_first(json);
         (at = fini_setting_next(at, &setting)) && !status;)
        status = fini_name_list_add(names, setting.name, setting.name_length, err);
    return status;
}
