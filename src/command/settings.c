/* Settings of a command from names and texts, and back as canonical JSON.
 *
 * The tables of a command depend on its words (the task's name chooses the task's table), so words come
 * first, then defaults, then rows. All of it works on the caller's memory: runs are prepared by
 * many threads at once, ten thousand of them in a fraction of a second. */
#include "command/command.h"

#include "data/data.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* ---- texts -> settings ---------------------------------------------------------------------- */

static const fin_word *find_word(const fin_command *command, const char *name)
{
    for (const fin_word *word = command->words; word->name; word++)
        if (fini_same_name(word->name, name))
            return word;
    return NULL;
}

const fin_field *fini_field_find(const fin_settings *table, const char *name)
{
    for (int i = 0; i < table->count; i++)
        if (fini_same_name(table->fields[i].name, name))
            return &table->fields[i];
    return NULL;
}

fin_status fin_command_groups(const fin_command *command, void *values,
                              fin_group groups[FIN_GROUPS], int *count, fin_error *err)
{
    FINI_NEED(err, command, values, groups, count);
    *count = 0;
    if (command->groups)
        return command->groups(values, groups, count, err);
    for (const fin_table_at *at = command->tables; at->table; at++)
        groups[(*count)++] = (fin_group){at->table, (char *)values + at->offset};
    return FIN_OK;
}

/* Defaults and pairs that are words; `skip` is left out (-1: none). */
static fin_status apply_words(const fin_command *command, void *values, const fin_pair *pairs,
                              int count, int skip, int *bad, fin_error *err)
{
    memset(values, 0, command->size);
    for (const fin_word *word = command->words; word->name; word++) {
        assert(strlen(word->fallback) < word->size);
        memcpy((char *)values + word->offset, word->fallback, strlen(word->fallback) + 1);
    }
    for (int i = 0; i < count; i++) {
        const fin_word *word = i == skip ? NULL : find_word(command, pairs[i].name);
        if (!word)
            continue;
        size_t length = strlen(pairs[i].text);
        if (length >= word->size) {
            *bad = i;
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "%s: %s has %zu letters; it may have at most %zu", command->name,
                             word->name, length, word->size - 1);
        }
        char *text = (char *)values + word->offset;
        memset(text, 0, strlen(text)); /* zero behind it already */
        memcpy(text, pairs[i].text, length);
    }
    return FIN_OK;
}

/* Rows that a word chooses: a task, a form, a family. */
typedef struct kind {
    const char *word;
    int (*count)(void);
    const char *(*name)(int i);
    const fin_settings *(*table)(int i);
} kind;

#define KIND(label, find, name_of, table_of)                                                       \
    static const char *label##_name(int i)                                                         \
    {                                                                                              \
        return name_of(find(i));                                                                   \
    }                                                                                              \
    static const fin_settings *label##_table(int i)                                                \
    {                                                                                              \
        return table_of(find(i));                                                                  \
    }
KIND(task, fin_task_at, fin_task_kind_name, fin_task_kind_table)
KIND(form, fin_form_at, fin_form_name, fin_form_table)
KIND(family, fin_family_at, fin_family_name, fin_family_table)
#undef KIND

static const kind kinds[] = {
    {"task", fin_task_count, task_name, task_table},
    {"form", fin_form_count, form_name, form_table},
    {"family", fin_family_count, family_name, family_table},
};

static const kind *find_kind(const char *word)
{
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (strcmp(kinds[k].word, word) == 0)
            return &kinds[k];
    return NULL;
}

const char *fin_word_choice(const fin_word *word, int i)
{
    if (!word || i < 0)
        return NULL;
    if (word->names && word->kind == FIN_WORD_PLAIN) {
        for (int j = 0; j < i && word->names[j]; j++)
            if (!word->names[j + 1])
                return NULL;
        return word->names[i];
    }
    const kind *const both[] = {find_kind(word->name), word->also ? find_kind(word->also) : NULL};
    for (int k = 0; k < 2; k++)
        for (int j = 0; both[k] && j < both[k]->count(); j++) {
            const char *name = both[k]->name(j);
            if ((!word->suits || word->suits(name)) && i-- == 0)
                return name;
        }
    return NULL;
}

