/* Descents of many runs side by side: the same bits in every kernel, a step of the exact descent
 * against vectors in R^4, a step of SGD against the sums it stands for, and lanes that do not know
 * of each other. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/random.h"
#include "finetti/theory.h"
#include "kernel/coefficients.h"
#include "test_kernel_fence.h"

#include <float.h>

enum { RUNS = FINI_RUNS, STEPS = 7 };
typedef double states[FINI_STATE][FINI_RUNS];

/* ---- states of all kinds ------------------------------------------------------------------------- */

/* Overlaps of two unit vectors of R^4 (frame k*, v*, e3, e4); some at corners, where directions of
 * the frame are missing. */
static void make_vectors(fin_random *r, int kind, double k[4], double v[4])
{
    fin_random_sphere(r, 4, k);
    fin_random_sphere(r, 4, v);
    double sign = fin_random_word(r) & 1 ? 1 : -1;
    static const double unit[4][4] = {{1}, {0, 1}, {0, 0, 1}, {0, 0, 0, 1}};
    if (kind == 1 || kind == 3) /* kappa = +-1 */
        for (int i = 0; i < 4; i++)
            k[i] = sign * unit[0][i];
    if (kind == 2 || kind == 3) /* nu = +-1 */
        for (int i = 0; i < 4; i++)
            v[i] = sign * unit[1][i];
    if (kind == 4) /* rho = +-1 */
        for (int i = 0; i < 4; i++)
            v[i] = sign * k[i];
    if (kind == 5) /* all zero */
        for (int i = 0; i < 4; i++) {
            k[i] = unit[2][i];
            v[i] = unit[3][i];
        }
    if (kind == 6) /* eta = theta = +-1 */
        for (int i = 0; i < 4; i++) {
            k[i] = sign * unit[1][i];
            v[i] = -sign * unit[0][i];
        }
    if (kind == 7 || kind == 8) { /* close to a corner */
        double small = kind == 7 ? 1e-9 : 1e-5, norm2 = 0;
        for (int i = 0; i < 4; i++) {
            k[i] = sign * unit[0][i] + small * k[i];
            norm2 += k[i] * k[i];
        }
        for (int i = 0; i < 4; i++)
            k[i] /= sqrt(norm2);
    }
}
enum { KINDS = 9 };

static double within(double x)
{
    return fmax(-1, fmin(1, x));
}

static void put(states s, int lane, const double k[4], const double v[4], double lam)
{
    s[0][lane] = within(k[0]);
    s[1][lane] = within(v[1]);
    s[2][lane] = within(v[0]);
    s[3][lane] = within(k[1]);
    s[4][lane] = within(k[0] * v[0] + k[1] * v[1] + k[2] * v[2] + k[3] * v[3]);
    s[5][lane] = lam;
}

static void make_states(fin_random *r, states s, double lam)
{
    for (int lane = 0; lane < RUNS; lane++) {
        double k[4], v[4];
        make_vectors(r, (int)fin_random_below(r, 2 * KINDS), k, v);
        put(s, lane, k, v, lam);
    }
}

static double log_uniform(fin_random *r, double low, double high)
{
    return low * pow(high / low, fin_random_uniform(r));
}

/* lam from 1e-4 to 1e3, gamma with 0, mu up to 1e8, alpha with 0 and large. */
static fini_population_model make_model(fin_random *r)
{
    double m = 1 + (double)fin_random_below(r, 3);
    return (fini_population_model){.gamma = fin_random_below(r, 6) ? log_uniform(r, 0.01, 30) : 0,
                                   .mu = fin_random_below(r, 8) ? log_uniform(r, 0.01, 1e8) : 0,
                                   .m = m,
                                   .L_mean = m + (double)fin_random_below(r, 30),
                                   .L_var = fin_random_below(r, 2) ? 4 * fin_random_uniform(r) : 0,
                                   .penalty =
                                       fin_random_below(r, 3) ? 0 : log_uniform(r, 0.01, 100)};
}

static double make_alpha(fin_random *r)
{
    return fin_random_below(r, 10) ? log_uniform(r, 1e-8, 1e3) : 0;
}

