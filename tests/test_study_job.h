/* What the tests of jobs share: running "command name=value ..." and looking at what it left. A
 * header with static functions, so that a test needs nothing but to include it. */
#ifndef TEST_STUDY_JOB_H
#define TEST_STUDY_JOB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fault.h"
#include "study/job.h"

#include <math.h>
#include <string.h>

static fin_error err;

/* Settings from "name=value name=value". The memory is malloc's, so that faults do not see it. */
static inline fin_status apply(const char *text, const fini_job **job, void **values,
                               fin_error *error)
{
    static _Thread_local char copy[2048];
    fini_pair pairs[64];
    int count = 0, bad;
    snprintf(copy, sizeof copy, "%s", text);
    char *rest, *word = strtok_r(copy, " ", &rest);
    *job = fini_job_find(word);
    assert_non_null(*job);
    while ((word = strtok_r(NULL, " ", &rest))) {
        char *equals = strchr(word, '=');
        assert_non_null(equals);
        *equals = '\0';
        pairs[count++] = (fini_pair){word, equals + 1, NULL};
    }
    *values = malloc((*job)->size);
    return fini_job_apply(*job, *values, pairs, count, &bad, error);
}

/* The status of running "command name=value ..." into result. */
static inline fin_status run_into(const char *text, fini_result *result,
                                  const fin_progress *progress, fin_error *error)
{
    const fini_job *job;
    void *values;
    fin_status status = apply(text, &job, &values, error);
    if (!status)
        status = job->run(values, result, progress, error);
    free(values);
    return status;
}

static inline fini_result *run(const char *text)
{
    fini_result *result = fini_result_create();
    if (run_into(text, result, NULL, &err))
        fail_msg("%s: %s", text, err.message);
    assert_int_equal(fini_result_status(result, &err), FIN_OK);
    return result;
}

static inline bool has(const fini_result *r, const char *name, fin_scalar *out)
{
    for (int i = 0; i < fini_result_scalar_count(r); i++) {
        *out = fini_result_get_scalar(r, i);
        if (strcmp(out->name, name) == 0)
            return true;
    }
    return false;
}

static inline fin_scalar scalar(const fini_result *r, const char *name)
{
    fin_scalar s;
    if (!has(r, name, &s))
        fail_msg("there is no scalar %s", name);
    return s;
}

static inline bool missing(const fini_result *r, const char *name)
{
    fin_scalar s;
    return !has(r, name, &s);
}

static inline fin_series series(const fini_result *r, const char *name)
{
    for (int i = 0; i < fini_result_series_count(r); i++) {
        fin_series s = fini_result_get_series(r, i);
        if (strcmp(s.name, name) == 0)
            return s;
    }
    fail_msg("there is no series %s", name);
    return (fin_series){.name = NULL};
}

static inline const double *numbers(const fini_result *r, const char *name, int64_t rows,
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

static inline void expect_refused(const char *text, const char *part)
{
    const fini_job *job;
    void *values;
    err = (fin_error){FIN_OK, ""};
    fin_status status = apply(text, &job, &values, &err);
    assert_true(status == FIN_ERR_ARGUMENT || status == FIN_ERR_UNSUPPORTED);
    if (!strstr(err.message, part))
        fail_msg("'%s' does not say '%s'", err.message, part);
    free(values);
}

#endif