/* Is the text one of the word's names, or a row that suits the command? Whoever chooses a table looks at all else. */
static fin_status check_choice(const fin_word *word, const char *text, fin_error *err)
{
    enum { NAMES = 64 };
    const char *names[NAMES], *name;
    char all[256] = "";
    int n = 0;
    for (int i = 0; (word->names || word->suits) && n < NAMES && (name = fin_word_choice(word, i));
         i++) {
        if (strcmp(name, text) == 0)
            return FIN_OK;
        fini_add_name(names[n++] = name, all, sizeof all);
    }
    if (n == 0)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_ARGUMENT, "%s: '%.31s' is not one of %s%s", word->name, text, all,
                     fini_did_you_mean(fin_nearest_name(text, names, n), ""));
}

fin_status fin_word_group(const char *word, const char *choice, void *values,
                          fin_group groups[FIN_GROUPS], int *count, fin_error *err)
{
    FINI_NEED(err, word, choice, values, groups, count);
    enum { NAMES = 64 };
    const kind *k = find_kind(word);
    const char *names[NAMES];
    char all[256] = "";
    int n = k ? k->count() : 0;
    for (int i = 0; i < n && i < NAMES; i++) {
        names[i] = k->name(i);
        if (strcmp(names[i], choice) == 0) {
            groups[(*count)++] = (fin_group){k->table(i), values};
            return FIN_OK;
        }
        fini_add_name(names[i], all, sizeof all);
    }
    const char *near = fin_nearest_name(choice, names, n < NAMES ? n : NAMES);
    return fini_fail(err, FIN_ERR_ARGUMENT, "there is no %s '%.31s'; there are %s%s", word, choice,
                     all, fini_did_you_mean(near, ""));
}

/* Who has this setting: "spiked, max". NULL if nobody has. */
static const char *owners_of(const kind *k, const char *name, char *owners, size_t size,
                             const char **spelling)
{
    size_t used = 0;
    for (int i = 0; i < k->count(); i++) {
        const fin_field *field = fini_field_find(k->table(i), name);
        if (!field || used >= size)
            continue;
        *spelling = field->name;
        used += (size_t)snprintf(owners + used, size - used, "%s%s", used ? ", " : "", k->name(i));
    }
    return used ? owners : NULL;
}

/* "slr has no setting snr; it belongs to spiked, max: choose another task". FIN_OK if it belongs to none. */
static fin_status fail_elsewhere(const fin_command *command, const void *values, const char *name,
                                 fin_error *err)
{
    for (const fin_word *word = command->words; word->name; word++) {
        const kind *k = find_kind(word->name);
        const char *chosen = (const char *)values + word->offset, *spelling;
        char owners[256];
        if (k && *chosen && owners_of(k, name, owners, sizeof owners, &spelling))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "%.32s has no setting %s; it belongs to %s: choose another %s", chosen,
                             spelling, owners, word->name);
    }
    return FIN_OK;
}

/* "train with task slr and form erf has no setting 'gama'; did you mean 'gamma'?" */
static fin_status fail_unknown(const fin_command *command, const void *values,
                               const fin_group *groups, int count, const char *name, fin_error *err)
{
    enum { NAMES = 512 };
    const char *names[NAMES];
    int used = 0;
    char chosen[160] = "", listed[96], shown[FINI_SHOWN], plain[FINI_SHOWN];
    size_t length = 0;
    fin_status elsewhere = fail_elsewhere(command, values, name, err);
    if (elsewhere)
        return elsewhere;
    for (const fin_word *word = command->words; word->name && used < NAMES; word++) {
        const char *text = (const char *)values + word->offset;
        names[used++] = word->name;
        if (find_kind(word->name) && *text && length < sizeof chosen)
            length += (size_t)snprintf(chosen + length, sizeof chosen - length, "%s%s %.32s",
                                       length ? " and " : " with ", word->name, text);
    }
    for (int g = 0; g < count; g++)
        for (int i = 0; i < groups[g].table->count && used < NAMES; i++)
            names[used++] = groups[g].table->fields[i].name;
    fini_shown(name, shown);
    snprintf(plain, sizeof plain, "%s", shown);
    for (char *c = plain; *c; c++)
        *c = *c == '-' ? '_' : *c;
    const char *near = fin_nearest_name(plain, names, used);
    snprintf(listed, sizeof listed, "; 'finetti help %s' lists its settings", command->name);
    return fini_fail(err, FIN_ERR_ARGUMENT, "%s%s has no setting '%s'%s", command->name, chosen,
                     shown, fini_did_you_mean_quoted(near, listed));
}

