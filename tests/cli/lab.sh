# finetti lab: every command of the library's table through the tool, in every format.
set -eu
. "$SRC/tests/cli/common.bash"

# Small settings: a command whose default size takes more than a second needs a row.
cat >lab.py <<'P'
import csv, json, os, subprocess
from npz import load

tool = os.environ["FINETTI"]
encoder = "steps=2 batch=2 width=8 layers=1 heads=1 L=4 M=4 test=20"
small = {
    "risk": "samples=200", "train": "runs=2 steps=5 d=10", "landscape": "grid=3", "latent": "samples=50",
    "fit": "d=5 L=3 ratio=4 trials=2 test=100 model=linear", "law": "runs=2 steps=2 d=5 L=3", "rate": "L=64 contexts=2",
    "limit": "L=64", "erm": "repetitions=2 n=8 L=8", "shift": "n=16", "head": "pre=16 n=8 starts=1 repetitions=2 test=100 L=8",
    "encoder": encoder, "pretrain": encoder + " repetitions=2 scratch_steps=2 scratch_rates=1 labels=4",
    "heads": "runs=2 steps=100 d=20", "layer": "runs=2 steps=5 d=8 hidden=8 L=3 batch=4 test=10 log_every=5",
    "images": "data=pixels.csv steps=3 per_class=2 subsets=2 width=8", "text": "encoder=bert train=20 test=10 seen=5", "minimal": "samples=100", "mil": "trials=2 bags=12 judged=12 d=2 most=3 model=mean",
}
small = {name: dict(pair.split("=") for pair in text.split()) for name, text in small.items()}

def run(*words):
    got = subprocess.run([tool, *words], capture_output=True, text=True)
    assert got.returncode == 0 and got.stderr == "", (words, got.returncode, got.stderr)
    return got.stdout

lines = run("lab").split("Commands:\n")[1].split("\n\n")[0].splitlines()
names = [line.split("\t")[0] for line in run("complete", "lab").splitlines()]
assert names == [line.split()[0] for line in lines] and len(names) >= 17, names
# What the tool has a command of its own for is not listed, and runs all the same.
names += [name for name in ("risk", "landscape", "latent") if name not in names]
series = 0
for name in names:
    options = ["--%s=%s" % pair for pair in small.get(name, {}).items()]
    text, result = run("lab", name, *options), json.loads(run("lab", name, *options, "--json"))
    help = run("help", "lab", name)
    assert result["command"] == name and result["scalars"], result
    for scalar, number in result["scalars"].items():
        assert set(number) == {"value", "error", "how", "samples"}, (name, scalar)
        assert any(line.startswith(scalar + " ") for line in text.splitlines()), (name, scalar, text)
        assert "\n  " + scalar in help, (name, scalar, "is not explained")
    for setting, value in small.get(name, {}).items():
        if setting in ("encoder", "data"): # known by what is in it
            value = result["settings"][setting]
            assert value.startswith("xxh128:") and len(value) == 39
        assert str(result["settings"][setting]) in (value, value + ".0"), (name, setting)
    run("lab", name, *options, "--out", name + ".npz")
    run("lab", name, *options, "--out", name + ".csv")
    arrays, (row,) = load(name + ".npz"), csv.DictReader(open(name + ".csv"))
    for scalar, number in result["scalars"].items():
        value = float(number["value"])
        clock = number["how"] == "clock" # no two runs take the same time
        assert clock or value != value or value == arrays[scalar][1][0] == float(row[scalar]), (name, scalar)
    for one in result["series"]:
        assert one in arrays and "\n  " + one in help, (name, one)
    series += len(result["series"])
print(len(names), "commands in every format,", series, "series")
P
"$PYTHON" "$SRC/tests/cli/text_folder.py" bert
"$PYTHON" -c 'import random
print("label," + ",".join("p%d" % k for k in range(16)))
for i in range(40):
    print("ab"[i % 2] + "," + ",".join("%.3f" % (random.gauss(0, 1) + (k % 4 < 2) * (i % 2)) for k in range(16)))' >pixels.csv
"$PYTHON" lab.py

