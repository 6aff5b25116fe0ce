/* Folds: balanced over all and within classes or quantiles, a function of the seed, never empty. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "bags/judge.h"

#include <math.h>
#include <string.h>

enum { N = 103, REPEATS = 4 };
static fin_error err;

static void made(int64_t n, int64_t classes, const double *y, int repeats, int folds, int64_t seed,
                 int32_t *fold)
{
    if (fin_folds_make(n, classes, y, NULL, repeats, folds, seed, fold, &err))
        fail_msg("%s", err.message);
}

/* Sizes of folds among the bags with lo <= y <= hi differ by `slack` at most. */
static void balanced(const double *y, double lo, double hi, int folds, const int32_t *fold,
                     int slack)
{
    int count[N] = {0}, least = N, most = 0;
    for (int i = 0; i < N; i++) {
        assert_in_range(fold[i], 0, folds - 1);
        count[fold[i]] += y[i] >= lo && y[i] <= hi;
    }
    for (int f = 0; f < folds; f++) {
        least = count[f] < least ? count[f] : least;
        most = count[f] > most ? count[f] : most;
    }
    if (most - least > slack)
        fail_msg("%d folds: between %d and %d bags in one", folds, least, most);
}

static void classes_of(double *y)
{
    for (int i = 0; i < N; i++)
        y[i] = i * 37 % 101 < 60 ? 0 : i * 37 % 101 < 90 ? 1 : 2; /* about 6 : 3 : 1 */
}

static void folds__balance_classes(void **state)
{
    (void)state;
    double y[N];
    int32_t fold[REPEATS * N];
    classes_of(y);
    for (int folds = 2; folds <= N; folds += folds < 12 ? 1 : 13) {
        made(N, 3, y, REPEATS, folds, 5, fold);
        for (int r = 0; r < REPEATS; r++) {
            balanced(y, 0, 2, folds, fold + r * N, 1);
            for (int c = 0; c < 3; c++)
                balanced(y, c, c, folds, fold + r * N, 1);
        }
    }
}

/* Below any quantile, a fold has its share up to one bag of the group in which the quantile
 * lies. */
static void folds__balance_quantiles(void **state)
{
    (void)state;
    double y[N];
    int32_t fold[REPEATS * N];
    for (int i = 0; i < N; i++)
        y[i] = exp(sin(i * 12.9898) * 4);
    for (int folds = 2; folds <= N; folds += folds < 12 ? 1 : 13) {
        made(N, 0, y, REPEATS, folds, 5, fold);
        for (int r = 0; r < REPEATS; r++) {
            balanced(y, 0, INFINITY, folds, fold + r * N, 1);
            for (int i = 0; i < N; i += 9)
                balanced(y, 0, y[i], folds, fold + r * N, 1);
        }
    }
}

static void folds__depend_on_seed_and_repeat_alone(void **state)
{
    (void)state;
    double y[N];
    int32_t a[REPEATS * N], b[REPEATS * N];
    classes_of(y);
    for (int classes = 0; classes <= 3; classes += 3) {
        made(N, classes, y, REPEATS, 10, 7, a);
        made(N, classes, y, REPEATS, 10, 7, b);
        assert_memory_equal(a, b, sizeof a);
        made(N, classes, y, 2, 10, 7, b); /* fewer repeats are the first ones */
        assert_memory_equal(a, b, 2 * N * sizeof *a);
        made(N, classes, y, REPEATS, 10, 8, b);
        assert_memory_not_equal(a, b, sizeof a);
        for (int r = 1; r < REPEATS; r++)
            assert_memory_not_equal(a, a + r * N, N * sizeof *a);
    }
}

