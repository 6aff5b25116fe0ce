/* Bags from files: which reader, and what they all end in. */
#include "data/bags.h"
#include "math/small.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* ---- notes ------------------------------------------------------------------------------------ */

void fini_bags_note(const fin_bag_set *set, const char *format, ...)
{
    fini_notes *notes = set->notes;
    if (notes->count == FINI_BAGS_NOTES)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(notes->text[notes->count], sizeof notes->text[0], format, arguments);
    va_end(arguments);
    notes->count++;
}

/* ---- what readers share ----------------------------------------------------------------------- */

fin_status fini_bags_cut(fin_bag_set *set, const fin_bags_source *source, int64_t total,
                         int64_t *offsets, int64_t *skipped, fin_error *err)
{
    fin_bags *bags = &set->bags;
    set->offsets = offsets;
    bags->total = total;
    bags->first = 0;
    bags->n = total;
    *skipped = 0;
    if (source->ranks > 1) {
        fin_bags_share(total, source->rank, source->ranks, &bags->first, &bags->n);
        int64_t *own = fini_alloc_array(bags->n + 1, sizeof *own);
        if (!own)
            return fini_fail_memory(err, (size_t)(bags->n + 1) * sizeof *own, "bags");
        *skipped = bags->first < total ? offsets[bags->first] : offsets[total];
        for (int64_t i = 0; i <= bags->n; i++)
            own[i] = offsets[bags->first + i] - *skipped;
        fini_free(offsets);
        set->offsets = own;
    }
    bags->offsets = set->offsets;
    return FIN_OK;
}

fin_status fini_bags_names(fin_bag_set *set, fini_names *all, fin_error *err)
{
    const fin_bags *bags = &set->bags;
    if (bags->n == bags->total) {
        set->names = *all;
        *all = (fini_names){0};
        fini_free(set->names.slots); /* found by name later, if at all: folds make their own */
        set->names.slots = NULL;
        set->names.places = 0;
        return FIN_OK;
    }
    for (int64_t i = 0; i < bags->n; i++) {
        const char *name = fini_names_get(all, bags->first + i);
        FINI_TRY(fini_names_add(&set->names, name, strlen(name), err));
    }
    return FIN_OK;
}

fin_status fini_bags_keep(char **to, const char *text, fin_error *err)
{
    size_t size = text ? strlen(text) + 1 : 0;
    if (!text)
        return FIN_OK;
    *to = fini_alloc(size);
    if (!*to)
        return fini_fail_memory(err, size, "a name");
    memcpy(*to, text, size);
    return FIN_OK;
}

/* A float is not finite if and only if its exponent's bits are all set. Blocks of a fixed length
 * with no branch, so that the compiler uses the width of the machine: as fast as memory. */
enum { LANES = 64 };
#define ANY_INFINITE(name, bits_type, exponent)                                                    \
    static bool name(const void *data, int64_t count)                                              \
    {                                                                                              \
        const unsigned char *p = data;                                                             \
        bits_type bits[LANES], bad = 0;                                                            \
        for (; count >= LANES; count -= LANES, p += sizeof bits) {                                 \
            memcpy(bits, p, sizeof bits);                                                          \
            for (int i = 0; i < LANES; i++)                                                        \
                bad |= (bits_type)((bits[i] & (exponent)) == (exponent));                          \
        }                                                                                          \
        memcpy(bits, p, (size_t)count * sizeof *bits);                                             \
        for (int64_t i = 0; i < count; i++)                                                        \
            bad |= (bits_type)((bits[i] & (exponent)) == (exponent));                              \
        return bad != 0;                                                                           \
    }
ANY_INFINITE(any_infinite_32, uint32_t, UINT32_C(0x7f800000))
ANY_INFINITE(any_infinite_64, uint64_t, UINT64_C(0x7ff0000000000000))

static bool piece_infinite(const fin_bags *bags, int64_t from, int64_t count)
{
    return bags->dtype == FIN_F32 ? any_infinite_32((const float *)bags->tokens + from, count)
                                  : any_infinite_64((const double *)bags->tokens + from, count);
}

fin_status fini_bags_infinite(const fin_bags *bags, const fin_progress *progress, int64_t *row,
                              int64_t *column, fin_error *err)
{
    enum { PIECE = 1 << 18, TURN = 64 }; /* a turn is at most 128 MB */
    int64_t count = (bags->offsets[bags->n] - bags->offsets[0]) * bags->d, found = count;
    int64_t pieces = (count + PIECE - 1) / PIECE;
    int threads = pieces > 1 ? fin_threads_get() : 1;
    *row = -1;
    for (int64_t turn = 0; turn < pieces && found == count; turn += TURN) {
        int64_t end = turn + TURN < pieces ? turn + TURN : pieces;
        if (fini_report(progress, "looking at tokens", (double)turn, (double)pieces))
            return fini_fail(err, FIN_ERR_CANCELLED, "reading tokens was cancelled");
#pragma omp parallel for num_threads(threads) schedule(static) reduction(min : found)
        for (int64_t i = turn; i < end; i++) {
            int64_t from = i * PIECE, size = count - from < PIECE ? count - from : PIECE;
            if (from < found && piece_infinite(bags, from, size))
                found = from;
        }
    }
    if (found == count)
        return FIN_OK;
    while (found < count - 1 && !piece_infinite(bags, found, 1))
        found++;
    *row = found / bags->d;
    *column = found % bags->d;
    return FIN_OK;
}

