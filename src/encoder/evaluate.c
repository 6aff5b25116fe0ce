/* How good an encoder is on sequences that it has not seen, beside the exact Bayes prediction.
 *
 * Sequences are cut into a few blocks, whoever has them; each is drawn and passed through piece by
 * piece, so that memory does not grow with their number, and leaves sums only: these are added over
 * blocks and processes in a fixed tree. With S_i the sum over the n_i targets of sequence i,
 *
 *     mean = sum_i S_i / N,   N = sum_i n_i
 *     se^2 = n/(n - 1) sum_i (S_i - mean n_i)^2 / N^2
 *
 * which is the usual one where all have equally many (the sum over sequences, as targets of one
 * sequence share its latent). */
#include "encoder/encoder.h"
#include "encoder/learn.h"
#include "encoder/probe.h"

#include <math.h>
#include <string.h>

enum { BLOCKS = 8, PIECE = 256 };
#define PIECE_TOKENS 65536.0

/* ---- sums ------------------------------------------------------------------------------------ */

/* Of one quantity: sum of S_i, of S_i^2, of S_i n_i. */
enum { SUM, SQUARE, PRODUCT, MOMENTS };
enum {
    SEQUENCES,
    TARGETS,
    TARGETS_SQUARE,
    LOSS,
    HITS,     /* classes that were right */
    DISTANCE, /* from the Bayes prediction */
    NUMBERS,  /* numbers compared with it, their sums, squares and products */
    MODEL,
    BAYES,
    MODEL_MODEL,
    MODEL_BAYES,
    BAYES_BAYES,
    RISK,
    BAYES_RISK = RISK + MOMENTS,
    EXCESS = BAYES_RISK + MOMENTS,
    SUMS = EXCESS + MOMENTS
};

typedef struct judge {
    const fini_trial *trial;
    int64_t h;
    const fin_head *head;
    fin_examples examples;
    double *answers; /* (room) */
    double *rows;    /* (2, answers): probabilities */
    int64_t room;
} judge;

static void add_moments(double *sums, double S, double n)
{
    sums[SUM] += S;
    sums[SQUARE] += S * S;
    sums[PRODUCT] += S * n;
}

/* Squared error of the numbers of a target, or cross-entropy. p: numbers to compare. */
static double risk_of(const fin_head *head, const double *answer, const double *target, double *p)
{
    if (head->kind == FIN_HEAD_CLASSES) {
        memcpy(p, answer, (size_t)head->size * sizeof *p);
        return fini_softmax_libm(head->size, p, true) - answer[(int64_t)target[0]];
    }
    double sum = 0;
    for (int64_t j = 0; j < head->size; j++) {
        sum += isnan(target[j]) ? 0 : (answer[j] - target[j]) * (answer[j] - target[j]);
        p[j] = answer[j];
    }
    return sum;
}

static bool is_hit(int64_t n, const double *p, double target)
{
    int64_t best = 0;
    for (int64_t j = 1; j < n; j++)
        best = p[j] > p[best] ? j : best;
    return best == (int64_t)target;
}

static void compare(int64_t n, const double *model, const double *bayes, double *sums)
{
    for (int64_t j = 0; j < n; j++) {
        double a = model[j], b = bayes[j];
        sums[DISTANCE] += (a - b) * (a - b);
        sums[NUMBERS]++;
        sums[MODEL] += a;
        sums[BAYES] += b;
        sums[MODEL_MODEL] += a * a;
        sums[MODEL_BAYES] += a * b;
        sums[BAYES_BAYES] += b * b;
    }
}

