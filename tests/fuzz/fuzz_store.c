/* Stores that were damaged. The harness makes a small good one, with pages of 512 bytes; an input is
 * a byte that says what to ask (FUZZ_ASK_...), then harm:
 *
 *     op < 64:   place u16, length u8, bytes       bytes of the file
 *     op >= 64:  row u8, kind u8, from u16, cut u16, length u16, bytes
 *                                                  a cell: column op - 64, see fuzz_cells
 *
 * Every answer is data or a message. */
#include "fuzz_study.h"

#include "finetti/report.h"

/* ---- a good store ---------------------------------------------------------------------------- */

static const char fuzz_store_text[] =
    "study: small\n"
    "title: All kinds\n"
    "runs:\n"
    "  - {id: grid, command: risk, set: {show: \"risk,check,linear\"}, axes: {L: [2, 10], lam: "
    "[0.1, "
    "0.5]}}\n"
    "  - {id: path, command: train, set: {init: manifold}}\n"
    "  - {id: plane, command: landscape}\n"
    "  - {id: two, command: law}\n"
    "claims:\n"
    "  - {id: a, statement: b, where: {L: 10, lam: [\">=\", 0.1]}, take: log(risk) / lam, reduce: "
    "mean, expect: {at_most: 2}, figure: l}\n"
    "  - {id: s, statement: c, take: risk, against: lam, reduce: slope, expect: {equal: 0, "
    "tolerance: 1}}\n"
    "  - {id: v, statement: d, values: {x: {take: \"max(check, sign(risk))\", reduce: median}, y: "
    "{from: two, take: p_least + 0 * seconds}}, quantity: x / y, expect: {between: [0, 9]}, "
    "kind: check, known: z}\n"
    "  - {id: n, statement: e, take: risk < lam, reduce: share, expect: {at_least: 0}}\n"
    "figures:\n"
    "  - {id: l, kind: lines, x: {take: lam, scale: log}, y: {label: r}, lines: [{take: risk, "
    "split: "
    "L, fit: true}, {take: check, band: true, average: true, style: dashed}], reference: [{y: 1, "
    "label: one}]}\n"
    "  - {id: b, kind: bars, where: {lam: 0.1}, x: {take: L}, lines: [{take: risk}, {take: "
    "linear}]}\n"
    "  - {id: h, kind: heat, x: {take: L}, y: {take: lam}, take: risk}\n"
    "  - {id: c, kind: calibration, x: {take: risk}, y: {take: check}, split: L}\n"
    "  - {id: t, kind: training, from: path}\n"
    "  - {id: p, kind: portrait, from: plane, paths: path}\n"
    "  - {id: q, kind: quantiles, from: two}\n"
    "  - {id: s, kind: series, from: path, x: {take: step}, lines: [{take: excess}]}\n";
enum { FUZZ_GRID = 4, FUZZ_STORE_RUNS = 7, FUZZ_STORE_MOST = 1 << 16 };

/* All of it; and what is left without the study, with few of its runs, one of them failed. */
static unsigned char fuzz_store_bytes[FUZZ_STORE_MOST], fuzz_part_bytes[FUZZ_STORE_MOST];
static size_t fuzz_store_size, fuzz_part_size;

static void fuzz_add_series(fin_result *result, const char *name, int rows, int columns)
{
    double numbers[36];
    const int64_t shape[2] = {rows ? rows : columns, columns};
    for (int i = 0; i < 36; i++)
        numbers[i] = (i * 7 % 10 + 1) / 12.0 + (rows ? 0 : i);
    fini_result_series(result, name, FIN_F64, rows ? 2 : 1, shape, numbers);
}

