"""finetti.tasks: the samples are those of the tool, and what is said about them is right."""

import inspect
import pickle

import numpy as np
import pytest
from tool import tool

import finetti
from finetti import tasks


def simulate(folder, *words):
    path = folder / "samples.npz"
    tool("simulate", *words, "--out", path, "--json")
    return np.load(path)


@pytest.mark.parametrize("dtype, word", [("float32", "float"), (np.float64, "double")])
def test_the_tool_draws_the_same(tmp_path, dtype, word):
    theirs = simulate(tmp_path, "--n", 40, "--skip", 7, "--d", 12, "--L", 5, "--eps", 0.5, "--m", 2, "--seed", 9,
                      "--dtype", word)
    task = tasks.slr(d=12, L=5, eps=0.5, m=2, seed=9)
    X, y, location = task.draw(40, first=7, dtype=dtype)
    assert X.dtype == dtype and X.shape == (40, 5, 12)
    assert np.array_equal(X.reshape(-1, 12), theirs["tokens"])
    assert np.array_equal(y, theirs["y"]) and np.array_equal(location, theirs["location"])
    assert np.array_equal(task.k_star, theirs["k_star"]) and np.array_equal(task.v_star, theirs["v_star"])


def test_the_tool_draws_the_same_of_varying_lengths(tmp_path):
    theirs = simulate(tmp_path, "--task", "max", "--snr", "inf", "--n", 30, "--d", 6, "--L", 9, "--L_min", 2)
    X, y, location = tasks.max(snr=np.inf, d=6, L=9, L_min=2).draw(30)
    assert isinstance(X, finetti.Bags) and len(X) == 30
    assert np.array_equal(X.offsets, theirs["offsets"]) and np.array_equal(X.tokens, theirs["tokens"])
    assert np.array_equal(y, theirs["y"]) and np.array_equal(location, theirs["location"][:, 0])


def test_a_law_of_the_length(tmp_path):
    theirs = simulate(tmp_path, "--lengths", "2:1,7:3", "--n", 30, "--d", 6)
    task = tasks.slr(lengths={2: 1, 7: 3}, d=6)
    X, _, _ = task.draw(30)
    assert np.array_equal(X.offsets, theirs["offsets"])
    assert set(np.diff(X.offsets)) == {2, 7}
    assert (task.length_mean, task.length_variance) == pytest.approx((5.75, 4.6875))


def test_batches_may_be_cut_anywhere(monkeypatch):
    task = tasks.slr(d=10, L=6, L_min=2)
    whole, y, location = task.draw(50)
    projected = task.project(50, first=3, norm2=True)
    monkeypatch.setattr(tasks, "_PIECE", 1000)
    assert len(list(tasks._pieces(50, 50 * 4 * 10 * 4))) > 5
    pieces, y2, location2 = task.draw(50)
    assert np.array_equal(whole.tokens, pieces.tokens) and np.array_equal(y, y2)
    assert np.array_equal(location, location2)
    again = task.project(50, first=3, norm2=True)
    assert len(again) == 8 and all(np.array_equal(again[name], projected[name]) for name in projected)
    later, y3, _ = task.draw(20, first=30)
    assert np.array_equal(whole.tokens[whole.offsets[30]:], later.tokens) and np.array_equal(y[30:], y3)
    assert len(task.draw(0)[1]) == 0


