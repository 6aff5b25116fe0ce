"""The phase portrait of single-location regression: where k and v go when they follow the exact gradient of the risk.

On the manifold M (theta = eta = rho = 0) the state is two numbers, kappa = k.k* and nu = v.v*. Seen in the figure: the
risk (shades), the direction of steepest descent (arrows), forty runs from all over the square (lines) and the five
stationary points. Two are minima, (1, 1) and (-1, -1), which are the same predictor; at the other three, saddles, the
gradient vanishes too. A random start in R^400 is close to the saddle in the middle (the dots around it).

    python3 phase_portrait.py [FIGURE.png]
"""

import sys

import finetti
import numpy as np

PROBLEM = dict(d=400, L=10, lam=0.1)


def draw(path, field, paths, random, points):
    try:
        import matplotlib
    except ImportError:
        print("no figure: matplotlib is not installed")
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(6.4, 5.4), layout="constrained")
    kappa, nu, risk, right, up = field
    shades = axes.imshow(np.log10(risk), extent=(-1, 1, -1, 1), origin="lower", interpolation="bicubic",
                         cmap=pyplot.get_cmap("GnBu", 20), vmin=-1, vmax=1)
    bar = figure.colorbar(shades, boundaries=np.arange(-1, 0.45, 0.1), ticks=np.log10([0.2, 0.5, 1, 2]), shrink=0.85,
                          label="risk (log scale)")
    bar.ax.set_yticklabels(["0.2", "0.5", "1", "2"])
    some = slice(2, None, 4)
    axes.quiver(kappa[some, some], nu[some, some], right[some, some], up[some, some], color="0.45", width=0.0022,
                scale=36, headwidth=5)
    axes.plot(paths.kappa.T, paths.nu.T, color="#08306b", linewidth=0.9)
    axes.plot(paths.kappa[:, 0], paths.nu[:, 0], ".", color="#08306b", markersize=4)
    axes.plot(*random, ".", color="#d55e00", markersize=2.5)
    stable = points.kind == "minimum"
    axes.plot(points.kappa[stable], points.nu[stable], "o", color="#08306b", markersize=10, zorder=5)
    axes.plot(points.kappa[~stable], points.nu[~stable], "X", color="black", markersize=9, markeredgecolor="white",
              zorder=5)
    box = dict(boxstyle="round,pad=0.2", facecolor="white", edgecolor="none", alpha=0.85)
    for x, y, kind, value in zip(points.kappa, points.nu, points.kind, points.risk):
        axes.annotate(f"{kind}\nrisk {value:.2f}", (x, y), xytext=(x * 0.94 or 0.14, y * 0.9 or -0.13), fontsize=8.5,
                      ha="right" if x > 0 else "left", va="center", zorder=6, bbox=box)
    axes.annotate("random starts in R$^{400}$", (-0.06, 0.07), xytext=(-0.22, 0.22), ha="right", fontsize=8.5,
                  color="#a04000", bbox=box, arrowprops=dict(arrowstyle="-", color="#a04000"), zorder=6)
    axes.set(xlabel="κ = k·k*", ylabel="ν = v·v*", xlim=(-1.05, 1.05), ylim=(-1.05, 1.05), aspect="equal",
             xticks=np.arange(-1, 1.1, 0.5), yticks=np.arange(-1, 1.1, 0.5),
             title="Gradient descent on the exact risk, d = 400, L = 10, λ = 0.1")
    figure.savefig(path, dpi=100)
    print("figure:", path)


def main():
    # The field: minus the gradient of the risk on the two spheres, from one call for the whole grid.
    kappa, nu = np.meshgrid(np.linspace(-1, 1, 81), np.linspace(-1, 1, 81))
    at = finetti.risk(kappa=kappa, nu=nu, **PROBLEM)
    right, up = -(1 - kappa**2) * at.gradient["kappa"], -(1 - nu**2) * at.gradient["nu"]
    length = np.maximum(np.hypot(right, up), 1e-12)
    print(f"risk at {at.risk.size} points ({at.method}): {at.risk.min():.4f} to {at.risk.max():.4f}")

    points = finetti.stationary_points(**PROBLEM)
    for x, y, risk, kind, down in zip(points.kappa, points.nu, points.risk, points.kind, points.negative):
        print(f"  {kind:8} at kappa = {x:4.1f}, nu = {y:4.1f}: risk {risk:.4f}, falls in {down} directions")

    # Starts all over the square (M has room for them in R^400), then starts as one would draw them.
    grid = np.random.default_rng(5).uniform(-0.97, 0.97, size=(2, 40))
    paths = finetti.train(runs=40, start={"kappa": grid[0], "nu": grid[1]}, steps=20000, log_decade=40, **PROBLEM)
    random = finetti.train(runs=1000, init="manifold", steps=20000, log_every=100, **PROBLEM)
    ends = random.final["kappa"]
    print(f"{paths!r} from all over the square")
    print(f"{random!r} from random vectors, {(ends > 0).sum()} towards (1, 1), the others towards (-1, -1)")
    print(f"  |kappa| and |nu| above 0.9 after {np.median(random.converged_at):.0f} steps (median), "
          f"{random.converged_at.max():.0f} at most; mean risk after 20000: {random.final['risk'].mean():.4f}")
    first = random.kappa[:200, 0], random.nu[:200, 0]
    draw(sys.argv[1] if len(sys.argv) > 1 else "phase_portrait.png", (kappa, nu, at.risk, right / length, up / length),
         paths, first, points)


if __name__ == "__main__":
    main()