static void fuzz_add_results(fin_result *result, int64_t position)
{
    static const char *const bands[] = {"excess", "abs_kappa", "abs_nu", "distance"};
    static const char *const squares[] = {"risk", "d_kappa", "d_nu"};
    static const char *const points[] = {"point_kappa", "point_nu", "point_risk", "point_negative"};
    double at = (double)position;
    if (position < FUZZ_GRID) {
        fini_result_scalar(result, "risk", at / 3 + 0.25, 0, FIN_HOW_CLOSED, 0);
        fini_result_scalar(result, "check", at / 3 + 0.3, 0.1, FIN_HOW_SIMULATION, 100);
        fini_result_scalar(result, "linear", 0.5, 1e-9, FIN_HOW_QUADRATURE, 0);
    } else if (position == FUZZ_GRID) {
        fini_result_scalar(result, "share", 0.5, 0, FIN_HOW_SHARE, 8);
        fuzz_add_series(result, "step", 0, 4);
        fuzz_add_series(result, "path_kappa", 2, 4);
        fuzz_add_series(result, "path_nu", 2, 4);
        for (int i = 0; i < 4; i++)
            fuzz_add_series(result, bands[i], 6, 4);
    } else if (position == FUZZ_GRID + 1) {
        fuzz_add_series(result, "kappa", 0, 3);
        fuzz_add_series(result, "nu", 0, 3);
        for (int i = 0; i < 3; i++)
            fuzz_add_series(result, squares[i], 3, 3);
        for (int i = 0; i < 4; i++)
            fuzz_add_series(result, points[i], 0, 1);
    } else {
        fini_result_scalar(result, "p_least", 0.5, 0, FIN_HOW_RUNS, 20);
        fuzz_add_series(result, "quantiles_kappa", 2, 5);
        fuzz_add_series(result, "quantiles_nu", 2, 5);
    }
}

static void fuzz_fill_store(const char *path)
{
    fin_store *store;
    fin_study *study;
    fin_error err = {FIN_OK, ""};
    unsigned char missing[FUZZ_STORE_RUNS];
    int64_t session = 0;
    const fin_session_row row = {.study = "small", .total = 3, .ranks = 1, .threads = 1};
    FUZZ_CHECK(
        !fin_study_parse(fuzz_store_text, sizeof fuzz_store_text - 1, "x", NULL, &study, &err));
    FUZZ_CHECK(fin_study_run_count(study) == FUZZ_STORE_RUNS && !fin_report_check(study, &err));
    FUZZ_CHECK(!fin_store_open(path, FIN_STORE_CREATE, &store, &err));
    FUZZ_CHECK(!fini_store_plan(store, study, false, missing, NULL, NULL, &err));
    for (int i = 0; i < FUZZ_STORE_RUNS; i++) {
        fini_done done = {.position = i, .state = FIN_STATE_DONE, .seconds = 0.5};
        FUZZ_CHECK(done.result = fin_result_create());
        fuzz_add_results(done.result, i);
        FUZZ_CHECK(!fini_study_keep(store, study, &done, 1, &err));
        fin_result_destroy(done.result);
    }
    FUZZ_CHECK(!fini_store_session(store, &session, &row, &err));
    FUZZ_CHECK(!fin_store_judge(store, "small", &err));
    fin_store_close(store);
    fin_study_destroy(study);
}

static void fuzz_sql(const char *path, const char *sql)
{
    sqlite3 *db;
    FUZZ_CHECK(sqlite3_open(path, &db) == SQLITE_OK);
    FUZZ_CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
    sqlite3_close(db);
}

static size_t fuzz_read(const char *path, unsigned char *bytes)
{
    FILE *file = fopen(path, "rb");
    FUZZ_CHECK(file);
    size_t size = fread(bytes, 1, FUZZ_STORE_MOST, file);
    FUZZ_CHECK(fclose(file) == 0 && size > 0 && size < FUZZ_STORE_MOST);
    return size;
}

/* Once. Pages of the smallest size, so that the file is small and there are many of them. */
static void fuzz_make_stores(void)
{
    if (fuzz_store_size)
        return;
    char path[300];
    snprintf(path, sizeof path, "%s", fuzz_path("t.db"));
    fuzz_fill_store(path);
    fuzz_sql(path, "PRAGMA journal_mode = DELETE; PRAGMA page_size = 512; VACUUM");
    fuzz_store_size = fuzz_read(path, fuzz_store_bytes);
    fuzz_sql(path, "PRAGMA foreign_keys = ON; DELETE FROM studies; DELETE FROM runs WHERE id > 2; "
                   "DELETE FROM scalars WHERE run_id = 1; UPDATE runs SET state = 2 WHERE id = 1; "
                   "VACUUM");
    fuzz_part_size = fuzz_read(path, fuzz_part_bytes);
}

