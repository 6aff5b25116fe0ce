/* images: masked pretraining on images of the user, and what it is worth to a linear map with few labels.
 *
 * One of `test_folds` images is held out. An encoder learns to fill in hidden patches of the others; then
 * logistic regression on its frozen states, with a few labels of each class, against the same on its
 * first weights, subset of labels by subset. All is judged on the images that are held out. */
#include "command/command.h"

#include "finetti/data_encoder.h"
#include "finetti/encoder_probe.h"
#include "text/text.h"

#include <math.h>
#include <string.h>

#define IMAGES_FIELDS(F, C)                                                                        \
    F(int64_t, patch, 2, 1, 4096, "side of the square patches that an image is cut into")          \
    F(int64_t, rows, 0, 0, 65536, "pixels from top to bottom; 0 = images are square")              \
    F(double, share, 0.5, 0, 1, "share of the patches that is hidden")                             \
    C(readout, 1, "tokens|pooled",                                                                 \
      "hidden values are answered by their own token, or by the mean state of the others")         \
    F(int64_t, test_folds, 5, 2, 1000000, "one image of so many is held out to judge by")          \
    F(int64_t, per_class, 10, 1, 1000000000, "labels of each class that a linear map learns from") \
    F(int64_t, subsets, 5, 2, 10000, "subsets of labels drawn")

#define FIN_TABLE_STRUCT images_own
FIN_TABLE_OF_ITS_OWN(own_table, "images", IMAGES_FIELDS);

typedef struct images_values {
    char data[1024], label[128];
    images_own own;
    fin_encoder_settings encoder;
    fin_learn_settings learn;
} images_values;

static const fin_word words[] = {
    FIN_WORD("data", images_values, data, "",
             "CSV or NPZ file of images as finetti pretrain takes it; runs are known by what is in "
             "it"),
    FIN_WORD("label", images_values, label, "label", "its column (array) with the classes"),
    FIN_WORDS_END,
};

static const fin_output outputs[] = {
    {"accuracy", "of a linear map on the pretrained encoder, images held out, mean over subsets",
     NULL},
    {"accuracy_new", "the same on the encoder's first weights", NULL},
    {"gain", "difference of the two, subset by subset", NULL},
    {"gain_errors", "the gain in its own standard errors", NULL},
    {"left", "share of the variance of hidden pixels that is left, images held out", NULL},
    {"covered", "share of the pixels that is hidden", NULL},
    {NULL, NULL, NULL},
};

static fin_status check(const void *values, fin_error *err)
{
    const images_values *v = values;
    char path[FINI_FOLDER_PATH];
    return v->data[0] ? fini_text_given("data", v->data, path, err) : FIN_OK; /* a run says it */
}

static void tidy(void *values)
{
    images_values *v = values;
    fini_text_to_key(v->data, sizeof v->data);
}

/* ---- a run ------------------------------------------------------------------------------------- */

typedef struct pictures {
    const images_values *v;
    fin_token_set *all, *train, *test;
    fin_corpus *masked, *masked_test; /* to learn from, to judge by */
    fin_encoder *encoder;
    fin_learn *learn;
} pictures;

static fin_status open_part(const pictures *p, bool test, int64_t per_class, int64_t seed,
                            fin_token_set **out, fin_error *err)
{
    fin_token_part part = {.folds = p->v->own.test_folds,
                           .test = test,
                           .per_class = per_class,
                           .seed = (uint64_t)seed};
    return fin_token_set_part(out, p->all, &part, err);
}

static fin_status open_corpus(const pictures *p, int objective, const fin_token_set *set,
                              fin_corpus **out, fin_error *err)
{
    fin_corpus_settings s;
    fin_settings_defaults(&fin_corpus_table, &s, sizeof s);
    s.objective = objective;
    s.share = p->v->own.share;
    s.readout = p->v->own.readout;
    return fin_corpus_memory(out, &s, fin_token_set_memory(set), (uint64_t)p->v->learn.seed, err);
}

