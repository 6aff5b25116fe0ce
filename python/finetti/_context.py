"""Context: queries that attend to tokens of a key and a value, over the library's fin_cross.

Many threads may ask a context at once; append and drop wait until nobody asks, since the factor that they change is
read without Python's lock. Keys and values are kept here too: a context that outgrows its capacity is made anew from
them, and so is one that comes out of a pickle.
"""

import operator

import numpy as np

from ._arrays import names_of, of_table, view
from ._core import ArgumentError, FinettiError, Table, UnsupportedError, Watch, check, error, ffi, lib
from ._signature import document, parameters, signed
from ._window import Gate, Rows, at, check_memory, describe, get_info

TABLE = Table(ffi.addressof(lib, "fin_cross_table"), "fin_cross_settings")
KEYWORDS = parameters(TABLE)
_LONG = 10000  # queries times tokens from which a call can be interrupted, which costs it some microseconds


class Context:
    """A context of exchangeable tokens, made for many queries, for growing and for shrinking.

    Several threads may ask at once, while another appends or drops. A pickle holds tokens and settings and makes the
    context anew, with the same numbers to the last bit (after a drop, to rounding; nystrom then chooses its landmarks
    again).

    With form 'cme' the answers are those of a Gaussian process, exactly: values are a function of the keys with
    covariance prior * kernel + level, plus noise. 'softmax' and 'nw' (Nadaraya-Watson) average values by weights.

    Parameters
    ----------
    keys : array (n, dk) of float64, or DataFrame
        The tokens' keys; n may be 0. They are copied. Columns of later DataFrames are found by name.
    values : array (n,) or (n, dv) of float64, or Series or DataFrame
        The tokens' values. Answers are arrays with as many axes.
    {parameters}
    scales : array (dk,) or None
        A length scale for every column of the keys, times `scale`.
    capacity : int or None
        Room for this many tokens from the start (None: for those given). More room is made when tokens are appended
        beyond it, at least twice as much, which costs as much as a new context.
    progress : bool or function, default=None
        True shows a bar, a function is called with (what, done, total) and may return True to cancel. Also of the
        methods; there it may ask the context again, but not change it.

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
        self._names = names_of(keys)
        self._open(TABLE.make(settings), scales, *self._tokens(keys, values), capacity, progress)

    def _tokens(self, keys, values):
        """Both as matrices, checked; the width of what is there already counts."""
        first = not hasattr(self, "_dk")
        keys, values = of_table(keys, "keys", self._names), of_table(values, "values")
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
        dual = get_info(cross).method == lib.FIN_CROSS_DUAL
        self._cross, self._capacity, self._dual = cross, capacity, dual

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
        queries = of_table(queries, "queries", self._names)
        asked, _ = view(queries, "queries", dtype="d", shape=(None, self._dk))
        m = len(queries)
        mean = np.empty(m if self._flat else (m, self._dv))
        variance = np.empty(mean.shape) if return_variance else None

        def ask(pointer, err):
            weights = np.empty((m, len(self))) if return_weights else None
            return lib.fin_cross_predict(self._cross, m, asked, at(mean), at(variance), at(weights), pointer,
                                         err), weights

        weights = self._ask(ask, progress, m)
        if not return_variance and not return_weights:
            return mean
        return tuple(part for part in (mean, variance, weights) if part is not None)

    def loo(self, progress=None):
        """Leave-one-out: every token's value predicted from the others.

        Returns mean and variance, shaped like `values`; for cme the variance is that of a value, noise included.
        """
        def ask(pointer, err):
            shape = (len(self),) if self._flat else (len(self), self._dv)
            mean, variance = np.empty(shape), np.empty(shape)
            return lib.fin_cross_loo(self._cross, at(mean), at(variance), pointer, err), (mean, variance)
        return self._ask(ask, progress)

    def prefix(self, queries=None, answers=None, progress=None):
        """The learning curve: what was to be known after the first 0, 1, 2, ... tokens.

        queries, answers : arrays (m, dk) and (m,) or (m, dv), for means over these, len(context) + 1 of them. None:
        entry l is about token l, predicted from those before it.

        Returns squared error and minus log density of a value, summed over columns; the latter is NaN but for cme, and
        so is the first entry of both for the other forms.
        """
        if (queries is None) != (answers is None):
            raise ValueError("queries and answers go together; without both, every token is predicted from those "
                             "before it")
        m = 0
        if queries is not None:
            queries, answers = of_table(queries, "queries", self._names), of_table(answers, "answers")
            view(queries, "queries", dtype="d", shape=(None, self._dk))
            m = len(queries)
            view(answers, "answers", dtype="d", shape=(m,) if self._flat else (m, self._dv))
            if m == 0:
                raise ValueError("queries has no rows; leave queries and answers out for the curve of the tokens")

        def ask(pointer, err):
            squared, score = np.empty((2, len(self) + (m > 0)))
            return lib.fin_cross_prefix(self._cross, m, at(queries), at(answers), at(squared), at(score), pointer,
                                        err), (squared, score)
        return self._ask(ask, progress)

    def evidence(self, return_gradient=False, progress=None):
        """cme: log marginal likelihood of the values, summed over columns.

        return_gradient : also a dict of its derivatives in the logarithms of scale, prior, noise, and of the columns'
        scales ('scales', an array).
        """
        value, gradient, columns = np.empty(1), np.empty(3), np.empty(self._dk)

        def ask(pointer, err):
            both = (at(gradient), at(columns)) if return_gradient else (ffi.NULL, ffi.NULL)
            return lib.fin_cross_evidence(self._cross, at(value), *both, pointer, err), None
        self._ask(ask, progress)
        if not return_gradient:
            return float(value[0])
        return float(value[0]), {**dict(zip(("scale", "prior", "noise"), gradient.tolist())), "scales": columns}

    def _ask(self, question, progress=None, queries=None):
        """The answer of question(pointer, err), which gives a status and it. Few queries need no answer to Ctrl-C."""
        gate, me = self._gate, object()
        try:
            gate.enter(me)
            if progress is None and queries is not None and queries * len(self) < _LONG:
                err = error()
                status, answer = question(ffi.NULL, err)
                check(status, err)
            else:
                with Watch(progress) as watch:
                    status, answer = question(watch.pointer, watch.err)
                    watch.check(status)
            return answer
        finally:
            gate.asking.pop(me, None)
            gate.tell()

    # ---- changes ------------------------------------------------------------------------------

    def append(self, keys, values):
        """More tokens: keys (count, dk) and values (count,) or (count, dv), with the axes of before. All or nothing."""
        keys, values = self._tokens(keys, values)
        count = len(keys)
        self._gate.check()
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
                    self._rows.keep(before)
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
        self._gate.check()
        with self._gate.turn:
            self._gate.wait()
            before, status, err = len(self), None, error()
            if not 0 <= count <= before:
                raise ArgumentError(f"count = {count}; the context has {before} tokens")
            rest, steps = self._rows.without(count), [before - count]
            try:
                status = lib.fin_cross_drop(self._cross, count, err)
                check(status, err)
                self._rows.span, self._steps = rest, steps
            except BaseException:  # Ctrl-C, as above, or it failed, and the library may have emptied the context
                tokens = get_info(self._cross).tokens
                if tokens == before - count and not status:
                    self._rows.span, self._steps = rest, steps
                elif tokens != before:
                    self._restore()
                raise

    def _restore(self):
        try:
            self._load()
        except FinettiError:  # what was wrong before is on its way to the user
            pass
        finally:
            if get_info(self._cross).tokens == 0:
                self._rows.keep(0)
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
        return self._ask(lambda *call: (lib.FIN_OK, self._rows.get(0)), queries=0)

    @property
    def values(self):
        """(n,) or (n, dv) the tokens' values, read-only."""
        values = self._ask(lambda *call: (lib.FIN_OK, self._rows.get(1)), queries=0)
        return values[:, 0] if self._flat else values

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
        """What was done, and how well, as a dict.

        method ('dual', 'primal', 'nystrom'; 'none' but for cme), tokens, features (primal: of the kernel; nystrom:
        landmarks), jitter (what was added to the noise so that the matrix is positive definite), bytes; of nystrom
        also residual (the share of the prior variance that the landmarks do not see; 0 is exact) and moved (an
        estimate of the error that is left, in standard deviations of the values).
        """
        return self._ask(lambda *call: (lib.FIN_OK, describe(get_info(self._cross))), queries=0)

    def __getstate__(self):
        return self._ask(lambda *call: (lib.FIN_OK, {
            "settings": self.settings, "scales": self._scales, "capacity": self._capacity, "keys": self._rows.get(0),
            "values": self._rows.get(1), "flat": self._flat, "steps": self._steps.copy(), "names": self._names}), queries=0)

    def __setstate__(self, state):
        self._flat, steps, scales = state["flat"], state["steps"], state["scales"]
        self._names = state.get("names")
        keys, values = (np.ascontiguousarray(state[name]) for name in ("keys", "values"))
        view(keys, "keys", 2, "d")
        view(values, "values", dtype="d", shape=(len(keys), 1 if self._flat else None))
        if scales is not None:
            view(scales, "scales", 1, "d")
        if not steps or min(steps) < 0 or sum(steps) != len(keys):
            raise ValueError(f"the pickle is damaged: {len(keys)} tokens, which came as {steps}")
        self._open(TABLE.make(state["settings"]), scales, keys, values, state["capacity"], steps=steps)


document(Context, KEYWORDS)
