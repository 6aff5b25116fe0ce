/* The commands `rate` and `limit`: against contexts drawn by hand, values and all, against closed forms,
 * and what every command must do: same bytes for any threads, cancelling, faults, refusals. */
#include "test_command.h"

#include "finetti/random.h"
#include "finetti/theory_latent.h"
#include "lab/rate.h"
#include "theory/sphere.h"

/* ---- contexts by hand -------------------------------------------------------------------------- */

/* m(k) = Z k + (k'B_1 k, k'B_2 k) with B symmetric without trace: E |Z k|^2 = |Z|^2 / d and
 * E (k'B k)^2 = 2 |B|^2 / (d (d + 2)) for k uniform on the sphere. */
enum { D = 3, DV = 2, L = 12 };
static const double Z[DV][D] = {{0.7, -0.2, 0.1}, {0.3, 0.4, -0.5}};
static const double B[DV][D][D] = {{{0.6, 0.2, -0.1}, {0.2, -0.5, 0.3}, {-0.1, 0.3, -0.1}},
                                   {{-0.4, 0.5, 0}, {0.5, 0.1, 0.2}, {0, 0.2, 0.3}}};
#define KAPPA 2.0
#define LAM 0.3
#define NOISE 0.2

static double square(const double *x, int n)
{
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += x[i] * x[i];
    return sum;
}

static void mean_of(const double *k, double *v)
{
    for (int j = 0; j < DV; j++) {
        v[j] = 0;
        for (int a = 0; a < D; a++) {
            v[j] += Z[j][a] * k[a];
            for (int b = 0; b < D; b++)
                v[j] += k[a] * B[j][a][b] * k[b];
        }
    }
}

static double kernel(const double *a, const double *b)
{
    double dot = 0;
    for (int i = 0; i < D; i++)
        dot += a[i] * b[i];
    return exp(KAPPA * (dot - 1));
}

/* w = (G + LAM)^-1 k_q by elimination; LAM = 0 stands for softmax. */
static void weights_of(double k[L][D], const double *q, double lam, double *w)
{
    double A[L][L], sum = 0;
    for (int i = 0; i < L; i++) {
        w[i] = kernel(k[i], q);
        sum += w[i];
        for (int j = 0; j < L; j++)
            A[i][j] = kernel(k[i], k[j]) + (i == j ? lam : 0);
    }
    for (int i = 0; i < L && lam == 0; i++)
        w[i] /= sum;
    for (int c = 0; c < L && lam > 0; c++) /* positive definite: no pivoting */
        for (int r = 0; r < L; r++) {
            double factor = r == c ? 0 : A[r][c] / A[c][c];
            for (int j = c; j < L && factor != 0; j++)
                A[r][j] -= factor * A[c][j];
            w[r] -= factor * w[c];
        }
    for (int i = 0; i < L && lam > 0; i++)
        w[i] /= A[i][i];
}

/* The squared error at one query, with values drawn. Axes of skewed keys are random, which is the
 * same as turning m. */
static double one_error(fin_random *r, double concentration, double lam)
{
    double k[L][D], q[D], axis[D], w[L], truth[DV], v[DV], error[DV];
    fin_random_sphere(r, D, axis);
    for (int i = 0; i < L; i++)
        fin_random_vmf(r, D, axis, concentration, k[i]);
    fin_random_vmf(r, D, axis, concentration, q);
    weights_of(k, q, lam, w);
    mean_of(q, truth);
    for (int j = 0; j < DV; j++)
        error[j] = -truth[j];
    for (int i = 0; i < L; i++) {
        mean_of(k[i], v);
        for (int j = 0; j < DV; j++)
            error[j] += w[i] * (v[j] + sqrt(NOISE) * fin_random_normal(r));
    }
    return square(error, DV);
}

