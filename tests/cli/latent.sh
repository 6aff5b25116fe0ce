# finetti latent: Bayes risks against their closed forms, attention beside them, and what is drawn.
set -eu
. "$SRC/tests/cli/common.bash"

# ---- risk: closed forms, and cme where it is the posterior mean
"$FINETTI" latent risk --family mean --dv 2 --prior 2 --noise 0.5 --L 0,3,10 --json >mean.json
"$FINETTI" latent risk --family counts --outcomes 3 --alpha 0.5 --L 4 --json >counts.json
"$FINETTI" latent risk --L 4,40 --samples 4000 --attention cme,softmax,nw --json >concept.json
"$PYTHON" - <<'P'
import json
mean = json.load(open("mean.json"))
assert set(mean["points"]) == {"L", "bayes"} and mean["how"]["bayes"] == "closed form" and mean["points"]["L"] == [0, 3, 10]
for L, bayes in zip(mean["points"]["L"], mean["points"]["bayes"]):  # dv s^2 tau^2 / (s^2 + L tau^2)
    assert abs(bayes - 2 * 0.5 * 2 / (0.5 + 2 * L)) < 1e-14, (L, bayes)
a0, L = 1.5, 4
(bayes,) = json.load(open("counts.json"))["points"]["bayes"]
assert abs(bayes - 3 * 0.5 * (a0 - 0.5) / (a0 * (a0 + 1) * (a0 + L))) < 1e-14
points = json.load(open("concept.json"))["points"]
assert points["L"] == [4, 40]
for i, L in enumerate(points["L"]):
    row = {name: numbers[i] for name, numbers in points.items()}
    z = (row["cme"] - row["bayes"]) / (row["cme_error"] ** 2 + row["bayes_error"] ** 2) ** 0.5
    assert abs(z) < 5, (L, z)
    assert row["softmax"] > 2 * row["bayes"] and row["nw"] > row["bayes"]
    assert row["temperature"] > 0
P
"$FINETTI" latent risk --L 4 --samples 500 --attention none --out risk.csv
head -1 risk.csv | grep -qx 'L,bayes,bayes_error' || fail "$(cat risk.csv)"
# the best temperature is not beaten by others, which see the same draws
best=$("$FINETTI" latent risk --L 8 --samples 500 --attention softmax --json)
for t in 0.5 1 2 4; do
    "$FINETTI" latent risk --L 8 --samples 500 --attention softmax --temperature $t --json >one.json
    BEST=$best "$PYTHON" -c 'import json, os
best, one = (json.loads(x)["points"]["softmax"][0] for x in (os.environ["BEST"], open("one.json").read()))
assert best <= one * (1 + 1e-5), (best, one)'
done
FINETTI_THREADS=1 "$FINETTI" latent risk --L 5,9 --samples 300 >one.txt
FINETTI_THREADS=3 "$FINETTI" latent risk --L 5,9 --samples 300 | cmp - one.txt

# ---- draw: every family, the same for any number of threads; sequence i does not depend on n
for family in concept mean process counts concepts sphere finite urn; do
    FINETTI_THREADS=1 "$FINETTI" latent draw --family $family --n 20 --L 6 --Q 2 --out one.npz 2>/dev/null
    FINETTI_THREADS=3 "$FINETTI" latent draw --family $family --n 20 --L 6 --Q 2 --out three.npz 2>/dev/null
    cmp one.npz three.npz
    "$FINETTI" latent draw --family $family --n 3 --L 6 --Q 2 --out - 2>/dev/null >short.csv
    "$FINETTI" latent draw --family $family --n 5 --L 6 --Q 2 --out - 2>/dev/null | head -19 | cmp - short.csv
    "$FINETTI" latent draw --family $family --n 3 --L 6 --Q 2 --seed 2 --out - 2>/dev/null | cmp -s - short.csv &&
        fail "$family: the seed does nothing"
done
"$FINETTI" latent draw --n 4 --L 7 --Q 3 --d 2 --dv 2 --noise 0 --out a.npz --json >a.json
"$FINETTI" latent draw --n 4 --L 7 --Q 3 --d 2 --dv 2 --noise 0 --out a.csv --queries q.csv 2>note
grep -q '4 sequences of 7 tokens and 3 queries to a.csv' note || fail "$(cat note)"
"$PYTHON" - <<'P'
import csv, json
from npz import load
a = load("a.npz")
assert a["keys"][0] == (4, 7, 2) and a["values"][0] == (4, 7, 2) and a["truth"][0] == (4, 3, 2)
k, v, z = a["keys"][1], a["values"][1], a["z"][1]
for i in range(4):  # no noise: v = Z k
    for l in range(7):
        for j in range(2):
            want = sum(z[i * 4 + j * 2 + c] * k[(i * 7 + l) * 2 + c] for c in range(2))
            assert abs(v[(i * 7 + l) * 2 + j] - want) < 1e-12
assert a["answers"][1] == a["truth"][1]
rows = list(csv.DictReader(open("a.csv")))
assert [float(r["k2"]) for r in rows] == list(k[1::2]) and rows[-1]["sequence"] == "3"
queries = list(csv.DictReader(open("q.csv")))
assert len(queries) == 12 and all(r["v1"] == r["truth1"] for r in queries)
assert json.load(open("a.json"))["L"] == 7
P
# a concept without noise is known exactly after two tokens
"$FINETTI" attend a.csv --key 'k*' --value 'v*' --sequence sequence --query q.csv --kernel linear --noise 1e-9 \
    --level 0 --json >attend.json
"$PYTHON" - <<'P'
import json
test = json.load(open("attend.json"))["test"]
assert all(test[v]["rmse"] < 1e-8 for v in ("v1", "v2")), test
P

# ---- what cannot be done
refuses 2 'did you mean concept' latent risk --family concpt
refuses 2 'it belongs to' latent risk --family mean --rho 2
refuses 2 'not a number' latent risk --L 1,x
refuses 2 'whole number' latent risk --L 1,2.5
refuses 2 'needs keys' latent risk --family mean --attention cme
refuses 2 'not one of' latent risk --attention mse
refuses 2 'temperature = 0' latent risk --temperature 0
refuses 2 "no setting 'temperature'" latent risk --temperature 1 --attention cme
refuses 2 'one or the other' latent risk --out x.csv --json
refuses 2 'missing' latent draw
refuses 2 'tells no format' latent draw --out x.txt
refuses 2 'same file' latent draw --out x.csv --queries x.csv
refuses 2 'GB' latent draw --n 1000000000 --L 1000000 --out x.npz
refuses 1 'No such file' latent draw --out nowhere/x.npz
refuses 2 'balls' latent draw --family urn --balls 5 --L 6 --Q 0 --out x.csv
[ ! -e x.csv ] && [ ! -e x.npz ] || fail "something was left behind"
