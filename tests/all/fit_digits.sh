#!/usr/bin/env bash
# finetti fit on bags of small digits that contain a nine or not: are the bags told apart, and are the nines found, though no
# digit has a label? One seed; larger digits: tests/long/fit_mnist.sh.
. "$SRC/tests/cli/common.bash"
digits=${FINETTI_DATA:-$SRC/../shared/data}/digits8x8.csv
[ -e "$digits" ] || skip "no $digits"
"$PYTHON" -c 'import numpy' 2>/dev/null || skip "no NumPy (Debian: python3-numpy)"
"$PYTHON" "$SRC/tests/data/fit_mnist.py" "$digits" 1 softmax,mixture,any,auto
