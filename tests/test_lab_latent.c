/* The commands of exchangeable tokens: identity, latent, regret and urn. Their outputs as announced, what
 * must be equal is equal, what must not be is not, known numbers, bytes, cancelling and faults. */
#include "test_command.h"

#include "lab/identity.h"

#include <pthread.h>

/* ---- tables ---------------------------------------------------------------------------------- */

static void table__outputs_are_what_comes(void **state)
{
    (void)state;
    static const char *const identity[] = {
        "identity which=bma models=4 L=6",      "identity which=compression models=2 L=30",
        "identity which=perturbation models=2", "identity which=heads models=3 L=10",
        "identity which=density models=2 L=5",  "identity which=mixing models=2",
    };
    static const char *const latent[] = {
        "latent family=process L=3 samples=4 show=risk,bayes,attention",
        "latent family=concepts L=3 samples=4 show=posterior",
        "latent family=process L=3 samples=4 show=bayes,cme,softmax,nw",
    };
    static const char *const regret[] = {
        "regret T=12 sequences=10",
        "regret family=concept T=12 sequences=10 d=2",
    };
    static const char *const urn[] = {"urn"}, *const minimal[] = {"minimal samples=50"};
    expect_outputs("identity", identity, 6);
    expect_outputs("latent", latent, 3);
    expect_outputs("regret", regret, 2);
    expect_outputs("urn", urn, 1);
    expect_outputs("minimal", minimal, 1);
}

static void words__are_checked(void **state)
{
    (void)state;
    expect_refused("identity which=bmaa", "did you mean bma?");
    expect_refused("identity which=nonsense", "permutation");
    expect_refused("identity which=bma eps=1", "eps"); /* it would be ignored */
    expect_refused("identity which=mixing H=2", "H");
    expect_refused("identity models=0", "models");
    expect_refused("latent family=concpt", "did you mean concept?");
    expect_refused("latent family=counts d=3", "d");
    expect_refused("latent show=rsk", "did you mean risk?");
    expect_refused("latent show=risk,,bayes", "show");
    expect_refused("latent show=posterior", "finitely many");
    expect_refused("latent family=counts show=attention", "counts");
    expect_refused("latent show=risk form=cme", "form"); /* there is no attention in it */
    expect_refused("latent family=urn balls=5 L=6", "5");
    expect_refused("latent noise=-1", "noise");
    expect_refused("regret family=process", "is not one of concept, concepts");
    expect_refused("regret family=concept noise=0", "noise");
    expect_refused("regret wrong=0.5", "wrong");
    expect_refused("regret T=100000 sequences=1000000", "1e8");
    expect_refused("regret concepts=65536", "1e9"); /* hours, with nothing to stop at */
    expect_refused("identity which=heads H=32 L=1000", "4096");
    expect_refused("urn N=5 L=6", "L = 6");
    expect_refused("urn red=1.5", "red");
}

static void show__has_one_form(void **state)
{
    (void)state;
    char text[2][4096];
    static const char *const same[2] = {"latent show=bayes,risk,bayes", "latent show=risk,bayes"};
    for (int i = 0; i < 2; i++) {
        const fin_command *command;
        void *values;
        assert_int_equal(apply(same[i], &command, &values, &err), FIN_OK);
        assert_int_equal(fin_command_text(command, values, text[i], sizeof text[i], &err), FIN_OK);
        free(values);
    }
    assert_string_equal(text[0], text[1]);
    assert_non_null(strstr(text[0], "\"show\":\"risk,bayes\""));
}

/* ---- identity ---------------------------------------------------------------------------------- */

static double worst_of(const char *text)
{
    fin_result *r = run(text);
    double worst = scalar(r, "worst").value;
    fin_result_destroy(r);
    return worst;
}

