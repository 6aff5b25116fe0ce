/* The commands of learning: erm, linear, lipschitz, stationary, shift, head. Against sequences drawn by
 * hand, closed forms and inequalities that always hold; and what every command must do: same bytes
 * again, cancelling, faults, refusals. (prior: test_lab_prior.c.) */
#include "test_command.h"

#include "finetti/random.h"

/* ---- linear ---------------------------------------------------------------------------------- */

enum { D = 2, L = 5, N = 40 };
static const double lam[D] = {0.5, 1.5}; /* the defaults of the command */

typedef struct drawn {
    double A[D], q[D], y;
} drawn;

/* One value a token, prior 1, noise 0.4: token by token. */
static drawn sequence(fin_random *r)
{
    drawn s = {{0}, {0}, 0};
    double Z[D];
    for (int a = 0; a < D; a++)
        Z[a] = fin_random_normal(r);
    for (int l = 0; l <= L; l++) {
        double k[D], v = sqrt(0.4) * fin_random_normal(r);
        for (int a = 0; a < D; a++) {
            k[a] = sqrt(lam[a]) * fin_random_normal(r);
            v += Z[a] * k[a];
        }
        for (int a = 0; a < D; a++)
            if (l < L)
                s.A[a] += v * k[a] / L;
            else
                s.q[a] = k[a];
        s.y = v;
    }
    return s;
}

/* Four unknowns by elimination. */
static void solve4(double H[4][5])
{
    for (int c = 0; c < 4; c++)
        for (int r = 0; r < 4; r++) {
            double factor = r == c ? 0 : H[r][c] / H[c][c];
            for (int j = c; j < 5 && factor != 0; j++)
                H[r][j] -= factor * H[c][j];
        }
    for (int c = 0; c < 4; c++)
        H[c][4] /= H[c][c];
}

static double risk_of(fin_random *r, double G[4], int samples)
{
    double sum = 0;
    for (int i = 0; i < samples; i++) {
        drawn s = sequence(r);
        double f = 0;
        for (int a = 0; a < 4; a++)
            f += s.A[a / 2] * G[a] * s.q[a % 2];
        sum += (f - s.y) * (f - s.y) / samples;
    }
    return sum;
}

static void linear__as_drawn_by_hand(void **state)
{
    (void)state;
    enum { TIMES = 1500 };
    fin_random r;
    fin_random_open(&r, 4, FIN_STREAM_USER, 0);
    fin_result *result = run("linear L=5 noise=0.4 n=40 repetitions=1500 test=60000");
    /* G* and its excess formula by the command's own closed forms, written anew: diagonal. */
    double sum = lam[0] + lam[1] + 0.4, best[4] = {0}, e2[D], mean = 0, squares = 0;
    for (int a = 0; a < D; a++) {
        double inverse = (1 + 1.0 / L) * lam[a] + sum / L;
        best[a * 3] = 1 / inverse;
        e2[a] = lam[a] * inverse;
    }
    for (int t = 0; t < TIMES; t++) {
        double H[4][5] = {{0}}, excess = 0;
        for (int i = 0; i < N; i++) {
            drawn s = sequence(&r);
            for (int a = 0; a < 4; a++) {
                double x = s.A[a / 2] * s.q[a % 2];
                H[a][4] += x * s.y;
                for (int b = 0; b < 4; b++)
                    H[a][b] += x * s.A[b / 2] * s.q[b % 2];
            }
        }
        solve4(H);
        for (int a = 0; a < 4; a++)
            excess += e2[a / 2] * pow(H[a][4] - best[a], 2) * lam[a % 2];
        double step = N * excess - mean;
        mean += step / (t + 1);
        squares += step * (N * excess - mean);
    }
    fin_scalar s = scalar(result, "scaled"), drawn_risk = scalar(result, "drawn_risk");
    double z = (s.value - mean) / hypot(s.error, sqrt(squares) / TIMES);
    print_message("n excess = %.3f, by hand %.3f, z = %.2f\n", s.value, mean, z);
    assert_true(fabs(z) < 5);
    double by_hand = risk_of(&r, best, 60000), least = scalar(result, "least_risk").value;
    print_message("least risk %.4f, drawn %.4f, by hand %.4f\n", least, drawn_risk.value, by_hand);
    assert_true(fabs(drawn_risk.value - least) < 5 * drawn_risk.error);
    assert_true(fabs(by_hand - least) < 5 * drawn_risk.error);
    assert_true(scalar(result, "limit").value == 0.4 * 4);
    fin_result_destroy(result);
}

