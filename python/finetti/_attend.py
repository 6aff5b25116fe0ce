"""attend: many short contexts at once, each with its own queries, over the library's fin_cross_forward.

For in-context regression by the thousand. One context that is asked many questions is a Context.
"""

import re

import numpy as np

from ._arrays import int64s, integers, names_of, of_table, view
from ._context import KEYWORDS, TABLE
from ._core import ArgumentError, FinettiError, check, error, ffi, lib
from ._signature import signed

_WORK = 1e9  # multiplications between two looks at Ctrl-C, about


@signed(KEYWORDS)
def attend(keys, values, queries, lengths=None, query_lengths=None, return_variance=False, **settings):
    """Answers of many contexts, each to its own queries. No array is copied; a DataFrame becomes float64.

    All arrays are of one type, float32 or float64, which is that of the answers; cme computes in double inside.
    A context's numbers depend neither on what else is in the batch nor on threads.

    Parameters
    ----------
    keys : array (tokens, dk), or (n, length, dk) for n contexts of equal length
    values : array (tokens, dv) or (tokens,); (n, length, dv) or (n, length)
    queries : array (queries, dk); (n, queries, dk)
    lengths : array of int (n,)
        Tokens of every context, for two axes; None: all are one context.
    query_lengths : array of int (n,)
        Queries of every context; None: one for each.
    return_variance : bool
        cme: also the variance of the function at every query.
    {parameters}

    Returns
    -------
    Array shaped like queries, with dv numbers in place of dk (none, if values have an axis less); with
    return_variance, a tuple of it and the variances, one for every query.

    Examples
    --------
    >>> import numpy as np, finetti
    >>> random = np.random.default_rng(0)
    >>> keys, queries = random.standard_normal((1000, 8, 2)), random.standard_normal((1000, 1, 2))
    >>> concepts = random.standard_normal((1000, 2, 1))
    >>> answers = finetti.attend(keys, (keys @ concepts)[..., 0], queries, kernel="linear", noise=1e-6)
    >>> answers.shape, bool(np.abs(answers - (queries @ concepts)[..., 0]).max() < 1e-3)
    ((1000, 1), True)
    """
    struct = TABLE.make(settings)
    names = names_of(keys)
    keys, values = of_table(keys, "keys"), of_table(values, "values")
    queries = of_table(queries, "queries", names)
    batch = _Batch(keys, values, queries, lengths, query_lengths)
    if return_variance and struct.form != lib.FIN_CROSS_CME:
        raise ArgumentError(f"return_variance=True is for form='cme', not {settings['form']!r}; a Context gives the "
                            "weighted variance of the other forms")
    out = np.empty(queries.shape[:-1] + batch.values_end, queries.dtype)
    variance = np.empty(queries.shape[:-1], queries.dtype) if return_variance else None
    for first, last in batch.parts():
        batch.forward(struct, first, last, out, variance)
    return (out, variance) if return_variance else out


def judge(values, mean, variance):
    """How good predictions were, as `finetti attend --loo` says it: error, log score, coverage, PIT.

    Parameters
    ----------
    values, mean, variance : arrays of float64 of one shape
        What came, and what was predicted: variance is that of a value, noise included (Context.loo has it so). Where
        value or mean is not finite, nothing is judged.

    Returns
    -------
    dict
        count, rmse, r2, log_score (mean log density of a normal law), coverage (of the intervals of 50, 90 and 95 %, by
        their number), pit (10 counts; uniform if calibrated).

    Examples
    --------
    >>> import numpy as np, finetti
    >>> random = np.random.default_rng(0)
    >>> scores = finetti.judge(random.standard_normal(1000), np.zeros(1000), np.ones(1000))
    >>> scores["count"], round(scores["rmse"], 1), round(scores["coverage"][90], 1)
    (1000, 1.0, 0.9)
    """
    arrays = [view(array, name, dtype="d", shape=np.shape(values))[0]
              for array, name in ((values, "values"), (mean, "mean"), (variance, "variance"))]
    score, err = ffi.new("fin_cross_score *"), error()
    check(lib.fin_cross_judge(values.size, 1, *arrays, 0, score, err), err)
    return {"count": score.count, "rmse": score.rmse, "r2": score.r2, "log_score": score.log_score,
            "coverage": dict(zip((50, 90, 95), score.coverage)), "pit": list(score.pit)}


