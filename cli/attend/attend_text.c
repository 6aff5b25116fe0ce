/* CSV files with columns of text: names, dates, classes, and cells that are empty.
 *
 * The library's tables are numbers. A file that they refuse is read again here: in a column where
 * some cell is text every different text gets a number, from 1 in the order of appearance, and what
 * is missing (empty, NA, N/A, null, none) becomes nan. A sequence may be told by such a column; a
 * key or a value may not. A file that is malformed keeps the library's message. */
#include "attend/attend.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- reading -------------------------------------------------------------------------------- */

static fin_status read_all(const char *path, char **text, size_t *size, fin_error *err)
{
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    size_t room = 1 << 16, used = 0;
    char *block = malloc(room + 1);
    fin_status status = FIN_OK;
    if (!file)
        status = cli_status(err, FIN_ERR_IO, "cannot read '%.200s': %s", path, strerror(errno));
    while (!status && block) {
        size_t got = fread(block + used, 1, room - used, file);
        used += got;
        if (got == 0)
            break;
        if (used < room)
            continue;
        char *more = room < SIZE_MAX / 4 ? realloc(block, 2 * room + 1) : NULL;
        if (!more)
            status = cli_status_memory(err, 2.0 * (double)room, path);
        block = more ? more : block;
        room *= 2;
    }
    if (!status && !block)
        status = cli_status_memory(err, (double)room, path);
    if (file && file != stdin)
        fclose(file);
    if (status) {
        free(block);
        return status;
    }
    block[used] = '\0';
    *text = block;
    *size = used;
    return FIN_OK;
}

/* ---- cells ---------------------------------------------------------------------------------- */

/* One cell: *start and *length without quotes and spaces; doubled quotes are left as they are.
 * Returns where its separator is, or NULL if a quote is not closed. */
static const char *next_cell(const char *p, const char *end, const char **start, size_t *length)
{
    while (p < end && *p == ' ')
        p++;
    const char *from = p, *to;
    if (p < end && *p == '"') {
        from = ++p;
        while (p < end && (*p != '"' || (p + 1 < end && p[1] == '"')))
            p += *p == '"' ? 2 : 1;
        if (p >= end)
            return NULL;
        to = p++;
        while (p < end && *p == ' ')
            p++;
    } else {
        while (p < end && *p != ',' && *p != '\n' && *p != '\r')
            p++;
        for (to = p; to > from && to[-1] == ' '; to--) {
        }
    }
    *start = from;
    *length = (size_t)(to - from);
    return p;
}

static bool is_missing(const char *cell, size_t length)
{
    static const char *const words[] = {"", "NA", "N/A", "null", "none"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strlen(words[i]) == length && strncasecmp(words[i], cell, length) == 0)
            return true;
    return false;
}

static bool is_number(const char *cell, size_t length)
{
    char copy[64], *end;
    if (length == 0 || length >= sizeof copy)
        return false;
    memcpy(copy, cell, length);
    copy[length] = '\0';
    strtod(copy, &end);
    return *end == '\0';
}

/* ---- texts and their numbers ---------------------------------------------------------------- */

typedef struct recoder {
    const char *text, *end;
    int columns;
    int64_t cells;
    bool *is_text;       /* (columns) */
    attend_words *words; /* (columns) */
    int64_t *slot;       /* hash: place in the texts of a column, + 1; 0: free */
    int *slot_column;
    size_t slots, used;
} recoder;

static size_t hash(int column, const char *cell, size_t length)
{
    uint64_t h = UINT64_C(1469598103934665603) ^ (uint64_t)column; /* FNV-1a */
    for (size_t i = 0; i < length; i++)
        h = (h ^ (unsigned char)cell[i]) * UINT64_C(1099511628211);
    return (size_t)(h ^ h >> 32);
}

static bool grow(recoder *r)
{
    size_t slots = r->slots ? 2 * r->slots : 1024;
    int64_t *slot = calloc(slots, sizeof *slot);
    int *column = calloc(slots, sizeof *column);
    if (!slot || !column) {
        free(slot);
        free(column);
        return false;
    }
    for (size_t i = 0; i < r->slots; i++) {
        if (!r->slot[i])
            continue;
        const char *word = r->words[r->slot_column[i]].text[r->slot[i] - 1];
        size_t at = hash(r->slot_column[i], word, strlen(word)) % slots;
        while (slot[at])
            at = (at + 1) % slots;
        slot[at] = r->slot[i];
        column[at] = r->slot_column[i];
    }
    free(r->slot);
    free(r->slot_column);
    r->slot = slot;
    r->slot_column = column;
    r->slots = slots;
    return true;
}

static bool add_word(attend_words *words, const char *cell, size_t length)
{
    if ((words->count & (words->count + 1)) == 0) { /* 0, 1, 3, 7, ...: full */
        char **more = realloc(words->text, (size_t)(2 * words->count + 2) * sizeof *more);
        if (!more)
            return false;
        words->text = more;
    }
    char *copy = malloc(length + 1);
    if (!copy)
        return false;
    memcpy(copy, cell, length);
    copy[length] = '\0';
    words->text[words->count++] = copy;
    return true;
}

