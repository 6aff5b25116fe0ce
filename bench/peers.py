"""The same work in NumPy, SciPy and PyTorch. What is not installed is None."""

import numpy as np

try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

try:
    from scipy import special
except ImportError:
    special = None

TWO_OVER_SQRT_PI = 1.1283791670955126


class TorchAttention:
    """Squared error of f = sum_l w_l z_l and its gradients in k, v and lam.

    Two products of a matrix with a vector: on one core they beat one product with the stacked
    [k v], which was tried in three layouts.
    """

    def __init__(self, form, tokens, k, v, lam):
        self.form, self.shape = form, (tokens.n, tokens.L)
        self.x, self.y = torch.from_numpy(tokens.x), torch.from_numpy(tokens.y).float()
        self.k, self.v, self.lam = (torch.tensor(value, dtype=torch.float32, requires_grad=True) for value in (k, v, lam))

    def weights(self, score):
        return torch.erf(score) if self.form == "erf" else torch.softmax(score, 1)

    def autograd(self):
        chi, z = (self.x @ self.k).view(self.shape), (self.x @ self.v).view(self.shape)
        loss = (((self.weights(self.lam * chi) * z).sum(1) - self.y) ** 2).sum()
        return (loss, *torch.autograd.grad(loss, (self.k, self.v, self.lam)))

    @torch.no_grad() if torch else (lambda call: call)
    def by_hand(self):
        chi, z = (self.x @ self.k).view(self.shape), (self.x @ self.v).view(self.shape)
        w = self.weights(self.lam * chi)
        f = (w * z).sum(1, keepdim=True)
        miss = f - self.y[:, None]
        if self.form == "erf":
            slope = 2 * miss * TWO_OVER_SQRT_PI * torch.exp(-(self.lam * chi) ** 2) * z
        else:
            slope = 2 * miss * w * (z - f)
        p, q = (self.lam * slope).view(-1), (2 * miss * w).view(-1)
        return (miss ** 2).sum(), self.x.t() @ p, self.x.t() @ q, (slope * chi).sum()


def erf_risk(points):
    """Risk and gradient of the erf predictor at rows of points: the formula of
    src/kernel/erf_risk_body.h, with its one integral as a difference of Owen's T."""
    kappa, nu, theta, eta, rho, lam, gamma, mu, eps, m, L, spread = np.ascontiguousarray(points.T)
    sign = np.where(kappa < 0, -1.0, 1.0)
    kappa, nu, theta, eta = sign * kappa, sign * nu, sign * theta, sign * eta
    N, g2 = L - m, gamma * gamma
    lg2 = lam * lam * g2
    a = 1 / np.sqrt(1 + 4 * lg2)
    r = lam / np.sqrt(1 + 2 * lg2)
    x, t = r * mu * kappa, mu * theta
    y = a * x
    Ex, Ey = TWO_OVER_SQRT_PI * np.exp(-x * x), TWO_OVER_SQRT_PI * np.exp(-y * y)
    erf_x, erfc_x, erfc_y = special.erf(x), special.erfc(x), special.erfc(y)
    h = np.sqrt(2) * x
    W = 8 * (special.owens_t(h, 1) - special.owens_t(h, a))
    W_x = 2 * Ex * (special.erf(y) - erf_x)

    rE = r * Ex
    b1, b2, b3 = -rE, 2 * x * r * rE, r * r * rE * (2 - 4 * x * x)
    twice, inner = 2 * erfc_y - erfc_x, 2 * a * Ey + 4 * x * erfc_y - Ex
    P1, P2, x_k = -rE * twice, r * rE * inner, r * mu
    P1_k = x_k * rE * (2 * x * twice + 2 * a * Ey - Ex)
    P2_k = x_k * r * rE * (-2 * x * inner - 4 * a * a * y * Ey + 4 * erfc_y - 4 * x * a * Ey + 2 * x * Ex)
    slope, tilt = b1 * t + b2 * g2 * rho, rho - eta
    Vs = (2 * g2 * (1 - nu) * erf_x - 2 * g2 * tilt * slope + (t * t + g2) * W + g2 * erfc_x ** 2
          + 2 * t * g2 * rho * P1 + (g2 * rho) ** 2 * P2)
    l2 = lam * lam
    root, D = np.sqrt(1 + 4 * l2), 1 + 2 * l2
    zeta = 4 / np.pi * np.arctan(4 * l2 / (root + 1) ** 2)
    q, c = 4 / np.pi * l2 / D * (2 / root - 1), TWO_OVER_SQRT_PI * lam / np.sqrt(D)
    bias = m * (t * erf_x + g2 * rho * rE) + N * c * rho
    Vs_k = (2 * g2 * (1 - nu) * Ex * x_k - 2 * g2 * tilt * mu * (b2 * t + b3 * g2 * rho) + (t * t + g2) * W_x * x_k
            - 2 * g2 * erfc_x * Ex * x_k + 2 * t * g2 * rho * P1_k + (g2 * rho) ** 2 * P2_k)
    Vs_t = mu * (-2 * g2 * tilt * b1 + 2 * t * W + 2 * g2 * rho * P1)
    Vs_r = -2 * g2 * slope - 2 * g2 * g2 * tilt * b2 + 2 * t * g2 * P1 + 2 * g2 * g2 * rho * P2
    signal, noise = m * Vs, N * (zeta + rho * rho * q)
    off = bias ** 2 + spread * (c * rho) ** 2
    return np.stack((
        signal, noise, off, eps ** 2 + signal + noise + off,
        sign * m * (Vs_k + 2 * bias * (t * Ex * x_k - g2 * rho * mu * b2)),
        sign * m * (-2 * g2 * erf_x),
        sign * m * (Vs_t + 2 * bias * mu * erf_x),
        sign * m * (2 * g2 * slope),
        m * Vs_r + 2 * N * rho * q + 2 * bias * (m * g2 * rE + N * c) + 2 * spread * c * c * rho), 1)
