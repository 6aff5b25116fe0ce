/* Running studies: the store has the same content for any number of threads and shards, after a
 * cancel and after failures; no allocation that fails makes it hang or leak. */
#include "test_data.h"

#include "fault.h"
#include "finetti/study.h"
#include "study/run.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>

static fin_error err;

/* 44 runs: most are closed forms; the block `slow` simulates, some milliseconds each; softmax has no
 * closed form, so that four runs fail. */
static const char text[] = "study: mixed\n"
                           "runs:\n"
                           "  - id: grid\n"
                           "    command: risk\n"
                           "    set: {d: 50, show: 'risk,oracle,linear'}\n"
                           "    axes:\n"
                           "      L: [2, 10, 30]\n"
                           "      lam: {from: 0.01, to: 3, count: 8, spacing: log}\n"
                           "  - id: fails\n"
                           "    command: risk\n"
                           "    set: {method: closed, d: 50}\n"
                           "    axes: {form: [erf, softmax], kappa: [0.1, 0.2, 0.3, 0.4]}\n"
                           "  - id: slow\n"
                           "    command: risk\n"
                           "    set: {form: softmax, method: simulation, d: 50, samples: 4000}\n"
                           "    seeds: 12\n";
enum { RUNS = 44, FAILING = 4 };

/* Few runs, so that every allocation can be refused in turn. */
static const char small[] =
    "study: mixed\nruns:\n"
    "  - command: risk\n    set: {d: 20}\n    axes: {lam: [0.1, 0.2, 0.3]}\n";

static fin_study *parse(const char *yaml)
{
    fin_study *study = NULL;
    assert_ok(fin_study_parse(yaml, strlen(yaml), "test", NULL, &study, &err));
    return study;
}

static fin_store *open_store(const char *name)
{
    fin_store *store = NULL;
    assert_ok(fin_store_open(in_folder(name), FIN_STORE_CREATE, &store, &err));
    return store;
}

static fin_study_settings defaults(int64_t threads)
{
    fin_study_settings settings;
    memset(&settings, 0, sizeof settings);
    fin_settings_defaults(&fin_study_table, &settings, sizeof settings);
    settings.threads = threads;
    return settings;
}

/* What a store exports; the caller frees it. */
static char *export(fin_store *store)
{
    const fin_query query = {.study = "mixed"};
    const char *path = in_folder("export.csv");
    assert_ok(fin_store_export(store, &query, path, 0, &err));
    char *bytes = read_file(path, NULL);
    assert_int_equal(remove(path), 0);
    return bytes;
}

/* The export of an undisturbed pass with one thread. */
static char *reference(void)
{
    static char *bytes;
    if (bytes)
        return bytes;
    fin_study *study = parse(text);
    fin_store *store = open_store("reference.db");
    fin_study_settings settings = defaults(1);
    fin_study_count count;
    assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &count, &err));
    assert_int_equal(count.planned, RUNS);
    assert_int_equal(count.present, 0);
    assert_int_equal(count.done, RUNS);
    assert_int_equal(count.failed, FAILING);
    assert_true(count.seconds > 0);
    bytes = export(store);
    fin_store_close(store);
    fin_study_destroy(study);
    return bytes;
}

static int free_reference(void **state)
{
    free(reference());
    return remove_folder(state);
}

static void assert_same_export(fin_store *store)
{
    char *bytes = export(store);
    assert_string_equal(bytes, reference());
    assert_ok(fin_store_check(store, &err));
    free(bytes);
}

/* ---- threads and shards ------------------------------------------------------------------------ */

static void study_run__same_bytes_for_any_threads(void **state)
{
    (void)state;
    const int64_t threads[] = {2, 5, 100, FIN_AUTO_INT};
    fin_study *study = parse(text);
    for (int i = 0; i < 4; i++) {
        char name[32];
        snprintf(name, sizeof name, "threads-%d.db", i);
        fin_store *store = open_store(name);
        fin_study_settings settings = defaults(threads[i]);
        fin_study_count count;
        assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &count, &err));
        assert_int_equal(count.done, RUNS);
        assert_int_equal(count.failed, FAILING);
        assert_same_export(store);
        fin_store_close(store);
    }
    fin_study_destroy(study);
}

