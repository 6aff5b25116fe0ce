/* any (noisy-or) as a form and as a model: scores of one bag in, loss, derivatives, prediction and
 * location out. All of it is compared with sums over which tokens are on, term by term. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "kernel/kernel.h"
#include "bags/bags.h"

#include <math.h>
#include <string.h>

enum { LONGEST = 9, DIM = 4, BAGS = 60 };

static const fini_bag_shape shape = {1, 2, 1, LONGEST, 1, NULL};
#define form (fini_bag_model_of(FIN_MODEL_ANY)->form)

static void near(double got, double wanted, double tolerance)
{
    if (!(fabs(got - wanted) <= tolerance))
        fail_msg("%.17g, not %.17g", got, wanted);
}

typedef struct bag {
    int64_t L;
    double U[LONGEST], extra[1], y, scratch[LONGEST];
} bag;

/* Normal scores times `size`. */
static bag bag_of(int64_t L, double size, uint64_t seed)
{
    bag b = {.L = L, .y = (double)(seed % 2)};
    fini_key key = {seed, 0, 901};
    double normals[FINI_NORMALS_F64 * 2];
    fini_kernel_ref.normals_f64(key, 0, 2, normals);
    for (int64_t l = 0; l < L; l++)
        b.U[l] = size * normals[l];
    b.extra[0] = normals[LONGEST];
    return b;
}

