/* cme attention, primal: with features f(x), f(a).f(b) = prior k(a, b) + level, columns of F,
 *
 *     S = F F', T = F V (sums over the tokens), M M' = S + noise I, B = (S + noise I)^-1 T,
 *     mean(q) = f(q).B,  variance(q) = noise |M^-1 f(q)|^2 + what the features do not see
 *
 * (the sufficient statistic of a linear concept). Explicit features see everything; those of
 * landmarks (cross_nystrom.c) leave a rest, and everything else here is the same for them.
 *
 * A token more is a rank-one update of S, T and M, a token less a downdate. Where that would lose
 * digits, and once all tokens have changed, S is summed anew from the tokens, which are kept. */
#include "context/cross.h"
#include "context/cross_primal.h"

#include <cblas.h>
#include <math.h>
#include <string.h>

enum { BLOCK = FINI_CROSS_BLOCK };

/* Without noise a feature counts as fixed by the tokens if they leave this share of its square. */
#define CLEAR 1e-10

void fini_cross_features(const fin_cross *o, int64_t b, const double *keys, double *F, int64_t ld)
{
    if (o->method == &fini_cross_primal) {
        fini_monomials_features(o, b, keys, F, ld);
        return;
    }
    fini_cross_covariances(o, o->features, o->landmarks, b, keys, F, ld);
    fini_spd_lower(fini_spd_of(o->features, o->Cm, o->D), b, F, ld);
}

void fini_cross_unseen(const fin_cross *o, int64_t b, const double *keys, const double *F,
                       int64_t ld, double *unseen)
{
    memset(unseen, 0, (size_t)b * sizeof *unseen);
    if (o->method == &fini_cross_primal)
        return;
    fini_cross_prior(o, b, keys, unseen);
    for (int64_t j = 0; j < o->features; j++)
        for (int64_t i = 0; i < b; i++)
            unseen[i] -= F[j * ld + i] * F[j * ld + i];
    for (int64_t i = 0; i < b; i++)
        unseen[i] = fmax(unseen[i], 0);
}

/* ---- sums and factor ------------------------------------------------------------------------- */

/* S += F F' (lower triangle), T += F V for b tokens; threads share strips of S. */
void fini_primal_add(const fin_cross *o, int64_t b, const double *F, int64_t ld, const double *V,
                     double *S, double *T)
{
    int64_t D = o->features, dv = o->dv;
    int threads = D * D * b < FINI_CROSS_FEW * 16 ? 1 : fin_threads_get();
    if (D == 0 || b == 0)
        return;
    fini_blas_enter();
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t k = (D - 1) / FINI_CROSS_TILE; k >= 0; k--) {
        int64_t i = k * FINI_CROSS_TILE, rows = D - i < FINI_CROSS_TILE ? D - i : FINI_CROSS_TILE;
        cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)rows, (int)(i + rows), (int)b, 1,
                    F + i * ld, (int)ld, F, (int)ld, 1, S + i * o->D, (int)o->D);
    }
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)D, (int)dv, (int)b, 1, F, (int)ld,
                V, (int)dv, 1, T, (int)dv);
    fini_blas_leave();
}

static int64_t lane_size(const fin_cross *o)
{
    return o->D * (o->D + o->dv + BLOCK);
}

/* Few features: every lane sums its own share of the tokens, and the lanes are added in order.
 * Their number does not depend on that of the threads. */
static void gather_lanes(fin_cross *o, int64_t from, int64_t n, double *lanes)
{
    int64_t own = lane_size(o), D = o->features;
    memset(lanes, 0, (size_t)(FINI_CROSS_LANES * own) * sizeof *lanes);
    int threads = fin_threads_get();
#pragma omp parallel for schedule(dynamic) num_threads(threads)
    for (int64_t lane = 0; lane < FINI_CROSS_LANES; lane++) {
        double *S = lanes + lane * own, *T = S + o->D * o->D, *F = T + o->D * o->dv;
        int64_t end = from + n * (lane + 1) / FINI_CROSS_LANES;
        for (int64_t at = from + n * lane / FINI_CROSS_LANES, b; at < end; at += b) {
            b = end - at < BLOCK ? end - at : BLOCK;
            fini_cross_features(o, b, fini_cross_key(o, at), F, b);
            fini_primal_add(o, b, F, b, fini_cross_value(o, at), S, T);
        }
    }
    for (int64_t lane = 0; lane < FINI_CROSS_LANES; lane++) {
        const double *S = lanes + lane * own, *T = S + o->D * o->D;
        for (int64_t i = 0; i < D * o->D; i++)
            o->S[i] += S[i];
        for (int64_t i = 0; i < D * o->dv; i++)
            o->T[i] += T[i];
    }
}