/* The same bits; not a number has a sign, which says nothing. */
static int same_states(states want, states got)
{
    for (int i = 0; i < 6; i++)
        for (int lane = 0; lane < RUNS; lane++)
            if (!(isnan(want[i][lane]) && isnan(got[i][lane])) &&
                memcmp(&want[i][lane], &got[i][lane], sizeof(double)) != 0)
                return 0;
    return 1;
}

static void print_states(const states a, const states b)
{
    for (int i = 0; i < FINI_STATE; i++)
        for (int lane = 0; lane < RUNS; lane++)
            if (memcmp(&a[i][lane], &b[i][lane], sizeof(double)) != 0)
                print_message("lane %d, number %d: %.17g, reference %.17g\n", lane, i, b[i][lane],
                              a[i][lane]);
}

/* ---- the same bits --------------------------------------------------------------------------------- */

static void population__same_bits_in_every_kernel(void **state)
{
    (void)state;
    const fini_kernel *kernel[4];
    int count = kernels_other(kernel), finite = 0, total = 0;
    fin_random r;
    fin_random_open(&r, 1, FIN_STREAM_USER, 0);
    for (int trial = 0; trial < 1500; trial++) {
        static states start, want, got;
        double lam[STEPS], alpha[STEPS];
        fini_population_model p = make_model(&r);
        for (int t = 0; t < STEPS; t++) { /* a lam that stays is not worked out again */
            lam[t] = t % 3 == 1 ? lam[t - 1] : log_uniform(&r, 1e-4, 1e3);
            alpha[t] = make_alpha(&r);
        }
        int64_t steps = fin_random_below(&r, STEPS + 1);
        make_states(&r, start, 77);
        memcpy(want, start, sizeof want);
        fini_kernel_ref.population(&p, steps, lam, alpha, want);
        for (int lane = 0; lane < RUNS; lane++) {
            assert_true(want[5][lane] == (steps ? lam[steps - 1] : 77));
            for (int i = 0; i < 5; i++) {
                finite += isfinite(want[i][lane]) != 0;
                assert_false(fabs(want[i][lane]) > 1);
                total++;
            }
        }
        for (int k = 0; k < count; k++) {
            memcpy(got, start, sizeof got);
            kernel[k]->population(&p, steps, lam, alpha, got);
            if (!same_states(want, got)) {
                print_states(want, got);
                fail_msg("trial %d: %s differs from the reference", trial, kernel[k]->name);
            }
        }
    }
    print_message("%d of %d finite\n", finite, total);
    assert_int_equal(finite, total);
}

static const int64_t dimensions[] = {8, 9, 10, 13, 80, 400, 1000000, INT64_C(1000000000000)};
static const int64_t lengths[] = {1, 2, 3, 10, 33, 34, 101};

static fini_reduction make_reduction(fin_random *r)
{
    return (fini_reduction){.seed = fin_random_word(r),
                            .run = (uint64_t)fin_random_below(r, 1 << 20),
                            .stream = FIN_STREAM_USER + fin_random_word(r) % 100,
                            .d = dimensions[fin_random_below(r, 8)],
                            .L = lengths[fin_random_below(r, 7)],
                            .batch = 1 + fin_random_below(r, 7),
                            .gamma = fin_random_below(r, 6) ? log_uniform(r, 0.01, 30) : 0,
                            .mu = fin_random_below(r, 8) ? log_uniform(r, 0.01, 1e8) : 0,
                            .eps = fin_random_below(r, 2) ? fin_random_uniform(r) : 0,
                            .penalty = fin_random_below(r, 3) ? 0 : log_uniform(r, 0.01, 100),
                            .alpha_lam = fin_random_below(r, 3) ? 0 : log_uniform(r, 1e-6, 1e-2)};
}

