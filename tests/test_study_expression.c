/* Formulas of columns: what they are worth, how errors pass through them, what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fault.h"
#include "study/study.h"

#include <math.h>
#include <string.h>

static fin_error err;

static const char *const names[] = {"a", "b", "gone", "share", "z_2", "all", "none"};
enum { NAMES = sizeof names / sizeof *names };
static fini_number numbers[NAMES];

static int make_numbers(void **state)
{
    (void)state;
    numbers[0] = fini_number_make(3, 0.3, FIN_HOW_SIMULATION, 100);
    numbers[1] = fini_number_make(-2, 0, FIN_HOW_CLOSED, 0);
    numbers[2] = fini_number_make(NAN, 0, FIN_HOW_CLOSED, 0);
    numbers[3] = fini_number_make(0.5, 0, FIN_HOW_SHARE, 100);
    numbers[4] = fini_number_make(4, 0.4, FIN_HOW_SIMULATION, 50);
    numbers[5] = fini_number_make(1, 0, FIN_HOW_SHARE, 8);
    numbers[6] = fini_number_make(0, 0, FIN_HOW_SHARE, 8);
    return 0;
}

static fini_number value_of(const char *text)
{
    fini_formula *formula;
    fini_number number = {.value = NAN};
    if (fini_formula_parse(text, &formula, &err) ||
        fini_formula_values(formula, names, numbers, NAMES, &number, &err))
        fail_msg("'%s': %s", text, err.message);
    fini_formula_destroy(formula);
    return number;
}

static void expect(const char *text, double value)
{
    double got = value_of(text).value;
    if (!(fabs(got - value) <= 1e-14 * fabs(value) || got == value || (isnan(got) && isnan(value))))
        fail_msg("'%s' is %.17g, not %.17g", text, got, value);
}

static void formula__knows_arithmetic(void **state)
{
    (void)state;
    expect("1 + 2 * 3", 7);
    expect("(1 + 2) * 3", 9);
    expect("10 - 4 - 3", 3);
    expect("16 / 4 / 2", 2);
    expect("2 ^ 3 ^ 2", 512);
    expect("-2 ^ 2", -4);
    expect("2 ^ -1", 0.5);
    expect("--3", 3);
    expect("+a", 3);
    expect("a - -b", 1);
    expect(" a*b\n+\t1e1 ", 4);
    expect(".5 + 1. + 2e-1 + 3E+1", 31.7);
    expect("pi", 3.14159265358979323846);
    expect("-inf", -INFINITY);
    expect("z_2", 4);
}

static void formula__knows_functions(void **state)
{
    (void)state;
    expect("sqrt(16)", 4);
    expect("abs(b)", 2);
    expect("exp(1)", 2.718281828459045235);
    expect("log(exp(2))", 2);
    expect("log10(1000)", 3);
    expect("log2(8)", 3);
    expect("erf(0.5)", 0.52049987781304653768);
    expect("floor(-2.5)", -3);
    expect("round(2.5)", 3);
    expect("sign(b) + sign(a) + sign(0)", 0);
    expect("min(a, b)", -2);
    expect("max(a, b + 6)", 4);
    expect("max(min(1, 2), min(3, 4))", 3);
    expect("error(a)", 0.3);
    expect("error ( a ) * 2", 0.6);
}

static void formula__compares(void **state)
{
    (void)state;
    expect("a > b", 1);
    expect("a < b", 0);
    expect("a <= 3", 1);
    expect("a >= 3.1", 0);
    expect("a == 3", 1);
    expect("a != 3", 0);
    expect("(a > 1) * (b > 1)", 0);
    expect("1 + 1 == 2", 1);
}

/* A number that is not there makes everything that needs it not there. */
static void formula__keeps_nan(void **state)
{
    (void)state;
    const char *texts[] = {"gone",         "gone > 1", "gone != gone", "min(gone, 1)",
                           "max(1, gone)", "gone ^ 0", "1 ^ gone",     "sign(gone)",
                           "0 * gone",     "0 / 0",    "log(-1)",      "sqrt(b)"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        expect(texts[i], NAN);
    expect("1 / 0", INFINITY);
    expect("log(0)", -INFINITY);
}

static void expect_error(const char *text, double error, double tolerance)
{
    double got = value_of(text).error;
    if (!(fabs(got - error) <= tolerance))
        fail_msg("the error of '%s' is %.17g, not %.17g", text, got, error);
}

static void formula__propagates_errors(void **state)
{
    (void)state;
    expect_error("a", 0.3, 0);
    expect_error("b", 0, 0);
    expect_error("2 * a", 0.6, 1e-14);
    expect_error("a + z_2", 0.5, 1e-14); /* 0.3, 0.4 */
    expect_error("a - a", 0, 0);         /* the same column, not two independent ones */
    expect_error("a * z_2", hypot(1.2, 1.2), 1e-14);
    expect_error("log(a)", log(1.1), 1e-15);
    expect_error("error(a)", 0, 0);
    expect_error("a / error(a)", 1, 1e-14);
    /* A share has the error of its Wilson interval: 40.4 % to 59.6 %. */
    expect_error("share", 0.0490, 5e-4);
    expect_error("share + 0", 0.0490, 5e-4);
}

static void expect_interval(const char *text, double low, double high)
{
    fini_number got = value_of(text);
    if (!(fabs(got.low - low) <= 1e-14 && fabs(got.high - high) <= 1e-14))
        fail_msg("'%s' goes from %.17g to %.17g, not from %.17g to %.17g", text, got.low, got.high,
                 low, high);
}

/* A share's interval is not symmetric, and stays so: eight of eight are no more than all. */
static void formula__propagates_intervals(void **state)
{
    (void)state;
    fini_interval all = fini_wilson(8, 8), none = fini_wilson(0, 8), half = fini_wilson(50, 100);
    const double z = FINI_Z95;
    expect_interval("all", all.low, 1);
    expect_interval("all + 0", all.low, 1);
    expect_interval("1 - all", 0, 1 - all.low);
    expect_interval("-all", -1, -all.low);
    expect_interval("none", 0, none.high);
    expect_interval("all / 2 + b", all.low / 2 - 2, -1.5);
    expect_interval("all - none", 1 - hypot(1 - all.low, none.high), 1);
    expect_interval("all + none", all.low, 1 + none.high);
    expect_interval("share", half.low, half.high);
    expect_interval("a", 3 - z * 0.3, 3 + z * 0.3);
    expect_interval("b", -2, -2);
    expect_interval("a + z_2", 7 - z * 0.5, 7 + z * 0.5);
    expect_interval("a - a", 0, 0);
    expect_interval("1 / a", 1 / (3 + z * 0.3), 1 / (3 - z * 0.3));
    expect_interval("exp(a)", exp(3 - z * 0.3), exp(3 + z * 0.3));
    expect_interval("a > 3.5", 0, 1); /* it is not known */
    /* No number at one end: no interval, rather than half of one. */
    fini_number number = value_of("log(a - 2.9)");
    assert_true(isfinite(number.value) && isnan(number.low) && isnan(number.high));
    assert_true(value_of("a + b").drawn && value_of("share").drawn);
    assert_false(value_of("b + 1").drawn);
}

static void formula__says_how(void **state)
{
    (void)state;
    assert_int_equal(value_of("a + z_2").how, FIN_HOW_SIMULATION);
    assert_int_equal(value_of("a + z_2").samples, 50);
    assert_int_equal(value_of("a + b").how, FIN_HOW_DERIVED);
    assert_int_equal(value_of("7").how, FIN_HOW_CLOSED);
    assert_int_equal(value_of("share").how, FIN_HOW_SHARE);
    assert_int_equal(value_of("share").samples, 100);
    assert_int_equal(value_of("2 * share").how, FIN_HOW_DERIVED);
}

static void formula__lists_its_names(void **state)
{
    (void)state;
    fini_formula *formula;
    assert_int_equal(
        fini_formula_parse("log(a) + error(b) * a / pi - min(c1, inf)", &formula, &err), FIN_OK);
    assert_int_equal(fini_formula_name_count(formula), 3);
    assert_string_equal(fini_formula_name(formula, 0), "a");
    assert_string_equal(fini_formula_name(formula, 1), "b");
    assert_string_equal(fini_formula_name(formula, 2), "c1");
    fini_formula_destroy(formula);
    fini_formula_destroy(NULL);
}

static void refuses(const char *text, const char *part)
{
    fini_formula *formula = (fini_formula *)&err;
    fin_status status = fini_formula_parse(text, &formula, &err);
    if (status != FIN_ERR_FORMAT || formula || !strstr(err.message, part))
        fail_msg("'%.60s': %s: '%s' has no '%s'", text, fin_status_name(status), err.message, part);
}

static void formula__refuses(void **state)
{
    (void)state;
    refuses("", "the end");
    refuses("1 +", "the end");
    refuses("1 2", "operator is missing at '2' (character 3)");
    refuses("(1", "')' is missing");
    refuses("1)", "operator is missing");
    refuses("a b", "operator is missing");
    refuses("sqr(2)", "did you mean sqrt?");
    refuses("frobnicate(2)", "there are error, sqrt");
    refuses("min(1)", "',' is missing");
    refuses("sqrt(1, 2)", "')' is missing");
    refuses("error(1)", "name of a number");
    refuses("error(a + b)", "a name alone");
    refuses("0x10", "no number");
    refuses("1.2.3", "no number");
    refuses("3d", "no number");
    refuses("1e", "no number");
    refuses(".", "no number");
    refuses("1 < 2 < 3", "operator is missing");
    refuses("a ; drop", "operator is missing");
    refuses("a = 3", "operator is missing");
    refuses("a\x01", "operator is missing");
}

/* n times `open`, then `core`, then n times `close`. */
static const char *nest(int n, const char *open, const char *core, const char *close)
{
    static char text[4096];
    text[0] = '\0';
    for (int i = 0; i < n; i++)
        strcat(text, open);
    strcat(text, core);
    for (int i = 0; i < n; i++)
        strcat(text, close);
    return text;
}

static void formula__is_bounded(void **state)
{
    (void)state;
    expect(nest(49, "(", "7", ")"), 7);
    refuses(nest(50, "(", "7", ")"), "nested more than 50 deep");
    refuses(nest(60, "-", "7", ""), "nested more than 50 deep");
    refuses(nest(60, "2^", "7", ""), "nested more than 50 deep");
    refuses(nest(300, "abs(", "7", ""), "characters; at most 1000");
    refuses(nest(1000, "1", "7", ""), "has 1001 characters");
    expect(nest(499, "1+", "1", ""), 500);
    /* Numbers that wait: 1+(1*(1^(...: three a level. */
    refuses(nest(40, "1+1*(", "1", ")"), "too many numbers wait");
    refuses(nest(64, "n", "n", ""), "63 characters");
    char many[400] = "n0";
    for (int i = 1; i <= 32; i++)
        sprintf(many + strlen(many), "+n%d", i);
    refuses(many, "more than 32 different names");
}

static void formula__names_what_is_missing(void **state)
{
    (void)state;
    fini_formula *formula;
    fini_number number;
    assert_int_equal(fini_formula_parse("shere + 1", &formula, &err), FIN_OK);
    assert_int_equal(fini_formula_values(formula, names, numbers, NAMES, &number, &err),
                     FIN_ERR_ARGUMENT);
    assert_non_null(strstr(err.message, "'shere'; did you mean share?"));
    fini_formula_destroy(formula);
}

static fin_status use(void *user, fin_error *e)
{
    fini_formula *formula;
    fini_number number;
    fin_status status = fini_formula_parse(user, &formula, e);
    if (status)
        return status;
    status = fini_formula_values(formula, names, numbers, NAMES, &number, e);
    fini_formula_destroy(formula);
    return status;
}

static void formula__survives_failing_allocations(void **state)
{
    (void)state;
    assert_true(fault_every(use, (void *)"a + b * sqrt(z_2)") >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formula__knows_arithmetic),
        cmocka_unit_test(formula__knows_functions),
        cmocka_unit_test(formula__compares),
        cmocka_unit_test(formula__keeps_nan),
        cmocka_unit_test(formula__propagates_errors),
        cmocka_unit_test(formula__propagates_intervals),
        cmocka_unit_test(formula__says_how),
        cmocka_unit_test(formula__lists_its_names),
        cmocka_unit_test(formula__refuses),
        cmocka_unit_test(formula__is_bounded),
        cmocka_unit_test(formula__names_what_is_missing),
        cmocka_unit_test(formula__survives_failing_allocations),
    };
    return cmocka_run_group_tests(tests, make_numbers, NULL);
}
