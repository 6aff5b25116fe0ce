#!/usr/bin/env bash
# What the README shows is what the tool prints: every console block is run and compared.
. "$(dirname "$0")/common.bash"

"$PYTHON" - "$SRC/README.md" "$FINETTI" <<'PY'
import os, re, shlex, subprocess, sys

text, tool = open(sys.argv[1]).read(), sys.argv[2]
blocks = re.findall(r"```console\n\$ build/finetti ([^\n]*)\n(.*?)```", text, re.S)
assert len(blocks) >= 2, "the README has no examples"
os.symlink(os.path.join(os.path.dirname(sys.argv[1]), "examples"), "examples")
for command, expected in blocks:
    got = subprocess.run([tool] + shlex.split(command), capture_output=True, text=True, check=True).stdout
    assert got == expected, f"finetti {command}\n--- README\n{expected}\n--- now\n{got}"
print(f"{len(blocks)} examples of the README are as printed")
PY

# The study that docs/studies.md explains runs, and its claims hold.
"$PYTHON" - "$SRC/docs/studies.md" >tour.yaml <<'PY'
import re, sys

print(re.search(r"```yaml\n(.*?)```", open(sys.argv[1]).read(), re.S).group(1), end="")
PY
"$FINETTI" study run tour.yaml --store tour.db >tour.txt || fail "$(cat tour.txt)"
"$FINETTI" study run tour.yaml --store tour.db --full --dry-run >/dev/null