/* The word without which the tables can be chosen. */
static int blame_word(const fin_command *command, void *values, const fin_pair *pairs, int count)
{
    for (int i = 0; i < count; i++) {
        fin_group groups[FIN_GROUPS];
        int group_count = 0, bad;
        const fin_word *word = find_word(command, pairs[i].name);
        if (word && check_choice(word, pairs[i].text, NULL))
            return i;
        if (word && !apply_words(command, values, pairs, count, i, &bad, NULL) &&
            !fin_command_groups(command, values, groups, &group_count, NULL))
            return i;
    }
    return -1;
}

/* Into every table that has such a row: a seed may be known to more than one. */
static fin_status apply_row(const fin_command *command, const void *values, const fin_group *groups,
                            int count, const fin_pair *pair, fin_error *err)
{
    bool found = false;
    for (int g = 0; g < count; g++) {
        const fin_field *field = fini_field_find(groups[g].table, pair->name);
        if (field)
            FINI_TRY(fin_settings_parse(groups[g].table, groups[g].values, field->name, pair->text,
                                        err));
        found = found || field;
    }
    return found ? FIN_OK : fail_unknown(command, values, groups, count, pair->name, err);
}

fin_status fin_command_tables(const fin_command *command, void *values, const fin_pair *pairs,
                              int count, fin_group groups[FIN_GROUPS], int *group_count, int *bad,
                              fin_error *err)
{
    FINI_NEED(err, command, values, !count || pairs, groups, group_count);
    int blamed;
    bad = bad ? bad : &blamed;
    *bad = -1;
    *group_count = 0;
    for (int i = 0; i < count; i++)
        if (!pairs[i].name || !pairs[i].text) {
            *bad = i;
            return fini_fail(err, FIN_ERR_ARGUMENT, "%s: setting %d, %s, has no %s; give both",
                             command->name, i + 1, pairs[i].name ? pairs[i].name : "unnamed",
                             pairs[i].name ? "value" : "name");
        }
    fin_status status = apply_words(command, values, pairs, count, -1, bad, err);
    if (status)
        return status;
    for (const fin_word *word = command->words; word->name && !status; word++)
        status = check_choice(word, (const char *)values + word->offset, err);
    if (!status)
        status = fin_command_groups(command, values, groups, group_count, err);
    if (status) {
        *bad = blame_word(command, values, pairs, count);
        return status;
    }
    for (int g = 0; g < *group_count; g++)
        fin_settings_defaults(groups[g].table, groups[g].values, groups[g].table->size);
    return FIN_OK;
}

/* Everything but check() and tidy(). */
static fin_status fill(const fin_command *command, void *values, const fin_pair *pairs, int count,
                       int *bad, fin_error *err)
{
    fin_group groups[FIN_GROUPS];
    int group_count, blamed;
    bad = bad ? bad : &blamed;
    fin_status status =
        fin_command_tables(command, values, pairs, count, groups, &group_count, bad, err);
    if (status)
        return status;
    const fini_filling with = {command, groups, group_count, pairs, count};
    bool formulas = false;
    for (int i = 0; i < count; i++) {
        if (find_word(command, pairs[i].name) || fini_is_let(pairs[i].name))
            continue;
        if (fini_is_formula(&with, &pairs[i])) {
            formulas = true;
            continue;
        }
        status = apply_row(command, values, groups, group_count, &pairs[i], err);
        if (status) {
            *bad = i;
            return status;
        }
    }
    if (formulas && (status = fini_formulas_apply(&with, bad, err)))
        return status;
    for (int g = 0; g < group_count && !status; g++)
        status = fin_settings_validate(groups[g].table, groups[g].values, err);
    return status;
}

static void tidy(const fin_command *command, void *values)
{
    for (const fin_word *word = command->words; word->name; word++)
        fini_word_tidy(word, (char *)values + word->offset);
    if (command->tidy)
        command->tidy(values);
}

