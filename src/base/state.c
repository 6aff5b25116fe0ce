/* Fields of objects to tensors and back (state.h). */
#include "base/state.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- tensors --------------------------------------------------------------------------------- */

void fini_tensor_put(fini_tensor_list *list, const char *prefix, const char *name, fin_dtype dtype,
                     int64_t rows, int64_t columns, const void *data)
{
    if (list->count < list->room) {
        fin_tensor *t = &list->tensors[list->count];
        *t = (fin_tensor){.dtype = dtype, .ndim = columns ? 2 : 1, .data = data};
        snprintf(t->name, sizeof t->name, "%s%s", prefix, name);
        t->shape[0] = rows;
        t->shape[1] = columns;
    }
    list->count++;
}

const fin_tensor *fini_state_find(const fini_state_source *from, const char *name)
{
    size_t n = strlen(from->prefix);
    for (int64_t i = 0; i < from->count; i++) {
        const fin_tensor *t = &from->tensors[i];
        if (strncmp(t->name, from->prefix, n) == 0 &&
            strncmp(t->name + n, name, sizeof t->name - n) == 0)
            return t;
    }
    return NULL;
}

/* ---- fields of an object --------------------------------------------------------------------- */

static int64_t size_of(const void *object, int64_t size)
{
    int64_t number = size;
    if (size < 0)
        memcpy(&number, (const char *)object + (-1 - size), sizeof number);
    return number;
}

static int64_t rows_of(const fini_state_field *f, const void *object)
{
    return f->count ? f->count(object) : size_of(object, f->rows);
}

static void *numbers_of(const fini_state_field *f, const void *object)
{
    char *at = (char *)(uintptr_t)object + f->at;
    void *numbers = at;
    if (f->flags & (FINI_STATE_THERE | FINI_STATE_OWNED))
        memcpy(&numbers, at, sizeof numbers);
    return numbers;
}

static bool has(const fini_state_field *f, const void *object)
{
    return !f->has || f->has(object);
}

void fini_state_save(const fini_state *state, const void *object, const char *prefix,
                     fini_tensor_list *list)
{
    for (int i = 0; i < state->count; i++) {
        const fini_state_field *f = &state->fields[i];
        const void *numbers = numbers_of(f, object);
        int64_t rows = has(f, object) ? rows_of(f, object) : 0;
        bool needed = !(f->flags & FINI_STATE_OPTIONAL) || (numbers && rows);
        if (needed && has(f, object))
            fini_tensor_put(list, prefix, f->name, f->dtype, rows, size_of(object, f->columns),
                            numbers);
    }
}

/* ---- back ------------------------------------------------------------------------------------ */

/* "(3, 7) F64" */
static const char *print_shape(int ndim, const int64_t *shape, fin_dtype dtype, char text[120])
{
    int used = sprintf(text, "(");
    for (int i = 0; i < ndim && i < 4; i++)
        used += sprintf(text + used, i ? ", %lld" : "%lld", (long long)shape[i]);
    sprintf(text + used, ") %s", fin_dtype_size(dtype) ? fini_dtypes[dtype].name : "?");
    return text;
}

static bool type_fits(const fini_state_field *f, const fin_tensor *t)
{
    return t->dtype == f->dtype || ((f->flags & FINI_STATE_FLOATS) && t->dtype == FIN_F64);
}

static fin_status check_shape(const fini_state *state, const fini_state_field *f,
                              const void *object, const char *prefix, const fin_tensor *t,
                              fin_error *err)
{
    int64_t want[2] = {rows_of(f, object), size_of(object, f->columns)}, count;
    int ndim = f->columns ? 2 : 1;
    if (f->flags & FINI_STATE_FREE) {
        int64_t most = size_of(object, f->most);
        want[0] = t->shape[0] < most ? t->shape[0] : most;
    }
    bool fits = type_fits(f, t) && t->ndim == ndim && t->shape[0] == want[0] &&
                (ndim == 1 || t->shape[1] == want[1]) &&
                fini_shape_count(t->dtype, ndim, want, &count);
    char found[120], asked[120];
    if (!fits)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "'%s%s' has the shape and type %s; the settings of the %s and its "
                         "other tensors ask for %s; it may have been saved with %s",
                         prefix, f->name, print_shape(t->ndim, t->shape, t->dtype, found),
                         state->what, print_shape(ndim, want, f->dtype, asked), state->other);
    if (!t->data && count)
        return fini_fail(err, FIN_ERR_FORMAT, "'%s%s' has no numbers", prefix, f->name);
    return FIN_OK;
}

