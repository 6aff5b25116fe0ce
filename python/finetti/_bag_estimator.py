"""What the bag estimators have in common: looking at what people pass, asking the C library.

Keyword arguments come from the library's table of settings, so that there are the same ones as on the command line; the
same settings and data give the same model, to the last bit.
"""

import warnings
from inspect import signature

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score, r2_score

from . import _bag_columns, _fit, _labels, _permutation
from ._bag_keywords import RENAMED
from ._bags import Bags, even_offsets
from ._core import ArgumentError, UnsupportedError
from ._order import check_bags, title_of
from ._signature import by_name
from ._tokens import all_finite, find_bad

_FLOAT64 = np.dtype(np.float64)


class _BagEstimator(BaseEstimator):
    """What all four have in common."""

    def _more_tags(self):
        return {"X_types": ["2darray", "3darray"], "requires_y": True}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.target_tags.required = True
        return tags

    def __sklearn_is_fitted__(self):
        return "_fit" in self.__dict__

    # ---- fitting ----------------------------------------------------------------------------------

    @by_name("lengths=..., groups=..., sample_weight=..., bag_groups=...")
    def fit(self, X, y, *, lengths=None, groups=None, sample_weight=None, bag_groups=None):
        """Fits the model to bags with one label each.

        Parameters
        ----------
        X : list of 2-D arrays | 2-D array | 3-D array | tuple | Bags
            As finetti.Bags takes it, with `lengths` or `groups`.
        y : array (bags,)
            The labels; with groups, one for each row will do too.
        sample_weight : array (bags,), optional
            Weights of bags in the loss; a bag of weight 0 counts as if it were not there. Columns are standardised over
            all others, each counted once.
        bag_groups : array (bags,), optional
            Which bags belong together, such as the patient of a slide: those with the same value never fall on both
            sides of an inner fold (models that choose or are calibrated). With groups, one for each row will do too.

        Returns
        -------
        self
        """
        names = {"label": title_of(y) or "y", "group": title_of(bag_groups)}
        bags = self._bags(X, lengths, groups)
        if _rows_alone(X, bags, lengths, groups) and len(bags) > 1:
            warnings.warn(f"X is a 2-D array without lengths or groups: each of its {len(bags)} rows is taken as a bag "
                          "of its own (one token): attention has nothing to choose from; give lengths=..., groups=... "
                          "or finetti.Bags(X, groups=...)", stacklevel=3)
        y = _labels.given(y, bags, type(self).__name__, level=5)
        weights = _labels.weights(sample_weight, bags)
        together = _labels.together(bag_groups, bags)
        if weights is not None and not weights.all():
            keep = np.flatnonzero(weights)
            if len(keep) == 0:
                raise ValueError("all weights are 0: there is nothing to learn from")
            bags, y, weights = bags[keep], y[keep], weights[keep]
            together = None if together is None else together[keep]
        settings = self._settings()
        labels, classes = self._code(y)
        if len(bags) == 1:
            raise ValueError("n_samples = 1: nothing can be learnt from a single bag")
        more, weights = self._class_settings(classes, labels, weights)
        count = 0 if classes is None else len(classes)
        used = _bag_columns.used(bags, self.bag_columns, level=3)
        self._fit = _fit.Fit.create({**settings, **more}, count, bags, labels, weights, self.verbose, together, used)
        self._note(bags.feature_names, classes, {**names, "bag": bags._title})
        if self.info_["unfinished"] and _fit.row(settings["model"]).draws:
            warnings.warn("the chains that draw from the posterior disagree: intervals and probabilities may be too "
                          "sure; more bags usually help", ConvergenceWarning, stacklevel=3)
        elif self.info_["unfinished"]:
            warnings.warn(f"{self.info_['unfinished']} of {self.info_['members']} fits ran out of iterations; give "
                          "more (iterations=...) or a larger penalty, though predictions rarely change",
                          ConvergenceWarning, stacklevel=3)
        return self

    def _settings(self):
        """The settings of the library from the parameters."""
        settings = {name: getattr(self, name) for name in _fit.TABLE.fields if hasattr(self, name)}
        settings["seed"] = _labels.seed(self.random_state)
        settings.pop("positive", None)  # a label
        if settings.get("heads") not in (None, 1) and not _fit.row(settings["model"]).heads:
            warnings.warn(f"model={settings['model']!r} has one head; heads={settings['heads']!r} counts for softmax, "
                          "erf and linear (and for these in auto and stack)", stacklevel=4)
        return settings

    def _class_settings(self, classes, labels, weights):
        """(settings that are about classes, weights of bags)"""
        return {}, weights

    def _note(self, feature_names, classes, names):
        """Attributes of what was fitted. names: of label, bag and group in a table."""
        self._names = names
        self.info_ = self._fit.info()
        self.info_["left_out"] = _bag_columns.left_out(self._fit, feature_names)
        self.n_features_in_ = self._fit.width
        self.n_iter_ = self.info_["iterations"]
        if classes is not None:
            self.classes_ = classes
            positive = self.info_["positive"]
            self.positive_ = self.info_["positive"] = None if positive is None else classes[positive]
        else:
            self.noise_ = self.info_["noise"]
        self.__dict__.pop("feature_names_in_", None)
        if feature_names is not None:
            self.feature_names_in_ = feature_names

    # ---- asking -----------------------------------------------------------------------------------

    def _bags(self, X, lengths, groups, fit=None, level=4):
        """What was passed as Bags, looked over; with the columns of `fit`. level: of the caller, for a warning."""
        bags = X if type(X) is Bags and lengths is None and groups is None else Bags(X, lengths, groups)
        if len(bags.offsets) < 2:
            raise ValueError(f"Found array with 0 sample(s) (shape={bags.tokens.shape}) while a minimum of 1 is "
                             f"required by {type(self).__name__}.")
        if fit is not None:
            _labels.check_features(self, bags, fit.width)
            if _rows_alone(X, bags, lengths, groups):
                self._warn_of_rows(len(bags), level)
        problem = find_bad(bags.tokens, bags.offsets)
        if problem:
            raise ValueError(f"Input X contains NaN or infinity: {problem}")
        return bags

    def _warn_of_rows(self, n, level):
        if n > 1 and self.info_["tokens"] > self.info_["bags"]:
            warnings.warn(f"X is a 2-D array without lengths or groups: each of its {n} rows is taken as a bag of its "
                          "own, and the fit was to bags of several; give lengths=... or groups=..., or [X] if it is "
                          "one bag", stacklevel=level)

    def _fitted(self):
        fit = self.__dict__.get("_fit")
        if fit is None:
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate "
                                 "arguments before using this estimator.")
        return fit

    def _answer(self, X, lengths, groups, spread=False, coverage=None):
        """(mean, sd) of the library for bags; with coverage, intervals (bags, 2)."""
        fit = self._fitted()
        if type(X) is np.ndarray and X.ndim == 3 and lengths is None and groups is None and self._plain(X, fit):
            tokens, offsets = X, even_offsets(*X.shape[:2])
        else:
            bags = self._bags(X, lengths, groups, fit, level=5)
            tokens, offsets = fit.take(bags.tokens), bags.offsets
        mean, sd, far = fit.predict(tokens, offsets, spread, coverage)
        if far:
            _bag_columns.warn_of_far(fit, tokens, offsets, self.__dict__.get("feature_names_in_"), level=3)
        return mean, sd

    def _plain(self, X, fit):
        """Is nothing to be said or done about a 3-D array? A short cut: predicting one bag takes microseconds."""
        return (X.dtype is _FLOAT64 and X.flags.c_contiguous and X.shape[2] == fit.d and X.size > 0
                and fit.used is None and "feature_names_in_" not in self.__dict__ and all_finite(X))

    def importances(self):
        """How much columns matter: (of a token's score, of its value), standard deviations due to each column.

        Models that do not see columns (embedding, basis='rbf') raise UnsupportedError; permutation_importance is for
        all. Columns that were left out have 0.

        >>> import numpy as np, finetti
        >>> X = np.random.default_rng(0).normal(size=(100, 4, 3))
        >>> X[:, 0, 2] += 5
        >>> key, value = finetti.SingleLocationRegressor().fit(X, X[:, 0, 1]).importances()
        >>> int(key.argmax()), int(value.argmax())
        (2, 1)
        """
        return self._fitted().importance()

    def directions(self, part=0):
        """Keys (heads, d) and values (heads, outputs, d) in units of the columns, averaged over the ensemble.

        part: which model of a stack. Only for models that see columns (basis='linear', and the columns of 'both').

        >>> import numpy as np, finetti
        >>> X = np.random.default_rng(0).normal(size=(100, 4, 3))
        >>> keys, values = finetti.SingleLocationRegressor(heads=2).fit(X, X[:, 0, 1]).directions()
        >>> keys.shape, values.shape
        ((2, 3), (2, 1, 3))
        """
        return self._fitted().directions(part)

    def permutation_importance(self, X, y, *, n_repeats=5, random_state=None, scoring=None, lengths=None, groups=None):
        """How much worse the score is when a column is shuffled over the tokens of all bags; for every model.

        As sklearn.inspection.permutation_importance, which cannot take bags. random_state: None is 1.

        Returns
        -------
        Bunch with importances (columns, n_repeats), importances_mean and importances_std (columns,)

        >>> import numpy as np, finetti
        >>> X = np.random.default_rng(0).normal(size=(100, 4, 3))
        >>> X[:, 0, 2] += 5
        >>> model = finetti.SingleLocationRegressor().fit(X, X[:, 0, 1])
        >>> [round(float(drop), 1) for drop in model.permutation_importance(X, X[:, 0, 1]).importances_mean]
        [0.0, 1.9, 1.7]
        """
        bags = self._bags(X, lengths, groups, self._fitted())
        y = _labels.given(y, bags, type(self).__name__)
        return _permutation.importance(self, bags, y, n_repeats, random_state, scoring)

    def bag_curve(self, X, y, *, lengths=None, groups=None, bag_groups=None):
        """What more bags would be worth: accuracy or R2 after a quarter, a half, three quarters and all of them.

        X, y and bag_groups are what the model was fitted to. Five folds, each judged by fits to parts of the others;
        at least 40 bags, 10 of every class. The numbers are those of `finetti fit --curve`.

        Returns
        -------
        bags, score, se : arrays (4,)
            Bags in a fit, the score, and its standard error over folds.

        >>> import numpy as np, finetti
        >>> X = np.random.default_rng(0).normal(size=(80, 4, 3))
        >>> model = finetti.SingleLocationRegressor(model="mean").fit(X, X[:, :, 1].mean(axis=1))
        >>> bags, score, se = model.bag_curve(X, X[:, :, 1].mean(axis=1))
        >>> bags, score.round(1)
        (array([16., 32., 48., 64.]), array([1., 1., 1., 1.]))
        """
        fit = self._fitted()
        bags = self._bags(X, lengths, groups, fit)
        y = _labels.given(y, bags, type(self).__name__)
        return fit.curve(fit.take(bags.tokens), bags.offsets, self._known(y), _labels.together(bag_groups, bags),
                         self.verbose)

    def cv_predictions(self, X, y, *, cv=10, n_repeats=1, lengths=None, groups=None, bag_groups=None):
        """What is predicted of every bag by fits that have not seen it: its fold is left out.

        Folds keep shares of classes and never part bags of one group; choices and calibration are made inside of each training
        set. Averaged over n_repeats. The numbers are those of `finetti fit --cv 10x1 --cv-out FILE`. The estimator
        need not be fitted, and stays as it is.

        Returns
        -------
        array (bags,) of numbers, or (bags, classes) of probabilities, in the order of np.unique(y)

        >>> import numpy as np, finetti
        >>> X = np.random.default_rng(0).normal(size=(80, 4, 3))
        >>> y = X[:, :, 1].mean(axis=1)
        >>> left_out = finetti.SingleLocationRegressor(model="mean").cv_predictions(X, y, cv=5)
        >>> left_out.shape, round(float(np.corrcoef(left_out, y)[0, 1]), 2)
        ((80,), 1.0)
        """
        bags = self._bags(X, lengths, groups)
        y = _labels.given(y, bags, type(self).__name__)
        labels, classes = self._code(y)
        more, weights = self._class_settings(classes, labels, None)
        if weights is not None:
            raise UnsupportedError("cv_predictions takes no weights of single classes; class_weight='balanced' or None")
        used = _bag_columns.used(bags, self.bag_columns, level=2)
        return _fit.cross_predictions({**self._settings(), **more}, 0 if classes is None else len(classes), bags, labels,
                                      _labels.together(bag_groups, bags), used, cv, n_repeats, self.verbose)

    def evidence(self, X, return_alone=False, *, lengths=None, groups=None):
        """What every token does to the prediction of its bag, for every model: how much it changes without the token.

        Of classes: the probability of the likeliest class less what it is without the token; of numbers: the prediction
        less that. A token that has no other beside it has 0. Laid out as X is, as the answer of locate. return_alone:
        (evidence, alone), the latter what is predicted of the token as a bag of its own.

        >>> import numpy as np, finetti
        >>> X = np.random.default_rng(0).normal(size=(80, 4, 3))
        >>> y = X[:, :, 1].mean(axis=1)
        >>> evidence = finetti.BagEmbeddingRegressor(statistics="mean").fit(X, y).evidence(X)
        >>> evidence.shape, round(float(np.corrcoef(evidence.ravel(), X[:, :, 1].ravel())[0, 1]), 1)
        ((80, 4), 0.9)
        """
        fit = self._fitted()
        bags = self._bags(X, lengths, groups, fit)
        tokens = fit.take(bags.tokens)
        change, only = fit.evidence(tokens, bags.offsets, return_alone)
        _bag_columns.warn_of_far(fit, tokens, bags.offsets, self.__dict__.get("feature_names_in_"), level=2)
        laid_out = bags.split if isinstance(X, Bags) else bags._as_given
        return (laid_out(change), laid_out(only)) if return_alone else laid_out(change)

    # ---- files ------------------------------------------------------------------------------------

    def save(self, path, notes=None):
        """Writes a model file (.fin), which load_model and the commands finetti predict and locate read.

        notes: {name: text} that are kept in it. Class labels are written as text; their type is noted as 'labels'.
        Columns that were left out are not in it: load_model and the tool want the others.

        >>> import numpy as np, finetti, tempfile
        >>> X = np.random.default_rng(0).normal(size=(100, 4, 3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     finetti.SingleLocationClassifier().fit(X, X[:, 0, 1] > 0).save(folder + "/model.fin")
        ...     finetti.load_model(folder + "/model.fin").classes_
        array([False,  True])
        """
        fit = self._fitted()
        features = getattr(self, "feature_names_in_", None)
        classes = getattr(self, "classes_", None)
        notes = dict(notes or {})
        if classes is not None:
            if "labels" in notes:
                raise ArgumentError("the note 'labels' says of what type the classes are; call yours otherwise")
            notes["labels"] = classes.dtype.kind
        if fit.used is not None:
            features = [str(j) for j in fit.used] if features is None else features[fit.used]
        fit.write(path, {"features": features, "classes": None if classes is None else _labels.class_names(classes),
                         **self._names}, notes)

    def __setstate__(self, state):
        """From a pickle; version 0.1 had fewer parameters, one of another name, and fewer attributes."""
        state = {RENAMED.get(name, name): value for name, value in state.items()}
        if "_label_name" in state:
            state["_names"] = {"label": state.pop("_label_name")}
        for name, parameter in signature(type(self)).parameters.items():
            if parameter.default is not parameter.empty:
                state.setdefault(name, parameter.default)
        super().__setstate__(state)


