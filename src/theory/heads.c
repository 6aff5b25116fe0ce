/* The exact risk of a sum of erf heads.
 *
 * With S_l = sum_h erf(lam X_l.k_h) X_l.v_h what token l adds to f, E f^2 is a sum of E S_l S_m: of one
 * token (l = m), of independent ones, and of two relevant tokens that share their noise. All are sums
 * over heads a, b of
 *
 *     E w_a z_a w_b z_b,   w_a = erf(lam chi_a), chi_a ~ N(s, c), chi_b ~ N(t, c), Cov(chi_a, chi_b) = c k_a.k_b
 *
 * (c = gamma^2, or 1) and z_a, z_b normal with them. By Stein's lemma, twice, with Z(s, t) = E w_a w_b,
 *
 *     E w_a w_b z_a z_b = (E z_a E z_b + c v_a.v_b) Z
 *         + sum_i (E z_a Cov(z_b, chi_i) + E z_b Cov(z_a, chi_i)) Z_i + sum_ij Cov(z_a, chi_i) Cov(z_b, chi_j) Z_ij,
 *
 * i, j in {a, b} and Z_i = dZ/ds or dZ/dt. As erf(lam x) = E sign(x + G / (sqrt 2 lam)), Z is the
 * correlation of two signs of normals with means h, k in units of their deviation and correlation r:
 *
 *     Z = 4 Phi2(h, k; r) - 2 Phi(h) - 2 Phi(k) + 1,   h = q s, k = q t, r = q^2 c k_a.k_b,
 *     q = sqrt 2 lam / sqrt(1 + 2 lam^2 c),
 *
 * Phi2 being two of Owen's T. a = b is no exception: the two signs have noise of their own. */
#include "theory/heads.h"

#include "finetti/math.h"
#include "math/owen.h"

#include <math.h>

/* Z and its derivatives in h and k; rest = sqrt(1 - r^2). */
typedef struct signs {
    double z, h, k, hh, hk, kk;
} signs;

/* T(h, (k - r h) / (h rest)), without dividing by 0. */
static double owen_part(double h, double k, double r, double rest)
{
    double up = k - r * h;
    return h == 0 ? copysign(0.25, up) * (up != 0) : fini_owens_t(h, up / (h * rest));
}

/* Phi2(h, k; r) = (Phi(h) + Phi(k)) / 2 - T(h, a_h) - T(k, a_k) - (h k < 0, or h k = 0 and h + k < 0) / 2
 * (Owen 1956), so that Z = 1 - 4 T - 4 T - (2 or 0); with h = k = 0 it is (2 / pi) asin(r). */
static signs signs_of(double h, double k, double r, double rest)
{
    const double density = 0.3989422804014327;
    double a = (k - r * h) / rest, b = (h - r * k) / rest;
    double at_h = density * exp(-0.5 * h * h), at_k = density * exp(-0.5 * k * k);
    double both = 4 * at_h * density * exp(-0.5 * a * a) / rest;
    bool apart = h * k < 0 || (h * k == 0 && h + k < 0);
    signs s;
    s.z = h == 0 && k == 0
              ? 0.5 * FINI_FOUR_OVER_PI * atan2(r, rest)
              : 1 - 4 * owen_part(h, k, r, rest) - 4 * owen_part(k, h, r, rest) - (apart ? 2 : 0);
    s.h = 2 * at_h * erf(FINI_ROOT_HALF * a);
    s.k = 2 * at_k * erf(FINI_ROOT_HALF * b);
    s.hh = -h * s.h - r * both;
    s.hk = both;
    s.kk = -k * s.k - r * both;
    return s;
}

/* One risk being computed: products of the vectors, and of them with those that do not move. */
typedef struct heads {
    const fini_heads_model *model;
    double lam;
    double G[2 * FINI_HEADS][2 * FINI_HEADS], k_star[2 * FINI_HEADS][FINI_HEADS],
        v_star[2 * FINI_HEADS][FINI_HEADS];
} heads;

