"""AttentionRegressor: scikit-learn's checks, its Gaussian processes and kernel ridge, and `finetti attend`."""

import copy
import json
import pickle
import re
import subprocess
import warnings

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError, SkipTestWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, DotProduct, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from tool import TOOL

import finetti
from finetti import AttentionRegressor, _context

FIXED = dict(scale=1.3, prior=0.8, noise=0.05, level=2.0, temperature=0.7)


def table(n=40, d=3, outputs=None, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, d)) * np.arange(1, d + 1)
    y = 4 + np.sin(2 * X[:, 0]) * X[:, 1] + 0.2 * random.normal(size=n)
    return X, y if outputs is None else np.stack([(j + 1) * y - j for j in range(outputs)], axis=1)


def same(a, b):
    np.testing.assert_array_equal(a, b)


# ---- scikit-learn's conventions ---------------------------------------------------------------

@pytest.mark.parametrize("settings", [dict(restarts=1), dict(form="softmax"), dict(form="nw", standardize=False),
                                      dict(ard=True, tune=False)], ids=str)
def test_check_estimator(settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", SkipTestWarning)
        check_estimator(AttentionRegressor(**settings))


def test_parameters():
    parameters = AttentionRegressor().get_params()
    assert parameters["scale"] == parameters["noise"] == "auto" and parameters["tune"] is True
    assert {*_context.TABLE.fields} - {"seed"} <= {*parameters} and "random_state" in parameters
    changed = clone(AttentionRegressor(kernel="matern32", noise=0.1).set_params(scale=2))
    assert (changed.kernel, changed.noise, changed.scale) == ("matern32", 0.1, 2)
    assert "kernel='matern32'" in repr(changed)
    with pytest.raises(TypeError, match="did you mean 'kernel'"):
        AttentionRegressor(kernl="rbf")
    for name in parameters:
        assert f"{name} : " in AttentionRegressor.__doc__


def test_pipeline_and_grid():
    X, y = table(60)
    model = make_pipeline(StandardScaler(), AttentionRegressor(restarts=1))
    grid = GridSearchCV(model, {"attentionregressor__form": ["cme", "softmax", "nw"]}, cv=3, error_score="raise")
    grid.fit(X, y)
    assert grid.best_params_["attentionregressor__form"] == "cme" and grid.best_score_ > 0.3


def test_data_frames():
    X, y = table()
    frame = pandas.DataFrame(X, columns=["a", "b", "c"])
    model = AttentionRegressor(**FIXED).fit(frame, pandas.Series(y))
    same(model.predict(frame), AttentionRegressor(**FIXED).fit(X, y).predict(X))
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame[["c", "b", "a"]])


# ---- numbers ----------------------------------------------------------------------------------

@pytest.mark.parametrize("form", ["cme", "softmax", "nw"])
@pytest.mark.parametrize("outputs", [None, 1, 3])
@pytest.mark.parametrize("standardize", [True, False])
def test_shapes_and_weights(form, outputs, standardize):
    X, y = table(outputs=outputs)
    queries = table(7, seed=1)[0]
    model = AttentionRegressor(form=form, standardize=standardize, tune=False).fit(X, y)
    mean, deviation = model.predict(queries, return_std=True)
    assert mean.shape == deviation.shape == (7, *y.shape[1:]) and (deviation > 0).all()
    weights = model.weights(queries)
    assert weights.shape == (7, 40)
    # rounding: 1e-16 times the condition, which is tokens * level / noise, some 1e6
    np.testing.assert_allclose(weights @ y, mean, rtol=0, atol=1e-9)
    same(model.predict(queries), mean)
    assert model.loo().shape == y.shape and model.loo(return_std=True)[1].shape == y.shape
    if form != "cme":
        np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
        np.testing.assert_allclose(deviation**2, weights @ y**2 - mean**2, rtol=0, atol=1e-10)
        assert np.isnan(model.log_marginal_likelihood_)
    if outputs:
        for j in range(outputs):
            one = AttentionRegressor(form=form, standardize=standardize, tune=False, **{
                name: model.settings_[name] for name in FIXED}).fit(X, y[:, j])
            np.testing.assert_allclose(one.predict(queries), mean[:, j], rtol=0, atol=1e-9)


