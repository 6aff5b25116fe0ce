# finetti attend: known answers (scikit-learn), columns, queries, sequences, files, threads.
set -eu
. "$SRC/tests/cli/common.bash"
cp "$SRC"/tests/data/attend_*.csv .

# ---- the same numbers as scikit-learn (tests/data/attend_sklearn.py wrote them)
"$PYTHON" - <<'P'
import csv, json, os, subprocess
want = {}
for row in csv.DictReader(open("attend_answers.csv")):
    want.setdefault(tuple(row[c] for c in ("kernel", "scale", "prior", "noise", "level")), []).append(row)
assert len(want) == 10
worst = 0
for setting, rows in want.items():
    words = [w for name, value in zip(("--kernel", "--scale", "--prior", "--noise", "--level"), setting) for w in (name, value)]
    out = subprocess.run([os.environ["FINETTI"], "attend", "attend_tokens.csv", "--key", "x*", "--value", "y",
                          "--query", "attend_queries.csv", "--json", *words], capture_output=True, check=True, text=True)
    got = json.loads(out.stdout)
    assert out.stderr == "" and len(got["answers"]) == len(rows) == 6
    for a, b in zip(got["answers"], rows):
        off = max(abs(a["mean"]["y"] - float(b["mean"])), abs(a["sd"]["y"] - float(b["sd"])),
                  abs(got["evidence"] - float(b["evidence"])))
        noise = got["settings"]["noise"]
        assert abs(a["sd_new"]["y"] ** 2 - a["sd"]["y"] ** 2 - noise) < 1e-12
        assert off < 1e-8, (setting, a, b)
        worst = max(worst, off)
    t = got["test"]["y"]
    assert t["count"] == 6 and sum(t["pit"]) == 6 and set(t["coverage"]) == {"50", "90", "95"}
print("largest difference from scikit-learn: %.1e" % worst)
P

# ---- tuning, in text and JSON
accepts attend attend_tokens.csv --key x1:x3 --value y --tune --ard --level 50 --loo
prints "40 tokens"
prints "tuned       scale, prior, noise by marginal likelihood: -29.3465"
prints "leave-one-out"
prints "PIT of 40 values"
prints "method      dual, exact"
"$FINETTI" attend attend_tokens.csv --key x1:x3 --value y --tune --level 50 --json >tuned.json
"$PYTHON" -m json.tool tuned.json >/dev/null
"$PYTHON" - <<'P'
import json
a = json.load(open("tuned.json"))
assert abs(a["evidence"] + 51.5235306349) < 1e-6 and a["tune"]["converged"] and a["tune"]["chosen"] == "scale, prior, noise"
assert abs(a["settings"]["scale"] - 0.722) < 1e-3 and a["settings"]["level"] == 50
assert a["loo"]["y"]["count"] == 40 and a["method"]["jitter"] == 0 and a["notes"] == []
P
# What is given stays as it is.
"$FINETTI" attend attend_tokens.csv --key 'x*' --value y --tune --noise 0.5 --json | "$PYTHON" -c '
import json, sys
a = json.load(sys.stdin)
assert a["settings"]["noise"] == 0.5 and a["tune"]["chosen"] == "scale, prior"'
accepts attend attend_tokens.csv --key 'x*' --value y --form softmax --tune
prints "leave-one-out squared error"
prints "which is no posterior"
accepts attend attend_tokens.csv --key 'x*' --value y --form nw --tune --query 'x1=0,x2=0,x3=0'
prints "spread"
accepts attend attend_tokens.csv --key 'x*' --value y --tune --by loo --restarts 1 --iterations 5
prints "leave-one-out log score"
# nystrom with every token a landmark is exact; it is tuned on the dual
"$FINETTI" attend attend_tokens.csv --key 'x*' --value y --method nystrom --landmarks 40 --tune --json >nystrom.json 2>/dev/null
"$FINETTI" attend attend_tokens.csv --key 'x*' --value y --tune --json >dual.json
"$PYTHON" - <<'P'
import json
a, b = json.load(open("nystrom.json")), json.load(open("dual.json"))
assert a["method"]["name"] == "nystrom" and a["tune"]["tokens"] == 40 and a["settings"]["scale"] == b["settings"]["scale"]
assert abs(a["evidence"] - b["evidence"]) < 1e-6 and abs(a["loo"]["y"]["rmse"] - b["loo"]["y"]["rmse"]) < 1e-6
P

