/* What differs between two stores.
 *
 * The other one is attached, and one SELECT finds runs that only one has, and numbers that are not
 * the same. Without a tolerance, numbers are the same if they are equal; NaN is the same as NaN. With
 * one, two numbers may differ by that much of the larger of them and 1. What a clock said differs in
 * any two runs and is no difference. Series are compared by their bytes, and unpacked where those
 * differ: another zlib may have packed them. */
#include "store/diff.h"

#include <math.h>
#include <string.h>

/* ---- beside each other ----------------------------------------------------------------------- */

fin_status fini_store_attach(fin_store *store, const fin_store *other, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row;
    FINI_TRY(fini_sql_prepare(store, "ATTACH ?1 AS other", &statement, err));
    fini_sql_bind_text(statement, 1, other->uri);
    fin_status status = fini_sql_step(store, statement, &row, err);
    sqlite3_finalize(statement);
    return status;
}

void fini_store_detach(fin_store *store)
{
    sqlite3_exec(store->db, "DETACH other", NULL, NULL, NULL);
}

/* ---- the SELECT ------------------------------------------------------------------------------ */

#define SIDE(name)                                                                                 \
    "SELECT s.id, s.hash, r.state, s.own, c.text FROM " name ".settings AS s JOIN " name           \
    ".common AS c ON c.id = s.common_id JOIN " name ".runs AS r ON r.id = s.id"

#define SAME(x, y)                                                                                 \
    "(" x " IS " y " OR ifnull(abs(" x " - " y ") <= ?1 * max(1, abs(" x "), abs(" y ")), 0))"

#define STUDY(name, run)                                                                           \
    "(SELECT name FROM " name ".plan JOIN " name ".studies AS s ON s.id = study_id "               \
    "WHERE run_id = " run " ORDER BY name LIMIT 1)"

#define SETTINGS(name, run)                                                                        \
    "(SELECT " FINI_SQL_SETTINGS " FROM " name ".settings AS s JOIN " name ".common AS c "         \
    "ON c.id = s.common_id WHERE s.id = " run ")"

/* A scalar or series (table, kind) of the left run that the right one has not, or not the same. */
#define LEFT(table, kind, value, same)                                                             \
    "SELECT hash, " kind ", n.name, x." value ", y." value ", 1, y.run_id IS NOT NULL, l, o "      \
    "FROM e JOIN main." table " AS x ON x.run_id = l JOIN main.names AS n ON n.id = x.name_id "    \
    "LEFT JOIN other.names AS m ON m.name = n.name "                                               \
    "LEFT JOIN other." table " AS y ON y.name_id = m.id AND y.run_id = o "                         \
    "WHERE y.run_id IS NULL OR NOT (" same ")"

/* One of the right run that the left one has not. */
#define RIGHT(table, kind, value)                                                                  \
    "SELECT hash, " kind ", n.name, NULL, y." value ", 0, 1, l, o "                                \
    "FROM e JOIN other." table " AS y ON y.run_id = o JOIN other.names AS n ON n.id = y.name_id "  \
    "WHERE NOT EXISTS (SELECT 1 FROM main.names AS m JOIN main." table " AS x "                    \
    "ON x.name_id = m.id AND x.run_id = l WHERE m.name = n.name)"

enum { WHOLE, SCALAR, SERIES }; /* kinds of differences */

