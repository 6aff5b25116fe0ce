"""The generative models: single-location regression and its variants.

L tokens in R^d, of which m (mostly one) are relevant; Y is the sum of their parts along v*, plus noise. A Task draws
samples, and knows what can be known about them: the posterior over the location, the Bayes prediction.

>>> from finetti import tasks
>>> "slr" in tasks.names()
True
>>> task = tasks.slr(d=50, L=5, seed=3)
>>> X, y, location = task.draw(100)
>>> X.shape, y.shape, location.shape
((100, 5, 50), (100,), (100,))
>>> bool((task.posterior(X).argmax(axis=1) == location).mean() > 0.9)
True
"""

import operator

import numpy as np

from . import _arrays
from ._core import ArgumentError, NumericalError, check, error, ffi, lib
from ._lab import LENGTHS, OVERLAPS, TASKS, create, fill, find, law, makers
from ._signature import Keyword, parameters, signed
from ._tokens import find_bad

_OWN = [
    LENGTHS,
    Keyword("seed", 1, "int", "of the directions and of the samples; sample i is a function of the seed and i",
            "0 to 2^64 - 1"),
    Keyword("k_star", None, "NDArray[np.float64] | None", "unit vector (d); None: drawn from the seed"),
    Keyword("v_star", None, "NDArray[np.float64] | None", "unit vector (d), orthogonal to k_star; both or none"),
]
_PIECE = 1 << 26
_DTYPES = {"f": lib.FIN_F32, "d": lib.FIN_F64}


def names():
    """The names of the tasks.

    >>> names()[0]
    'slr'
    """
    return tuple(TASKS)


