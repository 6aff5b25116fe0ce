/* Several heads: reduced and ambient SGD are the same in law (Kolmogorov-Smirnov on all products of the
 * vectors, and on products of two of those), one head is the engine of one head, wrong laws are told
 * apart; the gradient is that of finite differences, the exact risk that of one head and of tokens drawn
 * one by one; bytes do not depend on threads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_size.h"
#include "test_train_help.h"
#include "train/heads.h"

#define NEAR(a, b, tolerance) assert_true(fabs((a) - (b)) <= (tolerance))
enum { MOST = 12000, NUMBERS = 400 };

static fini_heads_plan plan_of(int64_t H, int64_t P, int64_t d, bool shared)
{
    return (fini_heads_plan){
        .model = {H, P, d, 6, sqrt(0.5), sqrt(0.5 * (double)d), 0.3, shared},
        .lam = 0.6,
        .decay = 0.02,
        .alpha = 0.03,
        .until = 20,
        .batch = 3,
        .runs = 1500,
        .seed = 7,
    };
}

/* (NUMBERS, runs): what is compared of the runs after some steps. */
typedef struct sample {
    int64_t runs;
    int numbers;
    double x[NUMBERS][MOST];
} sample;

static void simulate(const fini_heads_plan *plan, int64_t steps, sample *out)
{
    fini_heads *o;
    int rows = (int)FINI_HEADS_ROWS(plan->model.H, plan->model.P);
    OK(fini_heads_create(&o, plan, &err));
    OK(fini_heads_advance(o, 0, steps, steps, NULL, &err));
    out->runs = plan->runs;
    for (int64_t run = 0; run < plan->runs; run++) {
        double gram[FINI_HEADS_STATE];
        fini_heads_get(o, run, gram);
        int n = 0;
        for (int i = 0; i < rows; i++)
            out->x[n++][run] = gram[i];
        for (int i = 0; i < rows; i++)
            for (int j = 0; j <= i && n < NUMBERS; j++)
                out->x[n++][run] = gram[i] * gram[j];
        out->numbers = n;
    }
    fini_heads_destroy(o);
}

/* The least probability of all numbers, times their number. */
static double compare(sample *a, sample *b)
{
    double least = 1;
    assert_int_equal(a->numbers, b->numbers);
    for (int i = 0; i < a->numbers; i++)
        least = fmin(least, ks_probability(a->runs, a->x[i], b->runs, b->x[i]));
    return fmin(1, least * a->numbers);
}

static sample one, two;

typedef struct law {
    int lean;
    int64_t H, P, d, L, batch, steps, runs;
    double lam, alpha, gamma, mu; /* 0: the usual */
} law;
static const law laws[] = {
    {1, 2, 2, 12, .steps = 30},
    {1, 2, 2, 80, .L = 10, .batch = 5, .steps = 40, .lam = 2, .alpha = 0.01},
    /* one long step: nearly all of it is what the gradients have beyond the frame */
    {1, 2, 2, 12, .steps = 1, .runs = MOST, .alpha = 2},
    {0, 2, 2, 13, .steps = 2, .runs = MOST, .alpha = 1, .batch = 1},
    {0, 2, 2, 40, .L = 2, .steps = 20},  /* no ordinary token */
    {0, 2, 2, 40, .L = 40, .steps = 10}, /* more than are summed in float at a time */
    {1, 1, 2, 12, .steps = 30},
    {0, 2, 1, 12, .steps = 30},
    {0, 1, 1, 8, .steps = 30},
    {1, 3, 2, 16, .steps = 20},
    {0, 2, 3, 14, .steps = 20},
    {0, 4, 4, 24, .steps = 10},
    {0, 2, 2, 20, .steps = 30, .gamma = 2, .mu = 1},
};

static fini_heads_plan plan_of_law(const law *l, bool shared, int64_t fewer)
{
    fini_heads_plan p = plan_of(l->H, l->P, l->d, shared);
    p.model.L = l->L ? l->L : p.model.L;
    p.batch = l->batch ? l->batch : p.batch;
    p.lam = l->lam > 0 ? l->lam : p.lam;
    p.alpha = l->alpha > 0 ? l->alpha : p.alpha;
    p.model.gamma = l->gamma > 0 ? l->gamma : p.model.gamma;
    p.model.mu = l->mu > 0 ? l->mu : p.model.mu;
    p.runs = (l->runs ? l->runs : p.runs) / fewer;
    return p;
}

