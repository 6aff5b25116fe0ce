/* The same bits for any number of threads and of processes (threads here, with a sum of their own);
 * memory that is out; arguments that are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "test_encoder_learn_help.h"
#include "encoder/learn.h"

static int case_at(int i, help_case *c)
{
    *c = help_defaults(i == 2 ? "counts" : "concept");
    c->learn_set.steps = 6;
    c->learn_set.evaluate_every = 3;
    switch (i) {
    case 0:
        c->corpus_set.L_least = 1;
        return 1;
    case 1:
        c->corpus_set.samples = 21;
        c->learn_set.accumulate = 2;
        c->learn_set.blocks = 5;
        c->learn_set.patience = 2;
        return 1;
    case 2:
        c->encoder_set.attention = FIN_ENCODER_CME;
        return 1;
    case 3:
        c->corpus_set.samples = 21;
        c->learn_set.optimizer = FIN_OPTIMIZER_LBFGS;
        return 1;
    case 4:
        c->learn_set.batch = 5;
        c->learn_set.evaluate_on = 3; /* some processes have none */
        return 1;
    case 5: /* large enough that threads share a pass and the drawing of a batch */
        c->latent_set.d = 8;
        c->encoder_set.width = 16;
        c->learn_set.batch = 64;
        c->learn_set.evaluate_on = 520;
        c->learn_set.steps = 3;
        return 1;
    case 6:
        c->corpus_set.samples = 21;
        c->learn_set.train = FIN_LEARN_HEADS;
        return 1;
    default:
        return 0;
    }
}

static help_bytes whole_run(help_case *c)
{
    help_open(c);
    help_run(c, -1);
    help_bytes bytes = help_all(c);
    help_close(c);
    return bytes;
}

static void threads__same_bits(void **state)
{
    (void)state;
    help_case c;
    for (int i = 0; case_at(i, &c); i++) {
        fin_threads_set(1);
        help_bytes one = whole_run(&c);
        fin_threads_set(3);
        help_bytes many = whole_run(&c);
        fin_threads_set(0);
        assert_true(help_same(&one, &many));
        free(one.data);
        free(many.data);
    }
}

typedef struct process {
    help_case c;
    help_bytes bytes;
} process;

static void *run_process(void *user)
{
    process *p = user;
    help_rank = p->c.rank;
    p->bytes = whole_run(&p->c);
    return NULL;
}

