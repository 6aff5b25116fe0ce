/* What the tests of commands share: running "command name=value ..." and looking at what it left. A
 * header with static functions, so that a test needs nothing but to include it. */
#ifndef TEST_STUDY_JOB_H
#define TEST_STUDY_JOB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fault.h"
#include "store/done.h"

#include <math.h>
#include <string.h>

static fin_error err;

/* Settings from "name=value name=value". The memory is malloc's, so that faults do not see it. */
static inline fin_status apply(const char *text, const fin_command **command, void **values,
                               fin_error *error)
{
    static _Thread_local char copy[2048];
    fin_pair pairs[64];
    int count = 0, bad;
    snprintf(copy, sizeof copy, "%s", text);
    char *rest, *word = strtok_r(copy, " ", &rest);
    *command = fin_command_find(word);
    assert_non_null(*command);
    while ((word = strtok_r(NULL, " ", &rest))) {
        char *equals = strchr(word, '=');
        assert_non_null(equals);
        *equals = '\0';
        pairs[count++] = (fin_pair){word, equals + 1, NULL};
    }
    *values = malloc((*command)->size);
    return fin_command_apply(*command, *values, pairs, count, &bad, error);
}

/* The status of running "command name=value ..." into result. */
static inline fin_status run_into(const char *text, fin_result *result,
                                  const fin_progress *progress, fin_error *error)
{
    const fin_command *command;
    void *values;
    fin_status status = apply(text, &command, &values, error);
    if (!status)
        status = command->run(values, result, progress, error);
    free(values);
    return status;
}

static inline fin_result *run(const char *text)
{
    fin_result *result = fin_result_create();
    if (run_into(text, result, NULL, &err))
        fail_msg("%s: %s", text, err.message);
    assert_int_equal(fini_result_status(result, &err), FIN_OK);
    return result;
}

static inline bool has(const fin_result *r, const char *name, fin_scalar *out)
{
    for (int i = 0; i < fin_result_scalar_count(r); i++) {
        *out = fin_result_get_scalar(r, i);
        if (strcmp(out->name, name) == 0)
            return true;
    }
    return false;
}

static inline fin_scalar scalar(const fin_result *r, const char *name)
{
    fin_scalar s;
    if (!has(r, name, &s))
        fail_msg("there is no scalar %s", name);
    return s;
}

static inline bool missing(const fin_result *r, const char *name)
{
    fin_scalar s;
    return !has(r, name, &s);
}

static inline fin_series series(const fin_result *r, const char *name)
{
    for (int i = 0; i < fin_result_series_count(r); i++) {
        fin_series s = fin_result_get_series(r, i);
        if (strcmp(s.name, name) == 0)
            return s;
    }
    fail_msg("there is no series %s", name);
    return (fin_series){.name = NULL};
}

static inline const double *numbers(const fin_result *r, const char *name, int64_t rows,
                                    int64_t columns)
{
    fin_series s = series(r, name);
    assert_int_equal(s.dtype, FIN_F64);
    assert_int_equal(s.ndim, columns ? 2 : 1);
    assert_int_equal(s.shape[0], rows);
    if (columns)
        assert_int_equal(s.shape[1], columns);
    return s.data;
}

static inline bool announced(const fin_command *command, const char *name)
{
    for (const fin_output *row = command->outputs; row->name; row++)
        if (strcmp(row->name, name) == 0)
            return true;
    return false;
}

/* Every result of these runs is announced, and every announced one comes in some of them. */
static inline void expect_outputs(const char *name, const char *const *runs, int count)
{
    const fin_command *command = fin_command_find(name);
    bool seen[128] = {false};
    for (int k = 0; k < count; k++) {
        fin_result *r = run(runs[k]);
        for (int i = 0; i < fin_result_scalar_count(r); i++)
            assert_true(announced(command, fin_result_get_scalar(r, i).name));
        for (int i = 0; i < fin_result_series_count(r); i++)
            assert_true(announced(command, fin_result_get_series(r, i).name));
        for (int o = 0; command->outputs[o].name; o++) {
            fin_scalar s;
            seen[o] = seen[o] || has(r, command->outputs[o].name, &s);
            for (int i = 0; i < fin_result_series_count(r); i++)
                seen[o] = seen[o] ||
                          strcmp(fin_result_get_series(r, i).name, command->outputs[o].name) == 0;
        }
        fin_result_destroy(r);
    }
    for (int o = 0; command->outputs[o].name; o++)
        if (!seen[o])
            fail_msg("%s never leaves %s", command->name, command->outputs[o].name);
}

static inline void expect_refused(const char *text, const char *part)
{
    const fin_command *command;
    void *values;
    err = (fin_error){FIN_OK, ""};
    fin_status status = apply(text, &command, &values, &err);
    assert_true(status == FIN_ERR_ARGUMENT || status == FIN_ERR_UNSUPPORTED);
    if (!strstr(err.message, part))
        fail_msg("'%s' does not say '%s'", err.message, part);
    free(values);
}

/* ---- what every command must do ------------------------------------------------------------------ */

static inline void expect_same_bytes_for_any_threads(const char *const *runs, int count)
{
    for (int i = 0; i < count; i++) {
        unsigned char *bytes[2];
        size_t size[2];
        for (int t = 0; t < 2; t++) {
            fin_threads_set(1 + t);
            fini_done done = {.state = FIN_STATE_DONE, .result = run(runs[i])};
            assert_int_equal(fini_done_pack(&done, &bytes[t], &size[t], &err), FIN_OK);
            fin_result_destroy(done.result);
        }
        fin_threads_set(0);
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(bytes[0], bytes[1], size[0]);
        fini_free(bytes[0]);
        fini_free(bytes[1]);
    }
}

static inline int cancel_and_count(void *user, const char *what, double done, double total)
{
    (void)what;
    (void)done;
    (void)total;
    ++*(int *)user;
    return 1;
}

/* These runs ask whether to go on, and end with a message if they are not to. */
static inline void expect_cancelled(const char *const *runs, int count)
{
    for (int i = 0; i < count; i++) {
        int calls = 0;
        fin_progress progress = {cancel_and_count, &calls};
        fin_result *r = fin_result_create();
        err = (fin_error){FIN_OK, ""};
        assert_int_equal(run_into(runs[i], r, &progress, &err), FIN_ERR_CANCELLED);
        assert_true(calls >= 1 && err.message[0]);
        fin_result_destroy(r);
    }
}

static inline fin_status run_with_faults(void *user, fin_error *error)
{
    fin_result *r = fin_result_create();
    if (!r)
        return fini_fail_memory(error, 1, "a result");
    fin_status status = run_into(*(const char *const *)user, r, NULL, error);
    if (!status)
        status = fini_result_status(r, error);
    fin_result_destroy(r);
    return status;
}

/* Every allocation of these runs may fail; each has at least two. */
static inline void expect_every_allocation_may_fail(const char *const *runs, int count)
{
    fin_threads_set(1);
    for (int i = 0; i < count; i++) {
        const char *text = runs[i];
        assert_true(fault_every(run_with_faults, &text) >= 2);
    }
    fin_threads_set(0);
}

#endif
