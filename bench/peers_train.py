"""The same training in NumPy, SciPy and PyTorch: descent on the exact risk, and SGD in R^d.

Single-location regression with one relevant token and the erf predictor. The risk's gradient is the
closed form, the gradient of SGD is written out in NumPy and left to autograd in PyTorch.
"""

import math

import numpy as np

from peers import TWO_OVER_SQRT_PI, special, torch

GAMMA2 = 0.5  # gamma^2, the paper's


class Constants:
    """What the gradient of the exact risk needs of lam alone."""

    def __init__(self, lam, L, mu):
        l2, others = lam * lam, L - 1
        self.r = lam / math.sqrt(1 + 2 * l2 * GAMMA2)
        self.a = 1 / math.sqrt(1 + 4 * l2 * GAMMA2)
        self.x = self.r * mu
        self.c = others * TWO_OVER_SQRT_PI * lam / math.sqrt(1 + 2 * l2)
        self.q = (others * 8 / math.pi * l2 / ((1 + 2 * l2) * math.sqrt(1 + 4 * l2))
                  + self.c * self.c * (1 - 1 / others))


def gradient(s, mu, kappa, nu, theta, eta, rho, erf_x, erf_y, exp_x, exp_y, owen):
    """Derivatives of the risk in the five overlaps. Arrays or floats."""
    e, b = (TWO_OVER_SQRT_PI * s.r) * exp_x, (2 * TWO_OVER_SQRT_PI * s.r * s.a) * exp_y
    rx, t, u, C, w = (s.r * s.x) * kappa, mu * theta, GAMMA2 * rho, s.c * rho, GAMMA2 * eta
    # Moments of erf and of its square, with the factor e divided out.
    m2, m3 = -2 * rx, 4 * rx * rx - 2 * s.r * s.r
    h1 = 2 * erf_y
    h2 = b + m2 * h1
    h3 = m3 * h1 - (4 + 2 * s.a * s.a) * rx * b
    slope = e * (t + u * m2)
    return (mu * (e * ((t * t + GAMMA2) * h1 + u * (2 * t * h2 + u * h3) - 2 * (GAMMA2 * nu + w * (t * m2 + u * m3)))
                  + 2 * C * slope),
            (-2 * GAMMA2) * erf_x,
            (2 * mu) * (e * (u * h1 - w) + t - (8 * t) * owen + C * erf_x),
            (-2 * GAMMA2) * slope,
            (2 * GAMMA2) * e * (t * h1 + u * h2 + 2 * C - w * m2) + (2 * s.c) * t * erf_x + (2 * s.q) * rho)


class Population:
    """lam / (1 + decay t), and what belongs to it, at step t."""

    def __init__(self, L, lam, decay, alpha, mu):
        self.L, self.lam, self.decay, self.alpha, self.mu = L, lam, decay, alpha, mu
        self.constants = Constants(lam, L, mu)

    def at(self, t):
        return Constants(self.lam / (1 + self.decay * t), self.L, self.mu) if self.decay else self.constants


class PopulationNumpy(Population):
    """All runs at once. k and v are kept in a frame that begins with k*, v*: four coordinates,
    whatever d is. An operation on 64 numbers costs what calling it costs, so what counts is that
    there are few: multiples of the overlaps come from one product with a matrix."""

    def rows(self, s):
        """Multiples of (kappa, eta, theta, nu, rho) that the gradient needs; logs of two factors."""
        mu, g2 = self.mu, GAMMA2
        return (np.array((
            (s.x, 0, 0, 0, 0), (s.a * s.x, 0, 0, 0, 0), (math.sqrt(2) * s.x, 0, 0, 0, 0), (-2 * s.r * s.x, 0, 0, 0, 0),
            (0, 0, mu, 0, 0), (0, 0, 2 * mu, 0, 0), (0, 0, 2 * mu * s.c, 0, 0), (0, 0, 0, 2 * g2, 0),
            (0, 2 * g2, 0, 0, 0), (0, 0, 0, 0, g2), (0, 0, 0, 0, 2 * g2), (0, 0, 0, 0, 2 * s.c), (0, 0, 0, 0, 4 * s.c),
            (0, 0, 0, 0, 2 * s.q))),
            np.log(((TWO_OVER_SQRT_PI * s.r,), (2 * TWO_OVER_SQRT_PI * s.r * s.a,))))

    def run(self, overlaps, steps):
        kappa, nu, theta, eta, rho = overlaps.T
        k2 = np.sqrt(1 - kappa ** 2 - eta ** 2)
        v2 = (rho - kappa * theta - eta * nu) / k2
        v3 = np.sqrt(1 - theta ** 2 - nu ** 2 - v2 ** 2)
        kv = np.array([[kappa, eta, k2, 0 * k2], [theta, nu, v2, v3]])
        five, g, mu, g2, add = np.empty((5, len(overlaps))), np.empty_like(kv), self.mu, GAMMA2, np.add.reduce
        s = self.constants
        rows, logs = self.rows(s)
        for t in range(steps):
            if self.decay:
                s = self.at(t)
                rows, logs = self.rows(s)
            five[:4].reshape(2, 2, -1)[:] = kv[:, :2]
            add(kv[0] * kv[1], 0, out=five[4])
            multiples = rows @ five
            x, y = xy = multiples[:2]
            h, m2, t1, t2, ct2, n2, w2, u1, u2, c2, c4, q2 = multiples[2:]
            erf_x, erf_y = special.erf(xy)
            e, b = np.exp(logs - xy * xy)
            m3 = m2 * m2 - 2 * s.r * s.r
            h1 = erf_y + erf_y
            h2 = b + m2 * h1
            h3 = m3 * h1 + (2 + s.a * s.a) * (m2 * b)
            slope = e * (t1 + u1 * m2)
            np.multiply(kv[::-1], g2 * e * (t2 * h1 + u2 * h2 + c4 - w2 * m2) + ct2 * erf_x + q2, out=g)
            g[0, 0] += mu * (e * ((t1 * t1 + g2) * h1 + u1 * (t2 * h2 + u1 * h3) - n2 - w2 * (t1 * m2 + u1 * m3))
                             + c2 * slope)
            g[0, 1] -= 2 * g2 * slope
            g[1, 0] += mu * (e * (u2 * h1 - w2) + t2 * (1 - 8 * special.owens_t(h, s.a)) + c2 * erf_x)
            g[1, 1] -= 2 * g2 * erf_x
            g -= kv * add(kv * g, 1, keepdims=True)
            g *= self.alpha
            kv -= g
            kv /= np.sqrt(add(kv * kv, 1, keepdims=True))
        return np.stack((kv[0, 0], kv[1, 1], kv[1, 0], kv[0, 1], (kv[0] * kv[1]).sum(0)), 1)


