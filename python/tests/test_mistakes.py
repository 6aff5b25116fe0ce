"""Mistakes that are easily made, and that nothing would show: labels in another order than the bags, rows taken as
bags, settings that do not count. They are refused, or a warning says so."""

import warnings

import numpy as np
import pandas as pd
import pytest
from bag_sample import BAGS, CLASSIFIERS, REGRESSORS, SIGN, Y

import finetti
from finetti import AttentionRegressor, Bags, PerToken, SingleLocationClassifier, SingleLocationRegressor
from finetti import families, tasks

FLAT, LENGTHS = np.concatenate(BAGS), [len(bag) for bag in BAGS]


# ---- pandas: who belongs to whom --------------------------------------------------------------------

def table(names=None):
    """The bags as a DataFrame, whose groups are not in the order of the alphabet."""
    frame = pd.DataFrame(FLAT, columns=list("abcd"), index=np.arange(len(FLAT)) * 3)
    names = [f"m{59 - i:02}" for i in range(60)] if names is None else names
    frame["id"], frame["y"] = np.repeat(names, LENGTHS), np.repeat(Y, LENGTHS)
    return frame, frame[list("abcd")]


@pytest.mark.parametrize("names", [None, np.arange(60)[::-1], np.arange(60)[::-1] + 0.5,
                                   np.arange(60)[::-1].astype("datetime64[D]").astype("datetime64[ns]")])
def test_labels_in_another_order_than_the_bags(names):
    frame, X = table(names)
    want = SingleLocationRegressor().fit(BAGS, Y).predict(BAGS).tobytes()
    y = frame.groupby("id")["y"].first()
    bags = Bags(X, groups=frame.id)
    model = SingleLocationRegressor()
    for call in (lambda: model.fit(X, y, groups=frame.id), lambda: model.fit(bags, y),
                 lambda: model.fit((X, frame.id), y), lambda: model.fit(X, Y, groups=frame.id, sample_weight=y),
                 lambda: PerToken(None).fit(bags, y)):
        with pytest.raises(ValueError, match=r"another order than the bags.*(y|sample_weight)\.loc\[bags.names\]"):
            call()
    for right in (y.loc[bags.names], frame.groupby("id", sort=False)["y"].first(), frame["y"], y.to_numpy()[::-1]):
        assert model.fit(X, right, groups=frame.id).predict(X, groups=frame.id).tobytes() == want
    for call in (model.score, model.locate):
        call(X, y.loc[bags.names], groups=frame.id)
        with pytest.raises(ValueError, match="another order than the bags"):
            call(X, y, groups=frame.id)


def test_a_part_of_labels_in_another_order():
    frame, X = table()
    bags, y = Bags(X, groups=frame.id), frame.groupby("id")["y"].first()
    with pytest.raises(ValueError, match="another order than the bags"):  # what cross-validation would do
        SingleLocationRegressor().fit(bags[:40], y[:40])
    SingleLocationRegressor().fit(bags[:40], y.loc[bags.names][:40])


def test_labels_that_are_only_counted():
    for names in (None, np.arange(60) + 5, np.arange(60)):
        frame, X = table(names)
        SingleLocationRegressor().fit(X, pd.Series(Y), groups=frame.id)
        SingleLocationRegressor().fit(X.to_numpy(), pd.Series(Y, index=range(7, 67)), groups=frame.id.to_numpy())


def test_rows_of_different_frames():
    frame, X = table()
    model = SingleLocationRegressor().fit(X, frame["y"], groups=frame.id)
    other = frame.reset_index(drop=True)
    with pytest.raises(ValueError, match=r"groups and X .* indexes \(row 1: 1 and 3\).*groups.loc\[X.index\]"):
        model.predict(X, groups=other.id)
    for call in (lambda: model.fit(X, other["y"], groups=frame.id),
                 lambda: model.fit(Bags(X, groups=frame.id), frame["y"][::-1])):
        with pytest.raises(ValueError, match=r"y and X have different indexes.*y.loc\[X.index\]"):
            call()
    with pytest.raises(ValueError, match="sample_weight and X have different indexes"):
        model.fit(X, Y, groups=frame.id, sample_weight=other["y"] ** 2)
    for groups in (other.id.to_numpy(), list(other.id)):
        model.fit(X, other["y"].to_numpy(), groups=groups)
    model.fit(X.to_numpy(), other["y"], groups=frame.id)  # an array has no index
    first = X.groupby(frame.id, sort=False).first()
    model.fit(first, pd.Series(Y))  # as in scikit-learn, where nothing says that rows have groups
    gaps = frame.set_index(pd.Index([np.nan, *range(1, len(frame))]))
    model.fit(gaps[list("abcd")], gaps["y"], groups=gaps.id)


