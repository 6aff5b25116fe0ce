"""scikit-learn's own checks of estimators, on all four bag estimators. None is skipped."""

import pytest

import finetti
from sklearn.utils.estimator_checks import parametrize_with_checks

ESTIMATORS = [finetti.SingleLocationRegressor(), finetti.SingleLocationClassifier(),
              finetti.BagEmbeddingRegressor(), finetti.BagEmbeddingClassifier()]


@parametrize_with_checks(ESTIMATORS)
def test_check(estimator, check):
    check(estimator)
