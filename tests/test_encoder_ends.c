/* Where only targets of hidden tokens are asked for, the last layer leaves out what nobody needs of
 * the visible ones. The same passes with answers asked for, which leave out nothing, say what has
 * to come of it. */
#include "test_encoder_help.h"

typedef struct result {
    double loss, *losses, *gradient;
} result;

/* Token heads alone. Targets are those of hidden tokens; sequence 3 has some at visible ones, and
 * sequence 4 is all visible, so that nothing at all is asked of it. */
static sample masked(fin_encoder_shape *shape, int64_t n, int64_t longest)
{
    *shape = small_shape();
    shape->heads = 2;
    sample a = make_sample(shape, n, longest, 6);
    for (int64_t i = 0; i < n; i++)
        for (int64_t l = a.offsets[i]; l < a.offsets[i + 1]; l++) {
            if (i == 4)
                a.hidden[l] = 0;
            if (i != 3 && !a.hidden[l])
                a.targets[0][2 * l] = a.targets[0][2 * l + 1] = a.targets[1][l] = NAN;
        }
    return a;
}

static result ask(const fin_encoder *o, const sample *a, fin_dtype dtype, int heads_only,
                  double *answers)
{
    result r = {0, numbers(a->tokens), numbers(fin_encoder_parameters(o))};
    fin_pass pass = make_pass(a, dtype);
    for (int64_t l = 0; l < a->tokens; l++)
        r.losses[l] = 3; /* to be written, also where there is no target */
    pass.gradient = r.gradient;
    pass.losses = r.losses;
    pass.heads_only = heads_only;
    pass.answers[1] = answers;
    pass.blocks = 5;
    run_pass(o, &a->s, &pass);
    r.loss = pass.loss;
    return r;
}

static void free_result(result *r)
{
    free(r->losses);
    free(r->gradient);
}

/* Within `most` of the largest number of a tensor: rounding of sums in another order. */
static void near(const fin_encoder *o, const sample *a, const result *x, const result *y,
                 double most)
{
    fin_tensor tensors[64];
    int64_t count = fin_encoder_tensors(o, tensors, 64), at = 0;
    assert_true(count <= 64 && fabs(x->loss - y->loss) < most * fabs(y->loss));
    for (int64_t l = 0; l < a->tokens; l++)
        assert_true(isnan(y->losses[l])
                        ? isnan(x->losses[l])
                        : fabs(x->losses[l] - y->losses[l]) < most * (1 + y->losses[l]));
    for (int64_t t = 0; t < count; t++) {
        int64_t size = 1;
        double largest = 0, error = 0;
        for (int i = 0; i < tensors[t].ndim; i++)
            size *= tensors[t].shape[i];
        for (int64_t i = at; i < at + size; i++) {
            largest = fmax(largest, fabs(y->gradient[i]));
            error = fmax(error, fabs(x->gradient[i] - y->gradient[i]));
            assert_false(isnan(x->gradient[i]));
        }
        if (!(error <= most * largest))
            fail_msg("%s: off by %g of %g", tensors[t].name, error, largest);
        at += size;
    }
}

/* Width 16 with 16 or 0 hidden units goes through the kernels' own products. */
static void ends__of_targets_alone_are_those_of_all(void **state)
{
    (void)state;
    fin_encoder_shape shape;
    sample a = masked(&shape, 40, 30);
    double *answers = numbers(2 * a.tokens);
    for (int k = 0; k < 48; k++) {
        fin_encoder_settings s = small_settings();
        s.width = k / 2 % 2 ? 16 : 8;
        s.hidden = k / 4 % 3 == 0 ? 0 : k / 4 % 3 == 1 ? 16 : 12;
        s.attention = k / 12 % 2;
        s.norm = k / 24;
        s.layers = 1 + k % 3;
        s.positions = k % 5 == 0 ? FIN_POSITIONS_SINUSOIDAL : FIN_POSITIONS_NONE;
        fin_dtype dtype = k % 2 ? FIN_F64 : FIN_F32;
        fin_encoder *o = make_encoder(&s, &shape, 2);
        for (int heads_only = 0; heads_only < 2; heads_only++) {
            result some = ask(o, &a, dtype, heads_only, NULL);
            result all = ask(o, &a, dtype, heads_only, answers);
            near(o, &a, &some, &all, dtype == FIN_F64 ? 1e-12 : 2e-5);
            free_result(&some);
            free_result(&all);
        }
        fin_encoder_destroy(o);
    }
    free(answers);
    free_sample(&a);
}

/* Nothing is asked of any sequence: no rows at all. */
static void ends__may_be_none(void **state)
{
    (void)state;
    fin_encoder_shape shape;
    sample a = masked(&shape, 6, 9);
    memset(a.hidden, 0, (size_t)a.tokens);
    for (int64_t l = 0; l < a.tokens; l++)
        a.targets[0][2 * l] = a.targets[0][2 * l + 1] = a.targets[1][l] = NAN;
    for (int k = 0; k < 8; k++) {
        fin_encoder_settings s = small_settings();
        s.width = k / 4 ? 16 : 8;
        s.hidden = 16;
        s.attention = k / 2 % 2;
        fin_encoder *o = make_encoder(&s, &shape, 2);
        result r = ask(o, &a, k % 2 ? FIN_F64 : FIN_F32, 0, NULL);
        assert_true(isnan(r.loss));
        for (int64_t i = 0; i < fin_encoder_parameters(o); i++)
            assert_true(r.gradient[i] == 0);
        free_result(&r);
        fin_encoder_destroy(o);
    }
    free_sample(&a);
}

static void ends__same_bits_for_threads(void **state)
{
    (void)state;
    fin_encoder_shape shape;
    sample a = masked(&shape, 150, 40);
    for (int attention = 0; attention < 2; attention++) {
        fin_encoder_settings s = small_settings();
        s.width = 16;
        s.attention = attention;
        fin_encoder *o = make_encoder(&s, &shape, 2);
        size_t bytes = (size_t)fin_encoder_parameters(o) * sizeof(double);
        fin_threads_set(1);
        result one = ask(o, &a, FIN_F32, 0, NULL);
        for (int threads = 2; threads < 8; threads += 2) {
            fin_threads_set(threads);
            result more = ask(o, &a, FIN_F32, 0, NULL);
            assert_true(more.loss == one.loss);
            assert_memory_equal(more.gradient, one.gradient, bytes);
            free_result(&more);
        }
        fin_threads_set(0);
        free_result(&one);
        fin_encoder_destroy(o);
    }
    free_sample(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends__of_targets_alone_are_those_of_all),
        cmocka_unit_test(ends__may_be_none),
        cmocka_unit_test(ends__same_bits_for_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
