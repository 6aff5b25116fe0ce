/* Ridge-penalised attention fitted to n = alpha d bags of the task spiked, d large.
 *
 *     min over k, v of  sum_i (y_i - f(X_i k, X_i v))^2 / 2 + d/2 (r_k |k|^2 + r_v |v|^2)
 *
 * The minimum is described by M = (k.k*, v.v*), Q = (|k|^2, |v|^2) and its response V; by the symmetry v, v*, y -> -v, -v*, -y
 * all that mixes k and v is 0. With the fields that a bag's minimum sees if it is left out itself,
 *
 *     w_kl = sqrt(Q_k) g_l + 1[l = J] sqrt(snr) M_k,
 *     y = sqrt(1 + Delta) e,      w_vl = sqrt(Q_v) g'_l,      w_vJ = M_v y / (1 + Delta) + sqrt(Q_v - M_v^2 / (1 + Delta)) g'_J,
 *
 * h the minimum of its cost (cavity.c) and g_l = (h_l - w_l) / V, the fixed point is that of
 *
 *     V = 1 / (r - alpha E sum_l dg_l/dw_l),     M = alpha V (sqrt(snr) E[g_kJ], E[dg_vJ/dy]),     Q = M^2 + alpha V^2 E sum_l g_l^2.
 *
 * The means are over a fixed set of draws, so that they are functions of M, Q, V: iterated on few of them, then by Newton steps
 * with that map's derivative on all. The risk is a quadrature in M and Q. Its standard error is that of the means, through the
 * fixed point: dR = R' (1 - T')^-1 dT. The same row R' (1 - T')^-1 is what the best penalties are found with.
 *
 * Derivatives are those of the means, by Stein's lemma as regression on the normals drawn: where a bag's minimum jumps the
 * derivative of h misses the jump, and V, and with it k, come out too small.
 *
 * The fixed point holds where small differences between the fields of two runs die out. How their variances grow is measured
 * with differences of a tenth of a standard deviation: up to 0.82 theory and fits agree within 2 %, at 0.97 they are 5 % apart. */
#include "theory/learning.h"

#include "task/task.h"
#include "theory/cavity.h"
#include "theory/theory.h"

#include "random/streams.h"

#include <math.h>
#include <omp.h>
#include <string.h>

enum { K, V, PLACE = 6 };
/* Means over draws, of pairs (k, v) where two numbers are free: of g_J and of all other g. x: standard normals of the fields,
 * e: of y. */
enum { G_K, G_E, SQUARE, FIRST = SQUARE + 2, FIRST_X = FIRST + 2, OTHER = FIRST_X + 2 };
enum { OTHER_X = OTHER + 2, E_E = OTHER_X + 2, X_E, REST, MEANS, SUMS = MEANS + MEANS * MEANS };
enum { CHUNK = 128, FEW = 4096, ROUNDS = 400, FINAL = 60, NEWTON = 15, SEARCH = 2048 };
static const double about = 1e-4, near = 1e-2, still = 1e-5, moved = 2e-2, nudge = 0.1, calm = 0.85,
                    widest = 7; /* of log(penalty) */

/* M, Q and log V, k before v. */
typedef struct place {
    double x[PLACE];
} place;

typedef struct sums {
    double mean[MEANS], product[MEANS][MEANS];
} sums;

typedef struct fit {
    const fini_erm_task *task;
    const fin_progress *progress;
    fin_task *scores; /* softmax: whose weights are asked for */
    double noise, penalty[2];
    int threads;
    int64_t room, rounds;
    double *scratch, *parts; /* (threads, room), (chunks, SUMS) */
} fit;

/* ---- means over draws ------------------------------------------------------------------------------- */

