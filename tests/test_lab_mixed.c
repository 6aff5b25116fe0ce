/* The small attention layers of the commands of learning: against attention written out token by token,
 * derivatives against differences, sequences against their law, least squares against linear
 * systems. */
#include "test_command.h"

#include "finetti/random.h"
#include "lab/mixed.h"

enum { MOST = 16 };

static const fini_mixed_task task = {
    .d = 3, .dv = 2, .prior = 0.8, .noise = 0.3, .L = 300, .masked = 2};

static fini_arena arena;

/* n sequences with tokens, of a world with this task. */
static void open_set(fini_mixed_world *world, fini_mixed_set *set, const fini_mixed_task *t,
                     int64_t n)
{
    fini_mixed_world_make(world, t, 17);
    *set = (fini_mixed_set){.n = n, .world = world};
    arena = (fini_arena){0};
    fini_mixed_set_take(set, &arena, true);
    assert_int_equal(fini_arena_open(&arena, "sequences", &err), FIN_OK);
    fini_mixed_set_take(set, &arena, true);
    fini_mixed_draw(set, FINI_STREAM_SMALL, 0);
}

static void random_theta(int64_t n, double *theta)
{
    fin_random r;
    fin_random_open(&r, 3, FIN_STREAM_USER, 1);
    for (int64_t i = 0; i < n; i++)
        theta[i] = 0.7 * fin_random_normal(&r);
}

/* ---- sequences ------------------------------------------------------------------------------- */

static void draw__has_the_law(void **state)
{
    (void)state;
    enum { N = 4000 };
    fini_mixed_task t = task;
    fini_mixed_world world;
    fini_mixed_set set;
    t.L = 6;
    open_set(&world, &set, &t, N);
    int64_t p = world.p;
    for (int64_t i = 0; i < p * p; i++) { /* B B^-1 = 1 */
        double sum = 0;
        for (int64_t k = 0; k < p; k++)
            sum += world.B[i / p * p + k] * world.inverse[k * p + i % p];
        assert_true(fabs(sum - (i % (p + 1) == 0)) < 1e-12);
    }
    double keys = 0, noise = 0, prior = 0, far = 0, posterior = 0;
    for (int64_t i = 0; i < N; i++) {
        for (int64_t a = 0; a < p * p; a++) { /* moments are those of the tokens */
            double sum = 0;
            for (int64_t l = 0; l < t.L; l++)
                sum +=
                    set.tokens[(i * p + a / p) * t.L + l] * set.tokens[(i * p + a % p) * t.L + l];
            assert_true(fabs(sum - set.moments[i * p * p + a]) < 1e-10);
        }
        for (int64_t l = 0; l < t.L; l++) { /* unmixed: a unit key, and a value around Z k */
            double pair[MOST] = {0}, norm = 0;
            for (int64_t a = 0; a < p * p; a++)
                pair[a / p] += world.inverse[a] * set.tokens[(i * p + a % p) * t.L + l];
            for (int64_t a = 0; a < t.d; a++)
                norm += pair[a] * pair[a];
            assert_true(fabs(norm - 1) < 1e-10);
            keys += pair[0] / (double)(N * t.L);
            for (int64_t j = 0; j < t.dv; j++) {
                double rest = pair[t.d + j];
                for (int64_t a = 0; a < t.d; a++)
                    rest -= set.z[(i * t.dv + j) * t.d + a] * pair[a];
                noise += rest * rest / (double)(N * t.L * t.dv);
            }
        }
        for (int64_t a = 0; a < t.dv * t.d; a++) {
            double z = set.z[i * t.dv * t.d + a], m = set.mean[i * t.dv * t.d + a];
            prior += z * z / (double)(N * t.dv * t.d);
            far += (z - m) * m / (double)(N * t.dv * t.d);
            posterior += (z - m) * (z - m) / (double)(N * t.dv * t.d);
        }
    }
    print_message("key %.4f, noise %.4f of 0.3, prior %.4f of 0.8, E (z - m) m = %.4f\n", keys,
                  noise, prior, far);
    assert_true(fabs(keys) < 5 * sqrt(1.0 / 3 / (N * 6)));
    assert_true(fabs(noise / 0.3 - 1) < 5 * sqrt(2.0 / (N * 6 * 2)));
    assert_true(fabs(prior / 0.8 - 1) < 5 * sqrt(2.0 / (N * 6)));
    assert_true(fabs(far) < 5 * 0.5 / sqrt(N * 6)); /* the error is orthogonal to the mean */
    assert_true(posterior < 0.5 * prior);
    fini_arena_close(&arena);
}

