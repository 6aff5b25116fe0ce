# finetti attend: what can go wrong. One line, the right exit code, files whole or absent.
set -eu
. "$SRC/tests/cli/common.bash"
cp "$SRC"/tests/data/attend_*.csv .
attend=(attend attend_tokens.csv --key 'x*' --value y)

# ---- options
refuses 2 "CONTEXT is missing" attend --key x --value y
refuses 2 "--key and --value are needed" attend attend_tokens.csv --key x1
refuses 2 "--key and --value are needed" attend attend_tokens.csv --value y
refuses 2 "did you mean --standardize?" "${attend[@]}" --standardise
refuses 2 "--ard is for --form cme" "${attend[@]}" --ard --form nw
refuses 2 "do not go with it" "${attend[@]}" --ard --scale 2
refuses 2 "do not go with it" "${attend[@]}" --ard --scales 1,2,3
refuses 2 "goes with --tune" "${attend[@]}" --restarts 3
refuses 2 "nothing to choose" "${attend[@]}" --tune --scale 1 --prior 1 --noise 1
refuses 2 "holds all" "${attend[@]}" --loo --prefix --out x.csv
refuses 2 "holds all" "${attend[@]}" --loo --query attend_queries.csv --out x.csv
refuses 2 "give one of them" "${attend[@]}" --json --out -
refuses 2 "noise = -1" "${attend[@]}" --noise -1
refuses 2 "top = 1001" "${attend[@]}" --top 1001
refuses 2 "allowed are linear|polynomial" "${attend[@]}" --kernel matern5
refuses 1 "no marginal likelihood" "${attend[@]}" --form nw --tune --by evidence
refuses 1 "the primal method is for" "${attend[@]}" --method primal

# ---- columns
refuses 2 "did you mean x1?" attend attend_tokens.csv --key x11 --value y
refuses 2 "there are 4: x1, x2, x3, y" attend attend_tokens.csv --key quantity --value y
refuses 2 "no column '5'" attend attend_tokens.csv --key 5 --value y
refuses 2 "no column '0'" attend attend_tokens.csv --key 0 --value y
refuses 2 "is in --value already" attend attend_tokens.csv --key x1,y --value y
refuses 2 "is in --value already" attend attend_tokens.csv --key x1 --value y --sequence y
refuses 2 "is there twice" attend attend_tokens.csv --key x1,x1 --value y
refuses 2 "left to right" attend attend_tokens.csv --key x3:x1 --value y
refuses 2 "no column 'z*'" attend attend_tokens.csv --key 'z*' --value y
refuses 2 "no column is left" attend attend_tokens.csv --key 'y*' --value y
refuses 2 "a name is missing" attend attend_tokens.csv --key x1,,x2 --value y
refuses 2 "one column is needed" attend attend_tokens.csv --key x1 --value y --sequence x2,x3
refuses 2 "one for each is needed" "${attend[@]}" --scales 1,2
for scales in 1,2,0 1,2,x 1,2, ,1,2 nan,1,1 1,2,-1 1,2,inf; do
    refuses 2 "numbers above 0" "${attend[@]}" --scales $scales
done

# ---- queries
refuses 1 "nowhere.csv" "${attend[@]}" --query nowhere.csv
refuses 2 "neither a file nor points" "${attend[@]}" --query nothing
refuses 2 "has 2 columns and --key has 3" "${attend[@]}" --query x1,x2
refuses 2 "--query has no column 'x3'" "${attend[@]}" --query x1=1,x2=2
refuses 2 "same names" "${attend[@]}" --query 'x1=1,x2=2,x3=3;x1=1,x2=2'
refuses 2 "same names" "${attend[@]}" --query 'x1=1,x2=2,x3=3;x1=1,x3=2,x2=2'
refuses 2 "a name and a value" "${attend[@]}" --query 'x1=1,x2'
refuses 2 "is not a number" "${attend[@]}" --query 'x1=1,x2=2,x3=b'
refuses 1 "column x3: nan" "${attend[@]}" --query 'x1=1,x2=2,x3=nan'
printf 'x1,x2\n1,2\n' >narrow.csv
refuses 2 "narrow.csv has no column 'x3'" "${attend[@]}" --query narrow.csv
refuses 2 "a name and a value" "${attend[@]}" --query 'x1=1,x2=2,x3='
refuses 2 "a name and a value" "${attend[@]}" --query 'x1=1,x2=2,x3=3,'
accepts "${attend[@]}" --query ' x1=1, x2=2, x3=3 ; x1=1, x2=2, x3=4'
# with a curve of tokens the answers are printed too
accepts "${attend[@]}" --query 'x1=1,x2=2,x3=3' --prefix
prints "most attended rows"
refuses 2 "both be standard input" attend - --key x1 --value y --query -
printf 'x,y,s\n1,2,1\n2,3,1\n' >s.csv
printf 'x\n1\n' >nos.csv
refuses 2 "queries need the sequence column" attend s.csv --key x --value y --sequence s --query nos.csv