static void fields(const fit *f, const place *at, uint64_t sample, double *g, fini_cavity *c)
{
    double N = 1 + f->noise, M = at->x[1], Q = at->x[3];
    fin_random_normals_f64((uint64_t)f->task->seed, FINI_STREAM_RIDGE, sample, 0, 2 * c->L + 1, g);
    c->y = sqrt(N) * g[2 * c->L];
    for (int64_t l = 0; l < c->L; l++) {
        c->w[K][l] = sqrt(at->x[2]) * g[2 * l];
        c->w[V][l] = sqrt(Q) * g[2 * l + 1];
    }
    c->w[K][0] += sqrt(f->task->bags.snr) * at->x[0];
    c->w[V][0] = M * c->y / N + sqrt(fmax(Q - M * M / N, 0)) * g[1];
}

typedef void measure(const fit *f, const place *at, uint64_t sample, fini_cavity *c, double *g,
                     double *part);

static void moments(const fit *f, const place *at, uint64_t sample, fini_cavity *c, double *g,
                    double *part)
{
    fields(f, at, sample, g, c);
    fini_cavity_minimise(c);
    const double e = g[2 * c->L];
    double value[MEANS] = {[E_E] = e * e, [REST] = c->rest * c->rest};
    for (int q = 0; q < 2; q++)
        for (int64_t l = 0; l < c->L; l++) {
            double G = (c->h[q][l] - c->w[q][l]) / c->V[q], x = g[2 * l + q];
            value[SQUARE + q] += G * G;
            value[(l ? OTHER : FIRST) + q] += G * x;
            value[(l ? OTHER_X : FIRST_X) + q] += x * x;
            if (l == 0) {
                value[q == K ? G_K : G_E] = q == K ? G : G * e;
                value[X_E] = x * e;
            }
        }
    for (int i = 0; i < MEANS; i++)
        part[i] += value[i];
    for (int i = 0; i < MEANS; i++)
        for (int j = 0; j < MEANS; j++)
            part[MEANS + i * MEANS + j] += value[i] * value[j];
}

/* part[2 a + b]: sum_l of squared changes of g_la where the fields b are moved at random. */
static void changes(const fit *f, const place *at, uint64_t sample, fini_cavity *c, double *g,
                    double *part)
{
    double *before = g + 2 * c->L + 1;
    fields(f, at, sample, g, c);
    fini_cavity_minimise(c);
    for (int a = 0; a < 2; a++)
        for (int64_t l = 0; l < c->L; l++)
            before[2 * l + a] = c->h[a][l] - c->w[a][l];
    for (int b = 0; b < 2; b++) {
        double size = nudge * sqrt(at->x[2 + b]);
        fields(f, at, sample, g, c);
        fin_random_normals_f64((uint64_t)f->task->seed, FINI_STREAM_RIDGE, sample, 2 * c->L + 1,
                               c->L, g);
        for (int64_t l = 0; l < c->L; l++)
            c->w[b][l] += size * g[l];
        fini_cavity_minimise(c);
        for (int a = 0; a < 2; a++)
            for (int64_t l = 0; l < c->L; l++) {
                double change = c->h[a][l] - c->w[a][l] - before[2 * l + a];
                part[2 * a + b] += change * change / (size * size);
            }
    }
}

/* Means of what is measured, `width` numbers. */
static void average(fit *f, const place *at, int64_t samples, measure *what, int width,
                    double *mean)
{
    int64_t chunks = (samples + CHUNK - 1) / CHUNK, L = f->task->bags.L;
    memset(f->parts, 0, (size_t)(chunks * width) * sizeof *f->parts);
#pragma omp parallel for schedule(dynamic) num_threads(f->threads)
    for (int64_t k = 0; k < chunks; k++) {
        double *scratch = f->scratch + omp_get_thread_num() * f->room;
        fini_cavity c = {.L = L, .linear = f->task->linear, .V = {exp(at->x[4]), exp(at->x[5])}};
        fini_cavity_cut(&c, scratch);
        for (int64_t i = k * CHUNK; i < samples && i < (k + 1) * CHUNK; i++)
            what(f, at, (uint64_t)i, &c, scratch + fini_cavity_scratch(L), f->parts + k * width);
    }
    memset(mean, 0, (size_t)width * sizeof *mean);
    for (int64_t k = 0; k < chunks; k++)
        for (int i = 0; i < width; i++)
            mean[i] += f->parts[k * width + i] / (double)samples;
}

