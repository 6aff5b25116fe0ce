#!/usr/bin/env bash
# finetti fit on musk1 over one repeat of ten given folds: auto, which is nested, is not more than a standard error below
# what deep attention reached, and no single model is as bad as a guess. All repeats, elephant and tiger:
# tests/long/fit_mil.sh, with whose bars these are.
. "$SRC/tests/cli/common.bash"
export FINETTI_DATA=${FINETTI_DATA:-$SRC/../shared/data}
[ -e "$FINETTI_DATA/mil/musk1.csv" ] || skip "no $FINETTI_DATA/mil/musk1.csv"
cut -d, -f 1-2 "$FINETTI_DATA/mil/folds_musk1.csv" >folds.csv
"$FINETTI" fit "$FINETTI_DATA/mil/musk1.csv" --folds folds.csv --model auto --no-curve --json \
    --compare mean,max,softmax,mixture,embedding >musk1.json
"$PYTHON" "$SRC/tests/data/fit_mil.py" musk1
