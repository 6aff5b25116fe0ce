#!/usr/bin/env bash
# Runs checks one after the other, `make check` or `make check-<stage>` each, and says how many minutes each took. Stops
# at the first that fails.
#
#   tests/stages.sh check clang sanitizers races slow
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

minutes() { printf '%d.%d min' $(($1 / 60)) $(($1 % 60 / 6)); }
table= code=0
for stage in "$@"; do
    target=check-$stage
    [ "$stage" != check ] || target=check
    echo "==== make $target"
    began=$SECONDS
    make --no-print-directory "$target" || code=$?
    took=$(minutes $((SECONDS - began)))
    table+=$(printf '%-18s %9s%s' "make $target" "$took" "$([ $code = 0 ] || echo '   FAILED')")$'\n'
    echo "==== make $target: $took"
    echo
    [ $code = 0 ] || break
done
printf '%s%-18s %9s\n' "$table" 'in all' "$(minutes $SECONDS)"
exit $code