static void sum_up(fit *f, const place *at, int64_t samples, sums *out)
{
    double mean[SUMS];
    average(f, at, samples, moments, SUMS, mean);
    memcpy(out->mean, mean, sizeof out->mean);
    memcpy(out->product, mean + MEANS, sizeof out->product);
}

/* ---- the map ---------------------------------------------------------------------------------------- */

/* Where the means lead; log V rises by one where it would be infinite. */
static place map(const fit *f, const place *at, const double m[MEANS])
{
    double alpha = f->task->bags.alpha, root = sqrt(1 + f->noise), M_v = at->x[1],
           own = sqrt(fmax(at->x[3] - M_v * M_v / (1 + f->noise), 1e-12));
    double det = m[FIRST_X + V] * m[E_E] - m[X_E] * m[X_E],
           of_x = (m[FIRST + V] * m[E_E] - m[G_E] * m[X_E]) / det / own,
           of_y =
               ((m[G_E] * m[FIRST_X + V] - m[FIRST + V] * m[X_E]) / det - M_v / root * of_x) / root;
    double others = (double)(f->task->bags.L - 1), slope[2] = {0, of_x};
    slope[K] = m[FIRST + K] / m[FIRST_X + K] / sqrt(at->x[2]);
    for (int q = 0; q < 2 && others > 0; q++)
        slope[q] += others * m[OTHER + q] / m[OTHER_X + q] / sqrt(at->x[2 + q]);
    const double pull[2] = {sqrt(f->task->bags.snr) * m[G_K], of_y};
    place to;
    for (int q = 0; q < 2; q++) {
        double inverse = f->penalty[q] - alpha * slope[q];
        double log_V = inverse > 0 ? -log(inverse) : INFINITY;
        log_V = fmax(fmin(log_V, at->x[4 + q] + 1), at->x[4 + q] - 3);
        double width = exp(log_V), M = alpha * width * pull[q];
        to.x[q] = M;
        to.x[2 + q] = M * M + alpha * width * width * m[SQUARE + q];
        to.x[4 + q] = log_V;
    }
    return to;
}

static double distance(const place *a, const place *b)
{
    double most = 0;
    for (int i = 0; i < PLACE; i++) {
        double scale = i == 2 || i == 3 ? fmax(1, fabs(a->x[i])) : 1;
        most = fmax(most, fabs(a->x[i] - b->x[i]) / scale);
    }
    return most;
}

static bool sound(const fit *f, const place *at)
{
    for (int i = 0; i < PLACE; i++)
        if (!isfinite(at->x[i]))
            return false;
    return at->x[2] > 0 && at->x[3] * (1 + f->noise) >= at->x[1] * at->x[1] &&
           at->x[2] >= at->x[0] * at->x[0] && fabs(at->x[4]) < 60 && fabs(at->x[5]) < 60;
}

/* ---- the risk --------------------------------------------------------------------------------------- */

/* E[(y - f)^2] of new bags: 1 + Delta - 2 M_v E[a_J] + Q_v E[sum a_l^2]. */
static double risk_at(const fit *f, const place *at)
{
    double N = 1 + f->noise, L = (double)f->task->bags.L, M = at->x[0],
           shift = sqrt(f->task->bags.snr) * M, Q = at->x[2], relevant, squares;
    if (f->task->linear) {
        relevant = (1 + shift) / L;
        squares = (L * (1 + Q) + 2 * shift + shift * shift) / (L * L);
    } else {
        fini_misses miss;
        if (!fini_softmax_misses(f->scores, sqrt(Q), M / sqrt(Q), &miss))
            return NAN;
        relevant = 1 - miss.once.value;
        squares = 1 - 2 * miss.once.value + miss.squared.value + miss.others.value;
    }
    return N - 2 * at->x[1] * relevant + at->x[3] * squares;
}

