/* Parameters copied in by name, from a file that may be hostile or of another encoder.
 *
 * Everything is looked at before anything is copied, so that a failure leaves the encoder as it
 * was. */
#include "encoder/encoder.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static int64_t numbers(const fini_piece *p)
{
    return p->rows * (p->columns ? p->columns : 1);
}

static void print_shape(int ndim, const int64_t *shape, char *text, size_t size)
{
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < ndim && i < 4 && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%lld", i ? " x " : "", (long long)shape[i]);
}

/* Number i of a tensor, which need not be aligned. Doubles are rounded to float: what is too large
 * for that counts as not finite. */
static float number(const fin_tensor *t, int64_t i)
{
    float single;
    double twice;
    if (t->dtype == FIN_F32) {
        memcpy(&single, (const char *)t->data + (size_t)i * sizeof single, sizeof single);
        return single;
    }
    memcpy(&twice, (const char *)t->data + (size_t)i * sizeof twice, sizeof twice);
    return (float)twice;
}

static fin_status check_tensor(const fini_piece *p, const fin_tensor *t, fin_error *err)
{
    int64_t shape[2] = {p->rows, p->columns};
    int ndim = p->columns ? 2 : 1;
    bool same = t->ndim == ndim && t->shape[0] == shape[0] && (ndim < 2 || t->shape[1] == shape[1]);
    if (!same) {
        char here[64], there[128];
        print_shape(ndim, shape, here, sizeof here);
        print_shape(t->ndim, t->shape, there, sizeof there);
        return fini_fail(err, FIN_ERR_FORMAT,
                         "tensor %.47s is %s, but that of this encoder is %s: it belongs to an "
                         "encoder of another shape",
                         p->name, t->ndim > 0 ? there : "a single number", here);
    }
    if ((t->dtype != FIN_F32 && t->dtype != FIN_F64) || !t->data)
        return fini_fail(err, FIN_ERR_FORMAT, "tensor %.47s has no float or double numbers",
                         p->name);
    int64_t n = numbers(p);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(number(t, i)))
            return fini_fail(err, FIN_ERR_FORMAT,
                             "number %lld of tensor %.47s is not finite; nothing was loaded",
                             (long long)i, p->name);
    return FIN_OK;
}

static const fini_piece *find_piece(const fin_encoder *o, const char *name)
{
    for (int64_t i = 0; i < o->pieces; i++)
        if (strncmp(o->piece[i].name, name, sizeof o->piece[i].name) == 0)
            return &o->piece[i];
    return NULL;
}

static const fin_tensor *find_tensor(const fin_tensor *tensors, int64_t count, const char *name)
{
    for (int64_t i = 0; i < count; i++)
        if (strncmp(tensors[i].name, name, sizeof tensors[i].name) == 0)
            return &tensors[i];
    return NULL;
}

fin_status fin_encoder_load(fin_encoder *o, const fin_tensor *tensors, int64_t count, int some,
                            int64_t *copied, fin_error *err)
{
    int64_t found = 0;
    if (copied)
        *copied = 0;
    if (count < 0 || (count && !tensors))
        return fini_fail(err, FIN_ERR_ARGUMENT, "%lld tensors to load", (long long)count);
    for (int64_t i = 0; !some && i < count; i++)
        if (!find_piece(o, tensors[i].name))
            return fini_fail(err, FIN_ERR_FORMAT,
                             "there is a tensor %.47s that this encoder has not: it belongs to an "
                             "encoder with other settings",
                             tensors[i].name);
    for (int64_t i = 0; i < o->pieces; i++) {
        const fini_piece *p = &o->piece[i];
        const fin_tensor *t = find_tensor(tensors, count, p->name);
        if (!t && !some)
            return fini_fail(err, FIN_ERR_FORMAT,
                             "tensor %.47s is missing: the others belong to an encoder with other "
                             "settings",
                             p->name);
        fin_status status = t ? check_tensor(p, t, err) : FIN_OK;
        if (status)
            return status;
        found += t != NULL;
    }
    for (int64_t i = 0; i < o->pieces; i++) {
        const fini_piece *p = &o->piece[i];
        const fin_tensor *t = find_tensor(tensors, count, p->name);
        for (int64_t j = 0, n = t ? numbers(p) : 0; j < n; j++)
            o->weights[p->at + j] = number(t, j);
    }
    if (copied)
        *copied = found;
    return FIN_OK;
}
