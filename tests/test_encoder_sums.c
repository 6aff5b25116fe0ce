/* Sums over sequences: the same bits for any number of threads, of processes, and of passes that
 * run at the same time; blocks change them by rounding only. */
#include "test_encoder_help.h"

#include <pthread.h>

typedef struct answer {
    double loss, *gradient;
} answer;

static answer ask(const fin_encoder *o, const sample *a, fin_dtype dtype, int64_t blocks)
{
    answer r = {0, numbers(fin_encoder_parameters(o))};
    fin_pass pass = make_pass(a, dtype);
    pass.blocks = blocks;
    pass.gradient = r.gradient;
    run_pass(o, &a->s, &pass);
    r.loss = pass.loss;
    return r;
}

static bool same(const fin_encoder *o, const answer *a, const answer *b)
{
    size_t bytes = (size_t)fin_encoder_parameters(o) * sizeof(double);
    return a->loss == b->loss && memcmp(a->gradient, b->gradient, bytes) == 0;
}

/* Large enough for several threads and several groups of a block. */
static fin_encoder *large(fin_encoder_shape *shape, sample *a, int attention)
{
    fin_encoder_settings s = small_settings();
    s.width = 16;
    s.attention = attention;
    *shape = small_shape();
    *a = make_sample(shape, 150, 40, 21);
    return make_encoder(&s, shape, 3);
}

static void threads__change_no_bit(void **state)
{
    (void)state;
    fin_encoder_shape shape;
    sample a;
    for (int k = 0; k < 4; k++) {
        fin_encoder *o = large(&shape, &a, k % 2);
        fin_dtype dtype = k / 2 ? FIN_F64 : FIN_F32;
        fin_threads_set(1);
        answer one = ask(o, &a, dtype, 5);
        for (int threads = 2; threads <= 7; threads += threads == 2 ? 1 : 4) {
            fin_threads_set(threads);
            answer more = ask(o, &a, dtype, 5);
            assert_true(same(o, &one, &more));
            free(more.gradient);
        }
        fin_threads_set(0);
        free(one.gradient);
        fin_encoder_destroy(o);
        free_sample(&a);
    }
}

/* In double the sums agree to rounding, for any number of blocks, and so for any cut. */
static void blocks__change_rounding_only(void **state)
{
    (void)state;
    static const int64_t blocks[] = {0, 1, 2, 7, 64};
    fin_encoder_shape shape;
    sample a;
    fin_encoder *o = large(&shape, &a, 0);
    answer one = ask(o, &a, FIN_F64, 8);
    double length = 0;
    for (int64_t i = 0; i < fin_encoder_parameters(o); i++)
        length += one.gradient[i] * one.gradient[i];
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        answer more = ask(o, &a, FIN_F64, blocks[b]);
        assert_true(fabs(more.loss - one.loss) < 1e-13 * fabs(one.loss));
        for (int64_t i = 0; i < fin_encoder_parameters(o); i++)
            assert_true(fabs(more.gradient[i] - one.gradient[i]) < 1e-13 * sqrt(length));
        if (blocks[b] == 0)
            assert_true(same(o, &one, &more)); /* 0: 8 */
        free(more.gradient);
    }
    free(one.gradient);
    fin_encoder_destroy(o);
    free_sample(&a);
}

/* Tens of thousands of tokens in one block, which go to double in several parts. */
static void blocks__may_be_large(void **state)
{
    (void)state;
    fin_encoder_settings s = small_settings();
    fin_encoder_shape shape = small_shape();
    sample a = make_sample(&shape, 1500, 30, 23);
    s.layers = 1;
    fin_encoder *o = make_encoder(&s, &shape, 3);
    double off[2] = {0, 0}, length = 0;
    assert_true(a.tokens > 20000);
    answer exact = ask(o, &a, FIN_F64, 64);
    for (int k = 0; k < 2; k++) {
        answer one = ask(o, &a, k ? FIN_F64 : FIN_F32, 1);
        length = 0;
        for (int64_t i = 0; i < fin_encoder_parameters(o); i++) {
            off[k] += (one.gradient[i] - exact.gradient[i]) * (one.gradient[i] - exact.gradient[i]);
            length += exact.gradient[i] * exact.gradient[i];
        }
        free(one.gradient);
    }
    print_message("float off by %.1e\n", sqrt(off[0] / length));
    assert_true(off[0] < 1e-10 * length && off[1] < 1e-26 * length);
    free(exact.gradient);
    fin_encoder_destroy(o);
    free_sample(&a);
}

