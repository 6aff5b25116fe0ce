"""finetti.train: the runs are those of the tool, to the last digit."""

import inspect
import pickle

import numpy as np
import pytest
from tool import tool, tool_json

import finetti
from finetti import tasks

LOGS = ("kappa", "nu", "theta", "eta", "rho", "lam", "risk", "risk_error", "excess", "distance", "gradient")
QUICK = {"runs": 6, "steps": 400}


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
    with pytest.raises(ValueError, match="'converged'|converged"):
        runs.count("conveged")
    again = pickle.loads(pickle.dumps(runs))
    assert np.array_equal(again.kappa, runs.kappa) and again.settings == runs.settings


def test_frames():
    pytest.importorskip("pandas")
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
    (lambda: finetti.train(start={"kappa": 1, "nu": 1, "theta": 1}), ValueError, "overlaps"),
    (lambda: finetti.train(start={"kappa": 0.1}, nu=0.1), TypeError, "both"),
    (lambda: finetti.train(start={"kappa": 0.1}, init="sphere"), TypeError, "init"),
    (lambda: finetti.train(init="vectors"), TypeError, "start"),
    (lambda: finetti.train(start=(K, K.astype("f"))), TypeError, "float32"),
    (lambda: finetti.train(start=(K, K[None])), ValueError, "shape"),
    (lambda: finetti.train(start=(K[:5], K[:5])), ValueError, r"shape \(5,\)"),
    (lambda: finetti.train(start=(0 * K, K)), ValueError, ""),
    (lambda: finetti.train(start=(np.nan * K, K)), ValueError, ""),
    (lambda: finetti.train(lam=0.1, lam_schedule={0: 1}), TypeError, "takes the place of lam"),
    (lambda: finetti.train(alpha=0.1, alpha_schedule={0: 1}), TypeError, "takes the place of alpha"),
    (lambda: finetti.train(log_every=3, log_decade=3), TypeError, "log_decade"),
    (lambda: finetti.train(lam_schedule={}), ValueError, "empty"),
    (lambda: finetti.train(lam_schedule={5: 1}), ValueError, "begin with 0"),
    (lambda: finetti.train(lam_schedule=0.5), TypeError, "lam_schedule must be"),
    (lambda: finetti.train(lam_schedule={0: "x"}), TypeError, "lam_schedule must be"),
    (lambda: finetti.train(tasks.slr(), d=5), TypeError, r"tasks.slr\(d=...\)"),
])
def test_bad_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_signature_and_docstring():
    parameters = inspect.signature(finetti.train).parameters
    assert parameters["engine"].default == "population" and parameters["runs"].default == 30
    for name in parameters:
        assert f"\n    {name} : " in finetti.train.__doc__, name
