# Claims can fail: with a fault in what they are about (tests/data/perturb.txt) each of them does.
set -eu
. "$SRC/tests/cli/common.bash"
"$PYTHON" - <<'P'
import json, os, subprocess

finetti, src = os.environ["FINETTI"], os.environ["SRC"]
studies, common = {}, {}
for line in open(f"{src}/tests/data/perturb.txt"):
    if line.strip() and not line.startswith("#"):
        study, claim, *sets = line.split()
        if claim == "-":
            common.setdefault(study, []).extend(sets)
        else:
            studies.setdefault(study, []).append((claim, sets))


def blocks(sets):
    return {one.split(".")[0] for one in sets[1::2]}


def run(study, lines):
    """One run of the study with all faults of the lines: the claims by name."""
    store = f"{study}.db"
    if os.path.exists(store):
        os.remove(store)
    sets = sorted({(a, b) for _, one in lines for a, b in zip(one[::2], one[1::2])})
    done = subprocess.run([finetti, "study", "run", study, "--store", store, "--json", *common.get(study, []),
                           *(word for pair in sets for word in pair)], capture_output=True, text=True)
    assert done.stdout, done.stderr
    return {claim["id"]: claim for claim in json.loads(done.stdout)["claims"]}


tried, wrong = 0, []
for study, lines in studies.items():
    rounds = []
    for line in lines:
        for one in rounds:
            if all(line[1] == other[1] or not blocks(line[1]) & blocks(other[1]) for other in one):
                one.append(line)
                break
        else:
            rounds.append([line])
    for one in rounds:
        claims = run(study, one)
        for id_, sets in one:
            claim = claims[id_]
            tried += 1
            assert claim["kind"] != "check", f"{study} {id_} is a check"
            if claim["verdict"] != "fails":
                wrong.append(f"{study} {id_} {' '.join(sets)}: {claim['verdict']}, {claim['measured']}, expected {claim['expected']}")
assert not wrong, "\n".join(wrong)
assert tried >= 30
print(tried, "claims fail when they should")
P
