/* Known answers: Philox's own (Random123, kat_vectors), normals in 30-digit arithmetic
 * (tools/make_known_answers.py), and that cursor and arrays are views of the same numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/random.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct answer {
    uint32_t counter[4], key[2], words[4];
} answer;

static const answer answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
     {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
     {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static uint64_t join(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

static void open_at(fin_random *r, const answer *a)
{
    fin_random_open(r, join(a->key[0], a->key[1]), a->counter[1],
                    join(a->counter[2], a->counter[3]));
    r->block = a->counter[0]; /* private, but there is no other way to the last block of 2^32 */
}

static void word__known_answers_of_philox(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        fin_random r;
        open_at(&r, &answers[i]);
        for (int j = 0; j < 4; j++)
            assert_int_equal(fin_random_word(&r), answers[i].words[j]);
    }
}

/* Box-Muller on four words, by libm. */
static void box_muller(const uint32_t w[4], double out[2])
{
    double u = ((double)(join(w[0], w[1]) >> 12) + 0.5) * 0x1p-52;
    double turn = (double)(join(w[2], w[3]) >> 12) * 0x1p-52, angle = 2 * acos(-1.0) * turn;
    double radius = sqrt(-2 * log(u));
    out[0] = radius * cos(angle);
    out[1] = radius * sin(angle);
}

/* The same words seen through the array of normals: block b holds numbers 16 (b/8) + b%8 and + 8.
 */
static void normals__known_answers_of_philox(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        const answer *a = &answers[i];
        double want[2], got[2];
        box_muller(a->words, want);
        int64_t first = (int64_t)(a->counter[0] / 8) * 16 + a->counter[0] % 8;
        for (int j = 0; j < 2; j++) {
            fin_random_normals_f64(join(a->key[0], a->key[1]), a->counter[1],
                                   join(a->counter[2], a->counter[3]), first + 8 * j, 1, &got[j]);
            assert_true(fabs(got[j] - want[j]) < 4e-15); /* 2 pi t is rounded here, not there */
        }
    }
}

static void normals__match_30_digits(void **state)
{
    (void)state;
    FILE *file = fopen(FIN_TEST_DATA "/normals.csv", "r");
    assert_non_null(file);
    char line[256], type[8];
    double worst[2] = {0};
    int rows = 0;
    assert_non_null(fgets(line, sizeof line, file));
    for (; fgets(line, sizeof line, file); rows++) {
        uint64_t seed, sample;
        uint32_t stream;
        int64_t index;
        double want, got;
        assert_int_equal(sscanf(line, "%3s,%" SCNu64 ",%" SCNu32 ",%" SCNu64 ",%" SCNd64 ",%lf",
                                type, &seed, &stream, &sample, &index, &want),
                         6);
        int wide = strcmp(type, "f64") == 0;
        float narrow;
        if (wide)
            fin_random_normals_f64(seed, stream, sample, index, 1, &got);
        else {
            fin_random_normals_f32(seed, stream, sample, index, 1, &narrow);
            got = (double)narrow;
        }
        double error = fabs(got - want) / fabs(want);
        if (!(error < (wide ? 1e-15 : 3e-7)))
            fail_msg("%s: got %.17g, relative error %.2g", line, got, error);
        worst[wide] = fmax(worst[wide], error);
    }
    fclose(file);
    print_message("%d rows, worst relative error: float %.2g, double %.2g\n", rows, worst[0],
                  worst[1]);
    assert_true(rows > 500);
}

/* Any cut of [0, n) into pieces gives the same numbers, and a piece writes nothing else. */
static void normals__same_numbers_for_any_split(void **state)
{
    (void)state;
    enum { N = 700 };
    static float all_f[N], part_f[N + 2];
    static double all_d[N], part_d[N + 2];
    fin_random_normals_f32(9, 2000, 5, 0, N, all_f);
    fin_random_normals_f64(9, 2000, 5, 0, N, all_d);
    fin_random cuts;
    fin_random_open(&cuts, 1, 2001, 0);
    for (int trial = 0; trial < 2000; trial++) {
        int64_t first = fin_random_below(&cuts, N),
                n = fin_random_below(&cuts, trial % 2 ? N - first + 1 : 20);
        n = n < N - first ? n : N - first;
        for (int i = 0; i < N + 2; i++)
            part_d[i] = part_f[i] = 77;
        fin_random_normals_f32(9, 2000, 5, first, n, part_f + 1);
        fin_random_normals_f64(9, 2000, 5, first, n, part_d + 1);
        assert_memory_equal(part_f + 1, all_f + first, (size_t)n * sizeof *all_f);
        assert_memory_equal(part_d + 1, all_d + first, (size_t)n * sizeof *all_d);
        assert_true(part_f[0] == 77 && part_f[n + 1] == 77 && part_d[0] == 77 &&
                    part_d[n + 1] == 77);
    }
    double last[16], one; /* up to the very end of a sample */
    fin_random_normals_f64(9, 2000, 5, FIN_NORMALS_MAX - 16, 16, last);
    for (int i = 0; i < 16; i++) {
        fin_random_normals_f64(9, 2000, 5, FIN_NORMALS_MAX - 16 + i, 1, &one);
        assert_true(one == last[i]);
    }
}

