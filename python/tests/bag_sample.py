"""Bags to fit estimators to, for tests."""

import numpy as np

from finetti import BagEmbeddingClassifier, BagEmbeddingRegressor, SingleLocationClassifier, SingleLocationRegressor

CLASSIFIERS = [SingleLocationClassifier, BagEmbeddingClassifier]
REGRESSORS = [SingleLocationRegressor, BagEmbeddingRegressor]


def problem(n=60, d=4, seed=0, dtype=float):
    """Bags of two to five tokens, of which one (large in column 0) decides a number; and the 3-D array of as many."""
    rng = np.random.default_rng(seed)
    bags = [rng.normal(size=(2 + i % 4, d)).astype(dtype) for i in range(n)]
    for bag in bags:
        bag[rng.integers(len(bag)), 0] += 5
    return bags, np.array([bag[bag[:, 0].argmax(), 1] for bag in bags], float)


def cube(n=50, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 3, 4))
    X[:, 1, 0] += 5
    return X, X[:, 1, 1].copy()


BAGS, Y = problem()
SIGN = (Y > 0).astype(int)
