# Bags from HDF5, written by h5py as pipelines for slides do: every type, order, chunk and compression gives the numbers
# of the NPZ file with the same tokens; tables of bags, coords, and what is refused.
. "$SRC/tests/cli/common.bash"
"$FINETTI" info --json | grep -q '"HDF5": "1' || skip "built without HDF5"
"$PYTHON" -c "import h5py" 2>/dev/null || skip "no h5py"

"$PYTHON" - <<'P'
import csv, os, h5py, numpy as np
rng = np.random.default_rng(1)
sizes = rng.integers(3, 9, 24)
start = np.concatenate([[0], np.cumsum(sizes)])
X = np.round(rng.normal(size=(start[-1], 4)) * 8) / 8 # float16 holds them all
y = np.array([int(X[a:b, 0].max() > 1.2) for a, b in zip(start, start[1:])])
coords = np.stack([np.arange(len(X)) * 256, -np.arange(len(X))], 1)
np.savez("all.npz", tokens=X, offsets=start, y=y)
os.mkdir("types"), os.mkdir("plain"), os.mkdir("patches")
with open("bags.csv", "w") as f:
    f.write("case_id,slide_id,label\n")
    for i, (a, b) in enumerate(zip(start, start[1:])):
        name, x = "slide%02d" % i, X[a:b]
        f.write("p%d,%s,%s\n" % (i // 2, name + (".svs" if i % 2 else ""), "tumor" if y[i] else "normal"))
        kind, shape = ["f2", "f4", "f8", ">f4", ">f2", "<f4"][i % 6], [x, x[None]][i % 2]
        options = [{}, dict(chunks=True, compression="gzip"), dict(chunks=shape.shape[:-2] + (2, 3), compression="gzip", shuffle=True, fletcher32=True)][i % 3]
        with h5py.File("types/%s.h5" % name, "w") as h:
            h.create_dataset("features", data=shape.astype(kind), **options)
            h["coords"] = coords[a:b]
            h["annotation"] = "text"
            h.create_group("group")
        with h5py.File("plain/%s.h5" % name, "w") as h:
            h["features"] = x.astype("f4")
        with h5py.File("patches/%s.h5" % name, "w") as h:
            h["coords"] = coords[a:b]
with h5py.File("all.h5", "w") as h:
    h.create_dataset("tokens", data=X.astype("f2"), chunks=(7, 4), compression="gzip")
    h["offsets"], h["y"], h["coords"] = start, y, coords
with h5py.File("bag.h5", "w") as h: # rows of a bag that are no neighbours
    order = rng.permutation(len(X))
    h["tokens"], h["bag"] = X[order], np.repeat(np.arange(24), sizes)[order]
    h["label"] = np.repeat(y, sizes)[order]
P

# ---- the same numbers, whatever the file
fit=(--model mixture:linear --calibrate no --cv none --quiet)
"$FINETTI" fit all.npz "${fit[@]}" --out npz.fin
"$FINETTI" fit all.h5 "${fit[@]}" --out one.fin
"$FINETTI" fit types --labels bags.csv "${fit[@]}" --out types.fin
"$FINETTI" fit plain --labels bags.csv --group case_id "${fit[@]}" --out plain.fin
"$FINETTI" predict npz.fin all.npz 2>/dev/null >expected
for file in all.h5 types plain; do
    "$FINETTI" predict npz.fin $file 2>/dev/null >got
    "$PYTHON" - $file <<'P'
import csv, sys
a, b = list(csv.DictReader(open("expected"))), list(csv.DictReader(open("got")))
assert len(a) == len(b) == 24
for i, (x, y) in enumerate(zip(a, b)):
    assert abs(float(x["p_1"]) - float(y["p_1"])) < 1e-6
    assert y["bag"] == (str(i) if sys.argv[1] == "all.h5" else "slide%02d" % i)
P
done
"$FINETTI" predict types.fin types --labels bags.csv >stdout 2>stderr
grep -q "24 of 24 bags have labels" stderr || fail "$(cat stderr)"
grep -q "^slide03.svs,normal,\|^slide03.svs,tumor," stdout || fail "$(cat stdout)"
"$FINETTI" info plain.fin | grep -q "case_id" || fail "the group is not remembered"
"$FINETTI" predict npz.fin bag.h5 2>stderr | sort -t, -k4,4 | cut -d, -f4 >got
"$PYTHON" - <<'P'
import csv
a = sorted(float(r["p_1"]) for r in csv.DictReader(open("expected")))
b = sorted(float(line) for line in open("got") if line[0].isdigit())
assert len(a) == len(b) == 24 and all(abs(x - y) < 1e-6 for x, y in zip(a, b))
P

# ---- coords come back, from the file, or from a second one of the same name
"$FINETTI" locate npz.fin types --out types.csv --json >/dev/null 2>&1
"$FINETTI" locate npz.fin plain --beside patches --out plain.csv 2>/dev/null
"$FINETTI" locate npz.fin all.h5 --out all.csv 2>/dev/null
"$FINETTI" locate npz.fin types/slide03.h5 --out alone.csv 2>/dev/null
"$PYTHON" - <<'P'
import csv, numpy as np
start = np.load("all.npz")["offsets"]
for name in "types", "plain", "all", "alone":
    rows = list(csv.DictReader(open(name + ".csv")))
    assert len(rows) == (start[4] - start[3] if name == "alone" else start[-1])
    for r in rows:
        bag = int(r["bag"][-2:]) if name != "all" else int(r["bag"])
        at = start[bag] + int(r["token"])
        assert int(r["row"]) == (at + 1 if name == "all" else int(r["token"]) + 1)
        assert float(r["coords.0"]) == at * 256 and float(r["coords.1"]) == -at, (name, r)
P

# ---- damaged, and not what is needed
"$PYTHON" - <<'P'
import h5py, numpy as np, os, shutil
def one(path, **sets):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with h5py.File(path, "w") as h:
        for name, value in sets.items():
            h[name] = value
one("none/slide00.h5", other=np.ones((3, 4)))
one("axes/slide00.h5", features=np.ones(4))
one("empty/slide00.h5", features=np.ones((0, 4)))
one("text/slide00.h5", features=[[b"a", b"b"]])
one("complex/slide00.h5", features=np.ones((3, 4), "c8"))
one("widths/slide00.h5", features=np.ones((3, 4)))
one("widths/slide01.h5", features=np.ones((3, 5)))
one("nan/slide00.h5", features=np.full((3, 4), np.nan, "f2"))
os.makedirs("notes", exist_ok=True)
open("notes/slide00.h5", "w").write("no HDF5\n")
data = open("types/slide01.h5", "rb").read()
os.makedirs("cut", exist_ok=True)
open("cut/slide00.h5", "wb").write(data[:len(data) // 2])
os.makedirs("lzf")
with h5py.File("lzf/slide00.h5", "w") as h:
    h.create_dataset("features", data=np.ones((9, 4)), compression="lzf")
data = bytearray(open("types/slide02.h5", "rb").read()) # the bytes of a chunk with a checksum
with h5py.File("types/slide02.h5") as h:
    at = h["features"].id.get_chunk_info(0).byte_offset
data[at] ^= 255
os.makedirs("flipped")
open("flipped/slide00.h5", "wb").write(data)
P
sed '2,$s/slide/other/' bags.csv >others.csv
sed '2,12s/slide/other/' bags.csv >some.csv
for case in "none|has no data set 'features'" "axes|(tokens, columns) is needed" "empty|at least one token" "text|no plain numbers" \
    "complex|no plain numbers" "widths|of 5 columns, but" "nan|nan is not a finite number" "notes|is no HDF5 file" "cut|damaged or cut short" "lzf|gzip it knows" "flipped|cannot be read; the file is damaged"; do
    refuses 1 "${case#*|}" predict npz.fin "${case%%|*}"
done
refuses 2 "--labels names a CSV file" fit plain
refuses 1 "no bag of others.csv has a file" fit plain --labels others.csv
refuses 2 "which alone has a table" fit all.npz --labels bags.csv
refuses 1 "cannot read 'nothing.h5'" fit nothing.h5
refuses 1 "has no file for 'slide" locate npz.fin plain --beside types/none
"$FINETTI" fit plain --labels some.csv --model mixture:linear --calibrate no --cv none 2>&1 | grep -q "11 of the 24 bags of the table have no file" || fail "no note of bags without files"
FINETTI_HDF5=/nowhere/libhdf5.so refuses 1 "needs the HDF5 library (/nowhere/libhdf5.so), which is not here" fit all.h5
FINETTI_HDF5=/nowhere/libhdf5.so "$FINETTI" info | grep -q "^HDF5      no" || fail "info"