# ---- columns
same() { # same A... -- B...: both print the same answers
    local -a a=() b=()
    while [ "$1" != -- ]; do a+=("$1"); shift; done
    shift
    b=("$@")
    "$FINETTI" attend attend_tokens.csv --query attend_queries.csv "${a[@]}" --out a.csv >/dev/null
    "$FINETTI" attend attend_tokens.csv --query attend_queries.csv "${b[@]}" --out b.csv >/dev/null
    cmp a.csv b.csv || fail "${a[*]} and ${b[*]} differ"
}
same --key x1,x2,x3 --value y -- --key 'x*' --value y
same --key x1,x2,x3 --value y -- --key '*' --value y
same --key x1,x2,x3 --value y -- --key x1:x3 --value 4
same --key x1,x2,x3 --value y -- --key 1:3 --value y
same --key x1,x2,x3 --value y -- --key ' x1 , x2:' --value y
same --key x2,x3 --value y -- --key 'x[23]' --value y
same --key x1,x2 --value y --scales 2,2 -- --key x1,x2 --value y --scale 2
head -1 a.csv | grep -qx "row,x1,x2,y_mean,y_sd,y_sd_new,top1,weight1,top2,weight2,top3,weight3" || fail "$(head -1 a.csv)"
[ "$(wc -l <a.csv)" = 7 ] || fail "$(cat a.csv)"

# ---- queries: a file, points, columns of the context
"$FINETTI" attend attend_tokens.csv --key x1,x2 --value y --top 0 --query "$(awk -F, 'NR > 1 { printf "%sx1=%s,x2=%s", s, $1, $2; s = ";" }' attend_queries.csv)" --out points.csv >/dev/null
"$FINETTI" attend attend_tokens.csv --key x1,x2 --value y --top 0 --query attend_queries.csv --out file.csv >/dev/null
cmp points.csv file.csv
"$FINETTI" attend attend_tokens.csv --key x1,x2 --value y --top 2 --query x1,x2 --out self.csv >/dev/null
[ "$(wc -l <self.csv)" = 41 ] || fail "$(wc -l self.csv)"
"$FINETTI" attend - --key x1,x2 --value y --top 0 --query attend_queries.csv --out - <attend_tokens.csv | cmp - file.csv
accepts attend attend_tokens.csv --key x1,x2 --value y --query attend_queries.csv
prints "queries                values"
prints "most attended rows: weight"

# ---- NPZ in and out
"$PYTHON" - <<'P'
import csv, npz
rows = [[float(c) for c in r] for r in list(csv.reader(open("attend_tokens.csv")))[1:]]
npz.save("tokens.npz", {"K": ((40, 3), [c for r in rows for c in r[:3]], "d"), "y": ((40,), [r[3] for r in rows], "d"),
                        "other": ((2, 2, 2), [0.0] * 8, "d"), "short": ((3,), [1, 2, 3], "q")})