static void reduced__same_law_as_ambient(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof laws / sizeof *laws; i++)
        for (int shared = 0; shared < 2; shared++) {
            if (!laws[i].lean && !sized(0, 0, 1))
                continue;
            fini_heads_plan p = plan_of_law(&laws[i], shared, sized(16, 1, 1));
            simulate(&p, laws[i].steps, &one);
            p.ambient = true;
            p.seed++;
            simulate(&p, laws[i].steps, &two);
            double probability = compare(&one, &two);
            print_message("H %d P %d d %d %s: p %.3g of %d numbers\n", (int)laws[i].H,
                          (int)laws[i].P, (int)laws[i].d, shared ? "shared" : "independent",
                          probability, one.numbers);
            assert_true(probability > 1e-5);
        }
}

/* The same test sees noise that is shared, a deviation that is 10 % off, a dimension too many. */
static void wrong_laws__are_told_apart(void **state)
{
    (void)state;
    fini_heads_plan p = plan_of_law(&laws[0], false, 1);
    p.runs = MOST;
    simulate(&p, 20, &one);
    for (int wrong = 0; wrong < 4; wrong++) {
        fini_heads_plan other = p;
        other.seed++;
        other.model.shared = wrong == 1;
        other.model.gamma *= wrong == 2 ? 1.1 : 1;
        other.model.d += wrong == 3;
        simulate(&other, 20, &two);
        double probability = compare(&one, &two);
        print_message("wrong %d: p %.3g\n", wrong, probability);
        assert_true(wrong ? probability < 1e-6 : probability > 1e-3);
    }
}

/* H = P = 1: kappa, nu, theta, eta, rho and their products, against fin_train's engine. */
static void one_head__same_law_as_the_engine_of_one_head(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        fini_heads_plan p = plan_of(1, 1, i ? 80 : 12, i);
        fin_task_settings ts = task_settings("slr", p.model.d, p.model.L);
        ts.eps = p.model.eps;
        fin_task *task = task_make("slr", &ts, 3, 0);
        fin_form_settings fs = form_settings("erf", p.lam);
        fin_train_settings s = train_settings(FIN_ENGINE_REDUCED, p.runs, 40);
        s.alpha = p.alpha = i ? 0.01 : 0.04;
        s.decay = p.decay;
        s.batch = p.batch;
        p.until = 1000;
        fin_train *t = train_make(task, "erf", &fs, &s, NULL);
        assert_ptr_equal(t->engine, &fini_reduced_lanes);
        OK(fin_train_run(t, 40, NULL, &err));
        simulate(&p, 40, &one);
        two.runs = p.runs;
        for (int64_t run = 0; run < p.runs; run++) {
            fin_overlaps o;
            double lam;
            t->engine->read(t, run, &o, &lam);
            const double x[5] = {o.rho, o.eta, o.kappa, o.nu, o.theta};
            two.numbers = 0;
            for (int j = 0; j < 5; j++)
                two.x[two.numbers++][run] = x[j];
            for (int j = 0; j < 5; j++)
                for (int l = 0; l <= j; l++)
                    two.x[two.numbers++][run] = x[j] * x[l];
        }
        double probability = compare(&one, &two);
        print_message("one head, d %d: p %.3g\n", (int)p.model.d, probability);
        assert_true(probability > 1e-4);
        fin_train_destroy(t);
        fin_task_destroy(task);
    }
}

/* ---- the gradient ------------------------------------------------------------------------------ */

static void gradient__by_differences(void **state)
{
    (void)state;
    enum { H = 3, L = 19, d = 11, PADDED = 16 };
    double X[L * d], kv[2 * H * PADDED] = {0}, g[2 * H * PADDED] = {0}, waste[2 * H * PADDED] = {0};
    double room[4 * H * L];
    fin_random_normals_f64(5, FIN_STREAM_USER, 0, 0, L * d, X);
    for (int i = 0; i < 2 * H; i++)
        fin_random_normals_f64(5, FIN_STREAM_USER, 1, i * d, d, kv + i * PADDED);
    fini_heads_sequence s = {H, L, d, 0.7, 0.4, X, kv};
    fini_heads_error(&s, 2, g, room); /* of the squared error */
    /* by hand: f of the definition */
    double f = 0;
    for (int h = 0; h < H; h++)
        for (int l = 0; l < L; l++)
            f += erf(0.7 * dot(d, X + l * d, kv + 2 * h * PADDED)) *
                 dot(d, X + l * d, kv + (2 * h + 1) * PADDED);
    NEAR(fini_heads_error(&s, 0, waste, room), f - 0.4, 1e-12);
    for (int i = 0; i < 2 * H; i++)
        for (int c = 0; c < d; c++) {
            const double small = 1e-5;
            double at = kv[i * PADDED + c], high, low;
            kv[i * PADDED + c] = at + small;
            high = fini_heads_error(&s, 0, waste, room);
            kv[i * PADDED + c] = at - small;
            low = fini_heads_error(&s, 0, waste, room);
            kv[i * PADDED + c] = at;
            double slope = (high * high - low * low) / (2 * small);
            NEAR(g[i * PADDED + c], slope, 1e-6 * (1 + fabs(slope)));
        }
}

