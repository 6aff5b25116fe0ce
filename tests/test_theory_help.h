/* What the tests of risks share: tasks of every kind. Include after cmocka.h. */
#ifndef TEST_THEORY_HELP_H
#define TEST_THEORY_HELP_H

#include "finetti.h"

static fin_error err;
#define OK(call)                                                                                   \
    do {                                                                                           \
        if (call)                                                                                  \
            fail_msg("%s: %s", #call, err.message);                                                \
    } while (0)

static fin_task *make(const char *name, int64_t d, int64_t L_min, int64_t L, int64_t m, double snr,
                      int flags)
{
    fin_task *task;
    fin_task_settings s;
    const fin_task_kind *kind = fin_task_find(name);
    fin_settings_defaults(fin_task_kind_table(kind), &s, sizeof s);
    s.d = d;
    s.L = L;
    s.L_min = L_min;
    s.m = m;
    s.eps = 0.3;
    s.snr = snr;
    s.mu = 2.5;
    OK(fin_task_create(&task, kind, &s, NULL, 11, flags, &err));
    return task;
}

static const struct {
    const char *name;
    int64_t L_min, L, m;
    double snr;
} cases[] = {
    {"slr", 6, 6, 1, 0},        {"slr", 2, 9, 1, 0},    {"slr", 6, 6, 3, 0},
    {"spiked", 6, 6, 1, 3},     {"spiked", 2, 9, 2, 3}, {"max", 6, 6, 1, 2},
    {"max", 6, 6, 1, INFINITY}, {"max", 2, 9, 1, 2},    {"max", 6, 6, 3, 2},
    {"max", 6, 6, 2, INFINITY},
};

#endif
