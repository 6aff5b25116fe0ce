# finetti train: known trajectories, what is in the files, stopping and going on, and what is refused.
set -eu
needs_permissions=yes
. "$SRC/tests/cli/common.bash"

# ---- the reference trajectories
"$PYTHON" - <<'P'
import csv, json, os, subprocess
names = ("kappa", "nu", "theta", "eta", "rho")
worst = 0
rows = list(csv.DictReader(open(os.environ["SRC"] + "/tests/data/slr_pgd_trajectories.csv")))
assert len(rows) == 20
for row in rows:
    words = ["train", "--init", "overlaps", "--engine", "population", "--runs", "1", "--json", "--steps", row["steps"],
             "--lam", row["lambda0"], "--decay", row["decay"], "--alpha", row["alpha"], "--gamma", row["gamma"],
             "--mu", row["mu"], "--L", row["L"]]
    for name in names:
        words += ["--" + name, row[name + "0"]]
    out = subprocess.run([os.environ["FINETTI"], *words], capture_output=True, check=True).stdout
    run, = json.loads(out)["runs"]
    assert run["step"] == int(row["steps"])
    for name in names + ("risk",):
        off = abs(run["final"][name] - float(row[name]))
        worst = max(worst, off)
        assert off < 1e-8, (row, name, run["final"][name], float(row[name]))
print("20 reference trajectories, largest error %.2g" % worst)
P

# ---- summary, JSON and file say the same
"$FINETTI" train --init manifold --steps 4000 --runs 20 --log_every 400 --curvature --out a.npz --json >a.json
accepts train --init manifold --steps 4000 --runs 20 --log-every 400 --curvature
prints "closed form"
prints "init=manifold"
prints "Hessian at end"
cp stdout a.txt
"$PYTHON" - <<'P'
import json, math
from npz import load
a, f, text = json.load(open("a.json")), load("a.npz"), open("a.txt").read()
assert set(a) == {"settings", "runs", "summary"} and len(a["runs"]) == 20
s = a["summary"]
status = [r["status"] for r in a["runs"]]
assert s["status"] == {n: status.count(n) for n in ("unconverged", "converged", "stuck", "diverged")} and s["runs"] == 20
n, p, z = 20, status.count("converged") / 20, 1.959963984540054
half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
want = [(p + z * z / (2 * n) + sign * half) / (1 + z * z / n) for sign in (-1, 1)]
assert all(abs(x - y) < 1e-12 for x, y in zip(want, s["converged_interval"])), (want, s)
quantities = {"abs_kappa": lambda x: abs(x["kappa"]), "abs_nu": lambda x: abs(x["nu"]), "risk": lambda x: x["risk"],
              "excess": lambda x: x["excess"], "distance": lambda x: x["distance"]}
for name, of in quantities.items():
    values = sorted(of(r["final"]) for r in a["runs"])
    for level, q in zip(s["levels"], s["quantiles"][name]):
        place = level * 19
        low = int(place)
        value = values[low] + (place - low) * (values[min(low + 1, 19)] - values[low])
        assert abs(q - value) < 1e-14, (name, level, q, value)
        assert "%.6g" % q in text, (name, q)
assert f["step"][1] == tuple(range(0, 4001, 400)) and f["at"][1] == (4000,) * 20
for name in a["runs"][0]["final"]:
    shape, flat, code = f[name]
    assert shape == (20, 11) and code == "d", name
    assert [flat[11 * r + 10] for r in range(20)] == [r["final"][name] for r in a["runs"]], name
assert max(f["distance"][1]) == s["largest_distance"] < 1e-9
lines = dict(line.split(" ", 1) for line in bytes(f["settings"][1]).decode().splitlines())
assert lines["task"] == "slr" and lines["form"] == "erf" and lines["init"] == "manifold" and lines["log_every"] == "400"
assert float(lines["mu"]) == 200 ** 0.5 and "kappa" not in lines and "finetti" in lines
for r in a["runs"]:
    c = r["curvature"]
    assert len(c["span"]) == 6 and c["rest_count"] == 396 and c["kind"] in ("minimum", "saddle", "degenerate", "maximum")