/* ---- harm ------------------------------------------------------------------------------------ */

static const struct {
    const char *table, *column, *row; /* row: the column that chooses it */
} fuzz_cells[] = {
    {"studies", "text", "id"},
    {"studies", "name", "id"},
    {"studies", "title", "id"},
    {"studies", "source", "id"},
    {"studies", "changes", "id"},
    {"studies", "full", "id"},
    {"studies", "hash", "id"},
    {"plan", "position", "position"},
    {"plan", "block", "position"},
    {"plan", "run_id", "position"},
    {"common", "command", "id"},
    {"common", "text", "id"},
    {"settings", "hash", "id"},
    {"settings", "common_id", "id"},
    {"settings", "own", "id"},
    {"runs", "id", "id"},
    {"runs", "state", "id"},
    {"runs", "reason", "id"},
    {"runs", "version", "id"},
    {"runs", "kernel", "id"},
    {"runs", "seconds", "id"},
    {"runs", "finished", "id"},
    {"names", "name", "id"},
    {"scalars", "value", "run_id"},
    {"scalars", "error", "run_id"},
    {"scalars", "how", "run_id"},
    {"scalars", "samples", "run_id"},
    {"scalars", "run_id", "run_id"},
    {"scalars", "name_id", "name_id"},
    {"series", "dtype", "name_id"},
    {"series", "shape", "name_id"},
    {"series", "data", "name_id"},
    {"series", "run_id", "name_id"},
    {"claims", "id", "position"},
    {"claims", "statement", "position"},
    {"claims", "expected", "position"},
    {"claims", "figure", "position"},
    {"claims", "how", "position"},
    {"claims", "value", "position"},
    {"claims", "verdict", "position"},
    {"claims", "position", "position"},
    {"sessions", "study", "id"},
    {"sessions", "total", "id"},
    {"sessions", "ranks", "id"},
    {"sessions", "seconds", "id"},
    {"sessions", "spoke", "id"},
    {"sessions", "ended", "id"},
};
enum { FUZZ_CELLS = sizeof fuzz_cells / sizeof *fuzz_cells, FUZZ_OP_CELL = 64, FUZZ_HARMS = 16 };

typedef struct fuzz_bytes {
    const uint8_t *at;
    size_t left;
} fuzz_bytes;

static const uint8_t *fuzz_take(fuzz_bytes *bytes, size_t *size)
{
    const uint8_t *at = bytes->at;
    if (*size > bytes->left)
        *size = bytes->left;
    bytes->at += *size;
    bytes->left -= *size;
    return at;
}

static size_t fuzz_take_whole(fuzz_bytes *bytes, size_t size)
{
    size_t value = 0;
    const uint8_t *at = fuzz_take(bytes, &size);
    for (size_t i = 0; i < size; i++)
        value |= (size_t)at[i] << 8 * i;
    return value;
}

typedef struct fuzz_harm {
    size_t op, place, row, kind, from, cut, size;
    const uint8_t *value;
} fuzz_harm;

static fuzz_harm fuzz_take_harm(fuzz_bytes *bytes)
{
    fuzz_harm harm = {.op = fuzz_take_whole(bytes, 1)};
    if (harm.op < FUZZ_OP_CELL) {
        harm.place = fuzz_take_whole(bytes, 2);
        harm.size = fuzz_take_whole(bytes, 1);
    } else {
        harm.row = fuzz_take_whole(bytes, 1);
        harm.kind = fuzz_take_whole(bytes, 1);
        harm.from = fuzz_take_whole(bytes, 2);
        harm.cut = fuzz_take_whole(bytes, 2);
        harm.size = fuzz_take_whole(bytes, 2);
    }
    harm.value = fuzz_take(bytes, &harm.size);
    return harm;
}

