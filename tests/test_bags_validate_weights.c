/* Weights of a stack: the optimum's conditions, a search by brute force, exact cases. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "finetti/random.h"
#include "bags/judge.h"

#include <math.h>
#include <string.h>

enum { N = 200, MOST = 9 };
static fin_error err;

typedef struct problem {
    int models;
    double P[MOST * N], y[N], omega[N];
} problem;

/* Models of different quality; `numbers`: predictions of y, else probabilities of what happened. */
static problem drawn(int models, int numbers, uint64_t seed)
{
    problem p = {.models = models};
    fin_random r;
    fin_random_open(&r, seed, FIN_STREAM_USER, 0);
    for (int i = 0; i < N; i++) {
        double common = fin_random_normal(&r);
        p.y[i] = fin_random_normal(&r);
        p.omega[i] = i % 10 == 0 ? 0 : fin_random_uniform(&r) + 0.2;
        for (int m = 0; m < models; m++) {
            double own = 0.3 * (m + 1) * fin_random_normal(&r) + 0.5 * common;
            p.P[m * N + i] = numbers ? p.y[i] + own : 1 / (1 + exp(-1 - 2 * own));
        }
    }
    return p;
}

static double loss(const problem *p, int numbers, const double *w)
{
    double sum = 0, total = 0;
    for (int i = 0; i < N; i++) {
        double mean = 0;
        for (int m = 0; m < p->models; m++)
            mean += w[m] * p->P[m * N + i];
        sum += p->omega[i] * (numbers ? (mean - p->y[i]) * (mean - p->y[i]) / 2 : -log(mean));
        total += p->omega[i];
    }
    return sum / total;
}

static void solve(const problem *p, int numbers, double *w)
{
    double sum = 0;
    if (fini_weights(p->models, N, p->P, numbers ? p->y : NULL, p->omega, 0, w, &err))
        fail_msg("%s", err.message);
    for (int m = 0; m < p->models; m++) {
        assert_true(w[m] >= 0);
        sum += w[m];
    }
    assert_true(fabs(sum - 1) < 1e-14);
}

/* Karush-Kuhn-Tucker: models with weight have the least derivative, all others more. */
static void weights__satisfy_the_conditions(void **state)
{
    (void)state;
    for (int k = 0; k < 40; k++) {
        int numbers = k % 2, models = 1 + k % MOST;
        problem p = drawn(models, numbers, (uint64_t)k);
        double w[MOST], g[MOST], least = INFINITY, total = 0, inner = 0;
        solve(&p, numbers, w);
        memset(g, 0, sizeof g);
        for (int i = 0; i < N; i++) {
            double mean = 0;
            for (int m = 0; m < models; m++)
                mean += w[m] * p.P[m * N + i];
            for (int m = 0; m < models; m++)
                g[m] += p.omega[i] *
                        (numbers ? (mean - p.y[i]) * p.P[m * N + i] : -p.P[m * N + i] / mean);
            total += p.omega[i];
        }
        for (int m = 0; m < models; m++) {
            least = fmin(least, g[m] / total);
            inner += w[m] * g[m] / total;
        }
        if (!(inner - least <= 1e-11))
            fail_msg("problem %d: the loss may be %g above the least", k, inner - least);
    }
}

static void weights__beat_every_point_of_a_grid(void **state)
{
    (void)state;
    for (int numbers = 0; numbers <= 1; numbers++) {
        problem p = drawn(3, numbers, 99);
        double w[3], best = INFINITY;
        solve(&p, numbers, w);
        for (int a = 0; a <= 100; a++)
            for (int b = 0; b + a <= 100; b++) {
                const double grid[] = {a / 100.0, b / 100.0, (100 - a - b) / 100.0};
                best = fmin(best, loss(&p, numbers, grid));
            }
        assert_true(loss(&p, numbers, w) <= best);
        assert_true(loss(&p, numbers, w) > best - 1e-3); /* and the grid is not far */
        assert_true(w[0] > w[2]);                        /* the better model weighs more */
    }
}

