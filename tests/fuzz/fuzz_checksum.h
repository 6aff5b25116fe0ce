/* A file of tensors with a right checksum, whatever its bytes are. */
#ifndef FUZZ_CHECKSUM_H
#define FUZZ_CHECKSUM_H

#include "data/tensors.h"
#include "fuzz.h"

#include <xxhash.h>

static inline const char *fuzz_write_checked(const char *name, const uint8_t *data, size_t size)
{
    const size_t at = 8 + FINI_CHECKSUM_AT;
    if (size < at + FINI_CHECKSUM || memcmp(data + 8, FINI_CHECKSUM_BEFORE, FINI_CHECKSUM_AT) != 0)
        return fuzz_write(name, data, size);
    uint8_t *copy = malloc(size);
    char digits[FINI_CHECKSUM + 1];
    FUZZ_CHECK(copy);
    memcpy(copy, data, size);
    memset(copy + at, '0', FINI_CHECKSUM);
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)XXH3_64bits(copy, size));
    memcpy(copy + at, digits, FINI_CHECKSUM);
    const char *path = fuzz_write(name, copy, size);
    free(copy);
    return path;
}

#endif
