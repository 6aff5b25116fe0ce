/* Arrays that end where the next page may not be touched, and the kernels this machine can run.
 * Include after cmocka.h. */
#ifndef TEST_KERNEL_FENCE_H
#define TEST_KERNEL_FENCE_H

#include "finetti/kernel.h"
#include "kernel/kernel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FENCE_ROOM = 1 << 20 };

typedef struct fence {
    unsigned char *block, *end; /* end: the first byte that must not be read or written */
} fence;

static inline fence fence_open(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (FENCE_ROOM + page - 1) / page * page;
    int zero = -1;
    FILE *file = tmpfile(); /* private pages without MAP_ANONYMOUS, which POSIX 2008 lacks */
    assert_non_null(file);
    zero = fileno(file);
    assert_int_equal(ftruncate(zero, (off_t)(room + page)), 0);
    unsigned char *block = mmap(NULL, room + page, PROT_READ | PROT_WRITE, MAP_PRIVATE, zero, 0);
    fclose(file);
    assert_true(block != MAP_FAILED);
    assert_int_equal(mprotect(block + room, page, PROT_NONE), 0);
    return (fence){block, block + room};
}

static inline void fence_close(fence *f)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(f->block, (size_t)(f->end - f->block) + page);
}

/* `count` elements whose last one is the last of the page. */
static inline void *fence_array(const fence *f, int64_t count, size_t size)
{
    assert_true((size_t)count * size <= FENCE_ROOM);
    return f->end - (size_t)count * size;
}

/* All kernels but the reference, by name; the count. */
static inline int kernels_other(const fini_kernel *kernel[4])
{
    char names[64], *rest = names;
    int count = 0;
    snprintf(names, sizeof names, "%s", fin_kernel_available());
    for (char *name; (name = strtok_r(rest, " ", &rest));) {
        assert_true(fini_kernel_force(name));
        assert_string_equal(fin_kernel_name(), name);
        if (strcmp(name, "ref") != 0)
            kernel[count++] = fini_kernel_get();
    }
    fini_kernel_force(NULL);
    return count;
}

/* Valgrind computes long double as double: then there is nothing longer to compare with. */
static inline int long_double_is_longer(void)
{
    volatile long double one = 1, sum = one + 0x1p-60L;
    return sum != one;
}

/* Numbers between two doubles, in units in the last place; both zeros count as one number. */
static inline double ulps(double a, double b)
{
    if (isnan(a) || isnan(b))
        return isnan(a) && isnan(b) ? 0 : INFINITY;
    int64_t x, y;
    memcpy(&x, &a, sizeof x);
    memcpy(&y, &b, sizeof y);
    x = x < 0 ? INT64_MIN - x : x;
    y = y < 0 ? INT64_MIN - y : y;
    return (double)(x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x);
}

#endif
