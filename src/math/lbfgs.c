/* L-BFGS (Nocedal 1980) with a line search for the weak Wolfe conditions.
 *
 *     f(x + t d) <= f(x) + c1 t g.d        g(x + t d).d >= c2 g.d
 *
 * Our own and not a library's, for three reasons: every process of a fit that is spread over several
 * must take the same steps, bit by bit; memory goes through the hooks; and a value that is not a
 * number (scores beyond all bounds) is a step that was too long, not an error. Near the minimum, where
 * the values' last digits are noise, slopes decide instead of values (Hager and Zhang 2005). */
#include "math/lbfgs.h"

#include <math.h>
#include <string.h>

enum { MEMORY = FINI_LBFGS_MEMORY, PAST = FINI_LBFGS_PAST, TRIES = 24 };

static void layout(fini_lbfgs *o)
{
    fini_arena *a = &o->arena;
    double **const vectors[] = {&o->g, &o->d, &o->try, &o->try_g};
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        *vectors[i] = fini_take(a, o->n, sizeof(double));
    o->S = fini_take(a, o->n, MEMORY * sizeof(double));
    o->Y = fini_take(a, o->n, MEMORY * sizeof(double));
    o->rho = fini_take(a, MEMORY, sizeof(double));
    o->alpha = fini_take(a, MEMORY, sizeof(double));
}

fin_status fini_lbfgs_create(fini_lbfgs *o, int64_t n, fin_error *err)
{
    *o = (fini_lbfgs){.n = n};
    FINI_LAY_OUT(err, &o->arena, "a search for a minimum", layout(o));
    return FIN_OK;
}

void fini_lbfgs_close(fini_lbfgs *o)
{
    fini_arena_close(&o->arena);
}

