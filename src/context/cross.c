/* A context of (key, value) tokens: made, measured, destroyed.
 *
 * Everything that depends on the capacity is taken here, in one arena and, for the dual method, one
 * matrix of its own that is not touched before tokens come (so that a large capacity costs address
 * space, and memory only as it fills). */
#include "context/cross.h"

#include <math.h>
#include <string.h>

#define FIN_TABLE_STRUCT fin_cross_settings
FIN_TABLE(, fin_cross_table, "cross", FIN_CROSS_FIELDS);

/* ---- which method ---------------------------------------------------------------------------- */

static fin_status refuse_dual(const fin_cross_settings *s, int64_t dk, int64_t capacity,
                              fin_error *err)
{
    double D = fini_monomials_count(s, dk);
    bool primal = D > 0 && D <= FINI_CROSS_FEATURES_MOST;
    return fini_fail(
        err, FIN_ERR_UNSUPPORTED,
        "the dual method needs a matrix of tokens x tokens: %lld tokens are %.3g bytes; at most "
        "%d tokens (%.3g bytes) are allowed; take %s",
        (long long)capacity, 8 * (double)capacity * (double)capacity, FIN_CROSS_DUAL_MOST,
        8.0 * FIN_CROSS_DUAL_MOST * FIN_CROSS_DUAL_MOST,
        primal ? "method auto or primal: this kernel has few features, and they are exact"
               : "method nystrom with landmarks, such as 1000, which states its error, or fewer "
                 "tokens");
}

static fin_status refuse_primal(const fin_cross_settings *s, int64_t dk, fin_error *err)
{
    double D = fini_monomials_count(s, dk);
    if (!(D > 0))
        return fini_fail(err, FIN_ERR_UNSUPPORTED,
                         "the primal method is for kernels with finitely many features, linear and "
                         "polynomial; take method dual, or nystrom for very many tokens");
    return fini_fail(err, FIN_ERR_UNSUPPORTED,
                     "the polynomial kernel of degree %lld has %.3g features for %lld columns, "
                     "which needs %.3g bytes; at most %d features are allowed; take a lower degree "
                     "or method dual",
                     (long long)s->degree, D, (long long)dk, 16 * D * D, FINI_CROSS_FEATURES_MOST);
}

/* auto: features if they are fewer than the tokens and cost fewer operations. Never an approximation. */
static fin_status choose(const fin_cross_settings *s, int64_t dk, int64_t capacity,
                         const fini_cross_method **method, fin_error *err)
{
    double D = fini_monomials_count(s, dk), L = (double)capacity;
    *method = &fini_cross_form;
    if (s->form != FIN_CROSS_CME)
        return FIN_OK;
    bool possible = D > 0 && D <= FINI_CROSS_FEATURES_MOST;
    bool primal =
        s->method == FIN_CROSS_PRIMAL || (s->method == FIN_CROSS_AUTO && fini_cross_cheaper(D, L));
    if (s->method == FIN_CROSS_NYSTROM)
        *method = &fini_cross_nystrom;
    else
        *method = primal ? &fini_cross_primal : &fini_cross_dual;
    if (primal && !possible)
        return refuse_primal(s, dk, err);
    if (*method == &fini_cross_dual && capacity > FIN_CROSS_DUAL_MOST)
        return refuse_dual(s, dk, capacity, err);
    return FIN_OK;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void layout_features(fini_arena *a, fin_cross *o)
{
    if (o->method == &fini_cross_primal)
        fini_monomials_take(a, &o->basis, &o->settings, o->dk);
    if (o->method == &fini_cross_nystrom) {
        o->landmarks = fini_take(a, o->D, (size_t)o->dk * sizeof(double));
        o->Cm = fini_take(a, o->D, (size_t)o->D * sizeof(double));
        o->half = fini_take(a, o->D, (size_t)o->dv * sizeof(double));
    }
    o->S = fini_take(a, o->D, (size_t)o->D * sizeof(double));
    o->M = fini_take(a, o->D, (size_t)o->D * sizeof(double));
    o->T = fini_take(a, o->D, (size_t)o->dv * sizeof(double));
    o->u = fini_take(a, o->D, (size_t)o->dv * sizeof(double));
    o->B = fini_take(a, o->D, (size_t)o->dv * sizeof(double));
    o->F = fini_take(a, o->D, FINI_CROSS_BLOCK * sizeof(double));
    o->x = fini_take(a, o->D, sizeof(double));
    o->peak = fini_take(a, o->D, sizeof(double));
}

static void layout(fini_arena *a, fin_cross *o)
{
    o->divisor = fini_take(a, o->dk, sizeof(double));
    o->keys = fini_take(a, o->room, (size_t)o->dk * sizeof(double));
    o->values = fini_take(a, o->room, (size_t)o->dv * sizeof(double));
    if (o->method == &fini_cross_dual) {
        o->diagonal = fini_take(a, o->capacity, sizeof(double));
        o->row = fini_take(a, o->capacity + 1, sizeof(double));
        o->w = fini_take(a, o->capacity, (size_t)o->dv * sizeof(double));
        o->alpha = fini_take(a, o->capacity, (size_t)o->dv * sizeof(double));
    }
    if (o->D)
        layout_features(a, o);
}

fin_status fini_cross_check_settings(const fin_cross_settings *s, fin_error *err)
{
    FINI_TRY(fin_settings_validate(&fin_cross_table, s, err));
    if (s->form == FIN_CROSS_NW &&
        (s->kernel == FIN_KERNEL_LINEAR || s->kernel == FIN_KERNEL_POLYNOMIAL))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "form nw divides by the sum of the kernel, and the %s kernel can be zero "
                         "or negative; take exponential, rbf, matern32 or matern52, or form cme",
                         s->kernel == FIN_KERNEL_LINEAR ? "linear" : "polynomial");
    return FIN_OK;
}