/* Many sequences: n excess is what the sandwich says. */
static void linear__predicted(void **state)
{
    (void)state;
    fin_result *r = run("linear d=3 dv=2 L=20 n=1000 repetitions=100 test=20000 noise=0.5");
    fin_scalar a = scalar(r, "scaled"), b = scalar(r, "predicted");
    double z = (a.value - b.value) / hypot(a.error, b.error);
    print_message("n excess %.3f, predicted %.3f, z = %.2f\n", a.value, b.value, z);
    assert_true(fabs(z) < 5 && a.error < 0.15 * a.value);
    fin_result_destroy(r);
}

/* ---- lipschitz ------------------------------------------------------------------------------- */

static void lipschitz__below_one(void **state)
{
    (void)state;
    static const char *const texts[] = {"lipschitz L=2", "lipschitz L=64 p=3 dv=1 R=2 draws=2000",
                                        "lipschitz L=300 p=1 alpha=1e-4 draws=200"};
    for (int i = 0; i < 3; i++) {
        fin_result *r = run(texts[i]);
        /* 2 tanh(t) / (2 t) at t = 1e-3 */
        assert_true(fabs(scalar(r, "extremal").value - tanh(1e-3) / 1e-3) < 1e-10);
        static const char *const names[] = {"attention", "softmax", "weights"};
        for (int k = 0; k < 3; k++) {
            double ratio = scalar(r, names[k]).value;
            assert_true(ratio > 0.01 && ratio <= 1);
        }
        fin_result_destroy(r);
    }
}

/* ---- erm ------------------------------------------------------------------------------------- */

/* Many sequences: n excess of cme is tr(H^-1 S), and softmax has a floor as section 2.6 of the
 * theory has it, for long contexts. */
static void erm__predicted(void **state)
{
    (void)state;
    fin_result *r = run("erm form=cme L=16 n=400 repetitions=6 test=200 sandwich=2000");
    fin_scalar a = scalar(r, "scaled"), b = scalar(r, "predicted");
    print_message("cme: n excess %.3f +- %.3f, predicted %.3f +- %.3f\n", a.value, a.error, b.value,
                  b.error);
    assert_true(fabs(a.value - b.value) < 5 * hypot(a.error, b.error) + 0.1 * b.value);
    assert_true(a.error < 0.3 * b.value && b.error > 0.005 * b.value && b.error < 0.1 * b.value);
    assert_true(scalar(r, "rank").value == 30);
    fin_result_destroy(r);
    r = run("erm form=softmax L=256 n=64 repetitions=3 test=100");
    fin_scalar floor = scalar(r, "floor_scaled");
    print_message("softmax: L floor = %.3f +- %.3f\n", floor.value, floor.error);
    assert_true(fabs(floor.value - 4.006) < 5 * floor.error + 0.4);
    assert_true(scalar(r, "above").value > 0 && scalar(r, "kappa").value > 4);
    assert_true(scalar(r, "gradient").value < 1e-8);
    fin_result_destroy(r);
}

/* Labels, from random parameters: n excess is tr(H^-1 S) again, and about noise chi-square of 9
 * degrees in each training set, which says how far the mean of 20 may be off. With many tokens the
 * residual has the variance label_noise alone, S = label_noise H, and the trace is 9 label_noise. */
static void erm__labels(void **state)
{
    (void)state;
    fin_result *r = run("erm objective=supervised starts=24 d=2 dv=1 L=16 n=300 repetitions=20 "
                        "test=300 sandwich=3000");
    fin_scalar a = scalar(r, "scaled"), b = scalar(r, "predicted"), c = scalar(r, "reached");
    print_message("labels: n excess %.3f +- %.3f, predicted %.3f +- %.3f, reached %.2f\n", a.value,
                  a.error, b.value, b.error, c.value);
    assert_true(fabs(a.value - b.value) < 5 * b.value * sqrt(2.0 / 9 / 20));
    assert_true(c.value >= 0.8);
    fin_result_destroy(r);
    r = run("erm objective=supervised d=2 dv=1 L=256 n=300 repetitions=2 test=300 sandwich=3000 "
            "label_noise=0.3");
    b = scalar(r, "predicted");
    c = scalar(r, "rank");
    print_message("long: predicted %.3f +- %.3f, rank %.0f\n", b.value, b.error, c.value);
    assert_true(c.value == 9 && fabs(b.value - 9 * 0.3) < 5 * b.error);
    assert_true(scalar(r, "bayes").value < 2e-3);
    fin_result_destroy(r);
    expect_refused("erm objective=supervised form=softmax", "form = cme");
}