def test_standardize():
    X, y = table()
    X[:, 1] = 7.1
    model = AttentionRegressor(tune=False, standardize=True).fit(X, y)
    assert model.columns_.tolist() == [0, 2]
    np.testing.assert_allclose(model.means_, X[:, [0, 2]].mean(axis=0), rtol=0, atol=1e-14)
    np.testing.assert_allclose(model.deviations_, X[:, [0, 2]].std(axis=0), rtol=1e-14)
    plain = AttentionRegressor(tune=False).fit(
        (X[:, [0, 2]] - X[:, [0, 2]].mean(axis=0)) / X[:, [0, 2]].std(axis=0), y)
    np.testing.assert_allclose(model.context_.keys, plain.context_.keys, rtol=0, atol=1e-14)
    assert plain.means_ is None and plain.columns_.tolist() == [0, 1]
    for factor in (1e200, 1e-200, 2.0**40):  # no unit is too large or too small
        np.testing.assert_allclose(AttentionRegressor(tune=False, standardize=True).fit(X * factor, y).predict(X * factor),
                                   model.predict(X), rtol=1e-10)
    with pytest.raises(ValueError, match="every column of X is constant"):
        AttentionRegressor(standardize=True).fit(np.ones((5, 2)), y[:5])
    assert AttentionRegressor().fit(np.ones((5, 2)), y[:5]).predict([[1, 1]]).shape == (1,)


def test_columns_of_very_different_spread_are_named():
    X, y = table()
    X = X * [1e3, 1, 1]
    with pytest.warns(UserWarning, match=re.escape(f"the widest column of X has {X.std(axis=0).max() / X.std(axis=0).min():.1e} times")):
        AttentionRegressor(tune=False).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for settings in (dict(standardize=True), dict(scales=[1e3, 1, 1]), dict(ard=True)):
            AttentionRegressor(tune=False, **settings).fit(X, y)


GAUSSIAN = [
    (dict(kernel="rbf"), RBF(1.3)),
    (dict(kernel="matern32"), Matern(1.3, nu=1.5)),
    (dict(kernel="matern52"), Matern(1.3, nu=2.5)),
    (dict(kernel="linear"), ConstantKernel(1.3**-2) * DotProduct(0)),
    (dict(kernel="polynomial", degree=3, scale=1), DotProduct(1)**3),
]


