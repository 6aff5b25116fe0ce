"""Bad input, systematically: a table of odd values against a table of arguments.

A cell of the table either gives the numbers that the same values give as a plain array of float64, or refuses with a
sentence. What crashes, hangs, answers otherwise, or fails somewhere inside with words that help nobody, fails here.
"""

import re
import tempfile

import numpy as np
import pandas
import pytest
from scipy.sparse import csr_matrix

import finetti
from finetti import families, tasks

random = np.random.default_rng(0)
X = random.integers(-3, 4, (20, 3, 2)).astype(float)
X[:, 0, 0] += 5
Y = X[:, 0, 1].copy()
ROWS = X.reshape(60, 2)
KEYS = random.integers(-3, 4, (12, 2)).astype(float)
VALUES, QUERIES = KEYS[:, 0] + 1, KEYS[:4].copy()
QUICK = {"iterations": 3, "restarts": 1, "penalty": 1.0, "gate": "free", "calibrate": "no"}
REGRESSOR = finetti.SingleLocationRegressor(**QUICK).fit(X, Y)
CLASSIFIER = finetti.SingleLocationClassifier(**QUICK).fit(X, Y > 0)
EMBEDDING = finetti.BagEmbeddingRegressor(landmarks=5).fit(X, Y)
ATTENTION = finetti.AttentionRegressor(tune=False).fit(KEYS, VALUES)
CONTEXT = finetti.Context(KEYS, VALUES)
TASK = tasks.slr(d=2, L=3)
FAMILY = families.concept(d=2)
AXES = np.eye(5)


class Subclass(np.ndarray):
    """Means nothing else than an array."""


def frozen(array):
    array = array.copy()
    array.setflags(write=False)
    return array


def mapped(array):
    with tempfile.TemporaryFile() as file:
        array.tofile(file)
        file.flush()
        return np.memmap(file, array.dtype, "r", shape=array.shape)


def last(array, value):
    array = array.copy()
    array.flat[-1] = value
    return array


def sparse(array):
    return csr_matrix(np.atleast_2d(array.astype(float).reshape(len(array), -1)))


# ---- values -----------------------------------------------------------------------------------------

# Other memory, the same numbers. Strict arguments refuse what would have to be copied, with these words.
SAME = {
    "read-only": (frozen, None),
    "mapped": (mapped, None),
    "subclass": (lambda a: a.view(Subclass), None),
    "bigger": (lambda a: np.concatenate([a, a])[:len(a)], None),
    "objects": (lambda a: a.astype(object), "objects"),
    "float16": (lambda a: a.astype(np.float16), r"float16.*astype\(np.float"),
    "longdouble": (lambda a: a.astype(np.longdouble), r"astype\(np.float"),
    "integers": (lambda a: a.astype(int), r"int64.*astype\(np.float"),
    "strided": (lambda a: np.repeat(a, 2, axis=-1)[..., ::2], "ascontiguousarray"),
    "backwards": (lambda a: a[::-1].copy()[::-1], "ascontiguousarray"),
    "swapped": (lambda a: a.astype(a.dtype.newbyteorder()), r"astype\(np.float"),
    "list": (lambda a: a.tolist(), "NumPy array"),
}

# What nothing takes, and words that the refusal has.
REFUSED = {
    "complex": (lambda a: a + 0j, "[Cc]omplex"),
    "masked": (lambda a: np.ma.masked_array(a, np.arange(a.size).reshape(a.shape) == 0), "masked"),
    "words": (lambda a: np.full(a.shape, "abc"), "text|string|number|abc"),
    "words as objects": (lambda a: np.full(a.shape, "abc", object), "text|string|object|abc"),
    "dates": (lambda a: np.zeros(a.shape, "M8[s]"), "datetime|date|time"),
    "records": (lambda a: np.zeros(a.shape, [("a", "f8")]), r"record|\('a'|text is no number|numbers|another type"),
    "a set": (lambda a: {1, 2}, ""),
    "a dict": (lambda a: {"a": 1}, ""),
    "a generator": (lambda a: (row for row in a), ""),
    "a text": (lambda a: "abc", ""),
    "bytes": (lambda a: b"abc", ""),
    "a function": (lambda a: len, ""),
    "a type": (lambda a: np.ndarray, ""),
    "no axes": (lambda a: np.array("abc"), ""),
    "five axes": (lambda a: np.ones((2,) * 5, dtype="U1"), ""),
    "sparse": (sparse, ""),
}
NOT_FINITE = {"NaN": lambda a: last(a, np.nan), "inf": lambda a: last(a, np.inf), "-inf": lambda a: last(a, -np.inf)}

# Words of errors from inside, which say nothing about what to do.
INSIDE = re.compile("has no attribute|unhashable|not subscriptable|unpack|object is not iterable|has no len|unsized|"
                    "not supported between|unsupported operand|ambiguous|NoneType' object|cannot reshape|broadcast")


# ---- arguments --------------------------------------------------------------------------------------

def fit(kind, X, y, **more):
    return kind(**QUICK).fit(X, y, **more).predict(globals()["X"])


