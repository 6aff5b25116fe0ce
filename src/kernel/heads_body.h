/* Online SGD with a sum of H erf heads on P pairs (k*, v*), exact in law at a cost that does not
 * depend on d; LANES_F runs side by side.
 *
 * Included once by every kernel file after reduced_body.h, whose functions of tokens it uses; there
 * is the idea, for one head and one pair. N = 2H vectors k_1, v_1, k_2, v_2, ... move, and there are
 * 2P that do not: v*_1 .. v*_P, k*_1 .. k*_P, orthonormal. A run is the Gram matrix of all of them.
 * Its Cholesky factor is where they stand in a frame whose first N vectors span those that move, the
 * next P what the v* have beyond them, the last P what the k* have beyond all these.
 *
 * A gradient is a sum over tokens, g_i = sum r_i X. The weights r depend on a token's first N
 * coordinates and, through the output, on the relevant tokens' first N + P. Those are drawn. Given
 * them the other coordinates of the gradients are normal with covariance
 *     M  = sum r r' over ordinary tokens on the P after the first N, and
 *     M' = M + gamma^2 Mr on the last P and on the n = d - 2H - 2P dimensions that no vector has,
 *     Mr = sum over samples of     sum_p r_p r_p'              (tokens with noise of their own)
 *                              or  (sum_p r_p) (sum_p r_p)'    (one noise for all P of a sample),
 * since P tokens mu k*_p + gamma G with one and the same G give g_i the share gamma (sum_p r_pi) G.
 * The Gram matrix of what lies in the n dimensions is Wishart_N(n, M'): a lower triangle by
 * Bartlett's decomposition, chi with n, n - 1, ... degrees on its diagonal, normals below.
 *
 * Ordinary tokens are drawn and summed in float and added up in double; all else is double. */

enum { HN = 2 * FINI_HEADS, HP = FINI_HEADS, HALL = 4 * FINI_HEADS };

typedef struct heads_run {
    V lam;
    V C[HN * HALL],
        D[HN * HALL];      /* (N, all), (2P, all): coordinates; what is above is not looked at */
    V g[HN * (HALL + HN)]; /* (N, all): gradients; then (N, N) beyond the frame */
    V R[HP * HN];          /* (P, N): sums of the weights of relevant tokens */
    V M[HN * HN], Mr[HN * HN]; /* lower triangles */
} heads_run;

/* Rows of the state: products of vectors that move, i > j, then theirs with those that do not. */
static inline int heads_row(int i, int j)
{
    return i * (i - 1) / 2 + j;
}

static inline void heads_begin(const int N, const int P, const V *gram, heads_run *o)
{
    const int all = N + 2 * P;
    const double least = 1e-12; /* of a squared length: below, a direction is rounding */
    const V *star = gram + heads_row(N, 0);
    V *C = o->C, *D = o->D, inverse[HALL];
    for (int i = 0; i < N; i++) {
        V rest = ALL(1.0);
        for (int j = 0; j < i; j++) {
            V x = gram[heads_row(i, j)];
            for (int l = 0; l < j; l++)
                x -= C[i * all + l] * C[j * all + l];
            C[i * all + j] = x = x * inverse[j];
            rest -= x * x;
        }
        C[i * all + i] = SQRT(MAX(ALL(least), rest));
        inverse[i] = 1.0 / C[i * all + i];
    }
    for (int s = 0; s < 2 * P; s++) {
        V rest = ALL(1.0);
        for (int j = 0; j < N + s; j++) {
            const V *row = j < N ? C + j * all : D + (j - N) * all;
            V x = j < N ? star[j * 2 * P + s] : ALL(0.0);
            for (int l = 0; l < j; l++)
                x -= D[s * all + l] * row[l];
            D[s * all + j] = x = x * inverse[j];
            rest -= x * x;
        }
        D[s * all + N + s] = SQRT(MAX(ALL(least), rest));
        inverse[N + s] = 1.0 / D[s * all + N + s];
    }
    for (int i = 0; i < N * all; i++)
        o->g[i] = ALL(0.0);
    for (int i = 0; i < P * N; i++)
        o->R[i] = ALL(0.0);
    for (int i = 0; i < N * N; i++)
        o->M[i] = o->Mr[i] = ALL(0.0);
}

