# finetti fit: what can go wrong. One line, the right exit code, files whole or absent.
set -eu
. "$SRC/tests/cli/common.bash"
"$FINETTI" simulate --n 30 --d 3 --L 3 --sign --out bags.csv 2>/dev/null
"$FINETTI" simulate --n 30 --d 3 --L 3 --sign --out bags.npz 2>/dev/null
fit=(fit bags.npz --model mean)
long=(fit bags.csv --bag sample --label y --features 'x*' --model mean)
accepts "${fit[@]}"
accepts "${long[@]}"

# ---- options
refuses 2 "DATA is missing" fit --label y
refuses 2 "only 1 DATA" fit bags.npz bags.npz
refuses 2 "did you mean --label" fit bags.npz --lable y
refuses 2 "did you mean regression" "${fit[@]}" --kind regresion
refuses 2 "allowed are auto, regression" "${fit[@]}" --kind numbers
for cv in 1 0x5 10x 10x0 x5 10x5x2 10-5 ten 1001 5x1001 2.5 -3 "10 x 5"; do
    refuses 2 "such as 10x5" "${fit[@]}" --cv "$cv"
done
refuses 2 "do not go together" "${fit[@]}" --cv none --folds folds.csv
refuses 2 "do not go together" "${fit[@]}" --cv none --compare max
refuses 2 "do not go together" "${fit[@]}" --curve --no-curve
refuses 2 "do not go together" "${fit[@]}" --json --quiet --out x.fin
refuses 2 "nothing would come of it" "${fit[@]}" --quiet
for out in x.csv x.npz x.npy; do
    refuses 2 "end it in .fin" "${fit[@]}" --out $out
done
refuses 1 "no/x.fin" "${fit[@]}" --out no/x.fin
refuses 2 "did you mean softmax" "${fit[@]}" --cv 2 --compare mean,sofmax
refuses 2 "models are auto|softmax" "${fit[@]}" --cv 2 --compare transformer
refuses 2 "is no model" "${fit[@]}" --cv 2 --compare softmax+poly
refuses 2 "no model ''" "${fit[@]}" --cv 2 --compare mean,,max
refuses 2 "models are auto|softmax" fit bags.npz --model transformer
refuses 2 "landmarks = 0" "${fit[@]}" --landmarks 0
refuses 2 "heads = 65" "${fit[@]}" --heads 65
refuses 2 "early = 0.6" "${fit[@]}" --early 0.6
refuses 2 "as many folds as bags" "${fit[@]}" --cv 31

# ---- files
refuses 1 "nowhere.csv" fit nowhere.csv
refuses 1 "nowhere.npz" fit nowhere.npz
refuses 1 "nowhere" "${fit[@]}" --folds nowhere.csv
refuses 1 "bags.fin" fit bags.fin
head -c 500 bags.npz >short.npz
refuses 1 "short.npz" fit short.npz
: >empty.csv
refuses 1 "empty.csv" fit empty.csv
echo 'bag,label,x' >header.csv
refuses 1 "header.csv" fit header.csv

# ---- columns
refuses 2 "no column 'id'" fit bags.csv --bag id --label y
refuses 2 "no column 'z'" fit bags.csv --bag sample --label z
refuses 2 "no column 'w*'" fit bags.csv --bag sample --label y --features 'w*'
refuses 2 "did you mean" fit bags.csv --bag sampel --label y

# ---- what a bag may not be; the file, the line and the column are named
table() { printf 'bag,label,a,b\n%b' "$1" >"$2"; }
table '1,0,1,2\n1,0,2,3\n2,1,4,text\n2,1,5,3\n' text.csv
refuses 1 "text.csv" fit text.csv --features a,b
grep -q "'\?b'\?" stderr || fail "$(cat stderr)"
table '1,0,1,2\n1,1,2,3\n2,1,4,5\n' differs.csv
refuses 1 "differs" fit differs.csv
table '1,0,1,2\n1,0,2,nan\n2,1,4,5\n' nan.csv
refuses 1 "nan.csv" fit nan.csv
table '1,0,1,2\n1,0,2,inf\n2,1,4,5\n' inf.csv
refuses 1 "inf.csv" fit inf.csv
table '1,0,1,2\n2,0,2,3\n3,0,4,5\n' one.csv
refuses 1 "labels that differ" fit one.csv --kind classes
table '1,0,1,2\n2,1,1,2\n3,0,1,2\n4,1,1,2\n' constant.csv
refuses 2 "constant" fit constant.csv --kind classes
table '1,0,1,2\n2,1,1\n' ragged.csv
refuses 1 "line 3" fit ragged.csv
table '1,,1,2\n2,1,1,5\n3,0,3,4\n4,1,2,2\n' missing.csv
refuses 1 "label" fit missing.csv --kind classes

