/* The exact risk of the erf predictor and its gradient in the five overlaps and in lam.
 *
 * Included once by every kernel file, with V a double or a vector of doubles and FMA, EXP, ERF,
 * ERFC, ATAN, SQRT, MIN, MAX, SIGN_OF defined for it, so that the formula stands here only.
 *
 * The textbook form (theory: R = gamma^2 + eps^2 - 2 E[Yf] + S + ...) cancels badly when the risk is
 * near eps^2. Here the risk is written as a sum of variances and a squared bias instead. For a
 * relevant token let e = erf(lam chi), b = 1 - e, z = X.v, o = X.v*; another token adds
 * w = erf(lam chi) z; there are m relevant tokens and N = E[L] - m others on average:
 *
 *     R = eps^2 + m Vs + N Vn + (m s + N C)^2 + Var(L) C^2
 *     Vs = Var(e z - o)   Vn = Var(w)   s = E[e z - o]   C = E[w]
 *
 * and, k -> -k with v -> -v leaving f unchanged, kappa >= 0 is no restriction, so that b is the
 * small quantity. e z - o = (z - o) - b z; Gaussian integration by parts gives
 *
 *     Vs = 2 g2 (1-nu) erf x - 2 g2 (rho-eta)(b1 t + b2 g2 rho)
 *        + (t^2 + g2) W + g2 erfc(x)^2 + 2 t g2 rho P1 + g2^2 rho^2 P2
 *     g2 = gamma^2, t = mu theta, x = lam mu kappa / B, B = sqrt(1 + 2 lam^2 gamma^2), r = lam/B
 *     b1 = E[b'] = -r Ex,  b2 = E[b''] = 2 x r^2 Ex,  Ex = (2/sqrt pi) exp(-x^2)
 *     W = Var(b) = zeta - erf(x)^2 = (4/pi) int_a^1 exp(-x^2 (1+u^2)) / (1+u^2) du
 *     a = 1/sqrt(1 + 4 lam^2 gamma^2), y = a x
 *     P1 = 2 E[b b'] - E[b] E[b'] = -r Ex (2 erfc y - erfc x)
 *     P2 = E[(b^2)''] - E[b']^2   = r^2 Ex (2 a Ey + 4 x erfc y - Ex)
 *
 * W is Owen's T difference 8 (T(h,1) - T(h,a)), h = sqrt2 x: a positive integral, so Gauss-Legendre
 * over the part of [a, 1] where the integrand is above exp(-37) of its first value gives it to full
 * relative accuracy however small it is, and the same nodes give dW/dx = -(8x/pi) int exp(...).
 */

/* What the gradient needs of lam and of the task, and what it needs of the point. */
typedef struct erf_lam {
    V g2, mu, m, N, spread, r, a, q, c;
} erf_lam;
typedef struct erf_at {
    V x, Ex, Ey, erf_x, erfc_x, erfc_y, W, W_x;
} erf_at;

/* kappa, nu, theta, eta, rho; signs are such that kappa >= 0. */
static inline void ERF_GRADIENT(const erf_lam *l, const erf_at *p, V nu, V theta, V eta, V rho,
                                V out[5])
{
    V g2 = l->g2, mu = l->mu, r = l->r, a = l->a, x = p->x, y = a * x, t = mu * theta;
    V Ex = p->Ex, Ey = p->Ey, tilt = rho - eta;
    V rE = r * Ex, b1 = -rE, b2 = 2.0 * x * r * rE, b3 = r * r * rE * (2.0 - 4.0 * x * x);
    V twice = 2.0 * p->erfc_y - p->erfc_x, inner = 2.0 * a * Ey + 4.0 * x * p->erfc_y - Ex;
    V P1 = -rE * twice, P2 = r * rE * inner;
    V x_k = r * mu; /* dx/dkappa */
    V P1_k = x_k * rE * (2.0 * x * twice + 2.0 * a * Ey - Ex);
    V P2_k = x_k * r * rE *
             (-2.0 * x * inner - 4.0 * a * a * y * Ey + 4.0 * p->erfc_y - 4.0 * x * a * Ey +
              2.0 * x * Ex);
    V slope = b1 * t + b2 * g2 * rho;
    V two = 2.0 * (l->m * (t * p->erf_x + g2 * rho * rE) + l->N * l->c * rho); /* 2 bias */

    V Vs_k = 2.0 * g2 * (1.0 - nu) * Ex * x_k - 2.0 * g2 * tilt * mu * (b2 * t + b3 * g2 * rho) +
             (t * t + g2) * p->W_x * x_k - 2.0 * g2 * p->erfc_x * Ex * x_k +
             2.0 * t * g2 * rho * P1_k + g2 * g2 * rho * rho * P2_k;
    V Vs_t = mu * (-2.0 * g2 * tilt * b1 + 2.0 * t * p->W + 2.0 * g2 * rho * P1);
    V Vs_r = -2.0 * g2 * slope - 2.0 * g2 * g2 * tilt * b2 + 2.0 * t * g2 * P1 +
             2.0 * g2 * g2 * rho * P2;
    out[0] = l->m * (Vs_k + two * (t * Ex * x_k - g2 * rho * mu * b2));
    out[1] = l->m * (-2.0 * g2 * p->erf_x);
    out[2] = l->m * (Vs_t + two * mu * p->erf_x);
    out[3] = l->m * (2.0 * g2 * slope);
    out[4] = l->m * Vs_r + 2.0 * l->N * rho * l->q + two * (l->m * g2 * rE + l->N * l->c) +
             2.0 * l->spread * l->c * l->c * rho;
}

