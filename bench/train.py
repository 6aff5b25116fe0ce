"""Rows of training: descent on the exact risk, SGD at a cost without d, SGD in R^d, and their scaling.

A call makes the runs, takes them to their last step and logs the first and the last. Rates are steps
of runs over time: 30 runs of 1000 steps are 30 000.
"""

import math
import os
import subprocess
import tempfile
import time

import numpy as np

import peers
import peers_train
from library import Training

PAPER = {"d": 400, "L": 10}
SGD = {"d": 80, "L": 10, "eps": 0.1}
SGD_STEPS = {"engine": "reduced", "alpha": 1e-3, "decay": 1e-4, "batch": 5}

# Name, settings of the task, of the training (30 runs each), and lam: the paper's five.
EXPERIMENTS = (
    ("manifold", PAPER, {"init": "manifold", "alpha": 4e-3, "steps": 20000, "log_every": 200}, 0.1),
    ("sphere_large_lambda", PAPER, {"alpha": 1e-3, "steps": 120000, "log_every": 300}, 0.9),
    ("sphere_small_lambda", PAPER, {"alpha": 4e-3, "steps": 20000, "log_every": 200}, 0.1),
    ("sphere_schedule", PAPER, {"alpha": 4e-3, "decay": 1e-4, "steps": 120000, "log_every": 300}, 1),
    ("sgd_schedule", SGD, {**SGD_STEPS, "steps": 200000, "log_every": 500}, 2),
)


def race(bench, contestants, clock=time.thread_time, pick=np.median):
    """{name: (call, steps it makes)} to {name: seconds a step}: the middle one of the turns."""
    seconds = bench.race({name: call for name, (call, _) in contestants.items()}, clock, pick)
    return {name: seconds[name] / work for name, (_, work) in contestants.items()}


def training(library, settings, task, **others):
    """A contestant; it is run once to see that every run makes every step."""
    call = Training(library, settings, task, **others)
    call.final()
    return call, call.runs * call.steps


# ---- are they the same? ----------------------------------------------------------------------------


def population_peers(runs, lam, decay):
    """NumPy's ports, and the points they start from."""
    settings = (PAPER["L"], lam, decay, 4e-3, math.sqrt(PAPER["d"] / 2))
    vectors = peers_train.PopulationVectors(*settings)
    overlaps = vectors.start(PAPER["d"], runs, 3)
    return overlaps, {"numpy, runs at once": peers_train.PopulationNumpy(*settings),
                      "Python floats": peers_train.PopulationFloats(*settings), "numpy, vectors": vectors}


def check_population(bench, say=lambda *_: None):
    """Where the runs are after some steps. At lam = 1 rounding grows by and by, so there are few."""
    for lam, decay, steps in (0.1, 0, 300), (0.1, 1e-4, 300), (1, 1e-4, 20):
        overlaps, ports = population_peers(8, lam, decay)
        settings = {"runs": 8, "steps": steps, "alpha": 4e-3, "decay": decay}
        ends = {name: port.run(overlaps, steps) for name, port in ports.items()}
        for name, library in ("finetti", bench.ours), ("finetti, plain C", bench.plain):
            end = Training(library, settings, PAPER, overlaps=overlaps, lam=lam).final()
            for peer, other in ends.items():
                what = f"population, lam {lam:g}, decay {decay:g}, {steps} steps: {name} and {peer}"
                say(what, bench.agree(what, [end], [other], 1e-8))


def ambient_peers(runs=1, numpy=("float32", "float64"), torch=("float32",)):
    """The ports of SGD in R^d."""
    settings = (SGD["d"], SGD["L"], SGD_STEPS["batch"], SGD["eps"], 2, SGD_STEPS["decay"], SGD_STEPS["alpha"], runs)
    ports = {f"numpy {name}": peers_train.AmbientNumpy(*settings, getattr(np, name), 5) for name in numpy}
    if peers.torch:
        for name in torch:
            ports[f"torch {name}"] = peers_train.AmbientTorch(*settings, getattr(peers.torch, name), 5)
    return ports


