/* Settings tables: every table of the library, at its limits, past them, NaN, in and out of text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "finetti/attention.h"
#include "finetti/task.h"
#include "finetti/theory.h"

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A table with one field of each kind, for what the library's own tables do not have. */
#define TOY_FIELDS(F, C)                                                                           \
    F(int64_t, count, 3, -5, INT64_C(1) << 60, "a whole number")                                   \
    F(int64_t, most, FIN_AUTO_INT, 1, 100, "a whole number or auto")                               \
    F(double, size, 0.5, -2, 2, "a number")                                                        \
    F(double, scale, FIN_AUTO, 0, INFINITY, "a number or auto")                                    \
    C(colour, 1, "red|green|deep blue", "a choice")
typedef struct toy {
    TOY_FIELDS(FIN_MEMBER_F, FIN_MEMBER_C)
} toy;
#define FIN_TABLE_STRUCT toy
FIN_TABLE(static, toy_table, "toy", TOY_FIELDS);

enum { MOST_TABLES = 64 };
static const fin_settings *tables[MOST_TABLES];
static int table_count;

static int collect(void **state)
{
    (void)state;
    for (int i = 0; i < fin_task_count(); i++)
        tables[table_count++] = fin_task_kind_table(fin_task_at(i));
    for (int i = 0; i < fin_form_count(); i++)
        tables[table_count++] = fin_form_table(fin_form_at(i));
    tables[table_count++] = &fin_overlaps_table;
    tables[table_count++] = &fin_risk_table;
    tables[table_count++] = &toy_table;
    return 0;
}

typedef union values {
    fin_task_settings task;
    fin_form_settings form;
    fin_overlaps overlaps;
    fin_risk_settings risk;
    toy toy;
} values;

/* Writes past every check, as a caller who fills the struct himself may. */
static void poke(values *v, const fin_field *field, double number, int64_t whole, int choice)
{
    unsigned char *at = (unsigned char *)v + field->offset;
    if (field->type == FIN_TYPE_double)
        memcpy(at, &number, sizeof number);
    else if (field->type == FIN_TYPE_int64_t)
        memcpy(at, &whole, sizeof whole);
    else
        memcpy(at, &choice, sizeof choice);
}

static void expect(fin_status want, const fin_settings *table, const fin_field *field,
                   const values *v, const char *what)
{
    fin_error err = {FIN_OK, ""};
    fin_status got = fin_settings_validate(table, v, &err);
    if (got != want)
        fail_msg("%s.%s %s: '%s', message '%s'", table->name, field->name, what,
                 fin_status_name(got), err.message);
    if (want) { /* the message names table and field */
        assert_int_equal(err.status, want);
        assert_non_null(strstr(err.message, table->name));
        assert_non_null(strstr(err.message, field->name));
        assert_int_equal(fin_settings_validate(table, v, NULL), want);
    }
}

static int choices(const fin_field *field)
{
    int count = 1;
    for (const char *c = field->names; *c; c++)
        count += *c == '|';
    return count;
}

