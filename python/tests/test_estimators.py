"""Bag estimators: labels, weights, answers, scikit-learn's tools, pickles and files."""

import copy
import inspect
import pickle
import threading

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import finetti
import finetti._core
import finetti._fit
import finetti._tokens
from finetti import (Bags, BagEmbeddingClassifier, BagEmbeddingRegressor, PerToken, SingleLocationClassifier,
                     SingleLocationRegressor)

CLASSIFIERS = [SingleLocationClassifier, BagEmbeddingClassifier]
REGRESSORS = [SingleLocationRegressor, BagEmbeddingRegressor]


def problem(n=60, d=4, seed=0, dtype=float):
    """Bags of two to five tokens, of which one (large in column 0) decides a number; and the 3-D array of as many."""
    rng = np.random.default_rng(seed)
    bags = [rng.normal(size=(2 + i % 4, d)).astype(dtype) for i in range(n)]
    for bag in bags:
        bag[rng.integers(len(bag)), 0] += 5
    return bags, np.array([bag[bag[:, 0].argmax(), 1] for bag in bags], float)


def cube(n=50, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3, 4))
    X[:, 1, 0] += 5
    return X, X[:, 1, 1].copy()


BAGS, Y = problem()
SIGN = (Y > 0).astype(int)


# ---- parameters -----------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
def test_parameters_are_those_of_the_table(kind):
    names = set(inspect.signature(kind).parameters)
    table = set(finetti._fit.TABLE.fields)
    whole, classes = kind.__name__.startswith("Bag"), "Classifier" in kind.__name__
    assert names == table - {"seed", "class_weights"} - ({"model", "heads", "em_steps", "gate"} if whole else set()) | {
        "random_state", "verbose"} | ({"statistics"} if whole else set()) | ({"class_weight"} if classes else set())
    assert all(name in kind.__doc__ for name in names)
    assert kind(penalty=0.5, verbose=True).get_params()["penalty"] == 0.5


def test_wrong_parameters():
    with pytest.raises(TypeError, match="did you mean 'penalty'"):
        SingleLocationRegressor(penalti=3)
    for settings, words in [({"model": "softmx"}, "softmax"), ({"penalty": -1}, "penalty"), ({"heads": 1.5}, "heads"),
                            ({"random_state": "x"}, "random_state"), ({"random_state": -1}, "seed"),
                            ({"model": "any"}, "any")]:
        with pytest.raises((ValueError, TypeError), match=words):
            SingleLocationRegressor(**settings).fit(BAGS, Y)
    with pytest.raises(ValueError, match="statistics"):
        BagEmbeddingRegressor(statistics="softmax").fit(BAGS, Y)
    with pytest.raises(ValueError, match="class_weight"):
        SingleLocationClassifier(class_weight="equal").fit(BAGS, SIGN)


def test_random_state():
    def landmarks(state):
        model = SingleLocationRegressor(features="rbf", landmarks=5, random_state=state).fit(BAGS, Y)
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

    def watched(tokens, offsets, labels=None):
        struct = view(tokens, offsets, labels)
        seen.append((int(finetti._core.ffi.cast("uintptr_t", struct.tokens)),
                     int(finetti._core.ffi.cast("uintptr_t", struct.labels))))
        return struct
    monkeypatch.setattr(finetti._fit, "view", watched)
    model = SingleLocationRegressor().fit(X, y)
    model.predict(X), model.predict(X[3:5]), model.locate(X, y)
    flat = X.reshape(-1, 4)
    model.predict(flat, lengths=[3] * 50), model.predict(Bags(X)[2:])
    bag = X[0].nbytes
    assert [tokens - X.ctypes.data for tokens, _ in seen] == [0, 0, 3 * bag, 0, 0, 2 * bag]
    assert seen[0][1] == seen[3][1] == y.ctypes.data


