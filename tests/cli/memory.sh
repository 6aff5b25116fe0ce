#!/usr/bin/env bash
# Little memory: with few addresses (ulimit -v) OpenBLAS asks for its buffers again and again, for ever. What needs it says so
# and ends, whatever the limit and the number of threads; what needs none of it works. A second signal ends the tool at once.
. "$SRC/tests/cli/common.bash"
[ "${FINETTI_TEST_SIZE:-usual}" != small ] || { echo "SKIPPED: limits: sanitizers need all addresses"; limits=no; }

"$PYTHON" - <<'P'
import random
random.seed(1)
with open("context.csv", "w") as f:
    f.write("a,b,y\n")
    for i in range(150):
        f.write("%r,%r,%r\n" % (random.gauss(0, 1), random.gauss(0, 1), random.gauss(0, 1)))
with open("bags.csv", "w") as f:
    f.write("bag,label,a,b\n")
    for i in range(120):
        f.write("%d,%d,%r,%r\n" % (i // 4, i // 4 % 2, random.gauss(i // 4 % 2, 1), random.gauss(0, 1)))
P
commands=(
    "attend context.csv --key a,b --value y --loo"
    "attend context.csv --key a,b --value y --form softmax --loo"
    "pretrain --family mean --steps 2 --width 16 --layers 1 --out e.fin"
    "fit bags.csv --model softmax+rbf --cv none"
    "fit bags.csv --model embedding --cv none"
    "latent risk --family concept --L 20"
    "latent risk --family sphere --L 20"
    "landscape --grid 3"
    "lab rate --L 64"
    "lab limit"
)
# within KB WORDS...: the exit code, or a failure if it does not end. 20 s are plenty: none of it takes one.
within() {
    local limit=$1 code=0
    shift
    (ulimit -v "$limit" && exec timeout -k 1 -s KILL 20 "$FINETTI" "$@") >stdout 2>stderr </dev/null || code=$?
    [ $code != 137 ] || fail "ulimit -v $limit; finetti $*: does not end"
    [ $code = 0 ] || [ $code = 1 ] || [ $code = 127 ] || fail "ulimit -v $limit; finetti $*: exit code $code: $(cat stderr)"
    # OpenMP, too, needs addresses for its threads, and ends the program where there are none.
    [ $code != 1 ] || grep -q -i "memory\|Thread creation failed" stderr || fail "ulimit -v $limit; finetti $*: $(cat stderr)"
    return $code
}
if [ "${limits:-yes}" = yes ]; then
    # Below this the loader itself gives up (127).
    least=60000
    until code=0 && { within $least --version || code=$?; } && [ $code = 0 ]; do least=$((least + 4000)); done
    refused=0
    for words in "${commands[@]}"; do
        for more in 10000 60000 1500000; do
            for threads in 1 3; do
                code=0
                # shellcheck disable=SC2086
                within $((least + more)) $words --threads $threads || code=$?
                [ $code != 1 ] || ! grep -q OpenBLAS stderr || refused=$((refused + 1))
                [ $more != 1500000 ] || [ $code = 0 ] || fail "$words: refused with enough memory: $(cat stderr)"
            done
        done
    done
    [ $refused -ge 20 ] || fail "only $refused commands met the limit"
    # OpenBLAS has threads of its own, which must not be started; nothing that does without it is refused.
    unset OPENBLAS_NUM_THREADS
    within $((least + 10000)) risk || fail "risk: $(cat stderr)"
    code=0
    within $((least + 10000)) attend context.csv --key a,b --value y --loo || code=$?
    [ $code = 1 ] && grep -q OpenBLAS stderr || fail "attend: $code: $(cat stderr)"
fi

# The first signal is a request, the second one, whichever it is, an end: here the tool waits for somebody to write, where
# nothing asks.
mkfifo pipe
"$PYTHON" - <<'P'
import os, signal, subprocess, time
def ends(*signals):
    p = subprocess.Popen([os.environ["FINETTI"], "attend", "pipe", "--key", "a", "--value", "b"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    asleep = 0
    while asleep < 5 and p.poll() is None:
        time.sleep(0.05)
        asleep = asleep + 1 if open("/proc/%d/stat" % p.pid).read().rsplit(")", 1)[1].split()[0] == "S" else 0
    for number in signals:
        p.send_signal(number)
        time.sleep(0.2)
    try:
        return p.wait(timeout=1)
    except subprocess.TimeoutExpired:
        p.kill()
        return None
assert ends(signal.SIGTERM) is None
assert ends(signal.SIGTERM, signal.SIGTERM) == -signal.SIGTERM
assert ends(signal.SIGTERM, signal.SIGINT) == -signal.SIGINT
P
