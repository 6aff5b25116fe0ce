/* Every form, float and double, against the formula in long double; order of tokens; ragged
 * batches. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_attention_help.h"
#include "test_skip.h"
#include "attention/form.h"

#include <stdio.h>

/* Lengths 0 and 1, below, at and above the 16 tokens of a gather, and long ones. */
static const int64_t lengths[] = {3, 0, 1, 16, 17, 2, 33, 0, 64, 65, 5, 100, 1, 300};
enum { N = sizeof lengths / sizeof *lengths, LONGEST = 300 };

/* f = sum_l w_l z_l of sample i. In float, k and v are rounded too, except where |X|^2 is needed.
 */
static long double naive(const help_form *form, const ragged *b, int64_t i, long double *w,
                         long double *size)
{
    static long double chi[LONGEST], z[LONGEST], norm2[LONGEST];
    int64_t L = b->offsets[i + 1] - b->offsets[i];
    int narrow = b->dtype == FIN_F32 && form->c == 0;
    narrow = narrow || (b->dtype == FIN_F32 && strcmp(form->name, "shifted") == 0);
    for (int64_t l = 0; l < L; l++) {
        chi[l] = z[l] = norm2[l] = 0;
        for (int64_t c = 0; c < b->d; c++) {
            long double x = b->X[(b->offsets[i] + l) * b->d + c];
            chi[l] += x * (narrow ? (double)(float)b->k[c] : b->k[c]);
            z[l] += x * (narrow ? (double)(float)b->v[c] : b->v[c]);
            norm2[l] += x * x;
        }
    }
    help_weights(form, L, chi, norm2, w);
    long double f = 0;
    *size = 0;
    for (int64_t l = 0; l < L; l++) {
        f += w[l] * z[l];
        *size += fabsl(w[l]) * (1 + fabsl(z[l]));
    }
    return f;
}

/* Errors are relative to sum |w| (1 + |z|): what rounding of chi, z and w can do. */
static void forward__matches_formula(void **state)
{
    (void)state;
    if (!long_double_is_longer())
        SKIP("long double is not longer than double");
    const int64_t dims[] = {1, 2, 13, 64, 257};
    for (int wide = 0; wide < 2; wide++)
        for (int t = 0; t < HELP_FORMS; t++) {
            double worst_f = 0, worst_w = 0;
            for (int j = 0; j < 5; j++) {
                ragged b = ragged_make(N, dims[j], lengths, wide ? FIN_F64 : FIN_F32, 81);
                fin_attention *attention = help_attention(&help_forms[t], &b);
                fin_batch batch = ragged_view(&b, 0, N);
                double f[N], *w = malloc((size_t)b.offsets[N] * sizeof *w);
                assert_int_equal(fin_attention_forward(attention, &batch, f, w, NULL), FIN_OK);
                for (int64_t i = 0; i < N; i++) {
                    long double want_w[LONGEST], size,
                        want = naive(&help_forms[t], &b, i, want_w, &size), sum = 0;
                    if (lengths[i] == 0) {
                        assert_true(f[i] == 0);
                        continue;
                    }
                    worst_f = fmax(worst_f, (double)(fabsl(f[i] - want) / size));
                    for (int64_t l = 0; l < lengths[i]; l++) {
                        worst_w =
                            fmax(worst_w, (double)(fabsl(w[b.offsets[i] + l] - want_w[l]) / size));
                        sum += w[b.offsets[i] + l];
                    }
                    if (help_normalised(&help_forms[t]))
                        assert_true(fabsl(sum - 1) < 1e-14L);
                }
                fin_attention_destroy(attention);
                free(w);
                ragged_free(&b);
            }
            print_message("%s lam %g c %g %s: f %.2g, w %.2g\n", help_forms[t].name,
                          help_forms[t].lam, help_forms[t].c, wide ? "double" : "float", worst_f,
                          worst_w);
            assert_true(worst_f < (wide ? 4e-15 : 2e-6) && worst_w < (wide ? 4e-15 : 2e-6));
        }
}

