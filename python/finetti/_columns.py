"""A table as a few NumPy arrays of one length: what questions to a store answer with."""

import difflib

import numpy as np

from ._lab import frame


class Columns:
    """Arrays of one length under names, in a fixed order.

    table["risk"] is a column, table[3] a row as a dict, table[mask] (a slice, a mask, numbers of rows) some of the
    rows; len(table) counts rows, iteration goes over names, and to_frame() makes a pandas DataFrame of it.

    Examples
    --------
    >>> table = Columns({"lam": np.array([0.1, 0.2]), "form": np.array(["erf", "softmax"])})
    >>> table["lam"].max(), table[0]["form"], len(table), list(table)
    (0.2, 'erf', 2, ['lam', 'form'])
    >>> len(table[table["form"] == "erf"])
    1
    """

    def __init__(self, arrays):
        self._arrays = dict(arrays)

    @classmethod
    def from_rows(cls, names, rows):
        """From tuples, which have a value for each name."""
        return cls({name: column([row[j] for row in rows]) for j, name in enumerate(names)})

    def __len__(self):
        return len(next(iter(self._arrays.values()))) if self._arrays else 0

    def __iter__(self):
        return iter(self._arrays)

    def __contains__(self, name):
        return name in self._arrays

    def keys(self):
        """Names of the columns; dict(table) is then a dict of arrays."""
        return self._arrays.keys()

    def __getitem__(self, which):
        if isinstance(which, str):
            if which not in self._arrays:
                raise KeyError(f"there is no column {which!r}{near(which, self._arrays)}")
            return self._arrays[which]
        if isinstance(which, (int, np.integer)):
            return {name: _plain(array[which]) for name, array in self._arrays.items()}
        return Columns({name: array[which] for name, array in self._arrays.items()})

    def rows(self):
        """The rows, each a dict."""
        return [self[i] for i in range(len(self))]

    def to_frame(self):
        """The same as a pandas DataFrame."""
        return frame(self._arrays)

    def __repr__(self):
        shown = min(len(self), 10)
        cells = [list(self)] + [[_short(array[i]) for array in self._arrays.values()] for i in range(shown)]
        widths = [max(len(row[j]) for row in cells) for j in range(len(self._arrays))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths))[:160].rstrip() for row in cells]
        return "\n".join([f"{len(self)} rows, {len(self._arrays)} columns", *lines, *["..."] * (len(self) > shown)])


def column(values):
    """A list of numbers, or of texts, as an array; of both, or of other things, as one of objects.

    None stands for what a row does not have: NaN beside numbers, "" beside texts.
    """
    there = [value for value in values if value is not None]
    if there and all(isinstance(value, str) for value in there):
        return np.array(["" if value is None else value for value in values], dtype=str)
    if values and all(isinstance(value, (int, float)) for value in there):
        if len(there) == len(values) and all(isinstance(value, int) for value in there):
            return np.array(values, dtype=np.int64)
        return np.array([np.nan if value is None else value for value in values], dtype=float)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _plain(value):
    return value.item() if isinstance(value, np.generic) else value


def _short(value):
    text = f"{value:.6g}" if isinstance(value, (float, np.floating)) else str(value)
    return text if len(text) <= 32 else text[:29] + "..."


def near(name, names):
    """The end of a message about a name that there is not."""
    found = difflib.get_close_matches(name, list(names), 1, 0.5)
    return f"; did you mean {found[0]!r}?" if found else f"; there are {', '.join(names) or 'none'}"
