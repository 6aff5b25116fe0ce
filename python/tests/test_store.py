"""Stores: questions answered with arrays, files that come and go, several threads."""

import gc
import os
import pickle
import sys
import threading

import numpy as np
import pytest

import finetti
from finetti import Store, _view
from study_sample import SMALL


@pytest.fixture(scope="module")
def result():
    return finetti.study(SMALL)


def test_scalars_stand_beside_settings(result):
    table = result.scalars(block="grid", where={"L": 10})
    assert table["lam"].dtype == float and table["L"].tolist() == [10] * 5
    assert table["form"].tolist() == ["erf"] * 5
    assert np.all(table["linear"] > 0.3) and "risk_error" not in table
    both = result.scalars()
    assert len(both) == 21 and np.isnan(both["risk"][15:]).all() and not np.isnan(both["risk"][:15]).any()
    assert both["stuck"][20] == 0 and both["stuck_setting"][20] == 1e-6  # a setting and a scalar have this name
    assert np.isnan(both["median_risk_error"][15:]).all()  # three runs: not known
    long = result.scalars(long=True, block="grid", has="risk")
    risks = long["value"][long["name"] == "risk"]
    assert risks.tolist() == result.scalars(block="grid")["risk"].tolist()
    assert set(long["how"]) == {"closed form"}


@pytest.mark.parametrize("where", [{"L": (">=", 10), "lam": 1}, {"L": [10, 100], "lam": np.float64(1)},
                                   {"L": (10, 100), "lam": True}, {"L": np.array([10, 100]), "lam": np.ones(1)},
                                   ["L>=10", "lam=1"]], ids=str)
def test_conditions(result, where):
    assert result.runs(where=where)["settings"].tolist() == [
        run["settings"] for run in result.runs(block="grid").rows()
        if run["settings"]["L"] >= 10 and run["settings"]["lam"] == 1]


def test_series_are_arrays(result):
    found = result.series("path_kappa", block="walks")
    assert list(found) == result.runs(block="walks")["hash"].tolist()
    for hash_, array in found.items():
        assert array.shape == (3, 5) and array.dtype == np.float64 and array.flags.owndata
        everything = result.series(hash=hash_)[hash_]
        assert np.array_equal(everything["path_kappa"], array)
    listed = result.series_names(block="walks")
    assert set(listed["name"]) == set(everything)
    assert listed["shape"][listed["name"] == "path_kappa"].tolist() == [(3, 5)] * 6
    with pytest.raises(KeyError, match="did you mean 'path_kappa'"):
        result.series("path_kapa")


def test_tables_are_columns(result):
    claims = result.claims()
    assert claims["verdict"].tolist() == ["holds", "holds"] and claims[0]["id"] == "linear"
    assert len(claims[claims["low"] > 0.1]) == 1 and len(claims[1:]) == 1
    assert dict(claims)["id"].tolist() == ["linear", "moves"]
    assert "2 rows" in repr(claims) and "linear" in repr(claims)
    with pytest.raises(KeyError, match="did you mean 'verdict'"):
        claims["verdit"]
    empty = result.runs(state="failed")
    assert len(empty) == 0 and (empty["hash"] == "x").tolist() == []


def test_frames(result):
    frame = result.claims().to_frame()
    assert frame.verdict.tolist() == ["holds", "holds"] and frame.value.dtype == float


