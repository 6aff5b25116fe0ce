/* The models `stack` and `auto`: what they consist of, that they look at training bags only, that
 * they are the same for any number of threads, and that random labels fool nobody. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_bags_validate_help.h"

#include <pthread.h>

static fin_fit *fitted(const toy *t, const fin_fit_settings *s, int64_t classes,
                       const double *weights)
{
    fin_fit *fit = NULL;
    OK(fin_fit_create(&fit, s, classes, &t->bags, weights, NULL, NULL, &err));
    return fit;
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* Single models, none twice; `any` for two classes alone, and from both sides. */
static void candidates__are_listed(void **state)
{
    (void)state;
    for (int64_t classes = 0; classes <= 3; classes += classes ? 1 : 2) {
        fin_fit_settings base = toy_settings(FIN_MODEL_AUTO), list[32], some[2];
        int count = fin_fit_candidates(&base, classes, list, 32), sides[2] = {0, 0}, bases = 0;
        assert_in_range(count, 3, 16);
        assert_int_equal(fin_fit_candidates(&base, classes, NULL, 0), count);
        assert_int_equal(fin_fit_candidates(&base, classes, some, 2), count);
        assert_true(fini_same(&some[1], &list[1]));
        for (int i = 0; i < count; i++) {
            OK(fin_settings_validate(&fin_fit_table, &list[i], &err));
            assert_true(list[i].model != FIN_MODEL_AUTO && list[i].model != FIN_MODEL_STACK);
            assert_int_equal(list[i].inner, base.inner);
            assert_int_equal(list[i].landmarks, base.landmarks);
            bases += list[i].model == FIN_MODEL_BASE;
            if (list[i].model == FIN_MODEL_ANY)
                sides[list[i].positive]++;
            for (int j = 0; j < i; j++)
                assert_false(fini_same(&list[i], &list[j]));
        }
        assert_int_equal(bases, 1);
        assert_int_equal(sides[0], classes == 2 ? 2 : 0); /* linear and both */
        assert_int_equal(sides[1], sides[0]);
        base.model = FIN_MODEL_STACK; /* the same: it is not a part of itself */
        assert_int_equal(fin_fit_candidates(&base, classes, list, 32), count);
        base.basis = FIN_BASIS_LINEAR; /* asked for: no others of those that see tokens */
        int linear = fin_fit_candidates(&base, classes, list, 32);
        assert_true(linear < count);
        for (int i = 0; i < linear; i++)
            assert_int_equal(list[i].basis, FIN_BASIS_LINEAR);
        base.basis = FIN_BASIS_AUTO;
        base.positive = 1; /* given: no other side */
        assert_int_equal(fin_fit_candidates(&base, classes, list, 32),
                         count - (classes == 2 ? 2 : 0));
        base.assume = 1;
        int monotone = fin_fit_candidates(&base, classes, list, 32);
        for (int i = 0; i < monotone; i++)
            assert_true(list[i].model == FIN_MODEL_ANY || list[i].model == FIN_MODEL_BASE);
    }
}

/* ---- what is in it --------------------------------------------------------------------------- */

/* The prediction is the weighted mean of the parts', each of which is the model fitted alone. */
static void stack__is_a_convex_combination(void **state)
{
    (void)state;
    enum { N = 60 };
    for (int64_t classes = 0; classes <= 3; classes += classes ? 1 : 2) {
        toy t;
        toy_draw(&t, N, classes, 0.5, 1);
        fin_fit_settings s = toy_settings(FIN_MODEL_STACK);
        s.calibrate = s.locator = 1; /* no */
        fin_fit *stack = fitted(&t, &s, classes, NULL);
        fin_fit_info info;
        double sum = 0, want[3 * N] = {0}, got[3 * N], part[3 * N], of_locations = 0;
        int64_t width = classes ? classes : 1;
        fin_fit_get_info(stack, &info);
        OK(fin_fit_predict(stack, &t.bags, got, NULL, NULL, &err));
        for (int64_t k = 0; k < info.parts; k++) {
            double weight = 0;
            const fin_fit_settings *of = fin_fit_part(stack, k, &weight);
            fin_fit_settings one = *of;
            one.calibrate = one.locator = 1;
            fin_fit *alone = fitted(&t, &one, classes, NULL);
            OK(fin_fit_predict(alone, &t.bags, part, NULL, NULL, &err));
            for (int64_t i = 0; i < N * width; i++)
                want[i] += weight * part[i];
            fin_fit_destroy(alone);
            assert_true(weight > 0);
            sum += weight;
            of_locations +=
                of->model == FIN_MODEL_SOFTMAX || of->model == FIN_MODEL_MIXTURE ? weight : 0;
        }
        for (int64_t i = 0; i < N * width; i++)
            assert_true(fabs(got[i] - want[i]) < 1e-12 * (1 + fabs(want[i])));
        assert_true(fabs(sum - 1) < 1e-14);
        print_message("%d classes: models with a location have %.2f of the weight\n", (int)classes,
                      of_locations);
        assert_true(of_locations > 0.5); /* one token decides here */
        fin_fit_destroy(stack);
    }
}

