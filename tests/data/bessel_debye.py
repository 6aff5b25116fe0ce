#!/usr/bin/env python3
"""The table of src/math/bessel.c: coefficients of D_k(p) in Debye's expansion of log I_nu(nu z).

U_k as in DLMF 10.41.9, sum_k D_k / nu^k = log sum_k U_k / nu^k, all in exact fractions.
D_k(p) = p^k (c_0 + c_1 p^2 + ... + c_k p^(2k)); row k of the table is c_0 .. c_k."""
from fractions import Fraction as F

TERMS = 12


def multiply(a, b):
    product = [F(0)] * (len(a) + len(b) - 1)
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            product[i + j] += x * y
    return product


def add(a, b):
    size = max(len(a), len(b))
    return [(a[i] if i < len(a) else 0) + (b[i] if i < len(b) else 0) for i in range(size)]


def scale(s, a):
    return [F(s) * x for x in a]


def derivative(a):
    return [i * a[i] for i in range(1, len(a))] or [F(0)]


def integral(a):
    return [F(0)] + [x / (i + 1) for i, x in enumerate(a)]


U = [[F(1)]]
for k in range(TERMS):
    first = multiply([0, 0, F(1, 2), 0, F(-1, 2)], derivative(U[k]))
    second = integral(multiply([F(1, 8), 0, F(-5, 8)], U[k]))
    U.append(add(first, second))

D = [None]
for k in range(1, TERMS + 1):
    rest = scale(k, U[k])
    for j in range(1, k):
        rest = add(rest, scale(-j, multiply(D[j], U[k - j])))
    D.append(scale(F(1, k), rest))

for k in range(1, TERMS + 1):
    print("    {" + ", ".join(repr(float(D[k][k + 2 * j])) for j in range(k + 1)) + "},")