#define EACH_BAG(size)                                                                             \
    for (int64_t L = 1; L <= LONGEST; L++)                                                         \
        for (uint64_t seed = 0; seed < 8; seed++) {                                                \
            bag b = bag_of(L, size, 10 * seed + (uint64_t)L);
#define END }

static double loss_of(bag *b, double *dU, double *dextra)
{
    double room[LONGEST], more = 0;
    return form->loss(&(fini_bag){&shape, b->extra, b->L, b->U, b->scratch, NULL}, b->y,
                      dU ? dU : room, dextra ? dextra : &more);
}

/* Over all 2^L sets of tokens that are on: P(y), P(l on), P(l on and y). */
static double enumerate(const bag *b, double y, double *on, double *joint)
{
    double total = 0;
    for (int64_t l = 0; l < b->L; l++)
        on[l] = joint[l] = 0;
    for (int set = 0; set < 1 << b->L; set++) {
        double p = 1;
        for (int64_t l = 0; l < b->L; l++)
            p /= 1 + exp((set >> l & 1 ? -1 : 1) * (b->U[l] + b->extra[0]));
        bool agrees = (set != 0) == (y > 0.5);
        total += agrees ? p : 0;
        for (int64_t l = 0; l < b->L; l++) {
            on[l] += set >> l & 1 ? p : 0;
            joint[l] += agrees && set >> l & 1 ? p : 0;
        }
    }
    return total;
}

static void loss__is_minus_log_likelihood(void **state)
{
    (void)state;
    for (double shift = 0; shift > -30; shift -= 7) { /* tokens that are hardly ever on, too */
        EACH_BAG(1.5)
        b.extra[0] += shift;
        double on[LONGEST], joint[LONGEST], value = loss_of(&b, NULL, NULL);
        near(value, -log(enumerate(&b, b.y, on, joint)), 1e-12 * (1 + value));
        END
    }
}

/* dloss/du_l = P(l on) - P(l on | y). */
static void loss__gradient_is_prior_less_posterior(void **state)
{
    (void)state;
    EACH_BAG(1.5)
    double on[LONGEST], joint[LONGEST], dU[LONGEST], dextra = 7, sum = 0;
    double total = enumerate(&b, b.y, on, joint);
    loss_of(&b, dU, &dextra);
    for (int64_t l = 0; l < L; l++) {
        near(dU[l], on[l] - joint[l] / total, 1e-11);
        sum += dU[l];
    }
    near(dextra, 7 + sum, 1e-12); /* it is added to */
    END
}

/* Central differences, h = 1e-5: error h^2 f''' / 6 + 1e-16 |f| / h, below 1e-9 + 1e-10. */
static void loss__gradient_by_differences(void **state)
{
    (void)state;
    const double h = 1e-5;
    EACH_BAG(1)
    double dU[LONGEST], dextra = 0;
    loss_of(&b, dU, &dextra);
    for (int64_t i = 0; i <= L; i++) {
        double *x = i < L ? &b.U[i] : b.extra, keep = *x, slope = i < L ? dU[i] : dextra;
        *x = keep + h;
        double up = loss_of(&b, NULL, NULL);
        *x = keep - h;
        double down = loss_of(&b, NULL, NULL);
        *x = keep;
        near(slope, (up - down) / (2 * h), 1e-7 * (1 + fabs(slope)));
    }
    END
}

static void predict__is_one_minus_the_product(void **state)
{
    (void)state;
    EACH_BAG(1.5)
    double out[2], product = 1;
    form->predict(&(fini_bag){&shape, b.extra, L, b.U, b.scratch, NULL}, out, NULL);
    for (int64_t l = 0; l < L; l++)
        product *= 1 - 1 / (1 + exp(-b.U[l] - b.extra[0]));
    near(out[0], product, 1e-14);
    near(out[1], 1 - product, 1e-14);
    END
}

/* Clocks that ring at rates lam_l: P(l rings first, before 1) = integral over the time t at which it
 * rings of its density, with no other clock before. (Midpoints, 4000 of them: error 1e-7.) */
static void locate__is_the_first_clock_to_ring(void **state)
{
    (void)state;
    enum { STEPS = 4000 };
    EACH_BAG(1)
    double weight[LONGEST], again[LONGEST], out[2], sum = 0;
    form->predict(&(fini_bag){&shape, b.extra, L, b.U, b.scratch, NULL}, out, NULL);
    form->locate(&(fini_bag){&shape, b.extra, L, b.U, b.scratch, NULL}, NULL, 1, weight);
    form->locate(&(fini_bag){&shape, b.extra, L, b.U, b.scratch, NULL}, &b.y, 1, again);
    for (int64_t l = 0; l < L; l++) {
        double first = 0;
        for (int i = 0; i < STEPS; i++) {
            double t = (i + 0.5) / STEPS, rate = log1p(exp(b.U[l] + b.extra[0])), p = rate;
            for (int64_t m = 0; m < L; m++)
                p *= pow(1 + exp(b.U[m] + b.extra[0]), -t);
            first += p / STEPS;
        }
        near(weight[l], first / out[1], 1e-5);
        assert_true(weight[l] == again[l]);
        sum += weight[l];
    }
    near(sum, 1, 1e-14);
    END
}

/* At -1000 a token is on with probability exp(-1000): no number, yet its logarithm is. */
static void loss__survives_faint_scores(void **state)
{
    (void)state;
    static const double at[] = {-39.9, -40.1, -700, -1000, -1e6};
    for (int i = 0; i < 5; i++) {
        bag b = {.L = 3, .U = {at[i], at[i] - 1, at[i] - 30}, .y = 1};
        double dU[3], dextra = 0, weight[3], wanted = -at[i] - log(1 + exp(-1) + exp(-30)), out[2];
        near(loss_of(&b, dU, &dextra), wanted, 1e-12 * fabs(at[i]));
        form->locate(&(fini_bag){&shape, b.extra, 3, b.U, b.scratch, NULL}, NULL, 1, weight);
        for (int l = 0; l < 3; l++) {
            double share = exp(b.U[l] - at[i]) / (1 + exp(-1) + exp(-30));
            near(dU[l], -share, 1e-12);
            near(weight[l], share, 1e-12);
        }
        near(dextra, -1, 1e-12);
        form->predict(&(fini_bag){&shape, b.extra, 3, b.U, b.scratch, NULL}, out, NULL);
        near(out[1], exp(-wanted), 1e-12 * out[1]);
        b.y = 0;
        near(loss_of(&b, dU, NULL), out[1], 1e-12 * out[1]);
        near(dU[0], 1 / (1 + exp(-at[i])), 1e-12 * out[1]);
    }
}

static void loss__survives_large_scores(void **state)
{
    (void)state;
    EACH_BAG(3000)
    double dU[LONGEST], weight[LONGEST], out[2], sum = 0;
    double value = loss_of(&b, dU, NULL);
    assert_true(isfinite(value) && value >= 0);
    form->predict(&(fini_bag){&shape, b.extra, L, b.U, b.scratch, NULL}, out, NULL);
    near(out[0] + out[1], 1, 1e-15);
    form->locate(&(fini_bag){&shape, b.extra, L, b.U, b.scratch, NULL}, &b.y, 1, weight);
    for (int64_t l = 0; l < L; l++) {
        assert_true(fabs(dU[l]) <= 1 && weight[l] >= 0);
        sum += weight[l];
    }
    near(sum, 1, 1e-12);
    END bag b = {.L = 2, .U = {NAN, 0}};
    assert_false(isfinite(loss_of(&b, NULL, NULL)));
    b.U[0] = INFINITY; /* on for sure: no loss if the label is 1 */
    assert_false(isfinite(loss_of(&b, NULL, NULL)));
    b.y = 1;
    near(loss_of(&b, NULL, NULL), 0, 0);
}

/* ---- as a model ------------------------------------------------------------------------------- */

/* Tokens are normal; a bag is 1 if the first column of any token is above 1.2. */
typedef struct data {
    double tokens[BAGS * 5 * DIM], labels[BAGS];
    int64_t offsets[BAGS + 1];
    fin_bags bags;
    fin_fit_settings settings;
} data;

static data *draw(void)
{
    static data set;
    fini_key key = {3, 0, 902};
    memset(&set, 0, sizeof set);
    fini_kernel_ref.normals_f64(
        key, 0, (int64_t)(sizeof set.tokens / sizeof(double)) / FINI_NORMALS_F64, set.tokens);
    for (int i = 0; i < BAGS; i++) {
        set.offsets[i + 1] = set.offsets[i] + 3 + i % 3;
        for (int64_t l = set.offsets[i]; l < set.offsets[i + 1]; l++)
            set.labels[i] = set.tokens[l * DIM] > 1.2 ? 1 : set.labels[i];
    }
    set.bags = (fin_bags){BAGS, DIM, 0, BAGS, set.offsets, FIN_F64, set.tokens, set.labels, NULL};
    fin_settings_defaults(&fin_fit_table, &set.settings, sizeof set.settings);
    set.settings.model = FIN_MODEL_ANY;
    return &set;
}

/* The token with the largest first column is found in the bags that have one above 1.2. */
static void fit__finds_the_tokens_that_are_on(void **state)
{
    (void)state;
    data *set = draw();
    fin_error err = {FIN_OK, ""};
    fin_fit *fit = NULL;
    double prior[BAGS * 5], given[BAGS * 5], p[2 * BAGS], found = 0, positive = 0, right = 0;
    assert_int_equal(fin_fit_create(&fit, &set->settings, 2, &set->bags, NULL, NULL, NULL, &err),
                     0);
    assert_int_equal(fin_fit_locates(fit), 1);
    assert_int_equal(fin_fit_locate(fit, &set->bags,
                                    &(fin_locations){.prior = prior, .given = given}, NULL, &err),
                     FIN_OK);
    assert_int_equal(fin_fit_predict(fit, &set->bags, p, NULL, NULL, &err), FIN_OK);
    for (int i = 0; i < BAGS; i++) {
        int64_t best = set->offsets[i], top = best;
        double sum = 0;
        for (int64_t l = set->offsets[i]; l < set->offsets[i + 1]; l++) {
            best = given[l] > given[best] ? l : best;
            top = set->tokens[l * DIM] > set->tokens[top * DIM] ? l : top;
            sum += prior[l];
        }
        near(sum, 1, 1e-12);
        positive += set->labels[i];
        found += set->labels[i] * (best == top);
        right += (p[2 * i + 1] > 0.5) == (set->labels[i] > 0.5);
    }
    print_message("%g of %g found, %g of %d right\n", found, positive, right, BAGS);
    assert_true(positive >= 10 && found >= 0.8 * positive && right >= 0.8 * BAGS);
    fin_fit_destroy(fit);
}

static void fit__refuses_other_labels(void **state)
{
    (void)state;
    data *set = draw();
    for (int64_t classes = 0; classes <= 3; classes += 3) {
        fin_error err = {FIN_OK, ""};
        fin_fit *fit = NULL;
        assert_int_equal(
            fin_fit_create(&fit, &set->settings, classes, &set->bags, NULL, NULL, NULL, &err),
            FIN_ERR_UNSUPPORTED);
        assert_null(fit);
        assert_non_null(strstr(err.message, "two classes"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loss__is_minus_log_likelihood),
        cmocka_unit_test(loss__gradient_is_prior_less_posterior),
        cmocka_unit_test(loss__gradient_by_differences),
        cmocka_unit_test(predict__is_one_minus_the_product),
        cmocka_unit_test(locate__is_the_first_clock_to_ring),
        cmocka_unit_test(loss__survives_faint_scores),
        cmocka_unit_test(loss__survives_large_scores),
        cmocka_unit_test(fit__finds_the_tokens_that_are_on),
        cmocka_unit_test(fit__refuses_other_labels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