enum {
    FUZZ_TEXT,
    FUZZ_BLOB,
    FUZZ_WHOLE,
    FUZZ_REAL,
    FUZZ_NULL,
    FUZZ_PACKED,
    FUZZ_SPLICE,
    FUZZ_KINDS
};

static void fuzz_bind(sqlite3_stmt *statement, const fuzz_harm *harm)
{
    unsigned char packed[1024];
    uLongf length = sizeof packed;
    int64_t whole = 0;
    double real = 0;
    int size = (int)harm->size;
    memcpy(&whole, harm->value, harm->size < 8 ? harm->size : 8);
    memcpy(&real, &whole, sizeof real);
    switch (harm->kind % FUZZ_KINDS) {
    case FUZZ_TEXT:
    case FUZZ_SPLICE:
        sqlite3_bind_text(statement, 1, (const char *)harm->value, size, SQLITE_TRANSIENT);
        break;
    case FUZZ_BLOB:
        sqlite3_bind_blob(statement, 1, harm->value, size, SQLITE_TRANSIENT);
        break;
    case FUZZ_WHOLE:
        sqlite3_bind_int64(statement, 1, whole);
        break;
    case FUZZ_REAL:
        sqlite3_bind_double(statement, 1, real);
        break;
    case FUZZ_PACKED:
        if (compress(packed, &length, harm->value, harm->size) == Z_OK)
            sqlite3_bind_blob(statement, 1, packed, (int)length, SQLITE_TRANSIENT);
        break;
    default:
        break;
    }
}

static void fuzz_change_cell(sqlite3 *db, const fuzz_harm *harm)
{
    char sql[200];
    sqlite3_stmt *statement;
    size_t cell = (harm->op - FUZZ_OP_CELL) % FUZZ_CELLS;
    const char *table = fuzz_cells[cell].table, *column = fuzz_cells[cell].column;
    if (harm->kind % FUZZ_KINDS == FUZZ_SPLICE)
        snprintf(sql, sizeof sql,
                 "UPDATE OR IGNORE %s SET %s = CAST(substr(%s, 1, %d) || ?1 || substr(%s, %d) AS "
                 "TEXT) WHERE %s = ?2",
                 table, column, column, (int)harm->from, column, (int)(harm->from + harm->cut) + 1,
                 fuzz_cells[cell].row);
    else
        snprintf(sql, sizeof sql, "UPDATE OR IGNORE %s SET %s = ?1 WHERE %s = ?2", table, column,
                 fuzz_cells[cell].row);
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK) {
        fuzz_bind(statement, harm);
        sqlite3_bind_int64(statement, 2, (int64_t)harm->row);
        (void)sqlite3_step(statement); /* what cannot be stored is not there */
    }
    sqlite3_finalize(statement);
}

static void fuzz_change_cells(const char *path, fuzz_bytes bytes)
{
    sqlite3 *db = NULL;
    for (int i = 0; i < FUZZ_HARMS && bytes.left; i++) {
        fuzz_harm harm = fuzz_take_harm(&bytes);
        if (harm.op < FUZZ_OP_CELL)
            continue;
        if (!db) {
            FUZZ_CHECK(sqlite3_open(path, &db) == SQLITE_OK);
            sqlite3_exec(db,
                         "PRAGMA foreign_keys = OFF; PRAGMA journal_mode = OFF; "
                         "PRAGMA synchronous = OFF; BEGIN",
                         NULL, NULL, NULL);
        }
        fuzz_change_cell(db, &harm);
    }
    if (db)
        sqlite3_exec(db, "COMMIT", NULL, NULL, NULL);
    sqlite3_close(db);
}