static fin_status open_all(pictures *p, const char *path, const fin_progress *progress,
                           fin_error *err)
{
    const images_values *v = p->v;
    fin_encoder_settings settings = v->encoder;
    fin_encoder_shape shape;
    const fin_token_source source = {
        .bags = {.path = path, .label = v->label, .kind = "classes", .class_count = -1},
        .patch = v->own.patch,
        .rows = v->own.rows};
    FINI_TRY(fin_token_set_read(&p->all, &source, progress, err));
    FINI_TRY(open_part(p, false, 0, 0, &p->train, err));
    FINI_TRY(open_part(p, true, 0, 0, &p->test, err));
    FINI_TRY(open_corpus(p, FIN_OBJECTIVE_MASKED, p->train, &p->masked, err));
    FINI_TRY(open_corpus(p, FIN_OBJECTIVE_MASKED, p->test, &p->masked_test, err));
    fin_corpus_get_shape(p->masked, &shape);
    if (settings.longest == FIN_AUTO_INT)
        settings.longest = fin_corpus_longest(p->masked);
    FINI_TRY(fin_encoder_create(&p->encoder, &settings, &shape, (uint64_t)v->learn.seed, err));
    return fin_learn_create(&p->learn, &v->learn, p->encoder, p->masked, p->masked_test, NULL, 0, 1,
                            err);
}

static void close_all(pictures *p)
{
    fin_learn_destroy(p->learn);
    fin_encoder_destroy(p->encoder);
    fin_corpus_destroy(p->masked);
    fin_corpus_destroy(p->masked_test);
    fin_token_set_destroy(p->train);
    fin_token_set_destroy(p->test);
    fin_token_set_destroy(p->all);
}

/* Accuracy of a linear map for every subset. */
static fin_status probe(const pictures *p, double *accuracy, const fin_progress *progress,
                        fin_error *err)
{
    fin_corpus *few = NULL, *judge = NULL;
    fin_probe_settings settings;
    fin_probe_score score;
    fin_settings_defaults(&fin_probe_table, &settings, sizeof settings);
    settings.train = settings.test = INT64_C(1) << 30; /* all there are */
    fin_status status = open_corpus(p, FIN_OBJECTIVE_SUPERVISED, p->test, &judge, err);
    for (int64_t i = 0; i < p->v->own.subsets && !status; i++) {
        fin_token_set *set = NULL;
        int64_t seed = fini_seed_apart(p->v->learn.seed) + i;
        status = open_part(p, false, p->v->own.per_class, seed, &set, err);
        if (!status)
            status = open_corpus(p, FIN_OBJECTIVE_SUPERVISED, set, &few, err);
        if (!status)
            status = fin_encoder_probe_on(p->encoder, few, judge, &settings, &score, NULL, 0,
                                          progress, err);
        accuracy[i] = score.accuracy;
        fin_corpus_destroy(few);
        fin_token_set_destroy(set);
        few = NULL;
    }
    fin_corpus_destroy(judge);
    return status;
}

static double variance_of(const fin_memory *m)
{
    double sum = 0, square = 0, n = (double)(m->offsets[m->n] * m->values);
    for (int64_t t = 0; t < m->offsets[m->n]; t++)
        for (int64_t j = m->inputs - m->values; j < m->inputs; j++) {
            double x = (double)m->tokens[t * m->inputs + j];
            sum += x / n;
            square += x * x / n;
        }
    return square - sum * sum;
}

/* Hidden pixels of the images held out, as the encoder fills them in. One scale for all pixels: a share
 * of their variance is the same in the units of the file. */
