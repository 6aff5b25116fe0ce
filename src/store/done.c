/* A finished run as bytes, as ranks send it.
 *
 *     "FINR", version u32, size u64 of all of it
 *     position i64, state u32, has result u32, seconds f64
 *     reason: length u32, letters
 *     scalars u32, series u32
 *     each scalar:  name: length u8, letters; how u8, samples i64, value f64, error f64
 *     each series:  name; dtype u8, dimensions u8, shape i64 each, elements
 *
 * Little-endian, nothing aligned, no padding. Numbers go bit by bit, so that NaN and -0 come back
 * as they were. Nothing that was read is believed before it has been compared with what is left. */
#include "store/done.h"

#include "data/data.h"

#include <stdio.h>
#include <string.h>

enum { VERSION = 1, ITEMS_MOST = 65536, NAME_MOST = 64 };
static const unsigned char magic[4] = {'F', 'I', 'N', 'R'};

/* ---- writing --------------------------------------------------------------------------------- */

/* Run twice, as a layout: with bytes == NULL it only measures. */
typedef struct writer {
    unsigned char *bytes;
    size_t used;
} writer;

static void put(writer *w, const void *data, size_t size)
{
    if (w->bytes && size)
        memcpy(w->bytes + w->used, data, size);
    w->used += size;
}

static void put_whole(writer *w, uint64_t value, int size)
{
    unsigned char bytes[8];
    for (int i = 0; i < size; i++)
        bytes[i] = (unsigned char)(value >> 8 * i);
    put(w, bytes, (size_t)size);
}

static void put_double(writer *w, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_whole(w, bits, 8);
}

static void put_name(writer *w, const char *name)
{
    put_whole(w, strlen(name), 1);
    put(w, name, strlen(name));
}

static void put_series(writer *w, const fin_series *s)
{
    int64_t count = 0; /* a shape that a result holds has been counted before */
    put_name(w, s->name);
    put_whole(w, (uint64_t)s->dtype, 1);
    put_whole(w, (uint64_t)s->ndim, 1);
    for (int i = 0; i < s->ndim; i++)
        put_whole(w, (uint64_t)s->shape[i], 8);
    (void)fini_shape_count(s->dtype, s->ndim, s->shape, &count);
    put(w, s->data, (size_t)count * fin_dtype_size(s->dtype));
}

static void put_result(writer *w, const fin_result *result)
{
    int scalars = result ? fin_result_scalar_count(result) : 0;
    int series = result ? fin_result_series_count(result) : 0;
    put_whole(w, (uint64_t)scalars, 4);
    put_whole(w, (uint64_t)series, 4);
    for (int i = 0; i < scalars; i++) {
        fin_scalar s = fin_result_get_scalar(result, i);
        put_name(w, s.name);
        put_whole(w, (uint64_t)s.how, 1);
        put_whole(w, (uint64_t)s.samples, 8);
        put_double(w, s.value);
        put_double(w, s.error);
    }
    for (int i = 0; i < series; i++) {
        fin_series s = fin_result_get_series(result, i);
        put_series(w, &s);
    }
}

static void put_done(writer *w, const fini_done *done, size_t size)
{
    size_t length = strnlen(done->reason, sizeof done->reason - 1);
    put(w, magic, sizeof magic);
    put_whole(w, VERSION, 4);
    put_whole(w, size, 8);
    put_whole(w, (uint64_t)done->position, 8);
    put_whole(w, (uint64_t)done->state, 4);
    put_whole(w, done->result != NULL, 4);
    put_double(w, done->seconds);
    put_whole(w, length, 4);
    put(w, done->reason, length);
    put_result(w, done->result);
}

