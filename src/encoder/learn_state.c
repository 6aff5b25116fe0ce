/* The state of learning as tensors, for files, and back from them.
 *
 * A file may be hostile: every tensor must have the type and the shape that this learn asks for,
 * and every number must be in its range, before anything is changed. Settings are not part of the
 * state: who goes on with other ones (more steps, say) may. */
#include "encoder/learn.h"

#include <math.h>
#include <string.h>

enum { MOST = 12 };

/* A piece of the state: its name, its shape, and where it stands. */
typedef struct part {
    const char *name;
    fin_dtype dtype;
    int64_t rows, columns; /* columns 0: one dimension */
    void *data;
} part;

static size_t size_of(fin_dtype dtype)
{
    return dtype == FIN_F32 ? sizeof(float) : sizeof(double);
}

/* All pieces but the log; returns how many. */
static int parts_of(const fin_learn *o, part parts[MOST])
{
    int64_t n = o->parameters;
    int k = 0;
    parts[k++] = (part){"learn.counts", FIN_I64, FINI_COUNTS, 0, o->count};
    parts[k++] = (part){"learn.numbers", FIN_F64, FINI_NUMBERS, 0, o->number};
    if (o->settings.optimizer == FIN_OPTIMIZER_ADAMW) {
        parts[k++] = (part){"learn.first", FIN_F32, n, 0, o->moment_first};
        parts[k++] = (part){"learn.second", FIN_F32, n, 0, o->moment_second};
    } else {
        parts[k++] = (part){"learn.x", FIN_F64, n, 0, o->x};
        parts[k++] = (part){"learn.gradient", FIN_F64, n, 0, o->search.g};
        parts[k++] = (part){"learn.S", FIN_F64, FINI_LBFGS_MEMORY, n, o->search.S};
        parts[k++] = (part){"learn.Y", FIN_F64, FINI_LBFGS_MEMORY, n, o->search.Y};
        parts[k++] = (part){"learn.rho", FIN_F64, FINI_LBFGS_MEMORY, 0, o->search.rho};
    }
    if (o->best && isfinite(o->number[FINI_BEST]))
        parts[k++] = (part){"learn.best", FIN_F32, n, 0, o->best};
    return k;
}

int64_t fin_learn_tensors(const fin_learn *learn, fin_tensor *tensors, int64_t room)
{
    part parts[MOST];
    int count = parts_of(learn, parts);
    if (learn->rows)
        parts[count++] = (part){"learn.log", FIN_F64, learn->rows, FINI_ROW, learn->row_numbers};
    fini_tensor_list l = {tensors, 0, room};
    for (int i = 0; i < count; i++)
        fini_tensor_put(&l, "", parts[i].name, parts[i].dtype, parts[i].rows, parts[i].columns,
                        parts[i].data);
    return count;
}

/* ---- back ------------------------------------------------------------------------------------ */

typedef struct source {
    const fin_tensor *tensors;
    int64_t count;
    fin_error *err;
} source;

static const fin_tensor *find(const source *s, const char *name)
{
    return fini_tensor_find(s->tensors, s->count, "", name);
}

static fin_status fetch(const source *s, const part *p, const fin_tensor **tensor)
{
    const fin_tensor *t = *tensor = find(s, p->name);
    if (!t)
        return fini_fail(s->err, FIN_ERR_FORMAT,
                         "the state of learning has no tensor '%s'; it is not complete, or was "
                         "saved with another optimizer",
                         p->name);
    if (!fini_tensor_fits(t, p->dtype, p->rows, p->columns) || !t->data)
        return fini_fail(s->err, FIN_ERR_FORMAT,
                         "the tensor '%s' of the state of learning has another type or shape than "
                         "this encoder asks for",
                         p->name);
    return FIN_OK;
}

static fin_status check_finite(const source *s, const part *p, const fin_tensor *t)
{
    int64_t n = p->rows * (p->columns ? p->columns : 1);
    bool square = strcmp(p->name, "learn.second") == 0;
    for (int64_t i = 0; i < n; i++) {
        double x = fini_tensor_number(t, i);
        if (!isfinite(x) || (square && x < 0))
            return fini_fail(s->err, FIN_ERR_FORMAT,
                             "number %lld of the tensor '%s' of the state of learning is %g",
                             (long long)i, p->name, x);
    }
    return FIN_OK;
}

