"""What must not matter, and what must: laws that hold for every input, tried on many small ones.

Where a law holds to the last bit, bytes are compared. Where sums are taken in another order, or numbers are rounded
otherwise before they are used, the limit is stated with its reason.
"""

import pickle

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import finetti
from finetti import families, tasks

seeds = st.integers(0, 2**32 - 1)
QUICK = {"iterations": 8, "restarts": 1, "penalty": 0.3, "gate": "free", "calibrate": "no", "landmarks": 7}
MODELS = [("numbers", "softmax", "linear"), ("numbers", "softmax", "both"), ("numbers", "mixture", "linear"),
          ("numbers", "erf", "linear"), ("classes", "softmax", "linear"), ("classes", "any", "rbf"),
          ("numbers", "embedding", "linear"), ("classes", "mean", "linear"), ("classes", "max", "linear")]
models = st.sampled_from(MODELS)
LIMITS = {"softmax": 1e-8, "erf": 1e-8, "mean": 1e-8, "mixture": 1e-5}
LINEAR = [model for model in MODELS if model[2] == "linear" and model[1] not in ("embedding", "max")]


class Data:
    """Bags of a few tokens, with labels that one of them decides."""

    def __init__(self, seed, dtype=np.float64):
        self.random = random = np.random.default_rng(seed)
        self.n, self.d = int(random.integers(12, 40)), int(random.integers(1, 5))
        self.lengths = random.integers(1, 6, self.n)
        self.offsets = np.cumsum([0, *self.lengths])
        self.tokens = random.normal(size=(self.lengths.sum(), self.d)).astype(dtype)
        self.tokens[self.offsets[:-1], 0] += 3
        self.numbers = self.tokens[self.offsets[:-1], -1].astype(float) + 0.1 * random.normal(size=self.n)

    def labels(self, model):
        return self.numbers if model[0] == "numbers" else self.numbers > np.median(self.numbers)

    def bags(self, tokens=None):
        return finetti.Bags(self.tokens if tokens is None else tokens, lengths=self.lengths)

    def padded(self, filler):
        X = np.full((self.n, self.lengths.max(), self.d), filler, self.tokens.dtype)
        X[np.arange(X.shape[1]) < self.lengths[:, None]] = self.tokens
        return X


def fit(model, X, y, **more):
    kind, name, basis = model
    whole = name in ("embedding", "mean", "max")
    names = {"numbers": "Regressor", "classes": "Classifier"}
    estimator = getattr(finetti, ("BagEmbedding" if whole else "SingleLocation") + names[kind])
    own = {"statistics": name} if whole else {"model": name}
    settings = {key: value for key, value in QUICK.items() if not (whole and key == "gate")}
    return estimator(basis=basis, **own, **settings).fit(X, y, **more)


def answers(model, X):
    """All that a model says about bags, as arrays."""
    found = list(model.predict_proba(X, return_std=True) if hasattr(model, "classes_") else
                 model.predict(X, return_std=True))
    if hasattr(model, "locate") and model.info_["locates"]:
        found.append(np.concatenate([np.ravel(p) for p in model.locate(X)]))
    return found


def bits(found):
    return [array.tobytes() for array in found]


def close(a, b, limit):
    for left, right in zip(a, b):
        np.testing.assert_allclose(left, right, rtol=limit, atol=limit * max(1, np.abs(right).max()))


# ---- layouts, order, types ----------------------------------------------------------------------------

@given(seeds, models, st.sampled_from([np.float32, np.float64]))
def test_layouts_make_no_difference(seed, model, dtype):
    data = Data(seed, dtype)
    y = data.labels(model)
    expected = bits(answers(fit(model, data.bags(), y), data.bags()))
    groups = np.repeat(np.arange(data.n), data.lengths)
    # Rows of bags that are mixed up, but with first rows, and rows of a bag, in their order.
    mixed = np.lexsort((groups, np.where(np.isin(np.arange(len(groups)), data.offsets[:-1]), 0, 1)))
    for X, labels, more in ((list(data.bags()), y, {}), ((data.tokens, data.lengths), y, {}),
                            (data.padded(np.nan), y, {"lengths": data.lengths}),
                            (np.asfortranarray(data.tokens), y, {"lengths": data.lengths}),
                            (data.tokens, y[groups], {"groups": [f"bag {i}" for i in groups]}),
                            (data.tokens[mixed], y, {"groups": groups[mixed]})):
        assert bits(answers(fit(model, X, labels, **more), data.bags())) == expected


