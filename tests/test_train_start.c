/* Where runs start: the overlaps drawn for any d have the law of vectors drawn in R^d, on the sphere
 * and on M; vectors made for given overlaps have them; given vectors are taken as they are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "test_train_help.h"
#include "task/task.h"

enum { RUNS = 4000, NUMBERS = 9 };

typedef struct sample {
    double x[NUMBERS][RUNS];
} sample;

static void add(sample *s, int64_t run, const fin_overlaps *o)
{
    const double x[NUMBERS] = {o->kappa,
                               o->nu,
                               o->theta,
                               o->eta,
                               o->rho,
                               o->kappa * o->nu,
                               o->theta * o->eta,
                               o->kappa * o->theta * o->rho,
                               o->nu * o->eta * o->rho};
    for (int j = 0; j < NUMBERS; j++)
        s->x[j][run] = round(x[j] * 1e12) / 1e12; /* +-1 and 0 to rounding are +-1 and 0 */
}

/* k, v uniform on the sphere of R^d, or on M by the recipe of the paper, with k* = e1, v* = e2:
 * written out, with generators of their own. */
static void draw_vectors(fin_random *r, int64_t d, int on_manifold, double *k, double *v)
{
    for (int64_t i = 0; i < d; i++) {
        k[i] = fin_random_normal(r);
        v[i] = fin_random_normal(r);
    }
    if (!on_manifold)
        return;
    k[1] = v[0] = 0; /* k orthogonal to v*, v to k* and to what k has beside k* */
    double kk = 0, kv = 0;
    for (int64_t i = 2; i < d; i++) {
        kk += k[i] * k[i];
        kv += k[i] * v[i];
    }
    for (int64_t i = 2; kk > 0 && i < d; i++)
        v[i] -= kv / kk * k[i];
}

static void by_hand(int64_t d, int on_manifold, sample *s)
{
    double k[16], v[16];
    for (int64_t run = 0; run < RUNS; run++) {
        fin_random r;
        fin_random_open(&r, 77, FIN_STREAM_USER, (uint64_t)run);
        draw_vectors(&r, d, on_manifold, k, v);
        fin_overlaps o = overlaps_of(d, k, v);
        add(s, run, &o);
    }
}

static void by_engine(int engine, double momentum, int init, int64_t d, sample *s)
{
    fin_task_settings ts = task_settings("slr", d, 3);
    ts.mu = 1;
    fin_task *task = task_make("slr", &ts, 2, engine == FIN_ENGINE_AMBIENT ? FIN_TASK_AMBIENT : 0);
    fin_form_settings fs = form_settings("erf", 0.3);
    fin_train_settings set = train_settings(engine, RUNS, 1);
    set.init = init;
    set.momentum = momentum;
    set.seed = 5;
    fin_train *t = train_make(task, "erf", &fs, &set, NULL);
    double farthest = 0;
    for (int64_t run = 0; run < RUNS; run++) {
        fin_overlaps o;
        double lam;
        t->engine->read(t, run, &o, &lam);
        OK(fini_overlaps_realisable(&o, d, &err));
        if (init == FIN_INIT_MANIFOLD)
            farthest = fmax(farthest, hypot(hypot(o.theta, o.eta), o.rho));
        add(s, run, &o);
    }
    if (farthest > 1e-14)
        print_message("(%.2g from M) ", farthest);
    assert_true(farthest < 1e-10);
    fin_train_destroy(t);
    fin_task_destroy(task);
}

static const double floor_of_p = 1e-4 / (5 * 2 * 4 * NUMBERS);

static double least_p(sample *a, sample *b)
{
    double least = 2;
    for (int j = 0; j < NUMBERS; j++)
        least = fmin(least, ks_probability(RUNS, a->x[j], RUNS, b->x[j]));
    return least;
}

