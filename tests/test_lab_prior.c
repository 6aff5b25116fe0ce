/* The command `prior`: against sequences drawn token by token and priors found by another method, and
 * against Wilks' theorem. */
#include "test_command.h"

#include "finetti/random.h"

enum { MOST = 6 };

/* A context of L tokens and one more: counts and the masked token. */
static int64_t sequence(fin_random *r, int D, const double *a, int64_t L, int64_t *counts)
{
    double theta[MOST];
    int64_t masked = 0;
    fin_random_dirichlet(r, D, a, theta);
    memset(counts, 0, (size_t)D * sizeof *counts);
    for (int64_t l = 0; l <= L; l++) {
        double u = fin_random_uniform(r), sum = theta[0];
        int64_t j = 0;
        while (j < D - 1 && u > sum)
            sum += theta[++j];
        if (l < L)
            counts[j]++;
        masked = j;
    }
    return masked;
}

static void prior_of(int D, double alpha, double skew, double *a, double *all)
{
    *all = 0;
    for (int j = 0; j < D; j++)
        *all += a[j] = alpha * pow(1 + j, skew);
}

static void prior__bayes_as_drawn_by_hand(void **state)
{
    (void)state;
    static const struct {
        int D;
        int64_t L;
        double alpha, skew;
    } cases[] = {{4, 1, 0.5, 1}, {4, 16, 0.5, 1}, {2, 40, 0.05, -1}, {6, 5, 3, 0}};
    enum { SAMPLES = 20000 };
    for (int k = 0; k < 4; k++) {
        double a[MOST], all, mean = 0, squares = 0;
        int64_t counts[MOST];
        char text[256];
        fin_random r;
        fin_random_open(&r, 5, FIN_STREAM_USER, (uint64_t)k);
        prior_of(cases[k].D, cases[k].alpha, cases[k].skew, a, &all);
        for (int i = 0; i < SAMPLES; i++) {
            int64_t j = sequence(&r, cases[k].D, a, cases[k].L, counts);
            double x = -log(((double)counts[j] + a[j]) / ((double)cases[k].L + all));
            double step = x - mean;
            mean += step / (i + 1);
            squares += step * (x - mean);
        }
        snprintf(text, sizeof text, "prior outcomes=%d L=%lld alpha=%g skew=%g n=100 repetitions=2",
                 cases[k].D, (long long)cases[k].L, cases[k].alpha, cases[k].skew);
        fin_result *result = run(text);
        double z = (scalar(result, "bayes").value - mean) / (sqrt(squares) / SAMPLES);
        print_message("%s: %.5f, by hand %.5f, z = %.2f\n", text, scalar(result, "bayes").value,
                      mean, z);
        assert_true(fabs(z) < 5);
        fin_result_destroy(result);
    }
}

/* Two categories, n sequences: the prior by golden section in one logarithm inside golden section
 * in the other, and KL by enumeration of contexts. */
enum { LENGTH = 3, N = 400 };

static double table_loss(const double table[2][LENGTH + 1], double u0, double u1)
{
    double a[2] = {exp(u0), exp(u1)}, sum = 0;
    for (int j = 0; j < 2; j++)
        for (int c = 0; c <= LENGTH; c++)
            sum -= table[j][c] * log((c + a[j]) / (LENGTH + a[0] + a[1]));
    return sum;
}

static double golden(const double table[2][LENGTH + 1], double outer, double *where)
{
    const double ratio = 0.6180339887498949;
    double low = -5, high = 5, best = 0;
    for (int i = 0; i < 40; i++) {
        double x = high - ratio * (high - low), y = low + ratio * (high - low), dummy;
        double f = isnan(outer) ? golden(table, x, &dummy) : table_loss(table, outer, x);
        double g = isnan(outer) ? golden(table, y, &dummy) : table_loss(table, outer, y);
        if (f < g)
            high = y;
        else
            low = x;
        best = fmin(f, g);
    }
    *where = (low + high) / 2;
    return best;
}

