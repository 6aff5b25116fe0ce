/* The transformer layer: its output against the formula with all rows, in double; its gradient against central differences
 * of that; three steps against torch (tests/data/layer_torch.py); singular vectors against a matrix whose are known; draws
 * against their moments; the same numbers for any threads; what is refused. */
#include "test_command.h"

#include "train/layer.h"

#include <stdio.h>

typedef struct bench {
    fini_layer_plan plan;
    fini_layer_desk desk;
    fini_arena arena;
} bench;

static void open_bench(bench *b)
{
    fini_layer_desk_cut(&b->plan, &b->arena, &b->desk);
    assert_int_equal(fini_arena_open(&b->arena, "a test", &err), FIN_OK);
    fini_layer_desk_cut(&b->plan, &b->arena, &b->desk);
}

static void sines(int salt, double scale, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)(scale * sin(12.9898 * (double)(i + 1) + 78.233 * salt));
}

static void fill(bench *b)
{
    const fini_layer_plan *p = &b->plan;
    const fini_layer_places at = b->desk.at;
    const int64_t ends[] = {at.Wk, at.Wq, at.Wv, at.W1, at.b1, at.W2, at.b2, at.theta, at.count};
    for (int i = 0; i < 8; i++)
        sines(i, 0.6, ends[i + 1] - ends[i], b->desk.parameters + ends[i]);
    sines(20, 0.4, p->d, b->desk.start);
    fini_layer_register(&b->desk);
}

static void fill_batch(bench *b, int step)
{
    const fini_layer_plan *p = &b->plan;
    sines(30 + step, 1.5, p->batch * p->L * p->d, b->desk.X);
    sines(40 + step, 1, p->batch, b->desk.y);
}

/* ---- the formula, all rows, in double ------------------------------------------------------------- */

enum { WIDE = 16 };

static double formula(const bench *b, const double *w, int64_t sample)
{
    const fini_layer_plan *p = &b->plan;
    const fini_layer_places at = b->desk.at;
    int64_t d = p->d, T = p->L + 1;
    double X[WIDE][WIDE], Z[WIDE][WIDE], rows[WIDE][WIDE], f = 0;
    for (int64_t t = 0; t < T; t++) {
        double mean = 0, variance = 0;
        for (int64_t j = 0; j < d; j++) {
            X[t][j] = t ? b->desk.X[(sample * p->L + t - 1) * d + j] : b->desk.start[j];
            rows[t][j] = X[t][j];
            mean += X[t][j] / (double)d;
        }
        for (int64_t j = 0; j < d; j++)
            variance += (X[t][j] - mean) * (X[t][j] - mean) / (double)d;
        for (int64_t j = 0; j < d; j++)
            Z[t][j] = (X[t][j] - mean) / (sqrt(variance) + 1e-5);
    }
    for (int64_t h = 0; h < p->H; h++)
        for (int64_t t = 0; t < T; t++) {
            double score[WIDE], all = 0;
            for (int64_t s = 0; s < T; s++) {
                score[s] = 0;
                for (int64_t i = 0; i < p->r; i++) {
                    double key = 0, query = 0;
                    for (int64_t j = 0; j < d; j++) {
                        key += w[at.Wk + (h * p->r + i) * d + j] * Z[t][j];
                        query += w[at.Wq + (h * p->r + i) * d + j] * Z[s][j];
                    }
                    score[s] += key * query / sqrt((double)p->r);
                }
                all += exp(score[s]);
            }
            for (int64_t s = 0; s < T; s++)
                for (int64_t i = 0; i < d; i++)
                    for (int64_t j = 0; j < d; j++)
                        rows[t][j] +=
                            exp(score[s]) / all * Z[s][i] * w[at.Wv + (h * d + i) * d + j];
        }
    for (int64_t j = 0; j < d; j++) {
        double out = rows[0][j] + w[at.b2 + j];
        for (int64_t i = 0; i < p->m; i++) {
            double unit = w[at.b1 + i];
            for (int64_t k = 0; k < d; k++)
                unit += w[at.W1 + i * d + k] * rows[0][k];
            out += w[at.W2 + j * p->m + i] * fmax(unit, 0);
        }
        f += w[at.theta + j] * out;
    }
    return f;
}

static double loss(const bench *b, const double *w)
{
    double sum = 0;
    for (int64_t i = 0; i < b->plan.batch; i++) {
        double far = formula(b, w, i) - b->desk.y[i];
        sum += far * far / (double)b->plan.batch;
    }
    return sum;
}

