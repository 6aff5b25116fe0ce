/* Probes of encoders on corpora: what a layer shows, what is left of it, and what is refused. An
 * encoder without layers and norms is a linear map of tokens, so that it is known what can be read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fault.h"
#include "finetti/encoder_probe.h"
#include "test_encoder_corpus_help.h"

static fin_encoder *linear_encoder(const fin_corpus *corpus, int64_t width, int64_t layers)
{
    fin_encoder_settings s;
    fin_encoder_shape shape;
    fin_encoder *encoder;
    fin_error err = {FIN_OK, ""};
    fin_settings_defaults(&fin_encoder_table, &s, sizeof s);
    fin_corpus_get_shape(corpus, &shape);
    s.width = width;
    s.heads = 1;
    s.layers = layers;
    s.norm = layers ? FIN_NORM_LAYER : FIN_NORM_NONE;
    if (fin_encoder_create(&encoder, &s, &shape, 5, &err))
        fail_msg("%s", err.message);
    return encoder;
}

static fin_probe_settings settings_of(int target)
{
    fin_probe_settings s;
    fin_settings_defaults(&fin_probe_table, &s, sizeof s);
    s.target = (fin_choice)target;
    s.train = 400;
    s.test = 300;
    return s;
}

static fin_probe_score probe(const fin_encoder *encoder, const fin_corpus *corpus,
                             const fin_probe_settings *s, double *column_r2, int64_t room)
{
    fin_probe_score score;
    fin_error err = {FIN_OK, ""};
    if (fin_encoder_probe_on(encoder, corpus, NULL, s, &score, column_r2, room, NULL, &err))
        fail_msg("%s", err.message);
    return score;
}

/* mean: the posterior mean is the mean of the tokens times a constant, which the pooled linear map
 * of tokens shows; its variance is the same in all sequences. */
static void posterior__of_a_mean_is_read_exactly(void **state)
{
    (void)state;
    fin_latent_settings ls = help_defaults("mean");
    ls.dv = 2;
    fin_latent *latent = help_latent("mean", &ls, 3);
    fin_corpus *corpus = corpus_latent(NULL, latent);
    fin_encoder *encoder = linear_encoder(corpus, 4, 0);
    double r2[4] = {9, 9, 9, 9};
    fin_probe_settings s = settings_of(FIN_PROBE_POSTERIOR);
    fin_probe_score score = probe(encoder, corpus, &s, r2, 4);
    assert_int_equal(score.columns, 3);
    assert_int_equal(score.train, 400);
    assert_int_equal(score.test, 300);
    assert_true(r2[0] > 1 - 1e-9 && r2[1] > 1 - 1e-9);
    assert_true(isnan(r2[2]) && r2[3] == 9);
    assert_true(score.r2 > 1 - 1e-9 && score.r2_least > 1 - 1e-9 && score.rmse < 1e-4);
    assert_true(isnan(score.accuracy) && isnan(score.log_loss));
    s.target = FIN_PROBE_MEAN;
    score = probe(encoder, corpus, &s, NULL, 0);
    assert_int_equal(score.columns, 2);
    assert_true(score.r2 > 1 - 1e-9);
    /* A hidden token sees no others here: nothing is read of the prediction of it. */
    s.target = FIN_PROBE_BAYES;
    score = probe(encoder, corpus, &s, NULL, 0);
    assert_int_equal(score.train, 400 * fin_corpus_get_settings(corpus)->M);
    assert_int_equal(score.columns, 2);
    assert_true(score.r2 < 0.05);
    fin_encoder_destroy(encoder);
    fin_corpus_destroy(corpus);
    fin_latent_destroy(latent);
}

/* counts: the pooled one-hot tokens are the counts, which tell the Bayes label exactly and the
 * label itself up to its noise. */
static void label__of_counts_is_read_as_bayes_would(void **state)
{
    (void)state;
    fin_latent *latent = help_latent("counts", NULL, 3);
    fin_corpus_settings cs = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    cs.label_noise = 0.02;
    fin_corpus *corpus = corpus_latent(&cs, latent);
    fin_encoder *encoder = linear_encoder(corpus, 6, 0);
    fin_probe_settings s = settings_of(FIN_PROBE_BAYES);
    fin_probe_score bayes = probe(encoder, corpus, &s, NULL, 0);
    assert_true(bayes.r2 > 1 - 1e-9);
    s.target = FIN_PROBE_LABEL;
    fin_probe_score label = probe(encoder, corpus, &s, NULL, 0);
    assert_true(label.rmse > 0.12 && label.rmse < 0.2); /* sqrt(0.02) = 0.141, and a little more */
    assert_true(label.columns == 1 && label.r2 > 0.1);
    s.target = FIN_PROBE_MEAN; /* Dirichlet means are linear in counts */
    assert_true(probe(encoder, corpus, &s, NULL, 0).r2 > 1 - 1e-9);
    fin_encoder_destroy(encoder);
    fin_corpus_destroy(corpus);
    fin_latent_destroy(latent);
}

