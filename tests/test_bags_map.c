/* Maps from bags to what a form sees, against numpy: columns, RBF features, statistics; and what
 * weights, types of tokens and landmarks have to keep. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_bags_map_help.h"

enum { LINEAR, RBF, BOTH };
enum { NYSTROM, FOURIER };

/* By tests/data/bags_map.py. -1 in a bound: infinite. */
static const double center[] = {7.3357623318385654, 7.9127662556053808, 7.6413957399103136,
                                0.10000000000000021, 970.89686098654704};
static const double scale_standard[] = {0.12092212982147531, 0.1247167537748889, 0.1245952340224941,
                                        0, 9.6871644289096143e-05};
static const double bound_standard[] = {13.695496030547215, 13.278797746488292, 13.291748773282485,
                                        0, 17095.699790467363};
static const double scale_pooled[] = {0.0005551743724805686, 0.0005551743724805686,
                                      0.0005551743724805686, 0, 0.0005551743724805686};
static const double bound_pooled[] = {8547.8578001955029, 8547.8578001955029, 8547.8578001955029, 0,
                                      8547.8578001955029};
static const double scale_none[] = {0.00017548256359221288, 0.00017548256359221288,
                                    0.00017548256359221288, 0, 0.00017548256359221288};
static const double bound_none[] = {-1, -1, -1, 0, -1};
static const double spread[] = {0.55202951632510999, 0.5520295163251101, 0.55202951632510999, 0,
                                0.29289970863351072};
static const double bandwidth[] = {0.70984523060557525};
static const double token_gram[] = {1.1815094524683116,    -0.067077255653728268,
                                    -0.3509587864571303,   -0.19126025953650597,
                                    -0.085464026810767674, -0.26230968383317882};
static const double bag_bandwidth_0[] = {0.68532780281362493};
static const double bag_gram_0[] = {1.4889634733599575,   -0.26103849380024513,
                                    0.028978694184930865, 0.88650951119168164,
                                    0.022683338349181972, -0.26878321784567188};
static const double bag_bandwidth_1[] = {0.74300752357810051};
static const double bag_gram_1[] = {1.3986480415074445, -0.22734588095582295, -0.041706582396904654,
                                    0.5241880971661026, 0.069176402768603373, -0.08871172774029841};
static const double sizes[] = {-0.451249417549063, -0.052576830153606514, 0.18063168353821346,
                               0.34609575724184999};
static const double means[] = {
    -0.024856027292573041, -0.081358923058819602, -0.68601875115374744, 0, -0.09385863207031063,
    0.22013724614781185,   -0.64778084645310674,  -0.43325914880082317, 0, -0.093713324603876977};
static const double largest[] = {
    0.2349890567699392,  0.3387567741943952,  -0.87099942255398166, 0, -0.14449985210457256,
    0.59210928578218924, -1.2042754775479132, -0.55237518197909485, 0, -0.14437939652462151};

static help_bags h;

static int setup(void **state)
{
    (void)state;
    help_open(&h);
    return 0;
}

/* Relative to the size of what is compared; rounding of some hundred additions and a solve. */
static void near(double got, double want, double size)
{
    if (!(fabs(got - want) <= 1e-12 * size))
        fail_msg("%.17g, and not %.17g", got, want);
}

static fini_phi fit(fini_map *map, const fin_fit_settings *settings, const fin_bags *bags,
                    const double *weights)
{
    fini_phi phi = {.owned = NULL};
    fin_error err = {FIN_OK, ""};
    if (fini_map_fit(map, settings, 2, bags, weights, NULL, NULL, &err) ||
        fini_map_apply(map, bags, &phi, NULL, &err))
        fail_msg("%s", err.message);
    return phi;
}

static void close_all(fini_map *map, fini_phi *phi, double *rows)
{
    fini_phi_close(phi);
    fini_map_close(map);
    free(rows);
}

static double dot(int64_t n, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += a[j] * b[j];
    return sum;
}

