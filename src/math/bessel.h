/* Two more faces of the Bessel functions, for formulas on spheres that would otherwise cancel. */
#ifndef FINI_MATH_BESSEL_H
#define FINI_MATH_BESSEL_H

/* log(Gamma(nu+1) (2/x)^nu I_nu(x) e^-x): 0 at x = 0, never positive. nu >= 0, x >= 0. */
double fini_bessel_reduced(double nu, double x);
/* 1 - I_{nu+1}(x) / I_nu(x), relatively accurate also where the ratio rounds to one. */
double fini_bessel_gap(double nu, double x);

#endif
