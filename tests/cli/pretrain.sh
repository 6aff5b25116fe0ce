#!/usr/bin/env bash
# finetti pretrain: learns, writes, goes on to the same bytes; and what can go wrong.
. "$(dirname "$0")/common.bash"
export OMP_WAIT_POLICY=passive
small=(--width 8 --heads 2 --layers 1 --batch 8 --L 6 --M 4 --evaluate-on 32)

# ---- it learns: cme attention with the right maps is the Bayes prediction of a linear concept
accepts pretrain --d 2 --attention cme --width 8 --heads 1 --layers 1 --hidden 0 --norm none --L 8 --M 8 \
    --batch 16 --steps 150 --rate 0.01 --evaluate-on 200 --json --out enc.fin --log log.csv --lengths 4,16
cp stdout first.json
"$PYTHON" - <<'PY'
import csv, json, math
r = json.load(open("first.json"))
assert r["data"]["family"] == "concept" and r["data"]["family_settings"]["d"] == 2
assert r["encoder"]["settings"]["attention"] == "cme" and r["done"] and r["step"] == 150
assert abs(r["test"]["risk"] - r["test"]["bayes"] - r["test"]["excess"]) < 1e-9
assert r["log"][0]["step"] == 0 and r["log"][-1]["step"] == 150
before, after = r["log"][0]["test"]["risk"], r["test"]["risk"]
assert after < before / 2, (before, after)
assert [p["L"] for p in r["lengths"]] == [4, 16]
assert r["lengths"][0]["bayes"] > r["lengths"][1]["bayes"]
rows = list(csv.DictReader(open("log.csv")))
assert len(rows) == len(r["log"]) and rows[0]["loss"] == "nan"
assert all(float(row["excess"]) == e["test"]["excess"] for row, e in zip(rows, r["log"]))
PY

# ---- the file says what it is
accepts info enc.fin
prints "1 layer of cme attention, width 8, 1 head"
prints "trained on  concept, masked"
accepts info enc.fin --json
"$PYTHON" -c "
import json; r = json.load(open('$work/stdout'))
assert r['trained_on'] == 'concept' and not r['can_go_on'] and r['encoder']['inputs'] == 3"

# ---- the same numbers for any number of threads; another seed is another encoder
accepts pretrain "${small[@]}" --steps 9 --out one.fin --threads 1
accepts pretrain "${small[@]}" --steps 9 --out two.fin --threads 2
cmp one.fin two.fin
accepts pretrain "${small[@]}" --steps 9 --out three.fin --seed 2
! cmp -s one.fin three.fin || fail "the seed changes nothing"

# ---- stopped and resumed: the same bytes
accepts pretrain "${small[@]}" --steps 9 --stop-at 4 --checkpoint part.fin --out half.fin
prints "step 4 of 9"
accepts info part.fin
prints "can go on learning"
accepts pretrain --resume part.fin --checkpoint part.fin --out again.fin --log again.csv
cmp one.fin again.fin
accepts pretrain "${small[@]}" --steps 9 --checkpoint whole.fin
cmp whole.fin part.fin

# ---- every 0 seconds is after every step
accepts pretrain "${small[@]}" --steps 3 --checkpoint often.fin --checkpoint-every 0
empty=$(ls -A | grep -c '^\.' || true)
[ "$empty" = 0 ] || fail "left behind: $(ls -A)"

# ---- Ctrl-C keeps what there is, and says how to go on
"$PYTHON" - "${small[@]}" <<'PY'
import sys
from stop import stop
code, out, err, told = stop(["pretrain", *sys.argv[1:], "--steps", "100000000", "--out", "long.fin"])
assert told and code == 130 and out == b"", (code, out)
open("stderr", "wb").write(err)
PY
[ ! -e long.fin ] || fail "something was written"
grep -q "go on with: finetti pretrain --resume long.fin.checkpoint" stderr || fail "$(cat stderr)"
step=$(sed 's/.*after step \([0-9]*\) of.*/\1/' stderr)
accepts pretrain --resume long.fin.checkpoint --stop-at $((step + 2)) --out long.fin
prints "step $((step + 2)) of 100000000"

# ---- tasks, data, several answers
accepts pretrain --task slr --objective supervised --d 4 --L 5 --width 8 --heads 2 --layers 1 --batch 8 --steps 5 \
    --evaluate-on 32 --json
"$PYTHON" -c "
import json; r = json.load(open('$work/stdout'))
assert r['data']['task'] == 'slr' and r['test']['bayes'] > 0"
accepts pretrain --family counts "${small[@]}" --steps 3
prints "classes of a token"
accepts pretrain --family concepts --objective supervised --width 8 --heads 2 --layers 1 --batch 8 --L 6 --evaluate-on 32 --steps 3
prints "accuracy"
accepts pretrain "${small[@]}" --answer gaussian --steps 3
prints "1 mean and variance of a token"
"$PYTHON" - <<'PY'
import random
random.seed(3)
with open("images.csv", "w") as f:
    f.write(",".join("p%d" % j for j in range(16)) + ",digit\n")
    for i in range(60):
        digit = i % 3
        f.write(",".join("%d" % (16 * (j % 4 == digit) + random.randrange(3)) for j in range(16)) + ",%d\n" % digit)
with open("bags.csv", "w") as f:
    f.write("bag,k,v,w,label\n")
    for i in range(40):
        for t in range(1 + i % 4):
            f.write("b%d,%g,%g,%g,%s\n" % (i, random.gauss(0, 1), random.gauss(i % 2, 1), random.random(), "no" if i % 2 else "yes"))
