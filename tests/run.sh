#!/usr/bin/env bash
# Runs the tests of a build tree: a line for each module when its last test is done, what failed in full, a summary.
#
#   tests/run.sh BUILD LABEL JOBS [REGEX]     LABEL: lean, all, long; REGEX: only tests whose name matches
#
# FINETTI_REST=STAGE: without the tests that tests/rest.txt names for this stage (.ci/run).
#
# A test that cannot run here, or a part of one, prints "SKIPPED: why". Each such line must be named in tests/skips.txt
# with a condition that holds on this machine; otherwise the run fails, whatever else passed. The whole output of
# every test is in BUILD/Testing/Temporary/LastTest.log.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$(cd "$1" && pwd) label=$2 jobs=$3 regex=${4:-}
: "${FINETTI_DATA:=$here/../../shared/data}" "${PYTHON:=python3}" "${SKIPS:=$here/skips.txt}"
export FINETTI_DATA PYTHON BUILD=$build

choice=(-L "^$label\$")
[ -z "$regex" ] || choice+=(-R "$regex")
if [ -n "${FINETTI_REST:-}" ]; then
    left_out=$(awk -F ' [|] ' -v stage="$FINETTI_REST" '$1 == stage { print $2 }' "$here/rest.txt")
    known=$(ctest --test-dir "$build" -N -L "^$label\$" | sed -n "s/^ *Test *#[0-9]*: //p")
    for name in $left_out; do
        grep -qx "$name" <<<"$known" || {
            echo "tests/rest.txt: $name is no test of $FINETTI_REST" >&2
            exit 1
        }
    done
    [ -z "$left_out" ] || choice+=(-E "^($(paste -s -d '|' <<<"$left_out"))\$" -FS .)
fi
names=$(ctest --test-dir "$build" -N "${choice[@]}" | sed -n 's/^ *Test *#[0-9]*: //p')
[ -n "$names" ] || {
    echo "no test with label $label${regex:+ matches $regex}" >&2
    exit 1
}
terminal=
[ ! -t 1 ] || terminal=$'\r\033[K'

# The module of a test: test_<module>_<thing>, <folder>_<name>; the rest holds for the whole tree.
module_of() {
    module=tree
    case $1 in
    test_*) module=${1#test_} ;;
    cli_* | python* | example_* | all_* | long_*) module=$1 ;;
    esac
    module=${module%%_*}
}
declare -A left tests hundredths skipped failed
for name in $names; do
    module_of "$name"
    left[$module]=$((${left[$module]:-0} + 1))
done

# What ctest prints, as it comes: a line of its own for each test, and below that, where it failed, its output.
show() {
    local line failing= done=0 total text
    total=$(wc -w <<<"$names")
    while IFS= read -r line; do
        if [[ $line =~ ^\ *[0-9]+/[0-9]+\ Test\ +\#[0-9]+:\ ([^ ]+)\ .*\ +([0-9]+)\.([0-9][0-9])\ sec ]]; then
            name=${BASH_REMATCH[1]} failing= done=$((done + 1))
            module_of "$name"
            hundredths[$module]=$((${hundredths[$module]:-0} + 10#${BASH_REMATCH[2]}${BASH_REMATCH[3]}))
            tests[$module]=$((${tests[$module]:-0} + 1))
            left[$module]=$((left[$module] - 1))
            case $line in
            *' Passed '*) ;;
            *'***Skipped'*) skipped[$module]=$((${skipped[$module]:-0} + 1)) ;;
            *)
                failed[$module]=$((${failed[$module]:-0} + 1)) failing=yes
                echo "${terminal}FAILED $name:${line#*"$name"}"
                ;;
            esac
            if [ "${left[$module]}" = 0 ]; then
                text=
                [ -z "${skipped[$module]:-}" ] || text="   ${skipped[$module]} skipped"
                [ -z "${failed[$module]:-}" ] || text="$text   ${failed[$module]} FAILED"
                printf '%s%-10s %4d tests %5d.%d s%s\n' "$terminal" "$module" "${tests[$module]}" \
                    $((hundredths[$module] / 100)) $((hundredths[$module] / 10 % 10)) "$text"
            fi
            [ -z "$terminal" ] || printf '%s%d of %d tests' "$terminal" "$done" "$total"
        elif [[ $line =~ ^[0-9]+%\ tests\ passed ]]; then
            failing=
        elif [ -n "$failing" ] && ! [[ $line =~ ^\ *Start\ +[0-9]+: ]]; then
            printf '%s\n' "$line"
        fi
    done
    [ -z "$terminal" ] || printf '%s' "$terminal"
}
began=$SECONDS
mkdir -p "$build/Testing"
rm -f "$build/Testing/Temporary/LastTestsFailed.log"
ctest --test-dir "$build" "${choice[@]}" -j "$jobs" --output-on-failure --no-tests=error 2>&1 |
    tee "$build/Testing/ctest.log" | show
code=${PIPESTATUS[0]}

# ---- skips: each is named, and for a reason that holds -------------------------------------------

log=$build/Testing/Temporary/LastTest.log
skips=$(awk '/^[0-9]+\/[0-9]+ Test: / { name = $3 }
             sub(/^SKIPPED: /, "") { print name "\t" $0 }' "$log" | sort -u)
wrong=0
while IFS=$'\t' read -r name text; do
    [ -n "$name" ] || continue
    # In the list a part of a test is NAME/PART; it prints "SKIPPED: PART: why".
    row=$(awk -F ' [|] ' -v name="$name" -v part="$name/${text%%: *}" '$1 == name || $1 == part { print $2; exit }' "$SKIPS")
    if [ -z "$row" ]; then
        echo "SKIPPED $name: $text: tests/skips.txt does not name it"
        wrong=$((wrong + 1))
        continue
    fi
    if bash -c "$row" >/dev/null 2>&1; then
        echo "skipped $name: $text"
    else
        echo "SKIPPED $name: $text: but '$row' does not hold here (tests/skips.txt)"
        wrong=$((wrong + 1))
    fi
done <<<"$skips"
# A test that ended as skipped without a word is one too many.
whole=$(sed -n 's/^.* Test *#[0-9]*: \([^ ]*\) .*\*\*\*Skipped .*/\1/p' "$build/Testing/ctest.log" | sort)
silent=$(comm -23 <(echo "$whole") <(cut -f 1 <<<"$skips" | sort -u))
for name in $silent; do
    echo "SKIPPED $name: it does not say why"
    wrong=$((wrong + 1))
done

failures=0
[ "$code" -eq 0 ] || failures=$(wc -l <"$build/Testing/Temporary/LastTestsFailed.log" 2>/dev/null || echo 1)
whole=$(wc -w <<<"$whole")
[ "$wrong" -eq 0 ] || echo "$wrong skips that tests/skips.txt does not allow"
echo "$(($(wc -w <<<"$names") - failures - whole)) passed, $((failures + wrong)) failed, $whole skipped"
echo "label $label, $((SECONDS - began)) s; all output is in ${log#"$PWD"/}"
[ "$code" -eq 0 ] && [ "$wrong" -eq 0 ]
