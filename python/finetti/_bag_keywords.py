"""Keyword arguments of the bag estimators: those of the library's table of settings, and scikit-learn's own."""

from . import _fit
from ._signature import Keyword, parameters

_SEED = Keyword("random_state", None, "int | None", "seed of landmarks, frequencies, starts and folds; None is 1, a "
                "RandomState or Generator is asked for a number", field=_fit.TABLE.fields["seed"])
_CLASS_WEIGHT = Keyword("class_weight", None, "dict | Literal['balanced'] | None", "weights of bags by class: "
                        "'balanced' gives all classes equal sums, a dict has {label: weight}")
_POSITIVE = Keyword("positive", None, "Any", "any: the class that a single token can bring about, one of the labels in "
                    "y; None or 'auto' = what inner folds prefer. With mixture: the class that own of locate is about")
_BAG_COLUMNS = Keyword("bag_columns", "leave out", "Literal['leave out', 'keep']", "columns that are constant within "
                       "every bag, and so say something about bags and not about tokens, such as a patient's age: "
                       "left out with a warning, or used as all others")
_VERBOSE = Keyword("verbose", False, "bool", "show progress (tqdm's bar, if it is installed), or a function "
                   "f(what, done, total)")
_STATISTICS = Keyword("statistics", "embedding", f"Literal{list(_fit.WHOLE)}", "what is taken of a bag: its "
                      "kernel mean embedding with smallest, largest and mean values and its size; its mean; its "
                      "largest values")

RENAMED = {"features": "basis"}  # in version 0.1, and now


def keywords(classes, whole):
    """Keywords of an estimator. classes: of a classifier; whole: of a model of the bag as a whole."""
    without = {"seed", "class_weights", "positive"}
    if whole:
        without |= {"model", "heads", "em_steps", "gate", "assume", "locator"}
    if not classes:
        without.add("assume")  # it is about two classes
    extra = ([_POSITIVE] if classes and not whole else []) + ([_CLASS_WEIGHT] if classes else [])
    rows = parameters(_fit.TABLE, without=without, extra=[*extra, _BAG_COLUMNS, _SEED, _VERBOSE])
    return [_STATISTICS, *rows] if whole else rows
