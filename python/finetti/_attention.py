"""AttentionRegressor: scikit-learn's face of a Context, with settings from the data.

What `finetti attend --tune` does with a table, in the same order and with the same numbers: settings that are 'auto'
come from the size of the data and are tuned, key columns are standardised if that is asked, and all rows become one context.
"""

import warnings
from statistics import NormalDist

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ._arrays import unmasked
from ._attend import judge
from ._context import TABLE, Context
from ._core import ArgumentError, UnsupportedError, check, error, ffi, lib
from ._signature import Keyword, document, initializer, parameters
from ._tuning import BITS, TUNE, choose

try:
    from sklearn.utils.validation import validate_data
except ImportError:  # before 1.6
    def validate_data(estimator, *args, **keywords):
        return estimator._validate_data(*args, **keywords)

KEYWORDS = [
    *parameters(TABLE, without=["seed"], defaults=dict.fromkeys(BITS, "auto")),
    Keyword("random_state", None, "int | Any | None", "nystrom: which tokens are landmarks; None is the library's "
            "fixed seed, so that fits repeat"),
    Keyword("scales", None, "ArrayLike | None", "columns of X are divided by these numbers first (after standardize)"),
    Keyword("standardize", False, "bool", "bring the columns of X to mean 0 and standard deviation 1 and leave out "
            "constant ones"),
    Keyword("tune", True, "bool", "choose what is 'auto' (cme: scale, prior, noise; nw: scale; softmax: temperature) "
            "by marginal likelihood (cme) or leave-one-out error; False: from the size of the data alone"),
    Keyword("ard", False, "bool", "cme: a scale for every column of X, tuned if `tune`; overconfident with few "
            "rows (90 % intervals held 0.4 to 0.7 of new values at n = 10)"),
    *parameters(TUNE),
    Keyword("verbose", False, "bool", "show a bar while a fit takes its time"),
]


def _numbers(array, name):
    """`array`, or an error for what would become numbers without being some: scikit-learn looks for the rest."""
    kind = getattr(getattr(unmasked(array, name), "dtype", None), "kind", "")
    if kind in ("m", "M", "V") or kind == "c" and name == "scales":
        raise TypeError(f"{name} has dtype {array.dtype}, which is complex, a date, a time or a record; numbers are "
                        "needed")
    return array


def _truth(value, name):
    if not (isinstance(value, (int, np.integer, np.bool_)) and value in (0, 1)):
        raise TypeError(f"{name} is {value!r}; it is True or False")


def _own(array):
    """Doubles as C wants them: contiguous, and aligned, which joblib's arrays in files need not be."""
    return np.require(array, np.float64, "CA")


class _Columns:
    """What becomes of the columns of X: standardised, the constant ones left out, divided by scales that are given."""

    def __init__(self, X, standardize, scales):
        self.used = np.arange(X.shape[1])
        self.powers = self.means = self.deviations = self.scales = None
        spread = self._measure(X, len(X), standardize)
        #: How many times wider the widest column is than the narrowest, of those that are not constant.
        self.uneven = 2.0**min(np.ptp(spread), 1000) if len(spread) > 1 and not standardize and scales is None else 1
        if scales is not None:
            self.scales = np.asarray(_numbers(scales, "scales"), dtype=np.float64)
            if self.scales.shape != X.shape[1:] or not (np.isfinite(self.scales) & (self.scales > 0)).all():
                raise ValueError(f"scales = {scales!r}; a positive number for each of {X.shape[1]} columns of X is "
                                 "needed")
            self.scales = self.scales[self.used]

    def _measure(self, X, n, standardize):
        """log2 of the standard deviations; with standardize columns are then brought to 0 and 1."""
        columns, err = ffi.new("fin_cross_column[]", X.shape[1]), error()
        start = ffi.from_buffer("double[]", np.ascontiguousarray(X, dtype=np.float64))
        for j in range(X.shape[1]):
            check(lib.fin_cross_measure(n, X.shape[1], start + j, columns + j, err), err)
        powers, means, deviations = (np.array([getattr(c, name) for c in columns])
                                     for name in ("power", "mean", "deviation"))
        used = np.flatnonzero(deviations > 0)
        spread = np.log2(deviations[used]) + powers[used]
        if not standardize:
            return spread
        self.used = used
        if not len(self.used):
            raise ValueError(f"every column of X is constant (n_samples = {n}), and standardize=True leaves out "
                             "constant ones; standardize=False keeps them")
        self.powers, self.means, self.deviations = powers[self.used], means[self.used], deviations[self.used]
        return spread

    def keys(self, X):
        if self.powers is not None:
            X = X if len(self.used) == X.shape[1] else X[:, self.used]
            X = (np.ldexp(X, -self.powers) - self.means) / self.deviations
        return _own(X if self.scales is None else X / self.scales)


class AttentionRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Regression by attention to the training rows; with form 'cme', exactly a Gaussian process.

    y = c + f(x) + noise, with f of covariance prior * kernel(x / scale) and c ~ N(0, level). Settings that are 'auto'
    come from the data; those that are given stay as they are. Several columns of y share kernel and noise: bring them
    to like units first. 'softmax' and 'nw' average the values of y by softmax or kernel weights.

    Memory is 8 n^2 bytes for n rows, 16 n^2 while tuning, which evaluates the likelihood 100 to 300 times at about n^3
    multiplications. From some thousand rows on, tune=False, restarts=1 or method='nystrom' take less; kernel='linear'
    has no such limit. Predicting from several threads at once is safe.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    settings_ : dict
        The settings in use, tuned ones included.
    scales_ : array or None
        With ard: a scale for every column in use (columns_), to be multiplied by settings_["scale"].
    noise_ : float
        Standard deviation of an observation around the function (cme), as noise_ of all estimators; the setting `noise`
        is its variance, as that of `finetti attend`.
    columns_ : array of int
        Columns of X in use: all but constant ones, if standardize.
    means_, deviations_ : array or None
        Of the columns in use, if standardize.
    context_ : Context
        The rows as a context: keys, values, evidence(return_gradient=True), prefix().
    log_marginal_likelihood_ : float
        cme; NaN for the other forms.
    info_ : dict
        Of the context (method, tokens, jitter, ...), and under "tune" of the search, or None.
    n_features_in_ : int
    feature_names_in_ : array of str
        If X is a data frame.

    Examples
    --------
    >>> import numpy as np
    >>> from finetti import AttentionRegressor
    >>> random = np.random.default_rng(0)
    >>> X = random.uniform(0, 6, size=(50, 1))
    >>> y = 3 + np.sin(X[:, 0]) + 0.1 * random.standard_normal(50)
    >>> model = AttentionRegressor().fit(X, y)
    >>> mean, deviation = model.predict([[1.5], [9.0]], return_std=True)
    >>> mean.round(1), deviation.round(1)
    (array([4. , 3.9]), array([0.1, 1.3]))
    >>> model.weights([[1.5]]).shape
    (1, 50)
    >>> low, high = model.predict_interval([[1.5]], coverage=0.9)[0]
    >>> bool(low < 4 < high), round(model.noise_, 2)
    (True, 0.11)
    >>> model.coverage(X, y)["coverage"][90] > 0.8
    True
    """

    __init__ = initializer(KEYWORDS)

    # ---- fit ----------------------------------------------------------------------------------

    def fit(self, X, y):
        """Chooses the settings and takes the rows as context.

        Parameters
        ----------
        X : array (n, d)
        y : array (n,) or (n, outputs)
        """
        for name in ("standardize", "tune", "ard"):
            _truth(getattr(self, name), name)
        X, y = self._check(X, y, reset=True)
        columns = _Columns(X, self.standardize, self.scales)
        keys = columns.keys(X)
        settings = {name: getattr(self, name) for name in TABLE.fields if name != "seed"}
        settings["seed"] = self._seed()
        search = {name: getattr(self, name) for name in TUNE.fields} if self.tune else None
        names = getattr(self, "feature_names_in_", [f"column {j}" for j in range(X.shape[1])])
        struct, scales, report = choose(settings, keys, y.reshape(len(y), -1), [names[j] for j in columns.used],
                                        scaled=self.scales is not None, ard=bool(self.ard), search=search,
                                        progress=self.verbose)
        self.context_ = Context(keys, y, scales=scales, progress=self.verbose, **TABLE.read(struct))
        self.settings_ = self.context_.settings
        self.noise_ = float(np.sqrt(self.settings_["noise"]))
        self.scales_, self.columns_ = scales, columns.used
        self.means_ = self.deviations_ = None
        if columns.powers is not None:
            self.means_ = np.ldexp(columns.means, columns.powers)
            self.deviations_ = np.ldexp(columns.deviations, columns.powers)
        self._columns, self._tuned = columns, report
        self._warn()
        return self

    def _warn(self):
        """What the user should act on."""
        if self._columns.uneven > 10 and not self.ard:
            warnings.warn(f"the widest column of X has {self._columns.uneven:.1e} times the standard deviation of the narrowest; "
                          "standardize=True, scales or ard=True make units not matter", stacklevel=3)
        for note in self._tuned["notes"] if self._tuned else ():
            if not note.endswith("does not matter"):
                warnings.warn(note, ConvergenceWarning, stacklevel=3)
        jitter = self.context_.info["jitter"]
        if jitter > 0:
            warnings.warn(f"{jitter:.3g} was added to the noise, so that rounding leaves the matrix positive definite; "
                          "a larger noise is better", RuntimeWarning, stacklevel=3)

    def partial_fit(self, X, y):
        """More rows, with the settings, means and deviations of the first call, which is a fit."""
        if not hasattr(self, "context_"):
            return self.fit(X, y)
        X, y = self._check(X, y, reset=False)
        self.context_.append(self._columns.keys(X), y)
        return self

    def _seed(self):
        if self.random_state is None:
            return None
        if hasattr(self.random_state, "__index__"):
            if not 0 <= int(self.random_state) <= 1 << 53:
                raise ArgumentError(f"random_state = {self.random_state}; it must be from 0 to 2^53")
            return self.random_state
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _check(self, X, y, reset):
        """Both as contiguous arrays of doubles."""
        X, y = validate_data(self, _numbers(X, "X"), _numbers(y, "y"), reset=reset, dtype=np.float64, order="C",
                             multi_output=True, y_numeric=True)
        if not isinstance(y, np.ndarray):
            raise TypeError("y is sparse; pass y.toarray()")
        if y.dtype.kind not in "biuf":
            try:
                y = y.astype(np.float64)
            except (TypeError, ValueError):
                raise ValueError(f"y has dtype {y.dtype}; numbers are needed") from None
        y = _own(y)
        if y.ndim == 2 and y.shape[1] == 0:
            raise ValueError("y has no columns; at least one output is needed")
        return X, y

    # ---- questions ----------------------------------------------------------------------------

    def _queries(self, X):
        check_is_fitted(self, "context_")
        return self._columns.keys(validate_data(self, _numbers(X, "X"), reset=False, dtype=np.float64, order="C"))

    def predict(self, X, return_std=False, latent=False):
        """The mean of y at the rows of X, and with return_std also its standard deviation, of the same shape.

        For cme that is the standard deviation of a new observation, noise included; with latent=True that of the
        function itself. Of softmax and nw it is the weighted deviation of the training values around the mean, which is
        no posterior.
        """
        queries = self._queries(X)
        if not return_std:
            return self.context_.predict(queries)
        cme = self.settings_["form"] == "cme"
        if latent and not cme:
            raise UnsupportedError(f"latent=True is for form='cme': form={self.settings_['form']!r} has no posterior")
        mean, variance = self.context_.predict(queries, return_variance=True)
        return mean, np.sqrt(variance + self.settings_["noise"] if cme and not latent else variance)

    def predict_interval(self, X, coverage=0.9, latent=False):
        """Intervals (rows, 2), or (rows, outputs, 2), that hold a new observation with probability `coverage`.

        They are those of a normal law: exact for cme with the right settings. latent=True: intervals for the function.
        """
        if not (isinstance(coverage, (int, float, np.number)) and 0 < coverage < 1):
            raise ArgumentError(f"coverage is {coverage!r}; it must be between 0 and 1, such as 0.9")
        mean, deviation = self.predict(X, return_std=True, latent=latent)
        z = -NormalDist().inv_cdf((1 - float(coverage)) / 2)
        return np.stack([mean - z * deviation, mean + z * deviation], axis=-1)

    def coverage(self, X, y):
        """How well predictions with their deviations fit new observations, as `finetti.judge` says it: a dict.

        `coverage` has the shares of y inside the central intervals of 50, 90 and 95 %, pit 10 counts that are uniform if
        calibrated; rmse, r2 and log_score go with them.
        """
        mean, deviation = self.predict(X, return_std=True)
        y = _own(_numbers(np.asarray(y), "y"))
        if y.shape != mean.shape:
            raise ValueError(f"y has shape {y.shape}; predictions have shape {mean.shape}")
        return judge(y, mean, deviation**2)

    def weights(self, X):
        """(rows of X, training rows) what predict adds up: predict(X) == weights(X) @ y.

        Those of cme may be negative and need not sum to one.
        """
        queries = self._queries(X)
        return self.context_.predict(queries, return_weights=True)[1]

    def loo(self, return_std=False):
        """Leave-one-out predictions of the training values, and with return_std the deviations of a value."""
        check_is_fitted(self, "context_")
        mean, variance = self.context_.loo()
        return (mean, np.sqrt(variance)) if return_std else mean

    @property
    def log_marginal_likelihood_(self):
        """Of the training values under the settings in use, summed over outputs; NaN but for cme."""
        check_is_fitted(self, "context_")
        if self.settings_["form"] != "cme":
            return float("nan")
        try:
            return self.context_.evidence()
        except UnsupportedError:  # by this method
            return float("nan")

    @property
    def info_(self):
        """Of the context (Context.info), and under "tune" what the search came to, or None."""
        check_is_fitted(self, "context_")
        return {**self.context_.info, "tune": self._tuned}


document(AttentionRegressor, KEYWORDS)