/* Tolerances as in the study, fewer models. */
static void identity__holds(void **state)
{
    (void)state;
    fin_result *r = run("identity which=bma models=20 L=20 seed=7");
    assert_true(scalar(r, "worst").value < 1e-10 && scalar(r, "worst_variance").value < 1e-10);
    assert_true(scalar(r, "worst").value > 0 && scalar(r, "condition").value > 10);
    const double *one = numbers(r, "one", 20, 0), *other = numbers(r, "other", 20, 0);
    const double *third = numbers(r, "third", 20, 0), *residual = numbers(r, "residual", 20, 0);
    for (int i = 0; i < 20; i++) {
        assert_true(fabs(one[i] - third[i]) < 1e-10 && one[i] != 0);
        assert_true(residual[i] == one[i] - other[i]);
    }
    fin_result_destroy(r);
    assert_true(worst_of("identity which=permutation models=6 L=20 seed=3") < 1e-12);
    assert_true(worst_of("identity which=mixing models=6 L=20 seed=3") < 1e-12);
    assert_true(worst_of("identity which=merge models=6 L=20 seed=3") < 1e-12);
    assert_true(worst_of("identity which=compression models=6 L=30 seed=3") < 1e-12);
    assert_true(worst_of("identity which=memory models=10 L=20 seed=3") < 1e-14);
    assert_true(worst_of("identity which=density models=4 L=10 seed=3") < 1e-12);
    assert_true(worst_of("identity which=nw models=10 L=20 seed=3") < 1e-12);
    assert_true(worst_of("identity which=heads models=4 L=10 seed=3") < 1e-12);
}

/* One token and two are contexts, too. */
static void identity__short_contexts(void **state)
{
    (void)state;
    assert_true(worst_of("identity which=bma models=20 L=2") < 1e-10);
    assert_true(worst_of("identity which=permutation models=3 L=2") < 1e-12);
    assert_true(worst_of("identity which=compression models=6 L=2") < 1e-12);
    assert_true(worst_of("identity which=merge models=3 L=2") < 1e-12);
    assert_true(worst_of("identity which=memory models=3 L=2") < 1e-14);
}

static void identity__the_control_differs(void **state)
{
    (void)state;
    fin_result *r = run("identity which=perturbation models=10 eps=1e-3");
    double least = scalar(r, "least").value, statistic = scalar(r, "statistic").value;
    assert_true(least > 1e-8 && scalar(r, "worst").value >= least && statistic > 1e-5);
    assert_true(scalar(r, "moved").value >= 1e-3);
    fin_result_destroy(r);
    r = run("identity which=perturbation models=10 eps=1e-6");
    double ratio = scalar(r, "least").value / least;
    assert_true(ratio > 0.9e-3 && ratio < 1.1e-3);
    fin_result_destroy(r);
}

static void identity__tokens_move(void **state)
{
    (void)state;
    fin_result *r = run("identity which=mixing models=5");
    assert_true(scalar(r, "moved").value > 1);
    fin_result_destroy(r);
    r = run("identity which=permutation models=5");
    assert_true(scalar(r, "moved").value > 1);
    fin_result_destroy(r);
    r = run("identity which=compression models=9 L=40");
    assert_true(scalar(r, "tokens").value <= 24 && scalar(r, "tokens").value >= 3);
    fin_result_destroy(r);
}

/* Without noise to speak of: (H D / (L - H D - 1)) / (D / (L - D - 1)). */
static void identity__heads_risk(void **state)
{
    (void)state;
    fin_result *r = run("identity which=heads models=300 L=40 H=2 D=3 noise=1e-4");
    fin_scalar one = scalar(r, "risk_one"), heads = scalar(r, "risk_heads");
    fin_scalar ratio = scalar(r, "ratio");
    double z = (one.value - 1e-4 * 6 / 33) / one.error;
    print_message("one head: z = %.2f\n", z);
    assert_true(fabs(z) < 5);
    z = (heads.value - 1e-4 * 3 / 36) / heads.error;
    print_message("two heads: z = %.2f\n", z);
    assert_true(fabs(z) < 5);
    assert_true(fabs(ratio.value - one.value / heads.value) < 1e-12 && ratio.error > 0);
    fin_result_destroy(r);
    r = run("identity which=heads models=4 L=20 H=1");
    assert_true(fabs(scalar(r, "ratio").value - 1) < 1e-12); /* one head is one head */
    fin_result_destroy(r);
    r = run("identity which=heads models=4 L=20 H=3 D=4 noise=1e6"); /* nobody learns a thing */
    assert_true(fabs(scalar(r, "risk_one").value - 4) < 1e-3);
    assert_true(fabs(scalar(r, "risk_heads").value - 4) < 1e-3);
    fin_result_destroy(r);
}

