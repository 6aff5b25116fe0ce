# Studies of exchangeable tokens: the commands identity, latent, regret and urn, and the figures that
# came with them, series of a run and bars on a log axis.
set -eu
. "$SRC/tests/cli/common.bash"

accepts study commands
for name in identity latent regret urn; do
    prints "$name:"
done
prints "race_others"

# write_study FIGURE: a small study with this figure, a line of YAML
write_study() {
    cat >small.yaml <<Y
study: small
title: Small
runs:
  - {id: tokens, command: identity, set: {models: 2, L: 5}, axes: {which: [permutation, mixing, perturbation]}}
  - {id: race, command: regret, set: {T: 20, sequences: 10, concepts: 3}}
  - {id: risk, command: latent, set: {family: mean, samples: 100}, axes: {L: [1, 4]}}
  - {id: urn, command: urn, axes: {N: [10, 100], L: [2, 4]}}
claims:
  - {id: control, statement: The control changes answers., from: tokens, where: {which: perturbation}, take: least, expect: {at_least: 1e-9}}
  - {id: same, statement: A rotation does not., from: tokens, where: {which: mixing}, take: worst, expect: {at_most: 1e-12}}
  - {id: never, statement: The bound holds., from: race, take: violations, expect: {equal: 0}}
  - {id: two, statement: Two balls of 10., from: urn, where: {N: 10, L: 2}, take: distance * 18, expect: {equal: 1, tolerance: 1e-12}}
figures:
  - $1
Y
}

write_study '{id: f, kind: series, from: race, x: {take: race_t}, lines: [{take: race_true, label: truth}, {take: race_others, label: others, style: dashed}]}'
accepts study run small.yaml
prints "derived: 4 of 4 hold"
accepts plot --study small --figure f --out f.csv
"$PYTHON" - <<'P'
import csv
rows = list(csv.DictReader(open("f.csv")))
truth = [r for r in rows if r["series"] == "truth"]
others = [r for r in rows if r["series"] == "others"]
assert len(truth) == 21 and len(others) == 42 and len(rows) == 63, len(rows)
for t in range(21):
    at = [float(r["y"]) for r in rows if float(r["x"]) == t]
    assert len(at) == 3 and abs(sum(at) - 1) < 1e-12
P
accepts plot --study small --figure f --out f.svg
grep -q "truth" f.svg && grep -q "others" f.svg || fail "no legend"
[ "$(grep -o ">others<" f.svg | wc -l)" = 1 ] || fail "a line of the legend for every row"

write_study '{id: f, kind: bars, from: tokens, x: {take: which}, y: {scale: log, limits: [1e-17, 1]}, lines: [{take: worst}]}'
accepts study run small.yaml
accepts plot --study small --figure f --out f.csv
"$PYTHON" - <<'P'
import csv
rows = list(csv.DictReader(open("f.csv")))
assert len(rows) == 3
for r in rows:
    y, low, high = (float(r[k]) for k in ("y", "low", "high"))
    assert low == 1e-17 and high == max(y, 1e-17) and y < 1e-2, r
P
accepts plot --study small --figure f --out f.svg

write_study '{id: f, kind: series, from: tokens, where: {which: mixing}, x: {take: one}, diagonal: equal, lines: [{take: other, style: points}]}'
accepts study run small.yaml
accepts plot --study small --figure f --out f.svg
grep -q "equal" f.svg || fail "no diagonal"
accepts report --out r.html
grep -q "<html" r.html || fail "no report"

# What a figure must not ask for.
while IFS='|' read -r message figure; do
    write_study "$figure"
    refuses 1 "$message" study run small.yaml
done <<'L'
leaves no series 'race_other'; did you mean race_others|{id: f, kind: series, from: race, x: {take: race_t}, lines: [{take: race_other}]}
leaves no series 'T'|{id: f, kind: series, from: race, x: {take: T}, lines: [{take: race_true}]}
needs 'lines'|{id: f, kind: series, from: race, x: {take: race_t}}
a style is|{id: f, kind: series, from: race, x: {take: race_t}, lines: [{take: race_true, style: wavy}]}
has no key|{id: f, kind: series, from: race, x: {take: race_t}, lines: [{take: race_true, split: L}]}
'limits'|{id: f, kind: bars, from: tokens, x: {take: which}, y: {scale: log}, lines: [{take: worst}]}
one part|{id: f, kind: bars, from: tokens, x: {take: which}, y: {scale: log, limits: [1e-9, 1]}, lines: [{take: worst}, {take: least}]}
did you mean series|{id: f, kind: serie, from: race, x: {take: race_t}, lines: [{take: race_true}]}
L
