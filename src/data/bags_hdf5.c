/* Bags from HDF5: a folder with a file for each bag, as pipelines for slides write them, or one file
 * with tokens, offsets and labels.
 *
 * Tokens are read in blocks, straight to where they stay: memory, or, where they take more than half
 * of it, a temporary file that is mapped and has no name. Compressed chunks are unpacked once. */
#define _POSIX_C_SOURCE 200809L
#include "bags/map.h"
#include "data/bags.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int64_t fini_h5_block = 16 << 20; /* bytes of tokens that are read at once; tests take fewer */
int64_t fini_h5_memory;           /* bytes that may be taken; 0: half of what is left */

static const char *const token_names[] = {"features", "tokens", "feats", NULL};

/* ---- files ------------------------------------------------------------------------------------- */

/* Length of the name without its end; 0: it is another kind of file. */
static size_t stem(const char *name)
{
    static const char *const ends[] = {".h5", ".hdf5"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t size = strlen(ends[i]);
        if (length > size && strcasecmp(name + length - size, ends[i]) == 0)
            return length - size;
    }
    return 0;
}

static int is_file(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && stem(entry->d_name) > 0;
}

bool fini_bags_is_hdf5(const fin_bags_source *source)
{
    const char *path = source->path;
    struct dirent **list = NULL;
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode))
        return stem(path) > 0;
    if (source->table) /* which may name files in folders below */
        return true;
    int count = scandir(path, &list, is_file, NULL);
    for (int i = 0; i < count; i++)
        free(list[i]);
    free(list);
    return count > 0;
}

/* Bags with a file each. */
typedef struct folder {
    const fin_bags_source *source;
    fini_names files, names; /* paths, names of the bags */
    fini_long table;
    char *text;    /* of the table */
    int64_t *rows; /* (files.count) tokens of each */
    int64_t width;
    fin_dtype dtype;
    const char *data; /* what the tokens are called in the first file */
    int64_t missing;  /* rows of the table without a file */
} folder;

static fin_status add_file(folder *f, const char *path, const char *name, size_t size,
                           fin_error *err)
{
    FINI_TRY(fini_names_add(&f->files, path, strlen(path), err));
    return fini_names_add(&f->names, name, size, err);
}

static fin_status list_files(folder *f, fin_error *err)
{
    const char *path = f->source->path;
    struct stat info;
    fin_status status = FIN_OK;
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) { /* one file is one bag */
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        return add_file(f, path, name, stem(name), err);
    }
    struct dirent **list = NULL;
    int count = scandir(path, &list, is_file, alphasort);
    for (int i = 0; i < count; i++) {
        char file[PATH_MAX + 264];
        snprintf(file, sizeof file, "%s/%s", path, list[i]->d_name);
        if (!status)
            status = add_file(f, file, list[i]->d_name, stem(list[i]->d_name), err);
        free(list[i]);
    }
    free(list);
    return status;
}

/* The file of a bag: slide.h5 for "slide", "slide.h5" and "slide.svs". */
static bool find_file(const char *where, const char *name, char *path, size_t size)
{
    static const char *const ends[] = {".h5", ".hdf5"};
    const char *dot = strrchr(name, '.');
    size_t lengths[] = {strlen(name), stem(name), dot ? (size_t)(dot - name) : 0};
    bool rooted = name[0] == '/'; /* seen from nowhere else */
    for (size_t k = 0; k < 3; k++)
        for (size_t i = 0; i < 2 && lengths[k]; i++) {
            int used = snprintf(path, size, "%s%s%.*s%s", rooted ? "" : where, rooted ? "" : "/",
                                (int)lengths[k], name, ends[i]);
            if (used > 0 && (size_t)used < size && access(path, F_OK) == 0)
                return true;
        }
    return false;
}

