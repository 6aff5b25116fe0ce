/* Groups of bags: folds never split them, inside and outside; what is chosen is not fooled by what the
 * bags of a group share, and is never worse on inner folds than the base rate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_size.h"
#include "test_bags_validate_help.h"

enum { N = 120, REPEATS = 3, GROUPS = 30 };

/* Groups of 1 to 8 bags with numbers in no order, and classes 0 .. classes - 1 (or numbers). */
static int draw_groups(uint64_t seed, int64_t classes, double *y, int64_t *group)
{
    fin_random r;
    int count = 0;
    fin_random_open(&r, seed, FIN_STREAM_USER, 7);
    for (int i = 0; i < N; count++) {
        int size = 1 + (int)fin_random_below(&r, 8);
        double own = fin_random_normal(&r);
        for (int k = 0; k < size && i < N; k++, i++) {
            group[i] = (count * INT64_C(7919) + 13) % 1009; /* distinct for count < 1009 */
            y[i] = classes ? (double)fin_random_below(&r, classes) : own + fin_random_normal(&r);
        }
    }
    for (int i = N - 1; i > 0; i--) { /* bags of a group need not be neighbours */
        int j = (int)fin_random_below(&r, i + 1);
        int64_t g = group[i];
        double t = y[i];
        group[i] = group[j], group[j] = g;
        y[i] = y[j], y[j] = t;
    }
    return count;
}

static void unsplit(const int64_t *group, const int32_t *fold, int folds)
{
    int count[N] = {0};
    for (int i = 0; i < N; i++) {
        assert_in_range(fold[i], 0, folds - 1);
        count[fold[i]]++;
        for (int j = 0; j < i; j++)
            if (group[i] == group[j])
                assert_int_equal(fold[i], fold[j]);
    }
    for (int f = 0; f < folds; f++)
        assert_true(count[f] > 0);
}

/* Every group is whole, every fold has one; a class is nowhere more than a group away from its share:
 * a fold gets a group while it has the least of the group's classes. */
static void folds__keep_groups_together(void **state)
{
    (void)state;
    for (int k = 0; k < 12; k++) {
        double y[N];
        int64_t group[N], classes = k % 3 == 0 ? 0 : 1 + k % 3;
        int32_t fold[REPEATS * N];
        int groups = draw_groups((uint64_t)k, classes, y, group);
        for (int folds = 2; folds <= groups; folds += folds < 6 ? 1 : groups - 6) {
            OK(fin_folds_make(N, classes, y, group, REPEATS, folds, 5, fold, &err));
            for (int r = 0; r < REPEATS; r++)
                unsplit(group, fold + r * N, folds);
            if (folds < groups)
                assert_memory_not_equal(fold, fold + N, N * sizeof *fold);
        }
        assert_int_equal(fin_folds_make(N, classes, y, group, 1, groups + 1, 5, fold, &err),
                         FIN_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "groups"));
    }
}

/* Groups of one class each and of one size: shares are as even as they can be. With any sizes, the
 * largest fold has at most one group of a class more than the smallest. */
static void folds__have_their_share_of_classes(void **state)
{
    (void)state;
    enum { FOLDS = 5 };
    for (int sizes = 0; sizes < 2; sizes++)
        for (int seed = 0; seed < 10; seed++) {
            double y[N];
            int64_t group[N];
            int32_t fold[N];
            int most = 0;
            for (int i = 0, g = 0; i < N; g++) { /* thirty groups of four; or of one to seven */
                int size = sizes ? 1 + (g * 5 + seed) % 7 : 4;
                most = size > most ? size : most;
                for (int k = 0; k < size && i < N; k++, i++) {
                    group[i] = g;
                    y[i] = g % 3 == 0;
                }
            }
            OK(fin_folds_make(N, 2, y, group, 1, FOLDS, seed, fold, &err));
            for (int c = 0; c < 2; c++) {
                int count[FOLDS] = {0}, least = N, largest = 0;
                for (int i = 0; i < N; i++)
                    count[fold[i]] += y[i] == c;
                for (int f = 0; f < FOLDS; f++) {
                    least = count[f] < least ? count[f] : least;
                    largest = count[f] > largest ? count[f] : largest;
                }
                assert_true(largest - least <= (sizes ? most : 0));
            }
        }
}