/* Many features: block by block, and threads share the features. */
static void gather_block(fin_cross *o, int64_t at, int64_t b)
{
    fini_cross_features(o, b, fini_cross_key(o, at), o->F, b);
    fini_primal_add(o, b, o->F, b, fini_cross_value(o, at), o->S, o->T);
}

/* Tokens from .. from+n-1 into S and T. Out of memory changes nothing. */
static fin_status gather(fin_cross *o, int64_t from, int64_t n, const fin_progress *progress,
                         fin_error *err)
{
    bool shared = o->D <= FINI_CROSS_LANE_FEATURES && n > 2 * BLOCK;
    int64_t step = shared ? FINI_CROSS_LANES * 64 * BLOCK : BLOCK;
    int64_t numbers = FINI_CROSS_LANES * lane_size(o);
    double *lanes = shared ? fini_alloc_array(numbers, sizeof *lanes) : NULL;
    fin_status status = FIN_OK;
    if (shared && !lanes)
        return fini_fail_memory(err, (size_t)numbers * sizeof *lanes, "sums over the tokens");
    for (int64_t at = from; at < from + n && !status; at += step) {
        int64_t b = from + n - at < step ? from + n - at : step;
        if (fini_report(progress, "tokens", (double)(at - from), (double)n))
            status = fini_cross_cancelled(err);
        else if (shared)
            gather_lanes(o, at, b, lanes);
        else
            gather_block(o, at, b);
    }
    fini_free(lanes);
    for (int64_t j = 0; j < o->features; j++)
        o->peak[j] = fmax(o->peak[j], o->S[j * o->D + j]);
    return status;
}

fini_spd fini_primal_matrix(const fin_cross *o, double noise, const double *S, double *M)
{
    int64_t D = o->features, ld = o->D;
    for (int64_t i = 0; i < D; i++) {
        memcpy(M + i * ld, S + i * ld, (size_t)(i + 1) * sizeof *M);
        M[i * ld + i] += noise;
    }
    fini_spd A = fini_spd_of(D, M, ld);
    A.share = noise == 0 ? CLEAR : 0;
    return A;
}

static void solve(fin_cross *o)
{
    size_t bytes = (size_t)(o->features * o->dv) * sizeof(double);
    memcpy(o->u, o->T, bytes);
    fini_spd_lower(fini_primal_M(o), o->dv, o->u, o->dv);
    memcpy(o->B, o->u, bytes);
    fini_spd_upper(fini_primal_M(o), o->dv, o->B, o->dv);
}

static void fill(void *user, double jitter)
{
    const fin_cross *o = user;
    fini_primal_matrix(o, o->settings.noise + jitter, o->S, o->M);
}

/* Without noise there is no jitter either: more tokens may repair it, and what is missing is said when
 * something is asked. */
static fin_status factor(fin_cross *o, fin_error *err)
{
    bool noise = o->settings.noise > 0;
    fini_spd A = fini_primal_M(o);
    fini_spd_steps steps = {fill, o, .last = noise ? FINI_SPD_STEPS - 1 : 0};
    A.share = noise ? 0 : CLEAR;
    fin_status status = fini_spd_ladder(&A, &steps, NULL, err);
    o->jitter = A.jitter;
    o->solved = A.pivot < 0 || o->tokens == 0;
    if (!status && A.pivot < 0)
        solve(o);
    if (status || A.pivot < 0 || !noise)
        return status;
    return fini_fail(
        err, FIN_ERR_NUMERIC,
        "the matrix of %lld features has no inverse in floating point with noise = %g; "
        "give a larger noise, such as %.1g, or standardise the keys",
        (long long)o->features, o->settings.noise, 1e-6 * steps.mean);
}

static fin_status load(fin_cross *o, const fin_progress *progress, fin_error *err)
{
    fin_status status = FIN_OK;
    o->features = o->D;
    if (o->method == &fini_cross_nystrom)
        status = fini_nystrom_choose(o, progress, err);
    memset(o->S, 0, (size_t)(o->D * o->D) * sizeof *o->S);
    memset(o->T, 0, (size_t)(o->D * o->dv) * sizeof *o->T);
    memset(o->peak, 0, (size_t)o->D * sizeof *o->peak);
    o->dropped = 0;
    if (!status)
        status = gather(o, 0, o->tokens, progress, err);
    if (!status)
        status = factor(o, err);
    if (!status && o->method == &fini_cross_nystrom)
        status = fini_nystrom_judge(o, err);
    return status;
}

