/* Claims: what is refused when a study is read, and verdicts from made-up runs in a store. */
#include "test_data.h"

#include "fault.h"
#include "study/claim.h"

#include <math.h>

static fin_error err;

/* Two blocks. grid: six runs, risk = 1 .. 6 with errors 0.1 .. 0.6, bayes = 2 L exactly. trained:
 * three runs of ten, 5, 8 and 2 of which converged. */
static const char *const head = "study: s\n"
                                "source: the source\n"
                                "runs:\n"
                                "  - id: grid\n"
                                "    command: risk\n"
                                "    axes: {L: [2, 3, 4, 5, 6, 7]}\n"
                                "  - id: trained\n"
                                "    command: train\n"
                                "    set: {steps: 10, runs: 10}\n"
                                "    seeds: 3\n"
                                "figures:\n"
                                "  - {id: shown, kind: lines, from: grid, x: {take: L}, "
                                "lines: [{take: risk}]}\n"
                                "claims:\n";
enum { GRID = 6, TRAINED = 3, RUNS = GRID + TRAINED };

static fin_study *study_of(const char *claims)
{
    static char text[8192];
    fin_study *study;
    snprintf(text, sizeof text, "%s%s", head, claims);
    if (fin_study_parse(text, strlen(text), "s.yaml", NULL, &study, &err))
        fail_msg("%s: %s", claims, err.message);
    return study;
}

/* What happens to each run; the numbers of one may be spoilt. */
typedef struct fate {
    int missing, failed, without; /* so many runs at the end of grid */
    double risk_5, error_5;       /* of run 5, unless 0 */
} fate;

static void fill(fin_result *result, int64_t i, const fate *f)
{
    static const double shares[TRAINED] = {0.5, 0.8, 0.2};
    if (i >= GRID) {
        fini_result_scalar(result, "share", shares[i - GRID], 0, FIN_HOW_SHARE, 10);
        return;
    }
    double k = (double)i + 1;
    bool last = i == GRID - 1;
    fini_result_scalar(result, "risk", last && f->risk_5 != 0 ? f->risk_5 : k,
                       last && f->error_5 != 0 ? f->error_5 : 0.1 * k, FIN_HOW_SIMULATION, 100);
    if (i < GRID - f->without)
        fini_result_scalar(result, "bayes", 2 * (k + 1), 0, FIN_HOW_CLOSED, 0);
}

/* Plans the study and keeps its runs, but for those that are not to be. */
static void keep_runs(fin_store *store, const fin_study *study, const fate *f)
{
    unsigned char missing[RUNS];
    assert_int_equal(fini_store_plan(store, study, false, missing, NULL, NULL, &err), FIN_OK);
    for (int64_t i = 0; i < RUNS; i++) {
        if (i < GRID && i >= GRID - f->missing)
            continue;
        fini_done done = {.position = i, .state = FIN_STATE_DONE, .seconds = 0.5};
        done.result = fin_result_create();
        if (i < GRID && i >= GRID - f->missing - f->failed) {
            done.state = FIN_STATE_FAILED;
            snprintf(done.reason, sizeof done.reason, "it was too late");
        } else {
            fill(done.result, i, f);
        }
        if (fini_study_keep(store, study, &done, 1, &err))
            fail_msg("%s", err.message);
        fin_result_destroy(done.result);
    }
}

typedef struct answer {
    fin_claim claim;
    char quantity[512], expected[128], how[512], source[128], figure[64], id[65], needed[160];
    int count;
} answer;

static fin_status keep_answer(void *user, const fin_claim *c, fin_error *e)
{
    (void)e;
    answer *a = user;
    a->claim = *c;
    snprintf(a->quantity, sizeof a->quantity, "%s", c->quantity);
    snprintf(a->expected, sizeof a->expected, "%s", c->expected);
    snprintf(a->how, sizeof a->how, "%s", c->how);
    snprintf(a->needed, sizeof a->needed, "%s", c->needed);
    snprintf(a->source, sizeof a->source, "%s", c->source);
    snprintf(a->figure, sizeof a->figure, "%s", c->figure);
    snprintf(a->id, sizeof a->id, "%s", c->id);
    a->count++;
    return FIN_OK;
}

static void ask(fin_store *store, answer *a)
{
    *a = (answer){0};
    if (fin_store_judge(store, NULL, &err) || fin_store_claims(store, "s", keep_answer, a, &err))
        fail_msg("%s", err.message);
}

/* The claim {id: c, statement: S, <rest>} after these runs. */
static answer judged_after(const fate *f, const char *rest)
{
    char claims[2048];
    answer a;
    fin_store *store;
    snprintf(claims, sizeof claims, "  - {id: c, statement: S, %s}\n", rest);
    fin_study *study = study_of(claims);
    if (fin_store_open(in_folder("c.db"), FIN_STORE_CREATE, &store, &err))
        fail_msg("%s", err.message);
    keep_runs(store, study, f);
    ask(store, &a);
    assert_int_equal(a.count, 1);
    fin_store_close(store);
    fin_study_destroy(study);
    list_folder(1);
    return a;
}

static answer judged(const char *rest)
{
    const fate good = {0};
    return judged_after(&good, rest);
}

