/* Maps of numbers that are large, small, constant or none; memory that runs out; files that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_bags_map_help.h"
#include "test_state.h"

static help_bags h;

static int setup(void **state)
{
    (void)state;
    fin_threads_set(1);
    help_open(&h);
    return 0;
}

/* Column 0: shift + size * what it was. The deviation has to follow. */
static void columns__follow_shift_and_size(void **state)
{
    (void)state;
    static const struct {
        double shift, size, tolerance; /* relative, of the deviation */
    } cases[] = {
        {1e8, 1, 1e-9}, /* x itself is rounded to 1.5e-8 */
        {-1e12, 1, 1e-4},   {0, 1e295, 1e-13},       {1e300, 1e290, 1e-5},
        {0, 1e-200, 1e-13}, {1e-180, 1e-185, 1e-10}, {0, 1e-285, 1e-13},
    };
    fini_map plain, map;
    fin_error err = {FIN_OK, ""};
    fin_fit_settings settings = help_settings(FIN_MODEL_SOFTMAX, 0, 0, 150);
    assert_int_equal(fini_map_fit(&plain, &settings, 2, &h.bags, NULL, NULL, NULL, &err), FIN_OK);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        help_bags g;
        help_open(&g);
        for (int64_t t = 0; t < g.offsets[HELP_N]; t++)
            g.tokens[t * HELP_D] = cases[k].shift + cases[k].size * h.tokens[t * HELP_D];
        assert_int_equal(fini_map_fit(&map, &settings, 2, &g.bags, NULL, NULL, NULL, &err), FIN_OK);
        double ratio = map.bound[0] / (plain.bound[0] * cases[k].size);
        double center = cases[k].shift + cases[k].size * plain.center[0];
        if (fabs(ratio - 1) > cases[k].tolerance || fabs(map.center[0] / center - 1) > 1e-14 ||
            map.used != 4)
            fail_msg("case %d: ratio - 1 = %g, center %g", (int)k, ratio - 1, map.center[0]);
        fini_map_close(&map);
    }
    fini_map_close(&plain);
}

/* Divided by nothing, in any unit: but for rounding, the same rows. */
static void columns__not_scaled_in_any_unit(void **state)
{
    (void)state;
    static const double units[] = {1, 1e200, 1e-200, 1e300, 1e-280};
    fin_error err = {FIN_OK, ""};
    fin_fit_settings settings = help_settings(FIN_MODEL_SOFTMAX, 2, 0, 50);
    settings.scaling = 2;
    double *first = NULL;
    for (int k = 0; k < 5; k++) {
        help_bags g;
        fini_map map;
        fini_phi phi;
        help_open(&g);
        for (int64_t t = 0; t < g.offsets[HELP_N] * HELP_D; t++)
            g.tokens[t] *= units[k];
        assert_int_equal(fini_map_fit(&map, &settings, 2, &g.bags, NULL, NULL, NULL, &err), FIN_OK);
        assert_int_equal(fini_map_apply(&map, &g.bags, &phi, NULL, &err), FIN_OK);
        assert_int_equal(phi.left_out, 1);
        double *rows = help_rows(&phi, map.p);
        for (int64_t t = 0; k && t < g.offsets[HELP_N] * map.p; t++)
            assert_true(fabs(rows[t] - first[t]) < 1e-5);
        if (k == 0)
            first = rows;
        else
            free(rows);
        fini_phi_close(&phi);
        fini_map_close(&map);
    }
    free(first);
}

static void columns__too_large_to_sum(void **state)
{
    (void)state;
    static const double bad[] = {1.5e308, INFINITY, NAN};
    for (int k = 0; k < 3; k++)
        for (int model = FIN_MODEL_SOFTMAX; model <= FIN_MODEL_MAX; model++) {
            help_bags g;
            fini_map map;
            fin_error err = {FIN_OK, ""};
            fin_fit_settings settings = help_settings(model, 0, 0, 150);
            help_open(&g);
            for (int64_t t = 0; t < g.offsets[HELP_N]; t++)
                if (k == 0 || t == 77)
                    g.tokens[t * HELP_D + 2] = bad[k];
            assert_int_equal(fini_map_fit(&map, &settings, 2, &g.bags, NULL, NULL, NULL, &err),
                             FIN_ERR_NUMERIC);
            assert_non_null(strstr(err.message, "column 2"));
            assert_null(map.center);
        }
}

