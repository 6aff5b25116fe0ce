/* Two more faces of the Bessel functions, for formulas on spheres that would otherwise cancel. */
#ifndef FINI_MATH_BESSEL_H
#define FINI_MATH_BESSEL_H

/* log(Gamma(nu+1) (2/x)^nu I_nu(x) e^-x): 0 at x = 0, never positive. nu >= 0, x >= 0. */
double fini_bessel_reduced(double nu, double x);
/* 1 - I_{nu+1}(x) / I_nu(x), relatively accurate also where the ratio rounds to one. */
double fini_bessel_gap(double nu, double x);

/* log(I_nu(x) e^-x), modified Bessel function of the first kind, nu >= 0 (real), x >= 0: finite
 * where I_nu itself over- or underflows; -inf at x = 0 unless nu = 0. Error below 1e-14 times the
 * larger of 1 and the result. NaN for other arguments. */
double fini_bessel_log(double nu, double x);
/* I_{nu+1}(x) / I_nu(x) in [0, 1]; relative error below 1e-14 for all nu and x, at a cost that does
 * not depend on them. NaN unless nu >= 0 and x >= 0. */
double fini_bessel_ratio(double nu, double x);

#endif
