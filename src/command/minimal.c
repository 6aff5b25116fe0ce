/* minimal: what a statistic loses that separates less than the posterior.
 *
 * The latent z is estimated, with squared error, from the posterior of L tokens, and from a coarser
 * statistic C, a function of it. The best estimate from C is E[m | C], m the posterior mean, so that
 *
 *     loss = E |z - E[m | C]|^2 - E |z - m|^2 = E |m - E[m | C]|^2,
 *
 * which is 0 only if m is a function of C. Here C is
 *
 *     mean     the cell of m in a grid of the given width (in standard deviations of m, from 0 on):
 *              dv (V - sum over cells p E[m | cell]^2), V = prior - s^2 prior / (s^2 + L prior)
 *     counts   counts with all outcomes but the first `keep` taken together, of parameter b:
 *              sum over those a_j (1 - a_j / b) * L / (a0 (a0 + 1) (a0 + L))
 *     concept  S = Phi'Phi and the first `keep` columns of T = V'Phi: given the keys
 *              dv (tr (prior - prior^2 U (prior U'U + s^2 S_kk)^-1 U') - s^2 tr (S + lam)^-1),
 *              U the first columns of S; averaged over drawn keys
 *
 * (docs/exchangeability.md derives them), and beside it the same is measured: tokens and z are drawn, both
 * estimates made, the difference of their squared errors averaged. */
#include "command/command.h"

#include "finetti/family.h"
#include "math/spd.h"

#include <math.h>
#include <string.h>

#define MINIMAL_FIELDS(F, C)                                                                       \
    F(int64_t, L, 20, 1, 10000, "tokens in a context")                                             \
    F(int64_t, keep, 2, 0, 64,                                                                     \
      "outcomes that stay apart (counts), columns of V'Phi that are known (concept)")              \
    F(double, width, 1, 1e-3, 100,                                                                 \
      "of the cells of the posterior mean, in its standard deviations (mean)")                     \
    F(int64_t, samples, 20000, 2, 10000000, "sequences drawn")                                     \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of everything drawn")

#define FIN_TABLE_STRUCT minimal_own
FIN_TABLE_OF_ITS_OWN(minimal_table, "minimal", MINIMAL_FIELDS);

typedef struct minimal_values {
    char family[32];
    minimal_own own;
    fin_latent_settings latent;
} minimal_values;

static const char *const families[] = {"concept", "mean", "counts", NULL};
static const fin_word words[] = {
    FINI_ONE_OF("family", minimal_values, family, "concept", "family of exchangeable tokens",
                families),
    FIN_WORDS_END,
};

static const fin_output outputs[] = {
    {"bayes", "E |z - posterior mean|^2", NULL},
    {"coarse", "E |z - best estimate from the coarser statistic|^2", NULL},
    {"loss", "coarse - bayes, by theory (concept: averaged over drawn keys)", NULL},
    {"share", "loss / (what the tokens tell: E |posterior mean|^2 about its mean)", NULL},
    {"measured", "that loss, from drawn tokens instead of theory", NULL},
    {"ratio", "measured / loss", NULL},
    {NULL, NULL, NULL},
};

#define ROOT_HALF 0.70710678118654752
enum { MOST = 64, BLOCK = 128 };

static fin_status groups(void *values, fin_group list[FIN_GROUPS], int *count, fin_error *err)
{
    minimal_values *v = values;
    list[(*count)++] = (fin_group){&minimal_table, &v->own};
    return fin_word_group("family", v->family, &v->latent, list, count, err);
}

typedef struct running {
    int64_t count;
    double mean, squares;
} running;

static void add(running *o, double x)
{
    double off = x - o->mean;
    o->mean += off / (double)++o->count;
    o->squares += off * (x - o->mean);
}

static double error_of(const running *o)
{
    return sqrt(o->squares / ((double)o->count * (double)(o->count - 1)));
}

typedef struct work {
    const minimal_values *v;
    fin_latent_shape shape;
    int64_t L, D, dv, keep;
    double a[MOST], a0, together; /* counts: parameters, their sum, of those taken together */
    double deviation;             /* mean: of the posterior mean */
    const double *values, *phi, *z;
    running bayes, coarse, loss, measured, known; /* known: what the tokens tell */
} work;

