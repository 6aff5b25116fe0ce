/* The command `mil`: the laws of its bags, what a monotone model must do on three of them, what is true of
 * deciding tokens on the others, and what every command must do. */
#include "test_command.h"

#include "lab/mil.h"

enum { BAGS = 1000, LEAST = 1, MOST = 9, K = 3, D = 5, LEAST_REPEATS = 35, MOST_REPEATS = 44 };

static fini_mil_law law_of(int test)
{
    return (fini_mil_law){.test = test,
                          .trials = 2,
                          .bags = BAGS,
                          .judged = BAGS,
                          .d = D,
                          .least = LEAST,
                          .most = MOST,
                          .k = K,
                          .least_repeats = LEAST_REPEATS,
                          .most_repeats = MOST_REPEATS};
}

static fini_mil_bags drawn(const fini_mil_law *law, uint64_t first, bool flipped)
{
    fini_mil_bags room;
    assert_int_equal(fini_mil_open(&room, law, BAGS, &err), FIN_OK);
    fini_mil_draw(&room, law, 11, first, BAGS, flipped);
    return room;
}

/* ---- which tokens are in which bags ------------------------------------------------------------ */

typedef struct counts {
    int64_t of[4]; /* by FINI_MIL_... */
} counts;

static counts count(const fini_mil_bags *room, int64_t bag)
{
    counts c = {{0}};
    for (int64_t l = room->offsets[bag]; l < room->offsets[bag + 1]; l++)
        c.of[room->what[l]]++;
    return c;
}

static bool in(int64_t x, int64_t least, int64_t most)
{
    return x >= least && x <= most;
}

static void expect_counts(int test, bool positive, bool flipped, counts c)
{
    int64_t a = c.of[FINI_MIL_A], b = c.of[FINI_MIL_B];
    bool poison = test != FINI_MIL_FREQUENCY && positive == flipped;
    assert_true(in(c.of[FINI_MIL_BACKGROUND], LEAST, MOST));
    assert_int_equal(c.of[FINI_MIL_POISON], poison);
    if (test == FINI_MIL_SINGLE)
        assert_true(positive ? in(a + b, 1, K) : a + b == 0);
    else if (positive)
        assert_true(a == b && in(a, 1, test == FINI_MIL_CONCEPTS ? K : 1));
    else if (test == FINI_MIL_FREQUENCY && flipped)
        assert_true(in(a + b, LEAST_REPEATS, MOST_REPEATS) && (a == 0 || b == 0));
    else
        assert_int_equal(a + b, 1);
}

static void law__tokens_of_every_bag(void **state)
{
    (void)state;
    for (int test = 0; test < 3; test++) {
        fini_mil_law law = law_of(test);
        int64_t longest = 0;
        for (int flipped = 0; flipped < 2; flipped++) {
            fini_mil_bags room = drawn(&law, 0, flipped);
            int64_t seen_a = 0, seen_b = 0, least = MOST, most = 0;
            assert_int_equal(room.bags.n, BAGS);
            assert_int_equal(room.bags.d, D);
            for (int64_t i = 0; i < BAGS; i++) {
                counts c = count(&room, i);
                int64_t L = room.offsets[i + 1] - room.offsets[i], bg = c.of[FINI_MIL_BACKGROUND];
                assert_true(room.labels[i] == (double)(i % 2));
                expect_counts(test, i % 2, flipped, c);
                longest = L > longest ? L : longest;
                least = bg < least ? bg : least;
                most = bg > most ? bg : most;
                seen_a += c.of[FINI_MIL_A] > c.of[FINI_MIL_B];
                seen_b += c.of[FINI_MIL_B] > c.of[FINI_MIL_A];
            }
            assert_true(least == LEAST && most == MOST);
            double z = (double)(seen_a - seen_b) / sqrt((double)(seen_a + seen_b));
            print_message("test %d, flipped %d: more of A than of B: z = %.2f\n", test, flipped, z);
            assert_true(seen_a + seen_b > BAGS / 4 && fabs(z) < 5);
            fini_mil_close(&room);
        }
        assert_int_equal(longest, fini_mil_longest(&law));
    }
}

/* ---- where tokens are -------------------------------------------------------------------------- */

