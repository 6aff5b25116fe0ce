/* Many points at once: the numbers of single runs, to the last bit; and ranges of values. */
#include "test_command.h"

#include "finetti/random.h"
#include "test_size.h"

enum { POINTS = 300 };

static fin_random dice;

static double between(double low, double high)
{
    return low + (high - low) * ((double)fin_random_word(&dice) + 0.5) * 0x1p-32;
}

/* "name=value name=value" as pairs; copy has room for the text. */
static int pairs_of(const char *text, char *copy, fin_pair *pairs)
{
    int count = 0;
    char *rest;
    strcpy(copy, text);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *equals = strchr(word, '=');
        *equals = '\0';
        pairs[count++] = (fin_pair){word, equals + 1, NULL};
    }
    return count;
}

static fin_status sweep_of(const char *command, const char *fixed, const fin_column *columns,
                           int count, int64_t n, const fin_progress *progress, fin_sweep **sweep,
                           int64_t *bad, fin_error *error)
{
    char copy[512];
    fin_pair pairs[32];
    int pair_count = pairs_of(fixed, copy, pairs);
    return fin_command_sweep(fin_command_find(command), pairs, pair_count,
                             &(fin_sweep_points){n, columns, count}, progress, sweep, bad, error);
}

static fin_status run_point(const char *command, const char *fixed, const fin_column *columns,
                            int count, int64_t i, fin_result **result, fin_error *error)
{
    char copy[512], texts[16][FINI_SHORTEST];
    fin_pair pairs[48];
    int pair_count = pairs_of(fixed, copy, pairs);
    for (int c = 0; c < count; c++) {
        if (columns[c].numbers)
            fini_shortest(columns[c].numbers[i], texts[c]);
        pairs[pair_count++] =
            (fin_pair){columns[c].name, columns[c].numbers ? texts[c] : columns[c].texts[i], NULL};
    }
    return fin_command_run(fin_command_find(command), pairs, pair_count, NULL, result, error);
}

static bool same(double a, double b)
{
    return memcmp(&a, &b, sizeof a) == 0;
}

/* Every number of every single run is in the sweep, and the sweep has no others. Returns how many. */
static int64_t expect_same(const char *command, const char *fixed, const fin_column *columns,
                           int count, int64_t n)
{
    fin_sweep *sweep;
    int64_t bad, found = 0, there = 0;
    if (sweep_of(command, fixed, columns, count, n, NULL, &sweep, &bad, &err))
        fail_msg("%s %s, point %d: %s", command, fixed, (int)bad, err.message);
    for (int64_t i = 0; i < n; i++) {
        fin_result *r;
        assert_int_equal(run_point(command, fixed, columns, count, i, &r, &err), FIN_OK);
        for (int c = 0; c < fin_sweep_count(sweep); c++) {
            fin_sweep_column column = fin_sweep_get(sweep, c);
            fin_scalar s;
            if (!has(r, column.name, &s)) {
                assert_true(isnan(column.value[i]) && isnan(column.error[i]));
                continue;
            }
            if (!same(column.value[i], s.value) || !same(column.error[i], s.error))
                fail_msg("%s %s, point %d: %s = %.17g, not %.17g", command, fixed, (int)i,
                         column.name, column.value[i], s.value);
            assert_int_equal(column.hows ? column.hows[i] : column.how, s.how);
            assert_int_equal(column.samples ? column.samples[i] : 0, s.samples);
            found++;
        }
        there += fin_result_scalar_count(r);
        fin_result_destroy(r);
    }
    assert_int_equal(found, there);
    fin_sweep_destroy(sweep);
    return found;
}

/* ---- the closed form of erf -------------------------------------------------------------------- */

static double room[16][POINTS];

/* Overlaps and lam, as they are in all of these sweeps; a fifth of the overlaps no vectors have. */
static int common_columns(fin_column *columns)
{
    static const char *const names[] = {"kappa", "nu", "theta", "eta", "rho", "lam"};
    for (int c = 0; c < 6; c++) {
        columns[c] = (fin_column){names[c], room[c], NULL};
        for (int i = 0; i < POINTS; i++)
            room[c][i] = c == 5   ? exp(between(-8, 3))
                         : i == 0 ? -0.0
                         : c >= 2 ? between(-0.6, 0.6)
                                  : between(-1, 1);
    }
    return 6;
}

