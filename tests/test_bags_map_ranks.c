/* Maps do not depend on threads, on processes, or on what other bags they are asked about, to the
 * last bit; landmarks depend on the seed. Processes are threads here, with a sum of their own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_bags_map_help.h"

static help_bags h;
static double weights[HELP_N];

/* One token a bag, and enough columns for several threads. */
enum { WIDE_N = 64, WIDE_D = 1500 };
static int64_t wide_offsets[WIDE_N + 1];
static double wide_tokens[WIDE_N * WIDE_D];
static const fin_bags wide = {WIDE_N,  WIDE_D,      0,           WIDE_N, wide_offsets,
                              FIN_F64, wide_tokens, wide_tokens, NULL};

static int setup(void **state)
{
    (void)state;
    help_open(&h);
    for (int64_t i = 0; i <= WIDE_N; i++)
        wide_offsets[i] = i;
    for (int64_t t = 0; t < WIDE_N * WIDE_D; t++)
        wide_tokens[t] = help_number(t / WIDE_D, t % WIDE_D);
    for (int i = 0; i < HELP_N; i++)
        weights[i] = i % 5 ? 1 : 0;
    return 0;
}

/* What is compared: a map and its rows of all bags. */
typedef struct result {
    fini_map map;
    double *rows;
    int64_t count;
} result;

static const fin_bags *bags_of(const fin_bags *bags, fin_bags *small, int f32)
{
    *small = *bags;
    if (f32) {
        small->dtype = FIN_F32;
        small->tokens = h.floats;
    }
    return small;
}

static result make(const fin_fit_settings *settings, const fin_bags *train, const double *w,
                   fin_sum sum, const fin_bags *ask)
{
    result r = {.rows = NULL};
    fini_phi phi;
    fin_error err = {FIN_OK, ""};
    if (fini_map_fit(&r.map, settings, 2, train, w, sum, NULL, &err) ||
        fini_map_apply(&r.map, ask, &phi, NULL, &err))
        fail_msg("%s", err.message);
    r.rows = help_rows(&phi, r.map.p);
    r.count = (phi.bags.offsets[ask->n] - phi.bags.offsets[0]) * r.map.p;
    fini_phi_close(&phi);
    return r;
}

static void drop(result *r)
{
    fini_map_close(&r->map);
    free(r->rows);
}

static int same(const result *a, const result *b)
{
    size_t m = (size_t)a->map.m;
    return a->map.p == b->map.p && a->map.m == b->map.m && a->count == b->count &&
           !memcmp(a->map.center, b->map.center, 4 * (size_t)a->map.s * sizeof(double)) &&
           !memcmp(a->map.bandwidth, b->map.bandwidth, sizeof a->map.bandwidth) &&
           (!m || !memcmp(a->map.shift, b->map.shift, m * sizeof(double))) &&
           !memcmp(a->rows, b->rows, (size_t)a->count * sizeof(double));
}

/* Every model with every kind of features. */
static int settings_at(int i, fin_fit_settings *settings)
{
    static const int models[] = {FIN_MODEL_SOFTMAX, FIN_MODEL_EMBEDDING, FIN_MODEL_MEAN,
                                 FIN_MODEL_MAX};
    if (i >= 4 * 3 * 2)
        return 0;
    *settings = help_settings(models[i % 4], i / 4 % 3, i / 12, 33);
    return 1;
}

static void compare_threads(const fin_fit_settings *settings, const fin_bags *bags)
{
    fin_threads_set(1);
    result one = make(settings, bags, weights, NULL, bags);
    fin_threads_set(3);
    result many = make(settings, bags, weights, NULL, bags);
    fin_threads_set(0);
    assert_true(same(&one, &many));
    drop(&one);
    drop(&many);
}

static void map__same_bits_for_any_threads(void **state)
{
    (void)state;
    fin_fit_settings settings;
    for (int i = 0; settings_at(i, &settings); i++) {
        fin_bags own;
        bags_of(&h.bags, &own, i % 2);
        compare_threads(&settings, &own);
        if (i < 4) /* all models */
            compare_threads(&settings, &wide);
    }
}

/* ---- processes ------------------------------------------------------------------------------- */

typedef struct process {
    int rank, ranks;
    const fin_fit_settings *settings;
    const fin_bags *all;
    result r;
} process;

static void *run(void *user)
{
    process *p = user;
    fin_bags own = help_share(p->all, p->rank, p->ranks);
    p->r = make(p->settings, &own, weights + own.first, help_sum, p->all);
    return NULL;
}

