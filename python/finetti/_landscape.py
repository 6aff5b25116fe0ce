"""Where the gradient of the risk vanishes, and how the risk curves there."""

import numpy as np

from ._core import check, error, ffi, lib, text
from ._lab import FORM, FORMS, LENGTHS, OVERLAP_NAMES, TASK, TASKS, frame, union
from ._model import Model
from ._signature import signed

_MOST = 256


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

    _columns = (*OVERLAP_NAMES[:2], "risk", "kind", "negative", "flat", "gradient", "tolerance", "rest_count")

    def __init__(self, points, d, settings):
        curvatures = [point.curvature for point in points]
        self.settings = settings
        self.kappa = np.array([point.at.kappa for point in points])
        self.nu = np.array([point.at.nu for point in points])
        self.risk = np.array([point.risk for point in points])
        self.kind = np.array([text(lib.fin_curvature_name(ffi.addressof(c), d)) for c in curvatures], dtype=str)
        for name in ("negative", "flat", "rest_count"):
            setattr(self, name, np.array([getattr(c, name) for c in curvatures], dtype=np.int64))
        for name in ("gradient", "tolerance"):
            setattr(self, name, np.array([getattr(c, name) for c in curvatures], dtype=float))
        self.span = np.array([[*list(c.span)[:c.span_count], *[np.nan] * (6 - c.span_count)] for c in curvatures],
                             dtype=float).reshape(-1, 6)
        self.rest = np.array([list(c.rest) if c.rest_count else [np.nan] * 2 for c in curvatures],
                             dtype=float).reshape(-1, 2)

    def __len__(self):
        return len(self.kappa)

    def to_frame(self):
        """A pandas DataFrame, one row a point."""
        columns = {name: getattr(self, name) for name in self._columns}
        columns.update({f"span_{i}": self.span[:, i] for i in range(6)})
        columns.update({f"rest_{i}": self.rest[:, i] for i in range(2)})
        return frame(columns)

    def __repr__(self):
        return f"<StationaryPoints: {len(self)}, {', '.join(f'{n} {k}' for k, n in self._count().items())}>"

    def _count(self):
        kinds = self.kind.tolist()
        return {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}


@signed([TASK, FORM, *union(TASKS), LENGTHS, *union(FORMS)])
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
    model = Model(task, form, given, lengths)
    if model.arrays:
        raise TypeError(f"{model.arrays[0][1]} is an array; stationary points are computed for numbers")
    task, (settings,) = model.task(), model.structs()
    points, count, err = ffi.new("fin_stationary[]", _MOST), ffi.new("int64_t *"), error()
    check(lib.fin_stationary_points(task, model.form.pointer, settings, _MOST, points, count, err), err)
    found = [points[i] for i in range(min(count[0], _MOST))]
    return StationaryPoints(found, lib.fin_task_get_settings(task).d, model.settings(task, [settings]))
