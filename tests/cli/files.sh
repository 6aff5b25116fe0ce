# Files as pandas and numpy write them: what to_csv() makes of a table, in every dialect, and .values of it, in Fortran
# order and float16, give the predictions of the plain table; text beside tokens comes back as numpy's str.
. "$SRC/tests/cli/common.bash"
"$PYTHON" - <<'P'
import numpy as np, pandas as pd
rng = np.random.default_rng(3)
n, L = 30, 5
X = np.round(rng.normal(size=(n * L, 3)) * 16) / 16 # float16 holds them all
y = (X[:, 0].reshape(n, L).max(1) > 1).astype(int)
t = pd.DataFrame(dict(bag=np.repeat(["b%02d" % i for i in range(n)], L), y=np.repeat(y, L), x1=X[:, 0], x2=X[:, 1], x3=X[:, 2],
                      piece=["Wörter; \"%d\", so\nviele" % i for i in range(n * L)]))
t.to_csv("plain.csv", index=False)
t.to_csv("index.csv")
t.to_csv("packed.csv.gz", index=False)
t.to_csv("tabs.tsv", index=False, sep="\t")
t.to_csv("german.csv", sep=";", decimal=",")
t.to_csv("bars.csv", index=False, sep="|", decimal=",")
offsets = np.arange(0, n * L + 1, L)
values = t[["x1", "x2", "x3"]].values # a view of columns
assert values.flags.f_contiguous and not values.flags.c_contiguous
for name, tokens in ("fortran", values), ("half", X.astype("f2")), ("both", np.asfortranarray(X.astype("f2"))):
    np.savez_compressed(name + ".npz", tokens=tokens, offsets=offsets, y=y, piece=t.piece.values.astype(str), raw=np.array([b"%d" % i for i in range(n * L)]))
P
"$FINETTI" fit plain.csv --model mixture:linear --calibrate no --cv none --quiet --out m.fin
"$FINETTI" predict m.fin plain.csv 2>/dev/null >expected
for file in index.csv packed.csv.gz tabs.tsv german.csv "bars.csv --sep bar --decimal comma" fortran.npz half.npz both.npz; do
    # shellcheck disable=SC2086 # a file and its options
    "$FINETTI" predict m.fin $file >got 2>notes || fail "$file: $(cat notes)"
    cut -d, -f2- expected >a
    cut -d, -f2- got >b
    cmp a b || fail "$file has other predictions"
    "$FINETTI" fit $file --model mixture:linear --calibrate no --cv none --quiet --out n.fin
done
"$FINETTI" fit german.csv --model mean --cv none >/dev/null 2>notes
grep -q "separated by semicolons, numbers are read with a decimal comma" notes || fail "$(cat notes)"
grep -q "the first column has no name" notes || fail "$(cat notes)"
for file in german.csv both.npz; do
    "$FINETTI" locate m.fin $file --out located.npz 2>/dev/null
    "$PYTHON" - <<'P'
import numpy as np
z = np.load("located.npz")
assert z["piece"].dtype.kind == "U" and len(z["piece"]) == 150
assert list(z["piece"]) == ["Wörter; \"%d\", so\nviele" % (row - 1) for row in z["row"]]
P
done
"$PYTHON" - <<'P'
import numpy as np
z = np.load("located.npz")
assert list(z["raw"]) == [str(row - 1) for row in z["row"]]
P
