"""mypy --strict on the type stubs, and on what people write."""

import os
import re
import subprocess
import sys

import pytest

import finetti

HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = os.path.join(os.environ.get("SRC", os.path.join(HERE, "..", "..", "..")), "python", "stubs.py")
PARENT = os.path.dirname(os.path.dirname(os.path.abspath(finetti.__file__)))

GOOD = """
import numpy as np
from numpy.typing import NDArray
import finetti
from finetti import Bags, SingleLocationClassifier, tasks

X = np.zeros((10, 3, 2))
y = np.zeros(10)
model = finetti.SingleLocationRegressor(heads=2, penalty="auto", random_state=3).fit(X, y)
mean: NDArray[np.float64] = model.predict(X)
both: tuple[NDArray[np.float64], NDArray[np.float64]] = model.predict(X, return_std=True)
interval = model.predict_interval([X[0], X[1]], coverage=0.8)
classifier = SingleLocationClassifier(model="mixture", class_weight={"a": 1.0})
labels = classifier.fit(Bags(X[0], lengths=[1, 2]), ["a", "b"]).classes_
classifier.fit((X[0], [1, 2]), ["a", "b"]).save("model.fin")
attention = finetti.AttentionRegressor(form="softmax", scale=2).fit(X[0], [1, 2, 3])
context = finetti.Context(X[0], y[:3], kernel="linear")
m, v, w = context.predict(X[1], return_variance=True, return_weights=True)
m, w = context.predict(X[1], return_weights=True)
curve = finetti.risk("spiked", "softmax", snr=[1, 2, 3], lam=np.ones(3), progress=lambda what, done, total: None)
number: float = float(finetti.risk(tasks.slr(d=80), kappa=0.5))
best: float = finetti.lam_star(L=5).lam
runs = finetti.train(lam=0.1, start={"kappa": 0.1}, lam_schedule={0: 1.0}, steps=10)
kappa: NDArray[np.float64] = runs.kappa
runs.save("runs.npz")
more = finetti.train(resume=finetti.train(resume="runs.npz"), steps=20).count("stuck") + 1
tokens, outputs, location = tasks.max(snr=float("inf"), lengths={3: 1.0}).draw(10, dtype="float64")
rate = finetti.run("rate", L=[64, 256], keys="vmf", kernel=["rbf", "linear"], noise=0.1, progress=True)
error: float = rate.rmse + rate["rmse"] + rate.errors["rmse"]
shape = finetti.run("landscape", task="spiked", grid=3, lengths={5: 1.0}, mu="auto").series["risk"].shape
meaning: str = finetti.commands()["rate"].summary
result = finetti.study("slr_training", set={"title": "x"}, progress=True)
claims = result.claims()["verdict"]
try:
    finetti.set_threads(2)
except finetti.ArgumentError as problem:
    print(problem.status)
"""

BAD = [
    ("finetti.risk(kapa=1)", "Unexpected keyword argument"),
    ("finetti.risk(method='exact')", "incompatible type"),
    ("finetti.risk('slt')", "incompatible type"),
    ("finetti.tasks.slr(d='many')", "incompatible type"),
    ("finetti.tasks.slr(mu='aut')", "incompatible type"),
    ("finetti.SingleLocationRegressor(heads=1.5)", "incompatible type"),
    ("finetti.SingleLocationRegressor(model='sofmax')", "incompatible type"),
    ("finetti.Context(np.zeros((2, 2)))", "Missing positional argument"),
    ("finetti.train(start=3)", "incompatible type"),
    ("finetti.train(steps=10).kapa", "has no attribute"),
    ("finetti.run('rate', Ll=3)", "No overload variant"),
    ("finetti.run('rats')", "No overload variant"),
    ("finetti.run('rate', keys='vfm')", "No overload variant"),
    ("finetti.run('rate', L='many')", "No overload variant"),
    ("finetti.riks()", "has no attribute"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("stubs")
    subprocess.run([sys.executable, SCRIPT, PARENT, str(path / "finetti")], check=True)
    (path / "finetti" / "py.typed").touch()
    return path


def mypy(folder, *words):
    environment = {**os.environ, "MYPYPATH": str(folder), "PYTHONPATH": ""}
    done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--python-version", "3.9", "--cache-dir",
                           str(folder / "cache"), *map(str, words)], capture_output=True, text=True, cwd=folder,
                          env=environment)
    return done.returncode, done.stdout + done.stderr


def test_stubs_are_sound(folder):
    code, text = mypy(folder, "-p", "finetti")
    assert code == 0, text


def test_good_programs(folder):
    (folder / "good.py").write_text(GOOD)
    code, text = mypy(folder, "good.py")
    assert code == 0, text


def test_bad_programs(folder):
    lines = ["import numpy as np", "import finetti", *[line for line, _ in BAD]]
    (folder / "bad.py").write_text("\n".join(lines) + "\n")
    _, text = mypy(folder, "bad.py")
    for number, (line, message) in enumerate(BAD, 3):
        assert re.search(rf"bad.py:{number}: error: .*{message}", text), (line, text)
