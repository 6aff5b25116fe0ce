"""Rows of attention to contexts of tokens: learning curves, many contexts, long softmax, Cholesky.

Peers compute the same numbers on the same arrays, and are compared before they are timed. Memory is
what a call makes the process grow by at its peak, beyond the arrays that it is given; for one context
also what the library states before it takes it.
"""

import os
import resource
import struct

import numpy as np

import peers
import peers_cross
from library import Cross, CrossBatch, aligned

MB = 1e6


def normal(generator, shape, dtype=float):
    out = aligned(shape, dtype)
    out[...] = generator.standard_normal(shape)
    return out


def grows(call):
    """Bytes by which the memory of the process grows during a call, seen in a child that makes it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            with open("/proc/self/statm") as file:
                before = int(file.read().split()[1]) * resource.getpagesize()
            call()
            after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
            os.write(write, struct.pack("d", max(0, after - before)))
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        answer = file.read()
    os.waitpid(child, 0)
    return struct.unpack("d", answer)[0] if len(answer) == 8 else float("nan")


def memory(contestants):
    """{name: call} to "ours 0.1 MB, numpy 2 MB"."""
    parts = [f"{name or 'ours'} {grows(call) / MB:.2g} MB" for name, call in contestants.items()
             if name != "finetti, plain C"]
    return "memory " + ", ".join(parts)


# ---- rows --------------------------------------------------------------------------------------------


def prefix(bench):
    """What is known after 1, 2, ... L tokens: one factor against a fit for every length."""
    L, m, d, noise, scale = 400 if bench.quick else 1000, 100, 4, 0.1, 1.0
    generator = np.random.default_rng(11)
    keys, queries = normal(generator, (L, d)), normal(generator, (m, d))

    def truth(x):
        return np.sin(x @ np.arange(1, d + 1))[:, None]

    values, answers = truth(keys) + np.sqrt(noise) * generator.standard_normal((L, 1)), truth(queries)
    ours = Cross(bench.ours, {"form": "cme", "kernel": "rbf", "scale": scale, "noise": noise}, d, 1, L)
    error, score = np.empty(L + 1), np.empty(L + 1)

    def curve():
        ours.load(keys, values)
        ours.prefix(queries, answers, error, score)

    curve()
    step = 40 if bench.quick else 25
    lengths = list(range(step, L + 1, step))
    arguments = (keys, values, queries, answers, scale, noise)
    if peers_cross.GaussianProcessRegressor:
        bench.agree("prefix", [error[lengths]], [peers_cross.sklearn_refit(*arguments, lengths)], 1e-8)
    bench.agree("prefix", [error[lengths]], [peers_cross.numpy_refit(*arguments, lengths)], 1e-8)
    names = {"numpy solve": peers_cross.numpy_refit}
    if peers_cross.GaussianProcessRegressor:
        names["scikit-learn refit"] = peers_cross.sklearn_refit
    else:
        bench.skip("prefix in scikit-learn", "python3-sklearn")
    contestants = {name: lambda refit=refit: refit(*arguments, lengths) for name, refit in names.items()}
    seconds = bench.race({"": curve})
    rounds, bench.rounds = bench.rounds, 1 if bench.quick else 3
    # Every `step`-th length stands for the `step` lengths before it: the sum of their times is the integral.
    seconds.update({name: step * time for name, time in bench.race(contestants).items()})
    bench.rounds = rounds
    bench.row(f"prefix curve 1..{L}", seconds, 1, "curves/s", {"scikit-learn refit": 200},
              f"peers: every {step}th length, times {step}; ours states {ours.bytes / MB:.0f} MB; " +
              memory({"": curve, **contestants}))


def batched(bench):
    """1000 contexts of 128 tokens, the Gram matrix included."""
    n, L, m, dk, dv, noise, scale = 100 if bench.quick else 1000, 128, 8, 8, 8, 0.1, 2.0
    generator = np.random.default_rng(12)
    keys, values, queries = (normal(generator, (n, rows, width)) for rows, width in ((L, dk), (L, dv), (m, dk)))
    settings = {"form": "cme", "kernel": "rbf", "scale": scale, "noise": noise}
    ours = CrossBatch(bench.ours, settings, keys, values, queries)
    plain = CrossBatch(bench.plain, settings, keys, values, queries)
    contestants = {"": ours.forward, "finetti, plain C": plain.forward}
    ours.forward()
    arguments = (keys, values, queries, scale, noise)
    reference = peers_cross.numpy_cme(*arguments)
    error = bench.agree("batched cme", [ours.out], [reference], 1e-10)
    contestants["numpy solve, loop"] = lambda: peers_cross.numpy_cme(*arguments)
    if peers.torch:
        tensors = [peers.torch.from_numpy(array) for array in (keys, values, queries)] + [scale, noise]
        for name, at_once in ("torch batched", None), ("torch, 8 at a time", 8):
            bench.agree(name, [peers_cross.torch_cme(*tensors, at_once)], [reference], 1e-10)
            contestants[name] = lambda at_once=at_once: peers_cross.torch_cme(*tensors, at_once)
    else:
        bench.skip("batched cme in torch", "python3-torch")
    seconds = bench.race(contestants)
    better = min((name for name in seconds if name.startswith(("numpy", "torch"))), key=seconds.get)
    bench.row(f"cme {n} x {L}", seconds, n / 1e3, "k contexts/s", {better: 3},
              f"{seconds[''] / n * 1e6:.1f} us each; agree to {error:.0e}; {memory(contestants)}")


def softmax(bench):
    """One context of L tokens and as many queries, d = 64, float."""
    L, d = 1024 if bench.quick else 4096, 64
    generator = np.random.default_rng(13)
    keys, values, queries = (normal(generator, (1, L, d), np.float32) for _ in range(3))
    temperature = float(np.sqrt(d))
    ours = CrossBatch(bench.ours, {"form": "softmax", "temperature": temperature}, keys, values, queries)
    ours.forward()
    arrays = keys[0], values[0], queries[0]
    reference = peers_cross.numpy_softmax(*(array.astype(float) for array in arrays), temperature)
    error = bench.agree("softmax", [ours.out[0]], [reference], 1e-5)
    contestants = {"": ours.forward, "numpy": lambda: peers_cross.numpy_softmax(*arrays, temperature)}
    if peers.torch:
        tensors = [peers.torch.from_numpy(array) for array in arrays]
        for name, at_once in ("torch", L), ("torch, 256 at a time", 256):
            bench.agree(name, [peers_cross.torch_softmax(*tensors, temperature, at_once)], [reference], 1e-5)
            contestants[name] = lambda at_once=at_once: peers_cross.torch_softmax(*tensors, temperature, at_once)
    else:
        bench.skip("softmax in torch", "python3-torch")
    stated = memory(contestants)
    # What the products alone would take at the rate of the machine's own multiplication.
    square = normal(generator, (1024, 1024), np.float32)
    contestants["two products, at numpy's best"] = lambda: square @ square
    seconds = bench.race(contestants)
    seconds["two products, at numpy's best"] *= 2 * L * L * d / 1024 ** 3
    bench.row(f"softmax {L} x {L} x {d}", seconds, 4 * L * L * d / 1e9, "Gflop/s", {"torch": 1.5},
              f"agree to {error:.0e}; {stated}")


def cholesky(bench):
    """A context of 8000 tokens: its factor as a share of what dgemm does."""
    L, d = 1500 if bench.quick else 8000, 4
    generator = np.random.default_rng(14)
    keys, values = normal(generator, (L, d)), normal(generator, (L, 1))
    ours = Cross(bench.ours, {"form": "cme", "kernel": "rbf", "scale": 1.0, "noise": 0.1}, d, 1, L)
    size = min(L, 2000)
    a, b = normal(generator, (size, size)), np.empty((size, size))
    contestants = {"": lambda: ours.load(keys, values), "dgemm": lambda: np.matmul(a, a, out=b)}
    rounds, bench.rounds = bench.rounds, 3
    seconds = bench.race(contestants)
    bench.rounds = rounds
    work = L ** 3 / 3
    seconds["dgemm"] *= work / (2 * size ** 3)
    bench.row(f"factor of {L} tokens", seconds, work / 1e9, "Gflop/s", {"dgemm": 0.7},
              f"Gram matrix and solve included in the time, not in the flops; ours states {ours.bytes / MB:.0f} MB")


PARTS = {"prefix": prefix, "batched": batched, "long": softmax, "factor": cholesky}
