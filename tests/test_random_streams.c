/* No two purposes share a stream of random numbers, and callers have theirs to themselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "random/streams.h"

#include <string.h>

typedef struct row {
    const char *name;
    uint32_t number;
} row;

static const row rows[] = {
#define ROW(name, number) {#name, number},
    FINI_STREAMS(ROW)
#undef ROW
};

enum { COUNT = sizeof rows / sizeof rows[0] };

static void streams__no_two_are_the_same(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT; i++)
        for (int j = 0; j < i; j++)
            if (rows[i].number == rows[j].number)
                fail_msg("streams %s and %s are both number %u", rows[j].name, rows[i].name,
                         (unsigned)rows[i].number);
}

/* One was given away before there was a list. */
static void streams__leave_those_of_callers_alone(void **state)
{
    (void)state;
    for (int i = 0; i < COUNT; i++)
        if (strcmp(rows[i].name, "TUNE_TOKENS") != 0)
            assert_in_range(rows[i].number, 0, FIN_STREAM_USER - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams__no_two_are_the_same),
        cmocka_unit_test(streams__leave_those_of_callers_alone),
    };
    return cmocka_run_group_tests_name("random_streams", tests, NULL, NULL);
}