/* The rows of the table that have a file, in its order. */
static fin_status match_table(folder *f, fin_bag_set *set, fin_error *err)
{
    fini_long *t = &f->table;
    fin_status status = fini_long_read(t, &f->text, set, f->source, err);
    int64_t kept = 0, groups = 0, first = -1;
    int64_t *number = status ? NULL : fini_alloc_array(t->groups.count + 1, sizeof *number);
    if (!status && !number)
        status = fini_fail_memory(err, (size_t)t->groups.count * sizeof *number, "groups");
    if (number)
        memset(number, -1, (size_t)(t->groups.count + 1) * sizeof *number);
    for (int64_t i = 0; i < t->bags.count && !status; i++) {
        char path[PATH_MAX + 264];
        const char *name = fini_names_get(&t->bags, i);
        if (!find_file(f->source->path, name, path, sizeof path)) {
            first = f->missing++ ? first : i;
            continue;
        }
        status = add_file(f, path, name, strlen(name), err);
        t->labels.value[kept] = t->labels.value[i];
        t->labels.text[kept] = t->labels.text[i];
        if (t->group_of) { /* numbered again, by first appearance */
            int64_t *g = &number[t->group_of[i]];
            *g = *g < 0 ? groups++ : *g;
            t->group_of[kept] = *g;
        }
        kept++;
    }
    fini_free(number);
    if (status)
        return status;
    t->labels.n = kept;
    t->labels.bags = &f->names;
    const char *name = first >= 0 ? FINI_SHOW(fini_names_get(&t->bags, first)) : "";
    if (kept == 0)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "no bag of %.150s has a file in '%.150s': there is no %.60s.h5; is it the "
                         "right column (--bag)?",
                         f->source->table, f->source->path, name);
    if (f->missing)
        fini_bags_note(set,
                       "%lld of the %lld bags of the table have no file and are left out, '%s' "
                       "the first of them",
                       (long long)f->missing, (long long)t->bags.count, name);
    return FIN_OK;
}

/* ---- data sets ---------------------------------------------------------------------------------- */

/* The first of the names that is there. */
static fin_status find_one(int64_t file, const char *path, const char *const *names,
                           fini_h5_set *set, const char **name, fin_error *err)
{
    bool found = false;
    for (*name = NULL; *names && !found; names++) {
        FINI_TRY(fini_h5_find(file, path, *names, set, &found, err));
        if (found)
            *name = *names;
    }
    return FIN_OK;
}

static fin_status find_tokens(int64_t file, const char *path, fini_h5_set *set, const char **name,
                              fin_error *err)
{
    FINI_TRY(find_one(file, path, token_names, set, name, err));
    if (!*name)
        return fini_fail(err, FIN_ERR_FORMAT,
                         "%.250s has no data set 'features' (or 'tokens'), (tokens, columns)",
                         path);
    if (set->ndim >= 2 && set->rows > 0 && set->width > 0 && set->width <= FINI_BAGS_COLUMNS_MAX)
        return FIN_OK;
    return fini_fail(err, FIN_ERR_FORMAT,
                     "%.200s: '%s' has %lld rows of %lld numbers, on %d axes; (tokens, columns) is "
                     "needed, with at least one token and at most %d columns",
                     path, *name, (long long)set->rows, (long long)set->width, set->ndim,
                     FINI_BAGS_COLUMNS_MAX);
}

/* float16 and float32 stay float. */
static fin_dtype kept_type(const fini_h5_set *set)
{
    return set->dtype == FIN_F32 ? FIN_F32 : FIN_F64;
}

static fin_status look_at(folder *f, int64_t i, fin_error *err)
{
    const char *path = fini_names_get(&f->files, i), *name = NULL;
    fini_h5_set set = {0};
    int64_t file;
    fin_status status = fini_h5_open(path, &file, err);
    if (!status)
        status = find_tokens(file, path, &set, &name, err);
    if (!status && i > 0 && set.width != f->width)
        status = fini_fail(err, FIN_ERR_FORMAT,
                           "%.150s has tokens of %lld columns, but %.150s of %lld", path,
                           (long long)set.width, fini_names_get(&f->files, 0), (long long)f->width);
    f->width = set.width;
    f->rows[i] = set.rows;
    if (i == 0 || kept_type(&set) == FIN_F64)
        f->dtype = kept_type(&set);
    fini_h5_shut(&set);
    fini_h5_close(file);
    return status;
}

/* ---- tokens ------------------------------------------------------------------------------------- */

