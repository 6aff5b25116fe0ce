/* A series as bytes.
 *
 * The bytes of all elements are sorted by their place in an element (all first bytes, all second
 * bytes, ...) and then deflated: neighbours in a curve share sign, exponent and leading digits,
 * and deflate finds long runs of them. What is read is believed only when it has exactly the
 * size that the shape says; a shape that deflate could not have come from is refused before
 * memory is taken. */
#include "store/store.h"

#include "data/data.h"

#include <stdio.h>
#include <string.h>

enum { LEVEL = 4, RATIO_MOST = 1100 }; /* deflate makes at most 1032 bytes of one */
#define BYTES_MOST (INT64_C(1) << 30)  /* of one series; SQLite's own limit for a blob */

static void *zip_alloc(void *user, unsigned count, unsigned size)
{
    (void)user;
    return fini_alloc_array(count, size);
}

static void zip_free(void *user, void *block)
{
    (void)user;
    fini_free(block);
}

/* ---- shapes ---------------------------------------------------------------------------------- */

void fini_shape_text(const fin_series *series, char text[FINI_SHAPE_TEXT])
{
    int used = 0;
    text[0] = '\0';
    for (int i = 0; i < series->ndim; i++)
        used += sprintf(text + used, "%s%lld", i ? "," : "", (long long)series->shape[i]);
}

size_t fini_series_bytes(const fin_series *series)
{
    size_t bytes = fini_dtypes[series->dtype].size;
    for (int i = 0; i < series->ndim; i++)
        bytes *= (size_t)series->shape[i];
    return bytes;
}

/* "6,100" -> 2 axes; "" -> none. */
static bool read_shape(const char *text, fin_series *out)
{
    out->ndim = 0;
    while (*text) {
        int64_t length = 0;
        int digits = 0;
        for (; *text >= '0' && *text <= '9' && digits < 12; text++, digits++)
            length = length * 10 + (*text - '0');
        if (digits == 0 || out->ndim == 4 || (*text != ',' && *text != '\0'))
            return false;
        out->shape[out->ndim++] = length;
        if (*text == ',' && !*++text)
            return false;
    }
    return true;
}

/* ---- packing --------------------------------------------------------------------------------- */

static void split(const unsigned char *from, size_t bytes, size_t size, unsigned char *to)
{
    size_t count = bytes / size;
    for (size_t b = 0; b < size; b++)
        for (size_t i = 0; i < count; i++)
            to[b * count + i] = from[i * size + b];
}

static void join(const unsigned char *from, size_t bytes, size_t size, unsigned char *to)
{
    size_t count = bytes / size;
    for (size_t b = 0; b < size; b++)
        for (size_t i = 0; i < count; i++)
            to[i * size + b] = from[b * count + i];
}

/* Its tables are made once for a store: they cost more than a short series. */
static fin_status start_deflate(fin_store *store, fin_error *err)
{
    if (store->deflates && deflateReset(&store->deflate) == Z_OK)
        return FIN_OK;
    if (store->deflates)
        deflateEnd(&store->deflate);
    store->deflate = (z_stream){.zalloc = zip_alloc, .zfree = zip_free};
    store->deflates = deflateInit(&store->deflate, LEVEL) == Z_OK;
    return store->deflates ? FIN_OK : fini_fail_memory(err, 1 << 18, "packing a series");
}

fin_status fini_blob_pack(fin_store *store, const fin_series *series, void **bytes, size_t *size,
                          fin_error *err)
{
    int64_t count;
    *bytes = NULL;
    *size = 0;
    if (series->ndim < 0 || series->ndim > 4 || (int)series->dtype < 0 ||
        (int)series->dtype >= FINI_DTYPES ||
        !fini_shape_count(series->dtype, series->ndim, series->shape, &count) ||
        count > BYTES_MOST / (int64_t)fini_dtypes[series->dtype].size)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "series '%.60s' has a shape that a store cannot hold: at most 4 axes and "
                         "1 GB",
                         series->name);
    FINI_TRY(start_deflate(store, err));
    z_stream *zip = &store->deflate;
    size_t raw = fini_series_bytes(series), room = deflateBound(zip, (uLong)raw);
    unsigned char *sorted = fini_alloc(raw + 1), *packed = fini_alloc(room);
    if (!sorted || !packed) {
        fini_free_all(sorted, packed);
        return fini_fail_memory(err, raw + room, "packing a series");
    }
    if (raw > 0)
        split(series->data, raw, fini_dtypes[series->dtype].size, sorted);
    zip->next_in = sorted;
    zip->avail_in = (uInt)raw;
    zip->next_out = packed;
    zip->avail_out = (uInt)room;
    int code = deflate(zip, Z_FINISH);
    fini_free(sorted);
    if (code != Z_STREAM_END) {
        fini_free(packed);
        return fini_fail(err, FIN_ERR_NUMERIC, "series '%.60s' could not be packed", series->name);
    }
    *bytes = packed;
    *size = room - zip->avail_out;
    return FIN_OK;
}