def test_posterior_and_prediction():
    task = tasks.slr(d=60, L=5, gamma=0.6, eps=0.2, seed=4)
    X, y, location = task.draw(400, dtype="float64")
    w = task.posterior(X)
    lam, c = task.bayes_parameters()
    score = lam * X @ task.k_star + c * (X**2).sum(axis=2)
    expected = np.exp(score - score.max(axis=1, keepdims=True))
    np.testing.assert_allclose(w, expected / expected.sum(axis=1, keepdims=True), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(task.predict(X), (w * (X @ task.v_star)).sum(axis=1), rtol=1e-9, atol=1e-12)
    assert ((task.predict(X) - y)**2).mean() < y.var()


def test_posterior_of_bags():
    task = tasks.spiked(d=8, L=6, L_min=3)
    bags, _, _ = task.draw(20, dtype="float64")
    for bag, w in zip(bags, task.posterior(bags)):
        assert w.shape == (len(bag),) and w.sum() == pytest.approx(1)
        assert np.array_equal(w, task.posterior(bag[None])[0])
    assert task.predict(bags).shape == (20,)


def test_projections_have_the_law_of_draws():
    task = tasks.slr(d=30, L=3, seed=2)
    n = 20000
    seen = task.project(n, kappa=0.6, nu=0.8, norm2=True)
    assert seen["chi"].shape == (n, 3) and seen["y"].shape == (n,)
    X, y, location = task.draw(n)
    rows = np.arange(n)
    for name, direction in (("chi_star", task.k_star), ("z_star", task.v_star)):
        drawn = (X @ direction)[rows, location]
        projected = seen[name][rows, seen["location"]]
        error = np.hypot(drawn.std(), projected.std()) / np.sqrt(n)
        assert abs(drawn.mean() - projected.mean()) < 5 * error, name
    np.testing.assert_allclose(seen["y"], seen["z_star"][rows, seen["location"]], rtol=1e-12)
    assert np.corrcoef(seen["chi"].ravel(), seen["chi_star"].ravel())[0, 1] > 0.5
    flat = tasks.slr(d=30, L=5, L_min=2).project(10)
    assert flat["chi"].shape == (flat["offsets"][-1],) and "norm2" not in flat


def test_any_dimension_without_vectors():
    task = tasks.slr(d=10**12)
    assert task.project(3)["chi"].shape == (3, 10) and task.settings["mu"] == np.sqrt(10**12 / 2)
    with pytest.raises(ValueError, match="too large to make vectors"):
        task.draw(1)


def test_given_directions():
    k, v = np.eye(5)[0], np.eye(5)[3]
    task = tasks.slr(d=5, L=2, gamma=0.1, mu=50, k_star=k, v_star=v)
    X, y, location = task.draw(100, dtype="float64")
    assert np.array_equal(X[..., 0].argmax(axis=1), location)
    np.testing.assert_allclose(y, X[np.arange(100), location, 3], rtol=1e-12)
    assert np.array_equal(task.k_star, k)
    assert repr(task) == "tasks.slr(d=5, L=2, gamma=0.1, mu=50, k_star=..., v_star=..., seed=1)"
    k[:] = 7  # is nothing to the task
    again = pickle.loads(pickle.dumps(task))
    assert np.array_equal(again.draw(5)[0], task.draw(5)[0]) and repr(again) == repr(task)


def test_names_and_repr():
    assert tasks.names() == ("slr", "spiked", "max") and set(tasks.names()) < set(tasks.__all__)
    task = tasks.spiked(snr=2, lengths={3: 1, 4: 2}, seed=5)
    assert repr(task) == "tasks.spiked(snr=2, lengths={3: 1.0, 4: 2.0}, seed=5)"
    assert np.array_equal(eval(repr(task)).draw(3)[1], task.draw(3)[1])
    for name in tasks.names():
        parameters = inspect.signature(getattr(tasks, name)).parameters
        assert all(f"{key} : " in getattr(tasks, name).__doc__ for key in parameters)


TASK = tasks.slr(d=6, L=3)
X = np.zeros((4, 3, 6))


@pytest.mark.parametrize("call, kind, message", [
    (lambda: tasks.slr(kapa=1), TypeError, "no keyword 'kapa'"),
    (lambda: tasks.slr(D=1), TypeError, "did you mean 'd'"),
    (lambda: tasks.slr(snr=1), TypeError, "no keyword 'snr'"),
    (lambda: tasks.slr(d=1), ValueError, "d = 1"),
    (lambda: tasks.slr(d=2.5), ValueError, "d = 2.5"),
    (lambda: tasks.slr(d=[2, 3]), TypeError, "d must be"),
    (lambda: tasks.slr(seed=-1), ValueError, "seed = -1"),
    (lambda: tasks.slr(seed=2**64), ValueError, "seed"),
    (lambda: tasks.slr(seed=1.5), TypeError, "seed"),
    (lambda: tasks.slr(lengths=3), TypeError, "{5: 0.2, 10: 0.8}"),
    (lambda: tasks.slr(lengths={3: -1}), ValueError, "weight"),
    (lambda: tasks.slr(k_star=np.ones(400)), TypeError, "come together"),
    (lambda: tasks.slr(d=2, k_star=np.ones(2), v_star=np.ones(2)), ValueError, "orthonormal"),
    (lambda: tasks.slr(d=3, k_star=np.ones(2), v_star=np.ones(2)), ValueError, "shape"),
    (lambda: tasks.slr(L=2, m=3), ValueError, "do not fit"),
    (lambda: TASK.draw(-1), ValueError, "n = -1"),
    (lambda: TASK.draw(2**63), ValueError, "n ="),
    (lambda: TASK.draw(1.5), TypeError, "n must be"),
    (lambda: TASK.draw(1, dtype="float16"), TypeError, "float32 or float64"),
    (lambda: TASK.draw(1, dtype=">f8"), TypeError, "float32 or float64"),
    (lambda: TASK.project(1, kapa=1), TypeError, "did you mean 'kappa'"),
    (lambda: TASK.project(1, kappa=1, nu=1, rho=1), ValueError, ""),
    (lambda: TASK.posterior(X[:, :, :5].copy()), ValueError, "shape"),
    (lambda: TASK.posterior(X[0]), ValueError, "shape"),
    (lambda: TASK.posterior(X.tolist()), TypeError, "NumPy array"),
    (lambda: TASK.posterior(X.astype(complex)), TypeError, "complex"),
    (lambda: TASK.posterior(X[::2, :, ::-1]), ValueError, "contiguous"),
    (lambda: TASK.posterior(np.empty((4, 0, 6))), ValueError, ""),
    (lambda: tasks.slr(d=6, m=2).posterior(X), finetti.FinettiError, "m = 2|one relevant"),
])
def test_bad_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