/* Layers differ; -1 is the last; classes are scored as classes. */
static void layers__and_classes(void **state)
{
    (void)state;
    fin_latent *latent = help_latent("finite", NULL, 3);
    fin_corpus_settings cs = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    fin_corpus *corpus = corpus_latent(&cs, latent);
    fin_encoder *encoder = linear_encoder(corpus, 12, 1);
    fin_probe_settings s = settings_of(FIN_PROBE_LABEL);
    fin_probe_score last = probe(encoder, corpus, &s, NULL, 0);
    s.layer = 1;
    fin_probe_score one = probe(encoder, corpus, &s, NULL, 0);
    s.layer = 0;
    fin_probe_score none = probe(encoder, corpus, &s, NULL, 0);
    assert_memory_equal(&last, &one, sizeof last);
    assert_true(last.log_loss != none.log_loss);
    assert_int_equal(last.columns, 16);
    assert_true(last.accuracy > 1.5 / 16 && last.log_loss < log(16));
    double a = last.accuracy;
    assert_true(fabs(last.accuracy_se - sqrt(a * (1 - a) / 300)) < 1e-12);
    assert_true(isnan(last.r2) && isnan(last.rmse));
    fin_encoder_destroy(encoder);
    fin_corpus_destroy(corpus);
    fin_latent_destroy(latent);
}

/* ---- data ------------------------------------------------------------------------------------ */

enum { N = 60 };
static int64_t offsets[N + 1];
static float tokens[3 * N * 2];
static double labels[N];

/* Three tokens each; the label is the class of their mean first column, and missing in every sixth. */
static fin_memory sample(void)
{
    for (int i = 0; i < N; i++) {
        offsets[i + 1] = 3 * (i + 1);
        for (int l = 0; l < 3; l++) {
            tokens[(3 * i + l) * 2] = (float)(i % 2 ? 1 : -1) + (float)(l - 1) * 0.1f;
            tokens[(3 * i + l) * 2 + 1] = (float)sin(i * 3.7 + l);
        }
        labels[i] = i % 6 == 5 ? NAN : i % 2;
    }
    return (fin_memory){.n = N,
                        .inputs = 2,
                        .values = 1,
                        .offsets = offsets,
                        .tokens = tokens,
                        .labels = labels,
                        .classes = 2};
}

static void data__is_cut_and_missing_labels_are_left_out(void **state)
{
    (void)state;
    fin_memory m = sample();
    fin_corpus_settings cs = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    fin_corpus *corpus = corpus_memory(&cs, &m);
    fin_encoder *encoder = linear_encoder(corpus, 3, 0);
    fin_probe_settings s = settings_of(FIN_PROBE_LABEL);
    s.penalty = 1e-3;
    s.train = 30;
    s.test = 15;
    fin_probe_score score = probe(encoder, corpus, &s, NULL, 0);
    assert_true(score.train == 30 && score.test == 15 && score.accuracy == 1);
    assert_true(score.accuracy_se == 0 && score.penalty == 1e-3);
    s.train = 4000; /* more than there are: all 50 in that proportion */
    s.test = 1000;
    score = probe(encoder, corpus, &s, NULL, 0);
    assert_true(score.train == 40 && score.test == 10);
    s.train = 1000000; /* nothing would be left to judge it */
    s.test = 2;
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_encoder_probe_on(encoder, corpus, NULL, &s, &score, NULL, 0, NULL, &err),
                     FIN_ERR_ARGUMENT);
    fin_corpus *other = corpus_memory(&cs, &m); /* a corpus of its own to be judged on */
    assert_int_equal(fin_encoder_probe_on(encoder, corpus, other, &s, &score, NULL, 0, NULL, &err),
                     FIN_OK);
    assert_true(score.train == 50 && score.test == 2);
    fin_corpus_destroy(other);
    fin_encoder_destroy(encoder);
    fin_corpus_destroy(corpus);
}

/* Labels that mean nothing are learnt by heart from enough columns, and guessed elsewhere. */
static void data__is_judged_on_other_rows(void **state)
{
    (void)state;
    enum { COLUMNS = 40, MANY = 60 };
    float x[MANY * COLUMNS], normal[MANY];
    double y[MANY];
    int64_t places[MANY + 1];
    fin_random_normals_f32(5, FIN_STREAM_USER, 0, 0, MANY * COLUMNS, x);
    fin_random_normals_f32(5, FIN_STREAM_USER, 1, 0, MANY, normal);
    for (int i = 0; i <= MANY; i++)
        places[i] = i;
    for (int i = 0; i < MANY; i++)
        y[i] = normal[i] > 0;
    fin_memory m = {MANY, COLUMNS, 1, places, x, y, 2};
    fin_corpus_settings cs = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    fin_corpus *corpus = corpus_memory(&cs, &m);
    fin_encoder *encoder = linear_encoder(corpus, COLUMNS, 0);
    fin_probe_settings s = settings_of(FIN_PROBE_LABEL);
    s.penalty = 1e-3;
    s.train = s.test = 30;
    fin_probe_score score = probe(encoder, corpus, &s, NULL, 0);
    assert_true(score.accuracy < 0.9 && score.accuracy > 0.1);
    fin_encoder_destroy(encoder);
    fin_corpus_destroy(corpus);
}

