#!/usr/bin/env bash
# Unit tests whose sizes are a matter of patience, at full size: more samples and settings of laws, every allocation of
# reports and stores refused, more damaged stores. `make check` runs the same tests at the usual size, the sanitizers at
# the small one (tests/test_size.h).
. "$SRC/tests/cli/common.bash"
files=$(grep -lE "test_size.h|fault_places.h" "$SRC"/tests/test_*.c)
[ -n "$files" ] || fail "no test asks for its size"
for file in $files; do
    name=$(basename "$file" .c)
    module=$(cut -d _ -f 1-2 <<<"$name")
    echo "$name"
    (cd "$BUILD/tests" && FINETTI_TEST_SIZE=full "./$module" "$name" >"$work/out" 2>&1) ||
        fail "$name: $(tail -n 20 "$work/out")"
done