static void rate__as_drawn_by_hand(void **state)
{
    (void)state;
    enum { SAMPLES = 20000 };
    double linear = square(&Z[0][0], DV * D) / D;
    double quadratic = 2 * square(&B[0][0][0], DV * D * D) / (D * (D + 2));
    for (int c = 0; c < 4; c++) {
        double concentration = c & 1 ? 1.5 : 0, lam = c & 2 ? LAM : 0, mean = 0, squares = 0;
        char text[512], skew[64] = "";
        fin_random r;
        fin_random_open(&r, 11, FIN_STREAM_USER, (uint64_t)c);
        for (int i = 0; i < SAMPLES; i++) {
            double e = one_error(&r, concentration, lam), step = e - mean;
            mean += step / (i + 1);
            squares += step * (e - mean);
        }
        if (concentration > 0)
            snprintf(skew, sizeof skew, " keys=vmf concentration=%g", concentration);
        snprintf(text, sizeof text,
                 "rate d=%d L=%d dv=%d kappa=%g noise=%g linear=%.17g quadratic=%.17g "
                 "contexts=3000 queries=4%s%s",
                 D, L, DV, KAPPA, NOISE, linear, quadratic, skew,
                 lam > 0 ? " form=cme lam=0.3" : " form=softmax");
        fin_result *result = run(text);
        fin_scalar s = scalar(result, "scaled");
        double error = sqrt(squares / SAMPLES / SAMPLES);
        double z = (s.value / L - mean) / hypot(s.error / L, error);
        print_message("%s: %.5f, by hand %.5f, z = %.2f\n", text, s.value / L, mean, z);
        assert_true(fabs(z) < 5);
        fin_result_destroy(result);
    }
}

/* ---- closed forms ------------------------------------------------------------------------------- */

/* Within 5 standard errors and what the first order in 1/L leaves out. */
static void rate__predicted(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "rate form=softmax d=2 kappa=4 L=1000 contexts=400 queries=4",
        "rate form=softmax d=5 kappa=3 L=1000 contexts=300 queries=4 quadratic=0.2",
        "rate form=softmax d=3 kappa=2 kappa_power=0.3333 L=2000 contexts=100",
        "rate form=cme d=2 L=200 contexts=20",
        "rate form=cme d=3 L=200 contexts=20 lam=0.05 lam_power=1",
        "rate form=cme d=4 L=200 contexts=20 dv=3 noise=0.5 kappa=1",
        "rate form=cme kernel=polynomial d=2 L=60 contexts=100",
        "rate form=cme kernel=polynomial d=3 L=60 contexts=100 lam_power=1",
        "rate form=cme kernel=polynomial d=4 L=400 contexts=20 lam_power=1 linear=2 noise=1",
        "rate form=cme kernel=linear d=3 L=60 contexts=100 quadratic=0",
        "rate form=softmax keys=gaussian g=2 kappa=0.5 L=3000 contexts=400 queries=2 radius=0.7",
        "rate form=softmax rescale=yes kappa=5 quadratic=0 L=1000 contexts=400 queries=4 dv=3",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fin_result *r = run(texts[i]);
        fin_scalar rmse = scalar(r, "rmse");
        double predicted = scalar(r, "predicted").value, off = rmse.value - predicted;
        print_message("%s: %.5f, predicted %.5f, z = %.2f\n", texts[i], rmse.value, predicted,
                      off / rmse.error);
        assert_true(fabs(off) < 5 * rmse.error + 0.015 * predicted);
        assert_true(rmse.error < 0.05 * predicted);
        double sum = scalar(r, "predicted_bias").value + scalar(r, "predicted_variance").value;
        assert_true(fabs(sqrt(sum) - predicted) < 1e-14);
        fin_result_destroy(r);
    }
}

/* What softmax tends to is the mean of m under keys weighted by exp(kappa q.k): by quadrature over the
 * angle on the circle. */
