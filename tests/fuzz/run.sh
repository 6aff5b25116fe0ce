#!/bin/bash
# Fuzzes every reader: tests/fuzz/run.sh [seconds for each] [reader ...]
#
# Builds the library and the harnesses with clang, libFuzzer and the address and undefined-behaviour
# sanitizers in FUZZ_BUILD (default: build-fuzz in the source tree), then runs one after the other
# from the kept corpus. What is new goes to FUZZ_BUILD/found/<reader>, with the input of a finding
# beside it (crash-..., leak-..., timeout-..., oom-...); the kept corpus is not changed. Exit code 1
# if there was a finding.
set -u
here=$(cd "$(dirname "$0")" && pwd)
src=$(cd "$here/../.." && pwd)
build=${FUZZ_BUILD:-$src/build-fuzz}
seconds=${1:-60}
shift
jobs=${FUZZ_JOBS:-$(nproc)}

FINETTI_SETUP=no cmake -S "$src" -B "$build" -DCMAKE_C_COMPILER=clang \
    -DFINETTI_SANITIZE=address,undefined,fuzzer-no-link > "$build.log" 2>&1 &&
    cmake --build "$build" -j "$jobs" --target fuzz >> "$build.log" 2>&1 || {
    tail -n 20 "$build.log"
    echo "the harnesses could not be built; $build.log says why"
    exit 2
}

export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=1
export UBSAN_OPTIONS=print_stacktrace=1
failed=0
for harness in "$build"/fuzz/fuzz_*; do
    reader=${harness##*/fuzz_}
    [ $# -gt 0 ] && [[ " $* " != *" $reader "* ]] && continue
    mkdir -p "$build/found/$reader" "$build/log"
    log=$build/log/$reader.log
    # Sizes are those at which the readers' loops and limits are all reached.
    if "$harness" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -max_len=8192 \
        -use_value_profile=1 -print_final_stats=1 -artifact_prefix="$build/found/$reader-" \
        "$build/found/$reader" "$here/corpus/$reader" > "$log" 2>&1; then
        echo "$reader: $(grep -o 'number_of_executed_units: .*' "$log"), no finding"
    else
        failed=1
        echo "$reader: a finding; see $log"
        grep -m 3 -E 'ERROR|SUMMARY|runtime error|Test unit written' "$log"
    fi
done
exit $failed