assert sum(r["curvature"]["kind"] == "minimum" for r in a["runs"]) >= status.count("converged")
P
# Runs that diverged do not count in what is said of the others.
"$FINETTI" train --engine reduced --runs 8 --d 50 --steps 1 --alpha 1.2e154 --seed 2 --out d.npz --json >d.json
accepts train --engine reduced --runs 8 --d 50 --steps 1 --alpha 1.2e154 --seed 2
"$PYTHON" - <<'P'
import json
from npz import load
a, f, text = json.load(open("d.json")), load("d.npz"), open("stdout").read()
gone = [i for i, r in enumerate(a["runs"]) if r["status"] == "diverged"]
assert 0 < len(gone) < 8 and a["summary"]["status"]["diverged"] == len(gone)
first = f["distance"][1][::2]  # of run i at step 0
last = [x for i, x in enumerate(f["distance"][1][1::2]) if i not in gone]
assert a["summary"]["largest_distance"] == max(last + [x for i, x in enumerate(first) if i not in gone]) < max(first)
assert "diverged         %d (first run %d: the step behind 0 was not finite)" % (len(gone), gone[0]) in text, text
P
accepts train --form softmax --engine reduced --steps 20 --runs 3 --risk-samples 200
prints "simulation, 200 samples"
accepts train --form shifted --c 0.5 --steps 20 --runs 3
prints "c=0.5"
accepts train --lam-schedule 0:1,10:0.5 --alpha-schedule 0:1e-3,5:2e-3 --steps 20 --runs 2
prints "0:1,10:0.5"
accepts train --task spiked --form softmax --engine reduced --lengths 5:0.2,10:0.8 --steps 5 --runs 2
prints "mean 9, variance 4"
accepts train --steps 10 --runs 2 --d 1125899906842624
accepts train --steps 0 --runs 2

# ---- starting points from a file
"$PYTHON" - <<'P'
import math, random
from npz import save
random.seed(1)
d = 6
def unit(v):
    s = math.sqrt(sum(x * x for x in v))
    return [x / s for x in v]
gauss = lambda: [random.gauss(0, 1) for _ in range(d)]
star = {"k_star": ((d,), [1.0] + [0.0] * (d - 1), "d"), "v_star": ((d,), [0.0, 1.0] + [0.0] * (d - 2), "d")}
k, v = unit(gauss()), unit(gauss())
one = {"k": ((d,), k, "d"), "v": ((d,), v, "d")}
save("one.npz", {**one, **star})
save("plain.npz", one)
save("float.npz", {"k": ((2, d), k + v, "f"), "v": ((2, d), v + k, "f"), **star})
save("zero.npz", {**one, "v": ((d,), [0.0] * d, "d")})
nan = float("nan")
bad = {
    "nan": {**one, "k": ((d,), [nan] + k[1:], "d")},
    "inf": {**one, "v": ((d,), [math.inf] + k[1:], "d")},
    "integers": {**one, "k": ((d,), [1] * d, "q")},
    "wrong_d": {**one, "k": ((d - 1,), k[1:], "d")},
    "cube": {**one, "k": ((1, 1, d), k, "d")},
    "number": {**one, "k": ((), [1.0], "d")},
    "rows": {"k": ((3, d), 3 * k, "d"), "v": ((3, d), 3 * v, "d")},
    "uneven": {"k": ((2, d), 2 * k, "d"), "v": ((d,), v, "d")},
    "empty": {"k": ((0, d), [], "d"), "v": ((0, d), [], "d")},
    "no_v": {"k": ((d,), k, "d")},
    "half_star": {**one, "k_star": star["k_star"]},
    "not_unit": {**one, **star, "k_star": ((d,), [2.0] + [0.0] * (d - 1), "d")},
    "two_stars": {**one, **star, "k_star": ((2, d), 2 * star["k_star"][1], "d")},
}
for name, arrays in bad.items():
    save("bad_%s.npz" % name, arrays)