def appended(keys, values):
    context = finetti.Context(KEYS, VALUES)
    context.append(keys, values)
    return context.predict(QUERIES)


POINTS = np.tile([[1, 1, 0, 0, 0, 1, 1, 14, 0, 1, 10, 0.0]], (3, 1))
ATTEND = finetti.attend
STRICT = {  # arrays of float64 that are not copied
    "Context.keys": (KEYS, lambda a: finetti.Context(a, VALUES).predict(QUERIES)),
    "Context.values": (VALUES, lambda a: finetti.Context(KEYS, a).predict(QUERIES)),
    "Context.scales": (np.ones(2), lambda a: finetti.Context(KEYS, VALUES, scales=a).predict(QUERIES)),
    "Context.predict": (QUERIES, lambda a: CONTEXT.predict(a, True, True)),
    "Context.append keys": (KEYS, lambda a: appended(a, VALUES)),
    "Context.append values": (VALUES, lambda a: appended(KEYS, a)),
    "Context.prefix": (QUERIES, lambda a: CONTEXT.prefix(a, VALUES[:4])),
    "Context.prefix answers": (VALUES[:4], lambda a: CONTEXT.prefix(QUERIES, a)),
    "attend keys": (KEYS, lambda a: ATTEND(a, VALUES, QUERIES)),
    "attend values": (VALUES, lambda a: ATTEND(KEYS, a, QUERIES)),
    "attend queries": (QUERIES, lambda a: ATTEND(KEYS, VALUES, a, return_variance=True)),
    "risk_erf": (POINTS, finetti.risk_erf),
    "posterior": (X, TASK.posterior),
    "task predict": (X, TASK.predict),
    "k_star": (AXES[0], lambda a: tasks.slr(d=5, k_star=a, v_star=AXES[1]).draw(2)[0]),
    "v_star": (AXES[1], lambda a: tasks.slr(d=5, k_star=AXES[0], v_star=a).draw(2)[0]),
    "start k": (AXES[0], lambda a: finetti.train(d=5, runs=2, steps=3, start=(a, AXES[1])).kappa),
    "start v": (AXES, lambda a: finetti.train(d=5, runs=5, steps=3, start=(AXES, a)).nu),
    "family keys": (KEYS, lambda a: FAMILY.predict(a, VALUES, QUERIES, return_variance=True)),
    "family values": (VALUES, lambda a: FAMILY.posterior(KEYS, a)["mean"]),
    "family queries": (QUERIES, lambda a: FAMILY.predict(KEYS, VALUES, a)),
    "family statistic": (FAMILY.statistic(KEYS, VALUES), lambda a: FAMILY.posterior(statistic=a)["mean"]),
}
LOOSE = {  # arrays that are converted as scikit-learn does
    "Bags of rows": (ROWS, lambda a: finetti.Bags(a, lengths=[30, 30]).tokens),
    "Bags": (X, lambda a: finetti.Bags(a).tokens),
    "Bags of a list": (ROWS, lambda a: finetti.Bags([ROWS, a]).tokens),
    "replace": (ROWS, lambda a: finetti.Bags(X).replace(a).tokens),
    "fit X": (X, lambda a: fit(finetti.SingleLocationRegressor, a, Y)),
    "fit y": (Y, lambda a: fit(finetti.SingleLocationRegressor, X, a)),
    "fit weights": (abs(Y) + 1, lambda a: fit(finetti.SingleLocationRegressor, X, Y, sample_weight=a)),
    "fit classes": (Y, lambda a: fit(finetti.SingleLocationClassifier, X, a)),
    "embedding fit": (X, lambda a: finetti.BagEmbeddingRegressor(landmarks=5).fit(a, Y).predict(X)),
    "predict": (X, REGRESSOR.predict),
    "predict_interval": (X, REGRESSOR.predict_interval),
    "locate": (X, lambda a: np.stack(REGRESSOR.locate(a))),
    "locate y": (Y, lambda a: REGRESSOR.locate(X, a)),
    "classifier locate y": ((Y > 0).astype(float), lambda a: CLASSIFIER.locate(X, a)),
    "predict_proba": (X, CLASSIFIER.predict_proba),
    "embedding predict": (X, EMBEDDING.predict),
    "score y": (Y, lambda a: REGRESSOR.score(X, a)),
    "attention fit X": (KEYS, lambda a: finetti.AttentionRegressor(tune=False).fit(a, VALUES).predict(QUERIES)),
    "attention fit y": (VALUES, lambda a: finetti.AttentionRegressor(tune=False).fit(KEYS, a).predict(QUERIES)),
    "attention scales": (np.ones(2), lambda a: finetti.AttentionRegressor(tune=False, scales=a).fit(
        KEYS, VALUES).predict(QUERIES)),
    "attention predict": (QUERIES, lambda a: ATTENTION.predict(a, return_std=True)),
    "attention weights": (QUERIES, ATTENTION.weights),
    "settings of risk": (np.array([1.0, 2]), lambda a: finetti.risk(lam=a).risk),
    "settings of simulated risk": (np.array([1.0, 2]), lambda a: finetti.risk(form="softmax", method="simulation", samples=9, lam=a).risk),
    "settings of lam_star": (np.array([9.0, 4]), lambda a: finetti.lam_star("spiked", snr=a).lam),
    "start overlaps": (np.array([0.0, 1]), lambda a: finetti.train(runs=2, steps=3, start={"kappa": a}).kappa),
}
WHOLE = {  # whole numbers
    "lengths": (np.full(20, 3), lambda a: finetti.Bags(ROWS, lengths=a).offsets),
    "lengths of a tuple": (np.full(20, 3), lambda a: finetti.Bags((ROWS, a)).offsets),
    "lengths of padded bags": (np.full(20, 2), lambda a: finetti.Bags(X, lengths=a).tokens),
    "attend lengths": (np.array([5, 7]), lambda a: ATTEND(KEYS, VALUES, QUERIES, a, [2, 2])),
    "attend query_lengths": (np.array([1, 3]), lambda a: ATTEND(KEYS, VALUES, QUERIES, [5, 7], a)),
    "family L": (np.array([3, 4]), lambda a: FAMILY.risk(a).risk),
    "index": (np.array([3, 4]), lambda a: finetti.Bags(X)[a].tokens),
}
# Missing labels are allowed where labels are looked up; weights and values may be whole or not.
TAKES_NAN = {"Bags", "Bags of rows", "Bags of a list", "replace", "locate y", "classifier locate y"}
# numpy makes one text of a text and a number, a class like any other; so do scikit-learn's classifiers.
TAKES_WORDS = {"fit classes"}


