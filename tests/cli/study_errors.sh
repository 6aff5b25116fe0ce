# Everything that can be wrong with a study or a store: one line, the right exit code, nothing lost.
set -eu
needs_permissions=yes
. "$SRC/tests/cli/common.bash"
unset FINETTI_STORE

# ---- commands and options
refuses 2 "did you mean study run?" study rn
refuses 2 "'finetti help study' lists them" study qwertyuiop
refuses 2 "a command comes first" study --store x
refuses 2 "did you mean study?" stdy
refuses 2 "did you mean study show?" help study shw
refuses 2 "FILE is missing" study run
refuses 2 "only 1 FILE" study run a.yaml b.yaml
refuses 2 "2 STORE are needed, 1 given" study diff a.db
refuses 2 "2 STORE are needed" study merge a.db
refuses 2 "unexpected argument" study gc now
refuses 2 "did you mean --store?" study ls --stor x
refuses 2 "needs a value" study run a.yaml --set
refuses 2 "FILE is empty" study run ""
refuses 2 "--out FILE" study export small
for shard in 0/3 4/3 3 1/0 /3 1/ -1/3 a/b 1/3x 1/99999999999999999999 1.5/3 "1 /3"; do
    refuses 2 "--shard" study run a.yaml --store s.db --shard "$shard"
done
refuses 2 "a store of its own" study run a.yaml --shard 1/3
refuses 2 "tolerance" study diff a.db b.db --tolerance -1

# ---- study files
refuses 1 "nowhere.yaml" study run nowhere.yaml
refuses 1 "did you mean slr_training?" study run slr_trainng
refuses 1 "folder" study run .
study() { # study NAME TEXT: a file of that name
    printf '%s\n' "$2" >"$1.yaml"
}
study unknown $'study: x\nruns:\n  - command: risk\n    sett: {lam: 1}'
refuses 1 "unknown.yaml:4:5" study run unknown.yaml
refuses 1 "did you mean 'set'?" study run unknown.yaml
study setting $'study: x\nruns:\n  - command: risk\n    set: {lamb: 1}'
refuses 1 "setting.yaml:4:11" study run setting.yaml
study value $'study: x\nruns:\n  - command: risk\n    set: {lam: -1}'
refuses 1 "value.yaml:4:" study run value.yaml
study command $'study: x\nruns:\n  - command: rsk'
refuses 1 "did you mean 'risk'?" study run command.yaml
study open $'study: x\nruns: [{command: risk'
refuses 1 "open.yaml:" study run open.yaml
study tab $'study: x\nruns:\n\t- command: risk'
refuses 1 "tab.yaml:3" study run tab.yaml
study name $'study: "a; drop table runs"\nruns:\n  - command: risk'
refuses 1 "name.yaml:1:8" study run name.yaml
study sequel $'study: x\nruns:\n  - command: risk\n---\nstudy: y'
refuses 1 "sequel.yaml:" study run sequel.yaml
study bomb $'a: &a [x, x, x, x, x, x, x, x, x]\nb: &b [*a, *a, *a, *a, *a, *a, *a]\nc: &c [*b, *b, *b, *b, *b, *b]\nstudy: x\nruns: *c'
refuses 1 "bomb.yaml:1" study run bomb.yaml
study many $'study: x\nruns:\n  - command: risk\n    axes:\n      kappa: {from: 0, to: 1, count: 1e6}\n      nu: {from: 0, to: 1, count: 1e6}'
refuses 1 "many.yaml:" study run many.yaml
study claim $'study: x\nruns:\n  - command: risk\nclaims:\n  - id: a\n    statement: b\n    take: sqrt(risk\n    expect: {at_most: 1}'
refuses 1 "claim.yaml:7" study run claim.yaml
study figure $'study: x\nruns:\n  - command: risk\nfigures:\n  - id: a\n    kind: lnes'
refuses 1 "figure.yaml:" study run figure.yaml
"$PYTHON" -c 'print("study: x\nruns: " + "[" * 100000)' >deep.yaml
refuses 1 "deep.yaml:" study run deep.yaml
head -c 200000 /dev/urandom >binary.yaml
refuses 1 "binary.yaml" study run binary.yaml
: >empty.yaml
refuses 1 "empty.yaml" study run empty.yaml
head -c 3000000 /dev/zero | tr '\0' '#' >huge.yaml
refuses 1 "huge.yaml" study run huge.yaml
[ ! -e finetti.db ] || fail "a study that was refused left a store"

study good $'study: good\nruns:\n  - id: a\n    command: risk\n    axes: {lam: [0.1, 0.2, 0.3]}'
for set in lam nopath=1 runs.a.sett=1 runs.b.set.lam=1 runs.a.set.lam=-1 =1 runs..a=1 "runs.a.set.lam=[1"; do
    refuses 2 "--set" study run good.yaml --set "$set"
done