static void columns__match_numpy(void **state)
{
    (void)state;
    const double *scales[] = {scale_standard, scale_pooled, scale_none};
    const double *bounds[] = {bound_standard, bound_pooled, bound_none};
    for (int scaling = 0; scaling < 3; scaling++) {
        fini_map map;
        fin_fit_settings settings = help_settings(FIN_MODEL_SOFTMAX, LINEAR, NYSTROM, 150);
        settings.scaling = scaling;
        fini_phi phi = fit(&map, &settings, &h.bags, NULL);
        assert_int_equal(map.p, HELP_D);
        assert_int_equal(map.used, HELP_D - 1);
        for (int j = 0; j < HELP_D; j++) {
            near(map.center[j], center[j], fabs(center[j]));
            near(map.scale[j], scales[scaling][j], scales[scaling][j]);
            if (bounds[scaling][j] < 0)
                assert_true(isinf(map.bound[j]));
            else
                near(map.bound[j], bounds[scaling][j], bounds[scaling][j]);
            if (scaling == 0)
                near(map.spread[j], spread[j], spread[j]);
        }
        /* a view: nothing is copied */
        assert_true(phi.bags.tokens == h.tokens && phi.bags.offsets == h.offsets);
        assert_true(!phi.owned && phi.center == map.center && phi.scale == map.scale);
        double *rows = help_rows(&phi, map.p), power = dot(map.p * h.offsets[HELP_N], rows, rows);
        near(power / (double)h.offsets[HELP_N], 1, 1);
        close_all(&map, &phi, rows);
    }
}

/* Landmarks whose kernel is known from others to 1e-8 are left out: an inner product of the kernel
 * errs by at most that, one of centred features by four times as much over their mean square. */
static void nystrom__is_the_kernel_if_all_are_landmarks(void **state)
{
    (void)state;
    static const int pair[][2] = {{0, 0}, {0, 1}, {3, 100}, {17, 18}, {222, 5}, {101, 150}};
    for (int features = RBF; features <= BOTH; features++) {
        fini_map map;
        fin_fit_settings settings = help_settings(FIN_MODEL_SOFTMAX, features, NYSTROM, 20000);
        fini_phi phi = fit(&map, &settings, &h.bags, NULL);
        int64_t skip = features == BOTH ? HELP_D : 0;
        assert_true(map.m > 100 && map.m <= h.offsets[HELP_N]);
        assert_int_equal(map.p, map.m + skip);
        assert_int_equal(phi.bags.d, map.p);
        assert_true(phi.bags.labels == h.labels && phi.bags.n == HELP_N);
        near(map.bandwidth[0], bandwidth[0], 1);
        double *rows = help_rows(&phi, map.p);
        for (int i = 0; i < 6; i++) {
            const double *a = rows + pair[i][0] * map.p + skip;
            const double *b = rows + pair[i][1] * map.p + skip;
            assert_true(fabs(dot(map.m, a, b) - token_gram[i]) <
                        4e-8 * map.stretch[0] * map.stretch[0]);
        }
        for (int64_t t = 0; t < h.offsets[HELP_N] && skip; t++)
            for (int j = 0; j < HELP_D; j++) {
                double z = h.tokens[t * HELP_D + j] - map.center[j];
                z = map.scale[j] * fmax(-map.bound[j], fmin(map.bound[j], z));
                assert_true(rows[t * map.p + j] == z);
            }
        close_all(&map, &phi, rows);
    }
}

/* Features are centred with mean square 1; and at landmarks a, b the kernel is exact:
 * |f(a) - f(b)|^2 = stretch^2 (2 - 2 k(a, b)). */
