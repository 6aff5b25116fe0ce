"""finetti.risk and what is compared with it: exact where there is a closed form or a quadrature, else simulated.

They are numbers of the command `risk` (finetti.run), by the names that they have here. Settings are keywords, generated
from the library's tables; where they are arrays they are broadcast against each other and the results have that shape.
"""

import functools
import warnings

import numpy as np

from ._activation import risk_with
from ._command import COMMANDS, at_first, formula_values, of_sweep, once, sweep
from ._core import lib, text
from ._lab import FORM, FORMS, LENGTHS, OVERLAP_NAMES, OVERLAPS, PROGRESS, RISK, TASK, TASKS, Answer, union
from ._model import model_of, settings_of
from ._signature import Keyword, parameters, signed

_METHODS = tuple(text(lib.fin_method_name(i)) for i in range(4))
_PARTS = ("signal", "noise", "bias")
_GRADIENT = tuple((name, "d_" + name) for name in OVERLAP_NAMES)
_COMMAND = COMMANDS["risk"]


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
        True: one sample makes up a tenth of the mean, so that the simulation most likely missed larger ones: the risk
        is too small and its error not known (nan).
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
    """Fields of an Estimate from a fin_estimate."""
    return {"risk": estimate.value, "error": np.nan if estimate.rare else estimate.error,
            "method": _METHODS[estimate.method], "samples": estimate.samples, "rare": bool(estimate.rare)}


def _fields(name, numbers, shape):
    """Fields of a Risk, Estimate or LamStar from the numbers that a run of the command, or a sweep, has left."""
    found = {number[0]: number for number in numbers}
    if not found:  # a sweep without points
        nothing = np.empty(shape)
        found = dict.fromkeys((name, "lam_star"), (name, nothing, nothing, "", np.zeros(shape, np.int64)))
    _, value, error, method, samples = found[name]
    rare = found[name + "_rare"][1] == 1 if name + "_rare" in found else \
        np.broadcast_to(False, shape) if shape else False
    fields = {"risk": value, "error": error, "method": method, "samples": samples, "rare": rare}
    if name == "star":
        fields["lam"] = found["lam_star"][1]
    if name == "risk":
        exact = "signal" in found
        for part in _PARTS:
            fields[part] = found[part][1] if exact else None
        fields["gradient"] = {one: found[derivative][1] for one, derivative in _GRADIENT} if exact else None
    return fields, "unreal" in found


def _ask(result, name, told, task, form, given, lengths, progress):
    """(result, whether no vectors have its overlaps). told: the settings that it tells of, as keywords."""
    words, arrays = model_of(task, form, given, lengths)
    words["show"] = name

    if not arrays:
        fields, unreal = _fields(name, once(_COMMAND, words, progress)[0], ())
        return result(lambda: settings_of(words, told), {}, fields), unreal
    shape, varying, numbers = sweep(_COMMAND, words, arrays, progress)
    fields, unreal = _fields(name, numbers, shape)
    formulas = functools.partial(formula_values, _COMMAND.name, words, varying)
    varying = {one.name: varying[one.name] for one in told if one.name in varying}
    # What depends on an array stays 'auto'.
    fixed = not any(one in _COMMAND.words or one in TASKS[words["task"]].table.fields for one in varying)
    return result(lambda: of_sweep(settings_of(at_first(words, varying), told, fixed), words, varying), varying,
                  fields, formulas), unreal


# ---- the functions ------------------------------------------------------------------------------

_SETTINGS = union(TASKS, arrays=True)
_HOW = parameters(RISK, arrays=True)
_ACTIVATION = Keyword("activation", None, "Callable[[float], float] | None",
                      "your own element-wise weights w_l = activation(chi_l), instead of a form; by quadrature")


_RISK = [TASK, FORM, *_SETTINGS, LENGTHS, *union(FORMS, arrays=True), *parameters(OVERLAPS, arrays=True), *_HOW]
_STAR = [TASK, FORM, *_SETTINGS, LENGTHS, *union(FORMS, arrays=True, without=("lam",)), *_HOW]
_BAYES = [TASK, *_SETTINGS, LENGTHS, *_HOW]
_LINEAR = [TASK, *_SETTINGS, LENGTHS]


@signed([*_RISK, _ACTIVATION, PROGRESS])
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
        return Risk(*risk_with(activation, task, given, lengths, progress))
    result, unreal = _ask(Risk, "risk", _RISK, task, form, given, lengths, progress)
    if unreal:
        warnings.warn("no unit vectors k, v have these overlaps (or some of them): the number is what the formula gives, "
                      "not a risk that can be had; kappa^2 + eta^2 and theta^2 + nu^2 are at most 1", stacklevel=3)
    return result


@signed([*_STAR, PROGRESS])
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
    return _ask(LamStar, "star", _STAR, task, form, given, lengths, progress)[0]


@signed([*_BAYES, PROGRESS])
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
    return _ask(Estimate, "bayes", _BAYES, task, None, given, lengths, progress)[0]


@signed(_LINEAR)
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
    return _ask(Estimate, "linear", _LINEAR, task, None, given, lengths, None)[0]