/* All processes, of one thread each, and one alone: the same. */
static void compare(const fin_fit_settings *settings, const fin_bags *bags, int ranks)
{
    process p[HELP_RANKS];
    pthread_t thread[HELP_RANKS];
    fin_threads_set(1);
    result alone = make(settings, bags, weights, NULL, bags);
    pthread_barrier_init(&help_barrier, NULL, (unsigned)ranks);
    for (int r = 0; r < ranks; r++) {
        p[r] = (process){r, ranks, settings, bags, {.rows = NULL}};
        pthread_create(&thread[r], NULL, run, &p[r]);
    }
    for (int r = 0; r < ranks; r++) {
        pthread_join(thread[r], NULL);
        assert_true(same(&alone, &p[r].r));
        drop(&p[r].r);
    }
    pthread_barrier_destroy(&help_barrier);
    fin_threads_set(0);
    drop(&alone);
}

static void map__same_bits_for_any_processes(void **state)
{
    (void)state;
    fin_fit_settings settings;
    for (int i = 0; settings_at(i, &settings); i++) {
        fin_bags own;
        bags_of(&h.bags, &own, i % 5 == 0);
        compare(&settings, &own, 2 + i % 3);
    }
}

/* Fewer bags than processes: some have none. With one bag, one process has everything. */
static void map__processes_without_bags(void **state)
{
    (void)state;
    fin_fit_settings settings = help_settings(FIN_MODEL_SOFTMAX, 2, 0, 33);
    fin_bags few = h.bags;
    weights[0] = 1;
    few.n = few.total = 3;
    compare(&settings, &few, HELP_RANKS);
    few.n = few.total = 1;
    few.offsets += 3; /* a bag of four tokens */
    few.tokens = h.tokens + h.offsets[3] * HELP_D;
    compare(&settings, &few, 2);
    weights[0] = 0;
}

/* Landmarks of so many columns that they are exchanged in several pieces, by three processes with
 * 22, 21 and 21 blocks. */
static void map__processes_with_wide_landmarks(void **state)
{
    (void)state;
    fin_fit_settings settings = help_settings(FIN_MODEL_SOFTMAX, 2, 0, 40);
    compare(&settings, &wide, 3);
}

/* The rows of a bag are the same when it is asked about alone. */
static void apply__bags_do_not_mix(void **state)
{
    (void)state;
    fin_fit_settings settings;
    fin_threads_set(1);
    for (int i = 0; settings_at(i, &settings); i++) {
        result all = make(&settings, &h.bags, weights, NULL, &h.bags);
        int64_t row = 0;
        for (int64_t b = 0; b < 25; b++) {
            fin_bags one = {
                1,    HELP_D, 0, 1, h.offsets + b, FIN_F64, h.tokens + h.offsets[b] * HELP_D,
                NULL, NULL};
            fini_phi phi;
            fin_error err = {FIN_OK, ""};
            assert_int_equal(fini_map_apply(&all.map, &one, &phi, NULL, &err), FIN_OK);
            int64_t rows = phi.bags.offsets[1] - phi.bags.offsets[0];
            double *alone = help_rows(&phi, all.map.p);
            assert_memory_equal(alone, all.rows + row * all.map.p,
                                (size_t)(rows * all.map.p) * sizeof *alone);
            row += rows;
            free(alone);
            fini_phi_close(&phi);
        }
        drop(&all);
    }
    fin_threads_set(0);
}

/* Another seed, other landmarks; a landmark that is there twice counts once. */
static void landmarks__follow_the_seed(void **state)
{
    (void)state;
    fini_map a, b;
    fin_error err = {FIN_OK, ""};
    fin_fit_settings settings = help_settings(FIN_MODEL_SOFTMAX, 1, 0, 10);
    assert_int_equal(fini_map_fit(&a, &settings, 2, &h.bags, NULL, NULL, NULL, &err), FIN_OK);
    settings.seed = 2;
    assert_int_equal(fini_map_fit(&b, &settings, 2, &h.bags, NULL, NULL, NULL, &err), FIN_OK);
    assert_int_equal(b.m, 10);
    assert_memory_not_equal(a.landmarks, b.landmarks, 10 * (HELP_D - 1) * sizeof(double));
    fini_map_close(&a);
    fini_map_close(&b);
    static help_bags twice;
    help_open(&twice);
    for (int64_t t = 0; t < h.offsets[HELP_N]; t++)
        for (int j = 0; j < HELP_D; j++)
            twice.tokens[t * HELP_D + j] = help_number(t % 9, j);
    settings.landmarks = 60;
    assert_int_equal(fini_map_fit(&a, &settings, 2, &twice.bags, NULL, NULL, NULL, &err), FIN_OK);
    assert_int_equal(a.m, 9);
    assert_true(a.bandwidth[0] > 0.1);
    fini_map_close(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(map__same_bits_for_any_threads),
        cmocka_unit_test(map__same_bits_for_any_processes),
        cmocka_unit_test(map__processes_without_bags),
        cmocka_unit_test(map__processes_with_wide_landmarks),
        cmocka_unit_test(apply__bags_do_not_mix),
        cmocka_unit_test(landmarks__follow_the_seed),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
