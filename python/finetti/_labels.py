"""Labels, weights, seeds and names of columns: what scikit-learn's users pass, as the C library takes it."""

import numbers as abstract
import re
import warnings

import numpy as np
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets

from ._core import ArgumentError
from ._order import check_bags
from ._tokens import as_groups, counted, exact, first_missing, is_missing

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?(e[-+]?[0-9]+)?")


def column(y, warn=0):
    """A 1-D array. warn: say so if a column was passed, as scikit-learn does; the level of the caller."""
    y = exact(y, "y")
    if y.ndim == 2 and y.shape[1] == 1:
        if warn:
            warnings.warn("A column-vector y was passed when a 1d array was expected. Please change the shape of y to "
                          "(n_samples,), for example using ravel().", DataConversionWarning, stacklevel=warn)
        y = exact(y.ravel(), "y")
    if y.ndim != 1:
        raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
    if y.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: y has dtype {y.dtype}")
    if y.dtype.kind == "O" and any(is_missing(value) for value in y):
        y = np.array([None if is_missing(value) else value for value in y], dtype=object)
    return y


def given(y, bags, name, level=4):
    """Labels of bags, one for each. level: of the caller, for a warning."""
    if y is None:
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
    check_bags(bags, y, "y")
    return bags._per_bag(column(y, warn=level), "y")


def numbers(y, missing=False):
    """Labels that are numbers, as float64. missing: NaN and None are allowed."""
    if y.dtype.kind == "O":
        if any(isinstance(value, (str, bytes)) for value in y):
            raise ValueError("y has text among its labels; a regressor needs numbers, a classifier takes text")
        try:
            y = y.astype(np.float64)
        except (TypeError, OverflowError) as problem:
            raise ValueError(f"y has labels that are no numbers ({problem})") from None
    if y.dtype.kind not in "fiub":
        raise ValueError(f"y has dtype {y.dtype}; a regressor needs numbers, a classifier takes text")
    y = np.ascontiguousarray(y, dtype=np.float64)
    bad = np.isinf(y) if missing else ~np.isfinite(y)
    if bad.any():
        i = int(np.argmax(bad))
        what = "NaN: bag {0} has no label" if np.isnan(y[i]) else "infinite (inf)"
        raise ValueError(f"y[{i}] is {what.format(i)}; leave the bag out, or give it sample_weight 0")
    return y


_TEXT = {"O": "text", "U": "text", "S": "bytes", "M": "dates"}  # other types are numbers, for comparing


def check_classes(y, fitted=None):
    """Refuses labels that are missing, or no classes, or of another type than those of the fit."""
    absent = _missing(y)
    if absent.any():
        i = int(np.argmax(absent))
        raise ValueError(f"y[{i}] is {y[i]!r} (NaN or None): bag {i} has no label; leave it out, or give it "
                         "sample_weight 0")
    if y.dtype.kind == "f" and np.isinf(y).any():
        raise ValueError(f"y[{int(np.argmax(np.isinf(y)))}] is infinite (inf), which is no class")
    if y.dtype.kind == "V" or y.dtype.kind == "O" and not all(isinstance(value, str) for value in y):
        some = next(value for value in y if not isinstance(value, str))
        raise ValueError(f"Unknown label type: y has the label {some!r} of type {type(some).__name__}; classes are all "
                         "texts, all whole numbers or all truth values: list(map(str, y))")
    if y.dtype.kind != "S":  # later versions of scikit-learn refuse bytes
        check_classification_targets(y)
    mine, theirs = (_TEXT.get(array.dtype.kind, "numbers") for array in (y, y if fitted is None else fitted))
    if mine != theirs:
        raise ValueError(f"y has {mine}, such as {y[0]!r}, and the classes of the fit are {theirs}: {fitted}")


def classes(y):
    """(numbers of classes as float64, the classes) of labels of any type."""
    check_classes(y)
    values, codes = np.unique(y, return_inverse=True)
    if len(values) < 2:
        raise ValueError("This estimator needs samples of at least 2 classes in the data, but the data contains only "
                         f"one class: {values[0]!r}")
    return codes.astype(np.float64), values


def known_classes(y, values):
    """Numbers of the classes of labels, NaN where there is none."""
    absent = _missing(y)
    some = y[~absent]
    if values.dtype.kind == some.dtype.kind == "M":  # of other units
        some = some.astype(values.dtype)
    places = {value: i for i, value in enumerate(values.tolist())}  # Python compares without rounding
    codes = np.full(len(y), np.nan)
    try:
        codes[~absent] = [places[label] for label in some.tolist()]
    except (KeyError, TypeError) as problem:  # TypeError: a list, or whatever else has no hash
        raise ValueError(f"y contains previously unseen labels: {problem} is none of the classes {values}, or of "
                         "another type") from None
    return codes


def _missing(y):
    if y.dtype.kind == "O":
        return np.array([value is None for value in y], dtype=bool)
    return y != y if y.dtype.kind in "fmM" else np.zeros(len(y), bool)


# ---- weights and seeds ----------------------------------------------------------------------------

def weights(sample_weight, bags):
    """Weights of bags as float64, or None."""
    if sample_weight is None:
        return None
    if isinstance(sample_weight, abstract.Number):
        sample_weight = np.full(len(bags), float(sample_weight))
    check_bags(bags, sample_weight, "sample_weight")
    sample_weight = exact(sample_weight, "sample_weight")
    if sample_weight.ndim != 1 or sample_weight.dtype.kind not in "fiubO":
        raise ValueError(f"sample_weight has shape {sample_weight.shape} and dtype {sample_weight.dtype}; it is a "
                         "number for each bag. Sample weights must be 1D array or scalar")
    values = bags._per_bag(np.ascontiguousarray(sample_weight, dtype=np.float64), "sample_weight")
    bad = ~((values >= 0) & (values < np.inf))
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(f"sample_weight[{i}] is {values[i]}; weights are finite and not negative")
    with np.errstate(over="ignore"):
        if values.sum() == np.inf:
            raise ValueError("sample_weight sums to more than the largest number; divide all weights by the same one")
    return values


