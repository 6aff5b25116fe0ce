/* Descent on the exact risk of the erf predictor, in overlaps, many runs side by side.
 *
 * Included once by every kernel file after erf_risk_body.h, with V a double or a vector of doubles.
 * All functions are spelled out in additions, multiplications, divisions, square roots and fused
 * operations, so that every kernel gives the same bits: near the edge of stability the last bit of
 * a step decides where a run goes.
 *
 * Gradients: g_k = (I - k k^T)(R_kappa k* + R_eta v* + R_rho v), and v's likewise. Their products
 * with k*, v*, k, v and with each other are quadratic in the overlaps; the Gram matrix of
 * (k*, v*, v) without their parts along k is taken entry by entry (1 - kappa^2, ...), so that
 * nothing cancels where k is near k*. */

/* exp(x), -345 <= x <= 0, within an ulp or two; below, exp(-345): the product of two such is still
 * a normal number, and arithmetic with others is slow. */
static inline V EXP_NEGATIVE(V x)
{
    const double magic = 0x1.8p52; /* adding it rounds to a whole number, found in the low bits */
    x = MAX(ALL(-345.0), x);
    V near = FMA(x, ALL(0x1.71547652b82fep0), ALL(magic));
    V n = near - magic;
    V r = FMA(n, ALL(-0x1.62e42fefa39efp-1), x);
    r = FMA(n, ALL(-0x1.abc9e3b39803fp-56), r);
    V rr = r * r, odd = ALL(fini_exp_f64[9]), even = ALL(fini_exp_f64[8]); /* two short chains */
    for (int i = 6; i >= 0; i -= 2) {
        odd = FMA(odd, rr, ALL(fini_exp_f64[i + 1]));
        even = FMA(even, rr, ALL(fini_exp_f64[i]));
    }
    return TIMES_POWER(FMA(rr, FMA(odd, r, even), r) + 1.0, near);
}

/* exp(x^2) erfc(x), x >= 0. */
static inline V ERFCX(V x)
{
    V far = x + 3.75, steep = 1.0 + 2.0 * x, inverse = 1.0 / (far * steep);
    V t = (x - 3.75) * steep * inverse, t2 = t * t, t4 = t2 * t2, p[4];
    for (int j = 0; j < 4; j++)
        p[j] = ALL(fini_erfcx_f64[20 + j]);
    for (int i = 16; i >= 0; i -= 4) /* four short chains instead of a long one */
        for (int j = 0; j < 4; j++)
            p[j] = FMA(p[j], t4, ALL(fini_erfcx_f64[i + j]));
    return FMA(t2, FMA(t, p[3], p[2]), FMA(t, p[1], p[0])) * (far * inverse);
}

/* ---- population descent --------------------------------------------------------------------- */

/* What a step needs of lam, once for all runs: erf_lam, and the rule for
 *     W = Ex Ey int_a^1 exp(-x^2 (u^2 - a^2)) / (1 + u^2) du = Ex Ey sum_i weight exp(x^2 power).
 * An absolute error of 1e-16 is asked for. exp(-x^2 (1 + a^2)) stands before the integral, so 14
 * nodes are enough for every x; fewer, if lam is small and x cannot be large. */
typedef struct fini_population_step {
    double g2, mu, m, N, spread, r, a, q, c;
    int nodes;
    double power[14], weight[14];
} fini_population_step;

static void population_step_of(const fini_population_model *p, double lam, fini_population_step *s)
{
    const double four_over_pi = FINI_FOUR_OVER_PI, c0 = FINI_TWO_OVER_ROOT_PI;
    double l2 = lam * lam, D = 1 + 2 * l2, root = sqrt(1 + 4 * l2);
    double g2 = p->gamma * p->gamma, lg2 = l2 * g2, S = sqrt(1 + 4 * lg2);
    double length = 4 * lg2 / (S * (S + 1)), a = 1 / S;
    s->g2 = g2;
    s->mu = p->mu;
    s->m = p->m;
    s->N = p->L_mean - p->m;
    s->spread = p->L_var;
    s->r = lam / sqrt(1 + 2 * lg2);
    s->a = a;
    s->q = four_over_pi * l2 / D * (2 / root - 1);
    s->c = c0 * lam / sqrt(D);
    double x = s->r * p->mu, z = x * x * length * (1 + a); /* the largest there can be */
    const double *node = fini_legendre_node_14, *weight = fini_legendre_weight_14;
    s->nodes = 14;
    if (z < 0.14 && length < 0.05) {
        s->nodes = 4;
        node = fini_legendre_node_4;
        weight = fini_legendre_weight_4;
    } else if (z < 2.6 && length < 0.4) {
        s->nodes = 8;
        node = fini_legendre_node_8;
        weight = fini_legendre_weight_8;
    }
    for (int i = 0; i < s->nodes; i++) {
        double step = length * node[i], rise = step * (2 * a + step); /* u^2 - a^2 */
        s->power[i] = -rise;
        s->weight[i] = length * weight[i] / (1 + a * a + rise);
    }
}

