"""finetti.risk and what is compared with it: exact where there is a closed form or a quadrature, else simulated.

Settings are keywords, generated from the library's tables. Where they are arrays they are broadcast against each other
and the results have that shape. The erf predictor on slr and spiked, for which the library has a call that takes many
points, goes there in one piece; everything else is computed point by point.
"""

import warnings

import numpy as np

from ._core import Watch, check, error, ffi, keep_exception, lib, text
from ._erf import whole_sweep
from ._lab import FORM, FORMS, LENGTHS, OVERLAP_NAMES, OVERLAPS, PROGRESS, RISK, TASK, TASKS, Answer, union
from ._model import Model, each
from ._signature import Keyword, parameters, signed

_METHODS = tuple(text(lib.fin_method_name(i)) for i in range(4))
_PARTS = ("signal", "noise", "bias")


class Estimate(Answer):
    """A risk and how it was obtained.

    Attributes
    ----------
    risk : float or array
        The value.
    error : float or array
        0 for a closed form; for a quadrature how well it stands; for a simulation the standard error.
    method : str
        'closed form', 'quadrature' or 'simulation' (an array if it differs between points).
    samples : int or array
        Sequences of a simulation, else 0.
    rare : bool or array
        True: one sample makes up a tenth of the mean, so that the simulation most likely missed larger ones, and both
        the risk and its error are too small.
    settings : dict
        Every setting that was used.
    """

    _columns = _shown = ("risk", "error", "method", "samples", "rare")

    def __float__(self):
        return float(self.risk)


class Risk(Estimate):
    """A risk, its parts and its gradient.

    Attributes
    ----------
    signal, noise, bias : float, array or None
        risk = eps^2 + signal + noise + bias: what relevant tokens, irrelevant ones and the mean error contribute.
        None where the risk is simulated.
    gradient : dict or None
        Derivatives in kappa, nu, theta, eta and rho. None where the risk is simulated.
    """

    _columns = (*Estimate._columns, *_PARTS, "gradient")


class LamStar(Estimate):
    """The best lam of the oracle.

    Attributes
    ----------
    lam : float or array
        The argmin.
    """

    _columns = _shown = ("lam", *Estimate._columns)


# ---- what the library answers ---------------------------------------------------------------------

def _estimate(estimate):
    return {"risk": estimate.value, "error": estimate.error, "method": _METHODS[estimate.method],
            "samples": estimate.samples, "rare": bool(estimate.rare)}


def _fields(report):
    fields = _estimate(report.risk)
    fields["signal"], fields["noise"], fields["bias"] = \
        (report.signal, report.noise, report.bias) if report.has_parts else (None, None, None)
    fields["gradient"] = dict(zip(OVERLAP_NAMES, report.gradient)) if report.has_gradient else None
    return fields


def _risk_at(form):
    """The call for one point."""
    def call(task, structs, watch):
        report = ffi.new("fin_risk_report *")
        watch.check(lib.fin_risk(task, form, *structs, watch.pointer, report, watch.err))
        return _fields(report)
    return call


def _together(result, model, rows, shape, settings):
    """One result of arrays from those of the points."""
    fields = {name: _array([row[name] for row in rows], shape) for name in result._columns}
    methods = {row["method"] for row in rows}
    fields["method"] = methods.pop() if len(methods) == 1 else fields["method"]
    if not rows:
        fields.update({name: None for name in fields if name == "gradient"})
    return result(settings, model.varying(shape), fields)


def _array(values, shape):
    if values and isinstance(values[0], dict):
        return {key: _array([value[key] for value in values], shape) for key in values[0]}
    return None if values and values[0] is None else np.array(values).reshape(shape)


def _alone(result, model, progress, call):
    """The result of a call without arrays."""
    task, structs = model.task(), model.structs()
    with Watch(progress) as watch:
        fields = call(task, structs, watch)
    return result(lambda: model.settings(task, structs), {}, fields)


def _answer(result, model, progress, call):
    if model.arrays:
        return _together(result, model, *each(model, progress, call))
    return _alone(result, model, progress, call)


# ---- the functions ------------------------------------------------------------------------------

_SETTINGS = union(TASKS, arrays=True)
_HOW = parameters(RISK, arrays=True)
_ACTIVATION = Keyword("activation", None, "Callable[[float], float] | None",
                      "your own element-wise weights w_l = activation(chi_l), instead of a form; by quadrature")


@signed([TASK, FORM, *_SETTINGS, LENGTHS, *union(FORMS, arrays=True), *parameters(OVERLAPS, arrays=True), *_HOW,
         _ACTIVATION, PROGRESS])
def risk(task="slr", form="erf", *, lengths=None, activation=None, progress=None, **given):
    """E (Y - f(X))^2 of the predictor f(X) = sum_l w_l X_l.v, given the overlaps of k and v with k* and v*.

    Closed form or quadrature for element-wise forms (erf, linear, shifted) on slr and spiked; else a simulation, at a
    cost that does not depend on d. By default k = k* and v = v*.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    Risk
        With attributes risk, error, method, signal, noise, bias, gradient and settings. Numbers where all settings
        are numbers; where some are arrays, they are broadcast against each other and so are the results.

    Examples
    --------
    >>> import numpy as np, finetti
    >>> print(f"{finetti.risk(lam=0.1, kappa=0.5, nu=0.9).risk:.6f}")
    0.232667
    >>> curve = finetti.risk(lam=np.logspace(-2, 0, 5))
    >>> curve.risk.shape, curve.method
    ((5,), 'closed form')
    """
    if activation is not None:
        if form != "erf":
            raise TypeError(f"activation takes the place of form = {form!r}; give one or the other")
        return _own_activation(task, activation, given, lengths, progress)
    model = Model(task, form, given, lengths, OVERLAPS, RISK)
    _look_at_overlaps(given)
    exact = form == "erf" and model.kind.name != "max"
    if model.arrays and exact and not any(group == 3 for group, _, _ in model.arrays):
        structs = model.structs()
        if structs[2].method <= lib.FIN_METHOD_CLOSED:
            return Risk(*whole_sweep(model, structs))
    if exact and not model.arrays and model.parts[3].get("method", "auto") in ("auto", "closed"):
        return _closed(model)
    return _answer(Risk, model, progress, _risk_at(model.form.pointer))


