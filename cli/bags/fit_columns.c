/* Columns that are no features: those that are constant within every bag, and groups.
 *
 * A column that is the same for all tokens of a bag says something about the bag, such as a patient's
 * age or the answer itself, and nothing about which token decides. Unless somebody asks for it by name,
 * no model is fitted to it. */
#include "bags/fit.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double cell(const fin_bags *bags, int64_t row, int64_t j)
{
    return fin_dtype_get(bags->dtype, bags->tokens, row * bags->d + j);
}

/* ---- columns that belong to bags -------------------------------------------------------------- */

/* Names of the columns in `level`, each with a NUL behind it; NULL: no memory. */
static char *names_of(const fin_bag_set *set, const unsigned char *level, int64_t d)
{
    size_t size = 1;
    for (int64_t j = 0; j < d; j++)
        size += level[j] ? strlen(fin_bag_set_feature(set, j)) + 1 : 0;
    char *names = malloc(size), *to = names;
    for (int64_t j = 0; j < d && names; j++)
        if (level[j]) {
            size_t length = strlen(fin_bag_set_feature(set, j)) + 1;
            memcpy(to, fin_bag_set_feature(set, j), length);
            to += length;
        }
    return names;
}

char *fit_level_names(const fit_run *run, char *buffer, size_t size)
{
    enum { SHOWN = 6 };
    const char *name = run->level_names;
    char one[80];
    buffer[0] = '\0';
    for (int64_t k = 0; k < run->levels && k <= SHOWN; k++, name += strlen(name) + 1) {
        size_t used = strlen(buffer);
        snprintf(buffer + used, size - used, "%s%s", k ? ", " : "",
                 k < SHOWN ? cli_clean(name, one, sizeof one) : "...");
    }
    return buffer;
}

char *fit_level_note(const fit_run *run, char *buffer, size_t size)
{
    char names[700];
    fit_level_names(run, names, sizeof names);
    snprintf(buffer, size, "%s constant within every bag: %s; %s about bags, not about tokens",
             run->levels == 1 ? "a column is" : "columns are", names,
             run->levels == 1 ? "it says something" : "they say something");
    return buffer;
}

/* ---- columns that look like the number of a row, or mark a token; too few bags ------------------ */

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Integers, another one in every row. room: one for each row. */
static bool numbers_rows(const fin_bags *bags, int64_t j, double *room)
{
    int64_t rows = bags->offsets[bags->n] - bags->offsets[0];
    double low = INFINITY, high = -INFINITY;
    for (int64_t i = 0; i < rows; i++) {
        room[i] = cell(bags, i, j);
        if (room[i] != floor(room[i]))
            return false;
        low = fmin(low, room[i]);
        high = fmax(high, room[i]);
    }
    if (high - low + 1 < (double)rows)
        return false;
    qsort(room, (size_t)rows, sizeof *room, ascending);
    for (int64_t i = 1; i < rows; i++)
        if (room[i] == room[i - 1])
            return false;
    return true;
}

/* Integers that count the tokens of every bag: 0, 1, 2, ... or 1, 2, 3, ... */
static bool numbers_tokens(const fin_bags *bags, int64_t j)
{
    double first = cell(bags, 0, j);
    if (first != 0 && first != 1)
        return false;
    for (int64_t i = 0; i < bags->n; i++) {
        int64_t from = bags->offsets[i] - bags->offsets[0];
        for (int64_t row = from; row < bags->offsets[i + 1] - bags->offsets[0]; row++)
            if (cell(bags, row, j) != first + (double)(row - from))
                return false;
    }
    return true;
}

/* 0 or 1, and 1 for one token of every bag: as a column that says which token is responsible. */
static bool marks_token(const fin_bags *bags, int64_t j)
{
    for (int64_t i = 0; i < bags->n; i++) {
        int64_t from = bags->offsets[i] - bags->offsets[0], marked = 0;
        for (int64_t row = from; row < bags->offsets[i + 1] - bags->offsets[0]; row++) {
            double value = cell(bags, row, j);
            if (value != 0 && value != 1)
                return false;
            marked += value == 1;
        }
        if (marked != 1)
            return false;
    }
    return true;
}

static fin_status find_ids(fit_run *run, fin_error *err)
{
    enum { ROWS_LEAST = 12 }; /* fewer may differ by chance */
    const fin_bags *bags = run->bags;
    int64_t rows = bags->offsets[bags->n] - bags->offsets[0];
    if (fin_ranks() > 1 || rows < ROWS_LEAST || rows == bags->n)
        return FIN_OK;
    CLI_FREED double *room = malloc((size_t)rows * sizeof *room);
    if (!room)
        return cli_status_memory(err, 8.0 * (double)rows, "a column");
    for (int64_t j = bags->d - 1; j >= 0; j--)
        if (numbers_rows(bags, j, room) || numbers_tokens(bags, j)) {
            run->ids++;
            run->first_id = j;
        } else if (marks_token(bags, j)) {
            run->marks++;
            run->first_mark = j;
        }
    return FIN_OK;
}

