#!/usr/bin/env python3
"""Writes src/kernel/coefficients.h: polynomials for draws and descents, and Gauss-Legendre nodes.

Needs mpmath. Polynomials are fitted at Chebyshev points in 60 digits (near minimax), to the
relative error that is printed beside each. Run: tools/make_coefficients.py > src/kernel/coefficients.h
"""
import struct
import mpmath as mp

mp.mp.dps = 60


def fit(f, lo, hi, n):
    """n coefficients (constant first) of the polynomial through f at n Chebyshev points."""
    x = [(lo + hi) / 2 + (hi - lo) / 2 * mp.cos(mp.pi * (2 * i + 1) / (2 * n)) for i in range(n)]
    a = mp.matrix(n, n)
    for i in range(n):
        for j in range(n):
            a[i, j] = x[i] ** j
    return list(mp.lu_solve(a, mp.matrix([f(t) for t in x])))


def as_float(x):
    return struct.unpack("f", struct.pack("f", float(x)))[0]


def worst(f, g, lo, hi):
    return max(abs(g(t) / f(t) - 1) for t in (lo + (hi - lo) * (i + mp.mpf(1) / 3) / 400 for i in range(400)))


def table(name, ctype, values, note):
    suffix = "f" if ctype == "float" else ""
    print(f"/* {note} */")
    print(f"static const {ctype} {name}[{len(values)}] = {{")
    for v in values:
        v = as_float(v) if ctype == "float" else float(v)
        print(f"    {v.hex()}{suffix}, /* {v:.17g} */")
    print("};\n")


def horner(c, x):
    r = mp.mpf(0)
    for a in reversed(c):
        r = r * x + a
    return r


half = mp.mpf(1) / 2
lo, hi = mp.sqrt(half) - 1, mp.sqrt(mp.mpf(2)) - 1
quarter = mp.pi / 4

print("""/* Made by tools/make_coefficients.py; do not edit.
 *
 * The normal generator and the descents have their own elementary functions instead of a library's,
 * for two reasons: their arguments have a known range, so that little or no reduction is needed, and
 * every kernel (and every CPU) must give the same bits, which a fixed sequence of correctly rounded
 * operations does. */
#ifndef FINI_COEFFICIENTS_H
#define FINI_COEFFICIENTS_H
""")

# -2 log(1-f) = 2f + f^2 + f^3 P(f)
g = lambda f: (-2 * mp.log1p(-f) - 2 * f - f * f) / f ** 3 if abs(f) > mp.mpf("1e-15") else mp.mpf(2) / 3
c = fit(g, -hi, -lo, 7)
e = worst(lambda f: -2 * mp.log1p(-f), lambda f: 2 * f + f * f + f ** 3 * horner(c, f), -hi, -lo)
table("fini_log_f32", "float", c, f"-2 log(1-f) = 2f + f^2 + f^3 P(f), sqrt(1/2) <= 1-f < sqrt(2); relative error {mp.nstr(e, 2)}")

# log(1+f) = 2s + s z Q(z), s = f/(2+f), z = s^2
zmax = (hi / (2 + hi)) ** 2
g = lambda z: (2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z) - 2) / z if z > mp.mpf("1e-20") else mp.mpf(2) / 3
c = fit(g, mp.mpf(0), zmax, 7)
e = worst(lambda z: 2 * mp.atanh(mp.sqrt(z)), lambda z: mp.sqrt(z) * (2 + z * horner(c, z)), mp.mpf(0), zmax)
table("fini_log_f64", "double", c, f"log(1+f) = 2s + s z Q(z), s = f/(2+f), z = s^2; relative error {mp.nstr(e, 2)}")

gs = lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z if z > mp.mpf("1e-20") else -mp.mpf(1) / 6
gc = lambda z: (mp.cos(mp.sqrt(z)) - 1) / z if z > mp.mpf("1e-20") else -half
for ctype, tag, ns, nc in (("float", "f32", 3, 4), ("double", "f64", 6, 7)):
    z1 = quarter ** 2
    c = fit(gs, mp.mpf(0), z1, ns)
    e = worst(lambda z: mp.sin(mp.sqrt(z)), lambda z: mp.sqrt(z) * (1 + z * horner(c, z)), mp.mpf(0), z1)
    table(f"fini_sin_{tag}", ctype, c, f"sin x = x + x z S(z), z = x^2, |x| <= pi/4; relative error {mp.nstr(e, 2)}")
    c = fit(gc, mp.mpf(0), z1, nc)
    e = worst(lambda z: mp.cos(mp.sqrt(z)), lambda z: 1 + z * horner(c, z), mp.mpf(0), z1)
    table(f"fini_cos_{tag}", ctype, c, f"cos x = 1 + z C(z), z = x^2, |x| <= pi/4; relative error {mp.nstr(e, 2)}")

