#ifndef FINETTI_THEORY_H
#define FINETTI_THEORY_H
#include "finetti/base.h"
typedef struct fin_risk_point { double kappa, nu, theta, eta, rho, lam, gamma, mu, eps, m, L_mean, L_var; } fin_risk_point;
typedef struct fin_risk_value { double signal, noise, bias, risk; double gradient[5]; } fin_risk_value;
#endif