static void validate__every_limit_of_every_table(void **state)
{
    (void)state;
    int fields = 0;
    for (int t = 0; t < table_count; t++) {
        const fin_settings *table = tables[t];
        assert_true(table->size <= sizeof(values) && table->count >= 0);
        for (int i = 0; i < table->count; i++, fields++) {
            const fin_field *field = &table->fields[i];
            values v;
            memset(&v, 0xff, sizeof v);
            fin_settings_defaults(table, &v, sizeof v);
            expect(FIN_OK, table, field, &v, "by default");
            assert_true(fin_settings_get(field, &v) == field->fallback);
            assert_true(field->meaning && field->meaning[0] &&
                        fin_settings_find(table, field->name) == field);
            if (field->type == FIN_TYPE_choice) {
                poke(&v, field, 0, 0, choices(field) - 1);
                expect(FIN_OK, table, field, &v, "last choice");
                poke(&v, field, 0, 0, choices(field));
                expect(FIN_ERR_ARGUMENT, table, field, &v, "past the last choice");
                poke(&v, field, 0, 0, -1);
                expect(FIN_ERR_ARGUMENT, table, field, &v, "choice -1");
                continue;
            }
            int64_t low = field->lowest > -9e18 ? (int64_t)field->lowest : 0,
                    high = field->highest < 9e18 ? (int64_t)field->highest : 0;
            poke(&v, field, field->lowest, low, 0);
            expect(FIN_OK, table, field, &v, "at its lowest");
            poke(&v, field, field->highest, high, 0);
            expect(FIN_OK, table, field, &v, "at its highest");
            poke(&v, field, nextafter(field->lowest, -INFINITY), low - 1, 0);
            expect(FIN_ERR_ARGUMENT, table, field, &v, "just below its lowest");
            if (!isinf(field->highest)) {
                poke(&v, field, nextafter(field->highest, INFINITY), high + 1, 0);
                expect(FIN_ERR_ARGUMENT, table, field, &v, "just above its highest");
                poke(&v, field, INFINITY, INT64_MAX, 0);
                expect(FIN_ERR_ARGUMENT, table, field, &v, "inf or INT64_MAX");
            }
            poke(&v, field, NAN, INT64_MIN, 0);
            expect(FIN_ERR_ARGUMENT, table, field, &v, "NaN or INT64_MIN");
            poke(&v, field, FIN_AUTO, FIN_AUTO_INT, 0);
            expect(fin_is_auto(field->fallback) ? FIN_OK : FIN_ERR_ARGUMENT, table, field, &v,
                   "auto");
        }
    }
    print_message("%d tables, %d fields\n", table_count, fields);
    assert_true(table_count >= 12 && fields > 40);
}

/* fin_settings_set refuses what validate refuses, and leaves the value alone. */
static void set__keeps_to_the_limits(void **state)
{
    (void)state;
    for (int t = 0; t < table_count; t++)
        for (int i = 0; i < tables[t]->count; i++) {
            const fin_settings *table = tables[t];
            const fin_field *field = &table->fields[i];
            double low = field->type == FIN_TYPE_choice ? 0 : field->lowest;
            double high = field->type == FIN_TYPE_choice ? choices(field) - 1 : field->highest;
            double step = field->type == FIN_TYPE_double ? 0 : 1;
            double good[] = {low, high, field->fallback};
            double bad[] = {NAN,
                            -INFINITY,
                            step ? low - 1 : nextafter(low, -INFINITY),
                            step ? low + 0.5 : NAN,
                            isinf(high) ? NAN : INFINITY,
                            isinf(high) ? NAN
                                        : nextafter(high, INFINITY) + (high < 1e15 ? step : 0),
                            fin_is_auto(field->fallback) ? NAN : FIN_AUTO};
            values v;
            fin_settings_defaults(table, &v, sizeof v);
            for (size_t j = 0; j < sizeof good / sizeof *good; j++) {
                assert_int_equal(fin_settings_set(table, &v, field, good[j], NULL), FIN_OK);
                assert_true(fin_settings_get(field, &v) == good[j]);
            }
            for (size_t j = 0; j < sizeof bad / sizeof *bad; j++) {
                fin_error err = {FIN_OK, ""};
                values before = v;
                if (fin_settings_set(table, &v, field, bad[j], &err) != FIN_ERR_ARGUMENT)
                    fail_msg("%s.%s took %.17g", table->name, field->name, bad[j]);
                assert_non_null(strstr(err.message, field->name));
                assert_memory_equal(&before, &v, table->size);
            }
        }
}

/* Either "auto" number given to either type of field means auto, and is stored as that type's own.
 */