class Task:
    """A generative model with its settings; made by finetti.tasks.slr(...) and the like.

    Sample i is a function of the seed, of i and of the dtype alone, so that draw(100) and draw(50) followed by
    draw(50, first=50) have the same bytes. The methods may be called from several threads at once.

    Attributes
    ----------
    name : str
        One of names().
    settings : dict
        Every setting, 'auto' worked out.
    seed : int
        The seed.
    length_mean, length_variance : float
        Of the number of tokens in a sequence.

    Examples
    --------
    >>> from finetti import tasks
    >>> X, y, location = tasks.slr(d=4, L=3, mu=2).draw(2)
    >>> X.shape, y.shape
    ((2, 3, 4), (2,))
    """

    def __init__(self, name, settings, lengths=None, seed=1, k_star=None, v_star=None):
        self._kind = find(TASKS, name, "task")
        self.name = self._kind.name
        self.seed = _seed(seed)
        self._given = settings
        self._lengths = law(lengths, settings)
        self._directions = _directions(k_star, v_star)
        self._plain = self._make(0)
        self._ambient = None
        if self._directions:
            self._directions = self.k_star, self.v_star  # copies, which nobody changes

    @property
    def settings(self):
        return self._kind.table.read(lib.fin_task_get_settings(self._plain))

    @property
    def length_mean(self):
        return lib.fin_task_length_mean(self._plain)

    @property
    def length_variance(self):
        return lib.fin_task_length_variance(self._plain)

    @property
    def k_star(self):
        """The unit vector that relevant tokens are shifted along, (d)."""
        return self._direction(lib.fin_task_k_star)

    @property
    def v_star(self):
        """The unit vector along which the output is read, (d)."""
        return self._direction(lib.fin_task_v_star)

    def draw(self, n, first=0, dtype="float32"):
        """Draws samples first .. first + n - 1.

        Parameters
        ----------
        n : int
            How many.
        first : int, default=0
            Number of the first one: new samples with the same k* and v*, such as for testing.
        dtype : {'float32', 'float64'}, default='float32'
            Precision of the tokens; float32 and float64 tokens are different draws.

        Returns
        -------
        X : array (n, L, d), or Bags where lengths vary
            The tokens.
        y : array (n,)
            The outputs.
        location : array (n,), or (n, m) where m > 1
            Places of the relevant tokens, counted from 0.
        """
        task, n, first = self._in_space(), _count(n, "n"), _count(first, "first")
        dtype = np.dtype(dtype)
        if dtype.char not in _DTYPES or not dtype.isnative:
            raise TypeError(f"dtype = {dtype}; tokens are float32 or float64")
        offsets = self._offsets(n, first)
        d, m = (lib.fin_task_get_settings(task).d, lib.fin_task_get_settings(task).m)
        tokens, y, location = np.empty((offsets[-1], d), dtype), np.empty(n), np.empty((n, m), np.int64)
        err = error()
        for a, b, part, where in _tokens_of(offsets, tokens.nbytes):
            check(lib.fin_task_draw(task, first + a, b - a, _DTYPES[dtype.char], _arrays.int64s(part),
                                    _arrays.view(tokens[where], "tokens")[0],
                                    _arrays.doubles(y[a:b]), _arrays.int64s(location[a:b]), err), err)
        return self._shaped(tokens, offsets), y, location[:, 0] if m == 1 else location

    @signed(parameters(OVERLAPS))
    def project(self, n, first=0, *, norm2=False, **overlaps):
        """Draws what a predictor can see of the tokens, at a cost that does not depend on d.

        Parameters
        ----------
        n, first : int
            As in draw; the law is that of draw, the numbers are others.
        norm2 : bool, default=False
            The squared lengths of the tokens too.
        {parameters}

        Returns
        -------
        dict
            chi = X.k, z = X.v, chi_star = X.k*, z_star = X.v* and norm2, of shape (n, L) (of one axis, all tokens in
            order, where lengths vary), and y, location, offsets.
        """
        n, first = _count(n, "n"), _count(first, "first")
        at = fill(OVERLAPS, overlaps)
        offsets = self._offsets(n, first)
        wanted = ["chi", "z", "chi_star", "z_star"] + (["norm2"] if norm2 else [])
        out = {name: np.empty(offsets[-1]) for name in wanted}
        m = self.settings["m"]
        y, location, err = np.empty(n), np.empty((n, m), np.int64), error()
        for a, b, part, where in _tokens_of(offsets, 8 * len(out) * int(offsets[-1])):
            pointers = {name: _arrays.doubles(array[where]) for name, array in out.items()}
            check(lib.fin_task_project(self._plain, at, first + a, b - a, _arrays.int64s(part),
                                       ffi.new("fin_projections *", pointers), _arrays.doubles(y[a:b]),
                                       _arrays.int64s(location[a:b]), err), err)
        if self._fixed():
            out = {name: array.reshape(n, self.settings["L"]) for name, array in out.items()}
        return {**out, "y": y, "location": location[:, 0] if m == 1 else location, "offsets": offsets}

    def posterior(self, X):
        """P(token is the relevant one | X), exactly; needs m = 1.

        X : array (n, L, d) of float32 or float64, or Bags. Returns an array (n, L), or for Bags a list with one array
        for each bag. Needs the task's directions, so that d is limited by memory.
        """
        batch, keep, shape = self._batch(X)
        w, err = np.empty(shape), error()
        check(lib.fin_task_posterior(self._in_space(), batch, _arrays.doubles(w), err), err)
        _finite(w)
        return w if len(shape) == 2 else X.split(w)

    def predict(self, X):
        """E[Y | X], the best prediction that there is, (n,); needs m = 1. X : as for posterior."""
        batch, keep, _ = self._batch(X)
        y, err = np.empty(batch.n), error()
        check(lib.fin_task_predict(self._in_space(), batch, _arrays.doubles(y), err), err)
        return _finite(y)

    def bayes_parameters(self):
        """(lam, c) of the posterior, which is softmax over l of lam X_l.k* + c |X_l|^2."""
        lam, c = ffi.new("double *"), ffi.new("double *")
        lib.fin_task_bayes_parameters(self._plain, lam, c)
        return lam[0], c[0]

    def __repr__(self):
        inside = [f"{name}={value!r}" for name, value in self._given.items()]
        inside += [f"lengths={dict(zip(*self._lengths))!r}"] if self._lengths is not None else []
        inside += ["k_star=..., v_star=..."] if self._directions else []
        return f"tasks.{self.name}({', '.join([*inside, f'seed={self.seed}'])})"

    def __reduce__(self):
        lengths = dict(zip(*self._lengths)) if self._lengths is not None else None
        return Task, (self.name, self._given, lengths, self.seed, *(self._directions or ()))

    # -- the C side --

    def _make(self, flags):
        task = create(self._kind, self._given, self._lengths, self.seed, flags)
        if flags and self._directions:
            k, v = (_arrays.view(vector, name, dtype="d", shape=(lib.fin_task_get_settings(task).d,))[0]
                    for vector, name in zip(self._directions, ("k_star", "v_star")))
            err = error()
            check(lib.fin_task_set_directions(task, k, v, err), err)
        return task

    def _in_space(self):
        """The task with its vectors in R^d, made when they are first looked at."""
        if self._ambient is None:
            self._ambient = self._make(lib.FIN_TASK_AMBIENT)
        return self._ambient

    def _direction(self, get):
        task = self._in_space()
        return _arrays.copy(get(task), (lib.fin_task_get_settings(task).d,))

    def _fixed(self):
        settings = lib.fin_task_get_settings(self._plain)
        return settings.L_min == settings.L

    def _offsets(self, n, first):
        offsets, err = np.empty(n + 1, np.int64), error()
        check(lib.fin_task_offsets(self._plain, first, n, _arrays.int64s(offsets), err), err)
        return offsets

    def _shaped(self, tokens, offsets):
        if self._fixed():
            return tokens.reshape(len(offsets) - 1, lib.fin_task_get_settings(self._plain).L, tokens.shape[1])
        from ._bags import Bags
        return Bags(tokens, lengths=np.diff(offsets))

    def _batch(self, X):
        """A fin_batch, what keeps it alive, and the shape of its tokens."""
        d = lib.fin_task_get_settings(self._plain).d
        if hasattr(X, "offsets") and hasattr(X, "tokens"):
            tokens, offsets = X.tokens, _arrays.integers(X.offsets, "offsets")
            shape = (len(tokens),)
            pointer, dtype = _arrays.view(tokens, "X", shape=(None, d))
            if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(tokens):
                raise ValueError(f"X has {len(tokens)} tokens and offsets that are others'; make Bags anew")
        else:
            pointer, dtype = _arrays.view(X, "X", shape=(None, None, d))
            n, L = shape = X.shape[:2]
            offsets = np.arange(0, n * L + 1, L) if L else np.zeros(n + 1, np.int64)
            tokens = X.reshape(n * L, d)
        problem = find_bad(tokens, offsets)
        if problem:
            raise ArgumentError(problem)
        batch = ffi.new("fin_batch *", (len(offsets) - 1, d, dtype, pointer, _arrays.int64s(offsets)))
        return batch, (X, offsets), shape