/* ---- one sequence of each family: |z - best from coarse|^2 - |z - posterior mean|^2 ----------- */

static double phi(double x)
{
    return exp(-x * x / 2) / 2.5066282746310002; /* sqrt(2 pi) */
}

static double below(double x)
{
    return erfc(-x * ROOT_HALF) / 2;
}

/* E[m | its cell], m standard normal: (phi(a) - phi(b)) / P(a < m < b). Far out both are differences
 * of tails that the same side has. */
static double cell_mean(double m, double width)
{
    double a = floor(fabs(m) / width) * width, b = a + width;
    double p = (erfc(a * ROOT_HALF) - erfc(b * ROOT_HALF)) / 2;
    return p > 0 ? copysign((phi(a) - phi(b)) / p, m) : m;
}

static void mean_once(work *w)
{
    const fin_latent_settings *s = &w->v->latent;
    double measured = 0;
    for (int64_t c = 0; c < w->dv; c++) {
        double sum = 0;
        for (int64_t l = 0; l < w->L; l++)
            sum += w->values[l * w->dv + c];
        double m = sum * s->prior / ((double)w->L * s->prior + s->noise), z = w->z[c];
        double rough = w->deviation * cell_mean(m / w->deviation, w->v->own.width);
        measured += (z - rough) * (z - rough) - (z - m) * (z - m);
    }
    add(&w->measured, measured);
}

static void counts_once(work *w)
{
    double c[MOST] = {0}, rest = 0, measured = 0, L = (double)w->L;
    for (int64_t l = 0; l < w->L; l++) {
        int64_t j = (int64_t)w->values[l];
        c[j]++;
        rest += j >= w->keep;
    }
    for (int64_t j = w->keep; j < w->shape.outcomes; j++) {
        double m = (c[j] + w->a[j]) / (L + w->a0), z = w->z[j];
        double rough = w->a[j] / w->together * (rest + w->together) / (L + w->a0);
        measured += (z - rough) * (z - rough) - (z - m) * (z - m);
    }
    add(&w->measured, measured);
}

/* A (n, n), lower triangle, becomes its factor. */
static bool factor(int64_t n, double *A, fini_spd *o)
{
    *o = fini_spd_of(n, A, n);
    return !fini_spd_factor(o, NULL, NULL) && o->pivot < 0;
}

/* x_i <- row i of T times A^-1 B', the answer (D) for one row of Z; trace of B A^-1 B'. */
static double regress(int64_t n, int64_t D, fini_spd A, const double *B, const double *t, double *x)
{
    double u[MOST], trace = 0;
    memcpy(u, t, (size_t)n * sizeof *u);
    fini_spd_solve(A, 1, u, 1);
    for (int64_t i = 0; i < D; i++) {
        double row[MOST];
        x[i] = 0;
        for (int64_t k = 0; k < n; k++)
            x[i] += B[i * n + k] * u[k];
        memcpy(row, B + i * n, (size_t)n * sizeof *row);
        fini_spd_solve(A, 1, row, 1);
        for (int64_t k = 0; k < n; k++)
            trace += row[k] * B[i * n + k];
    }
    return trace;
}

/* From T (dv, D) and S (D, D): the best estimate of Z from the first n columns of T, all for n = D
 * by (S + lam)^-1 and not by the formula of the rest. */
