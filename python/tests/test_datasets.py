"""finetti.datasets: the same bags as the tool makes and reads, and what is refused."""

import numpy as np
import pytest
from tool import tool

import finetti
from finetti import SingleLocationRegressor, datasets


def test_made_bags_are_those_of_the_tool(tmp_path):
    tool("simulate", "--n", "20", "--d", "4", "--L", "3", "--mu", "2", "--seed", "7", "--sign", "--out", tmp_path / "x.npz")
    data = datasets.make_bags(20, d=4, L=3, mu=2, seed=7, classes=True)
    with np.load(tmp_path / "x.npz") as there:
        np.testing.assert_array_equal(there["tokens"], data.X.tokens)
        np.testing.assert_array_equal(there["y"], data.y)
        np.testing.assert_array_equal(there["location"][:, 0], data.location)


def test_read_bags_reads_what_a_frame_writes(tmp_path):
    data = datasets.make_bags(12, d=3, L=4, seed=2)
    table = data.frame()
    table["site"] = np.repeat(np.arange(12) // 2, 4)
    table["note"] = "seen"
    table.to_csv(tmp_path / "x.csv", index=False)
    read = datasets.read_bags(tmp_path / "x.csv", bag="bag", label="y", features="x*", group="site", extras="note")
    np.testing.assert_allclose(read.X.tokens, data.X.tokens, rtol=1e-6)
    np.testing.assert_allclose(read.y, data.y, rtol=1e-12)
    assert read.names.tolist() == [str(i) for i in range(12)] and read.feature_names == ["x0", "x1", "x2"]
    assert len(np.unique(read.groups)) == 6 and read.extras["note"][0] == "seen" and repr(read).endswith("y, groups)")
    SingleLocationRegressor(model="mean").fit(read.X, read.y, bag_groups=read.groups)


def test_contexts():
    sample, family = datasets.make_contexts(4, L=5, Q=2, d=2, seed=3)
    again = finetti.families.concept(d=2, seed=3).draw(4, L=5, Q=2)
    np.testing.assert_array_equal(sample.values, again.values)
    assert family.seed == 3


def test_what_readers_refuse(tmp_path):
    with pytest.raises(OSError):
        datasets.read_bags(tmp_path / "nothing.csv")
    (tmp_path / "a.data").write_text("MUSK-1,c,1,2\n")
    with pytest.raises(finetti.FormatError, match="line 1: 4 fields"):
        datasets.read_musk(tmp_path / "a.data")
    (tmp_path / "b.data").write_text("m,c," + "1," * 166 + "1.\nm,c," + "1," * 166 + "0.\n")
    with pytest.raises(finetti.FormatError, match="two classes"):
        datasets.read_musk(tmp_path / "b.data")
    (tmp_path / "c.data").write_text("")
    with pytest.raises(finetti.FormatError, match="no lines"):
        datasets.read_musk(tmp_path / "c.data")