def _finite(values):
    """`values`, unless tokens were so large that they are none."""
    if not np.isfinite(values).all():
        raise NumericalError("tokens are too large for their squares to be numbers; divide them by a power of ten")
    return values


def _pieces(n, size):
    """Ranges of samples of about _PIECE bytes each. Ctrl-C is answered between two."""
    count = min(n, 1 + size // _PIECE)
    return [(i * n // count, (i + 1) * n // count) for i in range(count)]


def _tokens_of(offsets, size):
    """The same with their offsets, and the slice of their tokens."""
    for a, b in _pieces(len(offsets) - 1, size):
        yield a, b, offsets[a:b + 1] - offsets[a], slice(offsets[a], offsets[b])


# ---- arguments ----------------------------------------------------------------------------------

def _count(value, name, bits=40):
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be a whole number, not {value!r}") from None
    if not 0 <= number < 1 << bits:
        raise ArgumentError(f"{name} = {number}; it must be from 0 to 2^{bits} - 1")
    return number


def _seed(value):
    return _count(value, "seed", 64)


def _directions(k_star, v_star):
    if (k_star is None) != (v_star is None):
        raise TypeError("k_star and v_star come together; give both or none")
    return None if k_star is None else (k_star, v_star)


# ---- slr(), spiked(), max() ---------------------------------------------------------------------

globals().update(makers(TASKS, "task", Task, _OWN))
__all__ = ["Task", "names", *TASKS]


def __dir__():
    return __all__
