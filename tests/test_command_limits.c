/* Every settings table of the library, those of commands for studies included, through the parser
 * that the tool and studies use: each row at its limits, past them, and with what is no value.
 * tests/cli/limits.sh has what the tool makes of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "finetti/attention.h"
#include "finetti/context.h"
#include "finetti/encoder.h"
#include "finetti/encoder_learn.h"
#include "finetti/encoder_probe.h"
#include "finetti/math.h"
#include "finetti/study.h"
#include "finetti/task.h"
#include "finetti/family.h"
#include "finetti/theory.h"
#include "finetti/train.h"
#include "finetti/bags.h"
#include "finetti/context_tune.h"
#include "study/study.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TABLES = 256, MOST_BYTES = 1 << 15 };
static const fin_settings *tables[MOST_TABLES];
static int table_count;

static void add(const fin_settings *table)
{
    for (int i = 0; i < table_count; i++)
        if (tables[i] == table)
            return;
    assert_true(table && table_count < MOST_TABLES && table->size <= MOST_BYTES);
    tables[table_count++] = table;
}

/* The tables of a command for studies, with a word that chooses among tables (or none). */
static void add_job(const fin_command *command, const char *word, const char *choice)
{
    fin_pair pair = {word, choice, NULL};
    fin_group groups[FIN_GROUPS];
    int count = 0;
    void *values = calloc(1, command->size);
    assert_non_null(values);
    if (!fini_command_fill(command, values, &pair, word ? 1 : 0, NULL) &&
        !fin_command_groups(command, values, groups, &count,
                            NULL)) /* not every family goes with every command */
        for (int i = 0; i < count; i++)
            add(groups[i].table);
    else
        assert_non_null(word);
    free(values);
}

static int collect(void **state)
{
    (void)state;
    static const fin_settings *const fixed[] = {
        &fin_overlaps_table, &fin_risk_table,  &fin_covariance_table, &fin_cross_table,
        &fin_tune_table,     &fin_train_table, &fin_fit_table,        &fin_corpus_table,
        &fin_learn_table,    &fin_probe_table, &fin_encoder_table,    &fin_study_table,
    };
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        add(fixed[i]);
    for (int i = 0; i < fin_task_count(); i++)
        add(fin_task_kind_table(fin_task_at(i)));
    for (int i = 0; i < fin_form_count(); i++)
        add(fin_form_table(fin_form_at(i)));
    for (int i = 0; i < fin_family_count(); i++)
        add(fin_family_table(fin_family_at(i)));
    int shared = table_count;
    for (int j = 0; j < fin_command_count(); j++) {
        const fin_command *command = fin_command_at(j);
        add_job(command, NULL, NULL);
        for (const fin_word *word = command->words; word->name; word++) {
            for (int i = 0; strcmp(word->name, "task") == 0 && i < fin_task_count(); i++)
                add_job(command, word->name, fin_task_kind_name(fin_task_at(i)));
            for (int i = 0; strcmp(word->name, "form") == 0 && i < fin_form_count(); i++)
                add_job(command, word->name, fin_form_name(fin_form_at(i)));
            for (int i = 0; strcmp(word->name, "family") == 0 && i < fin_family_count(); i++)
                add_job(command, word->name, fin_family_name(fin_family_at(i)));
        }
    }
    print_message("%d tables, %d of them of commands for studies alone\n", table_count,
                  table_count - shared);
    return shared < 25 || table_count - shared < 15;
}

static int tried;
static _Alignas(max_align_t) unsigned char values[MOST_BYTES], before[MOST_BYTES];

/* A value that is taken, and read as this number. */
static void takes(const fin_settings *table, const fin_field *field, const char *text, double want)
{
    fin_error err = {FIN_OK, ""};
    fin_settings_defaults(table, values, table->size);
    if (fin_settings_parse(table, values, field->name, text, &err))
        fail_msg("%s.%s = '%s': %s", table->name, field->name, text, err.message);
    double got = fin_settings_get(field, values);
    if (got != want)
        fail_msg("%s.%s = '%s' was read as %.17g", table->name, field->name, text, got);
    assert_int_equal(fin_settings_validate(table, values, NULL), FIN_OK);
    tried++;
}

