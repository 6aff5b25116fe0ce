"""finetti.risk, risk_erf, lam_star, bayes_risk, stationary_points: against the tool, to the last digit."""

import csv
import inspect
import io
import pickle
import re
import threading
import warnings

import numpy as np
import pandas
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tool import tool, tool_json

import finetti
from finetti import tasks

OVERLAPS = ("kappa", "nu", "theta", "eta", "rho")

MODELS = [
    {},
    {"kappa": 0.3, "nu": -0.2, "theta": 0.1, "eta": 0.05, "rho": 0.2, "lam": 0.7, "eps": 0.3, "m": 2, "L_min": 4},
    {"task": "spiked", "snr": 2.5, "L": 7, "lam": 1.5, "kappa": -0.4},
    {"form": "linear", "lam": 0.02, "rho": 0.3},
    {"form": "shifted", "c": 0.4, "lam": 0.2, "theta": 0.3, "method": "quadrature"},
    {"form": "softmax", "lam": 2.0, "samples": 3000, "seed": 5, "d": 50},
    {"task": "max", "form": "hardmax", "snr": "inf", "samples": 2000},
    {"task": "max", "form": "softplus", "snr": 1.0, "samples": 2000, "kappa": 0.8},
    {"form": "bayes", "samples": 2000, "d": 30},
    {"method": "simulation", "samples": 1000},
]


def keywords(model):
    return {name: float(value) if value == "inf" else value for name, value in model.items()}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: "-".join(str(v) for v in model.values()) or "default")
def test_the_tool_says_the_same(model):
    theirs = tool_json("risk", **model, show="risk")
    ours, numbers = finetti.risk(**keywords(model)), theirs["scalars"]
    value, error, how, samples = of(numbers, "risk")
    assert (ours.risk, ours.method, ours.samples) == (value, how, samples)
    assert np.array_equal(ours.error, float(error), equal_nan=True) and ours.rare == ("risk_rare" in numbers)
    if "signal" in numbers:
        assert (ours.signal, ours.noise, ours.bias) == tuple(numbers[part]["value"] for part in ("signal", "noise", "bias"))
        assert ours.gradient == {name: numbers[f"d_{name}"]["value"] for name in OVERLAPS}
    else:
        assert ours.signal is None and ours.gradient is None
    for name, value in theirs["settings"].items():
        if name not in ("lengths", "show"):
            assert ours.settings[name] == (float(value) if value == "inf" else value), name


def of(numbers, name):
    return tuple(numbers[name][key] for key in ("value", "error", "how", "samples"))


def test_other_numbers_of_the_tool():
    theirs = tool_json("risk", L=7, d=100, lam=0.2, samples=2000)["scalars"]
    task = tasks.slr(L=7, d=100)
    star = finetti.lam_star(task, samples=2000)
    assert (star.lam, star.risk) == (theirs["lam_star"]["value"], theirs["star"]["value"])
    bayes = finetti.bayes_risk(task, samples=2000)
    assert (bayes.risk, bayes.error, bayes.method, bayes.samples) == of(theirs, "bayes")
    assert finetti.linear_risk(task).risk == theirs["linear"]["value"]
    assert finetti.risk(task, lam=0.2).risk == theirs["oracle"]["value"]


def test_learning_curve():
    alpha = [0.5, 2]
    theirs = tool_json("curve", alpha="0.5,2", L=2, snr=4)["points"]
    ours = finetti.learning_curve(alpha, L=2, snr=4)
    for name in "q_k", "q_v", "optimal", "known", "linear":
        assert ours[name].tolist() == theirs[name]
    assert finetti.learning_curve(2, L=2, snr=4).optimal == ours.optimal[1]
    theirs = tool_json("curve", alpha="0.8,4", form="softmax", ridge="0.2,0.2", samples=2000)["points"]
    ours = finetti.learning_curve([0.8, 4], form="softmax", ridge="0.2,0.2", samples=2000)
    assert ours.settled.tolist() == [0, 1] and np.isnan(ours.erm[0]) and theirs["erm"] == ["nan", ours.erm[1]]