/* What is told: the risk; cosines with k* and v*; lengths. */
enum { TOLD = 5 };
static void tell(const fit *f, const place *at, double told[TOLD])
{
    told[0] = risk_at(f, at);
    for (int q = 0; q < 2; q++) {
        told[1 + q] = at->x[q] / sqrt(at->x[2 + q]);
        told[3 + q] = sqrt(at->x[2 + q]);
    }
}

/* ---- the derivative of the map, on few draws ---------------------------------------------------------- */

typedef struct slopes {
    double T[PLACE][PLACE];     /* dT/dx */
    double means[PLACE][MEANS]; /* dT/dmeans */
    double told[TOLD][PLACE];
    double row[TOLD][PLACE]; /* told (1 - T')^-1 */
} slopes;

/* A scale on which x_j can be moved, so that Q (1 + Delta) stays above M^2. */
static double reach(const fit *f, const place *at, int j)
{
    if (j >= 4)
        return 1;
    double M = at->x[j % 2], Q = at->x[2 + j % 2],
           own = fmax(Q - M * M / (j % 2 == V ? 1 + f->noise : 1), 1e-9 * Q);
    return j < 2 ? fmin(sqrt(Q), own / fmax(fabs(M), 1e-300)) : fmin(Q, own);
}

static bool slopes_at(fit *f, const place *at, int64_t samples, slopes *s)
{
    sums here;
    sum_up(f, at, samples, &here);
    for (int j = 0; j < PLACE; j++) {
        double step = moved * reach(f, at, j), told[2][TOLD];
        place side[2], x = *at;
        for (int k = 0; k < 2; k++) {
            sums there;
            x.x[j] = at->x[j] + (k ? step : -step);
            sum_up(f, &x, samples, &there);
            side[k] = map(f, at, there.mean);
            tell(f, &x, told[k]);
        }
        for (int i = 0; i < PLACE; i++)
            s->T[i][j] = (side[1].x[i] - side[0].x[i]) / (2 * step);
        for (int i = 0; i < TOLD; i++)
            s->told[i][j] = (told[1][i] - told[0][i]) / (2 * step);
    }
    for (int j = 0; j < MEANS; j++) {
        double mean[MEANS], small = 1e-6 * fmax(1e-3, fabs(here.mean[j]));
        place side[2];
        for (int k = 0; k < 2; k++) {
            memcpy(mean, here.mean, sizeof mean);
            mean[j] += k ? small : -small;
            side[k] = map(f, at, mean);
        }
        for (int i = 0; i < PLACE; i++)
            s->means[i][j] = (side[1].x[i] - side[0].x[i]) / (2 * small);
    }
    double A[PLACE][PLACE + TOLD]; /* (1 - T')^T row^T = told^T */
    for (int i = 0; i < PLACE; i++) {
        for (int j = 0; j < PLACE; j++)
            A[i][j] = (i == j) - s->T[j][i];
        for (int j = 0; j < TOLD; j++)
            A[i][PLACE + j] = s->told[j][i];
    }
    if (!fini_eliminate(PLACE, TOLD, &A[0][0]))
        return false;
    for (int i = 0; i < TOLD; i++)
        for (int j = 0; j < PLACE; j++)
            s->row[i][j] = A[j][PLACE + i];
    return true;
}

/* ---- fixed points ------------------------------------------------------------------------------------- */

typedef enum outcome { SETTLED, LOST, CANCELLED } outcome;

/* A fixed point of the means over so many draws, from *at; *m: its means. */
static outcome iterate(fit *f, place *at, int64_t samples, double enough, sums *m)
{
    int most = samples > FEW ? FINAL : ROUNDS;
    for (int round = 0; round < most; round++) {
        sum_up(f, at, samples, m);
        place to = map(f, at, m->mean);
        double gap = distance(&to, at), share = round < 100 ? 0.5 : 0.2;
        if (fini_report(f->progress, "fixed point", (double)++f->rounds, ROUNDS))
            return CANCELLED;
        if (gap < enough)
            return SETTLED;
        for (int i = 0; i < PLACE; i++)
            at->x[i] += share * (to.x[i] - at->x[i]);
        if (!sound(f, at))
            return LOST;
    }
    return LOST;
}

