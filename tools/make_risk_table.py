#!/usr/bin/env python3
"""Risk and gradient of the erf predictor at random points of the usual range, and far outside it.

Needs mpmath. The textbook formula R = gamma^2 + eps^2 - 2 E[Yf] + S + (L-1) N + 2 (L-1) s C + (L-1)(L-2) C^2
with 120 digits, so that its cancellations do no harm; deliberately not the form the library uses.
Run: tools/make_risk_table.py extreme > tests/data/erf_risk_extreme.csv
     tools/make_risk_table.py random > tests/data/erf_risk_random.csv
"""
import random
import sys
import mpmath as mp

mp.mp.dps = 120
c0 = 2 / mp.sqrt(mp.pi)
E = lambda x: c0 * mp.exp(-x * x)
E1 = lambda x: -2 * x * E(x)
E2 = lambda x: (4 * x * x - 2) * E(x)


def owens_t(h, a):
    """T(h, a) for h >= 0, 0 < a <= 1, by Gauss-Legendre over pieces short against 1/h."""
    if h == 0:
        return mp.atan(a) / (2 * mp.pi)
    top = min(a, 26 / h)  # beyond: below exp(-338) of the first value, and 1e-147 is enough
    pieces = [top * mp.mpf(i) / 6 for i in range(7)]
    f = lambda u: mp.exp(-h * h * (1 + u * u) / 2) / (1 + u * u)
    return mp.quad(f, pieces) / (2 * mp.pi)


def zetas(t, g):
    B, A = mp.sqrt(1 + 2 * g * g), mp.sqrt((1 + 4 * g * g) * (1 + 2 * g * g))
    z0 = 1 - 8 * owens_t(abs(mp.sqrt(2) * t / B), 1 / mp.sqrt(1 + 4 * g * g))
    e = mp.erf(t / A)
    z1 = 2 / B * e * E(t / B)
    z2 = 2 / B * (E(t / A) * E(t / B) / A + e * E1(t / B) / B)
    z3 = 2 / B * (E1(t / A) * E(t / B) / A ** 2 + 2 * E(t / A) * E1(t / B) / (A * B) + e * E2(t / B) / B ** 2)
    return z0, z1, z2, z3


def risk(kappa, nu, theta, eta, rho, lam, gamma, mu, L, eps):
    kappa, nu, theta, eta, rho, lam, gamma, mu, L, eps = map(mp.mpf, (kappa, nu, theta, eta, rho, lam, gamma, mu, L, eps))
    g2, D = gamma ** 2, 1 + 2 * lam ** 2 * gamma ** 2
    x, r = lam * mu * kappa / mp.sqrt(D), lam / mp.sqrt(D)
    m0, m1, m2, m3 = mp.erf(x), r * E(x), r ** 2 * E1(x), r ** 3 * E2(x)
    h = zetas(lam * mu * kappa, lam * gamma)
    h0, h1, h2, h3 = (h[j] * lam ** j for j in range(4))
    n = zetas(mp.mpf(0), lam)
    t = mu * theta
    N, c = n[0] + rho ** 2 * lam ** 2 * n[2], c0 * lam / mp.sqrt(1 + 2 * lam ** 2)
    C, s = c * rho, t * m0 + g2 * rho * m1
    Yf = g2 * nu * m0 + g2 * eta * (t * m1 + g2 * rho * m2)
    S = (t * t + g2) * h0 + 2 * t * g2 * rho * h1 + g2 * g2 * rho ** 2 * h2
    R = g2 + eps ** 2 - 2 * Yf + S + (L - 1) * N + 2 * (L - 1) * s * C + (L - 1) * (L - 2) * C * C
    d_kappa = mu * (-2 * (g2 * nu * m1 + g2 * eta * (t * m2 + g2 * rho * m3))
                    + (t * t + g2) * h1 + 2 * t * g2 * rho * h2 + g2 * g2 * rho ** 2 * h3
                    + 2 * (L - 1) * C * (t * m1 + g2 * rho * m2))
    d_nu = -2 * g2 * m0
    d_theta = mu * (-2 * g2 * eta * m1 + 2 * t * h0 + 2 * g2 * rho * h1 + 2 * (L - 1) * C * m0)
    d_eta = -2 * g2 * (t * m1 + g2 * rho * m2)
    d_rho = (-2 * g2 * g2 * eta * m2 + 2 * t * g2 * h1 + 2 * g2 * g2 * rho * h2 + (L - 1) * 2 * rho * lam ** 2 * n[2]
             + 2 * (L - 1) * (s * c + g2 * m1 * C) + 2 * (L - 1) * (L - 2) * c * C)
    return R, d_kappa, d_nu, d_theta, d_eta, d_rho


