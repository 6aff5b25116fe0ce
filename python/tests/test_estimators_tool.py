"""Python and the command line tool: the same fits, answers and files, to the last bit."""

import json
import subprocess

import numpy as np
import pandas as pd
import pytest
from tool import TOOL, tool

import finetti


def run(*words):
    subprocess.run([TOOL, *map(str, words)], check=True, capture_output=True, text=True)


def write(path, tokens, lengths, y):
    np.savez(path, tokens=tokens, offsets=np.cumsum([0, *lengths]), y=y)


def bags(n=40, d=5, dtype=np.float64):
    rng = np.random.default_rng(4)
    lengths = rng.integers(1, 7, n)
    tokens = rng.normal(size=(lengths.sum(), d))
    first = np.cumsum([0, *lengths])[:-1]
    tokens[first, 0] += 4
    tokens = tokens.astype(dtype)
    return tokens, lengths, tokens[first, 1].astype(float) + 0.3 * rng.normal(size=n)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("options", [{"model": "softmax"}, {"model": "softmax", "heads": 2, "basis": "both",
                                                            "landmarks": 9, "penalty": 0.1}, {"model": "mixture"},
                                     {"model": "embedding", "inner": 3}, {"model": "stack", "inner": 2, "seed": 7}])
def test_numbers(options, dtype, tmp_path):
    tokens, lengths, y = bags(dtype=dtype)
    write(tmp_path / "x.npz", tokens, lengths, y)
    words = [w for name, value in options.items() for w in ("--" + name, value)]
    run("fit", tmp_path / "x.npz", "--kind", "regression", "--cv", "none", "--quiet", "--out", tmp_path / "m.fin",
        *words)
    run("predict", tmp_path / "m.fin", tmp_path / "x.npz", "--out", tmp_path / "p.npz")
    answers = np.load(tmp_path / "p.npz")
    settings = {"random_state" if name == "seed" else name: value for name, value in options.items()}
    fitted = finetti.SingleLocationRegressor(**settings).fit(tokens, y, lengths=lengths)
    for model in (fitted, finetti.load_model(tmp_path / "m.fin")):
        mean, sd = model.predict(tokens, return_std=True, lengths=lengths)
        low, high = model.predict_interval(tokens, lengths=lengths).T
        for name, value in {"mean": mean, "sd": sd, "low90": low, "high90": high}.items():
            assert value.tobytes() == answers[name].tobytes(), name
    if fitted.info_["locates"]:
        run("locate", tmp_path / "m.fin", tmp_path / "x.npz", "--out", tmp_path / "l.npz")
        found = np.load(tmp_path / "l.npz")
        for name, value in {"probability": fitted.locate(tokens, lengths=lengths),
                            "given_label": fitted.locate(tokens, y, lengths=lengths)}.items():
            assert value[found["row"] - 1].tobytes() == found[name].tobytes()


@pytest.mark.parametrize("model", ["softmax", "mixture", "any", "mean", "auto"])
def test_classes(model, tmp_path):
    tokens, lengths, y = bags()
    y = (y > 0.4).astype(int) * 3 + 2
    write(tmp_path / "x.npz", tokens, lengths, y)
    run("fit", tmp_path / "x.npz", "--model", model, "--class-weights", "balanced", "--cv", "none", "--quiet",
        "--inner", 2, "--out", tmp_path / "m.fin")
    run("predict", tmp_path / "m.fin", tmp_path / "x.npz", "--out", tmp_path / "p.npz")
    fitted = finetti.SingleLocationClassifier(model=model, class_weight="balanced", inner=2).fit(tokens, y,
                                                                                                 lengths=lengths)
    loaded = finetti.load_model(tmp_path / "m.fin")
    answers = np.load(tmp_path / "p.npz")
    for one in (fitted, loaded):
        p, sd = one.predict_proba(tokens, return_std=True, lengths=lengths)
        assert p.tobytes() == answers["probability"].tobytes() and sd.tobytes() == answers["sd"].tobytes()
        assert one.classes_.tolist() == [2, 5] and one.classes_.dtype == np.int64
        assert np.array_equal(one.predict(tokens, lengths=lengths), np.array([2, 5])[answers["class"]])


def test_classes_that_are_text(tmp_path):
    tokens, lengths, y = bags(30, 2)
    rows = [f"{i},{'yes' if y[i] > 0 else 'no'},{a:.17g},{b:.17g}\n" for i, (a, b) in zip(
        np.repeat(np.arange(30), lengths), tokens)]
    (tmp_path / "x.csv").write_text("bag,label,a,b\n" + "".join(rows))
    words = ["fit", tmp_path / "x.csv", "--model", "mean", "--cv", "none", "--quiet", "--out", tmp_path / "m.fin"]
    run(*words)
    loaded = finetti.load_model(tmp_path / "m.fin")  # which has a model beside it that locates
    assert type(loaded) is finetti.SingleLocationClassifier and loaded.model == "mean" and loaded.info_["locates"]
    run(*words, "--locator", "no")
    loaded = finetti.load_model(tmp_path / "m.fin")
    assert type(loaded) is finetti.BagEmbeddingClassifier and loaded.statistics == "mean"
    assert loaded.classes_.tolist() == ["no", "yes"] and loaded.feature_names_in_.tolist() == ["a", "b"]
    fitted = finetti.BagEmbeddingClassifier(statistics="mean").fit(tokens, np.where(y > 0, "yes", "no"),
                                                                   lengths=lengths)
    with pytest.warns(UserWarning, match="feature names"):
        probability = loaded.predict_proba(tokens, lengths=lengths)
    assert probability.tobytes() == fitted.predict_proba(tokens, lengths=lengths).tobytes()


