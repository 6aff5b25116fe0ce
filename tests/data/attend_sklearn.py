"""finetti attend against scikit-learn, and the stored answers of tests/cli/attend.sh.

With no argument: every comparison. With a folder: writes attend_*.csv there instead (tokens,
queries and scikit-learn's answers on a small synthetic set)."""
import csv, json, os, subprocess, sys, warnings

import numpy as np
from sklearn.datasets import load_diabetes, load_iris
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, DotProduct, Matern, RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge

warnings.filterwarnings("ignore")  # parameters close to a bound: irrelevant columns are


def synthetic(n=120, noise=0.1):
    r = np.random.default_rng(5)
    X = r.uniform(-2, 2, (n, 3))
    return X, 4 + np.sin(2 * X[:, 0]) * X[:, 1] + noise * r.normal(size=n)


def write(path, X, y=None):
    rows = X if y is None else np.column_stack([X, y])
    names = ["x%d" % (j + 1) for j in range(X.shape[1])] + ([] if y is None else ["y"])
    with open(path, "w") as f:
        f.write(",".join(names) + "\n")
        f.writelines(",".join("%.17g" % c for c in row) + "\n" for row in rows)


def kernel(name, scale, prior, level, degree=2, offset=1.0):
    k = {"rbf": lambda: RBF(scale), "matern32": lambda: Matern(scale, nu=1.5),
         "matern52": lambda: Matern(scale, nu=2.5),
         "linear": lambda: ConstantKernel(1 / scale**2) * DotProduct(0),
         "polynomial": lambda: DotProduct(offset**0.5) ** degree}[name]()
    return ConstantKernel(prior) * k + (ConstantKernel(level) if level else ConstantKernel(1e-300))


def attend(*words):
    out = subprocess.run([os.environ["FINETTI"], "attend", "train.csv", "--key", "x*", "--value", "y", "--json", *map(str, words)],
                         capture_output=True, text=True)
    assert out.returncode == 0, (words, out.stderr)
    return json.loads(out.stdout)


def column(answers, what):
    return np.array([a[what]["y"] for a in answers])


def same_kernel(label, X, y, cases):
    train, test = np.arange(len(y)) % 4 != 3, np.arange(len(y)) % 4 == 3
    write("train.csv", X[train], y[train])
    write("test.csv", X[test])
    worst = np.zeros(4)
    for name, scale, prior, noise, level in cases:
        scale = 1.0 if name == "polynomial" else scale
        words = ["--kernel", name, "--scale", scale, "--prior", prior, "--noise", noise, "--query", "test.csv", "--degree", 3]
        got = attend(*words, "--level", level)
        gp = GaussianProcessRegressor(kernel(name, scale, prior, level, 3), alpha=noise, optimizer=None).fit(X[train], y[train])
        mean, sd = gp.predict(X[test], return_std=True)
        evidence = gp.log_marginal_likelihood_value_
        kr = KernelRidge(alpha=noise / prior * (scale**2 if name == "linear" else 1), degree=3, coef0=1, gamma={"rbf": 0.5 / scale**2}.get(name, 1 / scale**2),
                         kernel={"polynomial": "poly"}.get(name, name)) if name in ("rbf", "linear", "polynomial") else None
        ridge = 0.0
        if kr:
            plain = attend(*words, "--level", 0)
            ridge = np.abs(column(plain["answers"], "mean") - kr.fit(X[train], y[train]).predict(X[test])).max() / max(1, np.abs(y).max())
        off = [np.abs(column(got["answers"], "mean") - mean).max() / max(1, np.abs(y).max()),
               np.abs(column(got["answers"], "sd") - sd).max() / max(1, sd.max()),
               abs(got["evidence"] - evidence) / max(1, abs(evidence)), ridge]
        print("%-10s %-10s %-8s mean %.1e  sd %.1e  evidence %.1e  KernelRidge %.1e" % (label, name, got["method"]["name"], *off))
        worst = np.maximum(worst, off)
        assert max(off) < 1e-8, (label, name, off)
    return worst


