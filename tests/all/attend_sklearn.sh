#!/usr/bin/env bash
# finetti attend against scikit-learn: the same kernel gives the same numbers, and a search for the
# best settings finds a marginal likelihood that is at least as high.
. "$SRC/tests/cli/common.bash"
"$PYTHON" -c 'import sklearn.gaussian_process' 2>/dev/null || skip "no scikit-learn (Debian: python3-sklearn)"
"$PYTHON" "$SRC/tests/data/attend_sklearn.py"
