/* Words that are lists: reading them, and one form for each list. */
#include "command/command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const fin_word fini_no_words[] = {FIN_WORDS_END};

/* ---- names ----------------------------------------------------------------------------------- */

static int find(const char *const *names, const char *name, size_t length)
{
    for (int i = 0; names[i]; i++)
        if (strlen(names[i]) == length && memcmp(names[i], name, length) == 0)
            return i;
    return -1;
}

static fin_status unknown(const char *what, const char *const *names, const char *text,
                          size_t length, fin_error *err)
{
    char name[32], all[160] = "";
    int count = 0;
    snprintf(name, sizeof name, "%.*s", (int)(length < 31 ? length : 31), text);
    for (; names[count]; count++)
        fini_add_name(names[count], all, sizeof all);
    const char *near = fin_nearest_name(name, names, count);
    return fini_fail(err, FIN_ERR_ARGUMENT, "%s: '%s' is not one of %s%s", what, name, all,
                     fini_did_you_mean(near, ""));
}

fin_status fini_parse_names(const char *text, const char *what, const char *const *names,
                            unsigned *found, fin_error *err)
{
    *found = 0;
    for (const char *rest = text;;) {
        rest += strspn(rest, " ");
        size_t length = strcspn(rest, ", ");
        int i = find(names, rest, length);
        if (i < 0)
            return unknown(what, names, rest, length, err);
        *found |= 1u << i;
        rest += length;
        rest += strspn(rest, " ");
        if (!*rest)
            return FIN_OK;
        rest += *rest == ',';
    }
}

/* The names once each are no longer than the text was. */
static void tidy_names(char *text, size_t size, const char *const *names)
{
    unsigned found;
    if (fini_parse_names(text, "", names, &found, NULL))
        return;
    memset(text, 0, size);
    for (int i = 0; names[i]; i++)
        if (found & 1u << i)
            strcat(strcat(text, text[0] ? "," : ""), names[i]);
}

/* ---- pairs ----------------------------------------------------------------------------------- */

/* One "WHOLE:NUMBER" of a list; *text moves behind it and its comma. */
static bool read_piece(const char **text, int64_t *whole, double *number)
{
    char *end;
    errno = 0;
    *whole = strtoll(*text, &end, 10);
    if (end == *text || errno || *end != ':')
        return false;
    const char *start = end + 1;
    *number = fini_strtod(start, &end);
    if (end == start || (*end != ',' && *end != '\0'))
        return false;
    if (*end == ',' && end[1] == '\0')
        return false;
    *text = *end == ',' ? end + 1 : end;
    return true;
}

fin_status fini_parse_pieces(const char *text, const char *what, const char *example, int most,
                             int64_t *whole, double *number, int *count, fin_error *err)
{
    *count = 0;
    for (const char *rest = text; *rest; ++*count) {
        if (*count == most)
            return fini_fail(err, FIN_ERR_ARGUMENT, "%s has more than %d pieces", what, most);
        if (!read_piece(&rest, &whole[*count], &number[*count]))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "%s = '%.60s' is not a list of pairs, such as %s", what, text,
                             example);
    }
    return FIN_OK;
}

size_t fini_print_pieces(const int64_t *whole, const double *number, int count, char *buffer,
                         size_t size)
{
    char piece[FINI_SHORTEST];
    size_t used = 0;
    for (int i = 0; i < count && used < size; i++) {
        fini_shortest(number[i], piece);
        used += (size_t)snprintf(buffer + used, size - used, "%s%lld:%s", i ? "," : "",
                                 (long long)whole[i], piece);
    }
    return used;
}

static void tidy_pieces(char *text, size_t size)
{
    int64_t whole[FINI_PIECES];
    double number[FINI_PIECES];
    int count;
    char tidy[FINI_PAIRS_TEXT];
    if (fini_parse_pieces(text, "", "", FINI_PIECES, whole, number, &count, NULL))
        return;
    size_t used = fini_print_pieces(whole, number, count, tidy, sizeof tidy);
    if (used >= size || used >= sizeof tidy)
        return;
    memset(text, 0, strlen(text)); /* zero behind it already */
    memcpy(text, tidy, used);
}

/* ---- whole numbers --------------------------------------------------------------------------- */

fin_status fini_parse_wholes(const char *text, const char *what, int64_t least, int64_t most,
                             int64_t *whole, int *count, fin_error *err)
{
    *count = 0;
    for (const char *rest = text; *rest;) {
        char *end;
        errno = 0;
        long long number = strtoll(rest, &end, 10);
        bool good = end > rest && !errno && number >= least && number <= most &&
                    *count < FINI_WHOLES && (*count == 0 || number > whole[*count - 1]);
        end += good ? strspn(end, " ") : 0;
        if (!good || (*end && (*end != ',' || !end[1])))
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "%s: '%.40s' is no list of ascending whole numbers from %lld to %lld, "
                             "at most %d of them, such as 4,8,16",
                             what, text, (long long)least, (long long)most, FINI_WHOLES);
        whole[(*count)++] = number;
        rest = end + (*end == ',');
    }
    return FIN_OK;
}

static void tidy_wholes(char *text, size_t size)
{
    int64_t whole[FINI_WHOLES];
    int count;
    size_t used = 0;
    if (fini_parse_wholes(text, "", INT64_MIN, INT64_MAX, whole, &count, NULL))
        return;
    memset(text, 0, size); /* the numbers are no longer than the text was */
    for (int i = 0; i < count; i++)
        used +=
            (size_t)snprintf(text + used, size - used, "%s%lld", i ? "," : "", (long long)whole[i]);
}

/* ---- by kind --------------------------------------------------------------------------------- */

fin_status fini_word_check(const fin_word *word, const char *text, fin_error *err)
{
    unsigned found;
    return word->kind == FIN_WORD_NAMES
               ? fini_parse_names(text, word->name, word->names, &found, err)
               : FIN_OK;
}

void fini_word_tidy(const fin_word *word, char *text)
{
    switch (word->kind) {
    case FIN_WORD_PLAIN:
        break;
    case FIN_WORD_NAMES:
        tidy_names(text, word->size, word->names);
        break;
    case FIN_WORD_PAIRS:
        tidy_pieces(text, word->size);
        break;
    case FIN_WORD_WHOLES:
        tidy_wholes(text, word->size);
        break;
    }
}