static void start__has_the_law_of_vectors(void **state)
{
    (void)state;
    const int64_t dimensions[] = {2, 3, 4, 5, 10};
    const struct {
        const char *name;
        int engine;
        double momentum;
    } ways[] = {{"population", FIN_ENGINE_POPULATION, 0},
                {"vectors", FIN_ENGINE_POPULATION, 1e-300},
                {"reduced", FIN_ENGINE_REDUCED, 0.5},
                {"ambient", FIN_ENGINE_AMBIENT, 0}};
    static sample want, got, other;
    for (int init = FIN_INIT_SPHERE; init <= FIN_INIT_MANIFOLD; init++)
        for (int i = 0; i < 5; i++) {
            int64_t d = dimensions[i];
            by_hand(d, init == FIN_INIT_MANIFOLD, &want);
            for (int w = 0; w < 4; w++) {
                by_engine(ways[w].engine, ways[w].momentum, init, d, &got);
                double p = least_p(&want, &got);
                print_message("%s%s d=%d %s: p = %.2g", w ? ", " : "", w ? "" : "\n", (int)d,
                              ways[w].name, p);
                if (!(p > floor_of_p))
                    fail_msg("init %d, d = %d, %s: p = %g", init, (int)d, ways[w].name, p);
            }
            by_hand(d + 1 + d / 4, init == FIN_INIT_MANIFOLD, &other); /* a wrong d is seen */
            if (d > 2 || init == FIN_INIT_SPHERE)
                assert_true(least_p(&other, &got) < floor_of_p);
        }
    print_message("\n");
}

/* In many dimensions sqrt(d) times an overlap is a normal, all of them independent. */
static void start__is_normal_in_many_dimensions(void **state)
{
    (void)state;
    static sample want, got;
    const int64_t d = 1000000000;
    for (int init = FIN_INIT_SPHERE; init <= FIN_INIT_MANIFOLD; init++) {
        for (int64_t run = 0; run < RUNS; run++) {
            fin_random r;
            fin_random_open(&r, 78, FIN_STREAM_USER, (uint64_t)run);
            for (int j = 0; j < 5; j++)
                want.x[j][run] = fin_random_normal(&r);
            for (int j = 2; init == FIN_INIT_MANIFOLD && j < 5; j++)
                want.x[j][run] = 0;
            want.x[5][run] = want.x[0][run] * want.x[1][run];
            want.x[6][run] = want.x[2][run] * want.x[3][run];
            want.x[7][run] = want.x[0][run] * want.x[2][run] * want.x[4][run];
            want.x[8][run] = want.x[1][run] * want.x[3][run] * want.x[4][run];
        }
        fin_task_settings ts = task_settings("slr", d, 3);
        fin_task *task = task_make("slr", &ts, 2, 0);
        fin_form_settings fs = form_settings("erf", 0.3);
        fin_train_settings set = train_settings(FIN_ENGINE_REDUCED, RUNS, 1);
        set.init = init;
        set.seed = 5;
        fin_train *t = train_make(task, "erf", &fs, &set, NULL);
        for (int64_t run = 0; run < RUNS; run++) {
            fin_overlaps o;
            double lam, root = sqrt((double)d);
            t->engine->read(t, run, &o, &lam);
            fin_overlaps large = {o.kappa * root, o.nu * root, o.theta * root, o.eta * root,
                                  o.rho * root};
            add(&got, run, &large);
        }
        double p = least_p(&want, &got);
        print_message("p = %.2g\n", p);
        assert_true(p > floor_of_p);
        fin_train_destroy(t);
        fin_task_destroy(task);
    }
}

/* ---- given starting points ---------------------------------------------------------------------------- */

static double worst_of(const fin_overlaps *a, const fin_overlaps *b)
{
    return fmax(fmax(fmax(fabs(a->kappa - b->kappa), fabs(a->nu - b->nu)),
                     fmax(fabs(a->theta - b->theta), fabs(a->eta - b->eta))),
                fabs(a->rho - b->rho));
}

