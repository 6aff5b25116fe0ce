/* What differs between two stores: both lists of runs are walked side by side, by hash. */
#include "store/store.h"

#include <math.h>
#include <string.h>

typedef struct diff {
    fin_store *store[2];
    sqlite3_stmt *runs[2], *study[2];
    bool there[2]; /* a run is at hand */
    int64_t id[2], state[2];
    const char *hash[2], *settings[2];
    fini_compare compare;
    fin_status (*row)(void *user, const fin_difference *difference, fin_error *err);
    void *user;
    int64_t count;
} diff;

static fin_status next_run(diff *d, int i, fin_error *err)
{
    fin_status status = fini_sql_step(d->store[i], d->runs[i], &d->there[i], err);
    if (status || !d->there[i])
        return status;
    d->id[i] = sqlite3_column_int64(d->runs[i], 0);
    status = fini_sql_text(d->store[i], d->runs[i], 1, FIN_HASH_TEXT, "a hash", &d->hash[i], err);
    if (!status)
        status = fini_sql_text(d->store[i], d->runs[i], 2, FIN_SETTINGS_TEXT,
                               "the settings of a run", &d->settings[i], err);
    if (!status)
        status = fini_sql_integer(d->store[i], d->runs[i], 3, FIN_STATE_DONE, FIN_STATE_FAILED,
                                  "the state of a run", &d->state[i], err);
    return status;
}

/* `side` is the one that has the run. The study is the first that plans it, "" if none does. */
static fin_status tell(diff *d, int side, const char *what, double left, double right, bool in_left,
                       bool in_right, fin_error *err)
{
    sqlite3_stmt *study = d->study[side];
    bool found = false;
    fin_difference difference = {.study = "",
                                 .hash = d->hash[side],
                                 .settings = d->settings[side],
                                 .what = what,
                                 .left = left,
                                 .right = right,
                                 .in_left = in_left,
                                 .in_right = in_right};
    fini_sql_bind_text(study, 1, d->hash[side]);
    fin_status status = fini_sql_step(d->store[side], study, &found, err);
    if (!status && found)
        status = fini_sql_text(d->store[side], study, 0, FINI_STORE_TEXT, "the name of a study",
                               &difference.study, err);
    d->count++;
    if (!status && d->row)
        status = d->row(d->user, &difference, err);
    sqlite3_reset(study);
    return status;
}

static fin_status tell_number(void *user, const char *what, double left, double right, bool in_left,
                              bool in_right, fin_error *err)
{
    return tell(user, 0, what, left, right, in_left, in_right, err);
}

static fin_status compare_run(diff *d, fin_error *err)
{
    if (strcmp(d->settings[0], d->settings[1]) != 0)
        return tell(d, 0, "settings", NAN, NAN, true, true, err);
    if (d->state[0] != d->state[1])
        return tell(d, 0, "state", NAN, NAN, true, true, err);
    return fini_compare_runs(&d->compare, d->id[0], d->id[1], tell_number, d, err);
}

static fin_status walk(diff *d, fin_error *err)
{
    fin_status status = next_run(d, 0, err);
    if (!status)
        status = next_run(d, 1, err);
    while (!status && (d->there[0] || d->there[1])) {
        int order = !d->there[1] ? -1 : !d->there[0] ? 1 : strcmp(d->hash[0], d->hash[1]);
        if (order == 0)
            status = compare_run(d, err);
        else
            status = tell(d, order > 0, "missing", NAN, NAN, order<0, order> 0, err);
        if (!status && order <= 0)
            status = next_run(d, 0, err);
        if (!status && order >= 0)
            status = next_run(d, 1, err);
    }
    return status;
}

static fin_status open_diff(diff *d, double tolerance, fin_error *err)
{
    fin_status status = fini_compare_open(d->store[0], d->store[1], tolerance, &d->compare, err);
    for (int i = 0; i < 2 && !status; i++) {
        status = fini_sql_prepare(d->store[i],
                                  "SELECT id, hash, settings, state FROM runs ORDER BY hash",
                                  &d->runs[i], err);
        if (!status)
            status = fini_sql_prepare(d->store[i],
                                      "SELECT name FROM plan JOIN studies ON id = study_id "
                                      "WHERE plan.hash = ?1 ORDER BY name LIMIT 1",
                                      &d->study[i], err);
    }
    return status;
}

fin_status fin_store_diff(fin_store *left, fin_store *right, double tolerance,
                          fin_status (*row)(void *user, const fin_difference *difference,
                                            fin_error *err),
                          void *user, int64_t *count, fin_error *err)
{
    diff d = {.store = {left, right}, .row = row, .user = user};
    bool mine[2] = {false, false};
    if (!(tolerance >= 0))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the tolerance of a difference is 0 (equal to the last bit) or more");
    fin_status status = fini_store_look(left, &mine[0], err);
    if (!status)
        status = fini_store_look(right, &mine[1], err);
    if (!status)
        status = open_diff(&d, tolerance, err);
    if (!status)
        status = walk(&d, err);
    for (int i = 0; i < 2; i++) {
        sqlite3_finalize(d.runs[i]);
        sqlite3_finalize(d.study[i]);
    }
    fini_compare_close(&d.compare);
    fini_store_unlook(right, mine[1]);
    fini_store_unlook(left, mine[0]);
    if (count)
        *count = d.count;
    return status;
}
