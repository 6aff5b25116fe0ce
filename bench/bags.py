"""Fitting to bags of tokens: cross-validation of small sets, passes over a large one, reading CSV.

Ours are whole commands with one thread, charged the processor time of their process; peers run in this one with
one thread. Real data are used where they lie beside the project, and bags of the same size otherwise.
"""

import json
import os
import subprocess
import sys
import tempfile
import time

import numpy as np

import peers
import peers_bags

SETS = {"musk1": (92, 476, 166), "elephant": (200, 1391, 230), "tiger": (200, 1220, 230)}  # bags, tokens, columns


# A child's peak memory counts what it was before it became the command, that is this process; so it is started by a
# small one.
LAUNCH = """import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)
sys.exit(done.returncode)
"""


class Command:
    """What a command printed (JSON), its processor time, and the memory it had at its peak."""

    def __init__(self, *words):
        done = subprocess.run([sys.executable, "-S", "-c", LAUNCH, *words], capture_output=True, text=True, check=False,
                              env={**os.environ, "FINETTI_THREADS": "1"})
        *message, used = done.stderr.splitlines()
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {(message or ['no message'])[0]}")
        self.answer, (seconds, peak) = json.loads(done.stdout), used.split()
        self.seconds, self.peak = float(seconds), int(peak) * 1024  # mapped pages that were touched count


# ---- cross-validation of small sets ---------------------------------------------------------------------


def simulated(name, folder):
    """Bags as large as those of `name`, one token of which decides; five times ten folds."""
    n, count, d = SETS[name]
    generator = np.random.default_rng(1)
    bag = np.sort(np.concatenate((np.arange(n), generator.integers(0, n, count - n))))
    first = np.searchsorted(bag, np.arange(n))
    tokens = generator.standard_normal((count, d))
    tokens[first, 0] += 3
    y = (tokens[first, 1] + 0.5 * generator.standard_normal(n) > 0).astype(int)
    path, folds = (os.path.join(folder, f"{part}{name}.csv") for part in ("", "folds_"))
    columns = ",".join(f"f{j}" for j in range(d))
    np.savetxt(path, np.column_stack((bag, y[bag], tokens)), "%g", ",", header="bag_id,label," + columns, comments="")
    numbers = [generator.permutation(n) % 10 for _ in range(5)]
    np.savetxt(folds, np.column_stack((np.arange(n), *numbers)), "%d", ",", header="bag_id,r0,r1,r2,r3,r4", comments="")
    return path, folds


def load(path, folds):
    """Tokens, offsets, labels and folds, bags in the order of the file of folds."""
    rows, fold = (np.loadtxt(name, delimiter=",", skiprows=1) for name in (path, folds))
    order = {bag: i for i, bag in enumerate(fold[:, 0])}
    bag = np.array([order[number] for number in rows[:, 0]])
    rows, bag = rows[np.argsort(bag, kind="stable")], np.sort(bag)
    offsets = np.searchsorted(bag, np.arange(len(fold) + 1))
    labels = rows[offsets[:-1], 1]
    return rows[:, 2:], offsets, (labels == labels.max()).astype(float), fold[:, 1:].astype(int).T


def one_set(bench, name, path, folds):
    tokens, offsets, labels, fold = load(path, folds)
    seconds, said, count = {}, {}, fold.shape[0] * len(np.unique(fold))
    for model in "softmax", "mixture":
        words = [bench.command, "fit", path, "--folds", folds, "--model", model, "--compare", "none", "--no-curve", "--json"]
        turns = [Command(*words) for _ in range(1 if bench.quick else 3)]
        seconds[model] = min(turn.seconds for turn in turns)
        mean = turns[0].answer["validation"]["models"][0]
        said[model] = f"{mean['main']:.3f}"
    most, peer = 2 if bench.quick else count, {}
    for clip, title in ((np.inf, "torch deep attention"), (3, "torch, z-scores cut at 3")):
        if not peers.torch:
            break
        begin = time.thread_time()
        right = peers_bags.deep_folds(tokens, offsets, labels, fold, clip, most)
        peer[title] = (time.thread_time() - begin) * count / len(right)
        said[title] = f"{np.mean(right):.3f} +- {np.std(right, ddof=1) / len(right) ** 0.5:.3f}"
    for model in "softmax", "mixture":
        bench.row(f"{count} folds, {name} {model}", {"": seconds[model], **peer}, count, "folds/s",
                  {"torch deep attention": 50}, "accuracy " + ", ".join((said[model], *(said[title] for title in peer))))