static void near(const char *what, double got, double wanted)
{
    if (!(fabs(got - wanted) <= 1e-9 * (1 + fabs(wanted))))
        fail_msg("%s: %.12g, not %.12g", what, got, wanted);
}

/* ---- numbers and intervals -------------------------------------------------------------------- */

static void expect_number(const char *rest, double value, double low, double high, const char *how)
{
    char claim[1024];
    snprintf(claim, sizeof claim, "%s, expect: {at_most: 1e9}", rest);
    answer a = judged(claim);
    near(rest, a.claim.value, value);
    near(rest, a.claim.low, low);
    near(rest, a.claim.high, high);
    assert_int_equal(a.claim.verdict, FIN_VERDICT_HOLDS);
    if (strcmp(a.how, how) != 0)
        fail_msg("%s: how is '%s', not '%s'", rest, a.how, how);
}

static void reduce__has_the_interval_it_should(void **state)
{
    (void)state;
    const double z = FINI_Z95;
    expect_number("take: risk, where: {L: 3}", 2, 2 - z * 0.2, 2 + z * 0.2, "simulation");
    expect_number("take: bayes, where: {L: 3}", 6, 6, 6, "closed form");
    expect_number("take: risk, reduce: first", 1, 1 - z * 0.1, 1 + z * 0.1,
                  "first of 6 numbers, simulation");
    expect_number("take: risk, reduce: last", 6, 6 - z * 0.6, 6 + z * 0.6,
                  "last of 6 numbers, simulation");
    expect_number("take: -risk, reduce: min", -6, -6 - z * 0.6, -6 + z * 0.6,
                  "least of 6 numbers, simulation");
    expect_number("take: -risk, reduce: max", -1, -1 - z * 0.1, -1 + z * 0.1,
                  "largest of 6 numbers, simulation");
    double error = 2.570581835636314 * sqrt(3.5 / 6);
    expect_number("take: risk, reduce: mean", 3.5, 3.5 - error, 3.5 + error,
                  "mean of 6 numbers, simulation");
    expect_number("take: risk, reduce: mean, where: {L: 3}", 2, 2 - z * 0.2, 2 + z * 0.2,
                  "mean of 1 number, simulation");
    error = z * sqrt(0.91);
    expect_number("take: risk, reduce: sum", 21, 21 - error, 21 + error,
                  "sum of 6 numbers, simulation");
    expect_number("take: risk, reduce: median", 3.5, 1, 6, "median of 6 numbers, simulation");
    expect_number("take: risk > 3, reduce: count", 3, 3, 3, "count among 6 numbers, simulation");
    fini_interval third = fini_wilson(2, 6);
    expect_number("take: bayes > 6, reduce: share", 4.0 / 6, 4.0 / 6, 4.0 / 6,
                  "share of 6 numbers, closed form");
    expect_number("take: risk > 4, reduce: share", 2.0 / 6, third.low, third.high,
                  "share of 6 numbers, simulation");
    expect_number("take: bayes, against: L, reduce: slope", 2, 2, 2,
                  "slope through 6 points, closed form");
    expect_number("take: bayes, against: L, reduce: slope, where: {L: [2, 7]}", 2, 2, 2,
                  "slope through 2 points, closed form");
}

static void reduce__slope_has_the_error_of_the_line(void **state)
{
    (void)state;
    double x[GRID], y[GRID];
    for (int i = 0; i < GRID; i++) {
        x[i] = i + 2;
        y[i] = (i + 2) * (i + 2);
    }
    fini_line line = fini_fit_line(x, y, GRID); /* a simulation without an error: its spread */
    expect_number("take: L^2 * (risk > 0), against: L, reduce: slope", line.slope,
                  line.slope - 2.776445105197793 * line.slope_error,
                  line.slope + 2.776445105197793 * line.slope_error,
                  "slope through 6 points, simulation");
    /* risk lies on its line, so that its own errors are all there is: weights (L - 4.5) / 17.5. */
    double sum = 0;
    for (int i = 0; i < GRID; i++)
        sum += pow((i - 2.5) / 17.5 * 0.1 * (i + 1), 2);
    double half = FINI_Z95 * sqrt(sum);
    expect_number("take: risk, against: L, reduce: slope", 1, 1 - half, 1 + half,
                  "slope through 6 points, simulation");
    half = FINI_Z95 * hypot(0.1, 0.6) / 5;
    expect_number("take: risk, against: L, reduce: slope, where: {L: [2, 7]}", 1, 1 - half,
                  1 + half, "slope through 2 points, simulation");
}