def test_the_tool_reads_what_python_wrote(tmp_path):
    tokens, lengths, y = bags()
    model = finetti.SingleLocationClassifier().fit(tokens, y > 0, lengths=lengths)
    model.save(tmp_path / "m.fin")
    write(tmp_path / "x.npz", tokens, lengths, y > 0)
    run("predict", tmp_path / "m.fin", tmp_path / "x.npz", "--out", tmp_path / "p.npz")
    answers = np.load(tmp_path / "p.npz")
    assert answers["probability"].tobytes() == model.predict_proba(tokens, lengths=lengths).tobytes()
    assert bytes(answers["classes"]) == b"False\nTrue\n"
    same = finetti.SingleLocationClassifier().fit(tokens, y > 0, lengths=lengths)
    same.save(tmp_path / "again.fin")
    assert (tmp_path / "again.fin").read_bytes() == (tmp_path / "m.fin").read_bytes()


def test_names_of_columns_agree(tmp_path):
    tokens, lengths, y = bags()
    frame = pd.DataFrame(tokens, columns=list("abcde"))
    model = finetti.SingleLocationRegressor().fit(frame, y, lengths=lengths)
    model.save(tmp_path / "m.fin")
    table = frame[list("ecdba")].assign(bag=np.repeat(np.arange(len(lengths)), lengths))
    table.to_csv(tmp_path / "x.csv", index=False, float_format="%.17g")
    run("predict", tmp_path / "m.fin", tmp_path / "x.csv", "--bag", "bag", "--out", tmp_path / "p.npz")
    assert np.load(tmp_path / "p.npz")["mean"].tobytes() == model.predict(frame, lengths=lengths).tobytes()


def test_cv_predictions(tmp_path):
    tokens, lengths, y = bags(60)
    write(tmp_path / "x.npz", tokens, lengths, y > 0)
    run("fit", tmp_path / "x.npz", "--kind", "classes", "--model", "mean", "--cv", "5x2", "--compare", "none", "--cv-out",
        tmp_path / "cv.csv", "--no-curve")
    told = pd.read_csv(tmp_path / "cv.csv", float_precision="round_trip")
    model = finetti.SingleLocationClassifier(model="mean")
    found = model.cv_predictions(tokens, y > 0, cv=5, n_repeats=2, lengths=lengths)
    told = told[told["model"] == "mean"]  # the base rate is there, too
    assert told.iloc[:, -2:].to_numpy().tolist() == found.tolist()
    assert not hasattr(model, "classes_")
    seen = model.fit(tokens, y > 0, lengths=lengths).predict_proba(tokens, lengths=lengths)
    assert abs(seen - found).max() > 1e-6
    with pytest.raises(finetti.ArgumentError, match="folds"):
        model.cv_predictions(tokens, y > 0, cv=1, lengths=lengths)


@pytest.mark.parametrize("model", ["softmax", "embedding"])
def test_evidence(tmp_path, model):
    tokens, lengths, y = bags(60)
    write(tmp_path / "x.npz", tokens, lengths, y > 0)
    fitted = finetti.SingleLocationClassifier(model=model).fit(tokens, y > 0, lengths=lengths)
    fitted.save(tmp_path / "m.fin")
    run("locate", tmp_path / "m.fin", tmp_path / "x.npz", "--evidence", "--out", tmp_path / "e.csv")
    told = pd.read_csv(tmp_path / "e.csv", float_precision="round_trip").sort_values("row")
    change, alone = fitted.evidence(tokens, return_alone=True, lengths=lengths)
    assert told["evidence"].tolist() == change.tolist() and told["alone"].tolist() == alone.tolist()
    split = np.split(tokens, np.cumsum(lengths)[:-1])
    k = int(np.argmax(lengths))
    whole, less = (fitted.predict_proba([bag])[0] for bag in (split[k], split[k][1:]))
    c, at = whole.argmax(), lengths[:k].sum()
    assert abs(whole[c] - less[c] - change[at]) < 1e-12
    assert [len(part) for part in fitted.evidence(split)] == lengths.tolist()


def test_bag_curve(tmp_path):
    tokens, lengths, y = bags(60)
    write(tmp_path / "x.npz", tokens, lengths, y > 0)
    told = json.loads(tool("fit", tmp_path / "x.npz", "--kind", "classes", "--model", "mean", "--cv", "none", "--curve",
                           "--json"))["learning_curve"]
    model = finetti.SingleLocationClassifier(model="mean").fit(tokens, y > 0, lengths=lengths)
    found = model.bag_curve(tokens, y > 0, lengths=lengths)
    assert [list(point.values()) for point in told] == np.transpose(found).tolist()
    with pytest.raises(finetti.UnsupportedError, match="at least 40 bags"):
        model.bag_curve(tokens[:lengths[:30].sum()], y[:30] > 0, lengths=lengths[:30])