# exp r = 1 + r + r^2 P(r), |r| <= log(2)/2
half_log2 = mp.log(2) / 2
g = lambda r: (mp.exp(r) - 1 - r) / r ** 2 if abs(r) > mp.mpf("1e-15") else half
for ctype, tag, n in (("float", "f32", 5), ("double", "f64", 10)):
    c = fit(g, -half_log2, half_log2, n)
    e = worst(mp.exp, lambda r: 1 + r + r * r * horner(c, r), -half_log2, half_log2)
    table(f"fini_exp_{tag}", ctype, c, f"exp r = 1 + r + r^2 P(r), |r| <= log(2)/2; relative error {mp.nstr(e, 2)}")

# (1 + 2x) exp(x^2) erfc(x) = P(t), t = (x - K)/(x + K) in [-1, 1] (Shepherd and Laframboise 1981)
K = mp.mpf(15) / 4
erfcx = lambda x: mp.exp(x * x) * mp.erfc(x) if x < 20 else sum((-1) ** i * mp.fac2(2 * i - 1) / (2 * x * x) ** i for i in range(20)) / (x * mp.sqrt(mp.pi))
g = lambda t: (1 + 2 * (K * (1 + t) / (1 - t))) * erfcx(K * (1 + t) / (1 - t))
c = fit(g, mp.mpf(-1), mp.mpf(1), 24)
e = worst(g, lambda t: horner(c, t), mp.mpf(-1), mp.mpf("0.999"))
table("fini_erfcx_f64", "double", c, f"(1 + 2x) exp(x^2) erfc(x) = P(t), t = (x - 3.75)/(x + 3.75), x >= 0; relative error {mp.nstr(e, 2)}")

# erf u = u A(u^2), |u| <= 1; erfc u = exp(-u^2) B(u - 5/2), 1 <= u <= 4
g = lambda z: mp.erf(mp.sqrt(z)) / mp.sqrt(z) if z > mp.mpf("1e-20") else 2 / mp.sqrt(mp.pi)
c = fit(g, mp.mpf(0), mp.mpf(1), 7)
e = worst(g, lambda z: horner(c, z), mp.mpf(0), mp.mpf(1))
table("fini_erf_f32", "float", c, f"erf u = u A(u^2), |u| <= 1; relative error {mp.nstr(e, 2)}")
g = lambda s: erfcx(s + mp.mpf(5) / 2)
c = fit(g, mp.mpf(-3) / 2, mp.mpf(3) / 2, 11)
e = worst(g, lambda s: horner(c, s), mp.mpf(-3) / 2, mp.mpf(3) / 2)
table("fini_erfc_f32", "float", c, f"erfc u = exp(-u^2) B(u - 5/2), 1 <= u <= 4; relative error {mp.nstr(e, 2)}")


def legendre(n):
    nodes, weights = [], []
    for i in range(n):
        x = mp.cos(mp.pi * (n - i - mp.mpf(1) / 4) / (n + half))
        for _ in range(60):
            p0, p1 = mp.mpf(1), x
            for k in range(2, n + 1):
                p0, p1 = p1, ((2 * k - 1) * x * p1 - (k - 1) * p0) / k
            slope = n * (x * p1 - p0) / (x * x - 1)
            x -= p1 / slope
        nodes.append((x + 1) / 2)
        weights.append(1 / ((1 - x * x) * slope ** 2))
    return nodes, weights


n = 24
nodes, weights = legendre(n)
print(f"enum {{ FINI_LEGENDRE = {n} }};\n")
table("fini_legendre_node", "double", nodes, "Gauss-Legendre nodes on [0, 1]")
table("fini_legendre_weight", "double", weights, "and weights, which sum to 1")
for n in (4, 8, 14):
    nodes, weights = legendre(n)
    table(f"fini_legendre_node_{n}", "double", nodes, f"The same with {n} nodes")
    table(f"fini_legendre_weight_{n}", "double", weights, "and weights")
print("#endif")
