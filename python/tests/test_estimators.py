"""Bag estimators: parameters, input and answers."""

import inspect
import threading
import warnings

import numpy as np
import pandas as pd
import pytest
from bag_sample import BAGS, CLASSIFIERS, REGRESSORS, SIGN, Y, cube
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import finetti
import finetti._core
import finetti._fit
import finetti._tokens
from finetti import (Bags, BagEmbeddingClassifier, BagEmbeddingRegressor, SingleLocationClassifier,
                     SingleLocationRegressor)


# ---- parameters -----------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
def test_parameters_are_those_of_the_table(kind):
    names = set(inspect.signature(kind).parameters)
    table = set(finetti._fit.TABLE.fields)
    whole, classes = kind.__name__.startswith("Bag"), "Classifier" in kind.__name__
    other = {"seed", "class_weights"} | (set() if classes and not whole else {"positive", "assume"})
    other |= {"model", "heads", "em_steps", "gate", "locator"} if whole else set()
    assert names == table - other | {"random_state", "verbose", "bag_columns"} | (
        {"statistics"} if whole else set()) | ({"class_weight"} if classes else set())
    assert all(name in kind.__doc__ for name in names)
    assert kind(penalty=0.5, verbose=True).get_params()["penalty"] == 0.5


def test_wrong_parameters():
    with pytest.raises(TypeError, match="did you mean 'penalty'"):
        SingleLocationRegressor(penalti=3)
    for settings, words in [({"model": "softmx"}, "softmax"), ({"penalty": -1}, "penalty"), ({"heads": 1.5}, "heads"),
                            ({"random_state": "x"}, "random_state"), ({"random_state": -1}, "random_state = -1"),
                            ({"model": "any"}, "any")]:
        with pytest.raises((ValueError, TypeError), match=words):
            SingleLocationRegressor(**settings).fit(BAGS, Y)
    with pytest.raises(ValueError, match="statistics"):
        BagEmbeddingRegressor(statistics="softmax").fit(BAGS, Y)
    with pytest.raises(ValueError, match="class_weight"):
        SingleLocationClassifier(class_weight="equal").fit(BAGS, SIGN)


def test_random_state():
    def landmarks(state):
        model = SingleLocationRegressor(basis="rbf", landmarks=5, random_state=state).fit(BAGS, Y)
        return model.predict(BAGS).tobytes()
    assert landmarks(None) == landmarks(1) == landmarks(np.int64(1)) != landmarks(2)
    assert landmarks(np.random.RandomState(3)) == landmarks(np.random.RandomState(3))
    assert landmarks(np.random.default_rng(3)) == landmarks(np.random.default_rng(3)) != landmarks(3)


def test_set_params_and_clone():
    model = SingleLocationRegressor(model="mixture").set_params(penalty=2, restarts=2)
    assert clone(model).get_params() == model.get_params()
    assert clone(model.fit(BAGS, Y)).__dict__.keys() == model.get_params().keys()
    with pytest.raises(ValueError, match="nonsense"):
        model.set_params(nonsense=1)


# ---- input ----------------------------------------------------------------------------------------