def check_ambient(bench, say=lambda *_: None):
    """The ports' gradients on one batch, and their way on the tokens that the library draws."""
    runs, steps, batch = 3, 40, SGD_STEPS["batch"]
    ports = ambient_peers(runs, torch=("float32", "float64"))
    exact = ports.pop("numpy float64")
    x, y = exact.draw()
    gradient = exact.gradient(x, y, 2)
    for name, port in ports.items():
        if name.startswith("torch"):
            batch_of = [peers.torch.from_numpy(array).to(port.dtype) for array in (x, y)]
        else:
            batch_of = [array.astype(port.dtype) for array in (x, y)]
        what = f"sgd, gradient: {name} and numpy float64"
        say(what, bench.agree(what, [port.gradient(*batch_of, 2)], [gradient], 1e-12 if "64" in name else 1e-4))

    generator = np.random.default_rng(7)
    start = peers_train.unit(generator.standard_normal((runs, 2, SGD["d"])))
    for dtype, port in (np.float32, ports["numpy float32"]), (np.float64, exact):
        name = "float" if dtype == np.float32 else "double"
        ours = Training(bench.ours, {**SGD_STEPS, "engine": "ambient", "dtype": name, "runs": runs, "steps": steps},
                        SGD, vectors=start, lam=2)
        k_star, v_star = ours.directions()
        port.set(k_star, v_star, start)
        for t in range(steps):
            drawn = [ours.tokens((run << 40) + t * batch, batch, dtype) for run in range(runs)]
            port.step(t, *(np.stack(part).astype(dtype) for part in zip(*drawn)))
        k, v = port.kv[:, 0].astype(float), port.kv[:, 1].astype(float)
        end = np.stack((k @ k_star, v @ v_star, v @ k_star, k @ v_star, (k * v).sum(1)), 1)
        what = f"sgd, {steps} steps on the same tokens: finetti and numpy {dtype.__name__}"
        say(what, bench.agree(what, [ours.final()], [end], 1e-9 if dtype == np.float64 else 1e-3))


def check(bench):
    def say(what, error):
        print(f"{what}: {error:.1e}")
    check_population(bench, say)
    check_ambient(bench, say)


# ---- rows ------------------------------------------------------------------------------------------


def population(bench):
    """Descent on the exact risk, the paper's settings: d = 400, L = 10. A large lam costs more."""
    if not peers.special:
        bench.skip("population", "python3-scipy")
        return
    check_population(bench)
    steps = 500 if bench.quick else 4000
    for lam, decay, label in (0.1, 0, ""), (0.1, 1e-4, ", decay"), (1, 1e-4, ", lam 1"):
        for runs in 64, 30:
            overlaps, ports = population_peers(runs, lam, decay)
            settings = {"runs": runs, "steps": steps, "alpha": 4e-3, "decay": decay}
            contestants = {name: training(library, settings, PAPER, overlaps=overlaps, lam=lam) for name, library in
                           (("", bench.ours), ("finetti, plain C", bench.plain))}
            for (name, port), count in zip(ports.items(), (100, 10, 4)):
                contestants[name] = (lambda port=port, count=count: port.run(overlaps, count)), runs * count
            seconds = race(bench, contestants)
            bench.row(f"population, {runs} runs{label}", seconds, 1e-6, "M steps/s", {"numpy, vectors": 500},
                      f"aim 15 M/s; {seconds[''] * bench.hertz:.0f} cycles a step")


