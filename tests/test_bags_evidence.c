/* Evidence of tokens: what sums of terms say is what the model says of the bag without a token, of the token
 * alone, and of what is left of a bag, asked for one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bags/descend.h"
#include "bags_sample.h"
#include "test_size.h"
#include "bags/bags.h"

static fin_error err;

#define OK(call)                                                                                   \
    do {                                                                                           \
        err = (fin_error){FIN_OK, ""};                                                             \
        if (call)                                                                                  \
            fail_msg("%s", err.message);                                                           \
    } while (0)

enum { N = 30, D = 4, TOKENS = 6 * N, WIDTH = 3 };

/* ---- a fit, asked one by one -------------------------------------------------------------------------- */

/* Predicts the tokens order[0] .. of bag i, as a bag. */
static void ask(const fin_fit *fit, const bags_sample *d, int64_t i, const int64_t *order,
                int64_t count, double *out)
{
    double tokens[8 * D];
    int64_t offsets[2] = {0, count}, at = d->offsets[i];
    for (int64_t r = 0; r < count; r++)
        memcpy(tokens + r * D, d->tokens + (at + order[r]) * D, sizeof(double) * D);
    fin_bags bag = {
        .n = 1, .d = D, .total = 1, .offsets = offsets, .dtype = FIN_F64, .tokens = tokens};
    OK(fin_fit_predict(fit, &bag, out, NULL, NULL, &err));
}

static double furthest;

static void same(const double *a, const double *b, int64_t width)
{
    for (int64_t c = 0; c < width; c++) {
        furthest = fmax(furthest, fabs(a[c] - b[c]));
        if (!(fabs(a[c] - b[c]) <= 1e-11 * (1 + fabs(b[c]))))
            fail_msg("%.17g, but asked by itself %.17g", a[c], b[c]);
    }
}

/* change, only, and the mean of the falls of that curve, from scores that give its order. */
static void check_short(const fin_fit *fit, const bags_sample *d, int64_t width,
                        const fin_evidence *to, const double *curve, const int64_t *order,
                        double *score)
{
    double p[N * WIDTH], area = 0, middle = 0;
    OK(fin_fit_predict(fit, &d->bags, p, NULL, NULL, &err));
    for (int64_t i = 0; i < N; i++) {
        int64_t at = d->offsets[i], L = d->offsets[i + 1] - at, c = 0;
        for (int64_t k = 1; k < width; k++)
            c = p[i * width + k] > p[i * width + c] ? k : c;
        for (int64_t l = 0; l < L; l++) {
            double change = p[i * width + c] - to->without[(at + l) * width + c];
            same(to->change + at + l, &change, 1);
            same(to->only + at + l, to->alone + (at + l) * width + c, 1);
            double fall = p[i * width + c] - curve[(at + l) * width + c];
            fall = width == 1 ? fabs(fall) : fall;
            area += fall / (double)L / N;
            middle += l == L / 2 ? fall / N : 0;
            score[at + order[at + l]] = -(double)l;
        }
    }
    fin_flipping flipping;
    OK(fin_fit_flipping(fit, &d->bags, score, &flipping, NULL, &err));
    assert_int_equal(flipping.bags, N);
    same(&flipping.area, &area, 1);
    same(&flipping.fall[5], &middle, 1);
    assert_true(fabs(flipping.fall[0]) < 1e-12 && flipping.area_se >= 0);
}

static void check(const fin_fit *fit, const bags_sample *d, int64_t width)
{
    static double without[TOKENS * WIDTH], alone[TOKENS * WIDTH], curve[TOKENS * WIDTH],
        change[TOKENS], only[TOKENS], score[TOKENS];
    static int64_t order[TOKENS];
    fin_evidence to = {.without = without, .alone = alone, .change = change, .only = only};
    OK(fin_fit_evidence(fit, &d->bags, &to, NULL, &err));
    for (int64_t i = 0; i < N; i++) {
        int64_t at = d->offsets[i], L = d->offsets[i + 1] - at, all[8];
        double out[WIDTH];
        for (int64_t l = 0; l < L; l++) {
            for (int64_t r = 0; r < L - 1; r++)
                all[r] = r < l ? r : r + 1;
            ask(fit, d, i, all, L - 1, out);
            same(without + (at + l) * width, out, width);
            ask(fit, d, i, &l, 1, out);
            same(alone + (at + l) * width, out, width);
        }
    }
    for (int64_t i = 0; i < N; i++) { /* rotated, some backwards */
        int64_t at = d->offsets[i], L = d->offsets[i + 1] - at;
        for (int64_t r = 0; r < L; r++)
            order[at + r] = (i + (L % 3 == 2 ? L - r : r)) % L;
    }
    OK(fini_fit_flip(fit, &d->bags, order, curve, NULL, &err));
    for (int64_t i = 0; i < N; i++)
        for (int64_t at = d->offsets[i], L = d->offsets[i + 1] - at, r = 0; r < L; r++) {
            double out[WIDTH];
            ask(fit, d, i, order + at + r, L - r, out);
            same(curve + (at + r) * width, out, width);
        }
    check_short(fit, d, width, &to, curve, order, score);
}

