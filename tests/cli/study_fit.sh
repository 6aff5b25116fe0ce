# Studies of fitted attention: the command fit.
set -eu
. "$SRC/tests/cli/common.bash"

accepts study commands
prints "fit:"
prints "least_cosine_k"

cat >small.yaml <<'Y'
study: small
title: Small
runs:
  - {id: spiked, command: fit, set: {task: spiked, snr: 9, L: 3, d: 4, ratio: 100, trials: 2, test: 1000}, axes: {model: [softmax, mixture, linear, mean]}}
claims:
  - {id: above, statement: Nothing beats Bayes but by chance., from: spiked, take: excess, reduce: min, expect: {at_least: -0.01}}
  - {id: bayes, statement: Attention comes near it., from: spiked, where: {model: [softmax, mixture]}, take: quotient, reduce: max, expect: {at_most: 1.3}}
  - {id: linear, statement: Linear attention and pooling do not., from: spiked, where: {model: [linear, mean]}, take: quotient, reduce: min, expect: {at_least: 1.5}}
  - {id: found, statement: The token is found., from: spiked, where: {model: [softmax, mixture]}, take: found, reduce: min, expect: {at_least: 0.85}}
  - {id: key, statement: And the key., from: spiked, where: {model: [softmax, mixture]}, take: least_cosine_k, reduce: min, expect: {at_least: 0.95}}
Y
accepts study run small.yaml --store one.db --threads 1
prints "derived: 5 of 5 hold"
accepts study run small.yaml --store two.db --threads 2
accepts study export small --store one.db --out one.csv
accepts study export small --store two.db --out two.csv
cmp one.csv two.csv || fail "numbers depend on the threads"
# The mean of a bag has no location: no calibration, no cosine of a key.
"$PYTHON" - <<'P'
import csv
rows = {row["model"]: row for row in csv.DictReader(open("one.csv"))}
assert set(rows) == {"softmax", "mixture", "linear", "mean"}, rows
for model, row in rows.items():
    assert (row["ece"] != "") == (model != "mean"), (model, row["ece"])
    assert (row["cosine_k"] != "") == (model != "mean"), (model, row["cosine_k"])
    assert float(row["bags"]) == 400
P

# The calibration error is a model's own. Bins added up over models first would let their errors cancel: half as much with 16 of them.
for trials in 2 16; do
    "$FINETTI" lab fit --task spiked --d 10 --L 6 --ratio 10 --test 2000 --trials $trials --json >$trials.json 2>/dev/null
done
"$PYTHON" - <<'P'
import json
def ece(file):
    found = []
    def walk(node):
        if isinstance(node, dict):
            found.extend([node["ece"]] if "ece" in node else [])
            [walk(child) for child in node.values()]
        elif isinstance(node, list):
            [walk(child) for child in node]
    walk(json.load(open(file)))
    return found[0]
few, many = ece("2.json"), ece("16.json")
assert many["samples"] == 16 and many["value"] > 0.7 * few["value"], (few, many)
P

for bad in "m: 2|known for m = 1" "d: 100000, ratio: 1000, L: 10|more than 5e8" "task: slrr|there is no task" "model: softmx|softmax"; do
    cat >bad.yaml <<Y
study: bad
title: Bad
runs:
  - {id: a, command: fit, set: {${bad%%|*}}}
Y
    refuses 1 "${bad##*|}" study run bad.yaml
done
