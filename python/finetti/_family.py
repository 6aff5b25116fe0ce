"""The C side of finetti.families: a family with its settings, and contexts of tokens as arrays.

Contexts are looked at one by one, so that a question about many of them answers Ctrl-C in between.
"""

import numpy as np

from . import _arrays
from ._core import UnsupportedError, check, error, ffi, lib, text
from ._lab import FAMILIES, find
from .tasks import _seed


def _parts(described):
    """What z or its posterior is made of, as the library says it: {name: names of sizes}."""
    return {part.split()[0]: part.split()[1:] for part in (text(described) or "").split(";") if part}


class Base:
    """What a Family is made of."""

    def __init__(self, name, settings, seed=1):
        self._kind = find(FAMILIES, name, "family")
        self.name = self._kind.name
        self.seed = _seed(seed)
        self._given = settings
        out, err = ffi.new("fin_latent **"), error()
        values = self._kind.table.make(settings)
        check(lib.fin_latent_create(out, self._kind.pointer, values, self.seed, err), err)
        self._latent = ffi.gc(out[0], lib.fin_latent_destroy)
        self._shape = ffi.new("fin_latent_shape *")
        lib.fin_latent_get_shape(self._latent, self._shape)
        self.dk, self.dv, self.outcomes = self._shape.dk, self._shape.dv, self._shape.outcomes

    @property
    def settings(self):
        """Every setting, 'auto' worked out."""
        return self._kind.table.read(lib.fin_latent_get_settings(self._latent))

    def _sizes(self, names):
        return tuple(getattr(self._shape, name) for name in names)

    def _rows(self, array, name, width, ndim):
        """A float64 array whose last axis has `width` numbers; of one context it may be missing if there is one."""
        array = _arrays.plain(array, name)
        if width == 1 and array.ndim == 1:
            array = array[:, None]
        _arrays.view(array, name, dtype="d", shape=(None,) * (ndim - 1) + (width,))
        return array

    def _context(self, keys, values, ndim=2):
        values = self._rows(values, "values", self.dv, ndim)
        if keys is None and self.dk == 0:
            keys = np.empty(values.shape[:-1] + (0,))
        keys = self._rows(keys, "keys", self.dk, ndim)
        if keys.shape[:-1] != values.shape[:-1]:
            raise ValueError(f"keys have shape {keys.shape} and values {values.shape}; they must have as many tokens")
        return keys, values

    def _over(self, keys, values, size, call):
        """call(i, L, keys, values, out, err) for every context; answers (size), or (n, size) of n contexts."""
        many = np.ndim(values) == 3
        keys, values = self._context(keys, values, 3 if many else 2)
        if not many:
            keys, values = keys[None], values[None]
        out, err = np.empty((len(values), size)), error()
        for i, (k, v) in enumerate(zip(keys, values)):
            check(call(i, len(v), _arrays.doubles(k), _arrays.doubles(v), out[i], err), err)
        return out if many else out[0]

    def _queries(self, queries, contexts=None):
        """How many queries a context has, and a function that gives those of context i."""
        if queries is None and self.dk == 0:
            return 1, lambda i: np.empty((1, 0))
        apart = np.ndim(queries) == 3 and contexts is not None
        queries = self._rows(queries, "queries", self.dk, 3 if apart else 2)
        if apart and len(queries) != contexts:
            raise ValueError(f"there are queries of {len(queries)} contexts, and {contexts} contexts")
        return (queries.shape[1], lambda i: queries[i]) if apart else (len(queries), lambda i: queries)

    def _statistics(self, statistic):
        """Rows of statistics."""
        _arrays.view(statistic, "statistic", dtype="d")
        if statistic.ndim not in (1, 2) or statistic.shape[-1] != self._shape.statistic:
            raise ValueError(f"statistic has shape {statistic.shape}; it must have {self._shape.statistic} numbers, or "
                             "so many in each row")
        return statistic.reshape(-1, statistic.shape[-1])

    def _needs_statistic(self):
        if self._shape.statistic == 0:
            raise UnsupportedError(f"{self.name} has no statistic that is shorter than its tokens; predict takes them")

    def _answers(self, m, return_variance):
        """Numbers in a prediction, where its variance begins, and both apart."""
        if return_variance and self.outcomes:
            raise UnsupportedError(f"a prediction of {self.name} is a row of probabilities, which has no variance "
                                   "beside it; leave return_variance out")
        width = self.outcomes or self.dv
        end = m * width

        def apart(out):
            mean = out[..., :end].reshape(*out.shape[:-1], m, width)
            return (mean, out[..., end:].copy()) if return_variance else mean

        def tail(out):
            return _arrays.doubles(out[end:]) if return_variance else ffi.NULL

        return end + m * bool(return_variance), tail, apart

    def _named(self, posterior):
        """The parts of a posterior (size), or (n, size), by their names."""
        parts, at = {}, 0
        for name, sizes in _parts(lib.fin_family_posterior_parts(self._kind.pointer)).items():
            sizes = self._sizes(sizes)
            end = at + int(np.prod(sizes))
            if end <= self._shape.posterior:
                parts[name] = posterior[..., at:end].reshape(*posterior.shape[:-1], *sizes).copy()
            at = end
        return parts

    def _latent_shape(self):
        return self._sizes(_parts(lib.fin_family_z_parts(self._kind.pointer)).get("z", ["latent"]))
