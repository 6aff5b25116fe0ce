#!/usr/bin/env bash
# Times finetti beside NumPy, SciPy and PyTorch, in one process and on the same arrays, one thread each.
#
#   make bench                          the whole table, five minutes
#   make bench ARGS=--quick             a smaller one, to see that it works
#   make bench ARGS='--json FILE'       the numbers as well
#   make bench ARGS=--check             do the contestants of training compute the same? no times
#
# BUILD is the build tree with libfinetti.so in it (make sets it).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
BUILD=${BUILD:-$here/../build}
if [ ! -e "$BUILD/libfinetti.so" ]; then
    echo "run.sh: no libfinetti.so in $BUILD; run make first, or use make bench" >&2
    exit 1
fi

# The system's own Python, which the distribution's NumPy and PyTorch belong to, whatever is on PATH.
if [ -z "${PYTHON:-}" ]; then
    PYTHON=python3
    [ -x /usr/bin/python3 ] && PYTHON=/usr/bin/python3
fi

# Compiled for this very processor: it says what the processor can do at best.
mkdir -p "$BUILD/bench"
for flags in "-march=native" ""; do
    # shellcheck disable=SC2086 # no argument at all where it is empty
    "${CC:-cc}" -std=c11 -O3 $flags -shared -fPIC -o "$BUILD/bench/libmachine.so" "$here/machine.c" 2>/dev/null && break
done

export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 FINETTI_THREADS=1
export PYTHONDONTWRITEBYTECODE=1
# As the tool does, for all who take part: an OpenBLAS that is older than the CPU is told what it is.
core=$("$PYTHON" -c 'import ctypes, sys; f = ctypes.CDLL(sys.argv[1]).fin_kernel_blas_core; f.restype = ctypes.c_char_p
print((f() or b"").decode())' "$(realpath "$BUILD/libfinetti.so")")
[ -z "$core" ] || export OPENBLAS_CORETYPE="${OPENBLAS_CORETYPE:-$core}"
exec "$PYTHON" "$here/bench.py" --library "$BUILD/libfinetti.so" --machine "$BUILD/bench/libmachine.so" "$@"
