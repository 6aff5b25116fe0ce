"""Families of exchangeable tokens: given a latent z, tokens (key, value) are independent draws of one law.

All that a context says about a new token is in the posterior of z, and that is exact here.

>>> from finetti import families
>>> families.names()[:2]
('concept', 'mean')
>>> family = families.concept(d=3, noise=0.1, seed=7)
>>> sample = family.draw(100, L=20, Q=5)
>>> sample.keys.shape, sample.values.shape, sample.z.shape
((100, 20, 3), (100, 20, 1), (100, 1, 3))
>>> mean, variance = family.predict(sample.keys, sample.values, sample.queries, return_variance=True)
>>> bool(abs(((mean - sample.truth) ** 2).mean() / variance.mean() - 1) < 0.3)
True
"""

import math
from typing import NamedTuple

import numpy as np

from . import _arrays
from ._core import ArgumentError, Table, Watch, check, error, ffi, lib
from ._family import Base
from ._lab import FAMILIES, PROGRESS, RISK, fill, makers
from ._risk import Estimate, _estimate
from ._signature import Keyword, parameters, signed
from .tasks import _count, _pieces

_CROSS = Table(ffi.addressof(lib, "fin_cross_table"), "fin_cross_settings")
_SAMPLES = 10000
_FAMILYS = ("kernel", "scale", "degree", "offset", "prior", "noise")  # attention takes them from the family


def _suited(keyword):
    if keyword.name not in _FAMILYS:
        return keyword
    return Keyword(keyword.name, None, keyword.type + " | None", keyword.meaning + ". None: what suits the family",
                   keyword.range, keyword.field)


_SEED = Keyword("seed", 1, "int", "of the sequences, and of what they have in common; sequence i is a function of the "
                "seed and i", "0 to 2^64 - 1")
_HOW = parameters(RISK, defaults={"samples": _SAMPLES})
_ATTENTION = [_suited(keyword) for keyword in parameters(_CROSS, without=("seed",))]


class Sample(NamedTuple):
    """Sequences of exchangeable tokens: keys (n, L, dk), values (n, L, dv); queries (n, Q, dk) and their answers
    (n, Q, dv); truth, the mean or the probabilities of an answer given z; z, the latent (None for a process).

    >>> from finetti import families
    >>> families.mean().draw(2, L=3).values.shape
    (2, 3, 1)
    """

    keys: np.ndarray
    values: np.ndarray
    queries: np.ndarray
    answers: np.ndarray
    truth: np.ndarray
    z: np.ndarray


def names():
    """The names of the families.

    >>> names()[:3]
    ('concept', 'mean', 'process')
    """
    return tuple(FAMILIES)


