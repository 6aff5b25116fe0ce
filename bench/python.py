"""The Python package: what a call costs beyond the C library's own, and fitting beside the command line tool.

Contestants run in a process of their own, this file with the Python into which the wheel is installed
(BUILD/python/venv), in turns and with one thread, and are charged processor time. `C, prepared` is the same call of
the library with its arguments made beforehand.
"""

import glob
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def measure(bench):
    """Rows come from the other process as lines of JSON: what, seconds by contestant, work, unit, aims, bound."""
    build = os.path.dirname(os.path.abspath(bench.path))
    interpreter = os.path.join(build, "python", "venv", "bin", "python")
    wheels = glob.glob(os.path.join(build, "python", "finetti-*.whl"))
    if not os.path.exists(interpreter) or not wheels:
        bench.skip("the Python package", "the wheel (make bench builds it)")
        return
    words = [interpreter, os.path.abspath(__file__), bench.command, "quick" if bench.quick else "whole"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        for line in child.stdout:
            bench.row(**json.loads(line))
    if child.returncode:
        raise RuntimeError("the bench of the Python package failed; its message is above")
    imports(bench, interpreter)
    size = os.path.getsize(wheels[0]) / 1e6
    bench.rows.append({"what": "wheel", "unit": "MB", "ours": size, "peer": "", "peers": None, "ratio": None,
                       "aim": None, "bound": "aim: below 5"})
    bench.print_row(bench.rows[-1])


def seconds_of(words):
    """Processor time of a whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def imports(bench, interpreter):
    """From the start of a process to its end; an empty one is taken off."""
    scripts = {"empty": "pass", "": "import finetti", "numpy": "import numpy", "sklearn": "import sklearn.base"}
    turns = {name: [] for name in scripts}
    for _ in range(3 if bench.quick else 15):
        for name, script in scripts.items():
            turns[name].append(seconds_of([interpreter, "-c", script]))
    best = {name: min(values) for name, values in turns.items()}
    cost = {name: max(best[name] - best["empty"], 1e-3) for name in ("", "numpy", "sklearn")}
    bench.row("import finetti", cost, 1, "1/s", None, f"{1e3 * cost['']:.0f} ms beyond an empty Python; aim 50")


PARTS = {"python": measure}


# ---- in the process with the package ---------------------------------------------------------------------------

TURN = 0.04  # seconds: shorter calls are repeated to fill a turn


def race(contestants, rounds):
    """Seconds of one call of each: the best of the turns, taken one after the other."""
    calls, turns = {}, {name: [] for name in contestants}
    for name, call in contestants.items():
        call()
        start = time.thread_time()
        call()
        calls[name] = max(1, int(TURN / max(time.thread_time() - start, 1e-7)))
    for _ in range(rounds):
        for name, call in contestants.items():
            start = time.thread_time()
            for _ in range(calls[name]):
                call()
            turns[name].append((time.thread_time() - start) / calls[name])
    return {name: min(values) for name, values in turns.items()}


def tell(what, seconds, work, unit, aims=None, bound=""):
    print(json.dumps({"what": what, "seconds": seconds, "work": work, "unit": unit, "aims": aims, "bound": bound}),
          flush=True)


def small_calls(rounds):
    """One point, one query, one bag: nearly all of it is what surrounds the C call."""
    import finetti
    import numpy as np
    from finetti._core import error, ffi, lib
    points = np.array([[1, 1, 0, 0, 0, 0.1, 0.5 ** 0.5, 200 ** 0.5, 0, 1, 10, 0]])
    values, err = np.empty((1, 10)), error()
    given = (1, ffi.from_buffer("fin_risk_point[]", points), ffi.from_buffer("fin_risk_value[]", values), err)
    seconds = race({"": lambda: finetti.risk_erf(points), "C, prepared": lambda: lib.fin_risk_erf(*given),
                    "risk(lam=0.1)": lambda: finetti.risk(lam=0.1)}, rounds)
    tell("risk_erf, one point", seconds, 1e-3, "k calls/s", None,
         f"{1e6 * (seconds[''] - seconds['C, prepared']):.2f} us beyond the C call; aim 5")
    generator = np.random.default_rng(1)
    keys, values = generator.standard_normal((8, 4)), generator.standard_normal((8, 1))
    context, query = finetti.Context(keys, values), generator.standard_normal((1, 4))
    tell("Context, one query", race({"": lambda: context.predict(query)}, rounds), 1e-3, "k calls/s")


def many_points(rounds):
    import finetti
    import numpy as np
    from finetti._core import error, ffi, lib
    n, generator = 10 ** 5, np.random.default_rng(3)
    points, values, err = np.empty((n, 12)), np.empty((n, 10)), error()
    points[:, :5] = generator.uniform(-0.5, 0.5, (n, 5))
    points[:, 5:] = 0.1, 0.5 ** 0.5, 200 ** 0.5, 0.1, 1, 10, 0
    given = (n, ffi.from_buffer("fin_risk_point[]", points), ffi.from_buffer("fin_risk_value[]", values), err)
    seconds = race({"": lambda: finetti.risk_erf(points), "C, prepared": lambda: lib.fin_risk_erf(*given)}, rounds)
    tell("risk_erf, 100 000 points", seconds, n / 1e6, "M points/s", {"C, prepared": 0.95})


def bags_of(finetti, folder, n):
    """Bags with an answer, drawn by the package and written for the tool."""
    import numpy as np
    task = finetti.tasks.slr(d=50, L=10, eps=0.1, seed=1)
    x, y, _ = task.draw(n, dtype="float32")
    tokens = np.ascontiguousarray(np.reshape(x, (-1, 50)), np.float32)
    lengths = np.full(n, len(tokens) // n)
    path = os.path.join(folder, "bags.npz")
    np.savez(path, tokens=tokens, offsets=np.concatenate(([0], np.cumsum(lengths))), y=y)
    return path, tokens, lengths, np.ascontiguousarray(y, float)


def fits(command, rounds, n):
    """Fitting: the tool says how much of its time that was. Predicting: a whole command, with its files."""
    import finetti
    with tempfile.TemporaryDirectory() as folder:
        path, tokens, lengths, y = bags_of(finetti, folder, n)
        file, table = os.path.join(folder, "model.fin"), os.path.join(folder, "answers.npz")
        words = [command, "fit", path, "--model", "softmax", "--cv", "none", "--no-curve", "--json", "--out", file]
        model, turns, tool = finetti.SingleLocationRegressor(model="softmax"), {"": [], "finetti fit": []}, None
        for _ in range(rounds):
            start = time.thread_time()
            model.fit(tokens, y, lengths=lengths)
            turns[""].append(time.thread_time() - start)
            tool = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
            turns["finetti fit"].append(tool["seconds"]["fit"])
        answering = min(seconds_of([command, "predict", file, path, "--out", table]) for _ in range(rounds))
    if model.info_["loss"] != tool["fit"]["training_loss"]:
        sys.exit(f"bench: the package's fit has another loss than the tool's: {model.info_['loss']!r}")
    tell(f"fit, {n} bags", {name: min(values) for name, values in turns.items()}, n / 1e3, "k bags/s",
         {"finetti fit": 0.95}, "the same model, bit by bit")
    predictions(model, finetti.Bags(tokens, lengths=lengths), answering, rounds)


def predictions(model, bags, answering, rounds):
    import numpy as np
    from finetti._core import error, ffi, lib
    n, answer, err = len(bags), np.empty(len(bags)), error()
    struct = ffi.new("fin_bags *", {"n": n, "total": n, "d": bags.tokens.shape[1], "dtype": lib.FIN_F32})
    struct.offsets, struct.tokens = ffi.from_buffer("int64_t[]", bags.offsets), ffi.from_buffer(bags.tokens)
    given = (model._fit.pointer, struct, ffi.from_buffer("double[]", answer), ffi.NULL, ffi.NULL, err)
    seconds = race({"": lambda: model.predict(bags), "C, prepared": lambda: lib.fin_fit_predict(*given)}, rounds)
    if not (answer == model.predict(bags)).all():
        sys.exit("bench: the package predicts other numbers than the library")
    seconds["finetti predict"] = answering
    tell(f"predict, {n} bags", seconds, n / 1e3, "k bags/s", {"finetti predict": 0.95},
         "the package looks for NaN and infinity first; the command reads and writes files")
    seconds = race({"": lambda: model.predict(bags[:1])}, rounds)
    tell("predict, one bag", seconds, 1e-3, "k calls/s", None, f"{1e6 * seconds['']:.0f} us a call")


def main():
    command, size = sys.argv[1:]
    quick = size == "quick"
    rounds = 3 if quick else 15
    small_calls(rounds)
    many_points(rounds)
    fits(command, 2 if quick else 5, 1000 if quick else 10000)


if __name__ == "__main__":
    main()