def test_learning_curve_linear_is_ridge_regression():
    """On bags as they are defined, whose sums are regressed on at this penalty and at others."""
    rng, d, L, snr, eps, trials = np.random.default_rng(1), 300, 3, 5, 0.5, 20
    for alpha in 0.5, 4:
        n, W, risks = int(alpha * d), 1 - 1 / L + eps**2, {0.3: [], 1: [], 3: []}
        for _ in range(trials):
            k, v = np.linalg.qr(rng.standard_normal((d, 2)))[0].T  # k.v is 0 for large d
            X, J = rng.standard_normal((n, L, d)), rng.integers(L, size=n)
            X[np.arange(n), J] += np.sqrt(snr) * k
            y, s = X[np.arange(n), J] @ v + eps * rng.standard_normal(n), X.sum(1) / np.sqrt(L)
            for scale in risks:
                b = np.linalg.solve(s.T @ s + scale * W * L * d * np.eye(d), s.T @ y)
                off = b - v / np.sqrt(L)  # Y - s.b on a new bag: mean and variance, averaged over the location
                mean = np.sqrt(snr) * (v - b / np.sqrt(L)) @ k
                risks[scale].append(W + off @ off + mean**2)
        got, error = np.mean(risks[1]), np.std(risks[1]) / np.sqrt(trials)
        want = finetti.learning_curve(alpha, snr=snr, L=L, eps=eps).linear
        assert abs(got - want) < 3 * error + 10 / d * (got - W), (alpha, got, error, want)
        assert got < min(np.mean(risks[0.3]), np.mean(risks[3]))


def test_law_of_the_length():
    theirs = tool_json("risk", lengths="5:0.2,10:0.8", show="risk", m=2)["scalars"]["risk"]["value"]
    for lengths in ({5: 0.2, 10: 0.8}, [(5, 0.2), (10, 0.8)]):
        assert finetti.risk(lengths=lengths, m=2).risk == theirs
        assert finetti.risk(lengths=lengths, m=np.array([1, 2])).risk[1] == theirs
    many = {L: 1 / 3 for L in range(1, 150)}
    assert finetti.risk(lengths=many).risk == finetti.risk(tasks.slr(lengths=many)).risk


def test_a_sweep_is_the_tool_s():
    rows = list(csv.DictReader(io.StringIO(tool("risk", "--sweep", "lam=0.01:3:20log", "--sweep", "L=2,5,30",
                                                "--show", "risk"))))
    lam = np.array([float(row["lam"]) for row in rows]).reshape(20, 3)[:, :1]
    curve = finetti.risk(lam=lam, L=[2, 5, 30])
    for name, theirs in (("risk", "risk"), ("signal", "signal"), ("noise", "noise"), ("bias", "bias")):
        assert getattr(curve, name).ravel().tolist() == [float(row[theirs]) for row in rows]
    assert curve.settings["L"].shape == (20, 3) and curve.settings["d"] == 400


# ---- arrays are many numbers --------------------------------------------------------------------

# The sweep works out the parameters of tasks by itself, and must do so by all of the library's rules: numbers that are
# allowed, and those that are not.
_ANY = {name: (st.floats(-1, 1), [1.5, np.nan]) for name in OVERLAPS}
_ANY.update(lam=(st.floats(0, 10), [-1, 2e6, np.nan]), eps=(st.floats(0, 2), [-1, np.nan]),
            d=(st.integers(2, 10**6), [1, 2.5, 2**51]), L=(st.integers(3, 9), [0, 2, 2.5]),
            L_min=(st.integers(2, 3), [0, 4.5, 9]), m=(st.integers(1, 2), [0, 4, 1.5]))
_OWN = {"slr": {"gamma": (st.floats(1e-100, 3), [9.5e-101, 1e-200, np.inf]),
                "mu": (st.floats(0, 100), [1.1e9, np.nan])},
        "spiked": {"snr": (st.floats(0, 100), [-1, 1e300, np.inf, np.nan])}}
_LENGTHS = st.one_of(st.none(), st.dictionaries(st.integers(2, 6), st.floats(0.1, 2), min_size=1))


def test_every_setting_is_swept():
    from finetti._lab import FORMS, TASKS
    for task, own in _OWN.items():
        assert {*_ANY, *own} == {*TASKS[task].table.fields, *FORMS["erf"].table.fields, *OVERLAPS}