/* fini_condition: x = (v, f), v = f + e with variances 3 and 1: mean 3/4 v, variance 3 - 9/4. */
static void condition__known_answers(void **state)
{
    (void)state;
    const double K[1] = {4}, k[1] = {3}, own[1] = {3}, v[2] = {2, -1};
    double mean[2], variance;
    assert_int_equal(fini_condition(&(fini_joint){1, 1, K, k, own}, 2, v, mean, &variance, &err),
                     FIN_OK);
    assert_true(mean[0] == 1.5 && mean[1] == -0.75 && variance == 0.75);
    /* [0 1; 1 0] needs a row exchange: x = (k_2, k_1). */
    const double swap[4] = {0, 1, 1, 0}, two[2] = {5, 7}, w[2] = {1, 10};
    fini_joint joint = {2, 1, swap, two, own};
    assert_int_equal(fini_condition(&joint, 1, w, mean, NULL, &err), FIN_OK);
    assert_true(mean[0] == 7 * 1 + 5 * 10);
    const double none[4] = {1, 1, 1, 1};
    joint.K = none;
    assert_int_equal(fini_condition(&joint, 1, w, mean, NULL, &err), FIN_ERR_NUMERIC);
}

static void widen__keeps_a_nan(void **state)
{
    (void)state;
    const double a[3] = {1, NAN, 3}, b[3] = {1.5, 0, 0};
    double worst = 0;
    fini_widen(a, b, 1, &worst);
    assert_true(worst == 0.5);
    fini_widen(a, b, 3, &worst);
    assert_true(isnan(worst));
    fini_widen(a, b, 1, &worst);
    assert_true(isnan(worst));
}

static void concepts__tables(void **state)
{
    (void)state;
    fin_latent_settings s;
    fin_latent *latent;
    double *tables, truth[4], query, z;
    assert_int_equal(fini_family_defaults("concepts", &s, &err), FIN_OK);
    assert_int_equal(fin_latent_create(&latent, fin_family_find("concepts"), &s, 5, &err), FIN_OK);
    assert_int_equal(fini_concept_tables(latent, &tables, &err), FIN_OK);
    for (int row = 0; row < 16 * 5; row++) {
        double sum = 0;
        for (int r = 0; r < 4; r++)
            sum += tables[row * 4 + r];
        assert_true(fabs(sum - 1) < 1e-12);
    }
    for (uint64_t i = 5000; i < 5010; i++) { /* sequences it has not seen */
        assert_int_equal(
            fin_latent_draw(
                latent, i,
                &(fin_latent_sample){.n = 1, .Q = 1, .queries = &query, .truth = truth, .z = &z},
                &err),
            FIN_OK);
        assert_memory_equal(tables + ((int)z * 5 + (int)query) * 4, truth, sizeof truth);
    }
    fini_free(tables);
    fin_latent_destroy(latent);
}

/* 2 x 4096 rows, 64 a sequence: by the law of the collector some 8192 (log 8192 + 1) / 64 = 1300
 * sequences show all of them. */
static void concepts__wide_tables(void **state)
{
    (void)state;
    enum { ROWS = 2 * 4096 };
    fin_latent_settings s;
    fin_latent *latent;
    double *tables;
    assert_int_equal(fini_family_defaults("concepts", &s, &err), FIN_OK);
    s.concepts = 2;
    s.covariates = 4096;
    assert_int_equal(fin_latent_create(&latent, fin_family_find("concepts"), &s, 5, &err), FIN_OK);
    if (fini_concept_tables(latent, &tables, &err))
        fail_msg("%s", err.message);
    for (int64_t row = 0; row < ROWS; row++) {
        double sum = 0;
        for (int64_t r = 0; r < s.outcomes; r++)
            sum += tables[row * s.outcomes + r];
        assert_true(fabs(sum - 1) < 1e-12);
    }
    fini_free(tables);
    fin_latent_destroy(latent);
}

/* ---- latent ------------------------------------------------------------------------------------ */

