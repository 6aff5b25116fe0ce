"""The risk of the erf predictor at many points, in one call of the library."""

import re

import numpy as np

from . import _arrays
from ._core import ArgumentError, check, error, ffi, lib
from ._lab import OVERLAP_NAMES, fill

_FLOAT64 = np.dtype(np.float64)
_SWEEP = 1 << 13  # points of a sweep that are computed together
_BLOCK = 1 << 20  # points between two chances for Ctrl-C


def risk_erf(points):
    """Exact risk and gradient of the erf predictor at many points: the raw call.

    Parameters
    ----------
    points : array (n, 12) of float64, C-contiguous
        A row is kappa, nu, theta, eta, rho, lam, gamma, mu, eps, m, L_mean, L_var.

    Returns
    -------
    array (n, 10)
        A row is signal, noise, bias, risk and the derivatives of the risk in kappa, nu, theta, eta, rho and lam.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[1, 1, 0, 0, 0, 0.1, 0.5**0.5, 200**0.5, 0, 1, 10, 0]])
    >>> print(risk_erf(points)[0, 3].round(6))
    0.113498
    """
    if (type(points) is not np.ndarray or points.dtype is not _FLOAT64 or points.ndim != 2 or points.shape[1] != 12
            or not points.flags.carray):
        _arrays.view(points, "points", dtype="d", shape=(None, 12))  # says what is wrong
    n = len(points)
    values, err = np.empty((n, 10)), error()
    source = ffi.from_buffer("fin_risk_point[]", points)
    target = ffi.from_buffer("fin_risk_value[]", values)
    if n <= _BLOCK:
        check(lib.fin_risk_erf(n, source, target, err), err)
        return values
    for i in range(0, n, _BLOCK):
        if lib.fin_risk_erf(min(_BLOCK, n - i), source + i, target + i, err):
            check(lib.fin_risk_erf(n, source, target, err), err)  # so that the message counts from the first point
    return values


def whole_sweep(model, structs):
    """Settings, varying settings and fields of a Risk for the closed form of erf at all points of `model`."""
    shape, columns = model.broadcast()
    for group, name, array in columns:
        _check_range(model.tables[group], name, array)
    given = {name: array for _, name, array in columns}
    form, overlaps, _ = structs
    task = None if model.varies() else model.task()
    point = [given.get(name, getattr(overlaps, name)) for name in OVERLAP_NAMES]
    point += [given.get("lam", form.lam), *(_of_task(task) if task else _of_tasks(model, columns, given))]
    values = _in_blocks(point, len(columns[0][2])).reshape(9, *shape)
    fields = {"signal": values[0], "noise": values[1], "bias": values[2], "risk": values[3], "error": np.zeros(shape),
              "method": "closed form", "samples": np.zeros(shape, np.int64), "rare": np.zeros(shape, bool),
              "gradient": dict(zip(OVERLAP_NAMES, values[4:9]))}
    return model.settings(task, structs, shape), model.varying(shape), fields


def _in_blocks(point, n):
    """What risk_erf gives but for d_lam, as rows: (9, n). point: numbers, or arrays (n), of its columns.

    In pieces that stay in the cache.
    """
    out = np.empty((9, n))
    block, varying = np.empty((min(n, _SWEEP), 12)), []
    for i, column in enumerate(point):
        if np.ndim(column):
            varying.append((i, column))
        else:
            block[:, i] = column
    for a in range(0, n, _SWEEP):
        b = min(a + _SWEEP, n)
        for i, column in varying:
            block[:b - a, i] = column[a:b]
        try:
            out[:, a:b] = risk_erf(block[:b - a]).T[:9]
        except ArgumentError as problem:  # it counts from the first point of the block
            problem.args = (re.sub(r"^point (\d+)", lambda found: f"point {a + int(found[1])}", problem.args[0]),)
            raise
    return out


def _check_range(table, name, array):
    """Lets the library complain about the first number that is out of its range."""
    field = table.fields[name]
    good = (array >= field.lowest) & (array <= field.highest)
    if field.kind is int and array.dtype.kind == "f":
        good &= np.floor(array) == array
    if not good.all():
        table.make({name: array[np.argmin(good)].item()})


def _of_task(task):
    """gamma, mu, eps, m, mean and variance of L."""
    s = lib.fin_task_get_settings(task)
    return s.gamma, s.mu, s.eps, s.m, lib.fin_task_length_mean(task), lib.fin_task_length_variance(task)


def _of_tasks(model, columns, given):
    """The same where settings of the task are arrays, by the rules by which the library works them out."""
    base = fill(model.kind.table, model.parts[0])
    size = len(columns[0][2])

    def get(name):
        return np.asarray(given.get(name, getattr(base, name)), dtype=float)

    def row(i):
        return {**model.parts[0], **{name: array[i].item() for group, name, array in columns if group == 0}}

    if "snr" in model.kind.table.fields:
        gamma, mu = 1.0, np.sqrt(get("snr"))
    else:
        automatic = "mu" not in given and lib.fin_is_auto(base.mu)
        gamma, mu = get("gamma"), np.sqrt(get("d") / 2) if automatic else get("mu")
    longest = get("L")
    shortest = longest if "L_min" not in given and lib.fin_is_auto(float(base.L_min)) else get("L_min")
    spread = longest - shortest + 1
    mean, variance = (shortest + longest) / 2, (spread * spread - 1) / 12
    if model.lengths is not None and size:
        some = model.task(row(0))
        shortest = longest = float(lib.fin_task_get_settings(some).L_min)
        mean, variance = _of_task(some)[4:]
    good = (shortest <= longest) & (get("m") <= shortest) & np.isfinite(mu) & ((gamma == 0) | (gamma >= 1e-100))
    good = np.broadcast_to(good, (size,))
    if not good.all():
        model.task(row(np.argmin(good)))  # the library has a sentence for it
    return gamma, mu, get("eps"), get("m"), mean, variance
