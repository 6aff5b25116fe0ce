"""finetti.train: the runs are those of the tool, to the last digit."""

import inspect
import os
import pickle

import numpy as np
import pytest
from tool import tool, tool_json

import finetti
from finetti import tasks

LOGS = ("kappa", "nu", "theta", "eta", "rho", "lam", "risk", "risk_error", "excess", "distance", "gradient")
QUICK = {"runs": 6, "steps": 400}
VERSION = f"finetti {finetti.__version__}"


def number(value):
    return np.nan if value is None else value


def compare(theirs, ours):
    assert len(theirs["runs"]) == len(ours)
    for r, run in enumerate(theirs["runs"]):
        assert run["status"] == ours.status[r] and run["step"] == ours.at[r]
        for name in ("converged_at", "stuck_at", "left_at"):
            assert np.array_equal(number(run[name]), getattr(ours, name)[r], equal_nan=True)
        for name in LOGS:
            assert np.array_equal(number(run["final"][name]), ours.final[name][r], equal_nan=True), name
    for name, value in theirs["settings"]["train_settings"].items():
        assert ours.settings[name] == value, name


@pytest.mark.parametrize("settings", [
    {"lam": 0.1, "init": "manifold"},
    {"lam": 0.5, "decay": 1e-3, "momentum": 0.5, "penalty": 0.1, "alpha": 1e-3, "seed": 7},
    {"rule": "flow", "init": "overlaps", "kappa": 0.1, "nu": 0.1},
    {"rule": "armijo", "form": "shifted", "c": 0.3, "steps": 40},
    {"engine": "reduced", "d": 80, "eps": 0.1, "lam": 2.0, "batch": 3, "log_decade": 5},
    {"engine": "reduced", "task": "max", "form": "softmax", "snr": 3.0, "risk_samples": 50, "steps": 30},
    {"engine": "ambient", "d": 10, "L": 4, "steps": 50, "dtype": "double", "alpha_lam": 1e-5},
    {"engine": "reduced", "form": "bayes", "steps": 20, "d": 20, "L": 3, "risk_samples": 50},
], ids=lambda settings: "-".join(str(v) for v in settings.values()))
def test_the_tool_trains_the_same(settings):
    settings = {**QUICK, **settings}
    compare(tool_json("train", **settings), finetti.train(**settings))


def test_schedules_and_lengths():
    settings = {**QUICK, "d": 50, "L": None}
    theirs = tool_json("train", **QUICK, d=50, lengths="3:1,8:2",
                       **{"lam-schedule": "0:1,100:0.5,250:0.1", "alpha-schedule": "0:1e-3,300:1e-4"})
    for kind in (dict, list):
        ours = finetti.train(**settings, lengths={3: 1, 8: 2}, lam_schedule=kind([(0, 1), (100, 0.5), (250, 0.1)]),
                             alpha_schedule=kind([(0, 1e-3), (300, 1e-4)]))
        compare(theirs, ours)


def test_logs_are_the_tool_s(tmp_path):
    path = tmp_path / "runs.npz"
    tool("train", "--runs", 4, "--steps", 100, "--out", path, "--json")
    theirs, ours = np.load(path), finetti.train(runs=4, steps=100)
    for name in (*LOGS, "step", "at", "converged_at", "stuck_at", "left_at"):
        assert np.array_equal(theirs[name], getattr(ours, name), equal_nan=True), name
    assert ours.kappa.shape == (4, 101) and ours.step.shape == (101,)


# ---- files, and going on --------------------------------------------------------------------------

SHAPES = [
    {"steps": 300},
    {"engine": "reduced", "momentum": 0.5, "steps": 200, "d": 50, "seed": 3},
    {"engine": "ambient", "d": 10, "L": 4, "steps": 60},
    {"start": {"kappa": 0.3, "nu": 0.2}, "rule": "armijo", "steps": 50},
    {"lengths": {3: 1, 8: 2}, "lam_schedule": {0: 1, 100: 0.5}, "alpha_schedule": {0: 1e-3, 50: 2.5e-4}, "steps": 200},
    {"engine": "reduced", "task": "max", "form": "bayes", "snr": 2.0, "steps": 20, "risk_samples": 50, "d": 9, "L": 3},
]