/* The pair of this name that counts, the last one; -1: none. */
static int find_pair(const fin_pair *pairs, int count, const char *name, size_t length)
{
    char whole[FINI_SHOWN];
    snprintf(whole, sizeof whole, "%.*s", (int)length, name);
    while (--count >= 0 && !fini_same_name(pairs[count].name, whole))
        ;
    return count;
}

static bool makes_void(const fin_instead *row, const char *text)
{
    double number;
    if (row->only)
        return !text || strcmp(text, row->only) != 0;
    return text && *text && !(fini_read_number(text, &number) && number == 0);
}

/* "L L_min" -> "L and L_min". */
static const char *joined(const char *names, char buffer[FINI_SHOWN])
{
    const char *blank = strchr(names, ' ');
    snprintf(buffer, FINI_SHOWN, "%.*s%s%s", (int)strcspn(names, " "), names, blank ? " and " : "",
             blank ? blank + 1 : "");
    return buffer;
}

fin_status fini_command_void(const fin_command *command, const fin_pair *pairs, int count,
                             fin_error *err)
{
    for (const fin_instead *row = command->instead; row && row->name; row++) {
        int by = find_pair(pairs, count, row->name, strlen(row->name));
        if (!makes_void(row, by >= 0 ? pairs[by].text : NULL))
            continue;
        for (const char *of = row->of; *of; of += strspn(of, " ")) {
            const char *name = of;
            int given = find_pair(pairs, count, name, strcspn(name, " "));
            of += strcspn(of, " ");
            if (given < 0)
                continue;
            const char *one = pairs[given].name;
            char all[FINI_SHOWN];
            return row->only ? fini_fail(err, FIN_ERR_ARGUMENT,
                                         "%s %s with %s = %s; add that, or leave %s out", one,
                                         row->why, row->name, row->only, one)
                             : fini_fail(err, FIN_ERR_ARGUMENT,
                                         "%s takes the place of %s; give one or the other",
                                         row->name, joined(row->of, all));
        }
    }
    return FIN_OK;
}

fin_status fin_command_apply(const fin_command *command, void *values, const fin_pair *pairs,
                             int count, int *bad, fin_error *err)
{
    FINI_NEED(err, command, values, !count || pairs);
    FINI_TRY(fill(command, values, pairs, count, bad, err));
    FINI_TRY(fini_command_void(command, pairs, count, err));
    for (const fin_word *word = command->words; word->name; word++)
        FINI_TRY(fini_word_check(word, (const char *)values + word->offset, err));
    if (command->check)
        FINI_TRY(command->check(values, err));
    tidy(command, values);
    return FIN_OK;
}

fin_status fin_command_settle(const fin_command *command, void *values, fin_error *err)
{
    FINI_NEED(err, command, values);
    return command->settle ? command->settle(values, err) : FIN_OK;
}

fin_status fini_command_fill(const fin_command *command, void *values, const fin_pair *pairs,
                             int count, fin_error *err)
{
    FINI_TRY(fill(command, values, pairs, count, NULL, err));
    tidy(command, values);
    return FIN_OK;
}

bool fini_command_is_whole(const fin_command *command, void *values, const fin_pair *pairs,
                           int count, const char *name)
{
    fin_group groups[FIN_GROUPS];
    int group_count = 0, bad;
    if (apply_words(command, values, pairs, count, -1, &bad, NULL) ||
        fin_command_groups(command, values, groups, &group_count, NULL))
        return false;
    for (int g = 0; g < group_count; g++) {
        const fin_field *field = fini_field_find(groups[g].table, name);
        if (field)
            return field->type == FIN_TYPE_int64_t;
    }
    return false;
}

fin_status fini_command_try(const fin_command *command, void *values, const char *name,
                            const char *text, fin_error *err)
{
    fin_group groups[FIN_GROUPS];
    int group_count = 0;
    FINI_TRY(fin_command_groups(command, values, groups, &group_count, err));
    for (int g = 0; g < group_count; g++) {
        const fin_field *field = fini_field_find(groups[g].table, name);
        if (field)
            FINI_TRY(fin_settings_parse(groups[g].table, groups[g].values, field->name, text, err));
    }
    return FIN_OK;
}

/* ---- numbers as text ------------------------------------------------------------------------ */