/* ---- refusals and memory ----------------------------------------------------------------------- */

static void refuse(const fin_encoder *encoder, const fin_corpus *corpus,
                   const fin_probe_settings *s, fin_status want, const char *word)
{
    fin_probe_score score;
    fin_error err = {FIN_OK, ""};
    assert_int_equal(fin_encoder_probe_on(encoder, corpus, NULL, s, &score, NULL, 0, NULL, &err),
                     want);
    if (!strstr(err.message, word))
        fail_msg("'%s' is not in: %s", word, err.message);
}

static int stop(void *user, const char *what, double done, double total)
{
    (void)user, (void)what;
    return done > 0 && done <= total;
}

static void probe__refuses_what_makes_no_sense(void **state)
{
    (void)state;
    fin_latent *concept = help_latent("concept", NULL, 1),
               *process = help_latent("process", NULL, 1);
    fin_corpus *corpus = corpus_latent(NULL, concept), *gp = corpus_latent(NULL, process);
    fin_encoder *encoder = linear_encoder(corpus, 4, 1), *other = linear_encoder(gp, 4, 1);
    fin_memory m = sample();
    fin_corpus *data = corpus_memory(NULL, &m);
    fin_encoder *third = linear_encoder(data, 4, 0);
    fin_probe_settings s = settings_of(FIN_PROBE_LABEL);
    refuse(encoder, corpus, &s, FIN_ERR_ARGUMENT, "no labels");
    refuse(encoder, data, &s, FIN_ERR_ARGUMENT, "2 columns");
    s.target = FIN_PROBE_BAYES;
    refuse(third, data, &s, FIN_ERR_UNSUPPORTED, "no Bayes prediction");
    s.target = FIN_PROBE_MEAN;
    refuse(third, data, &s, FIN_ERR_UNSUPPORTED, "no posterior");
    s.target = FIN_PROBE_POSTERIOR;
    refuse(other, gp, &s, FIN_ERR_UNSUPPORTED, "no posterior");
    s.layer = 2;
    refuse(encoder, corpus, &s, FIN_ERR_ARGUMENT, "layer = 2");
    s.layer = -3;
    refuse(encoder, corpus, &s, FIN_ERR_ARGUMENT, "layer");
    s.layer = -1;
    s.train = 1;
    refuse(encoder, corpus, &s, FIN_ERR_ARGUMENT, "train");
    s.train = 400;
    fin_probe_score score;
    fin_progress progress = {stop, NULL};
    assert_int_equal(
        fin_encoder_probe_on(encoder, corpus, NULL, &s, &score, NULL, 0, &progress, NULL),
        FIN_ERR_CANCELLED);
    fin_encoder_destroy(encoder);
    fin_encoder_destroy(other);
    fin_encoder_destroy(third);
    fin_corpus_destroy(corpus);
    fin_corpus_destroy(gp);
    fin_corpus_destroy(data);
    fin_latent_destroy(concept);
    fin_latent_destroy(process);
}

/* The encoder keeps work of its passes, so it is made here, too. */
static fin_status run(void *user, fin_error *err)
{
    fin_corpus *corpus = NULL;
    fin_encoder *encoder = NULL;
    fin_encoder_settings es;
    fin_encoder_shape shape;
    fin_probe_score score;
    fin_corpus_settings cs = corpus_defaults(FIN_OBJECTIVE_SUPERVISED);
    fin_probe_settings s = settings_of(FIN_PROBE_LABEL);
    s.train = 20;
    s.test = 10;
    fin_settings_defaults(&fin_encoder_table, &es, sizeof es);
    es.width = 3;
    es.heads = 1;
    es.layers = 0;
    fin_status status = fin_corpus_memory(&corpus, &cs, user, 1, err);
    if (!status) {
        fin_corpus_get_shape(corpus, &shape);
        status = fin_encoder_create(&encoder, &es, &shape, 1, err);
    }
    if (!status)
        status = fin_encoder_probe_on(encoder, corpus, NULL, &s, &score, NULL, 0, NULL, err);
    fin_encoder_destroy(encoder);
    fin_corpus_destroy(corpus);
    return status;
}

static void probe__survives_failing_allocations(void **state)
{
    (void)state;
    fin_memory m = sample();
    assert_true(fault_every(run, &m) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(posterior__of_a_mean_is_read_exactly),
        cmocka_unit_test(label__of_counts_is_read_as_bayes_would),
        cmocka_unit_test(layers__and_classes),
        cmocka_unit_test(data__is_cut_and_missing_labels_are_left_out),
        cmocka_unit_test(data__is_judged_on_other_rows),
        cmocka_unit_test(probe__refuses_what_makes_no_sense),
        cmocka_unit_test(probe__survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
