"""finetti.plot: what is in the axes are the numbers of the result, in the palette of the report; matplotlib only where something is drawn."""

import doctest
import os
import re
import subprocess
import sys

import numpy as np
import pytest

import finetti

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
SRC = os.environ.get("SRC", os.path.join(HERE, "..", "..", ".."))


@pytest.fixture(autouse=True)
def closes():
    yield
    pyplot.close("all")


def legend(ax):
    return [entry.get_text() for entry in ax.get_legend().get_texts()]


@pytest.fixture(scope="module")
def runs():
    return finetti.train(d=20, init="sphere", runs=12, steps=4000, alpha=4e-3, log_every=400, seed=3)


def test_examples_run():
    done = doctest.testmod(finetti.plot, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert done.failed == 0 and done.attempted >= 15


def test_palette_is_that_of_the_report():
    with open(os.path.join(SRC, "src", "report", "svg_marks.c"), encoding="utf-8") as file:
        inside = re.search(r"palette\[FINI_COLOURS\] = \{(.*?)\}", file.read(), re.S).group(1)
    assert re.findall(r"#\w{6}", inside) == list(finetti.plot.PALETTE)


@pytest.mark.parametrize("what, name", [("excess", "excess"), ("distance", "distance")])
def test_training_lines_are_the_runs(runs, what, name):
    ax = finetti.plot.training(runs, what)
    lines = [line for line in ax.lines if len(line.get_xdata()) > 1]
    assert len(lines) == 8 and ax.get_yscale() == "log"
    for run, line in enumerate(lines):
        assert np.array_equal(line.get_xdata(), runs.step)
        assert np.array_equal(line.get_ydata(), getattr(runs, name)[run])
    found = sum(int(re.search(r": (\d+) of 12$", entry).group(1)) for entry in legend(ax))
    assert found == 12


def test_training_colours_say_where_runs_ended(runs):
    ax = finetti.plot.training(runs, "alignment")
    lines = [line for line in ax.lines if len(line.get_xdata()) > 1]
    assert len(lines) == 16 and {line.get_linestyle() for line in lines} == {"-", "--"}
    for run in range(8):
        blue = lines[run].get_color() == finetti.plot.PALETTE[0]
        assert blue == (runs.status[run] == "converged")
    assert f"found k*, v*: {runs.count()} of 12" in legend(ax)


def test_training_on_m_says_that_the_distance_is_zero():
    ax = finetti.plot.training(finetti.run("train", init="manifold", runs=3, steps=200), "distance")
    assert "exactly 0" in ax.texts[0].get_text() and ax.get_yscale() == "linear"


def test_training_paths(runs):
    ax = finetti.plot.training(runs, "paths", pyplot.subplots()[1])
    assert np.array_equal(ax.lines[0].get_xdata(), runs.kappa[0]) and legend(ax)[-2:] == ["start", "end"]


def test_landscape_has_the_risk_and_its_points():
    result = finetti.run("landscape", grid=21)
    ax = finetti.plot.landscape(result)
    shades = ax.collections[0].get_array().reshape(21, 21)
    assert np.array_equal(shades, result.series["risk"].T)
    assert legend(ax) == ["minimum", "saddle"]
    assert sorted(zip(*ax.lines[0].get_data())) == [(-1, -1), (1, 1)]
    assert len(finetti.plot.landscape(finetti.run("landscape", grid=21, theta=0.1)).collections) == 1  # no arrows


def test_posterior_bars():
    task = finetti.tasks.slr(d=10, L=6, seed=1)
    X, _, location = task.draw(5)
    exact = task.posterior(X)[0]
    ax = finetti.plot.posterior(exact[::-1], exact, int(location[0]))
    heights = [bar.get_height() for bar in ax.patches]
    assert np.array_equal(heights[:6], exact[::-1]) and np.array_equal(heights[6:], exact)
    assert ax.texts[0].xy[0] == location[0] + 1


def test_calibration_points_and_intervals():
    ax = finetti.plot.calibration([0.05] * 4 + [0.95] * 10, [0, 0, 0, 1] + [1] * 10)
    points = ax.containers[0].lines[0]
    assert np.allclose(points.get_xdata(), [0.05, 0.95]) and np.allclose(points.get_ydata(), [0.25, 1])
    (low, high), (_, one) = [segment[:, 1] for segment in ax.containers[0].lines[2][0].get_segments()]
    assert np.isclose(low, 0.045587, atol=1e-5) and np.isclose(high, 0.699358, atol=1e-5)  # Wilson, 1 of 4
    assert one <= 1 + 1e-12


def test_learning_curves_and_attention():
    result = finetti.learning_curve([4, 1, 2], snr=5, L=3, eps=0.5)
    ax = finetti.plot.learning_curves(result)
    assert np.array_equal(ax.lines[0].get_xdata(), [1, 2, 4])
    assert np.array_equal(ax.lines[0].get_ydata(), result.optimal[[1, 2, 0]])
    fitted = finetti.learning_curve([4, 10], form="softmax", ridge="1,1", samples=1000)
    assert np.array_equal(finetti.plot.learning_curves(fitted).lines[3].get_ydata(), fitted.erm)
    weights = np.array([[0.2, 0.8], [-0.5, 1.5]])
    image = finetti.plot.attention(weights).images[0]
    assert np.array_equal(image.get_array(), weights) and image.get_clim() == (-1.5, 1.5)


@pytest.mark.parametrize("call", [
    lambda: finetti.plot.training(finetti.risk()), lambda: finetti.plot.training(finetti.run("risk")),
    lambda: finetti.plot.landscape(finetti.run("train", runs=1, steps=1)), lambda: finetti.plot.learning_curves(1),
    lambda: finetti.plot.posterior([[1.0]]), lambda: finetti.plot.posterior([1.0], [1.0, 2.0]),
    lambda: finetti.plot.posterior([1.0], location=1), lambda: finetti.plot.calibration([2.0], [True]),
    lambda: finetti.plot.calibration([], []), lambda: finetti.plot.calibration([0.5], [1], bins=0),
    lambda: finetti.plot.attention([]), lambda: finetti.plot.learning_curves(finetti.learning_curve(1)),
    lambda: finetti.plot.training(finetti.run("train", runs=1, steps=1), "loss")])
def test_what_cannot_be_drawn_is_refused(call):
    with pytest.raises((TypeError, ValueError)):
        call()
    assert not pyplot.get_fignums()


def test_matplotlib_comes_with_the_first_figure():
    script = ("import sys, finetti; finetti.plot.PALETTE; assert 'matplotlib' not in sys.modules; sys.modules['matplotlib'] = None\n"
              "try:\n    finetti.plot.attention([[1.0]])\nexcept ImportError as problem:\n    print(problem)")
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0 and "pip install matplotlib" in done.stdout, done.stderr
