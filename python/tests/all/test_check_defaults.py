"""scikit-learn's own checks of estimators with the default settings, and with the models that are no default."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import finetti

MODELS = [finetti.SingleLocationRegressor(model=model) for model in ("mixture", "linear", "mean")] + [
    finetti.SingleLocationClassifier(model=model) for model in ("mixture", "linear", "mean", "any")] + [
    finetti.SingleLocationRegressor(model="auto", inner=2), finetti.SingleLocationClassifier(model="auto", inner=2)] + [
    finetti.BagEmbeddingRegressor(statistics=name) for name in ("embedding", "mean", "max")] + [
    finetti.BagEmbeddingClassifier(statistics=name) for name in ("embedding", "mean", "max")]


@parametrize_with_checks(MODELS)
def test_check(estimator, check):
    zeros = check.func.__name__ == "check_sample_weights_invariance" and check.keywords.get("kind") == "zeros"
    if zeros and getattr(estimator, "model", "") == "auto":
        pytest.skip("the check shuffles the bags, and the folds by which auto chooses follow their order")
    check(estimator)