static void processes__same_bits(void **state)
{
    (void)state;
    help_case c;
    fin_threads_set(1);
    for (int i = 0; case_at(i, &c); i++)
        for (int ranks = 2; ranks <= HELP_RANKS; ranks++) {
            process p[HELP_RANKS];
            pthread_t thread[HELP_RANKS];
            help_bytes alone = whole_run(&c);
            help_ranks = ranks;
            pthread_barrier_init(&help_barrier, NULL, (unsigned)ranks);
            for (int r = 0; r < ranks; r++) {
                p[r] = (process){.c = c};
                p[r].c.rank = r;
                p[r].c.ranks = ranks;
                p[r].c.sum = help_sum;
                pthread_create(&thread[r], NULL, run_process, &p[r]);
            }
            for (int r = 0; r < ranks; r++)
                pthread_join(thread[r], NULL);
            for (int r = 0; r < ranks; r++) {
                if (!help_same(&alone, &p[r].bytes))
                    fail_msg("case %d: process %d of %d has other bytes", i, r, ranks);
                free(p[r].bytes.data);
            }
            free(alone.data);
            pthread_barrier_destroy(&help_barrier);
        }
    fin_threads_set(0);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static fin_status run_case(void *user, fin_error *err)
{
    help_case c = *(help_case *)user;
    fin_status status = help_try(&c, err);
    if (!status)
        status = fin_learn_run(c.learn, -1, NULL, NULL, err);
    if (!status) { /* and back from a state */
        fin_tensor tensors[16];
        int64_t count = fini_learn_tensors(c.learn, tensors, 16);
        status = fini_learn_restore(c.learn, tensors, count, err);
    }
    help_close(&c);
    return status;
}

static void learn__survives_lack_of_memory(void **state)
{
    (void)state;
    fin_threads_set(1);
    help_case c;
    for (int i = 1; case_at(i, &c) && i <= 3; i += 2) {
        c.learn_set.steps = 3;
        c.learn_set.evaluate_every = 2;
        print_message("%ld allocations\n", fault_every(run_case, &c));
    }
    fin_threads_set(0);
}

/* An allocation that fails in the middle is no harm: learning goes on to the same bytes. */
static void learn__goes_on_after_lack_of_memory(void **state)
{
    (void)state;
    fin_threads_set(1);
    help_case c;
    case_at(1, &c);
    help_bytes whole = whole_run(&c);
    help_open(&c);
    fin_error err;
    long failures = 0;
    for (long k = 0; fin_learn_step(c.learn) < 6; k++) {
        fault_begin(k % 3, 1);
        fin_status status = fin_learn_run(c.learn, -1, NULL, NULL, &err);
        fault_end();
        assert_true(status == FIN_OK || status == FIN_ERR_MEMORY);
        failures += status != FIN_OK;
        if (status)
            assert_false(fin_learn_run(c.learn, fin_learn_step(c.learn) + 1, NULL, NULL, &err));
    }
    print_message("%ld failures\n", failures);
    assert_true(failures > 0);
    help_bytes pieces = help_all(&c);
    assert_true(help_same(&whole, &pieces));
    free(whole.data);
    free(pieces.data);
    help_close(&c);
    fin_threads_set(0);
}

/* ---- arguments ------------------------------------------------------------------------------- */

static void refuse(help_case *c, const char *word)
{
    fin_error err = {FIN_OK, ""};
    fin_status status = help_try(c, &err);
    if (status != FIN_ERR_ARGUMENT || !strstr(err.message, word))
        fail_msg("status '%s', message '%s', expected '%s'", fin_status_name(status), err.message,
                 word);
    assert_null(c->learn);
    help_close(c);
    *c = help_defaults("concept");
}

static void create__refuses_bad_settings(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    for (int i = 0; i < fin_learn_table.count; i++) {
        const fin_field *f = &fin_learn_table.fields[i];
        char *at = (char *)&c.learn_set + f->offset;
        double bad = f->highest * 2 + 1;
        int64_t whole = f->highest < 1e17 ? (int64_t)bad : INT64_MAX;
        int choice = 99;
        if (f->type == FIN_TYPE_double) {
            double nan = NAN;
            memcpy(at, &nan, sizeof nan);
            refuse(&c, f->name);
            memcpy(at, &bad, sizeof bad);
        } else if (f->type == FIN_TYPE_int64_t) {
            memcpy(at, &whole, sizeof whole);
        } else {
            memcpy(at, &choice, sizeof choice);
        }
        refuse(&c, f->name);
    }
}

static void create__refuses_processes(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    c.ranks = 0;
    refuse(&c, "process 0 of 0");
    c.rank = 2;
    c.ranks = 2;
    refuse(&c, "process 2 of 2");
    c.ranks = 2;
    refuse(&c, "no sum");
    c.sum = help_sum;
    c.ranks = 9;
    refuse(&c, "9 processes share 8 blocks");
    c.sum = help_sum;
    c.ranks = 4;
    c.learn_set.batch = 3;
    refuse(&c, "4 processes share 3 blocks");
    c.learn_set.steps = INT64_C(1) << 40;
    c.learn_set.batch = 1 << 20;
    refuse(&c, "more than there are numbers for");
}

/* Every way in which an encoder does not fit a corpus. */
static void create__refuses_another_shape(void **state)
{
    (void)state;
    help_case c = help_defaults("concept");
    help_open(&c);
    fin_encoder_shape right, wrong;
    fin_corpus_get_shape(c.corpus, &right);
    static const char *const words[] = {
        "columns",    "columns",   "no head 'value'",       "classes",
        "a sequence", "2 numbers", "numbers with variances"};
    for (int i = 0; i < 7; i++) {
        fin_encoder *encoder;
        fin_learn *learn;
        fin_evaluation e;
        fin_error err = {FIN_OK, ""};
        wrong = right;
        wrong.inputs += i == 0;
        wrong.values += i == 1;
        if (i == 2)
            snprintf(wrong.head[0].name, sizeof wrong.head[0].name, "other");
        wrong.head[0].kind = i == 3 ? FIN_HEAD_CLASSES : i == 6 ? FIN_HEAD_GAUSSIAN : 0;
        wrong.head[0].where = i == 4 ? FIN_HEAD_POOLED : FIN_HEAD_TOKENS;
        wrong.head[0].size += i == 3 || i == 5;
        HELP_OK(fin_encoder_create(&encoder, &c.encoder_set, &wrong, 1, &help_err));
        assert_int_equal(
            fin_learn_create(&learn, &c.learn_set, encoder, c.corpus, NULL, NULL, 0, 1, &err),
            FIN_ERR_ARGUMENT);
        if (!strstr(err.message, words[i]))
            fail_msg("'%s', expected '%s'", err.message, words[i]);
        assert_null(learn);
        assert_int_equal(
            fin_encoder_evaluate(encoder, c.corpus, FIN_TEST_FIRST, 4, -1, &e, NULL, &err),
            FIN_ERR_ARGUMENT);
        fin_encoder_destroy(encoder);
    }
    help_close(&c);
    c.encoder_set.positions = FIN_POSITIONS_LEARNED;
    c.encoder_set.longest = 8; /* L + M = 9 */
    refuse(&c, "learned positions for 8 tokens");
    fin_learn_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads__same_bits),
        cmocka_unit_test(processes__same_bits),
        cmocka_unit_test(learn__survives_lack_of_memory),
        cmocka_unit_test(learn__goes_on_after_lack_of_memory),
        cmocka_unit_test(create__refuses_bad_settings),
        cmocka_unit_test(create__refuses_processes),
        cmocka_unit_test(create__refuses_another_shape),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
