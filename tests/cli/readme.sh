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

# The same for the guides, whose numbers come from a search: words as they are, numbers nearly. A
# guide's examples are run in its own folder, in order: one may use what another has written. Not under sanitizers,
# which have nothing to say about documents: what the examples call is called by the other scripts too.
guides="attend:0.01:1e-9 fit:0.02:2e-3 encoder:0.3:0.02"
[ "${FINETTI_TEST_SIZE:-usual}" != small ] || guides=
for guide in $guides; do
    mkdir "${guide%%:*}"
    (
        cd "${guide%%:*}"
        "$PYTHON" - "$FINETTI" "$guide" <<'PY'
import os, re, shlex, subprocess, sys

tool, (name, relative, absolute) = sys.argv[1], sys.argv[2].split(":")
text = open(os.path.join(os.environ["SRC"], "docs", name + ".md")).read()
blocks = re.findall(r"```console\n\$ build/finetti ([^\n]*)\n(.*?)```", text, re.S)
assert len(blocks) >= 2, f"docs/{name}.md has no examples"
os.symlink(os.path.join(os.environ["SRC"], "tests"), "tests")

def number(word):
    try:
        return float(word.strip("(),:%;"))
    except ValueError:
        return None

def same(a, b, line):
    x, y = number(a), number(b)
    if line.startswith("search ") and x and y: # how many steps a search takes hangs on the last bits of the machine's BLAS
        return 0.5 < x / y < 2
    return a == b if x is None or y is None else abs(x - y) <= float(relative) * max(abs(x), abs(y)) + float(absolute)

for command, expected in blocks:
    got = subprocess.run([tool] + shlex.split(command), capture_output=True, text=True, check=True).stdout
    for a, b in zip(got.splitlines(), expected.splitlines(), strict=True):
        x, y = re.split(r"[\s,]+", a), re.split(r"[\s,]+", b)
        assert len(x) == len(y) and all(same(*words, b) for words in zip(x, y)), f"finetti {command}\n--- docs\n{b}\n--- now\n{a}"
print(f"{len(blocks)} examples of docs/{name}.md are as printed")
PY
    )
done

# The study that docs/studies.md explains runs, and its claims hold.
"$PYTHON" - "$SRC/docs/studies.md" >tour.yaml <<'PY'
import re, sys

print(re.search(r"```yaml\n(.*?)```", open(sys.argv[1]).read(), re.S).group(1), end="")
PY
"$FINETTI" study run tour.yaml --store tour.db >tour.txt || fail "$(cat tour.txt)"
"$FINETTI" study run tour.yaml --store tour.db --full --dry-run >/dev/null
