/* The settings of one run after the other, by name.
 *
 * Neighbours have nearly all of them in common: those are read once, and of each run only its own. */
#include "store/store.h"

#include <string.h>

fin_status fini_values_open(fin_store *store, fini_values *values, fin_error *err)
{
    *values = (fini_values){.store = store};
    return fini_sql_prepare(store,
                            "SELECT key, iif(type = 'text', atom, ?1 -> fullkey) "
                            "FROM json_each(?1, '$.settings')",
                            &values->statement, err);
}

static char *copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *own = fini_alloc(size);
    return own ? memcpy(own, text, size) : NULL;
}

void fini_values_close(fini_values *values)
{
    for (int i = 0; i < values->count; i++) {
        fini_free_all(values->value[i].name, values->value[i].common, values->value[i].own);
    }
    fini_free(values->value);
    sqlite3_finalize(values->statement);
    *values = (fini_values){0};
}

/* The place of a name, made if need be. */
static fin_status place(fini_values *values, const char *name, fini_value **out, fin_error *err)
{
    int low = 0, high = values->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        int order = strcmp(values->value[middle].name, name);
        *out = &values->value[middle];
        if (order == 0)
            return FIN_OK;
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    if (values->count == values->room) {
        int room = values->room ? values->room * 2 : 64;
        fini_value *larger = fini_alloc_array(room, sizeof *larger);
        if (!larger)
            return fini_fail_memory(err, (size_t)room * sizeof *larger, "the settings of a run");
        if (values->count)
            memcpy(larger, values->value, (size_t)values->count * sizeof *larger);
        fini_free(values->value);
        values->value = larger;
        values->room = room;
    }
    *out = &values->value[low];
    char *own = copy(name);
    if (!own)
        return fini_fail_memory(err, strlen(name), "the name of a setting");
    memmove(*out + 1, *out, (size_t)(values->count++ - low) * sizeof **out);
    **out = (fini_value){.name = own};
    return FIN_OK;
}

static fin_status read_json(fini_values *values, const char *json, bool own, fin_error *err)
{
    sqlite3_stmt *statement = values->statement;
    bool row = false;
    const char *name, *text;
    fini_value *value = NULL;
    fini_sql_bind_text(statement, 1, json);
    fin_status status = FIN_OK;
    while (!status && !(status = fini_sql_step(values->store, statement, &row, err)) && row) {
        status = fini_sql_text(values->store, statement, 0, FIN_SETTINGS_TEXT,
                               "the name of a setting", &name, err);
        if (!status)
            status = fini_sql_text(values->store, statement, 1, FIN_SETTINGS_TEXT, "a setting",
                                   &text, err);
        if (!status)
            status = place(values, name, &value, err);
        if (status)
            break;
        char **kept = own ? &value->own : &value->common;
        fini_free(*kept);
        *kept = copy(text);
        value->text = *kept;
        if (!*kept)
            status = fini_fail_memory(err, strlen(text), "a setting");
    }
    sqlite3_reset(statement);
    return status;
}

fin_status fini_values_read(fini_values *values, const fini_cursor *cursor, fin_error *err)
{
    bool same = values->common_id == cursor->common_id;
    for (int i = 0; i < values->count; i++) {
        fini_value *value = &values->value[i];
        if (value->own || !same) {
            fini_free(value->own);
            value->own = NULL;
        }
        if (!same) {
            fini_free(value->common);
            value->common = NULL;
        }
        value->text = value->common;
    }
    values->common_id = 0;
    if (!same)
        FINI_TRY(read_json(values, cursor->run.settings, false, err));
    if (strcmp(cursor->own, "{}") != 0)
        FINI_TRY(read_json(values, cursor->own, true, err));
    values->common_id = cursor->common_id;
    return FIN_OK;
}
