/* Arrays to an NPZ archive, through libzip.
 *
 * libzip sees two kinds of sources, both ours: one per array, from which it reads the NPY header
 * and then the elements, and one for the archive, into which it writes. The archive's source stands
 * on fini_output, so that temporary name, fsync and messages are those of every other file we
 * write, and a failure inside a source keeps its own words: it is stored in `failure`, and libzip's
 * code for it is only used if there is none.
 *
 * Entries are stored, not deflated (numpy maps them, and draws do not compress), and dated
 * 1980-01-01, as numpy does: the same arrays give the same bytes. */
#include "data/data.h"

#include <stdio.h>
#include <string.h>
#include <zip.h>

enum { CHUNK = 1 << 20, NAME_MOST = 200, DOS_1980_01_01 = 1 << 5 | 1 };

typedef struct entry {
    struct entry *next;
    fin_npz_writer *npz;
    char name[NAME_MOST + 8]; /* with ".npy" */
    char header[FINI_NPY_HEADER_MOST];
    size_t header_size;
    int64_t bytes;             /* of the elements */
    const unsigned char *data; /* NULL: fill makes them */
    fin_npz_fill fill;
    void *user;
    int64_t position;   /* of the next byte libzip gets, header included */
    fin_npz_text text;  /* an array of texts; NULL: none */
    const void *texts;  /* its user */
    int64_t wide;       /* characters of the longest */
    int64_t row, place; /* of the next character */
    const char *rest;   /* of its text */
} entry;

struct fin_npz_writer {
    zip_t *zip;
    fini_output *output;
    int64_t length; /* of what has been written to it */
    entry *entries;
    const fin_progress *progress;
    double done, total;
    unsigned char *chunk; /* [CHUNK] what fill made, */
    size_t used, size;    /* from used to size not yet taken by libzip */
    zip_error_t code;     /* what our sources answer libzip */
    fin_error failure;
    char path[300]; /* for messages */
};

/* ---- one array as a source ------------------------------------------------------------------ */

static zip_int64_t refuse(fin_npz_writer *npz, int code)
{
    zip_error_set(&npz->code, code, 0);
    return -1;
}

static zip_int64_t stat_size(uint64_t size, void *data, zip_uint64_t room)
{
    zip_stat_t *stat = data;
    if (room < sizeof *stat)
        return -1;
    zip_stat_init(stat);
    stat->size = size;
    stat->valid = ZIP_STAT_SIZE;
    return sizeof *stat;
}

/* The next chunk; false if fill failed or the caller cancelled. Progress comes once per chunk. */
static bool next_chunk(entry *e, size_t bytes)
{
    fin_npz_writer *npz = e->npz;
    if (e->fill) {
        npz->failure.message[0] = '\0';
        npz->failure.status = e->fill(e->user, npz->chunk, bytes, &npz->failure);
        if (npz->failure.status && !npz->failure.message[0])
            fini_fail(&npz->failure, npz->failure.status, "array '%s' was not produced: %s",
                      e->name, fin_status_name(npz->failure.status));
        if (npz->failure.status)
            return false;
    }
    if (fini_report(npz->progress, "writing arrays", npz->done, npz->total)) {
        fini_fail(&npz->failure, FIN_ERR_CANCELLED, "writing '%s' was cancelled", npz->path);
        return false;
    }
    npz->done += (double)bytes;
    npz->used = 0;
    npz->size = bytes;
    return true;
}

static zip_int64_t read_entry(entry *e, unsigned char *to, uint64_t room)
{
    fin_npz_writer *npz = e->npz;
    uint64_t got = 0;
    while (got < room && e->position < (int64_t)e->header_size)
        to[got++] = (unsigned char)e->header[e->position++];
    while (got < room) {
        int64_t at = e->position - (int64_t)e->header_size, left = e->bytes - at;
        if (left == 0)
            break;
        if (npz->used == npz->size && !next_chunk(e, left < CHUNK ? (size_t)left : CHUNK))
            return refuse(npz, ZIP_ER_READ);
        uint64_t piece = npz->size - npz->used;
        piece = piece < room - got ? piece : room - got;
        memcpy(to + got, e->data ? e->data + at : npz->chunk + npz->used, (size_t)piece);
        npz->used += (size_t)piece;
        e->position += (int64_t)piece;
        got += piece;
    }
    return (zip_int64_t)got;
}