def _look_at_overlaps(given):
    """Warns if no unit vectors have these overlaps: the formula has a value there, but it is no risk."""
    if not any(given.get(name) is not None for name in ("theta", "eta", "rho")):
        return  # kappa and nu alone can always be had
    try:
        kappa, nu, theta, eta, rho = (OVERLAPS.fields[name].default if given.get(name) is None
                                      else np.asarray(given[name], float) for name in OVERLAP_NAMES)
    except (TypeError, ValueError):
        return  # what is no number is refused elsewhere
    # The part of k and of v that is orthogonal to k* and v* has this Gram matrix, which must be positive.
    k, v, both = 1 - kappa**2 - eta**2, 1 - theta**2 - nu**2, rho - kappa * theta - eta * nu
    if np.any((k < -1e-9) | (v < -1e-9) | (both**2 > k * v + 1e-9)):
        warnings.warn("no unit vectors k, v have these overlaps (or some of them): the number is what the formula gives, "
                      "not a risk that can be had; kappa^2 + eta^2 and theta^2 + nu^2 are at most 1", stacklevel=4)


def _closed(model):
    """One closed form, too short to be watched."""
    task, structs = model.task(), model.structs()
    err, report = error(), ffi.new("fin_risk_report *")
    check(lib.fin_risk(task, model.form.pointer, *structs, ffi.NULL, report, err), err)
    return Risk(lambda: model.settings(task, structs), {}, _fields(report))


def _own_activation(task, activation, given, lengths, progress):
    if not callable(activation):
        raise TypeError(f"activation must be a function of one number, not {activation!r}")
    model = Model(task, None, given, lengths, OVERLAPS, RISK)
    odd = [name for name in (*model.parts[2], *(name for i, name, _ in model.arrays if i == 2)) if name != "nodes"]
    if odd:
        raise TypeError(f"{odd[0]!r} does not go with activation: its risk is a quadrature, with at most `nodes` nodes")

    def call(task, structs, watch):
        report, caller = ffi.new("fin_risk_report *"), _Caller(activation)
        handle = ffi.new_handle(caller)
        status = lib.fin_risk_activation(task, lib.finpy_activation, handle, structs[0], structs[1].nodes, report,
                                         watch.err)
        if caller.problem is not None:
            raise caller.problem
        watch.check(status)
        return _fields(report)

    return _answer(Risk, model, progress, call)


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


@signed([TASK, FORM, *_SETTINGS, LENGTHS, *union(FORMS, arrays=True, without=("lam",)), *_HOW, PROGRESS])
def lam_star(task="slr", form="erf", *, lengths=None, progress=None, **given):
    """The lam at which the oracle (k = k*, v = v*) has the least risk, and that risk.

    Searched on a log scale from 1e-8 to 1e4; an answer at a limit means that the risk still falls there.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    LamStar
        With attributes lam, risk, error and method.

    Examples
    --------
    >>> import finetti
    >>> best = finetti.lam_star(d=400, L=10)
    >>> print(f"{best.lam:.5f} {best.risk:.5f}")
    0.06377 0.06710
    """
    model = Model(task, form, given, lengths, RISK)

    def call(task, structs, watch):
        lam, estimate = ffi.new("double *"), ffi.new("fin_estimate *")
        watch.check(lib.fin_lam_star(task, model.form.pointer, *structs, watch.pointer, lam, estimate, watch.err))
        return {"lam": lam[0], **_estimate(estimate)}

    return _answer(LamStar, model, progress, call)


@signed([TASK, *_SETTINGS, LENGTHS, *_HOW, PROGRESS])
def bayes_risk(task="slr", *, lengths=None, progress=None, **given):
    """E Var(Y | X), the least risk that any predictor can have; needs m = 1.

    By quadrature where tokens differ in their mean only (spiked, max, slr with gamma = 1), else by simulation.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    Estimate
        With attributes risk, error and method.

    Examples
    --------
    >>> import finetti
    >>> print(f"{finetti.bayes_risk('spiked', snr=4, L=2).risk:.6f}")
    0.115509
    """
    model = Model(task, None, given, lengths, RISK)

    def call(task, structs, watch):
        estimate = ffi.new("fin_estimate *")
        watch.check(lib.fin_risk_bayes(task, structs[0], watch.pointer, estimate, watch.err))
        return _estimate(estimate)

    return _answer(Estimate, model, progress, call)


@signed([TASK, *_SETTINGS, LENGTHS])
def linear_risk(task="slr", *, lengths=None, **given):
    """The risk of the best predictor that is linear in X, which is a multiple of sum_l X_l.v*. In closed form.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    Estimate
        With attributes risk, error (0) and method.

    Examples
    --------
    >>> import finetti
    >>> print(f"{finetti.linear_risk(L=10).risk:.6f}")
    0.473684
    """
    model = Model(task, None, given, lengths)
    return _answer(Estimate, model, None,
                   lambda task, structs, watch: _estimate(lib.fin_risk_linear(task, ffi.NULL)))
