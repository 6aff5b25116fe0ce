/* Several threads at once in and around studies: workers, writers and readers of one store, files,
 * an encoder that several threads ask. The same numbers as with one thread, and no race that
 * ThreadSanitizer sees. */
#include "test_data.h"

#include "races.h"

#include "finetti/study.h"
#include "study/run.h"
#include "store/store.h"
#include "test_encoder_help.h"

static fin_error err;

enum { CALLERS = 4 };

/* ---- what is made once ------------------------------------------------------------------------- */

typedef struct shipped {
    int count[CALLERS];
    const char *name[CALLERS];
} shipped;

static void look_up(void *user, int me)
{
    shipped *s = user;
    s->name[me] = fin_shipped_name(0);
    s->count[me] = fin_shipped_count();
}

/* The first test: nothing has been used yet. */
static void first__use_by_several_threads(void **state)
{
    (void)state;
    shipped s;
    races_run(CALLERS, look_up, &s);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(s.count[i], s.count[0]);
        assert_true(s.count[i] > 0 && s.name[i] && *s.name[i]);
    }
}

/* ---- studies ----------------------------------------------------------------------------------- */

enum { RUNS = 120, FAILING = 2, MANY = 1500 };

/* Closed forms; softmax has none, so that two runs fail; four simulate. */
static const char runs[] =
    "runs:\n"
    "  - {id: grid, command: risk, axes: {L: [2, 10], lam: {from: 0.1, to: 3, count: 57}}}\n"
    "  - {id: fails, command: risk, set: {method: closed, form: softmax}, axes: {L: [2, 3]}}\n"
    "  - {id: slow, command: risk, set: {form: softmax, method: simulation, d: 50, samples: 500}, "
    "seeds: 4}\n";
static const char many[] =
    "study: many\nruns:\n"
    "  - {command: risk, set: {d: 20}, axes: {lam: {from: 0.1, to: 1, count: 1500}}}\n";

typedef struct yaml {
    char text[sizeof runs + 40];
} yaml;

static yaml study_of(const char *name)
{
    yaml y;
    snprintf(y.text, sizeof y.text, "study: %.20s\n%s", name, runs);
    return y;
}

static fin_study *parse(const char *text)
{
    fin_study *study = NULL;
    assert_ok(fin_study_parse(text, strlen(text), "test", NULL, &study, &err));
    return study;
}

static fin_store *open_store(const char *path)
{
    fin_store *store = NULL;
    assert_ok(fin_store_open(path, FIN_STORE_CREATE, &store, &err));
    return store;
}

static fin_study_settings with_threads(int64_t threads)
{
    fin_study_settings settings;
    memset(&settings, 0, sizeof settings);
    fin_settings_defaults(&fin_study_table, &settings, sizeof settings);
    settings.threads = threads;
    return settings;
}

/* What the store has of a study; the caller frees it. */
static char *export(fin_store *store, const char *name)
{
    const fin_query query = {.study = name};
    const char *path = in_folder("export.csv");
    assert_ok(fin_store_export(store, &query, path, 0, &err));
    char *bytes = read_file(path, NULL);
    assert_int_equal(remove(path), 0);
    return bytes;
}

/* The same of an undisturbed pass with one thread. */
static char *reference(const char *name)
{
    fin_study *study = parse(study_of(name).text);
    fin_store *store = open_store(in_folder(name));
    fin_study_settings settings = with_threads(1);
    fin_study_count count;
    assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &count, &err));
    assert_int_equal(count.done, RUNS);
    assert_int_equal(count.failed, FAILING);
    char *bytes = export(store, name);
    fin_store_close(store);
    fin_study_destroy(study);
    assert_int_equal(remove(in_folder(name)), 0);
    return bytes;
}

static void assert_same(fin_store *store, const char *name)
{
    char *expected = reference(name), *bytes = export(store, name);
    assert_string_equal(bytes, expected);
    free(bytes);
    free(expected);
}