/* The bag of row t of the share. */
static int64_t bag_of(const fin_bags *bags, int64_t t)
{
    return fini_first_from_i64(bags->n, bags->offsets, bags->offsets[0] + t + 1) - 1;
}

fin_status fini_bags_fail_token(const fin_bag_set *set, const char *label, int64_t t, int64_t j,
                                fin_error *err)
{
    const fin_bags *bags = &set->bags;
    const char *bag = fin_bag_set_name(set, bag_of(bags, t)), *column = fin_bag_set_feature(set, j);
    int64_t at = t * bags->d + j;
    double value = bags->dtype == FIN_F32 ? (double)((const float *)bags->tokens)[at]
                                          : ((const double *)bags->tokens)[at];
    return fini_fail(
        err, FIN_ERR_FORMAT,
        "%.200s, row %lld of bag '%s', column '%s': %s is not a finite number; fill it "
        "in, or leave the row or the column out",
        label, (long long)fin_bag_set_row(set, t), FINI_SHOW(bag), FINI_SHOW(column),
        isnan(value) ? "nan"
        : value > 0  ? "inf"
                     : "-inf");
}

/* ---- reading ---------------------------------------------------------------------------------- */

static bool ends_in(const char *path, const char *end)
{
    size_t length = strlen(path), size = strlen(end);
    return length >= size && strcasecmp(path + length - size, end) == 0;
}

static fin_status check_source(const fin_bags_source *source, fin_error *err)
{
    if (!source->path || !*source->path)
        return fini_fail(err, FIN_ERR_ARGUMENT, "the name of the file with bags is empty");
    if (source->kind && strcmp(source->kind, "auto") != 0 &&
        strcmp(source->kind, "regression") != 0 && strcmp(source->kind, "classes") != 0)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the kind of label is '%.40s'; auto, regression and classes are known",
                         source->kind);
    if ((source->sep && !strchr(",;\t|", source->sep)) ||
        (source->decimal && !strchr(".,", source->decimal)))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a table is separated by , ; | or tabs, and decimals are written with . "
                         "or ,");
    if (source->ranks < 0 || source->rank < 0 ||
        (source->ranks > 0 && source->rank >= source->ranks))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "process %d of %d is asked for; they are counted from 0", source->rank,
                         source->ranks);
    if (source->feature_count < 0 || (source->feature_names && source->feature_count == 0) ||
        (source->class_count > 0 && !source->class_names))
        return fini_fail(err, FIN_ERR_ARGUMENT, "names of features or classes are missing");
    return FIN_OK;
}

fin_status fini_bag_set_create(fin_bag_set **out, fin_error *err)
{
    fin_bag_set *set = fini_alloc(sizeof *set);
    fini_notes *notes = fini_alloc(sizeof *notes);
    *out = set;
    if (!set || !notes) {
        fini_free_all(set, notes);
        *out = NULL;
        return fini_fail_memory(err, sizeof *set + sizeof *notes, "bags");
    }
    memset(set, 0, sizeof *set);
    notes->count = 0;
    set->notes = notes;
    return FIN_OK;
}

static fin_status finish(fin_bag_set **out, fin_status status)
{
    if (status) {
        fin_bag_set_destroy(*out);
        *out = NULL;
    }
    return status;
}

fin_status fini_bag_set_parse(fin_bag_set **out, const fin_bags_source *source, const char *text,
                              size_t size, const fin_progress *progress, fin_error *err)
{
    *out = NULL;
    FINI_TRY(check_source(source, err));
    FINI_TRY(fini_bag_set_create(out, err));
    return finish(out, fini_bags_parse(*out, source, text, size, progress, err));
}