/* Constant, or constant but for rounding: left out. Everything constant: an error. */
static void columns__constant(void **state)
{
    (void)state;
    help_bags g;
    fini_map map;
    fini_phi phi;
    fin_error err = {FIN_OK, ""};
    help_open(&g);
    for (int64_t t = 0; t < g.offsets[HELP_N]; t++) {
        g.tokens[t * HELP_D] = t % 2 ? 0.1 + 0.2 : 0.3;
        g.tokens[t * HELP_D + 1] = 1e300;
        g.tokens[t * HELP_D + 4] = 0;
        for (int j = 0; j < HELP_D; j++)
            g.floats[t * HELP_D + j] = j == 2 ? t % 2 ? 3e7F : 3e7F + 2 : 0.7F;
    }
    for (int model = FIN_MODEL_SOFTMAX; model <= FIN_MODEL_MAX; model++) {
        fin_fit_settings settings = help_settings(model, 2, 0, 50);
        assert_int_equal(fini_map_fit(&map, &settings, 2, &g.bags, NULL, NULL, NULL, &err), FIN_OK);
        assert_int_equal(map.used, model == FIN_MODEL_EMBEDDING ? 4 : 1);
        assert_true(map.scale[0] == 0 && map.bound[0] == 0 && map.scale[1] == 0 &&
                    map.scale[2] > 0 && map.scale[3] == 0);
        assert_int_equal(fini_map_apply(&map, &h.bags, &phi, NULL, &err), FIN_OK);
        fini_phi_close(&phi);
        fini_map_close(&map);
    }
    for (int64_t t = 0; t < g.offsets[HELP_N]; t++)
        g.tokens[t * HELP_D + 2] = -7;
    for (int model = FIN_MODEL_SOFTMAX; model <= FIN_MODEL_MAX; model++)
        for (int scaling = 0; scaling < 3; scaling++) {
            fin_fit_settings settings = help_settings(model, 2, 0, 50);
            settings.scaling = scaling;
            fin_status status = fini_map_fit(&map, &settings, 2, &g.bags, NULL, NULL, NULL, &err);
            if (model == FIN_MODEL_EMBEDDING) { /* sizes differ yet */
                assert_int_equal(status, FIN_OK);
                assert_int_equal(map.m, 0);
                fini_map_close(&map);
                continue;
            }
            assert_int_equal(status, FIN_ERR_ARGUMENT);
            assert_non_null(strstr(err.message, "all 5 columns are constant"));
        }
    g.bags.dtype = FIN_F32; /* neighbouring floats: rounding, too */
    g.bags.tokens = g.floats;
    fin_fit_settings settings = help_settings(FIN_MODEL_SOFTMAX, 0, 0, 50);
    assert_int_equal(fini_map_fit(&map, &settings, 2, &g.bags, NULL, NULL, NULL, &err),
                     FIN_ERR_ARGUMENT);
}

static void fit__no_bag_counts(void **state)
{
    (void)state;
    static double weights[HELP_N];
    for (int model = FIN_MODEL_SOFTMAX; model <= FIN_MODEL_MAX; model++) {
        fini_map map;
        fin_error err = {FIN_OK, ""};
        fin_fit_settings settings = help_settings(model, 2, 0, 50);
        assert_int_equal(fini_map_fit(&map, &settings, 2, &h.bags, weights, NULL, NULL, &err),
                         FIN_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "positive weight"));
    }
}

static void fit__refuses(void **state)
{
    (void)state;
    fini_map map;
    fini_phi phi;
    fin_error err = {FIN_OK, ""};
    fin_fit_settings settings = help_settings(FIN_MODEL_SOFTMAX, 1, 0, 50);
    settings.bandwidth = 1e100; /* all tokens look the same */
    assert_int_equal(fini_map_fit(&map, &settings, 2, &h.bags, NULL, NULL, NULL, &err),
                     FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "bandwidth"));
    settings.bandwidth = 1e-100; /* no two tokens look alike: fine, if useless */
    assert_int_equal(fini_map_fit(&map, &settings, 2, &h.bags, NULL, NULL, NULL, &err), FIN_OK);
    assert_int_equal(map.m, 50);
    fin_bags other = h.bags;
    other.d = 4;
    assert_int_equal(fini_map_apply(&map, &other, &phi, NULL, &err), FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "fitted to 5"));
    fini_map_close(&map);
    fin_bags part = h.bags;
    part.first = 2;
    part.n = 1; /* half a block */
    assert_int_equal(fini_map_fit(&map, &settings, 2, &part, NULL, NULL, NULL, &err),
                     FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "fin_bags_share"));
    part.n = 3; /* whole blocks, but not all of them */
    assert_int_equal(fini_map_fit(&map, &settings, 2, &part, NULL, NULL, NULL, &err),
                     FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "fin_ranks_sum"));
    fini_map_close(NULL);
    fini_phi_close(NULL);
}