static void law__means_and_deviations(void **state)
{
    (void)state;
    static const double mean[3][4] = {{0, 0, 1, -10}, {0, 2, 3, -10}, {0, 2, 3, -10}};
    static const double deviation[3][4] = {{1, 3, 1, 0.1}, {1, 0.1, 0.1, 0.1}, {1, 0.1, 0.1, 0.1}};
    for (int test = 0; test < 3; test++) {
        fini_mil_law law = law_of(test);
        fini_mil_bags room = drawn(&law, 0, false);
        for (int what = 0; what < 4; what++) {
            double n = 0, sum = 0, squares = 0;
            for (int64_t l = 0; l < room.offsets[BAGS]; l++)
                for (int64_t j = 0; j < D && room.what[l] == what; j++) {
                    double x = (room.tokens[l * D + j] - mean[test][what]) / deviation[test][what];
                    n++;
                    sum += x;
                    squares += x * x;
                }
            assert_true((n > 0) == (test != FINI_MIL_FREQUENCY || what != FINI_MIL_POISON));
            if (n == 0)
                continue;
            double z = sum / sqrt(n), z_square = (squares - n) / sqrt(2 * n);
            print_message("test %d, token %d: z = %.2f, %.2f\n", test, what, z, z_square);
            assert_true(fabs(z) < 5 && fabs(z_square) < 5);
        }
        fini_mil_close(&room);
    }
}

/* A bag has its tokens in both laws, but for what is flipped; any part of the bags can be drawn. */
static void law__the_same_bags_flipped(void **state)
{
    (void)state;
    for (int test = 0; test < 3; test++) {
        fini_mil_law law = law_of(test);
        fini_mil_bags room = drawn(&law, 0, false), other = drawn(&law, 0, true);
        fini_mil_bags later = drawn(&law, 10, false);
        for (int64_t i = 0; i < BAGS; i++) {
            int64_t L = room.offsets[i + 1] - room.offsets[i];
            int64_t M = other.offsets[i + 1] - other.offsets[i], common = L < M ? L : M;
            const double *x = room.tokens + room.offsets[i] * D;
            if (test == FINI_MIL_FREQUENCY)
                assert_true(i % 2 ? L == M : M - L >= LEAST_REPEATS - 1);
            else
                assert_int_equal(M - L, i % 2 ? 1 : -1);
            assert_memory_equal(x, other.tokens + other.offsets[i] * D,
                                (size_t)(common * D) * sizeof *x);
            if (i >= 10)
                assert_memory_equal(x, later.tokens + later.offsets[i - 10] * D,
                                    (size_t)(L * D) * sizeof *x);
        }
        fini_mil_close(&room);
        fini_mil_close(&other);
        fini_mil_close(&later);
    }
}

/* ---- deciding tokens that are known --------------------------------------------------------------- */

/* Each bag has as many as it should, which say its class; the others say either. */
static void known__tokens_of_every_bag(void **state)
{
    (void)state;
    for (int test = FINI_MIL_LINEAR; test <= FINI_MIL_THREE; test++) {
        fini_mil_law law = law_of(test);
        fini_mil_bags room = drawn(&law, 0, false);
        double says = 0, others = 0, key = 0, square = 0, deciding = 0;
        for (int64_t i = 0; i < BAGS; i++) {
            int64_t decide = 0;
            for (int64_t l = room.offsets[i]; l < room.offsets[i + 1]; l++) {
                const double *x = room.tokens + l * D;
                bool one = room.what[l] & FINI_MIL_SAYS_ONE;
                if (!(room.what[l] & FINI_MIL_DECIDES)) {
                    says += one;
                    others++;
                    continue;
                }
                assert_true(one == (room.labels[i] > 0));
                double place = test == FINI_MIL_SIDES && room.what[l] & FINI_MIL_LEFT ? -3 : 3;
                double z = test == FINI_MIL_BALL ? x[1] / 0.2 : x[1] - place;
                key += z;
                square += z * z;
                decide++;
            }
            assert_int_equal(decide, fini_mil_deciding(&law));
            assert_int_equal(decide, test == FINI_MIL_THREE ? 3 : 1);
            deciding += (double)decide;
        }
        double z[] = {(says - others / 2) / sqrt(others / 4), key / sqrt(deciding),
                      (square - deciding) / sqrt(2 * deciding)};
        print_message("test %d: z = %.2f, %.2f, %.2f\n", test, z[0], z[1], z[2]);
        for (int k = 0; k < 3; k++)
            assert_true(fabs(z[k]) < 5);
        fini_mil_close(&room);
    }
}