open("overlaps", "w").write(" ".join("--%s %r" % p for p in (
    ("kappa", k[0]), ("nu", v[1]), ("theta", v[0]), ("eta", k[1]), ("rho", sum(x * y for x, y in zip(k, v))))))
P
vectors="--init vectors --d 6 --runs 2 --steps 30"
# shellcheck disable=SC2046,SC2086
{
    "$FINETTI" train $vectors --start one.npz --json >vectors.json
    "$FINETTI" train --init overlaps --d 6 --runs 2 --steps 30 --json $(cat overlaps) >overlaps.json
    accepts train $vectors --start plain.npz --engine ambient
    accepts train $vectors --start float.npz --engine reduced
    for file in bad_*.npz; do
        refuses 1 "$file" train $vectors --start "$file"
        refuses 1 "$file" train $vectors --engine ambient --start "$file"
    done
    refuses 2 "is zero" train $vectors --start zero.npz
    refuses 1 "with d = 400, a setting" train --init vectors --runs 2 --steps 30 --start one.npz
    refuses 1 "there is k_star but not v_star" train $vectors --start bad_half_star.npz
    refuses 1 "nowhere.npz" train $vectors --start nowhere.npz
}
"$PYTHON" - <<'P'
import json
a, b = (json.load(open(n + ".json"))["runs"] for n in ("vectors", "overlaps"))
for x, y in zip(a, b):
    for name in ("kappa", "nu", "theta", "eta", "rho", "risk"):
        assert abs(x["final"][name] - y["final"][name]) < 1e-10, (name, x, y)
P

# ---- stopped and resumed: the same bytes, with any number of threads. Before the first step and after it for one of each
# engine, in the middle for all.
resumed() { # resumed OPTIONS...; stops: where
    "$FINETTI" train "$@" --steps 60 --runs 5 --threads 1 --out full.npz >full.txt
    "$FINETTI" train "$@" --steps 60 --runs 5 --threads 2 --checkpoint every.npz --checkpoint-every 0 --out again.npz >again.txt
    cmp full.npz again.npz && cmp full.npz every.npz && cmp full.txt again.txt || fail "train $*: threads or checkpoints matter"
    local at
    for at in $stops; do
        "$FINETTI" train "$@" --steps 60 --runs 5 --threads 2 --stop-at $at --out part.npz >/dev/null
        "$FINETTI" train --resume part.npz --threads 2 --stop-at 50 --checkpoint part.npz >/dev/null
        "$FINETTI" train --resume part.npz --threads 1 --out again.npz >again.txt
        cmp full.npz again.npz && cmp full.txt again.txt || fail "train $*: stopped at $at and resumed"
    done
}
stops="0 1 37"
[ "${FINETTI_TEST_SIZE:-usual}" != small ] || stops=37 # one is enough to see bad memory
resumed --momentum 0.9 --alpha-lam 1e-4
resumed --engine reduced --momentum 0.9 --alpha-lam 1e-3
resumed --engine ambient --d 20 --L 4 --momentum 0.9 --alpha-lam 1e-3
stops=37
resumed
resumed --rule armijo --penalty 0.5
resumed --form shifted --c 0.5 --momentum 0.5
resumed --log-decade 5 --lam-schedule 0:1,20:0.5 --alpha-schedule 0:1e-3,30:2e-3
resumed --init overlaps --kappa 0.1 --nu -0.2
resumed --engine reduced --d 80 --eps 0.1 --lam 2 --decay 1e-4 --alpha 1e-3
resumed --engine reduced --form softmax --task max --snr inf --risk-samples 100
resumed --engine reduced --form bayes --task spiked
resumed --engine ambient --d 20 --lengths 3:0.5,6:0.5 --dtype double
cp one.npz start.npz
resumed --engine ambient --init vectors --d 6 --start start.npz
# A flow is one piece.
"$FINETTI" train --rule flow --steps 500 --runs 3 --threads 1 --out full.npz >full.txt
"$FINETTI" train --rule flow --steps 500 --runs 3 --stop-at 0 --threads 2 --out part.npz >/dev/null
"$FINETTI" train --resume part.npz --checkpoint part.npz --checkpoint-every 0 --out again.npz >again.txt
cmp full.npz again.npz && cmp full.txt again.txt && cmp full.npz part.npz || fail "a flow that was stopped and resumed"
refuses 2 "in one piece" train --rule flow --steps 500 --stop-at 30
# Fewer steps, and then more of them.
"$FINETTI" train --steps 80 --log-every 10 --runs 3 --out full.npz >full.txt
"$FINETTI" train --steps 40 --log-every 10 --runs 3 --out half.npz >/dev/null
"$FINETTI" train --resume half.npz --steps 80 --out again.npz >again.txt
cmp full.npz again.npz && cmp full.txt again.txt || fail "going on for longer is something else"
for threads in 1 2; do
    "$FINETTI" train --engine reduced --steps 300 --runs 7 --threads $threads --json >threads$threads.json
