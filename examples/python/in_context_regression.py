"""In-context regression: a function is learnt from the tokens of one context, without any training.

Functions on a circle are drawn from a Gaussian process; a token is a point on the circle (key) and a noisy value. Cme
attention with the same kernel is the exact posterior; softmax attention, at the temperature that is best for 60 tokens,
is a smoother without a band. Seen in the figure: one function after 3, 10 and 40 tokens, with the 90 % band of cme for
the function; then the mean squared error of both over 200 functions as tokens come in, beside the least one that is
possible (Bayes). At last an AttentionRegressor is told nothing and finds kernel scale and noise from the 60 tokens.

    python3 in_context_regression.py [FIGURE.png]
"""

import sys

import finetti
import numpy as np

BLUE, ORANGE = "#0072b2", "#d55e00"
LAW = dict(kernel="rbf", scale=0.5, noise=0.05)
TOKENS, SHOWN, FUNCTIONS = 60, (3, 10, 40), 200
STEPS = [*range(0, 10, 2), *range(10, TOKENS + 1, 5)]


def draw(path, sample, bands, curves, exact):
    try:
        import matplotlib
    except ImportError:
        print("no figure: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, 4, figsize=(12.4, 3.4), layout="constrained")
    angle = np.arctan2(sample.queries[0, :, 1], sample.queries[0, :, 0])
    order, where = np.argsort(angle), np.arctan2(sample.keys[0, :, 1], sample.keys[0, :, 0])
    for panel, count, (mean, sd, soft) in zip(axes, SHOWN, bands):
        band = panel.fill_between(angle[order], (mean - 1.645 * sd)[order], (mean + 1.645 * sd)[order], color=BLUE,
                                  alpha=0.2, linewidth=0)
        drawn = ((sample.truth[0, :, 0], ":", "black"), (mean, "-", BLUE), (soft, "--", ORANGE))
        lines = [panel.plot(angle[order], y[order], style, color=colour)[0] for y, style, colour in drawn]
        dots, = panel.plot(where[:count], sample.values[0, :count, 0], "o", color="black", markersize=3.5)
        panel.set(title=f"{count} tokens", xlabel="angle", xticks=[-np.pi, 0, np.pi], ylim=(-2.7, 2.7),
                  xticklabels=["−π", "0", "π"], yticks=range(-2, 3))
    axes[0].set_ylabel("value")
    axes[0].legend([dots, lines[0]], ["tokens", "the function"], fontsize=8, frameon=False, loc="lower left")
    axes[1].legend([(band, lines[1]), lines[2]], ["cme, 90 % band", "softmax"], fontsize=8, frameon=False,
                   loc="lower left")
    last = axes[3]
    last.plot(STEPS, exact, color="0.75", linewidth=5)
    last.plot(curves["cme"], color=BLUE)
    last.plot(curves["softmax"], "--", color=ORANGE)
    last.text(22, curves["softmax"][22] * 1.2, "softmax", color=ORANGE)
    last.text(17, curves["cme"][17] * 0.75, "cme", color=BLUE, ha="right")
    last.text(17, curves["cme"][17] * 0.5, "Bayes", color="0.45", ha="right")
    last.set(title="mean squared error", xlabel="tokens seen", yscale="log", ylim=(0.009, 1.4))
    figure.savefig(path, dpi=90)
    print("figure:", path)


def main():
    family = finetti.families.process(d=2, keys="sphere", seed=8, **LAW)
    temperatures = np.geomspace(0.004, 0.5, 12)
    risks = [family.attention_risk(TOKENS, form="softmax", temperature=t, samples=400).risk for t in temperatures]
    soft = dict(form="softmax", temperature=temperatures[np.argmin(risks)])
    sample = family.draw(FUNCTIONS, L=TOKENS, Q=80)
    curves, inside = {"cme": 0, "softmax": 0}, np.zeros((FUNCTIONS, 3))
    bands = []
    for i, (keys, values, queries, truth) in enumerate(zip(sample.keys, sample.values, sample.queries, sample.truth)):
        for name, settings in (("cme", LAW), ("softmax", soft)):
            error, _ = finetti.Context(keys, values, **settings).prefix(queries, truth)
            curves[name] += error / FUNCTIONS
        for j, count in enumerate(SHOWN):
            context = finetti.Context(keys[:count], values[:count, 0], **LAW)
            mean, variance = context.predict(queries, return_variance=True)
            inside[i, j] = np.mean(np.abs(mean - truth[:, 0]) < 1.645 * np.sqrt(variance))
            if i == 0:
                other = finetti.Context(keys[:count], values[:count, 0], **soft)
                bands.append((mean, np.sqrt(variance), other.predict(queries)))
    exact = family.risk(np.array(STEPS), samples=1000)
    print(f"softmax is best at temperature {soft['temperature']:.3f}; squared error against the function:")
    for count in (2, 10, 40, TOKENS):
        i = STEPS.index(count)
        print(f"  after {count:2} tokens: cme {curves['cme'][count]:.4f}, softmax {curves['softmax'][count]:.4f}, "
              f"Bayes {exact.risk[i]:.4f} +- {exact.error[i]:.4f}")
    for count, shares in zip(SHOWN, inside.T):
        print(f"  90 % bands of cme after {count:2} tokens hold the function at {shares.mean():.3f} of the queries "
              f"+- {shares.std() / len(shares)**0.5:.3f}")
    model = finetti.AttentionRegressor(standardize=False, kernel="rbf").fit(sample.keys[0], sample.values[0, :, 0])
    found = {name: float(f"{model.settings_[name]:.2g}") for name in ("scale", "prior", "noise")}
    print(f"AttentionRegressor found {found} in 60 tokens; the truth is scale 0.5, prior 1, noise 0.05")
    draw(sys.argv[1] if len(sys.argv) > 1 else "in_context_regression.png", sample, bands, curves, exact.risk)


if __name__ == "__main__":
    main()
