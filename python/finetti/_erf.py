"""The risk of the erf predictor at many points, in one call of the library."""

import numpy as np

from . import _arrays
from ._core import check, error, ffi, lib

_FLOAT64 = np.dtype(np.float64)
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