/* By Newton steps; the derivative on few draws is corrected by what each step did (Broyden 1965). Where they do not help,
 * step by step. */
static outcome refine(fit *f, place *at, int64_t samples, const slopes *s, double enough, sums *m)
{
    double T[PLACE][PLACE], step[PLACE] = {0}, before = INFINITY;
    memcpy(T, s->T, sizeof T);
    for (int round = 0; round < NEWTON; round++) {
        sum_up(f, at, samples, m);
        place to = map(f, at, m->mean), next = *at;
        double gap = distance(&to, at), A[PLACE][PLACE + 1], length = 0;
        if (fini_report(f->progress, "fixed point", (double)++f->rounds, ROUNDS))
            return CANCELLED;
        if (gap < enough)
            return SETTLED;
        for (int i = 0; i < PLACE; i++)
            length += step[i] * step[i];
        for (int i = 0; i < PLACE && length > 0; i++)
            for (int j = 0; j < PLACE; j++)
                T[i][j] += (to.x[i] - at->x[i]) * step[j] / length;
        for (int i = 0; i < PLACE; i++) {
            for (int j = 0; j < PLACE; j++)
                A[i][j] = (i == j) - T[i][j];
            A[i][PLACE] = to.x[i] - at->x[i];
        }
        if (!(gap < 1.5 * before) || !fini_eliminate(PLACE, 1, &A[0][0]))
            break;
        for (int i = 0; i < PLACE; i++)
            next.x[i] += step[i] = A[i][PLACE];
        if (!sound(f, &next))
            break;
        *at = next;
        before = gap;
    }
    return iterate(f, at, samples, enough, m);
}

/* Of small differences between fields: the largest eigenvalue of the map of their variances. */
static double growth(fit *f, const place *at)
{
    double T[4];
    average(f, at, FEW, changes, 4, T);
    double alpha = f->task->bags.alpha, a = alpha * T[0], d = alpha * T[3];
    return (a + d) / 2 + sqrt((a - d) * (a - d) / 4 + alpha * T[1] * alpha * T[2]);
}

/* Nothing is known, or all. */
static place start(const fit *f, bool informed)
{
    place p = {{0.05, 0.05, 0.1, 0.1, -log(f->penalty[K] + 1), -log(f->penalty[V] + 1)}};
    if (informed)
        p = (place){{1, 1, 1.1, 1.1, -log(f->penalty[K] + f->task->bags.alpha),
                     -log(f->penalty[V] + f->task->bags.alpha)}};
    return p;
}

/* ---- the best penalties ------------------------------------------------------------------------------- */

typedef struct search {
    fit *f;
    place at;
    slopes s;
    bool warm;
} search;

/* The risk at log(penalty), infinite where nothing settles, and its gradient: a penalty moves V by -V^2 dr, and M and Q
 * with it. */
static fin_status risk_of(search *o, const double x[2], double *value, double gradient[2],
                          fin_error *err)
{
    fit *f = o->f;
    sums m;
    *value = INFINITY;
    if (!(fabs(x[0]) <= widest && fabs(x[1]) <= widest))
        return FIN_OK;
    for (int q = 0; q < 2; q++)
        f->penalty[q] = exp(x[q]);
    place at = o->warm ? o->at : start(f, false);
    outcome end =
        o->warm ? refine(f, &at, SEARCH, &o->s, about, &m) : iterate(f, &at, SEARCH, about, &m);
    slopes s;
    if (end == CANCELLED)
        return fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
    if (end == LOST || !slopes_at(f, &at, SEARCH, &s))
        return FIN_OK;
    o->at = at;
    o->s = s;
    o->warm = true;
    *value = risk_at(f, &at);
    for (int q = 0; q < 2; q++) {
        double shrinks = -exp(at.x[4 + q]) * f->penalty[q];
        gradient[q] =
            shrinks * (s.row[0][q] * at.x[q] + 2 * s.row[0][2 + q] * at.x[2 + q] + s.row[0][4 + q]);
    }
    return FIN_OK;
}

