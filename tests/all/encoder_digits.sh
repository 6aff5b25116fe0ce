#!/usr/bin/env bash
# Images as sets of patches: masked pretraining on digits, short. A linear map on the frozen encoder beats one on an encoder
# that has learnt nothing, with 10 labels per class, subset by subset; and hidden pixels are filled in better than by their
# mean. Against training everything from labels, scikit-learn and MNIST: tests/long/encoder_images.sh.
. "$SRC/tests/cli/common.bash"
data=${FINETTI_DATA:-$SRC/../shared/data}/digits8x8.csv
[ -r "$data" ] || skip "no $data"
digits=(--data "$data" --patch 2 --label digit)
learn=("${digits[@]}" --readout pooled --share 0.5 --batch 64 --rate 4e-3 --beta2 0.98 --decay 0.05 --evaluate-every 100000)
accepts pretrain "${learn[@]}" --steps 1000 --out learnt.fin
accepts pretrain "${learn[@]}" --steps 0 --out new.fin
for seed in 1 2 3 4 5; do
    for encoder in learnt new; do
        "$FINETTI" probe $encoder.fin "${digits[@]}" --per-class 10 --seed $seed --train 1000000 --test 1000000 --json >$encoder.$seed.json
    done
done
accepts probe learnt.fin --per-class 10 --reconstruct pixels.csv
"$PYTHON" - <<'PY'
import csv, json
accuracy = {name: [json.load(open(f"{name}.{seed}.json"))["layers"][0]["accuracy"] for seed in range(1, 6)] for name in ("learnt", "new")}
d = [a - b for a, b in zip(accuracy["learnt"], accuracy["new"])]
mean = sum(d) / 5
se = (sum((x - mean) ** 2 for x in d) / 4 / 5) ** 0.5
print("10 labels per class: %.4f learnt, %.4f new, difference %.4f +- %.4f" % (
    sum(accuracy["learnt"]) / 5, sum(accuracy["new"]) / 5, mean, se))
assert mean > 3 * se, accuracy
rows = [{k: float(v) for k, v in row.items()} for row in csv.DictReader(open("pixels.csv"))]
hidden, shown = [r for r in rows if r["hidden"] == 1], [r for r in rows if r["hidden"] == 0]
middle = sum(r["original"] for r in rows) / len(rows)
variance = sum((r["original"] - middle) ** 2 for r in rows) / len(rows)
error = sum((r["original"] - r["reconstruction"]) ** 2 for r in hidden) / len(hidden) / variance
print("reconstructions: %.3f of the variance of the hidden pixels is left" % error)
assert 0.4 < len(hidden) / len(rows) < 0.6 and error < 0.5 and all(r["original"] == r["reconstruction"] for r in shown)
PY
