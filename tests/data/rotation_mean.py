#!/usr/bin/env python3
"""Means of a rotation with density exp(tr(F'O)) on SO(3), for tests/test_task_latent_sphere.c.

F = diag(s). The rotations are unit quaternions x uniform on S^3, and tr(F'O) = x'B x with a diagonal
B (Bingham's law), so that the normalizing constant is the integral of exp(sum b_i x_i^2) over S^3.
With x = (sqrt(u) (cos, sin), sqrt(1-u) (cos, sin)), u uniform on (0, 1), the two angles are Bessel
functions and one integral is left. This pairs the quaternion's coordinates and not the singular
values, so that it is another formula than the one of the program. 40 digits; d log c / d s_k is under
the integral sign. Takes a minute."""
from mpmath import mp, mpf, besseli, exp, quad, linspace

mp.dps = 40


def means(s):
    s = [mpf(x) for x in s]
    # O_11 = w^2 + x^2 - y^2 - z^2 and so on: coefficients of w^2, x^2, y^2, z^2 in each O_kk
    O = [[1, 1, -1, -1], [1, -1, 1, -1], [1, -1, -1, 1]]
    b = [sum(s[k] * O[k][i] for k in range(3)) for i in range(4)]
    top = max(b)

    def parts(u):
        # pairs (w, x) with weight u and (y, z) with weight 1 - u: mean over an angle of
        # exp(u (b0 cos^2 + b1 sin^2)) = exp(u (b0+b1)/2) I_0(u (b0-b1)/2)
        m1, h1 = u * (b[0] + b[1]) / 2, u * (b[0] - b[1]) / 2
        m2, h2 = (1 - u) * (b[2] + b[3]) / 2, (1 - u) * (b[2] - b[3]) / 2
        scale = exp(m1 + m2 - top)
        i1, i2, j1, j2 = besseli(0, h1), besseli(0, h2), besseli(1, h1), besseli(1, h2)
        c = scale * i1 * i2
        squares = [scale * u * (i1 + j1) / 2 * i2, scale * u * (i1 - j1) / 2 * i2,
                   scale * (1 - u) * (i2 + j2) / 2 * i1, scale * (1 - u) * (i2 - j2) / 2 * i1]
        return c, squares

    ends = [0] + [1 - mpf(10) ** -k for k in range(1, 13)] + [1]
    total = quad(lambda u: parts(u)[0], ends)
    sq = [quad(lambda u: parts(u)[1][i], ends) / total for i in range(4)]
    return [sum(O[k][i] * sq[i] for i in range(4)) for k in range(3)]


for s in [(0.3, 0.2, 0.1), (0.3, 0.2, -0.1), (5, 3, 1), (5, 3, -2), (5, 5, 5), (5, 5, -5),
          (100, 2, 0.5), (100, 90, 80), (100, 90, -80), (1e4, 9e3, 10), (1e5, 9e4, -8.9e4)]:
    print("    {{%g, %g, %g}, {%s}}," % (*s, ", ".join(mp.nstr(x, 17) for x in means(s))), flush=True)
