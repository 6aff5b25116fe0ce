/* What the page calls: flat functions over arrays of doubles, the same for the module that a browser runs and for the
 * native program that tests compare it with (native.c).
 *
 * A call takes `count` numbers and leaves its answers in out, which has room for `room`. It returns how many there are,
 * or -1: then web_message() is the library's sentence. WEB_CALLS lists them all, with what they take; a name in
 * brackets stands for any number of numbers. Whole numbers are doubles that are whole. Forms are 0 erf, 1 softmax,
 * 2 linear; forms of contexts and kernels are numbered as in finetti/context.h and finetti/math.h. */
#ifndef FINETTI_WEB_H
#define FINETTI_WEB_H

#define WEB_CALLS(C)                                                                               \
    C(tokens, "snr L seed sample", "J, then chi_star (L), z_star (L)")                             \
    C(weights, "form lam snr [chi] [z]", "w (L), posterior (L), f(X), E[Y|X]")                     \
    C(risks, "form snr L [lam]", "(lam, 3): risk, error, method; k and v are the oracle's")        \
    C(excess, "form snr L samples seed [lam]",                                                     \
      "(lam, 2): mean of (f(X) - E[Y|X])^2 over the same draws for every lam, its error")          \
    C(bayes, "snr L", "Bayes risk, error, best linear attention")                                  \
    C(plane, "d L lam gamma eps n", "(n, n): risk on M, a row for every kappa")                    \
    C(risk, "d L lam gamma eps kappa nu theta eta rho", "risk, signal, noise, bias")               \
    C(stationary, "d L lam gamma eps", "(points, 6): kappa, nu, risk, kind, negative, flat")       \
    C(curvature, "d L lam gamma eps kappa nu theta eta rho",                                       \
      "norm of the gradient, least and largest eigenvalue, negative ones")                         \
    C(train,                                                                                       \
      "d L lam gamma eps engine init alpha decay batch steps runs seed log_every "                 \
      "kappa nu theta eta rho until",                                                              \
      "logs, steps (logs), (runs, 2): status, step, (runs, logs, 8): kappa nu theta eta rho lam "  \
      "risk distance")                                                                             \
    C(further, "until", "as train, whose runs go on to that step")                                 \
    C(context, "form kernel scale prior noise level temperature L m [keys] [values] [queries]",    \
      "mean (m), variance (m)")                                                                    \
    C(attend, "form kernel scale prior noise level temperature L m [keys] [values] [queries]",     \
      "weights (m, L)")                                                                            \
    C(tune, "form kernel tuned L [keys] [values]",                                                 \
      "scale, prior, noise, level, temperature, what was maximised")                               \
    C(predicted, "form law concentration kappa power lam lam_power linear quadratic noise [L]",    \
      "(L, 3): rmse, bias, variance; nan where there is no closed form")                           \
    C(rate,                                                                                        \
      "form law concentration kappa power lam lam_power linear quadratic noise L contexts "        \
      "queries seed",                                                                              \
      "rmse, its error")                                                                           \
    C(circle, "form law concentration kappa power lam lam_power linear quadratic noise L seed n",  \
      "(n, 3): truth, found in one context, what it tends to")                                     \
    C(erm, "snr L eps alpha penalty samples seed",                                                 \
      "softmax with a ridge penalty: risk, error, cosines of k and v; NaN: not settled")           \
    C(curve, "snr L eps alpha",                                                                    \
      "q_k, q_v, optimal, error, known, linear, other risk (nan: none), 1 if other is beside")     \
    C(fused, "[a b c]", "(n, 2): a b + c rounded once, as doubles and as floats")

#define WEB_CALL_DECLARE(name, takes, leaves)                                                      \
    int web_##name(int count, const double *in, int room, double *out);
WEB_CALLS(WEB_CALL_DECLARE)
#undef WEB_CALL_DECLARE

const char *web_message(void);
/* Memory for in and out; NULL: there is none. */
double *web_take(int numbers);
void web_give_back(double *numbers);

#endif