@given(seeds, models, st.sampled_from([0.0, np.nan, np.inf, -1e308]))
def test_padding_is_not_looked_at(seed, model, filler):
    data = Data(seed)
    X, there = data.padded(filler), np.arange(data.lengths.max()) < data.lengths[:, None]
    fitted = fit(model, data.bags(), data.labels(model))
    expected = answers(fitted, data.bags())
    assert fitted.predict(X, lengths=data.lengths).tobytes() == fitted.predict(data.bags()).tobytes()
    if len(expected) == 3:
        place = fitted.locate(X, lengths=data.lengths)
        assert place[there].tobytes() == expected[2].tobytes() and (place[~there] == 0).all()


@given(seeds, models)
def test_the_order_of_bags_and_tokens(seed, model):
    data = Data(seed)
    fitted = fit(model, data.bags(), data.labels(model))
    bags, expected = data.bags(), answers(fitted, data.bags())
    order = data.random.permutation(data.n)
    assert bits(answers(fitted, bags[order])[:2]) == bits(array[order] for array in expected[:2])
    within = np.concatenate([begin + data.random.permutation(length)
                             for begin, length in zip(data.offsets, data.lengths)])
    found = answers(fitted, data.bags(data.tokens[within]))
    # Sums over the tokens of a bag in another order: a few roundings, and standard deviations are of differences.
    close(found[:2], expected[:2], 1e-9)
    if len(expected) == 3:
        np.testing.assert_allclose(found[2], expected[2][within], rtol=1e-9, atol=1e-14)
        sums = np.add.reduceat(expected[2], data.offsets[:-1])
        np.testing.assert_allclose(sums, 1, rtol=0, atol=1e-14 * data.lengths.max())
        assert (expected[2] >= 0).all()


@given(seeds, models)
def test_single_precision_is_the_same_numbers(seed, model):
    data = Data(seed, np.float32)
    single = fit(model, data.bags(), data.labels(model))
    double = fit(model, data.bags(data.tokens.astype(np.float64)), data.labels(model))
    # Tokens are widened before anything is computed with them.
    assert bits(answers(single, data.bags())) == bits(answers(double, data.bags(data.tokens.astype(np.float64))))


# ---- units --------------------------------------------------------------------------------------------

@given(seeds, models, st.integers(-200, 200), st.integers(-100, 100))
def test_units_that_are_powers_of_two(seed, model, columns, labels):
    """Columns are divided by their deviation and labels by theirs: exact in binary."""
    data = Data(seed)
    fitted = fit(model, data.bags(), data.labels(model))
    other = data.bags(np.ldexp(data.tokens, columns + np.arange(data.d)))
    unit = 2.0**labels if model[0] == "numbers" else 1.0
    labels = data.labels(model)
    scaled = answers(fit(model, other, labels * unit if model[0] == "numbers" else labels), other)
    scaled[:2] = [array / unit for array in scaled[:2]]
    assert bits(scaled) == bits(answers(fitted, data.bags()))


@given(seeds, st.sampled_from(LINEAR), st.floats(0.01, 100), st.floats(-10, 10))
def test_units_and_origins(seed, model, factor, shift):
    """Any other unit or origin changes standardised tokens by some units in the last place, 1e-15 after a shift. Eight
    iterations of L-BFGS multiply that by the condition of the problem, some 1e6 with this penalty; more
    for the mixture, which divides residuals by a noise that it fits as well."""
    data = Data(seed)
    signs = np.where(data.random.random(data.d) < 0.5, factor, 1 / factor)
    other = data.bags(data.tokens * signs + shift)
    y = data.numbers * factor + shift if model[0] == "numbers" else data.labels(model)
    found = answers(fit(model, other, y), other)
    if model[0] == "numbers":
        found[0], found[1] = (found[0] - shift) / factor, found[1] / factor
    close(found, answers(fit(model, data.bags(), data.labels(model)), data.bags()), LIMITS[model[1]])


@given(seeds, st.sampled_from(LINEAR), st.integers(2, 4))
def test_equal_weights_are_copies(seed, model, times):
    """The sum of losses, beside which the penalty stands, is the same. What is not: the noise, whose degrees of freedom
    count bags; for numbers the lengths of keys, which are fitted again if bags are not few, with a small penalty that
    counts them (1e-4); and with unequal weights the deviations of columns, for which all tokens count alike."""
    data = Data(seed)
    assume(data.n >= 5 * data.d)
    copies = np.tile(np.arange(data.n), times)
    y = data.labels(model)
    weighted = answers(fit(model, data.bags(), y, sample_weight=np.full(data.n, float(times))), data.bags())
    copied = answers(fit(model, data.bags()[copies], y[copies]), data.bags())
    close(weighted[::2], copied[::2], 1e-4 if model[0] == "numbers" else 1e-8)