/* ---- models ---------------------------------------------------------------------------------- */

/* V'K (K'K + lam)^-1 Wq q from the tokens of sequence i, by elimination. */
static void cme_by_hand(const fini_mixed_set *set, int64_t i, const double *theta, const double *q,
                        double *f)
{
    const fini_mixed_task *t = &set->world->task;
    int64_t d = t->d, dv = t->dv, p = set->world->p;
    double A[MOST][MOST + 1] = {{0}}, T[MOST][MOST] = {{0}};
    for (int64_t l = 0; l < t->L; l++) {
        double k[MOST] = {0}, v[MOST] = {0};
        for (int64_t c = 0; c < p; c++) {
            double x = set->tokens[(i * p + c) * t->L + l];
            for (int64_t a = 0; a < d; a++)
                k[a] += theta[a * p + c] * x;
            for (int64_t a = 0; a < dv; a++)
                v[a] += theta[(d + a) * p + c] * x;
        }
        for (int64_t a = 0; a < d; a++) {
            for (int64_t b = 0; b < d; b++)
                A[a][b] += k[a] * k[b];
            for (int64_t b = 0; b < dv; b++)
                T[b][a] += v[b] * k[a];
        }
    }
    for (int64_t a = 0; a < d; a++) {
        A[a][a] += exp(theta[p * p + d * d]);
        for (int64_t b = 0; b < d; b++)
            A[a][d] += theta[p * p + a * d + b] * q[b];
    }
    for (int64_t c = 0; c < d; c++)
        for (int64_t r = 0; r < d; r++) {
            double factor = r == c ? 0 : A[r][c] / A[c][c];
            for (int64_t j = c; j <= d && factor != 0; j++)
                A[r][j] -= factor * A[c][j];
        }
    for (int64_t b = 0; b < dv; b++) {
        f[b] = 0;
        for (int64_t a = 0; a < d; a++)
            f[b] += T[b][a] * A[a][d] / A[a][a];
    }
}

static void softmax_by_hand(const fini_mixed_set *set, int64_t i, int64_t heads,
                            const double *theta, const double *q, double *f)
{
    const fini_mixed_task *t = &set->world->task;
    int64_t d = t->d, dv = t->dv, p = set->world->p;
    memset(f, 0, (size_t)dv * sizeof *f);
    for (int64_t h = 0; h < heads; h++, theta += p * d + dv * p) {
        double total = 0, sum[MOST] = {0};
        for (int64_t l = 0; l < t->L; l++) {
            double score = 0;
            for (int64_t c = 0; c < p; c++)
                for (int64_t b = 0; b < d; b++)
                    score += set->tokens[(i * p + c) * t->L + l] * theta[c * d + b] * q[b];
            total += exp(score);
            for (int64_t c = 0; c < p; c++)
                sum[c] += exp(score) * set->tokens[(i * p + c) * t->L + l];
        }
        for (int64_t j = 0; j < dv * p; j++)
            f[j / p] += theta[p * d + j] * sum[j % p] / total;
    }
}

