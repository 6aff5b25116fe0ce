#!/usr/bin/env bash
# Draws docs/images/softmax.svg, a figure of the study `softmax` (half a minute). Run from the project's root after `make`.
set -euo pipefail
finetti=${FINETTI:-build/finetti}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$finetti" study run softmax --store "$work/softmax.db" >/dev/null
"$finetti" plot --store "$work/softmax.db" --study softmax --figure by-snr --width 460 --height 300 --out docs/images/softmax.svg