/* Room for tokens: in memory (*block), or in a file without a name, mapped (*map). */
static fin_status take_room(int64_t bytes, const fin_bag_set *set, void **block, fini_npy *map,
                            fin_error *err)
{
    double most = fini_h5_memory ? (double)fini_h5_memory : fini_memory_left() / 2;
    const char *base = getenv("TMPDIR");
    char path[PATH_MAX];
    *block = NULL;
    if ((double)bytes <= most) {
        *block = fini_alloc((size_t)bytes + 1);
        return *block ? FIN_OK : fini_fail_memory(err, (size_t)bytes, "tokens");
    }
    base = base && *base ? base : "/tmp";
    snprintf(path, sizeof path, "%.4000s/finetti-XXXXXX", base);
    int fd = mkstemp(path);
    if (fd < 0)
        return fini_fail_io(err, "write", path, errno);
    unlink(path);
    int number = posix_fallocate(fd, 0, (off_t)bytes); /* a full disk must not end us later */
    map->base =
        number ? MAP_FAILED : mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map->base == MAP_FAILED) {
        map->base = NULL;
        return fini_fail(err, FIN_ERR_IO,
                         "the tokens take %.3g GB, more than half of the memory that is left, and "
                         "'%.200s' has no "
                         "room for them; TMPDIR names another folder for temporary files",
                         (double)bytes / 1e9, base);
    }
    map->size = (size_t)bytes;
    map->ours = true;
    *block = map->base;
    fini_bags_note(
        set,
        "the tokens take %.3g GB, more than half of the memory that is left: they are kept in a "
        "temporary file in %.100s",
        (double)bytes / 1e9, base);
    return FIN_OK;
}

/* Where tokens are read to. */
typedef struct target {
    char *to;
    fin_dtype dtype;
    const int64_t *list; /* (d) columns; NULL: all */
    int64_t d;
    const fin_progress *progress;
    double done, all; /* numbers */
} target;

/* Rows of a block as the set wants them. */
static void copy_block(const target *t, const fini_h5_set *set, const char *from, int64_t count,
                       char *to)
{
    for (int64_t i = 0; i < count; i++)
        for (int64_t j = 0; j < t->d; j++) {
            double x = fin_dtype_get(set->dtype, from, i * set->width + (t->list ? t->list[j] : j));
            float f = (float)x;
            memcpy(to + (size_t)(i * t->d + j) * fin_dtype_size(t->dtype),
                   t->dtype == FIN_F32 ? (void *)&f : (void *)&x, fin_dtype_size(t->dtype));
        }
}

/* All rows of the data set to t->to, which moves on. */
static fin_status read_rows(const fini_h5_set *set, const char *path, const char *name, target *t,
                            fin_error *err)
{
    int64_t rows = fini_h5_block / (8 * set->width), size;
    size_t row = (size_t)t->d * fin_dtype_size(t->dtype);
    bool straight = !t->list && set->dtype == t->dtype;
    rows = rows < 1 ? 1 : rows;
    if (set->chunk < 4 * rows) /* whole chunks */
        rows = rows < set->chunk ? set->chunk : rows - rows % set->chunk;
    rows = rows < set->rows ? rows : set->rows;
    size = rows * set->width * (int64_t)fin_dtype_size(set->dtype);
    char *block = straight ? NULL : fini_alloc((size_t)size);
    fin_status status = FIN_OK;
    if (!straight && !block)
        return fini_fail_memory(err, (size_t)size, "a block of tokens");
    for (int64_t from = 0; from < set->rows && !status; from += rows) {
        int64_t count = set->rows - from < rows ? set->rows - from : rows;
        status = fini_h5_read(set, path, name, from, count, straight ? t->to : block, err);
        if (!status && !straight)
            copy_block(t, set, block, count, t->to);
        t->to += (size_t)count * row;
        t->done += (double)(count * t->d);
        if (!status && fini_report(t->progress, "reading tokens", t->done, t->all))
            status = fini_fail(err, FIN_ERR_CANCELLED, "reading %.300s was cancelled", path);
    }
    fini_free(block);
    return status;
}

static fin_status read_file(const folder *f, int64_t i, target *t, fin_error *err)
{
    const char *path = fini_names_get(&f->files, i), *name;
    fini_h5_set set = {0};
    int64_t file;
    fin_status status = fini_h5_open(path, &file, err);
    if (!status)
        status = find_tokens(file, path, &set, &name, err);
    if (!status && (set.rows != f->rows[i] || set.width != f->width))
        status = fini_fail(err, FIN_ERR_FORMAT, "%.300s changed while it was read", path);
    if (!status)
        status = read_rows(&set, path, name, t, err);
    fini_h5_shut(&set);
    fini_h5_close(file);
    return status;
}

