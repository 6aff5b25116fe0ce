# Every numeric setting and every choice of every command, as a person gives them. The list comes from the tool, so a new
# setting is tested without a new line here.
#
# Here: each option of each command refuses a value; what is just past both ends of each different range is refused; and
# the commands that compute are run at both ends of every range and with every choice: they answer or say in one line why
# not, and stop when told to. What else a value can be (nan, inf, empty, text, 1x, too large for a number, a fraction for a
# whole number, at and past the limits to the last bit) is tried on every table of the library, in the process, by
# tests/test_command_limits.c, with the parser that the tool uses (fin_settings_parse), and on the parser by
# tests/test_base_settings.c. With sanitizers (FINETTI_TEST_SIZE=small) every fifth option and end is tried.
. "$SRC/tests/cli/common.bash"

cat >limits.py <<'P'
import math, os, subprocess
from stop import stop

tool = os.environ["FINETTI"]
every = 5 if os.environ.get("FINETTI_TEST_SIZE") == "small" else 1

def complete(*words):
    out = subprocess.run([tool, "complete", *words], capture_output=True, check=True, text=True).stdout
    return [line.split("\t") for line in out.splitlines()]

def settings(*words):
    """(option, kind, lowest, highest, choices) of the rows of tables. Of two of a name the first is meant."""
    found = set()
    for name, kind, _, low, high, choices in complete(*words):
        if kind in ("integer", "number", "choice") and name not in found:
            found.add(name)
            yield name, kind, float(low), float(high), choices.split("|")

def run(*words, after=0.1):
    """Exit code and message. What takes longer than these seconds of the processor must stop when told to."""
    code, out, err, stopped = stop(words, after=after)
    err = err.decode()
    # -2: the signal came before or after the part that listens to it
    assert code in ((0, 1, 130, -2) if stopped else (0, 1, 2)), (words, code, err)
    if code > 0:
        assert out == b"" and err.count("\n") == 1 and err.startswith("finetti "), (words, out, err)
    return code, err

def text(kind, x):
    return "%d" % x if kind == "integer" else repr(x)

# ---- every option of every command refuses what is no value; every range is refused past its ends
commands = [(name,) for name, *_ in complete() if name not in ("help", "study", "latent", "lab")]
commands += [(family, name) for family in ("study", "latent", "lab") for name, *_ in complete(family)]
tables = [] # (command, words that choose tables)
for command in commands:
    words = {name: choices.split("|") for name, kind, _, _, _, choices in complete(*command) if kind == "text" and choices}
    for option in "--task", "--form", "--family":
        for name in words.get(option, ()):
            # Not every experiment has every family: then it says so.
            code, out, err, _ = stop(("complete", *command, option, name))
            assert code == 0 or command[0] == "lab" and code == 2 and out == b"" and err.count(b"\n") == 1, (command, name, err)
            tables += [(command, (option, name))] if code == 0 else []
    tables += [] if words else [(command, ())]
ranges, asked, count = set(), set(), 0
for command, chosen in tables:
    # Operands would be looked for after the options, so they are not needed.
    for name, kind, low, high, choices in settings(*command, *chosen):
        bad = []
        if kind != "choice" and (name, kind, low, high) not in ranges:
            ranges.add((name, kind, low, high))
            step = 1 if kind == "integer" else 1e-3
            bad += [text(kind, low - max(step, abs(low) * 1e-3)) if math.isfinite(low) else "nan"]
            bad += [text(kind, high + max(step, abs(high) * 1e-3)) if math.isfinite(high) else "-inf"]
        elif (command, name, low, high) not in asked:
            bad += ["nonsense" if kind == "choice" else "1x"]
        asked.add((command, name, low, high))
        for value in bad:
            count += 1
            if count % every == 0:
                code, err = run(*command, *chosen, name + "=" + value, after=10) # refused at once, however slow a start is
                assert code == 2, (command, chosen, name, value, code, err)
print(count // every, "bad values refused for", len(ranges), "ranges of", len({name for name, *_ in ranges}), "settings")
assert count > 850 and len(ranges) > 150

# ---- at the limits, and every choice
cases = [("risk", "--task", t, "--form", "erf", "--show", "risk", "--samples", "100")
         for t in ("slr", "spiked", "max")]
cases += [("risk", "--form", f, "--show", "risk", "--samples", "100")
          for f in ("softmax", "linear", "shifted", "softplus", "hardmax", "bayes")]
cases += [("simulate", "--n", "2", "--d", "2", "--L", "2", "--out", "limits.npz"), ("info",)]
cases += [("train", "--steps", "3", "--runs", "2", "--d", "5", *more)
          for more in (("--init", "overlaps"), ("--engine", "reduced"), ("--engine", "ambient"))]
cases += [("landscape", "--grid", "3")]
cases += [("attend", "tokens.csv", "--key", "x", "--value", "y", "--query", "x=1", "--tune")]
cases += [("fit", "bags.csv", "--model", "mixture", "--cv", "none")]
cases += [("locate", "model.fin", "bags.csv")]
cases += [("latent", "risk", "--family", f, "--L", "2", "--samples", "2")
          for f in ("concept", "mean", "process", "counts", "concepts", "sphere", "finite", "urn")]
cases += [("latent", "draw", "--n", "2", "--L", "2", "--Q", "1", "--out", "limits.csv")]
seen, tried = set(), 0
for case in cases:
    tables = [word for word in case if word in ("--task", "--form", "--family")]
    words = case[:2] if case[0] == "latent" else case[:1]
    for option in tables:
        words += option, case[case.index(option) + 1]
    for name, kind, low, high, choices in settings(*words):
        values = []
        if kind == "choice":
            values = choices
        elif case[0] not in ("risk", "latent") or name not in seen or "erf" in case or \
                case[0] == "latent" and name in ("--d", "--noise"):
            values = [text(kind, low), text(kind, high)]
        seen.add(name)
        if name == "--m" and case[0] == "simulate":
            continue # m is at most L, and so is refused for another reason than its range
        if name == "--runs":
            values = values[:1] # gigabytes
        for value in values:
            # Two samples of 2^31 tokens would be drawn; with this d they are refused.
            more = ("--d", "1000000") if case[0] == "simulate" and name == "--L" and value != values[0] else ()
            tried += 1
            if tried % every == 0:
                code, err = run(*case, name, value, *more)
                assert kind == "choice" or "it must be" not in err or math.isinf(float(value)), (case, name, value, err)
print(tried // every, "runs at limits and with choices")
P
printf 'x,y\n1,2\n2,3\n4,1\n' >tokens.csv
printf 'bag,label,x\na,1,2\nb,0,3\nc,1,4\nc,1,1\nd,0,2\n' >bags.csv
"$FINETTI" fit bags.csv --model softmax --cv none --out model.fin --quiet
"$PYTHON" limits.py