static void study_run__shards_merge_to_the_same_bytes(void **state)
{
    (void)state;
    fin_study *study = parse(text);
    int64_t planned = 0;
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "shard-%d.db", i);
        fin_store *store = open_store(name);
        fin_study_settings settings = defaults(2);
        settings.shard = i;
        settings.shards = 3;
        fin_study_count count;
        assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &count, &err));
        assert_int_equal(count.planned, count.done);
        assert_true(count.done == RUNS / 3 || count.done == RUNS / 3 + 1);
        planned += count.planned;
        fin_store_close(store);
    }
    assert_int_equal(planned, RUNS);
    fin_store *store = open_store("merged.db");
    for (int i = 0; i < 3; i++) {
        char name[32];
        snprintf(name, sizeof name, "shard-%d.db", i);
        fin_merge_count merged;
        assert_ok(fin_store_merge(store, in_folder(name), 0, &merged, &err));
    }
    assert_same_export(store);
    fin_store_close(store);
    fin_study_destroy(study);
}

/* ---- again ------------------------------------------------------------------------------------- */

static void study_run__does_what_is_missing(void **state)
{
    (void)state;
    fin_study *study = parse(text);
    fin_store *store = open_store("store.db");
    fin_study_settings settings = defaults(2);
    fin_study_count count;
    settings.shards = 4;
    assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &count, &err));
    assert_int_equal(count.done, RUNS / 4);
    settings.shards = 1;
    assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &count, &err));
    assert_int_equal(count.planned, RUNS);
    assert_int_equal(count.present, RUNS / 4);
    assert_int_equal(count.done, RUNS - RUNS / 4);
    assert_same_export(store);
    assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &count, &err));
    assert_int_equal(count.present, RUNS);
    assert_int_equal(count.done, 0);
    fin_store_close(store);
    fin_study_destroy(study);
}

static fin_status count_failed(void *user, const fin_run_row *run, fin_error *e)
{
    (void)e;
    assert_int_equal(run->state, FIN_STATE_FAILED);
    assert_true(run->reason && *run->reason);
    ++*(int *)user;
    return FIN_OK;
}

static void study_run__failures_are_kept_and_retried(void **state)
{
    (void)state;
    fin_study *study = parse(text);
    fin_store *store = open_store("store.db");
    fin_study_settings settings = defaults(2);
    fin_study_count count;
    const fini_done broken[2] = {
        {.position = 3, .state = FIN_STATE_FAILED, .reason = "lightning"},
        {.position = RUNS - 1, .state = FIN_STATE_FAILED, .reason = "thunder"},
    };
    unsigned char missing[RUNS];
    assert_ok(fini_store_plan(store, study, false, missing, NULL, NULL, &err));
    assert_ok(fini_study_keep(store, study, broken, 2, &err));
    assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &count, &err));
    assert_int_equal(count.present, 2);
    assert_int_equal(count.done, RUNS - 2);
    assert_int_equal(count.failed, FAILING);
    int failed = 0;
    const fin_query query = {.study = "mixed", .state = FIN_STATE_FAILED};
    assert_ok(fin_store_runs(store, &query, count_failed, &failed, &err));
    assert_int_equal(failed, FAILING + 2);
    settings.retry_failed = 1;
    assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &count, &err));
    assert_int_equal(count.present, RUNS - FAILING - 2);
    assert_int_equal(count.done, FAILING + 2);
    assert_int_equal(count.failed, FAILING);
    assert_same_export(store);
    fin_store_close(store);
    fin_study_destroy(study);
}

/* ---- reports ----------------------------------------------------------------------------------- */

typedef struct witness {
    int calls;
    int64_t done, cancel_at; /* cancel_at: runs that are done; -1: never */
    int cancel_running;      /* cancel when so many runs are under way; 0: never */
    double seconds;
    pthread_t thread;
} witness;

static int look(void *user, const fin_study_news *news)
{
    witness *w = user;
    assert_true(pthread_equal(w->thread, pthread_self()));
    assert_string_equal(news->study, "mixed");
    assert_true(news->done >= w->done && news->done <= news->total);
    assert_true(news->failed <= news->done);
    assert_true(news->running >= 0 && news->running <= 2);
    assert_true(news->seconds >= w->seconds);
    assert_true(news->done ? news->left >= 0 : isnan(news->left));
    w->calls++;
    w->done = news->done;
    w->seconds = news->seconds;
    return (w->cancel_at >= 0 && news->done >= w->cancel_at) ||
           (w->cancel_running && news->running >= w->cancel_running);
}

