"""What estimators say about columns: those that belong to bags, and those whose numbers are far from all they know."""

import warnings

import numpy as np

from . import _fit
from ._core import ArgumentError

_SHOWN = 6  # names of columns in a message; of those with their ranges, half as many


def used(bags, how, level):
    """The columns to fit to: all (None), or the places of those that are not constant within every bag.

    how: the parameter bag_columns. level: of the caller, for a warning.
    """
    if how not in ("leave out", "keep"):
        raise ArgumentError(f"bag_columns is {how!r}; it can be 'leave out' or 'keep'")
    constant = _fit.level(bags) if how == "leave out" else np.zeros(1, bool)
    if not constant.any():
        return None
    names = _names(bags.feature_names, np.flatnonzero(constant))
    rest = bags.tokens[:, ~constant]
    if (rest == rest[0]).all():  # or there is none
        raise ArgumentError(f"every column of X is constant within every bag ({names}), so that no token differs from "
                            "the others of its bag; bag_columns='keep' uses them all the same")
    one = constant.sum() == 1
    warnings.warn(f"{'a column is' if one else 'columns are'} constant within every bag, and left out: {names}; "
                  f"{'it says' if one else 'they say'} something about bags, not about tokens, and may know the "
                  f"answer. bag_columns='keep' uses {'it' if one else 'them'}", stacklevel=level + 1)
    return np.flatnonzero(~constant)


def left_out(fit, feature_names):
    """Names, or numbers, of the columns that a Fit does not look at."""
    places = [] if fit.used is None else np.setdiff1d(np.arange(fit.width), fit.used).tolist()
    return places if feature_names is None else [feature_names[j] for j in places]


def warn_of_far(fit, tokens, offsets, feature_names, level):
    """Warns of columns that have numbers far outside of the training range. tokens: of the columns in use."""
    count, low, high = fit.outside(tokens, offsets)
    order = np.argsort(-count, kind="stable")
    order = order[count[order] > 0]
    if len(order) == 0:
        return
    places = order if fit.used is None else fit.used[order]
    rows = offsets[-1]
    texts = [f"column {_name(feature_names, j)}: {count[k]} of {rows} tokens, fitted to {low[k]:.4g} to {high[k]:.4g}"
             for k, j in zip(order[:_SHOWN // 2], places)]
    more = len(order) - len(texts)
    warnings.warn("X has numbers far outside of what the model was fitted to; are the units the same? "
                  + "; ".join(texts) + (f"; and {more} more column{'s' * (more > 1)}" if more else ""),
                  stacklevel=level + 1)


def _name(feature_names, j):
    return str(j) if feature_names is None else repr(feature_names[j])


def _names(feature_names, places):
    shown = [_name(feature_names, j) for j in places[:_SHOWN]]
    return ", ".join(shown + ["..."] * (len(places) > _SHOWN))
