# finetti simulate: what is in the files, and that it is the same whoever draws it.
set -eu
. "$SRC/tests/cli/common.bash"

"$FINETTI" simulate --n 50 --d 7 --L 6 --L_min 2 --m 2 --seed 5 --dtype double --out a.npz --json >a.json
"$FINETTI" simulate --n 50 --d 7 --L 6 --L_min 2 --m 2 --seed 5 --dtype double --out a.csv 2>summary
grep -q '^finetti simulate: 50 samples' summary || fail "$(cat summary)"
"$FINETTI" simulate --n 50 --d 7 --L 6 --L_min 2 --m 2 --seed 5 --dtype double --out - 2>/dev/null | cmp - a.csv

"$PYTHON" - <<'P'
import csv, json
from npz import load
a = load("a.npz")
n, d, m = 50, 7, 2
offsets, tokens, y, place = (a[k][1] for k in ("offsets", "tokens", "y", "location"))
assert a["offsets"][0] == (n + 1,) and a["y"][0] == (n,) and a["location"][0] == (n, m)
assert a["tokens"][0] == (offsets[-1], d) and a["k_star"][0] == (d,) == a["v_star"][0]
k, v = a["k_star"][1], a["v_star"][1]
assert bytes(a["task"][1]).decode() in ("slr", "spiked", "max")
assert a["d"] == ((), (float(d),), "d") and a["m"][1] == (float(m),) and a["eps"][1] == (0.0,)
dot = lambda p, q: sum(s * t for s, t in zip(p, q))
assert abs(dot(k, k) - 1) < 1e-12 and abs(dot(v, v) - 1) < 1e-12 and abs(dot(k, v)) < 1e-12
assert {offsets[i + 1] - offsets[i] for i in range(n)} <= set(range(2, 7))
for i in range(n):  # eps = 0: the output is the sum over the relevant tokens
    rows = [offsets[i] + place[i * m + j] for j in range(m)]
    assert rows[0] < rows[1] < offsets[i + 1]
    assert abs(sum(dot(tokens[r * d:r * d + d], v) for r in rows) - y[i]) < 1e-9
info = json.load(open("a.json"))
assert info["n"] == n and info["tokens"] == offsets[-1] and info["dtype"] == "double"
rows = list(csv.DictReader(open("a.csv")))
assert list(rows[0]) == ["sample", "token", "relevant", "y"] + ["x%d" % (j + 1) for j in range(d)]
assert len(rows) == offsets[-1]
for r, row in enumerate(rows):
    i, l = int(row["sample"]), int(row["token"])
    assert offsets[i] + l == r and float(row["y"]) == y[i]
    assert int(row["relevant"]) == (l in place[i * m:i * m + m])
    assert [float(row["x%d" % (j + 1)]) for j in range(d)] == list(tokens[r * d:r * d + d])
P

# ---- two classes
"$FINETTI" simulate --n 50 --d 7 --L 6 --L_min 2 --m 2 --seed 5 --dtype double --sign --out sign.npz 2>/dev/null
"$PYTHON" - <<'P'
from npz import load
a, b = load("a.npz"), load("sign.npz")
assert a["tokens"] == b["tokens"] and list(b["y"][1]) == [float(y > 0) for y in a["y"][1]] and 5 < sum(b["y"][1]) < 45
P

# ---- sample 20 is sample 20, whether the file begins with it or not
"$FINETTI" simulate --n 30 --skip 20 --d 7 --L 6 --L_min 2 --m 2 --seed 5 --dtype double --out tail.csv 2>/dev/null
grep -E '^(2[0-9]|[34][0-9]),' a.csv >tail20.csv
tail -n +2 tail.csv | cmp - tail20.csv

# ---- the same bytes for any number of threads and any kernel; sample i does not depend on n
kernels=$("$FINETTI" info --json | "$PYTHON" -c 'import json, sys; print(json.load(sys.stdin)["kernels"])')
for task in slr spiked max; do
    for dtype in float double; do
        draw=(simulate --task "$task" --n 300 --d 65 --L 9 --dtype "$dtype")
        FINETTI_THREADS=1 "$FINETTI" "${draw[@]}" --out one.npz 2>/dev/null
        FINETTI_THREADS=4 "$FINETTI" "${draw[@]}" --out four.npz 2>/dev/null
        "$FINETTI" "${draw[@]}" --threads 3 --out three.npz 2>/dev/null
        cmp one.npz four.npz
        cmp one.npz three.npz
        for kernel in $kernels; do
            FINETTI_KERNEL=$kernel "$FINETTI" "${draw[@]}" --out kernel.npz 2>/dev/null
            cmp one.npz kernel.npz
        done
    done
done
"$FINETTI" simulate --n 5 --d 4 --out - 2>/dev/null >five.csv
"$FINETTI" simulate --n 9 --d 4 --out - 2>/dev/null | head -51 | cmp - five.csv
"$FINETTI" simulate --n 5 --d 4 --seed 2 --out - 2>/dev/null | cmp -s - five.csv && fail "the seed does nothing"
# more than one piece of 8 MB
"$FINETTI" simulate --n 3000 --d 500 --L 4 --out big.npz 2>/dev/null
"$FINETTI" simulate --n 2 --d 500 --L 4 --out small.npz 2>/dev/null
"$PYTHON" - <<'P'
from npz import load
big, small = load("big.npz"), load("small.npz")
assert big["tokens"][1][:4000] == small["tokens"][1] and big["y"][1][:2] == small["y"][1]
k, v = big["k_star"][1], big["v_star"][1]
i = 2999
row = big["tokens"][1][(4 * i + big["location"][1][i]) * 500:][:500]
assert abs(sum(a * b for a, b in zip(row, v)) - big["y"][1][i]) < 1e-4
P
"$FINETTI" simulate --n 4 --lengths 3:1,7:1 --d 3 --out - 2>/dev/null >lengths.csv
"$PYTHON" -c '
import collections, csv
assert set(collections.Counter(r["sample"] for r in csv.DictReader(open("lengths.csv"))).values()) <= {3, 7}'

# ---- what cannot be done
refuses 2 "--out is missing" simulate
refuses 2 "tells no format" simulate --out a.txt
refuses 2 "standard output" simulate --out - --json
refuses 2 "too large for CSV" simulate --d 200000 --out - --n 1
refuses 2 "do not fit" simulate --m 20 --out a.npz
refuses 1 "memory" simulate --n 1000000000000 --out huge.npz
refuses 1 "memory" simulate --L 2000000000 --d 1000000 --out huge.npz
refuses 1 "free there" simulate --n 2000000 --d 40000 --L 1000 --out huge.npz
refuses 2 "too large" simulate --d 1000000000000 --out huge.npz
[ ! -e huge.npz ] || fail "huge.npz is there"

# ---- an old file survives a failure; Ctrl-C leaves nothing
mkdir out
echo old >out/keep.npz
refuses 1 "" simulate --n 1000000000000 --out out/keep.npz
grep -q old out/keep.npz
rm out/keep.npz
"$PYTHON" - <<'P'
import os, signal
from stop import cancelled
for name in "x.npz", "x.csv":
    for number in signal.SIGINT, signal.SIGTERM:
        cancelled("simulate", "--n", "300000", "--d", "400", "--out", "out/" + name, send=number)
        assert os.listdir("out") == [], os.listdir("out")
P
