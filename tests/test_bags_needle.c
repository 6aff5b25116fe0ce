/* One odd token among many: it is found, by a start where bags reach farthest, and not cut off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bags_sample.h"
#include "fault.h"
#include "test_size.h"
#include "bags/descend.h"
#include "bags/judge.h"

#include <string.h>

static fin_error err;

#define OK(call)                                                                                   \
    do {                                                                                           \
        err = (fin_error){FIN_OK, ""};                                                             \
        if (call)                                                                                  \
            fail_msg("%s", err.message);                                                           \
    } while (0)

enum { N = 60, D = 16 };

/* N bags of L tokens; every other one is of class 1, and has one token that is `shift` further in `odd` of
 * the columns. where: that token, counted from the first of all. */
typedef struct hay {
    fin_bags bags;
    int64_t offsets[N + 1], where[N];
    double *tokens, labels[N];
} hay;

static void draw(hay *h, int64_t L, int odd, double shift, uint64_t seed)
{
    fin_random r;
    h->tokens = malloc((size_t)(N * L * D) * sizeof *h->tokens);
    fin_random_normals_f64(seed, FIN_STREAM_USER, 0, 0, N * L * D, h->tokens);
    fin_random_open(&r, seed, FIN_STREAM_USER + 1, 0);
    h->offsets[0] = 0;
    for (int i = 0; i < N; i++) {
        h->offsets[i + 1] = (i + 1) * L;
        h->labels[i] = i % 2;
        h->where[i] = i * L + fin_random_below(&r, L);
        for (int j = 0; j < odd && h->labels[i] > 0; j++)
            h->tokens[h->where[i] * D + 3 * j] += shift;
    }
    h->bags = (fin_bags){N, D, 0, N, h->offsets, FIN_F64, h->tokens, h->labels, NULL};
}

static double auc_of(const fin_fit *fit, const hay *fresh)
{
    fin_fit_score score;
    double p[2 * N];
    OK(fin_fit_predict(fit, &fresh->bags, p, NULL, NULL, &err));
    OK(fin_fit_judge(N, 2, fresh->labels, p, NULL, NULL, &score, &err));
    return score.auc;
}

/* Positive bags whose needle is the most probable token. */
static double needles_of(const fin_fit *fit, const hay *fresh, int64_t L)
{
    double *prior = malloc((size_t)(N * L) * sizeof *prior), right = 0;
    OK(fin_fit_locate(fit, &fresh->bags, &(fin_locations){.prior = prior}, NULL, &err));
    for (int i = 1; i < N; i += 2) {
        int64_t best = i * L;
        for (int64_t l = i * L; l < (i + 1) * L; l++)
            best = prior[l] > prior[best] ? l : best;
        right += best == fresh->where[i];
    }
    free(prior);
    return right;
}

/* Of 200 tokens, five deviations out in four columns; of 400, four in two, which mean pooling leads nobody
 * to: with two heads there is no other start. */