/* What chance has no part in has no spread, however different the numbers are. */
static void reduce__takes_exact_numbers_as_they_are(void **state)
{
    (void)state;
    double x[GRID], y[GRID];
    for (int i = 0; i < GRID; i++) {
        x[i] = i + 2;
        y[i] = 4 * (i + 2) * (i + 2);
    }
    fini_line line = fini_fit_line(x, y, GRID);
    expect_number("take: bayes, reduce: mean", 9, 9, 9, "mean of 6 numbers, closed form");
    expect_number("take: bayes^2, against: L, reduce: slope", line.slope, line.slope, line.slope,
                  "slope through 6 points, closed form");
    expect_number("take: bayes, reduce: median, where: {L: [2, 3]}", 5, 5, 5,
                  "median of 2 numbers, closed form");
    expect_number("take: bayes, reduce: sum", 54, 54, 54, "sum of 6 numbers, closed form");
    /* Its own error is what a quadrature has. */
    fini_number numbers[3];
    fini_measured m = {0};
    for (int i = 0; i < 3; i++)
        numbers[i] = fini_number_make(i * i, 0.3, FIN_HOW_QUADRATURE, 0);
    assert_int_equal(fini_reduce_numbers(FINI_REDUCE_MEAN, numbers, NULL, 3, false, &m, &err),
                     FIN_OK);
    near("quadrature", m.high - m.value, FINI_Z95 * 0.3 / sqrt(3));
    /* The same from draws or several seeds: a sample. */
    assert_int_equal(fini_reduce_numbers(FINI_REDUCE_MEAN, numbers, NULL, 3, true, &m, &err),
                     FIN_OK);
    near("sample", m.high - m.value, 4.302652729749464 * sqrt(13.0 / 9));
    expect_number("from: trained, take: seed, reduce: mean", 2, 2 - 4.302652729749464 / sqrt(3),
                  2 + 4.302652729749464 / sqrt(3), "mean of 3 numbers, closed form");
}