# ---- data
printf 'x,y\n1,2\n' >one.csv
printf 'x,y\n' >none.csv
printf 'x,y\n1,2\nnan,3\n' >nan.csv
printf 'x,y\n1,2\n3,inf\n' >inf.csv
printf 'x,y,s\n1,2,nan\n' >nans.csv
printf 'x,y\n1,2\n1,3\n2,4\n' >twice.csv
printf 'x,y\n1,2\n1,2\n2,4\n' >equal.csv
printf 'x,y\n1,2\n1,3\n' >constant.csv
printf 'x,y\n1,5\n2,5\n3,5\n' >flat.csv
refuses 1 "none.csv has a header but no rows" attend none.csv --key x --value y
refuses 1 "nan.csv, row 2 (line 3), column x: nan" attend nan.csv --key x --value y
refuses 1 "inf.csv, row 2 (line 3), column y: inf" attend inf.csv --key x --value y
refuses 1 "nans.csv, row 1 (line 2), column s: nan" attend nans.csv --key x --value y --sequence s
refuses 1 "give a positive noise" attend twice.csv --key x --value y --noise 0
refuses 1 "token 0 is row 1" attend twice.csv --key x --value y --noise 0
refuses 1 "every key column is constant" attend constant.csv --key x --value y --standardize
refuses 2 "no sequence has two tokens" attend one.csv --key x --value y --form nw --tune
accepts attend one.csv --key x --value y
prints "1 token"
accepts attend one.csv --key x --value y --form softmax
prints "values"
accepts attend one.csv --key x --value y --form softmax --query x=3
prints "1: 1"
accepts attend flat.csv --key x --value y --tune
accepts attend constant.csv --key x --value y
grep -q "constant key column x" stderr || fail "$(cat stderr)"
# a setting at an end of its range: which one, where, what to do
"$PYTHON" -c 'print("x,y"); [print("%d,%.17g" % (i, 3 + 2 * i)) for i in range(12)]' >exact.csv
accepts attend exact.csv --key x --value y --tune --kernel linear
grep -q "noise ended at the lower end of the range that was searched, [0-9.e-]*: the values look free of noise or the kernel is too rough; look at leave-one-out (loo), or give noise" stderr || fail "$(cat stderr)"
# rounding is repaired, and said: on standard error, in the text and in JSON
accepts attend equal.csv --key x --value y --noise 0
grep -q "added to the noise" stderr || fail "$(cat stderr)"
prints "jitter"
"$FINETTI" attend equal.csv --key x --value y --noise 0 --json 2>/dev/null | "$PYTHON" -c '
import json, sys
a = json.load(sys.stdin)
assert a["method"]["jitter"] > 0 and "added to the noise" in a["notes"][0]'
# answers that are missing are left out, and said
printf 'x,y\n1,nan\n2,3\n' >holes.csv
accepts attend flat.csv --key x --value y --query holes.csv
grep -q "1 answers of the queries are missing" stderr || fail "$(cat stderr)"

# ---- files of other kinds
printf 'x;y\n1;2\n2;3\n' >semicolon.csv
refuses 1 "separated by commas" attend semicolon.csv --key x --value y
printf 'x,y,s\n1,2,\366\n2,3,b\n' >latin.csv
refuses 1 "not UTF-8" attend latin.csv --key x --value y --sequence s
accepts attend latin.csv --key x --value y
"$PYTHON" - <<'P'
import npz
text = "\u00e4" * 300
with open("long.csv", "w", encoding="utf-8") as f:
    f.write("x,y,s\n1,2,%s\n2,3,b\n" % text)
