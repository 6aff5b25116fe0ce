/* Tokens are a set: a permutation of them permutes what comes out, to the last bit, and changes no
 * loss and no gradient. What a hidden token hides cannot matter, nor can other hidden tokens. */
#include "test_encoder_help.h"

#include <stdio.h>

/* Everything that a pass gives. */
typedef struct outcome {
    double *answers[2], *losses, *states, *pooled, *maps, *gradient, loss, label[3 * 64];
} outcome;

static int64_t map_numbers(const sample *a)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->s.n; i++)
        n += (a->offsets[i + 1] - a->offsets[i]) * (a->offsets[i + 1] - a->offsets[i]);
    return n;
}

static outcome everything(const fin_encoder *o, const sample *a, fin_dtype dtype, int64_t layer,
                          int maps)
{
    const fin_encoder_settings *s = fin_encoder_get_settings(o);
    outcome r = {{numbers(2 * a->tokens), numbers(2 * a->tokens)},
                 numbers(a->tokens),
                 numbers(a->tokens * s->width),
                 numbers(a->s.n * s->width),
                 numbers(map_numbers(a)),
                 numbers(fin_encoder_parameters(o)),
                 0,
                 {0}};
    fin_pass pass = make_pass(a, dtype);
    pass.answers[0] = r.answers[0];
    pass.answers[1] = r.answers[1];
    pass.answers[2] = r.label;
    pass.losses = r.losses;
    pass.states = r.states;
    pass.pooled = r.pooled;
    pass.layer = layer;
    pass.maps = maps ? r.maps : NULL;
    pass.map_head = 1;
    pass.gradient = r.gradient;
    assert_in_range(a->s.n, 1, 64);
    run_pass(o, &a->s, &pass);
    r.loss = pass.loss;
    return r;
}

