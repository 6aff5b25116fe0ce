/* The posterior of a rotation: its mean against known answers and against importance sampling over
 * random rotations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_random_stats.h"
#include "test_family_help.h"
#include "math/bessel.h"

/* F = diag(s): from tests/data/rotation_mean.py. */
static const struct {
    double s[3], mean[3];
} known[] = {
    {{0.3, 0.2, 0.1}, {0.10282876821154529, 0.071631416956304909, 0.04333993970275822}},
    {{0.3, 0.2, -0.1}, {0.096302584023587877, 0.061777098168169303, -0.023552024483920854}},
    {{5, 3, 1}, {0.84632009717329362, 0.79667439580211736, 0.7734283367998919}},
    {{5, 3, -2}, {0.75041537965841451, 0.41614194662468344, 0.29653217379098204}},
    {{5, 5, 5}, {0.89701246941501234, 0.89701246941501234, 0.89701246941501234}},
    {{5, 5, -5}, {0.30087926680071364, 0.30087926680071364, -0.30087926680071364}},
    {{100, 2, 0.5}, {0.99009383664022482, 0.75989741277915366, 0.7598238165219349}},
    {{100, 90, 80}, {0.99458326162140848, 0.9944193906646926, 0.99427279229899331}},
    {{100, 90, -80}, {0.97202500468750409, 0.94594144611153018, 0.92323686475145758}},
    {{10000, 9000, 10}, {0.99992373256659996, 0.99991818842854208, 0.99989455326668315}},
    {{100000, 90000, -89000}, {0.99995191283872281, 0.99949724328938167, 0.99945441929292635}},
};
enum { KNOWN = sizeof known / sizeof *known };

static void multiply(const double *A, const double *B, double *out)
{
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++) {
            out[3 * i + j] = 0;
            for (int c = 0; c < 3; c++)
                out[3 * i + j] += A[3 * i + c] * B[3 * c + j];
        }
}

/* U diag W' with random rotations, whose mean is U diag(mean) W'. */
static void posterior__mean_matches_known_answers(void **state)
{
    (void)state;
    fin_latent_settings s = help_defaults("sphere");
    s.rho = 1; /* F is the statistic itself */
    fin_latent *latent = help_latent("sphere", &s, 51);
    fin_random random;
    fin_random_open(&random, 51, FIN_STREAM_USER, 0);
    double worst = 0;
    for (int i = 0; i < KNOWN; i++) {
        double U[9], W[9], D[9] = {0}, E[9] = {0}, half[9], statistic[10] = {0}, want[9], out[18];
        fin_random_rotation(&random, 3, U);
        fin_random_rotation(&random, 3, W);
        for (int c = 0; c < 3; c++) {
            D[4 * c] = known[i].s[c];
            E[4 * c] = known[i].mean[c];
        }
        multiply(U, D, half);
        multiply(half, W, statistic);
        multiply(U, E, half);
        multiply(half, W, want);
        assert_int_equal(fin_latent_posterior(latent, statistic, out, NULL), FIN_OK);
        assert_true(help_gap(9, out, statistic) == 0);
        worst = fmax(worst, help_gap(9, out + 9, want));
    }
    print_message("means of rotations: %.1e\n", worst);
    assert_true(worst < 1e-13);
    fin_latent_destroy(latent);
}

/* E[O] = E_0[O w] / E_0[w], w = exp(tr(F'O)) over uniform rotations; the spread of O w - mean w
 * gives the standard error. Predictions are A_d(rho) E[O] q. */
