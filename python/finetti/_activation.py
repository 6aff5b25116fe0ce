"""The risk of weights that a Python function gives: a quadrature that calls it, at every point of the settings."""

import numpy as np

from ._command import COMMANDS, broadcast, canonical, word
from ._core import CancelledError, Watch, ffi, keep_exception, lib
from ._lab import FORMS, OVERLAP_NAMES, OVERLAPS, RISK, fill
from ._model import model_of, task_of

_ODD = {*RISK.fields, *(name for form in FORMS.values() for name in form.table.fields)} - {"nodes"}


class _Caller:
    """A Python function that C calls, and the first exception that it raised."""

    def __init__(self, function):
        self.function, self.problem = function, None


@ffi.def_extern(error=float("nan"), onerror=keep_exception)
def finpy_activation(chi, user):
    caller = ffi.from_handle(user)
    if caller.problem is None:
        try:
            return float(caller.function(chi))
        except BaseException as problem:
            caller.problem = problem
    return float("nan")


def risk_with(activation, task, given, lengths, progress):
    """Settings, those that vary, and fields of a Risk."""
    if not callable(activation):
        raise TypeError(f"activation must be a function of one number, not {activation!r}")
    for name in given:
        if given[name] is not None and name in _ODD:
            raise TypeError(f"{name!r} does not go with activation: its risk is a quadrature, with at most `nodes` nodes")
    words, arrays = model_of(task, None, given, lengths)
    shape, varying = broadcast(arrays) if arrays else ((), {})
    rows, settings = [], {}
    with Watch(progress) as watch:
        for index in np.ndindex(shape):
            at = {**words, **{name: word(array[index], name) for name, array in varying.items()}}
            settings = canonical(COMMANDS["risk"], at)  # which refuses what is wrong
            rows.append(_at(activation, task_of(at), settings, watch))
            if watch.report("points", len(rows), np.prod(shape)):
                raise CancelledError("cancelled")
    settings = {name: value for name, value in settings.items() if name not in _ODD and name not in ("form", "show")}
    fields = {name: _array([row[name] for row in rows], shape) for name in ("risk", "error", "samples", "rare", "signal",
                                                                           "noise", "bias")}
    gradient = {name: _array([row["gradient"][name] for row in rows], shape) for name in OVERLAP_NAMES}
    return {**settings, **varying}, varying, {**fields, "method": "quadrature", "gradient": gradient}


def _array(values, shape):
    return np.array(values).reshape(shape) if shape else values[0]


def _at(activation, task, settings, watch):
    overlaps = fill(OVERLAPS, {name: settings[name] for name in OVERLAP_NAMES})
    report, caller = ffi.new("fin_risk_report *"), _Caller(activation)
    handle = ffi.new_handle(caller)
    status = lib.fin_risk_activation(task, lib.finpy_activation, handle, overlaps, settings["nodes"], report, watch.err)
    if caller.problem is not None:
        raise caller.problem
    watch.check(status)
    return {"risk": report.risk.value, "error": report.risk.error, "samples": report.risk.samples,
            "rare": bool(report.risk.rare), "signal": report.signal, "noise": report.noise, "bias": report.bias,
            "gradient": dict(zip(OVERLAP_NAMES, report.gradient))}