/* Reversing the tokens of each sample: weights move along, f changes by rounding only. */
static void forward__does_not_see_the_order(void **state)
{
    (void)state;
    double worst_f = 0, worst_w = 0;
    for (int wide = 0; wide < 2; wide++)
        for (int t = 0; t < HELP_FORMS; t++) {
            ragged b = ragged_make(N, 13, lengths, wide ? FIN_F64 : FIN_F32, 82);
            ragged r = ragged_make(N, 13, lengths, wide ? FIN_F64 : FIN_F32, 82);
            for (int64_t i = 0; i < N; i++)
                for (int64_t l = b.offsets[i]; l < b.offsets[i + 1]; l++)
                    for (int64_t c = 0; c < 13; c++) {
                        int64_t from = (b.offsets[i] + b.offsets[i + 1] - 1 - l) * 13 + c;
                        r.X[l * 13 + c] = b.X[from];
                        r.Xf[l * 13 + c] = b.Xf[from];
                    }
            fin_attention *attention = help_attention(&help_forms[t], &b);
            fin_batch forth = ragged_view(&b, 0, N), back = ragged_view(&r, 0, N);
            double f[N], g[N], *w = malloc((size_t)b.offsets[N] * 8),
                               *u = malloc((size_t)b.offsets[N] * 8);
            fin_attention_forward(attention, &forth, f, w, NULL);
            fin_attention_forward(attention, &back, g, u, NULL);
            for (int64_t i = 0; i < N; i++) {
                double size = 1e-300;
                for (int64_t l = b.offsets[i]; l < b.offsets[i + 1]; l++) {
                    double here = w[l], there = u[b.offsets[i] + b.offsets[i + 1] - 1 - l];
                    size += fabs(here);
                    if (fini_form_elementwise(fin_form_find(help_forms[t].name)))
                        assert_true(here == there); /* to the bit */
                    worst_w = fmax(worst_w, fabs(here - there));
                }
                worst_f = fmax(worst_f, fabs(f[i] - g[i]) / size);
            }
            fin_attention_destroy(attention);
            free(w);
            free(u);
            ragged_free(&b);
            ragged_free(&r);
        }
    print_message("worst change: f %.2g of sum |w|, w %.2g\n", worst_f, worst_w);
    assert_true(worst_f < 1e-14 && worst_w < 1e-15);
}

/* fin_form_weights on the scores gives the weights of the predictor. */
static void form_weights__are_those_of_the_predictor(void **state)
{
    (void)state;
    for (int t = 0; t < HELP_FORMS; t++) {
        ragged b = ragged_make(N, 1, lengths, FIN_F64, 83); /* d = 1, k = 1: chi is the token */
        b.k[0] = 1;
        int64_t tokens = b.offsets[N], shifted[N + 1];
        double f[N], *w = malloc((size_t)tokens * 8), *u = malloc((size_t)tokens * 8),
                     *norm2 = malloc((size_t)tokens * 8);
        for (int64_t l = 0; l < tokens; l++)
            norm2[l] = b.X[l] * b.X[l];
        for (int64_t i = 0; i <= N; i++)
            shifted[i] = b.offsets[i] + 12345; /* arrays begin at sample 0's first token */
        fin_attention *attention = help_attention(&help_forms[t], &b);
        fin_batch batch = ragged_view(&b, 0, N);
        fin_attention_forward(attention, &batch, f, w, NULL);
        fin_form_settings s = {help_forms[t].lam, help_forms[t].c};
        assert_int_equal(fin_form_weights(fin_form_find(help_forms[t].name), &s, N, shifted, b.X,
                                          norm2, u, NULL),
                         FIN_OK);
        assert_memory_equal(w, u, (size_t)tokens * 8);
        fin_attention_destroy(attention);
        free(w);
        free(u);
        free(norm2);
        ragged_free(&b);
    }
}

static void forms__are_in_the_table(void **state)
{
    (void)state;
    int count = fin_form_count();
    assert_true(count >= 7);
    for (int i = 0; i < count; i++) {
        const fin_form *form = fin_form_at(i);
        int tried = 0;
        assert_ptr_equal(fin_form_find(fin_form_name(form)), form);
        assert_true(fin_form_summary(form)[0] && fin_form_table(form));
        for (int t = 0; t < HELP_FORMS; t++)
            tried += strcmp(help_forms[t].name, fin_form_name(form)) == 0;
        assert_true(tried > 0); /* a new form must be added to help_forms */
    }
    assert_null(fin_form_at(-1));
    assert_null(fin_form_at(count));
    assert_null(fin_form_find("ERF"));
    assert_null(fin_form_find(""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(forward__matches_formula),
        cmocka_unit_test(forward__does_not_see_the_order),
        cmocka_unit_test(form_weights__are_those_of_the_predictor),
        cmocka_unit_test(forms__are_in_the_table),
    };
    return cmocka_run_group_tests_name("attention_forward", tests, NULL, NULL);
}
