#!/usr/bin/env bash
# finetti fit over MPI ranks, as a person meets it: one report, the same model as from one process, errors told once by
# whoever met them, nobody waits for ever.
. "$SRC/tests/cli/common.bash"
needs_mpi

"$FINETTI" simulate --n 90 --d 4 --L 5 --L_min 2 --sign --out bags.npz 2>/dev/null
"$FINETTI" simulate --n 90 --d 4 --L 5 --L_min 2 --sign --out bags.csv 2>/dev/null
csv=(bags.csv --bag sample --label y --features 'x*')
"$FINETTI" fit bags.npz --model softmax --cv none --out one.fin >one.txt
"$FINETTI" fit "${csv[@]}" --model mixture --cv none --out csv.fin --quiet
for n in 2 3; do
    ranks $n "$FINETTI" fit bags.npz --model softmax --out many.fin >many.txt 2>many.err || fail "$(cat many.err)"
    cmp one.fin many.fin
    grep -q "read by $n processes" many.txt && grep -q "not with several processes" many.txt || fail "$(cat many.txt)"
    [ "$(grep -c '^data ' many.txt)" = 1 ] || fail "$(cat many.txt)"
    # the same classes, counts, iterations and loss
    for word in classes model search training; do
        cmp <(grep "^$word " one.txt) <(grep "^$word " many.txt)
    done
    ranks $n "$FINETTI" fit "${csv[@]}" --model mixture --out many.fin --quiet
    cmp csv.fin many.fin
done

# ---- columns that are constant within every bag are found together, also where a share's bags are all alike; groups too
awk -F, 'NR == 1 { print $0 ",grade,site,patient" } NR > 1 { print $0 "," ($1 >= 50) "," $1 % 3 "," int($1 / 3) }' bags.csv >graded.csv
level=(graded.csv --bag sample --label y --group patient --model mean)
"$FINETTI" fit "${level[@]}" --cv none --out one.fin >one.txt
grep -q "2 columns that are constant within every bag: grade, site" one.txt || fail "$(cat one.txt)"
for n in 2 3; do
    ranks $n "$FINETTI" fit "${level[@]}" --out many.fin >many.txt 2>many.err || fail "$(cat many.err)"
    cmp one.fin many.fin
    for word in left groups; do
        grep -q "^$word " one.txt && cmp <(grep "^$word " one.txt) <(grep "^$word " many.txt)
    done
done

# ---- errors, once, with the right exit code; also those that one rank alone can see
sed '400s/,[^,]*$/,text/' bags.csv >late.csv
[ "$(wc -l <late.csv)" -gt 400 ] || sed -i '$s/,[^,]*$/,text/' late.csv
refused() { # refused PATTERN ARGS...
    local pattern=$1
    shift
    if ranks 2 "$FINETTI" fit "$@" >out.txt 2>err.txt; then fail "fit $*: succeeded"; fi
    [ ! -s out.txt ] || ! grep -q '^data ' out.txt || fail "fit $*: printed a report"
    [ "$(grep -c '^finetti fit:' err.txt)" = 1 ] || fail "fit $*: $(cat err.txt)"
    grep -qF -- "$pattern" err.txt || fail "fit $*: no '$pattern' in $(cat err.txt)"
}
refused "for one process" bags.npz --cv 5
refused "for one process" bags.npz --curve
refused "for one process" bags.npz --folds folds.csv
refused "nowhere.npz" nowhere.npz
refused "late.csv" late.csv --bag sample --label y --features 'x*'
refused "no/model.fin" bags.npz --out no/model.fin
refused "such as 10x5" bags.npz --cv nonsense
