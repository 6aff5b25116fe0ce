/* Evaluations: against sums taken here from the pass itself, with Bayes predictions beside them;
 * the same for any number of threads; limits where the answer is known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_encoder_learn_help.h"

enum { SEQUENCES = 37 };

/* A case with its encoder somewhat trained, so that answers are not all alike. */
static help_case trained(const char *family, int objective, int answer)
{
    help_case c = help_defaults(family);
    c.corpus_set.objective = objective;
    c.corpus_set.answer = answer;
    c.learn_set.rate = 0.02;
    help_open(&c);
    help_run(&c, -1);
    return c;
}

static fin_evaluation evaluate(const help_case *c, int64_t sequences, int64_t L)
{
    fin_evaluation e;
    fin_error err = {FIN_OK, ""};
    if (fin_encoder_evaluate(c->encoder, c->corpus, FIN_TEST_FIRST, sequences, L, &e, NULL, &err))
        fail_msg("%s", err.message);
    return e;
}

/* What evaluate has to find, by its definition: all targets at once, two passes over them. */
typedef struct plain {
    double targets, risk, bayes, excess, risk_se, excess_se, loss, distance, correlation, accuracy;
} plain;

static double log_sum(int64_t n, const double *x)
{
    double sum = 0;
    for (int64_t j = 0; j < n; j++)
        sum += exp(x[j]);
    return log(sum);
}

static plain by_definition(const help_case *c, int64_t sequences)
{
    fin_examples e = {0};
    fin_encoder_shape shape;
    fin_pass pass = {.dtype = FIN_F32};
    fin_corpus_get_shape(c->corpus, &shape);
    const fin_head *head = &shape.head[0];
    int64_t a = fin_head_answers(head), m = head->size;
    bool classes = head->kind == FIN_HEAD_CLASSES, tokens = head->where == FIN_HEAD_TOKENS;
    HELP_OK(fin_corpus_draw(c->corpus, FIN_TEST_FIRST, sequences, -1, FIN_TEST_FIRST,
                            FIN_EXAMPLES_BAYES, &e, &help_err));
    double *f = calloc((size_t)(e.rows * a), sizeof *f), p = 0, q = 0, n = 0;
    double *S = calloc((size_t)sequences * 3, sizeof *S); /* risk, excess, targets of each */
    double pp = 0, pq = 0, qq = 0;
    pass.answers[0] = f;
    HELP_OK(fin_encoder_pass(c->encoder, &e.sequences, &pass, &help_err));
    plain r = {0};
    for (int64_t i = 0; i < sequences; i++)
        for (int64_t t = tokens ? e.sequences.offsets[i] : i;
             t < (tokens ? e.sequences.offsets[i + 1] : i + 1); t++) {
            const double *y = e.targets + t * fin_head_targets(head);
            const double *g = f + t * a, *b = e.bayes + t * a;
            if (isnan(y[0]))
                continue;
            double risk = 0, bayes = 0, loss = 0, most = -INFINITY;
            int64_t best = -1;
            for (int64_t j = 0; j < m; j++) {
                double u = classes ? exp(g[j] - log_sum(m, g)) : g[j];
                double v = classes ? exp(b[j]) : b[j];
                risk += classes ? 0 : (g[j] - y[j]) * (g[j] - y[j]);
                bayes += classes ? 0 : (b[j] - y[j]) * (b[j] - y[j]);
                if (head->kind == FIN_HEAD_GAUSSIAN)
                    loss += ((g[j] - y[j]) * (g[j] - y[j]) / exp(g[m + j]) + g[m + j]) / 2;
                if (u > most) {
                    most = u;
                    best = j;
                }
                r.distance += (u - v) * (u - v);
                p += u;
                q += v;
                pp += u * u;
                pq += u * v;
                qq += v * v;
                n++;
            }
            if (classes) {
                risk = log_sum(m, g) - g[(int64_t)y[0]];
                bayes = -b[(int64_t)y[0]];
                r.accuracy += best == (int64_t)y[0];
            }
            r.loss += head->kind == FIN_HEAD_GAUSSIAN ? loss : risk;
            r.targets++;
            r.risk += risk;
            r.bayes += bayes;
            S[3 * i] += risk;
            S[3 * i + 1] += risk - bayes;
            S[3 * i + 2]++;
        }
    r.risk /= r.targets;
    r.bayes /= r.targets;
    r.excess = r.risk - r.bayes;
    r.loss /= r.targets;
    r.distance /= r.targets;
    r.accuracy = classes ? r.accuracy / r.targets : NAN;
    r.correlation =
        (pq / n - p / n * q / n) / sqrt((pp / n - p / n * p / n) * (qq / n - q / n * q / n));
    for (int64_t i = 0; i < sequences; i++) {
        r.risk_se += pow(S[3 * i] - r.risk * S[3 * i + 2], 2);
        r.excess_se += pow(S[3 * i + 1] - r.excess * S[3 * i + 2], 2);
    }
    double times = (double)sequences / (double)(sequences - 1);
    r.risk_se = sqrt(r.risk_se * times) / r.targets;
    r.excess_se = sqrt(r.excess_se * times) / r.targets;
    free(f);
    free(S);
    fin_examples_close(&e);
    return r;
}

