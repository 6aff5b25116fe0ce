"""One table: how fast finetti is, beside what else does the same, and beside what the machine can do.

Contestants of a row run in turns (ours, peer, ours, peer, ...) in this process, on the same arrays,
with one thread each, and are charged the processor time of that thread; the best turn of each
counts (in training, which takes longer, the middle one), so that a disturbance must last a whole row
to move a ratio. Before they are timed, contestants are compared: they must give the same numbers.
"""

import argparse
import ctypes
import json
import os
import sys
import time

import numpy as np

import bags
import cross
import encoder
import layer
import peers
import python
import study
import text
import train
from library import Attention, Library, Tokens, aligned

TURN = 0.04  # seconds: shorter calls are repeated to fill a turn


class Bench:
    def __init__(self, arguments):
        self.quick = arguments.quick
        self.rounds = 3 if self.quick else 15
        self.path = arguments.library
        self.ours = Library(arguments.library)
        self.plain = Library(arguments.library, "ref")
        self.command = os.path.join(os.path.dirname(arguments.library), "finetti")
        self.machine = ctypes.CDLL(arguments.machine)
        self.machine.machine_read.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        self.machine.machine_read.restype = ctypes.c_float
        self.machine.machine_cycles.argtypes = [ctypes.c_uint64] * 2
        self.rows, self.skipped = [], []
        self.hertz = 64e6 / self.race({"": lambda: self.machine.machine_cycles(10 ** 6, 3)})[""]

    def race(self, contestants, clock=time.thread_time, pick=min):
        """Seconds of one call of each: the best (or `pick`) of the turns, taken one after the other."""
        calls, turns = {}, {}
        for name, call in contestants.items():
            call()
            start = clock()
            call()
            calls[name] = max(1, int((0.25 if self.quick else 1) * TURN / max(clock() - start, 1e-7)))
            turns[name] = []
        for _ in range(self.rounds):
            for name, call in contestants.items():
                start = clock()
                for _ in range(calls[name]):
                    call()
                turns[name].append((clock() - start) / calls[name])
        return {name: float(pick(seconds)) for name, seconds in turns.items()}

    def row(self, what, seconds, work, unit, aims=None, bound=""):
        """`work` units are done in each call. The first contestant is ours, the others are peers."""
        (_, own), *others = seconds.items()
        for name, other in others or [("", None)]:
            self.rows.append({
                "what": what, "unit": unit, "ours": work / own, "peer": name, "peers": other and work / other,
                "ratio": other and other / own, "aim": (aims or {}).get(name), "bound": bound})
            self.print_row(self.rows[-1])

    LINE = "{:<26} {:>9} {:<14} {:<24} {:>9} {:>7} {:>5}  {}"

    def print_header(self):
        print(self.LINE.format("what", "ours", "unit", "peer", "peer's", "ratio", "aim", "bound"))

    def print_row(self, row):
        def number(value, form="{:.4g}"):
            return "" if value is None else form.format(value)

        ratio = number(row["ratio"], "{:.2f}x" if (row["ratio"] or 0) < 100 else "{:.0f}x")
        print(self.LINE.format(row["what"], number(row["ours"]), row["unit"], row["peer"], number(row["peers"]), ratio,
                               number(row["aim"], "{:g}x"), row["bound"]).rstrip(), flush=True)

    def agree(self, what, ours, peer, tolerance):
        """Arrays are to agree to `tolerance` of the largest number of each. Returns the error."""
        worst = 0
        for one, other in zip(ours, peer):
            one, other = np.asarray(one, float), np.asarray(other, float)
            error = np.max(np.abs(one - other)) / (np.max(np.abs(other)) + 1e-300)
            if not error <= tolerance:
                sys.exit(f"bench: {what}: ours and the peer's differ by {error:.2g} of the largest; nothing was timed")
            worst = max(worst, error)
        return worst

    def skip(self, what, package):
        self.skipped.append(what)
        print(f"{what}: skipped, {package} is not installed")


# ---- rows ------------------------------------------------------------------------------------------


def normals(bench):
    """65536 normals at a time: an array that stays in the second-level cache."""
    generator = np.random.default_rng(1)
    for dtype, name in ((np.float32, "float"), (np.float64, "double")):
        out = aligned(1 << 16, dtype)
        contestants = {"": bench.ours.normals(out), "finetti, plain C": bench.plain.normals(out),
                       "numpy PCG64 ziggurat": lambda: generator.standard_normal(dtype=dtype, out=out)}
        if peers.torch:
            tensor = peers.torch.from_numpy(out)
            contestants["torch normal_"] = lambda: tensor.normal_()
        elif dtype == np.float32:
            bench.skip("normals in torch", "python3-torch")
        seconds = bench.race(contestants)
        cycles = seconds[""] * bench.hertz / out.size
        bound = f"{cycles:.1f} cycles each"
        if bench.ours.kernel == "avx2" and dtype == np.float32:
            bound += ", 1.9 if all four vector pipes were always busy"
        bench.row(f"normals, {name}", seconds, out.size / 1e6, "M/s",
                  {"torch normal_": 5} if dtype == np.float32 else None, bound)


