"""scikit-learn's checks of estimators on every kind of model at its defaults; long/test_check_auto.py has the slow ones."""

from sklearn.utils.estimator_checks import parametrize_with_checks

import finetti

MODELS = [finetti.SingleLocationRegressor(model=model) for model in ("mixture", "linear", "mean")] + [
    finetti.SingleLocationClassifier(model=model) for model in ("mixture", "linear", "mean", "any")] + [
    finetti.BagEmbeddingRegressor(statistics=name) for name in ("embedding", "mean", "max")] + [
    finetti.BagEmbeddingClassifier(statistics=name) for name in ("embedding", "mean", "max")]


@parametrize_with_checks(MODELS)
def test_check(estimator, check):
    check(estimator)
