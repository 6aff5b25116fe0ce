/* How much a test does, chosen by the environment variable FINETTI_TEST_SIZE:
 *   small   enough to walk through all code; the default with sanitizers, which look at memory, so
 *           that more samples show them nothing new
 *   usual   the default otherwise
 *   full    everything
 *
 *     int64_t samples = sized(5000, 40000, 400000);
 *
 * A bound must follow the size: 5 standard errors of the samples drawn, not a fixed number. */
#ifndef TEST_SIZE_H
#define TEST_SIZE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_SIZE_DEFAULT "small"
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer) || __has_feature(undefined_behavior_sanitizer)
#define TEST_SIZE_DEFAULT "small"
#endif
#endif
#ifndef TEST_SIZE_DEFAULT
#define TEST_SIZE_DEFAULT "usual"
#endif

/* Another word ends the test: what was meant to be full must not pass as usual. */
static inline int64_t sized(int64_t small, int64_t usual, int64_t full)
{
    const char *wish = getenv("FINETTI_TEST_SIZE");
    if (!wish || !*wish)
        wish = TEST_SIZE_DEFAULT;
    if (strcmp(wish, "small") == 0)
        return small;
    if (strcmp(wish, "usual") == 0)
        return usual;
    if (strcmp(wish, "full") == 0)
        return full;
    fprintf(stderr, "FINETTI_TEST_SIZE is '%s'; it can be small, usual or full\n", wish);
    exit(2);
}

#endif
