#!/usr/bin/env bash
# Pretraining and fine-tuning over MPI ranks: the encoder has the same bytes for 1, 2, 3 and 4 ranks; what is wrong ends all
# of them, soon, with one message and without a file.
. "$SRC/tests/cli/common.bash"
needs_mpi
"$PYTHON" "$SRC/tests/cli/encoder_data.py"
tiny=(--width 8 --heads 2 --layers 1 --batch 12 --steps 12)

# same OUT COMMAND...: the file of one rank, and all others.
same() {
    "$FINETTI" "$@" --out alone.fin >alone.txt || fail "$*: exit code $?"
    for n in 2 3 4; do
        rm -f other.fin
        ranks $n "$FINETTI" "$@" --out other.fin >other.txt || fail "$*: $n ranks: exit code $?"
        cmp alone.fin other.fin || fail "$*: another encoder with $n ranks"
        # mpirun gives the first rank a terminal, which gets times
        sed '/^time/d; /^\r*$/d; s/\r//; s/other.fin/alone.fin/' other.txt | cmp - alone.txt || fail "$*: another report with $n ranks"
    done
    echo "$*: the same encoder"
}
same pretrain --d 3 --L 5 --M 3 "${tiny[@]}"
same pretrain --family counts --L-least 2 --L 9 --M 3 --accumulate 2 "${tiny[@]}"
same pretrain --data images.csv --label digit --patch 2 "${tiny[@]}"
cp alone.fin enc.fin
same finetune enc.fin --data images.csv --label digit --per-class 5 --steps 20
same pretrain --data bags.csv --key-columns k --objective supervised "${tiny[@]}"

# ---- checkpoints of one number of ranks, gone on from with another
"$FINETTI" pretrain --d 3 --L 5 --M 3 "${tiny[@]}" --out whole.fin >/dev/null
ranks 2 "$FINETTI" pretrain --d 3 --L 5 --M 3 "${tiny[@]}" --stop-at 5 --checkpoint part.fin >/dev/null
ranks 3 "$FINETTI" pretrain --resume part.fin --out again.fin >/dev/null
cmp whole.fin again.fin

# ---- failures: one message, soon, no file
for words in "--data nowhere.csv" "--width 10 --heads 4" "--out no/x.fin" "--resume nowhere.fin"; do
    code=0
    # shellcheck disable=SC2086
    ranks 3 "$FINETTI" pretrain $words >stdout 2>stderr || code=$?
    [ "$code" != 0 ] && [ "$code" != 124 ] || fail "pretrain $words: exit code $code"
    [ "$(grep -c '^finetti pretrain' stderr)" = 1 ] || fail "pretrain $words: $(cat stderr)"
done
code=0
ranks 9 "$FINETTI" pretrain "${tiny[@]}" >stdout 2>stderr || code=$?
grep -q "9 processes share 8 blocks" stderr || fail "$(cat stderr)"
echo "encoder_mpi: ok"
