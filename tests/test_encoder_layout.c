/* What an encoder is made of: names and places of parameters, what they start as, and what is
 * refused. */
#include "test_encoder_help.h"

#include "fault.h"

static fin_error err;

static void expect(const fin_tensor *t, const char *name, int64_t rows, int64_t columns)
{
    assert_string_equal(t->name, name);
    assert_int_equal(t->dtype, FIN_F32);
    assert_int_equal(t->ndim, columns ? 2 : 1);
    assert_int_equal(t->shape[0], rows);
    if (columns)
        assert_int_equal(t->shape[1], columns);
}

static void tensors__have_the_names_and_shapes_that_are_promised(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t rows, columns;
    } all[] = {{"input.weight", 8, 5},
               {"input.bias", 8, 0},
               {"mask", 8, 0},
               {"positions", 9, 8},
               {"layer.0.norm1.weight", 8, 0},
               {"layer.0.norm1.bias", 8, 0},
               {"layer.0.attention.in.weight", 24, 8},
               {"layer.0.attention.in.bias", 24, 0},
               {"layer.0.attention.out.weight", 8, 8},
               {"layer.0.attention.out.bias", 8, 0},
               {"layer.0.attention.ridge", 2, 0},
               {"layer.0.norm2.weight", 8, 0},
               {"layer.0.norm2.bias", 8, 0},
               {"layer.0.ff1.weight", 12, 8},
               {"layer.0.ff1.bias", 12, 0},
               {"layer.0.ff2.weight", 8, 12},
               {"layer.0.ff2.bias", 8, 0},
               {"norm.weight", 8, 0},
               {"norm.bias", 8, 0},
               {"head.value.weight", 2, 8},
               {"head.value.bias", 2, 0},
               {"head.gauss.weight", 2, 8},
               {"head.gauss.bias", 2, 0},
               {"head.label.weight", 3, 8},
               {"head.label.bias", 3, 0},
               {"head.whole.weight", 4, 8},
               {"head.whole.bias", 4, 0}};
    enum { ALL = sizeof all / sizeof *all };
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    fin_tensor tensors[ALL];
    s.layers = 1;
    s.attention = FIN_ENCODER_CME;
    s.positions = FIN_POSITIONS_LEARNED;
    fin_encoder *o = make_encoder(&s, &shape, 1);
    assert_int_equal(fin_encoder_tensors(o, NULL, 0), ALL);
    assert_int_equal(fin_encoder_tensors(o, tensors, ALL), ALL);
    const float *next = fin_encoder_weights(o);
    for (int i = 0; i < ALL; i++) {
        expect(&tensors[i], all[i].name, all[i].rows, all[i].columns);
        assert_ptr_equal(tensors[i].data, next); /* one block, without holes */
        next += all[i].rows * (all[i].columns ? all[i].columns : 1);
    }
    assert_int_equal(next - fin_encoder_weights(o), fin_encoder_parameters(o));
    fin_encoder_destroy(o);
}

static int has(const fin_encoder *o, const char *part)
{
    fin_tensor tensors[64];
    int64_t n = fin_encoder_tensors(o, tensors, 64);
    for (int64_t i = 0; i < n; i++)
        if (strstr(tensors[i].name, part))
            return 1;
    return 0;
}

static void tensors__leave_out_what_settings_leave_out(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    s.norm = FIN_NORM_NONE;
    s.hidden = 0;
    fin_encoder *o = make_encoder(&s, &shape, 1);
    assert_false(has(o, "norm"));
    assert_false(has(o, "ff"));
    assert_false(has(o, "ridge"));
    assert_false(has(o, "positions"));
    assert_true(has(o, "layer.1.attention.out.bias"));
    assert_false(has(o, "layer.2"));
    fin_encoder_destroy(o);
}

/* Standard deviation of a tensor, |z| of it below 5: the variance of n normals has a relative
 * deviation of sqrt(2 / n). */
static void check_spread(const fin_tensor *t, double sd)
{
    const float *x = t->data;
    int64_t n = t->shape[0] * (t->ndim == 2 ? t->shape[1] : 1);
    double square = 0;
    for (int64_t i = 0; i < n; i++)
        square += (double)x[i] * (double)x[i] / (double)n;
    double z = (square / (sd * sd) - 1) / sqrt(2 / (double)n);
    print_message("%s: z = %.2f\n", t->name, z);
    assert_true(fabs(z) < 5);
}