@settings(max_examples=100, deadline=None, database=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.data(), st.sampled_from(sorted(_OWN)), _LENGTHS)
def test_arrays_agree_with_numbers(data, task, lengths):
    possible = {name: good for name, (good, _) in {**_ANY, **_OWN[task]}.items()
                if lengths is None or name not in ("L", "L_min")}
    chosen = data.draw(st.sets(st.sampled_from(sorted(possible)), min_size=1))
    columns = {name: [data.draw(possible[name]) for _ in range(3)] for name in sorted(chosen)}
    together = finetti.risk(task, lengths=lengths, **columns)
    alone = [finetti.risk(task, lengths=lengths, **{name: column[i] for name, column in columns.items()})
             for i in range(3)]
    for name in ("risk", "signal", "noise", "bias"):
        assert getattr(together, name).tolist() == [getattr(one, name) for one in alone]
    for name in OVERLAPS:
        assert together.gradient[name].tolist() == [one.gradient[name] for one in alone]


@pytest.mark.parametrize("others", [{}, {"m": 2, "L_min": 3, "L": 5}, {"m": 2, "lengths": {3: 1, 5: 1}}], ids=str)
@pytest.mark.parametrize("task, name, bad", [
    (task, name, bad) for task, own in _OWN.items() for name, (_, wrong) in {**_ANY, **own}.items() for bad in wrong])
def test_arrays_are_refused_as_numbers_are(task, name, bad, others):
    bad_for_sure = "L_min" in others  # without it L = 2 is well
    others = {key: value for key, value in others.items() if key != name and (key != "lengths" or name[0] != "L")}
    good = 3 if name in ("d", "L", "L_min") else 1
    alone, together = _problem(task, **others, **{name: bad}), _problem(task, **others, **{name: [good, bad, good]})
    assert alone == together and (alone or not bad_for_sure)


def _problem(task, **given):
    try:
        finetti.risk(task, **given)
        return None
    except finetti.FinettiError as problem:
        return re.sub(r"^point \d+: ", "", str(problem))


@pytest.mark.parametrize("model", [{"task": "max", "form": "softmax", "lam": [0.5, 2], "snr": [[1.0], [np.inf]]},
                                   {"form": "bayes", "d": [10, 20], "seed": [[1], [2]]},
                                   {"form": "linear", "lam": [0.1, 0.2], "rho": [[0.1], [0.2]]},
                                   {"method": "quadrature", "lam": [0.1, 0.2], "L": [[3], [4]]}])
def test_point_by_point(model):
    model = {"samples": 300, **model}
    together = finetti.risk(**model)
    assert together.shape == (2, 2) and isinstance(together.method, str)
    for i in range(2):
        for j in range(2):
            alone = finetti.risk(**{name: np.broadcast_to(value, (2, 2))[i, j].item()
                                    if np.ndim(value) else value for name, value in model.items()})
            assert np.array_equal([together.risk[i, j], together.error[i, j]], [alone.risk, alone.error], equal_nan=True)
            assert together.samples[i, j] == alone.samples


def test_methods_that_differ_between_points():
    result = finetti.bayes_risk("slr", gamma=[0.5, 1.0], samples=200, d=20, L=3)
    assert result.method.tolist() == ["simulation", "quadrature"]
    assert "method quadrature or simulation, samples 0 to 200" in repr(result)


def test_nothing_to_compute():
    for form in ("erf", "softmax"):
        result = finetti.risk(form=form, lam=np.empty(0))
        assert result.risk.shape == (0,) and isinstance(result.gradient, (dict, type(None)))
        assert repr(result).startswith("<Risk of shape (0,)")
    assert finetti.risk_erf(np.empty((0, 12))).shape == (0, 10)


# ---- the raw call -------------------------------------------------------------------------------

@pytest.mark.parametrize("overlaps, warned", [
    ({"kappa": 0.9, "eta": 0.9}, True), ({"kappa": np.array([0.1, 0.9]), "eta": 0.9}, True),
    ({"kappa": 1, "nu": 1, "rho": 0.5}, True), ({"kappa": 0.6, "nu": 0.5, "eta": 0.8, "rho": 0.4}, False),
    ({"kappa": 0.6, "nu": 0, "eta": np.array([-0.8, 0.8])}, False), ({"kappa": 0.9, "nu": -0.9}, False)])