static void free_outcome(outcome *r)
{
    double *all[] = {r->answers[0], r->answers[1], r->losses,  r->states,
                     r->pooled,     r->maps,       r->gradient};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

/* b: the tokens of a, those of each sequence in another order; from[l] of b's token l: a's. */
static sample permute(const sample *a, const fin_encoder_shape *shape, uint64_t seed, int64_t *from)
{
    sample b = make_sample(shape, a->s.n, 1, 1);
    fin_random r;
    fin_random_open(&r, seed, FIN_STREAM_USER + 2, 0);
    free_sample(&b);
    memset(&b, 0, sizeof b);
    b.tokens = a->tokens;
    b.offsets = malloc((size_t)(a->s.n + 1) * sizeof *b.offsets);
    b.data = malloc((size_t)(a->tokens * shape->inputs) * sizeof *b.data);
    b.hidden = malloc((size_t)a->tokens);
    assert_true(b.offsets && b.data && b.hidden);
    memcpy(b.offsets, a->offsets, (size_t)(a->s.n + 1) * sizeof *b.offsets);
    for (int64_t i = 0; i < a->s.n; i++)
        for (int64_t l = a->offsets[i]; l < a->offsets[i + 1]; l++) {
            int64_t other = a->offsets[i] + fin_random_below(&r, l - a->offsets[i] + 1);
            from[l] = from[other];
            from[other] = l;
        }
    for (int64_t l = 0; l < a->tokens; l++) {
        memcpy(b.data + l * shape->inputs, a->data + from[l] * shape->inputs,
               (size_t)shape->inputs * sizeof *b.data);
        b.hidden[l] = a->hidden[from[l]];
    }
    for (int h = 0; h < (int)shape->heads; h++) {
        int64_t m = fin_head_targets(&shape->head[h]);
        bool tokens = shape->head[h].where == FIN_HEAD_TOKENS;
        int64_t n = tokens ? a->tokens : a->s.n;
        b.targets[h] = numbers(n * m);
        for (int64_t l = 0; l < n; l++)
            memcpy(b.targets[h] + l * m, a->targets[h] + (tokens ? from[l] : l) * m,
                   (size_t)m * sizeof(double));
    }
    b.s = (fin_sequences){a->s.n, b.offsets, b.data, b.hidden};
    return b;
}

static bool same_rows(int64_t n, int64_t m, const int64_t *from, const double *a, const double *b)
{
    for (int64_t l = 0; l < n; l++)
        if (memcmp(b + l * m, a + from[l] * m, (size_t)m * sizeof *a) != 0)
            return false;
    return true;
}

static bool same_maps(const sample *a, const int64_t *from, const double *x, const double *y)
{
    for (int64_t i = 0; i < a->s.n; i++) {
        int64_t at = a->offsets[i], L = a->offsets[i + 1] - at;
        for (int64_t l = 0; l < L; l++)
            for (int64_t m = 0; m < L; m++)
                if (y[l * L + m] != x[(from[at + l] - at) * L + from[at + m] - at])
                    return false;
        x += L * L;
        y += L * L;
    }
    return true;
}

/* True if everything is permuted to the last bit. */
static bool permuted(const fin_encoder *o, const sample *a, const sample *b, const int64_t *from,
                     fin_dtype dtype, int64_t layer, bool gradients)
{
    int64_t w = fin_encoder_get_settings(o)->width, P = fin_encoder_parameters(o);
    int maps = layer < fin_encoder_get_settings(o)->layers;
    outcome x = everything(o, a, dtype, layer, maps), y = everything(o, b, dtype, layer, maps);
    bool same = same_rows(a->tokens, 2, from, x.answers[0], y.answers[0]) &&
                same_rows(a->tokens, 2, from, x.answers[1], y.answers[1]) &&
                same_rows(a->tokens, 1, from, x.losses, y.losses) &&
                same_rows(a->tokens, w, from, x.states, y.states) &&
                memcmp(x.pooled, y.pooled, (size_t)(a->s.n * w) * sizeof(double)) == 0 &&
                memcmp(x.label, y.label, sizeof x.label) == 0 &&
                (!maps || same_maps(a, from, x.maps, y.maps)) &&
                (!gradients || (x.loss == y.loss &&
                                memcmp(x.gradient, y.gradient, (size_t)P * sizeof(double)) == 0));
    free_outcome(&x);
    free_outcome(&y);
    return same;
}

static void permutation__permutes_to_the_last_bit(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 30, 40, 11);
    int64_t *from = malloc((size_t)a.tokens * sizeof *from);
    assert_non_null(from);
    for (int k = 0; k < 8; k++) {
        fin_encoder_settings s = small_settings();
        s.attention = k % 2;
        s.norm = k / 2 % 2;
        fin_encoder *o = make_encoder(&s, &shape, 3);
        sample b = permute(&a, &shape, 5 + (uint64_t)k, from);
        for (int64_t layer = 0; layer <= s.layers; layer++)
            if (!permuted(o, &a, &b, from, k / 4 ? FIN_F64 : FIN_F32, layer, true))
                fail_msg("attention %d, norm %d, layer %d", k % 2, k / 2 % 2, (int)layer);
        free_sample(&b);
        fin_encoder_destroy(o);
    }
    free(from);
    free_sample(&a);
}

static sample copy_with_positive_zeros(const sample *a, const fin_encoder_shape *shape)
{
    sample b = make_sample(shape, 20, 60, 12); /* as a was made */
    for (int64_t i = 0; i < a->tokens * shape->inputs; i++)
        b.data[i] = a->data[i] == 0 ? 0 : a->data[i];
    return b;
}

/* Every token several times, with zeros of both signs, and first columns that are equal. The
 * gradient may depend on the order of equal tokens: their targets differ. */
static void permutation__of_equal_tokens_too(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 20, 60, 12);
    int64_t *from = malloc((size_t)a.tokens * sizeof *from), d = shape.inputs;
    assert_non_null(from);
    for (int64_t l = 0; l < a.tokens; l++)
        for (int64_t j = 0; j < d; j++) {
            float *x = &a.data[l * d + j];
            *x = *x > (j ? 0.5f : 2) ? 1 : (l + j) % 2 ? 0.0f : -0.0f;
        }
    for (int attention = 0; attention < 2; attention++) {
        fin_encoder_settings s = small_settings();
        s.attention = attention;
        fin_encoder *o = make_encoder(&s, &shape, 3);
        sample b = permute(&a, &shape, 9, from);
        assert_true(permuted(o, &a, &b, from, FIN_F32, 1, false));
        assert_true(permuted(o, &a, &b, from, FIN_F64, 2, false));
        for (int64_t l = 0; l < a.tokens; l++)
            from[l] = l;
        free_sample(&b);
        b = copy_with_positive_zeros(&a, &shape);
        assert_true(permuted(o, &a, &b, from, FIN_F32, 1, true));
        free_sample(&b);
        fin_encoder_destroy(o);
    }
    free(from);
    free_sample(&a);
}