/* ---- unpacking ------------------------------------------------------------------------------- */

/* All of `from` must give exactly `bytes`. */
static bool inflate_all(const void *from, size_t size, unsigned char *to, size_t bytes,
                        bool *memory)
{
    unsigned char spare;
    z_stream zip = {.zalloc = zip_alloc, .zfree = zip_free};
    *memory = inflateInit(&zip) != Z_OK;
    if (*memory)
        return false;
    zip.next_in = (z_const Bytef *)from;
    zip.avail_in = (uInt)size;
    zip.next_out = bytes ? to : &spare;
    zip.avail_out = (uInt)bytes;
    int code = inflate(&zip, Z_FINISH);
    bool good = code == Z_STREAM_END && zip.avail_out == 0 && zip.avail_in == 0;
    *memory = code == Z_MEM_ERROR;
    inflateEnd(&zip);
    return good;
}

static fin_status unpack(const fin_store *store, const void *packed, size_t size, fin_series *out,
                         fin_error *err)
{
    size_t bytes = fini_series_bytes(out);
    bool memory = false;
    unsigned char *sorted = fini_alloc(bytes + 1), *data = fini_alloc(bytes + 1);
    bool good = sorted && data && inflate_all(packed, size, sorted, bytes, &memory);
    memory = memory || !sorted || !data;
    if (good)
        join(sorted, bytes, fini_dtypes[out->dtype].size, data);
    fini_free(sorted);
    if (good) {
        out->data = data;
        return FIN_OK;
    }
    fini_free(data);
    if (memory)
        return fini_fail_memory(err, bytes * 2, "a series of a store");
    return fini_store_damaged(store, err, "the data of series '%.60s' do not fit its shape",
                              out->name);
}

fin_status fini_blob_read(const fin_store *store, sqlite3_stmt *statement, int column, bool data,
                          fin_series *out, fin_error *err)
{
    const char *dtype, *shape;
    int64_t count;
    out->data = NULL;
    FINI_TRY(fini_sql_text(store, statement, column, 8, "the type of a series", &dtype, err));
    FINI_TRY(fini_sql_text(store, statement, column + 1, FINI_SHAPE_TEXT, "a shape", &shape, err));
    if (!fini_dtype_find(dtype, true, &out->dtype) || !read_shape(shape, out) ||
        !fini_shape_count(out->dtype, out->ndim, out->shape, &count) ||
        count > BYTES_MOST / (int64_t)fini_dtypes[out->dtype].size)
        return fini_store_damaged(store, err, "series '%.60s' has no type or no shape", out->name);
    bool blob = sqlite3_column_type(statement, column + 2) == SQLITE_BLOB;
    out->stored = sqlite3_column_bytes(statement, column + 2);
    /* Even a series of no elements has some bytes; of an empty blob SQLite gives no pointer. */
    if (!blob || out->stored == 0)
        return fini_store_damaged(store, err, "series '%.60s' has no data", out->name);
    if (fini_series_bytes(out) / RATIO_MOST > (size_t)out->stored)
        return fini_store_damaged(store, err, "series '%.60s' is larger than its data can be",
                                  out->name);
    if (!data)
        return FIN_OK;
    const void *packed = sqlite3_column_blob(statement, column + 2);
    if (!packed)
        return fini_fail_memory(err, (size_t)out->stored, "a series of a store");
    return unpack(store, packed, (size_t)out->stored, out, err);
}
