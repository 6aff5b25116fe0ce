# finetti curve: a row per alpha in every format, ranges, refusals.
set -eu
. "$SRC/tests/cli/common.bash"

accepts curve --alpha 1
"$FINETTI" curve --snr 5 --L 3 --eps 0.5 --alpha 0.5:50:4log >table
"$FINETTI" curve --alpha 0.5:50:4log --out - >a.csv
"$FINETTI" curve --alpha 0.5:50:4log --threads 3 --out b.csv
"$FINETTI" curve --alpha 0.5:50:4log --json >c.json
"$FINETTI" lab curve --alpha 50 --json >d.json
"$FINETTI" curve --snr 1 --L 20 --eps 0.01 --alpha 1,1.7,4 --json >e.json
"$FINETTI" lab curve --snr 1 --L 20 --eps 0.01 --alpha 4 >note
"$FINETTI" curve --sweep L=2,4 --alpha 3 --out - >grid.csv
"$FINETTI" curve --sweep L=2,4 --alpha 3 >swept
! head -n 1 swept | grep -q "L=" || fail "a swept setting has no one value: $(head -n 1 swept)"
cmp a.csv b.csv
grep -q "two fixed points" note || fail "$(cat note)"
"$PYTHON" - <<'P'
import csv, json
rows = list(csv.DictReader(open("a.csv")))
points = json.load(open("c.json"))["points"]
one = json.load(open("d.json"))["scalars"]
assert [float(r["alpha"]) for r in rows] == points["alpha"] and len(rows) == 4
for name in "q_k", "q_v", "optimal", "known", "linear":
    assert [float(r[name]) for r in rows] == points[name], name
    assert points[name][-1] == one[name]["value"], name
head, empty, *table = open("table").read().splitlines()
assert head.startswith("task spiked: L=3 snr=5 eps=0.5 ") and not empty, head # what all rows share
table = table[:5]
assert [line.split()[0] for line in table] == ["alpha"] + ["%.12g" % a for a in points["alpha"]], table
assert len({line.index(line.split()[1], 10) for line in table}) == 1, table # columns are under each other
assert all(a > b for a, b in zip(points["optimal"], points["optimal"][1:])), points
assert points["optimal"][-1] > points["known"][-1] and points["linear"][0] > points["optimal"][0]
two = json.load(open("e.json"))["points"] # nan: there is but one
assert two["stuck"][:2] == ["nan", "nan"] and two["stuck"][2] > two["optimal"][2], two
assert two["beside"][0] == two["beside"][2] == "nan" and two["beside"][1] < two["optimal"][1], two
assert [(r["L"], r["alpha"]) for r in csv.DictReader(open("grid.csv"))] == [("2", "3"), ("4", "3")]
P

refuses 2 "alpha = 0" curve --alpha 0
refuses 2 "alpha = 1e+99" curve --alpha 1e99
refuses 2 "alpha" curve --alpha 1:2
refuses 2 "alpha" curve --alpha nan
refuses 2 "log range" curve --alpha 0:2:5log
refuses 2 "swept twice" curve --alpha 1 --sweep alpha=2
refuses 2 "snr = -1" curve --snr -1
refuses 2 "L = 0" curve --L 0
refuses 2 "eps = 11" curve --eps 11
refuses 2 "did you mean" curve --alpa 1
refuses 2 "--out writes" curve --json --out x.csv
for words in "--snr 0" "--L 1" "--eps 0" "--alpha 0.001" "--alpha 1e6" "--snr 1e4 --L 1000000 --eps 10" "--L 1 --eps 0 --alpha 1" "--snr 0 --eps 0 --alpha 1"; do
    "$FINETTI" curve --alpha 1 $words >/dev/null || fail "$words"
done