/* H <- the inverse of second derivatives that takes the change y of the gradient to the step s (BFGS). */
static void learn(double H[2][2], const double s[2], const double y[2])
{
    double sy = s[0] * y[0] + s[1] * y[1], Hy[2], yHy = 0;
    if (!(sy > 0))
        return;
    for (int i = 0; i < 2; i++) {
        Hy[i] = H[i][0] * y[0] + H[i][1] * y[1];
        yHy += y[i] * Hy[i];
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 2; j++)
            H[i][j] += (1 + yHy / sy) * s[i] * s[j] / sy - (Hy[i] * s[j] + s[i] * Hy[j]) / sy;
}

/* The lowest risk over log(penalty), to about 1e-4: it is flat there, and has small steps where a bag's minimum jumps. */
static fin_status find_best(fit *f, fin_error *err)
{
    const double gain = 5e-5, stride = 1.5;
    search o = {.f = f};
    double x[2] = {0, 0}, H[2][2] = {{20, 0}, {0, 20}}, g[2] = {0}, value;
    fin_status status = risk_of(&o, x, &value, g, err);
    for (int tries = 0, cut = 1; tries < 30 && !status && isfinite(value); tries++) {
        double step[2], to[2], there, slope[2] = {0}, along = 0;
        for (int q = 0; q < 2; q++) {
            step[q] = -(H[q][0] * g[0] + H[q][1] * g[1]);
            along -= step[q] * g[q];
        }
        if (along / cut < 2 * gain)
            break;
        double shrink = fmin(1, stride / hypot(step[0], step[1])) / cut;
        for (int q = 0; q < 2; q++)
            to[q] = x[q] + (step[q] *= shrink);
        status = risk_of(&o, to, &there, slope, err);
        cut *= 4;
        if (status || !(there < value))
            continue;
        const double change[2] = {slope[0] - g[0], slope[1] - g[1]};
        learn(H, step, change);
        memcpy(x, to, sizeof x);
        memcpy(g, slope, sizeof g);
        value = there;
        cut = 1;
    }
    for (int q = 0; q < 2; q++)
        f->penalty[q] = exp(x[q]);
    return status;
}

/* ---- the answer --------------------------------------------------------------------------------------- */

/* Half the mean of (y - f)^2 per column, and the penalty: what is minimised, over d. */
static double energy(const fit *f, const place *at, const sums *m)
{
    return (f->task->bags.alpha * m->mean[REST] + f->penalty[K] * at->x[2] +
            f->penalty[V] * at->x[3]) /
           2;
}

static fin_estimate estimate(const fit *f, double value, const double row[PLACE],
                             const double means[PLACE][MEANS], const sums *m)
{
    double a[MEANS] = {0}, variance = 0, n = (double)f->task->samples;
    for (int j = 0; j < MEANS; j++)
        for (int i = 0; i < PLACE; i++)
            a[j] += row[i] * means[i][j];
    for (int i = 0; i < MEANS; i++)
        for (int j = 0; j < MEANS; j++)
            variance += a[i] * a[j] * (m->product[i][j] - m->mean[i] * m->mean[j]);
    return (fin_estimate){.value = value,
                          .error = sqrt(variance < 0 ? 0 : variance / n),
                          .method = FIN_METHOD_SIMULATION,
                          .samples = f->task->samples};
}

