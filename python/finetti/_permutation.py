"""How much worse answers become when a column is shuffled: scikit-learn's permutation importance, for bags."""

import operator

import numpy as np
from sklearn.metrics import check_scoring
from sklearn.utils import Bunch, check_random_state

from ._core import ArgumentError


def importance(estimator, bags, y, n_repeats, random_state, scoring):
    """The Bunch of sklearn.inspection.permutation_importance; a column is shuffled over the tokens of all bags."""
    try:
        n_repeats = operator.index(n_repeats)
    except TypeError:
        n_repeats = 0
    if n_repeats < 1:
        raise ArgumentError("n_repeats must be a whole number from 1 on")
    if isinstance(random_state, np.random.Generator):
        random_state = int(random_state.integers(1 << 31))
    seed = check_random_state(1 if random_state is None else random_state).randint(np.iinfo(np.int32).max + 1)
    scorer = check_scoring(estimator, scoring=scoring)
    base = scorer(estimator, bags, y)
    tokens = bags.tokens.copy()
    shuffled = bags._with(tokens, bags.feature_names)
    drops = np.empty((tokens.shape[1], n_repeats))
    for j in range(tokens.shape[1]):
        random, order = np.random.RandomState(seed), np.arange(len(tokens))  # as scikit-learn has it
        for k in range(n_repeats):
            random.shuffle(order)
            tokens[:, j] = tokens[order, j]
            drops[j, k] = base - scorer(estimator, shuffled, y)
        tokens[:, j] = bags.tokens[:, j]
    return Bunch(importances_mean=drops.mean(axis=1), importances_std=drops.std(axis=1), importances=drops)