static void reduced__same_bits_in_every_kernel(void **state)
{
    (void)state;
    const fini_kernel *kernel[4];
    int count = kernels_other(kernel), finite = 0, total = 0;
    fin_random r;
    fin_random_open(&r, 2, FIN_STREAM_USER, 0);
    for (int trial = 0; trial < 250; trial++) {
        static states start, want, got;
        double lam[STEPS], alpha[STEPS];
        fini_reduction p = make_reduction(&r);
        for (int t = 0; t < STEPS; t++) {
            lam[t] = log_uniform(&r, 1e-4, 1e3);
            alpha[t] = make_alpha(&r);
        }
        int64_t steps = fin_random_below(&r, 4), first = fin_random_below(&r, INT64_C(1) << 40);
        make_states(&r, start, log_uniform(&r, 1e-3, 10));
        memcpy(want, start, sizeof want);
        fini_kernel_ref.reduced(&p, first, steps, lam, alpha, want);
        for (int lane = 0; lane < RUNS; lane++)
            for (int i = 0; i < 6; i++) {
                finite += isfinite(want[i][lane]) != 0;
                assert_true(p.alpha_lam > 0 || isfinite(want[i][lane])); /* a trained lam may go */
                assert_false(i < 5 && fabs(want[i][lane]) > 1);
                total++;
            }
        for (int k = 0; k < count; k++) {
            memcpy(got, start, sizeof got);
            kernel[k]->reduced(&p, first, steps, lam, alpha, got);
            if (!same_states(want, got)) {
                print_states(want, got);
                fail_msg("trial %d: %s differs from the reference", trial, kernel[k]->name);
            }
        }
    }
    print_message("%d of %d finite\n", finite, total);
    assert_true(finite > 0.95 * total);
}

/* ---- one step of the exact descent ------------------------------------------------------------------- */

static double dot4(const double *a, const double *b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2] + a[3] * b[3];
}

static double step4(double x[4], const double g[4], double alpha)
{
    double along = dot4(g, x), norm, size = 0;
    for (int i = 0; i < 4; i++) {
        size += fabs(g[i]);
        x[i] -= alpha * (g[i] - along * x[i]);
    }
    norm = sqrt(dot4(x, x));
    for (int i = 0; i < 4; i++)
        x[i] /= norm;
    return alpha * size;
}

static void population__is_a_step_of_vectors(void **state)
{
    (void)state;
    fin_random r;
    fin_random_open(&r, 3, FIN_STREAM_USER, 0);
    double worst = 0, way = 0;
    int large = 0;
    for (int trial = 0; trial < 1500; trial++) {
        static states s;
        double k[RUNS][4], v[RUNS][4], lam = log_uniform(&r, 1e-4, 1e3);
        fini_population_model p = make_model(&r);
        for (int lane = 0; lane < RUNS; lane++) {
            make_vectors(&r, (int)fin_random_below(&r, 2 * KINDS), k[lane], v[lane]);
            put(s, lane, k[lane], v[lane], 0);
        }
        /* Scale alpha to the gradients, so that runs move by angles of all sizes but not wildly. */
        fin_risk_value value[RUNS];
        double steepest = 0, share = log_uniform(&r, 1e-3, 3);
        for (int lane = 0; lane < RUNS; lane++) {
            fin_risk_point at = {s[0][lane], s[1][lane], s[2][lane], s[3][lane],
                                 s[4][lane], lam,        p.gamma,    p.mu,
                                 0,          p.m,        p.L_mean,   p.L_var};
            assert_int_equal(fin_risk_erf(1, &at, &value[lane], NULL), FIN_OK);
            value[lane].gradient[4] += 2 * p.penalty * s[4][lane];
            for (int j = 0; j < 5; j++)
                steepest = fmax(steepest, fabs(value[lane].gradient[j]));
        }
        double alpha = share / (steepest + 1e-15);
        fini_kernel_get()->population(&p, 1, &lam, &alpha, s);
        for (int lane = 0; lane < RUNS; lane++) {
            const double *R = value[lane].gradient;
            double gk[4], gv[4],
                before[5] = {k[lane][0], v[lane][1], v[lane][0], k[lane][1],
                             dot4(k[lane], v[lane])};
            for (int i = 0; i < 4; i++) {
                gk[i] = R[4] * v[lane][i] + (i == 0 ? R[0] : i == 1 ? R[3] : 0);
                gv[i] = R[4] * k[lane][i] + (i == 0 ? R[2] : i == 1 ? R[1] : 0);
            }
            step4(k[lane], gk, alpha);
            step4(v[lane], gv, alpha);
            const double want[5] = {k[lane][0], v[lane][1], v[lane][0], k[lane][1],
                                    dot4(k[lane], v[lane])};
            /* exp(-x^2) carries the rounding of its argument 2 x^2 times; a gradient is not
             * known better than to 1e-15 of the risk */
            double x = lam * p.mu * before[0] / sqrt(1 + 2 * lam * lam * p.gamma * p.gamma);
            double allowed = (lam < 0.01 ? 1e-12 : 1e-13) + 1e-15 * fmin(x * x, 700) +
                             2e-15 * alpha * value[lane].risk;
            for (int j = 0; j < 5; j++) {
                double off = fabs(want[j] - s[j][lane]);
                worst = fmax(worst, off);
                way = fmax(way, fabs(want[j] - before[j]));
                large += fabs(want[j] - before[j]) > 0.05;
                if (!(off < allowed))
                    fail_msg("trial %d, lane %d, number %d: %.17g, vectors give %.17g (lam %g mu "
                             "%g gamma %g kappa %g)",
                             trial, lane, j, s[j][lane], want[j], lam, p.mu, p.gamma, before[0]);
            }
        }
    }
    print_message("worst difference %.2g; longest step %.2g, %d longer than 0.05\n", worst, way,
                  large);
    assert_true(large > 1000);
}

