#!/usr/bin/env bash
# finetti probe: linear probes of every layer, attention, representations, reconstructions.
. "$(dirname "$0")/common.bash"
export OMP_WAIT_POLICY=passive
"$PYTHON" "$SRC/tests/cli/encoder_data.py"
tiny=(--width 8 --heads 2 --layers 2 --batch 16)
accepts pretrain --data images.csv --label digit --patch 2 "${tiny[@]}" --steps 60 --rate 0.01 --out enc.fin
accepts pretrain --d 2 --L 6 --M 3 "${tiny[@]}" --steps 60 --rate 0.01 --out concept.fin

# ---- data: the label, layer by layer, on the fold held out
accepts probe enc.fin --layer all --json
"$PYTHON" - <<'PY'
import json
r = json.load(open("stdout"))
assert r["target"] == "label" and [row["layer"] for row in r["layers"]] == [0, 1, 2]
for row in r["layers"]:
    assert row["train"] == 72 and row["test"] == 18 and 0 <= row["accuracy"] <= 1 and row["log_loss"] > 0
assert max(row["accuracy"] for row in r["layers"]) > 0.6, r
PY
accepts probe enc.fin --layer all
prints "   end"
prints "logistic probe fitted to 72 rows, judged on 18"
accepts probe enc.fin --data images.csv --label digit --per-class 5 --layer 1
prints "fitted to 15 rows"

# ---- families: the posterior and other targets, on fresh sequences
for target in posterior mean bayes label; do
    accepts probe concept.fin --target $target --train 200 --test 200 --json
    cp stdout $target.json
done
accepts probe concept.fin --train 200 --test 200
prints "posterior, ridge probe"
"$PYTHON" - <<'PY'
import json
for target in "posterior", "mean", "bayes", "label":
    r = json.load(open(target + ".json"))
    row = r["layers"][0]
    assert r["target"] == target and row["r2_least"] <= row["r2"] <= row["r2_most"] <= 1, r
assert json.load(open("mean.json"))["layers"][0]["columns"] == 2
PY

# ---- attention: rows sum to one over the tokens in sight
accepts probe concept.fin --train 50 --test 50 --maps map.csv --layer 1 --head 1 --sequence 3
"$PYTHON" - <<'PY'
import csv
from collections import defaultdict
total, seen = defaultdict(float), 0
for row in csv.DictReader(open("map.csv")):
    total[row["asks"]] += float(row["weight"])
    assert row["answers_hidden"] == "0" or float(row["weight"]) == 0
    seen += 1
assert seen == 81 and all(abs(t - 1) < 1e-5 for t in total.values()), total
PY

# ---- representations
accepts probe enc.fin --states states.npz
accepts probe concept.fin --train 50 --test 40 --states family.npz --layer 0
"$PYTHON" - <<'PY'
import npz
a = {k: v[0] for k, v in npz.load("states.npz").items()} # shapes
assert a["states"] == (72, 8) and a["pooled"] == (18, 8) and a["offsets"] == (19,) and a["y"] == (18,)
f = {k: v[0] for k, v in npz.load("family.npz").items()}
assert f["states"] == (40 * 9, 8) and f["hidden"] == (360,) and f["posterior"][0] == 40
PY

# ---- pools, all layers side by side, and other sequences with another seed
for pool in mean max both tokens; do
    accepts probe enc.fin --pool $pool --layer joint --json
    "$PYTHON" -c 'import json; r = json.load(open("stdout"))["layers"]; assert len(r) == 1 and r[0]["layer"] == -2 and 0 < r[0]["accuracy"] <= 1'
done
accepts probe enc.fin --pool both --layer joint
prints " joint"
accepts probe enc.fin --per-class 5 --seed 1 --json
cp stdout one
accepts probe enc.fin --per-class 5 --seed 2 --json
cmp -s one stdout && fail "another seed takes other sequences"
refuses 2 "not a whole number" probe enc.fin --seed x
refuses 2 "pool" probe enc.fin --pool least

# ---- one answer for all hidden patches: learnt, judged, shown
accepts pretrain --data images.csv --label digit --patch 2 "${tiny[@]}" --readout pooled --steps 60 --rate 0.01 --out pooled.fin
prints "16 numbers of a sequence"
accepts probe pooled.fin --reconstruct pooled.csv
"$PYTHON" - <<'PY'
import csv
rows = list(csv.DictReader(open("pooled.csv")))
hidden = [r for r in rows if r["hidden"] == "1"]
assert len(hidden) * 2 == len(rows)
assert all(r["original"] == r["reconstruction"] for r in rows if r["hidden"] == "0")
assert any(r["original"] != r["reconstruction"] for r in hidden)
PY
refuses 2 "positions = none" pretrain --data images.csv --label digit --patch 2 --readout pooled --positions learned
refuses 2 "goes with --data" pretrain --readout pooled

# ---- reconstructions
accepts probe enc.fin --reconstruct images.svg
"$PYTHON" - <<'PY'
import xml.etree.ElementTree as tree
root = tree.parse("images.svg").getroot()
fills = [r.get("fill") for r in root.iter("{http://www.w3.org/2000/svg}rect")]
assert fills.count("#9db7d5") > 0 and len(fills) > 100
PY
accepts probe enc.fin --reconstruct pixels.csv
"$PYTHON" - <<'PY'
import csv
rows = list(csv.DictReader(open("pixels.csv")))
data = list(csv.reader(open("images.csv")))[1:][::5] # the fold held out
assert len(rows) == 160 and sum(r["hidden"] == "1" for r in rows) == 80
for r in rows:
    raw = float(data[int(r["image"])][4 * int(r["row"]) + int(r["column"])])
    assert abs(float(r["original"]) - raw) < 1e-4
    assert r["hidden"] == "1" or abs(float(r["reconstruction"]) - raw) < 1e-4
hidden = [r for r in rows if r["hidden"] == "1"]
far = sum((float(r["reconstruction"]) - float(r["original"])) ** 2 for r in hidden) / len(hidden)
mean = sum(float(r["original"]) for r in rows) / len(rows)
spread = sum((float(r["original"]) - mean) ** 2 for r in hidden) / len(hidden)
assert far < spread, (far, spread)
PY

# ---- what can go wrong
refuses 2 "ENC is missing" probe
refuses 1 "nowhere.fin" probe nowhere.fin
refuses 2 "from 0 to 2" probe enc.fin --layer 3
refuses 2 "from 0 to 2" probe enc.fin --layer x
refuses 2 "layer 0 is the tokens" probe enc.fin --layer 0 --maps m.csv
refuses 2 "from 0 to 1" probe enc.fin --maps m.csv --head 2
refuses 2 "goes with --maps" probe enc.fin --head 1
refuses 2 "end it in .npz" probe enc.fin --states s.csv
refuses 2 "end it in .svg" probe enc.fin --reconstruct s.png
refuses 2 "for images" probe concept.fin --reconstruct s.svg --train 50 --test 50
refuses 1 "no/s.svg" probe enc.fin --reconstruct no/s.svg
refuses 1 "no/m.csv" probe enc.fin --maps no/m.csv
refuses 1 "posterior" probe enc.fin --target posterior
refuses 2 "train = 1" probe enc.fin --train 1
refuses 2 "a token has 3 columns" probe enc.fin --data bags.csv --patch 0 --label label
mv images.csv away.csv
refuses 1 "images.csv" probe enc.fin
accepts probe enc.fin --data away.csv
echo "probe: ok"