static void latent__risks_agree(void **state)
{
    (void)state;
    static const char *const runs[] = {
        "latent family=concept L=12 d=3 dv=2 samples=3000",
        "latent family=mean L=5 dv=3 samples=3000",
        "latent family=counts L=7 samples=3000",
        "latent family=process d=1 L=6 samples=1500",
        "latent family=concepts L=4 samples=3000 concepts=4",
        "latent family=finite L=2 d=2 samples=3000 concepts=3",
    };
    for (int i = 0; i < 6; i++) {
        fin_result *r = run(runs[i]);
        fin_scalar risk = scalar(r, "risk"), bayes = scalar(r, "bayes");
        double z = (risk.value - bayes.value) / hypot(risk.error, bayes.error);
        print_message("%s: %g, %g, z = %.2f\n", runs[i], risk.value, bayes.value, z);
        assert_true(risk.value > 0 && risk.error > 0 && risk.samples >= 1500);
        assert_true(fabs(z) < 5);
        assert_true(fabs(scalar(r, "ratio").value - risk.value / bayes.value) < 1e-12);
        fin_result_destroy(r);
    }
}

/* s^2 tau^2 / (s^2 + L tau^2) a number, and sum_j a_j (a_0 - a_j) / (a_0 (a_0 + 1) (a_0 + L)). */
static void latent__closed_forms(void **state)
{
    (void)state;
    fin_result *r = run("latent family=mean L=5 dv=3 prior=2 noise=0.5 show=bayes");
    assert_true(fabs(scalar(r, "bayes").value - 3 * 0.5 * 2 / (0.5 + 5 * 2)) < 1e-14);
    assert_int_equal(scalar(r, "bayes").how, FIN_HOW_CLOSED);
    fin_result_destroy(r);
    r = run("latent family=counts outcomes=4 alpha=0.5 L=10 show=bayes");
    assert_true(fabs(scalar(r, "bayes").value - 4 * 0.5 * 1.5 / (2.0 * 3 * 12)) < 1e-15);
    fin_result_destroy(r);
}

/* Attention is the posterior of a process, and not that of finitely many matrices. */
static void latent__attention(void **state)
{
    (void)state;
    fin_result *r = run("latent family=process d=1 L=6 samples=1000 show=bayes,attention form=cme");
    fin_scalar gap = scalar(r, "gap");
    print_message("process: gap %g, z = %.2f\n", gap.value, gap.value / gap.error);
    assert_true(fabs(gap.value / gap.error) < 5);
    fin_result_destroy(r);
    r = run(
        "latent family=finite L=8 samples=1000 noise=1 show=bayes,attention kernel=linear"); /* with less noise Bayes' risk is of rare events */
    gap = scalar(r, "gap");
    assert_true(gap.value > 5 * gap.error);
    fin_result_destroy(r);
    r = run("latent family=process d=1 L=6 samples=300 show=bayes,attention form=softmax");
    assert_true(scalar(r, "gap").value > 0);
    fin_result_destroy(r);
}

/* cme, softmax and nw are `attention` with settings that suit the family, and the best temperature is the best. */
static void latent__forms(void **state)
{
    (void)state;
    static const char *const runs[][2] = {
        {"latent L=6 samples=300 show=cme", "latent L=6 samples=300 show=attention kernel=linear"},
        {"latent L=6 samples=300 show=softmax temperature=0.7",
         "latent L=6 samples=300 show=attention form=softmax kernel=linear temperature=0.7"},
        {"latent L=6 samples=300 show=nw",
         "latent L=6 samples=300 show=attention form=nw kernel=rbf"},
        {"latent family=process d=1 L=6 samples=300 show=cme kernel=matern32 scale=0.5",
         "latent family=process d=1 L=6 samples=300 show=bayes kernel=matern32 scale=0.5"},
    };
    static const char *const names[][2] = {
        {"cme", "attention"}, {"softmax", "attention"}, {"nw", "attention"}, {"cme", "bayes"}};
    for (int i = 0; i < 4; i++) {
        fin_result *a = run(runs[i][0]), *b = run(runs[i][1]);
        fin_scalar x = scalar(a, names[i][0]), y = scalar(b, names[i][1]);
        if (i < 3)
            assert_true(x.value == y.value && x.error == y.error && x.samples == y.samples);
        else
            assert_true(fabs(x.value - y.value) < 5 * hypot(x.error, y.error));
        fin_result_destroy(a);
        fin_result_destroy(b);
    }
    fin_result *r = run("latent L=6 samples=300 show=softmax");
    double best = scalar(r, "temperature").value, least = scalar(r, "softmax").value;
    fin_result_destroy(r);
    for (int i = -1; i <= 1; i++) {
        char text[128];
        snprintf(text, sizeof text, "latent L=6 samples=300 show=softmax temperature=%.17g",
                 best * (1 + 0.1 * i));
        r = run(text);
        assert_true(i ? scalar(r, "softmax").value > least : scalar(r, "softmax").value == least);
        fin_result_destroy(r);
    }
    r = run("latent L=0 samples=300 show=cme,softmax"); /* nothing to look at */
    assert_true(missing(r, "softmax") && !missing(r, "cme") && missing(r, "temperature"));
    assert_string_equal(fin_result_note(r, 0), "softmax: it needs a token");
    fin_result_destroy(r);
    r = run("latent L=1 samples=300 show=softmax"); /* any temperature */
    assert_true(missing(r, "temperature") && !missing(r, "softmax"));
    fin_result_destroy(r);
    expect_refused("latent show=softmax,attention", "each have a temperature");
    expect_refused("latent family=counts show=cme", "keys and values that are numbers");
    expect_refused("latent show=cme temperature=3", "temperature");
}