def test_overlaps_that_no_vectors_have(overlaps, warned):
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        finetti.risk(**{"nu": 0.1, **overlaps})
    assert [("no unit vectors" in str(one.message), one.filename) for one in seen] == [(True, __file__)] * warned


def test_risk_erf():
    points = np.array([[0.5, 0.9, 0.1, 0, 0.2, 0.1, 0.7, 14, 0.1, 1, 10, 2.0]])
    row = finetti.risk_erf(points)[0]
    assert row[3] == pytest.approx(0.1**2 + row[:3].sum(), rel=1e-14)
    for i in range(6):  # derivatives against differences
        step = 1e-6 * np.eye(12)[i:i + 1]
        slope = (finetti.risk_erf(points + step)[0, 3] - finetti.risk_erf(points - step)[0, 3]) / 2e-6
        assert row[4 + i] == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_risk_erf_of_read_only_memory():
    points = np.frombuffer(np.array([1, 1, 0, 0, 0, 0.1, 0.7, 14, 0, 1, 10, 0.0]).tobytes()).reshape(1, 12)
    assert not points.flags.writeable and np.array_equal(finetti.risk_erf(points), finetti.risk_erf(points.copy()))


@pytest.mark.parametrize("points, message", [
    (np.zeros((2, 11)), r"shape \(2, 11\)"), (np.zeros(12), r"shape \(12,\)"),
    (np.zeros((2, 12), np.float32), "float32"), (np.zeros((12, 2)).T, "not contiguous"),
    (np.zeros((2, 12), complex), "complex"), ([[0.0] * 12], "NumPy array"), (np.zeros((2, 12), object), "object"),
    (np.ma.zeros((2, 12)), "masked"), (np.full((2, 12), np.nan), "point 0"),
    (np.zeros(193, np.uint8)[1:].view(np.float64).reshape(2, 12), "copy"),
])
def test_risk_erf_is_strict(points, message):
    with pytest.raises((TypeError, ValueError), match=message):
        finetti.risk_erf(points)


def test_the_first_bad_point_is_named_in_long_calls(monkeypatch):
    from finetti import _erf
    monkeypatch.setattr(_erf, "_BLOCK", 10)
    points = np.tile([[1, 1, 0, 0, 0, 0.1, 0.7, 14, 0, 1, 10, 0.0]], (35, 1))
    assert np.array_equal(finetti.risk_erf(points), np.repeat(finetti.risk_erf(points[:1]), 35, axis=0))
    points[27, 0] = 3
    with pytest.raises(finetti.ArgumentError, match="point 27"):
        finetti.risk_erf(points)
    snr = np.ones(3000)
    assert np.ptp(finetti.risk("spiked", snr=snr).risk) == 0
    snr[2700] = 1e300
    with pytest.raises(finetti.ArgumentError, match="^point 2700: mu"):
        finetti.risk("spiked", snr=snr)


# ---- your own activation --------------------------------------------------------------------------

def test_own_activation():
    ours = finetti.risk(activation=lambda chi: 1 + 0.3 * chi, kappa=[0.5, 1.0], rho=0.1)
    form = finetti.risk(form="linear", lam=0.3, kappa=[0.5, 1.0], rho=0.1)
    np.testing.assert_allclose(ours.risk, form.risk, rtol=1e-12)
    np.testing.assert_allclose(ours.gradient["kappa"], form.gradient["kappa"], rtol=1e-9)
    assert ours.method == "quadrature"
    assert finetti.risk(activation=np.tanh, nodes=64).risk > 0