def test_a_fit_keeps_no_view_of_its_data():
    X, y = cube()
    model = SingleLocationRegressor(features="both", landmarks=5).fit(X, y)
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
    assert np.isfinite(SingleLocationRegressor().fit(*cube()).predict(X)).all()
    assert np.isfinite(SingleLocationRegressor().fit(*cube()).predict(np.repeat(X, 200, axis=0))).all()


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
    pd = pytest.importorskip("pandas")
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


# ---- labels and weights ---------------------------------------------------------------------------

@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("names", [["no", "yes"], [False, True], [-1, 1], [0.0, 2.0], np.array(["a", "b"], object),
                                   [b"n", b"y"], np.array([3, 7], np.uint8)])
def test_classes_of_any_type(kind, names):
    names = np.asarray(names)
    model = kind().fit(BAGS, names[SIGN])
    assert model.classes_.dtype == names.dtype and model.classes_.tolist() == names.tolist()
    plain = kind().fit(BAGS, SIGN)
    assert model.predict_proba(BAGS).tobytes() == plain.predict_proba(BAGS).tobytes()
    assert np.array_equal(model.predict(BAGS), names[plain.predict(BAGS)])
    assert model.score(BAGS, names[SIGN]) == plain.score(BAGS, SIGN)
    assert np.array_equal(model.predict(BAGS), names[model.predict_proba(BAGS).argmax(axis=1)])


def test_objects_that_are_numbers_are_classes():
    y = np.array([bool(s) for s in SIGN], dtype=object)
    assert SingleLocationClassifier().fit(BAGS, y).classes_.dtype == bool
    assert SingleLocationClassifier().fit(BAGS, SIGN.astype(object)).classes_.tolist() == [0, 1]


def test_labels_of_pandas():
    pd = pytest.importorskip("pandas")
    want = SingleLocationClassifier().fit(BAGS, SIGN).predict_proba(BAGS).tobytes()
    texts = pd.Series(np.array(["no", "yes"])[SIGN])
    for y in (pd.Series(SIGN, dtype="Int64"), texts, texts.astype("category"), texts.astype("string"),
              pd.Series(SIGN == 1, dtype="boolean"), pd.DataFrame({"y": SIGN})["y"]):
        assert SingleLocationClassifier().fit(BAGS, y).predict_proba(BAGS).tobytes() == want
    for y in (pd.Series([None, *SIGN[1:]], dtype="Int64"), pd.Series([None, *texts[1:]])):
        with pytest.raises(ValueError, match="bag 0 has no label"):
            SingleLocationClassifier().fit(BAGS, y)
    with pytest.raises(ValueError, match="bag 1 has no label"):
        SingleLocationRegressor().fit(BAGS, pd.Series([1.5, None, *Y[2:]], dtype="Float64"))


def test_three_classes():
    y = np.digitize(Y, [-0.5, 0.5])
    for kind in CLASSIFIERS:
        p, sd = kind().fit(BAGS, y).predict_proba(BAGS, return_std=True)
        assert p.shape == sd.shape == (60, 3) and np.allclose(p.sum(axis=1), 1) and (sd >= 0).all()


@pytest.mark.parametrize("y, problem, words", [
    (np.where(np.arange(60) == 7, np.nan, Y), ValueError, r"y\[7\] is NaN: bag 7 has no label"),
    (np.where(np.arange(60) == 7, np.inf, Y), ValueError, r"y\[7\] is infinite"),
    (["a"] * 60, ValueError, "numbers"), (np.array(["a"] * 60, object), ValueError, "numbers"),
    (np.array([None] * 60), ValueError, "bag 0 has no label"), (Y + 1j, ValueError, "Complex data.*y"),
    (None, ValueError, "y is None"),
    (np.ma.masked_array(Y, Y > 0), TypeError, "masked"), (np.array([{}] * 60), ValueError, "no numbers"),
    (np.zeros((60, 2)), ValueError, "1d array"), (3.0, ValueError, "1d array")])