static void nystrom__is_exact_at_landmarks(void **state)
{
    (void)state;
    enum { M = 20, USED = HELP_D - 1 };
    fini_map map;
    fin_fit_settings settings = help_settings(FIN_MODEL_SOFTMAX, RBF, NYSTROM, M);
    fini_phi phi = fit(&map, &settings, &h.bags, NULL);
    int64_t N = h.offsets[HELP_N], at[M], found = 0;
    double *rows = help_rows(&phi, map.p), power = 0;
    assert_int_equal(map.m, M);
    for (int j = 0; j < M; j++) {
        double sum = 0;
        for (int64_t t = 0; t < N; t++)
            sum += rows[t * M + j];
        near(sum / (double)N, 0, 1);
    }
    for (int64_t t = 0; t < N * M; t++)
        power += rows[t] * rows[t];
    near(power / (double)N, 1, 1);
    for (int i = 0; i < M; i++)
        for (int64_t t = 0; t < N; t++) {
            double gap = 0;
            for (int j = 0; j < HELP_D; j++) {
                double z = h.tokens[t * HELP_D + j] - map.center[j];
                z = map.scale[j] * fmax(-map.bound[j], fmin(map.bound[j], z));
                if (j != 3) /* which is constant */
                    gap = fmax(gap, fabs(z - map.landmarks[i * USED + j - (j > 3)]));
            }
            if (gap == 0)
                at[found++] = t;
        }
    assert_int_equal(found, M);
    for (int a = 0; a < M; a++)
        for (int b = 0; b < a; b++) {
            double gap = 0, r2 = 0;
            assert_true(at[a] != at[b]);
            for (int j = 0; j < USED; j++)
                r2 += pow(map.landmarks[a * USED + j] - map.landmarks[b * USED + j], 2);
            for (int j = 0; j < M; j++)
                gap += pow(rows[at[a] * M + j] - rows[at[b] * M + j], 2);
            double want = 2 - 2 * exp(-r2 / (2 * map.bandwidth[0] * map.bandwidth[0]));
            assert_true(fabs(gap - want * map.stretch[0] * map.stretch[0]) < 1e-9);
        }
    close_all(&map, &phi, rows);
}

/* The same where a block has more rows than are done at a time. */
static void nystrom__is_centred_over_long_bags(void **state)
{
    (void)state;
    enum { M = 20 };
    int64_t offsets[] = {0, 100, h.offsets[HELP_N]}, N = offsets[2];
    fin_bags two = {2, HELP_D, 0, 2, offsets, FIN_F64, h.tokens, NULL, NULL};
    fini_map map;
    fin_fit_settings settings = help_settings(FIN_MODEL_SOFTMAX, RBF, NYSTROM, M);
    fini_phi phi = fit(&map, &settings, &two, NULL);
    double *rows = help_rows(&phi, map.p);
    assert_int_equal(map.p, M);
    for (int j = 0; j < M; j++) {
        double sum = 0;
        for (int64_t t = 0; t < N; t++)
            sum += rows[t * M + j];
        near(sum / (double)N, 0, 1);
    }
    near(dot(N * M, rows, rows) / (double)N, 1, 1);
    close_all(&map, &phi, rows);
}

/* With P pairs an inner product before centring is a mean of P numbers cos(w.(a - b)), of mean k
 * and variance (1 + k^4) / 2 - k^2. */
static void fourier__is_the_kernel_on_average(void **state)
{
    (void)state;
    enum { P = 4000, ROWS = 40 };
    fini_map map;
    fin_fit_settings settings = help_settings(FIN_MODEL_SOFTMAX, RBF, FOURIER, 2 * P);
    fini_phi phi = fit(&map, &settings, &h.bags, NULL);
    double *rows = help_rows(&phi, map.p), worst = 0;
    assert_int_equal(map.p, 2 * P);
    near(map.bandwidth[0], bandwidth[0], 1);
    for (int64_t t = 0; t < ROWS * map.p; t++)
        rows[t] = rows[t] / map.stretch[t % map.p] + map.shift[t % map.p];
    for (int64_t a = 0; a < ROWS; a++)
        for (int64_t b = 0; b <= a; b++) {
            double r2 = 0, got = dot(map.p, rows + a * map.p, rows + b * map.p);
            for (int j = 0; j < HELP_D; j++) {
                double u = h.tokens[a * HELP_D + j] - center[j],
                       v = h.tokens[b * HELP_D + j] - center[j];
                u = fmax(-map.bound[j], fmin(map.bound[j], u));
                v = fmax(-map.bound[j], fmin(map.bound[j], v));
                r2 += pow(map.scale[j] * (u - v), 2);
            }
            double k = exp(-r2 / (2 * map.bandwidth[0] * map.bandwidth[0]));
            if (a == b)
                near(got, 1, 1);
            else
                worst = fmax(worst, fabs(got - k) / sqrt(((1 + k * k * k * k) / 2 - k * k) / P));
        }
    printf("fourier: largest of 780 |z| %.2f\n", worst);
    assert_true(worst > 1 && worst < 5);
    close_all(&map, &phi, rows);
}