@pytest.mark.parametrize("settings, kernel", GAUSSIAN, ids=lambda value: str(value))
def test_same_numbers_as_gaussian_processes(settings, kernel):
    X, y = table()
    queries = table(9, seed=1)[0]
    model = AttentionRegressor(standardize=False, **{**FIXED, **settings}).fit(X, y)
    other = GaussianProcessRegressor(ConstantKernel(0.8) * kernel + ConstantKernel(2.0) + WhiteKernel(0.05),
                                     alpha=0, optimizer=None).fit(X, y)
    mean, deviation = other.predict(queries, return_std=True)
    got, deviations = model.predict(queries, return_std=True)
    np.testing.assert_allclose(got, mean, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(deviations, deviation, rtol=1e-8)
    assert model.log_marginal_likelihood_ == pytest.approx(other.log_marginal_likelihood_value_, rel=1e-8)


def test_same_numbers_as_kernel_ridge():
    X, y = table(outputs=2)
    for kernel, other in ((dict(kernel="rbf", scale=1.3), dict(kernel="rbf", gamma=1 / (2 * 1.3**2))),
                          (dict(kernel="linear", scale=1), dict(kernel="linear")),
                          (dict(kernel="polynomial", degree=3, offset=2, scale=1),
                           dict(kernel="polynomial", degree=3, coef0=2, gamma=1))):
        model = AttentionRegressor(standardize=False, prior=1, level=0, noise=0.3, **kernel).fit(X, y)
        np.testing.assert_allclose(model.predict(X), KernelRidge(alpha=0.3, **other).fit(X, y).predict(X),
                                   rtol=1e-8, atol=1e-8)


def test_tuning_is_no_worse_than_that_of_scikit_learn():
    random = np.random.default_rng(2)
    X = random.uniform(0, 6, size=(40, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * random.normal(size=40)
    model = AttentionRegressor(standardize=False, level=0, kernel="matern52").fit(X, y)
    other = GaussianProcessRegressor(ConstantKernel() * Matern(nu=2.5) + WhiteKernel(), alpha=0, random_state=0,
                                     n_restarts_optimizer=3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        other.fit(X, y)
    assert model.log_marginal_likelihood_ > other.log_marginal_likelihood_value_ - 1e-4
    tune = model.info_["tune"]
    assert tune["chosen"] == ["scale", "prior", "noise"] and tune["by"] == "evidence" and tune["converged"]
    assert tune["after"] == pytest.approx(model.log_marginal_likelihood_, rel=1e-12) and tune["before"] < tune["after"]
    assert model.noise_ == model.settings_["noise"]**0.5 and model.settings_["level"] == 0


def test_what_is_given_stays_as_it_is():
    X, y = table()
    model = AttentionRegressor(noise=0.04).fit(X, y)
    assert model.noise_ == 0.2 and model.info_["tune"]["chosen"] == ["scale", "prior"]
    fixed = AttentionRegressor(**FIXED).fit(X, y)
    assert fixed.info_["tune"] is None and fixed.settings_["scale"] == 1.3
    nothing = AttentionRegressor(noise=None, tune=False).fit(X, y)  # None is the default, here as everywhere
    assert nothing.noise_ == AttentionRegressor(tune=False).fit(X, y).noise_
    ard = AttentionRegressor(ard=True, restarts=1).fit(X, y)
    assert ard.scales_.shape == (3,) and ard.scales_[2] > 5 * ard.scales_[0]  # x3 does nothing
    again = AttentionRegressor(scales=ard.scales_, **{
        name: ard.settings_[name] for name in ("scale", "prior", "noise", "level")}).fit(X, y)
    np.testing.assert_allclose(again.predict(X), ard.predict(X), rtol=1e-10)


def test_notes_about_a_search_are_warnings():
    X = np.linspace(0, 6, 25).reshape(-1, 1)
    with pytest.warns(ConvergenceWarning, match="noise ended at the lower end"):
        model = AttentionRegressor().fit(X, np.sin(X[:, 0]))
    assert "noise" in model.info_["tune"]["at_limit"]
    with pytest.warns(ConvergenceWarning, match="ran out of iterations"):
        AttentionRegressor(iterations=1, restarts=1, ard=True).fit(*table())
    with pytest.warns(RuntimeWarning, match="larger noise is better"):
        AttentionRegressor(prior=1, level=0, noise=0, scale=1).fit(X, np.sin(X[:, 0]))


# ---- partial_fit, pickles ---------------------------------------------------------------------

@pytest.mark.parametrize("settings", [dict(), dict(kernel="linear"), dict(form="softmax"), dict(form="nw")], ids=str)
@pytest.mark.parametrize("steps", [[20, 21, 22, 40], [39, 40]])
def test_partial_fit_is_fit_with_fixed_settings(settings, steps):
    X, y = table(outputs=2)
    whole = AttentionRegressor(standardize=False, **FIXED, **settings).fit(X, y)
    model = AttentionRegressor(standardize=False, **FIXED, **settings)
    for first, last in zip([0, *steps], steps):
        assert model.partial_fit(X[first:last], y[first:last]) is model
    np.testing.assert_allclose(model.predict(X), whole.predict(X), rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.weights(X), whole.weights(X), rtol=0, atol=1e-9)
    np.testing.assert_allclose(model.loo(), whole.loo(), rtol=0, atol=1e-9)
    if not settings:
        assert model.log_marginal_likelihood_ == pytest.approx(whole.log_marginal_likelihood_, rel=1e-10)
    assert model.info_["tokens"] == 40
    with pytest.raises(ValueError, match="values has shape"):
        model.partial_fit(X, y[:, 0])


def test_partial_fit_keeps_what_the_first_call_chose():
    X, y = table(80)
    model = AttentionRegressor(restarts=1, standardize=True).fit(X[:50], y[:50])
    settings, means = model.settings_, model.means_.copy()
    model.partial_fit(X[50:], y[50:])
    assert model.settings_ == settings and (model.means_ == means).all() and len(model.context_) == 80


@pytest.mark.parametrize("settings", [dict(standardize=True), dict(form="softmax"), dict(kernel="linear", ard=True),
                                      dict(method="nystrom", landmarks=15, random_state=4)], ids=str)
def test_pickle_to_the_last_bit(settings):
    X, y = table(outputs=2)
    model = AttentionRegressor(restarts=1, **settings).fit(X, y)
    for partial in (False, True):
        if partial:
            model.partial_fit(X[:1] + 1, y[:1])
            model.partial_fit(X[1:3] + 1, y[1:3])
        for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            for a, b in zip(model.predict(X, return_std=True), again.predict(X, return_std=True)):
                same(a, b)
            same(model.weights(X), again.weights(X))
            assert again.settings_ == model.settings_ and again.info_ == model.info_
            assert repr(again.log_marginal_likelihood_) == repr(model.log_marginal_likelihood_)
    assert not hasattr(clone(model), "context_")


@pytest.mark.parametrize("standardize", [True, False])
def test_arrays_that_do_not_begin_at_a_number(standardize):
    def moved(array):  # as joblib's files in memory may be
        return np.frombuffer(b"-" + array.tobytes(), np.uint8)[1:].view(float).reshape(array.shape)

    X, y = table()
    model = AttentionRegressor(standardize=standardize, **FIXED).fit(X, y)
    other = AttentionRegressor(standardize=standardize, **FIXED).fit(moved(X), moved(y))
    same(other.predict(moved(X)), model.predict(X))


def test_random_state():
    X, y = table(200)
    def fit(state):
        return AttentionRegressor(method="nystrom", landmarks=10, tune=False, random_state=state).fit(X, y).predict(X)
    same(fit(None), fit(1))  # the library's own seed
    same(fit(np.random.RandomState(0)), fit(np.random.RandomState(0)))
    assert (fit(1) != fit(2)).any()


# ---- bad input --------------------------------------------------------------------------------

@pytest.mark.parametrize("X, y, kind, words", [
    (np.ones((5, 2)) * 1j, np.ones(5), ValueError, "Complex"),
    (np.array([[1, "a"], [2, "b"]], dtype=object), np.ones(2), ValueError, "could not convert"),
    (np.ma.masked_array(np.eye(5)), np.ones(5), TypeError, "masked.*filled"),
    (np.eye(5), np.ma.masked_array(np.ones(5)), TypeError, "y is a masked"),
    (np.eye(5), np.array(list("abcde")), ValueError, "convert|numbers"),
    (np.eye(5), [1, 2, 3, 4, np.nan], ValueError, "NaN"),
    (np.eye(5), np.ones(4), ValueError, "inconsistent"),
    (np.eye(5), np.ones((5, 0)), ValueError, "0 feature|no columns"),
    (np.eye(5), np.ones((5, 2, 2)), ValueError, "dim 3"),
    (np.eye(5), None, ValueError, "requires y"),
    (np.full((5, 2), np.inf), np.ones(5), ValueError, "infinity"),
    ([[1, 2], [3]], [1, 2], ValueError, ""),
    (np.empty((0, 2)), np.empty(0), ValueError, "0 sample"),
    ([], [], ValueError, ""),
])
def test_data_that_is_refused(X, y, kind, words):
    with pytest.raises(kind, match=words):
        AttentionRegressor().fit(X, y)


@pytest.mark.parametrize("settings, kind, words", [
    (dict(form="cmr"), finetti.ArgumentError, "cme"),
    (dict(noise=-1), finetti.ArgumentError, "noise"),
    (dict(scale="big"), finetti.ArgumentError, "scale"),
    (dict(kernel="auto"), finetti.ArgumentError, "kernel"),
    (dict(restarts=0), finetti.ArgumentError, "restarts"),
    (dict(random_state=-1), finetti.ArgumentError, "random_state = -1"),
    (dict(random_state="x"), ValueError, "x"),
    (dict(scales=[1, 2]), ValueError, "each of 3 columns"),
    (dict(scales=[1, 2, 0]), ValueError, "positive"),
    (dict(ard=True, form="nw"), finetti.ArgumentError, "ard=True is for form='cme', not 'nw'"),
    (dict(ard=True, scale=1), finetti.ArgumentError, "ard=True chooses"),
    (dict(ard=True, scales=[1, 2, 3]), finetti.ArgumentError, "ard=True chooses"),
    (dict(form="softmax", by="evidence"), finetti.UnsupportedError, "no marginal likelihood"),
    (dict(form="nw", kernel="linear"), finetti.FinettiError, "linear"),
])
def test_settings_that_are_refused(settings, kind, words):
    with pytest.raises(kind, match=words):
        AttentionRegressor(**settings).fit(*table())


def test_not_fitted():
    for ask in (lambda m: m.predict([[1]]), lambda m: m.weights([[1]]), lambda m: m.loo(), lambda m: m.info_,
                lambda m: m.log_marginal_likelihood_):
        with pytest.raises(NotFittedError):
            ask(AttentionRegressor())


def test_a_fit_that_fails_leaves_the_old_one():
    X, y = table()
    model = AttentionRegressor(**FIXED).fit(X, y)
    before = model.predict(X)
    with pytest.raises(finetti.FinettiError):
        model.set_params(noise=-1).fit(X + 1, y)
    same(model.predict(X), before)


# ---- finetti attend ---------------------------------------------------------------------------

def attend(folder, X, y, queries, answers, options):
    """What the tool says about the same numbers."""
    names = [f"x{j + 1}" for j in range(X.shape[1])]
    outputs = [f"y{j + 1}" for j in range(y.shape[1])]
    for name, rows in (("context.csv", np.hstack([X, y])), ("queries.csv", np.hstack([queries, answers]))):
        with open(folder / name, "w") as file:
            file.write(",".join(names + outputs) + "\n")
            file.writelines(",".join(map(repr, row)) + "\n" for row in rows.tolist())
    command = [TOOL, "attend", "context.csv", "--key", "x*", "--value", "y*", "--query", "queries.csv", "--loo",
               "--json", "--top", "1000", *options]
    return json.loads(subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout)


@pytest.mark.parametrize("settings, options", [
    (dict(tune=False, standardize=True), ["--standardize"]),
    (dict(tune=False), []),
    (dict(), ["--tune"]),
    (dict(standardize=True), ["--standardize", "--tune"]),
    (dict(ard=True, restarts=2), ["--tune", "--ard", "--restarts", "2"]),
    (dict(standardize=True, kernel="matern32", noise=0.05, by="loo", restarts=1),
     ["--standardize", "--tune", "--kernel", "matern32", "--noise", "0.05", "--by", "loo", "--restarts", "1"]),
    (dict(standardize=True, kernel="polynomial", degree=3, offset=0.5, tune_seed=7),
     ["--standardize", "--tune", "--kernel", "polynomial", "--degree", "3", "--offset", "0.5", "--tune-seed", "7"]),
    (dict(form="softmax"), ["--tune", "--form", "softmax"]),
    (dict(standardize=True, form="nw", scales=[1, 2, 0.5, 3], tune=False),
     ["--standardize", "--form", "nw", "--scales", "1,2,0.5,3"]),
    (dict(form="nw", kernel="matern52"), ["--tune", "--form", "nw", "--kernel", "matern52"]),
    (dict(standardize=True, method="nystrom", landmarks=20, random_state=9, restarts=1),
     ["--standardize", "--tune", "--method", "nystrom", "--landmarks", "20", "--seed", "9", "--restarts", "1"]),
], ids=str)
@pytest.mark.parametrize("outputs", [1, 2])
def test_agrees_with_the_tool(tmp_path, settings, options, outputs):
    X, y = table(outputs=outputs)
    X = np.hstack([X, np.full((40, 1), 0.1)])  # a constant column
    queries, answers = table(12, outputs=outputs, seed=1)
    queries = np.hstack([queries, np.full((12, 1), 0.1)])
    tool = attend(tmp_path, X, y, queries, answers, options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = AttentionRegressor(**settings).fit(X, y)
    assert model.settings_ == tool["settings"]  # to the last bit, tuned ones included
    assert (model.info_["tune"] is None) == ("tune" not in tool)
    if "tune" in tool:
        tune = model.info_["tune"]
        assert [tune[name] for name in ("by", "after", "evaluations", "converged", "tokens")] == [
            tool["tune"][name] for name in ("by", "after", "evaluations", "converged", "tokens")]
        assert ", ".join(tune["chosen"]) == tool["tune"]["chosen"]
        assert ", ".join(tune["at_limit"]) == tool["tune"]["at_limit"]
    if "scales" in tool:
        assert (model.settings_["scale"] * model.scales_).tolist() == list(tool["scales"].values())
    assert model.info_["method"] == tool["method"]["name"]
    check_answers(tool, model, queries)
    check_scores(tool, model, y, queries, answers)


def check_answers(tool, model, queries):
    cme = model.settings_["form"] == "cme"
    mean, deviation = model.predict(queries, return_std=True)
    weights = model.weights(queries)
    for i, answer in enumerate(tool["answers"]):
        assert list(answer["mean"].values()) == mean[i].tolist()
        assert list(answer["sd_new" if cme else "spread"].values()) == deviation[i].tolist()
        for top in answer["top"]:
            assert weights[i, top["row"] - 1] == top["weight"]
    if cme and "evidence" in tool:
        assert model.log_marginal_likelihood_ == tool["evidence"]


def check_scores(tool, model, y, queries, answers):
    mean, deviation = model.loo(return_std=True)
    tested = [tool["test"][name]["r2"] for name in tool["test"]]
    assert model.score(queries, answers) == pytest.approx(np.mean(tested), rel=1e-10)
    for j, name in enumerate(tool["loo"]):
        score = tool["loo"][name]
        error = y[:, j] - mean[:, j]
        assert np.sqrt((error**2).mean()) == pytest.approx(score["rmse"], rel=1e-12)
        if "log_score" in score:
            logs = -0.5 * (error / deviation[:, j])**2 - np.log(deviation[:, j]) - 0.5 * np.log(2 * np.pi)
            assert logs.mean() == pytest.approx(score["log_score"], rel=1e-12)