/* Files that are not read, and how they become one that is. */
static fin_status check_format(const char *path, fin_error *err)
{
    static const struct {
        const char *end, *what, *how;
    } formats[] = {
        {".parquet", "Parquet", "pandas.read_parquet('%s').to_csv('x.csv.gz', index=False)"},
        {".feather", "Arrow", "pandas.read_feather('%s').to_csv('x.csv.gz', index=False)"},
        {".xlsx", "a spreadsheet", "pandas.read_excel('%s').to_csv('x.csv', index=False)"},
        {".xls", "a spreadsheet", "pandas.read_excel('%s').to_csv('x.csv', index=False)"},
        {".ods", "a spreadsheet", "pandas.read_excel('%s').to_csv('x.csv', index=False)"},
        {".pt", "PyTorch's", "h5py.File('x.h5', 'w')['features'] = torch.load('%s').numpy()"},
        {".pth", "PyTorch's", "h5py.File('x.h5', 'w')['features'] = torch.load('%s').numpy()"},
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        char how[300], shown[120];
        if (!ends_in(path, formats[i].end))
            continue;
        fini_printable(path, strlen(path), shown, sizeof shown);
        const char *gap = strstr(formats[i].how, "%s");
        snprintf(how, sizeof how, "%.*s%s%s", (int)(gap - formats[i].how), formats[i].how, shown,
                 gap + 2);
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "'%s' is %s and is not read; Python converts it: %s", shown,
                         formats[i].what, how);
    }
    return FIN_OK;
}

/* A folder of files that are not read: the message is about the first of them. */
static fin_status check_folder(const char *path, fin_error *err)
{
    DIR *folder = opendir(path);
    char file[PATH_MAX + 264];
    fin_status status = FIN_OK;
    for (struct dirent *entry; folder && !status && (entry = readdir(folder));) {
        if (ends_in(entry->d_name, ".npy")) /* what is read is there too */
            break;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        status = check_format(file, err);
    }
    if (folder)
        closedir(folder);
    return status;
}

fin_status fin_bag_set_read(fin_bag_set **out, const fin_bags_source *source,
                            const fin_progress *progress, fin_error *err)
{
    FINI_NEED_TO_MAKE(err, out, source);
    struct stat info;
    fin_status status = check_source(source, err);
    if (!status)
        status = check_format(source->path, err);
    if (!status)
        status = fini_bag_set_create(out, err);
    if (status)
        return status;
    bool archive = ends_in(source->path, ".npz");
    if (fini_bags_is_hdf5(source))
        status = fini_bags_hdf5(*out, source, progress, err);
    else if (source->table || source->beside)
        status =
            fini_fail(err, FIN_ERR_ARGUMENT,
                      "'%.200s' is not HDF5 with a file for each bag, which alone has a table of "
                      "labels or files beside it",
                      source->path);
    else if (archive || ends_in(source->path, ".npy"))
        status = fini_bags_files(*out, source, archive, progress, err);
    else if (stat(source->path, &info) == 0 && S_ISDIR(info.st_mode)) {
        status = check_folder(source->path, err);
        if (!status)
            status = fini_bags_files(*out, source, false, progress, err);
    } else
        status = fini_bags_csv(*out, source, progress, err);
    return finish(out, status);
}

void fin_bag_set_destroy(fin_bag_set *set)
{
    if (!set)
        return;
    fini_names_close(&set->class_names);
    fini_names_close(&set->features);
    fini_names_close(&set->names);
    fini_free_all(set->label, set->bag, set->group, set->rows, set->notes, set->labels,
                  set->offsets, set->groups, set->tokens);
    fin_npz_close(set->npz);
    fini_npy_unmap(&set->map);
    fini_extras_close(set);
    fini_free(set);
}

/* ---- asking ----------------------------------------------------------------------------------- */

const fin_bags *fin_bag_set_bags(const fin_bag_set *set)
{
    return set ? &set->bags : NULL;
}

int64_t fin_bag_set_classes(const fin_bag_set *set)
{
    return set ? set->classes : 0;
}

const char *fin_bag_set_class(const fin_bag_set *set, int64_t c)
{
    return set ? fini_names_get(&set->class_names, c) : NULL;
}

const char *fin_bag_set_feature(const fin_bag_set *set, int64_t j)
{
    return set ? fini_names_get(&set->features, j) : NULL;
}

const char *fin_bag_set_name(const fin_bag_set *set, int64_t i)
{
    return set ? fini_names_get(&set->names, i) : NULL;
}

const char *fin_bag_set_label(const fin_bag_set *set)
{
    return set ? set->label : NULL;
}

const char *fin_bag_set_bag(const fin_bag_set *set)
{
    return set ? set->bag : NULL;
}

const char *fin_bag_set_group(const fin_bag_set *set)
{
    return set ? set->group : NULL;
}

int64_t fin_bag_set_row(const fin_bag_set *set, int64_t t)
{
    if (!set || t < 0 || t >= set->bags.offsets[set->bags.n] - set->bags.offsets[0])
        return 0;
    return set->rows ? set->rows[t] : set->first_row + t;
}

int fin_bag_set_notes(const fin_bag_set *set)
{
    return set ? set->notes->count : 0;
}

const char *fin_bag_set_note(const fin_bag_set *set, int i)
{
    return set && i >= 0 && i < set->notes->count ? set->notes->text[i] : NULL;
}