class _Locating:
    """Models that say which token is responsible."""

    def locate(self, X, y=None, return_own=False, *, lengths=None, groups=None):
        """Probability of every token that it is responsible for its bag's label; they sum to 1 over a bag.

        With y, given the labels too (a label that is NaN or None gives NaN). The answer is laid out as X is: a list of
        arrays (also for Bags), one number for each row, or (bags, tokens) with 0 for padding.

        return_own: (location, own, none), of two classes and for the models any and mixture (info_["locator"] says
        which model locates). own, laid out as the location, is the probability of a token that it is positive by
        itself, and need not sum to anything; none (bags,) that no token is. The positive class is positive_.

        That is under the fitted model: look at its score first. With few bags or no signal it is overconfident.

        >>> import numpy as np, finetti
        >>> X, y = np.random.default_rng(0).normal(size=(50, 4, 3)), np.arange(50) % 2
        >>> X[:, 1] += [9, 0, 0]
        >>> X[:, 1, 1] += 3 * y
        >>> p = finetti.SingleLocationClassifier(model="mixture").fit(X, y).locate(X, y)
        >>> p.shape, bool((p.argmax(axis=1) == 1).all())
        ((50, 4), True)
        """
        fit = self._fitted()
        bags = self._bags(X, lengths, groups, fit)
        labels = None
        if y is not None:
            check_bags(bags, y, "y")
            labels = self._known(bags._per_bag(_labels.column(y), "y"))
        tokens = fit.take(bags.tokens)
        location, own, none = fit.locate(tokens, bags.offsets, labels, return_own)
        _bag_columns.warn_of_far(fit, tokens, bags.offsets, self.__dict__.get("feature_names_in_"), level=2)
        laid_out = bags.split if isinstance(X, Bags) else bags._as_given
        if not return_own:
            return laid_out(location)
        if np.isnan(none).any():
            raise UnsupportedError(f"{fit.info()['locator']} does not say what a token is by itself; any and mixture "
                                   "do, of two classes: model='any'")
        return laid_out(location), laid_out(own), none