/* More runs than the queue holds, added in pieces, drained slowly: each comes back once. */
static void workers__give_every_run_once(void **state)
{
    (void)state;
    fin_study *study = parse(many);
    assert_int_equal(fin_study_run_count(study), MANY);
    fini_pool *pool = NULL;
    static int64_t positions[MANY];
    static int seen[MANY];
    static fini_done done[100];
    int64_t taken[10], back = 0;
    memset(seen, 0, sizeof seen);
    for (int64_t i = 0; i < MANY; i++)
        positions[i] = i;
    assert_ok(fini_pool_create(study, CALLERS, 1, MANY, &pool, &err));
    fini_pool_add(pool, positions, 10);
    fini_pool_add(pool, positions + 10, MANY - 10);
    for (int64_t i = fini_pool_take(pool, 10, MANY, taken); i > 0; i--)
        seen[taken[i - 1]]++, back++;
    fini_pool_close(pool);
    for (int i = 0; i < 200 && fini_pool_now(pool).ready < 1000; i++)
        races_rest();
    while (!fini_pool_now(pool).finished) {
        fini_pool_wait(pool, 0.1);
        for (int i = fini_pool_drain(pool, done, 100); i > 0; i--) {
            back += done[i - 1].state == FIN_STATE_DONE;
            seen[done[i - 1].position]++;
            fin_result_destroy(done[i - 1].result);
        }
    }
    fini_pool_destroy(pool);
    assert_int_equal(back, MANY);
    for (int64_t i = 0; i < MANY; i++)
        assert_int_equal(seen[i], 1);
    fin_study_destroy(study);
}

/* Threads that wait for room in the queue are woken, and what they have is freed. */
static void workers__stop_with_a_full_queue(void **state)
{
    (void)state;
    fin_study *study = parse(many);
    fini_pool *pool = NULL;
    static int64_t positions[MANY];
    for (int64_t i = 0; i < MANY; i++)
        positions[i] = i;
    assert_ok(fini_pool_create(study, CALLERS, 1, MANY, &pool, &err));
    fini_pool_add(pool, positions, MANY);
    while (fini_pool_now(pool).ready < 1024)
        races_rest();
    fini_pool_destroy(pool);
    fin_study_destroy(study);
}

static int hear(void *user, const fin_study_news *news)
{
    (void)news;
    return races_report(user);
}

static void study__goes_on_after_another_thread_cancels(void **state)
{
    (void)state;
    fin_study *study = parse(study_of("one").text);
    fin_store *store = open_store(in_folder("store.db"));
    fin_study_settings settings = with_threads(CALLERS);
    races_cancel c = {.at = 1};
    fin_study_count first, second;
    races_cancel_begin(&c);
    fin_status status = fin_study_run(study, store, &settings, hear, &c, &first, &err);
    assert_true(races_cancel_end(&c));
    assert_int_equal(status, first.done < RUNS ? FIN_ERR_CANCELLED : FIN_OK);
    assert_int_equal(c.after, 0);
    assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &second, &err));
    assert_int_equal(second.present, first.done);
    assert_int_equal(first.done + second.done, RUNS);
    assert_same(store, "one");
    assert_ok(fin_store_check(store, &err));
    fin_store_close(store);
    fin_study_destroy(study);
}

typedef struct flight {
    atomic_int running, stop;
} flight;

static int note_running(void *user, const fin_study_news *news)
{
    flight *f = user;
    atomic_store(&f->running, (int)news->running);
    return atomic_load(&f->stop);
}

static void *stop_in_flight(void *user)
{
    flight *f = user;
    while (atomic_load(&f->running) < CALLERS)
        races_rest();
    atomic_store(&f->stop, 1);
    return NULL;
}

/* Runs that would take minutes. */
static void study__cancel_reaches_runs_in_flight(void **state)
{
    (void)state;
    fin_study *study =
        parse("study: long\nruns:\n  - command: risk\n"
              "    set: {form: softmax, method: simulation, samples: 4000000000}\n    seeds: 5\n");
    fin_store *store = open_store(in_folder("store.db"));
    fin_study_settings settings = with_threads(CALLERS);
    fin_study_count count;
    flight f = {0, 0};
    pthread_t other;
    assert_int_equal(pthread_create(&other, NULL, stop_in_flight, &f), 0);
    fin_status status = fin_study_run(study, store, &settings, note_running, &f, &count, &err);
    atomic_store(&f.running, CALLERS);
    pthread_join(other, NULL);
    assert_int_equal(status, FIN_ERR_CANCELLED);
    assert_int_equal(count.done, 0);
    fin_store_close(store);
    fin_study_destroy(study);
}

