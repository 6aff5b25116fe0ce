"""finetti.run, finetti.commands and what a run leaves."""

import copy
import inspect
import pickle

import numpy as np
import pytest

import finetti


def test_a_single_run():
    result = finetti.run("risk", lam=0.1, show="risk,linear,bayes", samples=1000)
    known = finetti.risk(lam=0.1)
    assert result.risk == result["risk"] == known.risk and result.noise == known.noise
    assert result.errors["risk"] == 0 and result.how["risk"] == "closed form"
    assert result.how["bayes"] == "simulation" and result.errors["bayes"] > 0 and result.samples["bayes"] == 1000
    assert list(result)[0] == "risk" and "bayes" in result and "oracle" not in result
    assert result.shape == () and result.command == "risk" and result.series == {}
    assert result.settings["lam"] == 0.1 and result.settings["show"] == "risk,linear,bayes"
    assert "risk " in repr(result) and "+-" in repr(result)
    assert {"risk", "bayes_error"} <= set(result.to_frame().columns) and len(result.to_frame()) == 1
    assert {"risk", "series"} <= set(dir(result))


def test_series():
    result = finetti.run("landscape", grid=5)
    assert result.series["risk"].shape == (5, 5) and result.kappa.tolist() == [-1, -0.5, 0, 0.5, 1]
    points = finetti.stationary_points()
    assert np.array_equal(result.point_risk, points.risk) and result.stationary == len(points)
    assert "risk: array (5, 5)" in repr(result)


def test_lists_are_broadcast():
    lam, L = np.array([0.05, 0.1, 0.2]), [[2], [10]]
    result = finetti.run("risk", lam=lam, L=L)
    known = finetti.risk(lam=lam, L=L)
    assert result.shape == (2, 3) and result.risk.tobytes() == known.risk.tobytes()
    assert result.d_kappa.tobytes() == known.gradient["kappa"].tobytes()
    assert result.settings["d"] == 400 and result.settings["L"].tolist() == [[2] * 3, [10] * 3]
    frame = result.to_frame()
    assert len(frame) == 6 and list(frame.columns)[:3] == ["lam", "L", "risk"]
    assert "of shape (2, 3)" in repr(result) and " to " in repr(result)


def test_lists_of_names():
    result = finetti.run("risk", task=["slr", "max"], method="auto", d=[80, "81"], seed=[1, 2**53], samples=100)
    assert result.risk.tolist() == [finetti.risk(d=80).risk, finetti.risk("max", d=81, seed=2**53, samples=100).risk]
    assert result.how["risk"].tolist() == ["closed form", "simulation"] and np.isnan(result.noise[1])
    assert result.samples["risk"].tolist() == [0, 100] and "(closed form or simulation)" in repr(result)
    lengths = finetti.run("risk", lengths=[{5: 0.2, 10: 0.8}, "10:1"])
    assert lengths.risk[1] == finetti.risk().risk and lengths.risk[0] == finetti.run("risk", lengths={5: 0.2, 10: 0.8}).risk


def test_formulas_follow_other_settings():
    d, lam = [100, 400, 1600], [0.1, 0.05, 0.025]
    assert finetti.run("risk", lam="1/sqrt(d)", d=d).risk.tolist() == finetti.run("risk", lam=lam, d=d).risk.tolist()
    assert finetti.risk(lam="1/sqrt(d)", d=d).risk.tolist() == finetti.risk(lam=lam, d=d).risk.tolist()
    for result in finetti.run("risk", lam="1/sqrt(d)", d=d), finetti.risk(lam="1/sqrt(d)", d=d):  # not that of the first point
        assert result.settings["lam"] == "1/sqrt(d)" and result.settings["L"] == 10
    assert finetti.run("risk", lam="1/sqrt(d)", d=100).settings["lam"] == 0.1
    assert len(finetti.run("risk", lam="1/sqrt(d)", d=100).to_frame()) == 1


def test_frames_have_what_formulas_come_to():
    pytest.importorskip("pandas")
    given = {"lam": "1/sqrt(d)", "L": "round(2 + 1000*lam)", "d": [[100], [400]], "kappa": [0.5, 1]}
    for result in finetti.run("risk", **given), finetti.risk(**given), pickle.loads(pickle.dumps(finetti.run("risk", **given))):
        frame = result.to_frame()
        assert frame["d"].tolist() == [100, 100, 400, 400] and frame["kappa"].tolist() == [0.5, 1, 0.5, 1]
        assert frame["lam"].tolist() == [0.1, 0.1, 0.05, 0.05] and frame["L"].tolist() == [102, 102, 52, 52]
        assert frame["risk"].tolist() == finetti.risk(kappa=[0.5, 1, 0.5, 1], d=[100, 100, 400, 400], lam=frame["lam"], L=frame["L"]).risk.tolist()
    # Points that do not go together are not made up on the way.
    frame = finetti.run("risk", lam="1/sqrt(L)", L=[9, 4], m=[5, 1]).to_frame()
    assert frame["lam"].tolist() == [finetti.run("risk", lam="1/sqrt(L)", L=9).settings["lam"], 0.5]
    assert "lam" in finetti.run("risk", lam="1/sqrt(d)", d=[]).settings and finetti.run("risk", lam="1/sqrt(d)", d=[]).to_frame().empty


