/* Where rounding leaves no factor: jitter on the diagonal, a step at a time, and what that may do to
 * an answer. Decided here for contexts, batches and families alike. */
#include "math/spd.h"

#include <math.h>
#include <string.h>

static double mean_diagonal(const fini_spd *o)
{
    double sum = 0;
    for (int64_t i = 0; i < o->n; i++)
        sum += o->C[i * o->ld + i] / (double)o->n;
    return sum;
}

fin_status fini_spd_ladder(fini_spd *o, fini_spd_steps *steps, const fin_progress *progress,
                           fin_error *err)
{
    fin_status status = FIN_OK;
    o->pivot = o->n > 0 ? o->stopped : -1;
    for (int step = steps->first; step <= steps->last && !status; step++) {
        if (steps->leap && step > 0)
            step = steps->last;
        o->jitter = step == 0 ? 0 : steps->mean * pow(10, step - 13);
        o->stopped = o->pivot;
        steps->fill(steps->user, o->jitter);
        if (step == 0)
            steps->mean = mean_diagonal(o);
        if (!isfinite(steps->mean)) {
            o->pivot = 0;
            break;
        }
        status = fini_spd_factor(o, progress, err);
        if (o->pivot < 0)
            break;
    }
    return status;
}

bool fini_spd_harmless(double jitter, double noise, int64_t n, const double *alpha, int64_t lda,
                       const double *values, int64_t ldv)
{
    double missed = 0, largest = 0;
    for (int64_t i = 0; i < n && jitter > noise; i++) {
        missed = fmax(missed, fabs(jitter * alpha[i * lda]));
        largest = fmax(largest, fabs(values[i * ldv]));
    }
    return missed <= 1e-6 * largest + 8 * sqrt(jitter);
}

/* ---- equal keys ------------------------------------------------------------------------------ */

/* -0 is 0 here, and so it is in the hash. */
static bool same(const double *a, const double *b, int64_t n)
{
    for (int64_t c = 0; c < n; c++)
        if (a[c] != b[c])
            return false;
    return true;
}

static uint64_t hash_key(const double *key, int64_t dk)
{
    uint64_t hash = 1469598103934665603u;
    for (int64_t c = 0; c < dk; c++) {
        double x = key[c] + 0.0;
        uint64_t bits;
        memcpy(&bits, &x, sizeof bits);
        hash = (hash ^ bits) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 29;
    }
    return hash;
}

static bool differ(const fini_tokens *t, int64_t i, int64_t j)
{
    return !same(t->values + i * t->ldv, t->values + j * t->ldv, t->dv);
}

/* A table of the first token with each key, half full at most. */
static int64_t look_up(const fini_tokens *t, int32_t *table, int64_t *earlier)
{
    int64_t size = 2 * t->n;
    memset(table, -1, (size_t)size * sizeof *table);
    for (int64_t i = 0; i < t->n; i++) {
        int64_t at = (int64_t)(hash_key(t->keys + i * t->dk, t->dk) % (uint64_t)size);
        while (table[at] >= 0 && !same(t->keys + table[at] * t->dk, t->keys + i * t->dk, t->dk))
            at = at + 1 < size ? at + 1 : 0;
        if (table[at] < 0)
            table[at] = (int32_t)i;
        *earlier = table[at];
        if (differ(t, i, table[at]))
            return i;
    }
    return -1;
}

int64_t fini_spd_contradiction(const fini_tokens *t, int64_t from, double *room, int64_t *earlier)
{
    if ((t->n - from) * (t->n + from) > 4 * t->n * (t->dk + 8)) /* many pairs: a table pays */
        return look_up(t, (void *)room, earlier);
    for (int64_t i = from; i < t->n; i++)
        for (int64_t j = 0; j < i; j++)
            if (same(t->keys + j * t->dk, t->keys + i * t->dk, t->dk) && differ(t, i, j)) {
                *earlier = j;
                return i;
            }
    return -1;
}