def together(bag_groups, bags):
    """Numbers of the groups of bags (int64), or None."""
    if bag_groups is None:
        return None
    check_bags(bags, bag_groups, "bag_groups")
    values = as_groups(bag_groups, "bag_groups")
    if values.ndim != 1:
        raise ValueError(f"bag_groups has shape {values.shape}; it is one value for each bag: ({len(bags)},)")
    i = first_missing(values)
    if i is not None:
        raise ValueError(f"bag_groups[{i}] is {values[i]!r} (NaN or None); give a bag that belongs to no other a group "
                         "of its own, or leave it out")
    return counted(bags._per_bag(values, "bag_groups"), "bag_groups")[0]


def positive(wanted, classes):
    """The library's setting `positive` for a class: its number, or 'auto'."""
    if wanted is None or isinstance(wanted, str) and wanted == "auto" and "auto" not in classes.tolist():
        return "auto"
    try:
        code = known_classes(as_groups([wanted], "positive"), classes)[0]
    except ValueError:
        code = np.nan
    if not code == code:
        raise ArgumentError(f"positive is {wanted!r}; it can be one of the classes {classes.tolist()}, or None")
    if len(classes) > 2:
        raise ArgumentError(f"positive is {wanted!r}, and there are {len(classes)} classes; it needs two")
    return int(code)


def class_weights(wanted, classes, labels, weights):
    """(the library's setting, weights of bags) for scikit-learn's class_weight."""
    if wanted is None or (isinstance(wanted, str) and wanted == "balanced"):
        return ("none" if wanted is None else "balanced"), weights
    if not isinstance(wanted, dict):
        raise ArgumentError(f"class_weight is {wanted!r}; it can be None, 'balanced' or a dict {{label: weight}}")
    by_class = compute_class_weight(wanted, classes=classes, y=classes[labels.astype(np.int64)])
    bad = ~((by_class > 0) & (by_class < np.inf))
    if bad.any():
        raise ArgumentError(f"class_weight of {classes[bad][0]!r} is {by_class[bad][0]}; weights are positive and "
                            "finite")
    by_bag = by_class[labels.astype(np.int64)]
    return "none", by_bag if weights is None else by_bag * weights


def seed(random_state):
    """A whole number, or None for the library's default."""
    if random_state is None:
        return None
    if isinstance(random_state, abstract.Integral) and not isinstance(random_state, bool):
        if not 0 <= random_state <= 1 << 53:
            raise ArgumentError(f"random_state = {random_state}; it must be from 0 to 2^53")
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(np.iinfo(np.int32).max))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(1 << 53))
    raise ArgumentError(f"random_state is {random_state!r}; it can be None, a whole number, or numpy's RandomState or "
                        "Generator")


# ---- names ----------------------------------------------------------------------------------------

def class_names(values):
    """Texts of classes, for a file; whole numbers without a point, as the command line writes them."""
    array, values, kind = values, values.tolist(), values.dtype.kind
    if kind == "S":
        return [value.decode() for value in values]
    if kind == "M":
        return array.astype(str).tolist()
    if kind == "f":
        return [str(int(value)) if value == int(value) else repr(value) for value in values]
    return [str(value) for value in values]


def from_names(names, kind):
    """Classes from their texts in a file. kind: numpy's letter of their type; None: what the texts look like."""
    if kind is None:
        kind = "i" if all(_WHOLE.fullmatch(name) for name in names) else \
            "f" if all(_NUMBER.fullmatch(name) for name in names) else "U"
    if kind == "b":
        return np.array([name == "True" for name in names])
    if kind in ("i", "u", "f"):
        try:
            return np.array([(float if kind == "f" else int)(name) for name in names],
                            {"i": np.int64, "u": np.uint64, "f": np.float64}[kind])
        except (ValueError, OverflowError):  # the note is wrong
            pass
    if kind == "S":
        return np.array([name.encode() for name in names])
    if kind == "M":
        return np.array(names, dtype=np.datetime64)
    return np.array(names, dtype=object if kind == "O" else None)


def check_features(estimator, bags, fitted_to):
    """Columns of bags against those of the fit: their number and, if there are any, their names."""
    d = bags.tokens.shape[1]
    fitted, asked = estimator.__dict__.get("feature_names_in_"), bags.feature_names
    name = type(estimator).__name__
    if fitted is not None and asked is not None:
        _check_names(list(fitted), list(asked))
    elif asked is not None:
        warnings.warn(f"X has feature names, but {name} was fitted without feature names", stacklevel=4)
    elif fitted is not None:
        warnings.warn(f"X does not have valid feature names, but {name} was fitted with feature names", stacklevel=4)
    if d != fitted_to:
        raise ValueError(f"X has {d} features, but {name} is expecting {fitted_to} features as input.")


def _check_names(fitted, asked):
    if fitted == asked:
        return
    lines = ["The feature names should match those that were passed during fit."]
    for title, some, others in (("Feature names unseen at fit time:", asked, set(fitted)),
                                ("Feature names seen at fit time, yet now missing:", fitted, set(asked))):
        names = [name for name in some if name not in others]
        if names:
            lines += [title, *(f"- {n}" for n in names[:5]), *(["- ..."] if len(names) > 5 else [])]
    if len(lines) == 1:
        lines.append("Feature names must be in the same order as they were in fit.")
    raise ValueError("\n".join(lines) + "\n")