number = [1.0, 2.0, 4.0, 3.0, 5.0, 7.0]
npz.save("n.npz", {"K": ((3, 2), number, "d"), "y": ((3, 1), number[:3], "d"), "cube": ((1, 2, 3), number, "d")})
npz.save("none.npz", {"K": ((0, 2), [], "d")})
npz.save("wide.npz", {"K": ((2, 3), number, "d")})
npz.save("test.npz", {"K": ((3, 2), number, "d"), "y": ((3,), number[:3], "d")})
for size, name in ((2.0**900, "huge.csv"), (2.0**-900, "tiny.csv")):
    with open(name, "w") as f:
        f.write("x,y\n" + "".join("%.17g,%g\n" % (x * size, y) for x, y in zip((1, 2, 4, 5), (3, 1, 2, 5))))
P
"$FINETTI" attend long.csv --key x --value y --sequence s --query x --json | "$PYTHON" -c '
import json, sys
assert [a["sequence"] for a in json.load(sys.stdin)["answers"]] == ["\u00e4" * 300, "b"]'
refuses 1 "none.npz has no rows; at least one query" attend n.npz --key K --value y --query none.npz --out x.csv
refuses 1 "has 2 columns in n.npz and 3 in wide.npz" attend n.npz --key K --value y --query wide.npz
refuses 1 "array 'cube' of n.npz has 3 axes" attend n.npz --key cube --value y
accepts attend n.npz --key K --value y --query test.npz
prints "queries                values" # a matrix of one column is a column
# --standardize does not care how large keys are
for file in huge.csv tiny.csv; do
    accepts attend $file --key x --value y --standardize
    sed 1d stdout >$file.txt
done
cmp huge.csv.txt tiny.csv.txt
grep -q "rmse" huge.csv.txt

# ---- a million rows: refused at once, with the numbers and the way out; which works
"$PYTHON" - <<'P'
import zipfile
with zipfile.ZipFile("million.npz", "w") as z:
    for name in "xy":
        head = b"{'descr': '|u1', 'fortran_order': False, 'shape': (1000000,)}".ljust(117) + b"\n"
        z.writestr(name + ".npy", b"\x93NUMPY\x01\x00v\x00" + head + bytes(range(250)) * 4000)
with open("many.csv", "w") as f:
    f.write("x,y\n" + "".join("%d,%d\n" % (i % 9973, i % 17) for i in range(40000)))
P
refuses 1 "1000000 tokens are 8e+12 bytes" attend million.npz --key x --value y
grep -q nystrom stderr || fail "$(cat stderr)"
accepts attend million.npz --key x --value y --query x=5 --method nystrom --landmarks 3 --threads 1
prints "1000000 tokens"
refuses 1 "40000 tokens are 1.28e+10 bytes" attend many.csv --key x --value y --tune
accepts attend many.csv --key x --value y --query x=5 --method nystrom --landmarks 20 --tune --restarts 1 --iterations 3
prints "nystrom, "
prints "on a random part of 20 tokens"
rm million.npz many.csv

# ---- output that cannot be written leaves nothing
mkdir folder folder.csv
for out in nowhere/x.csv folder.csv nowhere/x.npz; do
    refuses 1 "${out%%/*}" "${attend[@]}" --out $out
    refuses 1 "${out%%/*}" "${attend[@]}" --query attend_queries.csv --out $out
done
ln -sf /dev/full full.csv
refuses 1 "No space left" "${attend[@]}" --out full.csv
for words in "" --json "--query attend_queries.csv" "--out -"; do
    code=0
    # shellcheck disable=SC2086
    "$FINETTI" "${attend[@]}" $words >/dev/full 2>stderr || code=$?
    [ $code = 1 ] && [ "$(wc -l <stderr)" = 1 ] || fail "$words >/dev/full: $code: $(cat stderr)"
done
empty_folder folder
empty_folder folder.csv

# ---- Ctrl-C: in a search, in a large factor, in many queries
"$PYTHON" - <<'P'
import random
from stop import cancelled
random.seed(1)
with open("big.csv", "w") as f:
    f.write("a,b,y\n" + "".join("%f,%f,%f\n" % (random.random(), random.random(), random.random()) for i in range(5000)))
big = ["attend", "big.csv", "--key", "a,b", "--value", "y"]
for words in ([*big, "--tune", "--ard"], [*big, "--out", "folder/x.csv"], [*big, "--form", "nw", "--tune", "--restarts", "50", "--out", "folder/y.npz"]):
    cancelled(*words)
P
empty_folder folder
