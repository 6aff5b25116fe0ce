/* The log of learning: an evaluation now and then, and what follows from it (early stopping). */
#include "encoder/corpus.h"
#include "encoder/learn.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

/* Where the numbers of a row stand, in the order of files. */
#define AT(field) offsetof(fin_learn_row, field)
static const size_t place[FINI_ROW] = {AT(step),          AT(rate),           AT(loss),
                                       AT(norm),          AT(test.sequences), AT(test.targets),
                                       AT(test.risk),     AT(test.risk_se),   AT(test.bayes),
                                       AT(test.bayes_se), AT(test.excess),    AT(test.excess_se),
                                       AT(test.quotient), AT(test.distance),  AT(test.correlation),
                                       AT(test.accuracy), AT(test.loss)};

static bool is_count(int i)
{
    return i == 0 || i == 4 || i == 5;
}

void fini_learn_row_numbers(const fin_learn_row *row, double numbers[FINI_ROW])
{
    for (int i = 0; i < FINI_ROW; i++) {
        const char *from = (const char *)row + place[i];
        int64_t count;
        memcpy(is_count(i) ? (void *)&count : &numbers[i], from, sizeof(double));
        numbers[i] = is_count(i) ? (double)count : numbers[i];
    }
}

void fini_learn_row_from(const double numbers[FINI_ROW], fin_learn_row *row)
{
    for (int i = 0; i < FINI_ROW; i++) {
        int64_t count = is_count(i) ? (int64_t)numbers[i] : 0;
        memcpy((char *)row + place[i], is_count(i) ? (const void *)&count : &numbers[i],
               sizeof(double));
    }
}

fin_status fini_learn_room(fin_learn *learn, int64_t rows, fin_error *err)
{
    if (rows <= learn->room)
        return FIN_OK;
    int64_t room = rows > INT64_MAX / 4 ? rows : rows < 32 ? 64 : 2 * rows;
    fin_learn_row *row = fini_alloc_array(room, sizeof *row);
    double *numbers = fini_alloc_array(room, FINI_ROW * sizeof *numbers);
    if (!row || !numbers) {
        fini_free_all(row, numbers);
        return fini_fail_memory(err, (size_t)room * sizeof *row, "the log of learning");
    }
    if (learn->rows) {
        memcpy(row, learn->row, (size_t)learn->rows * sizeof *row);
        memcpy(numbers, learn->row_numbers, (size_t)learn->rows * FINI_ROW * sizeof *numbers);
    }
    fini_free_all(learn->row, learn->row_numbers);
    learn->row = row;
    learn->row_numbers = numbers;
    learn->room = room;
    return FIN_OK;
}

/* Before the first step, every so many, and at the end. */
bool fini_learn_due(const fin_learn *learn)
{
    int64_t step = learn->count[FINI_STEP];
    if (learn->rows && learn->row[learn->rows - 1].step >= step)
        return false;
    return step % learn->every == 0 || step >= learn->settings.steps || learn->count[FINI_STOPPED];
}

/* Keeps the best weights; stops, and at any end goes back to them. */
static void watch(fin_learn *learn, double loss)
{
    float *weights = fin_encoder_weights(learn->encoder);
    size_t size = (size_t)learn->parameters * sizeof *weights;
    if (learn->settings.patience == 0)
        return;
    if (loss < learn->number[FINI_BEST]) {
        learn->number[FINI_BEST] = loss;
        learn->count[FINI_WAITED] = 0;
        memcpy(learn->best, weights, size);
    } else if (++learn->count[FINI_WAITED] >= learn->settings.patience) {
        learn->count[FINI_STOPPED] = 1;
    }
    if ((learn->count[FINI_STOPPED] || learn->count[FINI_STEP] >= learn->settings.steps) &&
        isfinite(learn->number[FINI_BEST]))
        memcpy(weights, learn->best, size);
}

/* Test sequences of an evaluation: of data not more than there are. */
static int64_t test_sequences(const fin_learn *learn)
{
    int64_t n = learn->settings.evaluate_on, there = fin_corpus_sequences(learn->test);
    return learn->test->kind == &fini_corpus_kind_memory && there < n ? there : n;
}

/* On the same sequences every time. */
fin_status fini_learn_evaluate(fin_learn *learn, fin_error *err)
{
    int64_t step = learn->count[FINI_STEP];
    double since = (double)learn->count[FINI_SINCE];
    fin_learn_row row = {.step = step,
                         .rate = step ? fini_learn_rate(learn, step - 1) : 0,
                         .loss = since > 0 ? learn->number[FINI_LOSS_SUM] / since : NAN,
                         .norm = since > 0 ? learn->number[FINI_NORM_SUM] / since : NAN};
    const fini_trial trial = {learn->encoder,        learn->test, FIN_TEST_FIRST,
                              test_sequences(learn), -1,          learn->sum,
                              learn->rank,           learn->ranks};
    FINI_TRY(fini_learn_room(learn, learn->rows + 1, err));
    FINI_TRY(fini_evaluate(&trial, &row.test, NULL, err));
    fini_learn_row_numbers(&row, learn->row_numbers + learn->rows * FINI_ROW);
    learn->row[learn->rows++] = row;
    learn->count[FINI_SINCE] = 0;
    learn->number[FINI_LOSS_SUM] = learn->number[FINI_NORM_SUM] = 0;
    watch(learn, row.test.loss);
    return FIN_OK;
}