static void set__auto_fits_the_type(void **state)
{
    (void)state;
    toy v;
    const double automatic[] = {FIN_AUTO, (double)FIN_AUTO_INT};
    for (int i = 0; i < 2; i++) {
        fin_settings_defaults(&toy_table, &v, sizeof v);
        v.most = 7;
        v.scale = 7;
        assert_int_equal(fin_settings_set(&toy_table, &v, fin_settings_find(&toy_table, "most"),
                                          automatic[i], NULL),
                         FIN_OK);
        assert_int_equal(fin_settings_set(&toy_table, &v, fin_settings_find(&toy_table, "scale"),
                                          automatic[i], NULL),
                         FIN_OK);
        assert_true(v.most == FIN_AUTO_INT);
        assert_true(fin_is_auto(v.scale));
        assert_int_equal(fin_settings_validate(&toy_table, &v, NULL), FIN_OK);
    }
    assert_true(fin_is_auto(FIN_AUTO) && fin_is_auto((double)FIN_AUTO_INT));
    assert_false(fin_is_auto(0) || fin_is_auto(NAN) || fin_is_auto(-INFINITY) ||
                 fin_is_auto(-1e299));
}

static void parse__reads_what_it_should(void **state)
{
    (void)state;
    const struct {
        const char *field, *text;
        double value;
    } good[] = {
        {"count", "12", 12},
        {"count", "-5", -5},
        {"count", "1e3", 1000},
        {"count", "+7", 7},
        {"count", "4.0", 4},
        {"most", "auto", (double)FIN_AUTO_INT},
        {"most", "100", 100},
        {"size", "-2", -2},
        {"size", "1e-3", 1e-3},
        {"size", "0.1", 0.1},
        {"size", "-0", 0},
        {"size", "1e-999", 0},
        {"scale", "inf", INFINITY},
        {"scale", "INF", INFINITY},
        {"scale", "infinity", INFINITY},
        {"scale", "auto", FIN_AUTO},
        {"scale", "1.7976931348623157e308", 1.7976931348623157e308},
        {"scale", "4.9e-324", 4.9406564584124654e-324},
        {"colour", "red", 0},
        {"colour", "GREEN", 1},
        {"colour", "deep blue", 2},
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        toy v;
        fin_error err = {FIN_OK, ""};
        fin_settings_defaults(&toy_table, &v, sizeof v);
        if (fin_settings_parse(&toy_table, &v, good[i].field, good[i].text, &err))
            fail_msg("%s = '%s': %s", good[i].field, good[i].text, err.message);
        double got = fin_settings_get(fin_settings_find(&toy_table, good[i].field), &v);
        if (got != good[i].value)
            fail_msg("%s = '%s' was read as %.17g", good[i].field, good[i].text, got);
    }
}

static void parse__refuses_what_it_should(void **state)
{
    (void)state;
    const struct {
        const char *field, *text;
    } bad[] = {
        {"count", ""},
        {"count", "1.5"},
        {"count", "12x"},
        {"count", "12 "},
        {"count", "nan"},
        {"count", "inf"},
        {"count", "-inf"},
        {"count", "auto"},
        {"count", "-6"},
        {"count", "1e999"},
        {"count", "9e18"},
        {"count", "1,000"},
        {"count", "- 4"},
        {"count", "two"},
        {"count", "--4"},
        {"most", "Auto "},
        {"most", "auto1"},
        {"most", "101"},
        {"most", "-1152921504606846976"},
        {"size", "2.0001"},
        {"size", "-inf"},
        {"size", "nan"},
        {"size", "nan(1)"},
        {"size", "1e999"},
        {"size", "-1e999"},
        {"size", "0.5e"},
        {"size", "1..5"},
        {"size", "auto"},
        {"size", " "},
        {"scale", "-1e300"},
        {"scale", "1e999"},
        {"scale", "-inf"},
        {"scale", "infinit"},
        {"scale", "-1"},
        {"colour", "r"},
        {"colour", ""},
        {"colour", "blue"},
        {"colour", "0"},
        {"colour", "red|green"},
        {"colour", "redd"},
        {"shape", "1"},
        {"", "1"},
        {"Count", "1"},
        {"coun", "1"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        toy v, before;
        fin_error err = {FIN_OK, ""};
        fin_settings_defaults(&toy_table, &v, sizeof v);
        memcpy(&before, &v, sizeof v);
        if (fin_settings_parse(&toy_table, &v, bad[i].field, bad[i].text, &err) != FIN_ERR_ARGUMENT)
            fail_msg("%s = '%s' was taken", bad[i].field, bad[i].text);
        assert_true(err.status == FIN_ERR_ARGUMENT && strstr(err.message, "toy") &&
                    strstr(err.message, bad[i].field));
        assert_memory_equal(&before, &v, sizeof v);
        assert_int_equal(fin_settings_parse(&toy_table, &v, bad[i].field, bad[i].text, NULL),
                         FIN_ERR_ARGUMENT);
    }
    char word[3000]; /* a long text does not break the message */
    memset(word, 'y', sizeof word);
    word[sizeof word - 1] = 0;
    toy v;
    fin_error err;
    fin_settings_defaults(&toy_table, &v, sizeof v);
    const char *const fields[] = {"count", "size", "colour", word};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(fin_settings_parse(&toy_table, &v, fields[i], word, &err),
                         FIN_ERR_ARGUMENT);
        assert_true(strlen(err.message) < sizeof err.message - 1);
    }
}

