"""Encoder and TextEncoder: the same numbers and files as the tool's, and what is refused."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from tool import tool

import finetti

SRC = os.environ.get("SRC", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
TEXTS = ["The long film was great.", "", "film, film \u00e9 BAD \U0001f600 it"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("encoder") / "bert"
    subprocess.run([sys.executable, os.path.join(SRC, "tests", "cli", "text_folder.py"), str(path)], check=True)
    return path


def test_pieces_and_places(folder):
    encoder = finetti.Encoder.from_folder(folder)
    assert (encoder.kind, encoder.layers, encoder.width, encoder.longest) == ("bert", 2, 8, 12)
    out = encoder.embed(TEXTS)
    assert out.offsets.tolist() == [0, 8, 10, 19] and out.tokens.shape == (19, 8)
    assert out.pieces[:8] == ["[CLS]", "The", "long", "film", "was", "great", ".", "[SEP]"]
    assert out.pieces[10:] == ["[CLS]", "film", ",", "film", "\u00e9", "BAD", "\U0001f600", "it", "[SEP]"]
    for t in range(11, 18):
        assert TEXTS[2][out.begin[t]:out.end[t]] == out.pieces[t]
    np.testing.assert_allclose(out.pooled[2], out.tokens[10:].mean(0), atol=1e-6)
    assert len(out.bags) == 3 and out.bags[1].shape == (2, 8)
    assert encoder.embed(TEXTS, longest=5).left_out.tolist() == [3, 0, 4]
    assert encoder.embed([]).tokens.shape == (0, 8)


def test_same_as_the_tool(folder, tmp_path):
    lines = (folder / "texts.csv").read_text().splitlines()[1:]
    tool("embed", folder, folder / "texts.csv", "--layer", "1", "--out", tmp_path / "x.npz")
    out = finetti.Encoder.from_folder(folder).embed([line.split(",")[0] for line in lines], layer=1)
    with np.load(tmp_path / "x.npz") as there:
        assert (there["tokens"] == out.tokens).all() and (there["offsets"] == out.offsets).all()
        assert there["piece"].tolist() == out.pieces and (there["begin"] == out.begin).all()


def test_refused(folder, tmp_path):
    with pytest.raises(finetti.FileError, match="no config.json"):
        finetti.Encoder.from_folder(tmp_path)
    encoder = finetti.Encoder.from_folder(folder)
    with pytest.raises(TypeError, match="not one str"):
        encoder.embed("a text")
    with pytest.raises(TypeError, match=r"texts\[1\] must be a str"):
        encoder.embed(["a", 2])
    with pytest.raises(finetti.ArgumentError, match="layer must be a whole number from 0 to 2"):
        encoder.embed(["a"], layer=3)
    with pytest.raises(finetti.ArgumentError, match="3 to 12"):
        encoder.embed(["a"], longest=13)


# ---- encoders that learn: the same bytes as the tool's ------------------------------------------

SMALL = {"width": 8, "heads": 2, "layers": 1, "steps": 12, "evaluate_on": 16}
OPTIONS = [word for name, value in SMALL.items() for word in ("--" + name.replace("_", "-"), value)]


@pytest.fixture(scope="module")
def bags():
    """(X, y, CSV file)"""
    random = np.random.default_rng(5)
    X = [np.round(random.standard_normal((3 + i % 4, 3)) * [1, 20, 0.1] + [0, 5, 3], 3) for i in range(40)]
    return X, np.array(["up" if bag[:, 0].mean() > 0 else "down" for bag in X])


@pytest.fixture(scope="module")
def table(bags, tmp_path_factory):
    path = tmp_path_factory.mktemp("bags") / "bags.csv"
    lines = [f"b{i},{label},{','.join(map(repr, row))}" for i, (bag, label) in enumerate(zip(*bags))
             for row in bag.tolist()]
    path.write_text("\n".join(["bag,y,a,b,c", *lines]) + "\n")
    return path


def test_pretraining_on_a_family_writes_the_file_of_the_tool(tmp_path):
    tool("pretrain", "--family", "concept", "--d", "2", "--L", "6", "--M", "4", *OPTIONS, "--out", tmp_path / "a.fin")
    encoder = finetti.Encoder.pretrain(finetti.families.concept(d=2), L=6, M=4, **SMALL)
    encoder.save(tmp_path / "b.fin")
    assert (tmp_path / "a.fin").read_bytes() == (tmp_path / "b.fin").read_bytes()
    assert encoder.log_["step"][-1] == 12 and encoder.test_["excess"] > 0
    again = finetti.Encoder.load(tmp_path / "a.fin")
    assert repr(again.source) == "families.concept(d=2, seed=1)" and again.evaluate(L=3, sequences=8)["sequences"] == 8
    again.save(tmp_path / "c.fin")
    assert (tmp_path / "a.fin").read_bytes() == (tmp_path / "c.fin").read_bytes()


def weights(path):
    """The tensors of a file, by name."""
    raw = path.read_bytes()
    size = int.from_bytes(raw[:8], "little")
    head = json.loads(raw[8:8 + size])
    head.pop("__metadata__", None)
    return {name: raw[8 + size + one["data_offsets"][0]:8 + size + one["data_offsets"][1]] for name, one in head.items()}


def test_bags_give_the_weights_of_the_tool(bags, table, tmp_path):
    X, y = bags
    tool("pretrain", "--data", table, "--label", "y", *OPTIONS, "--out", tmp_path / "a.fin")
    encoder = finetti.Encoder.pretrain(X, **SMALL)
    encoder.save(tmp_path / "b.fin")
    assert weights(tmp_path / "a.fin") == weights(tmp_path / "b.fin")
    for train in ("all", "heads", "scratch"):
        tool("finetune", tmp_path / "a.fin", "--data", table, "--steps", "10", "--train", train, "--patience", "3",
             "--out", tmp_path / "t.fin")
        tuned = encoder.finetune(X, y, steps=10, train=train, patience=3)
        tuned.save(tmp_path / "u.fin")
        assert weights(tmp_path / "t.fin") == weights(tmp_path / "u.fin"), train
    there = finetti.Encoder.load(tmp_path / "t.fin")
    assert there.classes_.tolist() == ["down", "up"] and (there.predict(X) == tuned.predict(X)).all()
    np.testing.assert_allclose(there.predict_proba(X).sum(axis=1), 1)


def test_a_probe_is_that_of_the_tool(tmp_path):
    encoder = finetti.Encoder.pretrain(finetti.families.mean(), L=6, M=4, **SMALL)
    encoder.save(tmp_path / "a.fin")
    for options, given in (([], {}), (["--layer", "0", "--pool", "max"], {"layer": 0, "pool": "max"})):
        theirs = json.loads(tool("probe", tmp_path / "a.fin", "--train", "60", "--test", "50", *options, "--json"))
        mine = encoder.probe(train=60, test=50, **given)
        assert theirs["layers"][0]["r2"] == pytest.approx(mine["r2"], rel=1e-12)


def test_answers_of_tokens(bags):
    X, _ = bags
    encoder = finetti.Encoder.pretrain(X, keys=1, **SMALL)
    each = encoder.predict(X)
    hidden = [np.arange(len(bag)) == 1 for bag in X]
    once = encoder.predict(X, hidden=hidden)
    for bag, all_, one in zip(X, each, once):
        assert all_.shape == (len(bag), 2)
        np.testing.assert_array_equal(all_[1], one[1])
    moved = [bag.copy() for bag in X]
    for bag in moved:
        bag[1, 1:] = 99  # what is hidden does not count
    np.testing.assert_array_equal(encoder.predict(moved, hidden=hidden)[3][1], once[3][1])
    center, spread = np.concatenate(X)[:, 1].mean(), np.concatenate(X)[:, 1].std()
    assert abs(np.concatenate(each)[:, 0] - center).max() < 3 * spread  # in the units of X


def test_answers_in_context_attention_and_states():
    family = finetti.families.concept(d=2, noise=0.1)
    encoder = finetti.Encoder.pretrain(family, L=6, M=4, **SMALL)
    sample = family.draw(3, L=6, Q=2)
    both = encoder.answer(sample.keys, sample.values, sample.queries)
    alone = encoder.answer(sample.keys[1], sample.values[1], sample.queries[1, 1:])[0, 0]
    np.testing.assert_allclose(both[1, 1], alone, rtol=1e-5)  # sums in float, in another order
    X = encoder.tokens(sample.keys, sample.values)
    maps = encoder.attention(X, head=1)
    assert len(maps) == 3
    np.testing.assert_allclose(maps[2].sum(axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(encoder.states(X, pooled=True)[1], encoder.states(X).reshape(3, 6, 8)[1].mean(axis=0), atol=1e-6)


def test_what_encoders_refuse(bags):
    X, y = bags
    family = finetti.families.concept(d=2)
    with pytest.raises(finetti.ArgumentError, match="that of the source"):
        finetti.Encoder.pretrain(family, seed=2)
    with pytest.raises(TypeError, match="no keyword 'widht'"):
        finetti.Encoder.pretrain(family, widht=2)
    with pytest.raises(ValueError, match="y is missing"):
        finetti.Encoder.pretrain(X, objective="supervised")
    encoder = finetti.Encoder.pretrain(X, **SMALL)
    for call, words in ((lambda: encoder.evaluate(), "trained on data"), (lambda: encoder.probe(), "needs X and y"),
                        (lambda: encoder.predict_proba(X), "with classes"), (lambda: encoder.attention(X, layer=1), "layer = 1"),
                        (lambda: encoder.predict([bag[:, :2] for bag in X]), "2 columns; the encoder was trained with 3"),
                        (lambda: encoder.finetune(X, y[:-1]), "40"), (lambda: encoder.finetune(X, y, train="most"), "'most'"),
                        (lambda: encoder.predict([np.full((2, 3), np.nan)]), "nan in column 0"),
                        (lambda: encoder.predict(X, hidden=[[True]]), "hidden has 1 entries")):
        with pytest.raises(ValueError, match=words):
            call()


def test_progress_may_cancel():
    with pytest.raises(finetti.CancelledError):
        finetti.Encoder.pretrain(finetti.families.mean(), progress=lambda what, done, total: True, **SMALL)