class PopulationFloats(Population):
    """One run after the other, in Python's floats: the fastest way without arrays."""

    def run(self, overlaps, steps):
        return np.array([self.run_one(steps, *row) for row in overlaps.tolist()])

    def run_one(self, steps, kappa, nu, theta, eta, rho):
        for t in range(steps):
            s = self.at(t)
            x = s.x * kappa
            y = s.a * x
            dk, dn, dt, de, dr = gradient(
                s, self.mu, kappa, nu, theta, eta, rho, math.erf(x), math.erf(y), math.exp(-x * x), math.exp(-y * y),
                float(special.owens_t(math.sqrt(2) * x, s.a)))
            # k - alpha (g - (k.g) k) with g = dk k* + de v* + dr v: its overlaps, and its length
            kg, vg = dk * kappa + de * eta + dr * rho, dt * theta + dn * nu + dr * rho
            p, q, a = 1 + self.alpha * kg, 1 + self.alpha * vg, self.alpha
            kk = p * p - 2 * a * p * kg + a * a * (dk * dk + de * de + dr * dr + 2 * dr * (dk * theta + de * nu))
            vv = q * q - 2 * a * q * vg + a * a * (dt * dt + dn * dn + dr * dr + 2 * dr * (dt * kappa + dn * eta))
            kv = (p * q * rho - a * (p * (dt * kappa + dn * eta + dr) + q * (dk * theta + de * nu + dr))
                  + a * a * (dk * dt + de * dn + dr * (dk * kappa + de * eta + dt * theta + dn * nu + dr * rho)))
            k, v = 1 / math.sqrt(kk), 1 / math.sqrt(vv)
            kappa, eta, theta, nu, rho = (
                k * (p * kappa - a * (dk + dr * theta)), k * (p * eta - a * (de + dr * nu)),
                v * (q * theta - a * (dt + dr * kappa)), v * (q * nu - a * (dn + dr * eta)), k * v * kv)
        return kappa, nu, theta, eta, rho


class PopulationVectors(Population):
    """One run after the other, with k and v in R^d: the recursion as the paper writes it."""

    def start(self, d, runs, seed):
        generator = np.random.default_rng(seed)
        self.k_star, self.v_star, *self.kv = unit(generator.standard_normal((2 + 2 * runs, d)))
        self.v_star = unit(self.v_star - self.k_star * (self.k_star @ self.v_star))
        return np.array([self.overlaps(k, v) for k, v in zip(self.kv[::2], self.kv[1::2])])

    def overlaps(self, k, v):
        return k @ self.k_star, v @ self.v_star, v @ self.k_star, k @ self.v_star, k @ v

    def run(self, overlaps, steps):
        return np.array([self.run_one(steps, k, v) for k, v in zip(self.kv[::2], self.kv[1::2])])

    def run_one(self, steps, k, v):
        for t in range(steps):
            s, at = self.at(t), [float(overlap) for overlap in self.overlaps(k, v)]
            x = s.x * at[0]
            y = s.a * x
            dk, dn, dt, de, dr = gradient(s, self.mu, *at, math.erf(x), math.erf(y), math.exp(-x * x),
                                          math.exp(-y * y), float(special.owens_t(math.sqrt(2) * x, s.a)))
            k, v = (self.descend(k, dk * self.k_star + de * self.v_star + dr * v),
                    self.descend(v, dt * self.k_star + dn * self.v_star + dr * k))
        return self.overlaps(k, v)

    def descend(self, k, g):
        k = k - self.alpha * (g - (k @ g) * k)
        return k / math.sqrt(k @ k)


