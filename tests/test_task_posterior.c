/* The posterior of the location and the Bayes prediction: against densities in long double, against
 * frequencies, and against the attention forms that should equal them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/attention.h"
#include "test_random_stats.h"
#include "test_task_help.h"

#include <stdio.h>

typedef struct setting {
    const char *kind;
    int64_t d, L_min, L;
    double gamma, mu, snr;
} setting;

static const setting settings[] = {
    {"slr", 3, 1, 4, 0.5, 1.2, 0},  {"slr", 10, 2, 7, 0.70710678118654757, FIN_AUTO, 0},
    {"slr", 50, 3, 5, 0.9, 1, 0},   {"slr", 20, 3, 3, 1, 1.5, 0},
    {"slr", 12, 2, 6, 1.7, 0.3, 0}, {"slr", 4, 100, 200, 0.8, 2, 0},
    {"spiked", 3, 2, 5, 0, 0, 3},   {"spiked", 50, 60, 70, 0, 0, 6},
    {"max", 3, 1, 6, 0, 0, 2},      {"max", 30, 120, 130, 0, 0, 1.1},
};
enum { SETTINGS = sizeof settings / sizeof *settings };

static fin_task *make(const setting *s, uint64_t seed)
{
    fin_task_settings t = help_settings(s->kind, s->d, s->L);
    t.L_min = s->L_min;
    t.gamma = s->gamma;
    t.mu = s->mu;
    t.snr = s->snr;
    t.eps = 0.1;
    return help_task(s->kind, &t, seed);
}

/* P(J = l | X) from the densities themselves. */
static void brute_force(const fin_task *task, const help_batch *b, int64_t i, long double *w)
{
    const fin_task_settings *s = fin_task_get_settings(task);
    const double *k = fin_task_k_star(task);
    int64_t L = b->offsets[i + 1] - b->offsets[i];
    int max = strcmp(fin_task_kind_name(fin_task_get_kind(task)), "max") == 0;
    long double top = -INFINITY, total = 0, g2 = (long double)s->gamma * s->gamma;
    for (int64_t l = 0; l < L; l++) {
        long double moved = 0, plain = 0, score = 0;
        for (int64_t c = 0; c < s->d; c++) {
            long double x = help_at(b, b->offsets[i] + l, c), off = x - (long double)s->mu * k[c];
            moved += off * off;
            plain += x * x;
            score += x * k[c];
        }
        /* log of density(X_l relevant) / density(X_l not), up to what all l share */
        w[l] = max ? s->snr * score : -moved / (2 * g2) + plain / 2;
        top = w[l] > top ? w[l] : top;
    }
    for (int64_t l = 0; l < L; l++)
        total += w[l] = expl(w[l] - top);
    for (int64_t l = 0; l < L; l++)
        w[l] /= total;
}

static void posterior__matches_densities(void **state)
{
    (void)state;
    enum { N = 40 };
    double worst = 0, worst_y = 0;
    for (int t = 0; t < SETTINGS; t++)
        for (int wide = 0; wide < 2; wide++) {
            fin_task *task = make(&settings[t], 61);
            help_batch b = help_draw(task, 0, N, wide ? FIN_F64 : FIN_F32);
            fin_batch view = help_view(&b);
            double *w = malloc((size_t)b.offsets[N] * sizeof *w), y[N];
            long double want[256];
            assert_int_equal(fin_task_posterior(task, &view, w, NULL), FIN_OK);
            assert_int_equal(fin_task_predict(task, &view, y, NULL), FIN_OK);
            for (int64_t i = 0; i < N; i++) {
                long double sum = 0, predicted = 0, size = 0;
                brute_force(task, &b, i, want);
                for (int64_t l = b.offsets[i]; l < b.offsets[i + 1]; l++) {
                    long double z = 0, p = want[l - b.offsets[i]];
                    for (int64_t c = 0; c < b.d; c++)
                        z += (long double)help_at(&b, l, c) * fin_task_v_star(task)[c];
                    sum += w[l];
                    predicted += p * z;
                    size += p * fabsl(z);
                    worst = fmax(worst, (double)(fabsl(w[l] - p) / (p + 1e-20L)));
                }
                assert_true(fabsl(sum - 1) < 1e-14L);
                worst_y = fmax(worst_y, (double)(fabsl(y[i] - predicted) / size));
            }
            free(w);
            help_free(&b);
            fin_task_destroy(task);
        }
    print_message("worst relative error: posterior %.2g, prediction %.2g\n", worst, worst_y);
    assert_true(worst < 1e-12 && worst_y < 1e-12);
}

