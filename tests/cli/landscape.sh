# finetti landscape: the grid against finetti risk, the flow against differences, the stationary points.
set -eu
. "$SRC/tests/cli/common.bash"

accepts landscape
prints "0.113498083"
prints "minimum"
prints "saddle"
prints "least risk"
prints "closed form"

"$FINETTI" landscape --grid 9 --out m.csv 2>note
grep -q '^finetti landscape: 81 points to m.csv; 0 left out' note || fail "$(cat note)"
"$FINETTI" landscape --grid 9 --out - 2>/dev/null | cmp - m.csv
"$FINETTI" landscape --grid 9 --threads 3 --out - 2>/dev/null | cmp - m.csv
"$FINETTI" risk --points m.csv --out m_risk.csv
"$FINETTI" landscape --grid 8 --theta 0.3 --eta -0.2 --rho 0.4 --kappa-range=-0.9:0.95 --nu-range -0.7:1 --out g.csv 2>note
grep -q ' left out: no unit vectors' note || fail "$(cat note)"
"$FINETTI" landscape --task spiked --form shifted --c 0.3 --grid 5 --out s.csv 2>/dev/null
"$FINETTI" landscape --grid 3 --json >a.json
"$FINETTI" landscape --json >b.json
"$PYTHON" - <<'P'
import csv, json, math, subprocess, os
read = lambda name: [{k: float(v) for k, v in r.items()} for r in csv.DictReader(open(name))]
m, risk, g, s = read("m.csv"), read("m_risk.csv"), read("g.csv"), read("s.csv")
assert list(m[0]) == "kappa nu risk d_kappa d_nu flow_kappa flow_nu gradient".split() and len(m) == 81 and len(s) == 25
close = lambda x, y, tol=1e-11: abs(x - y) <= tol * max(1, abs(x))
for a, b in zip(m, risk):
    assert a["kappa"] == b["kappa"] and a["nu"] == b["nu"]
    for name in ("risk", "d_kappa", "d_nu"):
        assert close(a[name], b[name]), (name, a, b)
for a in m + s:  # on M
    f, h = -(1 - a["kappa"] ** 2) * a["d_kappa"], -(1 - a["nu"] ** 2) * a["d_nu"]
    assert close(a["flow_kappa"], f) and close(a["flow_nu"], h), a
for a in m:  # erf keeps M: the gradient has no other direction
    norm = math.sqrt((1 - a["kappa"] ** 2) * a["d_kappa"] ** 2 + (1 - a["nu"] ** 2) * a["d_nu"] ** 2)
    assert close(a["gradient"], norm, 1e-9), a

# Off M: vectors with these overlaps, moved down the gradient, which is made from the tool's derivatives.
theta, eta, rho = 0.3, -0.2, 0.4
dot = lambda x, y: sum(p * q for p, q in zip(x, y))
assert 0 < len(g) < 64
for a in g[::5]:
    kappa, nu = a["kappa"], a["nu"]
    third = math.sqrt(1 - kappa ** 2 - eta ** 2)
    k = [kappa, eta, third, 0]
    v = [theta, nu, (rho - kappa * theta - eta * nu) / third]
    v.append(math.sqrt(max(0, 1 - dot(v, v))))
    out = subprocess.run([os.environ["FINETTI"], "risk", "--json", "--show", "risk"] + ["--%s=%r" % p for p in zip(
        ("kappa", "nu", "theta", "eta", "rho"), (kappa, nu, theta, eta, rho))], capture_output=True, check=True).stdout
    d = {name: json.loads(out)["scalars"]["d_" + name]["value"] for name in ("kappa", "nu", "theta", "eta", "rho")}
    gk = [d["kappa"], d["eta"], 0, 0]
    gv = [d["theta"], d["nu"], 0, 0]
    gk, gv = [x + d["rho"] * y for x, y in zip(gk, v)], [x + d["rho"] * y for x, y in zip(gv, k)]
    pk, pv = dot(k, gk), dot(v, gv)
    gk, gv = [x - pk * y for x, y in zip(gk, k)], [x - pv * y for x, y in zip(gv, v)]
    assert close(a["flow_kappa"], -gk[0]) and close(a["flow_nu"], -gv[1]), a
    assert close(a["gradient"], math.sqrt(dot(gk, gk) + dot(gv, gv))), a

a, b = json.load(open("a.json")), json.load(open("b.json"))
a, b = a["series"], b["series"]
assert [len(row) for row in a["risk"]] == [3, 3, 3] and len(b["risk"]) == 41
stationary = [{name: a["point_" + name][i] for name in ("kappa", "nu", "risk", "kind", "negative")} for i in range(5)]
assert all(a[name] == b[name] for name in a if name.startswith("point_"))
assert [x for row in a["risk"] for x in row][4] == next(p for p in stationary if p["kappa"] == 0)["risk"]
points = {(round(p["kappa"], 6), round(p["nu"], 6)): p for p in stationary}
assert set(points) == {(1, 1), (-1, -1), (0, 0), (1, -1), (-1, 1)} and len(a["point_kappa"]) == 5
for at in ((1, 1), (-1, -1)):
    assert abs(points[at]["risk"] - 0.113498082965) < 1e-12 and points[at]["kind"] == 0 and points[at]["negative"] == 0
assert points[0, 0]["kind"] == points[1, -1]["kind"] == points[-1, 1]["kind"] == 1
assert a["point_risk"] == sorted(a["point_risk"])
P

# ---- what is refused
refuses 1 "softmax" landscape --form softmax
refuses 1 "max" landscape --task max
refuses 2 "no setting 'kappa'" landscape --kappa 0.5
refuses 2 "theta = 2" landscape --theta 2
refuses 2 "takes the place of" landscape --lengths 5:1 --L 4
refuses 2 "both write to standard output" landscape --json --out -
for range in 0 0: :1 1:0 0:0 -2:0 0:2 nan:1 0:nan 0:1:2 0:1x x inf:1; do
    refuses 2 "kappa_range" landscape --kappa-range="$range"
    refuses 2 "nu_range" landscape --nu-range "$range"
done
mkdir folder.csv
ln -s /dev/full full.csv
refuses 1 "nowhere" landscape --grid 3 --out nowhere/x.csv
refuses 1 "folder" landscape --grid 3 --out folder.csv
refuses 1 "No space left" landscape --grid 3 --out full.csv
empty_folder folder.csv
