# finetti fit: the report, cross-validation, folds, comparisons, the model file, threads.
set -eu
. "$SRC/tests/cli/common.bash"
"$FINETTI" simulate --n 120 --d 5 --L 4 --mu 3 --eps 0.1 --sign --out bags.npz 2>/dev/null
"$FINETTI" simulate --n 120 --d 5 --L 4 --mu 3 --eps 0.1 --sign --out bags.csv 2>/dev/null
"$FINETTI" simulate --n 150 --d 5 --L 4 --mu 3 --eps 0.1 --out numbers.npz 2>/dev/null

# ---- the report, for classes
accepts fit bags.npz --model mixture --cv 5x2 --out model.fin
prints "bags.npz: 120 bags, 480 tokens, 5 columns"
prints "2 classes"
prints "cross-validation: 5 folds, 2 times (mean +- standard error over folds)"
prints "first minus this: difference in accuracy; its +- is corrected for overlapping training sets (Nadeau-Bengio)"
prints "inside the fit, for its choices; the table below is of outer folds"
prints "expected calibration error"
prints "one responsible token?"
prints "learning curve"
prints "score: which token (k)"
prints "written to  model.fin"
prints "locations   by mixture+rbf"
for model in 'mixture\+rbf' 'base rate' mean max; do
    grep -qE "^$model +[01]\.[0-9]{4} \+- 0\.[0-9]{4} " stdout || fail "no row of $model: $(cat stdout)"
done
[ -s model.fin ] || fail "no model"
! grep ' $' stdout || fail "spaces at the end of a line"
[ ! -s stderr ] || fail "$(cat stderr)"
# the same again, with more threads: no times, no chance; a sanitizer sees nothing new in it
if [ "${FINETTI_TEST_SIZE:-usual}" != small ]; then
    cp stdout first
    accepts fit bags.npz --model mixture --cv 5x2 --out again.fin --threads 3
    sed s/again/model/ stdout | cmp - first
    cmp model.fin again.fin
else
    mv stdout first
fi
"$FINETTI" fit bags.npz --model mean --locator no --cv 2 --no-curve --out quiet.fin --quiet >quiet 2>&1
[ -s quiet.fin ] && [ ! -s quiet ] || fail "$(cat quiet)"

# ---- the same numbers in JSON; CSV and NPZ are the same data
"$FINETTI" fit bags.npz --model mixture --cv 5x2 --json >npz.json
"$FINETTI" fit bags.csv --bag sample --label y --features 'x*' --model mixture --cv 5x2 --no-curve --json >csv.json
"$PYTHON" - <<'P'
import json, re
a, b = json.load(open("npz.json")), json.load(open("csv.json"))
text = open("first").read()
rows = {r["model"]: r for r in a["validation"]["models"]}
assert list(rows) == ["mixture+rbf", "base", "mean", "max"]
assert [r["basis"] for r in rows.values()] == ["both", "linear", "linear", "linear"]
for name, row in rows.items():
    title = re.escape("base rate" if name == "base" else name)
    assert re.search(r"^%s +%.4f \+- %.4f " % (title, row["main"], row["main_se"]), text, re.M), name
    assert row["main"] == row["mean"]["accuracy"] and 0 <= row["mean"]["auc"] <= 1 and row["mean"]["log_loss"] > 0
    assert 0 <= row["mean"]["brier"] <= 1 and 0 <= row["mean"]["ece"] <= 1 and row["seconds"] >= 0
    if name != "mixture+rbf":
        assert abs(row["gain_of_first"] - (rows["mixture+rbf"]["main"] - row["main"])) < 1e-12 and row["gain_se"] >= 0
assert rows["mixture+rbf"]["main"] > 0.65 and rows["mean"]["gain_of_first"] > 0
bins = a["validation"]["reliability"]
assert len(bins) == 10 and sum(x["count"] for x in bins) == 480  # of both classes, in two repeats
one = a["one_token"]
assert one["mixture"] < one["mean"] and not one["warning"] and "It looks so: a single token" in text
assert abs(one["difference"] - one["mixture"] + one["mean"]) < 1e-12 and one["difference"] < 0
assert one["mixture_model"] == "mixture+rbf" and one["mean_model"] == "mean"
assert "(log loss of mixture+rbf %.4f, of mean %.4f, mixture minus mean pooling %.4f +- %.4f)" % (
    one["mixture"], one["mean"], one["difference"], one["difference_se"]) in text
fit = a["fit"]
if "inner_loss" in fit: # of the inner folds of the calibration
    assert "inner folds log loss %.4f (base rate %.4f)" % (fit["inner_loss"], fit["base_loss"]) in text
if "loss" in fit["locator"]:
    assert "locations   by mixture+rbf: log loss %.4f on bags left out" % fit["locator"]["loss"] in text
assert not re.search(r"[-+]0\.0000", text)
curve = a["learning_curve"]
assert [round(p["bags"]) for p in curve] == [24, 48, 72, 96] and all(p["se"] >= 0 for p in curve)
assert curve[3]["score"] > curve[0]["score"] and len(a["importance"]) == 5
assert a["data"]["bags"] == 120 and [c["bags"] for c in a["data"]["classes"]] == [c["bags"] for c in b["data"]["classes"]]
assert a["fit"]["locates"] and a["fit"]["members"] >= 1 and a["fit"]["parts"][0]["weight"] == 1
assert a["fit"]["settings"]["basis"] == "auto" and a["fit"]["parts"][0]["basis"] == "both" and a["fit"]["locator"]["model"] == "mixture+rbf" and a["fit"]["settings"]["penalty"] == "auto"
for x, y in zip(a["validation"]["models"], b["validation"]["models"]):
    assert abs(x["main"] - y["main"]) < 0.02, (x, y)  # the CSV file has the same digits
