"""Figures of results, as the report draws them: the same colours, marks and labels.

Every function takes a result and, if you like, matplotlib axes to draw into (without: new ones), and returns the axes. matplotlib is imported
when a function is called, and not before.

>>> import finetti
>>> runs = finetti.train(init="manifold", runs=4, steps=1000)
>>> axes = finetti.plot.training(runs, "alignment")
>>> axes.figure.savefig("training.pdf")  # doctest: +SKIP
"""

import numpy as np

from ._command import Result
from ._core import ArgumentError, ffi, lib
from ._training import Training

__all__ = ["attention", "calibration", "landscape", "learning_curves", "posterior", "training"]

PALETTE = ("#0072b2", "#d55e00", "#009e73", "#aa4499", "#b8860b", "#56b4e9", "#6e4b3a")  # that of src/report/svg_marks.c
INK, SOFT, GRID = "#1f2328", "#57606a", "#e4e7eb"
PLACES = (("neither", 3), ("found k*, v*", 0), ("swapped", 1), ("diverged", 6))  # where a run ended, and its colour
_FOUND, _SWAPPED, _DIVERGED = 1, 2, 3


def _axes(ax, **labels):
    if ax is None:
        try:
            from matplotlib import pyplot
        except ImportError:
            raise ImportError("finetti.plot draws with matplotlib, which is not installed: pip install matplotlib",
                              name="matplotlib") from None
        ax = pyplot.subplots(layout="constrained")[1]
    ax.set(**labels)
    ax.set_axisbelow(True)
    ax.grid(color=GRID)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return ax


def _legend(ax, above=False):
    labels = ax.get_legend_handles_labels()[0]
    if labels:
        where = {"ncols": len(labels), "loc": "lower center", "bbox_to_anchor": (0.5, 1)} if above else {}
        ax.legend(frameon=False, fontsize="small", **where)
    return ax


def _result(result, command):
    if isinstance(result, Training) and command == "train":
        return result.summary()
    if not isinstance(result, Result) or result.command != command:
        given = f"what {result.command!r} left" if isinstance(result, Result) else f"a {type(result).__name__}"
        raise TypeError(f"this draws what finetti.run({command!r}) leaves, not {given}")
    if result.shape:
        raise ArgumentError(f"the result has shape {result.shape}: this draws a single run")
    return result


def _array(values, name, ndim):
    array = np.asarray(values, dtype=float)
    if array.ndim != ndim or not array.size:
        raise ValueError(f"{name} has shape {array.shape}; it must have {ndim} dimension{'s' * (ndim > 1)} and numbers")
    return array


_WHAT = {"excess": ("path_excess", "risk - ε²"), "distance": ("path_distance", "distance to M"),
         "alignment": (None, "|κ| solid, |ν| dashed"), "paths": (None, "ν = v·v*")}


def training(result, what="excess", ax=None):
    """Runs of a training, each a thin line in the colour of where it ended; the legend counts all runs.

    Parameters
    ----------
    result : Training or Result
        Of finetti.train, or of finetti.run("train"). The first eight runs are drawn.
    what : {'excess', 'alignment', 'distance', 'paths'}, default='excess'
        The excess risk, |kappa| and |nu|, the distance to M, or paths in the plane of kappa and nu.
    ax : matplotlib axes, default=None

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import finetti
    >>> runs = finetti.train(init="manifold", runs=4, steps=200)
    >>> finetti.plot.training(runs, "alignment").get_xlabel() != ""
    True
    """
    if what not in _WHAT:
        raise ArgumentError(f"what = {what!r}; it is one of {', '.join(_WHAT)}")
    result = _result(result, "train")
    series, (name, label) = result.series, _WHAT[what]
    place = np.where(series["end_status"] == _FOUND, _FOUND,
                     np.where(np.isin(series["end_place"], (_SWAPPED, _DIVERGED)), series["end_place"], 0)).astype(int)
    paths = what == "paths"
    ax = _axes(ax, xlabel="κ = k·k*" if paths else "step", ylabel=label)
    step, kappa, nu = series["step"], series["path_kappa"], series["path_nu"]
    lines = [(kappa, nu, "-")] if paths else [(None, np.abs(kappa), "-"), (None, np.abs(nu), "--")] \
        if what == "alignment" else [(None, series[name], "-")]
    for x, y, style in lines:
        for run in range(len(y)):
            ax.plot(step if x is None else x[run], y[run], style, linewidth=1, color=PALETTE[PLACES[place[run]][1]])
    for code, (ended, colour) in enumerate(PLACES):
        if (place == code).any():
            ax.plot([], [], color=PALETTE[colour], label=f"{ended}: {(place == code).sum()} of {len(place)}")
    if paths:
        ax.plot(kappa[:, 0], nu[:, 0], "x", color=INK, label="start")
        ax.plot(kappa[:, -1], nu[:, -1], "o", color=INK, markersize=4, label="end")
        ax.set(xlim=(-1.08, 1.08), ylim=(-1.08, 1.08), aspect="equal")
    elif what == "alignment":
        ax.set_ylim(0, 1.04)
    elif not np.nanmax(lines[0][1], initial=0) > 0:
        ax.text(0.5, 0.5, f"{label}: exactly 0, at every point.", transform=ax.transAxes, ha="center")
        ax.set_yticks([])
    else:
        ax.set_yscale("log")
    return _legend(ax)