/* The Bayes risk is dv noise E tr((S + lam)^-1) / d, about dv noise d / (L + d lam). */
static void erm__bayes(void **state)
{
    (void)state;
    fin_result *r = run("erm L=200 n=64 repetitions=4 test=600 noise=0.2 dv=3");
    fin_scalar s = scalar(r, "bayes");
    double about = 3 * 0.2 * 3 / (200 + 3 * 0.2);
    assert_true(fabs(s.value - about) < 5 * s.error + 0.03 * about);
    fin_result_destroy(r);
}

/* ---- stationary ------------------------------------------------------------------------------ */

/* The inequality holds at any point, with its slack: also after no step at all. */
static void stationary__inequality(void **state)
{
    (void)state;
    static const char *const texts[] = {"stationary n=40 L=8 start=1",
                                        "stationary n=40 L=8 start=2 steps=0",
                                        "stationary n=40 L=8 start=3 steps=10",
                                        "stationary n=40 L=8 start=4 heads=2 size=1",
                                        "stationary n=40 L=8 form=cme start=5 steps=150",
                                        "stationary n=10 L=8 heads=4 steps=300"};
    for (int i = 0; i < 6; i++) {
        fin_result *r = run(texts[i]);
        double gap = scalar(r, "gap").value, bound = scalar(r, "bound").value;
        double slack = scalar(r, "slack").value, risk = scalar(r, "risk").value;
        print_message("%s: gap %.4f, bound %.4f, slack %.1e, gradient %.1e\n", texts[i], gap, bound,
                      slack, scalar(r, "gradient").value);
        assert_true(gap <= bound + slack + 1e-9);
        double tangent = scalar(r, "tangent").value;
        assert_true(fabs(bound - 2 * sqrt(risk) * tangent) < 1e-9 * (1 + bound));
        assert_true(tangent <= scalar(r, "distance").value + 1e-12);
        assert_true(fabs(risk - scalar(r, "bayes").value - gap) < 1e-12);
        assert_true(i == 0 ? scalar(r, "gradient").value < 1e-5 : 1);
        assert_true(i == 1 ? slack > 1e-3 : 1);
        fin_result_destroy(r);
    }
}

/* ---- shift ----------------------------------------------------------------------------------- */

/* From Sigma = 1 / d kappa is d times the largest eigenvalue of Sigma'. */
static void shift__kappa(void **state)
{
    (void)state;
    fin_result *r = run("shift spread=1 shift=9 n=32 repetitions=3 test=50");
    assert_true(fabs(scalar(r, "kappa").value - 3 * 9.0 / (1 + 3 + 9)) < 1e-12);
    assert_true(fabs(scalar(r, "extremal").value / scalar(r, "kappa").value - 1) < 1e-10);
    fin_result_destroy(r);
    r = run("shift spread=9 shift=1 n=32 repetitions=3 test=50");
    assert_true(fabs(scalar(r, "kappa").value - (1 + 3 + 9) / 3.0) < 1e-12);
    fin_result_destroy(r);
    r = run("shift spread=5 shift=20 n=64 repetitions=3 test=60");
    double kappa = scalar(r, "kappa").value, worst = scalar(r, "worst").value;
    assert_true(fabs(scalar(r, "extremal").value / kappa - 1) < 1e-10);
    assert_true(worst <= kappa && worst >= scalar(r, "ratio").value);
    assert_true(scalar(r, "violations").value == 0);
    fin_result_destroy(r);
    r = run("shift d=1 dv=1 n=32 repetitions=2 test=50");
    assert_true(fabs(scalar(r, "kappa").value - 1) < 1e-12);
    fin_result_destroy(r);
}

/* ---- head ------------------------------------------------------------------------------------ */