P

# ---- numbers
"$FINETTI" fit numbers.npz --model mixture --cv 4 --json >numbers.json
accepts fit numbers.npz --model mixture --cv 4 --compare none --no-curve
prints "a number, mean"
prints "log score"
! grep -q -e "learning curve" -e "^mean " -e calibration stdout || fail "$(cat stdout)"
"$PYTHON" - <<'P'
import json
a = json.load(open("numbers.json"))
r = a["validation"]["models"][0]
assert a["validation"]["main"] == "R2" and a["validation"]["folds"] == 4 and a["validation"]["repeats"] == 1
assert r["main"] == r["mean"]["r2"] > 0.5 and 0.6 < r["mean"]["coverage_90"] <= 1 and r["mean"]["rmse"] > r["mean"]["mae"] > 0
assert "reliability" not in a["validation"] and a["fit"]["noise"] > 0
P

# ---- the default is a quick cross-validation, without the curve; --curve alone is possible
accepts fit bags.npz --model mean --locator no
prints "cross-validation: 5 folds, 1 time "
! grep -q "learning curve" stdout || fail "a learning curve that nobody asked for"
prints "on the bags it was fitted to (new bags: see below)"
accepts fit bags.npz --model mean --locator no --cv none
prints "cross-validation: none"
prints "(too good: new bags were not tried)"
accepts fit bags.npz --model mean --locator no --cv none --curve
prints "learning curve: accuracy"
prints "(new bags: see below)"
accepts fit bags.npz --model mean --locator no --cv auto
prints "5 folds, 1 time"

# ---- auto names what it took, and is compared with what it chooses from, each once
"$FINETTI" simulate --n 50 --d 3 --L 3 --sign --out few.npz 2>/dev/null
"$FINETTI" fit few.npz --model auto --inner 2 --cv 2 --no-curve --json >auto.json
"$PYTHON" - <<'P'
import json
a = json.load(open("auto.json"))
names = [r["model"] for r in a["validation"]["models"]]
assert names[0] == "auto" and len(names) == len(set(names)) >= 11, names
assert {"base", "mean", "max", "mixture:linear", "mixture+rbf", "softmax:linear", "softmax+rbf", "any", "any+rbf"} <= set(names)
assert all(r["settings"]["positive"] == "auto" for r in a["validation"]["models"])
assert a["fit"]["model"] == "auto" and a["fit"]["parts"][0]["model"] not in ("auto", "stack")
assert abs(sum(p["weight"] for p in a["fit"]["parts"]) - 1) < 1e-9
P
# a list of one's own, with bases
"$FINETTI" fit bags.npz --model softmax:linear --cv 2 --compare softmax+rbf,mean:rbf,softmax,mean --json --no-curve | "$PYTHON" -c '
import json, sys
a = json.load(sys.stdin)
r = a["validation"]["models"]
assert [x["model"] for x in r] == ["softmax:linear", "softmax+rbf", "mean:rbf", "mean"], r
assert r[1]["settings"]["basis"] == "both" and r[2]["settings"]["basis"] == "rbf" and "one_token" not in a'

# ---- folds from a file
"$PYTHON" - <<'P'
import random
random.seed(1)
with open("folds.csv", "w") as f:
    f.write("bag_id,first,second\n")
    for i in range(120):
        f.write("%d,%d,%d\n" % (i, 1 + i % 3, 1 + i // 40))
P
accepts fit bags.npz --model mean --locator no --folds folds.csv --compare none --no-curve
prints "cross-validation: 3 folds, 2 times, from folds.csv"
refuses 2 "both say what the folds are" fit bags.npz --model mean --locator no --folds folds.csv --cv 3x2
refuses 2 "both say what the folds are" fit bags.npz --model mean --locator no --folds folds.csv --cv 5
accepts fit bags.npz --model mean --locator no --folds folds.csv --cv auto --compare none --no-curve
grep -v '^17,' folds.csv >hole.csv
refuses 1 "17" fit bags.npz --model mean --locator no --folds hole.csv

# ---- one token does not decide: the label is the sign of the mean, and the report warns
"$PYTHON" - <<'P'
import random
random.seed(3)
with open("mean.csv", "w") as f:
    f.write("bag,label,a,b\n")
    for i in range(150):
        rows = [[random.gauss(0, 1), random.gauss(0, 1)] for _ in range(12)]
        y = "yes" if sum(r[0] for r in rows) > 0 else "no"
        for r in rows:
            f.write("m%d,%s,%.6f,%.6f\n" % (i, y, *r))
P
accepts fit mean.csv --model mean --locator no --cv 5x2 --no-curve
prints "Warning: mean pooling explains the labels better than any single token does"
prints "locations may not mean much"
prints "no: "
prints "yes: "
"$FINETTI" fit mean.csv --model mean --locator no --json --compare mixture | "$PYTHON" -c '
import json, sys
a = json.load(sys.stdin)
assert a["one_token"]["warning"] and [c["name"] for c in a["data"]["classes"]] == ["no", "yes"]'

# ---- columns that never change are named; too few bags for a curve are no error
"$PYTHON" - <<'P'
import random
random.seed(4)
with open("constant.csv", "w") as f:
    f.write("bag,label,a,same,b,other\n")
    for i in range(24):
        for _ in range(3):
            f.write("%d,%d,%.4f,1,%.4f,0\n" % (i, i % 2, random.gauss(i % 2, 1), random.gauss(0, 1)))
P
accepts fit constant.csv --model softmax --cv 3
prints "left out    2 constant columns:"
prints "same, other"
prints "learning curve: none, it takes at least 40 bags"