def same(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(*pair) for pair in zip(a, b))
    return np.shape(a) == np.shape(b) and np.allclose(np.asarray(a, float), np.asarray(b, float), rtol=1e-4, atol=1e-5)


def refusal(call, value, words):
    """None, or what is wrong with how `value` is refused."""
    try:
        result = call(value)
    except (TypeError, ValueError, ArithmeticError, IndexError) as problem:
        text = str(problem)
        if INSIDE.search(text) or len(text) < 20:
            return f"{type(problem).__name__} from inside: {text}"
        return None if re.search(words, text) else f"says {text!r}, which has none of {words!r}"
    return f"is taken: {result!r:.80}"


def acceptance(call, value, expected, words):
    """None, or what is wrong with the answer to `value`; with words it may be refused."""
    try:
        result = call(value)
    except (TypeError, ValueError, IndexError) as problem:
        if words is not None and re.search(words, str(problem)) and not INSIDE.search(str(problem)):
            return None
        return f"is refused: {problem}"
    return None if same(result, expected) else f"gives {result!r:.80} in place of {expected!r:.80}"


@pytest.mark.parametrize("name", [*STRICT, *LOOSE, *WHOLE])
def test_odd_arrays(name):
    array, call = next(table[name] for table in (STRICT, LOOSE, WHOLE) if name in table)
    expected, wrong = call(array), {}
    for odd, (make, words) in SAME.items():
        if name in WHOLE:  # of the floats none is a number of tokens
            words = None if getattr(make(array), "dtype", array.dtype).kind in "iu" else ""
        elif name in LOOSE:
            words = "objects|object" if odd == "objects" else "float128" if odd == "longdouble" else None
        wrong[odd] = acceptance(call, make(array), expected, words)
    for odd, (make, words) in REFUSED.items():
        if name in TAKES_WORDS and odd.startswith("words") or name.startswith("settings of") and odd == "five axes":
            continue  # a setting may be the text of a number
        wrong[odd] = refusal(call, make(array), "" if name in WHOLE and odd != "masked" else words)
    for odd, make in NOT_FINITE.items():
        if name not in WHOLE and not (name in TAKES_NAN and (odd == "NaN" or "y" not in name.split())):
            wrong[odd] = refusal(call, make(array), "NaN|nan|inf|finite")
    wrong = {odd: problem for odd, problem in wrong.items() if problem}
    assert not wrong, "\n".join(f"{odd}: {problem}" for odd, problem in wrong.items())


@pytest.mark.parametrize("name", [*STRICT, *LOOSE])
@pytest.mark.parametrize("factor", [1e300, 1e160, 5e-324, -1e300])
def test_huge_and_tiny_numbers_are_refused_or_give_numbers(name, factor):
    array, call = STRICT.get(name) or LOOSE[name]
    try:
        with np.errstate(over="ignore"):
            result = call(np.asarray(array, dtype=float) * factor)
    except (ValueError, ArithmeticError) as problem:
        assert len(str(problem)) > 20
        return
    parts = result if isinstance(result, tuple) else (result,)
    if name not in ("Context.prefix answers", "score y"):  # squared errors of numbers that have no square
        assert all(np.isfinite(np.asarray(part, float)).all() for part in parts)


@pytest.mark.parametrize("name", [name for name in LOOSE if LOOSE[name][0].ndim == 2])
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_data_frames_are_arrays(name):
    array, call = LOOSE[name]
    frame = pandas.DataFrame(array, columns=["a", "b"])
    if name != "Bags of a list":  # whose other bags are no frames
        assert same(call(frame), call(array))
    frame["a"] = "abc"
    assert refusal(call, frame, "text|string|columns") is None
