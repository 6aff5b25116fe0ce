/* Online SGD with the erf predictor on single-location regression, exact in law at a cost that does
 * not depend on d; LANES_F runs side by side.
 *
 * Included once by every kernel file after descent_body.h: F is a float or a vector of them, one
 * lane a run, V a double or a vector, and a register F has HALVES registers V.
 *
 * Frame: u1 = k, u2 the part of v orthogonal to k, u3 that of v* orthogonal to both, u4 that of k*
 * orthogonal to all three, and the d - 4 other dimensions. The gradients are sums over tokens,
 *     g_k = sum p_l X_l, g_v = sum q_l X_l,   p = df lam erf'(lam chi) z, q = df erf(lam chi),
 * with p and q functions of the tokens' coordinates on u1, u2 (and, through the output y, of the
 * relevant token's on u3). Those are drawn. Given them the other coordinates of the gradients are
 * normal with covariance M = sum s^2 (p^2, pq; pq, q^2), s = gamma for relevant tokens, so two
 * normals times chol(M) give the coordinates on u3 and u4, and three numbers the Gram matrix of all
 * that is left, Wishart_2(d - 4, M) (Bartlett: chi_{d-4}, chi_{d-5}, one normal).
 *
 * The L - 1 other tokens are drawn and summed in float, whose rounding is far below the noise of
 * the step, and added up in double. The relevant token, whose mean may be 1e6 times its spread, and
 * everything else is double. Every kernel gives the same bits. */

enum {
    FEW_TOKENS = 32, /* summed in float before they are added in double */
    BLOCKS = 40      /* of four normals drawn at a time: a step with batch 5 and L = 10 takes 31 */
};

/* The normals of one step, a pair at a time. */
typedef struct normal_source {
    F buffer[4 * BLOCKS];
    const F *at, *end;
    uint32_t next; /* block to be drawn */
    int64_t left;  /* blocks to be drawn in this step */
} normal_source;

static inline const F *two_normals(normal_source *s, const lane_keys *keys)
{
    if (s->at == s->end) {
        int count = s->left < BLOCKS ? (int)s->left : BLOCKS;
        normals_lanes(keys, s->next, count, s->buffer);
        s->next += (uint32_t)count;
        s->left -= count;
        s->at = s->buffer;
        s->end = s->buffer + 4 * count;
    }
    s->at += 2;
    return s->at - 2;
}

/* exp(-x^2), and erf(x) from it, within 2e-7. Never below exp(-43): its square is a normal number,
 * and arithmetic with others is slow. */
static inline F GAUSS_F(F x)
{
    const float magic = 0x1.8p23f;
    F a = MAX_F(ALL_F(-43.0f), -x * x);
    F near = FMA_F(a, ALL_F(0x1.715476p0f), ALL_F(magic));
    F n = near - magic;
    F r = FMA_F(n, ALL_F(-0x1.62e400p-1f), a);
    r = FMA_F(n, ALL_F(-0x1.7f7d1cp-20f), r);
    F p = ALL_F(fini_exp_f32[4]);
    for (int i = 3; i >= 0; i--)
        p = FMA_F(p, r, ALL_F(fini_exp_f32[i]));
    return TIMES_POWER_F(FMA_F(r * r, p, r) + 1.0f, near);
}

static inline F ERF_F(F x, F gauss)
{
    F size = MAX_F(x, -x), square = x * x;
    F inner = ALL_F(fini_erf_f32[6]), outer = ALL_F(fini_erfc_f32[10]);
    for (int i = 5; i >= 0; i--)
        inner = FMA_F(inner, square, ALL_F(fini_erf_f32[i]));
    F s = MIN_F(ALL_F(4.0f), size) - 2.5f;
    for (int i = 9; i >= 0; i--)
        outer = FMA_F(outer, s, ALL_F(fini_erfc_f32[i]));
    return SELECT_F(x * inner, SIGNED_F(FMA_F(-gauss, outer, ALL_F(1.0f)), x), 1.0f - size);
}

