"""Known answers of tests/test_train_validate_scores.c, by scikit-learn and scipy.

Labels and predictions are formulas, so that the test can make them too."""
import numpy as np
from scipy.stats import norm
from sklearn import metrics as m

n = 60
i = np.arange(n)
print("two classes")
y = (i * 7 + i * i // 3) % 5 % 2
p = np.round((0.5 + 0.45 * np.sin(1.3 * i) + 0.3 * (y - 0.5)).clip(0, 1) * 40) / 40  # with ties, 0 and 1
P = np.column_stack([1 - p, p])


def ece(P, y, bins=15):
    best, conf = P.argmax(1), P.max(1)
    b = np.minimum((conf * bins).astype(int), bins - 1)
    return sum(abs((best == y)[b == k].sum() - conf[b == k].sum()) for k in range(bins)) / len(y)


def line(*a):
    print(", ".join("%.17g" % x for x in a))


line(m.accuracy_score(y, P.argmax(1)), m.roc_auc_score(y, p), m.log_loss(y, P), m.brier_score_loss(y, p), ece(P, y))
print("three classes")
y = (i * 5 + i // 4) % 3
Z = np.stack([np.cos(0.7 * i + c) + 1.1 * (y == c) for c in range(3)], 1)
Z = np.round(Z * 8) / 8
P = np.exp(Z) / np.exp(Z).sum(1, keepdims=True)
E = np.eye(3)[y]
auc = np.mean([m.roc_auc_score(y == c, P[:, c]) for c in range(3)])
line(m.accuracy_score(y, P.argmax(1)), auc, m.log_loss(y, P), 0.5 * ((P - E) ** 2).sum(1).mean(), ece(P, y))
print("numbers")
f = np.sin(0.37 * i) * 3 + 1
y = f + np.cos(2.1 * i) * 0.8
s = 0.3 + 0.2 * (i % 4)
line(m.mean_squared_error(y, f) ** 0.5, m.r2_score(y, f), m.mean_absolute_error(y, f),
     -norm.logpdf(y, f, s).mean(), (abs(y - f) <= norm.ppf(0.95) * s).mean())