/* The store with the bytes changed, then its cells. */
static void fuzz_write_store(const char *path, fuzz_bytes bytes)
{
    static unsigned char copy[FUZZ_STORE_MOST];
    fuzz_bytes rest = bytes;
    memcpy(copy, fuzz_store_bytes, fuzz_store_size);
    for (int i = 0; i < FUZZ_HARMS && rest.left; i++) {
        fuzz_harm harm = fuzz_take_harm(&rest);
        if (harm.op >= FUZZ_OP_CELL)
            continue;
        harm.place %= fuzz_store_size;
        if (harm.size > fuzz_store_size - harm.place)
            harm.size = fuzz_store_size - harm.place;
        memcpy(copy + harm.place, harm.value, harm.size);
    }
    for (int i = 0; i < 3; i++) /* what an input before this one may have left */
        remove(fuzz_path(i == 0 ? "t.db-wal" : i == 1 ? "t.db-shm" : "t.db-journal"));
    fuzz_write("t.db", copy, fuzz_store_size);
    fuzz_change_cells(path, bytes);
}

/* ---- questions ------------------------------------------------------------------------------- */

static size_t fuzz_letters;

static void fuzz_see(const char *text)
{
    FUZZ_CHECK(text != NULL);
    fuzz_letters += strlen(text);
}

static fin_status fuzz_see_run(void *user, const fin_run_row *run, fin_error *err)
{
    (void)user, (void)err;
    FUZZ_CHECK(fin_state_name(run->state));
    fuzz_see(run->hash), fuzz_see(run->settings), fuzz_see(run->block), fuzz_see(run->reason);
    fuzz_see(run->version), fuzz_see(run->kernel), fuzz_see(run->command);
    return FIN_OK;
}

static fin_status fuzz_see_scalar(void *user, const fin_run_row *run, const fin_scalar *scalar,
                                  fin_error *err)
{
    FUZZ_CHECK(fin_how_name(scalar->how) && scalar->samples >= 0);
    fuzz_see(scalar->name);
    return fuzz_see_run(user, run, err);
}

static fin_status fuzz_see_series(void *user, const fin_run_row *run, const fin_series *series,
                                  fin_error *err)
{
    size_t bytes = fin_dtype_size(series->dtype);
    FUZZ_CHECK(bytes && series->ndim >= 0 && series->ndim <= 4 && series->data);
    for (int i = 0; i < series->ndim; i++)
        bytes *= (size_t)series->shape[i];
    for (size_t i = 0; i < bytes; i++)
        fuzz_letters += ((const unsigned char *)series->data)[i];
    fuzz_see(series->name);
    return fuzz_see_run(user, run, err);
}

static fin_status fuzz_see_study(void *user, const fin_study_row *study, fin_error *err)
{
    (void)user, (void)err;
    fuzz_see(study->name), fuzz_see(study->title), fuzz_see(study->source);
    FUZZ_CHECK(study->planned >= 0 && study->done >= 0 && study->failed >= 0);
    return FIN_OK;
}

static fin_status fuzz_see_session(void *user, const fin_session_row *session, fin_error *err)
{
    (void)user, (void)err;
    fuzz_see(session->study);
    return FIN_OK;
}

static fin_status fuzz_see_claim(void *user, const fin_claim *claim, fin_error *err)
{
    (void)user, (void)err;
    fuzz_see(claim->id), fuzz_see(claim->statement), fuzz_see(claim->source);
    fuzz_see(claim->quantity), fuzz_see(claim->expected), fuzz_see(claim->figure);
    fuzz_see(claim->how);
    FUZZ_CHECK(fin_verdict_name(claim->verdict));
    return FIN_OK;
}

static fin_status fuzz_see_figure(void *user, const fin_figure_row *figure, fin_error *err)
{
    (void)user, (void)err;
    fuzz_see(figure->study), fuzz_see(figure->id), fuzz_see(figure->title), fuzz_see(figure->kind);
    return FIN_OK;
}

static fin_status fuzz_see_difference(void *user, const fin_difference *difference, fin_error *err)
{
    (void)user, (void)err;
    fuzz_see(difference->hash), fuzz_see(difference->what);
    return FIN_OK;
}

/* A failure has a message, and is none that only a computation has, or a large store; but SQLite
 * takes some records for larger than memory. */
static void fuzz_answer_is(fin_status status, fin_error *err)
{
    FUZZ_CHECK(!status || err->message[0]);
    FUZZ_CHECK(status != FIN_ERR_MEMORY || strstr(err->message, "it is damaged"));
    FUZZ_CHECK(status != FIN_ERR_NUMERIC && status != FIN_ERR_CANCELLED);
    *err = (fin_error){FIN_OK, ""};
}

