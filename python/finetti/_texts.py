"""Texts as C wants them: encoded, kept alive beside the struct that points to them, and conditions on runs."""

import os

from ._core import ffi

_OPERATORS = ("=", "!=", "<", "<=", ">", ">=")


class Held:
    """A struct of C together with the texts that it points to."""

    def __init__(self, ctype):
        self.pointer = ffi.new(ctype)
        self.kept = []

    def text(self, name, value):
        """Sets a field to a text; None is NULL."""
        if value is not None:
            self.kept.append(ffi.new("char[]", encoded(value, name)))
            setattr(self.pointer, name, self.kept[-1])

    def texts(self, name, count, values):
        """Sets a field to a list of texts, and another to their number."""
        each = [ffi.new("char[]", encoded(value, name)) for value in values]
        self.kept += [each, ffi.new("char *[]", each or [ffi.NULL])]
        setattr(self.pointer, name, self.kept[-1])
        setattr(self.pointer, count, len(each))


def encoded(value, name):
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name} must be a text, not {value!r} ({type(value).__name__})")
    data = os.fsencode(value) if isinstance(value, os.PathLike) else value
    data = data.encode("utf-8", "surrogateescape") if isinstance(data, str) else data
    if b"\0" in data:
        raise ValueError(f"{name} has a NUL character: {value!r}")
    return data


def several(values, name, wanted):
    """A list of the values, which may be None for none of them, or a single text."""
    if values is not None and not isinstance(values, (str, list, tuple)):
        raise TypeError(f"{name} must be {wanted}, not {values!r}")
    return [values] if isinstance(values, str) else list(values or ())


def conditions(where):
    """{"lam": 0.1, "L": (">=", 10), "form": ["erf", "softmax"]}, or ["lam=0.1", ...], as the library writes them."""
    if not hasattr(where, "items"):
        return several(where, "where", 'a dict such as {"lam": 0.1}, or a list such as ["lam=0.1"]')
    made = []
    for name, value in where.items():
        operator = "="
        if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0] in _OPERATORS:
            operator, value = value
        value = value.tolist() if hasattr(value, "tolist") else value
        values = value if isinstance(value, (list, tuple, range, set, frozenset)) else [value]
        made.append(f"{name}{operator}{','.join(_word(one) for one in values)}")
    return made


def _word(value):
    value = value.item() if hasattr(value, "item") else value
    return repr(value) if isinstance(value, float) else str(int(value) if isinstance(value, bool) else value)