static void rate__limit_of_softmax(void **state)
{
    (void)state;
    fin_result *r = run("rate form=softmax d=2 keys=vmf concentration=1.3 kappa=2.5 linear=0.4 "
                        "quadratic=0.7 contexts=4 queries=30000 L=2");
    enum { N = 400 };
    const double pi = 3.14159265358979323846;
    double bias = 0, mass = 0;
    for (int i = 0; i < N; i++) {
        double q = 2 * pi * i / N, density = exp(1.3 * cos(q)), m[4] = {0}, sum = 0, error;
        for (int j = 0; j < N; j++) {
            double k = 2 * pi * j / N, w = exp(1.3 * cos(k) + 2.5 * cos(k - q));
            const double psi[4] = {cos(k), sin(k), cos(2 * k), sin(2 * k)};
            sum += w;
            for (int a = 0; a < 4; a++)
                m[a] += w * psi[a];
        }
        error = 0.4 * (pow(m[0] / sum - cos(q), 2) + pow(m[1] / sum - sin(q), 2)) +
                0.7 * (pow(m[2] / sum - cos(2 * q), 2) + pow(m[3] / sum - sin(2 * q), 2));
        bias += density * error;
        mass += density;
    }
    fin_scalar s = scalar(r, "bias");
    print_message("bias %.6f +- %.6f, by quadrature %.6f\n", s.value, s.error, bias / mass);
    assert_true(fabs(s.value - bias / mass) < 0.01 * s.value);
    fin_result_destroy(r);
}

/* With a long context it is there: the distance is more than 15 times smaller than the bias. */
static void rate__finds_its_limit(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "rate form=softmax d=3 keys=vmf kappa=4 L=30000 contexts=3 queries=8",
        "rate form=nw d=3 kappa=4 L=30000 contexts=3 queries=8",
        "rate form=softmax keys=gaussian kappa=0.5 g=1.2 L=30000 contexts=3 queries=8",
        "rate form=cme kernel=polynomial lam=0.2 lam_power=1 L=30000 contexts=3 queries=8",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        fin_result *r = run(texts[i]);
        double bias = sqrt(scalar(r, "bias").value), distance = scalar(r, "rmse_limit").value;
        assert_true(distance < bias / 15 && distance > bias / 1000);
        assert_true(fabs(scalar(r, "rmse").value / bias - 1) < 0.02);
        assert_true(scalar(r, "variance").value == distance * distance ||
                    fabs(scalar(r, "variance").value / distance / distance - 1) < 1e-12);
        fin_result_destroy(r);
    }
}

static void rate__nadaraya_watson_is_softmax(void **state)
{
    (void)state;
    fin_result *a = run("rate form=softmax kappa=7 L=200 contexts=5");
    fin_result *b = run("rate form=nw kappa=7 L=200 contexts=5");
    static const char *const names[] = {"rmse", "rmse_limit", "values", "scaled", "bias"};
    for (int i = 0; i < 5; i++) {
        double x = scalar(a, names[i]).value, y = scalar(b, names[i]).value;
        assert_true(fabs(x / y - 1) < 1e-12);
    }
    fin_result_destroy(a);
    fin_result_destroy(b);
}

/* ---- schedules and what there is ------------------------------------------------------------------ */