class _Regressor(RegressorMixin, _BagEstimator):
    """Labels that are numbers."""

    def _code(self, y):
        return _labels.numbers(y), None

    def _known(self, y):
        return _labels.numbers(y, missing=True)

    def predict(self, X, return_std=False, *, lengths=None, groups=None):
        """Predicted labels (bags,); with return_std also their standard deviations, noise included."""
        mean, sd = self._answer(X, lengths, groups, return_std)
        return (mean, sd) if return_std else mean

    def predict_interval(self, X, coverage=0.9, *, lengths=None, groups=None):
        """Intervals (bags, 2) that hold a new label with probability `coverage`.

        With model='bayes' they lie between quantiles of what its draws say; else the noise is taken to be normal.
        """
        if not (isinstance(coverage, (int, float, np.number)) and 0 < coverage < 1):
            raise ArgumentError(f"coverage is {coverage!r}; it must be between 0 and 1, such as 0.9")
        return self._answer(X, lengths, groups, coverage=float(coverage))[1]

    def score(self, X, y, sample_weight=None, *, lengths=None, groups=None):
        """R2 of predictions."""
        bags = self._bags(X, lengths, groups, self._fitted())
        y = _labels.numbers(_labels.given(y, bags, type(self).__name__))
        return r2_score(y, self.predict(bags), sample_weight=_labels.weights(sample_weight, bags))