/* The number a person reads is the number that is stored, whatever the host's locale. */
static void parse__does_not_follow_the_locale(void **state)
{
    (void)state;
    const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    const char *chosen = NULL;
    for (int i = 0; i < 4 && !chosen; i++)
        chosen = setlocale(LC_NUMERIC, names[i]);
    print_message("locale %s\n", chosen ? chosen : "C only: nothing tested beyond it");
    toy v;
    fin_settings_defaults(&toy_table, &v, sizeof v);
    assert_int_equal(fin_settings_parse(&toy_table, &v, "size", "0.25", NULL), FIN_OK);
    assert_true(v.size == 0.25);
    assert_int_equal(fin_settings_parse(&toy_table, &v, "size", "0,25", NULL), FIN_ERR_ARGUMENT);
    setlocale(LC_NUMERIC, "C");
}

static void text__reads_back_equal(void **state)
{
    (void)state;
    const double numbers[] = {0,         0.1,  1.0 / 3,    1e-5,     123456,
                              1234567.5, 1e22, 1e300,      4.9e-324, 0.70710678118654757,
                              INFINITY,  2,    1 + 0x1p-52};
    char text[64];
    for (int t = 0; t < table_count; t++)
        for (int i = 0; i < tables[t]->count; i++) {
            const fin_field *field = &tables[t]->fields[i];
            values v, back;
            fin_settings_defaults(tables[t], &v, sizeof v);
            for (size_t j = 0; j <= sizeof numbers / sizeof *numbers + 2; j++) {
                if (j < sizeof numbers / sizeof *numbers)
                    (void)fin_settings_set(tables[t], &v, field, numbers[j],
                                           NULL); /* some are refused */
                else if (field->type != FIN_TYPE_choice && j > sizeof numbers / sizeof *numbers)
                    (void)fin_settings_set(tables[t], &v, field,
                                           j & 1 ? field->lowest : field->highest, NULL);
                fin_settings_defaults(tables[t], &back, sizeof back);
                assert_ptr_equal(fin_settings_text(field, &v, text, sizeof text), text);
                if (fin_settings_parse(tables[t], &back, field->name, text, NULL) ||
                    fin_settings_get(field, &v) != fin_settings_get(field, &back))
                    fail_msg("%s.%s: '%s' does not read back", tables[t]->name, field->name, text);
            }
        }
    toy v = {.count = (INT64_C(1) << 53) - 1,
             .most = FIN_AUTO_INT,
             .size = 0.1,
             .scale = INFINITY,
             .colour = 2};
    const char *const want[] = {"9007199254740991", "auto", "0.1", "inf", "deep blue"};
    for (int i = 0; i < 5; i++)
        assert_string_equal(fin_settings_text(&toy_table.fields[i], &v, text, sizeof text),
                            want[i]);
    char tiny[3] = "zz"; /* a short buffer is cut, not overrun */
    fin_settings_text(&toy_table.fields[4], &v, tiny, sizeof tiny);
    assert_string_equal(tiny, "de");
}