/* E w_a z_a w_b z_b of a token with mean mu k*_p for head a, mu k*_q for head b and noise c; p < 0: mean 0. */
static double product(const heads *o, int a, int b, int p, int q, double c)
{
    double lam2 = 2 * o->lam * o->lam * c, D = 1 + lam2, scale = sqrt(2 / D) * o->lam;
    double mu = p < 0 ? 0 : o->model->mu, rho = o->G[2 * a][2 * b];
    double rest = sqrt((1 + lam2 * (1 - rho)) * (1 + lam2 * (1 + rho))) / D;
    double s = p < 0 ? 0 : mu * o->k_star[2 * a][p], t = p < 0 ? 0 : mu * o->k_star[2 * b][q];
    double za = p < 0 ? 0 : mu * o->k_star[2 * a + 1][p],
           zb = p < 0 ? 0 : mu * o->k_star[2 * b + 1][q];
    double aa = c * o->G[2 * a + 1][2 * a],
           ab = c * o->G[2 * a + 1][2 * b]; /* Cov(z_a, chi_a), (z_a, chi_b) */
    double ba = c * o->G[2 * b + 1][2 * a], bb = c * o->G[2 * b + 1][2 * b];
    signs Z = signs_of(scale * s, scale * t, lam2 * rho / D, rest);
    return (za * zb + c * o->G[2 * a + 1][2 * b + 1]) * Z.z +
           scale * ((za * ba + zb * aa) * Z.h + (za * bb + zb * ab) * Z.k) +
           scale * scale * (aa * ba * Z.hh + (aa * bb + ab * ba) * Z.hk + ab * bb * Z.kk);
}

/* E S and E y S of a relevant token, or E S of another (p < 0); y = X.u, u.v_h and u.k_h given by `u`. */
static double mean(const heads *o, int p, const double *u, double *with)
{
    const fini_heads_model *m = o->model;
    double c = p < 0 ? 1 : m->gamma * m->gamma, D = 1 + 2 * o->lam * o->lam * c,
           r = o->lam / sqrt(D), sum = 0;
    *with = 0;
    for (int h = 0; h < (int)m->H; h++) {
        double at = p < 0 ? 0 : r * m->mu * o->k_star[2 * h][p];
        double z = p < 0 ? 0 : m->mu * o->k_star[2 * h + 1][p], rho = o->G[2 * h][2 * h + 1];
        double m0 = erf(at), m1 = r * FINI_TWO_OVER_ROOT_PI * exp(-at * at), m2 = -2 * r * at * m1;
        sum += z * m0 + c * rho * m1;
        if (u)
            *with += c * (u[2 * h + 1] * m0 + u[2 * h] * (z * m1 + c * rho * m2));
    }
    return sum;
}

static double square(const heads *o, int p, int q, double c)
{
    double sum = 0;
    for (int a = 0; a < (int)o->model->H; a++)
        for (int b = 0; b < (int)o->model->H; b++)
            sum += p == q && b < a ? 0 : product(o, a, b, p, q, c) * (p == q && b > a ? 2 : 1);
    return sum;
}

static void spread(heads *o, const double *gram)
{
    int N = 2 * (int)o->model->H, P = (int)o->model->P;
    const double *star = gram + FINI_HEADS_ROWS(o->model->H, 0);
    for (int i = 0; i < N; i++) {
        o->G[i][i] = 1;
        for (int j = 0; j < i; j++)
            o->G[i][j] = o->G[j][i] = gram[i * (i - 1) / 2 + j];
        for (int p = 0; p < P; p++) {
            o->v_star[i][p] = star[i * 2 * P + p];
            o->k_star[i][p] = star[i * 2 * P + P + p];
        }
    }
}

double fini_heads_risk(const fini_heads_model *m, double lam, const double *gram)
{
    heads o = {.model = m, .lam = lam};
    int P = (int)m->P;
    double c = m->gamma * m->gamma, none, others = (double)(m->L - m->P), all[2 * FINI_HEADS] = {0};
    spread(&o, gram);
    for (int i = 0; i < 2 * (int)m->H; i++)
        for (int p = 0; p < P; p++)
            all[i] += o.v_star[i][p];
    double ordinary = mean(&o, -1, NULL, &none), relevant = 0, squares = 0, output = 0;
    for (int p = 0; p < P; p++) {
        double u[2 * FINI_HEADS], with;
        for (int i = 0; i < 2 * (int)m->H; i++)
            u[i] = m->shared ? all[i] : o.v_star[i][p];
        double s = mean(&o, p, u, &with);
        output += with;
        for (int q = 0; q < p; q++) /* independent tokens: 2 E S_p E S_q */
            squares += m->shared ? 2 * square(&o, p, q, c) : 2 * s * mean(&o, q, NULL, &none);
        squares += square(&o, p, p, c);
        relevant += s;
    }
    if (others > 0)
        squares +=
            others * (square(&o, -1, -1, 1) + ordinary * (2 * relevant + (others - 1) * ordinary));
    return (double)P * c + m->eps * m->eps - 2 * output + squares;
}