def folds(bench):
    data = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "shared", "data", "mil")
    with tempfile.TemporaryDirectory() as folder:
        for name in list(SETS)[:1] if bench.quick else SETS:
            path, numbers = (os.path.join(data, f"{part}{name}.csv") for part in ("", "folds_"))
            if not os.path.exists(path) or not os.path.exists(numbers):
                print(f"{name}: simulated bags of the same size")
                path, numbers = simulated(name, folder)
            one_set(bench, name, path, numbers)
    if not peers.torch:
        bench.skip("deep attention in torch", "python3-torch")


# ---- which token is responsible? -------------------------------------------------------------------------------------


def known_bags(rule, n, generator, d=5, L=10):
    """Bags of L tokens whose last decides (of `three` the last three), as in src/lab/mil_draw.c: tokens, offsets, labels, deciding."""
    tokens, labels = generator.standard_normal((n, L, d)), np.arange(n) % 2
    deciding = np.arange(L) >= L - (3 if rule == "three" else 1)
    says = np.where(deciding, labels[:, None], generator.integers(0, 2, (n, L)))
    tokens[:, :, 0] += 3 * says - 1.5
    if rule == "ball":
        tokens[:, deciding, 1:4] *= 0.2
    else:
        side = generator.integers(0, 2, (n, deciding.sum())) * 2 - 1 if rule == "sides" else 1
        tokens[:, deciding, 1] += 3 * side
    return tokens.reshape(n * L, d), np.arange(n + 1) * L, labels, np.tile(deciding, n)


def judge_weights(weight, deciding, L=10):
    """Share of bags whose largest weight is of a responsible token; mean AUC over the pairs of a bag."""
    weight, deciding = weight.reshape(-1, L), deciding.reshape(-1, L)[0]
    auc = np.mean([weight[:, l, None] > weight[:, ~deciding] for l in np.flatnonzero(deciding)])
    return np.mean(deciding[weight.argmax(1)]), auc


def write_known(path, tokens, offsets, labels, deciding):
    bag = np.repeat(np.arange(len(labels)), np.diff(offsets))
    columns = ",".join(f"x{j}" for j in range(tokens.shape[1]))
    np.savetxt(path, np.column_stack((bag, labels[bag], deciding, tokens)), "%.17g", ",", header=f"bag,label,relevant,{columns}",
               comments="")


def found(bench):
    """The same bags for all: precision at 1 and AUC of the scores of `locate --evidence` and of the weights of deep attention."""
    for rule in "linear", "sides", "ball", "three":
        said, seconds = {}, {}
        for seed in range(1 if bench.quick else 3):
            generator = np.random.default_rng(seed)
            learn, judge = known_bags(rule, 200, generator), known_bags(rule, 500, generator)
            with tempfile.TemporaryDirectory() as folder:
                names = [os.path.join(folder, name) for name in ("learn.csv", "judge.csv", "model.fin")]
                write_known(names[0], *learn)
                write_known(names[1], *judge)
                for model in "softmax", "mixture":
                    fit = Command(bench.command, "fit", names[0], "--model", model, "--features", "x0:x4", "--cv", "none", "--out",
                                  names[2], "--json")
                    seconds[""] = fit.seconds
                    rows = Command(bench.command, "locate", names[2], names[1], "--evidence", "--top", "1", "--json").answer["found"]
                    for row in rows:
                        said.setdefault(f"{model} {row['score']}", []).append((row["first"], row["auc"]))
            if peers.torch:
                begin = time.thread_time()
                weight, _ = peers_bags.deep_weights(learn[:3], judge[:3], seed)
                seconds["torch deep attention"] = time.thread_time() - begin
                said.setdefault("torch deep attention", []).append(judge_weights(weight, judge[3]))
        text = ", ".join("{} {:.3f}/{:.3f}".format(name, *np.mean(pairs, 0)) for name, pairs in said.items() if "own" not in name)
        bench.row(f"responsible token: {rule}", seconds, 1, "fits/s", None, "responsible token first/AUC: " + text)


# ---- passes over many tokens ----------------------------------------------------------------------------------


