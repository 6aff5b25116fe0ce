/* What answers may not depend on and what may fail on the way: threads, memory, cancelling. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>
#include <cmocka.h>

#include "fault.h"
#include "test_context_cross_help.h"

typedef struct answers {
    double mean[600], variance[600], loo[800], error[401], score[401], self[400], evidence,
        gradient[3], by_column[3], after[600];
} answers;

static fin_status everything(const fin_cross_settings *s, const sample *x, answers *a,
                             fin_error *err)
{
    fin_cross *cross;
    double weights[16];
    fin_status status = fin_cross_create(&cross, s, NULL, x->dk, x->dv, x->n + 5, err);
    if (status)
        return status;
    bool cme = s->form == FIN_CROSS_CME;
    status = fin_cross_load(cross, x->n, x->keys, x->values, NULL, err);
    if (!status)
        status = fin_cross_predict(cross, x->m, x->queries, a->mean, a->variance, NULL, NULL, err);
    if (!status && x->n <= 16)
        status = fin_cross_predict(cross, 1, x->queries, a->mean, NULL, weights, NULL, err);
    if (!status)
        status = fin_cross_loo(cross, a->loo, NULL, NULL, err);
    if (!status)
        status =
            fin_cross_prefix(cross, x->m, x->queries, x->answers, a->error, a->score, NULL, err);
    if (!status)
        status = fin_cross_prefix(cross, 0, NULL, NULL, a->self, NULL, NULL, err);
    if (!status && cme)
        status = fin_cross_evidence(
            cross, &a->evidence, s->method == FIN_CROSS_NYSTROM ? NULL : a->gradient,
            s->method == FIN_CROSS_NYSTROM ? NULL : a->by_column, NULL, err);
    if (!status)
        status = fin_cross_append(cross, 5, x->keys, x->values, err);
    if (!status)
        status = fin_cross_drop(cross, 3, err);
    if (!status)
        status = fin_cross_predict(cross, x->m, x->queries, a->after, NULL, NULL, NULL, err);
    fin_cross_destroy(cross);
    return status;
}

typedef struct plan {
    int form, kernel, method;
} plan;
static const plan plans[] = {{FIN_CROSS_CME, FIN_KERNEL_RBF, FIN_CROSS_DUAL},
                             {FIN_CROSS_CME, FIN_KERNEL_POLYNOMIAL, FIN_CROSS_PRIMAL},
                             {FIN_CROSS_CME, FIN_KERNEL_RBF, FIN_CROSS_NYSTROM},
                             {FIN_CROSS_SOFTMAX, FIN_KERNEL_RBF, FIN_CROSS_AUTO},
                             {FIN_CROSS_NW, FIN_KERNEL_MATERN52, FIN_CROSS_AUTO}};
enum { PLANS = sizeof plans / sizeof *plans };

static fin_cross_settings settings_of(int p)
{
    fin_cross_settings s = cross_settings(plans[p].form, plans[p].kernel);
    s.method = plans[p].method;
    s.landmarks = 150;
    s.degree = 6;
    s.scale = 2;
    return s;
}

static void bytes__same_for_any_threads(void **state)
{
    (void)state;
    sample x = sample_make(400, 300, 3, 2, 20);
    for (int p = 0; p < PLANS; p++) {
        fin_cross_settings s = settings_of(p);
        static answers a[3];
        memset(a, 0, sizeof a);
        for (int threads = 1; threads <= 3; threads++) {
            fin_error err;
            fin_threads_set(threads);
            if (everything(&s, &x, &a[threads - 1], &err))
                fail_msg("%s", err.message);
        }
        fin_threads_set(0);
        assert_memory_equal(&a[0], &a[1], sizeof a[0]);
        assert_memory_equal(&a[0], &a[2], sizeof a[0]);
    }
    sample_free(&x);
}

typedef struct command {
    fin_cross_settings s;
    sample x;
    answers a;
} command;

static fin_status run(void *user, fin_error *err)
{
    command *j = user;
    return everything(&j->s, &j->x, &j->a, err);
}

static void memory__every_allocation_fails_once(void **state)
{
    (void)state;
    static command j;
    j.x = sample_make(12, 3, 2, 2, 21);
    for (int p = 0; p < PLANS; p++) {
        j.s = settings_of(p);
        printf("%ld allocations\n", fault_every(run, &j));
        if (p == 0)
            j.s.noise = 0;
        fault_every(run, &j);
    }
    sample_free(&j.x);
}

/* So many tokens that their sums are made in several parts: all of them, or none, so that they may
 * be appended once more after a failure. */
typedef struct stream {
    sample x;
    double mean[3];
    bool known;
} stream;

static fin_status append_many(void *user, fin_error *err)
{
    enum { FIRST = 5 };
    stream *o = user;
    const sample *x = &o->x;
    const double *keys = x->keys + FIRST * x->dk, *values = x->values + FIRST * x->dv;
    double mean[3];
    fin_cross_settings s = cross_settings(FIN_CROSS_CME, FIN_KERNEL_LINEAR);
    fin_cross_info info;
    fin_cross *cross;
    fin_status status = fin_cross_create(&cross, &s, NULL, x->dk, x->dv, x->n, err);
    if (!status)
        status = fin_cross_load(cross, FIRST, x->keys, x->values, NULL, err);
    if (!status) {
        status = fin_cross_append(cross, x->n - FIRST, keys, values, err);
        fin_cross_get_info(cross, &info);
        assert_int_equal(info.tokens, status ? FIRST : x->n);
        if ((!status || !fin_cross_append(cross, x->n - FIRST, keys, values, NULL)) &&
            !fin_cross_predict(cross, x->m, x->queries, mean, NULL, NULL, NULL,
                               status ? NULL : err)) {
            assert_true(!o->known || memcmp(mean, o->mean, sizeof mean) == 0);
            memcpy(o->mean, mean, sizeof mean);
        } else if (!status) {
            status = FIN_ERR_MEMORY;
        }
    }
    fin_cross_destroy(cross);
    return status;
}