static void latent__posterior(void **state)
{
    (void)state;
    fin_result *none = run("latent family=concepts L=0 samples=100 show=posterior");
    assert_true(fabs(scalar(none, "posterior").value - 1.0 / 16) < 1e-12);
    fin_result_destroy(none);
    fin_result *sure = run("latent family=concepts L=100 samples=200 show=posterior");
    assert_true(scalar(sure, "posterior").value > 0.98);
    fin_result_destroy(sure);
    fin_result *wrong = run("latent family=concepts L=100 wrong=1 samples=400 show=posterior");
    fin_scalar p = scalar(wrong, "posterior");
    assert_true(fabs(p.value - 1.0 / 16) < 5 * p.error + 0.01);
    fin_result_destroy(wrong);
    fin_result *finite = run("latent family=finite L=40 samples=50 show=posterior");
    assert_true(scalar(finite, "posterior").value > 0.99);
    fin_result_destroy(finite);
}

/* ---- regret ------------------------------------------------------------------------------------- */

static void regret__concepts(void **state)
{
    (void)state;
    fin_result *r = run("regret T=300 sequences=40 concepts=5");
    double bound = scalar(r, "bound").value;
    assert_true(fabs(bound - log(5)) < 1e-15);
    assert_true(scalar(r, "violations").value == 0);
    assert_true(scalar(r, "largest").value <= bound + 1e-9 && scalar(r, "largest").value > 1);
    assert_true(fabs(scalar(r, "slope").value + 1) < 0.03);
    assert_true(fabs(scalar(r, "ratio").value - 1) < 0.15);
    assert_true(scalar(r, "rate").value > 0 && scalar(r, "divergence").value > 0);
    const double *truth = numbers(r, "race_true", 256, 0);
    const double *others = numbers(r, "race_others", 4, 256);
    for (int t = 0; t < 256; t++) {
        double sum = truth[t];
        for (int k = 0; k < 4; k++)
            sum += others[k * 256 + t];
        assert_true(fabs(sum - 1) < 1e-12);
    }
    assert_true(truth[0] == 0.2 && truth[255] > 0.99);
    fin_series times = series(r, "t");
    const double *t = times.data, *average = numbers(r, "average", times.shape[0], 0);
    const double *mean = numbers(r, "mean", times.shape[0], 0);
    const double *limit = numbers(r, "average_bound", times.shape[0], 0);
    for (int64_t k = 0; k < times.shape[0]; k++) {
        assert_true(k == 0 ? t[k] == 1 : t[k] > t[k - 1]);
        assert_true(fabs(average[k] - mean[k] / t[k]) < 1e-15 && average[k] <= limit[k] + 1e-9);
    }
    assert_true(t[times.shape[0] - 1] == 300);
    /* The sum of predictions is what the posterior says: log(post(z) / prior(z)). */
    assert_true(fabs(scalar(r, "regret").value - bound) < 0.01);
    fin_result_destroy(r);
    r = run("regret T=8 sequences=10 concepts=1");
    assert_true(fabs(scalar(r, "regret").value) < 1e-12 && missing(r, "rate"));
    fin_result_destroy(r);
}