static void study_run__reports(void **state)
{
    (void)state;
    fin_study *study = parse(text);
    fin_store *store = open_store("store.db");
    fin_study_settings settings = defaults(2);
    witness w = {.cancel_at = -1, .thread = pthread_self()};
    assert_ok(fin_study_run(study, store, &settings, look, &w, NULL, &err));
    assert_true(w.calls >= 2);
    assert_int_equal(w.done, RUNS);
    fin_store_close(store);
    fin_study_destroy(study);
}

static fin_status see_session(void *user, const fin_session_row *row, fin_error *e)
{
    (void)e;
    assert_string_equal(row->study, "mixed");
    assert_int_equal(row->total, RUNS);
    assert_int_equal(row->ended, 1);
    assert_true(row->done < RUNS);
    ++*(int *)user;
    return FIN_OK;
}

/* The first report comes before the first run is kept, so that this stops at once; how far a study
 * gets that is stopped later depends on the machine, and must not matter. */
static void study_run__goes_on_after_a_cancel(void **state)
{
    (void)state;
    fin_study *study = parse(text);
    for (int64_t cancel_at = 0; cancel_at < 3; cancel_at++) {
        char name[32];
        snprintf(name, sizeof name, "cancel-%d.db", (int)cancel_at);
        fin_store *store = open_store(name);
        fin_study_settings settings = defaults(2);
        witness w = {.cancel_at = cancel_at, .thread = pthread_self()};
        fin_study_count first, second;
        int sessions = 0;
        fin_status status = fin_study_run(study, store, &settings, look, &w, &first, &err);
        assert_int_equal(status, first.done < RUNS ? FIN_ERR_CANCELLED : FIN_OK);
        if (cancel_at == 0) {
            assert_int_equal(status, FIN_ERR_CANCELLED);
            assert_message(&err, "cancelled");
            assert_ok(fin_store_sessions(store, see_session, &sessions, &err));
            assert_int_equal(sessions, 1);
        }
        assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &second, &err));
        assert_int_equal(second.present, first.done);
        assert_int_equal(second.present + second.done, RUNS);
        assert_same_export(store);
        fin_store_close(store);
    }
    fin_study_destroy(study);
}

/* A run that would take minutes hears of the cancel. */
static void study_run__cancel_reaches_runs_in_flight(void **state)
{
    (void)state;
    fin_study *study =
        parse("study: mixed\nruns:\n  - command: risk\n"
              "    set: {form: softmax, method: simulation, samples: 4000000000}\n    seeds: 3\n");
    fin_store *store = open_store("store.db");
    fin_study_settings settings = defaults(2);
    witness w = {.cancel_at = -1, .cancel_running = 2, .thread = pthread_self()};
    fin_study_count count;
    assert_int_equal(fin_study_run(study, store, &settings, look, &w, &count, &err),
                     FIN_ERR_CANCELLED);
    assert_int_equal(count.done, 0);
    fin_store_close(store);
    fin_study_destroy(study);
}

/* Planning many runs takes seconds: the first news of it cancels, and nothing is left of it. */
static int cancel_planning(void *user, const fin_study_news *news)
{
    ++*(int *)user;
    assert_int_equal(news->total, 200000);
    assert_int_equal(news->done, 0);
    assert_int_equal(news->running, 0);
    assert_true(isnan(news->left));
    return 1;
}

static void study_run__cancel_reaches_planning(void **state)
{
    (void)state;
    fin_study *study = parse("study: many\nruns:\n  - command: risk\n"
                             "    axes: {lam: {from: 0.1, to: 1, count: 200}}\n    seeds: 2000\n");
    fin_store *store = open_store("store.db");
    fin_study_settings settings = defaults(1);
    fin_study_count count;
    int calls = 0;
    settings.shards = 2;
    assert_int_equal(fin_study_run(study, store, &settings, cancel_planning, &calls, &count, &err),
                     FIN_ERR_CANCELLED);
    assert_message(&err, "planning");
    assert_int_equal(calls, 1);
    assert_int_equal(count.done + count.present, 0);
    fin_query query = {.study = "many"};
    assert_int_equal(fin_store_runs(store, &query, count_failed, &calls, &err), FIN_ERR_ARGUMENT);
    fin_store_close(store);
    fin_study_destroy(study);
}