class _Classifier(ClassifierMixin, _BagEstimator):
    """Labels that are classes, of any type."""

    def _more_tags(self):
        return {"binary_only": self._binary()}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = not self._binary()
        return tags

    def _binary(self):
        """The model any says yes or no."""
        return getattr(self, "model", None) == "any"

    def _code(self, y):
        return _labels.classes(y)

    def _known(self, y):
        return _labels.known_classes(y, self.classes_)

    def _class_settings(self, classes, labels, weights):
        by_class, weights = _labels.class_weights(self.class_weight, classes, labels, weights)
        positive = _labels.positive(getattr(self, "positive", None), classes)
        return {"class_weights": by_class, "positive": positive}, weights

    def predict(self, X, *, lengths=None, groups=None):
        """The most probable class of every bag."""
        mean, _ = self._answer(X, lengths, groups)
        return self.classes_.take(mean.argmax(axis=1))

    def predict_proba(self, X, return_std=False, *, lengths=None, groups=None):
        """Probabilities (bags, classes); with return_std also their standard deviations over the ensemble."""
        mean, sd = self._answer(X, lengths, groups, return_std)
        return (mean, sd) if return_std else mean

    def predict_log_proba(self, X, *, lengths=None, groups=None):
        """Logarithms of predict_proba."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, lengths=lengths, groups=groups))

    def score(self, X, y, sample_weight=None, *, lengths=None, groups=None):
        """Accuracy of predictions."""
        bags = self._bags(X, lengths, groups, self._fitted())
        y = _labels.given(y, bags, type(self).__name__)
        _labels.check_classes(y, self.classes_)
        return accuracy_score(y, self.predict(bags), sample_weight=_labels.weights(sample_weight, bags))


class _Whole:
    """Models of the bag as a whole."""

    def _settings(self):
        if self.statistics not in _fit.WHOLE:
            *first, last = map(repr, _fit.WHOLE)
            raise ArgumentError(f"statistics is {self.statistics!r}; it can be {', '.join(first)} or {last}")
        return dict(super()._settings(), model=self.statistics, locator="no")


def _rows_alone(X, bags, lengths, groups):
    """Is X a 2-D array of which nobody said which rows make a bag?"""
    return lengths is None and groups is None and bags._like == "rows" and not isinstance(X, (Bags, tuple))