static void needle__is_found(void **state)
{
    (void)state;
    static const int model[] = {FIN_MODEL_SOFTMAX, FIN_MODEL_SOFTMAX, FIN_MODEL_MIXTURE,
                                FIN_MODEL_MIXTURE, FIN_MODEL_ANY};
    static hay h, fresh;
    for (int hard = 0; hard < 2; hard++) {
        const int64_t L = hard ? 400 : sized(60, 200, 1000);
        draw(&h, L, hard ? 2 : 4, hard ? 4 : 5, hard ? 2 : 1);
        draw(&fresh, L, hard ? 2 : 4, hard ? 4 : 5, hard ? 102 : 2);
        for (int k = 0; k < 5; k++) {
            fin_fit_settings s;
            fin_fit *fit = NULL;
            fin_settings_defaults(&fin_fit_table, &s, sizeof s);
            s.model = model[k];
            s.basis = k % 2 ? FIN_BASIS_LINEAR : FIN_BASIS_AUTO;
            s.calibrate = 1; /* no */
            s.landmarks = 50;
            if (model[k] == FIN_MODEL_ANY)
                s.positive = 1;
            OK(fin_fit_create(&fit, &s, 2, &h.bags, NULL, NULL, NULL, &err));
            double auc = auc_of(fit, &fresh), right = needles_of(fit, &fresh, L);
            print_message("model %d, basis %d: AUC %.3f, %.0f of %d needles\n", s.model, s.basis,
                          auc, right, N / 2);
            assert_true(auc >= (hard ? 0.9 : 0.95) && right >= 0.9 * N / 2);
            fin_fit_destroy(fit);
            if (!hard || k != 1)
                continue;
            s.heads = 2;
            OK(fin_fit_create(&fit, &s, 2, &h.bags, NULL, NULL, NULL, &err));
            auc = auc_of(fit, &fresh);
            print_message("from mean pooling: AUC %.3f\n", auc);
            assert_true(auc < 0.8); /* or the test says nothing of the start */
            fin_fit_destroy(fit);
        }
        free(h.tokens);
        free(fresh.tokens);
    }
}

/* ---- the start ------------------------------------------------------------------------------------- */

typedef struct ground {
    fini_part part;
    fini_phi phi;
    fini_problem problem;
    double weights[N], x[2 * D + 1];
} ground;

static void open_ground(ground *g, const hay *h, int model)
{
    fin_fit_settings s;
    fin_settings_defaults(&fin_fit_table, &s, sizeof s);
    s.model = model;
    s.basis = FIN_BASIS_LINEAR;
    *g = (ground){.part = {.settings = s}};
    fini_part_shape(&g->part, 2);
    OK(fini_map_fit(&g->part.map, &s, 2, &h->bags, NULL, NULL, NULL, &err));
    OK(fini_map_apply(&g->part.map, &h->bags, &g->phi, NULL, &err));
    g->part.parameters = model == FIN_MODEL_ANY ? D + 1 : 2 * D + 1;
    for (int i = 0; i < N; i++)
        g->weights[i] = 1;
    g->problem = (fini_problem){.part = &g->part,
                                .shape = &g->part.shape,
                                .phi = &g->phi,
                                .labels = h->labels,
                                .weights = g->weights,
                                .sum = fini_sum_alone};
    OK(fini_problem_count(&g->problem, &err));
}

static void close_ground(ground *g)
{
    fini_phi_close(&g->phi);
    fini_map_close(&g->part.map);
}

/* Key scores u (N L) of a start: its first D numbers, which are the values of any. */
static void score(const ground *g, int64_t rows, double *u)
{
    for (int64_t l = 0; l < rows; l++) {
        double buffer[D];
        const double *z = fini_phi_row(&g->phi, l, buffer);
        u[l] = 0;
        for (int j = 0; j < D; j++)
            u[l] += g->x[j] * z[j];
    }
}

/* The needle is among the highest twentieth of its bag, and bags that have one reach higher: whichever
 * class it is. (That it is the highest of all, the descent sees to.) */
static void extreme__points_at_the_needle(void **state)
{
    (void)state;
    enum { L = 400 };
    static const int models[] = {FIN_MODEL_SOFTMAX, FIN_MODEL_MIXTURE, FIN_MODEL_ANY};
    static hay h;
    static double u[N * L];
    draw(&h, L, 2, 4, 2);
    for (int k = 0; k < 6; k++) {
        ground g;
        bool found = false;
        double top[N], scratch[N], above = 0, marks[N];
        for (int i = 0; i < N && k == 3; i++) /* from now on it is class 0 that has one */
            h.labels[i] = 1 - h.labels[i];
        open_ground(&g, &h, models[k % 3]);
        g.part.shape.positive = k < 3;
        OK(fini_extreme(&g.problem, g.x, &found, &err));
        assert_true(found);
        score(&g, N * L, u);
        for (int i = 0; i < N; i++) {
            top[i] = -INFINITY;
            marks[i] = i % 2;
            for (int64_t l = i * L; l < (i + 1) * L; l++) {
                top[i] = fmax(top[i], u[l]);
                above += i % 2 && u[l] > u[h.where[i]];
            }
        }
        double auc = fini_auc(N, marks, 1, top, 1, scratch), rank = above / (N / 2.0) / L;
        print_message("model %d, class %d: AUC %.3f, above the needle %.4f\n", models[k % 3], k < 3,
                      auc, rank);
        assert_true(auc > 0.5 && rank < 0.05); /* by chance: both 0.5 */
        close_ground(&g);
    }
    free(h.tokens);
}

