"""Known answers of tests/test_encoder_probe.c, by scikit-learn.

Features and targets are formulas, so that the test can make them too. Leave-one-out is done by
leaving one out; folds are dealt as src/encoder/probe_logistic.c says."""
import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss


def features(n, p):
    i, j = np.arange(n)[:, None], np.arange(p)[None, :]
    return np.sin(1.3 * i * (1 + 0.37 * j) + 0.7 * j * j) * (1 + j) + 3 * j


def noise(n, k):
    return np.cos(2.7 * np.arange(n) * (k + 1) + k)


def line(name, a):
    print(name + ": " + ", ".join("%.12g" % x for x in np.ravel(a)))


def ridge(n, p, much):
    X = features(n, p)
    Y = np.column_stack([X[:, 0] - 0.5 * X[:, 1] + much * noise(n, 1), 100 + 20 * X[:, 1] + 60 * much * noise(n, 2)])
    X = (X - X.mean(0)) / X.std(0)
    mean, std = Y.mean(0), Y.std(0)
    Y = (Y - mean) / std
    line("ridge %d %d, penalty 0.1, rows 0 and 7" % (n, p), (Ridge(alpha=0.1 * n).fit(X, Y).predict(X) * std + mean)[[0, 7]])

    def left_out(i, penalty):
        # the same penalty on the sum, and the features of all rows
        keep = np.arange(n) != i
        return Y[i] - Ridge(alpha=penalty * n).fit(X[keep], Y[keep]).predict(X[[i]])[0]

    grid = 10.0 ** (-8 + np.arange(23) / 2)
    losses = [sum((left_out(i, a) ** 2).sum() for i in range(n)) for a in grid]
    line("ridge %d %d, chosen" % (n, p), [grid[int(np.argmin(losses))]])


def logistic(n, p):
    X = features(n, p)
    s = X[:, 0] + noise(n, 1) * 1.5
    y = np.where(s < -0.7, 0, np.where(s + noise(n, 3) > 0.8, 2, 1))
    X = (X - X.mean(0)) / X.std(0)

    def fit(rows, penalty):
        # absent classes are no matter here: every fold has all three
        return LogisticRegression(C=1 / (penalty * len(rows)), solver="newton-cg", tol=1e-7, max_iter=200).fit(X[rows], y[rows])

    everything = np.arange(n)
    line("logistic %d %d, counts" % (n, p), np.bincount(y))
    line("logistic %d %d, penalty 0.01, rows 0 and 7" % (n, p), fit(everything, 0.01).predict_proba(X)[[0, 7]])
    fold, nxt = np.zeros(n, int), 0
    for c in range(3):
        mine = np.flatnonzero(y == c)
        fold[mine] = (nxt + np.arange(len(mine))) % 5
        nxt = (nxt + len(mine)) % 5
    grid = 10.0 ** (-np.arange(13) / 2)
    losses = [sum(log_loss(y[fold == f], fit(np.flatnonzero(fold != f), a).predict_proba(X[fold == f]), labels=[0, 1, 2], normalize=False)
                  for f in range(5)) / n for a in grid]
    line("logistic %d %d, left out" % (n, p), losses)
    line("logistic %d %d, chosen" % (n, p), [grid[int(np.argmin(losses))]])


ridge(30, 4, 0.5)
ridge(18, 20, 0.5)
logistic(90, 4)
