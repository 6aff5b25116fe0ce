/* The scalars of one run after the other, sorted by name.
 *
 * SQLite could join and sort them, run by run; but there are few names and many runs, so the
 * names are read once, with the place of each among them, and a run's dozen rows are put in
 * order here. */
#include "store/store.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const fini_sheet_name *const *)a)->name,
                  (*(const fini_sheet_name *const *)b)->name);
}

/* Names by number, then the rank of each by name. */
static fin_status read_names(fini_sheet *sheet, int64_t count, fin_error *err)
{
    sqlite3_stmt *statement;
    bool row = false;
    const char *name;
    fin_status status =
        fini_sql_prepare(sheet->store, "SELECT id, name FROM names ORDER BY id", &statement, err);
    while (!status && sheet->name_count < count &&
           !(status = fini_sql_step(sheet->store, statement, &row, err)) && row) {
        fini_sheet_name *n = &sheet->names[sheet->name_count];
        status = fini_sql_text(sheet->store, statement, 1, FINI_STORE_TEXT, "the name of a scalar",
                               &name, err);
        size_t size = strlen(name) + 1;
        n->id = sqlite3_column_int64(statement, 0);
        n->name = status ? NULL : fini_alloc(size);
        if (!status && !n->name)
            status = fini_fail_memory(err, size, "the names of a store");
        if (!status) {
            memcpy(n->name, name, size);
            sheet->name_count++;
        }
    }
    sqlite3_finalize(statement);
    return status;
}

fin_status fini_sheet_open(fin_store *store, fini_sheet *sheet, fin_error *err)
{
    int64_t count;
    *sheet = (fini_sheet){.store = store};
    fin_status status = fini_sql_number(store, "SELECT count(*) FROM names", 0, &count, err);
    if (status)
        return status;
    sheet->names = fini_alloc_array(count, sizeof *sheet->names);
    sheet->rows = fini_alloc_array(count, sizeof *sheet->rows);
    const fini_sheet_name **order = fini_alloc_array(count, sizeof *order);
    if (!sheet->names || !sheet->rows || !order)
        status = fini_fail_memory(err, (size_t)count * sizeof *sheet->rows, "the names of a store");
    if (!status)
        status = read_names(sheet, count, err);
    for (int64_t i = 0; i < sheet->name_count && !status; i++)
        order[i] = &sheet->names[i];
    if (!status && sheet->name_count > 1)
        qsort(order, (size_t)sheet->name_count, sizeof *order, by_name);
    for (int64_t i = 0; i < sheet->name_count && !status; i++)
        sheet->names[order[i] - sheet->names].rank = i;
    fini_free(order);
    return status ? status
                  : fini_sql_prepare(store,
                                     "SELECT name_id, value, error, how, samples FROM scalars "
                                     "WHERE run_id = ?1 ORDER BY name_id",
                                     &sheet->statement, err);
}

void fini_sheet_close(fini_sheet *sheet)
{
    for (int64_t i = 0; i < sheet->name_count; i++)
        fini_free(sheet->names[i].name);
    fini_free_all(sheet->names, sheet->rows);
    sqlite3_finalize(sheet->statement);
}

/* Both the names and the rows come by number. */
static const fini_sheet_name *find(const fini_sheet *sheet, int64_t id, int64_t *from)
{
    while (*from < sheet->name_count && sheet->names[*from].id < id)
        ++*from;
    return *from < sheet->name_count && sheet->names[*from].id == id ? &sheet->names[*from] : NULL;
}

/* Keeps the rows sorted: nearly always it comes last. */
static void insert(fini_sheet *sheet, const fini_sheet_row *row)
{
    int64_t i = sheet->count++;
    for (; i > 0 && sheet->rows[i - 1].rank > row->rank; i--)
        sheet->rows[i] = sheet->rows[i - 1];
    sheet->rows[i] = *row;
}

fin_status fini_sheet_read(fini_sheet *sheet, int64_t run, fin_error *err)
{
    sqlite3_stmt *statement = sheet->statement;
    bool more = false;
    int64_t from = 0, how = 0;
    fin_status status = FIN_OK;
    sheet->count = 0;
    sqlite3_bind_int64(statement, 1, run);
    while (!status && !(status = fini_sql_step(sheet->store, statement, &more, err)) && more) {
        const fini_sheet_name *name = find(sheet, sqlite3_column_int64(statement, 0), &from);
        fini_sheet_row row = {.scalar = {.value = fini_sql_double(statement, 1),
                                         .error = fini_sql_double(statement, 2)}};
        if (!name || sheet->count == sheet->name_count)
            status = fini_store_damaged(sheet->store, err, "a scalar has no name");
        if (!status)
            status = fini_sql_integer(sheet->store, statement, 3, 0, FIN_HOW_COUNT - 1,
                                      "how a scalar came about", &how, err);
        if (!status)
            status = fini_sql_integer(sheet->store, statement, 4, 0, INT64_MAX,
                                      "a number of samples", &row.scalar.samples, err);
        if (status)
            break;
        row.rank = name->rank;
        row.scalar.name = name->name;
        row.scalar.how = (fin_how)how;
        insert(sheet, &row);
    }
    sqlite3_reset(statement);
    return status;
}