/* ---- one step of SGD ---------------------------------------------------------------------------------- */

/* At alpha -> 0 a step moves an overlap by -alpha times a mean of gradients whose expectation is the
 * exact one: an average over many runs. What float erf and gauss lose is a part of it. */
static void reduced__moves_down_the_exact_gradient_on_average(void **state)
{
    (void)state;
    const double k[4] = {0.5, 0.3, 0.6, sqrt(1 - 0.7)}, v[4] = {-0.3, 0.4, 0.3, -sqrt(1 - 0.34)};
    for (int which = 0; which < 4; which++) {
        fini_reduction p = {.seed = 11,
                            .stream = FIN_STREAM_USER,
                            .d = which % 2 ? 8 : 1000000,
                            .L = which < 2 ? 6 : 1,
                            .batch = 4,
                            .gamma = 0.8,
                            .mu = 1.5,
                            .eps = 0.3,
                            .penalty = 0.7,
                            .alpha_lam = 0};
        const double lam = which == 1 ? 3 : 0.6, alpha = which % 2 ? 1e-7 : 1e-9;
        double sum[5] = {0}, squares[5] = {0}, n = 0;
        static states s;
        for (int64_t step = 0; step < 6000; step++) {
            for (int lane = 0; lane < RUNS; lane++)
                put(s, lane, k, v, lam);
            states before;
            memcpy(before, s, sizeof before);
            fini_kernel_get()->reduced(&p, step, 1, &lam, &alpha, s);
            for (int lane = 0; lane < RUNS; lane++, n++)
                for (int j = 0; j < 5; j++) {
                    double slope = (before[j][lane] - s[j][lane]) / alpha;
                    sum[j] += slope;
                    squares[j] += slope * slope;
                }
        }
        fin_risk_point at = {s[0][0], s[1][0], s[2][0], s[3][0], s[4][0],     lam,
                             0.8,     1.5,     0.3,     1,       (double)p.L, 0};
        fin_risk_value value;
        assert_int_equal(fin_risk_erf(1, &at, &value, NULL), FIN_OK);
        double *R = value.gradient, gk[4], gv[4], k_along, v_along;
        R[4] += 2 * p.penalty * s[4][0];
        for (int i = 0; i < 4; i++) {
            gk[i] = R[4] * v[i] + (i == 0 ? R[0] : i == 1 ? R[3] : 0);
            gv[i] = R[4] * k[i] + (i == 0 ? R[2] : i == 1 ? R[1] : 0);
        }
        k_along = dot4(gk, k);
        v_along = dot4(gv, v);
        for (int i = 0; i < 4; i++) {
            gk[i] -= k_along * k[i];
            gv[i] -= v_along * v[i];
        }
        const double want[5] = {gk[0], gv[1], gv[0], gk[1], dot4(gk, v) + dot4(gv, k)};
        for (int j = 0; j < 5; j++) {
            double mean = sum[j] / n, error = sqrt((squares[j] / n - mean * mean) / n);
            double z = (mean - want[j]) / (error + 1e-4 * fabs(want[j]));
            print_message("%s%.2f", j ? " " : which ? "\nz " : "z ", z);
            if (!(fabs(z) < 5))
                fail_msg("case %d, overlap %d: mean %g, exact %g, error %g", which, j, mean,
                         want[j], error);
        }
    }
    print_message("\n");
}

