/* The same bits for any number of threads and of processes; tensors out and back, also hostile ones.
 *
 * Processes are pretended by threads: each has its share of the bags and calls fin_fit_create with a
 * sum that waits for the others and adds the blocks of all in the order of fini_sum_alone. */
#include "bags/bags.h"

#include <omp.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "bags_sample.h"

enum { TENSORS = 64 };

static fin_fit_settings settings_of(int model)
{
    fin_fit_settings s;
    fin_settings_defaults(&fin_fit_table, &s, sizeof s);
    s.model = model;
    return s;
}

static int64_t bytes_of(const fin_tensor *t)
{
    int64_t n = t->dtype == FIN_U8 ? 1 : t->dtype == FIN_F32 || t->dtype == FIN_I32 ? 4 : 8;
    for (int i = 0; i < t->ndim; i++)
        n *= t->shape[i];
    return n;
}

static void same_tensors(const fin_fit *a, const fin_fit *b)
{
    fin_tensor x[TENSORS], y[TENSORS];
    int64_t n = fin_fit_tensors(a, x, TENSORS);
    assert_true(n > 5 && n <= TENSORS);
    assert_int_equal(fin_fit_tensors(b, y, TENSORS), n);
    for (int64_t i = 0; i < n; i++) {
        assert_string_equal(x[i].name, y[i].name);
        assert_int_equal(bytes_of(&x[i]), bytes_of(&y[i]));
        if (memcmp(x[i].data, y[i].data, (size_t)bytes_of(&x[i])) != 0)
            fail_msg("the tensor %s differs", x[i].name);
    }
}

/* ---- pretended processes --------------------------------------------------------------------------- */

enum { RANKS = 4 };
static struct {
    int ranks;
    pthread_barrier_t barrier;
    double *parts[RANKS];
    int64_t own[RANKS];
} team;
static _Thread_local int rank;

static fin_status team_sum(int64_t blocks, int64_t n, double *parts, double *sum, fin_error *err)
{
    int64_t least = blocks / team.ranks, more = blocks % team.ranks, at = 0;
    team.parts[rank] = parts;
    team.own[rank] = least + (rank < more);
    double *all = malloc((size_t)(blocks * n + 1) * sizeof *all);
    pthread_barrier_wait(&team.barrier);
    for (int r = 0; r < team.ranks; r++) {
        if (team.own[r])
            memcpy(all + at * n, team.parts[r], (size_t)(team.own[r] * n) * sizeof *all);
        at += team.own[r];
    }
    pthread_barrier_wait(&team.barrier); /* nobody may go on while others still read */
    fin_status status = fini_sum_alone(blocks, n, all, sum, err);
    free(all);
    return status;
}

typedef struct member {
    int rank;
    const bags_sample *s;
    const fin_fit_settings *settings;
    const double *weights;
    int64_t classes;
    fin_fit *fit;
    fin_status status;
    fin_error err;
} member;

static void take_part(member *m)
{
    fin_bags bags = m->s->bags;
    rank = m->rank;
    int before = fini_threads_limit(1);
    fin_bags_share(bags.total, rank, team.ranks, &bags.first, &bags.n);
    bags.offsets += bags.first;
    bags.tokens = m->s->tokens + bags.offsets[0] * bags.d;
    bags.labels += bags.first;
    m->status =
        fin_fit_create(&m->fit, m->settings, m->classes, &bags,
                       m->weights ? m->weights + bags.first : NULL, team_sum, NULL, &m->err);
    fini_threads_limit(before);
}

static void check_ranks(const fin_fit_settings *settings, int64_t classes, const bags_sample *s,
                        const double *weights, const fin_fit *alone)
{
    for (team.ranks = 2; team.ranks <= RANKS; team.ranks *= 2) {
        member m[RANKS];
        pthread_barrier_init(&team.barrier, NULL, (unsigned)team.ranks);
        for (int r = 0; r < team.ranks; r++)
            m[r] = (member){r, s, settings, weights, classes, NULL, FIN_OK, {FIN_OK, ""}};
        omp_set_dynamic(0); /* as many threads as asked for: they wait for each other */
#pragma omp parallel num_threads(team.ranks)
        take_part(&m[omp_get_thread_num()]);
        for (int r = 0; r < team.ranks; r++) {
            if (m[r].status)
                fail_msg("process %d of %d: %s", r, team.ranks, m[r].err.message);
            same_tensors(alone, m[r].fit);
            fin_fit_destroy(m[r].fit);
        }
        pthread_barrier_destroy(&team.barrier);
    }
}

static void check_bits(const fin_fit_settings *settings, int64_t classes, const bags_sample *s,
                       const double *weights)
{
    fin_fit *one = NULL, *many;
    fin_error err = {FIN_OK, ""};
    fin_threads_set(1);
    if (fin_fit_create(&one, settings, classes, &s->bags, weights, NULL, NULL, &err))
        fail_msg("%s", err.message);
    for (int threads = 2; threads <= 8; threads *= 4) {
        fin_threads_set(threads);
        assert_int_equal(
            fin_fit_create(&many, settings, classes, &s->bags, weights, NULL, NULL, &err), FIN_OK);
        same_tensors(one, many);
        fin_fit_destroy(many);
    }
    fin_threads_set(1);
    check_ranks(settings, classes, s, weights, one);
    fin_threads_set(0);
    fin_fit_destroy(one);
}

