"""Ctrl-C ends every call that may take long, soon, and the process goes on."""

import os
import signal
import subprocess
import sys

import pytest

# Each would take minutes or for ever. None asks for progress: Ctrl-C has to work without.
CALLS = {
    "risk": "finetti.risk(form='softmax', m=2, lam=1, samples=1 << 40)",
    "bayes_risk": "finetti.bayes_risk(samples=1 << 40)",
    "train": "finetti.train(steps=10**9, runs=8)",
    "fit": """finetti.SingleLocationRegressor(iterations=100000, tolerance=1e-14, restarts=1000).fit(
        noise.standard_normal((3000, 10, 20)), noise.standard_normal(3000))""",
    "fit classes": """finetti.SingleLocationClassifier(model="auto").fit(
        noise.standard_normal((3000, 10, 20)), noise.integers(0, 2, 3000))""",
    "attention": """finetti.AttentionRegressor(restarts=100, iterations=10000).fit(
        noise.standard_normal((1500, 8)), noise.standard_normal(1500))""",
    "context": "finetti.Context(noise.standard_normal((9000, 4)), noise.standard_normal((9000, 1)))",
    "study": "finetti.study('slr_training', full=True)",
}

SCRIPT = """
import os, tempfile
import numpy as np
import finetti
from finetti._core import Watch

noise = np.random.default_rng(1)
os.chdir(tempfile.mkdtemp())
plain, said = Watch.report, []

def report(self, *what):
    if not said:
        said.append(what)
        print("running", flush=True)
    return plain(self, *what)

Watch.report = report
try:
    CALL
except KeyboardInterrupt:
    print("interrupted", finetti.risk(lam=0.1).risk > 0)
"""


@pytest.mark.parametrize("name", CALLS)
def test_ctrl_c(name):
    with subprocess.Popen([sys.executable, "-c", SCRIPT.replace("CALL", CALLS[name])], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ}) as child:
        line = child.stdout.readline()
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=300)
    assert (line, child.returncode, out) == ("running\n", 0, "interrupted True\n"), err