static void gradient__is_that_of_the_formula(void **state)
{
    (void)state;
    static const char *const names[] = {"Wk", "Wq", "Wv", "W1", "b1", "W2", "b2", "theta"};
    for (int64_t H = 1; H <= FINI_LAYER_HEADS; H++) {
        bench b = {.plan = {.H = H, .P = 1, .d = 6, .r = 5, .m = 7, .L = 4, .batch = 3}};
        open_bench(&b);
        fill(&b);
        fill_batch(&b, 0);
        fini_layer_pass(&b.desk, b.plan.batch, true);
        const fini_layer_places at = b.desk.at;
        const int64_t ends[] = {at.Wk, at.Wq, at.Wv,    at.W1,   at.b1,
                                at.W2, at.b2, at.theta, at.count};
        double *w = malloc((size_t)at.count * sizeof *w);
        for (int64_t i = 0; i < at.count; i++)
            w[i] = b.desk.parameters[i];
        for (int64_t i = 0; i < b.plan.batch; i++)
            assert_float_equal(b.desk.f[i], formula(&b, w, i), 2e-5);
        for (int block = 0; block < 8; block++) {
            double worst = 0, largest = 0;
            for (int64_t i = ends[block]; i < ends[block + 1]; i++) {
                double keep = w[i], step = 1e-5;
                w[i] = keep + step;
                double slope = loss(&b, w);
                w[i] = keep - step;
                slope = (slope - loss(&b, w)) / (2 * step);
                w[i] = keep;
                worst = fmax(worst, fabs(slope - b.desk.gradient[i]));
                largest = fmax(largest, fabs(slope));
            }
            print_message("H = %d, %s: off by %.1e of %.2g\n", (int)H, names[block], worst,
                          largest);
            assert_true(largest > 1e-3);
            assert_true(worst < 2e-5 * fmax(largest, 1));
        }
        free(w);
        fini_arena_close(&b.arena);
    }
}

static void steps__are_those_of_torch(void **state)
{
    (void)state;
    bench b = {.plan = {.H = 2, .P = 1, .d = 6, .r = 5, .m = 7, .L = 4, .batch = 3}};
    open_bench(&b);
    fill(&b);
    FILE *file = fopen(FIN_TEST_DATA "/layer_torch.csv", "r");
    assert_non_null(file);
    char line[128];
    double worst[2] = {0};
    int64_t seen = 0;
    for (int at = -1; fgets(line, sizeof line, file);) {
        char what;
        int step, i;
        double value;
        if (sscanf(line, "%c,%d,%d,%lf", &what, &step, &i, &value) != 4)
            continue; /* the head */
        for (; at < step; at++) {
            for (int64_t j = 0; at >= 0 && j < b.desk.at.count; j++)
                b.desk.parameters[j] -= 0.05F * b.desk.gradient[j];
            fill_batch(&b, at + 1);
            fini_layer_pass(&b.desk, b.plan.batch, true);
        }
        double mine = what == 'f' ? b.desk.f[i] : b.desk.parameters[i];
        worst[what == 'w'] = fmax(worst[what == 'w'], fabs(mine - value));
        seen += what == 'w';
    }
    fclose(file);
    print_message("outputs off by %.1e, parameters by %.1e\n", worst[0], worst[1]);
    assert_int_equal(seen, b.desk.at.count);
    assert_true(worst[0] < 2e-5 && worst[1] < 1e-5);
    fini_arena_close(&b.arena);
}

/* Wk orthogonal (the unit matrix), Wq = 3 e_1 a' + 2 e_2 b' + e_3 c' with a, b, c orthonormal: singular values 3, 2, 1. Wv the unit
 * matrix, W1 = 0: theta itself is read. */
static void look__finds_known_directions(void **state)
{
    (void)state;
    enum { D = 6 };
    bench b = {.plan = {.H = 1, .P = 1, .d = D, .r = D, .m = 2, .L = 2, .batch = 4, .test = 6}};
    open_bench(&b);
    fini_layer_start(&b.desk, 0);
    float *w = b.desk.parameters;
    double *k = b.desk.star, *v = k + D, size[] = {2, 3, 1};
    memset(w, 0, (size_t)b.desk.at.count * sizeof *w);
    for (int i = 0; i < D; i++) {
        k[i] = i == 1 ? 0.6 : i == 4 ? 0.8 : 0;
        v[i] = i == 2;
        w[b.desk.at.Wk + i * D + i] = w[b.desk.at.Wv + i * D + i] = 1;
        if (i < 3)
            w[b.desk.at.Wq + i * D + i] = (float)size[i];
    }
    w[b.desk.at.theta + 2] = -0.28F;
    w[b.desk.at.theta + 3] = 0.96F;
    fini_layer_look look;
    fini_layer_look_at(&b.desk, 0, &look);
    assert_float_equal(look.rank_one[0], 9.0 / 14, 1e-12);
    assert_float_equal(look.key[0][0], 0.6, 1e-12);
    assert_float_equal(look.value[0][0], -0.28, 1e-6);
    memset(w + b.desk.at.Wq, 0, D * D * sizeof *w);
    fini_layer_look_at(&b.desk, 0, &look);
    assert_true(isnan(look.rank_one[0]) && look.key[0][0] == 0);
    fini_arena_close(&b.arena);
}

/* With theta = 0 the excess risk is that of 0: P gamma^2, whether noises are shared or not (v* are orthonormal); a relevant token has
 * the mean mu along its k*. */
