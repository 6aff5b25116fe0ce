"""Bags: sets of tokens (rows of numbers), in the one layout that the C library reads.

All tokens lie in one contiguous array, those of a bag side by side, and offsets say where a bag begins. An array that
already is so is not copied. scikit-learn is not needed here, and not loaded.
"""

import functools

import numpy as np

from ._order import check_rows, index_of, title_of
from ._tokens import as_list, axes, exact, is_list, matrix, names_of, numbered, whole_lengths


class Bags:
    """Bags of tokens; index, slice and iterate it like a list of 2-D arrays.

    Parameters
    ----------
    X : list of 2-D arrays | 2-D array | 3-D array | tuple | Bags
        A list has one array (tokens, columns) for each bag. A 2-D array has the tokens of all bags: `lengths` or
        `groups` say which belong together, and without these every row is a bag of its own. A 3-D array has the shape
        (bags, tokens, columns). A tuple is (X, lengths) or (X, groups). Cross-validation picks bags one by one: give
        it Bags, a list or a 3-D array.
    lengths : array of int, optional
        Number of tokens of every bag, whose rows follow each other. With a 3-D array: what is beyond is padding, and is
        not looked at.
    groups : array, optional
        What bag a row belongs to: numbers, texts or anything that can be compared. Rows of a bag need not be
        neighbours; bags come in the order of their first row.

    Attributes
    ----------
    tokens : array (N, d) of float32 or float64; X itself if it could be used as it is
    offsets : array (n + 1) of int64; bag i is tokens[offsets[i]:offsets[i + 1]]
    lengths : array (n) of int64
    names : array (n), the values of `groups`, or None
    rows : array (N), the row of X that a token was, or None if they are in order
    feature_names : array (d) of str, the columns of a DataFrame, or None

    Examples
    --------
    >>> import numpy as np, finetti
    >>> bags = finetti.Bags([np.zeros((2, 3)), np.ones((4, 3))])
    >>> bags
    Bags(2 bags, 6 tokens, 3 columns, float64)
    >>> bags[1].shape, bags.lengths
    ((4, 3), array([2, 4]))
    >>> finetti.Bags(np.eye(3), groups=["b", "a", "b"]).names
    array(['b', 'a'], dtype='<U1')
    """

    _index = None  # of the rows of X, if groups say what their bags are and X is a DataFrame
    _title = None  # name of `groups`, if it is a Series that has one

    def __init__(self, X, lengths=None, groups=None):
        self.names = self.rows = self.feature_names = None
        self._like = None  # how X was laid out: None (a list), "rows", or the number of tokens of a padded bag
        if getattr(X, "ndim", None) == 1 and hasattr(X, "to_numpy"):  # a pandas.Series of arrays
            X = X.to_numpy()
        if type(X) is tuple and len(X) == 2:
            X, lengths, groups = _untie(X, lengths, groups)
        if lengths is not None and groups is not None:
            raise ValueError("lengths and groups both say which rows make a bag; give one of them")
        if isinstance(X, Bags):
            if lengths is not None or groups is not None:
                raise ValueError("X is Bags already and knows its bags; leave out lengths and groups")
            self.__dict__.update(X.__dict__)
            return
        if is_list(X):
            if lengths is not None or groups is not None:
                raise ValueError("X is a list of bags; lengths and groups are for 2-D arrays (np.concatenate(X))")
            self._tokens, lengths, self.feature_names = as_list(X)
            self._offsets = _offsets(lengths)
            return
        tokens = matrix(X)
        self.feature_names = names_of(X)
        if tokens.ndim == 3:
            self._cut(tokens, lengths, groups)
        elif groups is not None:
            self._index = index_of(X)
            check_rows(self._index, groups, "groups")
            self._title = title_of(groups)
            self._group(tokens, groups)
        else:
            self._like = "rows"
            self._tokens = tokens
            n = len(tokens)
            self._offsets = even_offsets(n, 1) if lengths is None else _offsets(_lengths(lengths, n))

    def _cut(self, X, lengths, groups):
        """From a 3-D array (bags, tokens, columns)."""
        n, most, d = X.shape
        if groups is not None:
            raise ValueError("groups are for 2-D arrays; a 3-D array has one bag for each X[i]")
        if most == 0 and n:
            raise ValueError(f"X has shape {X.shape}: bags without tokens; a bag has at least one")
        self._like = most
        self._tokens = X.reshape(n * most, d)
        if lengths is None:
            self._offsets = even_offsets(n, most)
            return
        lengths = whole_lengths(lengths)
        if len(lengths) != n:
            raise ValueError(f"there are {len(lengths)} lengths for {n} bags")
        if n and lengths.max() > most:
            i = int(np.argmax(lengths > most))
            raise ValueError(f"lengths[{i}] is {lengths[i]}; the bags of X have {most} tokens, padding included")
        self._offsets = _offsets(lengths)
        if self.offsets[-1] < n * most:
            self._tokens = self.tokens[(np.arange(most) < lengths[:, None]).ravel()]

    def _group(self, X, groups):
        """From a 2-D array and what bag every row belongs to."""
        number, self.names = numbered(groups, len(X))
        self._like = "rows"
        self._tokens = X
        self._offsets = _offsets(np.bincount(number, minlength=len(self.names)))
        if np.any(number[1:] < number[:-1]):
            self.rows = np.argsort(number, kind="stable")
            self._tokens = X[self.rows]

    # ---- as a sequence --------------------------------------------------------------------------

    def __len__(self):
        return len(self.offsets) - 1

    @property
    def tokens(self):
        """All tokens, (N, d): bag after bag."""
        return self._tokens

    @property
    def offsets(self):
        """Where bags begin in `tokens`, and the end: (n + 1)."""
        return self._offsets

    @property
    def shape(self):
        """(number of bags,): what scikit-learn takes for the number of samples."""
        return (len(self.offsets) - 1,)

    @property
    def dtype(self):
        """float32 or float64."""
        return self.tokens.dtype

    @property
    def lengths(self):
        """Number of tokens of every bag."""
        return np.diff(self.offsets)

    def __iter__(self):
        for i in range(len(self)):
            yield self.tokens[self.offsets[i]:self.offsets[i + 1]]

    def __getitem__(self, key):
        n = len(self)
        if isinstance(key, tuple) and len(key) == 2 and key[1] is Ellipsis:  # scikit-learn from 1.4 on
            key = key[0]
        if isinstance(key, slice):
            begin, end, step = key.indices(n)
            if step == 1:
                return self._some(slice(begin, max(begin, end)))
            return self._some(np.arange(begin, end, step))
        if isinstance(key, tuple):
            raise IndexError("bags have one axis; bags[i] is an array, which has more: bags[i][j]")
        index = exact(key, "the index")
        if index.ndim == 0 and index.dtype.kind in "iu":
            i = int(index)
            if not -n <= i < n:
                raise IndexError(f"bag {i} of {n} bags")
            return self.tokens[self.offsets[i]:self.offsets[i + 1]] if i >= 0 else self[i + n]
        if index.dtype.kind == "b" and index.shape != (n,):
            raise IndexError(f"a mask of shape {index.shape} for {n} bags")
        if index.ndim != 1 or index.dtype.kind not in "iub" and index.size:
            raise IndexError(f"bags are indexed by a number, a slice, a mask or an array of numbers, not {key!r}")
        return self._some(np.flatnonzero(index) if index.dtype.kind == "b" else index.astype(np.int64))

    def _some(self, key):
        """The bags of a slice (no copy) or of an index array."""
        some = Bags.__new__(Bags)
        some.feature_names, some._like, some._title = self.feature_names, None, self._title
        some.names = None if self.names is None else self.names[key]
        if isinstance(key, slice):
            offsets = self.offsets[key.start:key.stop + 1]
            rows = slice(offsets[0], offsets[-1])
            some._offsets = _sealed(offsets - offsets[0])
        else:
            lengths = self.lengths[key]
            some._offsets = _offsets(lengths)
            rows = np.arange(some.offsets[-1]) + np.repeat(self.offsets[:-1][key] - some.offsets[:-1], lengths)
        some._tokens = self.tokens[rows]
        some.rows = None if self.rows is None else self.rows[rows]
        return some

    def __array__(self, *args, **kwargs):
        raise TypeError("bags have different lengths and are no array; bags.tokens is one, with bags.offsets. "
                        "finetti.PerToken makes a transformer of rows one of bags; instead of sklearn.inspection's, "
                        "estimators of bags have a method permutation_importance(X, y)")

    def __setstate__(self, state):
        """From a pickle, which may have been damaged: C trusts what offsets say."""
        if not _belong(state.get("_tokens"), state.get("_offsets")):
            raise ValueError("these are no bags that finetti pickled: offsets and tokens do not go together")
        self.__dict__.update(state)
        _sealed(self._offsets)

    def __repr__(self):
        n, (tokens, columns) = len(self), self.tokens.shape
        return (f"Bags({n} bag{'s' * (n != 1)}, {tokens} token{'s' * (tokens != 1)}, "
                f"{columns} column{'s' * (columns != 1)}, {self.dtype})")

    # ---- values of tokens and of bags -------------------------------------------------------------

    def replace(self, tokens):
        """The same bags with other tokens: an array with as many rows, such as a transformer's.

        >>> import numpy as np, finetti
        >>> bags = finetti.Bags(np.ones((3, 2)), lengths=[1, 2])
        >>> bags.replace(2 * bags.tokens[:, :1])[1]
        array([[2.],
               [2.]])
        """
        names = names_of(tokens)
        tokens = matrix(tokens, "tokens")
        if tokens.ndim != 2 or len(tokens) != len(self.tokens):
            raise ValueError(f"tokens have shape {tokens.shape}; these bags have {len(self.tokens)} of them")
        return self._with(tokens, names)

    def _with(self, tokens, feature_names):
        """The same bags with other tokens, which nobody has to look at."""
        other = Bags.__new__(Bags)
        other.__dict__.update(self.__dict__, _tokens=tokens, feature_names=feature_names)
        return other

    def split(self, values):
        """Values of tokens (one for each, in their order here) as a list of arrays, one for each bag.

        >>> import numpy as np, finetti
        >>> finetti.Bags(np.ones((3, 2)), lengths=[1, 2]).split(np.arange(3))
        [array([0]), array([1, 2])]
        """
        if len(values) != len(self.tokens):
            raise ValueError(f"there are {len(values)} values for {len(self.tokens)} tokens")
        return [values[a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:])]

    def _as_given(self, values):
        """Values of tokens laid out as X was: a list, rows, or bags with padding (0)."""
        if self._like is None:
            return self.split(values)
        if self._like == "rows":
            if self.rows is None:
                return values
            out = np.empty_like(values)
            out[self.rows] = values
            return out
        shape = (len(self), self._like)
        if self.offsets[-1] == shape[0] * shape[1]:
            return values.reshape(shape)
        out = np.zeros(shape, values.dtype)
        out[np.arange(self._like) < self.lengths[:, None]] = values
        return out

    def _per_bag(self, values, name):
        """One value for each bag, from one for each bag or (made by groups) one for each row, the same in a bag."""
        n = len(self)
        if len(values) == n:
            return values
        if self.names is None or self._like != "rows" or len(values) != len(self.tokens):
            rows = f" (or {len(self.tokens)}: one for each row)" if self.names is not None and self._like else ""
            raise ValueError(f"{name} has {len(values)} values for {n} bags{rows}; Found input variables with "
                             f"inconsistent numbers of samples: [{n}, {len(values)}]")
        if self.rows is not None:
            values = values[self.rows]
        first = values[self.offsets[:-1]]
        spread = np.repeat(first, self.lengths)
        differs = (values != spread) & ~((values != values) & (spread != spread))
        if differs.any():
            t = int(np.argmax(differs))
            i = int(np.searchsorted(self.offsets, t, "right")) - 1
            raise ValueError(f"{name} differs within bag {i} ({self.names[i]!r}): {first[i]!r} and {values[t]!r}; a "
                             "bag has one")
        return first