PY
tiny=(--width 8 --heads 2 --layers 1 --batch 8 --steps 10)
accepts pretrain --data images.csv --label digit --patch 2 "${tiny[@]}" --out img.fin
prints "60 images as 4 patches of 2 x 2"
prints "48 to learn from, 12 held out"
prints "no positions"
accepts pretrain --data bags.csv --key-columns k "${tiny[@]}" --share 0.3 --out bags.fin
prints "3 columns of a token"
accepts pretrain --data bags.csv --objective supervised "${tiny[@]}" --json
"$PYTHON" -c "
import json; r = json.load(open('$work/stdout'))
assert r['data']['train'] == 32 and r['data']['test'] == 8 and 'accuracy' in r['test']"
accepts pretrain --data images.csv --label digit --patch 2 "${tiny[@]}" --stop-at 4 --checkpoint d.fin
accepts pretrain --resume d.fin --out d2.fin
cmp d2.fin img.fin
mv images.csv moved.csv
refuses 1 "images.csv" pretrain --resume d.fin
accepts pretrain --resume d.fin --data moved.csv
mv moved.csv images.csv

# ---- wrong options
refuses 2 "did you mean 'steps'" pretrain --stepz 3
refuses 2 "there is no family" pretrain --family nothing
refuses 2 "give one of them" pretrain --family concept --data bags.csv
refuses 2 "give one of them" pretrain --family concept --task slr
refuses 2 "goes with --data" pretrain --patch 2
refuses 2 "goes with --data" pretrain --label digit
refuses 2 "--lengths" pretrain --data bags.csv --lengths 3
refuses 2 "such as 4,8" pretrain --lengths 4,,8
refuses 2 "such as 4,8" pretrain --lengths x
refuses 2 "such as 4,8" pretrain --lengths -1
refuses 2 "end it in .fin" pretrain --out x.csv
refuses 2 "goes with --checkpoint" pretrain --checkpoint-every 5
refuses 2 "cannot be changed" pretrain --resume part.fin --width 9
refuses 2 "not on a file" pretrain --resume part.fin --data bags.csv
refuses 1 "no/x.fin" pretrain --out no/x.fin
refuses 1 "nowhere.fin" pretrain --resume nowhere.fin
refuses 1 "without the state" pretrain --resume enc.fin
refuses 2 "lies behind" pretrain --resume often.fin --stop-at 1
refuses 1 "nowhere.csv" pretrain --data nowhere.csv
refuses 2 "no column 'z'" pretrain --data bags.csv --label z
refuses 2 "do not tile" pretrain --data images.csv --label digit --patch 3
refuses 1 "17 pixels" pretrain --data images.csv --patch 2
refuses 2 "no labels" pretrain --data images.csv --columns 'p*' --patch 2 --objective supervised
refuses 1 "hidden one" pretrain --task slr

# ---- widths that heads do not divide, lengths 0 and 1, all tokens hidden
refuses 2 "width" pretrain --width 10 --heads 4
accepts pretrain "${small[@]}" --steps 2 --L 0
accepts pretrain "${small[@]}" --steps 2 --L 1 --M 1
accepts pretrain "${small[@]}" --steps 2 --lengths 0,1,2
prints "       0"
accepts pretrain --data bags.csv "${tiny[@]}" --share 1
printf 'bag,x\na,1\nb,2\nc,3\nd,4\ne,5\n' >single.csv
accepts pretrain --data single.csv "${tiny[@]}" --positions sinusoidal
printf 'bag,x\n' >none.csv
refuses 1 "none.csv" pretrain --data none.csv
printf 'bag,x\na,1\nb,nan\n' >nan.csv
refuses 1 "not a finite number" pretrain --data nan.csv

# ---- a loss that is not finite: the step and the tensor are named, the last good checkpoint stays
accepts pretrain "${small[@]}" --norm none --layers 6 --rate 100 --clip 0 --steps 1000 --stop-at 1 --checkpoint nan.fin
cp nan.fin before.fin
refuses 1 "is not finite" pretrain --resume nan.fin --checkpoint nan.fin --checkpoint-every 1000
grep -q "step [0-9]*: .* of '" stderr || fail "$(cat stderr)"
grep -q "last good checkpoint is in nan.fin" stderr || fail "$(cat stderr)"
cmp nan.fin before.fin

# ---- a full disk: learning goes on, the last good checkpoint stays; at the end it is an error
accepts pretrain "${small[@]}" --steps 9 --stop-at 2 --checkpoint full.fin
cp full.fin before.fin
code=0
(ulimit -f 8 && "$FINETTI" pretrain --resume full.fin --checkpoint full.fin --checkpoint-every 0 >stdout 2>stderr) || code=$?
[ "$code" = 1 ] || fail "exit code $code: $(cat stderr)"
grep -q "warning: no checkpoint at step 3: .*learning goes on" stderr || fail "$(cat stderr)"
[ "$(grep -c warning stderr)" = 1 ] || fail "$(cat stderr)"
cmp full.fin before.fin
[ -z "$(ls -A | grep '^\.' || true)" ] || fail "left behind: $(ls -A)"

# ---- a checkpoint of another shape, a damaged one, a file of something else
"$PYTHON" - <<'PY'
data = bytearray(open("part.fin", "rb").read())
data[-5] ^= 1
open("damaged.fin", "wb").write(data)
open("cut.fin", "wb").write(data[:200])
PY
refuses 1 "damaged" pretrain --resume damaged.fin
refuses 1 "cut.fin" pretrain --resume cut.fin
refuses 1 "images.csv" pretrain --resume images.csv
"$FINETTI" simulate --n 30 --d 3 --L 3 --sign --out b.npz 2>/dev/null
"$FINETTI" fit b.npz --model mean --cv none --no-curve --out model.fin --quiet
refuses 1 "not an encoder" pretrain --resume model.fin
refuses 1 "not a model" predict enc.fin bags.csv
echo "pretrain: ok"