/* The pass may group sequences differently: single precision. */
static void near(const char *what, double a, double b)
{
    if (isnan(a) != isnan(b) || (!isnan(a) && !(fabs(a - b) <= 2e-5 * (1 + fabs(b)))))
        fail_msg("%s is %.9g, by definition %.9g", what, a, b);
}

static void evaluate__follows_its_definition(void **state)
{
    (void)state;
    static const struct {
        const char *family;
        int objective, answer;
    } cases[] = {{"concept", FIN_OBJECTIVE_MASKED, FIN_ANSWER_VALUE},
                 {"concept", FIN_OBJECTIVE_MASKED, FIN_ANSWER_GAUSSIAN},
                 {"concept", FIN_OBJECTIVE_SUPERVISED, FIN_ANSWER_VALUE},
                 {"counts", FIN_OBJECTIVE_MASKED, FIN_ANSWER_VALUE},
                 {"concepts", FIN_OBJECTIVE_SUPERVISED, FIN_ANSWER_VALUE}};
    for (int k = 0; k < 5; k++) {
        help_case c = trained(cases[k].family, cases[k].objective, cases[k].answer);
        fin_evaluation e = evaluate(&c, SEQUENCES, -1);
        plain p = by_definition(&c, SEQUENCES);
        assert_int_equal(e.sequences, SEQUENCES);
        assert_int_equal(e.targets, SEQUENCES * (cases[k].objective ? 1 : 3));
        near("targets", (double)e.targets, p.targets);
        near("risk", e.risk, p.risk);
        near("bayes", e.bayes, p.bayes);
        near("excess", e.excess, p.excess);
        near("risk_se", e.risk_se, p.risk_se);
        near("excess_se", e.excess_se, p.excess_se);
        near("quotient", e.quotient, p.risk / p.bayes);
        near("loss", e.loss, p.loss);
        near("distance", e.distance, p.distance);
        near("correlation", e.correlation, p.correlation);
        near("accuracy", e.accuracy, p.accuracy);
        assert_true(e.risk_se > 0 && e.bayes_se > 0);
        help_close(&c);
    }
}

/* In a sum over targets the Bayes prediction is the best: excess is not negative but by chance, and
 * for the squared error it is the squared distance in expectation. */
static void evaluate__excess_is_distance(void **state)
{
    (void)state;
    help_case c = trained("concept", FIN_OBJECTIVE_MASKED, FIN_ANSWER_VALUE);
    fin_evaluation e = evaluate(&c, 2000, -1);
    double z = (e.excess - e.distance) / e.excess_se;
    print_message("excess %.4f, distance %.4f, z = %.2f\n", e.excess, e.distance, z);
    assert_true(fabs(z) < 5);
    assert_true(e.excess > 0);
    /* Longer contexts than it was trained with: the Bayes risk falls. */
    fin_evaluation longer = evaluate(&c, 2000, 24), none = evaluate(&c, 2000, 0);
    assert_true(longer.bayes < e.bayes && e.bayes < none.bayes);
    help_close(&c);
}

static void evaluate__same_bits_for_threads_and_again(void **state)
{
    (void)state;
    help_case c = trained("concept", FIN_OBJECTIVE_MASKED, FIN_ANSWER_VALUE);
    const int64_t n = 4000; /* so many that there is work for threads */
    fin_threads_set(1);
    fin_evaluation a = evaluate(&c, n, -1);
    fin_threads_set(3);
    fin_evaluation b = evaluate(&c, n, -1);
    fin_threads_set(0);
    assert_true(a.risk == b.risk && a.excess == b.excess && a.excess_se == b.excess_se &&
                a.loss == b.loss && a.correlation == b.correlation && a.bayes == b.bayes);
    help_close(&c);
}

/* Without tokens in sight all Bayes predictions are the same, up to rounding: they correlate with
 * nothing. */
static void evaluate__no_correlation_with_a_constant(void **state)
{
    (void)state;
    help_case c = help_defaults("counts");
    c.latent_set.outcomes = 3;
    help_open(&c);
    for (int64_t n = 2; n < 300; n += 7) {
        fin_evaluation e = evaluate(&c, n, 0);
        if (!isnan(e.correlation))
            fail_msg("%lld sequences: correlation %g", (long long)n, e.correlation);
    }
    help_close(&c);
}

/* Sequences with different numbers of targets: the standard error is that of a ratio, over
 * sequences. */