const char *fit_note(const fit_run *run, int kind, char *buffer, size_t size)
{
    enum { FEW = 10 };
    char name[80];
    switch (kind) {
    case FIT_NOTE_LEVEL:
        return run->level_kept ? fit_level_note(run, buffer, size) : NULL;
    case FIT_NOTE_IDS:
        snprintf(buffer, size,
                 "column '%s'%s looks like the number of a row or token, and is used as a feature; "
                 "if it is no measurement, name the others with --features",
                 run->ids
                     ? cli_clean(fin_bag_set_feature(run->set, run->first_id), name, sizeof name)
                     : "",
                 run->ids > 1 ? ", as others," : "");
        return run->ids ? buffer : NULL;
    case FIT_NOTE_MARK:
        snprintf(buffer, size,
                 "column '%s'%s marks one token of each bag, and is used as a feature; if it is no "
                 "measurement, name the others with --features",
                 run->marks
                     ? cli_clean(fin_bag_set_feature(run->set, run->first_mark), name, sizeof name)
                     : "",
                 run->marks > 1 ? ", as others," : "");
        return run->marks ? buffer : NULL;
    default:
        snprintf(buffer, size,
                 "%lld bags are too few to learn from or to judge a model by; use %d or more, "
                 "with several of each class",
                 (long long)run->info.bags, 2 * FEW);
        return run->info.bags < FEW ? buffer : NULL;
    }
}

static fin_status keep_or_drop(fit_run *run, const unsigned char *level, fin_error *err)
{
    char names[700];
    int64_t d = run->bags->d;
    run->level_names = names_of(run->set, level, d);
    if (!run->level_names)
        return cli_status_memory(err, 80.0 * (double)run->levels, "names");
    run->level_kept = cli_get(run->args, "features") != NULL;
    if (run->level_kept)
        return FIN_OK;
    if (run->levels == d)
        return cli_status(
            err, FIN_ERR_ARGUMENT,
            "every column of %.150s is constant within every bag (%.200s), so that no "
            "token differs from the others of its bag; --features names columns to "
            "use them all the same",
            run->path, fit_level_names(run, names, sizeof names));
    return fin_bag_set_drop(run->set, level, err);
}

fin_status fit_level(fit_run *run, fin_error *err)
{
    int64_t d = run->bags->d;
    unsigned char *level = calloc((size_t)d, 1);
    fin_status status = level ? FIN_OK : cli_status_memory(err, (double)d, "the columns");
    status = fit_agree(status, err);
    if (!status) {
        status = fin_bags_level(run->bags, fin_ranks() == 1 ? NULL : fin_ranks_sum, level, err);
        if (status) { /* the sums of the others fail, too */
            free(level);
            return status;
        }
    }
    for (int64_t j = 0; j < d && !status; j++)
        run->levels += level[j];
    if (!status && run->levels)
        status = keep_or_drop(run, level, err);
    if (!status)
        status = find_ids(run, err);
    free(level);
    return fit_agree(status, err);
}

/* ---- groups ----------------------------------------------------------------------------------- */

/* They are numbered from 0 over the whole file. */
fin_status fit_count_groups(fit_run *run, fin_error *err)
{
    const fin_bags *bags = run->bags;
    double *top = calloc((size_t)fin_ranks(), sizeof *top);
    fin_status status = top ? FIN_OK : cli_status_memory(err, 8.0 * fin_ranks(), "groups");
    status = fit_agree(status, err);
    for (int64_t i = 0; i < bags->n && bags->groups && !status; i++)
        if ((double)bags->groups[i] + 1 > top[fin_rank()])
            top[fin_rank()] = (double)bags->groups[i] + 1;
    if (!status)
        status = fit_add(top, fin_ranks(), err);
    for (int r = 0; r < fin_ranks() && !status; r++)
        run->groups = (int64_t)top[r] > run->groups ? (int64_t)top[r] : run->groups;
    free(top);
    return status;
}

int64_t fit_class_groups(const fit_run *run, int64_t c)
{
    const fin_bags *bags = run->bags;
    int64_t count = 0;
    unsigned char *seen = run->groups ? calloc((size_t)run->groups, 1) : NULL;
    if (!seen) /* no groups; or no memory for them, which is not worth more words */
        return (int64_t)run->class_count[c];
    for (int64_t i = 0; i < bags->n; i++)
        if (bags->labels[i] == (double)c && !seen[bags->groups[i]]) {
            seen[bags->groups[i]] = 1;
            count++;
        }
    free(seen);
    return count;
}
