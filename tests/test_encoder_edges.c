/* The edges of a pass: nothing to do, no targets, long sequences, numbers that overflow, bad
 * arguments, failing allocations, memory. */
#include "test_encoder_help.h"

#include "fault.h"
#include "encoder/encoder.h"

static fin_error err;

/* ---- little and much ------------------------------------------------------------------------- */

static void nothing__is_answered_by_not_a_number(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 4, 5, 6);
    fin_encoder *o = make_encoder(&s, &shape, 2);
    int64_t P = fin_encoder_parameters(o);
    double *gradient = numbers(P), *losses = numbers(a.tokens);
    for (int64_t i = 0; i < a.tokens; i++)
        losses[i] = 3;
    for (int k = 0; k < 3; k++) { /* no sequences, no heads with targets, no target that is one */
        fin_pass pass = {.dtype = FIN_F32, .gradient = gradient, .losses = losses};
        fin_sequences none = {0};
        if (k == 2)
            for (int64_t i = 0; i < 2 * a.tokens; i++)
                a.targets[0][i] = NAN;
        pass.targets[0] = k == 2 ? a.targets[0] : NULL;
        run_pass(o, k ? &a.s : &none, &pass);
        assert_true(isnan(pass.loss) && isnan(pass.head_loss[0]));
        assert_int_equal(pass.head_targets[0], 0);
        for (int64_t i = 0; i < P; i++)
            assert_true(gradient[i] == 0);
        for (int64_t i = 0; k && i < a.tokens; i++)
            assert_true(isnan(losses[i]));
        for (int64_t i = 0; i < P; i++)
            gradient[i] = NAN;
    }
    free(gradient);
    free(losses);
    fin_encoder_destroy(o);
    free_sample(&a);
}

/* A sequence longer than a group, with short ones around it, against each of them alone. */
static void long_sequences__fit_among_short_ones(void **state)
{
    (void)state;
    enum { N = 4 };
    static const int64_t lengths[N] = {3, 1300, 1, 700};
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = {.inputs = 5, .values = 2, .heads = 1};
    shape.head[0] = head_value;
    int64_t offsets[N + 1] = {0}, d = shape.inputs;
    for (int i = 0; i < N; i++)
        offsets[i + 1] = offsets[i] + lengths[i];
    float *tokens = malloc((size_t)(offsets[N] * d) * sizeof *tokens);
    double *all = numbers(2 * offsets[N]), *one = numbers(2 * offsets[N]);
    assert_non_null(tokens);
    fin_random_normals_f32(3, FIN_STREAM_USER, 0, 0, offsets[N] * d, tokens);
    fin_encoder *o = make_encoder(&s, &shape, 2);
    fin_pass pass = {.dtype = FIN_F32, .blocks = 1, .answers = {all}};
    run_pass(o, &(fin_sequences){N, offsets, tokens, NULL}, &pass);
    for (int i = 0; i < N; i++) {
        int64_t alone[2] = {0, lengths[i]};
        pass.answers[0] = one;
        run_pass(o, &(fin_sequences){1, alone, tokens + offsets[i] * d, NULL}, &pass);
        for (int64_t j = 0; j < 2 * lengths[i]; j++)
            assert_true(fabs(one[j] - all[2 * offsets[i] + j]) < 1e-5);
    }
    free(tokens);
    free(all);
    free(one);
    fin_encoder_destroy(o);
}

/* A loss that is not finite is no failure of the pass. */
static void overflow__is_seen_in_the_loss(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 4, 5, 6);
    for (int attention = 0; attention < 2; attention++) {
        fin_encoder_settings s = small_settings();
        s.attention = attention;
        fin_encoder *o = make_encoder(&s, &shape, 2);
        fin_pass pass = make_pass(&a, FIN_F32);
        double *gradient = pass.gradient = numbers(fin_encoder_parameters(o));
        tensor(o, "layer.0.attention.in.weight")[0] = NAN;
        run_pass(o, &a.s, &pass);
        assert_false(isfinite(pass.loss));
        free(gradient);
        fin_encoder_destroy(o);
    }
    free_sample(&a);
}

/* ---- bad arguments and memory ---------------------------------------------------------------- */

static void refuse(const fin_encoder *o, const fin_sequences *s, fin_pass pass, const char *part)
{
    fin_status status = fin_encoder_pass(o, s, &pass, &err);
    if (status != FIN_ERR_ARGUMENT || !strstr(err.message, part))
        fail_msg("status %d, '%s', not about '%s'", (int)status, err.message, part);
}

static void arguments__are_looked_at(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 4, 5, 6);
    s.positions = FIN_POSITIONS_LEARNED;
    s.longest = 5;
    fin_encoder *o = make_encoder(&s, &shape, 2);
    double some[512];
    float held;
    double kept;
