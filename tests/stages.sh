#!/usr/bin/env bash
# Runs checks one after the other, `make check` or `make check-<stage>` each, and says how many minutes each took. Stops
# at the first that fails.
#
#   tests/stages.sh check clang sanitizers races slow
#   tests/stages.sh --short check ...     without what tests/rest.txt leaves to `make check-all`
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1

minutes() { printf '%d.%d min' $(($1 / 60)) $(($1 % 60 / 6)); }
table= code=0 short=no
if [ "${1:-}" = --short ]; then
    short=yes
    shift
fi
for stage in "$@"; do
    target=check-$stage
    [ "$stage" != check ] || target=check
    echo "==== make $target"
    began=$SECONDS
    [ $short = no ] || export FINETTI_REST=$stage
    make --no-print-directory "$target" || code=$?
    took=$(minutes $((SECONDS - began)))
    table+=$(printf '%-18s %9s%s' "make $target" "$took" "$([ $code = 0 ] || echo '   FAILED')")$'\n'
    echo "==== make $target: $took"
    echo
    [ $code = 0 ] || break
done
printf '%s%-18s %9s\n' "$table" 'in all' "$(minutes $SECONDS)"
exit $code