/* Sequence i of the examples. */
static void judge_one(judge *o, int64_t i, double *sums)
{
    const fin_head *head = o->head;
    const fin_examples *e = &o->examples;
    const int64_t *offsets = e->sequences.offsets;
    bool tokens = head->where == FIN_HEAD_TOKENS;
    int64_t answers = fin_head_answers(head), targets = fin_head_targets(head);
    int64_t from = tokens ? offsets[i] : i, to = tokens ? offsets[i + 1] : i + 1;
    double count = 0, risk = 0, bayes_risk = 0;
    double *p = o->rows, *q = o->rows + answers;
    for (int64_t row = from; row < to; row++) {
        const double *y = e->targets + row * targets, *f = o->answers + row * answers;
        if (!fini_head_asked(head, y))
            continue;
        count++;
        risk += risk_of(head, f, y, p);
        sums[LOSS] += fini_head_loss(head, f, y, NULL);
        if (head->kind == FIN_HEAD_CLASSES)
            sums[HITS] += is_hit(head->size, p, y[0]);
        if (e->bayes) {
            bayes_risk += risk_of(head, e->bayes + row * answers, y, q);
            compare(head->size, p, q, sums);
        }
    }
    sums[SEQUENCES]++;
    sums[TARGETS] += count;
    sums[TARGETS_SQUARE] += count * count;
    add_moments(sums + RISK, risk, count);
    add_moments(sums + BAYES_RISK, bayes_risk, count);
    add_moments(sums + EXCESS, risk - bayes_risk, count);
}

/* ---- blocks ---------------------------------------------------------------------------------- */

/* Room for the answers of these examples. */
static fin_status make_room(judge *o, fin_error *err)
{
    int64_t answers = fin_head_answers(o->head), wanted;
    if (__builtin_mul_overflow(o->examples.rows, answers, &wanted))
        wanted = -1;
    if (wanted >= 0 && wanted <= o->room)
        return FIN_OK;
    fini_free(o->answers);
    o->room = 0;
    FINI_ROOM(err, "answers", o->answers, wanted, 1);
    o->room = wanted;
    return FIN_OK;
}

static fin_status judge_piece(judge *o, uint64_t first, int64_t n, double *sums, fin_error *err)
{
    const fini_trial *t = o->trial;
    int flags = fin_corpus_has_bayes(t->corpus) ? FIN_EXAMPLES_BAYES : 0;
    FINI_TRY(fin_corpus_draw(t->corpus, first, n, t->L, FIN_TEST_FIRST, flags, &o->examples, err));
    FINI_TRY(make_room(o, err));
    fin_pass pass = {.dtype = FIN_F32};
    pass.answers[o->h] = o->answers;
    FINI_TRY(fin_encoder_pass(t->encoder, &o->examples.sequences, &pass, err));
    for (int64_t i = 0; i < n; i++)
        judge_one(o, i, sums);
    return FIN_OK;
}

/* Sequences of a piece: not so many that their tokens need much memory. */
static int64_t piece_of(const fin_corpus *corpus, int64_t L)
{
    int64_t own = fin_corpus_longest(corpus), longest = L > own ? L : own;
    double most = floor(PIECE_TOKENS / (double)(longest < 1 ? 1 : longest));
    return most < 1 ? 1 : most > PIECE ? PIECE : (int64_t)most;
}

static fin_status judge_blocks(judge *o, double *parts, const fin_progress *progress,
                               fin_error *err)
{
    const fini_trial *t = o->trial;
    int64_t from, own, piece = piece_of(t->corpus, t->L), n, sequences = t->sequences;
    int64_t blocks = fini_encoder_blocks(sequences, BLOCKS);
    fin_encoder_share(sequences, BLOCKS, t->rank, t->ranks, &from, &own);
    for (int64_t b = 0, i = 0; b < blocks; b++) {
        int64_t at = fini_block_start(sequences, blocks, b);
        int64_t end = fini_block_start(sequences, blocks, b + 1);
        if (at < from || at >= from + own)
            continue;
        for (; at < end; at += n) {
            if (fini_report(progress, "evaluate", (double)(at - from), (double)own))
                return fini_fail(err, FIN_ERR_CANCELLED, "the evaluation was cancelled");
            n = end - at < piece ? end - at : piece;
            FINI_TRY(judge_piece(o, t->first + (uint64_t)at, n, parts + i * SUMS, err));
        }
        i++;
    }
    fini_report(progress, "evaluate", (double)own, (double)own);
    return FIN_OK;
}