/* ---- one pass at a time ------------------------------------------------------------------------ */

static const char endless[] =
    "study: mixed\nruns:\n  - command: risk\n"
    "    set: {form: softmax, method: simulation, samples: 4000000000}\n    seeds: 3\n";
static const char another[] = "study: another\nruns:\n  - {command: risk, axes: {L: [2, 3]}}\n";

/* While a pass of `mixed` is under way, a second store on the same file. */
static int second_pass(void *user, const fin_study_news *news)
{
    (void)news;
    fin_study *same = parse(small), *other = parse(another);
    fin_store *store = open_store("store.db");
    fin_study_settings settings = defaults(1);
    fin_gc_count gc;
    assert_int_equal(fin_study_run(same, store, &settings, NULL, NULL, NULL, &err), FIN_ERR_IO);
    assert_message(&err, "another pass of study 'mixed' is running");
    assert_ok(fin_study_run(other, store, &settings, NULL, NULL, NULL, &err));
    assert_ok(fin_store_gc(store, "another", 1, &gc, &err));
    assert_int_equal(gc.runs, 2);
    assert_int_equal(fin_store_gc(store, "another", 0, &gc, &err), FIN_ERR_IO);
    assert_message(&err, "a study is running");
    assert_ok(fin_store_gc(store, "another", 1, &gc, &err));
    assert_int_equal(gc.runs, 2);
    fin_store_close(store);
    fin_study_destroy(same);
    fin_study_destroy(other);
    ++*(int *)user;
    return 1;
}

static void study_run__one_pass_at_a_time(void **state)
{
    (void)state;
    fin_study *study = parse(endless), *next = parse(small);
    fin_store *store = open_store("store.db");
    fin_study_settings settings = defaults(2);
    fin_study_count count;
    fin_gc_count gc;
    int calls = 0;
    assert_int_equal(fin_study_run(study, store, &settings, second_pass, &calls, NULL, &err),
                     FIN_ERR_CANCELLED);
    assert_int_equal(calls, 1);
    assert_ok(fin_study_run(next, store, &settings, NULL, NULL, &count, &err));
    assert_int_equal(count.done, 3);
    assert_ok(fin_store_gc(store, "another", 0, &gc, &err));
    assert_int_equal(gc.runs, 2);
    fin_store_close(store);
    fin_study_destroy(study);
    fin_study_destroy(next);
}

static int tell_and_wait(void *user, const fin_study_news *news)
{
    (void)news;
    if (write(*(int *)user, "x", 1) == 1)
        for (;;)
            pause();
    return 1;
}

/* The lock is another process's, and goes with it. */
static void study_run__a_killed_pass_locks_nothing(void **state)
{
    (void)state;
    int ends[2];
    char byte;
    fin_store_close(open_store("store.db"));
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        alarm(60); /* should the parent fail */
        fin_study *study = parse(small);
        fin_store *store = open_store("store.db");
        fin_study_run(study, store, NULL, tell_and_wait, &ends[1], NULL, NULL);
        _exit(1);
    }
    close(ends[1]);
    fin_study *study = parse(small);
    fin_store *store = open_store("store.db");
    fin_study_settings settings = defaults(1);
    assert_int_equal(read(ends[0], &byte, 1), 1);
    assert_int_equal(fin_study_run(study, store, &settings, NULL, NULL, NULL, &err), FIN_ERR_IO);
    assert_message(&err, "another pass");
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_ok(fin_study_run(study, store, &settings, NULL, NULL, NULL, &err));
    close(ends[0]);
    fin_store_close(store);
    fin_study_destroy(study);
}

