#!/bin/bash
# Fuzzes every reader: tests/fuzz/run.sh [seconds for each] [reader ...]
#
# Builds the library and the harnesses with clang, libFuzzer and the address and undefined-behaviour
# sanitizers in FUZZ_BUILD (default: build-fuzz in the source tree), then runs one after the other
# from the kept corpus. What is new goes to FUZZ_BUILD/found/<reader>, with the input of a finding
# beside it (<reader>-crash-..., -leak-, -timeout-, -oom-); the kept corpus is not changed. Exit code
# 1 if there was a finding.
set -u
here=$(cd "$(dirname "$0")" && pwd)
src=$(cd "$here/../.." && pwd)
build=${FUZZ_BUILD:-$src/build-fuzz}
seconds=${1:-60}
shift
commands=${FUZZ_JOBS:-$(nproc)}

all=
for source in "$here"/fuzz_*.c; do
    reader=${source##*/fuzz_}
    all="$all ${reader%.c}"
done
for reader in "$@"; do
    [[ " $all " = *" $reader "* ]] || {
        echo "there is no reader '$reader'; there are$all"
        exit 2
    }
done

echo "building the harnesses (the first time takes some minutes) ..."
{
    FINETTI_SETUP=no cmake -S "$src" -B "$build" -DCMAKE_C_COMPILER=clang \
        -DFINETTI_SANITIZE=address,undefined,fuzzer-no-link &&
        # not to look for the command server of a make that called us
        env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL cmake --build "$build" -j "$commands" --target fuzz
} > "$build.log" 2>&1 || {
    tail -n 20 "$build.log"
    echo "the harnesses could not be built; $build.log says why"
    exit 2
}

# A number of libFuzzer's last lines.
number_of() { sed -n "s/^stat::$1: *//p" "$log" | tail -n 1; }

export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1
count=0 failed=0
mkdir -p "$build/log"
for reader in ${*:-$all}; do
    mkdir -p "$build/found/$reader"
    log=$build/log/$reader.log
    words=() values=1
    case $reader in study | text | store | cli) words=(-dict="$here/words.dict") ;; esac
    [ "$reader" = store ] && values=0 # each input compares too much, SQLite's part apart
    # Sizes are those at which the readers' loops and limits are all reached.
    "$build/fuzz/fuzz_$reader" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -max_len=8192 \
        -use_value_profile=$values -print_final_stats=1 -artifact_prefix="$build/found/$reader-" "${words[@]}" \
        "$build/found/$reader" "$here/corpus/$reader" > "$log" 2>&1
    code=$?
    count=$((count + 1))
    printf '%-11s %10s executions %7s a second   ' "$reader" "$(number_of number_of_executed_units)" \
        "$(number_of average_exec_per_sec)"
    if [ $code = 0 ]; then
        echo "no finding"
    else
        failed=$((failed + 1))
        echo "A FINDING; see $log"
        grep -m 3 -E 'ERROR|SUMMARY|runtime error|Test unit written' "$log"
    fi
done
echo "$count readers, $seconds seconds each: $failed with a finding"
[ $failed = 0 ]
