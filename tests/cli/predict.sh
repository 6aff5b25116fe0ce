# finetti predict and finetti locate: tables, arrays, JSON, scores, ranks, labels and their absence.
set -eu
. "$SRC/tests/cli/common.bash"
simulate() { "$FINETTI" simulate --d 5 --L 6 --L_min 2 --mu 3 --eps 0.1 "$@" 2>/dev/null; }
simulate --n 150 --sign --out train.npz
simulate --n 40 --skip 1000 --sign --out test.npz
simulate --n 150 --sign --out train.csv
simulate --n 40 --skip 1000 --sign --out test.csv
simulate --n 150 --out numbers.npz
simulate --n 40 --skip 1000 --out newnumbers.npz
columns=(--bag sample --label y)
"$FINETTI" fit train.npz --model mixture --cv none --out classes.fin --quiet
"$FINETTI" fit train.csv "${columns[@]}" --features 'x*' --model mixture --cv none --out csv.fin --quiet
"$FINETTI" fit numbers.npz --model mixture --cv none --out numbers.fin --quiet
"$FINETTI" fit train.npz --model embedding --locator no --cv none --out whole.fin --quiet

# ---- what a model file is
accepts info csv.fin
prints "csv.fin: mixture+rbf"
prints "bags        sample"
prints "features    x1, x2, x3, x4, x5"
prints "y: a class"
prints "data: train.csv"
"$FINETTI" info numbers.fin --json | "$PYTHON" -c '
import json, sys
a = json.load(sys.stdin)
assert a["parts"][0]["settings"]["model"] == "mixture" and "classes" not in a and a["bags"] == 150 and len(a["features"]) == 5
assert a["notes"] == {"data": "numbers.npz"} and a["locates"] and a["bag"] is None and a["group"] is None'

# ---- predict, classes: CSV, NPZ and JSON have the same numbers
accepts predict classes.fin test.npz
cp stdout out.csv
grep -q "^finetti predict: 40 of 40 bags have labels: accuracy [01][.0-9]*, AUC" stderr || fail "$(cat stderr)"
accepts predict classes.fin test.npz --out file.csv
[ ! -s stdout ] || fail "$(head -c 200 stdout)"
cmp file.csv out.csv
accepts predict classes.fin test.npz --out file.npz
"$FINETTI" predict classes.fin test.npz --json >out.json 2>err
[ ! -s err ] || fail "$(cat err)"
"$FINETTI" predict classes.fin test.npz --threads 3 2>/dev/null | cmp - out.csv
"$PYTHON" - <<'P'
import csv, json, math
from npz import load
rows, a, j = list(csv.DictReader(open("out.csv"))), load("file.npz"), json.load(open("out.json"))
assert list(rows[0]) == ["bag", "true_label", "predicted", "p_0", "p_1", "sd_0", "sd_1"] and len(rows) == 40 == len(j["bags"])
assert bytes(a["bag"][1]).decode().split() == [r["bag"] for r in rows] and bytes(a["classes"][1]) == b"0\n1\n"
right = loss = 0
for i, (r, b) in enumerate(zip(rows, j["bags"])):
    p = [float(r["p_0"]), float(r["p_1"])]
    assert abs(sum(p) - 1) < 1e-12 and float(r["sd_1"]) >= 0
    assert list(a["probability"][1][2 * i:2 * i + 2]) == p == [b["probability"]["0"], b["probability"]["1"]]
    assert r["predicted"] == b["predicted"] == str(int(p[1] > p[0])) and a["class"][1][i] == int(r["predicted"])
    assert a["y"][1][i] == float(r["true_label"]) and r["true_label"] == b["true_label"]
    right += r["predicted"] == r["true_label"]
    loss -= math.log(p[int(r["true_label"])]) / 40
assert abs(j["score"]["accuracy"] - right / 40) < 1e-12 and abs(j["score"]["log_loss"] - loss) < 1e-9
assert j["score"]["count"] == 40 and right >= 32
P

# ---- numbers
"$FINETTI" predict numbers.fin newnumbers.npz --json >numbers.json
accepts predict numbers.fin newnumbers.npz
grep -q "40 of 40 bags have labels: R2 " stderr || fail "$(cat stderr)"
"$PYTHON" - <<'P'
import csv, json
rows, j = list(csv.DictReader(open("stdout"))), json.load(open("numbers.json"))
assert list(rows[0]) == ["bag", "true_label", "mean", "sd", "low90", "high90"]
inside = 0
for r, b in zip(rows, j["bags"]):
    y, m, s, lo, hi = (float(r[c]) for c in ("true_label", "mean", "sd", "low90", "high90"))
    assert s > 0 and abs(hi - m - 1.6448536269514722 * s) < 1e-9 and abs(m - lo - hi + m) < 1e-9 and b["mean"] == m and b["true_label"] == y
    inside += lo <= y <= hi
