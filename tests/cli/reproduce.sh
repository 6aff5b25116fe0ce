# finetti reproduce: the limits of the papers, as numbers.
set -eu
. "$SRC/tests/cli/common.bash"

accepts reproduce
prints "erf oracle"
prints "closed form"
"$FINETTI" reproduce --json >r.json
FINETTI_THREADS=1 "$FINETTI" reproduce --json | cmp - r.json
"$PYTHON" - <<'P'
import csv, json, os
r = json.load(open("r.json"))
cells = {(c["L"], c["d"]): c for c in r["slr"]}
assert len(cells) == 20
for (L, d), c in cells.items():
    assert abs(c["linear"]["value"] - (0.5 - 0.25 / (0.5 + L - 1))) < 1e-14
    assert 0 <= c["bayes"]["value"] <= c["oracle"]["value"] + 5 * c["bayes"]["error"]
    assert c["oracle"]["value"] < c["linear"]["value"] or d < L
for L in (2, 10, 100, 1000):  # towards the limit as d grows
    column = [cells[L, d] for d in (100, 400, 10**4, 10**6, 10**9)]
    risks = [c["oracle"]["value"] for c in column]
    assert risks == sorted(risks, reverse=True) and risks[-1] < 2e-5
    assert column[-1]["lam_sqrt_d"] > 3 and column[-1]["lam_sqrt_L"] < 0.004
want = {float(a["nu"]): float(a["E_bayes"])
        for a in csv.DictReader(open(os.environ["SRC"] + "/tests/data/spiked_bayes_L2.csv"))}
for c in r["spiked"]:
    assert abs(c["bayes"]["value"] - want[c["snr"]]) < 1e-12
    assert abs(c["linear"] - 1 / (2 + c["snr"] / 2)) < 1e-15
    assert c["bayes"]["value"] < c["linear"]
P
refuses 2 "unknown option" reproduce --fast