def landscape(result, ax=None):
    """The risk on M over (kappa, nu) as colours, the direction of descent as arrows, stationary points.

    Parameters
    ----------
    result : Result
        Of finetti.run("landscape").
    ax : matplotlib axes, default=None

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import finetti
    >>> finetti.plot.landscape(finetti.run("landscape", grid=21)).get_xlabel() != ""
    True
    """
    result = _result(result, "landscape")
    s = result.series
    ax = _axes(ax, xlabel="κ = k·k*", ylabel="ν = v·v*")
    ax.grid(False)
    shades = ax.pcolormesh(s["kappa"], s["nu"], s["risk"].T, cmap="viridis", shading="nearest")
    ax.figure.colorbar(shades, ax=ax, label="risk")
    settings = result.settings
    if not any(settings.get(name) for name in ("theta", "eta", "rho")):  # off M descent leaves the plane
        some = slice(None, None, max(1, len(s["kappa"]) // 17))
        kappa, nu = np.meshgrid(s["kappa"][some], s["nu"][some], indexing="ij")
        u, v = -(1 - kappa**2) * s["d_kappa"][some, some], -(1 - nu**2) * s["d_nu"][some, some]
        size = np.hypot(u, v)
        size[size == 0] = 1
        ax.quiver(kappa, nu, u / size, v / size, color="white", alpha=0.75, pivot="mid", scale=30, width=0.003)
    stable = s["point_negative"] == 0
    for which, mark, label, colour in ((stable, "o", "minimum", 1), (~stable, "D", "saddle", 3)):
        if which.any():
            ax.plot(s["point_kappa"][which], s["point_nu"][which], mark, color=PALETTE[colour], markeredgecolor="white",
                    label=label, clip_on=False)
    ax.set_aspect("equal")
    return _legend(ax, above=True)


def posterior(weights, exact=None, location=None, ax=None):
    """Probabilities of the tokens of one bag as bars, the exact posterior beside them.

    Parameters
    ----------
    weights : array (L,)
        What model.locate, or attention, says of every token.
    exact : array (L,), default=None
        Such as task.posterior.
    location : int, default=None
        The responsible token, from 0, which gets a mark.
    ax : matplotlib axes, default=None

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import finetti
    >>> len(finetti.plot.posterior([0.1, 0.7, 0.2], location=1).patches) >= 3
    True
    """
    weights = _array(weights, "weights", 1)
    pairs = [(weights, "attention")]
    if exact is not None:
        pairs.append((_array(exact, "exact", 1), "exact posterior"))
        if len(pairs[1][0]) != len(weights):
            raise ValueError(f"exact has {len(pairs[1][0])} tokens, weights {len(weights)}")
    if location is not None and not 0 <= location < len(weights):
        raise ArgumentError(f"location = {location}; there are the tokens 0 to {len(weights) - 1}")
    ax = _axes(ax, xlabel="token", ylabel="probability that it decides", xticks=range(1, len(weights) + 1))
    ax.grid(False, axis="x")
    token, width = np.arange(1, len(weights) + 1), 0.7 / len(pairs)
    for i, (values, label) in enumerate(pairs):
        ax.bar(token + (i - (len(pairs) - 1) / 2) * width, values, width, color=PALETTE[i], label=label)
    if location is not None:
        top = max(values[location] for values, _ in pairs)
        ax.annotate("responsible", (location + 1, top), xytext=(0, 14), textcoords="offset points", ha="center", color=SOFT,
                    arrowprops={"arrowstyle": "->", "color": SOFT})
        ax.margins(y=0.2)
    return _legend(ax, above=True)


def calibration(probabilities, happened, bins=10, ax=None):
    """How often what was given a probability p happened, by bins of p, with 95 % intervals (Wilson) and the diagonal.

    Parameters
    ----------
    probabilities : array
        Of any shape, between 0 and 1.
    happened : array of bool
        Of the same shape.
    bins : int, default=10
    ax : matplotlib axes, default=None

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import numpy as np, finetti
    >>> p = np.random.default_rng(0).uniform(size=500)
    >>> happened = np.random.default_rng(1).uniform(size=500) < p
    >>> finetti.plot.calibration(p, happened).get_xlabel() != ""
    True
    """
    p, hit = np.asarray(probabilities, dtype=float).ravel(), np.asarray(happened).ravel().astype(bool)
    if p.shape != hit.shape or not p.size:
        raise ValueError(f"probabilities and happened have {p.size} and {hit.size} numbers; they must be as many, and some")
    if not ((p >= 0) & (p <= 1)).all():
        raise ValueError("probabilities must be between 0 and 1")
    if bins < 1:
        raise ArgumentError(f"bins = {bins}; it must be 1 or more")
    which = np.minimum((p * bins).astype(int), bins - 1)
    n = np.bincount(which, minlength=bins)
    some = n > 0
    n, mean, share = n[some], np.bincount(which, p, bins)[some], np.bincount(which, hit, bins)[some]
    mean, share = mean / n, share / n
    ends = np.empty((2, len(n)))
    for k, count in enumerate(np.bincount(which, hit, bins)[some]):
        lib.fin_wilson(count, n[k], ffi.from_buffer("double[]", ends[0, k:]), ffi.from_buffer("double[]", ends[1, k:]))
    ax = _axes(ax, xlabel="predicted", ylabel="observed", xlim=(0, 1), ylim=(0, 1.02), aspect="equal")
    ax.plot([0, 1], [0, 1], color=SOFT, linestyle=(0, (3, 3)), linewidth=1, label="calibrated")
    low, high = np.clip([share - ends[0], ends[1] - share], 0, None)
    ax.errorbar(mean, share, [low, high], fmt="o", color=PALETTE[0], linewidth=1.2, label="observed")
    return _legend(ax)


def learning_curves(result, ax=None):
    """Risk against the number of bags a column: the best any learner can do, ridge regression, knowing all, and a fit (form=).

    Parameters
    ----------
    result : Result
        Of finetti.learning_curve with several alpha = n / d.
    ax : matplotlib axes, default=None

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import finetti
    >>> curve = finetti.learning_curve(alpha=[1, 2, 5])
    >>> finetti.plot.learning_curves(curve).get_xlabel() != ""
    True
    """
    if not isinstance(result, Result) or result.command != "curve":
        raise TypeError(f"this draws what finetti.learning_curve leaves, not a {type(result).__name__}")
    if len(result.shape) != 1:
        raise ArgumentError(f"the result has shape {result.shape}; give several alpha, such as learning_curve([1, 2, 4])")
    alpha = np.asarray(result.settings["alpha"], dtype=float)
    order = np.argsort(alpha)
    ax = _axes(ax, xlabel="n / d", ylabel="risk", xscale="log", yscale="log")
    if len(alpha) <= 8:
        ax.set_xticks(alpha[order], [f"{a:g}" for a in alpha[order]])
        ax.set_xticks([], minor=True)
    for i, (name, label, style) in enumerate((("optimal", "best of all learners", "o-"), ("linear", "ridge regression", "s-"),
                                              ("known", "k*, v* known", "--"),
                                              ("erm", f"{result.settings['form']}, fitted with a ridge penalty", "^-"))):
        if name in result:
            ax.plot(alpha[order], np.asarray(result[name])[order], style, color=PALETTE[i], markersize=4, label=label)
    return _legend(ax)


def attention(weights, ax=None):
    """Weights of tokens (across) for queries (down) as colours; where some are negative, with 0 in the middle.

    Parameters
    ----------
    weights : array (queries, tokens)
        Such as the last of Context.predict(queries, return_weights=True).
    ax : matplotlib axes, default=None

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> import numpy as np, finetti
    >>> len(finetti.plot.attention(np.eye(3)).images)
    1
    """
    weights = _array(weights, "weights", 2)
    ax = _axes(ax, xlabel="token", ylabel="query")
    ax.grid(False)
    most = float(np.nanmax(np.abs(weights)))
    signed = bool(np.nanmin(weights) < 0)
    shades = ax.imshow(weights, aspect="auto", interpolation="nearest", cmap="RdBu_r" if signed else "viridis",
                       vmin=-most if signed else 0, vmax=most, extent=(0.5, weights.shape[1] + 0.5, weights.shape[0] + 0.5, 0.5))
    ax.figure.colorbar(shades, ax=ax, label="weight")
    return ax