# ---- images: a run is known by what is in their file
cat >images.yaml <<'Y'
{study: pictures, title: T, runs: [{id: a, command: images, set: {steps: 0, per_class: 2, subsets: 2, width: 8}}]}
Y
accepts study run images.yaml --store i.db --set a.data=pixels.csv
cp pixels.csv again.csv
accepts study run images.yaml --store i.db --set a.data=again.csv
prints "1 cached, 0 computed"
sed -i '2s/,[0-9.-]*$/,0.5555/' again.csv
accepts study run images.yaml --store i.db --set a.data=again.csv
prints "0 cached, 1 computed"
refuses 1 "'none.csv' is no file" lab images --data none.csv
refuses 2 "nothing with this was given" lab images --data xxh128:00000000000000000000000000000000
refuses 2 "no images: set data" lab images
refuses 2 "do not tile images" lab images --data pixels.csv --patch 3

# ---- sweeps: a point of a sweep is a run, to the last bit; grids, words, files
"$PYTHON" - <<'P'
import csv, json, os, subprocess
tool = os.environ["FINETTI"]
run = lambda *words: subprocess.run([tool, *words], capture_output=True, check=True, text=True).stdout
rows = list(csv.DictReader(run("lab", "urn", "--sweep", "N=100,1000", "--sweep", "L=1:9:3").splitlines()))
assert [(r["N"], r["L"]) for r in rows] == [(N, L) for N in ("100", "1000") for L in ("1", "5", "9")]
for r in rows:
    one = json.loads(run("lab", "urn", "--N", r["N"], "--L", r["L"], "--json"))["scalars"]
    assert all(float(r[name]) == one[name]["value"] for name in one), (r, one)
open("points.csv", "w").write("L,extra,N\n5,x,100\n9,y,1000\n")
points = list(csv.DictReader(run("lab", "urn", "--points", "points.csv").splitlines()))
assert [p["distance"] for p in points] == [rows[1]["distance"], rows[5]["distance"]] and "extra" not in points[0]
columns = json.loads(run("lab", "urn", "--points", "points.csv", "--json"))
assert columns["points"]["L"] == [5, 9] and columns["settings"]["red"] == 0.5 and "L" not in columns["settings"]
assert columns["points"]["distance"] == [float(p["distance"]) for p in points] and columns["how"]["bound"] == "closed form"
words = list(csv.DictReader(run("risk", "--sweep", "form=erf,linear", "--sweep", "task=slr,spiked", "--show", "risk").splitlines()))
assert [(w["form"], w["task"]) for w in words] == [(f, t) for f in ("erf", "linear") for t in ("slr", "spiked")]
for w in words:
    one = json.loads(run("risk", "--form", w["form"], "--task", w["task"], "--show", "risk", "--json"))["scalars"]
    assert float(w["risk"]) == one["risk"]["value"]
c = list(csv.DictReader(run("risk", "--sweep", "form=shifted,bayes", "--sweep", "c=0,1", "--samples", "50", "--show", "risk").splitlines()))
assert len(c) == 4 and {x["c"] for x in c} == {"0", "1"} # a setting that only the swept forms have
P
accepts lab urn --sweep L=1,2 --out sweep.npz
"$PYTHON" -c 'from npz import load
a = load("sweep.npz")
assert a["L"] == ((2,), (1.0, 2.0)) or list(a["L"][1]) == [1, 2], a["L"]'

# ---- what is refused: the sentence of a study and of Python
refuses 2 "urn has no setting 'M'" lab urn --M 3
refuses 2 "did you mean lab rate?" lab rat
refuses 2 "'finetti help lab' lists them" lab qwertyuiop
refuses 2 "L = 0; it must be a whole number from 1" lab urn --L 0
refuses 2 "L = 0; it must be a whole number from 1" lab urn --sweep L=0,1
refuses 1 "line 3, column L: urn: L = 0" lab urn --points <(printf 'L\n1\n0\n')
refuses 1 "line 3, column L: 'x' is not a number" lab urn --points <(printf 'L\n1\nx\n')
refuses 1 "nowhere" lab urn --out nowhere/x.csv
refuses 1 "nowhere" lab urn --sweep L=1,2 --out nowhere/x.npz
refuses 2 "do not go together" lab urn --points points.csv --sweep L=1
refuses 2 "did you mean lab urn?" urn --L 3
accepts help urn
prints "total variation"
