"""Studies: the same numbers as the tool, what is refused, progress and Ctrl-C."""

import json
import os
import signal

import numpy as np
import pytest

import finetti
from finetti import Store
from finetti._core import Watch
from study_sample import SMALL
from tool import tool

# Runs of some tenths of a second each: time enough to stop it.
LONG = {"study": "long", "runs": [{"command": "train", "set": {"steps": 60000, "runs": 200, "d": 50, "log_every": 1000},
                                   "seeds": 40}]}


@pytest.fixture
def small(tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(SMALL)
    return path


# ---- the same as the tool -----------------------------------------------------------------------

def test_the_same_runs_numbers_and_claims_as_the_tool(small, tmp_path):
    told = json.loads(tool("study", "run", small, "--store", tmp_path / "tool.db", "--json"))
    ours = finetti.study(small, tmp_path / "ours.db", threads=2)
    assert (ours.name, ours.title, ours.planned, ours.done, ours.failed, ours.holds) == (
        told["study"], told["title"], told["runs"], told["done"], told["failed"], told["holds"])
    for row, claim in zip(ours.claims().rows(), told["claims"]):
        assert row.pop("study") == "small"
        assert row == {name: claim[name] for name in row}  # the tool adds how it is shown
    for name in ("runs.csv", "runs.npz"):
        tool("study", "export", "small", "--store", tmp_path / "tool.db", "--out", tmp_path / ("tool-" + name))
        ours.export(tmp_path / name)
        assert (tmp_path / name).read_bytes() == (tmp_path / ("tool-" + name)).read_bytes()
    assert len(ours.store.diff(tmp_path / "tool.db")) == 0
    for row, run in zip(ours.runs().rows(), json.loads(tool("study", "ls", "small", "--store", tmp_path / "ours.db",
                                                            "--json"))):
        assert {name: row[name] for name in run if name in row} == {name: run[name] for name in run if name in row}


def test_figures_and_reports_are_those_of_the_tool(small, tmp_path):
    ours = finetti.study(small, tmp_path / "s.db")
    for name in ("figure.svg", "figure.csv"):
        ours.figure("by-lam", tmp_path / name)
        tool("plot", "--study", "small", "--figure", "by-lam", "--store", tmp_path / "s.db", "--out",
             tmp_path / ("tool-" + name))
        assert (tmp_path / name).read_bytes() == (tmp_path / ("tool-" + name)).read_bytes()
    ours.report(tmp_path / "report.html")
    tool("report", "--store", tmp_path / "s.db", "--out", tmp_path / "tool.html")
    assert (tmp_path / "report.html").read_bytes() == (tmp_path / "tool.html").read_bytes()


def test_changes_are_those_of_the_tool(small):
    plan = finetti.study_plan(small, set={"runs.grid.axes.L": [7, 9], "walks.steps": np.int64(30), "grid.eps": 0.25})
    told = json.loads(tool("study", "run", small, "--dry-run", "--json", "--set", "runs.grid.axes.L=[7,9]", "--set",
                           "walks.steps=30", "--set", "grid.eps=0.25", "--store", small.with_suffix(".none")))
    assert plan["hash"].tolist() == [run["hash"] for run in told]
    assert [run["settings"] for run in told] == plan["settings"].tolist()
    assert len(finetti.study_plan(small, full=True)) == 16


# ---- what comes out -----------------------------------------------------------------------------

def test_a_study_is_a_file_a_text_or_a_dict(small, monkeypatch):
    data = {"study": "tiny", "runs": [{"command": "risk", "set": {"eps": 0.1}, "axes": {"lam": np.array([0.1, 0.2])}}]}
    text = "study: tiny\nruns:\n  - command: risk\n    set: {eps: 0.1}\n    axes: {lam: [0.1, 0.2]}\n"
    assert finetti.study_plan(data)["hash"].tolist() == finetti.study_plan(text)["hash"].tolist()
    assert finetti.study_plan(small)["hash"].tolist() == finetti.study_plan(SMALL)["hash"].tolist()
    assert finetti.study_plan(str(small))["hash"].tolist() == finetti.study_plan(os.fsencode(small))["hash"].tolist()
    assert len(finetti.study_plan("slr_risk")) > 10
    (small.parent / "slr_risk").mkdir()
    monkeypatch.chdir(small.parent)
    assert len(finetti.study_plan("slr_risk")) > 10  # a folder is no study
    result = finetti.study(data)
    assert result.scalars()["risk"].tolist() == [
        finetti.study({**data, "runs": [{"command": "risk", "set": {"eps": 0.1, "lam": lam}}]}).scalars()["risk"][0]
        for lam in (0.1, 0.2)]


# ---- files ----------------------------------------------------------------------------------------

def test_a_second_call_does_what_is_missing(small, tmp_path):
    first = finetti.study(small, tmp_path / "s.db", shard=1, shards=3)
    assert first.done == 7 and not first.holds
    second = finetti.study(small, str(tmp_path / "s.db"))
    assert (second.present, second.done, second.holds) == (7, 14, True)
    third = finetti.study(small, second.store)
    assert (third.present, third.done) == (21, 0) and third.store is second.store


# ---- progress, Ctrl-C, exceptions ---------------------------------------------------------------

def test_progress_is_told_and_may_cancel(tmp_path):
    seen = []
    finetti.study(SMALL, progress=lambda what, done, total: seen.append((what, done, total)))
    assert seen and seen[-1][0] == "small" and seen[-1][1:] == (21, 21)

    def stop(what, done, total):
        return done >= 1

    with pytest.raises(finetti.CancelledError):
        finetti.study(LONG, tmp_path / "long.db", threads=1, progress=stop)
    with Store(tmp_path / "long.db") as store:
        assert 1 <= len(store.runs(state="done")) < 40


def test_what_a_progress_function_raises_comes_out(tmp_path):
    class Odd(Exception):
        pass

    def broken(what, done, total):
        raise Odd("so it is")

    with pytest.raises(Odd, match="so it is"):
        finetti.study(LONG, tmp_path / "s.db", threads=1, progress=broken)
    assert len(finetti.study(LONG, tmp_path / "s.db", set={"train.steps": 1, "train.log_every": 1}).runs()) == 40


def test_interrupt_ends_a_study(tmp_path, monkeypatch):
    plain = Watch.report

    def report(self, *news):
        if news[1] == 1:  # one run is in the store, and the next one is computed
            signal.raise_signal(signal.SIGINT)
        return plain(self, *news)

    monkeypatch.setattr(Watch, "report", report)
    with pytest.raises(KeyboardInterrupt):
        finetti.study(LONG, tmp_path / "s.db", threads=1)
    with Store(tmp_path / "s.db") as store:  # whole, and free again
        assert 1 <= len(store.runs(study="long", state="done")) < 40
        store.check()


# ---- what is refused ----------------------------------------------------------------------------

@pytest.mark.parametrize("arguments, keywords, kind, part", [
    (["slr_trainin"], {}, finetti.FileError, "did you mean 'slr_training'"),
    (["nowhere/x.yaml"], {}, OSError, "there is no file 'nowhere/x.yaml'"),
    ([7], {}, TypeError, "must be a text"),
    (["a\0b"], {}, ValueError, "NUL"),
    (["study: x\nruns: []\n"], {}, finetti.FormatError, "study:2:7: runs must be a list"),
    (["study: x\nrums: []\n"], {}, finetti.FinettiError, "runs"),
    ([{"study": "x", "runs": [{"command": "rik"}]}], {}, finetti.FinettiError, "risk"),
    ([{"study": "x", "runs": [{"command": object()}]}], {}, TypeError, "numbers, texts, lists and dicts"),
    ([SMALL], {"set": {"grid.lamb": 1}}, finetti.FinettiError, "did you mean"),
    ([SMALL], {"set": {"grid.lam": None}}, TypeError, "None"),
    ([SMALL], {"thread": 2}, TypeError, "did you mean 'threads'"),
    ([SMALL], {"threads": 0}, finetti.ArgumentError, "threads"),
    ([SMALL], {"threads": 1.5}, finetti.ArgumentError, "threads"),
    ([SMALL], {"shard": 3, "shards": 2}, finetti.ArgumentError, "shard"),
    ([SMALL, "nowhere/s.db"], {}, finetti.FileError, "nowhere/s.db"),
])
def test_study_refuses(arguments, keywords, kind, part):
    with pytest.raises(kind, match=part):
        finetti.study(*arguments, **keywords)


def test_a_run_that_fails_is_recorded():
    result = finetti.study({"study": "bad", "runs": [{"command": "risk", "axes": {"kappa": [0.5, 1]},
                                                      "set": {"form": "softmax", "theta": 0.9}}]})
    assert result.failed > 0 and not result.holds
    reasons = result.runs(state="failed")["reason"]
    assert len(reasons) == result.failed and all(reasons)
    again = finetti.study({"study": "bad", "runs": [{"command": "risk", "set": {"form": "softmax", "theta": 0.9}}]}, result.store)
    assert again.present == 1
    assert finetti.study({"study": "bad", "runs": [{"command": "risk", "set": {"form": "softmax", "theta": 0.9}}]}, result.store,
                         retry_failed=True).done == 1