static void add_column(fin_column *columns, int *count, const char *name, double low, double high,
                       bool whole)
{
    for (int i = 0; i < POINTS; i++) {
        double x = between(low, high);
        room[*count][i] = whole ? round(x) : x;
    }
    columns[*count] = (fin_column){name, room[*count], NULL};
    ++*count;
}

static void risk__many_points_are_those_of_single_runs(void **state)
{
    (void)state;
    fin_column columns[16];
    fin_random_open(&dice, 7, 1, 0);
    int few = common_columns(columns), count = few;
    const int n = (int)sized(60, POINTS, POINTS);
    expect_same("risk", "", columns, few, n);
    expect_same("risk", "lengths=5:0.2,10:0.8 eps=0.3 m=2", columns, few, n);
    expect_same("risk", "method=closed mu=3 gamma=1 L=7 L_min=3", columns, few, n);
    add_column(columns, &count, "L-min", 3, 9, true); /* as on the command line */
    add_column(columns, &count, "L", 9, 30, true);
    add_column(columns, &count, "m", 1, 3, true);
    add_column(columns, &count, "eps", 0, 1, false);
    add_column(columns, &count, "d", 4, 900, true);
    int tasks = count;
    add_column(columns, &count, "gamma", 0.1, 2, false);
    expect_same("risk", "", columns, count, n); /* auto mu follows d */
    add_column(columns, &count, "mu", 0, 20, false);
    expect_same("risk", "", columns, count, n);
    add_column(columns, &tasks, "snr", 0, 50, false);
    int64_t found = expect_same("risk", "task=spiked", columns, tasks, n);
    assert_true(found > 10 * n); /* ten numbers a point, and some are not real */
}

