#!/usr/bin/env python3
"""Risk of hardmax (lam = inf) on M, any L, and of softmax attention on M for L = 2, with 40 digits.

Needs mpmath. Hardmax: the relevant token wins with probability p = int phi(g) Phi(mu kappa + gamma g)^(L-1) dg, and
R = eps^2 + p gamma^2 (2 - 2 nu) + (1 - p) (1 + gamma^2). Softmax, L = 2: its weight is the logistic function of one normal number.
Deliberately not the integrals the library uses. Run: tools/make_softmax_table.py > tests/data/softmax_risk.csv
"""
import random
import mpmath as mp

mp.mp.dps = 60
phi = lambda x: mp.exp(-x * x / 2) / mp.sqrt(2 * mp.pi)
Phi = lambda x: mp.erfc(-x / mp.sqrt(2)) / 2


def pieces(*centres):
    ends = {-30, 30} | {c + s for c in centres for s in range(-12, 13) if -30 < c + s < 30}
    return sorted(ends)


def hardmax(gamma, mu, kappa, nu, L, eps):
    m = mu * kappa
    p = mp.quad(lambda g: phi(g) * Phi(m + gamma * g) ** (L - 1), pieces(mp.mpf(0), -m / gamma))
    return eps ** 2 + p * gamma ** 2 * (2 - 2 * nu) + (1 - p) * (1 + gamma ** 2)


def softmax(gamma, mu, kappa, nu, lam, eps):
    mean, sd = lam * mu * kappa, lam * mp.sqrt(1 + gamma ** 2)

    def at(g):
        w = 1 / (1 + mp.exp(-mean - sd * g))
        miss = 1 / (1 + mp.exp(mean + sd * g))
        return phi(g) * (gamma ** 2 * (miss ** 2 + 2 * (1 - nu) * w) + miss ** 2)
    return eps ** 2 + mp.quad(at, pieces(mp.mpf(0), -mean / sd))


rng = random.Random(5)
print("lambda,gamma,mu,kappa,nu,L,eps,risk")
for i in range(40):
    gamma, mu = rng.choice((0.3, 0.5 ** 0.5, 1.0, 1.7)), rng.choice((0.5, 2.0, 6.0, 14.0))
    kappa, nu, eps = rng.choice((1.0, rng.uniform(-1, 1))), rng.choice((1.0, rng.uniform(-1, 1))), rng.choice((0.0, 0.1))
    L = rng.choice((2, 3, 10, 100)) if i < 20 else 2
    lam = float("inf") if i < 20 else 10 ** rng.uniform(-1.5, 1.5)
    given = [mp.mpf(x) for x in (gamma, mu, kappa, nu)]
    risk = hardmax(*given, L, mp.mpf(eps)) if i < 20 else softmax(*given, mp.mpf(lam), mp.mpf(eps))
    print(f"{lam!r},{gamma!r},{mu!r},{kappa!r},{nu!r},{L},{eps!r},{mp.nstr(risk, 20, min_fixed=1, max_fixed=0)}")
