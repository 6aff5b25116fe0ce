/* Sequences of the families: pure functions of (seed, number), and of the laws that they should be.
 * */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "family/family.h"
#include "test_random_stats.h"
#include "test_family_help.h"

static const char *const families[] = {"concept",  "mean",   "process", "counts",
                                       "concepts", "sphere", "finite",  "urn"};
enum { FAMILIES = sizeof families / sizeof *families };

/* Settings that are not the defaults, so that every part of a draw is in play. */
static fin_latent_settings rich(const char *family)
{
    fin_latent_settings s = help_defaults(family);
    s.dv = 2;
    s.wrong = 0.3;
    s.features = strcmp(family, "finite") == 0 ? FIN_FEATURES_FOURIER : FIN_FEATURES_QUADRATIC;
    s.D = 7;
    s.keys = FIN_KEYS_VMF;
    s.d = 3;
    s.skew = 0.5;
    return s;
}

static int same(const double *a, const double *b, int64_t n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

static void table__has_every_family(void **state)
{
    (void)state;
    assert_int_equal(fin_family_count(), FAMILIES);
    for (int i = 0; i < FAMILIES; i++) {
        const fin_family *family = fin_family_at(i);
        assert_string_equal(fin_family_name(family), families[i]);
        assert_ptr_equal(fin_family_find(families[i]), family);
        assert_true(strlen(fin_family_summary(family)) > 10);
        fin_latent *latent = help_latent(families[i], NULL, 3);
        assert_ptr_equal(fin_latent_get_family(latent), family);
        fin_latent_destroy(latent);
    }
    assert_null(fin_family_at(-1));
    assert_null(fin_family_at(FAMILIES));
    assert_null(fin_family_find("Concept"));
    fin_latent_destroy(NULL);
}

static void draw__same_bytes_for_any_threads_and_split(void **state)
{
    (void)state;
    enum { N = 301, L = 9, Q = 4 };
    for (int f = 0; f < FAMILIES; f++) {
        fin_latent_settings s = rich(families[f]);
        fin_latent *latent = help_latent(families[f], &s, 11);
        fin_threads_set(1);
        help_sequences one = help_draw(latent, 5, N, L, Q);
        fin_threads_set(3);
        help_sequences three = help_draw(latent, 5, N, L, Q);
        help_sequences tail = help_draw(latent, 5 + 100, N - 100, L, Q);
        fin_threads_set(0);
        const fin_latent_shape *p = &one.shape;
        struct {
            double *a, *b, *c;
            int64_t each;
        } arrays[] = {{one.keys, three.keys, tail.keys, L * p->dk},
                      {one.values, three.values, tail.values, L * p->dv},
                      {one.queries, three.queries, tail.queries, Q * p->dk},
                      {one.answers, three.answers, tail.answers, Q * p->dv},
                      {one.truth, three.truth, tail.truth, Q * one.width},
                      {one.z, three.z, tail.z, p->latent}};
        for (int i = 0; i < 6; i++) {
            assert_true(same(arrays[i].a, arrays[i].b, N * arrays[i].each));
            assert_true(
                same(arrays[i].a + 100 * arrays[i].each, arrays[i].c, (N - 100) * arrays[i].each));
        }
        help_free(&one);
        help_free(&three);
        help_free(&tail);
        fin_latent_destroy(latent);
    }
}

/* Each array alone is what it is together with the others. */
static void draw__any_array_may_be_missing(void **state)
{
    (void)state;
    enum { N = 7, L = 6, Q = 3 };
    for (int f = 0; f < FAMILIES; f++) {
        fin_latent_settings s = rich(families[f]);
        fin_latent *latent = help_latent(families[f], &s, 12);
        help_sequences all = help_draw(latent, 0, N, L, Q);
        double *full[6] = {all.keys, all.values, all.queries, all.answers, all.truth, all.z};
        int64_t each[6] = {L * all.shape.dk, L * all.shape.dv, Q * all.shape.dk,
                           Q * all.shape.dv, Q * all.width,    all.shape.latent};
        for (int i = 0; i < 6; i++) {
            double *only[6] = {0};
            only[i] = help_array(N * each[i]);
            assert_int_equal(
                fin_latent_draw(latent, 0,
                                &(fin_latent_sample){N, L, Q, only[0], only[1], only[2], only[3],
                                                     only[4], only[5]},
                                NULL),
                FIN_OK);
            if (!same(only[i], full[i], N * each[i]))
                fail_msg("%s: array %d differs when it is drawn alone", families[f], i);
            free(only[i]);
        }
        help_free(&all);
        fin_latent_destroy(latent);
    }
}

/* A longer context begins with the shorter one; queries stay where they are (but for the urn, and
 * the values of a process at them). */
static void draw__longer_begins_with_shorter(void **state)
{
    (void)state;
    enum { SHORT = 5, LONG = 23, Q = 4, SAMPLE = 77 };
    for (int f = 0; f < FAMILIES; f++) {
        fin_latent_settings s = rich(families[f]);
        s.d = 2; /* keys and values of sphere by rejection, so that a token may take many words */
        fin_latent *latent = help_latent(families[f], &s, 13);
        help_sequences a = help_draw(latent, SAMPLE, 1, SHORT, Q);
        help_sequences b = help_draw(latent, SAMPLE, 1, LONG, Q);
        int process = strcmp(families[f], "process") == 0, urn = strcmp(families[f], "urn") == 0;
        assert_true(same(a.keys, b.keys, SHORT * a.shape.dk));
        assert_true(help_gap(SHORT * a.shape.dv, a.values, b.values) <= (process ? 1e-6 : 0));
        assert_true(same(a.z, b.z, a.shape.latent));
        assert_true(same(a.queries, b.queries, Q * a.shape.dk));
        if (!process && !urn) {
            assert_true(same(a.truth, b.truth, Q * a.width));
            assert_true(same(a.answers, b.answers, Q * a.shape.dv));
        }
        help_free(&a);
        help_free(&b);
        fin_latent_destroy(latent);
    }
}

/* Tokens and queries, their noise, and simulations of the theory module of the same seed: each has
 * its own stream. */
static void draw__streams_are_apart(void **state)
{
    (void)state;
    enum { N = 12 };
    for (int f = 0; f < FAMILIES; f++) {
        fin_latent_settings s = rich(families[f]);
        s.wrong = 0;
        s.prior = 1e-100; /* values are noise, but for the families without */
        fin_latent *latent = help_latent(families[f], &s, 13);
        help_sequences b = help_draw(latent, 3, 1, N, N);
        int64_t dk = b.shape.dk, dv = b.shape.dv;
        double *keys = help_array(N * dk), *values = help_array(N * dv);
        fini_sequence theory = {.L = N, .Q = 0, .keys = keys, .values = values};
        assert_int_equal(fini_latent_draw_many(latent, 13, FINI_STREAMS_UP, 3, 1, &theory, NULL),
                         FIN_OK);
        assert_true(dk == 0 || !same(b.keys, b.queries, N * dk));
        assert_true(dk == 0 || !same(b.keys, keys, N * dk));
        assert_false(same(b.values, b.answers, N * dv));
        assert_false(same(b.values, values, N * dv));
        if (b.shape.outcomes == 0 && strcmp(families[f], "sphere") != 0)
            for (int64_t i = 0; i < N * dv; i++)
                assert_true(b.values[i] != b.answers[i] && b.values[i] != values[i]);
        free(keys);
        free(values);
        help_free(&b);
        fin_latent_destroy(latent);
    }
}

static void draw__depends_on_seed_and_number(void **state)
{
    (void)state;
    for (int f = 0; f < FAMILIES; f++) {
        fin_latent_settings s = rich(families[f]);
        fin_latent *a = help_latent(families[f], &s, 14), *b = help_latent(families[f], &s, 15);
        help_sequences one = help_draw(a, 0, 1, 20, 1), two = help_draw(b, 0, 1, 20, 1),
                       three = help_draw(a, 1, 1, 20, 1);
        assert_false(same(one.values, two.values, 20 * one.shape.dv));
        assert_false(same(one.values, three.values, 20 * one.shape.dv));
        help_free(&one);
        help_free(&two);
        help_free(&three);
        fin_latent_destroy(a);
        fin_latent_destroy(b);
    }
}

/* ---- laws ------------------------------------------------------------------------------------ */

/* Answers around their truth: mean 0, variance `noise`; truth itself as its prior says. */
static void draw__gaussian_values_have_their_moments(void **state)
{
    (void)state;
    enum { N = 4000, Q = 2 };
    static const char *const linear[] = {"concept", "mean", "process"};
    stats_begin();
    for (int f = 0; f < 3; f++) {
        fin_latent_settings s = help_defaults(linear[f]);
        s.dv = 2;
        s.prior = 2.5;
        s.noise = 0.3;
        s.d = 3;
        fin_latent *latent = help_latent(linear[f], &s, 16);
        help_sequences b = help_draw(latent, 0, N, 3, Q);
        stats_mean noise = {0}, spread = {0}, truth = {0}, cross = {0}, value = {0};
        double want = s.prior * (f == 0 ? 3 : 1); /* E |phi|^2 */
        for (int64_t i = 0; i < N; i++) {
            double x = b.truth[i * Q * 2], y = b.answers[i * Q * 2];
            stats_add(&noise, y - x);
            stats_add(&spread, (y - x) * (y - x));
            stats_add(&truth, x * x);
            stats_add(&cross, x * b.truth[i * Q * 2 + 1]);
            stats_add(&value, b.values[i * 6 + 2] * b.values[i * 6 + 2]);
        }
        stats_z("noise", stats_mean_z(&noise, 0));
        stats_z("its variance", stats_mean_z(&spread, s.noise));
        stats_z("truth's variance", stats_mean_z(&truth, want));
        stats_z("two numbers of a truth", stats_mean_z(&cross, 0));
        stats_z("a value's variance", stats_mean_z(&value, want + s.noise));
        help_free(&b);
        fin_latent_destroy(latent);
    }
    stats_end("Gaussian families");
}

/* E f(a) f(b) of a process is prior k(a, b), between tokens and between a token and a query. */
static void draw__process_has_its_covariance(void **state)
{
    (void)state;
    enum { N = 20000 };
    fin_latent_settings s = help_defaults("process");
    s.d = 1;
    s.scale = 0.8;
    s.prior = 2;
    s.noise = 0;
    fin_latent *latent = help_latent("process", &s, 17);
    help_sequences b = help_draw(latent, 0, N, 2, 1);
    stats_mean tokens = {0}, query = {0};
    for (int64_t i = 0; i < N; i++) {
        const double *k = b.keys + 2 * i, *v = b.values + 2 * i;
        double r = (k[0] - k[1]) / s.scale, t = (k[0] - b.queries[i]) / s.scale;
        stats_add(&tokens, v[0] * v[1] - s.prior * exp(-r * r / 2));
        stats_add(&query, v[0] * b.truth[i] - s.prior * exp(-t * t / 2));
    }
    stats_begin();
    stats_z("two tokens", stats_mean_z(&tokens, 0));
    stats_z("token and query", stats_mean_z(&query, 0));
    stats_end("process");
    help_free(&b);
    fin_latent_destroy(latent);
}

static void draw__keys_have_their_laws(void **state)
{
    (void)state;
    enum { N = 20000, D = 3 };
    stats_begin();
    for (int law = 0; law < 3; law++) {
        fin_latent_settings s = help_defaults("concept");
        s.d = D;
        s.keys = law;
        s.concentration = 1.5;
        fin_latent *latent = help_latent("concept", &s, 18);
        help_sequences b = help_draw(latent, 0, N, 1, 1);
        stats_mean first = {0}, square = {0}, norm = {0}, query = {0};
        for (int64_t i = 0; i < N; i++) {
            const double *k = b.keys + i * D;
            stats_add(&first, k[0]);
            stats_add(&square, k[1] * k[1]);
            stats_add(&norm, k[0] * k[0] + k[1] * k[1] + k[2] * k[2]);
            stats_add(&query, b.queries[i * D]);
        }
        double A = 1 / tanh(1.5) - 1 / 1.5; /* A_3 */
        stats_z("E k_1", stats_mean_z(&first, law == 2 ? A : 0));
        stats_z("E q_1", stats_mean_z(&query, law == 2 ? A : 0));
        stats_z("E k_2^2", stats_mean_z(&square, law == 0 ? 1 : law == 1 ? 1.0 / 3 : A / 1.5));
        stats_z("E |k|^2", stats_mean_z(&norm, law == 0 ? D : 1));
        help_free(&b);
        fin_latent_destroy(latent);
    }
    stats_end("keys");
}

/* E phi phi' where it is said to be known, against the keys themselves. */
static void features__have_their_moments(void **state)
{
    (void)state;
    enum { N = 20000, MOST = 5 };
    stats_begin();
    for (int law = 0; law < 3; law++)
        for (int kind = FIN_FEATURES_IDENTITY; kind <= FIN_FEATURES_FOURIER; kind++)
            for (int64_t d = 1; d < MOST; d += 3) {
                fin_latent_settings s = help_defaults("concept");
                s.d = d;
                s.keys = law;
                s.features = kind;
                s.concentration = 1.5;
                s.D = MOST;
                fin_latent *latent = help_latent("concept", &s, 24);
                double want[20 * 20], phi[20];
                bool known = fini_features_moment(latent, want);
                assert_int_equal(known, kind <= FIN_FEATURES_AFFINE);
                if (known) {
                    help_sequences b = help_draw(latent, 0, 1, N, 0);
                    int64_t D = b.shape.features;
                    stats_mean moment[MOST * MOST] = {{0}};
                    for (int64_t l = 0; l < N; l++) {
                        fin_latent_features(latent, 1, b.keys + l * d, phi, NULL);
                        for (int64_t i = 0; i < D * D; i++)
                            stats_add(&moment[i], phi[i / D] * phi[i % D]);
                    }
                    for (int64_t i = 0; i < D * D; i++)
                        stats_z("E phi phi'", stats_mean_z(&moment[i], want[i]));
                    help_free(&b);
                }
                fin_latent_destroy(latent);
            }
    stats_end("moments of features");
}

/* Categories given z are what truth says; wrong labels are uniform and in the context only. */
static void draw__categories_follow_their_law(void **state)
{
    (void)state;
    enum { N = 20000 };
    static const char *const names[] = {"counts", "concepts", "urn"};
    stats_begin();
    for (int f = 0; f < 3; f++) {
        fin_latent_settings s = help_defaults(names[f]);
        s.wrong = 0.25;
        s.skew = 1;
        s.balls = 21;
        fin_latent *latent = help_latent(names[f], &s, 19);
        help_sequences b = help_draw(latent, 0, N, 3, 1);
        stats_mean hit = {0}, context = {0};
        for (int64_t i = 0; i < N; i++) {
            /* the probability of what was met, minus its mean: sum p^2 */
            double *p = b.truth + i * 4, sum = 0;
            for (int j = 0; j < 4; j++)
                sum += p[j] * p[j];
            stats_add(&hit, p[(int)b.answers[i]] - sum);
            if (f == 1 && b.keys[3 * i] == b.queries[i])
                stats_add(&context, p[(int)b.values[3 * i]] - 0.75 * sum - 0.25 * 0.25);
            if (f == 0)
                stats_add(&context, p[(int)b.values[3 * i]] - sum);
        }
        stats_z("answers", stats_mean_z(&hit, 0));
        if (f < 2)
            stats_z("context", stats_mean_z(&context, 0));
        help_free(&b);
        fin_latent_destroy(latent);
    }
    stats_end("categories");
}

/* The last of 5 draws from an urn has the law of the first; all balls together are the urn. */
static void draw__urn_is_exchangeable_and_finite(void **state)
{
    (void)state;
    enum { N = 20000, BALLS = 10 };
    fin_latent_settings s = help_defaults("urn");
    s.balls = BALLS;
    s.outcomes = 3;
    s.skew = 1; /* 1 : 2 : 3 of 10 balls */
    fin_latent *latent = help_latent("urn", &s, 20);
    help_sequences b = help_draw(latent, 0, N, 5, 5);
    const double urn[3] = {2, 3, 5};
    stats_mean last = {0}, pair = {0};
    for (int64_t i = 0; i < N; i++) {
        double left[3];
        for (int j = 0; j < 3; j++)
            assert_true((left[j] = b.z[i * 3 + j]) == urn[j]);
        for (int l = 0; l < 5; l++)
            left[(int)b.values[i * 5 + l]]--;
        for (int j = 0; j < 3; j++)
            assert_true(b.truth[i * 15 + j] == left[j] / 5);
        for (int l = 0; l < 5; l++)
            left[(int)b.answers[i * 5 + l]]--;
        assert_true(left[0] == 0 && left[1] == 0 && left[2] == 0);
        stats_add(&last, b.values[i * 5 + 4] == 2);
        stats_add(&pair, b.values[i * 5] == 2 && b.answers[i * 5 + 4] == 2);
    }
    stats_begin();
    stats_z("last", stats_mean_z(&last, 0.5));
    stats_z("pair", stats_mean_z(&pair, 0.5 * 4 / 9));
    stats_end("urn");
    help_free(&b);
    fin_latent_destroy(latent);
}

/* v around O k: E[v.O k] = A_3(rho), O a rotation, truth = A O q. */
static void draw__sphere_values_turn_with_O(void **state)
{
    (void)state;
    enum { N = 10000 };
    fin_latent_settings s = help_defaults("sphere");
    s.rho = 4;
    fin_latent *latent = help_latent("sphere", &s, 21);
    help_sequences b = help_draw(latent, 0, N, 1, 1);
    double A = 1 / tanh(4.0) - 0.25;
    stats_mean along = {0}, entry = {0};
    for (int64_t i = 0; i < N; i++) {
        const double *O = b.z + 9 * i, *k = b.keys + 3 * i, *q = b.queries + 3 * i;
        double dot = 0;
        for (int r = 0; r < 3; r++) {
            double x = 0, y = 0;
            for (int c = 0; c < 3; c++) {
                x += O[3 * r + c] * k[c];
                y += O[3 * r + c] * q[c];
            }
            dot += x * b.values[3 * i + r];
            assert_true(fabs(b.truth[3 * i + r] - A * y) < 1e-14);
        }
        stats_add(&along, dot);
        stats_add(&entry, O[1] * O[1]);
    }
    stats_begin();
    stats_z("E v.Ok", stats_mean_z(&along, A));
    stats_z("E O_12^2", stats_mean_z(&entry, 1.0 / 3));
    stats_end("sphere");
    help_free(&b);
    fin_latent_destroy(latent);
}

/* phi of every kind, by its definition; cosines have the RBF kernel. */
static void features__are_what_they_say(void **state)
{
    (void)state;
    fin_latent_settings s = help_defaults("concept");
    const double k[4] = {2, -3, 0.5, 1};
    double phi[6];
    s.d = 2;
    s.features = FIN_FEATURES_QUADRATIC;
    fin_latent *latent = help_latent("concept", &s, 22);
    assert_int_equal(fin_latent_features(latent, 1, k, phi, NULL), FIN_OK);
    const double want[6] = {1, 2, -3, 4, -6, 9};
    assert_true(same(phi, want, 6));
    fin_latent_destroy(latent);
    s.features = FIN_FEATURES_FOURIER;
    s.D = 16384;
    s.frequency = 0.7;
    latent = help_latent("concept", &s, 23);
    double *rows = help_array(2 * s.D), dot = 0;
    assert_int_equal(fin_latent_features(latent, 2, k, rows, NULL), FIN_OK);
    for (int64_t i = 0; i < s.D; i++)
        dot += rows[i] * rows[s.D + i];
    double r2 = 0.49 * (1.5 * 1.5 + 4 * 4);
    print_message("cosines: %.4f, kernel %.4f\n", dot, exp(-r2 / 2));
    assert_true(fabs(dot - exp(-r2 / 2)) < 5 / sqrt((double)s.D));
    free(rows);
    fin_latent_destroy(latent);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table__has_every_family),
        cmocka_unit_test(draw__same_bytes_for_any_threads_and_split),
        cmocka_unit_test(draw__any_array_may_be_missing),
        cmocka_unit_test(draw__longer_begins_with_shorter),
        cmocka_unit_test(draw__streams_are_apart),
        cmocka_unit_test(draw__depends_on_seed_and_number),
        cmocka_unit_test(draw__gaussian_values_have_their_moments),
        cmocka_unit_test(draw__process_has_its_covariance),
        cmocka_unit_test(draw__keys_have_their_laws),
        cmocka_unit_test(draw__categories_follow_their_law),
        cmocka_unit_test(draw__urn_is_exchangeable_and_finite),
        cmocka_unit_test(draw__sphere_values_turn_with_O),
        cmocka_unit_test(features__are_what_they_say),
        cmocka_unit_test(features__have_their_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
