"""Bag estimators are right by default: names and defaults of the tool, bags that belong together, columns of bags,
numbers out of range, mistakes that are said, and locations from every model."""

import copy
import os
import pickle
import subprocess
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn.inspection
from bag_sample import BAGS, CLASSIFIERS, REGRESSORS, SIGN, Y, cube
from sklearn.model_selection import GroupKFold, cross_val_score
from tool import TOOL

import finetti
import finetti._fit
from finetti import (Bags, BagEmbeddingClassifier, BagEmbeddingRegressor, SingleLocationClassifier,
                     SingleLocationRegressor)

NAMES = np.array(["benign", "malignant"])
LENGTHS = np.array([len(bag) for bag in BAGS])
ROWS = np.concatenate(BAGS)


def silently(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call()


def tool(*words):
    subprocess.run([TOOL, *words], check=True, capture_output=True)


# ---- names and defaults -----------------------------------------------------------------------------

@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
def test_features_is_called_basis(kind):
    with pytest.raises(TypeError, match="features is called basis now"):
        kind(features="linear")
    assert kind(basis="linear").get_params()["basis"] == "linear"


def test_parts_say_their_basis():
    assert SingleLocationClassifier(basis="rbf", landmarks=5).fit(BAGS, SIGN).info_["parts"] == [
        {"model": "softmax", "basis": "rbf", "weight": 1.0}]
    assert SingleLocationClassifier().fit(BAGS, SIGN).info_["parts"][0]["basis"] == "both"
    assert SingleLocationRegressor().fit(BAGS, Y).info_["parts"][0]["basis"] == "linear"


@pytest.mark.parametrize("kind", [SingleLocationClassifier, SingleLocationRegressor])
def test_defaults_are_those_of_the_table(kind):
    defaults = finetti._fit.TABLE.read(finetti._fit.TABLE.make({}))
    given = kind().get_params()
    assert given["model"] == defaults["model"] == "softmax" and given["basis"] == "auto"
    assert {name: defaults[name] for name in given if name in defaults and name != "positive"} == {
        name: value for name, value in given.items() if name in defaults and name != "positive"}


def test_default_fit_is_that_of_the_tool(tmp_path):
    np.savez(tmp_path / "x.npz", tokens=ROWS, offsets=np.cumsum([0, *LENGTHS]), y=SIGN)
    tool("fit", tmp_path / "x.npz", "--cv", "none", "--quiet", "--out", tmp_path / "m.fin")
    theirs, ours = finetti.load_model(tmp_path / "m.fin"), SingleLocationClassifier().fit(BAGS, SIGN)
    assert theirs.predict_proba(BAGS).tobytes() == ours.predict_proba(BAGS).tobytes()
    assert theirs.model == ours.model and theirs.info_["inner_loss"] == ours.info_["inner_loss"] > 0


@pytest.mark.parametrize("model", ["mixture", "any", "embedding", "mean", "max", "base"])
def test_models_without_heads_say_so(model):
    with pytest.warns(UserWarning, match=f"model='{model}' has one head"):
        SingleLocationClassifier(model=model, heads=2, inner=2, landmarks=5, locator="no").fit(BAGS, SIGN)
    silently(lambda: SingleLocationClassifier(model=model, inner=2, landmarks=5, locator="no").fit(BAGS, SIGN))


def test_models_with_heads_do_not():
    for model in ("softmax", "linear"):
        silently(lambda: SingleLocationRegressor(model=model, heads=2, iterations=10000).fit(BAGS, Y))


# ---- bags that belong together ----------------------------------------------------------------------

def patients(count=12, slides=6, seed=5):
    """Slides that look like their patient, whose label is a coin: nothing can be learnt but who the patient is."""
    random = np.random.default_rng(seed)
    label = np.arange(count) % 2
    own = random.normal(size=(count, 6))
    X = np.repeat(own, slides, axis=0)[:, None] + 0.05 * random.normal(size=(count * slides, 3, 6))
    return X, np.repeat(label, slides), np.repeat(np.arange(count), slides)


def test_inner_folds_keep_groups_together():
    X, y, patient = patients()
    model = SingleLocationClassifier()
    alone, together = model.fit(X, y).info_["inner_loss"], model.fit(X, y, bag_groups=patient).info_["inner_loss"]
    assert alone < 0.4 and together > 0.6  # patients that are in training too are easy
    names = np.array([f"p{i}" for i in range(12)], object)[patient]
    pairs = [("a", n) for n in patient]
    for same in (names, list(names), pd.Series(names), pairs, -1.5 * patient, pd.Categorical(names)):
        assert model.fit(X, y, bag_groups=same).info_["inner_loss"] == together
    assert model.fit(X, y, bag_groups=np.arange(len(y))).info_["inner_loss"] < 0.4


def test_groups_of_rows():
    X, y, patient = patients()
    rows, slide = X.reshape(-1, 6), np.repeat(np.arange(len(X)), 3)
    want = SingleLocationClassifier().fit(X, y, bag_groups=patient).predict_proba(X).tobytes()
    for groups in (patient, np.repeat(patient, 3)):
        model = SingleLocationClassifier().fit(rows, y, groups=slide, bag_groups=groups)
        assert model.predict_proba(X).tobytes() == want
    mixed = np.random.default_rng(0).permutation(len(rows))
    model = SingleLocationClassifier().fit(rows[mixed], y[slide[mixed]], groups=slide[mixed],
                                           bag_groups=patient[slide[mixed]])
    assert model.info_["inner_loss"] > 0.6
    with pytest.raises(ValueError, match="bag_groups differs within bag 0"):
        SingleLocationClassifier().fit(rows, y, groups=slide, bag_groups=np.arange(len(rows)))


def test_weight_0_takes_its_group_along():
    X, y, patient = patients()
    few = SingleLocationClassifier().fit(X[6:], y[6:], bag_groups=patient[6:])
    same = SingleLocationClassifier().fit(X, y, bag_groups=patient, sample_weight=np.arange(72) >= 6)
    assert few.predict_proba(X).tobytes() == same.predict_proba(X).tobytes()


@pytest.mark.parametrize("groups, words", [
    (np.arange(59), "bag_groups has 59 values for 60 bags"),
    (np.where(np.arange(60) == 7, np.nan, 1.0), r"bag_groups\[7\] is nan"),
    ([None] * 60, r"bag_groups\[0\] is None"), (np.zeros((60, 2)), r"shape \(60, 2\)"), ("patient", r"shape \(\)"),
    ([[1]] * 59 + [[1, 2]], "bag_groups cannot be told apart|inhomogeneous")])
def test_wrong_groups(groups, words):
    with pytest.raises((ValueError, TypeError), match=words):
        SingleLocationClassifier().fit(BAGS, SIGN, bag_groups=groups)


def test_groups_in_another_order():
    table = pd.DataFrame(ROWS, columns=list("abcd"))
    slide = pd.Series(np.repeat([f"s{i:02}" for i in range(60)][::-1], LENGTHS))
    wrong = pd.Series(np.arange(60) // 5, index=[f"s{i:02}" for i in range(60)])
    with pytest.raises(ValueError, match="bag_groups is in another order"):
        SingleLocationClassifier().fit(table, SIGN, groups=slide, bag_groups=wrong)


def test_groups_through_cross_validation():
    X, y, patient = patients()
    scores = cross_val_score(SingleLocationClassifier(), Bags(X), y, groups=patient, cv=GroupKFold(3),
                             fit_params={"bag_groups": patient})
    assert scores.shape == (3,) and np.isfinite(scores).all()
    train, test = next(GroupKFold(3).split(X, y, patient))
    own = SingleLocationClassifier().fit(X[train], y[train], bag_groups=patient[train])
    assert own.score(X[test], y[test]) == scores[0]


# ---- the positive class -----------------------------------------------------------------------------

@pytest.mark.parametrize("kind", ["any", "auto"])
def test_positive_is_a_label(kind):
    y = NAMES[SIGN]
    models = {name: SingleLocationClassifier(model=kind, positive=name, inner=2, landmarks=5).fit(BAGS, y)
              for name in (None, "auto", *NAMES)}
    assert models[None].predict_proba(BAGS).tobytes() == models["auto"].predict_proba(BAGS).tobytes()
    if kind == "any":
        assert [models[name].positive_ for name in NAMES] == NAMES.tolist()
        assert models[None].positive_ in NAMES and models[None].info_["positive"] == models[None].positive_
        assert models["benign"].predict_proba(BAGS).tobytes() != models["malignant"].predict_proba(BAGS).tobytes()


@pytest.mark.parametrize("labels", [[False, True], [3, 7], [0.0, 2.0], ["a", "auto"], [b"n", b"y"],
                                    np.array(["2020-01-02", "2021-03-04"], "M8[D]")])
def test_positive_of_every_type(labels, tmp_path):
    labels = np.asarray(labels)
    for label in (labels[0], labels[1]):
        model = SingleLocationClassifier(model="any", positive=label).fit(BAGS, labels[SIGN])
        assert model.positive_ == label and type(model.positive_) is type(label)
        model.save(tmp_path / "m.fin")
        again = finetti.load_model(tmp_path / "m.fin")
        assert again.positive_ == again.positive == label
    plain = SingleLocationClassifier(model="any", positive=labels[1].item()).fit(BAGS, labels[SIGN])
    assert plain.positive_ == labels[1]


def test_positive_that_there_is_not():
    for wrong in ("melanoma", 3, [1], np.nan):
        with pytest.raises(ValueError, match=r"positive is .*; it can be one of the classes \['benign', 'malignant'\]"):
            SingleLocationClassifier(model="any", positive=wrong).fit(BAGS, NAMES[SIGN])
    with pytest.raises(ValueError, match="3 classes; it needs two"):
        SingleLocationClassifier(positive=1).fit(BAGS, np.arange(60) % 3)
    assert SingleLocationClassifier().fit(BAGS, SIGN).positive_ is None
    assert not hasattr(SingleLocationRegressor().fit(BAGS, Y), "positive_")


# ---- rows that are bags -----------------------------------------------------------------------------

def test_rows_that_are_bags_are_said():
    table, y = pd.DataFrame(ROWS, columns=list("abcd")), np.repeat(Y, LENGTHS)
    for X in (table, ROWS, ROWS.tolist()):
        with pytest.warns(UserWarning, match=f"each of its {len(ROWS)} rows is taken as a bag of its own .one token.: "
                                             "attention has nothing to choose from; give lengths=..., groups=") as said:
            SingleLocationRegressor(iterations=10000).fit(X, y)
        assert len(said) == 1 and said[0].filename == __file__
    groups = np.repeat(np.arange(60), LENGTHS)
    with pytest.warns(UserWarning, match="attention has nothing to choose from"):
        cross_val_score(SingleLocationRegressor(), table, y, groups=groups, cv=GroupKFold(3))
    for X, more in ((BAGS, {}), (cube(60)[0], {}), (Bags(ROWS, LENGTHS), {}), (ROWS, {"lengths": LENGTHS}),
                    (ROWS, {"groups": groups}), ((ROWS, groups), {})):
        silently(lambda: SingleLocationRegressor(iterations=10000).fit(X, Y, **more))


# ---- permutation importance ---------------------------------------------------------------------------

def test_permutation_importance_is_that_of_scikit_learn():
    X = np.random.default_rng(2).normal(size=(80, 4))
    y = X[:, 1] + 0.1 * X[:, 3]
    with pytest.warns(UserWarning, match="bag of its own"):
        model = SingleLocationRegressor(model="mean").fit(X, y)
    want = sklearn.inspection.permutation_importance(model, X, y, n_repeats=3, random_state=4)
    for scoring in (None, "r2"):
        found = model.permutation_importance(X, y, n_repeats=3, random_state=4, scoring=scoring)
        assert set(found) == set(want) and all(np.array_equal(found[name], want[name]) for name in want)


def test_permutation_importance_of_bags():
    frames = [pd.DataFrame(bag, columns=list("abcd")) for bag in BAGS]
    for kind in (SingleLocationRegressor, BagEmbeddingRegressor):
        model = kind(landmarks=20, iterations=10000).fit(frames, Y)
        found = silently(lambda: model.permutation_importance(frames, Y))
        assert found.importances.shape == (4, 5) and found.importances_mean.shape == found.importances_std.shape == (4,)
        assert np.array_equal(model.permutation_importance(frames, Y).importances, found.importances)
    model = SingleLocationClassifier().fit(BAGS, SIGN)
    found = model.permutation_importance(ROWS, np.repeat(SIGN, LENGTHS), groups=np.repeat(np.arange(60), LENGTHS),
                                         scoring="roc_auc", random_state=np.random.default_rng(0))
    assert set(np.argsort(found.importances_mean)[-2:]) == {0, 1}
    with pytest.raises(ValueError, match="n_repeats"):
        model.permutation_importance(BAGS, SIGN, n_repeats=0)
    with pytest.raises(TypeError, match=r"method permutation_importance\(X, y\)"):
        sklearn.inspection.permutation_importance(model, Bags(BAGS), SIGN)


# ---- columns of bags ----------------------------------------------------------------------------------

def aged(n=60):
    """Bags whose third column is constant within each, and knows the label."""
    bags = [np.insert(bag, 2, y, axis=1) for bag, y in zip(BAGS[:n], Y)]
    return bags, [pd.DataFrame(bag, columns=["a", "b", "age", "c", "d"]) for bag in bags]


@pytest.mark.parametrize("kind", CLASSIFIERS + REGRESSORS)
def test_columns_of_bags_are_left_out(kind, tmp_path):
    bags, frames = aged()
    y = Y if kind in REGRESSORS else SIGN
    plain = kind(landmarks=20, iterations=10000).fit(BAGS, y)
    for X, name in ((bags, "2"), (frames, "'age'")):
        with pytest.warns(UserWarning, match=f"constant within every bag, and left out: {name}; it says") as said:
            model = kind(landmarks=20, iterations=10000).fit(X, y)
        assert len(said) == 1 and said[0].filename == __file__
        assert model.n_features_in_ == 5 and model.info_["left_out"] == [eval(name)] and model.info_["d"] == 4
        for again in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert np.array_equal(silently(lambda: again.predict(X)), plain.predict(BAGS))
            assert again.score(X, y) == plain.score(BAGS, y)
        if hasattr(kind, "locate"):
            assert np.array_equal(np.concatenate(model.locate(X, y)), np.concatenate(plain.locate(BAGS, y)))
        assert model.permutation_importance(X, y).importances_mean[2] == 0
        with pytest.raises(ValueError, match="expecting 5 features"):
            model.predict(BAGS)
        model.save(tmp_path / "m.fin")
        loaded = finetti.load_model(tmp_path / "m.fin")
        few = BAGS if X is bags else [frame.drop(columns="age") for frame in frames]
        assert loaded.n_features_in_ == 4 and np.array_equal(silently(lambda: loaded.predict(few)), plain.predict(BAGS))
        assert X is bags or loaded.feature_names_in_.tolist() == list("abcd")
        loaded.save(tmp_path / "again.fin")  # names that are numbers stay those of the first table
        assert finetti._fit.read(tmp_path / "again.fin")[1] == finetti._fit.read(tmp_path / "m.fin")[1]


def test_columns_of_bags_in_importances():
    bags, _ = aged()
    plain = SingleLocationRegressor(heads=2).fit(BAGS, Y)
    with pytest.warns(UserWarning, match="left out"):
        model = SingleLocationRegressor(heads=2).fit(bags, Y)
    for mine, theirs in zip((*model.importances(), *model.directions()), (*plain.importances(), *plain.directions())):
        assert np.array_equal(mine, np.insert(theirs, 2, 0, axis=-1))


def test_columns_of_bags_can_be_kept():
    bags, _ = aged()
    model = silently(lambda: SingleLocationRegressor(bag_columns="keep", iterations=10000).fit(bags, Y))
    assert model.info_["d"] == 5 and model.info_["left_out"] == [] and model.score(bags, Y) > 0.99
    with pytest.raises(ValueError, match="bag_columns is 'drop'; it can be 'leave out' or 'keep'"):
        SingleLocationRegressor(bag_columns="drop").fit(bags, Y)


def test_only_columns_of_bags():
    bags = [np.repeat(bag[:1], len(bag), axis=0) for bag in BAGS]
    with pytest.raises(ValueError, match=r"every column of X is constant within every bag \(0, 1, 2, 3\), so that"):
        SingleLocationRegressor().fit(bags, Y)
    with pytest.raises(ValueError, match=r"every column of X is constant within every bag \(0, 1, 2, 3\), so that"):
        SingleLocationRegressor().fit([np.insert(bag, 4, 7, axis=1) for bag in bags], Y)
    assert silently(lambda: SingleLocationRegressor(bag_columns="keep", iterations=10000).fit(bags, Y)).info_["d"] == 4
    silently(lambda: SingleLocationRegressor(iterations=10000).fit([bag[:1] for bag in BAGS], Y))  # of one token


def test_many_columns_of_bags():
    X = np.random.default_rng(0).normal(size=(40, 3, 2))
    X = np.concatenate([X, np.repeat(np.random.default_rng(1).normal(size=(40, 1, 9)), 3, axis=1)], axis=2)
    with pytest.warns(UserWarning, match="columns are constant .*, and left out: 2, 3, 4, 5, 6, 7, ...; they say"):
        SingleLocationRegressor().fit(X, X[:, 0, 0])


def test_a_hostile_pickle_of_columns_is_refused():
    bags, _ = aged()
    with pytest.warns(UserWarning, match="left out"):
        restore, (settings, tensors, version, used, width) = SingleLocationRegressor().fit(bags, Y)._fit.__reduce__()
    assert (used, width) == ([0, 1, 3, 4], 5)
    for wrong in ([0, 1, 3], [0, 1, 3, 5], [-1, 1, 3, 4], [0, 3, 1, 4], [0, 0, 1, 2], [[0, 1, 3, 4]], "abcd"):
        with pytest.raises(finetti.FormatError):
            restore(settings, tensors, version, wrong, width)
    for wrong in (3, None, 4.5):
        with pytest.raises(finetti.FormatError):
            restore(settings, tensors, version, used, wrong)


# ---- numbers out of range -----------------------------------------------------------------------------

def test_numbers_out_of_range_are_said():
    X, y = cube()
    model = SingleLocationRegressor(iterations=10000).fit(X, y)
    for ask in (model.predict, model.predict_interval, model.locate, lambda X: model.score(X, y)):
        silently(lambda: ask(X))
        for data in (1000 * X, list(1000 * X), (1000 * X).astype("f4")):
            with pytest.warns(UserWarning, match="X has numbers far outside of what the model was fitted to; are the "
                              r"units the same\? column 3: 150 of 150 tokens, fitted to -3.772 to 3.066; column \d.*; column"
                              r" \d[^;]*; and 1 more column$") as said:
                ask(data)
            assert len(said) == 1
    one = X[:1].copy()
    one[0, 2, 3] = -40
    with pytest.warns(UserWarning, match="column 3: 1 of 3 tokens, fitted to [^;]*$") as said:
        model.predict(one)
    assert said[0].filename == __file__


def test_numbers_out_of_range_are_named():
    bags, frames = aged()
    with pytest.warns(UserWarning, match="left out"):
        model = SingleLocationClassifier().fit(frames, SIGN)
    far = [frame.assign(age=1e9, c=1e6) for frame in frames]
    for ask in (model.predict, model.predict_proba, model.locate):
        with pytest.warns(UserWarning, match=rf"column 'c': {len(ROWS)} of {len(ROWS)} tokens, fitted to [^;]*$"):
            ask(far)


# ---- locations ------------------------------------------------------------------------------------------

@pytest.mark.parametrize("model", ["embedding", "mean", "max", "auto", "stack"])
@pytest.mark.parametrize("kind", [SingleLocationClassifier, SingleLocationRegressor])
def test_every_model_locates(kind, model, tmp_path):
    y = SIGN if kind is SingleLocationClassifier else Y
    fitted = kind(model=model, landmarks=20, inner=2).fit(BAGS, y)
    p = fitted.locate(BAGS)
    assert np.allclose([one.sum() for one in p], 1)
    assert np.mean([one.argmax() == bag[:, 0].argmax() for one, bag in zip(p, BAGS)]) > 0.6
    info = fitted.info_
    assert info["locates"] and isinstance(info["locator"], str) and 0 < info["locator_loss"] < info["base_loss"]
    fitted.save(tmp_path / "m.fin")
    for again in (finetti.load_model(tmp_path / "m.fin"), pickle.loads(pickle.dumps(fitted))):
        assert type(again) is kind and np.array_equal(np.concatenate(again.locate(BAGS)), np.concatenate(p))
        assert again.info_["locator"] == info["locator"] and again.info_["locator_loss"] == info["locator_loss"]


def test_who_locates():
    assert SingleLocationClassifier().fit(BAGS, SIGN).info_["locator"] == "softmax+rbf"
    assert SingleLocationClassifier(basis="linear").fit(BAGS, SIGN).info_["locator"] == "softmax:linear"
    info = SingleLocationRegressor(model="linear", heads=2, calibrate="no").fit(BAGS, Y).info_
    assert info["locator"] == "linear x2" and info["inner_loss"] is info["locator_loss"] is info["base_loss"] is None
    info = BagEmbeddingClassifier(landmarks=5).fit(BAGS, SIGN).info_
    assert info["locator"] is None and info["locator_loss"] is None and not info["locates"]


def test_what_tokens_are_by_themselves():
    y = np.array([bag[:, 2].max() > 0.8 for bag in BAGS]).astype(int)
    model = SingleLocationClassifier(model="any", basis="linear").fit(BAGS, NAMES[y])
    location, own, none = model.locate(BAGS, return_own=True)
    assert model.positive_ == "malignant" and none.shape == (60,) and [len(p) for p in own] == LENGTHS.tolist()
    assert np.array_equal(np.concatenate(location), np.concatenate(model.locate(BAGS)))
    on = np.concatenate(own)
    assert ((on >= 0) & (on <= 1)).all() and np.corrcoef(on, ROWS[:, 2] > 0.8)[0, 1] > 0.8
    assert np.corrcoef(none, model.predict_proba(BAGS)[:, 0])[0, 1] > 0.99
    given, own_too, none_too = model.locate(ROWS, NAMES[y], return_own=True, lengths=LENGTHS)
    assert np.array_equal(own_too, on) and np.array_equal(none_too, none)
    assert np.array_equal(given, model.locate(ROWS, NAMES[y], lengths=LENGTHS))
    padded = np.zeros((60, 5, 4))
    for i, bag in enumerate(BAGS):
        padded[i, :len(bag)] = bag
    assert model.locate(padded, None, True, lengths=LENGTHS)[1].shape == (60, 5)
    mixture = SingleLocationClassifier(model="mixture").fit(BAGS, SIGN)
    _, own, none = mixture.locate(BAGS, return_own=True)
    assert np.allclose([p.sum() for p in own] + none, 1, atol=0.2) and mixture.positive_ == 1
    for other in (SingleLocationClassifier().fit(BAGS, SIGN), SingleLocationRegressor(model="mixture").fit(BAGS, Y)):
        with pytest.raises(finetti.UnsupportedError, match="does not say what a token is by itself; any and mix"):
            other.locate(BAGS, return_own=True)


def test_assume_monotone():
    y = np.array([bag[:, 2].max() > 0.8 for bag in BAGS]).astype(int)
    model = SingleLocationClassifier(model="auto", assume="monotone", inner=2, landmarks=20).fit(BAGS, y)
    assert {part["model"] for part in model.info_["parts"]} <= {"any", "max", "base"}, model.info_["parts"]
    with pytest.raises(ValueError, match="two classes"):
        SingleLocationClassifier(model="auto", assume="monotone").fit(BAGS, np.arange(60) % 3)


# ---- files ----------------------------------------------------------------------------------------------

def test_a_file_has_all_names(tmp_path):
    table = pd.DataFrame(ROWS, columns=list("abcd"))
    slide = pd.Series(np.repeat(np.arange(60), LENGTHS), name="slide")
    patient = pd.Series(np.arange(60) // 2, name="who")
    for X, groups in ((table, slide), (Bags(table, groups=slide), None), ((table, slide), None)):
        model = SingleLocationClassifier().fit(X, pd.Series(SIGN, name="sick"), groups=groups, bag_groups=patient)
        model.save(tmp_path / "m.fin")
        names = finetti._fit.read(tmp_path / "m.fin")[1]
        assert (names["label"], names["bag"], names["group"]) == ("sick", "slide", "who")
        finetti.load_model(tmp_path / "m.fin").save(tmp_path / "again.fin")
        assert finetti._fit.read(tmp_path / "again.fin")[1] == names
    other = table.assign(slide=slide)[["d", "slide", "c", "b", "a"]]
    other.to_csv(tmp_path / "x.csv", index=False, float_format="%.17g")
    tool("predict", tmp_path / "m.fin", tmp_path / "x.csv", "--out", tmp_path / "p.npz")  # knows the column of bags
    answers = np.load(tmp_path / "p.npz")["probability"]
    assert answers.tobytes() == model.predict_proba(table, groups=slide).tobytes()


SRC = os.environ.get("SRC", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
CORPUS = os.path.join(SRC, "tests", "fuzz", "corpus", "model")


# bayes is younger: its files are of the version in hand.
@pytest.mark.parametrize("name", sorted(name for name in os.listdir(CORPUS) if not name.startswith("bayes")))
def test_a_file_of_version_0_1(name, tmp_path):
    """Those that the harness of the model reader begins with: they say setting.features."""
    with open(os.path.join(CORPUS, name), "rb") as file:
        old = file.read()
    assert b'"setting.features"' in old and b"setting.basis" not in old and b'"range"' not in old
    (tmp_path / "m.fin").write_bytes(old)
    model = finetti.load_model(tmp_path / "m.fin")
    X = [pd.DataFrame(1e6 * np.random.default_rng(i).normal(size=(3, model.n_features_in_)),
                      columns=model.feature_names_in_) for i in range(4)]
    ask = model.predict_proba if hasattr(model, "classes_") else model.predict
    assert np.isfinite(silently(lambda: ask(X))).all()  # it does not know what is out of range
    assert model.basis in old.decode("latin-1").split('"setting.features":"')[1][:6]
    assert hasattr(model, "locate") == model.info_["locates"] and model.info_["inner_loss"] is None
    model.save(tmp_path / "again.fin")
    again = finetti.load_model(tmp_path / "again.fin")
    assert again.predict(X).tobytes() == model.predict(X).tobytes() and again.get_params() == model.get_params()


def test_a_pickle_of_version_0_1():
    model = SingleLocationRegressor(basis="both", landmarks=5).fit(BAGS, Y)
    restore, (settings, tensors, _) = model._fit.__reduce__()
    old = {"features" if name == "basis" else name: value for name, value in settings.items()
           if name not in ("positive", "assume", "locator")}
    few = [(name, array) for name, array in tensors if name not in ("choice", "inner", "range", "hashes")]
    fit = restore(old, few, "0.1.0")
    state = {"features" if name == "basis" else name: value for name, value in model.__getstate__().items()
             if name not in ("locator", "bag_columns", "_names")}
    again = SingleLocationRegressor.__new__(SingleLocationRegressor)
    again.__setstate__({**state, "_fit": fit, "_label_name": "y"})
    assert again.get_params() == model.get_params() and "features" not in again.__dict__
    assert again.predict(BAGS).tobytes() == model.predict(BAGS).tobytes()
    assert np.array_equal(np.concatenate(again.locate(BAGS)), np.concatenate(model.locate(BAGS)))
    assert again.fit(BAGS, Y).predict(BAGS).tobytes() == model.predict(BAGS).tobytes()
