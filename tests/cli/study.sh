# finetti study: a small study, from the file to its export, and every command that looks at a store.
set -eu
. "$SRC/tests/cli/common.bash"
unset FINETTI_STORE

cat >small.yaml <<'Y'
study: small
title: A small study
source: nobody
runs:
  - id: grid
    command: risk
    set: {eps: 0.1, show: "risk,linear"}
    axes:
      L: [2, 10, 100]
      lam: {from: 0.01, to: 1, count: 5, spacing: log}
    full:
      axes: {L: [2, 10]}
  - id: walks
    command: train
    set: {steps: 20, runs: 3, d: 20, log_every: 5}
    axes:
      alpha: [0.001, 0.01]
    seeds: 3
claims:
  - id: linear
    statement: The best linear predictor loses 0.51 - 0.25 / (0.5 + 99) with a hundred tokens.
    where: {L: 100}
    take: linear
    reduce: max
    expect: {equal: 0.5074874371859296, tolerance: 1e-12}
  - id: moves
    statement: Nothing converges in twenty steps.
    from: walks
    take: share
    reduce: max
    expect: {at_most: 0.6}
Y

# ---- before
accepts study run small.yaml --dry-run
prints "21 runs: 0 done, 0 failed, 21 to do"
prints "L=100 lam=1"
prints "alpha=0.01 seed=3"
[ ! -e finetti.db ] || fail "a dry run made a store"
"$FINETTI" study run small.yaml --dry-run --json >dry.json
accepts study run small.yaml --dry-run --full
prints "16 runs"
accepts study run small.yaml --dry-run --set runs.grid.axes.L=[7] --set walks.steps=30
prints "11 runs"

# ---- running, and running again
accepts study run small.yaml
prints "21 runs: 0 cached, 21 computed"
prints "derived: 2 of 2 hold"
grep -q "small: 21 of 21 runs, 0 failed" stderr || fail "no last line: $(cat stderr)"
accepts study export small --out first.csv
accepts study run small.yaml
prints "21 runs: 21 cached, 0 computed"
accepts study run small.yaml --dry-run
prints "21 runs: 21 done, 0 failed, 0 to do"
accepts study export small --out second.csv
cmp first.csv second.csv
"$FINETTI" study run small.yaml --json >run.json 2>/dev/null
FINETTI_STORE=other.db "$FINETTI" study run small.yaml --threads 2 >/dev/null 2>&1
[ -f other.db ] || fail "FINETTI_STORE was not taken"
accepts study export small --store other.db --out third.csv
cmp first.csv third.csv
accepts study diff finetti.db other.db
prints "0 differences"

# ---- looking
accepts study ls
prints "21/21"
prints "A small study"
accepts study ls small
prints "21 runs"
prints "L=100 lam=1"
accepts study ls small --block walks --where alpha=0.01
prints "3 runs"
accepts study ls small --where 'L>=10' --where lam=1
prints "2 runs"
accepts study ls small --state failed
prints "0 runs"
accepts study show small
prints "A small study"
prints "L, lam"
prints "derived: 2 of 2 hold"
hash=$("$FINETTI" study ls small --block walks | awk 'NR == 1 { print $3 }')
accepts study show "$hash"
prints "alpha=0.001"
prints "share of runs"
prints "6 x 5"
accepts study status
prints "ended"
accepts study status small --watch
accepts study check
prints "sound"
accepts study commands
prints "risk:"
prints "median_abs_kappa"
"$FINETTI" study export small --block grid --where L=2 --out - >some.csv
[ "$(wc -l <some.csv)" = 6 ] || fail "$(cat some.csv)"
accepts study export small --out all.npz
accepts study export small --times --out times.csv
! cmp -s first.csv times.csv || fail "no times"

# ---- JSON is JSON
"$FINETTI" study ls --json >ls.json
"$FINETTI" study ls small --where lam=1 --json >runs.json
"$FINETTI" study show small --json >show.json
"$FINETTI" study show "$hash" --json >one.json
"$FINETTI" study status --json >status.json
"$FINETTI" study diff finetti.db other.db --json >diff.json
"$FINETTI" study commands --json >commands.json
"$FINETTI" study gc --dry-run --json >gc.json
"$PYTHON" - <<'P'
import csv, json
from npz import load
def read(name):
    return json.load(open(name + ".json"))
