"""The command line tool, for tests that compare with it."""

import json
import os
import subprocess

SRC = os.environ.get("SRC", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.environ.get("BUILD", os.path.join(SRC, "build"))
TOOL = os.environ.get("FINETTI", os.path.join(BUILD, "finetti"))


def tool(*words):
    """What `finetti WORDS...` prints, as text."""
    done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def tool_json(command, *names, **settings):
    """What `finetti COMMAND --NAME VALUE ... --json` prints, read."""
    words = [command, *names]
    for name, value in settings.items():
        words += [f"--{name}", value if isinstance(value, str) else repr(value)]
    return json.loads(tool(*words, "--json"))