static void evaluate__weighs_sequences_by_targets(void **state)
{
    (void)state;
    enum { N = 11, MOST = 128 };
    static float x[MOST * 2];
    int64_t at[N + 1] = {0}, head = 0;
    for (int i = 0; i < N; i++)
        at[i + 1] = at[i] + 1 + i * i % 17;
    assert_true(at[N] <= MOST);
    for (int i = 0; i < MOST * 2; i++)
        x[i] = (float)(i * 7 % 31) / 8;
    fin_memory memory = {.n = N, .inputs = 2, .values = 1, .offsets = at, .tokens = x};
    help_case c = help_defaults("concept");
    c.memory = &memory;
    help_open(&c);
    fin_evaluation e = evaluate(&c, N, -1);
    fin_examples examples = {0};
    fin_pass pass = {.dtype = FIN_F32};
    double losses[MOST], sum[N] = {0}, count[N] = {0}, total = 0, all = 0, square = 0;
    HELP_OK(
        fin_corpus_draw(c.corpus, FIN_TEST_FIRST, N, -1, FIN_TEST_FIRST, 0, &examples, &help_err));
    pass.targets[head] = examples.targets;
    pass.losses = losses;
    HELP_OK(fin_encoder_pass(c.encoder, &examples.sequences, &pass, &help_err));
    for (int i = 0; i < N; i++)
        for (int64_t l = examples.sequences.offsets[i]; l < examples.sequences.offsets[i + 1];
             l++) {
            sum[i] += isnan(losses[l]) ? 0 : losses[l];
            count[i] += !isnan(losses[l]);
        }
    for (int i = 0; i < N; i++) {
        total += sum[i];
        all += count[i];
    }
    for (int i = 0; i < N; i++)
        square += pow(sum[i] - total / all * count[i], 2);
    assert_true(count[0] != count[1] || count[1] != count[2]);
    near("targets", (double)e.targets, all);
    near("risk", e.risk, total / all);
    near("risk_se", e.risk_se, sqrt(square * N / (N - 1)) / all);
    fin_examples_close(&examples);
    help_close(&c);
}

/* Data has no Bayes prediction; one sequence no standard error. */
static void evaluate__says_what_does_not_apply(void **state)
{
    (void)state;
    static const int64_t at[] = {0, 2, 3};
    static const float x[] = {1, 2, 3, 4, 5, 6};
    static const double y[] = {1, 0};
    fin_memory memory = {
        .n = 2, .inputs = 2, .values = 1, .offsets = at, .tokens = x, .labels = y, .classes = 2};
    help_case c = help_defaults("concept");
    c.memory = &memory;
    c.corpus_set.objective = FIN_OBJECTIVE_SUPERVISED;
    help_open(&c);
    fin_evaluation e = evaluate(&c, 2, -1);
    assert_int_equal(e.targets, 2);
    assert_true(isnan(e.bayes) && isnan(e.bayes_se) && isnan(e.excess) && isnan(e.excess_se) &&
                isnan(e.quotient) && isnan(e.distance) && isnan(e.correlation));
    assert_true(e.risk > 0 && e.loss == e.risk && e.accuracy >= 0 && e.accuracy <= 1);
    e = evaluate(&c, 1, -1);
    assert_true(isnan(e.risk_se) && isfinite(e.risk));
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_encoder_evaluate(c.encoder, c.corpus, 0, 0, -1, &e, NULL, &err),
                     FIN_ERR_ARGUMENT);
    assert_int_equal(fin_encoder_evaluate(c.encoder, c.corpus, 0, -3, -1, &e, NULL, &err),
                     FIN_ERR_ARGUMENT);
    /* Weights that are not numbers: so is the risk, and nothing fails. */
    fin_encoder_weights(c.encoder)[0] = NAN;
    e = evaluate(&c, 2, -1);
    assert_true(isnan(e.risk) && isnan(e.loss));
    help_close(&c);
}

static int cancel(void *user, const char *what, double done, double total)
{
    int *calls = user;
    assert_true(done <= total && what[0]);
    return ++*calls == 2;
}

static void evaluate__can_be_cancelled(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    help_open(&c);
    int calls = 0;
    fin_progress progress = {cancel, &calls};
    fin_evaluation e;
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_encoder_evaluate(c.encoder, c.corpus, FIN_TEST_FIRST, SEQUENCES, -1, &e,
                                          &progress, &err),
                     FIN_ERR_CANCELLED);
    help_close(&c);
}

static fin_status run_evaluation(void *user, fin_error *err)
{
    help_case c = *(help_case *)user;
    fin_evaluation e;
    fin_status status = help_try(&c, err);
    if (!status)
        status =
            fin_encoder_evaluate(c.encoder, c.corpus, FIN_TEST_FIRST, SEQUENCES, -1, &e, NULL, err);
    help_close(&c);
    return status;
}

static void evaluate__survives_lack_of_memory(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    fin_threads_set(1);
    fault_every(run_evaluation, &c);
    fin_threads_set(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluate__follows_its_definition),
        cmocka_unit_test(evaluate__excess_is_distance),
        cmocka_unit_test(evaluate__same_bits_for_threads_and_again),
        cmocka_unit_test(evaluate__no_correlation_with_a_constant),
        cmocka_unit_test(evaluate__weighs_sequences_by_targets),
        cmocka_unit_test(evaluate__says_what_does_not_apply),
        cmocka_unit_test(evaluate__can_be_cancelled),
        cmocka_unit_test(evaluate__survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