static void start__has_the_overlaps_given(void **state)
{
    (void)state;
    enum { MANY = 40 };
    const int64_t dimensions[] = {2, 3, 4, 7, 50};
    double worst = 0;
    for (int i = 0; i < 5; i++)
        for (int engine = 0; engine < 3; engine++)
            for (int heavy = 0; heavy < 2; heavy++) {
                int64_t d = dimensions[i];
                fin_overlaps given[MANY];
                fin_random r;
                fin_random_open(&r, 6, FIN_STREAM_USER, (uint64_t)i);
                for (int j = 0; j < MANY; j++) {
                    double k[50], v[50];
                    draw_vectors(&r, d, j % 3 == 0, k, v);
                    for (int64_t c = 2; j % 5 == 1 && c < d; c++)
                        k[c] *= 1e-7; /* nearly, or quite, in the plane of k*, v* */
                    for (int64_t c = 2; j % 5 == 2 && c < d; c++)
                        k[c] = 0;
                    for (int64_t c = 0; j % 7 == 3 && c < d; c++)
                        v[c] = -k[c];
                    given[j] = overlaps_of(d, k, v);
                    given[j].rho = fmax(-1, fmin(1, given[j].rho));
                }
                fin_task_settings ts = task_settings("slr", d, 3);
                fin_task *task = task_make("slr", &ts, 2, FIN_TASK_AMBIENT);
                fin_form_settings fs = form_settings("erf", 0.3);
                fin_train_settings set = train_settings(engine, MANY, 1);
                set.init = FIN_INIT_OVERLAPS;
                set.momentum = heavy ? 0.5 : 0;
                fin_train_start start = {.count = MANY, .overlaps = given};
                fin_train *t = train_make(task, "erf", &fs, &set, &start);
                OK(fin_train_run(t, 0, NULL, &err));
                for (int64_t run = 0; run < MANY; run++) {
                    fin_run now;
                    OK(fin_train_get_run(t, run, &now, &err));
                    fin_overlaps o = {now.now.kappa, now.now.nu, now.now.theta, now.now.eta,
                                      now.now.rho};
                    double off = worst_of(&o, &given[run]);
                    /* 1 - kappa^2 - eta^2 = 1e-14 is rounding: that part of k may be left out */
                    double allowed = run % 5 == 1 ? 5e-7 : 1e-12;
                    if (!(off < allowed))
                        fail_msg("d = %d, engine %d, run %d: off by %g", (int)d, engine, (int)run,
                                 off);
                    worst = fmax(worst, run % 5 == 1 ? 0 : off);
                    if (engine == FIN_ENGINE_AMBIENT) {
                        const double *k = t->state + run * t->width, *v = k + d;
                        assert_true(fabs(dot(d, k, k) - 1) < 1e-14);
                        assert_true(fabs(dot(d, v, v) - 1) < 1e-14);
                    }
                }
                fin_train_destroy(t);
                fin_task_destroy(task);
            }
    print_message("worst difference %.2g\n", worst);
}

static void start__takes_the_vectors_given(void **state)
{
    (void)state;
    enum { D = 13, MANY = 5 };
    fin_task_settings ts = task_settings("slr", D, 3);
    fin_task *task = task_make("slr", &ts, 2, FIN_TASK_AMBIENT);
    const double *ks = fin_task_k_star(task), *vs = fin_task_v_star(task);
    double k[MANY * D], v[MANY * D];
    fin_random r;
    fin_random_open(&r, 8, FIN_STREAM_USER, 0);
    for (int i = 0; i < MANY * D; i++) { /* of any length */
        k[i] = 1e-200 * fin_random_normal(&r);
        v[i] = 1e200 * fin_random_normal(&r);
    }
    for (int engine = 0; engine < 3; engine++)
        for (int each = 0; each < 2; each++) {
            fin_form_settings fs = form_settings("erf", 0.3);
            fin_train_settings set = train_settings(engine, MANY, 1);
            set.init = FIN_INIT_VECTORS;
            fin_train_start start = {.count = each ? MANY : 1, .k = k, .v = v};
            fin_train *t = train_make(task, "erf", &fs, &set, &start);
            for (int64_t run = 0; run < MANY; run++) {
                fin_overlaps o;
                double lam, x[D], y[D];
                for (int i = 0; i < D; i++) {
                    x[i] = k[(each ? run : 0) * D + i] * 1e200;
                    y[i] = v[(each ? run : 0) * D + i] * 1e-200;
                }
                double kk = sqrt(dot(D, x, x)), vv = sqrt(dot(D, y, y));
                fin_overlaps want = {dot(D, x, ks) / kk, dot(D, y, vs) / vv, dot(D, y, ks) / vv,
                                     dot(D, x, vs) / kk, dot(D, x, y) / (kk * vv)};
                t->engine->read(t, run, &o, &lam);
                assert_true(worst_of(&o, &want) < 1e-14);
                for (int i = 0; engine == FIN_ENGINE_AMBIENT && i < D; i++) {
                    assert_true(fabs(t->state[run * t->width + i] - x[i] / kk) < 1e-15);
                    assert_true(fabs(t->state[run * t->width + D + i] - y[i] / vv) < 1e-15);
                }
            }
            fin_train_destroy(t);
        }
    fin_task_destroy(task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start__has_the_law_of_vectors),
        cmocka_unit_test(start__is_normal_in_many_dimensions),
        cmocka_unit_test(start__has_the_overlaps_given),
        cmocka_unit_test(start__takes_the_vectors_given),
    };
    return cmocka_run_group_tests_name("train_start", tests, NULL, NULL);
}
