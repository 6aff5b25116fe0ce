#!/usr/bin/env bash
# Out of memory anywhere in the process, libraries included: the tool fails with a message or says what it says otherwise; it
# never crashes and leaves no half-written file. A first run counts the allocations after the beginning of main; then every one of them
# is refused in turn, up to a limit, and of the later ones some, ever fewer: those of one loop are much alike.
. "$SRC/tests/cli/common.bash"
cat >fail.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
/* Refuses allocation number FAIL_AT of the process, counted from main's first; the number of all goes to FAIL_COUNT. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static atomic_long count;
static long at = -1;
static atomic_int begun;
static int (*real_main)(int, char **, char **);
static void tell(void)
{
    FILE *file = fopen(getenv("FAIL_COUNT"), "w");
    if (file) {
        fprintf(file, "%ld\n", atomic_load(&count));
        fclose(file);
    }
}
static int begin(int argc, char **argv, char **environment)
{
    at = atol(getenv("FAIL_AT"));
    if (getenv("FAIL_COUNT"))
        atexit(tell);
    atomic_store(&begun, 1);
    return real_main(argc, argv, environment);
}
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld)(void), void *end)
{
    int (*start)(int (*)(int, char **, char **), int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = main;
    return start(begin, argc, argv, init, fini, rtld, end);
}
static int refuse(void)
{
    return atomic_load(&begun) && atomic_fetch_add(&count, 1) == at && (errno = ENOMEM);
}
void *malloc(size_t n) { return refuse() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return refuse() ? NULL : __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return refuse() ? NULL : __libc_realloc(p, n); }
C
cc -shared -fPIC -O1 -o fail.so fail.c
printf 'kappa,lambda\n0.5,0.1\n0.6,0.2\n' >points.csv
mkdir out

"$PYTHON" - <<'P'
import os, subprocess

os.environ["FINETTI_HDF5"] = "/none"  # info loads libhdf5, whose refusals are its own
EVERY = 250  # the first so many are all refused, then each further one that is a twentieth later
COMMANDS = """risk --form softmax --samples 100
risk --json --show risk,linear
risk --points points.csv --out out/answers.csv
risk --sweep lam=0.1:1:3 --show risk --out out/curve.csv
simulate --n 3 --d 5 --out out/data.npz
simulate --n 3 --d 5 --out out/data.csv
info --json
train --runs 2 --steps 5 --json --curvature
train --runs 2 --steps 5 --engine ambient --d 9 --form bayes --risk-samples 2
train --runs 2 --steps 50 --rule flow --json
landscape --grid 3 --starts 2 --json"""


def run(words, **more):
    environment = {**os.environ, "LD_PRELOAD": os.path.abspath("fail.so"), **more}
    return subprocess.run([os.environ["FINETTI"], *words], env=environment, capture_output=True, stdin=subprocess.DEVNULL,
                          timeout=60)


def clean():
    left = os.listdir("out")
    for name in left:
        os.remove("out/" + name)
    return left


for command in COMMANDS.splitlines():
    words = command.split()
    done = run(words, FAIL_AT="-1", FAIL_COUNT="count")
    assert done.returncode == 0, (command, done.stderr)
    whole = done.stdout
    clean()
    count, k, tried, refused = int(open("count").read()), 0, 0, 0
    assert count > 10, (command, count)
    while k < count:
        done = run(words, FAIL_AT=str(k))
        left = clean()
        what = f"allocation {k} of finetti {command}: exit code {done.returncode}"
        # 127: the dynamic loader itself ran out of memory
        assert done.returncode in (0, 1, 127), (what, done.stderr[:300])
        if done.returncode == 1:
            assert done.stderr, (what, "no message")
            assert not left, (what, left)
            refused += 1
        assert done.returncode != 0 or done.stdout == whole, (what, done.stdout, whole)
        tried += 1
        k += 1 + max(0, k - EVERY) // 20
    print(f"finetti {command}: {count} allocations, {tried} refused, {refused} answered by an error", flush=True)
    assert refused > 0, command
P