static void head__features_and_labels(void **state)
{
    (void)state;
    fin_result *r = run("head L=32 pre=200 n=60 repetitions=5 test=100 starts=1");
    double head = scalar(r, "head").value, exact = scalar(r, "exact").value;
    double predicted = scalar(r, "predicted").value, error = scalar(r, "head").error;
    print_message("head %.4f +- %.4f, predicted %.4f, exact %.4f, near %.4f, scratch %.4f\n", head,
                  error, predicted, exact, scalar(r, "near").value, scalar(r, "scratch").value);
    assert_true(fabs(head - predicted) < 5 * error);
    assert_true(scalar(r, "zero_ratio").value <= 1);
    assert_true(fabs(scalar(r, "zero_bound").value / scalar(r, "pretraining").value - 3) < 1e-9);
    assert_true(scalar(r, "floor").value < scalar(r, "zero").value);
    assert_true(scalar(r, "near").value > head && scalar(r, "scratch").value > head);
    assert_true(scalar(r, "advantage").value > 0);
    fin_result_destroy(r);
    /* Without label noise and with long pretraining a head is nearly exact. */
    r = run("head L=100 pre=400 n=300 repetitions=2 test=200 starts=0 label_noise=0");
    assert_true(scalar(r, "head").value < 0.006 && missing(r, "scratch"));
    fin_result_destroy(r);
}

/* ---- what every command must do ------------------------------------------------------------------ */

static const char *const samples[] = {
    "prior n=50 repetitions=3 L=2",
    "erm n=20 repetitions=2 test=10 L=4 sandwich=20",
    "erm form=softmax n=20 repetitions=2 test=10 L=4 sandwich=20",
    "erm objective=supervised starts=2 n=20 repetitions=2 test=10 L=4 sandwich=20",
    "linear n=20 repetitions=3 test=10",
    "lipschitz L=4 draws=5",
    "stationary n=10 L=4 steps=20",
    "shift n=20 repetitions=2 test=10 L=4",
    "head n=20 pre=20 repetitions=2 test=100 L=2 starts=1",
};
enum { COMMANDS = sizeof samples / sizeof *samples };

static void table__outputs_are_what_comes(void **state)
{
    (void)state;
    expect_outputs("prior", samples, 1);
    expect_outputs("erm", samples + 1, 3);
    expect_outputs("linear", samples + 4, 1);
    expect_outputs("lipschitz", samples + 5, 1);
    expect_outputs("stationary", samples + 6, 1);
    expect_outputs("shift", samples + 7, 1);
    expect_outputs("head", samples + 8, 1);
}

static void settings__that_do_not_fit(void **state)
{
    (void)state;
    expect_refused("linear L=1", "fewer");
    expect_refused("linear n=2 d=4 L=8", "larger n");
    expect_refused("lipschitz L=5", "odd");
    expect_refused("erm form=softmax n=1000000 L=65536", "smaller L");
    expect_refused("stationary form=cme heads=2", "leave heads out");
    expect_refused("stationary n=100000 L=65536", "smaller L");
    expect_refused("head n=6", "labels");
    expect_refused("shift spread=0.5", "spread");
    expect_refused("prior L=0", "L");
}

static void job__same_bytes_again(void **state)
{
    (void)state;
    expect_same_bytes_for_any_threads(samples, COMMANDS);
}

static void job__cancelled(void **state)
{
    (void)state;
    expect_cancelled(samples, COMMANDS);
}

static void job__every_allocation_fails(void **state)
{
    (void)state;
    expect_every_allocation_may_fail(samples, COMMANDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear__as_drawn_by_hand),
        cmocka_unit_test(linear__predicted),
        cmocka_unit_test(lipschitz__below_one),
        cmocka_unit_test(erm__predicted),
        cmocka_unit_test(erm__labels),
        cmocka_unit_test(erm__bayes),
        cmocka_unit_test(stationary__inequality),
        cmocka_unit_test(shift__kappa),
        cmocka_unit_test(head__features_and_labels),
        cmocka_unit_test(table__outputs_are_what_comes),
        cmocka_unit_test(settings__that_do_not_fit),
        cmocka_unit_test(job__same_bytes_again),
        cmocka_unit_test(job__cancelled),
        cmocka_unit_test(job__every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