/* By hand: every candidate fitted without each fold, its predictions for that fold, the weights of the
 * best one and of the strong kinds that are not worse by more than two standard errors. */
static void stack__weights_come_from_bags_left_out(void **state)
{
    (void)state;
    enum { N = 60, FOLDS = 3, MOST = 16 };
    toy t;
    fin_fit_settings s = toy_settings(FIN_MODEL_STACK), list[MOST];
    int models = fin_fit_candidates(&s, 2, list, MOST), part = 0, kept, in[MOST];
    int32_t fold[N];
    double weights[N], p[2 * N], P[MOST * N], Q[MOST * N], w[MOST], sum = 0;
    unsigned char use[N];
    s.locator = 1; /* no */
    toy_draw(&t, N, 2, 0.5, 10);
    for (int i = 0; i < N; i++)
        use[i] = i % 5 != 0;
    assert_true(t.labels[1] == 0); /* the first bag in use: no classes change places */
    double order[N];
    OK(fini_bags_hash(&t.bags, NULL, true, NULL, order, &err));
    fini_dealt dealt = {N, 2, t.labels, NULL, use, true};
    OK(fini_folds_ordered(&dealt, order, FOLDS, s.seed, fold, &err));
    for (int k = 0; k < models * FOLDS; k++) {
        for (int i = 0; i < N; i++)
            weights[i] = use[i] && fold[i] != k % FOLDS;
        fin_fit_settings one = list[k / FOLDS];
        one.calibrate = one.locator = 1;
        fin_fit *fit = fitted(&t, &one, 2, weights);
        OK(fin_fit_predict(fit, &t.bags, p, NULL, NULL, &err));
        for (int i = 0; i < N; i++)
            if (fold[i] == k % FOLDS)
                P[k / FOLDS * N + i] = p[2 * i + (int)t.labels[i]];
        fin_fit_destroy(fit);
    }
    for (int i = 0; i < N; i++)
        weights[i] = use[i];
    for (int k = 0; k < models * N; k++)
        P[k] = use[k % N] ? P[k] : 0;
    kept = toy_stack(N, use, models, list, P, in);
    for (int k = 0; k < kept; k++)
        memcpy(Q + k * N, P + in[k] * N, N * sizeof *P);
    assert_in_range(kept, 2, models - 1); /* or the test says nothing */
    OK(fini_weights(kept, N, Q, NULL, weights, 10, w, &err));
    fin_fit *stack = fitted(&t, &s, 2, weights);
    double least = fmin(0.01, 0.5 / models);
    for (int m = 0; m < kept; m++) /* what has hardly any weight is left out */
        sum += w[m] < least ? 0 : w[m];
    for (int m = 0; m < kept; m++) {
        double weight = 0;
        if (w[m] < least)
            continue;
        const fin_fit_settings *of = fin_fit_part(stack, part++, &weight);
        assert_true(of->model == list[in[m]].model && of->basis == list[in[m]].basis);
        assert_true(fabs(weight - w[m] / sum) < 1e-12);
    }
    assert_null(fin_fit_part(stack, part, NULL));
    fin_fit_destroy(stack);
}

static void choose__same_bits_for_any_threads(void **state)
{
    (void)state;
    enum { N = 50 };
    for (int model = FIN_MODEL_AUTO; model <= FIN_MODEL_STACK;
         model += FIN_MODEL_STACK - FIN_MODEL_AUTO) {
        toy t;
        double first[2 * N], again[2 * N];
        toy_draw(&t, N, 2, 0.5, 2);
        fin_fit_settings s = toy_settings(model);
        for (int threads = 1; threads <= 4; threads += 3) {
            fin_threads_set(threads);
            fin_fit *fit = fitted(&t, &s, 2, NULL);
            OK(fin_fit_predict(fit, &t.bags, threads == 1 ? first : again, NULL, NULL, &err));
            if (threads > 1)
                assert_memory_equal(first, again, sizeof first);
            fin_fit_destroy(fit);
        }
        fin_threads_set(1);
    }
}

/* ---- several processes ----------------------------------------------------------------------- */

/* Processes are played by threads that meet at a board: every one writes its blocks on it, and all
 * of them add up the whole. */
enum { RANKS = 3, BOARD = 1 << 16 };
static double board[FIN_BAGS_BLOCKS * BOARD];
static pthread_barrier_t gate;
static _Thread_local int64_t first_block, block_count;

