# finetti info, help, version, completion, and that they agree with each other.
set -eu
. "$SRC/tests/cli/common.bash"

accepts info
prints "kernels"
prints "softmax"
"$FINETTI" info --json >info.json
"$PYTHON" - <<'P'
import json
a = json.load(open("info.json"))
assert a["kernel"] in a["kernels"].split() and a["threads"] >= 1 and a["warnings"] == []
assert {"slr", "spiked", "max"} <= set(a["tasks"]) and "erf" in a["forms"]
assert {"jansson", "libzip", "OpenBLAS", "SLEEF", "Random123"} <= set(a["libraries"])
P
"$FINETTI" info --threads 3 | grep -q '^threads   3$'
FINETTI_KERNEL=ref "$FINETTI" info 2>warning | grep -q '^kernels   ref '
[ ! -s warning ] || fail "$(cat warning)"
FINETTI_KERNEL=mmx FINETTI_THREADS=many "$FINETTI" info 2>warning >/dev/null
grep -q "FINETTI_KERNEL='mmx'" warning
grep -q "FINETTI_THREADS='many'" warning
FINETTI_KERNEL=mmx "$FINETTI" info --json 2>/dev/null | "$PYTHON" -c '
import json, sys
assert len(json.load(sys.stdin)["warnings"]) == 1'

accepts --version
prints "finetti $("$PYTHON" -c 'import json; print(json.load(open("info.json"))["version"])')"
accepts
prints "Commands:"
accepts help
prints "Commands:"

# Every option that exists is in the help of its command and in the manual.
for command in $("$FINETTI" complete); do
    [ "$command" = help ] && continue
    accepts help "$command"
    prints "Examples:"
    cp stdout help1
    accepts "$command" --help
    cmp stdout help1
    for task in slr spiked max; do
        case $command in risk | simulate | train | landscape) ;; *) task= ;; esac
        "$FINETTI" complete "$command" ${task:+--task "$task"} >options
        "$FINETTI" help "$command" ${task:+--task "$task"} >help2
        while IFS=$'\t' read -r option _; do
            grep -q -- "^  $option " help2 || grep -q -- "^  $option\$" help2 || fail "$command: no $option in the help"
            grep -qE -- " ${option#-}( |\$)" "$SRC/docs/man/finetti.1" || fail "no $option in the manual"
        done <options
    done
done

# The completion script, as bash would call it.
PATH=$(dirname "$FINETTI"):$PATH
# shellcheck source=/dev/null
. "$SRC/tools/completion/finetti.bash"
completes() { # completes WANTED WORDS...
    local wanted=$1
    shift
    COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
    _finetti
    printf '%s\n' "${COMPREPLY[@]}" | grep -qxF -- "$wanted" || fail "completion of '$*': ${COMPREPLY[*]}"
}
completes simulate finetti si
completes --kappa finetti risk --ka
completes --snr finetti risk --task spiked --s
completes spiked finetti risk --task sp
completes softmax finetti risk --form sof
completes simulation finetti risk --method si
completes double finetti simulate --dtype d
completes reproduce finetti help re
completes --log-every finetti train --log
completes reduced finetti train --engine re
completes flow finetti train --rule fl
completes manifold finetti train --init m
completes --kappa-range finetti landscape --kap
completes limits finetti reproduce li
touch state.npz
mkdir -p folder
for option in --out --resume --start --checkpoint; do
    completes state.npz finetti train $option st
done
completes folder finetti reproduce slr --out fol

if command -v man >/dev/null; then
    LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$SRC/docs/man/finetti.1" >page 2>complaints
    [ ! -s complaints ] || fail "manual: $(cat complaints)"
    grep -q simulate page
fi