/* Sums over the ordinary tokens of a sample, for a unit of df and with e = erf'(lam chi) / (2/sqrt pi)
 * in place of erf' lam: T_ij = sum r_i a_j, Q_ij = sum r_i r_j (j <= i), r = (e_1 z_1, w_1, ...). */
static inline void heads_tokens(const int N, const F *C, int64_t tokens, normal_source *source,
                                const lane_keys *keys, F *T, F *Q)
{
    for (int i = 0; i < N * N; i++)
        T[i] = Q[i] = ALL_F(0.0f);
    for (int64_t l = 0; l < tokens; l++) {
        F a[HN], r[HN];
        for (int j = 0; j < N; j += 2) {
            const F *two = two_normals(source, keys);
            a[j] = two[0];
            a[j + 1] = two[1];
        }
        for (int i = 0; i < N; i += 2) { /* C has lam in its rows of k */
            F x = C[i * N] * a[0], z = C[(i + 1) * N] * a[0];
            for (int j = 1; j <= i; j++)
                x = FMA_F(C[i * N + j], a[j], x);
            for (int j = 1; j <= i + 1; j++)
                z = FMA_F(C[(i + 1) * N + j], a[j], z);
            F e = GAUSS_F(x);
            r[i] = e * z;
            r[i + 1] = ERF_F(x, e);
        }
        for (int i = 0; i < N; i++) {
            for (int j = 0; j < N; j++)
                T[i * N + j] = FMA_F(r[i], a[j], T[i * N + j]);
            for (int j = 0; j <= i; j++)
                Q[i * N + j] = FMA_F(r[i], r[j], Q[i * N + j]);
        }
    }
}

/* The relevant tokens from their normals (a row of N + P each, or one for all), the output (one
 * normal more), then the sample's share of the gradients. */
static inline void heads_sample(const int N, const int P, const fini_reduction *p, heads_run *o,
                                const V *T, const V *Q, const V *normal)
{
    const int all = N + 2 * P, seen = N + P;
    V X[HP * (HN + HP)], r[HP * HN], sum[HN];
    V y = p->eps * normal[p->shared ? seen : P * seen], f = ALL(0.0);
    for (int q = 0; q < P; q++) {
        const V *star = o->D + (P + q) * all, *value = o->D + q * all;
        V *x = X + q * seen;
        for (int j = 0; j < seen; j++)
            x[j] = FMA(ALL(p->mu), star[j], p->gamma * normal[p->shared ? j : q * seen + j]);
        for (int j = 0; j <= N + q; j++)
            y = FMA(value[j], x[j], y);
        for (int i = 0; i < N; i += 2) {
            V chi = ALL(0.0), z = ALL(0.0);
            for (int j = 0; j <= i; j++)
                chi = FMA(o->C[i * all + j], x[j], chi);
            for (int j = 0; j <= i + 1; j++)
                z = FMA(o->C[(i + 1) * all + j], x[j], z);
            V at = o->lam * chi, size = MAX(at, -at), e = EXP_NEGATIVE(-at * at);
            V w = SIGN_OF(at) * (1.0 - e * ERFCX(size));
            r[q * N + i] = e * z;
            r[q * N + i + 1] = w;
            f = FMA(w, z, f);
        }
    }
    for (int i = 1; i < N; i += 2)
        for (int j = 0; j <= i; j++)
            f = FMA(o->C[i * all + j], T[i * N + j], f);
    V df = (f - y) * (2.0 / (double)p->batch), df2 = df * df;
    for (int i = 0; i < N; i++) {
        sum[i] = ALL(0.0);
        for (int j = 0; j < seen; j++) {
            V own = j < N ? T[i * N + j] : ALL(0.0);
            for (int q = 0; q < P; q++)
                own = FMA(r[q * N + i], X[q * seen + j], own);
            o->g[i * all + j] = FMA(df, own, o->g[i * all + j]);
        }
        for (int q = 0; q < P; q++) {
            o->R[q * N + i] = FMA(df, r[q * N + i], o->R[q * N + i]);
            sum[i] += r[q * N + i];
        }
        for (int j = 0; j <= i; j++) {
            V own = ALL(0.0);
            for (int q = 0; q < P; q++)
                own = FMA(r[q * N + i], r[q * N + j], own);
            o->M[i * N + j] = FMA(df2, Q[i * N + j], o->M[i * N + j]);
            o->Mr[i * N + j] = FMA(df2, p->shared ? sum[i] * sum[j] : own, o->Mr[i * N + j]);
        }
    }
}