def options(settings):
    """The same for the tool."""
    words = []
    for name, value in settings.items():
        if name == "start":
            words += ["--init", "overlaps", *[w for key, number in value.items() for w in (f"--{key}", number)]]
        elif isinstance(value, dict):
            words += [f"--{name.replace('_', '-')}", ",".join(f"{a}:{b!r}" for a, b in value.items())]
        else:
            words += [f"--{name}", value]
    return words


@pytest.mark.parametrize("settings", SHAPES, ids=range(len(SHAPES)))
def test_files_are_the_tool_s(tmp_path, settings):
    settings = {"runs": 3, **settings}
    finetti.train(**settings).save(tmp_path / "ours.npz")
    tool("train", *options(settings), "--out", tmp_path / "theirs.npz", "--json")
    assert (tmp_path / "ours.npz").read_bytes() == (tmp_path / "theirs.npz").read_bytes()


@pytest.mark.parametrize("settings", SHAPES, ids=range(len(SHAPES)))
def test_going_on(tmp_path, settings):
    settings = {"runs": 3, "log_every": 10, **settings}
    more = settings["steps"] + 40
    whole = finetti.train(**{**settings, "steps": more})
    first = finetti.train(**settings)
    first.save(tmp_path / "first.npz")
    for source in (first, pickle.loads(pickle.dumps(first)), tmp_path / "first.npz", str(tmp_path / "first.npz")):
        again = finetti.train(resume=source, steps=more)
        for name in (*LOGS, "step", "at", "status"):
            assert np.array_equal(getattr(again, name), getattr(whole, name), equal_nan=name in LOGS), name
        assert again.settings == whole.settings
    tool("train", "--resume", tmp_path / "first.npz", "--steps", more, "--out", tmp_path / "tool.npz", "--json")
    again.save(tmp_path / "again.npz")
    assert (tmp_path / "tool.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()


def test_going_on_with_a_task_of_its_own(tmp_path):
    task, settings = tasks.slr(d=8, L=3, seed=77), {"engine": "ambient", "runs": 2, "log_every": 10}
    first = finetti.train(task, steps=50, **settings)
    again, whole = finetti.train(resume=first, steps=90), finetti.train(task, steps=90, **settings)
    assert np.array_equal(again.kappa, whole.kappa)
    with pytest.raises(finetti.UnsupportedError, match="one seed"):
        first.save(tmp_path / "file.npz")
    assert not (tmp_path / "file.npz").exists()


def test_going_on_after_an_interruption():
    def stop(what, done, total):
        raise KeyboardInterrupt

    settings = {"engine": "reduced", "d": 40, "runs": 2, "steps": 20000}
    with pytest.raises(KeyboardInterrupt) as caught:
        finetti.train(**settings, progress=stop)
    partial = caught.value.training
    assert partial.at.max() < 20000
    assert np.array_equal(finetti.train(resume=partial).kappa, finetti.train(**settings).kappa)


def damaged(tmp_path, **changes):
    """A file with other arrays in it."""
    finetti.train(runs=2, steps=10).save(tmp_path / "good.npz")
    arrays = {**np.load(tmp_path / "good.npz"), **changes}
    np.savez(tmp_path / "bad.npz", **{name: array for name, array in arrays.items() if array is not None})
    return tmp_path / "bad.npz"


def lines(text):
    return np.frombuffer(text.encode(), np.uint8)


@pytest.mark.parametrize("changes, message", [
    ({"settings": None}, "no array settings"),
    ({"settings": lines("")}, "line 1 of the settings is not 'finetti"),
    ({"settings": lines(VERSION + "\ntask slt\nform erf\n")}, "did you mean '?slr"),
    ({"settings": lines(VERSION + "\ntask slr\nform erf\nd 5\n")}, "settings have no lam"),
    ({"settings": np.arange(256).astype(np.uint8)}, "bad.npz"),
    ({"at": None}, "no array at"),
    ({"at": np.zeros(3, np.int64)}, "at has 3 numbers"),
    ({"state": None}, "no array state"),
    ({"state": np.zeros((1, 1))}, "state"),
    ({"state": np.zeros((2, 2, 2))}, "state"),
    ({"kappa": np.zeros((2, 11), np.int64)}, "kappa"),
])
def test_damaged_files(tmp_path, changes, message):
    with pytest.raises(finetti.FormatError, match=message):
        finetti.train(resume=damaged(tmp_path, **changes))


def test_files_of_another_version(tmp_path):
    text = np.load(damaged(tmp_path))["settings"].tobytes().decode()
    other = damaged(tmp_path, settings=lines(text.replace(f"finetti {finetti.__version__}", "finetti 99.0")))
    with pytest.warns(UserWarning, match="version 99.0"):
        assert len(finetti.train(resume=other)) == 2


def test_files_that_are_none(tmp_path):
    with pytest.raises(finetti.FileError, match="none.npz"):
        finetti.train(resume=tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("no archive")
    with pytest.raises(finetti.FinettiError, match="text.npz"):
        finetti.train(resume=tmp_path / "text.npz")
    with pytest.raises(finetti.FileError):
        DONE.save(tmp_path / "no folder" / "file.npz")


@pytest.mark.parametrize("name", [b"plain.npz", b"\xff\xfe.npz", "\N{SNOWMAN}.npz".encode()])
def test_names_of_files(tmp_path, name):
    folder = os.fsencode(tmp_path) + b"/"
    for path in (folder + name, os.fsdecode(folder + name), tmp_path / os.fsdecode(name)):
        DONE.save(path)
        assert os.listdir(folder) == [name]
        assert np.array_equal(finetti.train(resume=path).kappa, DONE.kappa)
        os.remove(path)
    for call in (DONE.save, lambda path: finetti.train(resume=path)):
        with pytest.raises(ValueError, match="NUL character"):
            call(folder + b"\0" + name)
        with pytest.raises(TypeError, match="PathLike"):
            call(3)
    assert os.listdir(folder) == []


def test_starting_vectors(tmp_path):
    rng = np.random.default_rng(3)
    k, v = rng.normal(size=(2, 6, 20))
    np.savez(tmp_path / "start.npz", k=k, v=v)
    settings = {**QUICK, "d": 20, "steps": 50, "engine": "ambient"}
    theirs = tool_json("train", **settings, init="vectors", start=str(tmp_path / "start.npz"))
    ours = finetti.train(**settings, start=(k, v))
    compare(theirs, ours)
    task = tasks.slr(d=20, seed=1)  # the seed of the training is that of the task, by default
    assert np.array_equal(ours.kappa[:, 0], finetti.train(task, **{**settings, "d": None}, start=(k, v)).kappa[:, 0])
    unit = k[2] / np.linalg.norm(k[2])
    assert ours.kappa[2, 0] == pytest.approx(unit @ task.k_star, abs=1e-12)
    one = finetti.train(**settings, start=(k[0], v[0]))
    assert np.unique(one.kappa[:, 0]).size == 1 and one.kappa[0, 0] == ours.kappa[0, 0]


def test_starting_overlaps():
    nu = np.linspace(-0.5, 0.5, 6)
    ours = finetti.train(**QUICK, start={"kappa": 0.2, "nu": nu})
    assert np.array_equal(ours.nu[:, 0], nu) and (ours.kappa[:, 0] == 0.2).all() and (ours.theta[:, 0] == 0).all()
    same = finetti.train(**QUICK, kappa=0.2, nu=nu)
    assert np.array_equal(ours.kappa, same.kappa)
    assert (finetti.train(**QUICK, init="overlaps").kappa[:, 0] == 1).all()
    assert ours.settings["init"] == "overlaps"


def test_task_objects():
    named, given = finetti.train(**QUICK, d=60, seed=5), finetti.train(tasks.slr(d=60, seed=99), **QUICK, seed=5)
    assert np.array_equal(named.kappa, given.kappa)  # in overlaps the directions do not matter
    a = finetti.train(tasks.slr(d=8, seed=1), engine="ambient", **QUICK)
    b = finetti.train(tasks.slr(d=8, seed=2), engine="ambient", **QUICK)
    assert not np.array_equal(a.kappa, b.kappa)


def test_results():
    runs = finetti.train(lam=0.1, init="manifold", runs=10)
    assert len(runs) == runs.count() == 10 and repr(runs) == "<Training of 10 runs: 10 converged>"
    assert (np.abs(runs.final["kappa"]) > 0.9).all() and np.array_equal(runs.final["kappa"], runs.kappa[:, -1])
    assert (runs.distance == 0).all() and runs.count("stuck") == 0
    with pytest.raises(ValueError, match="one of unconverged, converged"):
        runs.count("conveged")
    again = pickle.loads(pickle.dumps(runs))
    assert np.array_equal(again.kappa, runs.kappa) and again.settings == runs.settings


@pytest.mark.parametrize("settings", [*SHAPES, {"alpha": 1.2e154, "engine": "reduced", "d": 50, "steps": 1, "runs": 8,
                                                "seed": 2}], ids=range(len(SHAPES) + 1))
def test_summary_is_what_the_command_leaves(settings):
    settings = {"runs": 3, **settings}
    ours, start = finetti.train(**settings), settings.pop("start", {})
    if start:
        settings.update(start, init="overlaps")
    theirs = finetti.run("train", **settings)
    for runs in (ours, pickle.loads(pickle.dumps(ours))):
        found = runs.summary()
        assert list(found) == list(theirs) and list(found.series) == list(theirs.series)
        for name in theirs:
            assert np.array_equal(found[name], theirs[name], equal_nan=True), name
            assert (found.how[name], found.samples[name]) == (theirs.how[name], theirs.samples[name]), name
        for name, array in theirs.series.items():
            assert found.series[name].tobytes() == array.tobytes(), name
    assert found.share == ours.count() / len(ours) and found.diverged == ours.count("diverged") / len(ours)
    assert np.array_equal(found.end_kappa, np.where(ours.status == "diverged", np.nan, ours.final["kappa"]),
                          equal_nan=True)


def test_schedules_of_any_length(tmp_path):
    schedule = {step: 1 / (1 + step) for step in range(2000)}
    runs = finetti.train(runs=1, steps=1999, lam_schedule=schedule, log_every=1)
    assert runs.lam[0, 1:].tolist() == list(schedule.values())[:-1]
    runs.save(tmp_path / "runs.npz")
    again = finetti.train(resume=tmp_path / "runs.npz", steps=2050)
    assert np.array_equal(again.lam[:, :2000], runs.lam) and (again.lam[0, 2000:] == 1 / 2000).all()


def test_frames():
    runs = finetti.train(**QUICK)
    table, ends = runs.to_frame(), runs.ends_to_frame()
    assert len(table) == runs.kappa.size and set(LOGS) < set(table.columns)
    assert len(ends) == 6 and ends["kappa"].tolist() == runs.final["kappa"].tolist()
    assert table[table.run == 2]["nu"].tolist() == runs.nu[2].tolist()


def test_diverged_runs_are_told():
    runs = finetti.train(lam=1.0, alpha=1e300, **QUICK)
    assert runs.count("diverged") > 0 and np.isnan(runs.kappa[runs.status == "diverged", -1]).all()


def test_progress_and_cancelling():
    seen = []
    finetti.train(runs=2, steps=100000, progress=lambda *news: seen.append(news))
    assert seen and seen[-1][2] == 200000
    with pytest.raises(finetti.CancelledError):
        finetti.train(steps=10**9, progress=lambda *news: True)
    with pytest.raises(KeyboardInterrupt):
        finetti.train(steps=10**9, progress=lambda *news: (_ for _ in ()).throw(KeyboardInterrupt))


K = np.ones(400)
DONE = finetti.train(runs=1, steps=3)


@pytest.mark.parametrize("call, kind, message", [
    (lambda: finetti.train(stpes=3), TypeError, "did you mean 'steps'"),
    (lambda: finetti.train(samples=3), TypeError, "no keyword 'samples'"),
    (lambda: finetti.train(alpha=-1), ValueError, "alpha = -1"),
    (lambda: finetti.train(engine="reducd"), ValueError, "reducd"),
    (lambda: finetti.train(steps=2**60), ValueError, "steps"),
    (lambda: finetti.train(lam=[0.1, 0.2]), TypeError, "lam is an array"),
    (lambda: finetti.train(form="softmax"), finetti.UnsupportedError, "reduced"),
    (lambda: finetti.train(start=3), TypeError, "start must be"),
    (lambda: finetti.train(start={"kapa": 1}), TypeError, "kapa"),
    (lambda: finetti.train(start={"kappa": 2}), ValueError, "kappa = 2"),
    (lambda: finetti.train(start={"kappa": "a"}), TypeError, "numbers"),
    (lambda: finetti.train(start={"kappa": [0.1, 0.2]}), ValueError, "30 runs"),
    (lambda: finetti.train(start={"kappa": np.ma.zeros(30)}), TypeError, "masked"),
    (lambda: finetti.train(start={"kappa": 1, "nu": 1, "theta": 1}), ValueError, "overlaps"),
    (lambda: finetti.train(start={"kappa": 0.1}, nu=0.1), TypeError, "both"),
    (lambda: finetti.train(start={"kappa": 0.1}, init="sphere"), TypeError, "init"),
    (lambda: finetti.train(init="vectors"), TypeError, "start"),
    (lambda: finetti.train(start=(K, K.astype("f"))), TypeError, "float32"),
    (lambda: finetti.train(start=(K, K[None])), ValueError, "shape"),
    (lambda: finetti.train(start=(K[:5], K[:5])), ValueError, r"shape \(5,\)"),
    (lambda: finetti.train(start=(0 * K, K)), ValueError, "zero or not finite"),
    (lambda: finetti.train(start=(np.nan * K, K)), ValueError, "zero or not finite"),
    (lambda: finetti.train(lam=0.1, lam_schedule={0: 1}), TypeError, "takes the place of lam"),
    (lambda: finetti.train(alpha=0.1, alpha_schedule={0: 1}), TypeError, "takes the place of alpha"),
    (lambda: finetti.train(log_every=3, log_decade=3), TypeError, "log_decade"),
    (lambda: finetti.train(lam_schedule={}), ValueError, "empty"),
    (lambda: finetti.train(lam_schedule={5: 1}), ValueError, "begin with 0"),
    (lambda: finetti.train(lam_schedule=0.5), TypeError, "lam_schedule must be"),
    (lambda: finetti.train(lam_schedule={0: "x"}), TypeError, "lam_schedule must be"),
    (lambda: finetti.train(tasks.slr(), d=5), TypeError, r"tasks.slr\(d=...\)"),
    (lambda: finetti.train(resume=DONE, d=5), TypeError, "'d' cannot be changed"),
    (lambda: finetti.train("max", resume=DONE), TypeError, "'task' cannot be changed"),
    (lambda: finetti.train(resume=DONE, start={"kappa": 1}), TypeError, "'start' cannot be changed"),
    (lambda: finetti.train(resume=DONE, steps=1), ValueError, "less than the 3 steps"),
    (lambda: finetti.train(resume=DONE, steps="many"), ValueError, "steps = 'many'"),
    (lambda: finetti.train(resume=DONE, steps=2**60), ValueError, "steps"),
    (lambda: finetti.train(resume=3), TypeError, "PathLike"),
])
def test_bad_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_signature_and_docstring():
    parameters = inspect.signature(finetti.train).parameters
    assert parameters["engine"].default == "population" and parameters["runs"].default == 30
    for name in parameters:
        assert f"\n    {name} : " in finetti.train.__doc__, name
