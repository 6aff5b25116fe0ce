"""The command line tool, for tests that compare with it."""

import json
import os
import subprocess

import pytest


def tool(*words):
    """What `finetti WORDS...` prints, as text. FINETTI is the path of the tool; the test is skipped without it."""
    path = os.environ.get("FINETTI")
    if not path:
        pytest.skip("FINETTI, the path of the command line tool, is not set")
    done = subprocess.run([path, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tool_json(command, *names, **settings):
    """What `finetti COMMAND --NAME VALUE ... --json` prints, read."""
    words = [command, *names]
    for name, value in settings.items():
        words += [f"--{name}", value if isinstance(value, str) else repr(value)]
    return json.loads(tool(*words, "--json"))