/* Words, uniforms and normals of a cursor are those of the documented counters. */
static void cursor__is_a_view_of_the_streams(void **state)
{
    (void)state;
    enum { N = 512 };
    static double normals[N];
    fin_random words, uniforms, mixed;
    fin_random_open(&words, 77, 2000, 3);
    fin_random_open(&uniforms, 77, 2000, 3);
    fin_random_open(&mixed, 77, 2000, 3);
    fin_random_normals_f64(77, 2000u | 0x80000000u, 3, 0, N, normals);
    for (int i = 0; i < N; i++) {
        uint32_t low = fin_random_word(&words), high = fin_random_word(&words);
        double want = ((double)(join(low, high) >> 12) + 0.5) * 0x1p-52;
        assert_true(fin_random_uniform(&uniforms) == want);
        assert_true(fin_random_normal(&mixed) == normals[i]); /* whatever else is drawn between */
        if (i % 3 == 0)
            fin_random_word(&mixed);
    }
    /* Box-Muller on a cursor's words gives the arrays of the same stream. */
    double got[64], worst = 0;
    fin_random_open(&words, 78, 2000, UINT64_C(1) << 40);
    fin_random_normals_f64(78, 2000, UINT64_C(1) << 40, 0, 64, got);
    for (int b = 0; b < 32; b++) {
        uint32_t w[4];
        double want[2];
        for (int j = 0; j < 4; j++)
            w[j] = fin_random_word(&words);
        box_muller(w, want);
        for (int j = 0; j < 2; j++)
            worst = fmax(worst, fabs(got[16 * (b / 8) + b % 8 + 8 * j] - want[j]));
    }
    assert_true(worst < 4e-15);
}

/* How many words or normals are drawn does not shift the other; a copy goes on by itself. */
static void cursor__normals_and_words_are_apart(void **state)
{
    (void)state;
    fin_random plain, busy;
    fin_random_open(&plain, 5, 3000, 1);
    fin_random_open(&busy, 5, 3000, 1);
    for (int i = 0; i < 1000; i++) {
        for (int j = 0; j < i % 7; j++)
            fin_random_normal(&busy);
        assert_int_equal(fin_random_word(&plain), fin_random_word(&busy));
    }
    fin_random copy = busy;
    for (int i = 0; i < 100; i++) {
        assert_true(fin_random_normal(&copy) == fin_random_normal(&busy));
        assert_int_equal(fin_random_word(&copy), fin_random_word(&busy));
    }
    /* seed, stream and sample all count, in every bit that was tried */
    fin_random_open(&plain, 5, 3000, 1);
    uint32_t base = fin_random_word(&plain);
    for (int bit = 0; bit < 64; bit++) {
        fin_random other[3];
        fin_random_open(&other[0], 5 ^ UINT64_C(1) << bit, 3000, 1);
        fin_random_open(&other[1], 5, 3000u ^ 1u << bit % 32, 1);
        fin_random_open(&other[2], 5, 3000, 1 ^ UINT64_C(1) << bit);
        for (int j = 0; j < 3; j++)
            assert_int_not_equal(fin_random_word(&other[j]), base);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(word__known_answers_of_philox),
        cmocka_unit_test(normals__known_answers_of_philox),
        cmocka_unit_test(normals__match_30_digits),
        cmocka_unit_test(normals__same_numbers_for_any_split),
        cmocka_unit_test(cursor__is_a_view_of_the_streams),
        cmocka_unit_test(cursor__normals_and_words_are_apart),
    };
    return cmocka_run_group_tests_name("random_known", tests, NULL, NULL);
}