static void nearest_name__finds_slips(void **state)
{
    (void)state;
    static const char *const names[] = {"slr", "spiked", "max", "softmax", "softplus", "lam"};
    const struct {
        const char *word, *want;
    } cases[] = {{"spikd", "spiked"}, {"sotfmax", "softmax"}, {"softplu", "softplus"},
                 {"lan", "lam"},      {"max", "max"},         {"soft", "softmax"},
                 {"zzzzzz", NULL},    {"lr", "slr"},          {"hardmaxx", NULL},
                 {"", NULL},          {"spi", "spiked"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *got = fin_nearest_name(cases[i].word, names, 6);
        if (!cases[i].want != !got || (got && strcmp(got, cases[i].want) != 0))
            fail_msg("nearest to '%s' is '%s'", cases[i].word, got ? got : "none");
    }
    assert_null(fin_nearest_name("slr", names, 0));
    char word[500];
    memset(word, 'a', sizeof word);
    word[sizeof word - 1] = 0;
    assert_null(fin_nearest_name(word, names, 6));
    assert_int_equal(fini_edit_distance("kitten", "sitting", 5), 3);
    assert_int_equal(fini_edit_distance("", "abc", 5), 3);
    assert_int_equal(fini_edit_distance("abc", "abc", 0), 0);
    assert_int_equal(fini_edit_distance("abc", "xyz", 2), 3); /* "more than 2" */
}

static void text__says_that_there_is_no_such_choice(void **state)
{
    (void)state;
    toy toy_values;
    char text[32];
    fin_settings_defaults(&toy_table, &toy_values, sizeof toy_values);
    const fin_field *colour = fin_settings_find(&toy_table, "colour");
    toy_values.colour = 3;
    assert_string_equal(fin_settings_text(colour, &toy_values, text, sizeof text), "choice 3 of 3");
    toy_values.colour = -1;
    assert_string_equal(fin_settings_text(colour, &toy_values, text, sizeof text),
                        "choice -1 of 3");
}

/* A program that was built when the last rows were not there yet: its struct ends before them. */
static void defaults__leave_what_an_older_struct_has_not(void **state)
{
    (void)state;
    for (size_t size = 0; size <= sizeof(toy); size++) {
        toy all, toy_values;
        unsigned char *bytes = (unsigned char *)&toy_values;
        memset(&toy_values, 0xa5, sizeof toy_values);
        fin_settings_defaults(&toy_table, &all, sizeof all);
        fin_settings_defaults(&toy_table, &toy_values, size);
        for (size_t i = size; i < sizeof toy_values; i++)
            assert_int_equal(bytes[i], 0xa5);
        for (int i = 0; i < toy_table.count; i++) {
            const fin_field *field = &toy_table.fields[i];
            size_t width = field->type == FIN_TYPE_choice ? sizeof(fin_choice) : sizeof(double);
            if (field->offset + width <= size)
                assert_memory_equal(bytes + field->offset,
                                    (const unsigned char *)&all + field->offset, width);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(validate__every_limit_of_every_table),
        cmocka_unit_test(set__keeps_to_the_limits),
        cmocka_unit_test(set__auto_fits_the_type),
        cmocka_unit_test(parse__reads_what_it_should),
        cmocka_unit_test(parse__refuses_what_it_should),
        cmocka_unit_test(parse__does_not_follow_the_locale),
        cmocka_unit_test(text__reads_back_equal),
        cmocka_unit_test(text__says_that_there_is_no_such_choice),
        cmocka_unit_test(defaults__leave_what_an_older_struct_has_not),
        cmocka_unit_test(nearest_name__finds_slips),
    };
    return cmocka_run_group_tests_name("base_settings", tests, collect, NULL);
}