done
cmp threads1.json threads2.json

# ---- what is refused: names, ranges, combinations
refuses 2 "did you mean 'momentum'?" train --momentun 0.5
refuses 2 "allowed are population|reduced|ambient" train --engine reducd
refuses 2 "add that, or leave kappa out" train --kappa 0.5
refuses 2 "init = overlaps" train --init manifold --rho 0.5
refuses 2 "needs the vectors k and v" train --init vectors
refuses 2 "goes with init = vectors" train --start one.npz
refuses 2 "no unit vectors" train --init overlaps --kappa 0.9 --eta 0.9
refuses 2 "end it in .npz" train --out runs.csv
refuses 2 "goes with --checkpoint" train --checkpoint-every 3
refuses 2 "beyond --steps 10" train --steps 10 --stop-at 11
refuses 2 "takes the place of lam" train --lam 2 --lam-schedule 0:1
refuses 2 "takes the place of alpha" train --alpha 1 --alpha-schedule 0:1
refuses 2 "takes the place of L" train --L 5 --lengths 5:1
for schedule in 0 0: :1 0:1, 0:x 1:1 0:1,0:2 0:1,5:2,3:1 0:nan 0:-1 0:1,,2:1 x 0:inf 99999999999999999999:1; do
    refuses 2 "" train --steps 10 --runs 2 --lam-schedule "$schedule"
    refuses 2 "" train --steps 10 --runs 2 --alpha-schedule "$schedule"
done
refuses 1 "hardmax has no lam" train --form hardmax --engine reduced --lam-schedule 0:1
refuses 1 "softmax" train --form softmax --steps 10
refuses 1 "" train --rule flow --engine reduced --steps 10
refuses 1 "all 3 runs diverged" train --steps 10 --runs 3 --alpha 1e300
for option in "--alpha 1" "--task slr" "--form erf" "--seed 1" "--lengths 5:1" "--kappa 1" "--lam 0.1" "--runs 3" "--start one.npz"; do
    # shellcheck disable=SC2086
    refuses 2 "cannot be changed" train --resume half.npz $option
done
refuses 2 "steps = 39 is less than the 40 steps" train --resume half.npz --steps 39
refuses 2 "lies behind" train --resume half.npz --stop-at 10

# ---- files that are none of ours
head -c 300 half.npz >truncated.npz
: >empty.npz
head -c 5000 /dev/urandom >random.npz
echo "settings" >text.npz
"$PYTHON" - <<'P'
import math, os
from npz import load, save
a = load("half.npz")
text = bytes(a["settings"][1]).decode()
def with_text(t):
    return {**a, "settings": ((len(t),), tuple(t.encode()), "B")}
def edited(name, i, value):
    shape, flat, code = a[name]
    return {**a, name: (shape, flat[:i] + (value,) + flat[i + 1:], code)}
def without(name):
    return {k: v for k, v in a.items() if k != name}