/* What classes are called changes nothing, with groups and without. */
static void folds__do_not_see_names_of_classes(void **state)
{
    (void)state;
    static const int other[][3] = {{1, 0, 2}, {2, 1, 0}, {1, 2, 0}};
    for (int k = 0; k < 12; k++) {
        double y[N], z[N];
        int64_t group[N], renumbered[N];
        int32_t a[REPEATS * N], b[REPEATS * N];
        draw_groups((uint64_t)k, 3, y, group);
        for (int i = 0; i < N; i++) {
            z[i] = other[k % 3][(int)y[i]];
            renumbered[i] = 5000 - group[i]; /* nor those of groups */
        }
        OK(fin_folds_make(N, 3, y, k % 2 ? group : NULL, REPEATS, 4, k, a, &err));
        OK(fin_folds_make(N, 3, z, k % 2 ? renumbered : NULL, REPEATS, 4, k, b, &err));
        assert_memory_equal(a, b, sizeof a);
    }
}

/* Numbers: groups are dealt by their means, as bags are by their labels. */
static void folds__balance_means_of_groups(void **state)
{
    (void)state;
    enum { FOLDS = 5, SIZE = N / GROUPS };
    double y[N];
    int64_t group[N];
    int32_t fold[N];
    for (int i = 0; i < N; i++) {
        group[i] = i % GROUPS;
        y[i] = 10 * sin(group[i] * 12.9898) + i / GROUPS;
    }
    OK(fin_folds_make(N, 0, y, group, 1, FOLDS, 3, fold, &err));
    for (int q = 0; q < GROUPS;
         q++) { /* below any group's mean, folds have as many groups, but for one */
        int count[FOLDS] = {0}, least = N, most = 0;
        for (int g = 0; g < GROUPS; g++)
            count[fold[g]] += y[g] <= y[q];
        for (int f = 0; f < FOLDS; f++) {
            least = count[f] < least ? count[f] : least;
            most = count[f] > most ? count[f] : most;
        }
        assert_true(most - least <= 1);
    }
}

/* A class that one group has alone: refused, or its group is never left out. */
static void folds__of_a_class_in_one_group(void **state)
{
    (void)state;
    double y[N];
    int64_t group[N];
    int32_t fold[N];
    unsigned char use[N];
    for (int i = 0; i < N; i++) {
        group[i] = i / 4;
        y[i] = i % 2;
        use[i] = i % 5 != 0;
    }
    y[41] = y[42] = 2;
    assert_int_equal(fin_folds_make(N, 3, y, group, 1, 5, 1, fold, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "bag 40"));
    fini_dealt dealt = {N, 3, y, group, use, true};
    OK(fini_folds_make(&dealt, 1, 5, 1, fold, &err));
    for (int i = 0; i < N; i++)
        assert_true(i / 4 == 10 || i % 5 == 0 ? fold[i] == -1 : fold[i] >= 0 && fold[i] < 5);
    use[41] = use[42] = 0; /* the class is gone, and the group as good as any */
    dealt.lone = false;
    OK(fini_folds_make(&dealt, 1, 5, 1, fold, &err));
    assert_true(fold[43] >= 0 && fold[41] == -1 && fold[40] == -1);
}

static fin_status make_once(void *user, fin_error *e)
{
    double y[N];
    int64_t group[N];
    int32_t fold[REPEATS * N];
    (void)user;
    draw_groups(3, 3, y, group);
    return fin_folds_make(N, 3, y, group, REPEATS, 5, 1, fold, e);
}

static void folds__without_memory(void **state)
{
    (void)state;
    assert_in_range(fault_every(make_once, NULL), 5, 10);
}