# ---- stores
refuses 1 "there is no store 'finetti.db'" study ls
refuses 1 "there is no store 'finetti.db'" study gc
refuses 1 "there is no store" report
refuses 1 "there is no store" plot --list
accepts study run good.yaml
accepts study export good --out good.csv
refuses 2 "did you mean good?" study ls god
refuses 2 "did you mean good?" study show god
refuses 2 "neither a study nor a run" study show 00000000000000
refuses 2 "no study" study export "x'; drop table runs; --" --out x.csv
refuses 2 "no study" study gc --drop "good' or '1'='1"
for where in lam =1 lamb=1 "lam~1" "1=1; drop table runs"; do
    refuses 2 "" study ls good --where "$where"
done
accepts study ls good --where "form=x' or '1'='1"
prints "0 runs"
refuses 2 "no block" study ls good --block b
refuses 2 "is not one of done, failed, planned" study ls good --state going
refuses 2 "name a study" study ls --where lam=1
refuses 2 "end it in .csv or .npz" study export good --out x.txt
refuses 1 "nowhere" study export good --out nowhere/x.csv
ln -s /dev/full full.csv
refuses 1 "No space left" study export good --out full.csv
refuses 1 "" study merge new.db nowhere.db
[ ! -e new.db ] || fail "a merge of nothing left a store"
refuses 1 "nowhere" study run good.yaml --store nowhere/x.db
refuses 1 "" study run good.yaml --store .

# Files that are no stores are refused and left as they are.
printf 'not a database, but long enough to be looked at: %0200d\n' 0 >text.db
head -c 100000 /dev/urandom >random.db
"$PYTHON" - <<'P'
import sqlite3
sqlite3.connect("foreign.db").executescript("create table a(b); insert into a values (1);")
import shutil
shutil.copy("finetti.db", "newer.db")
db = sqlite3.connect("newer.db")
db.execute("pragma user_version = 999")
db.commit()
db.close()
data = bytearray(open("finetti.db", "rb").read())
for i in range(4096, len(data), 3):
    data[i] ^= 0x5A
open("corrupt.db", "wb").write(data)
open("cut.db", "wb").write(open("finetti.db", "rb").read()[:5000])
P
for store in text random foreign newer corrupt cut; do
    cp $store.db before
    for words in "study ls" "study check" "study gc" "study run good.yaml" "study export good --out x.csv" "report --out x.html" \
        "study status" "plot --list"; do
        # shellcheck disable=SC2086
        refuses 1 "" $words --store $store.db
    done
    cmp $store.db before || fail "$store.db was changed"
    refuses 1 "" study merge finetti.db $store.db
    refuses 1 "" study diff finetti.db $store.db
done
refuses 1 "newer" study ls --store newer.db
[ ! -e x.csv ] && [ ! -e x.html ] || fail "something was written"
accepts study check
accepts study export good --out again.csv
cmp good.csv again.csv

# A folder that cannot be written to (root can).
mkdir readonly
cp finetti.db readonly/
chmod a-w readonly readonly/finetti.db
if [ ! -w readonly ]; then
    refuses 1 "readonly" study run good.yaml --store readonly/finetti.db --set 'runs.a.axes.lam=[0.7]'
    accepts study ls --store readonly/finetti.db
    accepts study export good --store readonly/finetti.db --out readonly.csv
    cmp good.csv readonly.csv
else
    echo "SKIPPED: a store that may only be read: root may write anywhere"
fi
chmod u+w readonly readonly/finetti.db

# A disk that is full: a limit on the size of files is one.
cat >large.yaml <<'Y'
study: large
runs:
  - command: train
    set: {steps: 2000, log_every: 1, runs: 8, d: 20}
    seeds: 200
Y
code=0
(ulimit -f 400 && "$FINETTI" study run large.yaml --store full.db >stdout 2>stderr) || code=$?
[ $code = 1 ] && [ ! -s stdout ] || fail "a full disk: exit code $code: $(cat stdout stderr)"
grep -q "^finetti study run: " stderr || fail "a full disk: $(cat stderr)"
accepts study check --store full.db

# ---- strings that are none of ours stay strings
study html $'study: html\ntitle: "<script>alert(1)</script>"\nruns:\n  - command: risk'
accepts study run html.yaml
accepts report --study html --out html.html
! grep -q "<script>alert(1)" html.html || fail "the title is not escaped"
"$PYTHON" - <<'P'
import sqlite3
db = sqlite3.connect("finetti.db")
db.execute("update studies set title = 'red' || char(27) || '[31m' || char(155) || '31m', source = title || char(10) || char(7)")
db.commit()
P
plain() { # nothing that a terminal would obey
    "$PYTHON" -c '
import unicodedata
text = open("stdout", "rb").read().decode()
assert not [c for c in text if unicodedata.category(c) == "Cc" and c != "\n"], repr(text)'
}
accepts study ls
prints "red?[31m"
plain
accepts study show html
plain