static void ask(const fini_mixed_model *m, const fini_mixed_set *set, const double *theta,
                double *f, double *J)
{
    if (m->form == FINI_MIXED_CME)
        fini_mixed_cme(m, theta, set->moments + m->p * m->p, 2, set->q + 2 * m->d, f, J);
    else
        fini_mixed_softmax(m, theta, set->tokens + m->L * m->p, 2, set->q + 2 * m->d, f, J);
}

static void model__as_written_out(void **state)
{
    (void)state;
    fini_mixed_world world;
    fini_mixed_set set;
    open_set(&world, &set, &task, 3);
    for (int c = 0; c < 3; c++) {
        fini_mixed_model m =
            fini_mixed_model_make(c ? FINI_MIXED_SOFTMAX : FINI_MIXED_CME, c == 2 ? 3 : 1, &task);
        double theta[128], f[4], by_hand[4], F[MOST];
        assert_int_equal(m.parameters, c == 0 ? 35 : c == 1 ? 25 : 75);
        random_theta(m.parameters, theta);
        ask(&m, &set, theta, f, NULL);
        for (int k = 0; k < 2; k++) {
            const double *q = set.q + (2 + k) * m.d;
            if (c == 0)
                cme_by_hand(&set, 1, theta, q, by_hand + 2 * k);
            else
                softmax_by_hand(&set, 1, m.heads, theta, q, by_hand + 2 * k);
        }
        for (int k = 0; k < 4; k++)
            assert_true(fabs(f[k] - by_hand[k]) < 1e-11);
        if (c > 0)
            continue;
        fini_mixed_matrix(&m, theta, set.moments + m.p * m.p, F);
        for (int k = 0; k < 4; k++) {
            double sum = 0;
            for (int64_t b = 0; b < m.d; b++)
                sum += F[k % 2 * m.d + b] * set.q[(2 + k / 2) * m.d + b];
            assert_true(fabs(sum - f[k]) < 1e-12);
        }
    }
    fini_arena_close(&arena);
}

static void model__derivatives(void **state)
{
    (void)state;
    fini_mixed_world world;
    fini_mixed_set set;
    open_set(&world, &set, &task, 3);
    for (int c = 0; c < 3; c++) {
        fini_mixed_model m =
            fini_mixed_model_make(c ? FINI_MIXED_SOFTMAX : FINI_MIXED_CME, c == 2 ? 3 : 1, &task);
        double theta[128], f[4], J[4 * 128], up[4], down[4], worst = 0;
        random_theta(m.parameters, theta);
        ask(&m, &set, theta, f, J);
        for (int64_t a = 0; a < m.parameters; a++) {
            double keep = theta[a], h = 1e-5;
            theta[a] = keep + h;
            ask(&m, &set, theta, up, NULL);
            theta[a] = keep - h;
            ask(&m, &set, theta, down, NULL);
            theta[a] = keep;
            for (int k = 0; k < 4; k++)
                worst = fmax(worst, fabs((up[k] - down[k]) / (2 * h) - J[k * m.parameters + a]));
        }
        print_message("form %d, %d heads: derivatives off by %.1e\n", m.form, (int)m.heads, worst);
        assert_true(worst < 1e-7);
    }
    fini_arena_close(&arena);
}

/* The sum of squares and its gradient, all masked tokens at once: J'r, token by token. */
static void model__slope(void **state)
{
    (void)state;
    fini_mixed_world world;
    fini_mixed_set set;
    double theta[128], f[128], J[128 * 35], g[35] = {0}, sum = 0;
    open_set(&world, &set, &task, 3);
    fini_mixed_model m = fini_mixed_model_make(FINI_MIXED_CME, 1, &task);
    assert_true(m.rows * m.parameters <= 128 * 35);
    random_theta(m.parameters, theta);
    double value = fini_mixed_cme_slope(&m, theta, &set, 1, g);
    fini_mixed_answers(&m, theta, &set, 1, f, J);
    for (int64_t k = 0; k < m.rows; k++) {
        f[k] -= set.y[m.rows + k];
        sum += f[k] * f[k];
        for (int64_t a = 0; a < m.parameters; a++)
            g[a] -= f[k] * J[k * m.parameters + a];
    }
    assert_true(fabs(value - sum) < 1e-12 * sum);
    for (int64_t a = 0; a < m.parameters; a++)
        assert_true(fabs(g[a]) < 1e-10 * sum);
    fini_arena_close(&arena);
}

