/* What a run leaves: scalars and series by name.
 *
 * Kept sorted as they come in (a run leaves some dozens of them), so that reading needs no further
 * step and finding a name twice costs nothing extra. The first failure is remembered, as with a
 * file: a command writes all it has and its caller asks once, at the end. */
#include "command/command.h"

#include "data/data.h"
#include "math/stats.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NAME_MOST = 64, NOTE_MOST = 512 };

typedef struct scalar {
    char name[NAME_MOST + 1];
    double value, error;
    fin_how how;
    int64_t samples;
} scalar;

typedef struct series {
    char name[NAME_MOST + 1];
    fin_dtype dtype;
    int ndim;
    int64_t shape[4];
    void *data;
} series;

struct fin_result {
    scalar *scalars;
    series *series;
    char (*notes)[NOTE_MOST];
    int scalar_count, scalar_room, series_count, series_room, note_count, note_room;
    fin_error error; /* the first one */
    const fin_result *before;
    const void *before_values;
};

/* ---- making ---------------------------------------------------------------------------------- */

fin_result *fin_result_create(void)
{
    fin_result *result = fini_alloc(sizeof *result);
    if (result)
        memset(result, 0, sizeof *result);
    return result;
}

void fini_result_clear(fin_result *result)
{
    for (int i = 0; i < result->series_count; i++)
        fini_free(result->series[i].data);
    result->scalar_count = result->series_count = result->note_count = 0;
    result->error = (fin_error){FIN_OK, ""};
}

void fin_result_destroy(fin_result *result)
{
    if (!result)
        return;
    fini_result_clear(result);
    fini_free_all(result->scalars, result->series, result->notes, result);
}

fin_status fini_result_status(const fin_result *result, fin_error *err)
{
    if (!result->error.status)
        return FIN_OK;
    return fini_fail(err, result->error.status, "%s", result->error.message);
}

const fin_result *fini_result_before(const fin_result *result, const void **values)
{
    *values = result->before_values;
    return result->before;
}

void fini_result_follow(fin_result *result, const fin_result *before, const void *values)
{
    result->before = before;
    result->before_values = values;
}

/* ---- adding ---------------------------------------------------------------------------------- */

/* Names are columns in files and words in formulas. */
static bool is_name(const char *name)
{
    size_t length = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_");
    return length >= 1 && length <= NAME_MOST && name[length] == '\0';
}

