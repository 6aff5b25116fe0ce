"""Known answers of tests/test_train_map.c: centres, scales, bounds, bandwidths and inner products of
features, by numpy. Prints C arrays."""
import numpy as np

N, D = 90, 5


def number(t, j):
    u = (t * 7919 + j * 104729 + t * t * 31 + (t + 3) * (j + 1) * 271) % 1009
    return 0.1 if j == 3 else (u * 50 if u * u % 1009 < 40 else u % 7) if j == 4 else u / 64


sizes = [1 + i % 4 for i in range(N)]
ends = np.cumsum(sizes)
X = np.array([[float(number(t, j)) for j in range(D)] for t in range(ends[-1])])
bags = np.split(X, ends[:-1])


def show(name, values):
    print("static const double %s[] = {%s};" % (name, ", ".join("%.17g" % v for v in np.ravel(values))))


def standard(Y, scaling="standard", pieces=None):
    """pieces: rows of each bag; None: every row is a bag. A column is cut off at three deviations, or at
    1.5 times what bags reach on average, whichever is farther."""
    mean, sd = Y.mean(0), Y.std(0)
    keep = sd > 1e-13 * np.abs(mean)
    by = sd if scaling == "standard" else np.full(Y.shape[1], np.sqrt((sd[keep] ** 2).mean()) if scaling == "pooled" else 1)
    reach = np.mean([np.abs(p - mean).clip(max=100 * sd).max(0) for p in (pieces or Y[:, None])], 0)
    bound = np.where(keep, np.inf if scaling == "none" else np.maximum(3 * by, 1.5 * reach), 0)
    scale = np.where(keep, 1 / np.where(keep, by, 1), 0)
    Z = np.clip(Y - mean, -bound, bound) * scale
    c = np.sqrt((Z**2).sum(1).mean())
    return mean, scale / c, bound, Z / c


def gram(Z):
    """Inner products of centred features whose landmarks are all rows, of mean square 1."""
    d2 = ((Z[:, None] - Z[None]) ** 2).sum(2)
    h2 = 0.3 * np.median(d2[np.triu_indices(len(Z), 1)])
    H = np.eye(len(Z)) - 1 / len(Z)
    K = H @ np.exp(-d2 / (2 * h2)) @ H
    return np.sqrt(h2), K / (np.trace(K) / len(Z))


for scaling in ("standard", "pooled", "none"):
    mean, scale, bound, Z = standard(X, scaling, bags)
    show("center", mean)
    show("scale_" + scaling, scale)
    show("bound_" + scaling, [b if np.isfinite(b) else -1 for b in bound])

mean, scale, bound, Z = standard(X, pieces=bags)
show("spread", np.sqrt((Z**2).mean(0)))
h, K = gram(Z)
show("bandwidth", [h])
pairs = [(0, 0), (0, 1), (3, 100), (17, 18), (222, 5), (101, 150)]
show("token_gram", [K[a, b] for a, b in pairs])
S = [np.array([b.mean(0) for b in bags]), np.array([np.r_[b.min(0), b.max(0)] for b in bags])]
pairs = [(0, 0), (0, 1), (3, 80), (17, 18), (89, 5), (44, 61)]
for g in (0, 1):
    h, K = gram(standard(S[g])[3])
    show("bag_bandwidth_%d" % g, [h])
    show("bag_gram_%d" % g, [K[a, b] for a, b in pairs])
L = np.log(np.array(sizes, float))
show("sizes", 0.3 * (L[:4] - L.mean()) / L.std())
show("means", [np.mean(np.split(Z, ends[:-1])[i], 0) for i in (2, 89)])
M = standard(np.array([b.max(0) for b in bags]))[3]
show("largest", [M[2], M[89]])
