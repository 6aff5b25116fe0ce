#!/usr/bin/env bash
# What README and guides show is what the tool prints: every console block is run and compared. Their links lead somewhere.
. "$(dirname "$0")/common.bash"

"$PYTHON" - "$SRC" <<'PY'
import glob, os, re, sys

source = sys.argv[1]
def read(path):
    return open(os.path.join(source, path), encoding="utf-8").read()

def prose(text): # without code, in blocks or in a line
    return re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S))

def anchors(text): # those that a page of Markdown gives to its headings
    heads = re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}

pages = ["README.md", "CONTRIBUTING.md", "python/README.md"] + sorted(os.path.relpath(page, source) for page in glob.glob(os.path.join(source, "docs", "*.md")))
links = [(page, link) for page in pages for link in re.findall(r"\]\(([^)\s]+)\)|<img src=\"([^\"]+)\"", prose(read(page)))]
outside = [(page, a or b) for page, (a, b) in links if re.match(r"[a-z]+:", a or b)]
odd = [f"{page}: {link}" for page, link in outside if not re.fullmatch(r"https?://[\w-]+(\.[\w-]+)+(:\d+)?(/[^\s]*)?|mailto:[^@\s]+@[^@\s]+", link)]
assert not odd, "misshapen addresses:\n" + "\n".join(odd)
links = [(page, a or b) for page, (a, b) in links if (page, a or b) not in outside]
broken = []
for page, link in links:
    path, _, anchor = link.partition("#")
    target = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
    there = not target.startswith("..") and os.path.exists(os.path.join(source, target))
    if not there or (anchor and anchor not in anchors(read(target))):
        broken.append(f"{page}: {link}")
assert len(links) >= 50, "no links were found"
assert not broken, "links that lead nowhere:\n" + "\n".join(broken)

# The README's table of papers counts the verdicts of docs/papers.md.
papers, readme = read("docs/papers.md"), read("README.md")
rows = [re.findall(r"`(\w+)`, [^|]*\|.*?\| (\**)(holds|fails|undecided)", part, re.M) for part in papers.split("\n## ")[1:]]
counts = [f"`{study}` ({sum(s == study and v == 'holds' for s, _, v in part)} of {sum(s == study for s, _, v in part)})"
          for part in rows for study in {study for study, _, _ in part}]
told = re.findall(r"`\w+` \(\d+ of \d+\)", readme)
assert sorted(counts) == sorted(told), f"verdicts\n--- docs/papers.md\n{sorted(counts)}\n--- README\n{sorted(told)}"
verdicts = [v for part in rows for _, _, v in part]
total = f"{verdicts.count('holds')} of {len(verdicts)} hold, {verdicts.count('fails')} fails and {verdicts.count('undecided')} are undecided"
assert total in readme, f"the README does not say: {total}"
assert len(readme.splitlines()) <= 150, "the README is longer than 150 lines"
print(f"{len(links)} links lead somewhere")
PY

# A page, and by how much numbers may differ, relative and absolute. Words are as they are; 0 is the same text. What the README's
# fit, locate and attend print comes from a search, too: 2 %. OpenBLAS' kernels for Haswell and SkylakeX let the search of docs/fit.md stop at
# weights that are 0.007 apart. Each page's examples are run in a folder of its own, in order: one may use
# what another has written. The guides are not run under sanitizers, which have nothing to say about documents: what they
# call is called by the other scripts too.
pages="README.md:1e-9:1e-12 docs/tour.md:0:0 docs/attend.md:0.01:1e-9 docs/fit.md:0.02:1e-2 docs/encoder.md:0.3:0.02"
[ "${FINETTI_TEST_SIZE:-usual}" != small ] || pages="README.md:1e-9:1e-12 docs/tour.md:0:0"
for page in $pages; do
    mkdir "$(basename "${page%%:*}")"
    (
        cd "$(basename "${page%%:*}")"
        "$PYTHON" - "$FINETTI" "$page" <<'PY'
import os, re, shlex, subprocess, sys

tool, (name, relative, absolute) = sys.argv[1], sys.argv[2].split(":")
text = open(os.path.join(os.environ["SRC"], name)).read()
blocks = re.findall(r"```console\n\$ (build/finetti [^\n]*)\n(.*?)```", text, re.S)
assert len(blocks) >= 2, f"{name} has no examples"
for folder in ("tests", "examples"):
    os.symlink(os.path.join(os.environ["SRC"], folder), folder)

def number(word):
    try:
        return float(word.strip("(),:%;"))
    except ValueError:
        return None

def same(a, b, line, tolerance):
    x, y = number(a), number(b)
    if line.startswith("search ") and x and y: # how many steps a search takes hangs on the last bits of the machine's BLAS
        return 0.5 < x / y < 2
    if re.match(r" +\d\.\d-\d\.\d ", line) and x and y: # and so do bags that are at the edge of their tenth: two may move
        count = number(line.split()[1])
        return abs(x - y) <= (2 if y == count else 2 / count)
    return a == b if x is None or y is None else abs(x - y) <= tolerance[0] * max(abs(x), abs(y)) + tolerance[1]

for command, expected in blocks:
    line = command.replace("build/finetti", shlex.quote(tool))
    got = subprocess.run(["bash", "-o", "pipefail", "-c", line], stdout=subprocess.PIPE, text=True, check=True).stdout
    if float(relative) == 0:
        assert got == expected, f"{command}\n--- {name}\n{expected}\n--- now\n{got}"
        continue
    search = name == "README.md" and re.match(r"build/finetti (fit|locate|attend) ", command)
    tolerance = (0.02, 2e-3) if search else (float(relative), float(absolute))
    for a, b in zip(got.splitlines(), expected.splitlines(), strict=True):
        x, y = re.split(r"[\s,]+", a), re.split(r"[\s,]+", b)
        assert len(x) == len(y) and all(same(*words, b, tolerance) for words in zip(x, y)), f"{command}\n--- {name}\n{b}\n--- now\n{a}"
print(f"{len(blocks)} examples of {name} are as printed")
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