/* ---- one store, several threads ----------------------------------------------------------------- */

static const char *const names[] = {"one", "two"};

typedef struct sharing {
    char path[1024];
    fin_status status[CALLERS];
    fin_error error[CALLERS];
    fin_study_count count[CALLERS];
    atomic_int writing;
    int64_t reads, backwards, most; /* of the reader */
} sharing;

static void write_study(sharing *s, int me)
{
    const yaml y = study_of(names[me]);
    fin_study *study = NULL;
    fin_store *store = NULL;
    fin_study_settings settings = with_threads(2);
    fin_error *e = &s->error[me];
    fin_status status = fin_study_parse(y.text, strlen(y.text), "test", NULL, &study, e);
    if (!status)
        status = fin_store_open(s->path, FIN_STORE_CREATE, &store, e);
    if (!status)
        status = fin_study_run(study, store, &settings, NULL, NULL, &s->count[me], e);
    fin_store_close(store);
    fin_study_destroy(study);
    s->status[me] = status;
    atomic_fetch_sub(&s->writing, 1);
}

static fin_status add_done(void *user, const fin_study_row *study, fin_error *e)
{
    (void)e;
    *(int64_t *)user += study->done + study->failed;
    return FIN_OK;
}

static void read_studies(sharing *s, int me)
{
    fin_status status = FIN_OK;
    while (!status && atomic_load(&s->writing) > 0) {
        fin_store *store = NULL;
        int64_t done = 0;
        status = fin_store_open(s->path, FIN_STORE_READ, &store, &s->error[me]);
        if (!status)
            status = fin_store_studies(store, add_done, &done, &s->error[me]);
        fin_store_close(store);
        s->reads++;
        s->backwards += done < s->most;
        s->most = done > s->most ? done : s->most;
    }
    s->status[me] = status;
}

static void share(void *user, int me)
{
    if (me < 2)
        write_study(user, me);
    else
        read_studies(user, me);
}

/* Two studies of the same runs are written while a third thread reads. */
static void store__two_writers_and_a_reader(void **state)
{
    (void)state;
    static sharing s;
    memset(&s, 0, sizeof s);
    snprintf(s.path, sizeof s.path, "%s", in_folder("store.db"));
    fin_store *store = open_store(s.path);
    fin_store_close(store);
    atomic_store(&s.writing, 2);
    races_run(3, share, &s);
    for (int i = 0; i < 3; i++)
        if (s.status[i])
            fail_msg("thread %d: %s", i, s.error[i].message);
    assert_true(s.reads > 0);
    assert_int_equal(s.backwards, 0);
    store = open_store(s.path);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(s.count[i].present + s.count[i].done, RUNS);
        assert_same(store, names[i]);
    }
    assert_ok(fin_store_check(store, &err));
    fin_store_close(store);
}

typedef struct locking {
    char path[1024];
    atomic_int inside, taken, refused, wrong;
} locking;

static void open_and_lock(void *user, int me)
{
    locking *l = user;
    (void)me;
    for (int i = 0; i < 10; i++) {
        fin_store *store = NULL;
        fin_error e = {FIN_OK, ""};
        if (fin_store_open(l->path, FIN_STORE_WRITE, &store, &e)) {
            atomic_fetch_add(&l->wrong, 1);
            continue;
        }
        fin_status status = fini_store_lock(store, "one", &e);
        if (!status) {
            atomic_fetch_add(&l->wrong, atomic_fetch_add(&l->inside, 1) != 0);
            races_rest();
            atomic_fetch_sub(&l->inside, 1);
            if (i % 2)
                fini_store_unlock(store);
        }
        atomic_fetch_add(status ? &l->refused : &l->taken, 1);
        fin_store_close(store);
    }
}

/* One at a time holds it, whoever opens and closes the file meanwhile. */
static void store__lock_is_for_one(void **state)
{
    (void)state;
    static locking l;
    snprintf(l.path, sizeof l.path, "%s", in_folder("store.db"));
    fin_store_close(open_store(l.path));
    races_run(CALLERS, open_and_lock, &l);
    assert_int_equal(atomic_load(&l.wrong), 0);
    assert_int_equal(atomic_load(&l.taken) + atomic_load(&l.refused), 10 * CALLERS);
    assert_true(atomic_load(&l.taken) > 0);
    fin_store *store = open_store(l.path);
    assert_ok(fini_store_lock(store, "one", &err));
    fin_store_close(store);
}