/* ---- inner folds --------------------------------------------------------------------------------- */

enum { SIZE = 5, PATIENTS = 16, LEAK = SIZE * PATIENTS };

/* Bags of a patient share an offset in all columns, far from those of others, and a label that has
 * nothing to do with it. */
static void draw_leak(toy *t, int64_t *group, uint64_t seed)
{
    fin_random r;
    toy_draw(t, LEAK, 2, 0.5, seed);
    fin_random_open(&r, seed, FIN_STREAM_USER, 8);
    for (int p = 0; p < PATIENTS; p++) {
        double y = p % 2, offset[DIM];
        for (int j = 0; j < DIM; j++)
            offset[j] = 6 * fin_random_normal(&r);
        for (int i = p * SIZE; i < (p + 1) * SIZE; i++) {
            t->labels[i] = y;
            group[i] = 100 + p;
            for (int64_t k = t->offsets[i] * DIM; k < t->offsets[i + 1] * DIM; k++)
                t->tokens[k] += offset[k % DIM];
        }
    }
}

static double loss_on(const fin_fit *fit, const toy *t)
{
    double p[2 * LEAK], loss = 0;
    OK(fin_fit_predict(fit, &t->bags, p, NULL, NULL, &err));
    for (int i = 0; i < LEAK; i++)
        loss -= log(p[2 * i + (int)t->labels[i]]) / LEAK;
    return loss;
}

/* With groups nothing is learnt, and the log loss on new patients is that of a coin; without, inner folds
 * say that all is known, and a fit is sure of what it does not know. */
static void inner__folds_keep_groups_together(void **state)
{
    (void)state;
    const int64_t sets = sized(2, 4, 10);
    double with = 0, without = 0, inner = 0;
    for (int64_t k = 0; k < sets; k++) {
        toy t, fresh;
        int64_t group[LEAK];
        fin_fit_info info;
        fin_fit_settings s;
        fin_settings_defaults(&fin_fit_table, &s, sizeof s);
        s.model = FIN_MODEL_AUTO;
        s.landmarks = 20;
        draw_leak(&t, group, 60 + (uint64_t)k);
        draw_leak(&fresh, group, 160 + (uint64_t)k);
        for (int grouped = 0; grouped < 2; grouped++) {
            fin_fit *fit = NULL;
            t.bags.groups = grouped ? group : NULL;
            OK(fin_fit_create(&fit, &s, 2, &t.bags, NULL, NULL, NULL, &err));
            fin_fit_get_info(fit, &info);
            assert_true(info.inner_loss <= info.base_loss);
            *(grouped ? &with : &without) += loss_on(fit, &fresh) / (double)sets;
            inner += grouped ? 0 : info.inner_loss / (double)sets;
            if (grouped) /* 16 patients of two classes: far from what is learnt without */
                assert_true(info.inner_loss > 0.4);
            fin_fit_destroy(fit);
        }
    }
    print_message("log loss on new patients: %.3f with groups; without %.3f, and %.3f inside\n",
                  with, without, inner);
    assert_true(with <= 0.75);
    assert_true(inner < 0.4 && without > with); /* or the test says nothing */
}

/* Pure noise, few bags, rare classes, weights: auto is never worse on its inner folds than the base
 * rate, whose loss is what it is by hand. */
