/* What the tests of bags in files share. */
#ifndef TEST_DATA_BAGS_H
#define TEST_DATA_BAGS_H

#include "test_data.h"

#include "data/bags.h"
#include "fault.h"

static fin_error err;

/* Source of a file in the folder; for training. */
static inline fin_bags_source from(const char *path)
{
    return (fin_bags_source){.path = path, .class_count = -1};
}

static inline fin_bag_set *read_set(const fin_bags_source *source)
{
    fin_bag_set *set = NULL;
    if (fin_bag_set_read(&set, source, NULL, &err) != FIN_OK)
        fail_msg("%s", err.message);
    return set;
}

static inline const char *write_text(const char *name, const char *text)
{
    return write_file(name, text, strlen(text));
}

static inline fin_bag_set *read_text(const char *text)
{
    fin_bags_source source = from(write_text("t.csv", text));
    return read_set(&source);
}

/* Reading fails, with this status and all these parts in the message. */
static inline void read_refuses(const fin_bags_source *source, fin_status status, const char *a,
                                const char *b)
{
    fin_bag_set *set = (void *)&err;
    assert_int_equal(fin_bag_set_read(&set, source, NULL, &err), status);
    assert_null(set);
    assert_message(&err, a);
    assert_message(&err, b);
}

static inline double token(const fin_bag_set *set, int64_t t, int64_t j)
{
    const fin_bags *bags = fin_bag_set_bags(set);
    int64_t at = t * bags->d + j;
    return bags->dtype == FIN_F32 ? (double)((const float *)bags->tokens)[at]
                                  : ((const double *)bags->tokens)[at];
}

static inline void has_note(const fin_bag_set *set, const char *part)
{
    for (int i = 0; i < fin_bag_set_notes(set); i++)
        if (strstr(fin_bag_set_note(set, i), part))
            return;
    fail_msg("no note has '%s'", part);
}

/* An array as one NPY file in the folder. */
static inline const char *write_npy(const char *name, fin_dtype dtype, int ndim,
                                    const int64_t *shape, const void *data)
{
    char header[FINI_NPY_HEADER_MOST];
    int64_t count;
    assert_true(fini_shape_count(dtype, ndim, shape, &count));
    size_t start = fini_npy_header(fini_dtypes[dtype].descr, ndim, shape, header);
    size_t size = (size_t)count * fin_dtype_size(dtype);
    char *bytes = malloc(start + size);
    assert_non_null(bytes);
    memcpy(bytes, header, start);
    memcpy(bytes + start, data, size);
    const char *path = write_file(name, bytes, start + size);
    free(bytes);
    return path;
}

#endif
