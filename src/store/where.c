/* Conditions on settings and scalars: "L>=10", "form=erf,softmax", "risk<1".
 *
 * They become SQL of ours in which names and values are parameters. Two numbers are compared as
 * numbers (0.1 is 1e-1), everything else as text; a number and a word are different and neither is
 * the greater. */
#include "store/store.h"

#include "data/data.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { WHERE_MOST = 65536, VALUES_MOST = 1000 };

/* The longer ones first: ">=" begins with ">". */
static const char *const operators[] = {"!=", "<=", ">=", "=", "<", ">"};
enum { OP_NOT, OP_AT_MOST, OP_AT_LEAST, OP_EQUAL, OP_LESS, OP_MORE, OPS };

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
    out->path = fini_take(arena, (int64_t)size + 16, 1);
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
    if (count > VALUES_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT, "a condition on runs has at most %d values",
                         VALUES_MOST - 1);
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
    for (char *p = out->name; *p; p++)
        if (*p == '-')
            *p = '_';
    fini_setting_path(out->name, out->path);
    out->op = op;
    return FIN_OK;
}

void fini_condition_free(fini_condition *where)
{
    fini_free(where->name); /* the first piece of its arena */
    where->name = NULL;
}

/* ---- as SQL ---------------------------------------------------------------------------------- */

void fini_setting_path(const char *name, char *path)
{
    bool plain = true;
    for (const char *p = name; *p && plain; p++)
        plain = (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') ||
                *p == '_' || *p == '-';
    sprintf(path, "$.settings.%s", plain ? name : "");
    if (!plain || !*name)
        strcpy(path, "$[0]"); /* an object has no such thing */
    for (char *p = path; *p; p++)
        if (*p == '-')
            *p = '_';
}

fin_status fini_condition_look_up(fin_store *store, fini_condition *where, fin_error *err)
{
    sqlite3_stmt *statement;
    FINI_TRY(fini_store_name(store, where->name, false, &where->name_id, err));
    FINI_TRY(fini_sql_prepare(store,
                              "SELECT 1 FROM common WHERE json_type(text, ?1) IS NOT NULL "
                              "LIMIT 1",
                              &statement, err));
    fini_sql_bind_text(statement, 1, where->path);
    fin_status status = fini_sql_step(store, statement, &where->setting, err);
    sqlite3_finalize(statement);
    return status;
}

static bool is_seconds(const fini_condition *where)
{
    return strcmp(where->name, "seconds") == 0;
}

/* The first of these that a run has: a setting, seconds or a scalar. */
void fini_condition_value(const fini_condition *where, bool number, sqlite3_str *sql)
{
    int path = where->first, name = path + 1;
    bool seconds = is_seconds(where), scalar = !seconds && where->name_id;
    if (where->setting && number)
        sqlite3_str_appendf(sql, seconds || scalar ? "coalesce(" : "");
    if (where->setting)
        sqlite3_str_appendf(sql,
                            number ? "number(coalesce(s.own -> ?%d, c.text -> ?%d))"
                                   : "coalesce(s.own ->> ?%d, c.text ->> ?%d",
                            path, path);
    if (where->setting && (seconds || scalar))
        sqlite3_str_appendall(sql, ", ");
    if (seconds)
        sqlite3_str_appendall(sql, number ? "r.seconds"
                                          : "iif(r.id IS NULL, NULL, ifnull(r.seconds, 'nan'))");
    if (scalar)
        sqlite3_str_appendf(sql, "(SELECT %s FROM scalars WHERE name_id = ?%d AND run_id = s.id)",
                            number ? "value" : "ifnull(value, 'nan')", name);
    if (!where->setting && !seconds && !scalar)
        sqlite3_str_appendall(sql, "NULL");
    if (where->setting && (!number || seconds || scalar))
        sqlite3_str_appendall(sql, ")");
}

/* The value as text or as number; column: in a row of scalars. */
static void put_value(const fini_condition *where, bool column, bool number, sqlite3_str *sql)
{
    if (column)
        sqlite3_str_appendall(sql, number ? "value" : "ifnull(value, 'nan')");
    else
        fini_condition_value(where, number, sql);
}

/* "x IN (?3, ?4)": is it one of the values that are numbers, or one of those that are not? */
static void put_list(const fini_condition *where, bool column, bool number, sqlite3_str *sql)
{
    const char *mark = " IN (";
    put_value(where, column, number, sql);
    for (int i = 0; i < where->count; i++)
        if (isnan(where->numbers[i]) == !number) {
            sqlite3_str_appendf(sql, "%s?%d", mark, where->first + 2 + i);
            mark = ", ";
        }
    sqlite3_str_appendall(sql, ")");
}

static void put_equal(const fini_condition *where, bool column, sqlite3_str *sql)
{
    int numbers = 0;
    for (int i = 0; i < where->count; i++)
        numbers += !isnan(where->numbers[i]);
    if (numbers)
        put_list(where, column, true, sql);
    if (numbers > 0 && numbers < where->count)
        sqlite3_str_appendall(sql, " OR ");
    if (numbers < where->count)
        put_list(where, column, false, sql);
}

/* Nothing is equal to what a run has not, nor unequal. */
static void put_comparison(const fini_condition *where, bool column, sqlite3_str *sql)
{
    bool word = isnan(where->numbers[0]);
    if (where->op == OP_EQUAL) {
        put_equal(where, column, sql);
    } else if (where->op == OP_NOT) {
        sqlite3_str_appendall(sql, "NOT ifnull(");
        put_equal(where, column, sql);
        sqlite3_str_appendall(sql, ", 0) AND ");
        put_value(where, column, false, sql);
        sqlite3_str_appendall(sql, " IS NOT NULL");
    } else {
        put_value(where, column, !word, sql);
        sqlite3_str_appendf(sql, " %s ?%d", operators[where->op], where->first + 2);
    }
    if (word && where->op != OP_EQUAL && where->op != OP_NOT) {
        sqlite3_str_appendall(sql, " AND typeof("); /* to SQLite, a number is less than any text */
        put_value(where, column, false, sql);
        sqlite3_str_appendall(sql, ") = 'text' AND ");
        put_value(where, column, true, sql);
        sqlite3_str_appendall(sql, " IS NULL");
    }
}

/* A scalar alone is a column of the file: a walk along it is much faster than a look for each run. */
void fini_condition_sql(const fini_condition *where, sqlite3_str *sql)
{
    bool column = !where->setting && where->name_id && !is_seconds(where);
    if (column)
        sqlite3_str_appendf(sql, "s.id IN (SELECT run_id FROM scalars WHERE name_id = ?%d AND (",
                            where->first + 1);
    put_comparison(where, column, sql);
    if (column)
        sqlite3_str_appendall(sql, "))");
}

int fini_condition_parameters(const fini_condition *where)
{
    return 2 + where->count;
}

void fini_condition_bind(const fini_condition *where, sqlite3_stmt *statement)
{
    fini_sql_bind_text(statement, where->first, where->path);
    sqlite3_bind_int64(statement, where->first + 1, where->name_id);
    for (int i = 0; i < where->count; i++)
        if (isnan(where->numbers[i]))
            sqlite3_bind_text(statement, where->first + 2 + i, where->texts[i], where->lengths[i],
                              SQLITE_STATIC);
        else
            sqlite3_bind_double(statement, where->first + 2 + i, where->numbers[i]);
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
    FINI_TRY(make_room(names, err));
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