swap = lambda old, new: with_text(text.replace(old, new))
bad = {"without_" + name: without(name) for name in a}
bad.update({
    "no_alpha": with_text("".join(l + "\n" for l in text.splitlines() if not l.startswith("alpha "))),
    "alpha_twice": with_text(text + "alpha 0.1\n"), "unknown": with_text(text + "colour red\n"),
    "out": with_text(text + "out stolen.npz\n"), "threads": with_text(text + "threads 3\n"),
    "json": with_text(text + "json \n"), "resume": with_text(text + "resume half.npz\n"),
    "lengths": with_text(text + "lengths 5:x\n"), "schedule": with_text(text + "lam_schedule 3:1\n"),
    "schedule_empty": with_text(text + "lam_schedule \n"),
    "task": swap("task slr", "task nonsense"), "form": swap("form erf", "form nonsense"),
    "other_form": swap("form erf", "form softmax"), "other_engine": swap("population", "ambient"),
    "vectors": swap("init sphere", "init vectors"), "overlaps": swap("init sphere", "init overlaps"),
    "alpha_nan": swap("alpha 0.004", "alpha nan"), "runs": swap("runs 3", "runs 16777216"),
    "fewer_runs": swap("runs 3", "runs 2"), "steps": swap("steps 40", "steps 1"), "more_logs": swap("log_every 10", "log_every 1"),
    "momentum": swap("momentum 0", "momentum 0.5"), "shuffled": with_text(text[10:]), "blank": with_text(""),
    "zeros": with_text("\0" * 50), "newline": with_text("\n" * 50), "nul": with_text(text + "\0"),
    "text_2d": {**a, "settings": ((1, len(text)), a["settings"][1], "B")},
    "text_double": {**a, "settings": ((1,), (1.0,), "d")},
    "at_negative": edited("at", 0, -1), "at_beyond": edited("at", 0, 41), "at_huge": edited("at", 0, 2**62),
    "status": edited("status", 0, 99), "status_negative": edited("status", 1, -1),
    "state_nan": edited("state", 0, math.nan), "state_inf": edited("state", 1, math.inf), "state_huge": edited("state", 0, 1e300),
    "step_order": edited("step", 1, 3),
})
for name, (shape, flat, code) in a.items():
    if name != "settings":
        bad["shape_" + name] = {**a, name: ((len(flat) + 1,), flat + flat[:1], code)}
        bad["cube_" + name] = {**a, name: ((1, 1, len(flat)), flat, code)}
        bad["type_" + name] = {**a, name: (shape, tuple(1 for _ in flat), "B")}
# Nothing that could be told from another state: going on from there is fine, and so is refusing.
odd = {name: bad.pop(name) for name in ("steps", "more_logs", "step_order", "without_step")}
for folder, files in (("hostile", bad), ("odd", odd)):
    os.mkdir(folder)
    for name, arrays in files.items():
        save("%s/%s.npz" % (folder, name), arrays)