def test_bad_numbers(y, problem, words):
    for kind in REGRESSORS:
        with pytest.raises(problem, match=words):
            kind().fit(BAGS, y)


@pytest.mark.parametrize("y, words", [
    (np.where(np.arange(60) == 7, np.nan, SIGN), r"y\[7\] is nan.*bag 7 has no label"),
    (np.array(["a", None] * 30, object), r"y\[1\] is None.*bag 1 has no label"),
    (np.array(["a", np.nan] * 30, object), "bag 1 has no label"),
    (np.where(np.arange(60) == 7, np.inf, SIGN), "infinite"), (Y, "Unknown label type"),
    (np.ones(60), "only one class: 1.0"), (["a"] * 60, "only one class: 'a'"), (None, "y is None")])
def test_bad_classes(y, words):
    for kind in CLASSIFIERS:
        with pytest.raises(ValueError, match=words):
            kind().fit(BAGS, y)


def test_a_single_bag():
    for kind in CLASSIFIERS:
        with pytest.raises(ValueError, match="one class"):
            kind().fit(BAGS[:1], SIGN[:1])
    for kind in REGRESSORS:
        with pytest.raises(ValueError, match="single bag"):
            kind().fit(BAGS[:1], Y[:1])
        model = kind().fit(BAGS, Y)
        assert model.predict(BAGS[5:6]).tobytes() == model.predict(BAGS)[5:6].tobytes()


@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
def test_weight_zero_is_as_if_removed(kind):
    y = Y if kind in REGRESSORS else SIGN
    weights = np.arange(60) % 3 * 0.5
    keep = np.flatnonzero(weights)
    whole = kind().fit(BAGS, y, sample_weight=weights)
    part = kind().fit([BAGS[i] for i in keep], y[keep], sample_weight=weights[keep])
    assert whole.info_ == part.info_ and whole.info_["bags"] == 40
    answer = "predict" if kind in REGRESSORS else "predict_proba"
    assert getattr(whole, answer)(BAGS).tobytes() == getattr(part, answer)(BAGS).tobytes()
    ones = kind().fit(BAGS, y, sample_weight=1)
    assert getattr(ones, answer)(BAGS).tobytes() == getattr(kind().fit(BAGS, y), answer)(BAGS).tobytes()
    assert getattr(ones, answer)(BAGS).tobytes() != getattr(whole, answer)(BAGS).tobytes()


def test_weights():
    broken = np.where(np.arange(60) == 3, np.nan, Y)
    SingleLocationRegressor().fit(BAGS, broken, sample_weight=np.arange(60) != 3)  # a bag of weight 0 needs no label
    for weights, words in [([-1] * 60, r"sample_weight\[0\]"), ([np.nan] * 60, "sample_weight"),
                           ([0] * 60, "all weights"), ([1] * 59, "59 values for 60"), (np.ones((60, 2)), "1D"),
                           (["a"] * 60, "dtype")]:
        with pytest.raises(ValueError, match=words):
            SingleLocationRegressor().fit(BAGS, Y, sample_weight=weights)
    with pytest.raises(ValueError, match="only one class"):
        SingleLocationClassifier().fit(BAGS, SIGN, sample_weight=SIGN)


