/* Scores of predictions: scikit-learn's answers, definitions by brute force, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "bags/judge.h"

#include <math.h>
#include <string.h>

enum { N = 60 };
static fin_error err;

static void near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("got %.17g, wanted %.17g", got, want);
}

static fin_fit_score judged(int64_t n, int64_t classes, const double *y, const double *p,
                            const double *sd)
{
    fin_fit_score s;
    if (fin_fit_judge(n, classes, y, p, sd, NULL, &s, &err))
        fail_msg("%s", err.message);
    return s;
}

/* The same formulas as in tests/data/bags_scores.py, whose answers follow. */
static void two_classes(double *y, double *P)
{
    for (int i = 0; i < N; i++) {
        y[i] = (i * 7 + i * i / 3) % 5 % 2;
        double p = 0.5 + 0.45 * sin(1.3 * i) + 0.3 * (y[i] - 0.5);
        p = rint(fmin(fmax(p, 0), 1) * 40) / 40;
        P[2 * i] = 1 - p;
        P[2 * i + 1] = p;
    }
}

static void three_classes(double *y, double *P)
{
    for (int i = 0; i < N; i++) {
        double sum = 0;
        y[i] = (i * 5 + i / 4) % 3;
        for (int c = 0; c < 3; c++) {
            P[3 * i + c] = exp(rint((cos(0.7 * i + c) + 1.1 * (y[i] == c)) * 8) / 8);
            sum += P[3 * i + c];
        }
        for (int c = 0; c < 3; c++)
            P[3 * i + c] /= sum;
    }
}

static void judge__classes_as_sklearn(void **state)
{
    (void)state;
    const double want[2][5] = {{0.73333333333333328, 0.89275568181818188, 0.44135766210327415,
                                0.15992708333333336, 0.14125000000000001},
                               {0.81666666666666665, 0.92500000000000016, 0.6267784056609309,
                                0.17427353711272625, 0.22126583941706254}};
    double y[N], P[3 * N];
    for (int k = 0; k < 2; k++) {
        k ? three_classes(y, P) : two_classes(y, P);
        fin_fit_score s = judged(N, 2 + k, y, P, NULL);
        const double got[] = {s.accuracy, s.auc, s.log_loss, s.brier, s.ece};
        for (int j = 0; j < 5; j++)
            near(got[j], want[k][j], 1e-13);
        assert_int_equal(s.count, N);
        assert_true(isnan(s.rmse) && isnan(s.r2) && isnan(s.mae) && isnan(s.log_score) &&
                    isnan(s.coverage));
    }
}

static void judge__numbers_as_sklearn(void **state)
{
    (void)state;
    double y[N], f[N], sd[N];
    for (int i = 0; i < N; i++) {
        f[i] = sin(0.37 * i) * 3 + 1;
        y[i] = f[i] + cos(2.1 * i) * 0.8;
        sd[i] = 0.3 + 0.2 * (i % 4);
    }
    fin_fit_score s = judged(N, 0, y, f, sd);
    near(s.rmse, 0.56533982833939156, 1e-13);
    near(s.r2, 0.93186029167533013, 1e-13);
    near(s.mae, 0.52243644526421029, 1e-13);
    near(s.log_score, 1.0608977980884684, 1e-13);
    near(s.coverage, 0.8666666666666667, 1e-13);
    assert_true(isnan(s.accuracy) && isnan(s.auc) && isnan(s.log_loss) && isnan(s.brier) &&
                isnan(s.ece));
    s = judged(N, 0, y, f, NULL);
    near(s.mae, 0.52243644526421029, 1e-13);
    assert_true(isnan(s.log_score) && isnan(s.coverage));
}

/* By its definition, pair by pair, with many ties. */
static void auc__counts_pairs(void **state)
{
    (void)state;
    double y[97], p[97], scratch[97];
    for (int levels = 1; levels < 40; levels += 6) {
        double right = 0, pairs = 0;
        for (int i = 0; i < 97; i++) {
            y[i] = i % 11 == 5 ? NAN : i * 31 % 7 % 3;
            p[i] = (double)(i * 53 % 89 % levels) - 3;
        }
        for (int i = 0; i < 97; i++)
            for (int j = 0; j < 97; j++)
                if (y[i] == 1 && !isnan(y[j]) && y[j] != 1) {
                    right += p[i] > p[j] ? 1 : p[i] == p[j] ? 0.5 : 0;
                    pairs++;
                }
        near(fini_auc(97, y, 1, p, 1, scratch), right / pairs, 1e-15);
    }
    assert_true(isnan(fini_auc(97, y, 9, p, 1, scratch)));
}