/* The float functions, as reduced_body.h has them, through the reference's own macros. */
static float times_power_f(float p, float near)
{
    uint32_t bits, n;
    memcpy(&bits, &p, sizeof bits);
    memcpy(&n, &near, sizeof n);
    bits += n << 23;
    memcpy(&p, &bits, sizeof p);
    return p;
}

static float gauss_f(float x)
{
    float a = fmaxf(-86.0f, -x * x), near = fmaf(a, 0x1.715476p0f, 0x1.8p23f);
    float n = near - 0x1.8p23f, r = fmaf(n, -0x1.62e400p-1f, a);
    r = fmaf(n, -0x1.7f7d1cp-20f, r);
    float p = fini_exp_f32[4];
    for (int i = 3; i >= 0; i--)
        p = fmaf(p, r, fini_exp_f32[i]);
    return times_power_f(fmaf(r * r, p, r) + 1.0f, near);
}

static float erf_f(float x, float gauss)
{
    float size = fabsf(x), square = x * x, inner = fini_erf_f32[6], outer = fini_erfc_f32[10];
    for (int i = 5; i >= 0; i--)
        inner = fmaf(inner, square, fini_erf_f32[i]);
    float s = fminf(4.0f, size) - 2.5f;
    for (int i = 9; i >= 0; i--)
        outer = fmaf(outer, s, fini_erfc_f32[i]);
    return size <= 1 ? x * inner : copysignf(fmaf(-gauss, outer, 1.0f), x);
}

static void float_functions__are_accurate(void **state)
{
    (void)state;
    double worst_gauss = 0, worst_erf = 0, worst_small = 0;
    for (int i = -300000; i <= 300000; i++) {
        float x = (float)i * 1e-4f, g = gauss_f(x), e = erf_f(x, g);
        double X = (double)x;
        worst_gauss = fmax(worst_gauss, fabs((double)g - exp(-X * X)));
        worst_erf = fmax(worst_erf, fabs((double)e - erf(X)));
        if (i != 0 && fabs(X) < 1)
            worst_small = fmax(worst_small, fabs((double)e / erf(X) - 1));
    }
    print_message("gauss %.2g, erf %.2g, erf below 1 (relative) %.2g\n", worst_gauss, worst_erf,
                  worst_small);
    assert_true(worst_gauss < 2e-7 && worst_erf < 2e-7 && worst_small < 4e-7);
    assert_true(gauss_f(1e18f) < 1e-37f && fabs((double)erf_f(1e18f, gauss_f(1e18f)) - 1) < 1e-7);
}

/* ---- lanes --------------------------------------------------------------------------------------------- */

static void lanes__do_not_know_of_each_other(void **state)
{
    (void)state;
    const fini_kernel *kernel[5] = {&fini_kernel_ref};
    int count = 1 + kernels_other(kernel + 1);
    const double odd[] = {NAN, INFINITY, -INFINITY, 1e300};
    fin_random r;
    fin_random_open(&r, 4, FIN_STREAM_USER, 0);
    for (int trial = 0; trial < 16; trial++)
        for (int k = 0; k < count; k++) {
            static states start, want, got;
            double lam[STEPS], alpha[STEPS];
            fini_population_model p = {.gamma = 0.7, .mu = 3, .m = 1, .L_mean = 8, .penalty = 0.5};
            fini_reduction q = make_reduction(&r);
            q.mu = 3;
            for (int t = 0; t < STEPS; t++) {
                lam[t] = 0.3;
                alpha[t] = 0.1;
            }
            make_states(&r, start, 0.3);
            for (int sgd = 0; sgd < 2; sgd++) {
                int lane = (int)fin_random_below(&r, RUNS), which = (int)fin_random_below(&r, 5);
                memcpy(want, start, sizeof want);
                memcpy(got, start, sizeof got);
                got[which][lane] = odd[trial % 4];
                if (sgd) {
                    kernel[k]->reduced(&q, 5, STEPS, lam, alpha, want);
                    kernel[k]->reduced(&q, 5, STEPS, lam, alpha, got);
                } else {
                    kernel[k]->population(&p, STEPS, lam, alpha, want);
                    kernel[k]->population(&p, STEPS, lam, alpha, got);
                }
                if (trial % 4 == 0) { /* not a number stays so, and is seen */
                    double sum = 0;
                    for (int i = 0; i < 5; i++)
                        sum += got[i][lane];
                    assert_true(isnan(sum));
                }
                for (int i = 0; i < FINI_STATE; i++)
                    got[i][lane] = want[i][lane];
                assert_memory_equal(want, got, sizeof want);
            }
        }
}

