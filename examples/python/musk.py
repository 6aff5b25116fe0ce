"""Does a molecule smell of musk? 92 molecules, each a bag of 2 to 40 conformers (UCI Musk, version 1).

Attention over conformers and the kernel mean embedding of the bag, beside what one does with scikit-learn: pool the
conformers to their mean or maximum, then any classifier. All see the same folds; +- is over folds, which share training
data: the truth is rather more. Seen in the figure: accuracies on left-out molecules; and for each of the 47 musks, left
out of its fit, the probabilities of its conformers to be responsible, largest first. The best models look at the whole
molecule. Few conformers stand out, and fits to two halves of the data often name different ones: a location is a
hypothesis here, not a finding.

    python3 musk.py [musk1.csv] [FIGURE.png]      (or FINETTI_DATA, a folder with mil/musk1.csv; REPEATS=5 for all folds)
"""

import os
import sys

import finetti
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC


def find(arguments):
    """The data: what was given, else below FINETTI_DATA, else beside the project."""
    source = os.environ.get("SRC", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    folder = os.environ.get("FINETTI_DATA", os.path.join(source, "..", "shared", "data"))
    path = arguments[0] if arguments else os.path.join(folder, "mil", "musk1.csv")
    if not os.path.exists(path):
        print(f"SKIPPED: there is no {path}; pass the path of musk1.csv (columns bag_id, label, f1 ... f166)")
        sys.exit(77)
    return path


def splits(path, y, repeats):
    """[(train, test)]: the folds of folds_musk1.csv beside the data, or drawn."""
    given = os.path.join(os.path.dirname(path), "folds_musk1.csv")
    if not os.path.exists(given):
        return list(RepeatedStratifiedKFold(n_splits=10, n_repeats=repeats, random_state=0).split(y, y))
    number = np.loadtxt(given, delimiter=",", skiprows=1, dtype=int)[:, 1:1 + repeats]
    return [(np.flatnonzero(column != f), np.flatnonzero(column == f)) for column in number.T for f in range(10)]


def models(bags):
    """{name: (model, its X)}"""
    pooled = {"mean": np.array([bag.mean(axis=0) for bag in bags]), "max": np.array([bag.max(axis=0) for bag in bags])}
    baselines = {"logistic regression": LogisticRegression(C=0.1, max_iter=1000), "SVC": SVC(),
                 "random forest": RandomForestClassifier(50, random_state=0)}
    return {"bag embedding": (finetti.BagEmbeddingClassifier(), bags),
            "attention (softmax)": (finetti.SingleLocationClassifier(), bags),
            "attention (mixture)": (finetti.SingleLocationClassifier(model="mixture"), bags),
            **{f"{pool}, {name}": (make_pipeline(StandardScaler(), model), X)
               for name, model in baselines.items() for pool, X in pooled.items()}}


def agreement(bags, y):
    """How often mixtures fitted to two halves of the molecules name the same conformer of a musk; ten times."""
    random, same = np.random.default_rng(0), []
    for _ in range(10):
        half = random.permutation(len(y)) < len(y) // 2
        first, second = (finetti.SingleLocationClassifier(model="mixture").fit(bags[part], y[part]).locate(bags, y)
                         for part in (half, ~half))
        same.append(np.mean([p.argmax() == q.argmax() for p, q, musk in zip(first, second, y) if musk]))
    return np.mean(same), np.std(same)


def draw(path, rows, musks):
    try:
        import matplotlib
    except ImportError:
        print("no figure: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.2, 4), layout="constrained")
    names = sorted(rows, key=rows.get)
    for at, name in enumerate(names):
        ours = "," not in name
        left.errorbar(rows[name][0], at, xerr=rows[name][1], fmt="o" if ours else "s", linewidth=1.2,
                      color="#0072b2" if ours else "0.45", markerfacecolor="#0072b2" if ours else "white")
    left.set(yticks=range(len(names)), yticklabels=names, xlabel="accuracy ± 1 s.e. over folds",
             title="92 molecules, left out in turn")
    ranked = sorted((np.sort(p)[::-1] for p in musks), key=lambda p: -p[0])
    first, second, chance = np.array([(p[0], p[0] + p[1], 1 / len(p)) for p in ranked]).T
    place = np.arange(len(ranked))
    for top, colour, name in ((np.ones(len(place)), "0.9", "the rest"), (second, "#9ecae1", "second"),
                              (first, "#08519c", "first")):
        right.bar(place, top, width=0.8, color=colour, label=name)
    right.plot(place, chance, "_", color="#e69f00", markersize=6, markeredgewidth=2, label="if all were alike")
    right.set(xlabel="47 musks, each left out of the fit of the mixture", xticks=[],
              ylabel="probability of conformers, stacked", xlim=(-0.6, len(place) - 0.4),
              ylim=(0, 1.15), yticks=np.arange(0, 1.1, 0.2), title="Which conformer is responsible?")
    right.legend(ncol=4, columnspacing=1, handlelength=1.2, frameon=False, fontsize=8, loc="upper center")
    figure.savefig(path, dpi=100)
    print("figure:", path)


def main():
    figure = [name for name in sys.argv[1:] if name.endswith(".png")] or ["musk.png"]
    path = find([name for name in sys.argv[1:] if not name.endswith(".png")])
    table = np.loadtxt(path, delimiter=",", skiprows=1)
    bags = finetti.Bags(np.ascontiguousarray(table[:, 2:]), groups=table[:, 0].astype(int))
    y = np.array([table[table[:, 0] == name, 1][0] for name in bags.names], dtype=int)
    parts = splits(path, y, int(os.environ.get("REPEATS", 1)))
    print(f"{bags}, {len(parts)} splits")
    rows, where = {}, {}
    for name, (model, X) in models(bags).items():
        right, area = [], []
        for train, test in parts:
            model.fit(X[train], y[train])
            right.append(np.mean(model.predict(X[test]) == y[test]))
            score = model.predict_proba if hasattr(model, "predict_proba") else model.decision_function
            area.append(roc_auc_score(y[test], score(X[test]).reshape(len(test), -1)[:, -1]))
            if name == "attention (mixture)":
                where.update(zip(test, model.locate(X[test], y[test])))
        rows[name] = np.mean(right), np.std(right, ddof=1) / len(right)**0.5
        print(f"  {name:26} accuracy {rows[name][0]:.3f} +- {rows[name][1]:.3f}   AUC {np.mean(area):.3f}")
    musks = [where[i] for i in np.flatnonzero(y)]
    print(f"the most probable conformer of a musk has {np.mean([p.max() for p in musks]):.2f} on average (chance "
          f"{np.mean([1 / len(p) for p in musks]):.2f})")
    print("fits to two halves name the same one in {:.2f} of the musks (+- {:.2f} from split to split)".format(
        *agreement(bags, y)))
    draw(figure[0], rows, musks)


if __name__ == "__main__":
    main()