static int remove_study(void *user, const fin_study_news *news)
{
    (void)user;
    sqlite3 *db;
    if (news->done)
        return 0;
    assert_int_equal(sqlite3_open(in_folder("store.db"), &db), SQLITE_OK);
    assert_int_equal(sqlite3_busy_timeout(db, 10000), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, "DELETE FROM studies", NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
    return 0;
}

static void study_run__a_study_that_vanishes_is_trouble(void **state)
{
    (void)state;
    fin_study *study = parse(small);
    fin_store *store = open_store("store.db");
    fin_study_settings settings = defaults(1);
    assert_int_equal(fin_study_run(study, store, &settings, remove_study, NULL, NULL, &err),
                     FIN_ERR_IO);
    assert_message(&err, "no longer in the store");
    fin_store_close(store);
    fin_study_destroy(study);
}

/* ---- what does not fit together ---------------------------------------------------------------- */

static fin_status see_misfit(void *user, const fin_run_row *run, fin_error *e)
{
    (void)e;
    assert_non_null(strstr(run->reason, "lengths takes the place of L"));
    assert_non_null(strstr(run->settings, "\"lengths\":\"5:0.5,10:0.5\""));
    ++*(int *)user;
    return FIN_OK;
}

static void study_run__misfits_fail_alone(void **state)
{
    (void)state;
    fin_study *study = parse("study: mixed\nruns:\n  - command: risk\n    set: {d: 20}\n"
                             "    axes: {L: [10, 20], lengths: ['', '5:0.5,10:0.5']}\n");
    fin_store *store = open_store("store.db");
    fin_study_settings settings = defaults(2);
    fin_study_count count;
    int failed = 0;
    assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &count, &err));
    assert_int_equal(count.done, 4);
    assert_int_equal(count.failed, 2); /* L = 10 is given too, though it is the default */
    const fin_query query = {.study = "mixed", .state = FIN_STATE_FAILED};
    assert_ok(fin_store_runs(store, &query, see_misfit, &failed, &err));
    assert_int_equal(failed, 2);
    assert_ok(fin_study_run(study, store, &settings, NULL, NULL, &count, &err));
    assert_int_equal(count.present, 4);
    fin_store_close(store);
    fin_study_destroy(study);
}

/* ---- refusals ---------------------------------------------------------------------------------- */