rows = [[float(c) for c in r] for r in list(csv.reader(open("attend_queries.csv")))[1:]]
npz.save("queries.npz", {"K": ((6, 3), [c for r in rows for c in r[:3]], "d")})
P
"$FINETTI" attend tokens.npz --key K --value y --query queries.npz --out fromnpz.csv >/dev/null
"$FINETTI" attend attend_tokens.csv --key 'x*' --value y --query attend_queries.csv --out fromcsv.csv >/dev/null
cmp <(tail -n +2 fromnpz.csv) <(tail -n +2 fromcsv.csv)
"$FINETTI" attend tokens.npz --key K.0,K.2 --value y --query queries.npz --loo --out all.npz >/dev/null
"$FINETTI" attend tokens.npz --key K --value y --prefix --out curve.npz >/dev/null
"$PYTHON" - <<'P'
import npz
a = npz.load("all.npz")
assert a["mean"][0] == (6, 1) and a["query"][0] == (6, 2) and a["top"][0] == (6, 3) and a["loo_mean"][0] == (40, 1)
assert b"kernel rbf\n" in bytes(a["settings"][1])
assert npz.load("curve.npz")["prefix_error"][0] == (40,)
P
refuses 1 "short has 3" attend tokens.npz --key K,short --value y

# ---- leave-one-out is what it says; the curve ends where the evidence does
"$PYTHON" - <<'P'
import csv, json, math, os, subprocess
words = ["--key", "x*", "--value", "y", "--scale", "1", "--prior", "1", "--noise", "0.05", "--level", "50"]
def attend(context, *more):
    return subprocess.run([os.environ["FINETTI"], "attend", context, *words, *more], capture_output=True, check=True, text=True).stdout
rows = list(csv.reader(open("attend_tokens.csv")))
attend("attend_tokens.csv", "--loo", "--out", "loo.csv")
loo = list(csv.DictReader(open("loo.csv")))
for left in (0, 7, 39):
    with open("less.csv", "w") as f:
        csv.writer(f, lineterminator="\n").writerows(rows[:1 + left] + rows[2 + left:])
    x = rows[1 + left]
    got = json.loads(attend("less.csv", "--json", "--query", "x1=%s,x2=%s,x3=%s" % tuple(x[:3])))["answers"][0]
    assert abs(got["mean"]["y"] - float(loo[left]["y_mean"])) < 1e-9 and abs(got["sd_new"]["y"] - float(loo[left]["y_sd_new"])) < 1e-9
    z = (float(x[3]) - got["mean"]["y"]) / got["sd_new"]["y"]
    assert abs(float(loo[left]["y_pit"]) - 0.5 * math.erfc(-z / math.sqrt(2))) < 1e-9
a = json.loads(attend("attend_tokens.csv", "--prefix", "--json"))
assert a["prefix"]["of"] == "tokens" and a["prefix"]["tokens"] == list(range(40))
assert abs(sum(a["prefix"]["minus_log_score"]) + a["evidence"]) < 1e-8
b = json.loads(attend("attend_tokens.csv", "--prefix", "--query", "attend_queries.csv", "--json"))
assert b["prefix"]["of"] == "queries" and b["prefix"]["count"] == [6] * 41
assert abs(b["prefix"]["squared_error"][-1] - b["test"]["y"]["rmse"] ** 2) < 1e-10
attend("attend_tokens.csv", "--prefix", "--query", "attend_queries.csv", "--out", "curve.csv")
curve = list(csv.DictReader(open("curve.csv")))
assert len(curve) == 41 and float(curve[-1]["squared_error"]) == b["prefix"]["squared_error"][-1]
P
accepts attend attend_tokens.csv --key 'x*' --value y --prefix
prints "every token predicted from those before it; means over the tokens since the row above"
cp stdout curve.txt
"$FINETTI" attend attend_tokens.csv --key 'x*' --value y --prefix --out tokens.csv >/dev/null
"$PYTHON" - <<'P'
import csv
every = [(float(r["squared_error"]), float(r["minus_log_score"])) for r in csv.DictReader(open("tokens.csv"))]
assert len(every) == 40
lines = open("curve.txt").read().split("-log score\n")[1].splitlines()
before = -1
for tokens, count, error, score in (map(float, line.split()) for line in lines):
    part = every[before + 1 : int(tokens) + 1]
    assert len(part) == count, (tokens, count)
    for got, want in ((error, sum(e for e, _ in part) / count), (score, sum(s for _, s in part) / count)):
        assert abs(got - want) <= 1e-5 * abs(want), (tokens, got, want)
    before = int(tokens)
