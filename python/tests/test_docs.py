"""The Python code of README.md, docs/tour.md, docs/python.md, docs/coming-from.md and python/README.md runs and prints what stands below it.

A block ```python is run in the namespace of those before it. What it prints is the block ```text that follows at once;
"..." stands for anything. A block that prints nothing has none.
"""

import contextlib
import doctest
import io
import os
import re

import pytest

SRC = os.environ.get("SRC", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n```text\n(.*?)^```$)?", re.M | re.S)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(text):
    """[(number of lines before the code, code, what it prints)]"""
    return [(text[:found.start(1)].count("\n"), found[1], found[2] or "") for found in BLOCK.finditer(text)]


def run(name, text):
    """Runs all blocks; returns [(line, what was expected, what was printed)] for those that differ."""
    names, wrong = {"__name__": "__main__"}, []
    for line, code, expected in blocks(text):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + code, name, "exec"), names)
        if not doctest.OutputChecker().check_output(expected, printed.getvalue(), FLAGS):
            wrong.append((line + 1, expected, printed.getvalue()))
    return wrong


@pytest.mark.parametrize("name, least", [("README.md", 1), ("docs/tour.md", 1), ("docs/python.md", 20), ("docs/coming-from.md", 4), ("python/README.md", 3)])
def test_code_runs_and_prints_what_is_shown(name, least, tmp_path, monkeypatch):
    with open(os.path.join(SRC, name), encoding="utf-8") as file:
        text = file.read()
    assert text.count("```python") == len(blocks(text)) >= least
    monkeypatch.chdir(tmp_path)
    wrong = run(name, text)
    assert not wrong, "".join(f"\n{name}:{line}: expected\n{want}printed\n{got}" for line, want, got in wrong)


def test_a_wrong_output_is_seen():
    text = "```python\nx = 1\n```\n\n```python\nprint(x + 1)\n```\n```text\n3\n```\n"
    assert run("text", text) == [(6, "3\n", "2\n")]
    assert run("text", text.replace("3", "2")) == [] and run("text", text.replace("3", "...")) == []
    assert run("text", text.replace("```text\n3\n```\n", "")) == [(6, "", "2\n")]
