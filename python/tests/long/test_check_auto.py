"""scikit-learn's checks on models that are fitted many times over.

At every change the same checks run on all models that auto chooses from (test_check_estimator.py and, in check-all,
all/test_check_defaults.py), and on matern32 and ard with one start (all/test_attention_full.py).
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import finetti

CHECKS = parametrize_with_checks([
    finetti.SingleLocationRegressor(model="auto", inner=2), finetti.SingleLocationClassifier(model="auto", inner=2),
    finetti.AttentionRegressor(kernel="matern32", ard=True)])


def holds(estimator, check):
    """Not for auto: a check that shuffles the bags, for the folds by which it chooses follow their order."""
    zeros = check.func.__name__ == "check_sample_weights_invariance" and check.keywords.get("kind") == "zeros"
    return not (zeros and getattr(estimator, "model", "") == "auto")


@pytest.mark.parametrize(CHECKS.args[0], [row for row in CHECKS.args[1] if holds(*row)], **CHECKS.kwargs)
def test_check(estimator, check):
    check(estimator)