static void draw__has_the_moments_of_the_task(void **state)
{
    (void)state;
    for (int shared = 0; shared < 2; shared++) {
        bench b = {.plan = {.H = 1,
                            .P = 2,
                            .d = 20,
                            .r = 4,
                            .m = 3,
                            .L = 3,
                            .batch = 500,
                            .gamma = 0.6,
                            .mu = 3,
                            .eps = 2,
                            .shared = shared,
                            .test = 20000}};
        open_bench(&b);
        fini_layer_start(&b.desk, 3);
        memset(b.desk.parameters + b.desk.at.theta, 0, 20 * sizeof(float));
        fini_layer_look look;
        fini_layer_look_at(&b.desk, 3, &look);
        double z = (look.excess - 0.72) / look.error, y2 = 0, along = 0, both = 0;
        const int64_t d = b.plan.d, n = 40 * b.plan.batch;
        for (int64_t step = 0; step < 40; step++) {
            fini_layer_draw(&b.desk, 3, step, b.plan.batch, false);
            for (int64_t i = 0; i < b.plan.batch; i++) {
                const float *x = b.desk.X + i * 3 * d;
                y2 += b.desk.y[i] * b.desk.y[i] / (double)n;
                for (int64_t j = 0; j < d; j++) {
                    along += x[d + j] * b.desk.star[d + j] / (double)n; /* token 2, k*_2 */
                    both += (x[j] - 3 * b.desk.star[j]) * (x[d + j] - 3 * b.desk.star[d + j]) /
                            (double)(n * d);
                }
            }
        }
        print_message("shared %d: z = %.2f; E y^2 %.3f, mean %.3f, common %.4f\n", shared, z, y2,
                      along, both);
        assert_true(fabs(z) < 5);
        assert_true(fabs(y2 - 4.72) < 5 * 4.72 * sqrt(2.0 / (double)n));
        assert_true(fabs(along - 3) < 5 * 0.6 / sqrt((double)n));
        assert_true(fabs(both - (shared ? 0.36 : 0)) < 5 * 0.36 * sqrt(2.0 / (double)(n * d)));
        fini_arena_close(&b.arena);
    }
}

/* ---- the command ------------------------------------------------------------------------------------- */

#define SMALL "layer d=12 hidden=10 L=4 batch=8 steps=25 log_every=10 runs=5 test=20 H=2 alpha=0.02"

static const double *all_of(const fin_result *result, const char *name, int64_t *n)
{
    fin_series s = series(result, name);
    *n = 1;
    for (int i = 0; i < s.ndim; i++)
        *n *= s.shape[i];
    return s.data;
}

static void run__same_bytes_for_any_threads(void **state)
{
    (void)state;
    static const char *const names[] = {"excess_path", "rank_one_path", "key_path", "value_path"};
    fin_threads_set(1);
    fin_result *one = run(SMALL), *fewer = run(SMALL " runs=2");
    fin_threads_set(3);
    fin_result *many = run(SMALL);
    fin_threads_set(0);
    for (int i = 0; i < 4; i++) {
        int64_t n, m, few;
        const double *a = all_of(one, names[i], &n), *b = all_of(many, names[i], &m);
        const double *c = all_of(fewer, names[i], &few);
        assert_int_equal(n, m);
        assert_memory_equal(a, b, (size_t)n * sizeof *a);
        assert_memory_equal(a, c, (size_t)few * sizeof *a); /* runs are alone */
    }
    fin_result_destroy(one);
    fin_result_destroy(many);
    fin_result_destroy(fewer);
}

static int stop_at_once(void *user, const char *what, double done, double total)
{
    (void)what;
    assert_true(done <= total);
    return ++*(int *)user > 3;
}

static void run__says_what_is_wrong(void **state)
{
    (void)state;
    const struct {
        const char *text, *says;
    } bad[] = {
        {"layer H=2 d=3", "d = 4 or more"},
        {"layer P=3 L=2", "fewer than the P = 3"},
        {"layer batch=65536 L=4096 d=1024", "a smaller batch"},
        {"layer steps=1000000000 log_every=1", "a larger log_every"},
        {SMALL " alpha=100 gamma=1000 steps=200", "all 5 runs diverged"},
        {"layer alpha=nan", "alpha"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        fin_result *result = fin_result_create();
        assert_int_not_equal(run_into(bad[i].text, result, NULL, &err), FIN_OK);
        if (!strstr(err.message, bad[i].says))
            fail_msg("%s: %s", bad[i].text, err.message);
        fin_result_destroy(result);
    }
    int asked = 0;
    fin_progress progress = {stop_at_once, &asked};
    fin_result *result = fin_result_create();
    assert_int_equal(run_into(SMALL " steps=1000000", result, &progress, &err), FIN_ERR_CANCELLED);
    fin_result_destroy(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient__is_that_of_the_formula),
        cmocka_unit_test(steps__are_those_of_torch),
        cmocka_unit_test(look__finds_known_directions),
        cmocka_unit_test(draw__has_the_moments_of_the_task),
        cmocka_unit_test(run__same_bytes_for_any_threads),
        cmocka_unit_test(run__says_what_is_wrong),
    };
    return cmocka_run_group_tests_name("train_layer", tests, NULL, NULL);
}