/* A label is <head, F> of cme with Wq = 1; its derivatives by differences, in theta and in the head. */
static void model__label(void **state)
{
    (void)state;
    fini_mixed_world world;
    fini_mixed_set set;
    enum { P = 35, ALL = 32, HEAD = 6 };
    double all[ALL], cme[P], J[ALL], F[MOST], label, up, down, sum = 0;
    open_set(&world, &set, &task, 1);
    fini_mixed_model m = fini_mixed_model_make(FINI_MIXED_CME, 1, &task);
    fini_mixed_model l = fini_mixed_model_make(FINI_MIXED_LABEL, 1, &task);
    assert_int_equal(l.parameters, ALL);
    random_theta(ALL, all);
    memcpy(cme, all, 25 * sizeof *cme);
    for (int a = 0; a < 9; a++)
        cme[25 + a] = a % 4 == 0;
    cme[34] = all[25];
    fini_mixed_label(&l, all, set.moments, &label, J);
    fini_mixed_matrix(&m, cme, set.moments, F);
    for (int a = 0; a < HEAD; a++)
        sum += all[ALL - HEAD + a] * F[a];
    assert_true(fabs(sum - label) < 1e-12);
    for (int a = 0; a < ALL; a++) {
        double keep = all[a];
        all[a] = keep + 1e-5;
        fini_mixed_label(&l, all, set.moments, &up, NULL);
        all[a] = keep - 1e-5;
        fini_mixed_label(&l, all, set.moments, &down, NULL);
        all[a] = keep;
        assert_true(fabs((up - down) / 2e-5 - J[a]) < 1e-7);
    }
    fini_arena_close(&arena);
}

/* At the best parameters cme is the posterior mean, and softmax with scores kappa q.k on values. */
static void model__truth(void **state)
{
    (void)state;
    fini_mixed_world world;
    fini_mixed_set set;
    double theta[128], F[MOST], f[4], one[4];
    open_set(&world, &set, &task, 3);
    fini_mixed_model cme = fini_mixed_model_make(FINI_MIXED_CME, 1, &task);
    fini_mixed_truth(&cme, &world, 0, 0, theta);
    fini_mixed_matrix(&cme, theta, set.moments + cme.p * cme.p, F);
    for (int64_t a = 0; a < 6; a++)
        assert_true(fabs(F[a] - set.mean[6 + a]) < 1e-10);
    fini_mixed_model two = fini_mixed_model_make(FINI_MIXED_SOFTMAX, 2, &task);
    fini_mixed_truth(&two, &world, 4, 1.25, theta);
    ask(&two, &set, theta, f, NULL);
    for (int k = 0; k < 2; k++) { /* by hand, on unmixed tokens */
        double total = 0, sum[2] = {0};
        for (int64_t l = 0; l < task.L; l++) {
            double pair[MOST] = {0}, score = 0;
            for (int64_t a = 0; a < 25; a++)
                pair[a / 5] += world.inverse[a] * set.tokens[(5 + a % 5) * task.L + l];
            for (int64_t a = 0; a < 3; a++)
                score += 4 * pair[a] * set.q[(2 + k) * 3 + a];
            total += exp(score);
            for (int j = 0; j < 2; j++)
                sum[j] += 1.25 * exp(score) * pair[3 + j];
        }
        for (int j = 0; j < 2; j++) {
            one[k * 2 + j] = sum[j] / total;
            assert_true(fabs(one[k * 2 + j] - f[k * 2 + j]) < 1e-10);
        }
    }
    fini_arena_close(&arena);
}

