/* Bad input to the task module is answered by a status and a message; out of memory leaves nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_task_help.h"

static void refused(fin_status want, fin_status got, const fin_error *err, const char *what)
{
    if (got != want || err->status != want || !err->message[0])
        fail_msg("%s: '%s', message '%s'", what, fin_status_name(got), err->message);
}

static void create_refused(const char *kind, const fin_task_settings *s, const fin_lengths *lengths,
                           int flags, const char *what)
{
    fin_task *task = (fin_task *)1;
    fin_error err = {FIN_OK, ""};
    fin_status status = fin_task_create(&task, fin_task_find(kind), s, lengths, 1, flags, &err);
    refused(FIN_ERR_ARGUMENT, status, &err, what);
    assert_null(task);
    assert_int_equal(fin_task_create(&task, fin_task_find(kind), s, lengths, 1, flags, NULL),
                     FIN_ERR_ARGUMENT);
    fin_task_destroy(task);
}

static void create__refuses_bad_settings(void **state)
{
    (void)state;
    create_refused("no such task", NULL, NULL, 0, "unknown kind");
    for (int i = 0; i < fin_task_count(); i++) {
        const char *kind = fin_task_kind_name(fin_task_at(i));
        fin_task_settings s = help_settings(kind, 5, 4);
        s.m = 5;
        create_refused(kind, &s, NULL, 0, "m > L");
        s.m = 3;
        s.L_min = 2;
        create_refused(kind, &s, NULL, 0, "m > L_min");
        s = help_settings(kind, 5, 4);
        s.L_min = 5;
        create_refused(kind, &s, NULL, 0, "L_min > L");
        s = help_settings(kind, (INT64_C(1) << 28) + 1, 4);
        create_refused(kind, &s, NULL, FIN_TASK_AMBIENT, "d too large for vectors");
        s = help_settings(kind, 5, 4);
        s.eps = NAN;
        create_refused(kind, &s, NULL, 0, "eps NaN");
        s = help_settings(kind, 1, 4);
        create_refused(kind, &s, NULL, 0, "d = 1");
    }
    fin_task_settings s = help_settings("spiked", 5, 4);
    s.snr = INFINITY;
    create_refused("spiked", &s, NULL, 0, "spiked at snr = inf");
    s = help_settings("slr", 5, 4);
    s.gamma = -1;
    create_refused("slr", &s, NULL, 0, "gamma < 0");
    s = help_settings("slr", 5, 4);
    s.snr = NAN; /* not a setting of slr: ignored */
    fin_task *task;
    assert_int_equal(fin_task_create(&task, fin_task_find("slr"), &s, NULL, 1, 0, NULL), FIN_OK);
    fin_task_destroy(task);
    fin_task_destroy(NULL);
    assert_null(fin_task_find("SLR"));
    assert_null(fin_task_find(""));
    assert_null(fin_task_at(-1));
    assert_null(fin_task_at(fin_task_count()));
    for (int i = 0; i < fin_task_count(); i++) {
        assert_ptr_equal(fin_task_find(fin_task_kind_name(fin_task_at(i))), fin_task_at(i));
        assert_true(fin_task_kind_summary(fin_task_at(i))[0] != 0);
    }
}