assert abs(j["score"]["coverage_90"] - inside / 40) < 1e-9 and j["score"]["r2"] > 0.5
P

# ---- CSV in: a bag's prediction does not depend on the others, on the order of rows and columns, or on
# columns that the model does not know; labels may be missing, all or some
accepts predict csv.fin test.csv "${columns[@]}"
cp stdout all.csv
"$PYTHON" - <<'P'
import csv, random
random.seed(2)
rows = list(csv.DictReader(open("test.csv")))
names = list(rows[0])
def write(path, rows, names):
    with open(path, "w", newline="") as f:
        w = csv.DictWriter(f, names, extrasaction="ignore", lineterminator="\n")
        w.writeheader()
        w.writerows(rows)
write("few.csv", [r for r in rows if int(r["sample"]) % 7 == 2], names)
write("turned.csv", rows, names[::-1])
write("unlabelled.csv", rows, [n for n in names if n != "y"])
write("some.csv", [{**r, "y": r["y"] if int(r["sample"]) % 2 else ""} for r in rows], names)
P
accepts predict csv.fin few.csv "${columns[@]}"
"$PYTHON" - <<'P'
import csv
a, b = {r["bag"]: r for r in csv.DictReader(open("all.csv"))}, list(csv.DictReader(open("stdout")))
assert len(a) == 40 and 4 < len(b) < 8 and all(a[r["bag"]] == r for r in b)
P
accepts predict csv.fin turned.csv "${columns[@]}"
cmp stdout all.csv
accepts predict csv.fin unlabelled.csv # the model knows the column of the bags
! grep -q "have labels" stderr || fail "$(cat stderr)"
"$PYTHON" - <<'P'
import csv
a, b = list(csv.DictReader(open("all.csv"))), list(csv.DictReader(open("stdout")))
assert "true_label" not in b[0] and all({k: x[k] for k in y} == y for x, y in zip(a, b))
P
accepts predict csv.fin some.csv "${columns[@]}"
grep -q "20 of 40 bags have labels" stderr || fail "$(cat stderr)"

# ---- locate: probabilities sum to one, ranks descend, rows are the file's, the label helps
"$FINETTI" locate csv.fin test.csv "${columns[@]}" >located.csv
"$FINETTI" locate csv.fin test.csv "${columns[@]}" --json >located.json
"$FINETTI" locate csv.fin test.csv "${columns[@]}" --out located.npz
"$FINETTI" locate csv.fin test.csv "${columns[@]}" --blind >blind.csv
"$FINETTI" locate csv.fin test.csv "${columns[@]}" --top 1 --out top.csv
"$FINETTI" locate csv.fin some.csv "${columns[@]}" >some_located.csv
"$FINETTI" locate csv.fin unlabelled.csv --bag sample 2>located.err | cmp - blind.csv
grep -q "^finetti locate: located by mixture+rbf" located.err || fail "$(cat located.err)"
"$PYTHON" - <<'P'
import csv, json
from npz import load
data = list(csv.DictReader(open("test.csv")))
rows, blind, top = (list(csv.DictReader(open(f + ".csv"))) for f in ("located", "blind", "top"))
assert list(rows[0]) == ["bag", "rank", "row", "token", "probability", "given_label", "own", "none", "data_token", "relevant"]
assert list(blind[0]) == ["bag", "rank", "row", "token", "probability", "own", "none", "data_token", "relevant"]
assert all(r["data_token"] == r["token"] and r["relevant"] == data[int(r["row"]) - 1]["relevant"] for r in rows)
assert len(rows) == len(data) == len(blind) and len(top) == 40 and sorted(int(r["row"]) for r in rows) == list(range(1, len(data) + 1))
bags = {}
for r in rows:
    bags.setdefault(r["bag"], []).append(r)