static void rate__schedules(void **state)
{
    (void)state;
    fin_result *r = run("rate L=100 kappa=2 kappa_power=0.5 lam=3 lam_power=-1 contexts=3 "
                        "tokens=1001");
    assert_true(fabs(scalar(r, "kappa_now").value - 20) < 1e-12);
    assert_true(fabs(scalar(r, "lam_now").value - 0.03) < 1e-15);
    assert_int_equal(scalar(r, "rmse").samples, 11);
    fin_result_destroy(r);
    r = run("rate form=softmax L=100 kappa=2 kappa_log=yes contexts=3 tokens=200");
    assert_true(fabs(scalar(r, "kappa_now").value - 2 * log(100)) < 1e-12);
    assert_int_equal(scalar(r, "rmse").samples, 3);
    assert_true(missing(r, "lam_now") && missing(r, "best_kappa"));
    fin_result_destroy(r);
    r = run("rate keys=vmf contexts=2 L=10"); /* no closed forms for cme with skewed keys */
    assert_true(missing(r, "predicted") && missing(r, "bias") && missing(r, "rmse_limit"));
    assert_true(!missing(r, "rmse") && !missing(r, "values"));
    fin_result_destroy(r);
    r = run("rate form=softmax rescale=yes d=3 dv=2 noise=0.1 linear=2 quadratic=0 L=8");
    assert_true(fabs(scalar(r, "best_kappa").value - 6.22) < 0.01);
    assert_true(fabs(scalar(r, "best_scaled").value - 4.606) < 0.001);
    fin_result_destroy(r);
}

/* Many queries do not fit one block of weights; the numbers are those of all. */
static void rate__queries_in_blocks(void **state)
{
    (void)state;
    fin_result *r = run("rate form=softmax L=90000 contexts=2 queries=14 kappa=2");
    assert_true(fabs(scalar(r, "rmse").value / sqrt(scalar(r, "bias").value) - 1) < 0.01);
    fin_result_destroy(r);
}

/* ---- limit ------------------------------------------------------------------------------------- */

static void limit__gains(void **state)
{
    (void)state;
    for (int d = 2; d <= 4; d++)
        for (int degree = 0; degree <= 3; degree++) {
            char text[128];
            snprintf(text, sizeof text, "limit d=%d degree=%d L=250 contexts=6 alpha=0.2 kappa=2",
                     d, degree);
            fin_result *r = run(text);
            fin_scalar cme = scalar(r, "gain_cme"), softmax = scalar(r, "gain_softmax");
            double f = fini_sphere_filter_cme(d, 2, 0.2, degree);
            double g = fini_sphere_filter_softmax(d, 2, degree);
            assert_true(scalar(r, "filter_cme").value == f);
            assert_true(scalar(r, "filter_softmax").value == g);
            print_message("%s: %.4f and %.4f, closed forms %.4f and %.4f\n", text, cme.value,
                          softmax.value, f, g);
            assert_true(fabs(cme.value - f) < 5 * cme.error + 0.005);
            assert_true(fabs(softmax.value - g) < 5 * softmax.error + 0.005);
            assert_true(cme.error < 0.01 && softmax.error < 0.01);
            fin_result_destroy(r);
        }
}

/* The numbers of the sphere with kappa = 3 and keys von Mises-Fisher(2):
 *     A = lambda b: 1 / np.tanh(b) - 1 / b
 *     for c in 1, .6, 0, -1: b = np.sqrt(13 + 12 * c); print(1 / A(b), (3 + 2 * c) / b) */