static void queries__have_their_covariance(void **state)
{
    (void)state;
    static const double covariance[9] = {0.5, 0.1, 0, 0.1, 0.3, -0.1, 0, -0.1, 0.2};
    fini_mixed_task t = task;
    fini_mixed_world world;
    fini_mixed_set set;
    double sum[9] = {0};
    enum { N = 20000 };
    t.L = 1;
    open_set(&world, &set, &t, N);
    assert_true(fini_mixed_world_queries(&world, covariance));
    fini_mixed_draw(&set, FINI_STREAM_SMALL, 0);
    for (int64_t i = 0; i < 2 * N; i++)
        for (int a = 0; a < 9; a++)
            sum[a] += set.q[i * 3 + a / 3] * set.q[i * 3 + a % 3] / (2 * N);
    for (int a = 0; a < 9; a++)
        assert_true(fabs(sum[a] - covariance[a]) < 5 * 0.6 / sqrt(2 * N));
    const double singular[9] = {1, 1, 0, 1, 1, 0, 0, 0, 1};
    assert_false(fini_mixed_world_queries(&world, singular));
    fini_arena_close(&arena);
}

/* A part is the same sequences; the Bayes prediction is what cme says at the best parameters. */
static void set__parts_and_bayes(void **state)
{
    (void)state;
    fini_mixed_world world;
    fini_mixed_set set;
    double theta[128], f[4], other[4];
    open_set(&world, &set, &task, 3);
    fini_mixed_set part = fini_mixed_part(&set, 1, 2);
    for (int form = 0; form < 2; form++) {
        fini_mixed_model m = fini_mixed_model_make(form, 1, &task);
        fini_mixed_truth(&m, &world, 4, 1, theta);
        fini_mixed_answers(&m, theta, &set, 2, f, NULL);
        fini_mixed_answers(&m, theta, &part, 1, other, NULL);
        assert_memory_equal(f, other, sizeof f);
        for (int k = 0; k < 4; k++) {
            assert_true(fini_mixed_bayes(&set, 2, k) == fini_mixed_bayes(&part, 1, k));
            if (m.form == FINI_MIXED_CME)
                assert_true(fabs(f[k] - fini_mixed_bayes(&set, 2, k)) < 1e-10);
        }
    }
    assert_true(part.n == 2 && part.y == set.y + 4 && part.z == set.z + 6);
    fini_arena_close(&arena);
}

/* ---- least squares --------------------------------------------------------------------------- */

enum { ROWS = 40, WIDTH = 6 };
static double design[ROWS][WIDTH], wanted[ROWS];

static void linear_row(const void *user, const double *theta, int64_t i, double *r, double *J)
{
    (void)user;
    *r = -wanted[i];
    for (int a = 0; a < WIDTH; a++) {
        *r += design[i][a] * theta[a];
        if (J)
            J[a] = design[i][a];
    }
}

/* Rosenbrock's valley: r = (10 (y - x^2), 1 - x), minimum 0 at (1, 1). */
static void valley_row(const void *user, const double *theta, int64_t i, double *r, double *J)
{
    (void)user;
    *r = i ? 1 - theta[0] : 10 * (theta[1] - theta[0] * theta[0]);
    if (J) {
        J[0] = i ? -1 : -20 * theta[0];
        J[1] = i ? 0 : 10;
    }
}

