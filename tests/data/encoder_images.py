"""Masked pretraining on images, judged by labels: few of them, some, and all.

    encoder_images.py FINETTI FILE digits|mnist SUBSETS STEPS [PER_CLASS...]

For every number of labels per class (0: all) and every random subset: a linear probe of the frozen
pretrained encoder, fine-tuning, the same encoder from new weights, and scikit-learn's logistic
regression and RBF SVM on pixels with penalties and width chosen by folds of the same subset. Prints a
table of accuracies on the images held out, with standard errors over subsets, and as last line JSON.
"""
import json, os, subprocess, sys, time
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC

FINETTI, FILE, NAME, SUBSETS, STEPS = sys.argv[1:4] + [int(sys.argv[4]), int(sys.argv[5])]
COUNTS = [int(k) for k in sys.argv[6:]] or [10, 100, 0]
DIGITS = NAME == "digits"
DATA = ["--data", FILE, "--patch", "2" if DIGITS else "4"] + (["--label", "digit"] if DIGITS else [])
FOLDS = 5  # every fifth image is held out, the first one too


def finetti(*words):
    run = subprocess.run([FINETTI, *words], capture_output=True, text=True)
    if run.returncode:
        sys.exit("finetti %s: %s" % (" ".join(words), run.stderr))
    return json.loads(run.stdout)


# ---- which images finetti takes: a shuffle by Philox4x32-10 (Salmon et al. 2011), then the first of
# ---- each class (token_set.c)


def words(seed):
    block = 0
    while True:
        c, k = [block, 0, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]
        for _ in range(10):
            a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [b >> 32 ^ c[1] ^ k[0], b & 0xFFFFFFFF, a >> 32 ^ c[3] ^ k[1], a & 0xFFFFFFFF]
            k = [k[0] + 0x9E3779B9 & 0xFFFFFFFF, k[1] + 0xBB67AE85 & 0xFFFFFFFF]
        yield from c
        block += 1


def below(stream, bound):
    if bound <= 1:
        return 0
    while True:
        product = next(stream) * bound
        if product & 0xFFFFFFFF >= (2**32 - bound) % bound:
            return product >> 32


def subset(y, per_class, seed):
    fold = [i for i in range(len(y)) if i % FOLDS]
    if per_class == 0:
        return np.array(fold)
    order, stream = list(range(len(fold))), words(seed)
    for i in range(len(fold) - 1, 0, -1):
        j = below(stream, i + 1)
        order[i], order[j] = order[j], order[i]
    left, chosen = {}, []
    for i in order:
        c = y[fold[i]]
        left[c] = left.get(c, per_class) - 1
        if left[c] >= 0:
            chosen.append(fold[i])
    return np.array(sorted(chosen))


# ---- the five ways


def probe(k, seed, *more):
    out = finetti("probe", "enc.fin", *DATA, "--per-class", str(k), "--seed", str(seed), "--train",
                  "1000000", "--test", "1000000", "--json", *more)
    return out["layers"][0]["accuracy"]


def learn(k, seed, *more):
    out = finetti("finetune", "enc.fin", *DATA, "--per-class", str(k), "--seed", str(seed),
                  "--batch", "32", "--beta2", "0.98", "--decay", "0.05", "--evaluate-every", "100000",
                  "--json", *more)
    return out["test"]["accuracy"]


def peers(k, seed, X, y, test):
    rows = subset(y, k, seed)
    folds = StratifiedKFold(3 if len(rows) > 500 else 5, shuffle=True, random_state=0)
    spread = X[rows].var() * X.shape[1]
    ways = {
        "logistic": (LogisticRegression(max_iter=300), {"C": [0.003, 0.03, 0.3, 3]}),
        "SVM": (SVC(), {"C": [1, 10], "gamma": [g / spread for g in (0.5, 1, 2, 4)]}),
    }
    out = {}
    for name, (model, grid) in ways.items():
        if len(rows) > 2000:  # a look at a part is enough to choose by
            part = np.random.RandomState(0).permutation(rows)[:1500]
            best = GridSearchCV(model, grid, cv=folds).fit(X[part], y[part]).best_params_
            fit = model.set_params(**best).fit(X[rows], y[rows])
        else:
            fit = GridSearchCV(model, grid, cv=folds).fit(X[rows], y[rows])
        out[name] = fit.score(X[test], y[test])
    return out


def main():
    if DIGITS:
        table = np.loadtxt(FILE, delimiter=",", skiprows=1)
        X, y = table[:, :-1] / 16, table[:, -1].astype(int)
    else:
        archive = np.load(FILE)
        X, y = archive["images"].reshape(len(archive["labels"]), -1) / 255, archive["labels"].astype(int)
    test = np.arange(0, len(y), FOLDS)
    start = time.time()
    if os.path.exists("enc.fin"):
        print("enc.fin is there and used")
    else:
        finetti("pretrain", *DATA, "--readout", "pooled", "--share", "0.5" if DIGITS else "0.75",
                "--batch", "64", "--rate", "4e-3", "--beta2", "0.98", "--decay", "0.05", "--steps",
                str(STEPS), "--evaluate-every", str(STEPS), "--json", "--out", "enc.fin")
    print("%s: pretrained in %.0f s of wall time" % (NAME, time.time() - start), flush=True)
    results = {}
    for k in COUNTS:
        few = 0 < k <= 20
        seeds = range(1, (SUBSETS if few else max(2, SUBSETS // 2) if k else 1) + 1)
        steps = ("200" if few else "600") if DIGITS else ("150" if few else "1000")
        long = ("500" if few else "1000") if DIGITS else ("500" if few else "1500")
        ways = {
            "probe": lambda s: probe(k, s),
            "probe, all layers": lambda s: probe(k, s, "--layer", "joint", "--pool", "both"),
            "fine-tuned": lambda s: learn(k, s, "--rate", "1e-3", "--keep", "0.5", "--steps", steps),
            "from scratch": lambda s: learn(k, s, "--train", "scratch", "--rate", "3e-3", "--keep",
                                            "0.3", "--steps", long),
        }
        for way, run in ways.items():
            results.setdefault(way, {})[k] = [run(s) for s in seeds]
        for s in seeds:
            for way, score in peers(k, s, X, y, test).items():
                results.setdefault(way, {}).setdefault(k, []).append(score)
        print("labels per class %s, %d subsets, after %.0f s" % (k or "all", len(seeds), time.time() - start))
        for way in results:
            a = np.array(results[way][k])
            se = a.std(ddof=1) / len(a) ** 0.5 if len(a) > 1 else (a[0] * (1 - a[0]) / len(test)) ** 0.5
            print("  %-20s %.4f +- %.4f" % (way, a.mean(), se), flush=True)
    print(json.dumps({"name": NAME, "test": len(test), "seconds": time.time() - start,
                      "accuracy": {w: {str(k): a for k, a in r.items()} for w, r in results.items()}}))


main()