dry = read("dry")
assert len(dry) == 21 and len({r["hash"] for r in dry}) == 21 and {r["state"] for r in dry} == {"planned"}
assert [r["position"] for r in dry] == list(range(21)) and dry[14]["settings"]["L"] == 100
run = read("run")
assert run["holds"] and run["runs"] == run["present"] == 21 and run["done"] == run["failed"] == 0
assert [c["verdict"] for c in run["claims"]] == ["holds", "holds"] and run["claims"][1]["value"] == 0
ls, = read("ls")
assert ls["study"] == "small" and ls["done"] == 21 and (ls["claims"], ls["held"]) == (2, 2)
assert [r["settings"]["L"] for r in read("runs")] == [2, 10, 100]
assert {k: v["runs"] for k, v in read("show")["blocks"].items()} == {"grid": 15, "walks": 6}
one = read("one")
assert one["state"] == "done" and one["settings"]["steps"] == 20
assert {s["name"]: s for s in one["scalars"]}["share"]["samples"] == 3
assert {tuple(s["shape"]) for s in one["series"] if s["name"] == "excess"} == {(6, 5)}
status, = read("status")
assert status["state"] == "ended" and status["failed"] == 0
assert read("diff") == [] and "risk" in read("commands") and read("gc")["runs"] == 0
rows = list(csv.DictReader(open("first.csv")))
assert len(rows) == 21 and [r["hash"] for r in rows] == [r["hash"] for r in dry]
assert abs(float(rows[14]["linear"]) - (0.51 - 0.25 / 99.5)) < 1e-12
assert load("all.npz")
P

# ---- claims that do not hold, runs that fail
code=0
sed 's/at_most: 0.6/at_least: 0.9/' small.yaml >bold.yaml
"$FINETTI" study run bold.yaml >stdout 2>/dev/null || code=$?
[ $code = 1 ] || fail "a claim fails and the exit code is $code"
prints "FAILS"
prints "derived: 1 of 2 holds, 1 FAILS"
# What is known not to hold is shown as failing, and why; that is no surprise. That it holds would be one.
sed 's/    expect: {at_least: 0.9}/&\n    kind: paper\n    known: Twenty steps are too few./' bold.yaml >known.yaml
accepts study run known.yaml
prints "papers: 0 of 1 hold, 1 FAILS"
prints "derived: 1 of 1 holds"
prints "known: Twenty steps are too few."
code=0
sed 's/at_least: 0.9/at_most: 0.6/; s/kind: paper/kind: check/' known.yaml >holds.yaml
"$FINETTI" study run holds.yaml >stdout 2>/dev/null || code=$?
[ $code = 1 ] || fail "what is known not to hold holds, and the exit code is $code"
prints "HOLDS, though it is known not to"
# Undecided: 0 of 3 runs is at most 0.56.
code=0
sed 's/at_most: 0.6/at_most: 0.28/' small.yaml >wide.yaml
"$FINETTI" study run wide.yaml >stdout 2>/dev/null || code=$?
[ $code = 1 ] || fail "a claim is undecided and the exit code is $code"
prints "about 2 times as many runs would decide it"
prints "derived: 1 of 2 holds, 1 undecided"
accepts study run small.yaml
cat >failing.yaml <<'Y'
study: failing
runs:
  - command: risk
    set: {task: spiked, method: closed}
    axes: {form: [linear, softmax]}
Y
code=0
"$FINETTI" study run failing.yaml >stdout 2>stderr || code=$?
[ $code = 1 ] || fail "a run fails and the exit code is $code: $(cat stdout stderr)"
prints "1 failed"
code=0
"$FINETTI" study run failing.yaml >stdout 2>/dev/null || code=$?
[ $code = 1 ] || fail "the run is still a failed one"
prints "2 cached, 0 computed, 1 failed"
"$FINETTI" study run failing.yaml --retry-failed >stdout 2>/dev/null || true
prints "1 cached, 1 computed, 1 failed"
accepts study ls failing --state failed
prints "form=softmax"
prints "1 run"

# What is marked as failed is run again, to the same bytes.
"$PYTHON" - <<'P'
import sqlite3
db = sqlite3.connect("finetti.db")
where = "id in (select r.id from runs r join plan p on p.run_id = r.id join studies s on s.id = p.study_id where s.name = 'small' limit 2)"
db.execute("delete from scalars where run_" + where)
db.execute("update runs set state = (select state from runs where reason <> '' limit 1), reason = 'lightning' where " + where)
db.commit()
P
accepts study ls small --state failed
prints "lightning"
! "$FINETTI" study run small.yaml >/dev/null 2>&1 || fail "failed runs are fine?"
accepts study run small.yaml --retry-failed
prints "19 cached, 2 computed"
accepts study export small --out fourth.csv
cmp first.csv fourth.csv