static void embedding__matches_numpy(void **state)
{
    (void)state;
    static const int pair[][2] = {{0, 0}, {0, 1}, {3, 80}, {17, 18}, {89, 5}, {44, 61}};
    for (int features = LINEAR; features <= BOTH; features++) {
        fini_map map;
        fin_fit_settings settings = help_settings(FIN_MODEL_EMBEDDING, features, NYSTROM, 150);
        fini_phi phi = fit(&map, &settings, &h.bags, NULL);
        double *rows = help_rows(&phi, map.p);
        assert_int_equal(map.linear, features == RBF ? 1 : 3 * HELP_D + 1);
        assert_int_equal(phi.bags.offsets[HELP_N], HELP_N);
        near(map.bandwidth[0], bag_bandwidth_0[0], 1);
        near(map.bandwidth[1], bag_bandwidth_1[0], 1);
        for (int i = 0; i < 6; i++) {
            const double *a = rows + pair[i][0] * map.p + map.linear;
            const double *b = rows + pair[i][1] * map.p + map.linear;
            int64_t m = map.group_m[0];
            assert_true(fabs(dot(m, a, b) - bag_gram_0[i]) < 1e-8);
            assert_true(fabs(dot(map.m - m, a + m, b + m) - bag_gram_1[i]) < 1e-8);
        }
        for (int i = 0; i < 4; i++)
            near(rows[i * map.p + map.linear - 1], sizes[i], 1);
        close_all(&map, &phi, rows);
    }
}

static void pooling__matches_numpy(void **state)
{
    (void)state;
    static const int bag[] = {2, 89}, model[] = {FIN_MODEL_MEAN, FIN_MODEL_MAX};
    for (int k = 0; k < 2; k++) {
        fini_map map;
        fin_fit_settings settings = help_settings(model[k], LINEAR, NYSTROM, 150);
        fini_phi phi = fit(&map, &settings, &h.bags, NULL);
        double *rows = help_rows(&phi, map.p);
        for (int i = 0; i < 2; i++)
            for (int j = 0; j < HELP_D; j++)
                near(rows[bag[i] * map.p + j], (k ? largest : means)[i * HELP_D + j], 1);
        close_all(&map, &phi, rows);
    }
}

/* The mean of features of tokens is that of the map of tokens. */
static void mean__is_the_mean_of_features(void **state)
{
    (void)state;
    fini_map map, token_map;
    fin_fit_settings settings = help_settings(FIN_MODEL_MEAN, BOTH, NYSTROM, 30);
    fini_phi phi = fit(&map, &settings, &h.bags, NULL);
    settings.model = FIN_MODEL_SOFTMAX;
    fini_phi tokens = fit(&token_map, &settings, &h.bags, NULL);
    double *rows = help_rows(&phi, map.p), *all = help_rows(&tokens, token_map.p);
    assert_int_equal(map.p, token_map.p);
    for (int i = 0; i < HELP_N; i++)
        for (int64_t j = 0; j < map.p; j++) {
            double sum = 0;
            for (int64_t t = h.offsets[i]; t < h.offsets[i + 1]; t++)
                sum += all[t * map.p + j];
            near(rows[i * map.p + j], sum / (double)(h.offsets[i + 1] - h.offsets[i]), 1);
        }
    close_all(&token_map, &tokens, all);
    close_all(&map, &phi, rows);
}