static void limit__ratio(void **state)
{
    (void)state;
    static const double angle[4] = {0, 53.13010235415598, 90, 180};
    static const double C[4] = {1.249858, 1.285756, 1.380972, 3.194528};
    static const double cosine[4] = {1, 0.934488, 0.832050, 1};
    for (int i = 0; i < 4; i++) {
        char text[160];
        snprintf(text, sizeof text,
                 "limit measure=ratio keys=vmf L=300 longer=24 contexts=8 queries=4 alpha=1e-8 "
                 "angle=%.17g",
                 angle[i]);
        fin_result *r = run(text);
        fin_scalar ratio = scalar(r, "ratio"), along = scalar(r, "cosine");
        assert_true(fabs(scalar(r, "ratio_limit").value - C[i]) < 1e-5);
        assert_true(fabs(scalar(r, "cosine_limit").value - cosine[i]) < 1e-5);
        print_message("%g degrees: C = %.4f +- %.4f, cosine %.4f +- %.4f\n", angle[i], ratio.value,
                      ratio.error, along.value, along.error);
        assert_true(fabs(ratio.value - C[i]) < 5 * ratio.error + 0.002 * C[i]);
        assert_true(fabs(along.value - cosine[i]) < 5 * along.error + 0.001);
        assert_true(ratio.error < 0.05 * C[i] && along.error < 0.01);
        assert_true(missing(r, "proportion"));
        fin_result_destroy(r);
    }
    fin_result *r = run("limit measure=ratio keys=sphere d=2 L=400 longer=40 alpha=0.3 angle=20");
    fin_scalar ratio = scalar(r, "ratio");
    double expected = fini_sphere_filter_cme(2, 3, 0.3, 1) / fini_sphere_mean(2, 3);
    assert_true(fabs(scalar(r, "ratio_limit").value / expected - 1) < 1e-12);
    assert_true(fabs(ratio.value / expected - 1) < 5 * ratio.error + 0.01);
    fin_result_destroy(r);
    r = run("limit measure=ratio keys=vmf L=200 contexts=3 queries=4 alpha=1e6 angle=70");
    assert_true(fabs(scalar(r, "proportion").value - 1) < 1e-5);
    assert_true(fabs(scalar(r, "cosine").value - 1) < 0.02); /* the mass differs between queries */
    fin_result_destroy(r);
}

static void limit__dimension(void **state)
{
    (void)state;
    fin_result *r = run("limit measure=dimension L=500 contexts=3 alpha=0.05");
    fin_scalar s = scalar(r, "dimension");
    double expected = fini_sphere_dimension(3, 3, 0.05);
    assert_true(scalar(r, "dimension_limit").value == expected);
    assert_true(fabs(s.value / expected - 1) < 0.02 && s.error < 0.02 * expected);
    fin_result_destroy(r);
}

/* ---- what every command must do --------------------------------------------------------------------- */

static void table__outputs_are_what_comes(void **state)
{
    (void)state;
    static const char *const runs[] = {
        "rate contexts=2 L=9",
        "rate contexts=2 L=9 form=softmax rescale=yes quadratic=0",
        "limit contexts=2 L=9",
        "limit contexts=2 L=9 measure=ratio",
        "limit contexts=2 L=9 measure=dimension",
    };
    expect_outputs("rate", runs, 2);
    expect_outputs("limit", runs + 2, 3);
}

/* E x_1 = A_3(c), E x_2^2 = A_3(c) / c, and with less spread than queries one by one. */
static void queries__are_spread_and_have_the_law(void **state)
{
    (void)state;
    enum { N = 16, TIMES = 2000 };
    const fini_rate_law law = {FINI_RATE_VMF, 3, 2, 1};
    const double expected[2] = {fini_sphere_mean(3, 2), fini_sphere_mean(3, 2) / 2};
    double room[FINI_RATE_CANDIDATES * N * 3], q[N * 3];
    fini_average spread[2] = {0}, plain = {0};
    for (int t = 0; t < TIMES; t++) {
        double sums[2] = {0}, sum = 0;
        fini_rate_draw_spread(&law, 3, (uint64_t)t, N, room, q);
        for (int i = 0; i < N; i++) {
            sums[0] += q[3 * i] / N;
            sums[1] += q[3 * i + 1] * q[3 * i + 1] / N;
        }
        for (int j = 0; j < 2; j++)
            fini_average_add(&spread[j], sums[j]);
        fini_rate_draw(&law, 4, FINI_STREAM_RATE_QUERIES, (uint64_t)t, N, q);
        for (int i = 0; i < N; i++)
            sum += q[3 * i] / N;
        fini_average_add(&plain, sum);
    }
    for (int j = 0; j < 2; j++) {
        double z = (spread[j].mean - expected[j]) / fini_average_error(&spread[j]);
        printf("moment %d: z = %.2f\n", j, z);
        assert_true(fabs(z) < 5);
    }
    assert_true(fini_average_error(&spread[0]) < 0.5 * fini_average_error(&plain));
}