static fin_status read_tokens(const folder *f, fin_bag_set *set, const int64_t *list,
                              const fin_progress *progress, fin_error *err)
{
    fin_bags *bags = &set->bags;
    int64_t own = bags->offsets[bags->n], cells, bytes;
    size_t size = fin_dtype_size(f->dtype);
    void *block = NULL;
    if (__builtin_mul_overflow(own, bags->d, &cells) ||
        __builtin_mul_overflow(cells, (int64_t)size, &bytes))
        return fini_fail_memory(err, SIZE_MAX, "tokens");
    fin_status status = take_room(bytes, set, &block, &set->map, err);
    set->tokens = set->map.base ? NULL : block;
    target t = {block, f->dtype, list, bags->d, progress, 0, (double)cells};
    for (int64_t i = 0; i < bags->n && !status; i++)
        status = read_file(f, bags->first + i, &t, err);
    bags->tokens = block;
    bags->dtype = f->dtype;
    return status;
}

/* ---- extras ------------------------------------------------------------------------------------- */

enum { EXTRA_WIDTH = 16 }; /* columns of a data set that comes back beside tokens */

typedef struct extras {
    fini_names sets;    /* data sets with a row for each token, */
    fini_names columns; /* and their columns, */
    int64_t *of, *at;   /* (columns) which of the sets, and which column of it */
    int64_t room;
} extras;

static fin_status add_set(extras *e, const char *name, const fini_h5_set *set, fin_error *err)
{
    FINI_TRY(fini_names_add(&e->sets, name, strlen(name), err));
    for (int64_t j = 0; j < set->width; j++) {
        char text[300];
        snprintf(text, sizeof text, set->ndim == 1 ? "%.240s" : "%.240s.%lld", name, (long long)j);
        if (e->columns.count == e->room)
            return FIN_OK;
        e->of[e->columns.count] = e->sets.count - 1;
        e->at[e->columns.count] = j;
        FINI_TRY(fini_names_add(&e->columns, text, strlen(text), err));
    }
    return FIN_OK;
}

/* Data sets of a file with `rows` rows, but those of names that are taken. */
static fin_status find_sets(extras *e, const char *path, int64_t rows, const char *const *taken,
                            fin_error *err)
{
    char name[240];
    int64_t file;
    fin_status status = fini_h5_open(path, &file, err);
    for (int64_t i = 0; !status && fini_h5_name(file, i, name, sizeof name); i++) {
        fini_h5_set set = {0};
        bool found = false;
        for (const char *const *word = taken; *word && !found; word++)
            found = strcmp(*word, name) == 0;
        if (found || fini_text_fault(name, strlen(name), false) ||
            fini_h5_find(file, path, name, &set, &found, NULL) || !found)
            continue; /* one that is no numbers is none of ours */
        if (set.rows == rows && set.ndim >= 1 && set.width <= EXTRA_WIDTH && set.width > 0)
            status = add_set(e, name, &set, err);
        fini_h5_shut(&set);
    }
    fini_h5_close(file);
    return status;
}

/* The data set's numbers, (rows, width), as double; *block NULL: the file has no such set. */
static fin_status read_numbers(const char *path, const char *name, int64_t rows, int64_t *width,
                               double **block, fin_error *err)
{
    fini_h5_set set = {0};
    bool found = false;
    int64_t file;
    *block = NULL;
    fin_status status = fini_h5_open(path, &file, err);
    if (!status)
        status = fini_h5_find(file, path, name, &set, &found, err);
    if (!status && found && (set.rows != rows || set.width > EXTRA_WIDTH))
        status = fini_fail(err, FIN_ERR_FORMAT, "%.200s: '%.60s' has %lld rows for %lld tokens",
                           path, name, (long long)set.rows, (long long)rows);
    if (!status && found) {
        *width = set.width;
        *block = fini_alloc_array(rows * set.width + 1, sizeof **block);
        target t = {(char *)*block, FIN_F64, NULL, set.width, NULL, 0, 0};
        status = *block ? read_rows(&set, path, name, &t, err)
                        : fini_fail_memory(err, (size_t)rows * sizeof **block, "extra columns");
    }
    fini_h5_shut(&set);
    fini_h5_close(file);
    return status;
}