/* A decimal of at most 15 digits survives the way to a double and back (to 15 digits), so if there
 * is such a text, it is the one that %.15g prints. Else 16 digits are tried, and 17 always do. */
size_t fini_shortest(double number, char buffer[FINI_SHORTEST])
{
    double size = fabs(number), back;
    if (size <= 0x1p53 && size == floor(size)) {
        size_t length = fini_format(number == 0 ? 0 : number, buffer); /* no -0 */
        buffer[length] = '\0';
        return length;
    }
    for (int digits = 15; digits <= 17; digits++) {
        fini_print_double(number, digits, buffer, FINI_SHORTEST);
        if (digits == 17 || !isfinite(number) ||
            (fini_read_number(buffer, &back) && back == number))
            break;
    }
    return strlen(buffer);
}

/* ---- settings -> canonical JSON ------------------------------------------------------------- */

typedef struct entry {
    const char *name;
    const fin_field *field; /* NULL: a word */
    const void *values;     /* of its table; the word's text */
} entry;
enum { ENTRIES = 512 };

typedef struct writer {
    char *buffer;
    size_t used, size; /* used > size: it did not fit */
} writer;

static void put(writer *w, const char *text, size_t length)
{
    if (w->used <= w->size && length < w->size - w->used)
        memcpy(w->buffer + w->used, text, length);
    else
        w->used = w->size;
    w->used += length;
}

static void put_string(writer *w, const char *text)
{
    put(w, "\"", 1);
    while (*text) {
        size_t plain = 0;
        while (text[plain] && (unsigned char)text[plain] >= 0x20 && text[plain] != '"' &&
               text[plain] != '\\')
            plain++;
        put(w, text, plain);
        text += plain;
        char escape[8];
        if (*text == '"' || *text == '\\')
            put(w, escape, (size_t)snprintf(escape, sizeof escape, "\\%c", *text++));
        else if (*text)
            put(w, escape,
                (size_t)snprintf(escape, sizeof escape, "\\u%04x", (unsigned char)*text++));
    }
    put(w, "\"", 1);
}

static void put_value(writer *w, const entry *e)
{
    char text[128];
    if (!e->field) {
        put_string(w, e->values);
        return;
    }
    double number = fin_settings_get(e->field, e->values);
    if (e->field->type == FIN_TYPE_choice || fin_is_auto(number)) {
        fin_settings_text(e->field, e->values, text, sizeof text);
        put_string(w, text);
    } else if (e->field->type == FIN_TYPE_int64_t) {
        const void *place = (const unsigned char *)e->values + e->field->offset;
        int64_t whole = *(const int64_t *)place;
        if (whole > -(INT64_C(1) << 53) && whole < INT64_C(1) << 53)
            put(w, text, fini_format((double)whole, text)); /* much faster than printf */
        else
            put(w, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)whole));
    } else if (isfinite(number)) {
        put(w, text, fini_shortest(number, text));
    } else { /* JSON has no infinity */
        put_string(w, number > 0 ? "inf" : number < 0 ? "-inf" : "nan");
    }
}

/* Keeps the entries sorted; of two with one name the first stays. */
static void insert(entry entries[ENTRIES], int *count, entry e)
{
    int low = 0, high = *count;
    while (low < high) {
        int middle = (low + high) / 2, order = strcmp(entries[middle].name, e.name);
        if (order == 0)
            return;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (*count == ENTRIES)
        return;
    memmove(entries + low + 1, entries + low, (size_t)(*count - low) * sizeof *entries);
    entries[low] = e;
    ++*count;
}

fin_status fin_command_text(const fin_command *command, const void *values, char *buffer,
                            size_t size, fin_error *err)
{
    FINI_NEED(err, command, values, buffer);
    fin_group groups[FIN_GROUPS];
    entry entries[ENTRIES];
    int group_count = 0, count = 0;
    /* It only says where the tables' structs are; nothing is written. */
    FINI_TRY(fin_command_groups(command, (void *)(uintptr_t)values, groups, &group_count, err));
    for (const fin_word *word = command->words; word->name; word++) {
        const char *text = (const char *)values + word->offset;
        if (!word->quiet || strcmp(text, word->fallback) != 0)
            insert(entries, &count, (entry){word->name, NULL, text});
    }
    for (int g = 0; g < group_count; g++)
        for (int i = 0; i < groups[g].table->count; i++) {
            const fin_field *field = &groups[g].table->fields[i];
            if (command->hidden && strcmp(field->name, command->hidden) == 0)
                continue;
            insert(entries, &count, (entry){field->name, field, groups[g].values});
        }
    writer w = {buffer, 0, size};
    char head[160];
    put(&w, head,
        (size_t)snprintf(head, sizeof head, "{\"command\":\"%.64s\",\"revision\":%d,\"settings\":{",
                         command->name, command->revision));
    for (int i = 0; i < count; i++) {
        put(&w, ",", i > 0);
        put_string(&w, entries[i].name);
        put(&w, ":", 1);
        put_value(&w, &entries[i]);
    }
    put(&w, "}}", 2);
    if (w.used >= w.size)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s: the settings are longer than %zu bytes as text; shorten the longest",
                         command->name, size);
    buffer[w.used] = '\0';
    return FIN_OK;
}