def test_what_an_activation_raises_comes_out(two_threads):
    def broken(chi):
        raise KeyError("inside")
    with pytest.raises(KeyError, match="inside"):
        finetti.risk(activation=broken)
    with pytest.raises(KeyboardInterrupt):
        finetti.risk(activation=lambda chi: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(TypeError, match="complex|float"):
        finetti.risk(activation=lambda chi: "text" and 1j)
    with pytest.raises(TypeError, match="'samples' does not go with activation"):
        finetti.risk(activation=np.tanh, samples=10)
    with pytest.raises(TypeError, match="function"):
        finetti.risk(activation="tanh")
    with pytest.raises(TypeError, match="takes the place of form = 'softmax'"):
        finetti.risk(form="softmax", activation=np.tanh)


# ---- stationary points ----------------------------------------------------------------------------

def test_stationary_points_are_the_tool_s():
    theirs = tool_json("landscape", task="spiked", form="shifted", c=1.0, snr=9.0)["series"]
    ours = finetti.stationary_points("spiked", "shifted", c=1, snr=9)
    assert len(ours) == len(theirs["point_kappa"]) > 0
    for name in ("kappa", "nu", "risk", "gradient", "tolerance", "negative", "flat", "rest_count", "span", "rest"):
        assert getattr(ours, name).tolist() == theirs["point_" + name], name
    kinds = ["minimum", "saddle", "maximum", "degenerate"]
    assert ours.kind.tolist() == [kinds[int(kind)] for kind in theirs["point_kind"]]


def test_stationary_points_of_few_dimensions():
    points = finetti.stationary_points(d=3)
    assert np.isnan(points.span[:, 4:]).all() and not np.isnan(points.span[:, :4]).any()
    assert np.isnan(points.rest).all()


# ---- results ----------------------------------------------------------------------------------------

def test_results_show_and_pickle():
    one, many = finetti.risk(kappa=0.5), finetti.risk(kappa=[0.5, 1])
    assert float(one) == one.risk and repr(one) == f"Risk(risk={one.risk!r}, method='closed form')"
    assert repr(many) == f"<Risk of shape (2,): risk {many.risk[1]:.6g} to {many.risk[0]:.6g}, method closed form>"
    simulated = finetti.risk(form="softmax", rho=0.1, nu=0.9, kappa=0.9, samples=1000)
    assert repr(simulated).endswith(f", error={simulated.error!r}, method='simulation', samples=1000)")
    assert repr(finetti.lam_star()).startswith("LamStar(lam=0.06")
    doubtful = finetti.risk(form="bayes", d=[10, 60], samples=3000)
    assert doubtful.rare.tolist() == [False, True] and repr(doubtful).endswith("samples 3000, rare at 1>")
    assert repr(finetti.risk(form="bayes", d=60, samples=3000)).endswith("samples=3000, rare=True)")
    for result in (one, many):
        again = pickle.loads(pickle.dumps(result))
        assert np.array_equal(again.risk, result.risk) and again.settings.keys() == result.settings.keys()


def test_frames():
    table = finetti.risk(kappa=[[0.5], [1]], lam=[0.1, 0.2, 0.3]).to_frame()
    assert isinstance(table, pandas.DataFrame) and len(table) == 6
    assert list(table.columns[:2]) == ["lam", "kappa"] and "d_rho" in table.columns
    assert len(finetti.risk().to_frame()) == 1
    assert finetti.lam_star(L=[3, 4]).to_frame()["lam"].is_monotonic_decreasing
    assert len(finetti.stationary_points().to_frame()) == 5


def test_without_pandas(monkeypatch):
    import sys
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="install"):
        finetti.risk().to_frame()


# ---- arguments ------------------------------------------------------------------------------------

