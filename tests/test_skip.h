/* A test that cannot run here says which and why, in a line that a script can look for, and is
 * skipped:   SKIPPED: <file>__<test>: <reason>
 * Include after cmocka.h. */
#ifndef TEST_SKIP_H
#define TEST_SKIP_H

#include <stdio.h>
#include <string.h>

static inline void skip_print(const char *path, const char *test, const char *reason)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    printf("SKIPPED: %.*s__%s: %s\n", (int)strcspn(name, "."), name, test, reason);
    fflush(stdout);
}

#define SKIP(reason)                                                                               \
    do {                                                                                           \
        skip_print(__FILE__, __func__, reason);                                                    \
        skip();                                                                                    \
    } while (0)

#endif
