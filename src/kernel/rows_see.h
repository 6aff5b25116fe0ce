/* How a row of tokens is seen, then rows_body.h for both types of tokens. */

#define INLINE static inline __attribute__((always_inline))
/* AHEAD, FAR: bytes between what is read and what is asked for beforehand. Rows are short, and the
 * processor's own guess stops with each of them. */
enum { STEP = 8, REGISTERS = STEP / WD, AHEAD = 4096, FAR = 8192 };

typedef struct sight { /* of one register of columns */
    bool raw;
    vd center, low, high;
} sight;

INLINE sight sight_at(bool raw, const double *center, const double *bound)
{
    sight s = {raw, SET_D(0.0), SET_D(0.0), SET_D(0.0)};
    if (!raw) {
        s.center = LOAD_D(center);
        s.high = LOAD_D(bound);
        s.low = -s.high;
    }
    return s;
}

INLINE vd see(sight s, vd x)
{
    return s.raw ? x : MAX_D(s.low, MIN_D(s.high, x - s.center)); /* NaN is the second one */
}

/* The last columns, fewer than STEP, filled up with zeros. */
typedef struct rest {
    int64_t n;
    double center[STEP], bound[STEP];
} rest;

INLINE rest rest_of(int64_t d, const double *center, const double *bound)
{
    rest end = {d % STEP, {0}, {0}};
    for (int64_t j = 0; j < end.n && center; j++) {
        end.center[j] = center[d - end.n + j];
        end.bound[j] = bound[d - end.n + j];
    }
    return end;
}

/* n, but at most what a register has. */
INLINE int least(int64_t n)
{
    return n < WD ? (int)n : WD;
}

#define REAL float
#define NAME(name) name##_f32
#define FETCH(p) WIDEN(p)
#define FETCH_SOME(p, n) WIDE(load_some_f(p, n), 0)
#include "kernel/rows_body.h"

#define REAL double
#define NAME(name) name##_f64
#define FETCH(p) LOAD_D(p)
#define FETCH_SOME(p, n) load_some_d(p, n)
#include "kernel/rows_body.h"

#include "kernel/rows_float.h"

const fini_rows TABLE_OF(rows) = {project_f32,   project_f64,  gather_f32, gather_f64,
                                  project_float, gather_float, sums_f32,   sums_f64};