static void start__is_as_documented(void **state)
{
    (void)state;
    fin_encoder_settings s;
    fin_encoder_shape shape = {.inputs = 50, .values = 1, .heads = 1};
    fin_settings_defaults(&fin_encoder_table, &s, sizeof s);
    shape.head[0] = (fin_head){"value", FIN_HEAD_VALUE, FIN_HEAD_TOKENS, 20, 1};
    s.attention = FIN_ENCODER_CME;
    fin_encoder *o, *again, *other;
    assert_int_equal(fin_encoder_create(&o, &s, &shape, 7, &err), FIN_OK);
    assert_int_equal(fin_encoder_create(&again, &s, &shape, 7, &err), FIN_OK);
    assert_int_equal(fin_encoder_create(&other, &s, &shape, 8, &err), FIN_OK);
    size_t bytes = (size_t)fin_encoder_parameters(o) * sizeof(float);
    assert_memory_equal(fin_encoder_weights(o), fin_encoder_weights(again), bytes);
    assert_memory_not_equal(fin_encoder_weights(o), fin_encoder_weights(other), bytes);
    assert_int_equal(fin_encoder_get_settings(o)->hidden, 256); /* auto: 4 width */
    fin_tensor tensors[64];
    int64_t n = fin_encoder_tensors(o, tensors, 64);
    for (int64_t i = 0; i < n; i++) {
        const fin_tensor *t = &tensors[i];
        double columns = (double)t->shape[1];
        if (t->ndim == 2) {
            int residual = strstr(t->name, "out.weight") || strstr(t->name, "ff2.weight");
            double by = strstr(t->name, "head") ? 0.1 : residual ? 0.5 : 1; /* 1 / sqrt(2 * 2) */
            check_spread(t, by / sqrt(columns));
        } else if (strcmp(t->name, "input.bias") == 0) {
            check_spread(t, 1);
        } else {
            float value = strstr(t->name, "norm") && strstr(t->name, "weight") ? 1 : 0;
            for (int64_t j = 0; j < t->shape[0]; j++)
                assert_true(((const float *)t->data)[j] == value);
        }
    }
    fin_encoder_destroy(o);
    s.norm = FIN_NORM_NONE;
    s.hidden = 0; /* with neither norms nor feed-forward parts the input's bias is 0 */
    assert_int_equal(fin_encoder_create(&o, &s, &shape, 7, &err), FIN_OK);
    fin_encoder_tensors(o, tensors, 2);
    for (int64_t j = 0; j < tensors[1].shape[0]; j++)
        assert_true(((const float *)tensors[1].data)[j] == 0);
    fin_encoder_destroy(o);
    fin_encoder_destroy(again);
    fin_encoder_destroy(other);
}

/* ---- what is refused ------------------------------------------------------------------------- */

static void refuse(const fin_encoder_settings *s, const fin_encoder_shape *shape, const char *part)
{
    fin_encoder *o = (fin_encoder *)&err;
    fin_status status = fin_encoder_create(&o, s, shape, 1, &err);
    if (status != FIN_ERR_ARGUMENT || o || !strstr(err.message, part))
        fail_msg("status %d, '%s', not about '%s'", (int)status, err.message, part);
}

static void create__refuses_what_is_no_encoder(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    for (int i = 0; i < fin_encoder_table.count; i++) {
        const fin_field *f = &fin_encoder_table.fields[i];
        if (f->type == FIN_TYPE_choice)
            continue;
        for (int side = 0; side < 2; side++) {
            fin_encoder_settings s = small_settings();
            int64_t past = side ? (int64_t)f->highest + 1 : (int64_t)f->lowest - 1;
            memcpy((unsigned char *)&s + f->offset, &past, sizeof past);
            refuse(&s, &shape, f->name);
        }
    }
    fin_encoder_settings s = small_settings();
    s.heads = 3;
    refuse(&s, &shape, "such as 9");
    s = small_settings();
    s.attention = 2;
    refuse(&s, &shape, "attention");
    s = small_settings();
    s.positions = FIN_POSITIONS_LEARNED;
    s.longest = FIN_AUTO_INT;
    refuse(&s, &shape, "longest");
}

static void create__refuses_bad_shapes(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
#define BAD(change, part)                                                                          \
    do {                                                                                           \
        fin_encoder_shape shape = small_shape();                                                   \
        change;                                                                                    \
        refuse(&s, &shape, part);                                                                  \
    } while (0)
    BAD(shape.inputs = 0, "columns");
    BAD(shape.inputs = INT64_MAX, "columns");
    BAD(shape.values = -1, "value");
    BAD(shape.values = 6, "value");
    BAD(shape.heads = 0, "heads");
    BAD(shape.heads = 9, "heads");
    BAD(shape.head[1].name[0] = 0, "name of head 1");
    BAD(shape.head[1].name[1] = '.', "name of head 1");
    BAD(memset(shape.head[1].name, 'a', sizeof shape.head[1].name), "name of head 1");
    BAD(strcpy(shape.head[1].name, "value"), "both called value");
    BAD(shape.head[2].size = 1, "size 1");
    BAD(shape.head[0].size = 0, "size 0");
    BAD(shape.head[0].size = INT64_MAX, "size");
    BAD(shape.head[0].kind = 3, "kind 3");
    BAD(shape.head[0].kind = -1, "kind -1");
    BAD(shape.head[0].where = 2, "place 2");
    BAD(shape.head[0].weight = NAN, "weight");
    BAD(shape.head[0].weight = -1, "weight");
    BAD(shape.head[0].weight = INFINITY, "weight");
#undef BAD
}

static void *small_only(size_t size)
{
    return size > (size_t)1 << 30 ? NULL : malloc(size);
}

/* Far more parameters than there is memory (a system may promise more than it has: not asked). */
static void create__answers_when_memory_is_out(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    fin_encoder *o;
    s.width = 8192;
    s.layers = 256;
    s.heads = 1;
    s.hidden = 65536;
    fin_memory_hooks(small_only, free);
    fin_status status = fin_encoder_create(&o, &s, &shape, 1, &err);
    fin_memory_hooks(NULL, NULL);
    assert_int_equal(status, FIN_ERR_MEMORY);
    assert_null(o);
    fin_encoder_destroy(NULL);
}

static fin_status create_and_destroy(void *user, fin_error *e)
{
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    fin_encoder *o;
    (void)user;
    fin_status status = fin_encoder_create(&o, &s, &shape, 1, e);
    fin_encoder_destroy(o);
    return status;
}

static void create__survives_every_failed_allocation(void **state)
{
    (void)state;
    assert_true(fault_every(create_and_destroy, NULL) > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors__have_the_names_and_shapes_that_are_promised),
        cmocka_unit_test(tensors__leave_out_what_settings_leave_out),
        cmocka_unit_test(start__is_as_documented),
        cmocka_unit_test(create__refuses_what_is_no_encoder),
        cmocka_unit_test(create__refuses_bad_shapes),
        cmocka_unit_test(create__answers_when_memory_is_out),
        cmocka_unit_test(create__survives_every_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