static zip_int64_t entry_source(void *user, void *data, zip_uint64_t size, zip_source_cmd_t command)
{
    entry *e = user;
    fin_npz_writer *npz = e->npz;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE,
                                              ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE,
                                              -1);
    case ZIP_SOURCE_OPEN:
        if (e->position > 0 && e->fill) /* libzip reads once; a stream cannot begin again */
            return refuse(npz, ZIP_ER_INTERNAL);
        e->position = 0;
        npz->used = npz->size = 0;
        return 0;
    case ZIP_SOURCE_READ:
        return read_entry(e, data, size);
    case ZIP_SOURCE_STAT:
        return stat_size((uint64_t)e->bytes + e->header_size, data, size);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&npz->code, data, size);
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_FREE: /* entries are freed with the writer */
        return 0;
    default:
        return refuse(npz, ZIP_ER_OPNOTSUPP);
    }
}

/* ---- the archive as a source ---------------------------------------------------------------- */

/* Reading from it is declared, since libzip asks for it, but an empty archive is never read. */
static zip_int64_t archive_source(void *user, void *data, zip_uint64_t size,
                                  zip_source_cmd_t command)
{
    fin_npz_writer *npz = user;
    zip_int64_t position;
    switch (command) {
    case ZIP_SOURCE_SUPPORTS:
        return zip_source_make_command_bitmap(
            ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR,
            ZIP_SOURCE_FREE, ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_BEGIN_WRITE,
            ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE, ZIP_SOURCE_WRITE,
            ZIP_SOURCE_SEEK_WRITE, ZIP_SOURCE_TELL_WRITE, ZIP_SOURCE_REMOVE, -1);
    case ZIP_SOURCE_STAT:
        return stat_size(0, data, size);
    case ZIP_SOURCE_WRITE:
        if (fini_output_write(npz->output, data, (size_t)size, &npz->failure))
            return refuse(npz, ZIP_ER_WRITE);
        position = fini_output_tell(npz->output);
        npz->length = position > npz->length ? position : npz->length;
        return (zip_int64_t)size;
    case ZIP_SOURCE_SEEK_WRITE:
        position =
            zip_source_seek_compute_offset((zip_uint64_t)fini_output_tell(npz->output),
                                           (zip_uint64_t)npz->length, data, size, &npz->code);
        if (position < 0)
            return -1;
        return fini_output_seek(npz->output, position, &npz->failure) ? refuse(npz, ZIP_ER_SEEK)
                                                                      : 0;
    case ZIP_SOURCE_TELL_WRITE:
        return fini_output_tell(npz->output);
    case ZIP_SOURCE_ERROR:
        return zip_error_to_data(&npz->code, data, size);
    case ZIP_SOURCE_BEGIN_WRITE:
    case ZIP_SOURCE_COMMIT_WRITE: /* fin_npz_commit and fin_npz_abort do these two */
    case ZIP_SOURCE_ROLLBACK_WRITE:
    case ZIP_SOURCE_OPEN:
    case ZIP_SOURCE_READ:
    case ZIP_SOURCE_CLOSE:
    case ZIP_SOURCE_REMOVE:
    case ZIP_SOURCE_FREE:
        return 0;
    default:
        return refuse(npz, ZIP_ER_OPNOTSUPP);
    }
}

/* ---- the writer ----------------------------------------------------------------------------- */

/* Our own failure if there is one, else libzip's. */
static fin_status fail_zip(const fin_npz_writer *npz, zip_error_t *code, fin_error *err)
{
    if (npz->failure.status) {
        if (err)
            *err = npz->failure;
        return npz->failure.status;
    }
    /* libzip does not always say that it is memory that failed it. */
    if (zip_error_code_zip(code) == ZIP_ER_MEMORY || zip_error_code_zip(code) == ZIP_ER_OK)
        return fini_fail(err, FIN_ERR_MEMORY, "cannot write '%s': out of memory", npz->path);
    return fini_fail(err, FIN_ERR_IO, "cannot write '%s': %s", npz->path, zip_error_strerror(code));
}