/* Lower factor of a covariance, which may be singular: sums in float leave it singular to 1e-7 only,
 * and no entry is larger than what its row has left. */
static inline void heads_factor(const int N, const V *M, V *B)
{
    for (int i = 0; i < N; i++) {
        V rest = MAX(ALL(0.0), M[i * N + i]), length = SQRT(rest);
        for (int j = 0; j < i; j++) {
            V x = M[i * N + j];
            for (int l = 0; l < j; l++)
                x -= B[i * N + l] * B[j * N + l];
            x = x / MAX(ALL(1e-300), B[j * N + j]);
            B[i * N + j] = x = MAX(-length, MIN(length, x));
            rest = MAX(ALL(0.0), rest - x * x);
            length = SQRT(rest);
        }
        B[i * N + i] = length;
    }
}

/* The rest of the gradients, then the step. normal: 2P rows of N, then the lower triangle of
 * Bartlett's matrix; chi: N chi-squares, d - all, d - all - 1, ... degrees. */
static inline void heads_end(const int N, const int P, const fini_reduction *p, double alpha,
                             heads_run *o, const V *normal, const V *chi, V *gram)
{
    const int all = N + 2 * P;
    V B[HN * HN], *g = o->g, *beyond = o->g + N * all, scale = FINI_TWO_OVER_ROOT_PI * o->lam;
    for (int i = 0; i < N; i += 2) { /* of k's gradients: what was left out of erf' */
        for (int j = 0; j < N + P; j++)
            g[i * all + j] *= scale;
        for (int q = 0; q < P; q++)
            o->R[q * N + i] *= scale;
        for (int j = 0; j < N; j++) {
            const int at = j < i ? i * N + j : j * N + i;
            o->M[at] *= j == i ? scale * scale : scale;
            o->Mr[at] *= j == i ? scale * scale : scale;
        }
    }
    heads_factor(N, o->M, B);
    for (int q = 0; q < P; q++)
        for (int i = 0; i < N; i++)
            for (int j = 0; j <= i; j++)
                g[i * all + N + q] = FMA(B[i * N + j], normal[q * N + j], g[i * all + N + q]);
    for (int i = 0; i < N * N; i++)
        o->M[i] = FMA(ALL(p->gamma * p->gamma), o->Mr[i], o->M[i]);
    heads_factor(N, o->M, B);
    for (int q = 0; q < P; q++)
        for (int i = 0; i < N; i++) {
            V mean = ALL(0.0);
            for (int t = q; t < P; t++) /* k*_t has this coordinate */
                mean = FMA(o->R[t * N + i], o->D[(P + t) * all + N + P + q], mean);
            mean = p->mu * mean;
            for (int j = 0; j <= i; j++)
                mean = FMA(B[i * N + j], normal[(P + q) * N + j], mean);
            g[i * all + N + P + q] = mean;
        }
    const V *below = normal + 2 * P * N;
    for (int j = 0; j < N; j++) {
        V root = SQRT(chi[j]);
        for (int i = j; i < N; i++) {
            V x = B[i * N + j] * root;
            for (int l = j + 1; l <= i; l++)
                x = FMA(B[i * N + l], below[heads_row(l, j)], x);
            beyond[i * N + j] = -alpha * x;
        }
    }

    for (int i = 0; i < N; i++) { /* g becomes where the vectors go */
        const V *c = o->C + i * all;
        V along = ALL(0.0), length = ALL(0.0);
        for (int j = 0; j <= i; j++)
            along = FMA(c[j], g[i * all + j], along);
        for (int j = 0; j < all; j++) {
            V x = j <= i ? c[j] - alpha * (g[i * all + j] - along * c[j]) : -alpha * g[i * all + j];
            g[i * all + j] = x;
            length = FMA(x, x, length);
        }
        for (int j = 0; j <= i; j++)
            length = FMA(beyond[i * N + j], beyond[i * N + j], length);
        length = 1.0 / SQRT(length) + (length - length); /* NaN if a step is not finite */
        for (int j = 0; j < all; j++)
            g[i * all + j] *= length;
        for (int j = 0; j <= i; j++)
            beyond[i * N + j] *= length;
    }
    V *star = gram + heads_row(N, 0);
    for (int i = 0; i < N; i++) {
        for (int j = 0; j < i; j++) {
            V x = ALL(0.0);
            for (int l = 0; l < all; l++)
                x = FMA(g[i * all + l], g[j * all + l], x);
            for (int l = 0; l <= j; l++)
                x = FMA(beyond[i * N + l], beyond[j * N + l], x);
            gram[heads_row(i, j)] = MAX(ALL(-1.0), MIN(ALL(1.0), x));
        }
        for (int s = 0; s < 2 * P; s++) {
            V x = ALL(0.0);
            for (int l = 0; l <= N + s; l++)
                x = FMA(g[i * all + l], o->D[s * all + l], x);
            star[i * 2 * P + s] = MAX(ALL(-1.0), MIN(ALL(1.0), x));
        }
    }
}

