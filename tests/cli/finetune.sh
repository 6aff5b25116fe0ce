#!/usr/bin/env bash
# finetti finetune: labels on top of a pretrained encoder.
. "$(dirname "$0")/common.bash"
export OMP_WAIT_POLICY=passive
"$PYTHON" "$SRC/tests/cli/encoder_data.py"
tiny=(--width 8 --heads 2 --layers 1 --batch 16)
accepts pretrain --data images.csv --label digit --patch 2 "${tiny[@]}" --steps 100 --rate 0.01 --out enc.fin
accepts pretrain --data bags.csv --key-columns k "${tiny[@]}" --steps 20 --out bags.fin

# ---- it learns the labels, and says so; three ways
for way in heads all scratch; do
    accepts finetune enc.fin --data images.csv --label digit --per-class 8 --train $way --steps 150 --json --out $way.fin
    cp stdout $way.json
done
"$PYTHON" - <<'PY'
import json
for way in "heads", "all", "scratch":
    r = json.load(open(way + ".json"))
    t = r["test"]
    assert r["train"] == way and r["per_class"] == 8 and r["step"] == 150
    assert r["data"]["train"] == 24 and r["data"]["test"] == 18 and t["targets"] == 18
    assert abs(t["accuracy_se"] - (t["accuracy"] * (1 - t["accuracy"]) / 18) ** 0.5) < 1e-12
    if way != "heads":
        assert t["accuracy"] > 0.8, (way, t)
    assert r["log"][0]["test"]["loss"] > t["loss"], way

import struct
def tensors(name):
    data = open(name, "rb").read()
    n = struct.unpack("<Q", data[:8])[0]
    head = json.loads(data[8:8 + n])
    return {k: data[8 + n + v["data_offsets"][0]:8 + n + v["data_offsets"][1]] for k, v in head.items() if k != "__metadata__"}
enc, heads, every, scratch = (tensors(n + ".fin") for n in ("enc", "heads", "all", "scratch"))
own = [k for k in enc if not k.startswith(("head.", "scale."))]
assert all(enc[k] == heads[k] for k in own), "the map to labels alone"
assert all(enc[k] == every[k] == scratch[k] for k in enc if k.startswith("scale."))
assert any(enc[k] != every[k] for k in own) and "head.label.weight" in every and "head.value.weight" not in every
PY
accepts finetune enc.fin --data images.csv --label digit --steps 5
prints "3 classes"
prints "accuracy"
prints "18 sequences held out"
accepts info all.fin
prints "label: 3 classes of a sequence"
prints "pretrained  enc.fin"

# ---- the same for any number of threads; early stopping; numbers as labels; bags; no fold held out
accepts finetune enc.fin --data images.csv --label digit --steps 20 --out one.fin --threads 1
accepts finetune enc.fin --data images.csv --label digit --steps 20 --out two.fin --threads 2 --log log.csv
cmp one.fin two.fin
accepts finetune enc.fin --data images.csv --label digit --steps 60 --patience 2 --evaluate-every 5
accepts finetune enc.fin --data images.csv --label digit --kind regression --steps 5
prints "numbers"
accepts finetune bags.fin --data bags.csv --steps 5
prints "2 classes"
accepts finetune enc.fin --data images.csv --label digit --steps 5 --test-folds 0
prints "of the same sequences"

# ---- a part of the tokens is shown; where the map to labels begins; without steps it is the probe
for start in probe random; do
    accepts finetune enc.fin --data images.csv --label digit --per-class 8 --seed 4 --start $start --steps 0 --keep 0.5 --json
    cp stdout $start.json
done
accepts probe enc.fin --data images.csv --label digit --per-class 8 --seed 4 --json
"$PYTHON" - <<'PY'
import json
probe, random = (json.load(open(n + ".json")) for n in ("probe", "random"))
assert probe["start"] == "probe" and random["start"] == "random" and probe["keep"] == 0.5
row = json.load(open("stdout"))["layers"][0]
assert abs(probe["test"]["accuracy"] - row["accuracy"]) < 1e-12
assert abs(probe["test"]["risk"] - row["log_loss"]) < 1e-4 < abs(random["test"]["risk"] - row["log_loss"])
PY
accepts finetune enc.fin --data images.csv --label digit --steps 20 --keep 0.3 --out a.fin --threads 1
accepts finetune enc.fin --data images.csv --label digit --steps 20 --keep 0.3 --out b.fin --threads 2
cmp a.fin b.fin

# ---- what can go wrong
refuses 2 "allowed are probe and random" finetune enc.fin --data images.csv --start nowhere
refuses 2 "keep" finetune enc.fin --data images.csv --keep 1.5
refuses 2 "keep" finetune enc.fin --data images.csv --keep many
refuses 2 "ENC is missing" finetune --data images.csv
refuses 2 "--data is missing" finetune enc.fin
refuses 2 "allowed are heads" finetune enc.fin --data images.csv --train nothing
refuses 2 "end it in .fin" finetune enc.fin --data images.csv --out x.npz
refuses 1 "nowhere.fin" finetune nowhere.fin --data images.csv
refuses 1 "nowhere.csv" finetune enc.fin --data nowhere.csv
refuses 1 "no/x.fin" finetune enc.fin --data images.csv --out no/x.fin
refuses 1 "images.csv" finetune images.csv --data images.csv
refuses 2 "no column 'z'" finetune enc.fin --data images.csv --label z
refuses 2 "has only 24" finetune enc.fin --data images.csv --label digit --per-class 1000
refuses 2 "counted from 0" finetune enc.fin --data images.csv --label digit --test-fold 5
refuses 2 "a token has 3 columns" finetune enc.fin --data bags.csv --patch 0 --label label
refuses 2 "a token has 18 columns" finetune enc.fin --data images.csv --patch 4 --label digit
printf 'bag,k,v,w\na,1,2,3\nb,4,5,6\n' >plain.csv
refuses 2 "no labels" finetune bags.fin --data plain.csv --test-folds 0
refuses 2 "the encoder bags.fin was trained with 3 and 2" finetune bags.fin --data bags.csv --key-columns k,v
echo "finetune: ok"
