#!/usr/bin/env bash
# finetti fit on bags of MNIST digits that contain a nine or not: are the bags told apart, and are the
# nines found, though no digit has a label? Prints the aims beside what was reached. At every change:
# tests/all/fit_digits.sh.
#
#   tests/long/fit_mnist.sh [SEEDS [MODELS]]    SEEDS 3: the mean over seeds 0, 1, 2; MODELS with commas
. "$SRC/tests/cli/common.bash"
export FINETTI_THREADS=2
digits=${FINETTI_DATA:-$SRC/../shared/data}/mnist10k.npz
[ -e "$digits" ] || skip "no $digits"
"$PYTHON" -c 'import numpy' 2>/dev/null || skip "no NumPy (Debian: python3-numpy)"
"$PYTHON" "$SRC/tests/data/fit_mnist.py" "$digits" "${1:-1}" "${2:-softmax,mixture,any,auto}"