static bool concept_once(work *w)
{
    double S[MOST * MOST] = {0}, A[MOST * MOST], F[MOST * MOST], B[MOST * MOST], U[MOST * MOST];
    double t[MOST], one[MOST], all[MOST], measured = 0, left[2] = {0};
    double prior = w->v->latent.prior, noise = w->v->latent.noise;
    int64_t D = w->D, n = w->keep, dv = w->dv;
    fini_spd few = {0}, full;
    for (int64_t l = 0; l < w->L; l++)
        for (int64_t i = 0; i < D; i++)
            for (int64_t j = 0; j < D; j++)
                S[i * D + j] += w->phi[l * D + i] * w->phi[l * D + j];
    for (int64_t i = 0; i < D; i++)
        for (int64_t j = 0; j < D; j++) {
            F[i * D + j] = S[i * D + j] + (i == j ? noise / prior : 0);
            B[i * D + j] = i == j;
            if (j < n)
                U[i * n + j] = prior * S[i * D + j];
        }
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < n; j++) {
            A[i * n + j] = noise * S[i * D + j];
            for (int64_t k = 0; k < D; k++)
                A[i * n + j] += prior * S[i * D + k] * S[k * D + j];
        }
    if (!factor(D, F, &full) || (n > 0 && !factor(n, A, &few)))
        return false;
    for (int64_t c = 0; c < dv; c++) {
        memset(t, 0, sizeof t);
        memset(one, 0, sizeof one);
        for (int64_t l = 0; l < w->L; l++)
            for (int64_t i = 0; i < D; i++)
                t[i] += w->values[l * dv + c] * w->phi[l * D + i];
        left[0] = noise * regress(D, D, full, B, t, all);
        left[1] = prior * (double)D - (n > 0 ? regress(n, D, few, U, t, one) : 0);
        for (int64_t i = 0; i < D; i++) {
            double z = w->z[c * D + i];
            measured += (z - one[i]) * (z - one[i]) - (z - all[i]) * (z - all[i]);
        }
    }
    add(&w->measured, measured);
    add(&w->bayes, (double)dv * left[0]);
    add(&w->coarse, (double)dv * left[1]);
    add(&w->loss, (double)dv * (left[1] - left[0]));
    add(&w->known, (double)dv * (prior * (double)D - left[0]));
    return true;
}

/* ---- what theory says, where keys play no part ------------------------------------------------ */

static void exactly(running *o, double x)
{
    *o = (running){.mean = x};
}

static void mean_theory(work *w)
{
    const fin_latent_settings *s = &w->v->latent;
    double dv = (double)w->dv, width = w->v->own.width, kept = 0;
    double bayes = s->noise * s->prior / (s->noise + (double)w->L * s->prior);
    w->deviation = sqrt(s->prior - bayes);
    for (double a = 0; a < 40; a += width) { /* both sides */
        double p = below(-a) - below(-a - width), m = cell_mean(a + width / 2, width);
        kept += 2 * p * m * m;
    }
    exactly(&w->bayes, dv * bayes);
    exactly(&w->known, dv * (s->prior - bayes));
    exactly(&w->loss, dv * (s->prior - bayes) * (1 - kept));
    exactly(&w->coarse, w->bayes.mean + w->loss.mean);
}

static void counts_theory(work *w)
{
    const fin_latent_settings *s = &w->v->latent;
    double a0 = 0, bayes = 0, loss = 0, L = (double)w->L;
    for (int64_t j = 0; j < w->shape.outcomes; j++) {
        w->a[j] = s->alpha * pow((double)(1 + j), s->skew);
        a0 += w->a[j];
        w->together += j >= w->keep ? w->a[j] : 0;
    }
    for (int64_t j = 0; j < w->shape.outcomes; j++) {
        bayes += w->a[j] * (a0 - w->a[j]) / (a0 * (a0 + 1) * (a0 + L));
        if (j >= w->keep)
            loss += w->a[j] * (1 - w->a[j] / w->together) * L / (a0 * (a0 + 1) * (a0 + L));
    }
    w->a0 = a0;
    exactly(&w->bayes, bayes);
    exactly(&w->known, bayes * L / a0);
    exactly(&w->loss, loss);
    exactly(&w->coarse, bayes + loss);
}

/* ---- drawing ---------------------------------------------------------------------------------- */

static fin_status check(const void *values, fin_error *err)
{
    const minimal_values *v = values;
    fin_latent *latent = NULL;
    fin_latent_shape shape;
    FINI_TRY(fin_latent_create(&latent, fin_family_find(v->family), &v->latent, 1, err));
    fin_latent_get_shape(latent, &shape);
    fin_latent_destroy(latent);
    bool concept = shape.dk > 0;
    int64_t most = shape.outcomes > 0 ? shape.outcomes : concept ? shape.features : MOST;
    if (most > MOST || shape.dv > MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld features or outcomes and dv = %lld are more than %d; 5 are usual",
                         (long long)most, (long long)shape.dv, MOST);
    if ((shape.outcomes > 0 || concept) && v->own.keep >= most)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "keep = %lld of %lld is everything, and nothing is lost; keep fewer",
                         (long long)v->own.keep, (long long)most);
    if (concept && v->own.L <= most)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "L = %lld tokens for %lld features leave S singular; L above %lld does",
                         (long long)v->own.L, (long long)most, (long long)most);
    return FIN_OK;
}

