/* Does it learn? A small encoder with cme attention comes near the Bayes risk of a linear concept,
 * online; a fixed sample leaves a gap that fresh sequences do not have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "test_encoder_learn_help.h"

/* One layer of cme attention, no norm, no feed-forward: the posterior mean is in its reach. */
static help_case concept(int64_t steps)
{
    help_case c = help_defaults("concept");
    c.latent_set.noise = 0.1;
    c.corpus_set.L = 16;
    c.corpus_set.M = 16;
    c.encoder_set.attention = FIN_ENCODER_CME;
    c.encoder_set.norm = FIN_NORM_NONE;
    c.encoder_set.heads = 1;
    c.encoder_set.hidden = 0;
    c.learn_set.steps = steps;
    c.learn_set.batch = 32;
    c.learn_set.rate = 0.01;
    c.learn_set.evaluate_every = steps / 4;
    c.learn_set.evaluate_on = 1000;
    return c;
}

static void learn__cme_comes_near_bayes(void **state)
{
    (void)state;
    help_case c = concept(800);
    help_open(&c);
    help_run(&c, -1);
    const fin_learn_row *rows;
    int64_t n = fin_learn_log(c.learn, &rows);
    const fin_evaluation *e = &rows[n - 1].test;
    print_message("risk %.4f, Bayes %.4f: %.2f %% above (+- %.2f), correlation %.5f\n", e->risk,
                  e->bayes, 100 * (e->quotient - 1), 100 * e->excess_se / e->bayes, e->correlation);
    assert_true(e->quotient < 1.05);
    assert_true(e->correlation > 0.995);
    assert_true(rows[0].test.quotient > 2); /* it did not begin there */
    help_close(&c);
}

/* The same sequences again and again: the loss on them falls below the risk on others. */
static void learn__fixed_sample_has_a_gap(void **state)
{
    (void)state;
    help_case c = concept(400);
    c.corpus_set.samples = 8;
    c.corpus_set.L = 3;
    help_open(&c);
    help_run(&c, -1);
    const fin_learn_row *rows;
    int64_t n = fin_learn_log(c.learn, &rows);
    print_message("loss %.4f on 8 sequences, risk %.4f\n", rows[n - 1].loss, rows[n - 1].test.risk);
    assert_true(rows[n - 1].loss < rows[n - 1].test.risk - 5 * rows[n - 1].test.risk_se);
    help_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(learn__cme_comes_near_bayes),
        cmocka_unit_test(learn__fixed_sample_has_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