/* The number of a text, from 1; 0: out of memory. */
static int64_t code_of(recoder *r, int column, const char *cell, size_t length)
{
    if (2 * r->used >= r->slots && !grow(r))
        return 0;
    size_t at = hash(column, cell, length) % r->slots;
    for (; r->slot[at]; at = (at + 1) % r->slots) {
        const char *word = r->words[r->slot_column[at]].text[r->slot[at] - 1];
        if (r->slot_column[at] == column && strlen(word) == length &&
            memcmp(word, cell, length) == 0)
            return r->slot[at];
    }
    if (!add_word(&r->words[column], cell, length))
        return 0;
    r->slot[at] = r->words[column].count;
    r->slot_column[at] = column;
    r->used++;
    return r->slot[at];
}

/* ---- the whole file ------------------------------------------------------------------------- */

/* Walks over all records behind the header; out NULL: only finds which columns are text. Returns
 * false if the file is malformed or memory is out. */
static bool walk(recoder *r, const char *body, char **out)
{
    for (const char *p = body; p < r->end;) {
        if (*p == '\n' || *p == '\r') { /* a blank line; in the middle the library will object */
            if (out)
                *(*out)++ = *p;
            p++;
            continue;
        }
        for (int j = 0;; j++) {
            const char *cell;
            size_t length;
            if (j == r->columns || !(p = next_cell(p, r->end, &cell, &length)))
                return false;
            bool missing = is_missing(cell, length);
            r->cells++;
            if (!out)
                r->is_text[j] = r->is_text[j] || !(missing || is_number(cell, length));
            else if (missing)
                *out += sprintf(*out, "nan");
            else if (r->is_text[j]) {
                int64_t code = code_of(r, j, cell, length);
                if (!code)
                    return false;
                *out += sprintf(*out, "%lld", (long long)code);
            } else {
                memcpy(*out, cell, length);
                *out += length;
            }
            bool more = p < r->end && *p == ',';
            if (p < r->end && !more && *p != '\n' && *p != '\r')
                return false;
            if (!more && j + 1 != r->columns)
                return false;
            if (out)
                *(*out)++ = more ? ',' : '\n';
            p += more || (p < r->end && *p == '\r');
            p += !more && p < r->end && *p == '\n';
            if (!more)
                break;
        }
    }
    return true;
}

/* Columns of the header, and where the body begins; NULL if it is malformed. */
static const char *read_header(recoder *r)
{
    const char *p = r->text, *cell;
    size_t length;
    for (;;) {
        if (!(p = next_cell(p, r->end, &cell, &length)) || r->columns == FIN_TABLE_COLUMNS_MAX)
            return NULL;
        r->columns++;
        if (p >= r->end || *p != ',')
            break;
        p++;
    }
    return p;
}

/* The file with numbers for texts, or NULL. */
static char *recode(recoder *r, size_t *size)
{
    const char *body = read_header(r);
    if (!body)
        return NULL;
    r->is_text = calloc((size_t)r->columns, sizeof *r->is_text);
    r->words = calloc((size_t)r->columns, sizeof *r->words);
    if (!r->is_text || !r->words || !walk(r, body, NULL))
        return NULL;
    const size_t wide = 24; /* of a number */
    char *csv = malloc((size_t)(r->end - r->text) + wide * (size_t)r->cells + 1), *out = csv;
    if (!csv)
        return NULL;
    memcpy(out, r->text, (size_t)(body - r->text));
    out += body - r->text;
    if (!walk(r, body, &out)) {
        free(csv);
        return NULL;
    }
    *size = (size_t)(out - csv);
    return csv;
}

void attend_words_free(attend_words *words, int columns)
{
    for (int j = 0; words && j < columns; j++) {
        for (int64_t i = 0; i < words[j].count; i++)
            free(words[j].text[i]);
        free(words[j].text);
    }
    free(words);
}

static fin_status parse_again(const char *path, const char *text, size_t size, attend_words **words,
                              int *columns, fin_table **table, fin_error *err)
{
    recoder r = {.text = text, .end = text + size};
    fin_error second = {FIN_OK, ""};
    fin_status status = err->status;
    size_t length = 0;
    char *csv = memchr(text, '\0', size) ? NULL : recode(&r, &length);
    if (csv && fin_table_parse(csv, length, path, table, &second) == FIN_OK) {
        *words = r.words;
        *columns = r.columns;
        r.words = NULL;
        status = FIN_OK;
    }
    attend_words_free(r.words, r.columns);
    free(csv);
    free(r.is_text);
    free(r.slot);
    free(r.slot_column);
    return status;
}

fin_status attend_text_parse(const char *text, size_t size, const char *label, fin_table **table,
                             attend_words **words, int *columns, fin_error *err)
{
    fin_status status = fin_table_parse(text, size, label, table, err);
    *words = NULL;
    return status == FIN_ERR_FORMAT ? parse_again(label, text, size, words, columns, table, err)
                                    : status;
}

fin_status attend_text_read(const char *path, fin_table **table, attend_words **words, int *columns,
                            fin_error *err)
{
    bool input = strcmp(path, "-") == 0; /* can be read once only */
    char *text = NULL;
    size_t size = 0;
    fin_status status = FIN_OK;
    *words = NULL;
    if (!input) {
        status = fin_table_read(path, table, err);
        if (status != FIN_ERR_FORMAT)
            return status;
    }
    fin_error first = *err, other;
    fin_status found = read_all(path, &text, &size, input ? err : &other);
    if (found)
        return input ? found : status;
    if (!input)
        *err = first;
    status = input ? attend_text_parse(text, size, "standard input", table, words, columns, err)
                   : parse_again(path, text, size, words, columns, table, err);
    free(text);
    return status;
}
