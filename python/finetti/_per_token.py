"""A scikit-learn transformer for the tokens of bags."""

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted

from ._bags import Bags
from ._order import check_bags


class PerToken(TransformerMixin, BaseEstimator, auto_wrap_output_keys=None):
    """Applies a transformer of rows to the tokens of bags, so that it can stand before a bag estimator in a Pipeline.

    Parameters
    ----------
    transformer : scikit-learn transformer
        Such as StandardScaler(), PCA(10), SimpleImputer(). It is cloned; fitted to the tokens of all bags, and to the
        labels of their bags if there are any.

    Attributes
    ----------
    transformer_ : the fitted transformer
    n_features_in_, feature_names_in_ : columns of a token; their names, if X was a DataFrame

    Examples
    --------
    >>> import numpy as np, finetti
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> X, y = [np.random.default_rng(i).normal(size=(2 + i % 3, 4)) for i in range(40)], np.arange(40) % 2
    >>> model = make_pipeline(finetti.PerToken(StandardScaler()), finetti.SingleLocationClassifier())
    >>> model.fit(X, y).predict(X).shape
    (40,)
    >>> len(model[-1].locate(model[:-1].transform(X)))  # what a Pipeline itself has no method for
    40
    """

    def __init__(self, transformer):
        self.transformer = transformer

    def fit(self, X, y=None, *, lengths=None, groups=None):
        """Fits the transformer to all tokens."""
        bags = Bags(X, lengths, groups)
        if y is not None:
            check_bags(bags, y, "y")
            y = np.repeat(bags._per_bag(np.asarray(y), "y"), bags.lengths, axis=0)
        self.transformer_ = clone(self.transformer).fit(_table(bags), y)
        self.n_features_in_ = bags.tokens.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if bags.feature_names is not None:
            self.feature_names_in_ = bags.feature_names
        return self

    def fit_transform(self, X, y=None, *, lengths=None, groups=None):
        """Fits the transformer to all tokens; the bags with transformed tokens."""
        bags = Bags(X, lengths, groups)
        return self.fit(bags, y).transform(bags)

    def transform(self, X, *, lengths=None, groups=None):
        """Bags with transformed tokens."""
        check_is_fitted(self)
        bags = Bags(X, lengths, groups)
        return bags.replace(self.transformer_.transform(_table(bags)))

    def get_feature_names_out(self, input_features=None):
        """Names of the transformer's columns."""
        check_is_fitted(self)
        return self.transformer_.get_feature_names_out(input_features)

    def set_output(self, *, transform=None):
        """transform="pandas": the columns keep the names that the transformer gives them (Bags.feature_names)."""
        for transformer in (self.transformer, getattr(self, "transformer_", None)):
            if hasattr(transformer, "set_output"):
                transformer.set_output(transform=transform)
        return self


def _table(bags):
    """The tokens, as a DataFrame if they came as one: a transformer may ask for columns by name."""
    if bags.feature_names is None:
        return bags.tokens
    import pandas
    return pandas.DataFrame(bags.tokens, columns=bags.feature_names, copy=False)