assert before == 39 and len(lines) < 15
P
accepts attend attend_tokens.csv --key 'x*' --value y --prefix --form nw
prints "squared error"

# ---- several sequences: each is its own context, settings are shared
"$PYTHON" - <<'P'
import csv, json, os, subprocess
rows = list(csv.reader(open("attend_tokens.csv")))
with open("two.csv", "w") as f: # in turns
    csv.writer(f, lineterminator="\n").writerows([["who"] + rows[0]] + [[str(7 - 4 * (i % 2))] + r for i, r in enumerate(rows[1:])])
for name, part in (("seven", rows[1::2]), ("three", rows[2::2])):
    with open(name + ".csv", "w") as f:
        csv.writer(f, lineterminator="\n").writerows(rows[:1] + part)
with open("ask.csv", "w") as f:
    f.write("who,x1,x2,x3\n7,0.1,0.2,0.3\n3,0.1,0.2,0.3\n5,0.1,0.2,0.3\n")
words = ["--key", "x*", "--value", "y", "--scale", "1", "--prior", "1", "--noise", "0.05", "--level", "50", "--json"]
def attend(context, *more):
    return json.loads(subprocess.run([os.environ["FINETTI"], "attend", context, *words, *more], capture_output=True, check=True, text=True).stdout)
both = attend("two.csv", "--sequence", "who", "--query", "ask.csv", "--loo")
one = {n: attend(n + ".csv", "--query", "x1=0.1,x2=0.2,x3=0.3", "--loo") for n in ("seven", "three")}
answers = {a["sequence"]: a for a in both["answers"]}
assert abs(answers[7]["mean"]["y"] - one["seven"]["answers"][0]["mean"]["y"]) < 1e-12
assert abs(answers[3]["sd"]["y"] - one["three"]["answers"][0]["sd"]["y"]) < 1e-12
assert answers[5]["mean"]["y"] == 0 and abs(answers[5]["sd"]["y"] - 51 ** 0.5) < 1e-12 and answers[5]["top"] == []
assert [t["row"] % 2 for t in answers[7]["top"]] == [1, 1, 1] # rows of the file
assert any("no tokens" in n for n in both["notes"])
assert abs(both["evidence"] - one["seven"]["evidence"] - one["three"]["evidence"]) < 1e-10
P
accepts attend two.csv --key 'x*' --value y --sequence who --tune --prefix
prints "40 tokens in 2 sequences (who), the longest has 20"
refuses 1 "sequence 5 of the queries has no tokens" attend two.csv --key 'x*' --value y --sequence who --form nw --query ask.csv

"$FINETTI" attend two.csv --key 'x*' --value y --sequence who --query ask.csv --out ask_file.csv >ask.txt 2>note
grep -q "40 tokens in 2 sequences (who)" ask.txt || fail "$(cat ask.txt)" # those that have rows
grep -q "1 sequence of the queries has no tokens" note || fail "$(cat note)"
"$FINETTI" attend two.csv --key 'x*' --value y --sequence who --out ask_points.csv >/dev/null 2>&1 \
    --query 'who=7,x1=0.1,x2=0.2,x3=0.3;who=3,x1=0.1,x2=0.2,x3=0.3;who=5,x1=0.1,x2=0.2,x3=0.3'
cmp ask_file.csv ask_points.csv
refuses 2 "such as 'who=7,x1=1,x2=2,x3=3'" attend two.csv --key 'x*' --value y --sequence who --query 'x1=1,x2=2,x3=3;x1=2,x2=2,x3=3'
sed 's/^[37],/7,/' two.csv >alone.csv
accepts attend alone.csv --key 'x*' --value y --sequence who
prints "40 tokens in 1 sequence (who), the longest has 40"

