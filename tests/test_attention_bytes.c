/* One batch or the same batch in pieces, one thread or eight: the same bytes. Batches are large
 * enough (more than 100000 numbers) that threads are really used. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/kernel.h"
#include "kernel/kernel.h"
#include "test_attention_help.h"

#include <stdio.h>

enum { N = 240, D = 70, MOST_TOKENS = 12000, FORMS = 9 }; /* all forms, without those at lam = 0 */

static int64_t lengths[N];

static int setup(void **state)
{
    (void)state;
    fin_threads_set(1); /* where threads are not what is tested */
    fin_random r;
    fin_random_open(&r, 101, 4000, 0);
    for (int i = 0; i < N; i++) /* a block of one thread holds 351 double or 702 float tokens */
        lengths[i] = i == 37 ? 3000 : i == 200 ? 351 : i == 201 ? 0 : fin_random_below(&r, 36);
    return 0;
}

typedef struct output {
    double f[N], w[MOST_TOKENS], loss, gk[D], gv[D], lam, c;
} output;

/* What to run: 0 loss with gradient, 1 forward then backward with df = 2 (f - y). */
static void run_piece(fin_attention *attention, const ragged *b, int64_t from, int64_t to, int how,
                      output *o)
{
    fin_gradient g = {o->gk, o->gv, o->lam, o->c};
    fin_batch batch = ragged_view(b, from, to);
    assert_int_equal(
        fin_attention_forward(attention, &batch, o->f + from, o->w + b->offsets[from], NULL),
        FIN_OK);
    if (how == 0) {
        double f[N];
        assert_int_equal(fin_attention_loss(attention, &batch, b->y + from, f, &o->loss, &g, NULL),
                         FIN_OK);
        assert_memory_equal(f, o->f + from, (size_t)(to - from) * sizeof *f);
    } else {
        double df[N];
        for (int64_t i = from; i < to; i++) {
            df[i - from] = 2 * (o->f[i] - b->y[i]);
            o->loss += (o->f[i] - b->y[i]) * (o->f[i] - b->y[i]);
        }
        assert_int_equal(fin_attention_backward(attention, &batch, df, &g, NULL), FIN_OK);
    }
    o->lam = g.lam;
    o->c = g.c;
}

static void compare(const output *want, const output *got, const help_form *form, const char *what,
                    int64_t number)
{
    if (memcmp(want, got, sizeof *want) != 0)
        fail_msg("%s: other bytes with %s %d", form->name, what, (int)number);
}

static void attention__same_bytes_for_any_split_and_threads(void **state)
{
    (void)state;
    static output want, got;
    for (int wide = 0; wide < 2; wide++) {
        ragged b = ragged_make(N, D, lengths, wide ? FIN_F64 : FIN_F32, 102);
        assert_true(b.offsets[N] <= MOST_TOKENS && b.offsets[N] * D > 400000);
        for (int t = 0; t < FORMS; t++) {
            const help_form *form = &help_forms[t];
            fin_attention *attention = help_attention(form, &b);
            fin_threads_set(1);
            memset(&want, 0, sizeof want);
            run_piece(attention, &b, 0, N, 0, &want);
            for (int threads = 1; threads <= 8; threads += threads < 3 ? 1 : 5) {
                fin_threads_set(threads);
                for (int how = 0; how < 2; how++) {
                    memset(&got, 0, sizeof got);
                    run_piece(attention, &b, 0, N, how, &got);
                    compare(&want, &got, form, "threads", threads);
                }
            }
            fin_threads_set(3);
            for (int64_t step = 1; step < N; step = step * 6 + 1) { /* 1, 7, 43, 259 samples */
                memset(&got, 0, sizeof got);
                for (int64_t from = 0; from < N; from += step)
                    run_piece(attention, &b, from, from + step < N ? from + step : N, 0, &got);
                compare(&want, &got, form, "pieces of", step);
            }
            fin_attention_destroy(attention);
        }
        ragged_free(&b);
    }
    fin_threads_set(1);
}