static fin_status fill_in(const pictures *p, fin_result *result, fin_error *err)
{
    const fin_memory *m = fin_token_set_memory(p->test);
    fin_encoder_shape shape;
    FINI_AT_END(fin_examples_close) fin_examples e = {.memory = NULL};
    fin_pass pass = {.dtype = FIN_F32};
    double sum = 0, square = 0, hidden = 0, pixels = (double)(m->offsets[m->n] * m->values);
    fin_corpus_get_shape(p->masked_test, &shape);
    fin_status status = fin_corpus_draw(p->masked_test, FIN_TEST_FIRST, m->n, -1, 0, 0, &e, err);
    int64_t size = fin_head_targets(&shape.head[0]), count = e.rows * size, one = count / m->n;
    FINI_FREED double *answers = status ? NULL : fini_alloc_array(count, sizeof *answers);
    if (!status && !answers)
        status = fini_fail_memory(err, (size_t)count * sizeof *answers, "answers");
    pass.answers[0] = answers;
    if (!status)
        status = fin_encoder_pass(p->encoder, &e.sequences, &pass, err);
    for (int64_t i = 0; i < m->n && !status; i++) {
        double own = 0;
        for (int64_t k = i * one; k < (i + 1) * one; k++)
            if (!isnan(e.targets[k])) {
                own += (answers[k] - e.targets[k]) * (answers[k] - e.targets[k]);
                hidden++;
            }
        sum += own;
        square += own * own;
    }
    if (!status) {
        double n = (double)m->n, unit = hidden * variance_of(m);
        fini_result_scalar(result, "left", sum / unit,
                           sqrt(fmax(0, square - sum * sum / n) * n / (n - 1)) / unit,
                           FIN_HOW_SIMULATION, m->n);
        fini_result_scalar(result, "covered", hidden / pixels, 0, FIN_HOW_SIMULATION, m->n);
    }
    return status;
}

static double mean_of(int64_t n, const double *x, double *error)
{
    double mean = 0, square = 0;
    for (int64_t i = 0; i < n; i++)
        mean += x[i] / (double)n;
    for (int64_t i = 0; i < n; i++)
        square += (x[i] - mean) * (x[i] - mean);
    *error = sqrt(square / (double)(n - 1) / (double)n);
    return mean;
}

static int look(void *user, const fin_learn_report *report)
{
    return fini_report(user, "pretraining", (double)report->step, (double)report->steps);
}

static fin_status measure(pictures *p, double *learnt, double *new, fin_result *result,
                          const fin_progress *progress, fin_error *err)
{
    const int64_t n = p->v->own.subsets;
    double mean, error;
    FINI_TRY(probe(p, new, progress, err));
    FINI_TRY(fin_learn_run(p->learn, -1, look, (void *)(uintptr_t)progress, err));
    FINI_TRY(probe(p, learnt, progress, err));
    mean = mean_of(n, learnt, &error);
    fini_result_scalar(result, "accuracy", mean, error, FIN_HOW_SIMULATION, n);
    mean = mean_of(n, new, &error);
    fini_result_scalar(result, "accuracy_new", mean, error, FIN_HOW_SIMULATION, n);
    for (int64_t i = 0; i < n; i++)
        learnt[i] -= new[i];
    mean = mean_of(n, learnt, &error);
    fini_result_scalar(result, "gain", mean, error, FIN_HOW_SIMULATION, n);
    if (error > 0)
        fini_result_scalar(result, "gain_errors", mean / error, 0, FIN_HOW_SIMULATION, n);
    return fill_in(p, result, err);
}

static fin_status run(const void *values, fin_result *result, const fin_progress *progress,
                      fin_error *err)
{
    const images_values *v = values;
    char path[FINI_FOLDER_PATH];
    pictures p = {.v = v};
    if (!v->data[0])
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "no images: set data to a CSV or NPZ file with a row of pixels and a "
                         "class for each");
    fin_status status = fini_text_given("data", v->data, path, err);
    double *accuracy = fini_alloc_array(2 * v->own.subsets, sizeof *accuracy);
    if (!status && !accuracy)
        status = fini_fail_memory(err, (size_t)v->own.subsets * 16, "accuracies");
    if (!status)
        status = open_all(&p, path, progress, err);
    if (!status)
        status = measure(&p, accuracy, accuracy + v->own.subsets, result, progress, err);
    close_all(&p);
    fini_free(accuracy);
    return status;
}

const fin_command fini_command_images = {
    .name = "images",
    .summary = "masked pretraining on images of yours: what it is worth to a linear map with few "
               "labels",
    .revision = 1,
    .size = sizeof(images_values),
    .words = words,
    .outputs = outputs,
    .tables = FINI_TABLES({&own_table, offsetof(images_values, own)},
                          {&fin_encoder_table, offsetof(images_values, encoder)},
                          {&fin_learn_table, offsetof(images_values, learn)}),
    .tidy = tidy,
    .check = check,
    .run = run,
};