# ---- rows as bags -----------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
def test_rows_that_become_bags(kind):
    model, y = kind().fit(BAGS, SIGN), SIGN[:2]
    names = [name for name in ("predict", "predict_proba", "predict_interval", "locate") if hasattr(model, name)]
    asks = [getattr(model, name) for name in names] + [lambda X, **how: model.score(X, y, **how)]
    for ask in asks:
        with pytest.warns(UserWarning, match=r"each of its 2 rows is taken as a bag.*lengths.*groups.*\[X\]") as seen:
            ask(FLAT[:2])
        assert len(seen) == 1 and seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask in asks:
            ask(FLAT[:2], lengths=[1, 1]), ask(FLAT[:2], groups=[0, 1]), ask((FLAT[:2], ["a", "b"]))
            ask([FLAT[:1], FLAT[1:2]]), ask(Bags(FLAT[:2])), ask(FLAT[:2, None])
        model.predict([FLAT[:2]]), model.predict(FLAT[:1])
        single = kind().fit(Bags(FLAT[:40]), np.arange(40) % 2)
        single.predict(FLAT)


# ---- settings ---------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["tune", "ard", "standardize"])
def test_truth_values(name):
    X, y = FLAT[:30], FLAT[:30, 0] + np.sin(np.arange(30))
    for wrong in ("no", "False", None, 2, 0.5, []):
        with pytest.raises(TypeError, match=f"{name} is .*it is True or False"):
            AttentionRegressor(**{name: wrong}).fit(X, y)
    for value in (False, True):
        want = AttentionRegressor(**{name: value}).fit(X, y).predict(X).tobytes()
        for same in (int(value), np.bool_(value), np.int64(value)):
            assert AttentionRegressor(**{name: same}).fit(X, y).predict(X).tobytes() == want


def test_words_of_wrong_calls():
    for kind in (*CLASSIFIERS, *REGRESSORS, AttentionRegressor):
        with pytest.raises(TypeError, match=rf"^{kind.__name__}\(\) takes keywords only"):
            kind("mixture")
    for kind in CLASSIFIERS + REGRESSORS:
        with pytest.raises(TypeError, match=r"by name: lengths=\.\.\., groups=\.\.\."):
            kind().fit(FLAT, SIGN, np.repeat(np.arange(60), LENGTHS))
        for seed in (-1, 2**53 + 1, 2**70):
            with pytest.raises(finetti.ArgumentError, match=f"^random_state = {seed}; "):
                kind(random_state=seed).fit(BAGS, SIGN)
    with pytest.raises(finetti.ArgumentError, match="^random_state = -1; "):
        AttentionRegressor(random_state=-1).fit(FLAT, FLAT[:, 0])


@pytest.mark.parametrize("model", ["mixture", "any", "mean"])
def test_heads_that_do_not_count(model):
    with pytest.warns(UserWarning, match=f"model='{model}' has one head; heads=3 counts for softmax, erf") as seen:
        SingleLocationClassifier(model=model, heads=3).fit(BAGS, SIGN)
    assert seen[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        SingleLocationClassifier(model=model).fit(BAGS, SIGN)
        SingleLocationClassifier(model=model, heads=None).fit(BAGS, SIGN)
        for other in ("softmax", "erf", "linear"):
            SingleLocationClassifier(model=other, heads=3).fit(BAGS, SIGN)


# ---- nothing, and names -----------------------------------------------------------------------------

def test_no_samples():
    X, y, location = tasks.slr(d=3, L=4).draw(0)
    assert X.shape == (0, 4, 3) and X.dtype == np.float32 and y.shape == location.shape == (0,)
    assert tasks.slr(d=3, L=4, m=2).draw(0)[2].shape == (0, 2)
    bags, y, _ = tasks.slr(d=3, L=4, L_min=2).draw(0)
    assert len(bags) == 0 and bags.tokens.shape == (0, 3)
    assert tasks.slr(d=3, L=4).project(0)["chi"].shape == (0, 4)
    for name in families.names():
        family = getattr(families, name)()
        sample = family.draw(0, 5, 2)
        assert sample.values.shape == (0, 5, family.dv) and sample.queries.shape == (0, 2, family.dk)


def test_names_to_complete():
    assert set(dir(tasks)) == {"Task", "names", *tasks.names()}
    assert set(dir(families)) == {"Family", "Sample", "names", *families.names()}


def test_a_figure_is_short():
    figure = finetti.study({"study": "short", "runs": [{"id": "grid", "command": "risk", "axes": {"lam": [0.1, 1]}}]}
                           ).figure(x="lam", y="risk")
    assert repr(figure).startswith("<Figure of ") and len(repr(figure)) < 100 and "<svg" in figure.svg
