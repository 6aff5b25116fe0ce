/* The draws of the model bayes against its posterior by quadrature: one column, few bags, so that key, value, bias and
 * noise are four numbers. Scales of the priors are integrated by hand: a key is Student's t.
 *
 *     numbers   k ~ t(4) sqrt(2),  v ~ t(4),  b ~ N(0, 100),  sigma half Cauchy of scale 1
 *     classes   k ~ t(10) sqrt(3), v ~ t(10) 10, b ~ N(0, 100)
 *
 * Tokens have mean 0 and variance 1, and so have labels that are numbers: the fit changes no units. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "finetti/bags.h"
#include "finetti/random.h"
#include "random/streams.h"
#include "test_size.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 10, L = 2, NEW = 3, LAST = 4 };
/* Of a new bag: prediction, mean square of a label (classes: of the probability), probability of the first token, share of labels below a point. */
enum { MEAN, SQUARE, FIRST, SAID };

typedef struct data {
    bool numbers;
    double x[N + NEW][L], y[N];
} data;

static void standardise(int n, double *x)
{
    double mean = 0, square = 0;
    for (int i = 0; i < n; i++)
        mean += x[i] / n;
    for (int i = 0; i < n; i++)
        square += (x[i] - mean) * (x[i] - mean) / n;
    for (int i = 0; i < n; i++)
        x[i] = (x[i] - mean) / sqrt(square);
}

static data make(bool numbers)
{
    data o = {.numbers = numbers};
    double noise[N];
    fin_random_normals_f64(11, FIN_STREAM_USER, numbers, 0, N * L, &o.x[0][0]);
    fin_random_normals_f64(11, FIN_STREAM_USER + 1, numbers, 0, N, noise);
    standardise(N * L, &o.x[0][0]);
    for (int i = 0; i < N; i++) { /* the larger token decides */
        double most = fmax(o.x[i][0], o.x[i][1]);
        o.y[i] = numbers ? most + 0.5 * noise[i] : most + 0.5 * noise[i] > 0.5;
    }
    if (numbers)
        standardise(N, o.y);
    const double fresh[NEW][L] = {{-1, 1}, {0.5, 1.5}, {-1.5, 0}};
    for (int i = 0; i < NEW * L; i++)
        o.x[N + i / L][i % L] = fresh[i / L][i % L];
    return o;
}

/* ---- quadrature ---------------------------------------------------------------------------------- */

/* x = scale sinh(u): fine in the middle, far at the ends. */
typedef struct axis {
    int n;
    double *x, *w;
} axis;

static axis open_axis(int n, double scale, double reach)
{
    axis a = {n, malloc((size_t)n * sizeof(double)), malloc((size_t)n * sizeof(double))};
    assert_true(a.x && a.w);
    for (int i = 0; i < n; i++) {
        double u = reach * (2.0 * i / (n - 1) - 1);
        a.x[i] = scale * sinh(u);
        a.w[i] = scale * cosh(u);
    }
    return a;
}

static void close_axis(axis *a)
{
    free(a->x);
    free(a->w);
}

static double student(double x, double freedom, double scale)
{
    return pow(1 + x * x / (scale * scale * freedom), -0.5 * (freedom + 1));
}

static double normal(double z)
{
    return 0.3989422804014327 * exp(-0.5 * z * z);
}

/* p(y_i | token l); of new bags what is predicted, its square and the share below 0.5. */
static void emit(const data *o, double v, double b, double sigma, double like[N][L],
                 double said[NEW][L][3])
{
    for (int i = 0; i < N + NEW; i++)
        for (int l = 0; l < L; l++) {
            double m = v * o->x[i][l] + b, p = 1 / (1 + exp(-m));
            if (i < N)
                like[i][l] = o->numbers ? normal((o->y[i] - m) / sigma) / sigma
                                        : (o->y[i] > 0.5 ? p : 1 - p);
            else {
                said[i - N][l][0] = o->numbers ? m : p;
                said[i - N][l][2] = m * m + sigma * sigma;
                said[i - N][l][1] = 0.5 * erfc((m - 0.5) / sigma / sqrt(2));
            }
        }
}

