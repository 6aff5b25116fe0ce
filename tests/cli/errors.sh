# Everything that can go wrong: one line, the right exit code, nothing on stdout, nothing left behind.
set -eu
needs_permissions=yes
. "$SRC/tests/cli/common.bash"

# ---- names
refuses 2 "did you mean risk?" rsk
refuses 2 "unknown command" qwertyuiop
refuses 2 "unknown command" ""
refuses 2 "a command comes first" --json
refuses 2 "did you mean simulate?" help simulat
refuses 2 "risk with task slr and form erf has no setting 'kapa'; did you mean 'kappa'?" risk --kapa 1
refuses 2 "did you mean --json?" info --jsn
refuses 2 "'finetti help risk' lists its settings" risk --qwertyuiop 1
refuses 2 "did you mean spiked?" risk --task spikd
refuses 2 "did you mean softmax?" risk --form=sofmax
refuses 2 "there is no task ''" risk --task ""
refuses 2 "slr has no setting snr; it belongs to spiked, max" risk --snr 3
refuses 2 "slr has no setting snr; it belongs to spiked, max" simulate --snr 3 --out x.npz
refuses 2 "spiked has no setting gamma; it belongs to slr" risk --task spiked --gamma 3
refuses 2 "erf has no setting c; it belongs to" risk --c 1
refuses 2 "did you mean 'lam'?" risk --sweep lamm=1:2:3
refuses 2 "did you mean bayes?" risk --show bays

# ---- how options are written
refuses 2 "needs a value" risk --kappa
refuses 2 "needs a value" risk --kappa --nu 1
refuses 2 "needs a value" risk --out
refuses 2 "needs a value" simulate --out=
refuses 2 "takes no value" risk --json=yes
refuses 2 "unexpected argument" risk 5
refuses 2 "unexpected argument" risk -d 5
refuses 2 "unexpected argument" risk --
refuses 2 "unknown option" risk "--$(printf 'x%.0s' {1..500})"
refuses 2 "no setting 'ka?ppa'" risk $'--ka\nppa' 1
refuses 2 "d = 'a?b'" risk --d $'a\nb'

# ---- combinations
refuses 2 "do not go together" risk --points a.csv --sweep lam=1,2
refuses 2 "both write to standard output" risk --out - --json
refuses 2 "takes the place of" risk --lengths 5:1 --L 4
refuses 2 "lengths takes the place of L and L_min; give one or the other" risk --lengths 5:1 --sweep L=2,4
refuses 2 "is both given and swept" risk --lam 1 --sweep lam=1,2
refuses 2 "swept twice" risk --sweep lam=1,2 --sweep lam=3,4
axes=(--sweep lam=1 --sweep nu=1 --sweep d=3 --sweep kappa=1 --sweep eta=0 --sweep rho=0 --sweep theta=0 --sweep eps=0)
refuses 2 "at most 8" risk "${axes[@]}" --sweep m=1
refuses 2 "more than 1000000 points" risk --sweep lam=1:2:1001 --sweep eps=0:1:1000
refuses 2 "did you mean softmax?" risk --sweep form=erf,sofmax
refuses 2 "erf has no setting c; it belongs to" risk --sweep c=0,1
refuses 2 "L_min = 20" risk --L_min 20
refuses 2 "do not fit" risk --m 11
for lengths in 5 5: :1 "5:1," 5:x 5:0 5:-1 5:nan 0:1 5:1,,6:1 5:inf 99999999999:1 x; do
    refuses 2 "lengths" risk --lengths "$lengths"
done
for sweep in lam lam= =1 lam=1:2 lam=1:2:0 lam=1:2:3cubic lam=0:1:5log lam=1:2:2.5 lam=nan lam=1,,2 lam=1,x \
    lam=-1:1:3 lam=1:inf:3 lam=1:2:3:4 lam=1:2:9999999 kappa=0,2 L=1.5,2 method=1,2 method=closed,simulaton samples=1,2; do
    refuses 2 "" risk --sweep "$sweep"
done

# ---- tables that are none
: >empty.csv
printf 'kappa,nu\n' >header.csv
printf 'kappa,nu\n1,0.5\n1' >truncated.csv
printf 'kappa,nu\n1,abc\n' >text.csv
printf 'kappa,nu\n1,\n' >hole.csv
printf 'kappa,kappa\n1,1\n' >twice.csv
printf 'kappa,nu\n1,"0.5\n' >quote.csv
printf 'kappa,nu\n1,1e999\n' >range.csv
head -c 100000 /dev/urandom >binary.csv
printf '\0\0\0\0' >zeros.csv
seq -f c%.0f -s, 200000 >wide.csv # twice as many columns as are read
for file in empty header truncated text hole twice quote range binary zeros wide; do
    refuses 1 "$file.csv" risk --points $file.csv
    refuses 1 "$file.csv" risk --points $file.csv --out never.csv
