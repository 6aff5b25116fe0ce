#!/usr/bin/env python3
"""Runs the study `mil` and prints its table for docs/fit.md: model x test, AUC on flipped bags; or that of `evidence`.

    tools/make_mil_table.py                    # build/finetti, a store of its own: about 15 s of a core
    tools/make_mil_table.py --evidence --full  # who finds known responsible tokens: about a minute of a core
    tools/make_mil_table.py --store mil.db     # a store that is kept: runs that are there are not done again
    tools/make_mil_table.py --full             # the study's full size
"""

import argparse
import csv
import io
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TESTS = ("single", "concepts", "frequency")
# The order of the rows; a model is written as on the command line.
ROWS = ("any", "any+rbf", "auto, assume=monotone", "stack, assume=monotone", "max", "softmax+rbf",
        "softmax:linear", "mixture+rbf", "mixture:linear", "erf", "linear", "embedding", "mean", "auto",
        "stack")


def finetti(tool, *words):
    done = subprocess.run([tool, *words], capture_output=True, text=True)
    if done.returncode > 1:  # 1: a claim does not hold, which a table may show
        sys.exit(done.stderr.strip() or done.stdout.strip())
    return done.stdout


def name(run):
    both = run["model"] in ("softmax", "mixture")  # their usual basis
    return (run["model"] + ("+rbf" if run["basis"] == "both" else ":linear" if both else "")
            + (", assume=monotone" if run["assume"] == "monotone" else ""))


def cell(run):
    auc, error = float(run["auc_test"]), float(run["auc_test_error"])
    passed = float(run["passed"]) * int(run["trials"])
    text = f"{auc:.3f} ± {error:.3f}"
    return f"**{text}**" if round(passed) == int(run["trials"]) else text


def found_table(text):
    """Responsible token first (AUC, calibration error), by each score; what a model or a law has not is a dash."""
    runs = list(csv.DictReader(io.StringIO(text)))
    scores = ("probability", "weight", "evidence")
    print("| tokens known by | model | " + " | ".join(scores) + " | true probability |")
    print("|---|---|" + "---:|" * (len(scores) + 1))
    for run in sorted(runs, key=lambda r: ("linear", "sides", "ball", "three").index(r["test"])):
        model = run["model"] + ("+rbf" if run["basis"] == "both" else "")
        cells = []
        for score in (*scores, "best_probability"):
            numbers = [run[f"{score}_{what}"] for what in ("first", "auc", "ece")]
            cells.append(f"{float(numbers[0]):.3f} ({float(numbers[1]):.3f}"
                         + (f"; {float(numbers[2]):.3f})" if numbers[2] else ")") if numbers[0] else "-")
        print(f"| {run['test']} | `{model}` | " + " | ".join(cells) + " |")


def main():
    args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    args.add_argument("--finetti", default=os.path.join(HERE, "build", "finetti"))
    args.add_argument("--store", help="default: a new one, thrown away")
    args.add_argument("--full", action="store_true")
    args.add_argument("--evidence", action="store_true", help="the study `evidence`")
    args = args.parse_args()
    study = "evidence" if args.evidence else "mil"
    with tempfile.TemporaryDirectory() as folder:
        store = args.store or os.path.join(folder, "mil.db")
        finetti(args.finetti, "study", "run", os.path.join(HERE, "studies", f"{study}.yaml"), "--store", store,
                *(["--full"] if args.full else []))
        text = finetti(args.finetti, "study", "export", study, "--store", store, "--out", "-")
    if args.evidence:
        found_table(text)
        return
    runs = {(name(r), r["test"]): r for r in csv.DictReader(io.StringIO(text))}
    rows = [r for r in ROWS if (r, TESTS[0]) in runs]
    rows += sorted({model for model, _ in runs} - set(rows))
    print("| model | " + " | ".join(TESTS) + " | passes |")
    print("|---|" + "---:|" * len(TESTS) + "---|")
    for row in rows:
        cells = [runs[row, test] for test in TESTS]
        good = [t for t, r in zip(TESTS, cells) if float(r["passed"]) == 1]
        print(f"| `{row}` | " + " | ".join(map(cell, cells)) + f" | {', '.join(good) or 'none'} |")


if __name__ == "__main__":
    main()
