# finetti plot: figures of a study as SVG, CSV and, with rsvg-convert, PDF and PNG.
set -eu
. "$SRC/tests/cli/common.bash"
unset FINETTI_STORE

cat >curve.yaml <<'Y'
study: curve
title: A curve
runs:
  - id: grid
    command: risk
    set: {show: "risk,linear", d: 50}
    axes:
      L: [2, 10]
      lam: {from: 0.01, to: 1, count: 6, spacing: log}
figures:
  - id: by-lam
    title: Risk & lambda
    caption: Both are drawn.
    kind: lines
    from: grid
    x: {take: lam, label: lambda, scale: log}
    y: {label: risk}
    lines:
      - {take: risk, label: erf, split: L}
      - {take: linear, label: best linear, style: dashed, split: L}
Y
accepts study run curve.yaml
accepts plot --list
prints "by-lam"
"$FINETTI" plot --study curve --list --json | "$PYTHON" -c '
import json, sys
assert [(f["id"], f["kind"]) for f in json.load(sys.stdin)] == [("by-lam", "lines")]'

accepts plot --study curve --figure by-lam --out a.svg
prints "a.svg"
accepts plot --study curve --figure by-lam --out a.csv
accepts plot --study curve --x lam --y risk,linear --split L --log xy --out b.svg
accepts plot --study curve --x lam --y 'min(risk,linear)' --where L=10 --out b.csv
accepts plot --study curve --x 'log(lam)' --y 'log(risk)' --where L=2 --fit --title 'A & B' --width 300 --height 200 --out c.svg
"$PYTHON" - <<'P'
import xml.etree.ElementTree as tree
for name in "abc":
    root = tree.parse(name + ".svg").getroot()
    assert root.tag.endswith("svg") and len(list(root.iter())) > 20, name
P
grep -q "A &amp; B" c.svg || fail "no title"
[ "$(wc -l <b.csv)" -ge 7 ] || fail "$(cat b.csv)"
# The same figure has the same bytes.
accepts plot --study curve --figure by-lam --out again.svg
cmp a.svg again.svg

mkdir figures
if command -v rsvg-convert >/dev/null; then
    accepts plot --study curve --figure by-lam --out figures/a.pdf
    accepts plot --study curve --figure by-lam --width 144 --height 144 --out figures/a.png
    [ "$(head -c 4 figures/a.pdf)" = %PDF ] || fail "no PDF"
    "$PYTHON" - <<'P'
import struct
data = open("figures/a.png", "rb").read()
assert data[:8] == b"\x89PNG\r\n\x1a\n", data[:8]
assert struct.unpack(">I", data[16:20]) == (600,), data[16:24] # 2 inches at 300 dots
P
    [ "$(ls -A figures | wc -l)" = 2 ] || fail "left behind: $(ls -A figures)"
    refuses 1 "nowhere" plot --study curve --figure by-lam --out nowhere/a.pdf
    printf '#!/bin/sh\nexit 3\n' >rsvg-convert
    chmod +x rsvg-convert
    (PATH=$work:$PATH && refuses 1 "rsvg-convert failed" plot --study curve --figure by-lam --out never.pdf)
else
    echo "SKIPPED: PDF and PNG: no rsvg-convert (Debian: librsvg2-bin)"
fi
(PATH=$work/nowhere && refuses 1 "librsvg2-bin" plot --study curve --figure by-lam --out never.pdf)
[ ! -e never.pdf ] || fail "never.pdf is there"
[ -z "$(find . -name '.finetti*')" ] || fail "temporary files: $(find . -name '.finetti*')"

refuses 2 "--study NAME is missing" plot --figure by-lam --out x.svg
refuses 2 "either --figure ID or --x" plot --study curve --out x.svg
refuses 2 "either --figure ID or --x" plot --study curve --x lam --out x.svg
refuses 2 "--split goes with --x and --y" plot --study curve --figure by-lam --split L --out x.svg
refuses 2 "--where goes with --x" plot --study curve --figure by-lam --where L=2 --out x.svg
refuses 2 "--out FILE" plot --study curve --figure by-lam
refuses 2 "end it in .svg" plot --study curve --figure by-lam --out x.jpg
refuses 2 "not one of x, y, xy" plot --study curve --x lam --y risk --log z --out x.svg
refuses 2 "empty formula" plot --study curve --x lam --y risk, --out x.svg
refuses 2 "did you mean curve?" plot --study curv --figure by-lam --out x.svg
refuses 2 "by-lam" plot --study curve --figure by-lma --out x.svg
refuses 2 "risk" plot --study curve --x lam --y rsk --out x.svg
refuses 1 "lam+" plot --study curve --x 'lam+' --y risk --out x.svg
refuses 2 "--json goes with --list" plot --study curve --figure by-lam --out x.svg --json
refuses 1 "nowhere" plot --study curve --figure by-lam --out nowhere/x.svg
[ ! -e x.svg ] || fail "x.svg is there"

# ---- titles, notes, and what is not there
accepts plot --study curve --figure by-lam --title 'Mine & yours' --out t.svg
grep -q 'Mine &amp; yours</text>' t.svg || fail "no title in t.svg"
refuses 2 "--out does not go with --list" plot --list --out x.svg
refuses 2 "--figure does not go with --list" plot --list --figure by-lam
refuses 2 "do not go with --list" plot --list --where L=2
accepts plot --study curve --x lam --y 'risk - 0.6' --log y --out n.svg
grep -q "left out" stderr || fail "no note: $(cat stderr)"
refuses 1 "nothing to draw. No run of grid fits" plot --study curve --x lam --y risk --where L=99 --out none.svg
refuses 1 "nothing to draw" plot --study curve --x lam --y '0 - risk' --log y --out none.csv
[ ! -e none.svg ] && [ ! -e none.csv ] || fail "a figure of nothing"