def test_class_weight():
    heavy = SingleLocationClassifier(class_weight={0: 1, 1: 8}).fit(BAGS, SIGN).predict_proba(BAGS)
    same = SingleLocationClassifier().fit(BAGS, SIGN, sample_weight=np.where(SIGN, 8, 1)).predict_proba(BAGS)
    assert heavy.tobytes() == same.tobytes()
    assert heavy[:, 1].mean() > SingleLocationClassifier().fit(BAGS, SIGN).predict_proba(BAGS)[:, 1].mean() + 0.02
    both = SingleLocationClassifier(class_weight={0: 1, 1: 8}).fit(BAGS, SIGN, sample_weight=Y**2).predict_proba(BAGS)
    product = SingleLocationClassifier().fit(BAGS, SIGN, sample_weight=Y**2 * np.where(SIGN, 8, 1))
    assert both.tobytes() == product.predict_proba(BAGS).tobytes()
    names = np.array(["no", "yes"])[SIGN]
    by_name = SingleLocationClassifier(class_weight={"no": 1, "yes": 8}).fit(BAGS, names).predict_proba(BAGS)
    assert by_name.tobytes() == heavy.tobytes()
    balanced = SingleLocationClassifier(class_weight="balanced").fit(BAGS, SIGN)
    assert balanced._fit.settings()["class_weights"] == "balanced"
    for wrong in ({0: 0, 1: 1}, {0: -1}, {"other": 2}):
        with pytest.raises(ValueError):
            SingleLocationClassifier(class_weight=wrong).fit(BAGS, SIGN)


# ---- answers --------------------------------------------------------------------------------------

def test_intervals():
    model = SingleLocationRegressor().fit(BAGS, Y + np.random.default_rng(1).normal(size=60))
    mean, sd = model.predict(BAGS, return_std=True)
    assert mean.tobytes() == model.predict(BAGS).tobytes() and (sd > 0).all() and model.noise_ > 0.3
    ninety = model.predict_interval(BAGS)
    assert np.array_equal(ninety, np.stack([mean - 1.6448536269514722 * sd, mean + 1.6448536269514722 * sd], axis=1))
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
        SingleLocationClassifier(model="mean").fit(BAGS, y).locate(BAGS)
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


def test_several_threads_get_the_same_answers():
    X, y = cube(400)
    model = SingleLocationClassifier(features="both", landmarks=20).fit(X, y > 0)
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


# ---- scikit-learn's tools -------------------------------------------------------------------------

@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
def test_cross_validation_of_all_layouts(kind):
    X, y = cube()
    y = y if kind in REGRESSORS else y > 0
    cv = KFold(3, shuffle=True, random_state=0)
    scores = [cross_val_score(kind(), data, y, cv=cv) for data in (X, list(X), Bags(X))]
    assert np.array_equal(scores[0], scores[1]) and np.array_equal(scores[0], scores[2]) and scores[0].shape == (3,)
    if kind in (SingleLocationClassifier, SingleLocationRegressor):
        assert scores[0].mean() > 0.85
    assert cross_val_predict(kind(), Bags(X), y, cv=cv).shape == (50,)