# ---- shards and merging
for i in 1 2 3; do
    accepts study run small.yaml --shard $i/3 --store part$i.db
    prints "7 runs: 0 cached, 7 computed"
done
accepts study merge joined.db part1.db part2.db part3.db
prints "21 runs added"
accepts study export small --store joined.db --out joined.csv
cmp first.csv joined.csv
accepts study show small --store joined.db
prints "derived: 2 of 2 hold"
accepts study ls small --store part2.db --state planned
prints "14 runs"
accepts study merge joined.db part1.db
prints "0 runs added, 7 already present"
code=0
"$FINETTI" study diff part1.db joined.db >stdout || code=$?
[ $code = 1 ] || fail "the stores differ and the exit code is $code"
prints "14 differences"

# A number that differs: seen, unless it is within the tolerance, and not merged, unless by force.
cp joined.db touched.db
"$PYTHON" - <<'P'
import sqlite3
db = sqlite3.connect("touched.db")
db.execute("update scalars set value = value + 1e-9 where name_id = (select id from names where name = 'linear') and run_id = "
           "(select max(run_id) from scalars where name_id = (select id from names where name = 'linear'))")
db.execute("update runs set finished = finished - 1000")
db.commit()
P
code=0
"$FINETTI" study diff joined.db touched.db >stdout || code=$?
[ $code = 1 ] && [ "$(wc -l <stdout)" = 2 ] || fail "diff: exit code $code: $(cat stdout)"
prints "linear"
prints "1 difference"
accepts study diff joined.db touched.db --tolerance 1e-8
refuses 1 "linear" study merge joined.db touched.db
accepts study merge touched.db joined.db --force
prints "1 replaced"
accepts study diff joined.db touched.db

# ---- what no study plans
accepts study run small.yaml --set runs.grid.axes.lam=[0.5]
accepts study gc --dry-run
prints "15 runs and 0 studies would go"
accepts study gc
prints "15 runs and 0 studies removed"
accepts study gc --drop failing
prints "1 study removed"
accepts study ls
! grep -q failing stdout || fail "failing is still there"
accepts study check

# ---- help, and the studies that come along
accepts study
prints "Commands:"
accepts study --help
accepts help study
accepts help study run
prints "slr_training"
accepts study run slr_training --dry-run --store none.db
prints "to do"
accepts study run slr_training --dry-run --full --set runs.manifold.set.runs=7

# ---- reports of it
accepts report --out small.html
prints "small.html"
grep -q "A small study" small.html || fail "the report lacks the title"

# ---- Ctrl-C: what is finished stays, and the same command goes on
cat >slow.yaml <<'Y'
study: slow
runs:
  - command: train
    set: {steps: 20000, runs: 30, init: manifold}
    seeds: 400
Y
"$PYTHON" - <<'P'
from stop import cancelled
err = cancelled("study", "run", "slow.yaml", "--store", "slow.db", after=0.3)
assert b"cancelled; what is finished is in slow.db, the same command goes on" in err, err
P
accepts study check --store slow.db
accepts study status slow --store slow.db
prints "ended"

# ---- under mpirun: the same export
if command -v mpirun >/dev/null && "$FINETTI" info --json | grep -q '"MPI": "yes"'; then
    # In a container everybody is root and there are few processors.
    export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
    timeout 120 mpirun -n 3 "$FINETTI" study run small.yaml --store ranks.db >stdout 2>stderr || fail "mpirun: $(cat stdout stderr)"
    prints "21 runs: 0 cached, 21 computed"
    [ "$(grep -c "21 computed" stdout)" = 1 ] || fail "more than one rank talks"
    accepts study export small --store ranks.db --out ranks.csv
    cmp first.csv ranks.csv
    # Nobody waits for a rank that gave up.
    for words in "study run nowhere.yaml" "study run small.yaml --shard 4/3" "study run small.yaml --dry-run" \
        "study run --help" "reproduce nosuchstudy" "study run small.yaml --store ."; do
        # shellcheck disable=SC2086
        timeout 60 mpirun -n 2 "$FINETTI" $words >stdout 2>stderr && code=0 || code=$?
        [ $code != 124 ] || fail "mpirun finetti $words hangs"
        [ "$(grep -c '^finetti' stderr)" -le 1 ] || fail "mpirun finetti $words: $(cat stderr)"
    done