@pytest.mark.parametrize("call, kind, message", [
    (lambda: finetti.risk(kapa=1), TypeError, "did you mean 'kappa'"),
    (lambda: finetti.risk(l=3), TypeError, "did you mean 'L'"),
    (lambda: finetti.risk(snr=1), ValueError, "slr has no setting snr; it belongs to spiked, max"),
    (lambda: finetti.risk(c=1), ValueError, "erf has no setting c; it belongs to shifted, bayes"),
    (lambda: finetti.risk("slt"), ValueError, "did you mean slr"),
    (lambda: finetti.risk(task=3), ValueError, "no task '3'; there are slr"),
    (lambda: finetti.risk(form="sofmax"), ValueError, "did you mean softmax"),
    (lambda: finetti.risk(kappa=2), ValueError, "kappa = 2"),
    (lambda: finetti.risk(kappa=[0, 2]), ValueError, "kappa = 2"),
    (lambda: finetti.risk(kappa=[0, np.nan]), ValueError, "kappa = nan"),
    (lambda: finetti.risk(L=[3, 4.5]), ValueError, "L = 4.5"),
    (lambda: finetti.risk(L=4.5), ValueError, "L = 4.5"),
    (lambda: finetti.risk(L=[3, 4], m=[1, 9]), ValueError, "m = 9"),
    (lambda: finetti.risk(L=[3, 4], L_min=4), ValueError, "L_min = 4 is above L = 3"),
    (lambda: finetti.risk(gamma=[1, 1e-200]), ValueError, "gamma = 1e-200"),
    (lambda: finetti.risk(d=2**70), ValueError, r"d = 1.18\d+e\+21; it must be a whole number from 2"),
    (lambda: finetti.risk(d=[2**70]), ValueError, r"point 0: slr: d = 1.18\d+e\+21"),
    (lambda: finetti.risk("spiked", snr=[1, np.inf]), ValueError, "snr = inf"),
    (lambda: finetti.risk(lam=[1, 2], kappa=[1, 1, 1]), ValueError, r"lam \(2,\), kappa \(3,\)"),
    (lambda: finetti.risk(lam=["a"]), ValueError, "point 0: erf: lam = 'a'"),
    (lambda: finetti.risk(lam=np.ma.array([0.1, 0.2], mask=[0, 1])), TypeError, "lam is a masked array"),
    (lambda: finetti.risk(lam=[[0.1], [0.1, 0.2]]), (TypeError, ValueError), "lam is"),
    (lambda: finetti.risk(lam=np.array(["2020-01-01"], "M8[D]")), TypeError, "datetime64"),
    (lambda: finetti.risk(lam=object()), TypeError, "lam must be"),
    (lambda: finetti.risk(lam="a"), ValueError, "lam = 'a'"),
    (lambda: finetti.risk(lam=1j), TypeError, "lam"),
    (lambda: finetti.risk(lam=[1j]), TypeError, "complex"),
    (lambda: finetti.risk(method="cloosed"), ValueError, "cloosed"),
    (lambda: finetti.risk(method=["closed", "x"]), ValueError, "point 1: risk: method = 'x'; allowed are auto"),
    (lambda: finetti.risk(form="softmax", method="closed"), finetti.UnsupportedError, "use quadrature"),
    (lambda: finetti.risk(tasks.slr(), d=3), TypeError, r"tasks.slr\(d=...\)"),
    (lambda: finetti.risk(tasks.slr(), lengths={3: 1}), TypeError, "lengths"),
    (lambda: finetti.risk(lengths={3: 1}, L=[3, 4]), TypeError, "takes the place of L"),
    (lambda: finetti.risk(lengths={}), ValueError, "at least one length"),
    (lambda: finetti.risk(lengths={0: 1}), ValueError, "L = 0"),
    (lambda: finetti.lam_star(lam=1), TypeError, "lam"),
    (lambda: finetti.lam_star(form="hardmax"), finetti.UnsupportedError, "no lam"),
    (lambda: finetti.bayes_risk(m=2), finetti.FinettiError, "m"),
    (lambda: finetti.stationary_points(lam=[1, 2]), TypeError, "lam is an array"),
    (lambda: finetti.stationary_points(form="softmax"), finetti.UnsupportedError, "softmax"),
])
def test_bad_arguments(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_progress_and_cancelling():
    seen = []
    finetti.risk(form="softmax", lam=[1.0, 2.0], progress=lambda *news: seen.append(news))
    done = [at for _, at, _ in seen]
    assert done == sorted(done) and done[-1] == 2 and {total for _, _, total in seen} == {2}
    with pytest.raises(finetti.CancelledError):
        finetti.risk(form="softmax", method="simulation", samples=10**9, progress=lambda *news: True)
    with pytest.raises(ZeroDivisionError):
        finetti.risk(form="softmax", lam=[1.0, 2.0], progress=lambda *news: 1 / 0)


def test_threads(two_threads):
    """The same numbers from several threads at once."""
    expected = [finetti.risk(form="softmax", lam=float(i + 1), samples=2000).risk for i in range(4)]
    found = [None] * 4

    def work(i):
        found[i] = finetti.risk(form="softmax", lam=float(i + 1), samples=2000).risk
    workers = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == expected


def test_signature_and_docstring():
    signature = inspect.signature(finetti.risk)
    some = {"d", "L", "snr", "lam", "c", *OVERLAPS, "method", "samples", "lengths", "progress"}
    assert some <= set(signature.parameters)
    assert signature.parameters["d"].default == 400 and signature.parameters["lam"].default is None
    for name in signature.parameters:
        assert f"\n    {name} : " in finetti.risk.__doc__, name
    assert "{parameters}" not in finetti.risk.__doc__