/* Four interleaved sums, so that the additions do not wait for each other. */
static double dot(int64_t n, const double *a, const double *b)
{
    double sum[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += a[i + j] * b[i + j];
    for (; i < n; i++)
        sum[0] += a[i] * b[i];
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
}

static void add(int64_t n, double times, const double *from, double *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += times * from[i];
}

/* d = -H g by the two loops; `kept` pairs, the newest number `newest`. True if a step of 1 is right
 * without any. */
static bool direction(fini_lbfgs *o, int64_t kept, int64_t newest)
{
    int64_t n = o->n;
    for (int64_t i = 0; i < n; i++)
        o->d[i] = -o->g[i];
    for (int64_t j = 0; j < kept; j++) {
        int64_t i = (newest - j + MEMORY) % MEMORY;
        o->alpha[i] = o->rho[i] * dot(n, o->S + i * n, o->d);
        add(n, -o->alpha[i], o->Y + i * n, o->d);
    }
    bool newton = o->newton && o->newton(o->user, o->d);
    if (kept && !newton) {
        const double *y = o->Y + newest * n;
        double scale = 1 / (o->rho[newest] * dot(n, y, y));
        for (int64_t i = 0; i < n; i++)
            o->d[i] *= scale;
    }
    for (int64_t j = kept - 1; j >= 0; j--) {
        int64_t i = (newest - j + MEMORY) % MEMORY;
        double beta = o->rho[i] * dot(n, o->Y + i * n, o->d);
        add(n, o->alpha[i] - beta, o->S + i * n, o->d);
    }
    return newton;
}

/* One end of the interval that holds a good step. */
typedef struct end {
    double t, value, slope;
} end;

/* Minimum of the cubic through two ends, kept away from both. */
static double between(end a, end b)
{
    double width = b.t - a.t;
    double c = a.slope + b.slope - 3 * (b.value - a.value) / width;
    double root = sqrt(c * c - a.slope * b.slope);
    double t = b.t - width * (b.slope + root - c) / (b.slope - a.slope + 2 * root);
    double low = a.t + 0.1 * width, high = a.t + 0.9 * width;
    if (!isfinite(b.value) || !isfinite(t))
        return a.t + 0.1 * width; /* far outside: come back quickly */
    return t < low ? low : t > high ? high : t;
}

/* From x along d; the point found is in try, try_g. *found: false if no step helps. */
static fin_status search(fini_lbfgs *o, const double *x, double first, double *value, bool *found,
                         fin_error *err)
{
    const double c1 = 1e-4, c2 = 0.9;
    double start = *value, noise = fmax(o->noise, 1e-14 * fabs(start)),
           slope = dot(o->n, o->g, o->d), t = first;
    end low = {0, start, slope}, high = {INFINITY, 0, 0};
    *found = false;
    for (int k = 0; k < TRIES; k++) {
        double f, along;
        for (int64_t i = 0; i < o->n; i++)
            o->try[i] = x[i] + t * o->d[i];
        FINI_TRY(o->function(o->user, o->try, &f, o->try_g, err));
        o->evaluations++;
        along = dot(o->n, o->try_g, o->d);
        bool number = isfinite(f) && isfinite(along);
        bool lower = number && f <= start + c1 * t * slope;
        bool same = number && f <= start + noise && along <= (2 * c1 - 1) * slope;
        if (!lower && !same) {
            high = (end){t, number ? f : INFINITY, along};
        } else if (along < c2 * slope) {
            low = (end){t, f, along};
        } else {
            *value = f;
            *found = true;
            return FIN_OK;
        }
        t = isfinite(high.t) ? between(low, high) : 4 * t;
    }
    /* No step with both properties: the longest one that is lower will do. */
    if (low.t > 0) {
        for (int64_t i = 0; i < o->n; i++)
            o->try[i] = x[i] + low.t * o->d[i];
        o->evaluations++;
        *found = true;
        return o->function(o->user, o->try, value, o->try_g, err);
    }
    return FIN_OK;
}

/* Keeps s = try - x, y = try_g - g if they say that the function curves upwards. */
static bool remember(fini_lbfgs *o, const double *x, int64_t place)
{
    double *s = o->S + place * o->n, *y = o->Y + place * o->n;
    for (int64_t i = 0; i < o->n; i++) {
        s[i] = o->try[i] - x[i];
        y[i] = o->try_g[i] - o->g[i];
    }
    double sy = dot(o->n, s, y), yy = dot(o->n, y, y);
    if (!(sy > 1e-14 * yy) || !(sy > 0))
        return false;
    o->rho[place] = 1 / sy;
    return true;
}

fin_status fini_lbfgs_begin(fini_lbfgs *o, const double *x, fin_error *err)
{
    memset(o->past, 0, sizeof o->past);
    o->kept = o->newest = 0;
    o->enough = o->gradient;
    o->done = o->evaluations = 0;
    o->finished = true;
    fin_status status = o->function(o->user, x, &o->value, o->g, err);
    o->evaluations += !status;
    return status;
}

/* Is x as good as it gets? */
static bool arrived(fini_lbfgs *o)
{
    double size = sqrt(dot(o->n, o->g, o->g)), f = o->value;
    if (o->done == 0)
        o->enough = fmax(o->enough, o->relative * size);
    if (!(size > o->enough) || !isfinite(f))
        return true;
    return o->done >= PAST && o->past[o->done % PAST] - f <= o->decrease * fabs(f);
}

fin_status fini_lbfgs_next(fini_lbfgs *o, double *x, bool *more, fin_error *err)
{
    bool found;
    double f = o->value;
    *more = false;
    if (arrived(o))
        return FIN_OK;
    bool newton = direction(o, o->kept, o->newest);
    if (o->kept && !(dot(o->n, o->d, o->g) < 0)) { /* rounding has spoilt the memory */
        o->kept = 0;
        newton = direction(o, 0, 0);
    }
    double first = o->kept || newton ? 1 : fmin(1, 1 / sqrt(dot(o->n, o->g, o->g)));
    FINI_TRY(search(o, x, first, &f, &found, err));
    if (!found && !o->kept)
        return FIN_OK; /* not even downhill: this is as far as the digits go */
    *more = true;
    o->past[o->done % PAST] = o->value;
    if (!found) {
        o->kept = 0;
        o->done++;
        return FIN_OK;
    }
    int64_t place = o->kept ? (o->newest + 1) % MEMORY : 0;
    if (remember(o, x, place)) {
        o->newest = place;
        o->kept += o->kept < MEMORY;
    }
    memcpy(x, o->try, (size_t)o->n * sizeof *x);
    memcpy(o->g, o->try_g, (size_t)o->n * sizeof *x);
    o->value = f;
    *more = !(o->watch && o->watch(o->user, o->done, x, f));
    o->done += *more;
    return FIN_OK;
}

fin_status fini_lbfgs_run(fini_lbfgs *o, double *x, fin_error *err)
{
    fin_status status = fini_lbfgs_begin(o, x, err);
    for (bool more = true; !status && o->done < o->iterations;) {
        status = fini_lbfgs_next(o, x, &more, err);
        if (!more)
            return status;
    }
    o->finished = false;
    return status;
}