def test_formulas_of_integers():
    with pytest.raises(finetti.ArgumentError, match="round"):
        finetti.run("risk", L="d^0.9")


def test_no_points():
    result = finetti.run("risk", lam=np.empty((0, 3)))
    assert result.shape == (0, 3) and len(result.to_frame()) == 0 and repr(result) and result.settings["d"] == 400


def test_names_as_on_the_command_line():
    runs = {"steps": 4, "runs": 2, "d": 5}
    one, two = finetti.run("train", **runs, log_every=2), finetti.run("train", **runs, **{"log-every": 2})
    assert one.settings == two.settings and one.path_kappa.tobytes() == two.path_kappa.tobytes()
    assert finetti.run("risk", lam=None, L=np.int64(7), kappa=np.float64(0.5), eps=False).settings["L"] == 7


@pytest.mark.parametrize("make", [pickle.dumps, None])
def test_copies(make):
    for result in (finetti.run("landscape", grid=3), finetti.run("risk", lam=[0.1, 0.2])):
        again = pickle.loads(pickle.dumps(result)) if make else copy.deepcopy(result)
        assert again.settings.keys() == result.settings.keys() and dict(again).keys() == dict(result).keys()
        assert repr(again) == repr(result)


@pytest.mark.parametrize("call, kind, message", [
    (lambda: finetti.run("rsk"), finetti.ArgumentError, "no command 'rsk'; did you mean 'risk'"),
    (lambda: finetti.run("zzzzzzzz"), finetti.ArgumentError, r"finetti.commands\(\) lists them"),
    (lambda: finetti.run(3), TypeError, "such as 'risk'"),
    (lambda: finetti.run("risk", lam=object()), TypeError, "lam must be a number"),
    (lambda: finetti.run("risk", lam=1j), TypeError, "lam must be"),
    (lambda: finetti.run("risk", lam=[1j]), TypeError, "lam is an array of complex"),
    (lambda: finetti.run("risk", lam=np.ma.array([1.0], mask=[True])), TypeError, "masked"),
    (lambda: finetti.run("risk", lam=[[1.0], [1.0, 2.0]]), (TypeError, ValueError), "lam"),
    (lambda: finetti.run("risk", lam=[1, 2], L=[1, 2, 3]), ValueError, r"lam \(2,\), L \(3,\)"),
    (lambda: finetti.run("risk", lam=[0.1, -1]), finetti.ArgumentError, "point 1: erf: lam = -1"),
    (lambda: finetti.run("risk", task="slr\0x"), ValueError, "NUL"),
    (lambda: finetti.run("risk", **{"lam\0": 1}), ValueError, "NUL"),
    (lambda: finetti.run("risk", lam=0.1).bayes, AttributeError, "risk left no 'bayes'; there are risk"),
    (lambda: finetti.run("risk", lam=0.1)["bayes"], KeyError, "left no number"),
])
def test_bad_calls(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_progress_and_cancelling():
    seen = []
    finetti.run("risk", form="softmax", method="simulation", lam=[1.0, 2.0], samples=1000, progress=lambda *news: seen.append(news))
    done = [at for _, at, _ in seen]
    assert done == sorted(done) and done[-1] == 2 and {total for _, _, total in seen} == {2}
    with pytest.raises(finetti.CancelledError):
        finetti.run("risk", form="softmax", method="simulation", samples=10**9, progress=lambda *news: True)
    with pytest.raises(ZeroDivisionError):
        finetti.run("rate", progress=lambda *news: 1 / 0)


# ---- the table ----------------------------------------------------------------------------------

def test_commands():
    commands = finetti.commands()
    assert list(commands)[:2] == ["risk", "train"] and "landscape" in commands and len(repr(commands).splitlines()) == len(commands)
    for name, command in commands.items():
        assert command.summary in repr(commands) and command.outputs and name in finetti.run.__doc__
        shown = repr(command)
        for setting in command.settings.values():
            assert f"\n{setting.name} : " in shown
        for output in command.outputs.values():
            assert f"\n{output.name}: {output.meaning}" in shown


def test_settings_of_all_choices():
    settings = finetti.commands()["risk"].settings
    assert settings["snr"].meaning.startswith("spiked, max: ") and settings["lam"].default is None
    assert settings["d"].default == 400 and settings["d"].range.startswith("2 to ")
    assert "'softmax'" in settings["form"].type and "'quadrature'" in settings["method"].type
    latent = finetti.commands()["latent"].settings
    assert {"kernel", "temperature", "balls"} <= set(latent)  # of show=attention, of the family urn
    assert finetti.commands()["regret"].settings["family"].type.startswith("Literal['concept', 'concepts']")
    assert "'perturbation'" in finetti.commands()["identity"].settings["which"].type


def test_overloads():
    for (name, command), signature in zip(finetti.commands().items(), finetti.run.overloads()):
        assert list(signature.parameters) == ["command", *command.settings, "progress"]
        assert signature.parameters["command"].type == f"Literal[{name!r}]"
        assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in list(signature.parameters.values())[1:])