/* Tokens far beyond anything seen in training are cut off; with nothing cut off they are far from
 * all landmarks. Features stay finite; what is not a number stays that. */
static void apply__wild_tokens(void **state)
{
    (void)state;
    static const double wild[] = {1e308, -1e308, 1e18, INFINITY, NAN};
    for (int i = 0; i < 3 * 2 * 2; i++) {
        fini_map map;
        fini_phi phi;
        fin_error err = {FIN_OK, ""};
        int64_t offsets[] = {0, 1, 2, 3, 4, 5};
        double tokens[5 * HELP_D];
        fin_bags bags = {5, HELP_D, 0, 5, offsets, FIN_F64, tokens, NULL, NULL};
        fin_fit_settings settings =
            help_settings(i % 2 ? FIN_MODEL_SOFTMAX : FIN_MODEL_EMBEDDING, 1, i / 2 % 2, 50);
        settings.scaling = i / 4;
        for (int t = 0; t < 5 * HELP_D; t++)
            tokens[t] = wild[t / HELP_D];
        assert_int_equal(fini_map_fit(&map, &settings, 2, &h.bags, NULL, NULL, NULL, &err), FIN_OK);
        assert_int_equal(fini_map_apply(&map, &bags, &phi, NULL, &err), FIN_OK);
        const double *rows = phi.bags.tokens;
        for (int64_t j = 0; j < map.p; j++) {
            for (int64_t t = 0; t < 3; t++)
                assert_true(isfinite(rows[t * map.p + j]));
            if (j >= map.linear)
                assert_true(isnan(rows[4 * map.p + j]));
        }
        fini_phi_close(&phi);
        fini_map_close(&map);
    }
}