done
refuses 1 "nowhere.csv" risk --points nowhere.csv
refuses 1 "folder" risk --points .
mkfifo pipe
(printf 'kappa\n1\n' >pipe &)
accepts risk --points pipe
[ ! -e never.csv ] || fail "never.csv is there"

# ---- output that cannot be written
printf 'kappa\n1\n' >good.csv
mkdir folder folder.npz folder.csv readonly
chmod a-w readonly
[ ! -w readonly ] || echo "SKIPPED: a folder that may not be written: root may write anywhere"
for command in "risk --points good.csv" "risk --sweep lam=1,2" "simulate --n 2 --d 2"; do
    # shellcheck disable=SC2086
    set -- $command
    refuses 1 "nowhere" "$@" --out nowhere/x.csv
    refuses 1 "folder" "$@" --out folder.csv
    ln -sf /dev/full full.csv
    refuses 1 "No space left" "$@" --out full.csv
    [ -w readonly ] || refuses 1 "readonly" "$@" --out readonly/x.csv
done
refuses 1 "nowhere" simulate --n 2 --d 2 --out nowhere/x.npz
refuses 1 "folder" simulate --n 2 --d 2 --out folder.npz
empty_folder folder.csv
empty_folder folder.npz
[ -z "$(find . -name "*tmp*" -o -type f -name ".?*")" ] || fail "temporary files: $(ls -A)"

# ---- standard output that is full or closed
for command in "" "risk" "risk --json" "risk --points good.csv" "risk --sweep lam=1,2" "info" "info --json" "study" "study commands" "study commands --json" "help study run" "complete study run" "train --steps 5 --runs 2" "train --steps 5 --runs 2 --json" "landscape --grid 3" "landscape --grid 3 --out -" \
    "help risk" "--version" "complete risk" "simulate --n 2 --d 2 --out -"; do
    for target in /dev/full closed; do
        code=0
        # shellcheck disable=SC2086
        if [ $target = closed ]; then
            "$FINETTI" $command >&- 2>stderr || code=$?
        else
            "$FINETTI" $command >$target 2>stderr || code=$?
        fi
        [ $code = 1 ] || fail "finetti $command >$target: exit code $code: $(cat stderr)"
        mapfile lines <stderr
        [ ${#lines[@]} = 1 ] || fail "finetti $command >$target: $(cat stderr)"
    done
done
# A reader that goes away, as head does: the tool stops with the status of SIGPIPE and says nothing.
"$PYTHON" - <<'P'
import os, subprocess
p = subprocess.Popen([os.environ["FINETTI"], "simulate", "--n", "100000", "--d", "50", "--out", "-"],
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
p.stdout.read(100)
p.stdout.close()
err = p.stderr.read()
assert p.wait(timeout=60) == 141 and err == b"", (p.returncode, err)
for words in ("risk", "risk --json", "risk --sweep lam=1,2", "landscape --grid 3 --out -", "info", "help", "study commands --json", "--version"):
    reader, writer = os.pipe()
    os.close(reader)
    p = subprocess.run([os.environ["FINETTI"], *words.split()], stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert p.returncode == 141 and p.stderr == b"", (words, p.returncode, p.stderr)
# What fails otherwise is said all the same.
reader, writer = os.pipe()
os.close(reader)
p = subprocess.run([os.environ["FINETTI"], "fit", "nothing.csv"], stdout=writer, stderr=subprocess.PIPE, timeout=60)
assert p.returncode == 1 and b"nothing.csv" in p.stderr, (p.returncode, p.stderr)
P

# ---- Ctrl-C in a simulation, a sweep, a table, a grid and the studies
mkdir out
"$PYTHON" - <<'P'
from stop import cancelled
with open("slow.csv", "w") as f:
    f.write("kappa\n" + "1\n" * 1000)
slow = ["risk", "--task", "spiked", "--form", "softmax", "--samples", "100000000"]
for words in (slow, slow + ["--sweep", "lam=1,2,3", "--out", "out/x.csv"],
              slow + ["--points", "slow.csv", "--out", "out/y.csv"],
              ["risk", "--task", "slr", "--form", "softmax", "--L", "100000", "--show", "star"],
              ["landscape", "--grid", "2049", "--out", "out/z.csv"],
              ["reproduce", "--full", "--out", "slow"]):
    cancelled(*words)
P
empty_folder out