fin_status fin_npz_create(const char *path, fin_npz_writer **out, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, path);
    FINI_MAKE(err, "an NPZ file", fin_npz_writer, npz);
    zip_error_init(&npz->code);
    snprintf(npz->path, sizeof npz->path, "%s", path);
    fin_status status = fini_output_open(path, true, &npz->output, err);
    if (!status && !(npz->chunk = fini_alloc(CHUNK)))
        status = fini_fail_memory(err, CHUNK, "an NPZ file");
    if (!status) {
        zip_error_t code;
        zip_error_init(&code);
        zip_source_t *source = zip_source_function_create(archive_source, npz, &code);
        npz->zip = source ? zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, &code) : NULL;
        if (!npz->zip) {
            zip_source_free(source);
            status = fail_zip(npz, &code, err);
        }
        zip_error_fini(&code);
    }
    FINI_HAND_OVER(out, npz, status, fin_npz_abort);
}

static fin_status check_array(const fin_npz_writer *npz, const char *name, fin_dtype dtype,
                              int ndim, const int64_t *shape, int64_t *count, fin_error *err)
{
    size_t length = strlen(name);
    if (length < 1 || length > NAME_MOST || strpbrk(name, "/\\"))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s: '%.40s' cannot name an array; a name has 1 to %d bytes and no slash",
                         npz->path, name, NAME_MOST);
    if (!fin_dtype_size(dtype))
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s: array '%s' has an unknown element type %d",
                         npz->path, name, (int)dtype);
    if (ndim < 0 || ndim > FIN_DIMS_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s: array '%s' has %d axes; 0 to %d are allowed",
                         npz->path, name, ndim, FIN_DIMS_MAX);
    if (!fini_shape_count(dtype, ndim, shape, count))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s: array '%s' has a negative length or its size overflows", npz->path,
                         name);
    return FIN_OK;
}

static fin_status add_to_zip(fin_npz_writer *npz, entry *e, fin_error *err)
{
    zip_source_t *source = zip_source_function(npz->zip, entry_source, e);
    zip_int64_t index = source ? zip_file_add(npz->zip, e->name, source, ZIP_FL_ENC_UTF_8) : -1;
    if (index < 0) {
        zip_source_free(source);
        if (zip_error_code_zip(zip_get_error(npz->zip)) == ZIP_ER_EXISTS)
            return fini_fail(err, FIN_ERR_ARGUMENT, "%s has two arrays called '%s'", npz->path,
                             e->name);
        return fail_zip(npz, zip_get_error(npz->zip), err);
    }
    if (zip_set_file_compression(npz->zip, (zip_uint64_t)index, ZIP_CM_STORE, 0) ||
        zip_file_set_dostime(npz->zip, (zip_uint64_t)index, 0, DOS_1980_01_01, 0)) {
        fail_zip(npz, zip_get_error(npz->zip), &npz->failure); /* it is in: commit must not be */
        return fail_zip(npz, NULL, err);
    }
    return FIN_OK;
}

/* from: where its elements come from. descr: NULL is that of dtype. */
static fin_status add(fin_npz_writer *npz, const char *name, const char *descr, fin_dtype dtype,
                      int ndim, const int64_t *shape, const entry *from, fin_error *err)
{
    int64_t count;
    FINI_TRY(check_array(npz, name, dtype, ndim, shape, &count, err));
    if (count > 0 && !from->data && !from->fill)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%s: array '%s' has elements but no data",
                         npz->path, name);
    FINI_MAKE(err, "an array of an NPZ file", entry, e);
    *e = *from;
    e->next = npz->entries;
    e->npz = npz;
    e->user = from->text ? e : from->user;
    e->bytes = count * (int64_t)fin_dtype_size(dtype) * (from->text ? from->wide : 1);
    npz->entries = e; /* even if the next step fails, libzip may know it */
    snprintf(e->name, sizeof e->name, "%s.npy", name);
    e->header_size =
        fini_npy_header(descr ? descr : fini_dtypes[dtype].descr, ndim, shape, e->header);
    npz->total += (double)e->bytes;
    return add_to_zip(npz, e, err);
}

