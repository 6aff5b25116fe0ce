"""Families of exchangeable tokens: the tool's numbers, textbook posteriors, several ways to the same answer."""

import inspect
import json
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tool import tool

import finetti
from finetti import families


@pytest.fixture(scope="module")
def concept():
    family = families.concept(d=3, features="affine", dv=2, noise=0.2, prior=1.5, seed=5)
    return family, family.draw(40, 12, 6)


# ---- the same as the tool -------------------------------------------------------------------------

@pytest.mark.parametrize("name", families.names())
def test_draws_are_those_of_the_tool(name, tmp_path):
    tool("latent", "draw", "--family", name, "--n", 5, "--L", 7, "--Q", 3, "--seed", 9, "--out", tmp_path / "t.npz")
    told = np.load(tmp_path / "t.npz")
    sample = getattr(families, name)(seed=9).draw(5, 7, 3)
    for field in ("keys", "values", "queries", "answers", "truth", "z"):
        ours = getattr(sample, field)
        if ours is None or ours.size == 0:
            assert field not in told or told[field].size == 0
        else:
            assert np.array_equal(ours.ravel(), told[field].ravel())


@pytest.mark.parametrize("name, forms", [
    ("concept", ["cme", "softmax", "nw"]), ("process", ["cme"]), ("sphere", ["cme"]), ("finite", ["cme"]), ("mean", []),
    ("counts", []), ("concepts", []), ("urn", [])])
def test_risks_are_those_of_the_tool(name, forms):
    temperature = ["--temperature", 0.7] if "softmax" in forms else []
    told = json.loads(tool("latent", "risk", "--family", name, "--L", "2,5", "--samples", 200, "--seed", 3, "--json",
                           "--attention", ",".join(forms) or "none", *temperature))["points"]
    family = getattr(families, name)(seed=3)
    bayes = family.risk(np.array([2, 5]), samples=200, seed=3)
    assert bayes.risk.tolist() == told["bayes"]
    assert np.array_equal(bayes.error, np.array(told.get("bayes_error", [0, 0]), float), equal_nan=True)
    for form in forms:
        risk = family.attention_risk(np.array([2, 5]), form=form, samples=200, seed=3,
                                     temperature=0.7 if form == "softmax" else None)
        assert risk.risk.tolist() == told[form]


# ---- posteriors -----------------------------------------------------------------------------------

