# Every numeric setting of every command: at its limits, past them, nan, inf, empty, text. The list
# comes from the tool, so a new setting is tested without a new line here.
set -eu
. "$SRC/tests/cli/common.bash"

cat >limits.py <<'P'
import math, os, signal, subprocess

tool = os.environ["FINETTI"]

def options(*words):
    out = subprocess.run([tool, "complete", *words], capture_output=True, check=True, text=True).stdout
    return [line.split("\t") for line in out.splitlines()]

def run(*words):
    """Exit code and message. What takes long at a limit must stop when told to."""
    p = subprocess.Popen([tool, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         stdin=subprocess.DEVNULL, text=True)
    try:
        out, err = p.communicate(timeout=0.5 if words[0] == "train" else 2)
    except subprocess.TimeoutExpired:
        p.send_signal(signal.SIGINT)
        try:
            out, err = p.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            p.kill()
            raise AssertionError(words + ("does not stop",))
        assert p.returncode in (0, 1), (words, p.returncode, err)
    assert p.returncode in (0, 1, 2), (words, p.returncode, err)
    if p.returncode:
        assert out == "" and err.count("\n") == 1 and err.startswith("finetti "), (words, out, err)
    return p.returncode, err

signal.signal(signal.SIGINT, signal.default_int_handler)
seen, count = set(), 0
started = ("reproduce", "study", "plot") # which a good value would set going
cases = [("risk", "--task", t, "--form", "erf", "--show", "risk") for t in ("slr", "spiked", "max")]
cases += [("risk", "--form", f, "--show", "risk", "--samples", "100")
          for f in ("softmax", "linear", "shifted", "softplus", "hardmax", "bayes")]
# m is at most L, and so is refused for another reason than its range.
cases += [("simulate", "--n", "2", "--d", "2", "--L", "2", "--out", "limits.npz"), ("info",), ("reproduce",),
          ("study", "diff", "a.db", "b.db"), ("plot",)]
cases += [("train", "--steps", "3", "--runs", "2", "--d", "5", *more)
          for more in (("--init", "overlaps"), ("--engine", "reduced"), ("--engine", "ambient"))]
cases += [("landscape", "--grid", "3")]
cases += [("attend", "tokens.csv", "--key", "x", "--value", "y", "--query", "x=1", "--tune")]
cases += [("fit", "bags.csv", "--model", "mixture", "--cv", "none")]
cases += [("locate", "model.fin", "bags.csv")]
cases += [("latent", "risk", "--family", f, "--L", "2", "--samples", "2")
          for f in ("concept", "mean", "process", "counts", "concepts", "sphere", "finite", "urn")]
cases += [("latent", "draw", "--n", "2", "--L", "2", "--Q", "1", "--out", "limits.csv")]
for case in cases:
    names = [w for w in case if w in ("slr", "spiked", "max")]
    forms = [case[i + 1] for i, w in enumerate(case) if w == "--form"]
    asked = (case[:4] if "--family" in case else case[:2] if case[0] in ("study", "latent") else case[:1]) + (("--task", names[0]) if names else ()) + (("--form", forms[0]) if forms else ())
    for name, kind, usual, low, high, choices in options(*asked):
        if kind == "choice":
            assert run(*case, name, "nonsense")[0] == 2 and run(*case, name, "")[0] == 2
            if case[0] not in started:
                for choice in choices.split("|"):
                    run(*case, name, choice)
        if kind not in ("integer", "number") or (name in seen and (case[0] == "risk" and forms != ["erf"] or case[0] == "latent" and name not in ("--d", "--noise"))):
            continue
        again = name in seen
        seen.add(name)
        low, high = float(low), float(high)
        text = lambda x: "%d" % x if kind == "integer" else repr(x)
        if case[0] not in started and not (name == "--m" and case[0] == "simulate"):
            for value in (low, high):
                # Two samples of 2^31 tokens would be drawn; with this d they are refused.
                more = ("--d", "1000000") if case[0] == "simulate" and name == "--L" and value == high else ()
                if name == "--runs" and value == high:
                    continue # gigabytes
                code, err = run(*case, name, text(value), *more)
                assert "it must be" not in err or math.isinf(value), (case, name, value, err)
        step = 1 if kind == "integer" else 1e-3
        bad = [low - max(step, abs(low) * 1e-3), "nan", "", "text", "1x", "--", "0x1p2000", "1e999"]
        bad += ["inf", high + max(step, abs(high) * 1e-3)] if math.isfinite(high) else ["-inf"]
        bad += ["1.5"] if kind == "integer" else []
        if again and case[0] in ("train", "landscape"):
            continue
        for value in bad:
            if value == "1e999" and math.isinf(high):
                continue
            value = value if isinstance(value, str) else text(value)
            code, err = run(*case, name + "=" + value)
            assert code == 2, (case, name, value, code, err)
            count += 1
print(count, "bad values refused for", len(seen), "settings")
P
printf 'x,y\n1,2\n2,3\n4,1\n' >tokens.csv
printf 'bag,label,x\na,1,2\nb,0,3\nc,1,4\nc,1,1\nd,0,2\n' >bags.csv
"$FINETTI" fit bags.csv --model softmax --cv none --out model.fin --quiet
"$PYTHON" limits.py
