#!/usr/bin/env bash
# Every claim of the papers is decided, none is a surprise (docs/studies.md), a second pass does nothing, and the report is there. Works in BUILD/tests/reproduced and
# leaves it: tests/all/report_browser.sh opens that report.
. "$SRC/tests/cli/common.bash"
export FINETTI_THREADS=2 # it takes minutes
place=${BUILD:?the build tree}/tests/reproduced
rm -rf "$place"
mkdir -p "$place"
cd "$place"

accepts reproduce
cat "$work/stdout"
"$FINETTI" reproduce --json >r.json 2>/dev/null
"$PYTHON" - <<'P'
import json
r = json.load(open("r.json"))
claims = [c for s in r["studies"] for c in s["claims"]]
assert r["holds"] and claims
papers = [c for c in claims if c["kind"] == "paper"]
assert len(papers) > 20 and all(c["verdict"] in ("holds", "fails") for c in papers)
assert all(c["verdict"] == "holds" for c in claims if c["kind"] == "check")
assert all(s["done"] == 0 and s["failed"] == 0 and s["runs"] == s["present"] for s in r["studies"])
print(len(claims), "claims of", len(r["studies"]), "studies:", r["sum"]["kinds"])
P
"$PYTHON" "$SRC/tools/papers.py" r.json --check "$SRC/docs/papers.md" || fail "docs/papers.md is old"
# Groups of studies are those whose names begin with theirs; all is done already. In a copy: the report has the groups only.
cp -R report group
"$FINETTI" reproduce slr exchangeability learning --out group --json >groups.json 2>/dev/null
"$PYTHON" - <<'P'
import json
r = json.load(open("groups.json"))
names = [s["study"] for s in r["studies"]]
assert r["holds"] and all(s["done"] == 0 for s in r["studies"])
groups = [[n for n in names if n.startswith(group + "_")] for group in ("slr", "exchangeability", "learning")]
assert all(len(g) >= least for g, least in zip(groups, (3, 2, 4))) and sum(groups, []) == names, names
P
rm -r group
grep -q "<html" report/index.html || fail "no report"
accepts study check --store report/finetti.db
touch complete