else
    echo "SKIPPED: a study under mpirun: no mpirun, or built without MPI"
fi

# ---- the same study, run twice, is the same report: no time is in it
for folder in first second; do
    mkdir $folder
    (cd $folder && "$FINETTI" study run ../small.yaml --store small.db >/dev/null && "$FINETTI" report --store small.db --out index.html >/dev/null)
done
cmp first/index.html second/index.html || fail "two runs of a study have two reports"

# ---- who looks at a pass that was killed is told so, at once
cat >killed.yaml <<'Y'
study: killed
runs: [{command: train, set: {steps: 100000, runs: 200}, seeds: 400}]
Y
state() { "$FINETTI" study status killed --store killed.db --json 2>/dev/null | "$PYTHON" -c 'import json, sys; print(*(s["state"] for s in json.load(sys.stdin)))' 2>/dev/null || true; }
"$FINETTI" study run killed.yaml --store killed.db >/dev/null 2>&1 &
process=$!
for _ in $(seq 500); do
    [ "$(state)" != running ] || break
    sleep 0.02
done
[ "$(state)" = running ] || fail "a study that runs is not seen: $(state)"
kill -9 $process
wait $process 2>/dev/null || true
[ "$(state)" = killed ] || fail "a study that was killed is said to be $(state)"

# ---- a run that is cut short loses no claim, and a time is no text to compare
cat >cut.yaml <<'Y'
study: cut
runs:
  - id: quick
    command: risk
    axes: {L: [2, 3]}
  - id: slow
    command: train
    set: {steps: 100000, runs: 200}
    seeds: 400
claims:
  - {id: a, statement: Fast., from: quick, take: risk, reduce: min, expect: {at_least: 0}}
  - {id: b, statement: Slow., from: slow, take: share, reduce: mean, expect: {at_least: 0}}
  - {id: t, statement: Timed., from: quick, take: seconds + risk, reduce: max, expect: {at_least: 0}}
Y
"$FINETTI" study run cut.yaml --store cut.db --threads 1 >cut.out 2>cut.err &
cut=$!
for _ in $(seq 100); do
    [ "$("$FINETTI" study ls cut --store cut.db --state done 2>/dev/null | tail -1)" != "2 runs" ] || break
    sleep 0.1
done
kill -9 $cut
wait $cut || :
accepts study ls --store cut.db
grep -q "^cut .* 0/3" stdout || fail "claims are lost: $(cat stdout)"
accepts study show cut --store cut.db
prints "derived: 0 of 3 hold, 3 untested"
prints "not judged yet"
accepts report --store cut.db --study cut --study cut --out cut.html
grep -q 'derived here: 0 of 3 hold</strong>, <a href="#claim-cut.a">3 are untested</a>' cut.html || fail "the report lost claims"
# Stopped politely it judges what is there.
"$PYTHON" - <<'P'
import signal
from stop import stop
code, out, err, told = stop(["study", "run", "cut.yaml", "--store", "cut.db", "--threads", "1"], signal.SIGTERM, 0.3)
assert told and code == 143, (code, out, err)
P
accepts study show cut --store cut.db
prints "derived: 2 of 3 hold, 1 untested"
prints "(a time)"

# A setting that follows an axis: the run is the one with the number typed.
cat >follow.yaml <<'Y'
study: follow
runs:
  - {id: formula, command: risk, set: {lam: 1/sqrt(d), L: round(d^0.5)}, axes: {d: [100, 400]}}
  - {id: axis, command: risk, set: {L: 10}, axes: {d: [100], lam: [1/sqrt(d), d^-0.25]}}
  - {id: typed, command: risk, set: {d: 400, L: 20, lam: 0.05}}
Y
accepts study run follow.yaml --store follow.db
accepts study export follow --store follow.db --out follow.csv
"$PYTHON" - <<'P'
import csv
rows = list(csv.DictReader(open("follow.csv")))
seen = [(r["block"], float(r["d"]), float(r["L"]), float(r["lam"])) for r in rows]
assert sorted(seen) == sorted([("formula", 100, 10, 0.1), ("formula", 400, 20, 0.05), ("axis", 100, 10, 0.1),
                               ("axis", 100, 10, 0.316227766017), ("typed", 400, 20, 0.05)]), seen
assert len({r["hash"] for r in rows}) == 3, rows
P