/* ---- the exact risk ---------------------------------------------------------------------------- */

/* H = P = 1: the risk of `erf` on `slr`, both noises, at random overlaps. */
static void risk__of_one_head(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        double x[8];
        fin_random_normals_f64(9, FIN_STREAM_USER, (uint64_t)i, 0, 8, x);
        double k[3] = {x[0], x[1], x[2]}, v[3] = {x[3], x[4], x[5]};
        if (i % 5 == 0)
            k[0] = 0;
        fin_overlaps o = overlaps_of(3, k, v);
        double lam = i % 7 == 0 ? 0 : exp(1.5 * x[6]), gamma = fabs(x[7]);
        fini_heads_model m = {1, 1, 50, i % 9 + 1, gamma, 3, 0.2, i % 2};
        double gram[5] = {o.rho, o.eta, o.kappa, o.nu, o.theta};
        fin_risk_point point = {o.kappa, o.nu, o.theta, o.eta, o.rho,       lam,
                                gamma,   3,    0.2,     1,     (double)m.L, 0};
        fin_risk_value value;
        OK(fin_risk_erf(1, &point, &value, &err));
        NEAR(fini_heads_risk(&m, lam, gram), value.risk, 1e-11 * (1 + value.risk));
    }
}

/* Simulated in the span of the vectors, z below 5; and heads that are one head doubled. */
static void risk__against_simulation(void **state)
{
    (void)state;
    enum { H = 3, P = 2, L = 5, D = 8 };
    int64_t samples = sized(4000, 60000, 400000);
    for (int point = 0; point < 6; point++) {
        double x[2 * H][D], gram[FINI_HEADS_STATE];
        bool shared = point % 2;
        fini_heads_model m = {H, P, 50, L, 0.8, 1.7, 0.3, shared};
        double lam = point < 2 ? 0.4 : point < 4 ? 1.5 : 0.1, sum = 0, squares = 0;
        int n = 0;
        for (int i = 0; i < 2 * H; i++) {
            fin_random_normals_f64(11, FIN_STREAM_USER, (uint64_t)point, i * D, D, x[i]);
            double length = sqrt(dot(D, x[i], x[i]));
            for (int j = 0; j < D; j++)
                x[i][j] /= length;
            for (int j = 0; j < i; j++)
                gram[n++] = dot(D, x[i], x[j]);
        }
        for (int i = 0; i < 2 * H; i++)
            for (int s = 0; s < 2 * P; s++) /* v* are the unit vectors 0, 1, k* are 2, 3 */
                gram[n++] = x[i][s];
        for (int64_t i = 0; i < samples; i++) {
            double X[L * D + 1], f = 0, y;
            fin_random_normals_f64(12, FIN_STREAM_USER, (uint64_t)(i + point * samples), 0,
                                   L * D + 1, X);
            y = m.eps * X[L * D];
            for (int p = P - 1; p >= 0; p--)
                for (int j = 0; j < D; j++)
                    X[p * D + j] = m.gamma * X[(shared ? 0 : p) * D + j];
            for (int p = 0; p < P; p++) {
                X[p * D + P + p] += m.mu;
                y += X[p * D + p];
            }
            for (int l = 0; l < L; l++)
                for (int h = 0; h < H; h++)
                    f += erf(lam * dot(D, X + l * D, x[2 * h])) * dot(D, X + l * D, x[2 * h + 1]);
            sum += (y - f) * (y - f);
            squares += pow(y - f, 4);
        }
        double mean = sum / (double)samples, exact = fini_heads_risk(&m, lam, gram);
        double error = sqrt((squares / (double)samples - mean * mean) / (double)samples);
        print_message("risk %.6g, simulated %.6g, z %.2f\n", exact, mean, (mean - exact) / error);
        assert_true(fabs(mean - exact) < 5 * error);
    }
}

/* ---- bytes and refusals ------------------------------------------------------------------------ */

static void runs__same_bytes_for_any_threads_and_number(void **state)
{
    (void)state;
    for (int ambient = 0; ambient < 2; ambient++) {
        double want[40][FINI_HEADS_STATE] = {{0}}, got[FINI_HEADS_STATE] = {0};
        for (int other = 0; other < 3; other++) {
            fini_heads_plan p = plan_of(2, 2, 20, true);
            p.ambient = ambient;
            p.runs = other == 2 ? 17 : 40;
            fini_heads *o;
            fin_threads_set(other == 1 ? 3 : 1);
            OK(fini_heads_create(&o, &p, &err));
            OK(fini_heads_advance(o, 0, other == 1 ? 7 : 12, 12, NULL, &err));
            if (other == 1)
                OK(fini_heads_advance(o, 7, 12, 12, NULL, &err));
            for (int64_t run = 0; run < p.runs; run++) {
                fini_heads_get(o, run, other ? got : want[run]);
                if (other)
                    assert_memory_equal(got, want[run], sizeof got);
            }
            fini_heads_destroy(o);
        }
    }
    fin_threads_set(1);
}