/* Sums over tokens, for a unit of df: with e = erf'(lam chi) / (2/sqrt pi), w = erf(lam chi). */
#define REDUCED_SUMS(S)                                                                            \
    S(ea) /* sum e z a, a = X.u1 */                                                                \
    S(eb) /* sum e z b, b = X.u2 */                                                                \
    S(wa)                                                                                          \
    S(wb)                                                                                          \
    S(ee) /* sum (e z)^2 */                                                                        \
    S(ew) /* sum e z w */                                                                          \
    S(ww)
typedef struct token_sums {
#define MEMBER(name) F name;
    REDUCED_SUMS(MEMBER)
#undef MEMBER
} token_sums;
typedef struct sample_sums {
#define MEMBER(name) V name;
    REDUCED_SUMS(MEMBER)
#undef MEMBER
} sample_sums;

static inline void add_token(token_sums *s, F lam, F rho, F root, F a, F b)
{
    F x = lam * a, e = GAUSS_F(x), w = ERF_F(x, e), z = FMA_F(rho, a, root * b), ez = e * z;
    s->ea = FMA_F(ez, a, s->ea);
    s->eb = FMA_F(ez, b, s->eb);
    s->wa = FMA_F(w, a, s->wa);
    s->wb = FMA_F(w, b, s->wb);
    s->ee = FMA_F(ez, ez, s->ee);
    s->ew = FMA_F(ez, w, s->ew);
    s->ww = FMA_F(w, w, s->ww);
}

/* Where k, v, k*, v* are in the frame, and the two gradients. */
typedef struct reduced_run {
    V kappa, nu, theta, eta, rho, lam;
    V root, kappa2, nu2, n3, k3, k4; /* v = rho u1 + root u2, v* = eta u1 + nu2 u2 + n3 u3, ... */
    V gk[4], gv[4];                  /* on u1 .. u4 */
    V relevant_k, relevant_v;        /* sums of p and of q over relevant tokens */
    V M[3], Mr[3];                   /* of the other tokens; of the relevant ones, over gamma^2 */
    V g_lam;
} reduced_run;

static inline void reduced_begin(reduced_run *o)
{
    const double least = 1e-30; /* of a squared length: the direction is then arbitrary */
    V rest = 1.0 - o->rho * o->rho, side = (1.0 - o->kappa) * (1.0 + o->kappa);
    o->root = SQRT(MAX(ALL(least), rest));
    V far = SQRT(MAX(ALL(0.0), side)), high = SQRT(MAX(ALL(0.0), 1.0 - o->eta * o->eta));
    o->kappa2 = MAX(-far, MIN(far, (o->theta - o->rho * o->kappa) / o->root));
    o->nu2 = MAX(-high, MIN(high, (o->nu - o->rho * o->eta) / o->root));
    o->n3 = SQRT(MAX(ALL(least), 1.0 - o->eta * o->eta - o->nu2 * o->nu2));
    V left = SQRT(MAX(ALL(0.0), side - o->kappa2 * o->kappa2));
    o->k3 = MAX(-left, MIN(left, -(o->kappa * o->eta + o->kappa2 * o->nu2) / o->n3));
    o->k4 = SQRT(MAX(ALL(0.0), left * left - o->k3 * o->k3));
    for (int i = 0; i < 4; i++)
        o->gk[i] = o->gv[i] = ALL(0.0);
    for (int i = 0; i < 3; i++)
        o->M[i] = o->Mr[i] = ALL(0.0);
    o->relevant_k = o->relevant_v = o->g_lam = ALL(0.0);
}

/* The relevant token from its three normals (and one for the output), then the sample's share of
 * the gradients. s: sums over its other tokens. */