/* Fewer runs than lanes: those that matter have the same bits. */
static void lanes__may_be_left_out(void **state)
{
    (void)state;
    const fini_kernel *kernel[5] = {&fini_kernel_ref};
    int count = 1 + kernels_other(kernel + 1);
    fin_random r;
    fin_random_open(&r, 6, FIN_STREAM_USER, 0);
    for (int k = 0; k < count; k++)
        for (int runs = 1; runs <= RUNS; runs++)
            for (int sgd = 0; sgd < 2; sgd++) {
                static states all, few;
                double lam[STEPS], alpha[STEPS];
                fini_population_model p = make_model(&r);
                fini_reduction q = make_reduction(&r);
                for (int t = 0; t < STEPS; t++) {
                    lam[t] = 0.3;
                    alpha[t] = 0.01;
                }
                make_states(&r, all, 0.3);
                memcpy(few, all, sizeof few);
                p.runs = q.runs = 0;
                if (sgd)
                    kernel[k]->reduced(&q, 9, STEPS, lam, alpha, all);
                else
                    kernel[k]->population(&p, STEPS, lam, alpha, all);
                p.runs = q.runs = runs;
                if (sgd)
                    kernel[k]->reduced(&q, 9, STEPS, lam, alpha, few);
                else
                    kernel[k]->population(&p, STEPS, lam, alpha, few);
                for (int i = 0; i < FINI_STATE; i++)
                    assert_memory_equal(all[i], few[i], (size_t)runs * sizeof(double));
            }
}

/* A run is the same in any lane: its number is the block's first plus the lane. */
static void lanes__hold_any_run(void **state)
{
    (void)state;
    const fini_kernel *kernel[5] = {&fini_kernel_ref};
    int count = 1 + kernels_other(kernel + 1);
    fin_random r;
    fin_random_open(&r, 5, FIN_STREAM_USER, 0);
    for (int k = 0; k < count; k++)
        for (int trial = 0; trial < 12; trial++) {
            static states many, one;
            double lam[STEPS], alpha[STEPS];
            fini_reduction q = make_reduction(&r);
            for (int t = 0; t < STEPS; t++) {
                lam[t] = 0.3;
                alpha[t] = 0.01;
            }
            make_states(&r, many, 0.3);
            int lane = (int)fin_random_below(&r, RUNS);
            for (int i = 0; i < FINI_STATE; i++)
                for (int j = 0; j < RUNS; j++)
                    one[i][j] = many[i][lane];
            kernel[k]->reduced(&q, 9, STEPS, lam, alpha, many);
            q.run += (uint64_t)lane;
            kernel[k]->reduced(&q, 9, 3, lam, alpha, one);
            kernel[k]->reduced(&q, 12, STEPS - 3, lam, alpha, one); /* in two pieces */
            for (int i = 0; i < FINI_STATE; i++)
                assert_memory_equal(&many[i][lane], &one[i][0], sizeof(double));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(population__same_bits_in_every_kernel),
        cmocka_unit_test(reduced__same_bits_in_every_kernel),
        cmocka_unit_test(population__is_a_step_of_vectors),
        cmocka_unit_test(reduced__moves_down_the_exact_gradient_on_average),
        cmocka_unit_test(float_functions__are_accurate),
        cmocka_unit_test(lanes__do_not_know_of_each_other),
        cmocka_unit_test(lanes__may_be_left_out),
        cmocka_unit_test(lanes__hold_any_run),
    };
    return cmocka_run_group_tests_name("kernel_descent", tests, NULL, NULL);
}