/* Densities of a token as they are written down, all sets of three places counted. */
static double ratio(int test, const double *x, double label)
{
    double r = exp(3 * x[1] - 4.5), s = label > 0 ? 1.5 : -1.5;
    if (test == FINI_MIL_SIDES)
        r = 0.5 * (exp(3 * x[1] - 4.5) + exp(-3 * x[1] - 4.5));
    for (int j = 1; j < 4 && test == FINI_MIL_BALL; j++)
        r = (j > 1 ? r : 1) * exp(-0.5 * x[j] * x[j] * (25 - 1)) / 0.2;
    if (isnan(label))
        return r;
    double same = exp(-0.5 * (x[0] - s) * (x[0] - s)), other = exp(-0.5 * (x[0] + s) * (x[0] + s));
    return r * same / (0.5 * (same + other));
}

static void known__probabilities_by_all_places(void **state)
{
    (void)state;
    for (int test = FINI_MIL_LINEAR; test <= FINI_MIL_THREE; test++) {
        fini_mil_law law = law_of(test);
        fini_mil_bags room = drawn(&law, 0, false);
        int64_t N = room.offsets[BAGS], k = fini_mil_deciding(&law);
        double *p = malloc((size_t)N * 3 * sizeof *p), worst = 0;
        fini_mil_best(&law, &room, p + 2 * N, p, p + N);
        for (int64_t i = 0; i < BAGS; i++)
            for (int known = 0; known < 2; known++) {
                double r[MOST + 3], expected[MOST + 3] = {0}, all = 0;
                int64_t from = room.offsets[i], L = room.offsets[i + 1] - from;
                for (int64_t l = 0; l < L; l++)
                    r[l] = ratio(test, room.tokens + (from + l) * D, known ? room.labels[i] : NAN);
                for (int64_t set = 0; set < (INT64_C(1) << L); set++) {
                    double product = 1;
                    int64_t size = 0;
                    for (int64_t l = 0; l < L; l++)
                        if (set >> l & 1) {
                            product *= r[l];
                            size++;
                        }
                    for (int64_t l = 0; l < L && size == k; l++)
                        expected[l] += set >> l & 1 ? product : 0;
                    all += size == k ? product : 0;
                }
                for (int64_t l = 0; l < L; l++)
                    worst = fmax(worst, fabs(expected[l] / all - p[known * N + from + l]));
            }
        print_message("test %d: %.1e apart at most\n", test, worst);
        assert_true(worst < 1e-12);
        free(p);
        fini_mil_close(&room);
    }
}

/* Phi(3 / sqrt 2) of the pairs are in the right order by x_1 alone; nobody finds more than who knows the law. */
static void known__who_finds_them(void **state)
{
    (void)state;
    fin_result *r =
        run("mil test=linear model=mixture basis=linear d=4 least=9 bags=150 judged=500 "
            "trials=4 locator=no calibrate=no");
    fin_scalar best = scalar(r, "best_weight_auc"), given = scalar(r, "best_probability_first");
    double z = (best.value - 0.98305) / best.error;
    print_message("AUC of the true probabilities: z = %.2f\n", z);
    assert_true(fabs(z) < 5);
    assert_true(scalar(r, "probability_first").value > 0.8);
    assert_true(scalar(r, "probability_first").value < given.value + 5 * given.error);
    assert_true(scalar(r, "best_weight_ece").value < 0.015);
    assert_false(has(r, "auc_test", &best)); /* there is nothing to flip */
    fin_result_destroy(r);
    r = run("mil test=three model=mean d=4 bags=20 judged=20 trials=2 calibrate=no locator=no");
    assert_true(has(r, "evidence_first", &best) && !has(r, "evidence_ece", &best));
    assert_false(has(r, "weight_first", &best)); /* a mean has no location */
    fin_result_destroy(r);
}

/* ---- numbers ----------------------------------------------------------------------------------- */