enum {
    FUZZ_ASK_ALL,
    FUZZ_ASK_WHERE,
    FUZZ_ASK_LISTS,
    FUZZ_ASK_CHECK,
    FUZZ_ASK_CSV,
    FUZZ_ASK_NPZ,
    FUZZ_ASK_FIGURE, /* and seven more */
    FUZZ_ASK_PLOT = FUZZ_ASK_FIGURE + 8,
    FUZZ_ASK_REPORT,
    FUZZ_ASK_DIFF,
    FUZZ_ASK_MERGE, /* into all of it */
    FUZZ_ASK_TAKE,  /* into a part of it */
    FUZZ_ASK_JUDGE,
    FUZZ_ASK_PLAN,
    FUZZ_ASK_GC,
    FUZZ_ASKS
};

static void fuzz_ask_runs(fin_store *store, bool all, fin_error *e)
{
    static const char *const where[] = {"L>=2", "risk<100"};
    const fin_query some = {.study = "small", .where = where, .where_count = 2}, any = {0};
    const fin_query *query = all ? &any : &some;
    const fin_query others[] = {{.where = where, .where_count = 2}, {.hash = "0", .has = "risk"}};
    for (int i = 0; i < 2 && !all; i++)
        fuzz_answer_is(fin_store_runs(store, &others[i], fuzz_see_run, NULL, e), e);
    fuzz_answer_is(fin_store_runs(store, query, fuzz_see_run, NULL, e), e);
    fuzz_answer_is(fin_store_scalars(store, query, fuzz_see_scalar, NULL, e), e);
    fuzz_answer_is(fin_store_series(store, query, 1, fuzz_see_series, NULL, e), e);
}

static void fuzz_ask_lists(fin_store *store, fin_error *e)
{
    fuzz_answer_is(fin_store_studies(store, fuzz_see_study, NULL, e), e);
    fuzz_answer_is(fin_store_sessions(store, fuzz_see_session, NULL, e), e);
    fuzz_answer_is(fin_store_claims(store, NULL, fuzz_see_claim, NULL, e), e);
    fuzz_answer_is(fin_store_verdicts(store, "small", fuzz_see_claim, NULL, e), e);
    fuzz_answer_is(fin_report_figures(store, NULL, fuzz_see_figure, NULL, e), e);
}

static void fuzz_ask_figure(fin_store *store, const char *id, bool svg, fin_error *e)
{
    static const char *const y[] = {"risk", "check - risk"};
    const fin_figure figure = {.study = "small",
                               .id = id,
                               .x = "lam",
                               .y = y,
                               .y_count = 2,
                               .split = "L",
                               .log_x = 1,
                               .fit = 1};
    fuzz_answer_is(fin_report_figure(store, &figure, fuzz_path(svg ? "x.svg" : "x.csv"), e), e);
}

/* Questions of a store that is only read. */
static void fuzz_ask_reader(fin_store *store, int ask, fin_error *e)
{
    static const char *const figures[] = {"l", "b", "h", "c", "t", "p", "q", "s"};
    const fin_query query = {.study = "small"};
    if (ask == FUZZ_ASK_ALL || ask == FUZZ_ASK_WHERE)
        fuzz_ask_runs(store, ask == FUZZ_ASK_ALL, e);
    else if (ask == FUZZ_ASK_LISTS)
        fuzz_ask_lists(store, e);
    else if (ask == FUZZ_ASK_CHECK)
        fuzz_answer_is(fin_store_check(store, e), e);
    else if (ask == FUZZ_ASK_CSV)
        fuzz_answer_is(fin_store_export(store, &query, fuzz_path("x.csv"), 1, e), e);
    else if (ask == FUZZ_ASK_NPZ)
        fuzz_answer_is(fin_store_export(store, &query, fuzz_path("x.npz"), 0, e), e);
    else if (ask >= FUZZ_ASK_FIGURE && ask < FUZZ_ASK_PLOT)
        fuzz_ask_figure(store, figures[ask - FUZZ_ASK_FIGURE], true, e);
    else if (ask == FUZZ_ASK_PLOT)
        fuzz_ask_figure(store, NULL, false, e);
    else if (ask == FUZZ_ASK_REPORT)
        fuzz_answer_is(fin_report_write(store, NULL, 0, NULL, fuzz_path("x.html"), e), e);
}

