/* Rows of tokens in AVX2 and FMA. */
#include "kernel/rows.h"

#include <stdbool.h>
#include <string.h>

#include "kernel/simd_avx2.h"

#include "kernel/rows_see.h"

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

const fini_rows fini_rows_avx2 = {project_f32, project_f64, gather_f32, gather_f64};
