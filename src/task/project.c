/* Draws what a predictor sees of the tokens, never the tokens: X.k, X.v, X.k*, X.v* and |X|^2.
 *
 * In an orthonormal frame e1 = k*, e2 = v*, e3, e4 that contains k and v a token has four normal
 * coordinates, and the rest of it matters only through its squared length, a chi-square. */
#include "task/task.h"

#include <math.h>

#define FIN_TABLE_STRUCT fin_overlaps
FIN_TABLE(, fin_overlaps_table, "overlaps", FIN_OVERLAP_FIELDS);

static const double slack = 1e-9;  /* overlaps measured on unit vectors carry rounding */
static const double drift = 1e-12; /* and those at the end of a long descent a little more */

fin_status fini_basis_of(const fin_overlaps *o, int64_t d, fini_basis *frame, fin_error *err)
{
    FINI_TRY(fin_settings_validate(&fin_overlaps_table, o, err));
    /* |k|^2 = 1 = kappa^2 + eta^2 + a3^2;  k.v = rho = kappa theta + eta nu + a3 b3. */
    double a33 = 1 - o->kappa * o->kappa - o->eta * o->eta;
    double rest = o->rho - o->kappa * o->theta - o->eta * o->nu;
    double room = 1 - o->theta * o->theta - o->nu * o->nu; /* b3^2 + b4^2 */
    frame->a3 = sqrt(a33 > 0 ? a33 : 0);
    frame->b3 = a33 > slack ? rest / frame->a3 : 0;
    double most = sqrt(room > 0 ? room : 0), b44 = room - frame->b3 * frame->b3;
    /* b3^2 = rest^2 / a33 has the rounding of both differences, enlarged when k is near the plane.
     */
    double tolerance = slack + (a33 > slack ? drift / a33 : 0);
    if (a33 < -slack || room < -slack || b44 < -tolerance ||
        (a33 <= slack && rest * rest > (fmax(a33, 0) + drift) * (fmax(room, 0) + slack)))
        return fini_fail(
            err, FIN_ERR_ARGUMENT,
            "no unit vectors k, v have the overlaps kappa = %.6g, nu = %.6g, theta = %.6g, "
            "eta = %.6g, rho = %.6g: their Gram matrix is not positive",
            o->kappa, o->nu, o->theta, o->eta, o->rho);
    frame->b3 = frame->b3 > most ? most : frame->b3 < -most ? -most : frame->b3;
    frame->b4 = sqrt(b44 > 0 ? b44 : 0);
    if (a33 <= slack) { /* k lies in the plane: e3 is what v needs, so that d = 3 is room enough */
        frame->a3 = 0;
        frame->b3 = frame->b4;
        frame->b4 = 0;
    }
    int64_t needed = 2 + (frame->a3 > 0) + (b44 > tolerance);
    if (needed > d)
        return fini_fail(err, FIN_ERR_ARGUMENT, "these overlaps need %lld dimensions, but d = %lld",
                         (long long)needed, (long long)d);
    if (d < 4) /* what rounding left beyond d dimensions */
        frame->b4 = 0;
    if (d < 3)
        frame->b3 = 0;
    return FIN_OK;
}

fin_status fini_overlaps_realisable(const fin_overlaps *overlaps, int64_t d, fin_error *err)
{
    FINI_NEED(err, overlaps);
    fini_basis frame;
    return fini_basis_of(overlaps, d, &frame, err);
}

/* Tokens at a time. Normals come in groups of 64 for 16 tokens: coordinate j of token t is number
 * 64 (t / 16) + 16 j + t % 16, so that short sequences draw little more than they need. */
enum { BLOCK = 64, GROUP = 16 };

typedef struct projection {
    const fin_task *task;
    const fin_overlaps *o;
    fini_basis frame;
    const fin_projections *out;
} projection;

static void put(double *array, int64_t at, double value)
{
    if (array)
        array[at] = value;
}

static double project_sample(const void *context, uint64_t sample, int64_t start, int64_t L,
                             fini_selector *selector)
{
    const projection *p = context;
    const fin_task *task = p->task;
    const fin_task_settings *s = &task->settings;
    const fin_overlaps *o = p->o;
    const fin_projections *out = p->out;
    fin_random norms;
    if (out->norm2)
        fin_random_open(&norms, task->seed, FINI_STREAM_NORMS, sample);
    fini_selector_begin(selector, task, task->seed, FINI_STREAM_LATENT, sample, L);
    int64_t next = 0; /* of the relevant places, which are ascending */
    for (int64_t from = 0; from < L; from += BLOCK) {
        double g[4 * BLOCK];
        int64_t tokens = L - from < BLOCK ? L - from : BLOCK;
        fin_random_normals_f64(task->seed, FINI_STREAM_PROJECT, sample, 4 * from,
                               (tokens + GROUP - 1) / GROUP * 4 * GROUP, g);
        for (int64_t t = 0; t < tokens; t++) {
            const double *c = g + t / GROUP * 4 * GROUP + t % GROUP;
            double e[4] = {c[0], c[GROUP], c[2 * GROUP], c[3 * GROUP]}, scale = 1;
            if (!task->kind->odds && next < selector->count &&
                selector->kept[next].location == from + t) {
                scale = s->gamma;
                for (int j = 0; j < 4; j++)
                    e[j] *= scale;
                e[0] += s->mu;
                selector->kept[next++].z = e[1];
            }
            if (task->kind->odds)
                fini_selector_offer(selector, from + t, e[0], e[1]);
            int64_t at = start + from + t;
            put(out->chi, at, o->kappa * e[0] + o->eta * e[1] + p->frame.a3 * e[2]);
            put(out->z, at,
                o->theta * e[0] + o->nu * e[1] + p->frame.b3 * e[2] + p->frame.b4 * e[3]);
            put(out->chi_star, at, e[0]);
            put(out->z_star, at, e[1]);
            if (out->norm2)
                out->norm2[at] = fini_norm2(s->d, e, scale, &norms);
        }
    }
    return fini_selector_end(selector);
}

/* Coordinates beyond d are not part of the token; what is beyond the four is a chi-square. */
double fini_norm2(int64_t d, const double e[4], double scale, fin_random *norms)
{
    double norm2 = e[0] * e[0] + e[1] * e[1];
    norm2 += d > 2 ? e[2] * e[2] : 0;
    norm2 += d > 3 ? e[3] * e[3] : 0;
    return d > 4 ? norm2 + scale * scale * fin_random_chi_square(norms, (double)(d - 4)) : norm2;
}

fin_status fin_task_project(const fin_task *task, const fin_overlaps *overlaps, uint64_t first,
                            int64_t n, const int64_t *offsets, const fin_projections *out,
                            double *y, int64_t *location, fin_error *err)
{
    FINI_NEED(err, task, overlaps, offsets, out);
    projection p = {.task = task, .o = overlaps, .out = out};
    FINI_TRY(fini_basis_of(overlaps, task->settings.d, &p.frame, err));
    return fini_each_sample(task, &(fini_samples){first, n, offsets, y, location}, 4,
                            project_sample, &p, err);
}