static void fit__has_the_same_bits_for_threads_and_processes(void **state)
{
    (void)state;
    const int models[] = {FIN_MODEL_SOFTMAX,   FIN_MODEL_ERF,  FIN_MODEL_LINEAR, FIN_MODEL_MIXTURE,
                          FIN_MODEL_EMBEDDING, FIN_MODEL_MEAN, FIN_MODEL_MAX,    FIN_MODEL_ANY};
    double weights[90];
    for (int i = 0; i < 90; i++)
        weights[i] = i % 4 == 1 ? 0 : 1 + i % 2;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++)
        for (int64_t classes = 0; classes <= 2; classes += 2) {
            if (models[m] == FIN_MODEL_ANY && !classes)
                continue;
            bags_sample s = bags_make(90, 3, classes, 3, 0.3, 21);
            fin_fit_settings settings = settings_of(models[m]);
            settings.iterations = 4;
            settings.restarts = 2;
            settings.landmarks = 8;
            settings.basis = models[m] == FIN_MODEL_MIXTURE ? FIN_BASIS_BOTH : FIN_BASIS_LINEAR;
            settings.heads = models[m] == FIN_MODEL_SOFTMAX ? 2 : 1;
            settings.early = models[m] == FIN_MODEL_LINEAR ? 0.2 : 0;
            settings.class_weights = classes > 0;
            check_bits(&settings, classes, &s, m % 2 ? weights : NULL);
            bags_free(&s);
        }
}

/* Enough tokens that threads do share the work, and that nothing is copied beforehand: 36 MB. */
static void fit__has_the_same_bits_for_large_data(void **state)
{
    (void)state;
    bags_sample s = bags_make(2000, 600, 2, 3, 0.3, 22);
    fin_fit_settings settings = settings_of(FIN_MODEL_SOFTMAX);
    fin_fit *one, *many;
    settings.basis = FIN_BASIS_LINEAR;
    settings.calibrate = 1; /* no */
    settings.iterations = 3;
    settings.penalty = 0.1;
    fin_threads_set(1);
    assert_int_equal(fin_fit_create(&one, &settings, 2, &s.bags, NULL, NULL, NULL, NULL), FIN_OK);
    fin_threads_set(8);
    assert_int_equal(fin_fit_create(&many, &settings, 2, &s.bags, NULL, NULL, NULL, NULL), FIN_OK);
    same_tensors(one, many);
    fin_threads_set(0);
    fin_fit_destroy(one);
    fin_fit_destroy(many);
    bags_free(&s);
}

/* ---- out and back ------------------------------------------------------------------------------------- */

static fin_fit *small_fit(bags_sample *s, fin_fit_settings *settings)
{
    fin_fit *fit = NULL;
    *s = bags_make(30, 3, 2, 3, 0.3, 23);
    *settings = settings_of(FIN_MODEL_SOFTMAX);
    settings->basis = FIN_BASIS_BOTH;
    settings->landmarks = 6;
    settings->iterations = 4;
    assert_int_equal(fin_fit_create(&fit, settings, 2, &s->bags, NULL, NULL, NULL, NULL), FIN_OK);
    return fit;
}

static void restore__answers_with_the_same_bits(void **state)
{
    (void)state;
    bags_sample s;
    fin_fit_settings settings;
    fin_fit *fit = small_fit(&s, &settings), *again;
    fin_tensor tensors[TENSORS];
    double P[60], Q[60], a[200], b[200];
    fin_error err;
    int64_t n = fin_fit_tensors(fit, tensors, TENSORS);
    assert_int_equal(fin_fit_tensors(fit, NULL, 0), n);
    if (fin_fit_restore(&again, &settings, tensors, n, &err))
        fail_msg("%s", err.message);
    same_tensors(fit, again);
    fin_fit_predict(fit, &s.bags, P, NULL, NULL, NULL);
    fin_fit_locate(fit, &s.bags, &(fin_locations){.prior = a, .given = NULL}, NULL, NULL);
    fin_fit_destroy(fit);
    fin_fit_predict(again, &s.bags, Q, NULL, NULL, NULL);
    fin_fit_locate(again, &s.bags, &(fin_locations){.prior = b, .given = NULL}, NULL, NULL);
    assert_memory_equal(P, Q, sizeof P);
    assert_memory_equal(a, b, (size_t)s.offsets[30] * sizeof *a);
    fin_fit_destroy(again);
    bags_free(&s);
}

static void rejected(const fin_fit_settings *settings, const fin_tensor *tensors, int64_t n,
                     const char *why)
{
    fin_error err = {FIN_OK, ""};
    fin_fit *fit;
    fin_status status = fin_fit_restore(&fit, settings, tensors, n, &err);
    fin_fit_destroy(fit);
    if (status != FIN_ERR_FORMAT || !err.message[0])
        fail_msg("%s: status %d, '%s'", why, (int)status, err.message);
}

