"""Where the gradient of the risk vanishes, and how the risk curves there."""

import numpy as np

from ._command import COMMANDS, once
from ._lab import FORM, FORMS, LENGTHS, TASK, TASKS, frame, union
from ._model import model_of, settings_of
from ._signature import signed

_KINDS = np.array(["minimum", "saddle", "maximum", "degenerate"])  # by point_kind of the command
_KEYWORDS = [TASK, FORM, *union(TASKS), LENGTHS, *union(FORMS)]


class StationaryPoints:
    """Stationary points on M, sorted by risk: arrays with one entry a point.

    Attributes
    ----------
    kappa, nu, risk : array (n,)
        Where, and the risk there.
    kind : array of str (n,)
        'minimum', 'saddle', 'maximum', or 'degenerate' (no negative eigenvalue, but flat ones).
    negative, flat : array of int (n,)
        Directions in which the risk falls, and in which the Hessian cannot be told from 0; with multiplicity.
    gradient : array (n,)
        Norm of the gradient on the spheres.
    span : array (n, 6)
        Eigenvalues of the Hessian in span(k, v, k*, v*), ascending; NaN where there are fewer.
    rest : array (n, 2)
        The two eigenvalues in all other directions, each rest_count times; NaN if there are none.
    rest_count : array of int (n,)
        d - 4, or 0.
    tolerance : array (n,)
        What the differences behind the Hessian leave undecided.
    settings : dict
        Every setting that was used.
    """

    _columns = ("kappa", "nu", "risk", "kind", "negative", "flat", "gradient", "tolerance", "rest_count")

    def __init__(self, series, settings):
        self.settings = settings
        for name in ("kappa", "nu", "risk", "gradient", "tolerance", "span", "rest"):
            setattr(self, name, series["point_" + name])
        for name in ("negative", "flat", "rest_count"):
            setattr(self, name, series["point_" + name].astype(np.int64))
        self.kind = _KINDS[series["point_kind"].astype(np.int64)]

    def __len__(self):
        return len(self.kappa)

    def to_frame(self):
        """A pandas DataFrame, one row per point."""
        columns = {name: getattr(self, name) for name in self._columns}
        columns.update({f"span_{i}": self.span[:, i] for i in range(6)})
        columns.update({f"rest_{i}": self.rest[:, i] for i in range(2)})
        return frame(columns)

    def __repr__(self):
        return f"<StationaryPoints: {len(self)}, {', '.join(f'{n} {k}' for k, n in self._count().items())}>"

    def _count(self):
        kinds = self.kind.tolist()
        return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


@signed(_KEYWORDS)
def stationary_points(task="slr", form="erf", *, lengths=None, **given):
    """The stationary points of the risk on M (theta = eta = rho = 0), with the Hessian in all of the two spheres.

    For element-wise forms (erf, linear, shifted) on slr and spiked.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    StationaryPoints
        With arrays kappa, nu, risk, kind, negative, span, rest; sorted by risk.

    Examples
    --------
    >>> import finetti
    >>> points = finetti.stationary_points(d=400, L=10, lam=0.1)
    >>> print(points)
    <StationaryPoints: 5, 2 minimum, 3 saddle>
    """
    words, arrays = model_of(task, form, given, lengths)
    if arrays:
        raise TypeError(f"{next(iter(arrays))} is an array; stationary points are computed for numbers")
    _, series, _ = once(COMMANDS["landscape"], {**words, "grid": "2"})
    return StationaryPoints(series, settings_of(words, _KEYWORDS))
