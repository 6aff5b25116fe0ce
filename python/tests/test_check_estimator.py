"""scikit-learn's own checks of estimators, on all four bag estimators: none is skipped, and none is expected to fail.
One of them shuffles the bags, and wants the same answers: inner folds do not follow the order of bags.

(Later versions of scikit-learn have one more check, which is: LATER says why.) Small settings where the default ones
take long; all/test_check_defaults.py has those.
"""

import inspect
from types import SimpleNamespace

import sklearn
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.estimator_checks import parametrize_with_checks

import finetti

SMALL = {"map": "fourier", "landmarks": 20, "inner": 2}

# Checks of later versions of scikit-learn only.
LATER = {"check_sample_weight_equivalence_on_dense_data":
         "columns are standardised over all bags of positive weight, each counted once, so that a weight of 2 is "
         "nearly but not quite the same as a bag that is there twice"}
KNOWS = "expected_failed_checks" in inspect.signature(parametrize_with_checks).parameters


@parametrize_with_checks([finetti.SingleLocationRegressor(), finetti.SingleLocationClassifier(),
                          finetti.BagEmbeddingRegressor(**SMALL), finetti.BagEmbeddingClassifier(**SMALL)],
                         **({"expected_failed_checks": lambda estimator: LATER} if KNOWS else {}))
def test_check(estimator, check):
    check(estimator)


def test_nothing_is_skipped():
    for model in (finetti.SingleLocationRegressor(), finetti.SingleLocationClassifier(),
                  finetti.SingleLocationClassifier(model="auto"), finetti.BagEmbeddingRegressor(),
                  finetti.BagEmbeddingClassifier()):
        tags = model._get_tags() if hasattr(model, "_get_tags") else {}
        assert not tags.get("_xfail_checks") and not tags.get("_skip_test") and not tags.get("no_validation")
        assert not tags.get("poor_score") and not tags.get("non_deterministic"), sklearn.__version__


def test_tags_of_later_versions(monkeypatch):
    """From 1.6 on tags are objects, made by the classes one after the other."""
    def of_classifier(self):
        tags = super(ClassifierMixin, self).__sklearn_tags__()
        tags.classifier_tags = SimpleNamespace(multi_class=True)
        return tags
    monkeypatch.setattr(BaseEstimator, "__sklearn_tags__", lambda self: SimpleNamespace(
        input_tags=SimpleNamespace(three_d_array=False), target_tags=SimpleNamespace(required=False),
        classifier_tags=None), raising=False)
    monkeypatch.setattr(ClassifierMixin, "__sklearn_tags__", of_classifier, raising=False)
    for model, several in ((finetti.SingleLocationClassifier(), True), (finetti.BagEmbeddingClassifier(), True),
                           (finetti.SingleLocationClassifier(model="any"), False)):
        assert model.__sklearn_tags__().classifier_tags.multi_class is several
        assert model._get_tags()["binary_only"] is not several
    tags = finetti.SingleLocationRegressor().__sklearn_tags__()
    assert tags.input_tags.three_d_array and tags.target_tags.required and tags.classifier_tags is None


if hasattr(BaseEstimator, "__sklearn_tags__"):  # the checks above look at them
    del test_tags_of_later_versions
