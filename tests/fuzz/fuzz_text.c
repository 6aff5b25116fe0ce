/* Short texts: the first byte says what the rest is read as. */
#include "fuzz_study.h"

#include "data/bags.h"
#include "finetti/context.h"
#include "finetti/bags.h"
#include "finetti/context_tune.h"
#include "finetti/train.h"
#include "lab/learner.h"

#include <math.h>

/* ---- formulas and conditions ----------------------------------------------------------------- */

/* The text as a setting, and a setting that follows it. */
static void fuzz_setting_formula(const char *text)
{
    const fin_command *risk = fin_command_find("risk");
    const fin_pair pairs[] = {{.name = "lam", .text = text},
                              {.name = "let.x", .text = "2"},
                              {.name = "nu", .text = "lam/x"}};
    void *values = malloc(risk->size);
    fin_error err = {FIN_OK, ""};
    int bad;
    FUZZ_CHECK(values);
    fin_status status = fin_command_apply(risk, values, pairs, 3, &bad, &err);
    FUZZ_CHECK(!status || err.message[0]);
    free(values);
}

static void fuzz_formula(const char *text)
{
    fuzz_setting_formula(text);
    enum { NAMES = 32 };
    fini_formula *formula;
    fini_number numbers[NAMES], answer;
    const char *names[NAMES];
    fin_error err = {FIN_OK, ""};
    fin_status status = fini_formula_parse(text, &formula, &err);
    FUZZ_CHECK(status ? !formula && err.message[0] : formula != NULL);
    if (status)
        return;
    int count = fini_formula_name_count(formula);
    FUZZ_CHECK(count >= 0 && count <= NAMES);
    for (int i = 0; i < count; i++) {
        names[i] = fini_formula_name(formula, i);
        FUZZ_CHECK(names[i][0]);
        numbers[i] = fini_number_make(i / 4.0, i % 3 ? 0.1 : 0,
                                      (fin_how)((size_t)i % FIN_HOW_COUNT), 10 * i);
    }
    FUZZ_CHECK(!fini_formula_values(formula, names, numbers, count, &answer, &err));
    FUZZ_CHECK(fin_how_name(answer.how) && !(answer.low > answer.high));
    if (count) {
        status = fini_formula_values(formula, names, numbers, count - 1, &answer, &err);
        FUZZ_CHECK(status && err.message[0]);
    }
    fini_formula_destroy(formula);
}

static void fuzz_condition(const char *text)
{
    fini_condition where;
    fin_error err = {FIN_OK, ""};
    fin_status status = fini_condition_parse(text, &where, &err);
    FUZZ_CHECK(status ? !where.name && err.message[0] : where.name && where.count >= 1);
    for (int i = 0; !status && i < where.count; i++)
        FUZZ_CHECK(where.lengths[i] >= 0 && (size_t)where.lengths[i] <= strlen(text));
    for (int i = 0; !status && i < 4; i++) {
        sqlite3_str *sql = sqlite3_str_new(NULL);
        where.setting = i & 1;
        where.name_id = i & 2;
        where.first = 1;
        fini_condition_sql(&where, sql);
        char *made = sqlite3_str_finish(sql);
        FUZZ_CHECK(made && made[0]);
        sqlite3_free(made);
    }
    fini_condition_free(&where);
}

/* ---- settings -------------------------------------------------------------------------------- */

/* A row of a table, by two letters: what it takes, it also prints, and takes again. */
static void fuzz_setting(const char *text)
{
    static const fin_settings *const tables[] = {
        &fin_risk_table,    &fin_train_table,   &fin_fit_table,   &fin_cross_table,
        &fin_encoder_table, &fin_corpus_table,  &fin_learn_table, &fin_study_table,
        &fin_tune_table,    &fin_overlaps_table};
    enum { TABLES = sizeof tables / sizeof *tables };
    fin_error err = {FIN_OK, ""};
    if (!text[0] || !text[1])
        return;
    const fin_settings *table = tables[(unsigned char)text[0] % TABLES];
    const fin_field *field = &table->fields[(unsigned char)text[1] % table->count];
    char shown[128];
    void *values = malloc(table->size), *again = malloc(table->size);
    FUZZ_CHECK(values && again);
    fin_settings_defaults(table, values, table->size);
    fin_status status = fin_settings_parse(table, values, field->name, text + 2, &err);
    FUZZ_CHECK(!status || err.message[0]);
    FUZZ_CHECK(!fin_settings_validate(table, values, &err));
    if (!status) {
        double number = fin_settings_get(field, values);
        fin_settings_defaults(table, again, table->size);
        FUZZ_CHECK(!isnan(number) && fin_settings_text(field, values, shown, sizeof shown));
        FUZZ_CHECK(!fin_settings_parse(table, again, field->name, shown, &err));
        FUZZ_CHECK(fin_settings_get(field, again) == number);
    }
    FUZZ_CHECK(fin_settings_parse(table, values, text + 2, "1", &err) ||
               fin_settings_find(table, text + 2));
    free(values);
    free(again);
}

