/* An encoder against torch. Without arguments: the small answers that tests/data/encoder_torch.py
 * stored. With arguments, for that script where there is torch:
 *
 *     test_encoder_torch OUT GIVEN setting=value ...
 *
 * computes with the weights, tokens and targets of the file GIVEN, or ("-") with weights and tokens
 * of its own, and writes both and its answers, in float and in double, to OUT (safetensors). */
#include "test_encoder_help.h"

#include "finetti/data_bags.h"

#include <stdio.h>

typedef struct stored {
    const char *settings;
    int64_t parameters;
    double loss;
    const float *weights;
    const double *gradient;
    fin_sequences s;
    const double *targets[3], *answers[3];
} stored;
#include "data/encoder_torch.h"

/* As in encoder_torch.py. */
static fin_encoder_shape shape_of_script(void)
{
    fin_encoder_shape shape = {.inputs = 3, .values = 1, .heads = 3};
    shape.head[0] = (fin_head){"value", FIN_HEAD_VALUE, FIN_HEAD_TOKENS, 1, 1};
    shape.head[1] = (fin_head){"label", FIN_HEAD_CLASSES, FIN_HEAD_POOLED, 3, 0.5};
    shape.head[2] = (fin_head){"gauss", FIN_HEAD_GAUSSIAN, FIN_HEAD_TOKENS, 1, 0.3};
    return shape;
}

/* One word, setting=value. */
static int set_word(fin_encoder_settings *s, const char *word, fin_error *err)
{
    char name[64];
    const char *is = strchr(word, '=');
    if (!is || (size_t)(is - word) >= sizeof name)
        return 1;
    memcpy(name, word, (size_t)(is - word));
    name[is - word] = 0;
    return fin_settings_parse(&fin_encoder_table, s, name, is + 1, err) != FIN_OK;
}

/* ---- stored answers -------------------------------------------------------------------------- */

static fin_encoder *encoder_of(const stored *c)
{
    fin_encoder_settings s;
    fin_encoder_shape shape = shape_of_script();
    fin_error err = {FIN_OK, ""};
    char text[512], *rest = text;
    fin_settings_defaults(&fin_encoder_table, &s, sizeof s);
    snprintf(text, sizeof text, "%s", c->settings);
    for (char *word; (word = strtok_r(rest, " ", &rest));)
        if (set_word(&s, word, &err))
            fail_msg("%s: %s", word, err.message);
    fin_encoder *o = make_encoder(&s, &shape, 1);
    assert_int_equal(fin_encoder_parameters(o), c->parameters);
    memcpy(fin_encoder_weights(o), c->weights, (size_t)c->parameters * sizeof(float));
    return o;
}

/* Distance over length. */
static double off(int64_t n, const double *a, const double *b)
{
    double away = 0, length = 0;
    for (int64_t i = 0; i < n; i++) {
        away += (a[i] - b[i]) * (a[i] - b[i]);
        length += b[i] * b[i];
    }
    return sqrt(away / length);
}

static void check_stored(const stored *c, fin_dtype dtype, double bar)
{
    fin_encoder *o = encoder_of(c);
    const fin_encoder_shape *shape = fin_encoder_get_shape(o);
    int64_t rows = c->s.offsets[c->s.n];
    double *gradient = numbers(c->parameters), *answers[3];
    fin_pass pass = {.dtype = dtype, .gradient = gradient};
    for (int h = 0; h < 3; h++) {
        pass.targets[h] = c->targets[h];
        pass.answers[h] = answers[h] = numbers(rows * 3);
    }
    run_pass(o, &c->s, &pass);
    assert_true(fabs(pass.loss - c->loss) < bar * fabs(c->loss));
    for (int h = 0; h < 3; h++) {
        int64_t n = shape->head[h].where == FIN_HEAD_TOKENS ? rows : c->s.n;
        double error = off(n * fin_head_answers(&shape->head[h]), answers[h], c->answers[h]);
        if (!(error < bar))
            fail_msg("%s: answers of %s are off by %g", c->settings, shape->head[h].name, error);
        free(answers[h]);
    }
    fin_tensor tensors[64];
    int64_t count = fin_encoder_tensors(o, tensors, 64);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = (const float *)tensors[i].data - fin_encoder_weights(o);
        int64_t n = tensors[i].shape[0] * (tensors[i].ndim > 1 ? tensors[i].shape[1] : 1);
        double error = off(n, gradient + at, c->gradient + at);
        if (!(error < bar))
            fail_msg("%s: the gradient of %s is off by %g", c->settings, tensors[i].name, error);
    }
    free(gradient);
    fin_encoder_destroy(o);
}

static void stored__answers_of_torch_in_double(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all_stored / sizeof *all_stored; i++)
        check_stored(&all_stored[i], FIN_F64, 1e-11);
}

static void stored__answers_of_torch_in_float(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof all_stored / sizeof *all_stored; i++)
        check_stored(&all_stored[i], FIN_F32, 1e-5);
}

/* ---- for the script -------------------------------------------------------------------------- */

enum { MOST = 256 };
typedef struct exchange {
    fin_encoder *o;
    fin_sequences s;
    const double *targets[3];
    fin_tensor out[MOST];
    int64_t count;
    double loss[2], *gradient[2], *answers[2][3];
} exchange;

