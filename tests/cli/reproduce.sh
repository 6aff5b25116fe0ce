# finetti reproduce: its folder, its table and its report, with one study. All of them: tests/all.
set -eu
. "$SRC/tests/cli/common.bash"

accepts help reproduce
prints "slr_training"
first=slr_risk
accepts reproduce $first
prints "verdict"
prints "holds"
prints "report: report/index.html"
for kind in papers derived checks; do
    grep -q "^$kind: [0-9]* of [0-9]* hold$" stdout || fail "$(tail -4 stdout)"
done
[ -f report/finetti.db ] && grep -qi "<html" report/index.html || fail "no report"
[ "$(awk 'length > 120' stdout | wc -l)" = 0 ] || fail "lines of more than 120 columns: $(awk 'length > 120' stdout)"
cp stdout before
accepts study export $first --store report/finetti.db --out one.csv

# Run again it does nothing, and says the same; on two threads and anew, the same numbers.
accepts reproduce $first
prints " 0 computed"
"$FINETTI" reproduce $first --json >r.json 2>/dev/null
"$PYTHON" - <<'P'
import json
r = json.load(open("r.json"))
study, = r["studies"]
assert r["holds"] and r["report"] == "report/index.html" and study["done"] == study["failed"] == 0
assert study["runs"] == study["present"] > 50 and len(study["claims"]) > 3
for c in study["claims"]:
    assert c["verdict"] == "holds" and c["low"] <= c["value"] <= c["high"] and c["expected"] and c["statement"], c
    assert c["kind"] == "check" or (c["source"] and c["fails_if"]), c
assert [k["kind"] for k in study["sum"]["kinds"]] == ["papers", "derived", "checks"]
assert sum(k["holds"] for k in study["sum"]["kinds"]) == study["sum"]["total"] == len(study["claims"])
P
accepts reproduce $first --fresh --threads 2 --out report
prints " 0 cached"
diff stdout before
accepts study export $first --store report/finetti.db --out two.csv
cmp one.csv two.csv
accepts reproduce $first --out other/
[ -f other/index.html ] || fail "no other/index.html"

# The beginning of names up to a _ stands for all studies that have it (tests/all runs them); help and
# completion know it.
accepts help reproduce
prints "exchangeability"
accepts complete reproduce
for name in slr slr_risk softmax exchangeability; do
    grep -q "^$name	operand" stdout || fail "no completion of $name"
done
[ "$(grep -c "^softmax	" stdout)" = 1 ] || fail "softmax is completed twice"

refuses 2 "unknown option" reproduce --fast
refuses 2 "did you mean slr_risk?" reproduce slr_rsk
refuses 2 "slr_risk is named twice" reproduce slr_risk slr_sgd slr_risk
refuses 2 "slr_risk is named twice, by slr and by slr_risk" reproduce slr slr_risk
refuses 2 "did you mean exchangeability?" reproduce exchangability
refuses 2 "there is no study 'sl'" reproduce sl
refuses 2 "there is no study 'slr_'" reproduce slr_
refuses 2 "'finetti help reproduce' lists them" reproduce qwertyuiop
refuses 1 "nowhere" reproduce --out nowhere/folder
touch file
refuses 1 "file" reproduce --out file
mkdir busy
echo "not a store, and long enough to be looked at by whoever opens it" >busy/finetti.db
refuses 1 "busy/finetti.db" reproduce $first --out busy
refuses 2 "unexpected argument" risk limits