static void append__is_all_or_nothing(void **state)
{
    (void)state;
    stream o = {.x = sample_make(140000, 3, 2, 1, 24)};
    assert_int_equal(append_many(&o, NULL), FIN_OK);
    o.known = true;
    printf("%ld allocations\n", fault_every(append_many, &o));
    sample_free(&o.x);
}

/* No tokens yet, queries with answers: the prior's error, and no word from BLAS about it. */
static void prefix__of_nothing_is_quiet(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    int before[2] = {dup(1), dup(2)};
    assert_true(file && before[0] >= 0 && before[1] >= 0);
    for (int kernel = FIN_KERNEL_LINEAR; kernel <= FIN_KERNEL_POLYNOMIAL; kernel++) {
        fin_cross_settings s = cross_settings(FIN_CROSS_CME, kernel);
        s.method = FIN_CROSS_PRIMAL;
        sample x = sample_make(0, 4, 2, 1, 25);
        double error, score, want = 0;
        for (int i = 0; i < 4; i++)
            want += x.answers[i] * x.answers[i] / 4;
        fin_cross *cross = cross_make(&s, &x, 9, 0);
        fflush(stdout);
        dup2(fileno(file), 1);
        dup2(fileno(file), 2);
        fin_status status =
            fin_cross_prefix(cross, 4, x.queries, x.answers, &error, &score, NULL, NULL);
        fflush(stdout);
        dup2(before[0], 1);
        dup2(before[1], 2);
        assert_int_equal(status, FIN_OK);
        assert_close(1, &error, &want, 1e-14);
        fin_cross_destroy(cross);
        sample_free(&x);
    }
    assert_int_equal(lseek(fileno(file), 0, SEEK_END), 0);
    close(before[0]);
    close(before[1]);
    fclose(file);
}

/* What create says it takes, it takes. */
static atomic_long taken;
static void *counting(size_t size)
{
    atomic_fetch_add(&taken, (long)size);
    return malloc(size);
}

static void bytes__are_stated(void **state)
{
    (void)state;
    for (int p = 0; p < PLANS; p++) {
        fin_cross_settings s = settings_of(p);
        double bytes;
        fin_cross *cross;
        fin_cross_info info;
        assert_int_equal(fin_cross_bytes(&s, 4, 2, 777, &bytes, NULL), FIN_OK);
        atomic_store(&taken, 0);
        fin_memory_hooks(counting, free);
        assert_int_equal(fin_cross_create(&cross, &s, NULL, 4, 2, 777, NULL), FIN_OK);
        fin_cross_get_info(cross, &info);
        assert_true(info.bytes == bytes && fabs((double)taken - bytes) < 1000);
        fin_cross_destroy(cross);
        fin_memory_hooks(NULL, NULL);
    }
}

static int stop_at(void *user, const char *what, double done, double total)
{
    (void)what;
    assert_true(done >= 0 && done <= total);
    return --*(int *)user < 0;
}

/* Stopped at every point where it can be: said so, and the context is usable afterwards. */
static void progress__cancels(void **state)
{
    (void)state;
    sample x = sample_make(300, 270, 3, 1, 22);
    for (int p = 0; p < PLANS; p++) {
        fin_cross_settings s = settings_of(p);
        fin_cross *cross = cross_make(&s, &x, 300, 300);
        static double mean[300], variance[300], error[301];
        int stops = 0;
        for (int at = 0;; at++) {
            int left = at;
            fin_progress progress = {stop_at, &left};
            fin_error err;
            fin_status status = fin_cross_load(cross, 300, x.keys, x.values, &progress, &err);
            fin_cross_info info;
            fin_cross_get_info(cross, &info);
            assert_true(info.tokens == (status ? 0 : 300));
            assert_true(!status || status == FIN_ERR_CANCELLED);
            if (status)
                assert_int_equal(fin_cross_load(cross, 300, x.keys, x.values, NULL, NULL), FIN_OK);
            if (!status)
                status =
                    fin_cross_predict(cross, 270, x.queries, mean, variance, NULL, &progress, &err);
            if (!status)
                status = fin_cross_loo(cross, mean, variance, &progress, &err);
            if (!status)
                status = fin_cross_prefix(cross, 270, x.queries, x.answers, error, NULL, &progress,
                                          &err);
            if (!status)
                break;
            assert_int_equal(status, FIN_ERR_CANCELLED);
            stops++;
        }
        assert_true(stops >= 3);
        fin_cross_destroy(cross);
    }
    sample_free(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes__same_for_any_threads),
        cmocka_unit_test(memory__every_allocation_fails_once),
        cmocka_unit_test(append__is_all_or_nothing),
        cmocka_unit_test(prefix__of_nothing_is_quiet),
        cmocka_unit_test(bytes__are_stated),
        cmocka_unit_test(progress__cancels),
    };
    return cmocka_run_group_tests_name("attention_cross_faults", tests, NULL, NULL);
}