/* Means over the posterior: (NEW, SAID), and of the share of labels below 0.5. */
static void quadrature(const data *o, int fine, double want[NEW][SAID + 1])
{
    const double k_scale = o->numbers ? sqrt(2) : sqrt(3), v_scale = o->numbers ? 1 : 10,
                 freedom = o->numbers ? 4 : 10;
    axis k = open_axis(20 * fine + 1, 1, o->numbers ? 4.7 : 4.2),
         v = open_axis(o->numbers ? 24 * fine + 1 : 48 * fine + 1, o->numbers ? 0.5 : 1,
                       o->numbers ? 4 : 5.5),
         b = open_axis(o->numbers ? 20 * fine + 1 : 40 * fine + 1, o->numbers ? 0.5 : 1,
                       o->numbers ? 4 : 4),
         s = o->numbers ? open_axis(20 * fine + 1, 1, 1.8) : open_axis(1, 1, 0);
    double total = 0, like[N][L], said[NEW][L][3];
    memset(want, 0, NEW * sizeof *want);
    double(*gate)[N + NEW] = malloc((size_t)k.n * sizeof *gate);
    assert_non_null(gate);
    for (int a = 0; a < k.n; a++)
        for (int i = 0; i < N + NEW; i++)
            gate[a][i] = 1 / (1 + exp(k.x[a] * (o->x[i][1] - o->x[i][0])));
    for (int c = 0; c < s.n; c++)
        for (int e = 0; e < b.n; e++)
            for (int d = 0; d < v.n; d++) {
                double sigma = exp(s.n > 1 ? s.x[c] - 0.5 : 0);
                double prior =
                    student(v.x[d], freedom, v_scale) * v.w[d] * b.w[e] * normal(b.x[e] / 10);
                if (o->numbers)
                    prior *= sigma / (1 + sigma * sigma) * s.w[c];
                emit(o, v.x[d], b.x[e], sigma, like, said);
                for (int a = 0; a < k.n; a++) {
                    double weight = prior * student(k.x[a], freedom, k_scale) * k.w[a];
                    for (int i = 0; i < N; i++)
                        weight *= gate[a][i] * like[i][0] + (1 - gate[a][i]) * like[i][1];
                    total += weight;
                    for (int i = 0; i < NEW; i++) {
                        double g = gate[a][N + i];
                        double mean = g * said[i][0][0] + (1 - g) * said[i][1][0];
                        want[i][MEAN] += weight * mean;
                        want[i][SQUARE] +=
                            weight * (o->numbers ? g * said[i][0][2] + (1 - g) * said[i][1][2]
                                                 : mean * mean);
                        want[i][FIRST] += weight * g;
                        want[i][SAID] += weight * (g * said[i][0][1] + (1 - g) * said[i][1][1]);
                    }
                }
            }
    for (int i = 0; i < NEW; i++)
        for (int q = 0; q <= SAID; q++)
            want[i][q] /= total;
    free(gate);
    close_axis(&k);
    close_axis(&v);
    close_axis(&b);
    close_axis(&s);
}

/* ---- draws ----------------------------------------------------------------------------------------- */

