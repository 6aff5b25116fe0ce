#!/usr/bin/env python3
"""Writes tests/data/owens_t.csv and tests/data/zeta.csv: known answers in 50-digit arithmetic.

Needs mpmath. Inputs are printed as exact doubles (%.17g), results with 22 digits. Results below
the range of a double are kept: reading them gives zero. Every integral is a plain quadrature of
the definition, cut where what is left is below 1e-60 of it; where two ways exist both are taken
and compared, and the script stops if they differ. Run from anywhere: tools/make_math_tables.py
"""
import os
import random

import mpmath as mp

mp.mp.dps = 50
HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(HERE, "..", "tests", "data")
CUT = 140  # exp(-140) = 1e-61


def agree(a, b, what, digits=35):
    if abs(a - b) > mp.mpf(10) ** -digits * abs(a):
        raise SystemExit(f"{what}: {mp.nstr(a, 30)} and {mp.nstr(b, 30)} differ")


def integral(q, lo, hi):
    """int_lo^hi exp(-q (1+u^2)) / (1+u^2) du, on stretches of at most 8 e-foldings and doublings of 1+u."""
    if q > 0:
        hi = min(hi, mp.sqrt(lo * lo + CUT / q))
    points, u = [lo], lo
    while u < hi:
        u = 2 * u + 1
        if q > 0:
            u = min(u, mp.sqrt(points[-1] ** 2 + 8 / q))
        points.append(min(u, hi))
    first = q * (1 + lo * lo)
    f = lambda v: mp.exp(first - q * (1 + v * v)) / (1 + v * v)
    return mp.exp(-first) * mp.quad(f, points, method="gauss-legendre")


def owens_t(h, a):
    h, a = mp.mpf(h), mp.mpf(a)
    tail = lambda z: mp.erfc(z / mp.sqrt(2)) / 2
    if h == 0:
        return mp.atan(a) / (2 * mp.pi)
    if a == mp.inf:
        return tail(h) / 2
    if a <= 1:
        return integral(h * h / 2, mp.mpf(0), a) / (2 * mp.pi)
    reflected = (tail(h) + tail(a * h)) / 2 - tail(h) * tail(a * h) - owens_t(a * h, 1 / a)
    if a < 1000:
        agree(integral(h * h / 2, mp.mpf(0), a) / (2 * mp.pi), reflected, f"owens_t({h}, {a})")
    return reflected


def owens_t_points():
    rng = random.Random(1)
    hs = [0.0, 1e-300, 1e-8, 1e-3, 0.1, 0.5, 1.0, 1.5, 2.5, 4.0, 6.0, 8.0, 8.6, 8.61, 12.0, 20.0, 30.0, 37.0, 37.5]
    eps = 2.0 ** -53
    ones = [1 - eps, 1.0, 1 + 2 * eps]
    sizes = [1e-300, 1e-10, 1e-3, 0.1, 0.4, 0.9, 0.999999] + ones + [1.000001, 1.1, 2.0, 7.0, 100.0, 1e10, mp.inf]
    points = [(h, a) for h in hs for a in sizes]
    for product in (1e-5, 0.1, 1.0, 5.0, 8.0, 8.602, 9.0, 20.0, 37.0):  # ha crosses all regimes
        points += [(h, product / h) for h in (1e-6, 0.03, 0.3, 1.0, 3.0, 7.0, 15.0)]
    for _ in range(230):
        points.append((10 ** rng.uniform(-3, 1.575), 10 ** rng.uniform(-3, 3)))
    for _ in range(40):
        points.append((10 ** rng.uniform(-1, 0.95), 1 + 10 ** rng.uniform(-12, -0.5) * rng.choice((-1, 1))))
    return points


def variance(t, g):
    """W = (4/pi) int_a^1 exp(-x^2 (1+u^2)) / (1+u^2) du; 1 - a is 2 g^2, so more digits for small g."""
    if g == 0:
        return mp.mpf(0)
    return 4 / mp.pi * integral(t * t / (1 + 2 * g * g), 1 / mp.sqrt(1 + 4 * g * g), mp.mpf(1))