/* With a prior, derivatives of all models are equal: every weight is positive. And the more bags
 * there are, the less it matters. */
static void weights__with_a_prior(void **state)
{
    (void)state;
    double before[2] = {0, 0};
    for (int k = 0; k < 12; k++) {
        int numbers = k % 2, models = 2 + k % 7;
        problem p = drawn(models, numbers, (uint64_t)k);
        double w[MOST], alone[MOST], prior = pow(10, k / 2 - 1), near = 0, sigma2 = INFINITY;
        double total = 0, squares = 0, g[MOST] = {0};
        for (int m = 0; m < models; m++) {
            memset(alone, 0, sizeof alone);
            alone[m] = 1;
            sigma2 = fmin(sigma2, 2 * loss(&p, 1, alone));
        }
        assert_int_equal(
            fini_weights(models, N, p.P, numbers ? p.y : NULL, p.omega, prior, w, &err), FIN_OK);
        for (int i = 0; i < N; i++) {
            double mean = 0;
            for (int m = 0; m < models; m++)
                mean += w[m] * p.P[m * N + i];
            for (int m = 0; m < models; m++)
                g[m] += p.omega[i] * (numbers ? (mean - p.y[i]) * p.P[m * N + i] / sigma2
                                              : -p.P[m * N + i] / mean);
            total += p.omega[i];
            squares += p.omega[i] * p.omega[i];
        }
        for (int m = 0; m < models; m++) {
            g[m] = g[m] / total - prior * squares / (total * total) / models / w[m];
            near = fmax(near, fabs(w[m] - 1.0 / models));
            assert_true(w[m] > 0 && fabs(g[m] - g[0]) < 1e-6);
        }
        if (k >= 10)
            before[numbers] = near;
    }
    assert_true(before[0] < 0.02 && before[1] < 0.02); /* prior = 10^4: nearly equal */
}

static void weights__exact_cases(void **state)
{
    (void)state;
    problem p = drawn(4, 0, 3);
    double w[4];
    for (int i = 0; i < N; i++) /* the first is right always: it has it all */
        p.P[i] = 1;
    solve(&p, 0, w);
    assert_true(w[0] == 1);
    for (int m = 0; m < 4; m++) /* copies share equally */
        memcpy(p.P + m * N, p.P + 3 * N, N * sizeof *p.P);
    solve(&p, 0, w);
    for (int m = 0; m < 4; m++)
        assert_true(fabs(w[m] - 0.25) < 1e-15);
    for (int i = 0; i < N; i++) { /* y lies a quarter of the way from model 0 to model 1 */
        p.P[i] = p.y[i] - 0.1 * (i % 3);
        p.P[N + i] = p.y[i] + 0.3 * (i % 3);
    }
    p.models = 2;
    solve(&p, 1, w);
    assert_true(fabs(w[0] - 0.75) < 1e-12);
    for (int i = 0; i < N; i++) { /* nobody ever gives the truth a chance: still weights */
        p.P[i] = p.P[N + i] = 0;
    }
    solve(&p, 0, w);
    p.P[7] = NAN; /* bag 7 counts */
    assert_int_equal(fini_weights(2, N, p.P, NULL, p.omega, 0, w, &err), FIN_ERR_NUMERIC);
    memset(p.omega, 0, sizeof p.omega);
    assert_int_equal(fini_weights(2, N, p.P, NULL, p.omega, 0, w, &err), FIN_ERR_NUMERIC);
}

static fin_status weigh_once(void *user, fin_error *e)
{
    double w[MOST];
    problem *p = user;
    return fini_weights(p->models, N, p->P, NULL, NULL, 3, w, e);
}

static void weights__without_memory(void **state)
{
    (void)state;
    problem p = drawn(5, 0, 1);
    assert_int_equal(fault_every(weigh_once, &p), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights__satisfy_the_conditions),
        cmocka_unit_test(weights__beat_every_point_of_a_grid),
        cmocka_unit_test(weights__with_a_prior),
        cmocka_unit_test(weights__exact_cases),
        cmocka_unit_test(weights__without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