@given(seeds, models)
def test_weight_zero_is_absence(seed, model):
    data = Data(seed)
    there = data.random.random(data.n) < 0.7
    assume(there.sum() > 5 and len(set(data.labels(model)[there])) > 1)
    weights = np.where(there, data.random.choice([1.0, 3.0], data.n), 0)
    y = data.labels(model)
    estimator = fit(model, data.bags(), y)
    found = [bits(answers(estimator.fit(bags, labels, sample_weight=w), data.bags())) for bags, labels, w in (
        (data.bags()[there], y[there], weights[there]), (data.bags(), y, weights))]
    assert found[0] == found[1]


# ---- threads and pickles ------------------------------------------------------------------------------

@given(seeds, models)
def test_threads_and_pickles_change_no_bit(seed, model):
    data = Data(seed)
    try:
        found = []
        for threads in (1, 2, 3):
            finetti.set_threads(threads)
            fitted = fit(model, data.bags(), data.labels(model))
            for one in (fitted, pickle.loads(pickle.dumps(fitted))):
                found.append(bits(answers(one, data.bags())))
    finally:
        finetti.set_threads(0)
    assert all(one == found[0] for one in found)


# ---- contexts -----------------------------------------------------------------------------------------

KERNELS = ["linear", "polynomial", "rbf", "matern32", "matern52", "exponential"]
forms = st.one_of(st.builds(lambda kernel, level: dict(kernel=kernel, noise=0.1, level=level),
                            st.sampled_from(KERNELS), st.sampled_from([0.0, 1.0])),
                  st.builds(lambda t: dict(form="softmax", temperature=t), st.floats(0.2, 10)),
                  st.builds(lambda kernel: dict(form="nw", kernel=kernel), st.sampled_from(KERNELS[2:5])))


def tokens(seed):
    random = np.random.default_rng(seed)
    n, d, dv = random.integers((2, 1, 1), (30, 5, 3))
    return random, random.normal(size=(n, d)), random.normal(size=(n, dv)), random.normal(size=(7, d))


@given(seeds, forms, st.integers(1, 5))
def test_a_context_is_what_is_in_it(seed, form, step):
    """Appended, dropped, in another order. With noise 0.1 the matrix has a condition of some 1e4 at most (the
    exponential and polynomial kernels 1e7), which an update multiplies roundings by."""
    random, keys, values, queries = tokens(seed)
    n, limit = len(keys), 1e-7 if form.get("kernel") in ("exponential", "polynomial") else 1e-10
    expected = finetti.Context(keys, values, **form).predict(queries, True, True)
    first = finetti.Context(keys[:0], values[:0], capacity=n, **form)
    extra = random.normal(size=(step, keys.shape[1])), random.normal(size=(step, values.shape[1]))
    first.append(*extra)
    for i in range(0, n, step):
        first.append(keys[i:i + step], values[i:i + step])
    first.drop(step)
    assert len(first) == n
    close(first.predict(queries, True, True), expected, limit)
    order = random.permutation(n)
    mean, variance, weights = finetti.Context(keys[order], values[order], **form).predict(queries, True, True)
    close((mean, variance, weights), (*expected[:2], expected[2][:, order]), limit)
    close([expected[2] @ values], [expected[0]], limit)
    if form.get("form"):
        np.testing.assert_allclose(expected[2].sum(axis=1), 1, rtol=0, atol=4e-16 * n)
        assert (expected[2] >= 0).all()
        assert (expected[0] <= values.max(axis=0) + 1e-12).all() and (expected[0] >= values.min(axis=0) - 1e-12).all()


@given(seeds, forms)
def test_contexts_of_a_batch_do_not_know_each_other(seed, form):
    random, keys, values, queries = tokens(seed)
    cut = int(random.integers(1, len(keys)))
    lengths, asked = [cut, len(keys) - cut], [3, 4]
    together = finetti.attend(keys, values, queries, lengths, asked, **form)
    apart = [finetti.attend(keys[:cut], values[:cut], queries[:3], **form),
             finetti.attend(keys[cut:], values[cut:], queries[3:], **form)]
    assert together.tobytes() == np.concatenate(apart).tobytes()