/* Is there a word or a field before field i of group g that has its name, and hides it? */
static bool is_hidden(const fin_command *command, const fin_group *groups, int g, int i)
{
    const char *name = groups[g].table->fields[i].name;
    if (command->hidden && strcmp(name, command->hidden) == 0)
        return true;
    for (const fin_word *word = command->words; word->name; word++)
        if (strcmp(word->name, name) == 0)
            return true;
    for (int h = 0; h <= g; h++)
        for (int k = 0; k < (h < g ? groups[h].table->count : i); k++)
            if (strcmp(groups[h].table->fields[k].name, name) == 0)
                return true;
    return false;
}

static void put_own(writer *w, entry e, int *count)
{
    put(w, ",", *count > 0);
    put_string(w, e.name);
    put(w, ":", 1);
    put_value(w, &e);
    ++*count;
}

static bool put_own_words(writer *w, const fin_command *command, const char *base,
                          const char *values, int *count)
{
    for (const fin_word *word = command->words; word->name; word++) {
        const char *old = base + word->offset, *text = values + word->offset;
        if (strcmp(old, text) == 0)
            continue;
        if (word->quiet && (strcmp(old, word->fallback) == 0 || strcmp(text, word->fallback) == 0))
            return false; /* one of the two texts has it not */
        put_own(w, (entry){word->name, NULL, text}, count);
    }
    return true;
}

/* Most settings are the same: their bytes are compared before anything is written. */
bool fini_command_difference(const fin_command *command, const void *base, const void *values,
                             char *buffer, size_t size)
{
    fin_group old[FIN_GROUPS], groups[FIN_GROUPS];
    int old_count = 0, group_count = 0, count = 0;
    if (fin_command_groups(command, (void *)(uintptr_t)base, old, &old_count, NULL) ||
        fin_command_groups(command, (void *)(uintptr_t)values, groups, &group_count, NULL) ||
        old_count != group_count)
        return false;
    writer w = {buffer, 0, size};
    put(&w, "{\"settings\":{", 13);
    if (!put_own_words(&w, command, base, values, &count))
        return false;
    for (int g = 0; g < group_count; g++) {
        if (groups[g].table != old[g].table)
            return false;
        for (int i = 0; i < groups[g].table->count; i++) {
            const fin_field *field = &groups[g].table->fields[i];
            size_t bytes = field->type == FIN_TYPE_choice ? sizeof(fin_choice) : 8;
            if (memcmp((const char *)old[g].values + field->offset,
                       (const char *)groups[g].values + field->offset, bytes) != 0 &&
                !is_hidden(command, groups, g, i))
                put_own(&w, (entry){field->name, field, groups[g].values}, &count);
        }
    }
    put(&w, "}}", 2);
    if (w.used >= w.size)
        return false;
    buffer[w.used] = '\0';
    if (count == 0)
        strcpy(buffer, "{}");
    return true;
}

void fini_hash(const char *text, char hash[FIN_HASH_TEXT])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, XXH3_128bits(text, strlen(text)));
    for (int i = 0; i < 16; i++) {
        hash[2 * i] = "0123456789abcdef"[canonical.digest[i] >> 4];
        hash[2 * i + 1] = "0123456789abcdef"[canonical.digest[i] & 15];
    }
    hash[32] = '\0';
}
