/* Parameters loaded by name: all, some, in any order; and what a hostile file gets. */
#include "test_encoder_help.h"
#include "test_state.h"

static fin_error err;

enum { MOST = 64 };

static void load__copies_by_name_in_any_order(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    fin_encoder *from = make_encoder(&s, &shape, 1), *to = make_encoder(&s, &shape, 2);
    fin_tensor tensors[MOST], turned[MOST];
    int64_t n = fin_encoder_tensors(from, tensors, MOST), copied = -1;
    size_t bytes = (size_t)fin_encoder_parameters(to) * sizeof(float);
    for (int64_t i = 0; i < n; i++)
        turned[i] = tensors[n - 1 - i];
    unsigned char heads[16 * sizeof(double) + 1];
    for (int64_t i = 0; i < 16; i++) { /* head.value.weight as double, and not aligned */
        double x = (double)((const float *)tensors[n - 8].data)[i];
        memcpy(heads + 1 + (size_t)i * sizeof x, &x, sizeof x);
    }
    assert_string_equal(turned[7].name, "head.value.weight");
    turned[7].dtype = FIN_F64;
    turned[7].data = heads + 1;
    assert_int_equal(fin_encoder_load(to, turned, n, 0, &copied, &err), FIN_OK);
    assert_int_equal(copied, n);
    assert_memory_equal(fin_encoder_weights(from), fin_encoder_weights(to), bytes);
    fin_encoder_destroy(from);
    fin_encoder_destroy(to);
}

static void load__takes_some_where_that_is_asked_for(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape(), less = small_shape();
    less.heads = 1;
    strcpy(less.head[0].name, "other");
    fin_encoder *from = make_encoder(&s, &shape, 1), *to = make_encoder(&s, &less, 2);
    fin_tensor tensors[MOST], own[MOST];
    int64_t n = fin_encoder_tensors(from, tensors, MOST), m = fin_encoder_tensors(to, own, MOST);
    int64_t copied = -1, body = m - 2, P = fin_encoder_parameters(to);
    int64_t shared = (const float *)own[body].data - fin_encoder_weights(to);
    float *before = malloc((size_t)P * sizeof *before);
    assert_non_null(before);
    memcpy(before, fin_encoder_weights(to), (size_t)P * sizeof *before);
    assert_int_equal(fin_encoder_load(to, tensors, n, 0, &copied, &err), FIN_ERR_FORMAT);
    assert_int_equal(copied, 0);
    assert_memory_equal(before, fin_encoder_weights(to), (size_t)P * sizeof *before);
    assert_int_equal(fin_encoder_load(to, tensors, n, 1, &copied, &err), FIN_OK);
    assert_int_equal(copied, body);
    assert_memory_equal(fin_encoder_weights(to), fin_encoder_weights(from),
                        (size_t)shared * sizeof(float));
    assert_memory_equal(fin_encoder_weights(to) + shared, before + shared,
                        (size_t)(P - shared) * sizeof(float));
    free(before);
    fin_encoder_destroy(from);
    fin_encoder_destroy(to);
}

static void load__refuses_and_changes_nothing(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    fin_encoder *from = make_encoder(&s, &shape, 1), *to = make_encoder(&s, &shape, 2);
    fin_tensor good[MOST], bad[MOST];
    int64_t n = fin_encoder_tensors(from, good, MOST);
    size_t bytes = (size_t)fin_encoder_parameters(to) * sizeof(float);
    float *before = malloc(bytes), numbers_of_last[4] = {1, 2, NAN, 4};
    assert_non_null(before);
    memcpy(before, fin_encoder_weights(to), bytes);
    for (int kind = 0; kind < 11; kind++) {
        fin_tensor *last = &bad[n - 1]; /* so that what comes before would be copied */
        int64_t count = n;
        double huge[4] = {0, 0, 0, 1e300};
        memcpy(bad, good, sizeof bad);
        switch (kind) {
        case 0:
            last->shape[0] = 5;
            break;
        case 1:
            last->shape[0] = -4;
            break;
        case 2:
            last->ndim = 2;
            last->shape[1] = 1;
            break;
        case 3:
            last->ndim = 0;
            break;
        case 4:
            last->ndim = -1;
            break;
        case 5:
            last->dtype = FIN_I32;
            break;
        case 6:
            last->data = NULL;
            break;
        case 7:
            last->data = numbers_of_last;
            break;
        case 8:
            last->dtype = FIN_F64;
            last->data = huge;
            break;
        case 9:
            count = n - 1;
            break;
        case 10:
            memset(last->name, 'x', sizeof last->name);
            break;
        }
        for (int some = 0; some < 2; some++) {
            fin_status status = fin_encoder_load(to, bad, count, some, NULL, &err);
            bool fine = some && kind >= 9;
            if (status != (fine ? FIN_OK : FIN_ERR_FORMAT) || (!fine && !err.message[0]))
                fail_msg("kind %d, some %d: status %d, %s", kind, some, (int)status, err.message);
            if (fine)
                memcpy(fin_encoder_weights(to), before, bytes);
            assert_memory_equal(before, fin_encoder_weights(to), bytes);
        }
    }
    assert_int_equal(fin_encoder_load(to, NULL, 1, 0, NULL, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_encoder_load(to, good, -1, 1, NULL, &err), FIN_ERR_ARGUMENT);
    free(before);
    fin_encoder_destroy(from);
    fin_encoder_destroy(to);
}

static fin_status load_all(void *user, const fin_tensor *tensors, int64_t count, fin_error *why)
{
    return fin_encoder_load(user, tensors, count, 0, NULL, why);
}

/* Every tensor, harmed in every way. */
static void load__refuses_every_harm(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    fin_encoder *encoder = make_encoder(&s, &shape, 1), *from = make_encoder(&s, &shape, 2);
    fin_tensor tensors[MOST];
    char names[MOST][48];
    fini_state_field fields[MOST];
    int64_t n = fin_encoder_tensors(from, tensors, MOST);
    for (int64_t i = 0; i < n; i++) {
        memcpy(names[i], tensors[i].name, sizeof names[i]);
        fields[i] =
            (fini_state_field){.name = names[i], .dtype = FIN_F32, .flags = FINI_STATE_FLOATS};
    }
    const fini_state all = {"encoder", "", fields, (int)n};
    assert_true(state_harm_every(&all, "", tensors, n, load_all, encoder) > 30 * n);
    fin_encoder_destroy(from);
    fin_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(load__copies_by_name_in_any_order),
        cmocka_unit_test(load__takes_some_where_that_is_asked_for),
        cmocka_unit_test(load__refuses_and_changes_nothing),
        cmocka_unit_test(load__refuses_every_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
