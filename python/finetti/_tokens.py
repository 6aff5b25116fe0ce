"""Whatever people have as arrays of numbers, as float32 or float64 in C order: converted as scikit-learn does it.

No copy is made of an array that is so already. What cannot be converted without a guess is refused: complex numbers,
text, sparse and masked arrays. Also lengths, groups and labels, which are never altered: 1 is not '1'.
"""

from math import isfinite

import numpy as np

from ._arrays import integers

_CHUNK = 1 << 22  # numbers that are looked at one by one at a time
_NARROW = {"e": np.float32, "f": np.float32, "B": np.float32}  # exact in float32; bytes as the command line reads them


def matrix(X, name="X"):
    """A C-contiguous float array of two or three axes, with at least one column."""
    if not (type(X) is np.ndarray and X.dtype.char in "fd" and X.flags.c_contiguous and X.dtype.isnative):
        X = _floats(X, name)
    if X.ndim not in (2, 3):
        raise _wrongaxes(X, name)
    if X.shape[-1] == 0:
        raise ValueError(f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required.")
    return X


def is_list(X):
    """Is it a list of bags? A list of rows (a 2-D array written as lists) is none."""
    if isinstance(X, np.ndarray):
        return X.dtype.kind == "O" and X.ndim == 1 and len(X) > 0 and axes(X[0]) >= 2
    return isinstance(X, (list, tuple)) and (len(X) == 0 or axes(X[0]) >= 2)


def as_list(items):
    """(tokens, lengths, names of columns) of a list of bags."""
    if len(items) == 0:
        raise ValueError("Found array with 0 sample(s): X is an empty list; at least one bag is needed")
    arrays = [_bag(item, i) for i, item in enumerate(items)]
    d = arrays[0].shape[1]
    for i, array in enumerate(arrays):
        if array.shape[0] == 0:
            raise ValueError(f"bag {i} is empty; a bag has at least one token: leave it out, with its label")
        if array.shape[1] != d:
            raise ValueError(f"bag {i} has {array.shape[1]} columns, bag 0 has {d}; all tokens have the same")
    names = names_of(items[0])
    for i, item in enumerate(items if names is not None else ()):
        if names_of(item) is None or list(names_of(item)) != list(names):
            raise ValueError(f"bag {i} has other columns than bag 0, or in another order: {names_of(item)}, {names}")
    tokens = matrix(arrays[0] if len(arrays) == 1 else np.concatenate(arrays))
    return tokens, np.fromiter(map(len, arrays), np.int64, len(arrays)), names


def names_of(X):
    """The columns of a DataFrame if they are text, else None."""
    columns = getattr(X, "columns", None)
    if columns is None or isinstance(X, np.ndarray):
        return None
    names = np.array(list(columns), dtype=object)
    text = [isinstance(name, str) for name in names]
    if any(text) and not all(text):
        raise TypeError("Feature names are only supported if all input features have string names, but "
                        f"{names[text.index(False)]!r} is none: X.columns = X.columns.astype(str)")
    return names if any(text) else None


def is_missing(value):
    """None, NaN, or pandas' NA and NaT."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or isinstance(value, float) and value != value


def all_finite(tokens):
    """True if all numbers are finite; False if that has to be looked at closer (or sums are too large)."""
    if tokens.size <= 8192:  # the quickest there is for few
        flat = tokens.ravel()
        total = flat.dot(flat)
    else:
        with np.errstate(all="ignore"):
            total = np.add.reduce(tokens, axis=None)
    return isfinite(total)


def find_bad(tokens, offsets):
    """None if all tokens are finite, else a sentence about the first that is not."""
    if all_finite(tokens):
        return None
    step = max(1, _CHUNK // tokens.shape[1])
    for begin in range(0, len(tokens), step):
        finite = np.isfinite(tokens[begin:begin + step])
        if not finite.all():
            row, column = np.argwhere(~finite)[0]
            row += begin
            bag = int(np.searchsorted(offsets, row, "right")) - 1
            value = "NaN" if np.isnan(tokens[row, column]) else "infinity (inf)"
            return (f"bag {bag} has {value} in column {column} of its token {row - offsets[bag]}; tokens must be "
                    "finite: fill gaps (sklearn.impute.SimpleImputer in finetti.PerToken) or leave out such tokens")
    return None


# ---- conversion -----------------------------------------------------------------------------------

def axes(item):
    """Number of axes of an array, or depth of nested lists."""
    count = getattr(item, "ndim", None)
    if count is not None:
        return count
    if isinstance(item, (list, tuple)):
        return 1 + axes(item[0]) if len(item) else 1
    return np.asarray(item).ndim if hasattr(item, "__array__") else 0


def _bag(item, i):
    """One bag of a list."""
    if type(item) is np.ndarray and item.ndim == 2 and item.dtype.char in "fd" and item.shape[1]:
        return item  # they are copied side by side anyhow
    if axes(item) == 2:
        return matrix(item, f"bag {i}")
    if axes(item) == 1 and len(item) == 0:
        raise ValueError(f"bag {i} is empty; a bag has at least one token: leave it out, with its label")
    raise ValueError(f"bag {i} has {axes(item)} axes; a bag has two, (tokens, columns): reshape(1, -1) makes a bag of "
                     "one token of a vector")


def _floats(X, name):
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill it ({name}.filled(value)), or leave out the tokens that are "
                        "masked")
    if hasattr(X, "toarray") and not isinstance(X, np.ndarray):
        raise TypeError(f"{name} is sparse; a dense array is needed: {name}.toarray()")
    if hasattr(X, "to_numpy") and hasattr(X, "columns"):
        array = _of_frame(X, name)
    elif isinstance(X, np.ndarray):
        array = X.view(np.ndarray)
    elif isinstance(X, (list, tuple)) or hasattr(X, "__array__"):
        array = _of_list(X, name)
    else:
        raise TypeError(f"{name} is {type(X).__name__!r}; bags are a list of 2-D arrays, a 2-D array with lengths or "
                        "groups, or a 3-D array")
    kind = array.dtype.kind
    if kind == "c":
        raise ValueError(f"Complex data not supported: {name} has dtype {array.dtype}; take the real part, or real and "
                         "imaginary part as columns")
    if kind == "O":
        array = _of_objects(array, name)
    elif kind not in "fiub":
        raise ValueError(f"{name} has dtype {array.dtype}, which is text, time or a record and no number; "
                         "sklearn.preprocessing.OneHotEncoder makes columns of categories")
    if array.dtype.char == "e" or array.dtype.kind != "f" or array.dtype.char == "g":
        array = array.astype(_NARROW.get(array.dtype.char, np.float64))
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("="))


def _of_list(X, name):
    try:
        array = np.asarray(X)
    except ValueError as problem:
        raise ValueError(f"{name} cannot be made an array, are its rows of different lengths? Bags of different "
                         f"lengths are a list of 2-D arrays ({problem})") from None
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; fill it first")
    return array


def _of_frame(X, name):
    times = [str(column) for column, dtype in zip(X.columns, X.dtypes) if getattr(dtype, "kind", "") in ("m", "M")]
    if times:  # pandas would make them nanoseconds
        raise ValueError(f"{name} has columns of time: {', '.join(times[:5])}; leave them out, or make numbers of them")
    array = X.to_numpy()
    if array.dtype.kind != "O":
        return array
    texts = ("object", "string", "str", "category")
    text = [str(column) for column, dtype in zip(X.columns, X.dtypes) if str(dtype) in texts
            and any(isinstance(value, str) for value in X[column])]
    if text:
        raise ValueError(f"{name} has columns of text: {', '.join(text[:5])}; leave them out, or make numbers of them")
    return X.to_numpy(dtype=np.float64, na_value=np.nan)


def _of_objects(array, name):
    if array.ndim == 1 and array.size and axes(array[0]) >= 1:
        raise ValueError(f"{name} is an array of objects, with rows of different lengths? Bags of different lengths "
                         "are a list of 2-D arrays")
    for value in array.flat:
        if isinstance(value, (str, bytes)):
            raise ValueError(f"{name} has the text {value!r} among its objects; numbers are needed")
    try:
        return array.astype(np.float64)
    except TypeError as problem:  # float() argument must be a string or a number, not ...
        raise TypeError(f"{name} is an array of objects that are not all numbers: {problem}") from None
    except OverflowError:
        raise ValueError(f"{name} has a number that is too large for float64; divide it by a power of ten") from None


def _wrongaxes(X, name):
    if X.ndim > 3:
        return ValueError(f"{name} has shape {X.shape}; Found array with dim {X.ndim}, and bags have at most three "
                          f"axes (bags, tokens, columns): {name}.reshape({X.shape[0]}, {X.shape[1]}, -1)")
    got = "scalar" if X.ndim == 0 else "1D"
    return ValueError(f"Expected 2D array, got {got} array instead: {name} has shape {X.shape}. Reshape your data: "
                      f"{name}.reshape(1, -1) is one token, {name}.reshape(-1, 1) are tokens of one column")


# ---- lengths, groups, labels ------------------------------------------------------------------------

def exact(values, name):
    """Values as an array, none of them altered: NumPy would make '1' of 1 beside a text, 'nan' of NaN, and round whole
    numbers beside others; such lists become arrays of objects. Objects that all are numbers become an array of these.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array; leave out what is masked")
    array = np.asarray(values)
    objects = array.dtype.kind == "O"
    if array.ndim != 1 or not (objects or isinstance(values, (list, tuple)) and array.dtype.kind in "fUS"):
        return array
    given = array.tolist() if objects else list(values)
    try:
        plain = np.array(given) if objects else array
    except ValueError:  # lists of different lengths
        return array
    if objects and (plain.dtype.kind not in "biufS" or plain.ndim != 1):
        return array
    if plain.tolist() == given:
        return plain
    return array if objects else _objects(given)


def numbered(groups, n):
    """(number of the bag, from 0 in the order of first rows, for each of n rows; value of `groups` for each bag)."""
    groups = as_groups(groups, "groups")
    if groups.shape != (n,):
        raise ValueError(f"groups have shape {groups.shape}; X has {n} rows, and each needs its group: ({n},)")
    i = first_missing(groups)
    if i is not None:
        raise ValueError(f"row {i} has no group ({groups[i]!r}); leave such rows out, or give each a group of its own")
    return counted(groups)


def as_groups(groups, name):
    """Groups as an array, none of them altered."""
    pairs = isinstance(groups, list) and len(groups) and isinstance(groups[0], tuple)
    return _objects(groups) if pairs else exact(groups, name)


def first_missing(groups):
    """The place of the first group that is None or NaN; None: there is none."""
    missing = list(map(is_missing, groups)) if groups.dtype.kind == "O" else groups != groups
    return int(np.argmax(missing)) if np.any(missing) else None


def counted(groups, name="groups"):
    """(number of the group, from 0 in the order in which they come, for each; the groups)."""
    if groups.dtype.kind == "O":  # may not be sortable
        numbers = {}
        try:
            number = np.fromiter((numbers.setdefault(g, len(numbers)) for g in groups.tolist()), np.int64,
                                 len(groups))
        except TypeError as problem:
            raise TypeError(f"{name} cannot be told apart ({problem}); texts, numbers and tuples can") from None
        return number, _objects(list(numbers))
    values, first, number = np.unique(groups, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[number.ravel()], values[order]


def whole_lengths(lengths):
    """Lengths of bags as int64, all of them at least one."""
    lengths = integers(exact(lengths, "lengths"), "lengths")
    if len(lengths) and lengths.min() < 1:
        i = int(np.argmax(lengths < 1))
        raise ValueError(f"bag {i} is empty (lengths[{i}] is {lengths[i]}); a bag has at least one token: leave it "
                         "out, with its label")
    return lengths


def _objects(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array