static fin_status sum_at_board(int64_t blocks, int64_t n, double *parts, double *sum, fin_error *e)
{
    assert_true(n <= BOARD);
    memcpy(board + first_block * n, parts, (size_t)(block_count * n) * sizeof *board);
    pthread_barrier_wait(&gate);
    double *copy = malloc((size_t)(blocks * n + 1) * sizeof *copy);
    memcpy(copy, board, (size_t)(blocks * n) * sizeof *copy);
    pthread_barrier_wait(&gate);
    fin_status status = fini_sum_alone(blocks, n, copy, sum, e);
    free(copy);
    return status;
}

typedef struct process {
    int rank;
    const toy *t;
    fin_fit_settings settings;
    int64_t classes;
    double got[2 * BAGS_MOST];
    fin_error error;
} process;

static void *run_process(void *user)
{
    process *p = user;
    fin_bags share = p->t->bags;
    fin_fit *fit = NULL;
    fin_bags_share(share.n, p->rank, RANKS, &share.first, &share.n);
    share.offsets += share.first;
    share.labels += share.first;
    share.tokens = p->t->tokens + p->t->offsets[share.first] * DIM;
    fini_bags_own(&share, &first_block, &block_count);
    fini_threads_limit(1);
    if (!fin_fit_create(&fit, &p->settings, p->classes, &share, NULL, sum_at_board, NULL,
                        &p->error))
        fin_fit_predict(fit, &p->t->bags, p->got, NULL, NULL, &p->error);
    fin_fit_destroy(fit);
    return NULL;
}

static void choose__same_bits_for_any_processes(void **state)
{
    (void)state;
    enum { N = 70 };
    for (int64_t classes = 0; classes <= 2; classes += 2) {
        toy t;
        static process p[RANKS];
        pthread_t thread[RANKS];
        double alone[2 * N];
        toy_draw(&t, N, classes, 0.5, 8);
        fin_fit_settings s = toy_settings(classes ? FIN_MODEL_AUTO : FIN_MODEL_STACK);
        s.iterations = 3;
        fin_fit *fit = fitted(&t, &s, classes, NULL);
        OK(fin_fit_predict(fit, &t.bags, alone, NULL, NULL, &err));
        fin_fit_destroy(fit);
        pthread_barrier_init(&gate, NULL, RANKS);
        for (int r = 0; r < RANKS; r++) {
            p[r] = (process){.rank = r, .t = &t, .settings = s, .classes = classes};
            assert_int_equal(pthread_create(&thread[r], NULL, run_process, &p[r]), 0);
        }
        for (int r = 0; r < RANKS; r++)
            pthread_join(thread[r], NULL);
        pthread_barrier_destroy(&gate);
        for (int r = 0; r < RANKS; r++) {
            assert_string_equal(p[r].error.message, "");
            assert_memory_equal(p[r].got, alone, (size_t)(classes ? 2 * N : N) * sizeof *alone);
        }
    }
}

/* ---- what it may look at --------------------------------------------------------------------- */

/* Tokens and labels of bags without weight may be anything: the same fit comes out, to the bit. */
static void choose__looks_at_training_bags_only(void **state)
{
    (void)state;
    enum { N = 40 };
    for (int k = 0; k < 2; k++) {
        int64_t classes = k % 2 ? 2 : 0;
        toy t, other, fresh;
        double weights[N], a[2 * N], b[2 * N];
        toy_draw(&t, N, classes, 0.5, 3);
        toy_draw(&fresh, N, classes, 0.5, 4);
        for (int i = 0; i < N; i++)
            weights[i] = i % 4 != 0;
        other = t;
        other.bags.offsets = other.offsets;
        other.bags.tokens = other.tokens;
        other.bags.labels = other.labels;
        for (int i = 0; i < N; i += 4) {
            other.labels[i] = classes ? 1 - t.labels[i] : 1e6;
            for (int64_t j = t.offsets[i] * DIM; j < t.offsets[i + 1] * DIM; j++)
                other.tokens[j] = 100 * t.tokens[j] - 7;
        }
        fin_fit_settings s = toy_settings(k ? FIN_MODEL_AUTO : FIN_MODEL_STACK);
        fin_fit *fit = fitted(&t, &s, classes, weights);
        OK(fin_fit_predict(fit, &fresh.bags, a, NULL, NULL, &err));
        fin_fit_destroy(fit);
        fit = fitted(&other, &s, classes, weights);
        OK(fin_fit_predict(fit, &fresh.bags, b, NULL, NULL, &err));
        fin_fit_destroy(fit);
        assert_memory_equal(a, b, (size_t)(classes ? 2 * N : N) * sizeof *a);
    }
}