/* Reversing the tokens of a sample reverses its weights and leaves the prediction. */
static void posterior__does_not_see_the_order(void **state)
{
    (void)state;
    enum { N = 30 };
    double worst = 0;
    for (int t = 0; t < SETTINGS; t++) {
        fin_task *task = make(&settings[t], 62);
        help_batch b = help_draw(task, 0, N, FIN_F64), r = help_draw(task, 0, N, FIN_F64);
        int64_t tokens = b.offsets[N];
        for (int64_t i = 0; i < N; i++)
            for (int64_t l = b.offsets[i]; l < b.offsets[i + 1]; l++)
                memcpy((double *)r.tokens + l * b.d,
                       (double *)b.tokens + (b.offsets[i] + b.offsets[i + 1] - 1 - l) * b.d,
                       (size_t)b.d * 8);
        fin_batch forth = help_view(&b), back = help_view(&r);
        double *w = malloc((size_t)tokens * 8), *u = malloc((size_t)tokens * 8), y[N], x[N];
        fin_task_posterior(task, &forth, w, NULL);
        fin_task_posterior(task, &back, u, NULL);
        fin_task_predict(task, &forth, y, NULL);
        fin_task_predict(task, &back, x, NULL);
        for (int64_t i = 0; i < N; i++) {
            for (int64_t l = b.offsets[i]; l < b.offsets[i + 1]; l++)
                worst = fmax(worst, fabs(w[l] - u[b.offsets[i] + b.offsets[i + 1] - 1 - l]));
            worst = fmax(worst, fabs(x[i] - y[i]));
        }
        free(w);
        free(u);
        help_free(&b);
        help_free(&r);
        fin_task_destroy(task);
    }
    print_message("worst change %.2g\n", worst);
    assert_true(worst < 1e-13);
}

/* Of the tokens given weight w, a fraction w is the relevant one. */
static void posterior__is_calibrated(void **state)
{
    (void)state;
    enum { N = 40000, BINS = 20 };
    const setting cases[] = {{"slr", 6, 3, 7, 0.8, 1, 0},
                             {"slr", 5, 5, 5, 1.5, 0.5, 0},
                             {"spiked", 4, 5, 5, 0, 0, 2},
                             {"max", 4, 5, 5, 0, 0, 1.5}};
    for (int t = 0; t < 4; t++)
        for (int wide = 0; wide < 2; wide++) {
            fin_task *task = make(&cases[t], 63);
            help_batch b = help_draw(task, 0, N, wide ? FIN_F64 : FIN_F32);
            fin_batch view = help_view(&b);
            double *w = malloc((size_t)b.offsets[N] * sizeof *w), hits[BINS] = {0}, sum[BINS] = {0},
                   spread[BINS] = {0};
            double *y = malloc(N * sizeof *y);
            fin_task_posterior(task, &view, w, NULL);
            fin_task_predict(task, &view, y, NULL);
            stats_mean miss = {0}, miss_y = {0};
            for (int64_t i = 0; i < N; i++) {
                for (int64_t l = b.offsets[i]; l < b.offsets[i + 1]; l++) {
                    int bin = w[l] < 1 ? (int)(w[l] * BINS) : BINS - 1;
                    hits[bin] += b.location[i] == l - b.offsets[i];
                    sum[bin] += w[l];
                    spread[bin] += w[l] * (1 - w[l]);
                }
                stats_add(&miss, b.y[i] - y[i]);
                stats_add(&miss_y, (b.y[i] - y[i]) * y[i]);
            }
            stats_begin();
            for (int k = 0; k < BINS; k++)
                if (spread[k] > 20)
                    stats_z("bin", (hits[k] - sum[k]) / sqrt(spread[k]));
            stats_z("error", stats_mean_z(&miss, 0));
            stats_z("error x prediction", stats_mean_z(&miss_y, 0)); /* it is a conditional mean */
            stats_end(cases[t].kind);
            assert_true(stats_count > 10 && b.offsets[N] >= 200000 - 1000);
            free(w);
            free(y);
            help_free(&b);
            fin_task_destroy(task);
        }
}

