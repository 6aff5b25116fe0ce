#!/usr/bin/env bash
# The report in a browser: what `finetti reproduce` writes is opened in headless Chromium as a file and used as a reader
# would (tests/browser/report.mjs); it is the one that tests/all/reproduce.sh left or, without that, a small one made here. The CSV
# behind every figure is compared with that of `finetti plot`, byte for byte, and some of its numbers with the store.
# Pictures are left in BUILD/browser. Needs node, npm (for playwright-core, which goes into BUILD/browser) and Debian's
# chromium; without them it is skipped and says so.
. "$SRC/tests/cli/common.bash"
unset FINETTI_STORE
for tool in node npm chromium; do
    command -v $tool >/dev/null || skip "no $tool"
done

playwright

made=$BUILD/tests/reproduced
if [ -e "$made/complete" ] && [ "$made/complete" -nt "$FINETTI" ]; then
    cp -R "$made/report" report
else
    accepts reproduce slr_risk slr_map softmax --out report --threads 2
fi
store="--store report/finetti.db"
mkdir csv svg
"$FINETTI" plot $store --list --json >figures.json
"$PYTHON" - >figures.txt <<'P'
import json
for f in json.load(open("figures.json")):
    print(f["study"], f["id"])
P
[ -s figures.txt ] || fail "no figures"
[ "$(wc -c <report/index.html)" -le 2500000 ] || fail "the report has $(wc -c <report/index.html) bytes"
# The rules of the HTML standard, by html-validate, and none of its own taste.
echo '{"root": true, "extends": ["html-validate:standard"]}' >"$browser/.htmlvalidate.json"
valid() {
    (cd "$browser" && node_modules/.bin/html-validate --config .htmlvalidate.json "$1") || fail "$1 is not valid HTML"
}
printf '<!doctype html><title>t</title><p><div></p>' >broken.html
if (cd "$browser" && node_modules/.bin/html-validate --config .htmlvalidate.json "$work/broken.html") >/dev/null; then fail "html-validate finds nothing"; fi
valid "$PWD/report/index.html"
while read -r study id; do
    accepts plot $store --study "$study" --figure "$id" --out "csv/$study-$id.csv"
    accepts plot $store --study "$study" --figure "$id" --out "svg/$study-$id.svg"
done <figures.txt

# Every SVG is XML; the numbers of lines in a CSV are those of the store.
"$PYTHON" - <<'P'
import csv, glob, json, sqlite3
from xml.dom import minidom
for name in glob.glob("svg/*.svg"):
    minidom.parse(name)
db = sqlite3.connect("file:report/finetti.db?mode=ro", uri=True)
def scalars(study, block, setting, name):
    rows = db.execute("""SELECT json_patch(c.text, r.own), s.value FROM studies t JOIN plan p ON p.study_id = t.id
        JOIN settings r ON r.id = p.run_id JOIN common c ON c.id = r.common_id JOIN scalars s ON s.run_id = r.id JOIN names n ON n.id = s.name_id
        WHERE t.name = ? AND p.block = ? AND n.name = ?""", (study, block, name))
    return sorted((float(json.loads(s)["settings"][setting]), v) for s, v in rows)
drawn = {}
for row in csv.DictReader(open("csv/slr_risk-curve.csv", newline="")):
    drawn.setdefault(row["series"], []).append((float(row["x"]), float(row["y"])))
for series, name in (("erf oracle", "risk"), ("best linear", "linear"), ("Bayes", "bayes")):
    expected = scalars("slr_risk", "curve", "lam", name)
    assert len(expected) > 5 and drawn[series] == expected, (series, drawn[series][:3], expected[:3])
P

node "$SRC/tests/browser/report.mjs" report/index.html "$browser" csv shipped

# A study of one's own, with the kinds that the shipped ones do not use, and names that would break a page that does not
# escape them.
cat >own.yaml <<'Y'
study: own
title: "</title><script>alert(1)</script>"
about: "<img src=x onerror=alert(2)> & more"
runs:
  - id: grid
    command: risk
    set: {d: 100, show: "risk,linear"}
    axes:
      L: [2, 5, 10]
      lam: {from: 0.01, to: 3, count: 12, spacing: log}
claims:
  - {id: small, statement: "<b>Risks</b> are \"small\".", take: risk, reduce: max, expect: {at_most: 100}, figure: "lines"}
  - {id: negative, statement: "Risks are < 0.", take: risk, reduce: max, expect: {at_most: 0}, figure: heat}
figures:
  - id: lines
    title: "</h4></figure><script>alert(3)</script>"
    caption: "a < b & c > d"
    kind: lines
    x: {take: lam, label: "</script><script>alert(4)</script>", scale: log}
    y: {label: "back\\slash \\x3c", scale: log}
    lines:
      - {take: risk, label: "</script>, \"quoted\" \\x3c \\\\", split: L, band: true, fit: true}
    reference: [{y: 0.5, label: "<limit>"}, {x: 0.1, label: "here & now"}]
  - {id: bars, title: "Bars", kind: bars, where: {lam: 0.01}, x: {take: L}, y: {label: risk}, lines: [{take: risk}, {take: linear}]}
  - {id: heat, title: "Heat", kind: heat, x: {take: lam, scale: log}, y: {take: L, scale: log}, take: risk, value: {scale: log}}
Y
got=0
"$FINETTI" study run own.yaml --store own.db >/dev/null 2>own.log || got=$?
[ "$got" = 1 ] || fail "a claim fails, but the exit code is $got: $(cat own.log)"
accepts report --store own.db --out own.html
mkdir own
for id in lines bars heat; do
    accepts plot --store own.db --study own --figure $id --out own/own-$id.csv
done
valid "$PWD/own.html"
mkdir -p "$browser/own"
node "$SRC/tests/browser/report.mjs" own.html "$browser/own" own
