/* Settings tables: defaults, validation, parsing and printing, all from the rows. */
#include "base/base.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static void *place(void *values, const fin_field *field)
{
    return (unsigned char *)values + field->offset;
}

static const void *place_const(const void *values, const fin_field *field)
{
    return (const unsigned char *)values + field->offset;
}

static void store(void *values, const fin_field *field, double number)
{
    switch (field->type) {
    case FIN_TYPE_int64_t:
        /* FIN_AUTO, the number of double fields, does not fit an int64_t. */
        *(int64_t *)place(values, field) = fin_is_auto(number) ? FIN_AUTO_INT : (int64_t)number;
        break;
    case FIN_TYPE_double:
        *(double *)place(values, field) = number;
        break;
    case FIN_TYPE_choice:
        *(fin_choice *)place(values, field) = (fin_choice)number;
        break;
    }
}

double fin_settings_get(const fin_field *field, const void *values)
{
    if (!field || !values)
        return NAN;
    switch (field->type) {
    case FIN_TYPE_int64_t:
        return (double)*(const int64_t *)place_const(values, field);
    case FIN_TYPE_double:
        return *(const double *)place_const(values, field);
    case FIN_TYPE_choice:
        return *(const fin_choice *)place_const(values, field);
    }
    return NAN;
}

int fin_is_auto(double value)
{
    return value == FIN_AUTO || value == (double)FIN_AUTO_INT;
}

static int choice_count(const fin_field *field)
{
    int count = 1;
    for (const char *c = field->names; *c; c++)
        count += *c == '|';
    return count;
}

/* The i-th name of "a|b|c"; its length in *length. */
static const char *choice_name(const fin_field *field, int i, size_t *length)
{
    const char *name = field->names;
    while (i-- > 0)
        name = strchr(name, '|') + 1;
    *length = strcspn(name, "|");
    return name;
}

static size_t field_size(const fin_field *field)
{
    return field->type == FIN_TYPE_choice ? sizeof(fin_choice) : sizeof(double);
}

void fin_settings_defaults(const fin_settings *table, void *values, size_t size)
{
    if (!table || !values)
        return;
    memset(values, 0, size);
    for (int i = 0; i < table->count; i++)
        if (table->fields[i].offset + field_size(&table->fields[i]) <= size)
            store(values, &table->fields[i], table->fields[i].fallback);
}

const void *fini_or_defaults(const fin_settings *table, const void *given, void *room)
{
    if (!given)
        fin_settings_defaults(table, room, table->size);
    return given ? given : room;
}

const fin_field *fin_settings_find(const fin_settings *table, const char *name)
{
    for (int i = 0; table && name && i < table->count; i++)
        if (strcmp(table->fields[i].name, name) == 0)
            return &table->fields[i];
    return NULL;
}

static bool has_auto(const fin_field *field)
{
    return fin_is_auto(field->fallback);
}

/* Shortest decimal that reads back as the same double. */
static void shortest(double number, char *buffer, size_t size)
{
    for (int digits = 6; digits <= 17; digits++) {
        fini_print_double(number, digits, buffer, size);
        if (fini_strtod(buffer, NULL) == number || number != number)
            return;
    }
}

/* "an integer from 2 to 1125899906842624, default 400" and the like. */
static void describe_range(const fin_field *field, char *buffer, size_t size)
{
    char low[32], high[32], usual[32];
    shortest(field->lowest, low, sizeof low);
    shortest(field->highest, high, sizeof high);
    shortest(field->fallback, usual, sizeof usual);
    snprintf(buffer, size, "%s from %s to %s, by default %s",
             field->type == FIN_TYPE_int64_t ? "a whole number" : "a number", low, high,
             has_auto(field) ? "auto" : usual);
}

/* NaN must fail, so the test is that it is inside, negated. */
static fin_status check(const fin_settings *table, const fin_field *field, double number,
                        fin_error *err)
{
    if (field->type == FIN_TYPE_choice) {
        if (!(number >= 0 && number < choice_count(field) && number == floor(number)))
            return fini_fail(err, FIN_ERR_ARGUMENT, "%s: %s is choice number %g; allowed are %s",
                             table->name, field->name, number, field->names);
        return FIN_OK;
    }
    if (has_auto(field) && fin_is_auto(number))
        return FIN_OK;
    if (!(number >= field->lowest && number <= field->highest)) {
        char given[32], range[160];
        shortest(number, given, sizeof given);
        describe_range(field, range, sizeof range);
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s: %s = %s; it must be %s", table->name,
                         field->name, given, range);
    }
    return FIN_OK;
}

fin_status fin_settings_validate(const fin_settings *table, const void *values, fin_error *err)
{
    FINI_NEED(err, table, values);
    for (int i = 0; i < table->count; i++) {
        const fin_field *field = &table->fields[i];
        double number = fin_settings_get(field, values);
        /* A whole number just past a limit of 2^53 or more may round to the limit. */
        if (field->type == FIN_TYPE_int64_t && number == field->highest &&
            *(const int64_t *)place_const(values, field) > (int64_t)field->highest)
            number = nextafter(number, INFINITY);
        FINI_TRY(check(table, field, number, err));
    }
    return FIN_OK;
}

fin_status fin_settings_set(const fin_settings *table, void *values, const fin_field *field,
                            double number, fin_error *err)
{
    FINI_NEED(err, table, values, field);
    FINI_TRY(check(table, field, number, err));
    if (field->type == FIN_TYPE_int64_t && number != floor(number)) {
        char range[160];
        describe_range(field, range, sizeof range);
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s: %s = %.17g; it must be %s", table->name,
                         field->name, number, range);
    }
    store(values, field, number);
    return FIN_OK;
}

