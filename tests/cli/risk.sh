# finetti risk: one point, JSON, tables of points, sweeps.
set -eu
. "$SRC/tests/cli/common.bash"

# ---- one point
accepts risk
prints "0.113498082965"
prints "closed form"
prints "best linear predictor"
prints "the Bayes risk"
accepts risk --task spiked --form softmax --samples 1000 --eta -0.5 --rho -0.5 --kappa=0.5 --L-min 4
prints "simulation, 1000 samples, s.e."
prints "eta=-0.5"
prints "L_min=4"
accepts risk --m 2
prints "here m = 2"
accepts risk --show risk --theta 0.9 # nu = 1 and theta = 0.9 cannot be; the closed form does not mind
prints "note: no unit vectors"
refuses 2 "no unit vectors" risk --theta 0.9 --form softmax
accepts risk --kappa 0.1 --kappa 1 --show risk # the last one wins
prints "0.113498082965"
accepts risk --lengths 5:0.2,10:0.8 --show risk
prints "mean 9, variance 4"
accepts risk --lengths 5:0.2,10:0.8 --show linear # 8 (1/4 + 8) / (1/8 + 4 (1 + 200 + 1/2) + 64) / 2
prints "attention  0.0379255854044"
accepts risk --task max --m 2 --show linear
prints "known for m = 1"
accepts risk --task spiked --form softmax --snr 64 --lam 8 --show risk,star,bayes,check # what made lam* = 316 and star = 0
prints "lam_star         8 "
prints "risk             1.0787918273e-07"
prints "error not known"

# ---- JSON: every number says how it was obtained
"$FINETTI" risk --json --eps 0.5 --samples 2000 >one.json
"$FINETTI" risk --json --task max --snr inf --form softmax --lam 2 --samples 2000 --m 1 >max.json
"$PYTHON" - <<'P'
import json
a = json.load(open("one.json"))
n = a["scalars"]
for name in ("risk", "oracle", "star", "linear", "bayes"):
    assert set(n[name]) == {"value", "error", "how", "samples"}, name
v = {name: x["value"] for name, x in n.items()}
assert abs(v["risk"] - v["eps2"] - v["signal"] - v["noise"] - v["bias"]) < 1e-12 and v["eps2"] == 0.25
assert v["lam_star"] > 0 and v["star"] <= v["oracle"]
assert a["command"] == "risk" and a["settings"]["eps"] == 0.5 and a["settings"]["kappa"] == 1
assert abs(a["settings"]["mu"] - 200 ** 0.5) < 1e-12 and a["settings"]["task"] == "slr"
m = json.load(open("max.json"))
assert m["settings"]["snr"] == "inf" and m["scalars"]["risk"]["how"] == "simulation"
assert m["scalars"]["risk"]["samples"] == 2000 and m["scalars"]["risk"]["error"] > 0
P

# ---- the reference table, as it is
"$FINETTI" risk --points "$SRC/tests/data/slr_erf_risk.csv" --out answers.csv
"$FINETTI" risk --points - <"$SRC/tests/data/slr_erf_risk.csv" | cmp - answers.csv
"$PYTHON" - <<'P'
import csv, os
want = list(csv.DictReader(open(os.environ["SRC"] + "/tests/data/slr_erf_risk.csv")))
got = list(csv.DictReader(open("answers.csv")))
assert len(want) == len(got) == 40
assert set(want[0]) <= set(got[0]) and list(got[0])[:10] == list(want[0])[:10]
worst = {}
for a, b in zip(want, got):
    for key in a:
        tol = {"risk": 1e-11}.get(key, 1e-10 if key.startswith("d_") else 0)
        x, y = float(a[key]), float(b[key])
        off = abs(x - y) / max(1, abs(x))
        worst[key] = max(worst.get(key, 0), off)
        assert off <= tol, (key, x, y)
print("reference table, largest relative error:", max(worst.values()))
P
"$PYTHON" - <<'P'
import csv, json, os, subprocess
for row in csv.DictReader(open(os.environ["SRC"] + "/tests/data/spiked_bayes_L2.csv")):
    out = subprocess.run([os.environ["FINETTI"], "risk", "--task", "spiked", "--L", "2", "--snr", row["nu"],
                          "--show", "bayes", "--json"], capture_output=True, check=True).stdout
    value = json.loads(out)["scalars"]["bayes"]["value"]
    assert abs(value - float(row["E_bayes"])) < 1e-10, (row, value)
P

# ---- other tables: columns missing, in another order, extra ones, other tasks
printf 'beta,lam,kappa\n7,0.1,1\n8,0.2,-0.5\n' >few.csv
"$FINETTI" risk --points few.csv --L 20 >few.out
head -1 few.out | grep -q '^lam,kappa,risk,eps2,signal,noise,bias,d_kappa,d_nu,d_theta,d_eta,d_rho$' || fail "header: $(head -1 few.out)"
[ "$(sed -n 3p few.out | cut -d, -f1,2)" = "0.20000000000000001,-0.5" ] || fail "$(sed -n 3p few.out)"
# through the generic path: the same numbers
printf 'note,lam,kappa,d\n7,0.1,1,400\n8,0.2,-0.5,400\n' >few2.csv
"$FINETTI" risk --points few2.csv --L 20 >few2.out
"$PYTHON" - <<'P'
import csv
a, b = (list(csv.DictReader(open(f))) for f in ("few.out", "few2.out"))
for x, y in zip(a, b):
    for key in x:
        assert abs(float(x[key]) - float(y[key])) <= 1e-12 * max(1, abs(float(x[key]))), key
