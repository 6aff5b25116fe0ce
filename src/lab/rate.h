/* What the commands `rate` and `limit` share: laws of keys, and means over contexts; and the two halves
 * of `rate`: what attention is to learn and tends to (rate_target.c), and how far off it is
 * (rate.c). */
#ifndef FINI_LAB_RATE_H
#define FINI_LAB_RATE_H

#include "finetti/theory_latent.h"
#include "theory/sphere.h"
#include "command/command.h"
#include "random/streams.h"

/* ---- keys, and means over contexts (rate_target.c) ---------------------------------------------- */

enum { FINI_RATE_SPHERE, FINI_RATE_VMF, FINI_RATE_GAUSSIAN };
#define FINI_RATE_NAMES "sphere|vmf|gaussian"

typedef struct fini_rate_law {
    int law;
    int64_t d;
    double concentration; /* vmf: density exp(concentration x_1) */
    double g;             /* gaussian: variance */
} fini_rate_law;

/* n independent keys (n, d). Streams are FINI_STREAM_RATE_*; `sample` names the context. */
void fini_rate_draw(const fini_rate_law *keys, int64_t seed, uint32_t stream, uint64_t sample,
                    int64_t n, double *out);
/* The same, spread more evenly along the first axis; room: (FINI_RATE_CANDIDATES n, d). */
void fini_rate_draw_spread(const fini_rate_law *keys, int64_t seed, uint64_t sample, int64_t n,
                           double *room, double *out);
enum { FINI_RATE_CANDIDATES = 8 };

/* A running mean of independent numbers (Welford), and its standard error. */
typedef struct fini_average {
    int64_t count;
    double mean, squares;
} fini_average;
void fini_average_add(fini_average *average, double x);
double fini_average_error(const fini_average *average); /* NaN if count < 2 */

/* ---- rate ------------------------------------------------------------------------------------- */

/*   type     field    default        lowest  highest         meaning */
#define FINI_RATE_FIELDS(F, C)                                                                     \
    F(int64_t, d, 3, 2, 16, "numbers in a key")                                                    \
    C(keys, 0, FINI_RATE_NAMES,                                                                    \
      "law of keys: uniform on the sphere, von Mises-Fisher around the first axis, N(0, g I)")     \
    F(double, concentration, 1, 0, 1e3, "of vmf keys")                                             \
    F(double, g, 1, 1e-6, 1e6, "variance of gaussian keys")                                        \
    F(double, radius, 1, 0, 10, "length of a query beside gaussian keys, in units of sqrt(g)")     \
    C(form, 0, "cme|softmax|nw", "attention form: kernel ridge, softmax, Nadaraya-Watson")         \
    C(kernel, 0, "rbf|linear|polynomial",                                                          \
      "cme: exp(-kappa |q - k|^2 / 2), q.k or (1 + q.k)^2; nw: the first")                         \
    F(double, kappa, 3, 1e-6, 1e12, "inverse temperature, of the rbf kernel and of softmax")       \
    F(double, kappa_power, 0, -4, 4, "kappa is multiplied by L to this power")                     \
    C(kappa_log, 0, "no|yes", "kappa is multiplied by log L")                                      \
    F(double, lam, 0.1, 1e-12, 1e12, "cme: ridge, noise over prior variance")                      \
    F(double, lam_power, 0, -4, 4, "lam is multiplied by L to this power")                         \
    C(rescale, 0, "no|yes", "softmax: the output is divided by A_d(kappa)")                        \
    F(double, linear, 0.5, 0, 1e6,                                                                 \
      "mean square of the part of m that is linear in the key (gaussian keys: of a unit key)")     \
    F(double, quadratic, FIN_AUTO, 0, 1e6,                                                         \
      "mean square of the part of degree 2; auto: as linear, with gaussian keys 0")                \
    F(int64_t, dv, 1, 1, 4096, "numbers in a value")                                               \
    F(double, noise, 0.09, 0, 1e6, "variance s^2 of a value's numbers around m")                   \
    F(int64_t, L, 256, 2, INT64_C(1) << 20, "tokens in a context")                                 \
    F(int64_t, contexts, 16, 2, 1000000, "contexts, each with keys of its own; at least")          \
    F(int64_t, tokens, 0, 0, INT64_C(1) << 32,                                                     \
      "and so many that they have this many tokens in all")                                        \
    F(int64_t, queries, 32, 1, 65536, "queries to each context")                                   \
    F(int64_t, seed, 1, 0, INT64_C(1) << 53, "seed of keys and queries")

typedef struct fini_rate {
    FINI_RATE_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} fini_rate;
enum { FINI_RATE_RBF, FINI_RATE_LINEAR, FINI_RATE_POLYNOMIAL };

int64_t fini_rate_contexts(const fini_rate *rate);
double fini_rate_kappa(const fini_rate *rate); /* kappa and lam at this L */
double fini_rate_lam(const fini_rate *rate);
double fini_rate_quadratic(const fini_rate *rate); /* auto worked out */

/* How many numbers psi(k) has, and psi of n keys: (n, width). */
int64_t fini_rate_width(const fini_rate *rate);
void fini_rate_harmonics(const fini_rate *rate, int64_t n, const double *keys, double *psi);
/* What attention tends to at q, as psi has it, if there is a closed form for that. */
bool fini_rate_limit(const fini_rate *rate, const double *q, double *limit);
/* The mean squared error to first order in 1/L, if there is a closed form for it. */
bool fini_rate_predicted(const fini_rate *rate, fini_sphere_error *predicted);

#endif