/* ---- results --------------------------------------------------------------------------------- */

static double mean_of(const double *sums, const double *all, double *se)
{
    double n = all[SEQUENCES], N = all[TARGETS], mean = sums[SUM] / N;
    double square = sums[SQUARE] - 2 * mean * sums[PRODUCT] + mean * mean * all[TARGETS_SQUARE];
    *se = n > 1 ? sqrt(fmax(square, 0) * n / (n - 1)) / N : NAN;
    if (isnan(square))
        *se = NAN;
    return mean;
}

/* NaN where the numbers of a side are all the same. Variances below `least` of the mean square
 * are rounding, of the sums and of the encoder's float answers. */
static double correlation_of(const double *s)
{
    const double least = 1e-12;
    double n = s[NUMBERS], a = s[MODEL] / n, b = s[BAYES] / n;
    double aa = s[MODEL_MODEL] / n - a * a, bb = s[BAYES_BAYES] / n - b * b;
    if (!(aa > least * s[MODEL_MODEL] / n && bb > least * s[BAYES_BAYES] / n))
        return NAN;
    return (s[MODEL_BAYES] / n - a * b) / sqrt(aa * bb);
}

static void summarise(const judge *o, const double *s, fin_evaluation *e)
{
    *e = (fin_evaluation){.sequences = (int64_t)s[SEQUENCES], .targets = (int64_t)s[TARGETS]};
    e->risk = mean_of(s + RISK, s, &e->risk_se);
    e->loss = s[LOSS] / s[TARGETS];
    e->accuracy = o->head->kind == FIN_HEAD_CLASSES ? s[HITS] / s[TARGETS] : NAN;
    e->bayes = e->bayes_se = e->excess = e->excess_se = NAN;
    e->quotient = e->distance = e->correlation = NAN;
    if (!fin_corpus_has_bayes(o->trial->corpus))
        return;
    e->bayes = mean_of(s + BAYES_RISK, s, &e->bayes_se);
    e->excess = mean_of(s + EXCESS, s, &e->excess_se);
    e->quotient = e->risk / e->bayes;
    e->distance = s[DISTANCE] / s[TARGETS];
    e->correlation = correlation_of(s);
}

/* ---- calls ----------------------------------------------------------------------------------- */

fin_status fini_evaluate(const fini_trial *t, fin_evaluation *evaluation,
                         const fin_progress *progress, fin_error *err)
{
    judge o = {.trial = t};
    double sums[SUMS], parts[BLOCKS * SUMS] = {0};
    if (t->sequences < 1)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "an evaluation on %lld sequences; at least one is needed",
                         (long long)t->sequences);
    FINI_TRY(fini_learn_head(t->encoder, t->corpus, &o.h, err));
    o.head = &fin_encoder_get_shape(t->encoder)->head[o.h];
    FINI_ROOM(err, "an evaluation", o.rows, fin_head_answers(o.head), 2);
    fin_status status = judge_blocks(&o, parts, progress, err);
    if (!status)
        status = (t->sum ? t->sum : fini_sum_alone)(fini_encoder_blocks(t->sequences, BLOCKS), SUMS,
                                                    parts, sums, err);
    if (!status)
        summarise(&o, sums, evaluation);
    fin_examples_close(&o.examples);
    fini_free_all(o.answers, o.rows);
    return status;
}

fin_status fin_encoder_evaluate(const fin_encoder *encoder, const fin_corpus *corpus,
                                uint64_t first, int64_t sequences, int64_t L,
                                fin_evaluation *evaluation, const fin_progress *progress,
                                fin_error *err)
{
    FINI_NEED(err, encoder, corpus, evaluation);
    const fini_trial trial = {encoder, corpus, first, sequences, L, NULL, 0, 1};
    return fini_evaluate(&trial, evaluation, progress, err);
}