static fin_status finish(fit *f, place at, const slopes *s, fini_erm *out, fin_error *err)
{
    sums m;
    double told[TOLD];
    outcome end = refine(f, &at, f->task->samples, s, still, &m);
    if (end == CANCELLED)
        return fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
    out->growth = growth(f, &at);
    out->settled = end == SETTLED && out->growth < calm;
    tell(f, &at, told);
    out->risk = estimate(f, told[0], s->row[0], s->means, &m);
    for (int q = 0; q < 2; q++) {
        out->cosine[q] = estimate(f, told[1 + q], s->row[1 + q], s->means, &m);
        out->length[q] = estimate(f, told[3 + q], s->row[3 + q], s->means, &m);
    }
    out->training = m.mean[REST];
    out->settled = out->settled && isfinite(out->risk.value) && isfinite(out->risk.error);
    return FIN_OK;
}

/* From both ends; the one with the lower minimum is the answer. */
static fin_status both_ends(fit *f, fini_erm *out, fin_error *err)
{
    place at[2];
    sums m[2];
    slopes s[2];
    outcome end[2];
    for (int k = 0; k < 2; k++) {
        at[k] = start(f, k == 1);
        end[k] = iterate(f, &at[k], FEW, near, &m[k]);
    }
    bool same = end[0] == SETTLED && end[1] == SETTLED && distance(&at[0], &at[1]) < 10 * near;
    for (int k = 0; k < (same ? 1 : 2); k++)
        if (end[k] == SETTLED)
            end[k] = slopes_at(f, &at[k], FEW, &s[k]) ? refine(f, &at[k], FEW, &s[k], about, &m[k])
                                                      : LOST;
    if (end[0] == CANCELLED || end[1] == CANCELLED)
        return fini_fail(err, FIN_ERR_CANCELLED, "cancelled");
    if (end[0] == LOST && end[1] == LOST)
        return FIN_OK;
    int best = end[0] == LOST;
    if (!same && end[0] == SETTLED && end[1] == SETTLED && distance(&at[0], &at[1]) > 2 * near) {
        best = energy(f, &at[1], &m[1]) < energy(f, &at[0], &m[0]);
        out->differ = true;
        out->other = risk_at(f, &at[!best]);
    }
    return finish(f, at[best], &s[best], out, err);
}

static fin_status open_fit(fit *f, fin_error *err)
{
    const fini_erm_task *t = f->task;
    int64_t L = t->bags.L, chunks = ((t->samples > FEW ? t->samples : FEW) + CHUNK - 1) / CHUNK;
    f->room = fini_cavity_scratch(L) + 2 * (2 * L + 1);
    f->threads = fini_threads_for((double)SEARCH * (double)L * 1000);
    f->scratch = fini_alloc_array(f->threads * f->room, sizeof *f->scratch);
    f->parts = fini_alloc_array(chunks * SUMS, sizeof *f->parts);
    if (!f->scratch || !f->parts)
        return fini_fail_memory(err, (size_t)(chunks * SUMS) * sizeof *f->parts,
                                "a fit of attention");
    fin_task_settings s;
    const fin_task_kind *slr = fin_task_find("slr");
    fin_settings_defaults(slr->settings, &s, sizeof s);
    s.L = L;
    s.mu = sqrt(t->bags.snr);
    s.gamma = 1;
    return fin_task_create(&f->scores, slr, &s, NULL, 1, 0, err);
}

fin_status fini_learning_erm(const fini_erm_task *task, const fin_progress *progress, fini_erm *out,
                             fin_error *err)
{
    fit f = {.task = task,
             .progress = progress,
             .noise = task->bags.eps * task->bags.eps,
             .penalty = {task->penalty[K], task->penalty[V]}};
    *out = (fini_erm){.settled = false};
    fin_status status = open_fit(&f, err);
    if (!status && task->best)
        status = find_best(&f, err);
    if (!status)
        status = both_ends(&f, out, err);
    for (int q = 0; q < 2; q++)
        out->penalty[q] = f.penalty[q];
    fin_task_destroy(f.scores);
    fini_free_all(f.scratch, f.parts);
    return status;
}
