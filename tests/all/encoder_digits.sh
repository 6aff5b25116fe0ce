#!/usr/bin/env bash
# Images as sets of patches: the claims of examples/digits.yaml on digits, and that a reconstruction leaves what is shown as it
# is. Against training everything from labels, scikit-learn and MNIST: tests/long/encoder_images.sh.
. "$SRC/tests/cli/common.bash"
data=${FINETTI_DATA:-$SRC/../shared/data}/digits8x8.csv
[ -r "$data" ] || skip "no $data"
accepts study run "$SRC/examples/digits.yaml" --store digits.db --set "*.data=$data"
cat stdout
prints "derived: 4 of 4 hold"
prints "checks: 1 of 1 holds"
code=0 # an encoder that has learnt nothing
"$FINETTI" study run "$SRC/examples/digits.yaml" --store digits.db --set "*.data=$data" --set learnt.steps=0 >stdout || code=$?
[ $code = 1 ] && grep -q "derived: 1 of 4 holds, 2 FAIL" stdout || fail "nothing was learnt, and $code: $(cat stdout)"
digits=(--data "$data" --patch 2 --label digit)
accepts pretrain "${digits[@]}" --readout pooled --share 0.5 --steps 0 --out new.fin
accepts probe new.fin --per-class 10 --reconstruct pixels.csv
"$PYTHON" - <<'PY'
import csv
rows = list(csv.DictReader(open("pixels.csv")))
shown = [r for r in rows if r["hidden"] == "0"]
assert 0.4 < len(shown) / len(rows) < 0.6 and all(r["original"] == r["reconstruction"] for r in shown)
PY