/* l, o: the runs of both stores; b: those that both have; e: with settings and state the same. */
static const char differences[] =
    "WITH l AS (" SIDE("main") "), o AS (" SIDE(
        "other") "), "
                 "b AS (SELECT l.hash AS hash, l.id AS l, o.id AS o, l.state IS NOT o.state AS "
                 "state, "
                 "NOT (l.own = o.own AND l.text = o.text) AND "
                 "json_patch(l.text, l.own) IS NOT json_patch(o.text, o.own) AS settings "
                 "FROM l JOIN o ON o.hash = l.hash), "
                 "e AS (SELECT * FROM b WHERE NOT state AND NOT settings), "
                 "d(hash, kind, what, x, y, in_left, in_right, l, o) AS ("
                 "SELECT hash, 0, 'missing', NULL, NULL, 1, 0, id, NULL FROM l "
                 "WHERE hash IN (SELECT hash FROM l EXCEPT SELECT hash FROM o) "
                 "UNION ALL SELECT hash, 0, 'missing', NULL, NULL, 0, 1, NULL, id FROM o "
                 "WHERE hash IN (SELECT hash FROM o EXCEPT SELECT hash FROM l) "
                 "UNION ALL SELECT hash, 0, iif(settings, 'settings', 'state'), NULL, NULL, 1, 1, "
                 "l, o FROM b "
                 "WHERE state OR settings UNION ALL " LEFT(
                     "scalars", "1", "value",
                     "x.how = 5 AND y.how = 5 OR x.how = y.how AND x.samples = y.samples AND " SAME("x.value", "y.value") " AND " SAME(
                         "x.error",
                         "y.error")) " UNION ALL " RIGHT("scalars", "1",
                                                         "value") " UNION ALL " LEFT("series", "2",
                                                                                     "run_id",
                                                                                     "x.dtype = "
                                                                                     "y.dtype AND "
                                                                                     "x.shape = "
                                                                                     "y.shape AND "
                                                                                     "x.data = "
                                                                                     "y.data") " UN"
                                                                                               "ION"
                                                                                               " AL"
                                                                                               "L"
                                                                                               " " RIGHT(
                                                                                                   "series",
                                                                                                   "2",
                                                                                                   "run_id") ") "
                                                                                                             "SELECT hash, kind, what, x, y, in_left, in_right, l, o, "
                                                                                                             "ifnull(" STUDY("main", "d.l") ", ifnull(" STUDY(
                                                                                                                 "other",
                                                                                                                 "d.o") ", '')), "
                                                                                                                        "ifnull(" SETTINGS("main", "d.l") ", " SETTINGS(
                                                                                                                            "other",
                                                                                                                            "d.o") ") "
                                                                                                                                   "FROM d ORDER BY hash, kind, what";

/* ---- series ---------------------------------------------------------------------------------- */

static bool same_number(double a, double b, double tolerance)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b);
    if (tolerance > 0 && fabs(a - b) <= tolerance * fmax(1, fmax(fabs(a), fabs(b))))
        return true;
    return memcmp(&a, &b, sizeof a) == 0;
}

static bool same_data(const fin_series *a, const fin_series *b, double tolerance)
{
    if (a->dtype != b->dtype || a->ndim != b->ndim ||
        memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) != 0)
        return false;
    size_t bytes = fini_series_bytes(a);
    if (memcmp(a->data, b->data, bytes) == 0)
        return true;
    bool same = a->dtype == FIN_F64 || a->dtype == FIN_F32;
    for (size_t i = 0; same && a->dtype == FIN_F64 && i < bytes / 8; i++)
        same = same_number(((const double *)a->data)[i], ((const double *)b->data)[i], tolerance);
    for (size_t i = 0; same && a->dtype == FIN_F32 && i < bytes / 4; i++)
        same = same_number((double)((const float *)a->data)[i], (double)((const float *)b->data)[i],
                           tolerance);
    return same;
}

static fin_status read_series(fin_store *store, sqlite3_stmt *statement, int64_t run,
                              const char *name, fin_series *out, fin_error *err)
{
    bool row = false;
    *out = (fin_series){.name = name};
    sqlite3_bind_int64(statement, 1, run);
    fini_sql_bind_text(statement, 2, name);
    fin_status status = fini_sql_step(store, statement, &row, err);
    if (!status && row)
        status = fini_blob_read(store, statement, 0, true, out, err);
    sqlite3_reset(statement);
    return status;
}

/* ---- one after the other --------------------------------------------------------------------- */

typedef struct walk {
    fin_store *store;
    double tolerance;
    sqlite3_stmt *all, *series[2];
} walk;