static inline void reduced_sample(const fini_reduction *p, reduced_run *o, const sample_sums *s,
                                  const V normal[4])
{
    const double c0 = FINI_TWO_OVER_ROOT_PI;
    V a = FMA(ALL(p->mu), o->kappa, p->gamma * normal[0]);
    V b = FMA(ALL(p->mu), o->kappa2, p->gamma * normal[1]);
    V c = FMA(ALL(p->mu), o->k3, p->gamma * normal[2]);
    V y = o->eta * a + o->nu2 * b + o->n3 * c + p->eps * normal[3];
    V z = o->rho * a + o->root * b, x = o->lam * a, size = MAX(x, -x);
    V e = EXP_NEGATIVE(-x * x), w = SIGN_OF(x) * (1.0 - e * ERFCX(size)), ez = e * z;
    V f = o->rho * s->wa + o->root * s->wb + w * z;
    V df = (f - y) * (2.0 / (double)p->batch), dp = df * c0, dl = dp * o->lam;
    V slope = ez * a + s->ea;
    o->g_lam = FMA(dp, slope, o->g_lam);
    o->gk[0] = FMA(dl, slope, o->gk[0]);
    o->gk[1] = FMA(dl, ez * b + s->eb, o->gk[1]);
    o->gk[2] = FMA(dl, ez * c, o->gk[2]);
    o->gv[0] = FMA(df, w * a + s->wa, o->gv[0]);
    o->gv[1] = FMA(df, w * b + s->wb, o->gv[1]);
    o->gv[2] = FMA(df, w * c, o->gv[2]);
    o->relevant_k = FMA(dl, ez, o->relevant_k);
    o->relevant_v = FMA(df, w, o->relevant_v);
    V kk = dl * dl, kv = dl * df, vv = df * df;
    o->M[0] = FMA(kk, s->ee, o->M[0]);
    o->M[1] = FMA(kv, s->ew, o->M[1]);
    o->M[2] = FMA(vv, s->ww, o->M[2]);
    o->Mr[0] = FMA(kk, ez * ez, o->Mr[0]);
    o->Mr[1] = FMA(kv, ez * w, o->Mr[1]);
    o->Mr[2] = FMA(vv, w * w, o->Mr[2]);
}

/* Lower factor of [M0 M1; M1 M2]; zeros if it is singular. */
static inline void factor2(const V M[3], V C[3])
{
    C[0] = SQRT(MAX(ALL(0.0), M[0]));
    C[1] = M[1] / MAX(ALL(1e-300), C[0]);
    C[2] = SQRT(MAX(ALL(0.0), M[2] - C[1] * C[1]));
}

/* The rest of the gradients, then the step. chi: two chi-squares, d - 4 and d - 5 degrees. */
static inline void reduced_end(const fini_reduction *p, double alpha, reduced_run *o,
                               const V normal[5], const V chi[2])
{
    V C[3], g2 = ALL(p->gamma * p->gamma);
    factor2(o->M, C);
    o->gk[2] = FMA(C[0], normal[0], o->gk[2]);
    o->gv[2] += C[1] * normal[0] + C[2] * normal[1];
    for (int i = 0; i < 3; i++)
        o->M[i] = FMA(g2, o->Mr[i], o->M[i]);
    factor2(o->M, C);
    V mean = p->mu * o->k4;
    o->gk[3] = mean * o->relevant_k + C[0] * normal[2];
    o->gv[3] = mean * o->relevant_v + C[1] * normal[2] + C[2] * normal[3];
    V chi0 = SQRT(chi[0]), low = C[1] * chi0 + C[2] * normal[4];
    V W00 = C[0] * C[0] * chi[0], W01 = C[0] * chi0 * low;
    V W11 = low * low + C[2] * C[2] * chi[1];

    V pull = ALL(2.0 * p->penalty) * o->rho; /* of penalty (k.v)^2 */
    o->gk[1] = FMA(pull, o->root, o->gk[1]);
    o->gv[0] += pull;

    /* k = u1 and its gradient's part along it goes; v = rho u1 + root u2. */
    V along = o->rho * o->gv[0] + o->root * o->gv[1];
    V k2 = -alpha * o->gk[1], k3 = -alpha * o->gk[2], k4 = -alpha * o->gk[3];
    V v1 = o->rho - alpha * (o->gv[0] - along * o->rho);
    V v2 = o->root - alpha * (o->gv[1] - along * o->root);
    V v3 = -alpha * o->gv[2], v4 = -alpha * o->gv[3];
    double alpha2 = alpha * alpha;
    V by_k = 1.0 / SQRT(1.0 + k2 * k2 + k3 * k3 + k4 * k4 + alpha2 * W00);
    V by_v = 1.0 / SQRT(v1 * v1 + v2 * v2 + v3 * v3 + v4 * v4 + alpha2 * W11);
    V next[5] = {(o->kappa + k2 * o->kappa2 + k3 * o->k3 + k4 * o->k4) * by_k,
                 (v1 * o->eta + v2 * o->nu2 + v3 * o->n3) * by_v,
                 (v1 * o->kappa + v2 * o->kappa2 + v3 * o->k3 + v4 * o->k4) * by_v,
                 (o->eta + k2 * o->nu2 + k3 * o->n3) * by_k,
                 (v1 + k2 * v2 + k3 * v3 + k4 * v4 + alpha2 * W01) * by_k * by_v};
    for (int i = 0; i < 5; i++)
        next[i] = MAX(ALL(-1.0), MIN(ALL(1.0), next[i]));
    o->kappa = next[0];
    o->nu = next[1];
    o->theta = next[2];
    o->eta = next[3];
    o->rho = next[4];
    if (p->alpha_lam > 0) {
        V lam = MAX(ALL(0.0), o->lam - p->alpha_lam * o->g_lam);
        o->lam = SELECT(lam, ALL(NAN), FINI_LAM_MOST - lam);
    }
}

