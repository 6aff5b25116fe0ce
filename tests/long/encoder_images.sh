#!/usr/bin/env bash
# Images as sets of patches: masked pretraining, then labels, against the same encoder from new weights
# and against scikit-learn, with 10 and 100 labels per class and all. Digits take a minute or two;
# FINETTI_MNIST=1 adds MNIST (a quarter of an hour on two cores). At every change:
# tests/all/encoder_digits.sh.
. "$SRC/tests/cli/common.bash"
set -o pipefail
"$PYTHON" -c 'import numpy, sklearn' 2>/dev/null || skip "no scikit-learn (Debian: python3-sklearn)"
data=${FINETTI_DATA:-$SRC/../shared/data}
[ -r "$data/digits8x8.csv" ] || skip "no $data/digits8x8.csv"
export OMP_WAIT_POLICY=passive OMP_NUM_THREADS=2 FINETTI_THREADS=2
folder=$work
mkdir "$folder/digits" "$folder/mnist"
cd "$folder/digits"
"$PYTHON" "$SRC/tests/data/encoder_images.py" "$FINETTI" "$data/digits8x8.csv" digits 5 2500 10 100 0 | tee table
if [ "${FINETTI_MNIST:-0}" = 1 ] && [ -r "$data/mnist10k.npz" ]; then
    cd "$folder/mnist"
    "$PYTHON" "$SRC/tests/data/encoder_images.py" "$FINETTI" "$data/mnist10k.npz" mnist 3 3000 10 100 0 | tee table
fi

# What is claimed: where labels are few, a linear map on the frozen encoder beats training everything,
# subset by subset, by more than three standard errors of the difference.
"$PYTHON" - "$folder"/*/table <<'PY'
import json, sys
for path in sys.argv[1:]:
    r = json.loads(open(path).read().strip().splitlines()[-1])
    a = r["accuracy"]
    d = [p - s for p, s in zip(a["probe"]["10"], a["from scratch"]["10"])]
    mean = sum(d) / len(d)
    se = (sum((x - mean) ** 2 for x in d) / (len(d) - 1) / len(d)) ** 0.5
    print("%s, 10 labels per class: frozen and linear beats scratch by %.4f +- %.4f" % (r["name"], mean, se))
    assert mean > 3 * se, (r["name"], d)
PY

# Reconstructions from the pooled answer.
cd "$folder/digits"
"$FINETTI" probe enc.fin --per-class 10 --reconstruct pixels.csv >/dev/null
"$PYTHON" - <<'PY'
import numpy as np
t = np.genfromtxt("pixels.csv", delimiter=",", names=True)
h = t["hidden"] == 1
error = np.mean((t["original"] - t["reconstruction"])[h] ** 2) / np.var(t["original"])
print("reconstructions: %.3f of the variance of the hidden pixels is left" % error)
assert 0.4 < h.mean() < 0.6 and error < 0.5 and np.array_equal(t["original"][~h], t["reconstruction"][~h])
PY