static void auto__is_not_worse_than_the_base_rate(void **state)
{
    (void)state;
    const int64_t sets = sized(6, 24, 60);
    int bases = 0;
    for (int64_t k = 0; k < sets; k++) {
        toy t;
        int64_t n = 8 + 7 * (k % 5), classes = k % 4 == 3 ? 0 : k % 4 == 2 ? 3 : 2;
        double weights[BAGS_MOST];
        fin_random r;
        fin_random_open(&r, 300 + (uint64_t)k, FIN_STREAM_USER, 9);
        toy_draw(&t, n, classes, 0.5, 200 + (uint64_t)k);
        for (int64_t i = 0; i < n; i++) {
            weights[i] = k % 3 ? 1 : 0.5 + fin_random_uniform(&r);
            if (k % 6 > 1) /* nothing to do with the tokens */
                t.labels[i] = !classes          ? fin_random_normal(&r)
                              : i < 2 * classes ? (double)(i % classes)
                                                : (double)(fin_random_uniform(&r) < 0.2 ? 1 : 0);
        }
        fin_fit_settings s = toy_settings(FIN_MODEL_AUTO);
        s.class_weights = k % 5 == 4;
        s.penalty = k % 2 ? 1e-3 : 0.1;
        fin_fit *fit = NULL;
        fin_fit_info info;
        OK(fin_fit_create(&fit, &s, classes, &t.bags, weights, NULL, NULL, &err));
        fin_fit_get_info(fit, &info);
        assert_true(isfinite(info.inner_loss) && isfinite(info.base_loss));
        assert_true(info.inner_loss <= info.base_loss);
        bases += info.inner_loss == info.base_loss;
        fin_fit_destroy(fit);
    }
    print_message("%d of %d sets: the base rate\n", bases, (int)sets);
    assert_true(bases > 0 && bases < sets); /* or the test says nothing */
}

/* ---- the base rate --------------------------------------------------------------------------------- */

static void base__is_shares_and_means(void **state)
{
    (void)state;
    enum { BAGS = 40 };
    for (int64_t classes = 0; classes <= 3; classes += classes ? 1 : 2) {
        toy t;
        double weights[BAGS], share[3] = {0}, sum = 0, p[3 * BAGS], sd[3 * BAGS];
        fin_fit *fit = NULL;
        fin_fit_info info;
        fin_fit_settings s;
        fin_settings_defaults(&fin_fit_table, &s, sizeof s);
        s.model = FIN_MODEL_BASE;
        s.locator = 1; /* no */
        toy_draw(&t, BAGS, classes, 0.5, 71);
        for (int i = 0; i < BAGS; i++) {
            weights[i] = i % 7 == 3 ? 0 : 1 + i % 3;
            sum += weights[i];
            share[classes ? (int)t.labels[i] : 0] += weights[i] * (classes ? 1 : t.labels[i]);
        }
        OK(fin_fit_create(&fit, &s, classes, &t.bags, weights, NULL, NULL, &err));
        fin_fit_get_info(fit, &info);
        assert_true(info.sharpness == 1 && info.positive == -1);
        OK(fin_fit_predict(fit, &t.bags, p, sd, NULL, &err));
        int64_t width = classes ? classes : 1;
        for (int64_t i = 0; i < BAGS * width; i++)
            if (!(fabs(p[i] - share[i % width] / sum) < 1e-7))
                fail_msg("%.17g, not %.17g", p[i], share[i % width] / sum);
        if (!classes) { /* a new label is as far off as those of the training bags */
            double squares = 0;
            for (int i = 0; i < BAGS; i++)
                squares += weights[i] * pow(t.labels[i] - share[0] / sum, 2) / sum;
            double n = 0;
            for (int i = 0; i < BAGS; i++)
                n += weights[i] > 0;
            double wanted = sqrt(squares * (n + 1) / (n - 1)); /* one number is fitted */
            assert_true(fabs(sd[0] - wanted) < 1e-6 * wanted);
        }
        fin_fit_destroy(fit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(folds__keep_groups_together),
        cmocka_unit_test(folds__have_their_share_of_classes),
        cmocka_unit_test(folds__do_not_see_names_of_classes),
        cmocka_unit_test(folds__balance_means_of_groups),
        cmocka_unit_test(folds__of_a_class_in_one_group),
        cmocka_unit_test(folds__without_memory),
        cmocka_unit_test(inner__folds_keep_groups_together),
        cmocka_unit_test(auto__is_not_worse_than_the_base_rate),
        cmocka_unit_test(base__is_shares_and_means),
    };
    fin_threads_set(1); /* what is small takes longer on several */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