half = 0.7071067811865476


def extreme():
    rows = []
    on_manifold = [(1, 1), (-1, -1), (1, -1), (0, 0), (0, 1), (0.3, 0.7), (1e-8, 1), (0.99999999, 0.9999)]
    for d in (1e2, 1e6, 1e12):
        mu = float(mp.sqrt(mp.mpf(d) / 2))
        for lam in (1e-6, 1e-3, 0.1, 1.0, 1e3):
            for L in (1, 2, 1000000):
                kappa, nu = on_manifold[len(rows) % len(on_manifold)]
                rows.append((kappa, nu, 0, 0, 0, lam, half, mu, L, 0))
    for lam, mu in ((1, 1), (1, 3), (2, 3), (0.5, 10), (0.5, 14), (0.1, 60), (3, 2.5)):  # L = 1: the risk itself is tiny
        for gamma in (1e-3, half, 1):
            rows.append((1, 1, 0, 0, 0, lam, gamma, mu, 1, 0))
    for gamma in (0, 1e-6, 1e3):
        rows.append((1, 1, 0, 0, 0, 0.1, gamma, 14.142135623730951, 10, 0))
        rows.append((-0.4, 0.3, 0.2, -0.1, 0.25, 0.1, gamma, 14.142135623730951, 10, 0.1))
    rng = random.Random(7)
    for d in (10, 1e4, 1e8, 1e12):
        mu = float(mp.sqrt(mp.mpf(d) / 2))
        for lam in (1e-6, 1e-4, 1e-2, 1.0, 30.0, 1e3):
            small = 10.0 ** rng.uniform(-6, 0)
            o = [rng.uniform(-1, 1) * s for s in (0.5, 0.5, 0.5 * small, 0.5 * small, 0.5 * small)]
            rows.append((*o, lam, half, mu, rng.choice((1, 2, 30, 1000000)), rng.choice((0, 0.1))))
    return rows


def usual():
    rng, rows = random.Random(11), []
    for _ in range(250):
        k, v = ([rng.gauss(0, 1) for _ in range(5)] for _ in range(2))
        if rng.random() < 0.3:  # the invariant manifold
            k, v = [k[0], 0, k[2], 0, 0], [0, v[1], 0, v[3], 0]
        k, v = ([x / sum(y * y for y in u) ** 0.5 for x in u] for u in (k, v))
        rho = sum(a * b for a, b in zip(k, v))
        rows.append((k[0], v[1], v[0], k[1], rho, 10 ** rng.uniform(-2, 0.5), rng.choice((0.3, half, 1.0, 1.7)),
                     rng.choice((2, 5, 10, 50, 200, 1000, 1e6)) ** 0.5 * half, rng.choice((1, 2, 3, 10, 64, 1000)),
                     rng.choice((0, 0.1, 0.5))))
    return rows


rows = {"extreme": extreme, "random": usual}[sys.argv[1]]()
print("kappa,nu,theta,eta,rho,lambda,gamma,mu,L,eps,risk,d_kappa,d_nu,d_theta,d_eta,d_rho")
for row in rows:
    values = risk(*row)
    print(",".join(repr(float(v)) if i != 8 else str(v) for i, v in enumerate(row)) + "," +
          ",".join(mp.nstr(v, 20, min_fixed=1, max_fixed=0) for v in values))