static fin_status read_row(const walk *w, fini_difference *out, fin_error *err)
{
    fin_difference *d = &out->face;
    const struct {
        int column, most;
        const char *what, **text;
    } texts[] = {{0, FIN_HASH_TEXT, "a hash", &d->hash},
                 {2, FINI_STORE_TEXT, "the name of a result", &d->what},
                 {9, FINI_STORE_TEXT, "the name of a study", &d->study},
                 {10, FIN_SETTINGS_TEXT, "the settings of a run", &d->settings}};
    fin_status status = FIN_OK;
    for (int i = 0; i < 4 && !status; i++)
        status = fini_sql_text(w->store, w->all, texts[i].column, texts[i].most, texts[i].what,
                               texts[i].text, err);
    int kind = sqlite3_column_int(w->all, 1);
    out->number = kind != WHOLE;
    d->left = kind == SCALAR ? fini_sql_double(w->all, 3) : (double)NAN;
    d->right = kind == SCALAR ? fini_sql_double(w->all, 4) : (double)NAN;
    d->in_left = sqlite3_column_int(w->all, 5);
    d->in_right = sqlite3_column_int(w->all, 6);
    out->id[0] = sqlite3_column_int64(w->all, 7);
    out->id[1] = sqlite3_column_int64(w->all, 8);
    if (status || kind != SERIES || !d->in_left || !d->in_right)
        return status;
    fin_series series[2] = {{0}, {0}};
    for (int i = 0; i < 2 && !status; i++)
        status = read_series(w->store, w->series[i], out->id[i], d->what, &series[i], err);
    out->same = !status && same_data(&series[0], &series[1], w->tolerance);
    fini_free_all((void *)series[0].data, (void *)series[1].data);
    return status;
}

fin_status fini_store_differences(fin_store *store, double tolerance,
                                  fin_status (*row)(void *user, const fini_difference *difference,
                                                    fin_error *err),
                                  void *user, fin_error *err)
{
    static const char *const one[] = {
        "SELECT dtype, shape, data FROM main.series JOIN main.names AS n ON n.id = name_id "
        "WHERE run_id = ?1 AND n.name = ?2",
        "SELECT dtype, shape, data FROM other.series JOIN other.names AS n ON n.id = name_id "
        "WHERE run_id = ?1 AND n.name = ?2"};
    walk w = {.store = store, .tolerance = tolerance};
    bool more = true;
    fin_status status = fini_sql_prepare(store, differences, &w.all, err);
    for (int i = 0; i < 2 && !status; i++)
        status = fini_sql_prepare(store, one[i], &w.series[i], err);
    if (!status)
        sqlite3_bind_double(w.all, 1, tolerance);
    while (!status && !(status = fini_sql_step(store, w.all, &more, err)) && more) {
        fini_difference difference = {0};
        status = read_row(&w, &difference, err);
        if (!status && !difference.same)
            status = row(user, &difference, err);
    }
    sqlite3_finalize(w.all);
    sqlite3_finalize(w.series[0]);
    sqlite3_finalize(w.series[1]);
    return status;
}

typedef struct caller {
    fin_status (*row)(void *user, const fin_difference *difference, fin_error *err);
    void *user;
    int64_t count;
} caller;

static fin_status tell(void *user, const fini_difference *difference, fin_error *err)
{
    caller *c = user;
    c->count++;
    return c->row ? c->row(c->user, &difference->face, err) : FIN_OK;
}

fin_status fin_store_diff(fin_store *left, fin_store *right, double tolerance,
                          fin_status (*row)(void *user, const fin_difference *difference,
                                            fin_error *err),
                          void *user, int64_t *count, fin_error *err)
{
    FINI_NEED(err, left, right);
    caller c = {.row = row, .user = user};
    bool mine = false;
    if (!(tolerance >= 0))
        return fini_fail(err, FIN_ERR_ARGUMENT,
                         "the tolerance of a difference is 0 (equal to the last bit) or more");
    fin_status status = fini_store_attach(left, right, err);
    if (!status)
        status = fini_store_look(left, &mine, err);
    if (!status)
        status = fini_store_differences(left, tolerance, tell, &c, err);
    fini_store_unlook(left, mine);
    fini_store_detach(left);
    if (count)
        *count = c.count;
    return status;
}
