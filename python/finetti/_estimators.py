"""Attention fitted to bags of tokens, with scikit-learn's conventions: the four estimators, and models from files."""

import numpy as np

from . import _fit, _labels
from ._bag_estimator import _Classifier, _Locating, _Regressor, _Whole
from ._bag_keywords import RENAMED, keywords
from ._signature import document, initializer

_NUMBERS = "noise_ : standard deviation of a label around its prediction"
_CLASSES = """classes_ : the labels, sorted: the order of predict_proba's columns
    positive_ : the class that one token can bring about (models any and mixture), or None"""
_ATTRIBUTES = """{}
    n_features_in_, feature_names_in_ : columns of a token; their names, if X was a DataFrame
    n_iter_ : iterations of L-BFGS, over the whole ensemble
    info_ : dict, what was fitted: bags, tokens, columns, left_out, members, parameters, loss, parts; inner_loss and
        base_loss (on inner folds: of the model, of the base rate; None where there were none), locator (the model that
        answers locate) and locator_loss ...

    Notes
    -----
    There is no n_jobs: a call uses all processors (finetti.set_threads), and no answer depends on their number."""


class SingleLocationRegressor(_Locating, _Regressor):
    """Numbers for bags of which one token, or a few, are responsible: attention fitted to bags.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np, finetti
    >>> X = np.random.default_rng(0).normal(size=(200, 5, 3))
    >>> X[:, 2, 0] += 6
    >>> y = X[:, 2, 1]
    >>> model = finetti.SingleLocationRegressor().fit(X, y)
    >>> print(round(model.score(X, y), 2))
    1.0
    >>> model.predict_interval(X[:1]).shape
    (1, 2)
    """


class SingleLocationClassifier(_Locating, _Classifier):
    """Classes of bags of which one token, or a few, are responsible: attention fitted to bags.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np, finetti
    >>> X = [np.random.default_rng(i).normal(size=(3 + i % 4, 2)) for i in range(60)]
    >>> y = ["yes" if bag[:, 0].max() > 1 else "no" for bag in X]
    >>> model = finetti.SingleLocationClassifier(model="any", random_state=3).fit(X, y)
    >>> model.classes_, model.predict(X[:2]).shape
    (array(['no', 'yes'], dtype='<U3'), (2,))
    """


class BagEmbeddingRegressor(_Whole, _Regressor):
    """Numbers for bags that are seen as a whole: ridge regression on their kernel mean embedding.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np, finetti
    >>> X = np.random.default_rng(0).normal(size=(80, 6, 2))
    >>> y = X.mean(axis=(1, 2))
    >>> print(round(finetti.BagEmbeddingRegressor(statistics="mean").fit(X, y).score(X, y), 2))
    1.0
    """


class BagEmbeddingClassifier(_Whole, _Classifier):
    """Classes of bags that are seen as a whole: logistic regression on their kernel mean embedding.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}

    Examples
    --------
    >>> import numpy as np, finetti
    >>> X = np.random.default_rng(0).normal(size=(80, 6, 2))
    >>> y = X.std(axis=(1, 2)) > 1
    >>> finetti.BagEmbeddingClassifier().fit(X, y).predict_proba(X).shape
    (80, 2)
    """


for _class in (SingleLocationRegressor, SingleLocationClassifier, BagEmbeddingRegressor, BagEmbeddingClassifier):
    _classes = issubclass(_class, _Classifier)
    _rows = keywords(_classes, issubclass(_class, _Whole))
    _attributes = _ATTRIBUTES.format(_CLASSES if _classes else _NUMBERS)
    _class.__doc__ = (_class.__doc__ or "").replace("{attributes}", _attributes)
    _class.__init__ = initializer(_rows, RENAMED)
    document(_class, _rows)


def load_model(path):
    """The estimator that a model file holds, whether save or the command finetti fit wrote it.

    >>> import finetti
    >>> finetti.load_model("no.fin")
    Traceback (most recent call last):
    finetti._core.FileError: ...
    """
    fit, names, notes = _fit.read(path)
    settings, features, classes = fit.settings(), names.pop("features"), names.pop("classes")
    if classes is not None:
        classes = _labels.from_names(classes, notes.pop("labels", None))
    whole = settings["model"] in _fit.WHOLE and not fit.info()["locates"]
    kinds = (BagEmbeddingRegressor, BagEmbeddingClassifier) if whole else (
        SingleLocationRegressor, SingleLocationClassifier)
    kind = kinds[classes is not None]
    known = kind().get_params(deep=False)
    given = {name: value for name, value in settings.items() if name in known}
    given["random_state"] = settings["seed"]
    if whole:
        given["statistics"] = settings["model"]
    if classes is not None and settings["class_weights"] != "none":
        given["class_weight"] = settings["class_weights"]
    if "positive" in known:
        given["positive"] = None if settings["positive"] == "auto" else classes[settings["positive"]]
    model = kind(**given)
    model._fit = fit
    numbered = all(map(str.isdecimal, features))  # not all of them, if some were left out
    if numbered:
        names["features"] = features
    model._note(None if numbered else np.array(features, dtype=object), classes, names)
    model.info_["notes"] = notes
    return model
