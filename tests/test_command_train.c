/* The commands that train: the numbers of `train` and `law`, by hand from the library's own arrays. */
#include "test_command.h"

#include "command/training.h"

/* ---- train ----------------------------------------------------------------------------------- */

static void train__known_outcome(void **state)
{
    (void)state;
    fin_result *r = run("train init=manifold lam=0.1 runs=10 steps=20000 log_every=200");
    fin_scalar share = scalar(r, "share");
    assert_true(share.value == 1 && share.how == FIN_HOW_SHARE && share.samples == 10);
    assert_true(scalar(r, "unconverged").value == 0 && scalar(r, "diverged").value == 0);
    assert_true(scalar(r, "median_abs_kappa").value > 0.98);
    assert_int_equal(scalar(r, "median_abs_kappa").how, FIN_HOW_RUNS);
    assert_int_equal(scalar(r, "median_abs_kappa").samples, 10);
    assert_true(scalar(r, "farthest").value < 1e-9);
    assert_true(scalar(r, "low_abs_nu").value <= scalar(r, "median_abs_nu").value);
    assert_true(scalar(r, "high_abs_nu").value >= scalar(r, "median_abs_nu").value);
    const double *step = numbers(r, "step", 101, 0), *excess = numbers(r, "excess", 6, 101);
    assert_true(step[0] == 0 && step[1] == 200 && step[100] == 20000);
    for (int t = 0; t < 101; t++)
        for (int b = 1; b < 5; b++)
            assert_true(excess[b * 101 + t] <= excess[(b + 1) * 101 + t]);
    assert_true(excess[3 * 101 + 100] == scalar(r, "median_excess").value);
    assert_true(excess[100] < excess[0]);
    const double *lam = numbers(r, "lam", 6, 101);
    assert_true(fabs(lam[0] - 0.1) < 1e-16 && lam[3 * 101 + 50] == 0.1);
    const double *path = numbers(r, "path_kappa", 8, 101), *end = numbers(r, "end_kappa", 10, 0);
    for (int run_number = 0; run_number < 8; run_number++)
        assert_true(path[run_number * 101 + 100] == end[run_number]);
    numbers(r, "path_nu", 8, 101);
    numbers(r, "end_rho", 10, 0);
    fin_result_destroy(r);
}

/* The same from the library's own arrays, for SGD where runs differ. */
static void train__bands_by_hand(void **state)
{
    (void)state;
    static const char text[] = "train engine=reduced d=30 L=4 runs=7 steps=50 log_every=10 seed=3";
    fin_result *r = run(text);
    fin_train_settings settings;
    fin_task_settings task_settings;
    fin_task *task;
    fin_train *train;
    fin_settings_defaults(&fin_train_table, &settings, sizeof settings);
    fin_settings_defaults(fin_task_kind_table(fin_task_find("slr")), &task_settings,
                          sizeof task_settings);
    settings.engine = FIN_ENGINE_REDUCED;
    settings.runs = 7;
    settings.steps = 50;
    settings.log_every = 10;
    settings.seed = 3;
    task_settings.d = 30;
    task_settings.L = 4;
    assert_int_equal(fin_task_create(&task, fin_task_find("slr"), &task_settings, NULL, 3, 0, &err),
                     FIN_OK);
    assert_int_equal(
        fin_train_create(&train, task, fin_form_find("erf"), NULL, &settings, NULL, &err), FIN_OK);
    assert_int_equal(fin_train_run(train, 50, NULL, &err), FIN_OK);
    const double *kappa = fin_train_named(train, "kappa").data;
    const double *distance = fin_train_named(train, "distance").data;
    const double *band = numbers(r, "abs_kappa", 6, 6), *end = numbers(r, "end_kappa", 7, 0);
    double farthest = 0;
    for (int t = 0; t < 6; t++) {
        double column[7], sum = 0;
        for (int i = 0; i < 7; i++) {
            column[i] = fabs(kappa[i * 6 + t]);
            sum += column[i];
            farthest = fmax(farthest, distance[i * 6 + t]);
        }
        fini_sort(column, 7);
        assert_true(fabs(band[t] - sum / 7) < 1e-15);
        assert_true(band[3 * 6 + t] == column[3]);
        assert_true(band[1 * 6 + t] == fini_quantile(column, 7, 0.025));
        assert_true(band[2 * 6 + t] == fini_quantile(column, 7, 0.25));
        assert_true(band[5 * 6 + t] == fini_quantile(column, 7, 0.975));
        if (t == 5) { /* order statistics 3 -+ 1.96 sqrt(7/4), outwards: 0 and 6 */
            double error = scalar(r, "median_abs_kappa").error;
            assert_true(fabs(error - (column[6] - column[0]) / 3.919927969080108) < 1e-15);
        }
    }
    assert_true(isnan(scalar(r, "low_abs_kappa").error)); /* order statistics -1 and 2 */
    assert_true(isnan(scalar(r, "high_excess").error));
    for (int i = 0; i < 7; i++)
        assert_true(end[i] == kappa[i * 6 + 5]);
    fin_train_array none = fin_train_named(train, "nonsense");
    assert_true(!none.name && !none.data);
    assert_true(scalar(r, "farthest").value == farthest && farthest > 0);
    fin_train_destroy(train);
    fin_task_destroy(task);
    fin_result_destroy(r);
}