/* What writes to it. */
static void fuzz_ask_writer(const char *path, int ask, fin_error *e)
{
    fin_store *store;
    fin_study *study;
    fin_gc_count count;
    unsigned char missing[FUZZ_STORE_RUNS];
    fuzz_answer_is(fin_store_open(path, FIN_STORE_WRITE, &store, e), e);
    if (!store)
        return;
    FUZZ_CHECK(!fin_study_parse(fuzz_store_text, sizeof fuzz_store_text - 1, "x", NULL, &study, e));
    if (ask == FUZZ_ASK_JUDGE)
        fuzz_answer_is(fin_store_judge(store, NULL, e), e);
    if (ask == FUZZ_ASK_PLAN) {
        fuzz_answer_is(fini_store_plan(store, study, true, missing, NULL, NULL, e), e);
        for (int i = 0; i < FUZZ_STORE_RUNS; i += 3) { /* as if they had been run again */
            fini_done done = {.position = i, .state = FIN_STATE_DONE, .seconds = 0.5};
            FUZZ_CHECK(done.result = fin_result_create());
            fuzz_add_results(done.result, i);
            fuzz_answer_is(fini_study_keep(store, study, &done, 1, e), e);
            fin_result_destroy(done.result);
        }
    }
    if (ask == FUZZ_ASK_GC)
        fuzz_answer_is(fin_store_gc(store, "small", 0, &count, e), e);
    fin_store_close(store);
    fin_study_destroy(study);
}

/* Beside a good one, which stays good. */
static void fuzz_ask_both(const char *path, int ask, fin_error *e)
{
    fin_store *store = NULL, *good;
    fin_merge_count merged;
    int64_t differences;
    char other[300];
    snprintf(other, sizeof other, "%s", fuzz_path("good.db"));
    if (ask == FUZZ_ASK_TAKE)
        fuzz_write("good.db", fuzz_part_bytes, fuzz_part_size);
    else
        fuzz_write("good.db", fuzz_store_bytes, fuzz_store_size);
    FUZZ_CHECK(!fin_store_open(other, FIN_STORE_WRITE, &good, e));
    if (ask == FUZZ_ASK_DIFF)
        fuzz_answer_is(fin_store_open(path, FIN_STORE_READ, &store, e), e);
    if (store)
        fuzz_answer_is(fin_store_diff(store, good, 0, fuzz_see_difference, NULL, &differences, e),
                       e);
    fin_store_close(store);
    for (int force = 0; force < 2 && ask != FUZZ_ASK_DIFF; force++)
        fuzz_answer_is(fin_store_merge(good, path, force, &merged, e), e);
    FUZZ_CHECK(!fin_store_check(good, e));
    fin_store_close(good);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    fin_store *store;
    fin_error err = {FIN_OK, ""};
    char path[300];
    int ask = data[0] % FUZZ_ASKS;
    fuzz_make_stores();
    snprintf(path, sizeof path, "%s", fuzz_path("t.db"));
    fuzz_write_store(path, (fuzz_bytes){data + 1, size - 1});
    if (ask >= FUZZ_ASK_DIFF && ask <= FUZZ_ASK_TAKE) {
        fuzz_ask_both(path, ask, &err);
    } else if (ask > FUZZ_ASK_TAKE) {
        fuzz_ask_writer(path, ask, &err);
    } else {
        fin_status status = fin_store_open(path, FIN_STORE_READ, &store, &err);
        FUZZ_CHECK(status ? !store && err.message[0] : store != NULL);
        if (store)
            fuzz_ask_reader(store, ask, &err);
        fin_store_close(store);
    }
    return 0;
}