class _Batch:
    """Checked arrays and where every context begins."""

    def __init__(self, keys, values, queries, lengths, query_lengths):
        kind = getattr(getattr(keys, "dtype", None), "char", "")
        kind = kind if kind in "fd" and kind else "fd"  # whatever keys are, the others have to be
        for array, name in ((keys, "keys"), (values, "values"), (queries, "queries")):
            _, self.dtype = view(array, name, dtype="fd" if name == "keys" else kind)
        if keys.ndim not in (2, 3) or values.ndim not in (keys.ndim, keys.ndim - 1) or queries.ndim != keys.ndim:
            raise ValueError(f"keys have shape {keys.shape}, values {values.shape}, queries {queries.shape}; they must "
                             "be (tokens, dk), (tokens, dv) or (tokens,), (queries, dk), or all with an axis for the "
                             "contexts in front")
        if values.shape[:keys.ndim - 1] != keys.shape[:-1]:
            raise ValueError(f"values have shape {values.shape} and keys {keys.shape}; a value for every key is needed")
        if queries.shape[-1] != keys.shape[-1]:
            raise ValueError(f"queries have {queries.shape[-1]} numbers and keys {keys.shape[-1]}; they are compared")
        self.arrays = keys, values, queries
        self.values_end = values.shape[keys.ndim - 1:]
        self.dk, self.dv = keys.shape[-1], self.values_end[0] if self.values_end else 1
        self.offsets, self.query_offsets = self.places(lengths, query_lengths)

    def places(self, lengths, query_lengths):
        keys, _, queries = self.arrays
        if keys.ndim == 3:
            if lengths is not None or query_lengths is not None:
                raise ValueError("arrays with three axes have contexts of equal length; lengths go with two axes "
                                 "(leave out the padding: keys[mask], values[mask])")
            if len(queries) != len(keys):
                raise ValueError(f"queries are for {len(queries)} contexts and keys for {len(keys)}")
            n = len(keys)
            return np.arange(n + 1) * keys.shape[1], np.arange(n + 1) * queries.shape[1]
        if lengths is None:
            lengths = [len(keys)]
            query_lengths = [len(queries)] if query_lengths is None else query_lengths
        offsets = _sums(lengths, "lengths", len(keys), "keys")
        query_lengths = np.ones(len(offsets) - 1, np.int64) if query_lengths is None else query_lengths
        query_offsets = _sums(query_lengths, "query_lengths", len(queries), "queries")
        if len(query_offsets) != len(offsets):
            raise ValueError(f"query_lengths has {len(query_offsets) - 1} numbers and lengths {len(offsets) - 1}; one "
                             "of each for every context is needed")
        return offsets, query_offsets

    def parts(self):
        """Ranges of contexts, each short enough to wait for: Ctrl-C is answered in between."""
        n = len(self.offsets) - 1
        tokens, queries = np.diff(self.offsets).astype(float), np.diff(self.query_offsets)
        work = np.cumsum(tokens * (tokens * (tokens + self.dk) + queries * (tokens + self.dk + self.dv)))
        count = int(min(max(n, 1), 1 + (work[-1] if n else 0) // _WORK))
        ends = np.searchsorted(work, np.arange(1, count) * (work[-1] / count)) + 1 if count > 1 else []
        bounds = [0, *sorted(set(int(end) for end in ends) - {n}), n]
        return [(first, last) for first, last in zip(bounds, bounds[1:]) if last > first]

    def forward(self, struct, first, last, out, variance):
        offsets = self.offsets[first:last + 1] - self.offsets[first]
        query_offsets = self.query_offsets[first:last + 1] - self.query_offsets[first]
        token, query = self.offsets[first], self.query_offsets[first]
        keys, values, queries = self.arrays
        batch = ffi.new("fin_cross_batch *", {
            "n": last - first, "dk": self.dk, "dv": self.dv, "dtype": self.dtype, "offsets": int64s(offsets),
            "query_offsets": int64s(query_offsets), "keys": _from(keys, token * self.dk),
            "values": _from(values, token * self.dv), "queries": _from(queries, query * self.dk)})
        err = error()
        status = lib.fin_cross_forward(struct, batch, _from(out, query * self.dv),
                                       ffi.NULL if variance is None else _from(variance, query), err)
        try:
            check(status, err)
        except FinettiError as problem:  # the library counts the contexts of this part
            problem.args = (re.sub(r"context (\d+)", lambda found: f"context {int(found[1]) + first}", str(problem)),)
            raise


def _from(array, index):
    """Pointer to number `index` of an array, which must be alive while it is used."""
    return ffi.cast("char *", ffi.from_buffer(array)) + int(index) * array.itemsize


def _sums(lengths, name, total, what):
    """Offsets of the lengths, which have to be those of all rows."""
    lengths = integers(lengths, name)
    if len(lengths) and lengths.min() < 0:
        raise ValueError(f"{name}[{int(lengths.argmin())}] = {lengths.min()}; a length cannot be negative")
    if sum(lengths.tolist()) != total:
        raise ValueError(f"{name} sum to {sum(lengths.tolist())} and there are {total} {what}" + (
            "; without query_lengths there is one query for every context" if name == "query_lengths" else ""))
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
