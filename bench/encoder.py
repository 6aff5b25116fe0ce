"""Learning an encoder: one training step beside PyTorch's, and beside the products of matrices in it.

A step is everything: forward, backward, clipping, AdamW, on 64 sequences of 64 tokens (width 64, 4 heads, 2 layers,
256 hidden units). Contestants are processes (peers_encoder.py) that take turns; with one thread they are charged the
processor's time, with two the clock's. Before that, loss and gradients at the same weights are compared.
"""

import ctypes
import json
import os
import subprocess
import sys
import time

import numpy as np

import peers
from peers_encoder import BATCH, HEADS, HIDDEN, LAYERS, WIDTH, L

ROWS, FLOAT = BATCH * L, ctypes.c_float
PLAIN, TURNED = 111, 112  # of cblas
GROUP = 512  # rows of a product in our step


class Contestant:
    """A process that makes steps when it is told to."""

    def __init__(self, bench, kind, threads, script="peers_encoder.py"):
        here = os.path.dirname(os.path.abspath(__file__))
        library = os.path.abspath(bench.path)
        many = {name: str(threads) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}
        self.child = subprocess.Popen([sys.executable, os.path.join(here, script), kind, library,
                                       str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                      env={**os.environ, **many})
        self.start = self.answer()

    def answer(self):
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError("a contestant of the encoder's row ended; its message is above")
        return json.loads(line)

    def steps(self, count):
        self.child.stdin.write(f"{count}\n")
        self.child.stdin.flush()
        return self.answer()

    def close(self):
        self.child.stdin.close()
        self.child.stdout.close()
        self.child.wait()


def check(bench, ours, torch):
    """Every gradient to 1e-4 of its largest number: both are float."""
    bench.agree("encoder, loss", [ours.start["loss"]], [torch.start["loss"]], 1e-5)
    names = torch.start["gradient"]
    # A key's bias does nothing to softmax: its gradient is rounding, and is compared with the queries'.
    bench.agree("encoder, gradients", [ours.start["gradient"][name] for name in names], names.values(), 1e-4)


# ---- products alone --------------------------------------------------------------------------------


def find_sgemm():
    for name in "libopenblas.so.0", "libopenblas.so", "libblas.so.3":
        try:
            sgemm = ctypes.CDLL(name).cblas_sgemm
        except (OSError, AttributeError):
            continue
        sgemm.argtypes = ([ctypes.c_int] * 6 + [FLOAT, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p, ctypes.c_int,
                                                FLOAT, ctypes.c_void_p, ctypes.c_int])
        sgemm.restype = None
        return sgemm
    return None


def products(rows, width, wide):
    """A linear map of `rows`, its two products on the way back: (turn a, turn b, m, n, k)."""
    return [(PLAIN, TURNED, rows, wide, width), (PLAIN, PLAIN, rows, width, wide), (TURNED, PLAIN, wide, width, rows)]


def attention_products():
    """Of a head of a sequence: scores, answers; and on the way back dp, dq, dk, dv."""
    d = WIDTH // HEADS
    return [(PLAIN, TURNED, L, L, d), (PLAIN, PLAIN, L, d, L), (PLAIN, TURNED, L, L, d), (PLAIN, PLAIN, L, d, L),
            (TURNED, PLAIN, L, d, L), (TURNED, PLAIN, L, d, L)]


def sgemm_seconds(bench, sgemm, shapes, times):
    """Seconds that the products take, `times` times each, one after the other."""
    total = 0
    for turn_a, turn_b, m, n, k in shapes:
        a, b, c = (np.ones(size, np.float32) for size in (m * k, k * n, m * n))
        lda, ldb = (k if turn_a == PLAIN else m), (n if turn_b == PLAIN else k)

        def call():
            sgemm(101, turn_a, turn_b, m, n, k, 1, a.ctypes.data, lda, b.ctypes.data, ldb, 0, c.ctypes.data, n)

        total += times * bench.race({"": call})[""]
    return total


def all_products(bench):
    """(seconds of the linear maps, seconds of attention's products, operations of the maps) of a step."""
    sgemm = find_sgemm()
    if not sgemm:
        return None
    maps = [(WIDTH, 3 * WIDTH), (WIDTH, WIDTH), (WIDTH, HIDDEN), (HIDDEN, WIDTH)]
    shapes = [shape for one in maps for shape in products(GROUP, *one)]
    linear = sgemm_seconds(bench, sgemm, shapes, LAYERS * ROWS // GROUP)
    heads = sgemm_seconds(bench, sgemm, attention_products(), LAYERS * BATCH * HEADS)
    return linear, heads, LAYERS * ROWS * 6 * sum(a * b for a, b in maps)


# ---- the row ---------------------------------------------------------------------------------------


def one(bench, threads, alone):
    contestants = {"": Contestant(bench, "ours", threads)}
    try:
        if peers.torch:
            contestants["torch TransformerEncoder"] = Contestant(bench, "torch", threads)
            check(bench, *contestants.values())
        turns, count = {name: [] for name in contestants}, 2 if bench.quick else 10
        for turn in range(bench.rounds + 1):
            for name, contestant in contestants.items():
                turns[name].append(contestant.steps(count))
                time.sleep(0.02)  # threads that wait for work look for it a while
        clock = "processor" if threads == 1 else "wall"
        seconds = {name: min(turn[clock] for turn in taken[1:]) for name, taken in turns.items()}
        peak = {name: taken[-1]["peak"] for name, taken in turns.items()}
        more = {name: peak[name] - contestant.start["base"] for name, contestant in contestants.items()}
        bound = []
        if alone and threads == 1:
            linear, heads, operations = alone
            rate, own = operations / linear / 1e9, seconds[""]
            bound.append(f"{linear / own:.0%} of sgemm's {rate:.0f} GFlop/s on the linear maps (aim 60 %), "
                         f"{(linear + heads) / own:.0%} with attention's products")
        bound.append(f"memory {peak[''] / 1e6:.0f} MB" + (", torch " + ", ".join(
            f"{peak[name] / 1e6:.0f}" for name in contestants if name) if len(contestants) > 1 else ""))
        if len(contestants) > 1:
            bound.append(f"beyond start {more[''] / 1e6:.0f} and {more['torch TransformerEncoder'] / 1e6:.0f} MB "
                         f"(aim: half)")
        title = f"encoder step, {threads} thread" + ("s" if threads > 1 else "")
        bench.row(title, seconds, ROWS / 1e6, "M tokens/s", {"torch TransformerEncoder": 3}, "; ".join(bound))
    finally:
        for contestant in contestants.values():
            contestant.close()


def encoder(bench):
    alone = all_products(bench)
    if not alone:
        bench.skip("products of matrices alone", "OpenBLAS")
    if not peers.torch:
        bench.skip("encoder step in torch", "python3-torch")
    for threads in (1, 2) if (os.cpu_count() or 1) > 1 else (1,):
        one(bench, threads, alone)


PARTS = {"encoder": encoder}