static void posterior__mean_matches_random_rotations(void **state)
{
    (void)state;
    enum { N = 100000 };
    stats_begin();
    for (int64_t d = 2; d <= 3; d++) {
        fin_latent_settings s = help_defaults("sphere");
        s.d = d;
        s.rho = 1.3;
        s.keys = FIN_KEYS_VMF;
        fin_latent *latent = help_latent("sphere", &s, 52);
        help_sequences b = help_draw(latent, 0, 1, 3, 1);
        double statistic[10] = {0}, out[18], mean[3], variance, sums[9] = {0};
        assert_int_equal(fin_latent_accumulate(latent, 3, b.keys, b.values, statistic, NULL), 0);
        assert_int_equal(fin_latent_posterior(latent, statistic, out, NULL), FIN_OK);
        stats_mean entries[9] = {{0}}, spread = {0};
        fin_latent_predict(latent, statistic, 1, b.queries, mean, &variance, NULL);
        fin_random random;
        fin_random_open(&random, 52, FIN_STREAM_USER, 1);
        double A = d == 3 ? 1 / tanh(1.3) - 1 / 1.3 : fini_bessel_ratio(0, 1.3), total = 0;
        for (int n = 0; n < N; n++) {
            double O[9], trace = 0, gap = 0;
            fin_random_rotation(&random, d, O);
            for (int64_t i = 0; i < d * d; i++)
                trace += out[i] * O[i];
            double w = exp(trace);
            total += w;
            for (int64_t i = 0; i < d * d; i++) {
                stats_add(&entries[i], w * (O[i] - out[d * d + i]));
                sums[i] += w * O[i];
            }
            for (int64_t r = 0; r < d; r++) {
                double x = -mean[r];
                for (int64_t c = 0; c < d; c++)
                    x += A * O[r * d + c] * b.queries[c];
                gap += x * x / (double)d;
            }
            stats_add(&spread, w * (gap - variance));
        }
        for (int64_t i = 0; i < d * d; i++)
            stats_z("E[O]", stats_mean_z(&entries[i], 0));
        stats_z("variance", stats_mean_z(&spread, 0));
        for (int64_t r = 0; r < d; r++) {
            double x = 0;
            for (int64_t c = 0; c < d; c++)
                x += A * out[d * d + r * d + c] * b.queries[c];
            assert_true(fabs(x - mean[r]) < 1e-14);
        }
        print_message("d = %d: E[O_11] = %.4f, by sampling %.4f\n", (int)d, out[d * d],
                      sums[0] / total);
        help_free(&b);
        fin_latent_destroy(latent);
    }
    stats_end("rotations");
}

/* Concentrations at their limit, and none at all. */
static void posterior__mean_at_its_edges(void **state)
{
    (void)state;
    for (int64_t d = 2; d <= 3; d++)
        for (int strong = 0; strong < 2; strong++) {
            fin_latent_settings s = help_defaults("sphere");
            s.d = d;
            s.rho = strong ? 1e6 : 0;
            fin_latent *latent = help_latent("sphere", &s, 53);
            help_sequences b = help_draw(latent, 0, 1, 1000, 2);
            double mean[6], variance[2], zero[6] = {0};
            assert_int_equal(fin_latent_predict_tokens(latent, 1000, b.keys, b.values, 2, b.queries,
                                                       mean, variance, NULL),
                             FIN_OK);
            assert_true(help_gap(2 * d, mean, strong ? b.truth : zero) < 1e-3);
            assert_true(variance[0] >= 0 && variance[0] < 1e-6);
            help_free(&b);
            fin_latent_destroy(latent);
        }
}

/* Any d draws and has a density; the mean is refused with its reason. */
static void posterior__beyond_three_dimensions(void **state)
{
    (void)state;
    fin_latent_settings s = help_defaults("sphere");
    s.d = 5;
    fin_latent *latent = help_latent("sphere", &s, 54);
    help_sequences b = help_draw(latent, 0, 1, 4, 1);
    double statistic[26] = {0}, F[25], mean[5];
    fin_error err;
    assert_int_equal(b.shape.posterior, 25);
    assert_int_equal(fin_latent_accumulate(latent, 4, b.keys, b.values, statistic, NULL), FIN_OK);
    assert_int_equal(fin_latent_posterior(latent, statistic, F, NULL), FIN_OK);
    for (int i = 0; i < 25; i++)
        assert_true(F[i] == s.rho * statistic[i]);
    assert_int_equal(fin_latent_predict(latent, statistic, 1, b.queries, mean, NULL, &err),
                     FIN_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.message, "d = 2 and 3"));
    help_free(&b);
    fin_latent_destroy(latent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posterior__mean_matches_known_answers),
        cmocka_unit_test(posterior__mean_matches_random_rotations),
        cmocka_unit_test(posterior__mean_at_its_edges),
        cmocka_unit_test(posterior__beyond_three_dimensions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