hits = 0
for bag, tokens in bags.items():
    assert [int(t["rank"]) for t in tokens] == list(range(1, len(tokens) + 1))
    for column in ("probability", "given_label"):
        assert abs(sum(float(t[column]) for t in tokens) - 1) < 1e-9
    given = [float(t["given_label"]) for t in tokens]
    assert given == sorted(given, reverse=True)
    assert all(data[int(t["row"]) - 1]["sample"] == bag and data[int(t["row"]) - 1]["token"] == t["token"] for t in tokens)
    assert len({t["none"] for t in tokens}) == 1 and all(0 <= float(t[c]) <= 1 for t in tokens for c in ("own", "none"))
    hits += data[int(tokens[0]["row"]) - 1]["relevant"] == "1"
assert hits >= 32, hits
assert [r for r in rows if r["rank"] == "1"] == top
prior = {r["row"]: r["probability"] for r in rows}
assert all(prior[r["row"]] == r["probability"] for r in blind)
some = list(csv.DictReader(open("some_located.csv")))
assert all((r["given_label"] == "nan") == (int(r["bag"]) % 2 == 0) for r in some)
j, a = json.load(open("located.json")), load("located.npz")
assert [t["row"] for b in j["bags"] for t in b["tokens"]] == [int(r["row"]) for r in rows] == list(a["row"][1])
assert list(a["given_label"][1]) == [float(r["given_label"]) for r in rows] and list(a["rank"][1]) == [int(r["rank"]) for r in rows]
assert [t["token"] for b in j["bags"] for t in b["tokens"]] == [int(r["token"]) for r in rows] == list(a["token"][1])
assert [t["own"] for b in j["bags"] for t in b["tokens"]] == [float(r["own"]) for r in rows] == list(a["own"][1])
assert [b["none"] for b in j["bags"]] == list(a["none"][1]) and j["locator"]["model"] == "mixture+rbf" and j["notes"] == []
names = bytes(a["bag_names"][1]).decode().split("\n")
assert [names[i] for i in a["bag"][1]] == [r["bag"] for r in rows] and {b["label"] for b in j["bags"]} == {"0", "1"}
P
# a stack locates by its parts; on a terminal there is a table of three tokens a bag
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    script -qec "'$FINETTI' locate csv.fin test.csv --bag sample --label y" /dev/null </dev/null | tr -d '\r' >table
    grep -q '^bag  *tokens  none  row from 1 (token from 0): .*; none: that no token is positive$' table && [ "$(wc -l <table)" -ge 40 ] || fail "$(head -5 table)"
    grep -qE '^1000 +[2-6] [01]\.[0-9]{3}  [0-9]+ \([0-5]\): [01]\.[0-9]{3} \([01]\.[0-9]{3}\) \[[01]\.[0-9]{3}\]' table || fail "$(head -5 table)"
else
    echo "SKIPPED: the table on a terminal: no terminal can be made"
fi
refuses 1 "has no location" locate whole.fin test.npz
accepts predict whole.fin test.npz

# ---- what can go wrong
refuses 2 "MODEL DATA are needed" predict classes.fin
refuses 2 "the model comes first" predict test.npz classes.fin
refuses 2 "stands where data are expected" locate classes.fin classes.fin
refuses 2 "tells no format" predict classes.fin test.npz --out x.txt
refuses 2 "give one of them" predict classes.fin test.npz --out - --json
refuses 1 "nowhere.fin" predict nowhere.fin test.npz
refuses 1 "nowhere.npz" predict classes.fin nowhere.npz
refuses 1 "test.npz" predict test.npz test.npz
refuses 2 "top = 0" locate classes.fin test.npz --top 0
refuses 2 "did you mean --blind" locate classes.fin test.npz --blnd
mkdir folder
for file in no/x.csv no/x.npz; do
    refuses 1 "no/x" predict classes.fin test.npz --out $file
    refuses 1 "no/x" locate classes.fin test.npz --out $file
done
# a model for other features: which are missing
"$PYTHON" - <<'P'
import csv
rows = list(csv.DictReader(open("test.csv")))
with open("other.csv", "w") as f:
    f.write("sample,y,x1,x2,x4,z\n" + "".join("%s,%s,%s,%s,%s,1\n" % tuple(r[c] for c in ("sample", "y", "x1", "x2", "x4")) for r in rows))