def test_the_posterior_of_a_concept_is_that_of_the_textbook(concept):
    family, sample = concept
    keys, values = sample.keys[0], sample.values[0]
    phi = family.features(keys)
    assert np.array_equal(phi, np.column_stack([np.ones(12), keys]))
    precision = phi.T @ phi / 0.2 + np.eye(4) / 1.5
    posterior = family.posterior(keys, values)
    np.testing.assert_allclose(posterior["covariance"], np.linalg.inv(precision), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(posterior["mean"], values.T @ phi / 0.2 @ np.linalg.inv(precision), rtol=1e-9)
    mean, variance = family.predict(keys, values, sample.queries[0], return_variance=True)
    at = family.features(sample.queries[0])
    np.testing.assert_allclose(mean, at @ posterior["mean"].T, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(variance, np.einsum("md,de,me->m", at, posterior["covariance"], at), rtol=1e-9)


def test_four_ways_to_one_prediction(concept):
    family, sample = concept
    keys, values, queries = sample.keys[0], sample.values[0], sample.queries[0]
    mean, variance = family.predict(keys, values, queries, return_variance=True)
    whole = family.statistic(keys, values)
    parts = family.statistic(keys[:5], values[:5]) + family.statistic(keys[5:], values[5:])
    np.testing.assert_allclose(parts, whole, rtol=1e-12)
    for answer in (family.predict_statistic(parts, queries, return_variance=True),
                   family.predict(keys[::-1].copy(), values[::-1].copy(), queries, return_variance=True)):
        np.testing.assert_allclose(answer[0], mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(answer[1], variance, rtol=1e-8)
    attention = finetti.Context(family.features(keys), values, kernel="linear", prior=1.5, noise=0.2)
    answer = attention.predict(family.features(queries), return_variance=True)
    np.testing.assert_allclose(answer[0], mean, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(answer[1].reshape(6, -1)[:, 0], variance, rtol=1e-8)  # the same for every column
    recursion, direct = family.filter(keys, values), family.posterior(statistic=whole)
    np.testing.assert_allclose(recursion["mean"], direct["mean"], rtol=1e-8, atol=1e-10)
    phi, pseudo = family.compress(keys, values)
    assert len(phi) <= 4 + 2
    np.testing.assert_allclose(phi.T @ phi, family.features(keys).T @ family.features(keys), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(pseudo.T @ phi, values.T @ family.features(keys), rtol=1e-9, atol=1e-9)


def test_many_contexts_are_each_alone(concept):
    family, sample = concept
    mean, variance = family.predict(sample.keys, sample.values, sample.queries, return_variance=True)
    posterior = family.posterior(sample.keys, sample.values)
    statistic = family.statistic(sample.keys, sample.values)
    common = family.predict_statistic(statistic, sample.queries[0])
    recursion = family.filter(sample.keys, sample.values)
    assert mean.shape == (40, 6, 2) and variance.shape == (40, 6) and common.shape == (40, 6, 2)
    for i in (0, 17, 39):
        one = family.predict(sample.keys[i], sample.values[i], sample.queries[i], return_variance=True)
        assert np.array_equal(one[0], mean[i]) and np.array_equal(one[1], variance[i])
        assert np.array_equal(family.posterior(sample.keys[i], sample.values[i])["mean"], posterior["mean"][i])
        assert np.array_equal(family.filter(sample.keys[i], sample.values[i])["covariance"],
                              recursion["covariance"][i])
        assert np.array_equal(family.predict_statistic(statistic[i], sample.queries[0]), common[i])
    assert np.array_equal(family.predict(sample.keys, sample.values, sample.queries[0])[3],
                          family.predict(sample.keys[3], sample.values[3], sample.queries[0]))


@pytest.mark.parametrize("name", ["concept", "process", "sphere", "finite"])
def test_the_variance_is_what_is_missed(name):
    family = getattr(families, name)(seed=2)
    sample = family.draw(400, 5, 1)
    mean, variance = family.predict(sample.keys, sample.values, sample.queries, return_variance=True)
    miss = ((mean - sample.truth) ** 2).mean(axis=2) - variance  # zero on average
    z = miss.mean() / (miss.std() / np.sqrt(miss.size))
    print(f"{name}: z = {z:.2f}")
    assert abs(z) < 5 and variance.min() >= 0


def test_counts_are_laplaces_rule():
    family = families.counts(outcomes=3, alpha=0.5)
    values = np.array([0.0, 2, 2, 1, 2])
    assert family.predict(None, values).tolist() == [[1.5 / 6.5, 1.5 / 6.5, 3.5 / 6.5]]
    assert family.posterior(None, values)["alpha"].tolist() == [1.5, 1.5, 3.5]
    urn = families.urn(outcomes=2, balls=10)
    assert urn.posterior(None, np.array([0.0, 0, 1]))["left"].tolist() == [3, 4]
    np.testing.assert_allclose(urn.predict(None, np.array([0.0, 0, 1])), [[3 / 7, 4 / 7]], rtol=1e-15)


def test_the_posterior_of_finitely_many_finds_the_truth():
    for name in ("concepts", "finite"):
        family = getattr(families, name)(seed=4)
        sample = family.draw(20, 200)
        probability = family.posterior(sample.keys, sample.values)["probability"]
        np.testing.assert_allclose(probability.sum(axis=1), 1, rtol=1e-12)
        assert (probability.argmax(axis=1) == sample.z).mean() > 0.9


def test_nothing_known_is_the_prior(concept):
    family, sample = concept
    mean, variance = family.predict(np.empty((0, 3)), np.empty((0, 2)), sample.queries[0], return_variance=True)
    assert np.all(mean == 0)
    np.testing.assert_allclose(variance, 1.5 * (family.features(sample.queries[0]) ** 2).sum(axis=1), rtol=1e-12)


# ---- draws, risks ---------------------------------------------------------------------------------

def test_draws_do_not_depend_on_the_split():
    family = families.finite(seed=11)
    whole, longer = family.draw(6, 4, 2), family.draw(6, 9, 2)
    part = family.draw(2, 4, 2, first=3)
    for field in ("keys", "values", "queries", "answers", "truth", "z"):
        assert np.array_equal(getattr(whole, field)[3:5], getattr(part, field))
    assert np.array_equal(longer.keys[:, :4], whole.keys) and np.array_equal(longer.values[:, :4], whole.values)
    assert np.array_equal(longer.truth, whole.truth)
    assert not np.array_equal(families.finite(seed=12).draw(6, 4).keys, whole.keys)


def test_risks():
    mean = families.mean(dv=2, prior=2, noise=0.5)
    risk = mean.risk([0, 1, 10])
    np.testing.assert_allclose(risk.risk, [2 * 0.5 * 2 / (0.5 + L * 2) for L in (0, 1, 10)], rtol=1e-14)
    assert risk.method.tolist() == ["closed form"] * 3 and risk.shape == (3,)
    assert mean.long_risk(10) == 2 * 0.5 / 10
    one = families.concept(d=2).risk(20, samples=2000)
    assert isinstance(one.risk, float) and one.method == "simulation" and one.settings["L"] == 20
    cme = families.concept(d=2).attention_risk(20, samples=2000)
    print(f"z = {(one.risk - cme.risk) / cme.error:.2f}")
    assert abs(one.risk - cme.risk) < 5 * cme.error
    soft = families.concept(d=2).attention_risk(20, form="softmax", samples=2000)
    assert soft.risk > one.risk + 5 * soft.error
    assert list(risk.to_frame()["L"]) == [0, 1, 10]


def test_progress_may_cancel():
    with pytest.raises(finetti.CancelledError):
        families.sphere().risk(50, samples=100000, progress=lambda *what: True)


# ---- manners --------------------------------------------------------------------------------------

def test_settings_are_keywords():
    assert families.concept(noise=0.3).settings["noise"] == 0.3
    assert inspect.signature(families.counts).parameters["outcomes"].default == 4
    assert "Dirichlet" in families.counts.__doc__
    assert repr(families.counts(outcomes=3)) == "families.counts(outcomes=3, seed=1)"
    again = pickle.loads(pickle.dumps(families.process(d=1, kernel="matern32", seed=3)))
    assert np.array_equal(again.draw(2, 3).keys, families.process(d=1, kernel="matern32", seed=3).draw(2, 3).keys)
    assert finetti.families is families


def test_threads(concept, two_threads):
    family, sample = concept
    expected = family.predict(sample.keys, sample.values, sample.queries)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: family.predict(sample.keys, sample.values, sample.queries), range(12)))
    assert all(np.array_equal(answer, expected) for answer in answers)


@pytest.mark.parametrize("call, kind, part", [
    (lambda: families.Family("concpt", {}), finetti.ArgumentError, "did you mean 'concept'"),
    (lambda: families.concept(nose=1), TypeError, "did you mean 'noise'"),
    (lambda: families.concept(noise=-1), finetti.ArgumentError, "noise"),
    (lambda: families.concept(outcomes=3), TypeError, "no keyword 'outcomes'"),
    (lambda: families.concept().draw(-1, 5), finetti.ArgumentError, "n = -1"),
    (lambda: families.concept().draw(2, 1.5), TypeError, "L must be a whole number"),
    (lambda: families.concept().draw(2**39, 2**39), finetti.ArgumentError, "are 1.8e[+]24 numbers"),
    (lambda: families.urn(balls=5).draw(1, 9), finetti.ArgumentError, "balls|5"),
    (lambda: families.concept().predict(np.zeros((2, 5)), np.zeros((3, 1)), np.zeros((1, 5))), ValueError,
     "as many tokens"),
    (lambda: families.concept().predict(np.zeros((2, 4)), np.zeros((2, 1)), np.zeros((1, 5))), ValueError,
     r"keys has shape \(2, 4\)"),
    (lambda: families.concept().predict(np.zeros((2, 5), "f4"), np.zeros((2, 1)), np.zeros((1, 5))), TypeError,
     "float64"),
    (lambda: families.concept().predict(np.zeros((2, 5)), np.zeros((2, 1))), TypeError, "queries"),
    (lambda: families.concept().predict([[1.0] * 5], np.zeros((1, 1)), np.zeros((1, 5))), TypeError, "NumPy array"),
    (lambda: families.concept().predict(np.full((1, 5), np.nan), np.zeros((1, 1)), np.zeros((1, 5))),
     finetti.ArgumentError, "finite"),
    (lambda: families.concept().predict(np.zeros((2, 1, 5)), np.zeros((2, 1, 1)), np.zeros((3, 1, 5))), ValueError,
     "queries of 3 contexts"),
    (lambda: families.counts().predict(None, np.array([0.0, 4])), finetti.ArgumentError, "whole number from 0 to 3"),
    (lambda: families.counts().predict(None, np.array([0.0]), return_variance=True), finetti.UnsupportedError,
     "no variance"),
    (lambda: families.process().posterior(np.zeros((1, 5)), np.zeros((1, 1))), finetti.UnsupportedError,
     "no statistic"),
    (lambda: families.concept().posterior(statistic=np.zeros(3)), ValueError, "must have"),
    (lambda: families.counts().attention_risk(3), finetti.UnsupportedError, "needs keys"),
    (lambda: families.concept().risk(-1), finetti.ArgumentError, "-1"),
    (lambda: families.concept().risk(1.5), TypeError, "whole numbers"),
])
def test_refuses(call, kind, part):
    with pytest.raises(kind, match=part):
        call()


def test_examples():
    import doctest
    found = doctest.testmod(families, verbose=False)
    assert found.attempted > 0 and found.failed == 0