# the same with names for numbers, a column of text, missing cells elsewhere, quotes and CRLF
sed 's/^7,/"Anna, B.",/; s/^3,/Otto,/; 1s/$/,remark,hole/; 2,$s/$/,fine,/; 5s/fine,$/"so, so",NA/' two.csv | sed 's/$/\r/' >words.csv
sed 's/^7,/"Anna, B.",/; s/^3,/Otto,/; s/^5,/Eva,/' ask.csv >ask_words.csv
for json in 1 2; do
    context=two.csv ask=ask.csv
    [ $json = 2 ] && context=words.csv ask=ask_words.csv
    "$FINETTI" attend $context --key 'x*' --value y --sequence who --query $ask --tune --json >names$json.json 2>/dev/null
done
"$PYTHON" - <<'P'
import json
a, b = json.load(open("names1.json")), json.load(open("names2.json"))
assert [x["sequence"] for x in b["answers"]] == ["Anna, B.", "Otto", "Eva"]
want = {x["sequence"]: x for x in a["answers"]}
for x, number in zip(b["answers"], (7, 3, 5)):
    assert abs(x["mean"]["y"] - want[number]["mean"]["y"]) < 1e-6 and x["top"][:1] and x["top"][0]["row"] == want[number]["top"][0]["row"] or number == 5
assert abs(a["evidence"] - b["evidence"]) < 1e-8
P
accepts attend words.csv --key 'x*' --value y --sequence who --query ask_words.csv
prints "Otto"
# words in points
sed 's/"Anna, B."/ann/' words.csv >first.csv
accepts attend first.csv --key 'x*' --value y --sequence who --query 'who=Otto,x1=0.1,x2=0.2,x3=0.3;who=ann,x1=0.1,x2=0.2,x3=0.3'
grep -E '^ +[12] +(Otto|ann) ' stdout | awk '{ print $6, $7 }' | sort >points.txt
accepts attend two.csv --key 'x*' --value y --sequence who --query 'who=3,x1=0.1,x2=0.2,x3=0.3;who=7,x1=0.1,x2=0.2,x3=0.3'
grep -E '^ +[12] +[37] ' stdout | awk '{ print $6, $7 }' | sort >numbers.txt
cmp points.txt numbers.txt
[ "$(wc -l <points.txt)" = 2 ] || fail "$(cat points.txt)"
refuses 2 "such as 'who=ann,x1=1,x2=2,x3=3'" attend first.csv --key 'x*' --value y --sequence who --query 'x1=1,x2=2,x3=3'
refuses 2 "x3=b is not a number" attend first.csv --key 'x*' --value y --sequence who --query 'who=ann,x1=1,x2=2,x3=1;who=ann,x1=1,x2=2,x3=b'
refuses 1 "column remark has text, such as 'fine'" attend words.csv --key x1,remark --value y
refuses 1 "column hole: nan" attend words.csv --key x1 --value hole
refuses 1 "has text in words.csv and numbers in ask.csv" attend words.csv --key 'x*' --value y --sequence who --query ask.csv
refuses 1 "sequence Eva of the queries" attend words.csv --key 'x*' --value y --sequence who --query ask_words.csv --form nw
# malformed files keep the reader's message
printf 'a,b\n1,x\n2\n' >short.csv
refuses 1 "short.csv" attend short.csv --key a --value b
printf 'a,b\n1,"x\n' >open.csv
refuses 1 "open.csv" attend open.csv --key a --value b
printf 'a,b\n1,x\0y\n' >zero.csv
refuses 1 "zero.csv" attend zero.csv --key a --value b
head -c 20000 /dev/urandom >noise.csv
refuses 1 "noise.csv" attend noise.csv --key 1 --value 2