def _untie(pair, lengths, groups):
    """X, lengths, groups of a tuple (X, lengths) or (X, groups); any other tuple is a list of two bags."""
    X, second = pair
    if axes(second) != 1:
        return list(pair), lengths, groups
    if is_list(X):
        raise ValueError("X is a tuple of a list of bags and something else; the list alone says what the bags are")
    if axes(X) < 2:
        return list(pair), lengths, groups
    array = exact(second, "the second part of X")
    if lengths is not None or groups is not None:
        raise ValueError("X is a tuple that says which rows make a bag, and lengths or groups say it too; give one")
    n = len(X)
    if axes(X) == 3:
        return X, array, None
    whole = array.dtype.kind in "iu"
    sums = whole and len(array) <= n and int(array.clip(0, n + 1).sum()) == n
    if sums and len(array) == n and n > 1:
        raise ValueError("X is a tuple whose second part could be lengths or groups; say which: lengths=... or "
                         "groups=...")
    if not sums and len(array) != n:
        total = f" and sum to {sum(array.tolist())}" if whole else ""
        raise ValueError(f"X is a tuple of {n} rows and {len(array)} other values{total}: neither lengths (they would "
                         f"sum to {n}) nor groups (there would be {n})")
    return (X, array, None) if sums else (X, None, second)


