"""Encoder: texts through a pretrained encoder, the same numbers as the tool's, and what is refused."""

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