/* Everything else goes point by point, and what does not change is not computed again. */
static void risk__point_by_point(void **state)
{
    (void)state;
    static const double lam[] = {0.1, 0.2, 0.2, 0.5, 0.5, 0.5}, snr[] = {2, 2, 2, 2, 3, 3};
    static const char *const shows[] = {"risk",       "oracle,star", "bayes",
                                        "risk,bayes", "star",        "linear,bayes"};
    static const char *const forms[] = {"erf",     "softmax", "softmax",
                                        "hardmax", "linear",  "softmax"};
    const fin_column columns[] = {
        {"lam", lam, NULL}, {"snr", snr, NULL}, {"show", NULL, shows}, {"form", NULL, forms}};
    expect_same("risk", "task=spiked form=softmax samples=100 show=risk,oracle,star,bayes,linear",
                columns, 2, 6);
    expect_same("risk", "task=max form=softmax samples=100 L=4 show=bayes,risk", columns, 2, 6);
    expect_same("risk", "task=spiked form=softmax samples=100 L=4", columns, 3, 6);
    expect_same("risk", "task=spiked samples=100 L=4 show=risk,bayes,linear", columns + 1, 1, 6);
    expect_same("risk", "task=spiked samples=100 L=4 show=risk,bayes,linear", columns + 3, 1, 6);
    fin_sweep *sweep; /* a form that has no lam */
    int64_t bad;
    assert_int_equal(sweep_of("risk", "task=spiked samples=100",
                              (const fin_column[]){columns[0], columns[3]}, 2, 6, NULL, &sweep,
                              &bad, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(bad, 3);
    assert_non_null(strstr(err.message, "hardmax has no setting lam"));
}

static int count_calls(void *user, const char *what, double done, double total)
{
    (void)done, (void)total;
    *(int *)user += strcmp(what, "Bayes risk") == 0;
    return 0;
}

static void risk__bayes_once_for_one_task(void **state)
{
    (void)state;
    const double lam[] = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8};
    const fin_column columns[] = {{"lam", lam, NULL}};
    int calls[2] = {0, 0};
    for (int k = 0; k < 2; k++) {
        fin_sweep *sweep;
        fin_progress progress = {count_calls, &calls[k]};
        assert_int_equal(sweep_of("risk", "show=bayes samples=1000", columns, 1, k ? 8 : 1,
                                  &progress, &sweep, NULL, &err),
                         FIN_OK);
        fin_sweep_destroy(sweep);
    }
    assert_true(calls[0] > 0);
    assert_int_equal(calls[0], calls[1]);
}

static void lab__points(void **state)
{
    (void)state;
    const double L[] = {4, 8, 4};
    const fin_column columns[] = {{"L", L, NULL}};
    assert_true(expect_same("latent", "samples=200", columns, 1, 3) > 0);
}

/* ---- what goes wrong ---------------------------------------------------------------------------- */

/* The sentence is that of the point alone. */
static void failures__name_the_point(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double bad;
    } cases[] = {{"kappa", 1.5}, {"kappa", NAN},    {"L", 2.5},        {"L", 0},      {"m", 11},
                 {"lam", -1},    {"lam", INFINITY}, {"gamma", 1e-200}, {"samples", 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double numbers[POINTS];
        const fin_column column = {cases[k].name, numbers, NULL};
        for (int i = 0; i < POINTS; i++)
            numbers[i] = i == 217 ? cases[k].bad : k == 8 ? 10 : 1;
        fin_sweep *sweep = (fin_sweep *)&dice;
        fin_result *r;
        fin_error alone;
        int64_t bad;
        const char *fixed = k == 8 ? "form=softmax lam=0.1 L=2" : "";
        fin_status status = run_point("risk", fixed, &column, 1, 217, &r, &alone);
        assert_int_not_equal(status, FIN_OK);
        assert_int_equal(sweep_of("risk", fixed, &column, 1, POINTS, NULL, &sweep, &bad, &err),
                         status);
        assert_null(sweep);
        assert_int_equal(bad, 217);
        assert_string_equal(err.message, alone.message);
        assert_int_equal(sweep_of("risk", fixed, &column, 1, POINTS, NULL, &sweep, NULL, NULL),
                         status);
    }
}

static void arguments__are_checked(void **state)
{
    (void)state;
    const fin_command *risk = fin_command_find("risk");
    fin_sweep *sweep;
    int64_t bad = 5;
    const double lam[] = {0.1};
    const fin_column column = {"lam", lam, NULL}, odd = {"gama", lam, NULL};
    const fin_sweep_points one = {1, &column, 1};
    assert_int_equal(fin_command_sweep(NULL, NULL, 0, &one, NULL, &sweep, &bad, &err),
                     FIN_ERR_ARGUMENT);
    assert_true(bad == -1 && !sweep);
    assert_int_equal(fin_command_sweep(risk, NULL, 0, NULL, NULL, &sweep, &bad, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_command_sweep(risk, NULL, 0, &(fin_sweep_points){-1, &column, 1}, NULL,
                                       &sweep, &bad, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_command_sweep(risk, NULL, 1, &one, NULL, &sweep, &bad, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(
        fin_command_sweep(risk, NULL, 0, &(fin_sweep_points){1, NULL, 1}, NULL, &sweep, &bad, &err),
        FIN_ERR_ARGUMENT);
    assert_int_equal(fin_command_sweep(risk, NULL, 0, &one, NULL, NULL, &bad, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(
        fin_command_sweep(risk, NULL, 0, &(fin_sweep_points){1, &odd, 1}, NULL, &sweep, &bad, &err),
        FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "did you mean 'gamma'?"));
    assert_int_equal(fin_command_sweep(risk, NULL, 0, &(fin_sweep_points){0, &column, 1}, NULL,
                                       &sweep, &bad, &err),
                     FIN_OK); /* no points, no columns */
    assert_int_equal(fin_sweep_count(sweep), 0);
    fin_sweep_destroy(sweep);
    fin_sweep_destroy(NULL);
}

typedef struct fault_case {
    const char *fixed;
    int64_t n;
} fault_case;

static fin_status sweep_with_faults(void *user, fin_error *error)
{
    static const double lam[] = {0.1, 0.2, 0.3}, theta[] = {0, 0.9, 0};
    const fin_column columns[] = {{"lam", lam, NULL}, {"theta", theta, NULL}};
    const fault_case *c = user;
    fin_sweep *sweep;
    int64_t bad;
    fin_status status = sweep_of("risk", c->fixed, columns, strstr(c->fixed, "max") ? 1 : 2, c->n,
                                 NULL, &sweep, &bad, error);
    if (status)
        assert_true(!sweep && bad == -1);
    fin_sweep_destroy(sweep);
    return status;
}

static void sweep__every_allocation_may_fail(void **state)
{
    (void)state;
    fault_case cases[] = {
        {"", 3}, {"show=risk,star,bayes samples=10", 2}, {"form=softmax samples=10", 2}};
    fin_threads_set(1);
    for (int i = 0; i < 3; i++)
        assert_true(fault_every(sweep_with_faults, &cases[i]) >= 8);
    fin_threads_set(0);
}

static void sweep__cancelled(void **state)
{
    (void)state;
    const double lam[] = {0.1, 0.2, 0.3};
    const fin_column column = {"lam", lam, NULL};
    static const char *const fixed[] = {"", "show=risk,linear", "form=softmax samples=10"};
    for (int i = 0; i < 3; i++) {
        int calls = 0;
        fin_progress progress = {cancel_and_count, &calls};
        fin_sweep *sweep;
        assert_int_equal(sweep_of("risk", fixed[i], &column, 1, 3, &progress, &sweep, NULL, &err),
                         FIN_ERR_CANCELLED);
        assert_true(calls >= 1 && !sweep && err.message[0]);
    }
}

/* ---- ranges --------------------------------------------------------------------------------------- */

static void range__known_answers(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int whole;
        int count;
        double values[11];
    } cases[] = {
        {"0:1:11", 0, 11, {0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1}},
        {"0.1:0.5:5lin", 0, 5, {0.1, 0.2, 0.3, 0.4, 0.5}},
        {"1e-3:1e3:7log", 0, 7, {0.001, 0.01, 0.1, 1, 10, 100, 1000}},
        {"1:10:4log", 1, 4, {1, 2, 5, 10}},
        {"1:2:5", 1, 2, {1, 2}}, /* each once */
        {"3:1:3", 0, 3, {3, 2, 1}},
        {"-1:1:3", 0, 3, {-1, 0, 1}},
        {"5:9:1", 0, 1, {5}},
        {"0.3", 0, 1, {0.3}},
        {"0.1,0.1,-2e3", 0, 3, {0.1, 0.1, -2000}}, /* a list is as it is */
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double values[11];
        int64_t count, counted;
        assert_int_equal(fin_range_read(cases[k].text, cases[k].whole, 11, values, &count, &err),
                         FIN_OK);
        assert_int_equal(count, cases[k].count);
        for (int i = 0; i < count; i++)
            if (!same(values[i], cases[k].values[i]))
                fail_msg("%s: %.17g, not %.17g", cases[k].text, values[i], cases[k].values[i]);
        assert_int_equal(fin_range_read(cases[k].text, cases[k].whole, 11, NULL, &counted, &err),
                         FIN_OK);
        assert_int_equal(counted, count);
    }
}

static void range__refused(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "not a number"},          {"1,", "not a number"},
        {"a", "not a number"},         {"1:2", "FROM:TO:COUNT"},
        {"1:2:3logg", "FROM:TO"},      {"1:2:", "FROM:TO"},
        {":1:2", "FROM:TO"},           {"1:inf:3", "finite"},
        {"nan:1:3", "finite"},         {"1:2:0", "from 1 to 11"},
        {"1:2:12", "from 1 to 11"},    {"1:2:2.5", "from 1 to 11"},
        {"0:2:3log", "positive ends"}, {"1,2,3,4,5,6,7,8,9,10,11,12", "at most 11"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        double values[11];
        int64_t count;
        assert_int_equal(fin_range_read(cases[k][0], 0, 11, values, &count, &err),
                         FIN_ERR_ARGUMENT);
        if (!strstr(err.message, cases[k][1]))
            fail_msg("'%s': %s", cases[k][0], err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(risk__many_points_are_those_of_single_runs),
        cmocka_unit_test(risk__point_by_point),
        cmocka_unit_test(risk__bayes_once_for_one_task),
        cmocka_unit_test(lab__points),
        cmocka_unit_test(failures__name_the_point),
        cmocka_unit_test(arguments__are_checked),
        cmocka_unit_test(sweep__every_allocation_may_fail),
        cmocka_unit_test(sweep__cancelled),
        cmocka_unit_test(range__known_answers),
        cmocka_unit_test(range__refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
