#!/usr/bin/env bash
# The tool and the tests of the modules that handle memory, under valgrind: no error, nothing definitely lost.
. "$SRC/tests/cli/common.bash"
command -v valgrind >/dev/null || skip "no valgrind"
check() {
    echo "valgrind $(basename "$1") ${*:2}"
    valgrind -q --error-exitcode=9 --leak-check=full --errors-for-leak-kinds=definite "$@" >stdout 2>stderr ||
        { cat stderr; tail -n 5 stdout; fail "valgrind $*"; }
}
# Not with libhdf5, which info loads: what it loads in turn keeps memory.
FINETTI_HDF5=/none check "$FINETTI" info --json
check "$FINETTI" risk --form softmax --samples 1000 --show risk,oracle,linear,bayes
check "$FINETTI" risk --task max --snr inf --m 2 --L_min 3 --samples 1000 --show risk
check "$FINETTI" risk --points "$SRC/tests/data/slr_erf_risk.csv" --out points.csv
check "$FINETTI" simulate --task slr --n 20 --d 33 --L_min 2 --out data.npz
check "$FINETTI" simulate --task max --n 20 --d 33 --m 2 --dtype double --out data.csv
check "$FINETTI" train --runs 3 --steps 20 --curvature --out runs.npz
check "$FINETTI" train --resume runs.npz --steps 30 --out more.npz
check "$FINETTI" train --engine reduced --runs 3 --steps 5 --json
check "$FINETTI" train --engine reduced --task max --form bayes --momentum 0.5 --d 9 --runs 2 --steps 5 --risk-samples 10
check "$FINETTI" train --engine ambient --d 20 --runs 2 --steps 5 --lam-schedule 0:1,3:0.5
check "$FINETTI" train --rule flow --runs 1 --steps 200
check "$FINETTI" landscape --grid 5 --out grid.csv
if [ -x "$BUILD/tests/test_base" ]; then
    # One program a room; a file's tests are run by its name. Not those that mostly compute (data_csv_write, theory_erf take
    # seven seconds each): what they use of memory, the tool uses above, and the sanitizers see all of them.
    for test in base_memory base_settings data_csv data_file data_npz data_npz_read math_zeta math_legendre; do
        check "$BUILD/tests/test_${test%%_*}" "test_$test"
    done
else
    echo "SKIPPED: the unit tests: not built (Debian: libcmocka-dev)"
fi
