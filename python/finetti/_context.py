"""Context: queries that attend to tokens of a key and a value, over the library's fin_cross.

Many threads may ask a context at once; append and drop wait until nobody asks, since the factor that they change is
read without Python's lock. Keys and values are kept here too: a context that outgrows its capacity is made anew from
them, and so is one that comes out of a pickle.
"""

import operator

import numpy as np

from ._arrays import view
from ._core import ArgumentError, FinettiError, Table, UnsupportedError, Watch, check, error, ffi, lib
from ._signature import document, parameters, signed
from ._window import Gate, Rows, at, check_memory, describe, get_info

TABLE = Table(ffi.addressof(lib, "fin_cross_table"), "fin_cross_settings")
KEYWORDS = parameters(TABLE)
_LONG = 10000  # queries times tokens from which a call can be interrupted, which costs it some microseconds
_FLOAT64 = np.dtype(np.float64)


class Context:
    """A context of exchangeable tokens, made for many queries, for growing and for shrinking.

    Several threads may ask at once, while another appends or drops. A pickle holds tokens and settings and makes the
    context anew, with the same numbers to the last bit (after a drop, to rounding; nystrom then chooses its landmarks
    again).

    With form 'cme' the answers are those of a Gaussian process, exactly: values are a function of the keys with
    covariance prior * kernel + level, plus noise. 'softmax' and 'nw' (Nadaraya-Watson) average values by weights.

    Parameters
    ----------
    keys : array (n, dk) of float64
        The tokens' keys; n may be 0. They are copied.
    values : array (n,) or (n, dv) of float64
        The tokens' values. Answers have as many axes.
    {parameters}
    scales : array (dk,) or None
        A length scale for every column of the keys, times `scale`.
    capacity : int or None
        Room for this many tokens from the start (None: for those given). More room is made when tokens are appended
        beyond it, at least twice as much, which costs as much as a new context.
    progress : bool or function, default=None
        True shows a bar, a function is called with (what, done, total) and may return True to cancel.

    Examples
    --------
    >>> import numpy as np, finetti
    >>> context = finetti.Context(np.array([[0.0], [1.0], [2.0]]), np.array([0.0, 1.0, 4.0]), noise=0.01)
    >>> mean, variance = context.predict(np.array([[1.5]]), return_variance=True)
    >>> mean.round(3), variance.round(4)
    (array([2.644]), array([0.025]))
    >>> context.append(np.array([[1.5]]), np.array([2.25]))
    >>> len(context)
    4
    """

    @signed(KEYWORDS)
    def __init__(self, keys, values, *, scales=None, capacity=None, progress=None, **settings):
        if scales is not None:
            view(scales, "scales", dtype="d", ndim=1)
            scales = scales.copy()
        self._open(TABLE.make(settings), scales, *self._tokens(keys, values), capacity, progress)

    @classmethod
    def _of(cls, struct, scales, keys, values, progress=None):
        """For AttentionRegressor, which has the settings as a struct."""
        self = cls.__new__(cls)
        self._open(struct, scales, *self._tokens(keys, values), None, progress)
        return self

    def _tokens(self, keys, values):
        """Both as matrices, checked; the width of what is there already counts."""
        first = not hasattr(self, "_dk")
        view(keys, "keys", 2, "d", None if first else (None, self._dk))
        view(values, "values", dtype="d")
        if values.ndim not in (1, 2) or len(values) != len(keys):
            raise ValueError(f"values has shape {values.shape}; it must have one row for each of {len(keys)} keys, "
                             f"({len(keys)},) or ({len(keys)}, dv)")
        if first:
            self._flat = values.ndim == 1
        elif (values.ndim == 1) != self._flat or not self._flat and values.shape[1] != self._dv:
            wanted = "(n,)" if self._flat else f"(n, {self._dv})"
            raise ValueError(f"values has shape {values.shape}; those of this context have shape {wanted}")
        values = values.view(np.ndarray)
        return keys.view(np.ndarray), values[:, np.newaxis] if self._flat else values

    def _open(self, struct, scales, keys, values, capacity, progress=None, steps=None):
        self._struct, self._scales = struct, scales
        self._dk, self._dv = keys.shape[1], values.shape[1]
        if scales is not None and len(scales) != self._dk:
            raise ValueError(f"scales has {len(scales)} numbers and keys have {self._dk} columns; one for each is "
                             "needed")
        capacity = max(len(keys), 1) if capacity is None else operator.index(capacity)
        if not len(keys) <= capacity <= 1 << 40:
            raise ArgumentError(f"capacity = {capacity} and there are {len(keys)} tokens; None takes what is needed")
        self._gate = Gate()
        self._rows = Rows(keys, values)
        self._steps = [len(keys)] if steps is None else steps  # tokens that were loaded, appended, appended, ...
        ends = np.cumsum(self._steps).tolist()
        self._make(capacity, keys[:ends[0]], values[:ends[0]], progress)
        for first, last in zip(ends, ends[1:]):  # as it was before it was pickled, to the last bit
            self._extend(keys[first:last], values[first:last])

    def _make(self, capacity, keys, values, progress=None):
        """A new fin_cross with these tokens; the old one stays if that fails."""
        check_memory(self._struct, self._dk, self._dv, capacity)
        with Watch(progress) as watch:
            made = ffi.new("fin_cross **")
            check(lib.fin_cross_create(made, self._struct, at(self._scales), self._dk, self._dv, capacity, watch.err),
                  watch.err)
            cross = ffi.gc(made[0], lib.fin_cross_destroy)
            watch.check(lib.fin_cross_load(cross, len(keys), at(keys), at(values), watch.pointer, watch.err))
        self._cross, self._capacity = cross, capacity
        self._dual = get_info(self._cross).method == lib.FIN_CROSS_DUAL

    # ---- questions ----------------------------------------------------------------------------

    def predict(self, queries, return_variance=False, return_weights=False, progress=None):
        """Answers to m queries: mean, and behind it the variance and the weights where they are wanted.

        Parameters
        ----------
        queries : array (m, dk) of float64
        return_variance : bool
            cme: the variance of the function (a new value has that plus `noise`); else the weighted variance of the
            values around the mean. Shaped like the mean.
        return_weights : bool
            (m, len(context)); mean = weights @ values.
        """
        if (type(queries) is not np.ndarray or queries.dtype is not _FLOAT64 or queries.ndim != 2
                or queries.shape[1] != self._dk or not queries.flags.c_contiguous):
            view(queries, "queries", dtype="d", shape=(None, self._dk))  # says what is wrong
        m, gate, inside = len(queries), self._gate, False
        mean = np.empty(m if self._flat else (m, self._dv))
        variance = np.empty(mean.shape) if return_variance else None
        weights = None
        try:
            with gate.turn:
                gate.entered += 1
                inside = True
            if return_weights:
                weights = np.empty((m, get_info(self._cross).tokens))
            if m * len(self) < _LONG and progress is None:
                err = error()
                status = lib.fin_cross_predict(self._cross, m, at(queries), at(mean), at(variance), at(weights),
                                               ffi.NULL, err)
                if status:
                    check(status, err)
            else:
                with Watch(progress) as watch:
                    watch.check(lib.fin_cross_predict(self._cross, m, at(queries), at(mean), at(variance),
                                                      at(weights), watch.pointer, watch.err))
        finally:
            if inside:
                gate.leave()
        if not return_variance and not return_weights:
            return mean
        return tuple(part for part in (mean, variance, weights) if part is not None)

    def loo(self, progress=None):
        """Leave-one-out: every token's value predicted from the others: mean and variance, of a value for cme."""
        def ask(watch):
            tokens = get_info(self._cross).tokens
            shape = (tokens,) if self._flat else (tokens, self._dv)
            mean, variance = np.empty(shape), np.empty(shape)
            watch.check(lib.fin_cross_loo(self._cross, at(mean), at(variance), watch.pointer, watch.err))
            return mean, variance
        return self._ask(ask, progress)

    def prefix(self, queries=None, answers=None, progress=None):
        """The learning curve: squared error and minus log density after the first 0, 1, 2, ... tokens.

        With queries (m, dk) and answers, means over these, len(context) + 1 of each. Without: entry l is about
        token l, predicted from those before it. The density is NaN but for cme.
        """
        if (queries is None) != (answers is None):
            raise ValueError("queries and answers go together; without both, every token is predicted from those "
                             "before it")
        m = 0
        if queries is not None:
            view(queries, "queries", dtype="d", shape=(None, self._dk))
            m = len(queries)
            view(answers, "answers", dtype="d", shape=(m,) if self._flat else (m, self._dv))
            if m == 0:
                raise ValueError("queries has no rows; leave queries and answers out for the curve of the tokens")

        def ask(watch):
            squared, score = np.empty((2, get_info(self._cross).tokens + (m > 0)))
            watch.check(lib.fin_cross_prefix(self._cross, m, at(queries), at(answers), at(squared), at(score),
                                             watch.pointer, watch.err))
            return squared, score
        return self._ask(ask, progress)

    def evidence(self, return_gradient=False, progress=None):
        """cme: log marginal likelihood of the values, summed over columns.

        With return_gradient also a dict of its derivatives in the logarithms of scale, prior, noise, and of the
        columns' scales ('scales', an array).
        """
        def ask(watch):
            value, gradient, columns = np.empty(1), np.empty(3), np.empty(self._dk)
            both = (at(gradient), at(columns)) if return_gradient else (ffi.NULL, ffi.NULL)
            watch.check(lib.fin_cross_evidence(self._cross, at(value), *both, watch.pointer, watch.err))
            if not return_gradient:
                return float(value[0])
            return float(value[0]), {**dict(zip(("scale", "prior", "noise"), gradient.tolist())), "scales": columns}
        return self._ask(ask, progress)

    def _ask(self, question, progress):
        """A question that takes its time, between changes."""
        inside = False
        try:
            with self._gate.turn:
                self._gate.entered += 1
                inside = True
            with Watch(progress) as watch:
                return question(watch)
        finally:
            if inside:
                self._gate.leave()

    # ---- changes ------------------------------------------------------------------------------

    def append(self, keys, values):
        """More tokens. All or nothing."""
        keys, values = self._tokens(keys, values)
        count = len(keys)
        with self._gate.turn:
            self._gate.wait()
            before, steps, known = len(self), self._steps, len(self._steps)
            self._rows.reserve(count)
            try:
                self._rows.add(keys, values)
                if len(self) > self._capacity or self._dual and 16 * count > len(self):  # one by one takes longer
                    self._steps = [len(self)]
                    self._load()
                else:
                    steps.append(count)
                    self._extend(keys, values)
            except BaseException:  # Ctrl-C may come after the library is done: what it has decides
                if get_info(self._cross).tokens == before:
                    self._steps = steps[:known]
                    self._rows.end = self._rows.first + before
                raise

    def _extend(self, keys, values):
        err = error()
        check(lib.fin_cross_append(self._cross, len(keys), at(keys), at(values), err), err)

    def _load(self):
        """A new fin_cross with all tokens, and twice the room if they do not fit."""
        count, capacity = len(self), self._capacity
        if count > capacity:
            capacity = max(2 * capacity, count)
            try:
                check_memory(self._struct, self._dk, self._dv, capacity)
            except UnsupportedError:
                capacity = count
        self._make(capacity, self._rows.get(0), self._rows.get(1))

    def drop(self, count=1):
        """Leaves the `count` oldest tokens out: with append, a sliding window. All or nothing."""
        count = operator.index(count)
        with self._gate.turn:
            self._gate.wait()
            before, status, err = len(self), None, error()
            if not 0 <= count <= before:
                raise ArgumentError(f"count = {count}; the context has {before} tokens")
            try:
                status = lib.fin_cross_drop(self._cross, count, err)
                check(status, err)
            finally:
                changed = get_info(self._cross).tokens != before
                if changed and not status:
                    self._rows.first += count
                    self._steps = [before - count]
                elif changed:  # it failed, and the library has emptied the context
                    self._restore()

    def _restore(self):
        try:
            self._load()
        except FinettiError:
            self._rows.first = self._rows.end
            self._steps = [0]

    # ---- what it is ---------------------------------------------------------------------------

    def __len__(self):
        return len(self._rows)

    def __repr__(self):
        settings = self.settings
        return (f"<finetti.Context of {len(self)} tokens, keys of {self._dk} and values of {self._dv} numbers, "
                f"form {settings['form']!r}, kernel {settings['kernel']!r}>")

    @property
    def keys(self):
        """(n, dk) the tokens' keys, read-only."""
        return self._rows.get(0)

    @property
    def values(self):
        """(n,) or (n, dv) the tokens' values, read-only."""
        return self._rows.get(1)[:, 0] if self._flat else self._rows.get(1)

    @property
    def settings(self):
        """The settings as a dict."""
        return TABLE.read(self._struct)

    @property
    def scales(self):
        """(dk,) a scale for every column, or None."""
        return None if self._scales is None else self._scales.copy()

    @property
    def capacity(self):
        """Tokens that there is room for; more room is made when it is needed."""
        return self._capacity

    @property
    def info(self):
        """What was done, and how well: method, tokens, features, jitter, residual, moved, bytes (see the library)."""
        return describe(self._ask(lambda watch: get_info(self._cross), None))

    def __getstate__(self):
        with self._gate.turn:
            self._gate.wait()
            return {"settings": self.settings, "scales": self._scales, "capacity": self._capacity,
                    "keys": self._rows.get(0), "values": self._rows.get(1), "flat": self._flat,
                    "steps": self._steps.copy()}

    def __setstate__(self, state):
        self._flat = state["flat"]
        keys, values = (np.ascontiguousarray(state[name]) for name in ("keys", "values"))
        self._open(TABLE.make(state["settings"]), state["scales"], keys, values, state["capacity"],
                   steps=state["steps"])


document(Context, KEYWORDS)