def test_grid_search_in_two_processes():
    grid = {"model": ["softmax", "mean"], "penalty": ["auto", 1.0]}
    search = GridSearchCV(SingleLocationRegressor(), grid, cv=3, n_jobs=2).fit(Bags(BAGS), Y)
    alone = GridSearchCV(SingleLocationRegressor(), grid, cv=3).fit(BAGS, Y)
    assert search.best_params_["model"] == "softmax"
    assert np.array_equal(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    assert search.predict(BAGS).tobytes() == alone.predict(BAGS).tobytes()


def test_meta_estimators():
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.ensemble import StackingRegressor
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GroupKFold, cross_validate
    two = [("one", SingleLocationRegressor()), ("all", BagEmbeddingRegressor(statistics="mean"))]
    for data in (BAGS, Bags(BAGS)):
        assert CalibratedClassifierCV(SingleLocationClassifier(), cv=2).fit(data, SIGN).score(data, SIGN) > 0.8
        assert StackingRegressor(two, final_estimator=Ridge(), cv=3).fit(data, Y).score(data, Y) > 0.8
        scores = cross_validate(SingleLocationRegressor(), data, Y, cv=GroupKFold(3), groups=np.arange(60) // 4,
                                scoring=["r2", "neg_mean_absolute_error"], fit_params={"sample_weight": np.ones(60)})
        assert scores["test_r2"].shape == (3,)


def test_pipeline_of_rows_and_groups():
    flat, lengths = np.concatenate(BAGS), [len(bag) for bag in BAGS]
    groups = np.repeat(np.arange(60), lengths)
    pipe = make_pipeline(StandardScaler(), SingleLocationRegressor())
    pipe.fit(flat, np.repeat(Y, lengths), singlelocationregressor__groups=groups)
    scaled = StandardScaler().fit_transform(flat)
    want = SingleLocationRegressor().fit(scaled, Y, lengths=lengths).predict(scaled, lengths=lengths)
    assert pipe.predict(flat, groups=groups).tobytes() == want.tobytes()


def test_per_token():
    pipe = make_pipeline(PerToken(StandardScaler()), PerToken(PCA(3)), SingleLocationRegressor())
    flat, lengths = np.concatenate(BAGS), [len(bag) for bag in BAGS]
    rows = PCA(3).fit_transform(StandardScaler().fit_transform(flat))
    want = SingleLocationRegressor().fit(rows, Y, lengths=lengths).predict(rows, lengths=lengths)
    assert np.allclose(pipe.fit(BAGS, Y).predict(BAGS), want, rtol=1e-9)
    assert cross_val_score(pipe, BAGS, Y, cv=3).shape == (3,)
    assert GridSearchCV(pipe, {"pertoken-2__transformer__n_components": [2, 3]}, cv=3).fit(BAGS, Y).best_score_ < 1
    holes = [np.where(np.arange(bag.size).reshape(bag.shape) == 0, np.nan, bag) for bag in BAGS]
    filled = make_pipeline(PerToken(SimpleImputer()), SingleLocationRegressor()).fit(holes, Y)
    assert np.isfinite(filled.predict(holes)).all()
    best = PerToken(SelectKBest(f_regression, k=1)).fit(BAGS, Y)
    assert np.array_equal(best.transformer_.scores_, f_regression(flat, np.repeat(Y, lengths))[0])
    with pytest.raises(NotFittedError):
        PerToken(StandardScaler()).transform(BAGS)


def test_per_token_keeps_names():
    pd = pytest.importorskip("pandas")
    from sklearn.compose import ColumnTransformer
    frames = [pd.DataFrame(bag, columns=list("abcd")) for bag in BAGS]
    some = PerToken(ColumnTransformer([("few", StandardScaler(), ["b", "a"])]))
    want = StandardScaler().fit_transform(np.concatenate(BAGS)[:, [1, 0]])
    assert np.allclose(some.fit_transform(frames).tokens, want)


# ---- pickles and files ----------------------------------------------------------------------------

MODELS = ["softmax", "erf", "linear", "mixture", "embedding", "mean", "max", "stack", "auto"]


@pytest.mark.parametrize("model", MODELS + ["any"])
@pytest.mark.parametrize("kind", [SingleLocationRegressor, SingleLocationClassifier])
def test_pickle_and_files_answer_the_same(kind, model, tmp_path):
    if model == "any" and kind is SingleLocationRegressor:
        pytest.skip("any is for two classes")
    y = Y if kind is SingleLocationRegressor else np.array(["no", "yes"])[SIGN]
    fitted = kind(model=model, inner=2, calibrate="yes" if model in ("softmax", "mean") else "auto").fit(BAGS, y)
    fitted.save(tmp_path / "m.fin")
    for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), finetti.load_model(tmp_path / "m.fin"),
                  pickle.loads(pickle.dumps(finetti.load_model(str(tmp_path / "m.fin"))))):
        ask = (lambda m: m.predict(BAGS, return_std=True)) if kind is SingleLocationRegressor else (
            lambda m: m.predict_proba(BAGS, return_std=True))
        assert [a.tobytes() for a in ask(again)] == [a.tobytes() for a in ask(fitted)]
        assert np.array_equal(again.predict(BAGS), fitted.predict(BAGS))
        assert again._fit.settings() == fitted._fit.settings()
        if fitted.info_["locates"] and hasattr(again, "locate"):
            assert all(np.array_equal(a, b) for a, b in zip(again.locate(BAGS, y), fitted.locate(BAGS, y)))