P
refuses 2 "x3" predict csv.fin other.csv "${columns[@]}"
refuses 2 "x3" locate csv.fin other.csv "${columns[@]}"
simulate --n 5 --d 5 --out fewer.npz --d 4
refuses 2 "4 columns" predict classes.fin fewer.npz
# a label that the model does not know
sed 's/^\(10[0-9]*,[0-9]*,[01],\)1,/\1maybe,/' test.csv >strange.csv
accepts predict csv.fin strange.csv "${columns[@]}"
grep -q "no class of the model" stderr && ! grep -q nan stderr || fail "$(cat stderr)"
# truncated, and altered
head -c 700 classes.fin >short.fin
refuses 1 "short.fin" predict short.fin test.npz
refuses 1 "short.fin" info short.fin
"$PYTHON" -c '
b = bytearray(open("classes.fin", "rb").read())
b[-9] ^= 1
open("bad.fin", "wb").write(b)'
refuses 1 "bad.fin" predict bad.fin test.npz
[ ! -e x.csv ] || fail "x.csv"
empty_folder folder

# ---- labels: only those that were asked for; names of classes that are long, and not of ASCII
refuses 2 "no column 'target'" predict classes.fin test.npz --label target
refuses 2 "no column 'target'" locate csv.fin test.csv --bag sample --label target
"$PYTHON" - <<'P'
import random
r = random.Random(1)
with open("long.csv", "w", encoding="utf-8") as f:
    f.write("bag,label,x,größe\n")
    for i in range(24):
        for t in range(3):
            f.write("%sß%d,%s%s,%r,%r\n" % ("日本" * 20, i, "ü" * 150, "ab"[i % 2], r.gauss(i % 2, 1), r.gauss(0, 1)))
P
accepts fit long.csv --model mixture --cv none --out long.fin
cp stdout long.txt
accepts predict long.fin long.csv --json
cp stdout long.json
accepts locate long.fin long.csv --json
cp stdout where.json
accepts predict long.fin long.csv --out answers.csv
accepts info long.fin
cp stdout info.txt
: >table
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    script -qec "'$FINETTI' locate long.fin long.csv" /dev/null </dev/null >table
else
    : >table
fi
"$PYTHON" - <<'P'
import csv, json
names = {"ü" * 150 + c for c in "ab"}
for file in ("long.json", "where.json"):
    bags = json.load(open(file, encoding="utf-8"))["bags"]
    assert len(bags) == 24 and {b["true_label" if file == "long.json" else "label"] for b in bags} == names, file
head, *rows = csv.reader(open("answers.csv", encoding="utf-8"))
assert {h[2:] for h in head if h.startswith("p_")} == names and {r[1] for r in rows} == names, head
for file in ("long.txt", "info.txt", "table"):  # nothing is cut inside a character
    open(file, "rb").read().decode("utf-8")
P

# ---- evidence: for every model, the same as predicting the bag without the token; known tokens judge it
accepts locate csv.fin test.csv --evidence --json
cp stdout evidence.json
accepts locate whole.fin test.npz --evidence --out evidence.npz
accepts locate whole.fin test.npz --evidence
cp stdout whole.csv
"$PYTHON" - <<'P'
import csv, json
from npz import load
def without(row):
    with open("test.csv") as f, open("less.csv", "w") as g:
        for k, line in enumerate(f):
            if k != row:
                g.write(line)
a = json.load(open("evidence.json"))
first = a["bags"][0]["tokens"]
assert [t["evidence"] for t in first] == sorted((t["evidence"] for t in first), reverse=True) and set(first[0]) >= {"evidence", "alone", "probability"}
json.dump(first[0], open("token.json", "w"))
without(first[0]["row"])
found = {f["score"]: f for f in a["found"]}
assert found["probability"]["bags"] == 40 and found["given_label"]["first"] > 0.7 and "ece" not in found["evidence"]
assert found["evidence"]["share_ece"] > 0 and 0.5 < found["evidence"]["auc"] <= 1
fall = a["flipping"]["evidence"]["fall"]
assert len(fall) == 11 and abs(fall[0]) < 1e-12 and a["flipping"]["evidence"]["area"] > a["flipping"]["probability"]["area"]
rows, z = list(csv.DictReader(open("whole.csv"))), load("evidence.npz")
assert "probability" not in rows[0] and "probability" not in z and list(z["evidence"][1]) == [float(r["evidence"]) for r in rows]
P
accepts predict csv.fin test.csv --json
cp stdout all.json
accepts predict csv.fin less.csv --json
"$PYTHON" - <<'P'
import json
a, b, t = (json.load(open(f)) for f in ("all.json", "stdout", "token.json"))
a, b = a["bags"][0], b["bags"][0]
assert a["bag"] == b["bag"] and abs(a["probability"][a["predicted"]] - b["probability"][a["predicted"]] - t["evidence"]) < 1e-12, (a, b, t)
P