/* Lists in one word: tidied, they say the same, and tidying them again changes nothing. */
static void fuzz_lists(const char *text)
{
    static const char *const names[] = {"risk", "oracle", "star", "linear", "bayes", "check", NULL};
    enum { ROOM = 512 };
    const fin_word pairs = {.size = ROOM, .kind = FIN_WORD_PAIRS};
    const fin_word wholes = {.size = ROOM, .kind = FIN_WORD_WHOLES};
    const fin_word list = {.size = ROOM, .kind = FIN_WORD_NAMES, .names = names};
    char tidy[ROOM] = "", twice[ROOM];
    fin_error err = {FIN_OK, ""};
    int64_t whole[FINI_PIECES], whole_again[FINI_PIECES];
    double number[FINI_PIECES], number_again[FINI_PIECES];
    int count, count_again;
    unsigned show, show_again;
    if (strlen(text) >= ROOM)
        return;
    strcpy(tidy, text);
    fini_word_tidy(&pairs, tidy);
    memcpy(twice, tidy, ROOM);
    fini_word_tidy(&pairs, twice);
    FUZZ_CHECK(strcmp(tidy, twice) == 0);
    if (!fini_parse_pieces(text, "x", "y", FINI_PIECES, whole, number, &count, &err)) {
        FUZZ_CHECK(!fini_parse_pieces(tidy, "x", "y", FINI_PIECES, whole_again, number_again,
                                      &count_again, &err) &&
                   count == count_again);
        for (int i = 0; i < count; i++)
            FUZZ_CHECK(whole[i] == whole_again[i] &&
                       (number[i] == number_again[i] || isnan(number[i])));
    }
    memset(tidy, 0, ROOM);
    strcpy(tidy, text);
    fini_word_tidy(&wholes, tidy);
    if (!fini_parse_wholes(text, "x", INT64_MIN, INT64_MAX, whole, &count, &err)) {
        FUZZ_CHECK(
            !fini_parse_wholes(tidy, "x", INT64_MIN, INT64_MAX, whole_again, &count_again, &err));
        FUZZ_CHECK(count == count_again && count <= FINI_WHOLES);
        FUZZ_CHECK(memcmp(whole, whole_again, (size_t)count * sizeof *whole) == 0);
    }
    memset(tidy, 0, ROOM);
    strcpy(tidy, text);
    fini_word_tidy(&list, tidy);
    if (!fini_parse_names(text, "x", names, &show, &err))
        FUZZ_CHECK(!fini_parse_names(tidy, "x", names, &show_again, &err) && show == show_again);
}

/* "name=text" on each line. */
static int fuzz_pairs(char *text, fin_pair *pairs, int most)
{
    int count = 0;
    for (char *line = text, *next; line && count < most; line = next) {
        char *equal = strchr(line, '=');
        if ((next = strchr(line, '\n')))
            *next++ = '\0';
        if (!equal || (next && equal >= next))
            continue;
        *equal = '\0';
        pairs[count++] = (fin_pair){line, equal + 1, NULL};
    }
    return count;
}

static sqlite3_stmt *fuzz_statement(const char *sql)
{
    static sqlite3 *db;
    sqlite3_stmt *statement;
    FUZZ_CHECK(db || sqlite3_open(":memory:", &db) == SQLITE_OK);
    FUZZ_CHECK(sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK);
    return statement;
}

/* The settings in canonical JSON; they are borrowed from room. */
static int fuzz_pairs_of_json(const char *json, char *room, fin_pair *pairs, int most)
{
    sqlite3_stmt *statement = fuzz_statement("SELECT key, iif(type = 'text', atom, ?1 -> fullkey) "
                                             "FROM json_each(?1, '$.settings')");
    int count = 0;
    sqlite3_bind_text(statement, 1, json, -1, SQLITE_STATIC);
    for (; count < most && sqlite3_step(statement) == SQLITE_ROW; count++) {
        const char *both[2];
        for (int k = 0; k < 2; k++) {
            both[k] = room;
            room += 1 + sprintf(room, "%s", (const char *)sqlite3_column_text(statement, k));
        }
        pairs[count] = (fin_pair){both[0], both[1], NULL};
    }
    sqlite3_finalize(statement);
    return count;
}

/* The settings of a command, by its first letter, then as lines. What is good is written as canonical
 * JSON, and that, read again, is the same. */
static void fuzz_job(char *text)
{
    enum { PAIRS = 256 };
    static char json[FIN_SETTINGS_TEXT], copy[FIN_SETTINGS_TEXT], again[FIN_SETTINGS_TEXT];
    fin_error err = {FIN_OK, ""};
    fin_pair pairs[PAIRS];
    int bad;
    if (!text[0])
        return;
    const fin_command *command = fin_command_at((unsigned char)text[0] % fin_command_count());
    void *values = malloc(command->size);
    FUZZ_CHECK(values);
    int count = fuzz_pairs(text + 1, pairs, PAIRS);
    fin_status status = fin_command_apply(command, values, pairs, count, &bad, &err);
    FUZZ_CHECK(status ? err.message[0] && bad >= -1 && bad < count : bad == -1);
    if (!status)
        status = fin_command_text(command, values, json, sizeof json, &err);
    if (!status && !strchr(json, '\\')) {
        count = fuzz_pairs_of_json(json, copy, pairs, PAIRS);
        FUZZ_CHECK(!fin_command_apply(command, values, pairs, count, &bad, &err));
        FUZZ_CHECK(!fin_command_text(command, values, again, sizeof again, &err));
        FUZZ_CHECK(strcmp(json, again) == 0);
    }
    free(values);
}