@given(seeds, st.sampled_from(["cme", "softmax", "nw"]), st.integers(-300, 300))
def test_attention_regressor_does_not_see_units(seed, form, power):
    """Columns are standardised in units that are powers of two: others change no bit."""
    random, keys, values, queries = tokens(seed)
    assume(len(keys) > 2)
    model = finetti.AttentionRegressor(form=form, tune=False, standardize=True)
    expected = model.fit(keys, values).predict(queries, return_std=True)
    found = model.fit(np.ldexp(keys, power), values).predict(np.ldexp(queries, power), return_std=True)
    assert bits(found) == bits(expected)
    order = random.permutation(len(keys))
    close(model.fit(keys[order], values[order]).predict(queries, return_std=True), expected, 1e-8)


# ---- the laboratory -----------------------------------------------------------------------------------

@given(seeds, st.sampled_from(["erf", "linear", "shifted", "softmax"]), st.sampled_from(["slr", "spiked"]))
def test_risks_of_arrays_are_risks_of_numbers(seed, form, task):
    random = np.random.default_rng(seed)
    arrays = {"kappa": random.uniform(-0.7, 0.7, (2, 1)), "nu": random.uniform(-0.7, 0.7, 2), "L": [[3], [9]],
              "lam": random.uniform(0, 2, 2)}
    result = finetti.risk(task, form, samples=50, **arrays)
    for place in np.ndindex(2, 2):
        one = {name: np.broadcast_to(array, (2, 2))[place].item() for name, array in arrays.items()}
        assert finetti.risk(task, form, samples=50, **one).risk == result.risk[place]


@given(st.floats(-0.7, 0.7), st.floats(-0.7, 0.7), st.floats(-0.5, 0.5), st.floats(-0.5, 0.5), st.floats(0.01, 5))
def test_the_predictor_is_even(kappa, nu, theta, eta, lam):
    """erf is odd, so that (-k, -v) predicts what (k, v) does."""
    one = finetti.risk(kappa=kappa, nu=nu, theta=theta, eta=eta, lam=lam)
    two = finetti.risk(kappa=-kappa, nu=-nu, theta=-theta, eta=-eta, lam=lam)
    assert two.risk == pytest.approx(one.risk, rel=1e-12)
    for name, sign in (("kappa", -1), ("nu", -1), ("theta", -1), ("eta", -1), ("rho", 1)):
        assert two.gradient[name] == pytest.approx(sign * one.gradient[name], rel=1e-9, abs=1e-12)


@given(seeds, st.integers(1, 30), st.integers(0, 30), st.sampled_from(tasks.names()))
def test_samples_and_runs_depend_on_their_number_alone(seed, n, first, name):
    task = getattr(tasks, name)(d=5, L=4, L_min=2, seed=seed)
    X, y, location = task.draw(first + n)
    later, y2, location2 = task.draw(n, first=first)
    assert later.tokens.tobytes() == X.tokens[X.offsets[first]:].tobytes()
    assert y2.tobytes() == y[first:].tobytes() and location2.tobytes() == location[first:].tobytes()
    posterior = task.posterior(X)
    np.testing.assert_allclose([p.sum() for p in posterior], 1, rtol=0, atol=1e-14)
    few, more = (finetti.train(name, form="softmax" if name == "max" else "erf", engine="reduced", steps=3, runs=runs,
                               risk_samples=10, seed=seed, d=5) for runs in (2, 4))
    assert more.kappa[:2].tobytes() == few.kappa.tobytes()


@given(seeds, st.sampled_from([name for name in families.names() if name not in ("process", "urn")]))
def test_longer_sequences_begin_with_shorter_ones(seed, name):
    family = getattr(families, name)(seed=seed)
    short, long = family.draw(3, 4), family.draw(5, 9)
    assert short.keys.tobytes() == long.keys[:3, :4].tobytes()
    assert short.values.tobytes() == long.values[:3, :4].tobytes()
    whole = family.predict(long.keys, long.values, long.keys[0])
    alone = family.predict(long.keys[2], long.values[2], long.keys[0])
    assert whole[2].tobytes() == alone.tobytes()
    if family.outcomes:
        np.testing.assert_allclose(whole.sum(axis=-1), 1, rtol=0, atol=1e-14 * family.outcomes)