/* The file of the same name in the other folder. */
static fin_status find_beside(const fin_bags_source *source, const char *path, char *other,
                              size_t size, fin_error *err)
{
    const char *slash = strrchr(path, '/');
    if (find_file(source->beside, slash ? slash + 1 : path, other, size))
        return FIN_OK;
    return fini_fail(err, FIN_ERR_IO, "'%.150s' has no file for '%.150s'", source->beside,
                     slash ? slash + 1 : path);
}

/* Column k of the set from every file: tokens from[i] .. from[i + 1] - 1 of the set are the rows of
 * file first + i. row NULL: they are in its order; else those rows, from 1. */
static fin_status fill_extra(const extras *e, fin_bag_set *set, const fin_bags_source *source,
                             const fini_names *files, const int64_t *rows, int64_t column,
                             int64_t k, fin_error *err)
{
    const char *name = fini_names_get(&e->sets, e->of[column]);
    const fin_bags *bags = &set->bags;
    bool alone = files->count == 1 && bags->total != 1; /* all bags in one file */
    FINI_NEW(err, "extra columns", double, numbers, bags->offsets[bags->n] + 1, 1);
    fin_status status = FIN_OK;
    set->extra[k].numbers = numbers;
    for (int64_t i = 0; i < (alone ? 1 : bags->n) && !status; i++) {
        int64_t at = alone ? 0 : bags->first + i, width = 1;
        int64_t from = bags->offsets[i], to = alone ? bags->offsets[bags->n] : bags->offsets[i + 1];
        char other[PATH_MAX + 264];
        double *block = NULL;
        status = read_numbers(fini_names_get(files, at), name, rows[at], &width, &block, err);
        if (!status && !block && source->beside) {
            status = find_beside(source, fini_names_get(files, at), other, sizeof other, err);
            if (!status)
                status = read_numbers(other, name, rows[at], &width, &block, err);
        }
        for (int64_t t = from; t < to && !status; t++) {
            int64_t r = alone ? fin_bag_set_row(set, t) - 1 : t - from;
            numbers[t] = block && e->at[column] < width ? block[r * width + e->at[column]] : NAN;
        }
        fini_free(block);
    }
    return status;
}

static fin_status read_extras(fin_bag_set *set, const fin_bags_source *source,
                              const fini_names *files, const int64_t *rows,
                              const char *const *taken, fin_error *err)
{
    enum { MOST = 1024 };
    extras e = {.room = MOST};
    char other[PATH_MAX + 264];
    int64_t *list = NULL, count = 0, first = files->count > 1 ? set->bags.first : 0;
    if (!source->extras || set->bags.n == 0)
        return FIN_OK;
    FINI_ROOM(err, "extra columns", e.of, 2 * MOST, 1);
    e.at = e.of + MOST;
    const char *path = fini_names_get(files, first);
    fin_status status = find_sets(&e, path, rows[first], taken, err);
    if (!status && source->beside) {
        status = find_beside(source, path, other, sizeof other, err);
        if (!status)
            status = find_sets(&e, other, rows[first], taken, err);
    }
    fini_columns columns = {.file = path, .names = &e.columns, .what = "extra columns"};
    if (!status)
        status = fini_names_index(&e.columns, err);
    if (!status)
        status = fini_extras_choose(set, source, &columns, &list, &count, err);
    for (int64_t k = 0; k < count && !status; k++)
        status = fill_extra(&e, set, source, files, rows, list[k], k, err);
    fini_free_all(list, e.of);
    fini_names_close(&e.sets);
    fini_names_close(&e.columns);
    return status;
}

/* ---- a file for each bag -------------------------------------------------------------------------- */

static fin_status cut(folder *f, fin_bag_set *set, fin_error *err)
{
    int64_t count = f->files.count, skipped;
    FINI_NEW(err, "bags", int64_t, offsets, count + 1, 1);
    offsets[0] = 0;
    for (int64_t i = 0; i < count; i++)
        if (__builtin_add_overflow(offsets[i], f->rows[i], &offsets[i + 1])) {
            fini_free(offsets);
            return fini_fail_memory(err, SIZE_MAX, "tokens");
        }
    FINI_TRY(fini_bags_cut(set, f->source, count, offsets, &skipped, err));
    const fin_bags *bags = &set->bags;
    FINI_ROOM(err, "rows", set->rows, bags->offsets[bags->n] + 1, 1);
    for (int64_t i = 0; i < bags->n; i++) /* of its own file */
        for (int64_t t = bags->offsets[i]; t < bags->offsets[i + 1]; t++)
            set->rows[t] = t - bags->offsets[i] + 1;
    return FIN_OK;
}

