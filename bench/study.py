"""What a study costs beyond its runs: overhead a run, queries of a large store, threads and ranks.

Everything is timed as a user sees it: whole commands, from the start of the process to its end, in turns.
"""

import os
import shutil
import sqlite3
import subprocess
import tempfile
import time

TINY = """study: tiny
runs:
  - command: risk
    set: {{show: "risk,oracle"}}
    axes:
      kappa: {{from: 0, to: 1, count: {kappa}}}
      nu: {{from: 0, to: 1, count: {nu}}}
"""

HEAVY = """study: heavy
runs:
  - command: train
    set: {{runs: 16, steps: {steps}, init: sphere}}
    seeds: 64
"""

MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n"]


def environment(threads=None):
    own = {name: value for name, value in os.environ.items() if name not in ("FINETTI_THREADS", "OMP_NUM_THREADS")}
    own.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    if threads:
        own["FINETTI_THREADS"] = str(threads)
    return own


def seconds(words, folder, threads=None):
    start = time.perf_counter()
    done = subprocess.run(words, cwd=folder, env=environment(threads), stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {(done.stderr.splitlines() or ['no message'])[0]}")
    return time.perf_counter() - start


def run(bench, folder, study, store, *words, threads=1, ranks=0):
    """A fresh store each time."""
    for end in ("", "-wal", "-shm"):
        path = os.path.join(folder, store + end)
        if os.path.exists(path):
            os.remove(path)
    command = [bench.command, "study", "run", study, "--store", store, *words]
    return seconds((MPIRUN + [str(ranks)] if ranks else []) + command, folder, threads)


def write(folder, name, text):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
        file.write(text)


def by_hand(folder, runs, scalars):
    """The least that could be asked: Python's sqlite3, one commit a run, the same rows, no computing."""
    path = os.path.join(folder, "hand.db")
    start = time.perf_counter()
    base = sqlite3.connect(path, isolation_level=None)
    base.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; CREATE TABLE runs(id INTEGER PRIMARY KEY, settings TEXT);"
                       "CREATE TABLE scalars(run, name, value);")
    for i in range(runs):
        base.execute("BEGIN")
        base.execute("INSERT INTO runs VALUES(?, ?)", (i, '{"kappa":%d}' % i))
        base.executemany("INSERT INTO scalars VALUES(?, ?, ?)", [(i, j, 0.5) for j in range(scalars)])
        base.execute("COMMIT")
    base.close()
    took = time.perf_counter() - start
    os.remove(path)
    return took


def overhead(bench, folder):
    kappa, nu = (20, 25) if bench.quick else (100, 100)
    runs, turns = kappa * nu, 2 if bench.quick else 3
    write(folder, "tiny.yaml", TINY.format(kappa=kappa, nu=nu))
    ours, again, hand = [], [], []
    for _ in range(turns):
        ours.append(run(bench, folder, "tiny.yaml", "tiny.db"))
        again.append(seconds([bench.command, "study", "run", "tiny.yaml", "--store", "tiny.db"], folder, 1))
        hand.append(by_hand(folder, runs, 10))
    bench.row("a tiny run, whole", {"": min(ours) / runs, "sqlite3 by hand": min(hand) / runs}, 1e-3, "runs/ms", None,
              f"{1e3 * min(ours) / runs:.3f} ms a run of {runs}, one thread; aim below 1 ms")
    bench.row("a run that is there", {"": min(again) / runs}, 1e-3, "runs/ms", None,
              f"{1e3 * min(again) / runs:.4f} ms a run: hash and look up")


def queries(bench, folder):
    kappa, nu = (40, 50) if bench.quick else (250, 400)
    runs = kappa * nu
    write(folder, "large.yaml", TINY.format(kappa=kappa, nu=nu))
    took = run(bench, folder, "large.yaml", "large.db", threads=2)
    base = sqlite3.connect(os.path.join(folder, "large.db"))
    scalars = base.execute("SELECT count(*) FROM scalars").fetchone()[0]
    base.close()
    size = os.path.getsize(os.path.join(folder, "large.db"))
    print(f"{'':<26} a store of {runs} runs, {scalars} scalar rows, {size / 1e6:.0f} MB, filled in {took:.1f} s")
    start = min(seconds([bench.command, "--version"], folder) for _ in range(5))
    for what, words in (("one setting", ["--where", "kappa=1", "--out", "q.csv"]),
                        ("two settings", ["--where", "kappa=1", "--where", "nu>0.5", "--out", "q.csv"]),
                        ("a scalar", ["--where", "risk<0.12", "--out", "q.csv"])):
        best = min(seconds([bench.command, "study", "export", "tiny", "--store", "large.db", *words], folder) for _ in range(5))
        with open(os.path.join(folder, "q.csv"), encoding="utf-8") as file:
            rows = sum(1 for _ in file) - 1
        bench.row(f"query by {what}", {"": best - start}, 1, "1/s", None,
                  f"{1e3 * (best - start):.0f} ms for {rows} of {runs} runs, start of the program not counted; aim below 100 ms")


def scaling(bench, folder):
    if len(os.sched_getaffinity(0)) < 2:
        print("scaling: skipped, there is one processor")
        return
    write(folder, "heavy.yaml", HEAVY.format(steps=2000 if bench.quick else 100000))
    turns = {"1 thread": [], "2 threads": [], "1 rank": [], "2 ranks": []}
    have = shutil.which("mpirun") is not None
    for _ in range(2 if bench.quick else 3):
        turns["1 thread"].append(run(bench, folder, "heavy.yaml", "h.db", threads=1))
        turns["2 threads"].append(run(bench, folder, "heavy.yaml", "h.db", threads=2))
        for ranks in (1, 2) if have else ():
            turns[f"{ranks} rank{'s' * (ranks > 1)}"].append(run(bench, folder, "heavy.yaml", "h.db", threads=1, ranks=ranks))
    best = {name: min(values) for name, values in turns.items() if values}
    bench.row("study, 2 threads", {"": best["2 threads"] / 64, "1 thread": best["1 thread"] / 64}, 1, "runs/s", {"1 thread": 1.8}, "whole command")
    if have:
        bench.row("study, 2 ranks", {"": best["2 ranks"] / 64, "1 rank": best["1 rank"] / 64}, 1, "runs/s", {"1 rank": 1.8}, "whole command, mpirun included")


def measure(bench):
    with tempfile.TemporaryDirectory() as folder:
        overhead(bench, folder)
        queries(bench, folder)
        scaling(bench, folder)
