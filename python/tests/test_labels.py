"""Labels and weights of bag estimators: of any type, none altered on the way, and nonsense refused in a sentence."""

import numpy as np
import pandas as pd
import pytest
from bag_sample import BAGS, CLASSIFIERS, REGRESSORS, SIGN, Y
from sklearn.model_selection import cross_val_score

from finetti import SingleLocationClassifier, SingleLocationRegressor


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


    for y in (pd.Series(SIGN, dtype="Int64"), pd.Series(SIGN == 1, dtype="boolean")):
        assert np.isfinite(cross_val_score(SingleLocationClassifier(), BAGS, y, cv=3)).all()


def test_classes_are_not_merged():
    large = 2**53
    whole = SingleLocationClassifier().fit(BAGS, large + SIGN)
    assert whole.classes_.tolist() == [large, large + 1] and whole.classes_.dtype == np.int64
    for y in ([large + int(s) for s in SIGN], np.array([large + int(s) for s in SIGN], object)):
        assert SingleLocationClassifier().fit(BAGS, y).classes_.tolist() == [large, large + 1]
    with pytest.raises(ValueError, match=f"{large + 2} is none of the classes"):
        SingleLocationClassifier(model="mixture").fit(BAGS, large + SIGN).locate(BAGS, [large + 2] * 60)
    for some in ([large + 1, 0.5], [2**63 + 1, -1], [1, "1"], [b"a", "a"]):
        with pytest.raises(ValueError, match="Unknown label type: y has the label"):
            SingleLocationClassifier().fit(BAGS, [some[s] for s in SIGN])


def test_a_score_compares_labels_of_one_type():
    names = np.array(["no", "yes"])[SIGN]
    model, text = SingleLocationClassifier().fit(BAGS, SIGN), SingleLocationClassifier().fit(BAGS, names)
    for y in (SIGN == 1, SIGN.astype(float)):
        assert model.score(BAGS, y) == text.score(BAGS, names.astype(object))
    assert text.score(BAGS, ["maybe"] * 60) == 0
    for fitted, y in ((model, names), (model, SIGN.astype(str)), (text, SIGN), (text, names.astype(bytes))):
        with pytest.raises(ValueError, match="and the classes of the fit are"):
            fitted.score(BAGS, y)
    with pytest.raises(ValueError, match="bag 7 has no label"):
        text.score(BAGS, np.where(np.arange(60) == 7, None, names))
    with pytest.raises(ValueError, match="bag 7 has no label"):
        SingleLocationRegressor().fit(BAGS, Y).score(BAGS, np.where(np.arange(60) == 7, np.nan, Y))


def test_a_missing_label_is_no_class():
    for y in (["a" if s else np.nan for s in SIGN], ["a" if s else None for s in SIGN],
              np.where(SIGN, np.datetime64("2020-01-01"), np.datetime64("NaT"))):
        with pytest.raises(ValueError, match=f"bag {SIGN.argmin()} has no label"):
            SingleLocationClassifier().fit(BAGS, y)


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
                           (["a"] * 60, "dtype"), ([1e308] * 60, "largest number")]:
        with pytest.raises(ValueError, match=words):
            SingleLocationRegressor().fit(BAGS, Y, sample_weight=weights)
    with pytest.raises(TypeError, match="sample_weight is a masked array"):
        SingleLocationRegressor().fit(BAGS, Y, sample_weight=np.ma.masked_array(np.ones(60), SIGN))
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