/* ---- one more, one less ---------------------------------------------------------------------- */

/* Features of one token into x, and S and T with or without it. */
static void count_token(fin_cross *o, int64_t token, int sign)
{
    int64_t D = o->features;
    fini_cross_features(o, 1, fini_cross_key(o, token), o->x, 1);
    for (int64_t i = 0; i < D; i++) {
        double f = sign * o->x[i];
        for (int64_t j = 0; j <= i; j++)
            o->S[i * o->D + j] += f * o->x[j];
        for (int64_t c = 0; c < o->dv; c++)
            o->T[i * o->dv + c] += f * fini_cross_value(o, token)[c];
        o->peak[i] = fmax(o->peak[i], o->S[i * o->D + i]);
    }
}

static fin_status append_anew(fin_cross *o, int64_t n, fin_error *err)
{
    int64_t held = o->tokens;
    o->tokens += n;
    fin_status status = load(o, NULL, err);
    o->tokens = held;
    if (status && load(o, NULL, NULL))
        fini_cross_clear(o, NULL);
    return status;
}

static fin_status take_in(fin_cross *o, int64_t n, fin_error *err)
{
    bool fresh = !o->solved || o->jitter > 0 || o->tokens == 0 || 6 * n > o->features;
    if (fresh && n >= BLOCK / 2) {
        FINI_TRY(gather(o, o->tokens, n, NULL, err));
    }
    for (int64_t i = o->tokens; i < o->tokens + n && !(fresh && n >= BLOCK / 2); i++) {
        count_token(o, i, 1);
        if (!fresh)
            fini_spd_rank_one(fini_primal_M(o), 1, o->x, o->F); /* F has more than two columns */
    }
    if (!fresh) {
        solve(o);
        return FIN_OK;
    }
    o->tokens += n;
    fin_status status = factor(o, err);
    o->tokens -= n;
    if (status && load(o, NULL, NULL))
        fini_cross_clear(o, NULL);
    return status;
}

/* Landmarks are chosen again when a quarter as many tokens have come as they were chosen from,
 * whether others have left or not: over a long stream that costs a few times what loading all of it
 * does, and in a window the landmarks do not fall behind. */
static fin_status append(fin_cross *o, int64_t n, fin_error *err)
{
    bool nystrom = o->method == &fini_cross_nystrom;
    if (nystrom && o->added + n > o->chosen_from / 4)
        return append_anew(o, n, err);
    FINI_TRY(take_in(o, n, err));
    if (nystrom)
        fini_nystrom_watch(o, n);
    return FIN_OK;
}

/* Has what is left become so small that what was taken out left its rounding errors? */
static bool worn(const fin_cross *o)
{
    bool is = o->dropped > o->tokens && o->dropped > 64;
    for (int64_t j = 0; j < o->features; j++)
        is = is || o->peak[j] > 1e4 * (o->S[j * o->D + j] + o->settings.noise);
    return is;
}

/* M without the token whose features are in x. False if it alone knew a direction: then what is left
 * of that direction in M, and in S, would be rounding errors of what it was. */
static bool take_out(fin_cross *o)
{
    double known = 0;
    memcpy(o->F, o->x, (size_t)o->features * sizeof(double));
    fini_spd_lower(fini_primal_M(o), 1, o->F, 1);
    for (int64_t j = 0; j < o->features; j++)
        known += o->F[j] * o->F[j];
    return known < 1 - 1e-4 && fini_spd_rank_one(fini_primal_M(o), -1, o->x, o->F);
}

static fin_status drop(fin_cross *o, int64_t n, fin_error *err)
{
    bool safe = true, few = o->solved && o->jitter == 0 && 6 * n <= o->features;
    for (int64_t i = 0; i < n && safe; i++) {
        count_token(o, i, -1);
        safe = !few || take_out(o);
    }
    o->first += n;
    o->tokens -= n;
    o->dropped += n;
    if (!safe || worn(o))
        return load(o, NULL, err);
    if (!few)
        return factor(o, err);
    solve(o);
    return FIN_OK;
}

#define METHOD(number)                                                                             \
    {                                                                                              \
        .name = number, .load = load, .append = append, .drop = drop,                              \
        .block = FINI_CROSS_LANES * BLOCK, .scratch = fini_primal_scratch,                         \
        .predict = fini_primal_predict, .loo = fini_primal_loo, .prefix = fini_primal_prefix,      \
        .evidence = fini_primal_evidence                                                           \
    }
const fini_cross_method fini_cross_primal = METHOD(FIN_CROSS_PRIMAL);
const fini_cross_method fini_cross_nystrom = METHOD(FIN_CROSS_NYSTROM);