/* Noise: found or not, what comes out is finite, and so it is when columns are the same in all bags, or
 * bags in one class only. */
static void extreme__of_noise(void **state)
{
    (void)state;
    static hay h;
    draw(&h, 20, 0, 0, 4);
    for (int k = 0; k < 3; k++) {
        ground g;
        bool found = true;
        for (int64_t t = 0; t < N * 20 * D && k == 1; t++)
            h.tokens[t] = (double)((t / D % 20 + t % D) % 3); /* every bag has the same ends */
        open_ground(&g, &h, FIN_MODEL_SOFTMAX);
        for (int i = 0; i < N && k == 2; i++)
            g.weights[i] = h.labels[i];
        OK(fini_problem_count(&g.problem, &err));
        OK(fini_extreme(&g.problem, g.x, &found, &err));
        assert_true(k == 0 || !found);
        for (int j = 0; j < 2 * D + 1; j++)
            assert_true(isfinite(g.x[j]));
        close_ground(&g);
    }
    free(h.tokens);
}

/* Where zero is does not matter: keys and values are the same 1e7 deviations away, where the variance as a difference
 * of squares would be rounding. */
static void extreme__does_not_mind_where_zero_is(void **state)
{
    (void)state;
    enum { L = 40 };
    static hay h;
    static double z[N * L * D];
    double x[2][2 * D + 1], shift[] = {0, 1e7}, most = 0, sum = 0, far = 0;
    draw(&h, L, 2, 4, 2);
    for (int k = 0; k < 2; k++) {
        ground g;
        bool found = false;
        open_ground(&g, &h, FIN_MODEL_SOFTMAX);
        for (int64_t t = 0; t < N * L; t++) {
            double buffer[D];
            const double *row = fini_phi_row(&g.phi, t, buffer);
            for (int j = 0; j < D; j++)
                z[t * D + j] = row[j] + shift[k];
        }
        g.phi.bags.tokens = z;
        g.phi.center = g.phi.scale = g.phi.bound = NULL;
        OK(fini_extreme(&g.problem, g.x, &found, &err));
        assert_true(found);
        memcpy(x[k], g.x, sizeof x[k]);
        close_ground(&g);
    }
    for (int j = 0; j < 2 * D; j++) {
        most = fmax(most, fabs(x[0][j]));
        far = fmax(far, fabs(x[1][j] - x[0][j]));
    }
    for (int j = 0; j < D; j++)
        sum += x[1][D + j];
    print_message("far from zero: %.2g of %.3g\n", far, most);
    assert_true(far < 1e-6 * most);
    assert_true(fabs(x[1][2 * D] - x[0][2 * D] + shift[1] * sum) < 1e-6 * fabs(shift[1] * sum));
    free(h.tokens);
}

static fin_status extreme_once(void *user, fin_error *e)
{
    ground *g = user;
    bool found;
    return fini_extreme(&g->problem, g->x, &found, e);
}

static void extreme__without_memory(void **state)
{
    (void)state;
    static hay h;
    ground g;
    draw(&h, 10, 4, 5, 5);
    open_ground(&g, &h, FIN_MODEL_MIXTURE);
    fin_threads_set(1);
    assert_true(fault_every(extreme_once, &g) >= 6);
    fin_threads_set(0);
    close_ground(&g);
    free(h.tokens);
}

