/* Gauss-Hermite quadrature for the standard normal law.
 *
 * The nodes are the eigenvalues of the Jacobi matrix of the orthonormal Hermite polynomials p_k,
 *     x p_k = sqrt(k+1) p_{k+1} + sqrt(k) p_{k-1}
 * (Golub & Welsch, Math. Comp. 23, 1969). Their weights are the squared first components of the
 * eigenvectors, but those come out with absolute, not relative accuracy: noise of 1e-32 where the
 * true weight is 1e-200. So only eigenvalues are asked for, one Newton step polishes each, and
 *     w_i = 1 / (p_0(x_i)^2 + ... + p_{n-1}(x_i)^2),
 * a sum of positive terms, is small to full relative accuracy. Weights below the smallest double
 * (|x| > 38.6, first at n = 389) are zero. */
#include "base/base.h"
#include "finetti/math.h"

#include <lapacke.h>
#include <math.h>

enum { N_MAX = 1024 };

typedef struct hermite_at {
    double step;   /* Newton's correction: p_n / p_n', where p_n' = sqrt(n) p_{n-1} */
    double weight; /* of x, were it a node */
} hermite_at;

/* p_k grows like exp(x^2/4), past the largest double: everything is scaled down by 2^-exponent. */
static hermite_at hermite_evaluate(int n, double x)
{
    const double large = 0x1p200;
    double before = 0, now = 1, sum = 0;
    int exponent = 0;
    for (int k = 0; k < n; k++) { /* before, now = p_{k-1}, p_k */
        sum += now * now;
        double next = (x * now - sqrt(k) * before) / sqrt(k + 1);
        before = now;
        now = next;
        if (fabs(now) > large) {
            before /= large;
            now /= large;
            sum /= large * large;
            exponent += 200;
        }
    }
    return (hermite_at){.step = now / (sqrt(n) * before), .weight = scalbn(1 / sum, -2 * exponent)};
}

fin_status fin_hermite(int n, double *x, double *w, fin_error *err)
{
    FINI_NEED(err, x, w);
    if (n < 1 || n > N_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "hermite: n = %d nodes; 1 to %d are possible, 64 are plenty for smooth f",
                         n, (int)N_MAX);

    /* w holds the off-diagonal meanwhile: dsterf needs no other memory. */
    for (int i = 0; i < n; i++) {
        x[i] = 0;
        w[i] = sqrt(i + 1);
    }
    lapack_int info = LAPACKE_dsterf(n, x, w);
    if (info != 0)
        return fini_fail(err, FIN_ERR_NUMERIC, "hermite: LAPACK dsterf gave up on n = %d (info %d)",
                         n, (int)info);

    /* The upper half, mirrored: the rule is symmetric to the last bit. */
    double total = 0;
    for (int i = n - 1; i >= n / 2; i--) {
        int mirror = n - 1 - i;
        double node = i == mirror ? 0 : 0.5 * (x[i] - x[mirror]);
        node -= i == mirror ? 0 : hermite_evaluate(n, node).step;
        x[i] = node;
        x[mirror] = -node;
        w[i] = w[mirror] = hermite_evaluate(n, node).weight;
        total += i == mirror ? w[i] : 2 * w[i];
    }
    for (int i = 0; i < n; i++)
        w[i] /= total;
    return FIN_OK;
}
