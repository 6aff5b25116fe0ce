#!/usr/bin/env bash
# finetti fit on bags of MNIST digits that contain a nine or not: are the bags told apart, and are the
# nines found, though no digit has a label? Prints the aims beside what was reached.
#
#   tests/all/fit_mnist.sh [SEEDS [MODELS]]     SEEDS 3: the mean over seeds 0, 1, 2; MODELS with commas
set -euo pipefail
: "${FINETTI:?the tool}" "${SRC:?the source tree}" "${PYTHON:?python3}"
digits=$SRC/../shared/data/mnist10k.npz
[ -e "$digits" ] || {
    echo "skipped: no $digits"
    exit 77
}
"$PYTHON" -c 'import numpy' 2>/dev/null || {
    echo "skipped: no NumPy (Debian: python3-numpy)"
    exit 77
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
PYTHONDONTWRITEBYTECODE=1 "$PYTHON" "$SRC/tests/data/fit_mnist.py" "$digits" "${1:-1}" "${2:-softmax,mixture,any,auto}"