static fin_status fill(folder *f, fin_bag_set *set, const fin_progress *progress, fin_error *err)
{
    FINI_AT_END(fini_names_close) fini_names columns = {0};
    fini_columns all = {.file = f->source->path, .names = &columns, .nameless = true};
    FINI_FREED int64_t *list = NULL;
    int64_t count = 0, row, column;
    bool whole = true;
    FINI_TRY(fini_names_numbers(&columns, 0, f->width, err));
    FINI_TRY(fini_names_index(&columns, err));
    FINI_TRY(fini_bags_columns(set, f->source, &all, &list, &count, err));
    for (int64_t j = 0; j < count; j++)
        whole = whole && list[j] == j && count == f->width;
    FINI_TRY(cut(f, set, err));
    FINI_TRY(fini_bags_labels(
        set, f->source, f->table.label >= 0 && f->source->table ? &f->table.labels : NULL, err));
    if (f->table.group_of)
        FINI_TRY(fini_bags_groups(set, f->table.group_of, err));
    FINI_TRY(read_tokens(f, set, whole ? NULL : list, progress, err));
    FINI_TRY(read_extras(set, f->source, &f->files, f->rows, token_names, err));
    FINI_TRY(fini_bags_names(set, &f->names, err));
    FINI_TRY(fini_bags_infinite(&set->bags, progress, &row, &column, err));
    if (row >= 0)
        return fini_bags_fail_token(set, f->source->path, row, column, err);
    return FIN_OK;
}

static fin_status read_folder(fin_bag_set *set, const fin_bags_source *source,
                              const fin_progress *progress, fin_error *err)
{
    folder f = {.source = source, .table.label = -1};
    fin_status status = source->table ? match_table(&f, set, err) : list_files(&f, err);
    if (!status && !source->table && fini_bags_training(source) && !source->unlabelled)
        status = fini_fail(err, FIN_ERR_ARGUMENT,
                           "'%.200s' has tokens, but no labels; --labels names a CSV file with the "
                           "name of each bag and its label",
                           source->path);
    int64_t count = f.files.count;
    f.rows = status ? NULL : fini_alloc_array(count + 1, sizeof *f.rows);
    if (!status && !f.rows)
        status = fini_fail_memory(err, (size_t)count * sizeof *f.rows, "bags");
    for (int64_t i = 0; i < count && !status; i++) {
        status = look_at(&f, i, err);
        if (!status && fini_report(progress, "looking at files", (double)i, (double)count))
            status =
                fini_fail(err, FIN_ERR_CANCELLED, "reading %.300s was cancelled", source->path);
    }
    if (!status)
        status = fill(&f, set, progress, err);
    fini_names_close(&f.files);
    fini_names_close(&f.names);
    fini_long_close(&f.table);
    fini_free_all(f.rows, f.text);
    return status;
}

/* ---- all bags in one file --------------------------------------------------------------------------- */

/* A whole data set as an array, in memory of its own. */
static fin_status read_array(int64_t file, const char *path, const char *const *names,
                             fin_array *out, const char **name, fin_error *err)
{
    FINI_AT_END(fini_h5_shut) fini_h5_set set = {0};
    memset(out, 0, sizeof *out);
    FINI_TRY(find_one(file, path, names, &set, name, err));
    if (*name) {
        int64_t count = set.rows * set.width;
        void *block = fini_alloc_array(count + 1, fin_dtype_size(set.dtype));
        *out = (fin_array){set.dtype, 1, {count}, count, block};
        FINI_TRY(block ? fini_h5_read(&set, path, *name, 0, set.rows, block, err)
                       : fini_fail_memory(err, (size_t)count * 8, *name));
    }
    return FIN_OK;
}

