#!/usr/bin/env bash
# What is larger than memory is refused before it is made, with what needs it and what goes without.
. "$SRC/tests/cli/common.bash"
"$PYTHON" - <<'P'
import os, struct

def npy(path, descr, shape, data=b"", hole=0):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
        file.truncate(file.tell() + hole)

# 10^7 tokens with 20 000 features each: 1.6 TB, of which not a page is touched.
BAGS, ROWS = 20, 10_000_000
os.mkdir("mapped")
npy("mapped/tokens.npy", "<f4", (ROWS, 2), struct.pack("<400f", *((i * 37 % 101) / 10 for i in range(400))), ROWS * 8 - 1600)
npy("mapped/offsets.npy", "<i8", (BAGS + 1,), struct.pack("<%dq" % (BAGS + 1), *range(BAGS), ROWS))
npy("mapped/y.npy", "<i8", (BAGS,), struct.pack("<%dq" % BAGS, *(i % 2 for i in range(BAGS))))
P
refuses 1 "the RBF features of 10000000 tokens for the model mixture take 1.6e+03 GB" fit mapped --model mixture+rbf --landmarks 20000 --cv none
grep -q "basis = linear goes without them" "$work/stderr" || fail "$(cat "$work/stderr")"