def tuned(label, X, y, name, ard):
    write("train.csv", X, y)
    level = 100 * float(np.mean(y**2))
    got = attend("--kernel", name, "--tune", "--loo", *(["--ard"] if ard else []))
    assert abs(got["settings"]["level"] - level) < 1e-9 * level
    spread = np.sqrt(X.var(0).sum())
    scale = X.std(0) * X.shape[1]**0.5 if ard else spread
    base = {"rbf": lambda: RBF(scale), "matern52": lambda: Matern(scale, nu=2.5), "matern32": lambda: Matern(scale, nu=1.5),
            "linear": lambda: DotProduct(0, "fixed")}[name]()
    k = ConstantKernel(y.var(), (1e-8, 1e10)) * base + ConstantKernel(level, "fixed") + WhiteKernel(0.1 * y.var(), (1e-8, 1e8))
    gp = GaussianProcessRegressor(k, alpha=0, n_restarts_optimizer=5 if label == "class" else 2, random_state=0).fit(X, y)
    theirs = gp.log_marginal_likelihood_value_
    print("%-10s %-10s %-4s evidence %.6f, scikit-learn %.6f, %d evaluations" %
          (label, name, "ard" if ard else "", got["evidence"], theirs, got["tune"]["evaluations"]))
    assert got["evidence"] >= theirs - 1e-6 * max(1, abs(theirs)), (label, name, ard, got, gp.kernel_)


def store(folder):
    X, y = synthetic(46, 0.2)
    os.chdir(folder)
    write("attend_tokens.csv", X[:40], y[:40])
    write("attend_queries.csv", X[40:], y[40:])
    rows = []
    for name, scale in (("rbf", 1.5), ("matern32", 2.0), ("matern52", 2.0), ("linear", 1.0), ("polynomial", 1.0)):
        for level in (0.0, 50.0):
            gp = GaussianProcessRegressor(kernel(name, scale, 2.0, level), alpha=0.05, optimizer=None).fit(X[:40], y[:40])
            mean, sd = gp.predict(X[40:], return_std=True)
            for i in range(6):
                rows.append([name, scale, 2.0, 0.05, level, i + 1, mean[i], sd[i], gp.log_marginal_likelihood_value_])
    with open("attend_answers.csv", "w") as f:
        w = csv.writer(f, lineterminator="\n")
        w.writerow("kernel,scale,prior,noise,level,query,mean,sd,evidence".split(","))
        w.writerows([r[0]] + ["%.17g" % c for c in r[1:]] for r in rows)
    # What tests/test_train_tune.c expects of fin_tune on attend_tokens.csv, level 50.
    for name, base in (("rbf", RBF), ("matern52", lambda s, b: Matern(s, b, nu=2.5))):
        for ard in (False, True):
            k = ConstantKernel(1.0, (1e-9, 1e9)) * base(np.ones(3) if ard else 1.0, (1e-4, 1e6)) + ConstantKernel(50, "fixed") + WhiteKernel(0.1, (1e-9, 1e3))
            gp = GaussianProcessRegressor(k, alpha=0, n_restarts_optimizer=30, random_state=1).fit(X[:40], y[:40])
            print(name, "ard" if ard else "", "%.10f" % gp.log_marginal_likelihood_value_, gp.kernel_)


if len(sys.argv) > 1:
    store(sys.argv[1])
    sys.exit()
diabetes, iris = load_diabetes(), load_iris()
sets = [("diabetes", diabetes.data, diabetes.target), ("iris", iris.data[:, :3], iris.data[:, 3]),
        ("class", iris.data, iris.target.astype(float)), ("synthetic", *synthetic())]
worst = np.zeros(4)
for label, X, y in sets:
    s, v = float(np.sqrt(X.var(0).sum())), float(y.var())
    cases = [(name, s, v, 0.1 * v, 0.0) for name in ("rbf", "matern32", "matern52", "linear")]
    cases += [("polynomial", 1.0, v / float(np.mean((1 + (X**2).sum(1)) ** 3)), 0.1 * v, 0.0)]
    cases += [("rbf", 0.5 * s, v, 0.5 * v, 10 * v), ("matern52", 2 * s, 3 * v, 0.2 * v, 10 * v)]
    worst = np.maximum(worst, same_kernel(label, X, y, cases))
print("largest differences: mean %.1e, sd %.1e, evidence %.1e, KernelRidge %.1e" % tuple(worst))
for label, X, y in sets:
    if label == "diabetes":  # scikit-learn takes a minute for the searches on all rows
        X, y = X[::3], y[::3]
    for name in ("rbf", "matern32", "matern52", "linear"):
        tuned(label, X, y, name, False)
    if label != "class":
        tuned(label, X, y, "rbf", True)