static fin_status check(const fin_cross_settings *s, int64_t dk, int64_t dv, int64_t capacity,
                        fin_error *err)
{
    const int64_t most = INT32_MAX;
    FINI_TRY(fini_cross_check_settings(s, err));
    if (dk < 1 || dk > most || dv < 1 || dv > most || capacity < 1 || capacity > most)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "a context of %lld tokens with %lld numbers in a key and %lld in a value: "
                         "each must be from 1 to 2^31 - 1",
                         (long long)capacity, (long long)dk, (long long)dv);
    return FIN_OK;
}

/* Everything but memory, and how much of that. */
static fin_status plan(fin_cross *o, const fin_cross_settings *s, int64_t dk, int64_t dv,
                       int64_t capacity, fin_error *err)
{
    s = fini_or_defaults(&fin_cross_table, s, &(fin_cross_settings){0});
    memset(o, 0, sizeof *o);
    FINI_TRY(check(s, dk, dv, capacity, err));
    FINI_TRY(choose(s, dk, capacity, &o->method, err));
    o->settings = *s;
    o->kernel = (fin_covariance){s->kernel, 1, s->degree, s->offset};
    if (s->form == FIN_CROSS_SOFTMAX)
        o->kernel.kernel = FIN_KERNEL_EXPONENTIAL;
    o->dk = dk;
    o->dv = dv;
    o->capacity = capacity;
    /* Slack, so that a sliding window moves its tokens once in capacity / 4 drops. */
    o->room = capacity + capacity / 4 + 16;
    if (o->method == &fini_cross_primal)
        o->D = (int64_t)fini_monomials_count(s, dk);
    if (o->method == &fini_cross_nystrom)
        o->D = s->landmarks < capacity ? s->landmarks : capacity;
    layout(&o->arena, o);
    o->bytes = (double)sizeof *o + (double)o->arena.used;
    if (o->method == &fini_cross_dual)
        o->bytes += 8 * (double)capacity * (double)capacity;
    if (o->arena.overflow)
        return fini_fail(err, FIN_ERR_MEMORY,
                         "out of memory: a context of %lld tokens, %lld and %lld numbers each, "
                         "with %lld features is larger than this machine can address",
                         (long long)capacity, (long long)dk, (long long)dv, (long long)o->D);
    return FIN_OK;
}

static fin_status set_divisor(fin_cross *o, const double *scales, fin_error *err)
{
    bool softmax = o->settings.form == FIN_CROSS_SOFTMAX;
    double all = softmax ? sqrt(o->settings.temperature) : o->settings.scale;
    for (int64_t c = 0; c < o->dk; c++) {
        double own = scales ? scales[c] : 1;
        o->divisor[c] = all * own;
        if (!(own > 0) || !(o->divisor[c] >= 1e-200 && o->divisor[c] <= 1e200))
            return fini_fail(
                err, FIN_ERR_ARGUMENT,
                "the scale %g of column %lld (times %g) must be a positive number from "
                "1e-200 to 1e200; the column's standard deviation usually works",
                own, (long long)c, all);
    }
    return FIN_OK;
}

fin_status fin_cross_create(fin_cross **cross, const fin_cross_settings *settings,
                            const double *scales, int64_t dk, int64_t dv, int64_t capacity,
                            fin_error *err)
{
    FINI_NEED(err, cross);
    *cross = NULL;
    fin_cross plain;
    FINI_TRY(plan(&plain, settings, dk, dv, capacity, err));
    FINI_MAKE(err, "a context", fin_cross, o);
    *o = plain;
    fin_status status = fini_blas_ready(err);
    if (!status)
        status = fini_arena_open(&o->arena, "a context", err);
    if (!status) {
        layout(&o->arena, o);
        if (o->method == &fini_cross_primal)
            fini_monomials_fill(&o->basis, &o->settings, dk);
        status = set_divisor(o, scales, err);
    }
    if (!status && o->method == &fini_cross_dual) {
        o->C = fini_alloc_array(capacity * capacity, sizeof(double));
        if (!o->C)
            status = fini_fail_memory(err, (size_t)(capacity * capacity) * sizeof(double),
                                      "the matrix of a context; method nystrom needs less");
    }
    if (!status)
        status = o->method->load(o, NULL, err);
    FINI_HAND_OVER(cross, o, status, fin_cross_destroy);
}

void fin_cross_destroy(fin_cross *o)
{
    if (!o)
        return;
    fini_free(o->C);
    fini_arena_close(&o->arena);
    fini_free(o);
}

fin_status fin_cross_bytes(const fin_cross_settings *settings, int64_t dk, int64_t dv,
                           int64_t capacity, double *bytes, fin_error *err)
{
    FINI_NEED(err, bytes);
    fin_cross plain;
    fin_status status = plan(&plain, settings, dk, dv, capacity, err);
    *bytes = status ? NAN : plain.bytes;
    return status;
}

void fin_cross_get_info(const fin_cross *o, fin_cross_info *info)
{
    if (!o || !info)
        return;
    *info = (fin_cross_info){.method = o->method->name,
                             .tokens = o->tokens,
                             .features = o->features,
                             .jitter = o->jitter,
                             .residual = o->residual,
                             .moved = o->moved,
                             .bytes = o->bytes};
}
