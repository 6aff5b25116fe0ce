/* Element types of arrays: one table for all that read and write them. */
#include "base/base.h"

#include <math.h>
#include <string.h>

const fini_dtype fini_dtypes[FINI_DTYPES] = {
#define DTYPE_ROW(name, descr, size) {#name, descr, size},
    FIN_DTYPE_LIST(DTYPE_ROW)
#undef DTYPE_ROW
};

size_t fin_dtype_size(fin_dtype dtype)
{
    return (unsigned)dtype < FINI_DTYPES ? fini_dtypes[dtype].size : 0;
}

bool fini_dtype_find(const char *text, bool numpy, fin_dtype *dtype)
{
    for (int i = 0; i < FINI_DTYPES; i++)
        if (strcmp(text, numpy ? fini_dtypes[i].descr : fini_dtypes[i].name) == 0) {
            *dtype = (fin_dtype)i;
            return true;
        }
    return false;
}

double fin_dtype_get(fin_dtype dtype, const void *data, int64_t i)
{
    if (!data)
        return NAN;
    const char *at = (const char *)data + (size_t)i * fin_dtype_size(dtype);
    float f;
    double x;
    int32_t k;
    int64_t n;
    switch (dtype) { /* memcpy: elements of a mapped file need not be aligned */
    case FIN_F32:
        memcpy(&f, at, sizeof f);
        return (double)f;
    case FIN_F64:
        memcpy(&x, at, sizeof x);
        return x;
    case FIN_I32:
        memcpy(&k, at, sizeof k);
        return k;
    case FIN_I64:
        memcpy(&n, at, sizeof n);
        return (double)n;
    default:
        return *(const unsigned char *)at;
    }
}

bool fini_shape_count(fin_dtype dtype, int ndim, const int64_t *shape, int64_t *count)
{
    int64_t product = 1, bytes;
    bool zero = false;
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return false;
        zero |= shape[i] == 0;
    }
    for (int i = 0; i < ndim && !zero; i++)
        if (__builtin_mul_overflow(product, shape[i], &product))
            return false;
    *count = zero ? 0 : product;
    /* Room is left for headers, so that sums with this size cannot overflow either. */
    return !__builtin_mul_overflow(product, (int64_t)fin_dtype_size(dtype), &bytes) &&
           bytes < INT64_MAX / 4;
}