fin_status fin_npz_add(fin_npz_writer *npz, const char *name, fin_dtype dtype, int ndim,
                       const int64_t *shape, const void *data, fin_error *err)
{
    bool empty = false;
    for (int i = 0; shape && i < ndim; i++)
        empty |= shape[i] == 0;
    FINI_NEED(err, npz, name, !ndim || shape, empty || data);
    return add(npz, name, NULL, dtype, ndim, shape, &(entry){.data = data}, err);
}

fin_status fin_npz_add_stream(fin_npz_writer *npz, const char *name, fin_dtype dtype, int ndim,
                              const int64_t *shape, fin_npz_fill fill, void *user, fin_error *err)
{
    FINI_NEED(err, npz, name, !ndim || shape, fill);
    return add(npz, name, NULL, dtype, ndim, shape, &(entry){.fill = fill, .user = user}, err);
}

static const char *text_of(const entry *e, int64_t i)
{
    const char *text = e->text(e->texts, i);
    return text ? text : "";
}

/* The next characters of texts, each as a number of 32 bits; a text ends in zeros. What is not UTF-8
 * is written as '?'. */
static fin_status fill_texts(void *user, void *buffer, size_t bytes, fin_error *err)
{
    entry *e = user;
    uint32_t *to = buffer;
    (void)err;
    for (size_t k = 0; k < bytes / sizeof *to; k++) {
        if (e->place == 0)
            e->rest = text_of(e, e->row);
        to[k] = fini_utf8_next(&e->rest);
        if (++e->place == e->wide) {
            e->place = 0;
            e->row++;
        }
    }
    return FIN_OK;
}

fin_status fin_npz_add_texts(fin_npz_writer *npz, const char *name, int64_t count,
                             fin_npz_text text, const void *user, fin_error *err)
{
    FINI_NEED(err, npz, name, text);
    entry from = {.fill = fill_texts, .text = text, .texts = user, .wide = 1};
    for (int64_t i = 0; i < count; i++) {
        int64_t length = 0;
        for (const char *p = text_of(&from, i); *p; length++)
            fini_utf8_next(&p);
        from.wide = length > from.wide ? length : from.wide;
    }
    char descr[32];
    int64_t cells;
    if (count < 0 || from.wide > 9999999 || __builtin_mul_overflow(count, from.wide, &cells) ||
        cells > INT64_MAX / 64)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%s: array '%s' has %lld texts of up to %lld characters; 9999999 "
                         "characters are allowed",
                         npz->path, name, (long long)count, (long long)from.wide);
    snprintf(descr, sizeof descr, "<U%lld", (long long)from.wide);
    return add(npz, name, descr, FIN_I32, 1, &count, &from, err);
}

fin_status fin_npz_commit(fin_npz_writer *npz, const fin_progress *progress, fin_error *err)
{
    FINI_NEED(err, npz);
    fin_status status = FIN_OK;
    npz->progress = progress;
    if (npz->failure.status)
        status = fail_zip(npz, NULL, err);
    else if (zip_get_num_entries(npz->zip, 0) < 1)
        status =
            fini_fail(err, FIN_ERR_ARGUMENT, "%s: an NPZ file needs at least one array", npz->path);
    else if (zip_close(npz->zip) != 0)
        status = fail_zip(npz, zip_get_error(npz->zip), err);
    else
        npz->zip = NULL;
    if (!status) {
        status = fini_output_commit(npz->output, err);
        npz->output = NULL;
    }
    fin_npz_abort(npz);
    return status;
}

void fin_npz_abort(fin_npz_writer *npz)
{
    if (!npz)
        return;
    if (npz->zip)
        zip_discard(npz->zip); /* first: its sources are the entries */
    fini_output_abort(npz->output);
    for (entry *e = npz->entries, *next; e; e = next) {
        next = e->next;
        fini_free(e);
    }
    zip_error_fini(&npz->code);
    fini_free_all(npz->chunk, npz);
}