static double divergence_by_hand(fin_random *r, const double *a)
{
    double table[2][LENGTH + 1] = {{0}}, u[2], kl = 0, p = 1;
    int64_t counts[2];
    for (int i = 0; i < N; i++) {
        int64_t j = sequence(r, 2, a, LENGTH, counts);
        table[j][counts[j]]++;
    }
    golden(table, NAN, &u[0]);
    golden(table, u[0], &u[1]);
    double b[2] = {exp(u[0]), exp(u[1])}, all = a[0] + a[1], other = b[0] + b[1];
    for (int i = 0; i < LENGTH; i++)
        p *= (a[1] + i) / (all + i);
    for (int c = 0; c <= LENGTH; c++) { /* c tokens of category 0 */
        double x = (c + a[0]) / (LENGTH + all), y = (c + b[0]) / (LENGTH + other);
        kl += p * (x * log(x / y) + (1 - x) * log((1 - x) / (1 - y)));
        p *= (LENGTH - c) * (a[0] + c) / ((c + 1) * (a[1] + LENGTH - c - 1));
    }
    return kl;
}

static void prior__learns_as_by_hand(void **state)
{
    (void)state;
    enum { TIMES = 1000 };
    double a[2], all, mean = 0, squares = 0;
    fin_random r;
    fin_random_open(&r, 6, FIN_STREAM_USER, 0);
    prior_of(2, 0.7, 1, a, &all);
    for (int i = 0; i < TIMES; i++) {
        double x = N * divergence_by_hand(&r, a), step = x - mean;
        mean += step / (i + 1);
        squares += step * (x - mean);
    }
    fin_result *result = run("prior outcomes=2 L=3 alpha=0.7 skew=1 n=400 repetitions=20000");
    fin_scalar s = scalar(result, "scaled");
    double z = (s.value - mean) / hypot(s.error, sqrt(squares) / TIMES);
    print_message("n KL = %.4f +- %.4f, by hand %.4f, z = %.2f\n", s.value, s.error, mean, z);
    assert_true(fabs(z) < 5);
    assert_true(fabs(s.value / N / scalar(result, "divergence").value - 1) < 1e-12);
    fin_result_destroy(result);
}

/* Half the number of categories, in the limit of many sequences. */
static void prior__wilks(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double limit;
    } cases[] = {{"prior outcomes=2 L=2 n=20000", 1},
                 {"prior outcomes=3 L=8 n=20000 alpha=1 skew=-0.5", 1.5},
                 {"prior outcomes=6 L=1 n=20000 alpha=2 skew=0", 3},
                 {"prior L=64 n=20000", 2}};
    for (int i = 0; i < 4; i++) {
        fin_result *r = run(cases[i].text);
        fin_scalar s = scalar(r, "scaled");
        double z = (s.value - cases[i].limit) / s.error;
        print_message("%s: %.3f +- %.3f, z = %.2f\n", cases[i].text, s.value, s.error, z);
        assert_true(fabs(z) < 5 && s.error < 0.1 * cases[i].limit);
        assert_true(scalar(r, "limit").value == cases[i].limit);
        assert_true(scalar(r, "lost").value == 0);
        fin_result_destroy(r);
    }
}

/* Few sequences: the best prior may be nowhere. It is counted, and all numbers stay finite. */
static void prior__few_sequences(void **state)
{
    (void)state;
    fin_result *r = run("prior n=4 L=3 repetitions=200");
    fin_scalar lost = scalar(r, "lost");
    assert_true(lost.value > 0.2 && lost.value <= 1 && lost.how == FIN_HOW_SHARE);
    assert_true(isfinite(scalar(r, "divergence").value) && scalar(r, "divergence").value > 0);
    fin_result_destroy(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prior__bayes_as_drawn_by_hand),
        cmocka_unit_test(prior__learns_as_by_hand),
        cmocka_unit_test(prior__wilks),
        cmocka_unit_test(prior__few_sequences),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