static void fit__finds_the_minimum(void **state)
{
    (void)state;
    fin_random r;
    fin_random_open(&r, 8, FIN_STREAM_USER, 0);
    for (int i = 0; i < ROWS; i++) {
        wanted[i] = fin_random_normal(&r);
        for (int a = 0; a < WIDTH; a++)
            design[i][a] = fin_random_normal(&r) * pow(10, a - 3);
    }
    double H[WIDTH * WIDTH] = {0}, solution[WIDTH] = {0};
    for (int i = 0; i < ROWS; i++)
        for (int a = 0; a < WIDTH; a++) {
            solution[a] += design[i][a] * wanted[i];
            for (int b = 0; b < WIDTH; b++)
                H[a * WIDTH + b] += design[i][a] * design[i][b];
        }
    assert_true(fini_hand_cholesky(WIDTH, H));
    fini_hand_solve(WIDTH, H, solution);
    for (int way = 0; way < 4; way++) {
        fini_mixed_rows rows = {.n = way < 2 ? ROWS : 2,
                                .rows = 1,
                                .parameters = way < 2 ? WIDTH : 2,
                                .share = 1,
                                .one = way < 2 ? linear_row : valley_row};
        fini_mixed_fit fit = {.most = 1000, .enough = 1e-12};
        double theta[WIDTH] = {way < 2 ? 0 : -1.2, way < 2 ? 0 : 1};
        fini_arena memory = {0};
        fini_mixed_fit_take(&fit, &memory, rows.parameters, 1);
        assert_int_equal(fini_arena_open(&memory, "a fit", &err), FIN_OK);
        fini_mixed_fit_take(&fit, &memory, rows.parameters, 1);
        if (way % 2 == 0)
            fini_mixed_fit_run(&fit, &rows, theta);
        else
            assert_int_equal(fini_mixed_fit_descend(&fit, &rows, theta, &err), FIN_OK);
        print_message("way %d: %d steps, gradient %.1e\n", way, (int)fit.steps, fit.gradient);
        for (int a = 0; a < rows.parameters; a++) {
            double truth = way < 2 ? solution[a] : 1;
            assert_true(fabs(theta[a] - truth) < 1e-6 * fmax(1, fabs(truth)));
        }
        fini_arena_close(&memory);
    }
}

static void hand__systems(void **state)
{
    (void)state;
    double A[4] = {4, 0, 2, 3}, x[2] = {8, 7}, bad[4] = {1, 0, 2, 1}, nan[1] = {NAN};
    assert_true(fini_hand_cholesky(2, A)); /* 4 2; 2 3 */
    fini_hand_solve(2, A, x);
    assert_true(fabs(x[0] - 1.25) < 1e-14 && fabs(x[1] - 1.5) < 1e-14);
    assert_false(fini_hand_cholesky(2, bad));
    assert_false(fini_hand_cholesky(1, nan));
    double S[4] = {2, 1, 1, 2}, w[2], work[128];
    assert_int_equal(fini_hand_eigen(2, S, w, work, &err), FIN_OK);
    assert_true(fabs(w[0] - 1) < 1e-14 && fabs(w[1] - 3) < 1e-14);
    assert_true(fabs(fabs(S[2]) - sqrt(0.5)) < 1e-14 && fabs(S[2] - S[3]) < 1e-14);
    assert_true(fini_lab_seed(1, 2, 3) != fini_lab_seed(1, 3, 2));
    const double line[6] = {1, 0, 1, 1, 1, 2}, up[3] = {1, 3, 5}, same[4] = {1, 2, 2, 4};
    assert_true(fini_hand_regress(3, 2, line, up, A, x)); /* 1 + 2 t */
    assert_true(fabs(x[0] - 1) < 1e-13 && fabs(x[1] - 2) < 1e-13);
    assert_false(fini_hand_regress(2, 2, same, up, A, x));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hand__systems),
        cmocka_unit_test(draw__has_the_law),
        cmocka_unit_test(queries__have_their_covariance),
        cmocka_unit_test(model__as_written_out),
        cmocka_unit_test(model__derivatives),
        cmocka_unit_test(model__slope),
        cmocka_unit_test(model__label),
        cmocka_unit_test(model__truth),
        cmocka_unit_test(set__parts_and_bayes),
        cmocka_unit_test(fit__finds_the_minimum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