def write_tokens(folder, n, L, d):
    """Ragged bags of about L tokens, mapped float32; a token of every bag decides."""
    generator = np.random.Generator(np.random.SFC64(1))
    size = generator.integers(max(1, L - L // 2), L + L // 2 + 1, n)
    offsets = np.concatenate(([0], np.cumsum(size)))
    tokens = np.lib.format.open_memmap(os.path.join(folder, "tokens.npy"), "w+", np.float32, (int(offsets[-1]), d))
    y = np.empty(n)
    for i in range(0, n, 10000):
        j = min(i + 10000, n)
        block = generator.standard_normal((int(offsets[j] - offsets[i]), d), np.float32)
        first = offsets[i:j] - offsets[i]
        block[first, 0] += 3
        y[i:j] = block[first, 1] + 0.5 * generator.standard_normal(j - i) > 0
        tokens[offsets[i]:offsets[j]] = block
    tokens.flush()
    np.save(os.path.join(folder, "offsets.npy"), offsets)
    np.save(os.path.join(folder, "y.npy"), y.astype(np.int64))
    return np.load(os.path.join(folder, "tokens.npy"), "c"), offsets, y.astype(np.float32)


def tokens(bench):
    """Evaluations of loss and gradient times tokens, over the processor time of the whole command. (The bags are so many that mean
    pooling, where a fit starts, goes over the tokens as well, and every evaluation counts.) A pass by itself: what more of them cost."""
    n, L, d = (100000, 4, 100) if bench.quick else (250000, 10, 100)
    with tempfile.TemporaryDirectory() as folder:
        x, offsets, y = write_tokens(folder, n, L, d)
        size = f"{x.nbytes / 1e9:.2g} GB"
        words = (bench.command, "fit", folder, "--model", "softmax:linear", "--penalty", "0.1", "--cv", "none", "--locator", "no",
                 "--calibrate", "no", "--json")
        turns = [(Command(*words), Command(*words, "--iterations", "3")) for _ in range(1 if bench.quick else 5)]
        run, few = (min(side, key=lambda turn: turn.seconds) for side in zip(*turns))
        spent, passes = run.seconds, run.answer["fit"]["evaluations"]
        one = (spent - few.seconds) / (passes - few.answer["fit"]["evaluations"])
        rate = passes * len(x) / spent  # tokens a second
        seconds, aims = {"": 1 / rate}, {}
        if peers.torch:
            for title, name, share in (("torch DataLoader", "loader", 0.02), ("torch, 4096 bags a step", "slices", 0.5)):
                linear = peers_bags.Linear(d)
                step = getattr(linear, name)
                step(x, offsets, y, 256)
                begin = time.thread_time()
                count = step(x, offsets, y, int(share * n))
                seconds[title] = (time.thread_time() - begin) / count
            aims["torch DataLoader"] = 20
        else:
            bench.skip("bags in torch", "python3-torch")
        memory = bench.race({"": lambda: bench.machine.machine_read(x.ctypes.data, x.size)})[""]
        seconds["reading memory"] = memory / len(x)
        aims["reading memory"] = 0.7
        bench.row(f"fit to {size} of tokens", seconds, 1e-6, "M tokens/s", aims,
                  f"{rate * 4 * d / 1e9:.1f} GB/s of {x.nbytes / memory / 1e9:.1f} reading; {passes} passes; peak memory "
                  f"{run.peak / x.nbytes:.2f} of the data (aim 1.10; mapped pages count)")
        seconds[""] = one / len(x)
        bench.row(f"a pass over {size} of tokens", seconds, 1e-6, "M tokens/s",
                  {title: 5 if title.endswith("step") else 0.5 for title in seconds if title.startswith(("reading", "torch, 4096"))},
                  f"{x.nbytes / one / 1e9:.1f} GB/s; without what a fit does once")


# ---- reading CSV ---------------------------------------------------------------------------------------------------


def csv(bench):
    """Features with seven digits, as measured data have them."""
    columns, megabytes, generator = 50, 20 if bench.quick else 200, np.random.default_rng(1)
    rows = [",".join(f"{value:.6g}" for value in row) for row in generator.standard_normal((2000, columns))]
    with tempfile.TemporaryDirectory() as folder:
        path, bag = os.path.join(folder, "bags.csv"), 0
        with open(path, "w", encoding="ascii") as file:
            file.write("bag,label," + ",".join(f"x{j}" for j in range(columns)) + "\n")
            while file.tell() < megabytes * 1e6:
                file.write("".join(f"{bag + i // 10},{(bag + i // 10) % 2},{row}\n" for i, row in enumerate(rows)))
                bag += 200
        size = os.path.getsize(path) / 1e6
        words = [bench.command, "fit", path, "--model", "mean", "--penalty", "1", "--cv", "none", "--json"]
        seconds = {"": min(Command(*words).answer["seconds"]["read"] for _ in range(3))}
        try:
            import pandas

            begin = time.thread_time()
            pandas.read_csv(path)
            seconds["pandas.read_csv"] = time.thread_time() - begin
        except ImportError:
            bench.skip("CSV in pandas", "python3-pandas")
        begin, lines = time.thread_time(), 20000
        np.loadtxt(path, delimiter=",", skiprows=1, max_rows=lines)
        seconds["numpy.loadtxt"] = (time.thread_time() - begin) * bag * 10 / lines
        bench.row("CSV to bags", seconds, size, "MB/s", None, "aim 150 MB/s a core")


PARTS = {"folds": folds, "found": found, "tokens": tokens, "csv": csv}