static inline void some_normals(int count, normal_source *source, const lane_keys *keys, F *out)
{
    for (int j = 0; j < count; j += 2)
        memcpy(out + j, two_normals(source, keys), 2 * sizeof *out);
}

/* One step of LANES_F runs. Inlined with constant H and P, so that the loops over them unroll. */
static inline __attribute__((always_inline)) void
heads_step(const int H, const int P, const fini_reduction *p, const lane_keys *keys, int64_t step,
           int first_lane, int halves, double alpha, heads_run *o, V (*gram)[FINI_HEADS_STATE])
{
    const int N = 2 * H, all = N + 2 * P;
    const int relevant = (p->shared ? 1 : P) * (N + P) + 1; /* normals of a sample */
    const int even = relevant + relevant % 2, triangle = heads_row(N, 0);
    const int last = 2 * P * N + triangle + 3 * N;
    F C[HN * HN], T[HN * HN], Q[HN * HN];
    F few[HP * (HN + HP) + 2], rest[2 * HP * HN + HN * (HN - 1) / 2 + 3 * HN + 1];
    V wide[2 * HP * HN + HN * (HN - 1) / 2], wide_T[HN * HN], wide_Q[HN * HN];
    normal_source source;
    source.at = source.end = source.buffer;
    source.next = 0;
    source.left = (p->batch * ((p->L - P) * N + even) + last + 3) / 4;
    for (int h = 0; h < HALVES && h < halves; h++)
        heads_begin(N, P, gram[h], &o[h]);
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++) {
            NARROW(C[i * N + j], o, C[i * all + j])
        }
    F lam;
    NARROW(lam, o, lam)
    for (int i = 0; i < N; i += 2)
        for (int j = 0; j <= i; j++)
            C[i * N + j] *= lam;
    for (int64_t i = 0; i < p->batch; i++) {
        some_normals(even, &source, keys, few);
        V sum_T[HALVES][HN * HN], sum_Q[HALVES][HN * HN];
        bool once = p->L - P <= FEW_TOKENS;
        for (int64_t from = P; from < p->L || from == P; from += FEW_TOKENS) {
            int64_t count = p->L - from < FEW_TOKENS ? p->L - from : FEW_TOKENS;
            heads_tokens(N, C, count, &source, keys, T, Q);
            for (int h = 0; h < HALVES && h < halves && !once; h++)
                for (int j = 0; j < N * N; j++) {
                    sum_T[h][j] = from == P ? WIDE(T[j], h) : sum_T[h][j] + WIDE(T[j], h);
                    sum_Q[h][j] = from == P ? WIDE(Q[j], h) : sum_Q[h][j] + WIDE(Q[j], h);
                }
        }
        for (int h = 0; h < HALVES && h < halves; h++) {
            for (int j = 0; j < relevant; j++)
                wide[j] = WIDE(few[j], h);
            for (int j = 0; j < N * N && once; j++) {
                wide_T[j] = WIDE(T[j], h);
                wide_Q[j] = WIDE(Q[j], h);
            }
            heads_sample(N, P, p, &o[h], once ? wide_T : sum_T[h], once ? wide_Q : sum_Q[h], wide);
        }
    }
    some_normals(last, &source, keys, rest);
    double x[LANES_F], e[LANES_F], chi[HN][LANES_F];
    for (int which = 0; which < N; which++) {
        const F *r = rest + 2 * P * N + triangle + 3 * which;
        for (int h = 0; h < HALVES && h < halves; h++) {
            V e1 = WIDE(r[1], h), e2 = WIDE(r[2], h);
            STORE_V(x + h * LANES_V, WIDE(r[0], h));
            STORE_V(e + h * LANES_V, 0.5 * (e1 * e1 + e2 * e2));
        }
        /* A try takes every second block: 2^20 of them before two would meet. */
        uint32_t retry = UINT32_MAX - (uint32_t)(which % 2) - ((uint32_t)(which / 2) << 21);
        double scale = 0.5 * (double)(p->d - all - which) - 1.0 / 3;
        chi_squares(p, step, first_lane, halves * LANES_V, retry, scale, x, e, chi[which]);
    }
    for (int h = 0; h < HALVES && h < halves; h++) {
        V squares[HN];
        for (int j = 0; j < 2 * P * N + triangle; j++)
            wide[j] = WIDE(rest[j], h);
        for (int j = 0; j < N; j++)
            squares[j] = LOAD_V(chi[j] + h * LANES_V);
        heads_end(N, P, p, alpha, &o[h], wide, squares, gram[h]);
    }
}

