/* Settings that are formulas of others: the numbers, their order, and what is refused. */
#include "test_command.h"

#include "command/command.h"
#include "command/formula.h"

#include <math.h>
#include <string.h>

static const fin_pair spiked[] = {{.name = "task", .text = "spiked"}};

/* The canonical text of `risk` with these pairs behind task = spiked; "" and the message if they are refused. */
static const char *text_of(const fin_pair *more, int count, char buffer[FIN_SETTINGS_TEXT])
{
    const fin_command *risk = fin_command_find("risk");
    fin_pair pairs[8] = {spiked[0]};
    void *values = malloc(risk->size);
    assert_non_null(values);
    memcpy(pairs + 1, more, (size_t)count * sizeof *more);
    buffer[0] = '\0';
    if (!fin_command_apply(risk, values, pairs, count + 1, NULL, &err))
        assert_int_equal(fin_command_text(risk, values, buffer, FIN_SETTINGS_TEXT, &err), FIN_OK);
    free(values);
    return buffer;
}

/* A formula is the number: the same text, and so the same run. */
static void formula__is_the_number_typed(void **state)
{
    (void)state;
    static const struct {
        fin_pair formula[3], number[3];
    } cases[] = {
        {{{"lam", "sqrt(snr)", 0}, {"snr", "4", 0}}, {{"lam", "2", 0}, {"snr", "4", 0}}},
        {{{"L", "round(d^0.9)", 0}, {"d", "1000", 0}}, {{"L", "501", 0}, {"d", "1000", 0}}},
        {{{"lam", "snr", 0}, {"snr", "1/d", 0}, {"d", "400", 0}},
         {{"lam", "0.0025", 0},
          {"snr", "0.0025", 0},
          {"d", "400", 0}}}, /* a chain, before it is known */
        {{{"lam", "snr/3", 0}, {"snr", "1", 0}}, {{"lam", "0.333333333333", 0}, {"snr", "1", 0}}},
        {{{"lam", "x^2", 0}, {"let.x", "3", 0}}, {{"lam", "9", 0}, {"d", "400", 0}}},
        {{{"lam", "d-399", 0}, {"d", "d", 0}, {"d", "401", 0}}, /* the last one counts */
         {{"lam", "2", 0}, {"d", "401", 0}, {"d", "401", 0}}},
    };
    char a[FIN_SETTINGS_TEXT], b[FIN_SETTINGS_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int count = cases[i].formula[2].name ? 3 : 2;
        assert_string_equal(text_of(cases[i].formula, count, a),
                            text_of(cases[i].number, count, b));
        assert_true(a[0]);
    }
}

static void formula__refuses(void **state)
{
    (void)state;
    static const struct {
        fin_pair pairs[2];
        const char *says;
    } cases[] = {
        {{{"lam", "sqrt(sn)", 0}}, "did you mean snr?"},
        {{{"lam", "sqr(snr)", 0}}, "did you mean sqrt?"},
        {{{"L", "d^0.9", 0}}, "round(d^0.9)"},
        {{{"lam", "snr", 0}, {"snr", "lam", 0}}, "needs lam, which needs it"},
        {{{"lam", "lam+1", 0}}, "needs itself"},
        {{{"lam", "L_min*1", 0}}, "L_min is auto"},
        {{{"lam", "error(snr)", 0}}, "no error()"},
        {{{"lam", "log(snr-snr)*0", 0}}, "NaN"},
        {{{"lam", "-snr", 0}}, "it must be a number from 0"},
        {{{"lam", "snr+", 0}}, "lam = 'snr+'"},
        {{{"lam", "task", 0}}, "lam = 'task'"},
        {{{"lam", "y*2", 0}, {"let.y", "z", 0}}, "must be a number"},
    };
    char text[FIN_SETTINGS_TEXT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int count = cases[i].pairs[1].name ? 2 : 1;
        assert_string_equal(text_of(cases[i].pairs, count, text), "");
        if (!strstr(err.message, cases[i].says))
            fail_msg("'%s' does not say '%s'", err.message, cases[i].says);
    }
}

/* In a sweep a formula follows the columns: closed forms, point by point. */
static void formula__follows_the_points_of_a_sweep(void **state)
{
    (void)state;
    const fin_command *risk = fin_command_find("risk");
    const double d[] = {100, 400, 1600}, lam[] = {0.1, 0.05, 0.025};
    const fin_pair fixed[] = {{"lam", "1/sqrt(d)", 0}, {"show", "risk", 0}};
    const fin_column follow[] = {{"d", d, NULL}}, given[] = {{"d", d, NULL}, {"lam", lam, NULL}};
    fin_sweep *a, *b;
    assert_int_equal(
        fin_command_sweep(risk, fixed, 2, &(fin_sweep_points){3, follow, 1}, NULL, &a, NULL, &err),
        FIN_OK);
    assert_int_equal(fin_command_sweep(risk, fixed + 1, 1, &(fin_sweep_points){3, given, 2}, NULL,
                                       &b, NULL, &err),
                     FIN_OK);
    assert_string_equal(fin_sweep_get(a, 0).name, "risk");
    for (int i = 0; i < 3; i++)
        assert_true(fin_sweep_get(a, 0).value[i] == fin_sweep_get(b, 0).value[i]);
    assert_true(fin_sweep_get(a, 0).value[0] != fin_sweep_get(a, 0).value[1]);
    fin_sweep_destroy(a);
    fin_sweep_destroy(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formula__is_the_number_typed),
        cmocka_unit_test(formula__refuses),
        cmocka_unit_test(formula__follows_the_points_of_a_sweep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