static void judge__edges(void **state)
{
    (void)state;
    const double y[] = {0, 1, NAN, 1}, P[] = {1, 0, 1, 0, 0.5, 0.5, 0, 1};
    fin_fit_score s = judged(4, 2, y, P, NULL);
    assert_int_equal(s.count, 3); /* without the label that is not known */
    near(s.accuracy, 2.0 / 3, 1e-15);
    near(s.log_loss, -log(0x1p-52) / 3, 1e-12); /* sure, and wrong: finite */
    near(s.brier, 1.0 / 3, 1e-15);
    near(s.ece, 1.0 / 3, 1e-15);
    near(s.auc, 0.75, 1e-15);
    const double same[] = {1, 1}, p2[] = {0.4, 0.6, 0.2, 0.8};
    s = judged(2, 2, same, p2, NULL);
    assert_true(isnan(s.auc) && s.accuracy == 1); /* one class: no pairs */
    const double flat[] = {3, 3}, f[] = {3, 4}, sd[] = {0.5, INFINITY};
    s = judged(2, 0, flat, f, sd);
    assert_true(isnan(s.r2) && s.mae == 0.5 && s.coverage == 1);
}

static void bins__are_equal(void **state)
{
    (void)state;
    assert_int_equal(fini_bin(0, 10), 0);
    assert_int_equal(fini_bin(0.0999, 10), 0);
    assert_int_equal(fini_bin(0.5, 10), 5);
    assert_int_equal(fini_bin(1, 10), 9);
    assert_int_equal(fini_bin(-1e-12, 10), 0);
    assert_int_equal(fini_bin(1 + 1e-12, 10), 9);
}

static void refused(int64_t n, int64_t classes, const double *y, const double *p, const double *sd,
                    const char *word)
{
    fin_fit_score s;
    fin_error e = {FIN_OK, ""};
    assert_int_equal(fin_fit_judge(n, classes, y, p, sd, NULL, &s, &e), FIN_ERR_ARGUMENT);
    if (!strstr(e.message, word))
        fail_msg("'%s' is not in: %s", word, e.message);
    assert_int_equal(fin_fit_judge(n, classes, y, p, sd, NULL, &s, NULL), FIN_ERR_ARGUMENT);
}

static void judge__refuses(void **state)
{
    (void)state;
    const double y[] = {0, 1}, P[] = {0.5, 0.5, 0.5, 0.5}, sd[] = {1, 1};
    const double far[] = {0, 2}, half[] = {0, 0.5}, below[] = {-1, 0}, none[] = {NAN, NAN},
                 infinite[] = {0, INFINITY};
    const double lost[] = {0.5, 0.5, NAN, 0.5}, large[] = {0.5, 0.5, 1.5, -0.5}, down[] = {1, -1},
                 nosd[] = {1, NAN};
    refused(0, 2, y, P, NULL, "0 bags");
    refused(2, 1, y, P, NULL, "1 classes");
    refused(2, -1, y, P, NULL, "-1 classes");
    refused(2, 2, NULL, P, NULL, "labels");
    refused(2, 2, far, P, NULL, "label 2");
    refused(2, 2, half, P, NULL, "label 0.5");
    refused(2, 2, below, P, NULL, "label -1");
    refused(2, 2, none, P, NULL, "no bag has a label");
    refused(2, 0, none, P, NULL, "no bag has a label");
    refused(2, 2, y, lost, NULL, "probability");
    refused(2, 2, y, large, NULL, "probability 1.5");
    refused(2, 0, infinite, P, NULL, "infinite");
    refused(2, 0, y, lost + 2, NULL, "not finite");
    refused(2, 0, y, P, down, "-1");
    refused(2, 0, y, P, nosd, "nan");
    (void)sd;
}

static fin_status judge_once(void *user, fin_error *e)
{
    double y[N], P[3 * N];
    fin_fit_score s;
    (void)user;
    three_classes(y, P);
    return fin_fit_judge(N, 3, y, P, NULL, NULL, &s, e);
}

static void judge__without_memory(void **state)
{
    (void)state;
    assert_int_equal(fault_every(judge_once, NULL), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(judge__classes_as_sklearn), cmocka_unit_test(judge__numbers_as_sklearn),
        cmocka_unit_test(auc__counts_pairs),         cmocka_unit_test(judge__edges),
        cmocka_unit_test(bins__are_equal),           cmocka_unit_test(judge__refuses),
        cmocka_unit_test(judge__without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
