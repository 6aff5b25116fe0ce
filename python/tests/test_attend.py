"""attend: many contexts at once against one Context each, and what it refuses."""

import json

import numpy as np
import pytest
from tool import tool

import finetti
from finetti import Context, _attend, attend

FORMS = [dict(), dict(kernel="linear", noise=0.01), dict(kernel="polynomial", degree=3, scale=2.0, level=1.0),
         dict(form="softmax", temperature=0.5), dict(form="nw", kernel="matern52")]


def ragged(dtype=np.float64, dv=2, seed=0):
    random = np.random.default_rng(seed)
    lengths, query_lengths = np.array([5, 1, 20, 3]), np.array([2, 0, 7, 1])
    keys, queries = random.normal(size=(29, 3)).astype(dtype), random.normal(size=(10, 3)).astype(dtype)
    values = random.normal(size=(29, dv) if dv else 29).astype(dtype)
    return keys, values, queries, lengths, query_lengths


@pytest.mark.parametrize("settings", FORMS, ids=str)
@pytest.mark.parametrize("dtype, limit", [(np.float64, 1e-12), (np.float32, 2e-5)])
@pytest.mark.parametrize("dv", [None, 2])
def test_ragged_contexts_are_contexts(settings, dtype, limit, dv):
    keys, values, queries, lengths, query_lengths = ragged(dtype, dv)
    out = attend(keys, values, queries, lengths, query_lengths, **settings)
    assert out.dtype == dtype and out.shape == (10, *values.shape[1:])
    tokens, asked = np.cumsum([0, *lengths]), np.cumsum([0, *query_lengths])
    for i in range(4):
        context = Context(keys[tokens[i]:tokens[i + 1]].astype(float), values[tokens[i]:tokens[i + 1]].astype(float),
                          **settings)
        expected = context.predict(queries[asked[i]:asked[i + 1]].astype(float))
        np.testing.assert_allclose(out[asked[i]:asked[i + 1]], expected, rtol=limit, atol=limit)


@pytest.mark.parametrize("settings", FORMS, ids=str)
def test_three_axes_are_contexts_of_equal_length(settings):
    random = np.random.default_rng(1)
    keys, values, queries = (random.normal(size=shape) for shape in ((6, 9, 3), (6, 9), (6, 4, 3)))
    out = attend(keys, values, queries, **settings)
    flat = attend(keys.reshape(54, 3), values.reshape(54), queries.reshape(24, 3), [9] * 6, [4] * 6, **settings)
    assert out.shape == (6, 4) and (out.ravel() == flat).all()
    two = attend(keys, values[..., None], queries, **settings)
    assert two.shape == (6, 4, 1) and (two[..., 0] == out).all()


def test_variance_and_one_context():
    keys, values, queries, _, _ = ragged()
    out, variance = attend(keys, values, queries, return_variance=True, noise=0.2)
    mean, expected = Context(keys, values, noise=0.2).predict(queries, return_variance=True)
    np.testing.assert_allclose(out, mean, rtol=0, atol=1e-12)
    np.testing.assert_allclose(variance, expected[:, 0], rtol=0, atol=1e-12)
    assert attend(keys, values, queries[:4], [5, 1, 20, 3]).shape == (4, 2)  # one query for each
    with pytest.raises(finetti.ArgumentError, match="form='cme', not 'nw'"):
        attend(keys, values, queries, form="nw", return_variance=True)


def test_parts_change_nothing_but_let_ctrl_c_through(monkeypatch):
    keys, values, queries, lengths, query_lengths = ragged()
    many = [np.tile(array, (50, 1)) for array in (keys, values, queries)]
    whole = attend(*many, np.tile(lengths, 50), np.tile(query_lengths, 50), return_variance=True)
    calls = []
    forward = _attend._Batch.forward
    monkeypatch.setattr(_attend._Batch, "forward", lambda self, *args: calls.append(args[1:3]) or forward(self, *args))
    monkeypatch.setattr(_attend, "_WORK", 40000)
    parts = attend(*many, np.tile(lengths, 50), np.tile(query_lengths, 50), return_variance=True)
    assert len(calls) > 5 and [last for _, last in calls] == [first for first, _ in calls[1:]] + [200]
    for a, b in zip(whole, parts):
        assert (a == b).all()
    many[0][29 * 40 + 5] = np.nan  # context 161 has one token
    with pytest.raises(finetti.ArgumentError, match="context 161 "):
        attend(*many, np.tile(lengths, 50), np.tile(query_lengths, 50))