def attention(bench, n, what, plain):
    """Squared loss and its gradients in k, v, lam over n samples."""
    tokens = Tokens(bench.ours, n)
    generator = np.random.default_rng(2)
    k, v = (tokens.k_star + 0.03 * generator.standard_normal(tokens.d), 0.05 * generator.standard_normal(tokens.d))
    large = tokens.x.nbytes > 100e6
    multiply_adds = 4 * tokens.x.size  # two in the projections, two in the gradients
    for form in "erf", "softmax":
        ours = Attention(bench.ours, form, tokens, k, v, 0.1)
        contestants, aims = {"": ours.loss}, {}
        if plain:
            contestants["finetti, plain C"] = Attention(bench.plain, form, tokens, k, v, 0.1).loss
        if peers.torch:
            torch = peers.TorchAttention(form, tokens, k, v, 0.1)
            for call in torch.autograd, torch.by_hand:
                bench.agree(f"{what}, {form}", ours.loss(), [part.detach() for part in call()], 2e-3)
            contestants["torch autograd"], contestants["torch, by hand"] = torch.autograd, torch.by_hand
            aims["torch autograd"] = 5
        else:
            bench.skip(f"{what} {form} in torch", "python3-torch")
        if large:
            contestants["reading memory"] = lambda: bench.machine.machine_read(tokens.x.ctypes.data, tokens.x.size)
        seconds = bench.race(contestants)
        if large:
            aims["reading memory"] = 0.7
            bound = f"{tokens.x.nbytes / 1e9 / seconds['reading memory']:.1f} GB/s, reading and nothing else"
        else:
            bound = f"{multiply_adds / 16 / bench.hertz / seconds['']:.0%} of two AVX2 multiply-adds a cycle"
        bench.row(f"{what} {form}", seconds, tokens.x.nbytes / 1e9, "GB/s", aims, bound)


def risk(bench):
    """Risk, its three parts and five derivatives at random points."""
    n, generator = 10 ** 5, np.random.default_rng(3)
    points, values, plain_values = aligned((n, 12), float), aligned((n, 10), float), aligned((n, 10), float)
    points[:, :5] = generator.uniform(-0.5, 0.5, (n, 5))
    points[:, 5], points[:, 6] = generator.uniform(0.05, 1, n), generator.uniform(0.3, 1.5, n)
    points[:, 7], points[:, 8] = generator.uniform(1, 15, n), 0.1
    points[:, 9:] = 1, 10, 0
    contestants = {"": bench.ours.risk(points, values), "finetti, plain C": bench.plain.risk(points, plain_values)}
    if peers.special:
        contestants[""]()
        bench.agree("risk", values.T, peers.erf_risk(points).T, 1e-12)
        contestants["numpy and scipy"] = lambda: peers.erf_risk(points)
    else:
        bench.skip("risk in scipy", "python3-scipy")
    seconds = bench.race(contestants)
    bench.row("risk and gradient", seconds, n / 1e6, "M points/s", None,
              f"aim 5 M/s; {seconds[''] * bench.hertz / n:.0f} cycles a point")


def threads(bench):
    """The same call with two threads: the peer is the library itself with one."""
    if (os.cpu_count() or 1) < 2:
        print("threads: skipped, there is one processor")
        return
    tokens = Tokens(bench.ours, 4000 if bench.quick else 16000)

    def with_threads(count, call):
        def run():
            bench.ours.threads(count)
            call()
        return run

    calls = {"draw": tokens.draw}
    for form in "erf", "softmax":
        calls[f"loss {form}"] = Attention(bench.ours, form, tokens, tokens.k_star, tokens.v_star, 0.1).loss
    for name, call in calls.items():
        seconds = bench.race({"": with_threads(2, call), "one thread": with_threads(1, call)}, time.perf_counter)
        bench.row(f"two threads, {name}", seconds, tokens.x.nbytes / 1e9, "GB/s", None,
                  "" if name == "draw" else "memory is shared")
    bench.ours.threads(1)


def small(bench):
    attention(bench, 64, "loss 64x10x400", plain=True)


def large(bench):
    gigabytes = 0.128 if bench.quick else 1
    attention(bench, int(gigabytes * 1e9 / 16000), f"loss {gigabytes:g} GB", plain=False)


PARTS = {"normals": normals, "small": small, "large": large, "risk": risk, "threads": threads, **train.PARTS,
         **cross.PARTS, **bags.PARTS, **encoder.PARTS, **text.PARTS, **layer.PARTS, "study": study.measure, **python.PARTS}


def main():
    parser = argparse.ArgumentParser(prog="bench/run.sh", description="time finetti beside its peers")
    parser.add_argument("--library", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--machine", required=True, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="few turns and 0.1 GB instead of 1 GB: a smoke test")
    parser.add_argument("--only", metavar="PART", nargs="+", choices=list(PARTS), default=list(PARTS),
                        help="some parts: " + ", ".join(PARTS))
    parser.add_argument("--check", action="store_true", help="compare the contestants of training, and time nothing")
    parser.add_argument("--json", metavar="FILE", help="write the numbers to FILE as well")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    if arguments.check:
        train.check(bench)
        return
    print(f"kernels {bench.ours.kernel}, {bench.hertz / 1e9:.2f} GHz, numpy {np.__version__}, torch "
          f"{peers.torch.__version__ if peers.torch else 'missing'}; one thread each, {bench.rounds} turns")
    bench.print_header()
    for name, part in PARTS.items():
        if name in arguments.only:
            part(bench)
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"kernel": bench.ours.kernel, "hertz": bench.hertz, "rows": bench.rows,
                       "skipped": bench.skipped}, file, indent=1)


if __name__ == "__main__":
    main()
