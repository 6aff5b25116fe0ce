/* Draws sequences of a corpus: lengths, one block of memory for everything, and threads.
 *
 * This runs at every step of learning, so the block is kept in the examples and only replaced by a
 * larger one, and work of threads is part of it: a step allocates nothing after the first. */
#include "encoder/corpus.h"

#include <omp.h>
#include <string.h>

#define SEQUENCES_MOST (INT64_C(1) << 31)
#define TOKENS_MOST (INT64_C(1) << 56)

/* What a call makes, and where. */
typedef struct plan {
    const fin_corpus *corpus;
    const uint64_t *number; /* NULL: first, first + 1, ... */
    uint64_t first, epoch;
    int64_t n, L, tokens, rows, longest;
    int flags, threads;
    int64_t work; /* doubles for each thread */
    int64_t *offsets;
    float *columns;
    uint8_t *hidden;
    double *targets, *bayes, *variance, *posterior, *works;
} plan;

static uint64_t number_of(const plan *p, int64_t i)
{
    return p->number ? p->number[i] : p->first + (uint64_t)i;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int64_t product(int64_t a, int64_t b)
{
    int64_t c;
    return __builtin_mul_overflow(a, b, &c) ? -1 : c; /* which no arena takes */
}

static void lay_out(plan *p, fini_arena *arena)
{
    const fin_corpus *c = p->corpus;
    const fin_head *head = &c->shape.head[0];
    bool bayes = (p->flags & FIN_EXAMPLES_BAYES) && c->bayes;
    bool posterior = (p->flags & FIN_EXAMPLES_POSTERIOR) && c->posterior > 0;
    p->offsets = fini_take(arena, p->n + 1, sizeof *p->offsets);
    p->columns = fini_take(arena, product(p->tokens, c->shape.inputs), sizeof *p->columns);
    p->hidden = c->by_token ? fini_take(arena, p->tokens, 1) : NULL;
    p->targets = fini_take(arena, product(p->rows, fin_head_targets(head)), sizeof *p->targets);
    p->bayes =
        bayes ? fini_take(arena, product(p->rows, fin_head_answers(head)), sizeof *p->bayes) : NULL;
    p->variance = bayes && c->variance ? fini_take(arena, p->rows, sizeof *p->variance) : NULL;
    p->posterior =
        posterior ? fini_take(arena, product(p->n, c->posterior), sizeof *p->posterior) : NULL;
    p->works = fini_take(arena, product(p->threads, p->work), sizeof *p->works);
}

/* The examples' block is used again if it is large enough; offsets move into the new one. */
static fin_status take_memory(plan *p, fin_examples *examples, fin_error *err)
{
    fini_arena arena = {0};
    lay_out(p, &arena);
    if (arena.overflow)
        return fini_fail(err, FIN_ERR_MEMORY,
                         "out of memory: the size of %lld sequences of %lld tokens overflows",
                         (long long)p->n, (long long)p->tokens);
    if (arena.used > examples->room || !examples->memory) {
        size_t room = arena.used + arena.used / 8; /* lengths differ a little from call to call */
        fin_examples_close(examples);
        if (!(examples->memory = fini_alloc(room)))
            return fini_fail_memory(err, room, "the sequences of a batch");
        examples->room = room;
    }
    arena = (fini_arena){.base = examples->memory};
    lay_out(p, &arena);
    return FIN_OK;
}

void fin_examples_close(fin_examples *examples)
{
    if (!examples)
        return;
    fini_free(examples->memory);
    *examples = (fin_examples){0};
}

/* ---- sequences ------------------------------------------------------------------------------- */

static fin_status measure(plan *p, fin_error *err)
{
    for (int64_t i = 0; i < p->n; i++) {
        int64_t length;
        FINI_TRY(p->corpus->kind->length(p->corpus, number_of(p, i), p->epoch, p->L, &length, err));
        p->tokens += length;
        p->longest = length > p->longest ? length : p->longest;
        if (p->tokens > TOKENS_MOST)
            return fini_fail(err, FIN_ERR_ARGUMENT,
                             "%lld sequences have more than 2^56 tokens; draw fewer at once",
                             (long long)p->n);
    }
    p->rows = p->corpus->by_token ? p->tokens : p->n;
    return FIN_OK;
}

/* Threads that are worth it, and that have room to work. */
static int threads_for(const plan *p)
{
    double numbers = (double)p->tokens * (double)p->corpus->shape.inputs;
    int threads = numbers < 4000 ? 1 : fin_threads_get();
    while (threads > 1 &&
           (threads > p->n || threads * (double)p->work * sizeof(double) > FINI_CORPUS_WORK_MOST))
        threads--;
    return threads;
}

static fin_status draw_one(const plan *p, int64_t i, double *work, fin_error *err)
{
    const fin_corpus *c = p->corpus;
    const fin_head *head = &c->shape.head[0];
    int64_t at = p->offsets[i], row = c->by_token ? at : i;
    fini_example e = {
        .number = number_of(p, i),
        .epoch = p->epoch,
        .L = p->L,
        .length = p->offsets[i + 1] - at,
        .tokens = p->columns + at * c->shape.inputs,
        .hidden = p->hidden ? p->hidden + at : NULL,
        .targets = p->targets + row * fin_head_targets(head),
        .bayes = p->bayes ? p->bayes + row * fin_head_answers(head) : NULL,
        .variance = p->variance ? p->variance + row : NULL,
        .posterior = p->posterior ? p->posterior + i * c->posterior : NULL,
    };
    return c->kind->draw(c, &e, work, err);
}

static fin_status draw_all(const plan *p, fin_error *err)
{
    fin_status status = FIN_OK;
    int64_t failed = INT64_MAX;
#pragma omp parallel for schedule(dynamic, 4) num_threads(p->threads)
    for (int64_t i = 0; i < p->n; i++) {
        fin_error local;
        fin_status mine = draw_one(p, i, p->works + omp_get_thread_num() * p->work, &local);
        if (mine)
#pragma omp critical(fini_corpus_draw)
            if (i < failed) { /* the first one's reason, whoever came first */
                failed = i;
                status = mine;
                if (err)
                    *err = local;
            }
    }
    return status;
}

static void hand_over(const plan *p, fin_examples *examples)
{
    examples->sequences = (fin_sequences){
        .n = p->n, .offsets = p->offsets, .tokens = p->columns, .hidden = p->hidden};
    examples->rows = p->rows;
    examples->tokens = p->tokens;
    examples->targets = p->targets;
    examples->bayes = p->bayes;
    examples->variance = p->variance;
    examples->z = p->posterior;
    examples->z_size = p->posterior ? p->corpus->posterior : 0;
}

static fin_status make(plan *p, fin_examples *examples, fin_error *err)
{
    if (p->n < 0 || p->n > SEQUENCES_MOST)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "%lld sequences; from 0 to 2^31 can be drawn at once", (long long)p->n);
    if (p->L < -1 || p->L > FIN_L_MAX)
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "L = %lld tokens in sight; it must be from 0 to 2^31, or -1 for that of "
                         "the settings",
                         (long long)p->L);
    if (p->L < 0)
        p->L = p->corpus->settings.L;
    FINI_TRY(measure(p, err));
    p->work = (p->corpus->kind->work(p->corpus, p->L, p->longest, p->flags) + 7) / 8 * 8;
    p->threads = threads_for(p);
    FINI_TRY(take_memory(p, examples, err));
    *examples = (fin_examples){.memory = examples->memory, .room = examples->room};
    p->offsets[0] = 0;
    for (int64_t i = 0, length = 0; i < p->n; i++) {
        p->corpus->kind->length(p->corpus, number_of(p, i), p->epoch, p->L, &length, NULL);
        p->offsets[i + 1] = p->offsets[i] + length;
    }
    FINI_TRY(draw_all(p, err));
    hand_over(p, examples);
    return FIN_OK;
}

fin_status fin_corpus_draw(const fin_corpus *corpus, uint64_t first, int64_t n, int64_t L,
                           uint64_t epoch, int flags, fin_examples *examples, fin_error *err)
{
    FINI_NEED(err, corpus, examples);
    plan p = {.corpus = corpus, .first = first, .n = n, .L = L, .epoch = epoch, .flags = flags};
    return make(&p, examples, err);
}

fin_status fin_corpus_pick(const fin_corpus *corpus, const uint64_t *number, int64_t n, int64_t L,
                           uint64_t epoch, int flags, fin_examples *examples, fin_error *err)
{
    FINI_NEED(err, corpus, !n || number, examples);
    plan p = {.corpus = corpus, .number = number, .n = n, .L = L, .epoch = epoch, .flags = flags};
    return make(&p, examples, err);
}