class Family(Base):
    """A family of exchangeable tokens with its settings; made by finetti.families.concept(...) and the like.

    Contexts are arrays of float64: keys (L, dk) and values (L, dv) of one, or (n, L, dk) and (n, L, dv) of n. Families
    without keys take None for them. Categories, covariates and responses are whole numbers 0, 1, ... kept as floats.
    The methods may be called from several threads at once.

    Attributes
    ----------
    name : str
    settings : dict
    seed : int
    dk, dv : int
        Numbers in a key (0: none) and in a value.
    outcomes : int
        More than 0: predictions are probabilities of so many outcomes, not a mean.

    Examples
    --------
    >>> import numpy as np
    >>> from finetti import families
    >>> coin = families.counts(outcomes=2)
    >>> throws = np.array([1.0, 1, 0, 1])
    >>> coin.predict(None, throws).round(3).tolist(), coin.posterior(None, throws)["alpha"].tolist()
    ([[0.333, 0.667]], [2.0, 4.0])
    >>> coin.risk([0, 10, 100]).risk.round(4).tolist()
    [0.1667, 0.0278, 0.0033]
    """

    def __repr__(self):
        inside = [f"{name}={value!r}" for name, value in self._given.items()]
        return f"families.{self.name}({', '.join([*inside, f'seed={self.seed}'])})"

    def __reduce__(self):
        return Family, (self.name, self._given, self.seed)

    # ---- drawing ------------------------------------------------------------------------------

    def draw(self, n, L, Q=0, first=0):
        """Draws sequences first .. first + n - 1 of L tokens and Q queries each, as a Sample.

        Sequence i is a function of the seed and i, and a longer sequence begins with the shorter one (a process and
        an urn are drawn as a whole).
        """
        n, L, Q, first = (_count(v, name) for v, name in ((n, "n"), (L, "L"), (Q, "Q"), (first, "first")))
        width = self.outcomes or self.dv
        shapes = {"keys": (L, self.dk), "values": (L, self.dv), "queries": (Q, self.dk), "answers": (Q, self.dv),
                  "truth": (Q, width), "z": (self._shape.latent,)}
        numbers = n * sum(math.prod(shape) for shape in shapes.values())
        if numbers > 2**56:
            raise ArgumentError(f"n = {n} sequences of L = {L} tokens and Q = {Q} queries are {numbers:.2g} numbers")
        out = {name: np.empty((n, *shape)) for name, shape in shapes.items()}
        for a, b in _pieces(n, sum(array.nbytes for array in out.values())):  # Ctrl-C is answered between two
            err = error()
            parts = [_arrays.doubles(array[a:b]) if array.size else ffi.NULL for array in out.values()]
            sample = ffi.new("fin_latent_sample *", (b - a, L, Q, *parts))
            check(lib.fin_latent_draw(self._latent, first + a, sample, err), err)
        out["z"] = out["z"].reshape(n, *self._latent_shape()) if self._shape.latent else None
        return Sample(**out)

    def features(self, keys):
        """phi(k) of keys (m, dk): (m, D). Families with features (concept, finite, mean) only."""
        keys = self._rows(keys, "keys", self.dk, 2)
        phi, err = np.empty((len(keys), self._shape.features)), error()
        check(lib.fin_latent_features(self._latent, len(keys), _arrays.doubles(keys), _arrays.doubles(phi), err), err)
        return phi

    # ---- inference ----------------------------------------------------------------------------

    def statistic(self, keys, values):
        """The sufficient statistic of a context (keys, values), or of many.

        Its numbers add up over tokens: that of two contexts together is the sum of both.
        """
        def one(i, L, k, v, out, err):
            out[:] = 0
            return lib.fin_latent_accumulate(self._latent, L, k, v, _arrays.doubles(out), err)

        self._needs_statistic()
        return self._over(keys, values, self._shape.statistic, one)

    def posterior(self, keys=None, values=None, *, statistic=None):
        """The posterior of z given a context (keys, values) or its statistic, or many of them, as a dict of arrays.

        concept, mean: mean (dv, D) and covariance (D, D) of a row; counts: alpha, the Dirichlet parameters; concepts,
        finite: probability of each z; sphere: F of the density exp(tr(F'O)), and the mean of O (d = 2 and 3); urn:
        balls left of each kind.
        """
        self._needs_statistic()
        if statistic is None:
            statistic = self.statistic(keys, values)
        rows, err = self._statistics(statistic), error()
        out = np.empty((len(rows), self._shape.posterior))
        for row, answer in zip(rows, out):
            check(lib.fin_latent_posterior(self._latent, _arrays.doubles(row), _arrays.doubles(answer), err), err)
        return self._named(out if statistic.ndim > 1 else out[0])

    def filter(self, keys, values):
        """The posterior given a context (keys, values) by Kalman's recursion, token by token; concept and mean only."""
        def one(i, L, k, v, out, err):
            return lib.fin_latent_filter(self._latent, L, k, v, _arrays.doubles(out), err)

        self._needs_statistic()
        return self._named(self._over(keys, values, self._shape.posterior, one))

    def predict(self, keys, values, queries=None, *, return_variance=False):
        """The Bayes prediction at queries.

        Parameters
        ----------
        keys, values : arrays
            The context, or contexts.
        queries : array (m, dk), or (n, m, dk) of n contexts with queries of their own, default=None
            Where to predict. Families without keys: None is one query.
        return_variance : bool, default=False
            Also the variance (m) of the answer's mean given z; not where there are outcomes.

        Returns
        -------
        array (m, dv), or (m, outcomes) of probabilities; of n contexts (n, m, ...)
        """
        m, of_context = self._queries(queries, len(values) if np.ndim(values) == 3 else None)
        size, tail, apart = self._answers(m, return_variance)

        def one(i, L, k, v, out, err):
            return lib.fin_latent_predict_tokens(self._latent, L, k, v, m, _arrays.doubles(of_context(i)),
                                                 _arrays.doubles(out), tail(out), err)

        return apart(self._over(keys, values, size, one))

    def predict_statistic(self, statistic, queries=None, *, return_variance=False):
        """As predict, return_variance included, from the statistic of a context, or of many, at queries (m, dk)."""
        self._needs_statistic()
        m, of_context = self._queries(queries)
        size, tail, apart = self._answers(m, return_variance)
        rows, err = self._statistics(statistic), error()
        out = np.empty((len(rows), size))
        for i, (row, answer) in enumerate(zip(rows, out)):
            check(lib.fin_latent_predict(self._latent, _arrays.doubles(row), m, _arrays.doubles(of_context(i)),
                                         _arrays.doubles(answer), tail(answer), err), err)
        return apart(out if statistic.ndim > 1 else out[0])

    def compress(self, keys, values):
        """At most D + dv pseudo-tokens (phi, values) that tell as much as a context (keys, values).

        For concept, mean and finite only.
        """
        rows = self._shape.features + self.dv
        k, v = self._context(keys, values)
        phi, pseudo, count, err = np.empty((rows, self._shape.features)), np.empty((rows, self.dv)), \
            ffi.new("int64_t *"), error()
        check(lib.fin_latent_compress(self._latent, len(v), _arrays.doubles(k), _arrays.doubles(v), count,
                                      _arrays.doubles(phi), _arrays.doubles(pseudo), err), err)
        return phi[:count[0]], pseudo[:count[0]]

    # ---- risks --------------------------------------------------------------------------------

    @signed([*_HOW, PROGRESS])
    def risk(self, L, *, progress=None, **how):
        """E |truth - posterior mean|^2 at a new query after L tokens: nothing can do better. The noise is not in it.

        Parameters
        ----------
        L : int or array of int
            Numbers of tokens.
        {parameters}

        Returns
        -------
        Estimate
            With attributes risk, error, method and samples: numbers, or arrays of the shape of L.

        Examples
        --------
        >>> from finetti import families
        >>> print(families.mean(noise=1).risk(4))
        Estimate(risk=0.2, method='closed form')
        """
        settings = fill(RISK, {"samples": _SAMPLES, **_given(how)})
        return self._risks(L, progress, RISK.read(settings), lambda tokens, watch, out: lib.fin_latent_risk(
            self._latent, tokens, settings, watch.pointer, out, watch.err))

    @signed([*_ATTENTION, *[keyword for keyword in _HOW if keyword.name in ("samples", "seed")], PROGRESS])
    def attention_risk(self, L, *, samples=_SAMPLES, seed=1, progress=None, **attention):
        """The same for attention in place of the posterior, by simulation; families with keys and real values.

        What is not given is what suits the family: its own prior and noise (of a sphere, those of its second moments),
        its kernel (of a process), else the linear one on the features, and rbf for nw. So cme attention is the
        posterior mean wherever that is linear in the values.

        Parameters
        ----------
        L : int or array of int
            Numbers of tokens.
        {parameters}

        Returns
        -------
        Estimate

        Examples
        --------
        >>> from finetti import families
        >>> family = families.concept(d=2)
        >>> exact, soft = family.risk(20), family.attention_risk(20, form="softmax")
        >>> bool(soft.risk > 10 * exact.risk)
        True
        """
        settings, form = ffi.new("fin_cross_settings *"), _CROSS.make({"form": attention.get("form")}).form
        lib.fin_latent_cross(self._latent, form, settings)
        for name, value in _given(attention).items():
            _CROSS.set(settings, name, value)
        how = fill(RISK, {"samples": samples, "seed": seed})
        return self._risks(L, progress, {**_CROSS.read(settings), "samples": how.samples, "seed": how.seed},
                           lambda tokens, watch, out: lib.fin_latent_risk_cross(
                               self._latent, settings, tokens, how, watch.pointer, out, watch.err))

    def long_risk(self, L):
        """What risk tends to for long contexts, dv noise D / L; concept (identity or affine features) and mean only."""
        out, err = ffi.new("double *"), error()
        check(lib.fin_latent_risk_long(self._latent, _count(L, "L"), out, err), err)
        return out[0]

    def _risks(self, L, progress, settings, call):
        lengths = _arrays.integers(np.ravel(L), "L")
        out, rows = ffi.new("fin_estimate *"), []
        for tokens in lengths.tolist():
            with Watch(progress) as watch:
                watch.check(call(tokens, watch, out))
            rows.append(_estimate(out))
        if np.ndim(L) == 0:
            return Estimate({**self.settings, "L": int(lengths[0]), **settings}, {}, rows[0])
        fields = {name: np.array([row[name] for row in rows]).reshape(np.shape(L)) for name in Estimate._columns}
        return Estimate({**self.settings, **settings}, {"L": lengths.reshape(np.shape(L))}, fields)


def _given(values):
    return {name: value for name, value in values.items() if value is not None}


# ---- concept(), mean() and the others -----------------------------------------------------------

globals().update(makers(FAMILIES, "family", Family, [_SEED]))
__all__ = ["Family", "Sample", "names", *FAMILIES]


def __dir__():
    return __all__
