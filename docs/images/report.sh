#!/usr/bin/env bash
# Draws docs/images/report.png, the report of `finetti reproduce` as a browser shows it, and two of its figures: training.png (the five
# experiments) and portrait.png (the risk on M). Needs Chromium and rsvg-convert; run from the project's root after `make`.
# STORE=FILE takes a store that is there already.
set -euo pipefail
finetti=${FINETTI:-build/finetti}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
store=${STORE:-$work/finetti.db}
[ -n "${STORE:-}" ] || "$finetti" reproduce --out "$work" >/dev/null
"$finetti" explore --out "$work/explore.html" >/dev/null 2>&1 || true # a link to it stands in the report
"$finetti" report --store "$store" --out "$work/index.html" >/dev/null
chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1180,1250 --virtual-time-budget=3000 \
    --screenshot=docs/images/report.png "file://$work/index.html" 2>/dev/null
picture() { # FIGURE PIXELS FILE OPTIONS...
    "$finetti" plot --store "$store" --study slr_training --figure "$1" --out "$work/$1.svg" "${@:4}" >/dev/null
    rsvg-convert -w "$2" "$work/$1.svg" -o "docs/images/$3"
}
picture experiments 1500 training.png --width 240 --height 190 2>/dev/null
picture portrait 760 portrait.png --width 460 --height 400 2>/dev/null