def test_joblib(tmp_path):
    model = SingleLocationRegressor().fit(BAGS, Y)
    joblib.dump(model, tmp_path / "m.joblib", compress=3)
    assert joblib.load(tmp_path / "m.joblib").predict(BAGS).tobytes() == model.predict(BAGS).tobytes()


def test_a_file_says_what_it_is(tmp_path):
    for kind, y in [(SingleLocationRegressor, Y), (SingleLocationClassifier, SIGN), (BagEmbeddingRegressor, Y),
                    (BagEmbeddingClassifier, SIGN)]:
        model = kind(random_state=5, landmarks=70).fit(BAGS, y)
        model.save(tmp_path / "m.fin", notes={"from": "a test"})
        again = finetti.load_model(tmp_path / "m.fin")
        assert type(again) is kind and again.get_params() == model.get_params()
        assert again.info_.pop("notes") == {"from": "a test"} and again.info_ == model.info_
        assert not hasattr(again, "feature_names_in_")


@pytest.mark.parametrize("names", [["no", "yes"], [False, True], [-1, 1], [0.0, 2.0], np.array(["1", "2"], object),
                                   [b"n", b"y"], ["01", "1"], ["Zürich", "a b"]])
def test_a_file_keeps_the_type_of_labels(names, tmp_path):
    names = np.asarray(names)
    SingleLocationClassifier().fit(BAGS, names[SIGN]).save(tmp_path / "m.fin")
    again = finetti.load_model(tmp_path / "m.fin").classes_
    assert again.dtype == names.dtype and again.tolist() == names.tolist()


def test_a_file_keeps_names_of_columns(tmp_path):
    pd = pytest.importorskip("pandas")
    frames = [pd.DataFrame(bag, columns=["a", "é", "b c", "4"]) for bag in BAGS]
    SingleLocationRegressor().fit(frames, pd.Series(Y, name="logP")).save(tmp_path / "m.fin")
    again = finetti.load_model(tmp_path / "m.fin")
    assert again.feature_names_in_.tolist() == ["a", "é", "b c", "4"] and again._label_name == "logP"
    assert again.predict(frames).shape == (60,)


def test_deleted_and_damaged_files(tmp_path):
    path = tmp_path / "m.fin"
    SingleLocationRegressor().fit(BAGS, Y).save(path)
    whole = path.read_bytes()
    for damaged in (whole[:-9], whole[:100], b"", b"nonsense" * 100, whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:]):
        path.write_bytes(damaged)
        with pytest.raises(finetti.FormatError, match="m.fin"):
            finetti.load_model(path)
    path.unlink()
    with pytest.raises(ValueError, match="zero byte"):
        finetti.load_model("m.fin\0.old")
    with pytest.raises(ValueError, match="zero byte"):
        SingleLocationClassifier().fit(BAGS, np.array(["a", "a\0b"])[SIGN]).save(path)
    assert not path.exists()
    with pytest.raises(finetti.FileError, match="m.fin"):
        finetti.load_model(path)
    with pytest.raises(OSError):
        SingleLocationRegressor().fit(BAGS, Y).save(tmp_path / "none" / "m.fin")


def test_a_hostile_pickle_is_refused():
    fit = SingleLocationRegressor().fit(BAGS, Y)._fit
    restore, (settings, tensors) = fit.__reduce__()
    for i, (name, array) in enumerate(tensors):
        half = [*tensors[:i], (name, array.ravel()[:len(array.ravel()) // 2]), *tensors[i + 1:]]
        with pytest.raises(finetti.FormatError):
            restore(settings, half)
        with pytest.raises(finetti.FormatError):
            restore(settings, tensors[:i] + tensors[i + 1:])