/* Chi-squares of `count` lanes with 2 scale + 2/3 degrees from a normal x and an exponential e each
 * (Marsaglia and Tsang 2000 with -log u = e): at once in more than 99 of 100 tries when d = 80. With
 * s = c x it is good if e > -scale (1.5 s^2 - 3 s - s^3 + 3 log(1 + s)), which is 0.75 s^4 - 0.6 s^5 + ...
 * in units of scale, and below 1.5 s^4 where s > -1/2: no logarithm in nearly all tries. */
static void chi_squares(const fini_reduction *p, int64_t step, int first_lane, int count,
                        uint32_t retry, double scale, const double *x, const double *e, double *chi)
{
    double c = 1 / sqrt(9 * scale), enough = 1 / (54 * scale);
    int far = 0;
    for (int lane = 0; lane < count; lane++) {
        double t = 1 + c * x[lane], xx = x[lane] * x[lane];
        chi[lane] = 2 * scale * (t * t * t);
        far |= !(t > 0.5) | !(e[lane] > enough * (xx * xx));
    }
    for (int lane = 0; lane < count && far; lane++) {
        double t = 1 + c * x[lane], v = t * t * t, xx = x[lane] * x[lane];
        if (t > 0 && e[lane] > -(0.5 * xx + scale * (1 - v + log(v))))
            continue;
        uint64_t run = p->run + (uint64_t)(first_lane + lane);
        chi[lane] = 2 * scale *
                    fini_gamma_retry((fini_key){p->seed, (run << 40) + (uint64_t)step, p->stream},
                                     retry, scale);
    }
}

/* Registers of doubles with a run in them, if so many are left. */
static inline int halves_of(int runs)
{
    return runs > LANES_V ? HALVES : 1;
}