# ---- weights: the mean is weights times values, largest first
"$FINETTI" attend attend_tokens.csv --key 'x*' --value y --level 0 --query attend_queries.csv --top 1000 --json >all.json
"$FINETTI" attend attend_tokens.csv --key 'x*' --value y --level 0 --query attend_queries.csv --top 2 --json >few.json
"$PYTHON" - <<'P'
import csv, json
y = [float(r["y"]) for r in csv.DictReader(open("attend_tokens.csv"))]
for a, b in zip(json.load(open("all.json"))["answers"], json.load(open("few.json"))["answers"]):
    sizes = [abs(t["weight"]) for t in a["top"]]
    assert len(sizes) == 40 and sizes == sorted(sizes, reverse=True) and a["top"][:2] == b["top"]
    assert abs(sum(t["weight"] * y[t["row"] - 1] for t in a["top"]) - a["mean"]["y"]) < 1e-10
P

# ---- standardize: units do not matter; constant columns go
awk -F, -v OFS=, -v OFMT=%.17g 'NR == 1 { print $0, "c" } NR > 1 { print $1 * 1000 + 5, $2, $3 / 1000, $4, 3 }' attend_tokens.csv >units.csv
awk -F, -v OFS=, -v OFMT=%.17g 'NR == 1 { print $0, "c" } NR > 1 { print $1 * 1000 + 5, $2, $3 / 1000, $4, 3 }' attend_queries.csv >units_queries.csv
"$FINETTI" attend units.csv --key 'x*,c' --value y --standardize --query units_queries.csv --out s1.csv >/dev/null 2>note
grep -q "constant key column c: left out" note && ! grep -q widest note || fail "$(cat note)"
"$FINETTI" attend units.csv --key 'x*' --value y >/dev/null 2>note
grep -q "the widest key column has [0-9.]*e+05 times the standard deviation of the narrowest" note || fail "$(cat note)"
"$FINETTI" attend units.csv --key 'x*' --value y --scales 1000,1,1e-3 >/dev/null 2>note
! grep -q widest note || fail "$(cat note)"
"$FINETTI" attend attend_tokens.csv --key 'x*' --value y --standardize --query attend_queries.csv --out s2.csv >/dev/null
"$PYTHON" - <<'P'
import csv
for a, b in zip(csv.DictReader(open("s1.csv")), csv.DictReader(open("s2.csv"))):
    assert abs(float(a["y_mean"]) - float(b["y_mean"])) < 1e-9 and a["top1"] == b["top1"], (a, b)
P

# ---- the same bytes for any number of threads
for threads in 1 2; do
    "$FINETTI" attend two.csv --key 'x*' --value y --sequence who --tune --ard --loo --query ask.csv --json --threads $threads >t$threads.json 2>/dev/null
done
cmp t1.json t2.json
# a larger one, through the tiled factor
"$PYTHON" - <<'P'
import random
random.seed(4)
with open("large.csv", "w") as f:
    f.write("a,b,y,z\n")
    for i in range(700):
        a, b = random.gauss(0, 1), random.gauss(0, 1)
        f.write("%.6f,%.6f,%.6f,%.6f\n" % (a, b, a * b + random.gauss(0, 0.3), a - b))
P
for threads in 1 2; do
    "$FINETTI" attend large.csv --key a,b --value y,z --query a,b --out l$threads.csv --threads $threads >l$threads.txt
done
cmp l1.csv l2.csv
cmp l1.txt l2.txt
# the table shows the first 20 queries, files and JSON all of them
accepts attend large.csv --key a,b --value y --query a,b
prints "... 680 more; --out FILE has all"
[ "$(grep -cE '^ +[0-9]+ ' stdout)" = 20 ] || fail "not 20 answers"
[ "$(wc -l <l1.csv)" = 701 ] || fail "not all answers in a file"
head -21 large.csv >twenty.csv
accepts attend twenty.csv --key a,b --value y --query a,b
if grep -q " more; " stdout; then fail "20 queries are printed"; fi
grep -q "y_mean,y_sd,y_sd_new,z_mean,z_sd,z_sd_new" l1.csv
