"""Bag estimators in scikit-learn's tools, in pickles and in files."""

import copy
import pickle
import subprocess
import sys
import threading

import joblib
import numpy as np
import pandas as pd
import pytest
import sklearn
from bag_sample import BAGS, CLASSIFIERS, REGRESSORS, SIGN, Y, cube
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectKBest, f_regression
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import finetti
from finetti import (Bags, BagEmbeddingClassifier, BagEmbeddingRegressor, PerToken, SingleLocationClassifier,
                     SingleLocationRegressor)


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


def test_grid_search_in_two_processes(processes):
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
    search = GridSearchCV(pipe, {"pertoken-2__transformer__n_components": [1, 4]}, cv=3).fit(BAGS, Y)
    assert search.best_params_ == {"pertoken-2__transformer__n_components": 4}
    holes = [np.where(np.arange(bag.size).reshape(bag.shape) == 0, np.nan, bag) for bag in BAGS]
    filled = make_pipeline(PerToken(SimpleImputer()), SingleLocationRegressor()).fit(holes, Y)
    assert np.isfinite(filled.predict(holes)).all()
    best = PerToken(SelectKBest(f_regression, k=1)).fit(BAGS, Y)
    assert np.array_equal(best.transformer_.scores_, f_regression(flat, np.repeat(Y, lengths))[0])
    with pytest.raises(NotFittedError):
        PerToken(StandardScaler()).transform(BAGS)


def test_per_token_keeps_names():
    from sklearn.compose import ColumnTransformer
    frames = [pd.DataFrame(bag, columns=list("abcd")) for bag in BAGS]
    some = PerToken(ColumnTransformer([("few", StandardScaler(), ["b", "a"])]))
    want = StandardScaler().fit_transform(np.concatenate(BAGS)[:, [1, 0]])
    assert np.allclose(some.fit_transform(frames).tokens, want)


def test_per_token_of_rows_and_lengths():
    flat, lengths = np.concatenate(BAGS), [len(bag) for bag in BAGS]
    want = PerToken(StandardScaler()).fit_transform(BAGS)
    bags = PerToken(StandardScaler()).fit_transform(flat, Y, lengths=lengths)
    assert np.array_equal(bags.offsets, want.offsets) and np.array_equal(bags.tokens, want.tokens)
    pipe = make_pipeline(PerToken(StandardScaler()), SingleLocationRegressor())
    pipe.fit(flat, Y, pertoken__groups=np.repeat(np.arange(60), lengths))
    assert pipe.predict(BAGS).tobytes() == SingleLocationRegressor().fit(want, Y).predict(want).tobytes()


def test_names_that_a_transformer_gives():
    frames = [pd.DataFrame(bag, columns=list("abcd")) for bag in BAGS]
    scaler = PerToken(StandardScaler()).fit(frames)
    assert scaler.feature_names_in_.tolist() == scaler.get_feature_names_out().tolist() == list("abcd")
    assert scaler.transform(frames).feature_names is None
    assert scaler.set_output(transform="pandas").transform(frames).feature_names.tolist() == list("abcd")
    assert not hasattr(scaler.fit(BAGS), "feature_names_in_")
    pipe = make_pipeline(PerToken(PCA(2)), SingleLocationRegressor())
    with sklearn.config_context(transform_output="pandas"):
        assert pipe.fit(BAGS, Y)[-1].feature_names_in_.tolist() == ["pca0", "pca1"]
    assert pipe.set_output(transform="pandas").fit(BAGS, Y)[-1].feature_names_in_.tolist() == ["pca0", "pca1"]


def test_without_scikit_learn():
    script = ("import sys; sys.modules['sklearn'] = None; import finetti; finetti.Bags\n"
              "try: finetti.SingleLocationRegressor\nexcept ImportError as problem: print(problem)")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "finetti.SingleLocationRegressor needs scikit-learn" in done.stdout, done.stderr


# ---- pickles and files ----------------------------------------------------------------------------

MODELS = ["softmax", "erf", "linear", "mixture", "embedding", "mean", "max", "stack", "auto"]


@pytest.mark.parametrize("kind, model", [*((SingleLocationRegressor, model) for model in MODELS),
                                         *((SingleLocationClassifier, model) for model in [*MODELS, "any"])])