/* One step of some runs: kappa, nu, theta, eta, rho. */
static inline void population_step(const fini_population_step *s, double alpha, double penalty,
                                   V state[5])
{
    const double c0 = FINI_TWO_OVER_ROOT_PI;
    V zero = ALL(0.0), sign = SIGN_OF(state[0]);
    V kappa = state[0] * sign, nu = state[1] * sign, theta = state[2] * sign, eta = state[3] * sign;
    V rho = state[4];
    V x = (s->r * s->mu) * kappa, y = s->a * x, xx = x * x;
    V ex = EXP_NEGATIVE(-xx), ey = EXP_NEGATIVE(-y * y);
    V erfc_x = ex * ERFCX(x), erfc_y = ey * ERFCX(y), Ex = c0 * ex, Ey = c0 * ey;
    V sum = zero;
    for (int i = 0; i < s->nodes; i++)
        sum = FMA(EXP_NEGATIVE(xx * s->power[i]), ALL(s->weight[i]), sum);
    erf_lam lam = {ALL(s->g2), ALL(s->mu), ALL(s->m), ALL(s->N), ALL(s->spread),
                   ALL(s->r),  ALL(s->a),  ALL(s->q), ALL(s->c)};
    erf_at at = {
        x, Ex, Ey, 1.0 - erfc_x, erfc_x, erfc_y, Ex * Ey * sum, -2.0 * Ex * (erfc_y - erfc_x)};
    V R[5];
    ERF_GRADIENT(&lam, &at, nu, theta, eta, rho, R);
    V Rk = R[0], Rn = R[1], Rt = R[2], Re = R[3], Rr = FMA(ALL(2.0 * penalty), rho, R[4]);

    /* Products of k*, v*, v without their parts along k, and of k*, v*, k without theirs along v. */
    V A11 = (1.0 - kappa) * (1.0 + kappa), A12 = -kappa * eta, A13 = theta - kappa * rho;
    V A22 = (1.0 - eta) * (1.0 + eta), A23 = nu - eta * rho, A33 = (1.0 - rho) * (1.0 + rho);
    V B11 = (1.0 - theta) * (1.0 + theta), B12 = -theta * nu, B13 = kappa - theta * rho;
    V B22 = (1.0 - nu) * (1.0 + nu), B23 = eta - nu * rho;
    V k_ks = Rk * A11 + Re * A12 + Rr * A13; /* g_k.k* */
    V k_vs = Rk * A12 + Re * A22 + Rr * A23;
    V k_v = Rk * A13 + Re * A23 + Rr * A33;
    V v_ks = Rt * B11 + Rn * B12 + Rr * B13;
    V v_vs = Rt * B12 + Rn * B22 + Rr * B23;
    V v_k = Rt * B13 + Rn * B23 + Rr * A33;
    V k_k = Rk * k_ks + Re * k_vs + Rr * k_v; /* |g_k|^2 */
    V v_v = Rt * v_ks + Rn * v_vs + Rr * v_k;
    V both = Rk * v_ks + Re * v_vs - (Rk * kappa + Re * eta + Rr * rho) * v_k; /* g_k.g_v */

    double alpha2 = alpha * alpha;
    V by_k = 1.0 / SQRT(1.0 + alpha2 * MAX(zero, k_k));
    V by_v = 1.0 / SQRT(1.0 + alpha2 * MAX(zero, v_v));
    V next[5] = {(kappa - alpha * k_ks) * by_k * sign, (nu - alpha * v_vs) * by_v * sign,
                 (theta - alpha * v_ks) * by_v * sign, (eta - alpha * k_vs) * by_k * sign,
                 (rho - alpha * (k_v + v_k) + alpha2 * both) * by_k * by_v};
    for (int i = 0; i < 5; i++) /* rounding may leave a product of unit vectors outside [-1, 1] */
        state[i] = MAX(ALL(-1.0), MIN(ALL(1.0), next[i]));
}

/* `steps` steps of FINI_RUNS runs; lam and alpha have a value for each step. */
static void population(const fini_population_model *p, int64_t steps, const double *lam,
                       const double *alpha, double state[][FINI_RUNS])
{
    fini_population_step s = {0};
    int lanes = p->runs > 0 ? p->runs : FINI_RUNS;
    for (int64_t t = 0; t < steps; t++) {
        if (t == 0 || lam[t] != lam[t - 1])
            population_step_of(p, lam[t], &s);
        for (int lane = 0; lane < lanes; lane += LANES_V) {
            V x[5];
            for (int i = 0; i < 5; i++)
                x[i] = LOAD_V(&state[i][lane]);
            population_step(&s, alpha[t], p->penalty, x);
            for (int i = 0; i < 5; i++)
                STORE_V(&state[i][lane], x[i]);
        }
    }
    for (int lane = 0; steps > 0 && lane < FINI_RUNS; lane++)
        state[5][lane] = lam[steps - 1];
}
