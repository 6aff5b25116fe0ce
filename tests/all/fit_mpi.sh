#!/usr/bin/env bash
# Fitting over MPI ranks: the model has the same bytes for 1, 2, 3 and 4 ranks and for 1 and 8 threads; for some number of
# ranks whatever the model, the labels and the format of the data; also with fewer bags than ranks. What is wrong on one
# rank alone ends all of them, soon, with one message and without a model.
. "$SRC/tests/cli/common.bash"
needs_mpi

# Bags of 1 to 7 tokens whose largest first column decides; 131 bags are no multiple of anything. As CSV the rows of a bag
# are not neighbours, so that every rank's bags are all over the file.
"$PYTHON" - <<'P'
import random, struct
import npz

random.seed(1)
bags = [[[random.gauss(0, 1) for _ in range(4)] for _ in range(random.randint(1, 7))] for _ in range(131)]
score = [max(bag, key=lambda x: x[0]) for bag in bags]
number = [x[0] + x[1] * 0.5 + random.gauss(0, 0.1) for x in score]
name = ["low" if y < 0.8 else "middle" if y < 1.6 else "high" for y in number]
rows = [(i, x) for i, bag in enumerate(bags) for x in bag]
random.shuffle(rows)
with open("classes.csv", "w") as f:
    f.write("bag,label,a,b,c,d\n")
    for i, x in rows:
        f.write("b%d,%s,%s\n" % (i, name[i], ",".join(map(repr, x))))
flat = [v for bag in bags for x in bag for v in x]
offsets = [0]
for bag in bags:
    offsets.append(offsets[-1] + len(bag))
npz.save("numbers.npz", {"tokens": ((len(flat) // 4, 4), flat, "f"), "offsets": ((132,), offsets, "q"), "y": ((131,), number, "d")})
P
mkdir numbers
(cd numbers && "$PYTHON" -m zipfile -e ../numbers.npz .)
head -n 1 classes.csv >few.csv # three bags: ranks without any
for bag in b0 b1 b2; do grep "^$bag," classes.csv | sed "s/,[a-z]*,/,$((${bag#b} % 2)).5,/" >>few.csv; done

# same DATA OPTIONS...: the model of one rank with one thread, and all others.
same() {
    local n threads
    "$FINETTI" fit "$@" --cv none --quiet --threads 1 --out alone.fin || fail "fit $*: exit code $?"
    "$FINETTI" fit "$@" --cv none --quiet --threads 8 --out other.fin
    cmp alone.fin other.fin || fail "fit $*: another model with 8 threads"
    for n in $RANKS; do
        for threads in $THREADS; do
            rm -f other.fin
            ranks "$n" "$FINETTI" fit "$@" --cv none --quiet --threads "$threads" --out other.fin ||
                fail "fit $*: $n ranks: exit code $?"
            cmp alone.fin other.fin || fail "fit $*: another model with $n ranks of $threads threads"
        done
    done
    echo "fit $*: the same model"
}
RANKS="1 2 3 4" THREADS=1
same classes.csv --model softmax
RANKS=3 THREADS=8
same classes.csv --model softmax
RANKS=4 THREADS=1 # other models sum the same way: one division of the bags each
same classes.csv --model softmax --basis both --landmarks 20
same classes.csv --model mixture --class_weights balanced
same classes.csv --model embedding
same classes.csv --model softmax --heads 2 --early 0.2 --restarts 2
same classes.csv --model max
RANKS=2 THREADS=3
same numbers.npz --model softmax --basis rbf --map fourier --landmarks 30
same numbers.npz --model mixture
same classes.csv --model bayes
RANKS=3 THREADS=1
same numbers.npz --model bayes
same numbers.npz --model erf
same numbers.npz --model linear --scaling pooled
same numbers.npz --model stack
same classes.csv --model auto
RANKS=4
same few.csv --model softmax --kind regression
same few.csv --model bayes --kind regression
RANKS="1 3"
same numbers --model softmax
cp alone.fin folder.fin # a folder of arrays, mapped, and the same arrays in an archive: the data's name differs
"$FINETTI" fit numbers.npz --model softmax --cv none --quiet --out archive.fin
for what in folder archive; do accepts predict $what.fin numbers.npz --out $what.csv; done
cmp folder.csv archive.csv || fail "mapped arrays and an archive: other predictions"

# breaks MESSAGE ARGS...: on 3 ranks; one message, an exit code, no model, and nobody waits for the others.
breaks() {
    local message=$1 code=0
    shift
    ranks 3 "$FINETTI" fit "$@" --out broken.fin >out 2>err || code=$?
    [ $code != 0 ] && [ $code != 124 ] || fail "fit $*: exit code $code: $(cat err)"
    [ "$(grep -c '^finetti' err)" = 1 ] || fail "fit $*: not one message: $(cat err)"
    grep '^finetti' err | grep -qF -- "$message" || fail "fit $*: no '$message' in $(cat err)"
    [ ! -e broken.fin ] && [ -z "$(find . -name '.finetti*')" ] || fail "fit $*: something was left"
}
sed '$s/,[^,]*$/,nan/' classes.csv >nan.csv
breaks "nan" nan.csv --model softmax
breaks "classes.csv" none/classes.csv
breaks "colour" classes.csv --label colour
sed '2,$s/,[a-z]*,/,low,/' classes.csv >one.csv
breaks "class" one.csv --model softmax
breaks "--cv" classes.csv --model softmax --cv 5x2
code=0
ranks 3 "$FINETTI" fit classes.csv --model softmax --quiet --out none/model.fin >out 2>err || code=$?
[ $code != 0 ] && [ $code != 124 ] && [ "$(grep -c '^finetti' err)" = 1 ] || fail "a folder that is not there: $code: $(cat err)"
echo "what is wrong on one rank ends all of them"

# A rank that ends while the others sum: they are told, and nobody waits.
cc -O1 -I"$SRC/include" "$SRC/tests/mpi/ranks_left.c" -o ranks_left -L"$BUILD" -lfinetti -Wl,-rpath,"$BUILD"
export FINETTI_MPI=$BUILD/finetti_mpi.so
ranks 4 ./ranks_left -1 2>err || fail "four sums: $(cat err)"
[ ! -s err ] || fail "four sums: $(cat err)"
for who in 0 1 3; do
    code=0
    ranks 4 ./ranks_left $who >out 2>err || code=$?
    [ $code != 0 ] && [ $code != 124 ] || fail "rank $who left: exit code $code: $(cat err)"
    grep -q "noticed: rank $who gave up" err || fail "rank $who left: $(cat err)"
done
echo "a rank that gives up ends all of them"