fin_status fini_done_pack(const fini_done *done, unsigned char **bytes, size_t *size,
                          fin_error *err)
{
    *bytes = NULL;
    *size = 0;
    FINI_TRY(done->result ? fini_result_status(done->result, err) : FIN_OK);
    if (done->state != FIN_STATE_DONE && done->state != FIN_STATE_FAILED)
        return fini_fail(err, FIN_ERR_ARGUMENT, "a run in state %d is not finished",
                         (int)done->state);
    writer w = {NULL, 0};
    put_done(&w, done, 0);
    size_t total = w.used;
    w = (writer){fini_alloc(total), 0};
    if (!w.bytes)
        return fini_fail_memory(err, total, "the bytes of a run");
    put_done(&w, done, total);
    *bytes = w.bytes;
    *size = total;
    return FIN_OK;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What was asked for beyond the end is 0, and `bad` tells. */
typedef struct reader {
    const unsigned char *bytes;
    size_t left;
    bool bad;
} reader;

static const unsigned char *take(reader *r, size_t size)
{
    if (r->bad || size > r->left) {
        r->bad = true;
        return NULL;
    }
    const unsigned char *at = r->bytes;
    r->bytes += size;
    r->left -= size;
    return at;
}

static uint64_t take_whole(reader *r, int size)
{
    const unsigned char *at = take(r, (size_t)size);
    uint64_t value = 0;
    for (int i = 0; at && i < size; i++)
        value |= (uint64_t)at[i] << 8 * i;
    return value;
}

static double take_double(reader *r)
{
    uint64_t bits = take_whole(r, 8);
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Text without NUL, of `most` letters at most; "" if it is bad. */
static void take_text(reader *r, int length_size, size_t most, char *text)
{
    size_t length = (size_t)take_whole(r, length_size);
    text[0] = '\0';
    if (length > most) {
        r->bad = true;
        return;
    }
    const unsigned char *at = take(r, length);
    if (!at)
        return;
    if (memchr(at, 0, length)) {
        r->bad = true;
        return;
    }
    memcpy(text, at, length);
    text[length] = '\0';
}

static void take_scalar(reader *r, fin_result *result)
{
    char name[NAME_MOST + 1];
    take_text(r, 1, NAME_MOST, name);
    int how = (int)take_whole(r, 1);
    int64_t samples = (int64_t)take_whole(r, 8);
    double value = take_double(r), error = take_double(r);
    if (!r->bad)
        fini_result_scalar(result, name, value, error, (fin_how)how, samples);
}

static void take_elements(reader *r, fin_result *result, const char *name, fin_dtype dtype,
                          int ndim, const int64_t *shape)
{
    int64_t count;
    size_t size = fin_dtype_size(dtype);
    if (!fini_shape_count(dtype, ndim, shape, &count) || (size_t)count > r->left / size)
        r->bad = true;
    else
        fini_result_series(result, name, dtype, ndim, shape, take(r, (size_t)count * size));
}

static void take_series(reader *r, fin_result *result)
{
    char name[NAME_MOST + 1];
    int64_t shape[4] = {0};
    take_text(r, 1, NAME_MOST, name);
    fin_dtype dtype = (fin_dtype)take_whole(r, 1);
    int ndim = (int)take_whole(r, 1);
    if (fin_dtype_size(dtype) == 0 || ndim < 1 || ndim > 4)
        r->bad = true;
    for (int i = 0; i < ndim && !r->bad; i++)
        shape[i] = (int64_t)take_whole(r, 8);
    if (!r->bad)
        take_elements(r, result, name, dtype, ndim, shape);
}

static fin_status take_result(reader *r, fin_result *result, fin_error *err)
{
    uint64_t scalars = take_whole(r, 4), series = take_whole(r, 4);
    fin_status status = FIN_OK;
    if (scalars > ITEMS_MOST || series > ITEMS_MOST || (!result && scalars + series))
        r->bad = true;
    for (uint64_t i = 0; i < scalars && !r->bad; i++)
        take_scalar(r, result);
    for (uint64_t i = 0; i < series && !r->bad; i++)
        take_series(r, result);
    if (!status && result)
        status = fini_result_status(result, err);
    return status == FIN_ERR_ARGUMENT ? fini_fail(err, FIN_ERR_FORMAT, /* not the caller's doing */
                                                  "the bytes of a run hold no valid result: a "
                                                  "name, a kind or a number is not allowed")
                                      : status;
}

static fin_status take_head(reader *r, size_t size, fini_done *done, bool *has_result,
                            fin_error *err)
{
    const unsigned char *start = take(r, sizeof magic);
    if (!start || memcmp(start, magic, sizeof magic) != 0)
        return fini_fail(err, FIN_ERR_FORMAT, "these bytes are not those of a run");
    uint64_t version = take_whole(r, 4);
    if (version != VERSION)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "the bytes of a run are of version %llu, this library reads %d; use the "
                         "same library on all ranks",
                         (unsigned long long)version, (int)VERSION);
    uint64_t said = take_whole(r, 8);
    done->position = (int64_t)take_whole(r, 8);
    uint64_t state = take_whole(r, 4), has = take_whole(r, 4);
    done->seconds = take_double(r);
    take_text(r, 4, sizeof done->reason - 1, done->reason);
    if (said != size || (state != FIN_STATE_DONE && state != FIN_STATE_FAILED) || has > 1)
        r->bad = true;
    done->state = state == FIN_STATE_DONE ? FIN_STATE_DONE : FIN_STATE_FAILED;
    *has_result = has == 1;
    return FIN_OK;
}

fin_status fini_done_unpack(const unsigned char *bytes, size_t size, fini_done *done,
                            fin_error *err)
{
    reader r = {bytes, size, false};
    bool has_result = false;
    memset(done, 0, sizeof *done);
    fin_status status = take_head(&r, size, done, &has_result, err);
    if (!status && !r.bad && has_result && !(done->result = fin_result_create()))
        status = fini_fail_memory(err, size, "the results of a run");
    if (!status && !r.bad)
        status = take_result(&r, done->result, err);
    if (!status && (r.bad || r.left))
        status = fini_fail(err, FIN_ERR_FORMAT,
                           "the bytes of a run are cut, too many, or not what they say");
    if (status) {
        fin_result_destroy(done->result);
        memset(done, 0, sizeof *done);
    }
    return status;
}
