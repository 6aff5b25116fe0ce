/* The rest of what the page does without: names that the modules refer to, answered in one place, so that the module
 * imports nothing. Left out by name: the ambient engine, variables of the environment, the clock. */
#include "math/gram.h"
#include "finetti/kernel.h"
#include "train/train.h"

#include <stdlib.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* ---- BLAS has no threads, buffers or cores here --------------------------------------------------- */

void fini_blas_enter(void)
{
}

void fini_blas_leave(void)
{
}

fin_status fini_blas_ready(fin_error *err)
{
    (void)err;
    return FIN_OK;
}

void fini_blas_expect(int threads)
{
    (void)threads;
}

const char *fin_kernel_blas_core(void)
{
    return NULL;
}

/* ---- engines ---------------------------------------------------------------------------------------- */

static fin_status refuse(const fin_train *t, void **worker, fin_error *err)
{
    (void)t, (void)worker;
    return fini_fail(err, FIN_ERR_UNSUPPORTED, "the page has no vectors in R^d; finetti train has");
}

const fini_engine fini_ambient = {.block = 1, .open = refuse};

fin_status fini_ambient_check(const fin_train *t, fin_error *err)
{
    return refuse(t, NULL, err);
}

/* ---- what WebAssembly has no system for --------------------------------------------------------------- */

char *getenv(const char *name)
{
    (void)name;
    return NULL;
}

int sched_yield(void)
{
    return 0;
}

_Noreturn void __assert_fail(const char *what, const char *file, int line, const char *function);
_Noreturn void __assert_fail(const char *what, const char *file, int line, const char *function)
{
    (void)what, (void)file, (void)line, (void)function;
    __builtin_trap();
}

/* printf into memory brings the rest of stdio, and waiting a clock: there are no files here, and nobody waits. */
ssize_t writev(int file, const struct iovec *from, int count)
{
    (void)file, (void)from, (void)count;
    return -1;
}

off_t __lseek(int file, off_t to, int from);
off_t __lseek(int file, off_t to, int from)
{
    (void)file, (void)to, (void)from;
    return -1;
}

int close(int file)
{
    (void)file;
    return -1;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)time, (void)left;
    return 0;
}