static void put(exchange *x, const char *name, fin_dtype dtype, int64_t rows, int64_t columns,
                const void *data)
{
    fin_tensor *t = &x->out[x->count++];
    *t = (fin_tensor){.dtype = dtype, .ndim = columns ? 2 : 1, .data = data};
    snprintf(t->name, sizeof t->name, "%s", name);
    t->shape[0] = rows;
    t->shape[1] = columns;
}

/* Weights, sequences and targets as they go out; answers and gradients of both types. */
static fin_status fill(exchange *x, fin_error *err)
{
    static const char *const names[3] = {"value", "label", "gauss"};
    const fin_encoder_shape *shape = fin_encoder_get_shape(x->o);
    int64_t rows = x->s.offsets[x->s.n], own;
    char name[48];
    x->count = own = fin_encoder_tensors(x->o, x->out, MOST / 4);
    put(x, "in/offsets", FIN_I64, x->s.n + 1, 0, x->s.offsets);
    put(x, "in/tokens", FIN_F32, rows, shape->inputs, x->s.tokens);
    put(x, "in/hidden", FIN_U8, rows, 0, x->s.hidden);
    for (int h = 0; h < 3; h++) {
        snprintf(name, sizeof name, "targets/%s", names[h]);
        put(x, name, FIN_F64, h == 1 ? x->s.n : rows, 0, x->targets[h]);
    }
    for (int k = 0; k < 2; k++) {
        const char *type = k ? "f64" : "f32";
        fin_pass pass = {.dtype = k ? FIN_F64 : FIN_F32};
        pass.gradient = x->gradient[k] = numbers(fin_encoder_parameters(x->o));
        for (int h = 0; h < 3; h++) {
            pass.targets[h] = x->targets[h];
            pass.answers[h] = x->answers[k][h] = numbers(rows * 3);
            snprintf(name, sizeof name, "%s/answers/%s", type, names[h]);
            put(x, name, FIN_F64, h == 1 ? x->s.n : rows, fin_head_answers(&shape->head[h]),
                pass.answers[h]);
        }
        fin_status status = fin_encoder_pass(x->o, &x->s, &pass, err);
        if (status)
            return status;
        x->loss[k] = pass.loss;
        snprintf(name, sizeof name, "%s/loss/", type);
        put(x, name, FIN_F64, 1, 0, &x->loss[k]);
        for (int64_t i = 0; i < own; i++) {
            int64_t at = (const float *)x->out[i].data - fin_encoder_weights(x->o);
            snprintf(name, sizeof name, "%s/gradient/%.34s", type, x->out[i].name);
            put(x, name, FIN_F64, x->out[i].shape[0], x->out[i].shape[1], x->gradient[k] + at);
        }
    }
    return FIN_OK;
}

static const void *part(const fin_tensor_file *file, const char *name)
{
    const fin_tensor *t = fin_tensors_find(file, name);
    return t ? t->data : NULL;
}

static int run_exchange(int argc, char **argv)
{
    static exchange x;
    fin_encoder_settings s;
    fin_encoder_shape shape = shape_of_script();
    fin_error err = {FIN_OK, ""};
    fin_tensor_file *file = NULL;
    fin_tensor given[MOST];
    int64_t n = 0;
    fin_settings_defaults(&fin_encoder_table, &s, sizeof s);
    for (int i = 3; i < argc; i++)
        if (set_word(&s, argv[i], &err))
            return fprintf(stderr, "%s: %s\n", argv[i], err.message), 2;
    sample a = make_sample(&shape, 12, s.longest, 5);
    x.o = make_encoder(&s, &shape, 3);
    x.s = a.s;
    memcpy(x.targets, a.targets, sizeof x.targets);
    fin_status status = FIN_OK;
    if (strcmp(argv[2], "-") != 0) {
        status = fin_tensors_open(argv[2], &file, &err);
        for (int64_t i = 0; !status && i < fin_tensors_count(file) && i < MOST; i++)
            if (!strchr(fin_tensors_at(file, i)->name, '/'))
                given[n++] = *fin_tensors_at(file, i);
        if (!status)
            status = fin_encoder_load(x.o, given, n, 0, NULL, &err);
        if (!status) {
            const fin_tensor *offsets = fin_tensors_find(file, "in/offsets");
            x.s = (fin_sequences){offsets->shape[0] - 1, offsets->data, part(file, "in/tokens"),
                                  part(file, "in/hidden")};
            x.targets[0] = part(file, "targets/value");
            x.targets[1] = part(file, "targets/label");
            x.targets[2] = part(file, "targets/gauss");
        }
    }
    if (!status)
        status = fill(&x, &err);
    if (!status)
        status = fin_tensors_write(argv[1], NULL, 0, x.out, x.count, &err);
    if (status)
        fprintf(stderr, "%s\n", err.message);
    for (int k = 0; k < 2; k++) {
        free(x.gradient[k]);
        for (int h = 0; h < 3; h++)
            free(x.answers[k][h]);
    }
    fin_tensors_close(file);
    fin_encoder_destroy(x.o);
    free_sample(&a);
    return status ? 1 : 0;
}

extern int test_argc; /* what stood behind the name of this file (cmake/test_main.c.in) */
extern char **test_argv;

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored__answers_of_torch_in_double),
        cmocka_unit_test(stored__answers_of_torch_in_float),
    };
    if (test_argc > 2)
        return run_exchange(test_argc, test_argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
