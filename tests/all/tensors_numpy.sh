#!/usr/bin/env bash
# Files of tensors and models against a few lines of numpy that follow the published layout of safetensors to the letter:
# what Python writes is read, what is written here Python reads; with the package itself too, where it is installed.
. "$SRC/tests/cli/common.bash"
"$PYTHON" -c 'import numpy' 2>/dev/null || skip "no numpy (Debian: python3-numpy)"
[ -e "$BUILD/libfinetti.so" ] && ! ldd "$BUILD/libfinetti.so" | grep -q asan || skip "no plain shared library"

cat >layout.py <<'PY'
import json, struct
import numpy as np

TYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "|u1"}


def save(path, tensors, metadata=None):
    header, at, data = {}, 0, b""
    if metadata:
        header["__metadata__"] = metadata
    for name, x in tensors.items():
        raw = np.ascontiguousarray(x).tobytes()
        kind = {v: k for k, v in TYPES.items()}[x.dtype.str]
        header[name] = {"dtype": kind, "shape": list(x.shape), "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)


def load(path):
    raw = open(path, "rb").read()
    size, = struct.unpack("<Q", raw[:8])
    assert 8 + size <= len(raw) and raw[8:9] == b"{"
    pairs = json.loads(raw[8:8 + size], object_pairs_hook=lambda p: p)
    assert len(set(k for k, _ in pairs)) == len(pairs)
    header = json.loads(raw[8:8 + size])
    metadata = header.pop("__metadata__", {})
    assert all(isinstance(v, str) for v in metadata.values())
    out, at = {}, 0
    for name, t in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = t["data_offsets"]
        assert begin == at, "a hole or an overlap"
        at = end
        x = np.frombuffer(raw[8 + size + begin:8 + size + end], TYPES[t["dtype"]])
        out[name] = x.reshape(t["shape"])
    assert at == len(raw) - 8 - size
    return out, metadata
PY
cc -O1 -Wall -I"$SRC/include" "$SRC/tests/tensors/again.c" -o again -L"$BUILD" -lfinetti -Wl,-rpath,"$BUILD"
export FINETTI_AGAIN=$PWD/again
"$PYTHON" - <<'PY'
import os, subprocess
import numpy as np
import layout

rng = np.random.default_rng(1)
tensors = {
    "odd": rng.integers(0, 256, 3, dtype=np.uint8),  # what follows is not aligned
    "f64": rng.normal(size=(3, 5)), "f32": rng.normal(size=(2, 1, 4)).astype("f4"),
    "i64": np.array([-2**63, 2**63 - 1]), "i32": np.array([[-2**31], [7]], dtype="i4"),
    "nothing": np.zeros((0, 4)), "one": np.array(np.pi), "special": np.array([np.nan, np.inf, -0.0]),
    "caf\u00e9": np.zeros((1, 2, 3, 4), "u1"),
}
text = 'quotes " \\ \n caf\u00e9'
layout.save("python.safetensors", tensors, {"text": text})
run = lambda *a: subprocess.run([os.environ["FINETTI_AGAIN"], *a], capture_output=True, text=True)
done = run("python.safetensors", "again.safetensors")
assert done.returncode == 0, done.stderr
assert done.stdout.splitlines()[0] == "odd 4 1 3", done.stdout
back, metadata = layout.load("again.safetensors")
assert metadata["text"] == text and metadata["finetti"] == "tensors", metadata
assert set(back) == set(tensors)
for name, x in tensors.items():
    y = back[name]
    assert x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes(), name
raw = open("again.safetensors", "rb").read()
assert (8 + int.from_bytes(raw[:8], "little")) % 64 == 0
# Once more gives the same bytes; one byte changed is noticed; without metadata it is read.
assert run("again.safetensors", "third.safetensors").returncode == 0
assert open("third.safetensors", "rb").read() == raw
open("bad.safetensors", "wb").write(raw[:-1] + bytes([raw[-1] ^ 1]))
done = run("bad.safetensors", "x")
assert done.returncode == 1 and "damaged" in done.stderr, done.stderr
layout.save("changed.safetensors", back, metadata)
done = run("changed.safetensors", "x")
assert done.returncode == 1 and "changed after finetti wrote it" in done.stderr, done.stderr
layout.save("plain.safetensors", back)
assert run("plain.safetensors", "x").returncode == 0
try:
    from safetensors.numpy import load_file, save_file
except ImportError:
    print("SKIPPED: the package safetensors: not installed, compared with the layout alone")
else:
    theirs = load_file("again.safetensors")
    assert all(theirs[k].tobytes() == v.tobytes() for k, v in tensors.items())
    save_file(tensors, "theirs.safetensors", {"text": text})
    assert run("theirs.safetensors", "x").returncode == 0
print("%d tensors from Python and back: the same bytes" % len(tensors))
PY

# A model: settings and names as the metadata and the tensors have them.
accepts simulate --n 60 --d 3 --L 4 --mu 3 --eps 0.1 --sign --out bags.csv
accepts fit bags.csv --bag sample --label y --features 'x*' --model softmax --cv none --out model.fin
"$PYTHON" - <<'PY'
import numpy as np
import layout

tensors, metadata = layout.load("model.fin")
assert metadata["finetti"] == "model" and metadata["version"] == "2" and metadata["written_by"].startswith("finetti ")
assert metadata["setting.model"] == "softmax" and metadata["label"] == "y" and len(metadata["checksum"]) == 16
assert tensors["names.features"].tobytes().decode().split("\0") == ["x1", "x2", "x3", ""]
assert len(tensors["names.classes"].tobytes().split(b"\0")) == 3
assert all(np.isfinite(x).all() for x in tensors.values() if x.dtype.kind == "f")
print("a model of %d tensors, read with numpy" % len(tensors))
PY