/* Labels that have nothing to do with the tokens: whoever chooses by looking at the bags left out
 * is better than a coin on them. The bags of all sets are independent; within a set, accuracies of
 * folds are a little below 1/2, because a class that is rarer in training is more frequent here. */
static void choose__random_labels_are_not_predicted(void **state)
{
    (void)state;
    enum { N = 40, SETS = 4 };
    double right = 0, count = 0;
    for (int k = 0; k < SETS; k++) {
        toy t;
        int32_t fold[N];
        toy_draw(&t, N, 2, 0.5, 100 + (uint64_t)k);
        for (int i = 0; i < N; i++)
            t.labels[i] = i % 2;
        OK(fin_folds_make(N, 2, t.labels, NULL, 1, 4, k, fold, &err));
        fin_fit_settings s = toy_settings(FIN_MODEL_AUTO);
        fin_validation *v = NULL;
        OK(fin_validate(&v, 1, &s, 2, &t.bags, &(fin_folds){1, 4, fold}, NULL, &err));
        right += fin_validation_at(v, 0)->mean.accuracy * N;
        count += N;
        fin_validation_destroy(v);
    }
    double z = (right - count / 2) / sqrt(count / 4);
    print_message("accuracy %.3f, z = %.2f\n", right / count, z);
    assert_true(fabs(z) < 5);
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void choose__with_few_bags(void **state)
{
    (void)state;
    toy t;
    fin_fit *fit = NULL;
    fin_fit_settings s = toy_settings(FIN_MODEL_STACK);
    toy_draw(&t, 12, 2, 0.5, 5);
    for (int i = 0; i < 12; i++)
        t.labels[i] = i % 2;
    s.inner = 100; /* more folds than bags: one bag each */
    fin_fit_destroy(fitted(&t, &s, 2, NULL));
    for (int i = 1; i < 12; i++)
        t.labels[i] = i == 3 ? 0 : 1;
    t.labels[0] = 1; /* a class with a single bag, which stays in every training set */
    fin_fit_destroy(fitted(&t, &s, 2, NULL));
    const double one[] = {0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0};
    fin_error e = {FIN_OK, ""};
    fin_status status = fin_fit_create(&fit, &s, 2, &t.bags, one, NULL, NULL, &e);
    assert_int_equal(status, FIN_ERR_ARGUMENT);
    assert_true(e.message[0]);
    assert_null(fit);
}

static int stop_at_once(void *user, const char *what, double done, double total)
{
    (void)what, (void)done, (void)total;
    return ++*(int *)user > 3;
}

static void choose__can_be_cancelled(void **state)
{
    (void)state;
    toy t;
    int calls = 0;
    const fin_progress progress = {stop_at_once, &calls};
    fin_fit *fit = NULL;
    fin_fit_settings s = toy_settings(FIN_MODEL_AUTO);
    toy_draw(&t, 40, 2, 0.5, 6);
    assert_int_equal(fin_fit_create(&fit, &s, 2, &t.bags, NULL, NULL, &progress, &err),
                     FIN_ERR_CANCELLED);
    assert_null(fit);
}

static fin_status choose_once(void *user, fin_error *e)
{
    toy t;
    fin_fit *fit = NULL;
    static const int64_t groups[] = {5, 5, 1, 1, 3, 3, 9, 9};
    toy_draw(&t, 8, 2, 0.5, 7);
    for (int i = 0; i < 8; i++)
        t.labels[i] = i % 2;
    t.bags.groups = groups;
    fin_status status = fin_fit_create(&fit, user, 2, &t.bags, NULL, NULL, NULL, e);
    fin_fit_destroy(fit);
    return status;
}

static void choose__without_memory(void **state)
{
    (void)state;
    fin_fit_settings s = toy_settings(FIN_MODEL_AUTO);
    s.iterations = 1;
    s.inner = 2;
    s.landmarks = 2;
    s.basis = FIN_BASIS_RBF; /* fewer candidates */
    s.penalty = 0.1;
    fin_threads_set(1);
    print_message("%ld allocations\n", fault_every(choose_once, &s));
    fin_threads_set(1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(candidates__are_listed),
        cmocka_unit_test(stack__is_a_convex_combination),
        cmocka_unit_test(stack__weights_come_from_bags_left_out),
        cmocka_unit_test(choose__same_bits_for_any_threads),
        cmocka_unit_test(choose__same_bits_for_any_processes),
        cmocka_unit_test(choose__looks_at_training_bags_only),
        cmocka_unit_test(choose__random_labels_are_not_predicted),
        cmocka_unit_test(choose__with_few_bags),
        cmocka_unit_test(choose__can_be_cancelled),
        cmocka_unit_test(choose__without_memory),
    };
    fin_threads_set(1); /* what is small takes longer on several */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