/* A quantile of few runs has an error that is not known, not one of 0. */
static void train__few_runs(void **state)
{
    (void)state;
    static const char *const names[] = {"median_abs_kappa", "median_risk", "low_excess",
                                        "high_abs_nu"};
    for (int runs = 1; runs <= 3; runs++) {
        char text[64];
        snprintf(text, sizeof text, "train runs=%d steps=5", runs);
        fin_result *r = run(text);
        for (int i = 0; i < 4; i++)
            assert_true(isnan(scalar(r, names[i]).error) && !isnan(scalar(r, names[i]).value));
        fin_result_destroy(r);
    }
    fin_result *r = run("train runs=100 steps=5");
    for (int i = 0; i < 4; i++)
        assert_true(scalar(r, names[i]).error > 0);
    fin_result_destroy(r);
}

static void train__schedules_and_starts(void **state)
{
    (void)state;
    fin_result *r = run("train runs=1 steps=20 log_every=5 lam_schedule=0:1,10:0.5 init=overlaps "
                        "kappa=0.3 nu=0.4 alpha_schedule=0:0");
    const double *lam = numbers(r, "lam", 6, 5);
    const double *kappa = numbers(r, "path_kappa", 1, 5), *nu = numbers(r, "path_nu", 1, 5);
    assert_true(lam[1] == 1 && lam[3] == 0.5 && lam[4] == 0.5);
    for (int t = 0; t < 5; t++) /* alpha is 0 */
        assert_true(fabs(kappa[t] - 0.3) < 1e-12 && fabs(nu[t] - 0.4) < 1e-12);
    fin_result_destroy(r);
    r = run("train rule=flow runs=2 steps=100 log_every=50 init=manifold");
    const double *step = numbers(r, "step", 3, 0);
    assert_true(step[2] == 100);
    fin_result_destroy(r);
    r = run("train runs=3 steps=0");
    assert_int_equal(series(r, "step").shape[0], 1);
    fin_result_destroy(r);
}

static void train__divergence(void **state)
{
    (void)state;
    fin_result *r = fin_result_create();
    err = (fin_error){FIN_OK, ""};
    assert_int_equal(run_into("train runs=4 steps=50 alpha=1e300 d=50", r, NULL, &err),
                     FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "diverged"));
    fin_result_destroy(r);
}

/* A step so long that its square overflows for some of the runs: the others are summed up. */
static void train__some_diverge(void **state)
{
    (void)state;
    fin_result *r = run("train engine=reduced runs=8 d=50 steps=1 alpha=1.2e154 seed=2");
    const double *start = numbers(r, "path_kappa", 8, 2), *end = numbers(r, "end_kappa", 8, 0);
    const double *band = numbers(r, "abs_kappa", 6, 2);
    double sum = 0;
    int kept = 0;
    for (int i = 0; i < 8; i++) {
        kept += !isnan(end[i]);
        sum += isnan(end[i]) ? 0 : fabs(start[2 * i]);
    }
    assert_true(kept > 0 && kept < 8);
    assert_true(scalar(r, "diverged").value == 1 - kept / 8.0);
    assert_true(scalar(r, "diverged").error > 0);
    assert_int_equal(scalar(r, "diverged").samples, 8);
    assert_int_equal(scalar(r, "median_excess").samples, kept);
    assert_int_equal(scalar(r, "farthest").samples, kept);
    assert_true(fabs(band[0] - sum / kept) < 1e-15);
    fin_result_destroy(r);
}