def test_pickle_and_files_answer_the_same(kind, model, tmp_path):
    bags, y = BAGS[:30], (Y if kind is SingleLocationRegressor else np.array(["no", "yes"])[SIGN])[:30]
    fitted = kind(model=model, inner=2, calibrate="yes" if model in ("softmax", "mean") else "auto").fit(bags, y)
    fitted.save(tmp_path / "m.fin")
    for again in (pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted), finetti.load_model(tmp_path / "m.fin"),
                  pickle.loads(pickle.dumps(finetti.load_model(str(tmp_path / "m.fin"))))):
        ask = (lambda m: m.predict(bags, return_std=True)) if kind is SingleLocationRegressor else (
            lambda m: m.predict_proba(bags, return_std=True))
        assert [a.tobytes() for a in ask(again)] == [a.tobytes() for a in ask(fitted)]
        assert np.array_equal(again.predict(bags), fitted.predict(bags))
        assert again._fit.settings() == fitted._fit.settings()
        if fitted.info_["locates"] and hasattr(again, "locate"):
            assert all(np.array_equal(a, b) for a, b in zip(again.locate(bags, y), fitted.locate(bags, y)))


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
                                   [b"n", b"y"], ["01", "1"], ["Zürich", "a b"],
                                   np.array(["2020-01-02", "2021-03-04"], "M8[ns]")])
def test_a_file_keeps_the_type_of_labels(names, tmp_path):
    names = np.asarray(names)
    SingleLocationClassifier().fit(BAGS, names[SIGN]).save(tmp_path / "m.fin")
    again = finetti.load_model(tmp_path / "m.fin").classes_
    assert again.dtype == names.dtype and again.tolist() == names.tolist()


def test_a_note_of_our_own(tmp_path):
    with pytest.raises(ValueError, match="the note 'labels'"):
        SingleLocationClassifier().fit(BAGS, SIGN).save(tmp_path / "m.fin", notes={"labels": "mine"})
    assert not (tmp_path / "m.fin").exists()


def test_a_file_keeps_names_of_columns(tmp_path):
    frames = [pd.DataFrame(bag, columns=["a", "é", "b c", "4"]) for bag in BAGS]
    SingleLocationRegressor().fit(frames, pd.Series(Y, name="logP")).save(tmp_path / "m.fin")
    again = finetti.load_model(tmp_path / "m.fin")
    assert again.feature_names_in_.tolist() == ["a", "é", "b c", "4"] and again._names["label"] == "logP"
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
    with pytest.raises(ValueError, match="NUL"):
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
    restore, (settings, tensors, version) = fit.__reduce__()
    assert version == finetti.__version__
    for i, (name, array) in enumerate(tensors):
        half = [*tensors[:i], (name, array.ravel()[:len(array.ravel()) // 2]), *tensors[i + 1:]]
        if name != "hashes":  # of bags, however many
            with pytest.raises(finetti.FormatError):
                restore(settings, half)
        if name not in ("choice", "inner", "range", "hashes"):  # which version 0.1 did not have
            with pytest.raises(finetti.FormatError):
                restore(settings, tensors[:i] + tensors[i + 1:])
        for other in (array.astype(object), array.astype(complex), array.reshape(array.shape + (1, 1, 1, 1))):
            with pytest.raises(finetti.FormatError, match="no model that finetti pickled"):
                restore(settings, [*tensors[:i], (name, other), *tensors[i + 1:]])
        for other in (name + "x" * (48 - len(name)), name + "x" * 60, None):
            with pytest.raises(finetti.FormatError, match="no model that finetti pickled"):
                restore(settings, [*tensors[:i], (other, array), *tensors[i + 1:]])
    for wrong in (dict(settings, curvature=1), dict(settings, penalty=-1), None, 3):
        with pytest.raises(finetti.FormatError, match="no model that finetti pickled"):
            restore(wrong, tensors)


def test_a_pickle_of_another_version_says_so():
    restore, (settings, tensors, _) = SingleLocationRegressor().fit(BAGS, Y)._fit.__reduce__()
    assert restore(settings, tensors, "0.0.1").predict(BAGS[0], np.array([0, 2]))[0].shape == (1,)
    with pytest.raises(finetti.FormatError, match=r"pickled by finetti 99.1.0, and finetti .*curvature.*save"):
        restore(dict(settings, curvature=1), tensors, "99.1.0")


def test_refitting_while_another_thread_asks(two_threads):
    """Every answer is one of the former or of the new model, or an error about the columns; never a crash."""
    few, many = cube(100)[0], np.concatenate([cube(100)[0]] * 2, axis=2)
    y, model, stop = few[:, 1, 1], SingleLocationRegressor(), threading.Event()
    want = {model.fit(X, y).predict(X).tobytes() for X in (few, many)}
    wrong = []

    def ask():
        while not stop.is_set():
            for X in (few, many):
                try:
                    wrong.extend([] if model.predict(X).tobytes() in want else [X.shape])
                except ValueError as problem:
                    wrong.extend([] if "features" in str(problem) or "columns" in str(problem) else [str(problem)])
    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(8):
        model.fit((few, many)[i % 2], y)
    stop.set()
    for thread in threads:
        thread.join()
    assert not wrong