/* `steps` steps of FINI_RUNS runs from step `first` on; lam[t] and alpha[t] belong to first + t. */
static void heads(const fini_reduction *p, int64_t first, int64_t steps, const double *lam,
                  const double *alpha, double state[][FINI_RUNS])
{
    const int rows = FINI_HEADS_ROWS(p->H, p->P), lanes = p->runs > 0 ? p->runs : FINI_RUNS;
    for (int lane = 0; lane < lanes; lane += LANES_F) {
        heads_run o[HALVES];
        V gram[HALVES][FINI_HEADS_STATE];
        lane_keys keys;
        const int halves = halves_of(lanes - lane);
        lanes_open(&keys, p->seed, p->stream, p->run + (uint64_t)lane, lanes - lane);
        memset(o, 0, sizeof o);
        for (int h = 0; h < halves; h++)
            for (int i = 0; i < rows; i++)
                gram[h][i] = LOAD_V(&state[i][lane + h * LANES_V]);
        for (int64_t t = 0; t < steps; t++) {
            lanes_step(&keys, first + t);
            for (int h = 0; h < halves; h++)
                o[h].lam = ALL(lam[t]);
            if (p->H == 2 && p->P == 2)
                heads_step(2, 2, p, &keys, first + t, lane, halves, alpha[t], o, gram);
            else
                heads_step(p->H, p->P, p, &keys, first + t, lane, halves, alpha[t], o, gram);
        }
        for (int h = 0; h < halves; h++)
            for (int i = 0; i < rows; i++)
                STORE_V(&state[i][lane + h * LANES_V], gram[h][i]);
    }
}