def unit(vectors):
    return vectors / np.sqrt((vectors * vectors).sum(-1, keepdims=True))


class Ambient:
    """SGD in R^d on `batch` fresh samples a step, for `runs` runs side by side.

    Tokens are (run, sample, token, dimension). No predictor here sees the order of the tokens, so
    the relevant one may as well be the first: that saves looking it up.
    """

    def __init__(self, d, L, batch, eps, lam, decay, alpha, runs, dtype, seed):
        self.shape, self.eps, self.alpha, self.dtype = (runs, batch, L, d), eps, alpha, dtype
        self.lam, self.decay, self.mu = lam, decay, math.sqrt(d / 2)
        generator = np.random.default_rng(seed)
        k_star, v_star = unit(generator.standard_normal((2, d)))
        self.set(k_star, unit(v_star - k_star * (k_star @ v_star)), unit(generator.standard_normal((runs, 2, d))))

    def lam_at(self, t):
        return self.lam / (1 + self.decay * t)


class AmbientNumpy(Ambient):
    """Hand-written gradient, two products with the tokens, and little else."""

    def set(self, k_star, v_star, kv):
        self.k_star, self.v_star, self.kv = (a.astype(self.dtype) for a in (k_star, v_star, kv))
        self.x = np.empty(self.shape, self.dtype)
        self.generator = np.random.Generator(np.random.SFC64(1))  # NumPy's fastest

    def draw(self):
        x, draw = self.x, self.generator.standard_normal
        draw(dtype=self.dtype, out=x)
        relevant = x[:, :, 0]
        relevant *= self.dtype(math.sqrt(GAMMA2))
        relevant += self.dtype(self.mu) * self.k_star
        y = relevant @ self.v_star
        y += self.dtype(self.eps) * draw(y.shape, self.dtype)
        return x, y

    def gradient(self, x, y, lam):
        """Of the mean squared error, in k and v: (run, 2, dimension)."""
        runs, batch, L, d = self.shape
        lam, two = self.dtype(lam), self.dtype(2 / batch)
        rows = x.reshape(runs, batch * L, d)
        scores = (self.kv @ rows.transpose(0, 2, 1)).reshape(runs, 2, batch, L)
        chi, z = lam * scores[:, 0], scores[:, 1]
        w = special.erf(chi)
        miss = two * ((w * z).sum(-1) - y)[..., None]
        pull = np.empty_like(scores)
        np.multiply((lam * self.dtype(TWO_OVER_SQRT_PI)) * np.exp(-chi * chi), z * miss, out=pull[:, 0])
        np.multiply(w, miss, out=pull[:, 1])
        return pull.reshape(runs, 2, batch * L) @ rows

    def step(self, t, x, y):
        g, kv = self.gradient(x, y, self.lam_at(t)), self.kv
        g -= kv * (kv * g).sum(-1, keepdims=True)
        kv -= self.dtype(self.alpha) * g
        kv /= np.sqrt((kv * kv).sum(-1, keepdims=True))

    def run(self, steps):
        for t in range(steps):
            self.step(t, *self.draw())


class AmbientTorch(Ambient):
    """The forward pass as one would write it, and autograd. k and v are stacked: that is a few
    calls less than twice everything."""

    def set(self, k_star, v_star, kv):
        self.k_star, self.v_star, self.kv = (torch.tensor(a, dtype=self.dtype) for a in (k_star, v_star, kv))
        self.kv.requires_grad_()

    def draw(self):
        x = torch.randn(self.shape, dtype=self.dtype)
        relevant = x[:, :, 0]
        relevant.mul_(math.sqrt(GAMMA2)).add_(self.k_star, alpha=self.mu)
        return x, (relevant @ self.v_star).add_(torch.randn(self.shape[:2], dtype=self.dtype), alpha=self.eps)

    def gradient(self, x, y, lam):
        runs, batch, L, d = self.shape
        chi, z = (self.kv @ x.view(runs, batch * L, d).transpose(1, 2)).view(runs, 2, batch, L).unbind(1)
        loss = (((torch.erf(lam * chi) * z).sum(2) - y) ** 2).sum() / batch
        return torch.autograd.grad(loss, self.kv)[0]

    def step(self, t, x, y):
        g, kv = self.gradient(x, y, self.lam_at(t)), self.kv
        with torch.no_grad():
            kv -= self.alpha * (g - kv * (kv * g).sum(2, keepdim=True))
            kv /= kv.norm(dim=2, keepdim=True)

    def run(self, steps):
        for t in range(steps):
            self.step(t, *self.draw())