# ---- folds
{ echo bag,fold; seq 0 29 | sed 's/$/,1/'; } >same.csv
refuses 1 "fold" "${fit[@]}" --folds same.csv
{ echo bag,fold; seq 0 28 | awk '{print $1 "," $1 % 3}'; } >hole.csv
refuses 1 "29" "${fit[@]}" --folds hole.csv
{ echo bag,fold; { seq 0 29; echo 4; } | awk '{print $1 "," $1 % 3}'; } >twice.csv
refuses 1 "4" "${fit[@]}" --folds twice.csv

# ---- nothing is left behind, also when there is no room
if [ -e /dev/full ]; then
    got=0
    "$FINETTI" "${fit[@]}" >/dev/full 2>stderr || got=$?
    [ $got = 1 ] && grep -q "standard output" stderr || fail "$(cat stderr)"
fi
mkdir kept && cd kept
refuses 1 "labels that differ" fit ../one.csv --kind classes --out model.fin
empty_folder .
cd ..

# ---- what spreadsheets and numpy write
sed 's/,/;/g' constant.csv >semicolons.csv
refuses 2 "constant" fit semicolons.csv --kind classes
refuses 2 "--label" fit semicolons.csv --sep ,
refuses 2 "is none of comma, semicolon, tab, bar" fit semicolons.csv --sep x
refuses 2 "is none of point, comma" fit semicolons.csv --decimal x
for file in x.parquet x.xlsx x.pt; do
    refuses 1 "Python converts it: " fit $file
done
sed 's/label/target/' constant.csv >target.csv
refuses 2 "(--label): there are bag, target, a, b" fit target.csv
table '1,0,1,2\n2,1,,2\n3,0,1,2\n' blank.csv
refuses 1 "line 3, column 'a': the cell is empty; fill it in" fit blank.csv
"$PYTHON" - <<'P'
import struct, zipfile

def npy(descr, shape, data):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %r, }" % (descr, shape)
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + data

tokens = npy("<f4", (40, 1), struct.pack("<40f", *[(7 * i) % 11 for i in range(40)]))
offsets = npy("<i8", (21,), struct.pack("<21q", *range(0, 41, 2)))
for name, arrays in (("truth", {"tokens": tokens, "offsets": offsets, "y": npy("|b1", (20,), bytes([0, 1] * 10))}),
                     ("nothing", {"offsets": offsets})):
    with zipfile.ZipFile(name + ".npz", "w") as z:
        for a in arrays:
            z.writestr(a + ".npy", arrays[a])
P
accepts fit truth.npz --model mean --cv none
prints "0: 10, 1: 10"
refuses 2 "no array 'tokens'; it has offsets" fit nothing.npz
mkdir none
refuses 2 "no file none/tokens.npy" fit none

# ---- too few bags
table '1,no,1,2\n2,yes,3,1\n' two.csv
refuses 2 "too few bags; name a model" fit two.csv --model auto
refuses 2 "class 'no' has a single bag" fit two.csv --model mean --cv 2
accepts fit two.csv --model mean
table '1,0.5,1,2\n2,1.5,3,1\n' two.csv
refuses 2 "too few bags; name a model" fit two.csv --kind regression --model stack
table '1,no,1,2\n' two.csv
refuses 1 "the 1 bag is of class 'no'" fit two.csv

# ---- what is wrong, and what would be right
refuses 2 "--cv 'non': allowed are none, or FOLDSxREPEATS such as 10x5 or 5 (2 to 1000 folds, 1 to 1000 repeats); did you mean none?" fit two.csv --cv non
refuses 2 "2 to 1000 folds, 1 to 1000 repeats)" fit two.csv --cv 7y
! grep -q "did you mean" stderr || fail "$(cat stderr)"
printf 'bag,label,texture\n1,0,5\n1,0,6\n2,1,7\n' >texture.csv
refuses 1 "'6' differs from the label of the same bag, '1', in line 2; is it the right column? A label is the same in all rows of a bag" fit texture.csv --label texture

# ---- a table of simulate: the answer is no feature unless it is asked for
"$FINETTI" simulate --n 40 --d 2 --L 3 --sign --out leak.csv 2>/dev/null
"$FINETTI" fit leak.csv --bag sample --label y --model mean --cv none >leak.txt 2>&1
grep -q "6 columns\|4 columns" leak.txt && fail "a column that knows the answer is a feature: $(cat leak.txt)"
grep -q "'relevant' is left out" leak.txt || fail "$(cat leak.txt)"
