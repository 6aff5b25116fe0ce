/* Decimals: the way by eights and the way by single digits are the same, and right. */
#include "test_data.h"

#include "data/data.h"

#include <math.h>

enum { ROOM = 256, TAIL = 100 };

/* The text followed by nothing (read digit by digit) and by a long tail (read by eights). */
static void both_ways(const char *text)
{
    char buffer[ROOM];
    double a = 1, b = 2;
    size_t size = strlen(text);
    memset(buffer, ',', sizeof buffer);
    memcpy(buffer, text, size);
    const char *p = fini_decimal(buffer, buffer + size, &a);
    const char *q = fini_decimal(buffer, buffer + size + TAIL, &b);
    if (p != q || (memcmp(&a, &b, sizeof a) != 0 && !(isnan(a) && isnan(b))))
        fail_msg("'%s': %.17g and %.17g", text, a, b);
    char *stop;
    double c = fini_strtod(text, &stop);
    /* What strtod reads too must be the same number; it also takes hexadecimal ones and spaces. */
    if (p == buffer + size && *stop == '\0' && size < 60 && memcmp(&a, &c, sizeof a) != 0 &&
        !isnan(a))
        fail_msg("'%s': %.17g, strtod %.17g", text, a, c);
}

static void decimal__same_both_ways_for_any_text(void **state)
{
    (void)state;
    static const char letters[] = "000123456789999999999.--+eE:/ x";
    uint64_t bits = 20261116;
    for (int i = 0; i < 300000; i++) {
        char text[64];
        int length = 1 + (int)(next_bits(&bits) % 30);
        for (int k = 0; k < length; k++)
            text[k] = letters[next_bits(&bits) % (sizeof letters - 1)];
        text[length] = '\0';
        both_ways(text);
    }
}

static void decimal__any_byte_ends_a_number(void **state)
{
    (void)state;
    for (int byte = 1; byte < 256; byte++)
        for (int digits = 0; digits <= 9; digits++) {
            char text[16];
            memset(text, '7', sizeof text);
            text[digits] = (char)byte;
            text[digits + 1] = '\0';
            both_ways(text);
        }
}

/* Numbers of 17 to 19 digits between two doubles and next to the middle between them, where the
 * quotient has to be known exactly. */
static void decimal__next_to_the_middle(void **state)
{
    (void)state;
    uint64_t bits = 7;
    char text[64];
    for (int i = 0; i < 100000; i++) {
        double x = ldexp((double)(next_bits(&bits) >> 11), -(int)(next_bits(&bits) % 70));
        long double exact = ((long double)x + (long double)nextafter(x, INFINITY)) / 2;
        snprintf(text, sizeof text, "%.*Lg", 17 + (int)(next_bits(&bits) % 3), exact);
        both_ways(text);
        snprintf(text, sizeof text, "%.*Lf", (int)(next_bits(&bits) % 20), exact);
        both_ways(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decimal__same_both_ways_for_any_text),
        cmocka_unit_test(decimal__any_byte_ends_a_number),
        cmocka_unit_test(decimal__next_to_the_middle),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
