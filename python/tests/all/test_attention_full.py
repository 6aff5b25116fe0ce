"""AttentionRegressor at its defaults, in larger sizes, on several threads, and while Ctrl-C is pressed."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import warnings

import numpy as np
import pytest
from sklearn.datasets import load_diabetes
from sklearn.exceptions import SkipTestWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import cross_val_score
from sklearn.utils.estimator_checks import check_estimator

import finetti
from finetti import AttentionRegressor, Context


@pytest.mark.parametrize("settings", [dict(), dict(kernel="linear"), dict(kernel="matern32", ard=True, restarts=1),
                                      dict(by="loo", restarts=1),
                                      dict(method="nystrom", random_state=3, restarts=1)], ids=str)
def test_check_estimator(settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", SkipTestWarning)
        check_estimator(AttentionRegressor(**settings))


def test_an_interrupt_at_any_time_leaves_a_context_whole():
    """Ctrl-C thousands of times, anywhere in the package, while another thread asks."""
    def interrupt(*what):
        raise KeyboardInterrupt

    def ask():
        while hits < 1000:
            context.predict(keys[:50], return_weights=True)

    random = np.random.default_rng(0)
    keys, values = random.normal(size=(100, 3)), random.normal(size=100)
    context, hits = Context(keys, values, capacity=110), 0
    other = threading.Thread(target=ask, daemon=True)
    other.start()
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        while hits < 1000:
            try:
                signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-5, 1e-3))
                while True:
                    context.predict(keys[:30])
                    if len(context) < 130:
                        context.append(random.normal(size=(1, 3)), values[:1])
                    else:
                        context.drop(30)
            except KeyboardInterrupt:
                hits += 1
            assert len(context) == len(context.keys) == context.info["tokens"] == sum(context._steps)
    finally:
        hits = 1000
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    other.join(20)
    assert not other.is_alive()
    fresh = Context(context.keys, context.values)
    np.testing.assert_allclose(context.predict(keys), fresh.predict(keys), rtol=0, atol=1e-8)


def test_processes_get_the_same_scores(processes):
    X, y = load_diabetes(return_X_y=True)
    model = AttentionRegressor(tune=False)
    assert (cross_val_score(model, X, y, n_jobs=2) == cross_val_score(model, X, y)).all()


def test_diabetes_beside_scikit_learn():
    X, y = load_diabetes(return_X_y=True)
    model = AttentionRegressor(standardize=True).fit(X[::3], y[::3])
    settings, Z = model.settings_, (X - model.means_) / model.deviations_
    other = GaussianProcessRegressor(
        ConstantKernel(settings["prior"]) * RBF(settings["scale"]) + ConstantKernel(settings["level"])
        + WhiteKernel(settings["noise"]), alpha=0, optimizer=None).fit(Z[::3], y[::3])
    mean, deviation = other.predict(Z, return_std=True)
    got, deviations = model.predict(X, return_std=True)
    np.testing.assert_allclose(got, mean, rtol=1e-8)
    np.testing.assert_allclose(deviations, deviation, rtol=1e-8)
    inside = np.abs(y - got) < 1.645 * deviations
    assert 0.85 < inside[np.arange(len(y)) % 3 > 0].mean() < 0.95  # a 90 % interval, on rows that were not seen


def test_no_number_depends_on_threads():
    random = np.random.default_rng(0)
    X = random.normal(size=(700, 5))
    y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * random.normal(size=700)
    answers = []
    for threads in (1, 2, 5):
        finetti.set_threads(threads)
        try:
            model = AttentionRegressor(restarts=1, iterations=5, verbose=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answers.append(model.fit(X, y).predict(X, return_std=True))
        finally:
            finetti.set_threads(0)
    for mean, deviation in answers[1:]:
        assert (mean == answers[0][0]).all() and (deviation == answers[0][1]).all()


@pytest.mark.parametrize("call", [
    "finetti.AttentionRegressor(form='nw').fit(np.tile(X, (20, 1)), np.tile(y, 20))",
    "finetti.Context(X, y).predict(np.tile(X, (500, 1)), return_variance=True)",
    "finetti.attend(np.tile(X[:300], (3000, 1, 1)), np.tile(y[:300], (3000, 1)), np.tile(X[:5], (3000, 1, 1)))",
], ids=["fit nw", "predict", "attend"])
def test_ctrl_c(call):
    """A call of a minute or more ends soon after SIGINT, and as KeyboardInterrupt."""
    script = textwrap.dedent(f"""
        import numpy as np, finetti
        random = np.random.default_rng(0)
        X = random.normal(size=(2500, 4))
        y = np.sin(X[:, 0]) + 0.1 * random.normal(size=2500)
        finetti.Context, finetti.attend, finetti.AttentionRegressor  # imports them
        print("begin", flush=True)
        try:
            {call}
            print("done")
        except KeyboardInterrupt:
            print("interrupted")
    """)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "begin\n"
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1)
        os.kill(process.pid, signal.SIGINT)
        assert process.communicate(timeout=40)[0] == "interrupted\n" and process.returncode == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("settings", [dict(), dict(kernel="linear", level=1.0), dict(form="nw")], ids=str)
def test_a_long_life(settings):
    """Thousands of changes of every size, and the numbers of a new context at the end."""
    random = np.random.default_rng(3)
    keys = random.normal(size=(6000, 3))
    values = np.stack([np.sin(keys[:, 0]), keys[:, 1]], axis=1)
    context, first, last = Context(keys[:10], values[:10], **settings), 0, 10
    while last < 6000:
        count = min(int(random.choice([0, 1, 1, 2, 30])), 6000 - last)
        context.append(keys[last:last + count], values[last:last + count])
        last += count
        count = min(int(random.choice([0, 1, 1, 2, 25])), last - first - 1) if last - first > 100 else 0
        context.drop(count)
        first += count
    assert len(context) == last - first and (context.keys == keys[first:last]).all()
    fresh = Context(keys[first:last], values[first:last], **settings)
    for a, b in zip(context.predict(keys[:50], True, True), fresh.predict(keys[:50], True, True)):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8)
