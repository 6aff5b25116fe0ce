/* The printer of the tool: what a form makes of a record. cmake/Tests.cmake links the tool's files. */
#include "cli.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void is_shown(const char *json, const char *form, const char *expected)
{
    char *text = NULL;
    size_t size;
    FILE *before = stdout;
    json_t *record = json_loads(json, JSON_DECODE_ANY, NULL);
    assert_non_null(record);
    stdout = open_memstream(&text, &size);
    cli_print(record, form);
    fclose(stdout);
    stdout = before;
    assert_string_equal(text, expected);
    free(text);
    json_decref(record);
}

static void value__as_it_is_and_formatted(void **state)
{
    (void)state;
    const char *r = "{\"n\": 2, \"one\": 1, \"x\": 0.125, \"t\": \"\xc3\xa4"
                    "bc\", \"z\": -1e-9,"
                    " \"a\": {\"b\": [5, 6]}, \"no\": null, \"nan\": \"nan\", \"inf\": \"inf\"}";
    is_shown(r, "{n} {x} {t}",
             "2 0.125 \xc3\xa4"
             "bc");
    is_shown(r, "{x:.2f}|{x:8.1f}|{x:-8.1f}|{n:4d}|{x:.1p}%", "0.12|     0.1|0.1     |   2|12.5%");
    is_shown(r, "{t:5s}|{t:-5s}|{t:.2s}|<6:{t}>|<-6:{t}>|",
             "  \xc3\xa4"
             "bc|\xc3\xa4"
             "bc  |\xc3\xa4"
             "b|   \xc3\xa4"
             "bc|\xc3\xa4"
             "bc   |");
    is_shown(r, "{z:.4f} {z:+.4f} {x:+.4f}", "0.0000 0.0000 +0.1250");
    is_shown(r, "{n#bag} {one#bag} {n#class/classes} {a.b#token}",
             "2 bags 1 bag 2 classes 2 tokens");
    is_shown(r, "{a.b.1} {missing} {no} {nan:6.2f} {inf:.2f}", "6 - -      - inf");
    is_shown(r, "\\{n\\} \\[\\]", "{n} []");
}

static void choice__of_what_is_there(void **state)
{
    (void)state;
    const char *r =
        "{\"n\": 2, \"zero\": 0, \"yes\": true, \"no\": false, \"t\": \"a\", \"e\": \"\"}";
    is_shown(r, "[n {n}|none][, m {m}][{m}|{k}|last]", "n 2last");
    is_shown(r, "[{?yes}1][{?no}2][{?zero}3][{?e}4][{?t}5][{!no}6][{!missing}7]", "1567");
    is_shown(r, "[{?t=a}1][{?t=b}2][{?n>1}3][{?n>2}4][{?n<3}5][{!t=b}6]", "1356");
    is_shown(r, "[{~m:4s}x]", "   -x"); /* a dash is all right */
    is_shown(r, "[a[b{m}]c]", "ac");    /* what is inside fails alone */
}

static void list__element_by_element(void **state)
{
    (void)state;
    const char *r = "{\"l\": [{\"v\": 1}, {\"v\": 2}, {}], \"o\": {\"a\": 1, \"b\": 2},"
                    " \"p\": {\"a\": 3, \"b\": 4}, \"none\": [], \"n\": 7}";
    is_shown(r, "{*l|[{?first}|, ]{v}}", "1, 2, -");
    is_shown(r, "{*o|{@}={.} {^p.@} {/n};}", "a=1 3 7;b=2 4 7;");
    is_shown(r, "[{*none|x}|empty]", "empty");
    is_shown(r, "{o=} {*l|[{?@<1}{v}]}", "a=1 b=2 1");
    is_shown("[1, 2, 3]", "{.,2} {.,3|({.})}", "1, 2, ... (1), (2), (3)");
}

static void lines__of_at_most_100(void **state)
{
    (void)state;
    char json[1024] = "[", expected[1024] = "names ";
    for (int i = 0; i < 30; i++) {
        sprintf(json + strlen(json), "%s\"name%02d\"", i ? "," : "", i);
        sprintf(expected + strlen(expected), "%sname%02d",
                i == 0   ? ""
                : i % 12 ? ", "
                         : ",\n      ",
                i);
    }
    strcat(json, "]");
    is_shown(json, "names {.,40}", expected);
}

static void cells__are_broken_at_spaces(void **state)
{
    (void)state;
    is_shown("{\"a\": \"one two three\", \"b\": \"four\"}", "{%7,0|{a}|{b}}",
             "one two  four\nthree\n");
    is_shown("{\"a\": \"x\", \"b\": \"\"}", "{%3,4,0|{a}|{b}|z}", "x          z\n");
}

/* A file may come from anyone. */
static void text__cannot_command_a_terminal(void **state)
{
    (void)state;
    is_shown("{\"t\": \"a\\u001b[31m\\nb\\u009b\"}", "{t}", "a?[31m b??");
    char buffer[4];
    assert_string_equal(cli_clean("ab\xc3\xa4", buffer, sizeof buffer),
                        "ab"); /* no half character */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(value__as_it_is_and_formatted),
        cmocka_unit_test(choice__of_what_is_there),
        cmocka_unit_test(list__element_by_element),
        cmocka_unit_test(lines__of_at_most_100),
        cmocka_unit_test(cells__are_broken_at_spaces),
        cmocka_unit_test(text__cannot_command_a_terminal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