/* The noisy-or cannot lose by the poison nor win by repeats; pooling learns the poison. */
static void mil__what_must_be(void **state)
{
    (void)state;
    static const char *const poisoned[] = {
        "mil model=any basis=linear positive=1 bags=60 judged=200 trials=3",
        "mil test=concepts model=any basis=linear positive=1 bags=60 judged=200 trials=3"};
    for (int i = 0; i < 2; i++) {
        fin_result *r = run(poisoned[i]);
        assert_true(scalar(r, "least_gain").value >= -1e-4);
        assert_true(scalar(r, "auc_test").value > 0.8);
        assert_true(scalar(r, "passed").value == 1);
        fin_result_destroy(r);
    }
    fin_result *r = run("mil test=frequency model=any basis=linear positive=1 judged=200 trials=3");
    assert_true(scalar(r, "largest_gain").value <= 1e-4);
    fin_result_destroy(r);
    r = run("mil model=mean bags=60 judged=200 trials=3");
    assert_true(scalar(r, "auc_train").value > 0.9 && scalar(r, "auc_test").value < 0.5);
    assert_true(scalar(r, "passed").value == 0);
    fin_result_destroy(r);
}

static void mil__numbers_belong_together(void **state)
{
    (void)state;
    fin_result *r = run("mil test=frequency model=mean bags=40 judged=50 trials=4");
    double gain = scalar(r, "gain").value;
    assert_true(fabs(scalar(r, "auc_test").value - scalar(r, "auc_train").value - gain) < 1e-12);
    assert_true(scalar(r, "least_gain").value <= gain && scalar(r, "largest_gain").value >= gain);
    assert_true(scalar(r, "gain").error > 0 && scalar(r, "gain").samples == 4);
    assert_int_equal(scalar(r, "passed").how, FIN_HOW_SHARE);
    fin_result_destroy(r);
}

/* ---- what every command must do -------------------------------------------------------------------- */

static const char *const small[] = {
    "mil model=mean bags=20 judged=20 d=2 trials=2 calibrate=no",
    "mil test=sides model=softmax basis=linear bags=20 judged=20 d=4 trials=2 calibrate=no",
    "mil test=concepts model=any basis=linear positive=1 bags=20 judged=20 d=2 trials=2 "
    "calibrate=no",
    "mil test=frequency model=softmax basis=linear bags=20 judged=20 d=2 trials=2 calibrate=no",
};

static void mil__outputs(void **state)
{
    (void)state;
    expect_outputs("mil", small, 2);
}

static void mil__same_bytes_for_any_threads(void **state)
{
    (void)state;
    expect_same_bytes_for_any_threads(small, 4);
}

static void mil__can_be_cancelled(void **state)
{
    (void)state;
    expect_cancelled(small, 1);
}

static void mil__every_allocation_may_fail(void **state)
{
    (void)state;
    expect_every_allocation_may_fail(small, 2);
}

static void settings__that_do_not_fit(void **state)
{
    (void)state;
    expect_refused("mil test=double", "test");
    expect_refused("mil test=ball d=3", "at least 4");
    expect_refused("mil model=sofmax", "softmax");
    expect_refused("mil least=10", "least = 10, most = 9");
    expect_refused("mil least_repeats=50", "least_repeats = 50, most_repeats = 44");
    expect_refused("mil d=4096 judged=1000000", "more than 5e8");
    expect_refused("mil test=frequency most_repeats=10000 judged=10000", "more than 5e8");
    expect_refused("mil trials=1", "trials");
    expect_refused("mil bags=9", "bags");
    expect_refused("mil judged=9", "judged");
    expect_refused("mil k=0", "k");
    expect_refused("mil least=0", "least");
    expect_refused("mil positive=2", "positive");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(law__tokens_of_every_bag),
        cmocka_unit_test(law__means_and_deviations),
        cmocka_unit_test(law__the_same_bags_flipped),
        cmocka_unit_test(known__tokens_of_every_bag),
        cmocka_unit_test(known__probabilities_by_all_places),
        cmocka_unit_test(known__who_finds_them),
        cmocka_unit_test(mil__what_must_be),
        cmocka_unit_test(mil__numbers_belong_together),
        cmocka_unit_test(mil__outputs),
        cmocka_unit_test(mil__same_bytes_for_any_threads),
        cmocka_unit_test(mil__can_be_cancelled),
        cmocka_unit_test(mil__every_allocation_may_fail),
        cmocka_unit_test(settings__that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
