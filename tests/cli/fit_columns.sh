# finetti fit, predict and locate: which columns are what. The bag's column that a model remembers, groups, columns that
# belong to bags, units that changed, bags that the model knows.
set -eu
. "$SRC/tests/cli/common.bash"
"$PYTHON" - <<'P'
import random
r = random.Random(5)
rows = {"train": [], "new": []}
for i in range(120):
    label = i % 2
    key = r.randrange(4)
    for t in range(4):
        x = [r.gauss(0, 1), r.gauss(3 if t == key and label else 0, 1), r.gauss(0, 1)]
        rows["train" if i < 80 else "new"].append((x, "m%d" % i, "p%d" % (i // 4), "yes" if label else "no", i // 4, i % 7))
for name, some in rows.items():
    with open(name + ".csv", "w") as f:
        f.write("x1,x2,x3,molecule,patient,active\n")
        for x, m, p, y, _, _ in some:
            f.write("%.6f,%.6f,%.6f,%s,%s,%s\n" % (*x, m, p, y))
with open("graded.csv", "w") as f:
    f.write("x1,x2,grade,x3,molecule,active,event\n")
    for x, m, p, y, g, e in rows["train"]:
        f.write("%.6f,%.6f,%d,%.6f,%s,%s,%d\n" % (x[0], x[1], g, x[2], m, y, e))
with open("metres.csv", "w") as f:
    f.write("x1,x2,x3,molecule,patient,active\n")
    for x, m, p, y, _, _ in rows["new"]:
        f.write("%.6f,%.6f,%.6f,%s,%s,%s\n" % (x[0], x[1], 1e5 * (x[2] + 30), m, p, y))
P
columns=(--bag molecule --label active)

# ---- the model remembers the column of the bags
fit=(fit train.csv "${columns[@]}" --model mixture)
accepts "${fit[@]}" --cv none --out m.fin
accepts predict m.fin new.csv
cp stdout remembered.csv
[ "$(wc -l <stdout)" = 41 ] || fail "not a row for each of 40 molecules: $(head -3 stdout)"
! grep -q "note:" stderr || fail "$(cat stderr)"
accepts predict m.fin new.csv --bag molecule
cmp stdout remembered.csv
accepts locate m.fin new.csv --top 1
[ "$(wc -l <stdout)" = 41 ] || fail "$(head -3 stdout)"
sed 1s/molecule/compound/ new.csv >renamed.csv
for command in predict locate; do
    refuses 2 "renamed.csv has no column 'molecule', which named the bags" $command m.fin renamed.csv
    grep -q "there are x1, x2, x3, compound, patient, active (--bag says another)" stderr || fail "$(cat stderr)"
done
accepts predict m.fin renamed.csv --bag compound
cmp stdout remembered.csv
accepts info m.fin
prints "bags        molecule"
! grep -q '^groups' stdout || fail "$(cat stdout)"
# a model of arrays and a table, and the other way round
"$FINETTI" simulate --n 60 --d 3 --L 4 --sign --out a.npz 2>/dev/null
"$FINETTI" simulate --n 60 --d 3 --L 4 --sign --out a.csv 2>/dev/null
"$FINETTI" fit a.npz --model mean --cv none --out npz.fin --quiet
"$FINETTI" fit a.csv --bag sample --label y --model mean --cv none --out csv.fin --quiet
"$FINETTI" predict csv.fin a.npz 2>/dev/null >crossed.csv
accepts predict csv.fin a.csv
"$PYTHON" - <<'P'
import csv
a, b = ([[float(x) for x in r] for r in list(csv.reader(open(f)))[1:]] for f in ("crossed.csv", "stdout"))
assert len(a) == len(b) == 60 and all(abs(x - y) < 1e-5 for r, s in zip(a, b) for x, y in zip(r, s))
P

# ---- groups: a line, no feature, folds that respect them
accepts "${fit[@]}" --group patient --cv 4 --compare none --no-curve --out g.fin
prints "groups      patient: 20 of 80 bags"
prints "80 bags, 320 tokens, 3 columns"
accepts info g.fin
prints "groups      patient"
cut -d, -f1-4,6 new.csv >ungrouped.csv
accepts predict g.fin ungrouped.csv
"$FINETTI" "${fit[@]}" --group patient --cv none --json | "$PYTHON" -c '
import json, sys
a = json.load(sys.stdin)
assert a["data"]["groups"] == {"column": "patient", "count": 20} and a["data"]["columns"] == 3 and a["data"]["columns_of_bags"] == []'
{ echo bag,fold; for i in $(seq 0 79); do echo "m$i,$((i / 4 % 2))"; done; } >whole.csv
accepts "${fit[@]}" --group patient --folds whole.csv --compare none --no-curve
sed 's/^m5,.*/m5,0/' whole.csv >split.csv
refuses 1 "bags of one group (patient) in several folds: m4, m5, m6, m7" "${fit[@]}" --group patient --folds split.csv
accepts "${fit[@]}" --folds split.csv --compare none --no-curve
sed '3s/,p0,/,p9,/' train.csv >two.csv
refuses 1 "line 3, column 'patient': 'p9' differs from the group of the same bag, 'm0', in line 2" fit two.csv "${columns[@]}" --group patient
refuses 2 "no column 'patients'; did you mean patient?" "${fit[@]}" --group patients
refuses 2 "cannot be both the bag and the group" "${fit[@]}" --group molecule
refuses 2 "but there are 20 groups; as many folds as groups at most" "${fit[@]}" --group patient --cv 21
{ head -1 train.csv; awk -F, -v OFS=, 'NR > 1 { $5 = $6 == "yes" ? "q" : $5; print }' train.csv; } >lone.csv
refuses 2 "class 'yes' has a single group" fit lone.csv "${columns[@]}" --group patient --cv 3
accepts fit lone.csv "${columns[@]}" --group patient --model mean
prints "cross-validation: none, too few groups of a class"
# a curve, and a choice
accepts "${fit[@]}" --group patient --cv none --curve
prints "learning curve: accuracy"

# ---- columns that are constant within every bag say something about bags
level=(fit graded.csv "${columns[@]}" --model mixture --cv none)
accepts "${level[@]}" --out left.fin
prints "left out    2 columns that are constant within every bag: grade, event (--features names them to keep them)"
prints "80 bags, 320 tokens, 3 columns"
[ ! -s stderr ] || fail "$(cat stderr)"
accepts info left.fin
prints "features    x1, x2, x3"
accepts predict left.fin new.csv
cmp stdout remembered.csv
accepts "${level[@]}" --features x1,grade --json
"$PYTHON" -c '
import json
a = json.load(open("stdout"))["data"]
assert a["columns"] == 2 and a["columns_of_bags"] == ["grade"] and "constant within every bag: grade" in a["notes"][0], a'
grep -q "note: a column is constant within every bag: grade" stderr || fail "$(cat stderr)"
accepts "${level[@]}" --json
"$PYTHON" -c '
import json
a = json.load(open("stdout"))["data"]
assert a["columns"] == 3 and a["columns_of_bags"] == ["grade", "event"] and a["notes"] == [], a'
cut -d, -f3,5- graded.csv >only.csv
refuses 2 "every column of only.csv is constant within every bag (grade, event)" fit only.csv "${columns[@]}"
accepts fit only.csv "${columns[@]}" --features grade,event --model mean --cv none

# ---- a column that marks one token of each bag is a feature, with a note; one that does so in all bags but one has none
awk -F, -v OFS=, 'NR == 1 { print $0, "truth", "most" } NR > 1 { m = (NR + int((NR - 2) / 4)) % 4 == 2; print $0, m, NR < 6 ? 0 : m }' train.csv >marked.csv
marked=(fit marked.csv "${columns[@]}" --model mean --cv none --json --features)
note="column 'truth' marks one token of each bag, and is used as a feature; if it is no measurement, name the others with --features"
accepts "${marked[@]}" x1,x2,truth
grep -qF "note: $note" stderr || fail "$(cat stderr)"
"$PYTHON" -c '
import json, sys
assert json.load(open("stdout"))["data"]["notes"] == [sys.argv[1]]' "$note"
for features in x1,x2 x1,most; do
    accepts "${marked[@]}" $features
    ! grep -q "note:" stderr || fail "$features: $(cat stderr)"
done

# ---- what R and pandas write for nothing is a class, with a note
printf 'bag,label,x\na,NA,1\nb,no,2\nc,yes,3\nd,yes,4\n' >blank.csv
accepts fit blank.csv --bag bag --label label --model mean --cv none --json
grep -qF "note: 'NA' is taken as a class; if it says that a label is not known, leave these bags out" stderr || fail "$(cat stderr)"

# ---- other units, known bags
accepts predict m.fin metres.csv
grep -q "note: column 'x3': 160 of 160 tokens are far outside of what the model was fitted to (-[0-9.]* to [0-9.]*); are the units the same?" stderr ||
    fail "$(cat stderr)"
accepts locate m.fin metres.csv --json
"$PYTHON" -c '
import json
notes = json.load(open("stdout"))["notes"]
assert len(notes) == 1 and notes[0].startswith("column \x27x3\x27: 160 of 160 tokens"), notes'
accepts predict m.fin train.csv
grep -q "note: 80 of 80 bags are those that the model was fitted to: the score says nothing about new bags" stderr || fail "$(cat stderr)"
accepts predict m.fin train.csv --json
"$PYTHON" -c '
import json
notes = json.load(open("stdout"))["notes"]
assert len(notes) == 1 and "80 of 80 bags" in notes[0], notes'
cut -d, -f1-4 train.csv >unlabelled.csv
accepts predict m.fin unlabelled.csv # no score, no note
! grep -q "note:" stderr || fail "$(cat stderr)"
