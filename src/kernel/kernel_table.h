/* The row of one instruction set, of the functions that stand before it: they have the same names in
 * all. */
#include "kernel/layers.h"
#include "kernel/pairs.h"
#include "kernel/rows.h"

const fini_kernel TABLE_OF(kernel) = {
    .name = KERNEL_NAME,
    .pairs = &TABLE_OF(pairs),
    .rows = &TABLE_OF(rows),
    .layers = &TABLE_OF(layers),
    .normals_f32 = normals_f32,
    .normals_f64 = normals_f64,
    .exp = array_exp,
    .log1p = array_log1p,
    .erf = array_erf,
    .gauss = array_gauss,
    .project_f32 = project_f32,
    .project_f64 = project_f64,
    .project_norm_f32 = project_norm_f32,
    .project_norm_f64 = project_norm_f64,
    .gather_f32 = gather_f32,
    .gather_f64 = gather_f64,
    .pack_f32 = pack_f32,
    .pack_f64 = pack_f64,
    .attend_f32 = attend_f32,
    .attend_f64 = attend_f64,
    .covariances = covariances,
    .factor = factor,
    .forward = forward,
    .back = back,
    .erf_risk = erf_risk,
    .population = population,
    .reduced = reduced,
    .heads = heads,
};
