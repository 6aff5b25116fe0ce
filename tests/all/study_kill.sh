#!/usr/bin/env bash
# A study that is killed (kill -9) 50 times at random moments and then completed has the same exports, byte for byte,
# as one that was left alone: no run is lost, none is there twice, and SQLite finds nothing wrong. A disk that is full
# and a store that may only be read: an error that says so, and the store is as good as before.
. "$SRC/tests/cli/common.bash"
command -v sqlite3 >/dev/null || skip "no sqlite3"
seed=${SEED:-$$}
RANDOM=$seed
echo "SEED=$seed"

cat >study.yaml <<'YAML'
study: killed
runs:
  - id: simulate
    command: risk
    set: {form: softmax, d: 100, L: 20, samples: 10000}
    seeds: 400
  - id: train
    command: train
    set: {steps: 50, runs: 4, d: 40}
    seeds: 100
YAML
RUNS=500

milliseconds() {
    echo $(($(date +%s%N) / 1000000))
}

# run_study STORE: exit code 0 and a full store.
run_study() {
    accepts study run study.yaml --store "$1" --threads 2
}

# whole STORE: what SQLite says, and every run once.
whole() {
    [ "$(sqlite3 "$1" 'PRAGMA integrity_check')" = ok ] || fail "$1: integrity_check"
    [ -z "$(sqlite3 "$1" 'PRAGMA foreign_key_check')" ] || fail "$1: foreign_key_check"
    [ "$(sqlite3 "$1" 'SELECT count(*) - count(DISTINCT hash) FROM runs JOIN settings USING(id)')" = 0 ] || fail "$1: a run is there twice"
}

# same STORE: its exports are those of the store that was left alone.
same() {
    whole "$1"
    [ "$(sqlite3 "$1" 'SELECT count(*) FROM runs')" = $RUNS ] || fail "$1: not $RUNS runs"
    rm -f again.csv again.npz
    accepts study export killed --store "$1" --out again.csv
    accepts study export killed --store "$1" --out again.npz
    cmp again.csv alone.csv || fail "$1: another CSV export"
    cmp again.npz alone.npz || fail "$1: another NPZ export"
}

begin=$(milliseconds)
run_study alone.db
pass=$(($(milliseconds) - begin))
accepts study export killed --store alone.db --out alone.csv
accepts study export killed --store alone.db --out alone.npz
[ "$(wc -l <alone.csv)" = $((RUNS + 1)) ] || fail "the export has not a row for every run and one of names"
echo "alone: $pass ms"

# A life lasts up to a tenth of a whole pass, so that kills fall on starting, planning and running alike. A store that is
# full before all kills are done is put aside and a new one begun.
kills=0
stores=1
while [ $kills -lt 50 ]; do
    "$FINETTI" study run study.yaml --store killed-$stores.db --threads 2 >/dev/null 2>killed.err &
    life=$((RANDOM * pass / 10 / 32768))
    sleep "$(printf '%d.%03d' $((life / 1000)) $((life % 1000)))"
    kill -9 $! 2>/dev/null || true
    code=0
    wait $! 2>/dev/null || code=$?
    case $code in
    137) kills=$((kills + 1)) ;;
    0) stores=$((stores + 1)) ;;
    *) fail "killed after $life ms: exit code $code: $(cat killed.err)" ;;
    esac
    if [ $((kills % 10)) = 9 ] && [ -e killed-$stores.db ]; then
        cp killed-$stores.db seen.db
        [ ! -e killed-$stores.db-wal ] || cp killed-$stores.db-wal seen.db-wal
        whole seen.db
        rm -f seen.db*
    fi
done
for i in $(seq $stores); do
    before=$(sqlite3 "killed-$i.db" 'SELECT count(*) FROM runs' 2>/dev/null || echo 0)
    run_study "killed-$i.db"
    same "killed-$i.db"
    echo "store $i: $before of $RUNS runs had survived"
done
echo "$kills kills over $stores stores"

# full FOLDER COMMAND...: the study stops for want of space with a message, and can be completed elsewhere.
full() {
    local folder=$1 code=0
    shift
    "$@" "$FINETTI" study run study.yaml --store "$folder/full.db" --threads 2 >/dev/null 2>full.err || code=$?
    [ $code = 1 ] || fail "disk full: exit code $code: $(cat full.err)"
    grep -q "^finetti" full.err || fail "disk full: no message: $(cat full.err)"
    echo "disk full: $(tail -n 1 full.err)"
    rm -f moved.db*
    for file in "$folder"/full.db*; do
        cp "$file" "moved.db${file#"$folder"/full.db}"
    done
    rm -f moved.db-shm
    whole moved.db
    echo "disk full: $(sqlite3 moved.db 'SELECT count(*) FROM runs') of $RUNS runs were kept"
    run_study moved.db
    same moved.db
}
# The largest file that this process may write; without the signal, so that the write fails as on a full disk.
limited() {
    (
        trap '' XFSZ
        ulimit -f 300 # kilobytes
        exec "$@"
    )
}
mkdir limited
full limited limited

mkdir small
if mount -t tmpfs -o size=500k tmpfs small 2>/dev/null; then
    trap 'umount "$work/small"; rm -rf "$work"' EXIT
    full small
    umount small
    mount -t tmpfs -o size=20m tmpfs small
    cp alone.db small/read.db
    mount -o remount,ro small
    refuses 1 read.db study run study.yaml --store small/read.db
    echo "read only: $(cat stderr)"
    cmp alone.db small/read.db || fail "a store that may only be read has changed"
    umount small
    trap 'rm -rf "$work"' EXIT
else
    echo "SKIPPED: a disk that is really full: mounting is not allowed here"
fi