enum { LONGEST_WORD = 64 };

static fin_status parse_choice(const fin_settings *table, void *values, const fin_field *field,
                               const char *text, fin_error *err)
{
    for (int i = 0; i < choice_count(field); i++) {
        size_t length;
        const char *name = choice_name(field, i, &length);
        if (strlen(text) == length && strncasecmp(text, name, length) == 0) {
            store(values, field, i);
            return FIN_OK;
        }
    }
    enum { MOST = 32 };
    char copy[MOST][LONGEST_WORD] = {""};
    const char *names[MOST];
    int count = choice_count(field) < MOST ? choice_count(field) : MOST;
    for (int i = 0; i < count; i++) {
        size_t length;
        const char *name = choice_name(field, i, &length);
        snprintf(copy[i], sizeof copy[i], "%.*s", (int)length, name);
        names[i] = copy[i];
    }
    return fini_fail(err, FIN_ERR_ARGUMENT, "%s: %s = '%.40s'%s allowed are %s", table->name,
                     field->name, text,
                     fini_did_you_mean(fin_nearest_name(text, names, count), ";"), field->names);
}

/* A whole number that a double rounds is not the one that was asked for. */
static bool is_rounded(const fin_field *field, const char *text, double number)
{
    return field->type == FIN_TYPE_int64_t && fabs(number) >= 0x1p53 && fabs(number) < 0x1p63 &&
           strspn(text, "+-0123456789") == strlen(text) &&
           strtoll(text, NULL, 10) != (long long)number;
}

fin_status fin_settings_parse(const fin_settings *table, void *values, const char *name,
                              const char *text, fin_error *err)
{
    FINI_NEED(err, table, values, name, text);
    const fin_field *field = fin_settings_find(table, name);
    if (!field)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s has no setting '%.40s'", table->name, name);
    if (field->type == FIN_TYPE_choice)
        return parse_choice(table, values, field, text, err);
    if (has_auto(field) && strcmp(text, "auto") == 0) {
        store(values, field, field->fallback);
        return FIN_OK;
    }
    char *end;
    errno = 0;
    double number = fini_strtod(text, &end);
    if (end == text || *end != '\0' || (errno == ERANGE && fabs(number) == HUGE_VAL) ||
        fin_is_auto(number) || is_rounded(field, text, number)) {
        char range[160];
        describe_range(field, range, sizeof range);
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s: %s = '%.40s'; it must be %s", table->name,
                         field->name, text, range);
    }
    return fin_settings_set(table, values, field, number, err);
}

char *fin_settings_text(const fin_field *field, const void *values, char *buffer, size_t size)
{
    if (buffer && size)
        buffer[0] = '\0';
    if (!field || !values || !buffer)
        return buffer;
    double number = fin_settings_get(field, values);
    size_t length;
    if (field->type == FIN_TYPE_choice && (number < 0 || number >= choice_count(field))) {
        snprintf(buffer, size, "choice %d of %d", (int)number, choice_count(field));
    } else if (field->type == FIN_TYPE_choice) {
        const char *name = choice_name(field, (int)number, &length);
        snprintf(buffer, size, "%.*s", (int)length, name);
    } else if (has_auto(field) && fin_is_auto(number)) {
        snprintf(buffer, size, "auto");
    } else if (field->type == FIN_TYPE_int64_t) {
        snprintf(buffer, size, "%lld", (long long)number);
    } else {
        shortest(number, buffer, size);
    }
    return buffer;
}

/* ---- did you mean ------------------------------------------------------------------------ */

int fini_edit_distance(const char *a, const char *b, int limit)
{
    size_t n = strlen(a), m = strlen(b);
    if (n >= LONGEST_WORD || m >= LONGEST_WORD)
        return limit + 1;
    int row[LONGEST_WORD + 1];
    for (size_t j = 0; j <= m; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= m; j++) {
            int change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            int insert = row[j - 1] + 1, erase = row[j] + 1;
            row[j] = change < insert ? change : insert;
            row[j] = row[j] < erase ? row[j] : erase;
        }
    }
    return row[m] <= limit ? row[m] : limit + 1;
}

const char *fin_nearest_name(const char *word, const char *const *names, int count)
{
    const char *best = NULL;
    if (!word || !names)
        return NULL;
    int limit = strlen(word) <= 3 ? 1 : 3, least = limit + 1;
    for (int i = 0; i < count; i++) {
        int distance = fini_edit_distance(word, names[i], limit);
        if (strlen(word) >= 3 && strncmp(word, names[i], strlen(word)) == 0)
            distance = 1; /* a beginning typed right is a strong hint */
        if (distance < least) {
            least = distance;
            best = names[i];
        }
    }
    return best;
}

const char *fin_hint(const char *near, const char *otherwise, char buffer[FIN_HINT])
{
    if (!near || !buffer)
        return otherwise;
    snprintf(buffer, FIN_HINT, "; did you mean %.64s?", near);
    return buffer;
}

void fini_add_name(const char *name, char *list, size_t size)
{
    size_t used = strlen(list);
    snprintf(list + used, size - used, "%s%s", used ? ", " : "", name);
}

const char *fini_quoted(const char *name, char buffer[FIN_HINT])
{
    if (name)
        snprintf(buffer, FIN_HINT, "'%.62s'", name);
    return name ? buffer : NULL;
}