/* One step of LANES_F runs. */
static inline void reduced_step(const fini_reduction *p, const lane_keys *keys, int64_t step,
                                int first_lane, int halves, double alpha, reduced_run *o)
{
    F lam, rho, root;
    normal_source source;
    source.at = source.end = source.buffer;
    source.next = 0;
    source.left = (p->batch * (p->L + 1) + 6 + 1) / 2;
    for (int h = 0; h < HALVES && h < halves; h++)
        reduced_begin(&o[h]);
    NARROW(lam, o, lam)
    NARROW(rho, o, rho)
    NARROW(root, o, root)
    for (int64_t i = 0; i < p->batch; i++) {
        V normal[HALVES][4];
        for (int j = 0; j < 4; j += 2) {
            const F *two = two_normals(&source, keys);
            for (int h = 0; h < HALVES && h < halves; h++) {
                normal[h][j] = WIDE(two[0], h);
                normal[h][j + 1] = WIDE(two[1], h);
            }
        }
        sample_sums sums[HALVES];
#define ZERO(name) sums[h].name = ALL(0.0);
        for (int h = 0; h < HALVES && h < halves; h++) {
            REDUCED_SUMS(ZERO)
        }
#undef ZERO
        for (int64_t from = 1; from < p->L; from += FEW_TOKENS) {
            int64_t to = p->L - from < FEW_TOKENS ? p->L : from + FEW_TOKENS;
            token_sums few;
#define ZERO(name) few.name = ALL_F(0.0f);
            REDUCED_SUMS(ZERO)
#undef ZERO
            for (int64_t l = from; l < to; l++) {
                const F *two = two_normals(&source, keys);
                add_token(&few, lam, rho, root, two[0], two[1]);
            }
            for (int h = 0; h < HALVES && h < halves; h++) {
#define ADD(name) sums[h].name += WIDE(few.name, h);
                REDUCED_SUMS(ADD)
#undef ADD
            }
        }
        for (int h = 0; h < HALVES && h < halves; h++)
            reduced_sample(p, &o[h], &sums[h], normal[h]);
    }
    F rest[12];
    for (int j = 0; j < 12; j += 2)
        memcpy(rest + j, two_normals(&source, keys), 2 * sizeof *rest);
    double x[LANES_F], e[LANES_F], chi[2][LANES_F];
    for (int which = 0; which < 2; which++) {
        for (int h = 0; h < HALVES && h < halves; h++) {
            const F *r = rest + 5 + 3 * which;
            V e1 = WIDE(r[1], h), e2 = WIDE(r[2], h);
            STORE_V(x + h * LANES_V, WIDE(r[0], h));
            STORE_V(e + h * LANES_V, 0.5 * (e1 * e1 + e2 * e2));
        }
        double scale = 0.5 * (double)(p->d - 4 - which) - 1.0 / 3;
        chi_squares(p, step, first_lane, halves * LANES_V, UINT32_MAX - (uint32_t)which, scale, x,
                    e, chi[which]);
    }
    for (int h = 0; h < HALVES && h < halves; h++) {
        V normal[5], both[2] = {LOAD_V(chi[0] + h * LANES_V), LOAD_V(chi[1] + h * LANES_V)};
        for (int j = 0; j < 5; j++)
            normal[j] = WIDE(rest[j], h);
        reduced_end(p, alpha, &o[h], normal, both);
    }
}

/* `steps` steps of FINI_RUNS runs from step `first` on; lam[t] and alpha[t] belong to first + t. */
static void reduced(const fini_reduction *p, int64_t first, int64_t steps, const double *lam,
                    const double *alpha, double state[][FINI_RUNS])
{
    int lanes = p->runs > 0 ? p->runs : FINI_RUNS;
    for (int lane = 0; lane < lanes; lane += LANES_F) {
        reduced_run o[HALVES];
        lane_keys keys;
        const int halves = halves_of(lanes - lane);
        lanes_open(&keys, p->seed, p->stream, p->run + (uint64_t)lane, lanes - lane);
        memset(o, 0, sizeof o);
        for (int h = 0; h < halves; h++) {
            const int at = lane + h * LANES_V;
            o[h].kappa = LOAD_V(&state[0][at]);
            o[h].nu = LOAD_V(&state[1][at]);
            o[h].theta = LOAD_V(&state[2][at]);
            o[h].eta = LOAD_V(&state[3][at]);
            o[h].rho = LOAD_V(&state[4][at]);
            o[h].lam = LOAD_V(&state[5][at]);
        }
        for (int64_t t = 0; t < steps; t++) {
            lanes_step(&keys, first + t);
            for (int h = 0; h < halves && p->alpha_lam == 0; h++)
                o[h].lam = ALL(lam[t]);
            reduced_step(p, &keys, first + t, lane, halves, alpha[t], o);
        }
        for (int h = 0; h < halves; h++) {
            const int at = lane + h * LANES_V;
            STORE_V(&state[0][at], o[h].kappa);
            STORE_V(&state[1][at], o[h].nu);
            STORE_V(&state[2][at], o[h].theta);
            STORE_V(&state[3][at], o[h].eta);
            STORE_V(&state[4][at], o[h].rho);
            STORE_V(&state[5][at], o[h].lam);
        }
    }
}