static void evidence__is_what_each_subset_is_predicted(void **state)
{
    (void)state;
    for (int64_t classes = 0; classes <= 3; classes += classes ? 1 : 2) {
        bags_sample d = bags_make(N, D, classes, 3, 0.3, 7);
        for (int model = FIN_MODEL_AUTO; fini_bag_model_of(model); model++)
            for (int basis = FIN_BASIS_LINEAR; basis <= FIN_BASIS_BOTH; basis++) {
                const fini_bag_model *row = fini_bag_model_of(model);
                fin_fit_settings s;
                fin_fit *fit = NULL;
                if ((row->is.sides && classes != 2) ||
                    (basis == FIN_BASIS_RBF && (row->is.chooses || classes == 3)))
                    continue;
                fin_settings_defaults(&fin_fit_table, &s, sizeof s);
                s.model = model;
                s.basis = basis;
                s.landmarks = 10;
                s.inner = 2;
                s.heads = row->is.heads && !row->is.chooses ? 2 : 1;
                s.iterations = 8;
                furthest = 0;
                OK(fin_fit_create(&fit, &s, classes, &d.bags, NULL, NULL, NULL, &err));
                check(fit, &d, classes ? classes : 1);
                print_message("%s, basis %d, %d classes: %.1e\n", row->is.name, basis, (int)classes,
                              furthest);
                fin_fit_destroy(fit);
            }
        bags_free(&d);
    }
}

/* ---- forms ---------------------------------------------------------------------------------------------- */

/* Scores so far apart that exponentials vanish beside the largest: every subset is still told apart. */
static void form_agrees(const fini_bag_form *form, int64_t heads, int64_t classes, double apart)
{
    enum { L = 9 };
    fini_bag_form slow = *form;
    fini_bag_shape shape = {.heads = heads,
                            .classes = classes,
                            .outputs = classes > 2 ? classes : 1,
                            .longest = L,
                            .positive = 1,
                            .form = form};
    fini_bag_shape slowly = shape;
    double U[L * 16], extra[8] = {0.1, -0.2, 0.3, 0.4}, work[512], room[1024];
    int64_t q = form->keys(&shape) + form->values(&shape), width = classes ? classes : 1;
    int64_t order[L] = {4, 0, 8, 1, 7, 2, 6, 3, 5};
    assert_true(q <= 16 && form->scratch(&shape) <= 512);
    assert_true(form->term && fini_evidence_scratch(&shape) <= 1024);
    fin_random_normals_f64(3, FIN_STREAM_USER, 0, 0, L * q, U);
    for (int64_t l = 0; l < L; l++)
        for (int64_t h = 0; h < form->keys(&shape); h++)
            U[l * q + h] += apart * (double)((l * (h + 2)) % L);
    slow.term = NULL;
    slowly.form = &slow;
    for (int what = 0; what < 3; what++) {
        double out[2][L * WIDTH] = {{0}};
        for (int k = 0; k < 2; k++) {
            fini_bag bag = {k ? &slowly : &shape, extra, L, U, work, NULL};
            if (what == 0)
                fini_evidence_without(&bag, 0.5, room, out[k]);
            else if (what == 1)
                fini_evidence_alone(&bag, 0.5, room, out[k]);
            else
                fini_evidence_after(&bag, order, 0.5, room, out[k]);
        }
        same(out[0], out[1], L * width);
        double spread = 0;
        for (int64_t j = 0; j < L * width; j++)
            spread = fmax(spread, fabs(out[0][j] - out[0][0]));
        assert_true(spread > 1e-3); /* they are not all alike, nor NaN */
    }
}

static void forms__agree_with_predict_however_far_scores_are_apart(void **state)
{
    (void)state;
    static const double apart[] = {0, 1, 100, 800};
    for (int k = 0; k < 4; k++)
        for (int64_t classes = 0; classes <= 3; classes += classes ? 1 : 2)
            for (int model = 1; fini_bag_model_of(model); model++) {
                const fini_bag_model *row = fini_bag_model_of(model);
                if (row->form && row->form->term && !(row->is.sides && classes != 2))
                    form_agrees(row->form, row->is.heads ? 2 : 1, classes, apart[k]);
            }
}

/* ---- refusals, and known tokens ------------------------------------------------------------------------- */