/* Any name is a path that SQLite can look for, in any JSON. */
static void fuzz_json(const char *text)
{
    char *path = malloc(strlen(text) + 16);
    FUZZ_CHECK(path);
    fini_setting_path(text, path);
    sqlite3_stmt *statement = fuzz_statement("SELECT json_type('{\"settings\":{\"L\":1}}', ?1)");
    sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC);
    FUZZ_CHECK(sqlite3_step(statement) == SQLITE_ROW);
    FUZZ_CHECK((sqlite3_column_type(statement, 0) != SQLITE_NULL) == (strcmp(text, "L") == 0));
    sqlite3_finalize(statement);
    free(path);
}

/* ---- columns, numbers, words ----------------------------------------------------------------- */

/* Lists of columns, and names of the bag's and the label's. */
static void fuzz_columns(const char *text)
{
    static const char table[] = "bag,label,x,z,x1,x2,t\na,0,1,2,3,4,u\nb,1,5,6,7,8,v\n";
    fin_bag_set *set;
    fin_error err = {FIN_OK, ""};
    for (int i = 0; i < 3; i++) {
        fin_bags_source source = {.path = "t.csv", .class_count = -1};
        *(i == 0 ? &source.features : i == 1 ? &source.label : &source.bag) = text;
        fin_status status = fini_bag_set_parse(&set, &source, table, sizeof table - 1, NULL, &err);
        FUZZ_CHECK(status ? !set && err.message[0] : set != NULL);
        if (!status)
            fuzz_look_at_set(set);
        fin_bag_set_destroy(set);
    }
}

static void fuzz_number(const char *text)
{
    double number, other;
    char buffer[FINI_NUMBER + 1], shortest[FINI_SHORTEST], *stop;
    const char *end = text + strlen(text), *at = fini_decimal(text, end, &number);
    FUZZ_CHECK(!at || (at > text && at <= end));
    FUZZ_CHECK(at || isinf(number) || isnan(number));
    if (at && !isnan(number) && text[strspn(text, "+-0")] != 'x' &&
        text[strspn(text, "+-0")] != 'X') {
        other = fini_strtod(text, &stop);
        FUZZ_CHECK(number == other && signbit(number) == signbit(other));
        buffer[fini_format(number, buffer)] = '\0';
        FUZZ_CHECK(fini_strtod(buffer, NULL) == number);
        FUZZ_CHECK(fini_shortest(number, shortest) == strlen(shortest));
        FUZZ_CHECK(fini_strtod(shortest, NULL) == number);
    }
    if (fini_read_number(text, &number))
        FUZZ_CHECK(!isnan(number));
    if (!fini_text_number(text, (int)strlen(text), &number))
        FUZZ_CHECK(isnan(number));
}

/* Anything in a message, and the name it is nearest to. */
static void fuzz_word(const char *text)
{
    static const char *const names[] = {"lam", "kappa", "softmax", "lam_schedule"};
    char buffer[40], hint[60];
    for (size_t room = 5; room <= sizeof buffer; room += 7) {
        const char *shown = fini_printable(text, strlen(text), buffer, room);
        const char *end = shown + strlen(shown);
        FUZZ_CHECK(strlen(shown) < room);
        for (int length; shown < end; shown += length)
            FUZZ_CHECK((length = fini_utf8_length(shown, end)) > 0);
    }
    FUZZ_CHECK(strlen(fini_hint(text, names, 4, hint, sizeof hint)) < sizeof hint);
    FUZZ_CHECK(fini_is_utf8(text, strlen(text)) || strlen(text) > 0);
    (void)fini_is_hash(text);
    (void)fini_is_id(text);
    (void)fini_is_name(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    fuzz_path("x"); /* one thread */
    char *text = malloc(size);
    FUZZ_CHECK(text);
    memcpy(text, data + 1, size - 1);
    text[size - 1] = '\0';
    switch (data[0] % 10) {
    case 0:
    case 1:
        fuzz_formula(text);
        break;
    case 2:
        fuzz_condition(text);
        break;
    case 3:
        fuzz_setting(text);
        break;
    case 4:
        fuzz_lists(text);
        break;
    case 5:
        fuzz_job(text);
        break;
    case 6:
        fuzz_json(text);
        break;
    case 7:
        fuzz_columns(text);
        break;
    case 8:
        fuzz_number(text);
        break;
    default:
        fuzz_word(text);
    }
    free(text);
    return 0;
}
