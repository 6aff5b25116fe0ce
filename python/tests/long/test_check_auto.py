"""scikit-learn's checks on models that are fitted many times over.

At every change the same checks run on all models that auto chooses from (test_check_estimator.py and, in check-all,
all/test_check_defaults.py), and on matern32 and ard with one start (all/test_attention_full.py).
"""

from sklearn.utils.estimator_checks import parametrize_with_checks

import finetti

@parametrize_with_checks([
    finetti.SingleLocationRegressor(model="auto", inner=2), finetti.SingleLocationClassifier(model="auto", inner=2),
    finetti.AttentionRegressor(kernel="matern32", ard=True)])
def test_check(estimator, check):
    check(estimator)