P
for file in truncated.npz empty.npz random.npz text.npz hostile/*.npz nowhere.npz .; do
    refuses 1 "$file" train --resume "$file" --out never.npz
done
for file in odd/*.npz; do
    code=0
    "$FINETTI" train --resume "$file" --steps 50 >stdout 2>stderr || code=$?
    [ $code -le 1 ] || fail "$file: exit code $code: $(cat stderr)"
done
[ ! -e never.npz ] && [ ! -e stolen.npz ] || fail "a file that should not be there"
refuses 1 "no array settings" train --resume one.npz

# ---- output that cannot be written
mkdir folder.npz readonly
chmod a-w readonly
[ ! -w readonly ] || echo "SKIPPED: a folder that may not be written: root may write anywhere"
ln -s /dev/full full_disk.npz
mkdir small
for option in --out --checkpoint; do
    refuses 1 "nowhere" train --steps 10 --runs 2 $option nowhere/x.npz
    refuses 1 "folder" train --steps 10 --runs 2 $option folder.npz
    refuses 1 "regular file" train --steps 10 --runs 2 $option full_disk.npz
    (ulimit -f 8 && refuses 1 "small/x.npz" train --steps 100 --runs 50 $option small/x.npz)
    empty_folder small
    [ -w readonly ] || refuses 1 "readonly" train --steps 10 --runs 2 $option readonly/x.npz
done
empty_folder folder.npz
[ -z "$(find . -name "*tmp*" -o -type f -name ".?*")" ] || fail "temporary files: $(ls -A)"

# ---- Ctrl-C: a checkpoint from which everything goes on as if nothing had been
"$PYTHON" - <<'P'
import filecmp, os, subprocess
from stop import cancelled
def finish(*words):
    return subprocess.run([os.environ["FINETTI"], "train", *words], check=True, capture_output=True).stdout
long = ("--steps", "1000000000", "--runs", "1000", "--log-every", "100000000")
assert b"nothing was kept" in cancelled("train", *long, "--out", "lost.npz") and not os.path.exists("lost.npz")
# Each takes several times as long as until it is stopped.
for engine, steps, runs, more in (("population", "300000", "60", ("--alpha", "1e-5")), ("reduced", "120000", "6", ()),
                                  ("ambient", "20000", "6", ("--d", "30"))):
    words = ("--engine", engine, "--steps", steps, "--runs", runs, *more)
    p = finish(*words, "--out", "whole.npz")
    err = cancelled("train", *words, "--checkpoint", "stopped.npz", after=0.05)
    assert b"--resume stopped.npz" in err, err
    assert finish("--resume", "stopped.npz", "--out", "resumed.npz") == p
    assert filecmp.cmp("whole.npz", "resumed.npz", shallow=False), engine
P
[ -z "$(find . -name "*tmp*" -o -type f -name ".?*")" ] || fail "temporary files: $(ls -A)"

# Where runs end. At d = 400, lam = 0.06: about half at the oracle's risk 0.0679, half swapped at 0.0431 (docs/training.md). From M at d = 2000 the oracle's risk is reached with |kappa| about 0.5.
"$FINETTI" train --lam 0.06 --runs 400 --json >ends.json
"$FINETTI" train --d 2000 --init manifold --alpha 0.0009 --json >flat.json
"$FINETTI" train --d 2000 --json >long.json 2>/dev/null
"$FINETTI" train --d 2000 >/dev/null 2>note
grep -q 'alpha = 0.004 is too long a step for .* usually works$' note || fail "$(cat note)"
step=$(sed 's/.*alpha = \([0-9.e-]*\) usually works$/\1/' note)
"$FINETTI" train --d 2000 --alpha "$step" --steps 60000 --json >short.json 2>note
[ ! -s note ] || fail "$(cat note)"
"$PYTHON" - <<'P'
import json, math
read = lambda name: json.load(open(name))["summary"]
ends, flat, long, short = map(read, ("ends.json", "flat.json", "long.json", "short.json"))
at = {row["where"]: row for row in ends["ended"]}
assert [row["where"] for row in ends["ended"]] == ["oracle", "swapped", "other"] and at["other"]["runs"] == 0
assert at["oracle"]["interval"][0] < 0.5 < at["oracle"]["interval"][1] and at["oracle"]["runs"] + at["swapped"]["runs"] == 400, at
assert abs(at["oracle"]["risk"] - 0.0679) < 1e-4 and abs(at["swapped"]["risk"] - 0.0431) < 1e-4, at
assert abs(ends["oracle_risk"] - 0.0679) < 1e-4 and ends["reached"] == 400  # the better half reaches it, too
assert flat["ended"][0]["runs"] == flat["reached"] == 30 and flat["converged"] == 0 and flat["quantiles"]["abs_kappa"][-1] < 0.9
assert len(long["notes"]) == 1 and long["ended"][2]["runs"] == 30 and long["reached"] == 0
assert short["notes"] == [] and max(short["quantiles"]["risk"]) < 0.13, short["quantiles"]["risk"]
P