static inline void ERF_RISK(const V in[FINI_RISK_IN], V out[FINI_RISK_OUT])
{
    const double c0 = FINI_TWO_OVER_ROOT_PI, four_over_pi = FINI_FOUR_OVER_PI;
    V sign = SIGN_OF(in[0]);
    V kappa = in[0] * sign, nu = in[1] * sign, theta = in[2] * sign, eta = in[3] * sign;
    V rho = in[4], lam = in[5], gamma = in[6], mu = in[7], eps = in[8];
    V m = in[9], N = in[10] - in[9], spread = in[11];

    V g2 = gamma * gamma, lg2 = lam * lam * g2;
    V B = SQRT(1.0 + 2.0 * lg2), s = SQRT(1.0 + 4.0 * lg2), a = 1.0 / s;
    V r = lam / B, x = r * mu * kappa, y = a * x, t = mu * theta;
    V Ex = c0 * EXP(-x * x), Ey = c0 * EXP(-y * y);
    V erf_x = ERF(x), erfc_x = ERFC(x), erfc_y = ERFC(y);

    /* 1 - a without cancellation, then the stretch of [a, 1] that matters. */
    V whole = 4.0 * lg2 / (s * (s + 1.0));
    V reach = 37.0 / MAX(x * x, 1e-300 + 0.0 * x);
    V length = MIN(whole, reach / (SQRT(a * a + reach) + a));
    V sum0 = 0.0 * x, sum1 = 0.0 * x, xx = -x * x * length, a2 = 2.0 * a,
      a21 = FMA(a, a, 1.0 + 0.0 * x);
    for (int i = 0; i < FINI_LEGENDRE; i++) {
        V step = length * fini_legendre_node[i]; /* u = a + step */
        V rise = a2 + step;                      /* u^2 - a^2 = step (2a + step) */
        V value = fini_legendre_weight[i] * EXP(xx * fini_legendre_node[i] * rise);
        sum0 = sum0 + value / FMA(step, rise, a21);
        sum1 = sum1 + value;
    }
    V W = Ex * Ey * length * sum0;
    V W_x = -2.0 * x * Ex * Ey * length * sum1;

    /* Signal token. */
    V rE = r * Ex, b1 = -rE, b2 = 2.0 * x * r * rE;
    V twice = 2.0 * erfc_y - erfc_x, inner = 2.0 * a * Ey + 4.0 * x * erfc_y - Ex;
    V P1 = -rE * twice, P2 = r * rE * inner;
    V slope = b1 * t + b2 * g2 * rho, tilt = rho - eta;
    V Vs = 2.0 * g2 * (1.0 - nu) * erf_x - 2.0 * g2 * tilt * slope + (t * t + g2) * W +
           g2 * erfc_x * erfc_x + 2.0 * t * g2 * rho * P1 + g2 * g2 * rho * rho * P2;

    /* Noise tokens: Var(w) = zeta(0, lam) + rho^2 q, E[w] = c rho. */
    V l2 = lam * lam, root = SQRT(1.0 + 4.0 * l2), D = 1.0 + 2.0 * l2, root_D = SQRT(D);
    V zeta = four_over_pi * ATAN(4.0 * l2 / ((root + 1.0) * (root + 1.0)));
    V bend = 2.0 / root - 1.0, q = four_over_pi * l2 / D * bend;
    V c = c0 * lam / root_D;
    V Vn = zeta + rho * rho * q;

    V mean = t * erf_x + g2 * rho * rE; /* s */
    V bias = m * mean + N * c * rho;

    out[0] = m * Vs;
    out[1] = N * Vn;
    out[2] = bias * bias + spread * c * c * rho * rho;
    out[3] = eps * eps + (out[0] + out[1] + out[2]);

    ERF_GRADIENT(&(erf_lam){g2, mu, m, N, spread, r, a, q, c},
                 &(erf_at){x, Ex, Ey, erf_x, erfc_x, erfc_y, W, W_x}, nu, theta, eta, rho, out + 4);
    for (int i = 4; i < 8; i++)
        out[i] = sign * out[i];

    /* d/dlam: dr = 1/B^3, dx = mu kappa dr, da = -4 lam gamma^2 a^3, W_a = -Ex Ey/(1 + a^2). */
    V dr = 1.0 / (B * B * B), dx = mu * kappa * dr, da = -4.0 * lam * g2 * a * a * a;
    V dy = a * dx + x * da, drE = dr * Ex - 2.0 * x * dx * rE;
    V db2 = 2.0 * (dx * r * rE + x * dr * rE + x * r * drE);
    V dW = W_x * dx - Ex * Ey / a21 * da;
    V dP1 = -drE * twice - rE * (Ex * dx - 2.0 * Ey * dy);
    V dinner = 2.0 * da * Ey - 4.0 * a * y * Ey * dy + 4.0 * dx * erfc_y - 4.0 * x * Ey * dy +
               2.0 * x * Ex * dx;
    V dP2 = dr * rE * inner + r * drE * inner + r * rE * dinner;
    V dVs = 2.0 * g2 * (1.0 - nu) * Ex * dx - 2.0 * g2 * tilt * (db2 * g2 * rho - drE * t) +
            (t * t + g2) * dW - 2.0 * g2 * erfc_x * Ex * dx + 2.0 * t * g2 * rho * dP1 +
            g2 * g2 * rho * rho * dP2;
    V dzeta = 2.0 * four_over_pi * lam / (root * D);
    V dq = four_over_pi * (2.0 * lam / (D * D) * bend - 8.0 * l2 * lam / (D * root * root * root));
    V dc = c0 / (D * root_D);
    V dbias = m * (t * Ex * dx + g2 * rho * drE) + N * dc * rho;
    out[9] = m * dVs + N * (dzeta + rho * rho * dq) + 2.0 * bias * dbias +
             2.0 * spread * c * dc * rho * rho;
}