def test_without_pandas_frames_say_what_to_install(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        result.claims().to_frame()


def test_a_figure_without_a_path_is_svg(result):
    assert result.figures()["id"].tolist() == ["by-lam"]
    figure = result.figure("by-lam")
    assert figure.svg.startswith("<svg") and figure._repr_svg_() == figure.svg
    free = result.figure(x="lam", y=["risk", "linear"], where={"L": 2}, log_x=True, title="Two")
    assert "Two" in free.svg
    with pytest.raises(finetti.ArgumentError, match="by-lam"):
        result.figure("by-lamb")


def test_missing_runs_are_a_warning(tmp_path):
    half = finetti.study(SMALL, tmp_path / "half.db", shard=0, shards=2)
    assert not half.holds and "untested" in half.claims()["verdict"]
    with pytest.warns(UserWarning, match="missing|not there"):
        half.figure("by-lam")


def test_a_temporary_store_lives_as_long_as_the_result():
    result = finetti.study(SMALL)
    path = result.store.path
    assert os.path.exists(path)
    del result
    gc.collect()
    assert not os.path.exists(os.path.dirname(path))
    result = finetti.study(SMALL)
    result.store.close()
    result.store.close()
    assert not os.path.exists(os.path.dirname(result.store.path))
    with pytest.raises(ValueError, match="is closed"):
        result.runs()


def test_a_forked_child_leaves_the_file_alone():
    result = finetti.study(SMALL)
    child = os.fork()
    if child == 0:
        try:
            with pytest.raises(ValueError, match="open it again"):
                result.runs()
            with Store(result.store.path) as again:
                assert len(again.runs()) == 21
            result.store.close()
            result.store._finish()
            os._exit(7)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(result.runs()) == 21


def test_a_store_in_use_is_asked_but_not_closed():
    with Store() as store:
        def progress(what, done, total):
            store.close()

        with pytest.raises(RuntimeError, match="cannot close the store"):
            finetti.study(SMALL, store, progress=progress)
        seen = []
        changed = finetti.study(SMALL, store, set={"grid.eps": 0.2},
                                progress=lambda *told: seen.append(len(store.runs())))
        assert seen and len(changed.runs()) == 21


def test_pickles_are_refused(result):
    for thing in (result, result.store):
        with pytest.raises(TypeError, match="hand over its path"):
            pickle.dumps(thing)
    assert pickle.loads(pickle.dumps(result.claims()))["id"].tolist() == ["linear", "moves"]


def test_parts_are_merged(tmp_path):
    whole = finetti.study(SMALL)
    for part in range(2):
        finetti.study(SMALL, tmp_path / f"{part}.db", shard=part, shards=2).store.close()
    with Store(tmp_path / "all.db", "create") as store:
        assert store.merge(tmp_path / "0.db") == {"added": 11, "same": 0, "replaced": 0, "studies": 1}
        assert store.merge(tmp_path / "1.db")["added"] == 10
        store.judge()
        assert store.claims()["verdict"].tolist() == ["holds", "holds"]
        assert len(store.diff(whole.store)) == 0
        missing = store.diff(tmp_path / "0.db")
        assert len(missing) == 10 and set(missing["what"]) == {"missing"}
        assert store.gc(dry=True)["runs"] == 0
        assert store.gc("small")["runs"] == 21
        assert len(store.studies()) == 0
        store.check()


def test_a_store_is_read_by_study(tmp_path):
    finetti.study(SMALL, tmp_path / "s.db").store.close()
    finetti.study({"study": "other", "runs": [{"command": "urn"}]}, tmp_path / "s.db").store.close()
    with Store(tmp_path / "s.db") as store:
        assert sorted(store.studies()["name"]) == ["other", "small"]
        assert len(store.runs()) == 22 and len(store.runs(study="other")) == 1
        assert len(store.scalars(study="small")) == 21
        assert store.figure("by-lam", study="small").svg.startswith("<svg")
        with pytest.raises(finetti.ArgumentError, match="which study; the store has small, other|other, small"):
            store.figure("by-lam")
        store.report(tmp_path / "one.html", studies="small")
        store.report(tmp_path / "all.html")
        assert (tmp_path / "one.html").stat().st_size < (tmp_path / "all.html").stat().st_size
        assert store.sessions()["ended"].all()
        assert "read" in repr(store)
        with pytest.raises(finetti.FinettiError, match="read"):
            store.merge(tmp_path / "s.db")


def test_threads_may_ask_one_store(result):
    answers, problems = [], []

    def ask():
        try:
            for _ in range(20):
                answers.append(result.scalars(block="grid")["risk"].tolist())
        except BaseException as problem:
            problems.append(problem)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems and len(answers) == 60 and all(answer == answers[0] for answer in answers)


def test_exceptions_in_row_callbacks_come_out(result):
    def take(run):
        raise ZeroDivisionError("in a row")

    for _ in range(2):
        with pytest.raises(ZeroDivisionError, match="in a row"):
            result._ask(_view.lib.fin_store_runs, result._query({}), _view.lib.finpy_run_row, take=take)
        assert len(result.runs()) == 21


def test_store_refuses(result, tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no store"):
        Store(tmp_path / "none.db")
    (tmp_path / "text.db").write_text("this is no database at all, only some text\n" * 20)
    with pytest.raises(finetti.FinettiError, match="text.db"):
        Store(tmp_path / "text.db")
    with pytest.raises(finetti.ArgumentError, match="'read', 'write' or 'create'"):
        Store(tmp_path / "x.db", "rw")
    with pytest.raises(ValueError, match="'done', 'failed', 'planned'"):
        result.runs(state="broken")
    with pytest.raises(TypeError, match="y must be a text, or a list of texts, not 3"):
        result.figure(x="lam", y=3)
    with pytest.raises(TypeError, match="runs.. has no keyword 'blok'; did you mean 'block'"):
        result.runs(blok="grid")
    with pytest.raises(finetti.ArgumentError, match="did you mean 'lam'"):
        result.runs(where={"lamm": 1})
    with pytest.raises(finetti.ArgumentError, match="is no condition"):
        result.runs(where=["nonsense"])
    with pytest.raises(finetti.ArgumentError, match="no study 'smal'"):
        result.store.runs(study="smal")
    with pytest.raises(finetti.FinettiError, match="no study 'smal'"):
        result.store.claims(study="smal")