def test_every_layout_gives_the_same_model():
    flat, lengths = np.concatenate(BAGS), [len(bag) for bag in BAGS]
    groups = np.repeat(np.arange(60)[::-1], lengths)
    padded = np.full((60, 5, 4), np.inf)
    for i, bag in enumerate(BAGS):
        padded[i, :len(bag)] = bag
    model = SingleLocationRegressor()
    want = model.fit(BAGS, Y).predict(BAGS).tobytes()
    assert model.fit(flat, Y, lengths=lengths).predict(flat, lengths=lengths).tobytes() == want
    assert model.fit(flat, Y, groups=groups).predict((flat, groups)).tobytes() == want
    assert model.fit(flat, np.repeat(Y, lengths), groups=groups).predict(Bags(BAGS)).tobytes() == want
    assert model.fit(padded, Y, lengths=lengths).predict(padded, lengths=lengths).tobytes() == want
    assert model.score(flat, np.repeat(Y, lengths), groups=groups) == model.score(BAGS, Y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_copy_reaches_the_library(dtype, monkeypatch):
    X = cube()[0].astype(dtype)
    y = X[:, 1, 1].astype(float)
    seen, view = [], finetti._fit.view

    def watched(tokens, offsets, labels=None, groups=None):
        struct = view(tokens, offsets, labels, groups)
        seen.append((int(finetti._core.ffi.cast("uintptr_t", struct.tokens)),
                     int(finetti._core.ffi.cast("uintptr_t", struct.labels))))
        return struct
    monkeypatch.setattr(finetti._fit, "view", watched)
    model = SingleLocationRegressor().fit(X, y)
    model.predict(X), model.predict(X[3:5]), model.locate(X, y)
    flat = X.reshape(-1, 4)
    model.predict(flat, lengths=[3] * 50), model.predict(Bags(X)[2:])
    bag = X[0].nbytes
    # The fit looks for columns of bags first; locate looks at ranges after it.
    assert [tokens - X.ctypes.data for tokens, _ in seen] == [0, 0, 0, 3 * bag, 0, 0, 0, 2 * bag]
    assert seen[1][1] == seen[4][1] == y.ctypes.data


def test_a_fit_keeps_no_view_of_its_data():
    X, y = cube()
    model = SingleLocationRegressor(basis="both", landmarks=5).fit(X, y)
    want = model.predict(X[:5].copy()).tobytes()
    rest = X[:5].copy()
    X[:], y[:] = np.nan, np.nan
    assert model.predict(rest).tobytes() == want


def test_y_must_agree_within_a_group():
    with pytest.raises(ValueError, match=r"y differs within bag 0 \('a'\): 1 and 2"):
        SingleLocationClassifier().fit(np.eye(4), [1, 0, 2, 0], groups=["a", "b", "a", "b"])
    with pytest.raises(ValueError, match=r"3 values for 2 bags \(or 4"):
        SingleLocationClassifier().fit(np.eye(4), [1, 0, 2], groups=["a", "b", "a", "b"])
    with pytest.raises(ValueError, match="inconsistent"):
        SingleLocationClassifier().fit(BAGS, SIGN[:-1])


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("size", [1, 5000])
def test_tokens_that_are_not_finite_are_named(bad, size):
    X = np.zeros((size + 1, 2, 3))
    X[size, 1, 2] = bad
    with pytest.raises(ValueError, match=f"bag {size} has (NaN|inf).* in column 2 of its token 1"):
        SingleLocationRegressor().fit(X, np.arange(size + 1))
    model = SingleLocationRegressor().fit(*cube())
    X = np.concatenate([X, X[:, :, :1]], axis=2)
    for ask in (model.predict, model.predict_interval, model.locate, lambda X: model.score(X, np.arange(size + 1))):
        for data in (X, X.astype("f4"), list(X), Bags(X), X[:, :, ::-1]):
            with pytest.raises(ValueError, match=f"bag {size} has"):
                ask(data)


def test_tokens_are_looked_at_in_pieces(monkeypatch):
    monkeypatch.setattr(finetti._tokens, "_CHUNK", 9)
    X = np.zeros((7, 2, 4))
    X[5, 1, 3] = np.nan
    with pytest.raises(ValueError, match="bag 5 has NaN in column 3 of its token 1"):
        SingleLocationRegressor().fit(X, np.arange(7))


def test_large_numbers_are_finite():
    X, y = cube()
    X[0, 0, 0] = X[1, 0, 0] = 1e308
    model = SingleLocationRegressor().fit(*cube())
    for data in (X, np.repeat(X, 200, axis=0)):  # a few tokens out of range are no news
        assert np.isfinite(model.predict(data)).all()


def test_columns_are_checked():
    model = SingleLocationRegressor().fit(BAGS, Y)
    with pytest.raises(ValueError, match="X has 3 features, but SingleLocationRegressor is expecting 4"):
        model.predict(np.zeros((2, 3)))
    with pytest.raises(ValueError, match="X has 3 features"):
        model.predict(np.zeros((2, 2, 3)))
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(np.zeros((0, 4)))
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(np.zeros((0, 2, 4)))
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(Bags(BAGS)[:0])


def test_feature_names():
    frames = [pd.DataFrame(bag, columns=list("abcd")) for bag in BAGS]
    model = SingleLocationRegressor().fit(frames, pd.Series(Y, index=np.arange(60)[::-1]))
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.predict(frames).tobytes() == SingleLocationRegressor().fit(BAGS, Y).predict(BAGS).tobytes()
    with pytest.raises(ValueError, match="same order"):
        model.predict([frame[list("bacd")] for frame in frames])
    with pytest.raises(ValueError, match="unseen at fit time:\n- e"):
        model.predict([frame.rename(columns={"a": "e"}) for frame in frames])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(BAGS)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(cube()[0])
    with pytest.warns(UserWarning, match="fitted without"):
        SingleLocationRegressor().fit(BAGS, Y).predict(frames)
    assert not hasattr(model.fit(BAGS, Y), "feature_names_in_")


# ---- answers --------------------------------------------------------------------------------------

def test_intervals():
    model = SingleLocationRegressor().fit(BAGS, Y + np.random.default_rng(1).normal(size=60))
    mean, sd = model.predict(BAGS, return_std=True)
    assert mean.tobytes() == model.predict(BAGS).tobytes() and (sd > 0).all() and model.noise_ > 0.3
    ninety = model.predict_interval(BAGS)
    normal = np.stack([mean - 1.6448536269514722 * sd, mean + 1.6448536269514722 * sd], axis=1)
    assert np.allclose(ninety, normal, rtol=0, atol=1e-12 * sd.max())
    half = model.predict_interval(BAGS, coverage=0.5)
    assert np.allclose(half[:, 1] - mean, 0.6744897501960817 * sd, rtol=1e-12)
    for coverage in (0, 1, -1, 2, np.nan, "0.9", None):
        with pytest.raises(ValueError, match="coverage"):
            model.predict_interval(BAGS, coverage=coverage)


def test_locate_finds_the_token_in_the_layout_of_the_input():
    model = SingleLocationRegressor(model="mixture").fit(BAGS, Y)
    found = model.locate(BAGS, Y)
    assert [len(p) for p in found] == [len(bag) for bag in BAGS]
    assert np.allclose([p.sum() for p in found], 1)
    assert np.mean([p.argmax() == bag[:, 0].argmax() for p, bag in zip(found, BAGS)]) > 0.9
    flat, lengths = np.concatenate(BAGS), [len(bag) for bag in BAGS]
    assert np.array_equal(model.locate(flat, Y, lengths=lengths), np.concatenate(found))
    mixed = np.random.default_rng(0).permutation(len(flat))
    groups = np.repeat(np.arange(60), lengths)[mixed]
    by_row = model.locate(flat[mixed], Y[groups], groups=groups)
    assert np.allclose(by_row, np.concatenate(found)[mixed], atol=1e-12)
    padded = np.zeros((60, 5, 4))
    for i, bag in enumerate(BAGS):
        padded[i, :len(bag)] = bag
    p = model.locate(padded, lengths=lengths)
    assert p.shape == (60, 5) and all((p[i, n:] == 0).all() for i, n in enumerate(lengths))
    assert isinstance(model.locate(Bags(padded)), list)


def test_locate_given_labels():
    y = np.array(["no", "yes"])[SIGN]
    model = SingleLocationClassifier(model="mixture").fit(BAGS, y)
    blind, given = model.locate(BAGS), model.locate(BAGS, y)
    assert any(not np.array_equal(a, b) for a, b in zip(blind, given))
    some = model.locate(BAGS, np.where(np.arange(60) == 4, None, y))
    assert np.isnan(some[4]).all() and np.array_equal(some[5], given[5])
    with pytest.raises(ValueError, match="'maybe' is none of the classes"):
        model.locate(BAGS, ["maybe"] * 60)
    with pytest.raises(finetti.UnsupportedError, match="no location"):
        SingleLocationClassifier(model="mean", locator="no").fit(BAGS, y).locate(BAGS)
    assert not hasattr(BagEmbeddingClassifier(), "locate")


def test_importances_and_directions():
    key, value = SingleLocationRegressor().fit(BAGS, Y).importances()
    assert key.argmax() == 0 and value.argmax() == 1 and key.shape == value.shape == (4,)
    keys, values = SingleLocationRegressor(heads=2).fit(BAGS, Y).directions()
    assert keys.shape == (2, 4) and values.shape == (2, 1, 4)
    three = SingleLocationClassifier().fit(BAGS, np.digitize(Y, [-0.5, 0.5])).directions()
    assert three[0].shape == (1, 4) and three[1].shape == (1, 3, 4)
    with pytest.raises(finetti.UnsupportedError, match="columns"):
        BagEmbeddingRegressor().fit(BAGS, Y).importances()
    with pytest.raises(ValueError, match="part 3"):
        SingleLocationRegressor().fit(BAGS, Y).directions(3)


@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
def test_not_fitted(kind):
    calls = {"predict": [BAGS], "predict_proba": [BAGS], "predict_interval": [BAGS], "locate": [BAGS],
             "importances": [], "directions": [], "save": ["x"], "score": [BAGS, Y]}
    for name, values in calls.items():
        if hasattr(kind, name):
            with pytest.raises(NotFittedError):
                getattr(kind(), name)(*values)


def test_a_failed_fit_leaves_the_former_one():
    model = SingleLocationRegressor().fit(BAGS, Y)
    want = model.predict(BAGS).tobytes()
    with pytest.raises(ValueError):
        model.fit(BAGS, Y * np.nan)
    assert model.predict(BAGS).tobytes() == want


def test_progress():
    seen = []
    SingleLocationRegressor(model="stack", inner=2, verbose=lambda *what: seen.append(what)).fit(BAGS, Y)
    assert seen and all(0 <= done <= total for _, done, total in seen if total > 0)
    with pytest.raises(finetti.CancelledError):
        SingleLocationRegressor(model="stack", inner=2, verbose=lambda *_: True).fit(BAGS, Y)
    with pytest.raises(ZeroDivisionError):
        SingleLocationRegressor(model="stack", inner=2, verbose=lambda *_: 1 / 0).fit(BAGS, Y)


def test_several_threads_get_the_same_answers(two_threads):
    X, y = cube(400)
    model = SingleLocationClassifier(basis="both", landmarks=20).fit(X, y > 0)
    want, answers = model.predict_proba(X).tobytes(), []

    def ask():
        for _ in range(20):
            answers.append(model.predict_proba(X).tobytes() == want and (model.locate(X).sum(axis=1) > 0.999).all())
    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 120 and all(answers)


def test_fits_that_ran_out_of_iterations_say_so():
    random = np.random.default_rng(3)
    X = random.normal(size=(60, 3, 4))
    y = X[:, :, 0].max(axis=1)
    with pytest.warns(ConvergenceWarning, match="3 of 3 fits ran out of iterations; give more"):
        short = finetti.SingleLocationRegressor(iterations=1).fit(X, y)
    assert short.info_["unfinished"] == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        assert finetti.SingleLocationRegressor(iterations=10000).fit(X, y).info_["unfinished"] == 0