/* ---- bounds ------------------------------------------------------------------------------------------ */

/* By definition: the larger of three deviations, and of 1.5 times what bags reach on average. */
static void bounds__follow_the_size_of_bags(void **state)
{
    (void)state;
    static hay h;
    for (int k = 0; k < 3; k++) {
        const int64_t sizes[] = {2, 20, 400}, L = sizes[k];
        ground g;
        draw(&h, L, 0, 0, 6);
        open_ground(&g, &h, FIN_MODEL_SOFTMAX);
        for (int j = 0; j < D; j++) {
            double mean = 0, square = 0, reach = 0;
            for (int64_t t = 0; t < N * L; t++)
                mean += h.tokens[t * D + j] / (double)(N * L);
            for (int64_t t = 0; t < N * L; t++)
                square += pow(h.tokens[t * D + j] - mean, 2) / (double)(N * L);
            for (int i = 0; i < N; i++) {
                double most = 0;
                for (int64_t t = i * L; t < (i + 1) * L; t++)
                    most = fmax(most, fabs(h.tokens[t * D + j] - mean));
                reach += most / N;
            }
            double wanted = fmax(3 * sqrt(square), 1.5 * reach), got = g.part.map.bound[j];
            assert_true(fabs(got - wanted) < 1e-12 * wanted);
            if (k == 0) /* small bags: three deviations, as ever */
                assert_true(fabs(got - 3 * sqrt(square)) < 1e-12 * got);
            if (k == 2) /* among 400, four are nothing special */
                assert_true(got > 4.2 * sqrt(square));
        }
        /* so that a value of four deviations is seen as it is, and one of forty is not */
        double token[2 * D], buffer[D];
        const int64_t offsets[] = {0, 2};
        for (int j = 0; j < D; j++) {
            token[j] = g.part.map.center[j] + 4;
            token[D + j] = g.part.map.center[j] + 40;
        }
        fin_bags one = {1, D, 0, 1, offsets, FIN_F64, token, NULL, NULL};
        fini_phi phi;
        OK(fini_map_apply(&g.part.map, &one, &phi, NULL, &err));
        const double *z = fini_phi_row(&phi, 0, buffer);
        double four = z[0] / g.part.map.scale[0];
        z = fini_phi_row(&phi, 1, buffer);
        double forty = z[0] / g.part.map.scale[0];
        assert_true(k == 2 ? fabs(four - 4) < 1e-9 : k == 1 || four < 3.6);
        assert_true(fabs(forty - g.part.map.bound[0]) < 1e-9);
        fini_phi_close(&phi);
        close_ground(&g);
        free(h.tokens);
    }
}

/* One number beyond all measure does not move the bound of others far: a bag counts for at most a hundred
 * deviations. */
static void bounds__take_one_wild_bag(void **state)
{
    (void)state;
    static hay h;
    ground g;
    draw(&h, 10, 0, 0, 7);
    h.tokens[0] = 1e12;
    open_ground(&g, &h, FIN_MODEL_SOFTMAX);
    double mean = g.part.map.center[0], square = 0;
    for (int64_t t = 0; t < N * 10; t++)
        square += pow(h.tokens[t * D] - mean, 2) / (N * 10);
    assert_true(g.part.map.bound[0] <= fmax(3, 1.5 * 100) * sqrt(square) * (1 + 1e-9));
    assert_true(g.part.map.bound[0] >= 3 * sqrt(square) * (1 - 1e-9));
    assert_true(g.part.map.bound[1] < 6); /* the other columns do not notice */
    close_ground(&g);
    free(h.tokens);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(needle__is_found),
        cmocka_unit_test(extreme__points_at_the_needle),
        cmocka_unit_test(extreme__of_noise),
        cmocka_unit_test(extreme__does_not_mind_where_zero_is),
        cmocka_unit_test(extreme__without_memory),
        cmocka_unit_test(bounds__follow_the_size_of_bags),
        cmocka_unit_test(bounds__take_one_wild_bag),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