static void student__has_the_quantiles_of_the_tables(void **state)
{
    (void)state;
    static const double known[][2] = {
        {1, 12.7062},  {2, 4.30265},  {3, 3.18245},  {4, 2.77645},   {5, 2.57058},  {6, 2.44691},
        {7, 2.36462},  {8, 2.30600},  {9, 2.26216},  {10, 2.22814},  {11, 2.20099}, {12, 2.17881},
        {13, 2.16037}, {14, 2.14479}, {15, 2.13145}, {16, 2.11991},  {17, 2.10982}, {20, 2.08596},
        {25, 2.05954}, {30, 2.04227}, {60, 2.00030}, {120, 1.97993}, {1e9, 1.95996}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (fabs(fini_student_95((int64_t)known[i][0]) - known[i][1]) > 2e-5)
            fail_msg("%g degrees: %.6f, not %.6f", known[i][0],
                     fini_student_95((int64_t)known[i][0]), known[i][1]);
    assert_true(isinf(fini_student_95(0)));
}

/* Two points without errors, five numbers: nothing is known of the uncertainty, and so nothing
 * holds. */
static void reduce__says_what_it_does_not_know(void **state)
{
    (void)state;
    answer a = judged("from: trained, take: seconds, against: seed, reduce: slope, where: {seed: "
                      "[1, 2]}, expect: {at_most: 5}");
    assert_int_equal(a.claim.verdict, FIN_VERDICT_UNDECIDED);
    assert_string_equal(a.needed, "the uncertainty is not known");
    assert_non_null(strstr(a.how, "there are two points without errors"));
    a = judged("take: risk, reduce: median, where: {L: ['<=', 6]}, expect: {at_most: 9}");
    assert_int_equal(a.claim.verdict, FIN_VERDICT_UNDECIDED);
    near("median", a.claim.value, 3);
    a = judged("values: {m: {take: risk, reduce: median, where: {L: [2, 3]}}}, quantity: 2 * m, "
               "expect: {at_most: 9}");
    assert_int_equal(a.claim.verdict, FIN_VERDICT_UNDECIDED);
}

/* Ranks from the tables of the sign test: 20 numbers, the 6th to the 15th; 100, the 40th to the
 * 61st; up to five, none. */
static void reduce__median_has_the_ranks_of_the_sign_test(void **state)
{
    (void)state;
    static const int known[][3] = {{2, 0, 0},   {5, 0, 0},     {6, 1, 6},       {9, 2, 8},
                                   {20, 6, 15}, {100, 40, 61}, {1000, 469, 532}};
    static fini_number numbers[1000];
    for (size_t k = 0; k < sizeof known / sizeof *known; k++) {
        int n = known[k][0];
        fini_measured m = {0};
        for (int i = 0; i < n; i++) /* 7 is prime to all of them */
            numbers[i] = fini_number_make((i * 7) % n + 1, 0, FIN_HOW_RUNS, 0);
        assert_int_equal(fini_reduce_numbers(FINI_REDUCE_MEDIAN, numbers, NULL, n, false, &m, &err),
                         FIN_OK);
        near("median", m.value, (n + 1) / 2.0);
        if (n < 6) {
            assert_true(isnan(m.low) && isnan(m.high));
            assert_non_null(strstr(m.how, "not known"));
            continue;
        }
        near("low", m.low, known[k][1]);
        near("high", m.high, known[k][2]);
    }
}

static void reduce__pools_shares(void **state)
{
    (void)state;
    fini_interval half = fini_wilson(15, 30), most = fini_wilson(8, 10);
    expect_number("from: trained, take: share, reduce: mean", 0.5, half.low, half.high,
                  "share of 30 runs");
    expect_number("from: trained, take: share, where: {seed: 2}", 0.8, most.low, most.high,
                  "share of 10 runs");
    expect_number("from: trained, take: share, reduce: max", 0.8, most.low, most.high,
                  "largest of 3 numbers, share of 10 runs");
    /* 0.5, 0.8 and 0.2 of ten each: what each has to its sides, in quadrature. */
    fini_interval five = fini_wilson(5, 10), two = fini_wilson(2, 10);
    double below = hypot(hypot(0.5 - five.low, 0.8 - most.low), 0.2 - two.low);
    double above = hypot(hypot(five.high - 0.5, most.high - 0.8), two.high - 0.2);
    expect_number("from: trained, take: share, reduce: sum", 1.5, 1.5 - below, 1.5 + above,
                  "sum of 3 numbers, share of 10 runs");
    expect_number("from: trained, take: share + 0, where: {seed: 2}", 0.8, most.low, most.high,
                  "derived");
    expect_number("from: trained, take: seconds, reduce: min", 0.5, 0.5, 0.5,
                  "least of 3 numbers, clock");
}

static void where__selects(void **state)
{
    (void)state;
    expect_number("take: risk > 0, reduce: count, where: {L: [3, 5]}", 2, 2, 2,
                  "count among 2 numbers, simulation");
    expect_number("take: risk > 0, reduce: count, where: {L: ['>=', 4], form: erf}", 4, 4, 4,
                  "count among 4 numbers, simulation");
    expect_number("take: risk > 0, reduce: count, where: {L: ['!=', 4]}", 5, 5, 5,
                  "count among 5 numbers, simulation");
    expect_number("take: risk > 0, reduce: count, where: L = 3", 1, 1, 1,
                  "count among 1 number, simulation");
    expect_number("take: risk > 0, reduce: count, where: 'L = 3, 5'", 2, 2, 2,
                  "count among 2 numbers, simulation");
    expect_number("take: risk > 0, reduce: count, where: 'L>=4, form = erf, linear, L != 5'", 3, 3,
                  3, "count among 3 numbers, simulation");
    expect_number("take: risk > 0, reduce: count, where: 'L != 3, 5'", 4, 4, 4,
                  "count among 4 numbers, simulation");
    expect_number("take: risk > 0, reduce: count, where: [L > 2, L <= 4]", 2, 2, 2,
                  "count among 2 numbers, simulation");
    expect_number("take: risk > 0, reduce: count, where: {}", 6, 6, 6,
                  "count among 6 numbers, simulation");
}

static void values__are_combined(void **state)
{
    (void)state;
    answer a = judged("values: {small: {take: risk, where: {L: 2}}, large: {take: risk, where: "
                      "{L: 7}}, exact: {take: bayes, where: {L: 2}}}, quantity: large / small + "
                      "exact, expect: {between: [8, 12]}");
    near("value", a.claim.value, 10);
    /* Each goes over its interval: 0.6 errors make 6 -+ 0.6 z, 0.1 errors 6 / (1 +- 0.1 z). */
    const double z = FINI_Z95;
    near("low", a.claim.low, 10 - hypot(0.6 * z, 6 - 6 / (1 + 0.1 * z)));
    near("high", a.claim.high, 10 + hypot(0.6 * z, 6 / (1 - 0.1 * z) - 6));
    assert_int_equal(a.claim.verdict, FIN_VERDICT_HOLDS);
    assert_string_equal(a.how, "simulation; closed form");
    assert_string_equal(a.quantity, "large / small + exact, with small = risk where L=2; large = "
                                    "risk where L=7; exact = bayes where L=2");
    assert_string_equal(a.expected, "8 to 12");
}

/* ---- verdicts --------------------------------------------------------------------------------- */

static void expect_verdict(const char *rest, fin_verdict verdict, const char *expected)
{
    answer a = judged(rest);
    if (a.claim.verdict != verdict || strcmp(a.expected, expected) != 0)
        fail_msg("%s: %s, '%s'", rest, fin_verdict_name(a.claim.verdict), a.expected);
}

/* risk at L = 3 is 2, from 1.608 to 2.392. */
static void verdict__is_whether_the_interval_is_inside_the_expected(void **state)
{
    (void)state;
    const char *const holds[][2] = {
        {"{at_most: 2.4}", "at most 2.4"},        {"{at_least: 1.6}", "at least 1.6"},
        {"{between: [0, 2.4]}", "0 to 2.4"},      {"{between: [1.6, 2.4]}", "1.6 to 2.4"},
        {"{between: [1.6, 1e3]}", "1.6 to 1000"}, {"{equal: 1.9, tolerance: 0.5}", "1.9 +- 0.5"},
    };
    /* with what is said to be needed: half is 0.392 */
    const char *const undecided[][2] = {
        {"{at_most: 2.196}", "about 4 times as many samples would decide it"},
        {"{at_least: 2.196}", "about 4 times as many samples would decide it"},
        {"{between: [1.804, 2.3]}", "about 4 times as many samples would decide it"},
        {"{between: [1.8, 2.1]}", "about 15 times as many samples would decide it"},
        {"{at_most: 2}", "the value is at the bound: more runs may not decide it"},
        {"{equal: 2}", "no number with an error is exactly 2: it takes a tolerance"},
    };
    const char *const fails[][2] = {
        {"{at_most: 1.6}", "at most 1.6"},         {"{at_least: 2.4}", "at least 2.4"},
        {"{between: [0, 1.6]}", "0 to 1.6"},       {"{equal: 1.5}", "1.5"},
        {"{between: [2.4, 1e9]}", "2.4 to 1e+09"}, {"{equal: 1.5, tolerance: 0.1}", "1.5 +- 0.1"},
    };
    char claim[256];
    for (int i = 0; i < 6; i++) {
        snprintf(claim, sizeof claim, "take: risk, where: {L: 3}, expect: %s", holds[i][0]);
        expect_verdict(claim, FIN_VERDICT_HOLDS, holds[i][1]);
        snprintf(claim, sizeof claim, "take: risk, where: {L: 3}, expect: %s", fails[i][0]);
        expect_verdict(claim, FIN_VERDICT_FAILS, fails[i][1]);
        snprintf(claim, sizeof claim, "take: risk, where: {L: 3}, expect: %s", undecided[i][0]);
        answer a = judged(claim);
        assert_int_equal(a.claim.verdict, FIN_VERDICT_UNDECIDED);
        assert_string_equal(a.needed, undecided[i][1]);
    }
    expect_verdict("take: bayes, where: {L: 3}, expect: {equal: 6}", FIN_VERDICT_HOLDS, "6");
    expect_verdict("take: bayes, where: {L: 3}, expect: {equal: 6.000001}", FIN_VERDICT_FAILS,
                   "6.000001");
}

/* An interval without end, and one that nobody knows, decide nothing, whatever is made of them. */
static void verdict__is_undecided_without_an_error(void **state)
{
    (void)state;
    static const char *const takes[] = {
        "take: risk, where: {L: 7}",
        "take: 2 * risk - 1, where: {L: 7}",
        "take: risk, reduce: max",
        "take: risk, reduce: mean",
        "take: risk, reduce: median",
        "take: risk, reduce: sum",
        "take: risk > 0, reduce: share",
        "take: risk > 0, reduce: count",
        "take: risk, reduce: slope, against: L",
        "values: {m: {take: risk, reduce: last}}, quantity: m - 1",
    };
    const fate endless = {.error_5 = INFINITY}, unknown = {.error_5 = NAN};
    char claim[256];
    answer a = judged_after(&endless, "take: risk, where: {L: 7}, expect: {at_most: 5}");
    assert_int_equal(a.claim.verdict, FIN_VERDICT_UNDECIDED);
    assert_string_equal(a.needed, "the interval has no end");
    for (size_t i = 0; i < sizeof takes / sizeof *takes; i++) {
        snprintf(claim, sizeof claim, "%s, expect: {at_most: 1e9}", takes[i]);
        a = judged_after(&unknown, claim);
        if (a.claim.verdict != FIN_VERDICT_UNDECIDED || !isfinite(a.claim.value))
            fail_msg("%s: %s, %g", claim, fin_verdict_name(a.claim.verdict), a.claim.value);
        assert_string_equal(a.needed, "the uncertainty is not known");
    }
    /* It has no part in these. */
    a = judged_after(&unknown, "take: risk, reduce: first, expect: {at_most: 1e9}");
    assert_int_equal(a.claim.verdict, FIN_VERDICT_HOLDS);
}

static void claim__is_fine_if_it_is_as_the_file_says(void **state)
{
    (void)state;
    static const int fine[FIN_VERDICTS][2] = {{0, 0}, {1, 0}, {0, 1}, {0, 1}}; /* [known] */
    for (int v = 0; v < FIN_VERDICTS; v++)
        for (int known = 0; known < 2; known++) {
            fin_claim claim = {.verdict = (fin_verdict)v, .known = known ? "because" : ""};
            assert_int_equal(fin_claim_fine(&claim), fine[v][known]);
        }
    assert_int_equal(fin_claim_fine(NULL), 0);
    answer a = judged("take: risk, where: {L: 3}, kind: check, expect: {at_most: 5}");
    assert_int_equal(a.claim.kind, FIN_KIND_CHECK);
    a = judged("take: risk, where: {L: 3}, expect: {at_most: 5}");
    assert_int_equal(a.claim.kind, FIN_KIND_DERIVED);
}

static void expect_untested(const fate *f, const char *rest, const char *why)
{
    char claim[512];
    snprintf(claim, sizeof claim, "%s, expect: {at_least: -1e9}", rest);
    answer a = judged_after(f, claim);
    if (a.claim.verdict != FIN_VERDICT_UNTESTED || !strstr(a.how, why))
        fail_msg("%s: %s, how '%s' has no '%s'", rest, fin_verdict_name(a.claim.verdict), a.how,
                 why);
    assert_true(isnan(a.claim.value) && isnan(a.claim.low) && isnan(a.claim.high));
}

static void verdict__is_untested_if_something_is_not_there(void **state)
{
    (void)state;
    const fate good = {0}, two_missing = {.missing = 2}, one_failed = {.missing = 1, .failed = 1},
               no_bayes = {.without = 1}, none_has = {.without = GRID}, nan_risk = {.risk_5 = NAN};
    expect_untested(&two_missing, "take: risk, reduce: max", "2 of 6 runs are missing");
    expect_untested(&one_failed, "take: risk, reduce: max", "1 of 6 runs failed; run ");
    expect_untested(&one_failed, "take: risk, reduce: max", "failed: it was too late");
    expect_untested(&good, "take: risk, where: {L: 99}", "no run of grid matches");
    expect_untested(&good, "take: risk", "6 runs match; 'reduce: only' takes one");
    expect_untested(&no_bayes, "take: bayes, reduce: min", "bayes is not a number in 1 of 6 runs");
    expect_untested(&none_has, "take: bayes, reduce: min",
                    "no run has a setting or number 'bayes'");
    expect_untested(&nan_risk, "take: risk, reduce: min", "not a number in 1 of 6 runs");
    expect_untested(&good, "take: risk, against: L, reduce: slope, where: {L: 2}",
                    "a slope needs two runs");
    expect_untested(&good, "take: risk, against: d, reduce: slope", "the quantity is not a number");
    expect_untested(&good, "take: 1 / (risk - 2), where: {L: 3}", "the quantity is infinite");
    expect_untested(&good, "take: -bayes / 0, reduce: min", "the quantity is infinite");
    expect_untested(
        &two_missing,
        "values: {a: {take: risk, reduce: max}, b: {from: trained, take: share, reduce: "
        "max}}, quantity: a / b",
        "a: 2 of 6 runs are missing");
    /* What is there can still be judged. */
    answer a =
        judged_after(&two_missing, "take: risk, where: {L: 2}, expect: {equal: 1, tolerance: 0.2}");
    assert_int_equal(a.claim.verdict, FIN_VERDICT_HOLDS);
}

static void verdict__changes_with_the_runs(void **state)
{
    (void)state;
    const fate early = {.missing = 2}, late = {0};
    fin_store *store;
    answer a;
    fin_study *study = study_of(
        "  - {id: all, statement: S, take: risk, reduce: max, expect: {equal: 6}, figure: shown}\n"
        "  - {id: own, statement: S, source: elsewhere, take: risk, where: {L: 2}, expect: {equal: "
        "1}}\n");
    assert_int_equal(fin_store_open(in_folder("c.db"), FIN_STORE_CREATE, &store, &err), FIN_OK);
    keep_runs(store, study, &early);
    ask(store, &a);
    assert_int_equal(a.count, 2);
    assert_string_equal(a.id, "own");
    assert_string_equal(a.source, "elsewhere");
    assert_string_equal(a.figure, "");
    keep_runs(store, study, &late);
    ask(store, &a);
    assert_int_equal(a.count, 2);
    fin_store_close(store);
    fin_study_destroy(study);
    a = judged("take: risk, reduce: max, expect: {equal: 6}, figure: shown");
    assert_string_equal(a.source, "the source");
    assert_string_equal(a.figure, "shown");
    assert_string_equal(a.quantity, "max of risk");
    list_folder(1);
    /* A study that is not there. */
    assert_int_equal(fin_store_open(in_folder("c.db"), FIN_STORE_CREATE, &store, &err), FIN_OK);
    assert_int_equal(fin_store_judge(store, "t", &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_store_judge(store, NULL, &err), FIN_OK);
    fin_store_close(store);
    list_folder(1);
}

/* Of the studies that come with the library: what is no check has a source, and says what would make it
 * fail; nothing is known without a reason. */
static void shipped__claims_say_whose_they_are(void **state)
{
    (void)state;
    int count = 0, bad = 0;
    for (int i = 0; i < fin_shipped_count(); i++) {
        const char *text = fin_shipped_text(i), *name = fin_shipped_name(i);
        fin_study *study;
        assert_int_equal(fin_study_parse(text, strlen(text), name, NULL, &study, &err), FIN_OK);
        for (int k = 0; k < study->claim_count; k++) {
            const fini_claim_plan *plan = &study->claims[k];
            bool check = plan->kind == FIN_KIND_CHECK;
            if (!check && (!plan->source[0] || strlen(plan->fails_if) < 10)) {
                print_error("%s: %s has no source, or no fails_if\n", name, plan->id);
                bad++;
            }
            count += !check;
        }
        fin_study_destroy(study);
    }
    assert_int_equal(bad, 0);
    assert_true(count > 50);
}

static void verdict__has_a_name(void **state)
{
    (void)state;
    assert_string_equal(fin_verdict_name(FIN_VERDICT_HOLDS), "holds");
    assert_string_equal(fin_verdict_name(FIN_VERDICT_UNDECIDED), "undecided");
    assert_string_equal(fin_verdict_name((fin_verdict)99), "unknown");
}

/* ---- what is refused -------------------------------------------------------------------------- */

static void refuses(const char *claims, const char *place, const char *part)
{
    char text[8192], where[64];
    fin_study *study;
    snprintf(text, sizeof text, "%s%s", head, claims);
    fin_status status = fin_study_parse(text, strlen(text), "s.yaml", NULL, &study, &err);
    snprintf(where, sizeof where, "s.yaml:%s: ", place);
    if (!status || study || !strstr(err.message, part) ||
        strncmp(err.message, where, strlen(where)))
        fail_msg("%s: %s: '%s' has not '%s' and '%s'", claims, fin_status_name(status), err.message,
                 where, part);
}

/* Claims begin in line 14; "  - {id: c, statement: S, " has 25 letters. */
static void refuses_claim(const char *rest, const char *place, const char *part)
{
    char claims[1024];
    snprintf(claims, sizeof claims, "  - {id: c, statement: S, %s}\n", rest);
    refuses(claims, place, part);
}

static void check__says_where_and_what(void **state)
{
    (void)state;
    refuses_claim("take: risk, where: {L: ['=>', 3]}, expect: {equal: 1}", "14:51",
                  "a condition is");
    refuses_claim("take: risk, where: {L: ['>=', 3, 4]}, expect: {equal: 1}", "14:51",
                  "a condition is");
    refuses_claim("take: risk, where: {L: ['>=']}, expect: {equal: 1}", "14:51", "a condition is");
    refuses_claim("tak: risk, expect: {equal: 1}", "14:27", "did you mean 'take'");
    refuses_claim("expect: {equal: 1}", "14:5", "a claim has no 'take'");
    refuses_claim("take: risk", "14:5", "a claim has no 'expect'");
    refuses_claim("take: risk +, expect: {equal: 1}", "14:33", "the end");
    refuses_claim("take: rusk, expect: {equal: 1}", "14:33", "did you mean risk?");
    refuses_claim("take: share, expect: {equal: 1}", "14:33", "'share' is no setting or number");
    refuses_claim("take: risk, from: gird, expect: {equal: 1}", "14:45", "did you mean grid?");
    refuses_claim("take: risk, reduce: mx, expect: {equal: 1}", "14:47", "did you mean max?");
    refuses_claim("take: risk, reduce: everything, expect: {equal: 1}", "14:47", "there are only,");
    refuses_claim("take: risk, reduce: slope, expect: {equal: 1}", "14:47", "needs 'against'");
    refuses_claim("take: risk, against: L, expect: {equal: 1}", "14:39", "'reduce: slope' alone");
    refuses_claim("take: risk, figure: show, expect: {equal: 1}", "14:47", "did you mean shown?");
    refuses_claim("take: risk, where: {lamb: 1}, expect: {equal: 1}", "14:47", "did you mean lam?");
    refuses_claim("take: risk, where: {risk: 1}, expect: {equal: 1}", "14:47", "is no setting");
    refuses_claim("take: risk, where: {L: []}, expect: {equal: 1}", "14:50", "a condition is");
    refuses_claim("take: risk, where: {L: [[1]]}, expect: {equal: 1}", "14:51", "a condition is");
    refuses_claim("take: risk, where: {L: '1|2'}, expect: {equal: 1}", "14:50", "a condition is");
    const char *const bad[] = {"L",         "L =",      "= 3",        "L => 3",
                               "L ! 3",     "L == 3",   "'3, L = 2'", "'L >= 3, 4'",
                               "[[L = 2]]", "'L = 2,'", "L = 2|3",    "'L = 2, !form'"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char claim[128];
        snprintf(claim, sizeof claim, "take: risk, expect: {equal: 1}, where: %s", bad[i]);
        refuses_claim(claim, strncmp(bad[i], "[[", 2) ? "14:66" : "14:67", "a condition is");
    }
    refuses_claim("take: risk, where: lamb = 1, expect: {equal: 1}", "14:46", "did you mean lam?");
    refuses_claim("take: risk, where: [L = 2, lamb > 1], expect: {equal: 1}", "14:54",
                  "did you mean lam?");
    refuses_claim("take: risk, kind: papers, expect: {equal: 1}", "14:45", "mean paper");
    refuses_claim("take: risk, kind: mine, expect: {equal: 1}", "14:45",
                  "paper, derived and check");
    refuses_claim("take: risk, precision: 0, expect: {equal: 1}", "14:39",
                  "no 'precision' any more");
    refuses_claim("take: [risk], expect: {equal: 1}", "14:33", "must be a text");
}

static void check__wants_one_expectation(void **state)
{
    (void)state;
    const char *const bad[] = {"{}",
                               "{equal: 1, at_most: 2}",
                               "{tolerance: 1}",
                               "{at_most: 1, tolerance: 1}",
                               "{between: [2, 1]}",
                               "{between: [1]}",
                               "{between: [a, b]}",
                               "{between: [nan, 1]}",
                               "{between: [1, inf]}",
                               "{between: [-inf, 1]}",
                               "{at_most: inf}",
                               "{at_least: -inf}",
                               "{equal: x}",
                               "{equal: nan}",
                               "{equal: 1, tolerance: -1}",
                               "{equal: 1, tolerance: inf}",
                               "{at_most: }",
                               "{at_least: [1]}",
                               "{equals: 1}",
                               "1",
                               "[1]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char claims[256], text[4096];
        fin_study *study;
        snprintf(claims, sizeof claims, "  - {id: c, statement: S, take: risk, expect: %s}\n",
                 bad[i]);
        snprintf(text, sizeof text, "%s%s", head, claims);
        if (!fin_study_parse(text, strlen(text), "s.yaml", NULL, &study, &err))
            fail_msg("%s was taken", bad[i]);
        if (strncmp(err.message, "s.yaml:14:", 10) != 0)
            fail_msg("%s: '%s'", bad[i], err.message);
    }
}

static void check__looks_at_ids(void **state)
{
    (void)state;
    const char *good = "statement: S, take: risk, expect: {equal: 1}";
    char claims[512];
    snprintf(claims, sizeof claims, "  - {id: c, %s}\n  - {id: d, %s}\n  - {id: c, %s}\n", good,
             good, good);
    refuses(claims, "16:10", "two claims 'c'; the first one is in line 14");
    snprintf(claims, sizeof claims, "  - {id: 'a b', %s}\n", good);
    refuses(claims, "14:10", "letters, digits, - or _");
    snprintf(claims, sizeof claims, "  - {id: %065d, %s}\n", 1, good);
    refuses(claims, "14:10", "1 to 64 letters");
    snprintf(claims, sizeof claims, "  - {id: '', %s}\n", good);
    refuses(claims, "14:10", "1 to 64 letters");
    snprintf(claims, sizeof claims, "  - {%s}\n", good);
    refuses(claims, "14:5", "a claim has no 'id'");
    refuses("  - {id: c, take: risk, expect: {equal: 1}}\n", "14:5", "no 'statement'");
    refuses("  - 7\n", "14:5", "a claim");
    snprintf(claims, sizeof claims, "  - {id: %064d, %s}\n", 1, good);
    fin_study_destroy(study_of(claims));
}

static void check__looks_at_values(void **state)
{
    (void)state;
    refuses_claim("values: {a: {take: risk}}, expect: {equal: 1}", "14:5", "has no 'quantity'");
    refuses_claim("values: {a: {take: risk}}, quantity: a + bb, expect: {equal: 1}", "14:64",
                  "'bb', which is none of the 'values'");
    refuses_claim("values: {a: {take: risk}}, quantity: a +, expect: {equal: 1}", "14:64",
                  "the end");
    refuses_claim("values: {1a: {take: risk}}, quantity: 1, expect: {equal: 1}", "14:36",
                  "does not begin with a digit");
    refuses_claim("values: {pi: {take: risk}}, quantity: pi, expect: {equal: 1}", "14:36",
                  "not pi");
    refuses_claim("values: {a: {tke: risk}}, quantity: a, expect: {equal: 1}", "14:40",
                  "did you mean 'take'");
    refuses_claim("values: {a: {take: risk, from: x}}, quantity: a, expect: {equal: 1}", "14:58",
                  "no block of runs 'x'; the first one is grid");
    refuses_claim("values: {a: {take: risk}, b: {take: rusk}}, quantity: a, expect: {equal: 1}",
                  "14:63", "did you mean risk?");
    refuses_claim("values: {}, quantity: 1, expect: {equal: 1}", "14:35", "1 to 32 named numbers");
    refuses_claim("take: risk, quantity: risk, expect: {equal: 1}", "14:39", "formula of 'values'");
    refuses_claim("take: risk, values: {a: {take: risk}}, quantity: a, expect: {equal: 1}", "14:27",
                  "has 'take' in each of them");
}

/* ---- memory ------------------------------------------------------------------------------------ */

static fin_status judge_again(void *user, fin_error *e)
{
    fin_store *store;
    fin_status status = fin_store_open(user, FIN_STORE_WRITE, &store, e);
    if (status)
        return status;
    status = fin_store_judge(store, NULL, e);
    fin_store_close(store);
    return status;
}

static void judge__survives_failing_allocations(void **state)
{
    (void)state;
    const fate good = {0};
    fin_store *store;
    fin_study *study = study_of(
        "  - {id: a, statement: S, take: risk, reduce: median, where: {L: [2, 3]}, expect: {equal: "
        "6}}\n"
        "  - {id: b, statement: S, take: risk, against: L, reduce: slope, expect: {equal: 1}}\n"
        "  - {id: c, statement: S, values: {x: {take: risk, reduce: max}}, quantity: x, expect: "
        "{equal: 6}}\n");
    const char *path = in_folder("c.db");
    assert_int_equal(fin_store_open(path, FIN_STORE_CREATE, &store, &err), FIN_OK);
    keep_runs(store, study, &good);
    fin_store_close(store);
    fin_study_destroy(study);
    char copy[1024];
    snprintf(copy, sizeof copy, "%s", path);
    assert_true(fault_every(judge_again, copy) > 20);
    list_folder(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduce__has_the_interval_it_should),
        cmocka_unit_test(reduce__slope_has_the_error_of_the_line),
        cmocka_unit_test(reduce__takes_exact_numbers_as_they_are),
        cmocka_unit_test(student__has_the_quantiles_of_the_tables),
        cmocka_unit_test(reduce__says_what_it_does_not_know),
        cmocka_unit_test(reduce__median_has_the_ranks_of_the_sign_test),
        cmocka_unit_test(reduce__pools_shares),
        cmocka_unit_test(where__selects),
        cmocka_unit_test(values__are_combined),
        cmocka_unit_test(verdict__is_whether_the_interval_is_inside_the_expected),
        cmocka_unit_test(verdict__is_undecided_without_an_error),
        cmocka_unit_test(claim__is_fine_if_it_is_as_the_file_says),
        cmocka_unit_test(verdict__is_untested_if_something_is_not_there),
        cmocka_unit_test(verdict__changes_with_the_runs),
        cmocka_unit_test(shipped__claims_say_whose_they_are),
        cmocka_unit_test(verdict__has_a_name),
        cmocka_unit_test(check__says_where_and_what),
        cmocka_unit_test(check__wants_one_expectation),
        cmocka_unit_test(check__looks_at_ids),
        cmocka_unit_test(check__looks_at_values),
        cmocka_unit_test(judge__survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
