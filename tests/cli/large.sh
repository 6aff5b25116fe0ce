#!/usr/bin/env bash
# Tokens that are mapped, 20 GB of them (a file with holes): a signal is answered soon, wherever the reader is. What is
# measured is the processor time of the whole command, which a busy machine does not change.
. "$SRC/tests/cli/common.bash"
"$PYTHON" - <<'P'
import os, resource, signal, struct
from stop import cancelled

def npy(path, descr, shape, data=b"", hole=0):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, shape)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data)
        file.truncate(file.tell() + hole)

def used():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime

BAGS, ROWS, D = 1000, 10_000_000, 250
os.mkdir("mapped")
npy("mapped/tokens.npy", "<f8", (ROWS, D), hole=ROWS * D * 8)
npy("mapped/offsets.npy", "<i8", (BAGS + 1,), struct.pack("<%dq" % (BAGS + 1), *range(0, ROWS + 1, ROWS // BAGS)))
npy("mapped/y.npy", "<f8", (BAGS,), struct.pack("<%dd" % BAGS, *((i * 37 % 101) / 10 for i in range(BAGS))))
for after in 0.1, 0.5, 1.5:
    before = used()
    cancelled("fit", "mapped", "--model", "softmax", "--cv", "none", send=signal.SIGTERM, after=after)
    print("a signal after %.1f s of work: %.1f s in all" % (after, used() - before))
    assert used() - before < after + 1.5, (after, used() - before)
P
