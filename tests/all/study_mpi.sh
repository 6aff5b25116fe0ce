#!/usr/bin/env bash
# A study over MPI ranks: 1, 2 and 4 ranks, 1 and 2 threads, and 3 shards merged have the same exports, byte for byte; after
# a rank was killed the next start completes the study; errors reach every rank and nobody waits for ever; sums over ranks
# have the same bits for any number of ranks.
. "$SRC/tests/cli/common.bash"
command -v sqlite3 >/dev/null || skip "no sqlite3"
needs_mpi

cat >study.yaml <<'YAML'
study: ranks
runs:
  - id: grid
    command: risk
    axes: {lam: {from: 0.01, to: 3, count: 200, spacing: log}, L: [2, 10]}
  - id: simulate
    command: risk
    set: {form: softmax, d: 100, L: 20, samples: 10000}
    seeds: 150
  - id: fails
    command: risk
    set: {form: softmax, method: closed}
    axes: {kappa: [0.1, 0.2]}
  - id: large
    command: landscape
    set: {grid: 120}
    axes: {lam: [0.2, 0.5, 1]}
  - id: train
    command: train
    set: {steps: 50, runs: 4, d: 40}
    seeds: 45
YAML
RUNS=600

# export_as NAME STORE
export_as() {
    accepts study export ranks --store "$2" --out "$1.csv"
    accepts study export ranks --store "$2" --out "$1.npz"
    sqlite3 "$2" 'SELECT hash, state, reason FROM runs JOIN settings USING(id) ORDER BY hash' >"$1.txt" # the failed ones too
}
# same STORE [NAME]: its exports are those of that name.
same() {
    local name=${2:-alone}
    export_as again "$1"
    cmp again.csv "$name.csv" || fail "$1: another CSV export"
    cmp again.npz "$name.npz" || fail "$1: another NPZ export"
    cmp again.txt "$name.txt" || fail "$1: other failures"
    rm again.csv again.npz again.txt
}

# alone STORE OPTIONS...: exit code 1, because two runs fail.
alone() {
    local code=0
    "$FINETTI" study run study.yaml --store "$@" >out 2>err || code=$?
    [ $code = 1 ] && grep -q "2 failed" out || fail "study run --store $*: exit code $code: $(cat err)"
}
# many RANKS STORE OPTIONS...: the same.
many() {
    local n=$1 code=0
    shift
    ranks "$n" "$FINETTI" study run study.yaml --store "$@" >out 2>err || code=$?
    [ $code = 1 ] && grep -q "2 failed" out || fail "$n ranks, --store $*: exit code $code: $(cat err)"
}

alone alone.db --threads 1
export_as alone alone.db
[ "$(wc -l <alone.csv)" = $((RUNS - 2 + 1)) ] || fail "the export has not a row for every run and one of names"
alone threads.db --threads 2
same threads.db
for pair in "1 1" "2 1" "4 1" "2 2"; do
    read -r n threads <<<"$pair"
    many "$n" "ranks-$n-$threads.db" --threads "$threads"
    same "ranks-$n-$threads.db"
    echo "$n ranks, $threads threads: the same"
done
for i in 1 2 3; do
    ranks 2 "$FINETTI" study run study.yaml --store shard-$i.db --shard $i/3 >out 2>err || [ $? = 1 ] || fail "$(cat err)"
done
accepts study merge merged.db shard-1.db shard-2.db shard-3.db
same merged.db
echo "3 shards of 2 ranks, merged: the same"

# A rank dies: mpirun ends the job; what was finished is there, and the next start does the rest. Slow runs, so that there
# is time to kill it.
cat >slow.yaml <<'YAML'
study: ranks
runs:
  - command: risk
    set: {form: softmax, d: 100, L: 20, samples: 100000}
    seeds: 100
YAML
accepts study run slow.yaml --store slow.db
export_as slow slow.db

# rank_of STARTER RANK: the process.
rank_of() {
    local child
    for child in $(pgrep -P "$1"); do
        ! tr '\0' '\n' <"/proc/$child/environ" 2>/dev/null | grep -qx "OMPI_COMM_WORLD_RANK=$2" || echo "$child"
    done
}
for victim in 0 2; do
    rm -f dead.db*
    mpirun -n 3 "$FINETTI" study run slow.yaml --store dead.db >out 2>err &
    starter=$!
    for _ in $(seq 1000); do
        sleep 0.01
        [ "$(sqlite3 dead.db 'SELECT count(*) FROM runs' 2>/dev/null || echo 0)" -lt 5 ] || break
    done
    process=$(rank_of $starter $victim)
    [ -n "$process" ] || fail "rank $victim is not there: $(cat err)"
    kill -9 "$process"
    code=0
    wait $starter || code=$?
    [ $code != 0 ] || fail "rank $victim was killed and mpirun said nothing"
    before=$(sqlite3 dead.db 'SELECT count(*) FROM runs')
    [ "$(sqlite3 dead.db 'PRAGMA integrity_check')" = ok ] || fail "rank $victim killed: integrity_check"
    [ "$before" -ge 5 ] && [ "$before" -lt 100 ] || fail "rank $victim was killed with $before runs in the store"
    ranks 3 "$FINETTI" study run slow.yaml --store dead.db >out 2>err || fail "restart: $(cat err)"
    grep -q "100 runs: $before cached" out || fail "restart: $(cat out)"
    same dead.db slow
    echo "rank $victim killed with $before of 100 runs in the store; the restart did the rest"
done

# Rank 0 cannot open the store, or cannot read the study: everybody leaves, soon.
for bad in "study.yaml --store /nowhere/at/all.db" "nothing.yaml --store x.db" "study.yaml --store study.yaml"; do
    code=0
    # shellcheck disable=SC2086
    ranks 3 "$FINETTI" study run $bad >out 2>err || code=$?
    [ $code != 0 ] && [ $code != 124 ] || fail "study run $bad: exit code $code"
    [ "$(grep -c '^finetti' err)" = 1 ] || fail "study run $bad: not one message: $(cat err)"
done

cc -O1 -I"$SRC/include" "$SRC/tests/mpi/ranks_sum.c" -o ranks_sum -L"$BUILD" -lfinetti -Wl,-rpath,"$BUILD" -lm
export FINETTI_MPI=$BUILD/finetti_mpi.so
./ranks_sum >sums.txt
for n in 1 2 3 4 7; do
    rm -rf sums
    ranks $n --output-filename sums ./ranks_sum >/dev/null
    [ "$(find sums -name stdout | wc -l)" = $n ] || fail "not $n outputs"
    find sums -name stdout | while read -r file; do
        cmp "$file" sums.txt || fail "$n ranks: another sum"
    done
done
echo "sums over 1, 2, 3, 4 and 7 ranks: the same"
