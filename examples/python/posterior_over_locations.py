"""Attention weights as a posterior: which of eight tokens is responsible, and how far the answer can be trusted.

The bags come from a known law (single-location regression with gamma = 1), under which the probability that a token
is responsible is a softmax of linear scores. A SingleLocationRegressor is fitted to bags and labels; it never sees a location.
Seen in the figure: on the left the first new bag about which even the exact posterior is unsure, before and after its
label is known; on the right, over 4000 new bags, how often tokens that were given a probability p did decide. The fit
to 1000 bags is calibrated as well as the exact posterior; the fit to 100, an average over penalties, is too cautious.

    python3 posterior_over_locations.py [FIGURE.png]
"""

import sys

import finetti
import numpy as np

BLACK, BLUE, ORANGE = "#000000", "#0072b2", "#d55e00"


def calibration(p, hit, bins=10):
    """(mean probability, observed share, standard error of the share) of the tokens in each bin of probability."""
    which = np.minimum((p * bins).astype(int), bins - 1).ravel()
    n = np.bincount(which, minlength=bins)
    share = np.bincount(which, hit.ravel(), bins) / n
    return np.bincount(which, p.ravel(), bins) / n, share, np.sqrt(share * (1 - share) / n)


def draw(path, bag, curves):
    try:
        import matplotlib
    except ImportError:
        print("no figure: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9.2, 4.1), layout="constrained")
    exact, fitted, given, location = bag
    token = np.arange(1, len(exact) + 1)
    left.bar(token, exact, width=0.7, color="0.8", label="exact posterior, given X")
    left.plot(token, fitted, "o", color=BLUE, label="fitted attention, given X")
    left.plot(token, given, "D", markerfacecolor="none", color=ORANGE, label="fitted attention, given X and y")
    left.annotate("responsible", (location + 1, max(exact[location], fitted[location], given[location]) + 0.02),
                  xytext=(0, 16), textcoords="offset points", ha="center", arrowprops=dict(arrowstyle="->"))
    left.set(xlabel="token of the bag", ylabel="probability that it is responsible", ylim=(0, 1.4), xticks=token,
             yticks=np.arange(0, 1.1, 0.2), title="A bag that is hard: its label helps")
    left.legend(loc="upper left", frameon=False, fontsize=8.5)
    right.plot([0, 1], [0, 1], color="0.7", linewidth=1)
    for (name, (p, share, error)), (colour, mark) in zip(curves.items(), ((BLACK, "s"), (BLUE, "o"), (ORANGE, "^"))):
        right.errorbar(p, share, 2 * error, fmt=mark, markerfacecolor="none", color=colour, markersize=6, linewidth=1,
                       label=name)
    right.set(xlabel="probability that was given (bins of 0.1)", ylabel="share of responsible tokens",
              xlim=(0, 1), ylim=(0, 1.02), title="4000 new bags: is it a probability? (± 2 s.e.)")
    right.legend(loc="upper left", frameon=False, fontsize=8.5)
    figure.savefig(path, dpi=100)
    print("figure:", path)


def main():
    task = finetti.tasks.slr(d=10, L=8, mu=2.5, gamma=1, eps=0.3, seed=3)
    X, y, _ = task.draw(1000)
    new, label, location = task.draw(4000, first=10000)  # other samples of the same law
    hit = np.arange(8) == location[:, None]
    models = {"fitted to 1000 bags": finetti.SingleLocationRegressor(model="softmax").fit(X, y),
              "fitted to 100 bags": finetti.SingleLocationRegressor(model="softmax").fit(X[:100], y[:100])}
    found = {"exact posterior": (task.posterior(new), task.predict(new)),
             **{name: (model.locate(new), model.predict(new)) for name, model in models.items()}}
    print("on 4000 new bags       responsible token found     log loss   confidence - share right   R2")
    curves = {}
    for name, (p, predicted) in found.items():
        curves[name] = calibration(p, hit)
        first, sure = p.argmax(axis=1) == location, p.max(axis=1)
        r2 = 1 - np.mean((label - predicted)**2) / label.var()
        print(f"{name:20} {first.mean():18.3f} +- {first.std() / 4000**0.5:.3f} {-np.log(p[hit]).mean():14.3f} "
              f"{sure.mean() - first.mean():+17.3f} {r2:14.3f}")
    model = models["fitted to 1000 bags"]
    given = model.locate(new, label)
    low, high = model.predict_interval(new).T
    print(f"given the label too, the responsible token is found in {(given.argmax(axis=1) == location).mean():.3f}; "
          f"90 % intervals hold {np.mean((low <= label) & (label <= high)):.3f} of the labels")
    i = np.flatnonzero(found["exact posterior"][0].max(axis=1) < 0.5)[0]  # the first bag that is hard
    draw(sys.argv[1] if len(sys.argv) > 1 else "posterior_over_locations.png",
         (found["exact posterior"][0][i], model.locate(new)[i], given[i], location[i]), curves)


if __name__ == "__main__":
    main()
