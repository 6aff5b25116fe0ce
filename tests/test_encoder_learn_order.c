/* What a step learns from and how fast: rates, orders and lengths, functions of the step alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_encoder_learn_help.h"

/* python3 -c "
 * import math
 * def rate(s, S=100, w=10, r=0.003, f=0.1):
 *     return r*(s+1)/w if s < w else r*(f+(1-f)*0.5*(1+math.cos(math.pi*(s-w)/(S-w))))
 * print([repr(rate(s)) for s in (0, 4, 9, 10, 40, 55, 99)])"  */
static void rate__matches_formula(void **state)
{
    (void)state;
    static const int64_t steps[] = {0, 4, 9, 10, 40, 55, 99};
    static const double known[] = {
        0.00030000000000000003, 0.0015, 0.003, 0.003, 0.0023250000000000002, 0.0016500000000000002,
        0.00030082238352422075};
    fin_learn learn = {
        .settings = {.steps = 100, .rate = 0.003, .final_rate = 0.1}, .warmup = 10, .every = 1};
    for (int i = 0; i < 7; i++) {
        double rate = fini_learn_rate(&learn, steps[i]);
        assert_true(fabs(rate - known[i]) < 1e-15);
    }
    assert_true(fini_learn_rate(&learn, 100) == 0.003 * 0.1);
    learn.warmup = 0;
    assert_true(fini_learn_rate(&learn, 0) == 0.003);
    learn.warmup = 1000; /* it never gets there */
    assert_true(fabs(fini_learn_rate(&learn, 99) - 0.0003) < 1e-15);
}

static void order__is_a_permutation(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {1, 2, 3, 4, 5, 7, 16, 17, 100, 1009};
    static unsigned char seen[1009];
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        for (uint64_t epoch = 0; epoch < 5; epoch++) {
            memset(seen, 0, sizeof seen);
            for (uint64_t p = 0; p < sizes[k]; p++) {
                uint64_t i = fini_learn_order(sizes[k], 1, epoch, p);
                assert_true(i < sizes[k]);
                assert_false(seen[i]);
                seen[i] = 1;
            }
        }
    uint64_t large = UINT64_C(1) << 40;
    for (uint64_t p = 0; p < 100; p++)
        assert_true(fini_learn_order(large, 1, large, large - 1 - p) < large);
}

/* Every number stands at every place equally often, and neighbours are not followed by their
 * neighbours: n = 6 over many epochs, chi-square with 25 degrees of freedom. */
static void order__is_uniform(void **state)
{
    (void)state;
    enum { N = 6, EPOCHS = 6000 };
    double at[N][N] = {{0}}, pairs = 0, chi = 0, expected = (double)EPOCHS / N;
    for (uint64_t e = 0; e < EPOCHS; e++) {
        uint64_t last = N;
        for (uint64_t p = 0; p < N; p++) {
            uint64_t i = fini_learn_order(N, 9, e, p);
            at[p][i]++;
            pairs += i == last + 1;
            last = i;
        }
    }
    for (int p = 0; p < N; p++)
        for (int i = 0; i < N; i++)
            chi += (at[p][i] - expected) * (at[p][i] - expected) / expected;
    double z = (chi - 25) / sqrt(2 * 25.0);
    /* of N (N - 1) ordered pairs that can stand side by side, N - 1 are successors */
    double mean = EPOCHS * (double)(N - 1) / N, zp = (pairs - mean) / sqrt(mean);
    print_message("order: z = %.2f, successors: z = %.2f\n", z, zp);
    assert_true(fabs(z) < 5);
    assert_true(fabs(zp) < 5);
}

static void order__depends_on_seed_and_epoch(void **state)
{
    (void)state;
    int same_seed = 0, same_epoch = 0;
    for (uint64_t p = 0; p < 1000; p++) {
        same_seed += fini_learn_order(1000, 1, 0, p) == fini_learn_order(1000, 2, 0, p);
        same_epoch += fini_learn_order(1000, 1, 0, p) == fini_learn_order(1000, 1, 1, p);
    }
    assert_true(same_seed < 10);
    assert_true(same_epoch < 10);
}

/* P(L = l) = log((l + 1) / l) / log((most + 1) / least), from 0 on with l + 1 for l. */
static void length__is_log_uniform(void **state)
{
    (void)state;
    enum { DRAWS = 20000, MOST = 16 };
    for (int64_t least = 0; least <= 2; least++) {
        help_case c = help_defaults("concept");
        c.corpus_set.L = MOST;
        c.corpus_set.L_least = least;
        help_open(&c);
        double count[MOST + 1] = {0}, chi = 0;
        for (int64_t b = 0; b < DRAWS; b++) {
            int64_t L = fini_learn_length(c.learn, b);
            assert_in_range(L, least, MOST);
            count[L]++;
        }
        double more = least == 0, whole = log((MOST + 1 + more) / ((double)least + more));
        for (int64_t l = least; l <= MOST; l++) {
            double p = log(((double)l + 1 + more) / ((double)l + more)) / whole;
            chi += (count[l] - p * DRAWS) * (count[l] - p * DRAWS) / (p * DRAWS);
        }
        double freedom = (double)(MOST - least), z = (chi - freedom) / sqrt(2 * freedom);
        print_message("lengths from %lld: z = %.2f\n", (long long)least, z);
        assert_true(fabs(z) < 5);
        for (int64_t b = 0; b < 5; b++) { /* and the batches have these lengths */
            help_run(&c, b + 1);
            int64_t tokens = fini_learn_length(c.learn, b) + c.corpus_set.M;
            assert_int_equal(c.learn->examples.tokens, c.learn_set.batch * tokens);
        }
        help_close(&c);
    }
    help_case c = help_defaults("concept");
    help_open(&c);
    assert_int_equal(fini_learn_length(c.learn, 3), -1);
    help_close(&c);
}

/* Steps that go through the same four sequences hide other tokens of them. */
static void hiding__is_drawn_anew(void **state)
{
    (void)state;
    enum { N = 4, L = 24 };
    static float x[N * L * 2];
    int64_t at[N + 1];
    uint8_t hidden[2][N * L];
    for (int i = 0; i < N * L * 2; i++)
        x[i] = (float)(i * 7 % 31) / 8;
    for (int i = 0; i <= N; i++)
        at[i] = i * L;
    fin_memory memory = {.n = N, .inputs = 2, .values = 1, .offsets = at, .tokens = x};
    help_case c = help_defaults("concept");
    c.memory = &memory;
    help_open(&c);
    for (int step = 0; step < 2; step++) {
        help_run(&c, step + 1);
        assert_int_equal(c.learn->examples.sequences.n, N);
        for (int i = 0; i < N; i++)
            memcpy(hidden[step] + c.learn->order[i] * L, c.learn->examples.sequences.hidden + i * L,
                   L);
    }
    for (int i = 0; i < N; i++)
        assert_memory_not_equal(hidden[0] + i * L, hidden[1] + i * L, L);
    help_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rate__matches_formula),
        cmocka_unit_test(order__is_a_permutation),
        cmocka_unit_test(order__is_uniform),
        cmocka_unit_test(order__depends_on_seed_and_epoch),
        cmocka_unit_test(length__is_log_uniform),
        cmocka_unit_test(hiding__is_drawn_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
