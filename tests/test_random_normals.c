/* The law of the arrays of normals: ten million numbers of each type. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/random.h"
#include "test_random_stats.h"

#include <stdio.h>
#include <string.h>

enum { PER_SAMPLE = 1 << 16, SAMPLES = 160, BINS = 4096, LANES = 64 };
static const double total = (double)PER_SAMPLE * SAMPLES; /* 1.05e7 */

static double now[PER_SAMPLE + LANES], before[PER_SAMPLE + LANES];

/* Numbers of one sample as doubles, with LANES more behind them for neighbours. */
static void draw(int wide, uint64_t seed, uint32_t stream, uint64_t sample, double *out)
{
    static float narrow[PER_SAMPLE + LANES];
    if (wide) {
        fin_random_normals_f64(seed, stream, sample, 0, PER_SAMPLE + LANES, out);
        return;
    }
    fin_random_normals_f32(seed, stream, sample, 0, PER_SAMPLE + LANES, narrow);
    for (int i = 0; i < PER_SAMPLE + LANES; i++)
        out[i] = (double)narrow[i];
}

static const int lags[] = {1,  2,  4,  8, 16,
                           24, 32, 48, 64}; /* pairs of one block are 8, 16 or 32 apart */
enum { LAGS = sizeof lags / sizeof *lags };

typedef struct sums {
    double power[5];                  /* sums of x^1 .. x^4 */
    double over[3];                   /* counts of |x| > 3, 4, 5 */
    double lag[LAGS][2];              /* x y, (x^2 - 1)(y^2 - 1) */
    double lane[LANES], lane2[LANES]; /* sums of x and x^2 */
    double across[2];                 /* with the sample before: x y, (x^2-1)(y^2-1) */
    double bin[BINS + 1], largest;
} sums;

static void add_sample(sums *s, const double *x, const double *y)
{
    for (int i = 0; i < PER_SAMPLE; i++) {
        double a = x[i], a2 = a * a, size = fabs(a);
        s->power[1] += a;
        s->power[2] += a2;
        s->power[3] += a2 * a;
        s->power[4] += a2 * a2;
        for (int j = 0; j < 3; j++)
            s->over[j] += size > 3 + j;
        s->lane[i % LANES] += a;
        s->lane2[i % LANES] += a2;
        s->across[0] += a * y[i];
        s->across[1] += (a2 - 1) * (y[i] * y[i] - 1);
        double at = (a + 8) * (BINS / 16);
        s->bin[at < 0 ? 0 : at > BINS ? BINS : (int)at]++;
        s->largest = size > s->largest ? size : s->largest;
    }
    for (int k = 0; k < LAGS; k++) {
        double sum = 0, squares = 0;
        for (int i = 0; i < PER_SAMPLE; i++) {
            double b = x[i + lags[k]];
            sum += x[i] * b;
            squares += (x[i] * x[i] - 1) * (b * b - 1);
        }
        s->lag[k][0] += sum;
        s->lag[k][1] += squares;
    }
}

static void judge(const char *name, const sums *s)
{
    double n = total;
    stats_begin();
    stats_z("mean", s->power[1] / sqrt(n));
    stats_z("variance", (s->power[2] - n) / sqrt(2 * n));
    stats_z("third moment", s->power[3] / sqrt(15 * n));
    stats_z("fourth moment", (s->power[4] - 3 * n) / sqrt(96 * n));
    for (int j = 0; j < 3; j++) {
        double want = n * erfc((3 + j) / sqrt(2));
        stats_z("tail", (s->over[j] - want) / sqrt(want));
    }
    for (int k = 0; k < LAGS; k++) {
        stats_z("neighbours", s->lag[k][0] / sqrt(n));
        stats_z("squares of neighbours", s->lag[k][1] / sqrt(4 * n));
    }
    for (int l = 0; l < LANES; l++) {
        stats_z("lane mean", s->lane[l] / sqrt(n / LANES));
        stats_z("lane variance", (s->lane2[l] - n / LANES) / sqrt(2 * n / LANES));
    }
    stats_z("next sample", s->across[0] / sqrt(n));
    stats_z("squares of next sample", s->across[1] / sqrt(4 * n));
    stats_end(name);
    /* Kolmogorov-Smirnov at the 4096 edges of the bins. */
    double worst = 0, below = 0;
    for (int b = 0; b < BINS; b++) {
        below += s->bin[b];
        double edge = (b + 1) / (BINS / 16.0) - 8;
        worst = fmax(worst, fabs(below / n - 0.5 * erfc(-edge / sqrt(2))));
    }
    print_message(
        "  sqrt(n) KS distance %.3f, mean z %.2f, variance z %.2f, |x| > 4: %g, largest %.3f\n",
        sqrt(n) * worst, s->power[1] / sqrt(n), (s->power[2] - n) / sqrt(2 * n), s->over[1],
        s->largest);
    assert_true(sqrt(n) * worst < 2.7);
}

static void check_law(int wide, const char *name, double most)
{
    static sums s;
    memset(&s, 0, sizeof s);
    draw(wide, 20250101, 2000, UINT64_MAX, before); /* the sample before sample 0 */
    for (uint64_t sample = 0; sample < SAMPLES; sample++) {
        draw(wide, 20250101, 2000, sample, now);
        add_sample(&s, now, before);
        memcpy(before, now, sizeof now);
    }
    judge(name, &s);
    assert_true(s.largest < most);
}

static void normals_f32__have_their_law(void **state)
{
    (void)state;
    check_law(0, "float", 6.66);
}

static void normals_f64__have_their_law(void **state)
{
    (void)state;
    check_law(1, "double", 8.57);
}

/* The same numbers of neighbouring streams, seeds and far samples are uncorrelated; so are float
 * and double numbers of one key where they share a block but not a formula. */
static void normals__streams_and_seeds_are_independent(void **state)
{
    (void)state;
    const struct {
        uint64_t seed;
        uint32_t stream;
        uint64_t sample;
    } other[] = {{1, 2001, 1},
                 {1, 2000u | 0x80000000u, 1},
                 {2, 2000, 1},
                 {UINT64_C(1) << 32 | 1, 2000, 1},
                 {1, 2000, UINT64_C(1) << 32 | 1},
                 {2000, 1, 1},
                 {1, 1, 2000}};
    stats_begin();
    for (int wide = 0; wide < 2; wide++)
        for (size_t j = 0; j < sizeof other / sizeof *other; j++) {
            double sum = 0, squares = 0, n = 0;
            for (uint64_t k = 0; k < 4; k++) {
                draw(wide, 1, 2000, 1 + (k << 40), before);
                draw(wide, other[j].seed, other[j].stream, other[j].sample + (k << 40), now);
                for (int i = 0; i < PER_SAMPLE; i++, n++) {
                    sum += now[i] * before[i];
                    squares += (now[i] * now[i] - 1) * (before[i] * before[i] - 1);
                }
            }
            stats_z("product", sum / sqrt(n));
            stats_z("product of squares", squares / sqrt(4 * n));
        }
    stats_end("streams, seeds, samples");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normals_f32__have_their_law),
        cmocka_unit_test(normals_f64__have_their_law),
        cmocka_unit_test(normals__streams_and_seeds_are_independent),
    };
    return cmocka_run_group_tests_name("random_normals", tests, NULL, NULL);
}