/* Steps too short to move anything: d times a squared product of directions that are uniform has mean 1 and
 * variance 2, at d = 10^9 as well. */
static void any_dimension__runs(void **state)
{
    (void)state;
    enum { RUNS = 400 };
    fini_heads_plan p = plan_of(2, 2, 1000000000, false);
    double gram[FINI_HEADS_STATE], sums[FINI_HEADS_STATE] = {0}, worst = 0;
    fini_heads *o;
    p.alpha = 1e-12;
    p.runs = RUNS;
    OK(fini_heads_create(&o, &p, &err));
    OK(fini_heads_advance(o, 0, 20, 20, NULL, &err));
    for (int64_t run = 0; run < RUNS; run++) {
        fini_heads_get(o, run, gram);
        for (int i = 0; i < FINI_HEADS_ROWS(2, 2); i++)
            sums[i] += 1e9 * gram[i] * gram[i] / RUNS;
    }
    for (int i = 0; i < FINI_HEADS_ROWS(2, 2); i++)
        worst = fmax(worst, fabs(sums[i] - 1) / sqrt(2.0 / RUNS));
    print_message("d = 10^9: largest z of %d %.2f\n", FINI_HEADS_ROWS(2, 2), worst);
    assert_true(worst < 5);
    fini_heads_destroy(o);
}

static int stop(void *user, const char *what, double done, double total)
{
    (void)what, (void)total;
    *(double *)user = done;
    return done >= 512;
}

static void hostile_plans(void **state)
{
    (void)state;
    fini_heads *o = NULL;
    double gram[FINI_HEADS_STATE], done = 0;
    fini_heads_plan p = plan_of(2, 2, 11, false);
    assert_int_equal(fini_heads_create(&o, &p, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "engine = ambient"));
    p.ambient = true;
    OK(fini_heads_create(&o, &p, &err));
    fini_heads_destroy(o);
    p.model.d = 3;
    assert_int_equal(fini_heads_create(&o, &p, &err), FIN_ERR_ARGUMENT);
    p.model.d = INT64_C(1) << 50;
    assert_int_equal(fini_heads_create(&o, &p, &err), FIN_ERR_ARGUMENT);
    p = plan_of(2, 2, 20, false);
    p.model.L = 1;
    assert_int_equal(fini_heads_create(&o, &p, &err), FIN_ERR_ARGUMENT);
    p.model.L = INT64_C(1) << 30;
    assert_int_equal(fini_heads_create(&o, &p, &err), FIN_ERR_ARGUMENT);
    assert_null(o);
    /* A step that is not finite leaves what is not finite; one of no length leaves what was there. */
    for (int ambient = 0; ambient < 2; ambient++)
        for (int still = 0; still < 2; still++) {
            double before[FINI_HEADS_STATE];
            p = plan_of(2, 2, 20, false);
            p.ambient = ambient;
            p.runs = 1;
            p.alpha = still ? 0 : 1e300;
            OK(fini_heads_create(&o, &p, &err));
            fini_heads_get(o, 0, before);
            OK(fini_heads_advance(o, 0, 3, 3, NULL, &err));
            fini_heads_get(o, 0, gram);
            for (int i = 0; i < FINI_HEADS_ROWS(2, 2) && still; i++)
                NEAR(gram[i], before[i], 1e-9);
            if (!still)
                assert_true(isnan(gram[0]) && isnan(fini_heads_risk(&p.model, p.lam, gram)));
            fini_heads_destroy(o);
        }
    p = plan_of(2, 2, 20, false);
    p.runs = 1;
    OK(fini_heads_create(&o, &p, &err));
    assert_int_equal(fini_heads_advance(o, 0, 1000000, 1000000, &(fin_progress){stop, &done}, &err),
                     FIN_ERR_CANCELLED);
    assert_true(done < 2000);
    fini_heads_destroy(o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduced__same_law_as_ambient),
        cmocka_unit_test(wrong_laws__are_told_apart),
        cmocka_unit_test(one_head__same_law_as_the_engine_of_one_head),
        cmocka_unit_test(gradient__by_differences),
        cmocka_unit_test(risk__of_one_head),
        cmocka_unit_test(risk__against_simulation),
        cmocka_unit_test(runs__same_bytes_for_any_threads_and_number),
        cmocka_unit_test(any_dimension__runs),
        cmocka_unit_test(hostile_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