def sgd(bench):
    """SGD, the paper's setting: d = 80, L = 10, batch 5, eps = 0.1, lam = 2 / (1 + t / 10 000)."""
    check_ambient(bench)
    peer = {name: ((lambda port=port: port.run(20)), 20) for name, port in ambient_peers().items()}
    for name, port in ambient_peers(30, ("float32",)).items():
        peer[f"{name}, 30 runs"] = (lambda port=port: port.run(2)), 60
    if not peers.torch:
        bench.skip("sgd in torch", "python3-torch")

    def row(what, settings, aims, note, plain=False, against=()):
        contestants = {"": training(bench.ours, {**SGD_STEPS, **settings}, SGD, lam=2)}
        if plain:
            contestants["finetti, plain C"] = training(bench.plain, {**SGD_STEPS, **settings}, SGD, lam=2)
        seconds = race(bench, {**contestants, **{name: peer[name] for name in peer if name in against}})
        bench.row(what, seconds, 1e-6, "M steps/s", aims,
                  f"{note}{seconds[''] * bench.hertz:.0f} cycles a step, "
                  f"{seconds[''] * 1e9 / (SGD_STEPS['batch'] * SGD['L']):.2f} ns a token")

    steps = 100 if bench.quick else 1000
    row("reduced, 64 runs", {"runs": 64, "steps": steps}, {"numpy float32": 300, "torch float32": 300}, "aim 2 M/s; ",
        True, peer)
    row("reduced, 30 runs", {"runs": 30, "steps": 2 * steps}, None, "aim 2 M/s; ")
    row("reduced, one run", {"runs": 1, "steps": 10 * steps}, None, "")
    for dtype in "float", "double":
        row(f"ambient, {dtype}", {"engine": "ambient", "dtype": dtype, "runs": 10, "steps": steps // 10}, None, "",
            True, peer)


def scaling(bench):
    """What a reduced step costs against d, L and the batch."""
    runs, steps = 64, (50 if bench.quick else 400)

    def contestant(task, settings, share=1):
        count = max(1, int(steps / share))
        return training(bench.ours, {**SGD_STEPS, "runs": runs, "steps": count, **settings}, {**SGD, **task}, lam=2)

    seconds = race(bench, {"": contestant({}, {}), "d = 10^9": contestant({"d": 10 ** 9}, {}),
                           "d = 10^15": contestant({"d": 10 ** 15}, {})})
    bench.row("reduced, d = 80", seconds, 1e-6, "M steps/s", None, "aim: ratio below 1.1")
    for name, first, sizes in ("L", 10, (10, 20, 40, 80, 160, 320)), ("batch", 5, (5, 10, 20, 40, 80, 160)):
        both = {size: ({name: size}, {}) if name == "L" else ({}, {name: size}) for size in sizes}
        seconds = race(bench, {size: contestant(*both[size], size / first) for size in sizes})
        tokens = np.array(sizes) * (SGD["L"] * SGD_STEPS["batch"] / first)
        times = np.array([seconds[size] for size in sizes])
        slope, offset = np.polyfit(tokens, times, 1, w=1 / times)
        exponent = np.polyfit(np.log(tokens[2:]), np.log(times[2:]), 1)[0]
        for size, count in zip(sizes, tokens):
            note = f"{seconds[size] / count * 1e9:.2f} ns a token"
            if size == sizes[-1]:
                note += (f"; fit {offset * 1e9:.0f} ns a step + {slope * 1e9:.2f} ns a token, "
                         f"exponent {exponent:.2f} from {name} = {sizes[2]} on")
            bench.row(f"reduced, {name} = {size}", {"": seconds[size]}, 1e-6, "M steps/s", None, note)


def with_threads(bench, count, call):
    def run():
        bench.ours.threads(count)
        call()
        bench.ours.threads(1)
    return run


class Others:
    """How many processors other programs kept busy meanwhile: rows in real time need an idle machine."""

    def __init__(self):
        self.start = self.now()

    @staticmethod
    def now():
        with open("/proc/stat", encoding="ascii") as file:
            user, nice, system, _, _, *rest = (int(word) for word in file.readline().split()[1:9])
        spent = os.times()
        return (user + nice + system + sum(rest)) / os.sysconf("SC_CLK_TCK") - sum(spent[:4]), spent.elapsed

    def __str__(self):
        (busy, at), (busy_before, before) = self.now(), self.start
        return f"others took {max(0, busy - busy_before) / max(at - before, 1e-9):.1f} processors"


def parallel(bench):
    """256 runs with two threads: the peer is the library itself with one."""
    if len(os.sched_getaffinity(0)) < 2:
        print("parallel: skipped, there is one processor")
        return
    share = 8 if bench.quick else 1
    for what, task, settings, lam in (("population", PAPER, {"alpha": 4e-3, "steps": 1600 // share}, 0.1),
                                      ("reduced", SGD, {**SGD_STEPS, "steps": 400 // share}, 2)):
        call, work = training(bench.ours, {"runs": 256, **settings}, task, lam=lam)
        others = Others()
        seconds = race(bench, {"": (with_threads(bench, 2, call), work),
                               "one thread": (with_threads(bench, 1, call), work)}, time.perf_counter, min)
        bench.row(f"two threads, {what}", seconds, 1e-6, "M steps/s", {"one thread": 1.8},
                  f"256 runs, real time, best; {others}")


def experiments(bench):
    """The paper's five, 30 runs each, with their logs: real time with all processors."""
    threads, share = len(os.sched_getaffinity(0)), 20 if bench.quick else 1
    calls = {}
    for name, task, settings, lam in EXPERIMENTS:
        settings = {"runs": 30, **settings, "steps": settings["steps"] // share}
        call = Training(bench.ours, settings, task, lam=lam)
        calls[name] = with_threads(bench, threads, call), 30 * settings["steps"]
    turns, others = {name: [] for name in calls}, Others()
    for _ in range(2 if bench.quick else 5):
        for name, (call, _) in calls.items():
            start = time.perf_counter()
            call()
            turns[name].append(time.perf_counter() - start)
    others, total = str(others), sum(np.median(seconds) for seconds in turns.values())
    note = f", 1/{share} of the steps" if share > 1 else ""
    for name, (_, work) in calls.items():
        seconds = np.median(turns[name])
        bench.row(name, {"": seconds / work}, 1e-6, "M steps/s", None, f"{seconds:.3f} s")
    bench.row("five experiments", {"": 1 / total}, 1, "s", None,
              f"aim 1 s; real time, {threads} threads{note}; fastest {sum(map(min, turns.values())):.2f} s; {others}")
    if not bench.quick:
        command(bench, "reproduce", "slr_training")


def command(bench, *words):
    """The whole command, from the start of its process to its end."""
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("FINETTI_THREADS", "OMP_NUM_THREADS")}
    turns, others = [], Others()
    for _ in range(3):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            done = subprocess.run([bench.command, *words], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                                  capture_output=True, text=True, check=False)
            turns.append(time.perf_counter() - start)
        if done.returncode:
            print(f"finetti {' '.join(words)}: skipped, it says: {(done.stderr.splitlines() or ['nothing'])[0]}")
            return
    bench.row("finetti " + " ".join(words), {"": 1 / np.median(turns)}, 1, "s", None, f"real time; {others}")


def generic(bench):
    """Paths without a kernel of their own."""
    steps = 20 if bench.quick else 200
    for what, task, settings, form in (
            # A logged risk of softmax is a simulation; a small one, for it is not what is timed.
            ("reduced, softmax", SGD, {**SGD_STEPS, "steps": steps, "risk_samples": 2}, {"form": "softmax", "lam": 2}),
            ("reduced, momentum", SGD, {**SGD_STEPS, "momentum": 0.9, "steps": steps}, {"lam": 2}),
            ("population, linear", PAPER, {"alpha": 4e-3, "steps": 5 * steps}, {"form": "linear"}),
            ("population, shifted", PAPER, {"alpha": 4e-3, "steps": max(1, steps // 10)}, {"form": "shifted"})):
        call, work = training(bench.ours, {"runs": 64, **settings}, task, **form)
        seconds = race(bench, {"": (call, work)})
        bench.row(what, seconds, 1e-6, "M steps/s", None, f"64 runs; {seconds[''] * 1e6:.2f} us a step")


PARTS = {"population": population, "sgd": sgd, "scaling": scaling, "parallel": parallel, "experiments": experiments,
         "generic": generic}