assert list(b[0])[:3] == ["lam", "kappa", "d"] and b[0]["d"] == "400"
P
printf 'snr,kappa\n1,1\n4,0.5\n' >spiked.csv
"$FINETTI" risk --task spiked --form softmax --samples 500 --points spiked.csv >spiked.out
head -1 spiked.out | grep -q '^snr,kappa,risk,risk_error' || fail "header: $(head -1 spiked.out)"
refuses 1 "did you mean kappa?" risk --points <(printf 'kapa\n1\n')
refuses 1 "did you mean gamma?" risk --points <(printf 'gmama\n1\n')
refuses 1 "did you mean nu?" risk --points <(printf 'kappa,NU\n1,1\n')
refuses 1 "line 3, column kappa" risk --points <(printf 'kappa,x\n1,1\n1.5,1\n')
refuses 1 "line 2, column nu" risk --points <(printf 'kappa,nu\n1,nan\n')
refuses 1 "line 2, column L" risk --points <(printf 'L\n2.5\n')
refuses 1 "line 2" risk --points <(printf 'd,m,L\n10,5,4\n')
refuses 1 "lam and lambda" risk --points <(printf 'lam,lambda\n1,1\n')

refuses 1 "is a setting of spiked, not of slr" risk --points <(printf 'snr\n1\n')
refuses 1 "no column is a setting" risk --points <(printf 'foo\n1\n')
refuses 1 "line 4: slr: m = 11" risk --points <(printf 'm\n1\n2\n11\n')
# The same point, whatever way its lengths are given.
"$FINETTI" risk --L 50 --L_min 5 --show risk --json >one.json
"$FINETTI" risk --L_min 5 --points <(printf 'L\n50\n') >a.csv
"$FINETTI" risk --points <(printf 'L-min,L\n5,50\n') >b.csv
"$FINETTI" risk --m 20 --points <(printf 'L\n50\n') >c.csv
"$FINETTI" risk --form bayes --samples 100 --show risk --json >bayes.json
"$FINETTI" risk --form softmax --lam 5 --method simulation --samples 2000 --show risk --json >rare.json
"$PYTHON" - <<'P'
import csv, json
first = lambda name: next(csv.DictReader(open(name)))
expected = json.load(open("one.json"))["scalars"]["risk"]["value"]
assert abs(float(first("a.csv")["risk"]) - expected) < 1e-12
assert abs(float(first("b.csv")["risk"]) - expected) < 1e-12
assert float(first("c.csv")["risk"]) > 0
settings = json.load(open("bayes.json"))["settings"] # what is auto is worked out
assert abs(settings["lam"] - 800 ** 0.5) < 1e-12 and abs(settings["c"] + 0.5) < 1e-12
rare = json.load(open("rare.json"))
assert rare["scalars"]["risk_rare"]["value"] == 1 and rare["scalars"]["risk"]["error"] == "nan"
assert any("too small" in note for note in rare["notes"])
P

# ---- sweeps
"$FINETTI" risk --sweep lam=0.01:3:7log --out curve.csv
"$FINETTI" risk --sweep L=2:50:10log --show risk >lengths.csv
"$FINETTI" risk --sweep lam=0.1,0.2 --sweep kappa=-1:1:3 --show risk,star >grid.csv
"$FINETTI" risk --task max --form softmax --samples 200 --sweep snr=0.5,inf >snr.csv
"$PYTHON" - <<'P'
import csv
rows = list(csv.DictReader(open("curve.csv")))
assert [n for n in rows[0] if "d_" not in n and "oracle_" not in n] == \
    "lam risk eps2 signal noise bias oracle linear attention bayes bayes_error over_bayes over_bayes_error".split(), rows[0]
assert len(rows) == 7 and float(rows[0]["lam"]) == 0.01 and float(rows[-1]["lam"]) == 3
assert all(r["risk"] == r["oracle"] for r in rows)
L = [int(r["L"]) for r in csv.DictReader(open("lengths.csv"))]
assert L == sorted(set(L)) and L[0] == 2 and L[-1] == 50, L
grid = list(csv.DictReader(open("grid.csv")))
assert [(r["lam"], r["kappa"]) for r in grid][:4] == [("0.10000000000000001", "-1"), ("0.10000000000000001", "0"),
                                                     ("0.10000000000000001", "1"), ("0.20000000000000001", "-1")]
assert len(grid) == 6 and "lam_star" in grid[0]
assert [r["snr"] for r in csv.DictReader(open("snr.csv"))] == ["0.5", "inf"]
P
for threads in 1 4; do
    FINETTI_THREADS=$threads "$FINETTI" risk --form softmax --task spiked --samples 3000 --sweep lam=0.5,2 >threads$threads.csv
done
cmp threads1.csv threads4.csv
"$FINETTI" risk --form softmax --task spiked --samples 3000 --sweep lam=0.5,2 --threads 3 | cmp - threads1.csv

# A setting may be a formula of others, in a sweep and in a file point by point: the same bytes as with the numbers.
"$FINETTI" risk --lam '1/sqrt(d)' --L 'round(d^0.5)' --sweep d=100,400,1600 --show risk >formulas.csv
printf 'd,lam,L\n100,0.1,10\n400,0.05,20\n1600,0.025,40\n' >typed.csv
"$FINETTI" risk --points typed.csv --show risk | cmp - formulas.csv
printf 'd,lam,L\n100,1/sqrt(d),10\n400,0.05,d^0.5\n1600,0.025,40\n' >cells.csv
"$FINETTI" risk --points cells.csv --show risk | cmp - formulas.csv
"$FINETTI" risk --lam 'sqrt(gama)' 2>message && fail "gama is no setting"
grep -q "did you mean gamma?" message || fail "$(cat message)"