/* Attention with the right k and lam is the posterior: softmax on spiked and max, bayes on all. */
static void posterior__equals_attention(void **state)
{
    (void)state;
    enum { N = 50 };
    double worst[2] = {0};
    for (int t = 0; t < SETTINGS; t++)
        for (int soft = 0; soft < 2; soft++)
            for (int wide = 0; wide < 2; wide++) {
                int slr = strcmp(settings[t].kind, "slr") == 0;
                if (soft && (slr || !wide)) /* softmax reads float tokens in float */
                    continue;
                fin_task *task = make(&settings[t], 64);
                const fin_task_settings *s = fin_task_get_settings(task);
                help_batch b = help_draw(task, 0, N, wide ? FIN_F64 : FIN_F32);
                fin_batch view = help_view(&b);
                fin_form_settings fs = {0};
                fin_task_bayes_parameters(task, &fs.lam, &fs.c);
                if (soft)
                    fs.lam = settings[t].kind[0] == 'm' ? s->snr : sqrt(s->snr);
                fin_attention *attention;
                int64_t tokens = b.offsets[N];
                double *w = malloc((size_t)tokens * 8), *u = malloc((size_t)tokens * 8), f[N], y[N];
                assert_int_equal(fin_attention_create(&attention,
                                                      fin_form_find(soft ? "softmax" : "bayes"),
                                                      &fs, s->d, b.dtype, s->L, NULL),
                                 FIN_OK);
                fin_attention_set(attention, NULL, fin_task_k_star(task), fin_task_v_star(task),
                                  NULL);
                assert_int_equal(fin_attention_forward(attention, &view, f, w, NULL), FIN_OK);
                fin_task_posterior(task, &view, u, NULL);
                fin_task_predict(task, &view, y, NULL);
                double *at = &worst[wide || fs.c != 0];
                for (int64_t l = 0; l < tokens; l++)
                    *at = fmax(*at, fabs(w[l] - u[l]));
                for (int64_t i = 0; i < N; i++)
                    *at = fmax(*at, fabs(f[i] - y[i]));
                fin_attention_destroy(attention);
                free(w);
                free(u);
                help_free(&b);
                fin_task_destroy(task);
            }
    print_message("worst difference %.2g; float tokens projected in float %.2g\n", worst[1],
                  worst[0]);
    assert_true(worst[1] < 1e-12 && worst[0] < 1e-5);
}

/* At snr = inf all weight is on the largest score, shared by exact ties. */
static void posterior__argmax_at_infinite_snr(void **state)
{
    (void)state;
    fin_task_settings s = help_settings("max", 3, 70);
    s.snr = INFINITY;
    fin_task *task = help_task("max", &s, 65);
    help_batch b = help_draw(task, 0, 20, FIN_F64);
    double *X = b.tokens, w[20 * 70], y[20];
    memcpy(X + 210 * 1, X + 210 * 1 + 3 * b.location[1],
           3 * 8); /* sample 1: token 0 and J are equal */
    fin_batch view = help_view(&b);
    fin_task_posterior(task, &view, w, NULL);
    fin_task_predict(task, &view, y, NULL);
    for (int64_t i = 0; i < 20; i++)
        for (int64_t l = 0; l < 70; l++) {
            int tie = i == 1 && b.location[1] != 0 && (l == 0 || l == b.location[1]);
            assert_true(w[70 * i + l] == (tie ? 0.5 : l == b.location[i]));
        }
    for (int64_t i = 0; i < 20; i++)
        assert_true(fabs(y[i] - help_dot(&b, 70 * i + b.location[i], fin_task_v_star(task))) <
                    1e-14);
    double lam, c;
    fin_task_bayes_parameters(task, &lam, &c);
    assert_true(isinf(lam) && c == 0);
    help_free(&b);
    fin_task_destroy(task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posterior__matches_densities),
        cmocka_unit_test(posterior__does_not_see_the_order),
        cmocka_unit_test(posterior__is_calibrated),
        cmocka_unit_test(posterior__equals_attention),
        cmocka_unit_test(posterior__argmax_at_infinite_snr),
    };
    return cmocka_run_group_tests_name("task_posterior", tests, NULL, NULL);
}
