/* Hamiltonian Monte Carlo (Neal, MCMC using Hamiltonian dynamics, 2011).
 *
 * Momenta are drawn, energy and momenta are followed for some leaps, and where that ends is accepted by
 * Metropolis' rule:
 *
 *     momentum -= length/2 C^-1 slope(x);   x += length C'^-1 momentum;   momentum -= length/2 C^-1 slope(x)
 *
 * with masses C C'. In the coordinates u = C' x all masses are 1: correlated coordinates, and those that
 * are known well and badly, take leaps of the same length. Leaps are a little shorter or longer each
 * time, since a fixed number of one length may come back to where it began. */
#include "math/hamilton.h"

#include "math/spd.h"

#include <math.h>
#include <string.h>

/* Masses within so much (of a logarithm) of those wanted are good enough; what acceptance is aimed at,
 * and how fast. */
static const double near = 0.25, aim = 0.75, rate = 0.15, shortest = 1e-4, longest = 1.5;

/* ---- masses -------------------------------------------------------------------------------------- */

static int64_t numbers_of(const fini_mass *m)
{
    return m->full ? m->p * m->p : m->p;
}

static fini_spd factor_of(const fini_mass *m)
{
    return fini_spd_of(m->p, m->C, m->p);
}

fin_status fini_hamilton_weigh(fini_hamilton *o, int block, double c, double precision,
                               fin_error *err)
{
    fini_mass *m = &o->mass[block];
    int64_t p = m->p, size = numbers_of(m), stride = m->full ? p + 1 : 1;
    if (m->c > 0 && fabs(log(c / m->c)) < near && fabs(log(precision / m->precision)) < near)
        return FIN_OK;
    m->c = c;
    m->precision = precision;
    for (int64_t i = 0; i < size; i++)
        m->C[i] = c * m->S[i];
    for (int64_t j = 0; j < p; j++)
        m->C[j * stride] += precision;
    if (m->full) {
        fini_spd C = factor_of(m);
        FINI_TRY(fini_spd_factor(&C, NULL, err));
        return C.pivot < 0 ? FIN_OK
                           : fini_fail(err, FIN_ERR_NUMERIC,
                                       "the second moments of tokens are not numbers");
    }
    for (int64_t j = 0; j < p; j++)
        m->C[j] = sqrt(m->C[j]);
    return FIN_OK;
}

double fini_hamilton_logdet(const fini_hamilton *o, int block)
{
    const fini_mass *m = &o->mass[block];
    double sum = 0;
    if (m->full)
        return 0.5 * fini_spd_logdet(factor_of(m));
    for (int64_t j = 0; j < m->p; j++)
        sum += log(m->C[j]);
    return sum;
}

/* x <- C^-1 x, or C'^-1 x. */
static void divide(const fini_mass *m, bool transposed, double *x)
{
    if (!m->full)
        for (int64_t j = 0; j < m->p; j++)
            x[j] /= m->C[j];
    else if (transposed)
        fini_spd_upper(factor_of(m), 1, x, 1);
    else
        fini_spd_lower(factor_of(m), 1, x, 1);
}

/* to += by C^-1 from, or by C'^-1 from. */
static void add(const fini_hamilton *o, double by, bool transposed, const double *from, double *to)
{
    int64_t at = 0;
    for (int b = 0; b < FINI_HAMILTON_BLOCKS; b++) {
        int64_t p = o->mass[b].p;
        for (int64_t r = 0; r < o->rows[b]; r++, at += p) {
            memcpy(o->room, from + at, (size_t)p * sizeof *from);
            divide(&o->mass[b], transposed, o->room);
            for (int64_t j = 0; j < p; j++)
                to[at + j] += by * o->room[j];
        }
    }
    for (int64_t j = 0; j < o->singles; j++)
        to[at + j] += by * from[at + j] / o->single[j];
}

/* ---- steps --------------------------------------------------------------------------------------- */

static int64_t in_blocks(const fini_hamilton *o)
{
    return o->rows[0] * o->mass[0].p + o->rows[1] * o->mass[1].p;
}

static double draw_momentum(fini_hamilton *o, int64_t moved)
{
    double kinetic = 0;
    for (int64_t j = 0; j < moved; j++) {
        double m = o->momentum[j] = fin_random_normal(&o->random);
        kinetic += 0.5 * m * m;
    }
    return kinetic;
}

fin_status fini_hamilton_step(fini_hamilton *o, int leaps, bool learn, double *accept,
                              fin_error *err)
{
    int64_t moved = in_blocks(o) + o->singles;
    double value, kinetic = 0;
    fin_status status = o->energy(o->user, o->x, &o->value, o->slope, err);
    double before = o->value + draw_momentum(o, moved);
    double length = o->length * (0.8 + 0.4 * fin_random_uniform(&o->random));
    memcpy(o->try, o->x, (size_t)o->n * sizeof *o->x);
    add(o, -0.5 * length, false, o->slope, o->momentum);
    for (int t = 0; t < leaps && !status; t++) {
        add(o, length, true, o->momentum, o->try);
        status = o->energy(o->user, o->try, &value, o->slope, err);
        add(o, t + 1 < leaps ? -length : -0.5 * length, false, o->slope, o->momentum);
    }
    if (status)
        return status;
    for (int64_t j = 0; j < moved; j++)
        kinetic += 0.5 * o->momentum[j] * o->momentum[j];
    double after = value + kinetic;
    *accept = isfinite(after) ? exp(fmin(0, before - after)) : 0;
    if (fin_random_uniform(&o->random) < *accept) {
        memcpy(o->x, o->try, (size_t)o->n * sizeof *o->x);
        o->value = value;
    }
    if (learn)
        o->length = fmin(fmax(o->length * exp(rate * (*accept - aim)), shortest), longest);
    return FIN_OK;
}

/* ---- memory -------------------------------------------------------------------------------------- */

static void layout(fini_hamilton *o)
{
    double **arrays[] = {&o->x, &o->slope, &o->try, &o->momentum};
    int64_t wide = 1;
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        *arrays[i] = fini_take(&o->arena, o->n, sizeof(double));
    for (int b = 0; b < FINI_HAMILTON_BLOCKS; b++) {
        o->mass[b].C = fini_take(&o->arena, numbers_of(&o->mass[b]), sizeof(double));
        wide = o->mass[b].p > wide ? o->mass[b].p : wide;
    }
    o->room = fini_take(&o->arena, wide, sizeof(double));
    o->single = fini_take(&o->arena, o->n - in_blocks(o) + 1, sizeof(double));
}

fin_status fini_hamilton_open(fini_hamilton *o, fin_error *err)
{
    FINI_LAY_OUT(err, &o->arena, "a chain", layout(o));
    o->length = 0.3;
    return FIN_OK;
}

void fini_hamilton_close(fini_hamilton *o)
{
    fini_arena_close(&o->arena);
}