static fin_status one_block(work *w, const fin_latent *latent, const fin_latent_sample *s,
                            int64_t first, int64_t count, double *features, fin_error *err)
{
    fin_latent_sample now = *s;
    now.n = count;
    FINI_TRY(fin_latent_draw(latent, (uint64_t)first, &now, err));
    if (features)
        FINI_TRY(fin_latent_features(latent, count * w->L, s->keys, features, err));
    for (int64_t i = 0; i < count; i++) {
        w->values = s->values + i * w->L * w->shape.dv;
        w->z = s->z + i * w->shape.latent;
        w->phi = features ? features + i * w->L * w->D : NULL;
        if (!features)
            (w->shape.outcomes > 0 ? counts_once : mean_once)(w);
        else if (!concept_once(w))
            return fini_fail(err, FIN_ERR_NUMERIC,
                             "S has no factor in sequence %lld; more tokens or noise help",
                             (long long)(first + i));
    }
    return FIN_OK;
}

static fin_status draw_all(work *w, const fin_latent *latent, const fin_progress *progress,
                           fin_error *err)
{
    bool keys = w->shape.dk > 0;
    int64_t n = BLOCK, L = w->L, total = w->v->own.samples;
    int64_t sizes[] = {keys ? n * L * w->shape.dk : 0, n * L * w->shape.dv, n * w->shape.latent,
                       keys ? n * L * w->D : 0};
    int64_t all = sizes[0] + sizes[1] + sizes[2] + sizes[3];
    FINI_OWN(err, "sequences", double, room, all, 1);
    fin_latent_sample s = {.L = L, .keys = keys ? room : NULL};
    s.values = room + sizes[0];
    s.z = s.values + sizes[1];
    double *features = keys ? s.z + sizes[2] : NULL;
    for (int64_t first = 0; first < total; first += n) {
        FINI_TRY(fini_go_on(progress, "sequences", (double)first, (double)total, err));
        FINI_TRY(
            one_block(w, latent, &s, first, total - first < n ? total - first : n, features, err));
    }
    return FIN_OK;
}

static void show(const work *w, fin_result *result)
{
    static const char *const names[] = {"bayes", "coarse", "loss"};
    const running *const of[] = {&w->bayes, &w->coarse, &w->loss};
    int64_t n = w->measured.count;
    double loss = w->loss.mean, off = w->loss.count ? error_of(&w->loss) : 0;
    int how = w->loss.count ? FIN_HOW_SIMULATION : FIN_HOW_CLOSED;
    for (int i = 0; i < 3; i++)
        fini_result_scalar(result, names[i], of[i]->mean, of[i]->count ? error_of(of[i]) : 0, how,
                           of[i]->count);
    fini_result_scalar(result, "share", loss / w->known.mean, off / w->known.mean, how,
                       w->loss.count);
    fini_result_scalar(result, "measured", w->measured.mean, error_of(&w->measured),
                       FIN_HOW_SIMULATION, n);
    fini_result_scalar(result, "ratio", w->measured.mean / loss,
                       hypot(error_of(&w->measured), off * w->measured.mean / loss) / loss,
                       FIN_HOW_SIMULATION, n);
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const minimal_values *v = values;
    work w = {.v = v, .L = v->own.L, .keep = v->own.keep};
    fin_latent *latent = NULL;
    FINI_TRY(fin_latent_create(&latent, fin_family_find(v->family), &v->latent,
                               (uint64_t)v->own.seed, err));
    fin_latent_get_shape(latent, &w.shape);
    w.D = w.shape.features;
    w.dv = w.shape.dv;
    if (w.shape.outcomes > 0)
        counts_theory(&w);
    else if (w.shape.dk == 0)
        mean_theory(&w);
    fin_status status = draw_all(&w, latent, progress, err);
    fin_latent_destroy(latent);
    if (!status)
        show(&w, result);
    return status;
}

const fin_command fini_command_minimal = {
    .name = "minimal",
    .summary = "what a statistic that separates less than the posterior loses, by theory and drawn",
    .revision = 1,
    .size = sizeof(minimal_values),
    .words = words,
    .outputs = outputs,
    .groups = groups,
    .check = check,
    .run = run,
};