/* With positions the order matters: were it otherwise, the tests above could not fail. */
static void positions__tell_tokens_apart(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 10, 9, 11);
    int64_t *from = malloc((size_t)a.tokens * sizeof *from);
    assert_non_null(from);
    for (int positions = 1; positions < 3; positions++) {
        fin_encoder_settings s = small_settings();
        s.positions = positions;
        fin_encoder *o = make_encoder(&s, &shape, 3);
        sample b = permute(&a, &shape, 9, from);
        assert_false(permuted(o, &a, &b, from, FIN_F32, 1, false));
        free_sample(&b);
        fin_encoder_destroy(o);
    }
    free(from);
    free_sample(&a);
}

/* ---- hidden tokens --------------------------------------------------------------------------- */

/* Some have the same keys, but other targets: were their values part of the order, sums would run
 * in another one. */
static void hidden__values_are_not_looked_at(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    fin_encoder_settings s = small_settings();
    sample a = make_sample(&shape, 12, 40, 13);
    fin_encoder *o = make_encoder(&s, &shape, 3);
    int64_t d = shape.inputs, keys = d - shape.values, P = fin_encoder_parameters(o);
    for (int64_t l = 0; l < a.tokens; l++)
        for (int64_t j = 0; a.hidden[l] && j < keys; j++)
            a.data[l * d + j] = (float)(l % 2);
    outcome x = everything(o, &a, FIN_F32, 1, 1);
    for (int64_t l = 0; l < a.tokens; l++)
        for (int64_t j = keys; a.hidden[l] && j < d; j++)
            a.data[l * d + j] *= -1e30f;
    outcome y = everything(o, &a, FIN_F32, 1, 1);
    assert_memory_equal(x.gradient, y.gradient, (size_t)P * sizeof(double));
    assert_memory_equal(x.answers[0], y.answers[0], (size_t)(2 * a.tokens) * sizeof(double));
    for (int64_t l = 0; l < a.tokens; l++) /* and keys are: now something changes */
        if (a.hidden[l])
            a.data[l * d] += 1;
    outcome z = everything(o, &a, FIN_F32, 1, 1);
    assert_memory_not_equal(x.answers[0], z.answers[0], (size_t)(2 * a.tokens) * sizeof(double));
    free_outcome(&x);
    free_outcome(&y);
    free_outcome(&z);
    fin_encoder_destroy(o);
    free_sample(&a);
}

/* Each hidden token is answered as if it were alone: the others left out, the answers stay. In
 * double, to rounding. */
static void hidden__tokens_do_not_see_each_other(void **state)
{
    (void)state;
    enum { L = 12, SEEN = 7 };
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 2, 1, 14);
    int64_t d = shape.inputs, offsets[2] = {0, L}, alone[2] = {0, SEEN + 1};
    float tokens[L * 5], few[L * 5];
    uint8_t hidden[L] = {0};
    double all[L * 2], one[L * 2];
    fin_random_normals_f32(4, FIN_STREAM_USER, 0, 0, L * 5, tokens);
    memset(hidden + SEEN, 1, L - SEEN);
    memcpy(few, tokens, sizeof few);
    for (int k = 0; k < 2; k++) {
        fin_encoder_settings s = small_settings();
        s.attention = k;
        fin_encoder *o = make_encoder(&s, &shape, 3);
        fin_pass pass = {.dtype = FIN_F64, .answers = {all}};
        run_pass(o, &(fin_sequences){1, offsets, tokens, hidden}, &pass);
        for (int l = SEEN; l < L; l++) {
            memcpy(few + SEEN * d, tokens + l * d, (size_t)d * sizeof *few);
            pass.answers[0] = one;
            run_pass(o, &(fin_sequences){1, alone, few, hidden}, &pass);
            for (int j = 0; j < 2; j++)
                assert_true(fabs(one[SEEN * 2 + j] - all[l * 2 + j]) < 1e-12);
        }
        fin_encoder_destroy(o);
    }
    free_sample(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permutation__permutes_to_the_last_bit),
        cmocka_unit_test(permutation__of_equal_tokens_too),
        cmocka_unit_test(positions__tell_tokens_apart),
        cmocka_unit_test(hidden__values_are_not_looked_at),
        cmocka_unit_test(hidden__tokens_do_not_see_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