/* The work memory, made for a longer longest, leaves no trace; nor does an earlier call. */
static void attention__does_not_remember(void **state)
{
    (void)state;
    static output want, got;
    ragged b = ragged_make(N, D, lengths, FIN_F64, 103),
           other = ragged_make(N, D, lengths, FIN_F64, 104);
    for (int t = 0; t < FORMS; t++) {
        fin_attention *attention = help_attention(&help_forms[t], &b);
        memset(&want, 0, sizeof want);
        run_piece(attention, &b, 0, N, 0, &want);
        fin_attention_destroy(attention);
        b.longest = 100000;
        attention = help_attention(&help_forms[t], &b);
        memset(&got, 0, sizeof got);
        run_piece(attention, &other, 0, N, 0, &got);
        memset(&got, 0, sizeof got);
        run_piece(attention, &b, 0, N, 0, &got);
        compare(&want, &got, &help_forms[t], "longest", b.longest);
        b.longest = 3000;
        fin_attention_destroy(attention);
    }
    ragged_free(&b);
    ragged_free(&other);
}

/* Kernels agree: to the bit where only sums are taken, to rounding where exp or erf come in. */
static void attention__kernels_agree(void **state)
{
    (void)state;
    static output want, got;
    double worst = 0;
    for (int wide = 0; wide < 2; wide++) {
        ragged b = ragged_make(N, D, lengths, wide ? FIN_F64 : FIN_F32, 105);
        for (int t = 0; t < FORMS; t++) {
            char names[64], *rest = names;
            snprintf(names, sizeof names, "%s", fin_kernel_available());
            for (char *name, *first = NULL; (name = strtok_r(rest, " ", &rest)); first = name) {
                assert_true(fini_kernel_force(name));
                fin_attention *attention = help_attention(&help_forms[t], &b);
                output *o = first ? &got : &want;
                memset(o, 0, sizeof *o);
                run_piece(attention, &b, 0, N, 0, o);
                fin_attention_destroy(attention);
                if (first && (strcmp(help_forms[t].name, "linear") == 0 ||
                              strcmp(help_forms[t].name, "hardmax") == 0))
                    compare(&want, &got, &help_forms[t], "kernel", 0);
                for (int c = 0; first && wide && c < D; c++)
                    worst = fmax(worst, fabs(got.gk[c] - want.gk[c]) / (1 + fabs(want.gk[c])));
            }
            fini_kernel_force(NULL);
        }
        ragged_free(&b);
    }
    print_message("worst difference of gradients in double %.2g\n", worst);
    assert_true(worst < 1e-12);
}

/* offsets may begin anywhere: only differences count. */
static void attention__offsets_may_begin_anywhere(void **state)
{
    (void)state;
    static output want, got;
    ragged b = ragged_make(N, D, lengths, FIN_F32, 106);
    int64_t *shifted = malloc((N + 1) * sizeof *shifted), *keep = b.offsets;
    for (int i = 0; i <= N; i++)
        shifted[i] = b.offsets[i] + (INT64_C(1) << 40);
    for (int t = 0; t < FORMS; t++) {
        fin_attention *attention = help_attention(&help_forms[t], &b);
        double f[2][N], df[N], gk[2][D] = {{0}}, gv[2][D] = {{0}};
        fin_gradient g[2] = {{gk[0], gv[0], 0, 0}, {gk[1], gv[1], 0, 0}};
        fin_batch batch = ragged_view(&b, 0, N);
        memset(&want, 0, sizeof want);
        memset(&got, 0, sizeof got);
        for (int i = 0; i < N; i++)
            df[i] = 1;
        fin_attention_forward(attention, &batch, f[0], want.w, NULL);
        fin_attention_backward(attention, &batch, df, &g[0], NULL);
        batch.offsets = shifted;
        fin_attention_forward(attention, &batch, f[1], got.w, NULL);
        fin_attention_backward(attention, &batch, df, &g[1], NULL);
        assert_memory_equal(f[0], f[1], sizeof f[0]);
        assert_memory_equal(want.w, got.w, sizeof want.w);
        assert_memory_equal(gk[0], gk[1], sizeof gk[0]);
        assert_memory_equal(gv[0], gv[1], sizeof gv[0]);
        assert_true(g[0].lam == g[1].lam);
        fin_attention_destroy(attention);
    }
    b.offsets = keep;
    free(shifted);
    ragged_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention__same_bytes_for_any_split_and_threads),
        cmocka_unit_test(attention__does_not_remember),
        cmocka_unit_test(attention__kernels_agree),
        cmocka_unit_test(attention__offsets_may_begin_anywhere),
    };
    return cmocka_run_group_tests_name("attention_bytes", tests, setup, NULL);
}
