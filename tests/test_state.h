/* What a hostile file may do to a state: every field of a table (base/state.h), harmed in every way.
 *
 * Missing, of every other type, with an axis more or less, longer, shorter, of a size that is huge or
 * negative, without data, with numbers that are not finite or past their range: each has to be refused
 * with FIN_ERR_FORMAT and a sentence. A field that is missing, or whose type, data or numbers are wrong,
 * is named in it. */
#ifndef TEST_STATE_H
#define TEST_STATE_H

#include "base/state.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Loads; whatever it has made it takes away again. */
typedef fin_status (*state_loader)(void *user, const fin_tensor *tensors, int64_t count,
                                   fin_error *why);

typedef struct state_case {
    const fini_state *state;
    const char *prefix;
    fin_tensor *tensors;
    int64_t count;
    state_loader load;
    void *user;
    int harms; /* counted */
} state_case;

/* harm: for the message. named: the sentence has to name the field. */
static inline void state_refused(state_case *c, const fini_state_field *f, const char *harm,
                                 double number, bool named)
{
    fin_error why = {FIN_OK, ""};
    fin_status status = c->load(c->user, c->tensors, c->count, &why);
    c->harms++;
    if (status != FIN_ERR_FORMAT || !why.message[0] || (named && !strstr(why.message, f->name)))
        fail_msg("%s%s, %s %g: status '%s', '%s'", c->prefix, f->name, harm, number,
                 fin_status_name(status), why.message);
}

/* It does not matter what comes of it, but that it ends well. */
static inline void state_survives(state_case *c, const fini_state_field *f, double number)
{
    fin_error why = {FIN_OK, ""};
    fin_status status = c->load(c->user, c->tensors, c->count, &why);
    c->harms++;
    if (status != FIN_OK && status != FIN_ERR_FORMAT)
        fail_msg("%s%s, %g: status '%s', '%s'", c->prefix, f->name, number, fin_status_name(status),
                 why.message);
}

static inline void state_harm_kind(state_case *c, const fini_state_field *f, fin_tensor *t)
{
    const fin_tensor keep = *t;
    fin_error why = {FIN_OK, ""};
    *t = c->tensors[--c->count];
    if (!(f->flags & FINI_STATE_OPTIONAL))
        state_refused(c, f, "missing", 0, true);
    else if (c->load(c->user, c->tensors, c->count, &why) != FIN_OK)
        fail_msg("%s%s is optional, and missing: '%s'", c->prefix, f->name, why.message);
    c->count++;
    *t = keep;
    memset(t->name, '?', 3); /* and another in its place */
    if (!(f->flags & FINI_STATE_OPTIONAL))
        state_refused(c, f, "called otherwise", 0, false);
    *t = keep;
    for (int type = 0; type <= FINI_DTYPES; type++) {
        t->dtype = (fin_dtype)(type < FINI_DTYPES ? type : 77);
        if (t->dtype != keep.dtype && !((f->flags & FINI_STATE_FLOATS) && t->dtype == FIN_F64))
            state_refused(c, f, "type", type, true);
    }
    *t = keep;
    t->data = NULL;
    if (keep.shape[0])
        state_refused(c, f, "no data", 0, true);
    *t = keep;
}

static inline void state_harm_shape(state_case *c, const fini_state_field *f, fin_tensor *t)
{
    static const int64_t sizes[] = {-1, INT64_MIN, INT64_C(1) << 40, INT64_MAX};
    const fin_tensor keep = *t;
    for (int ndim = -1; ndim <= 4; ndim++) {
        t->ndim = ndim;
        for (int i = keep.ndim; i < 4; i++)
            t->shape[i] = 1;
        if (ndim != keep.ndim)
            state_refused(c, f, "axes", ndim, true);
    }
    *t = keep;
    for (int axis = 0; axis < keep.ndim; axis++) {
        bool is_free = axis == 0 && (f->flags & FINI_STATE_FREE);
        for (int i = 0; i < 6; i++) {
            t->shape[axis] = i < 4 ? sizes[i] : keep.shape[axis] + (i == 4 ? 1 : -1);
            if (!is_free || i < 4)
                state_refused(c, f, "size", (double)t->shape[axis], false);
        }
        *t = keep;
    }
}

static inline void state_harm_numbers(state_case *c, const fini_state_field *f, fin_tensor *t)
{
    const fin_tensor keep = *t;
    int64_t n = t->shape[0] * (t->ndim > 1 ? t->shape[1] : 1);
    size_t size = fin_dtype_size(t->dtype);
    const double bad[] = {NAN, INFINITY, -INFINITY, f->low - 1, f->high * 2 + 1, -1, 1e300, 0x1p62};
    bool any = (f->flags & FINI_STATE_ANY) || t->dtype == FIN_U8, range = f->low < f->high;
    char *data = malloc((size_t)n * size + 1);
    assert_non_null(data);
    t->data = data;
    for (int k = 0; k < 3 * 8 && n > 0; k++) {
        int64_t at = (int64_t[]){0, n / 2, n - 1}[k % 3];
        double x = bad[k / 3];
        float f32 = (float)x;
        bool whole = t->dtype == FIN_I64;
        int64_t i64 = whole && isfinite(x) && fabs(x) < 0x1p63 ? (int64_t)x : INT64_MIN;
        unsigned char u8 = (unsigned char)(k * 37);
        const void *from = t->dtype == FIN_F32  ? (const void *)&f32
                           : whole              ? (const void *)&i64
                           : t->dtype == FIN_U8 ? (const void *)&u8
                                                : (const void *)&x;
        double now = t->dtype == FIN_F32 ? (double)f32 : whole ? (double)i64 : x;
        memcpy(data, keep.data, (size_t)n * size);
        memcpy(data + (size_t)at * size, from, size);
        if (!any && (!isfinite(now) || (range && (now < f->low || now > f->high))))
            state_refused(c, f, "number", now, true);
        else
            state_survives(c, f, now);
    }
    free(data);
    *t = keep;
}

/* The good state loads; every harm is refused, and the good state loads again. Returns how many harms
 * there were. */
static inline int state_harm_every(const fini_state *state, const char *prefix, fin_tensor *tensors,
                                   int64_t count, state_loader load, void *user)
{
    state_case c = {state, prefix, tensors, count, load, user, 0};
    fin_error why = {FIN_OK, ""};
    for (int i = 0; i <= state->count; i++) {
        if (load(user, tensors, count, &why) != FIN_OK)
            fail_msg("a good state: %s", why.message);
        const fini_state_source from = {prefix, tensors, count};
        const fin_tensor *t =
            i < state->count ? fini_state_find(&from, state->fields[i].name) : NULL;
        if (!t)
            continue;
        state_harm_kind(&c, &state->fields[i], &tensors[t - tensors]);
        state_harm_shape(&c, &state->fields[i], &tensors[t - tensors]);
        state_harm_numbers(&c, &state->fields[i], &tensors[t - tensors]);
    }
    print_message("%s%s: %d harms\n", prefix, state->what, c.harms);
    return c.harms;
}

#endif