static fin_status check_counts(const source *s, const int64_t *c, const double *x)
{
    const int64_t most = INT64_C(1) << 50;
    bool good = true;
    for (int i = 0; i < FINI_COUNTS; i++)
        good = good && c[i] >= 0 && c[i] <= most;
    good = good && c[FINI_STEP] <= INT64_C(1) << 40 && c[FINI_SINCE] <= c[FINI_STEP] &&
           c[FINI_STOPPED] <= 1 && c[FINI_KEPT] <= FINI_LBFGS_MEMORY &&
           c[FINI_NEWEST] < FINI_LBFGS_MEMORY;
    good = good && x[FINI_TOKENS_SEEN] >= 0 && !isnan(x[FINI_BEST]);
    for (int i = FINI_LOSS_SUM; i < FINI_NUMBERS; i++)
        good = good && isfinite(x[i]);
    if (!good)
        return fini_fail(s->err, FIN_ERR_FORMAT,
                         "counts or numbers of the state of learning are out of range");
    return FIN_OK;
}

/* The log: steps ascend and are not beyond the one that learning is at. */
static fin_status check_log(const source *s, int64_t step, const fin_tensor **log)
{
    const fin_tensor *t = *log = find(s, "learn.log");
    if (!t)
        return FIN_OK;
    bool good = t->dtype == FIN_F64 && t->ndim == 2 && t->shape[0] >= 1 &&
                t->shape[0] <= step + 1 && t->shape[1] == FINI_ROW && t->data;
    double last = -1;
    for (int64_t i = 0; good && i < t->shape[0]; i++) {
        double at = fini_tensor_number(t, i * FINI_ROW);
        good = at > last && at <= (double)step && at == floor(at);
        last = at;
        for (int j = 4; j <= 5; j++) {
            double count = fini_tensor_number(t, i * FINI_ROW + j);
            good = good && count >= 0 && count <= 0x1p52;
        }
    }
    if (!good)
        return fini_fail(s->err, FIN_ERR_FORMAT,
                         "the log of the state of learning has another shape, or steps that do "
                         "not ascend to %lld",
                         (long long)step);
    return FIN_OK;
}

static void copy_log(fin_learn *o, const fin_tensor *log)
{
    o->rows = log ? log->shape[0] : 0;
    if (log)
        memcpy(o->row_numbers, log->data, (size_t)o->rows * FINI_ROW * sizeof(double));
    for (int64_t i = 0; i < o->rows; i++)
        fini_learn_row_from(o->row_numbers + i * FINI_ROW, &o->row[i]);
}

fin_status fin_learn_restore(fin_learn *learn, const fin_tensor *tensors, int64_t count,
                             fin_error *err)
{
    source s = {tensors, count, err};
    part parts[MOST];
    const fin_tensor *found[MOST], *log;
    int64_t counts[FINI_COUNTS];
    double numbers[FINI_NUMBERS];
    bool best = false;
    fin_status status = FIN_OK;
    int n = parts_of(learn, parts);
    if (strcmp(parts[n - 1].name, "learn.best") == 0)
        n--; /* whether there are best weights the numbers say */
    for (int i = 0; i < n && !status; i++) {
        status = fetch(&s, &parts[i], &found[i]);
        if (!status && i >= 2)
            status = check_finite(&s, &parts[i], found[i]);
    }
    if (status)
        return status;
    memcpy(counts, found[0]->data, sizeof counts);
    memcpy(numbers, found[1]->data, sizeof numbers);
    status = check_counts(&s, counts, numbers);
    if (!status)
        status = check_log(&s, counts[FINI_STEP], &log);
    if (!status && learn->best && isfinite(numbers[FINI_BEST])) {
        parts[n] = (part){"learn.best", FIN_F32, learn->parameters, 0, learn->best};
        status = fetch(&s, &parts[n], &found[n]);
        if (!status)
            status = check_finite(&s, &parts[n], found[n]);
        best = true;
        n++;
    }
    if (!status)
        status = fini_learn_room(learn, log ? log->shape[0] : 0, err);
    if (status)
        return status;
    for (int i = 0; i < n; i++)
        memcpy(parts[i].data, found[i]->data,
               (size_t)(parts[i].rows * (parts[i].columns ? parts[i].columns : 1)) *
                   size_of(parts[i].dtype));
    if (!best) {
        learn->number[FINI_BEST] = INFINITY;
        learn->count[FINI_WAITED] = 0;
    }
    copy_log(learn, log);
    if (learn->settings.optimizer == FIN_OPTIMIZER_LBFGS)
        fini_learn_lbfgs_load(learn);
    return FIN_OK;
}