/* ---- law ------------------------------------------------------------------------------------- */

static void law__engines_agree(void **state)
{
    (void)state;
    fin_result *r = run("law d=12 L=4 runs=300 steps=60 alpha=0.05 batch=2 lam=0.5");
    static const char *const names[] = {"kappa", "nu", "theta", "eta", "rho"};
    double least = 1;
    for (int i = 0; i < 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "p_%s", names[i]);
        fin_scalar p = scalar(r, name);
        least = fmin(least, p.value);
        assert_true(p.how == FIN_HOW_RUNS && p.samples == 300);
        snprintf(name, sizeof name, "distance_%s", names[i]);
        double distance = scalar(r, name).value;
        assert_true(distance > 0 && p.value == fini_ks_probability(distance, 300, 300));
        snprintf(name, sizeof name, "quantiles_%s", names[i]);
        const double *q = numbers(r, name, 2, 101);
        for (int k = 1; k < 101; k++)
            assert_true(q[k] >= q[k - 1] && q[101 + k] >= q[100 + k]);
        assert_true(q[50] != q[151]); /* different draws */
    }
    assert_true(scalar(r, "p_least").value == fmin(1, 5 * least));
    print_message("p_least: %.3f\n", scalar(r, "p_least").value);
    assert_true(scalar(r, "p_least").value > 1e-4);
    fin_result_destroy(r);
}

/* The ends of the quantiles are those of trainings made by hand, with the seeds promised. */
static void law__rows_are_the_engines(void **state)
{
    (void)state;
    fin_result *r = run("law d=6 L=3 runs=20 steps=10 seed=5");
    const double *q = numbers(r, "quantiles_eta", 2, 101);
    for (int row = 0; row < 2; row++) {
        char text[128];
        snprintf(text, sizeof text, "train d=6 L=3 runs=20 steps=10 engine=%s seed=%lld",
                 row ? "ambient" : "reduced", (long long)(row ? fini_seed_apart(5) : 5));
        fin_result *by_hand = run(text);
        const double *eta = numbers(by_hand, "end_eta", 20, 0);
        double least = 1, most = -1;
        for (int i = 0; i < 20; i++) {
            least = fmin(least, eta[i]);
            most = fmax(most, eta[i]);
        }
        assert_true(fabs(q[101 * row] - least) < 1e-12);
        assert_true(fabs(q[101 * row + 100] - most) < 1e-12);
        fin_result_destroy(by_hand);
    }
    fin_result_destroy(r);
}

/* Where nothing moves both engines are at the same point, up to rounding. */
static void law__rounding_is_no_difference(void **state)
{
    (void)state;
    fin_result *r = run("law d=7 L=3 runs=20 steps=0 init=overlaps kappa=0.3 nu=0.1 theta=0.2 "
                        "eta=-0.1 rho=0.05");
    assert_true(scalar(r, "p_least").value == 1);
    assert_true(scalar(r, "distance_theta").value == 0);
    fin_result_destroy(r);
    r = fin_result_create();
    err = (fin_error){FIN_OK, ""};
    assert_int_equal(run_into("law d=7 L=3 runs=4 steps=5 alpha=1e300", r, NULL, &err),
                     FIN_ERR_NUMERIC);
    assert_non_null(strstr(err.message, "diverged"));
    fin_result_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(train__known_outcome),
        cmocka_unit_test(train__bands_by_hand),
        cmocka_unit_test(train__few_runs),
        cmocka_unit_test(train__schedules_and_starts),
        cmocka_unit_test(train__divergence),
        cmocka_unit_test(train__some_diverge),
        cmocka_unit_test(law__engines_agree),
        cmocka_unit_test(law__rows_are_the_engines),
        cmocka_unit_test(law__rounding_is_no_difference),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