/* Bags of weight 0 do not count, whatever is in them; how large others are does not matter. */
static void weights__leave_bags_out(void **state)
{
    (void)state;
    static const int models[] = {FIN_MODEL_SOFTMAX, FIN_MODEL_EMBEDDING, FIN_MODEL_MEAN};
    static double weights[HELP_N], other[HELP_N];
    static help_bags wild;
    help_open(&wild);
    for (int i = 0; i < HELP_N; i++) {
        weights[i] = i % 3 ? 1 : 0;
        other[i] = weights[i] * (1 + i);
        for (int64_t t = h.offsets[i] * HELP_D; t < h.offsets[i + 1] * HELP_D && i % 3 == 0; t++)
            wild.tokens[t] = t % 2 ? 1e300 : -7;
    }
    for (int k = 0; k < 3; k++) {
        fini_map a, b;
        fin_error err = {FIN_OK, ""};
        fin_fit_settings settings = help_settings(models[k], BOTH, NYSTROM, 40);
        assert_int_equal(fini_map_fit(&a, &settings, 2, &h.bags, weights, NULL, NULL, &err),
                         FIN_OK);
        assert_int_equal(fini_map_fit(&b, &settings, 2, &wild.bags, other, NULL, NULL, &err),
                         FIN_OK);
        assert_int_equal(a.m, b.m);
        assert_memory_equal(a.center, b.center, 4 * (size_t)a.s * sizeof(double));
        assert_memory_equal(a.stretch, b.stretch, (size_t)a.m * sizeof(double));
        assert_memory_equal(a.whiten, b.whiten,
                            (size_t)(a.group_m[0] * a.group_m[0]) * sizeof(double));
        fini_map_close(&a);
        fini_map_close(&b);
    }
}

/* Numbers that floats hold exactly give the same bits as floats and as doubles, the constant 0.1
 * aside. */
static void floats__are_seen_as_doubles(void **state)
{
    (void)state;
    for (int model = FIN_MODEL_SOFTMAX; model <= FIN_MODEL_MAX; model++) {
        fini_map a, b;
        fini_phi seen_a, seen_b;
        fin_error err = {FIN_OK, ""};
        fin_bags small = h.bags;
        small.dtype = FIN_F32;
        small.tokens = h.floats;
        fin_fit_settings settings = help_settings(model, BOTH, NYSTROM, 25);
        seen_a = fit(&a, &settings, &h.bags, NULL);
        if (fini_map_fit(&b, &settings, 2, &small, NULL, NULL, NULL, &err) ||
            fini_map_apply(&b, &small, &seen_b, NULL, &err))
            fail_msg("%s", err.message);
        double *x = help_rows(&seen_a, a.p), *y = help_rows(&seen_b, b.p);
        assert_int_equal(a.p, b.p);
        assert_memory_equal(x, y, (size_t)(seen_a.bags.offsets[HELP_N] * a.p) * sizeof *x);
        close_all(&a, &seen_a, x);
        close_all(&b, &seen_b, y);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns__match_numpy),
        cmocka_unit_test(nystrom__is_the_kernel_if_all_are_landmarks),
        cmocka_unit_test(nystrom__is_exact_at_landmarks),
        cmocka_unit_test(nystrom__is_centred_over_long_bags),
        cmocka_unit_test(fourier__is_the_kernel_on_average),
        cmocka_unit_test(embedding__matches_numpy),
        cmocka_unit_test(pooling__matches_numpy),
        cmocka_unit_test(mean__is_the_mean_of_features),
        cmocka_unit_test(weights__leave_bags_out),
        cmocka_unit_test(floats__are_seen_as_doubles),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