static fin_status read_small(int64_t file, fini_arrays *a, const fin_bags_source *source,
                             fin_error *err)
{
    const char *const offsets[] = {source->bag ? NULL : "offsets", NULL};
    const char *const bag[] = {source->bag ? source->bag : "bag", source->bag ? NULL : "bag_id",
                               NULL};
    const char *const label[] = {source->label ? source->label : "y",
                                 source->label ? NULL : "label", "labels", NULL};
    const char *const group[] = {source->group, NULL};
    const char *name;
    FINI_TRY(read_array(file, a->file, offsets, &a->offsets, &name, err));
    if (!a->offsets.data)
        FINI_TRY(read_array(file, a->file, bag, &a->bag, &a->bag_name, err));
    FINI_TRY(read_array(file, a->file, label, &a->y, &a->label_name, err));
    if (source->label && !a->y.data && fini_bags_training(source))
        return fini_fail(err, FIN_ERR_ARGUMENT, "%.200s has no data set '%.60s'", a->file,
                         source->label);
    FINI_TRY(read_array(file, a->file, group, &a->group, &a->group_name, err));
    if (source->group && !a->group.data)
        return fini_fail(err, FIN_ERR_ARGUMENT, "%.200s has no data set '%.60s'", a->file,
                         source->group);
    return FIN_OK;
}

/* *bags false: the file is one bag, and nothing was read. */
static fin_status read_one(fin_bag_set *set, const fin_bags_source *source,
                           const fin_progress *progress, bool *bags, fin_error *err)
{
    fini_arrays a = {.file = source->path, .progress = progress};
    fini_h5_set tokens = {0};
    fini_npy map = {0};
    fini_names files = {0};
    const char *name = NULL;
    void *block = NULL;
    int64_t file, bytes;
    fin_bags_source plain = *source;
    plain.extras = NULL;
    fin_status status = fini_h5_open(source->path, &file, err);
    if (!status)
        status = find_tokens(file, source->path, &tokens, &name, err);
    if (!status)
        status = read_small(file, &a, source, err);
    *bags = status || a.offsets.data || a.bag.data;
    fin_dtype dtype = kept_type(&tokens);
    if (!status && *bags &&
        __builtin_mul_overflow(tokens.rows * tokens.width, (int64_t)fin_dtype_size(dtype), &bytes))
        status = fini_fail_memory(err, SIZE_MAX, "tokens");
    if (!status && *bags)
        status = take_room(bytes, set, &block, &map, err);
    target t = {
        block, dtype, NULL, tokens.width, progress, 0, (double)tokens.rows * (double)tokens.width};
    if (!status && *bags)
        status = read_rows(&tokens, source->path, name, &t, err);
    a.tokens =
        (fin_array){dtype, 2, {tokens.rows, tokens.width}, tokens.rows * tokens.width, block};
    if (!status && *bags)
        status = fini_bags_arrays(&a, set, &plain, err);
    if (!status && *bags) {
        const char *const taken[] = {name, "offsets", a.bag.data ? a.bag_name : name,
                                     a.y.data ? a.label_name : name, NULL};
        status = fini_names_add(&files, source->path, strlen(source->path), err);
        if (!status)
            status = read_extras(set, source, &files, &tokens.rows, taken, err);
    }
    if (!status && *bags && !set->tokens) { /* used where they lie */
        set->tokens = map.base ? NULL : block;
        set->map = map;
        map = (fini_npy){0};
        block = NULL;
    }
    if (!map.base)
        fini_free(block == set->tokens ? NULL : block);
    fini_npy_unmap(&map);
    fini_free_all((void *)a.offsets.data, (void *)a.bag.data, (void *)a.y.data,
                  (void *)a.group.data);
    fini_names_close(&a.columns);
    fini_names_close(&a.names);
    fini_names_close(&files);
    fini_free_all(a.bag_of, a.group_of);
    fini_h5_shut(&tokens);
    fini_h5_close(file);
    return status;
}

fin_status fini_bags_hdf5(fin_bag_set *set, const fin_bags_source *source,
                          const fin_progress *progress, fin_error *err)
{
    struct stat info;
    bool bags = false;
    if (stat(source->path, &info) != 0)
        return fini_fail_io(err, "read", source->path, errno);
    fin_status status = fini_h5_enter(source->path, err);
    if (status)
        return status;
    if (!S_ISDIR(info.st_mode) && !source->table)
        status = read_one(set, source, progress, &bags, err);
    if (!status && !bags)
        status = read_folder(set, source, progress, err);
    fini_h5_leave();
    return status;
}