/* ---- processes ------------------------------------------------------------------------------- */

/* Processes are threads here. Everybody's blocks come together in `all`, are added as a tree by the
 * last who comes, and everybody takes the sum. */
enum { RANKS_MOST = 6, BLOCKS_MOST = 64 };
static struct {
    pthread_barrier_t barrier;
    double *all; /* (blocks, columns) */
    int ranks;
} meeting;
static _Thread_local int own_rank;

static fin_status sum_of_threads(int64_t blocks, int64_t n, double *parts, double *sum,
                                 fin_error *e)
{
    int64_t least = blocks / meeting.ranks, more = blocks % meeting.ranks;
    int64_t first = own_rank * least + (own_rank < more ? own_rank : more);
    int64_t own = least + (own_rank < more);
    (void)e;
    if (own_rank == 0)
        meeting.all = numbers(blocks * n);
    pthread_barrier_wait(&meeting.barrier);
    memcpy(meeting.all + first * n, parts, (size_t)(own * n) * sizeof(double));
    pthread_barrier_wait(&meeting.barrier);
    if (own_rank == 0)
        for (int64_t h = 1; h < blocks; h *= 2)
            for (int64_t a = 0; a + h < blocks; a += 2 * h)
                for (int64_t i = 0; i < n; i++)
                    meeting.all[a * n + i] += meeting.all[(a + h) * n + i];
    pthread_barrier_wait(&meeting.barrier);
    memcpy(sum, meeting.all, (size_t)n * sizeof(double));
    pthread_barrier_wait(&meeting.barrier);
    if (own_rank == 0)
        free(meeting.all);
    return FIN_OK;
}

typedef struct process {
    const fin_encoder *o;
    const fin_encoder_shape *shape;
    const sample *a;
    int rank;
    int64_t blocks;
    fin_dtype dtype;
    fin_status status;
    answer result;
    int64_t targets;
    double *answers; /* of everybody: each writes its own */
} process;

static void *run_process(void *user)
{
    process *p = user;
    const sample *a = p->a;
    int64_t first, n;
    own_rank = p->rank;
    fin_encoder_share(a->s.n, p->blocks, p->rank, meeting.ranks, &first, &n);
    int64_t row = a->offsets[first], *offsets = malloc((size_t)(n + 1) * sizeof *offsets);
    if (!offsets)
        return NULL;
    for (int64_t i = 0; i <= n; i++)
        offsets[i] = a->offsets[first + i] - row;
    fin_sequences s = {n, offsets, a->data + row * p->shape->inputs, a->hidden + row};
    fin_pass pass = {.dtype = p->dtype,
                     .blocks = p->blocks,
                     .sum = sum_of_threads,
                     .first = first,
                     .total = a->s.n,
                     .gradient = p->result.gradient};
    for (int h = 0; h < (int)p->shape->heads; h++) {
        bool tokens = p->shape->head[h].where == FIN_HEAD_TOKENS;
        pass.targets[h] =
            a->targets[h] + (tokens ? row : first) * fin_head_targets(&p->shape->head[h]);
    }
    pass.answers[0] = p->answers + 2 * row;
    p->status = fin_encoder_pass(p->o, &s, &pass, NULL);
    p->result.loss = pass.loss;
    p->targets = pass.head_targets[0];
    free(offsets);
    return NULL;
}