static void settings__that_do_not_fit(void **state)
{
    (void)state;
    expect_refused("rate concentration=2", "keys = vmf");
    expect_refused("rate g=2", "keys = gaussian");
    expect_refused("rate radius=2", "keys = gaussian");
    expect_refused("rate form=softmax lam=1", "form = cme");
    expect_refused("rate form=nw lam_power=1", "form = cme");
    expect_refused("rate form=softmax kernel=linear", "form = cme");
    expect_refused("rate kernel=linear kappa=2", "leave it out");
    expect_refused("rate kernel=polynomial kappa_log=yes", "leave it out");
    expect_refused("rate keys=gaussian form=softmax quadratic=1", "degree 2");
    expect_refused("rate rescale=yes", "rescale");
    expect_refused("rate form=softmax keys=gaussian rescale=yes", "rescale");
    expect_refused("rate form=softmax kappa=1e12 kappa_power=4 L=100000", "smaller powers");
    expect_refused("rate lam_power=4 lam=1e12 L=1000000 kernel=linear", "smaller powers");
    expect_refused("rate L=40000", "40000");
    expect_refused("rate L=1", "L");
    expect_refused("rate contexts=1", "contexts");
    expect_refused("rate d=1", "d");
    expect_refused("rate kapa=1", "did you mean 'kappa'?");
    expect_refused("limit keys=vmf", "measure = ratio");
    expect_refused("limit measure=ratio concentration=1", "keys = vmf");
    expect_refused("limit measure=ratio degree=2", "measure = gain");
    expect_refused("limit angle=2", "measure = ratio");
    expect_refused("limit measure=dimension longer=2", "measure = ratio");
    expect_refused("limit measure=dimension queries=2", "tokens");
    expect_refused("limit L=40000", "L");
    expect_refused("limit measure=ratio L=32768 longer=513", "16777216");
    expect_refused("limit keys=gaussian", "vmf");
}

static const char *const samples[] = {
    "rate L=70 contexts=3 d=2",
    "rate L=70 contexts=3 form=softmax keys=vmf queries=9",
    "rate L=70 contexts=3 kernel=polynomial",
    "rate L=70 contexts=2 form=softmax keys=gaussian",
    "rate L=70 contexts=2 form=nw",
    "limit L=70 contexts=2 degree=3",
    "limit L=70 contexts=2 measure=ratio keys=vmf angle=40",
    "limit L=70 contexts=2 measure=dimension",
};
enum { COMMANDS = sizeof samples / sizeof *samples };

static void job__same_bytes_for_any_threads(void **state)
{
    (void)state;
    expect_same_bytes_for_any_threads(samples, COMMANDS);
}

static void job__cancelled(void **state)
{
    (void)state;
    static const char *const longer[] = {"rate contexts=1000000 L=4", "limit contexts=100000 L=4"};
    expect_cancelled(longer, 2);
}

static void job__every_allocation_fails(void **state)
{
    (void)state;
    expect_every_allocation_may_fail(samples, COMMANDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate__as_drawn_by_hand),
        cmocka_unit_test(rate__predicted),
        cmocka_unit_test(rate__limit_of_softmax),
        cmocka_unit_test(rate__finds_its_limit),
        cmocka_unit_test(rate__nadaraya_watson_is_softmax),
        cmocka_unit_test(rate__schedules),
        cmocka_unit_test(rate__queries_in_blocks),
        cmocka_unit_test(limit__gains),
        cmocka_unit_test(limit__ratio),
        cmocka_unit_test(limit__dimension),
        cmocka_unit_test(table__outputs_are_what_comes),
        cmocka_unit_test(queries__are_spread_and_have_the_law),
        cmocka_unit_test(settings__that_do_not_fit),
        cmocka_unit_test(job__same_bytes_for_any_threads),
        cmocka_unit_test(job__cancelled),
        cmocka_unit_test(job__every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
