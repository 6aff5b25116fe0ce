"""Rows of pandas have names (their index), and those of X, groups and labels have to agree: values are paired by place.

df.groupby("id")["y"].first() sorts, for example, and bags are in the order of their first rows.
"""

import numpy as np


def index_of(values):
    """The index of a Series or DataFrame, else None. (That of a list is a method.)"""
    index = getattr(values, "index", None)
    return index if hasattr(index, "equals") else None


def title_of(values):
    """The name of a Series, if it has one that is text, else None."""
    name = getattr(values, "name", None)
    return name if isinstance(name, str) and name else None


def check_rows(index, values, name):
    """Refuses `values`, one for each row, whose index is another than `index`, that of X. Either may have none."""
    own = index_of(values)
    if index is None or own is None or len(index) != len(own) or own.equals(index):  # lengths are looked at elsewhere
        return
    i, mine, theirs = _first(own, index)
    raise ValueError(f"{name} and X have different indexes (row {i}: {mine!r} and {theirs!r}), so that they may not "
                     f"belong together; pass {name}.loc[X.index], or {name}.to_numpy() if they are in order")


def check_bags(bags, values, name):
    """Refuses labels or weights of bags that are in another order, as far as their index says so."""
    own = index_of(values)
    if own is None or bags.names is None:
        return
    if len(own) != len(bags):
        check_rows(bags._index, values, name)
        return
    array = np.asarray(own)
    given, names = array.tolist(), bags.names.tolist()
    if given == names or bags._index is not None and own.equals(bags._index):
        return
    common = set(given) & set(names)
    # Numbers may just count the labels, and a part of them says nothing; texts that are common are names of bags.
    if common and (len(common) == len(names) or array.dtype.kind not in "iu"):
        i, mine, theirs = _first(given, names)
        raise ValueError(f"{name} is in another order than the bags: value {i} is that of {mine!r}, bag {i} is "
                         f"{theirs!r}. Bags are in the order of their first rows, and groupby sorts: pass "
                         f"{name}.loc[bags.names] with bags = finetti.Bags(X, groups=groups), or one value for each "
                         f"row; {name}.to_numpy() if it is in the order of the bags")


def _first(some, others):
    """(place, both values) of the first difference."""
    return next(((i, a, b) for i, (a, b) in enumerate(zip(some, others)) if a != b and (a == a or b == b)),
                (0, some[0], others[0]))
