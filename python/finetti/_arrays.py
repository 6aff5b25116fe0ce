"""NumPy arrays as C sees them, without copies.

The laboratory's functions are strict: an array that they would have to copy is refused with the line that copies it.
Estimators convert first (scikit-learn's check_array) and then come here.
"""

import numpy as np

from ._core import ffi, lib

_CTYPES = {"f": ("float[]", lib.FIN_F32), "d": ("double[]", lib.FIN_F64)}


def view(array, name, ndim=None, dtype="fd", shape=None):
    """(pointer, fin_dtype) of a C-contiguous float array, which must outlive the pointer's use.

    dtype: the characters of the types that are allowed. shape: lengths that are known; None where any will do.
    """
    if type(array) is not np.ndarray:
        array = plain(array, name)
    kind = array.dtype.char
    if kind not in dtype or not array.dtype.isnative:
        raise TypeError(f"{name} has dtype {array.dtype}; it must be {_wanted(dtype)}: {_cure(array, name, dtype)}")
    if ndim is not None and array.ndim != ndim or shape is not None and not _fits(array.shape, shape):
        wanted = f"{ndim} axes" if shape is None else "shape (" + ", ".join(
            "any" if n is None else str(n) for n in shape) + ("," if len(shape) == 1 else "") + ")"
        raise ValueError(f"{name} has shape {array.shape}; it must have {wanted}")
    if not array.flags.c_contiguous:
        raise ValueError(f"{name} is not contiguous (strides {array.strides}); pass np.ascontiguousarray({name})")
    if not array.flags.aligned:  # part of a record or of a file in memory
        raise ValueError(f"{name} begins in the middle of a number's place in memory; pass {name}.copy()")
    ctype, code = _CTYPES[kind]
    return ffi.from_buffer(ctype, array), code


def plain(array, name):
    """An np.ndarray, or a TypeError: masked arrays and matrices mean something else than their memory."""
    if isinstance(array, np.ndarray):
        return unmasked(array, name).view(np.ndarray)
    raise TypeError(f"{name} must be a NumPy array of float64 or float32, not {type(array).__name__}: "
                    f"np.asarray({name}, dtype=float)")


def of_table(table, name, columns=None):
    """A DataFrame or Series of pandas as a contiguous array of float64; anything else as it is.

    columns: names that the columns must have, in any order; they come in this one.
    """
    if isinstance(table, np.ndarray) or not hasattr(table, "to_numpy"):
        return table
    if columns is not None and hasattr(table, "columns"):
        gone = [column for column in columns if column not in table.columns]
        if gone:
            raise ValueError(f"{name} has no column {gone[0]!r}; keys had {', '.join(map(str, columns))}")
        table = table[list(columns)]
    kinds = getattr(table, "dtypes", None)
    for column, kind in (kinds.items() if hasattr(kinds, "items") else [(name, table.dtype)]):
        if getattr(kind, "kind", "O") not in "biuf":
            raise TypeError(f"{name}: column {column!r} has dtype {kind}; numbers are needed")
    return np.ascontiguousarray(table.to_numpy(dtype=np.float64))


def names_of(table):
    """The columns of a DataFrame as a list, or None."""
    return None if isinstance(table, np.ndarray) or not hasattr(table, "columns") else list(table.columns)


def unmasked(values, name):
    """`values`, or a TypeError if they are a masked array, whose mask would be lost."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill it ({name}.filled(value)) or leave out what is masked")
    return values


def integers(values, name, ndim=1):
    """A contiguous int64 array of whole numbers (copied where it has to be), e.g. lengths or offsets."""
    array = np.asarray(unmasked(values, name))
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{name} must be whole numbers, not {array.dtype}")
    if array.dtype.kind == "u" and array.size and int(array.max()) > np.iinfo(np.int64).max:
        raise ValueError(f"{name} has a number beyond 2^63 - 1")
    if array.ndim != ndim:
        raise ValueError(f"{name} has shape {array.shape}; it must have {ndim} axis")
    return np.ascontiguousarray(array, dtype=np.int64)


def int64s(array):
    """Pointer to a contiguous int64 array."""
    return ffi.from_buffer("int64_t[]", array)


def doubles(array):
    """Pointer to a contiguous double array that this package made itself."""
    return ffi.from_buffer("double[]", array)


def copy(pointer, shape, dtype=np.float64):
    """An array of its own from memory of the library."""
    count = int(np.prod(shape, dtype=np.int64))
    size = count * np.dtype(dtype).itemsize
    if size == 0:
        return np.empty(shape, dtype)
    return np.frombuffer(ffi.buffer(pointer, size), dtype=dtype).reshape(shape).copy()


def _fits(shape, wanted):
    return len(shape) == len(wanted) and all(w is None or n == w for n, w in zip(shape, wanted))


def _wanted(dtype):
    return " or ".join(np.dtype(c).name for c in dtype[::-1])


def _cure(array, name, dtype):
    if array.dtype.kind == "c":
        return "complex numbers have no order of real ones; take the real part, or both parts as columns"
    if array.dtype.kind == "O":
        return "an array of objects (rows of different lengths?); bags of different lengths are a list of 2-D arrays"
    if array.dtype.kind in "SUV":
        return "text is no number"
    return f"{name}.astype(np.{np.dtype(dtype[-1]).name})"