static void flip__refuses_what_is_no_order(void **state)
{
    (void)state;
    bags_sample d = bags_make(N, D, 2, 3, 0.3, 7);
    static double curve[TOKENS * 2];
    static int64_t order[TOKENS];
    fin_fit *fit = NULL;
    OK(fin_fit_create(&fit, NULL, 2, &d.bags, NULL, NULL, NULL, &err));
    for (int64_t i = 0; i < N; i++)
        for (int64_t l = d.offsets[i]; l < d.offsets[i + 1]; l++)
            order[l] = l - d.offsets[i];
    OK(fini_fit_flip(fit, &d.bags, order, curve, NULL, &err));
    const int64_t bad[] = {-1, 1, INT64_MAX, INT64_MIN};
    for (int k = 0; k < 4; k++) {
        order[d.offsets[5]] = bad[k];
        assert_int_equal(fini_fit_flip(fit, &d.bags, order, curve, NULL, &err), FIN_ERR_ARGUMENT);
        assert_non_null(strstr(err.message, "bag 5"));
    }
    fin_fit_destroy(fit);
    bags_free(&d);
}

/* A bag of one token has nothing without it. */
static void one_token__has_no_rest(void **state)
{
    (void)state;
    static const int models[] = {FIN_MODEL_SOFTMAX, FIN_MODEL_MAX, FIN_MODEL_EMBEDDING,
                                 FIN_MODEL_MEAN, FIN_MODEL_BASE};
    bags_sample d = bags_make(N, D, 2, 3, 0.3, 7);
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        fin_fit_settings s;
        fin_fit *fit = NULL;
        fin_settings_defaults(&fin_fit_table, &s, sizeof s);
        s.model = models[m];
        s.locator = 1;
        OK(fin_fit_create(&fit, &s, 2, &d.bags, NULL, NULL, NULL, &err));
        int64_t offsets[2] = {0, 1};
        double without[2], alone[2], p[2];
        fin_bags one = {
            .n = 1, .d = D, .total = 1, .offsets = offsets, .dtype = FIN_F64, .tokens = d.tokens};
        OK(fin_fit_evidence(fit, &one, &(fin_evidence){.without = without, .alone = alone}, NULL,
                            &err));
        OK(fin_fit_predict(fit, &one, p, NULL, NULL, &err));
        assert_true(isnan(without[0]) && isnan(without[1]));
        same(alone, p, 2);
        fin_fit_destroy(fit);
    }
    bags_free(&d);
}

/* By hand. Bag 0: the responsible token is second of four; bag 1: a tie of a responsible and another token; bag 2
 * has no responsible token and does not count. */
static void known_tokens__are_judged_by_hand(void **state)
{
    (void)state;
    int64_t offsets[] = {0, 4, 7, 9};
    unsigned char relevant[] = {0, 1, 0, 0, 1, 0, 0, 0, 0};
    double score[] = {0.6, 0.3, 0.1, 0, 0.4, 0.4, 0.2, 0.9, 0.1};
    fin_bags bags = {
        .n = 3, .d = 1, .total = 3, .offsets = offsets, .dtype = FIN_F64, .tokens = score};
    fin_found found;
    OK(fin_tokens_judge(&bags, relevant, score, &found, &err));
    assert_int_equal(found.bags, 2);
    assert_true(fabs(found.first - 0.25) < 1e-15);
    assert_true(fabs(found.auc - (2.0 / 3 + 0.75) / 2) < 1e-15);
    assert_true(fabs(found.first_se - 0.25) < 1e-15); /* 0 and 1/2: deviation 0.3536, over root 2 */
    /* bins of 1/15: 0.6 alone, 0.3 alone, 0.1 alone, 0 alone, 0.4 twice with one hit, 0.2 alone */
    assert_true(fabs(found.ece - (0.6 + 0.7 + 0.1 + 0 + 0.2 + 0.2) / 7) < 1e-15);
    /* bag 0 is its shares already; bag 1 has 0.4, 0.4, 0.2 */
    assert_true(fabs(found.share_ece - found.ece) < 1e-15);
    for (int k = 0; k < 9; k++)
        score[k] *= 10;
    OK(fin_tokens_judge(&bags, relevant, score, &found, &err));
    assert_true(isnan(found.ece) && fabs(found.share_ece - 1.8 / 7) < 1e-15);
    score[0] = 1.5;
    OK(fin_tokens_judge(&bags, relevant, score, &found, &err));
    assert_true(isnan(found.ece) && found.bags == 2);
    relevant[1] = 2;
    assert_int_equal(fin_tokens_judge(&bags, relevant, score, &found, &err), FIN_ERR_ARGUMENT);
    relevant[1] = 0, relevant[4] = 0;
    OK(fin_tokens_judge(&bags, relevant, score, &found, &err));
    assert_true(found.bags == 0 && isnan(found.first) && isnan(found.auc) && isnan(found.ece));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evidence__is_what_each_subset_is_predicted),
        cmocka_unit_test(forms__agree_with_predict_however_far_scores_are_apart),
        cmocka_unit_test(flip__refuses_what_is_no_order),
        cmocka_unit_test(one_token__has_no_rest),
        cmocka_unit_test(known_tokens__are_judged_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
