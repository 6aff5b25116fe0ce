/* Settings out of canonical JSON, read by SQLite. */
#ifndef TEST_JSON_H
#define TEST_JSON_H

#include "test_data.h"

#include <sqlite3.h>

/* As text, words without their quotes; NULL: there is no such setting, or it is no JSON. */
static inline const char *json_setting(const char *json, const char *name)
{
    static char texts[8][1024], path[128];
    static int next;
    sqlite3 *db;
    sqlite3_stmt *statement;
    char *text = texts[next++ % 8];
    snprintf(path, sizeof path, "$.settings.\"%s\"", name);
    assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db,
                                        "SELECT iif(json_type(?1, ?2) = 'text', ?1 ->> ?2, "
                                        "?1 -> ?2)",
                                        -1, &statement, NULL),
                     SQLITE_OK);
    sqlite3_bind_text(statement, 1, json, -1, SQLITE_STATIC);
    sqlite3_bind_text(statement, 2, path, -1, SQLITE_STATIC);
    int found =
        sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) == SQLITE_TEXT;
    if (found)
        snprintf(text, sizeof texts[0], "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return found ? text : NULL;
}

#endif