/* Bags fall into fold 0 equally often wherever they stand in the line: 400 repeats, binomial. */
static void folds__are_random(void **state)
{
    (void)state;
    enum { TIMES = 400 };
    static int32_t fold[TIMES * N];
    double y[N], worst = 0, together = 0, small = 0;
    for (int classes = 0; classes <= 3; classes += 3) {
        classes_of(y);
        for (int i = 0; i < N && !classes; i++)
            y[i] = sin(i * 12.9898); /* all different: nothing is random but the dealing */
        made(N, classes, y, TIMES, 4, 11, fold);
        for (int r = 0; r < TIMES; r++) { /* 103 bags: one of four folds has 25, the others 26 */
            int count = 0;
            for (int i = 0; i < N; i++)
                count += fold[r * N + i] == 0;
            small += count == 25;
        }
        for (int i = 0; i < N; i++) {
            int count = 0;
            for (int r = 0; r < TIMES; r++)
                count += fold[r * N + i] == 0;
            worst = fmax(worst, fabs(count - TIMES / 4.0) / sqrt(TIMES * 3 / 16.0));
        }
        for (int r = 0; r < TIMES; r++)
            together += fold[r * N] == fold[r * N + 1];
    }
    print_message("largest |z| of 206: %.2f\n", worst);
    assert_true(worst < 5);
    double z = (small - 2 * TIMES / 4.0) / sqrt(2 * TIMES * 3 / 16.0);
    print_message("fold 0 is the small one: z = %.2f\n", z);
    assert_true(fabs(z) < 5);
    /* Two bags are in one fold a little less often than a quarter of the time, and not never. */
    assert_true(together > 0.1 * 2 * TIMES && together < 0.4 * 2 * TIMES);
}

static void folds__of_some_bags(void **state)
{
    (void)state;
    double y[N];
    unsigned char use[N];
    int32_t fold[N];
    classes_of(y);
    for (int i = 0; i < N; i++)
        use[i] = i % 3 != 0;
    y[0] = NAN; /* not looked at */
    y[4] = 3;   /* alone in its class: always in the training set */
    fini_dealt dealt = {N, 4, y, NULL, use, true};
    assert_int_equal(fini_folds_make(&dealt, 1, 5, 1, fold, &err), FIN_OK);
    for (int i = 0; i < N; i++)
        assert_true(i % 3 == 0 || i == 4 ? fold[i] == -1 : fold[i] >= 0 && fold[i] < 5);
}

static void refused(int64_t n, int64_t classes, const double *y, int repeats, int folds,
                    const char *word)
{
    int32_t fold[REPEATS * N];
    fin_error e = {FIN_OK, ""};
    assert_int_equal(fin_folds_make(n, classes, y, NULL, repeats, folds, 1, fold, &e),
                     FIN_ERR_ARGUMENT);
    if (!strstr(e.message, word))
        fail_msg("'%s' is not in: %s", word, e.message);
}

static void folds__refuse(void **state)
{
    (void)state;
    double y[N];
    classes_of(y);
    refused(0, 3, y, 1, 2, "0 bags");
    refused(N, 1, y, 1, 2, "1 classes");
    refused(N, 3, y, 0, 2, "0 times");
    refused(N, 3, y, 1, 1, "1 folds");
    refused(N, 3, y, 1, N + 1, "at most 103 folds");
    refused(N, 2, y, 1, 5, "label 2");
    y[17] = NAN;
    refused(N, 3, y, 1, 5, "bag 17");
    refused(N, 0, y, 1, 5, "bag 17");
    y[17] = 3;
    refused(N, 4, y, 1, 5, "single bag");
}

static fin_status make_once(void *user, fin_error *e)
{
    double y[N];
    int32_t fold[REPEATS * N];
    (void)user;
    classes_of(y);
    return fin_folds_make(N, 3, y, NULL, REPEATS, 10, 1, fold, e);
}

static void folds__without_memory(void **state)
{
    (void)state;
    assert_int_equal(fault_every(make_once, NULL), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folds__balance_classes),
        cmocka_unit_test(folds__balance_quantiles),
        cmocka_unit_test(folds__depend_on_seed_and_repeat_alone),
        cmocka_unit_test(folds__are_random),
        cmocka_unit_test(folds__of_some_bags),
        cmocka_unit_test(folds__refuse),
        cmocka_unit_test(folds__without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