/* A value that is refused in a message that names the row; the old value stays. */
static void refuses(const fin_settings *table, const fin_field *field, const char *text)
{
    fin_error err = {FIN_OK, ""};
    fin_settings_defaults(table, values, table->size);
    memcpy(before, values, table->size);
    if (fin_settings_parse(table, values, field->name, text, &err) != FIN_ERR_ARGUMENT)
        fail_msg("%s.%s took '%s'", table->name, field->name, text);
    if (err.status != FIN_ERR_ARGUMENT || !strstr(err.message, table->name) ||
        !strstr(err.message, field->name) || strchr(err.message, '\n'))
        fail_msg("%s.%s = '%s': %s", table->name, field->name, text, err.message);
    assert_memory_equal(before, values, table->size);
    tried++;
}

static void try_number(const fin_settings *table, const fin_field *field)
{
    static const char *const never[] = {"nan",  "-nan", "NAN",      "",         " ",        "text",
                                        "1x",   "x1",   "--",       "1 ",       "1,5",      "1e999",
                                        "-inf", "1e",   "0x1p2000", "-1e99999", "1..5",     "+-1",
                                        "1;2",  "1 2",  "infinit",  "auto1",    "-infinity"};
    int whole = field->type == FIN_TYPE_int64_t;
    double low = field->lowest, high = field->highest;
    char text[400];
    /* Numbers beyond 2^53 have neighbours further than 1 away. */
    snprintf(text, sizeof text, whole ? "%.0f" : "%.17g", low);
    takes(table, field, text, low);
    snprintf(text, sizeof text, whole ? "%.0f" : "%.17g", high);
    takes(table, field, text, high);
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        refuses(table, field, never[i]);
    snprintf(text, sizeof text, whole ? "%.0f" : "%.17g",
             whole && fabs(low) < 0x1p53 ? low - 1 : nextafter(low, -INFINITY));
    refuses(table, field, text);
    if (isfinite(high)) {
        snprintf(text, sizeof text, whole ? "%.0f" : "%.17g",
                 whole && fabs(high) < 0x1p53 ? high + 1 : nextafter(high, INFINITY));
        refuses(table, field, text);
        refuses(table, field, "inf");
    }
    if (whole) {
        snprintf(text, sizeof text, "%.1f", low + 0.5); /* between its limits, if not both */
        refuses(table, field, text);
        refuses(table, field, "1.5");
        refuses(table, field, "9223372036854775808");
        refuses(table, field, "-9223372036854775809");
    }
    if (fin_is_auto(field->fallback))
        takes(table, field, "auto", field->fallback);
    else
        refuses(table, field, "auto");
}

static void try_choice(const fin_settings *table, const fin_field *field)
{
    char text[400];
    int index = 0;
    for (const char *name = field->names; name; index++) {
        size_t length = strcspn(name, "|");
        assert_true(length > 0 && length < 100);
        snprintf(text, sizeof text, "%.*s", (int)length, name);
        takes(table, field, text, index);
        snprintf(text, sizeof text, "%.*sx", (int)length, name);
        refuses(table, field, text);
        snprintf(text, sizeof text, " %.*s", (int)length, name);
        refuses(table, field, text);
        name = name[length] ? name + length + 1 : NULL;
    }
    static const char *const never[] = {"", " ", "nonsense", "0", "1", "-1", "nan", "auto ", "|"};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        refuses(table, field, never[i]);
    if (index > 1)
        refuses(table, field, field->names); /* all of them */
}

static void parse__every_row_of_every_table(void **state)
{
    (void)state;
    int rows = 0;
    tried = 0;
    for (int t = 0; t < table_count; t++)
        for (int i = 0; i < tables[t]->count; i++, rows++)
            if (tables[t]->fields[i].type == FIN_TYPE_choice)
                try_choice(tables[t], &tables[t]->fields[i]);
            else
                try_number(tables[t], &tables[t]->fields[i]);
    print_message("%d tables, %d rows, %d values\n", table_count, rows, tried);
    assert_true(rows > 250);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(parse__every_row_of_every_table)};
    return cmocka_run_group_tests_name("study_limits", tests, collect, NULL);
}