def _lengths(lengths, rows):
    lengths = whole_lengths(lengths)
    if len(lengths) > rows or len(lengths) and lengths.max() > rows or lengths.sum() != rows:  # in this order
        raise ValueError(f"lengths sum to {sum(lengths.tolist())}, and X has {rows} rows")
    return lengths


def _offsets(lengths):
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return _sealed(offsets)


def even_offsets(n, length):
    """Offsets of n bags of the same length."""
    return _few_offsets(n, length) if n <= 64 else _sealed(np.arange(0, n * length + 1, length))


@functools.lru_cache(64)
def _few_offsets(n, length):
    return _sealed(np.arange(0, n * length + 1, length) if n else np.zeros(1, np.int64))


def _belong(tokens, offsets):
    """Can C read these tokens by these offsets?"""
    return (isinstance(tokens, np.ndarray) and tokens.ndim == 2 and tokens.dtype.char in "fd" and tokens.dtype.isnative
            and tokens.flags.c_contiguous and isinstance(offsets, np.ndarray) and offsets.ndim == 1
            and offsets.dtype == np.int64 and len(offsets) > 0 and offsets[0] == 0 and offsets[-1] == len(tokens)
            and bool((np.diff(offsets) > 0).all()))


def _sealed(array):
    """Not to be written to: what C reads by it must be there."""
    array.flags.writeable = False
    return array