static void accepted(const fin_fit_settings *settings, const fin_tensor *tensors, int64_t n,
                     const char *why)
{
    fin_error err = {FIN_OK, ""};
    fin_fit *fit;
    if (fin_fit_restore(&fit, settings, tensors, n, &err))
        fail_msg("without %s: %s", why, err.message);
    fin_fit_destroy(fit);
}

/* Files of version 0.1 are without these. */
static bool is_new(const char *name)
{
    return !strcmp(name, "choice") || !strcmp(name, "sharpness") || !strcmp(name, "range") ||
           !strcmp(name, "hashes");
}

static void restore__refuses_tensors_that_do_not_fit(void **state)
{
    (void)state;
    bags_sample s;
    fin_fit_settings settings;
    fin_fit *fit = small_fit(&s, &settings);
    fin_tensor good[TENSORS], bad[TENSORS];
    int64_t n = fin_fit_tensors(fit, good, TENSORS);
    for (int64_t i = 0; i < n; i++) {
        memcpy(bad, good, sizeof bad); /* one is missing */
        bad[i] = bad[n - 1];
        if (is_new(good[i].name))
            accepted(&settings, bad, n - 1, good[i].name);
        else
            rejected(&settings, bad, n - 1, good[i].name);
        memcpy(bad, good, sizeof bad);
        bad[i].dtype = good[i].dtype == FIN_F64 ? FIN_F32 : FIN_F64;
        rejected(&settings, bad, n, good[i].name);
        memcpy(bad, good, sizeof bad);
        bad[i].ndim = 3 - good[i].ndim;
        bad[i].shape[1] = 1;
        rejected(&settings, bad, n, good[i].name);
        memcpy(bad, good, sizeof bad);
        bad[i].shape[0] = INT64_C(1) << 60;
        rejected(&settings, bad, n, good[i].name);
        memcpy(bad, good, sizeof bad);
        bad[i].shape[0] = -1;
        rejected(&settings, bad, n, good[i].name);
    }
    rejected(&settings, good, 0, "nothing");
    fin_fit_destroy(fit);
    bags_free(&s);
}

/* Refused; or not looked at, because it is the bandwidth of columns that there are none of. */
static void harmless(const fin_fit_settings *settings, const fin_tensor *tensors, int64_t n,
                     const char *name, const fin_bags *bags, const double *P)
{
    fin_fit *fit;
    double Q[60];
    if (fin_fit_restore(&fit, settings, tensors, n, NULL) == FIN_ERR_FORMAT)
        return;
    assert_string_equal(name, "0.bandwidth");
    fin_fit_predict(fit, bags, Q, NULL, NULL, NULL);
    assert_memory_equal(P, Q, sizeof Q);
    fin_fit_destroy(fit);
}

/* Numbers that are not, and every byte changed: an error, or a model that answers; never a crash. */
static void restore__refuses_numbers_that_are_none(void **state)
{
    (void)state;
    bags_sample s;
    fin_fit_settings settings;
    fin_fit *fit = small_fit(&s, &settings), *again;
    fin_tensor good[TENSORS], bad[TENSORS];
    int64_t n = fin_fit_tensors(fit, good, TENSORS), taken = 0;
    double P[60];
    fin_fit_predict(fit, &s.bags, P, NULL, NULL, NULL);
    for (int64_t i = 0; i < n; i++) {
        size_t size = (size_t)bytes_of(&good[i]);
        unsigned char *copy = malloc(size);
        memcpy(bad, good, sizeof bad);
        bad[i].data = copy;
        for (size_t at = 0; at < size; at += good[i].dtype == FIN_F64 ? 8 : 1) {
            memcpy(copy, good[i].data, size);
            if (good[i].dtype == FIN_F64) {
                double none = NAN;
                memcpy(copy + at, &none, sizeof none);
                harmless(&settings, bad, n, good[i].name, &s.bags, P);
                memcpy(copy, good[i].data, size);
            }
            copy[at] ^= (unsigned char)(0x80 | at);
            if (fin_fit_restore(&again, &settings, bad, n, NULL) == FIN_OK) {
                double Q[60];
                fin_fit_info info;
                fin_fit_get_info(again, &info);
                if (info.classes == 2) /* else Q is too small */
                    fin_fit_predict(again, &s.bags, Q, NULL, NULL, NULL);
                fin_fit_destroy(again);
                taken++;
            }
        }
        free(copy);
    }
    print_message("%lld changed models were models\n", (long long)taken);
    fin_fit_destroy(fit);
    bags_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fit__has_the_same_bits_for_threads_and_processes),
        cmocka_unit_test(fit__has_the_same_bits_for_large_data),
        cmocka_unit_test(restore__answers_with_the_same_bits),
        cmocka_unit_test(restore__refuses_tensors_that_do_not_fit),
        cmocka_unit_test(restore__refuses_numbers_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
