#!/usr/bin/env python3
"""Known answers for tests/test_math_bessel.c, by mpmath with 50 digits: python3 bessel.py > bessel.csv

nu, x, log(I_nu e^-x), I_{nu+1}/I_nu, 1 - I_{nu+1}/I_nu, log(Gamma(nu+1) (2/x)^nu I_nu e^-x)"""
import mpmath as mp

mp.mp.dps = 50
ORDERS = [0, 0.25, 0.5, 1, 1.5, 2, 3, 4.5, 7, 10, 15.5, 20, 25, 31.5, 32, 33, 40, 50, 200]
PLACES = ["1e-8", "1e-4", "0.01", "0.1", "0.5", "1", "2", "3", "5", "10", "20", "31.75", "32", "33",
          "50", "100", "200", "1e3", "1e4", "1e5", "1e6"]

print("nu,x,log,ratio,gap,reduced")
for nu in ORDERS:
    for place in PLACES:
        x = mp.mpf(float(place))
        low = mp.besseli(nu, x, maxterms=10**7)
        ratio = mp.besseli(nu + 1, x, maxterms=10**7) / low
        log = mp.log(low) - x
        reduced = log + mp.loggamma(nu + 1) + nu * mp.log(2 / x)
        print(f"{nu!r},{float(place)!r}," +
              ",".join(mp.nstr(y, 20) for y in (log, ratio, 1 - ratio, reduced)))
