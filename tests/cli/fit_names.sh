# Names of models: what tokens are seen through, heads, the base rate, the positive class.
set -eu
. "$SRC/tests/cli/common.bash"
"$FINETTI" simulate --n 60 --d 3 --L 3 --mu 3 --eps 0.1 --sign --out bags.npz 2>/dev/null
"$FINETTI" simulate --n 60 --d 3 --L 3 --mu 3 --eps 0.1 --out numbers.npz 2>/dev/null
"$PYTHON" - <<'P'
import random
r = random.Random(1)
with open("words.csv", "w") as f:
    f.write("bag,label,x,z\n")
    for i in range(40):
        for t in range(3):
            f.write("%d,%s,%.5f,%.5f\n" % (i, ("benign", "malignant")[i % 2], r.gauss(2 * (i % 2) * (t == 1), 1), r.gauss(0, 1)))
with open("three.csv", "w") as f:
    f.write("bag,label,x,z\n" + "".join("%d,%s,%.5f,%.5f\n" % (i, "abc"[i % 3], r.gauss(i % 3, 1), r.gauss(0, 1)) for i in range(30)))
P

# called MODEL... -- NAME: what the report calls it
called() {
    local words=() name
    while [ "$1" != -- ]; do words+=("$1"); shift; done
    name=$2
    accepts fit "${words[@]}" --cv none
    grep -q "^model       ${name//+/\\+};" stdout || grep -qF "model       $name;" stdout || fail "${words[*]}: $(grep ^model stdout)"
}
called bags.npz -- softmax+rbf
called bags.npz --model softmax -- softmax+rbf
called bags.npz --model softmax:linear -- softmax:linear
called bags.npz --model softmax --basis linear -- softmax:linear
called bags.npz --model softmax:rbf -- softmax:rbf
called bags.npz --model softmax+rbf --basis both -- softmax+rbf
called bags.npz --model mixture -- mixture+rbf
called bags.npz --model mixture:linear -- mixture:linear
called bags.npz --model any -- any
called bags.npz --model any --basis both -- any+rbf
called bags.npz --model any+rbf -- any+rbf
called bags.npz --model mean -- mean
called bags.npz --model mean:linear -- mean
called bags.npz --model base -- "base rate"
called bags.npz --model "softmax:linear x2" -- "softmax:linear x2"
called bags.npz --model softmax:linear --heads 2 -- "softmax:linear x2"
called bags.npz --model mixture+rbf --model mean -- mean
called numbers.npz -- softmax
called numbers.npz --model mixture -- mixture
called numbers.npz --model softmax+rbf -- softmax+rbf

# RBF features that nobody asked for are explained; asked for, they are not
usual="+rbf: RBF features beside the columns, usual for classes; --basis linear leaves them out"
accepts fit bags.npz --model mixture --cv none
prints "$usual"
prints "inside the fit, for its choices"
for words in "bags.npz --model mixture+rbf" "bags.npz --model mixture --basis linear" "numbers.npz --model mixture" "bags.npz --model mean"; do
    accepts fit $words --cv none
    ! grep -qF "$usual" stdout || fail "$words: $(cat stdout)"
    ! grep -qF "outer folds" stdout || fail "$words: $(cat stdout)"
done

# JSON has what --model and --compare read
"$FINETTI" fit bags.npz --model base --cv 2 --compare softmax,softmax:linear,mixture+rbf,base --no-curve --json >rows.json
"$PYTHON" - <<'P'
import json
a = json.load(open("rows.json"))
rows = a["validation"]["models"]
assert [r["model"] for r in rows] == ["base", "softmax+rbf", "softmax:linear", "mixture+rbf"], rows
assert [r["basis"] for r in rows] == ["linear", "both", "linear", "both"] and a["fit"]["model"] == "base"
P

# ---- refused
refuses 2 "did you mean softmax" fit bags.npz --model sofmax+rbf
refuses 2 "is no model; write softmax, softmax+rbf, softmax:rbf or softmax:linear" fit bags.npz --model softmax+poly
refuses 2 "contradict each other" fit bags.npz --model softmax+rbf --basis linear
refuses 2 "contradict each other" fit bags.npz --basis rbf --model mixture:linear
refuses 2 "contradict each other" fit bags.npz --model "softmax x2" --heads 4
refuses 2 "mixture has no heads" fit bags.npz --model mixture --heads 4
refuses 2 "mean has no heads" fit bags.npz --compare "mean x2"
accepts fit bags.npz --model stack --heads 2 --inner 2 --cv none
! grep -qE "(^| )(mixture|embedding|mean|max|any|base)[^ ]* x2" stdout || fail "$(cat stdout)"

[ "$(grep -E "^(parts)? +[a-z]" stdout | sort | uniq -d | wc -l)" = 0 ] || fail "parts that look alike: $(cat stdout)"

# ---- the positive class has a name
"$FINETTI" complete fit >options
[ "$(grep -c '^--positive' options)" = 1 ] && grep -q '^--positive.text' options || fail "$(grep positive options)"
[ "$("$FINETTI" help fit | grep -c -e '^  --positive')" = 1 ] || fail "two options --positive"
for name in benign malignant; do
    "$FINETTI" fit words.csv --model any --positive $name --cv none --json >$name.json
done
"$PYTHON" - <<'P'
import json
a, b = (json.load(open(n + ".json"))["fit"] for n in ("benign", "malignant"))
assert (a["settings"]["positive"], b["settings"]["positive"]) == (0, 1), a["settings"]
assert b["training_loss"] < a["training_loss"] and b["positive"] == "malignant" and a["positive"] == "benign"
P
accepts fit words.csv --model any --positive malignant --cv none
prints "positive    malignant (as asked)"
accepts fit words.csv --model any --cv none
prints "positive    malignant (chosen on inner folds)"
accepts fit words.csv --model mean --locator no --cv none
! grep -q ^positive stdout || fail "$(cat stdout)"
refuses 2 "no class 'malignent'; did you mean malignant?" fit words.csv --model any --positive malignent
refuses 2 "the classes are 'benign' and 'malignant'" fit words.csv --model any --positive 1
refuses 2 "there are more" fit three.csv --model mean --positive a
refuses 2 "the labels are numbers" fit numbers.npz --model mean --positive a