static void regret__concept(void **state)
{
    (void)state;
    fin_result *r = run("regret family=concept d=2 dv=4 T=200 sequences=100 noise=0.2");
    fin_scalar difference = scalar(r, "difference"), information = scalar(r, "information");
    double z = difference.value / difference.error;
    print_message("regret %g, information %g, z = %.2f\n", scalar(r, "regret").value,
                  information.value, z);
    assert_true(fabs(z) < 5 && difference.error < 0.1 * information.value);
    assert_true(fabs(scalar(r, "information_growth").value / 4 - 1) < 0.1);
    /* E log det(I + 5 S), S of 200 tokens: about 2 log(1 + 1000). */
    assert_true(fabs(information.value / (4 * log(1001)) - 1) < 0.02);
    fin_result_destroy(r);
}

/* ---- minimal ------------------------------------------------------------------------------------ */

/* Losses by hand: the sign of a Gaussian (2 / pi of the variance is kept); one token of four outcomes,
 * two of them taken together, by enumeration; three of five columns forgotten when L is large; nothing
 * known. And drawn tokens lose as much as theory says. */
static void minimal__known_losses(void **state)
{
    (void)state;
    static const struct {
        const char *text, *name;
        double expected, within;
    } of[] = {
        {"minimal family=mean width=100 samples=20000", "share", 1 - 2 / 3.14159265358979324,
         1e-12},
        {"minimal family=mean width=0.01 samples=20000", "share", 1e-4 / 12, 1e-9},
        {"minimal family=counts L=1 samples=20000", "loss", 0.01, 1e-15},
        {"minimal family=concept L=2000 samples=200", "share", 0.6, 1e-3},
        {"minimal family=concept keep=0 dv=2 prior=3 samples=4000", "coarse", 30, 1e-12},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        fin_result *r = run(of[i].text);
        fin_scalar ratio = scalar(r, "ratio");
        print_message("%s: %s %.6f, z = %.2f\n", of[i].text, of[i].name,
                      scalar(r, of[i].name).value, (ratio.value - 1) / ratio.error);
        assert_true(fabs(scalar(r, of[i].name).value - of[i].expected) < of[i].within);
        assert_true(fabs(ratio.value - 1) < 5 * ratio.error);
        fin_result_destroy(r);
    }
    expect_refused("minimal family=concept keep=5", "keep fewer");
    expect_refused("minimal family=concept L=5", "singular");
    expect_refused("minimal family=process", "concept");
    expect_refused("minimal family=counts outcomes=100 keep=3", "more than 64");
}

/* ---- urn ---------------------------------------------------------------------------------------- */

/* Two balls of N, half of them red: |P(both red) - 1/4| and so on add up to 1 / (2 (N - 1)). */
static void urn__known_answers(void **state)
{
    (void)state;
    fin_result *r = run("urn N=10 L=2");
    assert_true(fabs(scalar(r, "distance").value - 1.0 / 18) < 1e-15);
    assert_true(scalar(r, "bound").value == 0.4);
    assert_int_equal(scalar(r, "distance").how, FIN_HOW_CLOSED);
    fin_result_destroy(r);
    r = run("urn N=10 L=1");
    assert_true(fabs(scalar(r, "distance").value) < 1e-15);
    fin_result_destroy(r);
    r = run("urn N=10 L=5 red=0");
    assert_true(scalar(r, "distance").value == 0);
    fin_result_destroy(r);
}

/* ---- bytes, cancelling, memory ---------------------------------------------------------------- */

static const char *const samples[] = {
    "identity which=bma models=6 L=20",
    "identity which=memory models=3",
    "identity which=heads models=3 L=20",
    "latent family=concept L=20 samples=300",
    "latent family=finite L=4 samples=200 show=bayes,attention,posterior kernel=linear",
    "latent family=process L=5 samples=50",
    "regret T=40 sequences=12",
    "regret family=concept T=40 sequences=12",
    "urn N=1000 L=50",
};
enum { SAMPLES = sizeof samples / sizeof *samples };

static void pack(const char *text, unsigned char **bytes, size_t *size)
{
    fini_done done = {.state = FIN_STATE_DONE, .result = run(text)};
    assert_int_equal(fini_done_pack(&done, bytes, size, &err), FIN_OK);
    fin_result_destroy(done.result);
}