/* ---- files -------------------------------------------------------------------------------------- */

typedef struct writing {
    char path[1024];
    fin_status status[CALLERS];
} writing;

static void write_npz(void *user, int me)
{
    writing *w = user;
    fin_status status = FIN_OK;
    for (int i = 0; i < 5 && !status; i++) {
        fin_npz_writer *writer = NULL;
        const double x[2] = {me, me};
        status = fin_npz_create(w->path, &writer, NULL);
        if (!status)
            status = fin_npz_add(writer, "x", FIN_F64, 1, (int64_t[]){2}, x, NULL);
        if (!status)
            status = fin_npz_commit(writer, NULL, NULL);
    }
    w->status[me] = status;
}

/* The last one wins, whole; nothing else is left. */
static void file__written_by_several_threads(void **state)
{
    (void)state;
    static writing w;
    snprintf(w.path, sizeof w.path, "%s", in_folder("x.npz"));
    races_run(CALLERS, write_npz, &w);
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(w.status[i], FIN_OK);
    assert_int_equal(list_folder(0), 1);
    fin_npz_close(open_npz(w.path));
}

/* ---- an encoder --------------------------------------------------------------------------------- */

enum { SEQUENCES = 30 };

typedef struct asking {
    const fin_encoder *encoder;
    const sample *sample;
    double *gradient[CALLERS];
    double loss[CALLERS];
    fin_status status[CALLERS];
} asking;

/* Fewer sequences each time: the memory of the last pass is too small, large enough, too large. */
static void ask(void *user, int me)
{
    asking *a = user;
    for (int i = 0; i < 6; i++) {
        fin_sequences some = a->sample->s;
        fin_pass pass = make_pass(a->sample, FIN_F32);
        some.n = i < 5 ? 1 + (SEQUENCES * (i + me)) / 9 : SEQUENCES;
        pass.gradient = a->gradient[me];
        a->status[me] = fin_encoder_pass(a->encoder, &some, &pass, NULL);
        a->loss[me] = pass.loss;
        if (a->status[me])
            return;
    }
}

static void encoder__answers_several_threads(void **state)
{
    (void)state;
    fin_encoder_settings settings = small_settings();
    fin_encoder_shape shape = small_shape();
    fin_encoder *encoder = make_encoder(&settings, &shape, 3);
    sample s = make_sample(&shape, SEQUENCES, settings.longest, 4);
    asking a = {.encoder = encoder, .sample = &s};
    int64_t n = fin_encoder_parameters(encoder);
    for (int i = 0; i < CALLERS; i++)
        a.gradient[i] = numbers(n);
    fin_threads_set(1);
    ask(&a, 0);
    double loss = a.loss[0], *gradient = a.gradient[0];
    a.gradient[0] = numbers(n);
    fin_threads_set(2);
    races_run(CALLERS, ask, &a);
    fin_threads_set(0);
    for (int i = 0; i < CALLERS; i++) {
        assert_int_equal(a.status[i], FIN_OK);
        assert_true(a.loss[i] == loss);
        assert_memory_equal(a.gradient[i], gradient, (size_t)n * sizeof *gradient);
        free(a.gradient[i]);
    }
    free(gradient);
    free_sample(&s);
    fin_encoder_destroy(encoder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first__use_by_several_threads),
        cmocka_unit_test(workers__give_every_run_once),
        cmocka_unit_test(workers__stop_with_a_full_queue),
        cmocka_unit_test_setup(study__goes_on_after_another_thread_cancels, empty_folder),
        cmocka_unit_test_setup(study__cancel_reaches_runs_in_flight, empty_folder),
        cmocka_unit_test_setup(store__two_writers_and_a_reader, empty_folder),
        cmocka_unit_test_setup(store__lock_is_for_one, empty_folder),
        cmocka_unit_test_setup(file__written_by_several_threads, empty_folder),
        cmocka_unit_test(encoder__answers_several_threads),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