/* The same from a fit. The share below 0.5: the coverage of the interval that has its end there. */
static void drawn(const data *o, int64_t seed, double got[NEW][SAID + 1])
{
    fin_error err = {FIN_OK, ""};
    fin_fit_settings settings;
    fin_settings_defaults(&fin_fit_table, &settings, sizeof settings);
    settings.model = FIN_MODEL_BAYES;
    settings.basis = FIN_BASIS_LINEAR;
    settings.gate = 1; /* free: tokens are taken as given */
    settings.seed = seed;
    int64_t offsets[N + 1];
    for (int i = 0; i <= N; i++)
        offsets[i] = (int64_t)i * L;
    fin_bags learn = {N, 1, 0, N, offsets, FIN_F64, o->x, o->y, NULL};
    fin_bags fresh = {NEW, 1, 0, NEW, offsets, FIN_F64, o->x[N], NULL, NULL};
    fin_fit *fit = NULL;
    int64_t classes = o->numbers ? 0 : 2, width = o->numbers ? 1 : 2;
    double mean[2 * NEW], sd[2 * NEW], prior[NEW * L];
    if (fin_fit_create(&fit, &settings, classes, &learn, NULL, NULL, NULL, &err) ||
        fin_fit_predict(fit, &fresh, mean, sd, NULL, &err) ||
        fin_fit_locate(fit, &fresh, &(fin_locations){.prior = prior}, NULL, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < NEW; i++) {
        double p = mean[i * width + width - 1], spread = sd[i * width + width - 1];
        got[i][MEAN] = p;
        got[i][SQUARE] = p * p + spread * spread;
        got[i][FIRST] = prior[i * L];
        got[i][SAID] = NAN;
    }
    /* Its upper end rises with the coverage: where it is 0.5. */
    for (int i = 0; i < NEW && o->numbers; i++) {
        double low = -1, high = 1; /* of 2 q - 1; below the median the lower end is what counts */
        for (int step = 0; step < 30; step++) {
            double c = 0.5 * (low + high), ends[2 * NEW];
            if (c == 0)
                c = 1e-9;
            if (fin_fit_interval(fit, &fresh, fabs(c), NULL, NULL, ends, NULL, &err))
                fail_msg("%s", err.message);
            *(ends[2 * i + (c > 0)] < 0.5 ? &low : &high) = c;
        }
        got[i][SAID] = 0.5 + 0.25 * (low + high);
    }
    fin_fit_destroy(fit);
}

static void against(bool numbers)
{
    const data o = make(numbers);
    const int64_t fits =
        sized(20, 40, 200); /* of few, five estimated deviations are nothing rare */
    const char *name[] = {"mean", "square", "first token", "below 0.5"};
    double want[NEW][SAID + 1], rough[NEW][SAID + 1], apart = 0, sum[NEW][SAID + 1] = {{0}},
                                                      square[NEW][SAID + 1] = {{0}};
    quadrature(&o, 2, rough);
    quadrature(&o, (int)sized(2, 3, 4), want);
    for (int i = 0; i < NEW; i++) /* the rougher grid's error is a small part of the draws' */
        for (int q = 0; q < SAID + numbers; q++)
            apart = fmax(apart, fabs(want[i][q] - rough[i][q]));
    printf("grids differ by %.1e\n", apart);
    assert_true(apart < 5e-4);
    for (int64_t seed = 1; seed <= fits; seed++) {
        double got[NEW][SAID + 1];
        drawn(&o, seed, got);
        for (int i = 0; i < NEW; i++)
            for (int q = 0; q <= SAID; q++) {
                sum[i][q] += got[i][q] / (double)fits;
                square[i][q] += got[i][q] * got[i][q] / (double)fits;
            }
    }
    for (int i = 0; i < NEW; i++)
        for (int q = 0; q < SAID + numbers; q++) {
            double mean = sum[i][q],
                   error = sqrt((square[i][q] - mean * mean) / (double)(fits - 1)),
                   z = (mean - want[i][q]) / error;
            printf("bag %d, %s: %.5f +- %.5f, by quadrature %.5f, z = %.2f\n", i, name[q], mean,
                   error, want[i][q], z);
            assert_true(fabs(z) < 5);
        }
}

static void draws__are_the_posterior_of_numbers(void **state)
{
    (void)state;
    against(true);
}

static void draws__are_the_posterior_of_classes(void **state)
{
    (void)state;
    against(false);
}

int main(void)
{
    fin_threads_set(1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(draws__are_the_posterior_of_numbers),
        cmocka_unit_test(draws__are_the_posterior_of_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
