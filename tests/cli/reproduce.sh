# finetti reproduce: the limits of the papers, as numbers, and the training experiments in few runs.
set -eu
. "$SRC/tests/cli/common.bash"

accepts reproduce limits
prints "erf oracle"
prints "closed form"
"$FINETTI" reproduce limits --json >r.json
FINETTI_THREADS=1 "$FINETTI" reproduce limits --json | cmp - r.json
"$PYTHON" - <<'P'
import csv, json, os
r = json.load(open("r.json"))["limits"]
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

# ---- the experiments
accepts reproduce slr --runs 4 --out runs
for name in manifold sphere_large_lambda sphere_small_lambda sphere_schedule sgd_schedule; do
    grep -q "^$name .* yes " stdout || fail "$name: $(cat stdout)"
    [ -f runs/$name.npz ] || fail "runs/$name.npz is missing"
done
"$FINETTI" reproduce slr --only manifold --runs 4 --json >m.json
"$FINETTI" reproduce slr --only manifold --runs 4 --threads 1 --json | cmp - m.json
"$FINETTI" reproduce --only sphere_small_lambda --runs 4 >s.txt
grep -q "^sphere_small_lambda" s.txt && ! grep -q "erf oracle" s.txt || fail "$(cat s.txt)"
# An experiment is nothing but a call of train.
"$FINETTI" train --init manifold --lam 0.1 --alpha 4e-3 --steps 20000 --log-every 200 --runs 4 --out m.npz >/dev/null
cmp m.npz runs/manifold.npz
"$FINETTI" train --resume runs/manifold.npz --out again.npz >/dev/null
cmp m.npz again.npz
"$PYTHON" - <<'P'
import json
from npz import load
e, = json.load(open("m.json"))["slr"]["experiments"]
assert e["name"] == "manifold" and e["holds"] and e["summary"]["converged"] == 1 and e["summary"]["converged_interval"][1] == 1
assert [x["quantity"] for x in e["expected"]] == ["share", "largest_distance"]
sgd = load("runs/sgd_schedule.npz")
assert sgd["kappa"][0] == (4, 401) and all(abs(sgd["kappa"][1][401 * r + 400]) > 0.99 for r in range(4))
P

refuses 2 "unknown option" reproduce --fast
refuses 2 "did you mean limits?" reproduce limit
refuses 2 "one word at a time" reproduce limits slr
refuses 2 "goes with slr" reproduce limits --runs 3
refuses 2 "did you mean manifold?" reproduce slr --only manifld
refuses 1 "nowhere" reproduce slr --out nowhere/folder
touch file
refuses 1 "file" reproduce --out file
refuses 2 "unexpected argument" risk limits