def zeta_row(t, g):
    with mp.workdps(70):
        t, g = mp.mpf(t), mp.mpf(g)
        E = lambda z: 2 / mp.sqrt(mp.pi) * mp.exp(-z * z)
        E1 = lambda z: -2 * z * E(z)
        E2 = lambda z: (4 * z * z - 2) * E(z)
        B, A = mp.sqrt(1 + 2 * g * g), mp.sqrt((1 + 4 * g * g) * (1 + 2 * g * g))
        x, y = t / B, t / A
        w = variance(t, g)
        return (
            mp.erf(x) ** 2 + w,
            2 / B * mp.erf(y) * E(x),
            2 / B * (E(y) * E(x) / A + mp.erf(y) * E1(x) / B),
            2 / B * (E1(y) * E(x) / A**2 + 2 * E(y) * E1(x) / (A * B) + mp.erf(y) * E2(x) / B**2),
            w,
        )


def check_zeta(t, g):
    """zeta and its derivatives from the definition: E over G of erf^2 and of its derivatives in t."""
    t, g = mp.mpf(t), mp.mpf(g)
    erf, E = mp.erf, lambda z: 2 / mp.sqrt(mp.pi) * mp.exp(-z * z)
    moments = (
        lambda z: erf(z) ** 2,
        lambda z: 2 * erf(z) * E(z),
        lambda z: 2 * E(z) ** 2 - 4 * z * erf(z) * E(z),
        lambda z: -12 * z * E(z) ** 2 + (8 * z * z - 4) * erf(z) * E(z),
    )
    points = [mp.mpf(k) / 2 for k in range(-36, 37)]
    if g > 1:  # erf turns on a scale of 1/g
        points = sorted(points + [(-t + k) / g for k in range(-12, 13)])
    mean = lambda f: mp.quad(lambda u: f(t + g * u) * mp.npdf(u), points)
    row = zeta_row(t, g)
    for f, value in zip(moments, row):
        agree(mean(f), value, f"zeta({t}, {g})", 20)
    agree(mean(moments[0]) - mean(erf) ** 2, row[4], f"variance({t}, {g})", 20)


def zeta_points():
    rng = random.Random(2)
    ts = [0.0, 1e-200, 1e-6, 0.01, 0.3, 0.7, 1.0, 1.7, 3.0, 5.0, 8.0, 13.0, 20.0, 26.0, 40.0]
    gs = [0.0, 1e-6, 1e-3, 0.1, 0.5, 0.70710678118654757, 1.0, 3.0, 10.0, 100.0, 1000.0]
    points = [(t, g) for t in ts for g in gs]
    for _ in range(200):
        points.append((10 ** rng.uniform(-3, 1.6), 10 ** rng.uniform(-4, 3)))
    return points


def digits(value):
    return mp.nstr(value, 22, strip_zeros=True, min_fixed=0, max_fixed=1)


def write(name, head, rows):
    path = os.path.join(DATA, name)
    os.makedirs(DATA, exist_ok=True)
    with open(path, "w", newline="\n") as out:
        out.write(head + "\n")
        for inputs, values in rows:
            out.write(",".join(["%.17g" % float(v) for v in inputs] + [digits(v) for v in values]) + "\n")
    print(f"{name}: {len(rows)} rows, {os.path.getsize(path)} bytes")


for t, g in ((0.7, 0.5), (2.0, 0.3), (0.01, 2.0), (1.0, 5.0)):
    check_zeta(t, g)
write("owens_t.csv", "h,a,t", [(p, (owens_t(*p),)) for p in owens_t_points()])
write("zeta.csv", "t,g,zeta,zeta1,zeta2,zeta3,variance", [(p, zeta_row(*p)) for p in zeta_points()])
