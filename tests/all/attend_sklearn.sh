#!/usr/bin/env bash
# finetti attend against scikit-learn: the same kernel gives the same numbers, and a search for the
# best settings finds a marginal likelihood that is at least as high.
set -euo pipefail
: "${FINETTI:?the tool}" "${SRC:?the source tree}" "${PYTHON:?python3}"
"$PYTHON" -c 'import sklearn.gaussian_process' 2>/dev/null || {
    echo "skipped: no scikit-learn (Debian: python3-sklearn)"
    exit 77
}
export OPENBLAS_NUM_THREADS=1 FINETTI_THREADS=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
"$PYTHON" "$SRC/tests/data/attend_sklearn.py"