#define BAD(change, part)                                                                          \
    do {                                                                                           \
        fin_sequences q = a.s;                                                                     \
        fin_pass pass = make_pass(&a, FIN_F32);                                                    \
        (void)q;                                                                                   \
        change;                                                                                    \
        refuse(o, &q, pass, part);                                                                 \
    } while (0)
    int64_t empty[5] = {0, 1, 1, 3, 4}, down[5] = {0, 3, 2, 3, 4}, late[5] = {1, 2, 3, 4, 5};
    int64_t longest[2] = {0, 6}, huge[2] = {0, INT64_MAX};
    BAD(q.offsets = empty, "sequence 1 has no tokens");
    BAD(q.offsets = down, "sequence 1 has no tokens");
    BAD(q.offsets = late, "begin with 0");
    BAD((q.offsets = huge, q.n = 1), "tokens");
    BAD((q.offsets = longest, q.n = 1), "learned positions for 5");
    BAD(q.offsets = NULL, "offsets");
    BAD(q.tokens = NULL, "tokens");
    BAD(q.n = -1, "whole blocks");
    BAD(pass.dtype = FIN_I32, "FIN_F64");
    BAD(pass.blocks = -1, "blocks");
    BAD(pass.blocks = 65, "blocks");
    BAD((pass.first = 1, pass.total = 5, pass.blocks = 2), "whole blocks");
    BAD((pass.first = 0, pass.total = 3), "whole blocks");
    BAD((pass.first = -1, pass.total = 3), "whole blocks");
    BAD((pass.first = INT64_MAX, pass.total = INT64_MAX), "whole blocks");
    BAD((pass.total = 11, pass.blocks = 2), "whole blocks");
    BAD((pass.total = 8, pass.blocks = 2), "needs a sum");
    BAD((pass.states = some, pass.layer = 3), "layer 3");
    BAD((pass.pooled = some, pass.layer = -1), "layer -1");
    BAD((pass.maps = some, pass.layer = 2), "layer 2");
    BAD((pass.maps = some, pass.map_head = 2), "head 2");
    BAD((pass.maps = some, pass.map_head = -1), "head -1");
    held = a.data[7];
    a.data[7] = NAN;
    BAD((void)0, "column 2 of token 0 of sequence 1");
    a.data[7] = -INFINITY;
    BAD((void)0, "inf");
    a.data[7] = held;
    kept = a.targets[0][3];
    a.targets[0][2] = 1;
    a.targets[0][3] = INFINITY;
    BAD((void)0, "head value is inf at token 1");
    a.targets[0][3] = kept;
    static const double classes[] = {3, -1, 0.5, INFINITY, 1e300};
    for (int i = 0; i < 5; i++) {
        a.targets[2][1] = classes[i];
        BAD((void)0, "classes are 0 to 2");
    }
#undef BAD
    fin_encoder_destroy(o);
    free_sample(&a);
}

static fin_status pass_with_faults(void *user, fin_error *e)
{
    const sample *a = user;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    double gradient[4096];
    fin_encoder *o;
    s.attention = FIN_ENCODER_CME;
    s.positions = FIN_POSITIONS_SINUSOIDAL;
    fin_status status = fin_encoder_create(&o, &s, &shape, 1, e);
    for (int k = 0; k < 3 && !status; k++) {
        fin_pass pass = make_pass(a, k ? FIN_F64 : FIN_F32);
        pass.gradient = k < 2 ? gradient : NULL;
        status = fin_encoder_pass(o, &a->s, &pass, e);
    }
    fin_encoder_destroy(o);
    return status;
}

static void pass__survives_every_failed_allocation(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 6, 9, 6);
    assert_true(fault_every(pass_with_faults, &a) > 3);
    free_sample(&a);
}

static size_t largest;

static void *note_size(size_t size)
{
    largest = size > largest ? size : largest;
    return malloc(size);
}

/* A pass takes no more than it says, and that does not grow with the number of sequences. */
static void bytes__are_those_of_a_pass(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 400, 30, 6);
    for (int k = 0; k < 4; k++) {
        fin_encoder_settings s = small_settings();
        s.attention = k % 2;
        fin_dtype dtype = k / 2 ? FIN_F64 : FIN_F32;
        fin_memory_hooks(note_size, free);
        fin_encoder *o = make_encoder(&s, &shape, 2);
        double *gradient = numbers(fin_encoder_parameters(o));
        largest = 0;
        fin_pass pass = make_pass(&a, dtype);
        pass.gradient = gradient;
        run_pass(o, &a.s, &pass);
        double bytes = fini_encoder_bytes(o, 30, dtype);
        assert_true((double)largest <= bytes + 128);
        assert_true((double)largest > 0.3 * bytes);
        assert_true(fini_encoder_bytes(o, 3000, dtype) > bytes);
        assert_true(fini_encoder_bytes(o, INT64_MAX, dtype) > 1e18);
        fin_encoder_destroy(o);
        fin_memory_hooks(NULL, NULL);
        free(gradient);
    }
    free_sample(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing__is_answered_by_not_a_number),
        cmocka_unit_test(long_sequences__fit_among_short_ones),
        cmocka_unit_test(overflow__is_seen_in_the_loss),
        cmocka_unit_test(arguments__are_looked_at),
        cmocka_unit_test(pass__survives_every_failed_allocation),
        cmocka_unit_test(bytes__are_those_of_a_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