static void study_run__refuses(void **state)
{
    (void)state;
    fin_study *study = parse(text);
    fin_store *store = open_store("store.db");
    fin_study_settings settings = defaults(1);
    assert_int_equal(fin_study_run(NULL, store, NULL, NULL, NULL, NULL, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_study_run(study, NULL, NULL, NULL, NULL, NULL, &err), FIN_ERR_ARGUMENT);
    assert_message(&err, "no store");
    settings.shard = settings.shards = 2;
    assert_int_equal(fin_study_run(study, store, &settings, NULL, NULL, NULL, &err),
                     FIN_ERR_ARGUMENT);
    assert_message(&err, "shard 2 of 2");
    settings = defaults(0);
    assert_int_equal(fin_study_run(study, store, &settings, NULL, NULL, NULL, NULL),
                     FIN_ERR_ARGUMENT);
    fin_store_close(store);
    fin_study_destroy(study);
}

/* ---- memory ------------------------------------------------------------------------------------ */

static fin_status small_run(const char *name, fin_error *e, fin_study_count *count)
{
    fin_study *study = NULL;
    fin_store *store = NULL;
    fin_study_settings settings = defaults(2);
    fin_status status = fin_study_parse(small, strlen(small), "test", NULL, &study, e);
    if (!status)
        status = fin_store_open(in_folder(name), FIN_STORE_CREATE, &store, e);
    if (!status)
        status = fin_study_run(study, store, &settings, NULL, NULL, count, e);
    fin_store_close(store);
    fin_study_destroy(study);
    return status;
}

/* A refusal within a run makes that run fail; anywhere else, the call. */
static void study_run__survives_failing_allocations(void **state)
{
    (void)state;
    long refused = 1, errors = 0, failures = 0;
    for (long k = 0; refused; k++) {
        for (int stays = 0; stays <= 1; stays++) {
            fin_error e = {FIN_OK, ""};
            fin_study_count count = {0};
            list_folder(1);
            fault_begin(k, stays);
            fin_status status = small_run("store.db", &e, &count);
            fault_end();
            refused = atomic_load(&fault_failed);
            if (status && (status != FIN_ERR_MEMORY || !e.message[0]))
                fail_msg("allocation %ld: status '%s': %s", k, fin_status_name(status), e.message);
            if (!status && count.done != 3)
                fail_msg("allocation %ld: %d runs", k, (int)count.done);
            assert_int_equal(atomic_load(&fault_live), 0);
            if (!refused)
                assert_int_equal(count.failed, 0);
            errors += status != FIN_OK;
            failures += !status && count.failed;
        }
        assert_true(k < 100000);
    }
    print_message("%ld errors, %ld with failed runs\n", errors, failures);
    assert_true(errors > 0);
    assert_true(failures > 0);
}

/* ---- sums in a fixed order, alone ---------------------------------------------------------------- */

/* The definition: a node is the sum of its halves, cut at a power of two. */
static double tree(const double *x, int64_t first, int64_t size, int64_t blocks)
{
    if (size == 1)
        return x[first];
    double left = tree(x, first, size / 2, blocks);
    return first + size / 2 < blocks ? left + tree(x, first + size / 2, size / 2, blocks) : left;
}

static void ranks_sum__is_a_tree(void **state)
{
    (void)state;
    enum { MOST = 70, N = 3 };
    for (int64_t blocks = 0; blocks <= MOST; blocks++) {
        double parts[MOST * N], column[MOST], sum[N] = {7, 7, 7};
        int64_t first, count, size = 1;
        fin_ranks_share(blocks, &first, &count);
        assert_int_equal(first, 0);
        assert_int_equal(count, blocks);
        while (size < blocks)
            size *= 2;
        for (int64_t i = 0; i < blocks * N; i++)
            parts[i] = sin((double)i * 1.7) * exp(10 * cos((double)i * 0.3));
        double expected[N] = {0};
        for (int j = 0; blocks && j < N; j++) {
            for (int64_t i = 0; i < blocks; i++)
                column[i] = parts[i * N + j];
            expected[j] = tree(column, 0, size, blocks);
        }
        assert_ok(fin_ranks_sum(blocks, N, parts, sum, &err));
        assert_memory_equal(sum, expected, sizeof sum);
    }
    assert_int_equal(fin_ranks_sum(-1, 1, NULL, NULL, &err), FIN_ERR_ARGUMENT);
    assert_int_equal(fin_ranks_sum(1, -1, NULL, NULL, &err), FIN_ERR_ARGUMENT);
}

static void ranks__alone_is_rank_0_of_1(void **state)
{
    (void)state;
    fin_study *study = parse(small), *same = study;
    assert_ok(fin_ranks_start(NULL, &err));
    assert_int_equal(fin_rank(), 0);
    assert_int_equal(fin_ranks(), 1);
    assert_ok(fin_study_share(&same, &err));
    assert_ptr_equal(same, study);
    fin_ranks_end();
    fin_study_destroy(study);
}

static void ranks__wrong_calls_are_refused(void **state)
{
    (void)state;
    const fin_ranks_calls wrong[] = {{.version = FIN_RANKS_VERSION + 1, .ranks = 2},
                                     {.version = FIN_RANKS_VERSION},
                                     {.version = FIN_RANKS_VERSION, .rank = -1, .ranks = 2},
                                     {.version = FIN_RANKS_VERSION, .rank = 2, .ranks = 2}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(fin_ranks_start(&wrong[i], &err), FIN_ERR_ARGUMENT);
        assert_int_equal(fin_ranks(), 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks__alone_is_rank_0_of_1),
        cmocka_unit_test(ranks__wrong_calls_are_refused),
        cmocka_unit_test(ranks_sum__is_a_tree),
        cmocka_unit_test(study_run__same_bytes_for_any_threads),
        cmocka_unit_test_setup(study_run__shards_merge_to_the_same_bytes, empty_folder),
        cmocka_unit_test_setup(study_run__does_what_is_missing, empty_folder),
        cmocka_unit_test_setup(study_run__failures_are_kept_and_retried, empty_folder),
        cmocka_unit_test_setup(study_run__reports, empty_folder),
        cmocka_unit_test_setup(study_run__goes_on_after_a_cancel, empty_folder),
        cmocka_unit_test_setup(study_run__cancel_reaches_runs_in_flight, empty_folder),
        cmocka_unit_test_setup(study_run__cancel_reaches_planning, empty_folder),
        cmocka_unit_test_setup(study_run__one_pass_at_a_time, empty_folder),
        cmocka_unit_test_setup(study_run__a_killed_pass_locks_nothing, empty_folder),
        cmocka_unit_test_setup(study_run__a_study_that_vanishes_is_trouble, empty_folder),
        cmocka_unit_test_setup(study_run__misfits_fail_alone, empty_folder),
        cmocka_unit_test_setup(study_run__refuses, empty_folder),
        cmocka_unit_test_setup(study_run__survives_failing_allocations, empty_folder),
    };
    return cmocka_run_group_tests(tests, make_folder, free_reference);
}