static void job__same_bytes_for_any_threads(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES; i++) {
        unsigned char *one, *two;
        size_t one_size, two_size;
        fin_threads_set(1);
        pack(samples[i], &one, &one_size);
        fin_threads_set(2);
        pack(samples[i], &two, &two_size);
        fin_threads_set(0);
        assert_int_equal(one_size, two_size);
        assert_memory_equal(one, two, one_size);
        fini_free(one);
        fini_free(two);
    }
}

static void *work(void *user)
{
    fin_error error;
    fin_result **result = user;
    fini_threads_limit(1);
    for (int i = 0; i < SAMPLES; i++)
        if (run_into(samples[i], result[i], NULL, &error))
            return user;
    return NULL;
}

static void job__same_numbers_side_by_side(void **state)
{
    (void)state;
    fin_result *results[2][SAMPLES];
    pthread_t threads[2];
    for (int t = 0; t < 2; t++)
        for (int i = 0; i < SAMPLES; i++)
            assert_non_null(results[t][i] = fin_result_create());
    for (int t = 0; t < 2; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, work, results[t]), 0);
    for (int t = 0; t < 2; t++) {
        void *failed;
        pthread_join(threads[t], &failed);
        assert_null(failed);
    }
    for (int i = 0; i < SAMPLES; i++) {
        for (int k = 0; k < fin_result_scalar_count(results[0][i]); k++) {
            fin_scalar a = fin_result_get_scalar(results[0][i], k);
            fin_scalar b = fin_result_get_scalar(results[1][i], k);
            if (memcmp(&a.value, &b.value, 8) != 0 || memcmp(&a.error, &b.error, 8) != 0)
                fail_msg("%s: %s is %.17g or %.17g", samples[i], a.name, a.value, b.value);
        }
        fin_result_destroy(results[0][i]);
        fin_result_destroy(results[1][i]);
    }
}

static void job__cancelled(void **state)
{
    (void)state;
    static const char *const longer[] = {
        "identity models=100000",
        "latent samples=100000000 show=risk",
        "latent family=concepts samples=100000000 show=posterior",
        "latent samples=100000000 show=bayes",
        "regret T=1000 sequences=10000",
    };
    expect_cancelled(longer, 5);
}

static void job__every_allocation_fails(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "identity which=bma models=2 L=3",
        "minimal samples=300 L=6",
        "identity which=permutation models=1 L=3",
        "identity which=mixing models=1 L=3",
        "identity which=compression models=1 L=3",
        "identity which=merge models=1 L=3",
        "identity which=perturbation models=1 L=3",
        "identity which=memory models=1 L=3",
        "identity which=density models=1 L=3",
        "identity which=nw models=1 L=3",
        "identity which=heads models=1 L=3 H=2",
        "latent L=3 samples=4",
        "latent family=finite L=3 samples=4 show=bayes,attention,posterior",
        "regret T=8 sequences=10 concepts=2 covariates=1",
        "regret family=concept T=8 sequences=10 d=2",
        "urn",
    };
    expect_every_allocation_may_fail(texts, sizeof texts / sizeof *texts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table__outputs_are_what_comes),
        cmocka_unit_test(words__are_checked),
        cmocka_unit_test(show__has_one_form),
        cmocka_unit_test(identity__holds),
        cmocka_unit_test(identity__short_contexts),
        cmocka_unit_test(identity__the_control_differs),
        cmocka_unit_test(identity__tokens_move),
        cmocka_unit_test(identity__heads_risk),
        cmocka_unit_test(condition__known_answers),
        cmocka_unit_test(widen__keeps_a_nan),
        cmocka_unit_test(concepts__tables),
        cmocka_unit_test(concepts__wide_tables),
        cmocka_unit_test(latent__risks_agree),
        cmocka_unit_test(latent__closed_forms),
        cmocka_unit_test(latent__attention),
        cmocka_unit_test(latent__forms),
        cmocka_unit_test(latent__posterior),
        cmocka_unit_test(regret__concepts),
        cmocka_unit_test(regret__concept),
        cmocka_unit_test(minimal__known_losses),
        cmocka_unit_test(urn__known_answers),
        cmocka_unit_test(job__same_bytes_for_any_threads),
        cmocka_unit_test(job__same_numbers_side_by_side),
        cmocka_unit_test(job__cancelled),
        cmocka_unit_test(job__every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