static void check_processes(const fin_encoder *o, const fin_encoder_shape *shape, const sample *a,
                            int ranks, int64_t blocks, fin_dtype dtype)
{
    process p[RANKS_MOST];
    pthread_t threads[RANKS_MOST];
    answer alone = {0, numbers(fin_encoder_parameters(o))};
    double *answers = numbers(2 * a->tokens), *shared = numbers(2 * a->tokens);
    fin_pass pass = make_pass(a, dtype);
    pass.blocks = blocks;
    pass.gradient = alone.gradient;
    pass.answers[0] = answers;
    run_pass(o, &a->s, &pass);
    alone.loss = pass.loss;
    meeting.ranks = ranks;
    assert_int_equal(pthread_barrier_init(&meeting.barrier, NULL, (unsigned)ranks), 0);
    for (int r = 0; r < ranks; r++) {
        p[r] = (process){o, shape, a, r, blocks, dtype, FIN_ERR_IO, {0, NULL}, 0, shared};
        p[r].result.gradient = numbers(fin_encoder_parameters(o));
        assert_int_equal(pthread_create(&threads[r], NULL, run_process, &p[r]), 0);
    }
    for (int r = 0; r < ranks; r++) {
        pthread_join(threads[r], NULL);
        assert_int_equal(p[r].status, FIN_OK);
        assert_int_equal(p[r].targets, pass.head_targets[0]);
        assert_true(same(o, &alone, &p[r].result));
        free(p[r].result.gradient);
    }
    assert_memory_equal(answers, shared, (size_t)(2 * a->tokens) * sizeof(double));
    pthread_barrier_destroy(&meeting.barrier);
    free(alone.gradient);
    free(answers);
    free(shared);
}

static void processes__change_no_bit(void **state)
{
    (void)state;
    fin_encoder_shape shape;
    sample a;
    fin_encoder *o = large(&shape, &a, 0);
    for (int ranks = 1; ranks <= RANKS_MOST; ranks++) {
        check_processes(o, &shape, &a, ranks, 0, FIN_F32);
        check_processes(o, &shape, &a, ranks, 3, FIN_F64); /* some have nothing */
    }
    fin_encoder_destroy(o);
    free_sample(&a);
}

static void share__is_whole_blocks_that_cover_everything(void **state)
{
    (void)state;
    for (int64_t total = 0; total < 40; total++)
        for (int64_t blocks = 0; blocks < 20; blocks += 3)
            for (int ranks = 1; ranks < 9; ranks++) {
                int64_t next = 0, first, count;
                for (int r = 0; r < ranks; r++) {
                    fin_encoder_share(total, blocks, r, ranks, &first, &count);
                    assert_int_equal(first, next);
                    assert_true(count >= 0);
                    if (blocks == ranks && total >= blocks) /* a block each, as equal as can be */
                        assert_in_range(count, total / ranks, total / ranks + 1);
                    next += count;
                }
                assert_int_equal(next, total);
            }
    int64_t first, count;
    fin_encoder_share(INT64_C(1) << 47, 64, 63, 64, &first, &count);
    assert_int_equal(first + count, INT64_C(1) << 47);
}

/* ---- two passes at the same time ------------------------------------------------------------- */

typedef struct caller {
    const fin_encoder *o;
    const sample *a;
    const answer *expected;
    int wrong;
} caller;

static void *call_often(void *user)
{
    caller *c = user;
    for (int i = 0; i < 20; i++) {
        answer r = {0, malloc((size_t)fin_encoder_parameters(c->o) * sizeof(double))};
        fin_pass pass = make_pass(c->a, i % 2 ? FIN_F64 : FIN_F32);
        pass.gradient = r.gradient;
        if (!r.gradient || fin_encoder_pass(c->o, &c->a->s, &pass, NULL))
            c->wrong = 1;
        r.loss = pass.loss;
        c->wrong |= !same(c->o, &r, &c->expected[i % 2]);
        free(r.gradient);
    }
    return NULL;
}

static void passes__may_run_at_the_same_time(void **state)
{
    (void)state;
    fin_encoder_shape shape = small_shape();
    fin_encoder_settings s = small_settings();
    sample a = make_sample(&shape, 20, 9, 22);
    fin_encoder *o = make_encoder(&s, &shape, 3);
    answer expected[2] = {ask(o, &a, FIN_F32, 0), ask(o, &a, FIN_F64, 0)};
    caller callers[3];
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) {
        callers[i] = (caller){o, &a, expected, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &callers[i]), 0);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(callers[i].wrong, 0);
    }
    free(expected[0].gradient);
    free(expected[1].gradient);
    fin_encoder_destroy(o);
    free_sample(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads__change_no_bit),
        cmocka_unit_test(blocks__change_rounding_only),
        cmocka_unit_test(blocks__may_be_large),
        cmocka_unit_test(processes__change_no_bit),
        cmocka_unit_test(share__is_whole_blocks_that_cover_everything),
        cmocka_unit_test(passes__may_run_at_the_same_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