static void create__refuses_bad_lengths(void **state)
{
    (void)state;
    const int64_t good_L[] = {3, 4}, zero[] = {3, 0}, negative[] = {-3, 4},
                  large[] = {3, FIN_L_MAX + 1};
    const double good_p[] = {1, 2}, none[] = {1, 0}, minus[] = {-1, 2}, nan[] = {1, NAN},
                 inf[] = {INFINITY, 1};
    const fin_lengths bad[] = {
        {0, good_L, good_p}, {-1, good_L, good_p},  {2, NULL, good_p},  {2, good_L, NULL},
        {2, zero, good_p},   {2, negative, good_p}, {2, large, good_p}, {2, good_L, none},
        {2, good_L, minus},  {2, good_L, nan},      {2, good_L, inf},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        create_refused("slr", NULL, &bad[i], 0, "lengths");
    fin_task_settings s = help_settings("slr", 5, 100);
    s.m = 4;
    create_refused("slr", &s, &(fin_lengths){2, good_L, good_p}, 0,
                   "m above the shortest given length");
}

static void draw__refuses_what_it_cannot_do(void **state)
{
    (void)state;
    fin_task_settings s = help_settings("slr", 5, 4);
    fin_task *bare, *task = help_task("slr", &s, 1), *wide;
    assert_int_equal(fin_task_create(&bare, fin_task_find("slr"), &s, NULL, 1, 0, NULL), FIN_OK);
    fin_error err = {FIN_OK, ""};
    int64_t good[3] = {0, 4, 8}, uneven[3] = {0, 4, 9}, backwards[3] = {4, 0, 4};
    double X[64], w[64], y[2];
    const fin_overlaps o = {1, 1, 0, 0, 0};
    fin_projections out = {.chi = X};
    refused(FIN_ERR_ARGUMENT, fin_task_draw(bare, 0, 2, FIN_F64, good, X, NULL, NULL, &err), &err,
            "no vectors");
    refused(FIN_ERR_ARGUMENT, fin_task_draw(task, 0, -1, FIN_F64, good, X, NULL, NULL, &err), &err,
            "n < 0");
    refused(FIN_ERR_ARGUMENT, fin_task_draw(task, 0, 2, FIN_F64, uneven, X, NULL, NULL, &err), &err,
            "too long");
    refused(FIN_ERR_ARGUMENT, fin_task_draw(task, 0, 2, FIN_F64, backwards, X, NULL, NULL, &err),
            &err, "backwards");
    refused(FIN_ERR_ARGUMENT, fin_task_project(task, &o, 0, -1, good, &out, NULL, NULL, &err), &err,
            "n < 0");
    refused(FIN_ERR_ARGUMENT, fin_task_project(task, &o, 0, 2, uneven, &out, NULL, NULL, &err),
            &err, "too long");
    refused(FIN_ERR_ARGUMENT, fin_task_project(task, &o, 0, 2, backwards, &out, NULL, NULL, &err),
            &err, "backwards");
    const fin_dtype types[] = {FIN_I32, FIN_I64, FIN_U8, (fin_dtype)77};
    for (int i = 0; i < 4; i++) {
        fin_batch batch = {2, 5, types[i], X, good};
        refused(FIN_ERR_ARGUMENT, fin_task_draw(task, 0, 2, types[i], good, X, NULL, NULL, &err),
                &err, "integers");
        refused(FIN_ERR_ARGUMENT, fin_task_posterior(task, &batch, w, &err), &err, "integers");
    }
    int64_t offsets[1];
    refused(FIN_ERR_ARGUMENT, fin_task_offsets(task, 0, -1, offsets, &err), &err, "n < 0");
    refused(FIN_ERR_ARGUMENT, fin_task_offsets(task, 0, INT64_MAX, offsets, &err), &err,
            "offsets overflow");
    s = help_settings("slr", INT64_C(1) << 20, (INT64_C(1) << 13) + 1);
    assert_int_equal(
        fin_task_create(&wide, fin_task_find("slr"), &s, NULL, 1, FIN_TASK_AMBIENT, NULL), FIN_OK);
    int64_t huge[2] = {0, s.L};
    refused(FIN_ERR_ARGUMENT, fin_task_draw(wide, 0, 1, FIN_F32, huge, NULL, NULL, NULL, &err),
            &err, "2^33 numbers");
    fin_task_destroy(wide);

    fin_batch batch = {2, 5, FIN_F64, X, good}, other = {2, 6, FIN_F64, X, good},
              empty = {2, 5, FIN_F64, X, backwards};
    int64_t nothing[3] = {0, 4, 4};
    fin_batch hollow = {2, 5, FIN_F64, X, nothing}, minus = {-1, 5, FIN_F64, X, good};
    refused(FIN_ERR_ARGUMENT, fin_task_posterior(bare, &batch, w, &err), &err, "no vectors");
    refused(FIN_ERR_ARGUMENT, fin_task_predict(bare, &batch, y, &err), &err, "no vectors");
    refused(FIN_ERR_ARGUMENT, fin_task_posterior(task, &other, w, &err), &err, "other d");
    refused(FIN_ERR_ARGUMENT, fin_task_predict(task, &other, y, &err), &err, "other d");
    refused(FIN_ERR_ARGUMENT, fin_task_predict(task, &empty, y, &err), &err, "backwards");
    refused(FIN_ERR_ARGUMENT, fin_task_predict(task, &hollow, y, &err), &err,
            "a sample without tokens");
    refused(FIN_ERR_ARGUMENT, fin_task_posterior(task, &minus, w, &err), &err, "n < 0");
    fin_task_destroy(task);
    fin_task_destroy(bare);
    s = help_settings("slr", 5, 4);
    s.m = 2;
    task = help_task("slr", &s, 1);
    refused(FIN_ERR_UNSUPPORTED, fin_task_posterior(task, &batch, w, &err), &err, "m = 2");
    refused(FIN_ERR_UNSUPPORTED, fin_task_predict(task, &batch, y, &err), &err, "m = 2");
    fin_task_destroy(task);
    s.m = 1;
    s.gamma = 0;
    task = help_task("slr", &s, 1);
    refused(FIN_ERR_UNSUPPORTED, fin_task_posterior(task, &batch, w, &err), &err, "gamma = 0");
    int64_t J[2]; /* but it can be drawn: the token is mu k*, and Y its part along v*, 0 */
    assert_int_equal(fin_task_draw(task, 0, 2, FIN_F64, good, X, y, J, NULL), FIN_OK);
    for (int c = 0; c < 5; c++)
        assert_true(X[J[0] * 5 + c] == fin_task_get_settings(task)->mu * fin_task_k_star(task)[c]);
    assert_true(fabs(y[0]) < 1e-15);
    fin_task_destroy(task);
}

static void set_directions__must_be_orthonormal(void **state)
{
    (void)state;
    fin_task_settings s = help_settings("spiked", 3, 4);
    fin_task *task = help_task("spiked", &s, 1), *bare;
    assert_int_equal(fin_task_create(&bare, fin_task_find("spiked"), &s, NULL, 1, 0, NULL), FIN_OK);
    const double good[2][3] = {{0.6, 0, 0.8}, {0, -1, 0}};
    const double bad[][2][3] = {{{0.6, 0, 0.8}, {0.8, 0, 0.6}}, {{1, 0, 0}, {0, 1, 1e-4}},
                                {{1, 1e-4, 0}, {0, 1, 0}},      {{0, 0, 0}, {0, 1, 0}},
                                {{NAN, 0, 0}, {0, 1, 0}},       {{1, 0, 0}, {0, INFINITY, 0}},
                                {{1, 0, 0}, {1e-8, 1, 0}}};
    fin_error err = {FIN_OK, ""};
    refused(FIN_ERR_ARGUMENT, fin_task_set_directions(bare, good[0], good[1], &err), &err,
            "no vectors");
    assert_int_equal(fin_task_set_directions(task, good[0], good[1], NULL), FIN_OK);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        refused(FIN_ERR_ARGUMENT, fin_task_set_directions(task, bad[i][0], bad[i][1], &err), &err,
                "not orthonormal");
    assert_memory_equal(fin_task_k_star(task), good[0],
                        sizeof good[0]); /* untouched by what was refused */
    assert_memory_equal(fin_task_v_star(task), good[1], sizeof good[1]);
    help_batch b = help_draw(task, 0, 50, FIN_F64); /* and used */
    for (int64_t i = 0; i < 50; i++)
        assert_true(b.y[i] == -help_at(&b, b.offsets[i] + b.location[i], 1));
    help_free(&b);
    fin_task_destroy(task);
    fin_task_destroy(bare);
}

static fin_status use_everything(void *user, fin_error *err)
{
    const char *kind = user;
    const int64_t L[] = {70, 75}; /* m > 64: more than the stack holds */
    const double p[] = {1, 2};
    const fin_lengths lengths = {2, L, p};
    static float X[20 * 75 * 5];
    static double chi[20 * 75], y[20];
    int64_t offsets[21];
    const fin_overlaps o = {1, 1, 0, 0, 0};
    fin_task_settings s = help_settings(kind, 5, 75);
    s.m = 65;
    fin_task *task;
    fin_status status =
        fin_task_create(&task, fin_task_find(kind), &s, &lengths, 1, FIN_TASK_AMBIENT, err);
    if (!status)
        status = fin_task_offsets(task, 0, 20, offsets, err);
    if (!status)
        status = fin_task_draw(task, 0, 20, FIN_F32, offsets, X, y, NULL, err);
    if (!status)
        status = fin_task_project(task, &o, 0, 20, offsets, &(fin_projections){.chi = chi}, y, NULL,
                                  err);
    fin_task_destroy(task);
    return status;
}

static void task__survives_every_failed_allocation(void **state)
{
    (void)state;
    for (int i = 0; i < fin_task_count(); i++) {
        long count = fault_every(use_everything, (void *)fin_task_kind_name(fin_task_at(i)));
        print_message("%s: %ld allocations\n", fin_task_kind_name(fin_task_at(i)), count);
        assert_true(count >= 4);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create__refuses_bad_settings),
        cmocka_unit_test(create__refuses_bad_lengths),
        cmocka_unit_test(draw__refuses_what_it_cannot_do),
        cmocka_unit_test(set_directions__must_be_orthonormal),
        cmocka_unit_test(task__survives_every_failed_allocation),
    };
    return cmocka_run_group_tests_name("task_errors", tests, NULL, NULL);
}
