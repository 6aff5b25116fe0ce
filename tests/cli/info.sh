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
assert {"jansson", "libzip", "OpenBLAS", "SLEEF", "Random123", "SQLite", "libyaml", "zlib", "xxHash"} <= set(a["libraries"])
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
cp stdout overview
accepts help
cmp stdout overview
# One screen with room for a prompt, and all commands and families on it.
[ "$(wc -l <overview)" -le 23 ] && ! grep -E '.{81}| $' overview || fail "the overview does not fit"
for name in $("$FINETTI" complete); do
    grep -Eq "(^| )$name " overview || fail "$name is not in the overview"
done
accepts help tasks
for word in slr softmax concept 'sqrt(snr)'; do
    prints "$word"
done

# Every option that exists is in the help of its command and in the manual.
"$FINETTI" complete | grep -vx -e help -e study -e latent -e lab >commands
for family in study latent lab; do
    "$FINETTI" complete $family | sed "s/^/$family /; s/\t.*//" >>commands
done
[ "$(wc -l <commands)" -ge 40 ] || fail "$(cat commands)"
while read -r -a command <&3; do
    accepts help "${command[@]}"
    prints "Examples:"
    cp stdout help1
    accepts "${command[@]}" --help
    cmp stdout help1
    grep -q "^  finetti .*${command[*]}" help1 || fail "${command[*]}: no example"
    for task in slr spiked max; do
        case ${command[*]} in risk | simulate | train | landscape) ;; *) task= ;; esac
        "$FINETTI" complete "${command[@]}" ${task:+--task "$task"} >options
        "$FINETTI" help "${command[@]}" ${task:+--task "$task"} >help2
        sed "s/^/${command[*]}\t$task\t/" options >>all_options
        sed "s/^/${command[*]}\t$task\t/" help2 >>all_help
        [ -n "$task" ] || break
    done
done 3<commands
"$PYTHON" - <<'P'
import os, re
manual = open(os.environ["SRC"] + "/docs/man/finetti.1").read()
help, count = {}, 0
for line in open("all_help"):
    command, task, text = line.rstrip("\n").split("\t", 2)
    help.setdefault((command, task), []).append(text)
for line in open("all_options"):
    command, task, option, kind, *_ = line.rstrip("\n").split("\t")
    lines = help[command, task]
    if kind == "operand":
        assert any(option in text for text in lines), (command, option, "is not in the help")
        continue
    assert any(text == "  " + option or text.startswith("  " + option + " ") for text in lines), (command, option, "is not in the help")
    # Of the laboratory the manual has the way to the help; its settings are those of the experiments.
    assert command.startswith("lab ") or re.search(" " + re.escape(option[1:]) + "( |$)", manual, re.M), (option, "is not in the manual")
    count += 1
assert count > 300, count
P
for family in study latent lab; do
    accepts help $family
    while read -r first name; do
        [ "$first" != $family ] || prints "  $name "
    done <commands
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
completes slr_training finetti reproduce slr_t
completes study finetti st
completes status finetti study st
completes show finetti help study sh
completes --retry-failed finetti study run x.yaml --ret
completes slr_training finetti study run slr_t
touch state.npz
mkdir -p folder
for option in --out --resume --start --checkpoint; do
    completes state.npz finetti train $option st
done
completes lab finetti la
completes rate finetti lab ra
completes --contexts finetti lab rate --con
completes concept finetti lab regret --family conc
completes folder finetti reproduce --out fol
touch mine.yaml mine.db
completes mine.yaml finetti study run mi
completes mine.db finetti study ls --store mi
completes mine.db finetti study diff mi
touch mine.csv
completes mine.csv finetti attend mi
completes mine.csv finetti attend mine.csv --query mi
completes matern52 finetti attend mine.csv --kernel matern5
completes --standardize finetti attend mine.csv --sta
touch mine.fin
completes mine.csv finetti fit mi
completes mixture finetti fit mine.csv --model mi
completes mine.csv finetti fit mine.csv --folds mi
completes --class-weights finetti fit mine.csv --class
completes mine.fin finetti predict mi
completes mine.fin finetti info mi
completes mine.csv finetti locate mine.fin mi
completes --blind finetti locate mine.fin mine.csv --bl
completes pretrain finetti pret
completes --balls finetti pretrain --family urn --ba
completes --snr finetti pretrain --task spiked --s
completes cme finetti pretrain --attention c
completes mine.csv finetti pretrain --data mi
completes mine.fin finetti probe mi
completes mine.fin finetti finetune mi
completes --reconstruct finetti probe mine.fin --rec

if command -v man >/dev/null; then
    LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$SRC/docs/man/finetti.1" >page 2>complaints
    [ ! -s complaints ] || fail "manual: $(cat complaints)"
    grep -q simulate page
else
    echo "SKIPPED: the manual as man sets it: no man"
fi