def test_nothing_at_all():
    empty = attend(np.empty((0, 5, 2)), np.empty((0, 5)), np.empty((0, 3, 2)))
    assert empty.shape == (0, 3)
    assert attend(np.empty((0, 2)), np.empty(0), np.ones((3, 2))).tolist() == [0, 0, 0]  # the prior
    with pytest.raises(finetti.FinettiError, match="context 0 has queries but no tokens"):
        attend(np.empty((0, 2)), np.empty(0), np.ones((3, 2)), form="softmax")


@pytest.mark.parametrize("change, kind, words", [
    (lambda k, v, q, l, m: (k.tolist(), v, q, l, m), TypeError, "keys must be a NumPy array"),
    (lambda k, v, q, l, m: (k.astype(np.float32), v, q, l, m), TypeError, "values has dtype float64; .* float32"),
    (lambda k, v, q, l, m: (k, v, q.astype(np.float16), l, m), TypeError, "queries has dtype float16; .* float64"),
    (lambda k, v, q, l, m: (k, v.astype(complex), q, l, m), TypeError, "complex"),
    (lambda k, v, q, l, m: (k, np.ma.masked_array(v), q, l, m), TypeError, "masked"),
    (lambda k, v, q, l, m: (np.asfortranarray(k), v, q, l, m), ValueError, "contiguous"),
    (lambda k, v, q, l, m: (k, v[:-1], q, l, m), ValueError, "a value for every key"),
    (lambda k, v, q, l, m: (k, v, q[:, :2].copy(), l, m), ValueError, "queries have 2 numbers and keys 3"),
    (lambda k, v, q, l, m: (k[0], v, q, l, m), ValueError, "must be"),
    (lambda k, v, q, l, m: (k, v, q, l[:-1], m), ValueError, "lengths sum to 26 and there are 29 keys"),
    (lambda k, v, q, l, m: (k, v, q, l, None), ValueError, "one query for every context"),
    (lambda k, v, q, l, m: (k, v, q, l, [10]), ValueError, "query_lengths has 1 numbers and lengths 4"),
    (lambda k, v, q, l, m: (k, v, q, [30, -1], [5, 5]), ValueError, r"lengths\[1\] = -1"),
    (lambda k, v, q, l, m: (k, v, q, [29.0], [10]), TypeError, "whole numbers"),
    (lambda k, v, q, l, m: (k, v, q, [2**62, 2**62, 2**62, 2**62 + 29], m), ValueError, "sum to"),
    (lambda k, v, q, l, m: (k[None], v[None], q[None], [29], None), ValueError, "equal length"),
    (lambda k, v, q, l, m: (np.full_like(k, np.inf), v, q, l, m), finetti.ArgumentError, "finite"),
    (lambda k, v, q, l, m: (np.empty((29, 0)), v, np.empty((10, 0)), l, m), finetti.ArgumentError, "dk"),
])
def test_bad_input(change, kind, words):
    with pytest.raises(kind, match=words):
        attend(*change(*ragged()))


def test_bad_settings():
    with pytest.raises(TypeError, match="attend.*did you mean 'kernel'"):
        attend(*ragged(), kernl="rbf")
    with pytest.raises(finetti.FinettiError, match="nystrom"):
        attend(*ragged(), method="nystrom")


def test_judge_is_what_the_tool_prints(tmp_path):
    random = np.random.default_rng(5)
    keys, values = random.standard_normal((40, 2)), random.standard_normal((40, 1))
    np.savetxt(tmp_path / "t.csv", np.hstack([keys, values]), "%.17g", ",", header="a,b,y", comments="")
    told = json.loads(tool("attend", tmp_path / "t.csv", "--key", "a,b", "--value", "y", "--scale", 1, "--prior", 1,
                           "--noise", 0.3, "--level", 0, "--loo", "--json"))["loo"]["y"]
    mean, variance = finetti.Context(keys, values, noise=0.3).loo()
    found = finetti.judge(values, mean, variance)
    assert found["coverage"] == {int(level): share for level, share in told.pop("coverage").items()}
    assert {name: found[name] for name in told} == told and found["count"] == sum(found["pit"]) == 40


def test_judge_wants_arrays_of_one_shape():
    one = np.ones(3)
    with pytest.raises(ValueError, match="mean has shape"):
        finetti.judge(one, np.ones(2), one)
    with pytest.raises(TypeError, match="values must be"):
        finetti.judge([1.0], one, one)
    with pytest.raises(finetti.ArgumentError, match="variance 1 is -1"):
        finetti.judge(one, one, np.array([1.0, -1.0, 1.0]))
    assert np.isnan(finetti.judge(np.full(3, np.nan), one, one)["rmse"])
