#!/usr/bin/env bash
# finetti fit on musk1, elephant and tiger over given folds: what auto and single models reach, beside
# what deep attention reached on the same folds. Fails if auto is worse than that by more than one
# standard error (or if a single model is worse than a guess). At every change: tests/all/fit_musk.sh.
#
#   tests/long/fit_mil.sh [REPEATS]    of the five repeats of ten folds that are there; default 3, for
#                                      time: auto is nested, thirty folds are 1300 fits
. "$SRC/tests/cli/common.bash"
export FINETTI_THREADS=2
data=${FINETTI_DATA:-$SRC/../shared/data}/mil
[ -e "$data/tiger.csv" ] || skip "no $data"
repeats=${1:-3}
for set in musk1 elephant tiger; do
    cut -d, -f "1-$((repeats + 1))" "$data/folds_$set.csv" >folds.csv
    "$FINETTI" fit "$data/$set.csv" --folds folds.csv --model auto --no-curve --json \
        --compare mean,max,softmax,mixture,softmax+rbf,mixture+rbf,any+rbf,embedding >"$set.json"
done
"$PYTHON" "$SRC/tests/data/fit_mil.py" musk1 elephant tiger