/* Where `name` belongs among `count` items of `size` bytes that begin with their names. */
static int place_of(const void *items, size_t size, int count, const char *name, bool *there)
{
    int low = 0, high = count;
    *there = false;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strcmp((const char *)items + (size_t)middle * size, name);
        if (order == 0) {
            *there = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Room for one more item; the old ones stay where they were if there is none. */
static fin_status grow(void **items, size_t size, int count, int *room, fin_error *err)
{
    if (count < *room)
        return FIN_OK;
    int64_t more = *room ? INT64_C(2) * *room : 16;
    void *larger = more <= 1 << 24 ? fini_alloc_array(more, size) : NULL;
    if (!larger)
        return fini_fail_memory(err, (size_t)more * size, "the results of a run");
    if (count)
        memcpy(larger, *items, (size_t)count * size);
    fini_free(*items);
    *items = larger;
    *room = (int)more;
    return FIN_OK;
}

/* Opens a gap for `name` in sorted items; *at is its place. */
static fin_status open_gap(void **items, size_t size, int *count, int *room, const char *name,
                           int *at, fin_error *err)
{
    char shown[80];
    bool there;
    if (!is_name(name))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "'%s' names no result; names are 1 to %d of a-z, 0-9 and _",
                         fini_printable(name, strlen(name), shown, sizeof shown), (int)NAME_MOST);
    *at = place_of(*items, size, *count, name, &there);
    if (there)
        return fini_fail(err, FIN_ERR_ARGUMENT, "the result '%s' is there twice", name);
    FINI_TRY(grow(items, size, *count, room, err));
    unsigned char *gap = (unsigned char *)*items + (size_t)*at * size;
    memmove(gap + size, gap, (size_t)(*count - *at) * size);
    memset(gap, 0, size);
    memcpy(gap, name, strlen(name) + 1);
    ++*count;
    return FIN_OK;
}

void fini_result_scalar(fin_result *result, const char *name, double value, double error,
                        fin_how how, int64_t samples)
{
    int at;
    void *items = result->scalars;
    if (result->error.status)
        return;
    if (error < 0 || samples < 0 || (int)how < 0 || how >= FIN_HOW_COUNT) {
        fini_fail(&result->error, FIN_ERR_ARGUMENT,
                  "the result '%.64s' has the error %g, %lld samples and the kind %d; none of them "
                  "is negative, and kinds are below %d",
                  name, error, (long long)samples, (int)how, (int)FIN_HOW_COUNT);
        return;
    }
    if (open_gap(&items, sizeof *result->scalars, &result->scalar_count, &result->scalar_room, name,
                 &at, &result->error))
        return;
    result->scalars = items;
    scalar *s = &result->scalars[at];
    s->value = value;
    s->error = error;
    s->how = how;
    s->samples = samples;
}

static fin_status copy_data(series *s, int64_t count, const void *data, fin_error *err)
{
    size_t size = fin_dtype_size(s->dtype);
    s->data = fini_alloc_array(count, size);
    if (!s->data)
        return fini_fail_memory(err, (size_t)count * size, "a series of a run");
    if (count)
        memcpy(s->data, data, (size_t)count * size);
    return FIN_OK;
}

void fini_result_share(fin_result *result, const char *name, const char *stem, int64_t count,
                       int64_t of)
{
    double p = (double)count / (double)of;
    char end[NAME_MOST + 8];
    fini_result_scalar(result, name, p, sqrt(p * (1 - p) / (double)of), FIN_HOW_SHARE, of);
    if (!stem)
        return;
    fini_interval wilson = fini_wilson((double)count, of);
    snprintf(end, sizeof end, "%s_low", stem);
    fini_result_scalar(result, end, wilson.low, 0, FIN_HOW_SHARE, of);
    snprintf(end, sizeof end, "%s_high", stem);
    fini_result_scalar(result, end, wilson.high, 0, FIN_HOW_SHARE, of);
}

void fini_result_series(fin_result *result, const char *name, fin_dtype dtype, int ndim,
                        const int64_t *shape, const void *data)
{
    int at;
    int64_t count;
    void *items = result->series;
    series made = {.dtype = dtype, .ndim = ndim};
    if (result->error.status)
        return;
    if (fin_dtype_size(dtype) == 0 || ndim < 1 || ndim > 4 ||
        !fini_shape_count(dtype, ndim, shape, &count)) {
        fini_fail(&result->error, FIN_ERR_ARGUMENT,
                  "the series '%.64s' has the type %d and %d dimensions; it must have a type that "
                  "there is, 1 to 4 dimensions, and a size that is a number",
                  name, (int)dtype, ndim);
        return;
    }
    memcpy(made.shape, shape, (size_t)ndim * sizeof *shape);
    if (copy_data(&made, count, data, &result->error))
        return;
    if (open_gap(&items, sizeof *result->series, &result->series_count, &result->series_room, name,
                 &at, &result->error)) {
        fini_free(made.data);
        return;
    }
    result->series = items;
    memcpy(made.name, result->series[at].name, sizeof made.name);
    result->series[at] = made;
}

void fini_result_note(fin_result *result, const char *format, ...)
{
    void *items = result->notes;
    if (result->error.status ||
        grow(&items, sizeof *result->notes, result->note_count, &result->note_room, &result->error))
        return;
    result->notes = items;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(result->notes[result->note_count++], NOTE_MOST, format, arguments);
    va_end(arguments);
}

/* ---- reading --------------------------------------------------------------------------------- */

int fin_result_scalar_count(const fin_result *result)
{
    return result ? result->scalar_count : 0;
}

int fin_result_series_count(const fin_result *result)
{
    return result ? result->series_count : 0;
}

fin_scalar fin_result_get_scalar(const fin_result *result, int i)
{
    if (!result || i < 0 || i >= result->scalar_count)
        return (fin_scalar){.name = NULL};
    const scalar *s = &result->scalars[i];
    return (fin_scalar){s->name, s->value, s->error, s->how, s->samples};
}

fin_series fin_result_get_series(const fin_result *result, int i)
{
    if (!result || i < 0 || i >= result->series_count)
        return (fin_series){.name = NULL};
    const series *s = &result->series[i];
    fin_series out = {.name = s->name, .dtype = s->dtype, .ndim = s->ndim, .data = s->data};
    memcpy(out.shape, s->shape, sizeof out.shape);
    return out;
}

const char *fin_result_note(const fin_result *result, int i)
{
    return result && i >= 0 && i < result->note_count ? result->notes[i] : NULL;
}