static int64_t count_of(const fin_tensor *t)
{
    return t->shape[0] * (t->ndim > 1 ? t->shape[1] : 1);
}

/* A number as it will stand in the object. */
static double number_of(const fini_state_field *f, const fin_tensor *t, int64_t i)
{
    double x = fin_dtype_get(t->dtype, t->data, i);
    return f->dtype == FIN_F32 ? (double)(float)x : x;
}

static fin_status check_range(const fini_state_field *f, const char *prefix, const fin_tensor *t,
                              fin_error *err)
{
    bool range = f->low < f->high;
    int64_t n = f->flags & FINI_STATE_ANY ? 0 : count_of(t);
    for (int64_t i = 0; i < n; i++) {
        double x = number_of(f, t, i);
        if (range && !(x >= f->low && x <= f->high))
            return fini_fail(err, FIN_ERR_FORMAT,
                             "number %lld of '%s%s' is %g; it should be between %g and %g",
                             (long long)i, prefix, f->name, x, f->low, f->high);
        if (!isfinite(x))
            return fini_fail(err, FIN_ERR_FORMAT, "number %lld of '%s%s' is not finite",
                             (long long)i, prefix, f->name);
    }
    return FIN_OK;
}

/* The tensor of a field, looked at; NULL: the object or the file does not have it. */
static fin_status fetch(const fini_state *state, const fini_state_field *f, const void *object,
                        const fini_state_source *from, const fin_tensor **tensor, fin_error *err)
{
    bool optional = f->flags & FINI_STATE_OPTIONAL;
    const fin_tensor *t = *tensor =
        optional || has(f, object) ? fini_state_find(from, f->name) : NULL;
    if (!t)
        return optional || !has(f, object)
                   ? FIN_OK
                   : fini_fail(err, FIN_ERR_FORMAT,
                               "'%s%s' is missing: the %s is not complete, or was "
                               "saved with %s",
                               from->prefix, f->name, state->what, state->other);
    FINI_TRY(check_shape(state, f, object, from->prefix, t, err));
    return check_range(f, from->prefix, t, err);
}

static fin_status put(const fini_state *state, const fini_state_field *f, void *object,
                      const fin_tensor *t, fin_error *err)
{
    size_t n = (size_t)count_of(t), bytes = n * fini_dtypes[f->dtype].size;
    char *numbers = numbers_of(f, object);
    if (f->flags & FINI_STATE_FREE)
        memcpy((char *)object + (-1 - f->rows), &t->shape[0], sizeof t->shape[0]);
    if (f->flags & FINI_STATE_OWNED) {
        numbers = fini_alloc(bytes + 1);
        if (!numbers)
            return fini_fail_memory(err, bytes, state->what);
        numbers[bytes] = '\0'; /* so texts end */
        memcpy((char *)object + f->at, &numbers, sizeof numbers);
    }
    if (t->dtype == f->dtype && bytes)
        memcpy(numbers, t->data, bytes);
    for (size_t i = 0; t->dtype != f->dtype && i < n; i++)
        ((float *)(void *)numbers)[i] = (float)number_of(f, t, (int64_t)i);
    return FIN_OK;
}

fin_status fini_state_verify(const fini_state *state, const void *object,
                             const fini_state_source *from, fin_error *err)
{
    const fin_tensor *t;
    for (int i = 0; i < state->count; i++)
        FINI_TRY(fetch(state, &state->fields[i], object, from, &t, err));
    return FIN_OK;
}

fin_status fini_state_load(const fini_state *state, void *object, const fini_state_source *from,
                           fin_error *err)
{
    for (int i = 0; i < state->count; i++) {
        const fini_state_field *f = &state->fields[i];
        const fin_tensor *t;
        fin_error why = {FIN_OK, ""};
        fin_status status = fetch(state, f, object, from, &t, err);
        if (!status && t)
            status = put(state, f, object, t, err);
        if (status)
            return status;
        if (t && f->check && (status = f->check(object, &why)))
            return fini_fail(err, status, "'%s%s': %.400s", from->prefix, f->name, why.message);
    }
    return FIN_OK;
}