static void apply__larger_than_the_machine(void **state)
{
    (void)state;
    fini_map map;
    fini_phi phi;
    fin_error err = {FIN_OK, ""};
    int64_t offsets[] = {0, INT64_C(1) << 40};
    fin_bags bags = {1, HELP_D, 0, 1, offsets, FIN_F64, h.tokens, NULL, NULL};
    fin_fit_settings settings = help_settings(FIN_MODEL_SOFTMAX, 1, 0, 50);
    assert_int_equal(fini_map_fit(&map, &settings, 2, &h.bags, NULL, NULL, NULL, &err), FIN_OK);
    assert_int_equal(fini_map_apply(&map, &bags, &phi, NULL, &err), FIN_ERR_MEMORY);
    assert_non_null(strstr(err.message, "fewer landmarks"));
    assert_null(phi.owned);
    fini_map_close(&map);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static fin_status fit_and_apply(void *user, fin_error *err)
{
    fini_map map;
    fini_phi phi;
    fin_bags few = h.bags;
    few.n = few.total = 8;
    fin_status status = fini_map_fit(&map, user, 2, &few, NULL, NULL, NULL, err);
    if (status)
        return status;
    status = fini_map_apply(&map, &few, &phi, NULL, err);
    fini_phi_close(&phi);
    fini_map_close(&map);
    return status;
}

enum { ROOM = 32 };
static fin_tensor tensors[ROOM];
static int64_t count;

static fin_status load_map(void *settings, const fin_tensor *from, int64_t n, fin_error *err)
{
    fini_map map;
    const fini_state_source source = {"0.", from, n};
    fin_status status = fini_map_restore(&map, settings, HELP_D, &source, err);
    if (status)
        assert_true(!map.center && !map.landmarks);
    fini_map_close(&map);
    return status;
}

static fin_status restore(void *user, fin_error *err)
{
    return load_map(user, tensors, count, err);
}

static void memory__every_allocation_fails_once(void **state)
{
    (void)state;
    for (int model = FIN_MODEL_SOFTMAX; model <= FIN_MODEL_MAX; model++)
        for (int kind = 0; kind < 4; kind++) {
            fin_fit_settings settings = help_settings(model, kind % 2 ? 2 : 0, kind / 2, 6);
            fault_every(fit_and_apply, &settings);
        }
}

/* ---- files ----------------------------------------------------------------------------------- */

/* Back and forth: the same rows; every field harmed. */
static void restore__as_it_was_or_refused(void **state)
{
    (void)state;
    for (int i = 0; i < 4 * 3 * 2; i++) {
        static const int models[] = {FIN_MODEL_SOFTMAX, FIN_MODEL_EMBEDDING, FIN_MODEL_MEAN,
                                     FIN_MODEL_MAX};
        fini_map map, back;
        fini_phi a, b;
        fin_error err = {FIN_OK, ""};
        fin_fit_settings settings = help_settings(models[i % 4], i / 4 % 3, i / 12, 30);
        fini_tensor_list l = {tensors, 0, ROOM};
        assert_int_equal(fini_map_fit(&map, &settings, 2, &h.bags, NULL, NULL, NULL, &err), FIN_OK);
        fini_state_save(&fini_map_state, &map, "0.", &l);
        count = l.count;
        const fini_state_source from = {"0.", tensors, count};
        assert_int_equal(fini_map_restore(&back, &settings, HELP_D, &from, &err), FIN_OK);
        assert_int_equal(fini_map_apply(&map, &h.bags, &a, NULL, &err), FIN_OK);
        assert_int_equal(fini_map_apply(&back, &h.bags, &b, NULL, &err), FIN_OK);
        double *x = help_rows(&a, map.p), *y = help_rows(&b, back.p);
        assert_true(map.p == back.p && map.m == back.m && map.used == back.used);
        assert_memory_equal(x, y, (size_t)(a.bags.offsets[HELP_N] * map.p) * sizeof *x);
        state_harm_every(&fini_map_state, "0.", tensors, count, load_map, &settings);
        fini_phi_close(&a);
        fini_phi_close(&b);
        fini_map_close(&back);
        free(x);
        free(y);
        if (i < 12)
            fault_every(restore, &settings);
        fini_map_close(&map);
    }
}

static fin_status load_fit(void *settings, const fin_tensor *from, int64_t n, fin_error *err)
{
    fin_fit *fit;
    fin_status status = fin_fit_restore(&fit, settings, from, n, err);
    fin_fit_destroy(fit);
    return status;
}

/* A whole model: its own fields, those of a part and those of the part's map. */
static void fit__harmed_in_every_field(void **state)
{
    (void)state;
    static const int models[] = {FIN_MODEL_SOFTMAX, FIN_MODEL_MIXTURE, FIN_MODEL_EMBEDDING};
    for (int i = 0; i < 3; i++) {
        fin_fit *fit;
        fin_error err = {FIN_OK, ""};
        fin_fit_settings settings;
        fin_bags bags = h.bags;
        double labels[HELP_N];
        for (int k = 0; k < HELP_N; k++)
            labels[k] = i == 2 ? 0.5 * k : k % 2;
        bags.labels = labels;
        fin_settings_defaults(&fin_fit_table, &settings, sizeof settings);
        settings.model = models[i];
        settings.basis = FIN_BASIS_LINEAR + i;
        settings.landmarks = 8;
        settings.restarts = 1;
        settings.iterations = 5;
        assert_int_equal(
            fin_fit_create(&fit, &settings, i == 2 ? 0 : 2, &bags, NULL, NULL, NULL, &err), FIN_OK);
        count = fin_fit_tensors(fit, tensors, ROOM);
        assert_true(count <= ROOM && count == fin_fit_tensors(fit, NULL, 0));
        assert_true(state_harm_every(&fini_fit_state, "", tensors, count, load_fit, &settings) >
                    200);
        assert_true(state_harm_every(&fini_part_state, "0.", tensors, count, load_fit, &settings) >
                    200);
        state_harm_every(&fini_map_state, "0.", tensors, count, load_fit, &settings);
        fin_fit_destroy(fit);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns__follow_shift_and_size),
        cmocka_unit_test(columns__not_scaled_in_any_unit),
        cmocka_unit_test(columns__too_large_to_sum),
        cmocka_unit_test(columns__constant),
        cmocka_unit_test(fit__no_bag_counts),
        cmocka_unit_test(fit__refuses),
        cmocka_unit_test(apply__wild_tokens),
        cmocka_unit_test(apply__larger_than_the_machine),
        cmocka_unit_test(memory__every_allocation_fails_once),
        cmocka_unit_test(restore__as_it_was_or_refused),
        cmocka_unit_test(fit__harmed_in_every_field),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
