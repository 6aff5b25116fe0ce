#!/usr/bin/env bash
# Out of memory anywhere in the process, libraries included: the tool fails with a message or succeeds; it never crashes
# and leaves no half-written file. Every allocation is refused in turn, up to a limit, and some later ones.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/fail.c" <<'C'
#define _GNU_SOURCE
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
/* Refuses allocation number FAIL_AT of the process, counted from main's first. */
extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
static atomic_long count;
static long at = -1;
__attribute__((constructor)) static void begin(void)
{
    const char *text = getenv("FAIL_AT");
    at = text ? atol(text) : -1;
    atomic_store(&count, 0);
}
static int refuse(void)
{
    return at >= 0 && atomic_fetch_add(&count, 1) == at && (errno = ENOMEM);
}
void *malloc(size_t n) { return refuse() ? NULL : __libc_malloc(n); }
void *calloc(size_t n, size_t m) { return refuse() ? NULL : __libc_calloc(n, m); }
void *realloc(void *p, size_t n) { return refuse() ? NULL : __libc_realloc(p, n); }
C
cc -shared -fPIC -O1 -o "$work/fail.so" "$work/fail.c"
export OPENBLAS_NUM_THREADS=1 FINETTI_THREADS=1
printf 'kappa,lambda\n0.5,0.1\n0.6,0.2\n' >"$work/points.csv"

try() {
    local refused=0 k
    for k in $(seq 0 250) $(seq 260 40 900); do
        rm -rf "$work/out" && mkdir "$work/out"
        local code=0
        FAIL_AT=$k LD_PRELOAD="$work/fail.so" timeout 60 "$FINETTI" "$@" >"$work/stdout" 2>"$work/stderr" </dev/null || code=$?
        case $code in
        0) ;;
        1)
            refused=$((refused + 1))
            [ -s "$work/stderr" ] || { echo "FAILED: allocation $k of finetti $*: no message"; exit 1; }
            [ -z "$(ls -A "$work/out")" ] || { echo "FAILED: allocation $k of finetti $*: left $(ls -A "$work/out")"; exit 1; }
            ;;
        127) ;; # the dynamic loader itself ran out of memory
        *) echo "FAILED: allocation $k of finetti $*: exit code $code: $(head -c 300 "$work/stderr")"; exit 1 ;;
        esac
    done
    echo "finetti $*: $refused refusals answered by an error"
}
try risk --form softmax --samples 100
try risk --json --show risk,linear
try risk --points "$work/points.csv" --out "$work/out/answers.csv"
try risk --sweep lam=0.1:1:3 --show risk --out "$work/out/curve.csv"
try simulate --n 3 --d 5 --out "$work/out/data.npz"
try simulate --n 3 --d 5 --out "$work/out/data.csv"
try info --json
# Not --rule flow: SUNDIALS 6 does not survive a refusal within SUNContext_Create.
try train --runs 2 --steps 5 --json --curvature
try train --runs 2 --steps 5 --engine ambient --d 9 --form bayes --risk-samples 2
try landscape --grid 3 --json
